"""`/mine/`: who is signed in sees what awaits them, and nobody else's."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client

from tests.tracker.lines import line


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
