"""CREATE TABLE and CREATE VIEW text, with `WINDOW (...)` and `PROFILE word` as table options."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from crown.errors import SchemaError, SqlError
from crown.ir.tables import Profile, TableColumn, Window
from crown.sql import typenames
from crown.sql.diagnose import Span, parse_statements, refuse_command, span, statement_tokens
from crown.sql.misspelt import TYPES
from crown.sql.schema import harmless
from crown.sql.schema.options import Option, take_options, window_for
from crown.sql.schema.tables import TableSchema, ViewSchema
from crown.types import TooDeep, UnreadType, WrittenType, repeated_field

_TYPE = re.compile(r'[`"\]]?\s*:?\s*([A-Za-z_]\w*)')
# What changes results must not be ignored, as other properties are.
_NOT_PROPERTIES = {
    *("window", "windows", "profile", "profiles", "fifo", "insert_only", "static", "primary_key", "not_null"),
}
_CLOSING = {"(": ")", "<": ">"}


def read_ddl(sql: str, dialect: str) -> tuple[list[TableSchema], list[ViewSchema]]:
    """Return the tables and views that the text defines, in order. Other statements are errors."""
    try:
        text, options = take_options(sql)
        statements = [s for s in parse_statements(text, dialect) if not isinstance(s, exp.Semicolon)]
    except SqlError as error:
        if error.code == "CROWN-SQL-DIALECT":
            raise
        raise _syntax_error(sql, error) from error
    tables: list[TableSchema] = []
    views: list[ViewSchema] = []
    seen: set[str] = set()
    for number, statement in enumerate(statements):
        if not isinstance(statement, exp.Create) or statement.args.get("kind") not in ("TABLE", "VIEW"):
            if isinstance(statement, exp.Command):
                _refuse_command(sql, statement_tokens(text, dialect)[number], dialect)
            raise _error(
                sql,
                span(statement) or (0, 1),
                "STATEMENT",
                "a schema consists of CREATE TABLE and CREATE VIEW statements",
            )
        check_parts(sql, statement)
        target = statement.this
        table = target.this if isinstance(target, exp.Schema) else target
        name = table.name
        if name.lower() in seen:
            raise _error(sql, span(table), "DUPLICATE", f"{name} is defined twice")
        seen.add(name.lower())
        own = [o for o in options if _owner(statements, o.position[0]) is statement]
        if statement.args["kind"] == "VIEW":
            if own:
                raise _error(sql, own[0].position, "OPTION", "WINDOW and PROFILE belong to a table, not to a view")
            views.append(_view(sql, statement, name))
        else:
            tables.append(_table(sql, statement, name, own))
    if not tables and not views:
        raise SchemaError("the schema text defines no table", code="CROWN-SCHEMA-EMPTY")
    return tables, views


def _refuse_command(sql: str, tokens: list[Token], dialect: str) -> None:
    try:
        refuse_command(sql, tokens, dialect)
    except SqlError as error:
        raise _syntax_error(sql, error) from error


def _syntax_error(sql: str, error: SqlError) -> SchemaError:
    code = "CROWN-SCHEMA-TYPE" if error.code == "CROWN-SQL-UNKNOWN-TYPE" else "CROWN-SCHEMA-SYNTAX"
    return SchemaError(error.message, code=code, sql=sql, position=error.position, reason=error.reason, hint=error.hint)


def check_parts(sql: str, create: exp.Create | exp.Drop) -> None:
    """Reject parts that would change results but are not read."""
    query = create.args.get("expression") if create.args["kind"] == "VIEW" else None
    for node in create.walk(prune=lambda n: n is query or isinstance(n, exp.ColumnConstraint | exp.Properties)):
        for part, value in node.args.items():
            if value and type(node) in harmless.PARTS and part not in harmless.PARTS[type(node)]:
                raise _unread(sql, node, part.strip("_").upper().replace("_", " "))
        if isinstance(node, exp.ColumnConstraint) and not isinstance(node.kind, harmless.CONSTRAINTS):
            raise _unread(sql, node, _words(node.kind, "ColumnConstraint"))
    given = create.args.get("properties")
    for item in given.expressions if given is not None else ():
        if type(item) not in harmless.PROPERTIES:  # all are kinds of Property
            raise _unread(sql, item if span(item) else create.this, _words(item, "Property"))
        if item.name.lower() in _NOT_PROPERTIES:
            raise _error(
                sql,
                span(item.this) or span(create.this),
                "OPTION",
                f"{item.name} is not read from properties",
                "write it as SQL: CREATE TABLE t (a INT NOT NULL, PRIMARY KEY (a)) PROFILE fifo WINDOW (ROWS 1000)",
            )
    if create.args["kind"] == "TABLE" and create.args.get("expression") is not None:
        raise _unread(sql, create.expression, "AS SELECT")


def _words(node: exp.Expr, ending: str) -> str:
    """Return the words of a constraint or property, from the name that sqlglot gives it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__.removesuffix(ending)).upper()


