"""The first screen of a report mail: the facts that readers ask for, in 24 lines of 78 columns. Pure.

What changed, by how much, where, since which commit, the evidence, what else changed, how to reproduce and to reply.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.compose import numbers
from bot.compose.conventions import WIDTH
from bot.compose.report.report_data import FindingData, ReportData, worst
from bot.compose.report.reproduce import in_lines, reproduce
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import one_line
from tracker.domain.events import Grade, Verdict
from tracker.domain.metrics.glossary import in_words
from tracker.domain.text.english import counted
from tracker.domain.text.formats import interval, signed_pct

LINES = 24
_NAME = 11  # columns of a fact's label
_WORST = 3


@dataclass(frozen=True, slots=True)
class Fact:
    """A label and its text, as lines."""

    name: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        first, *rest = self.lines
        return "\n".join([f"{self.name:<{_NAME}}{first}", *(" " * _NAME + line for line in rest)])


def first_screen(
    report: ReportData, identity: BotIdentity, template: str, room: int, warning: str = ""
) -> tuple[Fact, ...]:
    """Return the facts in at most `room` lines; the worst other findings fill the lines that are left.

    `warning`: the most serious caveat; `template`: the lab's own command to reproduce.
    """
    regression = report.verdict is Verdict.REGRESSION
    command = reproduce(report, template)
    rest = (
        *_measurement(report.headline),
        _fact("where:", report.headline.where + _machine(report.headline), 2),
        *_baseline(report),
        _fact("evidence:", _evidence(report.headline), 2),
        *([_fact("history:", report.history, 2)] if report.history else ()),
        *([_fact("caveat:", f"{warning}.", 2)] if warning else ()),
        *_bisected(report),
    )
    end = (
        *([Fact("reproduce:", in_lines(command) or ("see the command below",))] if regression else ()),
        _fact("answer:", _how_to_answer(identity) if regression else "not needed; replies are read", 1),
    )
    rest = _shortened(rest, room - sum(len(fact.lines) for fact in end) - 1)
    left = room - sum(len(fact.lines) for fact in (*rest, *end))
    return (*rest, *_other_changes(report, max(1, left)), *end)


def _how_to_answer(identity: BotIdentity) -> str:
    return f'just reply to all in plain words; "{identity.prefix} fix: <title>" also works'


def _shortened(facts: tuple[Fact, ...], room: int) -> tuple[Fact, ...]:
    """Return the facts in at most `room` lines: where there are too many, the last ones are cut to their first line."""
    kept = list(facts)
    for index in reversed(range(len(kept))):
        if sum(len(fact.lines) for fact in kept) <= room:
            break
        name, (first, *more) = kept[index].name, kept[index].lines
        kept[index] = Fact(name, (f"{first[: WIDTH - _NAME - 3]} .." if more else first,))
    return tuple(kept)


def _fact(name: str, text: str, most: int) -> Fact:
    """Return a fact wrapped to at most `most` lines, indented past its label."""
    wrapped = textwrap.wrap(
        one_line(text, 1000), WIDTH - _NAME, max_lines=most, placeholder=" ...", break_on_hyphens=False
    )
    return Fact(name, tuple(wrapped) or ("-",))


def _measurement(headline: FindingData) -> Iterator[Fact]:
    unit = f" {headline.unit}" if headline.unit else ""
    sides = f"{numbers.value(headline.old_mean)} -> {numbers.value(headline.new_mean)}{unit}"
    points = f", {numbers.moved(headline)} points" if headline.in_points else ""
    change = f"{points}, {signed_pct(headline.change_pct)}" if headline.change_pct is not None else ""
    if change and headline.low_pct is not None and headline.high_pct is not None:
        change += f" ({interval(headline.low_pct, headline.high_pct)})"
    yield _fact("measured:", sides + change, 2)
    yield _fact("metric:", in_words(headline.metric, headline.unit, headline.direction, headline.suite), 2)


def _machine(headline: FindingData) -> str:
    """Return the description that follows the machine's name; a long one without its memory size, which is below."""
    text = headline.machine_text
    return f": {text.partition(' with ')[0] if len(text) > 90 else text}" if text else ""


