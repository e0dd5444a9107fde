"""Literal rows: VALUES, arrays of expressions in FROM, ranges of numbers, and SELECT without FROM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from crown.ir.expression import Call, Expression, Literal
from crown.ir.nullability import may_be_null
from crown.ir.query import Values
from crown.ir.tables import TableColumn
from crown.sql.clauses.bound import BoundQuery, source_relation, typed
from crown.sql.clauses.from_clause.definitions import OutputColumn
from crown.sql.clauses.misplaced import NoAggregates
from crown.sql.context import Context
from crown.sql.nodes import nodes_of_kind
from crown.sql.normalise.conjunction import cast_value
from crown.sql.normalise.nesting import nest_exploded
from crown.sql.relation import Branch, Relation, VisibleColumn, VisibleTable
from crown.sql.scalar.binder import Binder
from crown.sql.scalar.coerce import unify
from crown.sql.scalar.expansions import written
from crown.sql.scope import Scope
from crown.types import BOOLEAN, INT32, INT64
from crown.wording import counted

MOST_ROWS = 10_000
_ENTRIES = "zip_with(map_keys(arg1), map_values(arg1), (x, y) -> named_struct('key', x, 'value', y))"
LIFTED = "_crown_exploded_"  # names of arrays that SELECT unnests
_GENERATORS = (exp.Explode, exp.Unnest)
_LIFTED = (*_GENERATORS, exp.ExplodingGenerateSeries)
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
            "only one array can be unnested at a time",
            hint="write ARRAY(a, b, c), or a column with an array",
        )
    return list(array.expressions)


def array_of(call: exp.Expr) -> exp.Expr | None:
    """Return the array that the call unnests, if it is not a literal list of elements."""
    if isinstance(call, _SERIES) and not _is_numbers(call):
        parts = {key: part.copy() if isinstance(part, exp.Expr) else part for key, part in call.args.items()}
        return exp.GenerateSeries(**parts)
    if not isinstance(call, _GENERATORS):
        return None
    arrays = call.expressions if isinstance(call, exp.Unnest) else [call.this]
    array = arrays[0] if len(arrays) == 1 else None
    written = array.this if isinstance(array, exp.Cast) else array
    is_written = isinstance(written, exp.Array) and not isinstance(call, exp.Posexplode) and not call.args.get("offset")
    return None if is_written else array


def exploded_relation(
    context: Context, left: Relation | None, call: exp.Expr, node: exp.Expr, *, outer: bool
) -> Relation:
    """Return the rows to the left, each once for every element of its array."""
    array_node = array_of(call)
    assert array_node is not None
    left = one_row(context) if left is None else left
    binder = Binder(context, Scope(left), NoAggregates(context, "UNNEST"))
    array = binder.bind(array_node)
    entries = array.type.entry is not None and isinstance(call, exp.Explode)
    if entries and isinstance(call, exp.Posexplode):
        context.fail(
            array_node,
            "TABLE-FUNCTION",
            "posexplode of a map is not supported",
            reason="maps with the same entries are equal, whatever their order",
            hint="use explode",
        )
    if entries:
        array = binder.bind(written(_ENTRIES, [array_node]))
    if array.type.element is None:
        context.fail(array_node, "TABLE-FUNCTION", f"{array.type.shown} can't be unnested", hint="give an array or map")
    alias, names = _alias(node)
    if entries and names == (alias,):
        names = ()
    suffix = "_outer" if outer else ""
    element = Call(f"explode{suffix}", (array,), array.type.element)
    position = Call(f"explode_position{suffix}", (array,), INT32)
    columns: list[tuple[str, Call]] = [(_own_name(context, call), element)]
    offset = call.args.get("offset") or None
    if isinstance(call, exp.Posexplode):
        columns.insert(0, ("pos", position))
    elif offset is not None:
        columns.append((offset.name if isinstance(offset, exp.Identifier) else "ordinality", position))
        names = names[:1]
    width = len(columns) + entries
    if len(names) > width or ((entries or isinstance(call, exp.Posexplode)) and 0 < len(names) < width):
        context.fail(
            node,
            "COLUMN-ALIASES",
            f"{counted(len(names), 'name')} for {counted(width, 'column')}",
            hint="name the key and the value: AS (k, v)" if entries else "name each column",
        )
    shown = [(names[i] if i < len(names) else name, value) for i, (name, value) in enumerate(columns)]
    nested, added = nest_exploded(context, left, shown)
    if offset is not None:  # counts from 1
        added[1] = _from_one(added[1])
    if entries:
        added[-1:] = _fields(context, added[-1][1], names[-2:])
    table = VisibleTable(alias, tuple(column for column, _ in added))
    values = {column.id: value for column, value in added}
    branches = tuple(replace(branch, values={**branch.values, **values}) for branch in nested.branches)
    visible = nested.visible if alias.startswith(LIFTED) else (*nested.visible, *table.columns)
    return replace(nested, branches=branches, tables=(*nested.tables, table), visible=visible)


def _fields(context: Context, entry: Expression, names: Sequence[str]) -> list[tuple[VisibleColumn, Expression]]:
    """The key and the value of an entry of a map."""
    found: list[tuple[VisibleColumn, Expression]] = []
    for position, (name, type_) in enumerate(entry.type.fields):
        column = VisibleColumn(names[position] if names else name, f"{context.new_id('s')}.0", type_)
        found.append((column, Call("get_field", (entry, Literal(position, INT32)), type_)))
    return found


def lift_generators(context: Context, statement: exp.Expr) -> None:
    """Move EXPLODE, POSEXPLODE and UNNEST out of SELECT lists into FROM, under a name that `*` does not show."""
    for number, select in enumerate(nodes_of_kind(statement, exp.Select)):
        _check_one_generator(context, select)
        for position, projection in enumerate(list(select.expressions)):
            call = projection.this if isinstance(projection, exp.Alias | exp.Aliases) else projection
            if select.args.get("group") is not None:
                continue
            if not isinstance(call, _LIFTED):
                _lift_inner(select, projection, f"{LIFTED}{number}_{position}")
                continue
            alias = f"{LIFTED}{number}_{position}"
            given = [name.name for name in projection.aliases] if isinstance(projection, exp.Aliases) else []
            given = [projection.alias] if isinstance(projection, exp.Alias) else given
            positions = ["pos"] if isinstance(call, exp.Posexplode) else []
            of_map = isinstance(call.this, exp.Map | exp.VarMap) or len(given) == len(positions) + 2
            columns = [*positions, *(["key", "value"] if of_map else ["col"])]
            select.append("joins", _lifted(call, alias, columns))
            if given and len(given) != len(columns):
                names = " and ".join(columns)
                context.fail(
                    projection,
                    "COLUMN-ALIASES",
                    f"{call.key.upper()} returns {names}, and AS has {len(given)} names for it",
                    hint=f"name each column: AS ({', '.join(columns)})",
                )
            shown: list[exp.Expr] = []
            for place, name in enumerate(columns):
                column = exp.column(name, table=alias)
                column.meta.update(call.meta)
                shown.append(exp.alias_(column, given[place] if place < len(given) else name, quoted=True))
            at = select.expressions.index(projection)
            select.set("expressions", [*select.expressions[:at], *shown, *select.expressions[at + 1 :]])


def _check_one_generator(context: Context, select: exp.Select) -> None:
    """Refuse a second generator, as Spark does: some dialects pair its rows with the first one's, some cross them."""
    calls = [call for projection in select.expressions for call in projection.find_all(*_LIFTED)]
    own = [call for call in calls if call.find_ancestor(exp.Select) is select]
    if len(own) > 1:
        context.fail(
            own[1],
            "TABLE-FUNCTION",
            f"a SELECT has at most one function that returns rows, and {own[1].key.upper()} is the second",
            hint="write both in FROM, as LATERAL VIEW or UNNEST, or zip the arrays with arrays_zip",
        )


