"""File a robot's report: its culprit's report, its findings, and all rows of its tables.

One culprit, one report. A mail is *sure* if its sender is proven and it has no inconsistencies. Any other creates a
held report and adds no findings to one that exists, nor, unproven, any people. A sure one releases a report that was
held for that. Titles and authors that git or a lab has told stay.

Since mails are read in any order, `import_again` makes a report anew from all robot reports about its culprit: the
first sure one gives the headline, else the first proven one, else the first; the first proven one names the author.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bot.mail.addresses import Address
from bot.mail.settings import BotSettings
from bot.replies.reading import Reading
from bot.replies.which_report import person_keys
from bot.robot_reports.fields import Testing, machine_parts
from bot.robot_reports.report import RobotReport, clean_title
from bot.robot_reports.tables import Impact, ReportRow, ReportTable
from tracker.domain.archived_reports import FailedRuns, KeptTable, TableRow, pack
from tracker.domain.events import EventKind, Verdict
from tracker.models import Commit, Decision, Finding, Report, Suggestion
from tracker.services import catalog
from tracker.services.accounts import is_of_a_person
from tracker.services.report_summary import clipped

_LONGEST = 400  # characters of a name
_DOUBTFUL = "the robot's report is doubtful: "
_UNVERIFIED = "not verified: "
UNVERIFIED = "nothing proves that the robot sent it"


@dataclass(frozen=True, slots=True)
class Imported:
    """The report of a culprit after a robot's report was added to it."""

    report: Report
    repeated: bool  # its culprit was reported before
    released: bool = False  # it was held for a doubtful report, which no longer counts
    changed: bool = False  # what the replies to it mean may have changed


def basis(report: Report) -> tuple[object, ...]:
    """Return what the meaning of a reply depends on: whom its writer is among, and what the report is about."""
    culprit = report.culprit
    people = (report.authors, report.recipients, report.people_verified, culprit.author_email, culprit.author_name)
    return (*people, report.verdict, report.title)


def report_for(reading: Reading, robot_report: RobotReport, settings: BotSettings, *, proven: bool) -> Imported:
    """Return the culprit's report with this mail's findings.

    A mail with inconsistencies, or of a sender that is not verified, creates a held report, and adds nothing to an
    existing one: no people, no findings. A mail without any releases a report that was held for that, and replaces its
    people; the caller lets `import_again` replace the rest.
    """
    mail = reading.mail
    culprit = None if proven else catalog.known_commit(robot_report.culprit)
    if culprit is None:
        culprit = catalog.commit_for(robot_report.culprit, title=clean_title(robot_report))
    before = Report.objects.filter(culprit=culprit.reported_as).first()
    known_basis = basis(before) if before else ()
    is_empty = before is not None and not (before.messages.exists() or before.results.exists())
    if before and not proven:
        # A person may have accepted that the robot sent this mail.
        accepted = Suggestion.objects.filter(report=before, message_id=mail.message_id, decision=Decision.ACCEPTED)
        accepted = accepted.filter(kind=EventKind.REPORTED)
        if is_empty and (is_provisional(before) or accepted.exists()):  # in the middle of a replay
            add_findings(before, robot_report)
        return Imported(before, repeated=not is_empty)
    if before and not before.people_verified:
        before.authors, before.recipients, before.people_verified = [], [], True
        before.save(update_fields=["authors", "recipients", "people_verified"])
        _set_title(culprit, clean_title(robot_report))
    if is_empty:
        before = None
    sure = proven and not robot_report.unsure
    authors, people = _people(reading, settings)
    report = catalog.report_for(
        culprit,
        Verdict(robot_report.verdict),
        title=mail.subject,
        subsystem=robot_report.subject.subsystem,
        tree=catalog.tree_for(robot_report.subject.tree),
        branch=robot_report.subject.branch,
        authors=person_keys(authors),
        recipients=person_keys(people),
    )
    if proven and not culprit.author_email:
        _set_author(culprit, authors)
    released = sure and is_provisional(report)
    if not sure and before is None:
        report.held = _reason(robot_report, proven=proven)
        report.people_verified = proven
        report.save(update_fields=["held", "people_verified"])
    if released:
        report.held = ""
        report.save(update_fields=["held"])
    if sure or before is None:
        add_findings(report, robot_report)
    return Imported(report, before is not None, released, changed=before is not None and basis(report) != known_basis)


def import_again(report: Report, reports: Sequence[tuple[RobotReport, bool, Reading]], settings: BotSettings) -> None:
    """Replace what a culprit's report has from mail by what these robot reports say, each with its mail and whether it
    is proven. The first one that is proven and has no inconsistencies gives the headline, else the first that is
    proven, else the first; the first one that is proven names the author. While none is sure, the report is held.
    """
    proven = [entry for entry in reports if entry[1]]
    if proven:
        _set_author(report.culprit, _people(proven[0][2], settings)[0])
    sure = [entry for entry in proven if not entry[0].unsure]
    chosen = sure or proven[:1] or list(reports[:1])
    if chosen and not sure and is_provisional(report):
        robot_report, _, reading = chosen[0]
        report.held = _reason(robot_report, proven=bool(proven))
        if not proven:  # its people are those that this one names
            authors, people = _people(reading, settings)
            report.authors, report.recipients = sorted(set(person_keys(authors))), sorted(set(person_keys(people)))
        report.save(update_fields=["held", "authors", "recipients"])
        _set_title(report.culprit, clean_title(robot_report))
    report.findings.filter(result=None).delete()
    if chosen and not report.results.exists():
        robot_report, _, reading = chosen[0]
        subject, title = robot_report.subject, reading.mail.subject
        report.verdict, report.title, report.subsystem = robot_report.verdict, title, clipped(subject.subsystem)
        report.tree, report.branch = catalog.tree_for(subject.tree), subject.branch
        report.save(update_fields=["verdict", "title", "subsystem", "tree", "branch"])
    for robot_report, *_ in chosen:
        add_findings(report, robot_report)


