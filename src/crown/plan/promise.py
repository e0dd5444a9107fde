"""Which stages can be inputs of a set operation, defined in one place.

UNION, EXCEPT and INTERSECT find the weights of changed rows by looking them up in their inputs, and are read from rows
that their inputs list once each. The kernel checks the same table when it loads a plan
(`crates/crown-kernel/src/engine/promise.rs`); change both together.
"""

from __future__ import annotations

from collections.abc import Mapping

from crown.ir.expression import Column
from crown.ir.plan import BagStage, MapStage, SetOperationStage, Stage, TreeStage, Variable


def looks_up(stage: Stage, known: Mapping[str, bool], columns: Mapping[str, tuple[Variable, ...]]) -> bool:
    """Whether the stage can look up how often it has a given row. `known` and `columns` are of the stages below.

    A stage that can look its rows up can also list each of them once. UNION ALL does so only on request, because it
    costs a look-up for each row.
    """
    match stage:
        case TreeStage():
            return stage.mode != "ring"
        case MapStage():
            return known[stage.input] and _shows_all(stage, columns[stage.input])
        case SetOperationStage():
            return not is_union_all(stage) or all(known[source] for source in stage.inputs)
        case BagStage():
            return False
        case _:
            return True


def is_union_all(stage: SetOperationStage) -> bool:
    """UNION ALL only adds changes up."""
    return stage.operator == "union" and stage.all


def _shows_all(stage: MapStage, columns: tuple[Variable, ...]) -> bool:
    """Return whether each row identifies the input row it was computed from."""
    shown = {column.expression.name for column in stage.columns if isinstance(column.expression, Column)}
    return all(column.name in shown for column in columns)
