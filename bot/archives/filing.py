"""File one mail in the database, as a message and events: our own, a robot's report, or a reply.

`MailFiler` caches the reports that a batch may be about. It files a mail under the first report that it is about, and
turns what the mail says to each of its reports into events, or into suggestions that wait for a click. What a mail says
about mail of ours is recorded beside that: it was delivered, it bounced, or someone wants no more of it.

The same mails give the same rows in any order (DESIGN rule 11). So a proven mail replaces an unproven one under its
Message-ID, the earliest report of a culprit is the headline whichever was read first, proven ones before others, and
a mail is filed again when more is known. A signed mail that comes again under another Message-ID is known as a copy.
What people decided always stays, and what was erased on request does not come back.

If the culprit or the metric of a robot's report is uncertain, or its sender not verified, the event that it was
reported is a suggestion, and the report is held until that is accepted.
"""

import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Case, Q, When

from bot.archives import report_import
from bot.archives.known_reports import FiledMail, add_report, keys_of_culprit, load, names_in
from bot.archives.prefilter import key_of_commit, key_of_title
from bot.archives.sandbox import FILING_CPU, Sandbox, Unparsable
from bot.mail.authentication import AuthVerdict
from bot.mail.headers import message_ids
from bot.mail.limits import MAX_EFFECTS, MAX_REPORTS, OverLimit
from bot.mail.message import ParsedMail, parse
from bot.mail.patches import bare_title, find_links
from bot.mail.settings import BotSettings
from bot.notifications.answers import answer, answer_reporter
from bot.outbox import reconcile
from bot.replies import gate
from bot.replies.commands import BadCommand, Word
from bot.replies.effects import (
    COMMAND,
    COMMANDED,
    effects_of,
    events_of,
    in_mainline_event,
    reported_event,
    settled,
    speaker_of,
)
from bot.replies.person_report import OFFERED, is_commanded, read_report, subsystem_by_title_or_list
from bot.replies.reading import Reading, SenderKind, wish_of
from bot.replies.rules.notation import Effect, MailContext, Mode, Relation
from bot.replies.which_report import KnownReports, Thread, person_keys
from bot.robot_reports.fields import read_subject
from bot.robot_reports.report import RobotReport, find_report, is_proven
from tracker.domain.archived_reports import PersonReport
from tracker.domain.archived_reports import reported_event as person_report_event
from tracker.domain.commit_names import named_fix, named_sha, unquoted
from tracker.domain.events import ArchiveKind, EventData, EventKind, InvalidInput, Role, TreeRole, Verdict
from tracker.domain.text import is_a_lists_role, is_a_public_list
from tracker.models import (
    UNDECIDED,
    Correspondent,
    Decision,
    Event,
    LabJob,
    Message,
    OfferedReport,
    OutgoingMail,
    OutgoingState,
    RawMessage,
    Report,
    Suggestion,
)
from tracker.models.mail import PEOPLE
from tracker.services import catalog, event_log, person_reports, report_summary
from tracker.services.accounts import ERASED
from tracker.services.report_actions import SECOND_OPINION, UNVERIFIED_REPORT, check, named_person

log = logging.getLogger(__name__)
_SHA = re.compile(r"[0-9a-f]{7,64}\Z")
# Commands whose argument is meant to be shown, even in a mail that isn't public
_SHOWN = frozenset(
    {EventKind.NOTED, EventKind.RETITLED, EventKind.FIX_PROPOSED, EventKind.DUPLICATE, EventKind.ASSIGNED}
)
_OF_A_REPORT = frozenset({Role.AUTHOR, Role.MAINTAINER, Role.REPORTER})
MOST_REPORTS = 50  # of one culprit, that are compared
MOST_A_DAY = 5  # reports that the commands of one address open; further ones are offered
MOST_A_DAY_IN_ALL = 50  # those of all addresses
OPENING = frozenset({Word.REPORT, Word.INTRODUCED})
OF_A_PATCH = ":patch:"  # in the key of what all versions of a patch suggest
Made = tuple[int, str, bool]  # the report, the key, and whether it is an event or a suggestion


@dataclass(frozen=True, slots=True)
class Filed:
    """The result of filing a mail."""

    message_id: str = ""
    is_report: bool = False
    is_repeated: bool = False  # a report whose culprit was reported before
    is_reply: bool = False
    is_offer: bool = False  # a person seems to report a regression in it
    was_known: bool = False
    report: Report | None = None  # that it created or added to


