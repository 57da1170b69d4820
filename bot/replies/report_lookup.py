"""Which reports a mail belongs to: by the thread it stands in, by what it links to, by its address."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bot.mail.addresses import Address
from bot.mail.identity import BotIdentity
from bot.mail.links import MailLink
from bot.replies.effect import Relation, Standpoint
from bot.replies.reading import Reading
from bot.replies.sender_kind import SenderKind
from tracker.domain.events import Role, Verdict


@dataclass(frozen=True, slots=True)
class KnownReport:
    """A tracked report as far as reading mail needs it. `authors` None: nobody told us who they are.

    People are known by address and by name, as `known_as` writes them.
    """

    id: str
    culprit: str
    title: str
    message_ids: tuple[str, ...]
    authors: frozenset[str] | None = None
    people: frozenset[str] = frozenset()
    verdict: str = Verdict.REGRESSION

    def standpoint(self, reading: Reading, relation: Relation, identity: BotIdentity) -> Standpoint:
        """What a mail is to this report. A name proves nobody: anyone may write under it from an address of his own."""
        improvement = self.verdict == Verdict.IMPROVEMENT
        author = reading.mail.author.email
        known = identity.aliases.of(author) & ((self.authors or frozenset()) | self.people)
        by_address = bool(known) or identity.speaks_for_lab(author)
        return Standpoint(relation, self.role_of(reading, identity), improvement, self.culprit, by_address)

    def role_of(self, reading: Reading, identity: BotIdentity) -> Role | None:
        """What the writer is to this report: its author (by address), one it was sent to, the lab, or none of them.

        None where the report's people are not known.
        """
        author = reading.mail.author
        if reading.kind in (SenderKind.SELF, SenderKind.BOT_OPERATOR) or author.email in identity.operators:
            return Role.REPORTER
        if reading.kind is not SenderKind.PERSON:
            return Role.MACHINE
        if self.authors is None:
            return None
        called = {*known_as([author]), *identity.aliases.of(author.email)}
        if called & self.authors:
            return Role.AUTHOR
        return Role.MAINTAINER if called & self.people else Role.THIRD_PARTY


def known_as(addresses: Iterable[Address]) -> list[str]:
    """What people go by: their addresses, and their full names in lower case.

    One in three authors answers from another address than the one in his commit (seen in 2020-2025 threads).
    """
    found: list[str] = []
    for address in addresses:
        found.append(address.email)
        name = " ".join(re.sub(r"[^\w\s'-]", " ", address.name).split()).lower()
        if " " in name and "@" not in address.name:
            found.append(name)
    return found


@dataclass(slots=True)
class KnownReports:
    """The tracked reports by every key that mail may name them with. Grows as mail is filed."""

    reports: dict[str, KnownReport] = field(default_factory=dict)
    by_message: dict[str, str] = field(default_factory=dict)

    def add(self, report: KnownReport) -> None:
        """Track a report, or learn more of one."""
        self.reports[report.id] = report
        for message_id in report.message_ids:
            self.by_message[message_id] = report.id

    def file(self, message_id: str, report_id: str) -> None:
        """A mail is of a report's thread: answers to it are too."""
        if message_id:
            self.by_message.setdefault(message_id, report_id)

    def file_under(self, message_id: str, report_id: str) -> None:
        """A mail is of another report's thread than was thought."""
        self.by_message[message_id] = report_id

    def thread_of(self, reading: Reading) -> str:
        """The report in whose thread the mail stands, the nearest ancestor first; "" for none."""
        line = (*reading.mail.ancestors, reading.mail.message_id, *reading.bounce.message_ids)
        return next((self.by_message[each] for each in line if each in self.by_message), "")

    def relations(self, reading: Reading) -> dict[str, Relation]:
        """The reports that a mail is about, and how: of its +tags, its Closes:, its thread, and its links."""
        found: dict[str, Relation] = {}
        for tag in reading.tags:
            if tag in self.reports:
                found[tag] = Relation.TAG
        for report in self._targets(reading.closes):
            found[report] = Relation.CLOSES
        if thread := self.thread_of(reading):
            found.setdefault(thread, Relation.THREAD)
        for report in self._targets(reading.links):
            found.setdefault(report, Relation.LINK)
        if reading.kind is SenderKind.PERSON and reading.patches:
            for report in self._culprits(reading):
                if found.get(report, Relation.LINK) is Relation.LINK:
                    found[report] = Relation.CULPRIT
        return found

    def _culprits(self, reading: Reading) -> Iterator[str]:
        """The reports about commits that a patch says to fix or to revert."""
        fixes, title = reading.fixes, reading.reverts
        for report in self.reports.values() if fixes or title else ():
            named = any(report.culprit.startswith(sha) or sha.startswith(report.culprit) for sha in fixes)
            if (report.culprit and named) or (title and report.title == title):
                yield report.id

    def _targets(self, links: Iterable[MailLink]) -> Iterator[str]:
        for link in links:
            report = self.by_message.get(link.message_id, "") or self._by_page(link.page)
            if report:
                yield report

    def _by_page(self, page: str) -> str:
        if not page or page in self.reports:
            return page
        return next((each.id for each in self.reports.values() if each.culprit.startswith(page)), "")
