"""docs/ as a site, and its parts that are written from code: the reference, and the page of rules.

The reference is Markdown: commands, keys, states and events, addresses of the API. docs/reading.md is generated from
the rules, one row per rule, with its phrases and its accuracy.

The site is built into a directory, whole or not at all: a broken link is an error, an earlier site is replaced only
by a complete one, and a directory with anything else in it is refused.
"""

import html
import json
import os
import re
import subprocess
import sys
import tempfile
from argparse import SUPPRESS
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.core.management import get_commands, load_command_class
from django.core.management.base import DjangoHelpFormatter

from bot.errors import Unreadable
from bot.replies.rules import OPERATORS, RULES
from bot.replies.rules.notation import VOCABULARY, Mode, Rule
from tracker.api.tables import api
from tracker.domain.events import CLOSED, EventKind, State, Verdict
from tracker.domain.report_state import STEPS, ReportState, status_text
from tracker.services.report_actions import ACTION_KEYS

# --- Reference ---

# The options that Django gives to every command.
_DJANGOS = frozenset(
    {"--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color"}
    | {"--skip-checks"}
)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table. Cells are one line each; a bar in them is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def commands() -> str:
    """Return what `--help` prints of each command of ours, in a terminal of 80 columns."""
    parts: list[str] = []
    for name in sorted(name for name, app in get_commands().items() if app == "bot"):
        parser = load_command_class("bot", name).create_parser("./manage.py", name)
        parser.formatter_class = lambda *, prog: DjangoHelpFormatter(prog, width=78)  # whatever terminal builds it
        for action in parser._actions:
            if _DJANGOS.intersection(action.option_strings):
                action.help = SUPPRESS
        parts.append(f"## {name}\n\n```text\n{parser.format_help().strip()}\n```")
    return "\n\n".join(parts)


def action_keys() -> str:
    """Return the actions of the triage page: key, label, what is asked for, and the event that is recorded."""
    rows = (
        (
            f"`{action.key}`",
            action.label,
            action.needs or (f"optional: {action.offers}" if action.offers else ""),
            f"`{action.kind}`",
        )
        for action in ACTION_KEYS
    )
    return table(("key", "action", "asks for", "event"), rows)


def states() -> str:
    """Return the report states with the sentence that the tables print of them."""
    rows: list[Sequence[str]] = []
    for state in State:
        verdict = Verdict.IMPROVEMENT if state is State.NO_ACTION else Verdict.REGRESSION
        example = ReportState(verdict, state, merged=True, landing="v6.12-rc3", fix_landing="v6.12-rc6")
        sentence = status_text(example, mainline_followed=True)
        rows.append((f"`{state}`", "closed" if state in CLOSED else "open", sentence))
    return table(("state", "open or closed", "what the tables say"), rows)


def events() -> str:
    """Return the kinds of events: the states that each one moves, the new state, and who is awaited then."""
    rows: list[Sequence[str]] = []
    for kind in EventKind:
        if (step := STEPS.get(kind)) is None:
            rows.append((f"`{kind}`", "does not change the state", "", ""))
            continue
        within = ", ".join(state for state in State if state in step.within)
        moves = "any state" if step.within >= frozenset(State) else within
        rows.append((f"`{kind}`", moves, f"`{step.to}`" if step.to else "the state before", str(step.awaits)))
    return table(("event", "moves", "to", "then awaited"), rows)


def addresses() -> str:
    """Return the addresses of the API, from its OpenAPI document."""
    rows: list[Sequence[str]] = []
    for path, methods in sorted(api.get_openapi_schema()["paths"].items()):
        for method, about in methods.items():
            if method in ("get", "post", "put", "delete"):
                summary = str(about.get("summary") or about.get("description", ""))
                rows.append((method.upper(), f"`{path}`", " ".join(summary.split())))
    return table(("method", "address", "what it does"), rows)


# By the mark in a page that it replaces: `<!-- reference: commands -->`.
PARTS: Mapping[str, Callable[[], str]] = {
    "commands": commands,
    "action keys": action_keys,
    "states": states,
    "events": events,
    "addresses": addresses,
}


# --- Site ---

ROOT = Path(__file__).resolve().parent.parent
_OURS = ".perfwork-documentation"  # marks a site that may be replaced


def build(to: Path, home: str = "") -> None:
    """Build all pages with ProperDocs, strictly: a broken link is an error. `home`: where the site links back to.

    Raises Unreadable with what is wrong. An earlier site is replaced, and only by a complete one; a directory with
    anything else in it is refused.
    """
    to = to.resolve()
    if to.exists() and not (to / _OURS).exists() and any(to.iterdir()):
        raise Unreadable(f"{to} is not empty, and not a site that was built before: name another directory")
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".documentation-") as folder:
        made = Path(folder) / "site"
        done = subprocess.run(
            [sys.executable, "-m", "properdocs", "build", "--strict", "--site-dir", str(made)],
            cwd=ROOT,
            env={
                **os.environ,
                "PERFWORK_VAR": str(Path(folder) / "var"),  # it uses no data, and leaves none behind
                "PERFWORK_HOME_LINK": home,
                "PERFWORK_DIRECTORY_URLS": "true" if home else "false",
            },
            capture_output=True,
            text=True,
        )
        if done.returncode:  # says what is wrong, without its progress
            faults = [
                re.sub(r"^(?:WARNING|ERROR) +-? *", "", line.strip())
                for line in (done.stdout + done.stderr).splitlines()
                if line.strip() and not line.startswith(("INFO", "Aborted"))
            ]
            raise Unreadable(f"the documentation can't be built: {' '.join(faults[:20])}")
        made.chmod(0o755)
        (made / _OURS).touch()
        if to.exists():
            to.rename(Path(folder) / "before")
        made.rename(to)


