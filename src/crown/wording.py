"""Format English plurals and articles, for messages."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "row"), counted(1200, "row"), counted(0, "batch"), counted(2, "copy")
    ('1 row', '1,200 rows', '0 batches', '2 copies')
    """
    return f"{number:,} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    if noun.endswith("y"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("ch", "s", "x")) else f"{noun}s"


def with_article(word: str) -> str:
    """
    >>> with_article("int"), with_article("DOUBLE"), with_article("UUID")
    ('an int', 'a DOUBLE', 'a UUID')
    """
    return f"{'an' if word[:1].lower() in 'aeio' and word else 'a'} {word}"
