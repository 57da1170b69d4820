"""What people decided about suggestions, as training data for the classifier and as examples to export."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bot.mail.identity import BotIdentity
from bot.replies.classifier.examples import ROLES
from bot.replies.classifier.training import REAL, Labelled
from bot.replies.effect import Effect, Mode, Relation, Standpoint, name_of
from bot.replies.effects import effects_by_rules, facts_of
from bot.replies.lab_answers import holds_table
from bot.replies.reading import Reading, understand
from bot.replies.sender_kind import SenderKind
from bot.robot_reports.subject import benchmark_in
from tracker.domain.events import EventKind, Role, Verdict
from tracker.models import Decision, Event, Message, Suggestion

_NAMES = {role: name for name, role in reversed(ROLES.items())}


@dataclass(frozen=True, slots=True)
class Lesson:
    """One mail, and the effect that people say it has. `sentence`: the evidence that they were shown."""

    report: int
    reading: Reading
    standpoint: Standpoint
    effect: str
    sentence: str

    def labelled(self) -> Labelled:
        """Return it as training data; the mails of a report are never on both sides of a cross-validation."""
        found = list(effects_by_rules(self.reading, self.standpoint))
        return Labelled(str(self.report), facts_of(self.reading, self.standpoint, found), self.effect, REAL)

    def example(self) -> dict[str, Any]:
        """Return it in the format of fixtures/replies."""
        text = self.reading.own_text
        found = re.search(r"\s+".join(map(re.escape, self.sentence.split()[:80])), text) if self.sentence else None
        below = next((each.below for each in self.reading.sentences if each.text == self.sentence), "")
        return {
            "role": _NAMES.get(self.standpoint.role or Role.AUTHOR, "third_party"),
            "text": text,
            "quoted": below,
            "patch": bool(self.reading.patches),
            "table": holds_table(text),
            "candidate": False,
            "asked": False,
            "effect": self.effect,
            "also": [],
            "evidence": found[0] if found else "",
            "intents": [],
        }


def lessons(identity: BotIdentity) -> Iterator[Lesson]:
    """Yield what people decided, in the order of mails: an accepted or changed suggestion says what a mail means.

    A mail whose suggestions were all rejected means what was recorded of it otherwise, or nothing.
    """
    decided: dict[tuple[int, str], list[Suggestion]] = {}
    rows = Suggestion.objects.exclude(decision=Decision.OPEN).exclude(message_id="").select_related("report__culprit")
    for row in rows.order_by("pk"):
        decided.setdefault((row.report_id, row.message_id), []).append(row)
    ids = {message_id for _, message_id in decided}
    mails = {each.message_id: each for each in Message.objects.filter(message_id__in=ids).select_related("source")}
    for (_, message_id), suggestions in decided.items():
        if message_id in mails and (lesson := _lesson(mails[message_id], suggestions, identity)):
            yield lesson


def _lesson(mail: Message, suggestions: list[Suggestion], identity: BotIdentity) -> Lesson | None:
    reading = understand(mail.source.raw, identity)
    if reading.kind not in (SenderKind.PERSON, SenderKind.BOT_OPERATOR) or not reading.sentences:
        return None
    effect, sentence = _meaning(suggestions)
    report = suggestions[0].report
    standpoint = Standpoint(
        Relation(mail.relation or Relation.THREAD),
        Role(suggestions[0].role),
        report.verdict == Verdict.IMPROVEMENT,
        report.culprit.sha,
        title=report.culprit.title,
        benchmark=benchmark_in(report.title),
    )
    return Lesson(report.pk, reading, standpoint, effect, sentence)


def _meaning(suggestions: list[Suggestion]) -> tuple[str, str]:
    """Return the effect that was accepted, set instead, or recorded otherwise, and its evidence."""
    for each in suggestions:
        if each.decision == Decision.ACCEPTED:
            return _name(each.kind, each.rule), each.quote
    on_report = Event.objects.filter(report=suggestions[0].report_id)
    taken_back = on_report.exclude(reverses="").values("reverses")
    own = on_report.filter(message_id=suggestions[0].message_id).exclude(key__in=taken_back).order_by("pk")
    by_person = own.exclude(actor="").exclude(kind=EventKind.READING_REJECTED)
    kinds = [*by_person.values_list("kind", flat=True), *own.filter(actor="").values_list("kind", flat=True)]
    for kind in kinds:
        if (name := _name(kind)) != "none":
            return name, suggestions[0].quote
    return "none", ""


def _name(kind: str, rule: str = "") -> str:
    return name_of(Effect(EventKind(kind), Mode.AUTO, rule))
