"""Report mail: due, loaded as values, put into the outbox once, kept up to date until it is sent.

Due: a report from results, a regression or an improvement, neither held nor resolved, that has no mail yet. It
answers the culprit's patch mail, found by the result, by the commit's `Link:`, or by patch-id on a lore server.
Findings of held results are not mailed. A mail has at most 300 findings and 70 kB of rows, since list servers accept
100 kB; the report's page has all.

An unsent mail is composed again under the same Message-ID when more is known, unless a person approved it or a server
may have seen it. What should not be sent any more is held with the reason, and so is a report whose mail can't be
composed, so that it blocks no other. Findings that are stored after a mail was composed are left to a follow-up.
"""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.urls import reverse

from bot.compose.conventions import ThreadPosition, patch_mail, reply_position
from bot.compose.mail import ComposedMail
from bot.compose.policy import Action, Policy, PolicyContext, decide
from bot.compose.report_data import BuildInfo, FindingData, ReportData
from bot.compose.report_mail import compose
from bot.git.maintainers import responsible_for
from bot.git.repository import Unreadable
from bot.mail.addresses import Address
from bot.mail.settings import BotSettings
from bot.outbox.drafts import (
    COMPOSER,
    ComposeConfig,
    OutboxWriter,
    PatchLookup,
    Start,
    excluded_addresses,
    policy_context,
)
from bot.replies.reading import SenderKind
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
    Tree,
)
from tracker.models.mail import WAITING
from tracker.services import mail_transitions
from tracker.services.accounts import learn_maintainers
from tracker.services.curve_changes import past_of
from tracker.services.database import is_interruption
from tracker.services.report_summary import refresh

log = logging.getLogger(__name__)

# --- The patch that it answers ---

MOST_ANCESTORS = 10  # mails of a thread


@dataclass(slots=True)
class PatchMails:
    """Looks patches up, by `lookup` if need be; after an error it is not asked again in this round."""

    lookup: PatchLookup | None = None
    _unreachable: bool = field(default=False, init=False)

    def reply_position(self, commit: Commit) -> ThreadPosition:
        """Return the threading of a reply to the patch; a new thread if no patch is known."""
        message_id = commit.patch_message_id
        if not message_id and (linked := patch_mail(commit.trailers)):
            ours = OutgoingMail.objects.filter(message_id=linked)
            is_report = ours.exists() or Message.objects.filter(message_id=linked, kind=SenderKind.ROBOT).exists()
            message_id = "" if is_report else linked
        if not message_id and self.lookup and not self._unreachable and commit.patch_id and commit.title:
            try:
                posting = self.lookup(commit.patch_id, commit.title)
            except Unreadable as error:
                log.error("%s", error)
                self._unreachable = True
                posting = None
            if posting:
                message_id, references = posting.message_id, list(posting.references)
                commit.patch_message_id, commit.patch_references = message_id, references
                commit.save(update_fields=["patch_message_id", "patch_references"])
        return reply_position(message_id, commit.patch_references or ancestors(message_id))


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


# --- What the mail says ---

ALL_HELD = "all its findings are held"
MOST_FINDINGS = 300  # findings in one mail; the report's page has all
MOST_BYTES = 70_000  # of table rows; list servers accept 100 kB
ROW = 60  # bytes of a row without its name


