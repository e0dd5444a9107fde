"""The batches of a pipeline, from Spark's reports: each once, and with as few calls of Spark as possible."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from crown.spark.pipeline.progress import Batches


class Query:
    """A query that counts how often all of its reports are read."""

    id = "q"

    def __init__(self) -> None:
        self.reports: list[Any] = []
        self.read_all = 0

    def report(self, batch: int, rows: int) -> None:
        self.reports.append(
            SimpleNamespace(
                batchId=batch,
                numInputRows=rows,
                observedMetrics={},
                durationMs={"triggerExecution": 5},
                timestamp="2026-01-01T00:00:00.000Z",
                sources=[],
                eventTime={},
            )
        )

    @property
    def lastProgress(self) -> Any:
        return self.reports[-1] if self.reports else None

    @property
    def recentProgress(self) -> list[Any]:
        self.read_all += 1
        return list(self.reports)


class Figures:
    def add(self, loads: object, seconds: float) -> None: ...


def seen(batches: Batches) -> list[int]:
    return [frame.number for frame in batches.read()]


def test_each_batch_is_read_once_and_all_reports_only_if_several_are_new() -> None:
    query: Any = Query()
    batches = Batches(query, None, figures=Figures())  # type: ignore[arg-type]
    assert seen(batches) == []
    for number in range(3):
        query.report(number, 0)  # waiting for rows
        assert seen(batches) == list(range(number))
        query.report(number, 10)
        assert seen(batches) == list(range(number + 1))
        assert seen(batches) == list(range(number + 1))
    assert query.read_all == 0
    for number in (3, 4, 5):
        query.report(number, 10)
    assert seen(batches) == list(range(6))
    assert query.read_all == 1
    query.report(6, 10)
    query.report(7, 0)
    assert seen(batches) == list(range(7)), "the batch before a report without rows is not lost"
    query.report(7, 10)
    assert seen(batches) == list(range(8))
    assert batches.totals.batches == 8


def test_a_run_that_resumes_does_not_start_with_batch_zero() -> None:
    query: Any = Query()
    batches = Batches(query, None, figures=Figures())  # type: ignore[arg-type]
    query.report(41, 10)
    query.report(42, 10)
    assert seen(batches) == [41, 42]
