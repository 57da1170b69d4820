"""Recipients of a report and the reasons: each once, and none of the excluded addresses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.compose.conventions import Conventions
from bot.compose.mail import CommitPeople, Recipients, recipients_of, to_bytes
from bot.compose.report_mail import compose
from bot.git.maintainers import Duty, Responsible
from bot.mail.addresses import Address
from bot.mail.settings import read_mailmap
from tests.conftest import NOW
from tests.support.outbox import BOT, LIST, REPORT

LKML = "linux-kernel@vger.kernel.org"
MM = (
    Responsible(Address("Andrea Vale", "andrea@dev.example"), Duty.MAINTAINER, "MEMORY"),
    Responsible(Address("Bo Lane", "bo@dev.example"), Duty.REVIEWER, "MEMORY"),
    Responsible(Address("", "linux-mm@lists.example"), Duty.LIST, "MEMORY"),
)


def recipients_for(*trailers: tuple[str, str], author: str = "dana@dev.example", **more: Any) -> Recipients:
    conventions = more.pop("conventions", Conventions())
    excluded = more.pop("excluded", None)
    bot = more.pop("bot", BOT)
    return recipients_of(CommitPeople(Address("", author), trailers, **more), bot, conventions, excluded)


def emails(found: Recipients) -> tuple[list[str], list[str]]:
    return [each.email for each in found.to], [each.email for each in found.cc]


@pytest.mark.parametrize(
    ("trailers", "cc"),
    [
        ([], [LIST]),
        (
            [("Reviewed-by", "Lee <lee@dev.example>"), ("signed-off-by", "Lee <LEE@dev.example>")],
            [LIST, "lee@dev.example"],
        ),
        ([("Cc", "stable@vger.kernel.org # v6.1")], [LIST]),
        ([("Cc", "<stable@kernel.org>"), ("Cc", "noreply@x.example")], [LIST]),
        ([("Cc", "security@kernel.org"), ("Cc", "linux-distros@vs.example")], [LIST]),
        ([("Cc", "root@localhost"), ("Cc", "me@box.localdomain"), ("Cc", "123+me@users.noreply.github.com")], [LIST]),
        ([("Reported-by", "syzbot+1234@syzkaller.example"), ("Acked-by", "tip-bot2@x.example")], [LIST]),
        ([("Link", "https://x <a@b.example>"), ("Fixes", "a@b.example")], [LIST]),
        ([("Acked-by", "perfbot@bot.example.org"), ("Acked-by", "not an address")], [LIST]),
        ([("Acked-by", "perfbot+7d3e91c0a45b28f6@bot.example.org")], [LIST]),
    ],
)
def test_the_people_of_a_commit(trailers: list[tuple[str, str]], cc: list[str]) -> None:
    assert emails(recipients_for(*trailers)) == (["dana@dev.example"], cc)


def test_lists_stand_first_then_maintainers_then_reviewers_then_the_others() -> None:
    conventions = Conventions(lkml=LKML, tree_lists={"next": ("linux-next@lists.example",)}, regzbot="r@lists.example")
    found = recipients_for(
        ("Tested-by", "Lee <lee@dev.example>"), responsible=MM, tree="akpm", role="next", conventions=conventions
    )
    assert [(each.email, each.why) for each in found.cc] == [
        (LIST, "our own list"),
        (LKML, "gets every report"),
        ("linux-next@lists.example", "list for next"),
        ("linux-mm@lists.example", "list of MEMORY"),
        ("r@lists.example", "read by regzbot"),
        ("andrea@dev.example", "maintainer of MEMORY"),
        ("bo@dev.example", "reviewer of MEMORY"),
        ("lee@dev.example", "Tested-by in the commit"),
    ]
    assert found.to[0].why == "author"


def test_who_wants_no_mail_gets_none_and_is_named() -> None:
    excluded = {"lee@dev.example": "bounces: 550 no such user", "andrea@dev.example": "opted out"}
    found = recipients_for(("Acked-by", "Lee <lee@dev.example>"), responsible=MM, excluded=excluded)
    assert emails(found)[1] == [LIST, "linux-mm@lists.example", "bo@dev.example"]
    assert {each.email: each.why for each in found.left_out} == excluded


def test_an_author_who_opted_out_is_not_addressed_but_the_list_is() -> None:
    found = recipients_for(excluded={"dana@dev.example": "opted out"})
    assert emails(found) == ([LIST], [])


def test_one_person_with_two_addresses_is_told_once() -> None:
    bot = replace(BOT, aliases=read_mailmap("Dana Brook <dana@dev.example> <dana@home.example>"))
    assert emails(recipients_for(("Signed-off-by", "Dana <dana@home.example>"), bot=bot)) == (
        ["dana@dev.example"],
        [LIST],
    )


def test_who_opted_out_is_told_under_no_other_address_of_his() -> None:
    bot = replace(BOT, aliases=read_mailmap("Dana Brook <dana@dev.example> <dana@old.example>"))
    for author, out in (("dana@old.example", "dana@dev.example"), ("dana@dev.example", "dana@old.example")):
        trailers = [("Signed-off-by", "Dana <dana@dev.example>"), ("Acked-by", "Dana <dana@old.example>")]
        assert emails(recipients_for(*trailers, author=author, bot=bot, excluded={out: "wants no mail"})) == (
            [LIST],
            [],
        )


def test_a_cap_keeps_lists_and_maintainers() -> None:
    trailers = [("Cc", f"p{n}@dev.example") for n in range(300)]
    found = recipients_for(*trailers, responsible=MM)
    to, cc = emails(found)
    assert cc[:4] == [LIST, "linux-mm@lists.example", "andrea@dev.example", "bo@dev.example"]
    assert len(to) + len(cc) == 40
    assert len(found.left_out) == 300 - 35
    assert found.left_out[0].why == "more than 40 recipients"


def test_three_hundred_lists_have_an_end_too() -> None:
    lists = tuple(Responsible(Address("", f"l{n}@dev.example"), Duty.LIST, "ALL") for n in range(300))
    found = recipients_for(responsible=lists)
    assert len(found.to) + len(found.cc) < 40
    assert found.to[0].email == "dana@dev.example"


def test_without_an_author_the_list_is_told() -> None:
    assert emails(recipients_for(author="no address")) == ([LIST], [])


def test_without_anybody_nobody_is_told() -> None:
    found = recipients_of(CommitPeople(Address("", "")), replace(BOT, list_address=""))
    assert (found.to, found.cc) == ((), ())


def test_names_are_kept() -> None:
    found = recipients_for(("Reviewed-by", '"Park, Lee" <lee@dev.example>'))
    assert found.cc[1].address == Address("Park, Lee", "lee@dev.example")


@pytest.mark.parametrize(
    "odd",
    [
        "foo.@x.org",
        ".foo@x.org",
        "a..b@x.org",
        "foo@x.org.",
        "foo@.x",
        "foo@-x.org",
        "a b@x.org",
        "é@x.org",
        "a@b@c",
        "@",
    ],
)
def test_an_address_that_no_server_takes_is_left_out(odd: str) -> None:
    to_bytes(compose(replace(REPORT, author=Address("", odd), trailers=(("Cc", f"<{odd}>"),)), BOT, NOW))
    assert emails(recipients_for(author=odd)) == ([LIST], [])


TEXT = st.lists(st.sampled_from([*"ab<>@,;\"' \n\t\x00\u202eé.", "x@dev.example", "stable@"]), max_size=12).map("".join)


@given(author=TEXT, trailers=st.lists(st.tuples(st.sampled_from(["Cc", "Acked-by", "x"]), TEXT), max_size=8))
def test_whatever_a_commit_says_the_addresses_are_sound_and_each_stands_once(
    author: str, trailers: list[tuple[str, str]]
) -> None:
    found = recipients_for(*trailers, author=author)
    everybody = [each.email for each in (*found.to, *found.cc)]
    assert len(set(everybody)) == len(everybody)
    assert set(everybody) <= {LIST, "x@dev.example", *(each for each in everybody if each.isascii() and "@" in each)}
    assert not any(each.startswith("stable@") for each in everybody)
