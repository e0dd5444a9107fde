"""What users do with a view: inputs of every kind, errors, windows, keys, types, saved files."""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow as pa
import pytest

import crown

JOIN = "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b"
SCHEMA = "CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, c STRING); CREATE TABLE other (x INT)"


def joined() -> crown.View:
    view = crown.View(JOIN, SCHEMA)
    view.insert("s", [(1, "one"), (2, "two")])
    return view


ROWS = [(10, 1), (20, 2), (20, 2), (30, 9)]
EXPECTED = Counter({(10, "one"): 1, (20, "two"): 2})


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        [list(row) for row in ROWS],
        [{"a": a, "b": b} for a, b in ROWS],
        [{"B": b, "a": a, "_change_type": "insert"} for a, b in ROWS],
        pandas.DataFrame(ROWS, columns=["a", "b"]),
        pandas.DataFrame(ROWS, columns=["a", "b"]).astype("float64"),
        polars.DataFrame(ROWS, schema=["a", "b"], orient="row"),
        pa.table({"a": [10, 20, 20, 30], "b": pa.array([1, 2, 2, 9], pa.int8()), "more": [0] * 4}),
        pa.RecordBatch.from_pydict({"A": [10, 20, 20, 30], "B": [1, 2, 2, 9]}),
        pa.table({"a": [10, 20, 20, 30], "b": [1, 2, 2, 9]}).to_reader(),
        pa.table({"a": pa.array([10, 20, 20, 30]).dictionary_encode(), "b": [1, 2, 2, 9]}),
        pa.table({"a": [10, 20, 30], "b": [1, 2, 9], "_multiplicity": [1, 2, 1]}),
    ],
    ids=lambda data: type(data).__name__,
)
@pytest.mark.parametrize("how", ["insert", "apply"])
def test_inputs_of_every_kind(data: Any, how: str) -> None:
    view = joined()
    if isinstance(data, pa.RecordBatchReader):
        data = pa.table({"a": [10, 20, 20, 30], "b": [1, 2, 2, 9]}).to_reader()
    if how == "insert" and isinstance(data, list) and isinstance(data[0], dict) and "_change_type" in data[0]:
        with pytest.raises(crown.InvalidChange):
            view.insert("r", data)
        return
    delta = view.insert("r", data) if how == "insert" else view.apply({"R": data})
    assert Counter(view) == EXPECTED
    assert delta["_multiplicity"].to_pylist() == [1, 2]
    assert len(view) == 3 and (20, "two") in view and (30, "one") not in view and ("no", 1) not in view
    assert view.multiplicity((20, "two")) == 2


def test_deltas_are_net_and_streams_complete_their_batch() -> None:
    view = joined()
    words = ["insert", "update_preimage", "update_postimage", "delete"]
    batch = pa.table({"a": [1, 1, 2, 2], "b": [1, 1, 1, 1], "_change_type": words})
    assert view.apply({"r": batch}).num_rows == 0
    assert view.apply({"r": ROWS}, stream=True).read_all().num_rows == 2
    view.apply({"r": ROWS}, stream=True)  # dropped unread
    assert len(view) == 6


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("per_update", [False, True])
def test_a_later_table_of_changes_may_delete_what_an_earlier_one_inserts(stream: bool, per_update: bool) -> None:
    view = crown.View("SELECT a, b FROM r", "CREATE TABLE r (a INT, b INT)")
    insert, delete = ({"_change_type": [word], "a": [1], "b": [2]} for word in ("insert", "delete"))
    changes = [("r", pa.table(insert)), ("r", pa.table(delete))]
    delta: Any = view.apply(changes, stream=stream, per_update=per_update)
    assert (delta.read_all() if stream else delta).num_rows == (2 if per_update else 0)
    assert len(view) == 0


