"""Caveats about a report's numbers: noise, weak evidence, a debug config, mixed results. Pure.

To add one: write a generator that takes a report and yields sentences, and name it in `warnings_of`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.compose.numbers import percent
from bot.compose.report.report_data import FindingData, ReportData
from tracker.domain.events import Grade
from tracker.domain.text.english import counted

NOISY_PCT = 5.0  # of the mean, from run to run: more than most benchmarks reported on the lists
SMALL_PCT = 10.0  # code alignment alone has caused changes up to this
_PROFILE_POINTS = 1.0
# Parts of a config's name or a kernel's command line, and what they enable; each has a high and uneven cost.
_FALSIFIES = {
    r"kasan|kcsan|kmsan|ubsan|kfence": "a sanitizer",
    r"lockdep|prove[-_]?locking|lock[-_]?stat": "lock debugging",
    r"kmemleak|debug[-_]?(?:pagealloc|slab|objects|vm|list)|slub[-_]?debug|page[-_]?poison": "memory debugging",
    r"kcov|gcov|fault[-_]?inj\w*": "instrumentation",
    r"(?<![a-z0-9])debug(?![a-z0-9]|[-_]?info)|dbg(?![a-z0-9])": "debug options",
}
_OFF = re.compile(r"=(?:0|off|n|no|-|debug)\Z", re.I)  # "debug" alone and "=debug" are log levels
_COMPILER = {r"(?<!\S)-O[0g](?!\S)": "built without optimisation"}


def warnings_of(report: ReportData) -> tuple[str, ...]:
    """Return the caveats as sentences, the most serious first."""
    checks = (_config(report), _noise(report.headline), _chance(report.headline), _alignment(report), _mixed(report))
    return tuple(sentence for sentences in checks for sentence in sentences)


def _config(report: ReportData) -> Iterator[str]:
    build = report.build
    switched_on = " ".join(word for word in build.cmdline.split() if not _OFF.search(word) and word != "debug")
    for name, text in (("config", build.kconfig), ("kernel's command line", switched_on)):
        for pattern, what in _FALSIFIES.items():
            if found := re.search(pattern, text, re.I):
                yield f"the {name} enables {what} ({found[0]}); results may differ without it"
    for pattern, what in _COMPILER.items():
        if re.search(pattern, build.compiler):
            yield f"the kernel was {what}"


def _noise(headline: FindingData) -> Iterator[str]:
    if headline.noise_pct is not None and headline.noise_pct >= NOISY_PCT:
        yield f"this metric is known to be noisy on this machine: {percent(headline.noise_pct)}% between builds"
    elif max(headline.spreads, default=0.0) >= NOISY_PCT:
        yield f"the runs vary a lot ({percent(max(headline.spreads))}%)"


def _chance(headline: FindingData) -> Iterator[str]:
    if headline.overlap:
        yield "the ranges of the two sides overlap"
    if headline.verdict is Grade.NOT_TESTABLE:
        yield "not tested for significance: only one run per side, or no spread given"
    elif headline.verdict is Grade.NOT_SIGNIFICANT:
        yield "this difference may be due to chance"


def _alignment(report: ReportData) -> Iterator[str]:
    """Where the profile shows no change, a shift of code or data addresses may be the whole effect."""
    change = report.headline.change_pct
    profile = [each for each in report.findings if each.is_profile and each.table_key == report.headline.table_key]
    unchanged = all(abs(each.moved or 0.0) < _PROFILE_POINTS for each in profile)
    if profile and unchanged and change is not None and abs(change) < SMALL_PCT:
        yield "no function's share changed much in the profile; this may be an effect of code or data alignment"


def _mixed(report: ReportData) -> Iterator[str]:
    graded = [each for each in report.findings if each.is_graded]
    worse = sum(each.verdict is Grade.REGRESSION for each in graded)
    better = len(graded) - worse
    if worse and better and min(worse, better) * 2 >= max(worse, better):
        yield f"the results are mixed: {counted(worse, 'regression')}, {counted(better, 'improvement')}"
