"""`explain`: what raw mail is read as, one JSON object per mail (DESIGN section 5). Pure: needs no database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from bot.mail.identity import BotIdentity
from bot.mail.message import ParsedMail
from bot.replies.classifier.nearest import nearest
from bot.replies.effect import NOTHING, Effect, Mode, Relation, Standpoint, name_of
from bot.replies.effects import MERE_RESPONSE, effects_of, settled
from bot.replies.meaning import FoundIntent, intents_of
from bot.replies.reading import Reading, understand
from bot.replies.sender_kind import SenderKind
from bot.replies.to_events import events_of, reported_event
from bot.replies.which_report.report_lookup import KnownReport, KnownReports, person_keys
from bot.robot_reports.as_json import report_json
from bot.robot_reports.proof import is_proven
from bot.robot_reports.report import clean_title, find_report
from bot.robot_reports.subject import benchmark_in
from bot.robot_reports.value import RobotReport
from tracker.domain.events import EventData, Verdict
from tracker.domain.report_state.fold import fold

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class _InputReport:
    """A report in the input, with its automatic events, and its events if every suggestion is accepted."""

    verdict: Verdict
    acted: list[EventData] = field(default_factory=list)
    accepted: list[EventData] = field(default_factory=list)


def explain(
    mails: Iterable[bytes],
    identity: BotIdentity,
    known: Iterable[KnownReport] = (),
    *,
    rows: bool = False,
    why: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yield what each mail means, in input order. Reports anywhere in the input are tracked.

    `rows`: include every row of a report's tables. `why`: with each effect, how probable the classifier finds it, the
    words that weigh most, and the written examples nearest to its evidence.
    """
    readings = [understand(raw, identity) for raw in mails]
    parsed = [reading.mail for reading in readings]
    known_reports = KnownReports()
    for report in known:
        known_reports.add(report)
    reports = {
        number: robot_report for number, mail in enumerate(parsed) if (robot_report := _report_in(mail, identity))
    }
    input_reports: dict[str, _InputReport] = {}
    for number, robot_report in reports.items():
        proven = is_proven(robot_report, readings[number], identity.trust_policy)
        track(known_reports, parsed[number], robot_report, proven=proven)
        input_report = input_reports.setdefault(robot_report.culprit, _InputReport(Verdict(robot_report.verdict)))
        event = reported_event(parsed[number], parsed[number].date or _EPOCH)
        if proven and not robot_report.unsure:
            input_report.acted.append(event)
        input_report.accepted.append(event)
    objects = [
        _explain_one(reading, reports.get(number), known_reports, input_reports, identity, rows, why)
        for number, reading in enumerate(readings)
    ]
    for number, robot_report in reports.items():
        input_report = input_reports[robot_report.culprit]
        objects[number]["state"] = fold(input_report.verdict, input_report.acted).state.value
        objects[number]["state_if_accepted"] = fold(input_report.verdict, input_report.accepted).state.value
    yield from objects


def _report_in(mail: ParsedMail, identity: BotIdentity) -> RobotReport | None:
    """Return the report in a robot's mail or in one of our own, or None."""
    ours = identity.is_own(mail.author.email) or mail.mark("x-perfwork-report")
    return find_report(mail) if ours or mail.author.email in identity.robots else None


def track(known_reports: KnownReports, mail: ParsedMail, robot_report: RobotReport, *, proven: bool) -> None:
    """Track a report of the input; a second mail about a culprit joins the first. Its people join if it is proven.

    People of a mail that is not proven have no rights, and none beside those of one that is (DESIGN rule 8).
    """
    before = known_reports.reports.get(robot_report.culprit)
    verified = before.verified if before else frozenset()
    if before and not proven:
        known_reports.add(replace(before, message_ids=(*before.message_ids, mail.message_id)))
        return
    if before and verified is not None:  # whatever it said
        before = replace(before, authors=frozenset(), people=frozenset())
    known_reports.add(
        KnownReport(
            id=robot_report.culprit,
            culprit=robot_report.culprit,
            title=clean_title(robot_report),
            message_ids=(*(before.message_ids if before else ()), mail.message_id),
            authors=frozenset(person_keys(mail.to)) | (before.authors or frozenset() if before else frozenset()),
            people=frozenset(person_keys((*mail.to, *mail.cc))) | (before.people if before else frozenset()),
            verdict=before.verdict if before else robot_report.verdict,
            verified=None if proven else frozenset(),
            benchmark=before.benchmark if before else benchmark_in(mail.subject),
        )
    )


