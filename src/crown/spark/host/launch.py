"""Find the host of this executor, or start it.

Each executor has a private directory (0700) with the host's socket (0600), log and lock. The directory is named after
the executor's process and its start time, so a reused process id is not taken for the same executor. Only the holder of
the lock starts a host or removes the directory.

The directories lie in the system's temporary directory, where any user may take a name first. A file that already has
the name is left alone, and the user's own directories are tried next: all workers of an executor look in the same
order.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crown.errors import StateError
from crown.spark.host.protocol import VERSION, Connection, HostGone, socket_address
from crown.spark.required import bytes_of

_START_SECONDS = 60.0
_IDLE_SECONDS = 3600.0

# Started hosts stay children of this worker while it lives: held so that a dead one is reaped when
# the next starts.
_started: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Executor:
    """The process whose life bounds the host's: the executor's JVM, or the driver's in local mode."""

    pid: int
    started: str

    @staticmethod
    def of_this_worker() -> Executor:
        """Return the nearest JVM above this process; the parent where there is none (a test, a plain script)."""
        pid = os.getppid()
        while pid > 1:
            if _command(pid) == "java":
                return Executor(pid, _start_time(pid))
            pid = _parent(pid)
        return Executor(os.getpid(), _start_time(os.getpid()))

    @staticmethod
    def parse(text: str) -> Executor:
        pid, _, started = text.partition("-")
        return Executor(int(pid), started)

    def __str__(self) -> str:
        return f"{self.pid}-{self.started}"

    @property
    def alive(self) -> bool:
        return _start_time(self.pid) == self.started

    def wait_gone(self, seconds: float) -> bool:
        """Wait up to `seconds` for the process to end; True when it has."""
        if not self.alive:
            return True
        try:
            descriptor = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            time.sleep(min(seconds, 1.0))
            return not self.alive
        try:
            select.select([descriptor], [], [], seconds)
        finally:
            os.close(descriptor)
        return not self.alive


def connect() -> Connection:
    """Return a connection to this executor's host, started if need be."""
    executor = Executor.of_this_worker()
    directory = _private_directory(executor)
    connection = _try_connect(directory)
    while connection is None:
        with lock_directory(directory) as locked:
            if locked:
                connection = _try_connect(directory) or _start(directory, executor)
        if connection is None:
            directory = _private_directory(executor)
    return connection


def log_tail(lines: int = 5) -> str:
    """Return the end of the host's log, for error messages."""
    try:
        log = _base() / str(Executor.of_this_worker()) / "host.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except (OSError, StateError):
        return ""


@contextlib.contextmanager
def lock_directory(directory: Path, *, blocking: bool = True) -> Iterator[bool]:
    """Hold the directory's lock. False if another process holds it (not `blocking`), or if the directory was replaced
    meanwhile.
    """
    path = directory / "lock"
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if blocking else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        try:
            same = os.stat(path).st_ino == os.fstat(descriptor).st_ino
        except FileNotFoundError:
            same = False
        yield same
    finally:
        os.close(descriptor)


def sweep(base: Path) -> None:
    """Remove the directories of executors that were killed together with their hosts."""
    for directory in base.iterdir():
        try:
            gone = not Executor.parse(directory.name).alive
        except ValueError:
            continue
        if gone:
            with lock_directory(directory, blocking=False) as locked:
                if locked:
                    shutil.rmtree(directory, ignore_errors=True)


