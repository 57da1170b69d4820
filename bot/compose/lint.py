"""The lint of a mail before it enters the outbox: a mail with a fault is held, for that reason.

The mail is parsed as its recipients will, and compared with what it should say. Every mail is checked for its
recipients, headers and form; a report mail also for whether subject, text and tables state what was measured, for the
right commit. A fault is one sentence.

To add a check: write a generator that takes a `LintContext` and yields sentences, name it in `MAIL_CHECKS`, or in
`REPORT_CHECKS` if it is for report mails and takes what they should say, and add a seeded fault to
tests/bot/compose/test_lint.py.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.errors import MessageError
from itertools import chain, islice

from bot.compose import report_data
from bot.compose.conventions import WIDTH, Conventions, is_directive
from bot.compose.mail import UNREACHABLE, ComposedMail, Recipients, edited, is_forbidden, mail_of, to_bytes
from bot.compose.report_data import ReportData
from bot.compose.report_mail import tables
from bot.mail import message
from bot.mail.addresses import parse_addresses
from bot.mail.message import is_address, is_message_id, one_line, parse
from bot.mail.settings import BotSettings
from bot.robot_reports.fields import read_subject
from bot.robot_reports.report import RobotReport, find_report
from tracker.domain.events import Verdict
from tracker.domain.statistics import verdict_of
from tracker.domain.text import article, lore_url


@dataclass(frozen=True, slots=True)
class LintContext:
    """`raw`, `read`: the mail as bytes, and as its recipients parse it; `foreign`: names and texts in it that are not
    ours. `report`: what our parser finds in a report mail, None in a further one.
    """

    mail: ComposedMail
    raw: bytes
    read: message.ParsedMail
    settings: BotSettings
    conventions: Conventions
    now: datetime
    foreign: tuple[str, ...] = ()
    report: RobotReport | None = None


Check = Callable[[LintContext], Iterator[str]]
ReportCheck = Callable[[LintContext, ReportData], Iterator[str]]


def names_in(report: ReportData) -> Iterator[str]:
    """Yield the texts of a report that come from labs and commits, and may look like anything."""
    yield from (report.title, report.parent_title, report.tree, report.tree_url, report.branch)
    yield from (report.base, report.good, report.bad, report.raw, report.test_text, report.test_url)
    yield from (ref for ref, _ in report.rechecks)
    yield from (text for pair in report.artifacts for text in pair)
    build = report.build
    yield from (build.kconfig, build.compiler, build.rootfs, build.cmdline, build.config_url)
    for finding in report.findings:
        yield from (finding.metric, finding.suite, finding.machine, finding.machine_text, finding.unit)
        yield from (*finding.params.keys(), *finding.params.values())


# --- Every mail ---

MAX_BYTES = 100_000
MAX_LINE = 998  # RFC 5322 section 2.1.1
_AHEAD = timedelta(hours=1)
_PLACEHOLDER = re.compile(
    r"\{\{|\}\}|\{%|%\}|\{\w+\}|%\(\w+\)s|<[A-Z_]{3,}>|\b(?:TODO|FIXME|XXX)\b"
    r"|(?<![\w.:-])(?:None|null|undefined)(?![\w.-])"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")
# Lines that must not be wrapped, whatever their length: commits, metrics, links, tags, the box, and the fields of a
# report, each recognised by how it begins.
_UNWRAPPED = re.compile(
    r"commit: |.{1,160} noticed an? |\| |\+--|\t|#regzbot |(?:\S* )?(?:https?|git|ssh)://|artifact: "
    r"|(?:in tree|testcase:|config:|config-url:|compiler:|test machine:|command line:|rootfs:|to reproduce:) "
    r"|(?:test-description|test-url|raw data|full report|how to answer|reported|now|Tested-by|fix with): "
    r"|(?:fix|culprit|metric|where|the culprit|with the fix): {1,10}"
)
# The lines for programs that we write ourselves.
_OURS = re.compile(
    r'commit:(?: [0-9a-f]{40} \(".*"\))?|#regzbot introduced: [0-9a-f]{40}|Tested-by: [^<>]* <(?P<tested>.*)>'
)
HEADINGS = (  # lines of the templates that need content below them
    "Details are as below:",
    "following tests:",
    "Profile changes, in percentage points of all CPU time:",
    "kindly add these tags:",
    "parameters:",
)
_END = "\n-- \n"


def _addresses(context: LintContext) -> Iterator[str]:
    mail = context.mail
    everybody = [*mail.to, *mail.cc]
    if not mail.to:
        yield "no recipients: the author's address is unusable and no list is set"
    for address in everybody:
        if not is_address(address.email):
            yield f"{one_line(address.email, 80)!r} is not a valid address"
        elif is_forbidden(address.email):
            yield f"{address.email}: must never get a report"
        elif context.settings.is_own(address.email):
            yield f"{address.email} is our own address: the bot would mail itself"
    if len({address.email for address in everybody}) < len(everybody):
        yield "a recipient is listed twice"
    if len(everybody) > context.conventions.most_people:
        yield f"{len(everybody)} recipients: too many"
    if [address.email for address in context.read.recipients] != [address.email for address in everybody]:
        yield "To and Cc do not parse as intended"


def _headers(context: LintContext) -> Iterator[str]:
    mail, read, domain = context.mail, context.read, context.settings.address.partition("@")[2]
    if read.author.email != context.settings.address:
        yield f"From is not {context.settings.address}"
    if mail.reply_to.email != context.settings.tagged(mail.report_tag):
        yield "Reply-To lacks the report's tag"
    if not is_message_id(mail.message_id) or not mail.message_id.endswith(f"@{domain}"):
        yield f"the Message-ID is not one of ours: {one_line(mail.message_id, 80)!r}"
    if read.message_id != mail.message_id:
        yield "the Message-ID does not parse as intended"
    if mail.message_id in (mail.in_reply_to, *mail.references):
        yield "it replies to itself"
    if mail.in_reply_to and mail.references[-1:] != (mail.in_reply_to,):
        yield "References do not end with the In-Reply-To"
    if not all(map(is_message_id, mail.references)):
        yield "References contain an invalid Message-ID"
    if mail.date.tzinfo is None:
        yield "the date has no time zone"
    elif mail.date.astimezone(UTC) > context.now + _AHEAD:
        yield "the date is in the future"


def _body(context: LintContext) -> Iterator[str]:
    body = context.mail.body
    if max(map(len, context.raw.split(b"\r\n"))) > MAX_LINE:
        yield f"a line is longer than {MAX_LINE} octets, the limit of RFC 5322"
    if len(context.raw) > MAX_BYTES:
        yield f"it is larger than {MAX_BYTES // 1000} kB"
    if control := _CONTROL.search(body):
        yield f"it contains a control character, U+{ord(control[0]):04X}"
    for match in _PLACEHOLDER.finditer(body):
        if not any(match[0] in text for text in context.foreign):
            yield f"a placeholder was not filled in: {match[0]}"
            break
    if not body.isascii() and b'charset="utf-8"' not in context.raw:
        yield "the charset is not declared"
    if _END not in body:
        yield "the signature delimiter is missing"
    if (context.mail.page or context.settings.page("").rstrip("/")) not in body:
        yield "no link to its page" if context.mail.page else "no link to the report's page"


def _width(context: LintContext) -> Iterator[str]:
    """Lines above the tables fit WIDTH, except for those that programs parse."""
    for line in context.mail.body.partition("\nDetails are as below")[0].split("\n"):
        if len(line) > WIDTH and not _UNWRAPPED.match(line):
            yield f"a line is longer than {WIDTH} columns: {line[:40]}…"
            return


def _directives(context: LintContext) -> Iterator[str]:
    """Lines that programs act on are our own."""
    for line in filter(is_directive, context.mail.body.split("\n")):
        ours = _OURS.fullmatch(line)
        if ours is None or ours["tested"] not in (None, context.settings.tagged(context.mail.report_tag)):
            yield f"programs would act on a line that is not ours: {line[:60]}"
            return


def _sections(context: LintContext) -> Iterator[str]:
    """No heading is left without content."""
    lines = [line for line in context.mail.body.split("\n") if line.strip()]
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line in HEADINGS and (not below or below in (*HEADINGS, "-- ")):
            yield f"no content below {line!r}"


MAIL_CHECKS: tuple[Check, ...] = (_addresses, _headers, _body, _width, _directives, _sections)


# --- Report mails ---

_ROUNDING = 0.06  # percentage points: both numbers are printed with one decimal


def _subject(context: LintContext, expected: ReportData) -> Iterator[str]:
    subject = read_subject(context.read.subject)
    if subject.sha != expected.sha[:10]:
        yield f"the subject names {subject.sha or 'no commit'}, the culprit is {expected.sha[:10]}"
    change = expected.headline.change_pct
    if subject.verdict != expected.verdict:
        yield f"the subject says {subject.verdict or 'nothing'}, it is {expected.verdict}"
    if change is None:  # from zero
        if subject.sides != (means := report_data.means(expected.headline)):
            yield f"the subject says {subject.sides or 'no numbers'}, measured is {means}"
        return
    if not subject.percent or abs(float(subject.percent) - change) > _ROUNDING:
        yield f"the subject says {subject.percent or 'no'}%, measured is {change:+.1f}%"


def _people(context: LintContext, expected: ReportData) -> Iterator[str]:
    """Somebody gets it who can answer: a list alone does not, where the author's address can't be reached."""
    recipients = context.mail.recipients
    if any(not recipient.is_list for recipient in (*recipients.to, *recipients.cc)):
        return
    for recipient in recipients.left_out:
        if recipient.email == expected.author.email and recipient.why.startswith(UNREACHABLE):
            yield f"nobody would get it who can answer: {recipient.email} is left out: {recipient.why}"
            return


def _numbers(context: LintContext, expected: ReportData) -> Iterator[str]:
    """The sentence and the table, as our parser of LKP reports reads them."""
    read, headline = context.report, expected.headline
    if headline.change_pct is None:
        return  # from zero there is no percentage, by which parsers recognise a report
    if read is None:
        yield "our parser does not recognise it as a report"
        return
    if read.culprit != expected.sha:
        yield f"the body names {read.culprit[:10]}, the culprit is {expected.sha[:10]}"
    if read.verdict != expected.verdict:
        yield f"the body says {read.verdict}, it is {expected.verdict}"
    if abs(float(read.percent) - headline.change_pct) > _ROUNDING:
        yield f"the body says {read.percent}%, measured is {headline.change_pct:+.1f}%"
    yield from (f"it contradicts itself: {problem}" for problem in read.unsure)


def _tables(context: LintContext, expected: ReportData) -> Iterator[str]:
    """The tables have the rows that they were made with, and none is empty."""
    read, headline = context.report, expected.headline
    if read is None:
        return
    rows = sum(len(table.rows) for table in read.tables)
    wanted = sum(len(table.rows) for table in tables(expected.findings))
    if rows != wanted:
        yield f"the tables have {rows} of {wanted} rows"
    for number, table in enumerate(read.tables, 1):
        if not table.rows:
            yield f"table {number} is empty"
        elif table.unread or not table.is_complete:
            yield f"table {number} can't be parsed"
    if read.row is None:
        yield f"no table has {one_line(headline.metric, 80)}"
    elif [read.row.old.mean, read.row.new.mean] != [
        float(report_data.value(mean)) for mean in (headline.old_mean, headline.new_mean)
    ]:
        measured = f"{headline.old_mean:g} -> {headline.new_mean:g}"
        yield f"the table says {read.row.old.mean:g} -> {read.row.new.mean:g}, measured is {measured}"
    elif read.row.change != report_data.moved(headline):
        yield f"the table says {read.row.change}, measured is {report_data.moved(headline)}"


def _verdict(context: LintContext, expected: ReportData) -> Iterator[str]:
    """The verdict follows from the metric's direction, not from the sign alone."""
    headline = expected.headline
    if expected.verdict is Verdict.UNKNOWN:
        yield "the metric's direction is unknown"
    elif verdict_of(headline.old_mean, headline.new_mean, headline.direction) != expected.verdict:
        yield f"the change of {one_line(headline.metric, 80)} is not {article(expected.verdict)} {expected.verdict}"


