"""Python functions that random queries call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import crown


@crown.function(returns="BIGINT", arguments=["BIGINT"], vectorised=True)
def times_three(values: Any) -> Any:
    """Of an array; the reference calls it with a number."""
    return pc.multiply(values, 3) if isinstance(values, pa.Array) else 3 * values


def half_of_even(number: int) -> int | None:
    return number // 2 if number % 2 == 0 else None


def shown(number: int | None) -> str:
    return f"<{number}>"


def doubled(text: str) -> str:
    return text * 2


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "times_three": times_three,
    "half_of_even": half_of_even,
    "shown": shown,
    "doubled": doubled,
}
