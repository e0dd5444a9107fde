"""Where the rows of each stage are among the cells of a HyperCube.

A dimension assigns one variable to each tree that produces the result: a join result is in the cells whose coordinate
is the hash of that variable's value, so in exactly one cell. From there stages either stay exact (a row and all its
copies are in one cell, determined by a column), or are only exact after the cells' rows have been added up. Views that
the result's trees read as tables are computed in full in every cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from crown.ir.columns import stage_columns
from crown.ir.expression import Column
from crown.ir.plan import (
    AggregateStage,
    Atom,
    BagStage,
    DistinctStage,
    MapStage,
    Plan,
    RecursionStage,
    SetOperationStage,
    Stage,
    TopStage,
    TreeStage,
    ValuesStage,
    Variable,
    WindowStage,
    sources_of,
)

Dimension: TypeAlias = dict[str, str]  # the variable of each result tree, by stage id


@dataclass(frozen=True)
class Parts:
    """The stages of a plan by their part in the result."""

    plan: Plan
    stages: dict[str, Stage]
    replicated: frozenset[str]  # stages that every cell computes in full
    trees: tuple[TreeStage, ...]  # stages that produce the result

    @cached_property
    def columns(self) -> dict[str, tuple[Variable, ...]]:
        """The columns of each stage."""
        return stage_columns(self.plan)

    @cached_property
    def places(self) -> dict[str, dict[str, int]]:
        """The position of each column of each stage."""
        return {stage: {column.name: i for i, column in enumerate(own)} for stage, own in self.columns.items()}


def parts_of(plan: Plan) -> Parts:
    stages = {stage.id: stage for stage in plan.stages}
    result: set[str] = set()
    trees = []
    waiting = [plan.stages[-1].id]
    while waiting:
        stage = stages[waiting.pop()]
        if stage.id in result:
            continue
        result.add(stage.id)
        if isinstance(stage, TreeStage):
            trees.append(stage)
            result.update(a.source for a in stage.atoms if isinstance(stages.get(a.source), BagStage))
        else:
            waiting.extend(sources_of(stage))
    replicated = frozenset(stages) - result
    order = [stage.id for stage in plan.stages]
    trees.sort(key=lambda tree: order.index(tree.id))
    return Parts(plan, stages, replicated, tuple(trees))


def feeds_replicated(parts: Parts) -> bool:
    """Whether a stage of the result is also read by a view that every cell computes in full."""
    return any(
        source in parts.stages and source not in parts.replicated
        for stage_id in parts.replicated
        for source in sources_of(parts.stages[stage_id])
    )


def coordinate_columns(parts: Parts, dimension: Dimension) -> dict[str, str | None]:
    """For each stage of the result, the column that determines a row's coordinate; None if no column does."""
    found: dict[str, str | None] = {}
    for stage in parts.plan.stages:
        if stage.id in parts.replicated or isinstance(stage, BagStage):
            continue
        match stage:
            case TreeStage():
                variable = dimension[stage.id]
                found[stage.id] = variable if variable in stage.outputs else None
            case MapStage():
                below = found[stage.input]
                found[stage.id] = next(
                    (c.name for c in stage.columns if isinstance(c.expression, Column) and c.expression.name == below),
                    None,
                )
            case AggregateStage():
                below = found[stage.input]
                found[stage.id] = below if below in stage.group else None
            case ValuesStage():
                found[stage.id] = None
            case TopStage() | WindowStage():
                below = found[stage.input]
                found[stage.id] = below if below in stage.partition else None
            case SetOperationStage():
                found[stage.id] = _common(stage, found, parts)
            case RecursionStage():
                found[stage.id] = None
            case _:
                found[stage.id] = found[stage.input]
    return found


def _common(stage: SetOperationStage, found: dict[str, str | None], parts: Parts) -> str | None:
    """Return the column if both inputs are coordinate_columns by the column at the same place."""
    places = []
    for source in stage.inputs:
        below = found[source]
        places.append(parts.places[source][below] if below is not None else None)
    same = places[0] if places[0] == places[1] else None
    return None if same is None else parts.columns[stage.id][same].name


