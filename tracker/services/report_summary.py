"""The report summary (tracker/models/reports.py): the cached columns of a report, written only here.

`event_log` calls `write_states` after a change of events; `refresh` follows findings, mail, git and releases. Both
work on reports locked in the same order, so that neither writes stale values. `urgency` is the one number that tables
sort by: blocking, then the certain part of the change, then the silence. `revision` grows with every change of
events, and shows which pages are stale. Names are cut to what an index can hold.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db import transaction
from django.db.models import Max, Model, Prefetch, Q, QuerySet
from django.db.models.functions import Coalesce, Greatest, Least
from django.utils import timezone

from tracker.domain import versions
from tracker.domain.events import OPEN, TreeRole
from tracker.domain.report_state import Fix, ReportState, status_text
from tracker.domain.statistics import certain
from tracker.domain.text import scale
from tracker.models import Finding, Machine, Message, Metric, Release, Report, Scenario, StableSeries, Tree
from tracker.models.mail import PEOPLE
from tracker.services import database

STATE_COLUMNS = (
    "given_title", "state", "status", "decided_by", "awaited", "awaited_since", "landing", "cycle", "fix_title",
    "fix_sha", "fix_landing", "remark", "tags", "reported_at", "responded_at", "changed_at",
)  # fmt: skip
# The columns of the report summary that follow from these and from the events.
FOLLOWING_COLUMNS = (
    "closed_at", "blocks", "assignee", "merged_release", "shift_left_release", "last_human_reply_at", "urgency",
    "words",
)  # fmt: skip
_WRITTEN = (*STATE_COLUMNS, *FOLLOWING_COLUMNS)
_NEWEST = "(SELECT COALESCE(MAX(e.id), 0) FROM tracker_event e WHERE e.report_id = tracker_report.id)"
# The newest event's key, but always higher than before: an event with a lower key may be committed later.
_REVISION = f"revision = CASE WHEN {_NEWEST} > revision THEN {_NEWEST} ELSE revision + 1 END"
# A name is cut to so many characters, and bytes of UTF-8: seven names, each as long as it may be, and the other columns
# of FILTER_COLUMNS must fit an entry of a PostgreSQL index, which has 2,704 bytes.
CLIP, CLIP_BYTES = 120, 320
WORDS = 1200
DOTS = 8  # samples per side in a sparkline
HEIGHT = 20  # of the sparkline; 0 is its top
_BEYOND = (1 << 20) - 1
_SECONDS = (1 << 32) - 1


def urgency(is_open: bool, blocking: bool, weight: float, last_human_reply_at: datetime | None) -> int:
    """Return one number to sort a table by: open before closed, then blocking, the certain part of the change, silence.

    >>> urgency(True, True, 1.0, None) > urgency(True, False, 9.0, None) > urgency(True, False, 1.0, None) > 0
    True
    >>> urgency(True, False, 1.0, None) > urgency(False, False, 900.0, None)
    True
    """
    effect = round(min(float(_BEYOND), weight * 8)) if weight > 0 else 0
    last_reply = min(_SECONDS, max(0, int(last_human_reply_at.timestamp()))) if last_human_reply_at else 0
    return (int(is_open) << 53) | (int(blocking) << 52) | (effect << 32) | (_SECONDS - last_reply)


def spark(old: Sequence[float], new: Sequence[float]) -> str:
    """Return the samples of both sides as heights, 0 for the highest value: "17,18|3,4"; "" if a side has none.

    >>> spark([100, 101], [80])
    '1,0|20'
    """
    counts = ((side, min(len(side), DOTS)) for side in (old, new))
    sides = [[side[number * len(side) // count] for number in range(count)] for side, count in counts]  # evenly spaced
    y = scale([sample for side in sides for sample in side], HEIGHT, 0)
    if not all(sides) or y is None:
        return ""
    return "|".join(",".join(str(y(sample)) for sample in side) for side in sides)


def in_cycle(version: str, path: str = "") -> Q:
    """Return the condition that a report is of a release's cycle. `path`: from a row to its report, "report__"."""
    return Q(**{f"{path}merged_release": version}) | Q(**{f"{path}shift_left_release": version})


_Row = TypeVar("_Row", bound=Model)


def with_headlines(rows: QuerySet[_Row], path: str = "findings") -> QuerySet[_Row]:
    """Return rows whose reports have their headline findings at hand, for `headline_of`: one query more, whatever their
    number. `path`: from a row to the findings of its report.
    """
    findings = Finding.objects.filter(headline=True).select_related("metric", "scenario", "machine")
    return rows.prefetch_related(Prefetch(path, findings, to_attr="headlines"))


