"""Random update streams over a schema: batches of changes, each valid when it comes."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property.queries import DOMAINS, NOT_NULL, ODD, Schema, TableShape
from tests.support.judge import Change, Row

KINDS = ("insert_only", "fifo", "adversarial", "repeated")


@st.composite
def rows(draw: st.DrawFn, table: TableShape, odd: bool = False) -> Row:
    values = []
    for name, domain in table.columns:
        may_be_null = (table.name, name) not in NOT_NULL
        known = DOMAINS[domain] + (ODD.get(domain, ()) if odd else ())
        values.append(None if may_be_null and draw(st.integers(0, 7)) == 7 else draw(st.sampled_from(known)))
    return tuple(values)


class _Tables:
    """What lives while a stream is drawn: rows in order of arrival, primary keys respected."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.live: dict[str, list[Row]] = {table.name: [] for table in schema.tables}

    def insert(self, table: TableShape, row: Row) -> Change:
        key = [i for i, (name, _) in enumerate(table.columns) if name in table.primary_key]
        if key:
            same = [old for old in self.live[table.name] if all(old[i] == row[i] for i in key)]
            for old in same:
                self.live[table.name].remove(old)
        self.live[table.name].append(row)
        return Change(table.name, row)

    def delete(self, table: str, position: int) -> Change:
        return Change(table, self.live[table].pop(position), -1)

    def nonempty(self) -> list[str]:
        return [name for name, rows in self.live.items() if rows]


@st.composite
def streams(
    draw: st.DrawFn, schema: Schema, *, batches: int = 5, batch_size: int = 12, odd: bool = False
) -> list[list[Change]]:
    """Some batches of the drawn kind, then one that deletes everything that is left; `odd`: also NaN and odd texts."""
    kind = draw(st.sampled_from(KINDS))
    tables = _Tables(schema)
    result = []
    for number in range(draw(st.integers(2, batches))):
        batch = []
        # Joins of several tables find something only once there is some data.
        for _ in range(draw(st.integers(15, 30) if number == 0 else st.integers(1, batch_size))):
            alive = tables.nonempty()
            deletes = {"insert_only": 0, "fifo": 3, "adversarial": 5, "repeated": 3}[kind]
            if alive and draw(st.integers(0, 9)) < deletes:
                name = draw(st.sampled_from(alive))
                position = 0 if kind == "fifo" else draw(st.integers(0, len(tables.live[name]) - 1))
                change = tables.delete(name, position)
                batch.append(change)
                if kind == "adversarial" and draw(st.booleans()):
                    batch.append(tables.insert(schema.table(name), change.row))
            else:
                table = draw(st.sampled_from(schema.tables))
                row = draw(rows(table, odd))
                copies = draw(st.integers(1, 3)) if kind == "repeated" else 1
                batch += [tables.insert(table, row) for _ in range(copies)]
        result.append(batch)
    result.append([tables.delete(name, -1) for name in tables.live for _ in range(len(tables.live[name]))])
    return [batch for batch in result if batch]
