"""Mail from unusual programs: each case is a mail, and what a careful person reads in it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.explain import explain
from bot.mail.body import as_text
from bot.mail.limits import OverLimit
from bot.mail.message import MAX_LINES, MAX_TEXT, ParsedMail, parse
from bot.mail.settings import BotSettings
from bot.replies.commands import find_commands
from bot.replies.effects import effects_of
from bot.replies.reading import Reading, read
from bot.replies.rules.notation import MailContext, Relation
from bot.replies.which_report import KnownReport, KnownReports
from tests.conftest import SHARED
from tracker.domain.events import EventKind, Role

# --- Mail from unusual programs: each case is a mail, and what a careful person reads in it ---

BOT = BotSettings(address="perfbot@bot.example.org", base_url="https://perf.example.org", trust_policy="open")
KNOWN = KnownReport("7d3e91c0a45b28f6", "7d3e91c0a45b28f6", "", ("202603110412.7d3e91c0-perfbot@bot.example.org",))
HEAD = """\
From: Dana Brook <dana@dev.example>
To: Perf Bot <perfbot+7d3e91c0a45b28f6@bot.example.org>
Message-ID: <odd@dev.example>
In-Reply-To: <202603110412.7d3e91c0-perfbot@bot.example.org>
"""
HTML = HEAD + "Content-Type: text/html; charset=utf-8\n\n"
PLAIN = HEAD + "\n"
QP = HEAD + "Content-Transfer-Encoding: quoted-printable;\n\n"
BASE64 = HEAD + "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n"
ON = "On Wed, 11 Mar 2026 10:15:00 +0100"
DIFF = "diff --git a/mm/vmscan.c b/mm/vmscan.c\n--- a/mm/vmscan.c\n+++ b/mm/vmscan.c\n@@ -1 +1 @@\n-a\n+b\n"
SHA = "0123456789abcdef0123456789abcdef01234567"


def explained(raw: str | bytes) -> dict[str, Any]:
    mail = raw if isinstance(raw, bytes) else raw.encode()
    (found,) = explain([mail], BOT, [KNOWN])
    return found


COMMANDS = {
    "a closed br": (HTML + "hi<br/>#lkp invalid<br/>bye", [("invalid", "")]),
    "Outlook's own tags": (HTML + "<p>#lkp fix: mm: x<o:p></o:p></p>", [("fix", "mm: x")]),
    "a sign in an attribute": (HTML + '<p title="a>b">#lkp invalid</p>', [("invalid", "")]),
    "overflow is not hidden": (HTML + '<div style="overflow:hidden">#lkp invalid</div>', [("invalid", "")]),
    "a class is not hidden": (
        HTML + '<div class="hidden-xs" aria-hidden="false">#lkp invalid</div>',
        [("invalid", "")],
    ),
    "a head without an end": (HTML + "<html><head><meta charset=x><body><p>#lkp invalid", [("invalid", "")]),
    "hidden for real": (HTML + '<b style="display:none">#lkp invalid</b>ok', []),
    "above a short attribution": (
        PLAIN + "#lkp note: Lee <lee@dev.example>\nLee wrote:\n> q\n",
        [("note", "Lee <lee@dev.example>")],
    ),
    "above a bare attribution": (PLAIN + "#lkp fix: a 2026 b\n\nLee Park wrote:\n> q\n", [("fix", "a 2026 b")]),
    "nobody sent it": ("To: perfbot+7d3e91c0a45b28f6@bot.example.org\n\n#lkp invalid\n", None),
    "a file of notes": (
        HEAD + 'Content-Type: multipart/mixed; boundary="b"\n\n--b\n\nhello there\n--b\n'
        'Content-Type: text/plain; name="notes.txt"\n\n#lkp invalid\n--b--\n',
        [],
    ),
    "a soft line end with blanks": (QP + "#lkp fix: mm: stop= \nrescanning\n", [("fix", "mm: stoprescanning")]),
    "text that calls itself base64": (BASE64 + "Thanks\n#lkp invalid\n", [("invalid", "")]),
    "a gateway's line above base64": (BASE64 + "[External] mail\nI2xrcCBpbnZhbGlkCg==\n", [("invalid", "")]),
    "after an original message": (PLAIN + "hi\n\n-------- Weitergeleitete Nachricht --------\n#lkp invalid\n", []),
    "below a Polish head": (PLAIN + "hi\n\nOd: Lee\nWysłano: dzisiaj\nDo: Dana\nTemat: x\n\n#lkp invalid\n", []),
    "no space": (PLAIN + "#lkp:invalid\n", [("invalid", "")]),
    "a full stop of the east": (PLAIN + "#lkp invalid。\n", [("invalid", "")]),
    "an argument as it was written": (PLAIN + "#lkp note 修复，谢谢\n", [("note", "修复，谢谢")]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str) -> None:
    raw, expected = COMMANDS[name]
    found = explained(raw)
    if expected is None:
        assert found["effect"]["mode"] == "none"
    elif "html_only" in found["problems"]:  # its lines are read, and none of them is obeyed
        assert [(each.word.value, each.argument) for each in find_commands(found["own_text"]).good] == expected
        assert found["commands"] == []
    else:
        assert [(each["name"], each["argument"]) for each in found["commands"]] == expected


TEXTS = {
    "two lines of attribution": (f"{ON}\nLee Park <lee@dev.example> wrote:\n\n> x\n\nThanks!\n", "Thanks!"),
    "a bare attribution": ("Lee Park wrote:\n> x\n\nIt is the lock.\n", "It is the lock."),
    "Quoting": (
        "Quoting Lee Park (2026-03-11 10:15:00)\n> x\n\nYes.\n",
        "Quoting Lee Park (2026-03-11 10:15:00)\n\nYes.",
    ),
    "French, broken": ("Le mer. 11 mars 2026 à 10:15, Lee <lee@dev.example> a\nécrit :\n> x\n\nOui.\n", "Oui."),
    "a cut before the quote": (f"{ON}, Lee Park wrote:\n[...]\n> x\n\nYes.\n", "[...]\n\nYes."),
    "prose with a time": (
        "The log says on 2026-03-11 at 10:15:\n> oops\n\nSee?\n",
        "The log says on 2026-03-11 at 10:15:\n\nSee?",
    ),
    "a marked original that is quoted": (
        '----- Original Message -----\n> From: "Lee" <l@x>\n> does it reproduce?\n\nYes, on two machines.\n',
        "Yes, on two machines.",
    ),
    "an armour": (
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nIt is the lock.\n- -- \nDana\n"
        "-----BEGIN PGP SIGNATURE-----\n\nxyz\n-----END PGP SIGNATURE-----\n",
        "It is the lock.",
    ),
    "a phone": ("Thanks!\n\nSent from my iPhone\n", "Thanks!"),
    "a company": ("Yes.\n\nThis email and its attachments are confidential and for the addressee.\n", "Yes."),
    "a table": ("| base | patched |\n| 10   | 12      |\n", "| base | patched |\n| 10   | 12      |"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_own_text(name: str) -> None:
    text, expected = TEXTS[name]
    if name == "Quoting":
        assert explained(PLAIN + text)["own_text"].endswith("Yes.")
    else:
        assert "\n".join(filter(None, explained(PLAIN + text)["own_text"].split("\n"))) == "\n".join(
            filter(None, expected.replace("[...]\n", "").split("\n"))
        )


KINDS = {
    "Postfix": (
        "From: MAILER-DAEMON@mx.example\nAuto-Submitted: auto-replied\n"
        'Content-Type: multipart/report; boundary="b"\n\n--b--\n',
        "bounce",
    ),
    "a daemon without a domain": ("From: MAILER-DAEMON\n\nUndelivered.\n", "bounce"),
    "nobody": ("From: <>\n\nUndelivered.\n", "bounce"),
    "Exchange": (f"From: Microsoft Outlook <MicrosoftExchange{SHA[:32]}@corp.example>\n\nx\n", "bounce"),
    "qmail": ("From: postbox@mx.example\n\nHi. This is the qmail-send program at mx.example.\n", "bounce"),
    "a header of old": (PLAIN.replace("\n\n", "\nX-Autogenerated: Reply\n\n") + "#lkp invalid\n", "auto_reply"),
    "out of office until": (
        PLAIN.replace("\n\n", "\nSubject: Out of the office until Monday Re: x\n\n") + "x\n",
        "auto_reply",
    ),
    "자동 회신": (PLAIN.replace("\n\n", "\nSubject: 자동 회신: x\n\n") + "x\n", "auto_reply"),
    "no, with a comment": (
        PLAIN.replace("\n\n", "\nAuto-Submitted: No (sent by hand)\n\n") + "It is the lock.\n",
        "person",
    ),
    "lkft": ("From: Linux Kernel Functional Testing <lkft@linaro.example>\n\nx\n", "robot"),
    "a forge": ("From: Dana <notifications@github.example>\n\nx\n", "robot"),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds(name: str) -> None:
    raw, expected = KINDS[name]
    assert explained(raw)["kind"] == expected


@pytest.mark.parametrize(
    "junk", [b"\n", b"\xef\xbb\xbf", b">From dana Wed Mar 11 10:15:00 2026\n", b"X-D\xe4: 1\n", b"some words\n"]
)
def test_junk_above_the_head_hides_nothing(junk: bytes) -> None:
    for raw in (junk + PLAIN.encode(), HEAD.encode().replace(b"To: ", junk + b"To: ", 1) + b"\nx\n"):
        if junk in (b"\n", b"\xef\xbb\xbf") and not raw.startswith(junk):
            continue  # in the middle of a head these are its end, and its text
        found = explained(raw)
        assert (found["message_id"], found["author"]["email"]) == ("odd@dev.example", "dana@dev.example")


CHARSETS = {
    "one damaged byte": (b"utf-8", b"caf\xc3\xa9, caf\xc3\xa9 \xff\n", "café, café \ufffd"),
    "UTF-8 by another name": (b"iso-8859-1", "it’s 5 µs\n".encode(), "it’s 5 µs"),
    "the plus-minus of the reports": (b"iso-8859-1", b"5 \xb1 2%\n", "5 ± 2%"),
    "the other Shift JIS": (b"shift_jis", "①です\n".encode("cp932"), "①です"),
}


@pytest.mark.parametrize("name", CHARSETS)
def test_charsets(name: str) -> None:
    charset, body, expected = CHARSETS[name]
    head = HEAD.encode() + b"Content-Type: text/plain; charset=" + charset + b"\n\n"
    assert explained(head + body)["own_text"] == expected


TRAILERS = {
    "Cc": (
        'Fixes: 3b1f0c9d2e44 ("mm: a (b")\nCc: x@y.example\n',
        [("Fixes", '3b1f0c9d2e44 ("mm: a (b")'), ("Cc", "x@y.example")],
    ),
    "a smile": ("Link: https://lore.kernel.org/r/a@b :(\nthanks\n", [("Link", "https://lore.kernel.org/r/a@b :(")]),
    "a broken link": ("Closes: https://lore.kernel.org/r/\n a@b\n", [("Closes", "https://lore.kernel.org/r/a@b")]),
    "an address below": ("Signed-off-by: Dana\n <d@x.example>\n", [("Signed-off-by", "Dana <d@x.example>")]),
    "full width": ("Fixes： 3b1f0c9d2e44\n", [("Fixes", "3b1f0c9d2e44")]),
    "above an attribution": (
        "Tested-by: Dana <d@x.example>\n\nLee Park wrote:\n> q\n",
        [("Tested-by", "Dana <d@x.example>")],
    ),
}


@pytest.mark.parametrize("name", TRAILERS)
def test_trailers(name: str) -> None:
    text, expected = TRAILERS[name]
    assert [(each["key"], each["value"]) for each in explained(PLAIN + text)["trailers"]] == expected


def test_two_patches_in_one_mail() -> None:
    both = "".join(
        f"From {SHA} Mon Sep 17 00:00:00 2001\nSubject: [PATCH] mm: {name}\n\n---\n{DIFF}\n" for name in "ab"
    )
    assert [each["title"] for each in explained(PLAIN + both)["patches"]] == ["mm: a", "mm: b"]


def test_the_mark_of_a_list_before_a_posting() -> None:
    raw = HEAD + f"Subject: [linux-mm] [PATCH v2] mm: a\n\n{DIFF}"
    assert explained(raw)["patches"] == [{"title": "mm: a", "source": "inline"}]


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("see https://perf.example.org/report/7d3e91c0a45b28f6/download/dmesg.xz\n", 0),
        ("see https://dl.example/https://lore.kernel.org/r/a@b.example\n", 0),
        ("see `https://lore.kernel.org/r/a@b.example/`\n", 1),
        ("https://lore.kernel.org/r/a@b.example/，请看\n", 1),
        ("lore.kernel.org/r/a@b.example\n", 1),
    ],
)
def test_links(text: str, links: int) -> None:
    assert len(explained(PLAIN + text)["links"]) == links


def test_zones_by_name_and_comments_in_dates() -> None:
    for date in (
        "Wed, 11 Mar 2026 10:15:00 CET",
        "Wed, 11 (c) Mar 2026 10:15:00 +0100",
        '"Wed, 11 Mar 2026 10:15:00 +0100"',
    ):
        assert explained(f"{HEAD}Date: {date}\n\nx\n")["date"] == "2026-03-11T09:15:00Z"


def test_an_address_that_was_folded_in_its_middle() -> None:
    raw = PLAIN.replace("perfbot+7d3e91c0a45b28f6@bot", "perfbot+7d3e91c0a45b28f6\n @bot")
    assert explained(raw + "x\n")["report_ids"] == ["7d3e91c0a45b28f6"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [("x\n" * (MAX_LINES + 1), MAX_LINES), (f"{'x' * 999}\n" * (MAX_TEXT // 1000 + 1), MAX_TEXT // 1000 + 1)],
    ids=["lines", "letters"],
)
def test_of_a_text_without_end_the_beginning_is_read(text: str, lines: int) -> None:
    """A mail of a million empty lines costs what its first twenty thousand cost, and says that there was more."""
    mail = parse((PLAIN + text).encode())
    assert len(mail.text.split("\n")) == lines
    assert len(mail.text) <= MAX_TEXT
    assert "long_text" in mail.problems
    assert "long_text" not in parse((PLAIN + text[:1000]).encode()).problems


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["<blockquote>", "<!", '<p a="', "<a ", "<a b='", "<br "])
def test_html_without_end_takes_no_time_without_end(piece: str) -> None:
    started = time.process_time()
    with suppress(OverLimit):
        as_text(piece * (1_000_000 // len(piece)))
    assert time.process_time() - started < 5  # of a mail ten times the longest; square time would take minutes


@given(
    st.lists(
        st.sampled_from(
            [
                "<p>",
                "</p>",
                "<blockquote>",
                "</blockquote>",
                "<pre>",
                "</pre>",
                "<a href='x",
                ">",
                "<!--",
                "-->",
                "<td hidden>",
                "<script>",
                "</script>",
                "&lt;",
                "&#0;",
                "\n",
                "said ",
                "\ud800",
            ]
        ),
        max_size=40,
    )
)
def test_any_markup_is_text(pieces: list[str]) -> None:
    text = as_text("".join(pieces))
    assert "<script>" not in text
    assert all(line == line.rstrip() or line.startswith(">") for line in text.split("\n"))


# --- The collection of hard mails: for given bytes, the expected output of `explain` and of reading ---

REPORT = "7d3e91c0a45b28f6"
OUR_REPORT = KnownReport(REPORT, "7d3e91c0a45b28f6", "", ("202603110412.7d3e91c0-perfbot@bot.example.org",))

KNOWN_REPORTS = KnownReports()
KNOWN_REPORTS.add(OUR_REPORT)

# Cases that are not met yet, by name; each must fail until it is taken off this list.
NOT_YET: frozenset[str] = frozenset()

CASES = json.loads((SHARED / "mail-cases-dev.json").read_text()) if SHARED.is_dir() else []


def bracketed(message_id: str) -> str:
    return f"<{message_id}>" if message_id else ""


def same_time(iso: str) -> str:
    return datetime.fromisoformat(iso).isoformat()


AUTHOR = MailContext(Relation.THREAD, Role.AUTHOR)
Check = Callable[[ParsedMail, Reading, dict[str, Any]], Any]
CHECKS: dict[str, Check] = {
    "parse": lambda mail, reading, output: "ok" if output["kind"] != "unreadable" and mail.message_id else "failed",
    "to": lambda mail, reading, output: [each.email for each in mail.to],
    "cc_count": lambda mail, reading, output: len(mail.cc),
    "author": lambda mail, reading, output: output["author"]["email"],
    "subject": lambda mail, reading, output: output["subject"],
    "in_reply_to": lambda mail, reading, output: bracketed(output["in_reply_to"][0]),
    "parent": lambda mail, reading, output: bracketed(mail.parent),
    "thread_root": lambda mail, reading, output: bracketed(
        next(filter(None, (*mail.references, mail.parent, mail.message_id)))
    ),
    "dedup_key": lambda mail, reading, output: bracketed(output["message_id"]),
    "date_utc": lambda mail, reading, output: output["date"],
    "direct_ids": lambda mail, reading, output: list(reading.tags),
    "report_ids": lambda mail, reading, output: output["report_ids"],
    "report_ids_by_thread": lambda mail, reading, output: [KNOWN_REPORTS.thread_of(reading)],
    "auto": lambda mail, reading, output: output["kind"] == "auto_reply",
    "commands": lambda mail, reading, output: [{"name": c["name"], "args": c["argument"]} for c in output["commands"]],
    "commands_run": lambda mail, reading, output: bool(output["commands"]) and output["effect"]["mode"] != "none",
    "error": lambda mail, reading, output: next(iter(output["problems"]), None),
    "error_reply_allowed": lambda mail, reading, output: reading.may_get_error_reply,
    "body_contains": lambda mail, reading, output: output["own_text"],
    "patch_files": lambda mail, reading, output: [file for patch in reading.patches for file in patch.files],
    "fixes": lambda mail, reading, output: list(reading.fixes),
    "status_hint": lambda mail, reading, output: (
        f"maybe_{output['effect']['state'].removeprefix('fix_')}"
        if output["effect"]["mode"] == "suggest"
        else output["effect"]["state"]
    ),
    "fix": lambda mail, reading, output: {
        "sha": reading.notice.sha,
        "tree": reading.notice.tree,
        "branch": reading.notice.branch,
    },
    # It ends the silence, and nothing else by itself.
    "counts_as_response": lambda mail, reading, output: (
        [each["state"] for each in output["effects"] if each["mode"] == "auto"] in ([], ["responded"])
        and EventKind.RESPONDED in {each.kind for each in effects_of(reading, AUTHOR, "open")}
    ),
}


_NOT_HERE = f"NOT TESTED: the hard mails are not on this machine (expected in {SHARED})"


def test_the_cases_are_here() -> None:
    if not SHARED.is_dir():
        pytest.skip(_NOT_HERE)
    assert len(CASES) == 46
    assert {case["name"] for case in CASES} >= NOT_YET


_ABSENT = [pytest.param({"name": "none"}, marks=pytest.mark.skip(reason=_NOT_HERE))]


@pytest.mark.parametrize("case", CASES or _ABSENT, ids=lambda case: case["name"])
def test_case(case: dict[str, Any], bot_settings: BotSettings, request: pytest.FixtureRequest) -> None:
    if case["name"] in NOT_YET:
        request.applymarker(pytest.mark.xfail(strict=True, reason="not yet"))
    raw = case["raw"].encode(case.get("encoding", "utf-8"))
    (output,) = explain([raw], bot_settings, [OUR_REPORT])
    mail = parse(raw)
    for key, expected in case["expect"].items():
        found = CHECKS[key](mail, read(mail, bot_settings), output)
        if key == "body_contains":
            assert expected in found
        elif key == "date_utc":
            assert same_time(found) == same_time(expected)
        else:
            assert found == expected, key
