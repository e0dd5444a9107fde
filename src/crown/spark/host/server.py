"""The engine host's server: `hello`, `have`, `load`, `apply`, `rejected`, `save`. One thread per connection,
one lock per cell.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import crown
from crown.changes import POSITION
from crown.errors import StateError
from crown.spark.flow.chunks import Chunk, pack, read_blob, write_blob
from crown.spark.host.engines import Engines, Held, rebuild
from crown.spark.host.protocol import VERSION, Connection, HostGone, Message


class Server:
    """Serves until stopped; `busy` and `last_request` let the watcher see whether it is in use."""

    def __init__(self) -> None:
        self.engines = Engines()
        self.last_request = time.monotonic()
        self._active = 0
        self._lock = threading.Lock()

    @property
    def busy(self) -> bool:
        return self._active > 0

    def serve(self, listener: socket.socket) -> None:
        while True:
            accepted, _ = listener.accept()
            threading.Thread(target=self._talk, args=(Connection(accepted),), daemon=True).start()

    def _talk(self, connection: Connection) -> None:
        with contextlib.closing(connection), contextlib.suppress(HostGone):
            while True:
                message = connection.receive()
                with self._lock:
                    self._active += 1
                try:
                    self._answer(connection, message)
                finally:
                    with self._lock:
                        self._active -= 1
                    self.last_request = time.monotonic()

    def _answer(self, connection: Connection, message: Message) -> None:
        try:
            operation = getattr(self, f"_do_{message.header['do']}")
            operation(connection, message)
        except HostGone:
            raise
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            with contextlib.suppress(HostGone):
                message.finish()
            connection.send_error(error)

    def _do_hello(self, connection: Connection, message: Message) -> None:
        message.finish()
        connection.send({"protocol": VERSION, "crown": _crown_version(), "pid": os.getpid()})

    def _do_have(self, connection: Connection, message: Message) -> None:
        message.finish()
        held = self._held(message)
        with held.lock:
            connection.send({"have": held.mark == _mark(message)})

    def _do_load(self, connection: Connection, message: Message) -> None:
        """Build the engine from the state's chunks; without any, a new one."""
        header = message.header
        held = self._held(message)
        with held.lock:
            held.engine = held.mark = None
            held.engine = rebuild(header["plan"], map(Chunk.from_bytes, message), header["on_invalid"])
            held.mark = _mark(message)
        connection.send({})

    def _do_apply(self, connection: Connection, message: Message) -> None:
        """Apply a batch and stream its deltas; the engine is then at version + 1 under the worker's new token."""
        header = message.header
        blobs = list(message)
        held = self._held(message)
        with held.lock:
            if held.mark != _mark(message):
                connection.send({"miss": True})
                return
            held.mark = None
            started = time.monotonic()
            tables = [read_blob(blob).read_all() for blob in blobs]
            updates = sum(table.num_rows for table in tables)
            stream = held.engine.stream(
                list(zip(header["tables"], tables, strict=True)), on_invalid=header["on_invalid"]
            )
            produced = 0

            def deltas() -> Iterator[bytes]:
                nonlocal produced
                for rows, blob in pack(pa.RecordBatchReader.from_stream(stream)):
                    produced += rows
                    yield blob

            def finish() -> dict[str, Any]:
                held.rejected = _rejected(held.engine, tables) if header["on_invalid"] == "quarantine" else None
                held.mark = (header["version"] + 1, header["next"])
                return {
                    "updates": updates,
                    "deltas": produced,
                    "seconds": time.monotonic() - started,
                    "rejected": held.rejected.num_rows if held.rejected is not None else 0,
                    "stats": held.engine.stats(),
                }

            connection.send({"miss": False}, deltas(), finish)

    def _do_rejected(self, connection: Connection, message: Message) -> None:
        message.finish()
        held = self._held(message)
        with held.lock:
            _require(held, message)
            rejected, held.rejected = held.rejected, None
            blobs = [] if rejected is None else [write_blob(rejected.to_batches(), rejected.schema)]
            connection.send({}, blobs)

    def _do_save(self, connection: Connection, message: Message) -> None:
        message.finish()
        held = self._held(message)
        with held.lock:
            _require(held, message)
            connection.send({}, held.engine.save())

    def _held(self, message: Message) -> Held:
        header = message.header
        return self.engines.held((header["query"], header["operator"], header["cell"]))


def _mark(message: Message) -> tuple[int, str]:
    return message.header["version"], message.header["token"]


def _require(held: Held, message: Message) -> None:
    if held.mark != _mark(message):
        raise StateError(
            "another attempt took the cell's engine", code="CROWN-ENGINE-TAKEN", hint="Spark retries the task"
        )


def _rejected(engine: Any, tables: list[pa.Table]) -> pa.Table | None:
    """Return the changes that the kernel rejected, with the position in their source if the dispatcher recorded it."""
    rejected = pa.table(engine.rejected())
    if rejected.num_rows == 0:
        return None
    if all(POSITION in table.column_names for table in tables):
        positions = pa.chunked_array([chunk for table in tables for chunk in table[POSITION].chunks], pa.int64())
        index = rejected.schema.get_field_index("position")
        rejected = rejected.set_column(index, "position", positions.take(rejected["position"]))
    return rejected


def _crown_version() -> str:
    return getattr(crown, "__version__", "")
