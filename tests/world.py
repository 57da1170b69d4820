"""A simulated environment for tests: a lab that measures, a list with an archive, a git tree."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from bot.archives.batch import ReadTally
from bot.archives.reader import read_source
from bot.archives.sources import open_sources
from bot.demo import DANA, DIFF, LEE, DemoInbox, DemoTree
from bot.mail.addresses import Address
from bot.mail.settings import BotSettings
from bot.notifications.report import compose_due
from bot.results.intake import take_in
from bot.results.recognise import read_path
from bot.results.storage import Receipt
from bot.upstream.tracking import TrackTally, track
from tracker.models import OutgoingMail, Report, Tree
from tracker.models.git import TreeRole
from tracker.services import mail_transitions

__all__ = ["DANA", "DIFF", "LEE", "START", "World", "message_id", "state", "status_text"]

START = datetime(2026, 9, 1, tzinfo=UTC)


class World:
    """A lab, a list and a git tree. Each step advances the clock by an hour, so that all events are ordered."""

    def __init__(self, directory: Path, settings: BotSettings) -> None:
        self.directory, self.settings = directory, settings
        self.inbox = DemoInbox(directory / "inbox")
        self.git = DemoTree(directory / "linux.git")
        self.now = START
        self._mails = 0

    def later(self, hours: float = 1) -> datetime:
        self.now += timedelta(hours=hours)
        return self.now

    # --- git ---
    def commit(self, title: str, body: str = "", author: Address = DANA, branch: str = "master") -> str:
        return self.git.commit(title, author, self.later(), body, branch=branch)

    def tag(self, name: str) -> None:
        self.git.tag(name, self.later())

    def track(self, role: TreeRole = TreeRole.MAINLINE, name: str = "linus") -> TrackTally:
        tree, _ = Tree.objects.update_or_create(name=name, defaults={"path": str(self.git.path), "role": role})
        return track(tree, self.settings, self.later())

    # --- the lab ---
    def result(self, sha: str, title: str, **changes: Any) -> dict[str, Any]:
        """Return a bisect result that reports a regression of 30 %."""
        return {
            "schema": "perf-bisect-result/1",
            "id": f"lab-{sha[:8]}",
            "producer": {"name": "lab"},
            "created_at": self.now.isoformat(),
            "outcome": "conclusive",
            "tree": {"name": "linus", "branch": "master"},
            "good": {"sha": "1" * 40, "describe": "v9.0"},
            "bad": {"sha": "2" * 40, "describe": "v9.1-rc1"},
            "parent": {"sha": "a" * 40, "subject": "mm: prepare"},
            "first_bad": {"sha": sha, "subject": title, "author": {"name": DANA.name, "email": DANA.email}},
            "test": {"suite": "vm-scan", "params": {"nr_task": "50%", "runtime": "30s"}},
            "machine": {"id": "lab7-m1", "cpus": 64},
            "measurements": [
                {
                    "metric": "vm-scan.ops_per_sec",
                    "unit": "1/s",
                    "direction": "higher",
                    "role": "headline",
                    "good": {"samples": [1000, 1010, 990]},
                    "bad": {"samples": [700, 705, 695]},
                }
            ],
            **changes,
        }

    def ingest(self, *results: dict[str, Any]) -> list[Receipt]:
        file = self.directory / "results.jsonl"
        file.write_text("".join(json.dumps(each) + "\n" for each in results))
        answers = list(take_in(read_path(file), [self.git.path], self.now))
        for answer in answers:
            if answer.rejection:
                raise answer.rejection
        return [answer.receipt for answer in answers if answer.receipt]

    def report(self, title: str = "mm/vmscan: walk cold folios first", sha: str = "", **changes: Any) -> Report:
        """Commit a culprit (or take `sha`), ingest its result, and put the report mail into the list's archive."""
        sha = sha or self.commit(title)
        self.ingest(self.result(sha, title, **changes))
        compose_due(self.settings, self.later(), approve_first=False)
        mail = OutgoingMail.objects.get(report__culprit__sha=sha, purpose="report")
        mail_transitions.mark_sent(mail.message_id, self.now, self.now)
        self.inbox.add(bytes(mail.raw))
        return Report.objects.select_related("culprit").get(culprit__sha=sha)

    # --- the list ---
    def mail(
        self,
        author: Address,
        text: str,
        *,
        to: str = "",
        subject: str = "Re: the report",
        message_id: str = "",
        **headers: str,
    ) -> bytes:
        """Return a mail to the list; `to` is the Message-ID that it replies to."""
        self._mails += 1
        mail = EmailMessage(policy=SMTP.clone(max_line_length=998))
        mail["From"] = str(author)
        mail["To"] = self.settings.address
        mail["Subject"] = subject
        mail["Date"] = format_datetime(self.later())
        mail["Message-ID"] = f"<{message_id or f'letter-{self._mails}@dev.example'}>"
        if to:
            mail["In-Reply-To"] = f"<{to}>"
        for name, value in headers.items():
            mail[name.replace("_", "-")] = value
        mail.set_content(text, charset="utf-8", cte="8bit")
        return mail.as_bytes(policy=SMTP.clone(linesep="\n"))

    def post(self, *arguments: Any, **more: Any) -> None:
        self.inbox.add(self.mail(*arguments, **more))

    def read(self, path: Path | None = None) -> ReadTally:
        tally = ReadTally()
        for source in open_sources(str(path or self.inbox.path)):
            tally += read_source(source, self.settings, self.later())
        return tally


def message_id(report: Report) -> str:
    """Return the Message-ID of a report's mail."""
    return OutgoingMail.objects.get(report=report, purpose="report").message_id


def status_text(report: Report) -> str:
    """Return the status text that the triage table shows."""
    return Report.objects.get(pk=report.pk).status


def state(report: Report) -> str:
    return Report.objects.get(pk=report.pk).state
