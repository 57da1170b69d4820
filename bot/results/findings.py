"""From new results to findings, new reports, and events on existing reports.

A result joins the report of its culprit, or of the same patch in another tree: the same title with the same patch-id
or patch mail. A report has one finding per place, that is metric, scenario and machine; a place that is measured
again up to another commit makes an event, still there or gone. A result of a commit that fixes a report says what the
fix does. Until the mail is approved, a worse finding becomes the headline, and a clear result replaces a held one.

A report belongs to the producer whose result is its headline. What another one hands in about the same culprit is one
more finding; its headline, verdict and hold stay, and what it says of the state is suggested.

A batch is collected result by result and stored together in a few queries, in the order of the foreign keys. Where
one result measures a fix for the culprit of another, they are stored one by one, since their order matters.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_

from django.db.models import Q

from bot.git.inspection import CommitInspection
from bot.mail.addresses import Address
from bot.mail.patches import Trailer, fixed_commits, subsystem_of
from bot.replies.which_report import person_keys
from bot.results import grading
from bot.results.grading import (
    FIELDS,
    LASTING,
    GradedMeasurement,
    MeasurementKey,
    NewFinding,
    ResultCatalog,
    fetch_catalog,
    grade,
    headline_of,
    may_be_forgotten,
    why_held,
)
from bot.results.values import CommitInfo, Result
from tracker.domain.events import CLOSED, EventData, EventKind, Grade, Verdict
from tracker.domain.report_state import STEPS, fold
from tracker.domain.statistics import verdict_of
from tracker.domain.text import tag_of
from tracker.models import BisectResult, Commit, Event, Finding, Report, Restoration, Suggestion
from tracker.models.results import Outcome
from tracker.services import database, event_log, report_summary
from tracker.services.corrections import outdate, regrade, sent_reports

# --- Known reports ---

_FIXES = (
    EventKind.FIX_PROPOSED, EventKind.FIX_QUEUED, EventKind.FIX_LANDED,
    EventKind.FIX_CONFIRMED, EventKind.FIX_WITHOUT_EFFECT,
)  # fmt: skip


ANOTHER_PRODUCER = "another_producer"  # the rule of suggestions


@dataclass(frozen=True, slots=True)
class KnownResults:
    """The reports by the ids of their culprits; grows while results join them.

    `findings`: the findings of each report, by key; `headlines`: its headline; `announced`: reports whose mail can't be
    recalled; `fixed`: by the sha of a commit, the reports that it fixes.
    """

    reports: dict[int, Report]
    findings: dict[int, dict[MeasurementKey, Finding | NewFinding]]
    headlines: dict[int, Finding | NewFinding]
    announced: Collection[int]
    fixed: Mapping[str, Sequence[Report]]

    def is_of_another(self, report: Report, row: BisectResult) -> bool:
        """Whether a report belongs to another producer than the one of this result."""
        headline = self.headlines.get(report.pk)
        result = headline.result if isinstance(headline, Finding) else headline.row if headline else None
        return result is not None and result.producer != row.producer

    def is_from_mail(self, report: Report) -> bool:
        """Whether a robot's or a person's mail opened a report: it belongs to no producer."""
        headline = self.headlines.get(report.pk)
        return report.of_person or (isinstance(headline, Finding) and headline.result is None)

    def fixed_by(self, result: Result, measured: Iterable[GradedMeasurement]) -> list[Report]:
        """Return the reports that the result's commit fixes and that were measured in one of the same places."""
        keys = {measurement.key for measurement in measured if measurement.data.role != "monitor"}
        return [report for report in self.fixed.get(subject(result).sha, ()) if keys & self.findings[report.pk].keys()]


def subject(result: Result) -> CommitInfo:
    """Return the commit that a result is about: the culprit, or the one that was compared with the good one."""
    return result.culprit or result.bad


_SHORTEST = 10  # digits of a sha that names one commit in Linux


