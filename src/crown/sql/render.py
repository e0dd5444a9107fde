"""Expressions as Spark SQL text: for computed columns, and for people."""

from __future__ import annotations

import datetime

from crown.expression import Call, Column, Expression, Literal
from crown.sql import types

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
    "and": "AND",
    "or": "OR",
}


def quoted(name: str) -> str:
    """A column name as Spark SQL writes it."""
    return name if name.isidentifier() and name.isascii() else "`" + name.replace("`", "``") + "`"


def to_spark_sql(expression: Expression, *, casts: bool = True) -> str:
    """The expression over its columns. `casts=False` leaves casts out, for reading.

    >>> to_spark_sql(Call("add", (Column("a", "int64"), Literal(1, "int64")), "int64"))
    '(a + 1)'
    """

    def render(part: Expression) -> str:
        return to_spark_sql(part, casts=casts)

    match expression:
        case Column(name, _):
            return ".".join(quoted(p) for p in name.split(".", 1)) if not casts else quoted(name)
        case Literal():
            return literal(expression)
        case Call("cast", (argument,), type_):
            return f"CAST({render(argument)} AS {types.spark_name(type_)})" if casts else render(argument)
        case Call("like", (argument, Literal(str(pattern)) as escaped), _) if "\\" in pattern:
            return f"({render(argument)} LIKE {render(escaped)} ESCAPE '\\\\')"
        case Call("date_trunc", (unit, argument), "date"):
            return f"trunc({render(argument)}, {render(unit)})"
        case Call("starts_with" | "ends_with" as function, arguments, _):
            return f"{function.replace('_', '')}({', '.join(map(render, arguments))})"
        case Call(function, arguments, _) if function in _INFIX:
            return "(" + f" {_INFIX[function]} ".join(map(render, arguments)) + ")"
        case Call("not", (Call("is_null", (argument,), _),), _):
            return f"({render(argument)} IS NOT NULL)"
        case Call("not", (argument,), _):
            return f"(NOT {render(argument)})"
        case Call("is_null", (argument,), _):
            return f"({render(argument)} IS NULL)"
        case Call("negate", (argument,), _):
            return f"(- {render(argument)})"
        case Call("in", (subject, *values), _):
            return f"({render(subject)} IN ({', '.join(map(render, values))}))"
        case Call("case", (*pairs, otherwise), _):
            whens = [f"WHEN {render(w)} THEN {render(t)}" for w, t in zip(pairs[::2], pairs[1::2], strict=True)]
            return f"CASE {' '.join(whens)} ELSE {render(otherwise)} END"
        case Call(function, arguments, _) if function.startswith("sql:"):
            text = function.removeprefix("sql:")
            for index, argument in enumerate(arguments):
                text = text.replace(f"\x00{index}\x00", render(argument))
            return text
        case Call(function, arguments, _):
            return f"{function}({', '.join(map(render, arguments))})"


def literal(value: Literal) -> str:
    """A literal that Spark reads back with the same type."""
    content, type_ = value.value, value.type
    if content is None:
        return "NULL"
    if type_ == "date":
        return f"DATE '{datetime.date(1970, 1, 1) + datetime.timedelta(days=int(content))}'"
    if type_ in ("timestamp", "timestamp_ntz"):
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=int(content))
        return f"{type_.upper()} '{moment.isoformat(sep=' ')}'"
    if type_ == "boolean":
        return "TRUE" if content else "FALSE"
    if type_ == "string":
        return "'" + str(content).replace("\\", "\\\\").replace("'", "\\'") + "'"
    if type_ == "binary":
        return f"X'{content}'"
    if type_ in types.FLOATS:
        return f"DOUBLE('{content}')" if isinstance(content, str) else f"{content!r}D"
    return str(content)
