"""EXISTS, IN and quantified comparisons as values: three-valued marks of the outer row, wherever a value is allowed.

`EXISTS` is whether a source with one row for each key has one for the outer row's. `x IN (SELECT y ...)` is that with y
in the key; where it is not, it is NULL instead of FALSE if x or some y of the outer row's is NULL. `x < ANY (SELECT y
...)` needs only the largest y, and `x < ALL` is the negation of `x >= ANY`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sqlglot import exp

from crown.ir.expression import Call, Column, Expression, Literal, columns_of
from crown.sql.clauses.grammar import Environment
from crown.sql.clauses.grouping.aggregates import MARK, Collected
from crown.sql.clauses.subqueries.attach import Attachment
from crown.sql.clauses.subqueries.chosen import first_of_each
from crown.sql.clauses.subqueries.correlates import correlates
from crown.sql.clauses.subqueries.decorrelate import extremes, group_relation
from crown.sql.clauses.subqueries.domain import Pair, known
from crown.sql.clauses.subqueries.inner import Inner, Keyed, Single, all_hold, bind_inner, by_key, unwrapped
from crown.sql.context import Context
from crown.sql.normalise.nesting import nest_columns
from crown.sql.normalise.outer import restricted
from crown.sql.relation import Relation
from crown.sql.scalar.binder import Binder
from crown.sql.scalar.coerce import always, compare
from crown.sql.scalar.fold import FALSE, NEGATED, TRUE, UNKNOWN, fold
from crown.sql.scope import Scope
from crown.types import BOOLEAN, INT64
from crown.wording import counted

_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
}


@dataclass(frozen=True)
class Test:
    """The test of a mark: `subjects` compared by `function` with any row of the query; EXISTS has no function."""

    query: exp.Expr
    function: str | None = None
    subjects: tuple[exp.Expr, ...] = ()
    negated: bool = False  # ALL is the negation of ANY


def test_of(node: exp.Expr) -> Test | None:
    """Return the test that the node is, if it is one with a subquery."""
    if isinstance(node, exp.Exists):
        return Test(node.this) if isinstance(node.this, exp.Query) else None
    if isinstance(node, exp.In):
        query = node.args.get("query")
        return Test(query, "eq", _subjects(node)) if isinstance(query, exp.Query) else None
    function = _FUNCTIONS.get(type(node))
    quantified = node.expression if function is not None else None
    if function is None or not isinstance(quantified, exp.Any | exp.All) or not isinstance(quantified.this, exp.Query):
        return None
    every = isinstance(quantified, exp.All)
    return Test(quantified.this, NEGATED[function] if every else function, _subjects(node), every)


def _subjects(node: exp.Expr) -> tuple[exp.Expr, ...]:
    return tuple(node.this.expressions) if isinstance(node.this, exp.Tuple) else (node.this,)


class MarkedClause(Protocol):
    """The clause that contains the mark."""

    context: Context
    environment: Environment

    def attach(self, relation: Relation, pairs: Sequence[Pair], node: exp.Expr) -> Attachment: ...

    def row(self, single: Single, node: exp.Expr) -> list[Expression]: ...


def mark(owner: MarkedClause, node: exp.Expr, test: Test, binder: Binder) -> Expression:
    """Return the value of the test for each row of the clause."""
    context, scope = owner.context, binder.scope
    query = unwrapped(context, test.query)
    if is_union(query) and correlates(context, query, scope, owner.environment.names):
        sides = [replace(test, query=side) for side in (query.this, query.expression)]
        return _call("or", *(mark(owner, node, side, binder) for side in sides))
    inner = bind_inner(context, query, scope, owner.environment, exists=test.function is None)
    subjects = [binder.bind(s) for s in test.subjects]
    check_columns(context, node, test, inner)
    return value_of(owner, node, test, inner, subjects, scope)


def value_of(
    owner: MarkedClause, node: exp.Expr, test: Test, inner: Inner | Single, subjects: list[Expression], scope: Scope
) -> Expression:
    marker = _Marker(owner, node, scope)
    if test.function is None:
        return marker.exists(inner)
    found = marker.any(inner, test.function, subjects, truth_only=not test.negated and _is_condition(node))
    return _call("not", found) if test.negated else found


def check_columns(context: Context, node: exp.Expr, test: Test, inner: Inner | Single) -> None:
    if test.function is None:
        return
    outputs = len(inner.outputs) if isinstance(inner, Inner) else inner.width
    if outputs != len(test.subjects):
        context.fail(node, "IN-COLUMNS", f"IN compares {counted(len(test.subjects), 'column')} with {outputs}")
    if len(test.subjects) > 1 and test.function != "eq":
        context.fail(node, "TUPLE", "rows can only be compared with =", hint="compare the columns one by one")


def is_union(query: exp.Expr) -> bool:
    return isinstance(query, exp.Union) and not any(query.args.get(p) for p in ("order", "limit", "offset", "with_"))


def _is_condition(node: exp.Expr) -> bool:
    """Whether NULL is equivalent to FALSE for the value of the node: only TRUE matters."""
    child, parent = node, node.parent
    while isinstance(parent, exp.And | exp.Or | exp.Paren):
        child, parent = parent, parent.parent
    if isinstance(parent, exp.If):
        case = parent.parent
        return child is parent.this and not (isinstance(case, exp.Case) and case.this is not None)
    if isinstance(parent, exp.Join):
        return child is parent.args.get("on")
    return isinstance(parent, exp.Where | exp.Having)


class _Marker:
    def __init__(self, owner: MarkedClause, node: exp.Expr, scope: Scope) -> None:
        self.owner = owner
        self.context = owner.context
        self.node = node
        self.scope = scope

    def exists(self, inner: Inner | Single) -> Expression:
        if isinstance(inner, Single):
            return _truth(self.owner.row(inner, self.node)[-1])
        if inner.limit is not None:
            if inner.limit[0] == 0:
                return FALSE
            if inner.limit[1] > 0:
                inner = first_of_each(self.context, inner, self.scope, self.node)
        return self._some(inner.relation, inner.correlated)

    def any(self, inner: Inner | Single, function: str, subjects: list[Expression], *, truth_only: bool) -> Expression:
        """Whether some row compares as TRUE; if none does, NULL where one compares as NULL."""
        if isinstance(inner, Single):
            *values, there = self.owner.row(inner, self.node)
            return _call("case", there, self._compared(function, subjects, values), FALSE)
        if inner.chooses:
            inner = first_of_each(self.context, inner, self.scope, self.node)
        pairs = list(zip(subjects, inner.outputs, strict=True))
        compared = [compare(self.context, self.node, function, s, o) for s, o in pairs]
        match = self._some(inner.relation, [*inner.correlated, *compared])
        doubts = [] if truth_only else self._doubts(inner, pairs, compared)
        return _call("case", match, TRUE, _call("or", *doubts), UNKNOWN, FALSE) if doubts else match

    def _compared(self, function: str, subjects: list[Expression], values: list[Expression]) -> Expression:
        parts = [compare(self.context, self.node, function, s, v) for s, v in zip(subjects, values, strict=True)]
        return _call("and", *parts)

    def _doubts(
        self, inner: Inner, pairs: list[tuple[Expression, Expression]], compared: list[Expression]
    ) -> list[Expression]:
        """Return what makes the answer NULL where no row compares as TRUE."""
        from_outer = [any(self.context.may_be_null(s, b) for b in self.scope.relation.branches) for s, _ in pairs]
        from_inner = [any(self.context.may_be_null(o, b) for b in inner.relation.branches) for _, o in pairs]
        if not any(from_outer + from_inner):
            return []
        if len(pairs) > 1:
            open_ = [_call("or", c, *(_absent(side) for side in pair)) for c, pair in zip(compared, pairs, strict=True)]
            return [self._some(inner.relation, [*inner.correlated, *open_])]
        ((subject, output),) = pairs
        doubts = []
        if from_outer[0]:
            doubts.append(_call("and", _absent(subject), self._some(inner.relation, inner.correlated)))
        if from_inner[0]:
            doubts.append(self._some(inner.relation, [*inner.correlated, _absent(output)]))
        return doubts

    def _some(self, relation: Relation, predicates: Sequence[Expression]) -> Expression:
        """Whether some row of the relation satisfies the predicates."""
        inner = known(relation)
        if any(p in (FALSE, UNKNOWN) for p in predicates):
            return FALSE
        own = [p for p in predicates if set(columns_of(p)) <= inner and p != TRUE]
        rest = [p for p in predicates if p not in own and p != TRUE]
        guards = [p for p in rest if not set(columns_of(p)) & inner]
        rest = [p for p in rest if p not in guards]
        relation = relation.with_branches(restricted(self.context, b, own) for b in relation.branches)
        found = self._by_extremes(relation, inner, rest)
        if found is None:
            found = self._present(by_key(self.context, relation, rest, self.scope, self.node))
        return _call("and", all_hold(guards), found) if guards else found

    def _by_extremes(
        self, relation: Relation, inner: frozenset[str], predicates: list[Expression]
    ) -> Expression | None:
        decided = extremes(self.context, relation, inner, predicates, self.scope)
        if decided is None:
            return None
        self.owner.attach(decided.groups, decided.pairs, self.node)
        return _truth(decided.holds)

    def _present(self, keyed: Keyed) -> Expression:
        if not keyed.pairs:
            some = Call("gt", (Column(MARK + "n", INT64), Literal(0, INT64)), BOOLEAN)
            one = group_relation(
                self.context, keyed.relation, [], [Collected("n", "count", None, False, INT64)], [some]
            )
            self.owner.attach(one, (), self.node)
            return one.visible[0].reference
        columns = {f"key_{i + 1}": inner for i, (inner, _) in enumerate(keyed.pairs)}
        rows = nest_columns(self.context, keyed.relation, columns, distinct=True, name="mark")
        pairs = [(c.reference, outer) for c, (_, outer) in zip(rows.visible, keyed.pairs, strict=True)]
        return self.owner.attach(rows, pairs, self.node).present


def _absent(expression: Expression) -> Expression:
    return _call("is_null", expression)


def _truth(expression: Expression) -> Expression:
    """Return TRUE where the expression is, else FALSE."""
    return _call("coalesce", expression, FALSE)


def _call(function: str, *arguments: Expression) -> Expression:
    return fold(Call(function, arguments, BOOLEAN), always)
