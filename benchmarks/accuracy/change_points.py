"""Changes found in curves: on made series beside a t-test, Otava and PELT, and once on real series that people judged.

`change_points.py [SEED]`: parameters were chosen on the made series of seed 1; others test them. Otava and PELT are
run by the interpreter in PERFWORK_OTAVA (other_detectors.py), if it is set.
"""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.accuracy.made_series import KINDS, MadeSeries, made, returned
from benchmarks.accuracy.shares import share
from tracker.domain import curves
from tracker.domain.statistics import summarise, welch

JUDGED = ROOT.parent / "shared" / "data" / "change-points"
EACH = 100  # made series of each kind
NEAR = 2  # builds
T_TESTS = (1e-3, 1e-5, 1e-7, 1e-9)
OTAVAS = ((0.001, 0.0), (0.001, 0.03), (1e-5, 0.03), (1e-7, 0.03), (1e-9, 0.05))
PELTS = (20, 60, 150, 400)
Detector = Callable[[Sequence[float]], list[int]]


def ours(levels: Sequence[float]) -> list[int]:
    return [each.index for each in curves.change_points(levels)]


def t_test(alpha: float) -> Detector:
    """Welch's t-test between the windows that ours uses, at each build; of neighbours the most significant."""

    def detect(levels: Sequence[float]) -> list[int]:
        places = range(curves.LEAST_BEFORE, len(levels) - curves.AFTER + 1)
        sides = [
            (
                summarise(levels[max(0, at - curves.BEFORE) : at]),
                summarise(levels[at : at + curves.AFTER]),
            )
            for at in places
        ]
        tested = [(p if p is not None else 1.0, at) for p, at in zip(welch(sides), places, strict=True)]
        found: list[int] = []
        for p, at in sorted(tested):
            if p < alpha and all(abs(at - each) > curves.AFTER for each in found):
                found.append(at)
        return sorted(found)

    return detect


def tally(name: str, series: Sequence[MadeSeries], found: Sequence[Sequence[int]]) -> str:
    """Return a row: steps found, changes found twice or elsewhere in their series, and false ones by kind."""
    steps = [(each.step, places) for each, places in zip(series, found, strict=True) if each.step is not None]
    hits = sum(any(abs(place - step) <= NEAR for place in places) for step, places in steps)
    extra = sum(sum(abs(place - step) > NEAR for place in places) for step, places in steps)
    false = {kind: 0 for kind in KINDS if kind != "step"}
    for each, places in zip(series, found, strict=True):
        if each.step is None:
            false[each.kind] += len(places)
    return f"{name:34}{100 * hits / len(steps):7.0f} %{extra:7}" + "".join(f"{false[kind]:10}" for kind in false)


def on_made(seed: int) -> None:
    rng = random.Random(seed)
    series = [made(kind, rng) for kind in KINDS for _ in range(EACH)]
    levels = [each.levels for each in series]
    print(f"made series, seed {seed}: {EACH} of each kind; changes found where there is none")
    print(f"{'':34}{'found':>9}{'extra':>7}" + "".join(f"{kind[:9]:>10}" for kind in KINDS if kind != "step"))
    print(tally("ours", series, [ours(each) for each in levels]))
    for alpha in T_TESTS:
        print(tally(f"t-test, p < {alpha:g}", series, list(map(t_test(alpha), levels))))
    detectors = [*(["otava", *each] for each in OTAVAS), *(["pelt", penalty, None] for penalty in PELTS)]
    for detector, found in zip(detectors, others(detectors, levels), strict=False):
        shown = (
            f"Otava, p < {detector[1]:g}, {detector[2]:.0%} or more"
            if detector[0] == "otava"
            else f"PELT, {detector[1]}"
        )
        print(tally(shown, series, found))


def on_returns(seed: int) -> None:
    """Print how many steps and returns are found where a level comes back after 7 to 30 builds."""
    rng = random.Random(seed)
    series = [returned(rng) for _ in range(2 * EACH)]
    print(f"\n{len(series)} made series whose level comes back: steps and returns found")
    for name, detect in (("ours", ours), *((f"t-test, p < {alpha:g}", t_test(alpha)) for alpha in T_TESTS)):
        found = [detect(each.levels) for each in series]
        hits = [
            sum(any(abs(place - where) <= NEAR for place in places) for where, places in zip(at, found, strict=True))
            for at in ([each.step or 0 for each in series], [each.back or 0 for each in series])
        ]
        print(f"{name:34}{hits[0]:7}{hits[1]:7}")


def others(detectors: Sequence[Sequence[object]], levels: Sequence[Sequence[float]]) -> list[list[list[int]]]:
    python = os.environ.get("PERFWORK_OTAVA")
    if not python:
        print("(Otava and PELT: not run; set PERFWORK_OTAVA to an interpreter that has them)")
        return []
    asked = json.dumps({"detectors": detectors, "series": levels})
    command = [python, str(Path(__file__).with_name("other_detectors.py"))]
    answers: list[list[list[int]]] = json.loads(
        subprocess.run(command, input=asked, stdout=-1, text=True, check=True).stdout
    )
    return answers


def builds_of(path: Path) -> list[list[tuple[int, float]]]:
    """Return the runs of each build, (index, measurement)."""
    with path.open() as lines:
        rows = list(csv.DictReader(lines))
    return [
        [(int(row["Index"]), float(row["Measurement"])) for row in build]
        for _, build in groupby(rows, key=lambda row: row["GHC"])
    ]


def as_they_come(levels: Sequence[float], detect: Detector) -> dict[int, int]:
    """Return each change reported while builds come in one by one: its place → after how many builds it was noticed."""
    noticed: dict[int, int] = {}
    for count in range(1, len(levels) + 1):
        for place in detect(levels[:count]):
            if all(abs(place - known) > NEAR for known in noticed):
                noticed[place] = count - place
    return noticed


def on_judged() -> None:
    if not JUDGED.is_dir():
        print(f"the judged series are not on this machine (expected in {JUDGED})")
        return
    with (JUDGED / "judged.csv").open() as lines:
        judged = list(csv.DictReader(lines, delimiter=";"))
    print("\njudged series, builds as they come; a rise is a regression")
    outcomes: dict[bool, list[bool]] = {True: [], False: []}  # by whether a regression was judged: read right?
    for row in judged:
        builds = builds_of(JUDGED / row["Dataset"])
        levels = [median(value for _, value in build) for build in builds]
        last = int(row["Change Point"])
        truth = next((n for n, build in enumerate(builds) if build[0][0] > last), None) if last else None
        found = as_they_come(levels, ours)
        rises = {cp_.index for cp_ in curves.change_points(levels) if cp_.new > cp_.old}
        shown = ", ".join(
            f"build {place}{'' if place in rises else ' (falls or passed)'}, noticed after {after}"
            for place, after in sorted(found.items())
        )
        hit = any(abs(place - truth) <= NEAR for place in found) if truth is not None else not found
        outcomes[truth is not None].append(hit)
        expected = "" if truth is None else f"; judged: build {truth}"
        print(f"  {row['Dataset']}  {row['Type'].strip():16}{len(levels):5} builds: {shown or 'nothing'}{expected}")
    people = "people, a real product's series"
    share("regressions found where people saw one", sum(outcomes[True]), len(outcomes[True]), people, unseen=True)
    share("series in which they saw none, left alone", sum(outcomes[False]), len(outcomes[False]), people, unseen=True)


if __name__ == "__main__":
    for each in map(int, sys.argv[1:] or ("2",)):
        on_made(each)
        on_returns(each)
    on_judged()
