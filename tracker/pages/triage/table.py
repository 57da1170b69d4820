"""The triage table of a release: its rows, filter counts, sections and filter form.

A release has two sections: reports merged in its cycle, and reports from other trees (shift-left). A row has every
cell formatted, so that templates compute nothing. A page of a section takes one query: the keys are found in an
index, then only their rows are read. Other pages show any reports this way (`section`).

The counts beside the filters say how many reports of a release have each value. They are cached under a stamp, made of
the release's newest events, which an index finds, and of the number of its reports. A change without an event, such as
a renamed machine, shows after KEEP seconds at the latest.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db.models import Count as Number
from django.db.models import Exists, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Cast, Coalesce
from django.urls import reverse

from tracker.charts import described, paths
from tracker.domain import text as formats
from tracker.domain.events import CLOSED, OPEN, ReportedBy, State, Verdict
from tracker.domain.report_state import NOT_BISECTED
from tracker.domain.timeline import LABELS, awaited
from tracker.models import Event, Release, Report
from tracker.pages.http import kept
from tracker.pages.triage.filters import FLAGS, IMPROVEMENTS, NAMES, NOT, SECTIONS, ReleaseSection, TriageQuery
from tracker.services.report_summary import clipped

# --- Rows ---

# The columns that a row needs; no others are loaded. To add one: its name here, a field of TriageRow, and in
# _SHOWN_AS_STORED or with a value of its own in `row_of`; its cell in templates/triage_rows.html, its header, and one
# more in the group row's colspan, in triage_table.html; its width in static/perfwork.css.
COLUMNS = (
    "pk", "revision", "verdict", "state", "status", "awaited", "awaited_since", "assignee", "title", "given_title",
    "subsystem", "metric", "machine", "suite", "scenario", "base", "author", "change", "noise_pct", "spark",
    "effect", "weight", "blocks", "lacks_fix", "tags", "urgency", "fix_title", "fix_sha", "fix_landing",
    "reported_at", "last_human_reply_at", "culprit__sha", "culprit__title", "culprit__placeholder", "reported_by",
    "culprit__author_name",
)  # fmt: skip
_SHOWN_AS_STORED = (
    "pk", "revision", "subsystem", "verdict", "metric", "scenario", "suite", "machine", "base", "author", "assignee",
    "lacks_fix", "tags", "state", "status", "reported_by",
)  # fmt: skip
TITLE = 300  # characters of a title; the report's page shows all of it
_MARKS: Mapping[str, str] = {Verdict.REGRESSION: "▼", Verdict.IMPROVEMENT: "▲", Verdict.UNKNOWN: "◆"}


@dataclass(frozen=True, slots=True)
class TriageRow:
    """One row. `age` and `silence` are durations until now; `good` and `bad` are the paths of a sparkline."""

    pk: int
    revision: int
    sha: str
    title: str
    subsystem: str
    verdict: str
    mark: str
    blocks: str
    metric: str
    change: str
    noise: str
    effect: str
    good: str
    bad: str
    width: int
    samples: str
    scenario: str
    suite: str
    machine: str
    base: str
    author: str
    age: str
    reported: str
    silence: str
    awaited: str
    waiting: str  # for how long
    assignee: str
    fix: str
    landing: str
    lacks_fix: bool
    state: str
    status: str
    reported_by: str = ReportedBy.ROBOT
    tags: str = ""
    is_bisected: bool = True
    is_new: bool = False  # something became known since the user's last visit
    was: str = ""  # the status before the change that this row answers
    batch: str = ""  # with which that change can be undone

    @property
    def undo_url(self) -> str:
        return reverse("undo-change")

    @property
    def url(self) -> str:
        return reverse("report", args=[self.sha])

    @property
    def sha10(self) -> str:
        return self.sha[:10] if self.is_bisected else NOT_BISECTED

    @property
    def state_label(self) -> str:
        return LABELS[State(self.state)]


def row_of(values: Mapping[str, Any], now: datetime) -> TriageRow:
    """Return the row of a report from its COLUMNS."""
    good, bad, width = paths(values["spark"])
    change, noise, effect = values["change"], values["noise_pct"], values["effect"]
    closed = values["state"] in CLOSED
    is_bisected = not values["culprit__placeholder"]
    # The given title, the commit's, or the end of the mail's subject
    by_person = values["reported_by"] == ReportedBy.PERSON
    reporter = "the reporter" if by_person else ""
    waits_for = awaited(values["awaited"], values["culprit__author_name"], reporter, is_bisected=is_bisected)
    subject: str = values["title"] if by_person else values["title"].rpartition(": ")[2]
    title: str = values["given_title"] or values["culprit__title"] or subject
    return TriageRow(
        **{name: values[name] for name in _SHOWN_AS_STORED},
        sha=values["culprit__sha"],
        is_bisected=is_bisected,
        title=title[:TITLE].removeprefix(f"{values['subsystem']}: "),
        mark=_MARKS[values["verdict"]],
        blocks="" if closed else values["blocks"],
        change=formats.page_pct(change),
        noise=f"± {noise:.0f}%" if noise and noise >= 2 else "",
        effect=f"{formats.multiple(effect)} noise" if effect is not None else "",
        good=good,
        bad=bad,
        width=width,
        samples=described(values["spark"]),
        age=formats.age(values["reported_at"], now),
        reported=f"{values['reported_at']:%Y-%m-%d}" if values["reported_at"] else "",
        silence=formats.age(values["last_human_reply_at"], now),
        awaited="" if closed else waits_for,
        waiting="" if closed else formats.age(values["awaited_since"], now),
        fix=(values["fix_title"] or values["fix_sha"][:12])[:TITLE],
        landing=values["fix_landing"],
        is_new=values.get("is_new", False),
    )


# --- Counts ---

KEEP = 60.0  # seconds
MOST = 40  # values that a filter offers; others can still be given in the URL
# The counted filters and their columns.
COUNTED: Mapping[str, str] = {
    "state": "state",
    "kind": "verdict",
    "awaiting": "awaited",
    "subsystem": "subsystem",
    "suite": "suite",
    "metric": "metric",
    "machine": "machine",
    "author": "author",
    "assigned": "assignee",
    "stable": "lacks_fix",
    "blocking": "blocks",
    "reported_by": "reported_by",
}


_NO = ("", "0", "false")  # as SQLite and PostgreSQL write it
_LISTED, _AWAITED, _BLOCKS = "listed", "open, awaited", "open, blocks"  # parts of the statement that are not filters


@dataclass(frozen=True, slots=True)
class Count:
    """A filter value and the number of the release's reports that have it."""

    value: str
    number: int


