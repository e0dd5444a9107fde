"""WHERE: predicates, and EXISTS, IN and their negations as conditions.

`x NOT IN (SELECT y ...)` is TRUE when no y equals x, no y is NULL, and x is not NULL unless the subquery is
empty: up to three anti-joins, of which those that can't matter (y or x never NULL) are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from crown.ir.expression import Call, Expression, columns_of
from crown.sql.clauses.grammar import Environment
from crown.sql.clauses.subqueries.attach import attach, equalities, gathered
from crown.sql.clauses.subqueries.correlates import correlates
from crown.sql.clauses.subqueries.decorrelate import Extremes, correlation_of, extremes
from crown.sql.clauses.subqueries.domain import domain_of, known, outside, reads_one_atom
from crown.sql.clauses.subqueries.inner import Inner, Single, bind_inner, by_key, unwrapped
from crown.sql.clauses.subqueries.marks import check_columns, is_union, test_of, value_of
from crown.sql.clauses.subqueries.subqueries import SelectSubqueries
from crown.sql.context import Context
from crown.sql.diagnose import Place
from crown.sql.normalise.nesting import has_residual, nest_columns, nest_relation
from crown.sql.normalise.optional import unfolded
from crown.sql.normalise.outer import attached, restricted
from crown.sql.relation import Branch, Relation, Subcondition, atoms_of
from crown.sql.scalar.binder import Binder
from crown.sql.scalar.coerce import always, compare
from crown.sql.scalar.fold import conjuncts, fold
from crown.sql.scope import Scope
from crown.types import BOOLEAN

MOST_CONDITIONS = 2_000  # EXISTS and NOT EXISTS that one subquery becomes, with those inside it


def bind_where(
    context: Context, clause: exp.Expr | None, relation: Relation, parent: Scope | None, environment: Environment
) -> tuple[Relation, list[Expression]]:
    """The relation restricted by WHERE, and those predicates (of ON too) that read outer queries."""
    correlated = list(relation.correlated)
    relation = replace(relation, correlated=())
    if clause is None:
        return relation, correlated
    return restrict(context, clause.this, relation, correlated, parent, environment, "WHERE")


def restrict(
    context: Context,
    condition: exp.Expr,
    relation: Relation,
    correlated: list[Expression],
    parent: Scope | None,
    environment: Environment,
    clause: str,
) -> tuple[Relation, list[Expression]]:
    """The relation restricted by a condition, and `correlated` with what the condition adds."""
    subqueries = SelectSubqueries(context, environment, clause)
    scope = Scope(relation, parent)
    binder = Binder(context, scope, subqueries)
    own: list[Expression] = []
    tests: list[_Test] = []
    predicates: list[Expression] = []
    for node, negated in _conjuncts(condition, False):
        found = _test(subqueries, node, negated, binder)
        if isinstance(found, _Test):
            tests.append(found)
            continue
        predicate = binder.condition(node) if found is None else found
        if negated:
            predicate = context.mark(fold(Call("not", (predicate,), BOOLEAN), always), node)
        predicates += conjuncts(predicate)
    inner = relation.ids.union(*(a.ids for a in subqueries.attachments))
    for part in predicates:
        (own if set(columns_of(part)) <= inner else correlated).append(part)
    relation, correlated = attach(context, relation, subqueries.attachments, correlated, parent)
    relation = relation.with_branches(restricted(context, b, own) for b in relation.branches)
    for test in tests:
        relation, correlated = _restrict(context, relation, test, parent, correlated)
    return relation, correlated


@dataclass(frozen=True)
class _Test:
    """EXISTS or IN as a separate condition: a semi-join, or negated an anti-join."""

    node: exp.Expr
    negated: bool
    construct: str
    inner: Inner
    pairs: tuple[tuple[Expression, Expression], ...]  # subjects of IN, and what they are compared with
    compared: tuple[Expression, ...]


def _test(subqueries: SelectSubqueries, node: exp.Expr, negated: bool, binder: Binder) -> _Test | Expression | None:
    """Return the test of a subquery that the node is: as a condition, or if it can't be one as a value."""
    context, scope = subqueries.context, binder.scope
    test = test_of(node)
    if test is None or test.function not in (None, "eq"):
        return None
    query = unwrapped(context, test.query)
    if is_union(query) and correlates(context, query, scope, subqueries.environment.names):
        return None
    inner = bind_inner(context, query, scope, subqueries.environment, exists=test.function is None)
    subjects = [binder.bind(s) for s in test.subjects]
    check_columns(context, node, test, inner)
    without = negated != test.negated
    if isinstance(inner, Single) or inner.chooses or (without and _is_hard(context, inner, subjects, scope)):
        return value_of(subqueries, node, test, inner, subjects, scope)
    pairs = tuple(zip(subjects, inner.outputs, strict=True)) if test.function is not None else ()
    compared = tuple(compare(context, node, "eq", s, o) for s, o in pairs)
    construct = f"{'NOT ' if without else ''}{'EXISTS' if test.function is None else 'IN'}"
    return _Test(node, without, construct, inner, pairs, compared)


