"""A plan over many cells."""
