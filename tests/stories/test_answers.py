"""A command that failed gets one short reply; no other mail does."""

from __future__ import annotations

import email
from datetime import timedelta
from email.policy import default
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bot.compose.mail import to_bytes
from bot.mail.addresses import Address
from bot.mail.message import is_address, parse
from bot.mail.settings import BotSettings
from bot.notifications.command_answer import answer_to, approve_answers
from bot.replies.reading import read
from tests.world import DANA, START, World, message_id
from tracker.models import OutgoingMail
from tracker.services.mail_transitions import mark_sent

BAD = "#lkp fixx: mm: a\n#lkp dup\n"


@pytest.fixture
def answers_world(tmp_path: Path, bot_settings: BotSettings) -> World:
    return World(tmp_path, bot_settings)


def answers() -> list[OutgoingMail]:
    return list(OutgoingMail.objects.filter(purpose__startswith="answer ").order_by("pk"))


@pytest.mark.django_db
def test_the_answer_quotes_the_line_and_says_why(answers_world: World) -> None:
    report = answers_world.report()
    answers_world.post(DANA, f"Hi,\n\n{BAD}", to=message_id(report), message_id="bad@dev.example")
    answers_world.read()
    (row,) = answers()
    mail = email.message_from_bytes(bytes(row.raw), policy=default)
    assert (mail["Auto-Submitted"], mail["In-Reply-To"]) == ("auto-replied", "<bad@dev.example>")
    assert mail["To"].addresses[0].addr_spec == DANA.email
    body = mail.get_content()
    assert "> #lkp fixx: mm: a" in body
    assert "Line 3: unknown command 'fixx'." in body
    assert "> #lkp dup" in body
    assert max(map(len, body.splitlines())) <= 78
    assert row.state == "composed"
    assert approve_answers(answers_world.now) == 1


@pytest.mark.django_db
def test_sent_it_is_no_news_of_the_report(answers_world: World) -> None:
    report = answers_world.report()
    answers_world.post(DANA, BAD, to=message_id(report))
    answers_world.read()
    before = list(report.events.values_list("key", flat=True))
    assert mark_sent(answers()[0].message_id, answers_world.now, answers_world.now)
    assert list(report.events.values_list("key", flat=True)) == before
    answers_world.inbox.add(bytes(answers()[0].raw))
    answers_world.read()  # our own answer, back from the list: filed, not answered
    assert len(answers()) == 1


@pytest.mark.django_db
def test_one_an_hour_to_a_person_and_never_twice_for_a_mail(answers_world: World) -> None:
    report = answers_world.report()
    answers_world.post(DANA, BAD, to=message_id(report))
    answers_world.read()
    answers_world.now -= timedelta(minutes=110)  # each step of this world is an hour
    answers_world.post(DANA, BAD, to=message_id(report))
    answers_world.read()
    assert len(answers()) == 1
    answers_world.post(Address("Lee Park", "lee@dev.example"), BAD, to=message_id(report))
    answers_world.read()
    assert len(answers()) == 2
    answers_world.later(2)
    answers_world.post(DANA, BAD, to=message_id(report))
    answers_world.read()
    answers_world.read()
    assert len(answers()) == 3


@pytest.mark.django_db
@pytest.mark.slow
def test_two_writers_of_one_reading_are_answered_and_many_are_not(answers_world: World) -> None:
    report = answers_world.report()
    for number in range(15):
        answers_world.post(Address("", f"w{number}@dev.example"), BAD, to=message_id(report))
    answers_world.read()
    assert len(answers()) == 10
    assert len({row.message_id for row in answers()}) == 10


@pytest.mark.django_db
@pytest.mark.slow
@pytest.mark.parametrize(
    ("author", "headers"),
    [
        (DANA, {"Auto_Submitted": "auto-replied"}),
        (DANA, {"Precedence": "auto_reply"}),
        (Address("", "mailer-daemon@dev.example"), {}),
        (Address("tip-bot2", "tip-bot2@dev.example"), {}),
        (Address("", "linux-mm-owner@dev.example"), {}),
        (Address("", "noreply@dev.example"), {}),
    ],
)
def test_robots_bounces_and_absences_are_never_answered(
    answers_world: World, author: Address, headers: dict[str, str]
) -> None:
    report = answers_world.report()
    answers_world.post(author, BAD, to=message_id(report), **headers)
    answers_world.read()
    assert answers() == []


@pytest.mark.django_db
def test_ourselves_we_never_answer(answers_world: World) -> None:
    report = answers_world.report()
    answers_world.post(Address("Bot", answers_world.settings.address.upper()), BAD, to=message_id(report))
    answers_world.read()
    assert answers() == []


@pytest.mark.django_db
def test_old_mail_is_not_answered(answers_world: World) -> None:
    report = answers_world.report()
    answers_world.post(DANA, BAD, to=message_id(report))
    answers_world.later(24 * 10)  # the archive is read ten days after
    answers_world.read()
    assert answers() == []


@pytest.mark.django_db
def test_a_good_command_is_not_answered(answers_world: World) -> None:
    report = answers_world.report()
    answers_world.post(DANA, "#lkp note: looking\n#regzbot poke\n", to=message_id(report))
    answers_world.read()
    assert answers() == []


@pytest.mark.django_db
@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=200))
def test_nothing_of_a_mail_breaks_out_of_its_place_in_the_answer(name: str, subject: str, words: str) -> None:
    bot = BotSettings(address="perfbot@bot.example.org")
    words = words.replace("\n", " ")
    raw = f"From: {name} <dana@dev.example>\nMessage-ID: <a@b>\nSubject: {subject}\n\n#lkp {words}\n"
    reading = read(parse(raw.encode("utf-8", "replace")), bot)
    assume(is_address(reading.mail.author.email))  # others are not answered
    made = to_bytes(answer_to(reading, "7d3e91c0a45b28f6", "7d3e91c0a45b28f6", bot, START))
    mail = email.message_from_bytes(made, policy=default)
    assert set(mail.keys()) <= {
        *("Message-ID", "Date", "From", "Reply-To", "To", "Subject", "In-Reply-To", "References", "Auto-Submitted"),
        *("X-Perfwork-Report", "Content-Type", "Content-Transfer-Encoding", "MIME-Version", "List-Unsubscribe"),
    }
