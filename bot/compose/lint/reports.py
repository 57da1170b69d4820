"""Checks of a report mail: whether subject, text and tables state what was measured, for the right commit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.compose import numbers
from bot.compose.lint.context import Check, LintContext
from bot.mail.addresses import parse_addresses
from bot.mail.sanitising import is_address, lore_link, one_line
from bot.robot_reports.subject import read_subject
from tracker.domain.english import article
from tracker.domain.events import Verdict
from tracker.domain.statistics.change import word

_ROUNDING = 0.06  # percentage points: both numbers are printed with one decimal


def _subject(look: LintContext) -> Iterator[str]:
    assert look.told
    told, subject = look.told, read_subject(look.read.subject)
    if subject.sha != told.sha[:10]:
        yield f"the subject names {subject.sha or 'no commit'}, the culprit is {told.sha[:10]}"
    change = told.headline.change_pct
    if change is None:  # from zero
        return
    if subject.verdict != told.verdict:
        yield f"the subject says {subject.verdict or 'nothing'}, it is {told.verdict}"
    if not subject.percent or abs(abs(float(subject.percent)) - abs(change)) > _ROUNDING:
        yield f"the subject says {subject.percent or 'no'}%, measured is {change:+.1f}%"


def _numbers(look: LintContext) -> Iterator[str]:
    """The sentence and the table, as our parser of LKP reports reads them."""
    assert look.told
    told, read, headline = look.told, look.report, look.told.headline
    if headline.change_pct is None:
        return  # from zero there is no percentage, by which parsers recognise a report
    if read is None:
        yield "our parser does not recognise it as a report"
        return
    if read.culprit != told.sha:
        yield f"the body names {read.culprit[:10]}, the culprit is {told.sha[:10]}"
    if read.verdict != told.verdict:
        yield f"the body says {read.verdict}, it is {told.verdict}"
    if abs(abs(float(read.percent)) - abs(headline.change_pct)) > _ROUNDING:
        yield f"the body says {read.percent}%, measured is {headline.change_pct:+.1f}%"
    yield from (f"it contradicts itself: {problem}" for problem in read.unsure)


def _tables(look: LintContext) -> Iterator[str]:
    """Every finding is in a table as measured, and every table has rows."""
    assert look.told
    read, headline = look.report, look.told.headline
    if read is None:
        return
    rows = sum(len(table.rows) for table in read.tables)
    if rows != len(look.told.findings):
        yield f"the tables have {rows} of {len(look.told.findings)} rows"
    for number, table in enumerate(read.tables, 1):
        if not table.rows:
            yield f"table {number} is empty"
        elif table.unread or not table.is_complete:
            yield f"table {number} can't be parsed"
    if read.row is None:
        yield f"no table has {one_line(headline.metric, 80)}"
    elif (read.row.old.mean, read.row.new.mean) != (_printed(headline.old_mean), _printed(headline.new_mean)):
        meant = f"{headline.old_mean:g} -> {headline.new_mean:g}"
        yield f"the table says {read.row.old.mean:g} -> {read.row.new.mean:g}, measured is {meant}"
    elif read.row.change != numbers.moved(headline):
        yield f"the table says {read.row.change}, measured is {numbers.moved(headline)}"


def _printed(mean: float) -> float:
    return float(numbers.value(mean))


def _verdict(look: LintContext) -> Iterator[str]:
    """The verdict follows from the metric's direction, not from the sign alone."""
    assert look.told
    headline = look.told.headline
    if look.told.verdict is Verdict.UNKNOWN:
        yield "the metric's direction is unknown"
    elif word(headline.old_mean, headline.new_mean, headline.direction) != look.told.verdict:
        yield f"the change of {one_line(headline.metric, 80)} is not {article(look.told.verdict)} {look.told.verdict}"


def _tags(look: LintContext) -> Iterator[str]:
    """The tag block of a regression points to this mail; an improvement has none."""
    assert look.told
    body, told = look.mail.body, look.told
    closes = re.findall(r"^\| Closes: (\S+)$", body, re.M)
    reported = re.findall(r"^\| Reported-by: (.*)$", body, re.M)
    if told.verdict is not Verdict.REGRESSION:
        if closes or reported:
            yield "an improvement must not ask for tags"
        return
    if closes != [lore_link(look.mail.message_id)]:
        yield "Closes: does not link to this mail"
    addresses = [address.email for value in reported for address in parse_addresses(value)]
    if addresses != [look.identity.tagged(told.tag)]:
        yield "Reported-by: is not the report's address"


def _culprit(look: LintContext) -> Iterator[str]:
    assert look.told
    told, oldest = look.told, look.conventions.oldest
    if not re.fullmatch(r"[0-9a-f]{40}", told.sha):
        yield f"{one_line(told.sha, 50)!r} is not a full sha"
    if not told.title:
        yield "the culprit has no title"
    if not is_address(told.author.email):
        yield "the culprit's author is not known"
    if told.authored_at and look.now - told.authored_at > oldest:
        yield f"the culprit is from {told.authored_at:%Y-%m-%d}, older than {oldest.days} days"
    if told.parent_sha == told.sha:
        yield "the culprit is its own parent"


CHECKS: tuple[Check, ...] = (_subject, _numbers, _tables, _verdict, _tags, _culprit)
