"""What is recorded of a reply: what it means; where none of that acts, that it is a response."""

from __future__ import annotations

import pytest

from bot.replies.effects import MERE_RESPONSE, settled
from bot.replies.rules.notation import NOTHING, Effect, Mode
from tracker.domain.events import EventKind as K

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
