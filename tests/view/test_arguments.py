"""Wrong arguments are refused at once, with an error of Crown's own; nothing is dropped or made up."""

from __future__ import annotations

import datetime
import io
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy
import pandas
import pyarrow as pa
import pytest

import crown

SQL = "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b"
SCHEMA = "CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, c STRING)"
HUGE = 10**5000


WRONG_OPTIONS: dict[str, list[Any]] = {
    "threads": [0, -1, "2", True, 2.0, None, 10**9, HUGE],
    "on_invalid": ["skip", "", None, 1, []],
    "deltas": ["no", 1, None],
    "dialect": [None, 7, "klingon"],
    "profiles": [{"r": "sometimes"}, {7: "fifo"}, {"nowhere": "fifo"}, {"r": None}, 7],
    "windows": [
        {"r": {}},
        {"r": "5"},
        {"r": {"rows": "2"}},
        {"r": {"rows": True}},
        {"r": {"interval": 5, "column": 7}},
        {"r": {"interval": datetime.timedelta(hours=1), "column": "a"}},
        {"r": {"rows": 5, "column": "a"}},
        {"nowhere": {"rows": 2}},
        {7: 7},
        7,
    ],
}


@pytest.mark.parametrize(
    "options",
    [{name: value} for name, values in WRONG_OPTIONS.items() for value in values],
    ids=lambda options: next(iter(options)),
)
def test_a_view_is_not_made_with_wrong_options(options: dict[str, Any]) -> None:
    with pytest.raises(crown.CrownError):
        crown.View(SQL, SCHEMA, **options)


@pytest.mark.parametrize(
    "arguments", [(None, SCHEMA), (7, SCHEMA), (b"SELECT 1", SCHEMA), (SQL, None), (SQL, 7), (SQL, {"r": 7}), (SQL, [])]
)
def test_a_view_is_not_made_of_wrong_things(arguments: tuple[Any, Any]) -> None:
    with pytest.raises(crown.CrownError):
        crown.View(*arguments)
    with pytest.raises(crown.CrownError):
        crown.View.from_plan(arguments[0])


COLUMNS = {"a": "bigint", "id": "bigint"}
WRONG_SCHEMAS: dict[str, Any] = {
    "two tables that differ by case": {"r": COLUMNS, "R": COLUMNS},
    "a key of a number": {"r": {"columns": COLUMNS, "primary_key": 1}},
    "a key of numbers": {"r": {"columns": COLUMNS, "primary_key": [1]}},
    "an unknown key": {"r": {"columns": COLUMNS, "primary_key": ["b"]}},
    "not null, a number": {"r": {"columns": COLUMNS, "not_null": 1}},
    "not null, unknown": {"r": {"columns": COLUMNS, "not_null": ["b"]}},
    "not null, text of letters that are columns": {"r": {"columns": {"a": "int", "i": "int"}, "not_null": "ai"}},
    "a column of an array": {"r": {"a": pa.array([1])}},
    "part of a day": {
        "r": {"columns": {"a": "date"}, "window": {"interval": datetime.timedelta(hours=36), "column": "a"}}
    },
    "no rows": "CREATE TABLE r (a BIGINT) WINDOW (ROWS 0)",
    "no range": "CREATE TABLE r (a BIGINT) WINDOW (RANGE 0 ON a)",
    "too many rows": f"CREATE TABLE r (a BIGINT) WINDOW (ROWS {10**30})",
    "too large a range": f"CREATE TABLE r (a BIGINT) WINDOW (RANGE {2**63} ON a)",
    "too long a time": f"CREATE TABLE r (a TIMESTAMP) WINDOW (RANGE INTERVAL {2**60} WEEKS ON a)",
    "two windows": "CREATE TABLE r (a BIGINT) WINDOW (ROWS 1) WINDOW (ROWS 2)",
    "two profiles": "CREATE TABLE r (a BIGINT) PROFILE fifo PROFILE static",
}


@pytest.mark.parametrize("case", WRONG_SCHEMAS)
def test_a_wrong_schema_is_refused(case: str) -> None:
    with pytest.raises(crown.SchemaError):
        crown.View("SELECT a FROM r", WRONG_SCHEMAS[case])


