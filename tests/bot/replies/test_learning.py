"""`learn`: a lab's decisions adapt the classifier, if mail that was left out says that it helps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command

from bot.config import bot_identity
from bot.lessons import lessons
from bot.replies.classifier import examples
from bot.replies.classifier.adapting import adapt, compare
from bot.replies.classifier.features import ReplyFacts
from bot.replies.classifier.model import Model, load, of_file, save
from bot.replies.classifier.training import Labelled
from bot.replies.prose.sentences import Sentence
from tests.world import DANA, World, message_id
from tracker.domain.events import EventKind, Role
from tracker.models import Decision, Report, Suggestion
from tracker.services.reports import suggestions

# A lab whose developers say "parked" of what they will not fix: no example has the word.
PARKED = [
    f"{start}, parked {end}." for start in ("Sorry", "OK", "Well", "Right", "Hi") for end in ("it", "this", "here")
]


def reply(text: str, effect: str, thread: str) -> Labelled:
    facts = ReplyFacts((Sentence(text, ""),), Role.AUTHOR, False, False, False, ())
    return Labelled(thread, facts, effect, 1.0)


@pytest.fixture
def decided() -> list[Labelled]:
    return [reply(text, "wontfix", f"t{number}") for number, text in enumerate(PARKED)]


def likeliest(model: Model, text: str) -> str:
    return next(iter(model.opinion(reply(text, "", "").facts).probabilities))


def test_what_a_lab_decided_is_learned_and_nothing_else_forgotten(decided: list[Labelled]) -> None:
    before = load()
    after = adapt(before, decided)
    assert likeliest(before, "Fine, parked then.") != "wontfix"
    assert likeliest(after, "Fine, parked then.") == "wontfix"
    for text in ("I'm cooking up a fix and will post it tomorrow.", "Could you share the kernel config?"):
        assert likeliest(after, text) == likeliest(before, text)
    assert adapt(before, decided).weights.tobytes() == after.weights.tobytes()
    assert adapt(before, []) is before


def test_what_is_left_out_judges_it(decided: list[Labelled]) -> None:
    result = compare(load(), decided)
    assert (result.replies, result.right_after > result.right_before, result.helps) == (len(PARKED), True, True)
    noise = [
        reply(text, each, str(number)) for number, (text, each) in enumerate(zip(PARKED, _shuffled(), strict=True))
    ]
    assert not compare(load(), noise).helps


def _shuffled() -> list[str]:
    names = ["working", "disputed", "needs_info", "responded", "fix_proposed"]
    return [names[number * 7 % 5] for number in range(len(PARKED))]


def test_an_adapted_model_is_stored_and_read(decided: list[Labelled], tmp_path: Path) -> None:
    adapted = adapt(load(), decided)
    save(adapted, tmp_path / "ours.npz")
    assert likeliest(of_file(str(tmp_path / "ours.npz")), "Fine, parked then.") == "wontfix"
    assert of_file("") is load()


@pytest.fixture
def taught(world: World, settings: Any) -> Report:
    """A report with twenty-four replies on which somebody has decided."""
    settings.PERFWORK_BOT_ADDRESS, settings.PERFWORK_TRUST = world.identity.address, world.identity.trust_policy
    report = world.report()
    for text in [*PARKED, *(each.replace(",", " then,") for each in PARKED[:9])]:
        world.post(DANA, f"{text}\n", to=message_id(report))
    world.read()
    Suggestion.objects.all().delete()
    for mail in report.messages.filter(author_email=DANA.email):
        row = Suggestion.objects.create(
            report=report,
            key=f"working:{mail.message_id}",
            kind=EventKind.WORKING,
            occurred_at=world.now,
            role="author",
            message_id=mail.message_id,
            quote=mail.own_text.strip(),
            rule="classifier",
        )
        suggestions.decide(row, Decision.CHANGED, "toni", world.now, EventKind.EXPECTED)
    return report


def test_the_command(taught: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: Any) -> None:
    found = list(lessons(bot_identity()))
    assert {(each.effect, each.standpoint.role) for each in found} == {("wontfix", Role.AUTHOR)}
    assert len(found) == 24
    # One report alone can't be left out of itself: nothing is known to help.
    call_command("learn", str(tmp_path / "ours.npz"))
    assert "Adapting does not help: nothing is written." in capsys.readouterr().out
    assert not (tmp_path / "ours.npz").exists()
    with pytest.raises(CommandError, match=r"ends in \.npz"):
        call_command("learn", str(tmp_path / "ours"))
    settings.PERFWORK_CLASSIFIER = str(tmp_path / "none.npz")
    with pytest.raises(ImproperlyConfigured, match=r"none\.npz"):
        bot_identity()


def test_decisions_are_exported_as_examples(taught: Report, tmp_path: Path) -> None:
    folder = tmp_path / "lessons"
    folder.mkdir()
    call_command("learn", export=folder / "ours.jsonl")
    lines = [json.loads(line) for line in (folder / "ours.jsonl").read_text().splitlines()]
    assert {each["effect"] for each in lines} == {"wontfix"}
    assert len(list(examples.load(folder))) == 24


def test_what_was_rejected_means_what_else_is_known(taught: Report, world: World) -> None:
    (row,) = Suggestion.objects.order_by("pk")[:1]
    suggestions.take_back(row, "toni", world.now)
    row.refresh_from_db()
    suggestions.decide(row, Decision.REJECTED, "toni", world.now)
    first = next(iter(lessons(world.identity)))
    assert first.effect in ("none", "responded")


def test_few_decisions_teach_nothing(world: World) -> None:
    with pytest.raises(CommandError, match="0 decisions on mail; 20 or more"):
        call_command("learn")
