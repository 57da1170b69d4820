"""New results as rows, all together: what they speak of, their reports, findings, and events of other reports."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.db.models import Q

from bot.ingest import rechecks
from bot.ingest.found import FIELDS, Found, Measured, Place
from bot.ingest.holds import why_held
from bot.ingest.value import CommitTold, Measurement, Result, TestRun
from bot.replies.addresses import Address
from bot.replies.known import known_as
from bot.replies.patches import bare_title
from bot.subsystem import subsystem_of
from bot.upstream.inspection import Inspected
from tracker import bulk, history, registry, shelf, significance
from tracker.keys import scenario_key, tag_of
from tracker.models import (
    BisectResult,
    Commit,
    Event,
    Finding,
    Machine,
    Metric,
    NoiseHistory,
    Report,
    Scenario,
    Tree,
)
from tracker.models.result import Outcome
from tracker.movement import word
from tracker.regrading import regrade, told_already
from tracker.significance import Graded, Noise
from tracker.status import Event as EventValue
from tracker.status import Grade, Happening, fold, sentence


class Batch:
    """Results that are new, each with its row, which is not saved yet. `store` saves everything, in a few queries."""

    def __init__(
        self, results: Sequence[Result], rows: Sequence[BisectResult], now: datetime, seen: Mapping[str, Inspected]
    ) -> None:
        self.results = results
        self.rows = rows
        self.now = now
        self.seen = seen
        self._findings: list[Found] = []
        self._events: list[Event] = []
        self._dethroned: list[int] = []
        self._changed: dict[int, Report] = {}

    def store(self) -> None:
        """Everything, in the order in which rows need each other."""
        if not self.results:
            return
        self._fetch_things()
        measured = self._grade()
        self._fetch_reports()
        self._open_reports(measured)
        for result, row, each in zip(self.results, self.rows, measured, strict=True):
            self._place(result, row, each)
        bulk.create(self.rows, "producer", "external_id")
        if self._dethroned:
            Finding.objects.filter(pk__in=self._dethroned).update(headline=False)
        bulk.insert(Finding, FIELDS, [each.values() for each in self._findings])
        Report.objects.bulk_update(self._changed.values(), ["verdict", "held"])
        history.record(self._events)
        history.refold(self._changed)
        if self._turned:
            regrade(self._turned)

    # --- what the results speak of ---

    def _fetch_things(self) -> None:
        runs = [run for result in self.results for run in result.runs]
        self._machines = shelf.machines(_machine(run) for run in runs)
        self._scenarios = shelf.scenarios(
            Scenario(key=scenario_key(run.suite, run.params), suite=run.suite, params=dict(run.params)) for run in runs
        )
        self._metrics, self._turned = shelf.metrics(
            registry.new_metric(metric, unit, direction, suite)
            for metric, unit, direction, suite in dict.fromkeys(
                (each.metric, each.unit, each.direction, run.suite) for run in runs for each in run.measurements
            )
        )
        self._trees = shelf.trees(
            Tree(name=result.tree, url=result.tree_url, role=registry.role_of(result.tree, result.tree_url))
            for result in self.results
            if result.tree
        )
        self._commits = shelf.commits(self._told_commits())

    def _told_commits(self) -> Iterator[Commit]:
        for result in self.results:
            if result.culprit:
                yield _commit(result.culprit, self.seen.get(result.culprit.sha), result.patch_message_id)
                if result.parent:
                    yield _commit(result.parent, self.seen.get(result.parent.sha))

    # --- numbers ---

    def _grade(self) -> list[list[Measured]]:
        """Every measurement of every result, graded, each against the noise of what came before it."""
        flat = [(each, *things) for result in self.results for each, things in self._measurements(result)]
        graded = significance.grade_all([told[0] for told in flat], [told[1].direction for told in flat])
        noise = self._noise()
        answers = iter([_measured(*told, grade, noise) for told, grade in zip(flat, graded, strict=True)])
        measured = [[next(answers) for run in result.runs for _ in run.measurements] for result in self.results]
        self._save_noise({each.place: noise[each.place] for one in measured for each in one})
        return measured

    def _measurements(self, result: Result) -> Iterator[tuple[Measurement, tuple[Metric, Scenario, Machine]]]:
        for run in result.runs:
            scenario = self._scenarios[scenario_key(run.suite, run.params)]
            machine = self._machines[run.machine.id]
            for each in run.measurements:
                yield each, (self._metrics[each.metric], scenario, machine)

    def _noise(self) -> dict[Place, Noise]:
        rows = NoiseHistory.objects.filter(
            metric__in=[row.pk for row in self._metrics.values()],
            scenario__in=[row.pk for row in self._scenarios.values()],
            machine__in=[row.pk for row in self._machines.values()],
        )
        columns = rows.values_list("metric_id", "scenario_id", "machine_id", "degrees", "squares")
        return {(metric, scenario, machine): Noise(n, s) for metric, scenario, machine, n, s in columns}

    def _save_noise(self, noise: Mapping[Place, Noise]) -> None:
        place = ("metric", "scenario", "machine")
        rows = [(*where, each.degrees, each.squares) for where, each in sorted(noise.items())]
        bulk.upsert(NoiseHistory, (*place, "degrees", "squares"), place, rows)

    # --- reports ---

    def _fetch_reports(self) -> None:
        """The reports of these culprits, of the same patches in other trees, and of what these commits fix."""
        self._join_same_patches()
        owners = [commit.same_patch_as_id or commit.pk for commit in self._commits.values()]
        mine = list(Report.objects.filter(culprit__in=owners).select_related("culprit"))
        self._reports = {report.culprit_id: report for report in mine}
        self._fixed = self._fixed_reports()
        known = {report.pk for report in (*mine, *(each for some in self._fixed.values() for each in some))}
        self._told = told_already(known) if known else set()
        self._heads: dict[int, Finding | Found] = {}
        self._places: dict[int, set[Place]] = {pk: set() for pk in known}
        for finding in Finding.objects.filter(report__in=known).defer("old_samples", "new_samples") if known else ():
            self._places[finding.report_id].add((finding.metric_id, finding.scenario_id, finding.machine_id))
            if finding.headline:
                self._heads[finding.report_id] = finding

    def _join_same_patches(self) -> None:
        """A culprit with the title and the patch-id (or the patch mail) of a known one is another commit of it."""
        told = (result.culprit for result in self.results if _is_about_a_culprit(result))
        culprits = [self._commits[each.sha] for each in told if each]
        ids = {each.patch_id for each in culprits} - {""}
        mails = {each.patch_message_id for each in culprits} - {""}
        if not ids and not mails:
            return
        same = Q(patch_id__in=ids) | Q(patch_message_id__in=mails)
        reported = list(Commit.objects.filter(same, report__isnull=False).order_by("pk"))
        first: dict[tuple[str, str], Commit] = {}
        for commit in (*reported, *culprits):
            names = [(commit.title, each) for each in (commit.patch_id, commit.patch_message_id) if each]
            owner = next((first[name] for name in names if name in first), commit)
            for name in names:
                first.setdefault(name, owner)
            if owner.pk != commit.pk and commit not in reported and commit.same_patch_as_id is None:
                commit.same_patch_as = owner
                Commit.objects.filter(pk=commit.pk).update(same_patch_as=owner)

    def _fixed_reports(self) -> dict[str, list[Report]]:
        """For each commit that a result is about, the reports that it is a fix of, by what git or mail told us."""
        subjects = {(result.culprit or result.bad).sha: result for result in self.results}
        kinds = (Happening.FIX_PROPOSED, Happening.FIX_QUEUED, Happening.FIX_LANDED)
        told = Event.objects.filter(commit__in=list(subjects), kind__in=kinds).select_related("report__culprit")
        fixed: dict[str, list[Report]] = {}
        for event in told:
            fixed.setdefault(event.commit, []).append(event.report)
        for sha, result in subjects.items():
            names = rechecks.fixes_named(_with_trailers(result.culprit or result.bad, self.seen.get(sha)))
            if names:
                named = _reports_of(names)
                fixed[sha] = list({report.pk: report for report in (*fixed.get(sha, ()), *named)}.values())
        return fixed

    def _open_reports(self, measured: Sequence[Sequence[Measured]]) -> None:
        """Make the reports of culprits that have none yet; a fix that is no regression itself needs none."""
        fresh: dict[int, Report] = {}
        for result, each in zip(self.results, measured, strict=True):
            if not _is_about_a_culprit(result):
                continue
            owner = self._owner(result)
            if owner.pk in self._reports or owner.pk in fresh:
                continue
            if self._fixed_by(result, each) and _headline(each).graded.verdict is not Grade.REGRESSION:
                continue
            fresh[owner.pk] = self._report(result, owner, _headline(each))
        bulk.create(list(fresh.values()), "culprit_id")
        self._reports |= fresh

    def _report(self, result: Result, owner: Commit, headline: Measured) -> Report:
        verdict = word(headline.told.old.mean, headline.told.new.mean, headline.metric.direction)
        nowhere = fold(verdict, ())
        return Report(
            culprit=owner,
            tag=tag_of(owner.sha),
            verdict=verdict,
            state=nowhere.state,
            status=sentence(nowhere),
            awaited=nowhere.awaited,
            subsystem=subsystem_of(owner.title),
            tree=self._trees.get(result.tree),
            branch=result.branch,
            authors=sorted(known_as([Address(owner.author_name, owner.author_email)])),
            held=self._why_held(result, headline),
        )

    def _owner(self, result: Result) -> Commit:
        """The commit whose report a result belongs to."""
        assert result.culprit
        commit = self._commits[result.culprit.sha]
        return commit.same_patch_as or commit

    def _fixed_by(self, result: Result, measured: Iterable[Measured]) -> list[Report]:
        """The reports that the result's commit is a fix of, and that were measured in the same place."""
        places = {each.place for each in measured}
        subject = result.culprit or result.bad
        return [report for report in self._fixed.get(subject.sha, ()) if places & self._places[report.pk]]

    def _why_held(self, result: Result, headline: Measured) -> str:
        assert result.culprit
        author = self._commits[result.culprit.sha].author_email
        seen = self.seen.get(result.culprit.sha)
        return why_held(result, headline.graded, headline.metric.direction, author, seen)

    # --- each result in its place ---

    def _place(self, result: Result, row: BisectResult, measured: Sequence[Measured]) -> None:
        """A fix that was measured, a finding of a report, or a culprit that shows no more."""
        for fixed in self._fixed_by(result, measured):
            shared = next(each for each in measured if each.place in self._places[fixed.pk])
            self._say(fixed, rechecks.fix_event(result, shared.graded.verdict, row.created_at), row)
        report = self._reports.get(self._owner(result).pk) if result.culprit else None
        if report is None:
            return
        known = self._places.setdefault(report.pk, set())
        if _headline(measured).place in known and result.outcome != Outcome.INCONCLUSIVE:
            self._say(report, rechecks.later_event(result, row.created_at), row)
        if result.outcome == Outcome.CONCLUSIVE:
            self._join(result, row, measured, report)

    def _join(self, result: Result, row: BisectResult, measured: Sequence[Measured], report: Report) -> None:
        """Add what a result found to a report: every place once, and a headline by the rule."""
        row.report = report
        row.held = self._why_held(result, _headline(measured))
        for event in rechecks.recheck_events(result, row.created_at):
            self._say(report, event, row)
        parent = self._commits[result.parent.sha] if result.parent else None
        base = (result.parent.describe if result.parent else "") or result.good.describe
        for each in measured:
            if each.place not in self._places[report.pk]:
                self._places[report.pk].add(each.place)
                finding = Found(each, report.pk, row, parent.pk if parent else None, base)
                self._findings.append(finding)
                if each.told.role == "headline" and self._leads(finding, report, row):
                    self._enthrone(finding, report, row)
        if not row.held and report.held:
            report.held = ""
            self._changed[report.pk] = report

    def _leads(self, finding: Found, report: Report, row: BisectResult) -> bool:
        """Whether a finding becomes the headline: the first does; then, until the mail has gone out, a worse one,
        and one that needn't be held before one that must.
        """
        head = self._heads.get(report.pk)
        if head is None:
            return True
        if report.pk in self._told or (row.held and not report.held):
            return False
        worse = finding.change_pct is not None and (head.change_pct is None or finding.change_pct < head.change_pct)
        return worse or bool(report.held and not row.held)

    def _enthrone(self, finding: Found, report: Report, row: BisectResult) -> None:
        if head := self._heads.get(report.pk):
            head.headline = False
            if isinstance(head, Finding):
                self._dethroned.append(head.pk)
            told = finding.measured.told
            report.verdict = word(told.old.mean, told.new.mean, finding.measured.metric.direction)
            report.held = row.held
            self._changed[report.pk] = report
        finding.headline = True
        self._heads[report.pk] = finding

    def _say(self, report: Report, event: EventValue | None, row: BisectResult) -> None:
        if event:
            self._events.append(history.event_row(report, event, self.now))
            words = [event.kind.replace("_", " "), event.tag]
            row.note = f"{' '.join(word for word in words if word)}: report {report.culprit.sha10}"


