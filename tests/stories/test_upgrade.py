"""An upgrade changes what the tables rest on: nobody sees an empty table, and a worker folds all reports again."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from bot.tasks import fold_reports
from tests.conftest import ROOT
from tests.support.world import DANA, World, message_id
from tracker.models import Folding, Report
from tracker.services import event_log


@pytest.fixture
def upgraded(world: World, monkeypatch: pytest.MonkeyPatch) -> list[Report]:
    """Three reports whose summary is still that of the version before."""
    reports = [world.report(f"mm: change number {number}") for number in range(3)]
    world.post(DANA, "I am working on a fix.", to=message_id(reports[0]))
    world.read()
    Report.objects.update(words="", urgency=0, state="no_response")
    Folding.objects.update_or_create(pk=1, defaults={"version": event_log.VERSION - 1, "folded_to": 0})
    monkeypatch.setattr(event_log, "_known_complete", set())
    monkeypatch.setattr(event_log, "_AT_ONCE", 2)
    return reports


@pytest.mark.django_db
def test_pages_say_how_far_it_is_until_all_is_folded(
    upgraded: list[Report], client: Client, admin_client: Client
) -> None:
    for address in ("/", "/search/?q=x", f"/report/{upgraded[0].culprit.sha}/"):
        page = client.get(address)
        assert page.status_code == 503
        assert "Folding all reports after an upgrade: 0 of 3" in page.content.decode()
        assert page["Retry-After"] == "10"
    assert client.get("/api/v1/reports").json()["error"].startswith("folding all reports")
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200
    assert admin_client.get("/admin/").status_code == 200, "an operator can look"

    assert fold_reports() == 3

    assert client.get("/").status_code == 200
    assert client.get("/readyz").status_code == 200
    assert Report.objects.get(pk=upgraded[0].pk).state == "working"
    assert not Report.objects.filter(words="").exists()
    assert fold_reports() == 0


@pytest.mark.django_db
def test_commands_print_no_table_that_is_not_folded(upgraded: list[Report]) -> None:
    for command in (["triage"], ["export", "reports"], ["report", "v9.1"], ["digest"]):
        with pytest.raises(CommandError, match="0 of 3; wait for a worker, or run"):
            call_command(*command)
    out = io.StringIO()
    call_command("refold", stdout=out)
    assert out.getvalue() == "3 reports folded\n"
    call_command("export", "reports", stdout=out)
    assert '"working"' in out.getvalue()


@pytest.mark.django_db
def test_it_goes_on_where_it_was_interrupted(upgraded: list[Report], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []
    fold = event_log.fold

    def dies_at_the_second(keys: list[int]) -> None:
        seen.append(keys)
        if len(seen) == 2:
            raise MemoryError
        fold(keys)

    monkeypatch.setattr(event_log, "fold", dies_at_the_second)
    with pytest.raises(MemoryError):
        event_log.fold_all()
    assert (at := event_log.progress())
    assert (at.done, at.total) == (2, 3)
    assert event_log.fold_all() == 1
    assert seen[1] == seen[2], "the first slice is not folded twice"


@pytest.mark.django_db
def test_a_new_database_has_nothing_to_fold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(event_log, "_known_complete", set())
    assert event_log.progress() is None
    assert Folding.objects.get().version == event_log.VERSION


@pytest.mark.django_db
def test_once_it_is_complete_it_costs_no_query(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(event_log, "_known_complete", set())
    event_log.progress()
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert event_log.progress() is None


OLD_DATA = """
import datetime
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone
apps = MigrationLoader(connection).project_state([("tracker", "0001_schema")]).apps
row = lambda name, **values: apps.get_model("tracker", name).objects.create(**values)
now = timezone.now()
culprit = row("Commit", sha="3b1f0c9d2e" + "4" * 30, title="mm: walk cold folios first",
    trailers=[["Reviewed-by", '"Holt, Vera" <Vera@dev.example>'], ["Cc", "Zoe Hill <zoe@dev.example>"]])
report = row("Report", culprit=culprit, tag="3b1f0c9d2e444444", verdict="regression", state="working", status="x")
archive = row("Archive", path="/srv/inbox/git/0.git")
source = row("RawMessage", digest="d", compressed=b"", received_at=now, archive=archive)
row("Message", message_id="a@b", report=report, source=source, kind="person", own_text="a word: zanzibar")
row("Event", report=report, key="responded:a@b", kind="responded", occurred_at=now, recorded_at=now, role="author",
    message_id="a@b")
for mail in ("a@b", "e@f", "g@h"):
    row("Event", report=report, key=f"replied:{mail}", kind="replied", occurred_at=now, recorded_at=now, role="author",
        message_id=mail)
