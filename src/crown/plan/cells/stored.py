"""The meaning of the rows in an engine's saved state: what must be unchanged for a new plan to continue from them.

A state holds the rows of tables with a key or a window, and of each use of a table the values that it binds, for the
rows that pass its filter; in each cell those that the routing sends there. Trees, indexes and all stages above are
rebuilt from them, so their form, and the names of stages and variables, may change with the planner.
`crates/crown-kernel/src/engine/snapshot.rs` compares the same facts when it loads rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crown.ir.plan import Atom, BagStage, Plan, TreeStage
from crown.ir.serial import encode


def stored(plan: Plan) -> dict[str, Any]:
    """Return the facts, as JSON data."""
    trees = [stage for stage in plan.stages if isinstance(stage, TreeStage | BagStage)]
    uses = [atom for stage in trees for atom in stage.atoms if any(atom.source == table.name for table in plan.tables)]
    routing = plan.routing
    return {
        "tables": {
            table.name: {
                "columns": encode(table.columns),
                "key": list(table.primary_key),
                "window": encode(table.window),
            }
            for table in plan.tables
        },
        "uses": [_use(atom) for atom in uses],
        "cells": None if routing is None else {"shares": list(routing.shares), "routes": _routes(plan)},
        "shows": {"columns": [[column.name, column.type] for column in plan.columns], "bag": plan.bag},
    }


def _use(atom: Atom) -> dict[str, Any]:
    place = {variable: position for position, variable in enumerate(atom.variables)}
    return {
        "table": atom.source,
        "binds": [[place[binding.variable], encode(binding.expression)] for binding in atom.bindings],
        "filter": encode(atom.filter),
        "not_null": [place[variable] for variable in atom.not_null],
    }


def _routes(plan: Plan) -> list[Any]:
    """In the order of the uses, which is that of the bits in a row's mask."""
    assert plan.routing is not None
    return [[encode(coordinate) for coordinate in route.coordinates] for route in plan.routing.routes]


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """How two states of the same query differ, in words."""
    for name in {**before["tables"], **now["tables"]}:
        was, is_ = before["tables"].get(name), now["tables"].get(name)
        if was != is_:
            yield f"table {name} was stored with {_table(was)}, now with {_table(is_)}"
    if before["uses"] != now["uses"]:
        tables = _changed([(use["table"], use) for use in before["uses"]], [(use["table"], use) for use in now["uses"]])
        yield f"other values are kept of the rows of {', '.join(tables) or 'the tables'}"
    elif before["cells"] != now["cells"]:
        yield "rows are spread over the cells differently"
    if before["shows"] != now["shows"]:
        yield f"the stage hands on {_shown(now['shows'])} instead of {_shown(before['shows'])}"


def _changed(before: list[tuple[str, Any]], now: list[tuple[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for name, _ in (*before, *now))
    return [name for name in names if [u for n, u in before if n == name] != [u for n, u in now if n == name]]


def _table(facts: Mapping[str, Any] | None) -> str:
    if facts is None:
        return "nothing"
    columns = ", ".join(f"{column['name']} {column['type']}" for column in facts["columns"])
    key = f", key ({', '.join(facts['key'])})" if facts["key"] else ""
    return f"columns {columns}{key}{', a window' if facts['window'] else ''}"


def _shown(shows: Mapping[str, Any]) -> str:
    columns = ", ".join(f"{name} {type_}" for name, type_ in shows["columns"])
    return f"({columns}){' with multiplicities' if shows['bag'] else ''}"
