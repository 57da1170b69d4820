"""The models: one module per concept (DESIGN section 2)."""

from tracker.models.accounts import Correspondent, Mailing, SavedView, SignIn, SigningKey
from tracker.models.git import Commit, Landing, Tree
from tracker.models.mail import Archive, Message, PendingReference, RawMessage
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
from tracker.models.outbox import (
    DeliveryFailure,
    FailureSource,
    MailTransition,
    OutgoingMail,
    OutgoingState,
    Purpose,
    SendingStop,
    TokenBucket,
)
from tracker.models.releases import Parameter, Release, ReleaseCandidate, ReportHighlight, Suite, TextRevision
from tracker.models.reports import Decision, Event, RelatedCommit, Report, RuleRecord, StableSeries, Suggestion
from tracker.models.results import BisectResult, Finding, ToolOutput
from tracker.models.studies import BasketEntry, Study, StudyKernel, StudyKind

__all__ = [
    "Archive",
    "BasketEntry",
    "BisectResult",
    "Commit",
    "Correspondent",
    "Decision",
    "DeliveryFailure",
    "Event",
    "FailureSource",
    "Finding",
    "Kernel",
    "Landing",
    "Machine",
    "MailTransition",
    "Mailing",
    "MeasuredRole",
    "Measurement",
    "Message",
    "Metric",
    "NoiseHistory",
    "OutgoingMail",
    "OutgoingState",
    "Parameter",
    "PendingReference",
    "Purpose",
    "RawMessage",
    "RelatedCommit",
    "Release",
    "ReleaseCandidate",
    "ReleaseResult",
    "Report",
    "ReportHighlight",
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
    "TextRevision",
    "TokenBucket",
    "ToolOutput",
    "Tree",
]
