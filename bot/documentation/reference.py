"""The reference, written from code as Markdown: commands, keys, states and events, addresses of the API."""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.core.management import get_commands, load_command_class
from django.core.management.base import DjangoHelpFormatter

from tracker.api.tables import api
from tracker.domain.events import CLOSED, EventKind, State, Verdict
from tracker.domain.report_state.state import ReportState
from tracker.domain.report_state.steps import STEPS, Step
from tracker.domain.report_state.text import status_text
from tracker.pages.triage.action_keys import ACTION_KEYS

# The options that Django gives to every command.
_DJANGOS = frozenset(
    {"--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color"}
    | {"--skip-checks"}
)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table. Cells are one line each; a bar in them is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(each.replace("|", "\\|") for each in line) + " |" for line in lines)


def commands() -> str:
    """Return what `--help` prints of each command of ours, in a terminal of 80 columns."""
    names = sorted(name for name, app in get_commands().items() if app == "bot")
    return "\n\n".join(f"## {name}\n\n```text\n{_help(name)}\n```" for name in names)


def _help(name: str) -> str:
    """Return the help of a command, without the options that every command of Django has."""
    parser = load_command_class("bot", name).create_parser("./manage.py", name)
    parser.formatter_class = lambda *, prog: DjangoHelpFormatter(prog, width=78)  # whatever terminal builds it
    for action in parser._actions:
        if _DJANGOS.intersection(action.option_strings):
            action.help = SUPPRESS
    return parser.format_help().strip()


def action_keys() -> str:
    """Return the actions of the triage page: key, label, what is asked for, and the event that is recorded."""
    rows = (
        (
            f"`{each.key}`",
            each.label,
            each.needs or (f"optional: {each.offers}" if each.offers else ""),
            f"`{each.kind}`",
        )
        for each in ACTION_KEYS
    )
    return table(("key", "action", "asks for", "event"), rows)


def states() -> str:
    """Return the report states with the sentence that the tables print of them."""
    rows = (
        (f"`{state}`", "closed" if state in CLOSED else "open", status_text(_in(state), mainline_followed=True))
        for state in State
    )
    return table(("state", "open or closed", "what the tables say"), rows)


def _in(state: State) -> ReportState:
    verdict = Verdict.IMPROVEMENT if state is State.NO_ACTION else Verdict.REGRESSION
    return ReportState(verdict, state, merged=True, landing="v6.12-rc3", fix_landing="v6.12-rc6")


def events() -> str:
    """Return the kinds of events: the states that each one moves, the new state, and who is awaited then."""
    rows = ((f"`{kind}`", *_moves(STEPS.get(kind))) for kind in EventKind)
    return table(("event", "moves", "to", "then awaited"), rows)


def _moves(step: Step | None) -> tuple[str, str, str]:
    if step is None:
        return "does not change the state", "", ""
    within = ", ".join(state for state in State if state in step.within)
    every = "any state" if step.within >= frozenset(State) else within
    return every, f"`{step.to}`" if step.to else "the state before", str(step.awaits)


def addresses() -> str:
    """Return the addresses of the API, from its OpenAPI document."""
    return table(("method", "address", "what it does"), _addresses(api.get_openapi_schema()["paths"]))


def _addresses(paths: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for path, methods in sorted(paths.items()):
        for method, about in methods.items():
            if method in ("get", "post", "put", "delete"):
                summary = str(about.get("summary") or about.get("description", ""))
                yield method.upper(), f"`{path}`", " ".join(summary.split())


# By the mark in a page that it replaces: `<!-- reference: commands -->`.
PARTS: Mapping[str, Callable[[], str]] = {
    "commands": commands,
    "action keys": action_keys,
    "states": states,
    "events": events,
    "addresses": addresses,
}
