"""The gate: each effect by each policy, for mail of every standing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.mail.authentication import UNPROVEN, AuthVerdict, Trust
from bot.replies.gate import NEEDS, POLICIES, REASONS, About, Caused, Need, Standing, is_recent, lacks, permitted
from tests.support.databases import ROOT
from tracker.domain.events import Role

PROVEN, DISPROVEN = Trust(AuthVerdict.PASS, "dkim dev.example"), Trust(AuthVerdict.FAIL, "dkim dev.example")
AUTHOR = Standing(PROVEN, Role.AUTHOR, for_us=True, has_got_mail=True, secret=True, public=True)
# What somebody can do to a mail of the author's, or write without being the author.
FORGED = {
    "no proof": replace(AUTHOR, trust=UNPROVEN),
    "a signature that fails": replace(AUTHOR, trust=DISPROVEN),
    "a stranger who proves himself": replace(AUTHOR, role=Role.THIRD_PARTY, by_address=False),
    "the author's name at another address": replace(AUTHOR, by_address=False),
    "signed, and sent on to another report": replace(AUTHOR, about=About.ELSEWHERE),
    "signed, into a thread that is not": replace(AUTHOR, about=About.UNSIGNED),
    "signed, read as another kind of text": replace(AUTHOR, same_words=False),
    "signed last year, and sent again": replace(AUTHOR, recent=False),
    "signed, to another list": replace(AUTHOR, for_us=False),
}
ACTS = {Caused.COMMAND, Caused.CLOSE}


def test_every_effect_has_a_row_and_every_need_a_reason() -> None:
    assert NEEDS.keys() == set(Caused)
    assert REASONS.keys() == set(Need)


@pytest.mark.parametrize("effect", Caused)
@pytest.mark.parametrize("policy", POLICIES)
def test_what_the_author_proves_is_permitted(effect: Caused, policy: str) -> None:
    assert permitted(effect, AUTHOR, policy)


@pytest.mark.parametrize("forgery", FORGED)
@pytest.mark.parametrize("policy", ["verified", "maintainers"])
def test_no_forged_mail_closes_a_report_or_gives_a_command(forgery: str, policy: str) -> None:
    harmless = {"signed, to another list"}  # a thread of the report needs no address of ours
    for effect in ACTS:
        assert permitted(effect, FORGED[forgery], policy) is (forgery in harmless)


@pytest.mark.parametrize("forgery", FORGED)
def test_no_forged_mail_makes_an_opt_out(forgery: str) -> None:
    by_anybody = {
        "a stranger who proves himself",  # his own wish
        "the author's name at another address",
        "signed, and sent on to another report",  # our address is signed, so it is a wish
        "signed, into a thread that is not",
    }
    for effect in (Caused.OPT_OUT, Caused.OPT_IN):
        assert permitted(effect, FORGED[forgery], "verified") is (forgery in by_anybody)


def test_unproven_mail_moves_open_reports_and_disproven_mail_does_not() -> None:
    assert permitted(Caused.MOVE, FORGED["no proof"], "verified")
    assert not permitted(Caused.MOVE, FORGED["a signature that fails"], "verified")
    assert not permitted(Caused.MOVE, FORGED["signed, and sent on to another report"], "verified")
    assert permitted(Caused.MOVE, FORGED["signed, into a thread that is not"], "verified")
    assert not permitted(Caused.MOVE, FORGED["no proof"], "maintainers")


def test_what_is_private_or_a_guess_stays_so_under_every_policy() -> None:
    for policy in POLICIES:
        assert not permitted(Caused.PUBLISH, replace(AUTHOR, public=False), policy)
        assert not permitted(Caused.BOUNCE, replace(AUTHOR, secret=False), policy)
        assert permitted(Caused.SUGGEST, FORGED["a signature that fails"], policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_no_stranger_has_a_patch_run(policy: str) -> None:
    assert not permitted(Caused.JOB, FORGED["a stranger who proves himself"], policy)
    assert not permitted(Caused.JOB, FORGED["the author's name at another address"], policy)
    assert permitted(Caused.JOB, FORGED["no proof"], policy) is (policy == "open")


def test_maintainers_rule_means_author_or_maintainer_by_their_address() -> None:
    assert permitted(Caused.COMMAND, replace(AUTHOR, role=Role.MAINTAINER), "maintainers")
    for standing in (replace(AUTHOR, role=Role.REPORTER), replace(AUTHOR, by_address=False)):
        assert Need.OWNER in lacks(Caused.COMMAND, standing, "maintainers")


def test_a_failed_command_is_answered_where_our_mail_was_or_a_signature_leads() -> None:
    """Else anybody could have us mail to anybody."""
    unproven = replace(AUTHOR, trust=UNPROVEN)
    assert permitted(Caused.ANSWER, unproven, "verified")
    assert not permitted(Caused.ANSWER, replace(unproven, has_got_mail=False), "verified")
    assert permitted(Caused.ANSWER, replace(AUTHOR, has_got_mail=False), "verified")
    assert not permitted(Caused.ANSWER, replace(AUTHOR, about=About.UNSIGNED), "verified")
    assert not permitted(Caused.ANSWER, FORGED["a signature that fails"], "verified")


def test_all_that_a_mail_lacks_is_named() -> None:
    assert lacks(Caused.CLOSE, replace(AUTHOR, trust=UNPROVEN, recent=False), "verified") == [Need.PROVEN, Need.RECENT]


NOW = datetime(2026, 3, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("signed", "days", "delivered", "recent"),
    [
        ({"from", "date"}, 13, NOW, True),
        ({"from", "date"}, 14, NOW, True),
        ({"from", "date"}, 15, NOW, False),
        ({"from", "date"}, 15, None, True),  # of an archive
        ({"from"}, 1, NOW, False),  # anybody can have written the date
    ],
)
def test_a_mail_that_comes_late_may_be_an_old_one(
    signed: set[str], days: int, delivered: datetime | None, recent: bool
) -> None:
    trust = Trust(AuthVerdict.PASS, "dkim dev.example", frozenset(signed))
    assert is_recent(trust, NOW - timedelta(days=days), delivered) is recent
    assert is_recent(trust, None, NOW) is False


def test_the_page_has_the_table() -> None:
    page = (ROOT / "docs/answering.md").read_text()
    for effect, needs in NEEDS.items():
        cells = ["; ".join(REASONS[need] for need in by_policy) or "nothing" for by_policy in needs]
        assert f"| {effect} | {' | '.join(cells)} |" in page, f"docs/answering.md: the row of {effect!r}"
