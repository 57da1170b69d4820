"""`explain`: what raw mail is read as, one JSON object per mail (DESIGN section 5).

It needs no database, but for `--tracked`, which takes the reports of one. Reports anywhere in the input are tracked,
and others may be given; replies are read against all of them. A report of the input gets the state that its automatic
events lead to, and the state if every suggestion is accepted.

The field `report` has every field of a robot's report, null if it is missing. People of a mail that is not proven
have no rights, and none beside those of one that is (DESIGN rule 8).
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from bot.mail.message import ParsedMail
from bot.mail.patches import answered_posting, is_answer
from bot.mail.settings import BotSettings
from bot.replies.effects import MERE_RESPONSE, effects_of, events_of, reported_event, settled, speaker_of
from bot.replies.examples import nearest
from bot.replies.intents import intents_of
from bot.replies.person_report import OFFERED, is_commanded, read_report, subsystem_by_title_or_list
from bot.replies.reading import Reading, SenderKind, understand
from bot.replies.rules.notation import NOTHING, Effect, MailContext, Mode, Relation, name_of
from bot.replies.which_report import KnownReport, KnownReports, person_keys
from bot.robot_reports.fields import benchmark_in
from bot.robot_reports.report import RobotReport, clean_title, find_report, is_proven
from bot.robot_reports.tables import Impact, ReportRow, ReportTable, Value
from tracker.domain.archived_reports import PersonReport, placeholder
from tracker.domain.archived_reports import reported_event as reported_by_person
from tracker.domain.events import EventData, Verdict
from tracker.domain.report_state import fold, status_text
from tracker.domain.text import is_a_list

# --- A robot's report ---

Json = dict[str, Any]


def report_json(report: RobotReport, mail: ParsedMail, *, rows: bool = False) -> Json:
    """Return every field of a report, null if it is missing. `rows`: include the rows of each table."""
    flags = {  # oddities that readers of reports trip over
        "hand-written-preamble": report.preamble,
        "text-between-noticed-and-commit": report.between,
        "parent-is-release-tag": report.base,
    }
    return {
        "form": "reply-to-patch" if is_answer(mail.subject) else "report",
        "patch_subject": report.origin.patch_subject or answered_posting(mail.subject) or None,
        "recipients": sorted({recipient.email for recipient in mail.recipients}),
        "charset": mail.charset or None,
        "attachments": [attachment.filename for attachment in mail.attachments if attachment.filename],
        **_commit(report),
        **_change(report),
        **_test(report),
        **_tables(report, rows),
        "additional": [
            _impact(impact, pair) for impact, pair in zip(report.additional, report.impact_rows, strict=True)
        ],
        "n_additional_impact": len(report.additional),
        "rechecks": [
            {"state": recheck.what, "ref": recheck.ref, "ref_text": recheck.ref, "sha": recheck.sha}
            for recheck in report.rechecks
        ],
        "rechecks_other": list(report.rechecks_other) or None,
        "reported_by": report.tags.reported_by or None,
        "closes": report.tags.closes or None,
        "link_tag": report.tags.link or None,
        "regzbot": report.tags.regzbot or None,
        "artifacts_url": report.tags.artifacts_url or None,
        "preamble": report.preamble or None,
        "n_ascii_plots": report.plots,
        "flags": [name for name, present in flags.items() if present],
        "unsure": list(report.unsure),
    }


def _commit(report: RobotReport) -> Json:
    subject, origin = report.subject, report.origin
    return {
        "culprit": report.culprit,
        "short_sha": report.culprit[:10],
        "culprit_title": report.culprit_title,
        "commit_subject_clean": clean_title(report),
        "list_tag": subject.list_tag or None,
        "subject_prefix": subject.prefix or None,
        "tree": subject.tree or None,
        "branch": subject.branch or None,
        "subsystem": subject.subsystem or None,
        "repo_url": origin.repo_url or None,
        "repo_branch": origin.repo_branch or None,
        "patch_url": origin.patch_url or None,
        "base_url": origin.base_url or None,
        "base_branch": origin.base_branch or None,
        "patch_link": origin.patch_link or None,
    }


def _change(report: RobotReport) -> Json:
    return {
        "metric": report.metric,
        "verdict": report.verdict,
        "percent_text_subject": report.subject.percent or None,
        "percent_text_body": report.percent,
        "change_pct": report.change_pct,
        "change_pct_raw": report.change_pct_raw,
        "metric_direction": report.direction or None,
        "old": _side(report.old),
        "new": _side(report.new),
        "headline": {**_row(report.row), "table": 0} if report.row else None,
    }


def _test(report: RobotReport) -> Json:
    parts = report.machine_parts
    return {
        "suite": report.suite,
        "config": report.test.config or None,
        "compiler": report.test.compiler or None,
        "test_url": report.test.test_url or None,
        "machine": report.test.machine or None,
        "machine_parsed": {name: value or None for name, value in asdict(parts).items()},
        "parameters": dict(report.test.parameters),
        "tbox_group": report.machine or None,
    }


def _tables(report: RobotReport, rows: bool) -> Json:
    head = report.tables[0] if report.tables else None
    parent, bad = head.commits if head else (None, None)
    tables: list[Json] = []
    for table in report.tables:
        tables.append(
            {
                "axes": dict(table.axes),
                "machine_line": table.machine_line or None,
                "n_rows": len(table.rows),
                "n_fails": len(table.fails),
            }
        )
        if rows:
            tables[-1]["rows"] = [_row(row) for row in table.rows]
            tables[-1]["fails"] = [asdict(fail) for fail in table.fails]
    return {
        "axes": dict(head.axes) if head else None,
        "parent": report.parent or None,
        "parent_sha16": report.parent or None,
        "parent_is_tag": bool(report.base),
        "parent_short": (parent.name or None) if parent else None,
        "parent_subject": (parent.title or None) if parent else None,
        "bad_short": (bad.name or None) if bad else None,
        "bad_subject": (bad.title or None) if bad else None,
        "n_tables": len(report.tables),
        "n_rows_first_table": len(head.rows) if head else 0,
        "n_rows": sum(len(table.rows) for table in report.tables),
        "n_fail_rows": sum(len(table.fails) for table in report.tables),
        "tables": tables,
    }


def _impact(impact: Impact, pair: tuple[ReportTable, ReportRow] | None) -> Json:
    return {
        "testcase": impact.suite,
        "metric": impact.metric,
        "percent_text": impact.percent,
        "verdict": impact.verdict,
        "change_pct": impact.change_pct,
        "machine": impact.machine,
        "parameters": dict(impact.parameters),
        "tbox_group": (pair[0].machine or None) if pair else None,
        "row": _row(pair[1]) if pair else None,
    }


def _row(row: ReportRow) -> Json:
    return {
        "metric": row.name,
        "old": _finite(row.old.mean),
        "old_stddev_pct": row.old.stddev_pct,
        "change": row.change_value,
        "change_is_pct": row.change.endswith("%"),
        "change_text": row.change,
        "new": _finite(row.new.mean),
        "new_stddev_pct": row.new.stddev_pct,
    }


def _side(value: Value | None) -> Json | None:
    return {"mean": _finite(value.mean), "stddev_pct": value.stddev_pct} if value else None


def _finite(value: float) -> float | None:
    """Return a number that JSON can hold, or None: a table may print "nan" and "inf"."""
    return value if math.isfinite(value) else None


# --- A person's report ---


def person_report_json(report: PersonReport, mail: ParsedMail, *, tracked: bool) -> Json:
    """Return what a person's mail says, null if it doesn't say; `sentences`: where it says it.

    `tracked`: whether a command in it makes it a report; otherwise it is offered in the review queue.
    """
    facts = {
        "culprit": report.culprit,
        "culprit_title": report.culprit_title,
        "culprit_author": report.culprit_author,
        "suite": report.suite,
        "metric": report.metric,
        "magnitude": report.magnitude,
        "good": report.good,
        "bad": report.bad,
        "machine": report.machine,
    }
    return {
        "by": "person",
        "tracked": tracked,
        "reporter": {"name": mail.author.name, "email": mail.author.email},
        **{name: fact.value or None for name, fact in facts.items()},
        "change_pct_raw": report.change_pct,
        "subsystem": subsystem_by_title_or_list(report, mail) or None,
        "other_culprits": list(report.other_culprits),
        "lists": sorted({address.email for address in mail.recipients if is_a_list(address.email)}),
        "recipients": sorted({address.email for address in mail.recipients}),
        "sentences": {name: fact.sentence for name, fact in facts.items() if fact},
        "score": report.score,
        "signs": list(report.signs),
    }


# --- The mails ---

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class _InputReport:
    """A report in the input, with its automatic events, and its events if every suggestion is accepted."""

    verdict: Verdict
    acted: list[EventData] = field(default_factory=list)
    accepted: list[EventData] = field(default_factory=list)


def explain(
    mails: Iterable[bytes],
    settings: BotSettings,
    tracked: Iterable[KnownReport] = (),
    *,
    rows: bool = False,
    why: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yield what each mail means, in input order. Reports anywhere in the input are tracked.

    `rows`: include every row of a report's tables. `why`: with each effect, how probable the classifier finds it, the
    words that weigh most, and the written examples nearest to its evidence.
    """
    readings = [understand(raw, settings) for raw in mails]
    known_reports = KnownReports()
    for tracked_report in tracked:
        known_reports.add(tracked_report)
    reports: dict[int, RobotReport] = {}
    input_reports: dict[str, _InputReport] = {}
    for number, reading in enumerate(readings):
        mail = reading.mail
        ours = settings.is_own(mail.author.email) or mail.mark("x-perfwork-report")
        report = find_report(mail) if ours or mail.author.email in settings.robots else None
        if report is None:
            continue
        reports[number] = report
        proven = is_proven(report, reading, settings.trust_policy)
        track(known_reports, mail, report, proven=proven)
        input_report = input_reports.setdefault(report.culprit, _InputReport(Verdict(report.verdict)))
        event = reported_event(mail, mail.date or _EPOCH)
        if proven and not report.unsure:
            input_report.acted.append(event)
        input_report.accepted.append(event)
    known_mails = {name for report in known_reports.reports.values() for name in report.message_ids}
    by_persons: dict[int, tuple[PersonReport, str, bool]] = {}
    for number, reading in enumerate(readings):
        if number in reports or (person_report := read_report(reading)) is None:
            continue
        given = reading.mail.message_id in known_mails
        tracked_by_mail = given or is_commanded(reading, person_report)
        if not tracked_by_mail and person_report.score < OFFERED:
            continue
        report_id = track_person(known_reports, reading, person_report)
        by_persons[number] = person_report, report_id, tracked_by_mail
        joined = input_reports.setdefault(report_id, _InputReport(Verdict.REGRESSION))
        event = reported_by_person(person_report, reading.mail.message_id, reading.mail.date or _EPOCH)
        joined.acted.append(event)
        joined.accepted.append(event)
    objects = [
        _explain_one(
            *(reading, reports.get(number), known_reports, input_reports, settings, rows, why),
            opens=number in by_persons,
        )
        for number, reading in enumerate(readings)
    ]
    for number, (person_report, report_id, tracked_by_mail) in by_persons.items():
        objects[number]["report"] = person_report_json(person_report, readings[number].mail, tracked=tracked_by_mail)
        objects[number]["report_ids"] = [report_id]
    of_reports = {number: report.culprit for number, report in reports.items()}
    of_reports |= {number: report_id for number, (_, report_id, _) in by_persons.items()}
    for number, report_id in of_reports.items():
        input_report = input_reports[report_id]
        state = fold(input_report.verdict, input_report.acted)
        objects[number]["state"] = state.state.value
        objects[number]["status"] = status_text(state, mainline_followed=False)
        objects[number]["state_if_accepted"] = fold(input_report.verdict, input_report.accepted).state.value
    yield from objects


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


