"""`/review/`: the review queue, where people decide on suggestions and see how far reading has got.

The likeliest come first, those of one report together; what would change nothing, as what was withdrawn, is folded
away. A suggestion is shown with its evidence in context, the status that the report would have if it is accepted, and
how people decided on other suggestions of its rule. It is accepted, rejected or changed; many are decided at once if
they are chosen, or if their rule was right often enough, but none that came in after the page was loaded. What a
session decided last can be undone, and each decision leads to the next suggestion, as filtered.

Below are the mails in quarantine, the archives and trees with how far they were read, and the rules. All this takes a
constant number of queries.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from textwrap import shorten
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Max, Q, QuerySet
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from tracker.models import (
    UNDECIDED,
    Archive,
    Decision,
    Message,
    OfferedReport,
    PendingReference,
    RawMessage,
    Report,
    RuleRecord,
    Suggestion,
    Tree,
)
from tracker.pages.http import cleaned, error_response, is_key, key_in, permission_required, row_or_404, username
from tracker.pages.report import stated_facts
from tracker.services import accounts, person_reports, report_actions
from tracker.services.accounts import DECIDE, SEND, shown_messages
from tracker.services.catalog import sha_begins
from tracker.services.faults import faults
from tracker.services.installation import enqueue
from tracker.services.report_actions import AT_ONCE, IfAccepted

# --- Evidence in its text ---

# Pure.
AROUND = 240  # characters on each side


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Evidence in context; `before` and `after` are empty if it was not found in the text."""

    before: str
    evidence: str
    after: str


def excerpt(own_text: str, quote: str) -> Excerpt:
    """Return the evidence with its context in the mail, or how the mail begins. White space may differ, since rules
    read joined lines.
    """
    text, evidence = " ".join(own_text.split()), " ".join(quote.split()[:80])
    before, found, after = text.partition(evidence) if evidence else ("", "", "")
    if not evidence:  # a mail that went to no list is quoted nowhere, and shown to operators only
        return Excerpt(shorten(text, AROUND, placeholder=" …") or text[:AROUND], "", "")
    if not found:
        return Excerpt("", quote, "")
    before, after = before.rstrip(), after.lstrip()
    return Excerpt(
        before if len(before) <= AROUND else f"… {before[-AROUND:].partition(' ')[2]}",
        evidence,
        after if len(after) <= AROUND else f"{after[:AROUND].rpartition(' ')[0]} …",
    )


# --- Data of the queue ---

PAGE = 100  # rows per section
COUNTED = 100_000  # the newest mails in quarantine
SUGGESTIONS = 50  # each with its report's events
OFFERS = 20


@dataclass(frozen=True, slots=True)
class SuggestionRow:
    """One suggestion: its evidence in context, its mail, and what the report would be if it is accepted."""

    suggestion: Suggestion
    excerpt: Excerpt
    message: Message | None
    accepted: IfAccepted
    rule: RuleRecord | None  # how people decided on its rule's suggestions
    same_report: bool = False  # as the row before


@dataclass(frozen=True, slots=True)
class OfferRow:
    """A mail in which a person seems to report a regression: what it says, and the report that it would join."""

    offer: OfferedReport
    told: Sequence[tuple[str, str, str]]
    joins: Report | None


def _offers() -> tuple[list[OfferRow], int]:
    """Return the offers that are likeliest, and how many wait: three queries."""
    waiting = OfferedReport.objects.filter(decision=Decision.OPEN)
    offers = list(waiting.order_by("-proven", "-score", "-sent_at", "pk")[:OFFERS])
    digits = {offer.pk: offer.person_report.culprit.value[:12] for offer in offers}
    named = [sha_begins("culprit__sha", sha) for sha in digits.values() if sha]
    reports = list(Report.objects.filter(reduce(or_, named)).select_related("culprit")) if named else []
    rows = []
    for offer in offers:
        sha = digits[offer.pk]
        joins = next((report for report in reports if sha and report.culprit.sha.startswith(sha)), None)
        rows.append(OfferRow(offer, [fact for fact in stated_facts(offer.person_report) if fact[1]], joins))
    return rows, waiting.count()