class MailFiler:
    """Files mails one by one under the reports that a batch may be about, which it caches."""

    def __init__(self, settings: BotSettings, now: datetime) -> None:
        self.settings = settings
        self.sandbox = Sandbox(settings)
        self.now = now
        self.filed_now: set[str] = set()  # Message-IDs that were not known before
        self.moved_now: list[str] = []  # mails that went to another report, or to another of its threads
        self.opened_now: list[str] = []  # offers that commands made reports, whose threads are to be looked for
        self._touched: set[int] = set()  # reports with new events, which are to be folded
        self._with_new_mail: set[int] = set()  # reports with new mail
        self._changed: set[int] = set()  # reports of which something changed that a reply's meaning depends on
        self._has_offers = False  # new ones, which may be too many
        self._out_of_order: set[int] = set()  # reports whose headline is not the first mail that was read
        self.clear_cache()

    def clear_cache(self) -> None:
        """Empty the cache; `load_reports` loads from the database."""
        self.known = KnownReports()
        self._rows: dict[str, Report] = {}
        self._filed: dict[str, FiledMail] = {}  # by Message-ID
        self._bulletins: set[str] = set()  # our own mails that are about no report

    def load_reports(self, readings: Sequence[Reading]) -> None:
        """Load the reports that these mails may be about, with a few queries for all mails together."""
        self._filed |= load(self.known, self._rows, readings, self._bulletins)

    def refold(self) -> None:
        """Update the cached states; called once per batch."""
        if self._has_offers:
            person_reports.prune_offers()
            self._has_offers = False
        event_log.refold(self._touched)  # reports that were rolled back do not exist, and are not folded
        report_summary.refresh(self._touched | self._with_new_mail)
        self._touched.clear()
        self._with_new_mail.clear()

    def changed_reports(self) -> list[int]:
        """Choose the headlines of reports anew where that is needed: the earliest report of a culprit is its headline,
        whichever was read first. Return the reports whose replies must be read again, since their people, their verdict
        or their title changed.
        """
        for report in Report.objects.filter(pk__in=self._out_of_order).select_related("culprit").order_by("pk"):
            before = report_import.basis(report)
            # Proven ones go first, so that no number of forged ones keeps them out.
            unproven = Case(When(trust=AuthVerdict.PASS, then=0), default=1)
            mails = report.messages.exclude(tables=b"").select_related("source")
            chosen = mails.order_by(unproven, "sent_at", "message_id")[:MOST_REPORTS]
            entries = []
            for mail in sorted(chosen, key=lambda mail: (mail.sent_at, mail.message_id)):
                reading = self.sandbox.understand(mail.source.raw)
                if isinstance(reading, Exception):
                    continue  # it stays as it was read when it was filed
                self.sandbox.allow(FILING_CPU)
                try:
                    robot_report = self._report_in(reading)
                except (OverLimit, Unparsable):
                    continue  # the same
                if robot_report:
                    proven = is_proven(robot_report, reading, self.settings.trust_policy)
                    entries.append((robot_report, proven, reading))
            report_import.import_again(report, entries, self.settings)
            if report_import.basis(report) != before:
                self._changed.add(report.pk)
                add_report(self.known, self._rows, report)
        self._out_of_order.clear()
        changed = sorted(self._changed)
        self._changed.clear()
        return changed

    def missing_keys(self, reading: Reading) -> list[str]:
        """Return the keys that a mail names and we don't have: mails it answers or links to, the culprit whose report
        it answers, the commits and the title that its patch says it fixes or reverts.
        """
        mails = [name for name in names_in(reading) if name not in self.known.by_message]
        commits = [key_of_commit(reading.answered_culprit)] if reading.answered_culprit else []
        named = (command.argument.lower() for command in reading.commands.good if command.word is Word.DUP)
        commits += [key_of_commit(sha) for sha in named if _SHA.match(sha)]
        if reading.patches:
            commits += [key_of_commit(sha) for sha in reading.named_commits]
            commits += [key_of_title(title) for title in reading.named_titles]
        if commits:
            reports = self.known.reports.values()
            culprits = {key for report in reports for key in keys_of_culprit(report.culprit, report.title)}
            commits = [key for key in commits if key not in culprits]
        ignored = {reading.mail.message_id, *self._bulletins}
        return [name for name in (*mails, *(key.decode() for key in commits)) if name not in ignored]

    def is_of_a_bulletin(self, reading: Reading) -> bool:
        """Whether a mail is one of our bulletins, or answers one: it will never be about a report."""
        return not self._bulletins.isdisjoint(names_in(reading))

    def concerns(self, reading: Reading) -> bool:
        """Whether a mail is about a tracked report."""
        return bool(self.known.relations(reading))

    def file(self, reading: Reading, keep: Callable[[], RawMessage]) -> Filed:
        """File one mail after `load_reports`. `keep` stores its bytes, and is called first."""
        name = reading.mail.message_id
        if reading.kind is SenderKind.SELF:
            unsent = OutgoingMail.objects.filter(message_id=name).exclude(state=OutgoingState.SENT).first()
            if unsent and not reconcile.evaluate(unsent, reading, self.settings, self.now):
                return Filed()  # another mail in our name: the real one, which may come later, is not a duplicate
            if name in self._bulletins:
                return Filed()  # it names many reports and belongs to none, and so do replies to it
        if name in self._filed and not self._makes_way(reading, keep):
            if reading.trust.proven and self._filed[name].author != reading.mail.author.email:
                self._process_wish(reading, keep)  # a stranger may have used this Message-ID before
            return Filed(name, was_known=True)
        person_report = self._person_report_in(reading)
        if robot_report := self._report_in(reading):
            filed = self._file_report(reading, robot_report, keep())
        elif person_report and self._opens(reading, person_report, keep):
            filed = self._file_person_report(reading, person_report, keep())
        elif relations := (self.known.relations(reading) or self._open_parent(reading, keep)):
            filed = self._file_reply(reading, relations, keep())
        elif person_report and person_report.score >= OFFERED and self._is_public(reading, keep()):
            return self._offer(reading, person_report, keep())
        elif reading.kind is SenderKind.BOUNCE and reconcile.process_bounce(reading, self.settings, self.now):
            keep()  # of a bulletin, which belongs to no report
            filed = Filed(name)
        elif self._process_wish(reading, keep):
            filed = Filed(name)
        else:
            return Filed()
        self._filed[name] = FiledMail(reading.trust.verdict, reading.mail.author.email, reading.kind)
        self.filed_now.add(name)
        return filed

    def _process_wish(self, reading: Reading, keep: Callable[[], RawMessage]) -> bool:
        """Let somebody have no more mail, or mail again; return whether a mail asks for that."""
        if not wish_of(reading, self.settings):
            return False
        reconcile.process_wish(reading, self.settings, self.now, recent=_is_recent(reading, keep()))
        return True

    def _report_in(self, reading: Reading) -> RobotReport | None:
        if reading.mail.author.email not in self.settings.robots:
            return None
        return self.sandbox.call(find_report, reading.mail)

    # --- People's reports ---

    def _person_report_in(self, reading: Reading) -> PersonReport | None:
        if reading.mail.ancestors:  # an answer, as most are
            return None
        report = self.sandbox.call(read_report, reading)
        if report and Correspondent.objects.filter(address=reading.mail.author.email, note=ERASED).exists():
            return None
        return report

    def _opens(self, reading: Reading, report: PersonReport, keep: Callable[[], RawMessage]) -> bool:
        """Whether a mail is a person's report: somebody has accepted it, or a command in it says so, and may.

        What a command may not do is offered.
        """
        accepted = OfferedReport.objects.filter(message_id=reading.mail.message_id, decision=Decision.ACCEPTED)
        if (source := accepted.values_list("source", flat=True).first()) is not None:
            return source == keep().pk  # what was accepted is this mail, and no other under its Message-ID
        return is_commanded(reading, report) and self._may_open(reading, keep)

    def _may_open(self, reading: Reading, keep: Callable[[], RawMessage]) -> bool:
        """Whether the writer's command may make a mail a report: by the policy, and MOST_A_DAY times a day."""
        source, mail = keep(), reading.mail
        # Whatever way the body is read, the command must stand in it
        readings = reading.certain_with_any_blanks
        same_words = readings is not None and all(
            bool(OPENING & {command.word for command in one.commands.good}) for one in readings
        )
        public, recent = self._is_public(reading, source), _is_recent(reading, source)
        standing = gate.Standing(reading.trust, public=public, recent=recent, same_words=same_words)
        if not gate.permitted(gate.Caused.OPEN, standing, self.settings.trust_policy):
            return False
        if self.settings.trust_policy == "open":  # for old archives, with years of reports
            return True
        # By our clock, since a date is the writer's choice
        opened = OfferedReport.objects.filter(decided_at__gt=self.now - timedelta(days=1), decision=Decision.ACCEPTED)
        by_mail = opened.filter(decided_by__contains="@").exclude(message_id=mail.message_id)
        few = by_mail.filter(decided_by=mail.author.email).count() < MOST_A_DAY and by_mail.count() < MOST_A_DAY_IN_ALL
        return few and reading.trust.covers("subject") and not self._is_copy(reading)

    def _open_parent(self, reading: Reading, keep: Callable[[], RawMessage]) -> dict[str, Relation]:
        """File the offered mail that this one answers, if a command makes that a report; return what it is about."""
        words = {command.word for command in reading.commands.good if reading.may_command}
        if not words & OPENING or not reading.mail.parent:
            return {}
        offer = OfferedReport.objects.filter(message_id=reading.mail.parent).select_related("source").first()
        if offer is None or offer.decision == Decision.REJECTED or not self._may_open(reading, keep):
            return {}
        if offer.decision == Decision.OPEN:
            by = reading.mail.author.email
            OfferedReport.objects.filter(pk=offer.pk).update(
                decision=Decision.ACCEPTED, decided_by=by, decided_at=self.now
            )
        first = self.sandbox.understand(offer.source.raw)
        if isinstance(first, Exception):
            return {}
        person_report = self.sandbox.call(read_report, first)
        if person_report is None or Message.objects.filter(message_id=offer.message_id).exists():
            return {}
        self._file_person_report(first, person_report, offer.source)
        self.filed_now.add(offer.message_id)
        self.opened_now.append(offer.message_id)
        return self.known.relations(reading)

    def _as_offer(self, reading: Reading, report: PersonReport, source: RawMessage) -> dict[str, Any]:
        """Return the columns of a person's report in the review queue."""
        mail, trust = reading.mail, reading.trust
        to = mail.to if trust.covers("to") or not trust.proven else ()
        cc = mail.cc if trust.covers("cc") or not trust.proven else ()  # anybody can add one that is not signed
        others = [address for address in (*to, *cc) if address.email != mail.author.email]
        return {
            "message_id": mail.message_id,
            "source": source,
            "subject": mail.subject,
            "author_name": mail.author.name,
            "author_email": mail.author.email,
            "sent_at": _sent_at(mail, source.received_at),
            "reporters": person_keys([mail.author]),
            "recipients": person_keys(others),
            "subsystem": subsystem_by_title_or_list(report, mail),
            "proven": trust.proven,
            "score": report.score,
            "facts": report.stored(),
        }

    def _offer(self, reading: Reading, report: PersonReport, source: RawMessage, opened_by: str = "") -> Filed:
        """Keep a mail as an offer for the review queue, or as one that a command has made a report."""
        values = self._as_offer(reading, report, source)
        message_id = reading.mail.message_id
        decision = {"decision": Decision.ACCEPTED, "decided_by": opened_by, "decided_at": self.now}
        if opened_by:
            values |= decision
        row, made = OfferedReport.objects.get_or_create(message_id=message_id, defaults=values)
        # A Message-ID can be known, and used, before its mail arrives.
        makes_way = row.decision == Decision.OPEN and not row.proven and reading.trust.proven
        if not made and (row.source_id == source.pk or makes_way):
            decided = row.decision != Decision.OPEN
            kept = {name: value for name, value in values.items() if not (decided and name in decision)}
            OfferedReport.objects.filter(pk=row.pk).update(**kept)
        self._has_offers = self._has_offers or made
        return Filed(message_id, is_offer=True, was_known=not made)

    def _file_person_report(self, reading: Reading, person_report: PersonReport, source: RawMessage) -> Filed:
        """File the mail in which a person reports a regression: with their report, or with one of the same culprit."""
        self._offer(reading, person_report, source, opened_by=reading.mail.author.email)
        mail = OfferedReport(**self._as_offer(reading, person_report, source))
        report, own = person_reports.open_report(mail, person_report)
        event = person_report_event(person_report, mail.message_id, mail.sent_at)
        self._touched |= event_log.append([event_log.event_row(report, event, self.now, mail.subject)])
        add_report(self.known, self._rows, report)
        self._store(reading, report, source)
        if report.of_person and report.messages.count() > 1:
            self._changed.add(report.pk)  # whose report it is has changed, and so have the roles in its thread
        answer_reporter(reading, report, self.settings, self.now)
        return Filed(mail.message_id, is_report=True, is_repeated=not own, report=report)

    def _makes_way(self, reading: Reading, keep: Callable[[], RawMessage]) -> bool:
        """Forget an unproven mail, such as a damaged copy, for a proven one under its Message-ID; and a stranger's for
        that of somebody of the report, since a Message-ID can be known, and used, before its mail arrives.

        The same mail acts, in whichever order they come. False if the mail is to be treated as known.
        """
        name, author = reading.mail.message_id, reading.mail.author.email
        filed = self._filed[name]
        # Whoever sends a copy can add headers that nobody signed, and make an automatic reply of it.
        hidden = filed.kind not in PEOPLE and reading.kind in PEOPLE
        same = (filed.trust, filed.author) == (reading.trust.verdict, author)
        reads_more = hidden or (reading.kind in PEOPLE and _is_plain(reading.mail))
        pinned = reading.trust.covers("message-id")  # else an old mail of the same writer, under this id
        if not reading.trust.proven or (same and not reads_more and not pinned):
            return False
        if Message.objects.filter(message_id=name).exclude(source__erased_at=None).exists():
            return False  # what was erased on request does not come back
        if Event.objects.filter(message_id=name).exclude(actor="").exists():
            return False  # somebody has decided on this one, and on no other
        if LabJob.objects.filter(Q(asked_in=name) | Q(patch_mail=name)).exclude(allowed_by="").exists():
            return False  # somebody has looked at this patch, and at no other
        filed_before = Message.objects.filter(message_id=name).select_related("report", "source")
        before = filed_before.first()
        if before is None:
            return False
        if same and not reads_more and not before.signature:
            return False
        if same and not hidden and not (pinned and before.signature) and _is_plain(parse(before.source.raw)):
            return False
        if not filed_before.exclude(source=keep()).exists():
            return False  # the very same mail, which `replay` reads again
        if before.author_email != author and author not in self.settings.robots:
            # To prove one's own address takes nobody else's mail away, but for somebody of the report.
            report = self.known.reports.get(before.report.tag)
            theirs = report and before.trust == AuthVerdict.PASS and report.knows(before.author_email, self.settings)
            if theirs or not self._is_of_a_report(reading):
                return False
        events = Event.objects.filter(message_id=name, actor="")
        self._touched |= {before.report_id, *events.values_list("report", flat=True)}
        self._changed.add(before.report_id)  # the answers to it go where it goes
        event_log.forget_mail([name])
        self.known.forget(name)
        before.delete()
        return True

    def _is_of_a_report(self, reading: Reading) -> bool:
        """Whether a proven mail is by somebody of a report, known by address, and meant for that one."""
        if self._is_copy(reading):
            return False
        for tag, relation in self.known.relations(reading).items():
            context = self.known.context(reading, tag, relation, self.settings)
            if context.role in _OF_A_REPORT and context.by_address and context.about is gate.About.HERE:
                return True
        return False

    def _file_report(self, reading: Reading, robot_report: RobotReport, source: RawMessage) -> Filed:
        """File a robot's report: its culprit's report, its findings, and the event that it was reported; for a
        regression in the mainline also that the culprit landed there. If its culprit or its metric is uncertain, or its
        sender not verified, these are suggestions, and the report is held until that is accepted.
        """
        mail, subject = reading.mail, robot_report.subject
        proven = is_proven(robot_report, reading, self.settings.trust_policy)
        imported = report_import.report_for(reading, robot_report, self.settings, proven=proven)
        report = imported.report
        if imported.changed:
            self._changed.add(report.pk)
        add_report(self.known, self._rows, report)
        message = self._store(reading, report, source)
        Message.objects.filter(pk=message.pk).update(tables=report_import.packed(robot_report))
        latest = report.messages.exclude(tables=b"").order_by("-sent_at", "-message_id").first()
        if imported.released or (imported.repeated and (latest != message or report_import.is_provisional(report))):
            self._out_of_order.add(report.pk)
        at = _sent_at(mail, source.received_at)
        events = [reported_event(mail, at, ":".join(part for part in (subject.tree, subject.branch) if part))]
        tree = catalog.tree_for(subject.tree)
        # Where an improvement stands is for git to say: nobody waits for it.
        if tree and tree.role == TreeRole.MAINLINE and Verdict(robot_report.verdict) is not Verdict.IMPROVEMENT:
            events.append(in_mainline_event(mail, at))
        if robot_report.unsure or not proven:
            rule = "unsure_report" if proven else UNVERIFIED_REPORT
            reasons = (*robot_report.unsure, *(() if proven else (report_import.UNVERIFIED,)))
            effect = Effect(EventKind.REPORTED, Mode.SUGGEST, rule, quote="; ".join(reasons))
            for event in events:
                self._suggest(report, event, effect)
        else:
            rows = [event_log.event_row(report, event, self.now, mail.subject) for event in events]
            self._touched |= event_log.append(rows)
        return Filed(mail.message_id, is_report=True, is_repeated=imported.repeated, report=report)

    def _file_reply(self, reading: Reading, relations: Mapping[str, Relation], source: RawMessage) -> Filed:
        """File our own mail, a reply, or a mail elsewhere that names a report."""
        first_tag, first_relation = next(iter(relations.items()))
        self._store(reading, self._rows[first_tag], source, first_relation)
        if reading.kind is SenderKind.SELF:
            return Filed(reading.mail.message_id)  # its delivery evidence is recorded already
        # Take what a mail in a report's thread says about mail to its sender: a bounce, or an opt-out
        if reading.kind is SenderKind.BOUNCE:
            reconcile.process_bounce(reading, self.settings, self.now)
        elif reading.kind in (SenderKind.PERSON, SenderKind.BOT_OPERATOR):
            recent = _is_recent(reading, source)
            reconcile.process_wish(reading, self.settings, self.now, recent=recent)
        reading = self._checked(reading, first_tag)
        self._apply_to_all(reading, relations)
        about = self._context(reading, first_tag, first_relation).about
        answer(reading, about, self._rows[first_tag], self.settings, self.now)
        return Filed(reading.mail.message_id, is_reply=True)

    def _store(self, reading: Reading, report: Report, source: RawMessage, relation: Relation | None = None) -> Message:
        mail, trust = reading.mail, reading.trust
        thread = self.known.thread_for(reading, report.tag, relation) if relation else Thread.REPORT
        message = Message.objects.create(
            message_id=mail.message_id,
            report=report,
            source=source,
            in_reply_to=mail.parent,
            author_name=mail.author.name,
            author_email=mail.author.email,
            subject=mail.subject,
            sent_at=_sent_at(mail, source.received_at),
            kind=reading.kind,
            role=self.known.reports[report.tag].role_of(reading, self.settings) or "",
            relation=relation or "",
            thread=thread,
            trust=trust.verdict,
            trust_by=trust.by[:300],
            signature="" if trust.covers("message-id") else trust.digest,
            # All text of our own mail is ours, including the tag block that looks like a quote.
            own_text=(mail.text if reading.kind is SenderKind.SELF else reading.own_text)[:100_000],
            public=self._is_public(reading, source, report),
        )
        self.known.file(mail.message_id, report.tag, thread)
        if message.role == Role.REPORTER and trust.proven:
            self.known.ours.add(mail.message_id)
        self._with_new_mail.add(report.pk)
        return message

    def _is_public(self, reading: Reading, source: RawMessage, report: Report | None = None) -> bool:
        """Whether everybody may see a mail: a public archive has it, or a public list got it, or one of ours; never
        what a server returned.
        """
        mail = reading.mail
        archived = source.archive is not None and source.archive.kind == ArchiveKind.PUBLIC
        lists = {self.settings.list_address, *self.settings.lists, self.settings.lkml} - {""}
        listed = any(address.email in lists or is_a_public_list(address.email) for address in mail.recipients)
        if report and not (archived or listed):
            sent = report.outgoing.order_by("-pk").values_list("lists", flat=True)[:MOST_REPORTS]
            lists |= {address.lower() for addresses in sent for address in addresses}
            listed = any(address.email in lists for address in mail.recipients)
        # A list's software marks what it sends to one person, too. Whoever mails us can write such a mark, so it counts
        # in an operator's file only.
        in_file = source.archive is not None and source.archive.kind == ArchiveKind.FILE
        identifier = mail.mark("list-id").rpartition("<")[2].rstrip("> ").lower()
        of_list = is_a_public_list(identifier) or identifier in {address.replace("@", ".") for address in lists}
        from_list = in_file and of_list and not is_a_lists_role(mail.author.email)
        robots = mail.author.email in self.settings.robots  # their reports are public
        returned = reading.kind is SenderKind.BOUNCE
        standing = gate.Standing(public=(archived or listed or from_list or robots) and not returned)
        return gate.permitted(gate.Caused.PUBLISH, standing, self.settings.trust_policy)

    def file_again(self, reading: Reading) -> None:
        """Refile a mail now that more is known: under the first report that it is about, and with all its effects.

        A robot's report stays what it is.
        """
        if reading.kind is SenderKind.SELF or self._report_in(reading):
            return
        relations = self.known.relations(reading)
        name = reading.mail.message_id
        message = Message.objects.filter(message_id=name)
        if not relations:
            # Forget a patch that was filed for a culprit's title which turned out to be another one
            patch = message.filter(relation=Relation.CULPRIT)
            self._with_new_mail |= set(patch.values_list("report", flat=True))
            if patch.delete()[0]:
                self._withdraw_others(name, ())
                Suggestion.objects.filter(message_id=name, decision__in=UNDECIDED).delete()
                self.known.forget(name)
            return
        tag, relation = next(iter(relations.items()))
        report = self._rows[tag]
        role = self.known.reports[tag].role_of(reading, self.settings) or ""
        thread = self.known.thread_for(reading, tag, relation)
        values = {"report": report, "role": role, "relation": relation, "thread": thread}
        left = set(message.exclude(report=report).values_list("report", flat=True))
        moves = message.exclude(report=report, thread=thread).exists()
        message.exclude(**values).update(**values)
        self.known.file(name, tag, thread)
        self._with_new_mail |= {report.pk} | left  # the last reply may be another in both
        self._changed |= left
        if moves:
            self.moved_now.append(name)  # the answers to it go with it
        self._withdraw_others(name, self._apply_to_all(self._checked(reading, tag), relations))

    def _apply_to_all(self, reading: Reading, relations: Mapping[str, Relation]) -> set[Made]:
        """Apply a mail's effects to its reports, up to MAX_EFFECTS of them, and to at most MAX_REPORTS."""
        made: set[Made] = set()
        for tag, relation in list(relations.items())[:MAX_REPORTS]:
            made |= self._apply(reading, tag, relation, MAX_EFFECTS - len(made))
            if len(made) >= MAX_EFFECTS:
                log.warning("<%s>: at most %d effects of a mail are kept", reading.mail.message_id[:200], MAX_EFFECTS)
                break
        return made

    def _context(self, reading: Reading, tag: str, relation: Relation) -> MailContext:
        """Return how a mail relates to a report; what a signed copy of another mail says is not for it."""
        context = self.known.context(reading, tag, relation, self.settings)
        is_copied_here = context.about is gate.About.HERE and self._is_copy(reading)
        return replace(context, about=gate.About.ELSEWHERE) if is_copied_here else context

    def _apply(self, reading: Reading, tag: str, relation: Relation, most: int) -> set[Made]:
        """Apply a mail's effects to one report: as events, or as suggestions that wait for a click."""
        made: set[Made] = set()
        report, mail = self._rows[tag], reading.mail
        context = self._context(reading, tag, relation)
        # A mail without a date keeps the moment at which it came in first, whenever it is read again.
        stored = Message.objects.filter(message_id=mail.message_id).select_related("source__archive")
        message = stored.defer("own_text", "tables", "source__compressed").first()
        at = _sent_at(mail, message.source.received_at if message else self.now)
        recent = message is None or _is_recent(reading, message.source)
        is_public = message is None or message.public
        effects = self.sandbox.call(effects_of, reading, context, self.settings.trust_policy, recent=recent)
        if not is_public:  # its words are for operators, who see the mail itself
            effects = tuple(_without_words(effect) for effect in effects if effect.kind is not EventKind.BISECTED)
        has_events = any(effect.kind and effect.mode is Mode.AUTO for effect in effects)
        # What a person has rejected stays rejected, whatever is known since.
        rejected_keys = event_log.rejected_keys(report, mail.message_id) if has_events else set()
        given = events_of(effects, mail, speaker_of(context), at)
        given = [pair for pair in given if pair[0].mode is not Mode.AUTO or pair[1].key not in rejected_keys]
        bisected: EventData | None = None  # the culprit of a person's report
        kept = settled([effect for effect, _ in given])
        for effect, event in given[:most]:
            if effect not in kept:
                continue
            if relation is Relation.CULPRIT:  # every version and every backport of one patch is one suggestion
                event = replace(event, key=f"{event.kind}{OF_A_PATCH}{event.title[:300]}")
            if event.kind is EventKind.DUPLICATE:
                event = replace(event, remark=self._other_report(event.remark))
            made.add((report.pk, event.key, effect.mode is Mode.AUTO))
            if effect.mode is not Mode.AUTO:
                self._suggest(report, event, effect)
            else:
                self._touched |= event_log.append([event_log.event_row(report, event, self.now, effect.quote)])
                event_log.correct(report, event, effect.quote)
                if event.kind is EventKind.BISECTED:
                    bisected = event
        if bisected:  # last, since what else the mail says is for this report alone
            person_reports.name_culprit(report, bisected)
            report = Report.objects.select_related("culprit").get(pk=report.pk)
            add_report(self.known, self._rows, report)
        return made

    def _other_report(self, named: str) -> str:
        """Return the first digits of the culprit of the report that a `dup` names by a link, a sha, a subject or a
        title; what it says if that is not one of ours.
        """
        links = find_links(named, self.settings.base_url)
        ids = [*(link.message_id for link in links), *message_ids(named)]
        tags = [*(link.page for link in links), *(self.known.by_message.get(message_id, "") for message_id in ids)]
        if sha := next((self._rows[tag].culprit.sha[:10] for tag in tags if tag in self._rows), ""):
            return sha
        sha = next((link.page for link in links if link.page), "") or named_sha(named)[0]
        # Two queries, each by an index: one OR over three tables would read all reports
        by_sha = catalog.reports_of(sha) if sha else Report.objects.none()
        by_mail = Report.objects.filter(Q(messages__message_id__in=ids) | Q(outgoing__message_id__in=ids)).distinct()
        for reports in (by_sha, by_mail) if ids else (by_sha,):
            if len(rows := reports.select_related("culprit")[:2]) == 1:
                return rows[0].culprit.sha[:10]
        return sha or _report_named(unquoted(named)) or named[:200]

    def _checked(self, reading: Reading, tag: str) -> Reading:
        """Return a reading without the commands that name what is not there, as the pages refuse them: another report,
        an assignee. The writer is told; once the other report is there, the mail is read again.
        """
        commands = reading.commands
        good, bad = [], list(commands.bad)
        for command in commands.good:
            argument = command.argument.strip()
            if command.word is Word.ASSIGN:
                argument = named_person(argument, reading.mail.author.email) or "nobody"
                command = replace(command, argument=argument)
            elif command.word is Word.DUP:
                argument = self._other_report(argument)
            if why := self._why_not(command.word, argument, reading, tag):
                if not command.foreign:
                    bad.append(BadCommand(f"{command.word} {argument}", why, command.line))
            else:
                good.append(command)
        return replace(reading, commands=replace(commands, good=tuple(good), bad=tuple(bad)))

    def _why_not(self, word: Word, argument: str, reading: Reading, tag: str) -> str:
        """Return why a command names nothing that is there, as an action on the pages would say; "" if it does."""
        if word not in (Word.DUP, Word.ASSIGN, Word.FIX) or argument == "nobody":
            return ""
        name, title = named_fix(argument) if word is Word.FIX else (argument, "")
        by = reading.mail.author.email
        try:
            check(
                EventData("", COMMANDED[word], self.now, actor=by, title=title.rstrip("."), remark=name),
                [self._rows[tag].pk],
            )
        except InvalidInput as error:
            return str(error)
        return ""

    def _is_copy(self, reading: Reading) -> bool:
        """Whether the same signed mail was filed before under another Message-ID, which is not signed."""
        trust = reading.trust
        if not trust.digest or trust.covers("message-id"):
            return False
        # Mails that were filed before 2.0 have the signature itself
        same = Message.objects.filter(signature__in={trust.digest, trust.signature} - {""}).order_by("pk")
        return same.values_list("message_id", flat=True).first() not in (None, reading.mail.message_id)

    def _suggest(self, report: Report, event: EventData, effect: Effect) -> None:
        """Store an event as a suggestion, once; of the versions of a patch the last one, until somebody has decided."""
        names = ("kind", "occurred_at", "role", "message_id", "commit", "title", "tree", "in_reply_to", "remark")
        values = {name: getattr(event, name) for name in names}
        values |= {"quote": effect.quote[:2000], "rule": effect.rule, "why": effect.why}
        values["certainty"] = effect.certainty
        row, made = Suggestion.objects.get_or_create(report=report, key=event.key, defaults=values)
        self._touched.add(report.pk)  # folding it withdraws what would change nothing
        earlier = (event.occurred_at, event.message_id) < (row.occurred_at, row.message_id)
        changed = any(getattr(row, name) != value for name, value in values.items())
        if not made and not earlier and changed:
            Suggestion.objects.filter(pk=row.pk, decision__in=UNDECIDED).update(**values)

    def _withdraw_others(self, message_id: str, made: Collection[Made]) -> None:
        """Delete what was concluded from a mail before it was read again, and no longer holds.

        What people decided stays. A suggestion that the versions of a patch share is made again by another of them.
        """
        events = Event.objects.filter(message_id=message_id, actor="").exclude(kind=EventKind.REPORTED)
        rows = events.values_list("pk", "report", "key")
        stale = {pk: report for pk, report, key in rows if (report, key, True) not in made}
        Event.objects.filter(pk__in=stale).delete()
        self._touched.update(stale.values())
        waiting = Suggestion.objects.filter(message_id=message_id, decision__in=UNDECIDED)
        conclusions = waiting.exclude(rule=SECOND_OPINION).values_list("pk", "report", "key")
        unmade = [row for row in conclusions if (*row[1:], False) not in made]
        waiting.filter(pk__in=[pk for pk, _, _ in unmade]).delete()  # waiting: somebody may have decided meanwhile
        self._changed |= {report for _, report, key in unmade if OF_A_PATCH in key}