def _is_hard(context: Context, inner: Inner, subjects: list[Expression], scope: Scope) -> bool:
    """Whether NOT IN can't be an anti-join: a NULL in one of several columns matters only if the others are equal."""
    branches, rows = scope.relation.branches, inner.relation.branches
    nullable = [any(context.may_be_null(s, b) for b in branches) for s in subjects]
    nullable += [any(context.may_be_null(o, b) for b in rows) for o in inner.outputs]
    return len(subjects) > 1 and any(nullable)


def _conjuncts(node: exp.Expr, negated: bool) -> list[tuple[exp.Expr, bool]]:
    """Return the parts of a conjunction, with NOT pushed inwards as far as subquery tests need it."""
    if isinstance(node, exp.Paren):
        return _conjuncts(node.this, negated)
    if isinstance(node, exp.Not):
        return _conjuncts(node.this, not negated)
    splits = exp.Or if negated else exp.And
    if isinstance(node, splits):
        return [found for part in node.flatten() for found in _conjuncts(part, negated)]
    return [(node, negated)]


def _restrict(
    context: Context, relation: Relation, test: _Test, parent: Scope | None, correlated: list[Expression]
) -> tuple[Relation, list[Expression]]:
    """The relation restricted by the test."""
    inner, place = test.inner.relation, context.place(test.node)
    asked = [*test.inner.correlated, *test.compared]
    far = outside(asked, known(inner) | relation.ids)
    if far:
        values = domain_of(context, far | outside(correlated, relation.ids), parent, test.node)
        own = [values.rewritten(context, p) for p in correlated]
        relation = values.beside(relation)
        relation = relation.with_branches(restricted(context, b, own) for b in relation.branches)
        asked, correlated = [values.rewritten(context, p) for p in asked], list(equalities(values.pairs(own)))
        subjects = [values.rewritten(context, subject) for subject, _ in test.pairs]
        test = replace(test, pairs=tuple((s, output) for s, (_, output) in zip(subjects, test.pairs, strict=True)))
    scope = Scope(relation, parent)
    decided = extremes(context, inner, known(inner), asked, scope) if not test.pairs else None
    if decided is not None:
        return _by_extremes(context, relation, decided, test.negated, place, test.construct), correlated
    conditions = _asked(context, inner, asked, test, scope)
    relation = gathered(context, relation, [p for c in conditions for p in c.branch.predicates])
    if test.negated and test.pairs:
        conditions += _null_conditions(context, relation, test, asked[: len(test.inner.correlated)], scope)
    if sum(map(_count, conditions)) > MOST_CONDITIONS:
        context.fail(
            test.node,
            "TOO-LONG",
            f"the subqueries in this one make more than {MOST_CONDITIONS:,} conditions",
            reason="NOT IN is up to three conditions, because of NULLs, and so is each NOT IN inside it",
            hint="use NOT EXISTS, declare the columns NOT NULL, or split the query into several views",
        )
    return relation.with_branches(
        _with_conditions(context, branch, conditions) for branch in relation.branches
    ), correlated


def semi_join(
    context: Context,
    left: Relation,
    right: Relation,
    predicates: list[Expression],
    negated: bool,
    construct: str,
    node: exp.Expr,
) -> Relation:
    """The rows of `left` with, or negated without, a row of `right` that satisfies the predicates with it."""
    test = _Test(node, negated, construct, Inner(right, tuple(predicates), ()), (), ())
    found, _ = _restrict(context, left, test, None, [])
    return found


