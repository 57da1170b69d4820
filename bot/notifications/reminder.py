"""Reminders: a report is open, and nothing was heard of it for longer than is usual.

Due: we mailed the report, it is an open regression that waits for its author or a maintainer, and its clock has run
out (tracker/domain/deadlines.py). What somebody writes or does restarts the clock; what is measured does not. Nobody
is reminded who gets no mail from us or who said lately that they are away, nor about a report with reminders off.

Text: one screen, in the thread of the person's most urgent report; the other reports that are due are named in it.
Recipient: whoever posted the fix, if that is proven; a maintainer who got the report; else the culprit's author.

Each is sent once: a reminder is stored with the reports it names, and "still there" in a later version counts as one.
Unsent reminders are cancelled when something has overtaken them, and composed again if they are still due.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from textwrap import wrap

from django.db import OperationalError, transaction
from django.db.models import Q, QuerySet

from bot.compose import report_data
from bot.compose.mail import ComposedMail
from bot.compose.policy import Action, PolicyDecision, QuietReport, ReminderBatch, ReminderPolicy, batches, is_due
from bot.compose.recipients import Recipient
from bot.compose.report_data import FindingData
from bot.mail.addresses import Address
from bot.mail.authentication import AuthVerdict
from bot.mail.message import lore_link, one_line
from bot.mail.settings import Aliases, BotSettings
from bot.notifications.thread import ReportContext, ThreadData, in_thread, report_context
from bot.outbox.drafts import COMPOSER, ComposeConfig, OutboxWriter, excluded_addresses
from bot.outbox.sender import overtaken_reminders
from bot.replies.sender_kind import SenderKind
from tracker.domain.deadlines import Stage, report_clock
from tracker.domain.events import OPEN, Awaited, EventData, EventKind, State, Verdict
from tracker.domain.report_state import ReportState, effective_events, fold
from tracker.models import Event, Message, OutgoingMail, OutgoingState, Purpose, ReleaseCandidate, Reminder, Report
from tracker.models.outbox import WAITING
from tracker.services import database, mail_transitions
from tracker.services.database import Lock

# --- The mail ---

MOST_LINES, WIDTH = 4, 74  # of the last word that is quoted
MOST_OTHERS = 8  # reports that are named beside the first
_CLOSES = {
    Stage.RESPONSE: "A short reply in plain words is enough: that you are looking at it, that the\n"
    "change is expected, or that a fix exists.",
    Stage.FIX: "A fix that names this report closes it. If none is planned, please say so in\na reply, and why.\n\n"
    "fix with: Closes: {link}",
    Stage.LANDING: "It is closed once the fix is in a mainline version. If the fix is queued or\n"
    'was replaced, a reply with "{prefix} fix: <title>" says so.',
}
_QUEUED = (
    "The fix is queued, and the release that has this regression comes nearer. If the\n"
    "fix will reach mainline only after that release, please say so in a reply."
)


@dataclass(frozen=True, slots=True)
class LastWord:
    """What a person wrote last in the thread."""

    author: str
    date: str
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class OtherReport:
    """Another report of the same person that is due as well."""

    message_id: str
    subject: str
    state: str


@dataclass(frozen=True, slots=True)
class ReminderData:
    """`person`: who is awaited; `stage`: for what; `since`: the last word; `state`: the report's state in words;
    `queued`: whether a fix is on its way.
    """

    person: Address
    stage: Stage
    since: datetime
    state: str
    headline: FindingData
    last_word: LastWord | None = None
    others: Sequence[OtherReport] = ()
    queued: bool = False


def last_word(author: str, at: datetime, own_text: str) -> LastWord | None:
    """Return the beginning of what a mail says, in a few lines; None if it says nothing."""
    words = " ".join(own_text.split())
    lines = wrap(one_line(words, 1000), WIDTH, break_long_words=True, break_on_hyphens=False)
    if not lines:
        return None
    shown = [*lines[: MOST_LINES - 1], f"{lines[MOST_LINES - 1]} …"] if len(lines) > MOST_LINES else lines
    return LastWord(one_line(author, 60), f"{at:%Y-%m-%d}", shown)


def compose_reminder(
    thread: ThreadData,
    reminder: ReminderData,
    purpose: str,
    settings: BotSettings,
    now: datetime,
    excluded: Mapping[str, str],
) -> ComposedMail:
    """Return the reminder, to the person in the thread of their most urgent report."""
    link = lore_link(thread.message_id)
    closes = _QUEUED if reminder.queued else _CLOSES[reminder.stage]
    others = [
        {
            "link": lore_link(other.message_id),
            "subject": one_line(other.subject, 74),
            "state": one_line(other.state, 74),
        }
        for other in reminder.others[:MOST_OTHERS]
    ]
    context = {
        "name": _greeted(one_line(reminder.person.name, 60)),
        "since": f"{reminder.since:%Y-%m-%d}",
        "state": one_line(reminder.state, 66),
        "metric": one_line(reminder.headline.metric, 66),
        "where": one_line(reminder.headline.where, 66),
        "reported": report_data.sides(reminder.headline),
        "last_word": reminder.last_word,
        "closes": closes.format(link=link, prefix=settings.prefix),
        "others": others,
    }
    first = Recipient(reminder.person, f"awaited: {reminder.stage}")
    return in_thread(thread, purpose, "reminder", context, settings, now, excluded, first)


def _greeted(name: str) -> str:
    """Return the first name; the whole name if it is written with a comma, which puts the last name first."""
    return name if "," in name else name.split(" ")[0]


# --- Silent reports ---

AWAY = timedelta(days=21)  # for so long after an automatic reply nobody is reminded
LATE_CANDIDATE = 5  # from this -rc on, a release is near
_PROGRESS = frozenset({EventKind.FIX_QUEUED, EventKind.FIX_MERGED, EventKind.FIX_GONE, EventKind.FIX_REVERTED})


@dataclass(frozen=True, slots=True)
class SilentReport:
    """A report that was mailed, and the person who is awaited."""

    report: QuietReport
    sent: OutgoingMail
    state: ReportState
    person: Address


@dataclass(frozen=True, slots=True)
class Poster:
    """Who posted a fix, and whether their mail proves it."""

    address: Address
    proven: bool


def sent_reports(since: datetime) -> QuerySet[OutgoingMail]:
    """Return our own mails of open regressions that wait for a developer; nobody is reminded of others' reports."""
    return OutgoingMail.objects.filter(
        purpose=Purpose.REPORT,
        state=OutgoingState.SENT,
        sent_at__gte=since,
        report__state__in=sorted(OPEN),
        report__verdict=Verdict.REGRESSION,
        report__awaited__in=(Awaited.AUTHOR, Awaited.MAINTAINER),
    )


