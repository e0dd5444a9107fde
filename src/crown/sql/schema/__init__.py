"""Schemas: tables, keys and options, from whatever the user has."""
