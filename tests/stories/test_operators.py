"""Operators: what they see of mail that waits, failed or is in doubt, and what they can do about it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from bot.notifications.report import compose_due
from bot.outbox.transports import Server
from tests.mail_server import Moody
from tests.outbox import reloaded, send, states_of
from tests.world import World
from tracker.models import Archive, Correspondent, Mailing, OutgoingMail, OutgoingState, SendingStop
from tracker.services import mail_transitions

S = OutgoingState


@pytest.fixture
def operator(db: None) -> Client:
    """Logged in, with the one permission that acting needs."""
    user = User.objects.create_user("kim")
    user.user_permissions.add(Permission.objects.get(codename="change_outgoingmail"))
    client = Client()
    client.force_login(user)
    return client


def compose(world: World, number: int = 1, *, approve_first: bool = True) -> list[OutgoingMail]:
    for each in range(number):
        world.ingest(world.result(f"{each + 1:040x}", f"mm: {each}", id=f"n{each}"))
    compose_due(world.settings, world.now, approve_first=approve_first)
    return list(OutgoingMail.objects.order_by("pk"))


def ask(client: Client, action: str, *mails: OutgoingMail) -> str:
    """The page on which it is said what is about to happen."""
    return client.get("/outbox/act/", {"verb": action, "id": [mail.pk for mail in mails]}).content.decode()


def act(client: Client, action: str, *mails: OutgoingMail, reason: str = "") -> str:
    data = {"verb": action, "id": [mail.pk for mail in mails], "reason": reason}
    return client.post("/outbox/act/", data, follow=True).content.decode()


def test_mail_is_approved_after_a_second_look(world: World, operator: Client, moody: tuple[Moody, Server]) -> None:
    first, second, third = compose(world, 3)
    page = operator.get("/outbox/").content.decode()
    assert "Waiting for approval" in page
    assert page.count('type="checkbox"') == 3
    confirmation = ask(operator, "approve", first, second)
    assert "Approve 2 mails?" in confirmation
    assert "They are sent as soon as they are due." in confirmation
    assert "dana@dev.example" in confirmation
    assert [reloaded(mail).state for mail in (first, second)] == [S.COMPOSED] * 2  # asking changes nothing
    outcome = act(operator, "approve", first, second, reason="numbers checked")
    assert "2 mails approved." in outcome
    assert [reloaded(mail).state for mail in (first, second, third)] == [S.APPROVED, S.APPROVED, S.COMPOSED]
    assert first.transitions.last().by == "kim"  # type: ignore[union-attr]
    assert first.transitions.last().words == "numbers checked"  # type: ignore[union-attr]
    send(moody[1])
    assert "sent" in operator.get(f"/outbox/{first.pk}/").content.decode()
    assert states_of(first) == ["composed", "approved", "sending", "sent"]
    late = act(operator, "cancel", first)
    assert "0 mails cancelled; 1 not changed" in late
    assert reloaded(first).state == S.SENT


def test_what_a_server_said_of_a_failed_mail_is_shown_and_it_is_sent_again(
    world: World, operator: Client, moody: tuple[Moody, Server]
) -> None:
    (mail,) = compose(world, approve_first=False)
    moody[0].answer = "554 5.7.1 <b>we</b> do not like it"
    send(moody[1])
    page = operator.get("/outbox/").content.decode()
    assert "554 5.7.1 &lt;b&gt;we&lt;/b&gt; do not like it" in page
    assert "A server rejected these, with this error." in page
    moody[0].answer = "250 fine"
    assert "may see it twice" in ask(operator, "resend", mail)
    assert "1 mail queued again." in act(operator, "resend", mail)
    send(moody[1])
    assert reloaded(mail).state == S.SENT


def test_of_a_doubt_it_is_said_what_is_known(world: World, operator: Client, moody: tuple[Moody, Server]) -> None:
    (mail,) = compose(world, approve_first=False)
    moody[0].vanish = True
    send(moody[1])
    assert "No archive that could hold a copy is configured" in operator.get("/outbox/").content.decode()
    Archive.objects.create(path="/srv/lore/perf", read_at=timezone.now(), newest_at=timezone.now())
    Archive.objects.create(path="/srv/lore/broken", error="no such file")
    for page in (operator.get("/outbox/"), operator.get(f"/outbox/{mail.pk}/")):
        text = page.content.decode()
        assert "the connection broke after the last dot" in text
        assert "/srv/lore/perf</code> last read" in text
        assert "can't be read: no such file" in text
    assert "Transmission was about to complete at" in operator.get(f"/outbox/{mail.pk}/").content.decode()
    assert "These may already have been sent" in ask(operator, "resend", mail)


def test_a_stop_is_one_click_and_says_who_and_why(
    world: World, operator: Client, client: Client, moody: tuple[Moody, Server]
) -> None:
    compose(world, approve_first=False)
    operator.post("/outbox/stop/", {"do": "stop", "reason": "wrong <numbers>"})
    page = client.get("/outbox/").content.decode()
    assert "All sending is stopped" in page
    assert "by kim: wrong &lt;numbers&gt;" in page
    assert send(moody[1]) == {}
    operator.post("/outbox/stop/", {"do": "go"})
    assert "All sending is stopped" not in client.get("/outbox/").content.decode()
    assert SendingStop.objects.get().ended_by == "kim"
    assert sum(send(moody[1]).values()) == 1


def test_who_may_not_act_does_not(world: World, client: Client, operator: Client) -> None:
    (mail,) = compose(world)
    nobody = Client()
    nobody.force_login(User.objects.create_user("lee"))
    for action, path in (("approve", "/outbox/act/"), ("stop", "/outbox/stop/")):
        data = {"verb": action, "id": mail.pk, "do": "stop"}
        assert client.post(path, data).status_code == 302  # to the log-in
        assert nobody.post(path, data).status_code == 403
    assert Client(enforce_csrf_checks=True).post("/outbox/stop/", {"do": "stop"}).status_code == 403
    assert reloaded(mail).state == S.COMPOSED
    assert mail_transitions.stopped() is None
    page = client.get("/outbox/").content.decode()
    assert "checkbox" not in page
    assert "Sign in</a> to act on mail" in page


def test_odd_requests_are_refused_in_a_line(world: World, operator: Client) -> None:
    (mail,) = compose(world)
    for path, data, words in (
        ("/outbox/act/", {"verb": "destroy", "id": mail.pk}, b"verb: expected one of approve, hold, cancel, resend"),
        ("/outbox/act/", {"verb": "hold", "id": "x"}, b"id: expected a number; found 'x'"),
        ("/outbox/stop/", {"do": "what"}, b"do: expected stop or go; found 'what'"),
    ):
        answer = operator.post(path, data)
        assert answer.status_code == 400
        assert answer.content.startswith(words)
    assert operator.get("/outbox/stop/").status_code == 405
    assert "This action does not apply to any selected mail" in ask(operator, "approve")


def test_what_is_about_to_be_composed_again_is_not_approved(world: World, operator: Client) -> None:
    (mail,) = compose(world)
    OutgoingMail.objects.update(stale=True)
    assert "were or will be recomposed" in ask(operator, "approve", mail)
    assert "0 mails approved; 1 not changed" in act(operator, "approve", mail)


def test_operators_see_who_gets_no_mail(world: World, operator: Client, client: Client) -> None:
    words = "2026-11-21: 550 5.1.1 nobody"
    Correspondent.objects.create(address="p@dev.example", mailing=Mailing.BOUNCING, note=words, since=world.now)
    assert words in operator.get("/outbox/").content.decode()
    assert "p@dev.example" not in client.get("/outbox/").content.decode()


def test_a_long_outbox_costs_no_more(world: World, operator: Client, django_assert_max_num_queries: Any) -> None:
    compose(world, 25)
    with django_assert_max_num_queries(15):  # one of them for the header, now and then
        page = operator.get("/outbox/").content.decode()
    assert page.count('type="checkbox"') == 20
    assert "?state=composed" in page
