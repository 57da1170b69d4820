"""From a mail to a Reading: everything that it says, before it is matched to reports. Pure.

`understand` parses the bytes and verifies who wrote them; `kind_of` says what wrote them: a person, the bot, an
operator, a robot, a mail server, an auto-responder. Where no signature covers how the body is to be read,
`others` holds what the mail says if it is read otherwise.

Some mail programs send no In-Reply-To, or it names a mail that no archive has. The subject of a report names its
culprit, and so do the opening lines, which an answer quotes; so the answered report is found by these words. The To:
of a reply names whom it answers; others are addressed by name: "Oliver, can you rerun this?". Robots' notices tell
that a patch was applied: patchwork-bot's "was applied to", tip-bot's "has been merged into". `unsubscribe` or
`subscribe` as subject or first line asks for no more mail, or for mail again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import takewhile

from bot.mail import quoting
from bot.mail.addresses import parse_addresses
from bot.mail.authentication import UNKNOWN_CHARSET, UNPROVEN, Trust, authenticate, other_readings, respaced
from bot.mail.bounces import Bounce, read_bounce
from bot.mail.limits import MAX_REPORTS, OVER, OverLimit
from bot.mail.message import AUTO_REPLY_MARKS, ParsedMail, parse
from bot.mail.patches import (
    MAX_TRAILERS,
    MailLink,
    Patch,
    Reverted,
    Trailer,
    find_links,
    find_patches,
    find_reverted,
    find_trailers,
    fixed_commits,
    fixed_titles,
    is_answer,
    is_diff,
    posted_title,
)
from bot.mail.quoting import ANSWER, AWAY, SUBJECT
from bot.mail.settings import BotSettings
from bot.replies.commands import Commands, find_commands, refused, without_foreign_lines
from bot.replies.sentences import Sentence, own_sentences

# --- Who or what wrote it ---


class SenderKind(StrEnum):
    """The kinds of DESIGN section 5."""

    PERSON = "person"
    SELF = "self"
    BOT_OPERATOR = "bot_operator"
    ROBOT = "robot"
    BOUNCE = "bounce"
    AUTO_REPLY = "auto_reply"
    UNREADABLE = "unreadable"


_ROBOT_ADDRESS = re.compile(
    r"(?:[\w.+-]*-bot|patchwork-bot|patchwork|syzbot|tip-bot\d?|kernelci|regzbot|bugbot|buildbot|bot|bugzilla-daemon|lkft"
    r"|majordomo|mlmmj|notifications?|no[-_]?reply|do[-_]?not[-_]?reply)(?:\+[^@]*)?@",
    re.I,
)
_ROBOT_NAME = re.compile(
    r"\b(?:test robot|tip-bot\d?|patchwork-bot|syzbot|regzbot|0day robot|kernelci|lkft|build ?bot"
    r"|functional testing)\b",
    re.I,
)
# Subjects of auto-replies: the phrase alone, or with the subject that it answers.
_AWAY = re.compile(rf"[\s\[(]*{AWAY}[\])]*\s*(?:[:：]|\Z|\b(?:until|from|autoreply|re:))|[\s]*\[{AWAY}\]", re.I)
_DAEMON = re.compile(
    r"(?:mailer-daemon|postmaster|mail-daemon|microsoftexchange[0-9a-f]{8,40})(?:\+[^@]*)?(?:@|\Z)", re.I
)
# First words of bounces without a delivery status: qmail, Exim, sendmail, Exchange.
_UNDELIVERED = re.compile(
    r"\s*(?:hi\. this is the qmail-send program|this is the mail (?:system|delivery)|this message was created"
    r" automatically by mail|delivery has failed to these recipients|your message (?:could not|wasn't able to) be"
    r"|the original message was received at)",
    re.I,
)
_STATUS = frozenset({"message/delivery-status", "message/disposition-notification", "message/global-delivery-status"})


def kind_of(mail: ParsedMail, settings: BotSettings) -> SenderKind:
    """Return what wrote the mail.

    Operators often share the robot's address, and the display name tells them apart; or they answer under its name from
    an address of their own (seen in 2019-2020 reports).
    """
    author = mail.author
    if not author.email and not mail.message_id and not mail.text.strip():
        return SenderKind.UNREADABLE
    if settings.is_own(author.email) or mail.mark("x-perfwork-report"):
        return SenderKind.SELF
    if _is_bounce(mail):
        return SenderKind.BOUNCE
    # RFC 3834 section 5; whatever is not "no" was written by no person.
    submitted = re.split(r"[;\s(]", mail.mark("auto-submitted").strip(), maxsplit=1)[0].lower()
    by_machine = submitted not in ("", "no")
    if (
        submitted.startswith("auto-replied")
        or "auto_reply" in (mail.mark("precedence").lower(), mail.mark("preference").lower())
        or any(mail.mark(name) for name in AUTO_REPLY_MARKS)
        or (submitted != "no" and _AWAY.match(mail.subject))
    ):
        return SenderKind.AUTO_REPLY
    if mail.mark("return-path") == "<>":  # vacation replies have it too
        return SenderKind.BOUNCE
    if author.email in settings.operators and is_answer(mail.subject) and not by_machine:
        return SenderKind.BOT_OPERATOR
    if _ROBOT_NAME.search(author.name) or mail.mark("x-patchwork-bot") or by_machine:
        return SenderKind.ROBOT
    shared = author.email in settings.robots and author.name.lower() in settings.operators
    if author.email in settings.operators or shared:
        return SenderKind.BOT_OPERATOR
    if author.email in settings.robots or _ROBOT_ADDRESS.match(author.email):
        return SenderKind.ROBOT
    return SenderKind.PERSON


def _is_bounce(mail: ParsedMail) -> bool:
    """Whether it is a multipart/report, a delivery status (RFC 3464), or a mail from the mail system itself."""
    return bool(
        mail.mark("content-type").lower().startswith("multipart/report")
        or any(part.content_type in _STATUS for part in mail.attachments)
        or _DAEMON.match(mail.author.email or mail.mark("from").strip("<> "))
        or mail.mark("from").strip() == "<>"
        or mail.mark("x-failed-recipients")
        or _UNDELIVERED.match(mail.text[:300])
    )


# --- The answered report ---

# "3b1f0c9d2e:  vm-scan.throughput -12.8% regression"
# Where the metric was zero before: "51c0ffeec0: 0.00 -> 811.50 regression". A mail program may cut the end, or write
# the number as its user's language does.
REPORT_SUBJECT = (
    r"\b([0-9a-f]{10,40})\s*:\s*(?:\S{1,200}\s+)?"
    r"(?:(?:[-+]|−|–)?(?:\d+(?:[.,]\d+)?|inf)\s?%|[-+.\de]{1,20} -> [-+.\de]{1,20})"
    r"(?:\s+(?:regr|impr)|\s*(?:\.{2,3}|…)?\s*\Z)"
)
# An answer in a language that nobody knows yet has a word or two and a colon before the whole subject of a report, and
# an answer to an answer has several.
_PREFIX_WORD = r"(?:(?!：)[^\s\[\]:]){1,60}"
# One that was renamed says what it was: "Slow scan (was: [LKP] …)".
ANSWERED_REPORT = (
    rf"(?:{ANSWER}|\s*(?:{_PREFIX_WORD}(?: {_PREFIX_WORD})?\s?(?::|：)\s*){{1,4}}\["
    r"|\s*\[(?:SOLVED|RESOLVED|FIXED)\]\s*\[|.{0,300}[(\[-] ?was:?\s)"
)
QUOTED_COMMIT = r"^[ \t]{0,8}>[> \t]{0,20}commit:?[ \t]+([0-9a-f]{12,40})\b"
# In the header block of the report that Outlook and others put below an answer
QUOTED_SUBJECT = rf"^[ \t>*]{{0,12}}{SUBJECT}\s?\*?(?::|：)[^\n]{{0,200}}?{REPORT_SUBJECT}"
_REPORT_SUBJECT = re.compile(REPORT_SUBJECT, re.I | re.A)
_ANSWERED_REPORT = re.compile(ANSWERED_REPORT, re.I)
_QUOTED_COMMIT = re.compile(QUOTED_COMMIT, re.M | re.I | re.A)
_QUOTED_SUBJECT = re.compile(QUOTED_SUBJECT, re.M | re.I | re.A)


def culprit_in(subject: str) -> str:
    """Return the sha of the culprit whose report an answer with this subject is about; "" if it doesn't say."""
    subject = " ".join(subject.split())
    match = _REPORT_SUBJECT.search(subject) if _ANSWERED_REPORT.match(subject) else None
    return match[1].lower() if match else ""


