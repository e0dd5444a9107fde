"""FROM: tables, views, CTEs and subqueries, joined into one relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from sqlglot import exp

from crown.ir.expression import Call, Column, Expression, columns_of
from crown.ir.tables import TableColumn
from crown.sql.clauses.bound import body_of, refuse_placed, relation_of, renamed, source_relation, typed
from crown.sql.clauses.from_clause.definitions import FLATTENED, FLATTENED_BRANCHES, Definition, OutputColumn
from crown.sql.clauses.from_clause.join_checks import check_commas, check_number
from crown.sql.clauses.from_clause.matches import outer_join_by_matches, reads_both
from crown.sql.clauses.from_clause.pivots import bind_pivot
from crown.sql.clauses.from_clause.values import (
    array_of,
    bind_values,
    exploded_relation,
    generated,
    generated_relation,
    one_row,
    reads_left,
)
from crown.sql.clauses.grammar import Environment, with_definitions
from crown.sql.clauses.misplaced import NoAggregates
from crown.sql.clauses.rewrites.check_and_rewrite import check_and_rewrite
from crown.sql.clauses.subqueries.correlates import correlates
from crown.sql.clauses.subqueries.domain import outside
from crown.sql.context import Context
from crown.sql.misspelt import nearest
from crown.sql.normalise import outer
from crown.sql.normalise.limits import MAX_BRANCHES, refuse_branches
from crown.sql.normalise.nesting import nest_relation
from crown.sql.relation import Branch, Relation, Source, VisibleColumn, VisibleTable
from crown.sql.scalar.binder import Binder
from crown.sql.scalar.coerce import compare, unify
from crown.sql.scalar.fold import conjuncts
from crown.sql.scope import Scope, check_readable
from crown.wording import counted

# The name of the join, without NATURAL, by (side, kind).
_KINDS = frozenset(
    {("", ""), ("", "INNER"), ("", "CROSS"), ("", "SEMI"), ("", "ANTI"), ("LEFT", "SEMI"), ("LEFT", "ANTI")}
    | {(side, kind) for side in ("LEFT", "RIGHT", "FULL") for kind in ("", "OUTER")}
)


def bind_from(context: Context, select: exp.Select, parent: Scope | None, environment: Environment) -> Relation:
    """Return the relation of FROM and its joins."""
    clause = select.args.get("from_")
    relation = one_row(context) if clause is None else _item(context, clause.this, parent, environment)
    for lateral in select.args.get("laterals") or ():
        relation = _lateral_view(context, relation, lateral)
    joins = select.args.get("joins") or ()
    check_number(context, joins)
    check_commas(context, joins)
    for join in joins:
        relation = _join(context, relation, join, parent, environment)
    return relation


def _lateral_view(context: Context, left: Relation, lateral: exp.Lateral) -> Relation:
    call = generated(lateral)
    if call is None or (lateral.args.get("outer") and array_of(call) is None):
        context.fail(
            lateral,
            "LATERAL",
            "this LATERAL VIEW is not supported",
            reason="it generates rows with a function",
            hint="use EXPLODE of an array",
        )
    if reads_left(context, call):
        return generated_relation(context, left, call, lateral)
    return left.product(generated_relation(context, None, call, lateral))


def _item(context: Context, node: exp.Expr, parent: Scope | None, environment: Environment) -> Relation:
    if (call := generated(node)) is not None:
        relation = generated_relation(context, None, call, node)
    elif isinstance(node, exp.Values):
        bound = bind_values(context, node)
        relation = relation_of(context, bound, node.alias, _column_names(node), node)
    elif isinstance(node, exp.Table):
        relation = _table(context, node, environment)
    elif isinstance(node, exp.Subquery):
        relation = _subquery(context, node, parent, environment)
    elif isinstance(node, exp.Paren):
        return _item(context, node.this, parent, environment)
    else:
        context.fail(
            node,
            "TABLE-FUNCTION",
            "this FROM item is not supported",
            reason="LATERAL and table functions are not tables that change",
            hint="store its rows in a table",
        )
    for pivot in node.args.get("pivots") or ():
        relation = bind_pivot(context, relation, pivot, parent, environment)
    joins = node.args.get("joins") or ()
    check_commas(context, joins)
    for join in joins:
        relation = _join(context, relation, join, parent, environment)
    return relation


def _refuse_table_function(context: Context, node: exp.Expr) -> NoReturn:
    context.fail(
        node,
        "TABLE-FUNCTION",
        "table functions are not supported",
        reason="they are not tables that change",
        hint="store their rows in a table",
    )


def _table(context: Context, node: exp.Table, environment: Environment) -> Relation:
    if not isinstance(node.this, exp.Identifier):
        _refuse_table_function(context, node)
    name, alias = node.name, node.alias or node.name
    names = _column_names(node)
    definition = environment.names.get(name.lower()) if not node.db else None
    if definition is not None:
        return _definition(context, definition, name, alias, names, node, environment)
    context.use_database(node)
    view = context.schema.views.get(name.lower())
    if view is not None:
        return _view(context, node, alias, names, environment)
    result = context.schema.results.get(name.lower())
    if result is not None:
        columns = tuple(OutputColumn(c.name, c.type, c.nullable) for c in result.columns)
        own = [c.name for c in result.columns]
        return source_relation(context, alias, result.name, renamed(context, columns, names, node), own)
    table = context.schema.tables.get(name.lower())
    if table is None:
        known = [t.name for t in context.schema.tables.values()]
        known += [v.name for v in context.schema.views.values()]
        known += [r.name for r in context.schema.results.values()]
        known += list(environment.names)
        context.fail(
            node.this,
            "UNKNOWN-TABLE",
            f"the schema has no table {name}",
            hint=nearest(name, known) or f"it has {', '.join(known[:8])}",
        )
    atom = context.new_source(alias, table.name, list(table.columns))
    shown = [c.name for c in table.columns]
    if names:
        if len(names) != len(shown):
            context.fail(node, "COLUMN-ALIASES", f"{counted(len(names), 'name')} for {counted(len(shown), 'column')}")
        shown = list(names)
    visible = tuple(_shown_column(context, atom, s, c) for s, c in zip(shown, table.columns, strict=True))
    return Relation((Branch((atom,)),), (VisibleTable(alias, visible),), visible)


def _shown_column(context: Context, atom: Source, name: str, column: TableColumn) -> VisibleColumn:
    """A column of a table. An unsigned integer is read as a larger signed one."""
    if column.type.read_as == column.type:
        return VisibleColumn(name, atom.column(column.name), column.type)
    own, read_as = Column(atom.column(column.name), column.type), column.type.read_as
    return VisibleColumn(name, context.compute(atom, Call("cast", (own,), read_as)).name, read_as)


def _definition(
    context: Context,
    definition: Definition,
    name: str,
    alias: str,
    names: tuple[str, ...],
    node: exp.Expr,
    environment: Environment,
) -> Relation:
    definition.used = True
    if definition.recursive and definition.nested is None:
        definition.nested = environment.grammar.recursion(context, definition, environment.inside(definition))
    if definition.nested is None:
        before = context.steps
        bound = environment.grammar.query(context, definition.query, None, environment.inside(definition))
        large = context.steps - before > FLATTENED or len(bound.branches or ()) > FLATTENED_BRANCHES
        if bound.branches is not None and not (definition.shared and large):
            return relation_of(context, bound, alias, names or definition.columns, node)
        columns = renamed(context, typed(bound.columns), definition.columns, node)
        definition.nested = (context.nest(name, body_of(context, bound)), columns)
    source, columns = definition.nested
    return source_relation(context, alias, source, renamed(context, columns, names, node), definition.own)


def _view(context: Context, node: exp.Table, alias: str, names: tuple[str, ...], environment: Environment) -> Relation:
    view = context.schema.views[node.name.lower()]
    if view.name.lower() in context.opened_views:
        context.fail(
            node,
            "RECURSION",
            f"view {view.name} refers to itself",
            reason="a view can't read itself",
            hint="write WITH RECURSIVE inside the view",
        )
    definition = context.views.get(view.name.lower())
    if definition is None:
        definition = Definition(view.query, view.columns, {}, view.sql, shared=context.view_uses[view.name.lower()] > 1)
        context.views[view.name.lower()] = definition
    with context.text_of_view(view.name, view.sql):
        if not definition.used:
            check_and_rewrite(context, view.query)
        return _definition(context, definition, view.name, alias, names, node, environment)


def _subquery(context: Context, node: exp.Subquery, parent: Scope | None, environment: Environment) -> Relation:
    if _holds_item(node):  # FROM (a JOIN b ON ...)
        refuse_placed(context, node, "with_", "order", "limit", "offset")
        return _aliased(context, _item(context, node.this, parent, environment), node)
    barrier = Scope(Relation((), (), ()), parent, "a subquery in FROM") if parent is not None else None
    inner_environment = with_definitions(context, node, environment)
    if parent is not None and correlates(context, node.this, parent, inner_environment.names):
        refuse_placed(context, node, "order", "limit", "offset")
        derived = environment.grammar.derived
        return derived(context, node.this, parent, inner_environment, node.alias, _column_names(node))
    bound = environment.grammar.query(context, _without_joins(node), barrier, inner_environment)
    return relation_of(context, bound, node.alias, _column_names(node), node)


def _holds_item(node: exp.Subquery) -> bool:
    """Return whether the parentheses are around an item of FROM, not around a query."""
    inner = node.this
    if isinstance(inner, exp.Subquery):
        return bool(inner.args.get("alias") or inner.args.get("joins")) or _holds_item(inner)
    return isinstance(inner, exp.Table)


def _column_names(node: exp.Expr) -> tuple[str, ...]:
    """Return the names in the parentheses after an alias."""
    return tuple(c.name for c in node.args["alias"].columns) if node.args.get("alias") else ()


def _aliased(context: Context, relation: Relation, node: exp.Subquery) -> Relation:
    """Return a join in parentheses, under the alias that follows them."""
    if not node.args.get("alias"):
        return relation
    names = _column_names(node) or tuple(c.name for c in relation.visible)
    if len(names) != len(relation.visible):
        context.fail(
            node, "COLUMN-ALIASES", f"{counted(len(names), 'name')} for {counted(len(relation.visible), 'column')}"
        )
    visible = tuple(replace(c, name=n) for c, n in zip(relation.visible, names, strict=True))
    return replace(relation, tables=(VisibleTable(node.alias, visible),), visible=visible)


def _without_joins(node: exp.Subquery) -> exp.Expr:
    """Return the query in the parentheses, with an ORDER BY or LIMIT that follows them."""
    inner: exp.Expr = node.this
    if any(node.args.get(part) for part in ("order", "limit", "offset")):
        bare = node.copy()
        bare.set("joins", None)
        bare.set("alias", None)
        return bare
    return inner


def _join(context: Context, left: Relation, join: exp.Expr, parent: Scope | None, environment: Environment) -> Relation:
    if not isinstance(join, exp.Join):
        context.fail(join, "JOIN-KIND", "this join is not supported", hint="use JOIN ... ON")
    call = generated(join.this)
    if call is not None and reads_left(context, call):
        return _unnest_join(context, left, join, call)
    side, kind, natural = _join_kind(context, join)
    if _asks_subqueries(join) and kind in ("SEMI", "ANTI"):
        return _exists(context, left, join, parent, environment, negated=kind == "ANTI")
    if _asks_subqueries(join) and side == "LEFT" and _reads_both(left, join):
        return _join(context, left, _lateral(join), parent, environment)
    right = _joined_item(context, left, join.this, parent, environment)
    _check_aliases(context, left, right, join)
    if kind in ("SEMI", "ANTI"):
        return _semi_join(context, left, right, join, parent, environment, kind == "ANTI", natural)
    merged = _merged_names(context, left, right, join, natural)
    predicates = _equal_names(context, left, right, merged, join)
    lateral = [p for p in right.correlated if set(columns_of(p)) <= left.ids | right.ids]
    right = replace(right, correlated=tuple(p for p in right.correlated if p not in lateral))
    predicates += lateral
    if len(left.branches) * len(right.branches) > MAX_BRANCHES:
        _too_many(context, join)
    on = join.args.get("on")
    if on is None or on.find(exp.Query) is None:
        both = left.product(right)
        own, correlated = _on(context, both, join, parent)
    elif not side:
        return _join_then_restrict(context, left, right, predicates, on, parent, environment)
    elif side == "FULL" or reads_both(left, right, on):
        joined, correlated = outer_join_by_matches(context, left, right, predicates, join, parent, environment)
        _refuse_correlated_on(context, correlated, join)
        if len(joined.branches) > MAX_BRANCHES:
            _too_many(context, join)
        return joined
    else:
        left, right, own, correlated = _outer_on(context, left, right, join, parent, environment)
        both = left.product(right)
    predicates += own
    if side:
        padded = left.correlated if side == "RIGHT" else right.correlated if side == "LEFT" else both.correlated
        _refuse_correlated_on(context, (*correlated, *padded), join)
        joined = outer.outer_join(context, left, right, predicates, side, join, environment.grammar.semi_join)
    else:
        joined = both.with_branches(outer.restricted(context, b, predicates) for b in both.branches)
        joined = replace(joined, correlated=joined.correlated + tuple(correlated))
    if len(joined.branches) > MAX_BRANCHES:
        _too_many(context, join)
    return _merge(context, joined, left, right, merged, side, join)


def _join_then_restrict(
    context: Context,
    left: Relation,
    right: Relation,
    predicates: list[Expression],
    on: exp.Expr,
    parent: Scope | None,
    environment: Environment,
) -> Relation:
    """Return an inner join whose ON has subqueries: they restrict the joined rows, as in WHERE."""
    both = left.product(right)
    both = both.with_branches(outer.restricted(context, b, predicates) for b in both.branches)
    joined, found = environment.grammar.restrict(context, on, both, list(both.correlated), parent, environment, "ON")
    return replace(joined, correlated=tuple(found))


def _join_kind(context: Context, join: exp.Join) -> tuple[str, str, bool]:
    """Return the side (LEFT, RIGHT, FULL), the kind (INNER, SEMI and so on), and whether it is NATURAL."""
    side, kind, method = ((word or "").upper() for word in (join.side, join.kind, join.method))
    if join.this.args.get("cross_apply") is False:
        side = "LEFT"  # OUTER APPLY
    if (side, kind) not in _KINDS or method not in ("", "NATURAL"):
        written = " ".join(filter(None, (method, side, kind)))
        context.fail(join, "JOIN-KIND", f"{written} JOIN is not supported", hint="use INNER or OUTER JOIN")
    _check_condition(context, join, side, kind, method)
    return side, kind, method == "NATURAL"


def _check_condition(context: Context, join: exp.Join, side: str, kind: str, method: str) -> None:
    """Refuse an outer join without a condition, and NATURAL JOIN with one.

    SQL reads `a LEFT JOIN b NATURAL JOIN c ON p` as `a LEFT JOIN (b NATURAL JOIN c) ON p`, but sqlglot gives ON to the
    last join. (Where a dialect can omit ON, sqlglot adds ON TRUE.)
    """
    conditional = join.args.get("on") is not None or bool(join.args.get("using"))
    applied = join.this.args.get("cross_apply") is False
    if method and conditional:
        problem = "NATURAL JOIN takes no condition"
    elif side and kind not in ("SEMI", "ANTI") and not (method or conditional or applied):
        problem = f"{side} JOIN needs a condition"
    else:
        return
    context.fail(
        join,
        "JOIN-KIND",
        problem,
        reason="it is unclear which join ON belongs to",
        hint="put nested joins in parentheses, and ON after the join that it belongs to",
    )


def _asks_subqueries(join: exp.Join) -> bool:
    on = join.args.get("on")
    return on is not None and on.find(exp.Query) is not None


def _exists(
    context: Context, left: Relation, join: exp.Join, parent: Scope | None, environment: Environment, *, negated: bool
) -> Relation:
    """A semi-join whose ON has subqueries: EXISTS, in which they are conditions like any other."""
    rows = exp.select("1").from_(join.this.copy()).where(join.args["on"].copy())
    condition: exp.Expr = exp.Exists(this=rows)
    if negated:
        condition = exp.Not(this=condition)
    restrict = environment.grammar.restrict
    joined, found = restrict(context, condition, left, list(left.correlated), parent, environment, "ON")
    return replace(joined, correlated=tuple(found))


def _reads_both(left: Relation, join: exp.Join) -> bool:
    """Whether a subquery of ON names tables of both sides."""
    aliases, own = {t.alias.lower() for t in left.tables}, join.this.alias_or_name.lower()
    for query in join.args["on"].find_all(exp.Query):
        read = {column.text("table").lower() for column in query.find_all(exp.Column)}
        if own in read and read & aliases:
            return True
    return False


def _lateral(join: exp.Join) -> exp.Join:
    """LEFT JOIN with a condition that can't be attached to one side, as a subquery that reads the left side."""
    alias = exp.TableAlias(this=exp.to_identifier(join.this.alias_or_name))
    rows = exp.select("*").from_(join.this.copy()).where(join.args["on"].copy())
    lateral = exp.Lateral(this=exp.Subquery(this=rows), alias=alias)
    return exp.Join(this=lateral, side="LEFT", on=exp.true())


