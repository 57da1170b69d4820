"""How replies are read, compared with hand-made labels; and the generated page of the rules."""

from __future__ import annotations

import html
import json
import os
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest
from django.test import Client

from benchmarks.accuracy import replies
from benchmarks.accuracy.reading import accuracy, invented_accuracy
from benchmarks.accuracy.replies import LKP
from bot.archives.files import read_mbox
from bot.archives.sources import open_sources
from bot.documentation import measured, page
from bot.explain import explain
from bot.mail.settings import BotSettings, TrustAnchors
from bot.replies.effects import MERE_RESPONSE, effects_of, settled
from bot.replies.reading import understand
from bot.replies.rules import RULES
from bot.replies.rules.notation import NOTHING, Effect, MailContext, Mode, Relation
from bot.replies.which_report import KnownReport
from tests.bot.robot_reports.test_report import INVENTED
from tests.conftest import ROOT
from tracker.domain.events import EventKind as K
from tracker.domain.events import Role

# --- What the proofs cost on real replies: of those that a rule may act on by itself, how many still act ---

# The servers that took these mails in, for the lists and for the archive.
SERVERS = frozenset({"smtp.subspace.kernel.org", ".kernel.org", "mail.linux.dev", "mail.lfdr.de"})


def acting(shared: Path, name: str, settings: BotSettings) -> set[str]:
    """The mails of a file with an automatic effect."""
    known_file = shared / f"{name}.known.json"
    known = json.loads(known_file.read_text()) if known_file.exists() else []
    reports = [
        KnownReport(each["id"], each["culprit"], each["title"], (each["message_id"],), frozenset()) for each in known
    ]
    mails = [mail.raw for source in open_sources(str(shared / f"{name}.mbox")) for mail in source.mails("", "")]
    found = explain(mails, settings, reports)
    return {each["message_id"] for each in found if any(effect["mode"] == "auto" for effect in each["effects"])}


@pytest.mark.long
@pytest.mark.parametrize("name", ["threads-dev", "threads-dev-2"])
def test_not_one_in_twenty_is_lost_to_proofs(shared: Path, lkp: BotSettings, name: str) -> None:
    labelled = json.loads((shared / f"{name}.json").read_text())
    auto = {each["msgid"] for thread in labelled.values() for each in thread["replies"] if each["automation"] == "auto"}
    unproven = acting(shared, name, replace(lkp, trust_policy="verified")) & auto
    anchors = TrustAnchors(servers=SERVERS)
    proven = acting(shared, name, replace(lkp, trust_policy="verified", trust_anchors=anchors)) & auto
    assert len(unproven) > 20
    assert len(unproven - proven) * 20 <= len(unproven)


# --- How replies are read, compared with hand-made labels; and the generated page of the rules ---


@pytest.fixture(scope="module")
def labelled_threads() -> list[replies.Thread]:
    if not replies.SHARED.is_dir():
        pytest.skip(f"NOT TESTED: the labelled threads are not on this machine (expected in {replies.SHARED})")
    return replies.threads()


def test_the_figures_of_the_labelled_threads(labelled_threads: list[replies.Thread]) -> None:
    found = replies.figures([reply for thread in labelled_threads for reply in thread.replies])
    assert (len(labelled_threads), found.replies, found.labelled_auto) == (18, 64, 34)
    assert found.acted_rightly == found.acted  # what acts by itself is right, always
    assert found.found_auto >= 0.85 * found.labelled_auto
    assert found.effects >= 0.90 * found.replies
    assert found.roles >= 0.95 * found.replies


def test_the_final_states_of_the_labelled_threads(labelled_threads: list[replies.Thread]) -> None:
    assert sum(each.if_accepted == each.want for each in labelled_threads) >= 16
    # The rest waits for a click: no word of "expected", of doubt or of "applied" moves a report by itself.
    by_themselves = sum(each.state == each.want for each in labelled_threads)
    assert by_themselves >= 9
    assert by_themselves >= sum(replies.labels_alone(each) == each.want for each in labelled_threads)
    closed = {"expected_wontfix", "invalid", "duplicate"}
    assert not closed & {each.state for each in labelled_threads}


@pytest.mark.long
def test_each_thread_is_read_without_what_was_learned_from_it_alone(labelled_threads: list[replies.Thread]) -> None:
    left_out = [reply for thread, _ in replies.cross_validated(labelled_threads) for reply in thread.replies]
    found = replies.figures(left_out)
    assert found.effects >= 48
    assert found.acted_rightly / found.acted > 0.75


def test_the_page_of_the_rules_is_what_the_rules_are() -> None:
    """`make reading` writes both."""
    assert (ROOT / "docs" / "reading.md").read_text() == page(measured())
    assert all(f"</a>{rule.name} |" in page(measured()) for rule in RULES)


def test_the_page_shows_the_words_as_they_are(client: Client) -> None:
    content = client.get("/help/reading/").content.decode()
    assert "\\|" not in content
    for phrase in ("<code>&lt;can you&gt; … &lt;run&gt;</code>", "recover*|fix*|restor*"):
        assert phrase in html.unescape(content) or phrase in content.replace("&#124;", "|").replace("&#42;", "*")


