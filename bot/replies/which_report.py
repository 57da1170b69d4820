"""Which reports a mail is about: by its thread, its links, the addresses it was sent to.

A relation is how a mail refers to a report: by the tag in our address, `Closes:`, its thread, a link, or a patch that
fixes or reverts the culprit. An answer belongs to the report of its nearest known ancestor, else to the one whose
culprit its subject or its quotes name. People are known by address and full name, since one in three authors replies
from an address other than the commit's; but a name proves nothing.

What stands around a report need not speak to the regression. A patch that closes a report has a thread of its own,
whose review, next versions and backports are about the patch: of 74 patches filed under reports in a whole archive,
63 were not fixes (judged by hand). There a mail counts only if its own words name the regression, and a patch is a
candidate only if the writer says that it cures it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from bot.mail.addresses import Address
from bot.mail.patches import MailLink, is_answer, is_posting, posted_title
from bot.mail.settings import BotSettings
from bot.replies.gate import About
from bot.replies.reading import Reading, SenderKind, culprit_in
from bot.replies.rules import RULES
from bot.replies.rules.notation import MailContext, Relation
from tracker.domain.events import Role, Verdict

# --- Reports and threads ---


class Thread(StrEnum):
    """The thread that a mail is in, and so are the answers to it."""

    REPORT = "report"  # answers to the report
    FIX = "fix"  # a patch that closes the report, or names its culprit, and the answers to that patch
    PATCH = "patch"  # a patch that links to the report
    NONE = ""  # a mail elsewhere, the answers to which do not concern us


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
    verified: frozenset[str] | None = None  # those of them that nobody can have made up; None: all
    benchmark: str = ""
    # Who reported it, if a person did; they have no rights beyond their own words
    reporters: frozenset[str] = frozenset()
    unnamed: bool = False  # whether the mail that reported it names no culprit
    joined: bool = False  # whether a lab, or others, report it, too: then no reporter takes it back alone

    def is_culprit(self, sha: str) -> bool:
        """Whether a sha names the culprit, whichever of the two is abbreviated."""
        return bool(self.culprit and sha) and (self.culprit.startswith(sha) or sha.startswith(self.culprit))

    def role_of(self, reading: Reading, settings: BotSettings) -> Role | None:
        """Return the writer's role in this report: author, maintainer (a recipient, or by git a signer or maintainer of
        the culprit), lab, machine or third party.

        None if the report's people are unknown.
        """
        author = reading.mail.author
        if reading.kind in (SenderKind.SELF, SenderKind.BOT_OPERATOR) or author.email in settings.operators:
            return Role.REPORTER
        if reading.kind is not SenderKind.PERSON:
            return Role.MACHINE
        author_keys = {*person_keys([author]), *settings.aliases.of(author.email)}
        if self.reporters and settings.aliases.of(author.email) & self.reporters:
            return Role.REPORTER
        if author_keys & self.reporters:
            return Role.THIRD_PARTY  # by name alone, which anybody can write under
        if self.reporters and not author_keys & self.people.union(self.authors or ()):
            return Role.THIRD_PARTY if speaks_as_user(reading) else None  # who answers a user is mostly a developer
        if self.authors is None:
            return None
        if author_keys & self.authors:
            return Role.AUTHOR
        return Role.MAINTAINER if author_keys & self.people else Role.THIRD_PARTY

    def knows(self, address: str, settings: BotSettings) -> bool:
        """Whether an address is that of somebody of the report. A name proves nothing: anyone can write under it."""
        people = (self.authors or frozenset()) | self.people if self.verified is None else self.verified
        if self.verified is None and not self.joined:
            people |= self.reporters
        return bool(settings.aliases.of(address) & people) or settings.speaks_for_lab(address)


def speaks_as_user(reading: Reading) -> bool:
    """Whether somebody says that they have the same trouble, or have tried a patch: another user, and no developer."""
    rule = next(rule for rule in RULES if rule.name == "user_sees_it_too")
    return not reading.patches and any(rule.matches(sentence) for sentence in reading.sentences[:_MOST_READ])


def person_keys(addresses: Iterable[Address]) -> list[str]:
    """Return the addresses of people, and their full names in lower case.

    One in three authors replies from an address other than the one in the commit (seen in 2020-2025 threads).
    """
    keys: list[str] = []
    for address in addresses:
        keys.append(address.email)
        name = " ".join(re.sub(r"[^\w\s'-]", " ", address.name).split()).lower()
        if " " in name and "@" not in address.name:
            keys.append(name)
    return keys


_MOST_READ = 100  # sentences
_RELATIONS = {
    Thread.REPORT: Relation.THREAD,
    Thread.FIX: Relation.FIX_THREAD,
    Thread.PATCH: Relation.PATCH_THREAD,
}
_WEAKER = (Relation.LINK, Relation.FIX_THREAD, Relation.PATCH_THREAD)  # than naming the culprit


@dataclass(slots=True)
class KnownReports:
    """The tracked reports by every key that mail can name. Grows as mail is filed."""

    reports: dict[str, KnownReport] = field(default_factory=dict)
    by_message: dict[str, str] = field(default_factory=dict)  # the mails of reports' threads
    around: dict[str, tuple[str, Thread]] = field(default_factory=dict)  # the mails of patches' threads
    ours: set[str] = field(default_factory=set)  # mails that we sent, and the lab's

    def add(self, report: KnownReport) -> None:
        """Add or update a report."""
        self.reports[report.id] = report
        for message_id in report.message_ids:
            self.by_message[message_id] = report.id

    def file(self, message_id: str, report_id: str, thread: Thread = Thread.REPORT) -> None:
        """Record the thread that a mail is in, as `thread_for` returns it."""
        if not message_id:
            return
        self.forget(message_id)
        if thread is Thread.REPORT:
            self.by_message[message_id] = report_id
        elif thread is not Thread.NONE:
            self.around[message_id] = (report_id, thread)

    def forget(self, message_id: str) -> None:
        """Take a mail out of its thread."""
        self.by_message.pop(message_id, None)
        self.around.pop(message_id, None)

    def thread_of(self, reading: Reading) -> str:
        """Return the report that the mail answers, transitively; "" for none."""
        report, thread = self._answered(reading)
        return report if thread is Thread.REPORT else ""

    def _answered(self, reading: Reading) -> tuple[str, Thread]:
        """Return the report that the nearest known ancestor is filed under, and the thread it is in.

        Without one, the report whose culprit the mail's subject or its quotes name.
        """
        for message_id in (*reading.mail.ancestors, *reading.bounce.message_ids):
            if message_id in self.by_message:
                return self.by_message[message_id], Thread.REPORT
            if message_id in self.around:
                return self.around[message_id]
        if culprit := reading.answered_culprit:
            named = (candidate.id for candidate in self.reports.values() if candidate.is_culprit(culprit))
            if report := next(named, ""):
                return report, Thread.REPORT
        own = self.by_message.get(reading.mail.message_id, "")  # such as our own mail, which is known before it is read
        return (own, Thread.REPORT) if own else ("", Thread.NONE)

    def thread_for(self, reading: Reading, report_id: str, relation: Relation) -> Thread:
        """Return the thread that the answers to a mail are in, as far as they are about this report."""
        if relation in (Relation.TAG, Relation.THREAD) or self.thread_of(reading) == report_id:
            return Thread.REPORT
        if relation in (Relation.CLOSES, Relation.CULPRIT, Relation.FIX_THREAD):
            return Thread.FIX
        posted = reading.patches or is_posting(reading.mail.subject)  # a cover letter has no diff
        return Thread.PATCH if posted or relation is Relation.PATCH_THREAD else Thread.NONE

    def relations(self, reading: Reading) -> dict[str, Relation]:
        """Return the reports that a mail is about, and how: by +tag, Closes:, thread or link.

        Only links to the mails of a report's own thread count: a commit links to its own posting, too.
        """
        by_report: dict[str, Relation] = {}
        for tag in reading.tags:
            if tag in self.reports:
                by_report[tag] = Relation.TAG
        for report_id in self._targets(reading.closes):
            by_report.setdefault(report_id, Relation.CLOSES)
        answered, thread = self._answered(reading)
        if thread is not Thread.NONE:
            by_report.setdefault(answered, _RELATIONS[thread])
        for report_id in self._targets(reading.links):
            by_report.setdefault(report_id, Relation.LINK)
        shas, titles = reading.named_commits, reading.named_titles
        if reading.kind is SenderKind.PERSON and (shas or titles):
            for report in self.reports.values():
                # A commit that was rebased has another sha in each tree, and the same title.
                is_named = any(map(report.is_culprit, shas)) or bool(report.title and report.title in titles)
                if is_named and by_report.get(report.id, Relation.LINK) in _WEAKER:
                    by_report[report.id] = Relation.CULPRIT
        return by_report

    def context(self, reading: Reading, report_id: str, relation: Relation, settings: BotSettings) -> MailContext:
        """Return how a mail relates to one of the reports that `relations` returned."""
        report = self.reports[report_id]
        return MailContext(
            relation,
            role=report.role_of(reading, settings),
            improvement=report.verdict == Verdict.IMPROVEMENT,
            culprit=report.culprit,
            by_address=report.knows(reading.mail.author.email, settings),
            about=self._about(reading, report_id, relation),
            title=report.title,
            benchmark=report.benchmark,
            reporters=report.reporters,
            unnamed=report.unnamed,
            authors=frozenset(key.partition(" ")[0] for key in report.authors or () if "@" not in key),
        )

    def _about(self, reading: Reading, report_id: str, relation: Relation) -> About:
        """Return where what is signed leads: to the report by a tag in To or Cc, a line of the body, the subject, or
        the thread.

        Mail servers and whoever resends a mail write Delivered-To, Bcc and the like, and headers that are not signed.
        A thread counts if all of it that is known belongs to the report, and if it names a mail of ours or the robot's
        report: anybody can put a mail of theirs into the thread, under an id that somebody answered elsewhere.
        """
        mail, trust = reading.mail, reading.trust
        if report_id in reading.signed_tags:
            return About.HERE
        if reading.others is not None:
            variants = (reading, *reading.others)
            if all(report_id in self._targets(variant.closes) for variant in variants):
                return About.HERE
        named = culprit_in(mail.subject) if trust.covers("subject") and not mail.ancestors else ""
        if self.reports[report_id].is_culprit(named):
            return About.HERE
        answered = (
            *(mail.in_reply_to if trust.covers("in-reply-to") else ()),
            *(mail.references if trust.covers("references") else ()),
        )
        report_ids = {self.by_message[message_id] for message_id in answered if message_id in self.by_message}
        # A notice answers a fix.
        report_ids |= {self.around[message_id][0] for message_id in answered if message_id in self.around}
        if report_ids == {report_id}:
            ours = self.ours.union(self.reports[report_id].message_ids)
            return About.UNSIGNED if ours.isdisjoint(answered) else About.HERE
        # Where the thread is signed, it is another one. Where it is not (as by intel.com and suse.cz), nobody knows.
        # Nor where a mail that answers nothing quotes this report.
        quotes_it = not mail.ancestors and self.reports[report_id].is_culprit(reading.answered_culprit)
        elsewhere = not quotes_it and (relation is Relation.TAG or trust.covers("in-reply-to", "references"))
        return About.ELSEWHERE if elsewhere or report_ids else About.UNSIGNED

    def _targets(self, links: Iterable[MailLink]) -> Iterator[str]:
        """Yield the reports that links lead to: to a mail of their threads, or to a page of ours."""
        for link in links:
            report_id, page = self.by_message.get(link.message_id, ""), link.page
            if not report_id and page:
                named = (report.id for report in self.reports.values() if report.is_culprit(page))
                report_id = page if page in self.reports else next(named, "")
            if report_id:
                yield report_id


# --- About the regression, or beside it? ---

CONTEXT = frozenset({Relation.FIX_THREAD, Relation.PATCH_THREAD})
_BRACKETS = re.compile(r"\[([^\]]{0,100})\]")
# "[PATCH 6.6.y 3/7]", "[PATCH AUTOSEL 5.10 04/11]", "[PATCH OLK-5.10]"; "for-6.7" and "6.7-rc2" name a coming release.
_BACKPORT = re.compile(
    r"\b(?:AUTOSEL|stable|backport|OLK|openEuler)\b|(?<![\w.-])v?[2-9]\.\d{1,2}(?:\.y)?(?![\w.-])", re.I
)
# What is sent when a stable tree takes a patch, or fails to: the fix is an old one.
_STABLE_NOTE = re.compile(
    r'(?:re: )?(?:failed: )?patch ".{1,300}" (?:has been added|failed to apply) to (?:the )?\S+ tree', re.I
)
_SERIES = re.compile(r"\b\d{1,3}/0*([1-9]\d{0,2})\b")
_SPEAKS = re.compile(r"\bregress|\b(?:kernel )?test robot\b|\b0-?day\b|\blkp\b", re.I)
_CURE = r"(?:fix|solv|resolv|address|eliminat|cur|recover|restor|mitigat|reduc|alleviat|avoid|remov)(?:e|es|ed|ing|s)?"
# A word with what precedes it in the sentence. Possessive, and no character may belong to either: else a row of dashes
# is taken apart in all ways.
_WORD = r"[^\w.;%]++(?!no\b|not\b)[\w%]++(?:[.-](?!regress)[\w%]++)*+"
# "This fixes the regression", "the regression is gone", "to recover the 25% will-it-scale regression".
_CURES = re.compile(
    rf"\b{_CURE}\b(?:{_WORD}){{0,8}}?\W+regress\w*"
    rf"|\bregress\w*(?:{_WORD}){{0,6}}?\W+(?:gone|disappear(?:s|ed)?|{_CURE})\b",
    re.I,
)
_LONGEST = 50_000  # characters of a mail that are searched


def concerns(reading: Reading, context: MailContext) -> bool:
    """Whether the writer's own words name the regression, who reported it, or what was measured."""
    text = reading.own_text[:_LONGEST]
    name = context.benchmark
    return bool(_SPEAKS.search(text) or (len(name) > 2 and re.search(rf"\b{re.escape(name)}\b", text, re.I)))


