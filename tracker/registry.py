"""The things that results and reports speak of, found or made: commits, trees, machines, metrics, reports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tracker.directions import direction_of
from tracker.keys import scenario_key, tag_of
from tracker.listing import clipped, relist
from tracker.models import Commit, Finding, Machine, Metric, Report, Scenario, Tree
from tracker.models.metric import Direction, DirectionBy
from tracker.models.tree import TreeRole
from tracker.status import Verdict, fold, sentence
from tracker.units import unit_of

_MAINLINE_URL = re.compile(r"/torvalds/linux(?:\.git)?/?\Z")

_STABLE_BRANCH = re.compile(r"(?:linux-|stable-)\d+\.\d+(?:\.y)?")


def commit_for(sha: str, **told: object) -> Commit:
    """The commit of this sha. What is told now fills what was not known; a longer sha replaces its beginning."""
    sha = sha.lower()
    commit = Commit.objects.filter(sha=sha).first() or _abbreviated(sha)
    if commit is None:
        commit, made = Commit.objects.get_or_create(sha=sha, defaults=told)
        if made:
            return commit
    changed = [name for name, value in told.items() if value and not getattr(commit, name)]
    for name in changed:
        setattr(commit, name, told[name])
    if len(sha) > len(commit.sha):
        commit.sha = sha
        changed.append("sha")
    if changed:
        commit.save(update_fields=changed)
        relist(Report.objects.filter(culprit=commit).values_list("pk", flat=True))
    return commit


def _abbreviated(sha: str) -> Commit | None:
    """The commit that this is the longer or the shorter sha of, where just one can be meant."""
    beginnings = [sha[:length] for length in range(10, len(sha))]
    if known := Commit.objects.filter(sha__in=beginnings).first():
        return known
    longer = list(Commit.objects.filter(sha__startswith=sha)[:2]) if 10 <= len(sha) < 40 else []
    return longer[0] if len(longer) == 1 else None


def role_of(name: str, url: str = "") -> TreeRole:
    """What a tree is, by its usual name or its address."""
    if name in ("linus", "linux", "mainline") or _MAINLINE_URL.search(url):
        return TreeRole.MAINLINE
    if name in ("next", "linux-next"):
        return TreeRole.NEXT
    stable = name in ("stable", "linux-stable", "stable-rc") or _STABLE_BRANCH.fullmatch(name)
    return TreeRole.STABLE if stable else TreeRole.MAINTAINER


def tree_for(name: str, url: str = "") -> Tree | None:
    """The tree of this name, with the role that its name or address tells; an operator may correct it."""
    if not name:
        return None
    tree, _ = Tree.objects.get_or_create(name=name, defaults={"role": role_of(name, url), "url": url})
    if url and not tree.url:
        tree.url = url
        tree.save(update_fields=["url"])
    return tree


def machine_for(name: str, **told: object) -> Machine:
    return Machine.objects.get_or_create(name=name or "unknown", defaults=told)[0]


def new_metric(name: str, unit: str = "", direction: str = Direction.UNKNOWN, suite: str = "") -> Metric:
    """A metric as told, not saved; what was not told is what our tables know."""
    by = DirectionBy.LAB
    if direction == Direction.UNKNOWN:
        direction = direction_of(name, suite)
        by = DirectionBy.NOBODY if direction == Direction.UNKNOWN else DirectionBy.TABLE
    return Metric(name=name, unit=unit or unit_of(name), direction=direction, direction_by=by)


def metric_for(name: str) -> Metric:
    """The metric of this name, with the direction and the unit that our tables know."""
    told = new_metric(name)
    facts = {field: getattr(told, field) for field in ("unit", "direction", "direction_by")}
    return Metric.objects.get_or_create(name=name, defaults=facts)[0]


def scenario_for(suite: str, params: Mapping[str, str]) -> Scenario:
    key = scenario_key(suite, params)
    return Scenario.objects.get_or_create(key=key, defaults={"suite": suite, "params": dict(params)})[0]


def report_for(
    culprit: Commit,
    verdict: Verdict,
    *,
    title: str = "",
    subsystem: str = "",
    tree: Tree | None = None,
    branch: str = "",
    authors: Sequence[str] = (),
    told: Sequence[str] = (),
) -> Report:
    """The report about a culprit: one culprit, one report. What is told now fills what was not known."""
    nowhere, subsystem = fold(verdict, ()), clipped(subsystem)
    report, made = Report.objects.get_or_create(
        culprit=culprit,
        defaults={
            "tag": tag_of(culprit.sha),
            "verdict": verdict,
            "state": nowhere.state,
            "status": sentence(nowhere),
            "awaited": nowhere.awaited,
            "title": title,
            "subsystem": subsystem,
            "tree": tree,
            "branch": branch,
            "authors": sorted(set(authors)),
            "told": sorted(set(told)),
        },
    )
    if not made:
        report.authors = sorted({*report.authors, *authors})
        report.told = sorted({*report.told, *told})
        report.title, report.subsystem = report.title or title, report.subsystem or subsystem
        if report.tree is None:
            report.tree, report.branch = tree, branch
        report.save(update_fields=["authors", "told", "title", "subsystem", "tree", "branch"])
    return report


def add_finding(finding: Finding) -> bool:
    """Store a finding once; False where the same was found before. A report keeps its first headline."""
    Report.objects.select_for_update().filter(pk=finding.report.pk).first()  # one at a time decides on the headline
    same = {name: getattr(finding, name) for name in ("report", "metric", "scenario", "machine")}
    if Finding.objects.filter(**same).exists():
        return False
    if finding.headline and Finding.objects.filter(report=finding.report, headline=True).exists():
        finding.headline = False
    finding.save()
    return True
