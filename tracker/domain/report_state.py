"""Where a report stands: the fold of its events, the table of steps, and the status sentence. Pure.

A report has no state of its own. Its events are applied in their order, one by one, whatever the order in which they
arrived, and everything else asks the fold. Reversed events are skipped, as if they had never happened; a reversal can
itself be reversed.

An event works in two ways. STEPS says from which states to which it moves the report, and who is awaited then; a step
without a target leads back to the state that the report would have without any outcome. `remember` keeps what is
known beside the state: landings, candidate fixes, remarks, who answered first. Most events count only if they move
the state, so a candidate posted after the fix has landed, or the failure of another candidate, changes nothing. No
late reply brings back a candidate that was superseded or failed, and a third party's words never make a report
`responded`.

A person's statement overrides an earlier statement, but not a commit; if one of several fixes or reverts is itself
reverted, the first of the others decides. The status text puts the result into the words of the v5.6 report.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tracker.domain import versions
from tracker.domain.events import CLOSED, JOB, OPEN, Awaited, EventData, EventKind, Role, State, Verdict

# --- The state ---


@dataclass(frozen=True, slots=True)
class Fix:
    """A candidate fix or a fix: known by the mail that carried it, its title, its commit, or all of them."""

    title: str = ""
    message_id: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class ReportState:
    """The folded state of a report. `decided_by`: the key of the event that decided it (empty: none yet)."""

    verdict: Verdict
    state: State
    decided_by: str = ""
    reported_at: datetime | None = None
    responded_at: datetime | None = None
    merged: bool = False  # the culprit is in the mainline, whether or not its first version is known
    landing: str = ""  # the first mainline version with the culprit
    merged_after: str = ""  # the last version without it, while no version has it
    in_next: str = ""  # since when the culprit is in linux-next: a day's tag, or a date
    gone: str = ""  # since when it is no longer there, though the mainline never had it
    fix: Fix | None = None
    older_fixes: frozenset[str] = frozenset()  # Message-IDs of superseded candidate fixes
    fix_landing: str = ""
    fix_measured: bool = False  # a result showed that the fix helps
    fix_trees: tuple[tuple[str, str], ...] = ()  # trees that have the fix; for linux-next, since when
    fix_merged: bool = False  # the fix is in the mainline
    fix_merged_after: str = ""  # the last version without it
    fix_gone: str = ""  # the last tree that dropped it
    cures: tuple[EventData, ...] = ()  # the fixes and reverts in a version, not themselves reverted
    fix_reverted_in: str = ""  # the version that reverted the fix
    dropped_by_person: bool = False  # a person said so, not a commit
    closed_in: str = ""  # the version in which it was dropped or disappeared
    closed_at: datetime | None = None  # when it was closed, if an event closed it
    duplicate_of: str = ""
    awaited: Awaited = Awaited.NOBODY
    awaited_since: datetime | None = None  # the event that last put it into somebody's hands
    owes_test: bool = False  # somebody asked the lab for a test, and talk does not answer that
    remark: str = ""
    title: str = ""
    assignee: str = ""
    tags: str = ""  # separated by blanks, in order
    successor: str = ""  # the report in which it goes on, by its culprit's first digits
    reminders: bool = True
    blocks: str = ""  # the release that it blocks, as a person said
    bisected: bool = True  # whether the culprit is known
    span: str = ""  # where it lies while it is not: "5.15 good, 5.16 bad", or the range that a person gave
    corrected: str = ""  # the culprit that a person gave it: a sha or a range
    by: Role = Role.MACHINE  # who has responded; of a person's report, who is working on it, confirmed the fix, …
    # Of a person's report only
    reporter: str = ""  # who reported it; "" if a robot did
    said: str = ""  # the question that it waits for, or who holds that it is intended
    no_help: str = ""  # the last candidate that did not help, and whom


# --- The table of steps ---


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the fold: the states in which an event moves a report, the new state, and who is awaited then.

    `to` None leads back to the state that the report would have without any outcome.
    """

    within: frozenset[State]
    to: State | None
    awaits: Awaited


TALK = frozenset({State.NO_RESPONSE, State.RESPONDED, State.NEEDS_INFO, State.DISPUTED})
CANDIDATE = frozenset({State.FIX_PROPOSED, State.FIX_CONFIRMED})
BEFORE_FIX = TALK | {State.WORKING}
# An improvement needs no action unless someone acts on it.
UNSETTLED = OPEN | {State.NO_ACTION}

