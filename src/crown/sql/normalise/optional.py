"""Outer joins within one branch: which optional sources stay optional, and how the others are rewritten.

`a LEFT JOIN b ON a.k = b.k` keeps `b` as an optional source of `a`'s branch. Later predicates on its columns may decide
whether it has a row: a WHERE that no row of NULLs satisfies makes it an ordinary join, one that only such a row
satisfies an anti-join. If the plan can't attach it to one table by key, the branch is split into the rows with a match
and the rows without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NoReturn

from sqlglot import exp

from crown.ir.expression import Call, Column, Expression, Literal
from crown.sql.context import Context
from crown.sql.normalise.atoms import null_rejected
from crown.sql.normalise.levels import build_level, never_holds
from crown.sql.normalise.limits import MAX_BRANCHES, refuse_branches
from crown.sql.relation import Branch, OptionalSource, Relation, Source, Subcondition, atoms_of
from crown.sql.scalar.fold import conjunction
from crown.types import BOOLEAN, INT32

ONE = Literal(1, INT32)

Case = tuple[Branch, tuple[Expression, ...]]


def optional_join(
    context: Context,
    left: Relation,
    right: Relation,
    predicates: Sequence[Expression],
    node: exp.Expr,
    *,
    subquery: bool = False,
) -> list[Branch] | None:
    """The branches of `left` LEFT JOIN `right`, with `right` as an optional source; None unless it is one source.

    `subquery`: it is the value of a subquery, for explain.
    """
    if len(right.branches) != 1:
        return None
    side, _ = _decided(context, (right.branches[0], ()))
    if len(side.atoms) != 1 or side.conditions:
        return None
    (source,) = side.atoms
    columns = tuple({c.id: c for c in right.columns}.values())
    values = {i: _shown(context, side, source, value) for i, value in side.values.items()}
    branches = []
    for branch in left.branches:
        both = {**branch.values, **side.values}
        on = tuple(context.substitute(p, both, branch.atom_ids | {source.id}) for p in predicates)
        added = OptionalSource(source, (*side.predicates, *on), columns, context.place(node), subquery)
        if any(atoms_of(p) & side.optional_ids for p in added.predicates):
            return None
        below = tuple(_below(context, side, source, one) for one in side.optional)
        branches.append(replace(branch, values={**branch.values, **values}, optional=(*branch.optional, added, *below)))
    return branches


def _shown(context: Context, side: Branch, source: Source, value: Expression) -> Expression:
    """A column of the optional side: NULL wherever the side has no row, even if its expression would not be."""
    if isinstance(value, Column) or _absent(context, side, source, value) == Literal(None, value.type):
        return value
    if atoms_of(value) <= {source.id}:
        return context.compute(source, value)
    there = Call("eq", (marker(context, source), ONE), BOOLEAN)
    return Call("case", (there, value, Literal(None, value.type)), value.type)


def _below(context: Context, side: Branch, source: Source, one: OptionalSource) -> OptionalSource:
    """An optional source of the side: it has no row where the side itself has none."""
    alone = [_absent(context, side, source, p) for p in one.predicates]
    if never_holds(tuple(alone)):
        return one
    there = Call("eq", (marker(context, source), ONE), BOOLEAN)
    return replace(one, predicates=(*one.predicates, there))


def marker(context: Context, source: Source) -> Column:
    """A column of the source that is 1 in each of its rows."""
    return context.compute(source, ONE)


def _absent(context: Context, side: Branch, source: Source, expression: Expression) -> Expression:
    """The value of an expression over the side where the side has no row."""
    gone = _dependents(context, side.optional, source)
    return context.without_rows(expression, gone, side.atom_ids)


def _dependents(context: Context, optional: Iterable[OptionalSource], source: Source) -> frozenset[str]:
    """The source, and the optional sources that have no row where it has none."""
    gone = frozenset({source.id})
    for one in optional:
        if never_holds(tuple(context.without_rows(p, gone, frozenset()) for p in one.predicates)):
            gone |= {one.source.id}
    return gone


def settled(context: Context, branch: Branch, expressions: Sequence[Expression]) -> list[Case]:
    """The branch, or the branches that stand for it, and the expressions over each."""
    ready: list[Case] = []
    waiting: list[Case] = [(branch, tuple(expressions))]
    while waiting:
        case = _decided(context, waiting.pop(0))
        culprit = _misfit(context, case[0])
        if culprit is None:
            ready.append(case)
        else:
            waiting = [*_apart(context, case, culprit), *waiting]
        if len(ready) + len(waiting) > MAX_BRANCHES:
            _too_many(context, branch)
    return [case for case in ready if not never_holds(case[0].predicates)] or ready[:1]


def unfolded(context: Context, relation: Relation) -> Relation:
    """The relation without optional sources: its branches are split at each."""
    if not any(branch.optional for branch in relation.branches):
        return relation
    branches: list[Branch] = []
    for branch in relation.branches:
        waiting: list[Case] = [(branch, ())]
        while waiting:
            case = waiting.pop(0)
            if case[0].optional:
                waiting = [*_apart(context, case, case[0].optional[0]), *waiting]
            else:
                branches.append(case[0])
            if len(branches) + len(waiting) > MAX_BRANCHES:
                _too_many(context, branch)
    possible = [b for b in branches if not never_holds(b.predicates)]
    return relation.with_branches(possible or branches[:1])


def _decided(context: Context, case: Case) -> Case:
    """The case with each optional source joined, or ruled out, that its predicates say must or can't have a row."""
    position = 0
    while position < len(case[0].optional):
        asked = {atom for p in case[0].predicates for atom in atoms_of(p)}
        if not asked & case[0].optional_ids:
            break
        one = case[0].optional[position]
        without, with_row = _unmatched(context, case, one), _matched(context, case, one)
        if never_holds(without[0].predicates):
            case, position = with_row, 0
        elif never_holds(_known_rows(context, with_row[0], one)):
            case, position = _barred(context, without, one), 0
        else:
            position += 1
    return case