def fetch_known(
    results: Sequence[Result], catalog: ResultCatalog, seen: Mapping[str, CommitInspection]
) -> KnownResults:
    """Load the reports of these culprits, of the same patches in other trees, and those that these commits fix."""
    _join_same_patches(results, catalog)
    owners = [commit.reported_as for commit in catalog.commits.values()]
    locked = Report.objects.select_for_update(of=("self",)).order_by("pk")  # so that none is released or sent meanwhile
    mine = list(locked.filter(culprit__in=owners).select_related("culprit"))
    # The reports that each commit fixes, according to mail or git, by its sha
    subjects = {subject(result).sha: subject(result) for result in results}
    # A person may have abbreviated it; by command or on a page, the name is the remark until git knows the commit.
    shas = defaultdict[str, set[str]](set)
    for sha in subjects:
        for digits in range(_SHORTEST, len(sha) + 1):
            shas[sha[:digits]].add(sha)
    named = {name: next(iter(meant)) for name, meant in shas.items() if len(meant) == 1}
    by_name = Q(commit__in=list(named)) | Q(kind=EventKind.FIX_PROPOSED, commit="", remark__in=list(named))
    events = list(Event.objects.filter(by_name, kind__in=_FIXES).select_related("report__culprit"))
    reversed_events = event_log.reversed_events({event.report_id for event in events})
    fixed: dict[str, dict[int, Report]] = {}
    for event in events:
        if (event.report_id, event.key) not in reversed_events:
            fixed.setdefault(named[event.commit or event.remark], {})[event.report_id] = event.report
    for sha, commit in subjects.items():
        if names := named_by(commit, catalog, seen):
            culprits = reduce(or_, [Q(culprit__sha__gte=name, culprit__sha__lt=name + "g") for name in names])
            rows = Report.objects.filter(culprits).select_related("culprit")
            fixed.setdefault(sha, {}).update({report.pk: report for report in rows})
    pks = {report.pk for report in mine}.union(*fixed.values())
    known_results = KnownResults(
        reports={report.culprit_id: report for report in mine},
        findings={pk: {} for pk in pks},
        headlines={},
        announced=sent_reports(pks) if pks else (),
        fixed={sha: list(reports.values()) for sha, reports in fixed.items()},
    )
    findings = Finding.objects.filter(report__in=pks).select_related("result", "metric")
    for finding in findings.defer("old_samples", "new_samples", "result__payload") if pks else ():
        known_results.findings[finding.report_id][finding.metric_id, finding.scenario_id, finding.machine_id] = finding
        if finding.headline:
            known_results.headlines[finding.report_id] = finding
    return known_results


def _join_same_patches(results: Sequence[Result], catalog: ResultCatalog) -> None:
    """Link a culprit to the known one with the same title and patch-id (or patch mail)."""
    conclusive = (result.culprit for result in results if result.outcome == Outcome.CONCLUSIVE)
    culprits = [catalog.commits[culprit.sha] for culprit in conclusive if culprit]
    ids = {culprit.patch_id for culprit in culprits} - {""}
    mails = {culprit.patch_message_id for culprit in culprits} - {""}
    if not ids and not mails:
        return
    same = Q(patch_id__in=ids) | Q(patch_message_id__in=mails)
    joined = Q(report__isnull=False) | Q(same_patch_as__isnull=False)
    reported = list(Commit.objects.filter(same, joined).select_related("same_patch_as").order_by("pk"))
    own = {commit.pk for commit in reported}
    first: dict[tuple[str, str], Commit] = {}
    for commit in (*reported, *culprits):
        names = [(commit.title, key) for key in (commit.patch_id, commit.patch_message_id) if key]
        owner = next((first[name] for name in names if name in first), commit.same_patch_as or commit)
        for name in names:
            first.setdefault(name, owner)
        if owner.pk != commit.pk and commit.pk not in own and commit.same_patch_as_id is None:
            commit.same_patch_as = owner
            Commit.objects.filter(pk=commit.pk).update(same_patch_as=owner)


def named_by(commit: CommitInfo, catalog: ResultCatalog, seen: Mapping[str, CommitInspection]) -> tuple[str, ...]:
    """Return the abbreviated shas in a commit's `Fixes:` trailers, from this result, or else a tree, and other results
    (Documentation/process/submitting-patches.rst).
    """
    inspection, row = seen.get(commit.sha), catalog.commits.get(commit.sha)
    trailers = [
        *(commit.trailers or (inspection.trailers if inspection else ())),
        *((tag, value) for tag, value in (row.trailers if row else ())),
    ]
    fixes = [Trailer("Fixes", value) for tag, value in trailers if tag.lower() == "fixes"]
    return tuple(sha for sha in fixed_commits(fixes) if len(sha) >= 10)


