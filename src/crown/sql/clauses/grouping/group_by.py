"""GROUP BY: the grouping expressions, and expressions over groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from crown import types
from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.query import grouping_name
from crown.sql.clauses.grouping.grouping_sets import GroupNodes, grouping_sets
from crown.sql.clauses.result.order_by import ordinal
from crown.sql.context import Context
from crown.sql.normalise.names import readable
from crown.sql.outputs import Item
from crown.sql.relation import VisibleColumn
from crown.sql.scalar.binder import Binder
from crown.sql.scope import Scope
from crown.types import BOOLEAN


def group_nodes(
    context: Context, node: exp.Select, items: list[Item], visible: Sequence[VisibleColumn]
) -> GroupNodes | None:
    """Return the expressions of GROUP BY; None without it. `visible` are the columns of FROM."""
    clause = node.args.get("group")
    if clause is None:
        return None
    if clause.args.get("all"):
        if any(column.name.lower() == "all" for column in visible):
            return GroupNodes([exp.column("all")])  # as in Spark: the column comes before the keyword
        plain = [i for i in items if not has_aggregate(i.node)]
        return GroupNodes([i.node if i.star is None else exp.Placeholder() for i in plain])
    found = grouping_sets(context, clause)
    if found is not None:
        return found
    if not clause.expressions:
        # The parser takes a GROUP BY that ends the text; no database does.
        context.fail(
            node, "SYNTAX", "syntax error: GROUP BY without expressions", hint="list the expressions to group by"
        )
    # (a, b) is a and b, and () nothing.
    parts = [e.expressions if isinstance(e, exp.Tuple) else [e] for e in clause.expressions]
    return GroupNodes([part for several in parts for part in several])


def has_aggregate(node: exp.Expr) -> bool:
    """Whether the node has an aggregate or window function outside of its subqueries."""
    parts = node.walk(prune=lambda n: isinstance(n, exp.Query))
    return any(isinstance(n, exp.AggFunc | exp.Window) for n in parts)


def group_subqueries(nodes: list[exp.Expr], items: list[Item]) -> frozenset[exp.Expr]:
    """Return the subqueries of GROUP BY, and those of outputs that it may reference by position or name."""
    found = list(nodes)
    for node in nodes:
        named = node.name.lower() if isinstance(node, exp.Column) and not node.text("table") else None
        found += [i.node for n, i in enumerate(items, 1) if named == i.name.lower() or node.name == str(n)]
    return frozenset(part for node in found for part in node.walk() if part.find(exp.Query) is not None)


class Groups:
    """The grouping expressions over FROM's columns, each with the name of its column."""

    def __init__(
        self,
        context: Context,
        grouped: GroupNodes,
        items: list[Item],
        outputs: list[Expression],
        binder: Binder,
        keys: Sequence[Expression] = (),
    ) -> None:
        self.context = context
        self.names: dict[Expression, str] = {}
        self._taken: set[str] = set()
        # ORDER BY refers to outputs by their names, so a group has the name of an output only if it is that output.
        self._outputs = {item.name.lower(): output for item, output in zip(items, outputs, strict=True)}
        scope = binder.scope
        for number, key in enumerate(keys):
            self.names[key] = self.free_name(f"key_{number + 1}", key)
        bound: list[Expression] = []
        for node in grouped.nodes:
            expression, name = self._bind(node, items, outputs, scope, binder)
            if expression.type == types.NULL:
                expression = Literal(None, BOOLEAN)  # NULL has one value in any type
            bound.append(expression)
            if expression not in self.names:
                self.names[expression] = self.free_name(name, expression)
        self._sets = grouped.sets and [[self.names[bound[position]] for position in one] for one in grouped.sets]
        self._bound = frozenset(bound)

    @property
    def sets(self) -> tuple[tuple[str, ...], ...] | None:
        """The columns of each grouping, where there are several. Other columns are in all of them."""
        if self._sets is None:
            return None
        shared = [name for expression, name in self.names.items() if expression not in self._bound]
        return tuple(tuple(dict.fromkeys([*one, *shared])) for one in self._sets)

    def flags(self, groupings: Mapping[Expression, str], node: exp.Expr) -> dict[str, str]:
        """The columns for GROUPING of an expression, by the names that stand for them."""
        if groupings and self._sets is None:
            self.context.fail(
                node, "GROUPING-SETS", "GROUPING without grouping sets", hint="use ROLLUP, CUBE or GROUPING SETS"
            )
        for expression in groupings:
            if expression not in self.names:
                self.context.fail(node, "GROUPING-SETS", "GROUPING takes the expressions of GROUP BY")
        return {mark: grouping_name(self.names[expression]) for expression, mark in groupings.items()}

    def add_values(self, columns: list[VisibleColumn]) -> None:
        """Add values that all rows share to the groups: no group changes."""
        for column in columns:
            self.names[column.reference] = self.free_name("scalar")

    def _bind(
        self, node: exp.Expr, items: list[Item], outputs: list[Expression], scope: Scope, binder: Binder
    ) -> tuple[Expression, str]:
        index: int | None = None
        if isinstance(node, exp.Literal) and not node.args.get("is_string"):
            index = ordinal(self.context, node, len(items)) - 1
        elif isinstance(node, exp.Column) and not node.text("table"):
            in_from = any(node.name.lower() in s.relation.by_name for s in scope.chain())
            if not in_from:
                index = next((i for i, item in enumerate(items) if item.name.lower() == node.name.lower()), None)
        if index is not None:
            if items[index].star is None and has_aggregate(items[index].node):
                self.context.fail(node, "AGGREGATE-PLACE", "aggregates are not allowed in GROUP BY", hint="use HAVING")
            return outputs[index], items[index].name
        expression = binder.bind(node)
        shown = next((i.name for i, e in zip(items, outputs, strict=True) if e == expression), None)
        return expression, shown or (node.name if isinstance(node, exp.Column) else "group")

    def free_name(self, base: str, of: Expression | None = None) -> str:
        """Return an unused name for a column of the groups, which is `of` over FROM's columns."""
        base = readable(base) or "group"
        name, number = base, 1
        while name in self._taken or self._outputs.get(name.lower(), of) != of:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def rewrite(
        self,
        expression: Expression,
        renames: Mapping[str, str],
        node: exp.Expr,
        beside: frozenset[str] = frozenset(),
    ) -> Expression:
        """Return the expression over group columns and aggregates; an error when it needs anything else.

        Columns in `beside` are left unchanged.
        """
        if expression in self.names:
            return Column(self.names[expression], expression.type)
        if isinstance(expression, Column):
            if expression.name in renames:
                return Column(renames[expression.name], expression.type)
            if expression.name in beside:
                return expression
            self.context.fail(
                node,
                "NOT-GROUPED",
                "this column is neither in GROUP BY nor inside an aggregate",
                reason="a group has many values of the column",
                hint="add it to GROUP BY, or use MIN or MAX",
            )
        if isinstance(expression, Call):
            arguments = tuple(self.rewrite(a, renames, node, beside) for a in expression.arguments)
            return replace(expression, arguments=arguments)
        return expression
