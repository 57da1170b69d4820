"""From the database to what a report mail tells: a report with its findings, its result and its tree, as values."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any

from django.db.models import Q
from django.urls import reverse

from bot.compose.report.report_data import BuildInfo, FindingData, RecheckInfo, ReportData
from bot.git.touched_files import touched
from bot.mail.addresses import Address
from bot.mail.identity import BotIdentity
from bot.outbox.context.compose_config import ComposeConfig
from bot.outbox.context.patch_mail import PatchMails
from bot.results.bisect_result import MeasurementData
from bot.results.formats import lkp, perf_bisect_result
from bot.results.recognise import reread
from tracker.domain.english import counted
from tracker.domain.events import Grade, Verdict
from tracker.domain.keys import scenario_key
from tracker.domain.statistics.significance import grade, overlap
from tracker.models import BisectResult, Finding, Machine, Report

MAILED = 300  # findings in one mail; its page has the rest
MOST_BYTES = 70_000  # of their rows: servers of lists take 100 kB
ROW = 60  # bytes of a row besides its name


def report_data(report: Report, identity: BotIdentity, house: ComposeConfig, patches: PatchMails) -> ReportData:
    """What there is to tell of a report, its headline first."""
    findings = findings_of(report)
    head = _leading(findings)
    payload = _payload(head.result)
    culprit, parent = report.culprit, head.parent
    trailers = tuple((tag, value) for tag, value in culprit.trailers)
    seen = touched(house.trees, culprit.sha)
    patch = patches.place_below(culprit)
    return ReportData(
        tag=report.tag,
        sha=culprit.sha,
        title=culprit.title,
        author=Address(culprit.author_name, culprit.author_email),
        trailers=trailers,
        patch=patch,
        tree=report.tree.name if report.tree else "",
        tree_url=report.tree.url if report.tree else "",
        tree_role=report.tree.role if report.tree else "",
        branch=report.branch,
        parent_sha=parent.sha if parent else "",
        parent_title=parent.title if parent else "",
        base=head.base,
        good=_name_of(payload.get("good")),
        bad=_name_of(payload.get("bad")),
        bisect_steps=len(_part(payload, "bisect").get("steps", ())),
        verdict=Verdict(report.verdict),
        findings=_fitting(values_of(findings)),
        build=_build(payload),
        authored_at=culprit.authored_at,
        responsible=seen.responsible,
        rechecks=tuple(
            RecheckInfo(each["ref"], each["state"]) for each in _part(payload, "bisect").get("rechecks", ())
        ),
        test_text=_part(payload, "test").get("description", ""),
        test_url=_part(payload, "test").get("url", ""),
        artifacts=tuple((each["name"], each["url"]) for each in payload.get("artifacts", ()) if "url" in each),
        raw=identity.base_url + reverse("api-result", args=[head.result_id]) if head.result_id else "",
    )


def findings_of(report: Report, after: int = 0, freed: Collection[int] = (), most: int = MAILED) -> list[Finding]:
    """What may be told of a report, the headline first; `after`: only what was found since that one, and those of
    `freed` that may be told by now.
    """
    clear = Q(result__isnull=True) | Q(result__held="")  # what is held is told to nobody
    numbers = Q(old_mean__isnull=False, new_mean__isnull=False)
    rows = report.findings.filter(clear, numbers, Q(pk__gt=after) | Q(pk__in=freed)).select_related(
        "metric", "scenario", "machine", "parent"
    )
    return list(rows.select_related("result").order_by("-headline", "pk")[:most])


def withheld(report: Report) -> list[int]:
    """The findings that may not be told yet."""
    return list(report.findings.exclude(result=None).exclude(result__held="").values_list("pk", flat=True)[:MAILED])


def _fitting(findings: Sequence[FindingData]) -> tuple[FindingData, ...]:
    """As many as a mail holds: a robot's metric may have three hundred letters. The page has the rest."""
    sizes = accumulate(len(each.metric.encode()) + ROW for each in findings)
    return tuple(each for each, size in zip(findings, sizes, strict=True) if size <= MOST_BYTES)


def headline_of(report: Report) -> Finding:
    """The finding that leads a report; LookupError where nothing of it may be told."""
    return _leading(findings_of(report, most=1))


def _leading(findings: Sequence[Finding]) -> Finding:
    if not findings:
        raise LookupError("nothing of it may be told")
    return findings[0]


def values_of(findings: Sequence[Finding]) -> tuple[FindingData, ...]:
    """Findings as they are told."""
    return tuple(map(_value, findings))


