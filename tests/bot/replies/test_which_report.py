"""Which mails speak to a regression, and which patches may cure it: a table, and stories of threads around a report."""

from __future__ import annotations

from dataclasses import replace
from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.mail.authentication import AuthVerdict, Trust
from bot.mail.message import parse
from bot.mail.settings import BotSettings
from bot.replies.effects import effects_of
from bot.replies.gate import About
from bot.replies.reading import Reading, answered_culprit, understand
from bot.replies.rules.notation import MailContext, Mode, Relation
from bot.replies.which_report import (
    KnownReport,
    KnownReports,
    concerns,
    cures,
    is_backport,
    is_candidate_fix,
    is_in_series,
)
from tracker.domain.events import EventKind, Role

# --- Which mails speak to a regression, and which patches may cure it: a table, and stories of threads around a
# report ---

ROBOT = "lkp@robot.example"
IDENTITY = BotSettings(address="perfbot@bot.example.org", robots=frozenset({ROBOT}), trust_policy="open")
TITLE = "mm/vmscan: walk cold folios first"
DIFF = "--- a/mm/vmscan.c\n+++ b/mm/vmscan.c\n@@ -1,2 +1,2 @@\n-a\n+b\n"


def mail(subject: str, text: str) -> Reading:
    head = f"From: Dana Brook <dana@dev.example>\nSubject: {subject}\nMessage-ID: <1@dev.example>\n\n"
    return understand((head + text).encode(), IDENTITY)


@pytest.mark.parametrize(
    ("subject", "relation", "expected"),
    [
        ("Re: [PATCH] mm: walk once", Relation.TAG, [("dropped", "suggest"), ("responded", "auto")]),
        ("Re: [PATCH] mm: walk once", Relation.FIX_THREAD, [("fix_withdrawn", "suggest")]),
        (f"Re: [PATCH] {TITLE}", Relation.TAG, [("dropped", "auto"), ("responded", "auto")]),
        (f"Re: [PATCH v2 2/3] {TITLE.title()}.", Relation.TAG, [("dropped", "auto")]),
        ("Re: [PATCH v3 0/5] mm: faster walks", Relation.TAG, [("dropped", "auto")]),
        ("Re: [PATCH 6.12.y] mm: walk once", Relation.FIX_THREAD, [("None", "none")]),
        ("Re: [linus:master] [mm/vmscan] 3b1f0c9d2e: 12% regression", Relation.THREAD, [("dropped", "auto")]),
    ],
)
def test_what_is_dropped_in_an_answer_to_a_fix_does_not_drop_the_culprit(
    subject: str, relation: Relation, expected: list[tuple[str, str]]
) -> None:
    effects = effects_of(mail(subject, "I've dropped this patch from my tree."), context(relation), "open")
    assert [(str(effect.kind), str(effect.mode)) for effect in effects][: len(expected)] == expected


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("I've dropped this patch from my tree.", "fix_withdrawn"),
        ("The revert is in mainline now.", "dropped"),
        ("I have dropped the original patch.", "dropped"),
    ],
)
def test_in_the_thread_of_a_fix_a_revert_is_still_of_the_culprit(sentence: str, kind: str) -> None:
    effects = effects_of(mail("Re: [PATCH] mm: walk once", sentence), context(Relation.FIX_THREAD), "open")
    assert [(str(effect.kind), str(effect.mode)) for effect in effects] == [(kind, "suggest")]


@pytest.mark.parametrize(
    ("title", "role", "expected"),
    [
        ("mm: walk once", Role.MAINTAINER, [("fix_proposed", "auto"), ("fix_queued", "auto")]),
        ("mm: walk once", Role.THIRD_PARTY, [("fix_proposed", "auto"), ("fix_queued", "suggest")]),
        (TITLE, Role.MAINTAINER, []),  # the culprit's next version
    ],
)
def test_a_notice_of_mms_scripts(title: str, role: Role, expected: list[tuple[str, str]]) -> None:
    text = f"The patch titled\n     Subject: {title}\nhas been added to the -mm mm-unstable branch.\n\n{DIFF}"
    reading = mail("+ mm-walk-once.patch added to mm-unstable branch", text)
    effects = effects_of(reading, replace(context(Relation.CLOSES), role=role))
    assert [(str(effect.kind), str(effect.mode)) for effect in effects if effect.kind] == expected
    assert [effect.title for effect in effects if effect.kind is EventKind.FIX_PROPOSED] == [title][: len(expected)]


