"""Addresses that get no more mail: they bounced or opted out; and how they come back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from bot.mail.addresses import Address
from bot.notifications.report import compose_due
from bot.notifications.sign_in import mail_links
from bot.outbox.drafts import excluded_addresses
from bot.outbox.transports import Server, SmtpTransport
from tests.bot.mail.test_bounces import POSTFIX, RETURNED
from tests.mail_server import Moody, mail_server
from tests.outbox import claim, reloaded, send
from tests.world import DANA, LEE, World, message_id
from tracker.models import (
    Correspondent,
    DeliveryFailure,
    Mailing,
    Message,
    OutgoingMail,
    OutgoingState,
    RawMessage,
    Report,
    SignIn,
)
from tracker.services import accounts


def bounce(world: World, mail: OutgoingMail, text: str = POSTFIX, number: int = 1, **changes: str) -> bytes:
    """The mail comes back to its return path."""
    text = text.replace("perfbot+7d3e91c0a45b28f6.123456789abc@bot.example.org", mail.sender)
    text = text.replace(RETURNED, mail.message_id).replace("bounce-1@", f"bounce-{number}@")
    for old, new in changes.items():
        text = text.replace(old, new)
    return text.encode()


def mailing(address: str) -> str:
    return Correspondent.objects.filter(address=address).values_list("mailing", flat=True).first() or ""


def test_a_dead_address_gets_no_more_until_somebody_writes_from_it(world: World) -> None:
    report = world.report()
    mail = OutgoingMail.objects.get()
    OutgoingMail.objects.update(attempts=1)
    world.inbox.add(bounce(world, mail))
    world.read()
    assert mailing(DANA.email) == Mailing.BOUNCING
    assert mailing("lee@dev.example") == ""  # who is no recipient of it, of him it proves nothing
    failure = DeliveryFailure.objects.get()
    assert (failure.address, failure.by, failure.dead) == (DANA.email, "bounce", True)
    assert "User unknown" in failure.words
    assert Message.objects.get(message_id="bounce-1@mx.example.org").report == report
    assert Report.objects.get().state == "no_response"  # a bounce is no answer

    world.ingest(world.result("c" * 40, "mm: c", id="c"))
    compose_due(world.settings, world.later())
    assert DANA.email not in OutgoingMail.objects.last().recipients  # type: ignore[union-attr]

    world.post(DANA, "I am here again.", to=message_id(report))
    world.read()
    assert mailing(DANA.email) == ""


def test_a_bounce_proves_that_a_mail_in_doubt_went_out(world: World) -> None:
    world.ingest(world.result("b" * 40, "mm: b"))
    compose_due(world.settings, world.now, approve_first=False)
    (mail,) = claim(world.now)
    from tracker.services import mail_transitions

    mail_transitions.begin_data(mail, world.now)
    mail_transitions.mark_in_doubt(mail, world.now, "gone", "worker")
    world.inbox.add(bounce(world, mail))
    world.read()
    assert reloaded(mail).state == OutgoingState.SENT
    assert mail.transitions.last().by == "bounce"  # type: ignore[union-attr]
    assert Report.objects.get().reported_at


def test_the_return_path_tells_which_mail_it_was_and_nothing_else(world: World) -> None:
    """Everything else of a mail is known to the world: whoever reads the list could forge a bounce of it."""
    world.report()
    mail = OutgoingMail.objects.get()
    OutgoingMail.objects.update(attempts=1)
    forged = {mail.sender: f"perfbot+{mail.report.tag}@bot.example.org"}
    world.inbox.add(bounce(world, mail, number=2, **forged))
    world.read()
    assert not Correspondent.objects.exists()
    world.inbox.add(bounce(world, mail, number=3, **{mail.message_id: "lost@x.example"}))
    world.read()
    assert mailing(DANA.email) == Mailing.BOUNCING


def test_what_never_began_to_leave_can_not_come_back(world: World) -> None:
    world.ingest(world.result("b" * 40, "mm: b"))
    compose_due(world.settings, world.now, approve_first=False)
    mail = OutgoingMail.objects.get()
    world.inbox.add(bounce(world, mail))
    world.read()
    assert (reloaded(mail).state, Correspondent.objects.count()) == (OutgoingState.APPROVED, 0)


def test_a_list_neither_bounces_nor_leaves(world: World) -> None:
    """Its server's word on one mail says nothing of those who read it; and a list writes no mail of its own."""
    report = world.report()
    mail = OutgoingMail.objects.get()
    OutgoingMail.objects.update(attempts=1)
    ours = world.settings.list_address
    world.inbox.add(bounce(world, mail, **{"dana@dev.example": ours, "Dana@dev.example": ours}))
    world.post(Address("", ours), "unsubscribe", to=message_id(report))
    world.read()
    assert DeliveryFailure.objects.get().address == ours
    assert not Correspondent.objects.exists()