def silent_reports(
    sent: QuerySet[OutgoingMail],
    settings: BotSettings,
    policy: ReminderPolicy,
    excluded: Mapping[str, str],
    now: datetime,
    without: Sequence[int] = (),
) -> list[SilentReport]:
    """Return reports with their clocks, in a constant number of queries. `without`: reminders that do not count."""
    rows = list(sent.select_related("report__culprit").defer("raw", "body").order_by("pk"))
    keys = [row.about.pk for row in rows]
    events = _events(keys)
    reminded = _reminded(keys, without)
    candidates = _latest_candidates()
    posters = _fix_posters(events.values())
    reports = []
    for row in rows:
        report, own = row.about, events[row.about.pk]
        state = fold(Verdict(report.verdict), own)
        person = _person(row, state, posters, settings.aliases, excluded)
        clock = report_clock(
            state,
            (row.sent_at, report.last_human_reply_at, *_words(own)),
            serious=abs(report.change or 0.0) >= policy.serious_pct,
            near_release=candidates.get(report.merged_release, 0) >= LATE_CANDIDATE,
            policy=policy.deadlines,
        )
        quiet = QuietReport(
            key=report.pk,
            person=settings.aliases.proper.get(person.email, person.email),
            state=state.state,
            clock=clock,
            change_pct=report.change,
            urgency=report.urgency,
            reminded=tuple(sorted(reminded[report.pk])),
            silenced=_silenced(state, report.merged_release in candidates),
        )
        reports.append(SilentReport(quiet, row, state, person))
    # The reports with a reason for silence where their person gets no mail, or is away
    everybody = {silent.person.email: settings.aliases.of(silent.person.email) for silent in reports}
    away = _away({address for addresses in everybody.values() for address in addresses}, now)
    marked = []
    for silent in reports:
        addresses = everybody[silent.person.email]
        why = next((excluded[address] for address in sorted(addresses) if address in excluded), "")
        why = why or ("away, as an automatic reply said" if addresses & away else "")
        silenced = silent.report.silenced or why
        marked.append(replace(silent, report=replace(silent.report, silenced=silenced)))
    return marked