FilterCounts = Mapping[str, Sequence[Count]]  # by filter, the most frequent value first


@dataclass(frozen=True, slots=True)
class ReleaseCounts:
    """What a release's page counts, whatever the filters: how many reports have each value of a filter; how many of
    each section are open and closed; for whom the open regressions wait, each once, and how many of them block the
    release.
    """

    filters: FilterCounts
    sections: Mapping[str, Mapping[str, int]]
    awaited: Mapping[str, int]
    blocking: int

    @property
    def open(self) -> int:
        return sum(self.awaited.values())


def _newest(column: str) -> Subquery:
    """Return a subquery for the newest event in a section of a release."""
    rows = Report.objects.filter(**{column: OuterRef("version")}).order_by("-revision")
    return Subquery(rows.values("revision")[:1])


def _number(column: str) -> Subquery:
    rows = Report.objects.filter(**{column: OuterRef("version")}).order_by()
    return Subquery(rows.values(column).annotate(many=Number("pk")).values("many"))


def stamped(releases: QuerySet[Release]) -> QuerySet[Release]:
    """Annotate releases with a stamp that changes with every event of one of their reports, and if one leaves."""
    return releases.annotate(
        news=Coalesce(_newest("merged_release"), 0),
        other_news=Coalesce(_newest("shift_left_release"), 0),
        many=Coalesce(_number("merged_release"), 0),
        other_many=Coalesce(_number("shift_left_release"), 0),
    )


def stamp(release: Release) -> str:
    """Return the stamp of a release that came from `stamped`."""
    values = vars(release)
    return ":".join(str(values[name]) for name in ("id", "news", "other_news", "many", "other_many"))


def counts(release: Release) -> ReleaseCounts:
    """Return what a release's page counts; one query if something has changed."""
    return kept(f"tallies:{stamp(release)}", lambda: _counted(release.version), KEEP)


