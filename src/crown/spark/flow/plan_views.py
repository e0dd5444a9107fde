"""Plan several views over the same tables: the order in which they are planned, and their common plan.

Queries by name are of two kinds. Those in `maintained` are views with their own result; those in `names` exist only to
be read by others, and are expanded there. Either may read the other kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from crown.errors import CrownError, SchemaError
from crown.ir.columns import stage_columns
from crown.ir.expression import Column, Expression
from crown.ir.plan import OrderBy, Plan, TopStage
from crown.ir.query import Query
from crown.ir.scalars import substitute
from crown.ir.tables import TableColumn
from crown.plan import plan_with_report
from crown.plan.combine_views import add_view, empty_project, view_plan
from crown.plan.explain.report import Report
from crown.spark.checkpoint.canonical import canonical, output_names
from crown.sql import load_schema, parse
from crown.sql.schema.schema import SchemaLike
from crown.sql.schema.tables import ResultSchema
from crown.sql.statements import name_query, names_of


@dataclass(frozen=True)
class PlannedView:
    """A maintained view with its standalone plan."""

    name: str
    query: Query
    plan: Plan
    report: Report


@dataclass(frozen=True)
class Project:
    """`plan` is the common plan of all views, in which equal stages appear once."""

    plan: Plan
    views: tuple[PlannedView, ...]


def plan_views(
    maintained: Mapping[str, str],
    schema: SchemaLike,
    *,
    names: Mapping[str, str] | None = None,
    cells: int = 1,
    dialect: str = "spark",
    where: Callable[[str], str] = "view {}".format,
    canonically: bool = False,
) -> Project:
    """Plan views over the tables of a schema. `where` says where the query of a view is, for messages.

    `canonically`, nothing in the plans depends on names that the texts give to things, apart from views' columns.
    """
    loaded = load_schema(schema)
    texts = {**(names or {}), **maintained}
    texts = dict(sorted(texts.items())) if canonically else texts
    order = list(in_order(texts, (table.name for table in loaded.tables.values()), dialect=dialect, where=where))
    plan = replace(empty_project(), sql=";\n".join(f"CREATE VIEW {name} AS {sql}" for name, sql in texts.items()))
    views: list[PlannedView] = []
    known: dict[str, Plan] = {}
    for name in order:
        with told(where(name)):
            query = parse(texts[name], loaded, dialect=dialect)
            if name not in maintained:
                named = {**loaded.views, name.lower(): name_query(name, texts[name], dialect=dialect)}
                loaded = replace(loaded, views=named)
                continue
            shown = output_names(query.body)
            query = canonical(query) if canonically else query
            own, report = plan_with_report(query, cells=cells, views=known)
            own = replace(own, columns=_renamed(own.columns, shown))
        plan, _ = add_view(plan, name, own)
        known[name] = view_plan(plan, name)
        loaded = replace(loaded, results={**loaded.results, name.lower(): ResultSchema(name, own.columns)})
        views.append(PlannedView(name, query, own, report))
    return Project(plan, tuple(views))


def _renamed(columns: tuple[TableColumn, ...], names: Sequence[str]) -> tuple[TableColumn, ...]:
    return tuple(replace(column, name=name) for column, name in zip(columns, names, strict=True))


def shown_order(plan: Plan, shown: Sequence[str] | None = None) -> tuple[OrderBy, ...]:
    """Return the order of a query's rows by its own columns, or by other names for them; plans name those of the last
    stage.
    """
    last = plan.stages[-1]
    columns = stage_columns(plan)[last.id]
    names = [column.name for column in plan.columns] if shown is None else shown
    value: dict[str, Expression] = {own.name: Column(name, own.type) for own, name in zip(columns, names, strict=True)}
    # The first rows of an order are few, and in that order.
    first = last.order if isinstance(last, TopStage) and not last.partition else ()
    order = plan.order or first
    return tuple(replace(one, expression=substitute(one.expression, value)) for one in order)


def in_order(
    sqls: Mapping[str, str],
    tables: Iterable[str],
    *,
    dialect: str = "spark",
    where: Callable[[str], str] = "view {}".format,
) -> Iterator[str]:
    """Yield the names of queries, each after those that it reads."""
    taken = {table.lower() for table in tables}
    for name in sqls:
        if name.lower() in taken:
            raise SchemaError(
                f"{where(name)}: there is already a table or view {name}",
                code="CROWN-SCHEMA-DUPLICATE",
                hint="give the view another name",
            )
        taken.add(name.lower())
    names = {name.lower(): name for name in sqls}
    reads: dict[str, list[str]] = {}
    for name, sql in sqls.items():
        with told(where(name)):
            reads[name] = sorted(names[n.lower()] for n in names_of(sql, dialect=dialect) if n.lower() in names)
    done: set[str] = set()
    while len(done) < len(sqls):
        ready = [name for name in sqls if name not in done and done.issuperset(reads[name])]
        if not ready:
            circle = _circle(next(name for name in sqls if name not in done), reads, done)
            raise SchemaError(
                f"views read each other in a circle: {' reads '.join(circle)}",
                code="CROWN-SCHEMA-VIEW",
                reason=f"{circle[0]} is in {where(circle[0])}",
                hint="a view reads tables, and views that don't read it",
            )
        done.update(ready)
        yield from ready


def _circle(first: str, reads: Mapping[str, list[str]], done: set[str]) -> list[str]:
    """Return the cycle of names that read each other, starting at the first name that is visited twice."""
    walk = [first]
    while True:
        following = next(name for name in reads[walk[-1]] if name not in done)
        if following in walk:
            return [*walk[walk.index(following) :], following]
        walk.append(following)


@contextmanager
def told(where: str) -> Iterator[None]:
    """Say in errors where the query is."""
    try:
        yield
    except CrownError as error:
        raise type(error)(
            f"{where} can't be used: {error.message}",
            code=error.code,
            sql=error.sql,
            position=error.position,
            reason=error.reason,
            hint=error.hint,
        ) from error
