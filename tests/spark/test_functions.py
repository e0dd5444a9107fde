"""Scalar functions against Spark itself, in ANSI mode: the same value for every row, or both raise."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import crown
from crown.arrow import arrow_type
from crown.sql.typenames import from_name
from crown.types import DataType
from tests.support.function_cases import CASES, CASES_TO_ONE_UNIT, TYPES, Case, rows

pytestmark = pytest.mark.spark

RAISED = "raised"
MOST_RAISED = 6  # of a case's rows that raise in Crown, which Spark evaluates one by one
# Spark must compute each expression for each row, not once while it plans.
_EXCLUDED = ",".join(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in ("ConstantFolding", "ConvertToLocalRelation")
)


@pytest.fixture
def judge(spark: SparkSession) -> Iterator[SparkSession]:
    settings = {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.optimizer.excludedRules": _EXCLUDED,
    }
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def crown_type(kind: str) -> DataType:
    found = from_name(TYPES[kind])
    assert found is not None, kind
    return found


def spark_literal(kind: str, value: Any) -> str:
    """The value as Spark SQL, without a parser's opinion on escapes and types."""
    type_ = TYPES[kind]
    if value is None:
        return f"CAST(NULL AS {type_})"
    if type_ == "string":
        return f"CAST(X'{value.encode().hex()}' AS STRING)"
    if type_ == "binary":
        return f"X'{value.hex()}'"
    if type_ == "date":
        return f"date_from_unix_date({value})"
    if type_ == "timestamp":
        return f"timestamp_micros({value}L)"
    if type_ == "timestamp_ntz":
        return f"CAST(timestamp_micros({value}L) AS TIMESTAMP_NTZ)"
    if type_ == "interval day to second":
        return f"CAST(CAST('{Decimal(value).scaleb(-6)}' AS DECIMAL(24,6)) AS {type_})"
    if type_ == "interval year to month":
        return f"CAST({value} AS {type_})"
    return f"CAST('{value}' AS {type_})"


def arrow_column(kind: str, values: Sequence[Any]) -> pa.Array:
    type_ = arrow_type(crown_type(kind))
    if pa.types.is_floating(type_):
        return pa.array([None if value is None else float(value) for value in values], type_)
    if pa.types.is_decimal(type_):
        return pa.array([None if value is None else Decimal(value) for value in values], type_)
    if pa.types.is_date(type_):
        return pa.array(values, pa.int32()).cast(type_)
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64()).cast(type_)
    if pa.types.is_duration(type_):
        return pa.array(values, pa.int64()).cast(type_)
    if pa.types.is_interval(type_):
        return pa.array([None if value is None else (value, 0, 0) for value in values], type_)
    return pa.array(values, type_)


def crown_answers(case: Case) -> tuple[str, list[Any]]:
    """The type and the value of each row: raw numbers for dates and times."""
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in zip(case.columns, case.kinds, strict=True))
    view = crown.View(
        f"SELECT id, {case.sql} AS v FROM t", f"CREATE TABLE t (id INT, {columns})", on_invalid="quarantine"
    )
    found = rows(case.kinds)
    data = {name: arrow_column(kind, [row[at] for row in found])
            for at, (name, kind) in enumerate(zip(case.columns, case.kinds, strict=True))}  # fmt: skip
    view.insert("t", pa.table({"id": pa.array(range(len(found)), pa.int32()), **data}))
    result = view.to_arrow()
    values = result["v"]
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type) or pa.types.is_duration(values.type):
        values = values.cast(pa.int64())
    elif pa.types.is_interval(values.type):
        values = pa.array([None if value is None else value.months for value in values.to_pylist()], pa.int32())
    by_row = dict(zip(result["id"].to_pylist(), values.to_pylist(), strict=True))
    return view.plan.columns[1].type, [by_row.get(at, RAISED) for at in range(len(found))]


def wrapped(sql: str, type_: str) -> str:
    """The expression as a string from which the value can be read exactly, and NULL as a string too."""
    if type_ in ("string", "binary"):
        text = f"hex({sql})"
    elif type_ == "date":
        text = f"unix_date({sql})"
    elif type_.startswith("timestamp"):
        text = f"unix_micros(CAST({sql} AS TIMESTAMP))"
    elif DataType(type_).is_months:
        text = f"CAST(CAST({sql} AS INTERVAL YEAR TO MONTH) AS INT)"
    elif DataType(type_).is_interval:
        text = f"CAST(CAST({sql} AS INTERVAL DAY TO SECOND) AS DECIMAL(24,6))"
    else:
        text = sql
    return f"coalesce(CAST({text} AS STRING), 'NULL')"


def read(text: str, type_: str) -> Any:
    if text == "NULL":
        return None
    if type_ == "string":
        try:
            return bytes.fromhex(text).decode()
        except UnicodeDecodeError:
            return RAISED  # Spark keeps such strings; Crown's are all valid
    if type_ == "binary":
        return bytes.fromhex(text)
    if type_ == "boolean":
        return text == "true"
    if type_ == "float32":
        return struct.unpack("f", struct.pack("f", float(text)))[0]
    if type_ == "float64":
        return float(text)
    if DataType(type_).is_interval and not DataType(type_).is_months:
        return int(Decimal(text).scaleb(6))
    return Decimal(text) if type_.startswith("decimal") else int(text)


def values_clause(kinds: Sequence[str], names: Sequence[str]) -> str:
    lines = []
    for at, row in enumerate(rows(tuple(kinds))):
        literals = [spark_literal(kind, value) for kind, value in zip(kinds, row, strict=True)]
        lines.append(f"({', '.join([str(at), *literals])})")
    return f"VALUES {', '.join(lines)} AS t({', '.join(['id', *names])})"