@pytest.mark.parametrize(
    ("above", "mode"), [("", "auto"), ("I will look.\n\nLee Park @ 2026-09-01 06:00 UTC:\n\n", "suggest")]
)
def test_what_may_be_somebody_elses_judgement_waits_for_a_click(above: str, mode: str) -> None:
    reading = mail("Re: [linus:master] [mm] 3b1f0c9d2e: 12% regression", f"{above}This looks like noise to me.")
    effects = effects_of(reading, context(Relation.THREAD), "open")
    assert [str(effect.mode) for effect in effects if effect.kind is EventKind.DISPUTED] == [mode]


@pytest.mark.parametrize(
    ("text", "kinds"), [("Applied, thanks!", ["fix_queued"]), ("Looks good to me.", []), ("Did you apply it?", [])]
)
def test_a_fix_that_was_posted_apart_is_taken_by_a_click(text: str, kinds: list[str]) -> None:
    """The thread is about the patch, so that its review says nothing of the report."""
    effects = effects_of(mail("Re: [PATCH] mm: walk once", text), context(Relation.FIX_THREAD), "open")
    assert [str(effect.kind) for effect in effects if effect.kind and effect.mode is Mode.SUGGEST] == kinds
    assert not [effect for effect in effects if effect.kind and effect.mode is Mode.AUTO]


@pytest.mark.parametrize("stored", ["3b1f0c9d2e", "3b1f0c9d2e" + "4" * 30])
@pytest.mark.parametrize("named", ["3b1f0c9d2e44", "3b1f0c9d2e" + "4" * 30])
def test_a_sha_names_a_culprit_whichever_of_the_two_is_abbreviated(stored: str, named: str) -> None:
    known = KnownReports()
    known.add(KnownReport("r1", stored, TITLE, ("report@bot.example",)))
    answer = mail(f"Re: [LKP] {TITLE}", f"> commit: {named}\n\nThanks.")
    assert list(known.relations(answer)) == ["r1"]
    assert not KnownReport("r2", "", TITLE, ()).is_culprit(named)


def test_a_signed_answer_that_names_no_mail_is_about_the_report_that_it_quotes() -> None:
    known = KnownReports()
    known.add(KnownReport("r1", "3b1f0c9d2e44" + "0" * 28, TITLE, ("report@bot.example",)))
    answer = mail("Re: a slowdown", "> commit: 3b1f0c9d2e44\n\nI'll look.")
    signed = replace(answer, trust=Trust(AuthVerdict.PASS, "dkim", frozenset({"in-reply-to", "references", "subject"})))
    assert known.context(signed, "r1", Relation.THREAD, IDENTITY).about is About.UNSIGNED
    beside = replace(signed, answered_culprit="")
    assert known.context(beside, "r1", Relation.THREAD, IDENTITY).about is About.ELSEWHERE


def context(relation: Relation) -> MailContext:
    return MailContext(relation, Role.AUTHOR, title=TITLE, benchmark="will-it-scale")


@pytest.mark.parametrize(
    ("subject", "backport", "in_series"),
    [
        ("[PATCH 6.6.y 3/7] mm: a title", True, True),
        ("[PATCH AUTOSEL 5.10 04/11] mm: a title", True, True),
        ("[PATCH 5.15 123/456] mm: a title", True, True),
        ("[PATCH OLK-5.10] mm: a title", True, False),
        ("[PATCH stable v6.1] mm: a title", True, False),
        ("[PATCH v3 2/5] mm: a title", False, True),
        ("Re: [PATCH v3 2/5] mm: a title", False, False),
        ("[PATCH 1/1] mm: a title", False, False),
        ("[PATCH v2.1] mm: a title", True, False),
        ("[PATCH for-6.7 1/2] mm: a title", False, True),
        ("[PATCH 6.7-rc3] mm: a title", False, False),
        ("[PATCH] mm: 5.10 is not here", False, False),
        ('Patch "mm: a title" has been added to the 6.1-stable tree', True, False),
        ('FAILED: patch "[PATCH] mm: a title" failed to apply to 6.1-stable tree', True, False),
        ('Re: Patch "mm: a title" is good', False, False),
        ("[linus:master] [mm] 8d59d2214c: vm-scalability.throughput -36.6% regression", False, False),
    ],
)
def test_what_a_subject_says_of_its_patch(subject: str, backport: bool, in_series: bool) -> None:
    assert (is_backport(subject), is_in_series(subject)) == (backport, in_series)


