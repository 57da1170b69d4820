"""Subscriptions: asked for by oneself, mailed when something changed, ended by one click; and tables as feeds."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta
from typing import Any

import feedparser
import pytest
from django.contrib.auth.models import User
from django.test import Client

from bot.mail.message import parse
from bot.notifications.subscription import compose_subscriptions
from bot.outbox.drafts import ComposeConfig
from tests.tracker.lines import line
from tests.world import DANA, World, message_id
from tracker.domain.events import EventData, EventKind
from tracker.models import Correspondent, Mailing, OutgoingMail, Report, Subscription
from tracker.pages import subscriptions
from tracker.services import event_log, mail_transitions

CONFIG = ComposeConfig()


@pytest.fixture
def mira(db: None) -> User:
    return User.objects.create_user("mira", "mira@lab.example", first_name="Mira", last_name="Novak")


def mails(world: World, hours: float = 1) -> list[OutgoingMail]:
    """What the next round composes."""
    before = set(OutgoingMail.objects.values_list("pk", flat=True))
    compose_subscriptions(world.settings, world.later(hours), CONFIG, approve_first=False)
    return list(OutgoingMail.objects.exclude(pk__in=before))


def change(world: World, report: Report) -> None:
    event = EventData(f"n{world.later()}", EventKind.NOTED, world.now, actor="toni", remark=f"a note {world.now}")
    event_log.record([event_log.event_row(report, event, world.now)])


def test_from_a_search_to_a_mail_to_its_end(world: World, mira: User, client: Client) -> None:
    report = world.report("mm: scan more")
    client.force_login(mira)
    page = client.get("/search/?q=subsystem:mm").content.decode()
    assert '<a href="/subscriptions/?q=subsystem%3Amm">by mail</a>' in page
    assert 'value="subsystem:mm"' in client.get("/subscriptions/?q=subsystem%3Amm").content.decode()
    assert client.post("/subscriptions/add/", {"q": "subsystem:mm", "often": "at once"}).status_code == 302
    Subscription.objects.update(mailed_until=world.now, created_at=world.now)
    assert mails(world) == []  # nothing has changed since
    change(world, report)
    [mail] = mails(world)
    assert (mail.state, mail.reason, mail.recipients) == ("approved", "", ["mira@lab.example"])
    read = parse(bytes(mail.raw))
    assert read.subject == "1 report changed: subsystem:mm"
    assert "-30.0%" in read.text
    assert report.culprit.sha[:10] in read.text
    assert max(map(len, (each for each in read.text.splitlines() if "://" not in each))) <= 78
    assert mails(world) == []  # once
    raw = bytes(mail.raw).decode()
    assert "List-Unsubscribe-Post: List-Unsubscribe=One-Click" in raw
    found = re.search(r"^List-Unsubscribe: <[^>]*(/unsubscribe/[^>]+)>, <mailto:", raw, re.M)
    assert found
    assert found[1] in read.text
    stranger = Client(enforce_csrf_checks=True)
    assert "End the mails about" in stranger.get(found[1]).content.decode()  # a program that follows links ends nothing
    assert Subscription.objects.exists()
    posted = stranger.post(found[1], "List-Unsubscribe=One-Click", content_type="application/x-www-form-urlencoded")
    assert (posted.status_code, Subscription.objects.exists()) == (200, False)
    assert stranger.post(found[1]).status_code == 200
    change(world, report)
    assert mails(world) == []


def test_daily_is_once_a_day(world: World, mira: User) -> None:
    report = world.report("mm: scan more")
    subscriptions.services_subscribe(mira, "subsystem:mm", "daily", world.now)
    change(world, report)
    assert mails(world, 20) == []
    change(world, report)
    [mail] = mails(world, 4)
    assert mail.subject == "Daily: 1 report changed: subsystem:mm"
    assert mails(world, 30) == []


def test_escalations_by_the_week(world: World, mira: User, client: Client) -> None:
    report = world.report("mm: scan more")
    client.force_login(mira)
    assert client.post("/subscriptions/add/", {"escalations": "yes", "often": "weekly"}).status_code == 302
    Subscription.objects.update(mailed_until=world.now, created_at=world.now)
    assert mails(world, 24) == []
    Report.objects.filter(pk=report.pk).update(reported_at=world.now - timedelta(days=20), blocks="v9.1")
    [mail] = mails(world, 24 * 7)
    assert mail.subject == "Weekly: 2 regressions that need attention"
    assert "Blocking a release (1)" in mail.body
    assert report.culprit.sha[:10] in mail.body


@pytest.mark.parametrize("mailing", [Mailing.BOUNCING, Mailing.OPTED_OUT, Mailing.STOPPED])
def test_who_gets_no_mail_gets_none_of_these(world: World, mira: User, mailing: Mailing) -> None:
    report = world.report("mm: scan more")
    subscriptions.services_subscribe(mira, "subsystem:mm", "at once", world.now)
    Correspondent.objects.create(address=mira.email, mailing=mailing, since=world.now)
    change(world, report)
    assert mails(world) == []


def test_one_bad_subscription_keeps_no_other(world: World, mira: User) -> None:
    report = world.report("mm: scan more")
    subscriptions.services_subscribe(mira, "state:burnt", "at once", world.now - timedelta(days=1))
    subscriptions.services_subscribe(mira, "subsystem:mm", "at once", world.now)
    change(world, report)
    assert [mail.subject for mail in mails(world)] == ["1 report changed: subsystem:mm"]


@pytest.mark.parametrize(
    ("posted", "words"),
    [
        ({"q": "", "often": "daily"}, "q: expected what to search for"),
        ({"q": "state:burnt", "often": "daily"}, "state: expected"),
        ({"q": "mm", "often": "hourly"}, "often: expected at once, daily, weekly; found 'hourly'"),
        ({"q": "x" * 501, "often": "daily"}, "500 characters"),
    ],
)
def test_what_is_wrong_is_said(mira: User, client: Client, posted: dict[str, str], words: str) -> None:
    client.force_login(mira)
    answer = client.post("/subscriptions/add/", posted)
    assert (answer.status_code, words in answer.content.decode()) == (400, True)
    assert not Subscription.objects.exists()


def test_limits_and_rights(mira: User, client: Client, db: None) -> None:
    assert client.post("/subscriptions/add/", {"q": "mm", "often": "daily"})["Location"].startswith("/sign-in/")
    client.force_login(mira)
    for number in range(subscriptions.MOST + 1):
        last = client.post("/subscriptions/add/", {"q": f"word{number}", "often": "daily"})
    assert (last.status_code, "which is the most" in last.content.decode()) == (400, True)
    assert client.post("/subscriptions/add/", {"q": "word1", "often": "weekly"}).status_code == 302  # changed
    assert Subscription.objects.count() == subscriptions.MOST
    row = Subscription.objects.get(query="word1")
    assert row.often == "weekly"
    other = Client()
    other.force_login(User.objects.create_user("eve", ""))
    other.post(f"/subscriptions/{row.pk}/end/")
    assert Subscription.objects.filter(pk=row.pk).exists()
    assert "no email address" in other.post("/subscriptions/add/", {"q": "mm", "often": "daily"}).content.decode()
    client.post(f"/subscriptions/{row.pk}/end/")
    assert not Subscription.objects.filter(pk=row.pk).exists()
    assert "has ended" in client.get("/unsubscribe/forged:token/").content.decode()


# --- tables as files ---


@pytest.mark.parametrize("path", ["/search.{}?q=subsystem:mm", "/subsystem/mm/.{}", "/author/dana@dev.example/.{}"])
def test_searches_and_names_as_files(client: Client, db: None, path: str) -> None:
    line(1, subsystem="mm", author="dana@dev.example", title="mm: scan <b>more</b>", change=-30.0)
    line(2, subsystem="fs", author="lee@dev.example", title="fs: another")
    line(3, subsystem="mm", author="dana@dev.example", title="mm: fixed", state="fixed")
    expected = 2 if "search" in path else 1
    assert len(client.get(path.format("json")).json()["reports"]) == expected
    rows = list(csv.DictReader(io.StringIO(client.get(path.format("csv")).content.decode(), newline="")))
    assert (len(rows), {row["section"] for row in rows}) == (expected, {"reports"})
    assert "scan <b>more</b>" in client.get(path.format("txt")).content.decode()
    assert client.get(path.format("md")).status_code == 200
    feed = feedparser.parse(client.get(path.format("atom")).content)
    assert (feed.bozo, len(feed.entries)) == (False, expected)
    assert ".atom" in next(each["href"] for each in feed.feed.links if each["rel"] == "self")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/search.json", 400),
        ("/search.json?q=state:burnt", 400),
        ("/subsystem/nothing/.json", 404),
        ("/subsystem/a%00b/.json", 404),
        ("/machine/m1/.pdf/", 404),
    ],
)
def test_files_that_are_not_there(client: Client, db: None, path: str, status: int) -> None:
    assert client.get(path).status_code == status


def test_pages_name_their_feeds(client: Client, db: None) -> None:
    line(1, subsystem="mm", machine="m1")
    for path in ("/subsystem/mm/", "/search/?q=subsystem:mm"):
        page = client.get(path).content.decode()
        assert 'rel="alternate" type="application/atom+xml"' in page
        links: list[Any] = re.findall(r'href="([^"]+\.(?:atom|csv|txt|json|md)[^"]*)"', page)
        assert {client.get(each.replace("&amp;", "&")).status_code for each in links} == {200}


def test_a_reply_that_is_read_after_a_round_is_in_the_next(world: World, mira: User) -> None:
    report = world.report("mm: scan more")
    subscriptions.services_subscribe(mira, "subsystem:mm", "at once", world.later())
    world.post(DANA, "I am looking into it.", to=message_id(report))
    assert mails(world) == []
    world.read()
    assert len(mails(world)) == 1
    assert mails(world) == []


def test_they_are_nobody_elses_business(world: World, mira: User, client: Client) -> None:
    report = world.report("mm: scan more")
    row = subscriptions.services_subscribe(mira, "subsystem:mm", "at once", world.later())
    change(world, report)
    [mail] = mails(world)
    mail_transitions.mark_sent(mail.message_id, world.now, world.now)
    for path in (f"/outbox/{mail.pk}/", f"/outbox/{mail.pk}/raw/"):
        assert client.get(path).status_code == 404
    for path in ("/outbox/", "/outbox/?state=sent", "/outbox/?all"):
        assert "subsystem:mm" not in client.get(path).content.decode()
    change(world, report)
    [waiting] = mails(world)
    subscriptions.services_end(row, world.now)
    waiting.refresh_from_db()
    assert waiting.state == "cancelled"
