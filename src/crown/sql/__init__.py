"""Parse SQL text and bind it to a schema, as a `Query`."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from crown.ir.functions import Declared
from crown.ir.query import Query
from crown.sql.clauses.from_clause.table_options import attach_options
from crown.sql.clauses.from_clause.values import lift_generators
from crown.sql.clauses.grouping.aggregates import name_aggregates
from crown.sql.clauses.queries import bind
from crown.sql.clauses.rewrites.check_and_rewrite import check_and_rewrite
from crown.sql.context import Context
from crown.sql.diagnose import fail, parse_statements, refuse_depth
from crown.sql.reserved import check_names
from crown.sql.scalar.declared import check_function_names
from crown.sql.schema.options import take_options
from crown.sql.schema.schema import SchemaLike, load_schema
from crown.types import TooDeep

__all__ = ["load_schema", "parse"]


def parse(
    sql: str,
    schema: SchemaLike,
    *,
    dialect: str = "spark",
    profiles: Mapping[str, str] | None = None,
    windows: Mapping[str, object] | None = None,
    functions: Mapping[str, Declared] | None = None,
) -> Query:
    """Return the query of `sql` over `schema` (see `load_schema`), normalised for the planner.

    `profiles` and `windows` give tables an update profile or a window, by table name; `functions` are those that the
    user declares, by lower-case name. Raises `SqlError` with a stable code and a caret under the place if the text is
    not a query, does not match the schema, or is not supported.

    >>> query = parse("SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src", {"g": {"src": "int64", "dst": "int64"}})
    >>> [v.name for v in query.body.branches[0].variables]
    ['a_dst', 'a_src', 'b_dst']
    """
    loaded = load_schema(schema, dialect=dialect).with_options(profiles, windows)
    text, options = take_options(sql)
    statements = [s for s in parse_statements(text, dialect) if not isinstance(s, exp.Semicolon)]
    if len(statements) != 1:
        count = f"has {len(statements)} statements" if statements else "is empty"
        fail(sql, (0, 1), "STATEMENTS", f"the text {count}", hint="give one SELECT")
    check_function_names(functions or {}, dialect)
    context = Context(sql, dialect, loaded, functions)
    name_aggregates(statements[0])
    lift_generators(context, statements[0])
    attach_options(context, statements[0], options)
    try:
        check_and_rewrite(context, statements[0])
        context.count_uses(statements[0])
        query = bind(context, statements[0])
    except (RecursionError, TooDeep):
        refuse_depth(sql)
    check_names(query)
    return query
