# %% [markdown]
# # A live view on Spark
#
# The same kind of view, over Structured Streaming: changes are read from files, the view's deltas
# go to a table that always equals its result.
# Needs `pip install 'crown-ivm[spark]'` and Java 17 or 21.

# %%
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

import crown.spark

spark = crown.spark.session(master="local[2]", cells=1)

# %% [markdown]
# Changes of two tables arrive as Parquet files in two directories. `_change_type` says what a row
# does; without it, a row is inserted.


# %%
def arrive(table: str, number: int, **columns: list[object]) -> None:
    Path("changes", table).mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pa.table(columns), f"changes/{table}/{number}.parquet")


arrive("customer", 0, id=[1, 2], city=["Oslo", "Bergen"])
arrive("orders", 0, id=[10, 11, 12], customer=[1, 2, 1], cents=[500, 700, 250])

# %%
customer = crown.spark.files(spark, "changes/customer", "id BIGINT, city STRING")
orders = crown.spark.files(spark, "changes/orders", "id BIGINT, customer BIGINT, cents BIGINT")

deltas = crown.spark.maintain(
    spark,
    "SELECT c.city, SUM(o.cents) AS cents FROM orders o JOIN customer c ON c.id = o.customer GROUP BY c.city",
    {"customer": customer, "orders": orders},
    keys={"customer": ["id"]},
    cells=1,
)

# %% [markdown]
# `materialize` keeps a Parquet table equal to the view. Any other sink of Spark works too: the
# deltas are an ordinary streaming DataFrame.

# %%
query = crown.spark.materialize(deltas, checkpoint="checkpoint", parquet="revenue").start()
query.processAllAvailable()
print(sorted(tuple(row) for row in crown.spark.read_materialized(spark, "revenue").collect()))

# %% [markdown]
# A customer moves and an order is cancelled. Only the two changed groups are touched.

# %%
arrive("customer", 1, id=[2], city=["Oslo"])
arrive("orders", 1, id=[10], customer=[1], cents=[500], _change_type=["delete"])
query.processAllAvailable()
result = sorted(tuple(row) for row in crown.spark.read_materialized(spark, "revenue").collect())
print(result)
assert result == [("Oslo", 950)]

# %% [markdown]
# The stream can be stopped and started again: it continues from its checkpoint. Here is the whole
# view, read from the state itself:

# %%
query.stop()
crown.spark.snapshot(spark, "checkpoint").show()
spark.stop()
