"""The two stages of reading: the prefilter loses nothing relevant, and the order of reading has no influence."""

from __future__ import annotations

import base64
import quopri
import random
import subprocess
import time
from datetime import datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from bot.archives import batch
from bot.archives import known_reports as archives_known_reports
from bot.archives.batch import ReadTally
from bot.archives.files import RawMail, read_mbox
from bot.archives.filing import MailFiler
from bot.archives.prefilter import KeySet, Passes, Prefilter, decode_body, key_of_commit, key_of_message, key_of_title
from bot.archives.public_inbox import read_epoch
from bot.mail.message import parse
from bot.mail.settings import BotSettings
from bot.replies.reading import read
from bot.replies.which_report import KnownReport, KnownReports
from bot.robot_reports.report import find_report
from tests.bot.replies.test_person_report import OFFERS
from tests.bot.replies.test_person_report import mail as person_mail
from tests.bot.robot_reports.test_report import INVENTED
from tracker.domain.events import Verdict
from tracker.models import Event, Message, PendingReference, Report, Suggestion
from tracker.services import catalog

# --- The prefilter compared with full reading: every mail that is related to a report passes it ---

ROBOT_READER = BotSettings(
    address="perfbot@bot.example.org",
    base_url="https://perf.example.org",
    robots=frozenset({"lkp@intel.com"}),
    trust_policy="open",
)
ID = "202603110412.3b1f0c9d-lkp@intel.com"
SHA = "3b1f0c9d2e440000000000000000000000000000"
TITLE = "mm/vmscan: walk cold folios first"
TAG = "7d3e91c0a45b28f6"
KNOWN = KnownReport(TAG, SHA, TITLE, (ID,))
DIFF = "---\n--- a/mm/x.c\n+++ b/mm/x.c\n@@ -1,2 +1,2 @@\n-a\n+b\n"


def known_reports() -> KnownReports:
    found = KnownReports()
    found.add(KNOWN)
    return found


def prefilter() -> Prefilter:
    return Prefilter([key_of_message(ID), key_of_commit(SHA), key_of_title(TITLE)], ROBOT_READER)


def is_lost(raw: bytes) -> bool:
    """Whether stage one lets a mail fall that the reader would have filed."""
    mail = parse(raw)
    related = bool(known_reports().relations(read(mail, ROBOT_READER)))
    reported = mail.author.email in ROBOT_READER.robots and find_report(mail) is not None
    return (related or reported) and prefilter().passes(raw) is Passes.NOT


HEADS = [
    "",
    f"In-Reply-To: <{ID}>",
    f"in-reply-to:\n <{ID}>",
    f"REFERENCES: <a@b>\n\t<{ID}>",
    f"References: {ID}",
    f"Cc: perfbot+{TAG}@bot.example.org",
    f"Delivered-To: PerfBot+{TAG}@bot.example.org",
    f"Subject: =?utf-8?q?=5BPATCH=5D_Revert_=22{TITLE.replace(' ', '_')}=22?=",
    f'Subject: [PATCHv2 1/2] Revert "{TITLE}"',
    f"Subject: Re: [linus:master] [mm/vmscan]  {SHA[:10]}:  vm-scan.ops_per_sec -12.4% regression",
    f"Subject: AW: [LKP] {SHA[:10]}: 12% regression",
    "Subject: Re: something about it",
    f'Subject: [patch V2] Revert\n "{TITLE}"',
]
BODIES = [
    "hello",
    f"https://lore.kernel.org/r/{ID}",
    f"see https://lore.kernel.org/oe-lkp/{ID}/#t now",
    f"(https://lore.kernel.org/all/{ID.replace('@', '%40')}/T/#u).",
    f"https://lore.kernel.org/r/%3C{ID.replace('@', '%40')}%3E",
    f"[a](https://lkml.kernel.org/r/{ID})[1]",
    f"Link: https://patch.msgid.link/{ID}",
    f"Closes: https://lore.kernel.org/oe-lkp/{ID}",
    f"看 https://lore.kernel.org/r/{ID}。",
    f"\ufeffhttps://lore.kernel.org/r/{ID}\u00a0and so on",
    f"https://perf.example.org/report/{SHA[:12]}/",
    f"Reported-by: Perfwork <perfbot+{TAG}@bot.example.org>",
    f'Fixes: {SHA[:12]} ("{TITLE}")\n{DIFF}',
    f"\u200bFixes: {SHA[:12]}\n{DIFF}",
    f'> commit: {SHA} ("{TITLE}")\nsure',
    f"> quoted \nFixes: commit {SHA[:12].upper()}\n{DIFF}",
    f'Fixes: deadbeef1234 ("{TITLE}")\n{DIFF}',
    f"This reverts\u00a0\u00a0commit {SHA[:12]}.\n{DIFF}",
    f"How about this?\n\nFrom: Dana <dana@dev.example>\nSubject: [PATCH] Revert {TITLE}\n\nx\n{DIFF}",
    f"Fixes: deadbeef1234 (“{TITLE}”)\n{DIFF}",
    f"Fixes: deadbeef1234 '{TITLE}'\n{DIFF}",
    f'Fixes: deadbeef1234 ("{TITLE.replace(" ", chr(10) + "  ", 1)}")\n{DIFF}',
    f"This reverts commit {SHA}.\n{DIFF}",
    f"This reverts commit\n{SHA[:12]}, which is slow.\n{DIFF}",
    f'Revert "{TITLE}"\n\n{DIFF}',
    f'From {"0" * 40} Mon Sep 17 00:00:00 2001\nFrom: D <d@x>\nSubject: [PATCH] Revert "{TITLE}"\n\n{DIFF}',
    f'From {"0" * 40} Mon Sep 17 00:00:00 2001\nFrom: D <d@x>\nSubject: [PATCH] Revert\n "{TITLE}"\n\n{DIFF}',
]


