"""Canonical names for a query, so that nothing in its plan depends on the aliases in the text.

A checkpoint belongs to a plan. The planner breaks ties by name and the kernel compares names when it loads a state, so
both would treat the same query with other aliases as a different query. Here every variable, atom, nested query and
output gets a name by its position before the query is planned; tables and their columns keep theirs. The author's names
of the outputs are restored at the end (see `Topology.names`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from crown.ir.expression import Call, Column, Expression
from crown.ir.plan import Atom, Binding
from crown.ir.query import (
    Aggregate,
    Body,
    Condition,
    Conjunction,
    Named,
    OptionalAtom,
    Order,
    Query,
    Recursion,
    Select,
    SetOperation,
    Top,
    Values,
    WindowColumn,
    Windowed,
    grouping_name,
)

Names = Mapping[str, str]


def canonical(query: Query) -> Query:
    """Return the query with all names but those of tables and their columns replaced."""
    prefix = "nested"
    while any(table.name.lower().startswith(prefix) for table in query.tables):
        prefix += "_"
    renamed = _Renamed({})
    nested: list[tuple[str, Body]] = []
    for position, (name, body) in enumerate(query.nested):
        source = f"{prefix}{position}"
        if isinstance(body, Recursion):
            own, columns = renamed.recursion(name, source, body)
        else:
            own, columns = renamed.body(body)
        nested.append((source, own))
        renamed = _Renamed({**renamed.sources, name: (source, columns)})
    body, columns = renamed.body(query.body)
    tables = tuple(replace(t, columns=tuple(sorted(t.columns, key=lambda column: column.name))) for t in query.tables)
    return replace(query, tables=tables, body=body, nested=tuple(nested), order=_orders(query.order, columns))


class _Renamed:
    """`sources` holds the new name of each nested query, and those of its columns."""

    def __init__(self, sources: Mapping[str, tuple[str, Names]]) -> None:
        self.sources = sources

    def body(self, body: Body) -> tuple[Body, Names]:
        """Return the body, and the new names of its columns."""
        match body:
            case Select():
                return self._select(body)
            case SetOperation():
                left, columns = self.body(body.left)
                right, _ = self.body(body.right)
                return replace(body, left=left, right=right), columns
            case Top():
                below, columns = self.body(body.input)
                return replace(body, input=below, order=_orders(body.order, columns)), columns
            case Values():
                names = _numbered("o", (column.name for column in body.columns))
                return replace(body, columns=tuple(replace(c, name=names[c.name]) for c in body.columns)), names
            case Windowed():
                return self._windowed(body)
            case Recursion():
                raise AssertionError("a recursion has a name")

    def recursion(self, name: str, source: str, body: Recursion) -> tuple[Body, Names]:
        """Return the recursion with `source` instead of `name` in its step. The name in errors is unchanged."""
        base, columns = self.body(body.base)
        inside = _Renamed({**self.sources, name: (source, columns)})
        nested: list[tuple[str, Body]] = []
        for position, (inner, own) in enumerate(body.nested):
            renamed, shown = inside.body(own)
            nested.append((f"{source}_{position}", renamed))
            inside = _Renamed({**inside.sources, inner: (nested[-1][0], shown)})
        step, _ = inside.body(body.step)
        return replace(body, base=base, step=step, nested=tuple(nested)), columns

    def _windowed(self, body: Windowed) -> tuple[Windowed, Names]:
        below, columns = self.body(body.input)
        own = {**columns, **_numbered(f"w{len(columns)}_", (column.name for column in body.columns))}

        def over(column: WindowColumn) -> WindowColumn:
            arguments = tuple(_expression(argument, columns) for argument in column.arguments)
            folded = column.aggregate and column.aggregate.over(lambda e: _expression(e, columns))
            return replace(column, name=own[column.name], arguments=arguments, aggregate=folded)

        renamed = replace(
            body,
            input=below,
            partition=tuple(columns[name] for name in body.partition),
            order=_orders(body.order, columns),
            columns=tuple(map(over, body.columns)),
        )
        return renamed, own

    def _select(self, select: Select) -> tuple[Select, Names]:
        below = _numbered("c", (column.name for branch in select.branches for column in branch.columns))
        branches = tuple(self._conjunction(branch, below) for branch in select.branches)
        seen: Names = below
        group_by = None
        aggregates: tuple[Aggregate, ...] = ()
        if select.group_by is not None:
            seen = _numbered("g", [*(n.name for n in select.group_by), *(a.name for a in select.aggregates)])
            group_by = tuple(Named(seen[n.name], _expression(n.expression, below)) for n in select.group_by)
            aggregates = tuple(
                replace(a.over(lambda e: _expression(e, below)), name=seen[a.name]) for a in select.aggregates
            )
        sets = select.sets and tuple(tuple(seen[name] for name in one) for one in select.sets)
        if select.group_by is not None and sets is not None:
            seen = {**seen, **{grouping_name(n.name): grouping_name(seen[n.name]) for n in select.group_by}}
        shown = _numbered("o", (output.name for output in select.outputs))
        outputs = tuple(Named(shown[o.name], _expression(o.expression, seen)) for o in select.outputs)
        having = select.having and _expression(select.having, seen)
        renamed = replace(
            select,
            branches=branches,
            outputs=outputs,
            group_by=group_by,
            aggregates=aggregates,
            having=having,
            sets=sets,
        )
        return renamed, shown

    def _conjunction(self, conjunction: Conjunction, columns: Names) -> Conjunction:
        variables = _numbered("v", (variable.name for variable in conjunction.variables))
        return replace(
            conjunction,
            variables=tuple(replace(v, name=variables[v.name]) for v in conjunction.variables),
            atoms=self._atoms(conjunction.atoms, variables, "a"),
            columns=tuple(Named(columns[c.name], _expression(c.expression, variables)) for c in conjunction.columns),
            conditions=self._conditions(conjunction.conditions, variables, "a"),
            residual=tuple(_expression(predicate, variables) for predicate in conjunction.residual),
            optional=self._optional(conjunction.optional, variables, "b"),
            reasons=(),
        )

    def _conditions(self, conditions: tuple[Condition, ...], variables: Names, prefix: str) -> tuple[Condition, ...]:
        return tuple(
            replace(
                condition,
                atoms=self._atoms(condition.atoms, variables, f"{prefix}{position}_"),
                conditions=self._conditions(condition.conditions, variables, f"{prefix}{position}_"),
            )
            for position, condition in enumerate(conditions)
        )

    def _optional(self, optional: tuple[OptionalAtom, ...], variables: Names, prefix: str) -> tuple[OptionalAtom, ...]:
        return tuple(
            OptionalAtom(
                self._atom(one.atom, variables, f"{prefix}{position}"),
                self._optional(one.optional, variables, f"{prefix}{position}_"),
            )
            for position, one in enumerate(optional)
        )

    def _atoms(self, atoms: tuple[Atom, ...], variables: Names, prefix: str) -> tuple[Atom, ...]:
        return tuple(self._atom(atom, variables, f"{prefix}{position}") for position, atom in enumerate(atoms))

    def _atom(self, atom: Atom, variables: Names, name: str) -> Atom:
        source, columns = self.sources.get(atom.source, (atom.source, {}))
        return Atom(
            name=name,
            source=source,
            bindings=tuple(Binding(variables[b.variable], _expression(b.expression, columns)) for b in atom.bindings),
            filter=atom.filter and _expression(atom.filter, columns),
            not_null=tuple(variables[variable] for variable in atom.not_null),
        )


def _orders(orders: tuple[Order, ...], columns: Names) -> tuple[Order, ...]:
    return tuple(replace(order, expression=_expression(order.expression, columns)) for order in orders)


def _numbered(prefix: str, names: Iterable[str]) -> dict[str, str]:
    return {name: f"{prefix}{position}" for position, name in enumerate(dict.fromkeys(names))}


def _expression(expression: Expression, names: Names) -> Expression:
    match expression:
        case Column(name, type_):
            return Column(names.get(name, name), type_)
        case Call(function, arguments, type_):
            return Call(function, tuple(_expression(argument, names) for argument in arguments), type_)
        case _:
            return expression


def output_names(body: Body) -> tuple[str, ...]:
    """Return the author's names of a body's columns."""
    match body:
        case Select():
            return tuple(output.name for output in body.outputs)
        case SetOperation():
            return output_names(body.left)
        case Top():
            return output_names(body.input)
        case Values():
            return tuple(column.name for column in body.columns)
        case Windowed():
            return (*output_names(body.input), *(column.name for column in body.columns))
        case Recursion():
            return output_names(body.base)
