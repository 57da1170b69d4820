"""An outgoing mail as a value and as bytes: text/plain, with headers safe from injection; and with its text edited."""

import email.policy
import hashlib
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address as HeaderAddress
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from bot.compose.conventions import NEW_THREAD, ThreadPosition
from bot.compose.recipients import Recipients
from bot.compose.report_data import Attachment
from bot.mail.addresses import Address
from bot.mail.message import for_header
from bot.mail.settings import BotSettings
from tracker import __version__

MADE_BY = f"Perfwork {__version__}"  # in the header X-Mailer, for whoever has to find out which version wrote a mail

_NARROW = email.policy.SMTP.clone(cte_type="8bit")


class _Policy(email.policy.EmailPolicy):
    """Keep ASCII headers on one line, up to the 998 octets of RFC 5322. Fold others: RFC 2047 section 2 limits an
    encoded word to 75 characters.
    """

    def fold_binary(self, name: str, value: Any) -> bytes:
        return super().fold_binary(name, value) if str(value).isascii() else _NARROW.fold_binary(name, value)


POLICY = _Policy(linesep="\r\n", max_line_length=998, cte_type="8bit")


@dataclass(frozen=True, slots=True)
class ComposedMail:
    """An outgoing mail. Ids have no angle brackets; the date and Message-ID never change."""

    message_id: str
    sender: Address
    reply_to: Address
    recipients: Recipients
    subject: str
    date: datetime
    body: str
    report_tag: str
    in_reply_to: str = ""
    references: tuple[str, ...] = ()  # the last one is `in_reply_to`
    submitted: str = "auto-generated"  # RFC 3834: this or "auto-replied"
    attachments: tuple[Attachment, ...] = ()
    page: str = ""  # the page that it must link to, if that is not its report's
    unsubscribe: str = ""  # the URL that ends it by one click (RFC 8058)

    @property
    def to(self) -> tuple[Address, ...]:
        return tuple(recipient.address for recipient in self.recipients.to)

    @property
    def cc(self) -> tuple[Address, ...]:
        return tuple(recipient.address for recipient in self.recipients.cc)

    @property
    def envelope(self) -> tuple[str, ...]:
        """The envelope's addresses, without duplicates."""
        return tuple(dict.fromkeys(address.email for address in (*self.to, *self.cc)))


def mail_of(
    own_id: str,
    tag: str,
    recipients: Recipients,
    subject: str,
    body: str,
    settings: BotSettings,
    now: datetime,
    position: ThreadPosition = NEW_THREAD,
) -> ComposedMail:
    """Return a mail from the bot; replies go to the address that has the report's tag."""
    return ComposedMail(
        message_id=own_id,
        sender=Address(settings.name, settings.address),
        reply_to=Address(settings.name, settings.tagged(tag)),
        recipients=recipients,
        subject=subject,
        date=now.replace(microsecond=0),
        body=body,
        report_tag=tag,
        in_reply_to=position.in_reply_to,
        references=position.references,
    )


def to_bytes(mail: ComposedMail) -> bytes:
    """Return the mail as it is sent and stored; equal values give equal bytes."""
    message = EmailMessage(policy=POLICY)
    message["Message-ID"] = f"<{mail.message_id}>"
    message["Date"] = format_datetime(mail.date)
    message["From"] = _header_address(mail.sender)
    message["Reply-To"] = _header_address(mail.reply_to)
    message["To"] = [_header_address(address) for address in mail.to]
    if mail.cc:
        message["Cc"] = [_header_address(address) for address in mail.cc]
    message["Subject"] = for_header(mail.subject, 500)
    if mail.in_reply_to:
        message["In-Reply-To"] = f"<{mail.in_reply_to}>"
        message["References"] = " ".join(f"<{reference}>" for reference in mail.references)
    message["Auto-Submitted"] = mail.submitted
    message["X-Perfwork-Report"] = mail.report_tag
    message["X-Mailer"] = MADE_BY
    mailto = f"<mailto:{mail.reply_to.email}?subject=unsubscribe>"  # RFC 2369
    message["List-Unsubscribe"] = f"<{mail.unsubscribe}>, {mailto}" if mail.unsubscribe else mailto
    if mail.unsubscribe:
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message.set_content(mail.body, charset="utf-8", cte="7bit" if mail.body.isascii() else "8bit")
    for attachment in mail.attachments:
        message.add_attachment(
            attachment.text, filename=attachment.name, cte="7bit" if attachment.text.isascii() else "8bit"
        )
    if mail.attachments:
        # The library picks a random boundary; ours is fixed, so that the same mail gives the same bytes.
        message.set_boundary(f"=_{hashlib.sha256(mail.message_id.encode()).hexdigest()[:32]}")
    return message.as_bytes()


def edited(raw: bytes, body: str) -> bytes:
    """Return a mail of ours with another text; headers and attachments stay."""
    message = email.message_from_bytes(raw, policy=POLICY)
    assert isinstance(message, EmailMessage)
    text = message.get_body(("plain",))
    assert isinstance(text, EmailMessage), "every mail of ours has a text"
    del text["MIME-Version"]  # which comes first in what is set now
    text.set_content(body, charset="utf-8", cte="7bit" if body.isascii() else "8bit")
    if text is not message:
        del text["MIME-Version"]
    return message.as_bytes()


def _header_address(address: Address) -> HeaderAddress:
    return HeaderAddress(display_name=for_header(address.name, 100), addr_spec=address.email)
