"""Check a pipeline before Spark starts: plan it, and check that its environment exists. Nothing is written, no
connection is made.
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
from crown.ir.serial import encode
from crown.plan import Explanation, explain, plan_with_report
from crown.spark.checkpoint.canonical import canonical
from crown.spark.checkpoint.identity import digest
from crown.spark.flow.plan_views import plan_views, told
from crown.spark.pipeline.connectors import has_connector, local_jars
from crown.spark.pipeline.description import PipelineDescription, Sink, TableSource
from crown.spark.pipeline.filekey import FileKey, closest
from crown.spark.pipeline.formats import CONNECTORS, FILES, KNOWN_SINKS, KNOWN_SOURCES
from crown.spark.required import check_settings, recommended
from crown.sql import load_schema, parse
from crown.sql.schema.schema import Schema
from crown.sql.statements import names_of

_MARKS = (CHANGE_TYPE, MULTIPLICITY)
_DELIVERY = {
    "materialized": "exactly once: a batch that Spark repeats changes nothing",
    "postgres": "exactly once: each batch is one transaction, recorded by its number",
    "kafka": "at least once: a batch that Spark repeats is sent again; drop repeats by _batch and _position",
    **dict.fromkeys((*FILES, "text", "delta"), "exactly once: Spark records the files of each batch"),
}


@dataclass(frozen=True)
class CheckedView:
    """A view that has a sink. `explanation` is None where only Spark knows the schema of a table."""

    name: str
    delivery: str
    explanation: Explanation | None = None


@dataclass(frozen=True)
class Check:
    """`unknown` is a table whose schema only Spark knows: nothing is planned then."""

    views: tuple[CheckedView, ...]
    unknown: str | None
    unread: tuple[str, ...] = ()  # tables that no query reads
    plan: Plan | None = None  # of one query, or of all views
    meaning: str | None = None  # identifies the queries, regardless of the names in them

    @property
    def explanations(self) -> list[Explanation]:
        return [view.explanation for view in self.views if view.explanation is not None]


def check(pipeline: PipelineDescription) -> Check:
    """Raise a CrownError if the pipeline can't work; return what it will do."""
    place = FileKey(pipeline.file)
    for table in pipeline.tables:
        _check_source(table, pipeline, place.at(f"tables.{table.name}"))
    for sink in pipeline.written.values():
        _check_sink(sink, pipeline, place.at(sink.place))
    _check_directory(pipeline.checkpoint, place.at("checkpoint"))
    if pipeline.rejects is not None:
        _check_directory(pipeline.rejects, place.at("rejects"))
    _check_apart(pipeline, place)
    _check_targets(pipeline, place)
    _check_names(pipeline, place)
    for jar in local_jars(pipeline.spark):
        if not Path(jar).exists():
            raise place.at("spark.spark.jars").fault(f"names {jar}, which does not exist", code="PATH")
    delivery = {name: _delivery(sink, pipeline) for name, sink in pipeline.written.items()}
    schema = {table.name: described(table, place) for table in pipeline.tables}
    unknown = next((name for name, value in schema.items() if value is None), None)
    if unknown is not None:
        return Check(tuple(CheckedView(name, told) for name, told in delivery.items()), unknown)
    loaded = _loaded(schema, place)
    plan, explanations, meaning = (_one if pipeline.alone else _several)(pipeline, loaded, place)
    views = tuple(CheckedView(name, told, explanations[name]) for name, told in delivery.items())
    read = {table.name.lower() for table in plan.tables}
    unread = tuple(table.name for table in pipeline.tables if table.name.lower() not in read)
    for name, sink in pipeline.written.items():
        _check_key(sink, explanations[name].plan, place.at(f"{sink.place}.key"))
    with told(f"{place.file}: [spark]"):
        check_settings({**recommended(pipeline.cells), **pipeline.spark}.get, plan)
    return Check(views, None, unread, plan, meaning)


def _delivery(sink: Sink, pipeline: PipelineDescription) -> str:
    told = _DELIVERY.get(sink.format, "depends on the sink: Spark may repeat a batch after a failure")
    if not pipeline.alone and sink.format not in ("materialized", "postgres"):
        told = _DELIVERY["kafka"].replace("sent", "written") if sink.format != "kafka" else _DELIVERY["kafka"]
    return told


def _one(pipeline: PipelineDescription, schema: Schema, place: FileKey) -> tuple[Plan, Mapping[str, Explanation], str]:
    """Return the plan of the pipeline's one query, its explanation by name, and its meaning."""
    (view,) = pipeline.views
    with told(f"{place.file}: the query"):
        query = parse(view.query, schema, dialect=pipeline.dialect)
        explanation = explain(*plan_with_report(query, cells=pipeline.cells))
    meaning = digest(encode(replace(canonical(query), sql="")))
    return explanation.plan, {view.name: explanation}, meaning