def answered_culprit(mail: ParsedMail) -> str:
    """Return the sha, perhaps abbreviated, of the culprit whose report this mail answers; "" if it doesn't say."""
    if culprit := culprit_in(mail.subject):
        return culprit
    may_quote = is_answer(mail.subject) and not mail.ancestors
    text = mail.text[:20_000] if may_quote else ""
    match = _QUOTED_SUBJECT.search(text) or _QUOTED_COMMIT.search(text)
    return match[1].lower() if match else ""


# --- Robots' notices ---

# patchwork-bot+netdevbpf: "This patch was applied to netdev/net.git (main)\nby …:" and a link to each commit.
_PATCHWORK = re.compile(r"(?:patch|series)\s+(?:was|were)\s+applied\s+to\s+(\S{3,120})\s+\(([^)\s]{1,120})\)", re.I)
_COMMIT_LINK = re.compile(r"https?://\S{5,200}/c/([0-9a-f]{8,40})\b")
# tip-bot2: "The following commit has been merged into the x86/urgent branch of tip:" and a Commit-ID line.
_TIP = re.compile(r"has\s+been\s+merged\s+into\s+the\s+(\S{1,120})\s+branch\s+of (\w{2,40})\b")
_COMMIT_ID = re.compile(r"^Commit-ID:\s+([0-9a-f]{8,40})\b", re.M)