def _is_about_a_culprit(result: Result) -> bool:
    return result.outcome == Outcome.CONCLUSIVE and result.culprit is not None


def _headline(measured: Iterable[Measured]) -> Measured:
    return next(each for each in measured if each.told.role == "headline")


def _measured(
    told: Measurement,
    metric: Metric,
    scenario: Scenario,
    machine: Machine,
    graded: Graded,
    noise: dict[Place, Noise],
) -> Measured:
    """A measurement against the noise so far, to which it then adds its own."""
    place = (metric.id, scenario.id, machine.id)
    before = noise.get(place) or Noise()
    noise[place] = before.plus(told.old, told.new)
    return Measured(told, metric, scenario, machine, place, graded, significance.effect(graded.change_pct, before))


def _reports_of(names: Collection[str]) -> list[Report]:
    """The reports whose culprits' shas begin so."""
    begins = Q()
    for name in names:
        begins |= Q(culprit__sha__gte=name, culprit__sha__lt=name + "g")
    return list(Report.objects.filter(begins).select_related("culprit"))


def _machine(run: TestRun) -> Machine:
    told = run.machine
    return Machine(
        name=told.id,
        cpus=told.cpus,
        sockets=told.sockets,
        cpu_model=told.cpu_model,
        codename=told.codename,
        memory_bytes=told.memory_bytes,
    )


def _with_trailers(told: CommitTold, seen: Inspected | None) -> CommitTold:
    return replace(told, trailers=told.trailers or (seen.trailers if seen else ()))


def _commit(told: CommitTold, seen: Inspected | None, patch_message_id: str = "") -> Commit:
    """A commit by what the lab told, and by what a git tree knows where the lab was silent."""
    told = _with_trailers(told, seen)
    return Commit(
        sha=told.sha,
        title=bare_title(told.title or (seen.title if seen else ""))[:1000],
        author_name=told.author_name or (seen.author_name if seen and not told.author_email else ""),
        author_email=(told.author_email or (seen.author_email if seen else "")).lower(),
        authored_at=told.date or (seen.authored_at if seen else None),
        trailers=[list(pair) for pair in told.trailers],
        patch_message_id=patch_message_id,
        patch_id=seen.patch_id if seen else "",
    )