def _unnest_join(context: Context, left: Relation, join: exp.Join, call: exp.Expr) -> Relation:
    """CROSS JOIN UNNEST of an array of the columns to its left, and LEFT JOIN of a column with an array ON TRUE."""
    on = join.args.get("on")
    if array_of(call) is not None and (join.side or "").upper() == "LEFT" and isinstance(on, exp.Boolean) and on.this:
        return exploded_relation(context, left, call, join.this, outer=True)
    if join.side or join.args.get("on") is not None or join.args.get("using"):
        context.fail(
            join,
            "JOIN-KIND",
            "an array of columns can only be joined with CROSS JOIN",
            hint="write CROSS JOIN UNNEST(...), and the condition in WHERE",
        )
    joined = generated_relation(context, left, call, join.this)
    if len(joined.branches) > MAX_BRANCHES:
        _too_many(context, join)
    return joined


def _joined_item(
    context: Context, left: Relation, node: exp.Expr, parent: Scope | None, environment: Environment
) -> Relation:
    """The right side of a join; after LATERAL it may read the left side."""
    if not isinstance(node, exp.Lateral) or generated(node) is not None:
        return _item(context, node, parent, environment)
    if any(node.args.get(part) for part in ("view", "outer", "ordinality")) or not isinstance(node.this, exp.Subquery):
        _refuse_table_function(context, node)
    scope, query = Scope(left, parent), node.this.this
    if correlates(context, query, scope, environment.names):
        return environment.grammar.derived(context, query, scope, environment, node.alias, _column_names(node))
    barrier = Scope(Relation((), (), ()), scope, "a subquery in FROM that does not name the table of the column")
    bound = environment.grammar.query(context, node.this, barrier, environment)
    return relation_of(context, bound, node.alias, _column_names(node), node)


