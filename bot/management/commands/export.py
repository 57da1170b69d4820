"""`export reports·findings·messages·events`: a table, one object per row (DESIGN section 5).

`export fixes SHA`: the tags that a fix of a report takes. `export kcidb`: regressions as a submission to KCIDB. `export
findings --format bmf`: what was measured of culprits, in Bencher's metric format.
"""

import csv
import json
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand
from django.db.models import Prefetch

from bot.compose.report_mail import tags
from bot.config import bot_identity
from bot.mail.message import one_line
from bot.mail.settings import BotSettings
from bot.management import no_input, require_folded, usage_error
from tracker.domain.events import EventKind
from tracker.domain.text import lore_url, safe_cell
from tracker.models import Event, Finding, Message, Purpose, Report
from tracker.pages.report_json import ORIGIN, finding_json, kcidb_json

Row = dict[str, object]
SHORTEST_SHA = 7


def reports() -> Iterator[Row]:
    """Yield one row per report mail: a culprit that was reported twice has two rows with the same state."""
    mails: dict[int, list[str]] = {}
    for pk, message_id in Event.objects.filter(kind=EventKind.REPORTED).values_list("report_id", "message_id"):
        mails.setdefault(pk, []).append(message_id)
    for report in Report.objects.select_related("culprit").order_by("pk").iterator(chunk_size=1000):
        for message_id in mails.get(report.pk, [""]):
            yield {
                "message_id": message_id,
                "culprit": report.culprit.sha,
                "state": report.state,
                "status": report.status,
                "title": str(report),
                "verdict": report.verdict,
                "landing": report.landing,
                "reported_at": _time(report.reported_at),
                "reported_by": report.reported_by,
                "reporter": report.person_report.reporter if report.of_person else "",
                "bisected": not report.culprit.placeholder,
            }


def findings() -> Iterator[Row]:
    rows = Finding.objects.select_related("report__culprit", "metric", "scenario", "machine").order_by("pk")
    for finding in rows.iterator(chunk_size=1000):
        yield {"report": finding.report.culprit.sha, **finding_json(finding)}


def messages() -> Iterator[Row]:
    rows = Message.objects.select_related("report__culprit").defer("own_text").order_by("pk")
    for message in rows.iterator(chunk_size=1000):
        yield {
            "message_id": message.message_id,
            "report": message.report.culprit.sha,
            "author": message.author_email,
            "date": _time(message.sent_at),
            "kind": message.kind,
            "role": message.role,
        }


def events() -> Iterator[Row]:
    for event in Event.objects.select_related("report__culprit").order_by("pk").iterator(chunk_size=1000):
        yield {
            "report": event.report.culprit.sha,
            "kind": event.kind,
            "at": _time(event.occurred_at),
            "evidence": event.message_id or event.commit or event.result or event.actor,
            "by": event.role,
            "key": event.key,
        }


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment else None


TABLES: dict[str, Callable[[], Iterator[Row]]] = {
    "reports": reports,
    "findings": findings,
    "messages": messages,
    "events": events,
}


def kcidb(origin: str, settings: BotSettings) -> dict[str, Any]:
    """Return all regressions as a submission to KCIDB."""
    if not ORIGIN.fullmatch(origin):
        raise usage_error(f"--origin: expected a name of a-z, 0-9 and _; found {origin[:40]!r}")
    related = Finding.objects.select_related("metric", "scenario", "machine").order_by("pk")
    measured = Report.objects.filter(culprit__placeholder=False)
    rows = measured.select_related("culprit", "tree").prefetch_related(Prefetch("findings", queryset=related))
    pairs = ((report, report.findings.all()) for report in rows.order_by("pk").iterator(chunk_size=500))
    return kcidb_json(pairs, origin, lambda path: f"{settings.base_url}{path}")


def bencher() -> dict[str, dict[str, dict[str, float]]]:
    """Return what was measured of each culprit in Bencher's metric format; of equal tests the newest.

    A value is a mean, its bounds are one standard deviation away (https://bencher.dev/docs/reference/).
    """
    benchmarks: dict[str, dict[str, dict[str, float]]] = {}
    for row in findings():
        suite, metric, new = str(row["suite"]), str(row["metric"]), row["new"]
        assert isinstance(new, dict)
        if new["mean"] is None:
            continue
        params = row["parameters"]
        assert isinstance(params, dict)
        name = " ".join([suite, *(f"{name}={value}" for name, value in sorted(params.items())), f"on {row['machine']}"])
        spread = abs(new["mean"]) * (new["stddev_pct"] or 0) / 100
        bounds = {"lower_value": new["mean"] - spread, "upper_value": new["mean"] + spread}
        measures = benchmarks.setdefault(name[:1024], {})
        measures[metric.removeprefix(f"{suite}.")[:64]] = {"value": new["mean"], **(bounds if spread else {})}
    return benchmarks


class Command(BaseCommand):
    help = "Print a table as JSON Lines or CSV, one object per row; the tags that a fix takes; regressions for KCIDB."
    requires_system_checks = []  # it reads the database only

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("table", choices=(*TABLES, "fixes", "kcidb"))
        parser.add_argument("sha", nargs="?", default="", help="with fixes: the culprit, or its first digits")
        parser.add_argument("--origin", default="perfwork", help="with kcidb: the name of the lab, of a-z, 0-9 and _")
        parser.add_argument("--format", choices=("jsonl", "csv", "bmf"), default="jsonl")

    def handle(self, *, table: str, sha: str, format: str, origin: str, **options: Any) -> None:
        require_folded()
        if table == "kcidb":
            self.stdout.write(json.dumps(kcidb(origin, bot_identity()), ensure_ascii=False))
            return
        if table == "fixes":
            # The tags for the commit message of a fix (Documentation/process/submitting-patches.rst); CommandError
            # if no report or several have such a culprit
            settings = bot_identity()
            candidates = list(Report.objects.filter(culprit__sha__startswith=sha.lower()).select_related("culprit")[:2])
            if len(sha) < SHORTEST_SHA or len(candidates) != 1:
                raise no_input(f"{sha}: expected {SHORTEST_SHA} digits or more of the culprit of one report")
            report = candidates[0]
            mails = report.events.filter(kind=EventKind.REPORTED).exclude(message_id="").order_by("occurred_at", "pk")
            own_id = mails.values_list("message_id", flat=True).first()
            ours = report.outgoing.filter(purpose=Purpose.REPORT).exists()
            self.stdout.write(f'Fixes: {report.culprit.sha[:12]} ("{one_line(report.culprit.title, 300)}")')
            if own_id:
                closing = tags(report.tag, own_id, settings) if ours else (f"Closes: {lore_url(own_id)}",)
                self.stdout.write("\n".join(closing))
            return
        if format == "bmf":
            if table != "findings":
                raise usage_error("--format bmf is for findings")
            self.stdout.write(json.dumps(bencher(), ensure_ascii=False))
            return
        rows = TABLES[table]()
        if format == "jsonl":
            for row in rows:
                self.stdout.write(json.dumps(row, ensure_ascii=False))
            return
        writer: Any = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(self.stdout, list(row), lineterminator="\n")
                writer.writeheader()
            writer.writerow({name: safe_cell(value) for name, value in row.items()})