def cures(reading: Reading) -> bool:
    """Whether the writer says that a regression is cured."""
    return _CURES.search(" ".join(reading.own_text[:_LONGEST].split())) is not None


def is_backport(subject: str) -> bool:
    """Whether a subject says that the patch goes to a stable tree, or to a distribution's."""
    if _STABLE_NOTE.match(subject):
        return True
    brackets = _BRACKETS.findall(subject[:300])
    return any(_BACKPORT.search(bracket) for bracket in brackets if "regress" not in bracket.lower())


def is_in_series(subject: str) -> bool:
    """Whether a mail posts one patch of several, "[PATCH v3 2/5]"; an answer to such a posting does not."""
    if is_answer(subject):
        return False
    matches = (_SERIES.search(bracket) for bracket in _BRACKETS.findall(subject[:300]))
    return any(match and int(match[1]) > 1 for match in matches)


def is_candidate_fix(reading: Reading, context: MailContext) -> bool:
    """Whether the patch in a mail is a candidate fix of a report.

    Never a backport, whatever it carries; the culprit itself, in an earlier or a later version, and patches around the
    report, only if the writer says that they cure the regression.
    """
    subject = reading.mail.subject
    if is_backport(subject):
        return False
    title = reading.patch_title or posted_title(subject)
    if (context.title and title == context.title) or context.relation in CONTEXT:
        return cures(reading)
    improves = context.improvement and context.relation is Relation.CULPRIT  # it may fix anything but a slowdown
    if improves or (context.relation is Relation.THREAD and is_in_series(subject)):
        return concerns(reading, context)
    return context.relation is not Relation.LINK or cures(reading)
