"""Undeclared primary keys that would restore what the plan of a conjunction loses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from crown.ir.expression import Column
from crown.plan.planning import Planning
from crown.plan.tree.draft import Draft
from crown.plan.tree.keys import Dependency, dependencies
from crown.plan.tree.nulls import variables_in
from crown.plan.tree.optional import with_key_first

Losses: TypeAlias = Callable[[Sequence[Dependency]], int]  # how much is lost when these are known
_ALTERNATIVES = 3


@dataclass(frozen=True)
class MissingKey:
    table: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"PRIMARY KEY ({', '.join(self.columns)}) of {self.table}"


def missing_keys(draft: Draft, planning: Planning, losses: Losses) -> list[tuple[MissingKey, ...]]:
    """Return sets of keys, each of which restores everything: single keys, or else one set of several.

    None once too many were tried for this query.
    """
    left = losses(draft.known)
    candidates = sorted(_candidates(draft, planning), key=_first_columns(planning)) if left else []
    planning.guesses -= len(candidates) * (1 + len(candidates))  # at most
    if planning.guesses < 0:
        return []
    alone: list[tuple[MissingKey, ...]] = [(key,) for key in candidates if not losses(_known(draft, planning, (key,)))]
    if alone:
        return alone[:_ALTERNATIVES]
    chosen: tuple[MissingKey, ...] = ()
    while left:
        # A table has one primary key.
        open_ = [key for key in candidates if key.table not in {other.table for other in chosen}]
        further = [(losses(_known(draft, planning, (*chosen, key))), key) for key in open_]
        least, key = min(further, key=lambda found: found[0], default=(left, None))
        if key is None or least >= left:
            return []
        chosen, left = (*chosen, key), least
    return [chosen] if chosen else []


def _first_columns(planning: Planning) -> Callable[[MissingKey], tuple[int, ...]]:
    """Tables mostly have their key first."""
    place = {(table.name, c.name): number for table in planning.tables for number, c in enumerate(table.columns)}
    return lambda key: tuple(place[key.table, column] for column in key.columns)


def _candidates(draft: Draft, planning: Planning) -> Iterator[MissingKey]:
    """Columns by which a table without a key is joined with another."""
    keyless = {table.name for table in planning.tables if not table.primary_key}
    atoms = [*draft.query_atoms, *with_key_first(draft.optional, variables_in(draft.query_atoms))]
    others = dict.fromkeys((*draft.query_atoms, *draft.all_atoms))  # those of bags, and of conditions
    seen: set[MissingKey] = set()
    for atom in atoms:
        column_of = {b.variable: b.expression.name for b in atom.bindings if isinstance(b.expression, Column)}
        for other in others if atom.source in keyless else ():
            shared = [variable for variable in atom.variables if variable in other.variables]
            key = MissingKey(atom.source, tuple(column_of.get(variable, "") for variable in shared))
            if other.name != atom.name and shared and all(key.columns) and key not in seen:
                seen.add(key)
                yield key


def _known(draft: Draft, planning: Planning, keys: tuple[MissingKey, ...]) -> tuple[Dependency, ...]:
    """What the planner would know if these keys were declared."""
    atoms = [*draft.query_atoms, *with_key_first(draft.optional, variables_in(draft.query_atoms))]
    return dependencies(atoms, {**planning.keys(), **{key.table: (key.columns, str(key)) for key in keys}})
