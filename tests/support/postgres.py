"""A PostgreSQL server for one test or one session."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def running_server(**settings: str) -> Iterator[str]:
    """Start a server on a free port and give the string to connect with; where there is none, skip the test.

    The server runs as another user where the tests run as root, which PostgreSQL refuses. Its directory is not one of
    pytest's: each new run of pytest closes their parent to other users, and a server that runs then loses its files.
    """
    with tempfile.TemporaryDirectory(prefix="crown-postgres-") as directory:
        yield from _run(Path(directory), settings)


def _run(directory: Path, settings: Mapping[str, str]) -> Iterator[str]:
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [os.path.dirname(shutil.which("initdb") or "")]
    if not os.path.exists(os.path.join(programs[-1], "initdb")):
        pytest.skip("PostgreSQL's server is not installed (Debian: apt-get install postgresql)")
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install crown-ivm[postgres]")
    user: dict[str, int] = {}
    if os.getuid() == 0:
        try:
            entry = pwd.getpwnam("postgres")
        except KeyError:
            entry = pwd.getpwnam("nobody")
        user = {"user": entry.pw_uid, "group": entry.pw_gid}
        os.chown(directory, entry.pw_uid, entry.pw_gid)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    initdb = [f"{programs[-1]}/initdb", "-D", str(directory / "data"), "-U", "crown", "-A", "trust", "-E", "UTF8"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
    subprocess.run([*initdb, "--no-sync"], check=True, **quiet, **user)  # type: ignore[call-overload]
    options = ["-p", str(port), "-k", str(directory), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
    options += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    server = subprocess.Popen(  # type: ignore[call-overload]
        [f"{programs[-1]}/postgres", "-D", str(directory / "data"), *options], **quiet, **user
    )
    connection = f"host=127.0.0.1 port={port} user=crown dbname=postgres"
    try:
        import psycopg

        for _ in range(600):
            try:
                psycopg.connect(connection, connect_timeout=2).close()
                break
            except psycopg.OperationalError:
                assert server.poll() is None, "the server ended"
        yield connection
    finally:
        server.terminate()
        server.wait()
