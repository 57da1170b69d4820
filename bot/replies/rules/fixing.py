"""Fixes elsewhere: posted, queued, or named by title or sha."""

from __future__ import annotations

from bot.replies.intents import Intent
from bot.replies.rules.rule import Mode, Rule, Trap, words
from bot.replies.rules.traps import CONDITIONAL, NEGATED, REPORTED
from tracker.domain.events import EventKind

_NOT = Trap("has a negation", words("<not>"))

RULES = (
    Rule(
        name="fix_queued",
        intent=Intent.FIX_ELSEWHERE,
        says="""A fix is said to be in a tree: "a patch with a fix landed to the mm tree".""",
        cue=words(
            "<patch> …… <landed> now|up? to|in|into|for|on|by|upstream",
            "already|now includes|include|contains|has|have it|this|that|the_fix|the_patch|the_series",
            "already|now|been|is|was|it's fixed|merged|queued|applied? in|into the|my|our? <tree>",
            "part of … pull_request|pull|series",
            "<patch>|follow-up|followup is|are already|now|also? in the|my|our? <tree>",
        ),
        unless=(NEGATED, REPORTED),
        question=False,
        does=EventKind.FIX_QUEUED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="applied",
        intent=Intent.FIX_ELSEWHERE,
        says="""A sentence that begins with "applied", "queued" or "merged", as maintainers answer a patch.""",
        cue=words("^ ok|okay|thanks|both|all|series|now|great|i've|i_have? applied|queued|picked_up|merged"),
        unless=(NEGATED, CONDITIONAL),
        question=False,
        does=EventKind.FIX_QUEUED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="claims_fixed_by",
        intent=Intent.CLAIMS_FIXED_BY,
        says="""A commit, a patch or a link is named as the fix: "should be fixed by the commit …".""",
        cue=words(
            "fixed|resolved|addressed|solved|cured|covered|mitigated|restored … by|in|with the|this? <named>",
            "should|will|would|might|may be fixed|resolved|addressed|solved|mitigated … by|in|with",
            "<named> …… should|will|would|might|may|does … fix|resolve|address|solve|help|cure|mitigate",
            "/[0-9a-f]{8,40}/ …… <fixes> it|this|that|the … <regression>?",
            "taken care of by|in|with",
            "<named> …… takes care of",
            "already addressed|fixed|solved|resolved upstream|mainline",
            "patch|commit|series titled|called|named …… <fixes>",
            "<named> …… looks_relevant|is_relevant|addresses|addressed|is_about",
            "same … as|that <named>",
        ),
        unless=(_NOT, REPORTED),
        question=False,
        does=EventKind.FIX_PROPOSED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="fix_posted",
        intent=Intent.FIX_ELSEWHERE,
        says="""A fix is said to be posted elsewhere: "I've sent a patch", "the patch in my reply".""",
        cue=words(
            "<i have> just|already|also? posted|reposted|re-posted|sent|sent_out|submitted|mailed … <patch>",
            "the|this|that|my patch|fix|series in|from my|the|your? reply|previous|other|last",
            "fix|patch for_it|for_this? is|was|can_be|has_been posted|sent|found|at|here",
            "try|test|see … <patch> … /https?:\\S+/",
            "<i have> … pushed|put|uploaded …… fix|patch|branch|candidate",
            "he|she has already? sent|posted|submitted a|the … fix|patch|series",
            "which|that i already|just? posted|sent|mailed|submitted|reposted|re-posted",
            "there's|there_is … patch|fix|series … from|by|on|posted",
        ),
        unless=(NEGATED,),
        question=False,
        does=EventKind.FIX_PROPOSED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="says_fixed",
        intent=Intent.HUMAN_CONFIRMS_FIX,
        says="""A developer measured that a fix restores the result: "with the patch the regression is gone".""",
        cue=words(
            "<regression> …… <is now> … <gone>",
            "<patch>|it|this <fixes> it|this|that|the … <regression>",
            "<performance> … <is now> back|restored|recovered",
            "with … <patch>|/[0-9a-f]{8,40}/ …… back at|to",
        ),
        unless=(NEGATED, CONDITIONAL, REPORTED),
        question=False,
        does=EventKind.FIX_CONFIRMED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="rejects_patch",
        intent=Intent.REJECTS_PATCH,
        says="""A patch is rejected: "not the right way to fix this", "NAK", "this does not apply to …".""",
        cue=words(
            "<not> … the right|correct|proper way|fix|approach|thing|solution",
            "wrong way|fix|approach|solution",
            "nak|nack|nacked|self-nak",
            "<patch> … doesn't|does_not|won't|will_not|didn't <help>",
            "doesn't|does_not|don't apply",
            "<not> … it|this|that will|would … make_any_difference|work|help|fix",
            "i don't|do_not like this|the|that <patch>|approach|idea",
        ),
        question=False,
        does=EventKind.FIX_WITHDRAWN,
        mode=Mode.SUGGEST,
        aside=True,
    ),
)
