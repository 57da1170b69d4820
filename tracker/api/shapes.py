"""The objects of the API, and how events, mails and jobs become them. OpenAPI is made from these.

There is one shape per thing. Changes come as `change`, the metric's own in per cent, and as `change_pct`, the same
with plus for better, which is null if the direction is unknown. As a rule a text is empty and a number or time null
where nothing is known. A report is named by its culprit's sha, and mails by their Message-IDs.

The shapes document the answers, which are written without going through them (`tables.py` says why): a new field is
added in both places, those of a whole report in tracker/pages/report_json.py; one that is a column of the same name is
taken from the row by `shaped`. A test compares them.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db.models import Model
from django.urls import reverse
from ninja import Schema

from tracker.domain.lab_jobs import measured_metrics
from tracker.models import Event, LabJob


class Fix(Schema):
    """The fix of a report, as far as it is known; texts are empty where it is not."""

    sha: str
    title: str
    landing: str


class ReportShape(Schema):
    """A report as in a row of the triage table. `change`: the metric's own change in per cent; `change_pct`: the same
    with plus for better, null if the direction is unknown. `bisected`: whether `culprit` is a commit, and not the id
    of a person's report that nobody has bisected; `facts`: what that person's mail says.
    """

    culprit: str
    bisected: bool
    culprit_title: str
    title: str
    subsystem: str
    tree: str | None
    branch: str
    verdict: str
    state: str
    status: str
    awaited: str
    awaited_since: datetime | None
    assignee: str
    author: str
    blocks: str
    metric: str
    suite: str
    scenario: str
    machine: str
    base: str
    change: float | None
    change_pct: float | None
    noise_pct: float | None
    landing: str
    merged_release: str
    shift_left_release: str
    fix: Fix
    lacks_fix_in_stable: bool
    tags: list[str]
    reported_by: str
    reporter: str
    facts: dict[str, dict[str, str] | None] | None
    reported_at: datetime | None
    responded_at: datetime | None
    changed_at: datetime | None
    closed_at: datetime | None
    url: str


class FindingShape(Schema):
    """One measured change of a report."""

    report: str
    metric: str
    unit: str
    suite: str
    parameters: dict[str, Any]
    scenario: str
    machine: str
    headline: bool
    verdict: str
    change_pct: float | None
    change_pct_raw: float | None
    interval_pct: list[float | None] | None
    p_value: float | None
    effect: float | None
    old: dict[str, Any]
    new: dict[str, Any]


class EventShape(Schema):
    """One event of a report's log. `evidence`: the mail, commit, result or person that says so; `trust`: whether the
    author of that mail is verified (pass, fail or none), "" if no mail says so.
    """

    report: str
    key: str
    kind: str
    at: datetime
    by: str
    evidence: str
    title: str
    tag: str
    tree: str
    remark: str
    reverses: str
    trust: str


class MessageShape(Schema):
    """One mail of a report's thread."""

    message_id: str
    report: str
    in_reply_to: str
    author: str
    subject: str
    date: datetime | None
    kind: str
    role: str
    trust: str


class ReleaseShape(Schema):
    """A release; `released_at` is null while it is in development."""

    version: str
    released_at: datetime | None
    url: str


class CurveShape(Schema):
    """A curve of measurements; `url` with `?format=json` has its builds."""

    metric: str
    unit: str
    direction: str
    suite: str
    scenario: str
    machine: str
    points: int
    samples: int
    first_at: datetime | None
    last_at: datetime | None
    noise: dict[str, Any]
    url: str


class SuggestionShape(Schema):
    """What a reading, a commit or a curve suggests. `certainty`: how likely it is right, in per cent, if that is known;
    `trust`: whether the author of the mail is verified (pass, fail or none), "" without a mail; `decision`: open,
    accepted, rejected or changed; withdrawn if it would change nothing any more.
    """

    id: int
    report: str
    kind: str
    at: datetime
    by: str
    message_id: str
    trust: str
    quote: str
    rule: str
    certainty: int | None
    why: str
    decision: str


class NamedShape(Schema):
    """A metric or a machine; `url` is its page."""

    name: str
    unit: str
    direction: str
    description: str
    url: str


class CommitShape(Schema):
    """A culprit, a fix or another commit that reports are about. `patch`: the Message-ID of its patch mail."""

    sha: str
    title: str
    author: str
    authored_at: datetime | None
    patch: str
    patch_id: str


class MeasurementShape(Schema):
    """One metric of one kernel in one scenario on one machine."""

    kernel: str
    variant: str
    metric: str
    unit: str
    scenario: str
    machine: str
    mean: float
    stddev: float | None
    runs: int
    samples: list[float]


class OutgoingShape(Schema):
    """A mail of the outbox; `reason`: why it is held, failed or in doubt."""

    id: int
    report: str
    message_id: str
    purpose: str
    state: str
    reason: str
    subject: str
    recipients: list[str]
    composed_at: datetime
    not_before: datetime | None
    sent_at: datetime | None


class JobMetricShape(Schema):
    """One metric of a job's result: the means without the patch (old) and with it (new), and its own change."""

    metric: str
    old: float
    new: float
    change_pct: float | None


class JobShape(Schema):
    """A job of the lab. `base`: the commit to apply the patch to, "" if it is not known; `patch_mail` and `asked_in`:
    Message-IDs; `joined`: the keys of the events that ask for the same; `allowed_by`: who lets any runner take it
    though nothing proves who asks; `in_series`: the patch is a series; `branch`: what to test instead of a patch;
    `measured`: the result.
    """

    id: int
    request: str
    state: str
    report: str
    url: str
    asked_in: str
    joined: list[str]
    proven: bool
    allowed_by: str
    title: str
    patch_mail: str
    in_series: bool
    branch: str
    base: str
    culprit: str
    applies: bool | None
    machine: str
    opened_at: datetime
    due_at: datetime
    runner: str
    lease_until: datetime | None
    attempts: int
    finished_at: datetime | None
    outcome: str
    detail: str
    measured: list[JobMetricShape]


# All that `event_json` depends on.
EVENT_VERSION = (
    "pk", "report__culprit__sha", "occurred_at", "role", "message_id", "commit", "result", "actor",
    "key", "kind", "title", "tag", "tree", "remark", "reverses", "trust",
)  # fmt: skip


def shaped(shape: type[Schema], row: Model, **made: object) -> dict[str, Any]:
    """Return a row in its shape: what was made of it, and for the other fields its columns of the same names."""
    return {name: made[name] if name in made else getattr(row, name) for name in shape.model_fields}


def event_json(event: Event) -> dict[str, Any]:
    """Return an event, of a query `event_log.with_trust`, as JSON."""
    evidence = event.message_id or event.commit or event.result or event.actor
    sha = event.report.culprit.sha
    return shaped(EventShape, event, report=sha, at=event.occurred_at, by=event.role, evidence=evidence)


def job_json(job: LabJob, absolute: Callable[[str], str]) -> dict[str, Any]:
    """Return a job as JSON, without the token of its lease."""
    sha = job.report.culprit.sha
    url = absolute(reverse("report", args=[sha]))
    measured = [
        {"metric": metric.name, "old": metric.old.mean, "new": metric.new.mean, "change_pct": metric.change}
        for metric in measured_metrics(job.payload)
    ]
    return shaped(JobShape, job, report=sha, url=url, culprit=sha, machine=job.report.machine, measured=measured)


class Problem(Schema):
    """An error (RFC 9457): `detail` says which parameter, what was expected, and what was found."""

    type: str
    title: str
    status: int
    detail: str
