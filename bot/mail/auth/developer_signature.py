"""Developer signatures: X-Developer-Signature as patatt makes them, checked against a keyring of the installation.

Only ed25519: for the other kinds patatt starts gpg or ssh-keygen, which hostile mail must not trigger.
"""

from __future__ import annotations

import re
from email import message_from_bytes

import patatt

from bot.mail.auth.dkim import Headers
from bot.mail.auth.trust_anchors import TrustAnchors
from bot.mail.auth.verdict import UNPROVEN, AuthVerdict, Trust

# What patatt signs by default. With a signed Message-ID, a replayed mail is a duplicate and is not filed again.
_MUST_SIGN = frozenset({"from", "subject", "message-id"})
_SIGNED = re.compile(r"(?:\A|;)\s*h\s*=\s*([^;]{1,2000})")
_ALGORITHM = re.compile(r"(?:\A|;)\s*a\s*=\s*([^;\s]*)")
# git mailinfo, by which patatt reads a mail, takes these at the start of the body for the header's: what is signed is
# not the header that we read then.
_IN_BODY = re.compile(rb"\s*>?(?:from|subject|date)\s*:", re.I)


def signed_by_developer(raw: bytes, headers: Headers, address: str, anchors: TrustAnchors) -> Trust:
    """Whether the writer's own key signed the mail. FAIL: their key is known, and the signature is invalid."""
    signatures = [value for name, value in headers if name == "x-developer-signature"]
    if not anchors.keyring or len(signatures) != 1:
        return UNPROVEN
    algorithms = _ALGORITHM.findall(signatures[0])
    if len(algorithms) != 1 or not algorithms[0].startswith("ed25519") or _IN_BODY.match(_body(raw)):
        return UNPROVEN
    found_names = _SIGNED.search(signatures[0])
    signed = frozenset(name.strip().lower() for name in (found_names[1] if found_names else "").split(":"))
    if not signed >= _MUST_SIGN:
        return UNPROVEN
    try:
        found = patatt.validate_message(raw, [anchors.keyring])
    except Exception:  # patatt may raise anything on hostile mail, which proves nothing
        return UNPROVEN
    for result, identity, _, _, algorithm, _ in found:
        if (identity or "").lower() != address.lower():
            continue
        if result == patatt.RES_VALID:
            return Trust(AuthVerdict.PASS, f"patatt {algorithm} {address}", signed)
        if result == patatt.RES_BADSIG:
            return Trust(AuthVerdict.FAIL, f"patatt {algorithm} {address}")
    return UNPROVEN


def _body(raw: bytes) -> bytes:
    """Return the text that git mailinfo begins to read: that of the first part that has one."""
    parts = (part for part in message_from_bytes(raw).walk() if part.get_content_maintype() == "text")
    payload = next((part.get_payload(decode=True) for part in parts), b"")
    return payload if isinstance(payload, bytes) else b""
