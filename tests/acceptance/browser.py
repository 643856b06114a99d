"""A real browser for tests: Chromium without a window, driven by its DevTools over a WebSocket."""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-port=0",
    "--host-resolver-rules=MAP * 127.0.0.1",
)  # fmt: skip
_KEYS = {"Tab": 9, "Enter": 13, "Space": 32}


class Page:
    """One page of a browser."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._number = socket, 0
        self.said: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the browser to do something; what it reports meanwhile is kept."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=60))
            if message.get("id") == self._number:
                assert "error" not in message, f"{method}: {message['error']}"
                return dict(message["result"])
            if message["method"] == "Log.entryAdded":
                self.said.append(message["params"]["entry"]["text"])
            elif message["method"] == "Page.javascriptDialogOpening":
                self.said.append(f"dialog: {message['params']['message']}")

    def js(self, expression: str) -> Any:
        """Give the value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until a condition holds in the page; the test's own limit of time ends an endless wait."""
        while True:
            found = self.call("Runtime.evaluate", expression=f"Boolean({condition})", returnByValue=True)
            if found["result"].get("value") is True:
                return
            time.sleep(0.02)

    def go(self, url: str) -> None:
        """Load a page and wait until it is there."""
        self.js("window.left = true")
        self.call("Page.navigate", url=url)
        self.loaded()

    def loaded(self) -> None:
        """Wait until another page than the one that was marked as left is there."""
        self.wait("!window.left && document.readyState === 'complete'")

    def click(self, selector: str) -> None:
        """Click something, which leads to another page."""
        self.js(f"window.left = true; document.querySelector({json.dumps(selector)}).click()")
        self.loaded()

    def press(self, key: str) -> None:
        """Press and let go of a key of the keyboard."""
        text = {"Enter": "\r", "Space": " "}.get(key, "")
        fields = {"key": " " if key == "Space" else key, "code": key, "windowsVirtualKeyCode": _KEYS[key]}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **fields)
        self.call("Input.dispatchKeyEvent", type="keyUp", **fields)

    def write(self, text: str) -> None:
        """Type a text where the focus is."""
        self.call("Input.insertText", text=text)

    def tab_to(self, condition: str, *, most: int = 80) -> None:
        """Press Tab until a condition on the focused element ``e`` holds."""
        for _ in range(most):
            self.press("Tab")
            if self.js(f"(e => Boolean({condition}))(document.activeElement)"):
                return
        raise AssertionError(f"the keyboard does not reach it: {condition}")

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        """Make the window so large, and its owner like dark or light."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )  # fmt: skip
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)

    def picture(self, path: Path) -> None:
        """Take a picture of what is seen."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browsing(program: str) -> Iterator[Page]:
    """Start a browser with a profile of its own, and end it."""
    with tempfile.TemporaryDirectory(prefix="browser-") as profile:
        process = subprocess.Popen(
            [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            told = Path(profile) / "DevToolsActivePort"
            while not (told.is_file() and told.read_text().count("\n")):
                assert process.poll() is None, "the browser did not start"
                time.sleep(0.05)
            port, path = told.read_text().split()
            with connect(f"ws://127.0.0.1:{port}{path}", proxy=None) as socket:
                targets = _ask(socket, 1, "Target.getTargets")["targetInfos"]
                target = next(item["targetId"] for item in targets if item["type"] == "page")
            with connect(f"ws://127.0.0.1:{port}/devtools/page/{target}", max_size=1 << 26, proxy=None) as socket:
                yield Page(socket)
        finally:
            process.kill()
            process.wait()


def _ask(socket: ClientConnection, number: int, method: str) -> Any:
    socket.send(json.dumps({"id": number, "method": method}))
    while (message := json.loads(socket.recv(timeout=60))).get("id") != number:
        pass
    return message["result"]
