"""Functions that take a function, such as `transform(a, x -> x + 1)`.

The body of the inner function becomes a literal: the JSON of its expression, whose columns are numbered. The first ones
are its parameters, the others what it reads from the row, which are arguments of the call
(`crates/crown-kernel/src/expression/lambda.rs`). So the rest of Crown sees a call like any other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from crown import types
from crown.ir.expression import Call, Column, Expression, Literal, columns_of, to_json
from crown.ir.functions import declared_name
from crown.sql.scalar.arrays import as_array
from crown.sql.scalar.binding import Handler, ScalarBinder, Special
from crown.sql.scalar.coerce import boolean, cast
from crown.types import BOOLEAN, INT32, STRING, DataType
from crown.wording import counted

# A body in a body is JSON in JSON, which doubles its length.
_DEEPEST = 6
_PER_ROW = (exp.AggFunc, exp.Window, exp.Query)


@dataclass(frozen=True)
class _Body:
    expression: Expression
    parameters: Mapping[str, int]


def _bound(
    binder: ScalarBinder, node: exp.Expr, name: str, function: exp.Expr | None, given: Sequence[DataType], least: int
) -> _Body:
    """Bind the body of a function with `least` or more parameters, of the types `given`."""
    context = binder.context
    if not isinstance(function, exp.Lambda):
        context.fail(node, "UNKNOWN-FUNCTION", f"{name} takes a function", hint=f"write {name}(a, x -> x + 1)")
    names = [parameter.name.lower() for parameter in function.expressions]
    if not least <= len(names) <= len(given) or len(set(names)) < len(names):
        wanted = counted(least, "parameter") if least == len(given) else f"{least} or {len(given)} parameters"
        context.fail(function, "UNKNOWN-FUNCTION", f"the function that {name} takes has {wanted}")
    if len(names) > 1 and least == 1 and not context.is_spark:
        context.fail(function, "UNKNOWN-FUNCTION", "positions are only supported in Spark's dialect",
                     reason="they count from 0 or from 1, depending on the dialect")  # fmt: skip
    if len(binder.parameters) >= _DEEPEST:
        context.fail(function, "UNKNOWN-FUNCTION", f"more than {_DEEPEST} functions inside each other")
    for part in function.this.find_all(*_PER_ROW):
        if any(_reads(part, name) for name in names):
            context.fail(
                part,
                "SUBQUERY-PLACE",
                "an aggregate, window function or subquery can't read a parameter of a function",
                reason="it is computed once for the row, before the function is called",
                hint="EXPLODE the array and compute with its rows",
            )
    depth = len(binder.parameters)
    columns = [Column(f"\0{depth}.{at}", type_) for at, type_ in enumerate(given)]
    inner = binder.with_parameters(dict(zip(names, columns, strict=False)))
    return _Body(inner.bind(function.this), {column.name: at for at, column in enumerate(columns)})


def _reads(part: exp.Expr, parameter: str) -> bool:
    """sqlglot has a bare identifier where a body reads a parameter."""
    return any(
        identifier.name.lower() == parameter and isinstance(identifier.parent, exp.Expr)
        and not isinstance(identifier.parent, exp.Column | exp.Alias | exp.TableAlias | exp.Table)
        for identifier in part.find_all(exp.Identifier)
    )  # fmt: skip


def _call(
    binder: ScalarBinder, node: exp.Expr, function: str, body: _Body, subjects: list[Expression], type_: DataType
) -> Expression:
    captured: dict[Expression, int] = {}

    def numbered(part: Expression) -> Expression:
        own = any(name in body.parameters for name in columns_of(part))
        if isinstance(part, Column) and own:
            return Column(str(body.parameters[part.name]), part.type)
        declared = declared_name(part.function) if isinstance(part, Call) else None
        if declared and own:
            binder.context.fail(
                node,
                "UNKNOWN-FUNCTION",
                f"the Python function {declared} can't be called for each element of an array",
                reason="all its calls of a batch are made together, before arrays are read",
                hint="declare a Python function that takes the whole array, or EXPLODE it",
            )
        alone = isinstance(part, Call) and part.function == "single_row"
        if isinstance(part, Column) or ((declared or alone) and not own):
            place = captured.setdefault(part, len(body.parameters) + len(captured))
            return Column(str(place), part.type)
        if isinstance(part, Call):
            return replace(part, arguments=tuple(map(numbered, part.arguments)))
        return part

    text = json.dumps(to_json(numbered(body.expression)), separators=(",", ":"))
    return binder.call(function, [Literal(text, STRING), *subjects, *captured], type_, node)


def _element(array: Expression) -> DataType:
    assert array.type.element is not None
    return array.type.element


def _typed(body: _Body) -> _Body:
    """A body that is only NULL returns strings, as an array of NULLs has them."""
    return body if body.expression.type != types.NULL else replace(body, expression=Literal(None, STRING))


def _transform(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    array = as_array(binder, _argument(binder, node, "transform", parts, 2), "transform")
    body = _typed(_bound(binder, node, "transform", parts[1], [_element(array), INT32], 1))
    return _call(binder, node, "transform", body, [array], types.array_of(body.expression.type))


def _filter(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    array = as_array(binder, _argument(binder, node, "filter", parts, 2), "filter")
    body = _bound(binder, node, "filter", parts[1], [_element(array), INT32], 1)
    return _call(binder, node, "array_filter", _condition(binder, node, body), [array], array.type)


def _condition(binder: ScalarBinder, node: exp.Expr, body: _Body) -> _Body:
    return replace(body, expression=boolean(binder.context, node, body.expression))


_NOT_IN_SPARK = {"any_match": "exists", "all_match": "forall"}


def _tested(name: str, function: str) -> Special:
    def bind(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
        if binder.context.is_spark and name in _NOT_IN_SPARK:
            binder.context.fail(
                node,
                "UNKNOWN-FUNCTION",
                f"Spark has no function {name}",
                hint=f"write {_NOT_IN_SPARK[name]}, or name the dialect of the query",
            )
        array = as_array(binder, _argument(binder, node, name, parts, 2), name)
        body = _condition(binder, node, _bound(binder, node, name, parts[1], [_element(array)], 1))
        return _call(binder, node, function, body, [array], BOOLEAN)

    return bind


def _zipped(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    arrays = [as_array(binder, _argument(binder, node, "zip_with", parts, 3, at), "zip_with") for at in range(2)]
    body = _typed(_bound(binder, node, "zip_with", parts[2], [_element(array) for array in arrays], 2))
    return _call(binder, node, "zip_with", body, arrays, types.array_of(body.expression.type))


def _reduced(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """`aggregate(a, start, merge, finish)`; `finish` is applied to an array of the one result."""
    array, start = as_array(binder, node.this, "aggregate"), binder.bind(node.args["initial"])
    start = Literal(None, STRING) if start.type == types.NULL else start
    body = _bound(binder, node, "aggregate", node.args.get("merge"), [start.type, _element(array)], 2)
    if body.expression.type == types.NULL:
        body = replace(body, expression=cast(binder.context, node, body.expression, start.type))
    if body.expression.type != start.type:
        binder.context.fail(
            node,
            "TYPE-CLASH",
            f"aggregate starts with {start.type.shown}, but its function returns {body.expression.type.shown}",
            hint=f"cast the start: CAST(... AS {body.expression.type.shown})",
        )
    found = _call(binder, node, "reduce", body, [start, array], start.type)
    finish = node.args.get("finish")
    if finish is None:
        return found
    if isinstance(finish, exp.Lambda) and len(finish.expressions) > 1:  # `transform` would pass a position
        binder.context.fail(finish, "UNKNOWN-FUNCTION", "the last function that aggregate takes has 1 parameter")
    last = _typed(_bound(binder, node, "aggregate", finish, [start.type, INT32], 1))
    single = binder.call("make_array", [found], types.array_of(start.type), node)
    finished = _call(binder, node, "transform", last, [single], types.array_of(last.expression.type))
    one = binder.call("get_item", [finished, Literal(0, INT32)], last.expression.type, node)
    absent = binder.call("is_null", [array], BOOLEAN, node)
    return binder.call("case", [absent, Literal(None, one.type), one], one.type, node)


def _argument(
    binder: ScalarBinder, node: exp.Expr, name: str, parts: Sequence[exp.Expr], count: int, at: int = 0
) -> exp.Expr:
    if len(parts) != count:
        binder.context.fail(node, "UNKNOWN-FUNCTION", f"{name} takes {counted(count, 'argument')}")
    return parts[at]


def exists(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """`exists(a, x -> x > 1)`, which sqlglot parses like EXISTS with a subquery."""
    return SPECIAL["exists"](binder, node, [node.this, node.expression])


def _by_parts(name: str) -> Handler:
    return lambda binder, node: SPECIAL[name](binder, node, [node.this, node.expression])


SPECIAL: dict[str, Special] = {
    "transform": _transform,
    "list_apply": _transform,
    "filter": _filter,
    "exists": _tested("exists", "array_exists"),
    "any_match": _tested("any_match", "array_exists"),
    "forall": _tested("forall", "array_forall"),
    "all_match": _tested("all_match", "array_forall"),
    "zip_with": _zipped,
}
HANDLERS: dict[type, Handler] = {
    exp.Transform: _by_parts("transform"),
    exp.ArrayFilter: _by_parts("filter"),
    exp.Reduce: _reduced,
}
