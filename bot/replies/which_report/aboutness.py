"""Does a mail speak to a regression, and is its patch a candidate fix? What stands around a report says neither.

A patch that closes a report has a thread of its own, whose review, next versions and backports are about the patch
(judged by hand in a whole archive: of 74 patches filed under reports, 63 were no fixes).
"""

from __future__ import annotations

import re

from bot.mail.patches import is_answer, posted_title
from bot.replies.effect import Relation, Standpoint
from bot.replies.reading import Reading

CONTEXT = frozenset({Relation.FIX_THREAD, Relation.PATCH_THREAD})
_BRACKETS = re.compile(r"\[([^\]]{0,100})\]")
# "[PATCH 6.6.y 3/7]", "[PATCH AUTOSEL 5.10 04/11]", "[PATCH OLK-5.10]"; "for-6.7" and "6.7-rc2" name a coming release.
_BACKPORT = re.compile(
    r"\b(?:AUTOSEL|stable|backport|OLK|openEuler)\b|(?<![\w.-])v?[2-9]\.\d{1,2}(?:\.y)?(?![\w.-])", re.I
)
_SERIES = re.compile(r"\b\d{1,3}/0*([1-9]\d{0,2})\b")
_SPEAKS = re.compile(r"\bregress|\b(?:kernel )?test robot\b|\b0-?day\b|\blkp\b", re.I)
_CURE = r"(?:fix|solv|resolv|address|eliminat|cur|recover|restor|mitigat|reduc|alleviat|avoid|remov)(?:e|es|ed|ing|s)?"
_WORD = r"[\w%-]+(?:\.[\w%-]+)*"
# "This fixes the regression", "the regression is gone", "to recover the 25% will-it-scale regression".
_CURES = re.compile(
    rf"\b{_CURE}\b(?:[^\w.;]+(?!no\b|not\b){_WORD}){{0,8}}?\W+regress\w*"
    rf"|\bregress\w*(?:[^\w.;]+(?!no\b|not\b){_WORD}){{0,6}}?\W+(?:gone|disappear(?:s|ed)?|{_CURE})\b",
    re.I,
)
_LONGEST = 50_000  # characters of a mail that are searched


def speaks_to(reading: Reading, standpoint: Standpoint) -> bool:
    """Whether the writer's own words name the regression, who reported it, or what was measured."""
    text = reading.own_text[:_LONGEST]
    if _SPEAKS.search(text):
        return True
    name = standpoint.benchmark
    return len(name) > 2 and re.search(rf"\b{re.escape(name)}\b", text, re.I) is not None


def cures(reading: Reading) -> bool:
    """Whether the writer says that a regression is cured."""
    return _CURES.search(" ".join(reading.own_text[:_LONGEST].split())) is not None


def is_backport(subject: str) -> bool:
    """Whether a subject says that the patch goes to a stable tree, or to a distribution's."""
    return any(_BACKPORT.search(each) for each in _BRACKETS.findall(subject[:300]))


def is_in_series(subject: str) -> bool:
    """Whether a mail posts one patch of several, "[PATCH v3 2/5]"; an answer to such a posting does not."""
    if is_answer(subject):
        return False
    found = (_SERIES.search(each) for each in _BRACKETS.findall(subject[:300]))
    return any(each and int(each[1]) > 1 for each in found)


def is_candidate_fix(reading: Reading, standpoint: Standpoint) -> bool:
    """Whether the patch in a mail is a candidate fix of a report.

    Never a backport, whatever it carries; the culprit itself, in an earlier or a later version, and patches around the
    report, only if the writer says that they cure the regression.
    """
    subject = reading.mail.subject
    if is_backport(subject):
        return False
    title = reading.patches[0].title or posted_title(subject)
    if (standpoint.title and title == standpoint.title) or standpoint.relation in CONTEXT:
        return cures(reading)
    improves = standpoint.improvement and standpoint.relation is Relation.CULPRIT  # it may fix anything but a slowdown
    if improves or (standpoint.relation is Relation.THREAD and is_in_series(subject)):
        return speaks_to(reading, standpoint)
    return standpoint.relation is not Relation.LINK or cures(reading)
