"""Broken Arrow data for a view, in a process of its own: `python arrow_fuzz.py SEED COUNT`.

Half of the batches are pyarrow tables whose buffers are overwritten after they were made; the others are structures of
the C stream interface with wrong counts, missing pointers and unknown types. A table is accepted only if pyarrow's own
full validation accepts it too, and a clean copy of it leads a twin to the same answer; all others are refused with a
`CrownError`, and change nothing. Never in here, because no reader of the C interface can notice it: a structure
that claims more memory than it has.
"""

from __future__ import annotations

import ctypes
import datetime
import random
import sys
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import crown
from crown import _kernel
from crown.ir.serial import to_json

SCHEMA = """CREATE TABLE t (k BIGINT, s STRING, x BINARY, m DECIMAL(12,2), b BOOLEAN, d DATE, at TIMESTAMP, f DOUBLE,
                            l ARRAY<STRING>, p MAP<STRING, BIGINT>, q STRUCT<n: BIGINT, s: STRING>);
            CREATE TABLE u (k BIGINT, s STRING)"""
SQL = "SELECT t.k, t.s, t.x, t.m, t.b, t.d, t.at, t.f, t.l, t.p, t.q FROM t JOIN u ON t.s = u.s"
TEXTS = ["", "a", "beta", "gämma", "a text of more than twelve bytes", "日本"]

TYPES: dict[str, list[pa.DataType]] = {
    "k": [pa.int64(), pa.int8(), pa.uint32(), pa.float64(), pa.decimal128(9, 0), pa.dictionary(pa.int16(), pa.int64())],
    "s": [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.list_(pa.string()),
    ],
    "x": [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3), pa.string()],
    "m": [pa.decimal128(12, 2), pa.decimal128(4, 1), pa.decimal256(40, 2), pa.int32(), pa.decimal64(10, 2)],
    "b": [pa.bool_(), pa.int8()],
    "d": [pa.date32(), pa.date64(), pa.timestamp("s")],
    "at": [pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.timestamp("s", "No/Where"), pa.date32(), pa.duration("s")],
    "l": [pa.list_(pa.string()), pa.large_list(pa.large_string()), pa.list_(pa.dictionary(pa.int8(), pa.string()))],
    "p": [pa.map_(pa.string(), pa.int64()), pa.map_(pa.large_string(), pa.int8())],
    "q": [pa.struct([("n", pa.int64()), ("s", pa.string())]), pa.struct([("s", pa.large_string()), ("n", pa.int8())])],
    "f": [pa.float64(), pa.float32(), pa.float16(), pa.uint64(), pa.run_end_encoded(pa.int32(), pa.float64())],
}


def values(rng: random.Random, name: str, rows: int) -> list[Any]:
    def one() -> Any:
        number = rng.randrange(100)
        match name:
            case "s":
                return rng.choice(TEXTS)
            case "l":
                return [rng.choice([*TEXTS, None]) for _ in range(rng.randrange(3))]
            case "p":
                return [(text, rng.choice([1, None])) for text in TEXTS if rng.random() < 0.3]
            case "q":
                return {"n": number, "s": rng.choice(TEXTS)}
            case "x":
                return rng.choice([b"abc", b"xyz"])
            case "m":
                return Decimal(number)
            case "b":
                return rng.random() < 0.5
            case "d":
                return datetime.date(2020, 1, 1) + datetime.timedelta(days=number)
            case "at":
                return datetime.datetime(2020, 1, 1) + datetime.timedelta(days=number)
            case "f":
                return float(number)
        return number

    return [None if rng.random() < 0.1 else one() for _ in range(rows)]


def array(rng: random.Random, name: str, rows: int) -> pa.Array:
    """Valid values in one of the types that the column may come in; sometimes a slice of more."""
    kind = rng.choice(TYPES[name]) if rng.random() < 0.5 else TYPES[name][0]
    skip = rng.choice([0, 0, 1, 9])
    plain = values(rng, name, rows + skip)
    try:
        if pa.types.is_dictionary(kind):
            made = pa.array(plain, kind.value_type).dictionary_encode().cast(kind)
        elif pa.types.is_run_end_encoded(kind):
            made = pc.run_end_encode(pa.array(plain, kind.value_type))
        elif pa.types.is_list(kind):
            made = pa.array([[value] for value in plain], kind)
        else:
            made = pa.array(plain, TYPES[name][0]).cast(kind)
    except (pa.ArrowException, TypeError):
        made = pa.array(plain, TYPES[name][0])
    return made.slice(skip)