def _counted(version: str) -> ReleaseCounts:
    """Count with one statement, each column of each section from its index. A report in both sections counts twice in
    filters and sections.
    """
    parts = []
    for name, section in SECTIONS.items():
        reports = Report.objects.filter(**{section.column: version}).order_by()
        listed = reports.exclude(verdict=Verdict.IMPROVEMENT)  # which the table shows on request only
        opened = listed.filter(state__in=OPEN)
        if name != "merged":  # a report in both sections counts once
            opened = opened.exclude(merged_release=version)
        questions = [(reports, key, column) for key, column in COUNTED.items()]
        questions += [(listed, _LISTED, "state"), (opened, _AWAITED, "awaited"), (opened, _BLOCKS, "blocks")]
        parts += [
            rows.values_list(Value(name), Value(key), Cast(column, TextField())).annotate(number=Number("pk"))
            for rows, key, column in questions
        ]
    filters: dict[str, Counter[str]] = {name: Counter() for name in COUNTED}
    sections = {name: {"open": 0, "closed": 0} for name in SECTIONS}
    awaited, blocking = Counter[str](), 0
    for section_name, key, value, number in parts[0].union(*parts[1:], all=True):
        if key == _LISTED:
            sections[section_name]["open" if value in OPEN else "closed"] += number
        elif key == _AWAITED:
            awaited[value] += number
        elif key == _BLOCKS:
            blocking += number if value else 0  # "": it blocks none
        else:
            filters[key][value] += number
    offered = {name: _offered(name, tally) for name, tally in filters.items()}
    return ReleaseCounts(offered, sections, dict(awaited.most_common()), blocking)


def _offered(name: str, tally: Counter[str]) -> list[Count]:
    """Return the values of a filter as they are written in its URL."""
    if name in FLAGS:
        number = sum(many for value, many in tally.items() if value not in _NO)
        return [Count(FLAGS[name], number)] if number else []
    if name == "assigned":
        tally["nobody"] = tally.pop("", 0)
    counted = [(value, many) for value, many in tally.items() if value and many]
    return [Count(*pair) for pair in sorted(counted, key=lambda item: (-item[1], item[0]))[:MOST]]


# --- Sections ---

BOTH = 50  # rows per section when both are shown
ONE = 100  # rows of a single section
LIMIT = 5000  # rows per section of what is made as a whole; a real release has about fifty


@dataclass(frozen=True, slots=True)
class TriageSection:
    """A page of a section. `after`, `before`: the cursors of the next and previous page, "" if there is none."""

    name: str
    heading: str
    rows: Sequence[TriageRow]
    group: str
    after: str
    before: str
    shared: str = ""  # the parameters that all rows have, "cpufreq_governor=performance", which no row repeats
    totals: Mapping[str, int] | None = None  # how many reports of the section are open and closed, whatever the filters
    folds: bool = False  # whether closed reports fold under a line that counts them, so that open ones stand together

    @property
    def groups(self) -> Iterator[tuple[str, list[TriageRow]]]:
        """Yield the rows that are not folded, grouped by their common value. If no grouping was requested and the open
        rows stand first, as they do by urgency, the closed ones are a group of their own; else it is one group named
        "".
        """
        rows = [row for row in self.rows if row.state not in CLOSED] if self.folded else list(self.rows)
        if not self.group and not self._open_first:
            return iter([("", rows)])
        return ((name, list(members)) for name, members in groupby(rows, key=self._name))

    @property
    def folded(self) -> list[tuple[str, list[TriageRow]]]:
        """The closed rows below open ones, as a group; nothing if they don't fold, or if no open ones are here."""
        closed = [row for row in self.rows if row.state in CLOSED]
        folds = self.folds and not self.group and self._open_first and len(self.rows) > len(closed) > 0
        return [("", closed)] if folds else []

    @property
    def fold_line(self) -> str:
        """What the fold says of its rows: "4 closed: 3 fixed, 1 expected"."""
        [(_, closed)] = self.folded
        endings = Counter(row.state_label.lower() for row in closed).most_common()
        where = " on this page" if self.after or self.before else ""
        new = sum(row.is_new for row in closed)
        news = f"; {new} new since your last visit" if new else ""
        return f"{len(closed)} closed{where}: {', '.join(f'{count} {label}' for label, count in endings)}{news}"

    @property
    def _open_first(self) -> bool:
        closed = [row.state in CLOSED for row in self.rows]
        return closed == sorted(closed)

    def _name(self, row: TriageRow) -> str:
        if not self.group:
            return "Closed" if row.state in CLOSED else ""
        return str(getattr(row, self.group) or f"no {self.group}").replace("_", " ")


