"""Which report a mail answers by its words, where its Message-IDs lead nowhere.

Some mail programs send no In-Reply-To, or it names a mail that no archive has. The subject of a report names its
culprit, and so do the opening lines, which an answer quotes.
"""

from __future__ import annotations

import re

from bot.mail.message import ParsedMail
from bot.mail.patches import is_answer

# "3b1f0c9d2e:  vm-scan.throughput -12.8% regression"
REPORT_SUBJECT = r"\b([0-9a-f]{10,40})\s*:\s+(?:\S{1,200}\s+)?[-+]?\d+(?:\.\d+)?%\s+(?:regression|improvement)\b"
QUOTED_COMMIT = r"^[ \t]{0,8}>[> \t]{0,20}commit:?[ \t]+([0-9a-f]{12,40})\b"
_REPORT_SUBJECT = re.compile(REPORT_SUBJECT, re.I | re.A)
_QUOTED_COMMIT = re.compile(QUOTED_COMMIT, re.M | re.I | re.A)
_FIRST_LINES = 20_000  # characters


def answered_culprit(mail: ParsedMail) -> str:
    """Return the sha, perhaps abbreviated, of the culprit whose report this mail answers; "" if it doesn't say."""
    if not is_answer(mail.subject):
        return ""
    found = _REPORT_SUBJECT.search(" ".join(mail.subject.split()))
    if not found and not mail.ancestors:
        found = _QUOTED_COMMIT.search(mail.text[:_FIRST_LINES])
    return found[1].lower() if found else ""