def encoded_mail(head: str, body: str, encoding: str, *, crlf: bool, noise: str) -> bytes:
    """A mail in one of the ways in which mail is written."""
    top = f"From: Dana Brook <dana@dev.example>\nMessage-ID: <m@dev.example>\n{noise}\n{head}".strip("\n") + "\n"
    if "subject" not in head.lower():
        top += "Subject: [PATCH] mm: mend it\n"
    if encoding == "quoted-printable":
        text = quopri.encodestring(body.encode()).decode()
    elif encoding == "base64":
        text = base64.encodebytes(body.encode()).decode()
    elif encoding == "utf-16":
        text = base64.encodebytes(body.encode("utf-16")).decode()
    elif encoding == "delsp":
        text = "".join(f"{body[start : start + 30]} \n" for start in range(0, len(body), 30)).removesuffix(" \n")
    else:
        text = body
    charset = "utf-16" if encoding == "utf-16" else "utf-8"
    flowed = "; format=flowed; delsp=yes" if encoding == "delsp" else ""
    transfer = {"quoted-printable": "Quoted-Printable", "base64": "base64", "utf-16": "BASE64"}.get(encoding, "8bit")
    part = f"Content-Type: text/plain; charset={charset}{flowed}\nContent-Transfer-Encoding: {transfer}\n\n{text}\n"
    if encoding == "multipart":
        part = f'Content-Type: multipart/mixed; boundary="b"\n\n--b\n{part}\n--b--\n'
    raw = (top + part).encode()
    return raw.replace(b"\n", b"\r\n") if crlf else raw


ENCODINGS = ["8bit", "quoted-printable", "base64", "utf-16", "delsp", "multipart"]


@given(
    st.sampled_from(HEADS),
    st.sampled_from(BODIES),
    st.sampled_from(ENCODINGS),
    st.booleans(),
    st.sampled_from(["X-A: base64 quoted-printable delsp", "X-A: text/html", "", "Received: by x\n\tfor <y@z>; now"]),
)
def test_nothing_that_the_reader_relates_is_lost(head: str, body: str, encoding: str, crlf: bool, noise: str) -> None:
    raw = encoded_mail(head, body, encoding, crlf=crlf, noise=noise)
    assert not is_lost(raw), raw.decode("utf-8", "replace")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("body", BODIES[1:])
def test_each_way_to_name_a_report_in_each_encoding(body: str, encoding: str) -> None:
    raw = encoded_mail("", body, encoding, crlf=False, noise="")
    assert not is_lost(raw), raw.decode("utf-8", "replace")


