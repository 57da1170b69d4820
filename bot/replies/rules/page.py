"""docs/reading.md, made of the rules themselves: a row a rule, with its words and how it fared."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot.replies.rules import OPERATORS, RULES, Mode, Rule
from bot.replies.rules.vocabulary import VOCABULARY

MEASURED = Path(__file__).parent / "measured.json"
_HEAD = """\
# How replies are read

This page is made of the rules in `bot/replies/rules/` by `make reading`; a test keeps both alike.

Perfwork reads a reply sentence by sentence: what the writer wrote himself, without quotes, signature, code, tables and
the message of a patch. The first rule of the table that fits and has an effect decides what the mail does; others in
the same mail only suggest. A suggestion waits in the [inbox](/inbox/) for a click. What developers write first of all
ends the silence: a reply of substance by author or maintainer makes the report "responded", whatever else it says.

**By themselves act**, without any sentence: a patch that a person sends in a reply, or posts with `Closes:` or `Link:`
to the report ("fix proposed"; a debug patch, or one of the lab, only suggests; a patch elsewhere that merely says
`Fixes:` of the culprit, too); a notice of tip-bot or patchwork-bot that the patch was applied ("fix queued"); a
comparison table by the lab (the question is answered); a `Tested-by:` of the lab ("fix confirmed"); and the
[commands](/help/answering/).

**Who wrote it** decides how far that goes (`PERFWORK_TRUST`): under `verified`, what closes a report and what commands
need proof, and a mail that a proof speaks against moves nothing; under `open` all mail counts; under `maintainers`
only proven mail of author and maintainers acts. Proof is a DKIM signature of the writer's own domain whose key is
known, an `Authentication-Results` header of a trusted server above the line with which that server took the mail in,
or a developer's signature (patatt) with a key of the keyring. A mail without any signature from a domain that is known
to sign counts as contradicted.

**Where rules err**, those of the two tables of sentences are switched off by name (`PERFWORK_RULES_OFF`), and the
inbox shows how people decided.

How to read the words: `a|b` one of these · `word*` any ending · `word?` may be missing · `…` up to three words
between, `……` up to eight · `<name>` one of a list below · `^` the sentence begins, `$` it ends. The last column tells
how often a rule decided in the labelled threads of development, and how often rightly; rules without an effect, or
that did not decide there, tell how often they read their intent in them, and how often the label has it.
"""


def measured() -> dict[str, Any]:
    """How the rules fared, as `make reading` wrote it down."""
    found: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


def page(fared: Mapping[str, Any]) -> str:
    """The whole page in Markdown."""
    lab = [rule for rule in RULES if rule in OPERATORS]
    others = [rule for rule in RULES if rule not in OPERATORS]
    return "\n".join(
        (
            _HEAD,
            f"Measured {fared['on']}: {fared['summary']}\n",
            "## What the lab's own people write\n",
            _table(lab, fared),
            "## What everybody else writes\n",
            _table(others, fared),
            "## What needs no sentence\n",
            _facts(),
            "## Lists of words\n",
            *(f"- `<{name}>`: {_listed(words)}" for name, words in VOCABULARY.items()),
            "",
        )
    )


# What is read without a sentence, by the names that the inbox and `explain` show.
FACTS = {
    "reply_of_author": "author or maintainer says something of substance: responded, by itself",
    "patch_in_reply": "a person answers with a patch: fix proposed, by itself",
    "patch_closes_report": "a patch posted elsewhere has `Closes:` or `Link:` to the report: fix proposed, by itself",
    "patch_names_culprit": "a patch elsewhere says `Fixes:` of the culprit, or reverts it: suggested",
    "debug_patch": "a patch that is called a debug patch: fix proposed, suggested",
    "asks_test_of_patch": "a patch comes with the wish to have it tested: the reporter is awaited",
    "merge_notice": "tip-bot or patchwork-bot tell that a patch was applied: fix queued, by itself",
    "operator_measured": "the lab shows a comparison of parent and culprit: answered, by itself",
    "operator_compares": "the lab shows parent, culprit and candidate without a word of the outcome: suggested",
    "operator_answers": "the lab writes below a quoted question: answered, by itself; suggested where it asks back",
    "operator_tells": "the lab states something, and neither asks nor promises: answered, by itself",
    "operator_tested_by": "the lab gives its `Tested-by:`: fix confirmed, by itself",
    "unsure_report": "a robot's report contradicts itself: reported, suggested",
}


def _facts() -> str:
    rows = [f'| <a id="{name}"></a>{name} | {says} |' for name, says in FACTS.items()]
    return "\n".join(("| name | what is read, and what follows |", "| --- | --- |", *rows)) + "\n"


def _table(rules: list[Rule], fared: Mapping[str, Any]) -> str:
    rows = ["| rule | what it means | words | not in a sentence that | what follows | seen |", "| --- " * 6 + "|"]
    rows += (
        f'| <a id="{rule.name}"></a>{rule.name} | '
        f"{' '.join(rule.says.split())} *{rule.intent}* | {_phrases(rule)} "
        f"| {'; '.join(_unless(rule))} | {_follows(rule)} | {_seen(rule, fared)} |"
        for rule in rules
    )
    return "\n".join(rows) + "\n"


# What Markdown would take for its own, within HTML too.
_MARKS = {ord(mark): f"&#{ord(mark)};" for mark in "|*_\\[]`"}


def _phrases(rule: Rule) -> str:
    return "<br>".join(f"<code>{html.escape(phrase).translate(_MARKS)}</code>" for phrase in rule.cue.phrases)


def _unless(rule: Rule) -> list[str]:
    spoilt = [trap.says for trap in rule.unless]
    if rule.question is not None:
        spoilt.append("asks" if rule.question is False else "does not ask")
    if rule.to_reporter:
        spoilt.append("is addressed to somebody else than the reporter")
    if rule.improvement is not None:
        spoilt.append("is about a regression" if rule.improvement else "is about an improvement")
    return spoilt


def _follows(rule: Rule) -> str:
    if rule.does is None:
        return "nothing, it is shown"
    how = "by itself" if rule.mode is Mode.AUTO else "suggested"
    extra = (
        ", where no rule above decides" if rule.alone else ", beside what the mail does otherwise" if rule.aside else ""
    )
    return f"{rule.does.replace('_', ' ')}, {how}{extra}"


def _seen(rule: Rule, fared: Mapping[str, Any]) -> str:
    if rule.name in fared["decided"]:
        times, right = fared["decided"][rule.name]
        return f"{right} of {times}"
    read, right, _ = fared["intents"].get(rule.intent, (0, 0, 0))
    return f"intent {right} of {read}" if read else "never"


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)
