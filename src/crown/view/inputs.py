"""Users' data as changes that the kernel reads: Arrow, or plain tuples for the short way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from crown.arrow import arrow_type, read_table
from crown.errors import InvalidChange
from crown.ir.tables import Table

CHANGE_TYPE = "_change_type"
CONTROL_COLUMNS = frozenset({CHANGE_TYPE, "_multiplicity", "_atoms"})

Changes: TypeAlias = Mapping[str, Any] | Sequence[tuple[str, Any]]
Word: TypeAlias = Literal["insert", "delete"]


@dataclass(frozen=True)
class TableInput:
    """How data for one table is read. `columns` are all columns of the table as the schema lists them."""

    table: Table
    columns: tuple[str, ...]

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The columns that must come: those that the query reads."""
        return tuple(column.name for column in self.table.columns)

    @cached_property
    def types(self) -> dict[str, pa.DataType]:
        return {column.name: arrow_type(column.type) for column in self.table.columns}

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """Where the needed columns are in a full tuple."""
        return tuple(self.columns.index(name) for name in self.needed)

    def tuples(self, rows: Sequence[Any]) -> list[tuple[Any, ...]] | None:
        """Rows as tuples of the plan's columns, or None when they are not plain tuples."""
        if not all(type(row) is tuple for row in rows):
            return None
        width = len(self.columns)
        if any(len(row) != width for row in rows):
            return None
        if self.positions == tuple(range(width)):
            return list(rows)
        return [tuple(row[position] for position in self.positions) for row in rows]

    def arrow(self, data: Any, word: Word | None = None) -> Any:
        """The changes as something with `__arrow_c_stream__`; `word` makes all of them insertions or deletions."""
        if hasattr(data, "__arrow_c_stream__"):
            return self._foreign(read_table(data, self.table.name), word)
        if isinstance(data, Mapping | str | bytes) or not isinstance(data, Iterable):
            raise self._error(
                f"changes of table {self.table.name} can't be read from {type(data).__name__}",
                hint="give a list of tuples or dicts, pandas, polars, pyarrow, or anything with __arrow_c_stream__",
            )
        return self._finish(self._from_rows(list(data)), word)

    def _foreign(self, data: pa.Table, word: Word | None) -> pa.Table:
        if word is None and set(self.needed) <= set(data.column_names):
            return data
        return self._finish(data, word)

    def _finish(self, table: pa.Table, word: Word | None) -> pa.Table:
        table = self._named(table)
        if word is not None:
            if CHANGE_TYPE in table.column_names:
                raise self._error(
                    f"the data says {CHANGE_TYPE} itself",
                    hint="use apply for changes that say what they are, insert and delete for plain rows",
                )
            if word == "delete":
                indices = pa.repeat(pa.scalar(0, pa.int8()), table.num_rows)
                words = pa.DictionaryArray.from_arrays(indices, pa.array(["delete"]))
                table = table.append_column(CHANGE_TYPE, words)
        return table

    def _named(self, table: pa.Table) -> pa.Table:
        """Column names as the schema spells them: SQL does not mind their case."""
        spelled = {name.lower(): name for name in self.columns}
        names = [name if name in CONTROL_COLUMNS else spelled.get(name.lower(), name) for name in table.column_names]
        return table if names == table.column_names else table.rename_columns(names)

    def _from_rows(self, rows: list[Any]) -> pa.Table:
        if rows and all(isinstance(row, Mapping) for row in rows):
            return self._from_dicts(rows)
        width = len(self.columns)
        for index, row in enumerate(rows):
            if isinstance(row, Mapping | str | bytes) or not isinstance(row, Sequence) or len(row) != width:
                raise self._error(
                    f"table {self.table.name}, row {index}: {row!r} is not a row of {width} values",
                    reason=f"the columns are {', '.join(self.columns)}",
                    hint="give tuples in the order of the schema, or dicts by column name",
                )
        columns = {name: [row[self.columns.index(name)] for row in rows] for name in self.needed}
        return pa.table({name: self._array(name, values) for name, values in columns.items()})

    def _from_dicts(self, rows: list[Mapping[str, Any]]) -> pa.Table:
        spelled = {name.lower(): name for name in self.columns} | {name: name for name in CONTROL_COLUMNS}
        renamed = [{spelled.get(str(key).lower(), str(key)): value for key, value in row.items()} for row in rows]
        given = {key for row in renamed for key in row}
        arrays = {}
        for name in self.needed:
            if name not in given:
                continue
            arrays[name] = self._array(name, [row.get(name) for row in renamed])
        if CHANGE_TYPE in given:
            arrays[CHANGE_TYPE] = self._array(CHANGE_TYPE, [row.get(CHANGE_TYPE, "insert") for row in renamed])
        if "_multiplicity" in given:
            arrays["_multiplicity"] = pa.array([row.get("_multiplicity", 1) for row in renamed], pa.int64())
        return pa.table(arrays)

    def _array(self, name: str, values: list[Any]) -> pa.Array:
        type_ = self.types.get(name, pa.string())
        try:
            return pa.array(values, type_)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            row = next((i for i, value in enumerate(values) if not _fits(value, type_)), 0)
            raise self._error(
                f"table {self.table.name}, column {name}, row {row}: {values[row]!r} is not {type_}",
                reason=str(error),
                hint="convert the value first",
            ) from error

    def _error(self, message: str, *, reason: str | None = None, hint: str | None = None) -> InvalidChange:
        return InvalidChange(message, code="CROWN-CHANGE-TYPE", reason=reason, hint=hint)


def _fits(value: Any, type_: pa.DataType) -> bool:
    try:
        pa.array([value], type_)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True
