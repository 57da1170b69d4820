"""Lists on real servers: Debian's public-inbox serves a small list over HTTP, IMAP and NNTP on loopback."""

from __future__ import annotations

import gzip
import lzma
import os
import shutil
import socket
import socketserver
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from bot.archives.files import read_mbox
from bot.archives.known_reports import missing_parents
from bot.archives.prefilter import Passes, Prefilter
from bot.archives.public_inbox import read_epoch
from bot.archives.reader import read_source
from bot.archives.sources import _bodies, find_patch_mail, nntplib, open_sources, read_thread
from bot.demo import DIFF, DemoInbox
from bot.git.repository import Unreadable
from bot.mail.message import parse
from bot.mail.patches import PatchMail
from bot.mail.settings import BotSettings
from tests.bot.robot_reports.test_report import INVENTED
from tests.conftest import ROOT
from tests.support.needs import need
from tests.support.servers import free_port, self_signed
from tracker.models import Archive, Message

# --- Archive formats: each yields its mails completely, in order and once; broken ones give a one-line error ---

NUMBERED = [b"Message-ID: <%d@x>\nSubject: %d\n\nbody %d\n" % (n, n, n) for n in range(5)]
LINE = b"From mboxrd@z Thu Jan  1 00:00:00 1970\n"


def as_mbox(mails: list[bytes]) -> bytes:
    return b"".join(LINE + mail + b"\n" for mail in mails)


def raws(path: Path) -> list[bytes]:
    return [mail.raw for source in open_sources(str(path)) for mail in source.mails("", source.goal())]


def test_an_mbox_plain_and_packed(tmp_path: Path) -> None:
    (tmp_path / "a.mbox").write_bytes(as_mbox(NUMBERED))
    (tmp_path / "a.mbox.gz").write_bytes(gzip.compress(as_mbox(NUMBERED)))
    (tmp_path / "a.mbox.xz").write_bytes(lzma.compress(as_mbox(NUMBERED)))
    assert raws(tmp_path / "a.mbox") == raws(tmp_path / "a.mbox.gz") == raws(tmp_path / "a.mbox.xz") == NUMBERED


def test_separators_without_a_mail_between_them_are_passed_over(tmp_path: Path) -> None:
    """Three million of them fit into 350 kB, and took minutes."""
    (tmp_path / "a.mbox").write_bytes(
        b"From x Thu Jan  1 00:00:00 2026\n\n" * 1000 + b"From x Thu Jan  1 00:00:00 2026\nSubject: a\n\nhi\n"
    )
    assert [mail.raw for mail in read_mbox(tmp_path / "a.mbox")] == [b"Subject: a\n\nhi\n"]


def test_from_lines_in_a_body_are_given_back_as_sent(tmp_path: Path) -> None:
    body = b"Message-ID: <1@x>\n\n>From here\n>>From there\n\nFrom now on, nothing is split.\n"
    (tmp_path / "a.mbox").write_bytes(LINE + body + b"\n" + LINE + NUMBERED[0])
    assert raws(tmp_path / "a.mbox") == [body.replace(b">From", b"From"), NUMBERED[0]]


def test_a_single_mail(tmp_path: Path) -> None:
    (tmp_path / "one.eml").write_bytes(NUMBERED[0])
    assert raws(tmp_path / "one.eml") == [NUMBERED[0]]


def test_a_line_that_begins_with_from_in_a_body_with_crlf(tmp_path: Path) -> None:
    body = b"Message-ID: <1@x>\r\n\r\nhello\r\nFrom the numbers of the year 2019\r\nbye\r\n"
    (tmp_path / "a.mbox").write_bytes(b"From a@b Thu Jan  1 00:00:00 1970\r\n" + body)
    assert raws(tmp_path / "a.mbox") == [body]


def test_a_file_whose_name_is_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.mbox")
    (tmp_path / name).write_bytes(as_mbox(NUMBERED))
    (source,) = open_sources(str(tmp_path / name))
    assert source.name.endswith("\\xff.mbox")
    assert len(list(source.mails("", ""))) == 5


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert raws(tmp_path / "empty") == []