def track_person(known_reports: KnownReports, reading: Reading, person_report: PersonReport) -> str:
    """Track a person's report of the input, and return its id. One about a tracked culprit joins that report."""
    mail, sha = reading.mail, person_report.culprit.value
    same = (
        report
        for report in known_reports.reports.values()
        if mail.message_id in report.message_ids or report.is_culprit(sha)
    )
    new = KnownReport(sha or placeholder(mail.message_id), sha, "", (mail.message_id,))
    before = next(same, new)
    if not (before.message_ids == (mail.message_id,) or before.reporters):  # a robot's
        known_reports.add(replace(before, message_ids=(*before.message_ids, mail.message_id)))
        return before.id
    others = [address for address in mail.recipients if address.email != mail.author.email]
    known_reports.add(
        replace(
            before,
            culprit=sha or before.culprit,
            title=person_report.culprit_title.value or (before.title if before.culprit else ""),
            people=frozenset(person_keys(others)),
            benchmark=person_report.suite.value,
            unnamed=not sha,
            reporters=before.reporters.union(person_keys([mail.author])),
        )
    )
    return before.id


def _explain_one(
    reading: Reading,
    robot_report: RobotReport | None,
    known_reports: KnownReports,
    input_reports: Mapping[str, _InputReport],
    settings: BotSettings,
    rows: bool,
    why: bool,
    *,
    opens: bool = False,
) -> dict[str, Any]:
    """`opens`: whether it is the mail with which a person reported a regression."""
    mail = reading.mail
    relations = {} if robot_report or opens else known_reports.relations(reading)
    effects: tuple[Effect, ...] = (NOTHING,)
    context = MailContext(Relation.THREAD)
    for report_id, relation in relations.items():
        report_context = known_reports.context(reading, report_id, relation, settings)
        report_effects = effects_of(reading, report_context, settings.trust_policy)
        if not effects[0].kind:
            effects, context = report_effects, report_context
        if input_report := input_reports.get(report_id):
            recorded = settled(report_effects)
            for effect, event in events_of(recorded, mail, speaker_of(report_context), mail.date or _EPOCH):
                if effect.mode is Mode.AUTO:
                    input_report.acted.append(event)
                if effect.mode is not Mode.NONE:
                    input_report.accepted.append(event)
    if relations and not robot_report:
        first, relation = next(iter(relations.items()))
        known_reports.file(mail.message_id, first, known_reports.thread_for(reading, first, relation))
    if not relations and reading.notice:
        # About no known report: shown anyway, since it changes nothing.
        effects = effects_of(reading, context, settings.trust_policy)
    report_ids = list(relations) or ([robot_report.culprit] if robot_report else [])
    return _as_json(reading, robot_report, report_ids, effects, context, rows, why)


