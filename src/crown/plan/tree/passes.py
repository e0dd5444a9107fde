"""Plan one conjunction as one tree stage: the passes, in order.

Each pass is a plain function from draft to draft. `draft.py` has the data that passes add.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal as OneOf

from crown.errors import PlanError
from crown.ir.expression import Call, Column, Expression
from crown.ir.plan import (
    Atom,
    BagStage,
    Binding,
    DistinctStage,
    Factor,
    MapColumn,
    MapStage,
    RingComponent,
    TreeStage,
    Variable,
)
from crown.ir.query import Condition, Conjunction
from crown.ir.scalars import cast, variables_of
from crown.plan.explain.guarantees import conjunction_report
from crown.plan.explain.notes import note_constructs
from crown.plan.explain.report import BagReport
from crown.plan.planning import Planning, StageRows
from crown.plan.tree import bags as bags_search
from crown.plan.tree import extend
from crown.plan.tree import trees as tree_search
from crown.plan.tree.bags import bag_width, binding_order
from crown.plan.tree.comparisons import judge_residual
from crown.plan.tree.conditions import draft_conditions, hang_conditions
from crown.plan.tree.draft import Draft, RingTerm
from crown.plan.tree.hypergraph import Hyperedge, union
from crown.plan.tree.keys import dependencies
from crown.plan.tree.nulls import drop_nulls, variables_in
from crown.plan.tree.optional import hang_optional, optional_atoms, own_variables, shown_variables, with_key_first
from crown.plan.tree.price import reaches_many, to_nodes
from crown.plan.tree.trees import find_trees
from crown.types import longest_decimal

MAX_ATOMS = 100
MAX_BAG = 100_000_000  # the square of atoms times variables


def plan_conjunction(
    conjunction: Conjunction,
    wanted: tuple[str, ...],
    mode: OneOf["set", "bag", "ring"],
    planning: Planning,
    *,
    terms: tuple[RingTerm, ...] = (),
    always: bool = False,
) -> StageRows:
    """Add the stages of the conjunction. Its rows show `wanted` first, then what the plan had to add, then the ring."""
    optional = len(list(optional_atoms(conjunction.optional)))
    joined = len(conjunction.atoms) + _atoms_in(conjunction.conditions) + optional
    if joined > MAX_ATOMS:
        raise PlanError(
            f"the query joins {joined} tables",
            code="CROWN-PLAN-TOO-MANY-TABLES",
            sql=planning.sql,
            reason=f"at most {MAX_ATOMS} tables can be joined, including those of subqueries in FROM, EXISTS and IN",
            hint="split the query: a subquery with DISTINCT or GROUP BY, or a CTE used twice, is planned separately",
        )
    draft = Draft(
        variables=conjunction.variables,
        atoms=conjunction.atoms,
        conditions=conjunction.conditions,
        optional=conjunction.optional,
        residual=conjunction.residual,
        wanted=wanted,
        mode=mode,
        terms=terms,
        always=always,
    )
    for one_pass in PASSES:
        draft = one_pass(draft, planning)
    return _add_stage(draft, planning)


def read_keys(draft: Draft, planning: Planning) -> Draft:
    asked = tuple(dict.fromkeys([*draft.wanted, *variables_of(draft.residual)]))
    around = variables_in(draft.atoms)
    outputs = tuple(dict.fromkeys([*asked, *shown_variables(draft.optional, around, frozenset(asked))]))
    known = dependencies([*draft.atoms, *with_key_first(draft.optional, around)], planning.keys())
    return replace(draft, outputs=outputs, added=outputs[len(asked) :], known=known)


def plan_conditions(draft: Draft, planning: Planning) -> Draft:
    def plan_view(conjunction: Conjunction, wanted: tuple[str, ...]) -> StageRows:
        return distinct_rows(plan_conjunction(conjunction, wanted, "set", planning), wanted, planning)

    return draft_conditions(draft, planning, plan_view)


def group_into_bags(draft: Draft, planning: Planning) -> Draft:
    """Atoms of each bag become one atom over a bag stage that shows what the rest of the query reads."""
    edges = draft.edges()
    steps = planning.steps(bags_search.STEPS)
    hung = [hanging.key for hanging in draft.hanging]
    hung += [frozenset(one.atom.variables) & union(edges) for one in draft.optional]
    partition = bags_search.find_bags(edges, hung, draft.known, steps)
    read = frozenset(draft.outputs) | draft.factor_variables() | union(hung)
    atoms: list[Atom] = []
    bags: list[BagReport] = []
    for block in partition:
        if len(block) == 1:
            atoms.append(draft.atoms[block[0]])
            continue
        inside = [edges[atom] for atom in block]
        outside = union(edge for index, edge in enumerate(edges) if index not in block)
        held = _in_order(draft.variables, union(inside))
        _check_bag(planning, len(block), len(held))
        shown = tuple(variable for variable in held if variable.name in outside | read)
        names = tuple(draft.atoms[atom].name for atom in block)
        stage = BagStage(
            planning.new_id("bag"),
            held,
            tuple(draft.atoms[atom] for atom in block),
            tuple(variable.name for variable in shown),
            binding_order(inside),
        )
        planning.add(stage)
        bindings = tuple(Binding(variable.name, Column(variable.name, variable.type)) for variable in shown)
        atoms.append(Atom("⋈".join(names), stage.id, bindings))
        bags.append(BagReport(stage.id, names, tuple(v.name for v in held), bag_width(block, edges, draft.known)))
    return replace(draft, atoms=tuple(atoms), bags=tuple(bags), searches=(*draft.searches, steps))


def _check_bag(planning: Planning, atoms: int, variables: int) -> None:
    """Each atom's delta join chooses the next variable among all, by the atoms that restrict it."""
    if (atoms * variables) ** 2 > MAX_BAG:
        raise PlanError(
            f"a cycle of the query has {atoms} tables with {variables} variables",
            code="CROWN-PLAN-TOO-MANY-TABLES",
            sql=planning.sql,
            reason="to plan the join of a cycle takes the square of their product",
            hint="split the query: a subquery with DISTINCT or GROUP BY, or a CTE used twice, is planned separately",
        )


