"""Which guarantee holds, why no better one does, and what would provide it (section 5 of the paper).

q-hierarchical: constant time per update, always; so too when every key determines the row above it, since one change
then changes one row at each node. Height at most 2 and first in, first out: constant. Insertions only:
constant. Otherwise O(λ), the enclosureness of the updates under the tree, at most linear. Static tables never
update, so paths that start at them don't count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from typing import Literal as OneOf

from crown.ir.plan import TreeStage
from crown.ir.tables import Profile
from crown.plan.explain.missing_keys import MissingKey, missing_keys
from crown.plan.explain.report import AddedOutput, Candidate, ConjunctionReport, Guarantee
from crown.plan.planning import Planning
from crown.plan.tree.bags import bag_width
from crown.plan.tree.classify import is_free_connex, query_class
from crown.plan.tree.draft import Draft
from crown.plan.tree.hypergraph import union
from crown.plan.tree.keys import Dependency, closure, has_linear_result
from crown.plan.tree.optional import optional_atoms
from crown.plan.tree.price import relations_above, to_nodes

CANDIDATES = 12
PROFILES: Final[tuple[Profile | OneOf["declared"], ...]] = ("arbitrary", "fifo", "insert_only", "declared")


def conjunction_report(draft: Draft, stage: TreeStage, planning: Planning) -> ConjunctionReport:
    assert draft.trees is not None
    edges = [frozenset(atom.variables) for atom in draft.query_atoms]
    outputs = frozenset(draft.wanted) | (frozenset(draft.outputs) - frozenset(draft.added))
    if draft.added:
        # Showing an optional side requires what an inner join would require.
        edges += [frozenset(atom.variables) for atom in optional_atoms(draft.optional)]
    without_keys = query_class(edges, outputs)
    with_keys = without_keys
    if without_keys == "acyclic":
        closed = [closure(edge, draft.known) & union(edges) for edge in edges]
        if is_free_connex(closed, closure(outputs, draft.known)):
            with_keys = "free-connex"
    width = max((bag.width for bag in draft.bags), default=1)
    linear = has_linear_result(frozenset(draft.outputs), edges, draft.known)
    order = [variable.name for variable in draft.variables]
    height = _moving_height(stage, planning)
    effective = height if any(_reaches_many(stage, draft, planning)) else 1
    return ConjunctionReport(
        stage=stage.id,
        query_class=with_keys,
        class_without_keys=without_keys,
        width=width,
        height=_height(stage),
        atoms=tuple(atom.name for atom in draft.query_atoms),
        outputs=tuple(v for v in draft.outputs if v not in draft.added),
        added=tuple(
            AddedOutput(variable, _key_label(variable, draft)) if linear else AddedOutput(variable)
            for variable in draft.added
        ),
        bags=draft.bags,
        candidates=tuple(
            Candidate(to_nodes(subtree, draft.atoms, order), subtree.height, subtree.cost)
            for subtree in draft.trees.best[:CANDIDATES]
        ),
        considered=draft.trees.count,
        exhaustive=not any(steps.cut for steps in draft.searches),
        space="O(N)" if width == 1 else f"O(N^{width})",
        # A filter after enumeration is reported as a separate construct.
        delay="O(1) in the tree" if stage.residual or (draft.added and not linear) else "O(1)",
        guarantees=_guarantees(height, stage, draft, planning),
        why_not_better=_why_not(effective, draft, thanks_to_keys=with_keys != without_keys) + _cut(draft),
        improvements=_improvements(effective, stage, draft, planning),
    )


def _cut(draft: Draft) -> tuple[str, ...]:
    limits = [steps.limit for steps in draft.searches if steps.cut]
    return (f"the search stopped after {max(limits)} steps; a cheaper tree may exist",) if limits else ()


def _key_label(variable: str, draft: Draft) -> str:
    labels = [dependency.label for dependency in draft.known if variable in dependency.key]
    return labels[0] if labels else (draft.known[0].label if draft.known else "one atom holds all of it")


def _height(stage: TreeStage) -> int:
    """Relations on the longest path, conditions included."""
    above = relations_above(stage.nodes)
    return max((1 + len(above[i]) for i, node in enumerate(stage.nodes) if node.atom is not None), default=0)


def _moving_height(stage: TreeStage, planning: Planning) -> int:
    """Relations on the longest path that starts at an atom with updates, conditions included."""
    above = relations_above(stage.nodes)
    return max(
        (
            1 + len(above[index])
            for index, node in enumerate(stage.nodes)
            if node.atom is not None and planning.updates(stage.atoms[node.atom].source) > 0
        ),
        default=0,
    )


def _reaches_many(stage: TreeStage, draft: Draft, planning: Planning) -> list[tuple[int, ...]]:
    """For each node with updates, the nodes above it in which one change may change many rows."""
    found: list[tuple[int, ...]] = []
    for node in stage.nodes:
        above: tuple[int, ...] = ()
        # The rows that an optional child pads or fills are in the delta; only sums change unseen.
        unseen = node.edge != "optional" or (stage.mode == "ring" and not node.connex)
        if node.parent is not None and unseen:
            parent = stage.nodes[node.parent]
            one_row = frozenset(parent.variables) <= closure(frozenset(node.key), draft.known)
            above = (() if one_row else (node.parent,)) + found[node.parent]
        found.append(above)
    moves = [n.atom is not None and planning.updates(stage.atoms[n.atom].source) > 0 for n in stage.nodes]
    return [above if moving else () for above, moving in zip(found, moves, strict=True)]


def _guarantees(height: int, stage: TreeStage, draft: Draft, planning: Planning) -> tuple[Guarantee, ...]:
    if draft.bags:
        bag = max(draft.bags, key=lambda bag: bag.width)
        cost = "O(N)" if bag.width <= 2 else f"O(N^{bag.width - 1})"
        why = f"a change may affect that many rows of the bag {' ⋈ '.join(bag.atoms)} (width {bag.width})"
        return tuple(Guarantee(profile, cost, why) for profile in PROFILES)
    given: list[Guarantee] = []
    if not any(_reaches_many(stage, draft, planning)):
        always = (
            "no table that changes is below another one" if height <= 1 else "one change changes one row at each node"
        )
        given += [Guarantee("arbitrary", "O(1)", always), Guarantee("fifo", "O(1)", always)]
    else:
        enclosed = f"λ is the enclosureness of the updates for a tree of height {height}; at most linear"
        given.append(Guarantee("arbitrary", "O(λ)", enclosed))
        fifo = Guarantee("fifo", "O(1)", "the tree has height 2, so λ = 1")
        given.append(fifo if height == 2 else Guarantee("fifo", "O(λ)", enclosed))
    given.append(Guarantee("insert_only", "O(1)", "amortised, because rows only enter the views"))
    cost, why = _declared(stage, draft, planning)
    return (*given, Guarantee("declared", cost, why))


def _declared(stage: TreeStage, draft: Draft, planning: Planning) -> tuple[str, str]:
    """Check for every atom below a relation how its stream changes the rows above it."""
    above = relations_above(stage.nodes)
    reaches_many = _reaches_many(stage, draft, planning)
    profiles = [_profiles(index, stage, planning) for index in range(len(stage.nodes))]
    for index, node in enumerate(stage.nodes):
        if not reaches_many[index] or profiles[index] <= {"static", "insert_only"}:
            continue
        # No node counts as above one below an optional edge, yet its changes reach the sums of many
        # rows.
        in_order = len(above[index]) == 1 and profiles[index] == {"fifo"} == profiles[above[index][0]]
        is_leaf = all(index not in others for others in above)
        if not (in_order and is_leaf):
            name = stage.nodes[reaches_many[index][0]].name
            return (
                "O(λ)",
                f"rows of {node.name} are inserted and deleted in any order, and each may change many rows of {name}",
            )
    if not any(reaches_many):
        return "O(1)", "one change changes one row at each node"
    return "O(1)", "no table below a relation deletes rows, or both delete in order of arrival at height 2"


def _profiles(index: int, stage: TreeStage, planning: Planning) -> frozenset[Profile]:
    """Of a relation node its source's; of a derived node those of the atoms that make its rows."""
    node = stage.nodes[index]
    if node.atom is not None:
        return planning.profiles(stage.atoms[node.atom].source)
    guards = [i for i, n in enumerate(stage.nodes) if n.parent == index and len(n.key) == len(node.variables)]
    return frozenset().union(*(_profiles(guard, stage, planning) for guard in guards))