def test_what_the_page_says_of_the_invented_threads() -> None:
    assert measured()["invented"] == json.loads(json.dumps(invented_accuracy()))


def test_what_the_page_says_was_measured(labelled_threads: list[replies.Thread]) -> None:
    assert measured() == {**measured(), **json.loads(json.dumps(accuracy()))}


def test_rules_have_names_of_their_own() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)


def test_reading_is_deterministic(labelled_threads: list[replies.Thread], tmp_path: Path) -> None:
    assert replies.threads() == labelled_threads


# --- Damaged real replies: whatever happens to the bytes of a mail, it is read, deterministically and quickly ---

MUTATIONS = int(os.environ.get("PERFWORK_MUTATIONS", "300"))
STANDPOINTS = [MailContext(Relation.THREAD, role) for role in (Role.AUTHOR, Role.THIRD_PARTY)]
PIECES = (
    b"\n\n", b"\x00", b"\xff\xfe", b"> ", b"-- \n", b"\n---\n", b"=?utf-8?b?", b"<", b'"', b"(", b"; charset=utf-16",
    b"\nContent-Transfer-Encoding: base64\n", b"\nContent-Type: text/html\n", b"\nContent-Type: multipart/mixed\n",
    b"not ", b" if ", b"dropped it", b"?", b"...", b"#lkp ", b"From: ", b"\r", b"\t", b"\xe2\x80\x8b", b"=\n",
)  # fmt: skip


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """The mail with a few pieces cut out, doubled, moved or put in."""
    for _ in range(rng.randint(1, 8)):
        start = rng.randrange(len(raw) + 1)
        end = min(len(raw), start + rng.choice((1, 3, 20, 200, 5000)))
        piece = raw[start:end]
        where = rng.randrange(len(raw) + 1)
        raw = rng.choice(
            (
                raw[:start] + raw[end:],
                raw[:end] + piece + raw[end:],
                raw[:where] + piece + raw[where:],
                raw[:where] + rng.choice(PIECES) + raw[where:],
                raw[:start] + bytes(rng.randrange(256) for _ in range(3)) + raw[end:],
            )
        )
    return raw[:500_000]


@pytest.mark.fuzz
@pytest.mark.slow
def test_mutated_replies_are_read_the_same_each_time(shared: Path) -> None:
    raws = [mail.raw[:60_000] for mail in read_mbox(shared / "threads-dev.mbox")]
    rng = random.Random(6)
    slowest = 0.0
    for number in range(MUTATIONS):
        raw = mutated(rng.choice(raws), rng)
        started = time.process_time()
        reading = understand(raw, LKP)
        effects = [effects_of(reading, each) for each in STANDPOINTS]
        assert all(effects)
        slowest = max(slowest, time.process_time() - started)
        if number % 10 == 0:
            again = understand(raw, LKP)
            assert again == reading
            assert [effects_of(again, each) for each in STANDPOINTS] == effects
    assert slowest < 5


def test_a_mutated_thread_is_explained(shared: Path) -> None:
    raws = [mail.raw[:60_000] for mail in read_mbox(shared / "threads-dev.mbox")]
    rng = random.Random(7)
    for _ in range(max(1, MUTATIONS // 1000)):
        explained = list(explain([INVENTED.encode("latin-1"), *(mutated(raw, rng) for raw in raws)], LKP))
        assert len(explained) == len(raws) + 1


# --- What is recorded of a reply: what it means; where none of that acts, that it is a response ---

MERE = Effect(K.RESPONDED, Mode.AUTO, MERE_RESPONSE)
UNPROVEN = Effect(K.RESPONDED, Mode.SUGGEST, MERE_RESPONSE)
WORKS = Effect(K.WORKING, Mode.AUTO, "working_on_fix")
DOUBTS = Effect(K.DISPUTED, Mode.SUGGEST, "classifier")
PERHAPS = Effect(K.RESPONDED, Mode.SUGGEST, "classifier")
WANTS_TEST = Effect(K.TEST_ASKED, Mode.AUTO, "asks_test")


@pytest.mark.parametrize(
    ("effects", "recorded"),
    [
        ((DOUBTS, MERE), (DOUBTS, MERE)),
        ((PERHAPS, DOUBTS, MERE), (DOUBTS, MERE)),  # nobody is asked whether it is a response
        ((WORKS, PERHAPS, MERE), (WORKS, PERHAPS)),
        ((WANTS_TEST, MERE), (WANTS_TEST, MERE)),  # a request is no state of the report
        ((PERHAPS, UNPROVEN), (PERHAPS,)),  # without the proof that it needs, it is not recorded
        ((UNPROVEN,), (NOTHING,)),
        ((), (NOTHING,)),
    ],
)
def test_a_mere_response_is_recorded_where_nothing_else_acts(
    effects: tuple[Effect, ...], recorded: tuple[Effect, ...]
) -> None:
    assert settled(effects) == recorded
