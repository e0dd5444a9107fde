"""Errors of expressions, with their place in the query and a hint.

The kernel knows which expression failed, but not the SQL, so its errors are completed here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

from crown.errors import CrownError
from crown.sql.failures import failing_place, hint

_T = TypeVar("_T")
_CODES = frozenset({"CROWN-DIVIDE-BY-ZERO", "CROWN-CAST", "CROWN-OVERFLOW", "CROWN-SCALAR-ROWS"})


def located(kernel: _T, sql: str) -> _T:
    """Return an object of the kernel whose errors show the place in `sql`."""
    return cast(_T, _Located(kernel, sql))


@contextlib.contextmanager
def located_in(queries: Sequence[str]) -> Iterator[None]:
    """Complete errors of expressions that are in one of several queries, where only one of them can fail so."""
    try:
        yield
    except CrownError as error:
        if error.code not in _CODES or error.position is not None:
            raise
        places = [(sql, place) for sql in queries if (place := failing_place(sql, error.code)) is not None]
        if len(places) != 1:
            raise
        raise _completed(error, *places[0]) from None


def _completed(error: CrownError, sql: str, position: tuple[int, int] | None) -> CrownError:
    return type(error)(
        error.message,
        code=error.code,
        sql=sql,
        position=position,
        reason=error.reason,
        hint=error.hint or hint(error.code, error.message),
    )


class _Located:
    def __init__(self, kernel: object, sql: str) -> None:
        self._kernel = kernel
        self._sql = sql

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._kernel, name)
        return self._guarded(found) if callable(found) else found

    def _guarded(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            try:
                return method(*args, **options)
            except CrownError as error:
                raise self._complete(error) from error.__cause__

        return call

    def _complete(self, error: CrownError) -> CrownError:
        if error.code not in _CODES or error.position is not None:
            return error
        return _completed(error, self._sql, failing_place(self._sql, error.code))
