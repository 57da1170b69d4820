"""Authentication-Results headers (RFC 8601) that only a server that we trust can have added.

Anyone can write such a header into their own mail. It counts only above the Received line with which the trusted
server accepted the mail from outside: what is above that line was added later, by trusted servers (as
smtp.subspace.kernel.org does, in the mail of 2024 to 2026).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.mail.auth.trust_anchors import TrustAnchors
from bot.mail.auth.verdict import UNPROVEN, AuthVerdict, Trust

MOST = 200  # headers
_BY = re.compile(r"\bby\s+([\w.-]{1,250})", re.I)
# "from <HELO name> (<DNS name> [<IP address>])"; from a program on the same host: "… by x with LMTP".
_CLIENT = re.compile(r"\A\s*from\s+[^\s()]{1,250}\s+\(([\w.-]{0,250})\s?\[([\w:.]{2,60})\]\)", re.I)
_LOCAL = re.compile(r"\A\s*from\s+[^\s()]{1,250}\s+by\s+[\w.-]{1,250}\s+with\s+(?:LMTP|local)\b", re.I)
_LOOPBACK = re.compile(r"(?:IPv6:)?(?:127\.[\d.]{5,11}|::1)\Z", re.I)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def verified_by_server(headers: Sequence[tuple[str, str]], address: str, anchors: TrustAnchors) -> Trust:
    """Return the verdict of the trusted server. `headers`: from top to bottom, names in lower case."""
    domain = address.rpartition("@")[2].lower()
    passed = UNPROVEN
    for result in _results(headers, anchors):
        signer, sender = result.properties.get("header.d", ""), result.properties.get("header.from", "")
        if result.method == "dmarc" and sender == domain:
            if result.outcome == "fail":
                return Trust(AuthVerdict.FAIL, f"{result.server}: dmarc {domain}")  # whatever else passed
            if result.outcome == "pass":
                passed = Trust(AuthVerdict.PASS, f"{result.server}: dmarc {domain}")
        if result.method == "dkim" and result.outcome == "pass" and signer and anchors.aligned(address, signer):
            passed = passed if passed.proven else Trust(AuthVerdict.PASS, f"{result.server}: dkim {signer}")
    return passed


@dataclass(frozen=True, slots=True)
class _Result:
    """One result: "dkim=pass header.d=dev.example", with its properties."""

    server: str
    method: str
    outcome: str
    properties: Mapping[str, str]


def _results(headers: Sequence[tuple[str, str]], anchors: TrustAnchors) -> list[_Result]:
    """Return the results of trusted servers, down to where the mail came in from outside; [] if that is not shown."""
    found: list[_Result] = []
    for name, value in headers[:MOST]:
        if name == "authentication-results":
            found.extend(each for each in _read(value) if each.server in anchors.servers)
        elif name == "received":
            by = _BY.search(value)
            if not by or not _is_trusted(by[1], anchors):
                return []  # no trusted server accepted the mail: anyone may have written these headers
            client = _CLIENT.match(value)
            is_internal = client and (_LOOPBACK.match(client[2]) or _is_trusted(client[1], anchors))
            if not is_internal and not _LOCAL.match(value):
                return found
    return []


def _read(value: str) -> Iterator[_Result]:
    """Yield the results of one header. Quoted strings and comments may be the sender's, and are removed first."""
    server, *results = _without_comments(_QUOTED.sub('"', value)).split(";")
    for each in results:
        method, *fields = each.split() or [""]
        name, equals, outcome = method.partition("=")
        if equals:
            pairs = (part.partition("=") for part in fields)
            properties = {key.lower(): text.lower() for key, _, text in reversed(list(pairs))}
            yield _Result((server.split() or [""])[0].lower(), name.lower(), outcome.lower(), properties)


def _without_comments(value: str) -> str:
    """Return the value without comments, which may nest; an unclosed one removes all the rest."""
    kept, depth = [], 0
    for char in value[:20_000]:
        depth += char == "("
        if not depth:
            kept.append(char)
        depth -= char == ")" and depth > 0
    return "".join(kept)


def _is_trusted(host: str, anchors: TrustAnchors) -> bool:
    """Whether a host is one of the trusted servers, or below an entry that begins with a dot: ".kernel.org"."""
    host = host.lower()
    return host in anchors.servers or any(each[0] == "." and host.endswith(each) for each in anchors.servers if each)
