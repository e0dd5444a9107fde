"""What the binding of one SQL text shares: the schema, the messages' text, and what was found to be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn

from sqlglot import exp

from crown.expression import Call, Column, Expression
from crown.plan.model import ComputedColumn, Table, TableColumn, Window
from crown.sql.diagnose import Span, fail, span
from crown.sql.fold import fold
from crown.sql.query import Body
from crown.sql.relation import Source
from crown.sql.schema import Schema


class Context:
    def __init__(self, sql: str, dialect: str, schema: Schema) -> None:
        self.sql = sql
        self.dialect = dialect
        self.schema = schema
        self.nested: list[tuple[str, Body]] = []
        self.windows: dict[str, Window] = {}  # by table key, from FROM
        self.positions: dict[Expression, Span] = {}
        self.opened_views: list[str] = []
        self._sources: dict[str, Source] = {}
        self._nullable: dict[str, bool] = {}
        self._read: dict[str, set[str]] = {}
        self._computed: dict[str, dict[str, ComputedColumn]] = {}
        self._names: set[str] = {name.lower() for name in schema.tables}
        self._counter = 0

    def fail(
        self,
        node: exp.Expr | Span | None,
        code: str,
        message: str,
        reason: str | None = None,
        hint: str | None = None,
    ) -> NoReturn:
        fail(self.sql, node, code, message, reason, hint)

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

    def mark(self, expression: Expression, node: exp.Expr) -> Expression:
        """Remember where an expression came from, for messages about it after binding."""
        position = span(node)
        if position is not None:
            self.positions.setdefault(expression, position)
        return expression

    def substitute(self, expression: Expression, values: Mapping[str, Expression]) -> Expression:
        """The expression with columns replaced and folded; it keeps its place in the text."""
        if not isinstance(expression, Call):
            return values.get(expression.name, expression) if isinstance(expression, Column) else expression
        arguments = tuple(self.substitute(a, values) for a in expression.arguments)
        result = fold(replace(expression, arguments=arguments), self.nullable)
        position = self.positions.get(expression)
        if position is not None:
            self.positions.setdefault(result, position)
        return result

    def new_id(self, prefix: str) -> str:
        self._counter += 1
        return f"{prefix}{self._counter}"

    def new_source(self, name: str, source: str, columns: list[TableColumn]) -> Source:
        """An atom over a table or nested body."""
        atom = Source(self.new_id("a"), name, source)
        self._sources[atom.id] = atom
        for column in columns:
            self._nullable[atom.column(column.name)] = column.nullable
        return atom

    def nest(self, name: str, body: Body) -> str:
        """Keep `body` as a nested body under a name of its own, like `name`."""
        base = "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "nested"
        unique, number = base, 1
        while unique.lower() in self._names:
            number += 1
            unique = f"{base}_{number}"
        self._names.add(unique.lower())
        self.nested.append((unique, body))
        return unique

    def nullable(self, column: str) -> bool:
        return self._nullable.get(column, True)

    def read(self, source: str, column: str) -> None:
        if source.lower() in self.schema.tables:
            self._read.setdefault(source.lower(), set()).add(column)

    def use_table(self, source: str) -> None:
        if source.lower() in self.schema.tables:
            self._read.setdefault(source.lower(), set())

    def is_table(self, source: str) -> bool:
        return source.lower() in self.schema.tables

    def computed(self, source: str, sql: str, type_: str) -> ComputedColumn:
        """The table's computed column for a piece of Spark SQL."""
        known = self._computed.setdefault(source.lower(), {})
        if sql not in known:
            known[sql] = ComputedColumn(f"computed_{len(known) + 1}", type_, sql)
        return known[sql]

    def computed_columns(self, source: str) -> list[ComputedColumn]:
        return list(self._computed.get(source.lower(), {}).values())

    def tables(self) -> tuple[Table, ...]:
        """The tables that the query reads, in the order of first use, reduced to what it reads and the key."""
        result = []
        for name, read in self._read.items():
            table = self.schema.tables[name]
            window = self.windows.get(name, table.window)
            wanted = read | set(table.primary_key)
            if window is not None and window.column is not None:
                wanted = wanted | {window.column}
            columns = tuple(c for c in table.columns if c.name in wanted)
            # A batch of rows needs a column to have a length, also when only COUNT(*) reads it.
            columns = columns or table.columns[:1]
            computed = tuple(self._computed.get(name, {}).values())
            result.append(Table(table.name, columns, computed, table.primary_key, table.profile, window))
        return tuple(result)
