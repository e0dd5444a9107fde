"""Nest relations as separate bodies, where a semi-join or anti-join needs a single source joined by equality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from crown.ir.expression import Call, Column, Expression, fails_on_its_own
from crown.ir.query import Named, Select
from crown.ir.tables import TableColumn
from crown.sql.context import Context
from crown.sql.normalise.conjunction import Wanted, build_conjunctions
from crown.sql.normalise.disjunctions import factored
from crown.sql.normalise.equalities import equated_terms
from crown.sql.normalise.names import readable
from crown.sql.relation import Branch, Relation, VisibleColumn, atoms_of
from crown.sql.scalar.fold import conjuncts


def has_residual(branch: Branch) -> bool:
    """Return whether the branch compares its own atoms other than by equality."""
    parts = [part for p in branch.predicates for part in conjuncts(factored(p))]
    return any(
        (len(atoms_of(p)) > 1 or fails_on_its_own(p)) and atoms_of(p) <= branch.atom_ids and equated_terms(p) is None
        for p in parts
    )


def nested_if_residual(context: Context, relation: Relation) -> Relation:
    """Return the relation itself, or one atom over a nested body with the same columns."""
    if not any(has_residual(b) for b in relation.branches):
        return relation
    return nest_relation(context, relation, distinct=False)


def nest_relation(
    context: Context, relation: Relation, *, distinct: bool, only: frozenset[str] | None = None
) -> Relation:
    """Return one atom over a nested body that shows the relation's columns (those in `only`), under the same names."""
    every: dict[str, VisibleColumn] = {}
    for column in relation.columns:
        if only is None or column.id in only:
            every.setdefault(column.id, column)
    names: dict[str, str] = {}
    taken: set[str] = set()
    for column in every.values():
        base, number = readable(column.name) or "c", 1
        name = base
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        names[column.id] = name
        taken.add(name)
    body = Select(
        branches=build_conjunctions(
            context,
            (
                (b, [Wanted(names[c.id], context.in_branch(c.reference, b), bind=distinct) for c in every.values()])
                for b in relation.branches
            ),
        ),
        outputs=tuple(Named(names[c.id], Column(names[c.id], c.type)) for c in every.values()),
        distinct=distinct,
    )
    alias = "_".join(t.alias for t in relation.tables[:3]) or "subquery"
    source = context.nest(alias, body)
    atom = context.new_source(alias, source, [TableColumn(names[c.id], c.type, True) for c in every.values()])
    values = {i: Column(atom.column(names[i]), c.type) for i, c in every.items()}
    return Relation((Branch((atom,), values=values),), relation.tables, relation.visible, hidden=relation.hidden)


def nest_exploded(
    context: Context, relation: Relation, made: Sequence[tuple[str, Call]]
) -> tuple[Relation, list[tuple[VisibleColumn, Expression]]]:
    """Return one atom over a nested body with the relation's columns, and those that make rows of an array."""
    hidden = tuple(VisibleColumn("", f"{context.new_id('s')}.0", call.type) for _, call in made)
    values = {column.id: call for column, (_, call) in zip(hidden, made, strict=True)}

    def with_values(branch: Branch) -> Branch:
        own = {i: context.in_branch(call, branch) for i, call in values.items()}
        return replace(branch, values={**branch.values, **own})

    whole = replace(relation, hidden=(*relation.hidden, *hidden)).with_branches(map(with_values, relation.branches))
    nested = nest_relation(context, whole, distinct=False)
    branch = nested.branches[0]
    added = [
        (VisibleColumn(name, f"{context.new_id('s')}.0", call.type), branch.values[column.id])
        for column, (name, call) in zip(hidden, made, strict=True)
    ]
    return replace(nested, hidden=relation.hidden), added


def nest_columns(
    context: Context, relation: Relation, columns: Mapping[str, Expression], *, distinct: bool, name: str
) -> Relation:
    """Return one atom over a nested body with the columns, given over those of the relation."""
    body = Select(
        branches=build_conjunctions(
            context,
            (
                (b, [Wanted(n, context.in_branch(e, b), bind=distinct) for n, e in columns.items()])
                for b in relation.branches
            ),
        ),
        outputs=tuple(Named(n, Column(n, e.type)) for n, e in columns.items()),
        distinct=distinct,
    )
    source = context.nest(name, body)
    atom = context.new_source(source, source, [TableColumn(n, e.type, True) for n, e in columns.items()])
    visible = tuple(VisibleColumn(n, atom.column(n), e.type) for n, e in columns.items())
    return Relation((Branch((atom,)),), (), visible)
