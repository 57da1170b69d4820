"""Lists on real servers: Debian's public-inbox serves a small list over HTTP, IMAP and NNTP on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from bot.archives.known_reports import missing_parents
from bot.archives.reader import read_source
from bot.archives.servers import _bodies, read_thread
from bot.archives.sources import find_patch_mail, open_sources
from bot.demo import DIFF, DemoInbox
from bot.errors import Unreadable
from bot.mail.message import parse
from bot.mail.patches import PatchMail
from bot.mail.settings import BotSettings
from tests.bot.robot_reports.test_robot_reports import INVENTED
from tests.needs import need
from tracker.models import Archive, Message


@pytest.fixture
def _public_inbox() -> None:
    need("public-inbox")


LKP = BotSettings(address="perfbot@bot.example.org", robots=frozenset({"lkp@intel.com"}), trust_policy="open")
REPORT_ID = "202603110412.3b1f0c9d-lkp@intel.com"
DATE = "Date: Wed, 11 Mar 2026 10:15:00 +0000\n"


def reply(number: int, to: str, text: str) -> bytes:
    head = f"From: Dana Brook <dana@dev.example>\nTo: lkp@intel.com\nMessage-ID: <{number}@dev.example>\n{DATE}"
    return f"{head}In-Reply-To: <{to}>\nSubject: Re: a report\n\n{text}\n".encode()


REPORT = INVENTED.replace("Message-ID", f"{DATE}Message-ID", 1).encode("latin-1")
MAILS = [
    REPORT,
    reply(1, REPORT_ID, "It is the lock."),
    reply(2, "1@dev.example", f"A long line: {'x' * 5000}\n..\n.dots\nFrom here on."),
    f"From: Lee <lee@dev.example>\nMessage-ID: <lunch@dev.example>\n{DATE}Subject: lunch\n\nAt noon?\n".encode(),
]


@dataclass
class Served:
    """A list, its archive, and where it is served."""

    inbox: DemoInbox
    environment: dict[str, str]
    http: str
    imap: str
    nntp: str

    def add(self, raw: bytes) -> None:
        self.inbox.add(raw)
        index = ["public-inbox-index", "--no-fsync", str(self.inbox.path)]
        subprocess.run(index, env=self.environment, check=True, capture_output=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def served(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Served]:
    """The list with MAILS, and with those of the test's own: the web's search sees what was there when it began."""
    directory = tmp_path / "t"
    environment = {
        **os.environ,
        "PI_CONFIG": str(tmp_path / "config"),
        "HOME": str(tmp_path),
        "PERL_INLINE_DIRECTORY": "",
    }
    http, imap, nntp = (free_port() for _ in range(3))
    url = f"http://127.0.0.1:{http}/t"
    subprocess.run(
        ["public-inbox-init", "-V2", "-L", "medium", "--ng", "inbox.test.t", "t", directory, url, "t@lists.example"],
        env=environment,
        check=True,
        capture_output=True,
    )
    shutil.rmtree(directory / "git" / "0.git", ignore_errors=True)
    found = Served(DemoInbox(directory), environment, url, f"imap://127.0.0.1:{imap}/inbox.test.t.0", "")
    found.nntp = f"nntp://127.0.0.1:{nntp}/inbox.test.t"
    for mail in (*MAILS, *getattr(request, "param", ())):
        found.inbox.add(mail)
    found.add(reply(3, "1@dev.example", "And the last one."))
    listen = [f"{scheme}://127.0.0.1:{port}" for scheme, port in (("http", http), ("imap", imap), ("nntp", nntp))]
    command = ["public-inbox-netd", "-W0", *(part for each in listen for part in ("-l", each))]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        for port in (http, imap, nntp):
            _wait(port)
        yield found
    finally:
        server.terminate()
        server.wait(timeout=20)


def _wait(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("_public_inbox")
@pytest.mark.django_db
@pytest.mark.parametrize("scheme", ["imap", "nntp"])
def test_a_list_is_read_from_where_it_stopped(served: Served, scheme: str, now: datetime) -> None:
    url = getattr(served, scheme)
    (source,) = open_sources(url)
    raws = [each.raw for each in source.mails("", source.goal())]
    assert [parse(raw).message_id for raw in raws] == [parse(raw).message_id for raw in [*MAILS, reply(3, "", "")]]
    assert parse(raws[2]).text == parse(MAILS[2]).text  # long lines, and those that begin with dots
    tally = read_source(source, LKP, now)
    assert (tally.seen, tally.reports, tally.replies) == (5, 1, 3)
    assert read_source(source, LKP, now).seen == 0
    served.add(reply(9, REPORT_ID, "One more."))
    deadline = time.monotonic() + 20
    while not (again := read_source(source, LKP, now)).seen and time.monotonic() < deadline:
        time.sleep(0.5)
    assert (again.seen, again.replies) == (1, 1)
    assert Archive.objects.get().path == url


@pytest.mark.slow
@pytest.mark.usefixtures("_public_inbox")
@pytest.mark.parametrize("scheme", ["imap", "nntp"])
def test_a_list_that_is_not_there_is_said_in_a_line(served: Served, scheme: str) -> None:
    (source,) = open_sources(getattr(served, scheme).replace("inbox.test.t", "inbox.other"))
    with pytest.raises(Unreadable, match=r"inbox\.other") as error:
        source.goal()
    assert "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.usefixtures("_public_inbox")
@pytest.mark.django_db
def test_a_thread_and_the_missing_parents_of_ours(served: Served, now: datetime, settings: object) -> None:
    assert {parse(each.raw).message_id for each in read_thread(served.http, REPORT_ID)} >= {REPORT_ID, "1@dev.example"}
    settings.PERFWORK_LORE = served.http  # type: ignore[attr-defined]
    file = served.inbox.path.parent / "some.mbox"
    line = b"From mboxrd@z Thu Jan  1 00:00:00 1970\n"
    deeper = reply(3, "1@dev.example", "And the last one.").replace(
        b"Subject", f"References: <{REPORT_ID}> <1@dev.example>\nSubject".encode()
    )
    file.write_bytes(line + REPORT + b"\n" + line + deeper)
    (source,) = open_sources(str(file))
    read_source(source, LKP, now)
    from django.core.management import call_command

    call_command("read", "--missing")
    assert Message.objects.filter(message_id="1@dev.example").exists()
    assert missing_parents(now) == []


def posting(version: str, day: int, above: str = "") -> bytes:
    """A patch as it is posted."""
    head = f"From: Dana Brook <dana@dev.example>\nSubject: [PATCH {version}] mm: a\n"
    head += f"Message-ID: <{version[:2]}@dev.example>\n{DATE.replace('Wed, 11', str(day))}{above}"
    return f"{head}\nWhy.\n---\n{DIFF}".encode()


@pytest.mark.slow
@pytest.mark.usefixtures("_public_inbox")
@pytest.mark.parametrize(
    "served", [[posting("v1", 12), posting("v2 1/2", 13, "References: <cover@dev.example>\n")]], indirect=True
)
def test_a_patch_is_found_by_its_id(served: Served) -> None:
    """What `b4 dig` asks: the last version of a change under its title, with the letter above it."""
    completed = subprocess.run(["git", "patch-id", "--stable"], input=DIFF, capture_output=True, text=True, check=True)
    patch_id = completed.stdout.split()[0]
    assert find_patch_mail(served.http, patch_id, "mm: a") == PatchMail("v2@dev.example", ("cover@dev.example",))
    assert find_patch_mail(served.http, patch_id, "mm: b") is None
    assert find_patch_mail(served.http, "0" * 40, "mm: a") is None
    assert find_patch_mail(served.http, "not an id", "mm: a") is None


@pytest.mark.slow
@pytest.mark.usefixtures("_public_inbox")
def test_a_password_is_never_shown() -> None:
    (source,) = open_sources("imaps://dana:s3cret@127.0.0.1:9/INBOX")
    assert source.name == "imaps://127.0.0.1:9/INBOX"
    with pytest.raises(Unreadable) as error:
        source.goal()
    assert "s3cret" not in str(error.value)
    with pytest.raises(Unreadable, match="expected imap") as error:
        open_sources("ftp://dana:s3cret@127.0.0.1/x")
    assert "s3cret" not in str(error.value)


@pytest.mark.slow
@pytest.mark.usefixtures("_public_inbox")
@pytest.mark.parametrize(
    "address",
    ["imaps://joe:s3cr#et@host/INBOX", "imaps://joe:s3[cret@host/x", "imap4://joe:s3/cret@host/x", "nntp://host"],
)
def test_a_bad_address_is_one_line_without_its_password(address: str) -> None:
    with pytest.raises(Unreadable) as error:
        open_sources(address)
    assert "cr" not in str(error.value).replace("write", "")
    assert "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.usefixtures("_public_inbox")
def test_a_uid_may_stand_behind_the_mail() -> None:
    """RFC 3501 leaves the order of a FETCH response to the server."""
    response = [
        (b"1 (UID 7 BODY[] {3}", b"one"), b")", (b"2 (BODY[] {3}", b"two"), b" UID 8)", (b"3 (BODY[] {1}", b"x"), b")"
    ]  # fmt: skip
    assert _bodies(response) == {7: b"one", 8: b"two"}
