"""Load the content of a report mail from the database: a report with its findings, result and tree, as values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate

from django.db.models import Q
from django.urls import reverse

from bot.compose.report.report_data import BuildInfo, FindingData, RecheckInfo, ReportData
from bot.git.touched_files import touched
from bot.mail.addresses import Address
from bot.mail.identity import BotIdentity
from bot.outbox.context.compose_config import ComposeConfig
from bot.outbox.context.patch_mail import PatchMails
from bot.results.recognise import reread
from bot.results.stored_result import ResultDetails, details_of, remeasured
from tracker.domain.events import Grade, Verdict
from tracker.domain.statistics.significance import Compared, grade, overlap
from tracker.domain.text.english import counted
from tracker.models import BisectResult, Finding, Machine, Report
from tracker.services.curves.past import past_of

MAILED = 300  # findings in one mail; the report's page has all
MOST_BYTES = 70_000  # of table rows; list servers accept 100 kB
ROW = 60  # bytes of a row without its name


def report_data(report: Report, identity: BotIdentity, config: ComposeConfig, patches: PatchMails) -> ReportData:
    """Return the content of a report's mail, its headline first; LookupError if all findings are held."""
    findings = findings_of(report)
    head = _leading(findings)
    result = details_of(head.result.format, head.result.payload) if head.result else ResultDetails()
    culprit, parent = report.culprit, head.parent
    trailers = tuple((tag, value) for tag, value in culprit.trailers)
    seen = touched(config.trees, culprit.sha)
    patch = patches.reply_position(culprit)
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
        good=result.good,
        bad=result.bad,
        bisect_steps=result.bisect_steps,
        verdict=Verdict(report.verdict),
        findings=_fitting(values_of(findings)),
        build=BuildInfo(**result.build),
        authored_at=culprit.authored_at,
        responsible=seen.responsible,
        rechecks=tuple(RecheckInfo(ref, state) for ref, state in result.rechecks),
        test_text=result.test_text,
        test_url=result.test_url,
        artifacts=result.artifacts,
        raw=identity.base_url + reverse("api-result", args=[head.result_id]) if head.result_id else "",
        history=_history(head, culprit.sha, identity),
    )


def _history(head: Finding, culprit: str, identity: BotIdentity) -> str:
    """Return "stable since v6.9, 41 builds; https://…/curve/12/"; "" without a history."""
    past = past_of(head, culprit)
    if past is None or past.history is None:
        return ""
    modes = past.history.modes_pct
    url = identity.base_url + reverse("curve", args=[past.curve.pk])
    return "; ".join([past.history.text, *([f"two modes {modes:.0f}% apart"] if modes else ()), url])


def findings_of(report: Report, after: int = 0, freed: Collection[int] = (), most: int = MAILED) -> list[Finding]:
    """Return the findings of a report that are not held, the headline first. `after`: only findings newer than this
    key, and those of `freed` that are no longer held.
    """
    clear = Q(result__isnull=True) | Q(result__held="")  # held results are not mailed
    numbers = Q(old_mean__isnull=False, new_mean__isnull=False)
    rows = report.findings.filter(clear, numbers, Q(pk__gt=after) | Q(pk__in=freed)).select_related(
        "metric", "scenario", "machine", "parent"
    )
    return list(rows.select_related("result").order_by("-headline", "pk")[:most])


def withheld(report: Report) -> list[int]:
    """Return the keys of the held findings."""
    return list(report.findings.exclude(result=None).exclude(result__held="").values_list("pk", flat=True)[:MAILED])


def _fitting(findings: Sequence[FindingData]) -> tuple[FindingData, ...]:
    """Return as many as fit into a mail; a metric's name may have 300 characters. The report's page has all."""
    sizes = accumulate(len(each.metric.encode()) + ROW for each in findings)
    return tuple(each for each, size in zip(findings, sizes, strict=True) if size <= MOST_BYTES)


def headline_of(report: Report) -> Finding:
    """Return the headline finding of a report; LookupError if all its findings are held."""
    return _leading(findings_of(report, most=1))


def _leading(findings: Sequence[Finding]) -> Finding:
    if not findings:
        raise LookupError("all its findings are held")
    return findings[0]


def values_of(findings: Sequence[Finding]) -> tuple[FindingData, ...]:
    """Return findings as values for a mail."""
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
        noise_pct=each.usual_noise_pct,
        noise_runs=each.noise_runs,
        overlap=bool(both) and overlap(each.old_samples, each.new_samples),
    )


def measured_again(report: Report, result: str, sha: str) -> FindingData | None:
    """Return a report's headline metric, on the same machine, from another result ("lab/17") whose bad commit or
    culprit is `sha`; None if it was not measured there.
    """
    row = _named(result)
    if row is None:
        return None
    head = headline_of(report)
    where = (head.scenario.key, head.machine.name, head.metric.name)
    data = reread(row.format, row.payload, row.bad_sha, str(row))
    found = remeasured(data, sha, *where)
    return remeasured_finding(found, head) if found else None


def _named(result: str) -> BisectResult | None:
    """Return the result with this name, or None. Producers and ids may contain the slash that separates them."""
    name = Q()
    for at, character in enumerate(result[:400]):
        if character == "/":
            name |= Q(producer=result[:at], external_id=result[at + 1 :])
    return BisectResult.objects.filter(name).first() if name else None


def remeasured_finding(each: Compared, head: Finding) -> FindingData:
    """Return the metric of a finding as it was measured once more, graded."""
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


def machine_text(machine: Machine) -> str:
    """Return one line about a machine: the lab's description, or its parts."""
    parts = [
        counted(machine.cpus, "CPU") if machine.cpus else "",
        counted(machine.sockets, "socket") if machine.sockets else "",
        machine.cpu_model,
        f"({machine.codename})" if machine.codename else "",
        f"{machine.memory_bytes >> 30} GiB RAM" if machine.memory_bytes else "",
    ]
    return machine.description or ", ".join(part for part in parts if part)
