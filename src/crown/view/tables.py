"""The tables of a schema, by the names that users write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from crown.changes import INSERT
from crown.errors import InvalidChange
from crown.ir.tables import CLOCK, Table
from crown.view.arguments import read_watermark, shown, table_changes
from crown.view.inputs import TableInput


class Tables:
    """All tables with their columns; those in `read` are read by a view, the others are checked and ignored."""

    def __init__(self, columns: Mapping[str, tuple[str, ...]], read: Iterable[Table]) -> None:
        self.timed = False  # whether the views that compare with now() know the time
        self.columns = {name.lower(): names for name, names in columns.items()}
        self._inputs: dict[str, TableInput] = {}
        for table in read:
            own = tuple(column.name for column in table.columns)
            self._inputs[table.name.lower()] = TableInput(table, self.columns.get(table.name.lower(), own))

    def find(self, table: object) -> TableInput | None:
        """Return the input of the table; None for tables of the schema that no view reads."""
        if not isinstance(table, str):
            raise InvalidChange(f"{shown(table)} is not the name of a table", code="CROWN-CHANGE-TABLE")
        name = table.lower()
        if name not in self._inputs and name not in self.columns:
            raise InvalidChange(
                f"there is no table {table}",
                code="CROWN-CHANGE-TABLE",
                hint=f"the tables are {', '.join(sorted(self.columns))}" if self.columns else "create it first",
            )
        return self._inputs.get(name)

    def changed(self, table: object) -> TableInput | None:
        """Return the input of a table that is about to change: `find`, if the views know the time or don't need it."""
        found = self.find(table)
        if CLOCK in self._inputs and not self.timed:
            raise InvalidChange(
                "the view does not know the time",
                code="CROWN-CHANGE-CLOCK",
                reason="the query compares with now(), which is the time of the last advance",
                hint="call advance(datetime.now(timezone.utc)) first, and whenever time has passed",
            )
        return found

    def at(self, now: datetime) -> tuple[str, Any]:
        """Return the change that sets the time of the views."""
        clock = self._inputs.get(CLOCK)
        if clock is None:
            raise InvalidChange(
                "the query does not read the time",
                code="CROWN-CHANGE-WINDOW",
                hint="compare a column with now(), or name the table whose window is to move",
            )
        self.timed = True
        return CLOCK, clock.arrow([(0, now if now.tzinfo is not None else now.replace(tzinfo=UTC))], INSERT)

    def arrow(self, changes: object) -> list[tuple[str, Any]]:
        """Return the changes that the kernel gets, by table, in order."""
        pairs = [(self.changed(name), data) for name, data in table_changes(changes)]
        return [(table.table.name, table.arrow(data)) for table, data in pairs if table is not None]

    def windowed(self, table: object) -> TableInput:
        """Return the input of a table that has a time window."""
        found = self.find(table)
        if found is None or found.table.window is None or found.table.window.interval is None:
            raise InvalidChange(
                f"table {table} has no time window",
                code="CROWN-CHANGE-WINDOW",
                hint="give it one in CREATE TABLE, or to a View with windows={table: {'interval': ...}}",
            )
        return found

    def watermark(self, table: str, watermark: object) -> tuple[str, int]:
        """Return a table that has a time window, and the watermark in the unit of the window's column."""
        found = self.windowed(table).table
        assert found.window is not None
        column = next(column for column in found.columns if column.name == found.window.column)
        return found.name, read_watermark(table, column.type, watermark)
