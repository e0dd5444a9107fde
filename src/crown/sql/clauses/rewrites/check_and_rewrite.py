"""Rewrite constructs as simpler SQL before a query is bound."""

from __future__ import annotations

from sqlglot import exp

from crown.sql.clauses.rewrites.asof import write_out_asof
from crown.sql.clauses.rewrites.clock import write_out_clock
from crown.sql.clauses.rewrites.outer_limits import move_limits
from crown.sql.clauses.rewrites.precedence import bind_operators
from crown.sql.clauses.rewrites.sessions import write_out_sessions
from crown.sql.clauses.rewrites.spellings import write_out_spellings
from crown.sql.clauses.rewrites.time_windows import write_out_windows
from crown.sql.context import Context
from crown.sql.refuse import check_parts


def check_and_rewrite(context: Context, query: exp.Expr) -> None:
    """Reject parts that Crown would ignore, order operators, move LIMITs to their orders, and rewrite shorthands."""
    check_parts(context, query)
    bind_operators(context, query)
    write_out_spellings(context, query)
    move_limits(query)
    write_out_sessions(context, query)
    write_out_windows(context, query)
    write_out_asof(context, query)
    write_out_clock(context, query)
