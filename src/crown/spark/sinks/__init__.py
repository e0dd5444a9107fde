"""Targets that are kept equal to a view."""
