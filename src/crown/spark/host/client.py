"""A worker's side of the engine host: apply a batch to a cell's engine, rebuilding it first if the host lacks it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from crown.errors import CrownError, InvalidChange, PlanError, StateError
from crown.spark.flow.chunks import Chunk, read_blob
from crown.spark.host.launch import connect, log_tail
from crown.spark.host.protocol import Connection, HostGone, Message, RemoteError

# Deltas are held back up to this size: a host that dies before is replaced without Spark noticing.
# Beyond it they flow, and a dying host fails the task, which Spark retries.
_HELD_BACK_BYTES = 64 << 20
_ATTEMPTS = 3

_connection: Connection | None = None


@dataclass
class CellEngine:
    """One cell's engine in the host. `view` and `operator` distinguish the operators of one query.

    `replay` is how the log of its state treats invalid changes; `on_invalid` may have been changed since.
    """

    query: str
    operator: str
    cell: int
    plan: str
    on_invalid: str
    view: str = ""
    replay: str = "raise"
    result: dict[str, Any] = field(default_factory=dict)  # of the last `apply`, when its deltas are read

    def apply(
        self,
        mark: tuple[int, str],
        following: str,
        blobs: list[tuple[str, bytes]],
        chunks: Callable[[], Iterable[Chunk]],
    ) -> Iterator[bytes]:
        """The deltas of `blobs` on the engine at `mark`, which is then at version + 1 under the token `following`.

        `chunks` returns the state that `mark` names; it is read only if the host does not have that engine.
        """
        for attempt in range(_ATTEMPTS):
            try:
                reply = self._apply_once(mark, following, blobs, chunks)
                if reply is None:
                    continue
                held_back, size = [], 0
                for blob in reply:
                    held_back.append(blob)
                    size += len(blob)
                    if size > _HELD_BACK_BYTES:
                        break
            except HostGone as error:
                _drop()
                if attempt + 1 == _ATTEMPTS:
                    raise self._died(error) from error
                continue
            except RemoteError as error:
                raise self._failed(error) from error
            except BaseException:
                # Half a message may have been sent, so this connection can't be used any more.
                _drop()
                raise
            yield from self._flow(held_back, reply)
            self.result = reply.trailer
            return
        raise self._named(
            "other attempts keep taking the engine of this cell",
            code="CROWN-ENGINE-TAKEN",
            hint="Spark retries the task; if this continues, turn speculation off",
        )

    def rejected(self, mark: tuple[int, str]) -> pa.Table:
        """Return the changes that the last batch rejected."""
        blobs = self._ask("rejected", mark)
        return read_blob(blobs[0]).read_all()

    def save(self, mark: tuple[int, str]) -> list[bytes]:
        """Return the engine's state in parts."""
        return self._ask("save", mark)

    def _apply_once(
        self,
        mark: tuple[int, str],
        following: str,
        blobs: list[tuple[str, bytes]],
        chunks: Callable[[], Iterable[Chunk]],
    ) -> Message | None:
        """Return the reply, or None when another attempt took the engine in between."""
        connection = _connected()
        header = self._header(mark)
        connection.send({"do": "have", **header})
        have = connection.receive()
        have.finish()
        if not have.header["have"]:
            loading = {"do": "load", "plan": self.plan, "on_invalid": self.replay, **header}
            connection.send(loading, (chunk.to_bytes() for chunk in chunks()))
            connection.receive().finish()
        tables = [table for table, _ in blobs]
        applying = {"do": "apply", "next": following, "tables": tables, "on_invalid": self.on_invalid, **header}
        connection.send(applying, (blob for _, blob in blobs))
        reply = connection.receive()
        if reply.header["miss"]:
            reply.finish()
            return None
        return reply

    def _flow(self, held_back: list[bytes], reply: Message) -> Iterator[bytes]:
        complete = False
        try:
            yield from held_back
            yield from reply
            complete = True
        except HostGone as error:
            raise self._died(error) from error
        except RemoteError as error:
            raise self._failed(error) from error
        finally:
            if not complete:
                _drop()

    def _ask(self, what: str, mark: tuple[int, str]) -> list[bytes]:
        try:
            connection = _connected()
            connection.send({"do": what, **self._header(mark)})
            return list(connection.receive())
        except HostGone as error:
            _drop()
            raise self._died(error) from error
        except RemoteError as error:
            raise self._failed(error) from error

    def _header(self, mark: tuple[int, str]) -> dict[str, Any]:
        version, token = mark
        operator = f"{self.view}/{self.operator}"
        return {"query": self.query, "operator": operator, "cell": self.cell, "version": version, "token": token}

    def _died(self, error: HostGone) -> StateError:
        tail = log_tail()
        return self._named(
            "the engine host died while it processed this cell",
            code="CROWN-HOST-DIED",
            reason=f"{error}; most often it ran out of memory"
            + (f". Its log ends with:\n{tail}" if tail else " and was killed by the system"),
            hint="give it more memory (CROWN_HOST_MEMORY, or a larger machine), or use more cells",
        )

    def _failed(self, error: RemoteError) -> CrownError:
        if error.kind == "MemoryError":
            return self._named(
                "the cell does not fit into the memory of the engine host",
                code="CROWN-HOST-MEMORY",
                reason=error.message,
                hint="raise CROWN_HOST_MEMORY, or use more cells",
            )
        kinds: dict[str, type[CrownError]] = {"InvalidChange": InvalidChange, "PlanError": PlanError}
        message = f"cell {self.cell} ({self.operator}): {error.message}"
        return kinds.get(error.kind, StateError)(message, code=error.code or "CROWN-INTERNAL")

    def _named(self, message: str, **details: Any) -> StateError:
        return StateError(f"cell {self.cell} ({self.operator}): {message}", **details)


def _connected() -> Connection:
    global _connection
    if _connection is None:
        _connection = connect()
    return _connection


def _drop() -> None:
    global _connection
    if _connection is not None:
        _connection.close()
        _connection = None
