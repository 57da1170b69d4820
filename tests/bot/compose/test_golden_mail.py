"""The twelve mails of tests/mail/composed: still composed byte for byte, valid, and readable on one screen."""

from __future__ import annotations

import pytest

from bot.compose.conventions import WIDTH
from bot.compose.lint import faults
from bot.compose.report_mail import compose
from bot.mail.message import parse
from tests.composed import AT, DIRECTORY, REPORTS, composed
from tests.report_data import BOT


def test_no_file_is_left_over() -> None:
    assert sorted(path.stem for path in DIRECTORY.glob("*.eml")) == sorted(REPORTS)
    assert len(REPORTS) == 12


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_composed_as_it_was_read_and_found_good(name: str) -> None:
    assert composed(name) == (DIRECTORY / f"{name}.eml").read_bytes(), "if it is meant: make golden, and read the mail"


@pytest.mark.parametrize("name", REPORTS)
def test_it_may_go(name: str) -> None:
    report, conventions = REPORTS[name]
    assert faults(compose(report, BOT, AT, "", conventions), BOT, conventions, AT, report) == ()


@pytest.mark.parametrize("name", REPORTS)
def test_one_screen_tells_what_readers_ask(name: str) -> None:
    text = parse((DIRECTORY / f"{name}.eml").read_bytes()).text
    shown = [line[at : at + WIDTH] for line in text.split("\n") for at in range(0, max(1, len(line)), WIDTH)][:24]
    names = ("measured:", "metric:", "where:", "evidence:", "bisected:", "also:", "answer:")
    assert [each for each in names if not any(line.startswith(each) for line in shown)] == []
