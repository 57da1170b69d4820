"""The review queue: suggestions, mail that could not be parsed, and the progress of reading."""

from __future__ import annotations

import io
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from bot.archives import batch
from tests.world import DANA, World, message_id
from tracker.models import Archive, Event, Finding, Message, RawMessage, Report, Suggestion


def replay(*arguments: str) -> str:
    out = io.StringIO()
    call_command("replay", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def as_in_the_world(world: World, settings: Any) -> None:
    settings.PERFWORK_BOT_ADDRESS = world.settings.address
    settings.PERFWORK_BASE_URL = world.settings.base_url
    settings.PERFWORK_TRUST = world.settings.trust_policy


def test_an_inbox_of_nothing(client: Client, db: None) -> None:
    page = client.get("/inbox/").content.decode()
    assert "No suggestions to review." in page
    assert "No mail in quarantine." in page
    assert "No archive has been read yet" in page


@pytest.mark.usefixtures("as_in_the_world")
def test_a_mail_that_broke_the_reader_is_shown_and_read_again(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = world.report()
    world.post(DANA, "It is <the> lock.", to=message_id(report))
    with monkeypatch.context() as broken:

        def breaks(*arguments: Any) -> Any:
            raise RuntimeError("a bug <b>of ours</b>")

        broken.setattr(batch, "understand", breaks)
        assert world.read().quarantined == 2  # our own mail, too
    page = client.get("/inbox/").content.decode()
    assert "a bug &lt;b&gt;of ours&lt;/b&gt;" in page
    assert Message.objects.count() == 0
    assert "2 mails read again: none in quarantine, 1 report with a changed status" in replay()
    assert Message.objects.filter(report=report).count() == 2
    assert Report.objects.get(pk=report.pk).state == "responded"
    assert "No mail in quarantine." in client.get("/inbox/").content.decode()
    assert "0 mails read again" in replay()


@pytest.mark.usefixtures("as_in_the_world")
def test_replaying_everything_reaches_the_same_states(world: World) -> None:
    report = world.report()
    world.post(DANA, "It is the lock.", to=message_id(report))
    world.post(DANA, "#lkp note on a slow disk", to=message_id(report))
    world.read()

    def stored() -> list[Any]:
        return [
            sorted(Report.objects.values_list("culprit__sha", "state", "status", "remark")),
            sorted(Event.objects.values_list("key", "quote", "role")),
            sorted(Suggestion.objects.values_list("key", "quote")),
            sorted(Message.objects.values_list("message_id", "role")),
            Finding.objects.count(),
        ]

    before = stored()
    assert "0 reports with a changed status" in replay("--all")
    assert stored() == before


@pytest.mark.slow
@pytest.mark.usefixtures("as_in_the_world")
def test_replaying_real_threads_reaches_the_same_states(shared: Any, settings: Any, db: None) -> None:
    from tests.conftest import OPERATORS, ROBOTS

    settings.PERFWORK_ROBOTS, settings.PERFWORK_OPERATORS = sorted(ROBOTS), sorted(OPERATORS)
    call_command("read", str(shared / "threads-dev.mbox"), stdout=io.StringIO())
    before = sorted(Report.objects.values_list("culprit__sha", "state", "status"))
    events = sorted(Event.objects.values_list("key", "quote", "role"))
    findings = Finding.objects.count()
    assert "82 mails read again: none in quarantine, 0 reports with a changed status" in replay("--all")
    assert sorted(Report.objects.values_list("culprit__sha", "state", "status")) == before
    assert sorted(Event.objects.values_list("key", "quote", "role")) == events
    assert Finding.objects.count() == findings


def test_suggestions_are_paged_and_the_page_costs_the_same(
    world: World, client: Client, django_assert_num_queries: Any
) -> None:
    report = world.report()
    row = {
        "report": report,
        "kind": "invalid",
        "occurred_at": world.now,
        "role": "author",
        "message_id": "x",
        "rule": "command_invalid",
    }
    Suggestion.objects.bulk_create(
        Suggestion(key=f"k{number}", quote=f"words {number}", **row) for number in range(130)
    )
    RawMessage.objects.bulk_create(
        RawMessage(digest=f"d{number}", compressed=b"", error=f"wrong {number}", received_at=world.now)
        for number in range(130)
    )
    Archive.objects.bulk_create(Archive(path=f"/lists/{number}") for number in range(120))
    with django_assert_num_queries(14):
        page = client.get("/inbox/").content.decode()
    assert ("words 129" in page, "words 79" in page) == (True, False)
    older = Suggestion.objects.order_by("-pk")[49].pk
    assert f'href="?suggestions={older}"' in page
    assert "words 79" in client.get(f"/inbox/?suggestions={older}").content.decode()
    response = client.get("/inbox/?quarantine=x")
    assert (response.status_code, response.content) == (400, b"quarantine: expected a number; found 'x'")


def test_each_archive_says_how_reading_goes(world: World, client: Client, now: datetime) -> None:
    world.report()
    world.read()
    row = Archive.objects.get()
    assert (row.seen, row.kept) == (1, 1)
    assert row.newest_at
    newest = timezone.now() - timedelta(hours=3, minutes=5)  # the lag counts to now, whenever it was read
    Archive.objects.update(newest_at=newest, read_at=newest, error="it can't be had; fetch it again")
    page = client.get("/inbox/").content.decode()
    assert "3 h" in page
    assert "fetch it again" in page
    assert row.newest_at < timezone.now()


@pytest.mark.usefixtures("as_in_the_world")
def test_replaying_everything_keeps_what_came_by_no_mail(db: None) -> None:
    """The published report of v5.6 is history that was entered by hand."""
    call_command("loaddata", "v5_6", verbosity=0)
    before = Finding.objects.count()
    assert before > 50
    replay("--all")
    assert Finding.objects.count() == before
