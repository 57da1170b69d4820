"""Someone is working on a fix, or promises one."""

from __future__ import annotations

from bot.replies.intents import Intent
from bot.replies.rules.rule import Mode, Rule, Trap, words
from bot.replies.rules.traps import CONDITIONAL, NEGATED, REPORTED
from tracker.domain.events import EventKind

_ELSE = Trap("leaves it to others", words("or_i will|can|could", "someone|somebody else"))

RULES: tuple[Rule, ...] = (
    Rule(
        name="working_on_fix",
        intent=Intent.WORKING_ON_FIX,
        says="""The writer is working on a fix or promises one, unconditionally: "I'll get this fixed up".""",
        cue=words(
            "<i will> … <make> … <new patch>",
            "<i will> … <mend> it|this|that|these|up|things",
            "<i will> get it|this|that|these fixed|sorted|addressed|resolved",
            "<i will> …… send|post|submit it|this|that|them",
            "<i am> … working_on|preparing|writing|cooking_up|finalizing … it|this|<new patch>|fixing",
            "<i> already? have a|the|some … <new patch> ready|queued|for|in_the_works|in_progress|in_testing",
            "<i will> rewrite|redo|revisit|rework <culprit>",
            "/v\\d+/|new_version|next_version will have|fix|bring|restore|address",
            "new|next version|series|patch|/v\\d+/ … soon|tomorrow|shortly|next_week|this_week|in_a_week|in_a_day",
            "write|prepare … proper changelog|commit_message|patch|description",
            "formal|formally patch|posting|post|send|submit",
            "<i have> … half working|done|finished|baked",
            "^ ok|okay|sure|yes|right|oh|thanks? will fix|respin|send_a|post_a|prepare_a",
            "^ ok|okay|sure|yes|right|oh? will <make> … <new patch>",
            "fix|patch is? coming|on_its_way|on_the_way|in_the_works|underway",
        ),
        unless=(CONDITIONAL, REPORTED, _ELSE),
        question=False,
        does=EventKind.WORKING,
        mode=Mode.AUTO,
    ),
)

# Tried after the requests and the disputes, which are clearer.
LATER: tuple[Rule, ...] = (
    Rule(
        name="may_work_on_fix",
        intent=Intent.WORKING_ON_FIX,
        says="""A fix is considered, tried, or offered conditionally: "could you send a patch or I will do it", "I
        need to work out how".""",
        cue=words(
            "<i will> … <make> … <new patch>",
            "<i will> … <mend>",
            "or|otherwise i will|can|could … do|send|fix",
            "see what|whether|if i can … do|improve|fix|recover|shave",
            "will send|post that|it|this out?",
            "<i want> … <mend>",
            "<i want> … check|figure|find|work|think|look|sort|see|decide|understand|determine … how|what|which|"
            "where|way",
            "should_be|looks|seems … easy|simple|trivial|straightforward to fix",
            "let_me see|think|try … fix|improve|avoid|rework|solve|how",
            "<i> can|could|should <make> … patch|fix",
        ),
        unless=(NEGATED, REPORTED),
        question=False,
        does=EventKind.WORKING,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="needs_owner",
        intent=Intent.NEEDS_OWNER,
        says="""Someone else is needed: "someone who knows this code should look".""",
        cue=words(
            "someone|somebody|anyone|anybody …… should|needs_to|has_to|could|can|to fix|look|step|take|work",
            "who|anyone … can|could|will|wants_to fix|look|take",
        ),
    ),
)
