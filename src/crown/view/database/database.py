"""`crown.Database`: many views over one state."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any, TypeAlias, overload

import pyarrow as pa

from crown import _kernel
from crown import console as _console
from crown.changes import CHANGE_TYPE, DELETE, INSERT, NetWord
from crown.errors import CrownError, PlanError, StateError
from crown.functions import PythonFunctions, check_called, declare
from crown.ir.plan import Plan
from crown.ir.tables import CLOCK, Table
from crown.plan.cells.views_layout import ProjectLayout, lay_out_project, stages_of
from crown.plan.explain.explain_views import ProjectExplanation, ProjectView
from crown.plan.explain.report import Report
from crown.sql import load_schema
from crown.sql.schema.schema import Schema, SchemaLike
from crown.sql.statements import CreateMaterializedView, Statement, read_statements, read_view
from crown.view import storage
from crown.view.arguments import (
    check_budget,
    check_flag,
    check_keep,
    check_name,
    check_on_invalid,
    check_path,
    check_port,
    check_text,
    check_threads,
    table_changes,
)
from crown.view.changing import change
from crown.view.console import DeltaObserver
from crown.view.database import file as database_file
from crown.view.database.catalog import Catalog, CatalogView, Keep
from crown.view.database.console import DatabaseViewFacts
from crown.view.database.figures import figures
from crown.view.database.subscribers import Callback, DeltaIterator, Subscribers
from crown.view.deltas import paired
from crown.view.engines import OnInvalid, State, open_project, prepare, read_all, replan
from crown.view.interface import Changes, DatabaseStats, Rows
from crown.view.located import located, located_in
from crown.view.progress import Progress, reporting
from crown.view.reading import Reading
from crown.view.tables import Tables
from crown.view.turn import Turn
from crown.wording import counted

Deltas: TypeAlias = list[tuple[str, int, _kernel.ArrowStream]]


class DatabaseView(Reading):
    """One view of a database, for reading. It ends when the view is dropped."""

    def __init__(self, database: Database, view: CatalogView) -> None:
        self._database = database
        self._view = view
        self._name = view.name
        self.plan = view.plan
        self._report: Report | None = view.report
        self._functions = database._catalog.functions
        self._engine = located(database._engine, view.plan.sql)

    @property
    def _engine(self) -> _kernel.Engine:
        """The engine, while the view exists: another view may have its name by now."""
        if self._database._catalog.views.get(self._name.lower()) is not self._view:
            raise StateError(
                f"the view {self._name} was dropped",
                code="CROWN-VIEW-UNKNOWN",
                hint="get the view from the database again",
            )
        return self._located

    @_engine.setter
    def _engine(self, engine: _kernel.Engine) -> None:
        self._located = engine

    @property
    def name(self) -> str:
        return self._name

    def _state_bytes(self) -> int:
        figures = self._database.stats()["views"].get(self._name)
        return 0 if figures is None else figures["bytes"]

    def on_change(self, callback: Callback) -> Callable[[], None]:
        """As `Database.on_change`."""
        return self._database.on_change(self._name, callback)

    def changes(self) -> DeltaIterator:
        """As `Database.changes`."""
        return self._database.changes(self._name)

    def console(self, *, port: int = 0, budget: float | None = None) -> _console.Console:
        """As `Database.console`, for this view alone."""
        check_port(port)
        check_budget(budget)
        return self._database._open_console([self], title=self._name, port=port, budget=budget)

    def _facts(self) -> DatabaseViewFacts:
        return DatabaseViewFacts(
            self._view,
            self._engine,
            reads=self._database._catalog.read_by(self._view),
            quarantines=self._database._on_invalid == "quarantine",
            deltas=self._database._deltas,
            stats=self._database.stats,
            sorted=self.to_arrow,
            lookup=self.lookup,
            observe=partial(self._database._observe, self._name),
        )


class Database:
    """Tables that change, and views over them that are maintained together.

    `sql` has CREATE TABLE, CREATE VIEW (a name for a query, expanded where it is used) and CREATE MATERIALIZED VIEW
    (a view that is maintained) statements. Views may read each other. What several views need is stored and computed
    once.

    Tables keep the columns that some view reads, or with `keep="all"` all of them, so that any view can be added
    later. `threads` splits the work into cells that run in parallel. `on_invalid`, `deltas` and
    `functions` are as for `View`.

    A batch changes all views at one point in time, as a whole or not at all. Threads may share a database.

    >>> db = Database('''
    ...     CREATE TABLE r (k INT, x INT);
    ...     CREATE MATERIALIZED VIEW total AS SELECT k, SUM(x) AS x FROM r GROUP BY k;
    ...     CREATE MATERIALIZED VIEW large AS SELECT * FROM total WHERE x > 10;
    ... ''')
    >>> deltas = db.insert("r", [(1, 5), (2, 20)])
    >>> deltas["total"].to_pylist()
    [{'k': 1, 'x': 5, '_change_type': 'insert'}, {'k': 2, 'x': 20, '_change_type': 'insert'}]
    >>> sorted(db["total"]), list(db["large"])
    ([(1, 5), (2, 20)], [(2, 20)])
    """

    def __init__(
        self,
        sql: str = "",
        *,
        schema: SchemaLike | None = None,
        keep: Keep = "read",
        deltas: bool = True,
        threads: int = 1,
        on_invalid: OnInvalid = "raise",
        dialect: str = "spark",
        functions: PythonFunctions | None = None,
    ) -> None:
        check_text("sql", sql)
        check_text("dialect", dialect)
        check_keep(keep)
        check_flag("deltas", deltas)
        check_threads(threads)
        check_on_invalid(on_invalid)
        loaded = Schema() if schema is None else load_schema(schema, dialect=dialect)
        self._begin(Catalog(loaded, keep, threads, dialect, declare(functions)), deltas=deltas, on_invalid=on_invalid)
        for statement in read_statements(sql, dialect=dialect):
            self._catalog.take(statement)
        self._catalog.project = self._catalog.with_kept(self._catalog.project)
        self._open(None, None)

    def _begin(self, catalog: Catalog, *, deltas: bool, on_invalid: OnInvalid) -> None:
        self._catalog = catalog
        self._deltas = deltas
        self._on_invalid: OnInvalid = on_invalid
        self._turn = Turn()
        self._definitions = Turn()  # statements; taken before the turn
        self._subscribers = Subscribers()

    def _open(self, layout: ProjectLayout | None, state: State | None) -> None:
        project = self._catalog.project
        self._layout = self._laid_out(project) if layout is None else layout
        self._engine = open_project(
            project, self._layout, deltas=self._deltas, state=state, functions=self._catalog.functions
        )
        self._refresh()

    def _laid_out(self, project: Plan) -> ProjectLayout | None:
        threads = self._catalog.threads
        return lay_out_project(project, threads) if threads > 1 else None

    def _refresh(self) -> None:
        """Rebuild everything that depends on the set of tables and views."""
        catalog = self._catalog
        columns = {t.name: tuple(c.name for c in t.columns) for t in catalog.schema.tables.values()}
        self._tables = Tables(columns, catalog.project.tables)
        if all(table.name != CLOCK for table in catalog.project.tables):
            catalog.given.discard(CLOCK)  # the last view that reads the time was dropped
        self._tables.timed = CLOCK in catalog.given
        self._texts = self._sqls(catalog)
        self._unchanged: dict[str, pa.Table] = {}
        self._handles = {key: DatabaseView(self, view) for key, view in catalog.views.items()}

    # Creating and dropping views.

    def execute(self, sql: str, *, progress: Progress | bool | None = None) -> None:
        """Run CREATE TABLE, CREATE VIEW, CREATE MATERIALIZED VIEW and DROP VIEW statements, one after the other.

        A view is built from the rows that are stored, and no other view changes; a statement that fails, or
        that Ctrl-C interrupts, changes nothing. Deltas of the view are relative to this initial result.

        Meanwhile other threads can read and change the database. They wait while the rows are copied at the beginning,
        and at the end, when the new view takes in what was changed since. The rest is built without them; only what
        reads parts of other views, or a table that no view has read so far, is built at the end. With several
        `threads`, they wait for the whole build. Statements of other threads wait for their turn in any case.

        `progress(done, total)` is called with the number of rows read for a view so far, and the total. True shows a
        progress bar on stderr if this takes more than a second. This is the default in terminals and notebooks.
        """
        check_text("sql", sql)
        for statement in read_statements(sql, dialect=self._catalog.dialect):
            with self._definitions, reporting(progress, _title(statement)) as report:
                catalog = self._copied()
                self._go_on(catalog, catalog.take(statement), report)

    def drop(self, name: str) -> None:
        """Drop a view, and free what only it needs. Refused while another view reads it."""
        check_name(name)
        with self._definitions:
            catalog = self._copied()
            self._go_on(catalog, catalog.drop(name))

    def _copied(self) -> Catalog:
        with self._turn:
            return self._catalog.copy()

    def _go_on(self, catalog: Catalog, projects: Sequence[Plan], report: Progress | None = None) -> None:
        """Switch the engine to these projects in order, and continue with the new tables and views.

        Only the first may need rows, fail or be interrupted; the others only release stages.
        """

        def watch(done: int, total: int) -> None:
            self._turn.check()
            self._definitions.check()
            if report is not None:
                report(done, total)

        with located_in(self._sqls(catalog)):
            prepared = self._prepare(catalog, projects, watch)
            try:
                with self._turn:
                    self._check_since(catalog, projects)
                    self._switch(catalog, projects, watch, prepared)
            finally:
                # A traceback would keep it, and with it the batches that it has yet to take in.
                del prepared

    def _prepare(self, catalog: Catalog, projects: Sequence[Plan], watch: Progress) -> _kernel.Prepared | None:
        """Build what is new in the first project, as far as other threads need not wait for it."""
        if not projects or projects[0] == self._catalog.project or catalog.threads > 1 or not catalog.given:
            return None
        return prepare(self._engine, projects[0], functions=catalog.functions, progress=watch)

    def _check_since(self, catalog: Catalog, projects: Sequence[Plan]) -> None:
        """Take in which tables other threads have given their first rows since the catalog was copied."""
        if self._catalog.given != catalog.given:
            catalog.given = set(self._catalog.given)
            if projects:
                self._catalog.check_rows(projects[0])

    def _switch(
        self, catalog: Catalog, projects: Sequence[Plan], watch: Progress, prepared: _kernel.Prepared | None
    ) -> None:
        current, empty = self._catalog.project, catalog.tables_without_rows()
        for number, project in enumerate(projects):
            if project != current:
                layout = self._laid_out(project)
                replan(
                    self._engine,
                    project,
                    layout,
                    empty=empty,
                    fresh=not catalog.given,
                    deltas=self._deltas,
                    functions=catalog.functions,
                    progress=watch if number == 0 else None,
                    prepared=prepared if number == 0 else None,
                )
                current, self._layout = project, layout
        dropped = [view.name for key, view in self._catalog.views.items() if key not in catalog.views]
        self._catalog = catalog
        self._refresh()
        for name in dropped:
            self._subscribers.forget(name)

    def _sqls(self, catalog: Catalog) -> list[str]:
        return [view.plan.sql for view in catalog.views.values()]

    # Reading.

    @property
    def views(self) -> tuple[str, ...]:
        """The names of the maintained views."""
        return tuple(view.name for view in self._catalog.views.values())

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(table.name for table in self._catalog.schema.tables.values())

    def __getitem__(self, name: str) -> DatabaseView:
        """Return a view, for reading."""
        check_name(name)
        found = self._handles.get(name.lower())
        if found is None:
            raise self._catalog.unknown(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.views)

    def __len__(self) -> int:
        return len(self._catalog.views)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._catalog.views

    def __bool__(self) -> bool:
        return True

    # Changes.

    def apply(self, changes: Changes, *, updates: bool = False) -> dict[str, pa.Table]:
        """Apply changes of several tables, in order, and return the change of each view, by name.

        `changes` are as for `View.apply`. All views are then at the same point in time. Deletes come before inserts.
        With `updates`, a row that replaces one with the same key comes right after it, and the two are
        `update_preimage` and `update_postimage`; the key is that of a GROUP BY, or the primary keys of the tables if
        they are in the result.
        """
        check_flag("updates", updates)
        with self._turn:
            pairs = table_changes(changes)
            inputs = self._tables.arrow(pairs)
            deltas = self._apply(self._engine.apply_all, inputs, changed=[name for name, _ in pairs])
        return self._shown(deltas, updates=updates)

    def insert(self, table: str, rows: Rows) -> dict[str, pa.Table]:
        """Insert rows and return the change of each view. Tables with a PRIMARY KEY take upserts."""
        return self._change(table, rows, INSERT)

    def delete(self, table: str, rows: Rows) -> dict[str, pa.Table]:
        """Delete rows and return the change of each view. Each must exist; with a PRIMARY KEY the key is enough."""
        return self._change(table, rows, DELETE)

    def _change(self, table: str, rows: Rows, word: NetWord) -> dict[str, pa.Table]:
        with self._turn:
            target = self._tables.changed(table)
            plain, arrow = self._engine.apply_rows_all, self._engine.apply_all
            if target is None:
                deltas = self._apply(arrow, [], changed=[table])
            else:
                deltas = change(
                    target,
                    rows,
                    word,
                    plain=partial(self._apply, plain, changed=[table]),
                    arrow=partial(self._apply, arrow, changed=[table]),
                )
        return self._shown(deltas)

    def replace(self, table: str, rows: Rows) -> dict[str, pa.Table]:
        """Replace all rows of a table, and return the change of each view: only the difference is propagated.

        `rows` are as for `insert`.
        """
        with self._turn:
            target = self._tables.changed(table)
            inputs: list[tuple[str, Any]] = []
            if target is not None:
                new = target.arrow(rows, INSERT)
                if table.lower() in self._catalog.given:
                    inputs.append((target.table.name, self._all_deleted(target.table)))
                inputs.append((target.table.name, new))
            deltas = self._apply(self._engine.apply_all, inputs, changed=[table])
        return self._shown(deltas)

    def _all_deleted(self, table: Table) -> pa.Table:
        stream = self._engine.table_rows(table.name)
        if stream is None:
            raise PlanError(
                f"the rows of table {table.name} are not stored as a whole",
                code="CROWN-ROWS-NOT-KEPT",
                reason="tables keep what some view reads",
                hint="create the database with keep='all', or delete and insert rows",
            )
        rows = read_all(stream)
        words = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), rows.num_rows), pa.array([DELETE]))
        return rows.append_column(CHANGE_TYPE, words)

    @overload
    def advance(self, table: datetime) -> dict[str, pa.Table]: ...
    @overload
    def advance(self, table: str, watermark: int | date) -> dict[str, pa.Table]: ...
    def advance(self, table: str | datetime, watermark: int | date = 0) -> dict[str, pa.Table]:
        """Advance the time of the views, and return the change of each.

        `advance(datetime)` sets the time that `now()` and CURRENT_DATE return in queries (UTC if it has no time zone).
        `advance(table, watermark)` moves the clock of a table's window forward: see `View.advance`.
        """
        if isinstance(table, datetime):
            return self._advance_clock(table)
        with self._turn:
            name, moved = self._tables.watermark(table, watermark)
            deltas = self._run(lambda: self._engine.advance_all(name, moved))
        return self._shown(deltas)

    def _advance_clock(self, now: datetime) -> dict[str, pa.Table]:
        with self._turn:
            inputs = [self._tables.at(now)]
            deltas = self._apply(self._engine.apply_all, inputs, changed=[CLOCK])
        return self._shown(deltas)

    def _apply(
        self, method: Callable[..., Deltas], *inputs: Any, changed: list[str], **how: Any
    ) -> dict[str, pa.Table]:
        """Let the engine apply the inputs. `changed` are the tables in the batch, whether or not a view reads them."""
        known = set(self._catalog.given)
        # Before the batch: an interrupt after it must not leave tables with rows that count as
        # empty.
        self._catalog.given.update(name.lower() for name in changed)
        try:
            return self._run(lambda: method(*inputs, on_invalid=self._on_invalid, **how))
        except CrownError:
            self._catalog.given.intersection_update(known)
            raise

    def _run(self, work: Callable[[], Deltas]) -> dict[str, pa.Table]:
        with located_in(self._texts):
            deltas = {name: self._delta(name, rows, stream) for name, rows, stream in work()}
        self._subscribers.queue(deltas)
        return deltas

    def _delta(self, name: str, rows: int, stream: _kernel.ArrowStream) -> pa.Table:
        """Return a view's delta. Most views may have an empty one: they share one table."""
        if rows:
            return read_all(stream)
        if name not in self._unchanged:
            self._unchanged[name] = read_all(stream)
        return self._unchanged[name]

    def _shown(self, deltas: dict[str, pa.Table], *, updates: bool = False) -> dict[str, pa.Table]:
        self._subscribers.deliver()
        if not updates:
            return deltas
        plans = {view.name: view.plan for view in self._catalog.views.values()}
        return {name: paired(plans[name], delta) if name in plans else delta for name, delta in deltas.items()}

    def on_change(self, name: str, callback: Callback) -> Callable[[], None]:
        """Call `callback(delta)` after each batch that changes the view; return a function that cancels it.

        Callbacks run in the thread that applied the batch, after it is complete, in the order of the batches. If one
        raises, the others still run, and the caller of `apply` gets the exception; the batch stays applied.
        """
        return self._subscribers.add(self._followed(name), callback)

    def changes(self, name: str) -> DeltaIterator:
        """Return an iterator over the deltas of a view from now on. It waits for the next one until it is closed.

        Unread deltas are buffered while the iterator exists: close it, or drop every reference to it.
        """
        return self._subscribers.iterate(self._followed(name))

    def _followed(self, name: str) -> str:
        """Return the name of a view as it was created, if it has deltas."""
        view = self[name].name
        if not self._deltas:
            raise CrownError(
                f"there are no deltas of view {view} to follow",
                code="CROWN-ARGUMENT",
                reason="the database was created with deltas=False, so its views can only be read",
                hint="create the database with deltas=True",
            )
        return view

    def rejected(self) -> pa.Table:
        """Return the rejected changes so far (table, position, reason, row) and forget them."""
        return read_all(self._engine.rejected())

    # Inspection.

    def stats(self) -> DatabaseStats:
        """Return rows, keys and bytes by table, stage and node, and what each view uses and shares.

        A view's `bytes` are those of all stages that it reads, `own_bytes` of those that no other view reads. A stage's
        `shared_by` are the views that read it.
        """
        with self._turn:
            found = self._engine.stats()
            layout = self._layout
            views = {
                v.name: v.stages if layout is None else stages_of(layout, v.name) for v in self._catalog.views.values()
            }
            return figures(found, views)

    def console(self, *, name: str = "database", port: int = 0, budget: float | None = None) -> _console.Console:
        """Serve a web page that shows all views live, with what they share, and return it: see `View.console`.

        It shows the views that exist now; open another one for views that are created later.
        """
        check_text("name", name)
        check_port(port)
        check_budget(budget)
        if not self._handles:
            raise CrownError(
                "the database has no view to show", code="CROWN-ARGUMENT", hint="create a materialized view first"
            )
        return self._open_console(list(self._handles.values()), title=name, port=port, budget=budget)

    def _open_console(
        self, views: Sequence[DatabaseView], *, title: str, port: int, budget: float | None
    ) -> _console.Console:
        facts = {view.name: view._facts() for view in views}
        stats, hot_keys = self.stats, self._engine.hot_keys
        source = _console.EmbeddedSource(facts, stats=stats, hot_keys=hot_keys, title=title, budget=budget)
        return _console.Console(source, port=port)

    def _observe(self, name: str, observer: DeltaObserver) -> Callable[[], None]:
        with self._turn:
            return self._subscribers.observe(name, observer)

    def explain(self, sql: str | None = None) -> ProjectExplanation:
        """Explain the whole database, or what the view of a CREATE MATERIALIZED VIEW statement would add to it.

        Print it, or call `.svg()` or `.json()`. `db[name].explain()` explains one view.
        """
        with self._turn:
            catalog = self._catalog
            facts = tuple(_facts(view) for view in catalog.views.values())
            if sql is None:
                return ProjectExplanation(catalog.project, facts, catalog.table_notes(), None, ())
            check_text("sql", sql)
            view, project = catalog.planned(read_view(sql, dialect=catalog.dialect))
            notes = tuple(
                f"the rows of {table} so far are not stored {missing}: it can't be added"
                for table, missing in catalog.not_kept(project)
            )
            return ProjectExplanation(catalog.project, facts, catalog.table_notes(), _facts(view), notes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write tables, views and state to one file, which is replaced atomically; `Database.load` opens it again."""
        check_path(path)
        with self._turn:
            saved = database_file.saved(self._catalog, self._layout, deltas=self._deltas, on_invalid=self._on_invalid)
            database_file.write(path, saved, self._engine.save_parts())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, functions: PythonFunctions | None = None) -> Database:
        """Open a database that `save` wrote. A file that is damaged, or no database at all, raises `StateError`.

        The file has no Python code: if queries call functions, give them again.
        """
        check_path(path)
        declared = declare(functions)
        database = cls.__new__(cls)
        with storage.opening(path):
            saved, state = database_file.read(path)
            check_called(saved.project, declared, StateError)
            database._begin(database_file.catalog(saved, declared), deltas=saved.deltas, on_invalid=saved.on_invalid)
            database._open(saved.layout, state)
        return database

    def __repr__(self) -> str:
        tables, views = len(self._catalog.schema.tables), len(self._catalog.views)
        lines = [f"<crown.Database: {counted(tables, 'table')}, {counted(views, 'view')}"]
        for view in self._handles.values():
            try:
                lines.append(f" {view.name}: {counted(view.count(), 'row')}")
            except CrownError as error:
                lines.append(f" {view.name}: {error.message}")
        return "\n".join(lines) + ">"


def _title(statement: Statement) -> str:
    return statement.name if isinstance(statement, CreateMaterializedView) else ""


def _facts(view: CatalogView) -> ProjectView:
    return ProjectView(view.name, view.plan, view.report, dict(view.places))
