"""Combine many views into one plan: equal stages are planned once and stored once.

Two stages are equal if they read the same sources in the same way; what their variables, atoms and columns are called
does not matter. So a view is added stage by stage: an existing stage is reused, and the stages above read it by its own
column names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from crown.ir.columns import columns_of_stage, stage_columns
from crown.ir.expression import Column, Expression
from crown.ir.plan import (
    ITSELF,
    AggregateColumn,
    AggregateStage,
    Atom,
    BagStage,
    DistinctStage,
    MapStage,
    MaterializeStage,
    NamedResult,
    OrderBy,
    Plan,
    RecursionStage,
    Route,
    SetOperationStage,
    Stage,
    TopStage,
    TreeStage,
    ValuesStage,
    Variable,
    WindowStage,
    WindowValue,
    sources_of,
)
from crown.ir.scalars import substitute
from crown.ir.serial import encode
from crown.ir.tables import Table
from crown.plan.passthrough import passthrough
from crown.plan.planner import united_tables
from crown.plan.recursion import renumbered

KEPT = "$rows."  # the stages that store tables for future views


def empty_project() -> Plan:
    """Return the plan without views."""
    return Plan(sql="", tables=(), stages=(), columns=(), bag=False, results=())


def add_view(project: Plan, name: str, plan: Plan) -> tuple[Plan, dict[str, str]]:
    """Return the project with one more view, and which of its stages each stage of the view's plan is."""
    shared = Shared.of(project)
    places = shared.add(plan.stages)
    last = places[plan.stages[-1].id]
    result = NamedResult(name, last, plan.columns, plan.bag)
    tables = united_tables([project.tables, plan.tables])
    return replace(project, tables=tables, stages=tuple(shared.stages), results=(*results(project), result)), places


def drop_view(project: Plan, name: str) -> Plan:
    """Return the project without a view, and without the stages and tables that nothing else reads."""
    left = tuple(result for result in results(project) if result.name != name)
    wanted = below(project, [result.stage for result in left])
    stages = tuple(stage for stage in project.stages if stage.id in wanted or stage.id.startswith(KEPT))
    read = {source for stage in stages for source in sources(stage)}
    tables = tuple(table for table in project.tables if table.name in read)
    return replace(project, tables=tables, stages=stages, results=left)


def view_plan(project: Plan, name: str) -> Plan:
    """Return the plan of one view alone; its stages have the project's ids."""
    result = next(result for result in results(project) if result.name == name)
    wanted = below(project, [result.stage])
    stages = tuple(stage for stage in project.stages if stage.id in wanted)
    last = next(stage for stage in stages if stage.id == result.stage)
    ordered = (*(stage for stage in stages if stage is not last), last)
    read = {source for stage in ordered for source in sources(stage)}
    tables = tuple(table for table in project.tables if table.name in read)
    return Plan(project.sql, tables, ordered, result.columns, result.bag)


def results(project: Plan) -> tuple[NamedResult, ...]:
    return project.results or ()


def below(project: Plan, wanted: Sequence[str]) -> set[str]:
    """Return the ids of these stages and of all that they read."""
    stages = {stage.id: stage for stage in project.stages}
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        one = waiting.pop()
        if one in stages and one not in found:
            found.add(one)
            waiting += sources(stages[one])
    return found


def sources(stage: Stage) -> list[str]:
    """Return the tables and stages that a stage reads."""
    return list(sources_of(stage))


def keeps(project: Plan, table: Table) -> bool:
    """Whether the project has all rows of a table, with all columns that it lists of it."""
    if table.primary_key or table.window is not None:
        return True
    nullable = {column.name for column in table.columns if column.nullable}
    for stage in project.stages:
        for atom in stage.atoms if isinstance(stage, TreeStage | BagStage) else ():
            if atom.source == table.name and _keeps_all(atom, {c.name for c in table.columns}, nullable):
                return True
    return False


def _keeps_all(atom: Atom, columns: set[str], nullable: set[str]) -> bool:
    plain = [b.expression.name for b in atom.bindings if isinstance(b.expression, Column)]
    if atom.filter is not None or len(plain) != len(atom.variables) or len(atom.bindings) != len(plain):
        return False
    column_of = {b.variable: b.expression.name for b in atom.bindings if isinstance(b.expression, Column)}
    return set(plain) >= columns and not any(column_of[name] in nullable for name in atom.not_null)