@pytest.mark.parametrize("columns", ["b, a", "a, a, b", "b, b", "b"])
@pytest.mark.parametrize(
    "table", ["r (a INT PRIMARY KEY, b INT)", "r (a INT, b INT) WINDOW (ROWS 1)", "r (a INT, b INT)"]
)
@pytest.mark.parametrize("others", ["", " JOIN s ON r.a = s.c"])
def test_single_updates_show_reordered_and_repeated_columns(columns: str, table: str, others: str) -> None:
    sql = "SELECT " + ", ".join(f"r.{name} AS o{i}" for i, name in enumerate(columns.split(", "))) + f" FROM r{others}"
    one, other = (crown.View(sql, f"CREATE TABLE {table}; CREATE TABLE s (c INT)") for _ in range(2))
    for view in (one, other):
        view.insert("s", [(1,), (2,)])
    for row in [(1, 5), (2, 7), (1, 6)]:
        delta = one.apply({"r": pa.table({"a": [row[0]], "b": [row[1]]})}, per_update=True).drop_columns("_update")
        whole = other.apply({"r": pa.table({"a": [row[0]], "b": [row[1]]})})
        assert Counter(map(str, delta.to_pylist())) == Counter(map(str, whole.to_pylist()))


def state(view: crown.View) -> Any:
    return view._engine.save_parts()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"r": pa.table({"a": [10, 5], "b": [1, 5], "_change_type": ["delete", "delete"]})}, "CROWN-CHANGE-ABSENT"),
        ({"r": pa.table({"a": [7, 7], "b": [1, 1], "_change_type": ["delete", "insert"]})}, "CROWN-CHANGE-ABSENT"),
        ({"r": [(77, 7)], "s": pa.table({"b": [1], "c": [3]})}, "CROWN-CHANGE-TYPE"),
        ({"r": pa.table({"a": [1.5], "b": [1]})}, "CROWN-CHANGE-VALUE"),
        ({"r": pa.table({"a": [1]})}, "CROWN-CHANGE-COLUMN"),
        ({"r": [(1, 2, 3)]}, "CROWN-CHANGE-TYPE"),
        ({"r": [("x", 1)]}, "CROWN-CHANGE-TYPE"),
        ({"nowhere": [(1,)]}, "CROWN-CHANGE-TABLE"),
        ({"r": pa.table({"a": [1], "b": [1], "_change_type": ["upsert"]})}, "CROWN-CHANGE-VALUE"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"per_update": True}, {"stream": True}, {"stream": True, "per_update": True}])
def test_a_rejected_batch_leaves_the_view_exactly_as_it_was(changes: Any, code: str, options: Any) -> None:
    view = joined()
    view.insert("r", ROWS)
    before = state(view)
    with pytest.raises(crown.InvalidChange) as caught:
        view.apply(changes, **options)
    assert caught.value.code == code
    if not options.get("per_update"):
        assert state(view) == before
    assert Counter(view) == EXPECTED
    view.delete("r", ROWS)
    assert len(view) == 0


def test_a_table_that_the_query_does_not_read_is_ignored() -> None:
    assert joined().insert("other", [(1,)]).num_rows == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_quarantine_sets_faulty_changes_aside(threads: int) -> None:
    view = crown.View(JOIN, SCHEMA, on_invalid="quarantine", threads=threads)
    view.insert("s", [(1, "one")])
    words = ["insert", "delete", "delete", "insert"]
    view.apply({"r": pa.table({"a": [1, 1, 1, 2], "b": [1, 1, 1, 1], "_change_type": words})})
    assert list(view) == [(2, "one")]
    rejected = view.rejected().to_pylist()
    assert [(r["table"], r["position"], r["row"]) for r in rejected] == [("r", 2, '{"a":1,"b":1}')]
    assert "CROWN-CHANGE-ABSENT" in rejected[0]["reason"]
    assert view.rejected().num_rows == 0 and view.stats()["rejects"] == 1


KEYED = "CREATE TABLE r (k BIGINT PRIMARY KEY, b BIGINT); CREATE TABLE s (b BIGINT, c STRING)"


