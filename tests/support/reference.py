"""A `Query` evaluated naively, by nested loops over Python rows: what `crown.ir.query` says it means, no more.

Compared with DuckDB's answer for the SQL text, it judges the SQL layer alone, without planner and kernel.
"""

from __future__ import annotations

import datetime
import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.functions import CALL, declared_name, is_strict
from crown.ir.plan import Atom
from crown.ir.query import (
    Aggregate,
    Body,
    Condition,
    Conjunction,
    OptionalAtom,
    Order,
    Query,
    Recursion,
    Select,
    SetOperation,
    Top,
    Values,
    Windowed,
)
from crown.ir.tables import Table
from crown.sql.scalar import constants
from tests.support.python_functions import FUNCTIONS

Row = dict[str, Any]
Tables = Mapping[str, Sequence[Row]]


def evaluate(query: Query, tables: Tables) -> list[tuple[Any, ...]]:
    """The rows of the query over `tables` (rows as dicts by column name)."""
    sources: dict[str, Sequence[Row]] = {t.name: reduced(t, tables[t.name]) for t in query.tables}
    for name, body in query.nested:
        sources[name] = _recursion(name, body, sources) if isinstance(body, Recursion) else _body(body, sources)
    return [tuple(row.values()) for row in _body(query.body, sources)]


def reduced(table: Table, rows: Sequence[Row]) -> Sequence[Row]:
    """The rows with the table's columns only."""
    return [{c.name: row[c.name] for c in table.columns} for row in rows]


def _body(body: Body, sources: Tables) -> list[Row]:
    if isinstance(body, Select):
        return _select(body, sources)
    if isinstance(body, SetOperation):
        return _set_operation(body, sources)
    if isinstance(body, Values):
        names = [column.name for column in body.columns]
        return [dict(zip(names, (value(e, {}) for e in row), strict=True)) for row in body.rows]
    assert not isinstance(body, Recursion), "its step reads it by name"
    rows = sorted(_body(body.input, sources), key=_order_key(body.order))
    if isinstance(body, Windowed):
        raise NotImplementedError("DuckDB is the only judge of window functions")
    kept = rows[body.offset : body.offset + body.limit]
    return [dict(list(row.items())[: body.shown]) for row in kept]


def _recursion(name: str, body: Recursion, sources: Tables) -> list[Row]:
    """Round by round, each over the rows that the one before has added."""
    names = _names(body.base)
    rows: list[Row] = []
    added = _body(body.base, sources)
    while added:
        if not body.all:
            known = {tuple(row.values()) for row in rows}
            new = dict.fromkeys(tuple(row.values()) for row in added)
            added = [dict(zip(names, row, strict=True)) for row in new if row not in known]
        rows += added
        inside = {**sources, name: added}
        for inner, nested in body.nested:
            inside[inner] = _body(nested, inside)
        added = [dict(zip(names, row.values(), strict=True)) for row in _body(body.step, inside)]
    return rows


def _order_key(order: Sequence[Order]) -> Callable[[Row], Any]:
    def compare(left: Row, right: Row) -> int:
        for part in order:
            a, b = value(part.expression, left), value(part.expression, right)
            if a is None or b is None:
                if (a is None) != (b is None):
                    return -1 if (a is None) == part.nulls_first else 1
                continue
            if a != b:
                return -1 if (a < b) != part.descending else 1
        return 0

    return functools.cmp_to_key(compare)


def _set_operation(body: SetOperation, sources: Tables) -> list[Row]:
    left_rows = _body(body.left, sources)
    names = _names(body)
    left = Counter(tuple(r.values()) for r in left_rows)
    right = Counter(tuple(r.values()) for r in _body(body.right, sources))
    if body.operator == "union":
        result = left + right if body.all else Counter(dict.fromkeys([*left, *right], 1))
    elif body.operator == "except":
        result = left - right if body.all else Counter({r: 1 for r in left if not right[r]})
    else:
        result = left & right if body.all else Counter({r: 1 for r in left if right[r]})
    return [dict(zip(names, row, strict=True)) for row in result.elements()]


def _names(body: Body) -> list[str]:
    if isinstance(body, SetOperation):
        return _names(body.left)
    if isinstance(body, Select):
        return [o.name for o in body.outputs]
    if isinstance(body, Values):
        return [column.name for column in body.columns]
    assert isinstance(body, Top)
    return _names(body.input)[: body.shown]