@pytest.mark.parametrize(
    "options",
    ["PROFILE fifo PROFILE static", "WINDOW (ROWS 0)", "WINDOW (RANGE 0 ON a)", f"WINDOW (ROWS {10**30})"],
)
def test_wrong_options_of_a_table_are_refused(options: str) -> None:
    with pytest.raises(crown.SqlError, match="CROWN-SQL-WINDOW"):
        crown.View(f"SELECT a FROM r {options}", SCHEMA)


@pytest.mark.parametrize(
    ("sql", "schema"),
    [
        ("SELECT a AS _change_type FROM r", SCHEMA),
        ("SELECT COUNT(*) AS _Multiplicity FROM r", SCHEMA),
        ("SELECT a AS _update FROM r UNION SELECT b FROM s", SCHEMA),
        ("SELECT a AS _update FROM r ORDER BY b LIMIT 3", SCHEMA),
        ("SELECT * FROM t", {"t": pa.schema([("a", pa.int64()), ("_change_type", pa.string())])}),
        ("SELECT a FROM t WHERE _multiplicity > 1", {"t": {"a": "int", "_multiplicity": "int"}}),
        ("SELECT _atoms AS x FROM t", "CREATE TABLE t (_atoms INT)"),
    ],
)
def test_names_that_changes_use_are_refused(sql: str, schema: Any) -> None:
    with pytest.raises(crown.SqlError, match="CROWN-SQL-RESERVED-NAME"):
        crown.View(sql, schema)


def test_reserved_names_that_nothing_shows_or_reads_are_allowed() -> None:
    """The schema of a change feed has them."""
    feed = pa.schema([("a", pa.int64()), ("_change_type", pa.string()), ("_commit_version", pa.int64())])
    view = crown.View("SELECT a FROM (SELECT a, a + 1 AS _update FROM t) AS q WHERE _update > 1", {"t": feed})
    view.apply({"t": pa.table([[1, 1], ["insert", "delete"], [1, 2]], schema=feed)})
    assert list(view) == []
    view.insert("t", [(5, "x", 1)])
    assert list(view) == [(5,)]


def test_a_closed_stream_says_so() -> None:
    view = crown.View("SELECT a FROM r", SCHEMA)
    reader = view.apply({"r": [(1, 1)]}, stream=True)
    reader.close()
    with pytest.raises(crown.CrownError, match=r"CROWN-STREAM.*closed"):
        reader.read_next_batch()
    assert list(view) == [(1,)]


def test_one_column_may_be_named_alone() -> None:
    described = {"columns": COLUMNS, "primary_key": "ID", "not_null": "A"}
    view = crown.View("SELECT a FROM r", {"r": described})
    assert [(c.name, c.nullable) for c in view.plan.tables[0].columns] == [("a", False), ("id", False)]
    assert view.plan.tables[0].primary_key == ("id",)