@pytest.mark.parametrize("threads", [1, 2])
def test_primary_keys_take_upserts(threads: int, tmp_path: Path) -> None:
    view = crown.View("SELECT r.k, s.c FROM r JOIN s ON r.b = s.b", KEYED, threads=threads)
    view.insert("s", [(1, "one"), (2, "two")])
    view.insert("r", [(7, 1), (8, 1)])
    delta = view.insert("r", [(7, 2)])
    assert {(r["c"], r["_change_type"]) for r in delta.to_pylist()} == {("one", "delete"), ("two", "insert")}
    assert view.insert("r", [(7, 2)]).num_rows == 0
    before = state(view)
    for bad in ([(9, 1)], [(7, 1)], [(7, 2), (7, 2)]):
        with pytest.raises(crown.InvalidChange):
            view.delete("r", bad)
        assert state(view) == before
    view.save(tmp_path / "view")
    view = crown.View.load(tmp_path / "view")
    view.delete("r", [{"k": 7}])
    view.delete("r", [(8, None)])
    assert list(view) == []
    assert view.insert("r", [(7, 1), (7, 2), (7, 1)]).num_rows == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_count_windows_keep_the_newest_rows(threads: int, tmp_path: Path) -> None:
    view = crown.View(JOIN, SCHEMA, windows={"r": {"rows": 2}}, threads=threads)
    view.insert("s", [(1, "one")])
    delta = view.insert("r", [(1, 1), (2, 1), (3, 1)])
    assert Counter(view) == Counter({(2, "one"): 1, (3, "one"): 1}) and delta.num_rows == 2
    view.delete("r", [(3, 1)])
    with pytest.raises(crown.InvalidChange):
        view.delete("r", [(1, 1)])
    view.save(tmp_path / "view")
    view = crown.View.load(tmp_path / "view")
    view.insert("r", [(4, 1)])
    assert Counter(view) == Counter({(2, "one"): 1, (4, "one"): 1})
    view.insert("r", [(5, 1)])
    assert Counter(view) == Counter({(4, "one"): 1, (5, "one"): 1})


def test_time_windows_follow_their_column_and_the_watermark() -> None:
    view = crown.View("SELECT a, b FROM r", SCHEMA, windows={"r": {"interval": 10, "column": "a"}})
    view.insert("r", [(100, 1), (95, 2), (89, 3)])
    assert Counter(view) == Counter({(100, 1): 1, (95, 2): 1})
    assert view.stats()["tables"][0]["late"] == 1
    view.insert("r", [(107, 4)])
    assert Counter(view) == Counter({(100, 1): 1, (107, 4): 1})
    gone = view.advance("r", 116)
    assert gone.select(["a", "_change_type"]).to_pylist() == [{"a": 100, "_change_type": "delete"}]


TYPES: dict[str, list[Any]] = {
    "boolean": [True, False, None],
    "int8": [-128, 127, None],
    "int16": [-(2**15), 2**15 - 1, None],
    "int32": [-(2**31), 2**31 - 1, None],
    "int64": [-(2**63), 2**63 - 1, None],
    "float32": [0.5, -2.25, None],
    "float64": [1e300, float("inf"), None],
    "decimal(9,2)": [Decimal("1.25"), Decimal("-9999999.99"), None],
    "decimal(38,10)": [Decimal("1.2500000000"), Decimal("-1234567890123456789012345678.0123456789"), None],
    "string": ["", "snowman \u2603", None],
    "binary": [b"", b"\x00\xff", None],
    "date": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None],
    "timestamp_ntz": [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(2024, 2, 29, 1), None],
    "timestamp": [datetime.datetime(2024, 2, 29, 1, 2, 3, 4, datetime.UTC), None],
}


@pytest.mark.parametrize("type_", TYPES)
def test_every_type_round_trips(type_: str, tmp_path: Path) -> None:
    values = TYPES[type_]
    rows = [(i, value) for i, value in enumerate(values)]
    schema = {"r": {"id": "int64", "v": type_}, "s": {"id": "int64"}}
    sql = "SELECT r.id, r.v FROM r JOIN s ON r.id = s.id"
    short, arrow = crown.View(sql, schema), crown.View(sql, schema)
    for view in (short, arrow):
        view.insert("s", [(i,) for i in range(len(values))])
    short.insert("r", rows)
    arrow.apply({"r": short.to_arrow()})
    short.save(tmp_path / "view")
    for view in (short, arrow, crown.View.load(tmp_path / "view")):
        assert sorted(view, key=lambda row: row[0]) == rows
        assert view.to_arrow().schema.equals(view.schema)
        assert all(row in view for row in rows)
        view.delete("r", rows)
        assert len(view) == 0