def extend_outputs(draft: Draft, planning: Planning) -> Draft:
    steps = planning.steps(extend.STEPS)
    added = extend.least_extension(draft.edges(), frozenset(draft.outputs), draft.known, steps)
    extension = tuple(variable.name for variable in draft.variables if variable.name in added)
    searches = (*draft.searches, steps)
    return replace(draft, outputs=draft.outputs + extension, added=draft.added + extension, searches=searches)


def choose_tree(draft: Draft, planning: Planning) -> Draft:
    """The cheapest tree, unless one of the same height avoids changes that reach many rows of a node."""
    updates = [planning.updates(atom.source) for atom in draft.atoms]
    takes_back = [not planning.profiles(atom.source) <= {"static", "insert_only"} for atom in draft.atoms]
    steps = planning.steps(tree_search.STEPS)
    trees = find_trees(draft.edges(), frozenset(draft.outputs), updates, steps=steps)
    if reaches_many(trees.best[0], takes_back, draft.known):
        flat_steps = planning.steps(tree_search.STEPS)
        flat = find_trees(draft.edges(), frozenset(draft.outputs), updates, generalised_depth=0.0, steps=flat_steps)
        if not reaches_many(flat.best[0], takes_back, draft.known):
            trees, steps = flat, flat_steps
    nodes = to_nodes(trees.best[0], draft.atoms, [variable.name for variable in draft.variables])
    return replace(draft, trees=trees, nodes=nodes, searches=(*draft.searches, steps))


def place_factors(draft: Draft, planning: Planning) -> Draft:
    """Give each ring factor to an atom that holds its variables; factors of one atom multiply there."""
    edges = [*draft.edges(), *own_variables(draft.optional, variables_in(draft.query_atoms))]
    components = []
    for term in draft.terms:
        of_atom: dict[int, Expression] = {}
        for factor in term.factors:
            read = frozenset(variables_of([factor]))
            home = next(index for index, edge in enumerate(edges) if read <= edge)
            of_atom[home] = _times(of_atom[home], factor) if home in of_atom else factor
        factors = tuple(Factor(atom, expression) for atom, expression in sorted(of_atom.items()))
        components.append(RingComponent(term.name, factors, term.type))
    return replace(draft, ring=tuple(components))


PASSES: tuple[Callable[[Draft, Planning], Draft], ...] = (
    drop_nulls,
    read_keys,
    plan_conditions,
    group_into_bags,
    extend_outputs,
    choose_tree,
    hang_optional,
    place_factors,
    hang_conditions,
)


def _atoms_in(conditions: tuple[Condition, ...]) -> int:
    return sum(len(condition.atoms) + _atoms_in(condition.conditions) for condition in conditions)


def _times(one: Expression, other: Expression) -> Expression:
    scale, other_scale = one.type.scale, other.type.scale
    if scale is None or other_scale is None:
        return Call("multiply", (one, cast(other, one.type)), one.type)
    shared = longest_decimal(max(scale, other_scale))
    return Call("multiply", (cast(one, shared), cast(other, shared)), longest_decimal(scale + other_scale))


def _in_order(variables: tuple[Variable, ...], names: Hyperedge) -> tuple[Variable, ...]:
    return tuple(variable for variable in variables if variable.name in names)


def _add_stage(draft: Draft, planning: Planning) -> StageRows:
    stage_id = planning.new_id("tree")
    held = union(frozenset(atom.variables) for atom in draft.all_atoms)
    stage = TreeStage(
        id=stage_id,
        variables=_in_order(draft.variables, held),
        atoms=draft.all_atoms,
        nodes=draft.nodes,
        outputs=draft.outputs,
        mode=draft.mode,
        ring=draft.ring,
        residual=draft.residual,
        always=draft.always and not draft.outputs,
    )
    verdicts = judge_residual(stage)
    stage = replace(stage, ordered=tuple(v.comparison for v in verdicts if v.comparison is not None))
    planning.add(stage)
    report = conjunction_report(draft, stage, planning)
    planning.conjunctions.append(report)
    note_constructs(stage, draft.optional, report, verdicts, planning)
    never_null = {v for atom in draft.query_atoms for v in atom.not_null}
    of_name = {variable.name: variable for variable in draft.variables}
    columns = [
        replace(of_name[name], nullable=of_name[name].nullable and name not in never_null) for name in draft.outputs
    ]
    columns += [Variable(component.name, component.type, False) for component in draft.ring]
    return StageRows(
        stage_id,
        tuple(columns),
        tuple(column.name for column in columns),
        distinct=draft.mode != "bag",
        key=draft.outputs,
    )


def distinct_rows(rows: StageRows, wanted: tuple[str, ...], planning: Planning) -> StageRows:
    """`rows` of a set-mode tree, reduced to the first columns `wanted` and without duplicates."""
    if len(rows.columns) == len(wanted):
        return rows
    columns = rows.columns[: len(wanted)]
    reduced = MapStage(
        planning.new_id("map"),
        rows.stage,
        tuple(MapColumn(c.name, c.type, c.nullable, Column(c.name, c.type)) for c in columns),
    )
    planning.add(reduced)
    stage = DistinctStage(planning.new_id("distinct"), reduced.id)
    planning.add(stage)
    return StageRows(stage.id, columns, tuple(column.name for column in columns), distinct=True)
