"""How sure a result is: its grades, why it is held, and the events and rows it makes.

The measurements of many results are graded at once, each against the noise that is known where it was measured, and
become findings under the key of metric, scenario and machine. A result is held if an operator must check it before
any mail is sent; some reasons last, whatever other results about the culprit say.

A result adds events to existing reports: a fix was measured, the change is still there, or gone. The rows that
results refer to (machines, scenarios, metrics, trees, commits) are found or created in bulk. What the lab left out of
a commit comes from a git tree; its signers come only from there, since a lab could name anybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any
from urllib.parse import quote

import orjson

from bot.git.inspection import CommitInspection
from bot.mail.addresses import signers
from bot.mail.patches import bare_title
from bot.replies.which_report import person_keys
from bot.results.values import CommitInfo, Measured, MeasurementData, Result, TestRun
from tracker.domain import statistics, versions
from tracker.domain.curves import CurveNoise
from tracker.domain.events import EventData, EventKind, Grade
from tracker.domain.metrics import has_own_keys, is_key, is_monitor, same_unit
from tracker.domain.statistics import (
    CONTRADICTION,
    MAIL_ALPHA,
    NO_DIRECTION,
    OTHER_UNIT,
    Graded,
    effect,
    false_discovery,
    family_wise,
    grade_of,
    least_p,
    overlap,
    share_against,
)
from tracker.domain.text import scenario_key
from tracker.models import BisectResult, Commit, Machine, Metric, Scenario, Tree
from tracker.services import catalog
from tracker.services.curve_changes import noise_at

# --- Events for existing reports ---


def recheck_events(result: Result, at: datetime) -> Iterator[EventData]:
    """Yield events for the report of the result's own culprit, from the lab's rechecks on other commits: by version if
    every ref names one, else in the lab's order.
    """
    kinds = {"still-bad": EventKind.STILL_THERE, "good": EventKind.DISAPPEARED}
    rechecks = list(result.rechecks)
    named = [version for recheck in rechecks if (version := versions.parse(recheck.ref))]
    if len(named) == len(rechecks):
        rechecks = [recheck for _, recheck in sorted(zip(named, rechecks, strict=True), key=itemgetter(0))]
    for number, recheck in enumerate(rechecks):
        if kind := kinds.get(recheck.state):
            moment = at + timedelta(microseconds=number)  # distinct times, so that the last one decides
            yield _event(result, kind, moment, recheck.sha, recheck.ref, f"recheck-{recheck.ref}-{recheck.sha}")


def later_event(result: Result, at: datetime) -> EventData:
    """Return the event for an existing report whose place was measured again up to a later commit."""
    kind = EventKind.STILL_THERE if result.outcome == "conclusive" else EventKind.DISAPPEARED
    return _event(result, kind, at, result.bad.sha, result.bad.describe or result.bad.sha[:10])


# What a measured fix is by the grade of its change; by any other grade, nothing is known.
FIX_KINDS = {
    Grade.IMPROVEMENT: EventKind.FIX_CONFIRMED,
    Grade.NOT_SIGNIFICANT: EventKind.FIX_WITHOUT_EFFECT,
    Grade.REGRESSION: EventKind.FIX_WITHOUT_EFFECT,
}


def fix_event(result: Result, grade: Grade, at: datetime) -> EventData | None:
    """Return the event for a report whose fix was compared with the fix's parent; None if the grade says nothing."""
    fix = result.culprit or result.bad
    kind = FIX_KINDS.get(grade)
    return _event(result, kind, at, fix.sha, title=fix.title) if kind else None


def _event(
    result: Result, kind: EventKind, at: datetime, sha: str, tag: str = "", part: str = "", title: str = ""
) -> EventData:
    evidence = "/".join(result.key)
    name = "/".join(quote(piece, safe=" ") for piece in result.key)  # escaped, so that no two results share a key
    key = ":".join(piece for piece in (kind.value, name, part) if piece)
    return EventData(key=key, kind=kind, occurred_at=at, commit=sha, result=evidence, tag=tag, title=title)


# --- Why a result is held ---

MERGE = "the culprit is a merge commit"
# What git and the kernel's maintainers call merges, where no tree is followed that tells.
_MERGE_TITLE = re.compile(
    r"Merge (?:(?:tags?|branch|branches|remote-tracking branch|commit|patch series|series) ['\"]|pull request #)"
)
NO_CODE = "the culprit changes comments or documentation only"
UNDATED = timedelta(days=30)
FORGOTTEN = "made before the database was restored from an older backup: check in the archives that no mail was sent"
_LEAST_SHOWN = 0.05  # per cent
CLEAR_ALPHA = 0.001  # below it, a few runs may lie within the other side's
_FEW_RUNS = 5  # of a side; with fewer, each counts
_STRAY = 0.2  # share of all pairs of runs, of both sides, in which the change may go the other way
# Other results about the same culprit don't clear these.
LASTING = frozenset({MERGE, NO_CODE, FORGOTTEN})


