"""Stored bisect results are measured again by today's code: what an older version misread is corrected."""

from __future__ import annotations

import pytest

from bot.notifications.report import compose_due
from bot.results.storage import ReadAgain, read_again
from tests.world import World
from tracker.models import BisectResult, Finding, Metric, OutgoingMail, Report

MEASURED = ("old_mean", "new_mean", "old_samples", "new_samples", "change_pct", "change_pct_raw", "verdict", "p_value")


def measured() -> list[tuple[object, ...]]:
    return list(Finding.objects.order_by("pk").values_list(*MEASURED))


@pytest.fixture
def results(world: World) -> None:
    world.ingest(world.result("b" * 40, "mm: a"), world.result("c" * 40, "mm: b"))


def test_what_is_as_it_was_stays(results: None) -> None:
    before = (measured(), list(Report.objects.values()))
    assert read_again() == ReadAgain(results=2)
    assert (measured(), list(Report.objects.values())) == before


def test_what_was_misread_is_measured_again_with_all_that_follows(results: None) -> None:
    before, lines = measured(), list(Report.objects.order_by("pk").values_list("change", "verdict"))
    first = Finding.objects.order_by("pk")[0]
    Finding.objects.filter(pk=first.pk).update(
        old_mean=1.0, new_mean=2.0, new_samples=[2.0], change_pct=100.0, change_pct_raw=100.0, verdict="improvement"
    )
    Report.objects.filter(pk=first.report_id).update(change=100.0, verdict="improvement")
    assert read_again() == ReadAgain(results=2, changed=1)
    assert measured() == before
    assert list(Report.objects.order_by("pk").values_list("change", "verdict")) == lines
    assert read_again().changed == 0


def test_a_result_that_can_not_be_read_any_more_stays_as_it_was(results: None) -> None:
    before = measured()
    row = BisectResult.objects.order_by("pk")[0]
    BisectResult.objects.filter(pk=row.pk).update(payload="{}")
    assert read_again() == ReadAgain(results=2, rejected=1)
    BisectResult.objects.filter(pk=row.pk).update(format="a format of the past")
    assert read_again() == ReadAgain(results=2, rejected=1)
    assert measured() == before


def test_a_mail_that_waits_is_composed_again(results: None, world: World) -> None:
    compose_due(world.settings, world.now, approve_first=True)
    assert set(OutgoingMail.objects.values_list("stale", flat=True)) == {False}
    Finding.objects.update(new_mean=2.0)
    read_again()
    assert set(OutgoingMail.objects.values_list("stale", flat=True)) == {True}


def test_a_result_that_today_s_code_trips_over_ends_nothing(results: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def trips(value: object, where: str) -> object:
        raise KeyError("runs")

    monkeypatch.setattr("bot.results.recognise.ADAPTERS", dict.fromkeys(("perf-bisect-result/1",), trips))
    assert read_again() == ReadAgain(results=2, rejected=2)


def test_a_direction_that_today_s_code_knows_grades_what_is_stored(world: World) -> None:
    world.ingest(world.result("b" * 40, "mm: a"))
    before = (measured(), list(Report.objects.values_list("verdict", "held")))
    Metric.objects.update(direction="unknown", direction_by="nobody")
    Finding.objects.update(verdict="unknown")
    Report.objects.update(verdict="unknown", held="the direction of vm-scan.ops_per_sec is unknown")
    read_again()
    assert measured() == before[0]
    assert list(Report.objects.values_list("verdict", flat=True)) == [before[1][0][0]]


def test_of_a_place_that_a_result_measures_twice_the_first_counts(world: World) -> None:
    value = world.result("b" * 40, "mm: a")
    slower = {**value["measurements"][0], "role": "kpi", "bad": {"samples": [500, 505, 495]}}
    value["additional"] = [{"test": value["test"], "machine": value["machine"], "measurements": [slower]}]
    world.ingest(value)
    before = measured()
    assert read_again().changed == 0
    assert measured() == before
