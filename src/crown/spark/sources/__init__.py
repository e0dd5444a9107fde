"""Streams of changes from what people have."""
