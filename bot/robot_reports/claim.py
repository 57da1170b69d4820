"""What a report claims: "noticed a -12.4% regression of METRIC on:", and the commit below it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from bot.mail.quoting import holds_older_mail
from bot.robot_reports.subject import ReportSubject

# The sentence may be wrapped.
_NOTICED = re.compile(
    r"\bnoticed\s+an?\s+(?P<percent>[-+]?\d+(?:\.\d+)?(?:e\+?\d+)?)%\s+(?P<verdict>regression|improvement)\s+of\s+"
    r"(?P<metric>\S{1,200}?),?\s+(?:due\s+to\s+(?:the\s+)?(?:following\s+)?commit|on)\s{0,3}:"
)
_QUOTED = re.compile(r"[^\n]*[>|]|[^\n]{121}")  # the text before it on its line
_COMMIT = re.compile(r'^[ \t]{0,4}commit:[ \t]+(?P<sha>[0-9a-f]{40})\s+\("(?P<title>.{0,300}(?:\n.{1,100})?)"\)', re.M)
_MOST = 20  # sentences examined


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence and its commit. `percent` is as written; `start` and `end` are offsets of the sentence's start and
    the commit's end in the text.
    """

    percent: str
    verdict: str
    metric: str
    culprit: str
    title: str
    between: str  # the text between them
    start: int
    end: int


def find_claims(text: str) -> tuple[Claim, ...]:
    """Return the claims of a text in order, one per commit: the nearest sentence above it.

    Text below "-----Original Message-----" is quoted, whatever its lines begin with.
    """
    found: dict[int, Claim] = {}
    for noticed, _ in zip(_NOTICED.finditer(text), range(_MOST), strict=False):
        line = text.rfind("\n", 0, noticed.start()) + 1
        if _QUOTED.match(text[line : noticed.start()]) or not isfinite(float(noticed["percent"])):
            continue
        if not found and holds_older_mail(text[: noticed.start()]):
            return ()
        commit = _COMMIT.search(text, noticed.end())
        if not commit:
            break
        found[commit.start()] = Claim(
            percent=noticed["percent"],
            verdict=noticed["verdict"],
            metric=noticed["metric"],
            culprit=commit["sha"],
            title=" ".join(commit["title"].split("\n")),
            between=text[noticed.end() : commit.start()].strip(),
            start=line,
            end=commit.end(),
        )
    return tuple(found.values())


def chosen(claims: Sequence[Claim], subject: ReportSubject) -> tuple[Claim, bool]:
    """Return the claim that the mail is about, and whether that is certain: it is the only one, or the subject names
    it.
    """
    if len(claims) == 1:
        return claims[0], True
    named = [
        claim
        for claim in claims
        if subject.sha and claim.culprit.startswith(subject.sha) and claim.metric == (subject.metric or claim.metric)
    ]
    return (named[0], True) if len(named) == 1 else (claims[0], False)
