"""What an event of a report says in a sentence: who did what. Pure.

A page that lists events begins each line with its person and verb: "Dana Brook posted a fix". The person is who wrote
the mail or acted on the page; a commit speaks for its tree, and a result for the lab.
"""

from collections.abc import Mapping

from tracker.domain.events import EventData, EventKind, Role, State

THE_LAB = "The lab"
MAINLINE = "Mainline"

# What each kind of event says after the name of who did it. {tag}, {title}, {remark} and {tree} are the event's.
_VERBS: Mapping[EventKind, str] = {
    EventKind.REPORTED: "reported it",
    EventKind.BISECTED: "found the culprit",
    EventKind.CORRECTED: "corrected the culprit",
    EventKind.SAME_PATCH: "has the same patch as {title}",
    EventKind.IN_NEXT: "has the commit since {tag}",
    EventKind.GONE: "no longer has the commit",
    EventKind.MERGED: "got the commit after {tag}",
    EventKind.LANDED: "got the commit in {tag}",
    EventKind.FIX_GONE: "no longer has the fix",
    EventKind.FIX_FAILED: "said that the fix fails",
    EventKind.FIX_WITHDRAWN: "withdrew the fix",
    EventKind.FIX_WITHOUT_EFFECT: "measured no effect of the fix",
    EventKind.RESPONDED: "answered",
    EventKind.WORKING: "works on it",
    EventKind.ASKED: "asked for more information",
    EventKind.ANSWERED: "gave the information",
    EventKind.DISPUTED: "doubts the result",
    EventKind.FIX_PROPOSED: "posted a fix",
    EventKind.FIX_CONFIRMED: "confirmed the fix",
    EventKind.FIX_QUEUED: "applied the fix",
    EventKind.FIX_MERGED: "got the fix after {tag}",
    EventKind.FIX_LANDED: "got the fix in {tag}",
    EventKind.STILL_THERE: "measured that it is still there",
    EventKind.DROPPED: "dropped the commit",
    EventKind.FIX_REVERTED: "reverted the fix",
    EventKind.EXPECTED: "called it expected",
    EventKind.INVALID: "withdrew the report",
    EventKind.DUPLICATE: "marked it as a duplicate of {remark}",
    EventKind.UNDUPLICATED: "said that it is not a duplicate",
    EventKind.DISAPPEARED: "measured that it is gone",
    EventKind.REOPENED: "reopened it",
    EventKind.NOTED: "noted: {remark}",
    EventKind.TAGGED: "tagged it: {remark}",
    EventKind.SUCCEEDED: "said that it goes on as {remark}",
    EventKind.RETITLED: "gave it the title {title}",
    EventKind.ASSIGNED: "assigned it to {remark}",
    EventKind.REMINDERS_OFF: "turned its reminders off",
    EventKind.BLOCKS: "said that it blocks {tag}",
    EventKind.UNBLOCKED: "said that it blocks nothing any more",
    EventKind.TEST_ASKED: "asked for a test",
    EventKind.READING_REJECTED: "rejected how a mail was read",
    EventKind.REVERSED: "undid an earlier entry",
}
# What a commit says, where it is another sentence than a person's.
_BY_COMMIT: Mapping[EventKind, str] = {
    EventKind.FIX_PROPOSED: "has a candidate fix",
    EventKind.FIX_QUEUED: "has the fix",
    EventKind.DROPPED: "reverted the commit",
    EventKind.DISAPPEARED: "no longer shows it",
}


# What a tree does, also where a person recorded it.
_IN_A_TREE = {
    EventKind.IN_NEXT, EventKind.GONE, EventKind.MERGED, EventKind.LANDED,
    EventKind.FIX_GONE, EventKind.FIX_MERGED, EventKind.FIX_LANDED,
}  # fmt: skip


_ANY_TREE = "Git"
_WITHIN = {MAINLINE: "the mainline", _ANY_TREE: "a tree"}  # a sentence


def told(event: EventData, sender: str) -> tuple[str, str]:
    """Return who did it, and what. `sender`: who wrote the mail that says so, "" for none."""
    by_commit = bool(event.commit and not event.actor and not event.message_id)
    details = {"tag": event.tag, "title": event.title, "remark": event.remark, "tree": event.tree}
    deed = what(event.kind, by_commit=by_commit, **details)
    if event.kind in _IN_A_TREE and event.actor and not event.commit:  # by hand: no commit was seen
        tree = _tree_of(event.tree, event.tag)
        return event.actor, f"recorded that {_WITHIN.get(tree, tree)} {deed}"
    return who(event.kind, event.actor or sender, event.commit, event.tree, event.tag, event.role), deed


