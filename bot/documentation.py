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

from bot.git.repository import Unreadable
from bot.replies.classifier import ACTS, AGREES, ENGAGED, ENGAGED_FIRST, SUGGESTED, SUGGESTED_BY_RULE, SURER
from bot.replies.effects import COMMAND, COMMANDED, LEAST_CERTAINTY, LEAST_OF_LAB
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
TEXT = ROOT / "bot" / "replies" / "reading.md"


def measured() -> dict[str, Any]:
    """Return the accuracy of the rules, as `make reading` saved it."""
    accuracy: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return accuracy


def page(accuracy: Mapping[str, Any]) -> str:
    """Return the whole page in Markdown: its text, with the rules and their accuracy in place of its marks."""
    summaries = (
        f"Measured {accuracy['on']}: {accuracy['summary']}",
        f"On the invented threads of `fixtures/replies/threads/`: {accuracy['invented']['summary']}",
    )
    parts = {
        "measured": "\n\n".join(summaries),
        "rules of the lab": _rules_table([rule for rule in RULES if rule in OPERATORS], accuracy),
        "rules of everyone else": _rules_table([rule for rule in RULES if rule not in OPERATORS], accuracy),
        "word lists": "\n".join(
            f"- `<{name}>`: {', '.join(f'`{word}`' for word in words)}" for name, words in VOCABULARY.items()
        ),
    }
    parts |= {name: f"{share:.0%}".replace("%", " %") for name, share in _THRESHOLDS.items()}
    parts["commands"] = "".join(f'<a id="{COMMAND}{word.replace(" ", "_")}"></a>' for word in COMMANDED)
    text = TEXT.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part)
    return text


# Probabilities, by the mark in the text that stands for each.
_THRESHOLDS = {
    "acts": ACTS,
    "agrees": AGREES,
    "disputed": SURER["disputed"],
    "failed test": SURER["fix_failed"],
    "engaged": ENGAGED,
    "engaged first": ENGAGED_FIRST,
    "suggested": SUGGESTED,
    "suggested by rule": SUGGESTED_BY_RULE,
    "least": LEAST_CERTAINTY / 100,
    "least of lab": LEAST_OF_LAB / 100,
}
# Characters that Markdown interprets, within HTML too.
_MARKS = {ord(mark): f"&#{ord(mark)};" for mark in "|*_\\[]`"}


def _rules_table(rules: Iterable[Rule], accuracy: Mapping[str, Any]) -> str:
    rows = (
        (
            f'<a id="{rule.name}"></a>{rule.name}',
            f"{' '.join(rule.says.split())} *{rule.intent}*",
            "<br>".join(f"<code>{html.escape(phrase).translate(_MARKS)}</code>" for phrase in rule.cue.phrases),
            "; ".join(_unless(rule)),
            _effect_text(rule),
            _accuracy_text(rule, accuracy),
        )
        for rule in rules
    )
    return table(("rule", "meaning", "phrases", "not in a sentence that", "effect", "right"), rows)


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