STEPS: dict[EventKind, Step] = {
    EventKind.RESPONDED: Step(frozenset({State.NO_RESPONSE}), State.RESPONDED, Awaited.AUTHOR),
    EventKind.WORKING: Step(BEFORE_FIX, State.WORKING, Awaited.AUTHOR),
    EventKind.ASKED: Step(BEFORE_FIX, State.NEEDS_INFO, Awaited.REPORTER),
    EventKind.ANSWERED: Step(frozenset({State.NEEDS_INFO}), State.RESPONDED, Awaited.AUTHOR),
    EventKind.DISPUTED: Step(BEFORE_FIX, State.DISPUTED, Awaited.REPORTER),
    # A candidate fix waits for the lab to measure it; a confirmed one waits for its author to post it.
    EventKind.FIX_PROPOSED: Step(BEFORE_FIX | CANDIDATE | {State.NO_ACTION}, State.FIX_PROPOSED, Awaited.REPORTER),
    # A reporter who was asked to test something, and says that it does not help, has answered.
    EventKind.FIX_FAILED: Step(CANDIDATE | {State.NEEDS_INFO}, None, Awaited.AUTHOR),
    EventKind.FIX_CONFIRMED: Step(BEFORE_FIX | CANDIDATE | {State.NO_ACTION}, State.FIX_CONFIRMED, Awaited.AUTHOR),
    EventKind.FIX_QUEUED: Step(UNSETTLED, State.FIX_QUEUED, Awaited.MAINTAINER),
    EventKind.FIX_MERGED: Step(UNSETTLED, State.FIX_QUEUED, Awaited.NOBODY),  # but the next version
    EventKind.FIX_LANDED: Step(frozenset(State), State.FIXED, Awaited.NOBODY),
    EventKind.FIX_GONE: Step(frozenset({State.FIX_QUEUED}), State.FIX_PROPOSED, Awaited.AUTHOR),
    EventKind.FIX_REVERTED: Step(frozenset({State.FIX_QUEUED, State.FIXED, State.DROPPED}), None, Awaited.AUTHOR),
    EventKind.FIX_WITHDRAWN: Step(CANDIDATE | {State.FIX_QUEUED, State.FIXED}, None, Awaited.AUTHOR),
    # Measured, not said: it counts after the landing, too.
    EventKind.FIX_WITHOUT_EFFECT: Step(CANDIDATE | {State.FIX_QUEUED, State.FIXED}, None, Awaited.AUTHOR),
    EventKind.STILL_THERE: Step(frozenset({State.DISAPPEARED}), None, Awaited.AUTHOR),
    EventKind.DROPPED: Step(UNSETTLED, State.DROPPED, Awaited.NOBODY),
    EventKind.EXPECTED: Step(UNSETTLED | {State.DROPPED}, State.EXPECTED, Awaited.NOBODY),
    EventKind.INVALID: Step(UNSETTLED | {State.EXPECTED}, State.INVALID, Awaited.NOBODY),
    EventKind.DUPLICATE: Step(UNSETTLED, State.DUPLICATE, Awaited.NOBODY),
    EventKind.UNDUPLICATED: Step(frozenset({State.DUPLICATE}), None, Awaited.AUTHOR),
    EventKind.DISAPPEARED: Step(UNSETTLED, State.DISAPPEARED, Awaited.NOBODY),
    EventKind.REOPENED: Step(CLOSED - {State.NO_ACTION}, None, Awaited.AUTHOR),
}


# --- What the fold remembers ---

_ANSWERS = {
    EventKind.RESPONDED, EventKind.WORKING, EventKind.ASKED, EventKind.DISPUTED, EventKind.FIX_PROPOSED,
    EventKind.EXPECTED, EventKind.INVALID, EventKind.DUPLICATE,
}  # fmt: skip
_OF_FIXES = {
    EventKind.FIX_PROPOSED, EventKind.FIX_CONFIRMED, EventKind.FIX_QUEUED, EventKind.FIX_MERGED,
    EventKind.FIX_LANDED,
}  # fmt: skip
_FORGETS_FIX = {
    EventKind.FIX_FAILED, EventKind.FIX_WITHDRAWN, EventKind.FIX_WITHOUT_EFFECT, EventKind.FIX_REVERTED,
    EventKind.STILL_THERE, EventKind.REOPENED, EventKind.UNDUPLICATED,
}  # fmt: skip


