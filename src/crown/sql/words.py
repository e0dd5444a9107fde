"""Long lists of names, written as text."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """
    >>> words("add subtract")
    ('add', 'subtract')
    """
    return tuple(text.split())
