"""Decisions in the review queue: a suggestion is accepted, changed, rejected or undone."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from bot.mail.identity import BotIdentity
from tests.world import DANA, World, message_id, state, status_text
from tracker.models import Report, RuleRecord, Suggestion
from tracker.pages.review.excerpt import excerpt

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(tmp_path: Path, identity: BotIdentity) -> World:
    return World(tmp_path, identity)


@pytest.fixture
def mira(client: Client) -> Client:
    user = User.objects.create_user("mira", password="x")
    user.user_permissions.add(Permission.objects.get(codename="change_suggestion"))
    client.force_login(user)
    return client


@pytest.fixture
def report(world: World) -> Report:
    report = world.report()
    world.post(DANA, "Hi,\n\nI have looked at it. This is\nexpected. We do more now.\n", to=message_id(report))
    world.read()
    return report


def suggestion() -> Suggestion:
    return Suggestion.objects.get()


def decide(client: Client, **data: str) -> int:
    return client.post(f"/inbox/{suggestion().pk}/decide/", data).status_code


def test_the_page_shows_the_words_in_their_context_and_what_would_change(mira: Client, report: Report) -> None:
    page = mira.get("/inbox/").content.decode()
    assert "I have looked at it. <mark>This is expected.</mark> We do more now." in page
    assert "Now: the author has responded." in page
    assert "<b>the regression is expected</b>" in page
    assert "Dana Brook, author, not verified" in page


def test_accepted_it_is_an_event_of_the_person(mira: Client, report: Report) -> None:
    assert decide(mira, decision="accept") == 302
    assert state(report) == "expected"
    event = report.events.get(kind="expected")
    assert (event.actor, event.quote, event.message_id) == ("mira", "This is expected.", suggestion().message_id)
    assert "accepted" in mira.get("/inbox/").content.decode().lower()
    assert decide(mira, decision="reject") == 302  # too late
    assert suggestion().decision == "accepted"
    assert RuleRecord.objects.get(rule="expected").accepted_pct == 100


def test_rejected_it_is_an_event_that_moves_nothing(mira: Client, report: Report) -> None:
    before = status_text(report)
    assert decide(mira, decision="reject") == 302
    assert status_text(report) == before
    assert report.events.get(kind="reading_rejected").actor == "mira"
    assert RuleRecord.objects.get(rule="expected").rejected == 1


def test_another_state(mira: Client, report: Report) -> None:
    assert decide(mira, decision="set", instead="disputed") == 302
    assert state(report) == "disputed"
    assert suggestion().decision == "changed"
    assert RuleRecord.objects.get(rule="expected").changed == 1


def test_taken_back_and_decided_again(mira: Client, report: Report) -> None:
    for _ in range(2):
        decide(mira, decision="accept")
        assert state(report) == "expected"
        mira.post(f"/inbox/{suggestion().pk}/undo/")
        assert (state(report), suggestion().decision) == ("responded", "open")
    decide(mira, decision="reject")
    mira.post(f"/inbox/{suggestion().pk}/undo/")
    decide(mira, decision="set", instead="working")
    assert state(report) == "working"
    record = RuleRecord.objects.get(rule="expected")
    assert (record.accepted, record.changed, record.rejected) == (0, 1, 0)


@pytest.mark.parametrize(
    "data", [{}, {"decision": "set"}, {"decision": "burn"}, {"decision": "set", "instead": "reported"}]
)
def test_a_wrong_word_is_refused_in_a_line(mira: Client, report: Report, data: dict[str, str]) -> None:
    answer = mira.post(f"/inbox/{suggestion().pk}/decide/", data)
    assert (answer.status_code, suggestion().decision) == (400, "open")
    assert answer.content.startswith(b"decision: expected accept, reject or another state")


def test_only_who_may_decides(client: Client, report: Report) -> None:
    assert "Sign in</a> to accept" in client.get("/inbox/").content.decode()
    assert decide(client, decision="accept") == 302  # to the log-in
    client.force_login(User.objects.create_user("guest"))
    assert decide(client, decision="accept") == 403
    assert client.get(f"/inbox/{suggestion().pk}/decide/").status_code == 405
    assert suggestion().decision == "open"


def test_reading_the_mail_again_asks_nothing_again(mira: Client, report: Report, world: World) -> None:
    decide(mira, decision="reject")
    world.read()
    assert suggestion().decision == "rejected"


def test_an_excerpt_of_a_long_mail_is_short() -> None:
    found = excerpt("word " * 500 + "This  is\nexpected. " + "word " * 500, "This is expected.")
    assert found.evidence == "This is expected."
    assert max(len(found.before), len(found.after)) <= 250
    assert found.before.startswith("… ")


@pytest.mark.slow
@given(st.text(max_size=300), st.text(max_size=100))
def test_an_excerpt_of_anything(text: str, quote: str) -> None:
    assert excerpt(text, quote).evidence.split() == quote.split() or excerpt(text, quote).evidence == quote