def _value(each: Finding) -> FindingData:
    assert each.old_mean is not None
    assert each.new_mean is not None
    both = each.old_samples and each.new_samples
    return FindingData(
        metric=each.metric.name,
        unit=each.metric.unit,
        direction=each.metric.direction,
        verdict=Grade(each.verdict),
        change_pct=each.change_pct_raw,
        old_mean=each.old_mean,
        old_stddev_pct=each.old_stddev_pct,
        old_runs=each.old_runs,
        new_mean=each.new_mean,
        new_stddev_pct=each.new_stddev_pct,
        new_runs=each.new_runs,
        suite=each.scenario.suite,
        params=each.scenario.params,
        machine=each.machine.name,
        machine_text=machine_text(each.machine),
        p_value=each.p_value,
        low_pct=each.low_pct,
        high_pct=each.high_pct,
        # The effect is the change in times of it.
        noise_pct=abs(each.change_pct_raw) / each.effect if each.effect and each.change_pct_raw else None,
        overlap=bool(both) and overlap(each.old_samples, each.new_samples),
    )


def measured_again(report: Report, result: str, sha: str) -> FindingData | None:
    """A report's headline metric, on the same machine, in another result ("lab/17") about a commit, which it measured
    last or found to be the one that changes it; None where it was not measured.
    """
    row = _named(result)
    if row is None:
        return None
    head = headline_of(report)
    told = reread(row.format, row.payload, str(row))
    if sha not in (told.bad.sha, told.culprit.sha if told.culprit else ""):
        return None  # a recheck of it, without numbers
    for run in told.runs:
        if (scenario_key(run.suite, run.params), run.machine.id) == (head.scenario.key, head.machine.name):
            for each in run.measurements:
                if each.metric == head.metric.name:
                    return _told_again(each, head)
    return None


def _named(result: str) -> BisectResult | None:
    """The result of this name; producers and ids may hold the slash that stands between them."""
    name = Q()
    for at, letter in enumerate(result[:400]):
        if letter == "/":
            name |= Q(producer=result[:at], external_id=result[at + 1 :])
    return BisectResult.objects.filter(name).first() if name else None


def _told_again(each: MeasurementData, head: Finding) -> FindingData:
    graded = grade(each, head.metric.direction)
    return FindingData(
        metric=head.metric.name,
        unit=head.metric.unit,
        direction=head.metric.direction,
        verdict=graded.verdict,
        change_pct=graded.change_pct,
        old_mean=each.old.mean,
        old_stddev_pct=each.old.stddev_pct,
        old_runs=each.old.n,
        new_mean=each.new.mean,
        new_stddev_pct=each.new.stddev_pct,
        new_runs=each.new.n,
        suite=head.scenario.suite,
        params=head.scenario.params,
        machine=head.machine.name,
        machine_text=machine_text(head.machine),
        p_value=graded.p_value,
        low_pct=graded.low_pct,
        high_pct=graded.high_pct,
    )


def machine_text(box: Machine) -> str:
    """A machine in a line, in the lab's words or by its parts."""
    parts = [
        counted(box.cpus, "CPU") if box.cpus else "",
        counted(box.sockets, "socket") if box.sockets else "",
        box.cpu_model,
        f"({box.codename})" if box.codename else "",
        f"{box.memory_bytes >> 30} GiB RAM" if box.memory_bytes else "",
    ]
    return box.description or ", ".join(part for part in parts if part)


def _payload(result: BisectResult | None) -> dict[str, Any]:
    """What the lab handed in, where it is in the words of our own format."""
    if result is None:
        return {}
    told: dict[str, Any] = json.loads(result.payload)
    if result.format == perf_bisect_result.FORMAT:
        return told
    if result.format == lkp.FORMAT:
        job = _part(_part(told, "culprit"), "job")
        names = {"kconfig": "kconfig", "compiler": "compiler", "rootfs": "rootfs"}
        build = {own: job[name] for own, name in names.items() if isinstance(job.get(name), str)}
        return {"build": build, "artifacts": []}
    return {}


def _part(told: Any, name: str) -> dict[str, Any]:
    part = told.get(name) if isinstance(told, dict) else None
    return part if isinstance(part, dict) else {}


def _build(payload: Mapping[str, Any]) -> BuildInfo:
    build = _part(payload, "build")
    return BuildInfo(**{name: build.get(name, "") for name in BuildInfo.__dataclass_fields__})


def _name_of(commit: Any) -> str:
    told = commit if isinstance(commit, dict) else {}
    return str(told.get("describe") or str(told.get("sha", ""))[:10])
