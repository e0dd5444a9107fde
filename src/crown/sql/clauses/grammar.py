"""The context of every rule of the grammar: the names it can read, and the rules that are called recursively."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sqlglot import exp

from crown.ir.expression import Expression
from crown.sql.clauses.bound import BoundQuery
from crown.sql.clauses.from_clause.definitions import Definition, OutputColumn
from crown.sql.clauses.grouping.aggregates import Aggregates
from crown.sql.clauses.recursion.self_reference import readers, refuse_later
from crown.sql.clauses.subqueries.attach import Attachment
from crown.sql.context import Context
from crown.sql.nodes import nodes_of_kind
from crown.sql.relation import Relation
from crown.sql.scalar.binder import SubqueriesOfSelect
from crown.sql.scope import Scope


class Clause(SubqueriesOfSelect, Protocol):
    """A clause whose subqueries are values of its rows; `attachments` are the sources that they need."""

    attachments: list[Attachment]


class Grammar(Protocol):
    """The recursive rules: a SELECT holds queries, which hold SELECTs; WHERE holds subqueries, which hold a WHERE."""

    def query(self, context: Context, node: exp.Expr, parent: Scope | None, environment: Environment) -> BoundQuery:
        """Any query expression."""

    def where(
        self,
        context: Context,
        clause: exp.Expr | None,
        relation: Relation,
        parent: Scope | None,
        environment: Environment,
    ) -> tuple[Relation, list[Expression]]:
        """Return the relation with WHERE applied, and the predicates that read the query around it."""

    def restrict(
        self,
        context: Context,
        condition: exp.Expr,
        relation: Relation,
        correlated: list[Expression],
        parent: Scope | None,
        environment: Environment,
        clause: str,
    ) -> tuple[Relation, list[Expression]]:
        """Return the relation with a condition applied, and `correlated` with what that adds."""

    def semi_join(
        self,
        context: Context,
        left: Relation,
        right: Relation,
        predicates: list[Expression],
        negated: bool,
        construct: str,
        node: exp.Expr,
    ) -> Relation:
        """Return the rows of `left` with, or negated without, a partner in `right`."""

    def rows(
        self,
        context: Context,
        node: exp.Select,
        relation: Relation,
        parent: Scope | None,
        environment: Environment,
        keys: Sequence[Expression] = (),
    ) -> BoundQuery:
        """Bind everything after WHERE; `keys` are output first, and added to GROUP BY."""

    def derived(
        self,
        context: Context,
        node: exp.Expr,
        scope: Scope,
        environment: Environment,
        alias: str,
        names: tuple[str, ...],
    ) -> Relation:
        """Return the rows of a query in FROM that reads outer queries."""

    def recursion(
        self, context: Context, definition: Definition, environment: Environment
    ) -> tuple[str, tuple[OutputColumn, ...]]:
        """Return the nested body of a recursive definition, and its columns."""

    def united(self, context: Context, node: exp.SetOperation, left: BoundQuery, right: BoundQuery) -> BoundQuery:
        """Return the set operation of two bound queries, without its order."""

    def subqueries(
        self, context: Context, environment: Environment, clause: str, aggregates: Aggregates | None = None
    ) -> Clause:
        """Return the binder of a clause's subqueries."""


@dataclass(frozen=True)
class Environment:
    """The names of WITH that can be read here, in lower case, and the grammar."""

    grammar: Grammar
    names: Mapping[str, Definition]

    def inside(self, definition: Definition) -> Environment:
        """Return the environment of the query of `definition`."""
        return replace(self, names=definition.names)


def with_definitions(context: Context, node: exp.Expr, environment: Environment) -> Environment:
    clause = node.args.get("with_")
    if clause is None:
        return environment
    known = dict(environment.names)
    own: set[str] = set()
    uses = Counter(table.name.lower() for table in nodes_of_kind(node, exp.Table))
    for item in clause.expressions:
        if not isinstance(item, exp.CTE):
            context.fail(item, "UNSUPPORTED", "this WITH item is not supported", hint="write a SELECT")
        name = item.alias
        if name.lower() in own:
            context.fail(
                item,
                "DUPLICATE-ALIAS",
                f"WITH defines {name} twice",
                reason="a reader could not tell which of them is meant",
                hint="give each its own name",
            )
        own.add(name.lower())
        recursive = ""
        if clause.args.get("recursive"):
            refuse_later(context, clause, item)
            recursive = name if readers(item.this, name) else ""
        columns = tuple(c.name for c in item.args["alias"].columns)
        shared = uses[name.lower()] > 1
        definition = Definition(item.this, columns, dict(known), context.sql, shared, recursive=recursive)
        known[name.lower()] = definition
        context.definitions.append(definition)
    return replace(environment, names=known)
