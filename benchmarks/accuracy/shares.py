"""A share of right readings with its interval: printed, and kept for the one table that `make accuracy` writes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

KEPT = "PERFWORK_ACCURACY_SHARES"  # names the file to which shares are added


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many were right. `judge`: by whom or what; `unseen`: whether the code was made without these."""

    what: str
    right: int
    of: int
    judge: str
    unseen: bool

    def cells(self) -> tuple[str, str, str, str, str]:
        """Return what, right, the share with its interval, the judge, and whether the sample was unseen."""
        low, high = bounds(self.right, self.of)
        share = f"{self.right / self.of:.1%} ({low:.0%} to {high:.0%})" if self.of else "none"
        return self.what, f"{self.right:,} of {self.of:,}", share, self.judge, "yes" if self.unseen else "no"


def bounds(hits: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, by Wilson."""
    if not of:
        return 0.0, 1.0
    z, share = 1.96, hits / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    reach = z * (share * (1 - share) / of + z * z / (4 * of * of)) ** 0.5 / (1 + z * z / of)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def share(what: str, right: int, of: int, judge: str, *, unseen: bool) -> None:
    """Keep a share for the table."""
    if path := os.environ.get(KEPT):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(Share(what, right, of, judge, unseen))) + "\n")