@pytest.mark.parametrize(
    "text",
    [
        "This fixes the regression that the robot found.",
        "v3: resolve the will-it-scale regression",
        "Reduce the 12.4% regression by half.",
        "With it the regression is gone.",
        "This should address the aim7.jobs-per-min regression.",
        "The regression in fallocate1 disappears.",
    ],
)
def test_a_cure(text: str) -> None:
    assert cures(mail("[PATCH] mm: a title", text))


@pytest.mark.parametrize(
    "text",
    [
        "Testing results below show no significant regressions.",
        "All regressions seem to be minimal, and within the normal variance.",
        "These tests detected a 25.9% regression before for a change in this path.",
        "This patch was tested to make sure no significant regressions are introduced.",
        "Fix a lock. It shows no regression.",
        "",
    ],
)
def test_no_cure(text: str) -> None:
    assert not cures(mail("[PATCH] mm: a title", text))


@pytest.mark.parametrize(
    ("subject", "text", "relation", "expected"),
    [
        ("Re: [mm] 3b1f0c9d2e: -12.4% regression", "Try this.", Relation.THREAD, True),
        (
            "Re: [PATCH v2 3/5] mm/vmscan: walk cold folios first",
            "Try this.",
            Relation.THREAD,
            True,
        ),
        ("[PATCH] mm: keep folios warm", "Why.", Relation.CLOSES, True),
        ("[PATCH] mm: keep folios warm", "Why.", Relation.CULPRIT, True),
        ("[PATCH v2 1/5] mm: count", "Why.", Relation.THREAD, False),
        ("[PATCH v2 2/5] mm: count", "Cures the regression by half.", Relation.THREAD, True),
        (f"[PATCH v4] {TITLE}", "Why.", Relation.CLOSES, False),
        (f"[PATCH v4] {TITLE}", "v4: fixed the regression", Relation.CLOSES, True),
        ("[PATCH 6.6.y] mm: keep folios warm", "This fixes the regression.", Relation.CLOSES, False),
        ("[PATCH 2/3] mm: count", "Why.", Relation.FIX_THREAD, False),
        ("[PATCH v2] mm: keep folios warm", "This fixes the regression.", Relation.FIX_THREAD, True),
        ("[PATCH] mm: something else", "See the link.", Relation.LINK, False),
        ("[PATCH] mm: something else", "This fixes the regression in the link.", Relation.LINK, True),
    ],
)
def test_candidate_fixes(subject: str, text: str, relation: Relation, expected: bool) -> None:
    assert is_candidate_fix(mail(subject, f"{text}\n---\n{DIFF}"), context(relation)) is expected


