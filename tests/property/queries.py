"""Random queries of Crown's class, as SQL text.

The columns of the schemas fall into a few domains; only columns of one domain are compared, so that joins hit. Values
are few, so that keys repeat, groups merge and rows come back.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

DOMAINS: dict[str, tuple[Any, ...]] = {
    "int": (0, 1, 2),
    "string": ("", "a", "b", "ab"),
    "double": (-1.5, 0.0, 0.5, 2.0),
    "decimal": (Decimal("-1.25"), Decimal("0.00"), Decimal("3.50")),
    "date": (datetime.date(2024, 1, 31), datetime.date(2024, 2, 29)),
    "boolean": (False, True),
    "wide": (-2, -1, 0, 1, 2, 3, 5, 9),
    "time": tuple(datetime.datetime(2024, 3, 31, 0, minute) for minute in (0, 1, 2, 5, 30)),
}
# Values that equal each other in one sense and not in another, or that other systems cut short.
ODD: dict[str, tuple[Any, ...]] = {
    "string": ("\u00e9", "e\u0301", "a\0b", "\U0001f600", "a "),
    "double": (float("nan"), -0.0),
}
LITERALS: dict[str, tuple[str, ...]] = {
    "int": ("0", "1", "2"),
    "string": ("'a'", "'ab'", "''"),
    "double": ("0.5D", "0.0D"),
    "decimal": ("3.50", "0.00"),
    "date": ("DATE '2024-02-29'",),
    "boolean": ("TRUE",),
    "time": ("TIMESTAMP '2024-03-31 00:02:00Z'",),
    "span": ("INTERVAL '1' MINUTE",),
}
NUMBERS = ("int", "double", "decimal")


@dataclass(frozen=True)
class TableShape:
    name: str
    columns: tuple[tuple[str, str], ...]  # (name, domain)
    primary_key: tuple[str, ...] = ()

    def column(self, name: str) -> str:
        return dict(self.columns)[name]


@dataclass(frozen=True)
class Schema:
    ddl: str
    tables: tuple[TableShape, ...]

    def table(self, name: str) -> TableShape:
        return next(table for table in self.tables if table.name == name)


TIMED = Schema(
    "CREATE TABLE q (k INT, ts TIMESTAMP, v INT); CREATE TABLE h (k INT NOT NULL, ts TIMESTAMP NOT NULL, d DATE)",
    (
        TableShape("q", (("k", "int"), ("ts", "time"), ("v", "int"))),
        TableShape("h", (("k", "int"), ("ts", "time"), ("d", "date"))),
    ),
)
SCHEMAS = (
    Schema(
        "CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT); CREATE TABLE t (c INT, d INT, e DOUBLE)",
        (
            TableShape("r", (("a", "int"), ("b", "int"))),
            TableShape("s", (("b", "int"), ("c", "int"))),
            TableShape("t", (("c", "int"), ("d", "int"), ("e", "double"))),
        ),
    ),
    Schema(
        "CREATE TABLE p (id BIGINT NOT NULL PRIMARY KEY, name STRING, age BIGINT);"
        "CREATE TABLE k (x BIGINT NOT NULL, y BIGINT NOT NULL, since DATE, PRIMARY KEY (x, y));"
        "CREATE TABLE m (author BIGINT, tag STRING, score DECIMAL(10,2))",
        (
            TableShape("p", (("id", "int"), ("name", "string"), ("age", "int")), ("id",)),
            TableShape("k", (("x", "int"), ("y", "int"), ("since", "date")), ("x", "y")),
            TableShape("m", (("author", "int"), ("tag", "string"), ("score", "decimal"))),
        ),
    ),
    Schema(
        "CREATE TABLE g (src INT NOT NULL, dst INT NOT NULL); CREATE TABLE f (n INT NOT NULL, ok BOOLEAN, w DOUBLE)",
        (
            TableShape("g", (("src", "int"), ("dst", "int"))),
            TableShape("f", (("n", "int"), ("ok", "boolean"), ("w", "double"))),
        ),
    ),
    TIMED,
)
NOT_NULL = {("p", "id"), ("k", "x"), ("k", "y"), ("g", "src"), ("g", "dst"), ("f", "n"), ("h", "k"), ("h", "ts")}


@dataclass(frozen=True)
class Atom:
    alias: str
    table: TableShape


Term = tuple[str, str]  # SQL text and domain


@dataclass(frozen=True)
class From:
    """A FROM clause with what WHERE must add, and the columns that can be used above it."""

    text: str
    where: tuple[str, ...]
    columns: tuple[Term, ...]


def _columns(atoms: list[Atom]) -> list[Term]:
    return [(f"{atom.alias}.{name}", domain) for atom in atoms for name, domain in atom.table.columns]


@st.composite
def equality(draw: st.DrawFn, left: list[Atom], right: list[Atom]) -> str:
    """`x.a = y.b` between columns of one domain, integers mostly."""
    pairs = [
        (a, b) for a, da in _columns(left) for b, db in _columns(right) if da == db and (da == "int" or a[3:] == b[3:])
    ]
    one, other = draw(st.sampled_from(pairs))
    return f"{one} = {other}"


@st.composite
def predicate(draw: st.DrawFn, columns: tuple[Term, ...]) -> str:
    column, domain = draw(st.sampled_from(columns))
    literal = draw(st.sampled_from(LITERALS[domain]))
    forms = [f"{column} IS NULL", f"{column} IS NOT NULL", f"{column} = {literal}", f"{column} <> {literal}"]
    if domain != "boolean":
        forms += [f"{column} >= {literal}", f"{column} < {literal}", f"NOT ({column} > {literal})"]
    if domain == "int":
        forms += [
            f"{column} IN (0, 2)",
            f"{column} BETWEEN 1 AND 2",
            f"{column} % 2 = 0",
            f"({column} = 1 OR {column} IS NULL)",
        ]
    if domain == "string":
        forms += [f"{column} LIKE 'a%'"]
    partners = [other for other, d in columns if d == domain and other != column and domain in ("int", "double")]
    if partners:
        other = draw(st.sampled_from(partners))
        operator = draw(st.sampled_from(["<>", "<", "<=", ">", ">="]))
        forms += [f"{column} {operator} {other}", f"{column} < {other}"]
        forms += [f"{column} BETWEEN {other} - 1 AND {other} + 1"]
        forms += [f"({column} = {other} OR {column} = {literal})"]
    return draw(st.sampled_from(forms))


@st.composite
def condition(draw: st.DrawFn, schema: Schema, columns: tuple[Term, ...], number: int) -> str:
    """[NOT] EXISTS or [NOT] IN of a subquery over one or two tables."""
    outer = [column for column, domain in columns if domain == "int"]
    inner = Atom(f"e{number}", draw(st.sampled_from(schema.tables)))
    inside = _columns([inner])
    integers = [column for column, domain in inside if domain == "int"]
    text, where = f"{inner.table.name} {inner.alias}", []
    if draw(st.booleans()):
        second = Atom(f"d{number}", draw(st.sampled_from(schema.tables)))
        text += f" JOIN {second.table.name} {second.alias} ON {draw(equality([inner], [second]))}"
    if draw(st.booleans()):
        where.append(draw(predicate(tuple(inside))))
    no = draw(st.sampled_from(["", "NOT "]))
    if draw(st.booleans()):
        where.append(f"{draw(st.sampled_from(integers))} = {draw(st.sampled_from(outer))}")
        return f"{no}EXISTS (SELECT 1 FROM {text} WHERE {' AND '.join(where)})"
    filter_ = f" WHERE {' AND '.join(where)}" if where else ""
    return f"{draw(st.sampled_from(outer))} {no}IN (SELECT {draw(st.sampled_from(integers))} FROM {text}{filter_})"


@st.composite
def inner_joins(draw: st.DrawFn, schema: Schema, largest: int) -> From:
    count = draw(st.integers(1, largest))
    atoms: list[Atom] = []
    text, where = "", []
    for number in range(count):
        atom = Atom(f"x{number}", draw(st.sampled_from(schema.tables)))
        if not atoms:
            text = f"{atom.table.name} {atom.alias}"
        elif count <= 3 and draw(st.integers(0, 9)) == 0:
            text += f" CROSS JOIN {atom.table.name} {atom.alias}"
        else:
            on = [draw(equality(atoms, [atom])) for _ in range(draw(st.sampled_from([1, 1, 1, 2])))]
            if draw(st.booleans()):
                text += f" JOIN {atom.table.name} {atom.alias} ON {' AND '.join(on)}"
            else:
                text += f" CROSS JOIN {atom.table.name} {atom.alias}"
                where += on
        atoms.append(atom)
    return From(text, tuple(where), tuple(_columns(atoms)))


@st.composite
def outer_joins(draw: st.DrawFn, schema: Schema) -> From:
    atoms = [Atom(f"x{number}", draw(st.sampled_from(schema.tables))) for number in range(draw(st.integers(2, 3)))]
    kind = draw(st.sampled_from(["LEFT", "LEFT", "RIGHT", "FULL"]))
    text = f"{atoms[0].table.name} {atoms[0].alias}"
    on = draw(equality(atoms[:1], atoms[1:2]))
    if kind == "LEFT" and draw(st.booleans()):
        on += f" AND {draw(predicate(tuple(_columns(atoms[1:2]))))}"
    text += f" {kind} JOIN {atoms[1].table.name} {atoms[1].alias} ON {on}"
    if len(atoms) == 3:
        second = draw(st.sampled_from(["JOIN", "LEFT JOIN"])) if kind == "LEFT" else "JOIN"
        anchor = atoms[:1] if kind == "LEFT" else atoms[1:2]
        text += f" {second} {atoms[2].table.name} {atoms[2].alias} ON {draw(equality(anchor, atoms[2:]))}"
    return From(text, (), tuple(_columns(atoms)))


@st.composite
def scalar(draw: st.DrawFn, columns: tuple[Term, ...]) -> Term:
    column, domain = draw(st.sampled_from(columns))
    if domain == "int" and draw(st.integers(0, 3)) == 0:
        form = draw(st.sampled_from(["{0} + 1", "{0} * 2", "COALESCE({0}, -1)", "CASE WHEN {0} > 1 THEN 1 ELSE 0 END"]))
        return form.format(column), domain
    return column, domain


@st.composite
def aggregate(draw: st.DrawFn, columns: tuple[Term, ...]) -> str:
    column, domain = draw(st.sampled_from(columns))
    forms = ["COUNT(*)", "COUNT({0})", "COUNT(DISTINCT {0})"]
    if domain != "boolean":
        forms += ["MIN({0})", "MAX({0})"]
    if domain in NUMBERS:
        forms += ["SUM({0})", "AVG({0})", "SUM({0})"]
    text = draw(st.sampled_from(forms)).format(column)
    integers = [c for c, d in columns if d == "int"]
    if domain == "int" and draw(st.integers(0, 4)) == 0:
        text = f"SUM({column} * {draw(st.sampled_from(integers))})"
    return text


@st.composite
def select(draw: st.DrawFn, schema: Schema, largest: int = 5) -> str:
    if draw(st.integers(0, 4)) == 0:
        source = draw(outer_joins(schema))
    else:
        source = draw(inner_joins(schema, largest))
    where = [*source.where]
    where += [draw(predicate(source.columns)) for _ in range(draw(st.sampled_from([0, 0, 1, 2])))]
    if draw(st.integers(0, 3)) == 0:
        where.append(draw(condition(schema, source.columns, 0)))
    tail = f" FROM {source.text}" + (f" WHERE {' AND '.join(where)}" if where else "")
    kind = draw(st.sampled_from(["bag", "distinct", "group", "group", "global"]))
    if kind in ("bag", "distinct"):
        terms = draw(st.lists(scalar(source.columns), min_size=1, max_size=4))
        names = ", ".join(f"{text} AS o{i}" for i, (text, _) in enumerate(terms))
        return f"SELECT {'DISTINCT ' if kind == 'distinct' else ''}{names}{tail}"
    functions = draw(st.lists(aggregate(source.columns), min_size=1, max_size=3))
    groups = []
    if kind == "group":
        groups = draw(st.lists(st.sampled_from([c for c, _ in source.columns]), min_size=1, max_size=2, unique=True))
    names = ", ".join(
        [f"{g} AS g{i}" for i, g in enumerate(groups)] + [f"{f} AS f{i}" for i, f in enumerate(functions)]
    )
    sql = f"SELECT {names}{tail}" + (f" GROUP BY {', '.join(groups)}" if groups else "")
    if draw(st.integers(0, 3)) == 0:
        conditions = ["COUNT(*) > 1", "COUNT(*) % 2 = 0", f"COUNT({source.columns[0][0]}) >= 1"]
        sql += f" HAVING {draw(st.sampled_from(conditions))}"
    return sql


@st.composite
def integer_select(draw: st.DrawFn, schema: Schema, width: int) -> str:
    """A branch of a set operation: `width` integer columns."""
    source = draw(inner_joins(schema, 3))
    where = [*source.where, *([draw(predicate(source.columns))] if draw(st.booleans()) else [])]
    integers = [column for column, domain in source.columns if domain == "int"]
    names = ", ".join(f"CAST({draw(st.sampled_from(integers))} AS BIGINT) AS o{i}" for i in range(width))
    return f"SELECT {names} FROM {source.text}" + (f" WHERE {' AND '.join(where)}" if where else "")


@st.composite
def set_operation(draw: st.DrawFn, schema: Schema) -> str:
    width = draw(st.integers(1, 2))
    operator = draw(st.sampled_from(["UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"]))
    return f"{draw(integer_select(schema, width))} {operator} {draw(integer_select(schema, width))}"


@st.composite
def top(draw: st.DrawFn, schema: Schema) -> str:
    """ORDER BY all columns, so that DuckDB has no choice among ties."""
    width = draw(st.integers(1, 3))
    order = ", ".join(
        f"o{i} {draw(st.sampled_from(['ASC', 'DESC']))} NULLS {draw(st.sampled_from(['FIRST', 'LAST']))}"
        for i in range(width)
    )
    offset = draw(st.sampled_from(["", "", " OFFSET 1"]))
    return f"{draw(integer_select(schema, width))} ORDER BY {order} LIMIT {draw(st.integers(1, 4))}{offset}"


@st.composite
def queries(draw: st.DrawFn) -> tuple[Schema, str]:
    schema = draw(st.sampled_from(SCHEMAS))
    kind = draw(st.sampled_from([select, select, select, select, set_operation, top]))
    return schema, draw(kind(schema))
