"""Requests to the reporter: to run something, to provide data, to explain."""

from __future__ import annotations

from bot.replies.intents import Intent
from bot.replies.rules.rule import Mode, Rule, Trap, words
from bot.replies.rules.traps import REPORTED
from tracker.domain.events import EventKind

_MEANS = Trap(
    "asks what someone means or wants",
    words(
        "do|did you mean",
        "you mean|want|think",
        "should|shall|can|do|did i|we",
        "am|are i|we",
        "isn't|aren't|wouldn't|shouldn't|doesn't|right $",
        "right $",
    ),
)
_TAKEN_BACK = Trap("withdraws the request", words("no need", "never mind"))

RULES = (
    Rule(
        name="asks_rerun",
        intent=Intent.ASKS_TEST,
        says="""The reporter is asked to run something: "can you rerun this test", "any chance you could try that".""",
        cue=words(
            "<can you> … <run>",
            "please … test|retest|re-test|rerun|re-run|try|verify|repeat|bisect|run",
            "worth a? retest|re-test|rerun|re-run|retry|try",
            "let me|us know if|whether|how it|this|that|the … <help>|makes|changes",
            "is there a? way|chance to|that|you … <run>|put",
            "does|would|will this|that|it|the_patch|the_below|the_following patch? help|fix|improve|restore|recover"
            "|change|make_any_difference|make_a_difference",
            "do|does|did you|it|this|that … still see|happen|reproduce|occur|show|there",
        ),
        unless=(_TAKEN_BACK, REPORTED),
        to_reporter=True,
        does=EventKind.ASKED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="asks_data",
        intent=Intent.ASKS_INFO,
        says="""Data or an explanation is requested explicitly: "can you share the config".""",
        cue=words("<can you>|please … <give>", "i have some|a_few|several? question*"),
        unless=(_TAKEN_BACK, REPORTED),
        to_reporter=True,
        does=EventKind.ASKED,
        mode=Mode.AUTO,
    ),
)

# Tried after the dispute rules: a question in a mail that disputes the report is part of the dispute.
LATER = (
    Rule(
        name="asks_info",
        intent=Intent.ASKS_INFO,
        says="""A question about the test, machine, metric or configuration: "what exactly is app_overhead?\"""",
        cue=words(
            "what|which|how|where|when|is|are|was|were|does|do|did|has|have|any|can|could …… <topic>",
            "what|which … is|does|are|do|it|this|that",
        ),
        unless=(_MEANS, REPORTED),
        question=True,
        to_reporter=True,
        does=EventKind.ASKED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="reproducer_broken",
        intent=Intent.REPRODUCER_BROKEN,
        says="""The published reproducer does not work: "following the instructions, it fails to install".""",
        cue=words(
            "reproducer|reproduce|repro|repro-script|instructions|lkp|lkp-tests|job|script …… fail|fails|failed|"
            "broken|unable|missing",
            "reproducer|repro|repro-script|instructions|lkp|lkp-tests|script … doesn't|does_not|didn't|did_not|"
            "cannot|can't work|run|install|build",
            "<i cannot> … run|install|build|set_up|use … reproducer|repro|lkp|lkp-tests|job|benchmark|script",
        ),
        does=EventKind.ASKED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="asks_status",
        intent=Intent.ASKS_STATUS,
        says="""Someone asks for the status: "any update on this?\"""",
        cue=words(
            "any update*|news|progress|plans",
            "what's|what_is the status|plan|state",
            "has|was|is this|that|it|the_regression|the_issue … fixed|resolved|addressed|solved",
        ),
        question=True,
    ),
    Rule(
        name="retracts_request",
        intent=Intent.RETRACTS_REQUEST,
        says="""An earlier request is withdrawn: "no need to test this".""",
        cue=words(
            "no need to test|rerun|re-run|try|retest|bother",
            "disregard|ignore my|this|that|the … request|patch|mail|question",
            "never mind",
        ),
    ),
)
