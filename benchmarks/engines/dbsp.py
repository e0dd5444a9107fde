"""dbsp from the crates registry: `benchmarks/peers/dbsp`."""

from benchmarks.engines.rust_peer import run_program
from benchmarks.job import Job, Outcome


def run(job: Job) -> Outcome:
    return run_program("dbsp", "dbsp", job)