WRONG_CALLS: dict[str, Callable[[Any], Any]] = {
    "apply None": lambda view: view.apply(None),
    "apply text": lambda view: view.apply("x"),
    "apply bytes": lambda view: view.apply(b"xy"),
    "apply a number": lambda view: view.apply(7),
    "apply a set": lambda view: view.apply({"r", "s"}),
    "apply names alone": lambda view: view.apply(["r", "s"]),
    "apply triples": lambda view: view.apply([("r", [], [])]),
    "apply rows without their table": lambda view: view.apply([(1, 2), (3, 4)]),
    "apply a table": lambda view: view.apply(pa.table({"a": [1], "b": [1]})),
    "apply a frame": lambda view: view.apply(pandas.DataFrame({"a": [1], "b": [1]})),
    "data None": lambda view: view.apply({"r": None}),
    "data text": lambda view: view.apply({"r": "xy"}),
    "data number": lambda view: view.apply({"r": 7}),
    "data one dict": lambda view: view.apply({"r": {"a": 1, "b": 2}}),
    "data numbers": lambda view: view.apply({"r": [1, 2]}),
    "data texts": lambda view: view.apply({"r": ["xy", "ab"]}),
    "data nested": lambda view: view.apply({"r": [[(1, 2)], [(3, 4)]]}),
    "data mixed": lambda view: view.apply({"r": [(1, 2), {"a": 1, "b": 2}]}),
    "data an array": lambda view: view.apply({"r": pa.chunked_array([[1, 2]])}),
    "data a series": lambda view: view.apply({"r": pandas.Series([1, 2])}),
    "table None": lambda view: view.apply({None: []}),
    "table number": lambda view: view.insert(7, [(1, 2)]),
    "table tuple": lambda view: view.delete(("r",), [(1, 2)]),
    "table unknown": lambda view: view.insert("nowhere", [(1, 2)]),
    "advance number": lambda view: view.advance(7, 7),
    "advance without window": lambda view: view.advance("r", 7),
    "per_update text": lambda view: view.apply({}, per_update="no"),
    "stream text": lambda view: view.apply({}, stream="no"),
    "multiplicity flag": lambda view: view.to_arrow(multiplicity="no"),
    "multiplicity of a list": lambda view: view.multiplicity([1, "x"]),
    "multiplicity of a short row": lambda view: view.multiplicity((1,)),
    "multiplicity of a long row": lambda view: view.multiplicity((1, "x", 2)),
    "multiplicity of None": lambda view: view.multiplicity(None),
    "sample negative": lambda view: view.sample(-1),
    "sample text": lambda view: view.sample("3"),
    "sample truth": lambda view: view.sample(True),
    "sample fraction": lambda view: view.sample(1.5),
    "sample too many": lambda view: view.sample(10**18),
    "sample huge": lambda view: view.sample(HUGE),
    "sample seed": lambda view: view.sample(1, seed="x"),
    "save to None": lambda view: view.save(None),
    "save to a file": lambda view: view.save(io.BytesIO()),
    "save to NUL": lambda view: view.save("a\0b"),
    "load None": lambda view: crown.View.load(None),  # type: ignore[arg-type]
    "load bytes": lambda view: crown.View.load(b"x"),  # type: ignore[arg-type]
    "load NUL": lambda view: crown.View.load("a\0b"),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("call", WRONG_CALLS)
def test_wrong_calls_are_refused(call: str, threads: int) -> None:
    view = crown.View(SQL, SCHEMA, threads=threads)
    view.apply({"r": [(1, 1)], "s": [(1, "x")]})
    with pytest.raises(crown.CrownError):
        WRONG_CALLS[call](view)
    assert list(view) == [(1, "x")]


@pytest.mark.parametrize(
    "watermark", [None, "7", 7.0, True, 2**63, -(2**63) - 1, HUGE, datetime.datetime(2024, 1, 1)], ids=lambda _: ""
)
@pytest.mark.parametrize("threads", [1, 2])
def test_wrong_watermarks_are_refused(watermark: Any, threads: int) -> None:
    view = crown.View(SQL, SCHEMA, windows={"r": {"interval": 5, "column": "a"}}, threads=threads)
    view.apply({"r": [(1, 1)], "s": [(1, "x")]})
    with pytest.raises(crown.InvalidChange):
        view.advance("r", watermark)
    assert list(view) == [(1, "x")]
    assert view.advance("r", 2**63 - 1).num_rows == 1


MIDNIGHT = datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)
TYPES: dict[str, tuple[list[Any], list[Any]]] = {
    # type: values that fit, values that don't
    "BIGINT": (
        [1, -(2**63), numpy.int64(5), numpy.uint8(5), 1.0, numpy.float64(-3), -(2.0**63)],
        [True, 1.5, "1", 2**63, 2.0**63, HUGE, b"1", Decimal(1), numpy.True_, float("nan"), float("inf"), [1]],
    ),
    "TINYINT": ([127, -128, 1.0, -128.0], [128, -129, False, 128.0, 0.5]),
    "DOUBLE": ([1.5, 1, float("inf"), numpy.float32(0.5)], [True, "1.5", HUGE, 10**400, b"x", None.__class__]),
    "FLOAT": ([0.5, float("-inf")], [1e39, True, "x"]),
    "STRING": (["x", "", "\N{SNOWMAN}"], [1, b"x", True, None.__class__, "\ud800", ["x"]]),
    "BINARY": ([b"x", bytearray(b"y")], ["x", 1, [1, 2], (1, 2)]),
    "BOOLEAN": ([True, False, numpy.True_], [1, 0, "true", 1.0]),
    "DECIMAL(9,2)": (
        [Decimal("1.5"), 3, 1.5, 19.99, -0.25, 1e6, numpy.float64(0.75)],
        [
            *("1.5", True, 1.234, 0.1 + 0.2, numpy.float32(19.99), 1e7, float("nan"), float("-inf"), 10**9),
            *(Decimal("1.234"), Decimal("NaN"), Decimal("Infinity"), Decimal("1e400000000")),
        ],
    ),
    "DATE": (
        [datetime.date(2024, 1, 2), "2024-02-29", datetime.datetime(2024, 1, 2), pandas.Timestamp("2024-01-03")],
        [
            *(datetime.datetime(2024, 1, 2, 3), MIDNIGHT, pandas.NaT, 5, 5.0),
            *("2024-13-01", "2023-02-29", "2024-01-02T00:00:00", "20240102", "2024-W01-1", "01/02/2024", "", " "),
        ],
    ),
    "TIMESTAMP": (
        [
            *(datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.UTC), "2024-01-02", "2024-01-02T03:04:05"),
            *("2024-01-02 03:04:05.25Z", "2024-01-02T03:04+02:00", "2024-01-02 03:04:05.123456000"),
        ],
        [
            *(datetime.date(2024, 1, 2), pandas.NaT, pandas.Timestamp("2024-01-01T00:00:00.000000001"), 5, 5.0),
            *("2024-01-02T25:00:00", "2024-13-01", "2024-01-02T00:00:00.0000001", "20240102T030405", "now", ""),
        ],
    ),
    "TIMESTAMP_NTZ": (
        [datetime.datetime(2024, 1, 2, 3), "2024-01-02", "2024-01-02 03:04:05.5"],
        [MIDNIGHT, datetime.date(2024, 1, 2), "2024-01-02T03:04:05Z", "2024-01-02T00:00:00.0000001"],
    ),
}
WAYS: dict[str, Callable[[crown.View, list[tuple[Any, ...]]], Any]] = {
    "insert tuples": lambda view, rows: view.insert("t", rows),
    "insert lists": lambda view, rows: view.insert("t", [list(row) for row in rows]),
    "insert dicts": lambda view, rows: view.insert("t", [{"id": i, "v": v} for i, v in rows]),
    "insert a generator": lambda view, rows: view.insert("t", (row for row in rows)),
    "apply tuples": lambda view, rows: view.apply({"t": rows}),
    "apply dicts": lambda view, rows: view.apply({"T": [{"V": v, "Id": i} for i, v in rows]}, stream=True).read_all(),
    "apply one by one": lambda view, rows: view.apply({"t": rows}, per_update=True),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("type_", TYPES)
def test_a_value_fits_or_not_whichever_way_it_comes(type_: str, way: str, threads: int) -> None:
    fit, unfit = TYPES[type_]
    view = crown.View("SELECT id, v FROM t", f"CREATE TABLE t (id BIGINT, v {type_})", threads=threads)
    for value in unfit:
        with pytest.raises(crown.InvalidChange, match="column 'v', row 1") as caught:
            WAYS[way](view, [(0, fit[0]), (1, value)])
        assert caught.value.code == "CROWN-CHANGE-TYPE" and type_ in str(caught.value), str(caught.value)
        assert len(view) == 0 and (1, value) not in view
    WAYS[way](view, [*enumerate(fit), (99, None)])
    assert len(view) == len(fit) + 1 and all(row in view for row in [*enumerate(fit), (99, None)])


KEYED = "CREATE TABLE r (k BIGINT PRIMARY KEY, b BIGINT, unread STRING); CREATE TABLE s (b BIGINT, c STRING)"
KEYED_SQL = "SELECT r.k, s.c FROM r JOIN s ON r.b = s.b"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("how", "rows"),
    [
        ("insert", [{"k": 1, "b": 1, "typo": 2}]),
        ("insert", [{"k": 1, "b": 1}, {"k": 2, "bb": 1}]),
        ("insert", [{"k": 1, "b": 1}, {"k": 2}]),
        ("insert", [{"k": 1}]),
        ("insert", [{"b": 1}]),
        ("insert", [{}]),
        ("insert", [{"k": 1, "K": 2, "b": 1}]),
        ("insert", [{"k": 1, "b": 1, 7: 7}]),
        ("insert", [{"k": 1, "b": 1, "_change_type": "delete"}]),
        ("insert", [{"k": 1, "b": 1, "_multiplicity": "2"}]),
        ("insert", [(1, 1)]),
        ("insert", [(1, 1, "x", 2)]),
        ("insert", [()]),
        ("insert", [(1, 1, "x"), (1,)]),
        ("delete", [{"b": 1}]),
        ("delete", [{"k": 7}, {"b": 1}]),
        ("apply", [{"k": 1, "b": 1, "_change_typ": "delete"}]),
        ("apply", [{"k": 1, "b": 1, "_change_type": 1}]),
        ("apply", [{"k": 7, "_change_type": "delete"}, {"k": 8, "_change_type": "insert"}]),
        ("apply", pa.table({"k": [1], "K": [2], "b": [1]})),
        ("apply", pa.table([[1], [2], [1]], names=["k", "k", "b"])),
        ("apply", pa.table({"k": [1], "b": [1], "_atoms": pa.array([0], pa.uint64())})),
        ("apply", pa.table({"k": [1], "b": [1], "_change_type": ["insert"], "_CHANGE_TYPE": ["delete"]})),
        ("apply", pa.table({"k": [1]})),
    ],
)
def test_rows_have_the_columns_of_the_table(how: str, rows: Any, threads: int) -> None:
    view = crown.View(KEYED_SQL, KEYED, threads=threads)
    view.apply({"r": [(7, 1, "x"), (8, 1, "x")], "s": [(1, "x")]})
    with pytest.raises(crown.InvalidChange):
        view.apply({"r": rows}) if how == "apply" else getattr(view, how)("r", rows)
    assert Counter(view) == Counter([(7, "x"), (8, "x")])


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_may_leave_out_what_is_not_needed(threads: int) -> None:
    view = crown.View(KEYED_SQL, KEYED, threads=threads)
    view.insert("s", [{"B": 1, "C": "x"}])
    view.insert("r", [{"k": 7, "b": 1}, {"k": 8, "b": 1, "unread": "y"}, {"k": 9, "b": None}])
    assert Counter(view) == Counter([(7, "x"), (8, "x")])
    view.apply({"r": [{"k": 7, "_Change_Type": "delete"}, {"k": 10, "b": 1, "_Change_Type": "insert"}]})
    view.delete("r", [{"k": 8, "b": 1}, {"k": 9}])
    assert list(view) == [(10, "x")]
    # What one view tells is another's input.
    copy = crown.View("SELECT k, c FROM t", "CREATE TABLE t (k BIGINT, c STRING)", threads=threads)
    delta = view.apply({"r": [(11, 1, None), (12, 1, None)]}, per_update=True)
    copy.apply({"t": delta.to_pylist()})
    copy.apply({"t": [{**row, "_commit_version": 1} for row in view.delete("r", [{"k": 11}]).to_pylist()]})
    assert list(copy) == [(12, "x")]