# Andrew Morton's scripts: "+ mm-walk-once.patch added to mm-unstable branch"
_MM_SUBJECT = re.compile(r"\+ \S{1,200}\.patch added to (?:the )?(?:-?mm)")
_MM = re.compile(
    r"^The patch titled\s+Subject: (.{1,300}(?:\n[ \t]+.{1,300})?)\s+has been added to the -?(mm) (\S{1,80}) branch",
    re.M,
)


@dataclass(frozen=True, slots=True)
class Notice:
    """A commit in a branch of a maintainer's tree."""

    tree: str
    branch: str
    sha: str
    quote: str
    title: str = ""  # of the patch, if the notice says it


def find_notice(own_text: str, subject: str, sender: SenderKind) -> Notice | None:
    """Return the notice in a mail of a robot, or of Andrew Morton's scripts; None for none."""
    commit, title = None, ""
    if _MM_SUBJECT.match(subject) and (match := _MM.search(own_text)):
        title, tree, branch = match.groups()
    elif sender is not SenderKind.ROBOT:
        return None
    elif match := _PATCHWORK.search(own_text):
        tree, branch = match[1], match[2]
        commit = _COMMIT_LINK.search(own_text)
    elif match := _TIP.search(own_text):
        branch, tree = match[1], match[2]
        commit = _COMMIT_ID.search(own_text)
    else:
        return None
    return Notice(tree, branch, commit[1] if commit else "", " ".join(match[0].split()), " ".join(title.split()))


# --- Whom a sentence addresses ---

_NAME = r"[A-Z][\w'-]{1,30}"
_CALLED = re.compile(rf"(?:(?i:hi|hello|hey|dear|so|and|but|also)[ ,]+)?(?:@({_NAME})\b|({_NAME})\s?(?:,|:| -)\s)")
_GREETING = re.compile(
    rf"(?i:hi|hello|hey|dear)\b[^.?!]{{0,60}}\Z|@?{_NAME}(?:(?:,| and| @)? ?{_NAME}){{0,3}}\s?(?:,|:| -)"
)