# --- Page of rules ---

MEASURED = ROOT / "bot" / "replies" / "measured.json"
_HEAD = """\
# How replies are read

This page lists the rules by which Perfwork reads replies in plain English: what each one looks for, what it does, and
how often it was right. `make reading` generates it from `bot/replies/rules/`; a test keeps both in sync.

Perfwork reads a reply sentence by sentence: only what its writer wrote, without quotes, signature, code, tables and
commit messages. **Three readers** work together. The first looks for hard evidence: patches, trailers, commands,
notices, tables. The second, written rules, finds phrases. The third, a <a id="classifier"></a>**classifier** trained on
examples, weighs all words of the reply, what they answer, who wrote it and what the rules found, and gives each
possible effect a probability.

One effect is applied automatically: the likeliest one if its probability is at least 75 % (90 % for disputes and failed
tests), or one that a rule also finds, if its probability is at least 35 %. "Responded" is applied if the probabilities
of all effects that a careful reader would also call a response add up to 70 % or more. What the lab states about a
candidate fix is applied, whatever the classifier thinks, if the lab's table of parent, culprit and candidate shows it,
too; and so is a maintainer's word that a fix is in a tree, unless it answers the report itself, where no fix was named.
The classifier alone never closes a report and never says that a fix was applied or confirmed.

The likeliest of the other effects is suggested if its probability is at least 50 %, or 40 % where a rule would apply
it; one that closes the report is suggested only if a rule finds the sentence that says so. Where a rule finds that a
test passed or failed, or that the culprit is dropped, that is suggested even if it is unlikely, whoever says it (from
5 % on; of the lab, which tests much besides fixes, from 25 %). A suggestion waits in the [review queue](/review/) for a
click. If nothing is applied, it is recorded as a <a id="mere_response"></a>mere response of the author or maintainer,
so that nobody reminds them. The evidence shown is the sentence that weighed most.

In the thread of a **person's report**, the mails of the reporter and of other users are read by rules of their own and
by the same classifier, which has learned from such threads, too. A reporter's mail is an answer, the outcome of a test,
a promise or a withdrawal, never a response; of other users only the outcome of a test counts.

**Automatic without a matching sentence**: a patch that a person sends in a reply, or posts with `Closes:` or `Link:`
to the report ("fix proposed"; a debug patch, a patch by the lab, or a patch elsewhere that only has `Fixes:` with the
culprit is suggested); a notice by tip-bot or patchwork-bot that the patch was applied ("fix queued"); a comparison
table by the lab (the question is answered); a `Tested-by:` by the lab ("fix confirmed"); and the
[commands](answering.md).

**Proof of who wrote it** limits what is automatic (`PERFWORK_TRUST`): under `verified`, commands and whatever closes a
report need proof, and a mail whose proof fails does nothing without a click; under `open`, all mail acts; under
`maintainers`, only verified mail from author and maintainers acts. Proof is a DKIM signature of the writer's own
domain with a known key, an `Authentication-Results` header of a trusted server above the Received line with which that
server accepted the mail, or a developer signature (patatt) with a key in the keyring. An unsigned mail from a domain
that is known to sign counts as failed.

A proof covers the headers that were signed. What needs proof must refer to a report by signed `To`, `Cc`, `In-Reply-To`
or `References`, or by a `Closes:` line in the body; `Delivered-To` and the like do not count. If `Content-Type` is not
signed, a mail has only those effects that its body has in every way of decoding it. A signing domain counts for
addresses of its own organisation, by the Public Suffix List. Copies of one signed mail take effect once. A robot's
report without proof is held, or suggested for a report that exists; it adds neither people nor findings.

**Why** something was suggested stands beside it in the review queue: how probable the classifier finds it, and the
words that weighed most. `./manage.py explain --why FILE` also shows the written examples nearest to the evidence.

**A <a id="second_opinion"></a>second opinion**, off by default: a language model of your own, behind an
OpenAI-compatible endpoint (`PERFWORK_READER_URL`), is asked about replies of the last 60 days that were only recorded
as responses, once each. Its answer counts if it names one of the effects and a sentence that appears in the mail word
for word; it is then suggested, never applied automatically. Answer and model are stored, so that a replay asks nothing
again.

**To teach it** for everybody, add replies of your own writing to `fixtures/replies` and run `make model`; the README
there says how.

**If a rule is wrong**, switch it off by name (`PERFWORK_RULES_OFF`; any rule in the first two tables). The review
queue shows how people decided on suggestions.

Notation: `a|b` one of these · `word*` any ending · `word?` optional · `…` up to three words in between, `……` up to
eight · `<name>` any of a list below · `^` start of the sentence, `$` end. The last column shows how many of a rule's
decisions in the labelled development threads were right, then in the invented ones; for rules without an effect, or
that decided nothing there, how many readings of their intent agree with the labels.
"""


