"""Authentication-Results headers (RFC 8601) that only a server that we trust can have added.

Anyone can write such a header into their own mail. It counts only above the Received line with which the trusted
server accepted the mail from outside: what is above that line was added later, by trusted servers (as
smtp.subspace.kernel.org does, in the mail of 2024 to 2026).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.mail.auth.dkim import IDENTIFYING, Headers, signatures, signed_names
from bot.mail.auth.dkim import MOST as MOST_SIGNATURES
from bot.mail.auth.trust_anchors import TrustAnchors
from bot.mail.auth.verdict import UNPROVEN, AuthVerdict, Trust, joined

MOST = 200  # headers
ONLY_WRITER = frozenset({"from"})  # what every valid signature covers (RFC 6376 section 5.4)
_BY = re.compile(r"\bby\s+([\w.-]{1,250})", re.I)
# "from <HELO name> (<DNS name> [<IP address>])"; from a program on the same host: "… by x with LMTP".
_CLIENT = re.compile(r"\A\s*from\s+[^\s()]{1,250}\s+\(([\w.-]{0,250})\s?\[([\w:.]{2,60})\]\)", re.I)
_LOCAL = re.compile(r"\A\s*from\s+[^\s()]{1,250}\s+by\s+[\w.-]{1,250}\s+with\s+(?:LMTP|local)\b", re.I)
_LOOPBACK = re.compile(r"(?:IPv6:)?(?:127\.[\d.]{5,11}|::1)\Z", re.I)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_SIGNATURE = re.compile(r'"([A-Za-z0-9+/]{1,90}=*)"')  # in a quoted string nothing else is of use


def verified_by_server(headers: Headers, address: str, anchors: TrustAnchors) -> Trust:
    """Return the verdict of the trusted server. `headers`: from top to bottom, names in lower case.

    A server says that a signature is valid, not what it covers: that is read from the signature. Mail that came from
    the writer's own server (SPF) is proven as a whole.
    """
    domain = address.rpartition("@")[2].lower()
    results = _results(headers, anchors)
    dmarc = [each for each in results if each.method == "dmarc" and each.properties.get("header.from") == domain]
    if failed := next((each for each in dmarc if each.outcome == "fail"), None):
        return Trust(AuthVerdict.FAIL, f"{failed.server}: dmarc {domain}")  # whatever else passed
    policy = next((each for each in dmarc if each.outcome == "pass"), None)
    if policy and any(_came_from(each, address, anchors) for each in results):
        return Trust(AuthVerdict.PASS, f"{policy.server}: dmarc {domain}")
    proofs = []
    for each in results:
        signer = each.properties.get("header.d", "")
        if each.method == "dkim" and each.outcome == "pass" and signer and anchors.aligned(address, signer):
            by = f"{each.server}: dkim {signer}"
            proofs.append(_signed_by(signer, each.properties.get("header.b", ""), by, headers))
    if policy and not proofs:
        return Trust(AuthVerdict.PASS, f"{policy.server}: dmarc {domain}", ONLY_WRITER)
    return joined(proofs)


def _came_from(result: _Result, address: str, anchors: TrustAnchors) -> bool:
    """Whether the server saw the mail come from a server of the writer's own domain."""
    sender = result.properties.get("smtp.mailfrom", "").rpartition("@")[2]
    return result.method == "spf" and result.outcome == "pass" and anchors.aligned(address, sender)


def _signed_by(signer: str, beginning: str, by: str, headers: Headers) -> Trust:
    """Return the proof of a signature that the server found valid; `beginning`: of the signature (RFC 6008), if given.

    Of several that it may have meant, only what all of them cover counts. Two that begin alike are no accident.
    """
    if sum(name == "dkim-signature" for name, _ in headers) > MOST_SIGNATURES:
        return Trust(AuthVerdict.PASS, by, ONLY_WRITER)  # the one that it means may not be among those that we read
    ones = [tags for tags in signatures(headers) if tags.get("d", "").lower() == signer]
    ones = [tags for tags in ones if tags.get("b", "").lower().startswith(beginning)]
    if (beginning and len(ones) > 1) or any("l" in tags for tags in ones):
        return UNPROVEN  # of the body only the beginning is signed, or somebody made up a second one
    names = [signed_names(tags) for tags in ones]
    signed = frozenset.intersection(*names) if names else frozenset()
    signature = ones[0].get("b", "")[:IDENTIFYING] if len(ones) == 1 else ""
    return Trust(AuthVerdict.PASS, by, signed or ONLY_WRITER, signature)


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
    server, *results = _without_comments(_QUOTED.sub(_unquoted, value)).split(";")
    for each in results:
        method, *fields = each.split() or [""]
        name, equals, outcome = method.partition("=")
        if equals:
            pairs = (part.partition("=") for part in fields)
            properties = {key.lower(): text.lower() for key, _, text in reversed(list(pairs))}
            yield _Result((server.split() or [""])[0].lower(), name.lower(), outcome.lower(), properties)


def _unquoted(quoted: re.Match[str]) -> str:
    found = _SIGNATURE.fullmatch(quoted[0])
    return found[1] if found else '"'


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
