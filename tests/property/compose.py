"""Random queries that nest every construct in every other, as SQL text.

`CONSTRUCTS` is the list of what can be drawn. Each takes a depth and builds a query over sources that are tables or,
while the depth lasts, queries drawn from the same list. A new construct is one more entry: it is then nested in
all others, and they in it.

>>> sorted(CONSTRUCTS)  # doctest: +NORMALIZE_WHITESPACE
['among groups', 'asof join', 'collected', 'common table', 'compared outer join', 'computed', 'condition', 'constant',
 'constant group', 'correlated scalar', 'correlated set', 'current time', 'distinct', 'distinct on', 'duration',
 'except', 'except all', 'exploded', 'filter', 'filtered aggregate', 'global aggregate', 'group', 'grouped condition',
 'grouping sets', 'having', 'hop', 'inequality join', 'inner join', 'intersect', 'intersect all', 'join of three',
 'lateral', 'limited subquery', 'mark', 'ordered', 'ordered window', 'outer aggregate', 'outer join', 'outer joins',
 'outer value', 'parenthesised', 'partition aggregate', 'pivot', 'plain columns', 'recursion', 'scalar subquery',
 'scalar value', 'semi-join', 'series', 'session', 'shared set', 'top', 'top of each key', 'tumble', 'union',
 'union all', 'union by name', 'unpivot', 'values', 'window subquery']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hypothesis import strategies as st

from tests.property import subqueries, timed
from tests.property.composer import CASTS, OPERATORS, Composer, Construct, Query, Source
from tests.property.queries import LITERALS, SCHEMAS, TIMED, Schema


def _filter(composer: Composer, depth: int) -> Query:
    source = composer.source(depth)
    where = [composer.predicate(source.columns) for _ in range(composer.draw(st.integers(1, 2)))]
    return composer.select(composer.terms(source.columns), source.text, where=where)


def _computed(composer: Composer, depth: int) -> Query:
    source = composer.source(depth)
    return composer.select(composer.terms(source.columns, computed=90), source.text)


def _distinct(composer: Composer, depth: int) -> Query:
    source = composer.joined(depth, ["JOIN", "LEFT JOIN"], composer.draw(st.integers(1, 2)))
    return composer.select(composer.terms(source.columns), source.text, distinct=True)


def _distinct_on(composer: Composer, depth: int) -> Query:
    """The first row of each key, by all columns, so that ties are equal rows."""
    source = composer.joined(depth, ["JOIN", "LEFT JOIN"], composer.draw(st.integers(1, 2)))
    keys = ", ".join(
        text for text, _ in [composer.term(source.columns) for _ in range(composer.draw(st.integers(1, 2)))]
    )
    every = ", ".join(f"{text} {composer.direction()}" for text, _ in composer.shuffled(source.columns))
    query = composer.select(composer.terms(source.columns), source.text)
    limit = composer.pick(["", "", " LIMIT 2"])
    text = query.text.replace("SELECT ", f"SELECT DISTINCT ON ({keys}) ", 1)
    return replace(query, text=f"{text} ORDER BY {every}{limit}")


def _join(kinds: Sequence[str], count: int = 2) -> Construct:
    def build(composer: Composer, depth: int) -> Query:
        source = composer.joined(depth, kinds, count)
        where = [composer.predicate(source.columns)] if composer.chance(25) else []
        return composer.select(composer.terms(source.columns), source.text, where=where)

    return build


def _outer_joins(composer: Composer, depth: int) -> Query:
    """Several LEFT JOINs, each to any table before it, with what is asked of rows that have no match."""
    source = composer.joined(depth, ["LEFT JOIN"], composer.draw(st.integers(3, 5)))
    where = []
    if composer.chance(40):
        text, _ = composer.pick(source.columns)
        where.append(composer.pick([f"{text} IS NULL", f"({text} IS NULL OR {composer.predicate(source.columns)})"]))
    if composer.chance(60):
        return composer.select(composer.terms(source.columns), source.text, where=where)
    by = composer.pick(source.columns)
    grouped = composer.select([by, *composer.aggregates(source.columns)], source.text, where=where)
    return replace(grouped, text=f"{grouped.text} GROUP BY {by[0]}")


def _group(composer: Composer, depth: int, having: str = "") -> Query:
    source = composer.joined(depth, ["JOIN", "LEFT JOIN", "CROSS JOIN"], composer.draw(st.integers(1, 2)))
    by = [composer.term(source.columns) for _ in range(composer.draw(st.integers(1, 2)))]
    by = [term for term in dict.fromkeys(by) if "NULL AS" not in term[0]] or [source.columns[0]]
    selected = composer.select([*by, *composer.aggregates(source.columns)], source.text)
    return replace(selected, text=f"{selected.text} GROUP BY {', '.join(text for text, _ in by)}{having}")


def _having(composer: Composer, depth: int) -> Query:
    condition = composer.pick(["COUNT(*) > 1", "COUNT(*) % 2 = 0", "COUNT(*) < 3 AND COUNT(*) > 0"])
    return _group(composer, depth, f" HAVING {condition}")


def _global(composer: Composer, depth: int) -> Query:
    source = composer.joined(depth, ["JOIN", "LEFT JOIN"], composer.draw(st.integers(1, 2)))
    return composer.select(composer.aggregates(source.columns), source.text)


def _plain_columns(composer: Composer, depth: int) -> Query:
    """Columns in any order, some of them twice: rows of one tree leave the kernel as they are."""
    source = composer.joined(depth, ["JOIN"], composer.draw(st.integers(1, 3)))
    terms = [composer.pick(source.columns) for _ in range(composer.draw(st.integers(1, 4)))]
    return composer.select(terms, source.text, distinct=composer.chance(50))


def _filtered_aggregate(composer: Composer, depth: int) -> Query:
    source = composer.joined(depth, ["JOIN", "LEFT JOIN"], composer.draw(st.integers(1, 2)))
    by, condition = composer.pick(source.columns), composer.predicate(source.columns)
    forms = [
        (f"COUNT(*) FILTER (WHERE {condition})", "int"),
        (f"COUNT_IF({condition})", "int"),
        (f"BOOL_OR({condition})", "boolean"),
        (f"BOOL_AND({condition})", "boolean"),
        (f"CASE WHEN COUNT({by[0]}) > 1 THEN 'many' ELSE 'few' END", "string"),
    ]
    terms = [by, *(composer.pick(forms) for _ in range(composer.draw(st.integers(1, 3))))]
    query = composer.select(terms, source.text)
    return replace(query, text=f"{query.text} GROUP BY {by[0]}")


def _shared_set(composer: Composer, depth: int) -> Query:
    """Set operations between rows of one common table."""
    inner = composer.query(depth - 1) if depth > 0 or composer.path else _filter(composer, 0)
    composer.aliases += 1
    name = f"c{composer.aliases}"
    columns = tuple((f"o{i}", domain) for i, domain in enumerate(inner.columns))
    column, domain = composer.pick(columns)

    def side() -> str:
        tails = ["", f" WHERE {composer.predicate(columns)}", f" GROUP BY {column} HAVING COUNT(*) > 1"]
        return f"(SELECT {column} AS z FROM {name}{composer.pick(tails)})"

    text = f"{side()} {composer.pick(OPERATORS).upper()} {side()}"
    if composer.chance(40):
        text = f"({text}) {composer.pick(OPERATORS).upper()} {side()}"
    return Query(f"WITH {name} AS ({inner.text}) SELECT w.z AS o0 FROM ({text}) AS w", (domain,))


def _set_operation(operator: str) -> Construct:
    def operand(composer: Composer, depth: int, domains: Sequence[str]) -> str:
        if composer.path and composer.path[0] in OPERATORS:
            return f"({of_domains(composer, depth - 1, composer.path.pop(0), domains).text})"
        if not composer.path and depth > 0 and composer.chance(40):
            return f"({of_domains(composer, depth - 1, composer.pick(OPERATORS), domains).text})"
        source = composer.joined(depth, ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"], composer.pick([1, 1, 2]))
        terms = [(composer.of_domain(source.columns, domain), domain) for domain in domains]
        where = [composer.predicate(source.columns)] if composer.chance(25) else []
        plain = composer.select(terms, source.text, where=where, distinct=composer.chance(15))
        if composer.chance(10):
            order = ", ".join(f"{i + 1}" for i in range(len(domains)))
            plain = replace(plain, text=f"{plain.text} ORDER BY {order} LIMIT {composer.draw(st.integers(1, 4))}")
        return f"({plain.text})"

    def of_domains(composer: Composer, depth: int, name: str, domains: Sequence[str]) -> Query:
        left, right = operand(composer, depth, domains), operand(composer, depth, domains)
        return Query(f"{left} {name.upper()} {right}", tuple(domains))

    def build(composer: Composer, depth: int) -> Query:
        domains = [composer.pick(["int", "int", "string", "double"]) for _ in range(composer.draw(st.integers(1, 2)))]
        return of_domains(composer, depth, operator, domains)

    return build


def _union_by_name(composer: Composer, depth: int) -> Query:
    """Sides that have the columns in different orders, and perhaps one that the other lacks."""
    domains = [composer.pick(["int", "string", "double"]) for _ in range(composer.draw(st.integers(2, 3)))]
    every = list(range(len(domains)))

    def side(shown: Sequence[int]) -> str:
        source = composer.joined(depth, ["JOIN", "LEFT JOIN"], composer.pick([1, 1, 2]))
        terms = ", ".join(f"{composer.of_domain(source.columns, domains[at])} AS o{at}" for at in shown)
        return f"SELECT {terms} FROM {source.text}"

    # The result has the columns of the left side first.
    left = every[: composer.pick([len(every), len(every) - 1])]
    right = composer.shuffled(every)
    right = right if len(left) < len(every) else right[: composer.pick([len(every), 1])]
    operator = composer.pick(["UNION BY NAME", "UNION ALL BY NAME"])
    return Query(f"{side(left)} {operator} {side(right)}", tuple(domains))


def _top(composer: Composer, depth: int) -> Query:
    """ORDER BY of what is shown, computed or hidden, and of all that is shown at last, so that ties are equal rows."""
    source = composer.joined(depth, ["JOIN", "LEFT JOIN"], composer.draw(st.integers(1, 2)))
    shown = composer.terms(source.columns)
    query = composer.select(shown, source.text)
    hidden = [composer.term(source.columns, 40)[0] for _ in range(composer.draw(st.integers(0, 2)))]
    order = [*hidden, *(f"o{i}" for i in range(len(shown)))]
    keys = ", ".join(
        f"{key} {composer.pick(['ASC', 'DESC'])} NULLS {composer.pick(['FIRST', 'LAST'])}" for key in order
    )
    offset = composer.pick(["", "", " OFFSET 1"])
    limit = composer.draw(st.integers(1, 5))
    return Query(f"{query.text} ORDER BY {keys} LIMIT {limit}{offset}", query.columns, ordered=True)


def _top_of_each_key(composer: Composer, depth: int) -> Query:
    """Ranks with a bound. ROW_NUMBER orders by all columns, so that ties are equal rows."""
    source = composer.joined(depth, ["JOIN", "LEFT JOIN"], composer.draw(st.integers(1, 2)))
    by = ", ".join(text for text, _ in [composer.term(source.columns) for _ in range(composer.draw(st.integers(0, 2)))])
    function = composer.pick(["ROW_NUMBER", "ROW_NUMBER", "RANK", "DENSE_RANK"])
    order = [composer.pick(source.columns)[0]]
    if function == "ROW_NUMBER":
        order += [text for text, _ in source.columns]
    keys = ", ".join(
        f"{key} {composer.pick(['ASC', 'DESC'])} NULLS {composer.pick(['FIRST', 'LAST'])}" for key in order
    )
    rank = f"{function}() OVER ({f'PARTITION BY {by} ' if by else ''}ORDER BY {keys})"
    bound = composer.pick(["= 1", "<= 2", "< 4", "IN (1, 3)", "BETWEEN 1 AND 2"])
    shown = composer.terms(source.columns)
    if composer.chance(40):
        composer.aliases += 1
        ranked = composer.select([*shown, (rank, "int")], source.text)
        name = f"z{composer.aliases}"
        return replace(ranked, text=f"SELECT * FROM ({ranked.text}) AS {name} WHERE {name}.o{len(shown)} {bound}")
    query = composer.select(shown, source.text)
    return replace(query, text=f"{query.text} QUALIFY {rank} {bound}")


def _ordered_window(composer: Composer, depth: int) -> Query:
    """Functions of a row's place in its partition; those that tell equal rows apart order by all columns."""
    source = composer.joined(depth, ["JOIN", "LEFT JOIN"], composer.draw(st.integers(1, 2)))
    by = ", ".join(text for text, _ in [composer.pick(source.columns) for _ in range(composer.draw(st.integers(0, 1)))])
    part = f"PARTITION BY {by} " if by else ""
    terms = composer.terms(source.columns)
    # Functions that tell equal rows apart share one order: with two, which copy is which would be
    # open.
    every = ", ".join(f"{column} {composer.direction()}" for column, _ in composer.shuffled(source.columns))
    for _ in range(composer.draw(st.integers(1, 2))):
        text, domain = composer.pick(source.columns)
        some = f"{composer.pick(source.columns)[0]} {composer.direction()}"
        rows = composer.pick(
            ["UNBOUNDED PRECEDING", "BETWEEN 1 PRECEDING AND 1 FOLLOWING", "BETWEEN 2 PRECEDING AND 1 PRECEDING"]
        )
        listed = text if domain == "string" else "'x'"
        forms = [
            (f"{composer.pick(['RANK', 'DENSE_RANK'])}() OVER ({part}ORDER BY {some})", "int"),
            (f"CUME_DIST() OVER ({part}ORDER BY {some})", "double"),
            (f"COUNT({text}) OVER ({part}ORDER BY {some})", "int"),
            (f"MIN({text}) OVER ({part}ORDER BY {some})" if domain != "boolean" else f"COUNT(*) OVER ({part})", domain),
            (f"ROW_NUMBER() OVER ({part}ORDER BY {every})", "int"),
            (f"{composer.pick(['LAG', 'LEAD'])}({text}) OVER ({part}ORDER BY {every})", domain),
            (f"{composer.pick(['FIRST', 'LAST'])}_VALUE({text}) OVER ({part}ORDER BY {every})", domain),
            (f"COUNT({text}) OVER ({part}ORDER BY {every} ROWS {rows})", "int"),
            (f"LISTAGG({listed}, '-') OVER ({part}ORDER BY {every})", "string"),
        ]
        form = composer.pick(forms)
        terms.append(form if domain != "boolean" or form[1] != "boolean" or "MIN" not in form[0] else forms[2])
    return composer.select(terms, source.text)