def measured() -> dict[str, Any]:
    """Return the accuracy of the rules, as `make reading` saved it."""
    accuracy: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return accuracy


def page(accuracy: Mapping[str, Any]) -> str:
    """Return the whole page in Markdown."""
    facts = (f'| <a id="{name}"></a>{name} | {says} |' for name, says in FACTS.items())
    return "\n".join(
        (
            _HEAD,
            f"Measured {accuracy['on']}: {accuracy['summary']}\n",
            f"On the invented threads of `fixtures/replies/threads/`: {accuracy['invented']['summary']}\n",
            "## Replies by the lab\n",
            _table([rule for rule in RULES if rule in OPERATORS], accuracy),
            "## Replies by everyone else\n",
            _table([rule for rule in RULES if rule not in OPERATORS], accuracy),
            "## Without a matching sentence\n",
            "| name | what is read, and its effect |",
            "| --- | --- |",
            *facts,
            "",
            "## Word lists\n",
            *(f"- `<{name}>`: {', '.join(f'`{word}`' for word in words)}" for name, words in VOCABULARY.items()),
            "",
        )
    )


# What is read without a sentence, by the names that the review queue and `explain` show.
FACTS = {
    "reply_of_author": "a reply of substance by author or maintainer: responded, if nothing is more telling",
    "patch_in_reply": "a person replies with a patch: fix proposed, automatic",
    "patch_closes_report": "a patch posted elsewhere has `Closes:` or `Link:` to the report: fix proposed, automatic",
    "patch_names_culprit": "a patch elsewhere has `Fixes:` with the culprit's sha or its exact title, or says that it "
    "reverts one of these: fix proposed, suggested",
    "debug_patch": "a patch that its writer calls a debug patch: fix proposed, suggested",
    "asks_test_of_patch": "a patch comes with a request to test it: waiting for the reporter, automatic",
    "merge_notice": "tip-bot or patchwork-bot reports that a patch was applied: fix queued, automatic",
    "operator_measured": "the lab shows a comparison of parent and culprit: answered, automatic",
    "operator_compares": "the lab compares parent, culprit and candidate without stating the outcome: suggested",
    "operator_answers": "the lab writes below a quoted question: answered, automatic; suggested if it also asks",
    "operator_tells": "the lab states something, and neither asks nor promises: answered, automatic",
    "operator_tested_by": "the lab gives its `Tested-by:`: fix confirmed, automatic",
    "unsure_report": "a robot's report has inconsistencies: reported, suggested",
}


# Characters that Markdown interprets, within HTML too.
_MARKS = {ord(mark): f"&#{ord(mark)};" for mark in "|*_\\[]`"}


def _table(rules: Iterable[Rule], accuracy: Mapping[str, Any]) -> str:
    rows = ["| rule | meaning | phrases | not in a sentence that | effect | right |", "| --- " * 6 + "|"]
    for rule in rules:
        phrases = "<br>".join(f"<code>{html.escape(phrase).translate(_MARKS)}</code>" for phrase in rule.cue.phrases)
        rows.append(
            f'| <a id="{rule.name}"></a>{rule.name} | {" ".join(rule.says.split())} *{rule.intent}* | {phrases} '
            f"| {'; '.join(_unless(rule))} | {_effect_text(rule)} | {_accuracy_text(rule, accuracy)} |"
        )
    return "\n".join(rows) + "\n"


def _unless(rule: Rule) -> list[str]:
    exclusions = [unless.says for unless in rule.unless]
    if rule.question is not None:
        exclusions.append("asks" if rule.question is False else "does not ask")
    if rule.to_reporter:
        exclusions.append("addresses someone other than the reporter")
    if rule.improvement is not None:
        exclusions.append("is about a regression" if rule.improvement else "is about an improvement")
    return exclusions


def _effect_text(rule: Rule) -> str:
    if rule.does is None:
        return "none, only shown"
    how = "automatic" if rule.mode is Mode.AUTO else "suggested"
    extra = ", if no rule above decides" if rule.alone else ", in addition to other effects" if rule.aside else ""
    return f"{rule.does.replace('_', ' ')}, {how}{extra}"


def _accuracy_text(rule: Rule, accuracy: Mapping[str, Any]) -> str:
    if rule.name in accuracy["decided"]:
        decisions, right = accuracy["decided"][rule.name]
        real = f"{right} of {decisions}"
    else:
        read, right, _ = accuracy["intents"].get(rule.intent, (0, 0, 0))
        real = f"intent {right} of {read}" if read else "no match"
    decisions, right = accuracy["invented"]["decided"].get(rule.name, (0, 0))
    return f"{real}; {right} of {decisions}" if decisions else real
