"""Continue a checkpoint of cells in Python workers with cells in Spark's JVM, and the other way round.

Both write the same state: the same names, schemas, chunks and marks, which Spark encodes alike. But Spark records the
name of the operator that wrote a state and rejects any other, and its two `transformWithState` operators have different
names. So that record, and nothing else, is changed when a stream starts.
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
    """Prepare a checkpoint to be continued by cells in `engine`. Return the number of renamed operators."""
    (other,) = (name for where, name in _OPERATORS.items() if where != engine)
    renamed = 0
    try:
        operators = [name for name in names_in(f"{checkpoint}/state") if name.isdigit()]
    except pa.ArrowException:
        return 0  # a file system that only Spark supports: Spark rejects the state of another operator
    for operator in operators:
        directory = f"{checkpoint}/state/{operator}/_metadata/v2"
        for name in names_in(directory):
            text = read_file(directory, name) or b""
            if other in text:
                # Hadoop's checksum of the old file would make the new one unreadable; without one
                # it is not checked.
                files, root = open_filesystem(directory)
                with contextlib.suppress(FileNotFoundError):
                    files.delete_file(f"{root}/.{name}.crc")
                write_at_once(directory, name, text.replace(other, _OPERATORS[engine]))
                renamed += 1
    return renamed
