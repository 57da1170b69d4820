"""The models: one module per concept (DESIGN section 2)."""

from tracker.models.accounts import (
    ApiKey,
    Correspondent,
    DeliveryState,
    FaultMail,
    Folding,
    Mailing,
    Maintainer,
    Often,
    PasswordAttempt,
    Restoration,
    SavedView,
    Session,
    SignIn,
    SigningKey,
    StoredSize,
    Subscription,
    TaskRun,
    Webhook,
    WebhookDelivery,
)
from tracker.models.git import Commit, Landing, Tree
from tracker.models.mail import Archive, ArchiveNames, ArchivePositions, Message, Mirror, PendingReference, RawMessage
from tracker.models.measurements import (
    Curve,
    CurveBuild,
    CurveChange,
    CurveSegment,
    Kernel,
    Machine,
    MeasuredRole,
    Measurement,
    Metric,
    ReleaseResult,
    Scenario,
)
from tracker.models.outbox import (
    PERSONAL,
    DeliveryFailure,
    FailureSource,
    MailTransition,
    OutgoingMail,
    OutgoingState,
    Purpose,
    RateCalendar,
    Reminder,
    SendingStop,
    ServiceLease,
)
from tracker.models.releases import (
    BasketEntry,
    Parameter,
    Release,
    ReleaseCandidate,
    ReportHighlight,
    Study,
    StudyKernel,
    StudyKind,
    Suite,
    TextRevision,
)
from tracker.models.reports import (
    UNDECIDED,
    Decision,
    Event,
    LabJob,
    OfferedReport,
    RelatedCommit,
    Report,
    RuleRecord,
    SecondOpinion,
    StableSeries,
    Suggestion,
)
from tracker.models.results import BisectResult, Finding, ToolOutput
