"""Run a job in a separate process, under the same limits for every engine, and measure it from outside."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.job import Job, Outcome

START_UP_SECONDS = 40.0  # allowed beyond the job's limit for loading and start-up
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


def run(job: Job, *, python: str = sys.executable) -> Outcome:
    """The outcome of `job`; never raises for what an engine does wrong."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "outcome.json"
        progress = Path(folder) / "progress.json"
        errors = Path(folder) / "errors.txt"
        with errors.open("w") as error_file:
            child = subprocess.Popen(
                [python, "-m", "benchmarks.child", job.to_json(), str(answer)],
                stdout=subprocess.DEVNULL,
                stderr=error_file,
                start_new_session=True,
                env={**os.environ, "CROWN_BENCH_PROGRESS": str(progress)},
            )
            try:
                stopped, peak, processor = _watch(child, job)
            finally:
                _end(child)
        if answer.exists():
            outcome = Outcome(**json.loads(answer.read_text()))
        elif stopped and progress.exists():
            outcome = Outcome(**{**json.loads(progress.read_text()), "status": stopped})
        else:
            outcome = Outcome(status=stopped or f"failed: {_reason(errors.read_text(), child.returncode)}")
        outcome.peak_bytes = peak
        outcome.cpu_seconds = processor
        return outcome


def _reason(errors: str, code: int) -> str:
    """The last line that names an error, else the last line."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Refused|Invalid\w*)\b.*: ", line)]
    return ([*lines, *named] or [f"exit code {code}"])[-1][:200]


def _watch(child: subprocess.Popen[bytes], job: Job) -> tuple[str | None, int, float]:
    """Waits until the child is done or over a limit: (which limit, peak bytes, CPU seconds) of it and all below it."""
    begun = time.monotonic()
    deadline = begun + job.seconds + START_UP_SECONDS
    peak, processor = 0, 0.0
    while child.poll() is None:
        resident, used = _tree_usage(child.pid)
        peak, processor = max(peak, resident), max(processor, used)
        if peak > job.memory:
            return f"over {job.memory >> 30} GiB", peak, processor
        if time.monotonic() > deadline:
            # Its own clock, which stands still while rows are loaded and judged, may have come less
            # far.
            return f"not done in {job.seconds:.0f} s and {START_UP_SECONDS:.0f} s around them", peak, processor
        # Looking costs processor time too: often at first, when much happens, then twice a second.
        time.sleep(min(0.5, 0.02 + 0.02 * (time.monotonic() - begun)))
    return None, peak, processor


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends the child and whatever it has started and left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _tree_usage(root: int) -> tuple[int, float]:
    """(resident bytes, CPU seconds so far) of a process and all below it, children that have ended included."""
    children: dict[int, list[int]] = {}
    usage: dict[int, tuple[int, float]] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = Path(f"/proc/{entry}/stat").read_text()
        except OSError:
            continue
        fields = stat[stat.rfind(")") + 2 :].split()
        children.setdefault(int(fields[1]), []).append(int(entry))
        usage[int(entry)] = (int(fields[21]) * PAGE, sum(map(int, fields[11:15])) / TICKS)
    resident, processor, waiting = 0, 0.0, [root]
    while waiting:
        process = waiting.pop()
        own = usage.get(process, (0, 0.0))
        resident, processor = resident + own[0], processor + own[1]
        waiting.extend(children.get(process, []))
    return resident, processor
