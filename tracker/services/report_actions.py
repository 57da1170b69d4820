"""What people do to reports: actions, each with a key; undoing them; decisions on suggestions.

An action adds one event per report, with the user, and can be undone: a reversal is an event as well. Many reports
are changed in one transaction of six statements. A report that has changed since the user loaded it is left
unchanged, and the outcome says so; so is one where the action has no effect, or which the user may not change. Only
its user knows the ID of an action: the key of its events, which everybody can read, does not reveal it.

A decision on a suggestion adds an event with the user, too, and can be undone. ACTION_KEYS lists the actions of the
triage page: one key, one kind of event; a comment there says how to add one.
"""

import difflib
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from urllib.parse import unquote

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import F, Q, QuerySet

from tracker.domain import versions
from tracker.domain.commit_names import named_fix
from tracker.domain.events import EventData, EventKind, InvalidInput, Role, Verdict
from tracker.domain.report_state import effective_events, fold
from tracker.models import (
    UNDECIDED,
    Commit,
    Correspondent,
    Decision,
    Event,
    Message,
    OutgoingMail,
    Purpose,
    Release,
    Report,
    RuleRecord,
    Suggestion,
    Tree,
)
from tracker.models.reports import ENOUGH_DECISIONS, PRECISE
from tracker.services import catalog, corrections, event_log, person_reports
from tracker.services.mail_transitions import OWN
from tracker.services.report_summary import mainline_followed, status_now

# --- Actions and undoing them ---

MOST = 500  # reports per action
LONGEST = 2000  # characters of the argument
IN_A_SENTENCE = 160  # characters of a note in the status text
MOST_TAGS = 10
MOST_FOLLOWED = 10  # reports, from one duplicate to the next
MOST_CANDIDATES = 15  # of one release; no kernel has had more than ten
_LAST_MINOR = 20  # v4.20; every other major version has ended with 19 or before
_TAG = re.compile(r"[a-z0-9][a-z0-9_-]{0,29}\Z")
_SHA = re.compile(r"[0-9a-fA-F]{7,64}\Z")
_IN_BRACKETS = re.compile(r"<([^\s<>]{1,100}@[^\s<>]{1,100})>\Z")
_LEAST_WORDS = 4  # of a title without a subsystem, which hardly any commit has
_BATCH = re.compile(r"[0-9a-f]{12}\Z")
Permit = Callable[[Report], Role | None]  # the role in which a user may change a report; None: not allowed


@dataclass(frozen=True, slots=True)
class ReportAction:
    """One action of a user. `batch`: its ID, 12 random hexadecimal digits that only its user knows.

    `notify_thread`: tell the threads.
    """

    kind: EventKind
    person: str
    batch: str
    at: datetime
    argument: str = ""
    notify_thread: bool = False

    @property
    def key(self) -> str:
        return _event_key(self.batch)

    def event(self, role: Role, release: str) -> EventData:
        """Return the event for one report. `release`: what it blocks by default. Raises InvalidInput."""
        event = EventData(self.key, self.kind, self.at, role, actor=self.person)
        text = _words(self.argument)
        match self.kind:
            case EventKind.FIX_PROPOSED:
                name, title = named_fix(text)
                return replace(event, remark=name[:300], title=title[:300])
            case EventKind.FIX_CONFIRMED:
                return replace(event, title=text[:300])
            case EventKind.FIX_QUEUED:
                return replace(event, tree=text[:100])
            case EventKind.FIX_LANDED | EventKind.DISAPPEARED:
                return replace(event, tag=_version(text))
            case EventKind.BLOCKS:
                return replace(event, tag=_version(text) or release or "the release")
            case EventKind.DUPLICATE | EventKind.SUCCEEDED:
                return replace(event, remark=_other_report(text))
            case EventKind.TAGGED:
                return replace(event, remark=_tags(text))
            case EventKind.CORRECTED:
                return corrections.corrected(event, text)
            case EventKind.ASSIGNED:
                return replace(event, remark=named_person(_required(text), self.person))
            case EventKind.NOTED:
                # Shortened, as the status text shows it; the event keeps all of it as its quote
                short = _required(text) if len(text) <= IN_A_SENTENCE else f"{text[:IN_A_SENTENCE].rsplit(' ', 1)[0]} …"
                return replace(event, remark=short)
        if text:
            raise InvalidInput("takes no text: choose Note for it, or delete it")
        return event


