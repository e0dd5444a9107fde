"""Saved engines: the same answers after loading, and an error for anything that is not one."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest

from crown import _kernel
from crown.errors import PlanError, StateError
from crown.ir.plan import TreeStage
from crown.plan import plan, plan_with_report, to_json
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


THREE = "SELECT r.a, s.c, t.d FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c WHERE r.a < t.d"
THREE_SCHEMA = f"{SCHEMA}; CREATE TABLE t (c BIGINT, d BIGINT)"


def test_another_plan_of_the_same_rows_goes_on_with_them() -> None:
    """Another tree, other names, no ordered index, another stage in front: what is saved are the tables' rows."""
    first, report = plan_with_report(parse(THREE, THREE_SCHEMA))
    (tree,) = (stage for stage in first.stages if isinstance(stage, TreeStage))
    others = [candidate.nodes for candidate in report.conjunctions[0].candidates[1:]]
    assert others, "there is another tree"
    engine = _kernel.Engine(to_json(first))
    data = [(n, f"{n % 5}") for n in range(40)]
    engine.apply_rows("r", data)
    engine.apply_rows("s", [(b, n % 6) for n, b in data])
    engine.apply_rows("t", [(n % 6, n) for n in range(30)])
    for nodes in others:
        moved = replace(tree, nodes=nodes, ordered=())
        second = to_json(replace(first, stages=tuple(moved if stage is tree else stage for stage in first.stages)))
        loaded = _kernel.Engine.load(second.replace(tree.id, "$moved").replace('"r_b"', '"other"'), engine.save())
        assert loaded.count() == engine.count() > 0
        back = _kernel.Engine.load(to_json(first), loaded.save())
        deltas = [pa.table(e.apply_rows("s", [("1", 1)], delete=False)) for e in (loaded, back)]
        assert deltas[0].num_rows == deltas[1].num_rows > 0


def test_rows_with_another_meaning_are_foreign() -> None:
    saved = filled().save()
    for sql, schema in (
        ("SELECT r.a, s.c FROM r JOIN s ON r.b = s.b WHERE r.a > 3", SCHEMA),
        ("SELECT r.a, s.c FROM r JOIN s ON r.b = s.b AND s.c = 3", SCHEMA),
        ("SELECT r.a + 1 AS a, s.c FROM r JOIN s ON r.b = s.b", SCHEMA),
        ("SELECT r.a, s.c FROM r JOIN s ON r.b = s.b", SCHEMA.replace("r (a BIGINT", "r (a INT")),
        ("SELECT r.a, s.c FROM r JOIN s ON r.b = s.b", SCHEMA.replace("s (b STRING", "s (b STRING PRIMARY KEY")),
    ):
        with pytest.raises(StateError, match="CROWN-STATE-OTHER-PLAN"):
            _kernel.Engine.load(to_json(plan(parse(sql, schema))), saved)


@pytest.mark.parametrize("text", ["", "{}", "[]", PLAN.replace('"join"', '"glue"'), PLAN.replace("int64", "int65")])
def test_malformed_plans_are_errors(text: str) -> None:
    with pytest.raises(PlanError):
        _kernel.Engine(text)
