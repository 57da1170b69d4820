"""Addresses that get no more mail: they bounced or opted out; and how they come back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from bot.git.maintainers import Duty, Responsible
from bot.mail.addresses import Address
from bot.mail.settings import BotSettings
from bot.notifications.report import compose_due
from bot.notifications.sign_in import mail_links
from bot.outbox.drafts import excluded_addresses
from bot.outbox.sender import SendConfig, send_due
from bot.outbox.transports import Envelope, SendOutcome, SendStatus, Server, SmtpTransport
from tests.bot.mail.test_bounces import POSTFIX, RETURNED
from tests.support.outbox import claim, reloaded, send
from tests.support.rows import line
from tests.support.servers import Moody, mail_server
from tests.support.world import DANA, LEE, World, message_id
from tracker import __version__
from tracker.models import (
    Correspondent,
    DeliveryFailure,
    FailureSource,
    Mailing,
    Message,
    OutgoingMail,
    OutgoingState,
    RawMessage,
    Report,
    SignIn,
)
from tracker.services import accounts, mail_transitions
from tracker.services.accounts import CHANGE_REPORTS, DECIDE, SEND, learn_maintainers, permit_of, subsystems_of

# --- Signing in: with a mailed link that works once and for a short time, and the permissions of each role ---

Mailed = tuple[Moody, Server]


@pytest.fixture
def known(db: None) -> str:
    """An address that the tracker knows: of a culprit's author."""
    line(1, author="dana@dev.example", authors=["dana@dev.example"])
    return "dana@dev.example"


@pytest.fixture
def no_notification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracker.pages.accounts.enqueue", lambda task: None)


def mail(moody: Mailed, settings: BotSettings) -> int:
    return mail_links(SmtpTransport(moody[1]), settings, datetime.now(UTC))


@pytest.mark.usefixtures("no_notification")
def test_a_link_signs_in_once(client: Client, known: str, moody: Mailed, bot_settings: BotSettings) -> None:
    page = client.post("/sign-in/", {"address": " Dana@Dev.example "}).content.decode()
    assert "If <b> Dana@Dev.example </b> is known here" in page
    assert mail(moody, bot_settings) == 1
    assert mail(moody, bot_settings) == 0  # never twice
    (received,) = moody[0].taken
    message = message_from_bytes(received, policy=default)
    assert message["To"] == "dana@dev.example"
    text = message.get_content()
    assert max(len(each) for each in text.splitlines() if "https://" not in each) <= 78
    path = re.search(r"https://perf\.example\.org(/sign-in/\S+/)", text)
    assert path
    assert "Sign in as dana@dev.example?" in client.get(path[1]).content.decode()
    assert "_auth_user_id" not in client.session  # who looks uses nothing up
    assert client.post(path[1])["Location"] == "/"
    user = User.objects.get()
    assert (user.username, user.email, user.has_usable_password(), user.is_staff) == (known, known, False, False)
    stranger = Client()
    assert stranger.post(path[1]).status_code == 410
    report = Report.objects.get()
    client.post("/triage/change/", {"do": "working", "row": f"{report.pk}:{report.revision}"})
    assert Report.objects.get().state == "working"
    client.post("/sign-out/")
    assert "Sign in</a>" in client.get("/").content.decode()


@pytest.mark.usefixtures("no_notification")
@pytest.mark.parametrize(
    ("asked", "leads_to"),
    [
        ("/report/f04628387e50/?mails=2", "/report/f04628387e50/?mails=2"),
        ("http://testserver/mine/", "/mine/"),
        ("http://testserver//evil.example/x", "/evil.example/x"),
        ("x\r\ny", "/xy"),
        *((url, "/") for url in ("//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:x", "")),
    ],
)
def test_who_signs_in_by_a_link_comes_back_to_their_page(client: Client, known: str, asked: str, leads_to: str) -> None:
    client.post("/sign-in/", {"address": known, "next": asked})
    link = SignIn.objects.get()
    assert link.leads_to == leads_to
    path = f"/sign-in/{accounts.sign_in_token(link)}/"
    assert client.post(path)["Location"] == leads_to