def _explain_one(
    reading: Reading,
    robot_report: RobotReport | None,
    known_reports: KnownReports,
    input_reports: Mapping[str, _InputReport],
    identity: BotIdentity,
    rows: bool,
    why: bool,
) -> dict[str, Any]:
    mail = reading.mail
    relations = known_reports.relations(reading) if not robot_report else {}
    effects: tuple[Effect, ...] = (NOTHING,)
    standpoint = Standpoint(Relation.THREAD)
    for report_id, relation in relations.items():
        report_standpoint = known_reports.standpoint(reading, report_id, relation, identity)
        report_effects = effects_of(reading, report_standpoint, identity.trust_policy)
        if not effects[0].kind:
            effects, standpoint = report_effects, report_standpoint
        if report_id in input_reports:
            _add_events(input_reports[report_id], settled(report_effects), mail, report_standpoint)
    if relations and not robot_report:
        first, relation = next(iter(relations.items()))
        known_reports.file(mail.message_id, first, known_reports.thread_for(reading, first, relation))
    if not relations and reading.notice and reading.kind is SenderKind.ROBOT:
        # About no known report: shown anyway, since it changes nothing.
        effects = effects_of(reading, standpoint, identity.trust_policy)
    return _as_json(
        reading,
        robot_report,
        list(relations) or ([robot_report.culprit] if robot_report else []),
        effects,
        standpoint,
        rows,
        why,
    )


def _add_events(
    input_report: _InputReport, effects: Iterable[Effect], mail: ParsedMail, standpoint: Standpoint
) -> None:
    for effect, event in events_of(effects, mail, standpoint.role, mail.date or _EPOCH):
        if effect.mode is Mode.AUTO:
            input_report.acted.append(event)
        if effect.mode is not Mode.NONE:
            input_report.accepted.append(event)


def _as_json(
    reading: Reading,
    robot_report: RobotReport | None,
    report_ids: list[str],
    effects: tuple[Effect, ...],
    standpoint: Standpoint,
    rows: bool,
    why: bool,
) -> dict[str, Any]:
    mail = reading.mail
    effects = tuple(each for each in effects if each.rule != MERE_RESPONSE) or (NOTHING,)
    return {
        "message_id": mail.message_id,
        "in_reply_to": list(mail.in_reply_to),
        "references": list(mail.references),
        "subject": mail.subject,
        "date": mail.date.isoformat().replace("+00:00", "Z") if mail.date else None,
        "author": {"name": mail.author.name, "email": mail.author.email},
        "kind": SenderKind.ROBOT.value if robot_report and reading.kind is not SenderKind.SELF else reading.kind.value,
        "own_text": reading.own_text,
        "report_ids": report_ids,
        "commands": [{"name": each.word.value, "argument": each.argument} for each in reading.commands.good],
        "trailers": [{"key": each.key, "value": each.value} for each in reading.trailers],
        "patches": [{"title": each.title, "source": each.source} for each in reading.patches],
        "links": [each.url for each in reading.links],
        "report": report_json(robot_report, mail, rows=rows) if robot_report else None,
        "trust": {"verdict": reading.trust.verdict.value, "by": reading.trust.by or None},
        "role": standpoint.role.value if standpoint.role else None,
        "intents": [
            {"name": each.intent.value, "evidence": each.evidence}
            for each in _intents(reading, robot_report, standpoint)
        ],
        "effect": _effect_json(effects[0]),
        "effects": [
            _effect_json(each) | {"evidence": each.quote} | (_why_json(each) if why else {})
            for each in effects
            if each.kind
        ],
        "problems": [*reading.problems, *(robot_report.problems if robot_report else ())],
    }


def _intents(reading: Reading, robot_report: RobotReport | None, standpoint: Standpoint) -> tuple[FoundIntent, ...]:
    """Return the intents of a reply, each name once; a report has none."""
    found = intents_of(reading, improvement=standpoint.improvement) if not robot_report else ()
    return tuple({each.intent: each for each in reversed(found)}.values())[::-1]


def _effect_json(effect: Effect) -> dict[str, str | None]:
    return {"state": name_of(effect), "mode": effect.mode.value, "rule": effect.rule or None}


def _why_json(effect: Effect) -> dict[str, Any]:
    near = [
        {
            "example": each.example.name,
            "sentence": each.example.evidence,
            "state": each.example.effect,
            "nearness": round(each.nearness, 2),
        }
        for each in nearest(effect.quote)
    ]
    return {"why": effect.why, "nearest": near}