CULPRIT = "65bb821a6d282df18fd3e2a79c331bc507b2174a"


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        (f'Fixes: 65bb821a6d28 ("{TITLE}")', True),
        ('Fixes: 65bb821a6d28 ("mm: of another tree")', True),
        (f'Fixes: deadbeef1234 ("{TITLE}")', True),  # rebased since it was reported
        (f"Fixes: deadbeef1234 (“{TITLE}”)", True),
        (f"Fixes: deadbeef1234 ({TITLE})", True),
        (f"Fixes: deadbeef1234 [{TITLE}]", True),
        (f'Fixes: deadbeef1234 - "{TITLE}"', True),
        (f"Fixes: deadbeef1234 {TITLE}", True),
        ('Fixes: deadbeef1234 ("mm/vmscan: walk")', False),
        (f"This reverts commit {CULPRIT}.", True),
        (f'Revert "{TITLE}"', True),
        (f"It works like commit {CULPRIT}.", False),
        (f'> Revert "{TITLE}"', False),
    ],
)
def test_a_patch_names_the_culprit_that_it_fixes_or_reverts(text: str, is_named: bool) -> None:
    known = KnownReports()
    known.add(KnownReport("7d3e91c0a45b28f6", CULPRIT, TITLE, ()))
    posted = mail("[PATCH] mm: keep folios warm", f"{text}\n---\n{DIFF}")
    assert known.relations(posted) == ({"7d3e91c0a45b28f6": Relation.CULPRIT} if is_named else {})
    assert known.relations(mail("Re: [PATCH] mm: keep folios warm", text)) == {}, "no patch"


@pytest.mark.parametrize("inline", ["See below.", f"---\n{DIFF}"])
@pytest.mark.parametrize("named", [f'Fixes: 65bb821a6d28 ("{TITLE}")', f"This reverts commit {CULPRIT}."])
def test_each_attached_patch_may_name_the_culprit(inline: str, named: str) -> None:
    message = EmailMessage()
    message["From"], message["Subject"] = "Dana Brook <dana@dev.example>", "[PATCH] mm: keep folios warm"
    message["Message-ID"] = "<1@dev.example>"
    message.set_content(inline)
    for number, text in enumerate(("mm: count", named), 1):
        message.add_attachment(f"{text}\n---\n{DIFF}", subtype="x-patch", filename=f"{number}.patch")
    known = KnownReports()
    known.add(KnownReport("7d3e91c0a45b28f6", CULPRIT, TITLE, ()))
    assert known.relations(understand(bytes(message), IDENTITY)) == {"7d3e91c0a45b28f6": Relation.CULPRIT}


@pytest.mark.parametrize(("text", "expected"), [("It lost counts.", False), ("It regressed vm-scan.", True)])
def test_a_fix_of_an_improvements_culprit_is_a_candidate_only_if_it_speaks_of_a_regression(
    text: str, expected: bool
) -> None:
    improvement = replace(context(Relation.CULPRIT), improvement=True)
    assert is_candidate_fix(mail("[PATCH] mm: keep folios warm", f"{text}\n---\n{DIFF}"), improvement) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Acked-by: Dana Brook <dana@dev.example>", False),
        ("Nice work.", False),
        ("> this fixes the regression\n\nNice work.", False),  # quoted
        ("I don't think that this regression can be ignored.", True),
        ("Does will-it-scale still show it?", True),
        ("What did the kernel test robot run?", True),
    ],
)
def test_what_speaks_to_a_regression(text: str, expected: bool) -> None:
    assert concerns(mail("Re: [PATCH] mm: keep folios warm", text), context(Relation.FIX_THREAD)) is expected


@given(st.text(max_size=300), st.text(st.characters(codec="utf-8"), max_size=2000))
def test_junk_is_answered(subject: str, text: str) -> None:
    reading = mail(" ".join(subject.split()).encode("ascii", "ignore").decode(), text)
    assert cures(reading) in (True, False)
    assert is_backport(subject) in (True, False)
    assert is_in_series(subject) in (True, False)


@pytest.mark.parametrize("word", ["fix the ", "regression ", "fix regressio ", "a, "])
def test_a_long_text_is_searched_in_time(word: str) -> None:
    assert cures(mail("[PATCH] mm: a title", word * 20_000)) in (True, False)


@pytest.mark.parametrize(
    "subject", ["：" * 20_000, ("：" * 60 + " " + "：" * 60) * 4, ("a" * 60 + " ") * 300, ": " * 9000]
)
def test_a_long_subject_is_matched_in_time(subject: str) -> None:
    assert answered_culprit(parse(f"Subject: {subject}\nMessage-ID: <a@b>\n\nx\n".encode())) == ""


# --- Answers that name no Message-ID of a report are found by the report's subject, or by what they quote of it ---

