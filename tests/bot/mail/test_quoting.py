"""Where somebody else's words may begin: below it no command is the writer's, whatever program wrote the mail."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.mail import quoting
from bot.replies.commands import find_commands

MINE = "It is the lock.\n\n"
THEIRS = "#lkp invalid\nI've dropped this patch.\n"


def block(sender: str, sent: str, to: str, subject: str) -> str:
    """The head of an answered mail, as Outlook writes it."""
    who, whom = "Mal <mal@evil.example>", "Dana <dana@dev.example>"
    return f"{sender}: {who}\n{sent}: 11.03.2026 10:15\n{to}: {whom}\n{subject}: the report\n\n"


OLDER = {
    "Hungarian": block("Feladó", "Elküldve", "Címzett", "Tárgy"),
    "Thai": block("จาก", "ส่ง", "ถึง", "เรื่อง"),
    "Hindi": block("प्रेषक", "भेजा गया", "प्रति", "विषय"),
    "Hebrew": block("מאת", "נשלח", "אל", "נושא"),
    "bold": "*From:* Mal <mal@evil.example>\n*Sent:* Monday\n*To:* x\n*Subject:* y\n\n",
    "Notes": "Mal <mal@evil.example>\n03/11/2026 10:15 AM\n\nTo\ndana@dev.example\ncc\n\nSubject\nthe report\n\n",
    "Notes, forwarded": "----- Forwarded by Dana Brook/Dev on 03/11/2026 10:15 AM -----\n\n",
    "Notes on the web": '-----"Mal" <mal@evil.example> wrote: -----\nTo: dana@dev.example\n\n',
    "Zoho": "---- On Wed, 11 Mar 2026 10:15:00 +0100 Mal <mal@evil.example> wrote ----\n\n",
    "Proton": "‐‐‐‐‐‐‐ Original Message ‐‐‐‐‐‐‐\n",
    "Mulberry": "--On 11. March 2026 10:15:00 +0100 Mal <mal@evil.example> wrote:\n\n",
    "Apple, forwarded, German": "Anfang der weitergeleiteten Nachricht:\n\n",
    "Apple, forwarded, French": "Début du message transféré :\n\n",
    "Apple, forwarded, Greek": "Έναρξη προωθημένου μηνύματος:\n\n",
    "Yahoo, who quotes": "On Wednesday, March 11, 2026 10:15, Mal <mal@evil.example> wrote:\n\n> It is the lock.\n",
    "four lines": "On Wed, Mar 11, 2026\nat 10:15 AM Mal\n<mal@evil.example>\nwrote:\n\n",
    "name with a hash": "On 11.03.26 10:15, Mal\n#x wrote:\n\n",
    "no address, Thai": "เมื่อ 11 มี.ค. 2026 10:15 Mal เขียนว่า:\n\n",
    "no address, Hungarian": "2026. 03. 11. 10:15 keltezéssel, Mal írta:\n\n",
    "no address, Ukrainian": "11.03.26 10:15, Mal пише:\n\n",
    "no colon": "On Wed, Mar 11, 2026 at 10:15 AM Mal <mal@evil.example> wrote\n\n",
    "no date": "Mal Lory wrote:\n\n",
    "no date, German": "Am Mittwoch schrieb Mal:\n\n",
    "no date, quoting": "Quoting Mal:\n\n",
    "no colon, quoting": "Quoting Mal (2026-03-11 10:15:00)\n\n",
    "a day, no clock, Slovak": "Dňa 1. 9. 2026 Mal napísal:\n\n",
    "a day, no clock, Catalan": "El dia 1 de setembre de 2026, Mal ha escrit:\n\n",
    "no date, Greek": "Ο Mal έγραψε:\n\n",
    "no date, Chinese": "Mal 提到:\n\n",
    "a help desk": "##- Please type your reply above this line -##\n\n",
    "no rule": "Original message:\n\n",
    "no block": "From: Mal\n\n",
    "only an address": "Mal <mal@evil.example>\n\n",
    "a forum": "[quote=Mal]\n",
    "a name": "Mal Lory:\n",
    "a name and a moment": "Mal Lory\nMarch 11, 2026 10:15 AM\n",
    "a chat": "Mal Lory  [10:15]\n",
    "another chat": "Mal 10:15 AM\n",
    "a relay chat": "<mal> It is the lock.\n",
    "a tracker": "Mal Lory commented 3 days ago\n",
    "an odd mark": "» It is the lock.\n",
    "a mark far in": "     > It is the lock.\n",
    "GroupWise": ">>> Mal <mal@evil.example> 03/11/26 10:15 AM >>>\n",
    "GroupWise, on a day": ">>> On 3/11/2026 at 10:15 AM, Mal <mal@evil.example> wrote:\n\n",
    "GroupWise, above a quote": ">>> Mal <mal@evil.example> 03/11/26 10:15 AM >>>\n> is it noise?\n",
    "GroupWise, above another": ">>> Mal 03/11/26 10:15 AM >>>\nBob <b@e.example> wrote:\n> is it noise?\n",
    "a rule and a name": "--------------\nMal Lory\n\n",
    "a rule and a name without capitals": "------------------\n李雷\n\n",
    "a rule and an address": "--------------\nMal mal@evil.example\n\n",
    "a rule and labels": "--------------\nSender: Mal\nTopic: v5.6\n\n",
    "a rule and a day": "--------------\nMonday, 4 March, Mal:\n",
    "a rule with a moment": "------ 2026-03-11 10:15 ------\n",
    "an indented rule": f"  {'_' * 30}\nMal\n\n",
    "a long rule with words": f"{'-' * 400} Original words of Mal {'-' * 400}\n",
    "GroupWise, below a quote": "> It is slow.\n\nYes.\n\n>>> Mal 03/11/26 10:15 AM >>>\n",
    "Gmail wraps a quoted line": "> " + "word " * 14 + "\n",
}


HEADS = (
    "From: Mal <mal@evil.example>\nDate: Wed, 11 Mar 2026 10:15:00 +0800\n",
    block("From", "Sent", "To", "Subject"),
)


@pytest.mark.parametrize("head", HEADS)
def test_an_older_mail_that_begins_with_a_quote_is_doubted(head: str) -> None:
    text = f"{head.rstrip()}\n> It is the lock.\n\n{THEIRS}"
    assert not find_commands(quoting.own_text(quoting.without_doubt(text))).good


@pytest.mark.parametrize(
    "above",
    [
        "Lee Park ---09/01/2026 06:00:00 AM---It looks like noise.",  # HCL Notes
        "Inactive hide details for Lee Park ---01.09.2026 06:00:00---Hello",
        "[6:00 AM] Lee Park",  # Teams
        "@lee commented on this pull request:",
        "Lee Park says:",
        "Thus spake Lee Park:",
        "Lee's answer was:",
        "[Lee Park wrote]",
        "Lee Park has posted comments on this change.",  # Gerrit
        "Lee Park Sept. 1, 2026, 6 a.m. UTC | #1",  # Patchwork
        '>>>>> "Lee" == Lee Park <lee@dev.example> writes:',  # Supercite
        "> On 1 Sep 2026, at 06:00, Lee Park <lee@dev.example> wrote:\n>",
    ],
)
def test_other_attributions_raise_a_doubt(above: str) -> None:
    undoubted = quoting.own_text(quoting.without_doubt(f"I will have a look.\n\n{above}\n\nHello,\n\n#lkp invalid\n"))
    assert undoubted.startswith("I will have a look.")
    assert not find_commands(undoubted).good


@pytest.mark.parametrize("older", OLDER.values(), ids=OLDER)
def test_below_an_older_mail_no_command_is_the_writers(older: str) -> None:
    undoubted = quoting.own_text(quoting.without_doubt(MINE + older + THEIRS))
    assert undoubted.startswith(MINE.strip())
    assert not find_commands(undoubted).good
    assert "dropped" not in undoubted


HIDDEN = {
    "blanks, which a relaxed signature does not cover": lambda line: line.replace(" ", " " * 600),
    "fillers of Hangul": lambda line: line.replace("Lee", "Lee" + "\u3164" * 320),
    "tags": lambda line: line.replace("Lee", "Lee" + "\U000e0020" * 320),
    "a long name": lambda line: line.replace("Lee", "Lee " + "Lory " * 70),
    "both": lambda line: line.replace("Lee", "Lee " + "Lory " * 100).replace(" ", " " * 420),
    "tabs": lambda line: line.replace(" ", "\t" * 320),
}


@pytest.mark.parametrize("hide", HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize(
    "above",
    [
        "On Tue, Sep 1, 2026 at 10:00 AM Lee Park <lee@dev.example> wrote:",
        "Lee Park <lee@dev.example> schrieb am Di., 1. Sept. 2026, 10:00:",
        "Lee Park <lee@dev.example> 于2026年9月1日周二 10:00写道：",
        "Lee Park wrote:",
        "-----Lee Park wrote: -----",
    ],
)
def test_however_an_attribution_is_stretched_a_command_below_it_waits(hide: Callable[[str], str], above: str) -> None:
    """Lee chose his name, and whoever sends the mail on may have put blanks into its lines."""
    undoubted = quoting.own_text(quoting.without_doubt(f"No, I won't.\n\n{hide(above)}\n\nWrite:\n\n#lkp invalid\n"))
    assert not find_commands(undoubted).good


@pytest.mark.parametrize(
    "line",
    [
        "1024-4096 byte writes:",
        "2026-09-01 results, 4k random writes:",
        "2026-09-01 I measured it again, and as Lee said:",
        "2026-09-01 14:00 tested by lkp@robot.example:",
    ],
)
def test_what_only_resembles_an_attribution_is_the_writers(line: str) -> None:
    text = f"{line}\n\n100 MB/s\n\nI will send a fix."
    assert quoting.own_text(text).endswith("I will send a fix.")


def test_only_armor_headers_are_left_out_of_a_signed_text() -> None:
    text = "-----BEGIN PGP SIGNED MESSAGE-----\nLee Park <lee@dev.example> wrote on 2026-09-01:\n\n#lkp invalid\n"
    assert not find_commands(quoting.own_text(quoting.without_doubt(text))).good


@pytest.mark.parametrize(
    "above",
    [
        "1 Sept 2026, 06:00 by lee@dev.example:",  # Tutanota
        "2026-09-01 오후 3:00에 Lee Park 이(가) 쓴 글:",
    ],
)
def test_what_stands_below_an_attribution_without_marks_is_no_word_of_the_writers(above: str) -> None:
    assert quoting.own_text(f"I will look.\n\n{above}\n\nHi Dana,\n\nthis is noise.\n") == "I will look."


@given(st.text(max_size=2000))
def test_what_is_surely_the_writers_is_a_part_of_the_text(text: str) -> None:
    undoubted = quoting.without_doubt(text)
    assert undoubted == text or set(undoubted.split("\n")) <= {"", *quoting.clean(text).split("\n")}


@pytest.mark.parametrize(
    "text",
    [
        "#lkp invalid\n",
        f"{'A long paragraph on one line, as some programs write it. ' * 20}\n\n#lkp invalid\n",
        "Hi Oliver,\n\nOn Mon, 2 Mar 2026 15:00, Lee Park <lee@dev.example> wrote:\n> short\n\n#lkp invalid\n",
        "On Mon, Mar 2, 2026 at 3:00 PM Lee Park <lee@dev.example> wrote:\n\n> short\n\n#lkp invalid\n",
        "> short\n#lkp invalid\n",
        "On Tue, Mar 3, 2026 at 6:00 AM Lee Park <lee@dev.example>\nwrote:\n> short\n\n#lkp invalid\n",
        "On Tue, Mar 3, 2026 at 6:00 AM Lee Park <lee@dev.example>\nwrote:\n\n> short\n\n#lkp invalid\n",
        "El mar, 3 mar 2026 a las 6:00, Lee Park\n(<lee@dev.example>) escribió:\n> short\n\n#lkp invalid\n",
        "Le mar. 3 mars 2026 à 06:00, Lee Park <lee@dev.example> a\nécrit :\n> short\n\n#lkp invalid\n",
        "https://lore.kernel.org/r/1@dev.example\nsays so, of March 3, 2026\n\n#lkp invalid\n",
        "[1] https://dev.example/\n\n#lkp invalid\n",
        "As I wrote three days ago, it is noise.\n\n#lkp invalid\n",
        "Hi Lee Park:\n\n#lkp invalid\n",
        f"> {'word ' * 14}\n\n#lkp invalid\n",
        "As said in 2024, this is wanted:\n\n#lkp invalid\n",
        "Fixes: 3b1f0c9d2e11 (mm: x)\nReported-by: robot <lkp@intel.example>\n\n#lkp invalid\n",
        "Kernel: 6.12\n\n#lkp invalid\n",
        "Perf says that the time is spent in:\n  do_work\n\n#lkp invalid\n",
        "Smatch says:\n\n  x\n\n#lkp invalid\n",
        "Already posted a fix here:\n#lkp fix: mm: walk\n",
        "Since nobody replied:\n#lkp invalid\n",
        "As replied elsewhere:\n#lkp invalid\n",
        "kernel  ops_per_sec\n-------------------\nv9.0    1000 1%\nv9.1     990 2%\n\n#lkp invalid\n",
        "==========\nv9.0  1000\n==========\n\n#lkp invalid\n",
        "------------[ cut here ]------------\nWARNING: CPU: 3\n---[ end trace 0000000000000000 ]---\n\n#lkp invalid\n",
        ">>> On 3/11/2026 at 10:15 AM, Lee Park <lee@dev.example> wrote:\n> It is slow.\n\n#lkp invalid\n",
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n#lkp invalid\n\n-----BEGIN PGP SIGNATURE-----\n\nabc\n",
        ">> It is.\n>>> On 3/11/2026 at 10:15 AM, Lee <lee@dev.example> wrote:\n\n#lkp invalid\n",
    ],
)
def test_a_command_of_the_writer_is_not_doubted(text: str) -> None:
    assert find_commands(quoting.own_text(quoting.without_doubt(text))).good


@given(st.text(alphabet="> \n:@.-_<>*wroteOn0123456789#lkp\u3000：", max_size=400))
def test_any_text_loses_lines_and_changes_none(text: str) -> None:
    kept = quoting.without_doubt(text).split("\n")
    lines = quoting.clean(text).split("\n")
    assert len(kept) <= len(lines)
    assert all(line in ("", original) for line, original in zip(kept, lines, strict=False))


def test_a_patch_of_many_signatures_takes_no_long_time() -> None:
    lines = ["@@ -1 +1 @@", *["-- ", "2.45"] * 10_000]
    start = time.process_time()
    assert quoting.own_of(lines).startswith("@@")
    assert time.process_time() - start < 3  # seconds; twelve, when each looked back at all lines above
