"""A report as JSON, and its thread as an mbox."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from tracker.models import Event
from tracker.pages.finding_json import finding_json
from tracker.pages.reports.queries import ReportPage

_FROM = re.compile(rb"^(>*From )", re.MULTILINE)


def as_json(page: ReportPage) -> dict[str, Any]:
    """Return the page's data with the keys of DESIGN section 5; a positive `change_pct` is better."""
    report = page.report
    return {
        "culprit": report.culprit.sha,
        "culprit_title": report.culprit.title,
        "message_id": page.thread,
        "title": str(report),
        "subsystem": report.subsystem,
        "verdict": report.verdict,
        "state": report.state,
        "status": report.status,
        "awaited": report.awaited,
        "assignee": report.assignee,
        "blocks": report.blocks,
        "landing": report.landing,
        "fix": {"sha": report.fix_sha, "title": report.fix_title, "landing": report.fix_landing},
        "stable": [{"series": each.series, "newest": each.newest, "fixed_in": each.fixed_in} for each in page.stable],
        "reported_at": report.reported_at,
        "responded_at": report.responded_at,
        "findings": [finding_json(each) for each in page.findings],
        "events": [_event(each.event, each.is_effective) for each in page.timeline],
        "messages": [
            {"message_id": each.message.message_id, "author": each.message.author_email, "date": each.message.sent_at}
            for each in page.mails
        ],
    }


def _event(event: Event, is_effective: bool) -> dict[str, Any]:
    evidence = {name: getattr(event, name) for name in ("message_id", "commit", "result", "actor")}
    return {
        "key": event.key,
        "kind": event.kind,
        "at": event.occurred_at,
        "by": event.role,
        "evidence": {name: value for name, value in evidence.items() if value},
        "title": event.title,
        "tag": event.tag,
        "tree": event.tree,
        "remark": event.remark,
        "quote": event.quote,
        "reverses": event.reverses,
        "stands": is_effective,
    }


def as_mbox(mails: Iterable[bytes]) -> Iterator[bytes]:
    """Yield mails in mboxrd format, with "From " lines quoted. Whoever unquotes them gets their bytes, with LF ends."""
    for raw in mails:
        text = raw.replace(b"\r\n", b"\n")
        end = b"\n" if text.endswith(b"\n") else b"\n\n"
        yield b"From mboxrd@z Thu Jan  1 00:00:00 1970\n" + _FROM.sub(rb">\1", text) + end


def packed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what gzip(1) would write, as it comes."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for chunk in chunks:
        if piece := packer.compress(chunk):
            yield piece
    yield packer.flush()
