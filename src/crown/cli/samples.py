"""Turn data files into tables of a new pipeline: infer names and types of columns, and suggest a first query."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from crown.arrow import crown_type
from crown.changes import CHANGE_TYPE, COMMIT_COLUMNS, MULTIPLICITY
from crown.errors import CrownError
from crown.types import DataType

FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
_MARKS = {CHANGE_TYPE, MULTIPLICITY, *COMMIT_COLUMNS}
_STRING = DataType("string")
_ADVICE = {
    "csv": "a CSV file has commas between values, and the names of its columns in the first line",
    "json": "a JSON file has one object per line, or one array of objects",
}
# The parser takes these as names in some places only.
_SOMETIMES_NAMES = {
    "ANY",
    "CASE",
    "CONSTRAINT",
    "CUBE",
    "CURRENT_DATE",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "EXCLUDE",
    "FALSE",
    "LIMIT",
    "LOCK",
    "OFFSET",
    "ROLLUP",
    "SESSION_USER",
    "TRUE",
    "UNIQUE",
    "WINDOW",
}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Sample:
    """`left_out` are columns that are not in the schema, each with the reason; `key` is unique in the sample."""

    table: str
    format: str
    columns: tuple[tuple[str, DataType], ...]
    file: Path | None = None
    options: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()
    marked: bool = False  # whether rows have a `_change_type`
    rows: int = 0
    key: str | None = None

    @property
    def ddl(self) -> str:
        """The columns as CREATE TABLE lists them."""
        return ", ".join(f"{quoted(name)} {type_.sql_name}" for name, type_ in self.columns)


def quoted(name: str) -> str:
    """Return a name as SQL accepts it.

    >>> quoted("city"), quoted("unit price"), quoted("select")
    ('city', '`unit price`', '`select`')
    """
    return name if _PLAIN_NAME.fullmatch(name) and name.upper() not in _reserved() else f"`{name}`"


@cache
def _reserved() -> frozenset[str]:
    """Words that need quotes as the name of a column or table."""
    from sqlglot.dialects.spark import Spark

    never_names = {word for word, kind in Spark.Tokenizer.KEYWORDS.items() if kind not in Spark.Parser.ID_VAR_TOKENS}
    return frozenset(never_names | _SOMETIMES_NAMES)


def read_sample(path: Path) -> Sample:
    """Return the table that a CSV, JSON or Parquet file is a sample of."""
    format_ = FORMATS.get(path.suffix.lower())
    if path.is_dir():
        raise _unreadable(path, "it is a folder", "name one of its files")
    if format_ is None:
        ending = f"the name ends with {path.suffix}" if path.suffix else "the name has no ending that tells the format"
        raise _unreadable(path, ending, f"use {', '.join(FORMATS)}")
    if not path.is_file():
        raise _unreadable(path, "there is no such file", "check the path")
    try:
        data, options = _read(path, format_)
    except (OSError, pa.ArrowException, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _unreadable(path, reason, _ADVICE.get(format_, "check the file")) from error
    typed = [(field.name, _type(field.type, format_)) for field in data.schema if field.name.lower() not in _MARKS]
    columns = tuple((name, type_) for name, type_ in typed if type_ is not None)
    if not columns:
        raise _unreadable(path, "it has no columns of supported types", "use another file")
    return Sample(
        table=_table_name(path),
        format=format_,
        columns=columns,
        file=path,
        options=options,
        left_out=tuple(_left_out(data.schema.field(name)) for name, type_ in typed if type_ is None),
        marked=CHANGE_TYPE in data.column_names,
        rows=data.num_rows,
        key=_key(data, columns),
    )


def _read(path: Path, format_: str) -> tuple[pa.Table, tuple[tuple[str, str], ...]]:
    """Return the file's rows, and the options with which Spark reads it."""
    if format_ == "csv":
        from pyarrow import csv

        return csv.read_csv(path), ()
    if format_ == "parquet":
        from pyarrow import parquet

        return parquet.read_table(path), ()
    text = path.read_text(encoding="utf-8").lstrip()
    if text.startswith("["):  # one array instead of a record per line
        return pa.Table.from_pylist(json.loads(text)), (("multiLine", "true"),)
    from pyarrow import json as arrow_json

    return arrow_json.read_json(path), ()


