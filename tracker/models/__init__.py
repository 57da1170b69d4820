"""One module a concept (DESIGN section 2)."""

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
    "ReleaseCandidate",
    "Commit",
    "Correspondent",
    "Decision",
    "ReportHighlight",
    "Event",
    "ToolOutput",
    "Finding",
    "Kernel",
    "Landing",
    "Machine",
    "Mailing",
    "MeasuredRole",
    "Measurement",
    "Message",
    "Metric",
    "MailTransition",
    "NoiseHistory",
    "PendingReference",
    "OutgoingMail",
    "OutgoingState",
    "TokenBucket",
    "Parameter",
    "Purpose",
    "RawMessage",
    "DeliveryFailure",
    "FailureSource",
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
    "TextRevision",
]
