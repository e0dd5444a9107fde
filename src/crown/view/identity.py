"""The plan whose result is a table itself."""

from __future__ import annotations

from crown.ir.expression import Column
from crown.ir.plan import Atom, Binding, Node, Plan, TreeStage, Variable
from crown.ir.tables import Table


def identity(table: Table) -> Plan:
    """One node: the table, as a bag. Its key and window apply."""
    columns = table.columns
    names = tuple(c.name for c in columns)
    bindings = tuple(Binding(c.name, Column(c.name, c.type)) for c in columns)
    tree = TreeStage(
        id="$table",
        variables=tuple(Variable(c.name, c.type, c.nullable) for c in columns),
        atoms=(Atom(table.name, table.name, bindings),),
        nodes=(Node(table.name, names, 0, None, (), True),),
        outputs=names,
        mode="bag",
    )
    return Plan(sql=table.name, tables=(table,), stages=(tree,), columns=columns, bag=True)
