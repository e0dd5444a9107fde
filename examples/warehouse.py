"""Keep a sales report up to date: a fact table with twelve dimensions, all joined by LEFT JOIN.

    python examples/warehouse.py

Dimensions arrive late in real warehouses: a sale is there before its customer, its promotion or its delivery. The
report shows such a sale at once, with NULLs, and completes it when the dimension comes. All twelve joins are one tree:
memory about that of the tables, and a change costs as much as the rows of the report that it changes.
"""

from __future__ import annotations

import random

import crown

DIMENSIONS = (
    *("customer", "product", "store", "employee", "promotion", "currency"),
    *("channel", "payment", "delivery", "supplier", "calendar", "region"),
)
SCHEMA = "\n".join(
    [
        f"CREATE TABLE sale (id BIGINT PRIMARY KEY, cents BIGINT, {', '.join(f'{d}_id BIGINT' for d in DIMENSIONS)});",
        *(f"CREATE TABLE {d} (id BIGINT PRIMARY KEY, name STRING);" for d in DIMENSIONS),
    ]
)
REPORT = f"""SELECT s.id, s.cents, {", ".join(f"{d}.name AS {d}" for d in DIMENSIONS)}
             FROM sale s
             {" ".join(f"LEFT JOIN {d} ON {d}.id = s.{d}_id" for d in DIMENSIONS)}"""
BY_REGION = f"""SELECT COALESCE(region.name, 'not known yet') AS region, COUNT(*) AS sales, SUM(s.cents) AS cents,
                COUNT(promotion.id) AS promoted
                FROM sale s
                {" ".join(f"LEFT JOIN {d} ON {d}.id = s.{d}_id" for d in DIMENSIONS)}
                GROUP BY COALESCE(region.name, 'not known yet')"""


def batches(*, sales: int, members: int, seed: int) -> list[list[tuple[str, tuple[object, ...], int]]]:
    """Return sales and members of dimensions in random order; some members leave again."""
    generator = random.Random(seed)
    changes: list[tuple[str, tuple[object, ...], int]] = [
        ("sale", (i, generator.randrange(100, 9999), *(generator.randrange(members) for _ in DIMENSIONS)), 1)
        for i in range(sales)
    ]
    changes += [(d, (i, f"{d} {i}"), 1) for d in DIMENSIONS for i in range(members) if generator.random() < 0.9]
    generator.shuffle(changes)
    gone = [(table, row, -1) for table, row, _ in changes if table != "sale" and generator.random() < 0.1]
    size = max(1, len(changes) // 10)
    return [changes[start : start + size] for start in range(0, len(changes), size)] + [gone]


def main(*, sales: int = 2000, members: int = 20, seed: int = 1) -> dict[str, tuple[int, int]]:
    """Return the sales and cents of each region."""
    report, regions = crown.View(REPORT, SCHEMA), crown.View(BY_REGION, SCHEMA)
    print(str(report.explain()).splitlines()[1].strip())
    for number, batch in enumerate(batches(sales=sales, members=members, seed=seed)):
        shown = 0
        for table in dict.fromkeys(table for table, _, _ in batch):
            for weight, change in ((1, "insert"), (-1, "delete")):
                rows = [row for name, row, sign in batch if name == table and sign == weight]
                if rows:
                    shown += getattr(report, change)(table, rows).num_rows
                    getattr(regions, change)(table, rows)
        print(f"batch {number}: {len(batch)} changes, {shown} of the report, which has {len(report)} rows")
    return {region: (count, cents) for region, count, cents, _ in regions}


if __name__ == "__main__":
    main()
