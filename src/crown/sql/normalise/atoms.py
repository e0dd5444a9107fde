"""Expressions over source columns, as an atom carries them: by plain column names."""

from __future__ import annotations

from dataclasses import replace

from crown.ir.expression import Call, Column, Expression
from crown.ir.functions import is_strict
from crown.ir.plan import Atom
from crown.ir.query import Condition
from crown.sql.context import Context
from crown.sql.relation import Source, source_column
from crown.sql.scalar.fold import conjuncts


def lower(context: Context, source: Source, expression: Expression) -> Expression:
    """Return the expression over the source's own column names; what it reads is noted in the context."""
    if isinstance(expression, Column):
        computed = context.computed_columns(source).get(expression.name)
        if computed is not None:
            return lower(context, source, computed)
        name = source_column(expression.name)
        context.read(source.source, name)
        return Column(name, expression.type)
    if not isinstance(expression, Call):
        return expression
    return replace(expression, arguments=tuple(lower(context, source, a) for a in expression.arguments))


def null_rejected(condition: Expression | None) -> frozenset[str]:
    """Columns that can't be NULL in a row for which the condition is TRUE."""
    if condition is None:
        return frozenset()
    found: set[str] = set()
    for part in conjuncts(condition):
        match part:
            case Call("not", (Call("is_null", (Column(name, _),), _),), _):
                found.add(name)
            case Call("in", (subject, *_), _):
                found |= strict_columns(subject)
            case Call(function, _, _) if is_strict(function):
                found |= strict_columns(part)
    return frozenset(found)


def strict_columns(expression: Expression) -> set[str]:
    """Columns that make the expression NULL when they are NULL."""
    if isinstance(expression, Column):
        return {expression.name}
    if isinstance(expression, Call) and is_strict(expression.function):
        return {name for a in expression.arguments for name in strict_columns(a)}
    return set()


def with_not_null(
    atoms: tuple[Atom, ...], conditions: tuple[Condition, ...]
) -> tuple[tuple[Atom, ...], tuple[Condition, ...]]:
    """Fill `not_null`: every variable of two or more atoms, but not on the outer side of an anti condition.

    Atoms joined by join and exists edges are counted together; below an anti condition those of the
    surrounding level count too.
    """
    joined = [*atoms, *_positive_atoms(conditions)]
    shared = _shared(joined)
    return tuple(_marked(a, shared) for a in atoms), tuple(_mark_condition(c, shared, joined) for c in conditions)


def _positive_atoms(conditions: tuple[Condition, ...]) -> list[Atom]:
    found: list[Atom] = []
    for condition in conditions:
        if not condition.negated:
            found += [*condition.atoms, *_positive_atoms(condition.conditions)]
    return found


def _mark_condition(condition: Condition, shared: frozenset[str], around: list[Atom]) -> Condition:
    if condition.negated:
        own = [*condition.atoms, *_positive_atoms(condition.conditions)]
        shared = _shared([*around, *own])
        around = own
    return replace(
        condition,
        atoms=tuple(_marked(a, shared) for a in condition.atoms),
        conditions=tuple(_mark_condition(c, shared, around) for c in condition.conditions),
    )


def _shared(atoms: list[Atom]) -> frozenset[str]:
    counts: dict[str, int] = {}
    for atom in atoms:
        for variable in atom.variables:
            counts[variable] = counts.get(variable, 0) + 1
    return frozenset(v for v, n in counts.items() if n > 1)


def _marked(atom: Atom, shared: frozenset[str]) -> Atom:
    return replace(atom, not_null=tuple(v for v in atom.variables if v in shared))
