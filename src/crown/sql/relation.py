"""The result of FROM while a query is bound: branches of atoms, and the columns that names resolve to.

A column has an id. Ids of source columns are ``atom.column``; in a branch, `values` says what each other id
stands for there (an expression of a flattened subquery, or NULL where an outer join pads). The optional side of an
outer join is a part of the branch, if it is one source; otherwise there is a branch with it and one without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

from crown.ir.expression import Column, Expression, column_set
from crown.ir.query import Origin
from crown.sql.diagnose import Place
from crown.types import DataType


@dataclass(frozen=True)
class Source:
    """A future atom: one use of a table or nested body. `name` is its alias."""

    id: str
    name: str
    source: str

    def column(self, name: str) -> str:
        return f"{self.id}.{name}"


@dataclass(frozen=True)
class Subcondition:
    """EXISTS of a branch, or NOT EXISTS; the branch's predicates may read columns of the branch around it."""

    branch: Branch
    negated: bool
    place: Place | None
    construct: str  # how to call it in messages


@dataclass(frozen=True)
class OptionalSource:
    """The optional side of an outer join: its columns are NULL where no row of it satisfies the predicates of ON."""

    source: Source
    predicates: tuple[Expression, ...]
    columns: tuple[VisibleColumn, ...]  # what the side shows
    place: Place | None
    subquery: bool = False  # the value of a subquery, not a side of a join


@dataclass(frozen=True)
class Branch:
    atoms: tuple[Source, ...]
    predicates: tuple[Expression, ...] = ()
    conditions: tuple[Subcondition, ...] = ()
    values: Mapping[str, Expression] = field(default_factory=dict)
    origins: tuple[Origin, ...] = ()  # the constructs that made it a branch beside others
    optional: tuple[OptionalSource, ...] = ()
    reasons: tuple[str, ...] = ()  # why an outer join is a branch

    def added_by(self, origin: Origin, reason: str = "") -> Branch:
        origins = tuple(dict.fromkeys((*self.origins, origin)))
        reasons = tuple(dict.fromkeys((*self.reasons, reason))) if reason else self.reasons
        return replace(self, origins=origins, reasons=reasons)

    def joined(self, other: Branch) -> Branch:
        return Branch(
            self.atoms + other.atoms,
            self.predicates + other.predicates,
            self.conditions + other.conditions,
            {**self.values, **other.values},
            tuple(dict.fromkeys(self.origins + other.origins)),
            self.optional + other.optional,
            tuple(dict.fromkeys(self.reasons + other.reasons)),
        )

    @cached_property
    def atom_ids(self) -> frozenset[str]:
        """The atoms that have a row in every row of the branch."""
        return frozenset(a.id for a in self.atoms)

    @cached_property
    def optional_ids(self) -> frozenset[str]:
        return frozenset(o.source.id for o in self.optional)


@dataclass(frozen=True)
class VisibleColumn:
    name: str
    id: str
    type: DataType

    @property
    def reference(self) -> Column:
        return Column(self.id, self.type)


@dataclass(frozen=True)
class VisibleTable:
    alias: str
    columns: tuple[VisibleColumn, ...]

    @cached_property
    def by_name(self) -> Mapping[str, list[VisibleColumn]]:
        """The columns by their names in lower case."""
        return _by_name(self.columns)


@dataclass(frozen=True)
class Relation:
    """`visible` are the columns of ``*`` and of unqualified names: USING columns once, then the others.

    `correlated` are the predicates of inner joins' ON that read outer queries. `hidden` are columns of sources that
    were added to FROM and that no name refers to.
    """

    branches: tuple[Branch, ...]
    tables: tuple[VisibleTable, ...]
    visible: tuple[VisibleColumn, ...]
    correlated: tuple[Expression, ...] = ()
    hidden: tuple[VisibleColumn, ...] = ()

    def product(self, other: Relation) -> Relation:
        return Relation(
            tuple(a.joined(b) for a, b in product(self.branches, other.branches)),
            self.tables + other.tables,
            self.visible + other.visible,
            self.correlated + other.correlated,
            self.hidden + other.hidden,
        )

    def with_branches(self, branches: Iterable[Branch]) -> Relation:
        return replace(self, branches=tuple(branches))

    @cached_property
    def by_name(self) -> Mapping[str, list[VisibleColumn]]:
        """The visible columns by their names in lower case."""
        return _by_name(self.visible)

    @cached_property
    def ids(self) -> frozenset[str]:
        return frozenset(column.id for column in self.columns)

    @property
    def columns(self) -> list[VisibleColumn]:
        """All columns, some of them twice."""
        return [*(c for t in self.tables for c in t.columns), *self.visible, *self.hidden]


def _by_name(columns: Iterable[VisibleColumn]) -> dict[str, list[VisibleColumn]]:
    found: dict[str, list[VisibleColumn]] = {}
    for column in columns:
        found.setdefault(column.name.lower(), []).append(column)
    return found


def atom_of(column: str) -> str:
    """Return the atom that a source column's id belongs to."""
    return column.partition(".")[0]


def source_column(column: str) -> str:
    return column.partition(".")[2]


def atoms_of(expression: Expression) -> frozenset[str]:
    return frozenset([atom_of(c) for c in column_set(expression)])
