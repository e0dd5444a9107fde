"""Render expressions as SQL text, for Spark and for people.

For Spark every cast is written, every literal reads back with its own type and every name is quoted; for people casts
and quotes are left out. Spark only gets comparisons and logic over columns and literals (see
`crown.spark.flow.selection`); the kernel evaluates everything else.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import replace

from crown.ir.expression import Call, Column, Expression, Literal, columns_of, from_json
from crown.ir.functions import declared_name
from crown.types import BINARY, BOOLEAN, DATE, FLOAT32, STRING, TIME, TIMESTAMP, UUID

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "modulo": "%",
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "is_not_distinct": "<=>",
    "like": "LIKE",
    "rlike": "RLIKE",
    "concat": "||",
    "div": "DIV",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "^",
}
_SPARK_FUNCTION = {"starts_with": "startswith", "ends_with": "endswith", "is_nan": "isnan"}
# What is not written for people: the same value in another type.
_SAME_VALUE = frozenset({"cast", "length_of_interval", "interval_of_length"})
_UNITS = (("DAY", 86_400_000_000), ("HOUR", 3_600_000_000), ("MINUTE", 60_000_000), ("SECOND", 1_000_000))
_COMPOUND = frozenset({*_INFIX, "and", "or", "not", "is_null", "negate", "in", "add_microseconds", "bit_not"})
# Functions that take a function: how SQL names them, the arguments before it, and its parameters.
_TAKES_FUNCTION = {
    "transform": ("transform", (1,), ("x", "i")),
    "array_filter": ("filter", (1,), ("x", "i")),
    "array_exists": ("exists", (1,), ("x",)),
    "array_forall": ("forall", (1,), ("x",)),
    "zip_with": ("zip_with", (1, 2), ("x", "y")),
    "reduce": ("aggregate", (2, 1), ("acc", "x")),
}
_EPOCH = datetime.datetime(1970, 1, 1)


def to_spark_sql(expression: Expression) -> str:
    """Return the expression over its columns, for Spark to evaluate.

    >>> from crown.types import INT64
    >>> to_spark_sql(Call("add", (Column("a", INT64), Literal(1, INT64)), INT64))
    '`a` + 1'
    """
    return _write(expression, for_spark=True)


def to_text(expression: Expression) -> str:
    """Return the expression as a person writes it.

    >>> from crown.types import INT32, INT64
    >>> to_text(Call("lt", (Call("cast", (Column("p1", INT32),), INT64), Literal(100, INT64)), BOOLEAN))
    'p1 < 100'
    """
    return _write(expression, for_spark=False)


def quoted(name: str) -> str:
    """Return a column name quoted for Spark.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def _write(expression: Expression, *, for_spark: bool) -> str:
    def write(part: Expression) -> str:
        return _write(part, for_spark=for_spark)

    def operand(part: Expression) -> str:
        if isinstance(part, Call) and part.function in _SAME_VALUE and not for_spark:
            return operand(part.arguments[0])
        return f"({write(part)})" if isinstance(part, Call) and part.function in _COMPOUND else write(part)

    def term(part: Expression) -> str:
        """Return an operand of AND or OR: all other operators bind more tightly."""
        return f"({write(part)})" if isinstance(part, Call) and part.function in ("and", "or") else write(part)

    match expression:
        case Column(name, _):
            return quoted(name) if for_spark else name
        case Literal():
            return _literal(expression, for_spark=for_spark)
        case Call("cast", (argument,), type_) if for_spark:
            return f"CAST({write(argument)} AS {type_.sql_name})"
        case Call(function, (argument,), _) if function in _SAME_VALUE and not for_spark:
            return write(argument)
        case Call("like", (argument, Literal(str(pattern)) as escaped), _) if "\\" in pattern:
            return f"{operand(argument)} LIKE {write(escaped)} ESCAPE '\\\\'"
        case Call("date_trunc", (unit, argument), "date"):
            return f"trunc({write(argument)}, {write(unit)})"
        case Call("try_cast", (argument,), type_):
            return f"TRY_CAST({write(argument)} AS {type_.sql_name})"
        case Call("extract_second", (argument,), _):
            return f"EXTRACT(SECOND FROM {write(argument)})"
        case Call("add_microseconds", (argument, Literal(int(amount))), _):
            return f"{operand(argument)} + INTERVAL {_interval(amount)}"
        case Call("get_field", (argument, Literal(int(position))), _):
            return f"{operand(argument)}.{argument.type.fields[position][0]}"
        case Call("get_item" | "required_item" | "map_get", (argument, key), _):
            return f"{operand(argument)}[{write(key)}]"
        case Call("make_array" | "make_struct" | "make_map" as function, arguments, _):
            return f"{function[5:]}({', '.join(map(write, arguments))})"
        case Call("json_text" | "json_value", (argument, Literal(str(steps))), _):
            return f"get_json_object({write(argument)}, '${steps.replace(chr(0), '')}')"
        case Call("bit_not", (argument,), _):
            return f"~{operand(argument)}"
        case Call("and" | "or" as function, arguments, _):
            return f" {function.upper()} ".join(map(term, arguments))
        case Call(function, arguments, _) if function in _INFIX:
            return f" {_INFIX[function]} ".join(map(operand, arguments))
        case Call("not", (Call("is_null", (argument,), _),), _):
            return f"{operand(argument)} IS NOT NULL"
        case Call("not", (argument,), _):
            return f"NOT {operand(argument)}"
        case Call("is_null", (argument,), _):
            return f"{operand(argument)} IS NULL"
        case Call("negate", (argument,), _):
            negated = operand(argument)
            return f"-({negated})" if negated.startswith("-") else f"-{negated}"
        case Call("in", (subject, *values), _):
            return f"{operand(subject)} IN ({', '.join(map(write, values))})"
        case Call("case", (*pairs, otherwise), _):
            whens = [f"WHEN {write(w)} THEN {write(t)}" for w, t in zip(pairs[::2], pairs[1::2], strict=True)]
            return f"CASE {' '.join(whens)} ELSE {write(otherwise)} END"
        case Call(function, (Literal(str(body)), *_), _) if function in _TAKES_FUNCTION:
            return _with_function(expression, from_json(json.loads(body)), for_spark=for_spark)
        case Call(function, arguments, _):
            name = declared_name(function) or _SPARK_FUNCTION.get(function, function)
            return f"{name}({', '.join(map(write, arguments))})"


