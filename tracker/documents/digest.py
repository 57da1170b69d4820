"""The weekly digest: the regressions of a cycle, sorted by what happened to them in seven days; and their short form,
for a mail to Linus or to a maintainer.

A report stands in one section: closed ones by when they were closed; of the open ones, those with a fix first, then
new, silent and answered ones. Pure: the rows come from tracker/pages/release_report.py.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.urls import reverse

from tracker.documents.blocks import Block, Bullets, Document, DocumentLink, Heading, Paragraph, TableBlock, width
from tracker.documents.release_report import CycleRow, name, summary
from tracker.domain.events import OPEN, State
from tracker.domain.text import age, printable
from tracker.domain.timeline import LABELS

WEEK = timedelta(days=7)
MOST = 50  # reports per section; a link leads to the others
_FIX = frozenset({State.FIX_PROPOSED, State.FIX_CONFIRMED, State.FIX_QUEUED})


@dataclass(frozen=True, slots=True)
class Week:
    """The sections. All but `closed` are open."""

    new: Sequence[CycleRow]
    silent: Sequence[CycleRow]
    fixable: Sequence[CycleRow]
    answered: Sequence[CycleRow]
    closed: Sequence[CycleRow]

    @property
    def open(self) -> Sequence[CycleRow]:
        return [*self.new, *self.silent, *self.fixable, *self.answered]

    def __bool__(self) -> bool:
        return bool(self.open or self.closed)


def week(reports: Iterable[CycleRow], now: datetime) -> Week:
    """Sort reports by what happened in the last seven days. Silent: reported earlier, and not answered."""
    since = now - WEEK
    new, silent, fixable, answered, closed = [], [], [], [], []
    for report in reports:
        if report.state not in OPEN:
            if report.closed_at and report.closed_at > since:
                closed.append(report)
        elif report.state in _FIX:
            fixable.append(report)
        elif report.reported_at and report.reported_at > since:
            new.append(report)
        elif report.state == State.NO_RESPONSE:
            silent.append(report)
        else:
            answered.append(report)
    return Week(new, silent, fixable, answered, closed)


def compose(version: str, week: Week, now: datetime) -> Document:
    """Return the digest of a release cycle."""
    sections = [
        ("New this week, no fix yet", week.new),
        ("No response for more than a week", week.silent),
        ("Fix posted, confirmed or queued", week.fixable),
        ("Answered, still open", week.answered),
        ("Fixed or closed this week", week.closed),
    ]
    sections = [(name, reports) for name, reports in sections if reports]
    year, number, _ = now.isocalendar()
    blocking = sum(bool(report.blocks) for report in week.open)
    count = f"{len(week.open)} open{f', {blocking} blocking' if blocking else ''}"
    rest = DocumentLink(f"all open regressions by urgency, on the {version} page", f"/{version}/?state=open")
    blocks = (
        Paragraph(f"Regressions in the {version} cycle, week ending {now:%Y-%m-%d}:"),
        Bullets([f"{name}: {len(reports)}" for name, reports in sections]),
        Bullets([rest]),
        *(block for name, reports in sections for block in _section(name, reports)),
    )
    return Document(f"{version} performance regressions, {year}-W{number:02}: {count}", "", blocks)


def _section(heading: str, reports: Sequence[CycleRow]) -> Iterator[Block]:
    yield Heading(2, f"{heading}: {len(reports)}")
    rows = []
    for report in reports[:MOST]:
        blocks = f"; blocks {report.blocks}" if report.blocks else ""
        link = DocumentLink(report.title[:200], reverse("report", args=[report.sha[:12]]))
        rows.append((link, report.metric, f"{report.status}{blocks}"))
    yield TableBlock(heading, ("Report", "Metric", "Status"), rows, as_records=True)
    if len(reports) > MOST:
        yield Paragraph(f"And {len(reports) - MOST} more.")


# --- The regressions of a release or a subsystem for a mail: at most forty lines of seventy-two columns. Pure ---
# `report v6.12 --for mail` is for Linus, `digest --subsystem mm` for a maintainer.
#
# A sentence counts them; each open one takes four lines or five: how much and what, the culprit with author and metric,
# where it stands and who is awaited, the link to the thread, which is never cut. What does not fit is counted, and
# fixed ones take a line each. Names from git are cleaned: no doubled prefix, no trailing dot.

LINES, COLUMNS = 40, 72
_REST = 7  # lines kept for what does not fit, and for the fixed ones


def compose_cycle_mail(
    about: str, rows: Sequence[CycleRow], page: str, now: datetime, closed_in: str = ""
) -> tuple[str, str]:
    """Return subject and text. `about`: a release or a subsystem; `rows`: its regressions, worst first; `page`: the
    address of its table; `closed_in`: of a subsystem, the release whose closed ones are among them.
    """
    still = sorted((row for row in rows if row.is_open), key=lambda row: not row.blocks)  # those first
    fixed = [row for row in rows if row.state in (State.FIXED, State.DROPPED)]
    subject = f"Performance regressions in {about}: {len(still)} open"
    said = printable(summary(about, rows, now, closed_in))
    lines = textwrap.wrap(said, COLUMNS, break_on_hyphens=False)
    if any(width(line) > COLUMNS for line in lines):  # of letters that take two columns
        lines = textwrap.wrap(said, COLUMNS // 2, break_on_hyphens=False)
    lines.append("")
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
        kept = max(1, LINES - len(lines) - 2)
        lines.append("Fixed or dropped:" if any(row.state == State.DROPPED for row in fixed) else "Fixed:")
        for row in fixed[:kept]:
            became = row.fix_landing or LABELS[State(row.state)].lower()
            lines.append(_cut(f"  {_change(row)}  {name(row)}", f" ({became})"))
        if len(fixed) > kept:
            lines[-1] = f"  and {len(fixed) - kept + 1} more"
    return subject, "\n".join(lines).rstrip() + "\n"


def _entry(row: CycleRow, now: datetime) -> Iterator[str]:
    yield _cut(f"{_change(row)}  {name(row)}")
    by, metric = f" by {row.author}" if row.author else "", f", {row.metric}" if row.metric else ""
    yield _cut(f"          {row.sha[:12] if row.bisected else 'not bisected'}{by}{metric}")
    since = f", reported {age(row.reported_at, now)} ago" if row.reported_at else ""
    blocks = f"blocks {row.blocks}; " if row.blocks else ""
    told = [f"{blocks}{LABELS[State(row.state)].lower()}{since}"]
    if row.waits_for:
        told.append(f"waiting for {row.waits_for}")
    is_short = width("; ".join(told)) <= COLUMNS - 10  # a name is not cut off
    yield from (_cut(f"          {text}") for text in (["; ".join(told)] if is_short else told))
    if row.thread:
        yield row.thread  # from the margin: with a Message-ID of ours it just fits


def _change(row: CycleRow) -> str:
    return f"{row.change:+7.1f}%" if row.change is not None else "       ?"


def _cut(line: str, end: str = "") -> str:
    """Return a line of at most COLUMNS; `end` is kept whole, if the line has room for it."""
    line, end = printable(line), printable(end)
    if width(line + end) <= COLUMNS:
        return line + end
    if width(end) > COLUMNS // 2:
        line, end = line + end, ""
    line = line[: 4 * COLUMNS]  # a title may have any length, and each step below measures what is left
    while width(line + end) > COLUMNS - 3:
        line = line[:-1]
    return f"{line.rstrip()}...{end}"
