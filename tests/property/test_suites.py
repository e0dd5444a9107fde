"""TPC-H, SSB and JOB-shaped queries at a small scale, shuffled."""

from __future__ import annotations

import random

import pytest

from tests.support.contents import contents
from tests.support.shuffle import read_suite, run_shuffled

SIZES = {
    "tpch": {"": 25, "region": 3, "nation": 8, "lineitem": 90, "orders": 30},
    "ssb": {"": 8, "lineorder": 120},
    "job": {
        "": 8,
        "movie_companies": 30,
        "movie_keyword": 30,
        "cast_info": 40,
        "movie_info": 30,
        "movie_link": 20,
        "title": 10,
    },
}
CASES = [(suite, title) for suite in SIZES for title in read_suite(suite)[1]]


@pytest.mark.parametrize("suite, title", CASES)
def test_suite(suite: str, title: str, rng: random.Random) -> None:
    schema, queries = read_suite(suite)
    rows = contents(queries[title], schema, SIZES[suite], rng)
    run_shuffled(queries[title], schema, rows, rng, threads=rng.choice([1, 3]))
