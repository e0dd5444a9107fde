"""GROUP BY: in the tree if its annotations can carry the aggregates, else in a stage that folds the tree's deltas.

There are three strategies; the first that applies is used:

1. *Ring*: all aggregates are COUNT, SUM or AVG of sums of products of one-atom factors. The tree outputs the group's
variables and carries the sums. If the tree must output more (an extension, a residual, computed groups, several
branches), a stage adds up its partial sums. 2. *Distinct*: no aggregate depends on duplicates (MIN, MAX, any DISTINCT),
so a tree of mode `set` outputs group and arguments, and a stage folds them. COUNT(DISTINCT x) alone then is a plain
count. 3. *StageRows*: a tree of mode `bag` outputs group and arguments, and a stage folds them.

SUM(DISTINCT x) next to other aggregates is folded separately (`regroup.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.plan import AggregateColumn, AggregateStage, Folding, OrderBy, Variable
from crown.ir.query import Aggregate, Conjunction, Named, Select, grouping_name
from crown.ir.scalars import cast, null_if, substitute, variables_of, zero
from crown.plan.explain.notes import note_branches, note_computed
from crown.plan.factors import count_term, sum_terms
from crown.plan.planning import Planning, StageRows
from crown.plan.regroup import separate, side_by_side
from crown.plan.rows import own_columns, project, union_all, unique
from crown.plan.select import branch_outputs, plan_rows
from crown.plan.tree.draft import RingTerm
from crown.plan.tree.optional import own_variables
from crown.plan.tree.passes import plan_conjunction
from crown.types import BOOLEAN, FLOAT64, INT8, INT64, DataType, longest_decimal

# Aggregates that don't depend on duplicates, and those that read all values of a group.
_INSENSITIVE = frozenset({"min", "max", "first", "bit_and", "bit_or"})
_READ_WHOLE = frozenset({"string_agg", "array_agg", "percentile_cont", "percentile_disc", "mode"})


def plan_aggregate(select: Select, planning: Planning) -> StageRows:
    """Return the groups, filtered by HAVING, as the select's outputs."""
    assert select.group_by is not None
    if select.sets is not None:
        groups, values = _by_sets(select, select.sets, planning)
    elif not select.aggregates and select.group_by:
        groups = plan_rows(Select(select.branches, select.group_by), "drop", planning)
        values = own_columns(groups)
    else:
        rings = [_branch_ring(branch, select) for branch in select.branches]
        known = [ring for ring in rings if ring is not None]
        if len(known) == len(rings):
            groups, values = _by_ring(select, known, planning)
        else:
            names = [group.name for group in select.group_by]
            parts = [_by_folding(replace(select, aggregates=part), planning) for part in separate(select)]
            groups, values = parts[0] if len(parts) == 1 else side_by_side(parts, names, planning)
    outputs = [Named(output.name, substitute(output.expression, values)) for output in select.outputs]
    having = None if select.having is None else substitute(select.having, values)
    if having is not None:
        planning.note(
            "HAVING", groups.stage, "checked once for each changed group", "constant delay: groups may be skipped"
        )
    note_computed(select.outputs, groups.stage, planning)
    return project(groups, outputs, planning, where=having)


@dataclass(frozen=True)
class _Ring:
    """The ring components of one branch, and for each aggregate its count and its sum over them."""

    terms: tuple[RingTerm, ...]
    counts: dict[str, Expression]
    sums: dict[str, Expression]
    may_be_empty: frozenset[str]  # aggregates whose argument may be NULL in all rows of a group