def are_entangled(
    results: Sequence[Result], catalog: ResultCatalog, known_results: KnownResults, seen: Mapping[str, CommitInspection]
) -> bool:
    """Whether one result measures a fix for the culprit of another one, so that their order matters."""
    culprits = {result.culprit.sha for result in results if result.culprit}
    joined = {catalog.commits[sha].reported_as for sha in culprits}
    for result in results:
        commit = subject(result)
        if any(report.culprit_id in joined for report in known_results.fixed.get(commit.sha, ())):
            return True
        if any(sha.startswith(name) for name in named_by(commit, catalog, seen) for sha in culprits):
            return True
    return False


# --- Storing a batch ---


def store_new(
    results: Sequence[Result], rows: Sequence[BisectResult], now: datetime, seen: Mapping[str, CommitInspection]
) -> None:
    """Store new results and their rows, which are not saved yet, in a few queries. Must run in a transaction.

    `seen`: the commits named in the results, as git trees have them.
    """
    if not results:
        return
    catalog = fetch_catalog(results, seen)
    if catalog.changed_metrics:
        regrade(catalog.changed_metrics)
    known_results = fetch_known(results, catalog, seen)
    if len(results) > 1 and are_entangled(results, catalog, known_results, seen):
        for result, row in zip(results, rows, strict=True):
            store_new([result], [row], now, seen)
        return
    _Batch(catalog, known_results, now, seen).store(results, rows, grade(results, catalog))


