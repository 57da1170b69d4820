"""DKIM signatures (RFC 6376), verified with keys that we have: without a question to anybody."""

from __future__ import annotations

import re
import time
from contextvars import ContextVar
from typing import Any

import dkim

from bot.replies.trust.believed import Believed
from bot.replies.trust.verdict import UNPROVEN, Trust, Verdict

MOST = 5  # signatures of a mail; lists and forwarders add their own
_TAG = re.compile(r"(?:\A|;)\s*([a-z]+)\s*=\s*([^;]*)")
# Signed or not worth a signature: who, when and which mail. Else an old mail could be sent again as another.
_MUST_SIGN = frozenset({"from", "date", "message-id"})


class _Clock:
    """The time for dkimpy, which asks `time.time()` whether a signature has expired: the time of the mail, since
    archives hold signatures that were good when they were made.
    """

    at: ContextVar[float | None] = ContextVar("at", default=None)

    def time(self) -> float:
        return self.at.get() or time.time()


CLOCK = _Clock()
dkim.time = CLOCK


def verified(raw: bytes, signatures: tuple[str, ...], address: str, at: float, believed: Believed) -> Trust:
    """The first signature of the writer's own domain that holds. FAIL: there is one, its key is known, it does not."""
    failed = UNPROVEN
    for number, signature in enumerate(signatures[:MOST]):
        tags = _tags(signature)
        domain, selector = tags.get("d", "").lower(), tags.get("s", "").lower()
        if not domain or not selector or not believed.aligned(address, domain):
            continue
        record = believed.key(f"{selector}._domainkey.{domain}")
        if not record:
            continue
        if not _is_whole(tags):
            continue
        if _holds(raw, number, record, at):
            return Trust(Verdict.PASS, f"dkim {domain}")
        failed = Trust(Verdict.FAIL, f"dkim {domain}")
    return failed


def is_signed_for(address: str, signatures: tuple[str, ...], believed: Believed) -> bool:
    """Whether any signature claims to be of the writer's own domain, be its key known or not."""
    return any(believed.aligned(address, _tags(each).get("d", "")) for each in signatures[:MOST])


def _tags(signature: str) -> dict[str, str]:
    return {name: "".join(value.split()) for name, value in _TAG.findall(signature[:8000])}


def _is_whole(tags: dict[str, str]) -> bool:
    """Whether a signature covers the whole body, and the headers that say whose and which mail it is."""
    return "l" not in tags and set(tags.get("h", "").lower().split(":")) >= _MUST_SIGN


def _holds(raw: bytes, number: int, record: str, at: float) -> bool:
    def answer(name: bytes, **options: Any) -> bytes:
        return record.encode("ascii", "replace")

    token = CLOCK.at.set(at)
    try:
        return bool(dkim.DKIM(raw, minkey=1024).verify(idx=number, dnsfunc=answer))
    except Exception:  # whatever dkimpy thinks of hostile tags, keys and headers: it does not hold
        return False
    finally:
        CLOCK.at.reset(token)
