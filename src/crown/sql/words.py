"""Write long lists of names as text."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """
    >>> words("add subtract")
    ('add', 'subtract')
    """
    return tuple(text.split())