def is_provisional(report: Report) -> bool:
    """Whether a report is held since no robot's report about its culprit is sure."""
    return report.held.startswith((_DOUBTFUL, _UNVERIFIED))


def packed(robot_report: RobotReport) -> bytes:
    """Return all its tables, as they are stored with its mail."""
    tables = []
    for table in robot_report.tables:
        rows = (
            TableRow(row.name, row.old.mean, row.old.stddev_pct, row.change, row.new.mean, row.new.stddev_pct)
            for row in table.rows
            if math.isfinite(row.old.mean) and math.isfinite(row.new.mean)
        )
        fails = (FailedRuns(fail.name, fail.old, fail.change, fail.new) for fail in table.fails)
        test = ", ".join(f"{name}={value}" for name, value in table.axes) or table.axes_text
        old, new = table.commits[0].name, table.commits[1].name
        tables.append(KeptTable(test[:2000], old, new, tuple(rows), tuple(fails)))
    return pack(tables)


def add_findings(report: Report, robot_report: RobotReport) -> None:
    """Add the headline finding of a robot's report, and findings for the other changes that it lists."""
    parent = (
        catalog.commit_for(robot_report.parent, title=robot_report.tables[0].commits[0].title)
        if robot_report.parent
        else None
    )
    changes: list[tuple[RobotReport | Impact, Testing | Impact, ReportTable | None, ReportRow | None]] = [
        (robot_report, robot_report.test, robot_report.head, robot_report.row)
    ]
    for impact, pair in zip(robot_report.additional, robot_report.impact_rows, strict=True):
        changes.append((impact, impact, *(pair or (None, None))))
    for change, test, table, row in changes:
        headline = change is robot_report
        name = table.machine if table else ""  # the lab's; without it, the description has to do
        parts = machine_parts(test.machine)
        old, new = (row.old, row.new) if row else (None, None)
        catalog.add_finding(
            Finding(
                report=report,
                metric=catalog.metric_for(change.metric),
                # Parameters go by name: reports give them in different orders, and any may be read first.
                scenario=catalog.scenario_for(change.suite[:_LONGEST], dict(sorted(test.parameters))),
                machine=catalog.machine_for(
                    (name or test.machine)[:_LONGEST],
                    description=test.machine,
                    cpus=parts.threads,
                    sockets=parts.sockets,
                    cpu_model=parts.cpu,
                    codename=parts.codename,
                ),
                parent=parent,
                base=robot_report.base,
                headline=headline,
                verdict=change.verdict,
                change_pct=change.change_pct,
                change_pct_raw=robot_report.change_pct_raw if headline else row.change_pct if row else None,
                # A table may print inf.
                old_mean=old.mean if old and math.isfinite(old.mean) else None,
                old_stddev_pct=old.stddev_pct if old else None,
                new_mean=new.mean if new and math.isfinite(new.mean) else None,
                new_stddev_pct=new.stddev_pct if new else None,
            )
        )


def _reason(robot_report: RobotReport, *, proven: bool) -> str:
    return _DOUBTFUL + "; ".join(robot_report.unsure) if proven else _UNVERIFIED + UNVERIFIED


def _set_title(culprit: Commit, title: str) -> None:
    """Replace the title that an unproven report gave, unless git or a lab has told the commit itself."""
    if title and culprit.title != title and culprit.authored_at is None:
        culprit.title = title
        culprit.save(update_fields=["title"])


def _set_author(culprit: Commit, to: Sequence[Address]) -> None:
    """Store whom a report was sent to as the author of its culprit, until git or a lab says who that is.

    The robot writes To the author alone, and Cc everybody else (seen in all 56 reports of 2019-2026).
    """
    is_known = culprit.author_email and not culprit.author_from_report
    if is_known or len(to) != 1 or not is_of_a_person(to[0].email):
        return
    culprit.author_name, culprit.author_email, culprit.author_from_report = to[0].name[:300], to[0].email, True
    culprit.save(update_fields=["author_name", "author_email", "author_from_report"])


def _people(reading: Reading, settings: BotSettings) -> tuple[list[Address], list[Address]]:
    """Return the authors and all recipients of a robot's report. Of a proven mail, only those whom it signed."""
    mail, trust = reading.mail, reading.trust
    to = mail.to if trust.covers("to") or not trust.proven else ()
    cc = mail.cc if trust.covers("cc") or not trust.proven else ()
    authors, others = ([address for address in group if address.email not in settings.robots] for group in (to, cc))
    return authors, authors + others
