"""The rules for plain English: sentences that they match, similar sentences that they must not match, and junk."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.mail.message import parse
from bot.mail.quoting import lines_in_context
from bot.mail.settings import BotSettings
from bot.replies.classifier import Model, Opinion
from bot.replies.effects import content_effects, effects_by_rules, effects_of
from bot.replies.intents import candidate_helps, holds_table, intents_of
from bot.replies.reading import Reading, read
from bot.replies.rules import OPERATORS, RULES
from bot.replies.rules.notation import NOTHING, Effect, MailContext, Mode, Relation, Rule, expression, name_of
from bot.replies.sentences import has_content, own_sentences
from tracker.domain.events import EventKind, Role

LAB = BotSettings(
    address="perfbot@bot.example.org", robots=frozenset({"lab@lab.example"}), operators=frozenset({"olga@lab.example"})
)
DEVELOPER = "From: Dana Brook <dana@dev.example>\nTo: Olga Lind <olga@lab.example>\nCc: Lee Park <lee@dev.example>\n"
OPERATOR = "From: Olga Lind <olga@lab.example>\nTo: Dana Brook <dana@dev.example>\n"


def reading(text: str, head: str = DEVELOPER) -> Reading:
    return read(parse(f"{head}Message-ID: <a@b.example>\n\n{text}\n".encode()), LAB)


def effect(text: str, head: str = DEVELOPER, role: Role = Role.AUTHOR, *, improvement: bool = False) -> Effect:
    if head is OPERATOR:
        role = Role.REPORTER
    return next(effects_by_rules(reading(text, head), MailContext(Relation.THREAD, role, improvement)), NOTHING)


def effect_text(text: str, head: str = DEVELOPER, role: Role = Role.AUTHOR, *, improvement: bool = False) -> str:
    found = effect(text, head, role, improvement=improvement)
    return f"{name_of(found)} {found.mode}"


SAYS = {
    "I've dropped this patch from my tree for now.": "dropped auto",
    "We decided to drop the patch.": "dropped auto",
    "This patch has been dropped.": "dropped auto",
    "Okay, let's just revert it.": "dropped suggest",
    "I reverted the commit locally and the number came back.": "dropped suggest",
    "Lee, could you please drop this patch from -next?": "dropped suggest",
    "I'll get a fix out tomorrow.": "working auto",
    "I will send a v2 shortly.": "working auto",
    "I'm working on a fix.": "working auto",
    "Will fix.": "working auto",
    "If it is real, I will send a patch.": "working suggest",
    "This should be fixed by commit 3b1f0c9d2e44 in mainline.": "fix_proposed suggest",
    "I've sent a patch for that already.": "fix_proposed suggest",
    "The fix was merged into the mm tree yesterday.": "fix_queued suggest",
    "Applied, thanks!": "fix_queued auto",
    "I just committed your patch.": "fix_queued auto",
    "This is expected, we do more work now.": "wontfix suggest",
    "Fine, we can live with that.": "wontfix suggest",
    "I don't think we should care about this benchmark.": "wontfix suggest",
    "This looks like noise to me.": "disputed suggest",
    "I can't reproduce this on my machine.": "disputed suggest",
    "I don't see how this commit could cause that.": "disputed suggest",
    "Could you please run the test again with this commit reverted?": "needs_info auto",
    "Please share the config.": "needs_info auto",
    "Which file system was that run on?": "needs_info auto",
    "The reproducer fails on Debian.": "needs_info suggest",
    "I'll take a look.": "responded auto",
    "It is the lock.": "responded auto",
    "With that patch applied the regression is gone here.": "fix_confirmed suggest",
}
TRAPS = {
    "The commit dropped the trylock flag.": "responded auto",
    "I haven't dropped it.": "responded auto",
    "Did you drop the patch?": "responded auto",
    "Is this expected?": "responded auto",
    "That is not expected at all.": "responded auto",
    "I won't send a patch for it.": "wontfix suggest",
    "Lee said that it is fixed in v2.": "responded auto",
    "We expected the cache to help here.": "responded auto",
    "It has not been merged into any tree.": "responded auto",
    "Lee, could you test this on your box?": "responded auto",
    "Why don't we take the lock earlier?": "responded auto",
    "Thanks!": "none none",
    "Hi Olga,\n\nthank you for the report.\n\nBest regards,\nDana": "none none",
}
LAB_SAYS = {
    "the regression is gone with your patch.": "fix_confirmed auto",
    "we confirmed the patch fixes the regression.": "fix_confirmed auto",
    "the regression is gone, but another one shows up.": "fix_confirmed suggest",
    "the regression is gone.\n\nHowever, we see another one.": "fix_confirmed suggest",
    "if the patch fixes the regression, please let us know.": "none none",
    "your patch doesn't help.": "fix_failed auto",
    "the performance is partially recovered.": "fix_failed auto",
    "the patch failed to build.": "fix_failed suggest",
    "we rebuilt and the regression is still reproducible.": "info_provided auto",
    "sorry, this was a false positive.": "invalid auto",
    "it's not a false positive.": "none none",
    "we will test it and let you know.": "none none",
    "thanks a lot!": "none none",
    "it does not regress any more with your patch.": "info_provided auto",
    "we tested the patch, and it did not show any regression.": "info_provided auto",
    "we did fix a mistake in the config of that machine.": "info_provided auto",
    "the regression is gone with the patch, and it did not cost anything.": "fix_confirmed suggest",
    "Tested-by: Olga Lind <olga@lab.example>": "fix_confirmed auto",
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_reads_its_examples_and_not_what_only_looks_like_them(rule: Rule) -> None:
    assert rule.yes
    assert rule.no
    for text, expected in (*((text, True) for text in rule.yes), *((text, False) for text in rule.no)):
        assert any(map(rule.matches, own_sentences(lines_in_context(text)))) is expected, text


@pytest.mark.parametrize("text", SAYS)
def test_what_developers_say(text: str) -> None:
    assert effect_text(text) == SAYS[text]


@pytest.mark.parametrize("text", TRAPS)
def test_what_only_looks_like_it(text: str) -> None:
    assert effect_text(text) == TRAPS[text]


@pytest.mark.parametrize("text", LAB_SAYS)
def test_what_the_lab_says(text: str) -> None:
    assert effect_text(text, OPERATOR) == LAB_SAYS[text]


def test_an_answer_below_the_question() -> None:
    assert effect_text("> Which disk is that?\n\nit's an NVMe device.", OPERATOR) == "info_provided auto"
    assert (
        effect_text("> Which disk is that?\n\nit's an NVMe device. do you need more?", OPERATOR)
        == "info_provided suggest"
    )


def test_a_patch_of_a_person_acts_and_a_debug_patch_does_not() -> None:
    diff = "diff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -1 +1 @@\n-a\n+b\n"
    assert effect_text(f"Can you try this?\n\n{diff}") == "fix_proposed auto"
    assert effect_text(f"Please run with this debug patch.\n\n{diff}") == "fix_proposed suggest"
    assert effect_text(f"With the change below it is gone.\n\n{diff}", OPERATOR) == "fix_proposed suggest"
    effects = effects_by_rules(reading(f"Can you test this?\n\n{diff}"), MailContext(Relation.THREAD, Role.AUTHOR))
    assert [each.kind for each in effects] == ["fix_proposed", "test_asked"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Could you try running this branch?\n\nhttps://git.kernel.org/pub/scm/linux/kernel/git/a/b.git/log/?h=c",
            "fix_proposed auto",
        ),
        ("Can you please try this fix:\n\nhttps://github.com/ada/linux topic\n", "fix_proposed auto"),
        ("UNTESTED PATCH ATTACHED.\n\nKim - mind testing this?", "fix_proposed auto"),
        ("Could you try running this branch?", "needs_info auto"),
        (
            "Could you rerun it?\n\nhttps://git.kernel.org/pub/scm/linux/kernel/git/a/b.git/log/?h=c has the config.",
            "needs_info auto",
        ),
        ("Could you test the commit before it, 0c9d11ea55ab?", "needs_info auto"),
        ("Could you test my tree before commit 0c9d11ea55ab?", "needs_info auto"),
        ("Could you test the parent of this commit, 0c9d11ea55ab?", "needs_info auto"),
        (
            "Could you re-run with the attached config?\n\nThe attached debug patch is from elsewhere.",
            "needs_info auto",
        ),
    ],
)
def test_what_is_to_be_tested_is_a_candidate_if_the_mail_gives_it(text: str, expected: str) -> None:
    assert effect_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Test results are back.",
        "The results are back to the bad level.",
        "Performance was back down again with the patch.",
        "With your patch, the performance is the same as 1234567890ab, the parent of the culprit.",
        "No performance change any more.",
        "There is no performance difference between the parent and your patch.",
    ],
)
def test_what_the_lab_says_beside_an_outcome_is_none(text: str) -> None:
    effects = effects_by_rules(reading(text, OPERATOR), MailContext(Relation.THREAD, Role.REPORTER))
    assert {EventKind.FIX_CONFIRMED, EventKind.FIX_FAILED}.isdisjoint(each.kind for each in effects)


@pytest.mark.parametrize(
    "text",
    [
        "It is not a regression after all.",
        "No issue after all, sorry for the noise.",
        "I will take this back through my tree.",
        "I reverted 1234567890ab and the regression is gone.",
        "I just applied the revert locally, no change.",
        'I removed "mitigations=off" from the command line.',
    ],
)
def test_what_neither_drops_nor_reopens(text: str) -> None:
    effects = effects_by_rules(reading(text), MailContext(Relation.THREAD, Role.AUTHOR))
    assert {EventKind.DROPPED, EventKind.REOPENED}.isdisjoint(each.kind for each in effects)


@pytest.mark.parametrize(
    ("text", "of_the_lab"),
    [
        ("Lee, can you take a look, please?", False),
        ("Lee, ping? This is a 30% regression in -rc1, can you take a look, please?", False),
        ("Hi Lee,\n\nthis is a big drop. Can you have a look?", False),
        ("@Lee can you handle this?", False),
        ("Olga, which file system was that run on?", True),
        ("Hi Olga,\n\nthis is a big drop. Which file system was that run on?", True),
        ("Lee, this is yours.\n\nOlga, which file system was that run on?", True),
        ("Hi Lee, Olga,\n\nwhich file system was that run on?", True),
        ("Hello all,\n\nwhich file system was that run on?", True),
        ("> the numbers\nLee, fair point.\n> more numbers\nWhich file system was that run on?", True),
    ],
)
def test_a_question_to_somebody_else_asks_the_lab_nothing(text: str, of_the_lab: bool) -> None:
    context = MailContext(Relation.THREAD, Role.MAINTAINER)
    unnamed = DEVELOPER.replace("Cc: Lee Park <lee@dev.example>\n", "")  # of whom the report knows, not the mail
    for head, known in ((DEVELOPER, context), (unnamed, replace(context, authors=frozenset({"lee"})))):
        effects = {(each.kind, each.mode) for each in content_effects(reading(text, head), known)}
        assert ((EventKind.ASKED, Mode.AUTO) in effects) is of_the_lab
        assert (EventKind.RESPONDED, Mode.AUTO) in effects


def test_what_a_third_party_says_decides_nothing() -> None:
    assert effect_text("It is the lock.", role=Role.THIRD_PARTY) == "none none"
    assert effect_text("This is expected.", role=Role.THIRD_PARTY) == "none none"
    assert effect_text("I've dropped this patch.", role=Role.THIRD_PARTY) == "dropped suggest"


def test_who_keeps_the_list_of_regressions_asks_the_lab_for_nothing() -> None:
    text = "Could you please share the kernel config?"
    anybody = MailContext(Relation.THREAD)
    assert [name_of(each) for each in content_effects(reading(text), anybody)][:1] == ["needs_info"]
    tracking = f"Hi, this is the Linux kernel's regression tracker.\n\n{text}"
    assert list(content_effects(reading(tracking), anybody)) == []


def test_a_doubt_beside_a_question_is_suggested_and_the_silence_is_over_all_the_same() -> None:
    doubt = reading("This looks like noise.\nCan you rerun it?")
    effects = effects_by_rules(doubt, MailContext(Relation.THREAD, Role.AUTHOR))
    assert [(each.kind, each.mode) for each in effects] == [
        *(("asked", Mode.AUTO), ("disputed", Mode.SUGGEST), ("responded", Mode.AUTO))
    ]


@pytest.mark.parametrize(
    ("text", "title", "sha"),
    [
        ('It should be fixed by the commit "mm: memcg: add padding".', "mm: memcg: add padding", ""),
        ('This should be fixed by 3b1f0c9d2e44 ("mm/vmscan: stop it").', "mm/vmscan: stop it", "3b1f0c9d2e44"),
        ('I\'ve sent a patch "[PATCH v2] xfs: fix the lock" for that.', "xfs: fix the lock", ""),
        ("This should be fixed by the commit 3b1f0c9d2e44.", "", "3b1f0c9d2e44"),
        ("This should be fixed by the patch of 20260311.", "", ""),
    ],
)
def test_the_commit_that_is_named_as_the_fix(text: str, title: str, sha: str) -> None:
    found = effect(text)
    assert (found.kind, found.title, found.remark) == ("fix_proposed", title, sha)


def test_the_culprit_is_no_fix_of_its_own() -> None:
    context = MailContext(Relation.THREAD, Role.AUTHOR, culprit="3b1f0c9d2e44" + "0" * 28)
    reply = reading("What was broken before was fixed by commit 3b1f0c9d2e44.")
    assert [each.rule for each in effects_by_rules(reply, context)] == ["reply_of_author"]


def test_improvements() -> None:
    assert effect_text("Nice, that was the goal.", improvement=True) == "improvement_ack auto"
    assert effect_text("That is suspicious, we must have lost a flush.", improvement=True) == "responded suggest"


def test_a_rule_can_be_switched_off() -> None:
    off = replace(LAB, rules_off=frozenset({"expected"}))
    mail = parse(f"{DEVELOPER}Message-ID: <a@b>\n\nThis is expected.\n".encode())
    found = effects_by_rules(read(mail, off), MailContext(Relation.THREAD, Role.AUTHOR))
    assert [each.rule for each in found] == ["reply_of_author"]


def test_sentences_of_the_prose_alone() -> None:
    text = (
        "On Mon, Lee wrote:\n> what is it?\n\nIt is the lock, e.g. in mm/.\nThat one.\n\n  1234   +5%  1300  a.b\n"
        "\tif (x)\n\nMaybe.\n\n---8<---\nFrom: Dana <d@x>\nSubject: [PATCH] x\n\nThis fixes it.\n"
    )
    found = own_sentences(lines_in_context(text))
    assert [each.text for each in found] == ["It is the lock, e.g. in mm/.", "That one.", "Maybe."]
    assert found[0].below == "what is it?"


@pytest.mark.parametrize(
    ("line", "is_prose"),
    [
        ("lee 13:28:49 ~/git/lkp-tests (master)> sudo ./bin/lkp install job.yaml", False),
        ("lee@box:~/linux$ make -j8", False),
        ("[root@skl-2sp3 ~]# perf stat -a sleep 1", False),
        ("will-it-scale.per_process_ops", False),
        ("vm-scalability.median_stddev%", True),  # of a metric nothing is known
        ("Reading ~ 5% of it > 3 times in a row was slow.", True),
        ("I wrote to lee@box.example: $5 for who finds it.", True),
        ("The read/write path costs ~3% > 1% before.", True),
        ("Thanks.", True),
    ],
)
def test_prompts_and_names_of_metrics_are_no_prose(line: str, is_prose: bool) -> None:
    assert bool(own_sentences(lines_in_context(f"{line}\n"))) is is_prose


def test_the_notation() -> None:
    pattern = re.compile(expression(["a|b … c? d*", "^ first last $"]), re.I)
    assert pattern.search("b one two dog")
    assert pattern.search("A c, dish")
    assert not pattern.search("a one two three four dog")
    assert pattern.search('"first" last.')
    assert not pattern.search("the first last")


TABLE = """\
94b7e5bf09b08aa4 98c9daf5ae6be008f78c07b744b 6df13230b612af81ce04f20bb37
---------------- --------------------------- ---------------------------
         %stddev     %change         %stddev     %change         %stddev
             \\          |                \\          |                \\
     76.42           +15.1%      87.99 ±  3%     +14.9%      88.18 ±  3%  uptime.boot
    778685           -29.4%     549435           {left}%     698378        aim7.jobs-per-min
      0.10 ±  9%    +900.0%       1.00            +0.0%       1.00        perf-profile.a
