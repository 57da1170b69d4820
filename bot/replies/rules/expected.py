"""The change is accepted as expected. A developer's plain English never closes a report alone (DESIGN rule 4)."""

from __future__ import annotations

from bot.replies.intents import Intent
from bot.replies.rules.rule import Mode, Rule, Trap, words
from bot.replies.rules.traps import CONDITIONAL, REPORTED
from tracker.domain.events import EventKind

_DENIED = Trap("negates it", words("<not> … expected|intended|intentional|acceptable|by_design|within|known"))

RULES = (
    Rule(
        name="expected",
        intent=Intent.EXPECTED_WONTFIX,
        says="""The change is said to be expected, intended or acceptable: "this is expected".""",
        cue=words(
            "<thing> <is> … /expected(?! to)/|intended|intentional|by_design|unavoidable|inevitable|acceptable|"
            "unsurprising|harmless",
            "that's|it's … /expected(?! to)/|intended|intentional|by_design|unavoidable|inevitable|acceptable",
            "nothing unexpected|surprising",
            "knew about|of this|that|it|the",
            "^ yes? expected|unavoidable|inevitable|intentional|intended",
            "<not> … surprise|surprising",
            "within the|an? … acceptable|expected|noise range|level|margin|limit*",
            "expected|known|intended|necessary|inevitable tradeoff|trade-off|cost|side-effect|consequence|result|"
            "regression|slowdown",
        ),
        unless=(_DENIED, CONDITIONAL, REPORTED),
        question=False,
        improvement=False,
        does=EventKind.EXPECTED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="accepts_cost",
        intent=Intent.EXPECTED_WONTFIX,
        says="""The cost is accepted for another benefit: "ok to eat a regression for correctness".""",
        cue=words(
            "ok|okay|fine|willing|happy|acceptable to|with eat|take|pay|live_with|accept|swallow …… <regression>|"
            "hit|cost|price|that|it",
            "trade|trades|trading … for|against",
            "tradeoff|trade-off|trade_off",
            "correctness comes|is|goes|over|trumps|first|beats|matters",
            "price|cost|penalty … pay",
            "is|are|was the price|cost of|for",
            "can|could|will|have_to|need_to|we'll live with",
        ),
        unless=(REPORTED,),
        question=False,
        improvement=False,
        does=EventKind.EXPECTED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="wont_act",
        intent=Intent.EXPECTED_WONTFIX,
        says="""The writer will not act on it: "I'm not going to look at this any further", "I don't think we care".""",
        cue=words(
            "<i am> not going_to|planning_to|gonna look|fix|do|change|worry|spend|work|bother|investigate|chase|care",
            "<i> won't|will_not fix|send|look|worry|spend|bother|change|do_anything|pursue",
            "<i> don't|do_not … care|worry|bother",
            "<not> … worth fixing|worrying|bothering|the_effort|it",
            "<not>|nothing … to? worry_about|need_fixing|need_to_be_fixed",
            "not a real? concern|problem|bug|regression",
            "nothing|anything to fix|do|be_done|worry_about",
            "works|working as intended|designed|expected",
            "<i am> not going_to lose_sleep",
            "leave it|this alone|as_is|as_it_is",
            "rather not touch|change|bother|spend",
            "which_is what …… sets_out|supposed|intended|meant to",
            "keep|leave the|this patch|commit|change|code for_now|as_is|as_it_is|anyway|in",
        ),
        unless=(CONDITIONAL, REPORTED),
        question=False,
        improvement=False,
        does=EventKind.EXPECTED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="keep_open",
        intent=Intent.KEEP_OPEN,
        says="""The report should stay open: "please keep this open".""",
        cue=words("keep this|it|the_report|the_issue open", "don't|do_not close this|it|the"),
    ),
)
