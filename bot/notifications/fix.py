"""Mail about a measured fix: how much it recovers, or what came of the test that somebody asked for.

The share of the loss that a fix recovers is the smaller of two: its gain over its own parent and its gain over the
culprit. `Tested-by:` is given only where the fix passed, with a significant improvement and at least 90% recovered.

Whoever asked for a test of a patch gets the numbers without and with it, or in one line why there are none, in reply
to the mail that asked. A person whose mail proves nothing, and to whom we never wrote, is not addressed.
"""

import json
import textwrap
from dataclasses import dataclass, replace

from bot.compose import report_data
from bot.compose.mail import ComposedMail, Recipient
from bot.compose.report_data import FindingData
from bot.lab import headline, parse_job_result
from bot.mail.addresses import Address
from bot.mail.authentication import AuthVerdict
from bot.mail.message import one_line
from bot.mail.patches import bare_title
from bot.mail.settings import BotSettings
from bot.notifications.report import ancestors, remeasured_finding
from bot.notifications.thread import ReportContext, ThreadData, ThreadMails
from tracker.domain.events import JOB, EventData, Grade
from tracker.domain.lab_jobs import SENTENCES, JobOutcome
from tracker.domain.statistics import change_pct
from tracker.domain.text import counted, signed_pct
from tracker.models import Commit, LabJob, Message
from tracker.services import lab_jobs

# --- A measured fix ---

TESTED_BY_SHARE = 0.9  # share of the loss that a fix must recover to get a Tested-by
_LEAST_SHARE = 0.005
_MUCH = 0.5  # share of the loss: what may recover so much was not shown to do nothing


@dataclass(frozen=True, slots=True)
class FixData:
    """A fix, and the report's headline metric measured again without it and with it."""

    sha: str
    title: str
    author: Address
    measured: FindingData

    def recovers(self, headline: FindingData) -> float | None:
        """Return the share of the loss that the fix recovers, 1 for all of it; None if nothing was lost.

        The smaller of two: the gain over the fix's parent, and the gain over the culprit. A kernel that had become
        even slower before the fix is not repaired because it is faster than its parent.
        """
        lost = headline.old_mean - headline.new_mean
        if not lost:
            return None
        gained = (self.measured.new_mean - self.measured.old_mean) / lost
        reached = (self.measured.new_mean - headline.new_mean) / lost
        return min(gained, reached)

    def interval(self, headline: FindingData) -> tuple[float, float] | None:
        """Return the 95% interval of the share that the fix recovers, as it follows from that of its own change; None
        where that has none. What was lost counts as exact: it was measured, and reported, before.
        """
        lost, measured, share = headline.old_mean - headline.new_mean, self.measured, self.recovers(headline)
        if share is None or None in (measured.low_pct, measured.high_pct, measured.change_pct):
            return None
        assert measured.low_pct is not None
        assert measured.high_pct is not None
        assert measured.change_pct is not None
        ends = [
            share + (end - measured.change_pct) / 100 * abs(measured.old_mean) / lost
            for end in (measured.low_pct, measured.high_pct)
        ]
        return min(ends), max(ends)

    def passes(self, headline: FindingData) -> bool:
        """Return whether the fix earns a Tested-by: a significant improvement of at least TESTED_BY_SHARE."""
        share = self.recovers(headline)
        return self.measured.verdict is Grade.IMPROVEMENT and share is not None and share >= TESTED_BY_SHARE


def compose_fix(
    thread: ThreadData, fix: FixData, headline: FindingData, purpose: str, mails: ThreadMails
) -> ComposedMail:
    context = {
        "fix_sha": fix.sha,
        "fix_title": one_line(fix.title, 200),
        "opening": textwrap.wrap(f"We tested this fix. It {outcome_text(fix, headline)}:", 78),
        "metric": one_line(headline.metric, 120),
        "where": one_line(headline.where, 120),
        "reported": report_data.sides(headline),
        "remeasured": report_data.sides(fix.measured),
        "evidence": "; ".join(report_data.evidence(fix.measured)),
        "tested": _tested_by(fix, headline, mails.settings, thread.tag),
    }
    first = Recipient(fix.author, "author of the measured fix") if fix.author.email else None
    return mails.compose(thread, purpose, "fix", context, first, str(context["tested"]))


def fix_of(event: EventData, measured: FindingData) -> FixData:
    """Return a measured fix, with its author if known."""
    commit = Commit.objects.filter(sha=event.commit).first()
    author = Address(commit.author_name, commit.author_email) if commit else Address("", "")
    return FixData(event.commit, bare_title(event.title or (commit.title if commit else "")), author, measured)


def outcome_text(fix: FixData, headline: FindingData) -> str:
    """Return what a fix does, as the end of "It …"."""
    share, ends = fix.recovers(headline), fix.interval(headline)
    between = f"95% CI {100 * ends[0]:.0f} to {100 * ends[1]:.0f}%" if ends else ""
    of_it = f" ({between})" if between else ""
    if fix.measured.verdict is Grade.REGRESSION:
        return "makes things worse"
    if fix.measured.verdict is Grade.NOT_TESTABLE:
        return "could not be judged: too few runs"
    if fix.measured.verdict is not Grade.IMPROVEMENT:
        if ends and ends[1] >= _MUCH:
            return f"may recover much of the regression, or nothing{of_it}; more runs are needed"
        return f"makes no measurable difference{f' ({between} of the regression)' if between else ''}"
    if share is None or share < _LEAST_SHARE:
        return "helps, but does not recover the regression"
    if ends:
        return f"recovers {100 * share:.0f}% of the regression{of_it}"
    more = " (and more)" if share > 1.05 else ""
    return f"recovers {min(100, round(100 * share))}%{more} of the regression"


