"""The delta of a batch, read while it is produced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from crown import _kernel
from crown.errors import CrownError

if TYPE_CHECKING:
    import pandas


_T = TypeVar("_T")


class DeltaReader:
    """Reads a delta like a `pyarrow.RecordBatchReader`, and fails with a `CrownError` like `apply` does.

    A batch can rarely fail after its first rows were read: a sum or a multiplicity may still overflow. The view is then
    rolled back to its state before the batch, and the rows read so far are void.

    Consumers of `__arrow_c_stream__` (`pyarrow.table`, polars, DuckDB) get all rows at once, because that
    protocol can only transport errors as text.
    """

    def __init__(self, stream: _kernel.ArrowStream) -> None:
        self._stream = stream
        self._reader = pa.RecordBatchReader.from_stream(stream)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the view and those that describe a change."""
        return self._reader.schema

    def _read(self, read: Callable[[], _T]) -> _T:
        try:
            return read()
        except pa.ArrowException as error:
            self._stream.check()
            raise CrownError(f"the delta can't be read: {error}", code="CROWN-STREAM") from error

    def read_next_batch(self) -> pa.RecordBatch:
        """Return the next rows; StopIteration at the end."""
        return self._read(self._reader.read_next_batch)

    def read_all(self) -> pa.Table:
        """Return all remaining rows."""
        return self._read(self._reader.read_all)

    def read_pandas(self, **options: Any) -> pandas.DataFrame:
        """Return all remaining rows as a pandas DataFrame; `options` are those of pyarrow's `to_pandas`."""
        return self.read_all().to_pandas(**options)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        return self.read_next_batch()

    def close(self) -> None:
        """Stop reading. The batch is still applied in full."""
        self._reader.close()

    def __enter__(self) -> DeltaReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.read_all().__arrow_c_stream__(requested_schema)
