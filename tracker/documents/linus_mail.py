"""The regressions of a release or a subsystem for a mail: at most forty lines of seventy-two columns. Pure.

`report v6.12 --for mail` is for Linus, `digest --subsystem mm` for a maintainer.

A sentence counts them; each open one takes four lines: how much and what, the culprit with its author and metric, where
it stands and who is awaited, the link to the thread, which is never cut. What does not fit is counted, and fixed ones
take a line each. Names from git are cleaned: no doubled prefix, no trailing dot.
"""

import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime

from tracker.documents.blocks import width
from tracker.documents.cycle import CycleRow, name, summary
from tracker.domain.events import State
from tracker.domain.text import age
from tracker.domain.timeline import LABELS, awaited

LINES, COLUMNS = 40, 72
_REST = 7  # lines kept for what does not fit, and for the fixed ones


def compose(of: str, rows: Sequence[CycleRow], page: str, now: datetime, closed_in: str = "") -> tuple[str, str]:
    """Return subject and text. `of`: a release or a subsystem; `rows`: its regressions, worst first; `page`: the
    address of its table; `closed_in`: of a subsystem, the release whose closed ones are among them.
    """
    still = [row for row in rows if row.is_open]
    fixed = [row for row in rows if row.state in (State.FIXED, State.DROPPED)]
    subject = f"Performance regressions in {of}: {len(still)} open"
    lines = [*textwrap.wrap(_printable(summary(of, rows, now, closed_in)), COLUMNS, break_on_hyphens=False), ""]
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
        lines += [f"And {len(still) - shown} more:", page, ""]  # never cut: it would lead elsewhere
    if fixed:
        kept = LINES - len(lines) - 2
        lines.append("Fixed or dropped:" if any(row.state == State.DROPPED for row in fixed) else "Fixed:")
        for row in fixed[: max(kept, 1)]:
            became = row.fix_landing or LABELS[State(row.state)].lower()
            lines.append(_cut(f"  {_change(row)}  {name(row)} ({became})"))
        if len(fixed) > kept:
            lines[-1] = f"  and {len(fixed) - max(kept, 1) + 1} more"
    return subject, "\n".join(lines).rstrip() + "\n"


def _entry(row: CycleRow, now: datetime) -> Iterator[str]:
    yield _cut(f"{_change(row)}  {name(row)}")
    by, of = f" by {row.author}" if row.author else "", f", {row.metric}" if row.metric else ""
    yield _cut(f"          {row.sha[:12] if row.bisected else 'not bisected'}{by}{of}")
    who = f"; waiting for {person}" if (person := awaited(row.awaited, row.author, row.reporter)) else ""
    since = f", reported {age(row.reported_at, now)} ago" if row.reported_at else ""
    yield _cut(f"          {LABELS[State(row.state)].lower()}{since}{who}")
    if row.thread:
        yield row.thread  # from the margin: with a Message-ID of ours it just fits


def _change(row: CycleRow) -> str:
    return f"{row.change:+7.1f}%" if row.change is not None else "       ?"


def _cut(line: str) -> str:
    line = _printable(line)
    if width(line) <= COLUMNS:
        return line
    line = line[: 4 * COLUMNS]  # a title may have any length, and each step below measures what is left
    while width(line) > COLUMNS - 3:
        line = line[:-1]
    return f"{line.rstrip()}..."


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