@pytest.mark.parametrize("crlf", [False, True])
@pytest.mark.parametrize("head", HEADS[1:])
def test_each_head_with_each_body(head: str, crlf: bool) -> None:
    for body in ("hello", DIFF, "the word base64, and delsp"):
        raw = encoded_mail(head, body, "8bit", crlf=crlf, noise="")
        assert not is_lost(raw), raw.decode("utf-8", "replace")


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64", "utf-16", "utf-32"])
def test_a_robots_report_in_any_encoding(encoding: str) -> None:
    head, _, body = INVENTED.partition("\n\n")
    mail = EmailMessage()
    for line in head.split("\n"):
        name, _, value = line.partition(": ")
        if name != "Content-Type":
            mail[name] = value
    charset = encoding if encoding.startswith("utf") else "utf-8"
    cte = "base64" if encoding.startswith("utf") else encoding
    text = base64.encodebytes(body.encode(charset)) if cte == "base64" else quopri.encodestring(body.encode())
    mail.set_payload(text.decode())
    mail["Content-Type"] = f"text/plain; charset={charset}"
    mail["Content-Transfer-Encoding"] = cte
    raw = mail.as_bytes()
    assert find_report(parse(raw))
    assert not is_lost(raw)


def test_html_only() -> None:
    patch = f"<html><body><div>Fixes: {SHA[:12]}</div><pre>{DIFF}</pre></body></html>"
    link = f'<a href="https://lore.kernel.org/r/{ID.replace("@", "&#64;")}">the report</a>'
    for body in (patch, link):
        raw = f"From: a@b\nMessage-ID: <h@x>\nContent-Type: text/html\n\n{body}\n".encode()
        assert not is_lost(raw)


@pytest.mark.parametrize("own", ["m2@dev.example", "<m2\n @dev.example>", "<m2@\tdev.example>"])
def test_the_answer_to_a_mail_that_just_passed(own: str) -> None:
    stage_one = prefilter()
    first = f"From: a@b\nMessage-ID: {own}\nIn-Reply-To: <{ID}>\nSubject: x\n\nhi\n".encode()
    second = b"From: c@d\nMessage-ID: <m3@dev.example>\nIn-Reply-To: <m2@dev.example>\nSubject: x\n\nhi\n"
    assert stage_one.passes(first) is Passes.TRACKED
    assert stage_one.passes(second) is Passes.TRACKED


@pytest.mark.parametrize(
    "patch",
    [
        f"Subject: [PATCH] x\n\nThis reverts {SHA[:12]}.\n",
        f"Subject: [PATCH] x\n\nThis reverts commits deadbeef1234 and {SHA[:12]}.\n",
        'Subject: [PATCH] x\n\nThis reverts commit deadbeef1234 ("mm: scan").\n',
        "Subject: [PATCH] x\n\nFixes: deadbeef1234 (mm: scan)\n",
        f"Subject: [PATCH] x\n\nFixes: https://git.kernel.org/torvalds/c/{SHA[:12]}\n",
        "Subject: [PATCH] Revert “mm: scan”\n\nhi\n",
        "Subject: [PATCH] revert 'mm: scan'\n\nhi\n",
        "Subject: [PATCH] x\n\nRevert 「mm: scan」\n",
        'Subject: [PATCH] mm: Revert "mm: scan"\n\nhi\n',
        "Subject: [PATCH] Revert: mm: scan\n\nhi\n",
        "Subject: [PATCH v2] Revert mm: scan\n\nhi\n",
        f"Subject: [PATCH] mm: revert {SHA[:12]}\n\nhi\n",
        f"Subject: [PATCH] x\n\nThis reverts parts of the commit {SHA[:12]}.\n",
        f'Subject: [PATCH] x\n\nReverts commits deadbeef1234 ("a") and\n{SHA[:12]} ("b").\n',
        "Subject: [PATCH] x\n\nFixes: deadbeef1234 [mm: scan]\n",
        "Subject: [PATCH] x\n\nFixes: deadbeef1234 mm: scan\n",
        'Subject: [PATCH] x\n\nFixes: ("mm: scan")\n',
        "Subject: [PATCH] x\n\nFixes: mm: scan\n",
        'Subject: [PATCH] x\n\nThis reverts "mm: scan".\n',
        f"Subject: [PATCH] x\n\nThis undoes commit {SHA[:12]}.\n",
        f"Subject: [PATCH] x\n\nBack out {SHA[:12]} until it is faster.\n",
        'Subject: [PATCH] Back out "mm: scan"\n\nhi\n',
        'Subject: [PATCH] Partially revert "mm: scan"\n\nhi\n',
        f"Subject: [PATCH] x\n\nCommit {SHA[:12]} is slow. Revert it.\n",
        f"Subject: [PATCH] x\n\nThis reverts Lee’s commit {SHA[:12]}.\n",
        f"Subject: [PATCH] x\n\nThis reverts Müller's commit {SHA[:12]}.\n",
        f'Subject: [PATCH] x\n\nFixes: deadbeef1234 ("a"), {SHA[:12]} ("b")\n',
        'Subject: [PATCH] x\n\nFixes: deadbeef1234: ("mm: scan")\n',
        f"Subject: [PATCH] x\n\nThis reverts\u00a0commit\u00a0{SHA[:12]}.\n",
        f"Subject: [PATCH] x\n\nThis reverts commits {', '.join(['deadbeef12' * 4] * 14)} and {SHA}.\n",
    ],
)
def test_a_patch_that_says_in_its_own_way_what_it_fixes_or_reverts(patch: str) -> None:
    stage_one = Prefilter([key_of_commit(SHA), key_of_title("mm: scan")], ROBOT_READER)
    assert stage_one.passes(f"Message-ID: <1@x>\n{patch}".encode()) is Passes.NAMED