def _known_rows(context: Context, branch: Branch, one: OptionalSource) -> tuple[Expression, ...]:
    """The branch's predicates, given that the columns that its ON compares are not NULL."""
    known = null_rejected(conjunction(list(one.predicates)))
    return tuple(context.substitute(p, {}, branch.atom_ids, known) for p in branch.predicates)


def _apart(context: Context, case: Case, one: OptionalSource) -> list[Case]:
    """The rows in which the source has a row, and those in which it has none."""
    return [_matched(context, case, one), _barred(context, _unmatched(context, case, one), one)]


def _matched(context: Context, case: Case, one: OptionalSource) -> Case:
    branch, expressions = case
    atoms = branch.atom_ids | {one.source.id}
    computed = context.computed_columns(one.source)

    def plain(expression: Expression) -> Expression:
        return context.substitute(expression, computed, atoms)

    joined = replace(
        branch,
        atoms=(*branch.atoms, one.source),
        predicates=tuple(plain(p) for p in (*branch.predicates, *one.predicates)),
        conditions=tuple(_changed_condition(c, plain) for c in branch.conditions),
        values={i: plain(v) for i, v in branch.values.items()},
        optional=tuple(
            replace(o, predicates=tuple(plain(p) for p in o.predicates)) for o in branch.optional if o is not one
        ),
    )
    return joined, tuple(plain(e) for e in expressions)


def _unmatched(context: Context, case: Case, one: OptionalSource) -> Case:
    branch, expressions = case
    gone = _dependents(context, [o for o in branch.optional if o is not one], one.source)

    def padded(expression: Expression) -> Expression:
        return context.without_rows(expression, gone, branch.atom_ids)

    padding = {c.id: Literal(None, c.type) for o in branch.optional if o.source.id in gone for c in o.columns}
    rest = replace(
        branch,
        predicates=tuple(padded(p) for p in branch.predicates),
        conditions=tuple(_changed_condition(c, padded) for c in branch.conditions),
        values={**{i: padded(v) for i, v in branch.values.items()}, **padding},
        optional=tuple(
            replace(o, predicates=tuple(padded(p) for p in o.predicates))
            for o in branch.optional
            if o.source.id not in gone
        ),
    )
    return rest, tuple(padded(e) for e in expressions)


def _barred(context: Context, case: Case, one: OptionalSource) -> Case:
    """The case without a row of the source, restricted to where there is none."""
    branch, expressions = case
    inner = Branch((one.source,), _own_predicates(context, branch, one))
    condition = Subcondition(inner, True, one.place, "outer join")
    barred = replace(branch, conditions=(*branch.conditions, condition))
    reason = "it is a subquery that is" if one.subquery else "its ON or a condition is"
    return barred.added_by("outer join", f"{one.source.name}: {reason} not by key of one table"), expressions


def _own_predicates(context: Context, branch: Branch, one: OptionalSource) -> tuple[Expression, ...]:
    computed = context.computed_columns(one.source)
    return tuple(context.substitute(p, computed, branch.atom_ids | {one.source.id}) for p in one.predicates)


def _changed_condition(condition: Subcondition, change: Callable[[Expression], Expression]) -> Subcondition:
    """The condition with its references to the outer rows replaced."""
    branch = condition.branch
    changed = replace(
        branch,
        predicates=tuple(change(p) for p in branch.predicates),
        conditions=tuple(_changed_condition(c, change) for c in branch.conditions),
    )
    return replace(condition, branch=changed)


def _misfit(context: Context, branch: Branch) -> OptionalSource | None:
    """An optional source that can't stay one: a condition reads it, or it can't be attached to one table by key."""
    if not branch.optional:
        return None
    read = {atom for condition in branch.conditions for atom in _read_by(condition)}
    for one in branch.optional:
        if one.source.id in read:
            return one
    return build_level(context, branch).misfit


def _read_by(condition: Subcondition) -> Iterator[str]:
    for predicate in condition.branch.predicates:
        yield from atoms_of(predicate)
    for inner in condition.branch.conditions:
        yield from _read_by(inner)


def _too_many(context: Context, branch: Branch) -> NoReturn:
    reason = "an outer join whose ON is more than equalities with one table doubles the joins that are maintained"
    refuse_branches(context, branch.optional[0].place if branch.optional else None, reason)
