"""What can be known of a pipeline before Spark starts: the plan, and whether its surroundings are there. Nothing is
written, no connection is made.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet

from crown.changes import CHANGE_TYPE, MULTIPLICITY
from crown.errors import CrownError
from crown.ir.plan import Plan
from crown.ir.query import Query
from crown.ir.serial import encode
from crown.plan import Explanation, explain, plan, plan_with_report
from crown.spark.flow.canonical import canonical
from crown.spark.flow.identity import digest
from crown.spark.pipeline.connectors import has_connector, local_jars
from crown.spark.pipeline.description import PipelineDescription, TableSource
from crown.spark.pipeline.formats import CONNECTORS, FILES, KNOWN_SINKS, KNOWN_SOURCES
from crown.spark.pipeline.reading import FileKey, closest
from crown.sql import load_schema, parse

_MARKS = (CHANGE_TYPE, MULTIPLICITY)
_DELIVERY = {
    "materialized": "exactly once: a batch that Spark repeats changes nothing",
    "postgres": "exactly once: each batch is one transaction, recorded by its number",
    "kafka": "at least once: a batch that Spark repeats is sent again; drop repeats by _batch and _position",
    **dict.fromkeys((*FILES, "text", "delta"), "exactly once: Spark records the files of each batch"),
}


@dataclass(frozen=True)
class Check:
    """`explanation` is None where the schema of a table (`unknown`) is known only to Spark."""

    delivery: str
    unknown: str | None
    unread: tuple[str, ...]  # tables that the query doesn't read
    explanation: Explanation | None = None
    view: str | None = None  # tells the query from another, whatever names it gives to things


def check(pipeline: PipelineDescription) -> Check:
    """Raise a CrownError for what can't work; return what the pipeline will do."""
    place = FileKey(pipeline.file)
    for table in pipeline.tables:
        _check_source(table, pipeline, place.at(f"tables.{table.name}"))
    _check_sink(pipeline, place.at("sink"))
    _check_directory(pipeline.checkpoint, place.at("checkpoint"))
    if pipeline.rejects is not None:
        _check_directory(pipeline.rejects, place.at("rejects"))
    _check_apart(pipeline, place)
    for jar in local_jars(pipeline.spark):
        if not Path(jar).exists():
            raise place.at("spark.spark.jars").fault(f"names {jar}, which does not exist", code="PATH")
    delivery = _DELIVERY.get(pipeline.sink.format, "depends on the sink: Spark may repeat a batch after a failure")
    schema = {table.name: described(table, place) for table in pipeline.tables}
    unknown = next((name for name, value in schema.items() if value is None), None)
    if unknown is not None:
        return Check(delivery, unknown, ())
    query = _parsed(pipeline, schema, place)
    explanation = explain(*plan_with_report(query, cells=pipeline.cells))
    view = digest(encode(replace(canonical(query), sql="")))
    read = {table.name.lower() for table in explanation.plan.tables}
    unread = tuple(table.name for table in pipeline.tables if table.name.lower() not in read)
    _check_key(pipeline, explanation.plan, place.at("sink.key"))
    return Check(delivery, None, unread, explanation, view)


def described(table: TableSource, place: FileKey) -> dict[str, Any] | None:
    """What the SQL layer must know of a table; None where only Spark can tell."""
    place = place.at(f"tables.{table.name}")
    columns: Any = None
    not_null: list[str] = []
    if table.schema is not None:
        found = _declared(table.schema, place.at("schema"))
        columns = {column.name: column.type for column in found.columns if column.name not in _MARKS}
        not_null = [column.name for column in found.columns if not column.nullable]
    elif table.format == "parquet":
        columns = _parquet_schema(table.path)
    if columns is None:
        return None
    return {
        "columns": columns,
        "not_null": not_null,
        "primary_key": table.key,
        "profile": table.profile or ("static" if table.static else "arbitrary"),
        "window": table.window,
    }


def _declared(ddl: str, place: FileKey) -> Any:
    try:
        (table,) = load_schema(f"CREATE TABLE t ({ddl})").tables.values()
    except CrownError as error:
        hint = error.hint or 'columns and their types: "id BIGINT, name STRING"'
        raise place.fault(f"is {ddl!r}: {error.message}", code="SCHEMA", hint=hint) from error
    if table.primary_key:
        raise place.fault("names a PRIMARY KEY", code="SCHEMA", hint=f"write key = {list(table.primary_key)} instead")
    return table


def _parquet_schema(path: str | None) -> Any:
    """Return the columns of a static table's files, where they can be read without Spark."""
    found = _files(path or "", ".parquet")
    return pyarrow.parquet.read_schema(found[0]) if found else None


def _files(path: str, ending: str) -> list[str]:
    local = Path(_local(path) or "")
    return sorted(map(str, local.rglob(f"*{ending}"))) if local.is_dir() else [str(local)] if local.is_file() else []