def _start(directory: Path, executor: Executor) -> Connection:
    with contextlib.suppress(FileNotFoundError):
        (directory / "host.sock").unlink()
    for early in directory.glob("*.sock"):
        early.unlink(missing_ok=True)
    command = [sys.executable, "-m", "crown.spark.host", "--directory", str(directory), "--executor", str(executor)]
    command += ["--idle", os.environ.get("CROWN_HOST_IDLE", str(_IDLE_SECONDS))]
    command += ["--memory", str(bytes_of("CROWN_HOST_MEMORY", os.environ.get("CROWN_HOST_MEMORY")))]
    # The worker may have been given modules by path only; the host must find the same ones.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    _started[:] = [process for process in _started if process.poll() is None]
    with open(directory / "host.log", "wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        )
    _started.append(process)
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        connection = _try_connect(directory)
        if connection is not None:
            return connection
        if process.poll() is not None:
            raise _cannot_start(f"it ended with code {process.returncode}")
        time.sleep(0.01)
    process.kill()
    raise _cannot_start(f"it did not answer within {_START_SECONDS:.0f} s")


def _cannot_start(cause: str) -> StateError:
    tail = log_tail()
    return StateError(
        "the engine host could not start",
        code="CROWN-HOST-START",
        reason=cause + (f"; its log ends with:\n{tail}" if tail else ""),
        hint="check that `python -m crown.spark.host --help` works on the machine of the executor",
    )


def _try_connect(directory: Path) -> Connection | None:
    connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_address(directory / "host.sock") as address:
            connecting.connect(address)
    except OSError:
        connecting.close()
        return None
    connection = Connection(connecting)
    try:
        connection.send({"do": "hello"})
        reply = connection.receive()
        reply.finish()
    except HostGone:
        connection.close()
        return None
    if reply.header["protocol"] != VERSION:
        connection.close()
        raise StateError(
            f"the running engine host uses protocol {reply.header['protocol']}, this worker uses {VERSION}",
            code="CROWN-HOST-PROTOCOL",
            reason="Crown was upgraded while the executor ran",
            hint="restart the application",
        )
    return connection


def _base() -> Path:
    """Return the first place where this user can have a private directory."""
    places = [Path(tempfile.gettempdir()) / f"crown-{os.getuid()}"]
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        places.append(Path(runtime) / "crown")
    with contextlib.suppress(RuntimeError):
        places.append(Path.home() / ".crown")
    problems = []
    for place in places:
        problem = _claim(place)
        if problem is None:
            return place
        problems.append(f"{place}: {problem}")
    raise StateError(
        "the engine host has no private directory",
        code="CROWN-HOST-DIRECTORY",
        reason="; ".join(problems),
        hint="remove the file or directory, or set TMPDIR to your own directory",
    )


def _private_directory(executor: Executor) -> Path:
    directory = _base() / str(executor)
    problem = _claim(directory)
    if problem is not None:
        raise StateError(
            f"the engine host can't use the directory {directory}",
            code="CROWN-HOST-DIRECTORY",
            reason=problem,
            hint="remove the file or directory, or set TMPDIR to your own directory",
        )
    return directory


def _claim(directory: Path) -> str | None:
    """Create the directory unless it exists; return why it can't be used, or None. Links are not followed."""
    try:
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        found = directory.lstat()
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISDIR(found.st_mode):
        return "it is not a directory"
    if found.st_uid != os.getuid():
        return "it belongs to another user"
    if found.st_mode & 0o077:
        return "other users have access: its mode must be 0700"
    return None


def _stat_fields(pid: int) -> list[str]:
    # The command may hold blanks and brackets, so read from its closing bracket on.
    text = Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2 :].split()


def _start_time(pid: int) -> str:
    """Return the process's start time; empty when it is gone or a zombie."""
    try:
        fields = _stat_fields(pid)
        return "" if fields[0] in "ZX" else fields[19]
    except OSError:
        return _ask_ps(pid, "lstart").replace(" ", "_") if not Path("/proc/self/stat").exists() else ""


def _parent(pid: int) -> int:
    try:
        return int(_stat_fields(pid)[1])
    except OSError:
        return int(_ask_ps(pid, "ppid") or 0)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return os.path.basename(_ask_ps(pid, "comm"))


def _ask_ps(pid: int, column: str) -> str:
    """Fallback for systems without /proc."""
    answer = subprocess.run(["ps", "-o", f"{column}=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return answer.stdout.strip()