def test_a_revert_in_an_old_charset() -> None:
    stage_one = Prefilter([key_of_title("mm: scan")], ROBOT_READER)
    raw = "Message-ID: <1@x>\nSubject: [PATCH] x\n\nRevert “mm: scan”\n".encode("cp1252")
    assert stage_one.passes(raw) is Passes.NAMED


@pytest.mark.parametrize(
    "form", ["<MID:{}>", "<Mailto:{}>", "https://marc.info/?l=x&i={}", "https://lore.kernel.org/all/{}/T/#u", "<{}>"]
)
def test_an_answer_names_its_mail_in_many_ways(form: str) -> None:
    raw = f"Message-ID: <1@x>\nIn-Reply-To: {form.format(ID)}\nSubject: hi\n\nhi\n"
    assert prefilter().passes(raw.encode()) is Passes.TRACKED


@pytest.mark.parametrize("prefix", ["Rép", "Réf", "Ré", "R", "رد", "Trả lời", "[EXT] Re", "***SPAM*** Re"])
def test_an_answer_with_a_prefix_of_another_language_is_one(prefix: str) -> None:
    raw = f"Message-ID: <1@x>\nSubject: {prefix}: hi\n\n> commit: {SHA}\n\nIt is the lock.\n"
    assert prefilter().passes(raw.encode()) is Passes.NAMED


def test_hostile_headers_and_titles_cost_little() -> None:
    titles = "".join(f'Subject: =?utf-8?q?Revert_"?= x{chr(34) * 3900}x\n' for _ in range(50))
    fields = "".join(f"References: {'a' * 63_900} mid:\n" for _ in range(32))
    reverts = f"reverts commit {SHA[:12]}\n" * 40_000
    bodies = (f"Subject: x\n\n{titles}", f"{fields}Subject: x\n\nhi\n", f"Subject: x\n\n{reverts}")
    for raw in (f"Message-ID: <1@x>\n{body}" for body in bodies):
        started = time.process_time()
        prefilter().passes(raw.encode())
        assert time.process_time() - started < 1


def test_a_revert_of_a_revert() -> None:
    title = 'Revert "mm: scan"'
    stage_one = Prefilter([key_of_title(title)], ROBOT_READER)
    raw = f'Message-ID: <1@x>\nSubject: [PATCH] Revert "{title}"\n\nhi\n'.encode()
    assert stage_one.passes(raw) is Passes.NAMED


# --- The two stages of reading: the prefilter loses nothing relevant, and the order of reading has no influence ---

BOT = BotSettings(address="perfbot@bot.example.org", robots=frozenset({"lkp@intel.com"}), trust_policy="open")


