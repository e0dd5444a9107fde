"""Data types: what is one, and what other systems call it."""

from __future__ import annotations

import copy
import json
import pickle

import pyarrow as pa
import pytest

import crown
from crown import types
from crown.arrow import arrow_type, crown_type
from crown.plan import from_json, to_json
from crown.sql.typenames import from_name
from crown.types import DataType

PLAIN = (
    *types.INTEGERS,
    *(types.BOOLEAN, types.FLOAT32, types.FLOAT64, types.STRING, types.BINARY),
    *(types.DATE, types.TIMESTAMP, types.TIMESTAMP_NTZ),
)
DECIMALS = [DataType(f"decimal({p},{s})") for p in (1, 2, 18, 37, 38) for s in (0, 1, 2, 37, 38) if s <= p]


@pytest.mark.parametrize("type_", [*PLAIN, *DECIMALS])
def test_each_type_survives_every_form(type_: DataType) -> None:
    assert type_ == DataType(str(type_)) == DataType.parse(str(type_))
    for other in (pickle.loads(pickle.dumps(type_)), copy.deepcopy(type_)):
        assert other == type_ and isinstance(other, DataType)
    assert from_name(type_) == from_name(type_.sql_name) == type_
    assert crown_type(arrow_type(type_)) == type_
    assert sum((type_.is_integer, type_.is_float, type_.is_decimal, type_.is_temporal)) <= 1
    assert (type_.precision is None) == (type_.scale is None) == (not type_.is_decimal)


@pytest.mark.parametrize(
    "text",
    ["", "int", "INT64", "decimal", "decimal(0,0)", "decimal(39,0)", "decimal(5,6)", "decimal(5, 2)", "decimal(05,2)"]
    + ["decimal(5,2) ", "decimal(5,-1)", "list<int64>", "null\n"],
)
def test_nothing_else_is_a_type(text: str) -> None:
    with pytest.raises(ValueError, match="is not a type"):
        DataType(text)


@pytest.mark.parametrize("given", [None, 1, "null", ["int64"], "bigint"])
def test_stored_types_are_checked(given: object) -> None:
    with pytest.raises(ValueError, match="is not a type"):
        DataType.parse(given)
    view = crown.View("SELECT a FROM r", schema={"r": {"a": "int64"}})
    stored = json.loads(to_json(view.plan))
    stored["columns"][0]["type"] = given
    with pytest.raises(crown.PlanError, match="CROWN-PLAN-JSON"):
        from_json(json.dumps(stored))


def test_decimals_that_crown_does_not_have_are_refused_by_name() -> None:
    for foreign in (pa.decimal256(50, 2), pa.decimal128(10, -2), pa.float16()):
        assert crown_type(foreign) is None
        with pytest.raises(crown.SqlError) as caught:
            crown.View("SELECT a FROM r", schema={"r": pa.schema([("a", foreign)])})
        assert caught.value.code == "CROWN-SQL-UNKNOWN-TYPE"