def _several(
    pipeline: PipelineDescription, schema: Schema, place: FileKey
) -> tuple[Plan, Mapping[str, Explanation], str]:
    """Return the plan of all views, the explanation of each by name, and their meaning."""
    keys = {view.name: view.key for view in pipeline.views}
    project = plan_views(
        pipeline.maintained,
        schema,
        names=pipeline.names,
        cells=pipeline.cells,
        dialect=pipeline.dialect,
        where=lambda name: f"{place.file}: {keys[name]}",
    )
    _check_read(pipeline, place)
    explanations = {view.name: explain(view.plan, view.report) for view in project.views}
    views = sorted(project.views, key=lambda view: view.name)
    columns = {view.name: [column.name for column in view.plan.columns] for view in views}
    meaning = digest([[v.name, columns[v.name], encode(replace(canonical(v.query), sql=""))] for v in views])
    return project.plan, explanations, meaning


def _check_read(pipeline: PipelineDescription, place: FileKey) -> None:
    """Reject a view that has no effect: one without a sink that no other view reads."""
    read = {name.lower() for view in pipeline.views for name in names_of(view.query, dialect=pipeline.dialect)}
    for view in pipeline.views:
        if view.sink is None and view.name.lower() not in read:
            raise place.at(view.key).fault(
                f"is a view, {view.name}, without a sink, and no other view reads it",
                hint=f"give it one, or name it in [sink]: views = [..., {view.name!r}]",
            )


def _check_names(pipeline: PipelineDescription, place: FileKey) -> None:
    tables = {table.name.lower() for table in pipeline.tables}
    for view in pipeline.views:
        if not pipeline.alone and view.name.lower() in tables:
            raise place.at(view.key).fault(
                f"is the view {view.name}, but there is a table of that name: tables.{view.name}",
                reason="queries read both by their name",
                hint="give one of them another name",
            )


def described(table: TableSource, place: FileKey) -> dict[str, Any] | None:
    """The definition of a table for the SQL layer; None if only Spark knows it."""
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


def _loaded(schema: Mapping[str, Any], place: FileKey) -> Schema:
    loaded: dict[str, Any] = {}
    for name, value in schema.items():
        try:
            loaded.update(load_schema({name: value}).tables)
        except CrownError as error:
            raise place.at(f"tables.{name}").fault(
                f"can't be used: {error.message}", code="TABLE", hint=error.hint
            ) from error
    return load_schema(loaded)


def _check_source(table: TableSource, pipeline: PipelineDescription, place: FileKey) -> None:
    wanted = "kafka" if table.format == "debezium" and table.path is None else table.format
    _check_format(wanted, KNOWN_SOURCES, pipeline, place)
    if table.path is not None:
        path = _local(table.path)
        if path is not None and not glob.has_magic(path) and not _exists(Path(path), place.at("path")):
            raise place.at("path").fault(f"is {table.path}, which does not exist", code="PATH", hint="create it first")


def _check_sink(sink: Sink, pipeline: PipelineDescription, place: FileKey) -> None:
    _check_format(sink.format, KNOWN_SINKS, pipeline, place)
    if sink.format == "postgres" and find_spec("psycopg") is None:
        raise place.at("format").fault(
            "is 'postgres', which needs psycopg", code="CONNECTOR", hint="pip install 'crown-ivm[postgres]'"
        )
    if sink.format == "memory" and not pipeline.alone:
        raise place.at("format").fault("is 'memory', which holds one view", hint="use console, or another sink")
    if sink.path is not None:
        _check_directory(sink.path, place.at("path"))


def _check_apart(pipeline: PipelineDescription, place: FileKey) -> None:
    """Check that the pipeline does not read its own outputs, and that no two outputs overlap."""
    sinks = [(f"{sink.place}.path", sink.path) for sink in pipeline.written.values()]
    written = [*sinks, ("checkpoint", pipeline.checkpoint), ("rejects", pipeline.rejects)]
    read = {f"tables.{table.name}.path": table.path for table in pipeline.tables}
    given = [(name, path) for name, path in written if path is not None]
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


def _check_targets(pipeline: PipelineDescription, place: FileKey) -> None:
    """Two views must not be written to one table or topic, nor one inside the directory of the other."""
    seen: dict[tuple[str | None, ...], str] = {}
    for name, sink in pipeline.written.items():
        target = (sink.connection, sink.table) if sink.format == "postgres" else (sink.servers, sink.topic)
        if target[1] is not None and (other := seen.setdefault(target, name)) != name:
            raise place.at(sink.place).fault(
                f"is {target[1]!r}, the target of view {other}, also for view {name}", hint="use different targets"
            )
    for name, sink in pipeline.written.items():
        for other, outer in pipeline.written.items():
            if sink.path is not None and outer.path is not None and sink.path.startswith(outer.path.rstrip("/") + "/"):
                raise place.at(f"{sink.place}.path").fault(
                    f"of view {name} is inside that of view {other}",
                    code="PATH",
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
    # A class name, or a format from the user's jars, is resolved by Spark.
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


def _check_key(sink: Sink, planned: Plan, place: FileKey) -> None:
    names = [column.name for column in planned.columns]
    for column in sink.key:
        if column not in names:
            hint = closest(column, names) + f"the query has the columns {', '.join(names)}"
            raise place.fault(f"names {column!r}, which is not a column of the query", hint=hint)


def _local(path: str) -> str | None:
    """Return the path on this machine; None for one elsewhere."""
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    return None if "://" in path else path
