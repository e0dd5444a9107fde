"""Names that are reserved in changes and deltas: data columns of these names would be ambiguous."""

from __future__ import annotations

from crown.ir.query import Body, Query, Select, SetOperation, Top, Values
from crown.sql.diagnose import fail

_IN_CHANGES = frozenset({"_change_type", "_multiplicity", "_atoms"})
_IN_DELTAS = frozenset({"_change_type", "_multiplicity", "_update"})


def check_names(query: Query) -> None:
    """Reject outputs, and columns that the query reads, with a name that describes the change itself."""
    for table in query.tables:
        for column in table.columns:
            if column.name.lower() in _IN_CHANGES:
                _refuse(query.sql, column.name, f"column {table.name}.{column.name}", "the changes of a table")
    for name in _outputs(query.body):
        if name.lower() in _IN_DELTAS:
            _refuse(query.sql, name, f"the output {name}", "the changes of the view")


def _outputs(body: Body) -> list[str]:
    if isinstance(body, Select):
        return [output.name for output in body.outputs]
    if isinstance(body, SetOperation):
        return _outputs(body.left)
    if isinstance(body, Values):
        return [column.name for column in body.columns]
    assert isinstance(body, Top), "windows are read by a SELECT"
    return _outputs(body.input)[: body.shown]


def _refuse(sql: str, name: str, what: str, whose: str) -> None:
    start = sql.lower().find(name.lower())
    fail(
        sql,
        (start, start + len(name)) if start >= 0 else None,
        "RESERVED-NAME",
        f"{what} can't have this name",
        reason=f"{whose} already have a column {name.lower()}",
        hint="give it another name",
    )