def _too_many(context: Context, node: exp.Expr) -> NoReturn:
    refuse_branches(context, node, "each outer join or UNION ALL in FROM doubles the number of joins to maintain")


def _check_aliases(context: Context, left: Relation, right: Relation, join: exp.Expr) -> None:
    taken = {t.alias.lower() for t in left.tables if t.alias}
    for table in right.tables:
        if table.alias.lower() in taken:
            context.fail(
                join.this,
                "DUPLICATE-ALIAS",
                f"{table.alias} is used twice in FROM",
                reason="its columns would be ambiguous",
                hint="give each use its own alias",
            )


def _semi_join(
    context: Context,
    left: Relation,
    right: Relation,
    join: exp.Join,
    parent: Scope | None,
    environment: Environment,
    negated: bool,
    natural: bool,
) -> Relation:
    merged = _merged_names(context, left, right, join, natural)
    predicates = _equal_names(context, left, right, merged, join)
    own, correlated = _on(context, left.product(right), join, parent)
    predicates += own
    _refuse_correlated_on(context, (*correlated, *right.correlated), join)
    construct = "anti-join" if negated else "semi-join"
    return environment.grammar.semi_join(context, left, right, predicates, negated, construct, join)


def _on(
    context: Context, both: Relation, join: exp.Join, parent: Scope | None
) -> tuple[list[Expression], list[Expression]]:
    """Return the predicates of ON, and those among them that read the queries around this one."""
    if join.args.get("on") is None:
        return [], []
    binder = Binder(context, Scope(both, parent), NoAggregates(context, "ON"))
    own: list[Expression] = []
    correlated: list[Expression] = []
    for predicate in conjuncts(binder.condition(join.args["on"])):
        (own if set(columns_of(predicate)) <= both.ids else correlated).append(predicate)
    return own, correlated


