"""From bytes to Mail to Reading: headers, bodies, own text, commands, trailers, patches, links."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.mail import headers, quoting
from bot.mail.message import parse
from bot.mail.patches import bare_title, find_links, find_patches, find_trailers, fixed_commits, is_posting, version_of
from bot.mail.settings import BotSettings
from bot.replies.commands import Commands, find_commands
from bot.replies.reading import find_notice, read
from bot.replies.sender_kind import SenderKind, kind_of
from tests.world import DIFF

BOT = BotSettings(address="perfbot@bot.example.org", robots=frozenset({"lkp@intel.com"}))


def mail_bytes(body: str, **more: str) -> bytes:
    fields = {"From": "Dana Brook <dana@dev.example>", "Message-ID": "<a@dev.example>", **more}
    head = "".join(f"{name.replace('_', '-')}: {value}\n" for name, value in fields.items())
    return f"{head}\n{body}".encode()


# --- headers ---


@pytest.mark.parametrize(
    ("value", "ids"),
    [
        ("<a@b>", ["a@b"]),
        ("<a@b> <c@d>\n <e@f>", ["a@b", "c@d", "e@f"]),
        ("<a@b> <a@b>", ["a@b"]),
        ("Your mail of Monday <a@b>", ["a@b"]),
        ("a@b", ["a@b"]),
        ("<ZrV/w+q@host.local>", ["ZrV/w+q@host.local"]),
        ("nothing", []),
        ("", []),
    ],
)
def test_message_ids(value: str, ids: list[str]) -> None:
    assert list(headers.message_ids(value)) == ids


@pytest.mark.parametrize(
    ("value", "received", "expected"),
    [
        ("Wed, 11 Mar 2026 10:15:00 +0100", "", "2026-03-11T09:15"),
        ("Wed, 11 Mar 2026 10:15:00 -0000", "", "2026-03-11T10:15"),
        ("Tue, 11 Mar 2036 10:15:00 +0000", "from a by b; Wed, 11 Mar 2026 09:16:02 +0000", "2026-03-11T09:16"),
        ("Thu, 1 Jan 1970 00:00:00 +0000", "from a by b; Wed, 11 Mar 2026 09:16:02 +0000", "2026-03-11T09:16"),
        ("rubbish", "from a by b; Wed, 11 Mar 2026 09:16:02 +0000", "2026-03-11T09:16"),
        ("Wed, 11 Mar 2026 10:15:00 +9999", "", "2026-03-11T10:15"),
        ("Wed, 11 Mar 2026 10:15:00 +01:00", "", "2026-03-11T09:15"),
        ("Wed, 11 Mar 2026 10:15:00 GMT+0100", "", "2026-03-11T09:15"),
        ("2026-03-11T10:15:00+01:00", "", "2026-03-11T09:15"),
        ("rubbish", "from a (x; y) by b; Wed, 11 Mar 2026 09:16:02 +0000 (UTC; really)", "2026-03-11T09:16"),
        ("rubbish", "", None),
        ("", "", None),
    ],
)
def test_dates(value: str, received: str, expected: str | None) -> None:
    found = headers.date(value, [received] if received else [])
    assert (found.astimezone(UTC).strftime("%Y-%m-%dT%H:%M") if found else None) == expected


@given(st.text(max_size=300))
@example("=?utf-8?b?////?= =?utf-8?q?=zz?=")
@example("=?utf-8?B?" + "A" * 900)
def test_any_header_reads(value: str) -> None:
    assert "\n" not in headers.decode(value)
    headers.message_ids(value)
    found = headers.date(value, [value, value])
    assert found is None or found.tzinfo is UTC
    assert found is None or found >= datetime(1991, 1, 1, tzinfo=UTC)


# --- own words ---

ATTRIBUTION = "On Mon, Mar 2, 2026 at 3:00 PM Lee Park <lee@dev.example> wrote:\n"


@pytest.mark.parametrize(
    ("body", "own"),
    [
        ("> quoted\nmine\n>> more\n", "mine"),
        (f"{ATTRIBUTION}> quoted\n\nmine", "mine"),
        ("On Mon, Mar 2, 2026 at 3:00 PM Lee Park\n<lee@dev.example> wrote:\n> quoted\nmine", "mine"),
        ("Am 02.03.26 um 15:00 schrieb Lee Park:\n> zitiert\nmine", "mine"),
        ("Lee Park <lee@dev.example> writes:\n\n> quoted\nmine", "mine"),
        ("mine\n-- \nDana\n+49 123", "mine"),
        ("mine\n| Reported-by: robot", "mine"),
        ("mine\n\n-----Original Message-----\nFrom: Lee\nTo: me\n\ntheirs", "mine"),
        ("mine\n\nFrom: Lee Park\nSent: Monday\nTo: Dana\nSubject: RE: x\n\ntheirs", "mine"),
        ("mine\n" + "_" * 47 + "\nlist -- list@lists.example", "mine"),
        ("As I wrote:\nstill mine", "As I wrote:\nstill mine"),
        ("a -- b\n--\nsig", "a -- b"),
        ("", ""),
    ],
)
def test_own_text(body: str, own: str) -> None:
    assert quoting.own_text(body) == own


def test_a_mountain_of_quotes_hides_nothing() -> None:
    assert quoting.own_text("> row of a table\n" * 25_000 + "\none\ntwo\nthree\n") == "one\ntwo\nthree"


@given(st.text(alphabet="> |ab\n-_:OnFromwrote\u00a0\u200b", max_size=400))
def test_own_text_invents_nothing(body: str) -> None:
    lines = {line.rstrip() for line in quoting.clean(body).split("\n")}
    assert all(line in lines or not line for line in quoting.own_text(body).split("\n"))


# --- commands ---


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#lkp fix: mm: charge in batches", [("fix", "mm: charge in batches")]),
        ("#lkp fix mm: charge in batches", [("fix", "mm: charge in batches")]),
        ("#LKP Invalid", [("invalid", "")]),
        ("#lkp remind off", [("remind off", "")]),
        ("#lkp reopen\n#lkp note: see v2", [("reopen", ""), ("note", "see v2")]),
        ("#regzbot fix: mm: charge", [("fix", "mm: charge")]),
        ("#regzbot dup-of: https://lore.kernel.org/r/a@b", [("dup", "https://lore.kernel.org/r/a@b")]),
        ("#syz dup: INFO: something", [("dup", "INFO: something")]),
        ("#regzbot ^introduced 1234567890ab", []),
        ("#regzbot monitor: https://x", []),
        ("see #lkp fix: nothing", []),
        (" #lkp invalid", []),
        ("#lkpinvalid", []),
        ("#lkp/invalid", []),
    ],
)
def test_commands(line: str, expected: list[tuple[str, str]]) -> None:
    found = find_commands(line)
    assert [(each.word.value, each.argument) for each in found.good] == expected
    assert not found.bad


@pytest.mark.parametrize(("line", "why"), [("#lkp", "no command"), ("#lkp fxi: x", "'fxi'"), ("#lkp fix:", "argument")])
def test_a_command_that_fails_says_why(line: str, why: str) -> None:
    (bad,) = find_commands(f"hello\n{line}").bad
    assert why in bad.why
    assert bad.line == 2


def test_another_prefix_is_ours_when_set() -> None:
    assert find_commands("#perf invalid", "#perf").good
    assert find_commands("#lkp invalid", "#perf") == Commands()


@given(st.text(max_size=300), st.text(alphabet="#lkpregzbotsyz .*(", min_size=1, max_size=10))
def test_any_text_commands_or_not(body: str, prefix: str) -> None:
    found = find_commands(body, prefix)
    lines = body.split("\n")
    for each in (*found.good, *found.bad):
        assert lines[each.line - 1][:1] in "#＃" or lines[each.line - 1].lower().startswith(prefix.lower())


# --- trailers, patches, links, notices ---


def test_trailers_stand_above_the_notes_of_a_patch() -> None:
    body = (
        'x\n\nFixes: 3b1f0c9d2e44 ("mm: a\n b")\ncloses: https://x\nSigned-off-by: D <d@e>\n---\nLink: https://notes\n'
    )
    found = find_trailers(body.split("\n"))
    assert [(each.key, each.value) for each in found] == [
        ("Fixes", '3b1f0c9d2e44 ("mm: a b")'),
        ("Closes", "https://x"),
        ("Signed-off-by", "D <d@e>"),
    ]
    assert fixed_commits(found) == ("3b1f0c9d2e44",)


@pytest.mark.parametrize(
    "body",
    [
        f"Does this help?\n\n{DIFF}",
        f"Does this help?\n\n-- \n{DIFF}",
        f"OK\n\n----8<----\nSubject: [PATCH] mm: do it once\n\n---\n{DIFF}-- \n2.48.1\n",
    ],
    ids=["plain", "below a signature", "scissors"],
)
def test_patches_in_the_body(body: str) -> None:
    (patch,) = find_patches(quoting.unquoted_lines(body), "Re: [mm] 3b1f0c9d2e: x -1% regression", ())
    assert patch.source == "inline"
    assert patch.files == ("mm/vmscan.c",)
    assert patch.title == ("mm: do it once" if "Subject" in body else "")


def test_a_quoted_patch_is_not_the_writers() -> None:
    quoted = "".join(f"> {line}\n" for line in DIFF.splitlines())
    assert find_patches(quoting.unquoted_lines(quoted + "Looks good."), "Re: x", ()) == ()


@pytest.mark.parametrize(
    ("subject", "title", "version", "posting"),
    [
        ("[PATCH] mm: a", "mm: a", 1, True),
        ("[PATCH v2 1/3] mm: a", "mm: a", 2, True),
        ("[RFC PATCH net-next v12] mm: a", "mm: a", 12, True),
        ("Re: [PATCH v2] mm: a", "mm: a", 2, False),
        ("RE: AW: mm:  a\n b", "mm: a b", 1, False),
        ("[mm] 3b1f0c9d2e: x", "3b1f0c9d2e: x", 1, False),
    ],
)
def test_subjects_of_patches(subject: str, title: str, version: int, posting: bool) -> None:
    assert (bare_title(subject), version_of(subject), is_posting(subject)) == (title, version, posting)


@pytest.mark.parametrize(
    ("url", "message_id"),
    [
        ("https://lore.kernel.org/oe-lkp/202503101254.cfd454df-lkp@intel.com", "202503101254.cfd454df-lkp@intel.com"),
        ("https://lore.kernel.org/r/a@b/", "a@b"),
        ("https://lore.kernel.org/all/a@b/T/#u", "a@b"),
        ("https://lore.kernel.org/all/a@b/t.mbox.gz", "a@b"),
        ("https://lkml.kernel.org/r/a%40b.", "a@b"),
        ("https://lore.kernel.org/lkml/Zr%2Fq+x@b/raw", "Zr/q+x@b"),
        ("(https://lore.kernel.org/r/a@b)", "a@b"),
    ],
)
def test_links_to_mail(url: str, message_id: str) -> None:
    assert [each.message_id for each in find_links(f"see {url} there")] == [message_id]


@pytest.mark.parametrize(
    "url",
    [
        "https://download.01.org/0day-ci/archive/20250310/202503101254.cfd454df-lkp@intel.com",
        "https://lore.kernel.org/",
    ],
)
def test_other_links_are_not_ours(url: str) -> None:
    assert find_links(url, "https://perf.example.org") == ()


def test_links_to_our_pages() -> None:
    (link,) = find_links("https://perf.example.org/report/3b1f0c9d2e44/", "https://perf.example.org")
    assert link.page == "3b1f0c9d2e44"


def test_notices_of_robots() -> None:
    tip = "The following commit has been merged into the x86/urgent branch of tip:\n\nCommit-ID:     0123456789abcdef"
    notice = find_notice(tip)
    assert notice
    assert (notice.tree, notice.branch, notice.sha) == ("tip", "x86/urgent", "0123456789abcdef")
    assert find_notice("I have applied it.") is None


# --- who ---


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, SenderKind.PERSON),
        ({"From": "PerfBot@Bot.Example.Org"}, SenderKind.SELF),
        ({"From": "perfbot+7d3e91c0a45b28f6@bot.example.org"}, SenderKind.SELF),
        ({"From": "kernel test robot <lkp@intel.com>"}, SenderKind.ROBOT),
        ({"From": "lkp@intel.com"}, SenderKind.ROBOT),
        ({"From": "tip-bot2 for Lee <tip-bot2@linutronix.de>"}, SenderKind.ROBOT),
        ({"From": "patchwork-bot+netdevbpf@kernel.org"}, SenderKind.ROBOT),
        ({"From": "MAILER-DAEMON@mx.example"}, SenderKind.BOUNCE),
        ({"Content_Type": "multipart/report; report-type=delivery-status; boundary=x"}, SenderKind.BOUNCE),
        ({"Auto_Submitted": "auto-replied (vacation)"}, SenderKind.AUTO_REPLY),
        ({"Subject": "Out of office: Re: x"}, SenderKind.AUTO_REPLY),
        ({"From": "Abbott Robotham <abbot@dev.example>"}, SenderKind.PERSON),
    ],
)
def test_kinds(fields: dict[str, str], kind: SenderKind) -> None:
    assert kind_of(parse(mail_bytes("hello", **fields)), BOT) is kind


# --- junk ---


@given(st.binary(max_size=2000))
def test_any_bytes_are_a_mail_of_a_kind(raw: bytes) -> None:
    reading = read(parse(raw), BOT)
    assert read(parse(raw), BOT) == reading
    reading.own_text.encode("utf-8")  # text that can be stored and shown
    reading.mail.subject.encode("utf-8")


PIECES = [
    b"Content-Type: multipart/mixed; boundary=x\n", b"Content-Type: text/html; charset=utf-16\n", b"--x\n", b"--x--\n",
    b"Content-Transfer-Encoding: base64\n", b"Content-Transfer-Encoding: quoted-printable\n", b"=?utf-8?b?w6k=?=\n",
    b"From: a <a@b>\n", b"\n", b"\xff\xfe\x00", b"> quote\n", b"#lkp fix: x\n", b"diff --git a/x b/x\n@@ -1 +1 @@\n",
    b"=3D=\n", b"////\n", b"Subject: [PATCH]\n", b"begin 644 x\n", b"Content-Type: message/rfc822\n", b"\r\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join))
def test_any_mime_is_a_mail(raw: bytes) -> None:
    read(parse(raw), BOT)


def test_ten_thousand_nested_parts_end() -> None:
    raw = b"From: a@b.example\nMessage-ID: <n@b>\n"
    raw += b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(10_000))
    mail = parse(raw + b"\n#lkp invalid\n")
    assert mail.message_id == "n@b"
    assert mail.problems


def test_html_alone_is_read_and_marked() -> None:
    mail = parse(
        mail_bytes(
            "<p>It is <b>fixed</b> &amp; gone<br>#lkp invalid</p><script>#lkp fix: x</script>", Content_Type="text/html"
        )
    )
    assert quoting.own_text(mail.text) == "It is fixed & gone\n#lkp invalid"
    assert "html_only" in mail.problems


def test_bytes_that_no_encoder_leaves_in_quoted_printable_are_shown() -> None:
    raw = (
        b"From: a@dev.example\nContent-Type: text/plain; charset=iso-8859-1\n"
        b"Content-Transfer-Encoding: quoted-printable\n\n5 =B1 1 or 5 \xb1 1\n"
    )
    found = parse(raw)
    assert (found.text, found.problems) == ("5 ± 1 or 5 ± 1\n", ("no_message_id",))
