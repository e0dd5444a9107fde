"""Messages between a worker and its host: a JSON header, any number of Arrow IPC blobs, a JSON trailer.

Each part is a frame: one byte of kind, eight bytes of length, the bytes. A side that fails in the middle of a
message sends an `ERROR` frame in place of the rest. Nothing is ever unpickled.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crown.errors import CrownError

VERSION = 1

_FRAME = struct.Struct("<BQ")
_HEADER, _BLOB, _END, _ERROR = 1, 2, 3, 4
# A frame longer than this is a torn or foreign stream, not a message.
_LONGEST_FRAME = 1 << 40
# The number of bytes that fit into a socket's address on every platform.
_LONGEST_ADDRESS = 103


@contextlib.contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """Return an address for the socket at `path`. If the path is too long, it goes through the open directory."""
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield str(path)
        return
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)


class HostGone(ConnectionError):
    """The other side closed the connection, or was killed."""


@dataclass(frozen=True)
class RemoteError(Exception):
    """A failure of the host: the name of the error's class, its text, and its stable code if it has one."""

    kind: str
    message: str
    code: str | None

    def __str__(self) -> str:
        return self.message


class Message:
    """A message being received: iterate over its blobs, then read `trailer`."""

    def __init__(self, connection: Connection, header: dict[str, Any]) -> None:
        self._connection = connection
        self.header = header
        self.trailer: dict[str, Any] = {}
        self._ended = False

    def __iter__(self) -> Iterator[bytes]:
        while not self._ended:
            try:
                blob, trailer = self._connection.next_blob()
            except RemoteError:
                self._ended = True
                raise
            if blob is None:
                self.trailer = trailer
                self._ended = True
            else:
                yield blob

    def finish(self) -> dict[str, Any]:
        """Read what is left and return the trailer."""
        for _ in self:
            pass
        return self.trailer


class Connection:
    """Framed messages over a connected socket."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._reader = connected.makefile("rb", buffering=1 << 20)

    def close(self) -> None:
        self._reader.close()
        self._socket.close()

    def send(
        self, header: dict[str, Any], blobs: Iterable[Any] = (), trailer: Callable[[], dict[str, Any]] = dict
    ) -> None:
        """Send one message; `trailer` is called after the last blob. If `blobs` fails half way, the other side is
        notified.
        """
        self._frame(_HEADER, json.dumps(header).encode())
        try:
            for blob in blobs:
                self._frame(_BLOB, blob)
            end = json.dumps(trailer()).encode()
        except HostGone:
            raise
        except Exception as error:
            self.send_error(error)
            raise
        self._frame(_END, end)

    def send_error(self, error: Exception) -> None:
        self._frame(_ERROR, json.dumps(describe(error)).encode())

    def receive(self) -> Message:
        """Return the next message. Its blobs must be read to the end before the one after it."""
        kind, body = self._read()
        if kind == _ERROR:
            raise _remote(body)
        if kind != _HEADER:
            raise HostGone(f"expected a header, got frame kind {kind}")
        return Message(self, json.loads(body))

    def next_blob(self) -> tuple[bytes | None, dict[str, Any]]:
        """Return the next blob of the message being read, or None and the trailer."""
        kind, body = self._read()
        if kind == _BLOB:
            return body, {}
        if kind == _END:
            return None, json.loads(body)
        if kind == _ERROR:
            raise _remote(body)
        raise HostGone(f"unexpected frame kind {kind}")

    def _frame(self, kind: int, body: Any) -> None:
        view = memoryview(body).cast("B")
        try:
            if view.nbytes < 1 << 16:
                self._socket.sendall(_FRAME.pack(kind, view.nbytes) + view)
            else:
                self._socket.sendall(_FRAME.pack(kind, view.nbytes))
                self._socket.sendall(view)
        except OSError as error:
            raise HostGone(str(error)) from error

    def _read(self) -> tuple[int, bytes]:
        kind, length = _FRAME.unpack(self._exactly(_FRAME.size))
        if length > _LONGEST_FRAME:
            raise HostGone(f"frame of {length} bytes: not a message of this protocol")
        return kind, self._exactly(length)

    def _exactly(self, length: int) -> bytes:
        try:
            body = self._reader.read(length)
        except OSError as error:
            raise HostGone(str(error)) from error
        if len(body) < length:
            raise HostGone("the connection was closed")
        return bytes(body)


def describe(error: Exception) -> dict[str, Any]:
    code = error.code if isinstance(error, CrownError) else None
    return {"kind": type(error).__name__, "message": str(error) or type(error).__name__, "code": code}


def _remote(body: bytes) -> RemoteError:
    data = json.loads(body)
    return RemoteError(data["kind"], data["message"], data["code"])
