"""Profile a log of updates: the kind of each stream, its enclosureness, and the best tree for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from crown.ir.plan import Node, Plan, TreeStage, every_stage
from crown.ir.tables import Profile, Table
from crown.plan import plan_with_report
from crown.plan.explain.report import Candidate, ConjunctionReport, Report
from crown.plan.explain.words import tree_text
from crown.sql import parse
from crown.sql.schema.schema import SchemaLike
from crown.workload.enclosureness import enclosureness, tree_enclosureness
from crown.workload.lifespan import AFTER, BEFORE, Lifespans, concatenate, lifespans, row_codes
from crown.workload.log import LogSource, TableLog, read_log
from crown.workload.reduce import atom_lifespans, table_rows
from crown.workload.window import with_windows


@dataclass(frozen=True)
class TableProfile:
    name: str
    kind: Profile
    insertions: int
    deletions: int
    tuples: int  # lifespans: a row that is inserted again counts again


@dataclass(frozen=True)
class TreeProfile:
    """One tree that the planner considered, with the log's enclosureness under it."""

    stage: str
    rank: int  # in the planner's order; 0 is the plan's own tree
    tree: str
    height: int
    enclosureness: float
    candidate: Candidate = field(repr=False)


@dataclass(frozen=True)
class WorkloadProfile:
    """The result of `profile`; `str()` is for people, `to_json()` for machines."""

    updates: int
    kind: Profile  # of the log as a whole
    enclosureness: float  # definition 5.1
    tables: tuple[TableProfile, ...]
    trees: tuple[TreeProfile, ...] = ()
    notes: tuple[str, ...] = ()

    def suggested(self) -> tuple[TreeProfile, ...]:
        """For each stage the tree with the least enclosureness; the planner's order decides between equals."""
        best: dict[str, TreeProfile] = {}
        for tree in self.trees:
            if tree.stage not in best or tree.enclosureness < best[tree.stage].enclosureness:
                best[tree.stage] = tree
        return tuple(best.values())

    def profiles(self) -> dict[str, Profile]:
        """Return the kind of each table's stream, as planning takes it."""
        return {table.name: table.kind for table in self.tables}

    def to_json(self) -> dict[str, object]:
        data = asdict(self)
        for tree in data["trees"]:
            del tree["candidate"]
        data["suggested"] = {tree.stage: tree.tree for tree in self.suggested()}
        return data

    def __str__(self) -> str:
        lines = [f"{self.updates:,} updates, {_KIND_TEXT[self.kind]}, λ = {self.enclosureness:,.2f}", ""]
        width = max([5, *(len(t.name) for t in self.tables)])
        lines.append(f"{'table':<{width}}  {'stream':<11}  {'insertions':>11}  {'deletions':>11}")
        for table in self.tables:
            lines.append(f"{table.name:<{width}}  {table.kind:<11}  {table.insertions:>11,}  {table.deletions:>11,}")
        suggested = set(self.suggested())
        for tree in self.trees:
            if tree.rank == 0:
                lines += ["", f"trees of {tree.stage}" if len({t.stage for t in self.trees}) > 1 else "trees"]
            mark = "→" if tree in suggested else " "
            lines.append(f"{mark} λ = {tree.enclosureness:>12,.2f}  height {tree.height}  {tree.tree}")
        for tree in suggested:
            lines += ["", _advice(tree, self.trees)]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


_KIND_TEXT = {
    "static": "nothing changes",
    "insert_only": "insertions only",
    "fifo": "first in, first out",
    "arbitrary": "in arbitrary order",
}


def profile(
    log: LogSource, query: tuple[Plan, Report] | str | None = None, *, schema: SchemaLike | None = None
) -> WorkloadProfile:
    """Measure a log of updates (see `crown.workload.log` for its form).

    With a `query` (SQL with its `schema`, or what the planner made of it) the log is also measured under each tree
    that the planner considered, over the rows that really reach the atoms.

    >>> import pyarrow as pa
    >>> changes = pa.table({"_table": ["r", "s", "s", "r"], "_change_type": ["insert", "insert", "delete", "delete"],
    ...                     "x": [1, 2, 2, 1]})
    >>> print(profile(changes))
    4 updates, in arbitrary order, λ = 1.00
    <BLANKLINE>
    table  stream        insertions    deletions
    r      fifo                   1            1
    s      fifo                   1            1
    """
    logs = read_log(log)
    if isinstance(query, str):
        query = _planned(query, schema)
    if query is not None:
        logs = _query_logs(logs, query[0])
    spans = {name: lifespans(row_codes(own.rows), own.change, own.moment) for name, own in logs.items()}
    tables = tuple(
        TableProfile(
            name=name,
            kind=stream_kind(spans[name]),
            insertions=int(np.sum((own.change > 0) & (own.moment > BEFORE))),
            deletions=int(np.sum(own.change < 0)),
            tuples=len(spans[name]),
        )
        for name, own in logs.items()
    )
    whole = concatenate(list(spans.values()))
    trees, notes = _tree_profiles(logs, *query) if query is not None else ((), ())
    return WorkloadProfile(
        updates=sum(table.insertions + table.deletions for table in tables),
        kind=stream_kind(whole),
        enclosureness=enclosureness(whole),
        tables=tables,
        trees=trees,
        notes=notes,
    )


