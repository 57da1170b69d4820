"""Each transition of an outgoing mail: the columns that it changes, and no other, and its row in the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import QuerySet

from tests.crash import mails
from tracker.models import DeliveryFailure, Event, MailTransition, OutgoingMail, OutgoingState, Purpose, SendingStop
from tracker.services import mail_transitions

pytestmark = pytest.mark.django_db
S = OutgoingState
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
DANA, LEE, MM, OURS = "dana@dev.example", "lee@dev.example", "mm@lists.example.org", "perf-reports@lists.example.org"
COLUMNS = [each.attname for each in OutgoingMail._meta.concrete_fields if each.name not in ("id", "raw")]
FREED = {"lease_until": None, "handed_over_at": None}


@dataclass(frozen=True)
class Answer:
    """What a server said of a mail."""

    refused: dict[str, str] = field(default_factory=dict)
    deferred: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    reply: str = "250 taken"


@pytest.fixture(autouse=True)
def bystanders() -> Iterator[None]:
    """A mail in each state and a second one that waits: what becomes of the mail of a test must leave them alone."""
    mails.make(len(S) + 1, NOW, first=1)
    for pk, state in zip(others().values_list("pk", flat=True), [*S, S.APPROVED], strict=True):
        sent = {"sent_at": NOW, "unrecorded": True} if state is S.SENT else {}
        OutgoingMail.objects.filter(pk=pk).update(state=state, attempts=3, **sent)
    MailTransition.objects.all().delete()
    before = list(others().values())
    yield
    assert list(others().values()) == before
    assert not MailTransition.objects.filter(mail__in=others().values("pk")).exists()


def mine() -> QuerySet[OutgoingMail]:
    return OutgoingMail.objects.filter(report__culprit__sha=f"{1:040x}")


def others() -> QuerySet[OutgoingMail]:
    return OutgoingMail.objects.exclude(report__culprit__sha=f"{1:040x}").order_by("pk")


def mail(state: OutgoingState = S.SENDING, **columns: Any) -> OutgoingMail:
    """A mail to four recipients, in a state; one that is being sent has begun to leave."""
    mails.make(1, NOW)
    sending = {"attempts": 3, "lease_until": LATER, "handed_over_at": NOW} if state is S.SENDING else {}
    mine().update(**{"state": state, "reason": "before", **sending, **columns})
    MailTransition.objects.all().delete()
    return mine().get()


def changed(before: OutgoingMail) -> dict[str, Any]:
    """What has changed of a mail."""
    after = mine().get()
    return {name: getattr(after, name) for name in COLUMNS if getattr(after, name) != getattr(before, name)}


def log() -> list[tuple[str, str, str, str]]:
    return list(MailTransition.objects.order_by("pk").values_list("was", "became", "by", "words"))


def test_the_recipients_of_a_mail_here() -> None:
    assert sorted(mail().recipients) == sorted([DANA, LEE, MM, OURS])


# --- by a person -----------------------------------------------------------------------------------
TRIES = {"tries": 4, "connection_attempts": 5, "not_before": NOW, "handed_over_at": NOW, "lease_until": LATER}
AGAIN = {"tries": 0, "connection_attempts": 0, "not_before": None, "handed_over_at": None, "lease_until": None}


@pytest.mark.parametrize("action", mail_transitions.ACTIONS)
@pytest.mark.parametrize("state", S)
def test_an_action_of_a_person(action: str, state: OutgoingState) -> None:
    to, within = mail_transitions.ACTIONS[action]
    sent = {"sent_at": NOW} if state is S.SENT else {}
    before = mail(state, **TRIES, **sent)
    done = mail_transitions.apply_action(before.pk, action, "kim", LATER, "be\0cause")
    assert done is (state in within)
    if not done:
        assert (changed(before), log()) == ({}, [])
        return
    expected = {"state": to, "reason": "because", "decided_by_person": True, **AGAIN}
    assert changed(before) == {name: value for name, value in expected.items() if value != getattr(before, name)}
    assert log() == [(state, to, "kim", "because")]
    assert MailTransition.objects.get().at == LATER


def test_a_stale_mail_is_not_approved_and_may_be_cancelled() -> None:
    before = mail(S.COMPOSED, stale=True)
    assert not mail_transitions.apply_action(before.pk, "approve", "kim", LATER)
    assert mail_transitions.apply_action(before.pk, "cancel", "kim", LATER)
    assert log() == [(S.COMPOSED, S.CANCELLED, "kim", "")]


@pytest.mark.parametrize(("note", "words"), [("", "cancelled"), ("enough", "enough")])
def test_a_mail_that_somebody_has_is_not_cancelled_but_sent(note: str, words: str) -> None:
    before = mail(S.APPROVED, sent_at=NOW, settled=[DANA])
    assert mail_transitions.apply_action(before.pk, "cancel", "kim", LATER, note)
    assert changed(before) == {"state": S.SENT, "reason": note, "decided_by_person": True}
    assert log() == [(S.APPROVED, S.SENT, "kim", words)]


def test_sending_is_stopped_and_resumed_once() -> None:
    assert mail_transitions.stopped() is None
    assert not mail_transitions.resume_sending("kim", NOW)
    assert mail_transitions.stop_sending("kim", NOW, "x\0" * 2000)
    assert not mail_transitions.stop_sending("lee", LATER, "again")
    stop = mail_transitions.stopped()
    assert stop == SendingStop.objects.get()
    assert (stop.at, stop.by, stop.reason, stop.ended_at) == (NOW, "kim", "x" * 1000, None)
    assert mail_transitions.resume_sending("lee", LATER)
    stop.refresh_from_db()
    assert (stop.ended_at, stop.ended_by, mail_transitions.stopped()) == (LATER, "lee", None)


def test_remarks_and_beginnings_are_logged_and_cut() -> None:
    each = mail(S.HELD)
    mail_transitions.add_note(each, "rule", LATER, "w" * 2000)
    mail_transitions.record_created(each, "composing")
    rows = list(MailTransition.objects.order_by("pk").values_list("was", "became", "at", "by", "words"))
    assert rows == [
        (S.HELD, S.HELD, LATER, "rule", "w" * 1000),
        ("", S.HELD, each.composed_at, "composing", "before"),
    ]
    assert mail_transitions.transition(OutgoingMail.objects.filter(pk=each.pk), S.FAILED, "x", NOW, "n" * 2000) == [
        each.pk
    ]
    assert mail_transitions.transition(OutgoingMail.objects.none(), S.FAILED, "x", NOW) == []
    assert len(MailTransition.objects.latest("pk").words) == 1000
    assert mail_transitions.transition_one(mine(), each.pk, S.FAILED, S.HELD, "x", NOW)
    assert mail_transitions.transition(mine(), S.FAILED, "x", NOW) == [each.pk]
    assert log()[-2:] == [(S.FAILED, S.HELD, "x", ""), (S.HELD, S.FAILED, "x", "")]
    assert not mail_transitions.transition_one(OutgoingMail.objects.all(), each.pk, S.HELD, S.SENT, "x", NOW)


# --- by a worker -----------------------------------------------------------------------------------
def test_a_claim_is_for_all_or_for_none() -> None:
    before = mail(S.APPROVED, attempts=2, handed_over_at=NOW)
    assert mail_transitions.claim([before.pk, before.pk + 1000], NOW, timedelta(minutes=1), "w") == []
    assert (changed(before), log()) == ({}, [])
    assert mail_transitions.claim([before.pk], NOW, timedelta(minutes=1), "w") == [before]
    lease = NOW + timedelta(minutes=1)
    assert changed(before) == {"state": S.SENDING, "attempts": 3, "lease_until": lease, "handed_over_at": None}
    assert [row[:3] for row in log()] == [(S.APPROVED, S.SENDING, "w")]


def test_the_last_step_begins_once_and_not_when_sending_is_stopped() -> None:
    before = mail(handed_over_at=None)
    mail_transitions.stop_sending("kim", NOW)
    assert not mail_transitions.begin_data(before, LATER)
    mail_transitions.resume_sending("kim", NOW)
    assert changed(before) == {}
    assert mail_transitions.begin_data(before, LATER)
    assert changed(before) == {"handed_over_at": LATER}
    assert not mail_transitions.begin_data(before, LATER)
    assert SendingStop.objects.get().reason == ""


@pytest.mark.parametrize(("state", "stale"), [(S.APPROVED, True), (S.HELD, False)])
def test_what_is_stale_or_held_is_not_claimed(state: OutgoingState, stale: bool) -> None:
    before = mail(state, stale=stale)
    assert mail_transitions.claim([before.pk], NOW, timedelta(minutes=1), "w") == []


ACTS: list[tuple[Callable[[OutgoingMail], object], dict[str, Any], str]] = [
    (lambda m: mail_transitions.fail(m, NOW, "r" * 2000, "w"),
     {"state": S.FAILED, "reason": "r" * 1000, **FREED}, "r" * 1000),
    (lambda m: mail_transitions.mark_in_doubt(m, NOW, "cut off", "w"),
     {"state": S.IN_DOUBT, "reason": "cut off", "lease_until": None}, "cut off"),
    (lambda m: mail_transitions.record_refused(m, Answer(reply="550 no"), NOW, "w"),
     {"state": S.FAILED, "reason": "550 no", **FREED}, "550 no"),
    (lambda m: mail_transitions.record_accepted(m, Answer(), LATER, "w"),
     {"state": S.SENT, "sent_at": LATER, "reason": "", "unrecorded": True, **FREED}, "250 taken"),
    (lambda m: mail_transitions.record_accepted(m, Answer(refused={LEE: "550"}), LATER, "w"),
     {"state": S.SENT, "sent_at": LATER, "reason": f"rejected for {LEE}: 550", "unrecorded": True, **FREED},
     f"rejected for {LEE}: 550"),
]  # fmt: skip


@pytest.mark.parametrize(("act", "changes", "words"), ACTS)
def test_the_end_of_an_attempt(act: Callable[[OutgoingMail], object], changes: dict[str, Any], words: str) -> None:
    before = mail()
    act(before)
    assert changed(before) == changes
    assert log() == [(S.SENDING, changes["state"], "w", words)]


@pytest.mark.parametrize(("act", "changes", "words"), ACTS[:3])
def test_a_worker_that_lost_its_claim_changes_nothing(
    act: Callable[[OutgoingMail], object], changes: dict[str, Any], words: str
) -> None:
    ours = mail()
    mine().update(attempts=4)
    before = mine().get()
    act(ours)
    assert (changed(before), log()) == ({}, [])


def test_a_mail_that_was_not_tried_goes_back_to_the_queue() -> None:
    begun = mail()
    mail_transitions.release([begun], NOW, "w", "shut down")
    assert changed(begun) == {}, "its bytes have begun to leave"
    mine().update(handed_over_at=None)
    before = mine().get()
    mail_transitions.release([before], NOW, "w", "shut down")
    assert changed(before) == {"state": S.APPROVED, "attempts": 2, "lease_until": None}
    assert log() == [(S.SENDING, S.APPROVED, "w", "shut down")]


def test_those_whom_the_server_put_off_get_it_later_and_nobody_else() -> None:
    before = mail(tries=2)
    mail_transitions.record_accepted(before, Answer({LEE: "550 no"}, {MM: "451 later"}), LATER, "w")
    now = changed(before)
    wait = now.pop("not_before") - LATER
    assert timedelta(seconds=30 * 16 * 0.75) <= wait <= timedelta(seconds=30 * 16 * 1.25)
    text = f"rejected for {LEE}: 550 no; deferred for {MM}: 451 later"
    settled = [each for each in before.recipients if each != MM]
    assert now == {"state": S.APPROVED, "sent_at": LATER, "reason": text, "tries": 3, "settled": settled,
                   "unrecorded": True, **FREED}  # fmt: skip
    assert log() == [(S.SENDING, S.APPROVED, "w", text)]
    assert [each.address for each in DeliveryFailure.objects.all()] == [LEE]


def test_what_a_server_said_is_noted_for_each_recipient() -> None:
    before = mail(tries=mail_transitions.MOST_TRIES - 2)
    mail_transitions.record_accepted(before, Answer({}, {MM: "451 a", DANA: "451 b"}), LATER, "w")
    assert mine().get().reason == f"deferred for {MM}: 451 a; {DANA}: 451 b"
    assert (mine().get().state, mine().get().tries) == (S.APPROVED, mail_transitions.MOST_TRIES - 1), "once more"
    mine().update(state=S.SENDING)
    mail_transitions.record_accepted(mine().get(), Answer({MM: "550 a", DANA: "550 b"}), LATER, "w")
    assert mine().get().reason == f"rejected for {MM}: 550 a; {DANA}: 550 b"


def test_those_whose_turn_is_to_come_are_not_put_off() -> None:
    before = mail(tries=mail_transitions.MOST_TRIES - 1)
    mail_transitions.record_accepted(before, Answer({}, {}, {MM: "next"}), LATER, "w")
    settled = [address for address in before.recipients if address != MM]
    assert changed(before) == {"state": S.APPROVED, "sent_at": LATER, "reason": f"next for {MM}: next",
                               "settled": settled, "tries": 0, "unrecorded": True, **FREED}  # fmt: skip
    assert not DeliveryFailure.objects.exists()


def test_after_too_many_tries_those_put_off_count_as_rejected() -> None:
    before = mail(tries=mail_transitions.MOST_TRIES - 1, sent_at=NOW, settled=[DANA])
    mail_transitions.record_accepted(before, Answer({}, {MM: "451 later"}), LATER, "w")
    assert changed(before) == {"state": S.SENT, "reason": f"rejected for {MM}: 451 later", **FREED}
    assert [each.address for each in DeliveryFailure.objects.all()] == [MM]


@pytest.mark.parametrize("answer", [Answer(), Answer(refused={LEE: "550"})])
@pytest.mark.parametrize("state", [S.IN_DOUBT, S.APPROVED, S.HELD])
def test_what_a_late_worker_learns_resolves_the_doubt_and_keeps_it_from_being_sent_again(
    answer: Answer, state: OutgoingState
) -> None:
    ours = mail()
    mine().update(state=state, lease_until=None)
    mail_transitions.record_accepted(ours, answer, LATER, "w")
    after = mine().get()
    assert (after.state, after.sent_at, after.unrecorded) == (S.SENT, LATER, True)
    (row,) = log()
    late = state is not S.IN_DOUBT
    assert row[:3] == (state, S.SENT, "w")
    assert ("after its lease expired: " in row[3]) is late or not answer.refused


def test_what_a_late_worker_learns_of_addresses_is_kept() -> None:
    ours = mail()
    mine().update(state=S.HELD)
    mail_transitions.record_accepted(ours, Answer({LEE: "550"}, {MM: "451"}), LATER, "w")
    assert sorted(each.address for each in DeliveryFailure.objects.all()) == [LEE, MM], "it is not sent again"
    count = len(log())
    mail_transitions.record_accepted(ours, Answer(), LATER, "w")
    assert len(log()) == count, "it was sent already"


def test_a_mail_that_is_no_report_has_no_event_to_record() -> None:
    ours = mail(purpose=Purpose.REMINDER)
    mine().update(state=S.HELD)
    mail_transitions.record_accepted(ours, Answer(), LATER, "w")
    assert (mine().get().state, mine().get().unrecorded) == (S.SENT, False)


@pytest.mark.parametrize(
    ("no_server", "tries", "column", "longest"),
    [(False, 2, "tries", 480), (True, 2, "connection_attempts", 480), (False, 9, "tries", 6 * 3600),
     (True, 9, "connection_attempts", 900), (False, 22, "tries", 6 * 3600)],
)  # fmt: skip
def test_a_temporary_failure_waits_longer_each_time(no_server: bool, tries: int, column: str, longest: float) -> None:
    before = mail(S.SENDING, **{column: tries})
    mail_transitions.retry_later(before, NOW, "r" * 2000, "w", no_server=no_server)
    now = changed(before)
    wait = (now.pop("not_before") - NOW).total_seconds()
    assert longest * 0.75 <= wait <= longest * 1.25
    assert now == {"state": S.APPROVED, column: tries + 1, "reason": "r" * 1000, **FREED}
    assert log() == [(S.SENDING, S.APPROVED, "w", "r" * 1000)]


def test_retries_are_spread_by_a_quarter_and_alike_for_the_same_attempt() -> None:
    mail()

    def seconds(attempts: int) -> float:
        mine().update(state=S.SENDING, attempts=attempts, tries=0)
        mail_transitions.retry_later(mine().get(), NOW, "421 later", "w")
        later = mine().get().not_before
        assert later
        return (later - NOW).total_seconds()

    waits = [seconds(attempts) for attempts in range(40)]
    assert 22.5 <= min(waits) < 25 < 35 < max(waits) <= 37.5
    assert seconds(7) == waits[7]


@pytest.mark.parametrize(("no_server", "column", "most"), [(False, "tries", 24), (True, "connection_attempts", 480)])
def test_it_is_given_up_after_about_five_days(no_server: bool, column: str, most: int) -> None:
    before = mail(S.SENDING, **{column: most - 1}, not_before=NOW)
    mail_transitions.retry_later(before, NOW, "421 later", "w", no_server=no_server)
    text = f"gave up after {most} attempts: 421 later"
    assert changed(before) == {"state": S.FAILED, "reason": text, "not_before": None, **FREED}


@pytest.mark.parametrize(
    ("settled", "answer", "failures"),
    [([], Answer(reply="550 no"), []), ([DANA], Answer(reply="550 no"), [LEE, MM, OURS]),
     ([], Answer({DANA: "550", LEE: "551"}, {}, "554"), [DANA, LEE])],
)  # fmt: skip
def test_whose_address_failed(settled: list[str], answer: Answer, failures: list[str]) -> None:
    """A server that rejects the content says nothing of the addresses."""
    before = mail(settled=settled, sent_at=NOW if settled else None)
    mail_transitions.record_refused(before, answer, NOW, "w")
    assert mine().get().state == (S.SENT if settled else S.FAILED)
    assert sorted(each.address for each in DeliveryFailure.objects.all()) == sorted(failures)


# --- by evidence -----------------------------------------------------------------------------------
@pytest.mark.parametrize("state", [each for each in S if each is not S.SENT])
def test_a_copy_in_an_archive_shows_that_it_was_sent(state: OutgoingState) -> None:
    before = mail(state, not_before=LATER)
    assert mail_transitions.mark_sent(before.message_id, NOW, LATER, "archive", "seen")
    now = changed(before)
    assert now.pop("lease_until", None) is now.pop("handed_over_at", None) is None
    assert now.pop("stale"), "the report has an event that the mail does not say: its own"
    assert now.pop("looked_at", None) is None
    assert now == {"state": S.SENT, "sent_at": NOW, "reason": "", "not_before": None}
    assert log() == [(state, S.SENT, "archive", "seen")]
    assert Event.objects.get(kind="reported").message_id == before.message_id
    assert not mail_transitions.mark_sent(before.message_id, NOW, LATER)


def test_an_archive_is_the_usual_evidence() -> None:
    before = mail(S.IN_DOUBT)
    assert mail_transitions.mark_sent(before.message_id, NOW, LATER)
    assert log() == [(S.IN_DOUBT, S.SENT, "archive", "")]


def test_a_copy_of_a_mail_that_some_wait_for_changes_nothing() -> None:
    before = mail(S.APPROVED, settled=[DANA], sent_at=NOW)
    assert not mail_transitions.mark_sent(before.message_id, NOW, LATER)
    assert not mail_transitions.mark_sent("nobody@knows.example", NOW, LATER)
    assert (changed(before), log()) == ({}, [])
