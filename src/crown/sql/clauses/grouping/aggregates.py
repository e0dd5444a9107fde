"""Aggregate functions of one SELECT: each distinct one is stored once and referenced by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn, TypeAlias

from sqlglot import exp

from crown import types
from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.query import Aggregate, AggregateFunction, Order
from crown.ir.scalars import all_of
from crown.sql.clauses.grouping.regressions import REGRESSIONS, regression
from crown.sql.clauses.misplaced import refuse_aggregate
from crown.sql.clauses.result.order_by import direction
from crown.sql.context import Context
from crown.sql.diagnose import written_name
from crown.sql.nodes import nodes_of_kind
from crown.sql.normalise.names import readable
from crown.sql.relation import source_column
from crown.sql.scalar.binder import Binder
from crown.sql.scalar.coerce import always, as_number, boolean, cast
from crown.sql.scalar.fold import fold
from crown.sql.scalar.interval_arithmetic import mean_of_lengths
from crown.sql.scalar.intervals import length, of_length
from crown.sql.scope import check_readable, tables_named
from crown.types import BOOLEAN, FLOAT64, INT8, INT32, INT64, STRING, DataType

_FUNCTIONS: dict[type[exp.Expr], AggregateFunction] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.LogicalAnd: "min",
    exp.LogicalOr: "max",
}
_MOMENTS: Mapping[type[exp.Expr], AggregateFunction] = {
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Skewness: "skewness",
    exp.Kurtosis: "kurtosis",
}
_PAIRS: Mapping[type[exp.Expr], AggregateFunction] = {
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.Corr: "corr",
}
_BITS: Mapping[type[exp.Expr], AggregateFunction] = {
    exp.BitwiseAndAgg: "bit_and",
    exp.BitwiseOrAgg: "bit_or",
    exp.BitwiseXorAgg: "bit_xor",
}
_DOUBLES = frozenset({*_MOMENTS.values(), *_PAIRS.values(), "percentile_cont"})
_ONE = Literal(1, INT32)
MARK = "@"  # aggregates are columns of this prefix until the SELECT is assembled


_NAMED: Mapping[str, type[exp.AggFunc]] = {
    "every": exp.LogicalAnd,
    "some": exp.LogicalOr,
    "any": exp.LogicalOr,
    "std": exp.StddevSamp,
}


def name_aggregates(statement: exp.Expr) -> None:
    """Replace EVERY, SOME, ANY and STD, which sqlglot parses as something else, by their aggregates."""
    kind: type[exp.AggFunc] | None
    for node in nodes_of_kind(statement, exp.Anonymous, exp.Any):
        if isinstance(node, exp.Any):
            argument = node.this.this if isinstance(node.this, exp.Paren) else None
            kind = exp.LogicalOr if not isinstance(node.parent, exp.Binary) else None
        else:
            argument = node.expressions[0] if len(node.expressions) == 1 else None
            kind = _NAMED.get(str(node.this).lower())
        if kind is not None and argument is not None and not isinstance(argument, exp.Query):
            named = kind(this=argument)
            named.meta.update(node.meta)
            node.replace(named)


Collected: TypeAlias = Aggregate  # over the columns of FROM


@dataclass(frozen=True)
class _Call:
    """An aggregate taken apart."""

    node: exp.Expr
    binder: Binder
    arguments: list[exp.Expr]
    distinct: bool
    condition: Expression | None
    order: list[exp.Expr]
    within: exp.Expr | None
    ignores_nulls: bool


def _call(node: exp.Expr, binder: Binder) -> _Call:
    condition: Expression | None = None
    within: exp.Expr | None = None
    ignores_nulls = False
    while isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        if isinstance(node, exp.Filter):
            clause = node.expression
            condition = binder.condition(clause.this if isinstance(clause, exp.Where) else clause)
        elif isinstance(node, exp.WithinGroup):
            within = node.expression
        ignores_nulls = ignores_nulls or isinstance(node, exp.IgnoreNulls)
        node = node.this
    inner, order = node.this, within.expressions if within is not None else []
    special = type(node) in _SPECIAL
    if special and isinstance(inner, exp.Order):
        inner, order = inner.this, inner.expressions
    distinct = isinstance(inner, exp.Distinct)
    arguments = list(inner.expressions) if isinstance(inner, exp.Distinct) else [] if inner is None else [inner]
    if distinct and special and arguments and isinstance(arguments[-1], exp.Order):
        order, arguments = arguments[-1].expressions, [*arguments[:-1], arguments[-1].this]
    second = node.args.get("expression")
    arguments += [second] if special and second is not None else []
    arguments += node.expressions
    return _Call(node, binder, arguments, distinct, condition, order, within, ignores_nulls)


MOST_AGGREGATES = 1_000


class Aggregates:
    """Collects the aggregates of a SELECT while its expressions are bound."""

    def __init__(self, context: Context, grouped: list[exp.Expr] | None = None) -> None:
        self.context = context
        self.grouped = grouped or []
        self.groupings: dict[Expression, str] = {}  # the columns that stand for GROUPING of an expression
        self.found: list[Collected] = []
        self._names: dict[Collected, str] = {}  # of those found, without a name
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}  # the last one of each name
        self.inside = False
        self.read_inside: dict[str, str] = {}  # those in subqueries of the SELECT, by the columns that stand for them

    def bind_inside(self, node: exp.Expr, binder: Binder) -> Expression:
        """Return an aggregate in a subquery of the SELECT as a column that none of the subquery can be taken for."""
        found = self.bind(node, binder)
        if not isinstance(found, Column):
            self._refuse(node)
        mark = f"{MARK}{self.context.new_id('g')}"
        self.read_inside[mark] = found.name
        return Column(mark, found.type)

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
        call = _call(node, binder)
        special = _SPECIAL.get(type(call.node))
        if special is not None:
            return special(self, call)
        function = _FUNCTIONS.get(type(call.node))
        if function is None or call.order or call.ignores_nulls:
            self._refuse(call.node)
        return self._plain(call, function)

    def _plain(self, call: _Call, function: AggregateFunction) -> Expression:
        """Aggregates of one argument, and COUNT of several."""
        inner = call.node.this
        if isinstance(inner, exp.Order | exp.Limit) or inner is None or not call.arguments:
            self._refuse(call.node)
        if function == "count" and isinstance(inner, exp.Star):
            return self._add(call.node, "count", None, False, call.condition)
        values = [value for a in call.arguments for value in self._values(call, function, a)]
        if len(values) > 1:
            return self._several(call.node, function, values, call.distinct, call.condition)
        return self._add(call.node, function, values[0], call.distinct, call.condition)

    def _values(self, call: _Call, function: str, node: exp.Expr) -> list[Expression]:
        """The value of an argument; in COUNT(DISTINCT *) and COUNT(DISTINCT t.*) those of all columns."""
        if function != "count" or not call.distinct or not node.is_star:
            return [call.binder.bind(node)]
        relation = call.binder.scope.relation
        columns = relation.visible
        if isinstance(node, exp.Column) and (len(call.arguments) > 1 or not self.context.is_spark):
            columns = tuple(c for t in tables_named(relation, node.text("table")) for c in t.columns)
        elif isinstance(node, exp.Column) or any(node.args.values()):  # COUNT(DISTINCT t.*) is an error in Spark
            columns = ()
        if not columns:
            return [call.binder.bind(node)]
        for column in columns:
            check_readable(self.context, call.node, column, of_star=True)
        return [column.reference for column in columns]

    def _several(
        self, node: exp.Expr, function: str, values: list[Expression], distinct: bool, condition: Expression | None
    ) -> Expression:
        """COUNT(a, b): the rows where none is NULL."""
        if function != "count":
            self.context.fail(
                node,
                "AGGREGATE-ARGUMENTS",
                f"{_name(self.context, node)} of several columns is not supported",
                hint="aggregate each column separately",
            )
        if distinct:
            first, *further = [_typed(value) for value in values]
            return self._add(node, "count", first, True, condition, further=tuple(further))
        present = [Call("not", (Call("is_null", (v,), BOOLEAN),), BOOLEAN) for v in values]
        return self._add(node, "count", _when(Call("and", tuple(present), BOOLEAN), _ONE), False, condition)

    def _grouping(self, call: _Call) -> Expression:
        """GROUPING(a): 1 in groups without a. GROUPING_ID(a, b): these as the bits of a number."""
        nodes = call.arguments or self.grouped
        single = isinstance(call.node, exp.Grouping)
        if not nodes or (single and len(nodes) != 1):
            self._refuse_parameter(call.node, "it takes expressions of GROUP BY")
        flags: list[Expression] = []
        for node in nodes:
            expression = call.binder.bind(node)
            mark = self.groupings.setdefault(expression, f"{MARK}grouping {len(self.groupings) + 1}")
            flags.append(Column(mark, INT8))
        if single:
            return flags[0]
        result: Expression = Literal(0, INT64)
        for flag in flags:
            doubled = Call("multiply", (result, Literal(2, INT64)), INT64)
            result = Call("add", (doubled, Call("cast", (flag,), INT64)), INT64)
        return result

    def _count_if(self, call: _Call) -> Expression:
        only = boolean(self.context, call.node, call.binder.bind(call.node.this))
        return self._add(call.node, "count", _when(only, _ONE), False, call.condition)

    def _moment(self, call: _Call) -> Expression:
        return self._add(call.node, _MOMENTS[type(call.node)], self._number(call, 0), call.distinct, call.condition)

    def _pair(self, call: _Call) -> Expression:
        if call.distinct:
            self._refuse(call.node)
        first, second = self._number(call, 0), self._number(call, 1)
        return self._add(call.node, _PAIRS[type(call.node)], first, False, call.condition, further=(second,))

    def _regression(self, call: _Call) -> Expression:
        """REGR_SLOPE(y, x) and the like, of the rows where neither is NULL."""
        if call.distinct or len(call.arguments) != 2:
            self._refuse(call.node)
        pair = [self._number(call, position) for position in range(2)]
        both = all_of([*map(_present, pair), *([] if call.condition is None else [call.condition])])
        assert both is not None
        y, x = (_when(both, value) for value in pair)
        return regression(
            type(call.node),
            y,
            x,
            lambda function, *of: self._add(call.node, function, of[0], False, None, further=tuple(of[1:])),
        )

    def _by(self, call: _Call) -> Expression:
        """MAX_BY and MIN_BY: the first value in the order of the other one, which must not be NULL."""
        if len(call.arguments) != 2:
            self._refuse(call.node)
        value, by = (_typed(call.binder.bind(a)) for a in call.arguments)
        order = (Order(by, isinstance(call.node, exp.ArgMax), False),)
        return self._first(call, value, order, [_present(by)])

    def _end(self, call: _Call) -> Expression:
        """FIRST, LAST and ANY_VALUE. Without an order any value is correct; the least is deterministic."""
        value = _typed(call.binder.bind(call.arguments[0]))
        backwards = isinstance(call.node, exp.Last | exp.LastValue)
        if not call.order:
            return self._add(call.node, "max" if backwards else "min", value, False, call.condition)
        order = tuple(
            replace(o, descending=not o.descending, nulls_first=not o.nulls_first) if backwards else o
            for o in self._order(call)
        )
        return self._first(call, value, order, [_present(value)] if call.ignores_nulls else [])

    def _first(
        self, call: _Call, value: Expression, order: tuple[Order, ...], conditions: list[Expression]
    ) -> Expression:
        conditions += [] if call.condition is None else [call.condition]
        only = all_of(conditions)
        return self._add(call.node, "first", value, False, None, order=order, only=only)

    def _string(self, call: _Call) -> Expression:
        value = cast(self.context, call.node, call.binder.bind(call.arguments[0]), STRING)
        given = call.node.args.get("separator")
        separator = "" if self.context.is_spark else ","
        if given is not None and not isinstance(given, exp.Null):
            if not isinstance(given, exp.Literal) or not given.args.get("is_string"):
                self._refuse_parameter(call.node, "the separator must be a string literal")
            separator = given.name
        order = self._order(call)
        if call.distinct and not all(o.expression == value for o in order):
            self._refuse_parameter(call.node, "with DISTINCT the order must be that of the argument")
        return self._add(
            call.node, "string_agg", value, call.distinct, call.condition, order=order, parameter=separator
        )

    def _array(self, call: _Call) -> Expression:
        """COLLECT_LIST, COLLECT_SET and ARRAY_AGG: the values that are not NULL, by themselves if there is no order."""
        if len(call.arguments) != 1 or isinstance(call.node.args.get("nulls_excluded"), exp.Expr):
            self._refuse_parameter(call.node, "it takes one argument")
        value, order = _typed(call.binder.bind(call.arguments[0])), self._order(call)
        distinct = call.distinct or isinstance(call.node, exp.ArrayUniqueAgg)
        if distinct and not all(o.expression == value for o in order):
            self._refuse_parameter(call.node, "with DISTINCT the order must be that of the argument")
        return self._add(call.node, "array_agg", value, distinct, call.condition, order=order)

    def _percentile(self, call: _Call) -> Expression:
        node, order = call.node, self._order(call)
        if call.within is not None:
            if len(order) != 1:
                self._refuse_parameter(node, "WITHIN GROUP takes one expression")
            value, fraction = order[0].expression, node.this
        elif isinstance(node, exp.PercentileCont | exp.PercentileDisc) and node.args.get("expression") is None:
            self._refuse_parameter(node, "it needs WITHIN GROUP (ORDER BY ...)")
        else:
            value = _typed(call.binder.bind(call.arguments[0]))
            fraction = node.args.get("quantile") or node.args.get("expression") or exp.Literal.number("0.5")
            order = (Order(value, False, False),)
        number = fraction.name if isinstance(fraction, exp.Literal) and not fraction.args.get("is_string") else ""
        if not number or not 0 <= float(number) <= 1:
            self._refuse_parameter(node, "the fraction must be a number between 0 and 1")
        discrete = isinstance(node, exp.PercentileDisc | exp.ApproxQuantile)
        if isinstance(node, exp.ApproxQuantile) and value.type == types.STRING:
            self._refuse_type(node, value)
        if not discrete or (isinstance(node, exp.PercentileDisc) and self.context.is_spark):
            value = self._double(node, value)
            order = (replace(order[0], expression=value),)
        function: AggregateFunction = "percentile_disc" if discrete else "percentile_cont"
        return self._add(node, function, value, call.distinct, call.condition, order=order, parameter=number)

    def _mode(self, call: _Call) -> Expression:
        order = self._order(call)
        if call.within is not None and len(order) == 1:
            if order[0].descending or call.arguments:
                self._refuse_parameter(call.node, "among equally frequent values it takes the least")
            return self._add(call.node, "mode", order[0].expression, call.distinct, call.condition)
        if order or not call.arguments:
            self._refuse(call.node)
        value = _typed(call.binder.bind(call.arguments[0]))
        return self._add(call.node, "mode", value, call.distinct, call.condition)

    def _bits(self, call: _Call) -> Expression:
        value = _typed(call.binder.bind(call.arguments[0]))
        if not value.type.is_integer:
            self._refuse_type(call.node, value)
        return self._add(call.node, _BITS[type(call.node)], value, call.distinct, call.condition)

    def _approximate(self, call: _Call) -> Expression:
        """APPROX_COUNT_DISTINCT, exactly."""
        return self._add(call.node, "count", _typed(call.binder.bind(call.arguments[0])), True, call.condition)

    def _number(self, call: _Call, position: int) -> Expression:
        if len(call.arguments) <= position:
            self._refuse(call.node)
        return self._double(call.node, _typed(call.binder.bind(call.arguments[position])))

    def _double(self, node: exp.Expr, value: Expression) -> Expression:
        if not value.type.is_numeric and value.type != STRING:
            self._refuse_type(node, value)
        return cast(self.context, node, value, FLOAT64)

    def _order(self, call: _Call) -> tuple[Order, ...]:
        return tuple(
            Order(
                _typed(call.binder.bind(item.this if isinstance(item, exp.Ordered) else item)),
                *direction(self.context, item),
            )
            for item in call.order
        )

    def _refuse_parameter(self, node: exp.Expr, reason: str) -> NoReturn:
        self.context.fail(
            node, "AGGREGATE-ARGUMENTS", f"{_name(self.context, node)} is not supported like this", reason=reason
        )

    def _refuse_type(self, node: exp.Expr, value: Expression) -> NoReturn:
        self.context.fail(
            node,
            "TYPE-CLASH",
            f"{_name(self.context, node)} does not take {value.type.shown}",
            hint="cast the argument",
        )

    def _refuse(self, node: exp.Expr) -> NoReturn:
        self.context.fail(
            node,
            "AGGREGATE-FUNCTION",
            f"the aggregate {_name(self.context, node)} is not supported",
            reason="docs/sql.md lists the aggregates; those of one value take no ORDER BY",
            hint="express it with COUNT, SUM, MIN, MAX or another of these",
        )

    def _add(
        self,
        node: exp.Expr,
        function: AggregateFunction,
        argument: Expression | None,
        distinct: bool,
        condition: Expression | None,
        *,
        further: tuple[Expression, ...] = (),
        order: tuple[Order, ...] = (),
        only: Expression | None = None,
        parameter: str | None = None,
    ) -> Expression:
        """`condition` makes the argument NULL; `only`: rows for which it does not hold don't count at all."""
        if argument is not None and argument.type == types.NULL:
            argument = Literal(None, INT32)
        if argument is not None and function in ("sum", "avg"):
            if argument.type.is_interval:
                return self._of_intervals(node, function, argument, distinct, condition)
            argument = as_number(self.context, node, argument)
            argument = cast(self.context, node, argument, FLOAT64) if argument.type == STRING else argument
        type_ = self._type(node, function, argument)
        if condition is not None:
            argument = _when(condition, argument if argument is not None else _ONE)
        if function in ("min", "max"):
            distinct = False
        unnamed = Collected("", function, argument, distinct, type_, further, order, only, parameter)
        name = self._names.get(unnamed)
        if name is None:
            name = self._names[unnamed] = self._name(function, argument, distinct)
            self._taken.add(name)
            if len(self._taken) > MOST_AGGREGATES:
                self.context.fail(
                    node,
                    "TOO-LONG",
                    f"SELECT has more than {MOST_AGGREGATES:,} aggregates",
                    reason="planning takes time for each",
                    hint="split the query into several views",
                )
            self.found.append(replace(unnamed, name=name))
        return Column(MARK + name, type_)

    def _of_intervals(
        self, node: exp.Expr, function: str, argument: Expression, distinct: bool, condition: Expression | None
    ) -> Expression:
        """The sum or average of intervals is that of their lengths."""
        lengths = cast(self.context, node, length(argument), INT64)
        total = self._add(node, "sum", lengths, distinct, condition)
        if function == "sum":
            return of_length(self.context, node, total, argument.type)
        return mean_of_lengths(
            self.context, node, total, self._add(node, "count", lengths, distinct, condition), argument.type
        )

    def _type(self, node: exp.Expr, function: AggregateFunction, argument: Expression | None) -> DataType:
        if function == "count":
            return types.INT64
        assert argument is not None
        found: DataType | None = argument.type
        if function == "sum":
            found = types.sum_type(argument.type)
        elif function == "avg":
            found = types.average_type(argument.type)
        elif function == "array_agg":
            found = types.array_of(argument.type)
        elif function in _DOUBLES:
            found = FLOAT64
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
        number = self._numbers.get(base, 1)
        name = base if number == 1 else f"{base}_{number}"
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._numbers[base] = number
        return name


