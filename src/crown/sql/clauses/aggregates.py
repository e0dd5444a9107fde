"""Aggregate functions of one SELECT: each distinct one is kept once and referred to by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from crown import types
from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.query import AggregateFunction
from crown.sql.clauses.places import refuse_aggregate
from crown.sql.context import Context
from crown.sql.diagnose import written_name
from crown.sql.normalise.names import readable
from crown.sql.relation import source_column
from crown.sql.scalar.binder import Binder
from crown.sql.scalar.coerce import always, boolean, cast
from crown.sql.scalar.fold import fold
from crown.types import BOOLEAN, FLOAT64, INT32, STRING, DataType

_FUNCTIONS: dict[type[exp.Expr], AggregateFunction] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.LogicalAnd: "min",
    exp.LogicalOr: "max",
}
_ONE = Literal(1, INT32)
MARK = "@"  # aggregates are columns of this prefix until the SELECT is assembled


def name_aggregates(statement: exp.Expr) -> None:
    """Replace EVERY, SOME and ANY, which sqlglot parses as other functions or a quantifier, by their aggregates."""
    kind: type[exp.AggFunc] | None
    for node in list(statement.find_all(exp.Anonymous, exp.Any)):
        if isinstance(node, exp.Any):
            argument = node.this.this if isinstance(node.this, exp.Paren) else None
            kind = exp.LogicalOr if not isinstance(node.parent, exp.Binary) else None
        else:
            argument = node.expressions[0] if len(node.expressions) == 1 else None
            kind = {"every": exp.LogicalAnd, "some": exp.LogicalOr, "any": exp.LogicalOr}.get(str(node.this).lower())
        if kind is not None and argument is not None and not isinstance(argument, exp.Query):
            named = kind(this=argument)
            named.meta.update(node.meta)
            node.replace(named)


@dataclass(frozen=True)
class Collected:
    """An aggregate over the columns of FROM."""

    name: str
    function: AggregateFunction
    argument: Expression | None
    distinct: bool
    type: DataType


class Aggregates:
    """Collects the aggregates of a SELECT while its expressions are bound."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.found: list[Collected] = []
        self.inside = False

    def bind(self, node: exp.Expr, binder: Binder) -> Expression:
        """Return the aggregate as a column."""
        if self.inside:
            refuse_aggregate(self.context, node, "another aggregate")
        self.inside = True
        try:
            return self._bind(node, binder)
        finally:
            self.inside = False

    def _bind(self, node: exp.Expr, binder: Binder) -> Expression:
        condition: Expression | None = None
        call = node
        if isinstance(node, exp.Filter):
            call = node.this
            clause = node.expression
            condition = binder.condition(clause.this if isinstance(clause, exp.Where) else clause)
        if isinstance(call, exp.CountIf):
            only = boolean(self.context, call, binder.bind(call.this))
            return self._add(call, "count", _when(only, _ONE), False, condition)
        function = _FUNCTIONS.get(type(call))
        if function is None:
            self._refuse(call)
        inner = call.this
        distinct = isinstance(inner, exp.Distinct)
        arguments = list(inner.expressions) if isinstance(inner, exp.Distinct) else [inner]
        arguments += call.expressions
        if isinstance(inner, exp.Order | exp.Limit) or inner is None or not arguments:
            self._refuse(call)
        if function == "count" and isinstance(inner, exp.Star):
            return self._add(call, "count", None, False, condition)
        values = [binder.bind(a) for a in arguments]
        if len(values) > 1:
            return self._several(call, function, values, distinct, condition)
        return self._add(call, function, values[0], distinct, condition)

    def _several(
        self, node: exp.Expr, function: str, values: list[Expression], distinct: bool, condition: Expression | None
    ) -> Expression:
        """COUNT(a, b): the rows where none is NULL."""
        if function != "count" or distinct:
            self.context.fail(
                node,
                "AGGREGATE-ARGUMENTS",
                f"{function.upper()}{'(DISTINCT)' if distinct else ''} of several columns is not supported",
                reason="distinct values are counted per column",
                hint="count the rows of a subquery: SELECT COUNT(*) FROM (SELECT DISTINCT a, b FROM ...)",
            )
        present = [Call("not", (Call("is_null", (v,), BOOLEAN),), BOOLEAN) for v in values]
        return self._add(node, "count", _when(Call("and", tuple(present), BOOLEAN), _ONE), False, condition)

    def _refuse(self, node: exp.Expr) -> NoReturn:
        self.context.fail(
            node,
            "AGGREGATE-FUNCTION",
            f"the aggregate {_name(self.context, node)} is not supported",
            reason="supported are COUNT, SUM, AVG, MIN, MAX, COUNT_IF, BOOL_AND and BOOL_OR, with DISTINCT and FILTER",
            hint="express it with these: a variance is AVG(x * x) - AVG(x) * AVG(x)",
        )

    def _add(
        self,
        node: exp.Expr,
        function: AggregateFunction,
        argument: Expression | None,
        distinct: bool,
        condition: Expression | None,
    ) -> Expression:
        if argument is not None and argument.type == types.NULL:
            argument = Literal(None, INT32)
        if argument is not None and function in ("sum", "avg") and argument.type == STRING:
            argument = cast(self.context, node, argument, FLOAT64)
        type_ = self._type(node, function, argument)
        if condition is not None:
            argument = _when(condition, argument if argument is not None else _ONE)
        if function in ("min", "max"):
            distinct = False
        wanted = (function, argument, distinct)
        for known in self.found:
            if (known.function, known.argument, known.distinct) == wanted:
                return Column(MARK + known.name, known.type)
        name = self._name(function, argument, distinct)
        self.found.append(Collected(name, function, argument, distinct, type_))
        return Column(MARK + name, type_)

    def _type(self, node: exp.Expr, function: AggregateFunction, argument: Expression | None) -> DataType:
        if function == "count":
            return types.INT64
        assert argument is not None
        found: DataType | None = argument.type
        if function == "sum":
            found = types.sum_type(argument.type)
        elif function == "avg":
            found = types.average_type(argument.type)
        if isinstance(node, exp.LogicalAnd | exp.LogicalOr) and found != "boolean":
            found = None
        if found is None:
            self.context.fail(
                node,
                "TYPE-CLASH",
                f"{_name(self.context, node)} does not take {argument.type.shown}",
                hint="cast the argument",
            )
        return found

    def _name(self, function: str, argument: Expression | None, distinct: bool) -> str:
        parts = [function, "distinct" if distinct else ""]
        if isinstance(argument, Column):
            parts.append(readable(source_column(argument.name)) if argument.name[0] == "a" else "")
        base = "_".join(filter(None, parts))
        name, number = base, 1
        while any(known.name == name for known in self.found):
            number += 1
            name = f"{base}_{number}"
        return name


def _when(condition: Expression, value: Expression) -> Expression:
    return fold(Call("case", (condition, value, Literal(None, value.type)), value.type), always)


def _name(context: Context, node: exp.Expr) -> str:
    """Return the aggregate's name as the user wrote it."""
    return written_name(context.sql, node) or str(getattr(node, "sql_name", node.key.upper)())
