"""Bind the subqueries and aggregates of one clause: each is a value of every row of the clause.

Scalar subqueries have one row at most. That is so for an aggregate without GROUP BY, which has exactly one (a group for
each value of the correlated columns, or the value of an empty group), and where a primary key or LIMIT 1 guarantees it.
For any other, the value is computed with the number of rows; more than one raises an error when the view is maintained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from crown.ir.expression import Call, Column, Expression, Literal, columns_of
from crown.ir.query import Select, Top
from crown.sql.clauses.grammar import Environment
from crown.sql.clauses.grouping.aggregates import MARK, Aggregates, Collected
from crown.sql.clauses.misplaced import refuse_aggregate, refuse_window
from crown.sql.clauses.subqueries.attach import Attachment, equalities
from crown.sql.clauses.subqueries.chosen import first_of_each, with_outer_values
from crown.sql.clauses.subqueries.decorrelate import group_relation
from crown.sql.clauses.subqueries.domain import Pair, known
from crown.sql.clauses.subqueries.inner import Inner, Keyed, Single, all_hold, bind_inner, by_key, unwrapped
from crown.sql.clauses.subqueries.marks import mark, test_of
from crown.sql.clauses.subqueries.unique import has_one_row
from crown.sql.clauses.windows.window_functions import WindowCollector
from crown.sql.context import Context
from crown.sql.normalise.nesting import nest_columns
from crown.sql.normalise.optional import marker
from crown.sql.relation import Relation
from crown.sql.scalar.binder import Binder
from crown.sql.scalar.coerce import always
from crown.sql.scalar.fold import TRUE, fold
from crown.sql.scope import Scope, outer_aggregate
from crown.types import BOOLEAN, INT64
from crown.wording import counted


class SelectSubqueries:
    """`attachments` are the sources to be joined with the rows of the clause, in this order."""

    def __init__(
        self,
        context: Context,
        environment: Environment,
        clause: str,
        aggregates: Aggregates | None = None,
        windows: WindowCollector | None = None,
    ) -> None:
        self.context = context
        self.environment = environment
        self.aggregates = aggregates
        self.windows = windows
        self.clause = clause
        self.attachments: list[Attachment] = []
        self.groups: frozenset[exp.Expr] = frozenset()  # subqueries of GROUP BY: elsewhere they are the group's value
        self._known: dict[tuple[exp.Expr, bool], Expression] = {}

    def scalar(self, node: exp.Expr, scope: Scope) -> Expression:
        """Return the value of the subquery."""
        return self._once(node, lambda: self._scalar(node, scope))

    def mark(self, node: exp.Expr, binder: Binder) -> Expression | None:
        """Return the value of EXISTS, IN or a quantified comparison; None if the node is not a subquery predicate."""
        test = test_of(node)
        return None if test is None else self._once(node, lambda: mark(self, node, test, binder))

    def aggregate(self, node: exp.Expr, binder: Binder) -> Expression:
        outer = outer_aggregate(binder.scope, node)
        if outer is not None:
            return outer(node)
        if self.aggregates is None:
            refuse_aggregate(self.context, node, self.clause)
        return self.aggregates.bind(node, binder)

    def window(self, node: exp.Expr, binder: Binder) -> Expression:
        if self.windows is None:
            refuse_window(self.context, node, self.clause)
        return self.windows.bind(node, binder)

    def inside(self) -> tuple[bool, bool]:
        aggregates, windows = self.aggregates, self.windows
        return aggregates is not None and aggregates.inside, windows is not None and windows.inside

    def attach(self, relation: Relation, pairs: Sequence[Pair], node: exp.Expr) -> Attachment:
        (branch,) = relation.branches
        at = marker(self.context, branch.atoms[0])
        added = Attachment(relation, equalities(pairs), node, self._before_groups(node), at)
        self.attachments.append(added)
        return added

    def row(self, single: Single, node: exp.Expr) -> list[Expression]:
        """Return the values of a row that each outer row has, and whether it has it."""
        attached = self.attach(single.groups, single.pairs, node)
        there = [attached.present] if single.pairs else []
        there += [all_hold(single.guards)] if single.guards else []
        values: list[Expression] = []
        for value, default in zip(single.values, single.defaults, strict=True):
            if there and (single.guards or default != Literal(None, default.type)):
                condition = there[0] if len(there) == 1 else Call("and", tuple(there), BOOLEAN)
                value = fold(Call("case", (condition, value, default), value.type), always)
            values.append(value)
        return values if single.filtered else [*values, TRUE]

    def _once(self, node: exp.Expr, bind: Callable[[], Expression]) -> Expression:
        """One subquery that is written twice, as in SELECT and GROUP BY, is one value."""
        key = (node, self._before_groups(node))
        if key not in self._known:
            self._known[key] = bind()
        return self._known[key]

    def _before_groups(self, node: exp.Expr) -> bool:
        return node in self.groups or (self.aggregates is not None and self.aggregates.inside)

    def _scalar(self, node: exp.Expr, scope: Scope) -> Expression:
        inner = bind_inner(self.context, node, scope, self.environment, name="scalar")
        if isinstance(inner, Single):
            *values, there = self.row(inner, node)
            self._check_columns(node, values)
            return fold(Call("case", (there, values[0], Literal(None, values[0].type)), values[0].type), always)
        self._check_columns(node, inner.outputs)
        if inner.bound is not None:
            return self._uncorrelated(inner, node)
        one = inner.limit is not None and inner.limit[0] <= 1
        if inner.on is not None or (inner.limit is not None and (not one or inner.order or inner.limit[1] > 0)):
            inner = first_of_each(self.context, inner, scope, node)
        return self._rows(inner, scope, node, one=one)

    def _check_columns(self, node: exp.Expr, values: Sequence[Expression]) -> None:
        if len(values) != 1:
            self.context.fail(
                node,
                "SCALAR-SUBQUERY",
                f"a scalar subquery has {counted(len(values), 'column')}",
                reason="it is a single value",
                hint="select one column",
            )

    def _uncorrelated(self, inner: Inner, node: exp.Expr) -> Expression:
        assert inner.bound is not None
        body = inner.bound.body
        if isinstance(body, Select) and body.group_by == () and body.having is None:
            self.attach(inner.relation, (), node)
            return inner.outputs[0]
        single = isinstance(body, Top) and body.limit <= 1
        return self._one_of(Keyed(inner.relation, (), ()), inner.outputs[0], node, checked=not single)

    def _rows(self, inner: Inner, scope: Scope, node: exp.Expr, *, one: bool) -> Expression:
        """A subquery without aggregate."""
        (output,) = inner.outputs
        if inner.limit is not None and inner.limit[0] == 0:
            return Literal(None, output.type)
        if _is_one_row(self.context, inner, node):
            return self._guarded(inner.correlated, output)
        relation, correlated, (output,) = with_outer_values(
            self.context, inner.relation, inner.correlated, inner.outputs, scope, node
        )
        keyed = by_key(self.context, relation, correlated, scope, node)
        if inner.distinct and not one:
            keyed, output = self._distinct(keyed, output)
        first = one and inner.limit is None
        if keyed.pairs and first:
            return self._looked_up(keyed, output, node)
        if keyed.pairs and not one and has_one_row(self.context, keyed.relation, [i for i, _ in keyed.pairs]):
            return self._looked_up(keyed, output, node)
        one = one or has_one_row(self.context, keyed.relation, [i for i, _ in keyed.pairs])
        return self._one_of(keyed, output, node, checked=not one)

    def _distinct(self, keyed: Keyed, output: Expression) -> tuple[Keyed, Expression]:
        """The different values of each key: SELECT DISTINCT may have one row where there are many."""
        columns = {f"key_{i + 1}": inner for i, (inner, _) in enumerate(keyed.pairs)}
        rows = nest_columns(self.context, keyed.relation, {**columns, "value": output}, distinct=True, name="scalar")
        pairs = tuple((c.reference, outer) for c, (_, outer) in zip(rows.visible, keyed.pairs, strict=False))
        return Keyed(rows, pairs, keyed.guards), rows.visible[-1].reference

    def _looked_up(self, keyed: Keyed, output: Expression, node: exp.Expr) -> Expression:
        """A row with the key is the only one."""
        columns = {f"key_{i + 1}": inner for i, (inner, _) in enumerate(keyed.pairs)}
        rows = nest_columns(self.context, keyed.relation, {**columns, "value": output}, distinct=False, name="scalar")
        pairs = [(c.reference, outer) for c, (_, outer) in zip(rows.visible, keyed.pairs, strict=False)]
        self.attach(rows, pairs, node)
        return self._guarded(keyed.guards, rows.visible[-1].reference)

    def _one_of(self, keyed: Keyed, output: Expression, node: exp.Expr, *, checked: bool) -> Expression:
        found = [Collected("value", "min", output, False, output.type)]
        value: Expression = Column(MARK + "value", output.type)
        rows: Expression = Column(MARK + "n", INT64)
        shown = [value]
        if checked:
            found.append(Collected("n", "count", None, False, INT64))
            # Several rows for one outer row are an error; rows that match no outer row are not.
            shown = [value, rows] if keyed.pairs else [Call("single_row", (value, rows), output.type)]
        groups = group_relation(self.context, keyed.relation, [i for i, _ in keyed.pairs], found, shown)
        pairs = [(c.reference, outer) for c, (_, outer) in zip(groups.visible, keyed.pairs, strict=False)]
        self.attach(groups, pairs, node)
        value, *counted = [c.reference for c in groups.visible[len(pairs) :]]
        return self._guarded(keyed.guards, Call("single_row", (value, counted[0]), value.type) if counted else value)

    def _guarded(self, guards: Sequence[Expression], value: Expression) -> Expression:
        if not guards:
            return value
        return fold(Call("case", (all_hold(guards), value, Literal(None, value.type)), value.type), always)


def _is_one_row(context: Context, inner: Inner, node: exp.Expr) -> bool:
    """Whether the subquery has no FROM and reads only the outer row, so that it is an expression of that."""
    query = unwrapped(context, node)
    if not isinstance(query, exp.Select) or query.args.get("from_") or query.args.get("laterals"):
        return False
    if inner.chooses or any(b.predicates or b.conditions for b in inner.relation.branches):
        return False
    own = known(inner.relation)
    return not any(c in own for e in (*inner.outputs, *inner.correlated) for c in columns_of(e))


class Ungrouped:
    """GROUP BY: the subqueries of a SELECT, without its aggregates."""

    def __init__(self, subqueries: SelectSubqueries) -> None:
        self.scalar = subqueries.scalar
        self.mark = subqueries.mark
        self.context = subqueries.context

    def aggregate(self, node: exp.Expr, binder: Binder) -> Expression:
        refuse_aggregate(self.context, node, "GROUP BY")

    def window(self, node: exp.Expr, binder: Binder) -> Expression:
        refuse_window(self.context, node, "GROUP BY")
