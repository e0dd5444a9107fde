"""Name resolution that also sees the outputs of a SELECT."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from sqlglot import exp

from crown.ir.expression import Expression
from crown.sql.context import Context
from crown.sql.outputs import Item
from crown.sql.scalar.binder import Binder, SubqueriesOfSelect
from crown.sql.scope import Scope


class AliasBinder(Binder):
    """Also sees outputs of the SELECT by their names, where no column of FROM has the name.

    It sees those `before` a position: an output may be named by the outputs after it.
    """

    subqueries: SubqueriesOfSelect

    def __init__(self, context: Context, scope: Scope, subqueries: SubqueriesOfSelect, items: Sequence[Item]) -> None:
        super().__init__(context, scope, subqueries)
        self.items = items
        self.before = len(items)
        self._named: dict[str, list[int]] = {}
        for index, item in enumerate(items):
            if item.star is None:
                self._named.setdefault(item.name.lower(), []).append(index)
        # An output that names another one twice must not be bound twice as often as that one.
        self._bound: dict[tuple[int, tuple[bool, bool]], Expression] = {}

    def at(self, index: int) -> AliasBinder:
        """Return the binder of one output, which sees those before it."""
        binder = copy.copy(self)
        binder.before, binder.parameters = index, ()
        return binder

    def bind(self, node: exp.Expr) -> Expression:
        if isinstance(node, exp.Column) and not node.text("table"):
            wanted = node.name.lower()
            if wanted not in self.scope.relation.by_name:
                for index in self._named.get(wanted, ()):
                    if index < self.before and self.items[index].node is not node:
                        return self._output(index)
        return super().bind(node)

    def _output(self, index: int) -> Expression:
        key = index, self.subqueries.inside()
        if key not in self._bound:
            self._bound[key] = self.at(index).bind(self.items[index].node)
        return self._bound[key]


class OutputBinder(AliasBinder):
    """Sees outputs before columns of FROM, as Spark's ORDER BY does; `outputs` are those of the items."""

    def __init__(self, binder: AliasBinder, outputs: Sequence[Expression]) -> None:
        super().__init__(binder.context, binder.scope, binder.subqueries, binder.items)
        self.outputs = outputs
        self._inside = binder  # of aggregates and window functions

    def bind(self, node: exp.Expr) -> Expression:
        if isinstance(node, exp.AggFunc | exp.Window):
            return self._inside.bind(node)
        if isinstance(node, exp.Column) and not node.text("table"):
            for item, output in zip(self.items, self.outputs, strict=True):
                if item.name.lower() == node.name.lower():
                    return output
        return super().bind(node)
