"""Saved engines: the same answers after loading, and an error for anything that is not one."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from crown import _kernel
from crown.errors import PlanError, StateError
from crown.plan import plan, to_json
from crown.sql import parse

SCHEMA = "CREATE TABLE r (a BIGINT, b STRING); CREATE TABLE s (b STRING, c BIGINT)"
PLAN = to_json(plan(parse("SELECT r.a, s.c FROM r JOIN s ON r.b = s.b", SCHEMA)))


def filled(rows: int = 50) -> _kernel.Engine:
    engine = _kernel.Engine(PLAN)
    names = [f"{i % 7}" for i in range(rows)]
    engine.apply([("r", pa.table({"a": range(rows), "b": names})), ("s", pa.table({"b": names, "c": range(rows)}))])
    return engine


def contents(chunks: list[bytes]) -> list[list[dict[str, object]]]:
    """The rows of each chunk after the header, in an order of their own: a loaded engine may keep another."""
    tables = [pa.ipc.open_stream(chunk).read_all() for chunk in chunks[1:]]
    return [sorted(table.to_pylist(), key=repr) for table in tables]


def test_a_loaded_engine_goes_on_where_it_was() -> None:
    engine = filled(1000)
    chunks = engine.save()
    loaded = _kernel.Engine.load(PLAN, chunks)
    assert contents(loaded.save()) == contents(chunks)
    assert loaded.count() == engine.count()
    delta = pa.table(loaded.apply_rows("r", [(0, "0")], delete=True))
    assert delta.num_rows == pa.table(engine.apply_rows("r", [(0, "0")], delete=True)).num_rows > 0


def test_damage_is_an_error_never_a_crash(rng: random.Random) -> None:
    chunks = filled().save()
    for _ in range(200):
        damaged = [bytearray(chunk) for chunk in chunks]
        victim = rng.choice(damaged)
        victim[rng.randrange(len(victim))] ^= 1 << rng.randrange(8)
        try:
            loaded = _kernel.Engine.load(PLAN, [bytes(chunk) for chunk in damaged])
        except StateError:
            continue
        # Padding bytes of the header carry nothing.
        assert contents(loaded.save()) == contents(chunks)


@pytest.mark.parametrize("chunks", [[], [b""], [b"nothing"]])
def test_what_is_no_state_is_refused(chunks: list[bytes]) -> None:
    with pytest.raises(StateError):
        _kernel.Engine.load(PLAN, chunks)


def test_a_foreign_or_incomplete_state_is_refused() -> None:
    other = to_json(plan(parse("SELECT r.a FROM r", SCHEMA)))
    with pytest.raises(StateError, match="another plan"):
        _kernel.Engine.load(other, filled().save())
    with pytest.raises(StateError):
        _kernel.Engine.load(PLAN, filled().save()[:-1])


@pytest.mark.parametrize("text", ["", "{}", "[]", PLAN.replace('"join"', '"glue"'), PLAN.replace("int64", "int65")])
def test_malformed_plans_are_errors(text: str) -> None:
    with pytest.raises(PlanError):
        _kernel.Engine(text)
