"""The console's server: what it serves, to whom, and what it refuses."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import crown
from crown.errors import CrownError

SCHEMA = "CREATE TABLE r (k INT, x INT); CREATE TABLE s (k INT, y STRING)"
SQL = "SELECT r.x, s.y FROM r JOIN s ON r.k = s.k"


def view() -> crown.View:
    made = crown.View(SQL, SCHEMA)
    made.insert("r", [(n, n) for n in range(30)])
    made.insert("s", [(n, "<b>") for n in range(30)])
    return made


class Client:
    """Requests as a browser would send them, or would not."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname == "127.0.0.1" and parts.port is not None
        self.port, self.token = parts.port, parse_qs(parts.query)["token"][0]

    def get(self, path: str, *, token: str | None = None, host: str | None = None, method: str = "GET") -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        joined = "&" if "?" in path else "?"
        target = f"{path}{joined}token={self.token if token is None else token}"
        connection.putrequest(method, target, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{self.port}")
        connection.endheaders()
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    def frames(self, count: int) -> list[dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", f"/events?token={self.token}")
        answer = connection.getresponse()
        found: list[dict[str, Any]] = []
        while len(found) < count:
            line = answer.readline()
            assert line, "the stream ended"
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:]))
        connection.close()
        return found


def test_the_page_is_complete_in_itself() -> None:
    with view().console(name="pairs") as console:
        answer, text = Client(console.url).get("/")
        assert answer.status == 200
        assert "http://" not in text.replace("http://www.w3.org/", "") and "https://" not in text
        policy = answer.headers["Content-Security-Policy"]
        nonce = policy.split("'nonce-")[1].split("'")[0]
        assert f'<script nonce="{nonce}">' in text
        assert "default-src 'none'" in policy


def test_overview_rows_and_frames() -> None:
    made = view()
    with made.console(name="pairs", budget=1e6) as console:
        client = Client(console.url)
        overview = json.loads(client.get("/overview")[1])
        assert overview["title"] == "pairs" and overview["budget"] == 1e6
        assert overview["views"][0]["sql"] == SQL
        rows = json.loads(client.get("/rows?view=pairs&offset=10")[1])
        assert len(rows["table"]["rows"]) == 20 and rows["more"] is False
        first, second = client.frames(2)
        assert first["rates"] == {}
        assert second["frame"]["views"]["pairs"]["rows"] == 30
        assert second["rates"]["pairs"]["updates"] == 0


def test_nothing_is_observed_without_a_browser() -> None:
    made = view()
    with made.console() as console:
        assert made._observers == []
        Client(console.url).get("/overview")
        assert made._observers == []
        Client(console.url).frames(1)


@pytest.mark.parametrize("path", ["/", "/overview", "/rows?view=view", "/events", "/nothing"])
def test_a_request_needs_the_token_and_the_right_host(path: str) -> None:
    with view().console() as console:
        client = Client(console.url)
        assert client.get(path, token="")[0].status == 403
        assert client.get(path, token=client.token + "x")[0].status == 403
        answer, text = client.get(path, host="evil.example:80")
        assert answer.status == 403 and "r.x" not in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_no_request_can_change_anything(method: str) -> None:
    made = view()
    with made.console() as console:
        assert Client(console.url).get("/", method=method)[0].status == 501
    assert len(made) == 30


@pytest.mark.parametrize(
    "path", ["/nothing", "/rows", "/rows?view=other", "/rows?view=view&offset=-1", "/rows?view=view&offset=x²", "/../x"]
)
def test_odd_requests_get_an_answer(path: str) -> None:
    with view().console() as console:
        client = Client(console.url)
        from urllib.parse import quote

        answer, _ = client.get(quote(path, safe="/?=&"))
        assert answer.status in (200, 404)
        assert client.get("/overview")[0].status == 200


def test_garbage_does_not_stop_the_server() -> None:
    with view().console() as console:
        client = Client(console.url)
        for garbage in (b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b""):
            with socket.create_connection(("127.0.0.1", client.port)) as connection:
                connection.sendall(garbage)
        assert client.get("/overview")[0].status == 200


def test_close_ends_the_stream_and_frees_the_port() -> None:
    console = view().console()
    client = Client(console.url)
    begun, ended = threading.Event(), threading.Event()

    def read() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=30)
        connection.request("GET", f"/events?token={client.token}")
        answer = connection.getresponse()
        while answer.readline():
            begun.set()
        ended.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    assert begun.wait(30)
    console.close()
    assert ended.wait(30)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", client.port), timeout=5)


def test_a_port_in_use_is_an_error_in_words() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(CrownError, match="can't listen on port") as caught:
            view().console(port=taken.getsockname()[1])
        assert caught.value.code == "CROWN-CONSOLE-PORT"


@pytest.mark.parametrize("port", [-1, 65536, "80", True])
def test_a_port_must_be_one(port: Any) -> None:
    with pytest.raises(CrownError) as caught:
        view().console(port=port)
    assert caught.value.code == "CROWN-ARGUMENT"


def test_the_console_of_a_saved_view(tmp_path: Path) -> None:
    view().save(tmp_path / "pairs.crown")
    program = "from crown.cli import main; main()"
    command = [sys.executable, "-c", program, "console", str(tmp_path / "pairs.crown")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("console: ").strip()
        overview = json.loads(Client(url).get("/overview")[1])
        assert overview["title"] == "pairs" and overview["views"][0]["guarantee"] is not None
        process.send_signal(2)
        process.wait(30)
        assert process.returncode == 130