def ask(
    spark: SparkSession, cases: Sequence[Case], types: Sequence[str], answers: Sequence[list[Any]]
) -> list[list[Any]]:
    """Spark's answers for cases over the same columns: where Crown has a value by one query, else row by row."""
    table = values_clause(cases[0].kinds, cases[0].columns)
    wanted = []
    for case, type_, found in zip(cases, types, answers, strict=True):
        raised = [str(at) for at, value in enumerate(found) if value is RAISED]
        guard = f"id IN ({', '.join(raised)})" if raised else "FALSE"
        wanted.append(f"CASE WHEN {guard} THEN '{RAISED}' ELSE {wrapped(case.sql, type_)} END")
    try:
        together = sorted(spark.sql(f"SELECT id, {', '.join(wanted)} FROM {table}").collect(), key=lambda row: row[0])
    except PySparkException:  # some row raises that Crown has a value for
        return [ask_one_by_one(spark, case, type_) for case, type_ in zip(cases, types, strict=True)]
    result = []
    for at, (case, type_, found) in enumerate(zip(cases, types, answers, strict=True)):
        raised_rows = [row for row, value in enumerate(found) if value is RAISED]
        alone = ask_one_by_one(spark, case, type_, raised_rows[:MOST_RAISED]) if raised_rows else []
        values = [RAISED if row[at + 1] == RAISED else read(row[at + 1], type_) for row in together]
        for row, value in zip(raised_rows, alone, strict=False):
            values[row] = value
        result.append(values)
    return result


def ask_one_by_one(spark: SparkSession, case: Case, type_: str, wanted: Sequence[int] | None = None) -> list[Any]:
    """The answers for some rows (all by default) of which any may raise, by Catalyst's own evaluation."""
    table = values_clause(case.kinds, case.columns)
    frame = spark.sql(f"SELECT id, {wrapped(case.sql, type_)} FROM {table}")
    plan = frame._jdf.queryExecution().optimizedPlan()
    relation = plan.collectLeaves().head()
    assert spark._jvm is not None
    expressions = spark._jvm.org.apache.spark.sql.catalyst.expressions
    projection = expressions.InterpretedMutableProjection(plan.expressions(), relation.output())
    found: list[Any] = []
    for at in range(relation.data().size()) if wanted is None else wanted:
        try:
            found.append(read(projection.apply(relation.data().apply(at)).getUTF8String(1).toString(), type_))
        except (Py4JJavaError, PySparkException):
            found.append(RAISED)
    return found


def same(got: Any, expected: Any, units: int) -> bool:
    if isinstance(got, float) and isinstance(expected, float):
        if math.isnan(got) or math.isnan(expected):
            return math.isnan(got) and math.isnan(expected)
        return got == expected or abs(got - expected) <= units * math.ulp(max(abs(got), abs(expected)))
    return bool(got == expected)


def differences(case: Case, type_: str, got: list[Any], expected: list[Any], units: int = 0) -> list[str]:
    # A column's -0.0 is 0.0 in Crown, which only its text can tell.
    negative_zero = [type_ == "string" and any(repr(value) == "-0.0" for value in row) for row in rows(case.kinds)]
    return [
        f"{case.sql} of {row}: Crown {got[at]!r}, Spark {expected[at]!r} ({type_})"
        for at, row in enumerate(rows(case.kinds))
        if not same(got[at], expected[at], units) and not negative_zero[at]
    ]


def spark_types(spark: SparkSession, cases: Sequence[Case]) -> list[str]:
    """The result types, from one analysis (of each, where that fails)."""
    names = [
        f"CAST(NULL AS {TYPES[kind]}) AS {name}" for name, kind in zip(cases[0].columns, cases[0].kinds, strict=True)
    ]
    inner = f"(SELECT {', '.join(names)})"
    wanted = ", ".join(f"{case.sql} AS c{at}" for at, case in enumerate(cases))
    return [type_ for _, type_ in spark.sql(f"SELECT {wanted} FROM {inner}").dtypes]


def compare(spark: SparkSession, cases: Sequence[Case], units: int = 0) -> list[str]:
    """All that differs for cases over the same columns."""
    found: list[str] = []
    answers = {case: crown_answers(case) for case in cases}
    for case, theirs in zip(cases, spark_types(spark, cases), strict=True):
        ours = DataType(answers[case][0]).sql_name.lower()
        if ours != theirs:
            found.append(f"{case.sql}: Crown {ours}, Spark {theirs}")
    asked = ask(spark, cases, *zip(*(answers[case] for case in cases), strict=True))
    for case, expected in zip(cases, asked, strict=True):
        found += differences(case, *answers[case], expected, units)
    return found


def grouped(cases: Sequence[Case]) -> dict[tuple[str, ...], list[Case]]:
    groups: dict[tuple[str, ...], list[Case]] = {}
    for case in cases:
        groups.setdefault(case.columns, []).append(case)
    return groups


@pytest.mark.parametrize("columns", grouped(CASES), ids=" ".join)
def test_functions_give_what_spark_gives(judge: SparkSession, columns: tuple[str, ...]) -> None:
    found = compare(judge, grouped(CASES)[columns])
    assert found == [], "\n" + "\n".join(found)


@pytest.mark.parametrize("columns", grouped(CASES_TO_ONE_UNIT), ids=" ".join)
def test_functions_of_angles_give_what_spark_gives(judge: SparkSession, columns: tuple[str, ...]) -> None:
    found = compare(judge, grouped(CASES_TO_ONE_UNIT)[columns], units=1)
    assert found == [], "\n" + "\n".join(found)
