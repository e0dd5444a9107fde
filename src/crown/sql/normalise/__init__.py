"""Bound relations to normalised conjunctions."""
