"""Report mail: due, loaded as values, put into the outbox once, kept up to date until it is sent.

Due: a report from results, a regression or an improvement, neither held nor resolved, that has no mail yet. It
answers the culprit's patch mail, found by the result, by the commit's `Link:`, or by patch-id on a lore server.
Findings of held results are not mailed. A mail has at most 300 findings and 70 kB of rows, since list servers accept
100 kB; the report's page has all.

An unsent mail is composed again under the same Message-ID when more is known, unless a person approved it or a server
may have seen it. What should not be sent any more is held with the reason, and so is a report whose mail can't be
composed, so that it blocks no other. Findings that are stored after a mail was composed are left to a follow-up.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.urls import reverse

from bot.compose.conventions import ThreadPosition, patch_mail, reply_position
from bot.compose.policy import Action, decide
from bot.compose.report_data import BuildInfo, FindingData, RecheckInfo, ReportData
from bot.compose.report_mail import compose
from bot.errors import Unreadable
from bot.git.maintainers import touched
from bot.mail.addresses import Address
from bot.mail.settings import BotSettings
from bot.outbox.drafts import COMPOSER, ComposeConfig, OutboxWriter, PatchLookup, excluded_addresses, policy_context
from bot.replies.sender_kind import SenderKind
from bot.replies.which_report import person_keys
from bot.results.recognise import ResultDetails, details_of, remeasured, reread
from tracker.domain.events import CLOSED, Grade, State, Verdict
from tracker.domain.statistics import Compared, grade, overlap
from tracker.domain.text import counted
from tracker.models import (
    BisectResult,
    Commit,
    Correspondent,
    Finding,
    Machine,
    Message,
    OutgoingMail,
    OutgoingState,
    Purpose,
    Report,
)
from tracker.models.outbox import WAITING
from tracker.services import mail_transitions
from tracker.services.accounts import learn_maintainers
from tracker.services.curve_changes import past_of
from tracker.services.database import is_interruption
from tracker.services.report_summary import refresh

# --- The patch that it answers ---

MOST_ANCESTORS = 10  # mails of a thread
log = logging.getLogger(__name__)


@dataclass(slots=True)
class PatchMails:
    """Looks patches up, by `lookup` if need be; after an error it is not asked again in this round."""

    lookup: PatchLookup | None = None
    _unreachable: bool = field(default=False, init=False)

    def reply_position(self, commit: Commit) -> ThreadPosition:
        """Return the threading of a reply to the patch; a new thread if no patch is known."""
        trailers = [(tag, value) for tag, value in commit.trailers]
        message_id = commit.patch_message_id or _unless_ours(patch_mail(trailers))
        if not message_id:
            self._ask(commit)
            message_id = commit.patch_message_id
        return reply_position(message_id, commit.patch_references or ancestors(message_id))

    def _ask(self, commit: Commit) -> None:
        """Ask the server about a commit, and store the answer."""
        if not self.lookup or self._unreachable or not commit.patch_id or not commit.title:
            return
        try:
            posting = self.lookup(commit.patch_id, commit.title)
        except Unreadable as error:
            log.error("%s", error)
            self._unreachable = True
            return
        if posting:
            commit.patch_message_id, commit.patch_references = posting.message_id, list(posting.references)
            commit.save(update_fields=["patch_message_id", "patch_references"])


def ancestors(message_id: str) -> tuple[str, ...]:
    """Return the ancestors of a stored mail, the topmost first, for example the cover letter of a patch."""
    message_ids: list[str] = []
    while message_id and len(message_ids) < MOST_ANCESTORS:
        parent = Message.objects.filter(message_id=message_id).values_list("in_reply_to", flat=True).first()
        if not parent or parent in message_ids:
            break
        message_ids.insert(0, parent)
        message_id = parent
    return tuple(message_ids)


def _unless_ours(message_id: str) -> str:
    """Return the linked mail, or "" if it is a report and so not the patch."""
    if not message_id or OutgoingMail.objects.filter(message_id=message_id).exists():
        return ""
    return "" if Message.objects.filter(message_id=message_id, kind=SenderKind.ROBOT).exists() else message_id


# --- What the mail says ---

MAILED = 300  # findings in one mail; the report's page has all
MOST_BYTES = 70_000  # of table rows; list servers accept 100 kB
ROW = 60  # bytes of a row without its name


def report_data(report: Report, settings: BotSettings, config: ComposeConfig, patches: PatchMails) -> ReportData:
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
        raw=settings.base_url + reverse("api-result", args=[head.result_id]) if head.result_id else "",
        history=_history(head, culprit.sha, settings),
    )


def _history(head: Finding, culprit: str, settings: BotSettings) -> str:
    """Return "stable since v6.9, 41 builds; https://…/curve/12/"; "" without a history."""
    past = past_of(head, culprit)
    if past is None or past.history is None:
        return ""
    modes = past.history.modes_pct
    url = settings.base_url + reverse("curve", args=[past.curve.pk])
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
    sizes = accumulate(len(finding.metric.encode()) + ROW for finding in findings)
    return tuple(finding for finding, size in zip(findings, sizes, strict=True) if size <= MOST_BYTES)


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


def _value(finding: Finding) -> FindingData:
    assert finding.old_mean is not None
    assert finding.new_mean is not None
    both = finding.old_samples and finding.new_samples
    return FindingData(
        metric=finding.metric.name,
        unit=finding.metric.unit,
        direction=finding.metric.direction,
        verdict=Grade(finding.verdict),
        change_pct=finding.change_pct_raw,
        old_mean=finding.old_mean,
        old_stddev_pct=finding.old_stddev_pct,
        old_runs=finding.old_runs,
        new_mean=finding.new_mean,
        new_stddev_pct=finding.new_stddev_pct,
        new_runs=finding.new_runs,
        suite=finding.scenario.suite,
        params=finding.scenario.params,
        machine=finding.machine.name,
        machine_text=machine_text(finding.machine),
        p_value=finding.p_value,
        low_pct=finding.low_pct,
        high_pct=finding.high_pct,
        noise_pct=finding.usual_noise_pct,
        noise_runs=finding.noise_runs,
        overlap=bool(both) and overlap(finding.old_samples, finding.new_samples),
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
    measurement = remeasured(data, sha, *where)
    return remeasured_finding(measurement, head) if measurement else None


def _named(result: str) -> BisectResult | None:
    """Return the result with this name, or None. Producers and ids may contain the slash that separates them."""
    name = Q()
    for at, character in enumerate(result[:400]):
        if character == "/":
            name |= Q(producer=result[:at], external_id=result[at + 1 :])
    return BisectResult.objects.filter(name).first() if name else None


def remeasured_finding(compared: Compared, head: Finding) -> FindingData:
    """Return the metric of a finding as it was measured once more, graded."""
    graded = grade(compared, head.metric.direction)
    return FindingData(
        metric=head.metric.name,
        unit=head.metric.unit,
        direction=head.metric.direction,
        verdict=graded.verdict,
        change_pct=graded.change_pct,
        old_mean=compared.old.mean,
        old_stddev_pct=compared.old.stddev_pct,
        old_runs=compared.old.n,
        new_mean=compared.new.mean,
        new_stddev_pct=compared.new.stddev_pct,
        new_runs=compared.new.n,
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


# --- Composing and refreshing ---

AT_ONCE = 1000
DEFAULT_CONFIG = ComposeConfig()


def compose_due(
    settings: BotSettings,
    now: datetime,
    *,
    approve_first: bool = True,
    limit: int = AT_ONCE,
    config: ComposeConfig = DEFAULT_CONFIG,
) -> int:
    """Compose up to `limit` mails of reports from results that have none yet, oldest first. Return how many.

    `approve_first`: mails that no rule of the policy decides on wait for a person.
    """
    otherwise = Action.APPROVE if approve_first else Action.SEND
    due = (
        Report.objects.filter(held="", results__isnull=False, verdict__in=(Verdict.REGRESSION, Verdict.IMPROVEMENT))
        .exclude(state__in=CLOSED - {State.NO_ACTION})  # already resolved
        .exclude(outgoing__purpose=Purpose.REPORT)
        .select_related("culprit", "tree")
        .distinct()
        .order_by("pk")
    )
    round_ = _Round(OutboxWriter(settings, config, now), excluded_addresses(settings.aliases), otherwise)
    round_.refresh(limit)
    return sum(round_.try_compose(report) for report in due[:limit])


def refresh_unsent(
    settings: BotSettings, now: datetime, *, approve_first: bool = True, config: ComposeConfig = DEFAULT_CONFIG
) -> None:
    """Bring unsent mails up to date, before a person approves them or a server gets them."""
    otherwise = Action.APPROVE if approve_first else Action.SEND
    _Round(OutboxWriter(settings, config, now), excluded_addresses(settings.aliases), otherwise).refresh(AT_ONCE)


class _Round:
    """One round of composing, with what its mails share."""

    def __init__(self, writer: OutboxWriter, excluded: Mapping[str, str], otherwise: Action) -> None:
        self.writer, self.excluded, self.otherwise = writer, excluded, otherwise
        self.patches = PatchMails(writer.config.patch_lookup)

    def try_compose(self, report: Report) -> bool:
        """Compose the mail of one report. On an error, hold the report with the reason, so that it blocks no other."""
        try:
            return self._compose(report)
        except Exception as error:  # bad data from a lab or a tree: affects one report only
            if is_interruption(error):  # the next round tries again
                log.error("%s: composing its mail failed: %s", report.culprit.sha10, error)
                return False
            log.exception("%s: composing its mail failed", report.culprit.sha10)
            reason = f"composing its mail failed: {type(error).__name__}: {error}".replace("\n", " ").replace("\0", "")
            Report.objects.filter(pk=report.pk).update(held=reason[:500])
            refresh([report.pk])
        return False

    def _report_data(self, report: Report) -> ReportData:
        return report_data(report, self.writer.settings, self.writer.config, self.patches)

    def _compose(self, report: Report) -> bool:
        writer, newest, held = self.writer, newest_finding(report), withheld(report)  # before the findings are loaded
        data = self._report_data(report)
        mail = compose(data, writer.settings, writer.now, "", writer.config.conventions, self.excluded)
        decision = decide(data, writer.config.policy, policy_context(report), writer.now, self.otherwise)
        start = writer.decide_start(mail, decision, data)
        with transaction.atomic():
            if not _is_as_read(report):
                return False  # composed in the next round, from what is known by then
            if not writer.insert(report, mail, Purpose.REPORT, start, newest, held):
                return False  # another worker was faster
            learn_maintainers(report.subsystem, mail.recipients.maintainers)
            keys = person_keys((*mail.to, *mail.cc))
            Report.objects.filter(pk=report.pk).update(title=report.title or mail.subject, recipients=keys)
        return True

    def refresh(self, limit: int) -> None:
        """Recompose unsent mails about which more is known by now, under the same Message-ID, unless approved. Those
        that should not be sent any more, or not yet, are held with the reason.
        """
        unsent = OutgoingMail.objects.filter(purpose=Purpose.REPORT, state__in=WAITING)
        if last_change := Correspondent.objects.order_by("-since").values_list("since", flat=True).first():
            before = Q(looked_at__lte=last_change) | Q(looked_at=None, composed_at__lte=last_change)
            unsent.filter(before).update(stale=True, looked_at=None)  # recipients may have changed
        expired = Q(
            state=OutgoingState.HELD, decided_by_person=False, not_before__lte=self.writer.now
        )  # a hold that has expired
        rows = unsent.filter(Q(stale=True) | expired).select_related("report__culprit", "report__tree")
        for row in rows.order_by(F("looked_at").asc(nulls_first=True), "pk")[:limit]:
            self._try_refresh(row)

    def _try_refresh(self, row: OutgoingMail) -> None:
        # A concurrent event resets looked_at; what a person or a worker does shows in the other columns.
        unchanged = OutgoingMail.objects.filter(
            pk=row.pk,
            state=row.state,
            decided_by_person=row.decided_by_person,
            attempts=row.attempts,
            looked_at=self.writer.now,
        )
        if not OutgoingMail.objects.filter(pk=row.pk, state=row.state).update(stale=True, looked_at=self.writer.now):
            return
        try:
            columns = self._refreshed_columns(row)
        except Exception as error:  # as above
            if is_interruption(error):
                log.error("%s: checking its mail again failed: %s", row.about.culprit.sha10, error)
                return
            log.exception("%s: composing its mail again failed", row.about.culprit.sha10)
            reason = f"composing it again failed: {type(error).__name__}: {error}"
            columns = {"state": OutgoingState.HELD, "reason": reason.replace("\0", "")[:1000], "not_before": None}
        if self._record(row, unchanged, {**columns, "stale": False}) and "subject" in columns:
            Report.objects.filter(pk=row.about.pk, title=row.subject).update(title=columns["subject"])

    def _record(self, row: OutgoingMail, unchanged: QuerySet[OutgoingMail], columns: dict[str, Any]) -> bool:
        """Record the outcome, unless the mail has changed since it was read: then it is checked again later."""
        was = OutgoingState(row.state)
        became = columns.pop("state", was)
        if became == was:
            return bool(unchanged.update(**columns))
        reason = str(columns.get("reason", ""))
        return mail_transitions.transition_one(
            unchanged, row.pk, was, became, COMPOSER, self.writer.now, reason, **columns
        )

    def _refreshed_columns(self, row: OutgoingMail) -> dict[str, Any]:
        """Return the columns to change of an unsent mail; none if a person approved it or somebody has got it. What a
        server may have seen is not composed again.
        """
        if row.sent_at or (row.decided_by_person and row.state == OutgoingState.APPROVED):
            return {}
        manual = row.decided_by_person or (row.state == OutgoingState.HELD and not row.reason)
        if reason := _why_not(row.about):
            return {} if manual else {"state": OutgoingState.HELD, "reason": reason, "not_before": None}
        return {} if row.attempts else self._recomposed_columns(row, manual)

    def _recomposed_columns(self, row: OutgoingMail, manual: bool) -> dict[str, Any]:
        """Return the columns of a recomposed mail. What a person holds stays held; what waits for approval waits."""
        writer, report = self.writer, row.about
        newest, held = newest_finding(report), withheld(report)
        data = self._report_data(report)
        mail = compose(data, writer.settings, writer.now, row.message_id, writer.config.conventions, self.excluded)
        decision = decide(data, writer.config.policy, policy_context(report), writer.now, self.otherwise)
        start = writer.decide_start(mail, decision, data)
        columns = {**writer.columns(mail), "newest_finding": newest, "withheld": held}
        waits = row.state == OutgoingState.COMPOSED and start.state == OutgoingState.APPROVED
        if manual or waits:
            return columns
        if row.state == OutgoingState.APPROVED and start.state != OutgoingState.HELD:
            return columns  # on the day already assigned
        writer.count(mail, start)
        return {**columns, "state": start.state, "reason": start.reason, "not_before": start.not_before}


def newest_finding(report: Report) -> int:
    """Return the key of a report's newest finding, 0 for none: later ones are not in a mail that is composed now."""
    return report.findings.order_by("-pk").values_list("pk", flat=True).first() or 0


def _is_as_read(report: Report) -> bool:
    """Lock a report; return whether it is as it was when its mail was composed, which may be seconds ago."""
    same = Report.objects.filter(revision=report.revision, held=report.held, verdict=report.verdict)
    return same.select_for_update().filter(pk=report.pk).values_list("pk").first() is not None


def _why_not(report: Report) -> str:
    """Return why the composed mail of a report must not be sent, or ""."""
    if report.held:
        return report.held.replace("\n", "; ")
    if report.verdict == Verdict.UNKNOWN:
        return "the verdict is no longer known"
    if State(report.state) in CLOSED - {State.NO_ACTION}:
        return f"closed before any mail was sent: {report.status}"
    return ""
