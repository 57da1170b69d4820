"""Pages that readers share are made once per change; who is signed in, and who changed something, gets their own."""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
from typing import Any

import pytest
from django.core.cache import caches
from django.test import Client
from django.urls import get_resolver
from pytest_django import DjangoAssertNumQueries

from tests.support.rows import line
from tests.support.world import DANA, World, message_id
from tracker.models import (
    Release,
    Report,
    ReportHighlight,
)
from tracker.pages import cached
from tracker.pages.prose import write


@pytest.fixture
def page_cache(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.PERFWORK_PAGE_CACHE = True
    caches["pages"].clear()
    monkeypatch.setattr(cached.time, "time", lambda: 1_800_000_030.0)  # no page grows too old by chance


@pytest.fixture
def report(world: World) -> Report:
    return world.report()


def address(report: Report) -> str:
    return f"/report/{report.culprit.sha}/"


@pytest.mark.django_db
@pytest.mark.usefixtures("page_cache")
def test_a_page_is_made_once_and_a_browser_that_has_it_gets_a_304(
    client: Client, report: Report, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    first = client.get(address(report))
    with django_assert_num_queries(1):
        second = client.get(address(report))
    assert second.content == first.content
    assert second["ETag"] == first["ETag"]
    with django_assert_num_queries(1):
        third = client.get(address(report), headers={"if-none-match": first["ETag"]})
    assert (third.status_code, third.content) == (304, b"")
    packed = client.get(address(report), headers={"accept-encoding": "gzip"})
    assert gzip.decompress(packed.content) == first.content
    assert "no-cache" in first["Cache-Control"]
    assert {"Accept-Encoding", "Cookie"} <= set(first["Vary"].split(", "))


@pytest.mark.django_db
@pytest.mark.usefixtures("page_cache")
def test_what_happens_to_a_report_shows_at_once(client: Client, world: World, report: Report) -> None:
    before = client.get(address(report))
    world.post(DANA, "I am working on a fix.", to=message_id(report))
    world.read()
    after = client.get(address(report), headers={"if-none-match": before["ETag"]})
    assert after.status_code == 200
    assert "working on it" in after.content.decode()


@pytest.mark.django_db
@pytest.mark.usefixtures("page_cache")
def test_a_release_report_is_made_anew_when_it_changes_and_not_for_other_events(
    client: Client, world: World, report: Report
) -> None:
    release = Release.objects.create(version="v9.1", number=9_001_000)
    page = "/v9.1/report/"
    tags = [client.get(page)["ETag"]]
    world.post(DANA, "I am working on a fix.", to=message_id(report))
    world.read()  # of another release
    assert client.get(page)["ETag"] == tags[0]
    changes = (
        lambda: ReportHighlight.objects.create(release=release, report=report, heading="One"),
        lambda: ReportHighlight.objects.update(heading="Two"),
        lambda: write("report v9.1", "summary", "All is well.", "rita", world.now),
        lambda: Report.objects.filter(pk=report.pk).update(merged_release="v9.1"),
    )
    for change in changes:
        change()
        tags.append(client.get(page)["ETag"])
    assert len(set(tags)) == len(tags)


@pytest.mark.django_db
@pytest.mark.usefixtures("page_cache")
def test_nobody_gets_the_page_of_another(client: Client, admin_client: Client, report: Report) -> None:
    own = admin_client.get(address(report))
    assert "ETag" not in own
    assert "Sign out" in own.content.decode()
    assert "Sign out" not in client.get(address(report)).content.decode()
    assert "Sign out" in admin_client.get(address(report)).content.decode()
    assert "private" in admin_client.get(address(report))["Cache-Control"]
    client.cookies["messages"] = "something"
    assert "ETag" not in client.get(address(report))


@pytest.mark.django_db
@pytest.mark.usefixtures("page_cache")
def test_other_addresses_hosts_and_errors_are_not_mixed_up(client: Client, report: Report, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["one.example", "two.example"]
    texts = {host: client.get(f"/search/?q=sha:{host}", headers={"host": host}) for host in settings.ALLOWED_HOSTS}
    assert len({each["ETag"] for each in texts.values()}) == 2
    missing = client.get("/report/0123456789/", headers={"host": "one.example"})
    assert missing.status_code == 404
    assert "ETag" not in missing
    anything = client.get("/report/0123456789/", headers={"host": "one.example", "if-none-match": "*"})
    assert anything.status_code == 404, "there is none that could be unchanged"
    assert client.get("/v9.9/", headers={"host": "one.example"}).status_code == 404


@pytest.mark.django_db
@pytest.mark.usefixtures("page_cache")
def test_a_page_that_many_ask_for_is_made_by_one(
    client: Client, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def slow(request: Any) -> Any:
        from django.http import HttpResponse

        made.append(1)
        time.sleep(0.2)
        return HttpResponse("x" * 100)

    monkeypatch.setattr(cached, "stamp", lambda *_: "the same")
    middleware = cached.CachedPages(slow)

    def ask() -> None:
        from django.contrib.sessions.backends.base import SessionBase
        from django.test import RequestFactory

        request = RequestFactory().get("/escalations/")
        request.session = SessionBase()
        request.resolver_match = get_resolver().resolve("/escalations/")
        answer = middleware.process_view(request, slow, (), {})
        assert answer is not None
        assert answer.content == b"x" * 100

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


@pytest.mark.django_db
@pytest.mark.usefixtures("page_cache")
def test_every_name_is_that_of_a_page() -> None:
    def names(patterns: Any) -> set[str]:
        found = set()
        for each in patterns:
            found |= names(each.url_patterns) if hasattr(each, "url_patterns") else {each.name}
        return found

    assert cached.FRESHNESS.keys() <= names(get_resolver().url_patterns)


@pytest.mark.django_db
@pytest.mark.usefixtures("page_cache")
def test_it_can_be_switched_off(client: Client, report: Report, settings: Any) -> None:
    settings.PERFWORK_PAGE_CACHE = False
    assert "ETag" not in client.get(address(report))


@pytest.mark.django_db
@pytest.mark.usefixtures("page_cache")
def test_no_title_turns_a_line(client: Client) -> None:
    title = "mm: \u202edesrever\u202c \x1b[31m \u2066x\u2069 שלום"
    report = line(0, merged_release="v5.6", title=title, given_title=title)
    for path in ("/v5.6/", f"/report/{report.culprit.sha}/"):
        page = client.get(path).content.decode()
        assert "mm: [U+202E]desrever[U+202C] [U+001B][31m [U+2066]x[U+2069] שלום" in page
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", page)
        assert client.get(path).content.decode() == page  # from the cache
        packed = client.get(path, headers={"accept-encoding": "gzip"})
        assert gzip.decompress(packed.content).decode() == page
    assert "\u202e" in json.loads(client.get("/v5.6.json").content)["merged"][0]["title"]  # data is as it is
