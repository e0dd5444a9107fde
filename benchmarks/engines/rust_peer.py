"""Runs a Rust peer program of `benchmarks/peers` on the stream's line form."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

from benchmarks.job import Job, Outcome
from benchmarks.stream import Stream
from benchmarks.workloads import WORKLOADS

PEERS = Path(__file__).resolve().parent.parent / "peers"


def program(name: str) -> Path:
    """Where `cargo build --release` put the peer; `CROWN_PEER_TARGET` overrides the target folder's parent."""
    base = os.environ.get("CROWN_PEER_TARGET")
    folder = Path(base) / f"target-{name}" if base else PEERS / name / "target"
    return folder / "release" / f"crown-peer-{name}"


def run_program(name: str, crate: str, job: Job) -> Outcome:
    path = program(name)
    if not path.exists():
        return Outcome(status=f"not built: cargo build --release in benchmarks/peers/{name}")
    stream = Stream.load(job.folder)
    lines = job.folder / "stream.tsv"
    if not lines.exists():
        stream.write_lines(lines)
    threshold = WORKLOADS[job.workload].filter if job.filter is None else job.filter
    query = job.options.get("query", job.workload + job.options.get("variant", ""))
    arguments = [
        query,
        str(lines),
        ",".join(stream.names),
        str(job.batch or 1),
        str(stream.mark),
        str(threshold),
        str(job.threads),
        str(job.seconds),
        str(job.options.get("singles", 0)),
    ]
    finished = subprocess.run([str(path), *arguments], capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        return Outcome(
            status=f"failed: {finished.stderr.strip().splitlines()[0] if finished.stderr.strip() else 'no message'}"
        )
    answer = json.loads(finished.stdout)
    lock = (PEERS / name / "Cargo.lock").read_text()
    version = re.search(rf'name = "{crate}"\nversion = "([^"]+)"', lock)
    return Outcome(
        status="ok" if answer["finished"] else f"not done in {job.seconds:.0f} s",
        seconds=answer["seconds"],
        updates=answer["updates"],
        inserted=answer["inserted"],
        deleted=answer["deleted"],
        checksum=answer["mark_checksum"] if answer["updates"] >= stream.mark else None,
        version=version[1] if version else "",
        details={"growth_bytes": answer["growth_bytes"]} | ({"laps": answer["laps"]} if answer["laps"] else {}),
    )
