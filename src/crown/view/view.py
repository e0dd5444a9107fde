"""`crown.View`: a SQL query whose result is kept up to date in this process."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import pyarrow as pa

from crown import console as _console
from crown.arrow import arrow_type
from crown.changes import DELETE, INSERT, NetWord
from crown.errors import CrownError, InvalidChange, PlanError
from crown.ir.plan import Plan
from crown.ir.serial import from_json, to_json
from crown.ir.tables import TableColumn, Window
from crown.plan import Explanation, explain, plan_with_report
from crown.plan.cells.layout import Layout, layout_from_json, layout_to_json
from crown.plan.explain.report import Report, report_from_json, report_to_json
from crown.sql import load_schema, parse
from crown.sql.schema.schema import Schema, SchemaLike
from crown.view import storage
from crown.view.arguments import (
    check_flag,
    check_on_invalid,
    check_path,
    check_port,
    check_sample,
    check_text,
    check_threads,
    check_watermark,
    shown,
    table_changes,
)
from crown.view.engines import OnInvalid, check_plan, layout_of, open_engine, read_all
from crown.view.facts import Observer, ViewFacts
from crown.view.inputs import TableInput
from crown.view.interface import Changes, Profiles, Row, Rows, Stats, Windows
from crown.view.located import located
from crown.view.ordering import ordered
from crown.view.reader import DeltaReader

if TYPE_CHECKING:
    import pandas


class View:
    """The maintained result of `sql` over tables that change.

    `schema` is CREATE TABLE text, the path of a file that holds it, a dict, or Arrow or Spark schemas by table name.
    `profiles` and `windows` say how tables change and when their rows leave, by table name. Without `deltas` the view
    can only be read, and spends nothing on deltas. `threads` splits the view into cells that run in parallel. A change
    that does not fit is rejected with its whole batch (`on_invalid="raise"`), or alone (`"quarantine"`; see
    `rejected`).

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
    ) -> None:
        check_text("sql", sql)
        check_text("dialect", dialect)
        _check_options(deltas, threads, on_invalid)
        loaded = load_schema(schema, dialect=dialect)
        query = parse(sql, loaded, dialect=dialect, profiles=profiles, windows=windows)
        plan, report = plan_with_report(query, cells=threads)
        self._open(plan, _tables(loaded), deltas=deltas, threads=threads, on_invalid=on_invalid)
        self._report: Report | None = report

    @classmethod
    def from_plan(cls, plan: Plan, *, deltas: bool = True, threads: int = 1, on_invalid: OnInvalid = "raise") -> View:
        """Return a view of a plan. Rows have the order of the plan's table columns."""
        if not isinstance(plan, Plan):
            raise PlanError(
                f"{shown(plan)} is not a plan", code="CROWN-ARGUMENT", hint="pass the result of crown.plan.plan"
            )
        _check_options(deltas, threads, on_invalid)
        view = cls.__new__(cls)
        tables = {table.name: tuple(column.name for column in table.columns) for table in plan.tables}
        view._open(plan, tables, deltas=deltas, threads=threads, on_invalid=on_invalid)
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
        layout: Layout | None = None,
        state: Mapping[str, list[bytes]] | None = None,
    ) -> None:
        self.plan = plan
        self._about = {"deltas": deltas, "threads": threads, "on_invalid": on_invalid}
        self._on_invalid: OnInvalid = on_invalid
        self._observer: Observer | None = None
        self._tables = {name.lower(): columns for name, columns in tables.items()}
        read = {table.name.lower(): table for table in plan.tables}
        self._inputs = {name: TableInput(t, self._tables.get(name, _names(t.columns))) for name, t in read.items()}
        # A saved view has rows in the cells where they were, wherever this version would send them.
        self._layout = layout_of(plan, threads, on_invalid) if layout is None else layout
        engine = open_engine(plan, self._layout, deltas=deltas, state=state)
        self._engine = located(engine, plan.sql)

    @property
    def schema(self) -> pa.Schema:
        """The view's columns."""
        return pa.schema([pa.field(c.name, arrow_type(c.type), c.nullable) for c in self.plan.columns])

    @overload
    def apply(self, changes: Changes, *, per_update: bool = ..., stream: Literal[False] = ...) -> pa.Table: ...
    @overload
    def apply(self, changes: Changes, *, per_update: bool = ..., stream: Literal[True]) -> DeltaReader: ...
    @overload
    def apply(self, changes: Changes, *, per_update: bool = ..., stream: bool) -> pa.Table | DeltaReader: ...
    def apply(self, changes: Changes, *, per_update: bool = False, stream: bool = False) -> pa.Table | DeltaReader:
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
        """
        check_flag("per_update", per_update)
        check_flag("stream", stream)
        pairs = [(self._input(name), data) for name, data in table_changes(changes)]
        inputs = [(table.table.name, table.arrow(data)) for table, data in pairs if table is not None]
        if stream:
            delta = self._engine.stream(inputs, per_update=per_update, on_invalid=self._on_invalid)
            return DeltaReader(located(delta, self.plan.sql))
        return self._delta(self._engine.apply(inputs, per_update=per_update, on_invalid=self._on_invalid))

    def insert(self, table: str, rows: Rows) -> pa.Table:
        """Insert rows (as `apply` takes them) and return the view's change. Tables with a PRIMARY KEY take upserts."""
        return self._change(table, rows, INSERT)

    def delete(self, table: str, rows: Rows) -> pa.Table:
        """Delete rows and return the view's change. Each must exist; with a PRIMARY KEY the key is enough."""
        return self._change(table, rows, DELETE)

    def _change(self, table: str, rows: Rows, word: NetWord) -> pa.Table:
        target = self._input(table)
        if target is None:
            return self._delta(self._engine.apply([], on_invalid=self._on_invalid))
        name = target.table.name
        if isinstance(rows, list) and (tuples := target.tuples(rows)) is not None:
            delete = word == DELETE
            return self._delta(self._engine.apply_rows(name, tuples, delete=delete, on_invalid=self._on_invalid))
        return self._delta(self._engine.apply([(name, target.arrow(rows, word))], on_invalid=self._on_invalid))

    def _delta(self, stream: Any) -> pa.Table:
        delta = read_all(stream)
        if self._observer is not None:
            self._observer(delta)
        return delta

    def advance(self, table: str, watermark: int) -> pa.Table:
        """Move a time window's clock forward, in the unit of its column, and return the view's change."""
        target = self._input(table)
        window: Window | None = None if target is None else target.table.window
        if target is None or window is None or window.interval is None:
            raise InvalidChange(
                f"table {table} has no time window",
                code="CROWN-CHANGE-WINDOW",
                hint="create the view with windows={table: {'interval': ..., 'column': ...}}",
            )
        check_watermark(table, watermark)
        return self._delta(self._engine.advance(target.table.name, watermark))

    def _input(self, table: str) -> TableInput | None:
        """Return the input of the table; None for tables of the schema that the query does not read."""
        if not isinstance(table, str):
            raise InvalidChange(f"{shown(table)} is not the name of a table", code="CROWN-CHANGE-TABLE")
        name = table.lower()
        if name not in self._inputs and name not in self._tables:
            raise InvalidChange(
                f"there is no table {table}",
                code="CROWN-CHANGE-TABLE",
                hint=f"the tables are {', '.join(sorted(self._tables))}",
            )
        return self._inputs.get(name)

    def __iter__(self) -> Iterator[Row]:
        """Return the rows, duplicates repeated, with constant delay; in the query's ORDER BY if it has one.

        An iterator shows the view as of the start of the iteration. If the view changes, the remaining rows
        are copied first; if there are more than a million, the next row raises a `CrownError` (use `to_arrow`).
        """
        if self.plan.order:
            rows = self.to_arrow()
            return zip(*(column.to_pylist() for column in rows.columns), strict=True)
        return self._engine.iterate()

    def __len__(self) -> int:
        """Return the number of rows, duplicates counted."""
        count = self._engine.count()
        if count > sys.maxsize:
            raise CrownError(
                f"the view has {count} rows",
                code="CROWN-TOO-MANY-ROWS",
                reason="len() can return at most 2^63 - 1",
                hint="count in the query: SELECT COUNT(*) ...",
            )
        return count

    def __contains__(self, row: object) -> bool:
        """Return whether the tuple is a row of the result."""
        return isinstance(row, tuple) and self.multiplicity(row) > 0

    def multiplicity(self, row: Row) -> int:
        """Return how often the row is in the result.

        A look-up in constant time if the plan stores rows that can be found by their values; `row in view` does the
        same. The whole result is read instead if COUNT, SUM or AVG are annotations of the tree, or if the
        query drops a variable that the tree had to output (`explain` shows both).
        """
        if not isinstance(row, tuple):
            raise CrownError(f"a row must be a tuple, not {shown(row)}", code="CROWN-ARGUMENT", hint="give a tuple")
        return self._engine.multiplicity(row)

    def to_arrow(self, *, multiplicity: bool = False) -> pa.Table:
        """Return the full result, in the query's ORDER BY. With `multiplicity` each row once, with `_multiplicity`."""
        check_flag("multiplicity", multiplicity)
        return ordered(self.plan, read_all(self._engine.rows(multiplicity=multiplicity)))

    def to_pandas(self) -> pandas.DataFrame:
        """Return the full result as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def sample(self, k: int, *, seed: int | None = None) -> pa.Table:
        """Return `k` random rows, with replacement; each row (each copy of it) is equally likely."""
        check_sample(k, seed)
        return read_all(self._engine.sample(k, (random.getrandbits(63) if seed is None else seed) % 2**64))

    def rejected(self) -> pa.Table:
        """Return the rejected changes so far (table, position, reason, row) and forget them."""
        return read_all(self._engine.rejected())

    def stats(self) -> Stats:
        """Return rows, keys and bytes of every part, updates, counter changes (also per update), rejected changes."""
        return cast(Stats, self._engine.stats())

    def explain(self) -> Explanation:
        """Return the guarantees and the reasons; print it, or call `.svg()`, `.html()` or `.json()`."""
        if self._report is None:
            raise PlanError(
                "this view was created from a plan, so there is nothing to explain",
                code="CROWN-PLAN-EXPLAIN",
                hint="create the view from SQL and a schema",
            )
        return explain(self.plan, self._report)

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
        facts = ViewFacts(
            self.plan, self._report, self._on_invalid == "quarantine", self._engine, self.to_arrow, self._observe
        )
        return _console.Console(_console.EmbeddedSource({name: facts}, title=name, budget=budget), port=port)

    def _observe(self, observer: Observer | None) -> None:
        self._observer = observer

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
            "tables": self._tables,
        }
        storage.write(path, about, self._engine.save_parts())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> View:
        """Open a view that `save` wrote. A file that is damaged, or not a saved view at all, raises `StateError`."""
        check_path(path)
        view = cls.__new__(cls)
        with storage.opening(path):
            about, state = storage.read(path)
            plan = from_json(about["plan"])
            tables = {name: tuple(columns) for name, columns in about["tables"].items()}
            storage.check_tables(plan, tables)
            options = {key: about[key] for key in ("deltas", "threads", "on_invalid")}
            layout = None if about["layout"] is None else layout_from_json(about["layout"])
            if layout is not None:
                check_plan(plan)
                storage.check_layout(plan, layout, options["threads"])
            view._open(plan, tables, **options, layout=layout, state=state)
            view._report = None if about["report"] is None else report_from_json(about["report"])
        return view


def _check_options(deltas: object, threads: object, on_invalid: object) -> None:
    check_flag("deltas", deltas)
    check_threads(threads)
    check_on_invalid(on_invalid)


def _names(columns: Sequence[TableColumn]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


def _tables(schema: Schema) -> dict[str, tuple[str, ...]]:
    return {table.name: _names(table.columns) for table in schema.tables.values()}
