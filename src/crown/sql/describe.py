"""Describe a `Query` as readable text, for explain and for tests."""

from __future__ import annotations

from crown.ir.expression import Column
from crown.ir.plan import Atom
from crown.ir.query import (
    Body,
    Condition,
    Conjunction,
    OptionalAtom,
    Order,
    Query,
    Recursion,
    Select,
    SetOperation,
    Values,
    Windowed,
)
from crown.ir.render import to_text
from crown.ir.tables import Table


def describe(query: Query) -> str:
    """Return the whole query, one fact to a line.

    >>> from crown.sql import parse
    >>> print(describe(parse("SELECT a FROM t WHERE b > 1", {"t": {"a": "int64", "b": "int64"}})))
    table t(a int64?, b int64?)
    select
      t: t(t_a = a) where b > 1
      output a = t_a
    """
    lines = [_table(t) for t in query.tables]
    for name, body in query.nested:
        lines += [f"nested {name}:", *_indented(_body(body))]
    lines += _body(query.body)
    lines += [f"order by {_order(o)}" for o in query.order]
    return "\n".join(lines)


def _table(table: Table) -> str:
    columns = ", ".join(f"{c.name} {c.type}{'?' if c.nullable else ''}" for c in table.columns)
    text = f"table {table.name}({columns})"
    if table.primary_key:
        text += f" key ({', '.join(table.primary_key)})"
    if table.profile != "arbitrary":
        text += f" profile {table.profile}"
    if table.window is not None:
        window = table.window
        text += f" window {window.rows} rows" if window.rows else f" window {window.interval} on {window.column}"
    return text


def _body(body: Body) -> list[str]:
    if isinstance(body, Select):
        return _select(body)
    if isinstance(body, SetOperation):
        head = f"{body.operator}{' all' if body.all else ''}"
        return [head, *_indented(_body(body.left)), *_indented(_body(body.right))]
    if isinstance(body, Values):
        names = ", ".join(f"{c.name} {c.type}" for c in body.columns)
        return [f"values ({names})", *_indented([", ".join(to_text(e) for e in row) for row in body.rows])]
    if isinstance(body, Recursion):
        lines = [f"recursion{' all' if body.all else ''}", *_indented(_body(body.base))]
        for name, inner in body.nested:
            lines += _indented([f"nested {name}:", *_indented(_body(inner))])
        return [*lines, *_indented(["step", *_indented(_body(body.step))])]
    order = ", ".join(_order(o) for o in body.order)
    if isinstance(body, Windowed):
        by = f" by {', '.join(body.partition)}" if body.partition else ""
        columns = ", ".join(f"{c.name} = {c.function}" for c in body.columns)
        return [f"window {columns}{by}{f' order by {order}' if order else ''}", *_indented(_body(body.input))]
    offset = f" offset {body.offset}" if body.offset else ""
    shown = "" if body.shown is None else f", showing the first {body.shown}"
    return [f"top {body.limit}{offset} by {order}{shown}", *_indented(_body(body.input))]


def _select(select: Select) -> list[str]:
    lines = ["select distinct" if select.distinct else "select"]
    shown = []
    if select.group_by is not None:
        shown.append(f"group by ({', '.join(g.name for g in select.group_by)})")
    if select.sets is not None:
        sets = [f"({', '.join(one)})" for one in select.sets]
        shown.append(f"grouping sets {', '.join(sets)}")
    for aggregate in select.aggregates:
        argument = to_text(aggregate.argument) if aggregate.argument is not None else "*"
        distinct = "distinct " if aggregate.distinct else ""
        shown.append(f"aggregate {aggregate.name} = {aggregate.function}({distinct}{argument}) {aggregate.type}")
    if select.having is not None:
        shown.append(f"having {to_text(select.having)}")
    plain = len(select.branches) == 1 and not shown
    for number, branch in enumerate(select.branches, 1):
        if len(select.branches) > 1:
            origins = f" by {', '.join(branch.origins)}" if branch.origins else ""
            lines.append(f"  branch {number}{origins}")
        lines += _indented(_conjunction(branch), 4 if len(select.branches) > 1 else 2)
        if not plain:
            named = [f"column {c.name} = {to_text(c.expression)}" for c in branch.columns]
            lines += _indented(named, 4 if len(select.branches) > 1 else 2)
    if plain:
        values = {c.name: c.expression for c in select.branches[0].columns}
        for output in select.outputs:
            name = output.expression.name if isinstance(output.expression, Column) else ""
            text = to_text(values.get(name, output.expression))
            shown.append(f"output {output.name} = {text}")
    else:
        shown += [f"output {o.name} = {to_text(o.expression)}" for o in select.outputs]
    return lines + _indented(shown)


def _conjunction(conjunction: Conjunction) -> list[str]:
    nullable = {v.name for v in conjunction.variables if v.nullable}
    lines = [_atom(a, nullable) for a in conjunction.atoms]
    for condition in conjunction.conditions:
        lines += _condition(condition, nullable)
    for optional in conjunction.optional:
        lines += _optional(optional, nullable)
    return lines + [f"residual {to_text(r)}" for r in conjunction.residual]


def _condition(condition: Condition, nullable: set[str]) -> list[str]:
    lines = ["not exists" if condition.negated else "exists"]
    lines += _indented([_atom(a, nullable) for a in condition.atoms])
    for inner in condition.conditions:
        lines += _indented(_condition(inner, nullable))
    return lines


def _optional(optional: OptionalAtom, nullable: set[str]) -> list[str]:
    lines = [f"optional {_atom(optional.atom, nullable)}"]
    for inner in optional.optional:
        lines += _indented(_optional(inner, nullable))
    return lines


def _atom(atom: Atom, nullable: set[str]) -> str:
    bindings = ", ".join(f"{b.variable} = {to_text(b.expression)}" for b in atom.bindings)
    text = f"{atom.name}: {atom.source}({bindings})"
    if atom.filter is not None:
        text += f" where {to_text(atom.filter)}"
    return text + (f" not null {', '.join(atom.not_null)}" if atom.not_null else "")


def _order(order: Order) -> str:
    direction = "desc" if order.descending else "asc"
    return f"{to_text(order.expression)} {direction} nulls {'first' if order.nulls_first else 'last'}"


def _indented(lines: list[str], by: int = 2) -> list[str]:
    return [" " * by + line for line in lines]
