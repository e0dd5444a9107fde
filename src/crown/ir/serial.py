"""Plan <-> JSON, exactly as `crates/crown-kernel/src/plan.rs` reads it.

Every dataclass becomes an object with its fields by name; a stage also says its `kind`. Optional fields that are None
are left out. The decoder follows the type hints of the dataclasses, so a field added there needs no change here.
"""

from __future__ import annotations

import json
import math
import types
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from crown.errors import PlanError
from crown.ir import expression as expressions
from crown.ir import plan as model
from crown.types import DataType

STAGE_KINDS: dict[str, type] = {
    "tree": model.TreeStage,
    "bag": model.BagStage,
    "map": model.MapStage,
    "aggregate": model.AggregateStage,
    "distinct": model.DistinctStage,
    "materialize": model.MaterializeStage,
    "set_operation": model.SetOperationStage,
    "top": model.TopStage,
    "values": model.ValuesStage,
    "window": model.WindowStage,
    "recursion": model.RecursionStage,
}
_KIND_OF_STAGE = {stage: kind for kind, stage in STAGE_KINDS.items()}
_EXPRESSIONS = (expressions.Column, expressions.Literal, expressions.Call)


def to_json(plan: model.Plan, *, indent: int | None = None) -> str:
    """Return the plan as JSON text.

    >>> plan = model.Plan("SELECT 1", (), (), (), bag=False)
    >>> from_json(to_json(plan)) == plan
    True
    """
    try:
        return json.dumps(encode(plan), indent=indent, allow_nan=False)
    except RecursionError:
        raise _too_deep() from None


def from_json(text: str) -> model.Plan:
    """Return the plan that `to_json` wrote; anything else is a `PlanError`."""
    try:
        data = json.loads(text)
        _check_version(data)
        plan = decode(model.Plan, data)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as problem:
        raise PlanError(
            f"this is not the JSON form of a plan: {problem}",
            code="CROWN-PLAN-JSON",
            hint="write plans with crown.plan.to_json",
        ) from problem
    except RecursionError:
        raise _too_deep() from None
    assert isinstance(plan, model.Plan)
    return plan


def _check_version(data: Any) -> None:
    found = data.get("version") if isinstance(data, dict) else None
    if isinstance(found, int) and found != model.VERSION:
        raise PlanError(
            f"the plan has version {found}; this version of Crown reads {model.VERSION}",
            code="CROWN-PLAN-VERSION",
            hint="use the version of Crown that wrote it" if found > model.VERSION else "plan the query again",
        )


def _too_deep() -> PlanError:
    return PlanError(
        "an expression of the query is nested too deeply",
        code="CROWN-PLAN-DEPTH",
        reason="the depth of calls inside an expression is limited",
        hint="split the expression over subqueries",
    )


def encode(value: Any) -> Any:
    """Return `value` (a dataclass, a tuple or plain data) as JSON data."""
    if isinstance(value, _EXPRESSIONS):
        return expressions.to_json(value)
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if not (names := _fields(value.__class__)):
        return value
    kind = _KIND_OF_STAGE.get(type(value))
    found = {} if kind is None else {"kind": kind}
    for name, optional in names:
        part = getattr(value, name)
        if not optional or part is not None:
            found[name] = encode(part)
    return found


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, bool], ...]:
    """The fields of a dataclass, and whether each is left out where it is None."""
    return tuple((field.name, bool(field.metadata)) for field in fields(kind)) if is_dataclass(kind) else ()


@cache
def _hints(dataclass: type) -> dict[str, Any]:
    return get_type_hints(dataclass)


@cache
def _defaults(dataclass: type) -> frozenset[str]:
    return frozenset(field.name for field in fields(dataclass) if field.default is not MISSING)


def decode(hint: Any, data: Any) -> Any:
    """`data` as a value of the type `hint`; raises ValueError or TypeError where it does not fit."""
    if is_dataclass(hint):
        assert isinstance(hint, type)
        if not isinstance(data, dict):
            raise ValueError(f"{hint.__name__} must be an object")
        # A plan that was written before a field was added has its default.
        known = {name: of for name, of in _hints(hint).items() if name in data or name not in _defaults(hint)}
        return hint(**{name: decode(of, data[name]) for name, of in known.items()})
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _decode_union(arguments, data)
    if origin is tuple:
        return _decode_tuple(arguments, data)
    if origin is Literal:
        if data not in arguments:
            raise ValueError(f"{data!r} is not one of {', '.join(map(repr, arguments))}")
        return data
    return _decode_plain(hint, data)


def _decode_union(members: tuple[Any, ...], data: Any) -> Any:
    """Return a value or None, an expression, a word of several lists of words, or a stage."""
    if data is None and type(None) in members:
        return None
    if expressions.Column in members:
        return expressions.from_json(data)
    if type(None) in members:
        (inner,) = (member for member in members if member is not type(None))
        return decode(inner, data)
    if all(get_origin(member) is Literal for member in members):
        return decode(Literal[tuple(word for member in members for word in get_args(member))], data)
    return decode(STAGE_KINDS[data["kind"]], data)


def _decode_tuple(items: tuple[Any, ...], data: Any) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise ValueError(f"{data!r} is not a list")
    if len(items) == 2 and items[1] is Ellipsis:
        return tuple(decode(items[0], item) for item in data)
    return tuple(decode(hint, item) for hint, item in zip(items, data, strict=True))


def _decode_plain(hint: Any, data: Any) -> Any:
    if hint is DataType:
        return DataType.parse(data)
    if hint is float:
        if isinstance(data, bool) or not isinstance(data, int | float) or not math.isfinite(data):
            raise ValueError(f"{data!r} is not a finite number")
        return float(data)
    if not isinstance(data, hint) or (hint is int and isinstance(data, bool)):
        raise ValueError(f"{data!r} is not {hint.__name__}")
    return data
