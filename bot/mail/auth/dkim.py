"""Verify DKIM signatures (RFC 6376) with keys that we already have, without asking DNS."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from bot.mail.auth.trust_anchors import TrustAnchors
from bot.mail.auth.verdict import UNPROVEN, AuthVerdict, Trust

Headers = Sequence[tuple[str, str]]  # names in lower case, from top to bottom
IDENTIFYING = 64  # characters of a signature
MOST = 5  # signatures per mail; lists and forwarders add their own
_TAG = re.compile(r"(?:\A|;)\s*([a-z]+)\s*=\s*([^;]*)")
# Without these a signature proves nothing. What else it covers limits what the mail may do: a report is found by signed
# headers only (replies/report_lookup.py), and a copy under another Message-ID is known by its signature, since
# kernel.org does not sign the Message-ID.
MUST_SIGN = frozenset({"from", "date"})


def verified_by_dkim(raw: bytes, headers: Headers, address: str, at: float, anchors: TrustAnchors) -> Trust:
    """Return PASS for the first valid signature of the writer's domain; FAIL if its key is known but none is valid."""
    failed = UNPROVEN
    for number, tags in enumerate(signatures(headers)):
        domain, selector = tags.get("d", "").lower(), tags.get("s", "").lower()
        if not domain or not selector or not anchors.aligned(address, domain):
            continue
        record = anchors.key(f"{selector}._domainkey.{domain}")
        if not record:
            continue
        signed = signed_names(tags)
        if not signed:
            continue  # only a part of it is signed
        if _is_valid(raw, number, record, at):
            return Trust(AuthVerdict.PASS, f"dkim {domain}", signed, tags.get("b", "")[:IDENTIFYING])
        failed = Trust(AuthVerdict.FAIL, f"dkim {domain}")
    return failed


def is_signed_for(address: str, headers: Headers, anchors: TrustAnchors) -> bool:
    """Whether any signature claims to be of the writer's own domain, whether or not its key is known."""
    return any(anchors.aligned(address, tags.get("d", "")) for tags in signatures(headers))


def signatures(headers: Headers) -> list[dict[str, str]]:
    """Return the tags of each signature, in the order in which dkimpy numbers them."""
    values = [value for name, value in headers if name == "dkim-signature"]
    return [{tag: "".join(text.split()) for tag, text in _TAG.findall(value[:8000])} for value in values[:MOST]]


def signed_names(tags: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the headers that a signature covers; empty if these, or the body, are too few to count."""
    names = frozenset(name.lower() for name in tags.get("h", "").split(":"))
    return names if names >= MUST_SIGN and "l" not in tags else frozenset()


def _is_valid(raw: bytes, number: int, record: str, at: float) -> bool:
    from bot.mail.auth.dkimpy import verify  # it takes 70 ms to import, and few mails have a key that we know

    return verify(raw, number, record, at)
