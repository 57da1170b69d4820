"""Real-world mail: broken encodings, other languages, automatic mail, and worst cases for the patterns."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.mail import headers, quoting
from bot.mail.body import as_text
from bot.mail.message import ParsedMail, parse
from bot.mail.patches import (
    Trailer,
    bare_title,
    find_diffs,
    find_links,
    find_patches,
    find_reverted,
    find_trailers,
    fixed_commits,
    fixed_titles,
    is_answer,
    is_posting,
    version_of,
)
from bot.mail.settings import BotSettings
from bot.replies.commands import Commands, find_commands
from bot.replies.reading import Reading, SenderKind, find_notice, kind_of, read
from bot.robot_reports.report import find_report
from tests.support.world import DIFF

# --- From bytes to Mail to Reading: headers, bodies, own text, commands, trailers, patches, links ---

READER = BotSettings(address="perfbot@bot.example.org", robots=frozenset({"lkp@intel.com"}))


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
        ("=?utf-8?q?=3Ca=40b=3E?=", ["a@b"]),
        ("=?utf-8?q?=3Ca=40b=3E_=3C?=\n =?utf-8?q?c=40d=3E?=", ["a@b", "c@d"]),
        ("=?utf-8?b?PGFAYj4=?=", ["a@b"]),
        ("<a-1 () dev ! example ! org>", ["a-1@dev.example.org"]),  # as marc.info shows them
        ("<https://lore.kernel.org/r/a@b>", ["a@b"]),
        ("<https://lore.kernel.org/oe-lkp/a+b%2Bc@d/>", ["a+b+c@d"]),
        ("<a@\n b>", ["a@b"]),  # folded in the middle
        ("https://lore.kernel.org/all/a@b/", ["a@b"]),
        ("https://lore.kernel.org/lkml/a@b/T/#u", ["a@b"]),
        ("<https://lore.kernel.org/all/a@b/t.mbox.gz>", ["a@b"]),
        ("<https://marc.info/?i=a-1%20()%20dev%20!%20example>", ["a-1@dev.example"]),
        ("https://marc.info/?i=a@b&w=2", ["a@b"]),
        ("<a-1 at dev.example>", ["a-1@dev.example"]),  # as pipermail does
        ("<a-1(a)dev.example>", ["a-1@dev.example"]),
        ("&lt;a-1@dev.example&gt;", ["a-1@dev.example"]),
        ("id:a-1@dev.example", ["a-1@dev.example"]),  # as notmuch does
        ("a-1 () dev ! example ! org", ["a-1@dev.example.org"]),
        ("mid:a@b", ["a@b"]),
        ("<MID:a@b/part@c>", ["a@b"]),  # RFC 2392
        ("<news:a/b@c>", ["a/b@c"]),
        ("<a%40b>", ["a@b"]),
        ("<a\0@b> <https://lore.kernel.org/r/c%00@d>", ["a@b", "c@d"]),
        ("a\0@b", ["a@b"]),
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
@example("<\0@b> a\0@b")
def test_any_header_reads(value: str) -> None:
    assert "\n" not in headers.decode(value)
    assert "\0" not in "".join(headers.message_ids(value))
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
        ("From: Lee Park <lee@dev.example>\nDate: Mon, 2 Mar 2026 15:00:00 +0800\n> quoted\nmine", "mine"),
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
        ("#regzbot ^introduced 1234567890ab", [("introduced", "1234567890ab")]),
        ("#regzbot monitor: https://x", [("introduced", "https://x")]),
        ("#regzbot poke", []),
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
    assert fixed_titles(found) == ("mm: a b",)


@pytest.mark.parametrize(
    ("value", "titles"),
    [
        ('3b1f0c9d2e44 ("mm: walk \'cold\' (and "odd") folios")', ("mm: walk 'cold' (and \"odd\") folios",)),
        ("3b1f0c9d2e44 (“mm: walk”)", ("mm: walk",)),
        ("commit 3b1f0c9d2e44 „mm: walk”", ("mm: walk",)),
        ("3b1f0c9d2e44 ('mm: walk')", ("mm: walk",)),
        ("3b1f0c9d2e44 (mm: walk (twice))", ("mm: walk (twice)",)),
        ('3b1f0c9d2e44 ("mm: walk") # v6.1', ("mm: walk",)),
        ('https://git.kernel.org/torvalds/c/3b1f0c9d2e44 ("mm: walk")', ("mm: walk",)),
        ("3b1f0c9d2e44 mm: walk", ("mm: walk",)),
        ("3b1f0c9d2e44 mm/vmscan: memcg: walk [1]", ("mm/vmscan: memcg: walk",)),
        ("3b1f0c9d2e44 walk", ()),
        ("3b1f0c9d2e44", ()),
        ("mm: walk", ("mm: walk",)),
        ('("mm: walk")', ("mm: walk",)),
        ("the walk", ()),
    ],
)
def test_a_fixes_trailer_has_a_title_in_quotes_of_any_kind_or_with_its_subsystem(
    value: str, titles: tuple[str, ...]
) -> None:
    assert fixed_titles((Trailer("Fixes", value),)) == titles


def test_a_fixes_trailer_may_name_several_commits() -> None:
    trailer = Trailer("Fixes", '3b1f0c9d2e44 ("mm: walk"), deadbeef12 ("mm: scan")')
    assert fixed_commits((trailer,)) == ("3b1f0c9d2e44", "deadbeef12")


@pytest.mark.parametrize(
    ("text", "shas", "titles"),
    [
        ("This reverts commit 3B1F0C9D2E44 (mm: walk).", ("3b1f0c9d2e44",), ("mm: walk",)),
        ('This reverts 3b1f0c9d2e44 ("mm: walk").', ("3b1f0c9d2e44",), ("mm: walk",)),
        ("This reverts commits 3b1f0c9d2e44 and deadbeef12.", ("3b1f0c9d2e44", "deadbeef12"), ()),
        ("Fix it by reverting commit 3b1f0c9d2e44.", ("3b1f0c9d2e44",), ()),
        ("Revert “mm: walk”", (), ("mm: walk",)),
        ("revert 'mm: walk'", (), ("mm: walk",)),
        ("This reverts commit\n3b1f0c9d2e44 and\nreverts the commit deadbeef12", ("3b1f0c9d2e44", "deadbeef12"), ()),
        ("This reverts most of it", (), ()),
        ('This reverts "mm: walk".', (), ("mm: walk",)),
        ("This undoes commit 3b1f0c9d2e44 for now.", ("3b1f0c9d2e44",), ()),
        ("Back out commit 3b1f0c9d2e44.", ("3b1f0c9d2e44",), ()),
        ("Do not undo commit 3b1f0c9d2e44.", (), ()),
        ("This reverts parts of commit 3b1f0c9d2e44.", ("3b1f0c9d2e44",), ()),
        ("reverts the changes from 3b1f0c9d2e44", ("3b1f0c9d2e44",), ()),
        ('reverts commits 3b1f0c9d2e44 ("a") and\ndeadbeef12 ("b").', ("3b1f0c9d2e44", "deadbeef12"), ("a", "b")),
        ("Reverts the following commits:\n  3b1f0c9d2e44\n  deadbeef12", ("3b1f0c9d2e44", "deadbeef12"), ()),
        ("Revert the changes introduced by commit 3b1f0c9d2e44.", ("3b1f0c9d2e44",), ()),
        ("Revert the mm bits of 3b1f0c9d2e44.", ("3b1f0c9d2e44",), ()),
        ("Revert Dana's commit 3b1f0c9d2e44.", ("3b1f0c9d2e44",), ()),
        ("This reverts https://git.kernel.org/torvalds/c/3b1f0c9d2e44", ("3b1f0c9d2e44",), ()),
        ('Partially revert "mm: walk"', (), ("mm: walk",)),
        ('Back out "mm: walk"', (), ("mm: walk",)),
        ('Commit 3b1f0c9d2e44 ("mm: walk") walks twice. Revert it.', ("3b1f0c9d2e44",), ()),
        ("Commit 3b1f0c9d2e44 walks twice.\n\nSo revert that commit.", ("3b1f0c9d2e44",), ()),
        ("Commit 3b1f0c9d2e44 needs commit deadbeef12. Revert it.", (), ()),  # which of them?
        ("Commit 3b1f0c9d2e44 was fine. We could revert it.", (), ()),
        ("Since commit 3b1f0c9d2e44 it is fast; if it breaks, we can\nrevert it.", (), ()),
        ("Commit 3b1f0c9d2e44 helps, so we should not\nrevert that commit.", (), ()),
        ("My patch removed what commit 3b1f0c9d2e44 had added. So revert the patch.", (), ()),
        ("This does not revert commit 3b1f0c9d2e44.", (), ()),
        ("Don't revert commit 3b1f0c9d2e44.", (), ()),
        ("I’d rather you don’t revert 3b1f0c9d2e44.", (), ()),
        ("Be careful not to revert commit 3b1f0c9d2e44.", (), ()),
        ("Cap the walk instead of\nreverting commit 3b1f0c9d2e44.", (), ()),
        ("Rather than reverting 3b1f0c9d2e44, cap the walk.", (), ()),
        ('mm/vmscan: Revert "mm: walk"', (), ("mm: walk",)),
        ('Revert: "mm: walk"', (), ("mm: walk",)),
        ('Revert "mm: walk"', (), ("mm: walk",)),
        ('Revert "Revert "mm: walk""', (), ('Revert "mm: walk"',)),
        ('We could do\n\n  Revert "mm: walk"\n', (), ("mm: walk",)),
        ('Why not Revert "mm: walk"?', (), ()),
        ("diff --git a/x b/x\n+ This reverts commit 3b1f0c9d2e44", (), ()),
    ],
)
def test_what_a_patch_reverts(text: str, shas: tuple[str, ...], titles: tuple[str, ...]) -> None:
    assert find_reverted([text.split("\n")], ()) == (shas, titles)


def test_a_file_that_is_added_or_removed_empty_is_a_patch() -> None:
    for mode in ("new file", "deleted file"):
        text = f"try\n\ndiff --git a/mm/empty.c b/mm/empty.c\n{mode} mode 100644\nindex 000000000000..e69de29bb2d1\n"
        (patch,) = find_patches(text.split("\n"), "Re: x", ())
        assert patch.files == ("mm/empty.c",)
        assert find_diffs(text) == (text.removeprefix("try\n\n"),)


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
        ("https://patchwork.kernel.org/project/linux-mm/patch/a@b/", "a@b"),
        ("https://patchwork.kernel.org/project/linux-mm/cover/a@b/", "a@b"),
        ("https://patchwork.kernel.org/project/linux-mm/patch/a@b/mbox/", "a@b"),
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


def test_a_notice_of_mms_scripts() -> None:
    text = "The patch titled\n     Subject: mm: walk once\nhas been added to the -mm mm-hotfixes-unstable branch.\n"
    subject = "+ mm-walk-once.patch added to mm-hotfixes-unstable branch"
    notice = find_notice(text, subject, SenderKind.PERSON)
    assert notice
    assert (notice.tree, notice.branch) == ("mm", "mm-hotfixes-unstable")
    assert find_notice(text, f"Re: {subject}", SenderKind.PERSON) is None


def test_notices_of_robots() -> None:
    tip = "The following commit has been merged into the x86/urgent branch of tip:\n\nCommit-ID:     0123456789abcdef"
    notice = find_notice(tip, "", SenderKind.ROBOT)
    assert notice
    assert (notice.tree, notice.branch, notice.sha) == ("tip", "x86/urgent", "0123456789abcdef")
    assert find_notice("I have applied it.", "", SenderKind.ROBOT) is None


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
    assert kind_of(parse(mail_bytes("hello", **fields)), READER) is kind


# --- junk ---


@given(st.binary(max_size=2000))
def test_any_bytes_are_a_mail_of_a_kind(raw: bytes) -> None:
    reading = read(parse(raw), READER)
    assert read(parse(raw), READER) == reading
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
    read(parse(raw), READER)


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


@pytest.mark.parametrize(
    "charset", ["", "; charset=nonsense", "; charset=punycode", "; charset=undefined", "; charset*=utf-8''utf-8"]
)
@pytest.mark.parametrize("encoding", ["quoted-printable", "base64"])
def test_bytes_of_no_known_charset_are_shown(charset: str, encoding: str) -> None:
    body = "Hello café\n".encode()
    head = f"From: a@dev.example\nContent-Type: text/plain{charset}\nContent-Transfer-Encoding: {encoding}\n\n"
    found = parse(head.encode() + body)
    assert "unparsable" not in " ".join(found.problems)
    assert found.text.startswith("Hello caf" if encoding == "quoted-printable" else "")
    assert found.text


# --- Real-world mail: broken encodings, other languages, automatic mail, and worst cases for the patterns ---

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
        "From: Lee\nSent: Monday, March 2, 2026 3:00 PM\nSubject: RE: x",  # without To
        "发件人: Lee\n日期: 2026年3月2日 15:00\n主题: Re: x",
        "Fra: Lee\nEmne: Re: x\nDato: mandag\nTil: Dana",
        "-----\nFrom: Lee <lee@dev.example>\nSubject: Re: x",  # below any rule
        "________________________________\n\nVon: Lee\nGesendet: Montag\nBetreff: AW: x",
        "===\nОт: Lee\nТема: Re: x",
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
    "prefix",
    [
        *(
            "Re: ",
            "RE: ",
            "Re[2]: ",
            "Re (3): ",
            "AW: ",
            "SV: ",
            "VS: ",
            "Antw: ",
            "R: ",
            "REF: ",
            "Svar: ",
            "Odg: ",
            "Trả lời: ",
            "رد: ",
            "Antwort: ",
            "Odp: ",
            "Rép : ",
            "RES: ",
        ),
        *(
            "RIF: ",
            "YNT: ",
            "Atb: ",
            "ΑΠ: ",
            "απ: ",
            "Ответ: ",
            "回复: ",
            "答复：",
            "回覆: ",
            "返信: ",
            "Fwd: ",
            "Re: 回复: ",
        ),
    ],
)
def test_an_answer_is_one_in_every_language(prefix: str) -> None:
    assert is_answer(f"{prefix}[LKP] [mm] 3b1f0c9d2e: -12.4% regression")
    assert bare_title(f"{prefix}[PATCH v2 1/3] mm: take the lock") == "mm: take the lock"


@pytest.mark.parametrize("subject", ["mm: take the lock", "regmap: fix", "[PATCH] re-order: x", "reset: add a driver"])
def test_a_title_is_no_answer(subject: str) -> None:
    assert not is_answer(subject)


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
    assert quoting.own_text(f"mine\n\n{attribution}\n\ntheirs\n\n#lkp invalid") == "mine"


@pytest.mark.parametrize(
    "attribution",
    [
        "On Mon, Mar 2, 2026 at 3:00 PM Lee Park wrote:\n",
        "On March 2, 2026 3:00:00 PM GMT+01:00, Lee Park <lee@dev.example> wrote:",  # K-9
        "Am 02.03.26 um 15:00 schrieb Lee Park:\n",
        "Le lun. 2 mars 2026 à 15:00, Lee Park <lee@dev.example> a\nécrit :\n",
        "On Mon, Mar 2, 2026 at 3:00 PM Lee Park via Linux-perf\n<linux-perf@dev.example> wrote:\n",
        "Lee Park <lee@dev.example> 于2026年3月2日周一 15:00写道：\n",
        "2026년 3월 2일 (월) 오후 3:00, Lee Park <lee@dev.example>님이 작성:\n\n[...]\n",
    ],
)
def test_below_an_attribution_nothing_without_marks_is_the_writers(attribution: str) -> None:
    assert quoting.own_text(f"mine\n\n{attribution}\ntheirs\n\n#lkp invalid\n") == "mine"
    assert quoting.own_text(f"{attribution}\n> theirs\n\nmine\n") == "mine"


@pytest.mark.parametrize(
    "line",
    [
        "As Lee wrote:",
        "Lee Park wrote:",
        "The test ran at 12:30, and printed:",
        "Please try the patch by Lee Park <lee@dev.example>, it says:",
        "Reported-by: Lee Park <lee@dev.example>",
    ],
)
def test_a_line_that_only_looks_like_an_attribution_hides_nothing(line: str) -> None:
    assert quoting.own_text(f"{line}\n\n    it is slower\n\nmine") == f"{line}\n\n    it is slower\n\nmine"


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


@pytest.mark.parametrize("encoding", ["base64", "quoted-printable", "8bit"])
def test_a_multipart_that_calls_itself_encoded_has_no_text_of_its_own(encoding: str) -> None:
    """Its parts were read as Python's own words for them, which differ from run to run."""
    words = "--x\nContent-Type: text/plain\n\nWords.\n"
    encoded = f"Content-Transfer-Encoding: {encoding}\n\nSubject: y\n\nInner.\n"
    inner = f"--x\nContent-Type: message/rfc822; name=a.txt\n{encoded}"
    raw = f"From: a@b.example\nContent-Type: multipart/mixed; boundary=x\n\n{words}{inner}--x--\n".encode()
    mail = parse(raw)
    assert mail.text.strip() == "Words."
    assert not any("object at 0x" in part.text for part in mail.attachments)
