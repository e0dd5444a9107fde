"""The words for changes mean the same to the package and to the kernel."""

from __future__ import annotations

import pyarrow as pa
import pytest

import crown
from crown import changes
from crown.workload.log import read_log


@pytest.mark.parametrize("word", changes.SIGN)
def test_each_word_has_its_sign(word: str) -> None:
    view = crown.View("SELECT a FROM r", schema={"r": {"a": "int64"}})
    view.insert("r", [(1,), (1,)])
    delta = view.apply({"r": pa.table({"a": [1], changes.CHANGE_TYPE: [word], changes.MULTIPLICITY: [2]})})
    assert delta[changes.CHANGE_TYPE].to_pylist() == [changes.INSERT if changes.SIGN[word] > 0 else changes.DELETE]
    assert delta[changes.MULTIPLICITY].to_pylist() == [2]
    assert len(view) == 2 + 2 * changes.SIGN[word]
    log = read_log({"r": pa.table({"a": [1], changes.CHANGE_TYPE: [word], changes.MULTIPLICITY: [2]})})["r"]
    assert log.change.tolist() == [2 * changes.SIGN[word]]


def test_no_other_word_is_known() -> None:
    view = crown.View("SELECT a FROM r", schema={"r": {"a": "int64"}})
    for word in ("upsert", "INSERT", "", "update"):
        with pytest.raises(crown.InvalidChange):
            view.apply({"r": pa.table({"a": [1], changes.CHANGE_TYPE: [word]})})
    assert len(view) == 0
