"""A suggestion's evidence with its surrounding text. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

AROUND = 240  # characters on each side


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Evidence in context; `before` and `after` are empty if it was not found in the text."""

    before: str
    evidence: str
    after: str


def excerpt(own_text: str, quote: str) -> Excerpt:
    """Return the evidence with its context in the mail. White space may differ, since rules read joined lines."""
    parts = quote.split()[:80]
    if not parts:
        return Excerpt("", quote, "")
    found = re.search(r"\s+".join(re.escape(part) for part in parts), own_text)
    if not found:
        return Excerpt("", quote, "")
    before, after = own_text[: found.start()], own_text[found.end() :]
    return Excerpt(_tail(before), " ".join(found[0].split()), _head(after))


def _tail(text: str) -> str:
    text = " ".join(text[-2 * AROUND :].split())
    return text if len(text) <= AROUND else f"… {text[-AROUND:].partition(' ')[2]}"


def _head(text: str) -> str:
    text = " ".join(text[: 2 * AROUND].split())
    return text if len(text) <= AROUND else f"{text[:AROUND].rpartition(' ')[0]} …"
