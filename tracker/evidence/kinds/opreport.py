"""`opreport`, with or without `-l`: functions, or images, by their share of the samples (OProfile manual, chapter 4).

Lines hold [vma] samples % [image name] [app name] [symbol name], as their heading says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracker.evidence.listing import Listing, Row, number, summed

NAME = "opreport"
_HEADING = re.compile(r"^(?:vma +)?samples *\|? +%.*$", re.M)
_BARE = re.compile(r"^ *samples\| +%\|", re.M)
_COUNTED = re.compile(r"^Counted (\w{1,60}) events", re.M)


def claims(head: str) -> bool:
    return bool(_HEADING.search(head) or _BARE.search(head))


def parse(text: str) -> Listing:
    counted = _COUNTED.search(text)
    title = counted[1] if counted else "samples"
    return Listing(title, ("samples", "share"), summed(_rows(text)), is_share=True)


def _rows(text: str) -> Iterator[Row]:
    names, has_address = 0, False
    for line in text.splitlines():
        if _HEADING.match(line) or _BARE.match(line):
            has_address = line.startswith("vma")
            names = max(1, len(re.findall(r"(?:image|app|symbol) name", line)))
            continue
        words = line[:2000].split(None, 1 + has_address + names)[has_address:]
        if not names or len(words) < 3:
            continue
        samples, share = number(words[0]), number(words[1])
        if samples is not None and share is not None and 0 <= share <= 100:
            yield Row(words[-1].strip(), (samples, share), words[2] if len(words) > 3 else "")
