"""Normalise bound relations into conjunctions."""
