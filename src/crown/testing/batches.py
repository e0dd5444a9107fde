"""Batches of changes as the judge reads them: one row each, in the order of the table's columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from crown.arrow import read_table
from crown.changes import CHANGE_TYPE, INSERT, MULTIPLICITY, SIGN
from crown.errors import InvalidChange
from crown.view.arguments import table_changes
from crown.view.interface import Changes, Row


@dataclass(frozen=True)
class Change:
    """One row that is inserted (`weight` 1) or deleted (`weight` -1)."""

    table: str
    row: Row
    weight: int = 1


# A list of changes, or of tuples with the fields of one; or tables and data as `View.apply` takes
# them.
Batch: TypeAlias = Iterable[Change] | Iterable[tuple[str, Row, int]] | Changes


def read_batch(batch: Batch, columns: Mapping[str, Sequence[str]]) -> list[Change]:
    """Return the changes of a batch; `columns` lists the columns of each table.

    >>> read_batch({"r": [{"a": 1, "_change_type": "delete"}]}, {"r": ["a"]})
    [Change(table='r', row=(1,), weight=-1)]
    """
    given: list[Any] = list(batch.items() if isinstance(batch, Mapping) else batch)
    if all(isinstance(change, Change) for change in given):
        return given
    if all(isinstance(change, tuple) and len(change) == 3 for change in given):
        return [Change(*change) for change in given]
    return [change for name, data in table_changes(given) for change in _table(name, data, columns)]


def _table(name: str, data: Any, columns: Mapping[str, Sequence[str]]) -> Iterator[Change]:
    found = next((table for table in columns if table.lower() == name.lower()), None)
    if found is None:
        raise InvalidChange(
            f"there is no table {name}", code="CROWN-CHANGE-TABLE", hint=f"the tables are {', '.join(columns)}"
        )
    rows = read_table(data, found).to_pylist() if hasattr(data, "__arrow_c_stream__") else data
    for row in rows:
        if not isinstance(row, Mapping):
            yield Change(found, tuple(row))
            continue
        named = {key.lower(): value for key, value in row.items()}
        weight = SIGN[named.get(CHANGE_TYPE, INSERT)]
        whole = Change(found, tuple(named.get(column.lower()) for column in columns[found]), weight)
        yield from [whole] * named.get(MULTIPLICITY, 1)