def remember(state: ReportState, event: EventData) -> ReportState:
    """Apply what an event records besides the state."""
    if _is_answer(event) and state.responded_at is None:
        state = replace(state, responded_at=event.occurred_at)
    state = _remember_words(state, event)
    if event.kind in _OF_FIXES:
        return _remember_fix(state, event)
    if event.kind in _FORGETS_FIX:
        return replace(forget_fix(state), fix_reverted_in=event.tag if event.kind is EventKind.FIX_REVERTED else "")
    match event.kind:
        case EventKind.REPORTED | EventKind.BISECTED | EventKind.CORRECTED:
            return _remember_report(state, event)
        case EventKind.IN_NEXT:
            return replace(state, in_next=_since(state.in_next, event.tag), gone="")
        case EventKind.GONE:
            return replace(state, in_next="", gone=event.tag)
        case EventKind.MERGED:
            return replace(state, merged=True, merged_after=event.tag)
        case EventKind.LANDED:
            return replace(state, merged=True, landing=_earlier(state.landing, event.tag))
        case EventKind.FIX_GONE:
            left = other_trees(state, event)
            gone = "" if left or state.fix_merged else event.tree
            closed_in = "" if state.closed_in == event.tree else state.closed_in
            return replace(state, fix_trees=left, fix_gone=gone, closed_in=closed_in)
        case EventKind.DROPPED | EventKind.DISAPPEARED:
            where = event.tag or (event.tree if event.commit else "")
            fix = Fix(event.title, "", event.commit) if where and event.commit else state.fix
            return replace(state, closed_in=where, dropped_by_person=not event.commit, fix=fix)
        case EventKind.DUPLICATE:
            return replace(state, duplicate_of=event.remark)
    return _remember_triage(state, event)


def _is_answer(event: EventData) -> bool:
    """Whether the author or a maintainer says something about the report."""
    return event.kind in _ANSWERS and event.role in (Role.AUTHOR, Role.MAINTAINER)


def _remember_report(state: ReportState, event: EventData) -> ReportState:
    """Apply what says which regression it is: the first report, a bisection, a correction. A person's event has their
    name as its remark and, while nobody has bisected it, the versions between which it lies as its title. A correction
    names the culprit, or has a range as its title.
    """
    if event.kind is EventKind.CORRECTED:
        named = event.commit or event.title
        return replace(state, bisected=bool(event.commit), span=event.title, corrected=named)
    if event.kind is EventKind.BISECTED or state.reported_at is not None:
        return replace(state, bisected=state.bisected or event.kind is EventKind.BISECTED)
    span = "" if event.title == NOT_BISECTED else event.title
    bisected = not (event.remark and event.title)
    now_known = state.state is State.NO_RESPONSE and not state.owes_test
    awaited = Awaited.AUTHOR if now_known else state.awaited
    return replace(
        state, reported_at=event.occurred_at, reporter=event.remark, span=span, bisected=bisected, awaited=awaited
    )


_SPEAKS = {
    EventKind.WORKING, EventKind.FIX_CONFIRMED, EventKind.INVALID, EventKind.ASKED, EventKind.EXPECTED,
    EventKind.DISPUTED, EventKind.FIX_FAILED,
}  # fmt: skip


def _remember_words(state: ReportState, event: EventData) -> ReportState:
    """Apply what the sentence needs: who has responded; of a person's report also who spoke, what was asked, what did
    not help whom.
    """
    if not state.reporter:
        # The author's words stand, and a maintainer's who works on it: thanks from the other say less.
        speaks_for_it = state.by is Role.AUTHOR or (state.by is Role.MAINTAINER and state.state is State.WORKING)
        takes_over = event.kind is EventKind.WORKING or not speaks_for_it
        return replace(state, by=event.role) if _is_answer(event) and takes_over else state
    if event.kind not in _SPEAKS or event.key != state.decided_by:
        return state  # what decided nothing changes no word of the sentence
    state = replace(state, by=event.role, said=event.remark)
    if event.kind is EventKind.FIX_FAILED and state.fix:
        name = f'"{state.fix.title}"' if state.fix.title else "the proposed fix"
        return replace(state, no_help=f"{name} did not help {_whom(state)}")
    return replace(state, no_help="") if event.kind is EventKind.FIX_CONFIRMED else state


