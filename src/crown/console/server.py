"""The console's web server: one page and its data, for browsers of this machine only.

It answers GET, changes nothing, listens on the loopback interface, and requires the token in the console's address with
every request. The Host header is checked too, so that another web page can't reach it through its own domain name (DNS
rebinding).
"""

from __future__ import annotations

import dataclasses
import hmac
import json
import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from crown._kernel import __version__
from crown.console.pace import Pace
from crown.console.source import PAGE_ROWS, ConsoleSource, Rates
from crown.errors import CrownError

_SECONDS = 1.0  # between two frames, more if they take long to measure
_HISTORY = 180  # points of the charts
_MOST_BROWSERS = 16
_log = logging.getLogger("crown.console")


class Console:
    """A console that is being served: open `url` in a browser. `close` ends it; so does the end of the process."""

    def __init__(self, source: ConsoleSource, *, port: int = 0) -> None:
        self._hub = _Hub(source)
        self._token = secrets.token_urlsafe(12)
        handler = type("_Handler", (_Handler,), {"hub": self._hub, "token": self._token})
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        except OSError as error:
            raise CrownError(
                f"the console can't listen on port {port}",
                code="CROWN-CONSOLE-PORT",
                reason=error.strerror,
                hint="choose another port, or 0 for any that is free",
            ) from error
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, name="crown-console", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address to open, with the token."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/?token={self._token}"

    def close(self) -> None:
        """Stop serving."""
        self._hub.close()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Console:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<crown console at {self.url}>"

    def _repr_html_(self) -> str:
        """Shown by notebooks."""
        return f'Crown console: <a href="{self.url}" target="_blank" rel="noreferrer">{self.url}</a>'


class _Hub:
    """One series of frames for all browsers. The first thread that waits for a frame makes it, if one is due."""

    def __init__(self, source: ConsoleSource) -> None:
        self.source = source
        self.closed = threading.Event()
        self._lock = threading.Lock()
        self._browsers = 0
        self._rates = Rates()
        self.pace = Pace(_SECONDS * 0.9)
        self._latest = ""
        self._names: frozenset[str] = frozenset()
        self._history: deque[dict[str, Any]] = deque(maxlen=_HISTORY)

    def overview(self) -> dict[str, Any]:
        with self._lock:
            about = {"history": list(self._history), "page": PAGE_ROWS, "version": __version__}
            overview = self.source.overview()
            self._names = frozenset(view["name"] for view in overview["views"])
            return {**overview, **about}

    def has(self, view: str) -> bool:
        """Whether there is such a view."""
        if not self._names:
            self.overview()
        return view in self._names

    def connect(self) -> bool:
        """Register a browser; False if there are too many."""
        with self._lock:
            if self._browsers >= _MOST_BROWSERS:
                return False
            self._browsers += 1
            if self._browsers == 1:
                self._rates = Rates()
                self.source.watch(True)
            return True

    def disconnect(self) -> None:
        with self._lock:
            self._browsers -= 1
            if self._browsers == 0:
                self.source.watch(False)

    def frame(self) -> tuple[int, str]:
        """Return the number of the latest frame, and the frame as JSON. A new one is made if it is due."""
        with self._lock:
            now = time.monotonic()
            if now >= self.pace.due:
                with self.pace.work():
                    self._latest = self._measure(now)
            return self.pace.times, self._latest

    def _measure(self, now: float) -> str:
        frame = self.source.frame()
        rates = self._rates.between(now, frame)
        point = {
            "time": time.time(),
            "views": {
                name: {
                    "updates": rates[name]["updates"] if name in rates else None,
                    "deltas": rates[name]["deltas"] if name in rates else None,
                    "effort": rates[name]["effort"] if name in rates else None,
                    "bytes": view.bytes,
                }
                for name, view in frame.views.items()
            },
        }
        self._history.append(point)
        return _json({"frame": frame, "rates": rates, "point": point})

    def close(self) -> None:
        self.closed.set()


class _Handler(BaseHTTPRequestHandler):
    hub: _Hub
    token: str
    protocol_version = "HTTP/1.1"
    server_version = "crown"
    sys_version = ""

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        if self.headers.get("Host", "") not in self._hosts():
            self._refuse(HTTPStatus.FORBIDDEN, "this console only answers requests to its own address")
        elif not hmac.compare_digest(query.get("token", "").encode(), self.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "open the console at the address that was printed: the token is missing")
        else:
            self._answer(address.path, query)

    def _hosts(self) -> set[str]:
        port = self.connection.getsockname()[1]
        return {f"127.0.0.1:{port}", f"localhost:{port}"}

    def _answer(self, path: str, query: Mapping[str, str]) -> None:
        try:
            match path:
                case "/":
                    nonce = secrets.token_urlsafe(12)
                    self._send(_page(nonce), "text/html; charset=utf-8", nonce=nonce)
                case "/overview":
                    self._send(_json(self.hub.overview()), "application/json")
                case "/rows":
                    self._send(_json(self._rows(query)), "application/json")
                case "/events":
                    self._stream()
                case _:
                    self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except Exception:
            _log.exception("the console could not answer %s", path)
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "the console could not read this; see the log")

    def _rows(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        view = query.get("view", "")
        if not self.hub.has(view):
            return {"table": None, "more": False, "note": "there is no such view"}
        digits = query.get("offset", "0")
        offset = min(int(digits), 10_000_000) if digits.isascii() and digits.isdecimal() else 0
        return self.hub.source.rows(view, offset=offset, limit=PAGE_ROWS, search=query.get("search", "")[:200])

    def _stream(self) -> None:
        """Send each new frame until the browser disconnects or the console closes."""
        if not self.hub.connect():
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many browsers are connected to this console")
            return
        self.close_connection = True
        try:
            self.send_response(HTTPStatus.OK)
            self._headers("text/event-stream")
            self.end_headers()
            sent = 0
            while True:
                number, frame = self.hub.frame()
                # A comment, if there is no new frame, shows whether the browser is still there.
                self.wfile.write(b":\n\n" if number == sent else f"data: {frame}\n\n".encode())
                self.wfile.flush()
                sent = number
                if self.hub.closed.wait(_SECONDS):
                    self.wfile.write(b"event: ended\ndata: {}\n\n")
                    return
        finally:
            self.hub.disconnect()

    def _send(self, text: str, kind: str, status: HTTPStatus = HTTPStatus.OK, nonce: str = "") -> None:
        data = text.encode()
        self.send_response(status)
        self._headers(kind, nonce)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True
        self._send(why + "\n", "text/plain; charset=utf-8", status)

    def _headers(self, kind: str, nonce: str = "") -> None:
        script = f"'nonce-{nonce}'" if nonce else "'none'"
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header(
            "Content-Security-Policy",
            f"default-src 'none'; connect-src 'self'; script-src {script}; style-src 'unsafe-inline'; "
            "img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        )
        if self.close_connection:
            self.send_header("Connection", "close")

    def log_message(self, format: str, *args: Any) -> None:
        """Don't log requests on the user's terminal."""


def _page(nonce: str) -> str:
    """The page with its style and script inside, so that it is one request. Only a script with the nonce runs."""
    assets = files("crown.console") / "assets"
    read = {name: (assets / name).read_text(encoding="utf-8") for name in ("console.html", "console.css", "console.js")}
    page = read["console.html"].replace("/*style*/", read["console.css"]).replace("{nonce}", nonce)
    return page.replace("/*script*/", read["console.js"])


def _json(data: object) -> str:
    return json.dumps(data, default=_plain, ensure_ascii=False, separators=(",", ":"))


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)
