"""sqlglot expressions to typed `crown.ir.expression` trees, with every cast inserted."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from typing import Protocol, Self

from sqlglot import exp

from crown import types
from crown.ir.expression import Call, Expression, Literal
from crown.sql import typenames
from crown.sql.context import Context
from crown.sql.refuse import check_node
from crown.sql.scalar import (
    arrays,
    conversions,
    date_parts,
    dialect_division,
    interval_arithmetic,
    intervals,
    lambdas,
    literals,
    nested,
    rounding,
    rows,
    strings,
)
from crown.sql.scalar.coerce import always, as_number, boolean, cast, compare, unify
from crown.sql.scalar.declared import call_declared
from crown.sql.scalar.dialect_decimals import decimal_without_precision
from crown.sql.scalar.fold import fold
from crown.sql.scalar.functions import call_by_name, named_call
from crown.sql.scalar.strings import refuse_binary
from crown.sql.scope import Scope, resolve, struct_path
from crown.types import BINARY, BOOLEAN, DATE, INT32, INT64, STRING, TIMESTAMP, DataType
from crown.wording import with_article

_ARITHMETIC: dict[type[exp.Expr], types.Arithmetic] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.Mod: "modulo",
}
_SIGNS: dict[str, str] = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "%"}
_COMPARISON: dict[type[exp.Expr], str] = {
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.NullSafeEQ: "is_not_distinct",
}
_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Quarter: "quarter",
}
_BY_PATTERN: dict[type[exp.Expr], str] = {
    exp.StrToTime: "to_timestamp",
    exp.StrToDate: "to_date",
    exp.TimeToStr: "date_format",
}
# LIKE has no escape there, unless the query names one.
_WITHOUT_ESCAPE = frozenset({"duckdb", "sqlite", "oracle", "trino", "presto", "athena", "tsql", "snowflake"})
_TRIMS = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


class Subqueries(Protocol):
    """Callbacks of the binder: for subqueries, and for aggregates and windows where they are allowed."""

    def scalar(self, node: exp.Expr, scope: Scope) -> Expression: ...

    def mark(self, node: exp.Expr, binder: Binder) -> Expression | None: ...

    def aggregate(self, node: exp.Expr, binder: Binder) -> Expression: ...

    def window(self, node: exp.Expr, binder: Binder) -> Expression: ...


class SubqueriesOfSelect(Subqueries, Protocol):
    def inside(self) -> tuple[bool, bool]:
        """Whether the arguments of an aggregate, and of a window function, are being bound."""
        ...


class Binder:
    def __init__(self, context: Context, scope: Scope, subqueries: Subqueries) -> None:
        self.context = context
        self.scope = scope
        self.subqueries = subqueries
        self.parameters: tuple[Mapping[str, Expression], ...] = ()

    def with_parameters(self, parameters: Mapping[str, Expression]) -> Self:
        """Return a binder for the body of a function."""
        inner = copy.copy(self)
        inner.parameters = (*self.parameters, parameters)
        return inner

    def condition(self, node: exp.Expr) -> Expression:
        return boolean(self.context, node, self.bind(node))

    def bind(self, node: exp.Expr) -> Expression:
        """Return the typed expression of `node`."""
        if not isinstance(node, exp.Expr):
            self.context.fail(None, "SYNTAX", "an argument of a function or operator is missing")
        if node.args.get("negate") and not isinstance(node.expression, exp.Any | exp.All):  # sqlglot's NOT LIKE
            plain = node.copy()
            plain.set("negate", None)
            return self.call("not", [self.bind(plain)], BOOLEAN, node)
        handler = _HANDLERS.get(type(node))
        if handler is None:
            handler = next((h for kind, h in _FAMILIES.items() if isinstance(node, kind)), None)
        if handler is not None:
            check_node(self.context, node)
        return handler(self, node) if handler is not None else named_call(self, node)

    def call(self, function: str, arguments: list[Expression], type_: DataType, node: exp.Expr) -> Expression:
        return self.context.mark(fold(Call(function, tuple(arguments), type_), always), node)

    def string(self, node: exp.Expr) -> Expression:
        return cast(self.context, node, self.bind(node), STRING)

    def _column(self, node: exp.Expr) -> Expression:
        assert isinstance(node, exp.Column)
        if isinstance(node.this, exp.Star):
            self.context.fail(node, "STAR", "* is not allowed here", hint="name the columns")
        path = struct_path(self.scope, node)
        if path is not None:
            column, fields = path
            value: Expression = resolve(self.context, self.scope, column).reference
            for field in fields:
                value = nested.get_field(self, node, value, field)
            return value
        return resolve(self.context, self.scope, node).reference

    def _literal(self, node: exp.Expr) -> Expression:
        if node.args.get("is_string"):
            return Literal(str(node.this), STRING)
        found = literals.number(str(node.this))
        if found is None:
            self.context.fail(
                node,
                "LITERAL",
                f"{str(node.this)[:60]} is not a supported number",
                reason="a decimal has at most 38 digits, and a double is finite",
                hint="use fewer digits",
            )
        return found

    def _arithmetic(self, node: exp.Expr) -> Expression:
        operator = _ARITHMETIC[type(node)]
        left, right = (as_number(self.context, node, self.bind(side)) for side in (node.this, node.expression))
        if left.type.is_interval or right.type.is_interval:
            return interval_arithmetic.arithmetic(self, node, operator, left, right)
        if operator == "divide" and (found := dialect_division.divided(self, node, left, right)) is not None:
            return found
        if operator in ("add", "subtract") and (left.type.is_temporal or right.type.is_temporal):
            return intervals.day_arithmetic(self.context, node, operator, left, right)
        if operator in ("divide", "modulo"):
            right = dialect_division.divisor_of(self, node, operator, right)
        return self.arithmetic(node, operator, left, right)

    def arithmetic(self, node: exp.Expr, operator: types.Arithmetic, left: Expression, right: Expression) -> Expression:
        found = types.arithmetic_types(operator, *_literal_types(left, right))
        if found is None:
            self.context.fail(
                node,
                "TYPE-CLASH",
                f"{left.type.shown} and {right.type.shown} can't be combined with {_SIGNS[operator]}",
                hint="cast both sides to numbers",
            )
        operand, result = found
        if operand == "float64":  # a string combined with an integer is read as one, even if both become doubles
            left, right = self._read_as_integer(node, left, right), self._read_as_integer(node, right, left)
        operands = [cast(self.context, node, side, _operand_type(side.type, operand)) for side in (left, right)]
        return self.call(operator, operands, result, node)

    def _read_as_integer(self, node: exp.Expr, side: Expression, other: Expression) -> Expression:
        beside = side.type == STRING and other.type.is_integer
        return cast(self.context, node, side, INT64) if beside else side

    def _comparison(self, node: exp.Expr) -> Expression:
        if isinstance(node.expression, exp.Any | exp.All):
            return self._mark(node)
        function = _COMPARISON[type(node)]
        if isinstance(node.this, exp.Tuple) or isinstance(node.expression, exp.Tuple):
            return rows.compare_rows(self, node, function)
        return compare(self.context, node, function, self.bind(node.this), self.bind(node.expression))

    def _logic(self, node: exp.Expr) -> Expression:
        function = "and" if isinstance(node, exp.And) else "or"
        # Flattened, since a long chain of OR is a deep tree to sqlglot.
        return self.call(function, [self.condition(part) for part in node.flatten()], BOOLEAN, node)

    def _xor(self, node: exp.Expr) -> Expression:
        return self.call("ne", [self.condition(node.this), self.condition(node.expression)], BOOLEAN, node)

    def _not(self, node: exp.Expr) -> Expression:
        return self.call("not", [self.condition(node.this)], BOOLEAN, node)

    def _is(self, node: exp.Expr) -> Expression:
        subject, value = self.bind(node.this), node.expression
        if isinstance(value, exp.Null):
            return self.call("is_null", [subject], BOOLEAN, node)
        if isinstance(value, exp.Boolean):
            wanted = Literal(bool(value.this), BOOLEAN)
            return self.call("is_not_distinct", [boolean(self.context, node, subject), wanted], BOOLEAN, node)
        self.context.fail(node, "UNKNOWN-FUNCTION", "IS must be followed by NULL, TRUE or FALSE", hint="write IS NULL")

    def _not_distinct(self, node: exp.Expr) -> Expression:
        same = compare(self.context, node, "is_not_distinct", self.bind(node.this), self.bind(node.expression))
        negated = isinstance(node, exp.NullSafeNEQ)
        return self.call("not", [same], BOOLEAN, node) if negated else same

    def _between(self, node: exp.Expr) -> Expression:
        if node.args.get("symmetric"):
            self.context.fail(
                node, "UNKNOWN-FUNCTION", "BETWEEN SYMMETRIC is not supported", hint="use LEAST and GREATEST"
            )
        subject = self.bind(node.this)
        low = compare(self.context, node, "ge", subject, self.bind(node.args["low"]))
        high = compare(self.context, node, "le", subject, self.bind(node.args["high"]))
        return self.call("and", [low, high], BOOLEAN, node)

    def _in(self, node: exp.Expr) -> Expression:
        if node.args.get("query") is not None or node.args.get("unnest") is not None or node.args.get("field"):
            return self._mark(node)
        if isinstance(node.this, exp.Tuple):
            options = [exp.EQ(this=node.this, expression=e) for e in node.expressions]
            return self.call("or", [rows.compare_rows(self, o, "eq") for o in options], BOOLEAN, node)
        values = [self.bind(e) for e in node.expressions]
        if not values and self.context.dialect == "sqlite":
            return Literal(False, BOOLEAN)
        if not values:
            self.context.fail(node, "SYNTAX", "IN needs at least one value")
        return self.call("in", unify(self.context, node, [self.bind(node.this), *values], "this IN"), BOOLEAN, node)

    def _exists(self, node: exp.Expr) -> Expression:
        return lambdas.exists(self, node) if node.expression is not None else self._mark(node)

    def _parameter(self, node: exp.Expr) -> Expression:
        """sqlglot has a bare identifier where the body of a function reads a parameter."""
        for parameters in reversed(self.parameters):
            if (found := parameters.get(node.name.lower())) is not None:
                return found
        self.context.fail(node, "UNKNOWN-COLUMN", f"{node.name} is a parameter of a function, and can't be read here")

    def _mark(self, node: exp.Expr) -> Expression:
        """EXISTS, IN (SELECT ...) and quantified comparisons."""
        found = self.subqueries.mark(node, self)
        if found is not None:
            return found
        self.context.fail(
            node,
            "SUBQUERY-PLACE",
            "EXISTS, IN, ANY and ALL are not allowed here",
            reason="they must be followed by a subquery, and be used where each row has a value",
            hint="move it to WHERE, or to a column of a subquery in FROM",
        )

    def _case(self, node: exp.Expr) -> Expression:
        conditions: list[Expression] = []
        results: list[exp.Expr] = []
        for branch in node.args["ifs"]:
            if node.this is not None:
                conditions.append(compare(self.context, branch, "eq", self.bind(node.this), self.bind(branch.this)))
            else:
                conditions.append(self.condition(branch.this))
            results.append(branch.args["true"])
        default = node.args.get("default")
        return self._choice(node, conditions, [*results, default or exp.Null()])

    def _if(self, node: exp.Expr) -> Expression:
        return self._choice(
            node, [self.condition(node.this)], [node.args["true"], node.args.get("false") or exp.Null()]
        )

    def _choice(self, node: exp.Expr, conditions: list[Expression], results: list[exp.Expr]) -> Expression:
        values = unify(self.context, node, [self.bind(r) for r in results], "this CASE")
        arguments = [part for pair in zip(conditions, values, strict=False) for part in pair]
        return self.call("case", [*arguments, values[-1]], values[0].type, node)

    def _coalesce(self, node: exp.Expr) -> Expression:
        values = unify(self.context, node, [self.bind(e) for e in (node.this, *node.expressions)], "this COALESCE")
        return self.call("coalesce", values, values[0].type, node)

    def _extreme(self, node: exp.Expr) -> Expression:
        function = "greatest" if isinstance(node, exp.Greatest) else "least"
        values = unify(self.context, node, [self.bind(e) for e in (node.this, *node.expressions)], f"this {function}")
        found = self.call(function, values, values[0].type, node)
        if node.args.get("ignore_nulls"):
            return found
        absent = [self.call("is_null", [value], BOOLEAN, node) for value in values]
        return self.call(
            "case", [self.call("or", absent, BOOLEAN, node), Literal(None, found.type), found], found.type, node
        )

    def _nullif(self, node: exp.Expr) -> Expression:
        subject = self.bind(node.this)
        same = compare(self.context, node, "eq", subject, self.bind(node.expression))
        return self.call("case", [same, Literal(None, subject.type), subject], subject.type, node)

    def _negate(self, node: exp.Expr) -> Expression:
        if isinstance(node.this, exp.Literal) and not node.this.args.get("is_string"):
            found = literals.number("-" + str(node.this.this))
            if found is not None:
                return found
        subject = self.bind(node.this)
        if subject.type == types.NULL:
            return subject
        if not subject.type.is_numeric and not subject.type.is_interval:
            self.context.fail(node, "TYPE-CLASH", f"cannot negate {with_article(subject.type.shown)}")
        return self.call("negate", [subject], subject.type, node)

    def _absolute(self, node: exp.Expr) -> Expression:
        subject = self.bind(node.this)
        if not subject.type.is_numeric and not subject.type.is_interval:
            self.context.fail(node, "TYPE-CLASH", f"abs takes a number, not {subject.type.shown}")
        return self.call("abs", [subject], subject.type, node)

    def _cast(self, node: exp.Expr) -> Expression:
        target = typenames.from_sqlglot(node.args["to"]) if isinstance(node.args.get("to"), exp.DataType) else None
        if target == "timestamp_ntz" and self.context.is_spark and node.args["to"].this == typenames.Kind.TIMESTAMP:
            target = TIMESTAMP  # to_timestamp() is a cast to sqlglot
        if node.args.get("format"):
            self.context.fail(node, "UNKNOWN-FUNCTION", "CAST with a format is not supported", hint="use to_date")
        if target is None:
            self.context.fail(
                node,
                "UNKNOWN-TYPE",
                f"type {node.args['to'].sql()} is not supported",
                hint="use boolean, integers, float, double, decimal(p,s), string, binary, date or timestamp",
            )
        subject = self.bind(node.this)
        target = decimal_without_precision(self.context, node, subject) or target
        inner, wanted = subject.type.element, target.element
        if inner and wanted and types.castable(inner, wanted) and not node.args.get("safe"):
            return arrays.of_elements(self, node, subject, wanted)
        if not node.args.get("safe"):
            return cast(self.context, node, subject, target, explicit=True)
        if subject.type in (target, types.NULL) or not types.castable(subject.type, target):
            return cast(self.context, node, subject, target)
        return self.call("try_cast", [subject], target, node)

    def _length(self, node: exp.Expr) -> Expression:
        subject = self.bind(node.this)
        if subject.type != BINARY:
            subject = cast(self.context, node, subject, STRING)
        return self.call("length", [subject], INT32, node)

    def _concat(self, node: exp.Expr) -> Expression:
        # Flattened, since a long chain of || is a deep tree to sqlglot.
        parts = node.expressions if isinstance(node, exp.Concat) else list(node.flatten(unnest=False))
        values = [self.bind(p) for p in parts]
        if values and values[0].type.element is not None:
            return arrays.concat_arrays(self, node, values)
        refuse_binary(self, node, "concatenation", values)
        values = [cast(self.context, p, v, STRING) for p, v in zip(parts, values, strict=True)]
        if node.args.get("coalesce"):  # dialects whose CONCAT skips NULLs
            values = [self.call("coalesce", [v, Literal("", STRING)], STRING, node) for v in values]
        return self.call("concat", values, STRING, node)

    def _substring(self, node: exp.Expr) -> Expression:
        bounds = [self.bind(bound) for key in ("start", "length") if (bound := node.args.get(key)) is not None]
        if node.args.get("start") is None:
            self.context.fail(
                node, "UNKNOWN-FUNCTION", "substring needs a start position", hint="write substring(s, 1, length)"
            )
        subject = self.bind(node.this)
        if subject.type != BINARY:
            subject = cast(self.context, node, subject, STRING)
        numbers = [cast(self.context, node, bound, INT32) for bound in bounds]
        return self.call("substring", [subject, *numbers], subject.type, node)

    def _trim(self, node: exp.Expr) -> Expression:
        function = _TRIMS.get(str(node.args.get("position") or "BOTH").upper())
        if function is None or node.args.get("collation") is not None:
            self.context.fail(node, "UNKNOWN-FUNCTION", "this TRIM is not supported", hint="use trim, ltrim or rtrim")
        characters = [self.string(node.expression)] if node.expression is not None else []
        return self.call(function, [self.string(node.this), *characters], STRING, node)

    def _like(self, node: exp.Expr) -> Expression:
        pattern = node.expression
        if isinstance(pattern, exp.Any | exp.All) and isinstance(patterns := pattern.this.unnest(), exp.Tuple):
            negated = node.args.get("negate")  # NOT LIKE each of them
            each = [type(node)(this=node.this, expression=p, negate=negated) for p in patterns.expressions]
            if not each:
                self.context.fail(node, "SYNTAX", "LIKE ANY and LIKE ALL need a pattern", hint="write LIKE ANY ('a%')")
            function = "or" if isinstance(pattern, exp.Any) else "and"
            return self.call(function, [self.bind(one) for one in each], BOOLEAN, node)
        if isinstance(pattern, exp.Any | exp.All | exp.Tuple):
            self.context.fail(node, "UNKNOWN-FUNCTION", "LIKE takes one pattern", hint="write LIKE ANY ('a%', 'b%')")
        if not isinstance(pattern, exp.Literal):
            return self._matches(node, node, self.string(pattern))
        text = pattern.name
        if self.context.dialect in _WITHOUT_ESCAPE:
            text = text.replace("\\", "\\\\")
        if re.fullmatch(r"(?:[^\\]|\\[%_\\])*", text, flags=re.DOTALL) is None:
            self.context.fail(pattern, "LITERAL", "a backslash must precede %, _ or itself in this pattern")
        return self._matches(node, node, Literal(text, STRING))

    def _escape(self, node: exp.Expr) -> Expression:
        """Bind LIKE with ESCAPE; the kernel's escape character is the backslash."""
        like, pattern, escape = node.this, node.this.expression, node.expression.name
        if not isinstance(like, exp.Like | exp.ILike) or not isinstance(pattern, exp.Literal) or len(escape) != 1:
            self.context.fail(node, "UNKNOWN-FUNCTION", "ESCAPE takes one character, after LIKE and a literal pattern")
        text, escaped = "", False
        for character in pattern.name:
            if not escaped and character == escape:
                escaped = True
                continue
            if escaped and character not in ("%", "_", escape):
                self.context.fail(pattern, "LITERAL", f"{escape} must precede %, _ or itself in this pattern")
            text += "\\" + character if character == "\\" or (escaped and character in "%_") else character
            escaped = False
        if escaped:
            self.context.fail(pattern, "LITERAL", f"{escape} must precede %, _ or itself in this pattern")
        found = self._matches(node, like, Literal(text, STRING))
        return self.call("not", [found], BOOLEAN, node) if like.args.get("negate") else found

    def _matches(self, node: exp.Expr, like: exp.Expr, pattern: Expression) -> Expression:
        subject = self.string(like.this)
        if isinstance(like, exp.ILike):
            subject, pattern = (self.call("lower", [side], STRING, node) for side in (subject, pattern))
        return self.call("like", [subject, pattern], BOOLEAN, node)

    def _part(self, node: exp.Expr) -> Expression:
        return date_parts.date_part(self, node, _PARTS[type(node)], self.bind(node.this))

    def _day_of_week(self, node: exp.Expr) -> Expression:
        return date_parts.day_of_week(self, node, self.bind(node.this))

    def _to_date(self, node: exp.Expr) -> Expression:
        """sqlglot wraps arguments of date functions so; with a format it is the user's to_date."""
        if node.args.get("format"):
            return call_by_name(self, node, "to_date", [node.this, node.args["format"]])
        subject = self.bind(node.this)
        return subject if subject.type.is_temporal else cast(self.context, node, subject, DATE)

    def _read_time(self, node: exp.Expr) -> Expression:
        """Other dialects' functions that read and write times by a pattern."""
        name = _BY_PATTERN[type(node)]
        if node.args.get("zone") is not None or node.args.get("culture") is not None or node.args.get("safe"):
            self.context.fail(node, "UNKNOWN-FUNCTION", f"{name} with more than a pattern is not supported")
        return call_by_name(self, node, name, [node.this, *filter(None, [node.args.get("format")])])

    def _to_time(self, node: exp.Expr) -> Expression:
        subject = self.bind(node.this)
        return subject if subject.type.is_temporal else cast(self.context, node, subject, TIMESTAMP)

    def _nvl2(self, node: exp.Expr) -> Expression:
        present = Call("not", (Call("is_null", (self.bind(node.this),), BOOLEAN),), BOOLEAN)
        return self._choice(node, [fold(present, always)], [node.args["true"], node.args.get("false") or exp.Null()])

    def _hex(self, node: exp.Expr) -> Expression:
        digits = str(node.this).lower()
        return Literal("0" * (len(digits) % 2) + digits, BINARY)

    def _anonymous(self, node: exp.Expr) -> Expression:
        """Functions that sqlglot has no class for, but the kernel has."""
        name, arguments = str(node.this).lower(), node.expressions
        if (declared := self.context.functions.get(name)) is not None:
            return call_declared(self, node, declared, arguments)
        if len(arguments) == 1 and name in ("isnull", "isnotnull"):
            absent = self.call("is_null", [self.bind(arguments[0])], BOOLEAN, node)
            return absent if name == "isnull" else self.call("not", [absent], BOOLEAN, node)
        if len(arguments) == 1 and name in ("bigint", "smallint", "tinyint", "boolean", "decimal", "binary"):
            return cast(self.context, node, self.bind(arguments[0]), typenames.from_name(name) or INT64)
        return named_call(self, node)

    def _scalar(self, node: exp.Expr) -> Expression:
        return self.subqueries.scalar(node, self.scope)

    def _aggregate(self, node: exp.Expr) -> Expression:
        return self.subqueries.aggregate(node, self)

    def _window(self, node: exp.Expr) -> Expression:
        return self.subqueries.window(node, self)

    def _interval(self, node: exp.Expr) -> Expression:
        assert isinstance(node, exp.Interval)
        return intervals.literal(self.context, node)

    def _paren(self, node: exp.Expr) -> Expression:
        return self.bind(node.this)

    def _boolean(self, node: exp.Expr) -> Expression:
        return Literal(bool(node.this), BOOLEAN)

    def _null(self, node: exp.Expr) -> Expression:
        return Literal(None, types.NULL)

    def _star(self, node: exp.Expr) -> Expression:
        self.context.fail(node, "STAR", "* is not allowed here", hint="name the columns")

    def _alias(self, node: exp.Expr) -> Expression:
        self.context.fail(node, "SYNTAX", "an alias is not allowed here", hint="remove AS and the alias")


