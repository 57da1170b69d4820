"""Courtesy: greetings, thanks and good wishes, which say nothing about the report."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bot.replies.prose.sentences import Sentence

_WORDS = re.compile(
    r"(?:hi|hello|hey|thanks?|thank you|thx|cheers|ok|okay|ack|fyi|best|regards|sincerely|a lot|very much|so much|for"
    r"|the|this|your|report|reports|reporting|information|it|all|many|much|you|and|br|kind|great|nice|good|cool|awesome"
    r"|wonderful|perfect|test|testing|tests|confirm|confirming|confirmation|checking|trying|letting|me|us|know|looking"
    r"|quick|prompt|reply|response|help|again|both|folks|guys|lots|of|appreciated|indeed|well|work|job)\b|[\W\d_]+",
    re.I,
)
_POLITE = re.compile(r"(?:many |a lot of )?(?:thanks?|thank you|sorry|got it|glad|you are welcome|hope)\b", re.I)
_GREETING = re.compile(r"(?:thanks?|thank you|hi|hello|sorry|ok|okay)\b[^.]{0,30}[,.!]?\Z", re.I)
_SALUTATION = re.compile(r"(?:hi|hello|hey|hallo|dear)\b[^.?!:]{0,40}[,.!]?", re.I)
MAX_TEXT = 50_000
MAX_NAMES = 200


def has_content(text: str, names: Iterable[str] = ()) -> bool:
    """Whether a text says anything besides courtesy and the names of people on the thread."""
    people = "|".join(re.escape(name) for name in sorted({*names} - {""})[:MAX_NAMES])
    text = text[:MAX_TEXT]
    text = re.sub(rf"\b(?:{people})\b", "", text, flags=re.I) if people else text
    end = 0
    while courtesy := _WORDS.match(text, end):
        end = courtesy.end()
    return end < len(text)


def is_salutation(text: str) -> bool:
    """Whether a sentence is a salutation: "Hi Lee," or "Dear all,"."""
    return bool(_SALUTATION.fullmatch(text))


def is_polite(sentence: Sentence) -> bool:
    """Whether a sentence begins with thanks, an apology or a wish; it may say more after that."""
    return bool(_POLITE.match(sentence.text))


def is_greeting(sentence: Sentence) -> bool:
    """Whether a sentence is only a greeting or thanks."""
    return bool(_GREETING.match(sentence.text))