@dataclass(frozen=True, slots=True)
class Audience:
    """Whom a mail addresses by default, and the first names on both sides, in lower case. `greeted`: the names with
    which it begins.
    """

    to_reporter: bool
    reporters: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    greeted: frozenset[str] = frozenset()

    def is_reporter(self, sentence: Sentence) -> bool:
        """Whether the sentence addresses the reporter: by name, otherwise by the To: of the mail."""
        name = _called_in(sentence.text)
        return name in self.reporters or (self.to_reporter and name not in self.others)

    def is_another(self, sentence: Sentence) -> bool:
        """Whether the sentence, or the greeting above it, calls somebody else by name, and the reporter nowhere."""
        called = _called_in(sentence.text)
        names = {called} if called in self.others or sentence.below else self.greeted
        words = {word.lower() for word in re.findall(_NAME, sentence.text)}
        return not names.isdisjoint(self.others) and self.reporters.isdisjoint(names | words)


def _called_in(text: str) -> str:
    match = _CALLED.match(text)
    return (match[1] or match[2]).lower() if match else ""


def audience_of(mail: ParsedMail, own_text: str, settings: BotSettings) -> Audience:
    """Return whom the mail addresses."""
    reporters, others = set[str](), set[str]()
    for address in mail.recipients:
        last, comma, first = address.name.partition(",")  # "Brook, Dana"
        of_lab = settings.speaks_for_lab(address.email)
        (reporters if of_lab else others).update(name.lower() for name in (first if comma else last).split()[:1])
        if of_lab:
            reporters.update(re.findall(r"[a-z]{2,}", address.email.partition("@")[0]))
    to_reporter = any(settings.speaks_for_lab(address.email) for address in mail.to)
    greeting = _GREETING.match(own_text.lstrip()[:200].partition("\n")[0])
    greeted = frozenset(name.lower() for name in re.findall(_NAME, greeting[0])) if greeting else frozenset()
    return Audience(to_reporter, frozenset(reporters), frozenset(others), greeted)


# --- The reading ---


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
    credited: tuple[str, ...]  # the report tags in our own addresses in its Reported-by: and the like
    notice: Notice | None
    problems: tuple[str, ...]
    trust: Trust = UNPROVEN
    rules_off: frozenset[str] = frozenset()
    signed_tags: frozenset[str] = frozenset()  # those in To and Cc, as far as its writer signed them
    signed_for_us: bool = False  # whether our address is in a To or Cc that its writer signed
    bounce: Bounce = field(default_factory=Bounce)  # empty if it is not a bounce
    answered_culprit: str = ""  # of the report that it answers, by its subject or by what it quotes
    reverted: Reverted = field(default_factory=Reverted)  # the commits that its patches revert
    # What the mail says if its body is read otherwise, where no signature covers how to read it; None: anything.
    others: tuple[Reading, ...] | None = ()
    # What it says with other blanks at the ends of lines, which a relaxed signature doesn't cover.
    respaced: tuple[Reading, ...] = ()
    # What it says above the first line at which an older mail may begin; None if there is no such line.
    undoubted: Reading | None = None
    reporters: frozenset[str] = frozenset()  # in the thread of a person's report: who that is (`in_thread_of`)
    answers_robot: bool = False  # whether the mail that it answers is a robot's, by its Message-ID

    @property
    def certain(self) -> tuple[Reading, ...] | None:
        """Every reading of what is surely the writer's: in each of them must stand what nobody else may say, such as
        a command. None if nobody can tell.
        """
        return None if self.others is None else tuple(one.undoubted or one for one in (self, *self.others))

    @property
    def certain_with_any_blanks(self) -> tuple[Reading, ...] | None:
        """As `certain`, with the readings of other blanks, by which a line is code, a quote or a command."""
        respaced = tuple(one.undoubted or one for one in self.respaced)
        return None if self.certain is None else (*self.certain, *respaced)

    @property
    def closes(self) -> tuple[MailLink, ...]:
        """The links in its Closes: and Link: trailers, and the reports whose address its patch credits."""
        values = [trailer.value for trailer in self.trailers if trailer.key in ("Closes", "Link")]
        credited = (MailLink("", page=tag) for tag in (self.credited if self.patches else ()))
        return (*(link for value in values for link in self.links if link.url in value), *credited)

    @property
    def patch_title(self) -> str:
        """The title of its first patch, by the patch or by the notice that comes with it; "" without either."""
        return self.patches[0].title or (self.notice.title if self.notice else "") if self.patches else ""

    @property
    def fixes(self) -> tuple[str, ...]:
        """The shas in its Fixes: trailers."""
        return fixed_commits(self.trailers)

    @property
    def named_commits(self) -> tuple[str, ...]:
        """The shas that its patches say they fix or revert; () without a patch."""
        return (*self.fixes, *self.reverted.commits) if self.patches else ()

    @property
    def named_titles(self) -> tuple[str, ...]:
        """The titles of the commits that its patches say they fix or revert; () without a patch."""
        return (*fixed_titles(self.trailers), *self.reverted.titles) if self.patches else ()

    @property
    def may_command(self) -> bool:
        """Whether its commands may run at all: only those of people do, never a robot's."""
        return self.kind in (SenderKind.PERSON, SenderKind.BOT_OPERATOR) and bool(self.mail.author.email)

    @property
    def may_get_error_reply(self) -> bool:
        """Whether its failed commands get an answer: never those of a robot, an auto-reply or a bounce."""
        return self.may_command and bool(self.commands.bad or self.commands.too_many)