def _lifted(call: exp.Expr, alias: str, columns: list[str]) -> exp.Join:
    name = exp.TableAlias(this=exp.to_identifier(alias), columns=[exp.to_identifier(column) for column in columns])
    return exp.Join(this=exp.Lateral(this=call.copy(), alias=name), kind="CROSS")


def _lift_inner(select: exp.Select, projection: exp.Expr, alias: str) -> None:
    """A generator within an expression, such as `unnest(...)::date`."""
    inner = [n for n in nodes_of_kind(projection, *_LIFTED) if n.find_ancestor(exp.Select) is select]
    if len(inner) != 1 or inner[0].find_ancestor(exp.AggFunc, exp.Window) is not None:
        return
    select.append("joins", _lifted(inner[0], alias, ["col"]))
    column = exp.column("col", table=alias)
    column.meta.update(inner[0].meta)
    inner[0].replace(column)


def _is_numbers(call: exp.Expr) -> bool:
    """Whether a range is between whole numbers that are written in the query."""
    parts = [part for part in call.args.values() if isinstance(part, exp.Expr)]
    return not call.find(exp.Column, exp.Interval, exp.Cast) and all(part.is_number for part in parts)


def _is_outer(call: exp.Expr, node: exp.Expr) -> bool:
    return call.key.endswith("outer") or bool(node.args.get("outer"))


def _from_one(added: tuple[VisibleColumn, Expression]) -> tuple[VisibleColumn, Expression]:
    column, value = added
    number = Call("add", (Call("cast", (value,), INT64), Literal(1, INT64)), INT64)
    return replace(column, type=INT64), number


def generated_relation(context: Context, left: Relation | None, call: exp.Expr, node: exp.Expr) -> Relation:
    """Return FROM's item for a call that makes rows; its elements may read the items to the left."""
    if array_of(call) is not None:
        return exploded_relation(context, left, call, node, outer=_is_outer(call, node))
    elements = elements_of(context, call)
    alias, names = _alias(node)
    name = names[0] if names else _own_name(context, call)
    if len(names) > 1:
        context.fail(node, "COLUMN-ALIASES", f"{len(names)} names for 1 column")
    if not any(element.find(exp.Column) for element in elements):
        from_constants = constant_rows(context, call, [[element] for element in elements] or [[exp.Null()]])
        assert isinstance(from_constants.body, Values)
        is_empty = not elements and not _is_outer(call, node)
        body = replace(from_constants.body, rows=()) if is_empty else from_constants.body
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


def _own_name(context: Context, call: exp.Expr) -> str:
    """The name of the column that a call makes, if the query gives none."""
    if isinstance(call, _GENERATORS) or context.is_spark:
        return "col" if isinstance(call, _GENERATORS) else "id"
    return "range" if call.args.get("is_end_exclusive") else "generate_series"


def reads_left(context: Context, call: exp.Expr) -> bool:
    """Return whether an element of the array is more than a constant."""
    if array_of(call) is not None:
        return True
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
