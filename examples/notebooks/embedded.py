# %% [markdown]
# # A live view in one process
#
# A shop has customers and orders. We keep the revenue per city up to date while orders arrive and
# are cancelled, and draw it as it changes.
# Needs `pip install crown-ivm pandas polars matplotlib`.

# %%
import random

import matplotlib.pyplot as plt
import pandas
import polars

import crown

view = crown.View(
    """SELECT c.city, COUNT(*) AS orders, SUM(o.cents) AS cents
       FROM orders o JOIN customer c ON c.id = o.customer
       GROUP BY c.city""",
    schema="""CREATE TABLE customer (id BIGINT PRIMARY KEY, city STRING);
              CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, cents BIGINT)""",
)

# %% [markdown]
# Tables come from anywhere: pandas, polars, Arrow, lists of tuples or dicts. Columns are found by
# name.

# %%
customers = pandas.DataFrame({"id": [1, 2, 3], "city": ["Oslo", "Bergen", "Oslo"]})
view.insert("customer", customers)

orders = polars.DataFrame({"id": [10, 11, 12], "customer": [1, 2, 3], "cents": [500, 700, 250]})
delta = view.insert("orders", orders)
print(polars.DataFrame(delta).sort("city"))

# %% [markdown]
# What came back is the *delta*: the rows of the result that changed. A change of one customer
# changes two groups, each with the old row deleted and the new one inserted.

# %%
delta = view.insert("customer", [(3, "Bergen")])  # customer 3 moves: a new row for a primary key replaces the old one
print(delta.to_pandas().sort_values(["city", "_change_type"]).to_string(index=False))

# %% [markdown]
# ## What does it cost?
#
# Explain answers before any data is there.

# %%
print("\n".join(str(view.explain()).splitlines()[:6]))

# %% [markdown]
# ## A live chart
#
# Orders now arrive in batches. In a notebook the chart redraws itself after each; as a script, the
# last one is saved.

# %%
try:
    from IPython.display import clear_output, display
except ImportError:  # run as a script
    clear_output = display = None

generator = random.Random(1)
figure, axes = plt.subplots(figsize=(5, 2.5), layout="constrained")
history: dict[str, list[float]] = {}
stored: list[tuple[int, int, int]] = []

for batch in range(20):
    arrived = [(100 * (batch + 1) + n, generator.randint(1, 3), generator.randint(100, 900)) for n in range(50)]
    cancelled = [stored.pop(generator.randrange(len(stored))) for _ in range(10)] if stored else []
    stored += arrived
    view.insert("orders", arrived)
    view.delete("orders", cancelled)
    for city, _, cents in view:
        history.setdefault(city, []).append(cents / 100)
    axes.clear()
    for city, values in sorted(history.items()):
        axes.plot(values, label=city)
    axes.set(xlabel="batch", ylabel="revenue")
    axes.legend(loc="upper left", frameon=False)
    if display is not None:
        clear_output(wait=True)
        display(figure)

figure.savefig("revenue.png")

# %% [markdown]
# The view agrees with a query over all orders so far, which pandas computes from scratch:

# %%
everything = pandas.DataFrame([*orders.rows(), *stored], columns=["id", "customer", "cents"])
moved = customers.assign(city=["Oslo", "Bergen", "Bergen"])
expected = everything.merge(moved, left_on="customer", right_on="id").groupby("city")["cents"].sum()
assert {city: cents for city, _, cents in view} == expected.to_dict()
print("the view and pandas agree on", len(everything), "orders")