def _why_not(height: int, draft: Draft, *, thanks_to_keys: bool) -> tuple[str, ...]:
    reasons = []
    if draft.bags:
        for bag in draft.bags:
            size = f"of width {bag.width}" if bag.width > 1 else "which a primary key keeps linear"
            reasons.append(f"{', '.join(bag.atoms)} are part of a cycle, so their join is stored as a bag {size}")
    if draft.added:
        by_itself = " by itself" if thanks_to_keys else ""
        reasons.append(
            f"not free-connex{by_itself}: no table has all output variables of a group of tables that are joined "
            f"through variables that are not output; {', '.join(draft.added)} had to be added to the output"
        )
    if height > 1 and draft.trees is not None and draft.trees.best[0].height == 1:
        reasons.append(f"EXISTS or NOT EXISTS is below another table, which makes the height {height}")
    elif height > 1:
        reasons.append(f"no tree of height 1 exists (not q-hierarchical); the best has height {height}")
    return tuple(reasons)


def _improvements(height: int, stage: TreeStage, draft: Draft, planning: Planning) -> tuple[str, ...]:
    hints = _with_keys(stage, draft, planning)
    edges = [frozenset(atom.variables) for atom in draft.query_atoms]
    if draft.added and not has_linear_result(frozenset(draft.outputs), edges, draft.known):
        hints.append(f"selecting {', '.join(draft.added)} too would make the query free-connex")
    if height == 2 and not draft.bags:
        hints.append("declare the tables fifo (or with windows) or insert_only, if they are: then updates are O(1)")
    if height > 2 and not draft.bags:
        hints.append("declare tables insert_only or static if they are: then updates are O(1)")
    return tuple(hints)