def _whom(state: ReportState) -> str:
    if state.by is Role.REPORTER:
        return state.reporter
    return "another user" if state.by is Role.THIRD_PARTY else "a developer"


def _remember_triage(state: ReportState, event: EventData) -> ReportState:
    match event.kind:
        case EventKind.NOTED:
            return replace(state, remark=event.remark)
        case EventKind.RETITLED:
            return replace(state, title=event.title)
        case EventKind.ASSIGNED:
            return replace(state, assignee=event.remark)
        case EventKind.TAGGED:
            return replace(state, tags=event.remark)
        case EventKind.SUCCEEDED:
            return replace(state, successor=event.remark)
        case EventKind.REMINDERS_OFF:
            return replace(state, reminders=False)
        case EventKind.BLOCKS:
            return replace(state, blocks=event.tag)
        case EventKind.UNBLOCKED:
            return replace(state, blocks="")
    return state


def _since(day: str, tag: str) -> str:
    """Return the first of two days in linux-next; a tag (next-…) is preferred to a bare date."""
    return day if day.startswith("next-") or (not tag.startswith("next-") and day) else tag


def other_trees(state: ReportState, event: EventData) -> tuple[tuple[str, str], ...]:
    """Return the trees that have the fix, other than the one of this event."""
    return tuple(pair for pair in state.fix_trees if pair[0] != event.tree)


def forget_fix(state: ReportState) -> ReportState:
    """Drop the candidate fix; no late reply brings it back."""
    return replace(
        state,
        fix=None,
        older_fixes=_older_fixes(state),
        fix_landing="",
        fix_measured=False,
        fix_trees=(),
        fix_merged=False,
        fix_gone="",
        fix_reverted_in="",
        closed_in="",
        duplicate_of="",
        dropped_by_person=False,
    )


def _older_fixes(state: ReportState) -> frozenset[str]:
    """Return the superseded candidates, including the current one, which is about to be replaced."""
    return state.older_fixes | ({state.fix.message_id} if state.fix and state.fix.message_id else set())


def _remember_fix(state: ReportState, event: EventData) -> ReportState:
    """Apply what becomes of a fix: a new candidate, or the same one, now better known."""
    if event.kind is EventKind.FIX_PROPOSED:
        fix = Fix(event.title, event.message_id, event.commit)
        older = _older_fixes(state) - {event.message_id}  # a mail may propose it twice: by a command and by its patch
        return replace(state, fix=fix, older_fixes=older, fix_measured=False, fix_gone="", fix_reverted_in="")
    last = state.fix or Fix()
    fix = Fix(event.title or last.title, last.message_id, event.commit or last.commit)
    better = replace(state, fix=fix, fix_gone="", fix_reverted_in="")
    match event.kind:
        case EventKind.FIX_CONFIRMED if _names_its_patch(event):
            same = last if last.message_id in ("", event.in_reply_to) else Fix()
            fix = Fix(event.title or same.title, event.in_reply_to, event.commit or same.commit)
            older = _older_fixes(state) - {event.in_reply_to}
            return replace(better, fix=fix, older_fixes=older, fix_measured=True)
        case EventKind.FIX_CONFIRMED:
            return replace(better, fix_measured=bool(event.result))
        case EventKind.FIX_LANDED:
            return replace(better, fix_landing=_earlier(state.fix_landing, event.tag))
        case EventKind.FIX_MERGED:
            return replace(better, fix_merged=True, fix_merged_after=event.tag)
    # Queued in a tree
    day = next((since for tree, since in state.fix_trees if tree == event.tree), "")
    return replace(better, fix_trees=(*other_trees(state, event), (event.tree, _since(day, event.tag))))


def _names_its_patch(event: EventData) -> bool:
    """Whether the end of a job names the candidate that was tested: not of a branch, nor of a private patch."""
    return event.result.startswith(JOB) and bool(event.title and event.in_reply_to)


def _earlier(landing: str, tag: str) -> str:
    """Return the earlier of two tags; a tag that is not a kernel version counts as later than any version."""
    if not landing or not tag:
        return landing or tag
    old, new = versions.parse(landing), versions.parse(tag)
    if old is None or new is None:
        return tag if old is None and new is not None else landing
    return tag if new < old else landing


