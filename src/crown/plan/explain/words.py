"""Words for the parts of a plan, shared by explain's text, picture and page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from crown.ir.plan import (
    AggregateStage,
    Atom,
    BagStage,
    DistinctStage,
    MapStage,
    MaterializeStage,
    Node,
    Plan,
    RecursionStage,
    SetOperationStage,
    Stage,
    TopStage,
    TreeStage,
    ValuesStage,
    WindowStage,
)
from crown.ir.query import NO_LIMIT
from crown.ir.render import to_text
from crown.plan.explain.labels import relabelled
from crown.plan.explain.report import AtomLoad, ConjunctionReport, Construct, Distribution, Report
from crown.wording import counted

PROFILE_TEXT = {
    "static": "static tables",
    "insert_only": "insertions only",
    "fifo": "first in, first out",
    "arbitrary": "arbitrary updates",
    "declared": "as declared",
}

Carried: TypeAlias = OneOf["sums", "copies", "existence"]


@dataclass(frozen=True)
class NodeFacts:
    """What to show of one node of a tree."""

    name: str
    kind: OneOf["relation", "bag", "generalised"]
    source: str  # the table or stage that a relation node reads, "" for generalised nodes
    variables: tuple[str, ...]
    outputs: frozenset[str]
    key: tuple[str, ...]
    edge: str
    connex: bool
    parent: int | None
    filter: str
    views: str  # empty for a leaf, whose semi-join view is all its rows
    carries: Carried  # what of its rows is in the result, apart from output variables


def node_facts(plan: Plan, stage: TreeStage) -> list[NodeFacts]:
    """Return the facts of each node, in the order of the stage's nodes."""
    tables = {table.name for table in plan.tables}
    outputs = frozenset(stage.outputs)
    written = relabelled(plan)
    facts = []
    for position, node in enumerate(stage.nodes):
        atom = None if node.atom is None else stage.atoms[node.atom]
        source, kind = "", "generalised"
        if atom is not None:
            source, kind = atom.source, "relation" if atom.source in tables else "bag"
            if isinstance(bag := plan.by_id.get(atom.source), BagStage):
                source = "join of " + ", ".join(a.name for a in bag.atoms)
        facts.append(
            NodeFacts(
                name=written(node.name),
                kind=kind,  # type: ignore[arg-type]
                source=source,
                variables=tuple(map(written, node.variables)),
                outputs=frozenset(map(written, outputs & frozenset(node.variables))),
                key=tuple(map(written, node.key)),
                edge=node.edge,
                connex=node.connex,
                parent=node.parent,
                filter="" if atom is None or atom.filter is None else to_text(atom.filter),
                views=written(_views(stage, position, atom)),
                carries=_carried(stage, position),
            )
        )
    return facts


def _carried(stage: TreeStage, position: int | None) -> Carried:
    while position is not None:
        if stage.nodes[position].edge in ("exists", "anti"):
            return "existence"
        position = stage.nodes[position].parent
    carried: dict[str, Carried] = {"ring": "sums", "bag": "copies", "set": "existence"}
    return carried[stage.mode]


def _views(stage: TreeStage, position: int, atom: Atom | None) -> str:
    """The definition of the node's semi-join view: ⋉ is the paper's semi-join, ▷ the anti-join, ⟕ the outer join."""
    node = stage.nodes[position]
    children = [child for child in stage.nodes if child.parent == position]
    if atom is None:
        guards = [child for child in children if child.edge not in ("anti", "optional")]
        others = [child for child in children if child not in guards]
        return "keys in all of " + ", ".join(c.name for c in guards) + _steps(others)
    return node.name + _steps(children) if children else ""


def _steps(children: list[Node]) -> str:
    signs = {"anti": "▷", "optional": "⟕"}
    return "".join(f" {signs.get(child.edge, '⋉')} {child.name}" for child in children)