def _type(arrow: pa.DataType, format_: str) -> DataType | None:
    """Return the type of a column; text for values that only text can hold, such as a time of day.

    Arrays, structs and maps stay out, since a first query needs none, and times of day, since Spark's cells don't carry
    them.
    """
    found = None if pa.types.is_nested(arrow) or pa.types.is_time(arrow) else crown_type(arrow)
    if found is not None or format_ == "parquet":
        return found
    return None if pa.types.is_nested(arrow) else _STRING


def _left_out(field: pa.Field) -> str:
    if pa.types.is_nested(field.type):
        return f"{field.name} ({field.type}); to use it, add it to the schema in pipeline.toml"
    return f"{field.name} ({field.type}), a type that Crown does not support on Spark"


def _table_name(path: Path) -> str:
    """
    >>> _table_name(Path("data/2024 Orders-v2.csv"))
    't_2024_orders_v2'
    >>> _table_name(Path("values.csv"))
    't_values'
    """
    name = re.sub(r"\W+", "_", path.stem.lower()).strip("_")
    return name if name and not name[0].isdigit() and name.upper() not in _reserved() else f"t_{name}"


def _key(data: pa.Table, columns: Sequence[tuple[str, DataType]]) -> str | None:
    """Return the first column that could be the primary key: named like one, never NULL and never twice."""
    if CHANGE_TYPE in data.column_names:
        return None
    for name, _ in columns:
        column = data[name]
        named = name.lower() in ("id", "key") or (name == columns[0][0] and name.lower().endswith(("id", "key")))
        if named and not column.null_count and len(column.unique()) == data.num_rows:
            return name
    return None


def first_query(samples: Sequence[Sample]) -> str:
    """Return a query to start from: the number of rows in each group, with a join if two columns suggest one.

    >>> whole, text = DataType("int64"), DataType("string")
    >>> orders = Sample("orders", "csv", (("id", whole), ("customer_id", whole)))
    >>> customer = Sample("customers", "csv", (("id", whole), ("name", text)))
    >>> print(first_query([orders, customer]))
    SELECT b.name, COUNT(*) AS n
    FROM orders a
    JOIN customers b ON b.id = a.customer_id
    GROUP BY b.name
    """
    found = next(((a, b, on) for a in samples for b in samples if a is not b and (on := _join(a, b))), None)
    if found is None:
        group = quoted(_group(samples[0]))
        return f"SELECT {group}, COUNT(*) AS n\nFROM {samples[0].table}\nGROUP BY {group}"
    a, b, (left, right) = found
    group = f"b.{quoted(_group(b))}"
    joined = f"FROM {a.table} a\nJOIN {b.table} b ON b.{quoted(right)} = a.{quoted(left)}"
    return f"SELECT {group}, COUNT(*) AS n\n{joined}\nGROUP BY {group}"


def _join(a: Sample, b: Sample) -> tuple[str, str] | None:
    """Return columns of `a` and `b` that look like a foreign key and its target."""
    types = dict(b.columns)
    singular = b.table.lower().removesuffix("s")
    for name, type_ in a.columns:
        plain = name.lower()
        target = next((other for other in types if other.lower() == "id"), None)
        if target is not None and types[target] == type_ and plain in (singular, f"{singular}_id", f"{singular}id"):
            return name, target
        same = next((other for other in types if other.lower() == plain), None)
        if (
            same is not None
            and types[same] == type_
            and plain != "id"
            and (plain.endswith(("id", "key")) or same == b.key)
        ):
            return name, same
    return None


def _group(sample: Sample) -> str:
    """Return the column to group by: the first text, else the first column."""
    return next((name for name, type_ in sample.columns if type_ == _STRING), sample.columns[0][0])


def described(table: str, ddl: str, format_: str) -> Sample:
    """Return a table that is described by the text of its columns instead of a file."""
    from crown.sql import load_schema

    loaded: Any = next(iter(load_schema(f"CREATE TABLE {quoted(table)} ({ddl})").tables.values()))
    columns = tuple((column.name, column.type) for column in loaded.columns)
    key = loaded.primary_key[0] if len(loaded.primary_key) == 1 else None
    return Sample(table=loaded.name, format=format_, columns=columns, key=key)


def _unreadable(path: Path, reason: str, hint: str) -> CrownError:
    return CrownError(f"{path} can't be used as a sample", code="CROWN-FILE", reason=reason, hint=hint)
