"""Functions that are written out in Spark's own SQL, with `arg1`, `arg2` and so on for their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import sqlglot
from sqlglot import exp

from crown import types
from crown.ir.expression import Expression, Literal
from crown.sql.scalar.binding import ScalarBinder, Special
from crown.sql.scalar.coerce import cast
from crown.sql.scalar.constants import evaluate
from crown.types import INT32, INT64, STRING

# The reciprocal of a zero is an infinity of its sign, which the operator / refuses.
_RECIPROCAL = "CASE WHEN {0} = 0 THEN power({0}, -1) ELSE 1 / {0} END"
_TEXTS: Mapping[str, tuple[str, int]] = {
    "cot": (_RECIPROCAL.format("tan(arg1)"), 1),
    "csc": (_RECIPROCAL.format("sin(arg1)"), 1),
    "sec": (_RECIPROCAL.format("cos(arg1)"), 1),
    "atanh": (
        "CASE WHEN double(arg1) = 1 THEN double('Infinity') WHEN double(arg1) = -1 THEN -double('Infinity') "
        "WHEN abs(double(arg1)) > 1 THEN double('NaN') ELSE 0.5D * (log1p(arg1) - log1p(-double(arg1))) END",
        1,
    ),
}


@cache
def _parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read="spark")


def written(text: str, parts: Sequence[exp.Expr]) -> exp.Expr:
    """Return the SQL with its arguments."""
    found = _parsed(text).copy()
    for column in list(found.find_all(exp.Column)):
        if column.name.startswith("arg"):
            column.replace(exp.paren(parts[int(column.name[3:]) - 1].copy(), copy=False))
    return found


def check_count(binder: ScalarBinder, node: exp.Expr, name: str, count: int, least: int, most: int) -> None:
    if not least <= count <= most:
        expected = str(least) if least == most else f"{least} to {most}"
        plural = "" if expected == "1" else "s"
        binder.context.fail(
            node, "UNKNOWN-FUNCTION", f"{name} takes {expected} argument{plural}", hint="see docs/sql.md"
        )


def _special(name: str) -> Special:
    text, count = _TEXTS[name]

    def bind(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
        check_count(binder, node, name, len(parts), count, count)
        return binder.bind(written(text, parts))

    return bind


def _tried(name: str, operator: str) -> Special:
    """`try_add` and the like: NULL where the result is not a value of its type."""

    def bind(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
        check_count(binder, node, name, len(parts), 2, 2)
        first, second = (binder.bind(part).type for part in parts)
        common = types.common_type(first, second)
        numbers = all(type_.is_numeric or type_ == types.NULL for type_ in (first, second))
        if common is None or not numbers or not (common.is_integer or common.is_float):
            binder.context.fail(
                node,
                "TYPE-CLASH",
                f"{name} is only supported for integers and floats, not {first.shown} and {second.shown}",
                hint="cast the arguments",
            )
        type_ = common.sql_name
        if common.is_float:
            return binder.bind(written(f"CAST(arg1 AS {type_}) {operator} CAST(arg2 AS {type_})", parts))
        wide = "DECIMAL(19, 0)" if common == INT64 else "BIGINT"  # for which no result is too large
        return binder.bind(written(f"TRY_CAST(CAST(arg1 AS {wide}) {operator} CAST(arg2 AS {wide}) AS {type_})", parts))

    return bind


def _matches(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """`regexp_count`: how much longer the string is with one more character for each match."""
    check_count(binder, node, "regexp_count", len(parts), 2, 2)
    counted = written("length(regexp_replace(arg1, arg2, '$0 ')) - length(arg1)", parts)
    found = binder.bind(counted)
    if evaluate(binder.bind(written("length(regexp_replace('', arg1, ' '))", parts[1:]))) != Literal(0, INT32):
        binder.context.fail(
            node,
            "PATTERN",
            "regexp_count of a pattern that matches an empty string is not supported",
            reason="Java would find it within some characters, too",
            hint="write a pattern that matches at least one character",
        )
    return found


def _elt(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """The argument with this number; any other number is an error."""
    check_count(binder, node, "elt", len(parts), 2, 255)
    index = cast(binder.context, node, cast(binder.context, node, binder.bind(parts[0]), INT32), INT64)
    texts = [cast(binder.context, node, binder.bind(part), STRING) for part in parts[1:]]
    array = binder.call("make_array", texts, types.array_of(STRING), node)
    from_zero = binder.call("subtract", [index, Literal(1, INT64)], INT64, node)
    return binder.call("required_item", [array, from_zero], STRING, node)


def _zipped(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """`arrays_zip`: structs of the elements at the same place, in fields with the names of the columns."""
    check_count(binder, node, "arrays_zip", len(parts), 1, 255)
    names = [p.name if isinstance(p, exp.Column) else str(i) for i, p in enumerate(parts)]
    if any(character in name for name in names for character in "`'\\"):
        binder.context.fail(node, "UNKNOWN-COLUMN", "arrays_zip of a column with quotes in its name is not supported")
    found = written(f"transform(arg1, x -> named_struct('{names[0]}', x))", parts[:1])
    for count, part in enumerate(parts[1:], 1):
        before = ", ".join(f"'{name}', x.`{name}`" for name in names[:count])
        text = f"zip_with(arg1, arg2, (x, y) -> named_struct({before}, '{names[count]}', y))"
        found = written(text, [found, part])
    return binder.bind(found)


def _inserted(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """`array_insert` at a position that is written in the query: from 1, or from the end if it is negative."""
    check_count(binder, node, "array_insert", len(parts), 3, 3)
    at = binder.bind(parts[1])
    if not isinstance(at, Literal) or not at.type.is_integer or not isinstance(at.value, int) or at.value == 0:
        binder.context.fail(
            node, "PATTERN", "the position in array_insert must be a literal other than 0", reason="it counts from 1"
        )
    element, value = binder.bind(parts[0]).type.element, binder.bind(parts[2]).type
    if element is not None and (element == STRING) != (value == STRING) and value != types.NULL:
        binder.context.fail(
            node, "TYPE-CLASH", f"a {value.shown} can't be inserted into an array of {element.shown}", hint="cast it"
        )
    number = exp.Literal.number(abs(at.value))
    arguments = [parts[0], number, parts[2]]
    padding = "array_repeat(CASE WHEN FALSE THEN arg3 END, arg2 - 1 - size(arg1))"
    if at.value > 0:
        near = "concat(slice(arg1, 1, arg2 - 1), array(arg3), slice(arg1, arg2, size(arg1)))"
        far = f"concat(arg1, {padding}, array(arg3))"
    else:
        near = "concat(slice(arg1, 1, size(arg1) - arg2 + 1), array(arg3), slice(arg1, size(arg1) - arg2 + 2, arg2))"
        far = f"concat(array(arg3), {padding}, arg1)"
    return binder.bind(written(f"CASE WHEN size(arg1) >= arg2 - 1 THEN {near} ELSE {far} END", arguments))


SPECIAL: dict[str, Special] = {
    **{name: _special(name) for name in _TEXTS},
    "try_add": _tried("try_add", "+"),
    "try_subtract": _tried("try_subtract", "-"),
    "try_multiply": _tried("try_multiply", "*"),
    "regexp_count": _matches,
    "elt": _elt,
    "arrays_zip": _zipped,
    "array_insert": _inserted,
}
NODES: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Cot: ("cot", ("this",)),
    exp.Sec: ("sec", ("this",)),
    exp.Csc: ("csc", ("this",)),
    exp.Atanh: ("atanh", ("this",)),
    exp.RegexpCount: ("regexp_count", ("this", "expression")),
    exp.SafeAdd: ("try_add", ("this", "expression")),
    exp.SafeSubtract: ("try_subtract", ("this", "expression")),
    exp.SafeMultiply: ("try_multiply", ("this", "expression")),
    exp.Elt: ("elt", ("this", "expressions")),
    exp.ArraysZip: ("arrays_zip", ("expressions",)),
    exp.ArrayInsert: ("array_insert", ("this", "position", "expression")),
}