def writable(made: pa.Array, memory: list[np.ndarray[Any, Any]]) -> pa.Array:
    """The same array over copies of its buffers, which `memory` lists."""

    def copy(buffer: pa.Buffer | None) -> pa.Buffer | None:
        if buffer is None:
            return None
        memory.append(np.frombuffer(buffer, np.uint8).copy())
        return pa.py_buffer(memory[-1])

    kind = made.type
    if pa.types.is_nested(kind) or pa.types.is_run_end_encoded(kind):
        return made
    if pa.types.is_dictionary(kind):
        dictionary = writable(made.dictionary, memory)
        buffers = [copy(buffer) for buffer in made.indices.buffers()]
        return pa.DictionaryArray.from_buffers(kind, len(made), buffers, dictionary, offset=made.offset)
    return pa.Array.from_buffers(kind, len(made), [copy(buffer) for buffer in made.buffers()], offset=made.offset)


def overwrite(rng: random.Random, memory: list[np.ndarray[Any, Any]]) -> None:
    for _ in range(rng.choice([0, 1, 1, 2, 5])):
        filled = [block for block in memory if len(block)]
        if not filled:
            return
        block = rng.choice(filled)
        width = rng.choice([1, 1, 2, 4, 8])
        position = rng.randrange(max(1, len(block) // width)) * width
        odd = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        block[position : position + width] = odd


def table(rng: random.Random) -> pa.Table:
    rows = rng.choice([0, 1, 3, 12])
    memory: list[np.ndarray[Any, Any]] = []
    arrays = {name: writable(array(rng, name, rows), memory) for name in TYPES}
    if rng.random() < 0.2:
        arrays["_change_type"] = writable(pa.array(["insert"] * rows), memory)
    made = pa.table(arrays)
    if rng.random() < 0.1:
        made = made.rename_columns([rng.choice(["k", "K", "s", name]) for name in made.column_names])
    overwrite(rng, memory)
    return made


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
RELEASE_STREAM = ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))
GET_SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))
GET_NEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))
LAST_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Stream))
Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", RELEASE_SCHEMA),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", RELEASE_ARRAY),
    ("private_data", ctypes.c_void_p),
]
Stream._fields_ = [
    ("get_schema", GET_SCHEMA),
    ("get_next", GET_NEXT),
    ("get_last_error", LAST_ERROR),
    ("release", RELEASE_STREAM),
    ("private_data", ctypes.c_void_p),
]


def release(pointer: Any) -> None:
    pointer.contents.release = type(pointer.contents.release)()


