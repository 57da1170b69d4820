"""How replies are read, compared with hand-made labels; and the generated page of the rules."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest
from django.test import Client

from benchmarks.accuracy import replies
from benchmarks.accuracy.reading import accuracy
from bot.documentation import measured, page
from bot.replies.rules import RULES
from tests.conftest import ROOT


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


def test_what_the_page_says_was_measured(labelled_threads: list[replies.Thread]) -> None:
    assert measured() == {**measured(), **json.loads(json.dumps(accuracy()))}


def test_rules_have_names_of_their_own() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)


def test_reading_is_deterministic(labelled_threads: list[replies.Thread], tmp_path: Path) -> None:
    assert replies.threads() == labelled_threads
