"""Find rings of transfers: money that leaves an account and returns to it through two others, within a day.

    python examples/fraud_rings.py

A ring is a cycle in the join graph, the hardest class of query. Crown stores the rings themselves, but no path that
does not close: with a hundred accounts and a thousand transfers there are far more of those. The window makes old
transfers leave by themselves, and the rings with them.
"""

from __future__ import annotations

import datetime
import random
from collections import Counter

import crown

SCHEMA = "CREATE TABLE transfer (id BIGINT, src BIGINT, dst BIGINT, cents BIGINT, at TIMESTAMP)"
RINGS = """SELECT a.src AS first, b.src AS second, c.src AS third, a.id AS start, c.id AS finish, a.cents
           FROM transfer a
           JOIN transfer b ON b.src = a.dst
           JOIN transfer c ON c.src = b.dst AND c.dst = a.src
           WHERE a.id < b.id AND b.id < c.id"""
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def main(*, days: int = 5, transfers_a_day: int = 200, seed: int = 1) -> Counter[int]:
    """Return how many rings were found on each day."""
    window = {"interval": datetime.timedelta(days=1), "column": "at"}
    view = crown.View(RINGS, SCHEMA, windows={"transfer": window})
    print(str(view.explain()).splitlines()[1].strip())
    generator = random.Random(seed)
    found: Counter[int] = Counter()
    for number in range(days * transfers_a_day):
        moment = START + datetime.timedelta(days=number / transfers_a_day)
        source, target = generator.sample(range(40), 2)
        row = (number, source, target, generator.randrange(100, 1000), moment)
        for change in view.insert("transfer", [row]).to_pylist():
            if change["_change_type"] == "insert":
                found[moment.day] += 1
                if found.total() <= 3:
                    accounts = " -> ".join(str(change[name]) for name in ("first", "second", "third", "first"))
                    print(f"{moment:%d %b %H:%M}  {accounts}")
    print(f"{found.total()} rings in {days} days, {len(view)} of them in the last one")
    return found


if __name__ == "__main__":
    main()
