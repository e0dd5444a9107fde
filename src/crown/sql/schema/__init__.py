"""Schemas: tables, keys and options, from text, dicts, Arrow or Spark."""
