"""Signatures of webhooks, as the Standard Webhooks specification has them, for which receivers have libraries.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import hashlib
import hmac


def signed_headers(secret: str, key: str, moment: int, body: bytes) -> dict[str, str]:
    """Return the headers of a delivery. `key` is the same at each attempt; `moment`: seconds since 1970, of this one.

    The signature covers all three, so that a receiver can refuse old ones, and repeats.
    """
    digest = hmac.new(_bytes_of(secret), f"{key}.{moment}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": key,
        "webhook-timestamp": str(moment),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def _bytes_of(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix("whsec_"))
