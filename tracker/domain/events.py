"""The event of a report, and the words that all of Perfwork uses: verdicts, states, roles, kinds. Pure.

An event is a fact about a report: its kind, when it happened, by whom in which role, and its evidence, which is a
mail, a commit, a result or a person. Where a report stands is a fold over its events (`report_state.py`), so `order`
is a total order by content and the order in which events arrive never matters. Of events at the same time, those of
an earlier kind in `EventKind` apply first; its order is therefore part of the rules.

A verdict says what a change means by the metric's direction and never by its sign alone; a grade is what one
measurement shows, and no verdict on the culprit.
"""

from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum

# --- Rejected input ---


class InvalidInput(ValueError):
    """Rejected input; the message says what was expected and what was found."""


# --- States, roles, kinds of events ---


class Verdict(StrEnum):
    """What a change means, by the metric's direction and never by its sign alone."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    UNKNOWN = "unknown"


class ReportedBy(StrEnum):
    """Who opened a report: what a robot reports is measured; what a person does is what their mail says."""

    ROBOT = "robot"
    PERSON = "person"


class Grade(StrEnum):
    """What one measurement shows. Not a verdict on the culprit, which is decided by the headline."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    UNKNOWN = "unknown"  # it changed, but the direction is unknown
    NOT_SIGNIFICANT = "not significant"
    NOT_TESTABLE = "not testable"  # one run per side, or no spread given


class State(StrEnum):
    """The report states (DESIGN 4.3)."""

    NO_RESPONSE = "no_response"
    RESPONDED = "responded"
    WORKING = "working"
    NEEDS_INFO = "needs_info"
    DISPUTED = "disputed"
    FIX_PROPOSED = "fix_proposed"
    FIX_CONFIRMED = "fix_confirmed"
    FIX_QUEUED = "fix_queued"
    FIXED = "fixed"
    DROPPED = "dropped"
    EXPECTED = "expected"
    INVALID = "invalid"
    DUPLICATE = "duplicate"
    DISAPPEARED = "disappeared"
    NO_ACTION = "no_action"


CLOSED = frozenset(
    {
        State.FIXED, State.DROPPED, State.EXPECTED, State.INVALID, State.DUPLICATE, State.DISAPPEARED,
        State.NO_ACTION,
    }
)  # fmt: skip
OPEN = frozenset(State) - CLOSED


class Awaited(StrEnum):
    """Who has to act next."""

    AUTHOR = "author"
    REPORTER = "reporter"
    MAINTAINER = "maintainer"
    NOBODY = "nobody"


class ArchiveKind(StrEnum):
    """How mail gets into an archive: who can read it there, and whether it is delivered to us as it is written."""

    PUBLIC = "public"  # a public-inbox, a newsgroup, a thread of a lore server
    FILE = "file"  # an mbox or a mail that somebody gave us
    DELIVERY = "delivery"  # a mailbox or a pipe of ours: anybody may send there, also what is old


class Role(StrEnum):
    """Who caused an event."""

    AUTHOR = "author"
    MAINTAINER = "maintainer"
    REPORTER = "reporter"
    THIRD_PARTY = "third_party"
    MACHINE = "machine"


class EventKind(StrEnum):
    """The kinds of events, in the order in which those of equal time are applied.

    To add one: a row in STEPS of report_state.py if it moves the state, a case in `remember` if it adds something
    beside it; rows in tests/tracker/domain/test_report_state.py; a migration for the choices.
    """

    REPORTED = "reported"
    BISECTED = "bisected"  # the culprit of a person's report becomes known: `commit`
    CORRECTED = "corrected"  # a person says that the culprit is `commit`, or in the range `title`; `remark` was it
    # The culprit in git: in linux-next since a day, gone from it, in the mainline after a version, in a version.
    SAME_PATCH = "same_patch"
    IN_NEXT = "in_next"
    GONE = "gone"
    MERGED = "merged"
    LANDED = "landed"
    # When one mail says several things: what withdraws a fix is applied before what proposes one.
    FIX_GONE = "fix_gone"
    FIX_FAILED = "fix_failed"
    FIX_WITHDRAWN = "fix_withdrawn"
    FIX_WITHOUT_EFFECT = "fix_without_effect"
    RESPONDED = "responded"
    WORKING = "working"
    ASKED = "asked"
    ANSWERED = "answered"
    DISPUTED = "disputed"
    FIX_PROPOSED = "fix_proposed"
    FIX_CONFIRMED = "fix_confirmed"
    FIX_QUEUED = "fix_queued"
    FIX_MERGED = "fix_merged"
    FIX_LANDED = "fix_landed"
    STILL_THERE = "still_there"
    DROPPED = "dropped"
    FIX_REVERTED = "fix_reverted"
    EXPECTED = "expected"
    INVALID = "invalid"
    DUPLICATE = "duplicate"
    UNDUPLICATED = "unduplicated"
    DISAPPEARED = "disappeared"
    REOPENED = "reopened"
    NOTED = "noted"
    RETITLED = "retitled"
    TAGGED = "tagged"  # `remark`: all its tags
    SUCCEEDED = "succeeded"  # it goes on in another report: `remark`, its culprit's first digits
    ASSIGNED = "assigned"
    REMINDERS_OFF = "reminders_off"
    BLOCKS = "blocks"
    UNBLOCKED = "unblocked"
    TEST_ASKED = "test_asked"
    READING_REJECTED = "reading_rejected"
    REVERSED = "reversed"


class TreeRole(StrEnum):
    """What kind of tree it is: what it means that a commit is in it."""

    MAINLINE = "mainline"
    NEXT = "next"
    STABLE = "stable"
    MAINTAINER = "maintainer"


class Part(StrEnum):
    """How a commit relates to a report."""

    CULPRIT = "culprit"  # the culprit itself, or the same patch under another sha
    FIX = "fix"
    REVERT = "revert"  # of the culprit
    UNDO = "undo"  # a revert of the fix, or of the revert: the regression is back


_RANK = {event_kind: rank for rank, event_kind in enumerate(EventKind)}


JOB = "job/"  # begins the result of an event that the end of a lab's job made


@dataclass(frozen=True, slots=True)
class EventData:
    """A fact about a report. `key` identifies it within the report; `reverses` is such a key."""

    key: str
    kind: EventKind
    occurred_at: datetime
    role: Role = Role.MACHINE
    message_id: str = ""  # the evidence is one of these four
    commit: str = ""
    result: str = ""
    actor: str = ""
    title: str = ""  # of a fix
    tag: str = ""  # the version in which it happened
    tree: str = ""
    remark: str = ""  # free text: a note, a name, a sha10 of another report
    reverses: str = ""
    in_reply_to: str = ""  # the Message-ID of the mail that this one replies to

    def order(self) -> tuple[object, ...]:
        """Return a sort key by content: a total order, so that the order in which events arrive never matters."""
        names = (field.name for field in fields(self) if field.name not in ("occurred_at", "kind"))
        return (self.occurred_at, _RANK[self.kind], tuple(str(getattr(self, name)) for name in names))
