"""Stable short identifiers: the key of a scenario, the tag of a report. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping


def scenario_key(suite: str, params: Mapping[str, str]) -> str:
    """Return the key of a scenario, whatever the order of its parameters.

    It holds a digest, since the parameters may be kilobytes, too long for an index.
    """
    canonical = json.dumps([suite, sorted(params.items())], ensure_ascii=False, separators=(",", ":"))
    return f"{suite[:60]} {hashlib.sha256(canonical.encode('utf-8', 'replace')).hexdigest()[:24]}"


def tag_of(sha: str) -> str:
    """Return the 16 hexadecimal digits that identify a report in email addresses: perfbot+7d3e91c0a45b28f6@…"""
    return hashlib.sha256(b"perfwork report " + sha.encode()).hexdigest()[:16]
