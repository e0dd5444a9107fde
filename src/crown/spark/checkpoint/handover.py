"""A checkpoint written by cells in Python workers, continued by cells in Spark's JVM, and the other way round.

Both write the same state: the same names, schemas, chunks and marks, which Spark encodes alike. But Spark notes the
name of the operator that wrote a state and refuses another, and its two `transformWithState` operators have different
names. So that note, and nothing else, is changed when a stream starts.
"""

from __future__ import annotations

import contextlib

import pyarrow as pa

from crown.spark.filesystem import names_in, open_filesystem, read_file, write_at_once
from crown.spark.flow.operators import EngineName

_OPERATORS: dict[EngineName, bytes] = {
    "python": b'"transformWithStateInPySparkExec"',
    "jvm": b'"transformWithStateExec"',
}


def hand_over(checkpoint: str, engine: EngineName) -> int:
    """Let the query of a checkpoint be continued by cells in `engine`. Return the number of operators renamed."""
    (other,) = (name for where, name in _OPERATORS.items() if where != engine)
    renamed = 0
    try:
        operators = [name for name in names_in(f"{checkpoint}/state") if name.isdigit()]
    except pa.ArrowException:
        return 0  # a file system that only Spark knows: Spark refuses what another operator wrote
    for operator in operators:
        directory = f"{checkpoint}/state/{operator}/_metadata/v2"
        for name in names_in(directory):
            text = read_file(directory, name) or b""
            if other in text:
                # Hadoop's sum of the file as it was would make the new one unreadable; without one
                # it is not checked.
                files, root = open_filesystem(directory)
                with contextlib.suppress(FileNotFoundError):
                    files.delete_file(f"{root}/.{name}.crc")
                write_at_once(directory, name, text.replace(other, _OPERATORS[engine]))
                renamed += 1
    return renamed
