"""Years of old mail, read into an empty database: not one reminder, nor any other mail unasked (issue: no nagging)."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.archives.reader import read_source
from bot.archives.sources import open_sources
from bot.compose.policy import Action, Policy, ReminderPolicy
from bot.mail.settings import BotSettings
from bot.notifications.follow_ups import compose_follow_ups
from bot.notifications.reminder import compose_reminders
from bot.outbox.drafts import ComposeConfig
from tracker.models import Message, OutgoingMail, Report

SEND = ComposeConfig(policy=Policy(reminders=ReminderPolicy(action=Action.SEND)))
BOXES = ("threads-dev.mbox", "threads-dev-2.mbox", "reports-dev.mbox")


@pytest.mark.slow
@pytest.mark.long
def test_not_one_reminder(shared: Path, lkp: BotSettings, db: None, tmp_path: Path) -> None:
    epoch = tmp_path / "cgroups" / "git" / "0.git"
    subprocess.run(
        ["git", "clone", "-q", "--mirror", str(shared / "lore" / "cgroups.0.bundle"), str(epoch)], check=True
    )
    now = datetime(2026, 9, 1, tzinfo=UTC)
    for path in (*(shared / box for box in BOXES), epoch):
        for source in open_sources(str(path)):
            read_source(source, lkp, now)
    assert Report.objects.filter(state="no_response", verdict="regression").count() > 20  # there is what to nag about
    assert Message.objects.count() > 300
    newest = max(Report.objects.exclude(reported_at=None).values_list("reported_at", flat=True))
    for at in (newest + timedelta(days=30), now, now + timedelta(days=30), now + timedelta(days=400)):
        assert compose_reminders(lkp, at, SEND) == 0
        assert compose_follow_ups(lkp, at, approve_first=False) == 0
    assert not OutgoingMail.objects.exclude(purpose__startswith="answer ").exists()