def stored() -> dict[str, Any]:
    """All that reading mail leaves, by names and not by numbers."""
    return {
        "reports": sorted(Report.objects.values_list("culprit__sha", "state", "status", "decided_by", "awaited")),
        "messages": sorted(Message.objects.values_list("message_id", "report__culprit__sha", "kind", "role")),
        "events": sorted(Event.objects.values_list("report__culprit__sha", "key", "kind", "role", "quote")),
        "suggestions": sorted(Suggestion.objects.values_list("report__culprit__sha", "key", "quote")),
    }


def take_all(mails: list[RawMail], settings: BotSettings, now: datetime, size: int = 7) -> ReadTally:
    """Read mails as a worker would, in small batches, in one transaction."""
    prefilter = Prefilter(archives_known_reports.tracked_keys(), settings, archives_known_reports.awaited_keys())
    filer = MailFiler(settings, now)
    tally = ReadTally()
    for start in range(0, len(mails), size):
        passed = [batch.Passed(mail, prefilter.passes(mail.raw)) for mail in mails[start : start + size]]
        tally += batch.take([each for each in passed if each.why is not Passes.NOT], None, filer, prefilter)
    return tally


@pytest.mark.long
@pytest.mark.django_db
def test_any_order_of_reading_gives_the_same_states(shared: Path, lkp: BotSettings, now: datetime) -> None:
    mails = list(read_mbox(shared / "threads-dev.mbox"))
    seen: list[dict[str, Any]] = []
    for seed in range(6):
        order = list(mails)
        random.Random(seed).shuffle(order)
        if seed == 0:
            order = mails
        if seed == 1:
            order = mails[::-1]
        with transaction.atomic():
            take_all(order, lkp, now, size=1 if seed == 2 else 7)
            seen.append(stored())
            transaction.set_rollback(True)
    assert len(seen[0]["messages"]) == 82
    for other in seen[1:]:
        assert other == seen[0]


@pytest.mark.long
@pytest.mark.django_db
def test_stage_one_loses_nothing_that_parsing_everything_finds(
    shared: Path, tmp_path: Path, lkp: BotSettings, now: datetime
) -> None:
    """A real list: what the prefilter drops names nothing that is tracked once all of it is read."""
    subprocess.run(
        ["git", "clone", "-q", "--mirror", shared / "lore" / "linux-nfs.0.bundle", tmp_path / "0"], check=True
    )
    mails = list(read_epoch(tmp_path / "0"))
    take_all(mails, lkp, now, size=500)
    filer = MailFiler(lkp, now)
    prefilter = Prefilter(archives_known_reports.tracked_keys(), lkp)
    passed = [mail for mail in mails if prefilter.passes(mail.raw) is not Passes.NOT]
    relevant = []
    for start in range(0, len(mails), 500):
        readings = [read(parse(mail.raw), lkp) for mail in mails[start : start + 500]]
        filer.load_reports(readings)
        relevant += [
            mail.position
            for mail, reading in zip(mails[start : start + 500], readings, strict=True)
            if filer.concerns(reading)
        ]
    assert len(relevant) >= 15
    assert set(relevant) <= {mail.position for mail in passed}
    assert len(passed) < 200  # of 6,014


@pytest.mark.django_db
def test_no_query_for_mail_that_does_not_concern_us(now: datetime) -> None:
    prefilter = Prefilter([b"known@x"], BOT)
    mail = b"From: a@b\nTo: c@d\nMessage-ID: <x@y>\nSubject: lunch\nReferences: <o@p>\n\nat noon? https://lore.kernel.org/r/z@z\n"
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert [prefilter.passes(mail) for _ in range(100)] == [Passes.NOT] * 100
    assert len(queries) == 0


@pytest.mark.slow
@pytest.mark.django_db
def test_a_batch_costs_a_constant_number_of_queries_but_for_what_it_files(
    shared: Path, lkp: BotSettings, now: datetime
) -> None:
    mails = list(read_mbox(shared / "threads-dev.mbox"))
    take_all(mails, lkp, now)
    prefilter, filer = Prefilter(archives_known_reports.tracked_keys(), lkp), MailFiler(lkp, now)
    for chunk in (mails[:10], mails):
        with CaptureQueriesContext(connection) as queries:
            tally = batch.take(
                [batch.Passed(mail, prefilter.passes(mail.raw)) for mail in chunk], None, filer, prefilter
            )
        assert tally.known == len(chunk)
        savepoints = [each for each in queries if "SAVEPOINT" in each["sql"]]
        assert len(queries) - len(savepoints) <= 8