class _Batch:
    """What a batch of results adds: collected result by result, stored together."""

    def __init__(
        self, catalog: ResultCatalog, known_results: KnownResults, now: datetime, seen: Mapping[str, CommitInspection]
    ) -> None:
        self.catalog, self.known, self.now, self.seen = catalog, known_results, now, seen
        self._findings: list[NewFinding] = []
        self._events: list[Event] = []
        self._replaced: list[int] = []  # ids of findings replaced by those of a result that is not held
        self._former_headlines: list[int] = []  # ids of findings that are no longer the headline
        self._changed: dict[int, Report] = {}
        self._suggestions: list[Suggestion] = []
        self._mainline_followed = report_summary.mainline_followed()
        self._restored = list(Restoration.objects.values_list("restored_at", flat=True))
        self._outdated: set[int] = set()  # reports whose unsent mail must be composed again

    def store(
        self, results: Sequence[Result], rows: Sequence[BisectResult], measured: Sequence[Sequence[GradedMeasurement]]
    ) -> None:
        """Store everything, in the order of the foreign keys."""
        self._open_reports(results, measured)
        for result, row, measurements in zip(results, rows, measured, strict=True):
            self._record(result, row, measurements)
        database.create(rows, "producer", "external_id")
        if self._replaced:
            Finding.objects.filter(pk__in=self._replaced).delete()
        if self._former_headlines:
            Finding.objects.filter(pk__in=self._former_headlines).update(headline=False)
        database.insert(Finding, FIELDS, [finding.values() for finding in self._findings])
        Report.objects.bulk_update(self._changed.values(), ["verdict", "held"])
        event_log.record(self._events)
        Suggestion.objects.bulk_create(self._suggestions, ignore_conflicts=True)
        event_log.refold(self._changed)
        report_summary.refresh(
            {finding.report for finding in self._findings if finding.headline} | self._changed.keys()
        )
        outdate(self._outdated)

    def _open_reports(self, results: Sequence[Result], measured: Sequence[Sequence[GradedMeasurement]]) -> None:
        """Create reports for culprits that have none, unless the culprit is a fix and no regression itself."""
        fresh: dict[int, Report] = {}
        for result, measurements in zip(results, measured, strict=True):
            if result.outcome != Outcome.CONCLUSIVE or result.culprit is None:
                continue
            commit = self.catalog.commits[result.culprit.sha]
            owner = commit.same_patch_as or commit
            if commit.reported_as in self.known.reports:  # perhaps people corrected its culprit
                continue
            if owner.pk in fresh:
                continue
            headline = headline_of(measurements).as_reported()
            is_fix = self.known.fixed_by(result, measurements)
            if is_fix and headline.graded.verdict is not Grade.REGRESSION:
                continue
            verdict = verdict_of(headline.data.old.mean, headline.data.new.mean, headline.metric.direction)
            initial_state = fold(verdict, ())
            fresh[owner.pk] = Report(
                culprit=owner,
                tag=tag_of(owner.sha),
                verdict=verdict,
                state=initial_state.state,
                status=report_summary.status_now(initial_state, self._mainline_followed),
                awaited=initial_state.awaited,
                subsystem=report_summary.clipped(subsystem_of(owner.title)),
                tree=self.catalog.trees.get(result.tree),
                branch=result.branch,
                authors=sorted(person_keys([Address(owner.author_name, owner.author_email)])),
                held=self._why_held(result, measurements),
            )
        database.create(list(fresh.values()), "culprit_id")
        self.known.reports.update(fresh)
        self.known.findings.update({report.pk: {} for report in fresh.values()})

    def _why_held(self, result: Result, measured: Sequence[GradedMeasurement]) -> str:
        assert result.culprit
        author = self.catalog.commits[result.culprit.sha].author_email
        seen = self.seen.get(result.culprit.sha)
        reasons = why_held(result, measured, author, seen, self.catalog.machines)
        return "\n".join((*reasons, *may_be_forgotten(result.created_at, self._restored, self.now)))

    def _record(self, result: Result, row: BisectResult, measured: Sequence[GradedMeasurement]) -> None:
        """Record what a result shows: a measured fix, findings of a report, or a change that is gone."""
        # A range that merely ends in a fix says nothing of it, only a comparison with its own parent does.
        seen = None if result.culprit else self.seen.get(result.bad.sha)
        if seen is None or any(parent.startswith(result.good.sha) for parent in seen.parents):
            for fixed in self.known.fixed_by(result, measured):
                shown = self._compared_with(fixed, measured)
                self._add_event(fixed, grading.fix_event(result, shown.graded.verdict, row.created_at), row)
        commit = self.catalog.commits[result.culprit.sha] if result.culprit else None
        report = self.known.reports.get(commit.reported_as) if commit else None
        if report is not None and result.outcome != Outcome.INCONCLUSIVE:
            before = self.known.findings[report.pk].get(headline_of(measured).key)
            first = before.result if isinstance(before, Finding) else before.row if before else None
            # The same place was measured later, up to another commit: still there, or gone
            if first is not None and result.bad.sha != first.bad_sha and row.created_at > first.created_at:
                self._add_event(report, grading.later_event(result, row.created_at), row)
        if report is not None and result.outcome == Outcome.CONCLUSIVE:
            self._join(result, row, measured, report)
        else:
            row.measured = [measurement.summary() for measurement in measured]

    def _compared_with(self, fixed: Report, measured: Sequence[GradedMeasurement]) -> GradedMeasurement:
        """Return the measurement that judges a fix: at the report's headline, else the fix's own, else elsewhere."""
        findings, headline = self.known.findings[fixed.pk], self.known.headlines.get(fixed.pk)
        shared = (entry for entry in measured if entry.key in findings and entry.data.role != "monitor")
        return max(shared, key=lambda entry: (findings[entry.key] is headline, entry.data.role == "headline"))

    def _join(self, result: Result, row: BisectResult, measured: Sequence[GradedMeasurement], report: Report) -> None:
        """Add the findings of a result to a report, one per place, and choose the headline."""
        row.report = report
        row.held = self._why_held(result, measured)
        measured = [measurement.as_reported() for measurement in measured]
        headline, repeated = headline_of(measured), []
        for event in grading.recheck_events(result, row.created_at):
            self._add_event(report, event, row)
        parent = self.catalog.commits[result.parent.sha] if result.parent else None
        base = (result.parent.describe if result.parent else "") or result.good.describe
        is_of_another = self.known.is_of_another(report, row)
        clears_hold = bool(report.held) and not row.held and report.pk not in self.known.announced and not is_of_another
        if clears_hold:  # remove the findings of the held result, so that clear measurements can replace them
            for measurement in measured:
                before = self.known.findings[report.pk].pop(measurement.key, None)
                if before is not None and self.known.headlines.get(report.pk) is before:
                    del self.known.headlines[report.pk]
                if isinstance(before, Finding):
                    self._replaced.append(before.pk)
                elif before is not None:
                    self._findings.remove(before)
        for measurement in measured:
            if measurement.key in self.known.findings[report.pk]:
                repeated.append(measurement.summary())
                continue
            finding = NewFinding(measurement, report.pk, row, parent.pk if parent else None, base)
            self.known.findings[report.pk][measurement.key] = finding
            self._findings.append(finding)
            if measurement is headline and not is_of_another:
                self._choose_headline(finding, report, row)
        row.measured = repeated
        self._outdated.add(report.pk)

    def _choose_headline(self, finding: NewFinding, report: Report, row: BisectResult) -> None:
        """Make a finding the headline if there is none; or, until the mail is approved, if it is worse than that one
        or not held where that is. What was mailed as an improvement is a regression once one is found.
        """
        data = finding.measured.data
        verdict = verdict_of(data.old.mean, data.new.mean, finding.measured.metric.direction)
        former, is_announced = self.known.headlines.get(report.pk), report.pk in self.known.announced
        turns = report.verdict == Verdict.IMPROVEMENT and verdict == Verdict.REGRESSION and not row.held
        if former is not None:
            is_better_choice = _rank(finding) < _rank(former) or (report.held and not row.held)
            if (is_announced and not turns) or (row.held and not report.held) or not is_better_choice:
                return
            former.headline = False
            if isinstance(former, Finding):
                self._former_headlines.append(former.pk)
        before = (report.verdict, report.held)
        report.verdict = verdict
        if not is_announced:
            kept = [reason for reason in report.held.split("\n") if reason in LASTING]
            report.held = "\n".join(dict.fromkeys(reason for reason in (*kept, *row.held.split("\n")) if reason))
        finding.headline = True
        self.known.headlines[report.pk] = finding
        if before != (report.verdict, report.held):
            self._changed[report.pk] = report

    def _add_event(self, report: Report, event: EventData | None, row: BisectResult) -> None:
        """Add an event to a report, and a note of it to the result; to that of another producer, a suggestion, as of
        what would close a report that mail has opened.
        """
        if event is None:
            return
        step = STEPS.get(event.kind)
        closes = step is not None and step.to in CLOSED
        if self.known.is_of_another(report, row) or (closes and self.known.is_from_mail(report)):
            names = ("key", "kind", "occurred_at", "role", "commit", "title", "tag", "tree", "remark")
            values = {name: getattr(event, name) for name in names}
            quote = f"measured by {row.producer}: {event.kind.replace('_', ' ')} {event.tag}".strip()
            self._suggestions.append(Suggestion(report=report, rule=ANOTHER_PRODUCER, quote=quote[:2000], **values))
            row.note = "; ".join(part for part in (row.note, f"suggested: report {report.culprit.sha10}") if part)
            return
        self._events.append(event_log.event_row(report, event, self.now))
        self._outdated.add(report.pk)
        label = " ".join(part for part in (event.kind.replace("_", " "), event.tag) if part)
        row.note = "; ".join(part for part in (row.note, f"{label}: report {report.culprit.sha10}") if part)
        if row.report is None:
            row.report = report


def _rank(finding: Finding | NewFinding) -> float:
    """Return a sort key, lower is worse: the change in per cent, plus for better; ±inf for a change from zero."""
    if isinstance(finding, Finding):
        change_pct, metric = finding.change_pct, finding.metric
        old, new = finding.old_mean or 0.0, finding.new_mean or 0.0
    else:
        change_pct, metric = finding.measured.graded.better_pct, finding.measured.metric
        old, new = finding.measured.data.old.mean, finding.measured.data.new.mean
    if change_pct is not None:
        return change_pct
    return -math.inf if verdict_of(old, new, metric.direction) is Verdict.REGRESSION else math.inf
