"""The culprit is dropped or reverted, or someone asks for it."""

from __future__ import annotations

from bot.replies.intents import Intent
from bot.replies.rules.rule import Mode, Rule, Trap, words
from bot.replies.rules.traps import CONDITIONAL, HEDGED, NEGATED, REPORTED
from tracker.domain.events import EventKind

RULES = (
    Rule(
        name="announces_drop",
        intent=Intent.ANNOUNCES_DROP,
        says="""The writer has dropped or reverted the culprit, or decided to: "I've dropped it", "we decided to drop
        this patch". Dropping something else (a flag, a lock) does not count.""",
        cue=words(
            "<i have> now|just|already|since? dropped|removed|kicked_out|withdrawn <culprit>",
            "<i have> now|just|already|since? pulled|taken|took|kicked|removed <culprit> … out_of|from",
            "agreed|decided to take|pull|kick|throw <culprit> … out|from",
            "decided|agreed to <drop> <culprit>",
            "<culprit> has_been|have_been now|already? dropped",
            "dropped|removed now? from the|my|our? <tree>",
        ),
        unless=(NEGATED, CONDITIONAL, HEDGED, REPORTED),
        question=False,
        does=EventKind.DROPPED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="will_drop",
        intent=Intent.ANNOUNCES_DROP,
        says="""The writer is about to drop or revert it, or has reverted it, even for a test: "I'll drop it", "let's
        revert this".""",
        cue=words(
            "<i have> now|just|already|since? reverted <culprit>",
            "<culprit> has_been|have_been|was|were|got now|already? reverted|backed_out|dropped",
            "<i will> … <drop> <culprit>",
            "<i want> … <drop> <culprit>",
            "<i will> send|post|queue|do a|the revert",
            "let's|let_us|feel_free_to just|please? <drop> <culprit>",
            "will|to be dropped|reverted",
            "fine|ok|okay with dropping|reverting",
        ),
        unless=(NEGATED, REPORTED),
        question=False,
        does=EventKind.DROPPED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="requests_drop",
        intent=Intent.REQUESTS_DROP,
        says="""Someone asks to drop or revert it: "can you remove this patch from for-next".""",
        cue=words(
            "can|could|would|will|please|should|shall|must|need_to|have_to|better|suggest|propose … <drop> <culprit>",
            "suggest|propose|consider … dropping|reverting|removing <culprit>",
            "shouldn't|why_not … <culprit>|we … be? <dropped>|<drop>",
            "<culprit> should|must|needs_to|has_to|ought_to be <dropped>",
            "^ please? drop|revert <culprit>",
        ),
        unless=(
            Trap("says not to", words("not|don't|never|no_need_to|rather_than drop|revert|remove|dropping|reverting")),
            REPORTED,
        ),
        does=EventKind.DROPPED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="rejects_drop",
        intent=Intent.REJECTS_DROP,
        says="""The writer argues against a revert: "I'd rather not revert it".""",
        cue=words(
            "<not> … revert|reverting|drop|dropping <culprit>", "no need|no_reason|against … revert|reverting|drop"
        ),
        question=False,
    ),
)
