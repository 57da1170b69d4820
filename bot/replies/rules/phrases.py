"""Phrases: the readable notation of what the rules look for, compiled to regular expressions.

`a|b` one of these words (`_` is a space within one) · `word*` any ending · `word?` optional ·
`…` up to three words in between, `……` up to eight · `<name>` any of that list in vocabulary.py · `^` start of the
sentence, `$` end. Case is ignored; a comma, a bracket or a quotation mark may stand between two words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bot.replies.rules.vocabulary import VOCABULARY

_BETWEEN = r"[,;:\"'()\]]{0,2} [\"'(\[]{0,2}"
_UNIT = r"(?:<[^<>]+>|/(?:\\.|[^/\\])+/|[^\s|<>/?]+)"
_TOKEN = re.compile(rf"{_UNIT}(?:\|{_UNIT})*\??")
_GAPS = {"…": r"(?: \S{1,60}){0,3}?", "……": r"(?: \S{1,60}){0,8}?"}


def expression(phrases: Iterable[str]) -> str:
    """Return one regular expression for all phrases; case is ignored.

    Gaps are bounded, so that matching takes time linear in the text.
    """
    return "|".join(f"(?:{_pattern(each)})" for each in phrases)


def _pattern(phrase: str) -> str:
    tokens = _TOKEN.findall(phrase)
    if left := _TOKEN.sub("", phrase).strip():
        raise ValueError(f"{phrase!r}: {left!r} is not part of the notation")
    starts, ends = tokens[0] == "^", tokens[-1] == "$"
    tokens = tokens[starts : len(tokens) - ends]
    pattern = r"\A[\"'(]?" if starts else r"(?<![\w'-])"
    needs_space = False
    for token in tokens:
        if token in _GAPS:
            pattern += _GAPS[token]
            continue
        optional = token.endswith("?")
        piece = (_BETWEEN if needs_space else "") + _word(token.removesuffix("?"))
        if optional and not needs_space:  # at the beginning, its space is optional with it
            pattern += f"(?:{piece}{_BETWEEN})?"
            continue
        pattern += f"(?:{piece})?" if optional else piece
        needs_space = True
    return pattern + (r"[.!?,;:\"')]*\Z" if ends else r"(?!\w)")


def _word(token: str) -> str:
    alternatives = [each for unit in re.findall(_UNIT, token) for each in _unit(unit)]
    return f"(?:{'|'.join(alternatives)})"


def _unit(unit: str) -> list[str]:
    if unit[0] == "<":
        return [_alternative(each) for each in VOCABULARY[unit[1:-1]]]
    return [_alternative(unit)]


def _alternative(text: str) -> str:
    """Return the pattern of a word, of several words, or of a regular expression between slashes."""
    if text[0] == "/" and text[-1] == "/":
        return text[1:-1]
    return " ".join(re.escape(word).replace(r"\*", r"\w*") for word in re.split(r"[ _]", text))
