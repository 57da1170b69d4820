"""What is known of the reports that results belong to: their findings, whether mail was sent, and their fixes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import Q

from bot.git.inspection import CommitInspection
from bot.results import rechecks
from bot.results.bisect_result import CommitInfo, Result
from bot.results.storage.catalog import ResultCatalog, with_trailers
from bot.results.storage.graded import GradedMeasurement, MeasurementKey, NewFinding
from tracker.domain.events import EventKind
from tracker.models import Commit, Event, Finding, Report
from tracker.models.results import Outcome
from tracker.services.reports.regrading import sent_reports


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

    def add(self, reports: Mapping[int, Report]) -> None:
        """Add reports that were just created, by the ids of their culprits."""
        self.reports.update(reports)
        self.findings.update({report.pk: {} for report in reports.values()})

    def fixed_by(self, result: Result, measured: Iterable[GradedMeasurement]) -> list[Report]:
        """Return the reports that the result's commit fixes and that were measured in one of the same places."""
        keys = {each.key for each in measured if each.data.role != "monitor"}
        return [report for report in self.fixed.get(subject(result).sha, ()) if keys & self.findings[report.pk].keys()]


def subject(result: Result) -> CommitInfo:
    """Return the commit that a result is about: the culprit, or the one that was compared with the good one."""
    return result.culprit or result.bad


def is_about_a_culprit(result: Result) -> bool:
    return result.outcome == Outcome.CONCLUSIVE and result.culprit is not None


def fetch_known(
    results: Sequence[Result], catalog: ResultCatalog, seen: Mapping[str, CommitInspection]
) -> KnownResults:
    """Load the reports of these culprits, of the same patches in other trees, and those that these commits fix."""
    _join_same_patches(results, catalog)
    owners = [commit.same_patch_as_id or commit.pk for commit in catalog.commits.values()]
    locked = Report.objects.select_for_update(of=("self",)).order_by("pk")  # so that none is released or sent meanwhile
    mine = list(locked.filter(culprit__in=owners).select_related("culprit"))
    fixed = _fixed(results, catalog, seen)
    pks = {report.pk for report in (*mine, *(each for reports in fixed.values() for each in reports))}
    known = KnownResults(
        reports={report.culprit_id: report for report in mine},
        findings={pk: {} for pk in pks},
        headlines={},
        announced=sent_reports(pks) if pks else (),
        fixed=fixed,
    )
    findings = Finding.objects.filter(report__in=pks).select_related("result", "metric")
    for finding in findings.defer("old_samples", "new_samples", "result__payload") if pks else ():
        known.findings[finding.report_id][finding.metric_id, finding.scenario_id, finding.machine_id] = finding
        if finding.headline:
            known.headlines[finding.report_id] = finding
    return known


def _join_same_patches(results: Sequence[Result], catalog: ResultCatalog) -> None:
    """Link a culprit to the known one with the same title and patch-id (or patch mail)."""
    reported_culprits = (result.culprit for result in results if is_about_a_culprit(result))
    culprits = [catalog.commits[each.sha] for each in reported_culprits if each]
    ids = {each.patch_id for each in culprits} - {""}
    mails = {each.patch_message_id for each in culprits} - {""}
    if not ids and not mails:
        return
    same = Q(patch_id__in=ids) | Q(patch_message_id__in=mails)
    joined = Q(report__isnull=False) | Q(same_patch_as__isnull=False)
    reported = list(Commit.objects.filter(same, joined).select_related("same_patch_as").order_by("pk"))
    own = {commit.pk for commit in reported}
    first: dict[tuple[str, str], Commit] = {}
    for commit in (*reported, *culprits):
        names = [(commit.title, each) for each in (commit.patch_id, commit.patch_message_id) if each]
        owner = next((first[name] for name in names if name in first), commit.same_patch_as or commit)
        for name in names:
            first.setdefault(name, owner)
        if owner.pk != commit.pk and commit.pk not in own and commit.same_patch_as_id is None:
            commit.same_patch_as = owner
            Commit.objects.filter(pk=commit.pk).update(same_patch_as=owner)


_FIXES = (
    *(EventKind.FIX_PROPOSED, EventKind.FIX_QUEUED, EventKind.FIX_LANDED),
    *(EventKind.FIX_CONFIRMED, EventKind.FIX_WITHOUT_EFFECT),
)


def _fixed(
    results: Sequence[Result], catalog: ResultCatalog, seen: Mapping[str, CommitInspection]
) -> dict[str, list[Report]]:
    """Return the reports that each commit fixes, according to git or mail, by sha."""
    subjects = {subject(result).sha: subject(result) for result in results}
    events = Event.objects.filter(commit__in=list(subjects), kind__in=_FIXES).select_related("report__culprit")
    fixed: dict[str, dict[int, Report]] = {}
    for event in events:
        fixed.setdefault(event.commit, {})[event.report_id] = event.report
    for sha, commit in subjects.items():
        if names := named_by(commit, catalog, seen):
            fixed.setdefault(sha, {}).update({report.pk: report for report in _reports_of(names)})
    return {sha: list(reports.values()) for sha, reports in fixed.items()}


def named_by(commit: CommitInfo, catalog: ResultCatalog, seen: Mapping[str, CommitInspection]) -> tuple[str, ...]:
    """Return the abbreviated shas that a commit says it fixes, by this result, other results or a tree."""
    info = with_trailers(commit, seen.get(commit.sha))
    row = catalog.commits.get(commit.sha)
    stored = tuple((tag, value) for tag, value in row.trailers) if row else ()
    return rechecks.fixes_named(replace(info, trailers=(*info.trailers, *stored)))


def are_entangled(
    results: Sequence[Result], catalog: ResultCatalog, known: KnownResults, seen: Mapping[str, CommitInspection]
) -> bool:
    """Whether one result measures a fix for the culprit of another one, so that their order matters."""
    culprits = {result.culprit.sha for result in results if result.culprit}
    joined = {catalog.commits[sha].same_patch_as_id or catalog.commits[sha].pk for sha in culprits}
    for result in results:
        commit = subject(result)
        if any(report.culprit_id in joined for report in known.fixed.get(commit.sha, ())):
            return True
        if any(sha.startswith(name) for name in named_by(commit, catalog, seen) for sha in culprits):
            return True
    return False


def _reports_of(names: Collection[str]) -> list[Report]:
    """Return the reports whose culprits have these abbreviated shas."""
    condition = Q()
    for name in names:
        condition |= Q(culprit__sha__gte=name, culprit__sha__lt=name + "g")
    return list(Report.objects.filter(condition).select_related("culprit"))
