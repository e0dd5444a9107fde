"""How much of the time the console may take: a small share, however large the state is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

# Of frames, and of stored deltas: together they stay below one percent.
SHARE = 0.005


class Pace:
    """Says when some repeated work is `due` again, on the monotonic clock.

    That is `least` seconds after it last began, or later if it took long, so that it takes at most `share` of the time.
    What counts is the time that the processor worked, not the time spent waiting for a lock. `times` and `seconds` say
    how often the work was done, and how long it took in total.
    """

    def __init__(self, least: float, share: float = SHARE) -> None:
        self.due = 0.0
        self.times = 0
        self.seconds = 0.0
        self._least = least
        self._share = share

    @contextmanager
    def work(self) -> Iterator[None]:
        """Do the work in this block."""
        begun, before = time.monotonic(), time.thread_time()
        try:
            yield
        finally:
            spent = time.thread_time() - before
            self.times += 1
            self.seconds += spent
            self.due = begun + max(self._least, spent / self._share)