def report_data(report: Report, settings: BotSettings, config: ComposeConfig, patches: PatchMails) -> ReportData:
    """Return the content of a report's mail, its headline first; LookupError if all findings are held."""
    findings = findings_of(report)
    if not findings:
        raise LookupError(ALL_HELD)
    head, culprit = findings[0], report.culprit
    result = details_of(head.result.format, head.result.payload) if head.result else ResultDetails()
    values = values_of(findings)
    # As many as fit into a mail: a metric's name may have 300 characters, and the report's page has all.
    sizes = accumulate(len(finding.metric.encode()) + ROW for finding in values)
    fitting = tuple(finding for finding, size in zip(values, sizes, strict=True) if size <= MOST_BYTES)
    return ReportData(
        tag=report.tag,
        sha=culprit.sha,
        title=culprit.title,
        author=Address(culprit.author_name, culprit.author_email),
        trailers=tuple((tag, value) for tag, value in culprit.trailers),
        patch=patches.reply_position(culprit),
        tree=report.tree.name if report.tree else "",
        tree_url=result.tree_url or _url_of(report.tree, head),
        tree_role=report.tree.role if report.tree else "",
        branch=report.branch,
        parent_sha=head.parent.sha if head.parent else "",
        parent_title=head.parent.title if head.parent else "",
        base=head.base,
        good=result.good,
        bad=result.bad,
        bisect_steps=result.bisect_steps,
        verdict=Verdict(report.verdict),
        findings=fitting,
        build=BuildInfo(**result.build),
        authored_at=culprit.authored_at,
        responsible=responsible_for(config.trees, culprit.sha),
        rechecks=result.rechecks,
        test_text=result.test_text,
        test_url=result.test_url,
        artifacts=result.artifacts,
        files=head.result.files if head.result else {},
        raw=settings.base_url + reverse("api-result", args=[head.result_id]) if head.result_id else "",
        history=_history(head, culprit.sha, settings),
    )


def _url_of(tree: Tree | None, head: Finding) -> str:
    """Return the tree's URL, unless the result does not give it: another lab, which has a tree of that name, would send
    readers to its own.
    """
    return tree.url if tree and (head.result is None or tree.url in head.result.payload) else ""


def _history(head: Finding, culprit: str, settings: BotSettings) -> str:
    """Return "stable since v6.9, 41 builds; https://…/curve/12/"; "" without a history."""
    past = past_of(head, culprit)
    if past is None or past.history is None:
        return ""
    modes = past.history.modes_pct
    url = settings.base_url + reverse("curve", args=[past.curve.pk])
    return "; ".join([past.history.text, *([f"two modes {modes:.0f}% apart"] if modes else ()), url])


def findings_of(
    report: Report, after: int = 0, freed: Collection[int] = (), most: int = MOST_FINDINGS
) -> list[Finding]:
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
    held = report.findings.exclude(result=None).exclude(result__held="")
    return list(held.values_list("pk", flat=True)[:MOST_FINDINGS])


def headline_of(report: Report) -> Finding:
    """Return the headline finding of a report; LookupError if all its findings are held."""
    if not (findings := findings_of(report, most=1)):
        raise LookupError(ALL_HELD)
    return findings[0]


def values_of(findings: Iterable[Finding]) -> tuple[FindingData, ...]:
    """Return findings as values for a mail."""
    return tuple(map(finding_value, findings))


def _in_one_word(name: str) -> str:
    """Return a metric's name as it stands in the tables of a mail, whose columns are separated by blanks."""
    return "_".join(name.split())


def finding_value(finding: Finding) -> FindingData:
    assert finding.old_mean is not None
    assert finding.new_mean is not None
    both = finding.old_samples and finding.new_samples
    return FindingData(
        metric=_in_one_word(finding.metric.name),
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
        by_summary=not both and finding.low_pct is not None,
    )


def measured_again(report: Report, result: str, sha: str) -> FindingData | None:
    """Return a report's headline metric, on the same machine, from another result ("lab/17") whose bad commit or
    culprit is `sha`; None if it was not measured there.
    """
    name = Q()
    for at, character in enumerate(result[:400]):  # producers and ids may contain the slash that separates them
        if character == "/":
            name |= Q(producer=result[:at], external_id=result[at + 1 :])
    row = BisectResult.objects.filter(name).first() if name else None
    if row is None:
        return None
    head = headline_of(report)
    data = reread(row.format, row.payload, row.bad_sha, str(row))
    measurement = remeasured(data, sha, head.scenario.key, head.machine.name, head.metric.name)
    return remeasured_finding(measurement, head) if measurement else None