def why_held(
    result: Result,
    measured: Sequence[GradedMeasurement],
    author: str,
    seen: CommitInspection | None,
    machines: Mapping[str, Machine],
) -> Iterator[str]:
    """Yield the reasons, one line each; none if no check is needed.

    `author` (of the culprit) is as known by now; `seen` is the culprit as a git tree has it; `machines` are as stored.
    """
    headline = headline_of(measured)
    data, direction = headline.data, headline.metric.direction
    culprit = result.culprit
    assert culprit
    if culprit.is_merge or _MERGE_TITLE.match(culprit.title) or (seen and len(seen.parents) > 1):
        yield MERGE
    if seen and seen.no_op:
        yield NO_CODE
    if not author:
        yield "the culprit's author is not known"
    if not result.parent_is_stated and seen and result.parent and result.parent.sha not in seen.parents:
        yield f"{result.parent.sha[:10]} is not a parent of the culprit in git"
    if result.uncertainty and not (seen and result.parent and result.parent.sha in seen.parents):
        yield result.uncertainty
    if result.doubt:
        yield result.doubt
    if is_watched(data.metric, result.runs[0].suite):
        yield f"{data.metric} is what a monitor saw of the machine, and nothing of the benchmark moved beyond chance"
    yield from _why_chance(headline, measured)
    yield from _other_machines(result, machines)
    if not same_unit(data.unit, headline.metric.unit):
        yield OTHER_UNIT.format(metric=data.metric, stated=data.unit, known=headline.metric.unit)
    if direction == "unknown":
        yield NO_DIRECTION.format(metric=data.metric)
    elif data.direction not in ("unknown", direction):
        yield CONTRADICTION.format(stated=data.direction, metric=data.metric, known=direction)


_SAME_MEMORY = 0.1  # of it: what the kernel counts is less than what is built in


def _other_machines(result: Result, machines: Mapping[str, Machine]) -> Iterator[str]:
    """Yield what a result says of a machine that is not what is stored under its name: it may be another one."""
    for told in dict.fromkeys(run.machine for run in result.runs):
        known = machines[told.id]
        parts = [
            (f"{told.cpus} CPUs", f"{known.cpus} CPUs", told.cpus, known.cpus),
            (f"{told.sockets} sockets", f"{known.sockets} sockets", told.sockets, known.sockets),
        ]  # labs and tools write a CPU's model in many ways
        memory, stored_memory = told.memory_bytes or 0, known.memory_bytes or 0
        if abs(memory - stored_memory) > _SAME_MEMORY * stored_memory:
            shown = [f"{count / 2**30:.1f} GiB" for count in (memory, stored_memory)]
            parts.append((shown[0], shown[1], memory, stored_memory))
        if different := [(new, old) for new, old, given, stored in parts if given and stored and given != stored]:
            said, known_here = (", ".join(pair[side] for pair in different) for side in (0, 1))
            yield f"the result says that {told.id} has {said}; stored here: {known_here}: another machine of this name?"


def p_text(p: float) -> str:
    """Return a p-value above what a mail needs: with two digits, or with four decimals where those would be it.

    >>> p_text(0.132), p_text(0.0104)
    ('0.13', '0.0104')
    """
    return f"{p:.2g}" if float(f"{p:.2g}") > MAIL_ALPHA else f"{p:.4f}"


def _why_chance(headline: GradedMeasurement, measured: Sequence[GradedMeasurement]) -> Iterator[str]:
    """Yield why the change of a headline may be chance, one reason a line."""
    graded, data, noise = headline.graded, headline.data, headline.noise
    if graded.verdict is Grade.NOT_TESTABLE:
        yield "the change can't be tested: one run per side, or no standard deviation"
    elif (p := headline.p_for_mail) is not None and p >= MAIL_ALPHA:
        tested = sum(entry.data.role != "monitor" and entry.graded.p_value is not None for entry in measured)
        among = f", corrected for {tested} metrics" if tested > 1 else ""
        by_order = "" if p == graded.p_value else " by the order of the runs"
        may_be = "is not significant" if graded.verdict is Grade.NOT_SIGNIFICANT else "may be chance"
        yield f"the change {may_be} (p = {p_text(p)}{by_order}{among}; a mail needs {MAIL_ALPHA})"
    if data.old_samples and data.new_samples and overlap(data.old_samples, data.new_samples):
        # Ranges grow with the number of runs: of many, a few that stray say nothing against a clear change.
        is_clear = headline.p_for_mail is not None and headline.p_for_mail < CLEAR_ALPHA
        few = min(data.old.n, data.new.n) < _FEW_RUNS
        if few or not is_clear or share_against(data.old_samples, data.new_samples) > _STRAY:
            yield "the samples of both sides overlap"
    if graded.change_pct is not None and abs(graded.change_pct) < _LEAST_SHOWN:
        yield "the change is below 0.05%, which a mail would print as 0.0%"
    if noise and (times := effect(graded.change_pct, noise.pct)) is not None and times < 1:
        yield f"the change is within the usual noise there, ±{noise.pct:.2g}%"