def _parsed(pipeline: PipelineDescription, schema: Mapping[str, Any], place: FileKey) -> Query:
    """Return the query, which can be planned."""
    loaded: dict[str, Any] = {}
    for name, value in schema.items():
        try:
            loaded.update(load_schema({name: value}).tables)
        except CrownError as error:
            raise place.at(f"tables.{name}").fault(
                f"can't be used: {error.message}", code="TABLE", hint=error.hint
            ) from error
    try:
        query = parse(pipeline.query, load_schema(loaded))
        plan(query)
        return query
    except CrownError as error:
        raise type(error)(
            f"{place.file}: the query can't be used: {error.message}",
            code=error.code,
            sql=error.sql,
            position=error.position,
            reason=error.reason,
            hint=error.hint,
        ) from error


def _check_source(table: TableSource, pipeline: PipelineDescription, place: FileKey) -> None:
    wanted = "kafka" if table.format == "debezium" and table.path is None else table.format
    _check_format(wanted, KNOWN_SOURCES, pipeline, place)
    if table.path is not None:
        path = _local(table.path)
        if path is not None and not glob.has_magic(path) and not _exists(Path(path), place.at("path")):
            raise place.at("path").fault(f"is {table.path}, which does not exist", code="PATH", hint="create it first")


def _check_sink(pipeline: PipelineDescription, place: FileKey) -> None:
    sink = pipeline.sink
    _check_format(sink.format, KNOWN_SINKS, pipeline, place)
    if sink.format == "postgres" and find_spec("psycopg") is None:
        raise place.at("format").fault(
            "is 'postgres', which needs psycopg", code="CONNECTOR", hint="pip install 'crown-ivm[postgres]'"
        )
    if sink.path is not None:
        _check_directory(sink.path, place.at("path"))


def _check_apart(pipeline: PipelineDescription, place: FileKey) -> None:
    """What the pipeline writes must not be read by it again, nor mixed with something else that it writes."""
    written = {"sink.path": pipeline.sink.path, "checkpoint": pipeline.checkpoint, "rejects": pipeline.rejects}
    read = {f"tables.{table.name}.path": table.path for table in pipeline.tables}
    given = [(name, path) for name, path in written.items() if path is not None]
    for position, (name, path) in enumerate(given):
        for other, directory in [*read.items(), *given[position + 1 :]]:
            if directory == path:
                raise place.at(name).fault(f"is also the path of {other}", code="PATH", hint="use different paths")
        for other, directory in read.items():
            if directory is not None and _is_read_from(directory, path):
                raise place.at(name).fault(
                    f"is inside the path of {other}",
                    code="PATH",
                    reason="the stream would read what it writes there",
                    hint="use directories beside each other",
                )


def _is_read_from(directory: str, path: str) -> bool:
    """Return whether Spark, reading a directory, finds what is in `path`: it skips names with a dot or underscore."""
    root = directory.rstrip("/") + "/"
    return path.startswith(root) and not any(part[:1] in ("_", ".") for part in path[len(root) :].split("/"))


def _check_format(format_: str, known: tuple[str, ...], pipeline: PipelineDescription, place: FileKey) -> None:
    if format_ in CONNECTORS:
        artifact = CONNECTORS[format_]
        if not has_connector(artifact, pipeline.spark):
            raise place.at("format").fault(
                f"is {format_!r}, but Spark's connector for it is not installed",
                code="CONNECTOR",
                reason=f"there is no jar {artifact} among PySpark's jars or in the settings of [spark]",
                hint=f'name it in [spark]: "spark.jars.packages" with the coordinates of {artifact}, or "spark.jars" '
                "with its file",
            )
    # A class, or what jars of the user's own add, is Spark's to find.
    elif format_ not in known and "." not in format_ and not any("jars" in name for name in pipeline.spark):
        hint = closest(format_, known) + f"formats are {', '.join(known)}"
        raise place.at("format").fault(f"is {format_!r}, which is unknown", hint=hint)


def _check_directory(path: str, place: FileKey) -> None:
    local = _local(path)
    if local is None:
        return
    existing = next((p for p in (Path(local), *Path(local).parents) if _exists(p, place)), None)
    if existing is not None and not existing.is_dir():
        raise place.fault(f"is {path}, but {existing} is a file", code="PATH", hint="name a directory")


def _exists(path: Path, place: FileKey) -> bool:
    try:
        return path.exists()
    except OSError as error:  # a name that is too long, a directory that may not be read
        raise place.fault(f"is {str(path)[:200]}, which can't be used: {error.strerror}", code="PATH") from error


def _check_key(pipeline: PipelineDescription, planned: Plan, place: FileKey) -> None:
    names = [column.name for column in planned.columns]
    for column in pipeline.sink.key:
        if column not in names:
            hint = closest(column, names) + f"the query has the columns {', '.join(names)}"
            raise place.fault(f"names {column!r}, which is not a column of the query", hint=hint)


def _local(path: str) -> str | None:
    """Return the path on this machine; None for one elsewhere."""
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    return None if "://" in path else path