def _grouping_sets(composer: Composer, depth: int) -> Query:
    source = composer.joined(depth, ["JOIN", "LEFT JOIN"], composer.draw(st.integers(1, 2)))
    one, other = composer.pick(source.columns), composer.pick(source.columns)
    sets = composer.pick(["ROLLUP ({0}, {1})", "CUBE ({0}, {1})", "GROUPING SETS (({0}), ({1}))", "{0}, ROLLUP ({1})"])
    if one == other:
        sets = "ROLLUP ({0})"
    terms = [one, *composer.aggregates(source.columns), (f"GROUPING({one[0]})", "int")]
    if sets == "{0}, ROLLUP ({1})":
        terms = terms[:-1]
    query = composer.select(terms, source.text)
    return replace(query, text=f"{query.text} GROUP BY {sets.format(one[0], other[0])}")


def _partition_aggregate(composer: Composer, depth: int) -> Query:
    """Aggregates of whole partitions beside the rows, or of groups beside groups."""
    source = composer.joined(depth, ["JOIN", "LEFT JOIN"], composer.draw(st.integers(1, 2)))
    by = [composer.pick(source.columns) for _ in range(composer.draw(st.integers(0, 2)))]
    keys = ", ".join(text for text, _ in by)
    over = f"OVER ({f'PARTITION BY {keys}' if keys else ''})"
    if composer.chance(25):
        group = composer.pick(source.columns)
        terms = [group, ("COUNT(*)", "int"), ("SUM(COUNT(*)) OVER ()", "int")]
        query = composer.select(terms, source.text)
        return replace(query, text=f"{query.text} GROUP BY {group[0]}")
    aggregates = [(f"{text} {over}", domain) for text, domain in composer.aggregates(source.columns)]
    return composer.select([*composer.terms(source.columns), *aggregates], source.text)


