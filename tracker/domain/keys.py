"""Short texts that name a thing for good: the key of a scenario, the tag of a report. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping


def scenario_key(suite: str, params: Mapping[str, str]) -> str:
    """One short text for one scenario, whatever the order its parameters were given in.

    A digest, since an index can't hold the parameters themselves: they may be kilobytes.
    """
    told = json.dumps([suite, sorted(params.items())], ensure_ascii=False, separators=(",", ":"))
    return f"{suite[:60]} {hashlib.sha256(told.encode('utf-8', 'replace')).hexdigest()[:24]}"


def tag_of(sha: str) -> str:
    """The 16 hexadecimal digits that name the report about a culprit in addresses: perfbot+7d3e91c0a45b28f6@…"""
    return hashlib.sha256(b"perfwork report " + sha.encode()).hexdigest()[:16]
