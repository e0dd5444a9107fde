"""Random queries that nest every construct in every other, as SQL text.

`CONSTRUCTS` is the list of what can be drawn. Each takes a depth and builds a query over sources that are tables or,
while the depth lasts, queries drawn from the same list. A new construct is one more entry: it is then nested in
all others, and they in it.

>>> sorted(CONSTRUCTS)  # doctest: +NORMALIZE_WHITESPACE
['among groups', 'common table', 'compared outer join', 'computed', 'condition', 'constant', 'constant group',
 'correlated scalar', 'distinct', 'except', 'except all', 'exploded', 'filter', 'filtered aggregate',
 'global aggregate', 'group', 'grouped condition', 'grouping sets', 'having', 'inequality join', 'inner join',
 'intersect', 'intersect all', 'join of three', 'lateral', 'mark', 'ordered', 'ordered window', 'outer join',
 'outer joins', 'parenthesised', 'partition aggregate', 'plain columns', 'scalar subquery', 'scalar value',
 'semi-join', 'shared set', 'top', 'top of each key', 'union', 'union all', 'values']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from hypothesis import strategies as st

from tests.property.queries import LITERALS, SCHEMAS, Schema

T = TypeVar("T")
Term = tuple[str, str]  # SQL text and domain

CASTS = {
    "int": "BIGINT",
    "string": "STRING",
    "double": "DOUBLE",
    "decimal": "DECIMAL(20,2)",
    "date": "DATE",
    "boolean": "BOOLEAN",
}
COMPUTED: dict[str, tuple[tuple[str, str], ...]] = {
    "int": (
        ("{0} + 0", "int"),
        ("{0} - 1", "int"),
        ("{0} * {0}", "int"),
        ("-{0}", "int"),
        ("{0} % 2", "int"),
        ("COALESCE({0}, -1)", "int"),
        ("NULLIF({0}, 1)", "int"),
        ("CASE WHEN {0} > 1 THEN 1 WHEN {0} IS NULL THEN 5 ELSE 0 END", "int"),
        ("CAST({0} AS STRING)", "string"),
        ("CAST({0} AS DOUBLE)", "double"),
        ("{0} > 0", "boolean"),
        ("CAST(NULL AS BIGINT)", "int"),
    ),
    "string": (
        ("UPPER({0})", "string"),
        ("CONCAT({0}, 'z')", "string"),
        ("SUBSTRING({0}, 1, 1)", "string"),
        ("LENGTH({0})", "int"),
        ("COALESCE({0}, 'none')", "string"),
        ("CASE WHEN {0} = 'a' THEN 'A' ELSE {0} END", "string"),
    ),
    "double": (("{0} + 0.5D", "double"), ("{0} * 2", "double"), ("CAST(FLOOR({0}) AS BIGINT)", "int")),
    "decimal": (("{0} + 1", "decimal"), ("CAST({0} AS DOUBLE)", "double"), ("-{0}", "decimal")),
    "date": (("COALESCE({0}, DATE '2024-01-01')", "date"),),
    "boolean": (("NOT {0}", "boolean"), ("CASE WHEN {0} THEN 1 ELSE 0 END", "int")),
}
AGGREGATES: dict[str, tuple[tuple[str, str], ...]] = {
    "int": (
        ("SUM({0})", "int"),
        ("AVG({0})", "double"),
        ("SUM(DISTINCT {0})", "int"),
        ("SUM({0} * {0})", "int"),
        ("STDDEV({0})", "double"),
        ("BIT_XOR({0})", "int"),
        ("MEDIAN({0})", "double"),
        ("MAX_BY({0}, {0})", "int"),
        ("MIN({0} + 1)", "int"),
    ),
    "double": (("SUM({0})", "double"), ("AVG({0})", "double"), ("VAR_POP({0})", "double")),
    "decimal": (("SUM({0})", "decimal"), ("AVG({0})", "double")),
    "string": (("LISTAGG({0}, '-') WITHIN GROUP (ORDER BY {0})", "string"),),
    "date": (),
    "boolean": (),
}
COUNTS = (("COUNT(*)", "int"), ("COUNT({0})", "int"), ("COUNT(DISTINCT {0})", "int"))


@dataclass(frozen=True)
class Query:
    """`columns` are named o0, o1, ...; `ordered`: the order of its rows is determined, but for equal rows."""

    text: str
    columns: tuple[str, ...]  # domains
    ordered: bool = False


@dataclass(frozen=True)
class Source:
    """Something for FROM, and the columns that it shows."""

    text: str
    columns: tuple[Term, ...]


class Composer:
    """Draws the parts of one query; `path` are the constructs to begin with, from the outermost in."""

    def __init__(self, draw: st.DrawFn, schema: Schema, path: Sequence[str] = ()) -> None:
        self.draw = draw
        self.schema = schema
        self.path = list(path)
        self.aliases = 0

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) < percent

    def pick(self, choices: Sequence[T]) -> T:
        return self.draw(st.sampled_from(list(choices)))

    def query(self, depth: int) -> Query:
        name = self.path.pop(0) if self.path else self.pick(list(CONSTRUCTS))
        return CONSTRUCTS[name](self, depth)

    def source(self, depth: int) -> Source:
        """A table, or a query in its place."""
        self.aliases += 1
        alias = f"x{self.aliases}"
        if self.path or (depth > 0 and self.chance(60)):
            inner = self.query(depth - 1)
            columns = tuple((f"{alias}.o{i}", domain) for i, domain in enumerate(inner.columns))
            return Source(f"({inner.text}) AS {alias}", columns)
        table = self.pick(self.schema.tables)
        return Source(f"{table.name} AS {alias}", tuple((f"{alias}.{name}", domain) for name, domain in table.columns))

    def term(self, columns: Sequence[Term], computed: int = 25) -> Term:
        text, domain = self.pick(columns)
        if not self.chance(computed):
            return text, domain
        form, result = self.pick(COMPUTED[domain])
        return form.format(text), result

    def of_domain(self, columns: Sequence[Term], domain: str) -> str:
        """An expression of the domain, cast to its common type."""
        fitting = [text for text, found in columns if found == domain]
        if domain == "string" and not fitting:
            fitting = [f"CAST({text} AS STRING)" for text, found in columns if found == "int"]
        text = self.pick(fitting) if fitting else self.pick(LITERALS[domain])
        if fitting and self.chance(25):
            forms = [form for form, result in COMPUTED[domain] if result == domain]
            text = self.pick(forms).format(text)
        return f"CAST({text} AS {CASTS[domain]})"

    def select(self, terms: Sequence[Term], source: str, *, where: Sequence[str] = (), distinct: bool = False) -> Query:
        names = ", ".join(f"{text} AS o{i}" for i, (text, _) in enumerate(terms))
        filters = f" WHERE {' AND '.join(where)}" if where else ""
        word = "DISTINCT " if distinct else ""
        return Query(f"SELECT {word}{names} FROM {source}{filters}", tuple(domain for _, domain in terms))

    def terms(self, columns: Sequence[Term], computed: int = 25) -> list[Term]:
        return [self.term(columns, computed) for _ in range(self.draw(st.integers(1, 3)))]

    def predicate(self, columns: Sequence[Term]) -> str:
        text, domain = self.pick(columns)
        literal = self.pick(LITERALS[domain])
        forms = [
            f"{text} IS NULL",
            f"{text} IS NOT NULL",
            f"{text} <> {literal}",
            f"({text} = {literal} OR {text} IS NULL)",
        ]
        if domain != "boolean":
            forms += [f"{text} >= {literal}", f"NOT ({text} > {literal})"]
        others = [other for other, found in columns if found == domain and other != text]
        if others:
            forms += [f"{text} = {self.pick(others)}", f"{text} <> {self.pick(others)}"]
            if domain != "boolean":
                forms += [f"{text} < {self.pick(others)}"]
        return self.pick(forms)

    def pairs(self, left: Sequence[Term], right: Sequence[Term]) -> list[tuple[str, str]]:
        """Columns that can be a key of a join."""
        return [(a, b) for a, one in left for b, two in right if one == two and one != "double"]

    def equality(self, left: Sequence[Term], right: Sequence[Term]) -> str:
        pairs = self.pairs(left, right)
        if not pairs:
            return f"{self.predicate(left)} AND {self.predicate(right)}"
        one, other = self.pick(pairs)
        return f"{one} = {other}"

    def joined(self, depth: int, kinds: Sequence[str], count: int = 2) -> Source:
        source = self.source(depth)
        for _ in range(count - 1):
            other = self.source(depth)
            kind = self.pick(kinds)
            if kind == "CROSS JOIN":
                text = f"{source.text} CROSS JOIN {other.text}"
            elif kind == "<":
                text = f"{source.text} JOIN {other.text} ON {self.inequality(source.columns, other.columns)}"
            else:
                on = self.equality(source.columns, other.columns)
                if kind != "FULL JOIN" and self.chance(25):
                    on += f" AND {self.predicate((*source.columns, *other.columns))}"
                text = f"{source.text} {kind} {other.text} ON {on}"
            source = Source(text, (*source.columns, *other.columns))
        return source

    def direction(self) -> str:
        return f"{self.pick(['ASC', 'DESC'])} NULLS {self.pick(['FIRST', 'LAST'])}"

    def inequality(self, left: Sequence[Term], right: Sequence[Term]) -> str:
        pairs = [(a, b) for a, one in left for b, two in right if one == two and one in ("int", "double", "date")]
        if not pairs:
            return self.equality(left, right)
        one, other = self.pick(pairs)
        return f"{one} {self.pick(['<', '<=', '>', '>='])} {other}"

    def correlation(self, left: Sequence[Term], right: Sequence[Term]) -> str:
        """What chooses the rows of a subquery for an outer row."""
        parts = [self.equality(left, right)] if self.chance(70) else []
        parts += [self.inequality(left, right)] if self.chance(25) else []
        parts += [self.predicate(right)] if self.chance(20) else []
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def test(self, columns: Sequence[Term], depth: int, totals: Sequence[Term] = ()) -> str:
        """EXISTS, IN or a quantified comparison with a subquery, as a value; `totals` may only be compared with it."""
        inner = self.source(depth)
        rows = f"FROM {inner.text}{self.correlation(columns, inner.columns)}"
        comparable = [(a, b) for a, one in (*columns, *totals) for b, two in inner.columns if one == two != "boolean"]
        if not comparable or self.chance(40):
            return f"{self.pick(['', 'NOT '])}EXISTS (SELECT 1 {rows})"
        one, other = self.pick(comparable)
        if self.chance(50):
            return f"{one} {self.pick(['', 'NOT '])}IN (SELECT {other} {rows})"
        operator = f"{self.pick(['=', '<>', '<', '<=', '>', '>='])} {self.pick(['ANY', 'ALL'])}"
        return f"{one} {operator} (SELECT {other} {rows})"

    def scalar(self, columns: Sequence[Term], depth: int) -> Term:
        """An aggregate of the rows that a subquery has for an outer row."""
        inner = self.source(depth)
        text, domain = self.pick(inner.columns)
        extremes = () if domain == "boolean" else (("MIN({0})", domain), ("MAX({0})", domain))
        form, result = self.pick(
            [*COUNTS, *extremes, ("COALESCE(MAX({0}), MIN({0}))", domain), ("COUNT(*) + 1", "int")]
        )
        return f"(SELECT {form.format(text)} FROM {inner.text}{self.correlation(columns, inner.columns)})", result


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


def _join(kinds: Sequence[str], count: int = 2) -> Callable[[Composer, int], Query]:
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
    grouped = composer.select([by, *_aggregates(composer, source.columns)], source.text, where=where)
    return replace(grouped, text=f"{grouped.text} GROUP BY {by[0]}")


def _condition(composer: Composer, depth: int) -> Query:
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


def _aggregates(composer: Composer, columns: Sequence[Term]) -> list[Term]:
    found = []
    for _ in range(composer.draw(st.integers(1, 3))):
        text, domain = composer.pick(columns)
        extremes = () if domain == "boolean" else (("MIN({0})", domain), ("MAX({0})", domain))
        form, result = composer.pick([*COUNTS, *AGGREGATES[domain], *extremes])
        found.append((form.format(text), result))
    return found


def _group(composer: Composer, depth: int, having: str = "") -> Query:
    source = composer.joined(depth, ["JOIN", "LEFT JOIN", "CROSS JOIN"], composer.draw(st.integers(1, 2)))
    by = [composer.term(source.columns) for _ in range(composer.draw(st.integers(1, 2)))]
    by = [term for term in dict.fromkeys(by) if "NULL AS" not in term[0]] or [source.columns[0]]
    selected = composer.select([*by, *_aggregates(composer, source.columns)], source.text)
    return replace(selected, text=f"{selected.text} GROUP BY {', '.join(text for text, _ in by)}{having}")


def _having(composer: Composer, depth: int) -> Query:
    condition = composer.pick(["COUNT(*) > 1", "COUNT(*) % 2 = 0", "COUNT(*) < 3 AND COUNT(*) > 0"])
    return _group(composer, depth, f" HAVING {condition}")


def _global(composer: Composer, depth: int) -> Query:
    source = composer.joined(depth, ["JOIN", "LEFT JOIN"], composer.draw(st.integers(1, 2)))
    return composer.select(_aggregates(composer, source.columns), source.text)


def _scalar(composer: Composer, depth: int) -> Query:
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


def _correlated(composer: Composer, depth: int) -> Query:
    """A comparison with an aggregate of the rows that share a key with the outer row."""
    source, inner = composer.source(depth), composer.source(0)
    keys = composer.pairs(source.columns, inner.columns)
    values = [text for text, domain in inner.columns if domain == "int"]
    integers = [text for text, domain in source.columns if domain == "int"]
    if not keys or not values or not integers:
        return composer.select(composer.terms(source.columns), source.text)
    outside, inside = composer.pick(keys)
    form = composer.pick(["MAX({0})", "MIN({0})", "SUM({0})", "SUM(DISTINCT {0})"])
    scalar = f"(SELECT {form.format(composer.pick(values))} FROM {inner.text} WHERE {outside} = {inside})"
    where = f"{composer.pick(integers)} {composer.pick(['=', '<>', '<', '>='])} {scalar}"
    return composer.select(composer.terms(source.columns), source.text, where=[where])


def _grouped_condition(composer: Composer, depth: int) -> Query:
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


def _plain_columns(composer: Composer, depth: int) -> Query:
    """Columns in any order, some of them twice: rows of one tree leave the kernel as they are."""
    source = composer.joined(depth, ["JOIN"], composer.draw(st.integers(1, 3)))
    terms = [composer.pick(source.columns) for _ in range(composer.draw(st.integers(1, 4)))]
    return composer.select(terms, source.text, distinct=composer.chance(50))


def _semi_join(composer: Composer, depth: int) -> Query:
    source, inner = composer.source(depth), composer.source(depth)
    kind = composer.pick(["LEFT SEMI JOIN", "LEFT ANTI JOIN"])
    text = f"{source.text} {kind} {inner.text} ON {composer.equality(source.columns, inner.columns)}"
    return composer.select(composer.terms(source.columns), text)


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


def _set_operation(operator: str) -> Callable[[Composer, int], Query]:
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
    for _ in range(composer.draw(st.integers(1, 2))):
        text, domain = composer.pick(source.columns)
        some = f"{composer.pick(source.columns)[0]} {composer.direction()}"
        every = ", ".join([some, *(f"{column} {composer.direction()}" for column, _ in source.columns)])
        rows = composer.pick(
            ["UNBOUNDED PRECEDING", "BETWEEN 1 PRECEDING AND 1 FOLLOWING", "BETWEEN 2 PRECEDING AND 1 PRECEDING"]
        )
        forms = [
            (f"{composer.pick(['RANK', 'DENSE_RANK'])}() OVER ({part}ORDER BY {some})", "int"),
            (f"CUME_DIST() OVER ({part}ORDER BY {some})", "double"),
            (f"COUNT({text}) OVER ({part}ORDER BY {some})", "int"),
            (f"MIN({text}) OVER ({part}ORDER BY {some})" if domain != "boolean" else f"COUNT(*) OVER ({part})", domain),
            (f"ROW_NUMBER() OVER ({part}ORDER BY {every})", "int"),
            (f"{composer.pick(['LAG', 'LEAD'])}({text}) OVER ({part}ORDER BY {every})", domain),
            (f"{composer.pick(['FIRST', 'LAST'])}_VALUE({text}) OVER ({part}ORDER BY {every})", domain),
            (f"COUNT({text}) OVER ({part}ORDER BY {every} ROWS {rows})", "int"),
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
    terms = [one, *_aggregates(composer, source.columns), (f"GROUPING({one[0]})", "int")]
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
    aggregates = [(f"{text} {over}", domain) for text, domain in _aggregates(composer, source.columns)]
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


def _constant_group(composer: Composer, depth: int) -> Query:
    source = composer.source(depth)
    query = composer.select(_aggregates(composer, source.columns), source.text)
    return replace(query, text=f"{query.text} GROUP BY {composer.pick(['NULL', '1 + 1'])}")


def _parenthesised(composer: Composer, depth: int) -> Query:
    left, right, last = composer.source(depth), composer.source(depth), composer.source(0)
    both = (*left.columns, *right.columns)
    inner = f"({left.text} JOIN {right.text} ON {composer.equality(left.columns, right.columns)})"
    text = f"(({inner}) LEFT JOIN {last.text} ON {composer.equality(both, last.columns)})"
    return composer.select(composer.terms((*both, *last.columns)), text)


def _mark(composer: Composer, depth: int) -> Query:
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
        text = f"{source.text} {composer.pick(['JOIN', 'LEFT JOIN'])} {other.text} ON {on}"
        return composer.select(composer.terms((*source.columns, *other.columns)), text)
    where = (
        f"NOT ({' AND '.join(tests)})" if place == "NOT" else " OR ".join([*tests, composer.predicate(source.columns)])
    )
    return composer.select(shown, source.text, where=[where])


def _scalar_value(composer: Composer, depth: int) -> Query:
    """A scalar subquery wherever a value can stand."""
    source = composer.source(depth)
    scalar = composer.scalar(source.columns, depth - 1)
    if composer.chance(50):
        return composer.select([*composer.terms(source.columns), scalar], source.text)
    where = [f"({scalar[0]} IS NULL OR {composer.predicate(source.columns)})"]
    return composer.select(composer.terms(source.columns), source.text, where=where)


def _among_groups(composer: Composer, depth: int) -> Query:
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


def _lateral(composer: Composer, depth: int) -> Query:
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


OPERATORS: Final = ("union", "union all", "except", "except all", "intersect", "intersect all")
CONSTRUCTS: Final[dict[str, Callable[[Composer, int], Query]]] = {
    "filter": _filter,
    "computed": _computed,
    "distinct": _distinct,
    "inner join": _join(["JOIN", "CROSS JOIN"]),
    "join of three": _join(["JOIN"], 3),
    "outer join": _join(["LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]),
    "outer joins": _outer_joins,
    "compared outer join": _compared_outer_join,
    "plain columns": _plain_columns,
    "inequality join": _join(["<"]),
    "condition": _condition,
    "lateral": _lateral,
    "mark": _mark,
    "scalar value": _scalar_value,
    "among groups": _among_groups,
    "scalar subquery": _scalar,
    "correlated scalar": _correlated,
    "grouped condition": _grouped_condition,
    "semi-join": _semi_join,
    "filtered aggregate": _filtered_aggregate,
    "shared set": _shared_set,
    "group": _group,
    "having": _having,
    "global aggregate": _global,
    "top": _top,
    "ordered": _ordered,
    "values": _values,
    "constant": _constant,
    "exploded": _exploded,
    "constant group": _constant_group,
    "parenthesised": _parenthesised,
    "top of each key": _top_of_each_key,
    "partition aggregate": _partition_aggregate,
    "ordered window": _ordered_window,
    "grouping sets": _grouping_sets,
    "common table": _common_table,
    **{operator: _set_operation(operator) for operator in OPERATORS},
}


@st.composite
def over(draw: st.DrawFn, schema: Schema, path: Sequence[str] = (), depth: int = 2) -> Query:
    """A query over the tables of `schema`, sometimes with an ORDER BY of its own."""
    composer = Composer(draw, schema, path)
    query = composer.query(depth)
    if not query.ordered and composer.chance(15):
        keys = ", ".join(f"{i + 1} {composer.pick(['ASC', 'DESC'])} NULLS LAST" for i in range(len(query.columns)))
        query = replace(query, text=f"{query.text} ORDER BY {keys}", ordered=True)
    return query


@st.composite
def composed(draw: st.DrawFn, path: Sequence[str] = ()) -> tuple[Schema, Query]:
    schema = draw(st.sampled_from(SCHEMAS))
    return schema, draw(over(schema, path))
