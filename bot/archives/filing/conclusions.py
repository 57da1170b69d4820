"""What a mail says, to events and suggestions of one report."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from django.db.models import QuerySet

from bot.mail.identity import BotIdentity
from bot.mail.links import find_links
from bot.replies.effect import Effect, Mode, Relation
from bot.replies.effects import effects_of, settled
from bot.replies.reading import Reading
from bot.replies.to_events import events_of
from bot.replies.which_report.report_lookup import KnownReports
from tracker.domain.events import EventData, EventKind
from tracker.models import Decision, Event, Message, Report, Suggestion
from tracker.services.reports import event_log
from tracker.services.reports.suggestions import SECOND_OPINION

OF_A_PATCH = ":patch:"  # in the key of what all versions of a patch suggest
Made = tuple[int, str, bool]  # the report, the key, and whether it is an event or a suggestion


class Conclusions:
    """Applies the effects of mails to reports; `touched`: the reports with new events, which are to be folded."""

    def __init__(self, identity: BotIdentity, now: datetime) -> None:
        self.identity = identity
        self.now = now
        self.touched: set[int] = set()

    def append(self, report: Report, events: Iterable[EventData], quote: str) -> None:
        """Append events of one report."""
        self.touched |= event_log.append(event_log.event_row(report, each, self.now, quote) for each in events)

    def _received_at(self, reading: Reading) -> datetime:
        """Return when a mail without a date came in first, whenever it is read again."""
        stored = Message.objects.filter(message_id=reading.mail.message_id).values_list("sent_at", flat=True).first()
        return stored or self.now

    def apply(
        self, reading: Reading, tag: str, relation: Relation, known: KnownReports, rows: Mapping[str, Report]
    ) -> set[Made]:
        """Apply a mail's effects to one report: as events, or as suggestions that wait for a click."""
        made: set[Made] = set()
        report = rows[tag]
        standpoint = known.standpoint(reading, tag, relation, self.identity)
        if standpoint.aimed and self._is_copy(reading):
            standpoint = replace(standpoint, aimed=False)
        at = reading.mail.date or self._received_at(reading)
        effects = effects_of(reading, standpoint, self.identity.trust_policy)
        has_events = any(each.kind and each.mode is Mode.AUTO for each in effects)
        # What a person has rejected stays rejected, whatever is known since.
        rejected_keys = event_log.rejected_keys(report, reading.mail.message_id) if has_events else set()
        given = events_of(effects, reading.mail, standpoint.role, at)
        given = [each for each in given if each[0].mode is not Mode.AUTO or each[1].key not in rejected_keys]
        kept = settled([effect for effect, _ in given])
        for effect, event in given:
            if effect not in kept:
                continue
            if relation is Relation.CULPRIT:  # every version and every backport of one patch is one suggestion
                event = replace(event, key=f"{event.kind}{OF_A_PATCH}{event.title[:300]}")
            if event.kind is EventKind.DUPLICATE:
                event = replace(event, remark=self._sha10_of(event.remark, known, rows))
            made.add((report.pk, event.key, effect.mode is Mode.AUTO))
            if effect.mode is not Mode.AUTO:
                self.suggest(report, event, effect)
            else:
                self.append(report, [event], effect.quote)
                event_log.correct(report, event, effect.quote)
        return made

    def withdraw_others(self, message_id: str, made: Collection[Made]) -> None:
        """Delete what was concluded from a mail before it was read again, and is no more.

        What people decided stays, and so do suggestions that the versions of a patch share.
        """
        events = Event.objects.filter(message_id=message_id, actor="").exclude(kind=EventKind.REPORTED)
        stale = {pk: report for pk, report, key in _keys_of(events) if (report, key, True) not in made}
        Event.objects.filter(pk__in=stale).delete()
        self.touched.update(stale.values())
        waiting = Suggestion.objects.filter(message_id=message_id, decision=Decision.OPEN)
        waiting = waiting.exclude(rule=SECOND_OPINION).exclude(key__contains=OF_A_PATCH)
        unmade = [pk for pk, report, key in _keys_of(waiting) if (report, key, False) not in made]
        waiting.filter(pk__in=unmade).delete()  # waiting: somebody may have decided meanwhile

    def withdraw(self, message_id: str) -> None:
        """Delete all that was concluded from a mail which is about no report after all. What people decided stays."""
        self.withdraw_others(message_id, ())
        Suggestion.objects.filter(message_id=message_id, decision=Decision.OPEN).delete()

    def _is_copy(self, reading: Reading) -> bool:
        """Whether the same signed mail was filed before under another Message-ID, which is not signed."""
        if not reading.trust.signature or reading.trust.covers("message-id"):
            return False
        same = Message.objects.filter(signature=reading.trust.signature).order_by("pk")
        return same.values_list("message_id", flat=True).first() not in (None, reading.mail.message_id)

    def suggest(self, report: Report, event: EventData, effect: Effect) -> None:
        """Store an event as a suggestion, once; of the versions of a patch the last one, until somebody has decided."""
        names = ("kind", "occurred_at", "role", "message_id", "commit", "title", "tree", "in_reply_to", "remark")
        values = {name: getattr(event, name) for name in names}
        values |= {"quote": effect.quote[:2000], "rule": effect.rule, "why": effect.why}
        row, made = Suggestion.objects.get_or_create(report=report, key=event.key, defaults=values)
        earlier = (event.occurred_at, event.message_id) < (row.occurred_at, row.message_id)
        changed = any(getattr(row, name) != value for name, value in values.items())
        if not made and not earlier and changed:
            Suggestion.objects.filter(pk=row.pk, decision=Decision.OPEN).update(**values)

    def _sha10_of(self, argument: str, known: KnownReports, rows: Mapping[str, Report]) -> str:
        """Return the sha of the report's culprit that a `dup` links to; the argument itself if it is none of ours."""
        for link in find_links(argument, self.identity.base_url):
            tag = known.by_message.get(link.message_id, "")
            if tag in rows:
                return rows[tag].culprit.sha10
        return argument[:200]


def _keys_of(rows: QuerySet[Event] | QuerySet[Suggestion]) -> Iterator[tuple[int, int, str]]:
    """Yield the primary key, the report and the key of these events or suggestions."""
    yield from rows.values_list("pk", "report", "key")