def _with_function(call: Call, body: Expression, *, for_spark: bool) -> str:
    """Return a call that takes a function, which sees the last arguments of the call after its parameters."""
    name, places, names = _TAKES_FUNCTION[call.function]
    parameters = [f"{name}_" if _reads_name(call, name) else name for name in names]
    captured = call.arguments[1 + len(places) :]

    def shown(part: Expression) -> Expression:
        if isinstance(part, Call):
            return replace(part, arguments=tuple(map(shown, part.arguments)))
        if not isinstance(part, Column):
            return part
        place = int(part.name)
        return Column(parameters[place], part.type) if place < len(parameters) else captured[place - len(parameters)]

    before = ", ".join(_write(call.arguments[place], for_spark=for_spark) for place in places)
    used = [parameter for at, parameter in enumerate(parameters) if at == 0 or len(places) > 1 or _uses(body, at)]
    head = used[0] if len(used) == 1 else f"({', '.join(used)})"
    return f"{name}({before}, {head} -> {_write(shown(body), for_spark=for_spark)})"


def _uses(body: Expression, parameter: int) -> bool:
    return str(parameter) in columns_of(body)


def _reads_name(call: Call, name: str) -> bool:
    return name in columns_of(call)


def _interval(microseconds: int) -> str:
    """Return the interval in the largest unit of which it is a whole number.

    >>> _interval(-7200000000)
    "'-2' HOUR"
    """
    for unit, size in _UNITS:
        if microseconds % size == 0:
            return f"'{microseconds // size}' {unit}"
    return f"'{microseconds}' MICROSECOND"


def _literal(literal: Literal, *, for_spark: bool) -> str:
    value, type_ = literal.value, literal.type
    if value is None:
        return "NULL"
    if type_ == DATE:
        return f"DATE '{_EPOCH.date() + datetime.timedelta(days=int(value))}'"
    if type_.is_timestamp:
        moment = (_EPOCH + datetime.timedelta(microseconds=int(value))).isoformat(sep=" ")
        # The zone is written, or it would be that of Spark's session.
        return f"{type_.upper()} '{moment}{'+00:00' if for_spark and type_ == TIMESTAMP else ''}'"
    if type_ == TIME:
        return f"TIME '{(_EPOCH + datetime.timedelta(microseconds=int(value))).time()}'"
    if type_.is_interval:
        amount = f"'{value}' MONTH" if type_.is_months else _interval(int(value))
        text = f"INTERVAL {amount}"
        return f"CAST({text} AS {type_.sql_name})" if for_spark else text
    if type_ == BOOLEAN:
        return "TRUE" if value else "FALSE"
    if type_ in (STRING, UUID):
        return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
    if type_ == BINARY:
        return f"X'{value}'"
    if not for_spark or not type_.is_float:
        return str(value)
    if isinstance(value, str):  # NaN and the infinities
        return f"{type_.sql_name}('{value}')"
    return f"{value!r}{'F' if type_ == FLOAT32 else 'D'}"
