"""Constructs of `compose` with subqueries: as conditions, as values and in FROM."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tests.property.composer import CASTS, OPERATORS, Composer, Query


def condition(composer: Composer, depth: int) -> Query:
    """[NOT] EXISTS and [NOT] IN."""
    source, inner = composer.source(depth), composer.source(depth)
    word = composer.pick(["", "NOT "])
    pairs = composer.pairs(source.columns, inner.columns)
    if pairs and composer.chance(50):
        outside, inside = composer.pick(pairs)
        where = f"{outside} {word}IN (SELECT {inside} FROM {inner.text})"
    else:
        where = f"{word}EXISTS (SELECT 1 FROM {inner.text} WHERE {composer.equality(source.columns, inner.columns)})"
    return composer.select(composer.terms(source.columns), source.text, where=[where])


def scalar(composer: Composer, depth: int) -> Query:
    """A comparison with the one row of a global aggregate."""
    source, inner = composer.source(depth), composer.source(0)
    integers = [text for text, domain in source.columns if domain == "int"]
    inside = [text for text, domain in inner.columns if domain == "int"]
    if not integers or not inside:
        return composer.select(composer.terms(source.columns), source.text)
    function = composer.pick(["MAX", "MIN", "COUNT", "SUM"])
    scalar = f"(SELECT {function}({composer.pick(inside)}) FROM {inner.text})"
    where = f"{composer.pick(integers)} {composer.pick(['=', '<', '>='])} {scalar}"
    return composer.select(composer.terms(source.columns), source.text, where=[where])


def correlated(composer: Composer, depth: int) -> Query:
    """A comparison with an aggregate of the rows that share a key with the outer row."""
    source, inner = composer.source(depth), composer.source(0)
    keys = composer.pairs(source.columns, inner.columns)
    values = [text for text, domain in inner.columns if domain == "int"]
    integers = [text for text, domain in source.columns if domain == "int"]
    if not keys or not values or not integers:
        return composer.select(composer.terms(source.columns), source.text)
    outside, inside = composer.pick(keys)
    form = composer.pick(["MAX({0})", "MIN({0})", "SUM({0})", "SUM(DISTINCT {0})", "DISTINCT"])
    subject, shown = composer.pick(integers), form.format(composer.pick(values))
    if form == "DISTINCT":  # of the key, which has one value
        subject, shown = outside, f"DISTINCT {inside}"
    scalar = f"(SELECT {shown} FROM {inner.text} WHERE {outside} = {inside})"
    where = f"{subject} {composer.pick(['=', '<>', '<', '>='])} {scalar}"
    return composer.select(composer.terms(source.columns), source.text, where=[where])


def grouped_condition(composer: Composer, depth: int) -> Query:
    """[NOT] EXISTS and [NOT] IN of groups, of distinct rows and of set operations."""
    source = composer.source(depth)
    inner = composer.joined(depth - 1, ["JOIN", "LEFT JOIN"], composer.draw(st.integers(1, 2)))
    keys = composer.pairs(source.columns, inner.columns)
    if not keys:
        return composer.select(composer.terms(source.columns), source.text)
    outside, inside = composer.pick(keys)
    rows = f"SELECT {inside} FROM {inner.text}"
    forms = [
        f"{outside} {{no}}IN ({rows} GROUP BY {inside} HAVING COUNT(*) > 1)",
        f"{outside} {{no}}IN (SELECT DISTINCT {inside} FROM {inner.text})",
        f"{outside} {{no}}IN (({rows}) {composer.pick(OPERATORS).upper()} ({rows}))",
        f"{{no}}EXISTS (SELECT DISTINCT {inside} FROM {inner.text} WHERE {outside} = {inside})",
    ]
    where = composer.pick(forms).format(no=composer.pick(["", "NOT "]))
    return composer.select(composer.terms(source.columns), source.text, where=[where])


def semi_join(composer: Composer, depth: int) -> Query:
    source, inner = composer.source(depth), composer.source(depth)
    kind = composer.pick(["LEFT SEMI JOIN", "LEFT ANTI JOIN"])
    on = composer.equality(source.columns, inner.columns)
    if composer.chance(30):
        on = f"{on} AND {composer.test((*source.columns, *inner.columns), depth - 1)}"
    text = f"{source.text} {kind} {inner.text} ON {on}"
    return composer.select(composer.terms(source.columns), text)


def mark(composer: Composer, depth: int) -> Query:
    """A test of a subquery wherever a value can stand."""
    source = composer.source(depth)
    tests = [composer.test(source.columns, depth - 1) for _ in range(composer.draw(st.integers(1, 2)))]
    shown = composer.terms(source.columns)
    place = composer.pick(["SELECT", "OR", "CASE", "NOT", "GROUP BY", "aggregate", "ON"])
    if place == "SELECT":
        return composer.select([*shown, *((test, "boolean") for test in tests)], source.text)
    if place == "CASE":
        chosen = (f"CASE WHEN {' OR '.join(tests)} THEN 1 ELSE 0 END", "int")
        return composer.select([*shown, chosen], source.text)
    if place == "GROUP BY":
        counted = composer.select([(tests[0], "boolean"), ("COUNT(*)", "int")], source.text)
        return replace(counted, text=f"{counted.text} GROUP BY {composer.pick(['1', tests[0]])}")
    if place == "aggregate":
        by = composer.pick(source.columns)
        total = (f"SUM(CASE WHEN {tests[0]} THEN 1 ELSE 0 END)", "int")
        counted = composer.select([by, total], source.text)
        return replace(counted, text=f"{counted.text} GROUP BY {by[0]}")
    if place == "ON":
        other = composer.source(0)
        on = f"{composer.equality(source.columns, other.columns)} AND {tests[0]}"
        if composer.chance(50):
            on = f"{composer.test((*source.columns, *other.columns), depth - 1)} AND {on}"
        kind = composer.pick(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        text = f"{source.text} {kind} {other.text} ON {on}"
        return composer.select(composer.terms((*source.columns, *other.columns)), text)
    where = (
        f"NOT ({' AND '.join(tests)})" if place == "NOT" else " OR ".join([*tests, composer.predicate(source.columns)])
    )
    return composer.select(shown, source.text, where=[where])


def scalar_value(composer: Composer, depth: int) -> Query:
    """A scalar subquery wherever a value can stand."""
    source = composer.source(depth)
    scalar = composer.scalar(source.columns, depth - 1)
    if composer.chance(50):
        return composer.select([*composer.terms(source.columns), scalar], source.text)
    where = [f"({scalar[0]} IS NULL OR {composer.predicate(source.columns)})"]
    return composer.select(composer.terms(source.columns), source.text, where=where)


def outer_value(composer: Composer, depth: int) -> Query:
    """A scalar subquery whose output reads the outer row: without FROM, and next to an aggregate."""
    source, inner = composer.source(depth), composer.source(depth - 1)
    integers = [text for text, domain in source.columns if domain == "int"]
    text, domain = composer.pick(source.columns)
    where = f" WHERE {composer.predicate(source.columns)}" if composer.chance(30) else ""
    value = (f"(SELECT {text}{where})", domain)
    if integers and composer.chance(60):
        rows = f"FROM {inner.text}{composer.correlation(source.columns, inner.columns)}"
        having = f" HAVING n > {composer.pick(integers)}" if composer.chance(30) else ""
        value = (f"(SELECT COUNT(*) + {composer.pick(integers)} AS n {rows}{having})", "int")
    return composer.select([*composer.terms(source.columns), value], source.text)


def outer_aggregate(composer: Composer, depth: int) -> Query:
    """Subqueries that compare with an aggregate of the query around them."""
    source, inner = composer.source(depth), composer.source(depth - 1)
    pairs = [p for p in composer.pairs(source.columns, inner.columns) if (p[0], "boolean") not in source.columns]
    by = composer.pick(source.columns)
    if not pairs:
        return replace(query := composer.select([by], source.text), text=f"{query.text} GROUP BY {by[0]}")
    outside, inside = composer.pick(pairs)
    total = f"{composer.pick(['MIN', 'MAX'])}({outside})"
    shown = [by, (f"(SELECT COUNT(*) FROM {inner.text} WHERE {inside} = {total})", "int")]
    query = composer.select(shown, source.text)
    operator = composer.pick(["=", "<", ">=", "<>"])
    test = f"EXISTS (SELECT 1 FROM {inner.text} WHERE {inside} {operator} {total})"
    having = f" HAVING {composer.pick(['', 'NOT '])}{test}" if composer.chance(60) else ""
    return replace(query, text=f"{query.text} GROUP BY {by[0]}{having}")


def among_groups(composer: Composer, depth: int) -> Query:
    """Subqueries that read a group, in SELECT and HAVING."""
    source = composer.source(depth)
    by = composer.pick(source.columns)
    total = composer.pick([("COUNT(*)", "int"), (f"MAX({source.columns[0][0]})", source.columns[0][1])])
    shown = [by, total]
    if composer.chance(50):
        shown.append(composer.scalar([by], depth - 1))
    query = composer.select(shown, source.text)
    having = f" HAVING {composer.test([by], depth - 1, [total])}" if composer.chance(70) else ""
    return replace(query, text=f"{query.text} GROUP BY {by[0]}{having}")


def lateral(composer: Composer, depth: int) -> Query:
    """A subquery in FROM that reads what is to its left."""
    source, inner = composer.source(depth), composer.source(depth - 1)
    composer.aliases += 1
    alias = f"l{composer.aliases}"
    where = composer.correlation(source.columns, inner.columns)
    kind = composer.pick(["plain", "DISTINCT", "GROUP BY", "aggregate"])
    text, domain = composer.pick(inner.columns)
    rows = f"SELECT {text} AS v FROM {inner.text}{where}"
    if kind == "DISTINCT":
        rows = f"SELECT DISTINCT {text} AS v FROM {inner.text}{where}"
    elif kind == "GROUP BY":
        rows, domain = f"SELECT COUNT(*) AS v FROM {inner.text}{where} GROUP BY {text}", "int"
    elif kind == "aggregate":
        rows, domain = f"SELECT COUNT({text}) AS v FROM {inner.text}{where}", "int"
    join = composer.pick(["CROSS JOIN LATERAL ({0}) AS {1}", "LEFT JOIN LATERAL ({0}) AS {1} ON TRUE"])
    columns = [*source.columns, (f"{alias}.v", domain)]
    return composer.select(composer.terms(columns), f"{source.text} {join.format(rows, alias)}")


def limited(composer: Composer, depth: int) -> Query:
    """The first rows of a subquery for each outer row: as a value, as a set and in FROM."""
    source, inner = composer.source(depth), composer.source(depth - 1)
    where = composer.correlation(source.columns, inner.columns)
    text, domain = composer.pick(inner.columns)
    every = ", ".join(f"{column} {composer.direction()}" for column, _ in composer.shuffled(inner.columns))
    offset = composer.pick(["", "", " OFFSET 1"])
    place = composer.pick(["scalar", "IN", "EXISTS", "LATERAL"])
    if place == "scalar":
        value = (f"(SELECT {text} FROM {inner.text}{where} ORDER BY {every} LIMIT 1{offset})", domain)
        return composer.select([*composer.terms(source.columns), value], source.text)
    rows = f"SELECT {text} AS v FROM {inner.text}{where} ORDER BY {every} LIMIT {composer.pick([1, 2])}{offset}"
    subjects = [column for column, found in source.columns if found == domain]
    if place == "LATERAL" or (place == "IN" and not subjects):
        composer.aliases += 1
        alias = f"l{composer.aliases}"
        join = composer.pick(["CROSS JOIN LATERAL ({0}) AS {1}", "LEFT JOIN LATERAL ({0}) AS {1} ON TRUE"])
        columns = [*source.columns, (f"{alias}.v", domain)]
        return composer.select(composer.terms(columns), f"{source.text} {join.format(rows, alias)}")
    word = composer.pick(["", "NOT "])
    test = f"{composer.pick(subjects)} {word}IN ({rows})" if place == "IN" else f"{word}EXISTS ({rows})"
    return composer.select(composer.terms(source.columns), source.text, where=[test])


def windowed(composer: Composer, depth: int) -> Query:
    """Window functions and QUALIFY in a subquery that reads the outer row."""
    source, inner = composer.source(depth), composer.source(depth - 1)
    where = composer.correlation(source.columns, inner.columns)
    every = ", ".join(f"{column} {composer.direction()}" for column, _ in composer.shuffled(inner.columns))
    text, domain = composer.pick(inner.columns)
    by = f"PARTITION BY {composer.pick(inner.columns)[0]} " if composer.chance(40) else ""
    forms = [
        (f"ROW_NUMBER() OVER ({by}ORDER BY {every})", "int"),
        (f"DENSE_RANK() OVER ({by}ORDER BY {text})", "int"),
        (f"COUNT(*) OVER ({by.strip()})", "int"),
        (f"LAG({text}) OVER ({by}ORDER BY {every})", domain),
        (f"COUNT({text}) OVER ({by}ORDER BY {text})", "int"),
    ]
    form, kind = composer.pick(forms)
    rows = f"SELECT {form} AS v FROM {inner.text}{where}"
    if composer.chance(40):
        rank = f"ROW_NUMBER() OVER ({by}ORDER BY {every})"
        rows, kind = f"SELECT {text} AS v FROM {inner.text}{where} QUALIFY {rank} <= {composer.pick([1, 2])}", domain
    place = composer.pick(["EXISTS", "IN", "scalar", "LATERAL"])
    if place == "EXISTS":
        test = f"{composer.pick(['', 'NOT '])}EXISTS ({rows})"
        return composer.select(composer.terms(source.columns), source.text, where=[test])
    subjects = [column for column, found in source.columns if found == kind]
    if place == "IN" and subjects:
        test = f"{composer.pick(subjects)} {composer.pick(['', 'NOT '])}IN ({rows})"
        return composer.select(composer.terms(source.columns), source.text, where=[test])
    composer.aliases += 1
    alias = f"l{composer.aliases}"
    if place == "LATERAL":
        join = composer.pick(["CROSS JOIN LATERAL ({0}) AS {1}", "LEFT JOIN LATERAL ({0}) AS {1} ON TRUE"])
        columns = [*source.columns, (f"{alias}.v", kind)]
        return composer.select(composer.terms(columns), f"{source.text} {join.format(rows, alias)}")
    value = (f"(SELECT COUNT({alias}.v) FROM ({rows}) AS {alias})", "int")
    return composer.select([*composer.terms(source.columns), value], source.text)


def correlated_set(composer: Composer, depth: int) -> Query:
    """A set operation whose sides read the outer row."""
    source, one, other = composer.source(depth), composer.source(depth - 1), composer.source(0)
    text, domain = composer.pick(one.columns)
    operator = composer.pick(OPERATORS).upper()
    sides = [
        f"SELECT CAST({text} AS {CASTS[domain]}) AS v FROM {one.text}"
        f"{composer.correlation(source.columns, one.columns)}",
        f"SELECT {composer.of_domain(other.columns, domain)} AS v FROM {other.text}"
        f"{composer.correlation(source.columns, other.columns)}",
    ]
    rows = f"{sides[0]} {operator} {sides[1]}"
    place = composer.pick(["EXISTS", "NOT EXISTS", "scalar", "LATERAL"])
    if place == "scalar":
        value = (f"(SELECT COUNT(*) FROM ({rows}) AS q)", "int")
        return composer.select([*composer.terms(source.columns), value], source.text)
    if place == "LATERAL":
        composer.aliases += 1
        alias = f"l{composer.aliases}"
        columns = [*source.columns, (f"{alias}.v", domain)]
        return composer.select(composer.terms(columns), f"{source.text} CROSS JOIN LATERAL ({rows}) AS {alias}")
    return composer.select(composer.terms(source.columns), source.text, where=[f"{place} ({rows})"])
