"""Tables of reports beside their pages: JSON, CSV, text, Markdown, Atom, and lines for regzbot.

CSV is streamed, with every report (tracker/documents/csv_tables.py). The others are in FORMS: each takes a title,
reports by section as `report_json` returns them, and the address of the page, and returns bytes. Text has 78 columns,
and the regzbot lines follow Documentation/process/handling-regressions.rst and regzbot's own page of commands.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from textwrap import wrap
from typing import Any

import orjson
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.feedgenerator import Atom1Feed

from tracker.documents import csv_tables
from tracker.documents.blocks import escaped
from tracker.domain import versions
from tracker.domain.events import OPEN, Verdict
from tracker.domain.report_state import NOT_BISECTED
from tracker.domain.text import number, printable, signed_pct
from tracker.models import Report
from tracker.pages.http import csv_response
from tracker.pages.report_json import directions, report_json
from tracker.pages.triage.filters import SECTIONS
from tracker.pages.triage.table import LIMIT
from tracker.services.report_summary import headline_of, with_headlines

WIDTH = 78  # columns
_INDENT = " " * 8
Rows = Sequence[Mapping[str, Any]]
# "merged" and "shift_left" of a release, or "reports"; as `report_json` returns reports.
Sections = Mapping[str, Rows]
TITLES = {**{section.exported: section.heading for section in SECTIONS.values()}, "reports": "Reports"}


def as_json(title: str, sections: Sections, url: str) -> bytes:
    named = "title" if "reports" in sections else "release"
    return orjson.dumps({named: title, "url": url, **sections}, option=orjson.OPT_UTC_Z)


def as_text(title: str, sections: Sections, url: str) -> bytes:
    lines = [f"Kernel performance regressions of {title}", *([url] if len(url) <= WIDTH else [])]
    for section, rows in sections.items():
        lines += ["", f"{TITLES[section]} ({len(rows)})", "", reports_text(rows) or "none"]
    return ("\n".join(lines).rstrip() + "\n").encode()


def reports_text(rows: Rows) -> str:
    """Return reports as paragraphs of 78 columns; "" for none."""
    paragraphs = [
        [
            *_wrapped(f"{signed_pct(row['change'])}  {_commit(row)} {_name(row)}"),
            *_wrapped(row["status"], _INDENT),
            *_wrapped(_place(row), _INDENT),
        ]
        for row in rows
    ]
    return "\n\n".join("\n".join(lines) for lines in paragraphs)


def as_markdown(title: str, sections: Sections, url: str) -> bytes:
    lines = [f"# Kernel performance regressions of {escaped(title)}"]
    for section, rows in sections.items():
        lines += ["", f"## {TITLES[section]} ({len(rows)})", ""]
        lines += [
            f"- **{escaped(signed_pct(row['change']))}** [{_commit(row)}]({row['url']}) {escaped(_name(row))}: "
            f"{escaped(row['status'])} ({escaped(_place(row))})"
            for row in rows
        ] or ["none"]
    return ("\n".join(lines) + "\n").encode()


def as_atom(title: str, sections: Sections, url: str) -> bytes:
    """Return a feed of the reports, the last changed first; an entry is updated when its report changes."""
    rows = {row["url"]: row for rows in sections.values() for row in rows}.values()
    newest = datetime(1970, 1, 1, tzinfo=UTC)
    # The address of the feed beside a page, with the page's query
    path, mark, query = url.partition("?")
    feed = Atom1Feed(
        printable(f"Perfwork: {title}"),
        url,
        "Kernel performance reports",
        feed_url=f"{path}.atom{mark}{query}",
        language="en",
    )
    for row in sorted(rows, key=lambda row: row["changed_at"] or newest, reverse=True):
        feed.add_item(
            title=printable(f"{signed_pct(row['change'])} {_commit(row)} {_name(row)}"),
            link=row["url"],
            description=printable(f"{row['status']}; {_place(row)}"),
            unique_id=row["url"],
            pubdate=row["reported_at"],
            updateddate=row["changed_at"] or newest,
        )
    return str(feed.writeString("utf-8")).encode()


def as_regzbot(title: str, sections: Sections, url: str) -> bytes:
    """Return the lines that regzbot would need of each open regression, to be mailed in its thread.

    Source: Documentation/process/handling-regressions.rst and regzbot's own page of commands.
    """
    reports = (row for rows in sections.values() for row in rows)
    rows = {row["url"]: row for row in reports if row["verdict"] == Verdict.REGRESSION and row["state"] in OPEN}
    paragraphs = []
    for row in rows.values():
        lines = [printable(f"{row['url']} ({row['status']})"), f"#regzbot introduced: {_introduced(row)}"]
        lines += [
            printable(
                f"#regzbot title: {signed_pct(row['change'])} {row['metric']}: {row['culprit_title'] or row['title']}"
            )
        ]
        if fix := row["fix"]["title"] or row["fix"]["sha"]:
            lines += [printable(f"#regzbot fix: {fix}")]
        paragraphs.append("\n".join(lines))
    return ("\n\n".join(paragraphs) + "\n").encode()


FORMS: Mapping[str, tuple[str, Callable[[str, Sections, str], bytes]]] = {
    "json": ("application/json", as_json),
    "txt": ("text/plain; charset=utf-8", as_text),
    "md": ("text/markdown; charset=utf-8", as_markdown),
    "atom": ("application/atom+xml; charset=utf-8", as_atom),
    "regzbot": ("text/plain; charset=utf-8", as_regzbot),
}
NAMES = ("json", "csv", *list(FORMS)[1:])  # as pages list them


def in_form(
    request: HttpRequest, form: str, title: str, sections: Mapping[str, QuerySet[Report]], page: str
) -> HttpResponseBase:
    """Return a table in one of NAMES: all of it as CSV, the first LIMIT reports of a section in the other forms.

    `page`: the path of the page that it stands beside.
    """
    by_metric = directions()
    if form == "csv":
        return csv_response(csv_tables.REPORTS, _csv_rows(sections, by_metric, request.build_absolute_uri))
    content_type, render_as = FORMS[form]
    rows = {
        name: [report_json(report, by_metric, request.build_absolute_uri) for report in reports[:LIMIT]]
        for name, reports in sections.items()
    }
    return HttpResponse(render_as(title, rows, request.build_absolute_uri(page)), content_type=content_type)


def _csv_rows(
    sections: Mapping[str, QuerySet[Report]], by_metric: Mapping[str, str], absolute: Callable[[str], str]
) -> Iterator[dict[str, Any]]:
    """Yield each report with its headline's interval, some hundreds at a time."""
    now = timezone.now()
    for section, reports in sections.items():
        for report in with_headlines(reports).iterator(chunk_size=500):
            headline = headline_of(report)
            since = report.last_human_reply_at or report.reported_at
            yield {
                **report_json(report, by_metric, absolute),
                "section": section,
                "culprit": "" if report.culprit.placeholder else report.culprit.sha,
                "culprit_title": report.culprit.title or str(report),
                "culprit_author": report.culprit.author_name,
                "low": headline.low_pct if headline else None,
                "high": headline.high_pct if headline else None,
                "silence_days": (now - since).days if since and report.state in OPEN else None,
            }


