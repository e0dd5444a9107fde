"""Debian's Chromium without a window, driven by the WebDriver protocol of its own driver: no package is needed."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DRIVER = shutil.which("chromedriver")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WHY_NOT = "needs Chromium: apt-get install chromium chromium-driver" if DRIVER is None or CHROMIUM is None else ""


class Browser:
    """One page. Scripts see it as the user does."""

    def __init__(self, session: str) -> None:
        self._session = session

    def open(self, url: str) -> None:
        _request("POST", f"{self._session}/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        return _request("POST", f"{self._session}/execute/sync", {"script": script, "args": list(arguments)})

    def text(self) -> str:
        return str(self.run("return document.body.innerText"))

    def wait_for(self, script: str, *, seconds: float = 60) -> Any:
        """Return what an expression gives as soon as it is true."""
        deadline = time.monotonic() + seconds
        while not (found := self.run(f"return ({script})")):
            assert time.monotonic() < deadline, f"{script} did not become true; the page:\n{self.text()}"
            time.sleep(0.1)
        return found

    def click(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).click()", selector)

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._devtools("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, scheme: str) -> None:
        """Prefer "light" or "dark"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._devtools("Emulation.setEmulatedMedia", {"features": features})

    def screenshot(self, path: Path) -> None:
        """Save the whole page, also what is below the window."""
        taken = self._devtools("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True})
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    def errors(self) -> list[str]:
        """Return what the page has complained about so far."""
        entries = _request("POST", f"{self._session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def overlaps(self) -> list[str]:
        """Return texts that are wider than the page, and pairs of texts in a picture that lie upon each other."""
        return list(self.run(_OVERLAPS))

    def _devtools(self, command: str, parameters: dict[str, Any]) -> Any:
        return _request("POST", f"{self._session}/goog/cdp/execute", {"cmd": command, "params": parameters})


@contextmanager
def browser() -> Iterator[Browser]:
    assert DRIVER is not None and CHROMIUM is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driver = subprocess.Popen([DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(f"http://127.0.0.1:{port}/status")
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server"]
        options = {"binary": CHROMIUM, "args": [*arguments, "--hide-scrollbars", "--lang=en-US"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        answer = _request("POST", f"http://127.0.0.1:{port}/session", {"capabilities": {"alwaysMatch": wanted}})
        session = f"http://127.0.0.1:{port}/session/{answer['sessionId']}"
        yield Browser(session)
        _request("DELETE", session)
    finally:
        driver.terminate()
        driver.wait()


def _wait_for(url: str) -> None:
    for _ in range(300):
        try:
            if _request("GET", url)["ready"]:
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the driver of Chromium does not start")


def _request(method: str, url: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=120) as answer:
        return json.load(answer)["value"]


_OVERLAPS = """
const found = [];
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width + 1) found.push("the page is wider than the window");
for (const svg of document.querySelectorAll("svg")) {
  const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim());
  const boxes = texts.map((text) => text.getBoundingClientRect());
  for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
    const wide = Math.min(boxes[i].right, boxes[j].right) - Math.max(boxes[i].left, boxes[j].left);
    const high = Math.min(boxes[i].bottom, boxes[j].bottom) - Math.max(boxes[i].top, boxes[j].top);
    if (wide > 2 && high > 5) found.push(texts[i].textContent + " / " + texts[j].textContent);
  }
}
for (const box of document.querySelectorAll(".kpi .value, .badge, h2, h1, .tabs button")) {
  const cut = box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).display !== "inline";
  if (cut) found.push("cut: " + box.textContent);
}
return found;
"""