def reminder_data(first: SilentReport, others: Sequence[SilentReport], headline: FindingData) -> ReminderData:
    """Return what a reminder says."""
    clock = first.report.clock
    assert clock  # it is due
    people = Message.objects.filter(report=first.report.key, kind=SenderKind.PERSON).defer("tables", "source")
    latest = people.exclude(sent_at=None).order_by("-sent_at", "-pk").first()
    word = (
        last_word(latest.author_name or latest.author_email, latest.sent_at, latest.own_text)
        if latest and latest.sent_at
        else None
    )
    named = [OtherReport(other.sent.message_id, other.sent.subject, other.sent.about.status) for other in others]
    status, queued = first.sent.about.status, first.state.state is State.FIX_QUEUED
    return ReminderData(first.person, clock.stage, clock.since, status, headline, word, named[:MOST_OTHERS], queued)


def _events(reports: Sequence[int]) -> dict[int, list[EventData]]:
    by_report: dict[int, list[EventData]] = {pk: [] for pk in reports}
    for event in Event.objects.filter(report__in=reports):
        by_report[event.report_id].append(event.value())
    return by_report


def _words(events: list[EventData]) -> list[datetime]:
    """Return when somebody wrote or did something about it: not what was measured, nor the report itself."""
    return [
        event.occurred_at
        for event in effective_events(events)
        if event.actor or (event.message_id and event.kind is not EventKind.REPORTED) or event.kind in _PROGRESS
    ]


def _reminded(reports: Sequence[int], without: Sequence[int]) -> dict[int, list[datetime]]:
    """Return when reports were in reminders, sent or not; "still there" in a later version is one, too.

    What an operator cancelled counts as well; a reminder that we cancelled names no report.
    """
    by_report: dict[int, list[datetime]] = defaultdict(list)
    rows = Reminder.objects.filter(report__in=reports).exclude(mail__in=without)
    for report, composed_at, sent_at in rows.values_list("report", "composed_at", "mail__sent_at"):
        by_report[report].append(sent_at or composed_at)
    measured = Q(purpose__startswith=f"{EventKind.STILL_THERE} ", report__in=reports)
    again = OutgoingMail.objects.filter(measured).exclude(state=OutgoingState.CANCELLED)
    for report, composed_at, sent_at in again.values_list("report", "composed_at", "sent_at"):
        by_report[report or 0].append(sent_at or composed_at)
    return by_report


def _away(addresses: Collection[str], now: datetime) -> set[str]:
    """Return which of these addresses answered lately, in any thread, that they are away."""
    rows = Message.objects.filter(author_email__in=addresses, kind=SenderKind.AUTO_REPLY, sent_at__gt=now - AWAY)
    return set(rows.values_list("author_email", flat=True))


def _latest_candidates() -> dict[str, int]:
    """Return the releases in development, with the number of their latest -rc."""
    rows = ReleaseCandidate.objects.filter(release__released_at=None).order_by("number")
    return dict(rows.values_list("release__version", "number"))


def _fix_posters(of_reports: Iterable[Sequence[EventData]]) -> dict[str, Poster]:
    """Return who mailed the proposed fixes, by Message-ID."""
    ids = {
        event.message_id
        for events in of_reports
        for event in events
        if event.kind is EventKind.FIX_PROPOSED and event.message_id
    }
    rows = Message.objects.filter(message_id__in=ids, kind=SenderKind.PERSON)
    return {
        message_id: Poster(Address(name, email), trust == AuthVerdict.PASS)
        for message_id, name, email, trust in rows.values_list("message_id", "author_name", "author_email", "trust")
    }


