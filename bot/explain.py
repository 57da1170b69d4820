"""`explain`: what raw mail is read as, one JSON object per mail (DESIGN section 5). Pure: needs no database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bot.mail.identity import BotIdentity
from bot.mail.message import ParsedMail
from bot.replies.effect import NOTHING, Effect, Mode, Relation, Standpoint, name_of
from bot.replies.effects import effects_of
from bot.replies.meaning import FoundIntent, found_in
from bot.replies.reading import Reading, understand
from bot.replies.report_lookup import KnownReport, KnownReports, known_as
from bot.replies.sender_kind import SenderKind
from bot.replies.to_events import event_of, reported_event
from bot.robot_reports.as_json import report_json
from bot.robot_reports.report import clean_title, find_report
from bot.robot_reports.value import RobotReport
from tracker.domain.events import EventData, Verdict
from tracker.domain.report_state.fold import fold

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class _Case:
    """A report in the input, with its automatic events, and its events if every suggestion is accepted."""

    verdict: Verdict
    acted: list[EventData] = field(default_factory=list)
    accepted: list[EventData] = field(default_factory=list)


def explain(
    mails: Iterable[bytes], identity: BotIdentity, known: Iterable[KnownReport] = (), *, rows: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield what each mail means, in input order. Reports anywhere in the input are tracked.

    `rows`: include every row of a report's tables.
    """
    readings = [understand(raw, identity) for raw in mails]
    parsed = [reading.mail for reading in readings]
    desk = KnownReports()
    for report in known:
        desk.add(report)
    reports = {number: told for number, mail in enumerate(parsed) if (told := _report_in(mail, identity))}
    cases: dict[str, _Case] = {}
    for number, told in reports.items():
        _track(desk, parsed[number], told)
        case = cases.setdefault(told.culprit, _Case(Verdict(told.verdict)))
        event = reported_event(parsed[number], parsed[number].date or _EPOCH)
        if not told.unsure:
            case.acted.append(event)
        case.accepted.append(event)
    objects = [
        _explain_one(reading, reports.get(number), desk, cases, identity, rows)
        for number, reading in enumerate(readings)
    ]
    for number, told in reports.items():
        case = cases[told.culprit]
        objects[number]["state"] = fold(case.verdict, case.acted).state.value
        objects[number]["state_if_accepted"] = fold(case.verdict, case.accepted).state.value
    yield from objects


def _report_in(mail: ParsedMail, identity: BotIdentity) -> RobotReport | None:
    """Return the report in a robot's mail or in one of our own, or None."""
    ours = identity.is_own(mail.author.email) or mail.mark("x-perfwork-report")
    return find_report(mail) if ours or mail.author.email in identity.robots else None


def _track(desk: KnownReports, mail: ParsedMail, told: RobotReport) -> None:
    """Track a report of the input; a second mail about a culprit joins the first."""
    before = desk.reports.get(told.culprit)
    desk.add(
        KnownReport(
            id=told.culprit,
            culprit=told.culprit,
            title=clean_title(told),
            message_ids=(*(before.message_ids if before else ()), mail.message_id),
            authors=frozenset(known_as(mail.to)) | (before.authors or frozenset() if before else frozenset()),
            people=frozenset(known_as((*mail.to, *mail.cc))) | (before.people if before else frozenset()),
            verdict=before.verdict if before else told.verdict,
        )
    )


def _explain_one(
    reading: Reading,
    told: RobotReport | None,
    desk: KnownReports,
    cases: Mapping[str, _Case],
    identity: BotIdentity,
    rows: bool,
) -> dict[str, Any]:
    mail = reading.mail
    relations = desk.relations(reading) if not told else {}
    effects: tuple[Effect, ...] = (NOTHING,)
    at = Standpoint(Relation.THREAD)
    for report_id, relation in relations.items():
        seen_from = desk.reports[report_id].standpoint(reading, relation, identity)
        follows = effects_of(reading, seen_from, identity.trust)
        if not effects[0].happening:
            effects, at = follows, seen_from
        if report_id in cases:
            _act(cases[report_id], follows, mail, seen_from)
    if relations and not told:
        desk.file(mail.message_id, next(iter(relations)))
    if not relations and reading.notice and reading.kind is SenderKind.ROBOT:
        # About no known report: shown anyway, since it changes nothing.
        effects = effects_of(reading, at, identity.trust)
    return _as_json(reading, told, list(relations) or ([told.culprit] if told else []), effects, at, rows)


def _act(case: _Case, effects: Iterable[Effect], mail: ParsedMail, at: Standpoint) -> None:
    for number, effect in enumerate(effects):
        event = event_of(effect, mail, at.role, mail.date or _EPOCH, number)
        if event and effect.mode is Mode.AUTO:
            case.acted.append(event)
        if event and effect.mode is not Mode.NONE:
            case.accepted.append(event)


def _as_json(
    reading: Reading,
    told: RobotReport | None,
    report_ids: list[str],
    effects: tuple[Effect, ...],
    at: Standpoint,
    rows: bool,
) -> dict[str, Any]:
    mail = reading.mail
    return {
        "message_id": mail.message_id,
        "in_reply_to": list(mail.in_reply_to),
        "references": list(mail.references),
        "subject": mail.subject,
        "date": mail.date.isoformat().replace("+00:00", "Z") if mail.date else None,
        "author": {"name": mail.author.name, "email": mail.author.email},
        "kind": SenderKind.ROBOT.value if told and reading.kind is not SenderKind.SELF else reading.kind.value,
        "own_text": reading.own_text,
        "report_ids": report_ids,
        "commands": [{"name": each.word.value, "argument": each.argument} for each in reading.commands.good],
        "trailers": [{"key": each.key, "value": each.value} for each in reading.trailers],
        "patches": [{"title": each.title, "source": each.source} for each in reading.patches],
        "links": [each.url for each in reading.links],
        "report": report_json(told, mail, rows=rows) if told else None,
        "trust": {"verdict": reading.trust.verdict.value, "by": reading.trust.by or None},
        "role": at.role.value if at.role else None,
        "intents": [{"name": each.intent.value, "evidence": each.evidence} for each in _meant(reading, told, at)],
        "effect": _effect_json(effects[0]),
        "effects": [_effect_json(each) | {"evidence": each.quote} for each in effects if each.happening],
        "problems": [*reading.problems, *(told.problems if told else ())],
    }


def _meant(reading: Reading, told: RobotReport | None, at: Standpoint) -> tuple[FoundIntent, ...]:
    """Return the intents of a reply, each name once; a report has none."""
    found = found_in(reading, improvement=at.improvement) if not told else ()
    return tuple({each.intent: each for each in reversed(found)}.values())[::-1]


def _effect_json(effect: Effect) -> dict[str, str | None]:
    return {"state": name_of(effect), "mode": effect.mode.value, "rule": effect.rule or None}
