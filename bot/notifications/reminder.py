"""Reminders: a report is open, and nothing has been heard about it for longer than usual.

Due: we mailed the report, it is an open regression that waits for its author or a maintainer, and its clock has run
out (tracker/domain/deadlines.py). What somebody writes or does restarts the clock; what is measured does not. Nobody
is reminded if they get no mail from us or said lately that they are away, nor of a report with reminders off. A
person gets one a week at most, over all reports, and a report is in two at most (`ReminderPolicy` has the numbers).

Text: one screen, in the thread of the person's most urgent report; the other reports that are due are named in it.
Recipient: whoever posted the fix, if that is proven; a maintainer who got the report; else the culprit's author.

Each is sent once: a reminder is stored with the reports it names, and "still there" in a later version counts as one.
Unsent reminders are cancelled when something has overtaken them, and composed again if they are still due.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from textwrap import wrap

from django.db import OperationalError, transaction
from django.db.models import Q

from bot.compose import report_data
from bot.compose.mail import ComposedMail, Recipient
from bot.compose.policy import Action, PolicyDecision, ReminderPolicy
from bot.compose.report_data import FindingData
from bot.mail.addresses import Address
from bot.mail.authentication import AuthVerdict
from bot.mail.message import one_line
from bot.mail.patches import find_diffs
from bot.mail.settings import Aliases, BotSettings
from bot.notifications.thread import ReportContext, ThreadMails, report_context
from bot.outbox.drafts import COMPOSER, ComposeConfig, OutboxWriter, excluded_addresses
from bot.outbox.sender import overtaken_reminders
from bot.replies.reading import SenderKind
from tracker.domain.deadlines import ReportClock, Stage, report_clock
from tracker.domain.events import OPEN, Awaited, EventData, EventKind, State, Verdict
from tracker.domain.report_state import ReportState, effective_events, fold
from tracker.domain.text import lore_url
from tracker.models import Message, OutgoingMail, OutgoingState, Purpose, ReleaseCandidate, Reminder, Report
from tracker.models.mail import WAITING
from tracker.services import database, event_log, mail_transitions
from tracker.services.database import Lock

log = logging.getLogger(__name__)

# --- When one is due ---

# Where a reminder would be wrong: who doubts a report or has asked is waiting for the lab.
_NEVER = frozenset({State.DISPUTED, State.NEEDS_INFO, State.EXPECTED})


@dataclass(frozen=True, slots=True)
class QuietReport:
    """What decides about a report. `person`: who is awaited; `reminded`: when it was in a reminder before; `silenced`:
    why there must be none ("" if nothing is known).
    """

    key: int
    person: str
    state: State
    clock: ReportClock | None
    change_pct: float | None
    urgency: int
    reminded: tuple[datetime, ...] = ()
    silenced: str = ""


def is_due(report: QuietReport, policy: ReminderPolicy, now: datetime) -> bool:
    """Return whether its person may be reminded of a report now."""
    if report.silenced or not report.person or report.state in _NEVER or report.clock is None:
        return False
    if report.change_pct is not None and abs(report.change_pct) < policy.at_least_pct:
        return False
    last = max(report.reminded, default=None)
    rested = last is None or now - last >= policy.apart
    return len(report.reminded) < policy.most and rested and report.clock.is_overdue(now)


def batches(
    reports: Iterable[QuietReport], last_reminded: Mapping[str, datetime], policy: ReminderPolicy, now: datetime
) -> list[list[QuietReport]]:
    """Return the reports that each reminder is about, which are of one person: the most urgent one first, in whose
    thread it is sent. `last_reminded`: by person.
    """
    of_person: dict[str, list[QuietReport]] = defaultdict(list)
    for report in reports:
        last = last_reminded.get(report.person)
        if is_due(report, policy, now) and (last is None or now - last >= policy.per_person):
            of_person[report.person].append(report)
    reminders = [sorted(due, key=lambda report: (-report.urgency, report.key)) for due in of_person.values()]
    return sorted(reminders, key=lambda due: (-due[0].urgency, due[0].person))


# --- The mail ---

MOST_LINES, WIDTH = 4, 74  # of the last word that is quoted
_LONGEST_STATUS = 300  # characters
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
class ReminderCandidate:
    """A report that was mailed, and the person who is awaited."""

    quiet: QuietReport
    sent: OutgoingMail
    state: ReportState
    person: Address


@dataclass(frozen=True, slots=True)
class LastWord:
    """What a person wrote last in the thread."""

    author: str
    date: str
    lines: Sequence[str]


def last_word(report: int) -> LastWord | None:
    """Return who wrote last about a report on a public list, and the first few lines; None if it says nothing."""
    people = Message.objects.filter(report=report, kind=SenderKind.PERSON, public=True).defer("tables", "source")
    latest = people.exclude(sent_at=None).order_by("-sent_at", "-pk").first()
    if latest is None or latest.sent_at is None:
        return None
    diffs = find_diffs(latest.own_text)
    above = latest.own_text.partition(diffs[0].partition("\n")[0])[0] if diffs else latest.own_text
    words = " ".join(above.split()) or ("a patch" if diffs else "")
    lines = wrap(one_line(words, 1000), WIDTH, break_long_words=True, break_on_hyphens=False)
    if not lines:
        return None
    shown = [*lines[: MOST_LINES - 1], f"{lines[MOST_LINES - 1]} …"] if len(lines) > MOST_LINES else lines
    return LastWord(one_line(latest.author_name or latest.author_email, 60), f"{latest.sent_at:%Y-%m-%d}", shown)


def compose_reminder(
    context: ReportContext,
    due: Sequence[ReminderCandidate],
    headline: FindingData,
    word: LastWord | None,
    purpose: str,
    mails: ThreadMails,
) -> ComposedMail:
    """Return the reminder, to the person in the thread of their most urgent report, which is the first."""
    first, *others = due
    clock, name = first.quiet.clock, one_line(first.person.name, 60)
    assert clock  # it is due
    closes = _QUEUED if first.state.state is State.FIX_QUEUED else _CLOSES[clock.stage]
    values = {
        "name": name if "," in name else name.split(" ")[0],  # with a comma the last name comes first
        "since": f"{clock.since:%Y-%m-%d}",
        "state": _wrapped(first.sent.about.status, 66, " " * 11),
        "metric": one_line(headline.metric, 66),
        "where": one_line(headline.where, 66),
        "reported": report_data.sides(headline),
        "last_word": word,
        "closes": closes.format(link=lore_url(context.thread.message_id), prefix=mails.settings.prefix),
        "others": [
            {
                "link": lore_url(other.sent.message_id),
                "subject": one_line(other.sent.subject, 74),
                "state": _wrapped(other.sent.about.status, 74, "  "),
            }
            for other in others[:MOST_OTHERS]
        ],
    }
    to = Recipient(first.person, f"awaited: {clock.stage}")
    return mails.compose(context.thread, purpose, "reminder", values, to)


def _wrapped(status: str, columns: int, indent: str) -> str:
    """Return a sentence on as many lines as it takes, the further ones indented."""
    return f"\n{indent}".join(wrap(one_line(status, _LONGEST_STATUS), columns))


# --- What is known of the reports ---

AWAY = timedelta(days=21)  # for so long after an automatic reply nobody is reminded
LATE_CANDIDATE = 5  # from this -rc on, a release is near
_PROGRESS = frozenset({EventKind.FIX_QUEUED, EventKind.FIX_MERGED, EventKind.FIX_GONE, EventKind.FIX_REVERTED})
_ON_THEIR_WAY = (OutgoingState.COMPOSED, OutgoingState.APPROVED, OutgoingState.SENDING)


def candidates_of(
    rows: Sequence[OutgoingMail],
    aliases: Aliases,
    policy: ReminderPolicy,
    excluded: Mapping[str, str],
    now: datetime,
    without: Sequence[int] = (),
) -> list[ReminderCandidate]:
    """Return the reports of these mails with their clocks, in a constant number of queries. `without`: reminders that
    do not count.
    """
    keys = [row.about.pk for row in rows]
    events = event_log.values_of(keys)
    reminded = reminded_at(keys, without)
    # The releases in development, with the number of their latest -rc
    in_development = ReleaseCandidate.objects.filter(release__released_at=None).order_by("number")
    candidates = dict(in_development.values_list("release__version", "number"))
    posters = _fix_posters(events.values())
    states = [fold(Verdict(row.about.verdict), events[row.about.pk]) for row in rows]
    people = [_person(row, state, posters, aliases, excluded) for row, state in zip(rows, states, strict=True)]
    # Who answered lately, in any thread, that they are away
    addresses = {address for person in people for address in aliases.of(person.email)}
    replies = Message.objects.filter(author_email__in=addresses, kind=SenderKind.AUTO_REPLY, sent_at__gt=now - AWAY)
    away = set(replies.values_list("author_email", flat=True))
    reports = []
    for row, state, person in zip(rows, states, people, strict=True):
        report = row.about
        # When somebody wrote or did something about it: not what was measured, nor the report itself
        words = [
            event.occurred_at
            for event in effective_events(events[report.pk])
            if event.actor or (event.message_id and event.kind is not EventKind.REPORTED) or event.kind in _PROGRESS
        ]
        clock = report_clock(
            state,
            (row.sent_at, report.last_human_reply_at, *words),
            serious=abs(report.change or 0.0) >= policy.serious_pct,
            near_release=candidates.get(report.merged_release, 0) >= LATE_CANDIDATE,
            policy=policy.deadlines,
        )
        own = aliases.of(person.email)
        silenced = next((excluded[address] for address in sorted(own) if address in excluded), "")
        if not state.reminders:
            silenced = "reminders were turned off"
        elif state.state is State.FIX_QUEUED and report.merged_release not in candidates:
            silenced = "its fix is queued, and the release in development does not need it"
        elif not silenced and own & away:
            silenced = "away, as an automatic reply said"
        quiet = QuietReport(
            key=report.pk,
            person=aliases.proper.get(person.email, person.email),
            state=state.state,
            clock=clock,
            change_pct=report.change,
            urgency=report.urgency,
            reminded=tuple(sorted(reminded[report.pk])),
            silenced=silenced,
        )
        reports.append(ReminderCandidate(quiet, row, state, person))
    return reports


def reminded_at(
    reports: Sequence[int], without: Sequence[int] = (), purpose: str = ""
) -> defaultdict[int, list[datetime]]:
    """Return when reports appeared in reminders, sent or not; "still there" in a later version counts as one.

    What an operator cancelled counts as well; a reminder that we cancelled names no report. `without`, `purpose`:
    reminders, and the mail about a later version, that do not count.
    """
    by_report: defaultdict[int, list[datetime]] = defaultdict(list)
    rows = Reminder.objects.filter(report__in=reports).exclude(mail__in=without)
    for report, composed_at, sent_at in rows.values_list("report", "composed_at", "mail__sent_at"):
        by_report[report].append(sent_at or composed_at)
    measured = Q(purpose__startswith=f"{EventKind.STILL_THERE} ", report__in=reports)
    again = OutgoingMail.objects.filter(measured).exclude(purpose=purpose).exclude(state=OutgoingState.CANCELLED)
    for report, composed_at, sent_at in again.values_list("report", "composed_at", "sent_at"):
        by_report[report or 0].append(sent_at or composed_at)
    return by_report


def _fix_posters(of_reports: Iterable[Sequence[EventData]]) -> dict[str, tuple[Address, bool]]:
    """Return who mailed the proposed fixes, by Message-ID, and whether the mail proves it."""
    ids = {
        event.message_id
        for events in of_reports
        for event in events
        if event.kind is EventKind.FIX_PROPOSED and event.message_id
    }
    rows = Message.objects.filter(message_id__in=ids, kind=SenderKind.PERSON)
    return {
        message_id: (Address(name, email), trust == AuthVerdict.PASS)
        for message_id, name, email, trust in rows.values_list("message_id", "author_name", "author_email", "trust")
    }


def _person(
    row: OutgoingMail,
    state: ReportState,
    posters: Mapping[str, tuple[Address, bool]],
    aliases: Aliases,
    excluded: Mapping[str, str],
) -> Address:
    """Return who is awaited: who posted the fix, a maintainer who got the report, or the culprit's author.

    If nothing proves who posted the fix, and we never wrote to them, the author is mailed instead.
    """
    culprit = row.about.culprit
    author = Address(culprit.author_name, culprit.author_email)
    if state.awaited is Awaited.MAINTAINER:
        names = {email: name for email, name, *_ in row.people}
        maintainers = [Address(names.get(address, ""), address) for address in row.maintainers]
        reachable = [maintainer for maintainer in maintainers if not aliases.of(maintainer.email) & excluded.keys()]
        return next(iter(reachable or maintainers), Address("", ""))
    if state.state in (State.FIX_PROPOSED, State.FIX_CONFIRMED) and state.fix:
        poster, is_proven = posters.get(state.fix.message_id, (None, False))
        verified = row.about.verified_authors | row.about.verified_recipients
        if poster and (is_proven or poster.email in verified):
            return poster
    return author


def _last_reminded(now: datetime) -> dict[str, datetime]:
    """Return when each person was last reminded: now, if a mail to them is on its way."""
    rows = Reminder.objects.values_list("person", "mail__state", "mail__sent_at", "composed_at")
    by_person: dict[str, datetime] = {}
    for person, state, sent_at, composed_at in rows.distinct():
        at = now if state in _ON_THEIR_WAY else sent_at or composed_at
        by_person[person] = max(by_person.get(person, at), at)
    return by_person


# --- Composing and cancelling ---


def compose_reminders(settings: BotSettings, now: datetime, config: ComposeConfig) -> int:
    """Cancel reminders that are no longer due, and compose those that are. Return how many were composed."""
    this_round = _ReminderRound(settings, now, config, excluded_addresses(settings.aliases, config.policy.never))
    this_round.cancel_outdated()
    if config.policy.reminders.action is Action.HOLD:
        return 0
    return sum(this_round.try_compose(batch) for batch in this_round.batches(this_round.candidates()))


@dataclass(frozen=True, slots=True)
class _ReminderRound:
    """One round of composing. `excluded`: who gets no mail, and why."""

    settings: BotSettings
    now: datetime
    config: ComposeConfig
    excluded: Mapping[str, str]

    @property
    def policy(self) -> ReminderPolicy:
        return self.config.policy.reminders

    def candidates(self, reports: Iterable[int] | None = None, without: Sequence[int] = ()) -> list[ReminderCandidate]:
        """Return the reports that may be reminded of, or those of `reports` that may: open regressions that we mailed
        and that wait for a developer. Nobody is reminded of others' reports.
        """
        sent = OutgoingMail.objects.filter(
            purpose=Purpose.REPORT,
            state=OutgoingState.SENT,
            sent_at__gte=self.now - self.policy.oldest,
            report__state__in=sorted(OPEN),
            report__verdict=Verdict.REGRESSION,
            report__awaited__in=(Awaited.AUTHOR, Awaited.MAINTAINER),
        )
        sent = sent if reports is None else sent.filter(report__in=reports)
        rows = list(sent.select_related("report__culprit").defer("raw", "body").order_by("pk"))
        return candidates_of(rows, self.settings.aliases, self.policy, self.excluded, self.now, without)

    def batches(self, candidates: Iterable[ReminderCandidate]) -> list[list[QuietReport]]:
        return batches((candidate.quiet for candidate in candidates), _last_reminded(self.now), self.policy, self.now)

    def cancel_outdated(self) -> None:
        """Cancel the reminders that no server has accepted yet for any recipient, if something came in about them, or
        somebody else is due for one by now. A cancelled one names no report, unless an operator had decided on it.
        """
        unsent = OutgoingMail.objects.filter(purpose__startswith=Purpose.REMINDER, state__in=WAITING, sent_at=None)
        rows = list(unsent.select_related("report__culprit").order_by("pk"))
        named: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for mail, report, person in Reminder.objects.filter(mail__in=rows).values_list("mail", "report", "person"):
            named[mail].append((report, person))
        reports = {report for pairs in named.values() for report, _ in pairs}
        candidates = self.candidates(reports, without=[row.pk for row in rows]) if rows else []
        due = {
            candidate.quiet.key: candidate.quiet.person
            for candidate in candidates
            if is_due(candidate.quiet, self.policy, self.now)
        }
        overtaken = set(overtaken_reminders().values_list("pk", flat=True)) if rows else set()
        for row in rows:
            as_then = bool(named[row.pk]) and all(due.get(report) == person for report, person in named[row.pk])
            if not row.stale and as_then and row.pk not in overtaken and self.policy.action is not Action.HOLD:
                continue
            reason = f"no longer due: {row.about.status}"[:1000]
            by_person = row.state == OutgoingState.HELD and row.decided_by_person
            with transaction.atomic():
                waiting = OutgoingMail.objects.filter(pk=row.pk, state__in=WAITING, sent_at=None)
                columns = {"reason": reason, "stale": False, "not_before": None, "decided_by_person": by_person}
                done = mail_transitions.transition(
                    waiting, OutgoingState.CANCELLED, COMPOSER, self.now, reason, **columns
                )
                if done and not by_person:
                    Reminder.objects.filter(mail=row).delete()

    def try_compose(self, batch: Sequence[QuietReport]) -> bool:
        """Compose one reminder. An error does not keep others from being composed."""
        keys, person = [report.key for report in batch], batch[0].person
        try:
            with transaction.atomic():
                database.take(Lock.REMINDERS)
                # Whatever happens to them from here on finds the reminder, and marks it as outdated.
                list(Report.objects.select_for_update().filter(pk__in=keys).order_by("pk").values_list("pk"))
                by_key = {candidate.quiet.key: candidate for candidate in self.candidates(keys)}
                same = [other for other in self.batches(by_key.values()) if other[0].person == person]
                return bool(same) and self._compose(person, [by_key[report.key] for report in same[0]])
        except OperationalError as busy:  # the next round tries again
            log.error("%s: composing a reminder failed: %s", person, busy)
        except Exception:  # bad data from a lab, a tree or a mail
            log.exception("%s: composing a reminder failed", person)
        return False

    def _compose(self, person: str, due: Sequence[ReminderCandidate]) -> bool:
        first, *others = due
        # The purpose of a report's next reminder; one that we cancelled before it left is composed again
        mails = OutgoingMail.objects.filter(report=first.quiet.key, purpose__startswith=Purpose.REMINDER)
        unused = Q(state=OutgoingState.CANCELLED, decided_by_person=False, attempts=0)
        used = set(mails.exclude(unused).values_list("purpose", flat=True))
        purpose = next(name for number in count(1) if (name := f"{Purpose.REMINDER}{number}") not in used)
        context = report_context(first.sent, self.config.conventions)
        head, word = context.headline, last_word(first.quiet.key)
        in_threads = ThreadMails(self.settings, self.now, self.excluded)
        mail = compose_reminder(context, due, head, word, purpose, in_threads)
        if first.person.email not in [recipient.email for recipient in mail.recipients.to]:
            return False  # whoever is awaited gets no mail from us
        writer = OutboxWriter(self.settings, self.config, self.now)
        foreign = [context.thread.title, head.metric, head.suite, head.machine, head.unit]  # what is not ours
        foreign += [first.sent.about.status, first.person.name, *([word.author, *word.lines] if word else [])]
        foreign += [text for other in others[:MOST_OTHERS] for text in (other.sent.subject, other.sent.about.status)]
        start = writer.decide_start(mail, PolicyDecision(self.policy.action), foreign=foreign)
        if not writer.insert(context.report, mail, purpose, start):
            return False
        row = OutgoingMail.objects.get(report=context.report, purpose=purpose)
        Reminder.objects.bulk_create(
            Reminder(report_id=candidate.quiet.key, mail=row, person=person, composed_at=self.now) for candidate in due
        )
        return True