def _common_table(composer: Composer, depth: int) -> Query:
    """A query that is named and read once or twice."""
    inner = composer.query(depth - 1) if depth > 0 or composer.path else _filter(composer, 0)
    composer.aliases += 1
    name = f"c{composer.aliases}"
    columns = [(f"{name}.o{i}", domain) for i, domain in enumerate(inner.columns)]
    source = Source(name, tuple(columns))
    if composer.chance(50):
        again = tuple((f"again.o{i}", domain) for i, domain in enumerate(inner.columns))
        kind = composer.pick(["JOIN", "LEFT JOIN"])
        source = Source(f"{name} {kind} {name} AS again ON {composer.equality(columns, again)}", (*columns, *again))
    query = composer.select(composer.terms(source.columns), source.text)
    return replace(query, text=f"WITH {name} AS ({inner.text}) {query.text}")


def _recursion(composer: Composer, depth: int) -> Query:
    """WITH RECURSIVE over a join: as long as there are new rows, or to a depth, with each path or without."""
    base, other = composer.source(depth), composer.source(depth - 1 if depth else 0)
    domains = [composer.pick(["int", "int", "string"]) for _ in range(composer.draw(st.integers(1, 2)))]
    composer.aliases += 1
    name = f"c{composer.aliases}"
    own = tuple((f"{name}.o{i}", domain) for i, domain in enumerate(domains))
    both = (*own, *other.columns)
    terms = [(composer.of_domain(base.columns, domain), domain) for domain in domains]
    # Plain columns: values that are computed of those of the round before might go on for ever.
    steps = [(_plain(composer, both, domain), domain) for domain in domains]
    kind = composer.pick(["JOIN", "JOIN", "LEFT JOIN"])
    source = f"{name} {kind} {other.text} ON {composer.equality(own, other.columns)}"
    where = [composer.predicate(both)] if composer.chance(25) else []
    operator = "UNION"
    if composer.chance(50):
        operator = composer.pick(["UNION", "UNION ALL"])
        terms, steps = [*terms, ("0", "int")], [*steps, (f"{name}.o{len(domains)} + 1", "int")]
        where.append(f"{name}.o{len(domains)} < 2")
    first = composer.select(terms, base.text)
    step = composer.select(steps, source, where=where)
    shown = composer.select(composer.terms(tuple((f"{name}.o{i}", d) for i, (_, d) in enumerate(terms))), name)
    return replace(shown, text=f"WITH RECURSIVE {name} AS ({first.text} {operator} {step.text}) {shown.text}")


