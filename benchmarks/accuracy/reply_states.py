"""The states that threads end in, who is awaited after each reply, and which suggestions still wait at the end, as read
by models that did not see the thread.

A suggestion is accepted if its effect is right: what a release manager would make of the review queue.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.accuracy.labelled import SHARED
from benchmarks.accuracy.left_out_threads import Judged
from benchmarks.accuracy.replies import STATES
from bot.replies.effects import events_of
from bot.replies.rules.notation import Mode, name_of
from tracker.domain.events import EventData, EventKind, Role, Verdict
from tracker.domain.report_state import fold, reads_like

_START = datetime(2000, 1, 1, tzinfo=UTC)
_REPORTED = EventData("reported", EventKind.REPORTED, _START, Role.REPORTER)


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
    return [_end(name, key, replies) for (name, key), replies in _threads(found).items()]


def still_waiting(found: Sequence[Judged]) -> Iterator[bool]:
    """Yield of each suggestion that waits when its thread has ended whether it is right: the others have withdrawn
    themselves, since what is acted on leaves them nothing to change.
    """
    for (name, key), replies in _threads(found).items():
        verdict = _verdict(_label(name, key))
        events, suggested = [_REPORTED], list[tuple[EventData, bool]]()
        for number, each in enumerate(replies, 1):
            at = _START + timedelta(hours=number)
            for effect, event in events_of(each.recorded, each.reply.reading.mail, each.reply.context.role, at):
                event = replace(event, key=f"{number} {event.key}")
                if effect.mode is Mode.AUTO:
                    events.append(event)
                elif effect.mode is Mode.SUGGEST:
                    suggested.append((event, each.is_right(name_of(effect))))
        state = fold(verdict, events)
        for event, is_right in suggested:
            if not reads_like(state, fold(verdict, [*events, event])):
                yield is_right


def _threads(found: Sequence[Judged]) -> dict[tuple[str, str], list[Judged]]:
    """Return the replies by set and thread, each in order of time."""
    threads: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    for each in sorted(found, key=lambda each: each.reply.reading.mail.date or _START):
        threads[each.reply.set, each.reply.thread].append(each)
    return threads


def _label(name: str, key: str) -> Mapping[str, Any]:
    label: Mapping[str, Any] = json.loads((SHARED / f"{name}.json").read_text())[key]
    return label


def _verdict(label: Mapping[str, Any]) -> Verdict:
    return Verdict.IMPROVEMENT if label["kind"] == "improvement" else Verdict.REGRESSION


def _end(name: str, key: str, replies: list[Judged]) -> ThreadEnd:
    label = _label(name, key)
    verdict, events = _verdict(label), [_REPORTED]
    awaited = []
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
