"""The labelled real threads (../shared/data): each reply with its label, and what is known when it is read.

A quarter of threads-dev-2 and a third of threads-3-dev are put aside: nothing is learned from them, tuned on them or
looked up in them. They judge the end.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from benchmarks.accuracy.replies import LKP, SHARED
from benchmarks.accuracy.training import REAL, Labelled
from bot.archives.files import read_mbox
from bot.explain import track
from bot.mail.settings import BotSettings
from bot.replies.effects import effects_by_rules, facts_of
from bot.replies.reading import Reading, understand
from bot.replies.rules.notation import MailContext, Relation
from bot.replies.which_report import KnownReport, KnownReports
from bot.robot_reports.report import find_report

OTHER_LAB_PEOPLE = frozenset(
    {"ying.huang@intel.com", "fengwei.yin@intel.com", "aaron.lu@intel.com", "xiaolong.ye@intel.com"}
    | {"xing.zhengjun@linux.intel.com"}
)
SETS = ("threads-dev", "threads-dev-2", "threads-3-dev")
PUT_ASIDE = {"threads-dev-2": "0123", "threads-3-dev": "01234"}  # by the first digit of a thread's hash


def require() -> None:
    """End the program with what to do if the labelled threads are not there."""
    if not SHARED.is_dir():
        sys.exit(f"no labelled threads in {SHARED}: send the examples, and a maintainer runs this")


def is_put_aside(name: str, message_id: str) -> bool:
    """Whether the thread of this report, in this set, judges the end."""
    digest = hashlib.sha1(message_id.encode(), usedforsecurity=False).hexdigest()
    return digest[0] in PUT_ASIDE.get(name, "")


@dataclass(frozen=True, slots=True)
class LabelledReply:
    """One reply: the set and the report it belongs to, its label, and what it says."""

    set: str
    thread: str
    label: Mapping[str, Any]
    reading: Reading
    context: MailContext

    @property
    def acceptable(self) -> frozenset[str]:
        """The effects that one of the careful readers accepts."""
        return frozenset({self.label["status_effect"], *self.label.get("also_acceptable", ())})

    def training(self) -> Labelled:
        by_rules = list(effects_by_rules(self.reading, self.context))
        facts = facts_of(self.reading, self.context, by_rules)
        return Labelled(self.thread, facts, self.label["status_effect"], REAL)


@cache
def replies(*, put_aside: bool = False) -> tuple[LabelledReply, ...]:
    """Return the replies of both sets but those put aside, or only those that are put aside."""
    return tuple(each for name in SETS for each in _replies_of(name, put_aside))


def _replies_of(name: str, put_aside: bool) -> Iterator[LabelledReply]:
    threads = json.loads((SHARED / f"{name}.json").read_text())
    labels = {
        label["msgid"]: (key, thread, label)
        for key, thread in threads.items()
        if put_aside is is_put_aside(name, key)
        for label in thread["replies"]
    }
    settings = replace(LKP, operators=LKP.operators | OTHER_LAB_PEOPLE)
    readings = [understand(mail.raw, settings) for mail in read_mbox(SHARED / f"{name}.mbox")]
    known = _known_reports(name, readings, settings)
    for reading in readings:
        relations = known.relations(reading)
        report = next(iter(relations), "")
        if report:
            known.file(reading.mail.message_id, report)
        if reading.mail.message_id in labels:
            key, thread, label = labels[reading.mail.message_id]
            context = (
                known.context(reading, report, relations[report], settings)
                if report
                else MailContext(Relation.THREAD, improvement=thread["kind"] == "improvement")
            )
            yield LabelledReply(name, key, label, reading, context)


def _known_reports(name: str, readings: list[Reading], settings: BotSettings) -> KnownReports:
    known = KnownReports()
    file = SHARED / f"{name}.known.json"
    for each in json.loads(file.read_text()) if file.exists() else ():
        known.add(KnownReport(each["id"], each["culprit"], each["title"], (each["message_id"],)))
    for reading in readings:
        if reading.mail.author.email in settings.robots and (report := find_report(reading.mail)):
            track(known, reading.mail, report, proven=True)
    return known
