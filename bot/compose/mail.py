"""A mail of ours as a value, and as bytes: text/plain, headers that nothing can break out of."""

from __future__ import annotations

import email.policy
import re
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address as HeaderAddress
from email.message import EmailMessage
from email.utils import format_datetime

from bot.replies.addresses import Address

# C0 and C1 controls, line and paragraph separators, and marks that turn the direction of text.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]+")
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
# RFC 5321 section 4.1.2, in ASCII and without quoted local parts, which no list carries.
_EMAIL = re.compile(rf"(?=.{{3,254}}\Z)(?=[^@]{{1,64}}@){_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*\Z")
_MESSAGE_ID = re.compile(r"[!-;=?-~]{1,400}@[!-;=?A-~]{1,400}\Z")
POLICY = email.policy.SMTP.clone(max_line_length=998, cte_type="8bit")


@dataclass(frozen=True, slots=True)
class Mail:
    """An outgoing mail. Ids are without angle brackets; the date and the Message-ID are fixed once for all."""

    message_id: str
    sender: Address
    reply_to: Address
    to: tuple[Address, ...]
    cc: tuple[Address, ...]
    subject: str
    date: datetime
    body: str
    report_tag: str
    in_reply_to: str = ""
    references: tuple[str, ...] = ()
    submitted: str = "auto-generated"  # RFC 3834: by itself, or "auto-replied"

    @property
    def envelope(self) -> tuple[str, ...]:
        """The addresses that the mail goes to, each once."""
        return tuple(dict.fromkeys(each.email for each in (*self.to, *self.cc)))


def one_line(text: str, limit: int = 300) -> str:
    """Foreign text made safe for a header or a line: one line, no controls, bounded."""
    return " ".join(_UNSAFE.sub(" ", text).encode("utf-8", "replace").decode("utf-8").split())[:limit]


def is_address(email: str) -> bool:
    """Whether an address can stand in our headers: ASCII, one local part, one domain."""
    return bool(_EMAIL.match(email))


def is_message_id(text: str) -> bool:
    """Whether a foreign Message-ID, without its brackets, can stand in our headers as it is."""
    return bool(_MESSAGE_ID.match(text))


def to_bytes(mail: Mail) -> bytes:
    """The mail as it is sent and kept; the same value gives the same bytes."""
    message = EmailMessage(policy=POLICY)
    message["Message-ID"] = f"<{mail.message_id}>"
    message["Date"] = format_datetime(mail.date)
    message["From"] = _header_address(mail.sender)
    message["Reply-To"] = _header_address(mail.reply_to)
    message["To"] = [_header_address(each) for each in mail.to]
    if mail.cc:
        message["Cc"] = [_header_address(each) for each in mail.cc]
    message["Subject"] = one_line(mail.subject, 500)
    if mail.in_reply_to:
        message["In-Reply-To"] = f"<{mail.in_reply_to}>"
        message["References"] = " ".join(f"<{each}>" for each in (*mail.references, mail.in_reply_to))
    message["Auto-Submitted"] = mail.submitted
    message["X-Perfwork-Report"] = mail.report_tag
    message.set_content(mail.body, charset="utf-8", cte="7bit" if mail.body.isascii() else "8bit")
    return message.as_bytes()


def _header_address(address: Address) -> HeaderAddress:
    return HeaderAddress(display_name=one_line(address.name, 100), addr_spec=address.email)
