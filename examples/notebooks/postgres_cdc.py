# %% [markdown]
# # A live view over PostgreSQL
#
# PostgreSQL publishes every change of its tables through logical replication. We read that feed
# with SQL alone and keep a join up to date outside the database: no triggers, no polling of tables.
#
# Needs `pip install 'crown-ivm[postgres]'` and a server with `wal_level = logical`, named by
# `CROWN_POSTGRES` (a connection string).

# %%
import os
import struct
from collections import defaultdict
from typing import Any

import psycopg

import crown

connection = psycopg.connect(os.environ["CROWN_POSTGRES"], autocommit=True)
connection.execute("DROP TABLE IF EXISTS shop_orders, shop_customer")
connection.execute("CREATE TABLE shop_customer (id BIGINT PRIMARY KEY, city TEXT)")
connection.execute("CREATE TABLE shop_orders (id BIGINT PRIMARY KEY, customer BIGINT, cents BIGINT)")

# %% [markdown]
# A *publication* names the tables, a *slot* remembers how far we have read. Both survive a restart
# of this program, and the slot keeps every change until it has been read.
# With REPLICA IDENTITY FULL, a deletion carries the whole old row.

# %%
for table in ("shop_customer", "shop_orders"):
    connection.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
connection.execute("DROP PUBLICATION IF EXISTS shop")
connection.execute("CREATE PUBLICATION shop FOR TABLE shop_customer, shop_orders")
connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'shop'")
connection.execute("SELECT pg_create_logical_replication_slot('shop', 'pgoutput')")

# %% [markdown]
# The feed is in PostgreSQL's own `pgoutput` format: small binary messages, of which we need four.
# `R` describes a table, `I`, `U` and `D` are changes of its rows.


# %%
class Feed:
    """The changes since the last call, by table, as `View.apply` takes them."""

    def __init__(self) -> None:
        self.tables: dict[int, tuple[str, list[str]]] = {}

    def read(self) -> dict[str, list[dict[str, Any]]]:
        changes: dict[str, list[dict[str, Any]]] = defaultdict(list)
        query = "SELECT data FROM pg_logical_slot_get_binary_changes('shop', NULL, NULL, %s, %s, %s, %s)"
        for (message,) in connection.execute(query, ("proto_version", "1", "publication_names", "shop")):
            kind, rest = message[:1], message[1:]
            if kind == b"R":
                self._describe(rest)
            elif kind in b"IUD":
                table, columns = self.tables[struct.unpack(">I", rest[:4])[0]]
                for word, row in self._rows(kind, rest[4:]):
                    changes[table].append({**dict(zip(columns, row, strict=True)), "_change_type": word})
        return changes

    def _describe(self, message: bytes) -> None:
        (relation,) = struct.unpack(">I", message[:4])
        _, name, rest = message[4:].split(b"\0", 2)
        (count,) = struct.unpack(">H", rest[1:3])
        rest, columns = rest[3:], []
        for _ in range(count):
            column, rest = rest[1:].split(b"\0", 1)
            columns.append(column.decode())
            rest = rest[8:]
        self.tables[relation] = name.decode().removeprefix("shop_"), columns

    def _rows(self, kind: bytes, message: bytes) -> list[tuple[str, list[Any]]]:
        """The old row (O or K), then the new one (N), whichever the change has."""
        words = {b"I": ("insert",), b"D": ("delete",), b"U": ("update_preimage", "update_postimage")}[kind]
        rows = []
        for word in words:
            row, message = self._tuple(message[1:])
            rows.append((word, row))
        return rows

    def _tuple(self, message: bytes) -> tuple[list[Any], bytes]:
        (count,) = struct.unpack(">H", message[:2])
        message = message[2:]
        values: list[Any] = []
        for _ in range(count):
            kind, message = message[:1], message[1:]
            if kind == b"n":
                values.append(None)
                continue
            (size,) = struct.unpack(">I", message[:4])
            text, message = message[4 : 4 + size].decode(), message[4 + size :]
            values.append(int(text) if text.lstrip("-").isdigit() else text)
        return values, message


# %%
view = crown.View(
    "SELECT c.city, SUM(o.cents) AS cents FROM orders o JOIN customer c ON c.id = o.customer GROUP BY c.city",
    schema="""CREATE TABLE customer (id BIGINT PRIMARY KEY, city STRING);
              CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, cents BIGINT)""",
)
feed = Feed()

connection.execute("INSERT INTO shop_customer VALUES (1, 'Oslo'), (2, 'Bergen')")
connection.execute("INSERT INTO shop_orders VALUES (10, 1, 500), (11, 2, 700)")
print(view.apply(feed.read()).to_pylist())

# %% [markdown]
# Whatever happens in the database is in the feed, whoever did it: updates, deletions, transactions
# of many statements. Those that are rolled back never appear.

# %%
with connection.transaction():
    connection.execute("UPDATE shop_orders SET cents = cents + 50")
    connection.execute("DELETE FROM shop_orders WHERE id = 11")
    connection.execute("INSERT INTO shop_orders VALUES (12, 2, 900)")
print(view.apply(feed.read()).to_pylist())

# %% [markdown]
# The view always equals what the database would answer:

# %%
answer = connection.execute(
    "SELECT c.city, SUM(o.cents)::BIGINT FROM shop_orders o JOIN shop_customer c ON c.id = o.customer GROUP BY c.city"
).fetchall()
assert sorted(view) == sorted(answer), (sorted(view), answer)
print("the view and PostgreSQL agree:", sorted(view))

# %% [markdown]
# For production, `crown.spark.debezium` reads the same feed through Debezium and Kafka. Drop the
# slot when you are done, or the server keeps its log for ever:

# %%
connection.execute("SELECT pg_drop_replication_slot('shop')")
connection.close()
