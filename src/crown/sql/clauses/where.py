"""WHERE: predicates, and EXISTS, IN and their negations as conditions.

`x NOT IN (SELECT y ...)` is TRUE when no y equals x, no y is NULL, and x is not NULL unless the subquery is
empty: up to three anti-joins, of which those that can't matter (y or x never NULL) are left out.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from crown.ir.expression import Call, Expression, columns_of
from crown.sql.clauses.bound import refuse_placed, relation_of
from crown.sql.clauses.decorrelate import Extremes, extremes
from crown.sql.clauses.definitions import OutputColumn
from crown.sql.clauses.from_clause import bind_from
from crown.sql.clauses.grammar import Environment, with_definitions
from crown.sql.clauses.order_by import bind_order
from crown.sql.clauses.places import NoAggregates
from crown.sql.clauses.subqueries import SelectSubqueries
from crown.sql.context import Context
from crown.sql.diagnose import Place
from crown.sql.normalise.nesting import has_residual, nest_relation
from crown.sql.normalise.optional import unfolded
from crown.sql.normalise.outer import attached, restricted
from crown.sql.outputs import expand_items
from crown.sql.relation import Branch, Relation, Subcondition
from crown.sql.scalar.binder import Binder
from crown.sql.scalar.coerce import always, compare
from crown.sql.scalar.fold import conjuncts, fold
from crown.sql.scope import Scope
from crown.types import BOOLEAN


def bind_where(
    context: Context, clause: exp.Expr | None, relation: Relation, parent: Scope | None, environment: Environment
) -> tuple[Relation, list[Expression]]:
    """The relation restricted by WHERE, and those predicates (of ON too) that read the queries around it."""
    correlated = list(relation.correlated)
    relation = replace(relation, correlated=())
    if clause is None:
        return relation, correlated
    subqueries = SelectSubqueries(context, environment, "WHERE", correlates=True)
    scope = Scope(relation, parent)
    binder = Binder(context, scope, subqueries)
    own: list[Expression] = []
    tests: list[tuple[exp.Expr, bool]] = []
    predicates: list[Expression] = []
    for node, negated in _conjuncts(clause.this, False):
        if _subquery_test(node) is not None:
            tests.append((node, negated))
            continue
        predicate = binder.condition(node)
        if negated:
            predicate = context.mark(fold(Call("not", (predicate,), BOOLEAN), always), node)
        for part in conjuncts(predicate):
            subqueries.check_required(part)
            predicates.append(part)
    known = relation.ids | {c.id for r in subqueries.joined for c in r.visible}
    for part in predicates + subqueries.predicates:
        (own if set(columns_of(part)) <= known else correlated).append(part)
    relation = subqueries.join(relation)
    relation = relation.with_branches(restricted(context, b, own) for b in relation.branches)
    for node, negated in tests:
        relation = _restrict(context, relation, scope, node, negated, environment)
    return relation, correlated


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


def _subquery_test(node: exp.Expr) -> exp.Expr | None:
    """Return the subquery of EXISTS, IN (SELECT ...), = ANY (SELECT ...) or <> ALL (SELECT ...)."""
    if isinstance(node, exp.Exists):
        return node.this if isinstance(node.this, exp.Query) else None
    if isinstance(node, exp.In):
        query = node.args.get("query")
        return query if isinstance(query, exp.Query) else None
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        return node.expression.this if isinstance(node.expression.this, exp.Query) else None
    if isinstance(node, exp.NEQ) and isinstance(node.expression, exp.All):
        return node.expression.this if isinstance(node.expression.this, exp.Query) else None
    return None


def _restrict(
    context: Context, relation: Relation, scope: Scope, node: exp.Expr, negated: bool, environment: Environment
) -> Relation:
    query = _subquery_test(node)
    assert query is not None
    if isinstance(node, exp.Exists):
        inner, correlated, _ = _inner(context, query, scope, environment)
        construct = "NOT EXISTS" if negated else "EXISTS"
        decided = extremes(context, inner, _known(inner), correlated)
        if decided is not None:
            return _by_extremes(context, relation, decided, negated, context.place(node), construct)
        conditions = _conditions(context, inner, correlated, negated, context.place(node), construct)
    else:
        if isinstance(node, exp.NEQ):
            negated = not negated
        subjects = list(node.this.expressions) if isinstance(node.this, exp.Tuple) else [node.this]
        binder = Binder(context, scope, NoAggregates(context, "WHERE"))
        inner, correlated, outputs = _inner(context, query, scope, environment)
        if len(outputs) != len(subjects):
            context.fail(node, "IN-COLUMNS", f"IN compares {len(subjects)} columns with {len(outputs)}")
        pairs = [(binder.bind(s), o) for s, o in zip(subjects, outputs, strict=True)]
        equal = [compare(context, node, "eq", s, o) for s, o in pairs]
        construct = "NOT IN" if negated else "IN"
        conditions = _conditions(context, inner, correlated + equal, negated, context.place(node), construct)
        if negated:
            conditions += _null_conditions(context, relation, inner, correlated, pairs, node)
    return relation.with_branches(_with_conditions(context, branch, conditions) for branch in relation.branches)


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
    context: Context,
    relation: Relation,
    inner: Relation,
    correlated: list[Expression],
    pairs: list[tuple[Expression, Expression]],
    node: exp.Expr,
) -> list[Subcondition]:
    """Return the parts of NOT IN that are about NULL."""
    outer_nullable = [any(context.may_be_null(s, b) for b in relation.branches) for s, _ in pairs]
    inner_nullable = [any(context.may_be_null(o, b) for b in inner.branches) for _, o in pairs]
    if len(pairs) > 1 and any(outer_nullable + inner_nullable):
        context.fail(
            node,
            "NOT-IN-ROWS",
            "NOT IN of several columns that may be NULL is not supported",
            reason="a NULL in one column makes the comparison unknown only if the others are equal",
            hint="use NOT EXISTS, or declare the columns NOT NULL",
        )
    found: list[Subcondition] = []
    for (subject, output), from_outer, from_inner in zip(pairs, outer_nullable, inner_nullable, strict=True):
        if from_inner:
            absent: Expression = Call("is_null", (output,), BOOLEAN)
            found += _conditions(context, inner, [*correlated, absent], True, context.place(node), "NOT IN")
        if from_outer:
            absent = Call("is_null", (subject,), BOOLEAN)
            found += _conditions(context, inner, [*correlated, absent], True, context.place(node), "NOT IN")
    return found


def _inner(
    context: Context, query: exp.Expr, scope: Scope, environment: Environment
) -> tuple[Relation, list[Expression], list[Expression]]:
    """Return the subquery of a condition: its relation, its correlated predicates, and its output expressions."""
    while isinstance(query, exp.Subquery) and not any(query.args.get(p) for p in ("limit", "offset", "with_")):
        refuse_placed(context, query, "joins", "alias")
        query = query.this
    if not _is_plain_join(query):
        barrier = Scope(Relation((), (), ()), scope, "a subquery with aggregates, DISTINCT, LIMIT or set operations")
        bound = environment.grammar.query(context, query, barrier, environment)
        relation = relation_of(context, bound, "subquery", (), query)
        return relation, [], [c.reference for c in relation.visible]
    assert isinstance(query, exp.Select)
    environment = with_definitions(context, query, environment)
    relation = bind_from(context, query, scope, environment)
    relation, correlated = bind_where(context, query.args.get("where"), relation, scope, environment)
    subqueries = SelectSubqueries(context, environment, "a condition's SELECT")
    binder = Binder(context, Scope(relation, scope), subqueries)
    items = expand_items(context, query, relation)
    outputs = [item.star or binder.bind(item.node) for item in items]
    # The order doesn't matter here, but it must be one.
    bind_order(context, query, [OutputColumn(i.name, e.type) for i, e in zip(items, outputs, strict=True)], binder.bind)
    return subqueries.join(relation), correlated, outputs


def _is_plain_join(query: exp.Expr) -> bool:
    """DISTINCT and ORDER BY don't matter to EXISTS and IN; groups, aggregates and limits do."""
    if not isinstance(query, exp.Select):
        return False
    if any(query.args.get(part) for part in ("group", "having", "limit", "offset")):
        return False
    return not any(
        isinstance(n, exp.AggFunc) for e in query.expressions for n in e.walk(prune=lambda n: isinstance(n, exp.Query))
    )


