"""Signing in: with a mailed link that works once and for a short time, and the permissions of each role."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from bot.mail.settings import BotSettings
from bot.notifications.sign_in import mail_links
from bot.outbox.transports import Server, SmtpTransport
from tests.mail_server import Moody
from tests.tracker.lines import line
from tracker.models import Message, RawMessage, Report, SignIn
from tracker.services import accounts, mail_transitions
from tracker.services.accounts import CHANGE_REPORTS, DECIDE, SEND, permit_of

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
    assert all(accounts.find(accounts.token(each), now) for each in links if each)  # nobody is locked out
    assert accounts.request_link(known, "10.0.0.9", now + timedelta(minutes=61))
    for number in range(12):
        line(100 + number, author=f"a{number}@dev.example")
    links = [accounts.request_link(f"a{number}@dev.example", "10.9.9.9", now) for number in range(12)]
    assert sum(map(bool, links)) == accounts.PER_NETWORK_ADDRESS


@pytest.mark.usefixtures("no_notification")
@pytest.mark.parametrize("change", ["old", "forged", "cut", "other salt", "used"])
def test_a_link_that_is_not_good_is_refused(client: Client, known: str, change: str) -> None:
    from django.core import signing

    link = accounts.request_link(known, "", datetime.now(UTC))
    assert link
    token = accounts.token(link)
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
    assert accounts.use(link, datetime.now(UTC)) is None


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
    assert accounts.use(link, datetime.now(UTC)) is None


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