def _outer_on(
    context: Context, left: Relation, right: Relation, join: exp.Join, parent: Scope | None, environment: Environment
) -> tuple[Relation, Relation, list[Expression], list[Expression]]:
    """The ON of an outer join with subqueries: each is attached to the side that it reads.

    Predicates on the optional side alone then filter that side, which becomes a separate source.
    """
    subqueries = environment.grammar.subqueries(context, environment, "ON")
    binder = Binder(context, Scope(left.product(right), parent), subqueries)
    predicates = conjuncts(binder.condition(join.args["on"]))
    sides, nested = {"LEFT": left, "RIGHT": right}, set[str]()
    for attachment in subqueries.attachments:
        read = outside(attachment.predicates, attachment.ids)
        side = next((name for name, relation in sides.items() if read <= relation.ids), None)
        if side is None:
            context.fail(
                attachment.node,
                "SUBQUERY-PLACE",
                "this subquery in the ON of an outer join is not supported",
                reason="it reads the queries around the join",
                hint="compute it as a column of a subquery in FROM",
            )
        sides[side] = attachment.joined(context, sides[side])
        nested |= {side}
    optional = "RIGHT" if (join.side or "").upper() == "LEFT" else "LEFT"
    if optional in nested:
        inner = sides[optional].ids
        own = [p for p in predicates if set(columns_of(p)) <= inner]
        predicates = [p for p in predicates if p not in own]
        branches = [outer.restricted(context, b, own) for b in sides[optional].branches]
        sides[optional] = nest_relation(context, sides[optional].with_branches(branches), distinct=False)
    both = sides["LEFT"].ids | sides["RIGHT"].ids
    correlated = [p for p in predicates if not set(columns_of(p)) <= both]
    return sides["LEFT"], sides["RIGHT"], [p for p in predicates if p not in correlated], correlated