KEPT = (RELEASE_SCHEMA(release), RELEASE_ARRAY(release), RELEASE_STREAM(release))
capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype = ctypes.py_object
capsule_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Producer:
    """A stream over copies of the C structures of `batch`, which `damage` changes."""

    def __init__(self, batch: pa.RecordBatch, damage: Callable[[Producer], None]) -> None:
        self.code, self.message, self.capsule, self.released = 0, b"the disk is on fire", b"arrow_array_stream", False
        self.kept: list[Any] = [batch]
        exported = (Schema(), Array())
        batch._export_to_c(ctypes.addressof(exported[1]), ctypes.addressof(exported[0]))
        self.kept += exported
        self.schemas: list[Schema] = []
        self.arrays: list[Array] = []
        self.schema, self.array = self.copy_schema(exported[0]), self.copy_array(exported[1])
        damage(self)

    def copy_schema(self, of: Schema) -> Schema:
        made = Schema(of.format, of.name, None, of.flags, of.n_children, release=KEPT[0])
        pointers = (ctypes.POINTER(Schema) * (of.n_children + 3))()
        for position in range(of.n_children):
            pointers[position] = ctypes.pointer(self.copy_schema(of.children[position].contents))
        made.children = ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(Schema)))
        if of.dictionary:
            made.dictionary = ctypes.pointer(self.copy_schema(of.dictionary.contents))
        self.kept.append(pointers)
        self.schemas.append(made)
        return made

    def copy_array(self, of: Array) -> Array:
        made = Array(of.length, of.null_count, of.offset, of.n_buffers, of.n_children, release=KEPT[1])
        buffers = (ctypes.c_void_p * (of.n_buffers + 8))()
        for position in range(of.n_buffers):
            buffers[position] = of.buffers[position]
        made.buffers = ctypes.cast(buffers, ctypes.POINTER(ctypes.c_void_p))
        pointers = (ctypes.POINTER(Array) * (of.n_children + 3))()
        for position in range(of.n_children):
            pointers[position] = ctypes.pointer(self.copy_array(of.children[position].contents))
        made.children = ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(Array)))
        if of.dictionary:
            made.dictionary = ctypes.pointer(self.copy_array(of.dictionary.contents))
        self.kept += [buffers, pointers]
        self.arrays.append(made)
        return made

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        sent: list[bool] = []

        def get_schema(stream: Any, out: Any) -> int:
            ctypes.memmove(out, ctypes.byref(self.schema), ctypes.sizeof(Schema))
            return self.code if self.code < 0 else 0

        def get_next(stream: Any, out: Any) -> int:
            if sent:
                ctypes.memset(out, 0, ctypes.sizeof(Array))
                return max(self.code, 0)
            sent.append(True)
            ctypes.memmove(out, ctypes.byref(self.array), ctypes.sizeof(Array))
            return 0

        message = ctypes.create_string_buffer(self.message)
        last = LAST_ERROR(lambda stream: ctypes.addressof(message))
        stream = Stream(GET_SCHEMA(get_schema), GET_NEXT(get_next), last, KEPT[2])
        if self.released:
            stream.release = RELEASE_STREAM()
        self.kept += [stream, message, get_schema, get_next]
        return capsule_new(ctypes.addressof(stream), self.capsule, None)


def damage_structures(rng: random.Random) -> Callable[[Producer], None]:
    """One or two wrong things; none of them asks for more memory than the buffers have."""

    def counts(producer: Producer) -> None:
        victim = rng.choice(producer.arrays)
        field = rng.choice(["length", "offset", "null_count", "n_buffers", "n_children"])
        now = getattr(victim, field)
        lies = [-1, -(2**63), 2**63 - 1, 2**62, 2**50, 0]
        if field == "length":
            lies.append(max(0, now - 1))
        elif field != "offset":
            lies += [now + 1, now + 2, 1, 2, 3]
        setattr(victim, field, rng.choice(lies))

    def pointers(producer: Producer) -> None:
        victim = rng.choice(producer.arrays)
        match rng.randrange(5):
            case 0 if victim.buffers:
                victim.buffers[rng.randrange(3)] = None
            case 1:
                victim.buffers = ctypes.POINTER(ctypes.c_void_p)()
            case 2:
                victim.dictionary = ctypes.POINTER(Array)()
            case 3:
                victim.dictionary = ctypes.pointer(victim)
            case _:
                victim.children[rng.randrange(3)] = ctypes.POINTER(Array)()

    def types(producer: Producer) -> None:
        victim = rng.choice(producer.schemas)
        formats = [
            b"",
            b"zz",
            b"+l",
            b"+s",
            b"+r",
            b"+ud:0",
            b"w:-5",
            b"w:x",
            b"d:500,2",
            b"d:5",
            b"d:3,-9",
            b"ts?:",
            b"n",
        ]
        match rng.randrange(4):
            case 0:
                victim.format = rng.choice(formats)
            case 1:
                victim.format = None
            case 2:
                victim.name = rng.choice([None, b"\xff\xfe", b"", b"k", b"s"])
            case _:
                producer.schema.n_children = rng.choice([-1, 0, 3, 2**62])

    def stream(producer: Producer) -> None:
        match rng.randrange(4):
            case 0:
                producer.code = rng.choice([5, 22, -1])
            case 1:
                producer.released = True
            case 2:
                producer.capsule = b"arrow_schema"
            case _:
                producer.code, producer.message = 5, b"\xff\xfe"

    def damage(producer: Producer) -> None:
        for _ in range(rng.choice([0, 1, 1, 2])):
            rng.choice([counts, counts, pointers, types, stream])(producer)

    return damage