def _person(
    row: OutgoingMail,
    state: ReportState,
    posters: Mapping[str, Poster],
    aliases: Aliases,
    excluded: Mapping[str, str],
) -> Address:
    """Return who is awaited: who posted the fix, a maintainer who got the report, or the culprit's author.

    Whoever posted the fix under a name that nothing proves, and that we never wrote to, is not mailed: the author is.
    """
    culprit = row.about.culprit
    author = Address(culprit.author_name, culprit.author_email)
    if state.awaited is Awaited.MAINTAINER:
        names = {email: name for email, name, *_ in row.people}
        maintainers = [Address(names.get(address, ""), address) for address in row.maintainers]
        reachable = [maintainer for maintainer in maintainers if not aliases.of(maintainer.email) & excluded.keys()]
        return next(iter(reachable or maintainers), Address("", ""))
    if state.state in (State.FIX_PROPOSED, State.FIX_CONFIRMED) and state.fix:
        poster = posters.get(state.fix.message_id)
        verified = row.about.verified_authors | row.about.verified_recipients
        if poster and (poster.proven or poster.address.email in verified):
            return poster.address
    return author


def _silenced(state: ReportState, in_development: bool) -> str:
    """Return why nobody must be reminded of a report, or ""."""
    if not state.reminders:
        return "reminders were turned off"
    if state.state is State.FIX_QUEUED and not in_development:
        return "its fix is queued, and the release in development does not need it"
    return ""


# --- Composing and cancelling ---

_ON_THEIR_WAY = (OutgoingState.COMPOSED, OutgoingState.APPROVED, OutgoingState.SENDING)
log = logging.getLogger(__name__)


def compose_reminders(settings: BotSettings, now: datetime, config: ComposeConfig) -> int:
    """Cancel reminders that are no longer due, and compose those that are. Return how many were composed."""
    this_round = _Round(settings, now, config, excluded_addresses(settings.aliases))
    this_round.cancel_outdated()
    if config.policy.reminders.action is Action.HOLD:
        return 0
    due = batches((silent.report for silent in this_round.quiet()), _last_reminded(now), config.policy.reminders, now)
    return sum(this_round.try_compose(batch) for batch in due)


