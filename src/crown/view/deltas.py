"""Put deltas into an order in which they can be applied elsewhere. (A batch's delta already has its deletes first.)"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from crown.changes import CHANGE_TYPE, DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from crown.ir.plan import Plan
from crown.plan.view_key import view_key


def deletes_first_of_each(delta: pa.Table) -> pa.Table:
    """Return the deltas of single updates with the deletes of each before its inserts."""
    if delta.num_rows < 2:
        return delta
    inserts = pc.not_equal(delta[CHANGE_TYPE].cast(pa.string()), DELETE)
    keys = pa.table({"update": delta["_update"], "insert": inserts.cast(pa.int8())})
    order = pc.sort_indices(keys, [("update", "ascending"), ("insert", "ascending")])  # stable
    return delta if order.equals(pa.array(range(len(order)), pa.uint64())) else delta.take(order)


def paired(plan: Plan, delta: pa.Table) -> pa.Table:
    """Return the delta with each delete and the insert of the same key turned into an update of two rows.

    The order is: deletes, then updates, then inserts. A view without a known key has no updates.
    """
    key = view_key(plan)
    if key is None or not delta.num_rows:
        return delta
    words = delta[CHANGE_TYPE].to_pylist()
    # As text: a key may be NaN, which Python finds unequal to itself, or nested, which it can't
    # hash.
    keys = [repr(k) for k in zip(*(delta.column(position).to_pylist() for position in key), strict=True)]
    keys = keys or [""] * len(words)
    inserted = {keys[row]: row for row, word in enumerate(words) if word == INSERT}
    deleted = {keys[row]: row for row, word in enumerate(words) if word == DELETE}
    both = [k for k in deleted if k in inserted]
    if not both:
        return delta
    order = [row for row, word in enumerate(words) if word == DELETE and keys[row] not in inserted]
    new = [DELETE] * len(order)
    for k in both:
        order += [deleted[k], inserted[k]]
        new += [UPDATE_PREIMAGE, UPDATE_POSTIMAGE]
    rest = [row for row, word in enumerate(words) if word == INSERT and keys[row] not in deleted]
    taken = delta.take(pa.array([*order, *rest], pa.int64()))
    position = delta.column_names.index(CHANGE_TYPE)
    types = pa.array([*new, *[INSERT] * len(rest)], pa.string())
    return taken.set_column(position, pa.field(CHANGE_TYPE, pa.string(), nullable=False), types)