def understand(raw: bytes, settings: BotSettings) -> Reading:
    """Parse and read the bytes of a mail, and verify who wrote it.

    What a mail past a limit says isn't known: `check_limits` raises for it.
    """
    mail = parse(raw)
    trust = authenticate(raw, mail, settings.trust_anchors)
    if trust.covers("date") and mail.dated:  # anybody can put a Received header above it
        mail = replace(mail, date=mail.dated)
    reading = read(mail, settings, trust)
    reading = _with_undoubted(reading, settings)
    if reading.trust.proven and not reading.trust.covers_body and (others := other_readings(raw, mail)) != ():
        readings = None if others is None else tuple(_with_undoubted(read(one, settings), settings) for one in others)
        reading = replace(reading, others=readings)
    if reading.trust.proven and reading.kind in (SenderKind.PERSON, SenderKind.BOT_OPERATOR):
        readings = tuple(_with_undoubted(read(one, settings), settings) for one in respaced(raw, mail))
        reading = replace(reading, respaced=readings)
    return replace(reading, bounce=read_bounce(raw)) if reading.kind is SenderKind.BOUNCE else reading


def _with_undoubted(reading: Reading, settings: BotSettings) -> Reading:
    """Return the reading of a person's mail with what is surely theirs, if that is less."""
    if reading.kind not in (SenderKind.PERSON, SenderKind.BOT_OPERATOR):
        return reading
    mail = reading.mail
    # In HTML anything may look like the writer's, and a second part may be a log or a mail that is passed on.
    text = "" if "html_only" in mail.problems else quoting.without_doubt(mail.text[: mail.first_part])
    if UNKNOWN_CHARSET in mail.problems:  # any line that is not ASCII may say that an older mail follows
        text = "\n".join(takewhile(str.isascii, text.split("\n")))
    return reading if text == mail.text else replace(reading, undoubted=read(replace(mail, text=text), settings))


def check_limits(reading: Reading) -> None:
    """Raise OverLimit if a mail is past a limit (bot/mail/limits.py), so that it is quarantined."""
    for problem in reading.problems:
        if problem.startswith(OVER):
            raise OverLimit(problem.removeprefix(OVER))


