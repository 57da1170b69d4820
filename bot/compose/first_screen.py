"""The first screen of a report mail: 24 lines of 78 columns that answer what its readers ask. Pure.

What got worse by how much, of what, where, since which commit, how sure, what else, how to reproduce, how to answer.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.compose import numbers
from bot.compose.reproduce import reproduce
from bot.compose.safe import one_line
from bot.compose.told import FindingTold, ReportTold, worst
from bot.compose.warnings import warnings_of
from bot.english import counted
from bot.identity import Identity
from tracker.glossary import in_words
from tracker.status import Grade, Verdict

WIDTH = 78
LINES = 24
_NAME = 11  # columns of a fact's name
_WORST = 3


@dataclass(frozen=True, slots=True)
class Fact:
    """A name, and its text in lines."""

    name: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        first, *rest = self.lines
        return "\n".join([f"{self.name:<{_NAME}}{first}", *(" " * _NAME + line for line in rest)])


def first_screen(told: ReportTold, identity: Identity, template: str, room: int) -> tuple[Fact, ...]:
    """The facts in `room` lines, the way to answer among them; the worst of what else moved fill what is left."""
    rest = (
        *_what(told.headline),
        _fact("where:", _where(told), 2),
        *_since(told),
        _fact("how sure:", _how_sure(told.headline), 2),
        *(_fact("but:", f"{sentence}.", 2) for sentence in list(warnings_of(told))[:1]),
        *_bisected(told),
    )
    again = [_fact("reproduce:", reproduce(told, template), 2)] if told.verdict is Verdict.REGRESSION else []
    end = (
        *again,
        _fact("answer:", f'in plain words, to all; "{identity.prefix} fix: <title>" works, too', 1),
    )
    rest = _shortened(rest, room - sum(len(fact.lines) for fact in end) - 1)
    left = room - sum(len(fact.lines) for fact in (*rest, *end))
    return (*rest, *_also(told, max(1, left)), *end)


def _shortened(facts: tuple[Fact, ...], room: int) -> tuple[Fact, ...]:
    """Facts cut to their first lines where there are too many for the room, the later ones first."""
    kept = list(facts)
    for place in reversed(range(len(kept))):
        if sum(len(fact.lines) for fact in kept) <= room:
            break
        name, (first, *more) = kept[place].name, kept[place].lines
        kept[place] = Fact(name, (f"{first[: WIDTH - _NAME - 3]} .." if more else first,))
    return tuple(kept)


def _fact(name: str, text: str, most: int) -> Fact:
    """A fact wrapped below its name, in so many lines at most."""
    wrapped = textwrap.wrap(
        one_line(text, 1000), WIDTH - _NAME, max_lines=most, placeholder=" ...", break_on_hyphens=False
    )
    return Fact(name, tuple(wrapped) or ("-",))


def _what(headline: FindingTold) -> Iterator[Fact]:
    unit = f" {headline.unit}" if headline.unit else ""
    sides = f"{numbers.value(headline.old_mean)} -> {numbers.value(headline.new_mean)}{unit}"
    change = f", {numbers.moved(headline)}" if headline.change_pct is not None else ""
    if change and headline.low_pct is not None and headline.high_pct is not None:
        change += f" (95 % interval: {headline.low_pct:+.1f} to {headline.high_pct:+.1f}%)"
    yield _fact("measured:", sides + change, 2)
    yield _fact("which is:", in_words(headline.metric, headline.unit, headline.direction, headline.suite), 2)


def _where(told: ReportTold) -> str:
    headline = told.headline
    machine = headline.machine_text.partition(" with ")[0] if len(headline.machine_text) > 90 else headline.machine_text
    return f"{headline.suite} on {headline.machine}" + (f": {machine}" if machine else "")


def _since(told: ReportTold) -> Iterator[Fact]:
    """What the culprit was compared with."""
    if told.parent_sha:
        parent = f"its parent {told.parent_sha[:10]}"
        parent += f' ("{told.parent_title}")' if told.parent_title else ""
        base = f", based on {told.base}" if told.base and told.base.removeprefix("v") not in told.parent_title else ""
        yield _fact("against:", textwrap.shorten(parent, 2 * (WIDTH - _NAME) - 40, placeholder="...") + base, 2)
    elif told.base:
        yield _fact("against:", told.base, 1)


def _how_sure(headline: FindingTold) -> str:
    """Runs, spread, chance, and the usual noise."""
    parts = []
    if headline.old_runs and headline.new_runs:
        parts.append(f"{headline.old_runs} + {headline.new_runs} runs")
    spreads = [each for each in (headline.old_stddev_pct, headline.new_stddev_pct) if each is not None]
    if len(spreads) == 2:
        parts.append("spread " + " and ".join(f"{numbers.percent(each)}%" for each in spreads))
    if headline.p_value is not None:
        parts.append(numbers.chance(headline.p_value))
    if headline.noise_pct:
        usual = f"usual noise here {numbers.percent(headline.noise_pct)}%"
        if headline.change_pct is not None:
            usual += f", so it is {abs(headline.change_pct) / headline.noise_pct:.1f} times that"
        parts.append(usual)
    return "; ".join(parts) or "no spread and no number of runs were told"


def _bisected(told: ReportTold) -> Iterator[Fact]:
    """The trail: good, bad, steps, and what was measured afterwards."""
    parts = []
    if told.good and told.bad:
        steps = f" in {counted(told.bisect_steps, 'step')}" if told.bisect_steps else ""
        parts.append(f"{told.good} (good) to {told.bad} (bad){steps}")
    words = {"still-bad": "still bad on", "good": "good again on", "good-after-revert": "good with it reverted on"}
    shown = sorted(told.rechecks, key=lambda each: each.state != "good-after-revert")
    parts.extend(f"{words[each.state]} {each.ref}" for each in shown[:4] if each.state in words)
    if parts:
        yield _fact("bisected:", "; ".join(parts), 2)


def _also(told: ReportTold, room: int) -> Iterator[Fact]:
    """How many others moved, and the worst of them in the lines that are left."""
    others = [each for each in told.findings[1:] if each.is_graded]
    if not others:
        yield _fact("also:", "nothing else moved", 1)
        return
    worse = [each for each in others if each.verdict is Grade.REGRESSION]
    counts = f"{counted(len(worse), 'regression')}, {counted(len(others) - len(worse), 'improvement')}"
    rows = [_other(each, told.headline) for each in worst(others)[: min(_WORST, room - 1)]]
    named = f"{counts}; the {'worst' if worse else 'largest'}:" if rows else f"{counts}, in the tables below"
    yield Fact("also:", (named, *rows))


def _other(finding: FindingTold, headline: FindingTold) -> str:
    """ "  -31.0%  fsmark.files_per_sec on lab7-m2"."""
    where = "" if finding.machine == headline.machine else f" on {finding.machine}"
    return f"{numbers.moved(finding):>9}  {_clipped(finding.metric + where, WIDTH - _NAME - 11)}"


def _clipped(text: str, columns: int) -> str:
    text = one_line(text)
    return text if len(text) <= columns else f"{text[: columns - 3]}..."


def height(lines: Sequence[str]) -> int:
    """How many lines of a screen these take, long ones wrapped."""
    return sum(max(1, -(-len(line) // WIDTH)) for line in lines)
