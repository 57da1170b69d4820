"""Authentication-Results (RFC 8601) of a server that we trust, where only that server can have put them.

Anybody can write such a header into his mail. One counts that stands above the Received line with which the trusted
server took the mail from outside: what is above it was added later, by servers that are trusted, too (so
smtp.subspace.kernel.org does, in the mail of 2024 to 2026).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bot.replies.trust.believed import Believed
from bot.replies.trust.verdict import UNPROVEN, Trust, Verdict

MOST = 200  # headers that are looked at
_BY = re.compile(r"\bby\s+([\w.-]{1,250})", re.I)
# "from <what it calls itself> (<what DNS calls it> [<its address>])"; from a program on the same host without these.
_CLIENT = re.compile(r"\A\s*from\s+([^\s()]{1,250})\s+(?:\(([\w.-]{0,250})\s?\[([\w:.]{2,60})\]\)|(?=by\s))", re.I)
_LOOPBACK = re.compile(r"(?:IPv6:)?(?:127\.[\d.]{5,11}|::1)\Z", re.I)
_COMMENT = re.compile(r"\([^()]{0,500}\)")
_DKIM = re.compile(r"\A\s*dkim\s*=\s*(\w+)\b.{0,500}?\bheader\.d\s*=\s*\"?([\w.-]{1,250})", re.I | re.S)
_DMARC = re.compile(r"\A\s*dmarc\s*=\s*(\w+)\b.{0,500}?\bheader\.from\s*=\s*\"?([\w.-]{1,250})", re.I | re.S)


def said_by_server(headers: Sequence[tuple[str, str]], address: str, believed: Believed) -> Trust:
    """What the trusted server found, of the headers from top to bottom (names in lower case)."""
    domain = address.rpartition("@")[2].lower()
    failed = UNPROVEN
    for server, result in _results(headers, believed):
        if dmarc := _DMARC.match(result):
            if dmarc[2].lower() != domain:
                continue
            if dmarc[1].lower() == "pass":
                return Trust(Verdict.PASS, f"{server}: dmarc {domain}")
            failed = Trust(Verdict.FAIL, f"{server}: dmarc {domain}") if dmarc[1].lower() == "fail" else failed
            continue
        signed = _DKIM.match(result)
        if signed and signed[1].lower() == "pass" and believed.aligned(address, signed[2]):
            return Trust(Verdict.PASS, f"{server}: dkim {signed[2].lower()}")
    return failed


def _results(headers: Sequence[tuple[str, str]], believed: Believed) -> Iterator[tuple[str, str]]:
    """The results of trusted servers, each with the server's name, down to where the mail came in from outside."""
    found: list[tuple[str, str]] = []
    for name, value in headers[:MOST]:
        if name == "authentication-results":
            server, _, results = _COMMENT.sub(" ", value).strip().partition(";")
            server = (server.split() or [""])[0].lower()
            if server in believed.servers:
                found.extend((server, each) for each in results.split(";"))
        elif name == "received":
            by = _BY.search(_COMMENT.sub(" ", value))
            if not by or not _is_ours(by[1], believed):
                return  # from here on it is anybody's word
            client = _CLIENT.match(value)
            if not client or not (_LOOPBACK.match(client[3] or "") or _is_ours(client[2] or client[1], believed)):
                yield from found
                return
    # No such line: nothing shows that a trusted server took it in.


def _is_ours(host: str, believed: Believed) -> bool:
    """Whether a host is a trusted server, or one beside it: lore.kernel.org beside subspace.kernel.org."""
    host = host.lower()
    beside = {".".join(server.split(".")[-2:]) for server in believed.servers if server.count(".") >= 2}
    return host in believed.servers or any(host.endswith(f".{domain}") for domain in beside)