# --- A tested patch ---

_ADVICE = "Please say which commit it is for, or send a version for the culprit."


def compose_tested(context: ReportContext, event: EventData, purpose: str, mails: ThreadMails) -> ComposedMail | None:
    """Return the answer to a request for a test, in reply to the mail that asked; to its writer alone if that mail went
    to no list. None if the event is of no job, or if nobody may be told.
    """
    number = event.result.removeprefix(JOB)
    if not event.result.startswith(JOB) or not number.isdecimal():
        return None
    job = LabJob.objects.select_related("report").filter(pk=number, report=context.report).first()
    if job is None:
        return None
    asked_in = [job.asked_in, *_joined_mails(context, job)]
    rows = Message.objects.filter(message_id__in=asked_in).defer("tables", "own_text", "source")
    askers = sorted(rows, key=lambda mail: asked_in.index(mail.message_id))
    # Who asked in private reads the answer to others on the list.
    askers = [mail for mail in askers if mail.public] or askers
    asking = askers[0] if askers else None
    is_private = lab_jobs.is_private(job)  # the answer may go to our list
    result = parse_job_result(json.loads(job.payload)) if job.payload else None
    head = headline(job)
    compared = result.of_metric(head.metric.name) if result else None
    measured = remeasured_finding(compared, head) if compared else None  # None: it could not be tested
    base = (result.base if result else "") or job.base[:12]
    thread, asked_by = context.thread, None
    verified = context.report.verified_authors | context.report.verified_recipients
    also = [Recipient(_address(mail), "asked for the test") for mail in askers[1:] if _is_known(mail, verified)]
    if asking:
        if _is_known(asking, verified):
            asked_by = _address(asking)
        subject = thread.subject if is_private else asking.subject.removeprefix("Re: ")
        thread = replace(thread, message_id=asking.message_id, references=ancestors(asking.message_id), subject=subject)
    title, detail = ("", "") if is_private else (job.title, job.detail)
    values: dict[str, object] = {
        "patch": one_line(title, 200),
        "base": one_line(base, 66),
        "why": one_line(SENTENCES[JobOutcome(job.outcome)].format(base=base or "the culprit"), 200)
        if job.outcome in SENTENCES
        else "",
        "detail": one_line(detail, 200),
        "advice": _ADVICE if job.outcome == JobOutcome.NOT_APPLIED else "",
        "tested": "",
    }
    reported = context.headline
    if measured:
        fix = FixData("", title, asked_by or Address("", ""), measured)
        values |= _measured(fix, reported, mails.settings, thread.tag)
    first = Recipient(asked_by, "asked for the test") if asked_by else None
    if asking and not asking.public:
        if first is None:
            return None
        thread = replace(thread, to=(), cc=())
    tested = str(values["tested"])
    return mails.compose(thread, purpose, "tested", values, first, tested, also)


def _joined_mails(context: ReportContext, job: LabJob) -> list[str]:
    """Return the mails in which others asked for the same."""
    return [event.message_id for event in context.events if event.key in job.joined and event.message_id]


def _is_known(mail: Message, verified: frozenset[str]) -> bool:
    """Whether the writer of a mail is proven, or somebody whom we wrote to: others are not addressed."""
    return mail.trust == AuthVerdict.PASS or mail.author_email in verified


def _address(mail: Message) -> Address:
    return Address(mail.author_name, mail.author_email)


def _measured(fix: FixData, reported: FindingData, settings: BotSettings, tag: str) -> dict[str, object]:
    measured = fix.measured
    kernels = (
        ("parent", reported.old_mean, reported.old_runs),
        ("culprit", reported.new_mean, reported.new_runs),
        ("without the patch", measured.old_mean, measured.old_runs),
        ("with the patch", measured.new_mean, measured.new_runs),
    )
    return {
        "opening": textwrap.wrap(f"We tested this patch. It {outcome_text(fix, reported)}:", 78),
        "kernels": [_kernel_line(name, mean, runs, reported) for name, mean, runs in kernels],
        "metric": one_line(reported.metric, 66),
        "where": one_line(reported.where, 66),
        "evidence": "; ".join(report_data.evidence(measured)),
        "tested": _tested_by(fix, reported, settings, tag),
    }


def _kernel_line(name: str, mean: float, runs: int | None, reported: FindingData) -> str:
    """Return a row of the table: "with the patch        99.81    -0.2%  5 runs"."""
    change = change_pct(reported.old_mean, mean) if name != "parent" else None
    moved = "" if change is None else signed_pct(change)
    return f"{name:<18}{report_data.value(mean):>12} {moved:>8}  {counted(runs, 'run') if runs else ''}".rstrip()


def _tested_by(fix: FixData, reported: FindingData, settings: BotSettings, tag: str) -> str:
    return f"Tested-by: {one_line(settings.name)} <{settings.tagged(tag)}>" if fix.passes(reported) else ""
