"""`crown init`: a folder with a pipeline that runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crown.cli.inputs import write_text
from crown.errors import CrownError
from crown.wording import counted

if TYPE_CHECKING:
    from crown.cli.samples import Sample

_SINKS = ("materialized", "parquet", "console")


def init(
    folder: Annotated[Path, typer.Argument(help="Folder to create.")],
    sample: Annotated[
        list[Path] | None,
        typer.Option(
            help="CSV, JSON or Parquet file with rows of a table; once for each table. Without it, you are asked."
        ),
    ] = None,
    query: Annotated[str | None, typer.Option(help="The query; by default a first guess from the columns.")] = None,
    sink: Annotated[str, typer.Option(help=f"Where the result goes: {', '.join(_SINKS)}.")] = _SINKS[0],
) -> None:
    """Create a pipeline for `crown run`: schema, query, settings, and your sample as the first changes."""
    from crown.cli.samples import first_query, read_sample
    from crown.spark.pipeline import Pipeline

    _check(folder, sink)
    if sample:
        samples = _distinct([read_sample(path) for path in sample])
    else:
        samples = _ask_for_tables()
        query = query or _ask_for_query(samples)
        sink = _ask_for_one("Where the result goes", _SINKS)
    query = _planned(query or first_query(samples), samples)  # raises before anything is written
    _write(folder, samples, query, sink)
    Pipeline.read(folder / "pipeline.toml").check()
    _report(folder, samples)


def _check(folder: Path, sink: str) -> None:
    if sink not in _SINKS:
        raise CrownError(f"--sink {sink} is unknown", code="CROWN-ARGUMENT", hint=f"use {', '.join(_SINKS)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CrownError(f"{folder} exists already", code="CROWN-FILE", hint="name a new or empty folder")


def _distinct(samples: list[Sample]) -> list[Sample]:
    names = [sample.table for sample in samples]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise CrownError(
            f"two samples are named {twice}",
            code="CROWN-ARGUMENT",
            reason="a file's name is that of its table",
            hint="rename one of them",
        )
    return samples


def _ask_for_tables() -> list[Sample]:
    from crown.cli.samples import FORMATS, described, read_sample

    samples: list[Sample] = []
    while path := typer.prompt(
        f"{'Another data file' if samples else 'Data file, CSV, JSON or Parquet'} (press Enter if there is none)",
        default="",
        show_default=False,
    ):
        with _asking_again():
            samples = _distinct([*samples, read_sample(Path(path).expanduser())])
    while not samples:
        table = typer.prompt("Name of a table", default="events")
        columns = typer.prompt("Its columns", default="id BIGINT, name STRING")
        format_ = _ask_for_one("Format of its files", tuple(dict.fromkeys(FORMATS.values())))
        with _asking_again():
            samples.append(described(table, columns, format_))
    return samples


def _ask_for_query(samples: list[Sample]) -> str:
    from crown.cli.samples import first_query

    while True:
        query: str = typer.prompt("Query", default=" ".join(first_query(samples).split()))
        with _asking_again():
            return _planned(query, samples)


@contextmanager
def _asking_again() -> Iterator[None]:
    """Show what is wrong with an answer; the question is then repeated."""
    try:
        yield
    except CrownError as error:
        typer.echo(str(error), err=True)


def _planned(query: str, samples: list[Sample]) -> str:
    """Return the query without a semicolon, if Crown can maintain it."""
    from crown.plan import plan
    from crown.sql import parse

    query = query.strip().rstrip(";")
    plan(parse(query, _schema(samples)))
    return query


def _ask_for_one(question: str, choices: Sequence[str]) -> str:
    while True:
        answer: str = typer.prompt(f"{question} ({', '.join(choices)})", default=choices[0])
        if answer in choices:
            return answer
        typer.echo(f"{answer} is not one of them", err=True)


def _write(folder: Path, samples: list[Sample], query: str, sink: str) -> None:
    for table in samples:
        changes = folder / "changes" / table.table
        changes.mkdir(parents=True, exist_ok=True)
        if table.file is not None:
            shutil.copy(table.file, changes / table.file.name)
    write_text(folder / "query.sql", query + "\n")
    write_text(folder / "schema.sql", _schema(samples))
    write_text(folder / "pipeline.toml", _pipeline(folder.resolve().name, samples, sink))


def _schema(samples: list[Sample]) -> str:
    return "".join(f"CREATE TABLE {table.table} ({table.ddl});\n" for table in samples)


def _pipeline(name: str, samples: list[Sample], sink: str) -> str:
    lines = [
        "# crown run --check pipeline.toml   shows the plan, its guarantees and the memory it needs",
        "# crown run pipeline.toml           runs it; new files in changes/ are read as they appear",
        f"name = {json.dumps(name, ensure_ascii=False)}",
        'query_file = "query.sql"          # for several views: views = "models", a folder of .sql files',
        'checkpoint = "checkpoint"',
        'master = "local[2]"',
        'trigger = "1 second"              # "available": process what is there, then stop',
        'on_invalid = "quarantine"         # or "raise": stop at the first change that does not fit',
        'rejects = "rejects"',
    ]
    for table in samples:
        ddl = f"{table.ddl}, _change_type STRING" if table.marked and table.format == "csv" else table.ddl
        lines += [
            "",
            f"[tables.{table.table}]",
            f"format = {json.dumps(table.format)}",
            f"path = {json.dumps(f'changes/{table.table}')}",
            f"schema = {json.dumps(ddl, ensure_ascii=False)}",
        ]
        if table.options:
            lines.append(
                f"options = {{ {', '.join(f'{name} = {json.dumps(value)}' for name, value in table.options)} }}"
            )
        if table.key is not None:
            key = json.dumps(table.key, ensure_ascii=False)
            lines.append(f"# key = [{key}]   # if set, a new row for a key replaces the old one")
        lines.append("# rows = 1_000_000   # how many you expect, for the memory estimate of --check")
    lines += ["", "[sink]", f"format = {json.dumps(sink)}"]
    if sink != "console":
        lines.append(f'path = "{"table" if sink == "materialized" else "deltas"}"')
    return "\n".join(lines) + "\n"


def _report(folder: Path, samples: list[Sample]) -> None:
    for table in samples:
        source = f"{counted(table.rows, 'row')} from {table.file}" if table.file is not None else "no rows yet"
        typer.echo(f"table {table.table}: {counted(len(table.columns), 'column')}, {source}")
        for column in table.left_out:
            typer.echo(f"  left out: {column}")
    typer.echo(f"{folder / 'pipeline.toml'} can run. Next:")
    typer.echo(f"  crown run --check {folder / 'pipeline.toml'}     # plan, guarantees, memory")
    typer.echo(f"  crown run --console {folder / 'pipeline.toml'}   # run it, and show it in a browser")
