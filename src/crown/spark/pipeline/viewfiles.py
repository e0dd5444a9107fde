"""`[views.NAME]`, or a folder of `.sql` files: several views in a pipeline's file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crown.spark.pipeline.description import PipelineView, Sink
from crown.spark.pipeline.filekey import FileKey, closest
from crown.spark.pipeline.formats import WITH_A_TARGET
from crown.spark.pipeline.sinks import VIEW, read_sink
from crown.spark.pipeline.values import OptionReader, read_mapping, read_names, read_options, read_sql_file, read_text

_JINJA = re.compile(r"\{\{|\{%")
# dbt compiles tests into folders that are named after the file that declares them.
_DECLARATIONS = (".yml", ".yaml")
_NOT_IN_A_NAME = re.compile(r"[/\\\0`\"]")


def read_views(value: Any, sink: Mapping[str, Any] | None, base: Path, place: FileKey) -> tuple[PipelineView, ...]:
    """Return the views of the key `views`, each with its own sink or with `sink`, that of all."""
    queries = _in_folder(value, base, place) if isinstance(value, str) else _in_tables(value, base, place)
    own = _own_sinks(value, base, place)
    shared = _SharedSink(sink, base, FileKey(place.file, "sink"), [name for name, _, _ in queries])
    chosen = [name for name, _, _ in queries if name not in own and shared.serves(name)]
    shared.check_apart(chosen)
    views = tuple(
        PipelineView(name, sql, own.get(name) or (shared.of(name) if name in chosen else None), key)
        for name, sql, key in queries
    )
    if all(view.sink is None for view in views):
        hint = f'give all views one, [sink] with a place for the name: path = "out/{VIEW}"; or write [views.NAME.sink]'
        raise FileKey(place.file).missing("sink", hint)
    return views


def _in_tables(value: Any, base: Path, place: FileKey) -> list[tuple[str, str, str]]:
    """Return name, query and place of each view."""
    if not isinstance(value, dict) or not value:
        raise place.fault(f"is {value!r}", hint="write [views.NAME] with a query, or name a folder of .sql files")
    found: dict[str, tuple[str, str, str]] = {}
    for name, view in value.items():
        key = place.at(name)
        _check_name(name, key)
        if name.lower() in found:
            raise key.fault("is defined twice", hint="names of views are not case-sensitive")
        options = read_options(read_mapping(view, key), _VIEW, key)
        if ("query" in options) == ("file" in options):
            raise key.missing("query", 'give either query = "SELECT ..." or file = "name.sql"')
        if "query" in options:
            found[name.lower()] = name, options["query"], f"{key.key}.query"
        else:
            given = options["file"]
            sql = _uncompiled(read_sql_file(base / given, given, key.at("file")), key.at("file"), given)
            found[name.lower()] = name, sql, f"{key.key}.file ({given})"
    return list(found.values())


def _in_folder(given: str, base: Path, place: FileKey) -> list[tuple[str, str, str]]:
    """Return a view for each `.sql` file of a folder and those in it: its name is that of the file."""
    folder = base / read_text(given, place)
    if not folder.is_dir():
        raise place.fault(f"is {given!r}, which is not a folder", code="PATH", hint="name a folder of .sql files")
    found: dict[str, tuple[str, str, str]] = {}
    for path in _sql_files(folder):
        shown = str(Path(given) / path.relative_to(folder))
        _check_name(path.stem, place)
        if (other := found.get(path.stem.lower())) is not None:
            raise place.fault(
                f"has two files of one name, {other[2]} and {shown}",
                code="PATH",
                reason="a file's name is that of its view",
                hint="rename one of them",
            )
        text = _uncompiled(read_sql_file(path, shown, place), place, shown)
        if not text.strip():
            raise place.fault(f"has {shown}, which is empty", code="FILE", hint="write a query, or remove the file")
        found[path.stem.lower()] = path.stem, text, shown
    if not found:
        raise place.fault(f"is {given!r}, a folder without .sql files", code="PATH")
    return list(found.values())


def _sql_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.sql")):
        inside = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") or part.endswith(_DECLARATIONS) for part in inside):
            yield path


def _uncompiled(text: str, place: FileKey, shown: str) -> str:
    if _JINJA.search(text):
        raise place.fault(
            f"has {shown}, a template",
            code="FILE",
            reason="{{ ... }} is for dbt to fill in",
            hint="run dbt compile, and name the folder of the compiled models, in target/compiled",
        )
    return text


def _check_name(name: str, place: FileKey) -> None:
    if not name.strip() or _NOT_IN_A_NAME.search(name):
        raise place.fault(f"names a view {name!r}", hint="use letters, digits and underscores")


def _own_sinks(value: Any, base: Path, place: FileKey) -> dict[str, Sink]:
    if isinstance(value, str):
        return {}
    return {
        name: read_sink(view["sink"], base, place.at(name).at("sink"), view=name)
        for name, view in value.items()
        if "sink" in view
    }


class _SharedSink:
    """`[sink]` beside `views`: the sink of views that don't have their own, or of those in its list `views`."""

    def __init__(self, value: Mapping[str, Any] | None, base: Path, place: FileKey, names: list[str]) -> None:
        self._options = None if value is None else {name: option for name, option in value.items() if name != "views"}
        self._base, self._place = base, place
        self._only = self._listed(value, names)

    def _listed(self, value: Mapping[str, Any] | None, names: list[str]) -> set[str] | None:
        if value is None or "views" not in value:
            return None
        place = self._place.at("views")
        listed = read_names(value["views"], place)
        known = {name.lower(): name for name in names}
        for name in listed:
            if name.lower() not in known:
                hint = closest(name, names) + f"the views are {', '.join(names)}"
                raise place.fault(f"names {name!r}, which is not a view", hint=hint)
        return {known[name.lower()] for name in listed}

    def serves(self, name: str) -> bool:
        return self._options is not None and (self._only is None or name in self._only)

    def of(self, name: str) -> Sink:
        return read_sink(self._options, self._base, self._place, view=name)

    def check_apart(self, names: list[str]) -> None:
        """Reject a target that is used by several views."""
        if len(names) < 2 or self._options is None:
            return
        sink = read_sink(self._options, self._base, self._place)
        texts = [sink.path, sink.table, sink.topic, sink.connection, *sink.options.values()]
        if sink.format in WITH_A_TARGET and not any(VIEW in text for text in texts if text is not None):
            option = next((o for o in ("path", "table", "topic") if o in self._options), "path")
            raise self._place.at(option).fault(
                f"is the same for {len(names)} views: {', '.join(names)}",
                hint=f'put {VIEW} where the name belongs: {option} = "{self._options.get(option, "out")}-{VIEW}"',
            )


_VIEW: Mapping[str, OptionReader] = {"query": read_text, "file": read_text, "sink": read_mapping}
