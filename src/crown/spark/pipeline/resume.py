"""Where a run of a pipeline starts: from nothing, or after the last batch in its checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from crown.spark.filesystem import names_in


@dataclass(frozen=True)
class ResumePoint:
    """`committed` is the last batch of earlier runs, `begun` one that a run started but did not finish."""

    committed: int | None
    begun: int | None

    def __str__(self) -> str:
        if self.committed is None and self.begun is None:
            return "A new checkpoint: the view starts empty."
        if self.begun is not None:
            return f"Repeats batch {self.begun}, which the last run began and did not end."
        return f"Continues after batch {self.committed}."

    @property
    def facts(self) -> list[tuple[str, str]]:
        if self.committed is None and self.begun is None:
            return []
        state = "empty" if self.committed is None else f"as of batch {self.committed}, from the checkpoint"
        again = "nothing" if self.begun is None else f"batch {self.begun}, with the same input"
        return [("engines", f"rebuilt {state}"), ("repeated", again)]


def read_resume_point(checkpoint: str) -> ResumePoint:
    """Read what a checkpoint has, before a query starts."""
    try:
        committed, offsets = _last(f"{checkpoint}/commits"), _last(f"{checkpoint}/offsets")
    except (pa.ArrowException, OSError):
        return ResumePoint(None, None)  # a file system that only Spark knows
    begun = offsets if offsets is not None and (committed is None or offsets > committed) else None
    return ResumePoint(committed, begun)


def _last(path: str) -> int | None:
    return max((int(name) for name in names_in(path) if name.isdecimal()), default=None)