def who(kind: str, person: str, commit: str, tree: str, tag: str, role: str) -> str:
    """Return who did it: a person, a tree for a commit, else the lab."""
    if person and kind not in _IN_A_TREE:
        return person
    if commit or kind in _IN_A_TREE:
        return _tree_of(tree, tag)
    return THE_LAB if role in (Role.REPORTER, Role.MACHINE) else "Somebody"


def _tree_of(tree: str, tag: str) -> str:
    return MAINLINE if tree in ("", "linus") and tag.startswith("v") else tree or _ANY_TREE


def what(kind: str, *, by_commit: bool = False, **details: str) -> str:
    """Return what was done, without who did it. `details`: tag, title, remark and tree of the event.

    >>> what("fix_landed", tag="v6.12-rc6"), what("fix_queued", by_commit=True)
    ('got the fix in v6.12-rc6', 'has the fix')
    """
    event_kind = EventKind(kind)
    verb = (by_commit and _BY_COMMIT.get(event_kind)) or _VERBS[event_kind]
    names = {name: " ".join(details.get(name, "").split())[:120] for name in ("tag", "title", "remark", "tree")}
    empty = next((name for name in names if f"{{{name}}}" in verb and not names[name]), "")
    if empty:
        verb = verb.partition(f"{{{empty}}}")[0].rstrip(": ").removesuffix(" in").removesuffix(" after")
        verb = verb.removesuffix(" since").removesuffix(" of").removesuffix(" to")
    return verb.format(**names)


# The labels of states, a closed set; the sentence beside a label is the status text.
LABELS: Mapping[State, str] = {
    State.NO_RESPONSE: "No answer yet",
    State.RESPONDED: "Answered",
    State.WORKING: "Author works on it",
    State.NEEDS_INFO: "Needs information",
    State.DISPUTED: "Disputed",
    State.FIX_PROPOSED: "Fix proposed",
    State.FIX_CONFIRMED: "Fix confirmed",
    State.FIX_QUEUED: "Fix queued",
    State.FIXED: "Fixed",
    State.DROPPED: "Reverted",
    State.EXPECTED: "Expected",
    State.INVALID: "Withdrawn",
    State.DUPLICATE: "Duplicate",
    State.DISAPPEARED: "Gone",
    State.NO_ACTION: "Improvement",
}
GOOD = {
    State.FIX_CONFIRMED, State.FIX_QUEUED, State.FIXED, State.DISAPPEARED, State.DROPPED, State.NO_ACTION,
}  # fmt: skip
BAD = {State.NO_RESPONSE}


def tone(state: str) -> str:
    """Return how a state's label is set: good, bad, or wait for what needs somebody."""
    return "good" if state in GOOD else "bad" if state in BAD else "wait"


_AWAITED = {"author": "the author", "reporter": "the lab", "maintainer": "a maintainer"}


def awaited(role: str, author: str, reporter: str = "", *, is_bisected: bool = True) -> str:
    """Return whom a report waits for: its author, or the person who reported it, by name if known; "" for nobody."""
    if role == "author" and not is_bisected:
        return "a developer"
    name = {"author": author, "reporter": reporter}.get(role, "")
    return name or _AWAITED.get(role, "")


def change(value: float | None, verdict: str) -> str:
    r"""Return a change with its arrow for worse or better: "▼ −12.8%", with a true minus.

    >>> change(-12.8, "regression"), change(32.5, "regression"), change(None, "unknown")
    ('▼\xa0−12.8%', '▼\xa0+32.5%', '◆ –')
    """
    arrow = {"regression": "▼", "improvement": "▲"}.get(verdict, "◆")
    if value is None:
        return f"{arrow} –"
    return f"{arrow}\u00a0{'−' if value < 0 else '+'}{abs(value):,.{1 if abs(value) < 1000 else 0}f}%"


def bounds(low: float | None, high: float | None) -> str:
    """Return an interval of changes, "−13.2% to −12.4%"; "" where there is none."""
    if low is None or high is None:
        return ""
    return " to ".join(f"{'−' if end < 0 else '+'}{abs(end):.1f}%" for end in (low, high))
