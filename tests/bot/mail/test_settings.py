"""Our own addresses: the report's tag, the return path of one mail, and who speaks for the lab; and a mailmap."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from bot.mail.settings import MAX_LINES, BotSettings, read_mailmap

TAG, DANA = "7d3e91c0a45b28f6", "dana@dev.example"
OURS = BotSettings(
    address="perfbot@bot.example.org",
    robots=frozenset({"robot@lab.example"}),
    operators=frozenset({"otto@lab.example"}),
    secret=b"a secret",
)


def test_only_who_got_the_mail_knows_its_return_path() -> None:
    mark = hmac.new(b"a secret", b"m@x", hashlib.sha256).hexdigest()[:12]
    path = OURS.return_path(TAG, "m@x")
    assert path == f"perfbot+{TAG}.{mark}@bot.example.org"
    others = [OURS.return_path(TAG, "n@x"), OURS.return_path(TAG, "m@x", DANA), OURS.return_path(TAG, "m@x", "lee@x")]
    assert len({path, *others}) == 4, "another for each mail, and for each recipient alone"
    assert OURS.return_path(TAG, "m@x", DANA.upper()) == OURS.return_path(TAG, "m@x", DANA)
    assert OURS.return_path(TAG, "\udc80@x"), "whatever a Message-ID holds"


@pytest.mark.parametrize(
    ("address", "tag", "mark"),
    [
        (f"perfbot+{TAG}@bot.example.org", TAG, ""),
        (f"perfbot+{TAG}.b1c2d3e4f5a6@bot.example.org", TAG, "b1c2d3e4f5a6"),
        (f"PerfBot+{TAG.upper()}.B1C2D3E4F5A6@BOT.example.org", TAG, "b1c2d3e4f5a6"),
        ("perfbot@bot.example.org", "", ""),
        (f"perfbot{TAG}@bot.example.org", "", ""),
        (f"other+{TAG}@bot.example.org", "", ""),
        (f"perfbot+{TAG}@elsewhere.example", "", ""),
        (f"perfbot+{TAG}.b1c2@bot.example.org", "", ""),
        ("perfbot+7d3e91c0@bot.example.org", "", ""),
        ("perfbot+lab@bot.example.org", "", ""),
        ("", "", ""),
    ],
)
def test_a_tag_counts_in_our_own_address(address: str, tag: str, mark: str) -> None:
    assert (OURS.tag_in(address), OURS.mark_in(address)) == (tag, mark)


@pytest.mark.parametrize(
    ("address", "own", "of_the_lab"),
    [
        ("perfbot@bot.example.org", True, True),
        (f"perfbot+{TAG}@bot.example.org", True, True),
        ("Perfbot@Bot.Example.org", True, True),
        ("robot@lab.example", False, True),
        ("Otto@lab.example", False, True),
        (DANA, False, False),
        ("perfbot@dev.example", False, False),
    ],
)
def test_who_speaks_for_the_lab(address: str, own: bool, of_the_lab: bool) -> None:
    assert (OURS.is_own(address), OURS.speaks_for_lab(address)) == (own, of_the_lab)


def test_a_mailmap_names_the_addresses_of_one_person() -> None:
    aliases = read_mailmap(
        "# people\n"
        "Dana Brook <Dana@dev.example> <dana@home.example>\n"
        "Dana Brook <dana@dev.example> D. Brook <db@old.example>  # moved\n"
        "Lee <lee@dev.example>\n"
        "Kim <kim@dev.example> <KIM@dev.example>\n"
        "not a line\n" + "\n" * MAX_LINES + "Zoe <zoe@dev.example> <zoe@home.example>\n"
    )
    everybody = {DANA, "dana@home.example", "db@old.example"}
    for address in everybody:
        assert aliases.of(address) == everybody
    for alone in ("lee@dev.example", "kim@dev.example", "zoe@home.example", "nobody@x"):
        assert aliases.of(alone) == {alone}
