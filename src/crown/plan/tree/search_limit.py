"""Limit the length of a search. Steps are counted, not timed, so that a query has the same plan on every machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Steps:
    """The steps that a search may take, and those it took.

    >>> steps = Steps(2)
    >>> steps.take(), steps.take(), steps.take(), steps.cut
    (True, True, False, True)
    """

    limit: int
    taken: int = 0
    hopeless: bool = False  # the search was not started: it would take more than the limit

    def take(self, count: int = 1) -> bool:
        """Count some steps; False once the limit is passed."""
        self.taken += count
        return self.taken <= self.limit

    @property
    def cut(self) -> bool:
        return self.hopeless or self.taken > self.limit