@dataclass(frozen=True, slots=True)
class SuggestionFilter:
    """Suggestions of one kind or one rule; "" for all."""

    kind: str = ""
    rule: str = ""

    @property
    def active(self) -> dict[str, str]:
        return {name: value for name, value in (("kind", self.kind), ("rule", self.rule)) if value}

    @property
    def url(self) -> str:
        """The query string, to which more can be added."""
        return "?" + urlencode(self.active)

    def withdrawn(self) -> QuerySet[Suggestion]:
        """Return those that would change nothing any more, the latest first."""
        rows = Suggestion.objects.filter(decision=Decision.WITHDRAWN, **self.active).order_by("-occurred_at", "-pk")
        return rows.prefetch_related("report__culprit").select_related("curve")

    def waiting(self, after: tuple[int, int] | None = None) -> QuerySet[Suggestion]:
        """Return the open ones, the likeliest first; only those after a position (`rank` and key) if it is given."""
        ranked = Suggestion.objects.filter(decision=Decision.OPEN, **self.active)
        ranked = ranked.annotate(rank=Coalesce("certainty", 0)).order_by("-rank", "-pk")
        if after is None:
            return ranked
        rank, pk = after
        return ranked.filter(Q(rank__lt=rank) | Q(rank=rank, pk__lt=pk))


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule, how people decided, and how many of its suggestions wait. `newest`: the last suggestion that is shown."""

    record: RuleRecord
    waiting: int
    newest: int = 0

    @property
    def at_once(self) -> int:
        """How many can be accepted by one click."""
        return min(self.waiting, AT_ONCE)

    @property
    def may_be_accepted(self) -> bool:
        """Whether all that wait can be accepted at once."""
        return self.waiting > 0 and self.record.is_precise


@dataclass(frozen=True, slots=True)
class ArchiveRow:
    """One archive: how far it has been read, and how much is in quarantine."""

    archive: Archive
    quarantined: int
    lag: timedelta | None  # since the newest mail that is known

    @property
    def name(self) -> str:
        """The last part of its path: where it lies on this machine is for operators."""
        return self.archive.path.rstrip("/").rpartition("/")[2].partition("@")[0]


def _position(suggestion: Suggestion) -> tuple[int, int]:
    """Return where a suggestion stands in the queue: its certainty, 0 if nobody knows, and its key."""
    return suggestion.certainty or 0, suggestion.pk


def _address(position: tuple[int, int]) -> str:
    """Return how the page of the queue that follows a position is addressed: "62.1234"."""
    return f"{position[0]}.{position[1]}"


def _queue(
    now: datetime,
    after: tuple[int, int] | None,
    quarantine_before: int | None,
    chosen: SuggestionFilter,
    shown: Q,
) -> dict[str, Any]:
    """Return the first rows of each section, or those after a position and before a key. `more_suggestions` and
    `older_quarantine`: where the next page begins, "" and None on the last; `total` and `kinds`: how many suggestions
    wait, whatever the filter.
    """
    undecided = Suggestion.objects.filter(decision=Decision.OPEN)
    numbers = undecided.order_by().values_list("kind", "rule").annotate(number=Count("pk"), newest=Max("pk"))
    by_kind: Counter[str] = Counter()
    by_rule: Counter[str] = Counter()
    newest = 0
    for kind, rule, number, last in numbers:
        by_kind[kind] += number
        by_rule[rule] += number
        newest = max(newest, last)
    suggestions = chosen.waiting(after).prefetch_related("report__culprit").select_related("curve")
    quarantine = RawMessage.objects.exclude(error="").select_related("archive").defer("compressed").order_by("-pk")
    if quarantine_before is not None:
        quarantine = quarantine.filter(pk__lt=quarantine_before)
    open_suggestions, quarantined = list(suggestions[: SUGGESTIONS + 1]), list(quarantine[: PAGE + 1])
    more = len(open_suggestions) > SUGGESTIONS
    decided = list(RuleRecord.objects.all()[:PAGE])
    new = [RuleRecord(rule=name) for name in sorted(by_rule.keys() - {record.rule for record in decided})]
    withdrawn = [] if after else list(chosen.withdrawn()[:SUGGESTIONS])
    rows = _rows([*open_suggestions[:SUGGESTIONS], *withdrawn], {record.rule: record for record in decided}, shown)
    return {
        "suggestions": [row for row in rows if row.accepted.changes],
        "idle": [row for row in rows if not row.accepted.changes],
        "total": by_kind.total(),
        "kinds": by_kind.most_common(),
        "more_suggestions": _address(_position(open_suggestions[SUGGESTIONS - 1])) if more else "",
        "quarantine": quarantined[:PAGE],
        "older_quarantine": quarantined[PAGE - 1].pk if len(quarantined) > PAGE else None,
        "archives": _archives(now),
        "trees": list(Tree.objects.exclude(path="").defer("cursor").order_by("name")[:PAGE]),
        "rules": [RuleRow(record, by_rule[record.rule], newest) for record in (*decided, *new)],
        "has_pending_mail": PendingReference.objects.filter(own=True).exists(),  # of a report that was not seen
    }


def _rows(suggestions: Sequence[Suggestion], rules: Mapping[str, RuleRecord], shown: Q) -> list[SuggestionRow]:
    """Return the rows, those of one report together, with their mails and their reports' events: two queries in all.

    `shown`: which mails the user may see; of others nobody learns who wrote them.
    """
    ids = {suggestion.message_id for suggestion in suggestions}
    mails = Message.objects.filter(shown, message_id__in=ids).defer("tables")
    messages = {message.message_id: message for message in mails}
    accepted = report_actions.outcomes(suggestions)
    rows: list[SuggestionRow] = []
    for report in dict.fromkeys(suggestion.report_id for suggestion in suggestions):
        of_report = [suggestion for suggestion in suggestions if suggestion.report_id == report]
        for number, suggestion in enumerate(of_report):
            message = messages.get(suggestion.message_id)
            row = SuggestionRow(
                suggestion,
                excerpt(message.own_text if message else "", suggestion.quote),
                message,
                accepted[suggestion.pk],
                rules.get(suggestion.rule),
                same_report=number > 0,
            )
            rows.append(row)
    return rows


def _archives(now: datetime) -> list[ArchiveRow]:
    # Counted in Python: GROUP BY archive would make the database scan every stored mail.
    held = RawMessage.objects.exclude(error="").order_by("-pk").values_list("archive_id", flat=True)
    quarantined = Counter(held[:COUNTED])
    return [
        ArchiveRow(
            archive,
            quarantined[archive.pk],
            max(timedelta(0), now - archive.newest_at) if archive.newest_at else None,
        )
        for archive in Archive.objects.order_by("path")[: PAGE * 10]
    ]


# --- Views ---


def review(request: HttpRequest) -> HttpResponse:
    """Show the first of each section, suggestions of one `kind` or `rule` if asked; `?suggestions=POSITION` and
    `?quarantine=KEY` page to further rows.
    """
    quarantine_before = key_in(request.GET, "quarantine")
    text = request.GET.get("suggestions", "")
    rank, _, pk = text.partition(".")
    if text and not (is_key(rank) and is_key(pk)):
        return error_response(f"suggestions: expected a position like 62.1234; found {text[:40]!r}")
    after = (int(rank), int(pk)) if text else None
    chosen = SuggestionFilter(cleaned(request.GET, "kind", 60), cleaned(request.GET, "rule", 100))
    may_decide, now = request.user.has_perm(DECIDE), timezone.now()
    offers, offered = _offers()
    last_offer = request.session.get("last_offer") if may_decide else None
    decided = OfferedReport.objects.exclude(decision=Decision.OPEN)
    last = Suggestion.objects.filter(pk__in=request.session.get("last_decided", ())) if may_decide else None
    context = {
        **_queue(now, after, quarantine_before, chosen, shown_messages(request.user)),
        "offers": offers,
        "offered": offered,
        # What somebody else decided first is theirs to undo.
        "last_offer": decided.filter(pk=last_offer, decided_by=username(request)).first() if last_offer else None,
        "faults": faults(now) if request.user.has_perm(SEND) else [],
        "chosen": chosen,
        "others": report_actions.OTHERS,
        "may_decide": may_decide,
        "last": list(last.exclude(decision__in=UNDECIDED)) if last is not None else [],  # what this session decided
    }
    return render(request, "review.html", context)


def _suggestion(pk: int) -> Suggestion:
    rows = Suggestion.objects.select_related("report").filter(pk=pk)
    return row_or_404(rows, f"there is no suggestion {pk}")


@require_POST
@permission_required(DECIDE, "only triagers can decide on suggestions")
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Record one `decision`: accept, reject, or set, with another event kind in `instead`; redirect to the next."""
    suggestion = _suggestion(pk)
    choice = request.POST.get("decision", "")
    choice = request.POST.get("instead", "") if choice == "set" else choice
    if choice not in report_actions.CHOICES:
        return error_response(f"decision: expected accept, reject or another state; found {choice[:40]!r}")
    decision, instead = report_actions.decision_of(choice, suggestion)
    if report_actions.decide(suggestion, decision, username(request), timezone.now(), instead):
        request.session["last_decided"] = [pk]
    return _back(request, _position(suggestion))


