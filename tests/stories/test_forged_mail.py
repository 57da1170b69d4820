"""A forger writes in the author's name, and nothing happens by itself; her own signed mail acts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.identity import Identity
from tests.bot.test_trust import DKIM, signed
from tests.world import DANA, World, message_id, state
from tracker.models import Message, Report, Suggestion

pytestmark = pytest.mark.django_db
WORDS = ["#lkp invalid", "I've dropped this patch.", "I'll send a fix tomorrow.", "It is the lock.", "#lkp fix: mm: x"]


@pytest.fixture
def world(tmp_path: Path, identity: Identity) -> World:
    return World(tmp_path, replace(identity, trust="verified", believed=replace(DKIM, signs=lambda domain: True)))


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("forged", ["not signed", "signed by another", "changed since"])
def test_a_forged_mail_changes_nothing_by_itself(world: World, words: str, forged: str) -> None:
    report = world.report()
    raw = world.letter(DANA, words, to=message_id(report))
    if forged == "signed by another":
        raw = signed(raw, domain=b"evil.example")
    elif forged == "changed since":
        raw = signed(world.letter(DANA, "Fine.", to=message_id(report))).replace(b"Fine.", words.encode())
    world.inbox.add(raw)
    before = state(report)
    world.read()
    assert state(report) == before == "no_response"
    assert list(report.events.values_list("kind", flat=True)) == ["reported"]
    assert Suggestion.objects.filter(report=report).exists()  # an operator sees it


@pytest.mark.parametrize(
    ("words", "becomes"),
    [("#lkp invalid", "invalid"), ("I've dropped this patch.", "dropped"), ("I'll send a fix tomorrow.", "working")],
)
def test_her_own_signed_mail_acts(world: World, words: str, becomes: str) -> None:
    report = world.report()
    world.inbox.add(signed(world.letter(DANA, words, to=message_id(report))))
    world.read()
    assert state(report) == becomes
    mail = Message.objects.get(author_email=DANA.email)
    assert (mail.trust, mail.trust_by) == ("pass", f"dkim {DANA.email.partition('@')[2]}")


def test_who_wrote_it_is_shown(world: World, client: object) -> None:
    report = world.report()
    world.inbox.add(signed(world.letter(DANA, "It is the lock.", to=message_id(report))))
    world.read()
    page = client.get(f"/report/{Report.objects.get(pk=report.pk).culprit.sha}/").content.decode()  # type: ignore[attr-defined]
    assert "proven by dkim dev.example" in page