# --- The fold ---

# Events that change no state are ignored altogether: a candidate posted after the fix has landed, the failure of
# another candidate. The ones excluded here count all the same.
_ONLY_WITH_A_STEP = frozenset(STEPS) - {
    EventKind.RESPONDED, EventKind.WORKING, EventKind.ASKED, EventKind.ANSWERED, EventKind.DISPUTED,
    EventKind.FIX_LANDED, EventKind.FIX_GONE,
}  # fmt: skip
_ABOUT_A_CANDIDATE = frozenset({EventKind.FIX_CONFIRMED, EventKind.FIX_FAILED, EventKind.FIX_WITHOUT_EFFECT})


def reads_like(one: ReportState, other: ReportState) -> bool:
    """Whether two states look the same to people: dates, the events that decided, and superseded fixes don't count."""

    def read(state: ReportState) -> ReportState:
        undated = replace(state, awaited_since=None, responded_at=None, closed_at=None)
        return replace(undated, decided_by="", cures=(), older_fixes=frozenset())

    return read(one) == read(other)


def fold(verdict: Verdict, events: Iterable[EventData]) -> ReportState:
    """Return the state of a report after these events. Their order of arrival does not matter.

    Reversed events are skipped, as if they had never happened; a third party never makes it `responded`. Until it is
    mailed, it waits for the lab: its author can't answer.
    """
    report_state = ReportState(verdict, State.NO_RESPONSE, awaited=Awaited.REPORTER)
    if verdict is Verdict.IMPROVEMENT:
        report_state = ReportState(verdict, State.NO_ACTION)
    effective = effective_events(list(events))
    merged = any(event.kind in (EventKind.MERGED, EventKind.LANDED) for event in effective)
    for event in sorted((_reclassified(event, merged) for event in effective), key=EventData.order):
        before = report_state
        report_state = _cured(report_state, event)
        if _counts(report_state, event):
            report_state = remember(_move(report_state, event), event)
        elif _measures_the_fix(report_state, event):
            report_state = replace(report_state, fix_measured=True)
        report_state = _waiting(before, _closed(report_state, event), event)
    return report_state


def _waiting(before: ReportState, report_state: ReportState, event: EventData) -> ReportState:
    """Set since when somebody is awaited: when the report was mailed, and anew with each step or change of hands."""
    if report_state.owes_test and report_state.awaited is not Awaited.REPORTER:
        report_state = replace(report_state, owes_test=False)
    if report_state.awaited is Awaited.NOBODY:
        return replace(report_state, awaited_since=None) if report_state.awaited_since else report_state
    moved = (report_state.state, report_state.awaited) != (before.state, before.awaited)
    began = event.kind is EventKind.REPORTED and report_state.awaited_since is None
    return replace(report_state, awaited_since=event.occurred_at) if moved or began else report_state


def _closed(report_state: ReportState, event: EventData) -> ReportState:
    """Set `closed_at` when an event closes the report; clear it when the report is open again."""
    if report_state.state in OPEN or report_state.state is State.NO_ACTION:
        return replace(report_state, closed_at=None) if report_state.closed_at else report_state
    return report_state if report_state.closed_at else replace(report_state, closed_at=event.occurred_at)


def _cured(report_state: ReportState, event: EventData) -> ReportState:
    """Track fixes and reverts in versions. If one of several is reverted, the first of the others decides."""
    if event.kind in (EventKind.FIX_LANDED, EventKind.DROPPED) and event.commit and event.tag:
        return replace(report_state, cures=(*report_state.cures, event))
    if event.kind is EventKind.FIX_REVERTED:
        left = tuple(cure for cure in report_state.cures if cure.commit != event.remark)
        report_state = replace(report_state, cures=left)
        if left and report_state.state in (State.FIXED, State.DROPPED):
            return remember(_move(replace(forget_fix(report_state), state=State.FIX_QUEUED), left[0]), left[0])
    return report_state


def _reclassified(event: EventData, merged: bool) -> EventData:
    """A revert outside the mainline drops a culprit that is only there; for a merged culprit, it is a queued fix."""
    elsewhere = event.kind is EventKind.DROPPED and event.commit and event.tree and not event.tag
    return replace(event, kind=EventKind.FIX_QUEUED, tag=event.remark) if elsewhere and merged else event