def test_order_by_sorts_pulled_results() -> None:
    view = crown.View("SELECT a, b FROM r ORDER BY b DESC NULLS LAST, a", SCHEMA)
    view.insert("r", [(2, 1), (1, 1), (5, None), (4, 9)])
    assert list(view) == [(4, 9), (1, 1), (2, 1), (5, None)]
    assert view.to_arrow()["a"].to_pylist() == [4, 1, 2, 5]
    view.insert("r", [(1, 1)])
    assert view.to_arrow(multiplicity=True)["_multiplicity"].to_pylist() == [1, 2, 1, 1]
    by_sum = crown.View("SELECT a, b FROM r ORDER BY a + b", SCHEMA)
    by_sum.insert("r", [(5, 5), (1, 2), (9, -9)])
    assert list(by_sum) == [(9, -9), (1, 2), (5, 5)]


def test_functions_of_joined_rows() -> None:
    view = crown.View("SELECT reverse(s.c) AS x, r.a FROM r JOIN s ON r.b = s.b", SCHEMA)
    view.insert("s", [(1, "abc"), (2, None)])
    view.insert("r", [(7, 1), (8, 2)])
    assert Counter(view) == Counter({("cba", 7): 1, (None, 8): 1})


@pytest.mark.parametrize("threads", [1, 2])
def test_samples_are_uniform_over_copies(threads: int) -> None:
    view = crown.View(JOIN, SCHEMA, threads=threads)
    view.insert("s", [(1, "one"), (2, "two")])
    view.insert("r", [(10, 1), (20, 2), (20, 2), (20, 2)])
    drawn = Counter(view.sample(4000, seed=5)["a"].to_pylist())
    assert abs(drawn[20] - 3000) < 200 and drawn[10] + drawn[20] == 4000
    assert crown.View(JOIN, SCHEMA).sample(3).num_rows == 0


def test_a_view_without_deltas_gives_none_but_answers() -> None:
    view = crown.View(JOIN, SCHEMA, deltas=False)
    assert view.apply({"s": [(1, "one")], "r": ROWS}).num_rows == 0
    assert list(view) == [(10, "one")] and len(view) == 1


def test_a_global_aggregate_has_its_row_from_the_start() -> None:
    view = crown.View("SELECT COUNT(*) AS n, SUM(r.a) AS s FROM r JOIN s ON r.b = s.b", SCHEMA)
    assert list(view) == [(0, None)] and len(view) == 1
    assert view.apply({}).to_pylist() == [{"n": 0, "s": None, "_change_type": "insert"}]
    assert view.apply({}).num_rows == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_strings_of_the_first_row_last_until_the_first_delta(threads: int) -> None:
    view = crown.View("SELECT UPPER('hello') AS s, COUNT(*) AS n, MAX(s.c) AS m FROM s", SCHEMA, threads=threads)
    for _ in range(2):
        assert list(view) == [("HELLO", 0, None)] and ("HELLO", 0, None) in view and len(view.sample(2)) == 2
    assert view.to_arrow().to_pylist() == [{"s": "HELLO", "n": 0, "m": None}]
    delta = view.insert("s", [(1, "other"), (2, "another")]).drop_columns("_change_type").to_pylist()
    assert delta == [{"s": "HELLO", "n": 2, "m": "other"}] == view.to_arrow().to_pylist()