def named_person(text: str, writer: str) -> str:
    """Return the name or the address that is to be assigned, of "Dana Brook <dana@dev.example>" the address; "" for
    nobody.
    """
    if text.lower() == "me":
        return writer
    if text.lower() == "nobody":
        return ""
    address = _IN_BRACKETS.search(text)
    return address[1] if address else text[:100]


def _words(text: str) -> str:
    text = " ".join(text.split())
    if len(text) > LONGEST:
        raise InvalidInput(f"expected at most {LONGEST:,} characters; found {len(text):,}")
    return text


def _required(text: str) -> str:
    if not text:
        raise InvalidInput("expected some text; found none")
    return text


def _version(text: str) -> str:
    if text and versions.parse(text) is None:
        raise InvalidInput(f"expected a version like v6.12-rc4; found {text[:40]!r}")
    return text


def _tags(text: str) -> str:
    """Return the tags in a text, each once and in order; "none" for none."""
    tags = [] if _required(text).lower() == "none" else sorted(set(text.lower().replace(",", " ").split()))
    if bad := next((tag for tag in tags if not _TAG.match(tag)), ""):
        raise InvalidInput(f"expected tags of letters, digits, - and _; found {bad[:40]!r}")
    if len(tags) > MOST_TAGS:
        raise InvalidInput(f"expected at most {MOST_TAGS} tags; found {len(tags)}")
    return " ".join(tags)


def _other_report(text: str) -> str:
    """Return what names another report: the sha of its culprit, also from a link to its page, or the Message-ID of its
    mail, from a link to that.
    """
    if message_id := _message_id(text):
        return message_id
    if page := _REPORT_PAGE.search(text):
        text = page[1]
    if not _SHA.match(text):
        raise InvalidInput(f"expected the sha of another report's culprit; found {text[:40]!r}")
    return text.lower()


_REPORT_PAGE = re.compile(r"https?://\S+/report/([0-9a-f]{7,40})\b", re.I)


def _message_id(link: str) -> str:
    """Return the Message-ID that a link leads to, as on lore; "" if it leads to something else."""
    parts = link.split("/") if "://" in link else ()
    return next((unquote(part).strip("<>") for part in parts if "@" in unquote(part)), "")[:998]


def _report_of_mail(message_id: str) -> Report | None:
    """Return the report whose own mail this is."""
    sent = OutgoingMail.objects.filter(message_id=message_id, purpose=Purpose.REPORT).values("report")
    archived = Event.objects.filter(message_id=message_id, kind=EventKind.REPORTED).values("report")
    return Report.objects.filter(Q(pk__in=sent) | Q(pk__in=archived)).select_related("culprit").first()


@dataclass(slots=True)
class ActionOutcome:
    """The outcome of an action: the keys of the reports that changed, and the others by reason."""

    changed: list[int] = field(default_factory=list)
    before: dict[int, str] = field(default_factory=dict)  # the status of each of these before
    overtaken: list[Report] = field(default_factory=list)  # changed by someone else in the meantime
    idle: list[Report] = field(default_factory=list)  # the action would change nothing
    forbidden: list[Report] = field(default_factory=list)

    def summary(self) -> str:
        """Return the outcome in a sentence or two."""
        done = "1 report changed" if len(self.changed) == 1 else f"{len(self.changed)} reports changed"
        sentences = [f"{done}."]
        for reports, why in (
            (self.overtaken, "was changed in the meantime, so this action was not applied"),
            (self.idle, "is unchanged: this action has no effect there"),
            (self.forbidden, "is unchanged: you do not have permission"),
        ):
            sentences += [f"{report.culprit.sha10} {why} (now: {report.status})." for report in reports[:3]]
            sentences += [f"{len(reports) - 3} more for the same reason."] if len(reports) > 3 else []
        return " ".join(sentences)


