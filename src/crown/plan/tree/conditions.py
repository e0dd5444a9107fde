"""EXISTS and NOT EXISTS as subtrees: their root's key is the correlation, the variables shared with the outer atoms.

An EXISTS over unconnected parts is one EXISTS for each part. A condition that is not a single tree under its
correlation (cyclic, unconnected under NOT, or no atom holds the correlation) is planned as a separate view whose
rows are the correlation values, and is attached as one atom over that view.

A condition inside a condition may read variables two levels up. The middle level then gets them from a copy of the
outer atom that holds them, reduced to those variables: it is evaluated only for outer rows anyway. A copy has the outer
atom's NULLs: they match themselves, and only the inner condition must not match them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from crown.ir.expression import Column
from crown.ir.plan import Atom, Binding, Node
from crown.ir.query import Condition, Conjunction, Named
from crown.plan.planning import Planning, StageRows
from crown.plan.tree.draft import Draft, HangingCondition
from crown.plan.tree.hypergraph import Hyperedge, connected, is_acyclic
from crown.plan.tree.nulls import variables_in
from crown.plan.tree.price import to_nodes
from crown.plan.tree.trees import existential_tree

PlanView: TypeAlias = Callable[[Conjunction, tuple[str, ...]], StageRows]


def draft_conditions(draft: Draft, planning: Planning, plan_view: PlanView) -> Draft:
    """Each condition becomes one or more subtrees; where they are attached is decided when the tree is known."""
    hanging = tuple(
        hung
        for condition in draft.conditions
        for part in _parts(_carry(condition, draft.atoms))
        for hung in [_hang(part, variables_in(draft.atoms), draft, planning, plan_view)]
    )
    return replace(draft, hanging=hanging)


def _carry(condition: Condition, outer: Sequence[Atom]) -> Condition:
    """Return the condition with copies of outer atoms for variables that only its inner conditions read."""
    held = variables_in(condition.atoms)
    missing = {v for inner in condition.conditions for v in variables_in(inner.atoms)} & variables_in(outer) - held
    copies = []
    for atom in outer:
        taken = [v for v in atom.variables if v in missing]
        if taken:
            missing -= set(taken)
            bindings = tuple(binding for binding in atom.bindings if binding.variable in taken)
            not_null = tuple(v for v in taken if v in atom.not_null)
            copies.append(replace(atom, name=f"{atom.name}'", bindings=bindings, not_null=not_null))
    atoms = condition.atoms + tuple(copies)
    return replace(condition, atoms=atoms, conditions=tuple(_carry(inner, atoms) for inner in condition.conditions))


def _parts(condition: Condition) -> list[Condition]:
    if condition.negated:
        return [condition]
    groups = connected([frozenset(atom.variables) for atom in condition.atoms])
    if len(groups) == 1:
        return [condition]
    parts: list[list[Condition]] = [[] for _ in groups]
    for inner in condition.conditions:
        read = variables_in(inner.atoms) & variables_in(condition.atoms)
        homes = [i for i, group in enumerate(groups) if read <= variables_in([condition.atoms[a] for a in group])]
        if not homes:
            return [condition]
        parts[homes[0]].append(inner)
    return [
        Condition(tuple(condition.atoms[a] for a in group), False, tuple(inner))
        for group, inner in zip(groups, parts, strict=True)
    ]


def _hang(
    condition: Condition, outer: Hyperedge, draft: Draft, planning: Planning, plan_view: PlanView
) -> HangingCondition:
    held = variables_in(condition.atoms)
    key = held & outer
    edges = [frozenset(atom.variables) for atom in condition.atoms]
    inner = [part for nested in condition.conditions for part in _parts(nested)]
    inner_keys = [held & variables_in(part.atoms) for part in inner]
    is_tree = len(connected(edges)) == 1 and is_acyclic(edges)
    if is_tree and all(any(inner_key <= edge for edge in edges) for inner_key in inner_keys):
        subtree = existential_tree(edges, key, [planning.updates(atom.source) for atom in condition.atoms])
        if subtree is not None:
            below = tuple(_hang(part, held, draft, planning, plan_view) for part in inner)
            return HangingCondition(condition.negated, key, condition.atoms, subtree, below)
    return _as_view(condition, key, draft, planning, plan_view)


def _as_view(
    condition: Condition, key: Hyperedge, draft: Draft, planning: Planning, plan_view: PlanView
) -> HangingCondition:
    wanted = tuple(variable.name for variable in draft.variables if variable.name in key)
    types = {variable.name: variable.type for variable in draft.variables}
    columns = tuple(Named(name, Column(name, types[name])) for name in wanted)
    rows = plan_view(Conjunction(draft.variables, condition.atoms, columns, condition.conditions), wanted)
    construct = "NOT EXISTS" if condition.negated else "EXISTS"
    planning.note(
        f"{construct} as a view",
        rows.stage,
        "its correlation values are kept",
        "linear space: the condition has no join tree",
    )
    bindings = tuple(
        Binding(name, Column(column.name, column.type)) for name, column in zip(wanted, rows.columns, strict=True)
    )
    atom = Atom(rows.stage, rows.stage, bindings)
    subtree = existential_tree([key], key, [planning.updates(rows.stage)])
    assert subtree is not None
    return HangingCondition(condition.negated, key, (atom,), subtree)


def hang_conditions(draft: Draft, planning: Planning) -> Draft:
    """Attach each condition to the highest node that holds its key; the nodes of the tree keep their positions."""
    atoms, nodes = list(draft.all_atoms), list(draft.nodes)
    depths = _depths(nodes)
    joined = [i for i, node in enumerate(nodes) if node.atom is None or node.atom < len(draft.atoms)]
    for hung in draft.hanging:
        places = [i for i in joined if hung.key <= set(nodes[i].variables)]
        place = min(places, key=lambda i: (depths[i], i))
        _attach(hung, place, hung.key, atoms, nodes, [variable.name for variable in draft.variables])
    return replace(draft, all_atoms=tuple(atoms), nodes=tuple(nodes))


def _depths(nodes: Sequence[Node]) -> list[int]:
    depths: list[int] = []
    for node in nodes:
        above = depths[node.parent] if node.parent is not None else 0
        depths.append(above + (node.atom is not None))
    return depths


def _attach(
    hung: HangingCondition, place: int, key: Hyperedge, atoms: list[Atom], nodes: list[Node], order: Sequence[str]
) -> None:
    first_atom, first_node = len(atoms), len(nodes)
    atoms.extend(hung.atoms)
    for node in to_nodes(hung.subtree, hung.atoms, order):
        assert node.atom is not None
        is_root = node.parent is None
        nodes.append(
            replace(
                node,
                atom=node.atom + first_atom,
                parent=place if node.parent is None else node.parent + first_node,
                key=tuple(v for v in order if v in key) if is_root else node.key,
                edge=("anti" if hung.negated else "exists") if is_root else "join",
            )
        )
    own = range(first_node, len(nodes))
    for inner in hung.below:
        inner_place = min(i for i in own if inner.key <= set(nodes[i].variables))
        _attach(inner, inner_place, inner.key, atoms, nodes, order)