def _select(select: Select, sources: Tables) -> list[Row]:
    rows = [row for branch in select.branches for row in _conjunction(branch, sources)]
    if select.group_by is not None:
        rows = list(_groups(select, rows))
    if select.having is not None:
        rows = [row for row in rows if value(select.having, row) is True]
    shown = [{o.name: value(o.expression, row) for o in select.outputs} for row in rows]
    if select.distinct:
        shown = [dict(items) for items in dict.fromkeys(tuple(row.items()) for row in shown)]
    return shown


def _groups(select: Select, rows: list[Row]) -> Iterator[Row]:
    assert select.group_by is not None
    groups: dict[tuple[Any, ...], list[Row]] = {} if select.group_by else {(): []}
    for row in rows:
        groups.setdefault(tuple(value(g.expression, row) for g in select.group_by), []).append(row)
    for key, members in groups.items():
        result = dict(zip((g.name for g in select.group_by), key, strict=True))
        yield result | {a.name: _aggregate(a, members) for a in select.aggregates}


def _aggregate(aggregate: Aggregate, rows: list[Row]) -> Any:
    if aggregate.argument is None:
        return len(rows)
    values = [v for row in rows if (v := value(aggregate.argument, row)) is not None]
    if aggregate.distinct:
        values = list(dict.fromkeys(values))
    if aggregate.function == "count":
        return len(values)
    if not values:
        return None
    if aggregate.function == "sum":
        return _typed(sum(values), aggregate.type)
    if aggregate.function == "avg":
        return _typed(sum(values) / len(values), aggregate.type)
    return min(values) if aggregate.function == "min" else max(values)


def _conjunction(conjunction: Conjunction, sources: Tables) -> Iterator[Row]:
    assert {v.name for v in conjunction.variables} == _variables(conjunction)
    for row in _joined(conjunction.atoms, sources, {}):
        if not all(_holds(c, row, sources) for c in conjunction.conditions):
            continue
        for padded in _with_optional(conjunction.optional, sources, row):
            for variable in conjunction.variables:
                if variable.name in padded and not variable.nullable:
                    assert padded[variable.name] is not None, f"{variable.name} is said to be never NULL"
            if all(value(r, padded) is True for r in conjunction.residual):
                yield {c.name: value(c.expression, padded) for c in conjunction.columns}


def _with_optional(optional: Sequence[OptionalAtom], sources: Tables, row: Row) -> Iterator[Row]:
    """The row beside each match of the optional atoms, or their NULLs."""
    if not optional:
        yield row
        return
    first, *rest = optional
    matches = list(_joined([first.atom], sources, row)) or [dict.fromkeys(first.atom.variables) | row]
    for match in matches:
        yield from _with_optional([*first.optional, *rest], sources, match)


def _variables(conjunction: Conjunction) -> set[str]:
    found = {v for a in conjunction.atoms for v in a.variables}
    waiting = list(conjunction.conditions)
    while waiting:
        condition = waiting.pop()
        found |= {v for a in condition.atoms for v in a.variables}
        waiting += condition.conditions
    outer = list(conjunction.optional)
    while outer:
        one = outer.pop()
        found |= set(one.atom.variables)
        outer += one.optional
    return found


def _holds(condition: Condition, row: Row, sources: Tables) -> bool:
    found = any(
        all(_holds(c, inner, sources) for c in condition.conditions) for inner in _joined(condition.atoms, sources, row)
    )
    return found != condition.negated


def _joined(atoms: Sequence[Atom], sources: Tables, outer: Row) -> Iterator[Row]:
    """Rows over the atoms' variables that agree with `outer`. NULL equals NULL here, as in the kernel."""
    if not atoms:
        yield dict(outer)
        return
    for bound in _atom_rows(atoms[0], sources):
        if all(name not in outer or outer[name] == v for name, v in bound.items()):
            yield from _joined(atoms[1:], sources, {**outer, **bound})


def _atom_rows(atom: Atom, sources: Tables) -> Iterator[Row]:
    for row in sources[atom.source]:
        if atom.filter is not None and value(atom.filter, row) is not True:
            continue
        bound: Row = {}
        for binding in atom.bindings:
            computed = value(binding.expression, row)
            if bound.setdefault(binding.variable, computed) != computed:
                break
        else:
            if all(bound[v] is not None for v in atom.not_null):
                yield bound


