"""Lines that programs obey: trailers, commands, names of commits. Foreign values that begin one are set back. Pure.

b4 collects `Tested-by:` from replies, regzbot reads `#regzbot`, other robots `commit:`; all at the beginning of a line.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_OBEYED = re.compile(
    r"#\w|[a-z][a-z-]{0,40}-by\s*:|(?:closes|link|fixes|cc|bug|message-id|reverts|commit|from|subject|date)\s*:", re.I
)


def is_obeyed(line: str) -> bool:
    """Whether some program may take the line for an order."""
    return _OBEYED.match(line) is not None


def guarded(body: str, own: Collection[str]) -> str:
    """A body in which no line but our `own` is obeyed: others begin with a blank."""
    return "\n".join(f" {line}" if is_obeyed(line) and line not in own else line for line in body.split("\n"))
