"""Correlated subqueries as joins with groups: one row for each value of the correlated columns.

A scalar aggregate correlated by equality is its value per group. EXISTS with one comparison to the outer row needs only
the group's extremes: some y < x exactly when MIN(y) < x, some y <> x exactly when MIN(y) <> x or MAX(y) <> x.
Plain EXISTS and IN are conditions: see `where`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from crown.ir.expression import Call, Column, Expression, Literal, columns_of
from crown.ir.query import AggregateFunction, Named, Select
from crown.ir.tables import TableColumn
from crown.sql.clauses.grouping.aggregates import MARK, Collected
from crown.sql.clauses.subqueries.domain import Pair, reads_one_atom
from crown.sql.context import Context
from crown.sql.normalise.conjunction import Wanted, build_conjunctions
from crown.sql.relation import Branch, Relation, VisibleColumn
from crown.sql.scalar.fold import FLIPPED
from crown.sql.scope import Scope
from crown.types import BOOLEAN


@dataclass(frozen=True)
class Correlation:
    """A comparison `inner function outer` between the subquery's columns and those around it."""

    function: str
    inner: Expression
    outer: Expression


def correlation_of(predicate: Expression, inner: frozenset[str]) -> Correlation | None:
    """Return the predicate as a comparison of one side each; None if it is anything else."""
    if not (isinstance(predicate, Call) and predicate.function in FLIPPED):
        return None
    left, right = predicate.arguments
    on_left, on_right = set(columns_of(left)), set(columns_of(right))
    if not on_left or not on_right:
        return None
    if on_left <= inner and not on_right & inner:
        return Correlation(predicate.function, left, right)
    if on_right <= inner and not on_left & inner:
        return Correlation(FLIPPED[predicate.function], right, left)
    return None


def group_relation(
    context: Context,
    relation: Relation,
    keys: Sequence[Expression],
    aggregates: Sequence[Collected],
    values: Sequence[Expression],
) -> Relation:
    """Return one atom over a nested body with a row for each group: columns for `keys`, then for `values`.

    `values` are over the aggregates, which they name with `MARK`.
    """
    names = [f"key_{i + 1}" for i in range(len(keys))]
    wanted = dict(zip(names, keys, strict=True))
    found = []
    for aggregate in aggregates:

        def column(expression: Expression, base: str = f"{aggregate.name}_input") -> Expression:
            name = next(
                n for i in count(1) if wanted.get(n := base if i == 1 else f"{base}_{i}", expression) == expression
            )
            wanted[name] = expression
            return Column(name, expression.type)

        found.append(aggregate.over(column))
    shown = {f"value_{i + 1}": v for i, v in enumerate(values)}
    body = Select(
        branches=build_conjunctions(
            context,
            (
                (b, [Wanted(n, context.in_branch(e, b), bind=n in names) for n, e in wanted.items()])
                for b in relation.branches
            ),
        ),
        outputs=(
            *(Named(n, Column(n, wanted[n].type)) for n in names),
            *(Named(n, _without_mark(v)) for n, v in shown.items()),
        ),
        group_by=tuple(Named(n, Column(n, wanted[n].type)) for n in names),
        aggregates=tuple(found),
    )
    source = context.nest("_".join(t.alias for t in relation.tables[:3]) + "_groups", body)
    columns = [(n, wanted[n].type) for n in names] + [(n, v.type) for n, v in shown.items()]
    atom = context.new_source(source, source, [TableColumn(n, t, True) for n, t in columns])
    visible = tuple(VisibleColumn(n, atom.column(n), t) for n, t in columns)
    return Relation((Branch((atom,)),), (), visible)


def _without_mark(expression: Expression) -> Expression:
    if isinstance(expression, Column):
        return replace(expression, name=expression.name.removeprefix(MARK))
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(_without_mark(a) for a in expression.arguments))
    return expression


@dataclass(frozen=True)
class Extremes:
    """EXISTS decided by groups: `pairs` join the groups with the outer row, and `holds` is the condition."""

    groups: Relation
    pairs: tuple[Pair, ...]
    holds: Expression

    @property
    def keys(self) -> tuple[Expression, ...]:
        return tuple(Call("eq", (outer, inner), BOOLEAN) for inner, outer in self.pairs)

    @property
    def fails(self) -> Expression:
        """Return a predicate that is TRUE when the comparison is FALSE or unknown."""
        known = Call("coalesce", (self.holds, Literal(False, BOOLEAN)), BOOLEAN)
        return Call("not", (known,), BOOLEAN)


def extremes(
    context: Context, inner: Relation, known: frozenset[str], predicates: Sequence[Expression], scope: Scope
) -> Extremes | None:
    """Return what decides EXISTS of `inner` with one comparison beside equalities; None if it is not of that form."""
    found = [correlation_of(p, known) for p in predicates]
    pairs = [c for c in found if c is not None]
    others = [c for c in pairs if c.function != "eq"]
    if len(pairs) < len(found) or len(others) != 1:
        return None
    equal = [c for c in pairs if c.function == "eq"]
    if not all(reads_one_atom(context, c.outer, scope) for c in equal):
        return None
    function, value, outer = others[0].function, others[0].inner, others[0].outer
    needed: list[AggregateFunction] = ["min"] if function in ("lt", "le") else ["max"]
    if function == "ne":
        needed = ["min", "max"]
    groups = group_relation(
        context,
        inner,
        [c.inner for c in equal],
        [Collected(name, name, value, False, value.type) for name in needed],
        [Column(MARK + name, value.type) for name in needed],
    )
    columns = groups.visible
    keys = [(k.reference, c.outer) for k, c in zip(columns, equal, strict=False)]
    parts = [Call(function, (v.reference, outer), BOOLEAN) for v in columns[len(equal) :]]
    return Extremes(groups, tuple(keys), parts[0] if len(parts) == 1 else Call("or", tuple(parts), BOOLEAN))