@transaction.atomic
def change(revisions: Mapping[int, int], action: ReportAction, permit: Permit, release: str = "") -> ActionOutcome:
    """Apply an action to reports, each at the revision that the user saw. Raises InvalidInput if it can't be done."""
    # Reject a bad argument before anything is locked
    checked = check(action.event(Role.MACHINE, release), revisions)
    # Only of a click: of two mails, the one that is read first would decide.
    if checked.kind in (EventKind.DUPLICATE, EventKind.SUCCEEDED) and _leads_back(checked, revisions):
        raise InvalidInput(f"the report of {checked.remark} itself leads to this one; expected one that stays")
    outcome = ActionOutcome()

    def make_event(report: Report, events: list[Event]) -> Event | None:
        role = permit(report)
        if role is None:
            outcome.forbidden.append(report)
            return None
        if report.revision != revisions[report.pk]:
            outcome.overtaken.append(report)
            return None
        event = action.event(role, release or report.merged_release or report.shift_left_release)
        if event.kind in (EventKind.DUPLICATE, EventKind.SUCCEEDED, EventKind.ASSIGNED):
            event = replace(event, remark=checked.remark)
        if event.kind is EventKind.CORRECTED:
            event = replace(event, commit=checked.commit, remark=report.culprit.sha)
        values = [entry.value() for entry in events]
        if event.commit == report.culprit.sha or not _changes_state(report, values, event):
            outcome.idle.append(report)
            return None
        outcome.changed.append(report.pk)
        outcome.before[report.pk] = report.status
        quote = action.argument.strip() if action.kind is EventKind.NOTED else ""
        row = event_log.event_row(report, event, action.at, quote)
        row.batch, row.notify_thread = action.batch, action.notify_thread
        return row

    event_log.amend(list(revisions)[:MOST], make_event)
    if action.kind is EventKind.CORRECTED:
        corrections.follow(outcome.changed, action.person, action.at)
    return outcome


def check(event: EventData, reports: Collection[int]) -> EventData:
    """Raise InvalidInput if an event names what is not there: a report, a person, a version, a tree. Return the event
    with the commit's whole sha.
    """
    match event.kind:
        case EventKind.CORRECTED:
            for end in event.title.split(".."):
                _check_released(end, event.occurred_at)
            return corrections.checked(event, reports)
        case EventKind.DUPLICATE | EventKind.SUCCEEDED:
            by_mail = _report_of_mail(event.remark) if "@" in event.remark else None
            culprit = by_mail.culprit.sha if by_mail else event.remark
            same = catalog.reports_of(culprit).values_list("pk", "culprit__sha")[:10]
            if not same:
                raise InvalidInput(f"expected the sha of another report's culprit; no report has {event.remark}")
            others = [sha for pk, sha in same if pk not in reports]
            if not others:
                raise InvalidInput(f"{event.remark} is the report itself; expected another report's culprit")
            return replace(event, remark=(others[0] if len(others) == 1 else culprit)[:10])
        case EventKind.FIX_PROPOSED:
            _check_fix(event, reports)
        case EventKind.ASSIGNED if event.remark and event.remark != event.actor:
            return replace(event, remark=_known_person(event.remark, reports))
        case EventKind.FIX_LANDED | EventKind.DISAPPEARED | EventKind.BLOCKS if versions.parse(event.tag):
            _check_released(event.tag, event.occurred_at)
            if landing := _landed_after(event.tag, reports):
                raise InvalidInput(f"{event.tag} is older than the culprit, which landed in {landing}")
        case EventKind.FIX_QUEUED if event.tree and not Tree.objects.filter(name=event.tree).exists():
            names = list(Tree.objects.order_by("name").values_list("name", flat=True))
            near = _meant(event.tree[:40], names)
            listed = ", ".join(names[:20]) or "none is"
            raise InvalidInput(f"expected a followed tree ({listed}); found {event.tree[:40]!r}{near}")
    return event