# --- the pure parts ---


@given(st.lists(st.binary(max_size=12), max_size=60), st.lists(st.binary(max_size=12), max_size=20))
def test_a_key_set_holds_what_a_set_holds(keys: list[bytes], others: list[bytes]) -> None:
    half = len(keys) // 2
    held = KeySet(keys[:half])
    for key in keys[half:]:
        held.add(key)
    for key in (*keys, *others):
        assert (key in held) is (key in set(keys))


def test_a_key_set_grows_past_its_first_size() -> None:
    held = KeySet(b"%d@x" % number for number in range(30_000))
    for number in range(30_000, 40_000):
        held.add(b"%d@x" % number)
    assert all(b"%d@x" % number in held for number in range(40_000))
    assert not any(b"%d@y" % number in held for number in range(40_000))


@pytest.mark.parametrize(
    ("subject", "tracked"),
    [
        ("[PATCH v2 1/3] mm: walk cold folios first", False),
        ('[PATCH]\n Revert "mm: walk cold\n folios first"', True),
        ("Re: [PATCH] mm: walk cold folios first", False),
        ('[PATCH] Revert "mm: walk cold folios first"', True),
        ("=?utf-8?q?Revert_=22mm=3A_walk_cold_folios_first=22?=", True),
        ("mm: walk cold folios last", False),
    ],
)
def test_titles_in_subjects(subject: str, tracked: bool) -> None:
    prefilter = Prefilter([key_of_title("mm: walk cold folios first")], BOT)
    assert (prefilter.passes(f"Message-ID: <1@x>\nSubject: {subject}\n\nhi".encode()) is Passes.NAMED) is tracked


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("\nFixes: 3b1f0c9d2e44 (\"mm: walk\")\n", Passes.NAMED),
        ("\nFixes: commit 3B1F0C9D2E44\n", Passes.NAMED),
        ("\nfixes:\n  3b1f0c9d2e44\n", Passes.NAMED),
        ("\nFixes: 3b1f0c0000 (\"mm: other\")\n", Passes.NOT),
        ("\n> Fixes: nothing\n", Passes.NOT),
        ("\nThis reverts commit 3b1f0c9d2e44.\n", Passes.NAMED),
        ("\nThis reverts the commit\n3B1F0C9D2E44 again\n", Passes.NAMED),
        ("\nThis reverts commit 3b1f0c0000.\n", Passes.NOT),
        ("\nFixes: deadbeef1234 (“mm: stop\n rescanning”)\n", Passes.NAMED),
        ("\nFixes: deadbeef1234 (\"mm: stop\")\n", Passes.NOT),
        ("\nRevert \"mm: stop rescanning\"\n", Passes.NAMED),
        ("\nRevert \"mm: stop rescanning pages\"\n", Passes.NOT),
        ("\n#lkp fix: something\n", Passes.MAYBE),
        ("\n#lkp report\n", Passes.PERSON),
        ("\n#regzbot ^introduced: v6.11..v6.12\n", Passes.PERSON),
        ("\nThis is a performance regression.\n", Passes.PERSON),
        ("\nsee #lkp\n", Passes.NOT),
        ("\nReported-by: a robot <lkp@intel.com>\n", Passes.NOT),
        ("\nReported-by: a robot <lkp@intel.com>\nCloses: https://lore.kernel.org/oe-kbuild-all/1@x/\n", Passes.NOT),
        ("\nReported-by: a robot <lkp@intel.com>\nCloses: https://lore.kernel.org/oe-lkp/1@x/\n", Passes.MAYBE),
        ("\n> kernel test robot noticed a -12.4% regression of x on:\n", Passes.MAYBE),
        ("\nwe noticed a problem\n", Passes.NOT),
        ("\nReported-by: Perfwork <perfbot+7d3e91c0a45b28f6@bot.example.org>\n", Passes.TRACKED),
        ("\nReported-by: Perfwork <perfbot+7d3e91c0a45b28f6@other.example>\n", Passes.NOT),
    ],
)  # fmt: skip
def test_signs_in_bodies(body: str, why: Passes) -> None:
    prefilter = Prefilter([key_of_commit("3b1f0c9d2e440000"), key_of_title("mm: stop rescanning")], BOT)
    assert prefilter.passes(b"Message-ID: <1@x>\nSubject: a\n\n" + body.encode()) is why


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("Subject: fio: regression in 6.12\n", Passes.PERSON),
        ("Subject: =?utf-8?q?slow_reads?=\n", Passes.PERSON),
        ("Subject: Re: slow reads\n", Passes.NOT),
        ("Subject: [PATCH] mm: fix slow reads\n", Passes.NOT),
        ("Subject: slow reads\nIn-Reply-To: <2@x>\n", Passes.NOT),
        ("Subject: a question\n", Passes.NOT),
    ],
)
def test_what_a_person_may_report_passes_and_so_do_answers_to_it(head: str, why: Passes) -> None:
    prefilter = Prefilter([], BOT)
    raw = f"Message-ID: <1@x>\n{head}\nHello.\n".encode()
    assert prefilter.passes(raw) is why
    assert prefilter.decide(prefilter.look(raw)) is why
    answer = b"Message-ID: <3@x>\nIn-Reply-To: <1@x>\nSubject: Re: a\n\nWhy?\n"
    assert (prefilter.passes(answer) is Passes.MAYBE) is (why is Passes.PERSON)


