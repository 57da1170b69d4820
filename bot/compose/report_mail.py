"""The report mail: what got worse by how much, where, since which commit, and how to answer."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from django.template.loader import render_to_string

from bot.compose import numbers
from bot.compose.mail import Mail, is_message_id, one_line
from bot.compose.message_id import message_id
from bot.compose.recipients import recipients_of
from bot.compose.subject import report_subject
from bot.compose.told import FindingTold, ReportTold
from bot.english import article, counted
from bot.identity import Identity
from bot.replies.addresses import Address
from tracker.status import Grade, Verdict

WIDTH = 78
_BETTER = {"higher": "higher is better", "lower": "lower is better"}


@dataclass(frozen=True, slots=True)
class TableTold:
    """The findings of one scenario on one machine, as a comparison table."""

    axes: str
    values: str
    rows: tuple[str, ...]


def compose(told: ReportTold, identity: Identity, now: datetime, own_id: str = "") -> Mail:
    """The mail about a report, complete and final. Pure: the same values give the same mail.

    `own_id`: the Message-ID that it was given before, where it is composed again.
    """
    headline = told.findings[0]
    own_id = own_id or message_id(now, told.tag, identity)
    people = recipients_of(told.author, told.trailers, identity)
    better = headline.change_pct if headline.direction == "higher" else _negated(headline.change_pct)
    return Mail(
        message_id=own_id,
        sender=Address(identity.name, identity.address),
        reply_to=Address(identity.name, identity.tagged(told.tag)),
        to=people.to,
        cc=people.cc,
        subject=report_subject(told.title, told.sha, better, told.verdict),
        date=now.replace(microsecond=0),
        body=_body(told, headline, own_id, identity),
        report_tag=told.tag,
        in_reply_to=told.patch_message_id if is_message_id(told.patch_message_id) else "",
    )


def _negated(change: float | None) -> float | None:
    return None if change is None else -change


def _body(told: ReportTold, headline: FindingTold, own_id: str, identity: Identity) -> str:
    regression = told.verdict is Verdict.REGRESSION
    text = render_to_string(
        "mail/report.txt",
        {
            "told": told,
            "headline": headline,
            "author_name": one_line(told.author.name, 60),
            "title": one_line(told.title, 200),
            "parent_title": one_line(told.parent_title, 200) or "its parent",
            "parent10": told.parent_sha[:10],
            "noticed": _noticed(told.verdict, headline),
            "bot": one_line(identity.name, 60),
            "facts": list(_facts(told, headline)),
            "others": _others(told.findings[1:]),
            "how_to_answer": _how_to_answer(identity),
            "tags": _tags(told, own_id, identity) if regression else (),
            "tables": list(_tables(told.findings)),
            "rule": "=" * WIDTH,
            "heads": f"{told.parent_sha[:16]:<16} {told.sha[:27]}",
            "page": identity.page(told.sha[:12]),
            "help": identity.help("answering"),
        },
    )
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join("-- " if line == "--" else line for line in lines) + "\n"


def _noticed(verdict: Verdict, headline: FindingTold) -> str:
    """ "an 8.8% regression of vm-scan.ops_per_sec", in the words that robots' readers look for."""
    if headline.change_pct is None:  # from zero, where a percentage means nothing
        return f"{article(verdict)} {verdict} of {headline.metric}"
    percent = f"{abs(headline.change_pct):.1f}"
    return f"{article(percent)} {percent}% {verdict} of {headline.metric}"


def _facts(told: ReportTold, headline: FindingTold) -> Iterable[tuple[str, str]]:
    """The lines of the first screen, wrapped below their names."""
    unit = f" {headline.unit}" if headline.unit else ""
    sides = (
        f"{numbers.value(headline.old_mean)}{numbers.spread(headline.old_stddev_pct).rstrip()} -> "
        f"{numbers.value(headline.new_mean)}{numbers.spread(headline.new_stddev_pct).rstrip()}{unit}"
    )
    better = _BETTER.get(headline.direction, "direction unknown")
    runs = f"; {headline.old_runs} + {headline.new_runs} runs" if headline.old_runs and headline.new_runs else ""
    yield "measured:", _wrapped(f"{sides} ({better}{runs})")
    yield "where:", _wrapped(f"{headline.suite} on {headline.machine}: {headline.machine_text}")
    if told.parent_sha:
        since = f'parent {told.parent_sha[:10]} ("{told.parent_title}")' if told.parent_title else told.parent_sha[:10]
        base = told.base if told.base.removeprefix("v") not in told.parent_title else ""
        yield "against:", _wrapped(since + (f", based on {base}" if base else ""))
    if told.bisect_steps:
        steps = counted(told.bisect_steps, "step")
        yield "bisected:", _wrapped(f"{told.good} (good) to {told.bad} (bad) in {steps}")


def _wrapped(text: str) -> str:
    return ("\n" + " " * 11).join(textwrap.wrap(one_line(text, 600), WIDTH - 11, break_long_words=False)) or "-"


def _others(findings: Iterable[FindingTold]) -> str:
    """In a sentence, what else moved."""
    findings = [each for each in findings if each.verdict in (Grade.REGRESSION, Grade.IMPROVEMENT)]
    worse = sum(each.verdict is Grade.REGRESSION for each in findings)
    if not findings:
        return ""
    return f"Other metrics: {worse} worse, {len(findings) - worse} better; see the tables below."


def _how_to_answer(identity: Identity) -> str:
    return (
        "Please answer in plain words. Lines like these are understood too:\n\n"
        f"    {identity.prefix} fix: <title of the commit that fixes it>\n"
        f"    {identity.prefix} expected"
    )


def _tags(told: ReportTold, own_id: str, identity: Identity) -> tuple[str, ...]:
    return (
        f"Reported-by: {one_line(identity.name)} <{identity.tagged(told.tag)}>",
        f"Closes: https://lore.kernel.org/r/{quote(own_id, safe='@+-._=')}",
    )


def _tables(findings: Iterable[FindingTold]) -> Iterable[TableTold]:
    """The findings, a table for each scenario and machine, in the order they came in."""
    groups: dict[tuple[str, str, str], list[FindingTold]] = {}
    for each in findings:
        groups.setdefault((each.suite, repr(sorted(each.params.items())), each.machine), []).append(each)
    for group in groups.values():
        first = group[0]
        axes = {**_plain(first.params), "tbox_group": one_line(first.machine), "testcase": one_line(first.suite)}
        names = sorted(axes)
        rows = tuple(numbers.row(each) for each in sorted(group, key=lambda each: each.metric))
        yield TableTold("/".join(names), "/".join(axes[name].replace("/", "_") for name in names), rows)


def _plain(params: Mapping[str, str]) -> dict[str, str]:
    return {one_line(name, 80).replace("/", "_"): one_line(value, 80) for name, value in params.items()}
