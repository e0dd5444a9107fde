"""Convert users' data to changes that the kernel reads: Arrow, or plain tuples for the fast path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from crown import _kernel
from crown.arrow import read_table
from crown.changes import CHANGE_TYPE, COMMIT_COLUMNS, DELETE, DELETIONS, INSERT, MULTIPLICITY, NetWord
from crown.errors import InvalidChange
from crown.ir.tables import Table
from crown.types import STRING, DataType
from crown.view.arguments import shown
from crown.view.casts import cast_column, cast_rows, may_be_cast
from crown.view.engines import read_all
from crown.wording import with_article

# Columns that describe a change, and their types.
CONTROL_COLUMNS = {CHANGE_TYPE: "string", MULTIPLICITY: "int64"}
# Further columns of deltas and of Delta's change feed.
_IGNORED = COMMIT_COLUMNS | {"_update"}
# For the kernel only: which parts of the plan get a change.
_RESERVED = "_atoms"


@dataclass(frozen=True)
class TableInput:
    """How data for one table is read. `columns` are all columns of the table as the schema lists them."""

    table: Table
    columns: tuple[str, ...]

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The required columns: those that the query reads."""
        return tuple(column.name for column in self.table.columns)

    @cached_property
    def types(self) -> dict[str, str]:
        return {column.name: column.type for column in self.table.columns} | CONTROL_COLUMNS

    @cached_property
    def _kinds(self) -> dict[str, DataType]:
        return {column.name: column.type for column in self.table.columns}

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """The positions of the required columns in a full tuple."""
        return tuple(self.columns.index(name) for name in self.needed)

    @cached_property
    def spelled(self) -> dict[str, str]:
        """Column names as the schema spells them, by lower-case name."""
        return {name.lower(): name for name in (*CONTROL_COLUMNS, *self.columns)}

    def tuples(self, rows: Sequence[Any]) -> list[tuple[Any, ...]] | None:
        """Return rows as tuples of the plan's columns, or None when they are not plain tuples."""
        if not all(type(row) is tuple for row in rows):
            return None
        width = len(self.columns)
        if any(len(row) != width for row in rows):
            return None
        if self.positions == tuple(range(width)):
            return list(rows)
        return [tuple(row[position] for position in self.positions) for row in rows]

    def arrow(self, data: Any, word: NetWord | None = None) -> Any:
        """Return the changes with `__arrow_c_stream__`; `word` makes all of them insertions or deletions."""
        if hasattr(data, "__arrow_c_stream__"):
            return self._finish(read_table(data, self.table.name), word)
        if isinstance(data, Mapping | str | bytes) or not isinstance(data, Iterable):
            raise self._error(
                f"{with_article(type(data).__name__)} is not a collection of rows of table {self.table.name}",
                hint="give a list of tuples or dicts, pandas, polars, pyarrow, or anything with __arrow_c_stream__",
            )
        return self._finish(self._from_rows(list(data), word), word)

    def _finish(self, table: pa.Table, word: NetWord | None) -> pa.Table:
        if not self._plain or not table.schema.equals(self._plain[0]):
            table = self._cast(self._named(table))
            if not any(may_be_cast(table.schema.field(name).type, kind) for name, kind in self._kinds_in(table)):
                self._plain[:] = [table.schema]
        if word is not None:
            if CHANGE_TYPE in table.column_names:
                raise self._error(
                    f"the input already has a {CHANGE_TYPE} column",
                    hint="use apply for rows with a change type, and other methods for plain rows",
                )
            if word == DELETE:
                indices = pa.repeat(pa.scalar(0, pa.int8()), table.num_rows)
                words = pa.DictionaryArray.from_arrays(indices, pa.array([DELETE]))
                table = table.append_column(CHANGE_TYPE, words)
        return table

    @cached_property
    def _plain(self) -> list[pa.Schema]:
        """The last schema whose data needs no other names or types, if any: batch after batch has the same."""
        return []

    def _kinds_in(self, table: pa.Table) -> Iterator[tuple[str, DataType]]:
        """The columns of the data that the query reads, and their types in the table."""
        return ((name, self._kinds[name]) for name in table.column_names if name in self._kinds)

    def _cast(self, table: pa.Table) -> pa.Table:
        """Return the columns in the types of the table where their values can be cast exactly."""
        for name, kind in self._kinds_in(table):
            given = table.column(name)
            column = cast_column(given, kind)
            if column is not given:
                table = table.set_column(table.column_names.index(name), name, column)
        return table

    def _named(self, table: pa.Table) -> pa.Table:
        """Return the columns under the schema's names, each once."""
        names = [self.spelled.get(name.lower(), name) for name in table.column_names]
        twice = next((name for name in (*self.needed, *CONTROL_COLUMNS) if names.count(name) > 1), None)
        if twice is not None:
            raise self._error(
                f"table {self.table.name}: the changes have column {twice} more than once",
                code="CROWN-CHANGE-COLUMN",
                hint="rename or drop one of them; names are not case-sensitive",
            )
        if _RESERVED in names and _RESERVED not in self.needed:
            raise self._error(
                f"table {self.table.name}: changes can't have a column {_RESERVED}",
                code="CROWN-CHANGE-COLUMN",
                reason="the name is reserved",
                hint="rename or drop the column",
            )
        return table if names == table.column_names else table.rename_columns(names)

    def _from_rows(self, rows: list[Any], word: NetWord | None) -> pa.Table:
        if rows and all(isinstance(row, Mapping) for row in rows):
            return self._from_dicts(rows, word)
        width = len(self.columns)
        key = self.table.primary_key
        if word == DELETE and key and rows and all(type(row) is tuple and len(row) == len(key) < width for row in rows):
            return self._table(key, rows)
        for index, row in enumerate(rows):
            if isinstance(row, Mapping | str | bytes) or not isinstance(row, Sequence) or len(row) != width:
                raise self._error(
                    f"table {self.table.name}, row {index}: {shown(row)} is not a row of {width} values",
                    reason=f"the columns are {', '.join(self.columns)}",
                    hint="give tuples in the order of the schema, or dicts by column name",
                )
        return self._table(self.needed, [tuple(row[position] for position in self.positions) for row in rows])

    def _from_dicts(self, rows: list[Mapping[Any, Any]], word: NetWord | None) -> pa.Table:
        named = [self._spell(index, row) for index, row in enumerate(rows)]
        given = {name for row in named for name in row}
        names = [name for name in (*self.needed, *CONTROL_COLUMNS) if name in given]
        for index, row in enumerate(named):
            self._check_complete(index, row, names, word)
        defaults = {CHANGE_TYPE: INSERT, MULTIPLICITY: 1}
        return self._table(names, [tuple(row.get(name, defaults.get(name)) for name in names) for row in named])

    def _spell(self, index: int, row: Mapping[Any, Any]) -> dict[str, Any]:
        """Return the row under the schema's names."""
        named: dict[str, Any] = {}
        for key, value in row.items():
            name = self.spelled.get(key.lower()) if isinstance(key, str) else None
            if name is None and key in _IGNORED:
                continue
            if name is None or name in named:
                problem = "has no column" if name is None else "gets more than once column"
                raise self._error(
                    f"table {self.table.name}, row {index}: the table {problem} {shown(key)}",
                    code="CROWN-CHANGE-COLUMN",
                    reason=f"the columns are {', '.join(self.columns)}",
                    hint="give each column once, with its name in the schema",
                )
            named[name] = value
        return named

    def _check_complete(self, index: int, row: Mapping[str, Any], names: Sequence[str], word: NetWord | None) -> None:
        """Check that no column is missing: only a deletion by PRIMARY KEY may omit columns."""
        key = self.table.primary_key
        by_key = bool(key) and (word or row.get(CHANGE_TYPE)) in DELETIONS
        for name in key if by_key else self.needed:
            # (A column that no row has is reported by the kernel.)
            if name in names and name not in row:
                raise self._error(
                    f"table {self.table.name}, row {index}: column {name} is missing",
                    code="CROWN-CHANGE-COLUMN",
                    hint="give None for NULL",
                )

    def _table(self, names: Sequence[str], rows: list[tuple[Any, ...]]) -> pa.Table:
        columns = [(name, self.types[name]) for name in names]
        try:
            return read_all(_kernel.rows_to_arrow(self.table.name, columns, rows))
        except InvalidChange as error:
            kinds = [self._kinds.get(name, STRING) for name in names]
            cast = cast_rows(kinds, rows)
            same = all(a is b for old, new in zip(rows, cast, strict=True) for a, b in zip(old, new, strict=True))
            if error.code != "CROWN-CHANGE-TYPE" or same:
                raise
        return read_all(_kernel.rows_to_arrow(self.table.name, columns, cast))

    def _error(
        self, message: str, *, code: str = "CROWN-CHANGE-TYPE", reason: str | None = None, hint: str | None = None
    ) -> InvalidChange:
        return InvalidChange(message, code=code, reason=reason, hint=hint)