def _tags(context: LintContext, expected: ReportData) -> Iterator[str]:
    """The tag block of a regression points to this mail; an improvement has none."""
    body = context.mail.body
    closes = re.findall(r"^\| Closes: (\S+)$", body, re.M)
    reported = re.findall(r"^\| Reported-by: (.*)$", body, re.M)
    if expected.verdict is not Verdict.REGRESSION:
        if closes or reported:
            yield "an improvement must not ask for tags"
        return
    if closes != [lore_url(context.mail.message_id)]:
        yield "Closes: does not link to this mail"
    addresses = [address.email for value in reported for address in parse_addresses(value)]
    if addresses != [context.settings.tagged(expected.tag)]:
        yield "Reported-by: is not the report's address"


def _culprit(context: LintContext, expected: ReportData) -> Iterator[str]:
    oldest = context.conventions.oldest
    if not re.fullmatch(r"[0-9a-f]{40}", expected.sha):
        yield f"{one_line(expected.sha, 50)!r} is not a full sha"
    if not expected.title:
        yield "the culprit has no title"
    if not is_address(expected.author.email):
        yield "the culprit's author is not known"
    if expected.authored_at and context.now - expected.authored_at > oldest:
        yield f"the culprit is from {expected.authored_at:%Y-%m-%d}, older than {oldest.days} days"
    if expected.parent_sha == expected.sha:
        yield "the culprit is its own parent"