def sections(
    version: str, query: TriageQuery, counts: ReleaseCounts, now: datetime, visited: datetime | None = None
) -> list[TriageSection]:
    """Return both sections of a release, or only the requested one: one query each. Rows of which something became
    known since `visited` are marked.
    """
    requested = {query.section: SECTIONS[query.section]} if query.section else SECTIONS
    size = ONE if query.section else BOTH
    return [
        replace(
            section(name, part.heading, _of_release(version, part), query, now, size, visited),
            folds=query.order == "urgency" and not query.active_filters,
            totals=counts.sections[name],
        )
        for name, part in requested.items()
    ]


def _of_release(version: str, section: ReleaseSection) -> QuerySet[Report]:
    return Report.objects.filter(**{section.column: version})


def section(
    name: str,
    heading: str,
    reports: QuerySet[Report],
    query: TriageQuery,
    now: datetime,
    size: int = ONE,
    visited: datetime | None = None,
) -> TriageSection:
    """Return a page of these reports, in one query: the keys are found in an index, then only their rows are read."""
    order = query.keys.reversed() if query.backwards else query.keys
    matching = query.filtered(reports)
    if (values := query.cursor()) is not None:
        matching = matching.filter(order.after(values))
    chosen = order.sorted(matching).values("pk")[: size + 1]
    shown, columns = Report.objects.filter(pk__in=chosen), list[str](COLUMNS)
    if visited:
        news = Event.objects.filter(report=OuterRef("pk"), recorded_at__gte=visited)
        shown, columns = shown.annotate(is_new=Exists(news)), [*COLUMNS, "is_new"]
    rows = list(order.sorted(shown).values(*columns))
    more, rows = len(rows) > size, rows[:size]
    if query.backwards:
        rows.reverse()
    has_next = "before" in query.position if query.backwards else more
    has_previous = more if query.backwards else "after" in query.position
    listed = [row_of(row, now) for row in rows]
    shared = formats.shared_parameters(row.scenario for row in listed)
    return TriageSection(
        name,
        heading,
        [replace(row, scenario=formats.without(row.scenario, shared)) for row in listed] if shared else listed,
        query.group,
        query.keys.cursor(rows[-1]) if rows and has_next else "",
        query.keys.cursor(rows[0]) if rows and has_previous else "",
        " ".join(shared),
    )


def exported(version: str, query: TriageQuery) -> dict[str, QuerySet[Report]]:
    """Return both sections, in the order that the query asks for."""
    return {section.exported: listed(_of_release(version, section), query) for section in SECTIONS.values()}


def listed(reports: QuerySet[Report], query: TriageQuery) -> QuerySet[Report]:
    """Return reports with culprits and trees, in the order that the query asks for."""
    return query.keys.sorted(query.filtered(reports.select_related("culprit", "tree")))


def changed(seen: Mapping[int, int]) -> list[int]:
    """Return which of these reports have another revision than the one that was seen."""
    rows = Report.objects.filter(pk__in=seen).order_by("pk").values_list("pk", "revision")
    return [pk for pk, revision in rows if revision != seen[pk]]


def chosen(keys: Iterable[int], now: datetime) -> list[TriageRow]:
    """Return the rows of these reports as they are now."""
    rows = Report.objects.filter(pk__in=set(keys)).order_by("pk").values(*COLUMNS)
    return [row_of(row, now) for row in rows]


def name_annotations(active_filters: Mapping[str, tuple[str, ...]]) -> dict[str, Exists]:
    """Return annotations that tell whether any report has the requested names, to add to an existing query."""
    return {
        f"known_{number}": Exists(Report.objects.filter(**{name: clipped(value)}))
        for number, (name, value) in enumerate(_names(active_filters))
    }


