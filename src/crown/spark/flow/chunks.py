"""The contents of a cell's state: chunks of about 1 MB, each a snapshot part or the blobs of one batch.

The law: replaying the chunks in the order of their index produces the engine that the state names. A snapshot part is
one piece of `Engine.save`; a log chunk holds blobs of changes as they were applied, in order, under the version
that they led to. Every chunk has a checksum, so a damaged one is found before it is used.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from crown.errors import StateError

TARGET_BYTES = 1 << 20

_PART = struct.Struct("<HQ")
_WIRE = struct.Struct("<q?I")


@dataclass(frozen=True)
class Chunk:
    """`version` is the version after the batch, or that of the whole snapshot."""

    version: int
    snapshot: bool
    checksum: int
    data: bytes

    def to_bytes(self) -> bytes:
        """Return the form that is sent to the host."""
        return _WIRE.pack(self.version, self.snapshot, self.checksum) + self.data

    @staticmethod
    def from_bytes(data: bytes) -> Chunk:
        version, snapshot, checksum = _WIRE.unpack_from(data)
        return Chunk(version, snapshot, checksum, data[_WIRE.size :])

    def verified(self, index: int) -> Chunk:
        if zlib.crc32(self.data) != self.checksum:
            raise StateError(
                f"state chunk {index} is corrupt",
                code="CROWN-STATE-CORRUPT",
                reason="its checksum does not match its bytes",
                hint="restore the checkpoint from a copy, or start over with a new one",
            )
        return self


def snapshot_chunks(version: int, parts: Iterable[bytes]) -> Iterator[Chunk]:
    for part in parts:
        yield Chunk(version, True, zlib.crc32(part), part)


def log_chunks(version: int, blobs: Iterable[tuple[str, bytes]]) -> Iterator[Chunk]:
    """Pack (table, blob) pairs into as few chunks of about 1 MB as keep their order."""
    buffer = bytearray()
    for table, blob in blobs:
        if buffer and len(buffer) + len(blob) > TARGET_BYTES * 5 // 4:
            yield _log_chunk(version, buffer)
            buffer = bytearray()
        name = table.encode()
        buffer += _PART.pack(len(name), len(blob))
        buffer += name
        buffer += blob
    if buffer:
        yield _log_chunk(version, buffer)


def log_blobs(chunk: Chunk) -> Iterator[tuple[str, memoryview]]:
    """Yield the (table, blob) pairs of a log chunk."""
    view = memoryview(chunk.data)
    position = 0
    while position < len(view):
        name_length, blob_length = _PART.unpack_from(view, position)
        position += _PART.size
        table = bytes(view[position : position + name_length]).decode()
        position += name_length
        yield table, view[position : position + blob_length]
        position += blob_length


def _log_chunk(version: int, buffer: bytearray) -> Chunk:
    data = bytes(buffer)
    return Chunk(version, False, zlib.crc32(data), data)


def write_blob(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Buffer:
    """Record batches as one Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def read_blob(blob: bytes | memoryview | pa.Buffer) -> pa.RecordBatchReader:
    # A blob may begin at any byte of its chunk; the kernel reads values in place and so needs them
    # aligned.
    options = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.DataTypeSpecific)
    return pa.ipc.open_stream(pa.py_buffer(blob), options=options)


def pack(batches: Iterable[pa.RecordBatch], *, target: int = TARGET_BYTES) -> Iterator[tuple[int, pa.Buffer]]:
    """Record batches of one schema as (rows, blob) pairs of about `target` bytes: small ones joined, large ones cut."""
    waiting: list[pa.RecordBatch] = []
    size = rows = 0
    for batch in batches:
        for piece in _cut(batch, target):
            waiting.append(piece)
            size += piece.nbytes
            rows += piece.num_rows
            if size >= target:
                yield rows, write_blob(waiting, waiting[0].schema)
                waiting, size, rows = [], 0, 0
    if waiting:
        yield rows, write_blob(waiting, waiting[0].schema)


def _cut(batch: pa.RecordBatch, target: int) -> Iterator[pa.RecordBatch]:
    pieces = max(1, round(batch.nbytes / target))
    step = -(-batch.num_rows // pieces) if batch.num_rows else 1
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)