def _name(row: Mapping[str, Any]) -> str:
    title = (row["culprit_title"] or row["title"]).removeprefix(f"{row['subsystem']}: ")
    return ": ".join(part for part in (row["subsystem"], title) if part)


def _commit(row: Mapping[str, Any]) -> str:
    return str(row["culprit"][:10]) if row["bisected"] else NOT_BISECTED


def _introduced(row: Mapping[str, Any]) -> str:
    """Return the culprit as regzbot takes it: the commit, else the versions that a person's mail names."""
    if row["bisected"]:
        return str(row["culprit"])
    named, good, bad = (((row["facts"] or {}).get(name) or {}).get("value", "") for name in ("culprit", "good", "bad"))
    tags = [f"v{version.lstrip('v')}" for version in (good, bad)]
    span = "..".join(tags) if all(map(versions.parse, tags)) else "unknown"
    return printable(named) or span


def _place(row: Mapping[str, Any]) -> str:
    noise = f"noise {number(row['noise_pct'])}%" if row["noise_pct"] else ""
    return " · ".join(filter(None, (row["metric"], row["scenario"], row["machine"], row["base"], noise)))


def _wrapped(text: str, indent: str = "") -> list[str]:
    return wrap(printable(text), WIDTH, initial_indent=indent, subsequent_indent=indent or _INDENT)