@never_cache
def by_link(request: HttpRequest, token: str) -> HttpResponse:
    """Show what a link of the daily mail decides, and one button; a POST decides, as the user that it was mailed to.

    No GET changes anything, so that programs which look at links in mail decide nothing.
    """
    mailed = accounts.find_decision(token)
    if mailed is None:
        return render(request, "review_link.html", status=410)
    suggestion, now = mailed.suggestion, timezone.now()
    if request.method == "POST":
        report_actions.decide(suggestion, mailed.decision, mailed.user.get_username(), now)
        return redirect(request.path)
    context = {
        "mailed": mailed,
        "accepts": mailed.decision is Decision.ACCEPTED,
        "outcome": report_actions.outcomes([suggestion])[suggestion.pk],
    }
    return render(request, "review_link.html", context)


@require_POST
@permission_required(DECIDE, "only triagers can decide on suggestions")
def decide_many(request: HttpRequest) -> HttpResponse:
    """Accept or reject all `chosen` suggestions, or accept those of a `rule` that was right often enough."""
    rule, keys = cleaned(request.POST, "rule", 100), request.POST.getlist("chosen")
    decision = report_actions.DECISIONS.get("accept" if rule else request.POST.get("decision", ""))
    if decision is None:
        return error_response("decision: expected accept or reject")
    if not rule and not (0 < len(keys) <= AT_ONCE and all(map(is_key, keys))):
        return error_response(f"chosen: expected 1 to {AT_ONCE} suggestions; found {len(keys)}")
    wanted = [] if rule else [int(key) for key in keys]
    if rule:
        newest = cleaned(request.POST, "newest", 20)  # what came in after the page was loaded was not seen
        wanted = report_actions.of_precise_rule(rule, AT_ONCE, int(newest) if is_key(newest) else 0)
    if decided := report_actions.decide_many(wanted, decision, username(request), timezone.now()):
        request.session["last_decided"] = decided  # nothing was open: the last one can still be undone
    positions = map(_position, Suggestion.objects.filter(pk__in=wanted).only("certainty"))
    return _back(request, min(positions, default=(0, 0)))


