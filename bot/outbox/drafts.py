"""Into the outbox: a composed mail is linted, the policy and limits are applied, it is inserted once.

`Start` is the state in which a mail begins: held if the lint finds a fault or the policy says so, else approved for a
day with room, or waiting for a person's approval. While there is a reason to be careful (`why_careful`), every mail
waits for a person. Report and purpose identify a mail: if another worker was faster nothing is inserted, and a mail
that was cancelled before it was sent is composed again.

What the database knows that affects a mail is read here as well: opt-outs and bounces, earlier reports of the same
change, and the number of mails per day and address. Replies to commands and subscriptions do not count there, since
they were asked for.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from functools import cached_property
from pathlib import Path
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from bot.compose.conventions import Conventions
from bot.compose.lint import faults
from bot.compose.mail import ComposedMail, to_bytes
from bot.compose.policy import Action, Policy, PolicyContext, PolicyDecision, first_day
from bot.compose.report_data import ReportData
from bot.mail.message import one_line
from bot.mail.patches import PatchMail
from bot.mail.settings import Aliases, BotSettings
from tracker.domain.events import EventKind, Part
from tracker.domain.report_state import effective_events
from tracker.models import Correspondent, Mailing, OutgoingMail, OutgoingState, Purpose, Report
from tracker.services import mail_transitions
from tracker.services.mail_transitions import why_careful

# --- Settings for composing ---

# From a patch-id and a title to the last posting; raises Unreadable if the server does not answer.
PatchLookup = Callable[[str, str], PatchMail | None]


@dataclass(frozen=True, slots=True)
class ComposeConfig:
    """`trees`: clones in which to look up culprits; `patch_lookup`: finds postings by patch-id, if a server is set."""

    conventions: Conventions = field(default_factory=Conventions)
    policy: Policy = field(default_factory=Policy)
    trees: tuple[Path, ...] = ()
    patch_lookup: PatchLookup | None = None


# --- Opt-outs, earlier reports, daily limits ---

_SENDABLE = (OutgoingState.APPROVED, OutgoingState.SENDING, OutgoingState.SENT, OutgoingState.IN_DOUBT)
_FIX = frozenset({EventKind.FIX_PROPOSED, EventKind.FIX_CONFIRMED, EventKind.FIX_QUEUED, EventKind.FIX_MERGED})
_REASONS = {Mailing.OPTED_OUT: "opted out", Mailing.BOUNCING: "bounces", Mailing.STOPPED: "on the stop list"}


def excluded_addresses(aliases: Aliases, never: Iterable[str] = ()) -> dict[str, str]:
    """Return the addresses that must get no mail, and the reason: for whoever wants none, with all aliases of theirs; a
    bounce is of one address. `never`: those of the policy.
    """
    rows = Correspondent.objects.exclude(mailing=Mailing.OPTED_IN).values_list("address", "mailing", "note")
    excluded = dict.fromkeys(never, "never mailed, by the policy")
    for address, mailing, note in rows:
        addresses = [address] if mailing == Mailing.BOUNCING else aliases.of(address)
        excluded |= dict.fromkeys(addresses, _REASONS[Mailing(mailing)] + (f": {note}" if note else ""))
    return excluded


def policy_context(report: Report) -> PolicyContext:
    """Return what decides whether a report is mailed now."""
    # A mailed report of the same patch under another commit, matched by git or by the commit's data
    culprit = report.culprit
    patch = Q(related__commit=culprit, related__part=Part.CULPRIT)
    if culprit.same_patch_as_id:
        patch |= Q(culprit=culprit.same_patch_as_id)
    if culprit.patch_id and culprit.title:
        patch |= Q(culprit__patch_id=culprit.patch_id, culprit__title=culprit.title)
    if culprit.patch_message_id:
        patch |= Q(culprit__patch_message_id=culprit.patch_message_id)
    mailed = Q(outgoing__purpose=Purpose.REPORT, outgoing__state__in=(*_SENDABLE, OutgoingState.COMPOSED))
    rows = Report.objects.filter(patch).filter(Q(reported_at__isnull=False) | mailed).exclude(pk=report.pk).distinct()
    same = rows.select_related("culprit", "tree").order_by("pk").first()
    # An earlier report by another robot, found in an archive
    event = report.events.filter(kind=EventKind.REPORTED).exclude(message_id="").first()
    return replace(
        basic_context(report),
        reported_by=event.message_id if event else "",
        same_patch=same.culprit.sha if same else "",
        same_patch_tree=same.tree.name if same and same.tree else "",
    )


def basic_context(report: Report, *, with_fix: bool = True) -> PolicyContext:
    """Return when a fix was posted (None unless `with_fix`), and whether the author opted in."""
    events = [event.value() for event in report.events.all()] if with_fix else []
    # What a curve confirms was posted before: by the mail or the commit that it confirms.
    posted = [
        event.occurred_at
        for event in effective_events(events)
        if event.kind in _FIX and not event.result.startswith("curve ")
    ]
    opted_in = Correspondent.objects.filter(address=report.culprit.author_email, mailing=Mailing.OPTED_IN)
    return PolicyContext(fix_posted_at=max(posted, default=None), opted_in=opted_in.exists())


class MailCalendar:
    """Mails per day and address, from today on; updated as mails are added to the outbox."""

    def __init__(self, policy: Policy, now: datetime) -> None:
        self._policy, self._today = policy, now.astimezone(timezone.get_default_timezone()).date()
        self._sent: defaultdict[date, Counter[str]] = defaultdict(Counter)
        asked_for = Q(purpose__startswith=Purpose.ANSWER) | Q(purpose__startswith=Purpose.SUBSCRIPTION)
        rows = OutgoingMail.objects.filter(state__in=_SENDABLE).exclude(asked_for)
        midnight = datetime.combine(self._today, time(), tzinfo=timezone.get_default_timezone())
        waits = Q(state__in=(OutgoingState.APPROVED, OutgoingState.SENDING), not_before=None)  # sent today
        dated = rows.annotate(day=Coalesce("not_before", "sent_at", "composed_at")).filter(waits | Q(day__gte=midnight))
        for day, recipients in dated.values_list("day", "recipients").iterator(chunk_size=1000):
            self._sent[max(day.date(), self._today)].update([*set(recipients), ""])

    def due(self, lists: Iterable[str], author: str) -> datetime | None:
        """Return when a mail to these may be sent: None for now, else the start of a later day."""
        day = first_day(self._sent, set(lists), author, self._policy, self._today)
        return None if day == self._today else datetime.combine(day, time(), tzinfo=timezone.get_default_timezone())

    def add(self, addresses: Iterable[str], due: datetime | None) -> None:
        """Count a mail to these addresses on that day."""
        self._sent[due.date() if due else self._today].update([*set(addresses), ""])


# --- Inserting ---

COMPOSER = "composing"
_STATES = {Action.SEND: OutgoingState.APPROVED, Action.APPROVE: OutgoingState.COMPOSED, Action.HOLD: OutgoingState.HELD}


@dataclass(frozen=True, slots=True)
class Start:
    """The initial state of a mail, why it is held if it is, and until when it is held or must not be sent."""

    state: OutgoingState
    reason: str = ""
    not_before: datetime | None = None


class OutboxWriter:
    """Checks mails and puts them into the outbox, for one round of composing."""

    def __init__(self, settings: BotSettings, config: ComposeConfig, now: datetime) -> None:
        self.settings, self.config, self.now = settings, config, now
        self._calendar = MailCalendar(config.policy, now)

    def decide_start(
        self,
        mail: ComposedMail,
        decision: PolicyDecision,
        data: ReportData | None = None,
        foreign: Collection[str] = (),
        *,
        counts: bool = True,
    ) -> Start:
        """Return the initial state: held if the mail has a fault or the policy says so; else approved for a day with
        room, or waiting for approval.

        `foreign`: names and texts in a further mail that are not ours; `counts`: whether the daily limits apply.
        """
        if problems := faults(mail, self.settings, self.config.conventions, self.now, data, foreign):
            return Start(OutgoingState.HELD, "; ".join(problems)[:1000])
        state = _STATES[decision.action]
        due = None
        if counts and state == OutgoingState.APPROVED:
            # These lists get every mail, so that they have no limit.
            common = {self.settings.list_address, *self.settings.lists, self.config.conventions.lkml}
            limited = [recipient for recipient in mail.recipients.to if recipient.email not in common]
            author = next((recipient.email for recipient in limited if not recipient.is_list), "")
            limited += [recipient for recipient in mail.recipients.cc if recipient.email not in common]
            due = self._calendar.due([recipient.email for recipient in limited if recipient.is_list], author)
        return Start(state, decision.reason, decision.until or due)

    def insert(
        self,
        report: Report | None,
        mail: ComposedMail,
        purpose: str,
        start: Start,
        newest: int = 0,
        withheld: Sequence[int] = (),
    ) -> bool:
        """Put a mail into the outbox; return False if another worker was faster.

        `report`: None for a bulletin; `newest`: the newest finding that it covers, except for those `withheld`.
        """
        if start.state != OutgoingState.HELD and self._why_careful:
            start = Start(OutgoingState.HELD, self._why_careful)
        row = {
            "message_id": mail.message_id,
            "sender": self.settings.return_path(mail.report_tag, mail.message_id),
            "state": start.state,
            "reason": start.reason,
            "not_before": start.not_before,
            "newest_finding": newest,
            "decided_by_person": bool(self._why_careful),  # no rule lets it go
            "withheld": list(withheld),
            **self.columns(mail),
        }
        same = OutgoingMail.objects.filter(report=report, purpose=purpose)
        cancelled = same.filter(state=OutgoingState.CANCELLED, decided_by_person=False, attempts=0)  # never sent
        columns = {name: value for name, value in row.items() if name != "state"}
        if not mail_transitions.transition(cancelled, start.state, COMPOSER, self.now, start.reason, **columns):
            try:
                with transaction.atomic():
                    mail_transitions.record_created(
                        OutgoingMail.objects.create(report=report, purpose=purpose, **row), COMPOSER
                    )
            except IntegrityError:
                return False
        if not purpose.startswith(Purpose.SUBSCRIPTION):
            self.count(mail, start)
        return True

    @cached_property
    def _why_careful(self) -> str:
        return why_careful(self.now)

    def count(self, mail: ComposedMail, start: Start) -> None:
        """Count an approved mail against the daily limits."""
        if start.state == OutgoingState.APPROVED:
            self._calendar.add(mail.envelope, start.not_before)

    def columns(self, mail: ComposedMail, message_id: str = "") -> Mapping[str, Any]:
        """Return the columns with a mail's content. `message_id`: its Message-ID, if it is composed again."""
        everybody = mail.recipients
        headers = (("To", everybody.to), ("Cc", everybody.cc), ("", everybody.left_out[:100]))
        return {
            "raw": to_bytes(replace(mail, message_id=message_id) if message_id else mail),
            "recipients": list(mail.envelope),
            "people": [  # with those left out: address, name, header or "", and the reason
                [one_line(recipient.email, 320), one_line(recipient.address.name, 100), header, one_line(recipient.why)]
                for header, recipients in headers
                for recipient in recipients
            ],
            "lists": everybody.lists,
            "maintainers": everybody.maintainers,
            "subject": mail.subject,
            "body": mail.body,
            "composed_at": self.now,
            "looked_at": self.now,
        }