def remeasured_finding(compared: Compared, head: Finding) -> FindingData:
    """Return the metric of a finding as it was measured once more, graded."""
    graded = grade(compared, head.metric.direction)
    return FindingData(
        metric=_in_one_word(head.metric.name),
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

MOST_REDECIDED = 50  # mails; each takes a dozen queries
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
    due = (
        Report.objects.filter(held="", results__isnull=False, verdict__in=(Verdict.REGRESSION, Verdict.IMPROVEMENT))
        .exclude(state__in=CLOSED - {State.NO_ACTION})  # already resolved
        .exclude(outgoing__purpose=Purpose.REPORT)
        .select_related("culprit", "tree")
        .distinct()
        .order_by("pk")
    )
    this_round = _ReportRound(settings, now, config, approve_first)
    this_round.refresh(limit)
    return sum(this_round.try_compose(report) for report in due[:limit])


def refresh_unsent(
    settings: BotSettings, now: datetime, *, approve_first: bool = True, config: ComposeConfig = DEFAULT_CONFIG
) -> None:
    """Bring unsent mails up to date, before a person approves them or a server gets them."""
    _ReportRound(settings, now, config, approve_first).refresh(AT_ONCE)


@dataclass(frozen=True, slots=True)
class Redecided:
    """A mail about which another policy would have decided otherwise, and why if it holds it."""

    mail: OutgoingMail
    was: Action
    becomes: Action
    reason: str


def decided_otherwise(
    wanted: Policy, settings: BotSettings, config: ComposeConfig, since: datetime, otherwise: Action
) -> tuple[int, list[Redecided]]:
    """Return how many reports' mails were composed since then, up to MOST_REDECIDED, and those that `wanted` decides
    otherwise than the policy in force. Daily limits and rates are not looked at: they delay, and decide nothing.
    """
    rows = OutgoingMail.objects.filter(purpose=Purpose.REPORT, report__isnull=False, composed_at__gte=since)
    rows = rows.select_related("report__culprit", "report__tree").order_by("-composed_at", "-pk")
    mails = list(rows[:MOST_REDECIDED])
    patches, changed = PatchMails(None), []
    for mail in mails:
        try:
            data = report_data(mail.about, settings, config, patches)
        except LookupError:  # all of its findings are held by now
            continue
        context = _as_of_then(policy_context(mail.about), mail)
        was, becomes = (
            decide(data, policy, context, mail.composed_at, otherwise) for policy in (config.policy, wanted)
        )
        if was.action != becomes.action:
            changed.append(Redecided(mail, was.action, becomes.action, becomes.reason))
    return len(mails), changed


def _as_of_then(context: PolicyContext, mail: OutgoingMail) -> PolicyContext:
    """Return the context without what came of the mail: that it is the report, and a fix that was posted later."""
    later = context.fix_posted_at is not None and context.fix_posted_at > mail.composed_at
    return replace(
        context,
        reported_by="" if context.reported_by == mail.message_id else context.reported_by,
        fix_posted_at=None if later else context.fix_posted_at,
    )


class _ReportRound:
    """One round of composing, with what its mails share."""

    def __init__(self, settings: BotSettings, now: datetime, config: ComposeConfig, approve_first: bool) -> None:
        self.writer = OutboxWriter(settings, config, now)
        self.excluded = excluded_addresses(settings.aliases, config.policy.never)
        self.otherwise = Action.APPROVE if approve_first else Action.SEND
        self.patches = PatchMails(config.patch_lookup)

    def try_compose(self, report: Report) -> bool:
        """Compose the mail of one report. On an error, hold the report with the reason, so that it blocks no other."""
        try:
            mail, start, newest, held = self._draft(report)
            with transaction.atomic():
                # If the report is no longer as it was read, seconds ago, the next round composes its mail.
                same = Report.objects.filter(revision=report.revision, held=report.held, verdict=report.verdict)
                if same.select_for_update().filter(pk=report.pk).values_list("pk").first() is None:
                    return False
                if not self.writer.insert(report, mail, Purpose.REPORT, start, newest, held):
                    return False  # another worker was faster
                learn_maintainers(report.subsystem, mail.recipients.maintainers)
                keys = person_keys((*mail.to, *mail.cc))
                Report.objects.filter(pk=report.pk).update(title=report.title or mail.subject, recipients=keys)
            return True
        except Exception as error:  # bad data from a lab or a tree: affects one report only
            if is_interruption(error):  # the next round tries again
                log.error("%s: composing its mail failed: %s", report.culprit.sha10, error)
                return False
            log.exception("%s: composing its mail failed", report.culprit.sha10)
            reason = f"composing its mail failed: {type(error).__name__}: {error}".replace("\n", " ").replace("\0", "")
            Report.objects.filter(pk=report.pk).update(held=reason[:500])
            refresh([report.pk])
            return False

    def _draft(self, report: Report, own_id: str = "") -> tuple[ComposedMail, Start, int, list[int]]:
        """Return a report's mail, how it starts, and the newest finding and the held ones at that time."""
        writer = self.writer
        # Before the findings are loaded: later ones are not in this mail.
        newest = report.findings.order_by("-pk").values_list("pk", flat=True).first() or 0
        held = withheld(report)
        data = report_data(report, writer.settings, writer.config, self.patches)
        mail = compose(data, writer.settings, writer.now, own_id, writer.config.conventions, self.excluded)
        decision = decide(data, writer.config.policy, policy_context(report), writer.now, self.otherwise)
        return mail, writer.decide_start(mail, decision, data), newest, held

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
        was = OutgoingState(row.state)
        became = columns.pop("state", was)
        # A mail that has changed since it was read is checked again later.
        if became == was:
            done = bool(unchanged.update(**columns, stale=False))
        else:
            reason = str(columns.get("reason", ""))
            done = mail_transitions.transition_one(
                unchanged, row.pk, was, became, COMPOSER, self.writer.now, reason, **columns, stale=False
            )
        if done and "subject" in columns:
            Report.objects.filter(pk=row.about.pk, title=row.subject).update(title=columns["subject"])

    def _refreshed_columns(self, row: OutgoingMail) -> dict[str, Any]:
        """Return the columns to change of an unsent mail; none if a person approved it or somebody has got it. What a
        server may have seen is not composed again.
        """
        if row.sent_at or (row.decided_by_person and row.state == OutgoingState.APPROVED):
            return {}
        manual = row.decided_by_person or (row.state == OutgoingState.HELD and not row.reason)
        if reason := _why_not(row.about):
            return {} if manual else {"state": OutgoingState.HELD, "reason": reason, "not_before": None}
        if row.attempts:
            return {}
        if row.edited_by:  # nothing writes over it; whoever decides on it can have it composed again
            reason = "more is known than the edited text says: compose it again, or approve it"
            return {"state": OutgoingState.HELD, "reason": reason, "not_before": None}
        mail, start, newest, held = self._draft(row.about, row.message_id)
        columns = {**self.writer.columns(mail), "newest_finding": newest, "withheld": held}
        waits = row.state == OutgoingState.COMPOSED and start.state == OutgoingState.APPROVED
        has_its_day = row.state == OutgoingState.APPROVED and start.state != OutgoingState.HELD
        if manual or waits or has_its_day:  # what a person holds stays held; what waits for approval waits
            return columns
        self.writer.count(mail, start)
        return {**columns, "state": start.state, "reason": start.reason, "not_before": start.not_before}


def _why_not(report: Report) -> str:
    """Return why the composed mail of a report must not be sent, or ""."""
    if report.held:
        return report.held.replace("\n", "; ")
    if report.verdict == Verdict.UNKNOWN:
        return "the verdict is no longer known"
    if State(report.state) in CLOSED - {State.NO_ACTION}:
        return f"closed before any mail was sent: {report.status}"
    return ""