def _when(condition: Expression, value: Expression) -> Expression:
    return fold(Call("case", (condition, value, Literal(None, value.type)), value.type), always)


def _name(context: Context, node: exp.Expr) -> str:
    """Return the aggregate's name as the user wrote it."""
    return written_name(context.sql, node) or str(getattr(node, "sql_name", node.key.upper)())


def _typed(value: Expression) -> Expression:
    return Literal(None, INT32) if value.type == types.NULL else value


def _present(value: Expression) -> Expression:
    return Call("not", (Call("is_null", (value,), BOOLEAN),), BOOLEAN)


_SPECIAL: Mapping[type[exp.Expr], Callable[[Aggregates, _Call], Expression]] = {
    exp.CountIf: Aggregates._count_if,
    **dict.fromkeys((exp.Grouping, exp.GroupingId), Aggregates._grouping),
    **dict.fromkeys(_MOMENTS, Aggregates._moment),
    **dict.fromkeys(_PAIRS, Aggregates._pair),
    **dict.fromkeys(REGRESSIONS, Aggregates._regression),
    **dict.fromkeys(_BITS, Aggregates._bits),
    **dict.fromkeys((exp.ArgMax, exp.ArgMin), Aggregates._by),
    **dict.fromkeys((exp.First, exp.FirstValue, exp.AnyValue, exp.Last, exp.LastValue), Aggregates._end),
    **dict.fromkeys((exp.Quantile, exp.ApproxQuantile, exp.Median), Aggregates._percentile),
    **dict.fromkeys((exp.PercentileCont, exp.PercentileDisc), Aggregates._percentile),
    exp.GroupConcat: Aggregates._string,
    exp.ArrayAgg: Aggregates._array,
    exp.ArrayUniqueAgg: Aggregates._array,
    exp.Mode: Aggregates._mode,
    exp.ApproxDistinct: Aggregates._approximate,
}
