"""The verdict on a mail: what proves who wrote it, or shows that he did not."""

from __future__ import annotations

import email
import email.policy
from datetime import UTC, datetime

from bot.replies.headers import to_text
from bot.replies.mail import MAX_BYTES, Mail
from bot.replies.trust.believed import Believed
from bot.replies.trust.developer_keys import signed_by_developer
from bot.replies.trust.server_results import said_by_server
from bot.replies.trust.signatures import is_signed_for, verified
from bot.replies.trust.verdict import UNPROVEN, Trust, Verdict

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def judge(raw: bytes, mail: Mail, believed: Believed) -> Trust:
    """Who wrote a mail, as far as it is proven. Never raises.

    A pass by any proof counts. Without one: FAIL where a proof speaks against it, or where its domain is known to
    sign and it carries no signature. Two From headers prove nothing: each reader may show another one.
    """
    address = mail.author.email
    if not address or len(raw) > MAX_BYTES:
        return UNPROVEN
    headers = _headers(raw)
    if sum(name == "from" for name, _ in headers) != 1:
        return UNPROVEN
    signatures = tuple(value for name, value in headers if name == "dkim-signature")
    developers = tuple(value for name, value in headers if name == "x-developer-signature")
    at = (mail.date or _EPOCH).timestamp()
    found = (
        signed_by_developer(raw, developers, address, believed),
        verified(raw, signatures, address, at, believed),
        said_by_server(headers, address, believed),
    )
    proven = next((each for each in found if each.proven), None)
    against = next((each for each in found if each.verdict is Verdict.FAIL), None)
    if proven or against:
        return proven or against or UNPROVEN
    domain = address.rpartition("@")[2]
    if believed.signs(domain) and not is_signed_for(address, signatures, believed):
        return Trust(Verdict.FAIL, f"not signed, though {domain} signs")
    return UNPROVEN


def _headers(raw: bytes) -> list[tuple[str, str]]:
    """Names in lower case and values unfolded, from top to bottom."""
    head = raw.replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    try:
        message = email.message_from_bytes(head + b"\n\n", policy=email.policy.compat32)
    except (ValueError, LookupError, RecursionError, AttributeError, TypeError):
        return []
    return [(name.lower(), " ".join(to_text(str(value)).split())) for name, value in message.raw_items()]
