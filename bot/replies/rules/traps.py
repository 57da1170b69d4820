"""What spoils a cue: a "not", a condition, a hedge, or that somebody else is quoted."""

from __future__ import annotations

from bot.replies.rules.rule import Trap, words

NEGATED = Trap("says not or never beside it", words("<not>"), near=True)
CONDITIONAL = Trap("has a condition", words("if|unless|whether|assuming|in_case|provided_that"))
HEDGED = Trap(
    "is hedged there",
    words("may|might|could|perhaps|maybe|probably|possibly|hopefully|should|i_think|i_guess"),
    near=True,
)
REPORTED = Trap(
    "tells what others say",
    words(
        "he|she|they|somebody|someone|people|user|users just|already|also? said|says|told|mentioned|mentions|"
        "claims|claimed|wrote|suggested|argued",
        "/(?-i:[A-Z][a-z]+)(?: just| already| also)? (?:said|says|told|mentioned|mentions|claims|claimed|wrote|"
        "suggested|argued)/",
        "according to",
    ),
)
