"""Tables of reports beside their pages: JSON, CSV, text, Markdown, Atom, and lines for regzbot.

FORMS has them all. Each takes a title, reports by section as `report_json` returns them, and the address of the page,
and returns bytes. CSV follows RFC 4180, text has 78 columns, and the regzbot lines follow
Documentation/process/handling-regressions.rst and regzbot's own page of commands.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from textwrap import wrap
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from django.utils.feedgenerator import Atom1Feed

from tracker.documents.blocks import escaped
from tracker.domain.text import NONE, number, safe_cell, signed_pct

WIDTH = 78  # columns
_INDENT = " " * 8
Rows = Sequence[Mapping[str, Any]]
# "merged" and "shift_left" of a release, or "reports"; as `report_json` returns reports.
Sections = Mapping[str, Rows]
TITLES = {
    "merged": "Merged in this release",
    "shift_left": "Before the release, from other trees",
    "reports": "Reports",
}
_CSV = (
    *("section", "culprit", "culprit_title", "subsystem", "verdict", "state", "status", "awaited", "metric", "suite"),
    *("scenario", "machine", "base", "change", "change_pct", "landing", "fix_sha", "fix_title", "fix_landing"),
    *("reported_at", "changed_at", "awaited_since", "url"),
)


def as_json(title: str, sections: Sections, url: str) -> bytes:
    named = "title" if "reports" in sections else "release"
    return orjson.dumps({named: title, "url": url, **sections}, option=orjson.OPT_UTC_Z)


def as_csv(title: str, sections: Sections, url: str) -> bytes:
    """Return a row per report and section; `change` is the metric's own, `change_pct` with plus for better."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")  # RFC 4180
    writer.writerow(_CSV)
    for section, rows in sections.items():
        for row in rows:
            fix = {f"fix_{name}": value for name, value in row["fix"].items()}
            values = {**row, **fix, "section": section}
            writer.writerow(
                value.astimezone(UTC).isoformat().replace("+00:00", "Z")
                if isinstance(value := values[name], datetime)
                else safe_cell(value)
                for name in _CSV
            )
    return out.getvalue().encode()


def as_text(title: str, sections: Sections, url: str) -> bytes:
    lines = [f"Kernel performance regressions of {title}", *([url] if len(url) <= WIDTH else [])]
    for section, rows in sections.items():
        lines += ["", f"{TITLES[section]} ({len(rows)})", "", reports_text(rows) or "none"]
    return ("\n".join(lines).rstrip() + "\n").encode()


def reports_text(rows: Rows) -> str:
    """Return reports as paragraphs of 78 columns; "" for none."""
    paragraphs = [
        [
            *_wrapped(f"{_change(row)}  {row['culprit'][:10]} {_name(row)}"),
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
            f"- **{escaped(_change(row))}** [{row['culprit'][:10]}]({row['url']}) {escaped(_name(row))}: "
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
        f"Perfwork: {title}", url, "Kernel performance reports", feed_url=f"{path}.atom{mark}{query}", language="en"
    )
    for row in sorted(rows, key=lambda row: row["changed_at"] or newest, reverse=True):
        feed.add_item(
            title=_printable(f"{_change(row)} {row['culprit'][:10]} {_name(row)}"),
            link=row["url"],
            description=_printable(f"{row['status']}; {_place(row)}"),
            unique_id=row["url"],
            pubdate=row["reported_at"],
            updateddate=row["changed_at"] or newest,
        )
    return str(feed.writeString("utf-8")).encode()


def as_regzbot(title: str, sections: Sections, url: str) -> bytes:
    """Return the lines that regzbot would need of each regression, to be mailed in its thread.

    Source: Documentation/process/handling-regressions.rst and regzbot's own page of commands.
    """
    rows = {row["url"]: row for rows in sections.values() for row in rows if row["verdict"] == "regression"}
    paragraphs = []
    for row in rows.values():
        lines = [_printable(f"{row['url']} ({row['status']})"), f"#regzbot introduced: {row['culprit']}"]
        lines += [_printable(f"#regzbot title: {_change(row)} {row['metric']}: {row['culprit_title'] or row['title']}")]
        if fix := row["fix"]["title"] or row["fix"]["sha"]:
            lines += [_printable(f"#regzbot fix: {fix}")]
        paragraphs.append("\n".join(lines))
    return ("\n\n".join(paragraphs) + "\n").encode()


FORMS: Mapping[str, tuple[str, Callable[[str, Sections, str], bytes]]] = {
    "json": ("application/json", as_json),
    "csv": ("text/csv; charset=utf-8", as_csv),
    "txt": ("text/plain; charset=utf-8", as_text),
    "md": ("text/markdown; charset=utf-8", as_markdown),
    "atom": ("application/atom+xml; charset=utf-8", as_atom),
    "regzbot": ("text/plain; charset=utf-8", as_regzbot),
}


def in_form(request: HttpRequest, form: str, title: str, sections: Sections, page: str) -> HttpResponse:
    """Return a table in one of FORMS. `page`: the path of the page that it stands beside."""
    content_type, render_as = FORMS[form]
    content = render_as(title, sections, request.build_absolute_uri(page))
    return HttpResponse(content, content_type=content_type)


def _change(row: Mapping[str, Any]) -> str:
    return signed_pct(row["change"]) if row["change"] is not None else NONE


def _name(row: Mapping[str, Any]) -> str:
    return ": ".join(part for part in (row["subsystem"], row["culprit_title"] or row["title"]) if part)


def _place(row: Mapping[str, Any]) -> str:
    noise = f"noise {number(row['noise_pct'])}%" if row["noise_pct"] else ""
    return " · ".join(filter(None, (row["metric"], row["scenario"], row["machine"], row["base"], noise)))


def _wrapped(text: str, indent: str = "") -> list[str]:
    return wrap(_printable(text), WIDTH, initial_indent=indent, subsequent_indent=indent or _INDENT)


def _printable(text: str) -> str:
    """Return a text without control characters, which XML and terminals take ill."""
    return "".join(char if char.isprintable() else " " for char in text)
