"""The state shared while one SQL text is bound: the schema, the text for messages, and the columns read so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn

from sqlglot import exp

from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.functions import Declared
from crown.ir.nullability import Nullable, may_be_null
from crown.ir.query import Body
from crown.ir.tables import Table, TableColumn, Window
from crown.sql.clauses.from_clause.definitions import Definition
from crown.sql.diagnose import Place, Span, fail, span
from crown.sql.dialect import SPARK
from crown.sql.nodes import nodes_of_kind
from crown.sql.relation import Branch, Source, atom_of
from crown.sql.scalar.fold import fold
from crown.sql.schema.schema import Schema
from crown.types import UnreadType

MOST_CALLS = 10_000  # in one expression
MOST_PARTS = 30_000  # columns and calls of all SELECTs of a query, over each case of their outer joins


class Context:
    def __init__(self, sql: str, dialect: str, schema: Schema, functions: Mapping[str, Declared] | None = None) -> None:
        self.sql = sql
        self.dialect = dialect
        self.schema = schema
        self.functions = functions or {}  # of the user, by lower-case name
        self.nested: list[tuple[str, Body]] = []
        self.windows: dict[str, Window] = {}  # by table key, from FROM
        self.places: dict[Expression, Place] = {}
        self.order_places: dict[str, Place] = {}  # where ORDER BY reads a column
        self.opened_views: list[str] = []
        self.databases: dict[str, tuple[str, str]] = {}  # (catalog, database) as written, by table and alias
        self.numbered: dict[str, set[str]] = {}  # the outputs that share a name with an earlier one, by that name
        self._sources: dict[str, Source] = {}
        self._nullable: dict[str, bool] = {}
        self._read: dict[str, set[str]] = {}
        self._computed: dict[str, dict[str, Expression]] = {}  # by atom, then by column id
        self._names: set[str] = {name.lower() for name in (*schema.tables, *schema.results)}
        self._counter = 0
        self._parts = 0
        self.definitions: list[Definition] = []  # the names of every WITH
        self.views: dict[str, Definition] = {}  # those read so far, by lower-case name
        self.view_uses: Counter[str] = Counter()  # how often each is named, by the query and the views it reads

    @property
    def steps(self) -> int:
        """A measure of the work done: tables, subqueries and computed columns met so far."""
        return self._counter

    def count_uses(self, statement: exp.Expr) -> None:
        """Fill `view_uses`."""
        queries, reached = [statement], set[str]()
        while queries:
            named = [table.name.lower() for table in nodes_of_kind(queries.pop(), exp.Table)]
            self.view_uses.update(named)
            fresh = dict.fromkeys(name for name in named if name in self.schema.views and name not in reached)
            reached.update(fresh)
            queries += [self.schema.views[name].query for name in fresh]

    @property
    def is_spark(self) -> bool:
        return self.dialect.lower() in SPARK

    @property
    def counts_booleans(self) -> bool:
        """Whether TRUE is 1 in this dialect, and every number but 0 is a condition that holds."""
        return self.dialect.lower() in ("sqlite", "mysql", "duckdb")

    def fail(
        self,
        node: exp.Expr | Place | Span | None,
        code: str,
        message: str,
        reason: str | None = None,
        hint: str | None = None,
    ) -> NoReturn:
        if isinstance(node, Place):
            fail(node.sql, node.span, code, message, reason, hint)
        fail(self.sql, node, code, message, reason, hint)

    def place(self, node: exp.Expr) -> Place | None:
        """Return the position of a node, for messages raised after the binder has moved on to another text."""
        position = span(node)
        return Place(position, self.sql) if position is not None else None

    @contextmanager
    def text_of_view(self, name: str, sql: str) -> Iterator[None]:
        """While a view is expanded, messages point into its own text."""
        outer, self.sql = self.sql, sql
        self.opened_views.append(name.lower())
        try:
            yield
        finally:
            self.sql = outer
            self.opened_views.pop()

    def use_database(self, table: exp.Table) -> None:
        """Record the database that qualifies a table. A schema has one table of each name, so all uses must agree."""
        written = (table.catalog.lower(), table.db.lower())
        if not table.db:
            return
        for name in {table.name.lower(), (table.alias or table.name).lower()}:
            known = self.databases.setdefault(name, written)
            if known != written and name == table.name.lower():
                self.fail(
                    table,
                    "UNKNOWN-TABLE",
                    f"{table.name} is used from two databases",
                    reason="table names are unique in a schema",
                    hint="register one of them under another name",
                )

    def mark(self, expression: Expression, node: exp.Expr) -> Expression:
        """Remember where an expression came from, for messages about it after binding."""
        place = self.place(node)
        if isinstance(expression, Call) and expression.size > MOST_CALLS:
            self._refuse_size(place)
        if place is not None:
            self.places.setdefault(expression, place)
        return expression

    def count_parts(self, expressions: Iterable[Expression]) -> None:
        """Refuse a query whose expressions are too many for a plan to be made in a second."""
        for expression in expressions:
            self._parts += 1 + (expression.size if isinstance(expression, Call) else 0)
            if self._parts > MOST_PARTS:
                self.fail(
                    self.places.get(expression),
                    "TOO-LONG",
                    f"the query has more than {MOST_PARTS:,} columns, operators and functions",
                    reason="those of subqueries and views count where they are used, and in each case of an outer join",
                    hint="split the query into several views",
                )

    def _refuse_size(self, place: Place | None) -> NoReturn:
        self.fail(
            place,
            "TOO-LONG",
            f"an expression has more than {MOST_CALLS:,} operators and functions",
            reason="a name that is used several times, here or in a subquery, is written out each time",
            hint="write a long list of values as IN (...) or as a table to join with, and use a computed name once",
        )

    def substitute(
        self,
        expression: Expression,
        values: Mapping[str, Expression],
        atoms: frozenset[str],
        known: frozenset[str] = frozenset(),
    ) -> Expression:
        """Return the expression with columns replaced and folded; it keeps its place in the text.

        Only columns of `atoms` are assumed NOT NULL if the schema says so: an outer join may still pad a column of an
        outer query. The columns in `known` are not NULL.
        """

        may_be_absent = self.nullable_in(atoms)

        def nullable(column: str) -> bool:
            return column not in known and may_be_absent(column)

        def replaced(part: Expression) -> Expression:
            if isinstance(part, Column):
                return values.get(part.name, part)
            if not isinstance(part, Call):
                return part
            result = fold(replace(part, arguments=tuple(replaced(a) for a in part.arguments)), nullable)
            place = self.places.get(part)
            if isinstance(result, Call) and result.size > MOST_CALLS:
                self._refuse_size(place)
            if place is not None:
                self.places.setdefault(result, place)
            return result

        return replaced(expression)

    def without_rows(self, expression: Expression, gone: frozenset[str], atoms: frozenset[str]) -> Expression:
        """The expression where the atoms in `gone` have no row: NULL for their columns, folded as in `substitute`."""
        found: dict[str, Expression] = {}

        def collect(part: Expression) -> None:
            if isinstance(part, Column) and atom_of(part.name) in gone:
                found[part.name] = Literal(None, part.type)
            for argument in part.arguments if isinstance(part, Call) else ():
                collect(argument)

        collect(expression)
        return self.substitute(expression, found, atoms) if found else expression

    def in_branch(self, expression: Expression, branch: Branch) -> Expression:
        """Return the expression in a branch for an expression over visible columns."""
        return self.substitute(expression, branch.values, branch.atom_ids)

    def may_be_null(self, expression: Expression, branch: Branch) -> bool:
        """Whether an expression over visible columns may be NULL in a row of the branch."""
        return may_be_null(self.in_branch(expression, branch), self.nullable_in(branch.atom_ids))

    def new_id(self, prefix: str) -> str:
        self._counter += 1
        return f"{prefix}{self._counter}"

    def new_source(self, name: str, source: str, columns: list[TableColumn]) -> Source:
        """Return an atom over a table or nested body."""
        atom = Source(self.new_id("a"), name, source)
        self._sources[atom.id] = atom
        for column in columns:
            self._nullable[atom.column(column.name)] = column.nullable
        return atom

    def compute(self, source: Source, expression: Expression) -> Column:
        """Add a computed column to the source: the expression, over its own columns, in each row."""
        known = self._computed.setdefault(source.id, {})
        for name, other in known.items():
            if other == expression:
                return Column(name, expression.type)
        name = source.column(f"#{len(known) + 1}")
        known[name] = expression
        return Column(name, expression.type)

    def computed_columns(self, source: Source) -> Mapping[str, Expression]:
        return self._computed.get(source.id, {})

    def nest(self, name: str, body: Body) -> str:
        """Store `body` as a nested body under a unique name derived from `name`."""
        unique = self.new_name(name)
        self.nested.append((unique, body))
        return unique

    def new_name(self, name: str) -> str:
        """Return a name for a nested body, derived from `name`."""
        base = "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "nested"
        unique, number = base, 1
        while unique.lower() in self._names:
            number += 1
            unique = f"{base}_{number}"
        self._names.add(unique.lower())
        return unique

    def nullable(self, column: str) -> bool:
        return self._nullable.get(column, True)

    def nullable_in(self, atoms: frozenset[str]) -> Nullable:
        """Which columns may be NULL among `atoms`; those of other atoms always may."""
        return lambda column: atom_of(column) not in atoms or self.nullable(column)

    def read(self, source: str, column: str) -> None:
        if source.lower() in self.schema.tables:
            self._read.setdefault(source.lower(), set()).add(column)

    def use_table(self, source: str) -> None:
        if source.lower() in self.schema.tables:
            self._read.setdefault(source.lower(), set())

    def primary_key(self, source: Source) -> tuple[str, ...]:
        """Return the columns that determine a row of a table; none for a nested body."""
        table = self.schema.tables.get(source.source.lower())
        return table.primary_key if table is not None else ()

    def is_table(self, source: str) -> bool:
        return source.lower() in self.schema.tables

    def tables(self) -> tuple[Table, ...]:
        """Return the tables that the query reads, in the order of first use, reduced to what it reads and the key."""
        result = []
        for name, read in self._read.items():
            table = self.schema.tables[name]
            window = self.windows.get(name, table.window)
            wanted = read | set(table.primary_key)
            if window is not None and window.column is not None:
                wanted = wanted | {window.column}
            columns = tuple(c for c in table.columns if c.name in wanted)
            # A batch needs a column to have a length, even if only COUNT(*) reads it.
            columns = columns or tuple(c for c in table.columns if not isinstance(c.type, UnreadType))[:1]
            if not columns:
                self.fail(
                    None,
                    "UNKNOWN-TYPE",
                    f"no column of table {table.name} has a supported type",
                    hint="declare one of its columns with a type such as INT or STRING",
                )
            result.append(Table(table.name, columns, table.primary_key, table.profile, window))
        return tuple(result)
