"""What errors say: in the words and types of the user, pointing at the word that is wrong."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

import crown

SCHEMA = (
    "CREATE TABLE t (a INT, b STRING, ts TIMESTAMP, xs ARRAY<INT>); CREATE TABLE u (a INT, c BIGINT, ts TIMESTAMP); "
    "CREATE TABLE one (x INT)"
)


@crown.function(returns="DOUBLE", arguments=["INT"])
def score(x: Any) -> Any:
    return float(x)


def refusal(sql: str, schema: Any = SCHEMA) -> crown.CrownError:
    with pytest.raises(crown.CrownError) as caught:
        crown.View(sql, schema, functions={"score": score})
    return caught.value


def marked(error: crown.CrownError) -> str:
    """The part of the text that the caret is under."""
    assert error.sql is not None and error.position is not None
    return error.sql[slice(*error.position)]


@pytest.mark.parametrize(
    ("sql", "word", "meant"),
    [
        ("SELEC a FROM t", "SELEC", "SELECT"),
        ("selct a, b FROM t WHERE a = 1", "selct", "SELECT"),
        ("SELEC", "SELEC", "SELECT"),
        ("WIHT x AS (SELECT 1) SELECT * FROM x", "WIHT", "WITH"),
        ("SELECT a FORM t", "FORM", "FROM"),
        ("SELECT a\nFROM t\nWHER a > 1", "WHER", "WHERE"),
        ("SELECT a FROM t GRUOP BY a", "GRUOP", "GROUP"),
        ("SELECT a FROM t ODER BY a", "ODER", "ORDER"),
        ("SELECT a FROM t LIMT 3", "LIMT", "LIMIT"),
    ],
)
def test_a_misspelt_keyword_is_marked(sql: str, word: str, meant: str) -> None:
    error = refusal(sql)
    assert marked(error) == word
    assert error.hint == f"did you mean {meant}?"


@pytest.mark.parametrize("sql", ["SELECT a orders x FROM t", "SELECT a FROM t created more"])
def test_names_that_contain_a_keyword_are_not_taken_for_it(sql: str) -> None:
    assert "did you mean" not in str(refusal(sql))


@pytest.mark.parametrize(
    ("schema", "word", "hint"),
    [
        ("CREATE TABLE t (a INTT)", "INTT", "did you mean INT?"),
        ("CREATE TABLE t (a INT, `b c` VARHCAR(10) NOT NULL)", "VARHCAR", "did you mean VARCHAR?"),
        ("CREATE TABLE s (x INT); CREATE TABLE t (a DOUBEL PRECISION)", "DOUBEL", "did you mean DOUBLE?"),
        ("CREATE TABLE t (a INT, b ARRAY<STRNG>)", "STRNG", "did you mean STRING?"),
        ("CREATE TABLE t (a STRUCT<x: INTT>)", "INTT", "did you mean INT?"),
        ("CREATE TABLE t (a MAP<STRING, INTT>)", "INTT", "did you mean INT?"),
        ("CREATE TABLE t (a MONEY)", "MONEY", "use boolean, integers, float"),
        ("CREATE TABLE t (a)", "a", "use boolean, integers, float"),
        ("CREAT TABLE t (a INT)", "CREAT", "did you mean CREATE?"),
        ("CREATE TABEL t (a INT)", "TABEL", "did you mean TABLE?"),
        ("CREATE TABLE t (a INT PRIMRY KEY)", "PRIMRY", "did you mean PRIMARY?"),
        ("CREATE TABLE t (a INT); CREATE VIEW v AS SELEC a FROM t", "SELEC", "did you mean SELECT?"),
    ],
)
def test_an_unknown_word_in_a_schema_is_marked(
    schema: str, word: str, hint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    error = refusal("SELECT a FROM t", schema)
    assert marked(error) == word
    assert error.hint is not None and error.hint.startswith(hint)
    with pytest.raises(crown.CrownError) as caught:
        crown.Database(schema)
    assert marked(caught.value) == word and caught.value.hint == error.hint
    assert capfd.readouterr() == ("", "")  # nothing of the parser's own


def test_an_unknown_type_of_a_dict_and_of_a_cast() -> None:
    assert refusal("SELECT a FROM t", {"t": {"a": "doubel"}}).hint == "did you mean DOUBLE?"
    for sql in ("SELECT CAST(b AS INTT) FROM t", "SELECT b::INTT FROM t"):
        error = refusal(sql)
        assert (marked(error), error.hint) == ("INTT", "did you mean INT?")


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("SELECT scor(a) FROM t", "score"),
        ("SELECT colect_list(a) FROM t", "collect_list"),
        ("SELECT medain(a) FROM t", "median"),
        ("SELECT uper(b) FROM t", "upper"),
    ],
)
def test_an_unknown_function_may_be_another(sql: str, meant: str) -> None:
    assert refusal(sql).hint == f"did you mean {meant}?"


@pytest.mark.parametrize("name", ["collect_list", "collect_set", "array_agg"])
def test_arrays_are_made_of_one_argument(name: str) -> None:
    refusal(f"SELECT {name}(a, b) AS x FROM t")
    assert list(crown.View(f"SELECT {name}(a) AS x FROM t", SCHEMA)) == [([],)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT row_number() OVER (PARTITION BY zz ORDER BY a) FROM t",
        "SELECT sum(zz) OVER (PARTITION BY a) FROM t",
        "SELECT rank() OVER w FROM t WINDOW w AS (ORDER BY zz)",
        "SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY zz ORDER BY a) = 1",
        "SELECT a, rank() OVER (ORDER BY zz) FROM t GROUP BY a",
        "SELECT a FROM t ORDER BY row_number() OVER (ORDER BY zz)",
    ],
)
def test_a_window_function_over_an_unknown_column(sql: str) -> None:
    error = refusal(sql)
    assert (error.code, marked(error)) == ("CROWN-SQL-UNKNOWN-COLUMN", "zz")
    assert error.hint == "there are a, b, ts, xs"


def test_asof_joins_that_are_not_supported_name_those_that_are() -> None:
    for side in ("RIGHT", "FULL"):
        error = refusal(f"SELECT t.a FROM t ASOF {side} JOIN u ON t.a = u.a AND t.ts >= u.ts")
        assert error.message == f"ASOF {side} JOIN is not supported"
        assert "ASOF LEFT JOIN" in str(error)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT score(a, 1) FROM t", "score takes 1 argument, not 2"),
        ("SELECT x FROM t AS q(x)", "1 name for 4 columns"),
        ("SELECT x FROM one AS q(x, y)", "2 names for 1 column"),
        ("SELECT a IN (SELECT a, c FROM u) FROM t", "IN compares 1 column with 2"),
        ("SELECT -xs FROM t", "cannot negate an ARRAY<INT>"),
        ("SELECT -b FROM t", "cannot negate a STRING"),
    ],
)
def test_numbers_and_articles(sql: str, message: str) -> None:
    assert refusal(sql).message == message


def test_numbers_and_articles_of_data() -> None:
    view = crown.View("SELECT x FROM one", SCHEMA)
    for data, kind in ((3, "an int"), (4.5, "a float")):
        with pytest.raises(crown.InvalidChange, match=f"^.CROWN-CHANGE-TYPE. {kind} is not a collection of rows"):
            view.insert("one", data)  # type: ignore[arg-type]
    view.insert("one", [(1,)])
    assert repr(view).startswith("<crown.View: 1 row,")
    with pytest.raises(IndexError, match="the view has 1 row, so"):
        view[1]
    database = crown.Database("CREATE TABLE r (x INT); CREATE MATERIALIZED VIEW v AS SELECT x FROM r")
    database.insert("r", [(1,)])
    assert repr(database) == "<crown.Database: 1 table, 1 view\n v: 1 row>"
    assert "the last 1 row;" in str(crown.View("SELECT x FROM r", "CREATE TABLE r (x INT) WINDOW (ROWS 1)").explain())
    for schema, kind in ((3, "an int"), ([1], "a list")):
        assert refusal("SELECT 1", schema).message == f"{kind} is not a schema"


@pytest.mark.parametrize(
    ("type_", "values", "message"),
    [
        ("INT", pa.array(["x"]), "expected INT, found Arrow type string"),
        ("INT", pa.array([1.5]), "1.5 is not a whole number for INT"),
        ("INT", pa.array([2**40]), "1099511627776 is out of range for INT"),
        ("BIGINT", pa.array([True]), "expected BIGINT, found Arrow type bool"),
        ("STRING", pa.array([1]), "expected STRING, found Arrow type int64"),
        ("DECIMAL(5,2)", pa.array(["x"]), "expected DECIMAL(5,2), found Arrow type string"),
        ("TIMESTAMP", pa.array(["x"]), "expected TIMESTAMP, found Arrow type string"),
        ("DOUBLE", pa.array([b"x"]), "expected DOUBLE, found Arrow type binary"),
        ("ARRAY<INT>", pa.array([1]), "expected ARRAY<INT>, found Arrow type int64"),
        ("INT", pa.array([[1]]), "expected INT, found Arrow type list<int64>"),
        ("INT", pa.array(["x"]).dictionary_encode(), "expected INT, found Arrow type string"),
    ],
)
def test_types_are_those_of_sql_and_of_pyarrow(type_: str, values: pa.Array, message: str) -> None:
    view = crown.View("SELECT x FROM r", f"CREATE TABLE r (x {type_})")
    with pytest.raises(crown.InvalidChange, match=re.escape(message)):
        view.insert("r", pa.table({"x": values}))


def test_a_cast_that_fails_names_the_type_of_sql() -> None:
    view = crown.View("SELECT CAST(x AS INT) AS n FROM r", "CREATE TABLE r (x STRING)")
    with pytest.raises(crown.InvalidChange, match="the string 'y' can't be cast to INT"):
        view.insert("r", [("y",)])
