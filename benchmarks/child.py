"""The child process of `runner`: runs one job with one engine and writes the outcome."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.job import Job, Outcome


def main() -> None:
    job = Job.from_json(sys.argv[1])
    engine = importlib.import_module(f"benchmarks.engines.{job.engine}")
    outcome: Outcome = engine.run(job)
    Path(sys.argv[2]).write_text(json.dumps(asdict(outcome)))


if __name__ == "__main__":
    main()
