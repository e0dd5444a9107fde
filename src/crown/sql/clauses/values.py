"""Rows that are written in the query: VALUES, arrays of expressions in FROM, ranges of numbers, and no FROM at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from crown.ir.expression import Expression, Literal
from crown.ir.nullability import may_be_null
from crown.ir.query import Values
from crown.ir.tables import TableColumn
from crown.sql.clauses.bound import BoundQuery, source_relation, typed
from crown.sql.clauses.definitions import OutputColumn
from crown.sql.clauses.places import NoAggregates
from crown.sql.context import Context
from crown.sql.normalise.conjunction import cast_value
from crown.sql.relation import Branch, Relation, VisibleColumn, VisibleTable
from crown.sql.scalar.binder import Binder
from crown.sql.scalar.coerce import unify
from crown.sql.scope import Scope
from crown.types import BOOLEAN

MOST_ROWS = 10_000
_GENERATORS = (exp.Explode, exp.Unnest)
_SERIES = tuple(
    getattr(exp, name) for name in ("GenerateSeries", "ExplodingGenerateSeries", "Range") if hasattr(exp, name)
)


def one_row(context: Context) -> Relation:
    """Return what a SELECT without FROM reads: one row without columns."""
    source = context.nest("one_row", Values((TableColumn("one", BOOLEAN, False),), ((Literal(True, BOOLEAN),),)))
    whole = source_relation(context, "", source, (OutputColumn("one", BOOLEAN, False),))
    return replace(whole, tables=(), visible=())


def bind_values(context: Context, node: exp.Values) -> BoundQuery:
    """VALUES: rows of constants."""
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    return constant_rows(context, node, [[_bare(value) for value in row] for row in rows])


def constant_rows(context: Context, node: exp.Expr, rows: Sequence[Sequence[exp.Expr]]) -> BoundQuery:
    width = len(rows[0]) if rows else 0
    if any(len(row) != width for row in rows) or not width:
        context.fail(node, "SYNTAX", "the rows of VALUES have different lengths", hint="write as many values in each")
    if len(rows) > MOST_ROWS:
        context.fail(
            node,
            "TOO-LONG",
            f"the query contains {len(rows):,} rows, more than {MOST_ROWS:,}",
            reason="they are a part of the plan",
            hint="store them in a table",
        )
    binder = Binder(context, Scope(Relation((), (), ())), NoAggregates(context, "VALUES"))
    bound = [[binder.bind(value) for value in row] for row in rows]
    by_column = [unify(context, node, list(column), "this column of VALUES") for column in zip(*bound, strict=True)]
    nullable = [any(may_be_null(e, lambda _: True) for e in column) for column in by_column]
    columns = typed(tuple(OutputColumn(f"col{i + 1}", c[0].type, nullable[i]) for i, c in enumerate(by_column)))
    cast = [[cast_value(e, c.type) for e in values] for values, c in zip(by_column, columns, strict=True)]
    constants = tuple(tuple(row) for row in zip(*cast, strict=True))
    return BoundQuery(columns, None, Values(tuple(TableColumn(c.name, c.type, c.nullable) for c in columns), constants))


def _bare(value: exp.Expr) -> exp.Expr:
    """sqlglot takes the alias after VALUES 1, 2 as that of the last value."""
    return value.this if isinstance(value, exp.Alias) else value


def generated(node: exp.Expr) -> exp.Expr | None:
    """Return the call in FROM that makes rows: EXPLODE, UNNEST or a range of numbers; None for anything else."""
    call = node.this if isinstance(node, exp.Table | exp.Lateral) else node
    named = isinstance(call, exp.Anonymous) and str(call.this).lower() in ("range", "generate_series")
    return call if named or isinstance(call, (*_GENERATORS, *_SERIES)) else None


def elements_of(context: Context, call: exp.Expr) -> list[exp.Expr]:
    """Return the elements of an array that is written in the query, or the numbers of a range."""
    if isinstance(call, (*_SERIES, exp.Anonymous)):
        return [_number(i) for i in _series(context, call)]
    arrays = call.expressions if isinstance(call, exp.Unnest) else [call.this]
    array = arrays[0] if len(arrays) == 1 else None
    if isinstance(array, exp.Cast):
        inner, to = array.this, array.to
        if isinstance(inner, exp.Array) and to.expressions:
            return [exp.cast(e, to.expressions[0].copy()) for e in inner.expressions]
    if not isinstance(array, exp.Array):
        context.fail(
            call,
            "TABLE-FUNCTION",
            "only an array that is written in the query can be unnested",
            reason="columns have no array type yet",
            hint="write ARRAY(a, b, c), or store the elements in a table",
        )
    return list(array.expressions)


def generated_relation(context: Context, left: Relation | None, call: exp.Expr, node: exp.Expr) -> Relation:
    """Return FROM's item for a call that makes rows; its elements may read the items to the left."""
    elements = elements_of(context, call)
    alias, names = _alias(node)
    name = names[0] if names else "id" if not isinstance(call, _GENERATORS) else "col"
    if len(names) > 1:
        context.fail(node, "COLUMN-ALIASES", f"{len(names)} names for 1 column")
    if not any(element.find(exp.Column) for element in elements):
        from_constants = constant_rows(context, call, [[element] for element in elements] or [[exp.Null()]])
        assert isinstance(from_constants.body, Values)
        body = from_constants.body if elements else replace(from_constants.body, rows=())
        source = context.nest(alias or "unnested", body)
        return source_relation(context, alias, source, (replace(from_constants.columns[0], name=name),))
    return _per_row(context, left, elements, alias, name, call)


