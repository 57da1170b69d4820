"""Curves in the order of the mainline: what was written early and merged late stands where it was merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import call_command

from bot.upstream.backfill import order_builds
from bot.upstream.tracking import Patience, follow
from tests.support.world import Linux, World
from tracker.domain.curves import builds_of
from tracker.domain.events import TreeRole
from tracker.models import Commit, Curve, CurveBuild, CurveChange, Landing, Report, Tree
from tracker.pages.measurements import curve_page
from tracker.services import curves

HEAD = "commit,date,machine,suite,metric,value,unit,direction"


class Lab:
    """A mainline with a slow topic that was written before twenty builds and merged after them."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder, self.files = world, folder, 0
        self.linux = linux = Linux(folder / "linux.git")
        base = linux.commit("base")
        self.slow = linux.commit("slow", on="topic", parents=[base])
        self.before = [linux.commit(f"fast {number}") for number in range(20)]
        self.merge = linux.merge("merge the slow topic", "topic")
        self.after = [linux.commit(f"after {number}") for number in range(12)]
        linux.tag("v9.1-rc1", self.before[9])
        self.world.now = max(world.now, linux.now) + timedelta(hours=1)
        self.tree = Tree.objects.create(name="linus", role=TreeRole.MAINLINE, path=str(linux.path))

    def measure(self, levels: Mapping[str, float], dated: Mapping[str, str] | None = None) -> None:
        self.files += 1
        path = self.folder / f"{self.files}.csv"
        rows = [
            f"{sha},{(dated or {}).get(sha) or self.date_of(sha)},m1,wis,wis.ops,{value},1/s,higher"
            for sha, level in levels.items()
            for value in (level, level * 1.002, level * 0.998)
        ]
        path.write_text("\n".join([HEAD, *rows, ""]))
        call_command("ingest", str(path))

    def date_of(self, sha: str) -> str:
        return self.linux("log", "-1", "--format=%cI", sha)

    def walk(self) -> None:
        follow(self.tree, self.world.settings, self.world.later(), Patience(None, timedelta(hours=1)))
        self.tree.refresh_from_db()
        call_command("ingest", str(self.folder / "1.csv"))  # looks at stale curves, as the worker does

    def names(self) -> Sequence[str]:
        return [build.name for build in builds_of(curves.load(Curve.objects.get()))]


@pytest.fixture
def lab(world: World, tmp_path: Path) -> Lab:
    return Lab(world, tmp_path)


def test_a_change_is_found_where_it_was_merged(lab: Lab) -> None:
    levels = {lab.slow: 80.0} | dict.fromkeys(lab.before, 100.0) | dict.fromkeys(lab.after, 80.0)
    lab.measure(levels)
    assert lab.names() == [lab.slow, *lab.before, *lab.after]  # by its date, the slow one comes first
    assert CurveChange.objects.get().build == lab.after[0]
    lab.walk()
    assert lab.names() == [*lab.before, lab.slow, *lab.after]
    change = CurveChange.objects.get()
    assert (change.before, change.build) == (lab.before[-1], lab.slow)
    assert not CurveBuild.objects.filter(moved=False).exists()
    assert Curve.objects.get().points == len(levels)


def test_what_comes_later_of_a_known_build_stands_in_its_place_at_once(lab: Lab) -> None:
    lab.measure({lab.slow: 80.0, lab.before[0]: 100.0, lab.after[0]: 80.0})
    lab.walk()
    lab.measure({lab.slow: 81.0})
    curve = Curve.objects.get()
    assert lab.names() == [lab.before[0], lab.slow, lab.after[0]]
    assert (curve.points, len({point.at for point in curves.load(curve) if point.build == lab.slow})) == (4, 1)


def test_a_version_stands_at_its_tag_whenever_it_was_measured(lab: Lab) -> None:
    lab.measure(dict.fromkeys(lab.before, 100.0))
    lab.measure({"v9.1-rc1": 100.0}, {"v9.1-rc1": "2026-11-11T11:11:11Z"})
    assert lab.names()[-1] == "v9.1-rc1"
    lab.walk()
    assert set(lab.names()[9:11]) == {"v9.1-rc1", lab.before[9]}


def test_what_the_mainline_lacks_is_looked_for_again_when_it_has_changed(lab: Lab) -> None:
    side = lab.linux.commit("not merged yet", on="side", parents=[lab.before[4]])
    lab.measure({side: 100.0} | dict.fromkeys(lab.before, 100.0))
    lab.walk()
    assert lab.names()[-1] == side
    assert CurveBuild.objects.get(moved=False).name == side
    with pytest.MonkeyPatch.context() as patch:  # nothing is asked of git as long as it is the same
        patch.setattr("bot.upstream.backfill.git_order", None)
        assert order_builds(lab.tree, lab.world.later()) == 0
    lab.linux.merge("merge it", "side")
    late = lab.linux.commit("a build after that")
    lab.world.now = lab.linux.now + timedelta(hours=1)
    lab.walk()
    lab.measure({late: 100.0})
    lab.walk()
    assert lab.names() == [*lab.before, side, late]


def test_a_move_that_was_broken_off_is_finished_by_the_next(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.measure({lab.slow: 80.0, lab.before[0]: 100.0})

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(curves, "_move", killed)
        lab.walk()
    assert lab.names() == [lab.slow, lab.before[0]]
    lab.walk()
    assert lab.names() == [lab.before[0], lab.slow]


def test_no_other_tree_orders_builds(lab: Lab) -> None:
    Tree.objects.update(role=TreeRole.STABLE)
    lab.tree.refresh_from_db()
    lab.measure({lab.slow: 80.0, lab.before[0]: 100.0})
    lab.walk()
    assert lab.names() == [lab.slow, lab.before[0]]


def test_a_large_curve_is_cut_into_segments_again(lab: Lab) -> None:
    lab.measure({lab.slow: 80.0} | dict.fromkeys(lab.before, 100.0))
    curve = Curve.objects.get()
    many = [curves.CurvePoint(lab.world.now + timedelta(minutes=n), f"b{n}", (1.0, 2.0), "x") for n in range(1200)]
    curves.add({(curve.metric_id, curve.scenario_id, curve.machine_id): many})
    lab.walk()
    curve.refresh_from_db()
    points = curves.load(curve)
    assert [point.at for point in points] == sorted(point.at for point in points)
    assert (len(points), curve.points, curve.segments.count()) == (1221, 1221, 2)
    assert isinstance(curve.first_at, datetime)
    assert curve.first_at == points[0].at


def test_a_fix_that_was_not_measured_is_marked_at_the_first_build_with_it(lab: Lab) -> None:
    report = lab.world.report(sha=lab.slow)
    finding = report.findings.get(headline=True)
    key = (finding.metric_id, finding.scenario_id, finding.machine_id)
    fix = Commit.objects.create(sha="f" * 40)
    for moment, measured in ((lab.world.now, lab.after), (lab.world.now + timedelta(hours=2), ["e" * 40])):
        curves.add({key: [curves.CurvePoint(moment, sha, (1.0, 2.0), "x") for sha in measured]})
    Report.objects.update(fix_sha=fix.sha)
    curve = Curve.objects.get(metric=finding.metric)

    def marked() -> list[str]:
        page = curve_page(curve.pk, None, None)
        assert page
        return [mark.build for mark in page.marks if mark.kind == "fix"]

    assert marked() == [fix.sha]  # which is not on the curve
    Landing.objects.create(commit=fix, tree=lab.tree, at=lab.world.now, merged_at=lab.world.now + timedelta(hours=1))
    assert marked() == ["e" * 40]
