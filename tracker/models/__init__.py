"""One module a concept (DESIGN section 2)."""

from tracker.models.accounts import Correspondent, Mailing, SavedView, SignIn, SigningKey
from tracker.models.git import Commit, Landing, Tree
from tracker.models.mail import Archive, Message, Orphan, RawMessage
from tracker.models.measurements import (
    Kernel,
    Machine,
    MeasuredRole,
    Measurement,
    Metric,
    NoiseHistory,
    ReleaseResult,
    Scenario,
)
from tracker.models.outbox import Move, OutgoingMail, OutgoingState, Pace, Purpose, Refusal, RefusedBy, SendingStop
from tracker.models.releases import Candidate, Detail, Parameter, Release, Suite, Writing
from tracker.models.reports import Decision, Event, RelatedCommit, Report, RuleRecord, StableSeries, Suggestion
from tracker.models.results import BisectResult, Evidence, Finding
from tracker.models.studies import BasketEntry, Study, StudyKernel, StudyKind

__all__ = [
    "Archive",
    "BasketEntry",
    "BisectResult",
    "Candidate",
    "Commit",
    "Correspondent",
    "Decision",
    "Detail",
    "Event",
    "Evidence",
    "Finding",
    "Kernel",
    "Landing",
    "Machine",
    "Mailing",
    "MeasuredRole",
    "Measurement",
    "Message",
    "Metric",
    "Move",
    "NoiseHistory",
    "Orphan",
    "OutgoingMail",
    "OutgoingState",
    "Pace",
    "Parameter",
    "Purpose",
    "RawMessage",
    "Refusal",
    "RefusedBy",
    "RelatedCommit",
    "Release",
    "ReleaseResult",
    "Report",
    "RuleRecord",
    "SavedView",
    "Scenario",
    "SendingStop",
    "SignIn",
    "SigningKey",
    "StableSeries",
    "Study",
    "StudyKernel",
    "StudyKind",
    "Suggestion",
    "Suite",
    "Tree",
    "Writing",
]
