"""Checks of every outgoing mail: its recipients, headers and form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, timedelta

from bot.compose.conventions import WIDTH
from bot.compose.lint.context import Check, LintContext
from bot.compose.obeyed_lines import is_obeyed
from bot.compose.recipients import is_forbidden
from bot.mail.sanitising import is_address, is_message_id, one_line

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
    r"commit: |.{1,60} noticed an? |\| |\+--|\t|#regzbot |(?:\S* )?(?:https?|git|ssh)://|artifact: "
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
    for each in everybody:
        if not is_address(each.email):
            yield f"{one_line(each.email, 80)!r} is not a valid address"
        elif is_forbidden(each.email):
            yield f"{each.email}: must never get a report"
        elif context.identity.is_own(each.email):
            yield f"{each.email} is our own address: the bot would mail itself"
    if len({each.email for each in everybody}) < len(everybody):
        yield "a recipient is listed twice"
    if len(everybody) > context.conventions.most_people:
        yield f"{len(everybody)} recipients: too many"
    if [each.email for each in context.read.recipients] != [each.email for each in everybody]:
        yield "To and Cc do not parse as intended"


def _sender(context: LintContext) -> Iterator[str]:
    if context.read.author.email != context.identity.address:
        yield f"From is not {context.identity.address}"
    if context.mail.reply_to.email != context.identity.tagged(context.mail.report_tag):
        yield "Reply-To lacks the report's tag"


def _ids(context: LintContext) -> Iterator[str]:
    mail, domain = context.mail, context.identity.address.partition("@")[2]
    if not is_message_id(mail.message_id) or not mail.message_id.endswith(f"@{domain}"):
        yield f"the Message-ID is not one of ours: {one_line(mail.message_id, 80)!r}"
    if context.read.message_id != mail.message_id:
        yield "the Message-ID does not parse as intended"
    if mail.message_id in (mail.in_reply_to, *mail.references):
        yield "it replies to itself"
    if mail.in_reply_to and mail.references[-1:] != (mail.in_reply_to,):
        yield "References do not end with the In-Reply-To"
    if not all(map(is_message_id, mail.references)):
        yield "References contain an invalid Message-ID"


def _date(context: LintContext) -> Iterator[str]:
    if context.mail.date.tzinfo is None:
        yield "the date has no time zone"
    elif context.mail.date.astimezone(UTC) > context.now + _AHEAD:
        yield "the date is in the future"


def _body(context: LintContext) -> Iterator[str]:
    body = context.mail.body
    if max(map(len, context.raw.split(b"\r\n"))) > MAX_LINE:
        yield f"a line is longer than {MAX_LINE} octets, the limit of RFC 5322"
    if len(context.raw) > MAX_BYTES:
        yield f"it is larger than {MAX_BYTES // 1000} kB"
    if control := _CONTROL.search(body):
        yield f"it contains a control character, U+{ord(control[0]):04X}"
    for found in _PLACEHOLDER.finditer(body):
        if not any(found[0] in text for text in context.foreign):
            yield f"a placeholder was not filled in: {found[0]}"
            break
    if not body.isascii() and b'charset="utf-8"' not in context.raw:
        yield "the charset is not declared"
    if _END not in body:
        yield "the signature delimiter is missing"
    if (context.mail.page or context.identity.page("").rstrip("/")) not in body:
        yield "no link to its page" if context.mail.page else "no link to the report's page"


def _width(context: LintContext) -> Iterator[str]:
    """Lines above the tables fit WIDTH, except for those that programs parse."""
    for line in context.mail.body.partition("\nDetails are as below")[0].split("\n"):
        if len(line) > WIDTH and not _UNWRAPPED.match(line):
            yield f"a line is longer than {WIDTH} columns: {line[:40]}…"
            return


def _obeyed(context: LintContext) -> Iterator[str]:
    """Lines that programs act on are our own."""
    for line in filter(is_obeyed, context.mail.body.split("\n")):
        ours = _OURS.fullmatch(line)
        if ours is None or ours["tested"] not in (None, context.identity.tagged(context.mail.report_tag)):
            yield f"programs would act on a line that is not ours: {line[:60]}"
            return


def _sections(context: LintContext) -> Iterator[str]:
    """No heading is left without content."""
    lines = [line for line in context.mail.body.split("\n") if line.strip()]
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line in HEADINGS and (not below or below in (*HEADINGS, "-- ")):
            yield f"no content below {line!r}"


CHECKS: tuple[Check, ...] = (_addresses, _sender, _ids, _date, _body, _width, _obeyed, _sections)