def _asked(context: Context, inner: Relation, asked: list[Expression], test: _Test, scope: Scope) -> list[Subcondition]:
    """Test whether some row of `inner`, or none, satisfies the predicates: by keys, of nested rows if necessary."""
    place = context.place(test.node)
    own = [p for p in asked if set(columns_of(p)) <= known(inner)]
    asked = [p for p in asked if p not in own]
    inner = inner.with_branches(restricted(context, b, own) for b in inner.branches)
    if all(_is_key(context, inner, p, scope) for p in asked):
        return _conditions(context, inner, asked, test.negated, place, test.construct)
    keyed = by_key(context, inner, asked, scope, test.node, guarded=False)
    columns = {f"key_{i + 1}": e for i, (e, _) in enumerate(keyed.pairs)}
    rows = nest_columns(context, keyed.relation, columns, distinct=True, name="condition")
    pairs = [(c.reference, outer) for c, (_, outer) in zip(rows.visible, keyed.pairs, strict=True)]
    return _conditions(context, rows, list(equalities(pairs)), test.negated, place, test.construct)


def _is_key(context: Context, inner: Relation, predicate: Expression, scope: Scope) -> bool:
    """Whether the predicate is about one outer source alone, or an equality between one source of each side."""
    own = known(inner)
    if not set(columns_of(predicate)) & own:
        return reads_one_atom(context, predicate, scope)
    found = correlation_of(predicate, own)
    return (
        found is not None
        and found.function == "eq"
        and reads_one_atom(context, found.outer, scope)
        and all(len(atoms_of(context.in_branch(found.inner, b))) <= 1 for b in inner.branches)
    )


def _by_extremes(
    context: Context, relation: Relation, decided: Extremes, negated: bool, place: Place | None, construct: str
) -> Relation:
    """EXISTS by a join with the groups that decide it; NOT EXISTS also keeps the rows that have no group."""
    answer = decided.fails if negated else decided.holds
    joined = [
        restricted(context, b.joined(g), [*decided.keys, answer])
        for b in relation.branches
        for g in decided.groups.branches
    ]
    if negated and decided.keys:
        conditions = _conditions(context, decided.groups, list(decided.keys), True, place, construct)
        without = [_with_conditions(context, branch, conditions) for branch in relation.branches]
        joined += [branch.added_by("not exists") for branch in without]
    return relation.with_branches(joined)


def _null_conditions(
    context: Context, relation: Relation, test: _Test, correlated: list[Expression], scope: Scope
) -> list[Subcondition]:
    """Return the parts of NOT IN that are about NULL."""
    inner = test.inner.relation
    found: list[Subcondition] = []
    for subject, output in test.pairs:
        absent = [Call("is_null", (side,), BOOLEAN) for side in (output, subject)]
        if any(context.may_be_null(output, b) for b in inner.branches):
            found += _asked(context, inner, [*correlated, absent[0]], test, scope)
        if any(context.may_be_null(subject, b) for b in relation.branches):
            found += _asked(context, inner, [*correlated, absent[1]], test, scope)
    return found


def _conditions(
    context: Context,
    inner: Relation,
    correlated: list[Expression],
    negated: bool,
    place: Place | None,
    construct: str,
) -> list[Subcondition]:
    """EXISTS (or NOT) of the inner relation with the predicates, over the columns of both sides."""
    if sum(len(b.optional) for b in inner.branches) < 2:
        inner = unfolded(context, inner)
    united = len(inner.branches) > 1 and not negated
    if united or any(b.optional or has_residual(b) for b in inner.branches):
        used = frozenset(c for p in correlated for c in columns_of(p)) & known(inner)
        inner = nest_relation(context, inner, distinct=bool(used), only=used)
    return [
        Subcondition(replace(restricted(context, branch, correlated), values={}), negated, place, construct)
        for branch in inner.branches
    ]


def _with_conditions(context: Context, branch: Branch, conditions: list[Subcondition]) -> Branch:
    for condition in conditions:
        branch = attached(branch, replace(condition, branch=_in_outer(context, condition.branch, branch)))
    return branch


def _count(condition: Subcondition) -> int:
    return 1 + sum(map(_count, condition.branch.conditions))


def _in_outer(context: Context, inner: Branch, outer: Branch) -> Branch:
    """The inner branch with the outer columns it reads replaced by their expressions in an outer branch."""
    atoms = inner.atom_ids | outer.atom_ids
    return Branch(
        inner.atoms,
        tuple(context.substitute(p, outer.values, atoms) for p in inner.predicates),
        tuple(replace(c, branch=_in_outer(context, c.branch, outer)) for c in inner.conditions),
    )
