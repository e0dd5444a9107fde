"""The web server example with many clients."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")

FOLDER = Path(__file__).parents[2] / "examples" / "server"


@pytest.fixture
def address() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port), "--timeout-graceful-shutdown", "1"]
    server = subprocess.Popen(command, cwd=FOLDER, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                httpx.get(f"{url}/views/by_tag/page")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait()


def test_many_clients_get_every_delta(address: str) -> None:
    clients, events = 8, 3
    ready = threading.Barrier(clients + 1)
    received: list[list[Any]] = [[] for _ in range(clients)]

    def listen(number: int) -> None:
        with httpx.stream("GET", f"{address}/views/by_tag/changes", timeout=60) as response:
            for line in response.iter_lines():
                if line.startswith(":"):
                    ready.wait(timeout=60)
                elif line.startswith("data: "):
                    received[number].append(json.loads(line[6:]))
                    if len(received[number]) == events:
                        return

    threads = [threading.Thread(target=listen, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    ready.wait(timeout=60)
    httpx.post(f"{address}/tables/tag", json=[[1, "joins"], [2, "trees"]], timeout=60)
    for message in range(events):
        changed = httpx.post(f"{address}/tables/message_tag", json=[[message, 1]], timeout=60)
        assert changed.json()["by_tag"] == (1 if message == 0 else 2)
    for thread in threads:
        thread.join(timeout=60)
    assert all(deltas == received[0] for deltas in received)
    assert [delta[-1]["reach"] for delta in received[0]] == [1, 2, 3]
    assert httpx.get(f"{address}/views/by_tag", params={"name": "joins"}, timeout=60).json() == [
        {"name": "joins", "reach": 3}
    ]
    assert httpx.get(f"{address}/views/by_tag/page", params={"limit": 5}, timeout=60).json()["count"] == 1
    assert httpx.get(f"{address}/views/nothing/page", timeout=60).status_code == 404
    assert httpx.post(f"{address}/tables/tag", json=[["x", 1]], timeout=60).status_code == 422
