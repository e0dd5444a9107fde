"""The meaning of a query regardless of the names in it: two texts of one view are the same query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from crown.errors import CrownError
from crown.ir.query import Query
from crown.ir.tables import Table
from crown.spark.checkpoint.canonical import canonical, output_names
from crown.sql import parse
from crown.sql.schema.schema import SchemaLike
from crown.sql.schema.tables import TableSchema


def bound(sql: str, schema: SchemaLike, dialect: str = "spark") -> tuple[Query, tuple[str, ...]]:
    """Return the query with canonical names, and the author's names of its columns."""
    query = parse(sql, schema, dialect=dialect)
    return canonical(query), output_names(query.body)


def same(sql: str, other: str, tables: Iterable[Table], dialect: str = "spark") -> bool:
    """Whether two texts are the same query over the tables. This version parses both, whichever version stored them."""
    if sql == other:
        return True
    schema = {t.name: TableSchema(t.name, t.columns, t.primary_key, t.profile, t.window) for t in tables}
    try:
        one, two = (replace(bound(text, schema, dialect)[0], sql="") for text in (sql, other))
    except CrownError:
        return False
    return one == two
