"""The header: the same menus everywhere, the current page marked, and how much waits for those who may act."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from tests.tracker.lines import NOW, line
from tracker.models import Suggestion


def header(client: Client, path: str) -> str:
    return client.get(path).content.decode().partition("</header>")[0]


@pytest.mark.django_db
def test_every_link_leads_somewhere_and_is_marked_there(client: Client) -> None:
    links = [unescape(each) for each in re.findall(r'<a href="([^"]+)"', header(client, "/"))]
    assert len(links) > 12
    for link in links:
        assert client.get(link).status_code == 200, link
        if link == "/help/":  # the documentation has links that lead somewhere without a server, too
            assert 'href="." aria-current="page">Help</a>' in header(client, link)
        elif link != "/sign-in/":
            assert f'href="{link.replace("&", "&amp;")}" aria-current="page"' in header(client, link), link


@pytest.mark.django_db
def test_what_waits_is_said_to_those_who_may_act(client: Client) -> None:
    report = line(1, merged_release="v6.1")
    for number in range(3):
        Suggestion.objects.create(
            report=report, key=f"{number}", kind="working", occurred_at=NOW, role="author", rule="x"
        )
    assert "badge" not in header(client, "/")
    user = User.objects.create_user("kim")
    client.force_login(user)
    assert "badge" not in header(client, "/")
    user.groups.add(Group.objects.get(name="triager"))
    assert '<b class="badge">3<span class="unseen"> waiting</span></b>' in header(client, "/")
    Suggestion.objects.all().delete()
