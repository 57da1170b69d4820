"""Developer signatures: X-Developer-Signature as patatt makes them, checked against a keyring of the installation.

Only ed25519: for the other kinds patatt starts gpg or ssh-keygen, which a hostile mail shall not.
"""

from __future__ import annotations

import re

import patatt

from bot.replies.trust.believed import Believed
from bot.replies.trust.verdict import UNPROVEN, Trust, Verdict

_ED25519 = re.compile(r"(?:\A|;)\s*a\s*=\s*ed25519")


def signed_by_developer(raw: bytes, signatures: tuple[str, ...], address: str, believed: Believed) -> Trust:
    """Whether the writer's own key signed it. FAIL: his key is known, and says that it did not."""
    if not believed.keyring or not signatures or not all(_ED25519.search(each) for each in signatures[:5]):
        return UNPROVEN
    if len(signatures) > 5:
        return UNPROVEN
    try:
        found = patatt.validate_message(raw, [believed.keyring])
    except Exception:  # whatever it thinks of a hostile mail: it proves nothing
        return UNPROVEN
    for result, identity, _, _, algorithm, _ in found:
        if (identity or "").lower() != address.lower():
            continue
        if result == patatt.RES_VALID:
            return Trust(Verdict.PASS, f"patatt {algorithm} {address}")
        if result == patatt.RES_BADSIG:
            return Trust(Verdict.FAIL, f"patatt {algorithm} {address}")
    return UNPROVEN
