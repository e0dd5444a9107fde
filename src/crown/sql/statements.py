"""Parse a script of statements that define tables and views, for `Database`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from crown.errors import SchemaError
from crown.sql.diagnose import parse_statements, refuse_command, span
from crown.sql.dialect import reader
from crown.sql.schema.ddl import check_parts, read_ddl
from crown.sql.schema.options import take_options
from crown.sql.schema.tables import TableSchema, ViewSchema


@dataclass(frozen=True)
class CreateTable:
    table: TableSchema
    text: str


@dataclass(frozen=True)
class CreateView:
    """A name for a query, expanded where it is used."""

    view: ViewSchema
    text: str


@dataclass(frozen=True)
class CreateMaterializedView:
    """A view that is maintained. `sql` is the text of its query alone."""

    name: str
    columns: tuple[str, ...]
    sql: str
    text: str
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropView:
    name: str
    text: str
    if_exists: bool = False


Statement: TypeAlias = CreateTable | CreateView | CreateMaterializedView | DropView


@dataclass(frozen=True)
class _Piece:
    """One statement: its place in the script, and its tokens."""

    start: int
    end: int
    tokens: list[Token] = field(default_factory=list)


def read_statements(sql: str, *, dialect: str = "spark") -> list[Statement]:
    """Return the statements of a script, in order.

    >>> [type(s).__name__ for s in read_statements("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a FROM t")]
    ['CreateTable', 'CreateView']
    """
    return [_statement(sql, piece, dialect) for piece in _pieces(sql, dialect)]


def read_view(sql: str, *, dialect: str = "spark") -> CreateMaterializedView:
    """Return the view of a CREATE MATERIALIZED VIEW statement, or of a query, which has no name yet."""
    parsed = parse_statements(take_options(sql)[0], dialect)
    if len(parsed) == 1 and isinstance(parsed[0], exp.Query):
        return CreateMaterializedView("the new view", (), sql, sql)
    statements = read_statements(sql, dialect=dialect)
    if len(statements) == 1 and isinstance(statements[0], CreateMaterializedView):
        return statements[0]
    raise SchemaError(
        "this is not one query or CREATE MATERIALIZED VIEW statement",
        code="CROWN-SCHEMA-STATEMENT",
        hint="give a SELECT",
    )


def names_of(sql: str, *, dialect: str = "spark") -> set[str]:
    """Return the names of tables and views that a query reads, as it writes them."""
    statements = parse_statements(take_options(sql)[0], dialect)
    return {name for statement in statements for name in _names_read(statement)}


def name_query(name: str, sql: str, *, dialect: str = "spark") -> ViewSchema:
    """Return a name for a query, which is expanded where other queries read it."""
    statements = [s for s in parse_statements(take_options(sql)[0], dialect) if not isinstance(s, exp.Semicolon)]
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise SchemaError(f"view {name} is not one query", code="CROWN-SCHEMA-VIEW", hint="give one SELECT")
    return ViewSchema(name, statements[0], (), sql)


def names_in(view: ViewSchema) -> set[str]:
    """Return the names of tables and views that a view reads."""
    return set(_names_read(view.query))


def _names_read(query: exp.Expr) -> Iterator[str]:
    """The names in FROM that no WITH around them defines; a name of WITH has no database."""
    for table in query.find_all(exp.Table):
        if table.args.get("db") or table.name.lower() not in _defined_around(table):
            yield table.name


def _defined_around(node: exp.Expr) -> set[str]:
    """The names of WITH that are in scope at the node: a query of WITH sees those before it."""
    names: set[str] = set()
    child: exp.Expr = node
    while child.parent is not None:
        parent = child.parent
        if isinstance(parent, exp.With):
            queries = parent.expressions
            seen = queries if parent.args.get("recursive") else queries[: queries.index(child)]
            names |= {query.alias.lower() for query in seen}
        elif not isinstance(child, exp.With):
            with_ = parent.args.get("with_")
            names |= {query.alias.lower() for query in with_.expressions} if with_ is not None else set()
        child = parent
    return names


def _pieces(sql: str, dialect: str) -> list[_Piece]:
    text, _ = take_options(sql)
    try:
        tokens = sqlglot.tokenize(text, read=reader(dialect))
    except (SqlglotError, ValueError):
        parse_statements(text, dialect)  # says what is wrong
        raise
    pieces: list[_Piece] = []
    current: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            current.append(token)
        elif current:
            pieces.append(_Piece(current[0].start, token.start, current))
            current = []
    if current:
        pieces.append(_Piece(current[0].start, len(sql), current))
    return pieces


def _statement(sql: str, piece: _Piece, dialect: str) -> Statement:
    # Everything else is blanked, so that positions are those in the script.
    alone = _blank(sql[: piece.start]) + sql[piece.start : piece.end]
    text = sql[piece.start : piece.end].strip()
    match parse_statements(take_options(alone)[0], dialect):
        case [exp.Drop() as drop] if str(drop.args.get("kind")).upper() == "VIEW":
            return _drop(sql, drop, text)
        case [exp.Create() as create] if create.args.get("kind") == "VIEW" and _is_materialized(create):
            return _materialized(sql, piece, create, text)
        case [exp.Create()]:
            tables, views = read_ddl(alone, dialect)
            return CreateTable(tables[0], text) if tables else CreateView(views[0], text)
        case [exp.Command()]:
            refuse_command(sql, piece.tokens, dialect)
    raise SchemaError(
        "this statement is not supported",
        code="CROWN-SCHEMA-STATEMENT",
        sql=sql,
        position=(piece.start, piece.start + len(piece.tokens[0].text)),
        hint="write CREATE TABLE, CREATE VIEW, CREATE MATERIALIZED VIEW or DROP VIEW",
    )


def _drop(sql: str, drop: exp.Drop, text: str) -> DropView:
    check_parts(sql, drop)
    tables = drop.args["tables"]
    if len(tables) > 1:
        raise SchemaError(
            "DROP VIEW names more than one view",
            code="CROWN-SCHEMA-UNSUPPORTED",
            sql=sql,
            position=span(tables[1]) or (0, 1),
            hint="write one statement for each view",
        )
    return DropView(tables[0].name, text, bool(drop.args.get("exists")))


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _is_materialized(create: exp.Create) -> bool:
    properties = create.args.get("properties")
    return properties is not None and properties.find(exp.MaterializedProperty) is not None


def _materialized(sql: str, piece: _Piece, create: exp.Create, text: str) -> CreateMaterializedView:
    check_parts(sql, create)
    target = create.this
    named = target.this if isinstance(target, exp.Schema) else target
    if not isinstance(create.expression, exp.Query):
        raise SchemaError(
            f"view {named.name} has no query", code="CROWN-SCHEMA-VIEW", sql=sql, position=span(named) or (0, 1)
        )
    if create.args.get("replace"):
        raise SchemaError(
            "OR REPLACE is not supported for a materialized view",
            code="CROWN-SCHEMA-UNSUPPORTED",
            sql=sql,
            position=span(named) or (0, 1),
            hint="drop the view, then create it",
        )
    columns = tuple(column.name for column in target.expressions) if isinstance(target, exp.Schema) else ()
    query = sql[_query_start(piece) : piece.end].strip()
    return CreateMaterializedView(named.name, columns, query, text, bool(create.args.get("exists")))


def _query_start(piece: _Piece) -> int:
    """Return the position after the AS that the query follows."""
    depth = 0
    for token in piece.tokens:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and token.token_type == TokenType.ALIAS:
            return token.end + 1
    raise AssertionError("a view has AS before its query")
