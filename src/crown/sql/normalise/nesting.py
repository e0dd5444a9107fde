"""Nest relations as separate bodies, where a semi-join or anti-join needs a single source joined by equality."""

from __future__ import annotations

from crown.ir.expression import Column
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
    return any(len(atoms_of(p)) > 1 and atoms_of(p) <= branch.atom_ids and equated_terms(p) is None for p in parts)


def nested_if_residual(context: Context, relation: Relation, *, force: bool = False) -> Relation:
    """Return the relation itself, or one atom over a nested body with the same columns."""
    if not force and not any(has_residual(b) for b in relation.branches):
        return relation
    return nest_relation(context, relation, distinct=False)


def nest_relation(
    context: Context, relation: Relation, *, distinct: bool, only: frozenset[str] | None = None
) -> Relation:
    """Return one atom over a nested body that shows the relation's columns (those in `only`), under the same names."""
    every: dict[str, VisibleColumn] = {}
    for column in [c for t in relation.tables for c in t.columns] + list(relation.visible):
        if only is None or column.id in only:
            every.setdefault(column.id, column)
    names: dict[str, str] = {}
    for column in every.values():
        base, number = readable(column.name) or "c", 1
        name = base
        while name in names.values():
            number += 1
            name = f"{base}_{number}"
        names[column.id] = name
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
    return Relation((Branch((atom,), values=values),), relation.tables, relation.visible)