def may_be_forgotten(created_at: datetime | None, restored: Sequence[datetime], now: datetime) -> Iterator[str]:
    """Yield a reason if a result was made before the database was restored from a backup, at one of these times: it may
    have been here already, and a mail about it sent. One without a date counts as made before for a month.
    """
    if any(created_at <= at if created_at else now - at < UNDATED for at in restored):
        yield FORGOTTEN


# --- Catalog rows ---


@dataclass(frozen=True, slots=True)
class ResultCatalog:
    """Rows by the names used in results; only bisect results name trees and commits.

    `changed_metrics`: those whose direction changed with these.
    """

    machines: Mapping[str, Machine]
    scenarios: Mapping[str, Scenario]
    metrics: Mapping[str, Metric]
    changed_metrics: Sequence[Metric]
    trees: Mapping[str, Tree] = field(default_factory=dict)
    commits: Mapping[str, Commit] = field(default_factory=dict)


def fetch_test_catalog(tests: Sequence[TestRun[Measured]]) -> ResultCatalog:
    """Find or create the metrics, machines and scenarios of tests."""
    names = dict.fromkeys(
        (measurement.metric, measurement.unit, measurement.direction, test.suite)
        for test in tests
        for measurement in test.measurements
    )
    metrics, changed_metrics = catalog.metrics(catalog.new_metric(*name) for name in names)
    machines = catalog.machines(
        Machine(
            name=test.machine.id,
            cpus=test.machine.cpus,
            sockets=test.machine.sockets,
            cpu_model=test.machine.cpu_model,
            codename=test.machine.codename,
            memory_bytes=test.machine.memory_bytes,
        )
        for test in tests
    )
    scenarios = catalog.scenarios(
        Scenario(key=scenario_key(test.suite, test.params), suite=test.suite, params=dict(test.params))
        for test in tests
    )
    return ResultCatalog(machines, scenarios, metrics, changed_metrics)


def fetch_catalog(results: Sequence[Result], seen: Mapping[str, CommitInspection]) -> ResultCatalog:
    """Find or create all rows. `seen`: commits as git trees have them, for what the lab left out."""
    names = fetch_test_catalog([run for result in results for run in result.runs])
    trees = catalog.trees(
        Tree(name=result.tree, url=result.tree_url, role=catalog.role_of(result.tree, result.tree_url))
        for result in results
        if result.tree
    )
    conclusive = [(result, result.culprit) for result in results if result.culprit]
    owners = _owners(culprit.sha for _, culprit in conclusive)
    culprits = []
    for result, culprit in conclusive:
        inspection = seen.get(culprit.sha)
        if owners.get(culprit.sha, result.producer) == result.producer:
            culprits.append(_commit(culprit, inspection, result.patch_message_id))
        else:  # another lab reported it: only git may add to what that said, such as recipients
            culprits.append(_commit(CommitInfo(culprit.sha), inspection))
    # Of a parent a lab says only the title, and only until somebody reports it as a culprit.
    parents = [
        _commit(CommitInfo(result.parent.sha, result.parent.title), seen.get(result.parent.sha))
        for result, _ in conclusive
        if result.parent
    ]
    named = frozenset(commit.sha for commit in culprits)
    return replace(names, trees=trees, commits=catalog.commits([*culprits, *parents], named))


def _owners(culprits: Iterable[str]) -> dict[str, str]:
    """Return the producer whose result came first, by the culprit's sha, for culprits that have a report."""
    rows = BisectResult.objects.filter(report__culprit__sha__in=set(culprits)).order_by("-pk")
    return dict(rows.values_list("report__culprit__sha", "producer"))  # the last one given is the oldest


