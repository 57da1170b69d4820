"""One module a concept (DESIGN section 2)."""

from tracker.models.archive import Archive
from tracker.models.basket import BasketEntry
from tracker.models.candidate import Candidate
from tracker.models.commit import Commit
from tracker.models.correspondent import Correspondent, Mailing
from tracker.models.detail import Detail
from tracker.models.event import Event
from tracker.models.evidence import Evidence
from tracker.models.finding import Finding
from tracker.models.kernel import Kernel
from tracker.models.lab_text import Parameter, Suite
from tracker.models.machine import Machine
from tracker.models.measurement import MeasuredRole, Measurement, ReleaseResult
from tracker.models.message import Message, RawMessage
from tracker.models.metric import Metric
from tracker.models.move import Move
from tracker.models.noise import NoiseHistory
from tracker.models.orphan import Orphan
from tracker.models.outgoing import OutgoingMail, OutgoingState, Purpose
from tracker.models.pace import Pace
from tracker.models.refusal import Refusal, RefusedBy
from tracker.models.related import RelatedCommit, StableSeries
from tracker.models.release import Release
from tracker.models.report import Report
from tracker.models.result import BisectResult
from tracker.models.rule_record import RuleRecord
from tracker.models.saved_view import SavedView
from tracker.models.scenario import Scenario
from tracker.models.sending_stop import SendingStop
from tracker.models.sign_in import SignIn
from tracker.models.signing_key import SigningKey
from tracker.models.study import Study, StudyKernel, StudyKind
from tracker.models.suggestion import Decision, Suggestion
from tracker.models.tree import Landing, Tree
from tracker.models.writing import Writing

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
