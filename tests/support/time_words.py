"""Time in words that DuckDB knows: windows of time as buckets, the current time as the row of a table."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

CLOCK = "clock_now"
CLOCK_TABLE = f"CREATE TABLE {CLOCK} (t TIMESTAMP)"


def with_buckets(sql: str) -> str:
    """Return a query with TIME_BUCKET for TUMBLE and HOP, and with numbered rows for SESSION.

    >>> with_buckets("SELECT 1 AS a")
    'SELECT 1 AS a'
    """
    if not any(word in sql for word in ("TUMBLE(", "HOP(", "SESSION(")):
        return sql
    # sqlglot takes SESSION for a keyword.
    tree = sqlglot.parse_one(sql.replace("SESSION(", "SESSION_NUMBER("), read="spark")
    for number, select in enumerate(list(tree.find_all(exp.Select))):
        for call in list(select.find_all(exp.Anonymous)):
            if call.find_ancestor(exp.Select) is select and call.name.upper() in ("TUMBLE", "HOP"):
                _bucket(select, call, f"hops{number}")
        sessions = [c for c in select.find_all(exp.Anonymous) if c.name.upper().startswith("SESSION")]
        own = [call for call in sessions if call.find_ancestor(exp.Select) is select]
        if own:
            _number_sessions(select, own)
    return tree.sql("spark")


def _bucket(select: exp.Select, call: exp.Anonymous, alias: str) -> None:
    moment, slide, *size = (part.copy() for part in call.expressions)
    start = f"TIME_BUCKET({slide.sql('spark')}, {moment.sql('spark')})"
    if size:
        count = int(size[0].this.name) // int(slide.this.name)
        if alias not in {join.this.alias for join in select.args.get("joins") or ()}:
            rows = [exp.Tuple(expressions=[exp.Literal.number(i)]) for i in range(count)]
            named = exp.TableAlias(this=exp.to_identifier(alias), columns=[exp.to_identifier("n")])
            select.append("joins", exp.Join(this=exp.Values(expressions=rows, alias=named), kind="CROSS"))
        start = f"{start} - {alias}.n * {slide.sql('spark')}"
    there = exp.not_(exp.Is(this=moment, expression=exp.Null()))
    if there not in list(select.find_all(exp.Not)):
        select.where(there, copy=False)
    call.replace(exp.paren(sqlglot.parse_one(start, read="spark")))


def _number_sessions(select: exp.Select, calls: list[exp.Anonymous]) -> None:
    """Count the gaps before each row: not what Crown does, which looks for the start of its session."""
    moment, gap = (part.sql("spark") for part in calls[0].expressions)
    keys = [part.sql("spark") for part in select.args["group"].expressions if part not in calls]
    window = f"({f'PARTITION BY {chr(44).join(keys)} ' if keys else ''}ORDER BY {moment})"
    source = select.args["from_"].this
    alias = source.alias_or_name
    where = select.args["where"].this.sql("spark") if select.args.get("where") else "TRUE"
    first = f"CASE WHEN {moment} - LAG({moment}) OVER {window} <= {gap} THEN 0 ELSE 1 END"
    gaps = f"SELECT {alias}.*, {first} AS gap FROM {source.sql('spark')} WHERE {moment} IS NOT NULL AND ({where})"
    numbered = f"SELECT {alias}.*, SUM(gap) OVER {window} AS number FROM ({gaps}) AS {alias}"
    select.set("where", None)
    select.from_(
        sqlglot.parse_one(f"SELECT 1 FROM ({numbered}) AS {alias}", read="spark").args["from_"].this, copy=False
    )
    words = {
        "SESSION_NUMBER": f"{alias}.number",
        "SESSION_START": f"MIN({moment})",
        "SESSION_END": f"MAX({moment}) + {gap}",
    }
    for call in calls:
        call.replace(sqlglot.parse_one(words[call.name.upper()], read="spark"))


def with_clock(sql: str) -> str:
    """Return a query that reads the current time from the table `CLOCK`."""
    now = f"(SELECT MAX({CLOCK}.t) FROM {CLOCK})"
    for word in ("CURRENT_DATE()", "CURRENT_DATE"):
        sql = sql.replace(word, f"CAST({now} AS DATE)")
    return sql.replace("now()", now)