def test_errors_of_the_users_own_code_come_through() -> None:
    view = crown.View(SQL, SCHEMA)

    def rows() -> Any:
        yield 1, 1
        raise KeyError("mine")

    def batches() -> Any:
        yield pa.RecordBatch.from_pydict({"a": [1], "b": [1]})
        raise KeyboardInterrupt

    with pytest.raises(KeyError, match="mine"):
        view.insert("r", rows())
    schema = pa.schema([("a", "int64"), ("b", "int64")])
    with pytest.raises(KeyboardInterrupt):
        view.apply({"r": pa.RecordBatchReader.from_batches(schema, batches())})
    assert len(view) == 0


def test_more_rows_than_len_can_tell() -> None:
    names = "abcdefg"
    schema = ";".join(f"CREATE TABLE {name} (x INT)" for name in names)
    view = crown.View(
        f"SELECT {', '.join(f'{n}.x AS {n}' for n in names)} FROM {' CROSS JOIN '.join(names)}", schema, deltas=False
    )
    view.apply({name: [(i,) for i in range(1000)] for name in names})
    with pytest.raises(crown.CrownError, match="CROWN-TOO-MANY-ROWS"):
        len(view)


MOMENT = datetime.datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC)
LOCAL = MOMENT.replace(tzinfo=None)
EAST = datetime.timezone(datetime.timedelta(hours=5))
HOUR, TICK, DAY = datetime.timedelta(hours=1), datetime.timedelta(microseconds=1), datetime.timedelta(days=1)
WINDOWS: dict[str, tuple[str, str, Any, Any, Any, Any]] = {
    # type and length of the window, a row's value, the watermark at which it stays, one at which it
    # leaves, and one that is refused
    "datetime": ("TIMESTAMP", "INTERVAL 1 HOUR", MOMENT, MOMENT + HOUR, MOMENT + HOUR + TICK, MOMENT.date()),
    "datetime in UTC": ("TIMESTAMP", "INTERVAL 1 HOUR", MOMENT, LOCAL + HOUR, LOCAL + HOUR + TICK, "2024-01-02"),
    "another zone": (
        "TIMESTAMP",
        "INTERVAL 1 HOUR",
        MOMENT,
        (MOMENT + HOUR).astimezone(EAST),
        (MOMENT + HOUR + TICK).astimezone(EAST),
        7.0,
    ),
    "without zone": ("TIMESTAMP_NTZ", "INTERVAL 1 HOUR", LOCAL, LOCAL + HOUR, LOCAL + HOUR + TICK, MOMENT),
    "date": ("DATE", "INTERVAL 1 DAY", MOMENT.date(), MOMENT.date() + DAY, MOMENT.date() + 2 * DAY, MOMENT),
    "days": ("DATE", "INTERVAL 1 DAY", MOMENT.date(), 19725, 19726, None),
    "number": ("INT", "5", 5, 10, 11, MOMENT),
}