def _refuse_correlated_on(context: Context, predicates: Sequence[Expression], join: exp.Join) -> None:
    if predicates:
        context.fail(
            context.places.get(predicates[0], context.place(join)),
            "CORRELATED-SUBQUERY",
            "the ON of an outer, semi or anti join can't use a column of the outer query",
            reason="which rows match would differ for each outer row",
            hint="join in a subquery in FROM first, and compare with the outer row in WHERE",
        )


def _merged_names(context: Context, left: Relation, right: Relation, join: exp.Join, natural: bool) -> list[str]:
    if natural:
        on_right = {c.name.lower() for c in right.visible}
        return [c.name for c in left.visible if c.name.lower() in on_right]
    return [str(i.name) for i in join.args.get("using") or ()]


def _equal_names(
    context: Context, left: Relation, right: Relation, names: list[str], join: exp.Join
) -> list[Expression]:
    predicates = []
    for name in names:
        sides = []
        for relation in (left, right):
            found = relation.by_name.get(name.lower(), [])
            if len(found) != 1:
                problem = "is not a column of both sides" if not found else "is ambiguous on one side"
                context.fail(
                    join,
                    "UNKNOWN-COLUMN" if not found else "AMBIGUOUS-COLUMN",
                    f"the join column {name} {problem}",
                    hint=nearest(name, [c.name for c in relation.visible]) or "write ON with qualified columns",
                )
            check_readable(context, join, found[0])
            sides.append(found[0].reference)
        predicates.append(compare(context, join, "eq", *sides))
    return predicates