def _as_json(
    reading: Reading,
    robot_report: RobotReport | None,
    report_ids: list[str],
    effects: tuple[Effect, ...],
    context: MailContext,
    rows: bool,
    why: bool,
) -> dict[str, Any]:
    mail = reading.mail
    effects = tuple(effect for effect in effects if effect.rule != MERE_RESPONSE) or (NOTHING,)
    intents = intents_of(reading, improvement=context.improvement) if not robot_report else ()
    evidence = {intent.intent.value: intent.evidence for intent in reversed(intents)}  # each name once: the first
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
        "commands": [{"name": command.word.value, "argument": command.argument} for command in reading.commands.good],
        "trailers": [{"key": trailer.key, "value": trailer.value} for trailer in reading.trailers],
        "patches": [{"title": patch.title, "source": patch.source} for patch in reading.patches],
        "links": [link.url for link in reading.links],
        "report": report_json(robot_report, mail, rows=rows) if robot_report else None,
        "trust": {
            "verdict": reading.trust.verdict.value,
            "by": reading.trust.by or None,
            "for": "us" if reading.signed_for_us else None,
            "about": context.about.value if report_ids and not robot_report else None,
        },
        "role": context.role.value if context.role else None,
        "roles": _roles(reading, context),
        "intents": [{"name": name, "evidence": text} for name, text in reversed(evidence.items())],
        "effect": _effect_json(effects[0]),
        "effects": [
            _effect_json(effect) | {"evidence": effect.quote} | (_why_json(effect) if why else {})
            for effect in effects
            if effect.kind
        ],
        "problems": [*reading.problems, *(robot_report.problems if robot_report else ())],
    }


def _roles(reading: Reading, context: MailContext) -> list[str]:
    """Return all that the writer is in this thread: the role, and what they do there."""
    tested = any(trailer.key == "Tested-by" for trailer in reading.trailers)
    others = {
        "developer": bool(reading.patches) and reading.kind is SenderKind.PERSON,
        "lab": reading.kind is SenderKind.BOT_OPERATOR,
        "tester": tested and reading.kind is SenderKind.PERSON,
    }
    role = [context.role.value] if context.role else []
    return [*role, *(name for name, holds in others.items() if holds and name not in role)]


def _effect_json(effect: Effect) -> dict[str, str | None]:
    return {"state": name_of(effect), "mode": effect.mode.value, "rule": effect.rule or None}


def _why_json(effect: Effect) -> dict[str, Any]:
    near = [
        {
            "example": neighbour.example.name,
            "sentence": neighbour.example.evidence,
            "state": neighbour.example.effect,
            "nearness": round(neighbour.nearness, 2),
        }
        for neighbour in nearest(effect.quote)
    ]
    return {"certainty": effect.certainty, "why": effect.why, "nearest": near}
