"""Schemas: tables with typed columns, keys and options, and views, from text, dicts, Arrow or Spark."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from crown.errors import SchemaError
from crown.ir.tables import Profile, TableColumn, Window
from crown.sql import typenames
from crown.sql.misspelt import nearest_type
from crown.sql.schema import arrow_and_spark
from crown.sql.schema.ddl import read_ddl
from crown.sql.schema.options import PROFILES
from crown.sql.schema.tables import ResultSchema, TableSchema, ViewSchema
from crown.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType, UnreadType, repeated_field
from crown.wording import with_article

_UNITS = {
    DATE: datetime.timedelta(days=1),
    TIMESTAMP: datetime.timedelta(microseconds=1),
    TIMESTAMP_NTZ: datetime.timedelta(microseconds=1),
}
_CASE = "SQL does not mind the case of names"


@dataclass(frozen=True)
class Schema:
    """Tables, views and maintained views by lower-case name."""

    tables: Mapping[str, TableSchema] = field(default_factory=dict)
    views: Mapping[str, ViewSchema] = field(default_factory=dict)
    results: Mapping[str, ResultSchema] = field(default_factory=dict)

    def with_options(self, profiles: Mapping[str, Any] | None, windows: Mapping[str, Any] | None) -> Schema:
        """Return the schema with profiles and windows given by table name."""
        tables = dict(self.tables)
        for given, options in (("profiles", profiles), ("windows", windows)):
            if options is not None and not isinstance(options, Mapping):
                raise SchemaError(f"{given} must be a dict of table names, not {options!r}", code="CROWN-SCHEMA-OPTION")
        for name, profile in (profiles or {}).items():
            tables[_known(tables, name)] = replace(tables[_known(tables, name)], profile=_profile(profile))
        for name, window in (windows or {}).items():
            key = _known(tables, name)
            tables[key] = replace(tables[key], window=_window(window, tables[key]))
        return replace(self, tables=tables)


# A Schema, DDL text, a path to it, or descriptions by table name: dicts, Arrow and Spark schemas.
SchemaLike: TypeAlias = Schema | str | PathLike[str] | Mapping[str, object]


def load_schema(schema: SchemaLike, *, dialect: str = "spark") -> Schema:
    """Return a `Schema` from CREATE TABLE text, the path of a file that holds it, or a mapping by table name.

    A mapping's values are ``{column: type}``, the same with ``primary_key``, ``not_null``, ``profile`` and
    ``window`` beside ``columns``, a pyarrow schema or a Spark ``StructType``.

    >>> load_schema({"g": {"src": "int64", "dst": "int64"}}).tables["g"].columns[0].type
    'int64'
    """
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, PathLike) or (isinstance(schema, str) and _is_path(schema)):
        schema = _read(Path(schema))
    if isinstance(schema, str):
        tables, views = read_ddl(schema, dialect)
        return Schema({t.name.lower(): t for t in tables}, {v.name.lower(): v for v in views})
    if isinstance(schema, Mapping):
        described = {}
        for name, value in schema.items():
            if str(name).lower() in described:
                raise SchemaError(f"table {name} is defined twice", code="CROWN-SCHEMA-DUPLICATE", hint=_CASE)
            described[str(name).lower()] = _table(str(name), value)
        return Schema(described, {})
    raise SchemaError(
        f"{with_article(type(schema).__name__)} is not a schema",
        code="CROWN-SCHEMA-KIND",
        hint="give CREATE TABLE text, the path of a .sql file, or a dict of tables, also with Arrow or Spark schemas",
    )


def _is_path(text: str) -> bool:
    return "\n" not in text and "(" not in text and text.strip().lower().endswith((".sql", ".ddl"))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"the schema file {path} can't be read: {error}", code="CROWN-SCHEMA-FILE") from error


def _table(name: str, value: Any) -> TableSchema:
    if isinstance(value, TableSchema):
        return value
    if not isinstance(value, Mapping):
        return TableSchema(name, _schema_columns(name, value))
    if "columns" not in value or isinstance(value["columns"], str):
        return TableSchema(name, _dict_columns(name, value))
    unknown = set(value) - {"columns", "primary_key", "not_null", "profile", "window"}
    if unknown:
        raise SchemaError(
            f"table {name} has an unknown option {sorted(map(str, unknown))[0]!r}",
            code="CROWN-SCHEMA-OPTION",
            hint="options are columns, primary_key, not_null, profile and window",
        )
    given = value["columns"]
    columns = _dict_columns(name, given) if isinstance(given, Mapping) else _schema_columns(name, given)
    key = _column_names(name, columns, "primary_key", value.get("primary_key"))
    for column in columns:
        if column.name in key and isinstance(column.type, UnreadType):
            raise _type_error(name, column.name, column.type.shown)
    not_null = {*key, *_column_names(name, columns, "not_null", value.get("not_null"))}
    columns = tuple(replace(c, nullable=c.nullable and c.name not in not_null) for c in columns)
    table = TableSchema(name, columns, primary_key=key)
    if value.get("profile") is not None:
        table = replace(table, profile=_profile(value["profile"]))
    if value.get("window") is not None:
        table = replace(table, window=_window(value["window"], table))
    return table


def _column_names(table: str, columns: tuple[TableColumn, ...], option: str, value: Any) -> tuple[str, ...]:
    """Return the columns that an option names, spelled as the table spells them."""
    if value is None:
        return ()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple | set | frozenset) or not all(isinstance(name, str) for name in names):
        raise SchemaError(
            f"{option} of table {table} must be a column name or a list of them, not {value!r}",
            code="CROWN-SCHEMA-OPTION",
        )
    spelled = {column.name.lower(): column.name for column in columns}
    unknown = next((name for name in names if name.lower() not in spelled), None)
    if unknown is not None:
        raise SchemaError(
            f"{option} of table {table} names {unknown}, which is not a column of it",
            code="CROWN-SCHEMA-KEY" if option == "primary_key" else "CROWN-SCHEMA-OPTION",
            hint=f"the columns are {', '.join(spelled.values())}",
        )
    return tuple(dict.fromkeys(spelled[name.lower()] for name in names))


def _dict_columns(name: str, columns: Mapping[Any, Any]) -> tuple[TableColumn, ...]:
    result = []
    for column, given in columns.items():
        text = str(given)
        nullable = True
        if text.lower().rstrip().endswith("not null"):
            text, nullable = text.rstrip()[: -len("not null")], False
        is_known = isinstance(given, DataType)
        type_ = given if is_known else arrow_and_spark.type_of_arrow(given) or typenames.from_name(text)
        is_type = arrow_and_spark.is_arrow_type(given) or (isinstance(given, str) and typenames.is_type(text))
        if type_ is None and not is_type:
            raise _type_error(name, str(column), text)
        result.append(TableColumn(str(column), type_ or UnreadType("null", text.strip()), nullable))
    return _checked(name, tuple(result))


def _schema_columns(name: str, value: Any) -> tuple[TableColumn, ...]:
    found = arrow_and_spark.columns(value)
    if found is None:
        raise SchemaError(
            f"{with_article(type(value).__name__)} does not describe table {name}",
            code="CROWN-SCHEMA-KIND",
            hint="give a dict {column: type}, a pyarrow schema or a Spark StructType",
        )
    columns = []
    for column, type_, nullable, text in found:
        columns.append(TableColumn(column, type_ or UnreadType("null", text.strip()), nullable))
    return _checked(name, tuple(columns))


def _checked(name: str, columns: tuple[TableColumn, ...]) -> tuple[TableColumn, ...]:
    seen: set[str] = set()
    for column in columns:
        if column.name.lower() in seen:
            raise SchemaError(f"table {name} has two columns called {column.name}", code="CROWN-SCHEMA-DUPLICATE")
        seen.add(column.name.lower())
        if (twice := repeated_field(column.type)) is not None:
            raise SchemaError(
                f"column {name}.{column.name} has a struct with two fields {twice}", code="CROWN-SCHEMA-DUPLICATE"
            )
    if not columns:
        raise SchemaError(f"table {name} has no columns", code="CROWN-SCHEMA-EMPTY")
    return columns


def _type_error(table: str, column: str, text: str) -> SchemaError:
    return SchemaError(
        f"column {table}.{column} has type {text.strip()!r}, which is not supported",
        code="CROWN-SCHEMA-TYPE",
        hint=nearest_type(text.strip()),
    )


def _known(tables: Mapping[str, TableSchema], name: str) -> str:
    if not isinstance(name, str) or name.lower() not in tables:
        raise SchemaError(f"there is no table {name}", code="CROWN-SCHEMA-OPTION")
    return name.lower()


def _profile(value: Any) -> Profile:
    if str(value).lower() not in PROFILES:
        raise SchemaError(
            f"unknown update profile {value!r}", code="CROWN-SCHEMA-OPTION", hint=f"one of {', '.join(PROFILES)}"
        )
    return PROFILES[str(value).lower()]


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63


def _window(value: Any, table: TableSchema) -> Window:
    """A Window, a number of rows, or a dict with `rows` or with `interval` (a number or timedelta) and `column`."""
    if isinstance(value, Window):
        window = value
    elif isinstance(value, int) and not isinstance(value, bool):
        window = Window(rows=value)
    elif isinstance(value, Mapping) and set(value) <= {"rows", "interval", "column"}:
        interval = value.get("interval")
        if isinstance(interval, datetime.timedelta):
            column = table.column(str(value.get("column")))
            unit = _UNITS.get(column.type) if column is not None else None
            # A date can't represent a part of a day, and an integer is not a time.
            interval = interval // unit if unit is not None and not interval % unit else None
        window = Window(rows=value.get("rows"), interval=interval, column=value.get("column"))
    else:
        window = Window()
    bound = table.column(window.column) if isinstance(window.column, str) else None
    ordered = bound is not None and (bound.type.is_integer or bound.type.is_temporal)
    if _is_number(window.rows) and window.interval is None and window.column is None:
        return Window(rows=window.rows)
    if window.rows is None and _is_number(window.interval) and bound and ordered:
        return replace(window, column=bound.name)
    raise SchemaError(
        f"the window {value!r} of table {table.name} is not understood",
        code="CROWN-SCHEMA-OPTION",
        hint="give a number of rows, or {'interval': timedelta or number, 'column': a date, timestamp or integer}",
    )