def _branch_ring(branch: Conjunction, select: Select) -> _Ring | None:
    """None if some aggregate does not fit the ring."""
    edges = [frozenset(atom.variables) for atom in branch.atoms]
    holders = Counter(variable for edge in edges for variable in edge)
    nullable = {variable.name for variable in branch.variables if variable.nullable and holders[variable.name] <= 1}
    edges += own_variables(branch.optional, frozenset(holders))
    columns = {column.name: column.expression for column in branch.columns}
    terms: dict[tuple[tuple[Expression, ...], str], RingTerm] = {}
    counts: dict[str, Expression] = {}
    sums: dict[str, Expression] = {}
    may_be_empty = set()

    def component(term: RingTerm) -> Expression:
        shared = terms.setdefault((term.factors, term.type), term)
        return Column(shared.name, shared.type)

    for aggregate in select.aggregates:
        if aggregate.distinct or aggregate.function not in ("count", "sum", "avg"):
            return None
        argument = None if aggregate.argument is None else substitute(aggregate.argument, columns)
        counted = count_term(f"count({aggregate.name})", argument, edges, nullable.__contains__)
        if counted is None:
            return None
        counts[aggregate.name] = component(counted)
        if counted.factors:
            may_be_empty.add(aggregate.name)
        if aggregate.function != "count":
            assert argument is not None
            summed = sum_terms(f"sum({aggregate.name})", argument, edges, nullable.__contains__)
            if summed is None:
                return None
            type_ = _carried_type(argument.type)
            parts = [cast(component(term), type_) for term in summed]
            sums[aggregate.name] = reduce(lambda one, other: Call("add", (one, other), type_), parts)
    if not terms:
        component(RingTerm("count", (), INT64))
    return _Ring(tuple(terms.values()), counts, sums, frozenset(may_be_empty))


def _carried_type(type_: DataType) -> DataType:
    """Return the type in which a tree carries a sum; the aggregate's own is that of its result."""
    return longest_decimal(type_.scale) if type_.scale is not None else INT64 if type_.is_integer else FLOAT64


def _by_ring(select: Select, rings: Sequence[_Ring], planning: Planning) -> tuple[StageRows, dict[str, Expression]]:
    assert select.group_by is not None
    groups = [branch_outputs(branch, select.group_by) for branch in select.branches]
    always = not select.group_by
    partial = [
        plan_conjunction(
            branch, variables_of(g.expression for g in group), "ring", planning, terms=ring.terms, always=always
        )
        for branch, group, ring in zip(select.branches, groups, rings, strict=True)
    ]
    planning.note(
        _labels(select.aggregates),
        partial[0].stage,
        "annotations in the tree: O(1) at each node that a change reaches; no values are stored"
        + ("; its one row exists from the start" if always else ""),
    )
    note_branches(select.branches, partial[0].stage, planning)
    ring = rings[0]
    plain = [group.expression.name if isinstance(group.expression, Column) else None for group in groups[0]]
    shown = [column.name for column in partial[0].columns[: -len(ring.terms)]]
    if len(partial) == 1 and sorted(shown) == sorted(str(name) for name in plain):
        rows = partial[0]
        by_name = {group.name: group.expression for group in groups[0]}
        counts, sums = ring.counts, ring.sums
    else:
        rows, by_name, counts, sums = _summed(select, groups, rings, partial, always, planning)
    values = by_name | {
        aggregate.name: _final(aggregate, counts, sums, always or any(aggregate.name in r.may_be_empty for r in rings))
        for aggregate in select.aggregates
    }
    return rows, values


def _summed(
    select: Select,
    groups: Sequence[tuple[Named, ...]],
    rings: Sequence[_Ring],
    partial: Sequence[StageRows],
    always: bool,
    planning: Planning,
) -> tuple[StageRows, dict[str, Expression], dict[str, Expression], dict[str, Expression]]:
    """A stage that adds up the trees' partial sums per group; the group and each count and sum by aggregate name."""
    assert select.group_by is not None
    parts = [
        [
            *group,
            *(Named(f"count({name})", expression) for name, expression in ring.counts.items()),
            *(Named(f"sum({name})", expression) for name, expression in ring.sums.items()),
        ]
        for group, ring in zip(groups, rings, strict=True)
    ]
    rows = union_all(
        [project(one, shown, planning, named=True) for one, shown in zip(partial, parts, strict=True)], planning
    )
    group_columns, summed_columns = rows.columns[: len(select.group_by)], rows.columns[len(select.group_by) :]
    stage = AggregateStage(
        planning.new_id("sum"),
        rows.stage,
        tuple(column.name for column in group_columns),
        tuple(AggregateColumn(c.name, "sum", Column(c.name, c.type), c.type) for c in summed_columns),
        always,
    )
    planning.add(stage)
    planning.note(
        "partial sums",
        stage.id,
        "one addition for each changed row of the tree; one number is stored per group and aggregate",
        "updates in O(λ): the changed rows of the tree are enumerated",
    )
    columns = group_columns + tuple(Variable(c.name, c.type, always) for c in summed_columns)
    by_name: dict[str, Expression] = {
        group.name: Column(column.name, column.type)
        for group, column in zip(select.group_by, group_columns, strict=True)
    }

    def total(kind: str, name: str) -> Expression:
        column = columns[rows.names.index(f"{kind}({name})", len(group_columns))]
        read = Column(column.name, column.type)
        return Call("coalesce", (read, zero(column.type)), column.type) if always else read

    counts = {name: total("count", name) for name in rings[0].counts}
    sums = {name: total("sum", name) for name in rings[0].sums}
    named = StageRows(stage.id, columns, tuple(c.name for c in columns), distinct=True, key=tuple(stage.group))
    return named, by_name, counts, sums


