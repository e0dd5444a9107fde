"""Random changes of one table, for tests that name their seeds."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.support.judge import Change, Row


def changes(
    seed: int, table: str, row: Callable[[random.Random], Row], *, batches: int = 6, size: int = 12
) -> list[list[Change]]:
    """Batches of insertions, deletions and copies of `row`, then one that deletes everything."""
    draw = random.Random(seed)
    live: list[Row] = []
    result = []
    for number in range(batches):
        batch = []
        for _ in range(draw.randint(1, size) + (20 if number == 0 else 0)):
            if live and draw.random() < 0.4:
                batch.append(Change(table, live.pop(draw.randrange(len(live))), -1))
                continue
            live.append(draw.choice(live) if live and draw.random() < 0.2 else row(draw))
            batch.append(Change(table, live[-1]))
        result.append(batch)
    return [*result, [Change(table, gone, -1) for gone in live]]
