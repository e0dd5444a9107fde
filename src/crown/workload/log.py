"""Read update logs, the input of `crown.workload.profile`.

A log is one of
- one Arrow table (or Parquet, Arrow IPC or CSV file) of all changes in order of arrival, with a column `_table` that
  names each change's table; a table's own columns hold its row, those of other tables are NULL;
- a mapping from table name to Arrow table (or a folder with one such file per table), where `_sequence` orders the
  changes of all tables; with one table alone it may be left out.

`_change_type` is `insert`, `delete`, `update_preimage` or `update_postimage`; NULL means that the row existed before
the log began; without the column every change is an insertion. `_multiplicity`, when there, is the number of copies.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from crown.changes import CHANGE_TYPE, COMMIT_COLUMNS, MULTIPLICITY, SIGN
from crown.errors import InvalidChange
from crown.view.interface import ArrowTable
from crown.workload.lifespan import BEFORE, Moments

LogSource: TypeAlias = str | os.PathLike[str] | Mapping[str, ArrowTable] | ArrowTable

TABLE = "_table"
SEQUENCE = "_sequence"
_NOT_OF_THE_ROW = COMMIT_COLUMNS | {TABLE, SEQUENCE, CHANGE_TYPE, MULTIPLICITY}


@dataclass(frozen=True, eq=False)
class TableLog:
    """The changes of one table in order of arrival: rows, inserted (+) or deleted (-) copies, and when.

    Deletions take even moments and insertions odd ones, so that an upsert's two halves are apart.
    """

    rows: pa.Table
    change: Moments
    moment: Moments

    def __len__(self) -> int:
        return len(self.change)


def read_log(source: LogSource) -> dict[str, TableLog]:
    """Reads a log in any of the forms that this module's header lists."""
    if isinstance(source, (str, os.PathLike)):
        source = _read_path(Path(source))
    if isinstance(source, Mapping):
        return _read_mapping({name: _arrow(rows) for name, rows in source.items()})
    table = _arrow(source)
    if TABLE not in table.column_names:
        raise _bad(f"the log has no column {TABLE}", "name the table of each change, or give one log per table")
    names = table[TABLE].cast(pa.string())
    positions = np.arange(table.num_rows, dtype=np.int64)
    logs = {}
    for name in pc.unique(names).drop_null().to_pylist():
        mask = pc.equal(names, name)
        logs[name] = _table_log(name, table.filter(mask), positions[mask.to_numpy()])
    return logs


def _read_mapping(tables: dict[str, pa.Table]) -> dict[str, TableLog]:
    unordered = [name for name, table in tables.items() if SEQUENCE not in table.column_names]
    if unordered and len(tables) > 1:
        raise _bad(
            f"the log of {unordered[0]} has no column {SEQUENCE}",
            "number the changes of all tables in order of arrival",
        )
    sequences = [np.arange(table.num_rows) if unordered else table[SEQUENCE].to_numpy() for table in tables.values()]
    # Changes of different tables may have the same number: ranks separate them, in the order of the
    # tables.
    order = np.argsort(np.concatenate(sequences), kind="stable") if sequences else np.empty(0, np.int64)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    logs, offset = {}, 0
    for name, table in tables.items():
        own_rank = rank[offset : offset + table.num_rows]
        offset += table.num_rows
        arrival = np.argsort(own_rank)
        logs[name] = _table_log(name, table.take(pa.array(arrival)), own_rank[arrival])
    return logs


def _table_log(name: str, rows: pa.Table, position: Moments) -> TableLog:
    change = np.ones(rows.num_rows, np.int64)
    if MULTIPLICITY in rows.column_names:
        change *= rows[MULTIPLICITY].to_numpy()
    moment = 2 * position + 1
    if CHANGE_TYPE in rows.column_names:
        words = rows[CHANGE_TYPE].cast(pa.string())
        known = pa.array(SIGN)
        code = pc.index_in(words, value_set=known)
        unknown = pc.and_(pc.is_null(code), pc.is_valid(words))
        if pc.any(unknown).as_py():
            word = words.filter(unknown)[0].as_py()
            raise _bad(f"{word!r} is not a change type (table {name})", f"use one of {', '.join(SIGN)}")
        sign = np.array([*SIGN.values(), 1])[code.fill_null(len(SIGN)).to_numpy()]
        change *= sign
        moment = np.where(words.is_null().to_numpy(), BEFORE, 2 * position + (sign > 0))
    return TableLog(rows.select([c for c in rows.column_names if c not in _NOT_OF_THE_ROW]), change, moment)


def _read_path(path: Path) -> Any:
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith((".", "_")))
        return {file.name.split(".")[0]: _read_file(file) for file in files}
    if not path.exists():
        raise _bad(
            f"{path} does not exist", "give a Parquet, Arrow or CSV file, or a directory with one file per table"
        )
    return _read_file(path)


def _read_file(path: Path) -> pa.Table:
    try:
        if ".csv" in path.suffixes:
            with pa.input_stream(str(path), compression="detect") as stream:
                return pyarrow.csv.read_csv(
                    stream, convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True)
                )
        if path.suffix in (".arrow", ".feather", ".ipc"):
            return pyarrow.feather.read_table(path)
        return pyarrow.parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise _bad(f"{path} can't be read: {error}", "give a Parquet, Arrow or CSV file") from error


def _arrow(rows: Any) -> pa.Table:
    return rows if isinstance(rows, pa.Table) else pa.table(rows)


def _bad(message: str, hint: str) -> InvalidChange:
    return InvalidChange(message, code="CROWN-LOG", hint=hint)