def _commit(commit: CommitInfo, seen: CommitInspection | None, patch_message_id: str = "") -> Commit:
    """Return a commit with the lab's data, completed from a git tree."""
    return Commit(
        sha=commit.sha,
        title=bare_title(commit.title or (seen.title if seen else ""))[:1000],
        author_name=commit.author_name or (seen.author_name if seen and not commit.author_email else ""),
        author_email=(commit.author_email or (seen.author_email if seen else "")).lower(),
        authored_at=commit.date or (seen.authored_at if seen else None),
        trailers=[list(pair) for pair in commit.trailers or (seen.trailers if seen else ())],
        signers=person_keys(signers(seen.trailers)) if seen else [],  # a lab could name anybody
        patch_message_id=patch_message_id,
        patch_id=seen.patch_id if seen else "",
    )


# --- Measurements and findings as values ---

# The ids of metric, scenario and machine; findings are compared only under the same key.
MeasurementKey = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class GradedMeasurement:
    """A measurement with its grade and the rows it refers to.

    `order_p`: the p-value where no more counts than the order of the runs, corrected as the other; 0.0 where that need
    not tell.
    """

    data: MeasurementData
    metric: Metric
    key: MeasurementKey
    graded: Graded
    noise: CurveNoise | None
    order_p: float = 0.0

    @property
    def p_for_mail(self) -> float | None:
        """The p-value that decides whether a mail may say that this changed; None if it could not be tested."""
        return None if self.graded.p_value is None else max(self.graded.p_value, self.order_p)

    def as_reported(self) -> GradedMeasurement:
        """Return the headline of a report with the p-value that its mail needs; others as they are."""
        p = self.p_for_mail
        return self if self.data.role != "headline" or p == self.graded.p_value else _corrected(self, p)

    def summary(self) -> dict[str, Any]:
        """Return what is displayed of a measurement that doesn't become a finding."""
        return {
            "metric": self.data.metric,
            "old": self.data.old.mean,
            "new": self.data.new.mean,
            "change_pct": self.graded.change_pct,
            "verdict": self.graded.verdict.value,
        }


# The columns of a finding, in the order of `NewFinding.values`.
FIELDS = (
    "report", "metric", "scenario", "machine", "parent", "base", "headline", "verdict",
    "change_pct", "change_pct_raw", "old_mean", "old_stddev_pct", "new_mean", "new_stddev_pct",
    "old_runs", "new_runs", "old_samples", "new_samples", "p_value", "low_pct", "high_pct",
    "effect", "noise_runs", "result",
)  # fmt: skip


@dataclass(slots=True, eq=False)
class NewFinding:
    """A finding that is not stored yet. `row` gets its primary key before the findings are stored."""

    measured: GradedMeasurement
    report: int
    row: BisectResult
    parent: int | None
    base: str
    headline: bool = False

    def values(self) -> tuple[Any, ...]:
        """Return the values of FIELDS as stored in the database."""
        data, graded, noise = self.measured.data, self.measured.graded, self.measured.noise
        times_noise = effect(graded.change_pct, noise.pct) if noise else None
        return (
            self.report,
            *self.measured.key,
            self.parent,
            self.base,
            self.headline,
            graded.verdict.value,
            graded.better_pct,
            graded.change_pct,
            data.old.mean,
            data.old.stddev_pct,
            data.new.mean,
            data.new.stddev_pct,
            data.old.n,
            data.new.n,
            orjson.dumps(data.old_samples).decode(),
            orjson.dumps(data.new_samples).decode(),
            graded.p_value,
            graded.low_pct,
            graded.high_pct,
            times_noise,
            noise.runs if noise and times_noise is not None else None,
            self.row.id,
        )


# --- Grading ---


def grade(results: Sequence[Result], rows: ResultCatalog) -> list[list[GradedMeasurement]]:
    """Return the graded measurements of each result, in order. `rows`: what they are of, as the database has it."""
    flat: list[tuple[MeasurementData, Metric, MeasurementKey]] = []
    for run in (run for result in results for run in result.runs):
        scenario, machine = rows.scenarios[scenario_key(run.suite, run.params)], rows.machines[run.machine.id]
        for measurement in run.measurements:
            metric = rows.metrics[measurement.metric]
            flat.append((measurement, metric, (metric.id, scenario.id, machine.id)))
    graded = statistics.grade_all(
        [measurement for measurement, _, _ in flat], [metric.direction for _, metric, _ in flat]
    )
    noise = noise_at({key for _, _, key in flat})
    entries = (
        GradedMeasurement(measurement, metric, key, shown, noise.get(key))
        for (measurement, metric, key), shown in zip(flat, graded, strict=True)
    )
    by_result = [[next(entries) for run in result.runs for _ in run.measurements] for result in results]
    return [
        _corrected_for_number(measured, result.runs[0].suite)
        for measured, result in zip(by_result, results, strict=True)
    ]