def _plain(composer: Composer, columns: Sequence[tuple[str, str]], domain: str) -> str:
    found = [text for text, one in columns if one == domain]
    return f"CAST({composer.pick(found)} AS {CASTS[domain]})"


def _ordered(composer: Composer, depth: int) -> Query:
    """ORDER BY without LIMIT of what is not shown, then of all that is; sometimes without the first rows."""
    source = composer.joined(depth, ["JOIN", "LEFT JOIN"], composer.draw(st.integers(1, 2)))
    shown = composer.terms(source.columns)
    query = composer.select(shown, source.text)
    order = [composer.term(source.columns, 40)[0], *(f"o{i}" for i in range(len(shown)))]
    keys = ", ".join(f"{key} {composer.pick(['ASC', 'DESC'])} NULLS LAST" for key in order)
    offset = composer.pick(["", "", " OFFSET 2"])
    return Query(f"{query.text} ORDER BY {keys}{offset}", query.columns, ordered=True)


def _values(composer: Composer, depth: int) -> Query:
    """A join with rows that are written in the query."""
    source = composer.source(depth)
    composer.aliases += 1
    alias = f"v{composer.aliases}"
    count = composer.draw(st.integers(1, 4))
    rows = [f"({composer.pick(LITERALS['int'])}, {composer.pick([*LITERALS['string'], 'NULL'])})" for _ in range(count)]
    kind = composer.pick(["JOIN", "LEFT JOIN"])
    own = ((f"{alias}.k", "int"), (f"{alias}.s", "string"))
    on = composer.equality(source.columns, own)
    text = f"{source.text} {kind} (VALUES {', '.join(rows)}) AS {alias}(k, s) ON {on}"
    return composer.select(composer.terms((*source.columns, *own)), text)


