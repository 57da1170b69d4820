"""Debian's Firefox without a window, driven by Marionette, its own remote protocol.

Playwright drives only a Firefox that it has built itself. Marionette's messages are JSON with their length before them:
`12:[0,1,"…",{}]` a command, `[1,1,error,value]` its answer (Firefox source docs, testing/marionette/Protocol).
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Self

PROGRAM = "/usr/bin/firefox-esr"
STARTED_WITHIN = 60  # seconds


class Firefox:
    """A browser with an empty profile in `directory`, 1280 pixels wide."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "firefox"

    def __enter__(self) -> Self:
        self.directory.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        settings = {"marionette.port": port, "toolkit.telemetry.enabled": False, "app.update.enabled": False}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in settings.items()]
        (self.directory / "user.js").write_text("".join(lines))
        command = [
            PROGRAM,
            "--headless",
            "--no-remote",
            "--marionette",
            "-remote-allow-system-access",
            "--profile",
            str(self.directory),
        ]
        with (self.directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "--width", "1280", "--height", "900"], stdout=log, stderr=log, env=self._environment()
            )
        try:
            self._connection = self._connected(port)
            self._answers = self._connection.makefile("rb")
            self._number = 0
            self._read()  # who it is
            self._do("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {}}})
        except BaseException:
            self._process.kill()
            raise
        return self

    def _environment(self) -> dict[str, str]:
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.directory), "MOZ_HEADLESS": "1"}

    def _connected(self, port: int) -> socket.socket:
        deadline = time.monotonic() + STARTED_WITHIN
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=STARTED_WITHIN)
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((self.directory / "log").read_text()) from None
                time.sleep(0.1)

    def __exit__(self, *error: object) -> None:
        self._answers.close()
        self._connection.close()
        self._process.terminate()
        self._process.wait(20)

    def open(self, url: str) -> None:
        self._do("WebDriver:Navigate", {"url": url})

    def run(self, script: str) -> Any:
        """Run the body of a function in the page; return its value, or that of its promise."""
        return self._do("WebDriver:ExecuteScript", {"script": script, "args": []})["value"]

    def wait(self, script: str) -> Any:
        """Run a script until its value is true, for ten seconds; return it."""
        deadline = time.monotonic() + 10
        while not (value := self.run(script)) and time.monotonic() < deadline:
            time.sleep(0.1)
        return value

    def zoom(self, times: float) -> None:
        """Show pages larger: half as many CSS pixels at 2."""
        self._do("Marionette:SetContext", {"value": "chrome"})
        self.run(f"Services.prefs.setCharPref('layout.css.devPixelsPerPx', '{times}');")
        self._do("Marionette:SetContext", {"value": "content"})

    def _do(self, name: str, parameters: dict[str, Any]) -> Any:
        self._number += 1
        message = json.dumps([0, self._number, name, parameters])
        self._connection.sendall(f"{len(message.encode())}:{message}".encode())
        _, number, error, value = self._read()
        assert (number, error) == (self._number, None), f"{name}: {error}"
        return value

    def _read(self) -> Any:
        length = b""
        while (digit := self._answers.read(1)) != b":":
            assert digit, "Firefox has closed the connection"
            length += digit
        return json.loads(self._answers.read(int(length)))