def value(expression: Expression, row: Row) -> Any:
    """The value of an expression in a row; NULL is None."""
    if isinstance(expression, Column):
        return row[expression.name]
    if isinstance(expression, Literal):
        return _literal(expression)
    return _call(expression, row)


def _literal(literal: Literal) -> Any:
    content = literal.value
    if content is None:
        return None
    if literal.type == "date":
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=int(content))
    if literal.type.startswith("timestamp"):
        return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=int(content))
    return Decimal(str(content)) if literal.type.startswith("decimal") else content


def _call(call: Call, row: Row) -> Any:
    function, arguments = call.function, call.arguments
    _check_types(call)
    if function == "and":
        values = [value(a, row) for a in arguments]
        return False if False in values else None if None in values else True
    if function == "or":
        values = [value(a, row) for a in arguments]
        return True if True in values else None if None in values else False
    if function == "case":
        for when, then in zip(arguments[:-1:2], arguments[1:-1:2], strict=True):
            if value(when, row) is True:
                return value(then, row)
        return value(arguments[-1], row)
    values = [value(a, row) for a in arguments]
    if (name := declared_name(function)) is not None:
        return None if function.startswith(CALL) and None in values else FUNCTIONS[name](*values)
    if function == "is_null":
        return values[0] is None
    if function == "is_not_distinct":
        return values[0] == values[1]
    if function == "coalesce":
        return next((v for v in values if v is not None), None)
    if function in ("greatest", "least"):
        present = [v for v in values if v is not None]
        return (max if function == "greatest" else min)(present) if present else None
    if function == "in":
        if values[0] is None:
            return None
        return True if values[0] in values[1:] else None if None in values[1:] else False
    if is_strict(function) and None in values:
        return None
    if function not in _STRICT:
        return _by_kernel(call, values)
    return _STRICT[function](call, *values)


def _by_kernel(call: Call, values: Sequence[Any]) -> Any:
    """The functions that Spark judges (tests/spark/test_functions.py) are not written here again."""
    arguments = tuple(Literal(_plain(v), a.type) for v, a in zip(values, call.arguments, strict=True))
    return _literal(constants.evaluate(Call(call.function, arguments, call.type)))


def _plain(content: Any) -> Any:
    """The value as a plan's literal has it."""
    if isinstance(content, datetime.datetime):
        return round(
            (content.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)) / datetime.timedelta(microseconds=1)
        )
    if isinstance(content, datetime.date):
        return (content - datetime.date(1970, 1, 1)).days
    return str(content) if isinstance(content, Decimal) else content


def _check_types(call: Call) -> None:
    """The contract: comparisons and arithmetic have arguments of one type."""
    uniform = ("add", "subtract", "multiply", "divide", "modulo", "eq", "ne", "lt", "le", "gt", "ge")
    if call.function in uniform:
        kinds = {"decimal" if a.type.startswith("decimal") else a.type for a in call.arguments}
        assert len(kinds) == 1, call
    if call.function in ("coalesce", "greatest", "least"):
        assert {a.type for a in call.arguments} == {call.type}, call
    if call.function == "case":
        assert {a.type for a in (*call.arguments[1::2], call.arguments[-1])} == {call.type}, call