def _operand_type(type_: DataType, operand: DataType | None) -> DataType:
    """Return the type to cast an operand to; without one, a decimal keeps its own and an integer becomes one."""
    return operand or types.decimal(*(type_.as_decimal or (types.MAX_PRECISION, 0)))


def _literal_types(left: Expression, right: Expression) -> tuple[DataType, DataType]:
    """Return the operands' types; beside a decimal, an integer literal is a decimal of just its digits."""

    def narrowed(side: Expression, other: Expression) -> DataType:
        if isinstance(side, Literal) and side.type.is_integer and other.type.is_decimal:
            return types.decimal(len(str(abs(int(side.value or 0)))), 0)
        return side.type

    return narrowed(left, right), narrowed(right, left)


Handler = Callable[[Binder, exp.Expr], Expression]

_HANDLERS: dict[type, Handler] = {
    exp.Column: Binder._column,
    exp.Literal: Binder._literal,
    exp.Boolean: Binder._boolean,
    exp.Null: Binder._null,
    exp.Paren: Binder._paren,
    exp.Alias: Binder._alias,
    exp.Star: Binder._star,
    **dict.fromkeys(_ARITHMETIC, Binder._arithmetic),
    **dict.fromkeys(_COMPARISON, Binder._comparison),
    exp.NullSafeEQ: Binder._not_distinct,
    exp.NullSafeNEQ: Binder._not_distinct,
    exp.And: Binder._logic,
    exp.Or: Binder._logic,
    exp.Xor: Binder._xor,
    exp.Not: Binder._not,
    exp.Is: Binder._is,
    exp.Between: Binder._between,
    exp.In: Binder._in,
    exp.Exists: Binder._exists,
    exp.Identifier: Binder._parameter,
    exp.Any: Binder._mark,
    exp.All: Binder._mark,
    exp.Case: Binder._case,
    exp.If: Binder._if,
    exp.Coalesce: Binder._coalesce,
    exp.Greatest: Binder._extreme,
    exp.Least: Binder._extreme,
    exp.Nullif: Binder._nullif,
    exp.Neg: Binder._negate,
    exp.Abs: Binder._absolute,
    exp.Cast: Binder._cast,
    exp.Negative: Binder._negate,
    exp.Length: Binder._length,
    exp.Concat: Binder._concat,
    exp.DPipe: Binder._concat,
    exp.Substring: Binder._substring,
    exp.Trim: Binder._trim,
    exp.Like: Binder._like,
    exp.ILike: Binder._like,
    exp.Escape: Binder._escape,
    **rounding.HANDLERS,
    **strings.HANDLERS,
    **date_parts.HANDLERS,
    **nested.HANDLERS,
    **arrays.HANDLERS,
    **lambdas.HANDLERS,
    **conversions.HANDLERS,
    **dict.fromkeys(_PARTS, Binder._part),
    exp.DayOfWeek: Binder._day_of_week,
    **dict.fromkeys(_BY_PATTERN, Binder._read_time),
    exp.TsOrDsToDate: Binder._to_date,
    exp.TimeStrToTime: Binder._to_time,
    exp.TsOrDsToTimestamp: Binder._to_time,
    exp.Nvl2: Binder._nvl2,
    exp.HexString: Binder._hex,
    exp.RawString: lambda _, node: Literal(str(node.this), STRING),
    exp.Anonymous: Binder._anonymous,
    exp.Subquery: Binder._scalar,
    exp.Filter: Binder._aggregate,
    exp.WithinGroup: Binder._aggregate,
    exp.IgnoreNulls: Binder._aggregate,
    exp.RespectNulls: Binder._aggregate,
    exp.Window: Binder._window,
    exp.Interval: Binder._interval,
}

# Of all other classes, subclasses may mean something else (CONCAT_WS is a kind of CONCAT to
# sqlglot).
_FAMILIES: dict[type, Handler] = {
    exp.Cast: Binder._cast,
    exp.Query: Binder._scalar,
    exp.AggFunc: Binder._aggregate,
}