def with_kept_tables(project: Plan, tables: Sequence[Table]) -> Plan:
    """Return the project with a separate stage for each of these tables that no other stage stores completely."""
    united = united_tables([project.tables, tuple(tables)])
    project = replace(project, tables=united)
    names = {table.name for table in tables}
    missing = [table for table in united if table.name in names and not keeps(project, table)]
    kept = []
    for table in missing:
        (tree,) = passthrough(table).stages
        kept.append(replace(tree, id=f"{KEPT}{table.name}"))
    return replace(project, stages=(*project.stages, *kept))


def without_spare_tables(project: Plan) -> Plan:
    """Return the project without the stages of `with_kept_tables` whose rows another stage also stores."""
    for stage in project.stages:
        if stage.id.startswith(KEPT):
            rest = replace(project, stages=tuple(other for other in project.stages if other is not stage))
            table = next(table for table in project.tables if table.name == sources(stage)[0])
            project = rest if keeps(rest, table) else project
    return project


@dataclass
class Shared:
    """Stages that plans share, in dependency order. `routes` are the routes of the atoms' rows, if they matter."""

    stages: list[Stage] = field(default_factory=list)
    routes: dict[tuple[str, int], Route] = field(default_factory=dict)
    prefix: str = ""  # of the ids here
    _columns: dict[str, tuple[Variable, ...]] = field(default_factory=dict)
    _known: dict[str, str] = field(default_factory=dict)  # ids by what the stages do

    @classmethod
    def of(cls, project: Plan) -> Shared:
        shared = cls(list(project.stages))
        shared._columns = dict(stage_columns(project))
        for stage in project.stages:
            if not stage.id.startswith(KEPT):
                shared._known.setdefault(_meaning(stage), stage.id)
        return shared

    def add(self, stages: Sequence[Stage], routes: Mapping[tuple[str, int], Route] | None = None) -> dict[str, str]:
        """Add the stages of a plan; return the id of each here."""
        own: dict[str, tuple[Variable, ...]] = {}
        places: dict[str, str] = {}
        for stage in stages:
            own[stage.id] = columns_of_stage(stage, own)
            renamed = _read_from(stage, places, own, self._columns)
            ways = [(routes or {}).get((stage.id, atom)) for atom in range(len(getattr(stage, "atoms", ())))]
            meaning = _meaning(renamed, ways)
            if meaning not in self._known:
                self._known[meaning] = self._append(renamed, ways)
            places[stage.id] = self._known[meaning]
        return places

    def columns(self, stage: str) -> tuple[Variable, ...]:
        return self._columns[stage]

    def _own_id(self, stage: str) -> str:
        return f"{self.prefix}{stage.removeprefix('$')}" if self.prefix else stage

    def _append(self, stage: Stage, ways: Sequence[Route | None]) -> str:
        number, kind = len(self.stages), re.sub(r"[0-9]+$", "", stage.id)
        new = self._own_id(stage.id)
        while new in self._columns:
            number += 1
            new = self._own_id(f"{kind}{number}")
        stage = replace(renumbered(stage, new) if isinstance(stage, RecursionStage) else stage, id=new)
        self._columns[new] = columns_of_stage(stage, self._columns)
        self.stages.append(stage)
        for atom, way in enumerate(ways):
            if way is not None:
                self.routes[new, atom] = replace(way, stage=new)
        return new


def _read_from(
    stage: Stage,
    places: Mapping[str, str],
    own: Mapping[str, tuple[Variable, ...]],
    known: Mapping[str, tuple[Variable, ...]],
) -> Stage:
    """Return the stage over the shared stages, whose columns may have other names."""

    def names(source: str) -> dict[str, Expression]:
        pairs = zip(own[source], known[places[source]], strict=True)
        return {before.name: Column(after.name, after.type) for before, after in pairs}

    match stage:
        case TreeStage() | BagStage():
            atoms = tuple(
                _atom_from(a, places[a.source], names(a.source)) if a.source in places else a for a in stage.atoms
            )
            return replace(stage, atoms=atoms)
        case MapStage():
            value = names(stage.input)
            columns = tuple(replace(c, expression=substitute(c.expression, value)) for c in stage.columns)
            where = None if stage.filter is None else substitute(stage.filter, value)
            return replace(stage, input=places[stage.input], columns=columns, filter=where)
        case AggregateStage():
            return _aggregates_from(stage, places[stage.input], names(stage.input))
        case TopStage() | WindowStage():
            return _sorted_from(stage, places[stage.input], names(stage.input))
        case SetOperationStage():
            return replace(stage, inputs=(places[stage.inputs[0]], places[stage.inputs[1]]))
        case DistinctStage() | MaterializeStage():
            return replace(stage, input=places[stage.input])
        case ValuesStage():
            return stage
        case RecursionStage():
            return _recursion_from(stage, places, own, known)