def unknown_names(active_filters: Mapping[str, tuple[str, ...]], annotated: object) -> list[str]:
    """Return an error for each name that no report has, according to the annotations of `name_annotations`."""
    names = enumerate(_names(active_filters))
    return [
        f"{name}: no report has {value[:80]!r}" for at, (name, value) in names if not getattr(annotated, f"known_{at}")
    ]


def _names(active_filters: Mapping[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(name, value) for name in NAMES for key in (name, f"{name}{NOT}") for value in active_filters.get(key, ())]


# --- The filter form ---

# Pure.
OFFERED = ("state", "kind", "reported_by", "awaiting", "subsystem", "suite", "metric", "machine", "author", "assigned")
CHOICES = ("state", "kind", "reported_by", "awaiting")  # whose values are words of ours
LONGEST = 40  # characters of a value in a list
SPANS = ("3d", "1w", "2w", "1m", "3m", "1y")


@dataclass(frozen=True, slots=True)
class Control:
    """A filter as a list of values to choose from; `chosen` are the ones that are set."""

    name: str
    offered: Sequence[tuple[str, str]]  # value, label
    chosen: tuple[str, ...]

    @property
    def several(self) -> bool:
        return len(self.chosen) > 1


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter value that is set: its label, the URL without it, and the URL with it negated."""

    label: str
    without: str
    negated: str


@dataclass(frozen=True, slots=True)
class Controls:
    """The form. `hidden`: parameters without a field, which it must keep."""

    lists: Sequence[Control]
    chips: Sequence[Chip]
    hidden: Sequence[tuple[str, str]]
    text: str
    improvements: bool
    improvements_default: bool  # whether the page shows them unless told otherwise, so that the form must tell
    blocking: bool
    lacks_fix: bool
    numbers: dict[str, int]


def controls(query: TriageQuery, counts: FilterCounts, *, improvements_default: bool = False) -> Controls:
    """Return the filter form for a query."""
    active = query.active_filters
    lists = [_control(name, counts.get(name, ()), active.get(name, ())) for name in OFFERED]
    lists += [
        Control(name, [(span, f"over {span}") for span in SPANS], active.get(name, ())) for name in ("age", "silence")
    ]
    fields = {*(control.name for control in lists), "q", IMPROVEMENTS, "blocking", "stable"}
    return Controls(
        lists=lists,
        chips=list(_chips(query)),
        hidden=[(name, value) for name, values in active.items() if name not in fields for value in values],
        text=" ".join(active.get("q", ())),
        improvements="on" in active.get(IMPROVEMENTS, ()),
        improvements_default=improvements_default,
        blocking="blocking" in active,
        lacks_fix="stable" in active,
        numbers={name: sum(count.number for count in counts.get(name, ())) for name in ("blocking", "stable")}
        | {"improvements": sum(count.number for count in counts.get("kind", ()) if count.value == "improvement")},
    )


def _control(name: str, counts: Sequence[Count], chosen: tuple[str, ...]) -> Control:
    offered = [(count.value, f"{_short(_label(name, count.value))} ({count.number})") for count in counts]
    if name == "state":
        offered = [("open", "all open"), ("closed", "all closed"), *offered]
    values = {value for value, _ in offered}
    return Control(
        name, [*offered, *((value, _short(_label(name, value))) for value in chosen if value not in values)], chosen
    )


def _label(name: str, value: str) -> str:
    """Return the words of a choice; a name stays as it is."""
    if name == "state" and value in LABELS:
        return LABELS[State(value)].lower()
    return value.replace("_", " ") if name in CHOICES else value


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


def _chips(query: TriageQuery) -> Iterator[Chip]:
    for name, values in query.active_filters.items():
        for value in values if name != IMPROVEMENTS else ():
            left = tuple(other for other in values if other != value)
            rest = {**query.active_filters, name: left}
            opposite = name.removesuffix(NOT) if name.endswith(NOT) else f"{name}{NOT}"
            negated = {**rest, opposite: (*rest.get(opposite, ()), value)}
            bare = name.removesuffix(NOT)
            label = f"{bare}{' not' if name.endswith(NOT) else ''}: {_label(bare, value)}"
            yield Chip(label, replace(query, active_filters=rest).url(), replace(query, active_filters=negated).url())
