"""A headless Chromium driven over a pipe (DevTools protocol), without further dependencies.

Chromium reads commands from file descriptor 3 and writes answers and events to 4, JSON texts ended by a zero
byte: see "--remote-debugging-pipe" in content/public/common/content_switches.cc. Nothing listens on a port.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
ANSWER_LIMIT_S = 200.0
_FLAGS = (
    "--headless",
    "--no-sandbox",  # the tests may run as root in a container
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
)


def find_chromium() -> str | None:
    """Return the browser's program, None if there is none."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


@dataclass
class Tab:
    """One page. ``complaints`` and ``requests`` grow while anything is awaited."""

    browser: Browser
    session: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, address: str) -> None:
        """Load a page and wait until it has finished loading."""
        self.browser.loaded.discard(self.session)
        self.call("Page.navigate", url=address)
        self.browser.wait(lambda: self.session in self.browser.loaded)

    def show(self, *, width: int, scheme: str = "light", medium: str = "screen") -> None:
        """Look at the page at a width, in a colour scheme, on screen or on paper."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        self.call(
            "Emulation.setEmulatedMedia",
            media=medium,
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page. The page's own policy does not apply to it."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self, *, is_whole: bool = True) -> bytes:
        """Return a PNG of the page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=is_whole)
        return base64.b64decode(answer["data"])

    def print(self) -> bytes:
        """Return the page as PDF, as printing does it."""
        answer = self.call("Page.printToPDF", preferCSSPageSize=True)
        return base64.b64decode(answer["data"])

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command to this page."""
        return self.browser.call(method, self.session, **parameters)


class Browser:
    """The running program."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._buffer = b""
        self._last = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._tabs: dict[str, Tab] = {}
        self.loaded: set[str] = set()

    def new_tab(self) -> Tab:
        """Open a tab that reports complaints and requests from its first moment on."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = self._tabs[session] = Tab(self, session)
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            tab.call(f"{domain}.enable")
        return tab

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        self._last += 1
        number = self._last
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        self.wait(lambda: number in self._answers)
        answer = self._answers.pop(number)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result = answer["result"]
        assert isinstance(result, dict)
        return result

    def wait(self, is_done: Any) -> None:
        """Read messages until something has happened, or the limit has passed."""
        end = time.monotonic() + ANSWER_LIMIT_S
        while not is_done():
            left_s = end - time.monotonic()
            assert left_s > 0, f"chromium did not answer within {ANSWER_LIMIT_S:.0f} s"
            if select.select([self._from], [], [], left_s)[0]:
                chunk = os.read(self._from, 1 << 20)
                assert chunk, "chromium has ended"
                *messages, self._buffer = (self._buffer + chunk).split(b"\0")
                for message in messages:
                    self._take(json.loads(message))

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answers[message["id"]] = message
            return
        tab = self._tabs.get(message.get("sessionId", ""))
        if tab:
            self._note(tab, message["method"], message["params"])

    def _note(self, tab: Tab, method: str, event: dict[str, Any]) -> None:
        match method:
            case "Page.loadEventFired":
                self.loaded.add(tab.session)
            case "Network.requestWillBeSent":
                tab.requests.append(event["request"]["url"])
            case "Log.entryAdded":
                tab.complaints.append(event["entry"]["text"])
            case "Runtime.consoleAPICalled":
                tab.complaints.append(f"console.{event['type']}")
            case "Runtime.exceptionThrown":
                tab.complaints.append(event["exceptionDetails"]["text"])
            case "Audits.issueAdded":
                tab.complaints.append(event["issue"]["code"])


@contextmanager
def running_browser(program: str, directory: Path) -> Iterator[Browser]:
    """Start the browser with a profile of its own below ``directory``; it has ended when this ends."""
    command_in, command_out = os.pipe()
    answer_in, answer_out = os.pipe()
    # Both ends move away from 3 and 4 first, so that giving one its place cannot close the other.
    child_in, child_out = os.dup2(command_in, 103), os.dup2(answer_out, 104)
    log = directory / "chromium.log"
    pid = os.posix_spawn(
        program,
        [program, *_FLAGS, f"--user-data-dir={directory / 'profile'}", "about:blank"],
        {**os.environ, "HOME": str(directory)},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, child_in, 3),
            (os.POSIX_SPAWN_DUP2, child_out, 4),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )
    for descriptor in (command_in, answer_out, child_in, child_out):
        os.close(descriptor)
    browser = Browser(command_out, answer_in)
    try:
        yield browser
        browser.call("Browser.close")
    finally:
        os.close(command_out)  # the browser ends when its pipe does
        os.close(answer_in)
        os.waitpid(pid, 0)