@pytest.mark.parametrize(("subject", "text", "offered"), OFFERS)
def test_what_would_be_offered_passes(subject: str, text: str, offered: bool) -> None:
    assert not offered or Prefilter([], BOT).passes(person_mail(subject, text)) is Passes.PERSON


@given(st.binary(max_size=600))
def test_stage_one_takes_any_bytes(raw: bytes) -> None:
    assert Prefilter([b"known@x"], BOT).passes(raw) in Passes


@given(st.binary(max_size=300), st.booleans(), st.booleans(), st.booleans())
def test_any_body_is_brought_into_the_clear(body: bytes, quoted: bool, base64: bool, delsp: bool) -> None:
    assert isinstance(decode_body(body, quoted=quoted, base64=base64, delsp=delsp), bytes)


@given(st.binary(max_size=200))
def test_the_message_ids_of_stage_one_are_those_of_the_parser(value: bytes) -> None:
    """Whatever stands in a References field, each id that the parser finds in it is found by stage one."""
    raw = b"Message-ID: <1@x>\nReferences: " + value.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n\nhi\n"
    for message_id in parse(raw).references:
        if message_id.isascii():
            assert Prefilter([message_id.encode()], BOT).passes(raw) is Passes.TRACKED


@pytest.mark.slow
@pytest.mark.django_db
def test_two_workers_that_file_report_and_reply_at_the_same_moment(
    shared: Path, lkp: BotSettings, now: datetime
) -> None:
    """Neither saw what the other filed: whoever ends last brings them together."""
    mails = list(read_mbox(shared / "threads-dev.mbox"))
    reports = [mail for mail in mails if find_report(parse(mail.raw))]
    blind = Prefilter([], lkp)
    take_all(reports, lkp, now)
    passed = [batch.Passed(mail, Passes.MAYBE) for mail in mails if mail not in reports]
    with_keys = [each for each in passed if blind.names(each.mail.raw)]
    batch.store_pending(with_keys, None, MailFiler(lkp, now), blind, ReadTally())
    assert (
        batch.claim_pending(MailFiler(lkp, now), Prefilter(archives_known_reports.tracked_keys(), lkp)).replies
        == len(with_keys)
        == 64
    )


@pytest.mark.parametrize(("root", "passes"), [("", Passes.NOT), ("In-Reply-To: <z@x>\n", Passes.MAYBE)])
def test_nothing_waits_for_a_mail_that_is_not_kept(lkp: BotSettings, root: str, passes: Passes) -> None:
    """Else the answers would be kept or not by where a reading was broken off."""
    head = "From: Kim <kim@dev.example>\nMessage-ID: <a@x>\nSubject: foo: -12.4% regression\n"
    prefilter = Prefilter((), lkp)
    head = head if root else head.replace("-12.4% regression", "+12.4% improvement")  # the other may be a person's
    assert prefilter.passes(f"{head}{root}\nIt is slow.\n".encode()) is Passes.MAYBE
    answer = b"From: Lee <lee@dev.example>\nMessage-ID: <b@x>\nIn-Reply-To: <a@x>\nSubject: Re: foo\n\nIs it?\n"
    assert prefilter.passes(answer) is passes


