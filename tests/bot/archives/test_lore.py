"""Fetching a thread from a lore server, simulated by a web server on loopback."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from bot.archives.servers import read_thread
from bot.errors import Unreadable
from tests.conftest import ROOT

THREAD = (ROOT / "fixtures" / "mail" / "thread.mbox").read_bytes()
REPORT = "202603110412.3b1f0c9d-lkp@intel.com"


class Lore(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = REPORT.replace("@", "%40") in self.path or REPORT in self.path
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/gzip")
        self.end_headers()
        self.wfile.write(gzip.compress(THREAD) if known else b"")

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def lore() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Lore)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/all"
    server.shutdown()
    server.server_close()


def test_a_thread_comes_whole(lore: str) -> None:
    report, reply = read_thread(lore, f"<{REPORT}>")
    assert f"Message-ID: <{REPORT}>".encode() in report.raw
    assert b"Does this help?" in reply.raw


def test_an_unknown_thread_is_said_in_a_line(lore: str) -> None:
    with pytest.raises(Unreadable, match="nobody@nowhere") as error:
        list(read_thread(lore, "nobody@nowhere"))
    assert "\n" not in str(error.value)


def test_no_server_is_said_in_a_line() -> None:
    with pytest.raises(Unreadable, match=r"127\.0\.0\.1:9"):
        list(read_thread("http://127.0.0.1:9/all", REPORT))


@pytest.mark.django_db
def test_the_command_reads_it(lore: str, settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    settings.PERFWORK_LORE = lore
    settings.PERFWORK_ROBOTS = ["lkp@intel.com"]
    call_command("read", "--thread", REPORT)
    assert "2 mails; new: 1 report, 1 reply" in capsys.readouterr().out
    with pytest.raises(CommandError, match="1 of 1"):
        call_command("read", "--thread", "nobody@nowhere")
