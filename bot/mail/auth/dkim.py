"""Verify DKIM signatures (RFC 6376) with keys that we already have, without asking DNS."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import dkim

from bot.mail.auth.trust_anchors import TrustAnchors
from bot.mail.auth.verdict import UNPROVEN, AuthVerdict, Trust

Headers = Sequence[tuple[str, str]]  # names in lower case, from top to bottom
MOST = 5  # signatures per mail; lists and forwarders add their own
_TAG = re.compile(r"(?:\A|;)\s*([a-z]+)\s*=\s*([^;]*)")
# These must be signed where present, or the mail could be replayed into another thread. The Message-ID is not among
# them, since kernel.org does not sign it.
MUST_SIGN = frozenset({"from", "date"})
WHERE_PRESENT = frozenset({"subject", "in-reply-to", "references", "to", "cc"})


class _Clock:
    """The clock of dkimpy, which calls `time.time()` to see whether a signature has expired: the time of the mail,
    since archives hold signatures that were valid when they were made.
    """

    at: ContextVar[float | None] = ContextVar("at", default=None)

    def time(self) -> float:
        return self.at.get() or time.time()


CLOCK = _Clock()
dkim.time = CLOCK


def verified_by_dkim(raw: bytes, headers: Headers, address: str, at: float, anchors: TrustAnchors) -> Trust:
    """Return PASS for the first valid signature of the writer's domain; FAIL if its key is known but none is valid."""
    failed = UNPROVEN
    for number, tags in enumerate(_signatures(headers)):
        domain, selector = tags.get("d", "").lower(), tags.get("s", "").lower()
        if not domain or not selector or not anchors.aligned(address, domain):
            continue
        record = anchors.key(f"{selector}._domainkey.{domain}")
        if not record:
            continue
        if "l" in tags or not covers(tags.get("h", ""), headers):
            continue  # only a part of it is signed
        if _is_valid(raw, number, record, at):
            return Trust(AuthVerdict.PASS, f"dkim {domain}")
        failed = Trust(AuthVerdict.FAIL, f"dkim {domain}")
    return failed


def is_signed_for(address: str, headers: Headers, anchors: TrustAnchors) -> bool:
    """Whether any signature claims to be of the writer's own domain, whether or not its key is known."""
    return any(anchors.aligned(address, tags.get("d", "")) for tags in _signatures(headers))


def _signatures(headers: Headers) -> list[dict[str, str]]:
    """Return the tags of each signature, in the order in which dkimpy numbers them."""
    values = [value for name, value in headers if name == "dkim-signature"]
    return [{tag: "".join(text.split()) for tag, text in _TAG.findall(value[:8000])} for value in values[:MOST]]


def covers(signed: str, headers: Headers) -> bool:
    """Whether a list of signed headers ("from:date:…") covers all that must not be changed in this mail."""
    names = {name.strip().lower() for name in signed.split(":")}
    return names >= MUST_SIGN | (WHERE_PRESENT & {name for name, _ in headers})


def _is_valid(raw: bytes, number: int, record: str, at: float) -> bool:
    def answer(name: bytes, **options: Any) -> bytes:
        return record.encode("ascii", "replace")

    token = CLOCK.at.set(at)
    try:
        return bool(dkim.DKIM(raw, minkey=1024).verify(idx=number, dnsfunc=answer))
    except Exception:  # dkimpy may raise anything on hostile tags, keys and headers: not valid
        return False
    finally:
        CLOCK.at.reset(token)
