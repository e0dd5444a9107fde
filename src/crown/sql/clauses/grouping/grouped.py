"""The groups of a SELECT: GROUP BY, aggregates and HAVING."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from crown.ir.expression import Column, Expression
from crown.ir.query import Aggregate, Named, Select
from crown.sql.clauses.bound import BoundQuery, source_relation, typed
from crown.sql.clauses.from_clause.definitions import OutputColumn
from crown.sql.clauses.grouping.aggregates import MARK, Aggregates
from crown.sql.clauses.grouping.group_by import Groups
from crown.sql.clauses.result.shown import Shown, show_rows
from crown.sql.clauses.result.top import over_outputs, topped
from crown.sql.clauses.subqueries.attach import Attachment, attach_near
from crown.sql.context import Context
from crown.sql.normalise.conjunction import Wanted, build_conjunctions, cast_value
from crown.sql.normalise.levels import living_branches
from crown.sql.normalise.outer import restricted
from crown.sql.outputs import Item
from crown.sql.relation import Branch, Relation
from crown.sql.scope import Scope
from crown.types import INT8


@dataclass(frozen=True)
class Grouping:
    """The groups of a SELECT before its outputs are bound."""

    context: Context
    relation: Relation
    groups: Groups
    aggregates: Aggregates
    having: Expression | None
    attachments: Sequence[Attachment]
    parent: Scope | None

    def show(self, shown: Shown) -> BoundQuery:
        """Join subqueries in aggregates and GROUP BY with the rows before they are grouped, others with the groups."""
        before, after = self._divided()
        relation = attach_near(self.context, self.relation, before, self.parent)
        branches = living_branches(relation)
        folded = _folded(self.context, self.groups, self.aggregates, branches)
        folded.renames |= self.groups.flags(self.aggregates.groupings, shown.node)
        folded.renames |= {mark: folded.renames[name] for mark, name in self.aggregates.read_inside.items()}
        beside = frozenset(i for a in after for i in a.ids)

        def over_groups(expression: Expression, at: exp.Expr) -> Expression:
            return self.groups.rewrite(expression, folded.renames, at, beside)

        outputs = [over_groups(e, i.node) for i, e in zip(shown.items, shown.outputs, strict=True)]
        shown = shown.over(outputs, lambda e: over_groups(e, shown.node.args["order"]))
        having = over_groups(self.having, shown.node.args["having"]) if self.having is not None else None
        select = self._select(folded, branches)
        if after:
            after = [replace(a, predicates=tuple(over_groups(p, a.node) for p in a.predicates)) for a in after]
            flags = [folded.renames[mark] for mark in self.aggregates.groupings.values()]
            return _beside_groups(self.context, select, flags, shown, having, after, self.parent)
        return _show_groups(self.context, replace(select, having=having), shown)

    def _divided(self) -> tuple[list[Attachment], list[Attachment]]:
        """The subqueries to join with the rows, and with the groups."""
        after = [a for a in self.attachments if not a.grouped]
        if self.groups.names and not any(a.predicates for a in after):
            self.groups.add_values([column for a in after for column in a.relation.visible])
            after = []
        return [a for a in self.attachments if a not in after], after

    def _select(self, folded: _Folded, branches: list[Branch]) -> Select:
        wanted = ((b, _wanted(self.context, b, folded.wanted, self.groups)) for b in branches)
        return Select(
            branches=build_conjunctions(self.context, wanted),
            outputs=(),
            group_by=tuple(Named(n, Column(n, e.type)) for e, n in self.groups.names.items()),
            aggregates=tuple(folded.aggregates),
            sets=self.groups.sets,
        )


def with_keys(shown: Shown, keys: Sequence[Expression]) -> Shown:
    """Output `keys` first."""
    taken, items = {i.name.lower() for i in shown.items}, []
    for number, _ in enumerate(keys):
        name = next(n for i in range(len(taken) + 1) if (n := f"key_{number + 1}{'_' * i}") not in taken)
        taken.add(name)
        items.append(Item(name, shown.node))
    return replace(shown, items=[*items, *shown.items], outputs=[*keys, *shown.outputs])


def _show_groups(context: Context, select: Select, shown: Shown) -> BoundQuery:
    columns = typed(shown.columns)
    ordering = over_outputs(context, shown.order, columns, shown.outputs, distinct=shown.distinct)
    columns, outputs = (*columns, *ordering.columns), [*shown.outputs, *ordering.outputs]
    select = replace(
        select,
        outputs=tuple(Named(c.name, cast_value(e, c.type)) for c, e in zip(columns, outputs, strict=True)),
        distinct=shown.distinct,
    )
    return topped(context, BoundQuery(columns, None, select), ordering, shown.limit)


def _beside_groups(
    context: Context,
    select: Select,
    flags: list[str],
    shown: Shown,
    having: Expression | None,
    attachments: list[Attachment],
    parent: Scope | None,
) -> BoundQuery:
    """The groups as a separate source, with the values of subqueries that read them.

    `flags` are the columns for GROUPING.
    """
    named = [*(select.group_by or ()), *(Named(a.name, Column(a.name, a.type)) for a in select.aggregates)]
    named += [Named(name, Column(name, INT8)) for name in dict.fromkeys(flags)]
    source = context.nest("groups", replace(select, outputs=tuple(named)))
    found = tuple(OutputColumn(n.name, n.expression.type) for n in named)
    relation = source_relation(context, "", source, found)
    values: dict[str, Expression] = {c.name: c.reference for c in relation.visible}

    def over_rows(expression: Expression) -> Expression:
        return context.substitute(expression, values, frozenset())

    attachments = [replace(a, predicates=tuple(over_rows(p) for p in a.predicates)) for a in attachments]
    relation = attach_near(context, relation, attachments, parent)
    if having is not None:
        kept = [over_rows(having)]
        relation = relation.with_branches(restricted(context, b, kept) for b in relation.branches)
    return show_rows(context, relation, shown.over([over_rows(e) for e in shown.outputs], over_rows))


@dataclass
class _Folded:
    """The aggregates of a SELECT, and what they and the groups need of each branch."""

    wanted: dict[str, Expression]  # columns of a branch, by name
    aggregates: list[Aggregate] = field(default_factory=list)
    renames: dict[str, str] = field(default_factory=dict)  # from the columns that stand for aggregates


def _folded(context: Context, groups: Groups, aggregates: Aggregates, branches: list[Branch]) -> _Folded:
    folded = _Folded({name: expression for expression, name in groups.names.items()})
    names = dict(groups.names)
    for aggregate in aggregates.found:
        name = groups.free_name(aggregate.name, Column(MARK + aggregate.name, aggregate.type))
        folded.renames[MARK + aggregate.name] = name

        def column(expression: Expression, base: str = f"{name}_input") -> Expression:
            known = names.get(expression)
            if known is None:
                known = names[expression] = groups.free_name(base)
                folded.wanted[known] = expression
            return Column(known, expression.type)

        if aggregate.argument is not None and _counts_rows(
            context, aggregate.function, aggregate.distinct, aggregate.argument, branches
        ):
            aggregate = replace(aggregate, argument=None)
        folded.aggregates.append(replace(aggregate.over(column), name=name))
    return folded


def _wanted(context: Context, branch: Branch, wanted: dict[str, Expression], groups: Groups) -> list[Wanted]:
    names = set(groups.names.values())
    return [Wanted(n, cast_value(context.in_branch(e, branch), e.type), bind=n in names) for n, e in wanted.items()]


def _counts_rows(context: Context, function: str, distinct: bool, argument: Expression, branches: list[Branch]) -> bool:
    """COUNT of something that is never NULL is COUNT(*)."""
    if function != "count" or distinct:
        return False
    return not any(context.may_be_null(argument, b) for b in branches)