SHA = "3b1f0c9d2e440000000000000000000000000000"
SUBJECT = "[linus:master] [mm/vmscan]  3b1f0c9d2e:  vm-scan.ops_per_sec -12.4% regression"
QUOTE = f'> Hello,\n>\n> kernel test robot noticed a -12.4% regression on:\n>\n> commit: {SHA} ("mm: walk")\n'


def read(subject: str, text: str = "Thanks.", reply_to: str = "") -> str:
    answers = f"In-Reply-To: <{reply_to}>\n" if reply_to else ""
    return answered_culprit(parse(f"Subject: {subject}\n{answers}Message-ID: <a@b>\n\n{text}\n".encode()))


@pytest.mark.parametrize(
    ("subject", "text", "reply_to", "expected"),
    [
        (f"Re: {SUBJECT}", "Thanks.", "", SHA[:10]),
        (f"Re: {SUBJECT}", "Thanks.", "lost@mail", SHA[:10]),
        (f"RE: [External] {SUBJECT}", "Thanks.", "", SHA[:10]),
        (f"[EXT] Re: {SUBJECT}", "Thanks.", "", SHA[:10]),
        (f"***SPAM*** Re: {SUBJECT}", "Thanks.", "", SHA[:10]),
        (f"ตอบ: {SUBJECT}", "Thanks.", "", SHA[:10]),
        (f"Ynt. pos: {SUBJECT}", "Thanks.", "", SHA[:10]),
        (f"Re: {SUBJECT[:-6]}", "Thanks.", "", SHA[:10]),
        (f"Re: {SUBJECT.replace('-12.4%', '−12,4 %')}", "Thanks.", "", SHA[:10]),
        (f"Re: {SUBJECT.replace(':  vm', ':vm')}", "Thanks.", "", SHA[:10]),
        (f"Ats: {SUBJECT}", "Thanks.", "", SHA[:10]),  # of a language that we don't know
        (f"Ats: Re: {SUBJECT}", "Thanks.", "", SHA[:10]),
        (f"Відп: Відп: {SUBJECT}", "Thanks.", "", SHA[:10]),
        (f"EXTERNAL: Re: {SUBJECT}", "Thanks.", "", SHA[:10]),
        (f"Slow walk (was: {SUBJECT})", "Thanks.", "", SHA[:10]),
        (f"Slow walk [was Re: {SUBJECT}]", "Thanks.", "", SHA[:10]),
        (f"Slow walk - was: {SUBJECT}", "Thanks.", "", SHA[:10]),
        (f"[SOLVED] {SUBJECT}", "Thanks.", "", SHA[:10]),
        ("Re: slow", f"I'll look.\n\n-----Original Message-----\nFrom: bot\nSubject: {SUBJECT}\n\nx", "", SHA[:10]),
        (f"It was {SUBJECT}", "Thanks.", "", ""),
        ("Re: [mm] 3b1f0c9d2e: WARNING:at_mm/vmscan.c", "Thanks.", "", ""),
        ("Re: [PATCH v3 2/5] mm: walk", QUOTE + "Odd.", "", SHA),
        ("Re: [PATCH v3 2/5] mm: walk", QUOTE.replace("> ", "> > ") + "Odd.", "", SHA),
        # The thread is named: what is quoted may be from another one.
        ("Re: [PATCH v3 2/5] mm: walk", QUOTE + "Odd.", "lost@mail", ""),
        # Not an answer, not quoted, no report.
        (SUBJECT, "Thanks.", "", ""),
        ("[PATCH] mm: mend", QUOTE, "", ""),
        ("Re: [PATCH] mm: mend", f"commit: {SHA}", "", ""),
        ("Re: deadbeef12: it is slow", "Thanks.", "", ""),
    ],
)
def test_answers(subject: str, text: str, reply_to: str, expected: str) -> None:
    assert read(subject, text, reply_to) == expected


@given(st.text(), st.text())
def test_junk(subject: str, text: str) -> None:
    mail = parse(f"Subject: Re: {subject}\n\n> commit: {text}".encode("utf-8", "replace"))
    found = answered_culprit(mail)
    assert found in f"{mail.subject} {mail.text}".lower()
    assert set(found) <= set("0123456789abcdef")