def tree_text(nodes: tuple[Node, ...]) -> str:
    """Return a tree on one line: each node with its children in parentheses.

    >>> nodes = (Node("[b]", ("b",), None, None, (), True), Node("r", ("a", "b"), 0, 0, ("b",), True),
    ...          Node("s", ("b",), 1, 0, ("b",), False))
    >>> tree_text(nodes)
    '[b](r, s)'
    """

    def text(position: int) -> str:
        children = [text(c) for c, node in enumerate(nodes) if node.parent == position]
        return nodes[position].name + (f"({', '.join(children)})" if children else "")

    return text(0)


def guarantees(conjunction: ConjunctionReport) -> list[tuple[str, str, str]]:
    """Return cost, profiles and reason of each guarantee; profiles with the same cost and reason together."""
    found: dict[tuple[str, str], list[str]] = {}
    for guarantee in conjunction.guarantees:
        found.setdefault((guarantee.update, guarantee.why), []).append(PROFILE_TEXT[guarantee.profile])
    return [(update, "; ".join(profiles), why) for (update, why), profiles in found.items()]


def distinct_constructs(report: Report) -> list[Construct]:
    """Return the constructs; identical ones of several stages appear once."""
    return list({(c.name, c.cost, c.loses): c for c in reversed(report.constructs)}.values())[::-1]


def class_text(conjunction: ConjunctionReport) -> str:
    """Return the class of a conjunction, with what it owes to primary keys, bags and added outputs."""
    text: str = conjunction.query_class
    if conjunction.width > 1:
        text += f", width {conjunction.width}"
    if conjunction.class_without_keys != conjunction.query_class:
        text += f" thanks to primary keys ({conjunction.class_without_keys} without them)"
    return text


def added_text(variable: str, determined_by: str) -> str:
    why = f"determined by {determined_by}, so the result stays linear" if determined_by else "nothing determines it"
    return f"{variable} ({why})"


def load_text(load: AtomLoad, distribution: Distribution) -> str:
    """Return the atom of a load, with its stage where there are several."""
    several = len({other.stage for other in distribution.loads}) > 1
    return f"{load.stage} {load.atom}" if several else load.atom


def stage_text(stage: Stage) -> str:
    """Return one line on what a stage does."""
    match stage:
        case BagStage():
            return f"bag: delta joins of {', '.join(atom.name for atom in stage.atoms)}"
        case TreeStage():
            mode = {"set": "each row once", "bag": "rows with multiplicity", "ring": "aggregates in the tree"}[
                stage.mode
            ]
            kept = f", then keep {' AND '.join(map(to_text, stage.residual))}" if stage.residual else ""
            return f"tree over {', '.join(atom.name for atom in stage.atoms)}: {mode}{kept}"
        case MapStage():
            kept = f"keep {to_text(stage.filter)}, " if stage.filter is not None else ""
            return f"{kept}compute {', '.join(column.name for column in stage.columns)}"
        case AggregateStage():
            by = f" by {', '.join(stage.group)}" if stage.group else ""
            return f"aggregate {', '.join(column.name for column in stage.aggregates)}{by}"
        case DistinctStage():
            return "distinct rows"
        case MaterializeStage():
            return "store rows for look-up"
        case SetOperationStage():
            return f"{stage.operator}{' all' if stage.all else ''} of {' and '.join(stage.inputs)}"
        case ValuesStage():
            return f"{counted(len(stage.rows), 'row')} of the query itself"
        case TopStage() if stage.limit >= NO_LIMIT:
            return f"all rows in order{f', without the first {stage.offset}' if stage.offset else ''}"
        case RecursionStage():
            duplicates, steps = "with" if stage.all else "without", ", ".join(inner.id for inner in stage.stages)
            return f"recursion {stage.name} from {stage.base}, {duplicates} duplicates; a round: {steps}"
        case WindowStage():
            of = f" of each ({', '.join(stage.partition)})" if stage.partition else ""
            return f"window functions {', '.join(column.name for column in stage.columns)} over the rows{of} in order"
        case TopStage():
            skipped = f" after {stage.offset}" if stage.offset else ""
            if stage.partition or stage.ranks or stage.by != "row_number":
                of = f" for each ({', '.join(stage.partition)})" if stage.partition else ""
                return f"rows with {stage.by} up to {stage.limit}{of}"
            return f"first {counted(stage.limit, 'row')}{skipped}"