@dataclass(frozen=True, slots=True)
class _Round:
    """One round of composing. `excluded`: who gets no mail, and why."""

    settings: BotSettings
    now: datetime
    config: ComposeConfig
    excluded: Mapping[str, str]

    @property
    def policy(self) -> ReminderPolicy:
        return self.config.policy.reminders

    def quiet(self, reports: Iterable[int] | None = None, without: Sequence[int] = ()) -> list[SilentReport]:
        """Return the reports that may be reminded of, or those of `reports` that may."""
        sent = sent_reports(self.now - self.policy.oldest)
        sent = sent if reports is None else sent.filter(report__in=reports)
        return silent_reports(sent, self.settings, self.policy, self.excluded, self.now, without)

    def try_compose(self, batch: ReminderBatch) -> bool:
        """Compose one reminder. An error keeps no other from being composed."""
        keys = [report.key for report in batch.reports]
        try:
            with transaction.atomic():
                database.take(Lock.REMINDERS)
                # Whatever happens to them from here on finds the reminder, and marks it as outdated.
                list(Report.objects.select_for_update().filter(pk__in=keys).order_by("pk").values_list("pk"))
                by_key = {silent.report.key: silent for silent in self.quiet(keys)}
                still = batches(
                    (silent.report for silent in by_key.values()), _last_reminded(self.now), self.policy, self.now
                )
                same = [other for other in still if other.person == batch.person]
                return bool(same) and self._compose(batch.person, [by_key[report.key] for report in same[0].reports])
        except OperationalError as busy:  # the next round tries again
            log.error("%s: composing a reminder failed: %s", batch.person, busy)
        except Exception:  # bad data from a lab, a tree or a mail
            log.exception("%s: composing a reminder failed", batch.person)
        return False

    def _compose(self, person: str, due: Sequence[SilentReport]) -> bool:
        first, *others = due
        # The purpose of a report's next reminder; one that we cancelled before it left is composed again
        mails = OutgoingMail.objects.filter(report=first.report.key, purpose__startswith=Purpose.REMINDER)
        unused = Q(state=OutgoingState.CANCELLED, decided_by_person=False, attempts=0)
        used = set(mails.exclude(unused).values_list("purpose", flat=True))
        purpose = next(name for number in count(1) if (name := f"{Purpose.REMINDER}{number}") not in used)
        context = report_context(first.sent, self.config.conventions)
        data = reminder_data(first, others, context.headline)
        mail = compose_reminder(context.thread, data, purpose, self.settings, self.now, self.excluded)
        if first.person.email not in [recipient.email for recipient in mail.recipients.to]:
            return False  # whoever is awaited gets no mail from us
        writer = OutboxWriter(self.settings, self.config, self.now)
        start = writer.decide_start(mail, PolicyDecision(self.policy.action), foreign=_foreign(context, data))
        if not writer.insert(context.report, mail, purpose, start):
            return False
        row = OutgoingMail.objects.get(report=context.report, purpose=purpose)
        Reminder.objects.bulk_create(
            Reminder(report_id=silent.report.key, mail=row, person=person, composed_at=self.now) for silent in due
        )
        return True

    def cancel_outdated(self) -> None:
        """Cancel unsent reminders about which something has come in, or that somebody else is due for by now."""
        rows = list(_unsent())
        named: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for mail, report, person in Reminder.objects.filter(mail__in=rows).values_list("mail", "report", "person"):
            named[mail].append((report, person))
        reports = {report for pairs in named.values() for report, _ in pairs}
        quiet = self.quiet(reports, without=[row.pk for row in rows]) if rows else []
        due = {
            silent.report.key: silent.report.person for silent in quiet if is_due(silent.report, self.policy, self.now)
        }
        overtaken = set(overtaken_reminders().values_list("pk", flat=True)) if rows else set()
        for row in rows:
            as_then = bool(named[row.pk]) and all(due.get(report) == person for report, person in named[row.pk])
            if row.stale or not as_then or row.pk in overtaken or self.policy.action is Action.HOLD:
                _cancel(row, self.now)


def _foreign(context: ReportContext, data: ReminderData) -> list[str]:
    """Return the texts in a reminder that are not ours, which the lint looks at."""
    head = context.headline
    names = [context.thread.title, head.metric, head.suite, head.machine, head.unit, data.state, data.person.name]
    quoted = [data.last_word.author, *data.last_word.lines] if data.last_word else []
    return [*names, *quoted, *(text for other in data.others for text in (other.subject, other.state))]


def _cancel(row: OutgoingMail, now: datetime) -> None:
    """Cancel a reminder that has not left. It names no report any more, unless an operator had decided on it."""
    reason = f"no longer due: {row.about.status}"[:1000]
    with transaction.atomic():
        waiting = OutgoingMail.objects.filter(pk=row.pk, state__in=WAITING, sent_at=None)
        columns = {"reason": reason, "stale": False, "not_before": None, "decided_by_person": _held_by_person(row)}
        done = mail_transitions.transition(waiting, OutgoingState.CANCELLED, COMPOSER, now, reason, **columns)
        if done and not _held_by_person(row):
            Reminder.objects.filter(mail=row).delete()


def _held_by_person(row: OutgoingMail) -> bool:
    return row.state == OutgoingState.HELD and row.decided_by_person


def _unsent() -> QuerySet[OutgoingMail]:
    """Return the reminders that no server has accepted for anybody."""
    rows = OutgoingMail.objects.filter(purpose__startswith=Purpose.REMINDER, state__in=WAITING, sent_at=None)
    return rows.select_related("report__culprit").order_by("pk")


def _last_reminded(now: datetime) -> dict[str, datetime]:
    """Return when each person was last reminded: now, if a mail to them is on its way."""
    rows = Reminder.objects.values_list("person", "mail__state", "mail__sent_at", "composed_at")
    by_person: dict[str, datetime] = {}
    for person, state, sent_at, composed_at in rows.distinct():
        at = now if state in _ON_THEIR_WAY else sent_at or composed_at
        by_person[person] = max(by_person.get(person, at), at)
    return by_person