event = lambda key, **more: row("Event", report=report, key=key, occurred_at=now, recorded_at=now, **more)
event("reversed:1", kind="reversed", reverses="replied:e@f", actor="dana")
for number in (1, 3):
    event(f"noted:g@h#{number}", kind="noted", message_id="g@h")
event("test_asked:g@h#10", kind="test_asked", message_id="g@h")
event("reading_rejected=working:g@h#2!1", kind="reading_rejected", message_id="g@h", actor="dana")
event("reversed:noted:g@h#3", kind="reversed", reverses="noted:g@h#3", actor="dana")
row("Suggestion", report=report, key="working:g@h#2", kind="working", occurred_at=now, message_id="g@h",
    role="author", decision="rejected", decided_by="dana", decided_at=now)
for suffix in ("", "#2"):  # rejected twice, under two keys
    event(f"reading_rejected=asked:e@f{suffix}", kind="reading_rejected", message_id="e@f", actor="dana")
row("Suggestion", report=report, key="asked:e@f#2", kind="asked", occurred_at=now, message_id="e@f",
    role="author")
row("Suggestion", report=report, key="responded:e@f", kind="responded", occurred_at=now, message_id="e@f",
    role="author")
row("LabJob", report=report, event_key="test_asked:g@h#10", request="test", opened_at=now, due_at=now)
row("TokenBucket", key="", used_until=now + datetime.timedelta(hours=1))
row("TokenBucket", key="@dev.example", used_until=now - datetime.timedelta(hours=1))
row("OutgoingMail", message_id="c@d", report=report, raw=b"", sender="", recipients=[], subject="s", composed_at=now)
"""
# There was a kind of its own for replies of which nothing else was certain; of one mail, both may be there.
# The keys held the place of a fact among all that a mail says.
KEYS = [
    "responded responded:a@b",
    "responded responded:e@f",
    "responded responded:g@h",
    "reversed reversed:1 responded:e@f",
    "noted noted:g@h",
    "noted noted:g@h#1",
    "test_asked test_asked:g@h",
    "reading_rejected reading_rejected=working:g@h!1",
    "reversed reversed:noted:g@h#1 noted:g@h#1",
    "reading_rejected reading_rejected=asked:e@f",
    "reading_rejected reading_rejected=asked:e@f#2",
    "('all', 1)",  # what a rate limit has given away
    "working:g@h asked:e@f test_asked:g@h",
]
LOOK = """
from django.test import Client
from django.utils import timezone
from tracker.models import Event, LabJob, Message, OutgoingMail, RateCalendar, RawMessage, Report
from tracker.models import Suggestion
from tracker.pages import search as search_index
print([model.objects.count() for model in (Event, Message, OutgoingMail, RawMessage, Report)])
print(Report.objects.get().culprit.signers)
for names in Event.objects.order_by("pk").values_list("kind", "key", "reverses"):
    print(*filter(None, names))
print(*((each.key or "all", len(each.taken)) for each in RateCalendar.objects.all()))
print(*Suggestion.objects.order_by("pk").values_list("key", flat=True), LabJob.objects.get().event_key)
print(Report.objects.get().state, search_index.reports_with(["zanzibar"]) == [Report.objects.get().pk])
print(Client().get(f"/report/{Report.objects.get().culprit.sha}/", headers={"host": "127.0.0.1"}).status_code)
"""


@pytest.mark.django_db
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_data_of_the_first_schema_is_there_after_all_migrations(
    request: pytest.FixtureRequest, tmp_path: Path, database: str
) -> None:
    env = {**os.environ, "PERFWORK_VAR": str(tmp_path / "var"), "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3"}
    if database == "postgresql":
        env["DATABASE_URL"] = request.getfixturevalue("postgres")

    def manage(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)

    assert manage("migrate", "-v0", "tracker", "0001").returncode == 0
    done = manage("shell", "-v0", "-c", OLD_DATA)
    assert done.returncode == 0, done.stderr
    assert "run `./manage.py migrate` first" in manage("triage").stderr, "no traceback, and no empty table"
    assert manage("migrate", "-v0").returncode == 0
    assert "folding all reports after an upgrade: 0 of 1" in manage("triage").stderr
    assert manage("refold").stdout == "1 reports folded\n"
    done = manage("shell", "-v0", "-c", LOOK)
    # Nobody counts as a signer by what a lab stored: git tells, once the tree is walked.
    seen = ["[11, 1, 1, 1, 1]", "[]", *KEYS, "responded True", "200"]
    assert done.stdout.splitlines()[-len(seen) :] == seen, done.stderr
    back = manage("migrate", "-v0", "tracker", "0005")
    assert back.returncode == 0, back.stderr
    assert manage("migrate", "-v0").returncode == 0
