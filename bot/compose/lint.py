"""Checks of a report mail: whether subject, text and tables state what was measured, for the right commit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.compose import numbers
from bot.compose.lint.context import Check, LintContext
from bot.compose.recipients import UNREACHABLE
from bot.mail.addresses import parse_addresses
from bot.mail.sanitising import is_address, lore_link, one_line
from bot.robot_reports.subject import read_subject
from tracker.domain.events import Verdict
from tracker.domain.statistics.change import verdict_of
from tracker.domain.text.english import article

_ROUNDING = 0.06  # percentage points: both numbers are printed with one decimal


def _subject(context: LintContext) -> Iterator[str]:
    assert context.expected
    expected, subject = context.expected, read_subject(context.read.subject)
    if subject.sha != expected.sha[:10]:
        yield f"the subject names {subject.sha or 'no commit'}, the culprit is {expected.sha[:10]}"
    change = expected.headline.change_pct
    if change is None:  # from zero
        return
    if subject.verdict != expected.verdict:
        yield f"the subject says {subject.verdict or 'nothing'}, it is {expected.verdict}"
    if not subject.percent or abs(float(subject.percent) - change) > _ROUNDING:
        yield f"the subject says {subject.percent or 'no'}%, measured is {change:+.1f}%"


def _people(context: LintContext) -> Iterator[str]:
    """Somebody gets it who can answer: a list alone does not, where the author's address can't be reached."""
    assert context.expected
    recipients, author = context.mail.recipients, context.expected.author.email
    if any(not each.is_list for each in (*recipients.to, *recipients.cc)):
        return
    dead = next(
        (each for each in recipients.left_out if each.email == author and each.why.startswith(UNREACHABLE)), None
    )
    if dead:
        yield f"nobody would get it who can answer: {dead.email} is left out: {dead.why}"


def _numbers(context: LintContext) -> Iterator[str]:
    """The sentence and the table, as our parser of LKP reports reads them."""
    assert context.expected
    expected, read, headline = context.expected, context.report, context.expected.headline
    if headline.change_pct is None:
        return  # from zero there is no percentage, by which parsers recognise a report
    if read is None:
        yield "our parser does not recognise it as a report"
        return
    if read.culprit != expected.sha:
        yield f"the body names {read.culprit[:10]}, the culprit is {expected.sha[:10]}"
    if read.verdict != expected.verdict:
        yield f"the body says {read.verdict}, it is {expected.verdict}"
    if abs(float(read.percent) - headline.change_pct) > _ROUNDING:
        yield f"the body says {read.percent}%, measured is {headline.change_pct:+.1f}%"
    yield from (f"it contradicts itself: {problem}" for problem in read.unsure)


def _tables(context: LintContext) -> Iterator[str]:
    """Every finding is in a table as measured, and every table has rows."""
    assert context.expected
    read, headline = context.report, context.expected.headline
    if read is None:
        return
    rows = sum(len(table.rows) for table in read.tables)
    if rows != len(context.expected.findings):
        yield f"the tables have {rows} of {len(context.expected.findings)} rows"
    for number, table in enumerate(read.tables, 1):
        if not table.rows:
            yield f"table {number} is empty"
        elif table.unread or not table.is_complete:
            yield f"table {number} can't be parsed"
    if read.row is None:
        yield f"no table has {one_line(headline.metric, 80)}"
    elif (read.row.old.mean, read.row.new.mean) != (_printed(headline.old_mean), _printed(headline.new_mean)):
        expected = f"{headline.old_mean:g} -> {headline.new_mean:g}"
        yield f"the table says {read.row.old.mean:g} -> {read.row.new.mean:g}, measured is {expected}"
    elif read.row.change != numbers.moved(headline):
        yield f"the table says {read.row.change}, measured is {numbers.moved(headline)}"


def _printed(mean: float) -> float:
    return float(numbers.value(mean))


def _verdict(context: LintContext) -> Iterator[str]:
    """The verdict follows from the metric's direction, not from the sign alone."""
    assert context.expected
    headline = context.expected.headline
    if context.expected.verdict is Verdict.UNKNOWN:
        yield "the metric's direction is unknown"
    elif verdict_of(headline.old_mean, headline.new_mean, headline.direction) != context.expected.verdict:
        yield (
            f"the change of {one_line(headline.metric, 80)} is not "
            f"{article(context.expected.verdict)} {context.expected.verdict}"
        )


def _tags(context: LintContext) -> Iterator[str]:
    """The tag block of a regression points to this mail; an improvement has none."""
    assert context.expected
    body, expected = context.mail.body, context.expected
    closes = re.findall(r"^\| Closes: (\S+)$", body, re.M)
    reported = re.findall(r"^\| Reported-by: (.*)$", body, re.M)
    if expected.verdict is not Verdict.REGRESSION:
        if closes or reported:
            yield "an improvement must not ask for tags"
        return
    if closes != [lore_link(context.mail.message_id)]:
        yield "Closes: does not link to this mail"
    addresses = [address.email for value in reported for address in parse_addresses(value)]
    if addresses != [context.identity.tagged(expected.tag)]:
        yield "Reported-by: is not the report's address"


def _culprit(context: LintContext) -> Iterator[str]:
    assert context.expected
    expected, oldest = context.expected, context.conventions.oldest
    if not re.fullmatch(r"[0-9a-f]{40}", expected.sha):
        yield f"{one_line(expected.sha, 50)!r} is not a full sha"
    if not expected.title:
        yield "the culprit has no title"
    if not is_address(expected.author.email):
        yield "the culprit's author is not known"
    if expected.authored_at and context.now - expected.authored_at > oldest:
        yield f"the culprit is from {expected.authored_at:%Y-%m-%d}, older than {oldest.days} days"
    if expected.parent_sha == expected.sha:
        yield "the culprit is its own parent"


CHECKS: tuple[Check, ...] = (_subject, _people, _numbers, _tables, _verdict, _tags, _culprit)