def _recursion_from(
    stage: RecursionStage,
    places: Mapping[str, str],
    own: Mapping[str, tuple[Variable, ...]],
    known: Mapping[str, tuple[Variable, ...]],
) -> RecursionStage:
    """Return the recursion over the shared stages."""
    base = places[stage.base]
    inside = {**places, ITSELF: ITSELF}
    own_inside = {**own, ITSELF: own[stage.base]}
    known_inside = {**known, ITSELF: known[base]}
    stages: list[Stage] = []
    for inner in renumbered(stage, ITSELF).stages:
        own_inside[inner.id] = columns_of_stage(inner, own_inside)
        read = _read_from(inner, inside, own_inside, known_inside)
        inside[inner.id] = inner.id
        known_inside[inner.id] = columns_of_stage(read, known_inside)
        stages.append(read)
    return replace(stage, base=base, stages=tuple(stages))


def _aggregates_from(stage: AggregateStage, source: str, value: Mapping[str, Expression]) -> AggregateStage:
    group = _names(stage.group, value)
    named = zip(stage.aggregates, _unlike([a.name for a in stage.aggregates], group), strict=True)
    aggregates = tuple(replace(_aggregate(a, value), name=name) for a, name in named)
    return replace(stage, input=source, group=group, aggregates=aggregates)


def _sorted_from(stage: TopStage | WindowStage, source: str, value: Mapping[str, Expression]) -> TopStage | WindowStage:
    taken = _names(value, value)
    order, partition = _order(stage.order, value), _names(stage.partition, value)
    if isinstance(stage, TopStage):
        ranked = zip(stage.ranks, _unlike([rank.name for rank in stage.ranks], taken), strict=True)
        ranks = tuple(replace(rank, name=name) for rank, name in ranked)
        return replace(stage, input=source, order=order, partition=partition, ranks=ranks)
    shown = zip(stage.columns, _unlike([column.name for column in stage.columns], taken), strict=True)
    columns = tuple(replace(_window_value(column, value), name=name) for column, name in shown)
    return replace(stage, input=source, order=order, partition=partition, columns=columns)


def _names(names: Iterable[str], value: Mapping[str, Expression]) -> tuple[str, ...]:
    found = [value[name] for name in names]
    return tuple(column.name for column in found if isinstance(column, Column))


def _unlike(names: Sequence[str], taken: Iterable[str]) -> list[str]:
    """Return the names, changed where the shared input has a column of that name."""
    used = set(taken)
    found = []
    for name in names:
        while name in used:
            name += "'"
        used.add(name)
        found.append(name)
    return found


def _order(order: Sequence[OrderBy], value: Mapping[str, Expression]) -> tuple[OrderBy, ...]:
    return tuple(replace(one, expression=substitute(one.expression, value)) for one in order)


def _aggregate(one: AggregateColumn, value: Mapping[str, Expression]) -> AggregateColumn:
    return replace(
        one,
        argument=None if one.argument is None else substitute(one.argument, value),
        further=tuple(substitute(expression, value) for expression in one.further),
        order=_order(one.order, value),
        condition=None if one.condition is None else substitute(one.condition, value),
    )


def _window_value(one: WindowValue, value: Mapping[str, Expression]) -> WindowValue:
    return replace(
        one,
        arguments=tuple(substitute(expression, value) for expression in one.arguments),
        aggregate=None if one.aggregate is None else _aggregate(one.aggregate, value),
    )