def _conditions(
    context: Context,
    inner: Relation,
    correlated: list[Expression],
    negated: bool,
    place: Place | None,
    construct: str,
) -> list[Subcondition]:
    """EXISTS (or NOT) of the inner relation with the predicates, over the columns of both sides."""
    inner = unfolded(context, inner)
    if (len(inner.branches) > 1 and not negated) or any(has_residual(b) for b in inner.branches):
        used = frozenset(c for p in correlated for c in columns_of(p)) & _known(inner)
        inner = nest_relation(context, inner, distinct=bool(used), only=used)
    return [
        Subcondition(replace(restricted(context, branch, correlated), values={}), negated, place, construct)
        for branch in inner.branches
    ]


def _known(relation: Relation) -> frozenset[str]:
    """Return the ids that have a value in the relation, including the columns of its atoms."""
    return relation.ids | frozenset(i for b in relation.branches for i in b.values)


def _with_conditions(context: Context, branch: Branch, conditions: list[Subcondition]) -> Branch:
    for condition in conditions:
        branch = attached(branch, replace(condition, branch=_in_outer(context, condition.branch, branch)))
    return branch


def _in_outer(context: Context, inner: Branch, outer: Branch) -> Branch:
    """The inner branch with the outer columns it reads replaced by what they stand for in an outer branch."""
    atoms = inner.atom_ids | outer.atom_ids
    return Branch(
        inner.atoms,
        tuple(context.substitute(p, outer.values, atoms) for p in inner.predicates),
        tuple(replace(c, branch=_in_outer(context, c.branch, outer)) for c in inner.conditions),
    )
