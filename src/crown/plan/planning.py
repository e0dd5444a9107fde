"""The state of planning one query: stages, their rows, and facts for the report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from crown.ir.columns import columns_of_stage
from crown.ir.plan import Stage, Variable, sources_of
from crown.ir.tables import Profile, Table
from crown.plan.explain.report import ConjunctionReport, Construct
from crown.plan.promise import looks_up
from crown.plan.tree.search_limit import Steps

FULL_SEARCHES = 4


@dataclass(frozen=True)
class StageRows:
    """The rows of a stage: its own columns, the names that the query gives them, and what is known of them."""

    stage: str
    columns: tuple[Variable, ...]
    names: tuple[str, ...]
    distinct: bool = False  # no row twice
    key: tuple[str, ...] | None = None  # own columns that distinguish rows; None: all of them


@dataclass
class Planning:
    sql: str
    tables: tuple[Table, ...]
    stages: list[Stage] = field(default_factory=list)
    conjunctions: list[ConjunctionReport] = field(default_factory=list)
    constructs: list[Construct] = field(default_factory=list)
    nested: dict[str, StageRows] = field(default_factory=dict)
    read_as_is: set[str] = field(default_factory=set)  # stages of nested queries that keep their rows in order
    guesses: int = 500  # left to find keys that would help: a hint must not cost more than the plan
    _searched: float = 0.0  # in full searches
    _search: tuple[Steps, int] = (Steps(0), 1)  # the last one, and the limit of a full one
    _tables_of: dict[str, frozenset[str]] = field(default_factory=dict)  # base tables under each stage
    _columns: dict[str, tuple[Variable, ...]] = field(default_factory=dict)
    _looks_up: dict[str, bool] = field(default_factory=dict)

    def add(self, stage: Stage) -> str:
        self.stages.append(stage)
        self._tables_of[stage.id] = frozenset().union(*(self.tables_under(source) for source in sources_of(stage)))
        self._columns[stage.id] = columns_of_stage(stage, self._columns)
        self._looks_up[stage.id] = looks_up(stage, self._looks_up, self._columns)
        return stage.id

    def stand_in(self, stage: str, columns: tuple[Variable, ...]) -> None:
        """Let stages read one that will not be in the plan, whose rows any table may change."""
        self._tables_of[stage] = frozenset(table.name for table in self.tables)
        self._columns[stage] = columns
        self._looks_up[stage] = False

    def can_look_up(self, rows: StageRows) -> bool:
        """Whether a set operation can look single rows up in `rows`."""
        return self._looks_up[rows.stage]

    def has(self, stage: str) -> bool:
        return stage in self._columns

    def new_id(self, kind: str) -> str:
        number = len(self.stages) + 1
        while self.has(f"${kind}{number}"):
            number += 1
        return f"${kind}{number}"

    def steps(self, limit: int) -> Steps:
        """The step limit of one more search. All searches of a query share the steps of a few full ones: later ones get
        the rest, but at least a fiftieth."""
        last, full = self._search
        self._searched += min(last.taken, last.limit) / full
        granted = Steps(max(limit // 50, int(limit * (1 - self._searched / FULL_SEARCHES))))
        self._search = granted, limit
        return granted

    def tables_under(self, source: str) -> frozenset[str]:
        return self._tables_of.get(source, frozenset({source}))

    def keys(self) -> dict[str, tuple[tuple[str, ...], str]]:
        """Columns that determine a row of a table or nested view, and how to name them, by source."""
        found = {
            table.name: (table.primary_key, f"PRIMARY KEY ({', '.join(table.primary_key)}) of {table.name}")
            for table in self.tables
            if table.primary_key
        }
        for name, rows in self.nested.items():
            if rows.distinct:
                key = tuple(column.name for column in rows.columns) if rows.key is None else rows.key
                found[rows.stage] = (key, f"one row for each ({', '.join(key)}) of {name}")
        return found

    def updates(self, source: str) -> float:
        """Expected updates of a table or stage: the sum over the tables under it that change."""
        return sum(table.updates for table in self._under(source) if profile_of(table) != "static")

    def profiles(self, source: str) -> frozenset[Profile]:
        return frozenset(profile_of(table) for table in self._under(source))

    def _under(self, source: str) -> Iterable[Table]:
        names = self.tables_under(source)
        return (table for table in self.tables if table.name in names)

    def note(self, name: str, stage: str, cost: str, loses: str = "") -> None:
        self.constructs.append(Construct(name, stage, cost, loses))


def profile_of(table: Table) -> Profile:
    """A window makes a table's own stream first in, first out."""
    return "fifo" if table.window is not None and table.profile in ("insert_only", "arbitrary") else table.profile