def _final(
    aggregate: Aggregate, counts: dict[str, Expression], sums: dict[str, Expression], may_be_empty: bool
) -> Expression:
    count = counts[aggregate.name]
    if aggregate.function == "count":
        return cast(count, aggregate.type)
    total = sums[aggregate.name]
    value = cast(total, aggregate.type)
    if aggregate.function == "avg":
        type_ = total.type if aggregate.type.is_decimal else FLOAT64
        type_ = type_ if type_.is_decimal or type_ == FLOAT64 else longest_decimal(0)
        value = cast(
            Call("divide", (cast(total, type_), cast(count, type_)), _quotient(aggregate.type)), aggregate.type
        )
    if not may_be_empty:
        return value
    return null_if(Call("eq", (count, Literal(0, INT64)), BOOLEAN), value)


def _quotient(type_: DataType) -> DataType:
    return type_ if type_.is_decimal else FLOAT64


def _by_folding(select: Select, planning: Planning) -> tuple[StageRows, dict[str, Expression]]:
    assert select.group_by is not None
    arguments = dict.fromkeys(e for a in select.aggregates for e in a.expressions)
    insensitive = all(a.distinct or a.function in _INSENSITIVE for a in select.aggregates)
    one_argument = insensitive and len(arguments) == 1
    given = {group.expression: group.name for group in select.group_by}
    extra = tuple(Named(f"argument {i}", argument) for i, argument in enumerate(arguments) if argument not in given)
    rows = plan_rows(
        Select(select.branches, select.group_by + extra),
        "drop" if one_argument else "ignore" if insensitive else "keep",
        planning,
    )
    own = own_columns(rows)
    column_of = {named.expression: own[named.name] for named in (*select.group_by, *extra)}
    group_columns = rows.columns[: len(select.group_by)]
    names = unique([c.name for c in group_columns] + [f"{a.function}({a.name})" for a in select.aggregates])
    aggregates = tuple(
        aggregate_column(name, aggregate.over(column_of.__getitem__), one_argument)
        for name, aggregate in zip(names[len(group_columns) :], select.aggregates, strict=True)
    )
    stage = AggregateStage(
        planning.new_id("aggregate"), rows.stage, tuple(c.name for c in group_columns), aggregates, not select.group_by
    )
    planning.add(stage)
    _note_folding(select, stage, planning)
    columns = group_columns + tuple(
        Variable(a.name, a.type, a.function not in ("count", "count_distinct")) for a in aggregates
    )
    values = {group.name: own[group.name] for group in select.group_by}
    values |= {a.name: Column(c.name, c.type) for a, c in zip(select.aggregates, aggregates, strict=True)}
    names = tuple(c.name for c in columns)
    return StageRows(stage.id, columns, names, distinct=True, key=stage.group), values


def _by_sets(
    select: Select, sets: tuple[tuple[str, ...], ...], planning: Planning
) -> tuple[StageRows, dict[str, Expression]]:
    """One tree for the rows, one stage for each grouping, and their union."""
    assert select.group_by is not None
    arguments = dict.fromkeys(e for a in select.aggregates for e in a.expressions)
    given = {group.expression: group.name for group in select.group_by}
    extra = tuple(Named(f"argument {i}", argument) for i, argument in enumerate(arguments) if argument not in given)
    rows = plan_rows(Select(select.branches, select.group_by + extra), "keep", planning)
    own = own_columns(rows)
    column_of = {named.expression: own[named.name] for named in (*select.group_by, *extra)}
    parts = [_grouping(select, one, rows, own, column_of, planning) for one in sets]
    united = union_all(parts, planning)
    planning.note(
        f"{len(sets)} grouping sets", united.stage, "the rows are joined once, and each change is folded into each set"
    )
    return united, own_columns(united)


