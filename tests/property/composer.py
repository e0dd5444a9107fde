"""Draws the parts of a random query: sources, terms, predicates, subqueries and aggregates, as SQL text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from hypothesis import strategies as st

from tests.property.queries import LITERALS, Schema

T = TypeVar("T")
Term = tuple[str, str]  # SQL text and domain

CASTS = {
    "int": "BIGINT",
    "string": "STRING",
    "double": "DOUBLE",
    "decimal": "DECIMAL(20,2)",
    "date": "DATE",
    "boolean": "BOOLEAN",
    "time": "TIMESTAMP",
    "span": "INTERVAL DAY TO SECOND",
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
        ("TIMES_THREE({0})", "int"),
        ("ELEMENT_AT(ARRAY({0}, 1), 1)", "int"),
        ("NAMED_STRUCT('p', {0}, 'q', 1).p", "int"),
        ("ARRAY_MAX(ARRAY({0}, 1, NULL))", "int"),
        ("SIZE(CONCAT(ARRAY({0}), ARRAY(1)))", "int"),
        ("ARRAY_MAX(TRANSFORM(ARRAY({0}, 1, NULL), e -> e % 3 - {0} % 2))", "int"),
        ("SIZE(FILTER(ARRAY({0}, 1, 2), e -> e > {0} OR e IS NULL))", "int"),
        ("AGGREGATE(ARRAY({0}, 2), CAST(0 AS BIGINT), (total, e) -> total + e % 5)", "int"),
        ("half_of_even({0})", "int"),
        ("shown({0})", "string"),
    ),
    "string": (
        ("UPPER({0})", "string"),
        ("CONCAT({0}, 'z')", "string"),
        ("SUBSTRING({0}, 1, 1)", "string"),
        ("LENGTH({0})", "int"),
        ("ARRAY_JOIN(SPLIT({0}, 'b'), '-')", "string"),
        ("{0} LIKE ANY ('a%', '%b')", "boolean"),
        ("COALESCE({0}, 'none')", "string"),
        ("doubled({0})", "string"),
        ("CASE WHEN {0} = 'a' THEN 'A' ELSE {0} END", "string"),
    ),
    "double": (("{0} + 0.5D", "double"), ("{0} * 2", "double"), ("CAST(FLOOR(LEAST({0}, 9D)) AS BIGINT)", "int")),
    "decimal": (("{0} + 1", "decimal"), ("CAST({0} AS DOUBLE)", "double"), ("-{0}", "decimal")),
    "date": (("COALESCE({0}, DATE '2024-01-01')", "date"),),
    "boolean": (("NOT {0}", "boolean"), ("CASE WHEN {0} THEN 1 ELSE 0 END", "int")),
    "time": (
        ("COALESCE({0}, TIMESTAMP '2024-03-31 00:01:00Z')", "time"),
        ("{0} + INTERVAL 1 MINUTE", "time"),
        ("CAST({0} AS DATE)", "date"),
        ("MINUTE({0})", "int"),
        ("{0} - TIMESTAMP '2024-03-31 00:01:00Z'", "span"),
    ),
    "span": (
        ("COALESCE({0}, INTERVAL '1' MINUTE)", "span"),
        ("{0} - INTERVAL '1' MINUTE", "span"),
        ("-{0}", "span"),
        ("{0} > INTERVAL '0' SECOND", "boolean"),
        ("TIMESTAMP '2024-03-31 00:01:00Z' + {0}", "time"),
    ),
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
        ("REGR_COUNT({0}, {0})", "int"),
        ("REGR_SXX({0}, {0})", "double"),
        ("MIN({0} + 1)", "int"),
    ),
    "double": (("SUM({0})", "double"), ("AVG({0})", "double"), ("VAR_POP({0})", "double")),
    "decimal": (("SUM({0})", "decimal"), ("AVG({0})", "double")),
    "string": (("LISTAGG({0}, '-') WITHIN GROUP (ORDER BY {0})", "string"),),
    "date": (),
    "boolean": (),
    "time": (),
    "span": (),  # DuckDB has no sum of intervals
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

    def __init__(
        self, draw: st.DrawFn, schema: Schema, constructs: Mapping[str, Construct], path: Sequence[str] = ()
    ) -> None:
        self.draw = draw
        self.schema = schema
        self.constructs = constructs
        self.path = list(path)
        self.aliases = 0

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) < percent

    def pick(self, choices: Sequence[T]) -> T:
        return self.draw(st.sampled_from(list(choices)))

    def shuffled(self, choices: Sequence[T]) -> list[T]:
        return self.draw(st.permutations(list(choices)))

    def query(self, depth: int) -> Query:
        name = self.path.pop(0) if self.path else self.pick(list(self.constructs))
        return self.constructs[name](self, depth)

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
        pairs = [
            (a, b) for a, one in left for b, two in right if one == two and one in ("int", "double", "date", "time")
        ]
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

    def aggregates(self, columns: Sequence[Term]) -> list[Term]:
        found = []
        for _ in range(self.draw(st.integers(1, 3))):
            text, domain = self.pick(columns)
            extremes = () if domain == "boolean" else (("MIN({0})", domain), ("MAX({0})", domain))
            form, result = self.pick([*COUNTS, *AGGREGATES[domain], *extremes])
            found.append((form.format(text), result))
        return found


Construct: TypeAlias = Callable[[Composer, int], Query]
OPERATORS = ("union", "union all", "except", "except all", "intersect", "intersect all")
