"""Damaged real replies: whatever happens to the bytes of a mail, it is read, deterministically and quickly."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from benchmarks.accuracy.replies import LKP
from bot.archives.files import read_mbox
from bot.explain import explain
from bot.replies.effects import effects_of
from bot.replies.reading import understand
from bot.replies.rules.notation import MailContext, Relation
from tests.bot.robot_reports.test_robot_reports import INVENTED
from tracker.domain.events import Role

MUTATIONS = int(os.environ.get("PERFWORK_MUTATIONS", "300"))
STANDPOINTS = [MailContext(Relation.THREAD, role) for role in (Role.AUTHOR, Role.THIRD_PARTY)]
PIECES = (
    *(b"\n\n", b"\x00", b"\xff\xfe", b"> ", b"-- \n", b"\n---\n", b"=?utf-8?b?", b"<", b'"', b"(", b"; charset=utf-16"),
    *(b"\nContent-Transfer-Encoding: base64\n", b"\nContent-Type: text/html\n", b"\nContent-Type: multipart/mixed\n"),
    *(b"not ", b" if ", b"dropped it", b"?", b"...", b"#lkp ", b"From: ", b"\r", b"\t", b"\xe2\x80\x8b", b"=\n"),
)


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
