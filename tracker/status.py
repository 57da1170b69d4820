"""Where a report stands: its events fold to a standing, and a standing renders to one sentence.

Pure. Everything that shows a state asks here (DESIGN rules 2 to 4). CONTRIBUTING.md has the recipe to add an event.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum

from tracker import versions


class Verdict(StrEnum):
    """What a moved metric means, by its direction and never by its sign alone."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    UNKNOWN = "unknown"


class Grade(StrEnum):
    """What one measurement shows. It is no verdict on a culprit: that takes the headline's direction."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    UNKNOWN = "unknown"  # it moved, and nobody has told which direction is better
    NOT_SIGNIFICANT = "not significant"
    NOT_TESTABLE = "not testable"  # one run a side, or no spread told


class State(StrEnum):
    """The states of DESIGN 4.3."""

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
        State.FIXED,
        State.DROPPED,
        State.EXPECTED,
        State.INVALID,
        State.DUPLICATE,
        State.DISAPPEARED,
        State.NO_ACTION,
    }
)
OPEN = frozenset(State) - CLOSED


class Awaited(StrEnum):
    """Who owes the next move."""

    AUTHOR = "author"
    REPORTER = "reporter"
    MAINTAINER = "maintainer"
    NOBODY = "nobody"


class Role(StrEnum):
    """Who made an event happen."""

    AUTHOR = "author"
    MAINTAINER = "maintainer"
    REPORTER = "reporter"
    THIRD_PARTY = "third_party"
    MACHINE = "machine"


class Happening(StrEnum):
    """The kinds of events, in the order in which they are told where times are equal."""

    REPORTED = "reported"
    LANDED = "landed"
    # What one mail says at once: what takes back comes before what goes on.
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
    FIX_LANDED = "fix_landed"
    STILL_THERE = "still_there"
    DROPPED = "dropped"
    EXPECTED = "expected"
    INVALID = "invalid"
    DUPLICATE = "duplicate"
    UNDUPLICATED = "unduplicated"
    DISAPPEARED = "disappeared"
    REOPENED = "reopened"
    NOTED = "noted"
    RETITLED = "retitled"
    ASSIGNED = "assigned"
    REMINDERS_OFF = "reminders_off"
    TEST_ASKED = "test_asked"
    READING_REJECTED = "reading_rejected"
    REVERSED = "reversed"


_RANK = {happening: rank for rank, happening in enumerate(Happening)}


@dataclass(frozen=True, slots=True)
class Event:
    """A fact that happened to a report. `key` names it within the report; `reverses` is such a key."""

    key: str
    kind: Happening
    at: datetime
    by: Role = Role.MACHINE
    message_id: str = ""  # the evidence is one of these four
    commit: str = ""
    result: str = ""
    said_by: str = ""
    title: str = ""  # of a fix
    tag: str = ""  # the version in which it happened
    tree: str = ""
    remark: str = ""  # free text: a note, a name, a sha10 of another report
    reverses: str = ""
    answers: str = ""  # the Message-ID of the mail that this one replies to

    def order(self) -> tuple[object, ...]:
        """A total order by content, so that the order in which facts were learned never matters."""
        rest = tuple(str(getattr(self, field.name)) for field in fields(self) if field.name not in ("at", "kind"))
        return (self.at, _RANK[self.kind], rest)


@dataclass(frozen=True, slots=True)
class Fix:
    """A candidate or a fix: known by the mail that carried it, by its title, by its commit, or by all."""

    title: str = ""
    message_id: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a report stands, with the key of the event that put it there (empty: none did yet)."""

    verdict: Verdict
    state: State
    because: str = ""
    reported_at: datetime | None = None
    responded_at: datetime | None = None
    merged: bool = False  # the culprit is in the mainline, be its first version known or not
    landing: str = ""  # the first mainline version with the culprit
    fix: Fix | None = None
    older_fixes: frozenset[str] = frozenset()  # the Message-IDs of candidates that a later one replaced
    fix_landing: str = ""
    fix_tree: str = ""  # the maintainer tree that holds the fix
    dropped_by_word: bool = False  # and not by a commit
    closed_in: str = ""  # the version in which it was dropped or disappeared
    duplicate_of: str = ""
    awaited: Awaited = Awaited.NOBODY
    remark: str = ""
    title: str = ""
    assignee: str = ""
    reminders: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the fold: in which states an event moves a report, where to, and who is awaited then.

    `to` None leads back to where the report would stand without any outcome.
    """

    within: frozenset[State]
    to: State | None
    awaits: Awaited


_TALK = frozenset({State.NO_RESPONSE, State.RESPONDED, State.NEEDS_INFO, State.DISPUTED})
_CANDIDATE = frozenset({State.FIX_PROPOSED, State.FIX_CONFIRMED})
_BEFORE_FIX = _TALK | {State.WORKING}
# An improvement needs nobody's action until somebody acts on it.
_UNSETTLED = OPEN | {State.NO_ACTION}

STEPS: dict[Happening, Step] = {
    Happening.RESPONDED: Step(frozenset({State.NO_RESPONSE}), State.RESPONDED, Awaited.AUTHOR),
    Happening.WORKING: Step(_BEFORE_FIX, State.WORKING, Awaited.AUTHOR),
    Happening.ASKED: Step(_BEFORE_FIX, State.NEEDS_INFO, Awaited.REPORTER),
    Happening.ANSWERED: Step(frozenset({State.NEEDS_INFO}), State.RESPONDED, Awaited.AUTHOR),
    Happening.DISPUTED: Step(_BEFORE_FIX, State.DISPUTED, Awaited.REPORTER),
    # A candidate waits for the lab to measure it; a good one for its author to post it.
    Happening.FIX_PROPOSED: Step(_BEFORE_FIX | _CANDIDATE | {State.NO_ACTION}, State.FIX_PROPOSED, Awaited.REPORTER),
    # Who was asked to test something, and says that it does not help, has answered.
    Happening.FIX_FAILED: Step(_CANDIDATE | {State.NEEDS_INFO}, None, Awaited.AUTHOR),
    Happening.FIX_CONFIRMED: Step(_BEFORE_FIX | _CANDIDATE | {State.NO_ACTION}, State.FIX_CONFIRMED, Awaited.AUTHOR),
    Happening.FIX_QUEUED: Step(_UNSETTLED, State.FIX_QUEUED, Awaited.MAINTAINER),
    Happening.FIX_LANDED: Step(frozenset(State), State.FIXED, Awaited.NOBODY),
    Happening.FIX_WITHDRAWN: Step(_CANDIDATE | {State.FIX_QUEUED, State.FIXED}, None, Awaited.AUTHOR),
    # Measured, not said: it counts after the landing too.
    Happening.FIX_WITHOUT_EFFECT: Step(_CANDIDATE | {State.FIX_QUEUED, State.FIXED}, None, Awaited.AUTHOR),
    Happening.STILL_THERE: Step(frozenset({State.DISAPPEARED}), None, Awaited.AUTHOR),
    Happening.DROPPED: Step(_UNSETTLED, State.DROPPED, Awaited.NOBODY),
    Happening.EXPECTED: Step(_UNSETTLED | {State.DROPPED}, State.EXPECTED, Awaited.NOBODY),
    Happening.INVALID: Step(_UNSETTLED | {State.EXPECTED}, State.INVALID, Awaited.NOBODY),
    Happening.DUPLICATE: Step(_UNSETTLED, State.DUPLICATE, Awaited.NOBODY),
    Happening.UNDUPLICATED: Step(frozenset({State.DUPLICATE}), None, Awaited.AUTHOR),
    Happening.DISAPPEARED: Step(_UNSETTLED, State.DISAPPEARED, Awaited.NOBODY),
    Happening.REOPENED: Step(CLOSED - {State.NO_ACTION}, None, Awaited.AUTHOR),
}


def fold(verdict: Verdict, events: Iterable[Event]) -> Standing:
    """Where a report stands after these events. Pure; their order of arrival does not matter.

    Reversed events are skipped, as if they had never been; a third party never makes it `responded`.
    """
    standing = _start(verdict)
    for event in sorted(_standing_events(list(events)), key=Event.order):
        if _counts(standing, event):
            standing = _remember(_move(standing, event), event)
    return standing


# What these tell beside the state would overwrite a later word: a candidate posted after the fix has landed,
# the failure of another candidate.
_ONLY_WITH_A_STEP = {
    Happening.FIX_PROPOSED,
    Happening.FIX_FAILED,
    Happening.FIX_CONFIRMED,
    Happening.FIX_QUEUED,
    Happening.FIX_WITHDRAWN,
    Happening.FIX_WITHOUT_EFFECT,
    Happening.STILL_THERE,
    Happening.DROPPED,
    Happening.DUPLICATE,
    Happening.DISAPPEARED,
    Happening.EXPECTED,
    Happening.REOPENED,
    Happening.UNDUPLICATED,
}


def _names_a_fix(event: Event) -> bool:
    """Whether the event tells which fix, or a person said so."""
    return bool(event.title or event.commit or event.result or event.said_by or event.remark)


_ABOUT_A_CANDIDATE = frozenset({Happening.FIX_CONFIRMED, Happening.FIX_FAILED})


def _counts(standing: Standing, event: Event) -> bool:
    if event.kind is Happening.FIX_WITHOUT_EFFECT and standing.fix and standing.fix.commit not in ("", event.commit):
        return False  # another fix was measured than the one that stands
    if event.kind is Happening.FIX_CONFIRMED and not (standing.fix or _names_a_fix(event)):
        return False  # of nothing that is known
    if event.kind in _ABOUT_A_CANDIDATE and event.answers in standing.older_fixes:
        return False  # it is about a candidate that another has replaced
    if event.kind is Happening.DROPPED and event.commit and standing.dropped_by_word:
        return True  # now a commit says so, too
    if event.kind is Happening.EXPECTED and standing.state is State.DROPPED and not standing.dropped_by_word:
        return False  # words weigh more than earlier words, but not more than a commit
    return event.kind not in _ONLY_WITH_A_STEP or standing.state in STEPS[event.kind].within


def _start(verdict: Verdict) -> Standing:
    if verdict is Verdict.IMPROVEMENT:
        return Standing(verdict, State.NO_ACTION)
    return Standing(verdict, State.NO_RESPONSE, awaited=Awaited.AUTHOR)


def _standing_events(events: list[Event]) -> list[Event]:
    """The events that no standing reversal takes back. A reversal can be reversed in its turn."""
    reversers: dict[str, list[Event]] = {}
    for event in events:
        if event.reverses:
            reversers.setdefault(event.reverses, []).append(event)

    known: dict[str, bool] = {}

    def stands(event: Event, above: frozenset[str]) -> bool:
        if event.key in above:  # a circle of reversals is cut where it closes
            return False
        if event.key not in known:
            known[event.key] = not any(stands(r, above | {event.key}) for r in reversers.get(event.key, ()))
        return known[event.key]

    # From the newest down, a chain of undo and redo is resolved without deep recursion.
    for event in sorted((e for e in events if e.reverses), key=Event.order, reverse=True):
        stands(event, frozenset())
    return [event for event in events if stands(event, frozenset())]


def _move(standing: Standing, event: Event) -> Standing:
    asks = event.kind is Happening.TEST_ASKED or (event.kind is Happening.ASKED and standing.state in _CANDIDATE)
    if asks and standing.state in _BEFORE_FIX | _CANDIDATE:
        return replace(standing, awaited=Awaited.REPORTER)
    step = STEPS.get(event.kind)
    if _hands_back(standing, event):
        standing = replace(standing, awaited=Awaited.AUTHOR)
    if step is None or standing.state not in step.within:
        return standing
    if event.kind is Happening.RESPONDED and event.by is Role.THIRD_PARTY:
        return standing
    target = step.to or _without_outcome(standing)
    awaits = Awaited.NOBODY if target is State.NO_ACTION else step.awaits
    return replace(standing, state=target, awaited=awaits, because=event.key)


def _hands_back(standing: Standing, event: Event) -> bool:
    """Whether a word leaves the next move to the author, though it moves no state: talk among developers, and answers
    by the lab. Who asked the reporter still waits for him.
    """
    if event.kind is Happening.RESPONDED:
        waits = (_BEFORE_FIX | _CANDIDATE) - {State.NEEDS_INFO}
        return standing.state in waits and event.by is not Role.THIRD_PARTY
    answers = event.kind in (Happening.ANSWERED, Happening.FIX_FAILED)
    return answers and standing.state in _BEFORE_FIX | _CANDIDATE


def _without_outcome(standing: Standing) -> State:
    if standing.verdict is Verdict.IMPROVEMENT:
        return State.NO_ACTION
    return State.RESPONDED if standing.responded_at else State.NO_RESPONSE


_ANSWERS = {Happening.RESPONDED, Happening.WORKING, Happening.ASKED, Happening.DISPUTED, Happening.FIX_PROPOSED}


def _remember(standing: Standing, event: Event) -> Standing:
    """What an event adds beside the state."""
    if event.kind in _ANSWERS and event.by in (Role.AUTHOR, Role.MAINTAINER) and standing.responded_at is None:
        standing = replace(standing, responded_at=event.at)
    match event.kind:
        case Happening.REPORTED:
            return replace(standing, reported_at=standing.reported_at or event.at)
        case Happening.LANDED:
            return replace(standing, merged=True, landing=_earlier(standing.landing, event.tag))
        case Happening.FIX_PROPOSED | Happening.FIX_CONFIRMED | Happening.FIX_QUEUED | Happening.FIX_LANDED:
            return _remember_fix(standing, event)
        case (
            Happening.FIX_FAILED
            | Happening.FIX_WITHDRAWN
            | Happening.FIX_WITHOUT_EFFECT
            | Happening.STILL_THERE
            | Happening.REOPENED
            | Happening.UNDUPLICATED
        ):
            return _forget_fix(standing)
        case Happening.DROPPED | Happening.DISAPPEARED:
            return replace(standing, closed_in=event.tag, dropped_by_word=not event.commit)
        case Happening.DUPLICATE:
            return replace(standing, duplicate_of=event.remark)
        case Happening.NOTED:
            return replace(standing, remark=event.remark)
        case Happening.RETITLED:
            return replace(standing, title=event.title)
        case Happening.ASSIGNED:
            return replace(standing, assignee=event.remark)
        case Happening.REMINDERS_OFF:
            return replace(standing, reminders=False)
    return standing


def _forget_fix(standing: Standing) -> Standing:
    """Without its candidate, which no late word brings back."""
    return replace(
        standing,
        fix=None,
        older_fixes=_older_fixes(standing),
        fix_landing="",
        fix_tree="",
        closed_in="",
        duplicate_of="",
        dropped_by_word=False,
    )


def _older_fixes(standing: Standing) -> frozenset[str]:
    """The candidates of before, with the one that stands, which another is about to replace."""
    return standing.older_fixes | ({standing.fix.message_id} if standing.fix and standing.fix.message_id else set())


def _remember_fix(standing: Standing, event: Event) -> Standing:
    named = Fix(event.title, event.message_id if event.kind is Happening.FIX_PROPOSED else "", event.commit)
    fix, older = named, standing.older_fixes
    if event.kind is Happening.FIX_PROPOSED:
        older = _older_fixes(standing)
    if standing.fix and event.kind is not Happening.FIX_PROPOSED:  # the same candidate, now better known
        fix = Fix(named.title or standing.fix.title, standing.fix.message_id, named.commit or standing.fix.commit)
    landing = _earlier(standing.fix_landing, event.tag) if event.kind is Happening.FIX_LANDED else standing.fix_landing
    tree = event.tree if event.kind is Happening.FIX_QUEUED else standing.fix_tree
    return replace(standing, fix=fix, older_fixes=older, fix_landing=landing, fix_tree=tree)


def _earlier(known: str, tag: str) -> str:
    """The earlier of two tags; a tag that is no kernel version counts as later than any that is."""
    if not known or not tag:
        return known or tag
    old, new = versions.parse(known), versions.parse(tag)
    if old is None or new is None:
        return tag if old is None and new is not None else known
    return tag if new < old else known


def sentence(standing: Standing) -> str:
    """The status in the words of the v5.6 report: "merged at v5.6-rc6, the regression has been fixed in v5.6-rc6".

    Where it was merged, what became of it, and the remark. A remark stands in the place of a complaint
    about silence, and an improvement's sentence never has one.
    """
    merged = "merged in the mainline" if standing.merged else "currently not merged"
    if standing.landing:
        merged = f"merged at {standing.landing}"
    silent = standing.state in (State.NO_RESPONSE, State.NO_ACTION) and standing.remark
    parts = [merged, "" if silent else _phrase(standing), standing.remark]
    return ", ".join(part for part in parts if part)


def _phrase(standing: Standing) -> str:
    thing = "improvement" if standing.verdict is Verdict.IMPROVEMENT else "regression"
    queued = f" in {standing.fix_tree}" if standing.fix_tree else ""
    closed_in = f" in {standing.closed_in}" if standing.closed_in else ""
    fixed_in = f" in {standing.fix_landing}" if standing.fix_landing else ""
    undone = f"{thing} has been fixed" if thing == "regression" else f"change behind the {thing} has been corrected"
    return {
        State.NO_RESPONSE: "no response from author yet",
        State.RESPONDED: "the author has responded",
        State.WORKING: "the author is working on it",
        State.NEEDS_INFO: "more information was asked for",
        State.DISPUTED: "the report is disputed",
        State.FIX_PROPOSED: "a fix is proposed",
        State.FIX_CONFIRMED: "a fix is proposed and confirmed",
        State.FIX_QUEUED: f"a fix is queued{queued}",
        State.FIXED: f"the {undone}{fixed_in}",
        State.DROPPED: f"the commit has been reverted{closed_in}" if closed_in else "the commit has been dropped",
        State.EXPECTED: f"the {thing} is expected",
        State.INVALID: "the report was withdrawn",
        State.DUPLICATE: f"a duplicate of {standing.duplicate_of or 'another report'}",
        State.DISAPPEARED: f"but the {thing} has disappeared{closed_in}",
        State.NO_ACTION: "",
    }[standing.state]
