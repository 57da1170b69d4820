"""The outbox pages: a mail as its recipient sees it, the reason for each recipient, and why it is held."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from bot.notifications.report import compose_due
from tests.world import DANA, World
from tracker.models import Correspondent, Mailing, OutgoingMail
from tracker.services import mail_transitions


@pytest.fixture
def mail(world: World) -> OutgoingMail:
    Correspondent.objects.create(address="lee@dev.example", mailing=Mailing.OPTED_OUT, note="by mail", since=world.now)
    result = world.result("b" * 40, "mm: charge <b>late</b>")
    result["first_bad"]["trailers"] = [{"tag": "Reviewed-by", "value": "Lee Park <lee@dev.example>"}]
    world.ingest(result)
    compose_due(world.settings, world.now)
    return OutgoingMail.objects.get()


def test_a_mail_as_its_receiver_sees_it(world: World, mail: OutgoingMail, client: Client, admin_client: Client) -> None:
    hidden = client.get(f"/outbox/{mail.pk}/").content.decode()
    assert "shown once it has been sent" in hidden
    assert "Perfwork noticed" not in hidden
    assert "dana@dev.example" not in hidden
    assert client.get(f"/outbox/{mail.pk}/raw/").status_code == 403
    assert "Perfwork noticed" in admin_client.get(f"/outbox/{mail.pk}/").content.decode()
    assert admin_client.get(f"/outbox/{mail.pk}/raw/").content == bytes(mail.raw)
    mail_transitions.mark_sent(mail.message_id, world.now, world.now)
    page = client.get(f"/outbox/{mail.pk}/").content.decode()
    for words in (
        "[LKP] [mm] bbbbbbbbbb: -30.0% regression",
        "Perfwork noticed a -30.0% regression of vm-scan.ops_per_sec on:",
        "mm: charge &lt;b&gt;late&lt;/b&gt;",
        "Dana Brook &lt;dana@dev.example&gt;</th><td>To</td><td>author",
        "&lt;perf-reports@lists.example.org&gt;</th><td>Cc</td><td>our own list",
        f"Message-ID: &lt;{mail.message_id}&gt;",
    ):
        assert words in page, words
    assert "lee@dev.example" not in page
    assert "opted out: by mail" in admin_client.get(f"/outbox/{mail.pk}/").content.decode()
    raw = client.get(f"/outbox/{mail.pk}/raw/")
    assert raw.content == bytes(mail.raw)
    assert raw["Content-Type"].startswith("text/plain")
    assert client.get("/outbox/99999/").status_code == 404


def test_the_list_of_mails(world: World, mail: OutgoingMail, client: Client) -> None:
    page = client.get("/outbox/").content.decode()
    assert "regression</a>" in page
    assert "composed" in page
    assert "No mail." in client.get("/outbox/?state=held").content.decode()
    response = client.get("/outbox/?state=lost")
    assert response.status_code == 400
    assert response.content.startswith(b"state: expected one of composed, held, approved")
    assert client.get("/outbox/?before=x").status_code == 400


def test_the_pages_ask_a_constant_number_of_queries(
    world: World, mail: OutgoingMail, client: Client, django_assert_num_queries: Any
) -> None:
    for number in range(5):
        world.ingest(world.result(f"{number}" * 40, f"mm: {number}", id=f"n{number}"))
    compose_due(world.settings, world.now)
    with django_assert_num_queries(9):  # a state each, how many wait, and whether all is stopped
        client.get("/outbox/")
    with django_assert_num_queries(2):  # the mails, and how many wait
        client.get("/outbox/?state=composed")
    with django_assert_num_queries(3):  # the mail, its record, whom it did not reach
        client.get(f"/outbox/{mail.pk}/")


def test_the_command_tells_why_everybody_gets_it(mail: OutgoingMail) -> None:
    out = io.StringIO()
    call_command("outbox", "show", str(mail.pk), stdout=out)
    shown = out.getvalue()
    assert "Subject: [LKP] [mm] bbbbbbbbbb: -30.0% regression" in shown
    assert "To    Dana Brook <dana@dev.example>  author" in shown
    assert "Cc    perf-reports@lists.example.org  our own list" in shown
    assert "out   Lee Park <lee@dev.example>  opted out: by mail" in shown
    assert shown.index("Recipients:") > shown.index("Perfwork noticed")


def test_a_faulty_mail_is_held_and_says_why(world: World, admin_client: Client) -> None:
    result = world.result("b" * 40, "mm: a")
    result["first_bad"]["date"] = "2019-01-01T00:00:00Z"
    world.ingest(result)
    compose_due(world.settings, world.now, approve_first=False)
    mail = OutgoingMail.objects.get()
    assert (mail.state, mail.reason) == ("held", "the culprit is from 2019-01-01, older than 365 days")
    assert "older than 365 days" in admin_client.get("/outbox/").content.decode()


def test_why_a_mail_is_held_is_for_those_who_send(world: World, client: Client, db: None) -> None:
    note = "550 5.1.1 left the company"
    Correspondent.objects.create(address=DANA.email, mailing=Mailing.BOUNCING, since=world.now, note=note)
    sha = world.commit("mm: x")
    world.ingest(world.result(sha, "mm: x"))
    compose_due(world.settings, world.later(), approve_first=False)
    mail = OutgoingMail.objects.get()
    assert (mail.state, note in mail.reason) == ("held", True)
    for path in ("/outbox/", f"/outbox/{mail.pk}/", f"/report/{sha}/"):
        assert note not in client.get(path).content.decode(), path
