"""Checks of every mail of ours: whom it reaches, how it answers, what it looks like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, timedelta

from bot.compose.first_screen import WIDTH
from bot.compose.lint.look import Check, Look
from bot.compose.recipients import MOST_LISTS, is_forbidden
from bot.compose.safe import is_address, is_message_id, one_line
from bot.compose.told import ReportTold

MAX_BYTES = 100_000
_AHEAD = timedelta(hours=1)
_PLACEHOLDER = re.compile(
    r"\{\{|\}\}|\{%|%\}|\{\w+\}|%\(\w+\)s|<[A-Z_]{3,}>|\b(?:TODO|FIXME|XXX)\b|(?<![\w.:-])(?:None|null|undefined)(?![\w.-])"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")
# What must not be broken, however long it is: names of commits, links, tags, the box, and the fields of a report.
_WHOLE = re.compile(
    r"commit: |\S*https?://|\| |\+--|\t|#regzbot |[\w -]{1,40}: \S*https?://"
    r"|(?:testcase|config|compiler|test machine|command line|rootfs|test-description): "
)
_HEADINGS = (
    "Details are as below:",
    "following tests:",
    "What the profile shows, in points of all CPU time:",
    "kindly add these tags:",
)
_END = "\n-- \n"


def _addresses(look: Look) -> Iterator[str]:
    mail = look.mail
    everybody = [*mail.to, *mail.cc]
    if not mail.to:
        yield "it would reach nobody: the author's address can't be used, no list is set"
    for each in everybody:
        if not is_address(each.email):
            yield f"{one_line(each.email, 80)!r} is no address"
        elif is_forbidden(each.email):
            yield f"{each.email}: a report must never reach it"
        elif look.identity.is_own(each.email):
            yield f"{each.email} is ours: it would answer itself"
    if len({each.email for each in everybody}) < len(everybody):
        yield "somebody stands twice among the recipients"
    if len(everybody) > look.conventions.most_people + MOST_LISTS:
        yield f"{len(everybody)} recipients are too many"
    if [each.email for each in look.read.recipients] != [each.email for each in everybody]:
        yield "To and Cc read otherwise than they were meant"


def _sender(look: Look) -> Iterator[str]:
    if look.read.author.email != look.identity.address:
        yield f"it is not from {look.identity.address}"
    if look.mail.reply_to.email != look.identity.tagged(look.mail.report_tag):
        yield "answers would not come back with the report's tag"


def _ids(look: Look) -> Iterator[str]:
    mail, domain = look.mail, look.identity.address.partition("@")[2]
    if not is_message_id(mail.message_id) or not mail.message_id.endswith(f"@{domain}"):
        yield f"its Message-ID is none of ours: {one_line(mail.message_id, 80)!r}"
    if look.read.message_id != mail.message_id:
        yield "its Message-ID reads otherwise than it was fixed"
    if mail.message_id in (mail.in_reply_to, *mail.references):
        yield "it answers itself"
    if mail.in_reply_to and mail.references[-1:] != (mail.in_reply_to,):
        yield "its References do not end with what it answers"
    if not all(map(is_message_id, mail.references)):
        yield "its References hold what is no Message-ID"


def _date(look: Look) -> Iterator[str]:
    if look.mail.date.tzinfo is None:
        yield "its date tells no time zone"
    elif look.mail.date.astimezone(UTC) > look.now + _AHEAD:
        yield "its date lies in the future"


def _body(look: Look) -> Iterator[str]:
    body = look.mail.body
    if len(look.raw) > MAX_BYTES:
        yield f"it is larger than {MAX_BYTES // 1000} kB"
    if found := _CONTROL.search(body):
        yield f"it holds a control character, U+{ord(found[0]):04X}"
    if found := _PLACEHOLDER.search(_own_words(body, look.told)):
        yield f"something was not filled in: {found[0]}"
    if not body.isascii() and b'charset="utf-8"' not in look.raw:
        yield "its charset is not declared"
    if _END not in body:
        yield "nothing says where it ends"
    if look.identity.page("").rstrip("/") not in body:
        yield "no link leads to the report's page"


def _width(look: Look) -> Iterator[str]:
    """Tables are as wide as they are, and what programs look for stands in one line."""
    for line in look.mail.body.partition("\nDetails are as below")[0].split("\n"):
        if len(line) > WIDTH and not _WHOLE.match(line):
            yield f"a line is longer than {WIDTH} columns: {line[:40]}…"
            return


def _sections(look: Look) -> Iterator[str]:
    """A heading with nothing below it."""
    lines = [line for line in look.mail.body.split("\n") if line.strip()]
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line in _HEADINGS and (not below or below in (*_HEADINGS, "-- ")):
            yield f"nothing stands below {line!r}"


def _own_words(body: str, told: ReportTold | None) -> str:
    """The body without what others have named, which may look like anything."""
    if told is None:
        return body
    build = told.build
    foreign = [told.title, told.parent_title, told.tree, told.tree_url, told.branch, told.base, told.good, told.bad]
    foreign += [told.raw, told.test_text, told.test_url, *(each.ref for each in told.rechecks)]
    foreign += [build.kconfig, build.compiler, build.rootfs, build.cmdline, build.config_url]
    for each in told.findings:
        foreign += [each.metric, each.suite, each.machine, each.machine_text, each.unit]
        foreign += [*each.params.keys(), *each.params.values()]
    for text in sorted({one_line(each) for each in foreign}, key=len, reverse=True):
        if _PLACEHOLDER.search(text):
            body = body.replace(text, "")
    return body


CHECKS: tuple[Check, ...] = (_addresses, _sender, _ids, _date, _body, _width, _sections)