def _counts(report_state: ReportState, event: EventData) -> bool:
    fix = report_state.fix
    if event.kind is EventKind.FIX_WITHOUT_EFFECT and fix and fix.commit not in ("", event.commit):
        return False  # another fix was measured than the current one
    if _names_its_patch(event):
        if event.kind is EventKind.FIX_CONFIRMED and report_state.state in STEPS[event.kind].within:
            return True  # of several candidates, the one that the lab measured to help
        other = fix is not None and fix.message_id not in ("", event.in_reply_to)
        if event.kind in _ABOUT_A_CANDIDATE and other and report_state.fix_measured:
            return False  # another candidate does help
    if event.kind is EventKind.FIX_REVERTED and report_state.cures:
        return False  # another fix or revert is still in place
    if event.kind is EventKind.FIX_CONFIRMED and not (
        fix or event.title or event.commit or event.result or event.actor or event.remark
    ):
        return False  # it says of no fix that it is about it, and no person recorded it
    if event.kind in _ABOUT_A_CANDIDATE and event.in_reply_to in report_state.older_fixes:
        return False  # it is about a superseded candidate
    if event.kind is EventKind.DROPPED and event.commit and report_state.dropped_by_person:
        return True  # now a commit says so, too
    if event.kind is EventKind.EXPECTED and report_state.state is State.DROPPED and not report_state.dropped_by_person:
        return False  # a statement overrides an earlier statement, but not a commit
    return event.kind not in _ONLY_WITH_A_STEP or report_state.state in STEPS[event.kind].within


def _measures_the_fix(report_state: ReportState, event: EventData) -> bool:
    """Whether a result shows that a fix that is already queued or landed helps."""
    fix = report_state.fix
    if event.kind is not EventKind.FIX_CONFIRMED or not event.result or fix is None:
        return False
    return report_state.state in (State.FIX_QUEUED, State.FIXED) and fix.commit in ("", event.commit)


def effective_events(events: list[EventData]) -> list[EventData]:
    """Return the events that no effective reversal undoes. A reversal can itself be reversed."""
    reversers: dict[str, list[EventData]] = {}
    for event in events:
        if event.reverses:
            reversers.setdefault(event.reverses, []).append(event)

    standing: dict[str, bool] = {}

    def stands(event: EventData, above: frozenset[str]) -> bool:
        if event.key in above:  # break a cycle of reversals
            return False
        if event.key not in standing:
            standing[event.key] = not any(stands(r, above | {event.key}) for r in reversers.get(event.key, ()))
        return standing[event.key]

    # Newest first, so that a chain of undo and redo is resolved without deep recursion.
    for event in sorted((e for e in events if e.reverses), key=EventData.order, reverse=True):
        stands(event, frozenset())
    return [event for event in events if stands(event, frozenset())]


def _move(report_state: ReportState, event: EventData) -> ReportState:
    asks = event.kind is EventKind.TEST_ASKED or (event.kind is EventKind.ASKED and report_state.state in CANDIDATE)
    by_lab = event.kind is EventKind.ASKED and event.role is Role.REPORTER  # who asks the developers
    if asks and report_state.state in BEFORE_FIX | CANDIDATE:
        owes_test = report_state.owes_test or event.kind is EventKind.TEST_ASKED
        return replace(report_state, awaited=Awaited.AUTHOR if by_lab else Awaited.REPORTER, owes_test=owes_test)
    if _answers_the_lab(report_state, event):
        return replace(report_state, state=State.RESPONDED, decided_by=event.key)
    if report_state.state is State.DROPPED and not report_state.cures:
        # The culprit is back if it was merged after all, or if the revert in its tree is gone.
        is_merged = event.kind in (EventKind.MERGED, EventKind.LANDED)
        if is_merged or (event.kind is EventKind.FIX_GONE and event.tree == report_state.closed_in):
            state = _without_outcome(report_state)
            return replace(report_state, state=state, awaited=Awaited.AUTHOR, decided_by=event.key)
    if event.kind is EventKind.FIX_GONE and (report_state.fix_merged or other_trees(report_state, event)):
        return report_state  # another tree still has it
    if _hands_back(report_state, event):
        report_state = replace(report_state, awaited=Awaited.AUTHOR)
    step = STEPS.get(event.kind)
    if step is None or report_state.state not in step.within:
        return report_state
    if event.kind is EventKind.RESPONDED and event.role is Role.THIRD_PARTY:
        return report_state
    target = step.to or _without_outcome(report_state)
    awaits = Awaited.NOBODY if target is State.NO_ACTION else Awaited.AUTHOR if by_lab else step.awaits
    if event.kind is EventKind.WORKING and event.role is Role.REPORTER:
        awaits = Awaited.REPORTER  # the person who reported it makes the fix
    if event.kind is EventKind.RESPONDED and report_state.owes_test:
        awaits = Awaited.REPORTER
    return replace(report_state, state=target, awaited=awaits, decided_by=event.key)


