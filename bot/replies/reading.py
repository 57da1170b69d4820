"""Mail to Reading: everything that a mail says, before it is matched to reports."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from bot.mail import quoting
from bot.mail.auth.judge import judge
from bot.mail.auth.other_readings import other_readings
from bot.mail.auth.verdict import UNPROVEN, Trust
from bot.mail.bounces import Bounce, read_bounce
from bot.mail.identity import BotIdentity
from bot.mail.links import MailLink, find_links
from bot.mail.message import ParsedMail, parse
from bot.mail.patches import Patch, find_patches, posted_title
from bot.mail.trailers import Trailer, find_trailers, fixed_commits
from bot.replies.commands.grammar import Commands, find_commands, refused
from bot.replies.commands.own_lines import without_foreign_lines
from bot.replies.notices import Notice, find_notice
from bot.replies.prose.audience import Audience, audience_of
from bot.replies.prose.sentences import Sentence, own_sentences
from bot.replies.sender_kind import SenderKind, kind_of
from bot.replies.which_report.answered_report import answered_culprit

_REVERT = re.compile(r'Revert "(.{1,400})"')


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that one mail says. `tags` are the report tags in our own addresses among its recipients."""

    mail: ParsedMail
    kind: SenderKind
    own_text: str
    sentences: tuple[Sentence, ...]
    audience: Audience
    commands: Commands
    trailers: tuple[Trailer, ...]
    patches: tuple[Patch, ...]
    links: tuple[MailLink, ...]
    tags: tuple[str, ...]
    notice: Notice | None
    problems: tuple[str, ...]
    trust: Trust = UNPROVEN
    rules_off: frozenset[str] = frozenset()
    signed_tags: frozenset[str] = frozenset()  # those in To and Cc, as far as its writer signed them
    bounce: Bounce = field(default_factory=Bounce)  # empty if it is not a bounce
    answered_culprit: str = ""  # of the report that it answers, by its subject or by what it quotes
    # What the mail says if its body is read otherwise, where no signature covers how to read it; None: anything.
    others: tuple[Reading, ...] | None = ()

    @property
    def closes(self) -> tuple[MailLink, ...]:
        """The links in its Closes: and Link: trailers."""
        return tuple(
            link
            for trailer in self.trailers
            if trailer.key in ("Closes", "Link")
            for link in self.links
            if link.url in trailer.value
        )

    @property
    def fixes(self) -> tuple[str, ...]:
        """The shas in its Fixes: trailers."""
        return fixed_commits(self.trailers)

    @property
    def reverts(self) -> str:
        """The title of the commit that it posts a revert of, "" for any other mail."""
        found = _REVERT.fullmatch(posted_title(self.mail.subject))
        return found[1] if found else ""

    @property
    def may_command(self) -> bool:
        """Whether its commands may run at all: only those of people do, never a robot's."""
        return self.kind in (SenderKind.PERSON, SenderKind.BOT_OPERATOR) and bool(self.mail.author.email)

    @property
    def may_get_error_reply(self) -> bool:
        """Whether its failed commands get an answer: never those of a robot, an auto-reply or a bounce."""
        return self.may_command and bool(self.commands.bad or self.commands.too_many)


def understand(raw: bytes, identity: BotIdentity) -> Reading:
    """Parse and read the bytes of a mail, and verify who wrote it."""
    mail = parse(raw)
    reading = read(mail, identity, judge(raw, mail, identity.trust_anchors))
    if reading.trust.proven and not reading.trust.covers_body:
        others = other_readings(raw, mail)
        reading = replace(reading, others=None if others is None else tuple(read(each, identity) for each in others))
    return replace(reading, bounce=read_bounce(raw)) if reading.kind is SenderKind.BOUNCE else reading


def read(mail: ParsedMail, identity: BotIdentity, trust: Trust = UNPROVEN) -> Reading:
    """Read a parsed mail. Pure: the same mail always gives the same Reading."""
    in_context = quoting.lines_in_context(mail.text)
    lines = [line.text for line in in_context]
    own = quoting.own_of(lines)
    found = find_commands(without_foreign_lines(own), identity.prefix)
    if "html_only" in mail.problems:  # in HTML anything may look like a line of the writer
        found = refused(found, "commands are read from plain text only: send the mail as text/plain")
    problems = list(mail.problems)
    if found.too_many:
        problems.append("too_many_commands")
    problems.extend(f"bad_command, line {bad.line}: {bad.why}" for bad in found.bad)
    tags = (identity.tag_in(address.email) for address in (*mail.recipients, *mail.delivered_to))
    signed = (*(mail.to if trust.covers("to") else ()), *(mail.cc if trust.covers("cc") else ()))
    return Reading(
        mail=mail,
        kind=kind_of(mail, identity),
        own_text=own,
        sentences=() if posted_title(mail.subject) else own_sentences(in_context),
        audience=audience_of(mail, identity),
        commands=found,
        trailers=find_trailers(lines),
        patches=find_patches(lines, mail.subject, mail.attachments),
        links=find_links("\n".join(lines), identity.base_url),
        tags=tuple(dict.fromkeys(tag for tag in tags if tag)),
        notice=find_notice(own),
        problems=tuple(problems),
        trust=trust,
        signed_tags=frozenset(identity.tag_in(address.email) for address in signed) - {""},
        rules_off=identity.rules_off,
        answered_culprit=answered_culprit(mail),
    )
