"""Escape foreign text that programs would act on: trailers, commands, commit lines. Pure.

b4 collects `Tested-by:` from replies, regzbot reads `#regzbot`, other robots `commit:`; all at the start of a line.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_OBEYED = re.compile(
    r"#\w|[a-z][a-z-]{0,40}-by\s*:|(?:closes|link|fixes|cc|bug|message-id|reverts|commit|from|subject|date)\s*:", re.I
)


def is_obeyed(line: str) -> bool:
    """Return whether a program may act on the line."""
    return _OBEYED.match(line) is not None


def guarded(body: str, own: Collection[str]) -> str:
    """Return the body with a space before every line that programs act on, except for our `own` lines."""
    return "\n".join(f" {line}" if is_obeyed(line) and line not in own else line for line in body.split("\n"))