def _is_plain(mail: ParsedMail) -> bool:
    """Whether a mail is read as text: who sends a copy can make HTML of it, or an attachment."""
    return bool(mail.text.strip()) and "html_only" not in mail.problems


def _sent_at(mail: ParsedMail, received_at: datetime) -> datetime:
    """Return when a mail was sent: when it came in, if it has no date, or one of days later, which is a wrong clock."""
    return mail.date if mail.date and mail.date < received_at + timedelta(days=1) else received_at


def _is_recent(reading: Reading, source: RawMessage) -> bool:
    """Whether a mail was delivered when it was written (gate.py); mail of an archive is."""
    delivered = source.archive is not None and source.archive.kind == ArchiveKind.DELIVERY
    return gate.is_recent(reading.trust, reading.mail.date, source.received_at if delivered else None)


def _report_named(text: str) -> str:
    """Return the culprit of the report with this subject, or whose culprit has this title; "" for none or several."""
    if (sha := read_subject(text).sha) and (begins := Report.objects.filter(culprit__sha__startswith=sha)[:2]):
        return begins[0].culprit.sha[:10] if len(begins) == 1 else ""
    titled = Report.objects.filter(culprit__title__iexact=bare_title(text)).select_related("culprit")[:2]
    return titled[0].culprit.sha[:10] if len(titled) == 1 else ""


def _without_words(effect: Effect) -> Effect:
    """Return the effect of a mail that isn't public without its words, but for what a command gives to be shown: a
    note, a title, the fix, the other report, the assignee.
    """
    shown = effect.rule.startswith(COMMAND) and effect.kind in _SHOWN
    title = effect.title if shown else ""
    remark = effect.remark if shown or re.fullmatch(r"[0-9a-f]{7,40}|v\d+", effect.remark) else ""
    return replace(effect, quote="", why="", certainty=None, title=title, remark=remark, tree="")
