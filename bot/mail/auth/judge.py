"""The verdict on who wrote a mail, from all proofs together."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime

from bot.mail.addresses import parse_addresses
from bot.mail.auth.developer_signature import signed_by_developer
from bot.mail.auth.dkim import is_signed_for, verified_by_dkim
from bot.mail.auth.server_results import verified_by_server
from bot.mail.auth.trust_anchors import TrustAnchors
from bot.mail.auth.verdict import UNPROVEN, AuthVerdict, Trust, joined
from bot.mail.headers import to_text
from bot.mail.message import MAX_BYTES, ParsedMail, without_frame

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def judge(raw: bytes, mail: ParsedMail, anchors: TrustAnchors) -> Trust:
    """Return whether the author of a mail is verified. Never raises.

    Any proof that passes counts, for the headers that it covers. Without one: FAIL if a proof fails, or if the domain
    is known to sign and the mail has no signature. Headers that parsers may read differently prove nothing.
    """
    address = mail.author.email
    if not address or len(raw) > MAX_BYTES:
        return UNPROVEN
    raw = without_frame(raw)
    headers = _headers(raw)
    if not _is_plain(headers, address):
        return UNPROVEN
    at = (mail.date or _EPOCH).timestamp()
    found = (
        signed_by_developer(raw, headers, address, anchors),
        verified_by_dkim(raw, headers, address, at, anchors),
        verified_by_server(headers, address, anchors),
    )
    if (proven := joined(found)).proven:
        return proven
    if failed := next((each for each in found if each.verdict is AuthVerdict.FAIL), None):
        return failed
    domain = address.rpartition("@")[2]
    if anchors.signs(domain) and not is_signed_for(address, headers, anchors):
        return Trust(AuthVerdict.FAIL, f"unsigned, though {domain} signs its mail")
    return UNPROVEN


# If repeated, parsers may use different ones; and one can be added above the headers of a signed mail.
_ONCE = frozenset(
    {"from", "sender", "reply-to", "to", "cc", "date", "subject", "message-id", "in-reply-to", "references"}
    | {"content-type", "content-transfer-encoding", "mime-version"}
)
_HEADER = re.compile(rb"[!-9;-~]{1,200}:")


def _headers(raw: bytes) -> list[tuple[str, str]]:
    """Return names in lower case and unfolded values, from top to bottom; [] if any line of the head is irregular.

    Parsed once more here, and strictly: what the stdlib, dkimpy and we may read differently proves nothing.
    """
    head = raw.replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    if b"\r" in head or b"\0" in head:
        return []
    found: list[tuple[str, list[str]]] = []
    for line in head.split(b"\n"):
        text = to_text(line.decode("ascii", "surrogateescape"))
        if line[:1] in (b" ", b"\t") and found:
            found[-1][1].append(text.strip())
        elif _HEADER.match(line):
            name, _, value = text.partition(":")
            found.append((name.lower(), [value.strip()]))
        else:
            return []
    return [(name, " ".join(pieces)) for name, pieces in found]


_ADDRESS = re.compile(r"[^\s<>()\[\],;:@]+@[^\s<>()\[\],;:]*")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def _is_plain(headers: list[tuple[str, str]], address: str) -> bool:
    """Whether no header that matters is repeated, and From has exactly one address: the one that we parsed."""
    names = Counter(name for name, _ in headers)
    writer = next((value for name, value in headers if name == "from"), "")
    authors = parse_addresses(writer)
    # Whatever stands in angle brackets or comments, a second address could be the one that a server means.
    bare = _QUOTED.sub("", writer)
    alone = len(authors) == 1 and authors[0].email == address and '"' not in bare
    alone = alone and {each.lower() for each in _ADDRESS.findall(bare)} == {address}
    return names["from"] == 1 and alone and all(names[name] <= 1 for name in _ONCE)
