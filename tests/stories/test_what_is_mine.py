"""`/mine/`: who is signed in sees what awaits them, and nobody else's."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from bot.git.maintainers import Duty, Responsible, TouchedFiles
from bot.mail.addresses import Address
from bot.notifications.report import compose_due
from tests.tracker.lines import line
from tests.world import World
from tracker.models import OutgoingMail
from tracker.services.accounts import learn_maintainers, subsystems_of


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
    with django_assert_max_num_queries(8):
        page = client.get("/mine/").content.decode()
    assert "mm: waits for dana" in part(page, "Awaiting your answer")
    assert "mm: waits for the lab" in part(page, "Your other open culprits")
    assert "another author" not in page
    assert "fixed long ago" not in page
    assert 'name="do"' not in page  # changes on the report's own page
    assert '<a href="/mine/">My reports</a>' in client.get("/").content.decode()


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
    with django_assert_max_num_queries(8):
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
    monkeypatch.setattr("bot.notifications.report.touched", lambda *_: TouchedFiles(("mm/a.c",), (listed,)))
    report = world.report("mm: x")
    assert list(subsystems_of("max@dev.example")) == [report.subsystem]
    assert not subsystems_of("")