def dimensions(parts: Parts) -> list[Dimension]:
    """Return the dimensions to choose from. One tree: each variable that an atom can be sent by. Several trees (set
    operations, outer joins): each output column, or variable, that is one in all of them and keeps together
    what a stage before their union compares or folds.
    """
    usable = [_usable(parts, tree) for tree in parts.trees]
    if len(parts.trees) == 1 and joint_stage(parts) == parts.trees[0].id:
        return [{parts.trees[0].id: variable} for variable in usable[0]]
    joint = joint_stage(parts)
    places = range(len(parts.columns[joint]))
    offered = [found for place in places if (found := _variables_at(parts, joint, place)) is not None]
    shared = [variable for variable in usable[0] if all(variable in of_tree for of_tree in usable)]
    offered += [dict.fromkeys((tree.id for tree in parts.trees), variable) for variable in shared]
    different = {tuple(sorted(dimension.items())): dimension for dimension in reversed(offered)}
    known = [set(of_tree) for of_tree in usable]
    return [
        dimension
        for dimension in reversed(different.values())
        if all(dimension[tree.id] in u for tree, u in zip(parts.trees, known, strict=True))
        and _keeps_together(parts, dimension, joint)
    ]


def _keeps_together(parts: Parts, dimension: Dimension, joint: str) -> bool:
    found = coordinate_columns(parts, dimension)
    for stage in parts.plan.stages:
        if stage.id in found and is_comparing(stage) and found[stage.id] is None:
            return False
        if stage.id == joint:
            return True
    return True


def is_comparing(stage: Stage) -> bool:
    """Return whether the stage looks at several rows at once, so that they must lie in one cell."""
    if isinstance(stage, SetOperationStage):
        return not (stage.operator == "union" and stage.all)
    return isinstance(stage, AggregateStage | DistinctStage | TopStage | WindowStage)


def _usable(parts: Parts, tree: TreeStage) -> list[str]:
    """Return the variables with a value in every result that an atom over a table holds, perhaps inside a bag."""
    found: dict[str, None] = {}
    for atom in _join_atoms(tree):
        source = parts.stages.get(atom.source)
        if source is None:
            found.update(dict.fromkeys(atom.variables))
        elif isinstance(source, BagStage):
            inside = [inner for inner in source.atoms if inner.source not in parts.stages]
            found.update(dict.fromkeys(v for inner in inside for v in inner.variables))
    return list(found)


def _join_atoms(tree: TreeStage) -> list[Atom]:
    """Atoms outside EXISTS and NOT EXISTS: only their variables have a value in every result."""
    below_condition: list[bool] = []
    found = []
    for node in tree.nodes:
        conditional = node.edge != "join" or (node.parent is not None and below_condition[node.parent])
        below_condition.append(conditional)
        if node.atom is not None and not conditional:
            found.append(tree.atoms[node.atom])
    return found


def joint_stage(parts: Parts) -> str:
    """Return the first stage that all result trees flow into; if the flow splits again, the last that unites it."""
    trees = {tree.id for tree in parts.trees}
    reached: dict[str, set[str]] = {}
    joint: str | None = None
    for stage in parts.plan.stages:
        if isinstance(stage, TreeStage | BagStage) or stage.id in parts.replicated:
            reached[stage.id] = {stage.id}
            again = False
        else:
            sources = [reached[source] for source in sources_of(stage)]
            reached[stage.id] = set().union(*sources)
            again = len(sources) == 2 and bool(sources[0] & sources[1] & trees)
        if trees <= reached[stage.id] and (joint is None or again):
            joint = stage.id
    return parts.plan.stages[-1].id if joint is None else joint


def _variables_at(parts: Parts, stage_id: str, place: int) -> Dimension | None:
    """The variable of each tree below the stage that its column at `place` shows; None if it is computed somewhere."""
    stage = parts.stages[stage_id]
    match stage:
        case TreeStage():
            return {stage.id: stage.outputs[place]} if place < len(stage.outputs) else None
        case MapStage():
            expression = stage.columns[place].expression
            if not isinstance(expression, Column):
                return None
            return _variables_at(parts, stage.input, parts.places[stage.input][expression.name])
        case AggregateStage():
            name = parts.columns[stage_id][place].name
            return _variables_at(parts, stage.input, parts.places[stage.input][name]) if name in stage.group else None
        case SetOperationStage():
            merged: Dimension = {}
            for source in stage.inputs:
                part = _variables_at(parts, source, place)
                if part is None:
                    return None
                for tree, variable in part.items():
                    if merged.setdefault(tree, variable) != variable:
                        return None
            return merged
        case BagStage() | ValuesStage() | RecursionStage():
            return None
        case TopStage() | WindowStage() if place >= len(parts.columns[stage.input]):
            return None
        case _:
            return _variables_at(parts, stage.input, place)
