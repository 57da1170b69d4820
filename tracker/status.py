"""Where a report stands: its events fold to a standing, and a standing renders to one sentence.

Pure. Everything that shows a state asks here (DESIGN rules 2 to 4). CONTRIBUTING.md has the recipe to add an event.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from tracker import versions
from tracker.happenings import CLOSED, OPEN, Awaited, EventData, Grade, Happening, Role, State, Verdict

__all__ = [
    "CLOSED",
    "OPEN",
    "STEPS",
    "Awaited",
    "EventData",
    "Fix",
    "Grade",
    "Happening",
    "Role",
    "Standing",
    "State",
    "Step",
    "Verdict",
    "fold",
    "sentence",
    "standing_events",
]


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
    merged_after: str = ""  # the last version without it, as long as no version has it
    in_next: str = ""  # since when the culprit is in linux-next: a day's tag, or a date
    gone: str = ""  # since when it is there no longer, though the mainline never had it
    fix: Fix | None = None
    older_fixes: frozenset[str] = frozenset()  # the Message-IDs of candidates that a later one replaced
    fix_landing: str = ""
    fix_trees: tuple[tuple[str, str], ...] = ()  # the trees that hold the fix; of linux-next, since when
    fix_merged: bool = False  # the fix is in the mainline
    fix_merged_after: str = ""  # the last version without it
    fix_gone: str = ""  # the last tree that it was gone from
    cures: tuple[EventData, ...] = ()  # the fixes and reverts that a version has, and none took back
    fix_reverted_in: str = ""  # the version that took the fix back
    dropped_by_word: bool = False  # and not by a commit
    closed_in: str = ""  # the version in which it was dropped or disappeared
    closed_at: datetime | None = None  # when it came to its end, where it is closed by something that happened
    duplicate_of: str = ""
    awaited: Awaited = Awaited.NOBODY
    remark: str = ""
    title: str = ""
    assignee: str = ""
    reminders: bool = True
    blocks: str = ""  # the release that must not go out with it, by the word of a person


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
    Happening.FIX_MERGED: Step(_UNSETTLED, State.FIX_QUEUED, Awaited.MAINTAINER),
    Happening.FIX_LANDED: Step(frozenset(State), State.FIXED, Awaited.NOBODY),
    Happening.FIX_GONE: Step(frozenset({State.FIX_QUEUED}), State.FIX_PROPOSED, Awaited.AUTHOR),
    Happening.FIX_REVERTED: Step(frozenset({State.FIX_QUEUED, State.FIXED, State.DROPPED}), None, Awaited.AUTHOR),
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


def fold(verdict: Verdict, events: Iterable[EventData]) -> Standing:
    """Where a report stands after these events. Pure; their order of arrival does not matter.

    Reversed events are skipped, as if they had never been; a third party never makes it `responded`.
    """
    standing = _start(verdict)
    happened = standing_events(list(events))
    merged = any(event.kind in (Happening.MERGED, Happening.LANDED) for event in happened)
    for event in sorted((_where(event, merged) for event in happened), key=EventData.order):
        standing = _cured(standing, event)
        if _counts(standing, event):
            standing = _remember(_move(standing, event), event)
        standing = _closed(standing, event)
    return standing


def _closed(standing: Standing, event: EventData) -> Standing:
    """Since when it is closed, be it by this event; what is open again forgets it."""
    if standing.state in OPEN or standing.state is State.NO_ACTION:
        return replace(standing, closed_at=None) if standing.closed_at else standing
    return standing if standing.closed_at else replace(standing, closed_at=event.at)


def _cured(standing: Standing, event: EventData) -> Standing:
    """What cures versions have. Where one of several is taken back, the report stands as the first of the rest says."""
    if event.kind in (Happening.FIX_LANDED, Happening.DROPPED) and event.commit and event.tag:
        return replace(standing, cures=(*standing.cures, event))
    if event.kind is Happening.FIX_REVERTED:
        left = tuple(each for each in standing.cures if each.commit != event.remark)
        standing = replace(standing, cures=left)
        if left and standing.state in (State.FIXED, State.DROPPED):
            return _remember(_move(replace(_forget_fix(standing), state=State.FIX_QUEUED), left[0]), left[0])
    return standing


def _where(event: EventData, merged: bool) -> EventData:
    """A revert in another tree than the mainline drops a culprit that is only there; of a merged one it is a fix that
    is queued.
    """
    elsewhere = event.kind is Happening.DROPPED and event.commit and event.tree and not event.tag
    return replace(event, kind=Happening.FIX_QUEUED, tag=event.remark) if elsewhere and merged else event


# What moves no state tells nothing beside it either: a candidate posted after the fix has landed, the failure of
# another candidate. These do all the same.
_ONLY_WITH_A_STEP = frozenset(STEPS) - {
    Happening.RESPONDED,
    Happening.WORKING,
    Happening.ASKED,
    Happening.ANSWERED,
    Happening.DISPUTED,
    Happening.FIX_LANDED,
    Happening.FIX_GONE,
}


def _names_a_fix(event: EventData) -> bool:
    """Whether the event tells which fix, or a person said so."""
    return bool(event.title or event.commit or event.result or event.said_by or event.remark)


_ABOUT_A_CANDIDATE = frozenset({Happening.FIX_CONFIRMED, Happening.FIX_FAILED})


def _counts(standing: Standing, event: EventData) -> bool:
    if event.kind is Happening.FIX_WITHOUT_EFFECT and standing.fix and standing.fix.commit not in ("", event.commit):
        return False  # another fix was measured than the one that stands
    if event.kind is Happening.FIX_REVERTED and standing.cures:
        return False  # another cure stands
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


def standing_events(events: list[EventData]) -> list[EventData]:
    """The events that no standing reversal takes back. A reversal can be reversed in its turn."""
    reversers: dict[str, list[EventData]] = {}
    for event in events:
        if event.reverses:
            reversers.setdefault(event.reverses, []).append(event)

    known: dict[str, bool] = {}

    def stands(event: EventData, above: frozenset[str]) -> bool:
        if event.key in above:  # a circle of reversals is cut where it closes
            return False
        if event.key not in known:
            known[event.key] = not any(stands(r, above | {event.key}) for r in reversers.get(event.key, ()))
        return known[event.key]

    # From the newest down, a chain of undo and redo is resolved without deep recursion.
    for event in sorted((e for e in events if e.reverses), key=EventData.order, reverse=True):
        stands(event, frozenset())
    return [event for event in events if stands(event, frozenset())]


def _move(standing: Standing, event: EventData) -> Standing:
    asks = event.kind is Happening.TEST_ASKED or (event.kind is Happening.ASKED and standing.state in _CANDIDATE)
    if asks and standing.state in _BEFORE_FIX | _CANDIDATE:
        return replace(standing, awaited=Awaited.REPORTER)
    step = STEPS.get(event.kind)
    if _is_back(standing, event):
        return replace(standing, state=_without_outcome(standing), awaited=Awaited.AUTHOR, because=event.key)
    if event.kind is Happening.FIX_GONE and (standing.fix_merged or _other_trees(standing, event)):
        return standing  # it is still on its way elsewhere
    if _hands_back(standing, event):
        standing = replace(standing, awaited=Awaited.AUTHOR)
    if step is None or standing.state not in step.within:
        return standing
    if event.kind is Happening.RESPONDED and event.by is Role.THIRD_PARTY:
        return standing
    target = step.to or _without_outcome(standing)
    awaits = Awaited.NOBODY if target is State.NO_ACTION else step.awaits
    return replace(standing, state=target, awaited=awaits, because=event.key)


def _is_back(standing: Standing, event: EventData) -> bool:
    """Whether a culprit that was dropped is not: it was merged all the same, or the revert in its tree is gone."""
    if standing.state is not State.DROPPED or standing.cures:
        return False
    merged = event.kind in (Happening.MERGED, Happening.LANDED)
    return merged or (event.kind is Happening.FIX_GONE and event.tree == standing.closed_in)


def _hands_back(standing: Standing, event: EventData) -> bool:
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


_OF_LANDINGS = frozenset({Happening.IN_NEXT, Happening.GONE, Happening.MERGED, Happening.LANDED})
_OF_FIXES = frozenset(
    {
        Happening.FIX_PROPOSED,
        Happening.FIX_CONFIRMED,
        Happening.FIX_QUEUED,
        Happening.FIX_MERGED,
        Happening.FIX_LANDED,
    }
)
_FORGETS_FIX = frozenset(
    {
        Happening.FIX_FAILED,
        Happening.FIX_WITHDRAWN,
        Happening.FIX_WITHOUT_EFFECT,
        Happening.FIX_REVERTED,
        Happening.STILL_THERE,
        Happening.REOPENED,
        Happening.UNDUPLICATED,
    }
)


def _remember(standing: Standing, event: EventData) -> Standing:
    """What an event adds beside the state."""
    if event.kind in _ANSWERS and event.by in (Role.AUTHOR, Role.MAINTAINER) and standing.responded_at is None:
        standing = replace(standing, responded_at=event.at)
    if event.kind in _OF_LANDINGS:
        return _remember_landing(standing, event)
    if event.kind in _OF_FIXES:
        return _remember_fix(standing, event)
    if event.kind in _FORGETS_FIX:
        return replace(_forget_fix(standing), fix_reverted_in=event.tag if event.kind is Happening.FIX_REVERTED else "")
    match event.kind:
        case Happening.REPORTED:
            return replace(standing, reported_at=standing.reported_at or event.at)
        case Happening.FIX_GONE:
            left = _other_trees(standing, event)
            gone = "" if left or standing.fix_merged else event.tree
            closed_in = "" if standing.closed_in == event.tree else standing.closed_in
            return replace(standing, fix_trees=left, fix_gone=gone, closed_in=closed_in)
        case Happening.DROPPED | Happening.DISAPPEARED:
            where = event.tag or (event.tree if event.commit else "")
            fix = Fix(event.title, "", event.commit) if where and event.commit else standing.fix
            return replace(standing, closed_in=where, dropped_by_word=not event.commit, fix=fix)
        case Happening.DUPLICATE:
            return replace(standing, duplicate_of=event.remark)
    return _remember_word(standing, event)


def _remember_word(standing: Standing, event: EventData) -> Standing:
    """What somebody wants to be written beside the report."""
    match event.kind:
        case Happening.NOTED:
            return replace(standing, remark=event.remark)
        case Happening.RETITLED:
            return replace(standing, title=event.title)
        case Happening.ASSIGNED:
            return replace(standing, assignee=event.remark)
        case Happening.REMINDERS_OFF:
            return replace(standing, reminders=False)
        case Happening.BLOCKS:
            return replace(standing, blocks=event.tag)
        case Happening.UNBLOCKED:
            return replace(standing, blocks="")
    return standing


def _remember_landing(standing: Standing, event: EventData) -> Standing:
    """Where git has the culprit."""
    if event.kind is Happening.IN_NEXT:
        return replace(standing, in_next=_since(standing.in_next, event.tag), gone="")
    if event.kind is Happening.GONE:
        return replace(standing, in_next="", gone=event.tag)
    if event.kind is Happening.MERGED:
        return replace(standing, merged=True, merged_after=event.tag)
    return replace(standing, merged=True, landing=_earlier(standing.landing, event.tag))


def _since(known: str, told: str) -> str:
    """The first of two days in linux-next; one that has a name before a mere date."""
    return known if known.startswith("next-") or (not told.startswith("next-") and known) else told


def _other_trees(standing: Standing, event: EventData) -> tuple[tuple[str, str], ...]:
    """The trees that hold the fix beside the one of this event."""
    return tuple(each for each in standing.fix_trees if each[0] != event.tree)


def _forget_fix(standing: Standing) -> Standing:
    """Without its candidate, which no late word brings back."""
    return replace(
        standing,
        fix=None,
        older_fixes=_older_fixes(standing),
        fix_landing="",
        fix_trees=(),
        fix_merged=False,
        fix_gone="",
        fix_reverted_in="",
        closed_in="",
        duplicate_of="",
        dropped_by_word=False,
    )


def _older_fixes(standing: Standing) -> frozenset[str]:
    """The candidates of before, with the one that stands, which another is about to replace."""
    return standing.older_fixes | ({standing.fix.message_id} if standing.fix and standing.fix.message_id else set())


def _remember_fix(standing: Standing, event: EventData) -> Standing:
    named = Fix(event.title, event.message_id if event.kind is Happening.FIX_PROPOSED else "", event.commit)
    fix, older = named, standing.older_fixes
    if event.kind is Happening.FIX_PROPOSED:
        older = _older_fixes(standing)
    if standing.fix and event.kind is not Happening.FIX_PROPOSED:  # the same candidate, now better known
        fix = Fix(named.title or standing.fix.title, standing.fix.message_id, named.commit or standing.fix.commit)
    landing = _earlier(standing.fix_landing, event.tag) if event.kind is Happening.FIX_LANDED else standing.fix_landing
    standing = replace(standing, fix=fix, older_fixes=older, fix_landing=landing, fix_gone="", fix_reverted_in="")
    if event.kind is Happening.FIX_MERGED:
        return replace(standing, fix_merged=True, fix_merged_after=event.tag)
    if event.kind is Happening.FIX_QUEUED:
        known = next((since for tree, since in standing.fix_trees if tree == event.tree), "")
        return replace(standing, fix_trees=(*_other_trees(standing, event), (event.tree, _since(known, event.tag))))
    return standing


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
    silent = standing.state in (State.NO_RESPONSE, State.NO_ACTION) and standing.remark
    parts = [_whereabouts(standing), "" if silent else _phrase(standing), standing.remark]
    return ", ".join(part for part in parts if part)


def _whereabouts(standing: Standing) -> str:
    """Where the culprit is: "merged at v5.6-rc6", or how far on its way."""
    if standing.landing:
        return f"merged at {standing.landing}"
    if standing.merged:
        return f"merged after {standing.merged_after}" if standing.merged_after else "merged in the mainline"
    if standing.in_next:
        return f"currently not merged, in linux-next since {standing.in_next}"
    return "currently not merged" + (f", gone from linux-next since {standing.gone}" if standing.gone else "")


def _phrase(standing: Standing) -> str:
    thing = "improvement" if standing.verdict is Verdict.IMPROVEMENT else "regression"
    closed_in = f" in {standing.closed_in}" if standing.closed_in else ""
    fixed_in = f" in {standing.fix_landing}" if standing.fix_landing else ""
    undone = f"{thing} has been fixed" if thing == "regression" else f"change behind the {thing} has been corrected"
    if standing.fix_reverted_in and standing.state in (State.NO_RESPONSE, State.RESPONDED):
        return f"but the fix has been reverted in {standing.fix_reverted_in}"
    return {
        State.NO_RESPONSE: "no response from author yet",
        State.RESPONDED: "the author has responded",
        State.WORKING: "the author is working on it",
        State.NEEDS_INFO: "more information was asked for",
        State.DISPUTED: "the report is disputed",
        State.FIX_PROPOSED: f"the fix is gone from {standing.fix_gone}" if standing.fix_gone else "a fix is proposed",
        State.FIX_CONFIRMED: "a fix is proposed and confirmed",
        State.FIX_QUEUED: _on_its_way(standing),
        State.FIXED: f"the {undone}{fixed_in}",
        State.DROPPED: f"the commit has been reverted{closed_in}" if closed_in else "the commit has been dropped",
        State.EXPECTED: f"the {thing} is expected",
        State.INVALID: "the report was withdrawn",
        State.DUPLICATE: f"a duplicate of {standing.duplicate_of or 'another report'}",
        State.DISAPPEARED: f"but the {thing} has disappeared{closed_in}",
        State.NO_ACTION: "",
    }[standing.state]


def _on_its_way(standing: Standing) -> str:
    """How near the mainline the fix is."""
    if standing.fix_merged:
        after = f" after {standing.fix_merged_after}" if standing.fix_merged_after else ""
        return f"the fix has been merged{after}"
    if since := next((since for _, since in standing.fix_trees if since), ""):
        return f"the fix is in linux-next since {since}"
    tree = next((tree for tree, _ in reversed(standing.fix_trees) if tree), "")
    return f"a fix is queued in {tree}" if tree else "a fix is queued"
