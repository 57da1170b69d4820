"""The regressions of a release for a mail: at most forty lines of seventy-two columns, as for Linus. Pure.

A sentence counts them; each open one takes four lines: how much and what, the culprit with its author and metric, where
it stands and who is awaited, the link to the thread, which is never cut. What does not fit is counted, and fixed ones
take a line each. Names from git are cleaned: no doubled prefix, no trailing dot.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from tracker.domain.events import OPEN, State
from tracker.domain.text import age, counted
from tracker.domain.timeline import LABELS, awaited

LINES, COLUMNS = 40, 72
_SILENT = 28  # days, after which silence is worth a word
_REST = 6  # lines kept for what does not fit, and for the fixed ones


@dataclass(frozen=True, slots=True)
class MailLine:
    """A regression. `thread`: the link to its thread, "" if it was never mailed; `author`: the culprit's."""

    sha: str
    title: str
    subsystem: str
    metric: str
    change: float | None
    author: str
    state: str
    status: str
    awaited: str
    reported_at: datetime | None
    thread: str
    fix_landing: str = ""
    reporter: str = ""  # the person who reported it, "" for a lab's report
    bisected: bool = True


def compose(version: str, rows: Sequence[MailLine], page: str, now: datetime) -> tuple[str, str]:
    """Return subject and text. `rows`: the regressions of a release, worst first; `page`: the address of its table."""
    still = [row for row in rows if row.state in OPEN]
    fixed = [row for row in rows if row.state in (State.FIXED, State.DROPPED)]
    subject = f"Performance regressions in {version}: {len(still)} open"
    lines = [*textwrap.wrap(_printable(summary(version, rows, now)), COLUMNS, break_on_hyphens=False), ""]
    room = LINES - len(lines) - _REST
    shown = 0
    for row in still:
        entry = [*_entry(row, now), ""]
        if len(entry) > room:
            break
        lines += entry
        room -= len(entry)
        shown += 1
    if shown < len(still):
        lines += [f"And {len(still) - shown} more: {page}"[:COLUMNS], ""]
    if fixed:
        kept = LINES - len(lines) - 2
        lines.append("Fixed:")
        for row in fixed[: max(kept, 1)]:
            became = row.fix_landing or LABELS[State(row.state)].lower()
            lines.append(_cut(f"  {_change(row)}  {name(row)} ({became})"))
        if len(fixed) > kept:
            lines[-1] = f"  and {len(fixed) - max(kept, 1) + 1} more"
    return subject, "\n".join(lines).rstrip() + "\n"


def summary(version: str, rows: Sequence[MailLine], now: datetime) -> str:
    """Return the state of a release in one paragraph: every number is counted from the rows."""
    still = [row for row in rows if row.state in OPEN]
    if not rows:
        return f"No performance regressions were reported in {version}."
    text = f"{version} has {counted(len(still), 'open performance regression')} of {len(rows)} reported."
    if still and (worst := still[0]).change is not None:
        text += f" The worst is {_change(worst).strip()} of {worst.metric} ({worst.subsystem or worst.sha[:10]})."
    waiting = [row for row in still if row.awaited == "author"]
    silent = [row for row in waiting if row.reported_at and (now - row.reported_at).days >= _SILENT]
    if waiting:
        text += " 1 waits for its author" if len(waiting) == 1 else f" {len(waiting)} wait for their authors"
        text += f", {len(silent)} for over four weeks." if silent else "."
    return text


def _entry(row: MailLine, now: datetime) -> Iterator[str]:
    yield _cut(f"{_change(row)}  {name(row)}")
    by = f" by {row.author}" if row.author else ""
    yield _cut(f"          {row.sha[:12] if row.bisected else 'not bisected'}{by}, {row.metric}")
    who = f"; waiting for {person}" if (person := awaited(row.awaited, row.author, row.reporter)) else ""
    since = f", reported {age(row.reported_at, now)} ago" if row.reported_at else ""
    yield _cut(f"          {LABELS[State(row.state)].lower()}{since}{who}")
    if row.thread:
        yield row.thread  # from the margin: with a Message-ID of ours it just fits


def name(row: MailLine) -> str:
    """Return the culprit's title with its prefix once, without a dot at its end.

    >>> from datetime import datetime
    >>> name(MailLine("f" * 40, "mm/vmscan: mm/vmscan: walk.", "mm/vmscan", "", 1.0, "", "responded", "", "", None, ""))
    'mm/vmscan: walk'
    """
    title = " ".join(row.title.split()).rstrip(". ")
    title = re.sub(r"^(\[[^]]*\]\s*)+", "", title)
    doubled = re.match(r"([^:]{1,60}: )\1+", title)
    return title[doubled.end() - len(doubled[1]) :] if doubled else title


def _change(row: MailLine) -> str:
    return f"{row.change:+7.1f}%" if row.change is not None else "       ?"


def _cut(line: str) -> str:
    line = _printable(line)
    return line if len(line) <= COLUMNS else f"{line[: COLUMNS - 3].rstrip()}..."


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
