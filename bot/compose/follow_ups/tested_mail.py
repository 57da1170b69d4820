"""The answer to who asked for a test of a patch: the numbers without and with it, or in one line why there are none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.compose import numbers
from bot.compose.follow_ups.fix_mail import FixData, outcome_text
from bot.compose.follow_ups.thread_mail import ThreadData, in_thread
from bot.compose.mail import ComposedMail
from bot.compose.recipients import Recipient
from bot.compose.report.report_data import FindingData
from bot.mail.addresses import Address
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import one_line
from tracker.domain.statistics.change import change_pct
from tracker.domain.text.formats import signed_pct

_ADVICE = "Please say which commit it is for, or send a version for the culprit."


@dataclass(frozen=True, slots=True)
class TestedPatch:
    """`measured`: the report's headline metric without and with the patch, None if it could not be tested; `why`: the
    end of the sentence that says so, `detail`: a line of git, make or the test. `asked_by`: whoever asked.
    """

    title: str
    base: str
    asked_by: Address | None
    measured: FindingData | None
    why: str = ""
    detail: str = ""
    applies: bool = True


def compose_tested(
    thread: ThreadData,
    tested: TestedPatch,
    headline: FindingData,
    purpose: str,
    identity: BotIdentity,
    now: datetime,
    excluded: Mapping[str, str],
) -> ComposedMail:
    """Return the answer, in reply to the mail that asked."""
    context: dict[str, object] = {
        "patch": one_line(tested.title, 200),
        "base": one_line(tested.base, 66),
        "why": one_line(tested.why, 200),
        "detail": one_line(tested.detail, 200),
        "advice": "" if tested.applies else _ADVICE,
        "tested": "",
    }
    if tested.measured:
        context |= _measured(tested, tested.measured, headline, identity, thread.tag)
    first = Recipient(tested.asked_by, "asked for the test") if tested.asked_by else None
    return in_thread(thread, purpose, "tested", context, identity, now, excluded, first, str(context["tested"]))


def _measured(
    tested: TestedPatch, measured: FindingData, headline: FindingData, identity: BotIdentity, tag: str
) -> dict[str, object]:
    fix = FixData("", tested.title, tested.asked_by or Address("", ""), measured)
    before, after = (change_pct(headline.old_mean, mean) for mean in (measured.old_mean, measured.new_mean))
    runs = f"{measured.old_runs} + {measured.new_runs} runs"
    return {
        "outcome": outcome_text(fix, headline),
        "compared": f"{_signed(before)} -> {_signed(after)}, {runs}",
        "metric": one_line(headline.metric, 66),
        "where": one_line(headline.where, 66),
        "remeasured": numbers.sides(measured),
        "evidence": "; ".join(numbers.evidence(measured)),
        "tested": f"Tested-by: {one_line(identity.name)} <{identity.tagged(tag)}>" if fix.passes(headline) else "",
    }


def _signed(change: float | None) -> str:
    return "unknown" if change is None else signed_pct(change)
