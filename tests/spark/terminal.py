"""A command in a terminal of its own, as a user runs it: keys go to its process group, the screen is what it prints."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.spark.streams import end, ended, java_below, wait_until

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environment, "TERM": "xterm", "COLUMNS": "200", "LINES": "50"},
            preexec_fn=lambda: _take_terminal(slave),
        )
        os.close(slave)
        self._shown = b""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end(self._process)
        os.close(self._master)

    @property
    def screen(self) -> str:
        return _CONTROL.sub("", self._shown.decode(errors="replace")).replace("\r\n", "\n")

    def wait_for(self, moment: str, directory: Path) -> None:
        """Until a text is shown, a file is there, or Java runs."""

        def reached() -> bool:
            self._read(0.01)
            if moment == "at once":
                # Python's own start is over; nothing of Crown has been shown.
                return "main" in Path(f"/proc/{self._process.pid}/cmdline").read_text()
            if moment == "java":
                return bool(java_below(self._process.pid))
            return moment in self.screen or ("/" in moment and (directory / moment).exists())

        assert wait_until(lambda: reached() or ended(self._process), seconds=300), self.screen
        assert not ended(self._process), self.screen
        if moment == "at once":
            time.sleep(0.3)

    def press_ctrl_c(self) -> None:
        os.write(self._master, b"\x03")

    def finish(self) -> tuple[int, str]:
        """The exit code and all that was shown."""
        deadline = time.monotonic() + 300
        while not ended(self._process) and time.monotonic() < deadline:
            self._read(0.1)
        self._read(0.1)
        assert ended(self._process), self.screen
        return self._process.wait(), self.screen

    def _read(self, seconds: float) -> None:
        with contextlib.suppress(OSError):  # the other side is closed
            while select.select([self._master], [], [], seconds)[0]:
                data = os.read(self._master, 65536)
                if not data:
                    return
                self._shown += data


def _take_terminal(slave: int) -> None:
    """Make the terminal the one whose keys this process gets."""
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