REPORT_CHECKS: tuple[ReportCheck, ...] = (_subject, _people, _numbers, _tables, _verdict, _tags, _culprit)


# --- A text that an operator edited ---

# What an edit of a report mail must leave as it was measured, and how a fault calls it.
_MEASURED = {
    "culprit": "the culprit",
    "verdict": "whether it is worse",
    "percent": "the change",
    "row": "the numbers of the headline",
    "additional": "the other changes",
    "tables": "the tables",
    "tags": "the tags that a fix is asked to carry",
}


def edit_faults(
    raw: bytes, body: str, new: str, tag: str, settings: BotSettings, conventions: Conventions, now: datetime
) -> tuple[str, ...]:
    """Return the faults of a mail of ours whose text was edited: of its form, and in what it says was measured.

    `raw`, `body`: as it was; `new`: the edited text; `tag`: the one in the address that answers go to.
    """
    before, after = parse(raw), parse(edited(raw, new))

    def of_form(text: str) -> list[str]:
        mail = mail_of(before.message_id, tag, Recipients((), ()), before.subject, text, settings, now)
        context = LintContext(mail, edited(raw, text), before, settings, conventions, now)
        return [fault for check in (_body, _width, _directives, _sections) for fault in check(context)]

    had = of_form(body)  # as with another mail's link, or a name that looks like a placeholder
    faults = [fault for fault in of_form(new) if fault not in had]
    was, is_now = find_report(before), find_report(after)
    if was and not is_now:
        faults.append("our parser no longer recognises it as a report")
    elif was and is_now:
        different = [name for field, name in _MEASURED.items() if getattr(was, field) != getattr(is_now, field)]
        faults += [f"must stay as it was measured: {name}" for name in different]
    return tuple(faults[:MOST_FAULTS])


# --- The lint ---

MOST_FAULTS = 10  # listed for one mail


def faults(
    mail: ComposedMail,
    settings: BotSettings,
    conventions: Conventions,
    now: datetime,
    expected: ReportData | None = None,
    foreign: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the faults of a mail, one sentence each; empty if it may be sent.

    `expected`: what a report mail should say; `foreign`: in a further mail, the names and texts that are not ours.
    """
    try:
        raw = to_bytes(mail)
    except (ValueError, IndexError, MessageError) as error:  # the email package, by its version, for a bad header
        return (f"not a valid mail: {error}",)
    read = parse(raw)
    names = tuple(names_in(expected) if expected else foreign)
    report = find_report(read) if expected else None
    context = LintContext(mail, raw, read, settings, conventions, now, names, report)
    reports = (fault for check in REPORT_CHECKS for fault in check(context, expected)) if expected else ()
    all_faults = chain((fault for check in MAIL_CHECKS for fault in check(context)), reports)
    return tuple(islice(all_faults, MOST_FAULTS))
