"""The command that reproduces a measurement, or where to find what is needed. Pure."""

from __future__ import annotations

import re
import shlex
import textwrap

from bot.compose.report.report_data import ReportData
from bot.mail.sanitising import one_line

_SCRIPT = re.compile(r"(?:.*[/._-])?(?:reproduce?|repro|run)(?:[._-][\w.-]*)?\Z", re.I)
_JOB = re.compile(r"(?:.*/)?job(?:[\w.-]*)\.ya?ml\Z", re.I)
COLUMNS = 67  # of a line of the first screen, after its label
_LINES = 2
_FIELD = re.compile(r"\{(suite|params|machine|sha)\}")
_PLAIN_URL = re.compile(r"https?://[\w.~:/?#@!$&'()*+,;=%-]{3,300}\Z")


def reproduce(report: ReportData, template: str = "") -> str:
    """Return the command: from the lab's template if set, else from the result's own script or job file."""
    if template:
        return _filled(report, template)
    links = [(name, url) for name, url in report.artifacts if _PLAIN_URL.match(url)]
    for pattern, run in ((_SCRIPT, "sh"), (_JOB, "lkp run")):
        if url := next((url for name, url in links if pattern.match(name)), ""):
            return f"curl -sO {shlex.quote(url)} && {run} {shlex.quote(url.rpartition('/')[2])}"
    return "no script was provided; see the parameters below"


def in_lines(command: str) -> tuple[str, ...]:
    """Return a command as lines of the first screen, continued with backslashes.

    Empty where it must be printed whole further down: it is too long, or has a quoted string that must not be split.
    """
    if len(command) <= COLUMNS:
        return (command,)
    lines = textwrap.wrap(command, COLUMNS - 2, break_long_words=False, break_on_hyphens=False)
    if "'" in command or len(lines) > _LINES or max(map(len, lines)) > COLUMNS - 2:
        return ()
    return (*(f"{line} \\" for line in lines[:-1]), lines[-1])


def _filled(report: ReportData, template: str) -> str:
    """Return the template filled in, with each value quoted for a shell."""
    headline = report.headline
    values = {
        "suite": shlex.quote(one_line(headline.suite, 80)),
        "machine": shlex.quote(one_line(headline.machine, 80)),
        "sha": report.sha,
        "params": " ".join(
            shlex.quote(one_line(f"{name}={value}", 160)) for name, value in sorted(headline.params.items())
        ),
    }
    return _FIELD.sub(lambda found: values[found[1]], template)