@pytest.mark.usefixtures("no_notification")
def test_strangers_get_the_same_answer_and_no_mail(
    client: Client, known: str, moody: Mailed, bot_settings: BotSettings
) -> None:
    User.objects.create_superuser("kim", "kim@lab.example")
    User.objects.create_user("gone", "gone@lab.example", is_active=False)
    for address in ("nobody@dev.example", "kim@lab.example", "gone@lab.example", "", "x\r\nBcc: y@z", "a" * 5000):
        page = client.post("/sign-in/", {"address": address})
        assert page.status_code == 200
        assert "a sign-in link has been mailed to it" in page.content.decode()
    assert mail(moody, bot_settings) == 0
    assert SignIn.objects.count() == 3  # known or not, the same is done for who asks at the page


@pytest.mark.usefixtures("no_notification")
def test_nobody_is_flooded(known: str) -> None:
    now = datetime.now(UTC)
    links = [accounts.request_link(known, f"10.0.0.{number}", now) for number in range(5)]
    assert [bool(each) for each in links] == [True] * 3 + [False] * 2
    assert all(
        accounts.find_sign_in(accounts.sign_in_token(each), now) for each in links if each
    )  # nobody is locked out
    assert accounts.request_link(known, "10.0.0.9", now + timedelta(minutes=61))
    links = [accounts.request_link(f"a{number}@nobody.example", "10.9.9.9", now) for number in range(12)]
    assert sum(map(bool, links)) == accounts.PER_NETWORK_ADDRESS


