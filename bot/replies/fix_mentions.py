"""The commit that a sentence names as a fix: its title in quotes, its sha, or both: 3b1f0c9d2e44 ("mm: a title")."""

from __future__ import annotations

import re

_TITLE = re.compile(r"\(?\"\s?((?:\[[^\]\"]{1,40}\] ?)?[^\s\":][^\"]{0,40}: [^\"]{4,200})\"")
_SHA = re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b")


def named_commit(sentence: str) -> tuple[str, str]:
    """Return title and sha, each "" if not named. A title has a subsystem before its colon; a sha has a letter and a
    digit, so that no number or word is taken for one.
    """
    title, sha = _TITLE.search(sentence), _SHA.search(sentence)
    return (title[1].strip() if title else "", sha[0] if sha else "")
