"""End a command on Ctrl-C at any moment, with one line of output.

Python raises KeyboardInterrupt at any point, also inside a call to Spark's JVM, which then sends a reply that no caller
expects. So commands call Spark in a thread, and the main thread, which receives signals, only waits: the first Ctrl-C
asks the thread to stop, which it does between two calls; a second one, or a timeout, ends the process. Nothing is lost
either way: a batch only counts once Spark has committed it.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import NoReturn, TypeVar

INTERRUPTED = 130  # as shells report a program that SIGINT ended
_PATIENCE_SECONDS = 20.0

Result = TypeVar("Result")


class Interrupted(BaseException):
    """Raised on Ctrl-C. Unlike KeyboardInterrupt, no library catches it; the text is the command's last line."""


def raise_interrupts() -> None:
    """Have the first Ctrl-C raise `Interrupted`, and the second end the process."""

    def on_signal(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, lambda *_: leave(INTERRUPTED))
        raise Interrupted

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, on_signal)


def leave(code: int) -> NoReturn:
    """Exit immediately, without running handlers, threads or finalizers. Java exits when its input is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def supervise(work: Callable[[threading.Event], Result], *, last_line: str, give_up: Callable[[], None]) -> Result:
    """Run `work` in a thread. It should end soon after its event is set; `give_up` ends what it waits for."""
    if threading.current_thread() is not threading.main_thread():
        return work(threading.Event())
    stop = threading.Event()
    # A queue that a signal handler may put into at any moment: setting an event takes a lock, on
    # which a Ctrl-C inside the handler of another would deadlock.
    presses: SimpleQueue[int] = SimpleQueue()
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work(stop))
        except BaseException as error:
            errors.append(error)

    previous = signal.signal(signal.SIGINT, lambda number, _: presses.put(number))
    try:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        _wait(thread, stop, presses)
        if stop.is_set():
            if thread.is_alive():
                give_up()
                thread.join(5)
            raise Interrupted(last_line)
    finally:
        signal.signal(signal.SIGINT, previous)
    if errors:
        raise errors[0]
    return results[0]


def _wait(thread: threading.Thread, stop: threading.Event, presses: SimpleQueue[int]) -> None:
    """Wait until the thread ends, Ctrl-C was pressed twice, or the timeout after the first has passed."""
    limit = math.inf
    while thread.is_alive() and time.monotonic() < limit:
        try:
            presses.get(timeout=0.1)
        except Empty:
            continue
        if stop.is_set():
            return
        stop.set()
        limit = time.monotonic() + _PATIENCE_SECONDS
