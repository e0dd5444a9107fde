"""Spark's dialect as Crown reads it: sqlglot's own, without what it rewrites on the way in.

sqlglot turns some functions into others that mean nearly the same, which is enough to translate a text but not to
compute what Spark computes: it reads a time pattern as strftime's (`y`, `yyyy` and `YYYY` are one then), `log10(x)` as
`log(10, x)`, and casts timestamps of `datediff(unit, a, b)` to dates.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from crown.sql.words import words

SPARK = ("spark", "spark2", "databricks", "hive")
_AS_WRITTEN = words(
    "log2 log10 unix_timestamp to_unix_timestamp from_unixtime date_format to_timestamp to_date datediff date_diff "
    "dateadd date_sub unix_date instr locate charindex position timestampdiff timestampadd"
)


def _call(name: str) -> Callable[[list[Any]], exp.Expr]:
    return lambda arguments: exp.Anonymous(this=name, expressions=arguments)


@cache
def reader(dialect: str) -> str | type[Dialect]:
    """What sqlglot is to parse the dialect with."""
    name = dialect.lower()
    if name not in SPARK:
        return dialect
    base = Dialect.get_or_raise(name).__class__
    functions = {**base.parser_class.FUNCTIONS, **{each.upper(): _call(each) for each in _AS_WRITTEN}}
    parser = type("Parser", (base.parser_class,), {"FUNCTIONS": functions})
    return type(f"Crown{base.__name__}", (base,), {"Parser": parser})
