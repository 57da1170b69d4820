"""The prefilter compared with full reading: every mail that is related to a report passes it."""

from __future__ import annotations

import base64
import quopri
from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.archives.prefilter import Passes, Prefilter, key_of_commit, key_of_message, key_of_title
from bot.mail.message import parse
from bot.mail.settings import BotSettings
from bot.replies.reading import read
from bot.replies.which_report import KnownReport, KnownReports
from bot.robot_reports.report import find_report
from tests.bot.robot_reports.test_robot_reports import INVENTED

BOT = BotSettings(
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
    return Prefilter([key_of_message(ID), key_of_commit(SHA), key_of_title(TITLE)], BOT)


def is_lost(raw: bytes) -> bool:
    """Whether stage one lets a mail fall that the reader would have filed."""
    mail = parse(raw)
    related = bool(known_reports().relations(read(mail, BOT)))
    reported = mail.author.email in BOT.robots and find_report(mail) is not None
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


def test_a_revert_of_a_revert() -> None:
    title = 'Revert "mm: scan"'
    stage_one = Prefilter([key_of_title(title)], BOT)
    raw = f'Message-ID: <1@x>\nSubject: [PATCH] Revert "{title}"\n\nhi\n'.encode()
    assert stage_one.passes(raw) is Passes.NAMED