def read(mail: ParsedMail, settings: BotSettings, trust: Trust = UNPROVEN) -> Reading:
    """Read a parsed mail. Pure: the same mail always gives the same Reading."""
    in_context = quoting.lines_in_context(mail.text)
    lines = [line.text for line in in_context]
    own = quoting.own_of(lines)
    commands = find_commands(without_foreign_lines(own), settings.prefix)
    if "html_only" in mail.problems:  # in HTML anything may look like a line of the writer
        commands = refused(commands, "commands are read from plain text only: send the mail as text/plain")
    tags = (settings.tag_in(address.email) for address in (*mail.recipients, *mail.delivered_to))
    named = tuple(dict.fromkeys(tag for tag in tags if tag))
    patches = find_patches(lines, mail.subject, mail.attachments)
    parts = [lines, *(part.text.split("\n") for part in mail.attachments[:50] if is_diff(part.text))]
    trailers = tuple(trailer for part in parts for trailer in find_trailers(part))[:MAX_TRAILERS]
    reported_by = (trailer.value for trailer in trailers if trailer.key.startswith("Reported-"))
    credited = (settings.tag_in(address.email) for value in reported_by for address in parse_addresses(value))
    signed = (*(mail.to if trust.covers("to") else ()), *(mail.cc if trust.covers("cc") else ()))
    kind = kind_of(mail, settings)
    return Reading(
        mail=mail,
        kind=kind,
        own_text=own,
        sentences=() if posted_title(mail.subject) else own_sentences(in_context),
        audience=audience_of(mail, own, settings),
        commands=commands,
        trailers=trailers,
        patches=patches,
        reverted=find_reverted(parts, patches) if patches else Reverted(),
        links=find_links("\n".join(lines), settings.base_url),
        tags=named[:MAX_REPORTS],
        credited=tuple(dict.fromkeys(tag for tag in credited if tag))[:MAX_REPORTS],
        notice=find_notice(own, mail.subject, kind),
        problems=(
            *mail.problems,
            *((f"{OVER}{len(named)} report addresses; at most {MAX_REPORTS}",) if len(named) > MAX_REPORTS else ()),
            *(("too_many_commands",) if commands.too_many else ()),
            *(f"bad_command, line {bad.line}: {bad.why}" for bad in commands.bad),
        ),
        trust=trust,
        signed_tags=frozenset(settings.tag_in(address.email) for address in signed) - {""},
        signed_for_us=any(settings.is_own(address.email) for address in signed),
        rules_off=settings.rules_off,
        answered_culprit=answered_culprit(mail),
        answers_robot=mail.parent.endswith((settings.address, *settings.robots)),
    )


def in_thread_of(reading: Reading, reporters: frozenset[str]) -> Reading:
    """Return the reading of a mail in the thread of a person's report: who is addressed is the reporter, not a lab.

    `reporters`: the person's address and name, as `person_keys` returns them.
    """
    to = {key for address in reading.mail.to for key in (address.email, address.name.lower())}
    names = {name for key in reporters if "@" not in key for name in key.split()}
    others = reading.audience.others - names
    audience = replace(
        reading.audience,
        to_reporter=not to.isdisjoint(reporters),
        reporters=reading.audience.reporters | names,
        others=others,
    )
    return replace(reading, audience=audience, reporters=reporters)


# --- Opt-out and opt-in ---


class MailWish(StrEnum):
    """What the sender asks for."""

    LEAVE = "unsubscribe"
    COME_BACK = "subscribe"


_WISH = re.compile(r"(?:please )?(un-?)?subscribe(?: me)?(?: please)?[\s.!]*", re.I)


def wish_of(reading: Reading, settings: BotSettings) -> MailWish | None:
    """Return the request of a person who wrote to our address, or None.

    Mail only to a list is about that list, wherever somebody sent it on (Delivered-To, the envelope).
    """
    to_us = any(settings.is_own(address.email) for address in reading.mail.recipients)
    if not (to_us and reading.may_command):
        return None
    lines = [line.strip() for line in reading.own_text.splitlines() if line.strip()]
    commanded = [
        line[len(settings.prefix) :].lstrip(": ") for line in lines if line.lower().startswith(settings.prefix.lower())
    ]
    # Whoever sends a signed mail on can write another subject, if that is not signed.
    subject = reading.mail.subject.strip() if not reading.trust.proven or reading.trust.covers("subject") else ""
    for text in (subject, *lines[:1], *commanded[:1]):
        if match := _WISH.fullmatch(text):
            return MailWish.LEAVE if match[1] else MailWish.COME_BACK
    return None
