"""The SQL of a query built by `tests.support.build`, for DuckDB to answer."""

from __future__ import annotations

from collections.abc import Sequence

from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.plan import Atom
from crown.ir.query import Aggregate, Condition, Query, Select

_OPERATORS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "add": "+", "subtract": "-", "multiply": "*"}


def to_sql(query: Query) -> str:
    body = query.body
    assert isinstance(body, Select)
    (branch,) = body.branches
    places = _places(branch.atoms, "t")
    where = _joins(branch.atoms, "t")
    where += [_expression(predicate, places) for predicate in branch.residual]
    where += [_condition(condition, places, f"s{i}_") for i, condition in enumerate(branch.conditions)]
    groups = body.group_by
    shown = [_expression(o.expression, places) for o in (body.outputs if groups is None else groups)]
    if groups is not None:
        shown += [_aggregate(aggregate, places) for aggregate in body.aggregates]
    text = f"SELECT {'DISTINCT ' if body.distinct else ''}{', '.join(shown)} FROM {_from(branch.atoms, 't')}"
    text += f" WHERE {' AND '.join(where)}" if where else ""
    if groups:
        text += f" GROUP BY {', '.join(_expression(g.expression, places) for g in groups)}"
    return text


def _from(atoms: Sequence[Atom], prefix: str) -> str:
    return ", ".join(f'"{atom.source}" {prefix}{i}' for i, atom in enumerate(atoms))


def _places(atoms: Sequence[Atom], prefix: str) -> dict[str, str]:
    places: dict[str, str] = {}
    for i, atom in enumerate(atoms):
        for binding in atom.bindings:
            assert isinstance(binding.expression, Column)
            places.setdefault(binding.variable, f"{prefix}{i}.{binding.expression.name}")
    return places


def _joins(atoms: Sequence[Atom], prefix: str, outer: dict[str, str] | None = None) -> list[str]:
    first = dict(outer or {})
    found = []
    for i, atom in enumerate(atoms):
        for binding in atom.bindings:
            assert isinstance(binding.expression, Column)
            place = f"{prefix}{i}.{binding.expression.name}"
            if first.setdefault(binding.variable, place) != place:
                found.append(f"{first[binding.variable]} = {place}")
    return found


def _condition(condition: Condition, outer: dict[str, str], prefix: str) -> str:
    where = _joins(condition.atoms, prefix, outer)
    places = _places(condition.atoms, prefix) | outer
    where += [_condition(inner, places, f"{prefix}{i}_") for i, inner in enumerate(condition.conditions)]
    text = f"EXISTS (SELECT 1 FROM {_from(condition.atoms, prefix)}{' WHERE ' if where else ''}{' AND '.join(where)})"
    return f"NOT {text}" if condition.negated else text


def _aggregate(aggregate: Aggregate, places: dict[str, str]) -> str:
    argument = "*" if aggregate.argument is None else _expression(aggregate.argument, places)
    return f"{aggregate.function}({'DISTINCT ' if aggregate.distinct else ''}{argument})"


def _expression(expression: Expression, places: dict[str, str]) -> str:
    match expression:
        case Column(name):
            return places[name]
        case Literal(value):
            return "NULL" if value is None else str(value)
        case Call(function, (left, right)):
            return f"({_expression(left, places)} {_OPERATORS[function]} {_expression(right, places)})"
        case _:
            raise NotImplementedError(expression)
