"""What a person's mail says about a performance regression: facts, each with the sentence it is from. Pure.

Nobody measured it for us, so there are no samples and no intervals: what the mail doesn't say is unknown, and is
shown as unknown. `bot/replies/person_report.py` reads the mail; reports and offers in the review queue keep the facts
as JSON.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from tracker.domain import versions
from tracker.domain.events import EventData, EventKind, Role
from tracker.domain.report_state import NOT_BISECTED

MAX_VALUE, MAX_SENTENCE = 200, 400  # characters of a fact, and of its sentence


@dataclass(frozen=True, slots=True)
class Fact:
    """A value as the mail gives it, and the sentence that gives it. Empty: the mail doesn't say."""

    value: str = ""
    sentence: str = ""

    def __bool__(self) -> bool:
        return bool(self.value)


UNKNOWN = Fact()


@dataclass(frozen=True, slots=True)
class PersonReport:
    """The facts of a mail. `change_pct`: the metric's own change in per cent, None if it can't be told."""

    reporter: str
    culprit: Fact = UNKNOWN  # a sha, perhaps abbreviated
    culprit_title: Fact = UNKNOWN
    culprit_author: Fact = UNKNOWN
    suite: Fact = UNKNOWN
    metric: Fact = UNKNOWN
    magnitude: Fact = UNKNOWN  # "170 MB/s -> 11 MB/s", "-40 %"
    change_pct: float | None = None
    good: Fact = UNKNOWN
    bad: Fact = UNKNOWN
    machine: Fact = UNKNOWN
    other_culprits: tuple[str, ...] = ()
    score: int = 0  # how much it looks like a report of a performance regression
    signs: tuple[str, ...] = ()  # what makes up the score

    @property
    def span(self) -> str:
        """Where it must lie while nobody has bisected it: "5.15 good, 5.16 bad"; "" if the mail names no version."""
        good = "" if self.good.value.startswith("before") else self.good.value  # which says no more than the bad one
        return ", ".join(f"{version} {word}" for version, word in ((good, "good"), (self.bad.value, "bad")) if version)

    @property
    def cycle(self) -> str:
        """The release in whose cycle the regression appeared, by the bad version: "v6.16" of "6.16-rc2"; "" unknown."""
        version = versions.parse("v" + self.bad.value.lstrip("v"))
        return version.cycle if version else ""

    def stored(self) -> dict[str, Any]:
        """Return it as JSON; unknown facts are left out."""
        values: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Fact):
                value = [value.value, value.sentence] if value else None
            if value not in (None, (), ""):
                values[field.name] = list(value) if isinstance(value, tuple) else value
        return values


def agreement(one: PersonReport, other: PersonReport) -> str:
    """Return why two mails may be about one regression, "" if nothing says so: the same culprit, the same versions, or
    the same metric or suite in the same release. Two that name different commits are not.
    """
    shas = [report.culprit.value.lower() for report in (one, other)]
    titles = {report.culprit_title.value.casefold() for report in (one, other)}
    digits = min(map(len, shas))  # either may be abbreviated
    if (digits and shas[0][:digits] == shas[1][:digits]) or (len(titles) == 1 and "" not in titles):
        return "the same culprit"
    if digits:
        return ""
    spans = {(report.good.value.lstrip("v"), report.bad.value.lstrip("v")) for report in (one, other)}
    if len(spans) == 1 and all(spans.pop()):
        return "between the same versions"
    for name in ("metric", "suite"):
        values = {getattr(report, name).value.casefold() for report in (one, other)}
        if len(values) == 1 and "" not in values and one.cycle and one.cycle == other.cycle:
            return f"the same {name} in {one.cycle}"
    return ""


def reported_event(report: PersonReport, message_id: str, at: datetime) -> EventData:
    """Return the event that a person reported it. `remark`: who; `title`: between which versions, if not bisected."""
    title = "" if report.culprit else (report.span or NOT_BISECTED)
    key, name = f"{EventKind.REPORTED}:{message_id}", report.reporter[:MAX_VALUE]
    return EventData(key, EventKind.REPORTED, at, Role.REPORTER, message_id=message_id, remark=name, title=title)


def placeholder(message_id: str) -> str:
    """Return what stands for the sha of a culprit that nobody knows: 40 digits, the same for the same mail."""
    return hashlib.sha1(
        b"reported in " + message_id.encode("utf-8", "surrogateescape"), usedforsecurity=False
    ).hexdigest()


def read_stored(stored: Mapping[str, Any]) -> PersonReport:
    """Return what `stored` gave. Unknown fields are ignored, so that an older program reads a newer one's rows."""
    values: dict[str, Any] = {"reporter": ""}
    for field in fields(PersonReport):
        value = stored.get(field.name)
        if value is None:
            continue
        if field.type == "Fact":
            values[field.name] = Fact(*value)
        else:
            values[field.name] = tuple(value) if isinstance(value, list) else value
    return PersonReport(**values)