def _constant(composer: Composer, depth: int) -> Query:
    """A SELECT without FROM, beside a query."""
    domain = composer.pick(["int", "string"])
    source = composer.source(depth)
    left = composer.select([(composer.of_domain(source.columns, domain), domain)], source.text)
    operator = composer.pick(["UNION ALL", "UNION", "EXCEPT"])
    literal = f"CAST({composer.pick(LITERALS[domain])} AS {CASTS[domain]})"
    return Query(f"({left.text}) {operator} (SELECT {literal} AS o0)", (domain,))


def _exploded(composer: Composer, depth: int) -> Query:
    """The elements of an array of columns, as rows."""
    source = composer.source(depth)
    composer.aliases += 1
    alias = f"e{composer.aliases}"
    text, domain = composer.pick(source.columns)
    others = [other for other, found in source.columns if found == domain]
    elements = [text, *(composer.pick(others) for _ in range(composer.draw(st.integers(0, 2))))]
    whole = f"{source.text} LATERAL VIEW EXPLODE(ARRAY({', '.join(elements)})) {alias} AS {alias}_value"
    return composer.select(composer.terms((*source.columns, (f"{alias}.{alias}_value", domain))), whole)


def _turned(composer: Composer, depth: int) -> Query:
    """PIVOT: a column for each of two values; a value that no row has is NULL."""
    source = composer.source(depth)
    by, domain = composer.pick(source.columns)
    inner = f"SELECT {by} AS g, {composer.of_domain(source.columns, 'int')} AS c"
    inner += f", {composer.of_domain(source.columns, 'int')} AS v FROM {source.text}"
    function = composer.pick(["SUM", "MIN", "MAX"])
    composer.aliases += 1
    name = f"z{composer.aliases}"
    turned = f"SELECT * FROM ({inner}) PIVOT ({function}(v) FOR c IN (1 AS p1, 2 AS p2))"
    columns = ((f"{name}.g", domain), (f"{name}.p1", "int"), (f"{name}.p2", "int"))
    return composer.select(columns, f"({turned}) AS {name}")


