"""WITH RECURSIVE: the base is bound first, and defines the columns that the step reads from the recursive query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from crown.ir.atoms import body_sources
from crown.ir.query import Body, Conjunction, Recursion, Select, SetOperation
from crown.sql.clauses.bound import BoundQuery, body_of, matched_columns, relation_of, renamed, typed
from crown.sql.clauses.from_clause.definitions import Definition, OutputColumn
from crown.sql.clauses.grammar import Environment
from crown.sql.clauses.recursion.self_reference import check_places, readers, taken_apart
from crown.sql.context import Context

_WIDENED = 4  # how often the step may need wider types than it was bound with


def bind_recursion(
    context: Context, definition: Definition, environment: Environment
) -> tuple[str, tuple[OutputColumn, ...]]:
    """Return the nested body of a recursive definition, and its columns."""
    name, start = definition.recursive, len(context.nested)
    union = taken_apart(context, definition.query, name)
    check_places(context, union, name)
    keeps_all = not union.args.get("distinct")
    base = environment.grammar.query(context, union.this, None, environment)
    shown = renamed(context, base.columns, definition.columns, union.this)
    own = tuple(column.name for column in base.columns)
    source = context.new_name(name)
    columns, step = _bind_step(context, union, replace(base, columns=shown), definition, environment, source, own)
    inner = [OutputColumn(n, c.type) for n, c in zip(own, columns, strict=True)]
    first = _body(context, base, inner, name, union.this)
    second = _body(context, step, inner, name, union.expression)
    _nest(context, source, Recursion(name, first, second, keeps_all), start)
    _check_linear(context, source, dict(context.nested)[source], union)
    return source, columns


def _bind_step(
    context: Context,
    union: exp.Union,
    base: BoundQuery,
    definition: Definition,
    environment: Environment,
    source: str,
    own: tuple[str, ...],
) -> tuple[tuple[OutputColumn, ...], BoundQuery]:
    """Return the columns of both, of types that the step keeps when it reads them, and the step."""
    query = union.expression if not union.args.get("distinct") else _with_duplicates(union.expression)
    columns = tuple(replace(column, nullable=True) for column in typed(base.columns))
    for _ in range(_WIDENED):
        itself = replace(definition, used=True, nested=(source, columns), recursive="", own=own)
        inside = replace(environment, names={**environment.names, definition.recursive.lower(): itself})
        step = environment.grammar.query(context, query, None, inside)
        common = matched_columns(context, union, base, step)
        wider = tuple(replace(column, nullable=True) for column in typed(tuple(common)))
        if wider == columns:
            return columns, step
        columns = wider
    (widened, was), *_ = [(a, b) for a, b in zip(common, base.columns, strict=True) if a.type != b.type]
    context.fail(
        union.expression,
        "TYPE-CLASH",
        f"the type of column {widened.name} grows with each round: it begins as {was.type.shown}",
        reason="the step computes a wider type of it each time",
        hint="cast it in the step, or in the base, to the type you want",
    )


def _with_duplicates(query: exp.Expr) -> exp.Expr:
    """The step of a UNION without its own DISTINCT, which the UNION makes superfluous."""
    if not isinstance(query, exp.Select) or query.args.get("distinct") is None or query.args["distinct"].args.get("on"):
        return query
    plain = query.copy()
    plain.set("distinct", None)
    return plain


def _body(context: Context, bound: BoundQuery, columns: Sequence[OutputColumn], name: str, node: exp.Expr) -> Body:
    """Return a bound query as a SELECT of these columns."""
    branches = bound.branches
    if branches is None:
        relation = relation_of(context, bound, name, (), node)
        outputs = tuple(column.reference for column in relation.visible)
        branches = tuple((branch, outputs) for branch in relation.branches)
    return body_of(context, BoundQuery(tuple(columns), branches, None))


def _nest(context: Context, source: str, recursion: Recursion, start: int) -> None:
    """Store the recursion after the bodies that it reads; those that read it become part of it."""
    found = dict(context.nested[start:])
    recursive = {source}
    for name, body in found.items():
        if recursive.intersection(body_sources(body)):
            recursive.add(name)
    # Bodies that were bound with narrower types are no longer read.
    wanted, waiting = set[str](), [*body_sources(recursion.base), *body_sources(recursion.step)]
    while waiting:
        one = waiting.pop()
        if one in found and one not in wanted:
            wanted.add(one)
            waiting += body_sources(found[one])
    inside = tuple((name, body) for name, body in found.items() if name in wanted & recursive)
    outside = [(name, body) for name, body in found.items() if name in wanted - recursive]
    context.nested[start:] = [*outside, (source, replace(recursion, nested=inside))]


def _check_linear(context: Context, source: str, recursion: Body, union: exp.Union) -> None:
    """Reject a step that does more with the recursion's own rows than join them: the references have been checked, but
    a subquery in WHERE, for example, may have become a query that groups them."""
    assert isinstance(recursion, Recursion)
    sources = {source, *(name for name, _ in recursion.nested)}
    for body in (recursion.step, *(body for _, body in recursion.nested)):
        if not _is_linear(body, sources):
            context.fail(
                readers(union.expression, recursion.name)[0],
                "RECURSION",
                f"the step does more with rows of {recursion.name} than join them",
                reason="it compares or counts them, repeats them, or has a part that does not read them",
                hint=f"join {recursion.name} with tables in each part of the step, and do the rest outside",
            )


def _is_linear(body: Body, sources: set[str]) -> bool:
    match body:
        case Select():
            plain = body.group_by is None and not body.distinct
            return plain and all(_joins_once(branch, sources) for branch in body.branches)
        case SetOperation():
            united = body.operator == "union" and body.all
            return united and _is_linear(body.left, sources) and _is_linear(body.right, sources)
    return False


def _joins_once(branch: Conjunction, sources: set[str]) -> bool:
    joined = [atom for atom in branch.atoms if atom.source in sources]
    every = [source for source in body_sources(Select((branch,), ())) if source in sources]
    return len(joined) == len(every) == 1
