"""The first rows of each key: DISTINCT ON, and LIMIT of a subquery that compares with the outer row."""

from __future__ import annotations

from collections.abc import Sequence

from crown.ir.expression import Call, Literal
from crown.ir.query import NO_LIMIT, Order, WindowColumn, Windowed
from crown.ir.tables import TableColumn
from crown.sql.clauses.bound import BoundQuery, body_of, typed
from crown.sql.context import Context
from crown.sql.normalise.outer import restricted
from crown.sql.relation import Branch, Relation, VisibleColumn, VisibleTable
from crown.types import BOOLEAN, INT32

_NUMBER = "row_number"
_MOST_ROWS = (1 << 31) - 1  # of a partition: the type of ROW_NUMBER has no more numbers


def first_rows(
    context: Context,
    bound: BoundQuery,
    partition: Sequence[str],
    order: tuple[Order, ...],
    limit: tuple[int, int],
    word: str,
) -> Relation:
    """Return the rows of `bound` that are among the first of their partition, with the same columns.

    `word` is the construct in the query, for messages. Ties in the order are broken by all columns.
    """
    number, skipped = limit[0], min(limit[1], _MOST_ROWS)
    columns = typed(bound.columns)
    listed = [TableColumn(c.name, c.type, c.nullable) for c in columns]
    ranks = (WindowColumn(_NUMBER, "row_number", INT32),) if skipped else ()
    most = None if number == NO_LIMIT else number + skipped
    body = Windowed(body_of(context, bound), tuple(dict.fromkeys(partition)), order, ranks, limit=most, word=word)
    source = context.nest("first_rows", body)
    atom = context.new_source(source, source, [*listed, *(TableColumn(r.name, r.type, False) for r in ranks)])
    visible = tuple(VisibleColumn(c.name, atom.column(c.name), c.type) for c in listed)
    relation = Relation((Branch((atom,)),), (VisibleTable("", visible),), visible)
    if not skipped:
        return relation
    rank = VisibleColumn(_NUMBER, atom.column(_NUMBER), INT32)
    after = Call("gt", (rank.reference, Literal(skipped, INT32)), BOOLEAN)
    return relation.with_branches(restricted(context, b, [after]) for b in relation.branches)
