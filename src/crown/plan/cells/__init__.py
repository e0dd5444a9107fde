"""Distribute a plan over many cells."""
