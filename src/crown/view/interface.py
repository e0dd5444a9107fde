"""The types of a view's inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypedDict

from crown.ir.tables import Window


class ArrowTable(Protocol):
    """Tables of pyarrow, pandas, polars, DuckDB: anything that exports Arrow data."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


# Rows of a table: tuples in the order of the schema, dicts by column name, or Arrow data.
Rows: TypeAlias = Iterable[Sequence[object] | Mapping[str, object]] | ArrowTable
# Rows by table, in this order.
Changes: TypeAlias = Mapping[str, Rows] | Sequence[tuple[str, Rows]]
# How tables change, and when their rows expire, by table name.
Profiles: TypeAlias = Mapping[str, str]
Windows: TypeAlias = Mapping[str, int] | Mapping[str, Mapping[str, object]] | Mapping[str, Window]
# A row of a result. Its types depend on the query, so a type checker can't know them.
Row: TypeAlias = tuple[Any, ...]


class TableStats(TypedDict):
    """`late` rows came after the window had passed them."""

    name: str
    bytes: int
    late: int
    stored_rows: int


class NodeStats(TypedDict):
    name: str
    rows: int
    keys: int
    bytes: int
    semi_join_rows: int
    updates: int
    moves: int
    counter_changes: int


class _Stage(TypedDict):
    id: str
    kind: str
    rows: int
    bytes: int


class StageStats(_Stage, total=False):
    """The last three are those of trees."""

    nodes: list[NodeStats]
    updates: int
    counter_changes: int


class _Stats(TypedDict):
    bytes: int
    batches: int
    changes: int
    updates: int
    counter_changes: int
    counter_changes_per_update: float
    rejects: int
    result_rows: int | None
    stages: list[StageStats]
    tables: list[TableStats]


class Stats(_Stats, total=False):
    """`engines` are those of a view with threads, by name."""

    interner: dict[str, int]
    engines: dict[str, Stats]


class SharedStage(StageStats):
    """A stage of a database, with the names of the views that read it."""

    shared_by: list[str]


class ViewStats(TypedDict):
    """What a view of a database reads; `own_bytes` are those of the stages that no other view reads."""

    stages: list[str]
    rows: int
    bytes: int
    own_bytes: int
    shared_with: list[str]


class DatabaseStats(TypedDict):
    """`interner` is what strings and other values of variable length take."""

    bytes: int
    interner: dict[str, int]
    batches: int
    changes: int
    updates: int
    counter_changes: int
    counter_changes_per_update: float
    rejects: int
    tables: list[TableStats]
    stages: list[SharedStage]
    views: dict[str, ViewStats]