def test_a_maildir(tmp_path: Path) -> None:
    for folder in ("cur", "new", "tmp"):
        (tmp_path / folder).mkdir()
    (tmp_path / "cur" / "1:2,S").write_bytes(NUMBERED[0])
    (tmp_path / "new" / "2").write_bytes(NUMBERED[1])
    (tmp_path / "tmp" / "3").write_bytes(NUMBERED[2])
    (tmp_path / "new" / "4").symlink_to("/etc/passwd")
    assert raws(tmp_path) == NUMBERED[:2]


def test_a_public_inbox_is_read_from_where_it_stopped(tmp_path: Path) -> None:
    inbox = DemoInbox(tmp_path)
    for mail in NUMBERED[:3]:
        inbox.add(mail)
    first = list(read_epoch(inbox.epoch))
    assert [mail.raw for mail in first] == NUMBERED[:3]
    assert list(read_epoch(inbox.epoch, first[-1].position)) == []
    inbox.add(NUMBERED[3])
    assert [mail.raw for mail in read_epoch(inbox.epoch, first[-1].position)] == [NUMBERED[3]]
    assert raws(tmp_path) == raws(inbox.epoch) == NUMBERED[:4]


def test_a_rewritten_history_is_read_again(tmp_path: Path) -> None:
    inbox = DemoInbox(tmp_path)
    inbox.add(NUMBERED[0])
    (source,) = open_sources(str(inbox.epoch))
    assert [mail.raw for mail in source.mails(source.resume(f"7:{'0' * 40}"), source.goal())] == [NUMBERED[0]]


def test_a_commit_without_a_mail_is_passed_over(tmp_path: Path) -> None:
    inbox = DemoInbox(tmp_path)
    inbox.add(NUMBERED[0])
    inbox._commit(NUMBERED[0], "removed", "d")
    inbox.add(NUMBERED[1])
    assert raws(tmp_path) == NUMBERED[:2]


def test_the_same_mail_is_filed_once(tmp_path: Path) -> None:
    inbox = DemoInbox(tmp_path)
    assert (inbox.add(NUMBERED[0]), inbox.add(NUMBERED[0])) == (True, False)
    assert DemoInbox(tmp_path).add(NUMBERED[0]) is False


def test_a_broken_repository_names_itself_and_what_is_lost(tmp_path: Path) -> None:
    inbox = DemoInbox(tmp_path)
    for mail in NUMBERED:
        inbox.add(mail)
    blob = subprocess.check_output(["git", "-C", inbox.epoch, "rev-parse", "HEAD~2:m"], text=True).strip()
    (inbox.epoch / "objects" / blob[:2] / blob[2:]).chmod(0o644)
    (inbox.epoch / "objects" / blob[:2] / blob[2:]).write_bytes(b"junk")
    read: list[bytes] = []
    with pytest.raises(Unreadable, match="1 mail can't be read from git") as error:
        for mail in read_epoch(inbox.epoch):
            read.append(mail.raw)
    assert read == [*NUMBERED[:2], *NUMBERED[3:]]  # the others are read all the same
    assert str(inbox.epoch) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda directory: None, "not a mail archive"),
        (lambda directory: (directory / "git" / "0.git").mkdir(parents=True), "not a git repository"),
        (lambda directory: directory.rmdir(), "no such file"),
    ],
    ids=["an empty directory", "an empty epoch", "nothing"],
)
def test_what_is_no_archive_is_said_in_a_line(tmp_path: Path, make: object, expected: str) -> None:
    directory = tmp_path / "place"
    directory.mkdir()
    make(directory)  # type: ignore[operator]
    with pytest.raises(Unreadable, match=expected):
        open_sources(str(directory))