def _with_keys(stage: TreeStage, draft: Draft, planning: Planning) -> list[str]:
    """The keys that would restore what is lost, if they hold."""
    edges = [frozenset(atom.variables) for atom in draft.query_atoms]
    number = {atom.name: position for position, atom in enumerate(draft.query_atoms)}
    bags = [[number[name] for name in bag.atoms] for bag in draft.bags]

    def rows_reached(known: Sequence[Dependency]) -> int:
        assumed = replace(draft, known=tuple(known))
        return sum(map(len, _reaches_many(stage, assumed, planning)))

    def extra_rows(known: Sequence[Dependency]) -> int:
        return min(len(frozenset(draft.outputs) - closure(edge, known)) for edge in edges)

    def extra_width(known: Sequence[Dependency]) -> int:
        return sum(bag_width(bag, edges, known) - 1 for bag in bags)

    hints = []
    if draft.added:
        hints += [(keys, "the result is linear") for keys in missing_keys(draft, planning, extra_rows)]
    if bags:
        hints += [(keys, "space is linear") for keys in missing_keys(draft, planning, extra_width)]
    elif _declared(stage, draft, planning)[0] != "O(1)":
        hints += [(keys, "updates are O(1)") for keys in missing_keys(draft, planning, rows_reached)]
    gained: dict[tuple[MissingKey, ...], list[str]] = {}
    for keys, gain in hints:
        gained.setdefault(keys, []).append(gain)
    return [f"declare {_listed(keys)}: then {' and '.join(gains)}" for keys, gains in gained.items()]


def _listed(keys: tuple[MissingKey, ...]) -> str:
    return f"{' and '.join(map(str, keys))}, if {'it is one' if len(keys) == 1 else 'they are'}"
