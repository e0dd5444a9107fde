"""PIVOT and UNPIVOT whose columns are written in the query.

PIVOT is an aggregate with a FILTER for each value, over groups by all columns that it does not name. UNPIVOT is a
UNION ALL with a branch for each column.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import NoReturn

from sqlglot import exp

from crown.ir.expression import Call, Literal
from crown.sql.clauses.bound import relation_of
from crown.sql.clauses.grammar import Environment
from crown.sql.clauses.misplaced import NoAggregates
from crown.sql.context import Context
from crown.sql.normalise.limits import MAX_BRANCHES
from crown.sql.relation import Branch, Relation, VisibleColumn, VisibleTable
from crown.sql.scalar.binder import Binder
from crown.sql.scalar.coerce import unify
from crown.sql.scope import Scope
from crown.types import BOOLEAN, STRING


def bind_pivot(
    context: Context, relation: Relation, pivot: exp.Expr, parent: Scope | None, environment: Environment
) -> Relation:
    """Return the rows of FROM's item, transformed by PIVOT or UNPIVOT."""
    fields = pivot.args.get("fields") or []
    whole = bool(fields) and all(isinstance(f, exp.In) and f.expressions and not f.find(exp.Query) for f in fields)
    if not whole or pivot.args.get("group") or pivot.args.get("default_on_null") or pivot.args.get("using"):
        _refuse(context, pivot)
    if pivot.args.get("unpivot"):
        return _unpivoted(context, relation, pivot)
    select = _grouped(context, relation, pivot, fields)
    bound = environment.grammar.rows(context, select, relation, parent, environment)
    alias = pivot.args.get("alias")
    names = tuple(column.name for column in alias.columns) if alias is not None else ()
    return relation_of(context, bound, alias.name if alias is not None else "", names, pivot)


def _grouped(context: Context, relation: Relation, pivot: exp.Expr, fields: list[exp.Expr]) -> exp.Select:
    named = {c.name.lower() for part in (*pivot.expressions, *(f.this for f in fields)) for c in _columns(part)}
    kept = [column.name for column in relation.visible if column.name.lower() not in named]
    aggregates = [each.this if isinstance(each, exp.Alias) else each for each in pivot.expressions]
    shown: list[exp.Expr] = [exp.column(name, quoted=True) for name in kept]
    choices = list(product(*(field.expressions for field in fields)))
    given = list(pivot.args.get("columns") or ())
    if len(given) != len(choices) * len(aggregates):
        _refuse(context, pivot)
    titles = iter(given)
    for values in choices:
        same = exp.and_(*(_is(field.this, value) for field, value in zip(fields, values, strict=True)))
        for aggregate in aggregates:
            shown.append(exp.alias_(_filtered(context, aggregate, same), next(titles).name, quoted=True))
    select = exp.Select(expressions=shown)
    select.set("group", exp.Group(expressions=[exp.column(name, quoted=True) for name in kept]) if kept else None)
    for node in select.walk():
        node.meta.update({k: v for k, v in pivot.meta.items() if k not in node.meta})
    return select


def _columns(node: exp.Expr) -> list[exp.Expr]:
    return [node, *node.find_all(exp.Column)] if isinstance(node, exp.Column) else list(node.find_all(exp.Column))


def _is(column: exp.Expr, value: exp.Expr) -> exp.Expr:
    value = value.this if isinstance(value, exp.PivotAlias | exp.Alias) else value
    return exp.NullSafeEQ(this=column.copy(), expression=value.copy())


def _filtered(context: Context, aggregate: exp.Expr, same: exp.Expr) -> exp.Expr:
    found = exp.Filter(this=aggregate.copy(), expression=exp.Where(this=same.copy()))
    if not context.is_spark or not isinstance(aggregate, exp.Count):
        return found
    # Where no row has the value, Spark shows NULL, not 0.
    rows = exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=same.copy()))
    return exp.Case(ifs=[exp.If(this=exp.GT(this=rows, expression=exp.Literal.number(0)), true=found)])


def _unpivoted(context: Context, relation: Relation, pivot: exp.Expr) -> Relation:
    (field, *more), (value, *others) = pivot.args["fields"], pivot.expressions
    columns = [each.this if isinstance(each, exp.PivotAlias) else each for each in field.expressions]
    if more or others or not all(isinstance(column, exp.Column) for column in columns):
        _refuse(context, pivot)
    binder = Binder(context, Scope(relation), NoAggregates(context, "UNPIVOT"))
    values = unify(context, pivot, [binder.bind(column) for column in columns], "this UNPIVOT")
    taken = {column.name.lower() for column in columns}
    titles = [Literal(each.alias_or_name, STRING) for each in field.expressions]
    own = context.new_id("s")
    title = VisibleColumn(field.this.name, f"{own}.0", STRING)
    content = VisibleColumn(value.name, f"{own}.1", values[0].type)

    def of(branch: Branch, position: int) -> Branch:
        shown = context.in_branch(values[position], branch)
        there = Call("not", (Call("is_null", (shown,), BOOLEAN),), BOOLEAN)
        kept = branch.predicates if pivot.args.get("include_nulls") else (*branch.predicates, there)
        held = {**branch.values, title.id: titles[position], content.id: shown}
        return replace(branch, values=held, predicates=kept).added_by("union all")

    branches = tuple(of(branch, position) for branch in relation.branches for position in range(len(columns)))
    if len(branches) > MAX_BRANCHES:
        context.fail(
            pivot,
            "TOO-MANY-BRANCHES",
            f"this UNPIVOT has more than {MAX_BRANCHES} columns",
            reason="each is a separate selection of the table",
            hint="split it over several views, or make an array of the columns and EXPLODE it",
        )
    visible = (*(c for c in relation.visible if c.name.lower() not in taken), title, content)
    alias = pivot.args["alias"].name if pivot.args.get("alias") else ""
    return replace(relation, branches=branches, tables=(VisibleTable(alias, visible),), visible=visible)


def _refuse(context: Context, pivot: exp.Expr) -> NoReturn:
    context.fail(
        pivot,
        "PIVOT",
        "this PIVOT is not supported",
        reason="its columns must be written in the query: they can't depend on the data",
        hint="write PIVOT (SUM(x) FOR c IN ('a', 'b')), UNPIVOT (v FOR k IN (a, b)), or SUM(CASE WHEN ... END)",
    )
