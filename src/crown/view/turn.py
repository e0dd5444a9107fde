"""Mutual exclusion of callers that is safe after a fork and defers interrupts."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType

from crown.errors import StateError


class Turn:
    """A reentrant lock. In a forked process, taking one that another thread held at the fork is an error.

    Ctrl-C is deferred until the turn ends, so that the work within it is not interrupted halfway; a second Ctrl-C is
    not.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._holder = os.getpid()
        self._interrupts = Interrupts()

    def __enter__(self) -> None:
        self._interrupts.hold()
        try:
            while not self._lock.acquire(timeout=0.1):
                if self._holder != os.getpid():
                    raise StateError(
                        "the database was in use when this process was forked",
                        code="CROWN-FORKED",
                        hint="load the database in the child, or start processes with 'spawn'",
                    )
                self._interrupts.check()
        except BaseException:
            self._interrupts.release()
            raise
        self._holder = os.getpid()

    def check(self) -> None:
        """Raise an interrupt that arrived in this turn: the caller must undo what it began."""
        self._interrupts.check()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
        self._interrupts.release()


class Interrupts:
    """Defers Ctrl-C in the main thread, the only one that receives it; uses may be nested."""

    def __init__(self) -> None:
        self._depth = 0
        self._came = False
        self._handler: Callable[[int, FrameType | None], object] | None = None

    def hold(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth += 1
        if self._depth == 1:
            self._came = False
            handler = signal.getsignal(signal.SIGINT)
            self._handler = handler if callable(handler) else None
            if self._handler is not None:
                signal.signal(signal.SIGINT, self._note)

    def release(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._depth == 0:
            if self._handler is not None:
                signal.signal(signal.SIGINT, self._handler)
            self.check()

    def check(self) -> None:
        """Raise an interrupt that arrived in the meantime."""
        if self._came and self._handler is not None and threading.current_thread() is threading.main_thread():
            self._came = False
            self._handler(signal.SIGINT, None)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._came and self._handler is not None:
            self._handler(number, frame)
        self._came = True
