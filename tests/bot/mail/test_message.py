"""Real-world mail: broken encodings, other languages, automatic mail, and worst cases for the patterns."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from bot.mail import quoting
from bot.mail.body import as_text
from bot.mail.message import ParsedMail, parse
from bot.mail.settings import BotSettings
from bot.replies.reading import Reading, read
from bot.replies.sender_kind import SenderKind
from bot.robot_reports.report import find_report
from tests.world import DIFF

BOT = BotSettings(address="perfbot@bot.example.org", base_url="https://perf.example.org")
HEAD = "From: Dana Brook <dana@dev.example>\nMessage-ID: <a@dev.example>\n"


def mail(body: str | bytes, head: str = "") -> ParsedMail:
    raw = body if isinstance(body, bytes) else body.encode()
    return parse((HEAD + head).encode("utf-8") + b"\n" + raw)


def reading(body: str | bytes, head: str = "") -> Reading:
    return read(mail(body, head), BOT)


def commands(body: str | bytes, head: str = "") -> list[str]:
    return [f"{each.word} {each.argument}".strip() for each in reading(body, head).commands.good]


# --- encodings ---


def test_one_broken_encoded_word_harms_no_other() -> None:
    found = parse(b"From: =?utf-8?B?w?= =?utf-8?q?D=C3=A4na?= <dana@dev.example>\nSubject: =?utf-8?B?####?= ok\n\n")
    assert found.author.email == "dana@dev.example"
    assert "Däna" in found.author.name
    assert found.subject == "=?utf-8?B?####?= ok"


def test_raw_bytes_in_headers_are_kept() -> None:
    found = parse("From: Däna <d@x.example>\nSubject: Re: régression\n\n".encode())
    assert (found.author.name, found.subject) == ("Däna", "Re: régression")
    assert parse("Subject: régression\n\n".encode("latin-1")).subject == "régression"


@pytest.mark.parametrize(
    ("charset", "encoding"),
    [("gb2312", "gbk"), ("utf-16", "utf-16-be"), ("utf-16", "utf-16-le"), ("utf-16", "ascii"), ("utf-8", "utf-8-sig")],
)
def test_charsets_that_are_nearly_right(charset: str, encoding: str) -> None:
    body = "#lkp fix: mm: a 漢\n" if encoding in ("gbk",) else "#lkp fix: mm: a\n"
    head = f"Content-Type: text/plain; charset={charset}\n"
    assert commands(body.encode(encoding), head) == [body.strip().removeprefix("#lkp ").replace("fix:", "fix")]


@pytest.mark.parametrize("charset", ["unicode_escape", "punycode", "idna", "rot13", "hex", "undefined"])
def test_codecs_that_are_no_charsets_are_not_obeyed(charset: str) -> None:
    assert commands(r"hello\n#lkp invalid", f"Content-Type: text/plain; charset={charset}\n") == []


def test_half_a_character_is_replaced() -> None:
    found = mail(b"+2AA- #lkp", "Content-Type: text/plain; charset=utf-7\n")
    found.text.encode("utf-8")


FLOWED = "Content-Type: text/plain; format=flowed{}\n"


@pytest.mark.parametrize(
    ("body", "more", "found"),
    [
        ("#lkp fix: mm/vmscan: stop \nrescanning cold folios\n", "", ["fix mm/vmscan: stop rescanning cold folios"]),
        ("#lkp fix: mm: resc \nanning\n", "; delsp=yes", ["fix mm: rescanning"]),
        (" #lkp invalid\n", "", ["invalid"]),
        ("some words \n#lkp invalid\n", "", ["invalid"]),
        ("> quoted \n> #lkp invalid\n", "", []),
        ("hi\n-- \n#lkp invalid\n", "", []),
    ],
)
def test_flowed_text(body: str, more: str, found: list[str]) -> None:
    assert commands(body, FLOWED.format(more)) == found


def test_a_diff_in_flowed_text_is_left_alone() -> None:
    (patch,) = reading(f"try: \n\n{DIFF}", FLOWED.format("")).patches
    assert patch.files == ("mm/vmscan.c",)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("Content-Type: multipart/mixed\n", "#lkp invalid\n"),
        ("Content-Type: multipart/mixed; boundary=x\n", "#lkp invalid\n"),
        ("Content-Disposition: inline; filename=a.txt\n", "#lkp invalid\n"),
        ("Content-Type: text/markdown\n", "#lkp invalid\n"),
        ("Content-Transfer-Encoding: base64\n", "#lkp invalid\n"),
        (
            "Content-Type: multipart/alternative; boundary=x\n",
            "--x\nContent-Type: text/plain\n\n\n--x\nContent-Type: text/html\n\n<p>#lkp invalid\n--x--\n",
        ),
        (
            "Content-Type: multipart/mixed; boundary=x\n",
            "--x\nContent-Type: text/html\n\n<p>#lkp invalid\n--x\nContent-Type: text/plain\n\n"
            + "_" * 47
            + "\n--x--\n",
        ),
    ],
)
def test_bodies_that_must_not_vanish(head: str, body: str) -> None:
    assert "#lkp invalid" in reading(body, head).own_text.split("\n")
    assert commands(body, head) == ([] if "html" in body else ["invalid"])


@pytest.mark.parametrize("kind", ["message/rfc822", "message/global", "message/partial"])
def test_a_message_within_the_message_is_somebody_elses(kind: str) -> None:
    body = f"--x\n\nsee below\n--x\nContent-Type: {kind}\n\nSubject: y\n\n#lkp invalid\n--x--\n"
    assert commands(body, "Content-Type: multipart/mixed; boundary=x\n") == []


def test_a_digest_commands_nothing() -> None:
    body = "--x\n\nFrom: a@b.example\n\n#lkp invalid\n--x--\n"
    assert commands(body, "Content-Type: multipart/digest; boundary=x\n") == []


# --- HTML ---


@pytest.mark.parametrize(
    ("markup", "plain"),
    [
        ("<div>ok</div><blockquote>#lkp invalid</blockquote>", "ok\n> #lkp invalid"),
        ("<!-- a > b\n#lkp invalid\n-->mine", "mine"),
        ('<div style="display:none">#lkp invalid</div>mine', "mine"),
        ("<template>#lkp invalid</template>mine", "mine"),
        ("hi<div>#lkp invalid</div>", "hi\n#lkp invalid"),
        ("<p>#lkp fix: mm:\nstop</p>", "#lkp fix: mm: stop"),
        ("<pre>a\n  b</pre>", "a\n  b"),
        ('<a href="https://lore.kernel.org/r/a@b">report</a>', "<https://lore.kernel.org/r/a@b> report"),
        ("1 < 2 & 3 &lt; 4", "1 < 2 & 3 < 4"),
    ],
)
def test_html(markup: str, plain: str) -> None:
    assert as_text(markup) == plain


# --- other languages, other mail ---


@pytest.mark.parametrize(
    "block",
    [
        "Von: Lee\nGesendet: Montag\nAn: Dana\nBetreff: AW: x",
        "De : Lee\nEnvoyé : lundi\nÀ : Dana\nObjet : RE: x",
        "发件人： Lee\n发送时间： 2026\n收件人： Dana\n主题： x",
        "*From:* Lee\n*Sent:* Monday\n*To:* Dana\n*Subject:* x",
        "----- Forwarded message from Lee <lee@x.example> -----\n",
        "Begin forwarded message:\n",
        "-----Messaggio originale-----",
    ],
)
def test_what_stands_below_an_older_mails_head_is_not_ours(block: str) -> None:
    assert commands(f"mine\n\n{block}\n\n#lkp invalid\n") == []


@pytest.mark.parametrize("bracket", ["[PATCH] ", ""], ids=["as posted", "as git format-patch -k writes it"])
def test_the_head_of_a_patch_is_no_older_mail(bracket: str) -> None:
    head = f"From: D <d@x.example>\nDate: Mon\nSubject: {bracket}mm: x\n\nFixes: 3b1f0c9d2e44\n"
    body = f"try:\n\n---\nFrom 3b1f0c9d2e44 Mon Sep 17 00:00:00 2001\n{head}---\n{DIFF}"
    found = reading(body)
    assert [patch.title for patch in found.patches] == ["mm: x"]
    assert found.fixes == ("3b1f0c9d2e44",)


@pytest.mark.parametrize(
    "attribution",
    [
        "Il giorno lun 2 mar 2026 alle ore 15:00 Lee Park <lee@dev.example> ha scritto:",
        "Op ma 2 mrt 2026 om 15:00 schreef Lee Park <lee@dev.example>:",
        "пн, 2 мар. 2026 г. в 15:00, Lee Park <lee@dev.example>:",
        "2026年3月2日(月) 15:00 Lee Park <lee@dev.example>:",
    ],
)
def test_attributions_in_other_languages(attribution: str) -> None:
    assert quoting.own_text(f"{attribution}\n> quoted\n\nmine") == "mine"


# --- who ---


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("Auto-Submitted: auto-generated\n", SenderKind.ROBOT),
        ("Auto-Submitted: auto-notified; x=y\n", SenderKind.ROBOT),
        ("Auto-Submitted: no\n", SenderKind.PERSON),
        ("X-Autoreply: yes\n", SenderKind.AUTO_REPLY),
        ("Subject: Automatische Antwort: x\n", SenderKind.AUTO_REPLY),
        ("Subject: 自动回复: x\n", SenderKind.AUTO_REPLY),
        ("Subject: Auto response to IRQ storms\n", SenderKind.PERSON),
        ("Return-Path: <>\n", SenderKind.BOUNCE),
        ("X-Failed-Recipients: a@b\n", SenderKind.BOUNCE),
        ("Content-Type: multipart/report; report-type=disposition-notification; boundary=x\n", SenderKind.BOUNCE),
    ],
)
def test_machines(head: str, kind: SenderKind) -> None:
    found = reading("#lkp invalid", head)
    assert found.kind is kind
    assert found.may_command is (kind is SenderKind.PERSON)


@pytest.mark.parametrize("name", ["Delivered-To", "X-Original-To", "Bcc", "Envelope-To", "Resent-To"])
def test_the_tag_may_stand_in_the_envelope_alone(name: str) -> None:
    assert reading("hi", f"{name}: perfbot+7d3e91c0a45b28f6@bot.example.org\n").tags == ("7d3e91c0a45b28f6",)


@pytest.mark.parametrize(
    "to", ['"perfbot+7d3e91c0a45b28f6"@bot.example.org', "'PerfBot+7D3E91C0A45B28F6@bot.example.org'"]
)
def test_odd_spellings_of_our_address(to: str) -> None:
    assert reading("hi", f"To: {to}\n").tags == ("7d3e91c0a45b28f6",)


@pytest.mark.parametrize("tag", ["zzz", "7d3e91c0", "7d3e91c0a45b28f6+x"])
def test_what_is_no_tag(tag: str) -> None:
    assert reading("hi", f"To: perfbot+{tag}@bot.example.org\n").tags == ()


# --- commands, ids, trailers, links ---


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("#lkp: fix: x", ["fix x"]),
        ("#lkp fix : x", ["fix x"]),
        ("#lkp fix：x", ["fix x"]),
        ("＃ｌｋｐ　ｉｎｖａｌｉｄ", ["invalid"]),
        ("#lkp invalid.", ["invalid"]),
        ("#lkp remind-off", ["remind off"]),
        ("\u200f#lkp invalid", ["invalid"]),
    ],
)
def test_spellings_of_commands(line: str, found: list[str]) -> None:
    assert commands(line) == found


def test_ids() -> None:
    ids = " ".join(f"<{number}@x>" for number in range(3000))
    found = mail("", f"References: {ids}\n")
    assert (found.references[0], found.references[-1], len(found.references)) == ("0@x", "2999@x", 1000)
    assert mail("", "In-Reply-To: <2026.7d3e-\n perfbot@x>\n").in_reply_to == ("2026.7d3e-perfbot@x",)
    assert mail("", 'In-Reply-To: Message from Lee <lee@x> of "Monday" <1@x>\n').in_reply_to == ("1@x",)


@pytest.mark.parametrize(
    "trailer",
    [
        'Fixes: 3b1f0c9d2e44 ("mm: walk\nfolios first")',
        "Fixes: commit 3b1f0c9d2e44",
        "Fixes:3B1F0C9D2E44",
        "fixes:\t3b1f0c9d2e44",
    ],
)
def test_trailers_that_are_nearly_right(trailer: str) -> None:
    assert reading(f"text\n\n{trailer}\nSigned-off-by: D <d@x>\n").fixes == ("3b1f0c9d2e44",)


@pytest.mark.parametrize(
    "link",
    [
        "https://patch.msgid.link/1@x",
        "https://msgid.link/1@x",
        "https://www.lore.kernel.org/lkml/1@x/",
        "https://lore.kernel.org/lkml/1@x!",
        "https://lore.kernel.org/lkml/1@x?x=t",
        "https://lore.kernel.org/lkml/1@x。",
    ],
)
def test_spellings_of_links(link: str) -> None:
    assert [each.message_id for each in reading(link).links] == ["1@x"]


def test_a_foreign_address_that_holds_ours_is_no_page_of_ours() -> None:
    assert reading("https://evil.example/https://perf.example.org/report/3b1f0c9d2e/").links == ()
    assert reading("http://perf.example.org/report/3b1f0c9d2e/").links[0].page == "3b1f0c9d2e"


@pytest.mark.parametrize("names", ["--- mm/x.c\n+++ mm/x.c\n", "diff --git mm/x.c mm/x.c\n--- mm/x.c\n+++ mm/x.c\n"])
def test_diffs_without_prefixes(names: str) -> None:
    (patch,) = reading(f"{names}@@ -1,2 +1,2 @@\n-a\n+++ evil.c\n").patches
    assert patch.files == ("mm/x.c",)


# --- the worst that can be fed ---

WORST: list[Callable[[int], str]] = [
    lambda n: " " * n,
    lambda n: "\n" * n,
    lambda n: "> a\n\n" * (n // 5),
    lambda n: ">" * n,
    lambda n: '"' + '\\"' * (n // 2),
    lambda n: "(" * n,
    lambda n: "<" * n,
    lambda n: "<a" * (n // 2),
    lambda n: "<!--" * (n // 4),
    lambda n: "<script>" * (n // 8),
    lambda n: "#lkp " * (n // 5),
    lambda n: "#lkp fix:" + " " * n,
    lambda n: "Fixes: (" * (n // 8),
    lambda n: "Closes:\n" * (n // 8),
    lambda n: "https://lore.kernel.org/" * (n // 24),
    lambda n: "https://lore.kernel.org/r/" + "%40" * (n // 3),
    lambda n: "=?utf-8?q?" * (n // 10),
    lambda n: "=?utf-8?q?a?= " * (n // 14),
    lambda n: "--- a\n" * (n // 6),
    lambda n: "+++ b\n" * (n // 6),
    lambda n: "@@ -1 +1 @@\n" * (n // 12),
    lambda n: "Subject: " + "a\n " * (n // 3),
    lambda n: "On x\n" * (n // 5) + "> q",
    lambda n: "From: a\n" * (n // 8),
    lambda n: "-----Original Message" * (n // 21),
    lambda n: "_" * n,
    lambda n: "noticed a 1% regression of " * (n // 27),
    lambda n: "commit: " * (n // 8),
    lambda n: "| a | b |\n" * (n // 10),
    lambda n: "+--\n| testcase: change | x\n" * (n // 26),
    lambda n: " 1 +1% 2 a" * (n // 10),
    lambda n: "applied " * (n // 8),
    lambda n: "This patch was applied to " * (n // 26),
    lambda n: "has been merged into the " * (n // 25),
    lambda n: "thanks " * (n // 7),
    lambda n: "a." * (n // 2),
]


@pytest.mark.slow
@pytest.mark.parametrize("worst", range(len(WORST)))
def test_a_megabyte_of_the_worst_is_read_in_seconds(worst: int) -> None:
    junk = WORST[worst](1_000_000)
    report = "noticed a 1% regression of x on:\ncommit: " + "a" * 40 + ' ("t")\n'
    mails = [
        HEAD.encode() + b"\n" + junk.encode(),
        HEAD.encode() + b"Content-Type: text/html\n\n" + junk.encode(),
        HEAD.encode() + b"\n" + report.encode() + junk.encode(),
        *(
            f"{name}: {junk[:100_000]}\n\nx".replace("\n", "\n ", 3).encode()
            for name in ("From", "Subject", "References", "Date")
        ),
    ]
    for raw in mails:
        start = time.process_time()
        found = parse(raw)
        find_report(found)
        read(found, BOT)
        # Linear work on a megabyte takes a fraction of this; anything quadratic takes minutes.
        assert time.process_time() - start < 15, raw[:80]


def test_a_header_of_semicolons_takes_no_time() -> None:
    """80 kB of them took the standard library three seconds a part."""
    part = b'--x\nContent-Type: text/plain; a="' + b";" * 80_000 + b"\n\nhello\n"
    raw = b"From: a@b.example\nContent-Type: multipart/mixed; boundary=x\n\n" + part * 20 + b"--x--\n"
    assert "hello" in parse(raw).text
