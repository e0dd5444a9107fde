"""What the console costs: updates per second of a view without it, with it, and with a browser that shows it.

The same stream goes through three views in turn, in rounds. What counts is the CPU time of the whole process, the
console's threads and the reader of its events included, so a busy machine does not matter much. All rounds count,
because only some of them meet a frame: the cost is the ratio of their sums, after a first round that warms up.
Run: python -m benchmarks.console_overhead
"""

from __future__ import annotations

import argparse
import random
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext

import crown

SQL = """SELECT t.name, COUNT(*) AS reach FROM tag t JOIN message_tag mt ON mt.tag = t.id
JOIN message m ON m.id = mt.message JOIN knows k ON k.p1 = m.creator GROUP BY t.name"""
SCHEMA = """CREATE TABLE tag (id BIGINT PRIMARY KEY, name STRING);
CREATE TABLE message_tag (message BIGINT, tag BIGINT);
CREATE TABLE message (id BIGINT, creator BIGINT); CREATE TABLE knows (p1 BIGINT, p2 BIGINT)"""


@contextmanager
def watched(url: str) -> Iterator[None]:
    """Read the console's events as a browser does."""
    stop = threading.Event()

    def read() -> None:
        with urllib.request.urlopen(url.replace("/?", "/events?")) as events:
            while not stop.is_set():
                events.readline()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    time.sleep(0.2)
    yield
    stop.set()
    reader.join(5)


def rounds(view: crown.View, batch: int, updates: int, seed: int) -> float:
    """Return the CPU seconds that a round of updates takes: inserts, then the same rows deleted."""
    numbers = random.Random(seed)
    people = max(20, updates // 20)
    changes: list[tuple[str, list[tuple[int, int]]]] = []
    for start in range(0, updates, batch):
        ids = range(start, start + batch)
        changes.append(("message", [(n, numbers.randrange(people)) for n in ids]))
        changes.append(("message_tag", [(n, numbers.randrange(100)) for n in ids]))
        changes.append(("knows", [(numbers.randrange(people), n) for n in ids]))
    started = time.process_time()
    for name, rows in changes:
        view.insert(name, rows)
    for name, rows in changes:
        view.delete(name, rows)
    return time.process_time() - started


def measure(batch: int, updates: int, repeats: int) -> dict[str, float]:
    spent: dict[str, float] = {}
    with ExitStack() as stack:
        views = {name: crown.View(SQL, SCHEMA) for name in ("without", "console", "browser")}
        for view in views.values():
            view.insert("tag", [(n, f"tag {n}") for n in range(100)])
        stack.enter_context(views["console"].console())
        url = stack.enter_context(views["browser"].console()).url
        for repeat in range(repeats + 1):
            for name, view in views.items():
                with watched(url) if name == "browser" else nullcontext():
                    seconds = rounds(view, batch, updates, repeat)
                if repeat:
                    spent[name] = spent.get(name, 0.0) + seconds
    return {name: 6 * updates * repeats / seconds for name, seconds in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=20_000, help="rows of each table per round")
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    for batch in (1, 100, 5000):
        updates = arguments.updates // 10 if batch == 1 else arguments.updates
        rates = measure(batch, updates, arguments.repeats)
        shown = ", ".join(f"{name} {rate:,.0f}/s" for name, rate in rates.items())
        costs = {name: 1 - rate / rates["without"] for name, rate in rates.items() if name != "without"}
        print(f"batches of {batch}: {shown}; " + ", ".join(f"{name} costs {cost:.1%}" for name, cost in costs.items()))


if __name__ == "__main__":
    main()
