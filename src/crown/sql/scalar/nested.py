"""Arrays, structs and maps: constructing them and accessing their parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NoReturn, Protocol

from sqlglot import exp

from crown import types
from crown.ir.expression import Expression, Literal
from crown.sql.diagnose import written_name
from crown.sql.misspelt import nearest
from crown.sql.scalar.binding import Handler, ScalarBinder, Special
from crown.sql.scalar.coerce import cast, unify
from crown.sql.scalar.splits import SplitParts, split_of
from crown.types import BOOLEAN, INT32, INT64, STRING, DataType
from crown.wording import counted


def get_field(binder: ScalarBinder, node: exp.Expr, subject: Expression, name: str) -> Expression:
    """Return a field of a struct."""
    fields = subject.type.fields
    if not fields:
        binder.context.fail(
            node, "UNKNOWN-COLUMN", f"{subject.type.shown} has no field {name}", reason="only a struct has fields"
        )
    found = [position for position, (field, _) in enumerate(fields) if field.lower() == name.lower()]
    if not found:
        known = [field for field, _ in fields]
        binder.context.fail(
            node,
            "UNKNOWN-COLUMN",
            f"the struct has no field {name}",
            hint=nearest(name, known) or f"it has {', '.join(known)}",
        )
    if len(found) > 1:
        binder.context.fail(
            node,
            "AMBIGUOUS-COLUMN",
            f"the struct has {counted(len(found), 'field')} called {name}",
            reason="names of fields are compared without case",
            hint="rename one of the fields",
        )
    position = found[0]
    return binder.call("get_field", [subject, Literal(position, INT32)], fields[position][1], node)


def _dot(binder: ScalarBinder, node: exp.Expr) -> Expression:
    return get_field(binder, node, binder.bind(node.this), node.expression.name)


def _bracket(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """`a[0]`, `m['k']`, `s['field']`, `element_at(a, 1)` and `try_element_at(a, 1)`."""
    context = binder.context
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        context.fail(node, "UNKNOWN-FUNCTION", "only one element can be taken out of an array", hint="write a[0]")
    made = split_of(node.this)
    if made is not None:
        return _part(binder, node, made)
    subject, index = binder.bind(node.this), node.expressions[0]
    if subject.type.entry is not None:
        return _entry(binder, node, subject, binder.bind(index))
    if subject.type.fields and isinstance(index, exp.Literal) and index.args.get("is_string"):
        return get_field(binder, node, subject, index.name)
    if subject.type.element is None:
        context.fail(
            node,
            "TYPE-CLASH",
            f"{subject.type.shown} has no elements",
            hint="[] works on arrays, maps and structs only",
        )
    position = cast(context, node, binder.bind(index), INT64)
    # Spark raises an error where there is no such element; other dialects return NULL.
    required = context.is_spark and not node.args.get("safe")
    if node.args.get("offset") == 1:
        return _element_at(
            binder, node, position, partial(_item, binder, node, subject), _length(binder, node, subject)
        )
    return _item(binder, node, subject, position, required=required)


def _part(binder: ScalarBinder, node: exp.Expr, made: exp.Expr) -> Expression:
    """`split(s, ',')[0]` and the like."""
    parts = SplitParts(binder, made)
    position = cast(binder.context, node, binder.bind(node.expressions[0]), INT64)
    required = binder.context.is_spark and not node.args.get("safe")
    if node.args.get("offset") == 1:
        return _element_at(binder, node, position, parts.part, parts.count)
    return parts.part(position, required=required)


def _item(
    binder: ScalarBinder, node: exp.Expr, subject: Expression, index: Expression, *, required: bool
) -> Expression:
    element = subject.type.element
    assert element is not None
    return binder.call("required_item" if required else "get_item", [subject, index], element, node)


def _length(binder: ScalarBinder, node: exp.Expr, subject: Expression) -> Expression:
    return cast(binder.context, node, binder.call("size", [subject], INT32, node), INT64)


class _Taken(Protocol):
    def __call__(self, index: Expression, *, required: bool) -> Expression: ...


def _element_at(
    binder: ScalarBinder, node: exp.Expr, position: Expression, taken: _Taken, size: Expression
) -> Expression:
    """Counts from 1, and from the end if it is negative. In Spark, 0 is an error, with TRY_ELEMENT_AT too."""
    safe = bool(node.args.get("safe"))
    found = taken(_from_zero(binder, node, position, size), required=binder.context.is_spark and not safe)
    if not binder.context.is_spark or not safe:
        return found
    zero = binder.call("eq", [position, Literal(0, INT64)], BOOLEAN, node)
    return binder.call("case", [zero, taken(Literal(-1, INT64), required=True), found], found.type, node)


def _from_zero(binder: ScalarBinder, node: exp.Expr, position: Expression, size: Expression) -> Expression:
    ahead = binder.call("subtract", [position, Literal(1, INT64)], INT64, node)
    behind = binder.call("add", [size, position], INT64, node)
    negative = binder.call("lt", [position, Literal(0, INT64)], BOOLEAN, node)
    return binder.call("case", [negative, behind, ahead], INT64, node)


def _entry(binder: ScalarBinder, node: exp.Expr, subject: Expression, key: Expression) -> Expression:
    assert subject.type.entry is not None
    key_type, value_type = subject.type.entry
    return binder.call("map_get", [subject, cast(binder.context, node, key, key_type)], value_type, node)


def _size(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    made = split_of(parts[0]) if len(parts) == 1 else None
    if made is not None:
        return cast(binder.context, node, SplitParts(binder, made).count, INT32)
    (subject,) = _arguments(binder, node, parts, 1)
    if subject.type.element is None and subject.type.entry is None:
        _refuse(binder, node, "an array or a map", subject)
    return binder.call("size", [subject], INT32, node)


def _sized(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """`array_size` takes an array alone, where `size` also takes a map; both are the same to sqlglot."""
    if (written_name(binder.context.sql, node) or "").lower() == "array_size" and split_of(node.this) is None:
        subject = binder.bind(node.this)
        if subject.type.element is None:
            _refuse(binder, node, "an array", subject)
    return _size(binder, node, [node.this])


def _contains(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    subject, value = _arguments(binder, node, parts, 2)
    if subject.type.element is None:
        _refuse(binder, node, "an array", subject)
    wanted = cast(binder.context, node, value, subject.type.element)
    return binder.call("array_contains", [subject, wanted], BOOLEAN, node)


def _contains_key(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    subject, key = _arguments(binder, node, parts, 2)
    if subject.type.entry is None:
        _refuse(binder, node, "a map", subject)
    key_type = subject.type.entry[0]
    keys = binder.call("map_keys", [subject], types.array_of(key_type), node)
    return binder.call("array_contains", [keys, cast(binder.context, node, key, key_type)], BOOLEAN, node)


def _keys(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    (subject,) = _arguments(binder, node, parts, 1)
    if subject.type.entry is None:
        _refuse(binder, node, "a map", subject)
    return binder.call("map_keys", [subject], types.array_of(subject.type.entry[0]), node)


def _values(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    (subject,) = _arguments(binder, node, parts, 1)
    if subject.type.entry is None:
        _refuse(binder, node, "a map", subject)
    return binder.call("map_values", [subject], types.array_of(subject.type.entry[1]), node)


def _get(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """`get(a, 0)`: NULL where there is no such element."""
    subject, index = _arguments(binder, node, parts, 2)
    if subject.type.element is None:
        _refuse(binder, node, "an array", subject)
    return binder.call("get_item", [subject, cast(binder.context, node, index, INT64)], subject.type.element, node)


def _array(binder: ScalarBinder, node: exp.Expr) -> Expression:
    for part in node.expressions:
        # Other dialects collect the rows of the query. Spark takes a scalar subquery, with its own parentheses.
        if isinstance(part, exp.Query) and not (binder.context.is_spark and isinstance(part, exp.Subquery)):
            binder.context.fail(
                part,
                "SUBQUERY-PLACE",
                "ARRAY of a query is not supported",
                hint="write (SELECT ARRAY_AGG(x ORDER BY ...) FROM ...), which leaves out NULLs",
            )
    elements = [binder.bind(part) for part in node.expressions]
    values = unify(binder.context, node, elements, "this array") if elements else []
    type_ = types.array_of(values[0].type if values else STRING)
    return binder.call("make_array", values, type_, node)


def _map(binder: ScalarBinder, node: exp.Expr) -> Expression:
    keys, values = node.args.get("keys"), node.args.get("values")
    if not isinstance(keys, exp.Array) or not isinstance(values, exp.Array) or not keys.expressions:
        binder.context.fail(node, "UNKNOWN-FUNCTION", "a map must list its keys and values", hint="map('a', 1, 'b', 2)")
    bound_keys = unify(binder.context, node, [binder.bind(k) for k in keys.expressions], "the keys of this map")
    bound = unify(binder.context, node, [binder.bind(v) for v in values.expressions], "the values of this map")
    pairs = [part for pair in zip(bound_keys, bound, strict=True) for part in pair]
    return binder.call("make_map", pairs, types.map_of(bound_keys[0].type, bound[0].type), node)


def _struct(binder: ScalarBinder, node: exp.Expr) -> Expression:
    fields: list[tuple[str, Expression]] = []
    for position, part in enumerate(node.expressions):
        named = isinstance(part, exp.PropertyEQ | exp.Alias)
        value = binder.bind((part.expression if isinstance(part, exp.PropertyEQ) else part.this) if named else part)
        name = (part.this.name if isinstance(part, exp.PropertyEQ) else part.alias) if named else ""
        if not name and isinstance(part, exp.Column):
            name = part.name
        value = Literal(None, STRING) if value.type == types.NULL else value
        fields.append((name or f"col{position + 1}", value))
    if not fields or len({name.lower() for name, _ in fields}) != len(fields):
        binder.context.fail(
            node, "TYPE-CLASH", "a struct needs fields of different names", hint="named_struct('a', 1, 'b', 2)"
        )
    type_ = types.struct_of([(name, value.type) for name, value in fields])
    return binder.call("make_struct", [value for _, value in fields], type_, node)


def _json(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """`get_json_object(text, '$.a[0]')`, `j -> 'a'` and `j ->> 'a'`."""
    path = node.expression
    if not isinstance(path, exp.JSONPath):
        binder.context.fail(node, "PATTERN", "the path must be a literal such as '$.a.b[0]'")
    steps: list[str] = []
    for part in path.expressions[1:]:
        known = isinstance(part, exp.JSONPathKey | exp.JSONPathSubscript) and isinstance(part.this, str | int)
        if not known or (isinstance(part.this, int) and part.this < 0):
            binder.context.fail(
                node, "PATTERN", "a JSON path consists of names and positions", hint="write '$.name[0].other'"
            )
        steps.append(f"[{part.this}]" if isinstance(part.this, int) else f".{part.this}")
    # -> returns JSON, ->> text; Snowflake's v:name is cast to what it is taken for.
    cast_to_text = bool(node.args.get("variant_extract")) and isinstance(node.parent, exp.Cast)
    kept = isinstance(node, exp.JSONExtract) and not cast_to_text
    subject = binder.string(node.this)
    arguments = [subject, Literal("\0".join(steps), STRING)]
    return binder.call("json_value" if kept else "json_text", arguments, STRING, node)


def _parse_json(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """JSON is stored as text."""
    return binder.string(node.this)


def _arguments(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr], count: int) -> list[Expression]:
    if len(parts) != count:
        binder.context.fail(node, "UNKNOWN-FUNCTION", f"this function takes {counted(count, 'argument')}")
    return [binder.bind(part) for part in parts]


def _refuse(binder: ScalarBinder, node: exp.Expr, wanted: str, found: Expression) -> NoReturn:
    binder.context.fail(node, "TYPE-CLASH", f"expected {wanted}, not {_shown(found.type)}")


def _shown(type_: DataType) -> str:
    return type_.shown


def _listed(rule: Special, *keys: str) -> Handler:
    return lambda binder, node: rule(binder, node, [node.args[key] for key in keys])


HANDLERS: dict[type, Handler] = {
    exp.Bracket: _bracket,
    exp.Dot: _dot,
    exp.Array: _array,
    exp.VarMap: _map,
    exp.Map: _map,
    exp.Struct: _struct,
    exp.ArraySize: _sized,
    exp.ArrayContains: _listed(_contains, "this", "expression"),
    exp.MapKeys: _listed(_keys, "this"),
    exp.MapContainsKey: _listed(_contains_key, "this", "key"),
    exp.ParseJSON: _parse_json,
    exp.JSONExtract: _json,
    exp.JSONExtractScalar: _json,
}
SPECIAL: dict[str, Special] = {
    "size": _size,
    "cardinality": _size,
    "array_size": _size,
    "array_length": _size,
    "list_contains": _contains,
    "map_keys": _keys,
    "map_values": _values,
    "map_contains_key": _contains_key,
    "get": _get,
}
