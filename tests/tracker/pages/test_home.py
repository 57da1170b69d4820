"""The front page: what a new lab does first, the week, and the course of the cycle."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.support.rows import line
from tests.support.world import World
from tracker.models import Event, Release, ReleaseCandidate, Report
from tracker.pages.home import NEWS, week
from tracker.services.report_summary import ReleaseCalendar


@pytest.mark.django_db
def test_without_reports_it_says_how_to_get_some(client: Client) -> None:
    page = client.get("/").content.decode()
    assert "No reports yet." in page
    assert "./manage.py ingest fixtures/results" in page


def test_reports_of_no_release_are_named_before_a_tree_is_followed(world: World, client: Client) -> None:
    world.ingest(world.result("b" * 40, "mm: a change"))
    page = client.get("/").content.decode()
    assert "No reports yet." not in page
    assert "none belongs to a release shown here yet" in page
    found = client.get("/search/?q=state:open").content.decode()
    assert "b" * 10 in found


def _happened(report: Report, kind: str, hours: int) -> None:
    at = timezone.now() - timedelta(hours=hours)
    Event.objects.create(
        report=report,
        key=f"{kind}:{hours}",
        kind=kind,
        occurred_at=at,
        recorded_at=at,
        role="author",
        message_id=f"{kind}@x.example",
    )


def test_the_week_tells_what_closed_and_counts_what_it_leaves_out(db: None) -> None:
    """One line a report, its last; twelve reports got an answer, and one was withdrawn before that."""
    for number in range(12):
        report = line(number, subsystem=f"mm/part{number}")
        _happened(report, "asked", 2)
        _happened(report, "working", 1)
    _happened(line(99, subsystem="net/relay", state="invalid", closed_at=timezone.now()), "invalid", 30)
    news, more = week(timezone.now())
    assert (len(news), more) == (NEWS, str(25 - NEWS))
    assert news[-1].about == "net/relay"
    assert len({row.about for row in news}) == NEWS
    assert {row.what for row in news[:-1]} == {"works on it"}


def test_front_page_and_release_report_draw_the_same_course(db: None, client: Client) -> None:
    """A fix that a version brings is dated a moment after its tag, and closes the report in it."""
    version = ReleaseCalendar.load().current
    release = Release.objects.get(version=version)
    release.candidates.all().delete()
    at = timezone.now().replace(microsecond=0) - timedelta(days=20)
    for number, days in ((1, 0), (2, 7)):
        name, tagged_at = f"{version}-rc{number}", at + timedelta(days=days)
        ReleaseCandidate.objects.create(version=name, release=release, number=number, tagged_at=tagged_at)
    closed_at = at + timedelta(days=7, microseconds=1)
    columns = {"merged_release": version, "reported_at": at - timedelta(days=1)}
    line(1, **columns)
    line(3, **columns, verdict="improvement")
    line(2, **columns, state="fixed", closed_at=closed_at, changed_at=closed_at)
    described = f"Open regressions: 2 at {version}-rc1, 1 at {version}-rc2"
    assert described in client.get("/").content.decode()
    assert described in client.get(f"/{version}/report/").content.decode()
