"""One mail into the database: our own, a robot's report, or a reply; as message, events and findings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from bot.identity import Identity
from bot.ingest.robot_mail.machine import machine_parts
from bot.ingest.robot_mail.report import RobotReport, clean_title, find_report, impact_row
from bot.ingest.robot_mail.table import Table, Value, find_rows
from bot.outbox.states import mark_sent
from bot.replies.effects import Effect, Mode, Relation, effects_of
from bot.replies.events import event_of, in_mainline_event, reported_event
from bot.replies.kinds import Kind
from bot.replies.known import KnownReport, KnownReports, known_as
from bot.replies.links import find_links
from bot.replies.mail import Mail
from bot.replies.reading import Reading, read
from tracker import history, registry
from tracker.models import Finding, Machine, Message, OutgoingMail, RawMessage, Report, Suggestion
from tracker.models.tree import TreeRole
from tracker.status import Event as EventValue
from tracker.status import Happening, Verdict
from tracker.tables import KeptTable, TableRow, pack


@dataclass(frozen=True, slots=True)
class Filed:
    """What became of a mail."""

    message_id: str = ""
    is_report: bool = False
    is_repeated: bool = False  # a report whose culprit was reported before
    is_reply: bool = False
    was_known: bool = False


class Desk:
    """The tracked reports, loaded once, and the filing of one mail after the other under them."""

    def __init__(self, identity: Identity, now: datetime) -> None:
        self.identity = identity
        self.now = now
        self._touched: set[int] = set()
        self.forget()

    def forget(self) -> None:
        """Start again from what the database knows."""
        self.known = KnownReports()
        self._rows: dict[str, Report] = {}
        for report in Report.objects.select_related("culprit"):
            self._know(report)
        for message_id, tag in Message.objects.values_list("message_id", "report__tag"):
            self.known.file(message_id, tag)
        for message_id, tag in OutgoingMail.objects.values_list("message_id", "report__tag"):
            self.known.file(message_id, tag)

    def refold(self) -> None:
        """Bring the cached states up to date; once a batch."""
        history.refold(self._touched)  # reports that were rolled back are not there, and so not folded
        self._touched.clear()

    def concerns(self, mail: Mail) -> bool:
        """Whether a mail is about a tracked report."""
        return bool(self.known.relations(read(mail, self.identity)))

    def file(self, mail: Mail, keep: Callable[[], RawMessage]) -> Filed:
        """File one mail that is not in the database yet. `keep` stores its bytes, and is called before all else."""
        if mail.author.email in self.identity.robots and (robot_report := find_report(mail)):
            return self._file_report(mail, robot_report, keep())
        reading = read(mail, self.identity)
        relations = self.known.relations(reading)
        if not relations:
            return Filed()
        source = keep()
        filed_under = next(iter(relations))
        self._store(reading, self._rows[filed_under], source)
        if reading.kind is Kind.SELF:
            # Proof that it went out, whatever we remember of it (DESIGN rule 5).
            mark_sent(mail.message_id, mail.date or self.now, self.now)
            return Filed(mail.message_id)
        for tag, relation in relations.items():
            self._act(reading, tag, relation)
        return Filed(mail.message_id, is_reply=True)

    def _know(self, report: Report) -> None:
        self._rows[report.tag] = report
        known = KnownReport(
            id=report.tag,
            culprit=report.culprit.sha,
            title=report.culprit.title,
            message_ids=(),
            authors=frozenset(report.authors),
            people=frozenset(report.told),
        )
        self.known.add(known)

    def _store(self, reading: Reading, report: Report, source: RawMessage) -> Message:
        mail = reading.mail
        role = self.known.reports[report.tag].role_of(reading, self.identity.operators)
        message = Message.objects.create(
            message_id=mail.message_id,
            report=report,
            source=source,
            in_reply_to=mail.parent,
            author_name=mail.author.name,
            author_email=mail.author.email,
            subject=mail.subject,
            sent_at=mail.date or self.now,
            kind=reading.kind,
            role=role or "",
            # Of our own mail everything is ours, the quoted-looking tag block too.
            own_text=(mail.text if reading.kind is Kind.SELF else reading.own_text)[:100_000],
        )
        self.known.file(mail.message_id, report.tag)
        return message

    def _act(self, reading: Reading, tag: str, relation: Relation) -> None:
        """What the mail does to one report: by itself an event, else a suggestion that waits for a click."""
        report = self._rows[tag]
        role = self.known.reports[tag].role_of(reading, self.identity.operators)
        at = reading.mail.date or self.now
        for number, effect in enumerate(effects_of(reading, role, relation, self.identity.trust)):
            event = event_of(effect, reading.mail, role, at, number)
            if event is None:
                continue
            if event.kind is Happening.DUPLICATE:
                event = replace(event, remark=self._sha10_of(event.remark))
            if effect.mode is Mode.AUTO:
                self._touched |= history.append([history.event_row(report, event, self.now, effect.quote)])
            else:
                self._suggest(report, event, effect)

    def _suggest(self, report: Report, event: EventValue, effect: Effect) -> None:
        Suggestion.objects.get_or_create(
            report=report,
            key=event.key,
            defaults={
                **{
                    name: getattr(event, name) for name in ("kind", "at", "by", "message_id", "commit", "title", "tree")
                },
                "remark": event.remark,
                "quote": effect.quote[:2000],
                "rule": effect.rule,
            },
        )

    def _sha10_of(self, argument: str) -> str:
        """The report that a `dup` names, by the sha of its culprit where its link leads to one of ours."""
        for link in find_links(argument, self.identity.base_url):
            tag = self.known.by_message.get(link.message_id, "")
            if tag in self._rows:
                return self._rows[tag].culprit.sha10
        return argument[:200]

    def _file_report(self, mail: Mail, told: RobotReport, source: RawMessage) -> Filed:
        """A robot's report: the report of its culprit, its findings, and the event that it was reported."""
        culprit = registry.commit_for(told.culprit, title=clean_title(told))
        tree = registry.tree_for(told.tree)
        repeated = Report.objects.filter(culprit=culprit).exists()
        report = registry.report_for(
            culprit,
            Verdict(told.verdict),
            title=mail.subject,
            subsystem=told.subsystem,
            tree=tree,
            branch=told.branch,
            authors=known_as(address for address in mail.to if address.email not in self.identity.robots),
            told=known_as(address for address in (*mail.to, *mail.cc) if address.email not in self.identity.robots),
        )
        self._know(report)
        message = self._store(read(mail, self.identity), report, source)
        Message.objects.filter(pk=message.pk).update(tables=pack([_kept(told, table) for table in told.tables]))
        add_findings(report, told)
        at = mail.date or self.now
        where = ":".join(part for part in (told.tree, told.branch) if part)
        events = [reported_event(mail, at, where)]
        if tree and tree.role == TreeRole.MAINLINE:
            events.append(in_mainline_event(mail, at))
        self._touched |= history.append(history.event_row(report, each, self.now, mail.subject) for each in events)
        return Filed(mail.message_id, is_report=True, is_repeated=repeated)


