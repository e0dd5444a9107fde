"""The host process: binds its socket, serves, and exits when its executor is gone or it has been idle for long."""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import socket
import threading
import time
from pathlib import Path

from crown.spark.host.launch import Executor, lock_directory, sweep
from crown.spark.host.protocol import socket_address
from crown.spark.host.server import Server

_ENGINE_IDLE_SECONDS = 1800.0


def main() -> None:
    arguments = argparse.ArgumentParser(prog="crown.spark.host")
    arguments.add_argument("--directory", type=Path, required=True)
    arguments.add_argument("--executor", required=True)
    arguments.add_argument("--idle", type=float, required=True)
    arguments.add_argument("--memory", type=int, default=0)
    options = arguments.parse_args()
    if options.memory:
        resource.setrlimit(resource.RLIMIT_DATA, (options.memory, options.memory))
    executor = Executor.parse(options.executor)
    directory: Path = options.directory
    sweep(directory.parent)
    server = Server()
    listener = _listen(directory)
    threading.Thread(target=server.serve, args=(listener,), daemon=True).start()
    _watch(server, executor, directory, options.idle)


def _listen(directory: Path) -> socket.socket:
    """Bind under another name first, so that the socket's name appears only when it answers."""
    early = directory / f"{os.getpid()}.sock"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with socket_address(early) as address:
        listener.bind(address)
    early.chmod(0o600)
    listener.listen(128)
    early.rename(directory / "host.sock")
    return listener


def _watch(server: Server, executor: Executor, directory: Path, idle: float) -> None:
    while True:
        if executor.wait_gone(min(5.0, idle / 4)):
            shutil.rmtree(directory, ignore_errors=True)
            os._exit(0)
        server.engines.forget_idle(_ENGINE_IDLE_SECONDS)
        if server.busy or time.monotonic() - server.last_request < idle:
            continue
        with lock_directory(directory, blocking=False) as locked:
            # While we hold the lock, no worker is starting or finding a host here; a later one
            # finds no socket and starts one.
            if locked:
                shutil.rmtree(directory, ignore_errors=True)
                os._exit(0)


if __name__ == "__main__":
    main()