def stream_kind(spans: Lifespans) -> Profile:
    """Return the strongest of the four kinds that holds for all the lifespans.

    FIFO: rows are deleted in the order of insertion; rows that are never deleted come last. Rows from before the log
    have no order among themselves.
    """
    if bool(np.all((spans.start == BEFORE) & (spans.end == AFTER))):
        return "static"
    if bool(np.all(spans.end == AFTER)):
        return "insert_only"
    in_order = spans.end[np.lexsort((spans.end, spans.start))]
    return "fifo" if bool(np.all(in_order[1:] >= in_order[:-1])) else "arbitrary"


def _planned(sql: str, schema: SchemaLike | None) -> tuple[Plan, Report]:
    return plan_with_report(parse(sql, {} if schema is None else schema))


def _query_logs(logs: Mapping[str, TableLog], plan: Plan) -> dict[str, TableLog]:
    """Return the logs of the query's tables; a table that is not in the log is static, so it has none."""
    by_name = {name.lower(): log for name, log in logs.items()}
    rows = {
        table.name: table_rows(by_name[table.name.lower()], table)
        for table in plan.tables
        if table.name.lower() in by_name
    }
    return with_windows(rows, plan.tables)


def _tree_profiles(
    logs: Mapping[str, TableLog], plan: Plan, report: Report
) -> tuple[tuple[TreeProfile, ...], tuple[str, ...]]:
    stages = {stage.id: stage for stage in every_stage(plan) if isinstance(stage, TreeStage)}
    tables = {table.name: table for table in plan.tables}
    trees: list[TreeProfile] = []
    notes: list[str] = []
    for table in plan.tables:
        if table.name not in logs:
            notes.append(f"the log has no change of {table.name}, which is taken as static and empty")
    for conjunction in report.conjunctions:
        stage = stages[conjunction.stage]
        derived = [atom.name for atom in stage.atoms if atom.source not in tables]
        if derived:
            notes.append(f"{conjunction.stage} is not measured: rows of {derived[0]} are computed, not in the log")
            continue
        trees += _stage_trees(logs, tables, stage, conjunction)
    return tuple(trees), tuple(notes)


def _stage_trees(
    logs: Mapping[str, TableLog], tables: Mapping[str, Table], stage: TreeStage, conjunction: ConjunctionReport
) -> list[TreeProfile]:
    count = len(stage.atoms)
    nothing = concatenate([])
    atoms = {
        number: atom_lifespans(logs[atom.source], tables[atom.source], atom).scaled(count, number)
        if atom.source in logs
        else nothing
        for number, atom in enumerate(stage.atoms)
    }
    return [
        TreeProfile(
            stage=conjunction.stage,
            rank=rank,
            tree=tree_text(nodes),
            height=candidate.height,
            enclosureness=tree_enclosureness(nodes, atoms),
            candidate=candidate,
        )
        for rank, candidate in enumerate(conjunction.candidates)
        for nodes in [stage.nodes if rank == 0 else with_conditions(candidate.nodes, stage.nodes)]
    ]


def with_conditions(tree: tuple[Node, ...], own: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return a considered tree with the subtrees of EXISTS and NOT EXISTS that the plan's own tree has.

    Candidates are trees of the joined atoms alone. A condition hangs on the topmost node that has its key.
    """
    result = list(tree)
    moved: dict[int, int] = {}  # position in `own` to position in the result
    for position, node in enumerate(own):
        if node.edge != "join" and node.parent not in moved:
            key = set(node.key)
            parent = next(i for i, other in enumerate(tree) if key <= set(other.variables))
        elif node.parent in moved:
            parent = moved[node.parent]
        else:
            continue
        moved[position] = len(result)
        result.append(replace(node, parent=parent))
    return tuple(result)


def _advice(best: TreeProfile, trees: tuple[TreeProfile, ...]) -> str:
    own = next(tree for tree in trees if tree.stage == best.stage and tree.rank == 0)
    if best is own:
        return f"The tree of the plan is the best for this log: an update costs O(λ) with λ = {own.enclosureness:,.2f}."
    return (
        f"Use {best.tree}: λ = {best.enclosureness:,.2f} instead of {own.enclosureness:,.2f} "
        f"with the tree of the plan, {own.tree}."
    )