@pytest.mark.django_db
def test_a_fix_waits_for_the_report_of_a_lab(lkp: BotSettings, now: datetime) -> None:
    """A patch is read before a lab has bisected what it mends; the report comes by no mail."""
    patch = (
        "From: Dana <dana@dev.example>\nMessage-ID: <fix@dev.example>\nSubject: [PATCH] mm: mend the walk\n"
        "To: linux-mm@kvack.org\n\n"
        'Fixes: 3b1f0c9d2e44 ("mm: walk cold folios first")\nReported-by: robot <lkp@intel.com>\n'
        "Closes: https://lore.kernel.org/oe-lkp/1-lkp@intel.com\n"
        "---\n--- a/mm/vmscan.c\n+++ b/mm/vmscan.c\n@@ -1,2 +1,2 @@\n-a\n+b\n"
    )
    assert take_all([RawMail(patch.encode(), "1")], lkp, now).pending == 1
    culprit = catalog.commit_for("3b1f0c9d2e440000000000000000000000000000", title="mm: walk cold folios first")
    report = catalog.report_for(culprit, Verdict.REGRESSION)
    filer = MailFiler(lkp, now)
    prefilter = Prefilter(archives_known_reports.tracked_keys(), lkp)
    assert batch.claim_pending(filer, prefilter).replies == 1
    suggestion = Suggestion.objects.get(report=report)
    assert (suggestion.kind, suggestion.rule, suggestion.title) == (
        "fix_proposed",
        "patch_names_culprit",
        "mm: mend the walk",
    )
    assert batch.claim_pending(filer, prefilter).replies == 0


@pytest.mark.slow
@pytest.mark.django_db
def test_an_orphan_waits_for_its_report_and_is_kept_once(shared: Path, lkp: BotSettings, now: datetime) -> None:
    mails = list(read_mbox(shared / "threads-dev.mbox"))
    reports = [mail for mail in mails if find_report(parse(mail.raw))]
    replies = [mail for mail in mails if mail not in reports]
    tally = take_all(replies, lkp, now)
    assert (tally.reports, tally.replies) == (0, 0)
    assert tally.pending == len(replies)
    waiting = PendingReference.objects.count()
    take_all(replies, lkp, now)
    assert PendingReference.objects.count() == waiting
    assert take_all(reports, lkp, now).replies == len(replies) == 64
    assert not PendingReference.objects.filter(own=True).exists()


@pytest.mark.slow
@pytest.mark.django_db
def test_a_report_that_is_repeated_often_costs_no_more_each_time(
    lkp: BotSettings, now: datetime, django_assert_max_num_queries: Any
) -> None:
    """Anybody can send a mail in a robot's name, and as often as he likes."""
    texts = [INVENTED.replace("202603110412", f"{number:012}") for number in range(120)]
    mails = [RawMail(text.encode("latin-1"), str(number)) for number, text in enumerate(texts)]
    take_all(mails[:20], lkp, now, size=20)
    with django_assert_max_num_queries(3600):
        take_all(mails[20:], lkp, now, size=100)
    assert Report.objects.count() == 1


@pytest.mark.django_db
def test_names_past_all_measure_harm_their_own_mail_only(lkp: BotSettings, now: datetime) -> None:
    wide = "".join(chr(0x1F300 + number % 700) for number in range(880))
    report = INVENTED.encode("latin-1")
    answers = [
        f"From: Dana <dana@dev.example>\nMessage-ID: <{number}@x>\nIn-Reply-To: <{RID}>\n{extra}Subject: re\n\nhi\n"
        for number, extra in enumerate(["", f"References: <{wide}@x> <{RID}>\n", f"Message-ID: <{wide}@y>\n", ""])
    ]
    long_names = INVENTED.replace("lkp-icl-2sp2", "m" * 6000).replace("202603110412", "202603110413")
    mails = [report, *(each.encode() for each in answers), long_names.encode("latin-1")]
    tally = take_all([RawMail(raw, str(number)) for number, raw in enumerate(mails)], lkp, now, size=10)
    assert Message.objects.filter(message_id__in=["0@x", "3@x"]).count() == 2
    assert tally.reports == 2


RID = "202603110412.3b1f0c9d-lkp@intel.com"
