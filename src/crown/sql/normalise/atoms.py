"""Expressions over source columns, as an atom carries them: plain column names, host functions as computed columns."""

from __future__ import annotations

from dataclasses import replace

from crown.ir.expression import Call, Column, Expression
from crown.ir.plan import Atom
from crown.ir.query import Condition
from crown.ir.render import to_spark_sql
from crown.sql.context import Context
from crown.sql.refuse import refuse_host_function
from crown.sql.relation import Source, source_column
from crown.sql.scalar.fold import conjuncts, is_strict


def needs_host(expression: Expression) -> bool:
    """Whether some function in it is not the kernel's."""
    if not isinstance(expression, Call):
        return False
    return expression.function.startswith("sql:") or any(needs_host(a) for a in expression.arguments)


def lower(context: Context, source: Source, expression: Expression) -> Expression:
    """The expression over the source's own column names; what it reads is noted in the context."""
    if isinstance(expression, Column):
        name = source_column(expression.name)
        context.read(source.source, name)
        return Column(name, expression.type)
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(lower(context, source, a) for a in expression.arguments)
    lowered = replace(expression, arguments=arguments)
    if not expression.function.startswith("sql:"):
        return lowered
    if not context.is_table(source.source):
        refuse_host_function(context, expression)
    return Column(
        context.computed(source.source, host_text(context, source, lowered), expression.type).name, expression.type
    )


def host_text(context: Context, source: Source, expression: Expression) -> str:
    """Spark SQL of a host function; computed columns inside it are written out, since none sees another."""
    texts = {c.name: c.sql for c in context.computed_columns(source.source)}

    def expand(part: Expression) -> Expression:
        if isinstance(part, Column) and part.name in texts:
            return Call(f"sql:{texts[part.name]}", (), part.type)
        if isinstance(part, Call):
            return replace(part, arguments=tuple(expand(a) for a in part.arguments))
        return part

    return to_spark_sql(expand(expression))


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
