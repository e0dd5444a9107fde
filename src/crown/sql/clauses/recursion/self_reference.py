"""Where a recursive query reads itself, and where it may not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NoReturn

from sqlglot import exp

from crown.sql.context import Context

_OUTSIDE: Final = "do it in the query that reads the recursive one"
_WHY: Final = "rows of a later round could invalidate what earlier rounds derived"
_FORM: Final = "write WITH RECURSIVE r AS (base UNION [ALL] step), where only the step reads r"


def readers(query: exp.Expr, name: str) -> list[exp.Table]:
    """Return the places in FROM where a query reads a name of the WITH that it is part of."""
    return [
        table
        for table in query.find_all(exp.Table)
        if table.name.lower() == name.lower() and not table.db and not _hidden(table, query)
    ]


def _hidden(table: exp.Table, query: exp.Expr) -> bool:
    """Whether a WITH inside the query gives the name to another."""
    node: exp.Expr = table
    while node is not query and node.parent is not None:
        child, node = node, node.parent
        clause = node.args.get("with_")
        if clause is None or clause is child:
            continue
        if table.name.lower() in {item.alias.lower() for item in clause.expressions}:
            return True
    return False


def refuse_later(context: Context, clause: exp.With, item: exp.CTE) -> None:
    """Reject a query of WITH RECURSIVE that reads a later one. SQL allows this, but the two could read each other."""
    for later in clause.expressions[clause.expressions.index(item) + 1 :]:
        for table in readers(item.this, later.alias):
            context.fail(
                table,
                "RECURSION",
                f"{item.alias} reads {later.alias}, which is defined after it",
                reason="queries that read each other are not supported; a recursive query may only read itself",
                hint=f"define {later.alias} first, or make one recursive query of both",
            )


def taken_apart(context: Context, query: exp.Expr, name: str) -> exp.Union:
    """Return the UNION of base and step."""
    while isinstance(query, exp.Subquery) and not query.args.get("alias") and not query.args.get("with_"):
        query = query.this
    first = readers(query, name)[0]
    if not isinstance(query, exp.Union):
        _refuse(context, first, f"the recursive query {name} is not a UNION", "it has no base to start from", _FORM)
    for part, word in (("order", "ORDER BY"), ("limit", "LIMIT"), ("offset", "OFFSET")):
        if query.args.get(part) is not None:
            reason = "the rows of a recursive query come in rounds, and all of them belong to it"
            _refuse(context, query.args[part], f"{word} in a recursive query is not supported", reason, _OUTSIDE)
    in_base = readers(query.this, name)
    if in_base:
        what = f"the base of the recursive query {name} reads {name}"
        hint = "put parentheses round all parts of the UNION that read it, and write UNION ALL between them"
        _refuse(context, in_base[0], what, "the first part of the UNION is what it starts from", hint)
    return query


def check_places(context: Context, union: exp.Union, name: str) -> None:
    """Reject a step that reads the recursive query where it is not monotone, or reads it twice."""
    joined: dict[int, exp.Table] = {}
    for table in readers(union.expression, name):
        select = table.find_ancestor(exp.Select)
        if select is not None and joined.setdefault(id(select), table) is not table:
            _refuse(
                context,
                table,
                f"the step joins the recursive query {name} with itself",
                "each round extends the rows of the round before, not pairs of rows",
                "read it once, and join with the base's tables",
            )
        for place, what in _above(table, union):
            _refuse(context, place, f"the step reads {name} {what}, which is not supported", _WHY, _OUTSIDE)


def _above(table: exp.Table, union: exp.Union) -> Iterator[tuple[exp.Expr, str]]:
    """The constructs between a table and the recursive UNION that are not monotone in the table's rows."""
    child: exp.Expr = table
    while child.parent is not None and child.parent is not union:
        child, inner = child.parent, child
        if isinstance(child, exp.CTE):
            return  # its readers are checked when they are bound
        if isinstance(child, exp.Join):
            if inner.arg_key != "this":
                yield table, "in a subquery of ON"
            elif child.side.upper() in ("LEFT", "FULL") or child.kind.upper() in ("SEMI", "ANTI"):
                yield table, f"on the optional side of a {_kind(child)} JOIN"
        elif isinstance(child, exp.Select):
            yield from _in_select(child, inner, table)
            # (The UNION makes a DISTINCT of the whole step superfluous.)
            if child.args.get("distinct") and not (child is union.expression and union.args.get("distinct")):
                yield table, "under DISTINCT"
        elif isinstance(child, exp.SetOperation):
            if not isinstance(child, exp.Union) or child.args.get("distinct"):
                yield table, f"under {child.key.upper()}"
            yield from _ends(child, table)
        elif isinstance(child, exp.Subquery | exp.Table):
            yield from _joined_after(child, inner, table)
            yield from _ends(child, table)
        elif not isinstance(child, exp.From | exp.Paren):
            yield table, "in a subquery of an expression"


def _in_select(select: exp.Select, inner: exp.Expr, table: exp.Table) -> Iterator[tuple[exp.Expr, str]]:
    if inner.arg_key not in ("from_", "joins"):
        yield table, "in a subquery of an expression"
        return
    yield from _joined_after(select, inner, table)
    yield from _ends(select, table)
    for part, word in (("group", "GROUP BY"), ("having", "HAVING"), ("qualify", "QUALIFY")):
        if select.args.get(part) is not None:
            yield _shown(select.args[part], table), f"under {word}"
    for kind, word in ((exp.Window, "a window function"), (exp.AggFunc, "an aggregate")):
        for found in select.find_all(kind):
            if found.find_ancestor(exp.Select) is select:
                yield _shown(found, table), f"under {word}"


def _joined_after(query: exp.Expr, inner: exp.Expr, table: exp.Table) -> Iterator[tuple[exp.Expr, str]]:
    joins = query.args.get("joins") or []
    first = joins.index(inner) + 1 if inner in joins else 0
    for join in joins[first:]:
        if join.side.upper() in ("RIGHT", "FULL"):
            yield table, f"on the optional side of a {_kind(join)} JOIN"


def _ends(query: exp.Expr, table: exp.Table) -> Iterator[tuple[exp.Expr, str]]:
    for part, word in (("limit", "LIMIT"), ("offset", "OFFSET")):
        if query.args.get(part) is not None:
            yield _shown(query.args[part], table), f"under {word}"


def _shown(node: exp.Expr, table: exp.Table) -> exp.Expr:
    """What the caret points at: the node, if its place is known."""
    return node if any("start" in part.meta for part in node.walk()) else table


def _kind(join: exp.Join) -> str:
    return " ".join(filter(None, (join.side.upper(), join.kind.upper())))


def _refuse(context: Context, node: exp.Expr, message: str, reason: str, hint: str) -> NoReturn:
    context.fail(node, "RECURSION", message, reason=reason, hint=hint)
