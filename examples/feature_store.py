"""Keep a regression fresh over a join that is never computed.

    python examples/feature_store.py

To fit a line, least squares needs only sums over the joined rows: their number, the sums of each feature, and the sums
of products of two. These form a ring, so Crown carries them up the tree instead of joining: one view for each segment
keeps all of them, and an update costs a few additions. For models that need rows, `sample` draws uniform rows from the
same join.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np

import crown

SCHEMA = """CREATE TABLE customer (id BIGINT PRIMARY KEY, segment STRING, income DOUBLE);
            CREATE TABLE product (id BIGINT PRIMARY KEY, price DOUBLE);
            CREATE TABLE purchase (customer BIGINT, product BIGINT, amount DOUBLE)"""
JOINED = "FROM purchase b JOIN customer c ON c.id = b.customer JOIN product p ON p.id = b.product"
FEATURES = {"income": "c.income", "price": "p.price", "amount": "b.amount"}
NAMES = list(FEATURES)


def covariance_query() -> str:
    """Return the query with the sums of every feature and of every product of two, per segment."""
    sums = [f"SUM({FEATURES[name]}) AS {name}" for name in NAMES]
    pairs = [(a, b) for i, a in enumerate(NAMES) for b in NAMES[i:]]
    products = [f"SUM({FEATURES[a]} * {FEATURES[b]}) AS {a}_{b}" for a, b in pairs]
    return f"SELECT c.segment, COUNT(*) AS n, {', '.join([*sums, *products])} {JOINED} GROUP BY c.segment"


def fit(row: Mapping[str, float]) -> np.ndarray:
    """Return intercept, income and price of the line that predicts the amount, from the sums alone."""

    def product(a: str, b: str) -> float:
        return row[f"{a}_{b}"] if f"{a}_{b}" in row else row[f"{b}_{a}"]

    inputs = ["income", "price"]
    normal = np.array(
        [
            [row["n"], row["income"], row["price"]],
            *([row[a], *(product(a, b) for b in inputs)] for a in inputs),
        ]
    )
    target = np.array([row["amount"], *(product(a, "amount") for a in inputs)])
    return np.linalg.solve(normal, target)


def main(*, purchases: int = 3000, seed: int = 1) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return for each segment the coefficients from the view, and those from the joined rows."""
    generator = random.Random(seed)
    features = crown.View(covariance_query(), SCHEMA)
    rows = crown.View(f"SELECT c.segment, c.income, p.price, b.amount {JOINED}", SCHEMA)
    customers = {n: (n, generator.choice(["web", "store"]), generator.uniform(20, 90)) for n in range(200)}
    products = {n: (n, generator.uniform(1, 50)) for n in range(50)}
    for view in (features, rows):
        view.insert("customer", list(customers.values()))
        view.insert("product", list(products.values()))
    bought = []
    for _ in range(purchases):
        customer, product = generator.randrange(200), generator.randrange(50)
        slope = 0.3 if customers[customer][1] == "web" else 0.1
        amount = 2 + slope * customers[customer][2] + 0.5 * products[product][1] + generator.gauss(0, 1)
        bought.append((customer, product, amount))
    returned = generator.sample(bought, purchases // 10)
    for view in (features, rows):
        view.insert("purchase", bought)
        view.delete("purchase", returned)

    table = rows.to_pandas()
    result = {}
    for row in features.to_arrow().to_pylist():
        own = table[table["segment"] == row["segment"]]
        design = np.column_stack([np.ones(len(own)), own["income"], own["price"]])
        expected, *_ = np.linalg.lstsq(design, own["amount"].to_numpy(), rcond=None)
        result[row["segment"]] = fit(row), expected
        print(f"{row['segment']}: amount = {' + '.join(f'{c:.2f}' for c in fit(row))} (intercept, income, price)")
    sample = rows.sample(256, seed=seed)
    print(f"and a batch of {sample.num_rows} uniform rows out of {len(rows):,}, for models that need them")
    return result


if __name__ == "__main__":
    main()
