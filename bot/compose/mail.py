"""An outgoing mail: its recipients, each with the reason; as a value and as bytes; and with its text edited.

Of the recipients, the author comes first, then the lists, our own before others, since its archive proves what was
sent; then whom MAINTAINERS names, and the people in the trailers. A person with several addresses gets one mail, and an
opt-out covers all of a person's addresses. Those left out are kept with the reason: an invalid address, a robot, one
that must never get a report, an opt-out, or a limit. Above the maximum, those who come first in this order are kept. If
the author can't be mailed, To is the first list.

A mail is text/plain, and its headers are safe from injection.
"""

import email.policy
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from email.headerregistry import Address as HeaderAddress
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from bot.compose.conventions import DEFAULT, NEW_THREAD, Conventions, ThreadPosition
from bot.git.maintainers import Duty, Responsible
from bot.mail.addresses import Address, parse_addresses
from bot.mail.message import for_header, is_address
from bot.mail.settings import BotSettings
from tracker import __version__

# --- Recipients ---

MOST_LISTS = 20
UNREACHABLE = ("invalid address", "must never get a report", "bounces")  # how the reasons for an exclusion begin
_PEOPLE = "Signed-off-by Co-developed-by Reviewed-by Acked-by Tested-by Reported-by Suggested-by Cc"
_TAGS = {tag.lower(): tag for tag in _PEOPLE.split()}
# Addresses that must never get a report: for stable patches, for embargoed reports, robots, and ones nobody reads.
_NEVER = re.compile(
    r"stable(?:-commits)?@|security@|(?:linux-)?distros@|no-?reply@|do-?not-?reply@|patchwork-bot|syzbot[+@]|tip-bot2?@"
    r"|[^@]*@(?:[\w-]+\.)*(?:noreply\.[\w.-]+|localhost|localdomain|local|invalid|\(none\))\Z|[^@]*@[^.]*\Z",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Recipient:
    """An address, and why it gets the mail."""

    address: Address
    why: str
    is_list: bool = False
    is_maintainer: bool = False

    @property
    def email(self) -> str:
        return self.address.email


@dataclass(frozen=True, slots=True)
class Recipients:
    """To and Cc, each address once, and those left out with the reason."""

    to: tuple[Recipient, ...]
    cc: tuple[Recipient, ...]
    left_out: tuple[Recipient, ...] = ()

    @property
    def lists(self) -> list[str]:
        return [recipient.email for recipient in (*self.to, *self.cc) if recipient.is_list]

    @property
    def maintainers(self) -> list[str]:
        return [recipient.email for recipient in (*self.to, *self.cc) if recipient.is_maintainer]


@dataclass(frozen=True, slots=True)
class CommitPeople:
    """The people of a commit. `responsible`: whom MAINTAINERS lists for its files."""

    author: Address
    trailers: tuple[tuple[str, str], ...] = ()
    responsible: tuple[Responsible, ...] = ()
    tree: str = ""
    role: str = ""


def recipients_of(
    commit: CommitPeople,
    settings: BotSettings,
    conventions: Conventions = DEFAULT,
    excluded: Mapping[str, str] | None = None,
) -> Recipients:
    """Return the recipients of a report. `excluded`: addresses that must get no mail from us, with the reason."""
    candidates = _candidates(commit, settings, conventions)
    kept, left_out = choose(candidates, settings, excluded or {}, conventions.most_people)
    return Recipients(kept[:1], kept[1:], left_out)


def choose(
    candidates: Iterable[Recipient], settings: BotSettings, excluded: Mapping[str, str], most: int
) -> tuple[tuple[Recipient, ...], tuple[Recipient, ...]]:
    """Return who of the candidates gets a mail, the first `most` at best, and who is left out, each with the reason."""
    kept: dict[str, Recipient] = {}
    left_out: dict[str, Recipient] = {}
    persons: set[str] = set()  # a person with several addresses gets one mail
    for recipient in candidates:
        aliases = settings.aliases.of(recipient.email)
        if recipient.email in kept or recipient.email in left_out or aliases & persons:
            continue
        why = exclusion_reason(recipient.email, settings, excluded)
        if not why and recipient.is_list and sum(other.is_list for other in kept.values()) >= MOST_LISTS:
            why = f"more than {MOST_LISTS} lists"
        if not why and len(kept) >= most:
            why = f"more than {most} recipients"
        if why:
            left_out[recipient.email] = replace(recipient, why=why)
        else:
            kept[recipient.email] = recipient
            persons |= aliases
    return tuple(kept.values()), tuple(left_out.values())


def _candidates(commit: CommitPeople, settings: BotSettings, conventions: Conventions) -> Iterator[Recipient]:
    """Yield the author, the lists, our own first since its archive proves what was sent, and the people."""
    yield Recipient(commit.author, "author")
    names = dict.fromkeys(name for name in (commit.tree, commit.role) if name)
    lists = [
        (settings.list_address, "our own list"),
        *((address, "one of our lists") for address in settings.lists),
        (conventions.lkml, "gets every report"),
        *((address, f"list for {name}") for name in names for address in conventions.tree_lists.get(name, ())),
    ]
    yield from (Recipient(Address("", email), why, is_list=True) for email, why in lists if email)
    of_duty: dict[Duty, list[Recipient]] = {duty: [] for duty in Duty}
    for entry in commit.responsible:
        kind = {"is_list": entry.duty is Duty.LIST, "is_maintainer": entry.duty is Duty.MAINTAINER}
        of_duty[entry.duty].append(Recipient(entry.address, str(entry), **kind))
    yield from of_duty[Duty.LIST]
    if conventions.regzbot:
        yield Recipient(Address("", conventions.regzbot), "read by regzbot", is_list=True)
    yield from (*of_duty[Duty.MAINTAINER], *of_duty[Duty.REVIEWER])
    for tag, value in commit.trailers:
        if trailer := _TAGS.get(tag.strip().lower()):
            yield from (Recipient(address, f"{trailer} in the commit") for address in parse_addresses(value)[:1])


def is_forbidden(email: str) -> bool:
    """Return whether an address must never get a report, no matter who names it."""
    return _NEVER.match(email) is not None


def exclusion_reason(email: str, settings: BotSettings, excluded: Mapping[str, str]) -> str:
    """Return why an address gets no mail, or "". An opt-out covers all of a person's addresses."""
    if not is_address(email):
        return "invalid address"
    if settings.is_own(email) or email in settings.robots:
        return "a robot, or the bot itself"
    if is_forbidden(email):
        return "must never get a report"
    return next((excluded[alias] for alias in sorted(settings.aliases.of(email)) if alias in excluded), "")


# --- The mail ---

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
class Attachment:
    """A text file."""

    name: str
    text: str


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