def _merge(
    context: Context,
    joined: Relation,
    left: Relation,
    right: Relation,
    names: list[str],
    side: str,
    node: exp.Expr,
) -> Relation:
    """USING columns are shown once, first: the left one, the right one, or for FULL the one that has a row."""
    if not names:
        return joined
    lowered = dict.fromkeys(n.lower() for n in names)
    by_left = {c.name.lower(): c for c in left.visible}
    by_right = {c.name.lower(): c for c in right.visible}
    shown: list[VisibleColumn] = []
    merged: dict[str, Expression] = {}
    for name in lowered:
        if side != "FULL":
            shown.append(by_right[name] if side == "RIGHT" else by_left[name])
            continue
        sides = unify(context, node, [by_left[name].reference, by_right[name].reference], "USING")
        column = VisibleColumn(by_left[name].name, f"{context.new_id('s')}.0", sides[0].type)
        merged[column.id] = Call("coalesce", tuple(sides), column.type)
        shown.append(column)
    rest = [c for c in (*left.visible, *right.visible) if c.name.lower() not in lowered]
    branches = tuple(
        replace(b, values={**b.values, **{i: context.in_branch(both, b) for i, both in merged.items()}})
        for b in joined.branches
    )
    return replace(joined, branches=branches, visible=(*shown, *rest))
