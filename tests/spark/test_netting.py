"""What cancels within a task does not travel, and nothing else is lost."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from crown.spark.flow import netting
from crown.spark.flow.netting import Netting
from crown.spark.schema import DELETED

SCHEMA = pa.schema([("k", pa.int64()), ("name", pa.string()), (DELETED, pa.bool_())])


def batches(rows: list[tuple[Any, ...]], schema: pa.Schema = SCHEMA, size: int = 7) -> list[pa.RecordBatch]:
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
    return list(pa.table(columns, schema=schema).to_batches(max_chunksize=size))


def weights(found: list[pa.RecordBatch]) -> Counter[tuple[Any, ...]]:
    sums: Counter[tuple[Any, ...]] = Counter()
    for batch in found:
        for row in batch.to_pylist():
            deleted = row.pop(DELETED)
            sums[tuple(row.values())] += -1 if deleted else 1
    return sums


def changes(rng: random.Random, count: int, keys: int) -> list[tuple[Any, ...]]:
    names = ["a", "b", None]
    return [(rng.randrange(keys), rng.choice(names), rng.random() < 0.5) for _ in range(count)]


@pytest.mark.parametrize("held", [1, 200, 1 << 20])
def test_what_is_left_has_the_same_sums(rng: random.Random, held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netting, "HELD_BYTES", held)
    for keys in (1, 5, 1000):
        rows = changes(rng, 300, keys)
        expected = Counter({row: n for row, n in weights(batches(rows)).items() if n})
        left = list(Netting()(batches(rows)))
        assert Counter({row: n for row, n in weights(left).items() if n}) == expected
        if held == 1 << 20:
            # All was held at once: each row is there as often as its sum says, in one direction.
            assert sum(batch.num_rows for batch in left) == sum(abs(n) for n in expected.values())
            assert all(batch.schema.equals(SCHEMA) for batch in left)


def test_it_stops_where_little_cancels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netting, "HELD_BYTES", 1)
    found: list[int] = []
    kept = netting.cancelled

    def counted(rows: pa.Table, required: tuple[str, ...]) -> pa.Table:
        found.append(1)
        return kept(rows, required)

    monkeypatch.setattr(netting, "cancelled", counted)
    rows = [(n, "a", n % 2 == 0) for n in range(70)]
    assert weights(list(Netting()(batches(rows)))) == weights(batches(rows))
    assert len(found) == 1


def test_a_null_where_none_may_be_reaches_its_cell() -> None:
    rows = [(1, None, False), (1, None, True), (2, "a", False), (2, "a", True)]
    assert list(Netting()(batches(rows))) == []
    assert sum(batch.num_rows for batch in Netting(("name",))(batches(rows))) == 4


def test_columns_may_have_any_name() -> None:
    names = ["weight", "weight_sum", "0", "_weight"]
    schema = pa.schema([*((name, pa.int64()) for name in names), (DELETED, pa.bool_())])
    rows = [(1, 2, 3, 4, False), (1, 2, 3, 4, True), (4, 3, 2, 1, True), (4, 3, 2, 1, True), (5, 5, 5, 5, False)]
    (left,) = Netting()(batches(rows, schema))
    assert left.schema.equals(schema)
    assert weights([left]) == {(4, 3, 2, 1): -2, (5, 5, 5, 5): 1}


def test_floats_are_left_to_the_kernel() -> None:
    schema = pa.schema([("x", pa.float64()), (DELETED, pa.bool_())])
    rows = [(0.0, False), (-0.0, True), (float("nan"), False), (float("nan"), True)]
    assert sum(batch.num_rows for batch in Netting()(batches(rows, schema))) == 4


def test_all_other_types_cancel() -> None:
    kinds = {
        "b": (pa.bool_(), True),
        "d": (pa.date32(), date(2024, 2, 29)),
        "n": (pa.decimal128(38, 2), Decimal("1.50")),
        "v": (pa.binary(), b"\0x"),
        "t": (pa.timestamp("us", "UTC"), 17),
    }
    schema = pa.schema([*((name, kind) for name, (kind, _) in kinds.items()), (DELETED, pa.bool_())])
    row = tuple(value for _, value in kinds.values())
    assert list(Netting()(batches([(*row, False), (*row, True)], schema))) == []
