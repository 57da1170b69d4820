"""How pages are served while others flood the site: `floods.py [SECONDS]` (default 20).

At once: 20 clients that never finish a request, 20 that guess passwords, and 4 that post 16 MiB of {}. Prints the time
of a triage page before and during it; 95 % of them are to come within a second. Two processes of the web server of
`up`, SQLite, the fixture v5.6.
"""

from __future__ import annotations

import http.client
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.budgets import figure

BODY = b"{}" * (8 << 20)
PAGE = "/v5.6/"


class Site:
    """The served site, and what was answered to whom."""

    def __init__(self, folder: Path) -> None:
        self.env = {**os.environ, "PERFWORK_VAR": str(folder), "LOG_LEVEL": "CRITICAL"}
        for arguments in (["migrate", "-v0"], ["loaddata", "v5_6", "-v0"], ["refold", "-v0"]):
            self.manage(*arguments)
        self.key = self.manage("apikey", "create", "lab", "--producer", "*").strip()
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        command = [sys.executable, "-m", "bot.web.server", f"127.0.0.1:{self.port}"]
        self.servers = [subprocess.Popen(command, cwd=ROOT, env=self.env) for _ in range(2)]
        self.answers: Counter[str] = Counter()
        self.over = threading.Event()
        while True:
            with suppress(OSError):
                self.get(PAGE)
                break
            time.sleep(0.2)

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(command, cwd=ROOT, env=self.env, check=True, capture_output=True, text=True).stdout

    def get(self, path: str) -> float:
        """Return the seconds that a page takes."""
        started = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", path)
        connection.getresponse().read()
        connection.close()
        return time.perf_counter() - started

    def dawdle(self) -> None:
        while not self.over.is_set():
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)) as client:
                client.sendall(b"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\na")
                self.over.wait(5)

    def guess(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/sign-in/password/")
        first = connection.getresponse()
        cookie = first.getheader("Set-Cookie", "").partition(";")[0]
        found = re.search(r'csrfmiddlewaretoken" value="(\w+)"', first.read().decode())
        while not self.over.is_set() and found:
            form = {"username": "kim", "password": "x", "csrfmiddlewaretoken": found[1]}
            headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
            with suppress(OSError, http.client.HTTPException):
                connection.request("POST", "/sign-in/password/", urllib.parse.urlencode(form), headers)
                response = connection.getresponse()
                response.read()
                self.answers[f"password {response.status}"] += 1

    def flood(self) -> None:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        while not self.over.is_set():
            with suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                connection.request("POST", "/api/v1/results", BODY, headers)
                self.answers[f"body {connection.getresponse().status}"] += 1
                connection.close()


def summary(name: str, found: list[float]) -> tuple[float, float]:
    found = sorted(found)
    middle, late = found[len(found) // 2], found[int(len(found) * 0.95)]
    print(f"{name:10}{len(found):6} pages   median {middle:6.3f} s   95 % {late:6.3f} s   longest {found[-1]:6.3f} s")
    return middle, late


def main() -> None:
    length = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder))
        before, _ = summary("before", [site.get(PAGE) for _ in range(50)])
        work: list[Callable[[], None]] = [*[site.dawdle] * 20, *[site.guess] * 20, *[site.flood] * 4]
        for each in work:
            threading.Thread(target=each, daemon=True).start()
        time.sleep(1)
        found, end = [], time.monotonic() + length
        while time.monotonic() < end:
            found.append(site.get(PAGE))
            time.sleep(0.05)
        _, late = summary("during", found)
        figure("a page during floods, 95 %", late, "s", 1.0, ratio=late / before, yardstick="the same page in peace")
        site.over.set()
        print(", ".join(f"{times} × {what}" for what, times in sorted(site.answers.items())))
        for server in site.servers:
            server.terminate()
            server.wait(60)


if __name__ == "__main__":
    main()