def _answers_the_lab(report_state: ReportState, event: EventData) -> bool:
    """Whether a developer answers what the lab asked."""
    asked = report_state.state is State.NEEDS_INFO and report_state.awaited is Awaited.AUTHOR
    return asked and event.kind is EventKind.RESPONDED and event.role in (Role.AUTHOR, Role.MAINTAINER)


def _hands_back(report_state: ReportState, event: EventData) -> bool:
    """Whether an event makes the author the one awaited without changing the state: discussion among developers, and
    the lab's answers. A question to the reporter still awaits the reporter.
    """
    if event.kind is EventKind.RESPONDED:
        waits = (BEFORE_FIX | CANDIDATE) - {State.NEEDS_INFO}
        return report_state.state in waits and event.role is not Role.THIRD_PARTY and not report_state.owes_test
    answers = event.kind in (EventKind.ANSWERED, EventKind.FIX_FAILED)
    return answers and report_state.state in BEFORE_FIX | CANDIDATE


def _without_outcome(report_state: ReportState) -> State:
    if report_state.verdict is Verdict.IMPROVEMENT:
        return State.NO_ACTION
    return State.RESPONDED if report_state.responded_at else State.NO_RESPONSE


# --- The status text ---


# A report that is newer than the last walk of the mainline by more than this: git says nothing of its culprit.
STALE_WALK = timedelta(days=7)
NOT_KNOWN = "not known whether it is merged: tree last walked"
NOT_BISECTED = "not bisected"  # the title of the event that a person reported it, if no version is known, either


def status_text(
    report_state: ReportState, *, mainline_followed: bool, as_of: datetime | None = None, now: datetime | None = None
) -> str:
    """Return the status text, as in the v5.6 report: "merged at v5.6-rc6, the regression has been fixed in v5.6-rc6".

    Where it was merged, what became of it, and the remark. A remark replaces a complaint about silence, which an
    improvement's status text never has. "currently not merged" is only said if a mainline tree is followed, since
    otherwise nobody looked. If the report, or `now` for one that was not sent yet, is more than STALE_WALK newer than
    `as_of`, the last walk, the text says that it is not known.
    """
    if report_state.reporter:
        return _person_status(report_state)
    silent = report_state.state in (State.NO_RESPONSE, State.NO_ACTION) and report_state.remark
    not_merged = "currently not merged" if mainline_followed else ""
    asked = report_state.reported_at or now
    if as_of and asked and asked - as_of > STALE_WALK:
        not_merged = f"{NOT_KNOWN} {as_of:%Y-%m-%d}"
    landing = _landing_text(report_state, not_merged) if report_state.bisected else _not_bisected(report_state)
    outcome = "" if silent else _outcome_text(report_state)
    parts = [landing, outcome if landing else outcome.removeprefix("but "), report_state.remark]
    return ", ".join(part for part in parts if part) or "reported"


def _person_status(report_state: ReportState) -> str:
    """Return the status text of a person's report: where it is, what became of it for whom, the remark."""
    if report_state.bisected:
        # Who reports from a machine of theirs runs a kernel with it: only git can say in which version it came.
        where = _landing_text(report_state, "")
    else:
        where = _not_bisected(report_state)
    parts = [where, _person_outcome(report_state), report_state.remark]
    return ", ".join(part for part in parts if part)


def _not_bisected(report_state: ReportState) -> str:
    return ", ".join(part for part in (report_state.span, NOT_BISECTED) if part)