def _turned_back(composer: Composer, depth: int) -> Query:
    """UNPIVOT: a row for each of two columns that is not NULL."""
    source = composer.source(depth)
    parts = [composer.of_domain(source.columns, "int") for _ in range(2)]
    by, domain = composer.pick(source.columns)
    inner = f"SELECT {by} AS g, {parts[0]} AS p1, {parts[1]} AS p2 FROM {source.text}"
    composer.aliases += 1
    name = f"z{composer.aliases}"
    turned = f"SELECT * FROM ({inner}) UNPIVOT (v FOR k IN (p1, p2))"
    columns = ((f"{name}.g", domain), (f"{name}.k", "string"), (f"{name}.v", "int"))
    return composer.select(columns, f"({turned}) AS {name}")


def _series(composer: Composer, depth: int) -> Query:
    """The dates of a range, and what other rows have to say of them."""
    source = composer.source(depth)
    composer.aliases += 1
    name = f"s{composer.aliases}"
    start, end = composer.pick([("2023-12-30", "2024-01-03"), ("2024-01-01", "2024-01-01")])
    days = f"SELECT EXPLODE(SEQUENCE(DATE '{start}', DATE '{end}', INTERVAL 1 DAY)) AS d"
    on = f"CAST({name}.d AS DATE) = {composer.of_domain(source.columns, 'date')}"
    whole = f"({days}) AS {name} LEFT JOIN {source.text} ON {on}"
    return composer.select(composer.terms(((f"CAST({name}.d AS DATE)", "date"), *source.columns)), whole)


def _collected(composer: Composer, depth: int) -> Query:
    """The values of a group as an array, and its elements as rows again."""
    source = composer.source(depth)
    composer.aliases += 1
    alias = f"e{composer.aliases}"
    key, domain = composer.pick(source.columns)
    value, kind = composer.pick(source.columns)
    function = composer.pick(["COLLECT_LIST", "COLLECT_SET"])
    groups = f"SELECT {key} AS k, {function}({value}) AS l FROM {source.text} GROUP BY {key}"
    whole = f"({groups}) AS g{alias} CROSS JOIN UNNEST(g{alias}.l) AS {alias}({alias}_value)"
    size = f"CAST(SIZE(g{alias}.l) AS BIGINT)"
    columns = ((f"g{alias}.k", domain), (f"{alias}.{alias}_value", kind), (size, "int"))
    return composer.select(composer.terms(columns), whole)


def _constant_group(composer: Composer, depth: int) -> Query:
    source = composer.source(depth)
    query = composer.select(composer.aggregates(source.columns), source.text)
    return replace(query, text=f"{query.text} GROUP BY {composer.pick(['NULL', '1 + 1'])}")


