"""The tag block of a report (Reported-by, Closes, Link, #regzbot) and the link to its artifacts."""

from __future__ import annotations

import re
from dataclasses import dataclass

# "| Reported-by: kernel test robot <lkp@intel.com>", since 2023 with a bar before it
_TAG = re.compile(r"^\|?[ \t]{0,20}(Reported-by|Closes|Link):[ \t]{1,10}(\S.*)$", re.M | re.I)
_REGZBOT = re.compile(r"^\|?[ \t]{0,10}#regzbot[ \t]+(\S.{0,400}?)[ \t]*$", re.M)
_ARTIFACTS = re.compile(
    r"materials to reproduce (?:is|are) available at:\s{1,4}(https?://\S{5,300})|^(https://download\.01\.org/0day-ci/archive/\S+)",
    re.M,
)


@dataclass(frozen=True, slots=True)
class Tags:
    """The values as written, "" if missing."""

    reported_by: str = ""
    closes: str = ""
    link: str = ""
    regzbot: str = ""  # a command to regzbot
    artifacts_url: str = ""


def find_tags(text: str) -> Tags:
    """Return the first of each in the text from the commit on."""
    values: dict[str, str] = {}
    for found in _TAG.finditer(text):
        values.setdefault(found[1].capitalize(), found[2].rstrip(" \t"))
    regzbot = _REGZBOT.search(text)
    artifacts = _ARTIFACTS.search(text)
    return Tags(
        reported_by=values.get("Reported-by", ""),
        closes=values.get("Closes", ""),
        link=values.get("Link", ""),
        regzbot=regzbot[1] if regzbot else "",
        artifacts_url=(artifacts[1] or artifacts[2]) if artifacts else "",
    )