def _grouping(
    select: Select,
    names: tuple[str, ...],
    rows: StageRows,
    own: Mapping[str, Expression],
    column_of: Mapping[Expression, Expression],
    planning: Planning,
) -> StageRows:
    """The groups of one grouping set, with NULL for the other columns of GROUP BY, then the flags, then aggregates."""
    assert select.group_by is not None
    inside = [group for group in select.group_by if group.name in names]
    keys = [own[group.name] for group in inside]
    grouped = tuple(dict.fromkeys(key.name for key in keys if isinstance(key, Column)))
    fresh = unique([*grouped, *(f"{a.function}({a.name})" for a in select.aggregates)])[len(grouped) :]
    aggregates = tuple(
        aggregate_column(name, aggregate.over(column_of.__getitem__), False)
        for name, aggregate in zip(fresh, select.aggregates, strict=True)
    )
    stage = AggregateStage(planning.new_id("aggregate"), rows.stage, grouped, aggregates)
    planning.add(stage)
    _note_folding(select, stage, planning)
    columns = tuple(c for name in grouped for c in rows.columns if c.name == name)
    columns += tuple(Variable(a.name, a.type, not a.function.startswith("count")) for a in aggregates)
    groups = StageRows(stage.id, columns, tuple(c.name for c in columns), distinct=True, key=grouped)
    shown = [Named(g.name, own[g.name] if g in inside else Literal(None, own[g.name].type)) for g in select.group_by]
    shown += [Named(grouping_name(g.name), Literal(int(g not in inside), INT8)) for g in select.group_by]
    shown += [Named(a.name, Column(c.name, c.type)) for a, c in zip(select.aggregates, aggregates, strict=True)]
    return project(groups, shown, planning, named=True)


def aggregate_column(name: str, aggregate: Aggregate, rows_are_distinct: bool) -> AggregateColumn:
    """The aggregate over columns of a stage, as the kernel folds it."""
    function = _function(aggregate, rows_are_distinct)
    return AggregateColumn(
        name,
        function,
        aggregate.argument,
        aggregate.type,
        aggregate.further,
        tuple(OrderBy(o.expression, o.descending, o.nulls_first) for o in aggregate.order),
        aggregate.condition,
        aggregate.distinct and not rows_are_distinct and not function.startswith("count"),
        aggregate.parameter,
    )


def _note_folding(select: Select, stage: AggregateStage, planning: Planning) -> None:
    functions = {aggregate.function for aggregate in stage.aggregates}
    once = ", which has each value of a group once" if any(a.distinct for a in select.aggregates) else ""
    loses = "updates in O(λ): the changed rows of the tree are enumerated"
    if functions & _READ_WHOLE:
        cost = "O(log N) for each changed row of the tree; the values of each changed group are read once per batch"
        loses += "; linear space: the values of each group are stored"
    elif functions & {"min", "max", "first"}:
        cost = "O(log N) for each changed row of the tree, in an ordered multiset per group"
        loses += "; linear space: the values of each group are stored"
    elif "count_distinct" in functions:
        cost = "O(1) for each changed row of the tree, in a counted set per group"
        loses += "; linear space: the values of each group are stored"
    else:
        cost = f"O(1) for each changed row of the tree{once}; one number is stored per group and aggregate"
    planning.note(_labels(select.aggregates), stage.id, cost, loses)


def _labels(aggregates: Sequence[Aggregate]) -> str:
    return ", ".join(sorted({_label(aggregate) for aggregate in aggregates})) or "GROUP BY"


def _label(aggregate: Aggregate) -> str:
    return f"{aggregate.function.upper()}({'DISTINCT' if aggregate.distinct else ''})".replace("()", "")


def _function(aggregate: Aggregate, rows_are_distinct: bool) -> Folding:
    if aggregate.distinct and aggregate.function == "count" and not rows_are_distinct:
        return "count_distinct"
    return aggregate.function