def _unread(sql: str, node: exp.Expr, words: str) -> SchemaError:
    return _error(sql, span(node), "UNSUPPORTED", f"{words} is not supported here", "remove it, or list the columns")


def _owner(statements: list[exp.Expr], position: int) -> exp.Expr | None:
    """Return the last statement that begins before `position`."""
    before = [s for s in statements if (span(s) or (position, 0))[0] < position]
    return before[-1] if before else None


def _view(sql: str, create: exp.Create, name: str) -> ViewSchema:
    query = create.expression
    if not isinstance(query, exp.Query):
        raise _error(sql, span(create.this), "VIEW", f"view {name} has no query")
    given = create.this.expressions if isinstance(create.this, exp.Schema) else []
    return ViewSchema(name, query, tuple(c.name for c in given), sql)


def _table(sql: str, create: exp.Create, name: str, options: list[Option]) -> TableSchema:
    if not isinstance(create.this, exp.Schema):
        raise _error(sql, span(create.this), "EMPTY", f"table {name} has no columns")
    by_name: dict[str, TableColumn] = {}
    key: list[str] = []
    for item in _items(create):
        if isinstance(item, exp.PrimaryKey):
            if key:
                raise _error(sql, span(item), "KEY", f"table {name} has two primary keys")
            key = [_key_column(sql, e) for e in item.expressions]
        elif isinstance(item, exp.ColumnDef):
            column, is_key = _column(sql, name, item)
            if column.name.lower() in by_name:
                raise _error(sql, span(item.this), "DUPLICATE", f"table {name} has two columns called {column.name}")
            by_name[column.name.lower()] = column
            if is_key and key:
                raise _error(sql, span(item), "KEY", f"table {name} has two primary keys", "write PRIMARY KEY (a, b)")
            if is_key:
                key = [column.name]
        elif isinstance(item, exp.Identifier):
            raise _no_type(sql, item, name)
        elif not isinstance(item, harmless.ITEMS):
            raise _unread(sql, item, _words(item, "Property"))
    if not by_name:
        raise _error(sql, span(create.this), "EMPTY", f"table {name} has no columns")
    key = [_checked_key(sql, create, name, by_name, part) for part in key]
    columns = tuple(TableColumn(c.name, c.type, c.nullable and c.name not in key) for c in by_name.values())
    profile, window = _profile_and_window(sql, name, by_name, options)
    return TableSchema(name, columns, tuple(key), profile, window)


def _checked_key(sql: str, create: exp.Create, table: str, by_name: dict[str, TableColumn], part: str) -> str:
    """Return the column of a primary key as the table spells it."""
    column = by_name.get(part.lower())
    if column is None:
        raise _error(sql, span(create.this), "KEY", f"primary key column {part} is not a column of {table}")
    if isinstance(column.type, UnreadType):
        raise _error(
            sql,
            span(create.this),
            "TYPE",
            f"primary key column {part} of {table} has type {column.type.shown}, which is not supported",
            TYPES,
        )
    return column.name


