"""The reports that may be reminded of, as values: what each waits for, from whom, and since when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from bot.compose.follow_ups.reminder_mail import MOST_OTHERS, OtherReport, ReminderData, last_word
from bot.compose.policy.reminding import QuietReport, ReminderPolicy
from bot.compose.report.report_data import FindingData
from bot.mail.addresses import Address
from bot.mail.auth.verdict import AuthVerdict
from bot.mail.identity import BotIdentity
from bot.mail.people.mailmap import Aliases
from bot.replies.sender_kind import SenderKind
from tracker.domain.events import OPEN, Awaited, EventData, EventKind, State, Verdict
from tracker.domain.report_state.fold import effective_events, fold
from tracker.domain.report_state.state import ReportState
from tracker.domain.timing.deadlines import report_clock
from tracker.models import Event, Message, OutgoingMail, OutgoingState, Purpose, ReleaseCandidate, Reminder

AWAY = timedelta(days=21)  # for so long after an automatic reply nobody is reminded
LATE_CANDIDATE = 5  # from this -rc on, a release is near
_PROGRESS = frozenset({EventKind.FIX_QUEUED, EventKind.FIX_MERGED, EventKind.FIX_GONE, EventKind.FIX_REVERTED})


@dataclass(frozen=True, slots=True)
class Quiet:
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


def quiet_reports(
    sent: QuerySet[OutgoingMail],
    identity: BotIdentity,
    policy: ReminderPolicy,
    excluded: Mapping[str, str],
    now: datetime,
    without: Sequence[int] = (),
) -> list[Quiet]:
    """Return reports with their clocks, in a constant number of queries. `without`: reminders that do not count."""
    rows = list(sent.select_related("report__culprit").defer("raw", "body").order_by("pk"))
    keys = [row.about.pk for row in rows]
    events = _events(keys)
    reminded = _reminded(keys, without)
    candidates = _latest_candidates()
    posters = _fix_posters(events.values())
    found = []
    for row in rows:
        report, own = row.about, events[row.about.pk]
        state = fold(Verdict(report.verdict), own)
        person = _person(row, state, posters, identity.aliases, excluded)
        clock = report_clock(
            state,
            (row.sent_at, report.last_human_reply_at, *_words(own)),
            serious=abs(report.change or 0.0) >= policy.serious_pct,
            near_release=candidates.get(report.merged_release, 0) >= LATE_CANDIDATE,
            policy=policy.deadlines,
        )
        quiet = QuietReport(
            key=report.pk,
            person=identity.aliases.proper.get(person.email, person.email),
            state=state.state,
            clock=clock,
            change_pct=report.change,
            urgency=report.urgency,
            reminded=tuple(sorted(reminded[report.pk])),
            silenced=_silenced(state, report.merged_release in candidates),
        )
        found.append(Quiet(quiet, row, state, person))
    return _without_unreachable(found, identity.aliases, excluded, now)


def _without_unreachable(
    found: Sequence[Quiet], aliases: Aliases, excluded: Mapping[str, str], now: datetime
) -> list[Quiet]:
    """Return the reports with a reason for silence where their person gets no mail, or is away."""
    everybody = {each.person.email: aliases.of(each.person.email) for each in found}
    away = _away({address for addresses in everybody.values() for address in addresses}, now)
    marked = []
    for each in found:
        addresses = everybody[each.person.email]
        why = next((excluded[address] for address in sorted(addresses) if address in excluded), "")
        why = why or ("away, as an automatic reply said" if addresses & away else "")
        silenced = each.report.silenced or why
        marked.append(replace(each, report=replace(each.report, silenced=silenced)))
    return marked


def reminder_data(first: Quiet, others: Sequence[Quiet], headline: FindingData) -> ReminderData:
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
    named = [OtherReport(each.sent.message_id, each.sent.subject, each.sent.about.status) for each in others]
    status, queued = first.sent.about.status, first.state.state is State.FIX_QUEUED
    return ReminderData(first.person, clock.stage, clock.since, status, headline, word, named[:MOST_OTHERS], queued)


def _events(reports: Sequence[int]) -> dict[int, list[EventData]]:
    found: dict[int, list[EventData]] = {pk: [] for pk in reports}
    for event in Event.objects.filter(report__in=reports):
        found[event.report_id].append(event.value())
    return found


def _words(events: list[EventData]) -> list[datetime]:
    """Return when somebody wrote or did something about it: not what was measured, nor the report itself."""
    return [
        each.occurred_at
        for each in effective_events(events)
        if each.actor or (each.message_id and each.kind is not EventKind.REPORTED) or each.kind in _PROGRESS
    ]


def _reminded(reports: Sequence[int], without: Sequence[int]) -> dict[int, list[datetime]]:
    """Return when reports were in reminders, sent or not; "still there" in a later version is one, too.

    What an operator cancelled counts as well; a reminder that we cancelled names no report.
    """
    found: dict[int, list[datetime]] = defaultdict(list)
    rows = Reminder.objects.filter(report__in=reports).exclude(mail__in=without)
    for report, composed_at, sent_at in rows.values_list("report", "composed_at", "mail__sent_at"):
        found[report].append(sent_at or composed_at)
    measured = Q(purpose__startswith=f"{EventKind.STILL_THERE} ", report__in=reports)
    again = OutgoingMail.objects.filter(measured).exclude(state=OutgoingState.CANCELLED)
    for report, composed_at, sent_at in again.values_list("report", "composed_at", "sent_at"):
        found[report or 0].append(sent_at or composed_at)
    return found


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
        each.message_id
        for events in of_reports
        for each in events
        if each.kind is EventKind.FIX_PROPOSED and each.message_id
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
        maintainers = [Address(names.get(each, ""), each) for each in row.maintainers]
        reachable = [each for each in maintainers if not aliases.of(each.email) & excluded.keys()]
        return next(iter(reachable or maintainers), Address("", ""))
    if state.state in (State.FIX_PROPOSED, State.FIX_CONFIRMED) and state.fix:
        poster = posters.get(state.fix.message_id)
        known = row.about.verified_authors | row.about.verified_recipients
        if poster and (poster.proven or poster.address.email in known):
            return poster.address
    return author


def _silenced(state: ReportState, in_development: bool) -> str:
    """Return why nobody must be reminded of a report, or ""."""
    if not state.reminders:
        return "reminders were turned off"
    if state.state is State.FIX_QUEUED and not in_development:
        return "its fix is queued, and the release in development does not need it"
    return ""