def _check_fix(event: EventData, reports: Collection[int]) -> None:
    """Raise InvalidInput if what is named as the fix is not a commit, or the culprit itself."""
    wanted = "expected the fix's title, its sha or a link to its mail"
    if versions.parse(f"v{event.title.removeprefix('v')}"):
        raise InvalidInput(f"{wanted}; {event.title} is a version")
    if not event.remark and ": " not in event.title and 0 < len(event.title.split()) < _LEAST_WORDS:
        raise InvalidInput(f"{wanted}; found {event.title[:40]!r}")
    if _SHA.match(event.remark) and catalog.reports_of(event.remark.lower()).filter(pk__in=reports).exists():
        raise InvalidInput(f"{event.remark[:10]} is the report's own culprit; expected the commit that fixes it")
    if event.title and Report.objects.filter(pk__in=reports, culprit__title__iexact=event.title).exists():
        raise InvalidInput(f"{event.title[:60]!r} is the report's own culprit; expected the commit that fixes it")
    if (name := _message_id(event.remark)) and _report_of_mail(name):
        raise InvalidInput("this link leads to a report's own mail; expected the mail of the fix")


def _leads_back(event: EventData, reports: Collection[int]) -> bool:
    """Whether the report that these are to be duplicates of, or to go on as, is that of one of them already."""
    others = Report.objects.filter(culprit__sha__startswith=event.remark).values_list("pk", flat=True)[:MOST_FOLLOWED]
    seen, pending = set[int](), set(others)
    while pending and len(seen) < MOST_FOLLOWED:
        seen |= pending
        leads_to = Q(pk__in=[])
        for other in Report.objects.filter(pk__in=pending).prefetch_related("events"):
            state = fold(Verdict(other.verdict), [row.value() for row in other.events.all()])
            sha = state.successor if event.kind is EventKind.SUCCEEDED else state.duplicate_of
            leads_to |= Q(culprit__sha__startswith=sha) if sha else Q(pk__in=[])
        pending = set(Report.objects.filter(leads_to).values_list("pk", flat=True)[:MOST_FOLLOWED]) - seen
        if pending & set(reports):
            return True
    return False


def _landed_after(tag: str, reports: Collection[int]) -> str:
    """Return the version in which a culprit of these reports landed if that is later than `tag`, else "": of the
    mainline, since culprits are backported to stable kernels.
    """
    version = versions.parse(tag)
    landings = Report.objects.filter(pk__in=reports).values_list("landing", flat=True)
    if version is None or version.is_stable:
        return ""
    return next((name for name in landings if (landed := versions.parse(name)) and landed > version), "")


def _known_person(name: str, reports: Collection[int]) -> str:
    """Return the name or the address of somebody as it is stored: a user, an author, who wrote about a report, or got
    mail of these. Raises InvalidInput if nobody has it.
    """
    users = get_user_model().objects.filter(is_active=True)
    if user := users.filter(username__iexact=name).first():
        return user.get_username()
    address = name.lower()
    if (
        users.filter(email__iexact=name).exists()
        or Commit.objects.filter(author_email=address).exists()
        or Message.objects.filter(author_email=address).exclude(kind=OWN).exists()
        or Correspondent.objects.filter(address=address).exists()
        or _got_mail(address, reports)
    ):
        return address
    near = _meant(name, users.values_list("username", flat=True))
    raise InvalidInput(f"expected a user's name, or an address that a report knows; found {name!r}{near}")


def _got_mail(address: str, reports: Collection[int]) -> bool:
    sent = OutgoingMail.objects.filter(report__in=reports).values_list("recipients", "lists")
    return any(address == recipient.lower() for recipients, lists in sent for recipient in {*recipients} - {*lists})


def _check_released(name: str, now: datetime) -> None:
    version = versions.parse(name)
    if version and version.major > 2 and version.minor > _LAST_MINOR:
        raise InvalidInput(f"there is no {name}{_meant(name, Release.objects.values_list('version', flat=True))}")
    if not _may_be_released(name, now):
        raise InvalidInput(f"{name} can't be released yet: the newest version is {Release.objects.first()}")


