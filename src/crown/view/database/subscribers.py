"""Subscribers to the deltas of a database: callbacks and iterators, served in the order of the batches."""

from __future__ import annotations

import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import TypeAlias

import pyarrow as pa

from crown.errors import CrownError
from crown.view.turn import Interrupts

Callback: TypeAlias = Callable[[pa.Table], object]


class Subscribers:
    """Delivers deltas batch by batch, regardless of which thread applied them."""

    def __init__(self) -> None:
        self._observers: dict[str, list[Callback]] = {}
        self._callbacks: dict[str, list[Callback]] = {}
        # Weak references: an iterator that is no longer referenced must not collect deltas forever.
        self._iterators: dict[str, list[weakref.ref[DeltaIterator]]] = {}
        self._waiting: deque[tuple[str, Callback | DeltaIterator, pa.Table]] = deque()
        self._delivering = threading.Lock()
        self._deliverer: int | None = None  # the thread that has the lock

    def add(self, view: str, callback: Callback) -> Callable[[], None]:
        """Call `callback` with each delta of the view from now on; return a function that cancels the subscription."""
        if not callable(callback):
            raise CrownError("the callback is not a function", code="CROWN-ARGUMENT", hint="give a function of a delta")
        self._callbacks.setdefault(view, []).append(callback)

        def remove() -> None:
            callbacks = self._callbacks.get(view, [])
            if callback in callbacks:
                callbacks.remove(callback)

        return remove

    def observe(self, view: str, observer: Callback) -> Callable[[], None]:
        """As `add`, for a callback that takes next to no time and uses no database: it is called in `queue`."""
        observers = self._observers.setdefault(view, [])
        observers.append(observer)
        return partial(observers.remove, observer)

    def iterate(self, view: str) -> DeltaIterator:
        followers = self._iterators.setdefault(view, [])
        changes = DeltaIterator(lambda gone: followers.remove(weakref.ref(gone)))
        followers.append(weakref.ref(changes, followers.remove))
        return changes

    def forget(self, view: str) -> None:
        """End everything that waits for deltas of a view."""
        self._callbacks.pop(view, None)
        self._observers.pop(view, None)
        for reference in self._iterators.pop(view, []):
            if (changes := reference()) is not None:
                changes.end()

    @property
    def _is_followed(self) -> bool:
        return bool(self._waiting) or any(self._callbacks.values()) or any(self._iterators.values())

    def queue(self, deltas: Mapping[str, pa.Table]) -> None:
        """Queue the deltas of a batch for the current subscribers; call in the order of the batches."""
        for view, delta in deltas.items():
            if delta.num_rows:
                for observer in self._observers.get(view, ()):
                    observer(delta)
                iterators = [reference() for reference in self._iterators.get(view, ())]
                followers = (*iterators, *self._callbacks.get(view, ()))
                self._waiting += [(view, follower, delta) for follower in followers if follower is not None]

    def deliver(self) -> None:
        """Deliver the queued deltas. A callback that raises does not prevent delivery to the others.

        Within a callback this does nothing: the deltas of a batch that it applies come after those of the current one.
        """
        if self._deliverer == threading.get_ident() or not self._is_followed:
            return
        failed: BaseException | None = None
        interrupts = Interrupts()
        with self._delivering:
            interrupts.hold()  # or another thread could come between taking a delta and delivering it
            self._deliverer = threading.get_ident()
            try:
                while self._waiting:
                    view, follower, delta = self._waiting.popleft()
                    try:
                        if isinstance(follower, DeltaIterator):
                            follower.put(delta)
                        elif follower in self._callbacks.get(view, ()):  # not ended in the meantime
                            follower(delta)
                    except BaseException as error:
                        failed = failed or error
            finally:
                self._deliverer = None
                interrupts.release()
        if failed is not None:
            raise failed


class DeltaIterator:
    """Iterates over the deltas of a view from its creation on; `next` waits for a batch that changes the view.

    Iterate over it in a separate thread, or call `get` with a timeout. It ends when it is closed or the view is
    dropped. Deltas are buffered until they are read, as long as the iterator is referenced.
    """

    def __init__(self, on_close: Callable[[DeltaIterator], None]) -> None:
        self._queue: queue.SimpleQueue[pa.Table | None] = queue.SimpleQueue()
        self._on_close = on_close
        self._ended = False

    def put(self, delta: pa.Table) -> None:
        self._queue.put(delta)

    def end(self) -> None:
        self._queue.put(None)

    def get(self, timeout: float | None = None) -> pa.Table | None:
        """Return the next delta; None if none arrives within `timeout` seconds, or at the end."""
        if self._ended:
            return None
        try:
            delta = self._queue.get(timeout=timeout)
        except queue.Empty:
            return None
        self._ended = delta is None
        return delta

    def __iter__(self) -> Iterator[pa.Table]:
        return self

    def __next__(self) -> pa.Table:
        delta = self.get()
        if delta is None:
            raise StopIteration
        return delta

    def close(self) -> None:
        """Stop receiving deltas."""
        if not self._ended:
            try:
                self._on_close(self)
            except ValueError:
                return
            self.end()

    def __enter__(self) -> DeltaIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