def headline_of(report: Report) -> Finding | None:
    """Return the headline finding of a report that `with_headlines` returned; None for one of a person's alone."""
    return next(iter(report.headlines), None)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class ReleaseCalendar:
    """The ends of the cycles, in order, and the current cycle, "" if it is not known."""

    versions: tuple[str, ...]
    ends: tuple[datetime, ...]
    current: str

    @classmethod
    def load(cls) -> ReleaseCalendar:
        return cls.of(Release.objects.order_by("number"))

    @classmethod
    def of(cls, releases: Iterable[Release]) -> ReleaseCalendar:
        """Return the calendar of all releases, given oldest first."""
        releases = list(releases)
        ended = [release for release in releases if release.released_at]
        later = [release for release in releases if not ended or release.number > ended[-1].number]
        ends = tuple(release.released_at for release in ended if release.released_at)
        return cls(tuple(release.version for release in ended), ends, later[0].version if later else "")

    def cycle_at(self, moment: datetime) -> str:
        """Return the release in development at that moment; a cycle includes the moment of its release."""
        index = bisect_left(self.ends, moment)
        return self.versions[index] if index < len(self.versions) else self.current


SUMMARY_COLUMNS = (
    "merged_release", "shift_left_release", "author", "suite", "metric", "machine", "scenario", "base", "change",
    "noise_pct", "spark", "effect", "weight", "last_human_reply_at", "lacks_fix", "urgency", "words",
)  # fmt: skip


def set_columns(report: Report, calendar: ReleaseCalendar | None) -> None:
    """Update the summary after a change of state; no calendar is needed if report time and cycle are unchanged."""
    report.merged_release = report.cycle if not report.held or report.reported_at else ""
    if calendar:
        at = report.reported_at
        elsewhere = report.tree is None or report.tree.role != TreeRole.MAINLINE or not report.cycle
        report.shift_left_release = calendar.cycle_at(at) if at and elsewhere else ""
    moments = (report.last_human_reply_at, report.reported_at, report.responded_at)
    now = timezone.now()  # ignore dates in the future
    past = [moment for moment in moments if moment and moment <= now]
    report.last_human_reply_at = max(past, default=None)
    is_open = report.state in OPEN
    blocking = bool(report.blocks) and is_open
    report.urgency = urgency(is_open, blocking, report.weight, report.last_human_reply_at)
    texts = [report.culprit.sha[:40], report.given_title, report.culprit.title, report.title, report.subsystem]
    own = ("metric", "machine", "scenario", "author", "remark", "fix_title", "tags")
    texts += [getattr(report, name) for name in own]
    report.words = " ".join(text[:300] for text in texts if text).lower()[:WORDS]


def write_states(
    reports: Iterable[Report],
    states: Mapping[int, ReportState],
    changed_at: Mapping[int, datetime | None],
    *,
    followed: datetime | None,
) -> list[int]:
    """Write the columns of these folded states where they differ; returns the keys of the reports whose state changed.

    `changed_at`: when the last event of each happened; `followed`: see `mainline_followed`. The caller has locked the
    reports.
    """
    changed: list[Report] = []
    columns: set[str] = set()
    moved: list[int] = []
    taken_back: list[int] = []  # reports whose first answer is another one now, or none, as after an undo
    calendar = None
    for report in reports:
        before = {name: getattr(report, name) for name in _WRITTEN}
        timing = (report.reported_at, report.cycle)
        for name, value in state_columns(states[report.pk], followed).items():
            setattr(report, name, value)
        report.changed_at = changed_at[report.pk]
        timing_changed = timing != (report.reported_at, report.cycle)
        if timing_changed and calendar is None:
            calendar = ReleaseCalendar.load()
        set_columns(report, calendar if timing_changed else None)
        different = {name for name, value in before.items() if value != getattr(report, name)}
        if not different.isdisjoint(STATE_COLUMNS):
            moved.append(report.pk)
        if before["responded_at"] and before["responded_at"] != report.responded_at:
            taken_back.append(report.pk)
        if different:
            changed.append(report)
            columns |= different
    database.update(changed, sorted(columns), _REVISION)
    refresh(taken_back)
    return moved


WALKED_MAINLINES = (
    Tree.objects.filter(role=TreeRole.MAINLINE, walked_at__isnull=False)
    .annotate(as_of=Greatest(Coalesce("looked_at", "walked_at"), "walked_at"))
    .order_by("-as_of")
)


def status_now(state: ReportState, followed: datetime | None) -> str:
    """Return the status text of a report, by the last walk of a mainline tree (`mainline_followed`)."""
    return status_text(state, mainline_followed=followed is not None, as_of=followed, now=timezone.now())


def mainline_followed() -> datetime | None:
    """Return when a mainline tree was last walked; None if none ever was, so that nobody knows what is merged."""
    return WALKED_MAINLINES.values_list("as_of", flat=True).first()


