"""Fixtures of the tests of views and databases."""

from __future__ import annotations

import pytest


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> int:
    return int(request.param)
