"""Replies to a reported improvement."""

from __future__ import annotations

from bot.replies.intents import Intent
from bot.replies.rules.rule import Mode, Rule, Trap, words
from tracker.domain.events import EventKind

RULES = (
    Rule(
        name="improvement_suspicious",
        intent=Intent.IMPROVEMENT_SUSPICIOUS,
        says="""A reported improvement is seen as a sign of a bug: "that means we don't flush any more".""",
        cue=words(
            "suspicious|worried|worrying|worry|concern|concerns|concerned|alarming|too_good|unexpected|odd|"
            "strange|weird|curious|wrong|bug",
            "<not> … expected|intended|right|correct|supposed",
            "improvement suggests|means|implies|indicates we|it|that … <not>|skip*|miss*|lost",
        ),
        improvement=True,
        does=EventKind.RESPONDED,
        mode=Mode.SUGGEST,
        alone=True,
    ),
    Rule(
        name="improvement_ack",
        intent=Intent.IMPROVEMENT_ACK,
        says="""An improvement is accepted or explained: "this is entirely feasible", "nice".""",
        cue=words(
            "feasible|expected|plausible|great|good|nice|cool|excellent|awesome|intended|goal|hoped|glad|happy|welcome",
            "makes sense",
            "because|due_to",
            "gladly|happily take",
        ),
        unless=(
            Trap("wonders or negates", words("unexpected|wonder", "<not> … expected|great|good|nice|intended|happy")),
        ),
        question=False,
        improvement=True,
        does=EventKind.RESPONDED,
        mode=Mode.AUTO,
        alone=True,
    ),
)