def state_columns(state: ReportState, followed: datetime | None) -> Mapping[str, object]:
    """Return the report's columns from its folded state. `followed`: see `mainline_followed`."""
    after = versions.parse(state.merged_after)
    # Merged after an -rc, it is in that cycle; the version after a release is not known yet.
    landed = versions.parse(state.landing) or (after if after and after.is_candidate else None)
    fix = state.fix or Fix()
    return {
        "given_title": state.title,
        "state": state.state,
        "status": status_now(state, followed),
        "decided_by": state.decided_by,
        "awaited": state.awaited,
        "awaited_since": state.awaited_since,
        "landing": state.landing,
        "cycle": landed.cycle if landed else "",
        "fix_title": fix.title,
        "fix_sha": fix.commit,
        "fix_landing": state.fix_landing,
        "remark": state.remark,
        "tags": f" {state.tags} " if state.tags else "",
        "reported_at": state.reported_at,
        "responded_at": state.responded_at,
        "closed_at": state.closed_at,
        "blocks": clipped(state.blocks),
        "assignee": clipped(state.assignee),
    }


def refresh(report_ids: Iterable[int]) -> None:
    """Refresh the summaries of these reports: a handful of queries per five hundred reports."""
    calendar = None
    for part in database.in_parts(set(report_ids)):
        calendar = calendar or ReleaseCalendar.load()
        with transaction.atomic():  # locked in the same order as by a fold, so that neither writes stale values
            rows = Report.objects.select_for_update(of=("self",)).select_related("culprit", "tree")
            reports = list(rows.filter(pk__in=part).order_by("pk"))
            before = {report.pk: [getattr(report, name) for name in SUMMARY_COLUMNS] for report in reports}
            findings = Finding.objects.filter(report__in=part, headline=True)
            heads = {row.report_id: row for row in findings.select_related("metric", "scenario", "machine")}
            # When a person last wrote about each report; a date in the future counts as the time of receipt
            messages = Message.objects.filter(report__in=part, kind__in=PEOPLE).order_by().values_list("report")
            last_replies = dict(messages.annotate(last=Max(Least("sent_at", "source__received_at"))))
            lacking = StableSeries.objects.filter(report__in=part, fixed_in="").values_list("report", flat=True)
            lacking_fix = set(lacking)
            for report in reports:
                if report.of_person and report.pk not in heads:
                    _set_facts(report)
                else:
                    _set_headline(report, heads.get(report.pk))
                report.author = clipped(report.culprit.author_email.lower())
                report.last_human_reply_at = last_replies.get(report.pk)
                report.lacks_fix = report.pk in lacking_fix
                set_columns(report, calendar)
            changed = [row for row in reports if before[row.pk] != [getattr(row, name) for name in SUMMARY_COLUMNS]]
            database.update(changed, SUMMARY_COLUMNS)


def refresh_since(moment: datetime | None) -> None:
    """Refresh the summaries of reports since a moment (None: all), after a cycle has begun or ended."""
    reports = Report.objects.filter(reported_at__isnull=False)
    if moment:
        reports = reports.filter(reported_at__gt=moment)
    refresh(reports.values_list("pk", flat=True))


def clipped(name: str) -> str:
    """Return a name as the tables store it; a name that must be cut gets a digest, to keep it unique.

    >>> clipped("lkp-csl-2sp5")
    'lkp-csl-2sp5'
    """
    encoded = name.encode("utf-8", "replace")
    if len(name) <= CLIP and len(encoded) <= CLIP_BYTES:
        return name
    begin = name[: CLIP - 11].encode("utf-8", "replace")[: CLIP_BYTES - 13].decode("utf-8", "ignore")
    return f"{begin}…{hashlib.sha256(encoded).hexdigest()[:10]}"


def _set_headline(report: Report, head: Finding | None) -> None:
    """Set the columns of the headline; empty if there is none."""
    head = head or Finding(metric=Metric(), scenario=Scenario(), machine=Machine())
    report.suite = clipped(head.scenario.suite)
    report.metric = clipped(head.metric.name)
    report.machine = clipped(head.machine.name)
    report.scenario = " ".join(f"{name}={value}" for name, value in head.scenario.params.items())[:400]
    report.base = clipped(head.base)
    report.change = _finite(head.change)
    spread, usual = head.spread_pct, head.usual_noise_pct
    report.noise_pct = _finite(spread)
    # Of a side without samples its mean is a dot
    sides = ((head.old_samples, head.old_mean), (head.new_samples, head.new_mean))
    report.spark = spark(*(samples or ([] if mean is None else [mean]) for samples, mean in sides))
    report.effect = _finite(head.effect)
    # How much of the change is certain; what nobody knows of its noise is not assumed.
    report.weight = certain(head.change, head.low_pct, head.high_pct, spread if usual is None else usual)


def _set_facts(report: Report) -> None:
    """Set the columns of the headline from what a person's mail says; nothing of it is certain."""
    _set_headline(report, None)
    facts = report.person_report
    report.suite, report.metric = clipped(facts.suite.value), clipped(facts.metric.value)
    report.machine, report.change = clipped(facts.machine.value), _finite(facts.change_pct)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