"""


def test_a_comparison_of_a_candidate_is_read_by_its_numbers() -> None:
    assert effect_text("here is the data.\n\n" + TABLE.format(left="-0.3"), OPERATOR) == "fix_confirmed suggest"
    assert effect_text("here is the data.\n\n" + TABLE.format(left="-28.9"), OPERATOR) == "fix_failed suggest"
    assert effect_text("the regression is gone.\n\n" + TABLE.format(left="-28.9"), OPERATOR) == "fix_confirmed auto"
    two = "  1553377            +0.7%    1564776        fsmark.app_overhead"
    assert effect_text(f"here is the data.\n\n{two}", OPERATOR) == "info_provided auto"


FOUR = """\
compiler/mode/nr_task/test/testcase:
  gcc-12/thread/100%/fallocate1/will-it-scale

     36509           -25.8%      27079           -25.2%      27305           {left}%      27383        will-it-scale.ops
      1304        +15799.3%     207326           +68.0%       2190           +2.1%        1331        numa-meminfo.Dirty
"""


@pytest.mark.parametrize(
    ("table", "helps"),
    [
        (FOUR.format(left="-25.0"), False),
        (FOUR.format(left="-3.1"), True),
        (FOUR.format(left="+3.4"), True),  # better than before the culprit
        (FOUR.replace("1/will-it-scale", "1").format(left="-25.0"), True),  # by the row that changed most
        (FOUR.replace("-25.8%", "+0.0%").format(left="-25.0"), None),
    ],
)
def test_a_candidate_is_judged_by_the_benchmark_of_the_tables(table: str, helps: bool | None) -> None:
    assert candidate_helps(table) is helps


def test_what_the_lab_states_and_its_table_shows_needs_no_other_opinion() -> None:
    """The prose around a table may be read as anything: "it was applied as below …"."""

    def effects(said: str, left: str) -> list[str]:
        mail = reading(f"{said}\n\nit was applied as below.\n\n{FOUR.format(left=left)}", OPERATOR)
        context = MailContext(Relation.THREAD, Role.REPORTER)
        return [f"{name_of(each)} {each.mode}" for each in content_effects(mail, context, misled)]

    misled = cast(Model, SimpleNamespace(opinion=lambda facts: Opinion({"fix_queued": 0.9, "responded": 0.1}, {}, {})))
    assert effects("from our tests, this patch has little impact.", "-25.0") == ["fix_failed auto"]
    assert effects("the regression is gone.", "-0.2") == ["fix_confirmed auto"]
    assert effects("from our tests, this patch has little impact.", "-0.2")[0] == "fix_queued suggest"
    plain = reading("The regression still exists with your patch.\n\nit was applied as below.", OPERATOR)
    context = MailContext(Relation.THREAD, Role.REPORTER)
    assert [f"{name_of(each)} {each.mode}" for each in content_effects(plain, context, misled)] == ["fix_failed auto"]
    assert effects("the regression is gone.", "-25.0")[0] == "fix_queued suggest"


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("Ada, could you tell us which kernel config you used?", True),
        ("Is your tree based on v6.12?", True),
        ("Ada, please tell us which compiler you used.", True),
        ("Please share your .config.", True),
        ("If you have a patch, please send us the link.", False),
        ("Any thoughts?", False),
        ("Should we make these counters aligned?", False),
        ("Can we merge this option into mainline?", False),
    ],
)
def test_the_lab_asks_somebody_and_not_itself(question: str, asks: bool) -> None:
    unsure = cast(Model, SimpleNamespace(opinion=lambda facts: Opinion({"responded": 0.3, "none": 0.3}, {}, {})))
    effects = content_effects(reading(question, OPERATOR), MailContext(Relation.THREAD, Role.REPORTER), unsure)
    assert [f"{name_of(each)} {each.mode}" for each in effects] == (["needs_info suggest"] if asks else [])


@pytest.mark.parametrize(("likely", "suggested"), [(0.28, ["fix_failed suggest"]), (0.2, [])])
def test_the_outcome_of_a_test_by_the_lab_is_suggested_unless_it_is_unlikely(
    likely: float, suggested: list[str]
) -> None:
    """Few people write these, so that the classifier has learned "Still slow with 6.1.4." from few."""
    thinks = Opinion({"responded": 0.3, "none": 0.3, "fix_failed": likely}, {}, {})
    unsure = cast(Model, SimpleNamespace(opinion=lambda facts: thinks))
    effects = content_effects(
        reading("Still slow with 6.1.4.", OPERATOR), MailContext(Relation.THREAD, Role.REPORTER), unsure
    )
    assert [f"{name_of(each)} {each.mode}" for each in effects] == suggested


@pytest.mark.parametrize(
    ("text", "role", "expected"),
    [
        ("Still slow with your patch.", Role.THIRD_PARTY, "fix_failed"),
        ("I applied it, and nothing changed.", Role.MAINTAINER, "fix_failed"),
        ("This does the trick on our boxes, thanks.", Role.THIRD_PARTY, "fix_confirmed"),
        ("Tested-by: Dana Brook <dana@dev.example>", Role.THIRD_PARTY, "fix_confirmed"),
        ("OK, dropping this one.", Role.AUTHOR, "dropped"),
    ],
)
def test_whoever_tried_a_candidate_or_drops_the_culprit_is_heard(text: str, role: Role, expected: str) -> None:
    """However unlikely the classifier finds it; of a test it never says the opposite."""
    opposite = {"fix_failed": "fix_confirmed", "fix_confirmed": "fix_failed"}.get(expected, "working")
    thinks = Opinion({opposite: 0.8, "responded": 0.1, expected: 0.06}, {}, {})
    unsure = cast(Model, SimpleNamespace(opinion=lambda facts: thinks))
    effects = list(content_effects(reading(text), MailContext(Relation.THREAD, role), unsure))
    assert [name_of(each) for each in effects if each.mode is Mode.SUGGEST and each.kind] == [expected]
    assert opposite == "working" or opposite not in {name_of(each) for each in effects}


def test_that_a_fix_is_in_a_tree_is_believed_only_where_one_was_named() -> None:
    thinks = Opinion({"responded": 0.8, "none": 0.1}, {}, {})
    unsure = cast(Model, SimpleNamespace(opinion=lambda facts: thinks))
    context = MailContext(Relation.THREAD, Role.MAINTAINER)
    answered = {"<x@dev.example>": "auto", "<202609011200.7d3e91c0-perfbot@bot.example.org>": "suggest"}
    for parent, mode in answered.items():
        mail = reading("Applied to net, thanks!", DEVELOPER + f"In-Reply-To: {parent}\n")
        assert f"fix_queued {mode}" in {
            f"{name_of(each)} {each.mode}" for each in content_effects(mail, context, unsure)
        }


@pytest.mark.parametrize(
    "piece", ["\n", " ", "1 +1.2.3% 1 ", "1 +1% 1 +1% 1 a.\n", "1 +1% ", "±", "1" * 20 + " ", "\n "]
)
def test_tables_of_junk_are_read_in_no_time(piece: str) -> None:
    started = time.process_time()
    text = "a" + piece * (1_000_000 // len(piece)) + "a"
    assert candidate_helps(text) in (None, True, False)
    holds_table(text)
    has_content(text, ["Dana"])
    assert time.process_time() - started < 1


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_megabyte_of_its_worst_takes_a_rule_no_second(rule: Rule) -> None:
    """A mail of a megabyte has at most MAX_SENTENCES sentences of MAX_LENGTH letters; each may be a rule's worst."""
    pieces = [f"{word} " for phrase in rule.cue.phrases for word in re.findall(r"[a-z']{2,}", phrase)[:6]] or ["word "]
    worst = 0.0
    for piece in {*pieces[:40], "".join(pieces), "".join(pieces[::-1]), "x " * 8 + pieces[0]}:
        text = (piece * (1_000_000 // len(piece) + 1))[:1_000_000]
        started = time.process_time()
        sentences = own_sentences(lines_in_context(text.replace("x x x x", "x x x x.")))
        for sentence in sentences:
            rule.matches(sentence)
        worst = max(worst, time.process_time() - started)
    assert worst < 1


@given(st.text(max_size=2000))
def test_junk_means_something_or_nothing(text: str) -> None:
    for head in (DEVELOPER, OPERATOR):
        mail = reading(text.encode("utf-8", "replace").decode(), head)
        assert intents_of(mail) == intents_of(mail)
        assert effects_of(mail, MailContext(Relation.THREAD, Role.AUTHOR))


WORDS = sorted({word for rule in RULES for phrase in rule.cue.phrases for word in phrase.split() if word.isalpha()})


@given(st.lists(st.sampled_from(WORDS), max_size=60))
def test_a_salad_of_cues(words: list[str]) -> None:
    for head in (DEVELOPER, OPERATOR):
        effects = effects_of(reading(" ".join(words), head), MailContext(Relation.THREAD, Role.AUTHOR), "open")
        assert sum(each.mode is Mode.AUTO for each in effects) <= 3
        closing = {"expected", "invalid", "duplicate"}
        acts = {str(each.kind) for each in effects if each.mode is Mode.AUTO}
        assert head is OPERATOR or not acts & closing


def test_the_labs_rules_are_its_own() -> None:
    assert {rule.by for rule in OPERATORS} == {"operator"}


@pytest.mark.parametrize(
    "written",
    [
        "3b1f0c9d2e44",
        "`3b1f0c9d2e44`",
        "<3b1f0c9d2e44>",
        '"3b1f0c9d2e44"',
        "commit 3B1F0C9D2E44.",
        "https://git.kernel.org/linus/3b1f0c9d2e44",
        "https://kernel.googlesource.com/linux/+/3b1f0c9d2e44",
        "https://kernel.dance/#3b1f0c9d2e44",
        "https://git.kernel.org/pub/scm/tip.git/commit/?id=3b1f0c9d2e44",
        "v6.12-rc3-17-g3b1f0c9d2e44",
    ],
)
@pytest.mark.parametrize("word", ["fix", "fixed", "fixes", "fixed-by", "fixed by", "fixed in"])
def test_a_fix_is_named_by_its_sha_in_many_ways(word: str, written: str) -> None:
    (named, *_) = effects_of(reading(f"#lkp {word}: {written}"), MailContext(Relation.THREAD, Role.AUTHOR), "open")
    assert (named.kind, named.remark, named.title) == (EventKind.FIX_PROPOSED, "3b1f0c9d2e44", "")


@pytest.mark.parametrize(
    ("written", "title", "remark"),
    [
        ("mm/vmscan: stop it (3b1f0c9d2e44)", "mm/vmscan: stop it", "3b1f0c9d2e44"),
        ('"mm/vmscan: stop it" (commit 3b1f0c9d2e44).', "mm/vmscan: stop it", "3b1f0c9d2e44"),
        ("mm/vmscan: stop it <https://lore.kernel.org/r/1@x>", "mm/vmscan: stop it", "https://lore.kernel.org/r/1@x"),
        ("[mm/vmscan: stop it](https://lore.kernel.org/r/1@x)", "mm/vmscan: stop it", "https://lore.kernel.org/r/1@x"),
        ("https://lore.kernel.org/r/1@x (mm/vmscan: stop it)", "mm/vmscan: stop it", "https://lore.kernel.org/r/1@x"),
        ("https://x.example/a_(b)/c", "", "https://x.example/a_(b)/c"),
        ("3b1f0c9d2e44 (mm: undo 0123456789ab)", "mm: undo 0123456789ab", "3b1f0c9d2e44"),
        ("3b1f0c9d2e44 mm/vmscan: stop it (abcdef0123)", "mm/vmscan: stop it (abcdef0123)", "3b1f0c9d2e44"),
        ("1000000 pages are enough", "1000000 pages are enough", ""),
        (
            "mm: call walk() once <https://lore.kernel.org/r/1@x>",
            "mm: call walk() once",
            "https://lore.kernel.org/r/1@x",
        ),
        ("mm: call walk(): https://lore.kernel.org/r/1@x", "mm: call walk()", "https://lore.kernel.org/r/1@x"),
        ("mm: stop it [1] https://lore.kernel.org/r/1@x", "mm: stop it [1]", "https://lore.kernel.org/r/1@x"),
        ('commit 1234567890 ("mm: stop it")', "mm: stop it", "1234567890"),
        ("1234567890 mm: stop it", "mm: stop it", "1234567890"),
        ("1234567", "", "1234567"),
        ("1000000 pages are enough (3b1f0c9d2e44)", "1000000 pages are enough", "3b1f0c9d2e44"),
        ("see https://lore.kernel.org/r/1@x.", "", "https://lore.kernel.org/r/1@x"),
    ],
)
def test_what_names_a_fix_may_stand_beside_other_words(written: str, title: str, remark: str) -> None:
    (named, *_) = effects_of(reading(f"#lkp fix: {written}"), MailContext(Relation.THREAD, Role.AUTHOR), "open")
    assert (named.title, named.remark) == (title, remark)


@pytest.mark.parametrize("name", ["20260311041200.12345-1-dana@dev.example", "3b1f0c9d2e44-dirty@x.example"])
def test_a_message_id_is_no_sha(name: str) -> None:
    fix = effects_of(reading(f"#lkp fix: <{name}>"), MailContext(Relation.THREAD, Role.AUTHOR), "open")[0]
    assert (fix.remark, fix.title) == (f"https://lore.kernel.org/r/{name}", "")


@pytest.mark.parametrize(
    "written",
    [
        "mm/vmscan: stop it",
        "`mm/vmscan: stop it`",
        "Subject: mm/vmscan: stop it",
        '"mm/vmscan: stop it"',
        "“mm/vmscan: stop it”",
        "„mm/vmscan: stop it“",
        "« mm/vmscan: stop it »",
        "'mm/vmscan: stop it'",
        "‘mm/vmscan: stop it’.",
        '("mm/vmscan: stop it")',
    ],
)
def test_a_title_in_quotes_is_the_title(written: str) -> None:
    (by_command, *_) = effects_of(reading(f"#lkp fix: {written}"), MailContext(Relation.THREAD, Role.AUTHOR), "open")
    assert by_command.title == "mm/vmscan: stop it"
    if written[0] in '"“„«':
        assert effect(f"This should be fixed by {written}").title == "mm/vmscan: stop it"
