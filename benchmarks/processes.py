"""CPU seconds of a tree of processes, by kind: the JVM, Python workers and engine hosts below a Spark driver.

A process is known by its number and the time it started, since numbers come again. Time of children that have ended is
their parent's (`reaped`), so short-lived workers are not lost. Without /proc there is nothing to read.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

PROC = Path("/proc")
Identity: TypeAlias = tuple[int, int]  # number, and time of start in ticks since the machine's


@dataclass(frozen=True)
class Process:
    identity: Identity
    parent: int
    seconds: float  # its own and those of the children that it has waited for
    command: str
    kind: str = ""


Usage: TypeAlias = Mapping[Identity, Process]


def usage(root: int | None = None, *, proc: Path = PROC) -> Usage:
    """The processes below `root` (default: this one), and the engine hosts of those, which have left the tree."""
    children: dict[int, list[Process]] = defaultdict(list)
    hosts = []
    for process in _processes(proc):
        children[process.parent].append(process)
        if "crown.spark.host" in process.command:
            hosts.append(process)
    found: dict[Identity, Process] = {}
    waiting = [os.getpid() if root is None else root]
    while waiting:
        above = waiting.pop()
        # A host names the JVM that it serves.
        below = [*children[above], *(host for host in hosts if f"\0{above}-" in host.command)]
        for process in below:
            if process.identity not in found:
                found[process.identity] = _with_kind(process)
                waiting.append(process.identity[0])
    return found


def used(before: Usage, after: Usage) -> dict[str, float]:
    """CPU seconds between two readings, by kind."""
    seconds: dict[str, float] = defaultdict(float)
    for process in after.values():
        seconds[process.kind] += process.seconds
    watched = {identity[0] for identity in (*before, *after)}
    for identity, process in before.items():
        # One that has ended is in its parent's account now, whole; with no parent that we know it
        # is in none.
        if identity in after or process.parent in watched:
            seconds[process.kind] -= process.seconds
    return dict(seconds)


def _processes(proc: Path) -> Iterator[Process]:
    tick = os.sysconf("SC_CLK_TCK")
    for entry in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # The name of the program stands in brackets and may hold anything.
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            command = (entry / "cmdline").read_bytes().decode(errors="replace")
            spent = sum(map(int, fields[11:15])) / tick
            yield Process((int(entry.name), int(fields[19])), int(fields[1]), spent, command)


def _with_kind(process: Process) -> Process:
    host, java = "crown.spark.host" in process.command, "java" in process.command.split("\0")[0]
    kind = "host" if host else "jvm" if java else "workers"
    return Process(process.identity, process.parent, process.seconds, process.command, kind)