def test_a_gzip_that_is_cut_off_gives_what_it_holds(tmp_path: Path) -> None:
    packed = gzip.compress(as_mbox([bytes(300) + mail * 200 for mail in NUMBERED]), compresslevel=0)
    (tmp_path / "a.gz").write_bytes(packed[: len(packed) // 2])
    read: list[bytes] = []
    with pytest.raises(Unreadable, match="fetch the file again"):
        for mail in read_mbox(tmp_path / "a.gz"):
            read.append(mail.raw)
    assert len(read) >= 2


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_any_bytes_in_an_mbox_are_split_and_no_more(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    file = tmp_path_factory.mktemp("junk") / "a.mbox"
    file.write_bytes(as_mbox(parts))
    mails = list(read_mbox(file))
    # Junk may hold separators of its own, and never more than one a "From " in it. What is empty is passed over.
    assert (
        len([part for part in parts if part.strip(b"\r\n")])
        <= len(mails)
        <= len(parts) + b"".join(parts).count(b"From ")
    )


# --- the prefilter ---

BOT = BotSettings(
    address="perfbot@bot.example.org", robots=frozenset({"lkp@intel.com"}), base_url="https://perf.example.org"
)


@pytest.mark.parametrize(
    ("raw", "passes"),
    [
        (b"From: a@b\nMessage-ID: <x@y>\n\nhello", False),
        (b"From: a@b\nIn-Reply-To: <known@x>\n\nhello", True),
        (b"From: a@b\nReferences: <other@x>\n <known@x>\n\nhello", True),
        (b"From: a@b\r\nReferences: <known@x>\r\n\r\nhello", True),
        (b"From: a@b\nTo: PerfBot+7d3e91c0a45b28f6@bot.example.org\n\nhello", True),
        (b"From: a@b\nTo: perfbot+7d3e91c0a45b28f6@evil.example\n\nhello", False),
        (b"From: kernel test robot\n <LKP@intel.com>\n\nhello", False),
        (b"From: kernel test robot\n <LKP@intel.com>\n\nwe noticed a -1.0% regression of x.y on:", True),
        (b"From: robot <LKP@intel.com>\nContent-Transfer-Encoding: quoted-printable\n\nnoti=\nced a", True),
        (b"From: a@b\nCc: lkp@intel.com\n\nhello", False),
        (b"From: a@b\n\nCloses: https://lore.kernel.org/oe-lkp/known@x/", True),
        (b"From: a@b\n\nLink: https://lkml.kernel.org/r/known%40x.", True),
        (b"From: a@b\n\nLink: https://lore.kernel.org/r/with%2Fslash@x/T/#u", True),
        (b"From: a@b\n\nLink: https://lore.kernel.org/r/other@x", False),
        (b"From: a@b\n\nIn-Reply-To: <known@x>", False),
        (b"From: a@b\n\nsee https://perf.example.org/report/3b1f0c9d2e/", True),
        (b"Content-Transfer-Encoding: Quoted-Printable\n\nCloses: https://lore.kernel.org/oe-lkp/kno=\nwn@x", True),
        (b"Content-Transfer-Encoding: quoted-printable\n\nCloses: https://lore.kernel.org/oe-lkp/kno=\nne@x", False),
        (b"From: a@b\nContent-Transfer-Encoding: base64\n\nQ2xvc2VzOg==", False),
        (
            b"Content-Transfer-Encoding: base64\n\nQ2xvc2VzOiBodHRwczovL2xvcmUua2VybmVsLm9yZy9vZS1sa3Ava25vd25AeC8K",
            True,
        ),
        (b"", False),
    ],
)
def test_the_prefilter(raw: bytes, passes: bool) -> None:
    assert (Prefilter({b"known@x", b"with/slash@x"}, BOT).passes(raw) is not Passes.NOT) is passes


def test_the_prefilter_learns() -> None:
    prefilter = Prefilter(set(), BOT)
    prefilter.tracked.add(b"new@x")
    assert prefilter.passes(b"In-Reply-To: <new@x>\n\n") is Passes.TRACKED


# --- Lists on real servers: Debian's public-inbox serves a small list over HTTP, IMAP and NNTP on loopback ---


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


# --- Fetching a thread from a lore server, simulated by a web server on loopback ---

THREAD = (ROOT / "fixtures" / "mail" / "thread.mbox").read_bytes()
LORE_REPORT = "202603110412.3b1f0c9d-lkp@intel.com"


class Lore(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = LORE_REPORT.replace("@", "%40") in self.path or LORE_REPORT in self.path
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
    report, reply = read_thread(lore, f"<{LORE_REPORT}>")
    assert f"Message-ID: <{LORE_REPORT}>".encode() in report.raw
    assert b"Does this help?" in reply.raw


def test_an_unknown_thread_is_said_in_a_line(lore: str) -> None:
    with pytest.raises(Unreadable, match="nobody@nowhere") as error:
        list(read_thread(lore, "nobody@nowhere"))
    assert "\n" not in str(error.value)


def test_no_server_is_said_in_a_line() -> None:
    with pytest.raises(Unreadable, match=r"127\.0\.0\.1:9"):
        list(read_thread("http://127.0.0.1:9/all", LORE_REPORT))


@pytest.mark.django_db
def test_the_command_reads_it(lore: str, settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    settings.PERFWORK_LORE = lore
    settings.PERFWORK_ROBOTS = ["lkp@intel.com"]
    call_command("read", "--thread", LORE_REPORT)
    assert "2 mails; new: 1 report, 1 reply" in capsys.readouterr().out
    with pytest.raises(CommandError, match="1 of 1"):
        call_command("read", "--thread", "nobody@nowhere")


# --- Servers that are not who they say, and articles that no client reads ---


@contextmanager
def scripted(answer: Callable[[bytes], bytes], greeting: bytes, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server on loopback that answers each line; yield its port."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                taken = tls.wrap_socket(self.request, server_side=True) if tls else self.request
                taken.sendall(greeting)
                for line in taken.makefile("rb"):
                    taken.sendall(answer(line))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.parametrize(("scheme", "greeting"), [("imaps", b"* OK hello\r\n"), ("nntps", b"200 hello\r\n")])
def test_a_server_whose_name_is_not_proven_gets_no_password(tmp_path: Path, scheme: str, greeting: bytes) -> None:
    _, tls = self_signed(tmp_path)
    said: list[bytes] = []

    def answer(line: bytes) -> bytes:
        said.append(line)
        return b"101 list:\r\n.\r\n" if scheme == "nntps" else line.split()[0] + b" OK\r\n"

    with scripted(answer, greeting, tls) as port:
        (source,) = open_sources(f"{scheme}://bot:s3cret@127.0.0.1:{port}/list")
        with pytest.raises(Unreadable, match="CERTIFICATE_VERIFY_FAILED"):
            source.goal()
    assert said == []


@pytest.mark.parametrize("cursor", ["", "1"])
def test_an_article_with_a_line_that_is_too_long_is_skipped(cursor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nntplib, "_MAXLINE", 1000)
    bodies = {1: b"first", 2: b"x" * 1500, 3: b"third"}

    def answer(line: bytes) -> bytes:
        verb, *rest = line.split()
        if verb.upper() == b"ARTICLE":
            number = int(rest[0])
            return b"220 %d <%d@x>\r\nSubject: a\r\n\r\n%s\r\n.\r\n" % (number, number, bodies[number])
        by_verb = {b"CAPABILITIES": b"101 list:\r\nVERSION 2\r\nREADER\r\n.\r\n", b"GROUP": b"211 3 1 3 list\r\n"}
        return by_verb.get(verb.upper(), b"205 bye\r\n")

    with scripted(answer, b"200 hello\r\n") as port:
        (source,) = open_sources(f"nntp://127.0.0.1:{port}/list")
        read = [mail.position for mail in source.mails(cursor, "3")]
    assert read == [number for number in ("1", "3") if number > cursor]
