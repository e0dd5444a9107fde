"""CAST to DECIMAL or NUMERIC without precision, which in Spark has no digits after the point.

In Postgres, SQLite and Oracle such a number has all the digits of its value. A type with a fixed scale can only promise
that for integers and decimals, which stay as they are; other values need a precision.
"""

from __future__ import annotations

from sqlglot import exp

from crown import types
from crown.ir.expression import Expression
from crown.sql.context import Context
from crown.sql.typenames import Kind
from crown.types import DataType

_ALL_DIGITS = frozenset({"postgres", "sqlite", "oracle", "materialize", "risingwave"})
_FIXED = {"bigquery": (38, 9), "trino": (38, 0), "presto": (38, 0), "tsql": (18, 0), "redshift": (18, 0)}


def decimal_without_precision(context: Context, node: exp.Expr, subject: Expression) -> DataType | None:
    """Return the type of the dialect for this value; None where Spark's rule holds, or a precision is written."""
    to, dialect = node.args["to"], context.dialect.lower()
    if not isinstance(to, exp.DataType) or to.this != Kind.DECIMAL or to.expressions:
        return None
    if dialect in _FIXED:
        return types.decimal(*_FIXED[dialect])
    if dialect not in _ALL_DIGITS or subject.type == types.NULL:
        return None
    if (digits := subject.type.as_decimal) is not None:
        return types.decimal(*digits)
    context.fail(
        node,
        "UNKNOWN-TYPE",
        f"a cast of {subject.type.shown} to a number without precision is not supported",
        reason="decimals have a fixed number of digits after the point",
        hint="write the digits, as in numeric(18, 6), or cast to double",
    )