@require_POST
@permission_required(DECIDE, "only triagers can decide on suggestions")
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Undo a decision: its event is reversed, and the suggestion is open again."""
    suggestion = _suggestion(pk)
    report_actions.take_back(suggestion, username(request), timezone.now())
    return _back(request, _just_before(_position(suggestion)))


@require_POST
@permission_required(DECIDE, "only triagers can decide on suggestions")
def undo_last(request: HttpRequest) -> HttpResponse:
    """Undo all that this session decided last."""
    own = Suggestion.objects.filter(decided_by=username(request)).select_related("report")  # others' decisions stay
    decided = list(own.filter(pk__in=request.session.pop("last_decided", ())))
    for suggestion in decided:
        report_actions.take_back(suggestion, username(request), timezone.now())
    return _back(request, _just_before(max(map(_position, decided), default=(0, 0))))


@require_POST
@permission_required(DECIDE, "only triagers can decide on reports by people")
def decide_offer(request: HttpRequest, pk: int) -> HttpResponse:
    """Make an offered mail a report (`accept`), put it away (`reject`), or take that back (`undo`)."""
    offer, now = row_or_404(OfferedReport.objects.filter(pk=pk), f"there is no offer {pk}"), timezone.now()
    choice, person = request.POST.get("decision", ""), username(request)
    if choice == "undo":
        person_reports.take_back(offer, person, now)
    elif choice in report_actions.DECISIONS:
        request.session["last_offer"] = offer.pk
        if report := person_reports.decide(offer, report_actions.DECISIONS[choice], person, now):
            enqueue("file_accepted")
            return redirect("report", report.culprit.sha)
    else:
        return error_response(f"decision: expected accept, reject or undo; found {choice[:40]!r}")
    return redirect(f"{reverse('review')}#offers")


def _just_before(position: tuple[int, int]) -> tuple[int, int]:
    """Return the position right before this one, after which the queue goes on with it."""
    return position[0], position[1] + 1


def _back(request: HttpRequest, after: tuple[int, int]) -> HttpResponse:
    """Return to the queue as it was filtered, at the suggestion after a position."""
    chosen = SuggestionFilter(cleaned(request.GET, "kind", 60), cleaned(request.GET, "rule", 100))
    waiting = chosen.waiting()
    following = chosen.waiting(after).first() or waiting.reverse().first()
    query = QueryDict(chosen.url.removeprefix("?"), mutable=True)
    if following is None:
        return redirect("review")
    rank, pk = position = _position(following)
    if waiting.filter(Q(rank__gt=rank) | Q(rank=rank, pk__gt=pk))[:SUGGESTIONS].count() == SUGGESTIONS:  # a later page
        query["suggestions"] = _address(_just_before(position))
    return redirect(f"{reverse('review')}{'?' if query else ''}{query.urlencode()}#s{pk}")