def test_our_own_servers_no_is_nobodys_fault(world: World) -> None:
    """As when a relay does not know us any more: all are refused, and nobody is struck off for it."""
    mood = Moody()
    people = ["dana@dev.example", world.settings.list_address]
    mood.rcpt = dict.fromkeys(people, "554 5.7.1 Relay access denied")
    with mail_server(mood) as server:
        for number in range(4):
            world.ingest(world.result(f"{number + 1:040x}", f"mm: {number}", id=f"n{number}"))
            compose_due(world.settings, world.now, approve_first=False)
            send(server)
    assert OutgoingMail.objects.filter(state="failed").count() == 4
    assert not Correspondent.objects.exists()


def test_a_full_box_counts_when_it_is_full_for_long(world: World) -> None:
    full = {"5.1.1": "5.2.2", "Recipient address rejected: User unknown": "the box is full"}
    for number in range(3):
        world.report(f"mm: {number}")
        OutgoingMail.objects.update(attempts=1)
        mail = OutgoingMail.objects.last()
        assert mail
        assert mailing(DANA.email) == ""
        world.inbox.add(bounce(world, mail, number=10 + number, **full))
        world.read()
    assert mailing(DANA.email) == Mailing.BOUNCING


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("unsubscribe", ""),
        ("Re: the report", "unsubscribe\n\n> Hello,\n"),
        ("Re: the report", "Please unsubscribe me.\n-- \nDana"),
        ("Re: the report", "Hi,\n\n#lkp unsubscribe\n"),
        ("Re: the report", "> Hello,\n\nUNSUBSCRIBE"),
    ],
)
def test_who_asks_to_be_left_alone_is(world: World, subject: str, text: str) -> None:
    report = world.report()
    world.post(DANA, text, to=message_id(report), subject=subject)
    world.read()
    assert mailing(DANA.email) == Mailing.OPTED_OUT
    assert DANA.email in excluded_addresses(world.settings.aliases)
    assert "not proven" in Correspondent.objects.get().note
    assert not OutgoingMail.objects.filter(purpose__startswith="answer").exists()  # it is no command that failed


@pytest.mark.parametrize(
    "text",
    [
        "How do I unsubscribe?",
        "I would unsubscribe the second worker here, since it is the lock that",
        "> unsubscribe",
        "The unsubscribe path is slower, too.\n\nunsubscribe",
    ],
)
def test_who_speaks_of_it_stays(world: World, text: str) -> None:
    report = world.report()
    world.post(DANA, text, to=message_id(report))
    world.read()
    assert mailing(DANA.email) == ""


def test_a_mail_to_a_list_alone_is_about_the_list(world: World) -> None:
    report = world.report()
    mail = world.mail(DANA, "unsubscribe", to=message_id(report)).replace(
        b"To: perfbot@bot.example.org", b"To: linux-mm@lists.example.org"
    )
    world.inbox.add(mail)
    world.read()
    assert mailing(DANA.email) == ""