def _typed(result: Any, type_: str) -> Any:
    if type_.startswith("decimal"):
        scale = int(type_.split(",")[1].rstrip(")"))
        return Decimal(str(result)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    if type_.startswith("float"):
        return float(result)
    return result


def _cast(call: Call, source: Any) -> Any:
    target = call.type
    if target == "string":
        return str(source).lower() if isinstance(source, bool) else str(source)
    if target.startswith("int"):
        return int(source)
    if target == "boolean":
        return source.lower() == "true" if isinstance(source, str) else bool(source)
    if target == "date":
        if isinstance(source, str):
            return datetime.date.fromisoformat(source)
        return source.date() if isinstance(source, datetime.datetime) else source
    if target.startswith("timestamp"):
        if isinstance(source, str):
            return datetime.datetime.fromisoformat(source)
        return datetime.datetime(source.year, source.month, source.day) if type(source) is datetime.date else source
    return _typed(Decimal(str(source)), target)


def _like(call: Call, text: str, pattern: str) -> bool:
    tokens = re.findall(r"\\?.", pattern, re.DOTALL)
    parts = ["." if c == "_" else ".*" if c == "%" else re.escape(c[-1]) for c in tokens]
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def _substring(call: Call, text: str, start: int, length: int = 1 << 31) -> str:
    first = start - 1 if start > 0 else len(text) + start
    return text[max(0, first) : max(0, first + length)]


def _round(call: Call, number: Any, digits: int) -> Any:
    unit = Decimal(1).scaleb(-digits)
    return _of(
        call.type,
        (Decimal(repr(number) if isinstance(number, float) else number) / unit).quantize(Decimal(1), ROUND_HALF_UP)
        * unit,
    )


def _of(type_: str, number: Decimal) -> Any:
    return int(number) if type_.startswith("int") else _typed(number, type_)


def _truncate(call: Call, unit: str, moment: Any) -> Any:
    day = datetime.date(moment.year, moment.month, moment.day)
    fields = ["year", "month", "day", "hour", "minute", "second"]
    if unit == "week":
        day -= datetime.timedelta(days=day.weekday())
    elif unit == "quarter":
        day = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    elif unit in fields:
        kept = {name: getattr(moment, name) for name in fields[: fields.index(unit) + 1] if hasattr(moment, name)}
        return type(moment)(**({"month": 1, "day": 1} | kept))
    return day if call.type == "date" else datetime.datetime(day.year, day.month, day.day)


def _divide(call: Call, a: Any, b: Any) -> Any:
    return _typed(a / b, call.type) if b else None


def _modulo(call: Call, a: Any, b: Any) -> Any:
    return _typed(a - b * int(a / b), call.type) if b else None


_STRICT: dict[str, Callable[..., Any]] = {
    "add": lambda call, a, b: _typed(a + b, call.type),
    "subtract": lambda call, a, b: _typed(a - b, call.type),
    "multiply": lambda call, a, b: _typed(a * b, call.type),
    "divide": _divide,
    "modulo": _modulo,
    "negate": lambda call, a: -a,
    "abs": lambda call, a: abs(a),
    "eq": lambda call, a, b: a == b,
    "ne": lambda call, a, b: a != b,
    "lt": lambda call, a, b: a < b,
    "le": lambda call, a, b: a <= b,
    "gt": lambda call, a, b: a > b,
    "ge": lambda call, a, b: a >= b,
    "not": lambda call, a: not a,
    "cast": _cast,
    "like": _like,
    "upper": lambda call, a: a.upper(),
    "lower": lambda call, a: a.lower(),
    "trim": lambda call, a: a.strip(" "),
    "length": lambda call, a: len(a),
    "concat": lambda call, *parts: "".join(parts),
    "substring": _substring,
    "ltrim": lambda call, a: a.lstrip(" "),
    "rtrim": lambda call, a: a.rstrip(" "),
    "replace": lambda call, text, old, new: text.replace(old, new) if old else text,
    "starts_with": lambda call, text, part: text.startswith(part),
    "ends_with": lambda call, text, part: text.endswith(part),
    "contains": lambda call, text, part: part in text,
    "round": _round,
    "floor": lambda call, a: _of(call.type, Decimal(a).to_integral_value(ROUND_FLOOR)),
    "ceil": lambda call, a: _of(call.type, Decimal(a).to_integral_value(ROUND_CEILING)),
    "sqrt": lambda call, a: math.sqrt(a) if a >= 0 else math.nan,
    "exp": lambda call, a: math.exp(a),
    "ln": lambda call, a: math.log(a) if a > 0 else None,
    "power": lambda call, a, b: math.pow(a, b),
    "sign": lambda call, a: float((a > 0) - (a < 0)),
    "date_add": lambda call, day, count: day + datetime.timedelta(days=count),
    "date_diff": lambda call, end, start: (end - start).days,
    "date_trunc": _truncate,
    "quarter": lambda call, a: (a.month + 2) // 3,
    "dayofweek": lambda call, a: a.isoweekday() % 7 + 1,
    "hour": lambda call, a: a.hour,
    "minute": lambda call, a: a.minute,
    "second": lambda call, a: a.second,
    "year": lambda call, a: a.year,
    "month": lambda call, a: a.month,
    "day": lambda call, a: a.day,
}