@pytest.mark.parametrize("options", [{}, {"per_update": True}, {"stream": True}, {"stream": True, "per_update": True}])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_refused_first_batch_leaves_the_first_row_to_be_shown(options: dict[str, Any], threads: int) -> None:
    schema = "CREATE TABLE a (x BIGINT)"
    bad = [{"x": 1, "_change_type": "insert"}, {"x": 9, "_change_type": "delete"}]
    count = crown.View("SELECT COUNT(x) AS n FROM a", schema, threads=threads)
    share = crown.View("SELECT COUNT(x) / COUNT(*) AS share FROM a", schema, threads=threads)
    for _ in range(2):
        for view in (count, share):
            with pytest.raises(crown.InvalidChange) as caught:
                view.apply({"a": bad}, **options)
            assert caught.value.code == "CROWN-CHANGE-ABSENT"
        assert list(count) == [(0,)]
        with pytest.raises(crown.InvalidChange, match="CROWN-DIVIDE-BY-ZERO"):
            list(share)
    assert count.apply({}).to_pylist() == [{"n": 0, "_change_type": "insert"}]
    assert share.insert("a", [(1,), (None,)]).to_pylist() == [{"share": 0.5, "_change_type": "insert"}]


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    view = joined()
    view.save(tmp_path / "view")
    data = bytearray((tmp_path / "view").read_bytes())
    (tmp_path / "cut").write_bytes(data[: len(data) // 2])
    with pytest.raises(crown.StateError):
        crown.View.load(tmp_path / "cut")
    (tmp_path / "text").write_text("nothing")
    with pytest.raises(crown.StateError):
        crown.View.load(tmp_path / "text")


def test_explain_names_the_guarantee() -> None:
    assert "GUARANTEE" in str(joined().explain())


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("sql", [JOIN, "SELECT r.b, COUNT(DISTINCT r.a) AS n FROM r GROUP BY r.b"])
def test_a_loaded_view_explains_itself_as_before(sql: str, threads: int, tmp_path: Path) -> None:
    view = crown.View(sql, SCHEMA, threads=threads)
    view.save(tmp_path / "view")
    loaded = crown.View.load(tmp_path / "view").explain()
    assert loaded == view.explain()
    assert str(loaded) == str(view.explain())
    assert loaded.json() == view.explain().json()


def test_a_view_of_a_bare_plan_can_not_explain_itself(tmp_path: Path) -> None:
    view = crown.View.from_plan(joined().plan)
    with pytest.raises(crown.PlanError, match="created from a plan"):
        view.explain()
    view.save(tmp_path / "view")
    with pytest.raises(crown.PlanError, match="created from a plan"):
        crown.View.load(tmp_path / "view").explain()


@pytest.mark.parametrize(
    "sql", ["SELECT COUNT(*) AS n FROM r", "SELECT COUNT(*) AS n FROM r UNION ALL SELECT 0 FROM s"]
)
def test_one_row_of_a_global_aggregate_that_no_variable_can_spread(sql: str, tmp_path: Path) -> None:
    view = crown.View(sql, SCHEMA, threads=3)
    assert view.to_arrow().to_pylist() == [{"n": 0}]
    view.apply({"r": [(1, 2), (3, 4)]})
    view.save(tmp_path / "view")
    for same in (view, crown.View.load(tmp_path / "view")):
        assert (same.to_arrow().to_pylist(), len(same)) == ([{"n": 2}], 1)


def test_the_first_delta_does_not_wait_for_pandas() -> None:
    script = f"""
import sys, crown
view = crown.View({JOIN!r}, {SCHEMA!r})
view.insert("s", [(1, "one")])
print(view.insert("r", [(10, 1)]).num_rows, view.to_arrow().num_rows, "pandas" in sys.modules)
"""
    printed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert printed.split() == ["1", "1", "False"]


def test_the_deletes_of_each_update_come_before_its_inserts() -> None:
    view = crown.View("SELECT k, SUM(x) AS s FROM r GROUP BY k", "CREATE TABLE r (k INT, x INT)")
    view.insert("r", [(1, 1), (2, 2)])
    delta = view.apply({"r": [(1, 5), (2, 6), (3, 7)]}, per_update=True)
    words = [(row["_update"], row["_change_type"], row["k"], row["s"]) for row in delta.to_pylist()]
    assert words == [
        (0, "delete", 1, 1),
        (0, "insert", 1, 6),
        (1, "delete", 2, 2),
        (1, "insert", 2, 8),
        (2, "insert", 3, 7),
    ]
