"""Count the rejected changes of a batch: malformed records and changes that a cell rejected."""

from __future__ import annotations

from crown.spark.filesystem import names_in, read_file


def count(rejects: str, batch: int, query: str) -> int:
    """Count the lines of the batch's files in the directory of rejected changes."""
    mine = [name for name in names_in(rejects) if name.startswith(f"{batch:012d}-{query[:8]}-")]
    return sum((read_file(rejects, name) or b"").count(b"\n") for name in mine)
