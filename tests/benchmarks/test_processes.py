"""CPU seconds by process: numbers that wrap round, children that have ended, hosts outside the tree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.processes import usage, used

TICK = os.sysconf("SC_CLK_TCK")


def write(proc: Path, pid: int, parent: int, *, started: int, ticks: int, reaped: int = 0, command: str = "x") -> None:
    (proc / str(pid)).mkdir(exist_ok=True)
    fields = ["S", str(parent), *["0"] * 9, str(ticks), "0", str(reaped), "0", *["0"] * 4, str(started), "0"]
    (proc / str(pid) / "stat").write_text(f"{pid} (a) b) {' '.join(fields)}\n")
    (proc / str(pid) / "cmdline").write_text(command.replace(" ", "\0"))


def seconds(found: dict[str, float]) -> dict[str, float]:
    return {kind: spent * TICK for kind, spent in found.items()}


def test_numbers_that_wrapped_are_found(tmp_path: Path) -> None:
    write(tmp_path, 60000, 59999, started=1, ticks=5, command="/usr/bin/java -cp x")
    write(tmp_path, 310, 60000, started=2, ticks=7, command="python -m pyspark.daemon")
    write(tmp_path, 300, 310, started=3, ticks=11, command="python -m pyspark.daemon")
    write(tmp_path, 200, 1, started=4, ticks=13, command="python -m crown.spark.host 60000-1 x")
    write(tmp_path, 100, 1, started=5, ticks=17, command="python -m crown.spark.host 60001-1 x")
    assert seconds(used({}, usage(59999, proc=tmp_path))) == {"jvm": 5, "workers": 18, "host": 13}


def test_a_worker_that_ended_and_one_with_its_number(tmp_path: Path) -> None:
    write(tmp_path, 20, 10, started=1, ticks=3)
    write(tmp_path, 30, 20, started=2, ticks=100)
    before = usage(10, proc=tmp_path)
    write(tmp_path, 20, 10, started=1, ticks=4, reaped=150)  # waited for 30, which had used 150 in the end
    write(tmp_path, 30, 20, started=9, ticks=2)
    assert seconds(used(before, usage(10, proc=tmp_path))) == {"workers": 1 + 50 + 2}


def test_a_host_that_ended_takes_nothing_away(tmp_path: Path) -> None:
    write(tmp_path, 20, 10, started=1, ticks=3, command="java")
    write(tmp_path, 30, 1, started=2, ticks=100, command="python -m crown.spark.host 20-1")
    before = usage(10, proc=tmp_path)
    write(tmp_path, 30, 1, started=9, ticks=6, command="python -m crown.spark.host 20-1")
    assert seconds(used(before, usage(10, proc=tmp_path))) == {"jvm": 0, "host": 6}


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc here")
def test_a_real_grandchild_is_counted_after_it_ended() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}]); print(); input()"
    before = usage()
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        spent = used(before, usage())
        child.communicate(b"\n")
    assert spent["workers"] >= 0.2  # the system counts whole ticks