def add_findings(report: Report, told: RobotReport) -> None:
    """The headline finding of a robot's report, and what else it says to have moved, with their numbers."""
    parent = registry.commit_for(told.parent, title=told.tables[0].commits[0].title) if told.parent else None
    headline = Finding(
        report=report,
        metric=registry.metric_for(told.metric),
        scenario=registry.scenario_for(told.suite, dict(told.parameters)),
        machine=_machine(told.machine, told.machine_text),
        parent=parent,
        base=told.base,
        headline=True,
        verdict=told.verdict,
        change_pct=told.change_pct,
        change_pct_raw=told.change_pct_raw,
        **_sides(told.old, told.new),
    )
    registry.add_finding(headline)
    for impact in told.additional:
        table, row = impact_row(told, impact) or (None, None)
        registry.add_finding(
            Finding(
                report=report,
                metric=registry.metric_for(impact.metric),
                scenario=registry.scenario_for(impact.suite, dict(impact.parameters)),
                machine=_machine(table.axis("tbox_group") if table else "", impact.machine),
                parent=parent,
                base=told.base,
                verdict=impact.verdict,
                change_pct=impact.change_pct,
                change_pct_raw=row.change_pct if row else None,
                **_sides(row.old if row else None, row.new if row else None),
            )
        )


def _kept(told: RobotReport, table: Table) -> KeptTable:
    rows = (
        TableRow(row.name, row.old.mean, row.old.stddev_pct, row.change, row.new.mean, row.new.stddev_pct)
        for row in find_rows(told.lines, table)
        if math.isfinite(row.old.mean) and math.isfinite(row.new.mean)
    )
    test = ", ".join(f"{name}={value}" for name, value in table.axes)
    return KeptTable(test[:2000], table.commits[0].name, table.commits[1].name, tuple(rows))


def _sides(old: Value | None, new: Value | None) -> dict[str, float | None]:
    """The columns of a finding for both sides of a row; a table may print inf, which is no number to show."""
    return {
        "old_mean": old.mean if old and math.isfinite(old.mean) else None,
        "old_stddev_pct": old.stddev_pct if old else None,
        "new_mean": new.mean if new and math.isfinite(new.mean) else None,
        "new_stddev_pct": new.stddev_pct if new else None,
    }


def _machine(name: str, text: str) -> Machine:
    """The box by the lab's name for it, else by its description; with the parts that the description tells."""
    parts = machine_parts(text)
    return registry.machine_for(
        name or text,
        description=text,
        cpus=parts.threads,
        sockets=parts.sockets,
        cpu_model=parts.cpu,
        codename=parts.codename,
    )
