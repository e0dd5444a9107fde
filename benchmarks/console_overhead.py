"""What the console costs a view: without a page, and with a page that shows it, in two measures.

    python -m benchmarks.console_overhead [--updates 20000] [--seconds 2] [--repeats 9]

- `cost`: one view takes the same stream without a console, with one, and with one that a page reads, in an order that
  is drawn anew for each repetition. Rates are changes per second of CPU time of the process, so that a busy machine
  matters less. The cost is 1 minus the median ratio of the rate to that without a console; `spread` is half the
  distance between the quartiles.
- `share`: the time inside the console's own code, as part of all CPU time: frames, stored deltas, and calls of the
  observer (their number times the time of one). It has little noise, but does not include what the console's threads
  take from the others, such as waiting for the interpreter's lock. There is a frame for each second of real time, so on
  a busy machine, where a second has less CPU time, the share is larger.

The page is another process that reads the console's events, as a browser does.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import crown
from benchmarks.store import Result
from crown.console import Console, Observer

TABLES = """CREATE TABLE tag (id BIGINT PRIMARY KEY, name STRING);
CREATE TABLE message_tag (message BIGINT, tag BIGINT);
CREATE TABLE message (id BIGINT, creator BIGINT); CREATE TABLE knows (p1 BIGINT, p2 BIGINT);
"""
JOINED = """FROM tag t JOIN message_tag mt ON mt.tag = t.id
JOIN message m ON m.id = mt.message JOIN knows k ON k.p1 = m.creator"""
REACH = f"SELECT t.name, COUNT(*) AS reach {JOINED} GROUP BY t.name"
MODES = ("without", "console", "page")
VIEWS = 10
READER = """import sys, urllib.request
with urllib.request.urlopen(sys.argv[1]) as events:
    print(events.readline()[:6], flush=True)
    while events.readline():
        pass
"""


def one_view() -> crown.View:
    return crown.View(REACH, TABLES)


def many_views() -> crown.Database:
    numbered = (f"CREATE MATERIALIZED VIEW v{n} AS {REACH} HAVING COUNT(*) > {n};" for n in range(VIEWS))
    return crown.Database(TABLES + "\n".join(numbered))


@contextmanager
def read_page(console: Console) -> Iterator[None]:
    """Another process reads the events until the end of the block."""
    url = console.url.replace("/?", "/events?")
    with subprocess.Popen([sys.executable, "-c", READER, url], stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        yield
        reader.terminate()


@dataclass
class Spent:
    """Seconds of CPU time, all and inside the console, for a number of changes."""

    changes: int
    seconds: float
    console: float
    frames: int

    @property
    def rate(self) -> float:
        return self.changes / self.seconds


Changes = list[tuple[str, list[tuple[int, int]]]]


def stream(batch: int, updates: int, seed: int) -> Changes:
    numbers = random.Random(seed)
    people = max(20, updates // 20)
    changes: Changes = []
    for start in range(0, updates, batch):
        ids = range(start, start + batch)
        changes.append(("message", [(n, numbers.randrange(people)) for n in ids]))
        changes.append(("message_tag", [(n, numbers.randrange(100)) for n in ids]))
        changes.append(("knows", [(numbers.randrange(people), n) for n in ids]))
    return changes


def observer_seconds() -> float:
    """Return how long the observer takes to count a delta that it does not store."""
    observer, delta = Observer(), pa.table({"x": [1], "_change_type": ["insert"]})
    observer(delta)
    observer.pace.due = float("inf")
    calls = 20_000
    return min(timeit.repeat(lambda: observer(delta), number=calls, repeat=5)) / calls


def run(target: Any, changes: Changes, mode: str, least: float, observed: float) -> Spent:
    """Insert the rows and delete them, again and again until `least` seconds of CPU time have passed."""
    with ExitStack() as stack:
        console = stack.enter_context(target.console()) if mode != "without" else None
        if mode == "page":
            assert console is not None
            stack.enter_context(read_page(console))
        passes, seconds, started = 0, 0.0, time.process_time()
        while seconds < least:
            for name, rows in changes:
                target.insert(name, rows)
            for name, rows in changes:
                target.delete(name, rows)
            passes += 1
            seconds = time.process_time() - started
        inside, frames = 0.0, 0
        if console is not None:
            frames = console._hub.pace.times
            observers = console._hub.source.observers.values()
            calls = 2 * passes * len(changes) * len(observers)  # at most: an empty delta is not shown to them
            inside = console._hub.pace.seconds + sum(o.pace.seconds for o in observers) + calls * observed
    return Spent(2 * passes * sum(len(rows) for _, rows in changes), seconds, inside, frames)


def measure(target: Any, batch: int, updates: int, seconds: float, repeats: int) -> dict[str, Any]:
    target.insert("tag", [(n, f"tag {n}") for n in range(100)])
    order, observed = random.Random(1), observer_seconds()
    spent: dict[str, list[Spent]] = {mode: [] for mode in MODES}
    run(target, stream(batch, updates, 0), "without", 0.0, observed)
    for repeat in range(repeats):
        changes = stream(batch, updates, repeat)
        for mode in order.sample(MODES, len(MODES)):
            spent[mode].append(run(target, changes, mode, seconds, observed))
    views = len(target) if isinstance(target, crown.Database) else 1
    without = spent["without"]
    row: dict[str, Any] = {"views": views, "batch": batch}
    row["changes_per_cpu_second"] = round(statistics.median(one.rate for one in without))
    for mode in MODES[1:]:
        ratios = [1 - one.rate / base.rate for one, base in zip(spent[mode], without, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        total = sum(one.seconds for one in spent[mode])
        row[mode] = {
            "cost": round(middle, 4),
            "spread": round((high - low) / 2, 4),
            "share": round(sum(one.console for one in spent[mode]) / total, 5),
            "frames": sum(one.frames for one in spent[mode]),
            "cpu_seconds": round(total, 2),
        }
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=20_000, help="rows of each table per run")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU time of a run, at least")
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    rows = []
    for make, batch in ((one_view, 1), (one_view, 100), (one_view, 5000), (many_views, 100)):
        updates = arguments.updates // 5 if batch == 1 else arguments.updates
        row = measure(make(), batch, updates, arguments.seconds, arguments.repeats)
        rows.append(row)
        told = ", ".join(
            f"{mode} costs {row[mode]['cost']:+.1%} ± {row[mode]['spread']:.1%}, share {row[mode]['share']:.2%}"
            for mode in MODES[1:]
        )
        print(f"views {row['views']}, batches of {batch}: {row['changes_per_cpu_second']:,}/s; {told}", flush=True)
    data, limits = {"updates": arguments.updates}, {"seconds": arguments.seconds, "repeats": arguments.repeats}
    options = " ".join(f"--{name} {value}" for name, value in (data | limits).items())
    Result("console_overhead", f"python -m benchmarks.console_overhead {options}", data, limits, rows).save()


if __name__ == "__main__":
    main()
