"""Reports that are committed while an archive is read, or after one with a higher key, are searched all the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from bot.archives import batch, reader
from bot.archives.reader import has_names_to_search, read_source
from bot.archives.sources import open_sources
from bot.demo import DemoInbox
from bot.mail.settings import BotSettings
from tests.bot.archives.test_epochs import LKP
from tracker.domain.events import Verdict
from tracker.models import Archive, Message, Report
from tracker.services import catalog

PATCH = b"""From: Dana <dana@dev.example>
Message-ID: <fix@dev.example>
Subject: [PATCH] mm: mend the walk

It is slow since then, as a regression of vm-scan shows.

Fixes: 3b1f0c9d2e44 ("mm: walk cold folios first")
---
--- a/mm/vmscan.c
+++ b/mm/vmscan.c
@@ -1,2 +1,2 @@
-a
+b
"""
MENDED = "3b1f0c9d2e440000000000000000000000000000"


@pytest.fixture
def inbox(tmp_path: Path) -> DemoInbox:
    found = DemoInbox(tmp_path / "list")
    found.add(PATCH)
    return found


def report(sha: str, pk: int) -> None:
    """A report from a lab, which gets its key before it is committed."""
    made = catalog.report_for(catalog.commit_for(sha, title=f"title of {sha}"), Verdict.REGRESSION)
    Report.objects.filter(pk=made.pk).update(id=pk)


def read(inbox: DemoInbox, now: datetime, settings: BotSettings = LKP) -> list[str]:
    for source in open_sources(str(inbox.path)):
        read_source(source, settings, now)
    return list(Message.objects.values_list("message_id", flat=True))


@pytest.mark.django_db
def test_a_report_with_a_lower_key_than_one_that_was_searched(inbox: DemoInbox, now: datetime) -> None:
    report("a" * 40, pk=900)
    assert read(inbox, now) == []
    report(MENDED, pk=300)
    assert read(inbox, now) == ["fix@dev.example"]
    assert read(inbox, now) == ["fix@dev.example"]
    (source,) = open_sources(str(inbox.path))
    assert not has_names_to_search(source, Archive.objects.get())


@pytest.mark.django_db
def test_reports_that_are_committed_while_mail_is_being_filed(
    inbox: DemoInbox, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*arguments: Any, take: Callable[..., Any] = batch.take) -> Any:
        if not Report.objects.exists():
            report(MENDED, pk=100)
            for number in range(50):  # many, as a batch of results makes them
                report(f"{number:040x}", pk=200 + number)
        return take(*arguments)

    monkeypatch.setattr(reader, "take", meanwhile)
    assert read(inbox, now) == []
    assert read(inbox, now) == ["fix@dev.example"]


@pytest.mark.django_db
def test_an_archive_that_an_earlier_release_has_read(inbox: DemoInbox, now: datetime) -> None:
    report("a" * 40, pk=900)
    read(inbox, now)
    Archive.objects.update(searched={"message": 0, "report": 880, "sent": 0})
    report(MENDED, pk=850)
    assert read(inbox, now) == ["fix@dev.example"]
    call_command("read", "--again", str(inbox.path))
    assert Message.objects.count() == 1
