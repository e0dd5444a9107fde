"""The atoms of a query's bodies: read all of them, or replace each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from crown.ir.plan import Atom
from crown.ir.query import (
    Body,
    Condition,
    Conjunction,
    OptionalAtom,
    Recursion,
    Select,
    SetOperation,
    Top,
    Values,
    Windowed,
)


def body_atoms(body: Body) -> list[Atom]:
    """Return every atom of a body, those of conditions and optional sides included."""
    found: list[Atom] = []

    def note(atom: Atom) -> Atom:
        found.append(atom)
        return atom

    map_atoms(body, note)
    return found


def body_sources(body: Body) -> list[str]:
    """Return the source of every atom of a body."""
    return [atom.source for atom in body_atoms(body)]


def map_atoms(body: Body, rewrite: Callable[[Atom], Atom]) -> Body:
    """Return the body with every atom replaced by what `rewrite` returns for it."""
    match body:
        case Select():
            return replace(body, branches=tuple(_branch(branch, rewrite) for branch in body.branches))
        case SetOperation():
            return replace(body, left=map_atoms(body.left, rewrite), right=map_atoms(body.right, rewrite))
        case Top() | Windowed():
            return replace(body, input=map_atoms(body.input, rewrite))
        case Values():
            return body
        case Recursion():
            base, step = map_atoms(body.base, rewrite), map_atoms(body.step, rewrite)
            nested = tuple((name, map_atoms(inner, rewrite)) for name, inner in body.nested)
            return replace(body, base=base, step=step, nested=nested)


def _branch(branch: Conjunction, rewrite: Callable[[Atom], Atom]) -> Conjunction:
    return replace(
        branch,
        atoms=tuple(map(rewrite, branch.atoms)),
        conditions=tuple(_condition(condition, rewrite) for condition in branch.conditions),
        optional=tuple(_optional(one, rewrite) for one in branch.optional),
    )


def _condition(condition: Condition, rewrite: Callable[[Atom], Atom]) -> Condition:
    inner = tuple(_condition(one, rewrite) for one in condition.conditions)
    return replace(condition, atoms=tuple(map(rewrite, condition.atoms)), conditions=inner)


def _optional(one: OptionalAtom, rewrite: Callable[[Atom], Atom]) -> OptionalAtom:
    return replace(one, atom=rewrite(one.atom), optional=tuple(_optional(inner, rewrite) for inner in one.optional))
