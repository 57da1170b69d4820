"""The report mail: what changed, by how much, where, since which commit, the evidence, and how to reply."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.template.loader import render_to_string

from bot.compose.conventions import DEFAULT, WIDTH, Conventions
from bot.compose.mail import ComposedMail
from bot.compose.message_id import message_id
from bot.compose.obeyed_lines import guarded
from bot.compose.recipients import recipients_of
from bot.compose.report.attachments import attachments
from bot.compose.report.first_screen import LINES, first_screen, height
from bot.compose.report.report_data import FindingData, ReportData
from bot.compose.report.reproduce import in_lines, reproduce
from bot.compose.report.subject import report_subject
from bot.compose.report.tables import impacts, profile, sides, tables
from bot.compose.report.warnings import warnings_of
from bot.mail.addresses import Address
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import lore_link, one_line
from tracker.domain.events import Verdict
from tracker.domain.text.english import article
from tracker.domain.text.formats import prose_pct

MOST_FILES = 10  # links in one mail
_PLAIN_NAME = re.compile(r"[\w.:-]+\Z")
_REPOSITORY = re.compile(r"(?:https?|git|ssh)://[^\s<>\"]+\Z")


def compose(
    report: ReportData,
    identity: BotIdentity,
    now: datetime,
    own_id: str = "",
    conventions: Conventions = DEFAULT,
    excluded: Mapping[str, str] | None = None,
) -> ComposedMail:
    """Return the complete mail about a report. Pure: equal values give equal mails.

    `own_id`: its Message-ID, if it is composed again. `excluded`: addresses that must get no mail from us, with the
    reason.
    """
    if report.verdict is not Verdict.REGRESSION:
        conventions = replace(conventions, regzbot="")  # regzbot tracks no improvements
    own_id = own_id or message_id(now, report.tag, identity)
    headline = report.headline
    return ComposedMail(
        message_id=own_id,
        sender=Address(identity.name, identity.address),
        reply_to=Address(identity.name, identity.tagged(report.tag)),
        recipients=recipients_of(report.commit, identity, conventions, excluded),
        subject=report_subject(
            report.title,
            report.sha,
            headline.change_pct,
            report.verdict,
            conventions.subject,
            headline.metric,
            report.tree,
            report.branch,
        ),
        date=now.replace(microsecond=0),
        body=_body(report, own_id, identity, conventions),
        report_tag=report.tag,
        in_reply_to=report.patch.in_reply_to,
        references=report.patch.references,
        attachments=attachments(report, conventions),
    )


def noticed(verdict: Verdict, headline: FindingData) -> str:
    """Return "a -8.8% regression of vm-scan.ops_per_sec", the form that parsers of LKP reports expect."""
    metric = one_line(headline.metric, 200).replace(" ", "_")
    if headline.change_pct is None:  # from zero: a percentage would be meaningless
        return f"{article(verdict)} {verdict} of {metric}"
    change = prose_pct(headline.change_pct)
    return f"{article(change)} {change} {verdict} of {metric}"


def finished(text: str, own: Collection[str]) -> str:
    """Return a rendered template as a body: no trailing spaces, except in the signature delimiter. `own`: the lines
    that programs should act on.
    """
    kept = [line.rstrip() for line in text.strip("\n").split("\n")]
    return guarded("\n".join("-- " if line == "--" else line for line in kept) + "\n", ("commit:", *own))


def commit_line(sha: str, title: str) -> str:
    """Return the line from which parsers of LKP reports take the culprit."""
    return f'commit: {sha} ("{one_line(title, 200)}")'.rstrip()


def tags(tag: str, own_id: str, identity: BotIdentity) -> tuple[str, ...]:
    """Return the trailers that let us detect in git when a fix is merged."""
    return (
        f"Reported-by: {one_line(identity.name)} <{identity.tagged(tag)}>",
        f"Closes: {lore_link(own_id)}",
    )


def _body(report: ReportData, own_id: str, identity: BotIdentity, conventions: Conventions) -> str:
    headline = report.headline
    regression = report.verdict is Verdict.REGRESSION
    title = one_line(report.title, 200)
    sentence = f"{one_line(identity.name, 60)} noticed {noticed(report.verdict, headline)} on:"
    first, *notes = warnings_of(report) or ("",)
    opening = ["Hello,", "", sentence, "", commit_line(report.sha, report.title), _origin(report), ""]
    context = {
        "bot": one_line(identity.name, 60),
        "report": report,
        "title": title,
        "sentence": sentence,
        "commit": commit_line(report.sha, report.title),
        "origin": _origin(report),
        "facts": first_screen(report, identity, conventions.reproduce, LINES - height(opening), first),
        "notes": [_wrapped(f"Please note: {sentence}.") for sentence in notes],
        "tags": tags(report.tag, own_id, identity) if regression else (),
        "suite": one_line(headline.suite, 100),
        "kconfig": one_line(report.build.kconfig, 200),
        "compiler": one_line(report.build.compiler, 200),
        "machine": one_line(headline.machine_text or headline.machine, 300),
        "params": _parameters(headline.params),
        "more": list(_more(report, conventions)) if regression else (),
        "impacts": impacts(report),
        "profile": profile(report.findings) if regression else (),
        "tables": list(tables(report.findings)),
        "sides": sides(report.sha, report.title, report.parent_sha, report.parent_title, report.base),
        "raw": report.raw,
        "page": identity.page(report.sha[:12]),
        "help": identity.help("answering"),
        "regzbot": conventions.regzbot,
    }
    own = (commit_line(report.sha, report.title), f"#regzbot introduced: {report.sha}")
    return finished(render_to_string("mail/report.txt", context), own)


def _origin(report: ReportData) -> str:
    """Return the repository and the branch, in one line."""
    if _REPOSITORY.match(report.tree_url):
        return one_line(f"{report.tree_url} {report.branch}", 300)
    return one_line(f"in tree {report.tree} {report.branch}", 200) if report.tree else "in an unnamed tree"


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(one_line(text, 600), WIDTH, break_on_hyphens=False))


def _parameters(params: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    """Return the parameters, with names that parsers can split from values: no colon in a name with spaces."""
    pairs = ((one_line(name, 80), one_line(value, 300)) for name, value in params.items())
    return [(name if _PLAIN_NAME.match(name) else name.replace(":", "_"), value) for name, value in pairs]


def _more(report: ReportData, conventions: Conventions) -> Sequence[str]:
    """Return what else is known about the test and the build, one line each."""
    build = report.build
    command = reproduce(report, conventions.reproduce)
    lines = (
        ("to reproduce", "" if in_lines(command) else command),
        ("test-description", report.test_text),
        ("test-url", report.test_url),
        ("config-url", build.config_url),
        ("command line", build.cmdline),
        ("rootfs", build.rootfs),
    )
    files = [f"artifact: {one_line(url, 300)} ({one_line(name, 80)})" for name, url in report.artifacts[:MOST_FILES]]
    return [*(f"{name}: {one_line(text, 500)}" for name, text in lines if text), *files]
