"""A social network with the shape of LDBC SNB: a generator, and a reader for its CSV files.

Tables, each in order of `created` (milliseconds since 1970): person, knows (both directions), message
(`reply_of` is NULL for posts), message_tag, and tag, which has no time and never changes.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from crown.errors import SchemaError

SOCIAL_SCHEMA = """\
CREATE TABLE person (id BIGINT NOT NULL PRIMARY KEY, first_name STRING, last_name STRING, created BIGINT NOT NULL);
CREATE TABLE knows (p1 BIGINT NOT NULL, p2 BIGINT NOT NULL, created BIGINT NOT NULL, PRIMARY KEY (p1, p2));
CREATE TABLE message (
  id BIGINT NOT NULL PRIMARY KEY, creator BIGINT NOT NULL, reply_of BIGINT, length BIGINT, created BIGINT NOT NULL);
CREATE TABLE message_tag (
  message BIGINT NOT NULL, tag BIGINT NOT NULL, created BIGINT NOT NULL, PRIMARY KEY (message, tag));
CREATE TABLE tag (id BIGINT NOT NULL PRIMARY KEY, name STRING NOT NULL);
"""

_FIRST_NAMES = ("Ada", "Bao", "Carla", "Deniz", "Emeka", "Farah", "Goran", "Hina", "Ivo", "Jun", "Kofi", "Lena")
_LAST_NAMES = ("Abe", "Berg", "Cruz", "Diaz", "Eze", "Fox", "Gupta", "Haas", "Ito", "Jones", "Khan", "Li")
_BEGIN = 1_262_304_000_000  # 2010-01-01
_SPAN = 3 * 365 * 86_400_000


def social_network(scale: float, *, seed: int) -> dict[str, pa.Table]:
    """Return a network about as large as LDBC SNB of that scale factor; the same arguments always give the same one.

    At 0.1: 1,585 persons, 14 thousand pairs of friends, 300 thousand messages. Popularity of persons and tags, and
    the number of messages a person writes, follow power laws; nothing refers to what does not exist yet.
    """
    if scale <= 0:
        raise ValueError(f"scale must be above 0, not {scale}")
    generator = np.random.default_rng(seed)
    persons = max(3, round(10_000 * scale**0.8))
    joined = np.sort(_BEGIN + generator.integers(0, _SPAN // 2, persons))
    messages = _messages(generator, joined, max(1, round(3_000_000 * scale)))
    tags = max(10, round(16_000 * min(1.0, scale * 10)))
    return {
        "person": pa.table(
            {
                "id": np.arange(persons),
                "first_name": _pick(_FIRST_NAMES, generator.integers(0, len(_FIRST_NAMES), persons)),
                "last_name": _pick(_LAST_NAMES, generator.integers(0, len(_LAST_NAMES), persons)),
                "created": joined,
            }
        ),
        "knows": _knows(generator, joined, max(1, round(9 * (scale * 10) ** 0.3 * persons))),
        "message": messages,
        "message_tag": _message_tags(generator, messages, tags),
        "tag": pa.table({"id": np.arange(tags), "name": [f"tag_{number}" for number in range(tags)]}),
    }


def read_social_network(folder: str | os.PathLike[str]) -> dict[str, pa.Table]:
    """LDBC SNB Interactive CSV files (`|` between fields; plain, `.gz` or `.zst`): person, person_knows_person,
    message, message_hasTag_tag and tag, with the columns of SNB's own header lines.
    """
    person = _read_csv(folder, "person", ("personId", "firstName", "lastName", "creationDateMs"))
    knows = _read_csv(folder, "person_knows_person", ("person1Id", "person2Id", "creationDateMs"))
    message = _read_csv(
        folder, "message", ("messageId", "creatorPersonId", "replyOfMessageId", "length", "creationDateMs")
    )
    message_tag = _read_csv(folder, "message_hasTag_tag", ("messageId", "tagId", "messageCreationDateMs"))
    tag = _read_csv(folder, "tag", ("tagId", "name"))
    pairs = [knows.rename_columns(["p1", "p2", "created"]), knows.rename_columns(["p2", "p1", "created"])]
    return {
        "person": _by_time(person.rename_columns(["id", "first_name", "last_name", "created"])),
        "knows": _by_time(pa.concat_tables([pairs[0], pairs[1].select(["p1", "p2", "created"])])),
        "message": _by_time(message.rename_columns(["id", "creator", "reply_of", "length", "created"])),
        "message_tag": _by_time(message_tag.rename_columns(["message", "tag", "created"])),
        "tag": tag.rename_columns(["id", "name"]),
    }


def _knows(generator: np.random.Generator, joined: npt.NDArray[np.int64], pairs: int) -> pa.Table:
    persons = len(joined)
    pairs = min(pairs, persons * (persons - 1) // 4)
    found: npt.NDArray[np.int64] = np.empty(0, np.int64)
    while len(found) < pairs:
        one = _power_law(generator, persons, 2 * pairs, 0.45)
        other = generator.integers(0, persons, 2 * pairs)
        low, high = np.minimum(one, other), np.maximum(one, other)
        candidates = np.r_[found, (low * persons + high)[low != high]]
        _, first = np.unique(candidates, return_index=True)
        found = candidates[np.sort(first)][:pairs]
    low, high = found // persons, found % persons
    met = _later(generator, joined[high])  # ids follow the time of joining, so the higher one joined last
    return _by_time(pa.table({"p1": np.r_[low, high], "p2": np.r_[high, low], "created": np.r_[met, met]}))


def _messages(generator: np.random.Generator, joined: npt.NDArray[np.int64], count: int) -> pa.Table:
    creator = _power_law(generator, len(joined), count, 0.55)
    created = _later(generator, joined[creator])
    order = np.argsort(created, kind="stable")
    created, creator = created[order], creator[order]
    # Two thirds are replies; recent messages get most of them.
    position = np.arange(count)
    back = np.minimum((generator.pareto(0.6, count) * 3 + 1).astype(np.int64), count)
    reply = position - back
    is_reply = (generator.random(count) < 0.66) & (reply >= 0)
    return pa.table(
        {
            "id": position,
            "creator": creator,
            "reply_of": pa.array(np.maximum(reply, 0), mask=~is_reply),
            "length": pa.array((generator.pareto(1.5, count) * 60 + 1).clip(1, 2000).astype(np.int64)),
            "created": created,
        }
    )


def _message_tags(generator: np.random.Generator, messages: pa.Table, tags: int) -> pa.Table:
    count = round(messages.num_rows * 0.9)
    message = np.sort(generator.integers(0, messages.num_rows, count))
    tag = _power_law(generator, tags, count, 0.8)
    distinct = np.unique(message * tags + tag)
    message, tag = distinct // tags, distinct % tags
    return pa.table({"message": message, "tag": tag, "created": messages["created"].to_numpy()[message]})


def _power_law(generator: np.random.Generator, size: int, count: int, decay: float) -> npt.NDArray[np.int64]:
    """Numbers below `size`; which ones are popular is random, how popular falls as rank to the power of `-decay`."""
    weights = np.arange(1, size + 1, dtype=np.float64) ** -decay
    ranks = np.searchsorted(np.cumsum(weights) / weights.sum(), generator.random(count))
    return generator.permutation(size).astype(np.int64)[np.minimum(ranks, size - 1)]


def _later(generator: np.random.Generator, moment: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return a random moment after the given one and before the end."""
    remaining = _BEGIN + _SPAN - moment
    return moment + 1 + (generator.random(len(moment)) * (remaining - 1)).astype(np.int64)


def _pick(names: tuple[str, ...], indices: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(names).take(pa.array(indices))


def _by_time(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.argsort(table["created"].to_numpy(), kind="stable")))


def _read_csv(folder: str | os.PathLike[str], name: str, columns: tuple[str, ...]) -> pa.Table:
    candidates = [Path(folder) / f"{name}.csv{suffix}" for suffix in ("", ".zst", ".gz")]
    path = next((p for p in candidates if p.exists()), None)
    if path is None:
        raise SchemaError(f"{folder} has no {name}.csv", code="CROWN-DATA-FILE", hint="it may be plain, .gz or .zst")
    with pa.input_stream(str(path), compression="detect") as stream:
        table = pyarrow.csv.read_csv(
            stream,
            parse_options=pyarrow.csv.ParseOptions(delimiter="|", quote_char=False),
            convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=False),
        )
    missing = [column for column in columns if column not in table.column_names]
    if missing:
        raise SchemaError(
            f"{path} has no column {missing[0]}",
            code="CROWN-DATA-FILE",
            reason=f"its header line names {', '.join(table.column_names)}",
        )
    return table.select(list(columns))