def _person_outcome(report_state: ReportState) -> str:
    name, fix = report_state.reporter, report_state.fix
    by_reporter = report_state.by is Role.REPORTER
    question = f': "{report_state.said}"' if report_state.said else ""
    candidate = f'"{fix.title}"' if fix and fix.title else "the proposed fix"
    in_version = f" in {report_state.closed_in}" if report_state.closed_in else ""
    match report_state.state:
        case State.NO_RESPONSE:
            return f"reported by {name}, unanswered"
        case State.RESPONDED:
            return f"reported by {name}, " + (report_state.no_help or "answered")
        case State.WORKING:
            return f"{name if by_reporter else 'a developer'} is working on a fix"
        case State.NEEDS_INFO:
            return f"waiting for {name if report_state.awaited is Awaited.REPORTER else 'an answer'}{question}"
        case State.DISPUTED:
            return f"disputed by {report_state.said}" if report_state.said else "disputed"
        case State.FIX_CONFIRMED:
            return f"{candidate} works for {_whom(report_state)}"
        case State.EXPECTED:
            return f"intended, says {report_state.said}" if report_state.said else "intended"
        case State.INVALID:
            why = f": {report_state.said}" if report_state.said else ""
            return f"withdrawn by {name}" if by_reporter else f"called invalid{why}"
        case State.DISAPPEARED:
            return f"gone{in_version}, cause unknown"
    return _outcome_text(report_state)


def _landing_text(report_state: ReportState, not_merged: str) -> str:
    """Return where the culprit is: "merged at v5.6-rc6", or how close to that."""
    if report_state.landing:
        return f"merged at {report_state.landing}"
    if report_state.merged:
        return f"merged after {report_state.merged_after}" if report_state.merged_after else "merged in the mainline"
    in_next = f"in linux-next since {report_state.in_next}" if report_state.in_next else ""
    gone = f"gone from linux-next since {report_state.gone}" if report_state.gone else ""
    return ", ".join(part for part in (not_merged, in_next or gone) if part)


def _outcome_text(report_state: ReportState) -> str:
    noun = "improvement" if report_state.verdict is Verdict.IMPROVEMENT else "regression"
    closed_in = f" in {report_state.closed_in}" if report_state.closed_in else ""
    fixed_in = f" in {report_state.fix_landing}" if report_state.fix_landing else ""
    fixed_text = f"{noun} has been fixed" if noun == "regression" else f"change behind the {noun} has been corrected"
    who = "a maintainer" if report_state.by is Role.MAINTAINER else "the author"
    if report_state.fix_reverted_in and report_state.state in (State.NO_RESPONSE, State.RESPONDED):
        return f"but the fix has been reverted in {report_state.fix_reverted_in}"
    return {
        State.NO_RESPONSE: "no response from author yet" if report_state.reported_at else "not reported yet",
        State.RESPONDED: f"{who} has responded",
        State.WORKING: f"{who} is working on it",
        State.NEEDS_INFO: "more information was asked for",
        State.DISPUTED: "the report is disputed",
        State.FIX_PROPOSED: f"the fix is gone from {report_state.fix_gone}"
        if report_state.fix_gone
        else "a fix is proposed",
        State.FIX_CONFIRMED: "a fix is proposed and confirmed",
        State.FIX_QUEUED: _queued_fix_text(report_state),
        State.FIXED: f"the {fixed_text}{fixed_in}{', as measured' if report_state.fix_measured else ''}",
        State.DROPPED: f"the commit has been reverted{closed_in}" if closed_in else "the commit has been dropped",
        State.EXPECTED: f"the {noun} is expected",
        State.INVALID: "the report was withdrawn",
        State.DUPLICATE: f"a duplicate of {report_state.duplicate_of or 'another report'}",
        State.DISAPPEARED: f"but the {noun} has disappeared{closed_in}",
        State.NO_ACTION: "",
    }[report_state.state]


def _queued_fix_text(report_state: ReportState) -> str:
    if report_state.fix_merged:
        after = f" after {report_state.fix_merged_after}" if report_state.fix_merged_after else ""
        return f"the fix has been merged{after}"
    if since := next((since for _, since in report_state.fix_trees if since), ""):
        return f"the fix is in linux-next since {since}"
    tree = next((tree for tree, _ in reversed(report_state.fix_trees) if tree), "")
    return f"a fix is queued in {tree}" if tree else "a fix is queued"
