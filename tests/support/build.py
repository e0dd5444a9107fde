"""Queries by hand, in datalog: for tests of the planner that must not depend on the SQL layer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crown.ir.expression import Column, Expression
from crown.ir.plan import Atom, Binding, Variable
from crown.ir.query import Aggregate, Condition, Conjunction, Named, Query, Select
from crown.ir.tables import Profile, Table, TableColumn
from crown.types import INT64

_ATOM = re.compile(r"(\w+)\s*\(([^)]*)\)")


def atoms(text: str) -> tuple[Atom, ...]:
    """`R(a, b), S(b, c)`: atoms over tables r and s with columns c0, c1, ...; repeats of a table get numbers."""
    found = []
    for name, arguments in _ATOM.findall(text):
        variables = [argument.strip() for argument in arguments.split(",") if argument.strip()]
        bindings = tuple(Binding(v, Column(f"c{i}", INT64)) for i, v in enumerate(variables))
        found.append(Atom(name, name.rstrip("0123456789"), bindings))
    return tuple(found)


def variable(name: str) -> Expression:
    return Column(name, INT64)


def query(
    text: str,
    outputs: str,
    *,
    distinct: bool = False,
    aggregates: Sequence[Aggregate] | None = None,
    without: Sequence[str] = (),
    where_exists: Sequence[str] = (),
    residual: Sequence[Expression] = (),
    keys: dict[str, tuple[int, ...]] | None = None,
    profiles: dict[str, Profile] | None = None,
) -> Query:
    """SELECT outputs FROM text; with aggregates the outputs are the groups. `R1` and `R2` are atoms over table R."""
    joined = atoms(text)
    conditions = tuple(Condition(atoms(inner), True) for inner in without)
    conditions += tuple(Condition(atoms(inner), False) for inner in where_exists)
    everything = joined + tuple(atom for condition in conditions for atom in condition.atoms)
    names = tuple(dict.fromkeys(v for atom in everything for v in atom.variables))
    columns = tuple(Named(name, variable(name)) for name in dict.fromkeys(v for a in joined for v in a.variables))
    arity: dict[str, int] = {}
    for atom in everything:
        arity[atom.source] = max(arity.get(atom.source, 0), len(atom.bindings))
    tables = tuple(
        Table(
            source,
            tuple(TableColumn(f"c{i}", INT64) for i in range(width)),
            primary_key=tuple(f"c{i}" for i in (keys or {}).get(source, ())),
            profile=(profiles or {}).get(source, "arbitrary"),
        )
        for source, width in arity.items()
    )
    shown = tuple(Named(name, variable(name)) for name in outputs.replace(",", " ").split())
    conjunction = Conjunction(
        tuple(Variable(name, INT64, True) for name in names), joined, columns, conditions, tuple(residual)
    )
    if aggregates is None:
        body = Select((conjunction,), shown, distinct)
    else:
        given = shown + tuple(Named(a.name, Column(a.name, a.type)) for a in aggregates)
        body = Select((conjunction,), given, distinct, shown, tuple(aggregates))
    return Query(f"{outputs} <- {text}", tables, body)