def _parenthesised(composer: Composer, depth: int) -> Query:
    left, right, last = composer.source(depth), composer.source(depth), composer.source(0)
    both = (*left.columns, *right.columns)
    inner = f"({left.text} JOIN {right.text} ON {composer.equality(left.columns, right.columns)})"
    text = f"(({inner}) LEFT JOIN {last.text} ON {composer.equality(both, last.columns)})"
    return composer.select(composer.terms((*both, *last.columns)), text)


def _compared_outer_join(composer: Composer, depth: int) -> Query:
    """Outer, semi- and anti-joins with comparisons between the sides."""
    source, other = composer.source(depth), composer.source(depth)
    parts = [composer.inequality(source.columns, other.columns)]
    parts += [composer.equality(source.columns, other.columns)] if composer.chance(60) else []
    parts += [composer.inequality(source.columns, other.columns)] if composer.chance(30) else []
    kind = composer.pick(["LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
    columns = source.columns if "I JOIN" in kind else (*source.columns, *other.columns)
    text = f"{source.text} {kind} {other.text} ON {' AND '.join(parts)}"
    return composer.select(composer.terms(columns), text)


CONSTRUCTS: Final[dict[str, Construct]] = {
    "filter": _filter,
    "computed": _computed,
    "distinct": _distinct,
    "distinct on": _distinct_on,
    "inner join": _join(["JOIN", "CROSS JOIN"]),
    "join of three": _join(["JOIN"], 3),
    "outer join": _join(["LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]),
    "outer joins": _outer_joins,
    "compared outer join": _compared_outer_join,
    "plain columns": _plain_columns,
    "inequality join": _join(["<"]),
    "condition": subqueries.condition,
    "lateral": subqueries.lateral,
    "limited subquery": subqueries.limited,
    "correlated set": subqueries.correlated_set,
    "mark": subqueries.mark,
    "scalar value": subqueries.scalar_value,
    "outer value": subqueries.outer_value,
    "outer aggregate": subqueries.outer_aggregate,
    "among groups": subqueries.among_groups,
    "scalar subquery": subqueries.scalar,
    "correlated scalar": subqueries.correlated,
    "grouped condition": subqueries.grouped_condition,
    "semi-join": subqueries.semi_join,
    "filtered aggregate": _filtered_aggregate,
    "shared set": _shared_set,
    "group": _group,
    "having": _having,
    "global aggregate": _global,
    "top": _top,
    "ordered": _ordered,
    "values": _values,
    "constant": _constant,
    "collected": _collected,
    "pivot": _turned,
    "unpivot": _turned_back,
    "series": _series,
    "exploded": _exploded,
    "constant group": _constant_group,
    "parenthesised": _parenthesised,
    "top of each key": _top_of_each_key,
    "partition aggregate": _partition_aggregate,
    "ordered window": _ordered_window,
    "grouping sets": _grouping_sets,
    "common table": _common_table,
    "recursion": _recursion,
    "union by name": _union_by_name,
    "window subquery": subqueries.windowed,
    "tumble": timed.tumble,
    "hop": timed.hop,
    "session": timed.session,
    "asof join": timed.asof,
    "duration": timed.duration,
    "current time": timed.current_time,
    **{operator: _set_operation(operator) for operator in OPERATORS},
}
CLOCK: Final = frozenset({"current time"})
TIME: Final = CLOCK | {"tumble", "hop", "session", "duration"}


@st.composite
def over(draw: st.DrawFn, schema: Schema, path: Sequence[str] = (), depth: int = 2, *, clock: bool = False) -> Query:
    """A query over the tables of `schema`, sometimes with an ORDER BY of its own; `clock`: it may ask for the time."""
    constructs = {name: build for name, build in CONSTRUCTS.items() if clock or name not in CLOCK}
    composer = Composer(draw, schema, constructs, path)
    query = composer.query(depth)
    if not query.ordered and composer.chance(15):
        keys = ", ".join(f"{i + 1} {composer.pick(['ASC', 'DESC'])} NULLS LAST" for i in range(len(query.columns)))
        query = replace(query, text=f"{query.text} ORDER BY {keys}", ordered=True)
    return query


@st.composite
def composed(draw: st.DrawFn, path: Sequence[str] = (), *, clock: bool = False) -> tuple[Schema, Query]:
    schema = TIMED if TIME & set(path) else draw(st.sampled_from(SCHEMAS))
    return schema, draw(over(schema, path, clock=clock))
