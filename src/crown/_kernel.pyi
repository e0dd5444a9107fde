"""The Rust kernel, as Python sees it. Private: use `crown.View` or `crown.spark`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

__version__: str

Functions: TypeAlias = dict[str, Callable[[Any], Any]]  # by name; a stream of arguments to a stream of values

def constant(expression: str, *, functions: Functions | None = None) -> str:
    """The value of an expression without columns; both are JSON, as in a plan."""

class ArrowStream:
    """Arrow record batches under the PyCapsule protocol: `pyarrow.table(stream)`, `polars.from_arrow(...)`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def check(self) -> None:
        """Raise what reading the stream failed with, if it did: Arrow's own error has only its text."""

def rows_to_arrow(table: str, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[Any, ...]]) -> ArrowStream:
    """Tuples as Arrow columns of the given names and types; `table` is for messages."""

def value_order(rows: object) -> ArrowStream:
    """The places of rows of deltas in the order of their values, NULLs last, in a column `place`."""

class Prepared:
    """New stages of an engine that were built while it went on."""

class Engine:
    """A view of one plan: one cell, or several (`spread`).

    Calls from several threads run one after the other; the GIL is released while they wait and work. Each batch is
    applied whole or not at all.
    """

    def __init__(self, plan: str, *, deltas: bool = True, functions: Functions | None = None) -> None:
        """`plan` is the Plan's JSON. Without `deltas` nothing is kept for them and `apply` returns no rows."""

    @staticmethod
    def spread(
        plan: str,
        cells: int,
        *,
        front: str | None = None,
        merge: str | None = None,
        views: Sequence[str] = (),
        deltas: bool = True,
        parts: dict[str, list[bytes]] | None = None,
        functions: Functions | None = None,
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

    def apply_all(
        self, changes: Sequence[tuple[str, Any]], *, on_invalid: Literal["raise", "quarantine"] = "raise"
    ) -> list[tuple[str, int, ArrowStream]]:
        """Apply tables of changes in order; return the name of each view, and the rows of its delta."""

    def apply_rows_all(
        self,
        table: str,
        rows: Sequence[tuple[Any, ...]],
        *,
        delete: bool = False,
        on_invalid: Literal["raise", "quarantine"] = "raise",
    ) -> list[tuple[str, int, ArrowStream]]:
        """As `apply_rows`; return the name of each view, and the rows of its delta."""

    def advance_all(self, table: str, watermark: int) -> list[tuple[str, int, ArrowStream]]:
        """Move a time window's clock forward; return the name of each view, and the rows of its delta."""

    def prepare(
        self,
        plan: str,
        *,
        functions: Functions | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Prepared | None:
        """Build what is new in a plan as far as possible, while the views go on, for `replan` to take over.

        Return None if `replan` has to do everything. `progress` is as there.
        """

    def replan(
        self,
        plan: str,
        *,
        cells: int = 1,
        front: str | None = None,
        merge: str | None = None,
        views: Sequence[str] = (),
        deltas: bool = True,
        empty: Sequence[str] = (),
        fresh: bool = False,
        functions: Functions | None = None,
        progress: Callable[[int, int], object] | None = None,
        prepared: Prepared | None = None,
    ) -> None:
        """Run other views from now on; an error leaves everything as it was.

        Stages that stay keep their state. New ones are built from the rows of their tables, except of those that are
        `empty`. `fresh`: no table ever had a row. `progress` is called with the rows read so far and all that are to
        be read; if it raises, nothing has changed. It can't use a view.
        """

    def table_rows(self, table: str) -> ArrowStream | None:
        """Return all rows of a table with `_multiplicity`; None if they are not kept whole."""

    def lookup(self, columns: Sequence[int], values: tuple[Any, ...], *, view: str = "") -> ArrowStream:
        """Return the rows with these values in these columns, by position."""

    def page(self, offset: int, limit: int, *, view: str = "") -> ArrowStream:
        """Return rows by their position in the enumeration."""

    def ordered_page(
        self,
        order: str,
        columns: Sequence[str],
        offset: int,
        limit: int,
        *,
        view: str = "",
        functions: Functions | None = None,
    ) -> ArrowStream | None:
        """Return rows by their position in an order: the JSON of a plan's `order`, over columns of these names.

        None if the rows are in several cells. From the second page on the order is kept and follows the changes.
        """

    def advance(self, table: str, watermark: int) -> ArrowStream:
        """Move a time window's clock forward without new rows; returns the delta."""

    def rows(self, *, chunk_rows: int = 65536, multiplicity: bool = False, view: str = "") -> ArrowStream:
        """The full result. With `multiplicity` each distinct row once with `_multiplicity`, else repeated as in SQL."""

    def iterate(self, *, view: str = "") -> Iterator[tuple[Any, ...]]:
        """The full result as tuples with constant delay, as it was when this was called."""

    def multiplicity(self, row: tuple[Any, ...], *, view: str = "") -> int:
        """How often the row is in the result; 0 when absent."""

    def count(self, *, view: str = "") -> int:
        """The number of result rows, duplicates counted; constant time where the plan allows it."""

    def sample(self, rows: int, seed: int, *, view: str = "") -> ArrowStream:
        """Uniform with replacement over the result, duplicates counted; not enumerated where the plan allows it."""

    def save(self) -> list[bytes]:
        """The state as Arrow IPC chunks of about 1 MB each; the first one is the header."""

    def save_parts(self) -> dict[str, list[bytes]]:
        """The state of each part by name; one cell alone is "engine"."""

    @staticmethod
    def load(
        plan: str, chunks: Sequence[bytes], *, deltas: bool = True, functions: Functions | None = None
    ) -> Engine: ...
    @staticmethod
    def rebuild(
        plan: str,
        chunks: Sequence[bytes],
        batches: Iterable[Sequence[tuple[str, Any]]],
        *,
        deltas: bool = True,
        on_invalid: Literal["raise", "quarantine"] = "raise",
    ) -> Engine:
        """`load` the chunks, if there are any, then apply the batches again, without enumerating their deltas."""

    def rejected(self, *, keep: bool = False) -> ArrowStream:
        """Quarantined changes: table, position, reason, row (as JSON text); without `keep` the list is emptied."""

    def distinct_page(self, offset: int, limit: int, *, view: str = "") -> ArrowStream:
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