def _baseline(report: ReportData) -> Iterator[Fact]:
    """Yield the baseline: what the culprit was compared with."""
    if report.parent_sha:
        title = textwrap.shorten(one_line(report.parent_title), 70, placeholder="...")
        base = (
            f", on top of {report.base}"
            if report.base and report.base.removeprefix("v") not in report.parent_title
            else ""
        )
        yield _fact("baseline:", f"its parent {report.parent_sha[:10]}" + (f' ("{title}")' if title else "") + base, 2)
    elif report.base:
        yield _fact("baseline:", report.base, 1)


def _evidence(headline: FindingData) -> str:
    """Return the number of runs, spread, p-value and usual noise."""
    parts = numbers.evidence(headline)
    if headline.noise_pct and headline.change_pct is not None:
        times = abs(headline.change_pct) / headline.noise_pct
        known = f", from {headline.noise_runs} runs" if headline.noise_runs else ""
        parts.append(f"{times:.1f}x the usual noise here ({numbers.percent(headline.noise_pct)}%{known})")
    return "; ".join(parts) or "number of runs and spread unknown"


def _bisected(report: ReportData) -> Iterator[Fact]:
    """Yield the bisection: good, bad, number of steps, and the rechecks."""
    parts = []
    if report.good and report.bad:
        steps = f" in {counted(report.bisect_steps, 'step')}" if report.bisect_steps else ""
        good, bad = ("good", "bad") if report.verdict is Verdict.REGRESSION else ("before", "after")
        parts.append(f"{report.good} ({good}) to {report.bad} ({bad}){steps}")
    phrases = {"still-bad": "still bad on", "good": "good again on", "good-after-revert": "good with it reverted on"}
    shown = sorted(report.rechecks, key=lambda each: each.state != "good-after-revert")
    parts.extend(f"{phrases[each.state]} {each.ref}" for each in shown[:4] if each.state in phrases)
    if parts:
        yield _fact("bisected:", "; ".join(parts), 2)


def _other_changes(report: ReportData, room: int) -> Iterator[Fact]:
    """Yield how many other metrics changed, and the worst of them, in at most `room` lines."""
    others = [each for each in report.findings[1:] if each.is_graded]
    worse = sum(each.verdict is Grade.REGRESSION for each in others)
    unclear = sum(each.verdict is Grade.UNKNOWN and not each.is_profile for each in report.findings[1:])
    untested = sum(each.verdict is Grade.NOT_TESTABLE and not each.is_profile for each in report.findings[1:])
    counts = [
        counted(worse, "regression") if worse else "",
        counted(len(others) - worse, "improvement") if len(others) > worse else "",
        f"{unclear} of unknown direction" if unclear else "",
        f"{untested} not tested for significance" if untested else "",
    ]
    if not any(counts):
        yield _fact("also:", "no other significant change", 1)
        return
    named = ", ".join(each for each in counts if each)
    head = _fact("also:", f"{named}; the {'worst' if worse else 'largest'}:", max(1, min(2, room)))
    alike = [each for each in worst(others) if not worse or each.verdict is Grade.REGRESSION]  # signs differ by metric
    rows = [_other(each, report.headline) for each in alike[: min(_WORST, room - len(head.lines))]]
    yield Fact("also:", (*head.lines, *rows)) if rows else _fact("also:", f"{named}, in the tables below", 1)


def _other(finding: FindingData, headline: FindingData) -> str:
    """ "  -31.0%  fsmark.files_per_sec on lab7-m2"."""
    where = "" if finding.machine == headline.machine else f" on {finding.machine}"
    return numbers.listed(finding, finding.metric + where, WIDTH - _NAME)


def height(lines: Sequence[str]) -> int:
    """Return how many screen lines these take, with long ones wrapped."""
    return sum(max(1, -(-len(line) // WIDTH)) for line in lines)
