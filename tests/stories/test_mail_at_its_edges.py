"""Mail at its edges: reports that change while their mail is composed or waits, limits, bounces, wrong settings."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.compose.policy import Policy, Rates
from bot.mail.settings import read_mailmap
from bot.notifications import report as composer
from bot.notifications.follow_ups import compose_follow_ups
from bot.notifications.report import compose_due
from bot.outbox.drafts import MailCalendar, excluded_addresses
from bot.outbox.reconcile import RecoveryPolicy, resolve
from bot.outbox.sender import claim_due
from bot.outbox.transports import Server
from bot.results.intake import take_dropped
from tests.mail_server import Moody
from tests.outbox import send, states_of
from tests.world import DANA, World
from tracker.domain.events import EventData, EventKind
from tracker.models import Archive, Correspondent, Mailing, OutgoingMail, OutgoingState, Purpose, Report
from tracker.services import event_log, mail_transitions

S = OutgoingState


def waiting(world: World, sha: str = "b" * 40) -> OutgoingMail:
    """An approved mail that nobody has."""
    world.ingest(world.result(sha, f"mm: {sha[:2]}"))
    compose_due(world.settings, world.now, approve_first=False)
    return OutgoingMail.objects.get(report__culprit__sha=sha)


def say(world: World, kind: EventKind) -> None:
    report = Report.objects.get()
    event = EventData(key=f"{kind}:x", kind=kind, occurred_at=world.now, actor="toni")
    event_log.record([event_log.event_row(report, event, world.now)])


@pytest.mark.django_db
def test_a_report_that_is_invalid_does_not_leave_after_a_first_try_that_failed(world: World) -> None:
    mail = waiting(world)
    [claimed] = mail_transitions.claim([mail.pk], world.now, timedelta(minutes=5), "worker 1")
    mail_transitions.retry_later(claimed, world.now, "no route to host", "worker 1", no_server=True)
    say(world, EventKind.INVALID)
    compose_due(world.settings, world.later(), approve_first=False)
    assert OutgoingMail.objects.get().state == S.HELD


@pytest.mark.django_db
def test_what_left_though_it_was_invalid_is_withdrawn(world: World) -> None:
    mail = waiting(world)
    say(world, EventKind.INVALID)
    mail_transitions.mark_sent(mail.message_id, world.later(), world.now)
    assert compose_follow_ups(world.settings, world.later(2), approve_first=False) == 1


@pytest.mark.django_db
def test_a_report_that_changes_while_its_mail_is_composed_is_composed_in_the_next_round(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.ingest(world.result("b" * 40, "mm: a"))
    compose = composer.compose

    def meanwhile(*arguments: object) -> object:
        say(world, EventKind.INVALID)
        return compose(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(composer, "compose", meanwhile)
    compose_due(world.settings, world.now, approve_first=False)
    assert not OutgoingMail.objects.exists()


@pytest.mark.django_db
def test_subscriptions_take_no_report_its_place(world: World) -> None:
    mail = waiting(world)
    calendar = MailCalendar(Policy(per_author=1), world.now)
    assert calendar.due([], DANA.email) is not None
    OutgoingMail.objects.filter(pk=mail.pk).update(purpose=f"{Purpose.SUBSCRIPTION}1", report=None)
    assert MailCalendar(Policy(per_author=1), world.now).due([], DANA.email) is None


@pytest.mark.django_db
def test_a_bounce_is_of_one_address_and_an_opt_out_of_a_person(world: World) -> None:
    aliases = read_mailmap("Dana Brook <dana@dev.example> <dana@old.example>\n")
    row = Correspondent.objects.create(address="dana@old.example", mailing=Mailing.BOUNCING, since=world.now)
    assert set(excluded_addresses(aliases)) == {"dana@old.example"}
    Correspondent.objects.filter(pk=row.pk).update(mailing=Mailing.OPTED_OUT)
    assert set(excluded_addresses(aliases)) == {"dana@old.example", "dana@dev.example"}


@pytest.mark.django_db
def test_a_mail_that_waits_for_its_turn_keeps_no_other(world: World) -> None:
    limited = Rates(own={"@slow.example": 1.0})
    for number in range(1, 4):
        waiting(world, f"{number}" * 40)
    slow = OutgoingMail.objects.order_by("pk")[:2]
    for mail in slow:
        OutgoingMail.objects.filter(pk=mail.pk).update(recipients=["a@slow.example"])
    minute = timedelta(minutes=5)
    first = claim_due(world.now, minute, 1, "w", limited)
    second = claim_due(world.now, minute, 1, "w", limited)
    assert [mail.pk for mail in (*first, *second)] == [slow[0].pk, OutgoingMail.objects.latest("pk").pk]


@pytest.mark.django_db
def test_what_no_archive_can_show_is_left_to_a_person(world: World) -> None:
    mail = waiting(world)
    [claimed] = mail_transitions.claim([mail.pk], world.now, timedelta(minutes=5), "w")
    mail_transitions.begin_data(claimed, world.now)
    mail_transitions.mark_in_doubt(claimed, world.now, "lost after the last dot", "w")
    later = world.now + timedelta(days=2)
    Archive.objects.create(path=str(world.inbox.path), read_at=later)
    OutgoingMail.objects.update(settled=OutgoingMail.objects.get().lists)  # the list has it: only Dana waits
    assert resolve(RecoveryPolicy(resend=True), later) == 0


@pytest.mark.django_db
@pytest.mark.parametrize("code", ["530 5.7.0 Must issue a STARTTLS command first", "535 5.7.8 bad password"])
def test_a_server_that_is_set_wrongly_fails_no_mail(world: World, moody: tuple[Moody, Server], code: str) -> None:
    first, second = waiting(world, "b" * 40), waiting(world, "c" * 40)
    moody[0].mail = code
    send(moody[1])
    assert states_of(first) == ["approved", "sending", "approved"]
    assert OutgoingMail.objects.get(pk=second.pk).state == S.APPROVED


@pytest.mark.django_db
def test_an_entry_that_another_worker_took_ends_nothing(
    world: World, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop = world.directory / "drop"
    drop.mkdir()
    (drop / "a.log").write_text("git bisect start\n")
    (drop / "b.json").write_text("{}")

    def taken(entry: object) -> bool:
        (drop / "a.log").unlink(missing_ok=True)
        return True

    monkeypatch.setattr("bot.results.intake._is_settled", taken)
    assert take_dropped(drop, [], world.now) == 0
    assert [each.name for each in sorted((drop / "refused").iterdir())] == ["b.json", "b.json.reason"]
