"""The rules by which plain English is read: few, general, in the order in which they count.

One file a theme, one `Rule` a row, in the notation of phrases.py; docs/reading.md is generated from them
(`make reading`). Of the rules with an effect the first that fits decides what the mail does; others only suggest.
To add a rule: a row in the file of its theme, its sentences in tests/bot/test_rules.py, then `make reading`, which
counts how it fares on the labelled threads. Never a rule for one known mail.
"""

from __future__ import annotations

from bot.replies.rules import asks, disputes, drops, engages, expected, fixes, improvements, operators, working
from bot.replies.rules.rule import By, Mode, Rule

__all__ = ["OPERATORS", "RULES", "UNMEASURED", "By", "Mode", "Rule"]

UNMEASURED: tuple[Rule, ...] = operators.UNMEASURED
OPERATORS: tuple[Rule, ...] = (*operators.RULES, *UNMEASURED, *operators.LATER)
RULES: tuple[Rule, ...] = (
    *OPERATORS,
    *drops.RULES,
    *fixes.RULES,
    *working.RULES,
    *expected.RULES,
    *asks.RULES,
    *disputes.RULES,
    *working.LATER,
    *asks.LATER,
    *improvements.RULES,
    *engages.RULES,
    *disputes.LATER,
    *engages.LATER,
)
