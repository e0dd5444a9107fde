"""The plan whose result is a table itself."""

from __future__ import annotations

from crown.ir.expression import Column
from crown.ir.plan import Atom, Binding, Node, Plan, TreeStage, Variable
from crown.ir.tables import Table


def passthrough(*tables: Table) -> Plan:
    """Return one node: the table, as a bag. Its key and window apply.

    Several tables have a tree each; the view's own rows are those of the last.
    """
    stages = tuple(_tree(table, f"$table{number}") for number, table in enumerate(tables))
    names = ", ".join(table.name for table in tables)
    return Plan(sql=names, tables=tables, stages=stages, columns=tables[-1].columns, bag=True)


def _tree(table: Table, id: str) -> TreeStage:
    columns = table.columns
    names = tuple(c.name for c in columns)
    bindings = tuple(Binding(c.name, Column(c.name, c.type)) for c in columns)
    return TreeStage(
        id=id,
        variables=tuple(Variable(c.name, c.type, c.nullable) for c in columns),
        atoms=(Atom(table.name, table.name, bindings),),
        nodes=(Node(table.name, names, 0, None, (), True),),
        outputs=names,
        mode="bag",
    )