def _atom_from(atom: Atom, source: str, value: Mapping[str, Expression]) -> Atom:
    bindings = tuple(replace(b, expression=substitute(b.expression, value)) for b in atom.bindings)
    where = None if atom.filter is None else substitute(atom.filter, value)
    return replace(atom, source=source, bindings=bindings, filter=where)


def _meaning(stage: Stage, ways: Sequence[Route | None] = ()) -> str:
    """Return a text that is equal for equal stages: without their names."""
    plain = {**encode(_anonymous(stage)), "id": ""}
    places: list[Any] = [None if way is None else [encode(way.coordinates), way.shares] for way in ways]
    return json.dumps([plain, places if any(places) else []], sort_keys=True)


def _anonymous(stage: Stage) -> Stage:
    match stage:
        case TreeStage() | BagStage():
            return _anonymous_tree(stage)
        case MapStage():
            return replace(stage, columns=tuple(replace(c, name=f"c{i}") for i, c in enumerate(stage.columns)))
        case ValuesStage():
            return replace(stage, columns=tuple(replace(c, name=f"c{i}") for i, c in enumerate(stage.columns)))
        case AggregateStage():
            return replace(stage, aggregates=tuple(replace(a, name=f"a{i}") for i, a in enumerate(stage.aggregates)))
        case TopStage():
            return replace(stage, ranks=tuple(replace(rank, name=f"r{i}") for i, rank in enumerate(stage.ranks)))
        case WindowStage():
            return replace(stage, columns=tuple(_anonymous_value(c, i) for i, c in enumerate(stage.columns)))
        case RecursionStage():
            return _anonymous_recursion(stage)
    return stage


def _anonymous_recursion(stage: RecursionStage) -> RecursionStage:
    """Return the recursion with the stages of its step under other names, which those after them read."""
    own: dict[str, tuple[Variable, ...]] = {}
    known: dict[str, tuple[Variable, ...]] = {}
    stages: list[Stage] = []
    for inner in renumbered(stage, ITSELF).stages:
        own[inner.id] = columns_of_stage(inner, own)
        anonymous = _anonymous(_read_from(inner, {id: id for id in known}, own, known))
        known[inner.id] = columns_of_stage(anonymous, known)
        stages.append(anonymous)
    return replace(stage, name="", stages=tuple(stages))


def _anonymous_value(column: WindowValue, number: int) -> WindowValue:
    aggregate = None if column.aggregate is None else replace(column.aggregate, name="")
    return replace(column, name=f"w{number}", aggregate=aggregate)


def _anonymous_tree(stage: TreeStage | BagStage) -> TreeStage | BagStage:
    """Return the stage with variables named in the order in which atoms bind them."""
    bound = [b.variable for atom in stage.atoms for b in atom.bindings]
    every = dict.fromkeys([*bound, *(variable.name for variable in stage.variables)])
    new = {name: f"v{number}" for number, name in enumerate(every)}
    types = {variable.name: variable.type for variable in stage.variables}
    value: dict[str, Expression] = {name: Column(new[name], types[name]) for name in every}

    def all_new(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(new[name] for name in names)

    atoms = tuple(
        replace(
            atom,
            name="",
            bindings=tuple(replace(b, variable=new[b.variable]) for b in atom.bindings),
            not_null=tuple(sorted(all_new(atom.not_null))),
        )
        for atom in stage.atoms
    )
    variables = tuple(sorted((replace(v, name=new[v.name]) for v in stage.variables), key=lambda v: v.name))
    if isinstance(stage, BagStage):
        return replace(
            stage, variables=variables, atoms=atoms, outputs=all_new(stage.outputs), order=all_new(stage.order)
        )
    return replace(
        stage,
        variables=variables,
        atoms=atoms,
        nodes=tuple(
            replace(node, name="", variables=all_new(node.variables), key=all_new(node.key)) for node in stage.nodes
        ),
        outputs=all_new(stage.outputs),
        ring=tuple(
            replace(
                component,
                name=f"r{number}",
                factors=tuple(replace(f, expression=substitute(f.expression, value)) for f in component.factors),
            )
            for number, component in enumerate(stage.ring)
        ),
        residual=tuple(substitute(predicate, value) for predicate in stage.residual),
        ordered=tuple(replace(c, lower=new[c.lower], upper=new[c.upper]) for c in stage.ordered),
    )