def _profile_and_window(
    sql: str, table: str, by_name: dict[str, TableColumn], options: list[Option]
) -> tuple[Profile, Window | None]:
    profile: Profile = "arbitrary"
    window: Window | None = None
    for number, option in enumerate(options):
        if any((earlier.profile is None) == (option.profile is None) for earlier in options[:number]):
            word = "windows" if option.profile is None else "profiles"
            raise _error(sql, option.position, "OPTION", f"table {table} has two {word}", "give one")
        if option.profile is not None:
            profile = option.profile
        else:
            window = _window(sql, option, by_name.get((option.column or "").lower()))
    return profile, window


def _window(sql: str, option: Option, column: TableColumn | None) -> Window:
    try:
        window = window_for(option, column.type if column else None, sql)
    except SqlError as error:
        raise SchemaError(
            error.message, code="CROWN-SCHEMA-OPTION", sql=sql, position=error.position, hint=error.hint
        ) from error
    return window if column is None else Window(window.rows, window.interval, column.name)


def _items(create: exp.Create) -> Iterator[exp.Expr]:
    """Yield the columns and constraints; those of Hive's PARTITIONED BY (column type) come last, as in Hive."""
    for item in create.this.expressions:
        if isinstance(item, exp.Constraint):
            yield from item.expressions
        else:
            yield item
    given = create.args.get("properties")
    for clause in given.expressions if given is not None else ():
        if isinstance(clause, exp.PartitionedByProperty) and isinstance(clause.this, exp.Schema):
            yield from (c for c in clause.this.expressions if isinstance(c, exp.ColumnDef) and c.args.get("kind"))


def _key_column(sql: str, node: exp.Expr) -> str:
    inner = node.this if isinstance(node, exp.Ordered) else node
    if not isinstance(inner, exp.Identifier | exp.Column):
        raise _error(sql, span(node), "KEY", "a primary key must be a list of columns")
    return str(inner.name)


def _written(sql: str, definition: exp.ColumnDef) -> str | None:
    """Return the type as written in the text after the column's name: a word, and what follows it in parentheses."""
    place = span(definition.this)
    found = _TYPE.match(sql, place[1]) if place is not None else None
    if found is None:
        return None
    end = found.end()
    opening = sql[end : end + 1]
    if opening not in _CLOSING:
        return found[1]
    depth = 0
    for position in range(end, len(sql)):
        depth += (sql[position] == opening) - (sql[position] == _CLOSING[opening])
        if depth == 0:
            return f"{found[1]}{sql[end : position + 1]}"
    return None


def _column(sql: str, table: str, definition: exp.ColumnDef) -> tuple[TableColumn, bool]:
    kind = definition.args.get("kind")
    if not isinstance(kind, exp.DataType):
        raise _no_type(sql, definition.this, table)
    try:
        type_ = typenames.from_sqlglot(kind)
    except TooDeep:
        type_ = None
    if type_ is not None and (twice := repeated_field(type_)) is not None:
        place = span(definition.this)
        raise _error(sql, place, "DUPLICATE", f"column {table}.{definition.name} has a struct with two fields {twice}")
    written = _written(sql, definition) or kind.sql("spark")
    if type_ is not None and type_.is_interval:
        written = type_.sql_name  # of several words
    type_ = WrittenType(type_, written) if type_ is not None else UnreadType("null", written)
    constraints = [c.kind for c in definition.constraints if isinstance(c, exp.ColumnConstraint)]
    is_key = any(isinstance(c, exp.PrimaryKeyColumnConstraint) for c in constraints)
    required = any(isinstance(c, exp.NotNullColumnConstraint) and not c.args.get("allow_null") for c in constraints)
    return TableColumn(definition.name, type_, not (is_key or required)), is_key


def _no_type(sql: str, column: exp.Expr, table: str) -> SchemaError:
    return _error(sql, span(column), "TYPE", f"column {table}.{column.name} has no type", TYPES)


def _error(sql: str, position: Span | None, code: str, message: str, hint: str | None = None) -> SchemaError:
    return SchemaError(message, code=f"CROWN-SCHEMA-{code}", sql=sql, position=position, hint=hint)
