"""differential-dataflow from the crates registry: `benchmarks/peers/differential`."""

from benchmarks.engines.rust_peer import run_program
from benchmarks.job import Job, Outcome


def run(job: Job) -> Outcome:
    return run_program("differential", "differential-dataflow", job)
