"""The cost of reading rows of a view by position: how the engine's `page` works for each kind of stage."""

from __future__ import annotations

from crown.ir.expression import makes_rows
from crown.ir.plan import AggregateStage, DistinctStage, MapStage, Plan, SetOperationStage, Stage, TopStage, TreeStage

_COUNTED = (
    "by counting, O(log N) for each row; the first page counts all rows of the tree once, in O(N), and later ones only "
    "what has changed since the page before (all again after very many changes)"
)

_SORTED = (
    "in the order of ORDER BY: the first page sorts the whole result; from the second on the sorted rows are kept, in "
    "memory for all of them, and follow the changes, O(log N) for each row, until more rows have changed than there "
    "are without a page being read (with threads each page sorts the result)"
)


def paging(plan: Plan) -> str:
    """Return how `page(offset, limit)` and `view[k]` find a position of the result."""
    if plan.order:
        return _SORTED
    return _paging({stage.id: stage for stage in plan.stages}, plan.stages[-1])


def _paging(stages: dict[str, Stage], last: Stage) -> str:
    match last:
        case TreeStage() if last.ring and not last.outputs:
            return "there is one row"
        case TreeStage() if last.residual:
            return _walked("a residual condition decides on each row")
        case TreeStage():
            return _COUNTED
        case MapStage() if last.filter is not None:
            return _walked("a condition after the tree decides on each row")
        case MapStage() if any(makes_rows(column.expression) for column in last.columns):
            return _walked("an array has any number of rows")
        case MapStage():
            return _paging(stages, stages[last.input])
        case AggregateStage() | DistinctStage():
            return "by position, O(1) for each row: the rows are stored"
        case TopStage():
            return _walked("there are at most as many as LIMIT says")
        case SetOperationStage() if last.operator == "union" and last.all:
            ways = dict.fromkeys(_paging(stages, stages[one]) for one in last.inputs)
            return next((way for way in ways if way.startswith(_WALKED)), next(iter(ways)))
    return _walked("their number is only known when they are read")


_WALKED = "earlier rows are skipped"


def _walked(reason: str) -> str:
    return f"{_WALKED}, O(1) each: {reason}"