# Metrics beside the key ones. Up to so many, the lab's headline was not picked because it moved most; up to a few more
# its runs need an order beyond chance, but need not be beyond that of all others.
_NO_CHOICE = 3
_FEW_METRICS = 10


def headline_of(measured: Iterable[GradedMeasurement]) -> GradedMeasurement:
    """Return the measurement that a result's report is about."""
    return next(entry for entry in measured if entry.data.role == "headline")


def _corrected_for_number(measured: Sequence[GradedMeasurement], suite: str) -> list[GradedMeasurement]:
    """Return the measurements of one result with their p-values corrected for how many there are, and the headline.

    Of a hundred metrics, five move by chance. The few that the suite is run for are tested by themselves (Holm), all
    others of the benchmark together (Benjamini-Hochberg), and so are the monitors, which make no headline. The headline
    stays the one that the input names if it moved beyond chance, unless it is known what the suite is run for, and that
    moved, too; else it is the key metric that did, else another one that did.

    One of many others makes a mail only if the order of its runs is beyond chance, too: where a metric has two modes,
    three runs of the one and three of the other come about by luck, and Welch's test calls that certain. What such a
    measurement shows of a fix stays as Welch's test says it: there, the metric was known before.
    """
    families: dict[str, list[int]] = {"key": [], "other": [], "monitor": []}
    for number, entry in enumerate(measured):
        name = entry.data.metric
        stated = entry.metric.key
        own = "key" if (is_key(name, suite) if stated is None else stated) else "other"
        is_watching = entry.data.role == "monitor" or is_watched(name, suite)
        families["monitor" if is_watching else own].append(number)
    graded = list(measured)
    for name, numbers in families.items():
        correct = family_wise if name == "key" else false_discovery
        corrected = correct([measured[number].graded.p_value for number in numbers])
        for number, p in zip(numbers, corrected, strict=True):
            graded[number] = _corrected(measured[number], p)
    named = next(number for number, entry in enumerate(graded) if entry.data.role == "headline")
    others = families["other"]
    by_order = false_discovery([_p_by_order(measured[number]) for number in others])
    for number, p in zip(others, by_order, strict=True):
        if number == named and len(others) <= _FEW_METRICS:
            p = _p_by_order(measured[number]) if len(others) > _NO_CHOICE else None
        if p is not None:
            graded[number] = replace(graded[number], order_p=p)
    return _with_headline(graded, families, named, suite)


def is_watched(metric: str, suite: str) -> bool:
    """Whether a metric is by a monitor that ran beside a suite, and not by the suite itself."""
    return is_monitor(metric) and not metric.startswith(f"{suite}.")


def _with_headline(
    graded: list[GradedMeasurement], families: Mapping[str, Sequence[int]], named: int, suite: str
) -> list[GradedMeasurement]:
    """Return the measurements with the headline that the rule above chooses. `named`: the input's, by position."""
    keys, others, watches = set(families["key"]), families["other"], named in families["monitor"]
    moved = [number for number in (*families["key"], *others) if _is_beyond_chance(graded[number])]
    beside_the_key = named not in keys and has_own_keys(suite) and not keys.isdisjoint(moved)
    best = named
    if moved and (named not in moved or beside_the_key):
        best = min(moved, key=lambda number: (number not in keys, graded[number].p_for_mail))
    elif watches:  # nothing of the benchmark moved
        best = next(iter((*families["key"], *families["other"])), named)
    if best != named:
        for number, role in ((named, "monitor" if watches else "kpi"), (best, "headline")):
            graded[number] = replace(graded[number], data=replace(graded[number].data, role=role))
    return graded


def _corrected(entry: GradedMeasurement, p: float | None) -> GradedMeasurement:
    verdict = grade_of(entry.data.old.mean, entry.data.new.mean, p, entry.metric.direction)
    return replace(entry, graded=replace(entry.graded, p_value=p, verdict=verdict))


def _p_by_order(entry: GradedMeasurement) -> float | None:
    """Return the p of Welch's test, or the least that so many runs can have by their order alone if that is more."""
    p, data = entry.graded.p_value, entry.data
    return None if p is None else max(p, least_p(data.old.n, data.new.n))


def _is_beyond_chance(entry: GradedMeasurement) -> bool:
    """Whether a measurement could be the headline of a mail."""
    p = entry.p_for_mail
    return p is not None and p < MAIL_ALPHA and entry.metric.direction != "unknown"
