"""The catalog of a database: its tables and views and their common plan, without rows or an engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from crown.errors import CrownError, PlanError, SchemaError
from crown.ir.functions import Declared
from crown.ir.plan import Plan
from crown.ir.tables import CLOCK, Table
from crown.plan import plan_with_report
from crown.plan.combine_views import (
    add_view,
    drop_view,
    empty_project,
    keeps,
    sources,
    view_plan,
    with_kept_tables,
    without_spare_tables,
)
from crown.plan.explain.report import Report
from crown.sql import parse
from crown.sql.schema.schema import Schema
from crown.sql.schema.tables import ResultSchema
from crown.sql.statements import (
    CreateMaterializedView,
    CreateTable,
    CreateView,
    DropView,
    Statement,
    names_in,
    names_of,
)
from crown.wording import counted

Keep = Literal["read", "all"]


@dataclass(frozen=True)
class CatalogView:
    """A maintained view: its standalone plan, and the stages of the project that its stages map to."""

    name: str
    text: str
    plan: Plan
    report: Report
    places: Mapping[str, str]
    reads: tuple[str, ...]  # other maintained views

    @property
    def stages(self) -> frozenset[str]:
        return frozenset(self.places.values())


@dataclass
class Catalog:
    """Tables, names for queries, and maintained views. Keys of mappings are in lower case.

    `texts` holds the text of the CREATE VIEW statements, `given` the tables that have ever received rows.
    """

    schema: Schema
    keep: Keep
    threads: int
    dialect: str
    functions: Mapping[str, Declared] = field(default_factory=dict)
    project: Plan = field(default_factory=empty_project)
    views: dict[str, CatalogView] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)

    def copy(self) -> Catalog:
        return replace(self, views=dict(self.views), texts=dict(self.texts), given=set(self.given))

    def take(self, statement: Statement) -> tuple[Plan, ...]:
        """Execute a statement; return the projects that a running engine must switch to, in order."""
        match statement:
            case CreateTable(table):
                self._check_free(table.name)
                self.schema = replace(self.schema, tables={**self.schema.tables, table.name.lower(): table})
            case CreateView(view, text):
                self._check_free(view.name)
                schema = replace(self.schema, views={**self.schema.views, view.name.lower(): view})
                parse(f"SELECT * FROM {_quoted(view.name)}", schema, dialect=self.dialect, functions=self.functions)
                self.schema = schema
                self.texts[view.name.lower()] = text
            case CreateMaterializedView():
                if not (statement.if_not_exists and statement.name.lower() in self.views):
                    self._check_free(statement.name)
                    self._add(statement)
            case DropView(name, _, if_exists):
                return self.drop(name, if_exists=if_exists)
        return self._settled()

    def _settled(self) -> tuple[Plan, Plan]:
        """Retain the tables' rows that are still needed, then drop those that a view stores as well."""
        kept = self.with_kept(self.project)
        self.project = without_spare_tables(kept)
        return kept, self.project

    def drop(self, name: str, *, if_exists: bool = False) -> tuple[Plan, ...]:
        """Drop a view of either kind; return the projects that the engine must switch to, in order."""
        key = name.lower()
        if key in self.schema.views and key not in self.views:
            self._check_unread(name)
            self.schema = replace(self.schema, views=_without(self.schema.views, key))
            del self.texts[key]
            return ()
        if key not in self.views:
            if if_exists:
                return ()
            raise self.unknown(name)
        self._check_unread(name)
        dropped = drop_view(self.project, self.views[key].name)
        # First build what must be stored instead, from the rows of the view.
        both = self._with_kept_by(dropped)
        self.schema = replace(self.schema, results=_without(self.schema.results, key))
        del self.views[key]
        self.project = dropped
        return (both, *self._settled())

    def _check_free(self, name: str) -> None:
        schema = self.schema
        if name.lower() in {*schema.tables, *schema.views, *schema.results}:
            raise SchemaError(
                f"there is already a table or view {name}",
                code="CROWN-SCHEMA-DUPLICATE",
                hint="choose another name, or drop the view first",
            )

    def _add(self, statement: CreateMaterializedView) -> None:
        view, project = self.planned(statement)
        self.check_rows(project)
        columns = view.plan.columns
        result = ResultSchema(view.name, columns)
        self.schema = replace(self.schema, results={**self.schema.results, view.name.lower(): result})
        self.views[view.name.lower()] = view
        self.project = project

    def planned(self, statement: CreateMaterializedView) -> tuple[CatalogView, Plan]:
        """Plan a view over the project; return it, and the project with it."""
        query = parse(statement.sql, self.schema, dialect=self.dialect, functions=self.functions)
        for table in query.tables:
            if table.name != CLOCK and table.window != self.schema.tables[table.name.lower()].window:
                raise SchemaError(
                    f"view {statement.name} gives table {table.name} a window",
                    code="CROWN-SCHEMA-OPTION",
                    reason="the views of a database share their tables",
                    hint="write the window in CREATE TABLE",
                )
        known = {view.name: view_plan(self.project, view.name) for view in self.views.values()}
        plan, report = plan_with_report(query, cells=self.threads, views=known)
        plan = replace(plan, columns=_renamed(plan, statement))
        project, places = add_view(self.project, statement.name, plan)
        order = {table.name: position for position, table in enumerate(self.schema.tables.values())}
        tables = sorted((self._in_order(table) for table in project.tables), key=lambda t: order.get(t.name, 0))
        project = replace(project, tables=tuple(tables))
        names = {name.lower() for name in names_of(query.sql, dialect=self.dialect)}
        reads = tuple(v.name for key, v in self.views.items() if key in self._reached(names))
        return CatalogView(statement.name, statement.text, plan, report, places, reads), project

    def read_by(self, view: CatalogView) -> tuple[str, ...]:
        """Return the tables and maintained views that a view reads directly or through plain views."""
        names = self._reached({name.lower() for name in names_of(view.plan.sql, dialect=self.dialect)})
        tables = (table.name for key, table in self.schema.tables.items() if key.lower() in names)
        return (*tables, *view.reads)

    def _reached(self, names: set[str]) -> set[str]:
        """Return the names, with plain views expanded to the names that they stand for."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                view = self.schema.views.get(name)
                waiting += [] if view is None else [read.lower() for read in names_in(view)]
        return found

    def _in_order(self, table: Table) -> Table:
        """Return the table with its columns in the order of the schema."""
        if table.name == CLOCK:
            return table
        names = {column.name for column in table.columns}
        own = self.schema.tables[table.name.lower()]
        return replace(table, columns=tuple(column for column in own.columns if column.name in names))

    def with_kept(self, project: Plan) -> Plan:
        """Return the project extended by what `keep` requests."""
        if self.keep != "all":
            return project
        tables = [Table(t.name, t.columns, t.primary_key, t.profile, t.window) for t in self.schema.tables.values()]
        if self.threads > 1:
            kept = {table.name: table for table in (*project.tables, *tables)}
            return replace(project, tables=tuple(kept.values()))
        return with_kept_tables(project, tables)

    def check_rows(self, project: Plan) -> None:
        """Reject a view that needs rows that were not stored."""
        for name, missing in self.not_kept(project):
            raise PlanError(
                f"the rows of table {name} that it has so far are not stored {missing}",
                code="CROWN-ROWS-NOT-KEPT",
                reason="tables keep what some view reads",
                hint="create the database with keep='all', or create the view before the table has rows",
            )

    def not_kept(self, project: Plan) -> Iterator[tuple[str, str]]:
        """Return the tables whose rows this larger project needs but that are no longer stored, and what is missing."""
        known = {stage.id for stage in self.project.stages}
        read = {source for stage in project.stages if stage.id not in known for source in sources(stage)}
        for table in project.tables:
            if table.name in read and table.name.lower() in self.given:
                missing = self._missing(table)
                if missing is not None:
                    yield table.name, missing

    def _missing(self, table: Table) -> str | None:
        """Return what a view that reads these columns of a table with rows would miss; None if nothing."""
        kept = next((known for known in self.project.tables if known.name == table.name), None)
        if kept is None:
            return "at all"
        names = {column.name for column in kept.columns}
        absent = [column.name for column in table.columns if column.name not in names]
        if absent:
            return f"with column {', '.join(absent)}"
        whole = self.threads > 1 or keeps(self.project, kept)
        return None if whole else "as a whole"

    def _with_kept_by(self, dropped: Plan) -> Plan:
        """Return the project extended by what must be stored when only `dropped` is left of it."""
        known = {stage.id for stage in self.project.stages}
        more = tuple(stage for stage in self.with_kept(dropped).stages if stage.id not in known)
        return replace(self.project, stages=(*self.project.stages, *more))

    def _check_unread(self, name: str) -> None:
        """Reject dropping a view that others read, also through plain views, which stand in its place."""
        readers = []
        for maintained in self.views.values():
            written = names_of(maintained.plan.sql, dialect=self.dialect)
            if name.lower() in {read.lower() for read in (*written, *maintained.reads)}:
                readers.append(maintained.name)
        for view in self.schema.views.values():
            if name.lower() in {read.lower() for read in names_in(view)}:
                readers.append(view.name)
        if readers:
            raise SchemaError(
                f"view {name} is read by {', '.join(readers)}",
                code="CROWN-VIEW-USED",
                hint="drop these first",
            )

    def unknown(self, name: str) -> CrownError:
        known = ", ".join(view.name for view in self.views.values())
        key = name.lower()
        kind = "a table" if key in self.schema.tables else "a name for a query" if key in self.schema.views else None
        return CrownError(
            f"there is no view {name}",
            code="CROWN-VIEW-UNKNOWN",
            reason=None if kind is None else f"{name} is {kind}, not a maintained view",
            hint=f"the maintained views are: {known}" if known else "create a materialized view first",
        )

    def tables_without_rows(self) -> list[str]:
        """Return the tables that never received rows."""
        names = [*(table.name for table in self.schema.tables.values()), CLOCK]
        return [name for name in names if name.lower() not in self.given]

    def table_notes(self) -> dict[str, str]:
        """Return for each table what is stored of it."""
        notes = {}
        for own in self.schema.tables.values():
            kept = next((table for table in self.project.tables if table.name == own.name), None)
            if kept is None:
                notes[own.name] = "no view reads it; its rows are not stored"
                continue
            whole = self.threads > 1 or keeps(self.project, kept)
            columns = ", ".join(column.name for column in kept.columns)
            more = len(kept.columns) < len(own.columns)
            later = "views over these columns can be added" if more else "any view over it can be added"
            notes[own.name] = f"{columns}: {later if whole else 'in parts; no new view can read rows that it has'}"
        return notes


def _renamed(plan: Plan, statement: CreateMaterializedView) -> tuple[Any, ...]:
    if not statement.columns:
        return plan.columns
    if len(statement.columns) != len(plan.columns):
        raise SchemaError(
            f"view {statement.name} lists {counted(len(statement.columns), 'column')}, "
            f"its query has {len(plan.columns)}",
            code="CROWN-SCHEMA-VIEW",
            hint="give one name for each column",
        )
    return tuple(replace(c, name=name) for c, name in zip(plan.columns, statement.columns, strict=True))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _without(mapping: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name != key}
