"""The rules that read plain English: few and general, in order of precedence.

One file per theme, in the notation of phrases.py; docs/reading.md is generated from them (`make reading`), one row per
`Rule`. The first matching rule with an effect is what the rules say of the mail; classifier/decide.py weighs it.
To add a rule: a `Rule` in the file of its theme, sample sentences in tests/bot/replies/test_rules.py, then
`make reading`, which measures it on the labelled threads. Never add a rule for one known mail.
"""

from __future__ import annotations

from bot.replies.rules import asking, closing, fixing, operators
from bot.replies.rules.notation import By, Mode, Rule

__all__ = ["OPERATORS", "RULES", "UNMEASURED", "By", "Mode", "Rule"]

UNMEASURED: tuple[Rule, ...] = operators.UNMEASURED
OPERATORS: tuple[Rule, ...] = (*operators.RULES, *UNMEASURED, *operators.LATER)
RULES: tuple[Rule, ...] = (
    *OPERATORS,
    *closing.DROPS_RULES,
    *fixing.RULES,
    *fixing.WORKING_RULES,
    *closing.EXPECTED_RULES,
    *asking.ASKS_RULES,
    *closing.RULES,
    *fixing.LATER,
    *asking.ASKS_LATER,
    *fixing.IMPROVEMENTS_RULES,
    *asking.RULES,
    *closing.LATER,
    *asking.LATER,
)
