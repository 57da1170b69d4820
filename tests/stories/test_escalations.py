"""Escalations: what blocks, what nobody answers, fixes that lie about; nothing of years ago."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.tracker.lines import line
from tracker.models import Report

DAY = timedelta(days=1)


def headings(client: Client) -> dict[str, list[str]]:
    """The sections of the page, each with the titles of its rows."""
    page = client.get("/escalations/").content.decode()
    found = {}
    for part in page.split("<section aria-labelledby=")[1:]:
        heading = part.partition("<h2")[2].partition(">")[2].partition("</h2>")[0].strip()
        found[heading] = [
            name
            for name in ("old", "late", "fresh", "blocks", "posted", "queued", "stable")
            if f"where={name}." in part
        ]
    return found


@pytest.fixture
def reports(db: None) -> None:
    now = timezone.now()

    def made(number: int, name: str, days: float, **columns: Any) -> Report:
        return line(number, scenario=f"where={name}.", subsystem="mm", reported_at=now - days * DAY, **columns)

    made(1, "old", 400)
    made(2, "late", 12)
    made(3, "fresh", 3)
    made(4, "blocks", 300, blocks="v9.1", state="working")  # a person said so, whenever that was
    made(5, "posted", 60, state="fix_proposed", last_human_reply_at=now - 30 * DAY)
    made(6, "posted lately", 60, state="fix_proposed", last_human_reply_at=now - 3 * DAY)
    lab = {"awaited": "reporter", "last_human_reply_at": now - 30 * DAY}
    made(11, "posted, for the lab to test", 60, state="fix_proposed", **lab)
    made(7, "queued", 60, state="fix_queued", merged_release="v9.1")
    made(8, "queued, never merged", 60, state="fix_queued")
    made(9, "stable", 900, state="fixed", lacks_fix=True)
    made(10, "late improvement", 20, verdict="improvement")


def test_each_reason_has_its_reports(reports: None, client: Client) -> None:
    assert headings(client) == {
        "Blocking a release": ["blocks"],
        "Unanswered": ["late"],
        "Fixes that nobody picked up": ["posted"],
        "Fixes that wait in a tree": ["queued"],
        "Fix missing in stable": ["stable"],
        "Unanswered by subsystem": [],
    }
    page = client.get("/escalations/").content.decode()
    assert '<a href="/subsystem/mm/?state=no_response">mm</a> 1</li>' in page
    assert page.count("where=posted.") == 1
    assert "never merged" not in page
    assert "improvement" not in page.partition("<table")[2].partition("Keys")[0]


def test_nothing_to_push(client: Client, db: None) -> None:
    assert "Nothing needs attention." in client.get("/escalations/").content.decode()


def test_many_cost_the_same(reports: None, client: Client, django_assert_num_queries: Any) -> None:
    for number in range(20, 90):
        line(number, reported_at=timezone.now() - 20 * DAY)
    with django_assert_num_queries(6):
        page = client.get("/escalations/").content.decode()
    assert "find all" not in page  # no search says just this
    for number in range(100, 170):
        line(number, reported_at=timezone.now() - 400 * DAY, blocks="v9.1")
    page = client.get("/escalations/").content.decode()
    assert '<a href="/search/?q=blocking%3Ayes%20state%3Aopen%20kind%3Aregression">find all</a>' in page
