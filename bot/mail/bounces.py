"""Parse a bounce: which recipients failed, why, and for which of our mails.

Which mail is one, bot/replies/reading.py decides. A delivery status (RFC 3464, RFC 6533) says it field by field,
however it is encoded; what it says goes before anything else. flufl.bounce knows the odd formats, and free text is
read here: an address, and the server's answer to it below, or above the only recipient. A warning that a mail is late
is not a failure.
"""

import email
import email.policy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from itertools import groupby, zip_longest

from bot.mail.message import without_frame

MOST_ADDRESSES = 200
MOST_BYTES = 64_000  # the delivery status is near the beginning
MOST_IDS = 20
_LONG = re.compile(rb"([^\n]{998})[^\n]+")  # RFC 5322 section 2.1.1; the detectors are slow on longer lines
_ID = re.compile(rb"^message-id:\s*<([^<>\s]{1,900})>", re.I | re.M)
_FIELD_ADDRESS = re.compile(r"(?<![^\s<>;,@])[^\s<>;,@]{1,64}@[^\s<>;,@]{1,255}")  # RFC 5321 section 4.5.3.1
# In free text, where quotes, brackets and a colon may touch it, in Chinese also wide ones
_BESIDE_IT = r"\s<>;,@:\"'()\[\]\u2018-\u201f\u3000-\u303f\uff00-\uffef"
_ADDRESS = re.compile(rf"(?<![^{_BESIDE_IT}])[^{_BESIDE_IT}]{{1,64}}@[^{_BESIDE_IT}]{{1,255}}")
MOST_TEXT = 20_000
# "Failed Recipient: a@b" with "Reason: …" below, as SmarterMail and others write it
_NAMED = re.compile(
    r"^[ \t]*(?:failed |original |final )?recipients?(?: address)?[ \t]*:[ \t]*"
    r"<?([^\s<>;,@]{1,200}@[^\s<>;,@]{1,200})>?[^\n]*"
    r"(?:\n[ \t]*(?:reason|error|diagnostic)[ \t]*:[ \t]*([^\n]{1,500}))?",
    re.I | re.M,
)
# A server's answer with its code (RFC 5321 section 4.2, RFC 3463): "550 5.1.1 User unknown"
_SAID = (
    r"(?P<said>(?:([45])\d\d(?:[ :-][ \t]*(?:#?\d\.\d{1,3}\.\d{1,3}\b|[a-z<])|[ \t]*$)"
    r"|#?([45])\.\d{1,3}\.\d{1,3}(?![\w.]))[^\n]{0,300})"
)
_ANSWER = re.compile(
    rf"(?:^[ \t]*|[:('\"#<\[][ \t]*|\b(?:said|returned|replied|reason|error|smtp;?) [:('\"]?){_SAID}", re.M | re.I
)
# The same right after the address: "a@b: 550 …", "a@b (550 …", "a@b => 550 …"
_NEXT_TO_IT = re.compile(
    rf"[ \t]{{0,9}}+[\"'>)\]]?[ \t]{{0,9}}+(?:[:,(]|[=-]>|[-\u2013\u2014])?[ \t]{{0,9}}+{_SAID}", re.M | re.I
)
# Without a code: "User a@b unknown", "No such mailbox"
_UNKNOWN = re.compile(
    r"\b(?:user|recipient|mailbox|address|account)\b[^\n]{0,120}\b(?:unknown|not found|does not exist|doesn't exist"
    r"|no longer exists|disabled|invalid)\b|\b(?:unknown|no such|invalid) (?:user|recipient|mailbox|address|account)\b",
    re.I,
)
_GIVEN_UP = re.compile(
    r"(?<!no )\bpermanent|(?<!not )(?<!n't )\bgiv(?:en|ing) up\b|\bnot going to try\b|\bretry time(?:out)?\b"
    r"|\btoo long\b",
    re.I,
)
# The same of what has happened, not of what may: "you'll be notified if the delivery fails permanently"
_HAS_GIVEN_UP = re.compile(
    r"\b(?:have|has|had|been|was|were|am|is|I'm) given up\b|(?<!not )(?<!n't )\bgiving up\b|\bnot going to try\b"
    r"|\bretry time(?:out)?\b|\bqueue too long\b",
    re.I,
)
_ANSWERED_WITHIN = 700  # characters below the address
_UNDELIVERED = re.compile(
    r"\bcould ?(?:not|n't) be delivered\b|\bwas not delivered\b|\bdelivery (?:has )?failed\b", re.I
)
_GOES_ON = re.compile(r"\bwill (?:retry|continue)\b|\bat this time\b|\bfor \d+ (?:hours|minutes)\b|\bso far\b", re.I)
_IF = re.compile(r"\b(?:if|when|in case|should)\b", re.I)
# Above the mail that is returned
_RETURNED = re.compile(r"^[ \t]*+-{2,}+.*(?:copy|original message|below this line)", re.I | re.M)
_LATE = re.compile(
    r"\bwarning (?:message )?only\b|\bdo(?:es)? not need to resend|\b(?:has been|is|was) delayed\b|\bwill be retried\b"
    r"|\bwill (?:be )?(?:keep|continue) (?:to )?try|\bI will keep trying\b|\bstill (?:be )?(?:trying|being retried)\b"
    r"|\bnot yet (?:been )?delivered\b|\bdelivered (?:yet|so far)\b|\baddresses yet\b"
    r"|\bwill (?:be )?(?:attempted|try|tried|retry|retried) again\b|\bstill (?:queued|in the queue|pending)\b"
    r"|\bis (?:queued|pending)(?=[.,!\n])"
    r"|\bnext (?:attempt|try|retry)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Bounce:
    """Delivery failures. `failed`: address in lower case → the server's reason, without those that may still be
    reached; `message_ids`: those found in the returned part, nearest first.
    """

    failed: Mapping[str, str] = field(default_factory=dict)
    message_ids: tuple[str, ...] = ()


def read_bounce(raw: bytes) -> Bounce:
    """Parse a bounce. Never raises; junk gives an empty Bounce, at most with message ids."""
    from flufl.bounce import all_failures  # few readings meet a bounce

    raw = _LONG.sub(rb"\1", without_frame(raw[:MOST_BYTES]))
    below = raw.replace(b"\r\n", b"\n").partition(b"\n\n")[2]  # the bounce's own headers
    ids = tuple(dict.fromkeys(message_id.decode("utf-8", "replace") for message_id in _ID.findall(below)))[:MOST_IDS]
    try:
        message = email.message_from_bytes(raw, policy=email.policy.compat32)
        dead = {_address_text(address) for address in all_failures(message)[1]}
        status = list(_delivery_status(message))
        text = _text(message)
    except Exception:  # the parser or one of twenty detectors may raise anything on hostile bytes
        return Bounce(message_ids=ids)
    answered = _answers(text)
    recipients = list(_NAMED.finditer(text))
    named = {match[1].lower(): match[2] or "" for match in recipients}
    if len(recipients) == 1 and (above := _ANSWER.search(text, 0, recipients[0].start())):
        answered.setdefault(recipients[0][1].lower(), " ".join(above["said"].split()))
    named |= {address: answer for address, answer in answered.items() if not _ANSWER.search(named.get(address, ""))}
    stated = {address: has_failed for address, has_failed, _ in status if has_failed is not None}
    if not dead and not stated:
        is_receipt = any(part.get_content_type() == "message/disposition-notification" for part in message.walk())
        dead = set(named)
        if not (dead or status or is_receipt):
            named |= _undelivered(text)
            dead = set(named)
    if not _GIVEN_UP.search(text):
        codes = {address: re.search(r"\b([45])(?:\d\d|\.\d)", answer) for address, answer in answered.items()}
        dead -= {address for address, code in codes.items() if code and code[1] == "4"} - stated.keys()
    if _LATE.search(text) and not any(stated.values()) and not _HAS_GIVEN_UP.search(text):
        dead = set()
    dead = {address for address in dead if stated.get(address, True)}
    dead |= {address for address, has_failed in stated.items() if has_failed}
    reasons = named | {address: reason for address, _, reason in status if reason}
    failed = sorted(address for address in dead if address)[:MOST_ADDRESSES]
    failures = {address: reasons.get(address, "") or "no reason given" for address in failed}
    return Bounce(failures, ids)


def _answers(text: str) -> dict[str, str]:
    """Return the server's answer for each address that has any: the first of those that are final, else the first."""
    answers: dict[str, str] = {}
    for address, answer in _answered(text):
        if address not in answers or (_is_final(answer) and not _is_final(answers[address])):
            answers[address] = answer
    return answers


def _is_final(answer: str) -> bool:
    return answer.lstrip("#").startswith("5")


def _answered(text: str) -> Iterator[tuple[str, str]]:
    """Yield each address that has a server's answer beside it in its line, or below it before another address."""
    text = text[: returned.start()] if (returned := _RETURNED.search(text)) else text
    matches = [(match, match[0].strip("()[]\"'.:").lower()) for match in _ADDRESS.finditer(text)]
    groups = [list(group) for _, group in groupby(matches, key=lambda pair: pair[1])]
    above = 0  # where the address before ends: what stands between it and the next one is about that
    for group, following in zip_longest(groups, groups[1:]):
        ends = following[0][0].start() if following else len(text)  # where another address begins
        for match, address in group:
            line, line_ends = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
            if answer := _NEXT_TO_IT.match(text, match.end()):
                yield address, " ".join(answer["said"].split())
            elif answer := _ANSWER.search(text, max(line, above), match.start()):
                said = text[answer.start("said") : line_ends if line_ends >= 0 else len(text)]
                yield address, " ".join(said.split())[:300]
            elif answer := _ANSWER.search(text, match.end(), min(match.end() + _ANSWERED_WITHIN, ends)):
                yield address, " ".join(answer["said"].split())
            above = match.end()


def _undelivered(text: str) -> dict[str, str]:
    """Return the only address in a text that says in words alone that a mail was not delivered, with the words of its
    line: it stands in a line of its own below that, or in one that says that nobody has it.
    """
    text = text[: returned.start()] if (returned := _RETURNED.search(text)) else text
    addresses = {match[0].strip("()[]\"'.:").lower() for match in _ADDRESS.finditer(text)}
    said = _UNDELIVERED.search(text)
    if len(addresses) != 1 or not said or _GOES_ON.search(text):
        return {}
    if _IF.search(text[text.rfind(".", 0, said.start()) + 1 : said.end()]):  # it says what would happen
        return {}
    [address] = addresses
    for line in (" ".join(line.split()) for line in text[said.end() :].splitlines()):
        if line.strip("<>").lower() == address:
            return {address: ""}
        if address in line.lower() and _UNKNOWN.search(line) and not _IF.search(line):
            return {address: line[:300]}
    return {}


def _text(message: Message) -> str:
    """Return the beginning of the first part, in which a mail server tells people what happened."""
    part = next((part for part in message.walk() if part.get_content_maintype() == "text"), None)
    payload = part.get_payload(decode=True) if part else None
    return payload.decode("utf-8", "replace")[:MOST_TEXT] if isinstance(payload, bytes) else ""


def _blocks(message: Message) -> Iterator[Message]:
    """Yield the blocks of a delivery status: of the mail, then of each recipient (RFC 3464 section 2)."""
    is_report = message.get_content_type() == "multipart/report"
    for part in message.walk():
        if part.get_content_type() not in _STATUS and not (is_report and _is_status(part)):
            continue
        blocks = part.get_payload()
        texts = [str(block) for block in blocks] if isinstance(blocks, list) else [str(blocks)]
        encoding = str(part.get("Content-Transfer-Encoding", "")).strip().lower()
        text = "\n\n".join(texts)
        if encoding in ("base64", "quoted-printable"):  # which the parser does not expect here
            decoded = email.message_from_string(f"Content-Transfer-Encoding: {encoding}\n\n{text.strip()}")
            raw = decoded.get_payload(decode=True)
            text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else ""
        for block in re.split(r"\r?\n(?:[ \t]*\r?\n)+", text.strip())[: MOST_ADDRESSES + 1]:
            yield email.message_from_string(block + "\n\n")


_STATUS = ("message/delivery-status", "message/global-delivery-status")


def _is_status(part: Message) -> bool:
    """Whether a part of a report is a delivery status, though its type says otherwise."""
    payload = part.get_payload(decode=True)
    return isinstance(payload, bytes) and bool(re.match(rb"\s*(?:Reporting-MTA|Final-Recipient):", payload, re.I))


def _delivery_status(message: Message) -> Iterator[tuple[str, bool | None, str]]:
    """Yield each recipient of a delivery status (RFC 3464 section 2.3): whether the mail has failed, rather than being
    late, None if that is not said; and the status code with the diagnostic.
    """
    for block in _blocks(message):
        action = str(block.get("Action", "")).strip().lower()
        code = str(block.get("Status", "")).strip()
        has_failed = None
        if action in ("failed", "delayed"):
            has_failed = action == "failed"
        elif code[:1] in ("4", "5"):
            has_failed = code[:1] == "5"
        reason = " ".join(f"{code} {_field_value(block.get('Diagnostic-Code', ''))}".split())
        for name in ("Original-Recipient", "Final-Recipient"):
            if match := _FIELD_ADDRESS.search(_field_value(block.get(name, ""))):
                yield match[0].lower(), has_failed, reason[:500]


def _field_value(value: object) -> str:
    """Return the value of a "type; value" field."""
    kind, semicolon, rest = str(value).partition(";")
    return rest.strip() if semicolon else kind.strip()


def _address_text(address: bytes | str) -> str:
    text = address.decode("utf-8", "replace") if isinstance(address, bytes) else address
    return text.strip().strip("<>").lower()[:320]
