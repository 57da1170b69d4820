"""The rules that read plain English: few and general, in order of precedence.

One file per theme, in the notation of notation.py; docs/reading.md is generated from them (`make reading`), one row per
`Rule`. The first matching rule with an effect is what the rules say of the mail; `decide` in classifier.py weighs it.
To add a rule: a `Rule` in the file of its theme with sentences that it reads and others that only look like them, which
are its test; then `make reading`, which judges it on the invented threads of fixtures/replies/threads/. Never add a
rule for one known mail.
"""

from bot.replies.rules import asking, closing, fixing, operators, persons
from bot.replies.rules.notation import Rule

OPERATORS: tuple[Rule, ...] = operators.RULES
RULES: tuple[Rule, ...] = (
    *OPERATORS,
    *persons.USERS,
    *persons.DEVELOPERS,
    *closing.DROPS,
    *fixing.FIXES,
    *closing.EXPECTED,
    *asking.REQUESTS,
    *closing.DISPUTES,
    *fixing.CONSIDERED,
    *asking.QUESTIONS,
    *fixing.IMPROVEMENTS,
    *asking.PROMISES,
    *closing.DOUBTS,
    *asking.SHOWN,
)