def test_the_link_in_the_head_works_without_a_report(world: World) -> None:
    """As mail programs do it: a new mail to our address, with that one word as its subject."""
    world.report()
    world.post(Address("Kim", "kim@dev.example"), "", subject="unsubscribe", message_id="u@dev.example")
    world.read()
    assert mailing("kim@dev.example") == Mailing.OPTED_OUT
    assert RawMessage.objects.filter(position__gt="").exists()
    mail = OutgoingMail.objects.get()
    assert f"List-Unsubscribe: <mailto:{world.settings.tagged(mail.report.tag)}?subject=unsubscribe>".encode() in bytes(
        mail.raw
    )


def test_he_may_come_back_and_old_mail_read_late_changes_nothing(world: World) -> None:
    report = world.report()
    early = world.mail(DANA, "unsubscribe", to=message_id(report))
    world.post(DANA, "unsubscribe", to=message_id(report))
    world.read()
    world.post(DANA, "subscribe", to=message_id(report))
    world.read()
    assert mailing(DANA.email) == Mailing.OPTED_IN
    world.inbox.add(early)
    world.read()
    assert mailing(DANA.email) == Mailing.OPTED_IN


def test_unproven_mail_calls_nobody_in(world: World) -> None:
    """By rules that ask for people who want mail, only those are mailed who are proven to."""
    world.settings = replace(world.settings, trust_policy="verified")
    report = world.report()
    world.post(LEE, "subscribe", to=message_id(report))
    world.read()
    assert mailing(LEE.email) == ""


def test_a_forged_mail_unsubscribes_nobody(world: World, client: Client, moody: tuple[Moody, Server]) -> None:
    """An unproven opt-out asks the address whether it was meant, once a day; the link in that mail confirms it."""
    world.settings = replace(world.settings, trust_policy="verified")
    report = world.report()
    world.post(LEE, "unsubscribe", to=message_id(report))
    world.read()
    assert not SignIn.objects.exists()  # who never got mail of ours is not bothered by what others write
    OutgoingMail.objects.update(recipients=[LEE.email], attempts=1)
    for _ in range(3):
        world.post(LEE, "unsubscribe", to=message_id(report))
        world.read()
    assert mailing(LEE.email) == ""
    mood, server = moody
    link = SignIn.objects.get()  # asked once, for three mails
    assert mail_links(SmtpTransport(server), world.settings, link.asked_at) == 1
    (raw,) = mood.taken
    assert (
        mood.reached,
        b"asks Perfwork to send you no more" in raw,
    ) == ([[LEE.email]], True)
    SignIn.objects.update(asked_at=timezone.now())  # the pages' clock is not the test's
    path = reverse("confirm-opt-out", args=[accounts.opt_out_token(link)])
    assert "Stop all mail to" in client.get(path).content.decode()
    assert mailing(LEE.email) == ""  # a scanner that opens links confirms nothing
    assert client.post(path).status_code == 200
    assert mailing(LEE.email) == Mailing.OPTED_OUT
    gone = client.get("/no-mail/nonsense/")
    assert (gone.status_code, "unsubscribe" in gone.content.decode()) == (410, True)
    assert client.get(f"/sign-in/{accounts.token(link)}/").status_code == 410  # it signs nobody in
    assert accounts.find(accounts.token(link), world.now) is None


def test_what_an_operator_said_stands(world: World) -> None:
    report = world.report()
    Correspondent.objects.create(address=DANA.email, mailing=Mailing.STOPPED, since=world.now)
    world.post(DANA, "subscribe", to=message_id(report))
    world.read()
    assert mailing(DANA.email) == Mailing.STOPPED


def test_robots_ask_for_nothing(world: World) -> None:
    report = world.report()
    world.post(DANA, "unsubscribe", to=message_id(report), Auto_Submitted="auto-replied")
    world.read()
    assert mailing(DANA.email) == ""