@pytest.mark.usefixtures("no_notification")
def test_who_is_known_gets_a_link_whoever_else_asks(known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    monkeypatch.setattr(accounts, "IN_ALL", 20)
    for number in range(30):
        accounts.request_link(f"a{number}@nobody.example", f"10.1.0.{number // 10}", now)
    assert SignIn.objects.count() == accounts.IN_ALL
    assert accounts.request_link("new@nobody.example", "10.9.9.9", now) is None
    for minutes in (0, 16, 32):  # each time when the last one is no longer valid
        later = now + timedelta(minutes=minutes)
        assert accounts.request_link(known, "10.1.0.0", later)
        assert accounts.request_link(known, "10.1.0.0", later) is None


@pytest.mark.usefixtures("no_notification")
@pytest.mark.parametrize("change", ["old", "forged", "cut", "other salt", "used"])
def test_a_link_that_is_not_good_is_refused(client: Client, known: str, change: str) -> None:
    from django.core import signing

    link = accounts.request_link(known, "", datetime.now(UTC))
    assert link
    token = accounts.sign_in_token(link)
    if change == "old":
        SignIn.objects.update(asked_at=datetime.now(UTC) - accounts.GOOD_FOR)
    elif change == "used":
        SignIn.objects.update(used_at=datetime.now(UTC))
    token = {"forged": token[:-3] + "abc", "cut": token[:10], "other salt": signing.dumps(link.pk, salt="x")}.get(
        change, token
    )
    assert client.get(f"/sign-in/{token}/").status_code == 410
    assert client.post(f"/sign-in/{token}/").status_code == 410
    assert not User.objects.exists()


@pytest.mark.usefixtures("no_notification")
def test_what_a_server_refuses_or_a_stop_holds_is_lost_without_harm(
    known: str, moody: Mailed, bot_settings: BotSettings
) -> None:
    now = datetime.now(UTC)
    accounts.request_link(known, "", now)
    mail_transitions.stop_sending("kim", now)
    assert mail(moody, bot_settings) == 0
    mail_transitions.resume_sending("kim", now)
    assert mail_links(SmtpTransport(Server("127.0.0.1", 1)), bot_settings, now) == 0  # nobody is there: it waits
    assert SignIn.objects.get().mailed_at is None
    assert mail(moody, bot_settings) == 1
    accounts.request_link(known, "", now)
    assert mail_links(SmtpTransport(moody[1]), bot_settings, now + timedelta(hours=1)) == 0  # too late to be of use


@pytest.mark.usefixtures("no_notification")
def test_an_account_of_that_name_is_not_taken_over(known: str) -> None:
    User.objects.create_user(known, "somebody.else@dev.example")
    link = accounts.request_link(known, "", datetime.now(UTC))
    assert link
    assert accounts.use_sign_in(link, datetime.now(UTC)) is None


@pytest.mark.usefixtures("no_notification")
@pytest.mark.parametrize(
    ("role", "may"),
    [("", set()), ("triager", {CHANGE_REPORTS, DECIDE}), ("operator", {CHANGE_REPORTS, DECIDE, SEND})],
)
def test_roles_say_who_may_what(db: None, client: Client, role: str, may: set[str]) -> None:
    user = User.objects.create_user("toni", password="a-long-password")
    if role:
        user.groups.add(Group.objects.get(name=role))
    assert {each for each in (CHANGE_REPORTS, DECIDE, SEND) if User.objects.get().has_perm(each)} == may
    client.force_login(user)
    assert ("Stop all sending" in client.get("/outbox/").content.decode()) == (SEND in may)
    user.is_active = False
    user.save()
    assert "Sign in</a>" in client.get("/").content.decode()  # at once


def test_the_page_for_passwords_says_whose_installation_it_is(db: None, client: Client, settings: Any) -> None:
    settings.PERFWORK_LAB = "Lab 7"
    page = client.get("/sign-in/password/").content.decode()
    assert "Run by Lab 7" in page, "Django's LoginView has a `site` of its own"
    assert f"Perfwork {__version__}" in page


@pytest.mark.usefixtures("no_notification")
def test_a_password_signs_in_and_leads_nowhere_else(db: None, client: Client) -> None:
    User.objects.create_user("toni", password="a-long-password")
    credentials = {"username": "toni", "password": "a-long-password", "next": "https://evil.example/"}
    assert (
        "username or password" in client.post("/sign-in/password/", {**credentials, "password": "x"}).content.decode()
    )
    assert client.post("/sign-in/password/", credentials)["Location"] == "/"


@pytest.mark.usefixtures("no_notification")
@pytest.mark.parametrize(
    ("own", "given"),
    [("mike@example.org", "m\u0131ke@example.org"), ("sid@kernel.example", "\u017fid@kernel.example")],
)
def test_no_other_spelling_is_somebody(db: None, own: str, given: str) -> None:
    """PostgreSQL takes a dotless i for an i where case does not count; a mail server does not."""
    User.objects.create_user("victim", own)
    assert not accounts.is_known(given)
    link = SignIn.objects.create(address=given, asked_at=datetime.now(UTC))
    assert accounts.use_sign_in(link, datetime.now(UTC)) is None


@pytest.mark.usefixtures("no_notification")
@pytest.mark.parametrize(
    "address",
    [
        *("linux-kernel@vger.kernel.org", "linux-mm@kvack.org", "x@lists.linux.dev", "a@list.example.org"),
        *("perfbot@localhost", "lkp@intel.com", "lists@lists.example.org", "=?utf-8?q?z=40evil=2Eorg?=@x.example"),
        *("a@x.example\x0bb", "a b@x.example", "a@localhost"),
    ],
)
def test_what_everybody_reads_signs_nobody_in(db: None, address: str) -> None:
    report = line(1, author=address, authors=[address], recipients=[address])
    source = RawMessage.objects.create(digest="d", compressed=b"", received_at=datetime.now(UTC))
    Message.objects.create(
        message_id="m", report=report, source=source, author_email=address, kind="person", trust="pass"
    )
    assert accounts.request_link(address, "", datetime.now(UTC)) is None
    assert permit_of(User.objects.create(username="x", email=address))(report) is None


@pytest.mark.usefixtures("no_notification")
def test_a_from_line_alone_makes_nobody_known(db: None) -> None:
    report = line(1)
    source = RawMessage.objects.create(digest="d", compressed=b"", received_at=datetime.now(UTC))
    mail = Message.objects.create(
        message_id="m", report=report, source=source, author_email="eve@x.example", kind="person", trust="none"
    )
    assert not accounts.is_known("eve@x.example")
    Message.objects.filter(pk=mail.pk).update(trust="pass")
    assert accounts.is_known("eve@x.example")


@pytest.mark.usefixtures("no_notification")
def test_an_odd_address_keeps_no_other_mail_back(known: str, moody: Mailed, bot_settings: BotSettings) -> None:
    SignIn.objects.create(address="a@x.example\nBcc: b@x.example", asked_at=datetime.now(UTC))
    accounts.request_link(known, "", datetime.now(UTC))
    assert mail(moody, bot_settings) == 1


# --- Addresses that get no more mail: they bounced or opted out; and how they come back ---


def bounce(world: World, mail: OutgoingMail, text: str = POSTFIX, number: int = 1, **changes: str) -> bytes:
    """The mail comes back to its return path."""
    text = text.replace("perfbot+7d3e91c0a45b28f6.123456789abc@bot.example.org", mail.sender)
    text = text.replace(RETURNED, mail.message_id).replace("bounce-1@", f"bounce-{number}@")
    for old, new in changes.items():
        text = text.replace(old, new)
    return text.encode()


def own_path(world: World, mail: OutgoingMail, address: str = DANA.email) -> dict[str, str]:
    """Change a bounce so that it comes to the return path of one recipient."""
    assert mail.report
    return {mail.sender: world.settings.return_path(mail.report.tag, mail.message_id, address)}


class Recorder:
    """A transport that keeps the envelopes, and takes everything if it has no other answer."""

    def __init__(self, answer: Callable[[Envelope], SendOutcome] | None = None) -> None:
        self.envelopes: list[tuple[str, list[str]]] = []
        self.answer = answer or (lambda envelope: SendOutcome(SendStatus.SENT))

    def send(self, envelope: Envelope, confirm: Callable[[], bool]) -> SendOutcome:
        assert confirm()
        self.envelopes.append((envelope.sender, list(envelope.recipients)))
        return self.answer(envelope)

    def close(self) -> None:
        pass


def mailing(address: str) -> str:
    return Correspondent.objects.filter(address=address).values_list("mailing", flat=True).first() or ""


def test_a_dead_address_gets_no_more_until_somebody_writes_from_it(world: World) -> None:
    report = world.report()
    mail = OutgoingMail.objects.get()
    OutgoingMail.objects.update(attempts=1)
    world.inbox.add(bounce(world, mail))
    world.read()
    failure = DeliveryFailure.objects.get()
    assert (failure.address, failure.by, failure.dead) == (DANA.email, "bounce", True)
    assert mailing(DANA.email) == "", "the list has the mail, too, so that anybody can have sent this"
    world.inbox.add(bounce(world, mail, number=2, **own_path(world, mail)))
    world.read()
    assert mailing(DANA.email) == Mailing.BOUNCING
    assert mailing("lee@dev.example") == ""  # who is no recipient of it, of him it proves nothing
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
    lost = {mail.message_id: "lost@x.example"}
    world.inbox.add(bounce(world, mail, number=3, **lost))
    world.read()
    assert DeliveryFailure.objects.get().address == DANA.email
    others = own_path(world, mail, "lee@dev.example")
    world.inbox.add(bounce(world, mail, number=4, **lost, **others))
    world.read()
    assert not Correspondent.objects.exists(), "who has the secret of one recipient says nothing of another"
    world.inbox.add(bounce(world, mail, number=5, **lost, **own_path(world, mail)))
    world.read()
    assert mailing(DANA.email) == Mailing.BOUNCING


def test_who_is_said_to_bounce_gets_the_next_mail_in_an_envelope_of_its_own(world: World) -> None:
    world.report()
    first = OutgoingMail.objects.get()
    OutgoingMail.objects.update(attempts=1)
    world.inbox.add(bounce(world, first))
    world.read()
    world.ingest(world.result("c" * 40, "mm: c", id="c"))
    compose_due(world.settings, world.later(), approve_first=False)
    second = OutgoingMail.objects.last()
    assert second
    transport = Recorder()
    config = SendConfig(settings=world.settings)
    for _ in range(2):
        OutgoingMail.objects.filter(pk=second.pk).update(not_before=None)
        send_due(transport, config)
    own = world.settings.return_path(second.report.tag, second.message_id, DANA.email)
    others = [recipient for recipient in second.recipients if recipient != DANA.email]
    assert transport.envelopes == [(second.sender, others), (own, [DANA.email])]
    assert reloaded(second).state == OutgoingState.SENT


def test_signing_in_leads_back_to_the_page(world: World, client: Client) -> None:
    line(1, merged_release="v5.6", reported_at=world.now)
    page = client.get("/v5.6/?state=open").content.decode()
    assert 'href="/sign-in/?next=/v5.6/%3Fstate%3Dopen"' in page
    assert "?next=" not in client.get("/sign-in/").content.decode()


LIST = "list@vger.kernel.org"


def doubted(world: World, people: list[str], others: tuple[str, ...] = ()) -> OutgoingMail:
    """An approved mail to a list, to people of each of whom a bounce said something, and to others."""
    world.ingest(world.result("b" * 40, "mm: b"))
    world.ingest(world.result("c" * 40, "mm: c"))
    compose_due(world.settings, world.now, approve_first=False)
    mail, other = OutgoingMail.objects.order_by("pk")
    OutgoingMail.objects.filter(pk=mail.pk).update(recipients=[LIST, *others, *people], lists=[LIST])
    OutgoingMail.objects.filter(pk=other.pk).update(not_before=timezone.now() + timedelta(days=9))
    said = {"mail": other, "words": "550 5.1.1", "by": FailureSource.BOUNCE, "at": world.now}
    DeliveryFailure.objects.bulk_create(DeliveryFailure(address=address, **said) for address in people)
    return mail


def test_one_who_is_refused_or_put_off_for_good_keeps_the_mail_from_no_other(world: World) -> None:
    """Of four people of whom bounces told, one is unknown to the server; Lee is always put off."""
    people = [f"p{number}@dev.example" for number in range(4)]
    mail = doubted(world, people, ("lee@dev.example",))

    def answer(envelope: Envelope) -> SendOutcome:
        if people[1] in envelope.recipients:
            return SendOutcome(SendStatus.REFUSED, "550 unknown", {people[1]: "550 unknown"})
        if list(envelope.recipients) == ["lee@dev.example"]:
            return SendOutcome(SendStatus.LATER, "451 later")
        late = {"lee@dev.example": "451 later"} if "lee@dev.example" in envelope.recipients else {}
        return SendOutcome(SendStatus.SENT, "ok", {}, late)

    transport = Recorder(answer)
    for number in range(60):
        OutgoingMail.objects.filter(pk=mail.pk).update(not_before=None)
        send_due(transport, SendConfig(settings=world.settings))
        if reloaded(mail).state == OutgoingState.SENT:
            break
        if number == 2 * len(people):  # nobody waits for Lee
            tried = {recipient for _, to in transport.envelopes for recipient in to}
            assert set(people) <= tried
    assert reloaded(mail).state == OutgoingState.SENT
    reached = Counter(recipient for _, to in transport.envelopes for recipient in to)
    assert [reached[address] for address in (LIST, *people)] == [1] * 5
    failures = mail.delivery_failures.values_list("address", flat=True)
    assert set(failures) == {people[1], "lee@dev.example"}


def test_envelopes_of_their_own_use_up_no_tries(world: World) -> None:
    """A mail to thirty people, of each of whom a bounce said something: nobody put it off, so all get it in one go."""
    people = [f"p{number}@dev.example" for number in range(30)]
    mail = doubted(world, people)
    transport = Recorder()
    send_due(transport, SendConfig(settings=world.settings, run=20.0))
    assert sorted(to for _, to in transport.envelopes) == sorted([[LIST], *([address] for address in people)])
    row = reloaded(mail)
    assert (row.state, row.tries, row.delivery_failures.count()) == (OutgoingState.SENT, 0, 0)


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
        world.inbox.add(bounce(world, mail, number=10 + number, **full, **own_path(world, mail)))
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
    assert client.get(f"/sign-in/{accounts.sign_in_token(link)}/").status_code == 410  # it signs nobody in
    assert accounts.find_sign_in(accounts.sign_in_token(link), world.now) is None


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


# --- `/mine/`: who is signed in sees what awaits them, and nobody else's ---


def signed_in(name: str, email: str, *, triager: bool = False) -> Client:
    user = User.objects.create_user(name, email)
    if triager:
        user.user_permissions.set(Permission.objects.filter(codename="change_report"))
    client = Client()
    client.force_login(user)
    return client


def part(page: str, heading: str) -> str:
    """The section of a page under a heading."""
    return page.partition(f">{heading}</h2>")[2].partition("</section>")[0]


def test_an_author_sees_what_awaits_them(db: None, django_assert_max_num_queries: Any) -> None:
    line(1, author="dana@dev.example", title="mm: waits for dana")
    line(2, author="dana@dev.example", title="mm: waits for the lab", awaited="reporter")
    line(3, author="lee@dev.example", title="mm: another author's")
    line(4, author="dana@dev.example", title="mm: fixed long ago", state="fixed")
    client = signed_in("dana", "Dana@dev.example")
    with django_assert_max_num_queries(9):
        page = client.get("/mine/").content.decode()
    assert "mm: waits for dana" in part(page, "Awaiting your answer")
    assert "mm: waits for the lab" in part(page, "Your other open culprits")
    assert "another author" not in page
    assert "fixed long ago" not in page
    assert page.count('type="checkbox" name="row"') == 2  # both are theirs
    assert 'value="working"' in page
    assert 'value="culprit"' not in page  # whose commit it is, they don't say
    assert '<a href="/mine/">My reports</a>' in client.get("/").content.decode()


def test_in_a_table_people_select_their_own_rows(db: None) -> None:
    own = line(1, author="dana@dev.example", merged_release="v5.6", state="no_response")
    other = line(2, author="lee@dev.example", merged_release="v5.6", state="no_response")
    dana = signed_in("dana", "dana@dev.example")
    page = dana.get("/v5.6/").content.decode()
    assert re.findall(r'name="row" value="(\d+):', page) == [str(own.pk)]
    rows = {"do": "working", "row": [f"{row.pk}:{row.revision}" for row in (own, other)], "next": "/v5.6/"}
    answer = dana.post("/triage/change/", rows, headers={"HX-Request": "true"}).content.decode()
    assert "1 report changed." in answer
    assert "you do not have permission" in answer
    assert answer.count('name="row"') == 1  # the other row keeps its empty cell
    assert answer.count('class="x"') == 2
    assert {row.state for row in Report.objects.filter(pk=other.pk)} == {"no_response"}
    for visitor in (Client(), signed_in("stan", "stan@dev.example")):
        page = visitor.get("/v5.6/").content.decode()
        assert 'class="x"' not in page
        assert 'name="do"' not in page


def test_a_triager_sees_their_assignments(db: None) -> None:
    line(1, assignee="toni", title="fs: for toni")
    line(2, assignee="kim", title="fs: for kim")
    page = signed_in("toni", "", triager=True).get("/mine/").content.decode()
    assert "fs: for toni" in part(page, "Assigned to you")
    assert "fs: for kim" not in page
    assert "no email address" in page
    assert 'name="do"' in page


def test_a_stranger_signs_in_first(client: Client, db: None) -> None:
    assert client.get("/mine/")["Location"] == "/sign-in/?next=/mine/"
    assert "/mine/" not in client.get("/").content.decode()


def test_a_maintainer_sees_their_subsystems(db: None, django_assert_max_num_queries: Any) -> None:
    learn_maintainers("mm", ["Lee@dev.example"])
    learn_maintainers("mm", ["lee@dev.example"])
    line(1, author="dana@dev.example", title="mm: of dana", subsystem="mm")
    line(2, author="lee@dev.example", title="mm: of lee", subsystem="mm")
    line(3, author="dana@dev.example", title="fs: of dana", subsystem="fs")
    line(4, title="mm: an improvement", subsystem="mm", verdict="improvement")
    client = signed_in("lee", "lee@dev.example", triager=True)
    with django_assert_max_num_queries(9):
        page = client.get("/mine/").content.decode()
    assert "of dana" in part(page, "Open in your subsystems")
    assert "of lee" not in part(page, "Open in your subsystems")
    assert "fs" not in part(page, "Open in your subsystems")
    assert "an improvement" not in page
    assert 'Your subsystems, by MAINTAINERS: <a href="/subsystem/mm/">mm</a>' in page


def test_who_sends_sees_the_drafts(world: World) -> None:
    sha = world.commit("mm: x")
    world.ingest(world.result(sha, "mm: x"))
    compose_due(world.settings, world.later())
    mail = OutgoingMail.objects.get()
    User.objects.create_superuser("root", "", "x")
    client = Client()
    client.force_login(User.objects.get(username="root"))
    assert mail.subject in part(client.get("/mine/").content.decode(), "Drafts for you to approve")
    assert mail.subject not in signed_in("dana", "dana@dev.example").get("/mine/").content.decode()


def test_composing_a_report_learns_the_maintainers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = Responsible(Address("Max", "max@dev.example"), Duty.MAINTAINER, "MM")
    monkeypatch.setattr("bot.notifications.report.responsible_for", lambda *_: (listed,))
    report = world.report("mm: x")
    assert list(subsystems_of("max@dev.example")) == [report.subsystem]
    assert not subsystems_of("")
