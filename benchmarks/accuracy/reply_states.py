"""The states that threads end in and who is awaited after each reply, as read by models that did not see the thread.

A suggestion is accepted if its effect is right: what a release manager would make of the review queue.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from benchmarks.accuracy.labelled import SHARED
from benchmarks.accuracy.left_out_threads import Judged
from benchmarks.accuracy.replies import STATES
from bot.replies.effects import events_of
from bot.replies.rules.notation import Mode, name_of
from tracker.domain.events import EventData, EventKind, Role, Verdict
from tracker.domain.report_state import fold

_START = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ThreadEnd:
    """One thread: the state that a reader gives it, the one that we reach; who is awaited, by label and by us."""

    set: str
    key: str
    want: str
    state: str
    whole: bool
    awaited: tuple[tuple[str, str], ...]


def ends(found: Sequence[Judged]) -> list[ThreadEnd]:
    """Return how each thread ends, with the suggestions that are right accepted."""
    threads: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    for each in found:
        threads[each.reply.set, each.reply.thread].append(each)
    return [_end(name, key, replies) for (name, key), replies in threads.items()]


def _end(name: str, key: str, replies: list[Judged]) -> ThreadEnd:
    label = json.loads((SHARED / f"{name}.json").read_text())[key]
    verdict = Verdict.IMPROVEMENT if label["kind"] == "improvement" else Verdict.REGRESSION
    events = [EventData("reported", EventKind.REPORTED, _START, Role.REPORTER)]
    awaited = []
    replies.sort(key=lambda each: each.reply.reading.mail.date or _START)
    for number, each in enumerate(replies, 1):
        events += _events(each, _START + timedelta(hours=number))
        now = fold(verdict, events)
        awaited.append((each.reply.label["awaiting"] or "nobody", now.awaited.value))
    state = fold(verdict, events).state.value
    whole = name == "threads-dev" or bool(label.get("whole"))
    return ThreadEnd(name, key, label["final_status_thread_only"], STATES.get(state, state), whole, tuple(awaited))


def _events(judged: Judged, at: datetime) -> Iterator[EventData]:
    reply = judged.reply
    for effect, event in events_of(judged.recorded, reply.reading.mail, reply.context.role, at):
        accepted = effect.mode is Mode.AUTO or (effect.mode is Mode.SUGGEST and judged.is_right(name_of(effect)))
        if accepted:
            yield event