def _meant(name: str, known: Iterable[str]) -> str:
    """Return a question for what somebody may have meant; "" if nothing is near."""
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def _may_be_released(name: str, now: datetime) -> bool:
    """Whether a version is at most the one after the newest: of those known here, or by the calendar.

    A release comes every 9 or 10 weeks, and v4.20, v5.19 and v6.19 were the last of their major version.
    """
    version, newest = versions.parse(name), _version_of(Release.objects.first())
    if version is not None and version.is_candidate and version.candidate > MOST_CANDIDATES:
        return False
    if version is None or newest is None:
        return True
    latest = _place(newest)
    released = Release.objects.filter(released_at__lte=now).first()
    if released and released.released_at and (last := _version_of(released)):
        latest = max(latest, _place(last) + (now - released.released_at) // timedelta(weeks=9))
    return _place(version) <= latest + 1 or (version.major, version.minor) == (newest.major + 1, 0)


def _version_of(release: Release | None) -> versions.Version | None:
    return versions.parse(release.version) if release else None


def _place(version: versions.Version) -> int:
    return 20 * version.major + version.minor


def _changes_state(report: Report, events: Sequence[EventData], event: EventData) -> bool:
    """Whether the event would change the report state; who caused it does not matter."""
    verdict = Verdict(report.verdict)
    before, after = fold(verdict, events), fold(verdict, [*events, event])
    return replace(before, decided_by="", closed_at=None) != replace(after, decided_by="", closed_at=None)


def _event_key(batch: str) -> str:
    """Return the key of an action's events, which everybody can read. The action's own ID can't be derived from it."""
    return f"hand:{hashlib.sha256(batch.encode()).hexdigest()[:12]}"


def undo(batch: str, person: str, now: datetime, permit: Permit, *, of_others: bool) -> list[int]:
    """Undo an action wherever it is still in effect. Returns the keys of the reports that changed.

    `of_others`: whether the user may undo what others did.
    """
    if not _BATCH.match(batch):
        raise InvalidInput(f"expected the ID of an action; found {batch[:40]!r}")
    reports = Event.objects.filter(batch=batch).exclude(batch="").values_list("report", flat=True)
    return reverse_event(reports, _event_key(batch), person, now, permit, of_others=of_others)


@transaction.atomic
def reverse_event(
    reports: Iterable[int], key: str, person: str, now: datetime, permit: Permit, *, of_others: bool
) -> list[int]:
    """Reverse an event where it is in effect: it stays in the event log but no longer counts.

    Without `of_others` only the user's own.
    """
    changed: list[int] = []

    def make_event(report: Report, events: list[Event]) -> Event | None:
        effective = {event.key for event in effective_events([event.value() for event in events])}
        if permit(report) is None or key not in effective:
            return None
        if not of_others and any(event.key == key and event.actor != person for event in events):
            return None
        changed.append(report.pk)
        return event_log.reversal(report, key, person, now, {event.key for event in events})

    event_log.amend(list(reports)[:MOST], make_event)
    corrections.follow(changed, person, now)
    return changed


# --- Decisions on suggestions ---


@dataclass(frozen=True, slots=True)
class IfAccepted:
    """What a report would be if a suggestion were accepted: its status text, and whether anything would change."""

    status: str
    changes: bool


def outcomes(suggestions: Collection[Suggestion]) -> dict[int, IfAccepted]:
    """Return the outcome of each suggestion, by its key: two queries, and the reports must be loaded."""
    verdicts = {suggestion.report_id: Verdict(suggestion.report.verdict) for suggestion in suggestions}
    events = event_log.values_of(verdicts)
    followed = mainline_followed()
    before = {report: fold(verdict, events[report]) for report, verdict in verdicts.items()}
    result = {}
    for suggestion in suggestions:
        report = suggestion.report_id
        after = event_log.state_if_accepted(verdicts[report], events[report], suggestion)
        status = status_now(after, followed)
        result[suggestion.pk] = IfAccepted(status, event_log.would_change(suggestion, before[report], after))
    return result


# The kinds of event that a suggestion may be changed to: what a mail can mean.
OTHERS = (
    EventKind.RESPONDED, EventKind.WORKING, EventKind.ASKED, EventKind.ANSWERED, EventKind.DISPUTED,
    EventKind.FIX_PROPOSED, EventKind.FIX_FAILED, EventKind.FIX_CONFIRMED, EventKind.FIX_QUEUED,
    EventKind.DROPPED, EventKind.EXPECTED, EventKind.INVALID, EventKind.DUPLICATE,
)  # fmt: skip
DECISIONS = {"accept": Decision.ACCEPTED, "reject": Decision.REJECTED}
CHOICES = (*DECISIONS, *OTHERS)
AT_ONCE = 100  # suggestions that are decided by one click
SECOND_OPINION = "second_opinion"
UNVERIFIED_REPORT = "unverified_report"  # accepted, its recipients are the people of the report
_OF_A_FIX = frozenset({EventKind.FIX_PROPOSED, EventKind.FIX_CONFIRMED, EventKind.FIX_QUEUED})


def decision_of(choice: str, suggestion: Suggestion) -> tuple[Decision, EventKind | None]:
    """Return the decision that one of CHOICES is, and the kind of event that is to stand instead, if it names one."""
    if choice in DECISIONS:
        return DECISIONS[choice], None
    return Decision.ACCEPTED if choice == suggestion.kind else Decision.CHANGED, EventKind(choice)


@transaction.atomic
def decide(
    suggestion: Suggestion, decision: Decision, person: str, now: datetime, instead: EventKind | None = None
) -> bool:
    """Accept, reject or change a suggestion, once. Returns False if someone else decided first.

    Accepted or changed, it becomes an event of that kind; rejected, an event that changes no state.
    """
    undecided = Suggestion.objects.filter(pk=suggestion.pk, decision__in=UNDECIDED)
    if not undecided.update(decision=decision, decided_by=person, decided_at=now):
        return False
    value = replace(suggestion.value(), actor=person)
    if decision == Decision.REJECTED:
        value = replace(
            value, kind=EventKind.READING_REJECTED, occurred_at=now, remark=suggestion.rule, title="", commit=""
        )
    elif decision == Decision.CHANGED and instead:
        value = replace(value, kind=instead, remark="", title=value.title if instead in _OF_A_FIX else "")
    # The suggestion's own key at first, so that a replay adds no second event; after an undo, a new one
    key = suggestion.key if value.kind == suggestion.kind else f"{value.kind}={suggestion.key}"
    times = _events(suggestion).count()
    value = replace(value, key=f"{key}!{times}" if times else key)
    event_log.record([event_log.event_row(suggestion.report, value, now, suggestion.quote)])
    if decision == Decision.ACCEPTED:
        _vouch(suggestion, True)
        if value.kind is EventKind.BISECTED:
            person_reports.name_culprit(suggestion.report, value)
    _count(suggestion.rule, decision, 1)
    return True


def decide_many(keys: Collection[int], decision: Decision, person: str, now: datetime) -> list[int]:
    """Accept or reject suggestions, oldest first, each in a transaction of its own. Returns those that nobody had
    decided.
    """
    chosen = Suggestion.objects.filter(pk__in=keys, decision__in=UNDECIDED).select_related("report")
    return [row.pk for row in chosen.order_by("occurred_at", "pk") if decide(row, decision, person, now)]


def of_precise_rule(rule: str, most: int, newest: int) -> list[int]:
    """Return the open suggestions of a rule up to the newest that was seen, oldest first.

    Raises InvalidInput unless the rule is right often enough.
    """
    record = RuleRecord.objects.filter(rule=rule).first()
    if record is None or not record.is_precise:
        wanted = f"at least {ENOUGH_DECISIONS} decisions, {100 * PRECISE:.0f}% of them to accept"
        raise InvalidInput(f"rule: expected one with {wanted}; found {rule[:60]!r}")
    waiting = Suggestion.objects.filter(rule=rule, decision=Decision.OPEN, pk__lte=newest)
    return list(waiting.order_by("occurred_at", "pk").values_list("pk", flat=True)[:most])


@transaction.atomic
def take_back(suggestion: Suggestion, person: str, now: datetime) -> bool:
    """Undo a decision: reverse its event and reopen the suggestion. Returns False if nobody has decided."""
    decided = Suggestion.objects.filter(pk=suggestion.pk).exclude(decision__in=UNDECIDED)
    before = decided.values_list("decision", flat=True).first()
    if before is None or not decided.update(decision=Decision.OPEN, decided_by="", decided_at=None):
        return False
    if before == Decision.ACCEPTED:
        _vouch(suggestion, False)
    if event := _events(suggestion).order_by("-pk").first():
        event_log.record([event_log.reversal(suggestion.report, event.key, person, now)])
    _count(suggestion.rule, before, -1)
    return True


def _vouch(suggestion: Suggestion, verified: bool) -> None:
    """Whoever accepts that a robot sent a report vouches for the people whom it names."""
    if suggestion.rule == UNVERIFIED_REPORT and suggestion.kind == EventKind.REPORTED:
        Report.objects.filter(pk=suggestion.report_id).update(people_verified=verified)


def _events(suggestion: Suggestion) -> QuerySet[Event]:
    """Return the events of earlier decisions on this suggestion."""
    events = Event.objects.filter(report=suggestion.report_id, message_id=suggestion.message_id).exclude(actor="")
    return events.filter(
        Q(key=suggestion.key)
        | Q(key__startswith=f"{suggestion.key}!")
        | Q(key__endswith=f"={suggestion.key}")
        | Q(key__contains=f"={suggestion.key}!")
    )


def _count(rule: str, decision: str, by: int) -> None:
    RuleRecord.objects.get_or_create(rule=rule)
    least = {f"{decision}__gte": max(0, -by)}  # decisions from before they were counted can be undone, too
    RuleRecord.objects.filter(rule=rule, **least).update(**{decision: F(decision) + by})


# --- Keys of the triage page ---


@dataclass(frozen=True, slots=True)
class ActionKey:
    """A report action. `needs` describes its required argument, `offers` an optional one; "" for none. `often`: used so
    often that it stands in the bar; the others are behind "More".
    """

    name: str
    key: str
    label: str
    kind: EventKind
    needs: str = ""
    offers: str = ""
    often: bool = False


# To add an action: a free key here, what is given with it in `ReportAction.event`, a line in docs/triage.md.
ACTION_KEYS = (
    ActionKey("responded", "r", "Responded", EventKind.RESPONDED),
    ActionKey("working", "w", "Working on it", EventKind.WORKING, often=True),
    ActionKey("needs-info", "i", "Needs information", EventKind.ASKED),
    ActionKey("disputed", "d", "Disputed", EventKind.DISPUTED),
    ActionKey(
        "proposed", "p", "Fix proposed", EventKind.FIX_PROPOSED, offers="the fix's title, sha or link", often=True
    ),
    ActionKey("confirmed", "c", "Fix confirmed", EventKind.FIX_CONFIRMED, offers="the title of the fix"),
    ActionKey("queued", "q", "Fix queued", EventKind.FIX_QUEUED, offers="the tree", often=True),
    ActionKey("fixed", "f", "Fixed", EventKind.FIX_LANDED, offers="the version: v6.12-rc4", often=True),
    ActionKey("dropped", "l", "Reverted", EventKind.DROPPED),
    ActionKey("expected", "e", "Expected", EventKind.EXPECTED, often=True),
    ActionKey("invalid", "v", "Withdrawn", EventKind.INVALID),
    ActionKey("duplicate", "m", "Duplicate", EventKind.DUPLICATE, needs="the sha of the other report's culprit"),
    ActionKey("gone", "g", "Gone", EventKind.DISAPPEARED, offers="the version: v6.12-rc4"),
    ActionKey("reopen", "o", "Reopen", EventKind.REOPENED),
    ActionKey("block", "b", "Blocks the release", EventKind.BLOCKS, offers="another release: v6.12"),
    ActionKey("unblock", "B", "No longer blocks", EventKind.UNBLOCKED),
    ActionKey("note", "n", "Note", EventKind.NOTED, needs="the note"),
    ActionKey("tag", "t", "Tag", EventKind.TAGGED, needs="all its tags: numa thp; or none"),
    ActionKey("successor", "S", "Continued in", EventKind.SUCCEEDED, needs="the sha of that report's culprit"),
    ActionKey("assign", "a", "Assign", EventKind.ASSIGNED, needs="the assignee"),
    ActionKey(
        "culprit",
        "C",
        "Correct the culprit",
        EventKind.CORRECTED,
        needs="the sha of the culprit, or a range: v6.11..v6.12",
    ),
)
# What authors and maintainers do to their own reports: all but to say whose commit it is (accounts.permit_of)
KEYS_OF_OWNERS = tuple(action for action in ACTION_KEYS if action.kind is not EventKind.CORRECTED)
BY_NAME = {action.name: action for action in ACTION_KEYS}
