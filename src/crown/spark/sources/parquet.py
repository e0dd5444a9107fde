"""Read Parquet files of changes in the tasks that dispatch them.

Spark's own scan turns the rows of a file into rows of the JVM, then into Arrow, and carries them to Python. None of it
is needed here: Spark's file source only returns the names of new files (listed and recorded in the checkpoint
as usual), and the task that dispatches a file's changes reads them with Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from crown.changes import CHANGE_TYPE, DELETIONS, INSERTIONS
from crown.errors import SchemaError
from crown.spark.filesystem import open_filesystem
from crown.spark.flow.dispatch import Dispatcher
from crown.spark.schema import DELETED

# Options that choose files. Others change how Spark reads them, so then Spark has to.
_LISTING = frozenset(
    {
        "cleansource",
        "filenameonly",
        "latestfirst",
        "maxbytespertrigger",
        "maxcachedfiles",
        "maxfileage",
        "maxfilespertrigger",
        "modifiedafter",
        "modifiedbefore",
        "pathglobfilter",
        "recursivefilelookup",
        "sourcearchivedir",
    }
)
_KINDS: Mapping[str, bool | None] = dict.fromkeys(INSERTIONS, False) | dict.fromkeys(DELETIONS, True)
# What Spark's source of whole files gives; what is not selected is not read.
_BINARY_FILE = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
_ROWS = 1 << 17
_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_REMEMBERED = "_crown_file_names"


def remember_names(spark: SparkSession, changes: DataFrame, path: str, options: Mapping[str, Any]) -> None:
    """Record for a stream of a directory's Parquet files how to get only their names."""
    if all(option.lower() in _LISTING for option in options):
        reader = spark.readStream.format("binaryFile").schema(_BINARY_FILE).options(**options)
        setattr(changes, _REMEMBERED, reader.load(path).select("path"))


def file_names(changes: DataFrame) -> DataFrame | None:
    """Return the names of the files that a stream reads, if it is just that."""
    return vars(changes).get(_REMEMBERED)


@dataclass(frozen=True)
class FileDispatcher:
    """For `mapInArrow`: names of files in, packed blobs of their changes out. `columns` are those that are needed."""

    dispatcher: Dispatcher
    columns: StructType

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = (name for batch in batches for name in batch.column(0).to_pylist())
        return self.dispatcher(changes for name in names for changes in read_changes(name, self.columns))


def read_changes(name: str, columns: StructType) -> Iterator[pa.RecordBatch]:
    """Yield the changes in a file, in the form that is dispatched: NULL or no `_change_type` is an insertion."""
    wanted = to_arrow_schema(columns, timezone="UTC")
    try:
        opened = pyarrow.parquet.ParquetFile(_open(name))
    except (OSError, pa.ArrowInvalid) as error:
        raise SchemaError(
            f"{name} can't be read as Parquet",
            code="CROWN-SOURCE-FILE",
            reason=str(error),
            hint="move complete files in, and keep them until their batch is done",
        ) from error
    with opened as file:
        # Names match as Spark matches them, whatever their case.
        stored = {found.lower(): found for found in file.schema_arrow.names}
        present = [stored[column.lower()] for column in (*wanted.names, CHANGE_TYPE) if column.lower() in stored]
        for batch in file.iter_batches(_ROWS, columns=present, use_threads=False):
            arrays = [_column(batch, stored, field, file, name) for field in wanted]
            kind = batch.column(stored[CHANGE_TYPE]) if CHANGE_TYPE in stored else None
            arrays.append(_deleted(kind, batch.num_rows))
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted.append(pa.field(DELETED, pa.bool_())))


def _open(name: str) -> Any:
    """Return the file of a name that Spark gives: a URI, but with nothing in its path escaped."""
    if name.startswith("file:"):
        name = "/" + name.removeprefix("file:").lstrip("/")
    system, path = open_filesystem(name)
    return system.open_input_file(path)


def _column(
    batch: pa.RecordBatch, stored: Mapping[str, str], field: pa.Field, file: pyarrow.parquet.ParquetFile, name: str
) -> pa.Array:
    found = stored.get(field.name.lower())
    if found is None:
        return _from_path(field, name, batch.num_rows)
    array = batch.column(found)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.type == field.type:
        return array
    if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(field.type):
        # Legacy INT96 timestamps have no zone and are instants in nanoseconds; Spark has
        # microseconds.
        leaves = map(file.schema.column, range(len(file.schema)))
        old = any(leaf.name == found and leaf.physical_type == "INT96" for leaf in leaves)
        if old or (array.type.tz is None) == (field.type.tz is None):
            return array.cast(pa.timestamp("us"), safe=False).cast(field.type)
    elif _widens(array.type, field.type):
        return array.cast(field.type)
    raise SchemaError(
        f"column {field.name} of {name} is {array.type}",
        code="CROWN-SOURCE-TYPE",
        reason=f"the table has {field.type}",
        hint="correct the schema, or read the files with spark.readStream.parquet and cast the column",
    )


def _widens(own: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every value of a type has the same meaning in the other one."""
    types = pa.types
    text, octets = {pa.string(), pa.large_string()}, {pa.binary(), pa.large_binary()}
    return bool(
        {own, wanted} <= text
        or {own, wanted} <= octets
        or (
            types.is_integer(own) and (types.is_integer(wanted) or types.is_decimal(wanted) or types.is_float64(wanted))
        )
        or (types.is_floating(own) and types.is_floating(wanted) and wanted.bit_width >= own.bit_width)
        or (types.is_decimal(own) and types.is_decimal(wanted))
    )


def _from_path(field: pa.Field, name: str, rows: int) -> pa.Array:
    """Return a column that the file lacks: the value in the name of a directory above (`day=3`), else NULL."""
    for directory in reversed(name.split("/")[:-1]):
        key, equals, value = directory.partition("=")
        if equals and unquote(key).lower() == field.name.lower() and value != _NO_PARTITION:
            return pa.repeat(pa.scalar(unquote(value)).cast(field.type), rows)
    return pa.nulls(rows, field.type)


def _deleted(kinds: pa.Array | None, rows: int) -> pa.BooleanArray:
    """Return whether each change is a deletion; NULL for an unknown change type."""
    if kinds is None:
        return pa.repeat(pa.scalar(False), rows)
    # There are few distinct change types: each is checked once.
    words = kinds.cast(pa.string()).dictionary_encode()
    meanings = pa.array([False, *(_KINDS.get(word) for word in words.dictionary.to_pylist())], pa.bool_())
    return meanings.take(pc.fill_null(pc.add(words.indices, 1), 0))
