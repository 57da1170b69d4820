"""Match a mail to tracked reports: by its thread, its links, the addresses it was sent to."""

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
    """What reading mail needs to know of a tracked report. `authors` None: unknown.

    People are listed by address and by name, as `person_keys` returns them.
    """

    id: str
    culprit: str
    title: str
    message_ids: tuple[str, ...]
    authors: frozenset[str] | None = None
    people: frozenset[str] = frozenset()
    verdict: str = Verdict.REGRESSION

    def standpoint(self, reading: Reading, relation: Relation, identity: BotIdentity) -> Standpoint:
        """Return how a mail relates to this report. A name proves nothing, since anyone can write under it."""
        improvement = self.verdict == Verdict.IMPROVEMENT
        author = reading.mail.author.email
        known = identity.aliases.of(author) & ((self.authors or frozenset()) | self.people)
        by_address = bool(known) or identity.speaks_for_lab(author)
        return Standpoint(relation, self.role_of(reading, identity), improvement, self.culprit, by_address)

    def role_of(self, reading: Reading, identity: BotIdentity) -> Role | None:
        """Return the writer's role in this report: author, maintainer (a recipient), lab, machine or third party.

        None if the report's people are unknown.
        """
        author = reading.mail.author
        if reading.kind in (SenderKind.SELF, SenderKind.BOT_OPERATOR) or author.email in identity.operators:
            return Role.REPORTER
        if reading.kind is not SenderKind.PERSON:
            return Role.MACHINE
        if self.authors is None:
            return None
        author_keys = {*person_keys([author]), *identity.aliases.of(author.email)}
        if author_keys & self.authors:
            return Role.AUTHOR
        return Role.MAINTAINER if author_keys & self.people else Role.THIRD_PARTY


def person_keys(addresses: Iterable[Address]) -> list[str]:
    """Return the addresses of people, and their full names in lower case.

    One in three authors replies from an address other than the one in the commit (seen in 2020-2025 threads).
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
    """The tracked reports by every key that mail can name. Grows as mail is filed."""

    reports: dict[str, KnownReport] = field(default_factory=dict)
    by_message: dict[str, str] = field(default_factory=dict)

    def add(self, report: KnownReport) -> None:
        """Add or update a report."""
        self.reports[report.id] = report
        for message_id in report.message_ids:
            self.by_message[message_id] = report.id

    def file(self, message_id: str, report_id: str) -> None:
        """Record that a mail is in a report's thread, and so are the replies to it."""
        if message_id:
            self.by_message.setdefault(message_id, report_id)

    def file_under(self, message_id: str, report_id: str) -> None:
        """Move a mail to another report's thread."""
        self.by_message[message_id] = report_id

    def thread_of(self, reading: Reading) -> str:
        """Return the report whose thread the mail is in, nearest ancestor first; "" for none."""
        message_ids = (*reading.mail.ancestors, reading.mail.message_id, *reading.bounce.message_ids)
        return next((self.by_message[each] for each in message_ids if each in self.by_message), "")

    def relations(self, reading: Reading) -> dict[str, Relation]:
        """Return the reports that a mail is about, and how: by +tag, Closes:, thread or link."""
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
        """Yield the reports whose culprit the patch says it fixes or reverts."""
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
