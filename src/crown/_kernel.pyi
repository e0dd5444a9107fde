"""The Rust kernel, as Python sees it. Private: use `crown.View` or `crown.spark`."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

__version__: str

def constant(expression: str) -> str:
    """The value of an expression without columns; both are JSON, as in a plan."""

class ArrowStream:
    """Arrow record batches under the PyCapsule protocol: `pyarrow.table(stream)`, `polars.from_arrow(...)`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def check(self) -> None:
        """Raise what reading the stream failed with, if it did: Arrow's own error has only its text."""

def rows_to_arrow(table: str, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[Any, ...]]) -> ArrowStream:
    """Tuples as Arrow columns of the given names and types; `table` is for messages."""

class Engine:
    """A view of one plan: one cell, or several (`spread`).

    Calls from several threads run one after the other; the GIL is released while they wait and work. Each batch is
    applied whole or not at all.
    """

    def __init__(self, plan: str, *, deltas: bool = True) -> None:
        """`plan` is the Plan's JSON. Without `deltas` nothing is kept for them and `apply` returns no rows."""

    @staticmethod
    def spread(
        plan: str,
        cells: int,
        *,
        front: str | None = None,
        merge: str | None = None,
        deltas: bool = True,
        parts: dict[str, list[bytes]] | None = None,
    ) -> Engine:
        """Several cells of a plan with a routing.

        `front` is a plan with one tree for each table whose changes are resolved before they are routed, `merge` one
        that reads the cells' outputs; `parts` is what `save_parts` gave.
        """

    def apply(
        self,
        changes: Sequence[tuple[str, Any]],
        *,
        per_update: bool = False,
        on_invalid: Literal["raise", "quarantine"] = "raise",
    ) -> ArrowStream:
        """Apply tables of changes in order; each is (table name, anything with `__arrow_c_stream__`).

        A change table has the table's columns by name (others are ignored), optionally
        `_change_type` (insert when absent or NULL-free absent), `_multiplicity` (int64, 1 when absent) and
        `_atoms` (uint64 mask of routes; all when absent).
        The result has the view's columns, `_change_type`, for bags `_multiplicity`, and with `per_update`
        `_update`, the position (0-based, over the whole call) of the change that caused the row.
        """

    def apply_rows(
        self,
        table: str,
        rows: Sequence[tuple[Any, ...]],
        *,
        delete: bool = False,
        on_invalid: Literal["raise", "quarantine"] = "raise",
    ) -> ArrowStream:
        """The short way for few rows: tuples in the order of the table's plan columns."""

    def stream(
        self,
        changes: Sequence[tuple[str, Any]],
        *,
        per_update: bool = False,
        on_invalid: Literal["raise", "quarantine"] = "raise",
    ) -> ArrowStream:
        """As `apply`, but deltas come while they are read; reading to the end (or dropping) completes the batch."""

    def advance(self, table: str, watermark: int) -> ArrowStream:
        """Move a time window's clock forward without new rows; returns the delta."""

    def rows(self, *, chunk_rows: int = 65536, multiplicity: bool = False) -> ArrowStream:
        """The full result. With `multiplicity` each distinct row once with `_multiplicity`, else repeated as in SQL."""

    def iterate(self) -> Iterator[tuple[Any, ...]]:
        """The full result as tuples with constant delay, as it was when this was called."""

    def multiplicity(self, row: tuple[Any, ...]) -> int:
        """How often the row is in the result; 0 when absent."""

    def count(self) -> int:
        """The number of result rows, duplicates counted; constant time where the plan allows it."""

    def sample(self, rows: int, seed: int) -> ArrowStream:
        """Uniform with replacement over the result, duplicates counted; not enumerated where the plan allows it."""

    def save(self) -> list[bytes]:
        """The state as Arrow IPC chunks of about 1 MB each; the first one is the header."""

    def save_parts(self) -> dict[str, list[bytes]]:
        """The state of each part by name; one cell alone is "engine"."""

    @staticmethod
    def load(plan: str, chunks: Sequence[bytes], *, deltas: bool = True) -> Engine: ...
    def rejected(self, *, keep: bool = False) -> ArrowStream:
        """Quarantined changes: table, position, reason, row (as JSON text); without `keep` the list is emptied."""

    def page(self, offset: int, limit: int) -> ArrowStream:
        """Rows `offset` to `offset + limit` of the enumeration, each with its `_multiplicity`."""

    def hot_keys(self, limit: int) -> list[list[dict[str, Any]]]:
        """Per cell, the keys of each node that the most rows share: stage, node, key, rows, rows of the parent."""

    def stats(self) -> dict[str, Any]:
        """JSON-like: rows, keys and bytes per node and stage, updates, counter changes and their ratio, rejects."""

class Router:
    """Sends each change to its HyperCube cells, by the plan's routing."""

    def __init__(self, plan: str) -> None: ...
    def route(self, table: str, changes: Any) -> list[tuple[int, ArrowStream]]:
        """Per cell with at least one row: the rows it needs, in order, with an `_atoms` mask."""

class PairwiseBaseline:
    """For benchmarks: a chain of pairwise joins over integer atoms, with every intermediate view kept."""

    def __init__(self, atoms: Sequence[Sequence[str]]) -> None:
        """Lists of variables, in the order in which the atoms are joined."""

    def apply(self, atoms: Sequence[int], changes: Any) -> ArrowStream:
        """Apply each row to all of `atoms` in turn: int64 columns, the weight last.

        Gives the result's columns and `weight`.
        """

    def state(self) -> tuple[int, int]:
        """Rows and bytes of all views."""
