"""Commands are obeyed in the writer's own words only: not in diffs, forwarded mail or code blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.mail.body import unflow
from bot.mail.patches import bare_title
from bot.mail.quoting import TextLine
from bot.replies.commands import find_commands, without_foreign_lines
from bot.replies.sentences import own_sentences

DIFF = """\
diff --git a/docs/bot.txt b/docs/bot.txt
index 1234567..89abcde 100644
--- a/docs/bot.txt
+++ b/docs/bot.txt
@@ -1,3 +1,4 @@
 The bot reads
#lkp invalid
+#lkp expected
 and more
"""
FORWARDED = """\
From: Mallory <mallory@evil.example>
Date: Wed, 11 Mar 2026 10:15:00 +0100
Subject: Re: the report

#lkp invalid
"""


def words(text: str) -> list[str]:
    return [each.word.value for each in find_commands(without_foreign_lines(text)).good]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#lkp invalid", ["invalid"]),
        (DIFF, []),
        (f"{DIFF}\n#lkp fix: mm: x\n", ["fix"]),  # below the diff the writer goes on
        (DIFF.partition("index")[2].partition("\n")[2] + "#lkp invalid", ["invalid"]),
        (f"#lkp fix: mm: x\n{DIFF}", ["fix"]),
        ("Index: bot.txt\n=====================\n--- bot.txt\n+++ bot.txt\n@@ -1 +1 @@\n-a\n#lkp invalid", []),
        (FORWARDED, []),
        (f"FYI\n\n{FORWARDED}", []),
        (f"#lkp invalid\n\n{FORWARDED}", ["invalid"]),
        ("From: me\nSubject: you\n#lkp invalid", ["invalid"]),  # no header block
        ("```\n#lkp invalid\n```", []),
        ("```\nx\n```\n#lkp invalid", ["invalid"]),
        ("~~~ sh\n#lkp invalid\n~~~\n#lkp expected", ["expected"]),
        ("~~~\n```\n#lkp invalid\n~~~", []),
        ("----- 8< -----\n#lkp invalid\n", []),
        ("-- >8 --\n#lkp invalid\n-- 8< --\n#lkp expected", ["expected"]),
        ("8<---------------- cut here ----\n#lkp invalid", []),
        ("cut here ---\n#lkp invalid", []),
        ("It is 8< than before\n#lkp invalid", ["invalid"]),
        ("---\n#lkp invalid", ["invalid"]),
        ("8<\n#lkp invalid", ["invalid"]),
    ],
)
def test_where_commands_are_obeyed(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text(st.sampled_from("#lkp invd\n`~-+@8<>:FromSubject123, ")))
def test_junk_keeps_its_line_numbers(text: str) -> None:
    kept = without_foreign_lines(text).split("\n")
    lines = text.split("\n")
    assert len(kept) == len(lines)
    assert all(each in ("", line) for each, line in zip(kept, lines, strict=True))


@pytest.mark.parametrize("prefix", ["#lkp", "@lkp", "!perf", "perf"])
def test_commands_may_begin_otherwise(prefix: str) -> None:
    found = find_commands(f"{prefix} invalid\nand\n#regzbot dup: https://lore.kernel.org/r/a@b", prefix)
    assert [each.word.value for each in found.good][:1] == ["invalid"]


LINK = "https://lore.kernel.org/r/202609010600.4176d70a-perfbot@bot.example.org"
TITLE = "mm/vmscan: stop after the first cold folio in the list of the node"


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        (f"#lkp fix: {TITLE}\nwithout memory", f"{TITLE} without memory"),
        (
            f"#lkp fix: {TITLE} without\nmemory on 6.12 kernels that have\nswap",
            f"{TITLE} without",
        ),  # what follows is prose, and so may be the line between
        (f'#lkp fix: 3b1f0c9d2e44 ("{TITLE[:45]}\n{TITLE[46:]}")', f'3b1f0c9d2e44 ("{TITLE}")'),
        (f"#lkp fix: {TITLE}\nThanks a lot", TITLE),  # a new sentence
        (f"#lkp fix: {TITLE}\n\nwithout memory", TITLE),
        (
            "#lkp fix: mm/vmscan: stop after the first\nfolio that is cold",
            "mm/vmscan: stop after the first",
        ),  # had room
        (f"#lkp fix: {TITLE}\n#lkp note: it works", TITLE),
        (f"#lkp fix: {TITLE}\n> that was in the report", TITLE),
        ("#lkp fix:\nmm: take the lock", "mm: take the lock"),
        (f"#lkp fix:\n{TITLE} without\nmemory", f"{TITLE} without memory"),
        ("#lkp fix: mm/vmscan:\n  stop after the first", "mm/vmscan: stop after the first"),
        ('#lkp fix: "mm/vmscan: stop\nafter the first"\nthat works', '"mm/vmscan: stop after the first"'),
        (
            "#syz dup: [LKP] [fs/journal] b6db4ff9ce:\n -30.0% regression",
            "[LKP] [fs/journal] b6db4ff9ce: -30.0% regression",
        ),
        (f"#lkp fix: {TITLE} and of all\n nodes", f"{TITLE} and of all nodes"),
        (f"#lkp fix: {TITLE}\nthanks, Lee", TITLE),
        (f"#lkp fix: {TITLE}\nis what I meant, since\nit works", TITLE),
        (f"#lkp fix: {TITLE}\nBTW, I will send v3", TITLE),
        (
            "#lkp dup: https://lore.kernel.org/r/202609010600.4176d70a-perfbot@bot.example.org\nhttps://x.example/1",
            LINK,
        ),
        ('#lkp note: it needs the 5" disk\nof the lab', 'it needs the 5" disk'),
        ("#lkp expected:\nIt is the price of correctness.", ""),
    ],
)
def test_what_a_mail_program_wraps_of_an_argument_belongs_to_it(text: str, argument: str) -> None:
    assert find_commands(text).good[0].argument == argument


@pytest.mark.parametrize(
    ("text", "obeyed"),
    [("#lkp invalid?", False), ("#lkp invalid ?", False), ("#lkp invalid noise?", False), ("#lkp invalid.", True)],
)
def test_a_question_is_no_command(text: str, obeyed: bool) -> None:
    found = find_commands(text)
    assert (len(found.good), len(found.bad)) == (obeyed, not obeyed)


def test_a_command_is_no_rest_of_the_one_above() -> None:
    found = find_commands(f"perf fix: {TITLE} and\nperf expected: it has to", "perf")
    assert [(command.word.value, command.argument) for command in found.good] == [
        ("fix", f"{TITLE} and"),
        ("expected", "it has to"),
    ]


def test_long_lines_and_many_shortened_words_take_no_time() -> None:
    """Each of these took seconds a line, and grew with the square of its length."""
    assert without_foreign_lines("-" + " - " * 7_000 + "x") != ""
    assert not find_commands("#syz foo\n" * 50_000).good
    assert not find_commands('#syz fix: "“' + "“”" * 500 + "\n" * 2).bad
    assert len(own_sentences([TextLine("so, e.g. " * 40_000)])) <= 1
    assert bare_title("[a]" * 300_000 + "mm: a") != ""
    assert unflow("a \n" * 200_000, delsp=False).startswith("a a a")
