"""`explain [FILE…]`: print what the bot concludes from raw mail, as JSON Lines.

One line per mail, in input order.
"""

import json
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from bot.archives.sources import open_sources
from bot.config import bot_identity, identity_without_keys
from bot.explain import explain
from bot.git.repository import Unreadable
from bot.management import data_error, no_input
from bot.replies.which_report import KnownReport
from tracker.domain.events import Role

_ROLES = (Role.AUTHOR, Role.MAINTAINER, Role.REPORTER, Role.THIRD_PARTY)


class Command(BaseCommand):
    help = "Explain how a mail, an mbox or - (standard input) is read. Uses no database, except with --tracked."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="*", default=["-"], metavar="FILE")
        parser.add_argument(
            "--known", metavar="FILE", help='known reports: [{"id", "message_id", "culprit", "title", "roles"}]'
        )
        parser.add_argument("--tracked", action="store_true", help="also use the reports in the database")
        parser.add_argument("--rows", action="store_true", help="also print every row of a report's tables")
        parser.add_argument("--why", action="store_true", help="also print the reasons for each effect")

    def handle(
        self, *, files: list[str], known: str | None, tracked: bool, rows: bool, why: bool, **options: Any
    ) -> None:
        reports = [*(known_reports(Path(known)) if known else ()), *(tracked_reports() if tracked else ())]
        try:
            sources = [source for file in files for source in open_sources(file)]
            mails = (mail.raw for source in sources for mail in source.mails("", source.goal()))
            settings = bot_identity() if tracked else identity_without_keys()
            for explanation in explain(mails, settings, reports, rows=rows, why=why):
                self.stdout.write(json.dumps(explanation, ensure_ascii=False))
        except (Unreadable, OSError) as error:
            raise no_input(str(error)) from None


def known_reports(path: Path) -> list[KnownReport]:
    """Return the reports of a --known file; CommandError if it is invalid."""
    try:
        return [_known_report(entry) for entry in json.loads(path.read_text())]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise data_error(
            f'{path}: expected [{{"id", "message_id", "culprit", "title", "roles"}}, …]: {type(error).__name__} {error}'
        ) from None


def _known_report(entry: dict[str, Any]) -> KnownReport:
    """Return an entry of a --known file. `roles` gives the role of each address (or full name); without it
    nobody's role is known, and with it who is not in it is a third party.
    """
    report = KnownReport(
        id=entry["id"],
        culprit=entry.get("culprit") or "",
        title=entry.get("title") or "",
        message_ids=(entry["message_id"].strip("<> "),),
    )
    if "roles" not in entry:
        return report
    people: dict[str, set[str]] = {role: set() for role in _ROLES}
    for person, role in entry["roles"].items():
        if role not in people:
            raise ValueError(f"the role of {person} is one of {', '.join(people)}, not {role!r}")
        people[role].add(person.strip().lower())
    return replace(
        report,
        authors=frozenset(people[Role.AUTHOR]),
        people=frozenset(people[Role.MAINTAINER]),
        reporters=frozenset(people[Role.REPORTER]),
    )


def tracked_reports() -> list[KnownReport]:
    """Return the reports in the database."""
    from tracker.models import Message, Report

    ids: dict[str, list[str]] = {}
    for message_id, tag in Message.objects.values_list("message_id", "report__tag"):
        ids.setdefault(tag, []).append(message_id)
    return [
        KnownReport(
            id=report.tag,
            culprit=report.culprit.sha,
            title=report.culprit.title,
            message_ids=tuple(ids.get(report.tag, ())),
            authors=frozenset(report.authors),
            people=frozenset(report.recipients),
            verdict=report.verdict,
        )
        for report in Report.objects.select_related("culprit")
    ]
