"""What rules out a cue: a negation, a condition, a hedge, or reported speech."""

from __future__ import annotations

from bot.replies.rules.rule import Trap, words

NEGATED = Trap("has a negation in the same clause", words("<not>"), near=True)
CONDITIONAL = Trap("has a condition", words("if|unless|whether|assuming|in_case|provided_that"))
HEDGED = Trap(
    "hedges in the same clause",
    words("may|might|could|perhaps|maybe|probably|possibly|hopefully|should|i_think|i_guess"),
    near=True,
)
REPORTED = Trap(
    "reports what others say",
    words(
        "he|she|they|somebody|someone|people|user|users just|already|also? said|says|told|mentioned|mentions|"
        "claims|claimed|wrote|suggested|argued",
        "/(?-i:[A-Z][a-z]+)(?: just| already| also)? (?:said|says|told|mentioned|mentions|claims|claimed|wrote|"
        "suggested|argued)/",
        "according to",
    ),
)
