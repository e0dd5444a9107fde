"""Functions of whole arrays, as Spark computes them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from crown import types
from crown.ir.expression import Expression, Literal
from crown.sql.context import Context
from crown.sql.scalar.binding import Handler, ScalarBinder, Special
from crown.sql.scalar.coerce import cast
from crown.sql.scalar.expansions import written
from crown.sql.scalar.intervals import literal as interval_literal
from crown.sql.scalar.splits import SplitParts, limit_of
from crown.sql.scalar.strings import refuse_binary
from crown.sql.schema.options import MICROSECONDS
from crown.types import BOOLEAN, DATE, INT32, INT64, STRING, TIMESTAMP, DataType
from crown.wording import counted

# What each argument is: the array, another one of its type, an element of it, or a type.
ARRAY, SAME, ELEMENT = "array", "same", "element"
_TAKES: dict[str, tuple[tuple[str | DataType, ...], str | DataType]] = {
    "array_append": ((ARRAY, ELEMENT), ARRAY),
    "array_compact": ((ARRAY,), ARRAY),
    "array_distinct": ((ARRAY,), ARRAY),
    "array_except": ((ARRAY, SAME), ARRAY),
    "array_intersect": ((ARRAY, SAME), ARRAY),
    "array_max": ((ARRAY,), ELEMENT),
    "array_min": ((ARRAY,), ELEMENT),
    "array_position": ((ARRAY, ELEMENT), INT64),
    "array_prepend": ((ARRAY, ELEMENT), ARRAY),
    "array_remove": ((ARRAY, ELEMENT), ARRAY),
    "array_reverse": ((ARRAY,), ARRAY),
    "array_union": ((ARRAY, SAME), ARRAY),
    "arrays_overlap": ((ARRAY, SAME), BOOLEAN),
    "slice": ((ARRAY, INT32, INT32), ARRAY),
}


def as_array(binder: ScalarBinder, node: exp.Expr, name: str) -> Expression:
    """Return the expression of an array."""
    value = binder.bind(node)
    if value.type.element is None:
        binder.context.fail(node, "TYPE-CLASH", f"{name} takes an array, not {value.type.shown}")
    return value


def of_elements(binder: ScalarBinder, node: exp.Expr, array: Expression, element: DataType) -> Expression:
    """Return the array with its elements cast."""
    if array.type.element == element:
        return array
    return binder.call("cast_array", [array], types.array_of(element), node)


def _common(context: Context, node: exp.Expr, one: DataType, other: DataType) -> DataType:
    found = types.common_type(one, other)
    if found is None:
        context.fail(node, "TYPE-CLASH", f"an array of {one.shown} has no element of type {other.shown}")
    return found


def _listed(name: str) -> Special:
    takes, gives = _TAKES[name]

    def bind(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
        _check(binder, node, name, len(parts), len(takes))
        array = as_array(binder, parts[0], name)
        values = [binder.bind(part) for part in parts[1:]]
        element = array.type.element
        assert element is not None
        for value, wanted in zip(values, takes[1:], strict=True):
            if wanted == SAME and value.type.element is None:
                binder.context.fail(node, "TYPE-CLASH", f"{name} takes two arrays, not {value.type.shown}")
            other = value.type.element if wanted == SAME else value.type
            element = _common(binder.context, node, element, other) if wanted in (SAME, ELEMENT) and other else element
        arguments = [of_elements(binder, node, array, element)]
        for value, wanted in zip(values, takes[1:], strict=True):
            if wanted == SAME:
                arguments.append(of_elements(binder, node, value, element))
            else:
                arguments.append(cast(binder.context, node, value, element if wanted == ELEMENT else DataType(wanted)))
        type_ = types.array_of(element) if gives == ARRAY else element if gives == ELEMENT else DataType(gives)
        return binder.call(name, arguments, type_, node)

    return bind


def _check(binder: ScalarBinder, node: exp.Expr, name: str, given: int, *wanted: int) -> None:
    if not binder.context.is_spark:
        binder.context.fail(
            node,
            "UNKNOWN-FUNCTION",
            f"{name} is only supported in Spark's dialect",
            reason="dialects treat NULLs and positions in arrays in different ways",
        )
    if given not in wanted:
        counts = " or ".join(map(str, wanted[:-1])) + (" or " if wanted[:-1] else "") + counted(wanted[-1], "argument")
        binder.context.fail(node, "UNKNOWN-FUNCTION", f"{name} takes {counts}")


def _sorted(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """`sort_array(a, ascending)` has NULLs first, or last if descending; `array_sort(a)` always has them last."""
    _check(binder, node, "sort_array", 1, 1)
    array = as_array(binder, node.this, "sort_array")
    ascending = node.args.get("asc")
    if ascending is None and isinstance(first := node.args.get("nulls_first"), exp.Boolean) and not first.this:
        return binder.call("array_sort", [array], array.type, node)
    upwards = binder.bind(ascending or exp.true())
    if upwards.type not in (BOOLEAN, types.NULL):
        binder.context.fail(node, "TYPE-CLASH", f"the order of sort_array is TRUE or FALSE, not {upwards.type.shown}")
    upwards = cast(binder.context, node, upwards, BOOLEAN)
    return binder.call("sort_array", [array, upwards], array.type, node)


def _joined(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """`array_join(a, ',', 'null')`: NULLs are left out if nothing stands for them."""
    texts = of_elements(binder, node, as_array(binder, node.this, "array_join"), STRING)
    absent = node.args.get("null")
    rest = [binder.string(node.expression), *([binder.string(absent)] if absent is not None else [])]
    return binder.call("array_join", [texts, *rest], STRING, node)


def concat_arrays(binder: ScalarBinder, node: exp.Expr, arrays: Sequence[Expression]) -> Expression:
    """Return the elements of all arrays."""
    element = arrays[0].type.element
    for array in arrays:
        if element is None or array.type.element is None:
            binder.context.fail(node, "TYPE-CLASH", "arrays can only be concatenated with arrays")
        element = _common(binder.context, node, element, array.type.element)
    assert element is not None
    same = [of_elements(binder, node, array, element) for array in arrays]
    return binder.call("array_concat", same, types.array_of(element), node)


def _repeated(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    _check(binder, node, "array_repeat", len(parts), 2)
    value = binder.bind(parts[0])
    value = Literal(None, STRING) if value.type == types.NULL else value
    times = cast(binder.context, node, binder.bind(parts[1]), INT32)
    return binder.call("array_repeat", [value, times], types.array_of(value.type), node)


def _flattened(binder: ScalarBinder, node: exp.Expr) -> Expression:
    _check(binder, node, "flatten", 1, 1)
    outer = as_array(binder, node.this, "flatten")
    assert outer.type.element is not None
    if outer.type.element.element is None:
        binder.context.fail(node, "TYPE-CLASH", f"flatten takes an array of arrays, not {outer.type.shown}")
    return binder.call("flatten", [outer], outer.type.element, node)


def _split(binder: ScalarBinder, node: exp.Expr, _: Sequence[exp.Expr]) -> Expression:
    most = limit_of(node)
    if most:
        unlimited = node.copy()
        unlimited.set("limit", None)
        delimiter = exp.Literal.string(str(SplitParts(binder, unlimited).delimiter.value))
        every = exp.Split(this=node.this.copy(), expression=delimiter)
        first = "slice(arg1, 1, arg2 - 1)"
        rest = "array(array_join(slice(arg1, arg2, size(arg1)), arg3))"
        text = f"CASE WHEN size(arg1) <= arg2 THEN arg1 ELSE concat({first}, {rest}) END"
        return binder.bind(written(text, [every, exp.Literal.number(most), delimiter]))
    parts = SplitParts(binder, node)
    return binder.call("split", [parts.subject, parts.delimiter], types.array_of(STRING), node)


def _sequence(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """`sequence(first, last, step)` of integers, dates or timestamps; the last one is included."""
    context, step = binder.context, node.args.get("step")
    first, last = (binder.bind(node.args[key]) for key in ("start", "end"))
    common = types.common_type(first.type, last.type)
    if common is None or not (common.is_integer or common.is_temporal):
        context.fail(
            node,
            "TYPE-CLASH",
            f"there is no sequence from {first.type.shown} to {last.type.shown}",
            hint="give two integers, dates or timestamps",
        )
    if common.is_integer and common != INT64:
        common = INT32
    if not context.is_spark and common == DATE:
        common = TIMESTAMP
    ends = [cast(context, node, end, common) for end in (first, last)]
    months, by = _step(binder, node, step, ends, common)
    if context.is_spark:
        return binder.call("sequence", [*ends, months, by], types.array_of(common), node)
    return _or_none(binder, node, ends, (months, by))


def _or_none(
    binder: ScalarBinder, node: exp.Expr, ends: list[Expression], step: tuple[Expression, Expression]
) -> Expression:
    """Other dialects: upwards if the step is not written, and no elements where the step leads away from the end."""
    if node.args.get("step") is not None and not isinstance(step[1], Literal):
        binder.context.fail(node, "TABLE-FUNCTION", "the step of a range must be written in the query")
    sizes = [part.value for part in step if isinstance(part, Literal)]
    backwards = any(isinstance(size, int) and size < 0 for size in sizes)
    function = ("gt" if backwards else "lt") if node.args.get("is_end_exclusive") else "ge" if backwards else "le"
    first, last = ends
    if node.args.get("is_end_exclusive"):
        shift = "add_microseconds" if last.type.is_timestamp else "add"
        beyond = Literal(1 if backwards else -1, last.type if last.type.is_integer else INT64)
        last = binder.call(shift, [last, beyond], last.type, node)
    type_ = types.array_of(first.type)
    found = binder.call("sequence", [first, last, *step], type_, node)
    there = binder.call(function, ends, BOOLEAN, node)
    absent = binder.call("is_null", [there], BOOLEAN, node)
    none = binder.call("make_array", [], type_, node)
    return binder.call("case", [there, found, absent, Literal(None, type_), none], type_, node)


def _step(
    binder: ScalarBinder, node: exp.Expr, step: exp.Expr | None, ends: list[Expression], type_: DataType
) -> tuple[Expression, Expression]:
    """Return the months and, if there are none, the number, days or microseconds from one element to the next."""
    context, none = binder.context, Literal(0, INT32)
    unit = MICROSECONDS["day"] if type_.is_timestamp else 1
    if step is None:
        backwards = binder.call("gt", ends, BOOLEAN, node)
        return none, binder.call("case", [backwards, Literal(-unit, INT64), Literal(unit, INT64)], INT64, node)
    if type_.is_integer:
        return none, cast(context, node, binder.bind(step), INT64)
    interval = as_interval(step)
    if interval is None:
        context.fail(node, "INTERVAL", "the step of these dates must be an interval", hint="write INTERVAL 1 DAY")
    found = interval_literal(context, interval)
    if found.type.is_months:
        return Literal(found.value, INT32), Literal(0, INT64)
    micros = int(found.value or 0)
    if type_ == DATE and micros % MICROSECONDS["day"]:
        context.fail(node, "INTERVAL", "dates are at least a day apart", hint="cast them to timestamps")
    return none, Literal(micros if type_.is_timestamp else micros // MICROSECONDS["day"], INT64)


def as_interval(node: exp.Expr) -> exp.Interval | None:
    """Return an interval that is written as one, or as a string: INTERVAL 1 DAY, '1 day'::interval."""
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    if isinstance(node, exp.Interval):
        return node
    amount, _, unit = node.name.strip().partition(" ") if isinstance(node, exp.Literal) else ("", "", "")
    return exp.Interval(this=exp.Literal.string(amount), unit=exp.Var(this=unit.strip())) if unit else None


def reversed_array(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """`reverse` of a string or an array."""
    subject = binder.bind(node.this)
    if subject.type.element is not None:
        return binder.call("array_reverse", [subject], subject.type, node)
    refuse_binary(binder, node, "reverse", [subject])
    return binder.call("reverse", [cast(binder.context, node, subject, STRING)], STRING, node)


HANDLERS: dict[type, Handler] = {
    exp.ArraySort: _sorted,
    exp.ArrayToString: _joined,
    exp.Flatten: _flattened,
    exp.GenerateSeries: _sequence,
    exp.Reverse: reversed_array,
}
SPECIAL: dict[str, Special] = {
    **{name: _listed(name) for name in _TAKES},
    "array_repeat": _repeated,
    "split": _split,
    "string_split": _split,
    "str_split": _split,
}
NODES: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.ArrayAppend: ("array_append", ("this", "expression")),
    exp.ArrayCompact: ("array_compact", ("this",)),
    exp.ArrayDistinct: ("array_distinct", ("this",)),
    exp.ArrayExcept: ("array_except", ("this", "expression")),
    exp.ArrayIntersect: ("array_intersect", ("expressions",)),
    exp.ArrayMax: ("array_max", ("this",)),
    exp.ArrayMin: ("array_min", ("this",)),
    exp.ArrayPosition: ("array_position", ("this", "expression")),
    exp.ArrayPrepend: ("array_prepend", ("this", "expression")),
    exp.ArrayRemove: ("array_remove", ("this", "expression")),
    exp.ArraySlice: ("slice", ("this", "start", "end")),
    exp.RegexpSplit: ("split", ("this", "expression", "limit")),
    exp.Split: ("split", ("this", "expression")),
    exp.StringToArray: ("split", ("this", "expression")),
}