def _per_row(
    context: Context, left: Relation | None, elements: list[exp.Expr], alias: str, name: str, call: exp.Expr
) -> Relation:
    """One branch for each element, in which the new column is that element of the row to its left."""
    scope = Scope(left if left is not None else Relation((), (), ()))
    binder = Binder(context, scope, NoAggregates(context, "UNNEST"))
    values = unify(context, call, [binder.bind(element) for element in elements], "this array")
    column = VisibleColumn(name, f"{context.new_id('s')}.0", values[0].type)

    def with_value(branch: Branch, value: Expression) -> Branch:
        own = {**branch.values, column.id: context.in_branch(value, branch)}
        return replace(branch, values=own).added_by("union all")

    assert left is not None
    branches = tuple(with_value(branch, value) for branch in left.branches for value in values)
    table = VisibleTable(alias, (column,))
    return replace(left, branches=branches, tables=(*left.tables, table), visible=(*left.visible, column))


def reads_left(context: Context, call: exp.Expr) -> bool:
    """Return whether an element of the array is more than a constant."""
    return any(element.find(exp.Column) is not None for element in elements_of(context, call))


def _alias(node: exp.Expr) -> tuple[str, tuple[str, ...]]:
    alias = node.args.get("alias")
    if alias is None:
        return "", ()
    names = tuple(column.name for column in alias.columns)
    # UNNEST(...) AS x names the column as well as the table.
    return alias.name, names or ((alias.name,) if alias.name and not isinstance(node, exp.Lateral) else ())


def _series(context: Context, call: exp.Expr) -> range:
    ends = [call.args.get("start"), call.args.get("end")]
    parts = list(call.expressions) if isinstance(call, exp.Anonymous) else ends
    step = call.args.get("step")
    parts += [step] if step is not None else []
    numbers = [_whole(context, call, part) for part in parts if part is not None]
    if len(numbers) == 1:
        numbers = [0, *numbers]
    inclusive = not (isinstance(call, exp.Anonymous) and str(call.this).lower() == "range") and not call.args.get(
        "is_end_exclusive"
    )
    if not 2 <= len(numbers) <= 3 or (len(numbers) == 3 and numbers[2] == 0):
        context.fail(call, "TABLE-FUNCTION", "a range takes a start, an end and a step", hint="write range(1, 10)")
    start, end, by = (*numbers, 1)[:3]
    return range(start, end + (1 if by > 0 else -1) if inclusive else end, by)


def _whole(context: Context, call: exp.Expr, node: exp.Expr) -> int:
    negative = isinstance(node, exp.Neg)
    literal = node.this if negative else node
    if not isinstance(literal, exp.Literal) or literal.is_string or not literal.name.isdigit():
        context.fail(call, "TABLE-FUNCTION", "a range is between two whole numbers", hint="write range(1, 10)")
    return -int(literal.name) if negative else int(literal.name)


def _number(value: int) -> exp.Expr:
    return exp.cast(exp.Literal.number(value), "bigint")
