"""Drives a headless Chromium through its DevTools pipe: one page, its console, its document."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find_browser():
    """The program's path, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for path in map(shutil.which, names) if path), None)


class Browser:
    """A context manager. What the console complained of since the last load is in `complaints`."""

    def __init__(self, program, width=1440, height=900, seconds=60):
        self.seconds, self.complaints, self.requests = seconds, [], []
        self._number, self._buffer = 0, b""
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()

        def place_pipes():  # Chromium reads 3 and writes 4
            taken = os.dup(to_read), os.dup(to_write)
            os.dup2(taken[0], 3)
            os.dup2(taken[1], 4)

        self._process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--no-first-run",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--disable-extensions",
                "--disable-background-networking",
                f"--user-data-dir={self._profile.name}",
                f"--window-size={width},{height}",
            ],
            preexec_fn=place_pipes,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")
        self._session = self.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._profile.cleanup()

    def _receive(self, deadline):
        while b"\0" not in self._buffer:
            if not select.select([self._from], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser did not answer in time")
            piece = os.read(self._from, 1 << 20)
            if not piece:
                raise RuntimeError("the browser ended")
            self._buffer += piece
        message, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(message)
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.complaints.append(str([arg.get("value") for arg in parameters["args"]]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append("a dialog: " + parameters["message"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        return message

    def call(self, method, **parameters):
        self._number += 1
        request = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            request["sessionId"] = self._session
        os.write(self._to, json.dumps(request).encode() + b"\0")
        deadline = time.monotonic() + self.seconds
        while True:
            message = self._receive(deadline)
            if message.get("id") != self._number:
                continue
            if "error" in message:
                raise RuntimeError(f"{method}: {message['error']['message']}")
            return message["result"]

    def evaluate(self, expression):
        """The JSON value of a JavaScript expression; promises are waited for."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def settle(self):
        """Waits until the page has drawn what it was told to."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)))")

    def load(self, path, address=""):
        """Loads a file afresh and waits until it is drawn; milliseconds from its start to then."""
        self.call("Page.navigate", url="about:blank")
        self.complaints, self.requests = [], []
        self.call("Page.navigate", url=f"file://{path}{address}")
        deadline = time.monotonic() + self.seconds
        while not self.evaluate("document.documentElement?.dataset.ready"):
            if self.complaints or time.monotonic() > deadline:
                raise RuntimeError(f"{path} did not come up: {self.complaints}")
            time.sleep(0.02)
        self.settle()
        return float(self.evaluate("document.documentElement?.dataset.ready"))

    def go(self, address):
        """Follows an address within the page, such as "#view=layers"."""
        self.evaluate(f"location.hash = {json.dumps(address)}")
        self.settle()

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                windowsVirtualKeyCode={
                    "Enter": 13,
                    "Escape": 27,
                    "ArrowUp": 38,
                    "ArrowDown": 40,
                    "ArrowLeft": 37,
                    "ArrowRight": 39,
                    "End": 35,
                    "Home": 36,
                }.get(key, 0),
            )
        self.settle()

    def dark(self, on=True):
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}],
        )

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
