"""Names of outputs in WHERE, for the dialects that allow them there."""

from __future__ import annotations

from sqlglot import exp

from crown.sql.context import Context
from crown.sql.relation import Relation

_DIALECTS = frozenset({"duckdb", "snowflake", "sqlite", "redshift", "clickhouse", "teradata"})


def write_out_aliases(context: Context, select: exp.Select, relation: Relation) -> None:
    """Replace each name in WHERE that is not a column of FROM but an output by the output's expression."""
    where = select.args.get("where")
    if where is None or context.dialect.lower() not in _DIALECTS:
        return
    taken = {column.name.lower() for column in relation.visible}
    outputs = {e.alias.lower(): e.this for e in select.expressions if isinstance(e, exp.Alias)}
    named = {name: node for name, node in outputs.items() if name not in taken}
    # An output may be named by the outputs after it, so what is written out may have names too.
    for _ in named:
        found = [c for c in where.find_all(exp.Column) if not c.text("table") and c.name.lower() in named]
        for column in found:
            column.replace(exp.Paren(this=named[column.name.lower()].copy()))
        if not found:
            return