def contents(view: crown.View) -> Counter[str]:
    rows = view.to_arrow()
    # Instants outside of Python's calendar have no datetime.
    numbers = {pa.date32(): pa.int32(), pa.timestamp("us", "UTC"): pa.int64()}
    plain = [column.cast(numbers.get(column.type, column.type)) for column in rows.columns]
    return Counter(map(repr, zip(*(c.to_pylist() for c in plain), strict=True)))


def new_view(threads: int) -> crown.View:
    view = crown.View(SQL, SCHEMA, threads=threads)
    view.insert("u", [(n, text) for n, text in enumerate(TEXTS)])
    return view


def broken(data: pa.Table) -> str | None:
    try:
        for chunk in (chunk for column in data.columns for chunk in column.iterchunks()):
            # Of an empty dictionary nothing is read.
            empty = pa.types.is_dictionary(chunk.type) and not len(chunk.dictionary)
            (chunk.indices if empty else chunk).validate(full=True)
    except pa.ArrowException as error:
        return str(error)
    return None


def clean(data: pa.Table) -> pa.Table:
    """Fresh arrays of the same values."""
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    columns = [pa.array(c.to_pylist(), plain[c.type]) if c.type in plain else c for c in data.columns]
    return pa.table(columns, names=data.column_names).take(pa.array(range(data.num_rows), pa.int64()))


def offer(apply: Callable[[], Any], where: str) -> bool:
    try:
        apply()
    except crown.CrownError as error:
        refusal = error
    else:
        return True
    assert "panic" not in str(refusal) and refusal.code != "CROWN-INTERNAL", f"{where}: {refusal}"
    return False


def fuzz_contents(seed: int, count: int) -> int:
    """Tables with overwritten buffers, through a view."""
    accepted = 0
    view, twin = new_view(1), new_view(1)
    for number in range(count):
        where = f"seed {seed}, table {number}"
        print(where, file=sys.stderr, flush=True)
        rng = random.Random(f"{seed}:table:{number}")
        if number % 100 == 0:
            view, twin = new_view(rng.choice([1, 1, 2])), new_view(1)
        data = table(rng)
        offered: Any = data if rng.random() < 0.5 else data.to_reader()
        # Of no rows nothing is read.
        if offer(lambda: view.apply({"t": offered}), where) and data.num_rows:  # noqa: B023
            assert (why := broken(data)) is None, f"{where}: accepted, but broken: {why}"
            twin.apply({"t": clean(data)})
            accepted += 1
        if number % 20 == 19:
            assert contents(view) == contents(twin), where
    return accepted


def fuzz_structures(seed: int, count: int) -> int:
    """Wrong structures, straight into the kernel: pyarrow would refuse most of them itself."""
    accepted = 0
    plan = to_json(new_view(1).plan)
    empty = _kernel.Engine(plan)
    for number in range(count):
        where = f"seed {seed}, structure {number}"
        print(where, file=sys.stderr, flush=True)
        rng = random.Random(f"{seed}:structure:{number}")
        batch = pa.table({name: array(rng, name, 3) for name in TYPES}).combine_chunks().to_batches()[0]
        producer = Producer(batch, damage_structures(rng))
        if offer(lambda: empty.apply([("t", producer)]), where):  # noqa: B023
            empty = _kernel.Engine(plan)
            accepted += 1
        else:
            assert empty.stats()["stages"][0]["rows"] == 0, where
    return accepted


def main(seed: int, count: int) -> None:
    for fuzz in (fuzz_contents, fuzz_structures):
        accepted = fuzz(seed, count // 2)
        print(f"{fuzz.__name__}: {accepted} of {count // 2} accepted")
        assert 0 < accepted < count // 2


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
