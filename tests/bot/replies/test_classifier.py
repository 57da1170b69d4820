"""The classifier of replies: what it looks at, what it may do alone, and whether it was learned from the examples."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.accuracy import training
from bot.replies import examples
from bot.replies.classifier import (
    AGREES,
    FILE,
    Opinion,
    ReplyFacts,
    decide,
    features,
    grams,
    load,
    readable,
    says_something,
)
from bot.replies.examples import nearest
from bot.replies.rules.notation import Effect, Mode, event_kind_of, name_of
from bot.replies.sentences import Sentence
from tracker.domain.events import EventKind, Role


def facts(*texts: str, role: Role | None = Role.AUTHOR, below: str = "", found: tuple[str, ...] = ()) -> ReplyFacts:
    return ReplyFacts(tuple(Sentence(text, below) for text in texts), role, False, False, False, False, found)


def test_what_differs_from_mail_to_mail_is_one_word() -> None:
    one = set(grams("See 3b1f0c9d2e44, it costs -12.8% in do_work() on v6.12-rc3 with 192 threads."))
    other = set(grams("See 77770c9d2e44, it costs 3% in folio_walk() on v7.1 with 64 threads."))
    assert one == other
    assert {"_sha_", "_percent_ in", "^ see"} <= one


def test_features_of_a_reply() -> None:
    found = features(facts("Which kernel?", below="We saw it twice.", found=("asks_info",)))
    assert {"^ which kernel", "? $", "> twice", "writer: developer", "found: asks_info", "questions"} <= found.keys()
    assert "patch" not in found
    # A long reply weighs as much as a short one.
    for texts in (("Yes.",), ("It is the lock.",) * 50):
        words = {gram for text in texts for gram in grams(text)}
        values = features(facts(*texts))
        assert sum(values[each] ** 2 for each in words) == pytest.approx(36)


@pytest.mark.parametrize(
    ("text", "role", "expected"),
    [
        ("I'm cooking up a fix and will post it tomorrow.", Role.AUTHOR, "working"),
        ("Could you share the kernel config and the full perf profile?", Role.MAINTAINER, "needs_info"),
        ("I can't see how this commit could possibly cause that, looks like a bogus bisection.", None, "disputed"),
        ("We applied the patch and the regression is completely gone.", Role.REPORTER, "fix_confirmed"),
        ("That is the price of correctness, and I don't intend to do anything about it.", Role.AUTHOR, "wontfix"),
        ("Sure, we will test it and let you know.", Role.REPORTER, "none"),
    ],
)
def test_sentences_that_no_example_has(text: str, role: Role | None, expected: str) -> None:
    # What closes a report, a rule must find, too
    found = ("wont_act", "= wontfix", "= wontfix, suggest") if expected == "wontfix" else ()
    opinion = load().opinion(facts(text, role=role, found=found))
    assert next(iter(opinion.probabilities)) == expected
    assert sum(opinion.probabilities.values()) == pytest.approx(1, abs=1e-4)
    assert (opinion.sentences[expected], bool(opinion.words[expected])) == (text, True)


def test_the_evidence_is_no_greeting() -> None:
    texts = ("Hi Oliver,", "Thanks a lot for the report!", "I will send a fix tomorrow.", "Cheers")
    opinion = load().opinion(facts(*texts))
    assert opinion.sentences["working"] == "I will send a fix tomorrow."


def opinion(**probabilities: float) -> Opinion:
    likely = dict(sorted(probabilities.items(), key=lambda each: -each[1]))
    rest = {each: 0.001 for each in examples.EFFECTS if each not in likely}
    return Opinion(likely | rest, dict.fromkeys(likely, "It is so."), {})


def by_rule(name: str, mode: Mode = Mode.AUTO) -> Effect:
    return Effect(event_kind_of(name), mode, f"rule_{name}", quote="by a rule")


@pytest.mark.parametrize(
    ("found", "thinks", "expected"),
    [
        ([], {"working": 0.8, "responded": 0.15}, ["working auto"]),
        ([], {"working": 0.6, "responded": 0.45}, ["working suggest"]),
        ([], {"working": 0.49, "responded": 0.3}, []),
        # A rule and the classifier agree.
        (["working"], {"working": 0.4, "responded": 0.2}, ["working auto"]),
        (["working"], {"disputed": 0.5, "working": 0.1}, ["disputed suggest"]),
        # The classifier alone closes nothing, and is slower to call something a dispute.
        ([], {"wontfix": 0.95}, []),
        (["wontfix"], {"wontfix": 0.45}, ["wontfix suggest"]),  # a rule finds it, too
        (["wontfix"], {"wontfix": 0.35}, []),
        (["disputed"], {"wontfix": 0.6, "disputed": 0.1}, []),
        ([], {"fix_queued": 0.95}, ["fix_queued suggest"]),
        ([], {"disputed": 0.8}, ["disputed suggest"]),
        (["dropped"], {"dropped": 0.6}, ["dropped auto"]),
        (["dropped"], {"dropped": 0.49}, ["dropped suggest"]),
        # A maintainer who has taken a fix says so in few words.
        (["fix_queued"], {"responded": 0.6, "fix_queued": 0.01}, ["fix_queued auto"]),
        # What readers would also call a response.
        ([], {"responded": 0.7, "wontfix": 0.2}, ["responded auto"]),
        ([], {"responded": 0.51, "fix_proposed": 0.4}, ["responded auto"]),
        ([], {"responded": 0.45, "fix_proposed": 0.4}, []),
        # Somebody asks for something, which a rule finds, too.
        (["needs_info"], {"working": 0.5, "needs_info": 0.25}, ["needs_info auto", "working suggest"]),
        (["needs_info"], {"working": 0.5, "needs_info": 0.15}, ["working suggest"]),
        ([], {"none": 0.6, "responded": 0.3}, []),
        ([], {"none": 0.4, "responded": 0.3}, []),
    ],
)
def test_what_acts_and_what_is_suggested(found: list[str], thinks: dict[str, float], expected: list[str]) -> None:
    effects = decide([by_rule(name) for name in found], opinion(**thinks))
    assert [f"{name_of(each)} {each.mode}" for each in effects] == expected
    assert all(each.mode is Mode.SUGGEST for each in decide([], opinion(**thinks), may_act=False))


@pytest.mark.parametrize(
    ("thinks", "says"),
    [
        ({"working": 0.3, "responded": 0.2}, True),  # unclear, but an answer
        ({"none": 0.4, "responded": 0.3}, True),
        ({"none": 0.6, "responded": 0.3}, False),
        ({"none": 0.4, "responded": 0.05}, False),
    ],
)
def test_who_says_something_has_answered_whatever_it_is(thinks: dict[str, float], says: bool) -> None:
    assert says_something(opinion(**thinks)) is says


def test_a_request_for_a_test_stays_beside_the_fix() -> None:
    asked = Effect(EventKind.TEST_ASKED, Mode.AUTO, "asks_test_of_patch")
    assert decide([by_rule("fix_proposed"), asked], opinion(fix_proposed=0.9))[-1] == asked


@given(st.lists(st.text()), st.sampled_from([*Role, None]), st.text())
def test_junk_has_an_opinion(texts: list[str], role: Role | None, below: str) -> None:
    first, again = (load().opinion(facts(*texts, role=role, below=below)) for _ in range(2))
    assert first == again
    assert first.probabilities.keys() == set(examples.EFFECTS)
    assert all(0 <= each <= 1 for each in first.probabilities.values())


@pytest.mark.parametrize("word", ["a", "_", "a_", "->", "%1", "https://", "0a", "don't "])
def test_a_megabyte_of_one_word(word: str) -> None:
    text = word * (1_000_000 // len(word))
    started = time.process_time()
    features(facts(text[:600], below=text))  # a sentence is cut to 600 characters, what it answers is not
    assert time.process_time() - started < 5


def test_the_model_is_small() -> None:
    assert FILE.stat().st_size < 5_000_000
    assert set(load().effects) == set(examples.EFFECTS)


@pytest.mark.long
def test_the_model_was_learned_from_these_examples(shared: Path) -> None:
    """If this fails, an example, a rule or a feature has changed since: run `make model`."""
    from benchmarks.accuracy.model import training_data

    assert training.digest(training_data()) == load().trained_on


@pytest.mark.slow
@pytest.mark.long
def test_learning_again_gives_the_same() -> None:
    replies = training.labelled(list(examples.load())[::20])
    one, other = training.train(replies), training.train(replies)
    assert one.trained_on == other.trained_on
    assert (one.weights == other.weights).all()
    for each in replies[:20]:
        assert one.opinion(each.facts) == other.opinion(each.facts)


def test_the_examples_are_well_formed(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("examples", "check")
    counts = dict(line.rsplit(None, 1) for line in capsys.readouterr().out.splitlines())
    assert int(counts["total"]) > 2000
    assert min(int(counts[effect]) for effect in examples.EFFECTS) > 10


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"effect": "fixed"}, "effect 'fixed': must be one of none, responded"),
        ({"also": ["fixed"]}, "effect 'fixed'"),
        ({"role": "boss"}, "role 'boss'"),
        ({"intents": ["hope"]}, "intent 'hope'"),
        ({"evidence": "It is not there."}, "the evidence is not in the text"),
        ({"more": 1}, "the keys must be"),
    ],
)
def test_a_malformed_example_is_named(tmp_path: Path, changed: dict[str, object], says: str) -> None:
    line = next((examples.FOLDER / "lab.jsonl").open(encoding="utf-8"))
    other = {"text": "Other.", "evidence": "Other."}
    (tmp_path / "a.jsonl").write_text(line + json.dumps(json.loads(line) | other | changed) + "\n")
    with pytest.raises(CommandError, match=f"a.jsonl:2: {says}"):
        call_command("examples", "check", str(tmp_path))
    (tmp_path / "a.jsonl").write_text(line * 2)
    with pytest.raises(CommandError, match=r"a\.jsonl:2: the same text as a\.jsonl:1"):
        call_command("examples", "check", str(tmp_path))


def test_why_is_said_in_words() -> None:
    text = "We applied the patch and the regression is completely gone."
    opinion = load().opinion(facts(text, role=Role.REPORTER))
    assert re.fullmatch(r'"[^"]+"(, "[^"]+")*', opinion.why("fix_confirmed"))
    assert 100 * AGREES < opinion.certainty("fix_confirmed") <= 99
    assert readable("^ see _sha_ $") == "see SHA"
    assert readable("^") == ""


def test_the_nearest_examples_are_found() -> None:
    example = next(each for each in examples.load() if len(each.evidence.split()) > 8)
    found = nearest(example.evidence)
    assert (found[0].example.evidence, len(found)) == (example.evidence, 3)
    assert found[0].nearness == pytest.approx(1)
    assert found[0].nearness >= found[1].nearness >= found[2].nearness
    assert nearest("qzx qzx") == []


def test_explain_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mail = tmp_path / "reply"
    mail.write_bytes(
        b"From: Dana <dana@dev.example>\nSubject: Re: x\nMessage-ID: <r@b>\nIn-Reply-To: <a@b>\n\n"
        b"I'm cooking up a fix and will post it tomorrow.\n"
    )
    known = tmp_path / "known.json"
    known.write_text('[{"id": "x", "message_id": "<a@b>", "culprit": "3b1f0c9d2e"}]')
    call_command("explain", str(mail), known=str(known), why=True)
    (effect,) = json.loads(capsys.readouterr().out)["effects"]
    assert (effect["state"], len(effect["nearest"])) == ("working", 3)
    assert effect["certainty"] >= 90
    assert set(effect["nearest"][0]) == {"example", "sentence", "state", "nearness"}