@pytest.mark.parametrize("case", WINDOWS)
def test_a_window_moves_to_a_datetime_or_date_exactly(case: str) -> None:
    type_, length, value, before, after, wrong = WINDOWS[case]
    table = f"CREATE TABLE o (at {type_}, x INT) WINDOW (RANGE {length} ON at)"
    view = crown.View("SELECT x FROM o", table)
    database = crown.Database(f"{table}; CREATE MATERIALIZED VIEW v AS SELECT x FROM o")
    one: crown.View | crown.Database
    for one in (view, database):
        shown = one if isinstance(one, crown.View) else one["v"]
        one.insert("o", [(value, 1)])
        with pytest.raises(crown.InvalidChange, match="the watermark of table o must be") as caught:
            one.advance("o", wrong)
        assert type_ in str(caught.value)
        one.advance("o", before)
        assert list(shown) == [(1,)]
        one.advance("o", after)
        assert not list(shown)


@pytest.mark.parametrize("budget", [0, -1, "1 GB", True, float("nan"), float("inf"), b"7"])
def test_a_budget_is_a_number_of_bytes(budget: Any) -> None:
    database = crown.Database("CREATE TABLE o (x INT); CREATE MATERIALIZED VIEW v AS SELECT x FROM o")
    one: Any
    for one in (crown.View("SELECT x FROM o", "CREATE TABLE o (x INT)"), database, database["v"]):
        with pytest.raises(crown.CrownError, match="budget must be a number of bytes above 0") as caught:
            one.console(budget=budget)
        assert caught.value.code == "CROWN-ARGUMENT"


def test_each_batch_may_have_other_names_and_types() -> None:
    """What one batch does not need, such as a cast, the next one may."""
    view = crown.View("SELECT a, b FROM t", {"t": {"a": "bigint", "b": "decimal(4,1)"}})
    exact = pa.decimal128(4, 1)
    view.insert("t", pa.table({"a": [1], "b": pa.array([Decimal("0.5")], exact)}))
    view.insert("t", pa.table({"a": [2.0], "b": [1.5]}))
    view.insert("t", pa.table({"B": pa.array([Decimal("2.5")], exact), "A": [3]}))
    view.insert("t", pa.table({"a": pa.nulls(1), "b": [3.5]}))
    view.insert("t", pa.table({"a": [5], "b": pa.array([Decimal("4.5")], exact)}))
    with pytest.raises(crown.CrownError) as refused:
        view.insert("t", pa.table({"a": [6.5], "b": pa.array([Decimal("5.5")], exact)}))
    assert refused.value.code == "CROWN-CHANGE-VALUE"
    rows = [(1, "0.5"), (2, "1.5"), (3, "2.5"), (None, "3.5"), (5, "4.5")]
    assert sorted(view, key=str) == sorted(((a, Decimal(b)) for a, b in rows), key=str)
