"""What errors and explain say, in the words of the user: functions, types and columns as they were written."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import crown
from crown.errors import CrownError

SCHEMA = "CREATE TABLE t (a INT, b VARCHAR(10), d NUMERIC(10, 2), ts TIMESTAMP, x BIGINT)"


def refusal(sql: str, schema: Any = SCHEMA, dialect: str = "spark") -> CrownError:
    with pytest.raises(CrownError) as caught:
        crown.View(sql, schema, dialect=dialect)
    return caught.value


@pytest.mark.parametrize(
    "sql, message",
    [
        ("SELECT PERCENTILE_APPROX(upper(b), 0.5) FROM t", "PERCENTILE_APPROX does not take STRING"),
        ("SELECT Foo(a) FROM t", "function Foo is not supported"),
        ("SELECT JSON_VALUE(b, '$.a') FROM t", "function JSON_VALUE is not supported"),
        ("SELECT BOOL_AND(a) FROM t", "BOOL_AND does not take INT"),
        ("SELECT a FROM t WHERE b", "a condition must be boolean, not VARCHAR(10)"),
        ("SELECT -b FROM t", "cannot negate a VARCHAR(10)"),
        ("SELECT a FROM t WHERE d = ts", "this comparison mixes NUMERIC(10, 2) and TIMESTAMP"),
        ("SELECT a + ts FROM t", "INT and TIMESTAMP can't be combined with +"),
        ("SELECT a % ts FROM t", "INT and TIMESTAMP can't be combined with %"),
        ("SELECT a::GEOGRAPHY FROM t", "type GEOGRAPHY is not supported"),
    ],
)
def test_the_words_of_the_user(sql: str, message: str) -> None:
    error = refusal(sql)
    assert error.message == message
    assert "<class" not in str(error) and "\0" not in str(error)


def test_an_operator_has_no_name() -> None:
    assert refusal("SELECT b SIMILAR TO 'x' FROM t", dialect="postgres").message == "this expression is not supported"


def test_a_long_line_is_shown_around_the_place() -> None:
    error = refusal("SELECT " + ", ".join(f"a + {i} AS column_{i}" for i in range(500)) + ", nope FROM t")
    _, line, caret, *_ = str(error).splitlines()
    assert len(line) < 200 and line.startswith("line 1: ... ")
    assert line[caret.index("^") : caret.rindex("^") + 1] == "nope"


def test_copies_that_do_not_fit() -> None:
    view = crown.View("SELECT p.a FROM t p JOIN t q ON p.a = q.a JOIN t r ON q.a = r.a", SCHEMA)
    with pytest.raises(CrownError) as caught:
        view.insert("t", pa.table({"a": pa.array([1], pa.int32()), "_multiplicity": [2**31 - 1]}))
    assert "multiplicity" in str(caught.value)
    assert caught.value.hint is not None and caught.value.hint.startswith("use SELECT DISTINCT")


class TestTypesThatCrownDoesNotHave:
    schema = "CREATE TABLE t (id INT PRIMARY KEY, place GEOGRAPHY, tags INTERVAL, name STRING)"

    def test_a_column_that_is_not_read_may_have_any_type(self) -> None:
        view = crown.View("SELECT id, name FROM t", self.schema)
        view.insert("t", [(1, {"x": 1, "y": 2}, ["a"], "one")])
        view.insert(
            "t", pa.table({"id": pa.array([2], pa.int32()), "tags": pa.nulls(1, pa.duration("s")), "name": ["two"]})
        )
        assert sorted(view) == [(1, "one"), (2, "two")]
        count = crown.View("SELECT COUNT(*) AS n FROM u", "CREATE TABLE u (j JSON, k INT)")
        count.insert("u", [('{"a": 1}', 1), (None, 2)])
        assert list(count) == [(2,)]

    @pytest.mark.parametrize(
        "schema",
        [
            {"t": pa.schema([("id", pa.int32()), ("tags", pa.float16())])},
            {"t": {"id": "int", "tags": "geography"}},
        ],
        ids=["arrow", "dict"],
    )
    def test_other_schemas(self, schema: Any) -> None:
        view = crown.View("SELECT id FROM t", schema)
        view.insert("t", [(1, ["a"])])
        assert list(view) == [(1,)]
        assert "column tags has type" in refusal("SELECT tags FROM t", schema).message

    def test_a_column_that_is_read(self) -> None:
        error = refusal("SELECT id, tags FROM t", self.schema)
        assert error.message == "column tags has type INTERVAL, which is not supported"
        assert error.code == "CROWN-SQL-UNKNOWN-TYPE"
        error = refusal("SELECT * FROM t", self.schema)
        assert error.message == "column place has type GEOGRAPHY, which is not supported"
        assert error.hint == "write * EXCEPT (place)"
        view = crown.View("SELECT * EXCEPT (place, tags) FROM t", self.schema)
        view.insert("t", [(1, None, None, "one")])
        assert list(view) == [(1, "one")]

    def test_keys_and_misspelt_types(self) -> None:
        key = refusal("SELECT a FROM t", "CREATE TABLE t (a INT, k GEOGRAPHY PRIMARY KEY)")
        assert key.message == "primary key column k of t has type GEOGRAPHY, which is not supported"
        assert refusal("SELECT a FROM t", {"t": {"a": "int", "b": "strnig"}}).code == "CROWN-SCHEMA-TYPE"


class TestExplain:
    schema = (
        "CREATE TABLE message (id INT PRIMARY KEY, creator INT, len INT); "
        "CREATE TABLE person (id INT PRIMARY KEY, name STRING)"
    )

    def test_the_first_sentence(self) -> None:
        plain = crown.View("SELECT id, len FROM message", self.schema)
        first = " ".join(str(plain.explain()).split("\n\n")[0].split())
        assert first.startswith("A change takes constant time; memory grows with the tables;")
        cycle = "SELECT x.id FROM message x, message y, message z WHERE x.id = y.len AND y.id = z.len AND z.id = x.len"
        assert str(crown.View(cycle, self.schema).explain()).startswith("A change takes O(N) steps")

    def test_variables_have_the_names_of_columns(self) -> None:
        view = crown.View("SELECT m.len, p.name FROM message m JOIN person p ON m.creator = p.id", self.schema)
        explanation = view.explain()
        for shown in (str(explanation), explanation.svg(), explanation.html()):
            assert "m.creator" in shown
            assert "m_creator" not in shown

    def test_equal_sentences_are_said_once(self) -> None:
        sql = " UNION ALL ".join(f"SELECT len FROM message WHERE len > {i}" for i in range(6))
        text = str(crown.View(sql, self.schema).explain())
        assert text.count("GUARANTEE") == 1
        assert text.count("free-connex") + text.count("q-hierarchical") == 1

    def test_cells_that_copy_most_tables(self) -> None:
        sql = "SELECT a.id FROM message a, message b, person c WHERE a.len < b.len AND b.len < c.id"
        text = " ".join(str(crown.View(sql, self.schema, threads=4).explain()).split())
        assert "to every cell: more cells take more memory and are hardly faster" in text
