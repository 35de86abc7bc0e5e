"""A headless Chromium, controlled through its debugging protocol, with just what the tests of the page need."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--autoplay-policy=no-user-gesture-required", "--remote-debugging-port=0",
)  # fmt: skip
_PATIENCE = 90.0


def find_chromium() -> str | None:
    """Return the path of a Chromium or Chrome; the variable HIGL_CHROMIUM takes precedence."""
    return os.environ.get("HIGL_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


def wait_for(condition, patience: float = _PATIENCE) -> Any:
    """Evaluate a condition until it is true, and return its value."""
    end = time.monotonic() + patience
    while not (answer := condition()):
        if time.monotonic() > end:
            raise TimeoutError("the condition did not become true in time")
        time.sleep(0.05)
    return answer


class Browser:
    """A Chromium process with a profile of its own."""

    def __init__(self, program: str, folder: Path):
        flags = [*_FLAGS, f"--user-data-dir={folder}"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen([program, *flags, "about:blank"], **quiet)
        said = folder / "DevToolsActivePort"
        wait_for(lambda: said.is_file() and "\n" in said.read_text())
        self._port = int(said.read_text().splitlines()[0])

    def open(self, address: str, **options: Any) -> Page:
        """Open a page in a new tab; the options are those of `Page`."""
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            tab = json.load(answer)
        return Page(tab["webSocketDebuggerUrl"], address, **options)

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()


class Page:
    """A tab that shows a page, with the errors of its console and its requests."""

    def __init__(self, socket: str, address: str, *, width: int = 1200, dark: bool = False, phone: bool = False):
        self._stack = ExitStack()
        self._socket = self._stack.enter_context(connect(socket, max_size=None, open_timeout=_PATIENCE))
        self._number = 0
        self.errors: list[str] = []
        self.requests: list[str] = []
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=phone)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.navigate", url=address)
        wait_for(lambda: self.run("document.readyState") == "complete" and self.run("location.href") != "about:blank")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=_PATIENCE))
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self._take_note(message)

    def _take_note(self, message: dict[str, Any]) -> None:
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(parameters["args"])[:500])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.errors.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}"[:500])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"][:200])

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page; a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']['exception'].get('description')}")
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key."""
        code = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Tab": 9, " ": 32, "Enter": 13}[key]
        text = {"Enter": "\r", " ": " "}.get(key)
        common = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def close(self) -> None:
        """Close the tab."""
        self.call("Page.close")
        self._stack.close()
