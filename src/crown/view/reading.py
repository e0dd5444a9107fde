"""How the result of a view is read, alone or in a database."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, overload

import pyarrow as pa

from crown import _kernel
from crown.arrow import arrow_type
from crown.errors import CrownError, PlanError
from crown.ir.plan import Plan
from crown.plan import Explanation, explain
from crown.plan.explain.reading import paging
from crown.plan.explain.report import Report
from crown.view.arguments import check_flag, check_page, check_sample, shown
from crown.view.casts import cast_rows
from crown.view.engines import Functions, read_all
from crown.view.interface import Row
from crown.view.ordering import ordered, ordered_page
from crown.wording import counted

if TYPE_CHECKING:
    import pandas
    import polars

_SHOWN_ROWS = 10


class Reading:
    """The maintained result of a query, as readers see it: `list`, `len`, `in`, Arrow, pages, look-ups, samples."""

    plan: Plan
    _engine: _kernel.Engine
    _functions: Functions
    _report: Report | None
    _name: str  # of the view in its engine

    @property
    def schema(self) -> pa.Schema:
        """The view's columns."""
        return pa.schema([pa.field(c.name, arrow_type(c.type), c.nullable) for c in self.plan.columns])

    @property
    def sql(self) -> str:
        """The query."""
        return self.plan.sql

    def __iter__(self) -> Iterator[Row]:
        """Return the rows, duplicates repeated, with constant delay; in the query's ORDER BY if it has one.

        An iterator shows the view as of the start of the iteration. If the view changes, the remaining rows
        are copied first; if there are more than a million, the next row raises a `CrownError` (use `to_arrow`).
        """
        if self.plan.order:
            rows = self.to_arrow()
            return zip(*(column.to_pylist() for column in rows.columns), strict=True)
        return self._engine.iterate(view=self._name)

    def count(self) -> int:
        """Return the number of rows, duplicates counted; in constant time where the plan allows it."""
        return self._engine.count(view=self._name)

    def __len__(self) -> int:
        """Return the number of rows, duplicates counted."""
        count = self.count()
        if count > sys.maxsize:
            raise CrownError(
                f"the view has {counted(count, 'row')}",
                code="CROWN-TOO-MANY-ROWS",
                reason="len() can return at most 2^63 - 1",
                hint="use count()",
            )
        return count

    def __bool__(self) -> bool:
        """A view is always true, even if it has no row."""
        return True

    def __contains__(self, row: object) -> bool:
        """Return whether the tuple is a row of the result."""
        return isinstance(row, tuple) and len(row) == len(self.plan.columns) and self.multiplicity(row) > 0

    def multiplicity(self, row: Row) -> int:
        """Return how often the row is in the result.

        A look-up in constant time if the plan stores rows that can be found by their values; `row in view` does the
        same. The whole result is read instead if COUNT, SUM or AVG are annotations of the tree, or if the
        query drops a variable that the tree had to output (`explain` shows both).
        """
        if not isinstance(row, tuple):
            raise CrownError(f"a row must be a tuple, not {shown(row)}", code="CROWN-ARGUMENT", hint="give a tuple")
        width = len(self.plan.columns)
        if len(row) != width:
            raise CrownError(
                f"the row has {counted(len(row), 'value')}, the view has {counted(width, 'column')}",
                code="CROWN-ARGUMENT",
                hint="give a value for each column",
            )
        found = self._engine.multiplicity(row, view=self._name)
        if found:
            return found
        # A value may be given as a table takes it: an ISO date, a float for a decimal.
        (cast,) = cast_rows([column.type for column in self.plan.columns], [row])
        return found if _same(cast, row) else self._engine.multiplicity(cast, view=self._name)

    def to_arrow(self, *, multiplicity: bool = False) -> pa.Table:
        """Return the full result, in the query's ORDER BY. With `multiplicity` each row once, with `_multiplicity`."""
        check_flag("multiplicity", multiplicity)
        return ordered(
            self.plan, read_all(self._engine.rows(multiplicity=multiplicity, view=self._name)), self._functions
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the result as an Arrow stream: `pl.DataFrame(view)`, `pa.table(view)`, `duckdb.sql("FROM view")`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the full result as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return the full result as a polars DataFrame."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def head(self, n: int = 10) -> pa.Table:
        """Return the first `n` rows: of the query's ORDER BY, or in the order in which they are enumerated."""
        return self.page(0, n)

    def page(self, offset: int, limit: int) -> pa.Table:
        """Return `limit` rows from position `offset` on.

        Positions are those of the query's ORDER BY, or else those of the enumeration, which only changes when the view
        does. Most are found by counting, in O(log N) for each row; `explain` says what it costs.
        """
        check_page(offset, limit)
        if self.plan.order:
            return ordered_page(self.plan, self._engine, self._name, offset, limit, self._functions)
        return read_all(self._engine.page(offset, limit, view=self._name))

    @overload
    def __getitem__(self, position: int) -> Row: ...

    @overload
    def __getitem__(self, position: slice) -> pa.Table: ...

    def __getitem__(self, position: int | slice) -> Row | pa.Table:
        """Return the row at a position, as `page` counts them, or with a slice a table."""
        if isinstance(position, slice):
            start, stop, step = position.indices(self.count())
            if step != 1:
                raise CrownError("a slice of a view has no step", code="CROWN-ARGUMENT", hint="use view[start:stop]")
            return self.page(start, max(stop - start, 0))
        if not isinstance(position, int) or isinstance(position, bool):
            raise CrownError(
                f"a position must be an integer, not {shown(position)}",
                code="CROWN-ARGUMENT",
                hint="use lookup(column=value) to find rows by their values",
            )
        count = self.count()
        if not -count <= position < count:
            raise IndexError(f"the view has {counted(count, 'row')}, so there is none at position {position}")
        rows = self.page(position % count, 1)
        return tuple(column[0].as_py() for column in rows.columns)

    def lookup(self, **values: object) -> pa.Table:
        """Return the rows with these values, by column name; None finds NULL.

        If the values are those of all columns, or determine a key of the plan's tree, only rows that have the key are
        visited. Otherwise the whole result is read.
        """
        return ordered(self.plan, self._matching(values), self._functions)

    def _matching(self, values: Mapping[str, object]) -> pa.Table:
        columns = [column.name for column in self.plan.columns]
        for name in values:
            if columns.count(name) != 1:
                raise CrownError(
                    f"the view has {'no' if name not in columns else 'more than one'} column {name}",
                    code="CROWN-ARGUMENT",
                    hint=f"the columns are {', '.join(columns)}",
                )
        positions = [columns.index(name) for name in values]
        (row,) = cast_rows([self.plan.columns[position].type for position in positions], [tuple(values.values())])
        return read_all(self._engine.lookup(positions, row, view=self._name))

    def sample(self, k: int, *, seed: int | None = None, where: Mapping[str, object] | None = None) -> pa.Table:
        """Return `k` random rows, with replacement; each row (each copy of it) is equally likely.

        `where` draws from the rows with these values, by column name; they are looked up as by `lookup`.
        """
        check_sample(k, seed)
        drawn = (random.getrandbits(63) if seed is None else seed) % 2**64
        if where is None:
            return read_all(self._engine.sample(k, drawn, view=self._name))
        if not isinstance(where, Mapping):
            raise CrownError(
                f"where must be a dict of values by column, not {shown(where)}",
                code="CROWN-ARGUMENT",
                hint="give where={'column': value}",
            )
        rows = self._matching(where)
        picks = random.Random(drawn).choices(range(rows.num_rows), k=k) if rows.num_rows else []
        return rows.take(pa.array(picks, pa.int64()))

    def explain(self) -> Explanation:
        """Return the guarantees and the reasons; print it, or call `.svg()`, `.html()` or `.json()`."""
        if self._report is None:
            raise PlanError(
                "this view was created from a plan, so there is nothing to explain",
                code="CROWN-PLAN-EXPLAIN",
                hint="create the view from SQL and a schema",
            )
        return explain(self.plan, self._report, {"page, view[k]": paging(self.plan)})

    def _state_bytes(self) -> int:
        return int(self._engine.stats()["bytes"])

    def __repr__(self) -> str:
        name = f" {self._name}" if self._name else ""
        query = " ".join(self.plan.sql.split())
        query = query if len(query) <= 100 else f"{query[:97]}..."
        try:
            state = f"{counted(self.count(), 'row')}, {_size(self._state_bytes())} of state"
        except CrownError as error:
            state = error.message
        return f"<crown.{type(self).__name__}{name}: {state}\n {query}>"

    def _repr_html_(self) -> str:
        """Shown by notebooks: the first rows, and the guarantee."""
        try:
            rows = self.head(_SHOWN_ROWS)
        except CrownError as error:
            return f"<pre>{escape(str(error))}</pre>"
        head = "".join(f"<th>{escape(name)}</th>" for name in rows.column_names)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in row) + "</tr>"
            for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)
        )
        notes = [f"{counted(self.count(), 'row')}, {_size(self._state_bytes())} of state"]
        if self._report is not None:
            notes += [
                f"{c.query_class}: {g.update} per update, {c.space} space"
                for c in self._report.conjunctions
                for g in c.guarantees
                if g.profile == "declared"
            ]
        text = "".join(f"<p>{escape(note)}</p>" for note in notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{text}"


def _same(a: Row, b: Row) -> bool:
    return all(x is y for x, y in zip(a, b, strict=True))


def _size(count: int) -> str:
    """Format a number of bytes.

    >>> _size(900), _size(3_500_000)
    ('900 bytes', '3.5 MB')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
