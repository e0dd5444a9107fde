"""`crown.View`: a SQL query whose result is kept up to date in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import partial
from typing import Any, Literal, cast, overload

import pyarrow as pa

from crown import console as _console
from crown.changes import DELETE, INSERT, NetWord
from crown.errors import CrownError, PlanError, StateError
from crown.functions import PythonFunctions, check_called, declare
from crown.ir.functions import Declared
from crown.ir.plan import Plan
from crown.ir.serial import from_json, to_json
from crown.ir.tables import CLOCK
from crown.plan import plan_with_report
from crown.plan.cells.layout import Layout, layout_from_json, layout_to_json
from crown.plan.explain.report import report_from_json, report_to_json
from crown.sql import load_schema, parse
from crown.sql.schema.schema import Schema, SchemaLike
from crown.view import storage
from crown.view.arguments import (
    check_budget,
    check_flag,
    check_on_invalid,
    check_path,
    check_port,
    check_text,
    check_threads,
    shown,
)
from crown.view.changing import change
from crown.view.console import DeltaObserver, StandaloneViewFacts
from crown.view.delta_reader import DeltaReader
from crown.view.deltas import deletes_first_of_each, paired
from crown.view.engines import OnInvalid, check_plan, layout_of, open_engine, read_all
from crown.view.interface import Changes, Profiles, Rows, Stats, Windows
from crown.view.located import located
from crown.view.reading import Reading
from crown.view.tables import Tables


class View(Reading):
    """The maintained result of `sql` over tables that change.

    `schema` is CREATE TABLE text, the path of a file that holds it, a dict, or Arrow or Spark schemas by table name.
    `profiles` and `windows` say how tables change and when their rows expire, by table name. Without `deltas` the view
    can only be read, and spends nothing on deltas. `threads` splits the view into cells that run in parallel. A change
    that does not fit is rejected with its whole batch (`on_invalid="raise"`), or alone (`"quarantine"`; see
    `rejected`). `functions` are Python functions that the query may call, by name (see `crown.function`).

    A batch is applied as a whole or not at all, even if it is rejected halfway or Ctrl-C interrupts it. Threads may
    share a view: calls run one after the other, and each result shows the view at one point in time.
    After `os.fork` the child has a copy of the view, or a `CrownError` at its next call if another thread was using the
    view at that moment; with `multiprocessing`, start processes with "spawn" or load the view in the child.

    >>> view = View("SELECT a.x, b.y FROM r a JOIN s b ON a.k = b.k",
    ...             schema="CREATE TABLE r (k INT, x INT); CREATE TABLE s (k INT, y INT)")
    >>> view.insert("r", [(1, 10)]).num_rows
    0
    >>> view.insert("s", [(1, 20)]).to_pylist()
    [{'x': 10, 'y': 20, '_change_type': 'insert', '_multiplicity': 1}]
    >>> list(view), len(view), (10, 20) in view
    ([(10, 20)], 1, True)
    """

    def __init__(
        self,
        sql: str,
        schema: SchemaLike,
        *,
        profiles: Profiles | None = None,
        windows: Windows | None = None,
        deltas: bool = True,
        threads: int = 1,
        on_invalid: OnInvalid = "raise",
        dialect: str = "spark",
        functions: PythonFunctions | None = None,
    ) -> None:
        check_text("sql", sql)
        check_text("dialect", dialect)
        _check_options(deltas, threads, on_invalid)
        loaded = load_schema(schema, dialect=dialect)
        declared = declare(functions)
        query = parse(sql, loaded, dialect=dialect, profiles=profiles, windows=windows, functions=declared)
        plan, report = plan_with_report(query, cells=threads)
        self._open(plan, _tables(loaded), deltas=deltas, threads=threads, on_invalid=on_invalid, functions=declared)
        self._report = report

    @classmethod
    def from_plan(
        cls,
        plan: Plan,
        *,
        deltas: bool = True,
        threads: int = 1,
        on_invalid: OnInvalid = "raise",
        functions: PythonFunctions | None = None,
    ) -> View:
        """Return a view of a plan. Rows have the order of the plan's table columns."""
        if not isinstance(plan, Plan):
            raise PlanError(
                f"{shown(plan)} is not a plan", code="CROWN-ARGUMENT", hint="pass the result of crown.plan.plan"
            )
        _check_options(deltas, threads, on_invalid)
        view = cls.__new__(cls)
        tables = {table.name: tuple(column.name for column in table.columns) for table in plan.tables}
        declared = declare(functions)
        check_called(plan, declared, PlanError)
        view._open(plan, tables, deltas=deltas, threads=threads, on_invalid=on_invalid, functions=declared)
        view._report = None
        return view

    def _open(
        self,
        plan: Plan,
        tables: Mapping[str, tuple[str, ...]],
        *,
        deltas: bool,
        threads: int,
        on_invalid: OnInvalid,
        functions: Mapping[str, Declared],
        layout: Layout | None = None,
        state: Mapping[str, list[bytes]] | None = None,
    ) -> None:
        self.plan = plan
        self._about = {"deltas": deltas, "threads": threads, "on_invalid": on_invalid}
        self._on_invalid: OnInvalid = on_invalid
        self._observers: list[DeltaObserver] = []
        self._name = ""
        self._functions = functions
        self._tables = Tables(tables, plan.tables)
        # A saved view's rows stay in their cells, even if this version would route them
        # differently.
        self._layout = layout_of(plan, threads, on_invalid) if layout is None else layout
        engine = open_engine(plan, self._layout, deltas=deltas, state=state, functions=functions)
        self._engine = located(engine, plan.sql)
        self._tables.timed = state is not None and any(
            table["name"] == CLOCK and table["stored_rows"] > 0 for table in self._engine.stats()["tables"]
        )

    @overload
    def apply(
        self, changes: Changes, *, per_update: bool = ..., stream: Literal[False] = ..., updates: bool = ...
    ) -> pa.Table: ...
    @overload
    def apply(
        self, changes: Changes, *, per_update: bool = ..., stream: Literal[True], updates: bool = ...
    ) -> DeltaReader: ...
    @overload
    def apply(
        self, changes: Changes, *, per_update: bool = ..., stream: bool, updates: bool = ...
    ) -> pa.Table | DeltaReader: ...
    def apply(
        self, changes: Changes, *, per_update: bool = False, stream: bool = False, updates: bool = False
    ) -> pa.Table | DeltaReader:
        """Apply changes of several tables, in order, and return the view's change.

        `changes` maps table names to data (or is a sequence of such pairs): lists of tuples or dicts, pandas, polars,
        pyarrow, anything with `__arrow_c_stream__`. A column `_change_type` says `insert`, `delete`, `update_preimage`
        or `update_postimage`; without it all are insertions. Columns that the schema does not have are ignored in
        tables and are an error in dicts.

        The result has the view's columns and `_change_type` (`insert` or `delete`), for queries without DISTINCT also
        `_multiplicity`. It is net: it has no row that is inserted and deleted within the batch. With `per_update` each
        change has its own delta, and `_update` is its position among the batch's changes of tables that the query
        reads. With `stream` the delta is produced while it is read; the batch is applied in full even if the reader is
        dropped. Other callers of the view wait for the batch but not for the reader: the remaining rows are then
        buffered in memory.

        Deletes come before inserts, and with `per_update` the deletes of each update before its inserts; with `stream`
        they come as they are found. With `updates`, a row that replaces one with the same key comes right after it, and
        the two are `update_preimage` and `update_postimage`; the key is that of a GROUP BY, or the primary keys of the
        tables if they are in the result.
        """
        check_flag("per_update", per_update)
        check_flag("stream", stream)
        check_flag("updates", updates)
        if updates and (per_update or stream):
            raise CrownError(
                "updates can't be combined with per_update or stream",
                code="CROWN-ARGUMENT",
                reason="updates are found in the whole delta of a batch",
                hint="leave out one of them",
            )
        inputs = self._tables.arrow(changes)
        if stream:
            delta = self._engine.stream(inputs, per_update=per_update, on_invalid=self._on_invalid)
            return DeltaReader(located(delta, self.plan.sql))
        delta = self._delta(self._engine.apply(inputs, per_update=per_update, on_invalid=self._on_invalid), per_update)
        return paired(self.plan, delta) if updates else delta

    def insert(self, table: str, rows: Rows) -> pa.Table:
        """Insert rows (as `apply` takes them) and return the view's change. Tables with a PRIMARY KEY take upserts."""
        return self._change(table, rows, INSERT)

    def delete(self, table: str, rows: Rows) -> pa.Table:
        """Delete rows and return the view's change. Each must exist; with a PRIMARY KEY the key is enough."""
        return self._change(table, rows, DELETE)

    def _change(self, table: str, rows: Rows, word: NetWord) -> pa.Table:
        target = self._tables.changed(table)
        if target is None:
            return self._delta(self._engine.apply([], on_invalid=self._on_invalid))
        engine, policy = self._engine, self._on_invalid
        plain, arrow = partial(engine.apply_rows, on_invalid=policy), partial(engine.apply, on_invalid=policy)
        return self._delta(change(target, rows, word, plain=plain, arrow=arrow))

    def _delta(self, stream: Any, per_update: bool = False) -> pa.Table:
        delta = deletes_first_of_each(read_all(stream)) if per_update else read_all(stream)
        for observer in self._observers:
            observer(delta)
        return delta

    @overload
    def advance(self, table: datetime) -> pa.Table: ...
    @overload
    def advance(self, table: str, watermark: int | date) -> pa.Table: ...
    def advance(self, table: str | datetime, watermark: int | date = 0) -> pa.Table:
        """Advance the time of the view, and return its change.

        `advance(datetime)` sets the time that `now()` and CURRENT_DATE return in the query (UTC if it has no time
        zone). `advance(table, watermark)` moves the clock of a table's window forward: to a datetime, a date if its
        column has dates, or an integer in the unit of the column (microseconds or days since 1970).
        """
        if isinstance(table, datetime):
            return self._delta(self._engine.apply([self._tables.at(table)], on_invalid=self._on_invalid))
        return self._delta(self._engine.advance(*self._tables.watermark(table, watermark)))

    def rejected(self) -> pa.Table:
        """Return the rejected changes so far (table, position, reason, row) and forget them."""
        return read_all(self._engine.rejected())

    def stats(self) -> Stats:
        """Return rows, keys and bytes of every part, updates, counter changes (also per update), rejected changes."""
        return cast(Stats, self._engine.stats())

    def console(self, *, name: str = "view", port: int = 0, budget: float | None = None) -> _console.Console:
        """Serve a web page that shows the view live, for browsers of this machine, and return it: open its `url`.

        The page shows the tree with rows, bytes and changes per second, the cost of updates, the rows of the view and
        its deltas. `budget` is what the state may take, in bytes. Nothing is measured unless a browser is connected.
        Close it with `close()`, or use it in a `with` block.

        >>> view = View("SELECT x, COUNT(*) AS n FROM r GROUP BY x", schema="CREATE TABLE r (x INT)")
        >>> with view.console() as console:
        ...     print(console.url)
        http://127.0.0.1:.../?token=...
        """
        check_text("name", name)
        check_port(port)
        check_budget(budget)
        facts = StandaloneViewFacts(
            plan=self.plan,
            report=self._report,
            quarantines=self._on_invalid == "quarantine",
            engine=self._engine,
            sorted=self.to_arrow,
            lookup=self.lookup,
            observe=self._observe,
        )
        stats, hot_keys = self._engine.stats, self._engine.hot_keys
        source = _console.EmbeddedSource({name: facts}, stats=stats, hot_keys=hot_keys, title=name, budget=budget)
        return _console.Console(source, port=port)

    def _observe(self, observer: DeltaObserver) -> Callable[[], None]:
        self._observers.append(observer)
        return partial(self._observers.remove, observer)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the view to one file; `View.load` opens it again.

        The file is replaced atomically, once all of it is on disk: a crash leaves the previous one.
        """
        check_path(path)
        report = None if self._report is None else report_to_json(self._report)
        layout = None if self._layout is None else layout_to_json(self._layout)
        about = {
            **self._about,
            "plan": to_json(self.plan),
            "layout": layout,
            "report": report,
            "tables": self._tables.columns,
        }
        storage.write(path, about, self._engine.save_parts())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, functions: PythonFunctions | None = None) -> View:
        """Open a view that `save` wrote. A file that is damaged, or not a saved view at all, raises `StateError`.

        The file has no Python code: if the query calls functions, give them again.
        """
        check_path(path)
        declared = declare(functions)
        view = cls.__new__(cls)
        with storage.opening(path):
            about, state = storage.read(path)
            plan = from_json(about["plan"])
            check_called(plan, declared, StateError)
            tables = {name: tuple(columns) for name, columns in about["tables"].items()}
            storage.check_tables(plan, tables)
            options = {key: about[key] for key in ("deltas", "threads", "on_invalid")}
            layout = None if about["layout"] is None else layout_from_json(about["layout"])
            if layout is not None:
                check_plan(plan, declared)
                storage.check_layout(plan, layout, options["threads"])
            view._open(plan, tables, **options, functions=declared, layout=layout, state=state)
            view._report = None if about["report"] is None else report_from_json(about["report"])
        return view


def _check_options(deltas: object, threads: object, on_invalid: object) -> None:
    check_flag("deltas", deltas)
    check_threads(threads)
    check_on_invalid(on_invalid)


def _tables(schema: Schema) -> dict[str, tuple[str, ...]]:
    return {table.name: tuple(column.name for column in table.columns) for table in schema.tables.values()}
