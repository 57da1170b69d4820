"""Jobs of the lab: a reply asks for a test, a runner claims and measures, the thread is answered, the state follows."""

from __future__ import annotations

import html
import io
import json
import random
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from bot.demo import DemoTree
from bot.errors import Unreadable
from bot.git import inspection
from bot.lab import open_jobs
from bot.mail.addresses import Address
from bot.mail.message import parse
from bot.mail.settings import BotSettings
from bot.notifications.follow_ups import compose_follow_ups
from bot.notifications.report import compose_due
from bot.requested_patches import requested_patch
from bot.results import recognise
from tests.support.world import DANA, LEE, World, message_id
from tracker.domain.events import Awaited, EventData, EventKind, Role, Verdict
from tracker.domain.lab_jobs import Request, requests_pending
from tracker.domain.report_state import fold
from tracker.models import Event, Finding, LabJob, Message, OutgoingMail, Report
from tracker.pages.lab import work_list
from tracker.services import accounts, event_log, lab_jobs
from tracker.services.accounts import Scope
from tracker.services.faults import faults
from tracker.templatetags.words import b4_mbox

# --- The lab's work list: what people asked in threads, by whom, until when, with the patch to apply ---

FRIDAY = datetime(2026, 11, 20, 9, tzinfo=UTC)
PATCH = """\
diff --git a/mm/vmscan.c b/mm/vmscan.c
--- a/mm/vmscan.c
+++ b/mm/vmscan.c
@@ -1,3 +1,3 @@
 int a;
-int b;
+int c;
"""
PATCH += " \n"  # an empty line of context


@pytest.fixture
def lab_world(tmp_path: Path, db: None) -> World:
    return World(tmp_path, BotSettings(address="perfbot@bot.example.org", trust_policy="open"))


def ask_again(world: World, text: str, **more: Any) -> Message:
    report = world.report(**more)
    world.post(DANA, text, to=message_id(report))
    world.read()
    return Message.objects.filter(report=report, author_email=DANA.email).get()


def test_a_test_that_was_asked_for_is_listed_with_its_patch(lab_world: World, client: Client) -> None:
    mail = ask_again(lab_world, f"Can you test whether this patch helps?\n\n{PATCH}\n-- \nDana\n")
    [row] = work_list(lab_world.now)[0]
    assert (row.pending.request, row.is_overdue) in ((Request.TEST, False), (Request.MEASURE, False))
    page = client.get("/lab/").content.decode()
    assert "1 request<" in page
    assert "Dana Brook" in page
    assert f'<a href="/lab/patch/{mail.pk}">patch</a>' in page
    patch = client.get(f"/lab/patch/{mail.pk}")
    assert (patch.status_code, patch["Content-Type"]) == (200, "text/plain; charset=utf-8")
    tree = lab_world.directory / "tree"
    (tree / "mm").mkdir(parents=True)
    (tree / "mm" / "vmscan.c").write_text("int a;\nint b;\n\n")
    subprocess.run(["git", "apply", "-"], cwd=tree, input=patch.content, check=True)
    assert (tree / "mm" / "vmscan.c").read_text() == "int a;\nint c;\n\n"


def test_a_question_is_due_sooner_and_shows_its_words(lab_world: World, client: Client) -> None:
    mail = ask_again(lab_world, "Which kernel config did you use for this?")
    [row] = work_list(lab_world.now + timedelta(days=6))[0]
    assert (row.pending.request, row.is_overdue) == (Request.QUESTION, True)
    assert "Which kernel config did you use for this?" in client.get("/lab/").content.decode()
    missing = client.get(f"/lab/patch/{mail.pk}")
    assert (missing.status_code, b"there is no patch in this mail" in missing.content) == (404, True)


def test_what_was_answered_is_gone(lab_world: World, client: Client) -> None:
    ask_again(lab_world, "Which kernel config did you use for this?")
    lab_world.post(LEE, "I see the same here.", to=message_id(work_list(lab_world.now)[0][0].report))
    lab_world.read()
    [row] = work_list(lab_world.now)[0]  # others' words answer nothing
    event = EventData("a", EventKind.ANSWERED, lab_world.later(), role=Role.REPORTER, actor="toni")
    event_log.record([event_log.event_row(row.report, event, lab_world.now)])
    assert work_list(lab_world.now)[0] == []
    assert "Nothing waits for the lab." in client.get("/lab/").content.decode()


def test_many_cost_the_same(lab_world: World, client: Client, django_assert_num_queries: Any) -> None:
    for number in range(3):
        report = lab_world.report(f"mm: {number}", f"{number + 5:x}" * 40, id=f"n{number}")
        lab_world.post(DANA, "Which kernel config did you use for this?", to=message_id(report))
    lab_world.read()
    assert len(work_list(lab_world.now)[0]) == 3
    with django_assert_num_queries(5):
        client.get("/lab/")


@pytest.mark.parametrize(
    ("kinds", "owed"),
    [
        (["test_asked"], {Request.TEST: "2026-11-27"}),
        (["asked"], {Request.QUESTION: "2026-11-24"}),
        (["disputed"], {Request.DOUBT: "2026-11-24"}),
        (["fix_proposed"], {Request.MEASURE: "2026-11-27"}),
        (["asked", "fix_proposed"], {Request.MEASURE: "2026-11-27"}),
        (["fix_proposed", "asked"], {Request.QUESTION: "2026-11-24", Request.MEASURE: "2026-11-27"}),
        (["test_asked", "disputed"], {Request.DOUBT: "2026-11-24", Request.TEST: "2026-11-27"}),
        (["fix_proposed", "fix_proposed"], {Request.MEASURE: "2026-11-27"}),
        (["asked", "answered", "test_asked"], {Request.TEST: "2026-11-27"}),
        (["asked", "answered"], {}),
        (["fix_proposed", "fix_confirmed"], {}),
        (["working"], {}),
        (["expected"], {}),
        ([], {}),
    ],
)
def test_what_the_lab_owes(kinds: list[str], owed: dict[Request, str]) -> None:
    events = [EventData("r", EventKind.REPORTED, FRIDAY - timedelta(days=9), role=Role.REPORTER)]
    events += [
        EventData(f"e{n}", EventKind(kind), FRIDAY + timedelta(seconds=n), role=Role.AUTHOR, title="x")
        for n, kind in enumerate(kinds)
    ]
    pending_requests = requests_pending(Verdict.REGRESSION, events)
    assert {pending.request: f"{pending.due_at:%Y-%m-%d}" for pending in pending_requests} == owed
    assert bool(pending_requests) == (fold(Verdict.REGRESSION, events).awaited is Awaited.REPORTER)


def test_a_fix_and_the_request_to_test_it_are_one() -> None:
    mail = {"message_id": "m@x", "role": Role.AUTHOR}
    kinds = (EventKind.FIX_PROPOSED, EventKind.TEST_ASKED)
    events = [EventData(f"e{kind}", kind, FRIDAY, title="x", **mail) for kind in kinds]  # type: ignore[arg-type]
    assert [pending.request for pending in requests_pending(Verdict.REGRESSION, events)] == [Request.TEST]


def test_those_that_wait_longest_are_shown(lab_world: World, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = [lab_world.report(f"mm: {number}", f"{number + 5:x}" * 40, id=f"n{number}") for number in range(3)]
    for report in reports:
        lab_world.post(DANA, "Which kernel config did you use for this?", to=message_id(report))
        lab_world.later(2)
        lab_world.read()
    monkeypatch.setattr("tracker.pages.lab.MOST", 2)
    rows, cut = work_list(lab_world.now)
    assert ([row.report for row in rows], cut) == (reports[:2], True)
    assert "More reports wait for the lab" in client.get("/lab/").content.decode()


def test_a_message_id_is_no_shell_command(lab_world: World, client: Client) -> None:
    report = lab_world.report()
    lab_world.post(
        DANA, "Which kernel config did you use for this?", to=message_id(report), message_id="a`id`|sh@x.example"
    )
    lab_world.read()
    page = html.unescape(client.get("/lab/").content.decode())
    assert "b4 mbox 'a`id`|sh@x.example'" in page
    assert b4_mbox("-o/tmp/x@y") == "b4 mbox -- -o/tmp/x@y"
    assert b4_mbox("plain.1-2@y") == "b4 mbox plain.1-2@y"


# --- Jobs of the lab: a reply asks for a test, a runner claims and measures, the thread is answered, the state
# follows ---

EVE = Address("Eve", "eve@x.example")
OLD = "#define SCAN_COST 56\n\nint scan(void);\n"
DIFF = """\
diff --git a/mm/vmscan.c b/mm/vmscan.c
--- a/mm/vmscan.c
+++ b/mm/vmscan.c
@@ -1,3 +1,3 @@
-#define SCAN_COST 56
+#define SCAN_COST 40

 int scan(void);
"""
MEASURED = {"schema": "perf-job-result/1", "lease": "x", "outcome": "measured"}
STALE = DIFF.replace("SCAN_COST 56", "SCAN_COST 57")


@pytest.fixture
def lab_jobs_world(tmp_path: Path, db: None) -> World:
    return World(tmp_path, BotSettings(address="perfbot@bot.example.org", trust_policy="open"))


@pytest.fixture
def report(lab_jobs_world: World) -> Report:
    """A report whose culprit is in a tree that has the file."""
    tree = DemoTree(lab_jobs_world.directory / "linux.git")
    sha = tree.commit("mm/vmscan: scan more", DANA, lab_jobs_world.now, files={"mm/vmscan.c": OLD})
    return lab_jobs_world.report("mm/vmscan: scan more", sha)


@pytest.fixture
def runner(client: Client, db: None) -> Any:
    """A function that posts as a runner with a key, and returns status and answer."""
    _, token = accounts.create_api_key("runner", [Scope.JOBS], "", timezone.now())

    def post(path: str, body: Any, key: str = token) -> tuple[int, Any]:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {key}"}
        answer = client.post(f"/api/v1/jobs/{path}", sent, content_type="application/json", headers=headers)
        return answer.status_code, answer.json() if answer.content else None

    return post


def ask(world: World, report: Report, text: str = f"Can you test this patch?\n\n{DIFF}", **more: str) -> Message:
    world.post(DANA, text, to=message_id(report), **more)
    world.read()
    return Message.objects.filter(author_email=DANA.email).order_by("-pk")[0]


def opened(world: World) -> LabJob:
    assert open_jobs(world.settings, [world.directory / "linux.git"], world.now) == 1
    return LabJob.objects.order_by("-pk")[0]


def measured(job: dict[str, Any], old: float, new: float) -> dict[str, Any]:
    sides = {"without": [old, old * 1.01, old * 0.99], "with": [new, new * 1.01, new * 0.99]}
    rows = [{"metric": job["metric"]["name"], **sides}]
    return {"schema": "perf-job-result/1", "lease": job["lease"], "outcome": "measured", "measurements": rows}


def answers(world: World) -> list[OutgoingMail]:
    """What the bot answers in the thread."""
    compose_follow_ups(world.settings, world.later(), approve_first=False)
    return list(OutgoingMail.objects.exclude(purpose="report").order_by("pk"))


def test_the_whole_circle(lab_jobs_world: World, report: Report, runner: Any, client: Client) -> None:
    asking = ask(lab_jobs_world, report)
    job = opened(lab_jobs_world)
    assert (job.request, job.applies, job.base) == ("test a patch", True, report.culprit.sha)
    status, claimed = runner("claim", {"runner": "box-1", "machines": [report.machine or "lab7-m1"]})
    assert (status, claimed["patch"], claimed["base"]) == (200, DIFF, report.culprit.sha)
    assert "Claimed by box-1 until" in client.get("/lab/").content.decode()
    head = Finding.objects.get(report=report, headline=True)
    assert head.old_mean
    assert head.new_mean
    status, answer = runner(f"{job.pk}/result", measured(claimed, head.new_mean, head.old_mean))
    assert (status, answer["status"]) == (200, "recorded")
    report.refresh_from_db()
    assert (report.state, report.awaited) == ("fix_confirmed", "author")
    [mail] = answers(lab_jobs_world)
    assert (mail.state, mail.reason) == ("approved", "")
    read = parse(bytes(mail.raw))
    assert read.in_reply_to == (asking.message_id,)
    assert [each.email for each in read.to] == [DANA.email]
    text = " ".join(read.text.split())
    assert "We tested this patch. It recovers 100% of the regression (95% CI 96 to 104%):" in text
    assert "parent 1000 3 runs culprit 700.00 -30.0% 3 runs" in text
    assert "without the patch 700.00 -30.0% 3 runs with the patch 1000 +0.0% 3 runs" in text
    assert f"Tested-by: {lab_jobs_world.settings.name} <{lab_jobs_world.settings.tagged(report.tag)}>" in text
    assert max(len(line) for line in read.text.splitlines() if not line.startswith("culprit:")) <= 78
    assert answers(lab_jobs_world) == [mail]  # once
    assert runner(f"{job.pk}/result", measured(claimed, head.new_mean, head.old_mean))[1]["status"] == "duplicate"
    assert "Nothing waits for the lab." in client.get("/lab/").content.decode()
    page = client.get(f"/lab/job/{job.pk}/").content.decode()
    for words in ("measured", "Dana Brook", "box-1", "+42.9%", f'href="/lab/patch/{asking.pk}"'):
        assert words in page
    timeline = client.get(f"/report/{report.culprit.sha}/").content.decode()
    assert f'<a href="/lab/job/{job.pk}/">job/{job.pk}</a>' in timeline
    assert "(+42.9%), 3 + 3 runs" in timeline


def test_a_patch_that_does_not_apply_is_answered_in_one_line(
    lab_jobs_world: World, report: Report, runner: Any
) -> None:
    ask(lab_jobs_world, report, f"Can you test this patch?\n\n{STALE}")
    job = opened(lab_jobs_world)
    assert (job.state, job.outcome) == ("done", "does-not-apply")
    assert runner("claim", {}) == (204, None)
    [mail] = answers(lab_jobs_world)
    assert (mail.state, mail.reason) == ("approved", "")
    text = parse(bytes(mail.raw)).text
    assert "We could not test this patch: it does not apply to the culprit." in " ".join(text.split())
    assert "> error: patch failed: mm/vmscan.c:1" in text
    report.refresh_from_db()
    assert report.awaited == "author"


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("does-not-build", "v9.1-rc2 does not build with it"),
        ("does-not-boot", "v9.1-rc2 does not boot with it"),
        ("test-fails", "the test fails on v9.1-rc2 with it"),
    ],
)
def test_what_a_runner_could_not_do_is_said(
    lab_jobs_world: World, report: Report, runner: Any, outcome: str, words: str
) -> None:
    ask(lab_jobs_world, report)
    job = opened(lab_jobs_world)
    claimed = runner("claim", {})[1]
    result = {"schema": "perf-job-result/1", "lease": claimed["lease"], "outcome": outcome}
    status, _ = runner(f"{job.pk}/result", {**result, "base": {"describe": "v9.1-rc2"}, "detail": "make: *** [all]"})
    assert status == 200
    [mail] = answers(lab_jobs_world)
    assert words in " ".join(mail.body.split())
    assert "> make: *** [all]" in mail.body
    report.refresh_from_db()
    assert report.awaited == "author"


@pytest.mark.parametrize(
    ("new", "words"), [(70.0, "makes no measurable difference"), (40.0, "makes things worse"), (85.0, "recovers 50%")]
)
def test_what_does_not_cure_gets_no_tag(
    lab_jobs_world: World, report: Report, runner: Any, new: float, words: str
) -> None:
    Finding.objects.filter(report=report, headline=True).update(old_mean=100.0, new_mean=70.0)
    ask(lab_jobs_world, report)
    job = opened(lab_jobs_world)
    claimed = runner("claim", {})[1]
    assert runner(f"{job.pk}/result", measured(claimed, 70.0, new))[0] == 200
    [mail] = answers(lab_jobs_world)
    assert words in mail.body
    assert "Tested-by" not in mail.body
    report.refresh_from_db()
    assert report.awaited == "author"


def test_what_few_runs_do_not_decide_is_said_so(lab_jobs_world: World, report: Report, runner: Any) -> None:
    Finding.objects.filter(report=report, headline=True).update(old_mean=1000.0, new_mean=700.0)
    ask(lab_jobs_world, report)
    opened(lab_jobs_world)
    claimed = runner("claim", {})[1]
    result = measured(claimed, 700, 700)
    result["measurements"][0] |= {"without": [690, 710], "with": [860, 1130]}
    assert runner(f"{claimed['id']}/result", result)[0] == 200
    [mail] = answers(lab_jobs_world)
    text = " ".join(mail.body.split())
    assert "may recover much of the regression, or nothing (95% CI" in text
    assert "more runs are needed:" in text
    assert max(map(len, mail.body.splitlines())) <= 90


def test_a_lease_runs_out_and_another_runner_takes_over(lab_jobs_world: World, report: Report, runner: Any) -> None:
    ask(lab_jobs_world, report)
    job = opened(lab_jobs_world)
    _, first = runner("claim", {"runner": "a", "seconds": 60})
    assert runner("claim", {"runner": "b"}) == (204, None)
    assert runner(f"{job.pk}/extend", {"lease": first["lease"], "seconds": 120})[0] == 200
    LabJob.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert runner(f"{job.pk}/extend", {"lease": first["lease"]})[0] == 409
    status, second = runner("claim", {"runner": "b"})
    assert (status, second["runner"]) == (200, "b")
    status, answer = runner(f"{job.pk}/result", measured(first, 70, 100))
    assert (status, "offered to another runner" in answer["error"]) == (409, True)
    assert runner(f"{job.pk}/release", {"lease": second["lease"]})[0] == 200
    for name in ("c", "d"):  # what is given back does not count; the third who does not come back is the last
        assert runner("claim", {"runner": name})[0] == 200
        LabJob.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert runner("claim", {"runner": "e"}) == (204, None)
    call_command("lab", "--retry", str(job.pk))
    assert runner("claim", {"runner": "e"})[0] == 200
    with pytest.raises(CommandError, match="no job 999 that waits"):
        call_command("lab", "--retry", "999")


def test_a_late_result_counts_if_nobody_else_took_the_job(lab_jobs_world: World, report: Report, runner: Any) -> None:
    ask(lab_jobs_world, report)
    job = opened(lab_jobs_world)
    _, claimed = runner("claim", {})
    LabJob.objects.update(lease_until=timezone.now() - timedelta(days=1))
    assert runner(f"{job.pk}/result", measured(claimed, 70, 100))[0] == 200


def test_what_nobody_waits_for_is_withdrawn(lab_jobs_world: World, report: Report, runner: Any) -> None:
    ask(lab_jobs_world, report)
    job = opened(lab_jobs_world)
    _, claimed = runner("claim", {})
    event = EventData("a", EventKind.EXPECTED, lab_jobs_world.later(), role=Role.AUTHOR, actor="toni")
    event_log.record([event_log.event_row(report, event, lab_jobs_world.now)])
    assert open_jobs(lab_jobs_world.settings, [], lab_jobs_world.now) == 0
    job.refresh_from_db()
    assert job.state == "withdrawn"
    status, answer = runner(f"{job.pk}/result", measured(claimed, 70, 100))
    assert (status, "nobody waits for it any more" in answer["error"]) == (409, True)
    assert not Event.objects.filter(result=job.name).exists()


def test_who_is_not_proven_is_left_to_bold_runners_and_gets_no_mail(
    lab_jobs_world: World, report: Report, runner: Any
) -> None:
    lab_jobs_world.settings = BotSettings(address=lab_jobs_world.settings.address)  # the default policy
    lab_jobs_world.post(LEE, f"Can you test this patch?\n\n{DIFF}", to=message_id(report))
    lab_jobs_world.read()
    open_jobs(lab_jobs_world.settings, [lab_jobs_world.directory / "linux.git"], lab_jobs_world.now)
    assert not LabJob.objects.get().proven
    assert runner("claim", {}) == (204, None)
    status, claimed = runner("claim", {"unproven": True})
    assert (status, claimed["proven"]) == (200, False)
    assert runner(f"{claimed['id']}/result", measured(claimed, 70, 100))[0] == 200
    [mail] = answers(lab_jobs_world)
    assert LEE.email not in [each.email for each in parse(bytes(mail.raw)).to]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("claim", [], "expected a JSON object"),
        ("claim", b"{", "invalid JSON"),
        ("claim", {"seconds": 5}, "seconds: expected a whole number from 60 to 604800"),
        ("claim", {"seconds": True}, "seconds"),
        ("claim", {"machines": "m1"}, "machines: expected a list of names"),
        ("claim", {"machines": [1]}, "machines"),
        ("claim", {"runner": ""}, "runner: expected a name"),
        ("claim", {"unproven": 1}, "unproven: expected true or false"),
        ("{pk}/result", {}, 'schema\\" is a required property'),
        ("{pk}/result", {"schema": "perf-job-result/1", "lease": "x", "outcome": "burnt"}, "/outcome"),
        ("{pk}/result", {"schema": "perf-job-result/1", "lease": "x", "outcome": "measured"}, "measurements"),
        ("{pk}/result", {**MEASURED, "measurements": [{"metric": "m", "without": [1, 2], "with": [1, 2]}]}, "expected"),
        ("{pk}/result", {**MEASURED, "measurements": [{"metric": "m", "without": [1], "with": [1, 2]}]}, "/0/without"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(
    lab_jobs_world: World, report: Report, runner: Any, path: str, body: Any, words: str
) -> None:
    ask(lab_jobs_world, report)
    job = opened(lab_jobs_world)
    status, answer = runner(path.format(pk=job.pk), body)
    assert status == 400
    assert words in json.dumps(answer)
    job.refresh_from_db()
    assert job.state == "waiting"


def test_only_a_key_for_jobs_opens_the_door(lab_jobs_world: World, report: Report, runner: Any, client: Client) -> None:
    ask(lab_jobs_world, report)
    job = opened(lab_jobs_world)
    _, other = accounts.create_api_key("results only", [Scope.RESULTS], "*", timezone.now())
    for path in ("claim", f"{job.pk}/extend", f"{job.pk}/release", f"{job.pk}/result"):
        assert runner(path, {}, key="perfwork_wrong")[0] == 401
        assert runner(path, {}, key=other)[0] == 403
        assert client.get(f"/api/v1/jobs/{path}").status_code == 405
    assert runner("999/result", {})[0] == 404
    listed = client.get("/api/v1/jobs?state=waiting").json()
    assert [each["title"] for each in listed] == [""]
    assert "lease" not in listed[0]
    assert client.get("/api/v1/jobs?state=burnt").status_code == 400
    assert client.get(f"/lab/job/{job.pk}/").status_code == 200
    assert client.get("/lab/job/999/").status_code == 404


# --- which patch is meant ---


def posting(world: World, text: str = f"Scan less.\n\n---\n{DIFF}", **more: str) -> str:
    name = more.pop("message_id", "posting@dev.example")
    world.post(LEE, text, subject=more.pop("subject", "[PATCH] mm/vmscan: scan less"), message_id=name, **more)
    return name


def test_a_link_a_parent_a_candidate_a_branch(lab_jobs_world: World, report: Report) -> None:
    name = posting(lab_jobs_world, to=message_id(report))
    linked = ask(lab_jobs_world, report, f"Could you please test https://lore.kernel.org/r/{name}/ ?")
    found = requested_patch(linked.message_id)
    assert (found.text, found.message_id, found.title) == (DIFF, name, "mm/vmscan: scan less")
    elsewhere = ask(lab_jobs_world, report, "Could you please test https://lore.kernel.org/r/far-away@else.example ?")
    found = requested_patch(elsewhere.message_id)
    assert (found.text, found.message_id) == ("", "far-away@else.example")
    lab_jobs_world.post(DANA, "Can you test this? Background: https://lore.kernel.org/r/far-away@else.example", to=name)
    lab_jobs_world.read()
    answering = Message.objects.filter(author_email=DANA.email).order_by("-pk")[0]
    assert requested_patch(answering.message_id).text == DIFF  # what is stored, before what is only linked
    branch = ask(lab_jobs_world, report, "Can you test git://git.example.org/mm.git scan-less please?")
    assert requested_patch(branch.message_id).branch == "git://git.example.org/mm.git scan-less"
    lab_jobs_world.post(DANA, "Can you test this one?", to=name)
    lab_jobs_world.read()
    below = Message.objects.order_by("-pk")[0]
    assert requested_patch(below.message_id).text == DIFF
    plain = ask(lab_jobs_world, report, "Can you test the fix?")
    assert requested_patch(plain.message_id, candidate=name).text == DIFF
    assert requested_patch(plain.message_id).text == ""
    assert requested_patch("never-seen@x").text == ""


def test_the_base_that_a_patch_names_and_a_series(lab_jobs_world: World, report: Report) -> None:
    base = "1" * 40
    name = posting(lab_jobs_world, f"Scan less.\n---\n{DIFF}\nbase-commit: {base}\n", to=message_id(report))
    series = posting(
        lab_jobs_world, to=message_id(report), subject="[PATCH v2 2/3] mm: x", message_id="second@dev.example"
    )
    lab_jobs_world.read()
    assert requested_patch(name).base == base
    assert (requested_patch(name).in_series, requested_patch(series).in_series) == (False, True)


# --- every request its own job ---

ANOTHER = DIFF.replace("SCAN_COST", "OTHER_COST")


def test_three_alternatives_read_at_once_are_three_jobs(lab_jobs_world: World, report: Report, runner: Any) -> None:
    for number, cost in enumerate((55, 54, 53), start=1):
        patch = DIFF.replace("SCAN_COST 40", f"SCAN_COST {cost}")
        text, name = f"Attempt {number}.\n\n#lkp test\n\n---\n{patch}", f"try-{number}@dev.example"
        lab_jobs_world.post(DANA, text, to=message_id(report), subject=f"[PATCH] try {number}", message_id=name)
    lab_jobs_world.read()
    assert open_jobs(lab_jobs_world.settings, [lab_jobs_world.directory / "linux.git"], lab_jobs_world.now) == 3
    names = [f"try-{number}@dev.example" for number in (1, 2, 3)]
    assert sorted(LabJob.objects.values_list("patch_mail", flat=True)) == names
    # The end of one takes no other down, whatever it says.
    for left in (2, 1, 0):
        status, claimed = runner("claim", {"runner": "box-1"})
        assert status == 200
        runner(f"{claimed['id']}/result", measured(claimed, 700, 700 if left else 1000))
        open_jobs(lab_jobs_world.settings, [lab_jobs_world.directory / "linux.git"], lab_jobs_world.later())
        assert LabJob.objects.filter(state="waiting").count() == left
    report.refresh_from_db()
    assert report.state == "fix_confirmed"


def test_one_that_does_not_apply_is_answered_and_the_other_is_tested(lab_jobs_world: World, report: Report) -> None:
    for name, diff in (("bad@dev.example", STALE), ("good@dev.example", DIFF)):
        lab_jobs_world.post(DANA, f"#lkp test\n\n{diff}", to=message_id(report), message_id=name)
    lab_jobs_world.read()
    for _ in range(2):
        open_jobs(lab_jobs_world.settings, [lab_jobs_world.directory / "linux.git"], lab_jobs_world.later())
    states = dict(LabJob.objects.values_list("patch_mail", "state"))
    assert states == {"bad@dev.example": "done", "good@dev.example": "waiting"}
    [mail] = answers(lab_jobs_world)
    assert "does not apply" in " ".join(parse(bytes(mail.raw)).text.split())


@pytest.mark.parametrize(("also", "answered"), [("", True), ("#lkp reopen\n", False)])
def test_who_asks_for_a_test_of_a_closed_report_is_told_how_to_get_it(
    lab_jobs_world: World, report: Report, also: str, answered: bool
) -> None:
    lab_jobs_world.post(DANA, "#lkp invalid: a broken disk", to=message_id(report))
    lab_jobs_world.read()
    report.refresh_from_db()
    assert report.state == "invalid"
    lab_jobs_world.post(DANA, f"{also}#lkp test\n\n{DIFF}", to=message_id(report))
    lab_jobs_world.read()
    told = [
        " ".join(parse(bytes(mail.raw)).text.split())
        for mail in OutgoingMail.objects.filter(purpose__startswith="answer ")
    ]
    assert len(told) == answered
    assert all('the report is closed, so nothing is tested for it; "#lkp reopen" opens it' in body for body in told)


def test_two_who_ask_for_the_same_patch_get_one_job(lab_jobs_world: World, report: Report) -> None:
    name = posting(lab_jobs_world, to=message_id(report))
    for author in (DANA, LEE):
        lab_jobs_world.post(author, "#lkp test", to=name)
    lab_jobs_world.read()
    open_jobs(lab_jobs_world.settings, [lab_jobs_world.directory / "linux.git"], lab_jobs_world.now)
    assert LabJob.objects.get(state="waiting").patch_mail == name


def series(world: World, report: Report, total: int = 2) -> str:
    cover = "cover@dev.example"
    text = "Two patches that help.\n\n#lkp test\n"
    world.post(DANA, text, to=message_id(report), subject=f"[PATCH v2 0/{total}] mm: less", message_id=cover)
    for number, diff in enumerate((DIFF, ANOTHER), start=1):
        more = {"subject": f"[PATCH v2 {number}/{total}] mm: part {number}", "message_id": f"part-{number}@dev.example"}
        world.post(DANA, f"Part {number}.\n\n---\n{diff}", to=cover, **more)
    world.read()
    return cover


def test_a_cover_letter_asks_for_the_whole_series_in_order(
    lab_jobs_world: World, report: Report, client: Client
) -> None:
    cover = series(lab_jobs_world, report)
    open_jobs(lab_jobs_world.settings, [lab_jobs_world.directory / "linux.git"], lab_jobs_world.now)
    job = LabJob.objects.get()
    assert (job.patch_mail, job.in_series, job.title) == (cover, True, "mm: less")
    Message.objects.update(public=True)
    for name in (cover, "part-2@dev.example"):
        pk = Message.objects.get(message_id=name).pk
        assert client.get(f"/lab/patch/{pk}").content.decode() == DIFF + ANOTHER


def test_of_a_series_with_a_part_missing_only_the_part_is_shown(
    lab_jobs_world: World, report: Report, client: Client
) -> None:
    series(lab_jobs_world, report, total=3)
    Message.objects.update(public=True)
    pk = Message.objects.get(message_id="part-2@dev.example").pk
    assert client.get(f"/lab/patch/{pk}").content.decode() == ANOTHER


@pytest.mark.parametrize(("diff", "applies"), [(DIFF, True), (STALE, None)])
def test_an_unknown_base_is_said_and_never_refused(
    lab_jobs_world: World, report: Report, diff: str, applies: bool | None
) -> None:
    base = "deadbeef" * 5
    ask(lab_jobs_world, report, f"Can you test this patch?\n\n{diff}\nbase-commit: {base}\n")
    job = opened(lab_jobs_world)
    assert (job.state, job.applies) == ("waiting", applies)
    assert job.base == (report.culprit.sha if applies else base)
    assert job.detail == ("" if applies else "its base deadbeefdead is in none of the followed trees")


def test_a_runner_may_hand_back_the_empty_base_of_its_job(lab_jobs_world: World, report: Report, runner: Any) -> None:
    ask(lab_jobs_world, report, "#lkp test\n\nIt is at git://git.example.org/mm.git scan-less")
    opened(lab_jobs_world)
    _, claimed = runner("claim", {"runner": "box-1"})
    assert claimed["base"] == ""
    status, _ = runner(f"{claimed['id']}/result", measured(claimed, 700, 1000) | {"base": {"sha": claimed["base"]}})
    assert status == 200


def test_under_an_open_policy_a_strangers_patch_still_waits_for_a_click(lab_jobs_world: World, report: Report) -> None:
    event = EventData("t", EventKind.TEST_ASKED, lab_jobs_world.now, role=Role.THIRD_PARTY, message_id="p@evil.example")
    lab_jobs_world.post(
        Address("Mal", "mal@evil.example"), f"Test this.\n\n{DIFF}", to=message_id(report), message_id="p@evil.example"
    )
    lab_jobs_world.read()
    event_log.record([event_log.event_row(report, event, lab_jobs_world.now)])
    open_jobs(lab_jobs_world.settings, [lab_jobs_world.directory / "linux.git"], lab_jobs_world.now)
    assert not LabJob.objects.filter(proven=True, patch_mail="p@evil.example").exists()


def test_of_two_proposals_for_one_file_the_first_is_meant(
    lab_jobs_world: World, report: Report, client: Client
) -> None:
    asking = ask(lab_jobs_world, report, f"Can you test this patch?\n\n{DIFF}\nor else\n\n{STALE}")
    assert requested_patch(asking.message_id).text == DIFF
    assert client.get(f"/lab/patch/{asking.pk}").content.decode() == DIFF  # the page shows what a runner gets


def test_a_broken_tree_or_none_leaves_the_patch_unchecked(lab_jobs_world: World, report: Report) -> None:
    ask(lab_jobs_world, report)
    (lab_jobs_world.directory / "broken.git").mkdir()
    open_jobs(lab_jobs_world.settings, [lab_jobs_world.directory / "broken.git"], lab_jobs_world.now)
    job = LabJob.objects.get()
    assert (job.state, job.applies) == ("waiting", None)
    assert open_jobs(lab_jobs_world.settings, [], lab_jobs_world.now) == 0


def test_checking_writes_no_file_of_the_tree(lab_jobs_world: World, report: Report) -> None:
    tree = lab_jobs_world.directory / "linux.git"
    before = sorted((path, path.stat().st_mtime_ns) for path in tree.rglob("*") if path.is_file())
    ask(lab_jobs_world, report, f"Can you test this patch?\n\n{DIFF.replace('mm/vmscan.c', '../../etc/passwd')}")
    opened(lab_jobs_world)
    after = sorted((path, path.stat().st_mtime_ns) for path in tree.rglob("*") if path.is_file())
    assert after == before


def test_two_runners_at_once_get_a_job_each(lab_jobs_world: World, report: Report) -> None:
    second = lab_jobs_world.report("mm: second", "b" * 40, id="second")
    for each in (report, second):
        ask(lab_jobs_world, each)
    open_jobs(lab_jobs_world.settings, [], lab_jobs_world.now)
    rows = lab_jobs.claimable(lab_jobs_world.now)
    first = lab_jobs.claim(rows, "a", lab_jobs_world.now, timedelta(minutes=5))
    other = lab_jobs.claim(rows, "b", lab_jobs_world.now, timedelta(minutes=5))
    assert first
    assert other
    assert first.pk != other.pk
    assert lab_jobs.claim(rows, "c", lab_jobs_world.now, timedelta(minutes=5)) is None


def test_the_example_runner_says_what_is_wrong(lab_jobs_world: World) -> None:
    script = Path(recognise.__file__).parents[2] / "fixtures" / "runner.py"
    run = ["python3", str(script), "--url", "http://127.0.0.1:9", "--tree", "none"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "runner: no job could be claimed: 0" in done.stderr


# --- what strangers and undo must not do ---


@pytest.mark.parametrize(
    ("sender", "proven"),
    [(EVE, False), (Address(DANA.name, EVE.email), False), (DANA, True)],
    ids=["a stranger", "a stranger by the author's name", "the author"],
)
def test_a_signature_of_ones_own_orders_no_test(
    lab_jobs_world: World, report: Report, sender: Address, proven: bool
) -> None:
    """Everybody has a domain that signs, and a patch runs on the lab's machines."""
    lab_jobs_world.settings = BotSettings(address=lab_jobs_world.settings.address)  # the default policy
    lab_jobs_world.post(sender, f"Can you test this patch?\n\n{DIFF}", to=message_id(report))
    lab_jobs_world.read()
    Message.objects.filter(author_email=sender.email).update(trust="pass")
    open_jobs(lab_jobs_world.settings, [], lab_jobs_world.now)
    assert LabJob.objects.get().proven is proven


def test_a_strangers_later_patch_is_not_the_one_that_was_meant(
    lab_jobs_world: World, report: Report, runner: Any
) -> None:
    lab_jobs_world.settings = BotSettings(address=lab_jobs_world.settings.address)  # the default policy
    lees = posting(lab_jobs_world, to=message_id(report))
    lab_jobs_world.read()
    asked = EventData("ask", EventKind.TEST_ASKED, lab_jobs_world.later(), actor="toni", role=Role.MAINTAINER)
    event_log.record([event_log.event_row(report, asked, lab_jobs_world.now)])
    eves = DIFF.replace("SCAN_COST 40", "SCAN_COST 0")
    lab_jobs_world.post(
        EVE, f"x\n\n---\n{eves}", subject="[PATCH] mm: eve's", message_id="eve@x.example", to=message_id(report)
    )
    lab_jobs_world.read()
    open_jobs(lab_jobs_world.settings, [], lab_jobs_world.later())
    tested = LabJob.objects.get(event_key="ask")
    assert (tested.patch_mail, tested.proven) == (lees, False)  # toni stands for the request, and nobody for the patch
    assert not LabJob.objects.filter(proven=True).exists()
    assert runner("claim", {}) == (204, None)


def test_a_strangers_patch_that_does_not_apply_gets_no_mail(lab_jobs_world: World, report: Report) -> None:
    lab_jobs_world.settings = BotSettings(address=lab_jobs_world.settings.address)
    for number in range(3):
        subject = f"BUY NOW {number} http://evil.example/x"
        text = f"Can you test this patch?\n\n{STALE}"
        lab_jobs_world.post(Address("Eve", f"eve{number}@x.example"), text, subject=subject, to=message_id(report))
    lab_jobs_world.read()
    open_jobs(lab_jobs_world.settings, [lab_jobs_world.directory / "linux.git"], lab_jobs_world.now)
    assert not Event.objects.filter(result__startswith="job/").exists()
    assert answers(lab_jobs_world) == []


def test_a_report_gets_few_such_answers_a_day(lab_jobs_world: World, report: Report) -> None:
    ask(lab_jobs_world, report, f"Can you test this patch?\n\n{STALE}")
    opened(lab_jobs_world)
    for number in range(6):
        stale = STALE.replace("SCAN_COST 40", f"SCAN_COST {number}")
        ask(lab_jobs_world, report, f"And this patch, can you test it?\n\n{stale}")
    trees = [lab_jobs_world.directory / "linux.git"]
    for _ in range(3):
        open_jobs(lab_jobs_world.settings, trees, lab_jobs_world.now)
    assert Event.objects.filter(result__startswith="job/").count() == 5
    open_jobs(lab_jobs_world.settings, trees, lab_jobs_world.now + timedelta(days=2))
    assert Event.objects.filter(result__startswith="job/").count() == 7  # none is forgotten


def test_undo_brings_a_withdrawn_job_back(lab_jobs_world: World, report: Report, runner: Any) -> None:
    ask(lab_jobs_world, report)
    job = opened(lab_jobs_world)
    event = EventData("a", EventKind.INVALID, lab_jobs_world.later(), actor="toni")
    event_log.record([event_log.event_row(report, event, lab_jobs_world.now)])
    open_jobs(lab_jobs_world.settings, [], lab_jobs_world.now)
    undone = EventData("u", EventKind.REVERSED, lab_jobs_world.later(), actor="toni", reverses="a")
    event_log.record([event_log.event_row(report, undone, lab_jobs_world.now)])
    open_jobs(lab_jobs_world.settings, [], lab_jobs_world.now)
    job.refresh_from_db()
    assert job.state == "waiting"
    assert runner("claim", {})[0] == 200


def test_undo_of_a_result_opens_its_job_again(lab_jobs_world: World, report: Report, runner: Any) -> None:
    ask(lab_jobs_world, report)
    job = opened(lab_jobs_world)
    for number in (1, 2):
        claimed = runner("claim", {})[1]
        assert runner(f"{job.pk}/result", measured(claimed, 70.0, 70.0))[0] == 200
        event = Event.objects.filter(result=job.name, reverses="").order_by("-pk")[0]
        undone = EventData(f"u{number}", EventKind.REVERSED, timezone.now(), actor="toni", reverses=event.key)
        event_log.record([event_log.event_row(report, undone, timezone.now())])
        assert open_jobs(lab_jobs_world.settings, [], timezone.now()) == 0
    job.refresh_from_db()
    assert (job.state, job.payload) == ("waiting", "")
    assert Event.objects.filter(result=job.name).count() == 2


def test_the_culprit_is_looked_for_in_every_tree(lab_jobs_world: World, report: Report) -> None:
    other = DemoTree(lab_jobs_world.directory / "other.git")
    other.commit("another project", DANA, lab_jobs_world.now)
    ask(lab_jobs_world, report)
    open_jobs(
        lab_jobs_world.settings,
        [lab_jobs_world.directory / "other.git", lab_jobs_world.directory / "linux.git"],
        lab_jobs_world.now,
    )
    job = LabJob.objects.get()
    assert (job.applies, job.base) == (True, report.culprit.sha)
    found = inspection.check([lab_jobs_world.directory / "other.git"], ["f" * 40], STALE)
    assert not found.known  # a head alone says nothing


def test_a_slow_tree_says_nothing_about_a_patch(
    lab_jobs_world: World, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*arguments: object, **options: object) -> bytes:
        raise Unreadable("/srv/linux.git: git apply took more than 120 s")

    ask(lab_jobs_world, report)
    monkeypatch.setattr(inspection.git, "run", slow)
    open_jobs(lab_jobs_world.settings, [lab_jobs_world.directory / "linux.git"], lab_jobs_world.now)
    job = LabJob.objects.get()
    assert (job.applies, job.detail) == (None, "")


def test_a_report_without_findings_burns_no_attempt(lab_jobs_world: World, report: Report, runner: Any) -> None:
    ask(lab_jobs_world, report)
    job = opened(lab_jobs_world)
    Finding.objects.filter(report=report).delete()
    assert runner("claim", {}) == (204, None)
    job.refresh_from_db()
    assert (job.state, job.attempts) == ("waiting", 0)


@pytest.mark.parametrize("path", ["claim", "1/extend", "1/result"])
def test_nul_is_refused(db: None, runner: Any, path: str) -> None:
    assert runner(path, {"runner": "a\0b", "lease": "\0"})[0] == 400


# --- Several askers, and what people here do to a job ---


def two_askers(world: World, report: Report, *authors: Address) -> LabJob:
    """Return the job of a patch for which everybody asks, one after the other."""
    name = "posting@dev.example"
    named = {"subject": "[PATCH] mm/vmscan: scan less", "message_id": name}
    world.post(DANA, f"Scan less.\n\n---\n{DIFF}", to=message_id(report), **named)
    for author in authors:
        world.post(author, "#lkp test", to=name)
        world.read()
        round_of(world)
    return LabJob.objects.get()


def round_of(world: World) -> int:
    return open_jobs(world.settings, [world.directory / "linux.git"], world.later())


@pytest.fixture
def operator(db: None) -> Client:
    user = User.objects.create_user("olga")
    user.groups.add(Group.objects.get(name="operator"))
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("outcome", ["measured", "does-not-build"])
def test_all_who_ask_for_the_same_are_answered_by_one_test(
    lab_jobs_world: World, report: Report, runner: Any, client: Client, outcome: str
) -> None:
    job = two_askers(lab_jobs_world, report, DANA, LEE, DANA)
    assert len(job.joined) == 2
    assert "2 more requests for the same" in client.get(f"/lab/job/{job.pk}/").content.decode()
    claimed = runner("claim", {})[1]
    result = measured(claimed, 700, 1000)
    if outcome != "measured":
        result = {name: result[name] for name in ("schema", "lease")} | {"outcome": outcome, "detail": "error: x"}
    assert runner(f"{job.pk}/result", result)[0] == 200
    assert work_list(lab_jobs_world.later())[0] == []
    assert round_of(lab_jobs_world) == 0
    asking = set(Message.objects.filter(own_text__contains="#lkp test").values_list("message_id", flat=True))
    answered = set(Event.objects.filter(result=job.name).values_list("in_reply_to", flat=True))
    assert len(asking & answered) == 2
    assert job.patch_mail in answered


def test_a_request_that_is_proven_makes_the_job_of_a_stranger_proven(lab_jobs_world: World, report: Report) -> None:
    job = two_askers(lab_jobs_world, report, LEE)
    LabJob.objects.update(proven=False)
    assert not lab_jobs.join(job, "of another stranger", proven=False).proven
    assert lab_jobs.join(job, "of the author", proven=True).proven
    assert lab_jobs.join(job, "of a third stranger", proven=False).proven


def test_talk_withdraws_no_request(lab_jobs_world: World, report: Report) -> None:
    job = two_askers(lab_jobs_world, report, LEE)
    lab_jobs_world.post(DANA, "Thanks, I had not seen that one.", to=job.patch_mail)
    lab_jobs_world.read()
    round_of(lab_jobs_world)
    job.refresh_from_db()
    report.refresh_from_db()
    assert (job.state, report.awaited) == ("waiting", "reporter")


@pytest.mark.parametrize("first", [EventKind.REPORTED, EventKind.RESPONDED])
def test_talk_answers_no_request_whatever_was_said_before(first: EventKind) -> None:
    kinds = [EventKind.REPORTED, first, EventKind.TEST_ASKED, EventKind.RESPONDED]
    events = [EventData(f"e{n}", kind, FRIDAY + timedelta(hours=n), Role.AUTHOR) for n, kind in enumerate(kinds)]
    assert fold(Verdict.REGRESSION, events).awaited is Awaited.REPORTER
    assert [pending.request for pending in requests_pending(Verdict.REGRESSION, events)] == [Request.TEST]


def test_a_branch_that_helps_is_no_candidate_of_its_own() -> None:
    patch = EventData("p", EventKind.FIX_PROPOSED, FRIDAY, Role.AUTHOR, title="mm: fix", message_id="p1@x")
    helps = EventData("j", EventKind.FIX_CONFIRMED, FRIDAY + timedelta(days=1), result="job/1", in_reply_to="asking@x")
    state = fold(Verdict.REGRESSION, [patch, helps])
    assert state.fix
    assert (state.fix.message_id, state.older_fixes) == ("p1@x", frozenset())


def test_a_job_stays_while_one_of_its_askers_waits(lab_jobs_world: World, report: Report) -> None:
    job = two_askers(lab_jobs_world, report, DANA, LEE)
    for number, key in enumerate((job.event_key, *job.joined)):
        undone = EventData(f"u{number}", EventKind.REVERSED, lab_jobs_world.later(), actor="toni", reverses=key)
        event_log.record([event_log.event_row(report, undone, lab_jobs_world.now)])
        job.refresh_from_db()
        round_of(lab_jobs_world)
        states = list(LabJob.objects.exclude(state="withdrawn").values_list("state", flat=True))
        assert states == (["waiting"] if number == 0 else [])


def test_an_operator_cancels_a_job_and_the_thread_is_told(
    lab_jobs_world: World, report: Report, runner: Any, operator: Client
) -> None:
    job = two_askers(lab_jobs_world, report, DANA, LEE)
    claimed = runner("claim", {})[1]
    act = f"/lab/job/{job.pk}/act/"
    refused = operator.post(act, {"do": "cancel"})
    assert (refused.status_code, b"say why" in refused.content) == (400, True)
    operator.post(act, {"do": "cancel", "reason": "its machine is gone", "notify_thread": "1"})
    job.refresh_from_db()
    assert (job.state, job.outcome, job.detail) == ("done", "cancelled", "its machine is gone")
    status, answer = runner(f"{job.pk}/extend", {"lease": claimed["lease"]})
    assert (status, "nobody waits" in answer["error"]) == (409, True)
    assert round_of(lab_jobs_world) == 0
    [mail] = answers(lab_jobs_world)
    text = " ".join(parse(bytes(mail.raw)).text.split())
    assert "its machine is gone" in text
    page = operator.get("/lab/").content.decode()
    assert "Ended lately" in page
    assert "its machine is gone" in page
    assert "cancelled" in operator.get(f"/report/{report.culprit.sha}/").content.decode()


@pytest.mark.parametrize("how", ["again", "undo"])
def test_a_cancelled_job_can_be_tested_after_all(
    lab_jobs_world: World, report: Report, runner: Any, operator: Client, how: str
) -> None:
    job = two_askers(lab_jobs_world, report, DANA, LEE)
    for _ in range(2):
        operator.post(f"/lab/job/{job.pk}/act/", {"do": "cancel", "reason": "by mistake"})
        events = Event.objects.filter(result=job.name, reverses="")
        if how == "again":
            operator.post(f"/lab/job/{job.pk}/act/", {"do": "retry"})
            round_of(lab_jobs_world)
        else:
            for event in events:
                operator.post(f"/report/{report.culprit.sha}/take-back/", {"key": event.key})
            round_of(lab_jobs_world)
        job.refresh_from_db()
        assert (job.state, job.outcome) == ("waiting", "")
    claimed = runner("claim", {})[1]
    assert runner(f"{job.pk}/result", measured(claimed, 700, 1000))[0] == 200
    assert work_list(lab_jobs_world.later())[0] == []
    report.refresh_from_db()
    assert report.state == "fix_confirmed"
    stale = operator.post(f"/lab/job/{job.pk}/act/", {"do": "retry"}, follow=True)
    assert "Nothing was changed" in stale.content.decode()


def test_an_operator_lets_any_runner_take_what_they_have_looked_at(
    lab_jobs_world: World, report: Report, runner: Any, operator: Client, client: Client
) -> None:
    lab_jobs_world.settings = BotSettings(address=lab_jobs_world.settings.address)  # the default policy
    lab_jobs_world.post(LEE, f"Can you test this patch?\n\n{DIFF}", to=message_id(report))
    lab_jobs_world.read()
    round_of(lab_jobs_world)
    job = LabJob.objects.get()
    assert "Let any runner take it" in operator.get(f"/lab/job/{job.pk}/").content.decode()
    assert "Let any runner" not in client.get(f"/lab/job/{job.pk}/").content.decode()
    assert client.post(f"/lab/job/{job.pk}/act/", {"do": "allow"}).status_code == 302  # to the page to sign in
    assert runner("claim", {})[0] == 204
    operator.post(f"/lab/job/{job.pk}/act/", {"do": "allow"})
    assert "Allowed by" in client.get(f"/lab/job/{job.pk}/").content.decode()
    assert runner("claim", {})[0] == 200


def test_a_patch_that_is_not_here_can_be_looked_at_by_nobody(lab_jobs_world: World, report: Report) -> None:
    job = LabJob.objects.create(
        report=report,
        event_key="e",
        request="test a patch",
        opened_at=lab_jobs_world.now,
        due_at=lab_jobs_world.now,
        patch_mail="elsewhere@x.example",
    )
    assert not lab_jobs.allow(job.pk, "olga")


def test_a_job_that_no_runner_takes_is_said(lab_jobs_world: World, report: Report, runner: Any) -> None:
    ask(lab_jobs_world, report)
    opened(lab_jobs_world)
    now = lab_jobs_world.now
    assert not [fault for fault in faults(now + timedelta(hours=23)) if fault.name == "lab"]
    [fault] = [fault for fault in faults(now + timedelta(hours=25)) if fault.name == "lab"]
    assert (fault.since, "1 job waited for more than a day" in fault.error) == (now + timedelta(days=1), True)
    claimed = runner("claim", {"seconds": 7 * 86400})[1]
    assert not [fault for fault in faults(timezone.now() + timedelta(hours=25)) if fault.name == "lab"]
    runner(f"{claimed['id']}/release", {"lease": claimed["lease"]})
    LabJob.objects.update(proven=False)  # it waits for a click, then
    assert [fault for fault in faults(now + timedelta(hours=25)) if fault.name == "lab"]


def test_the_command_cancels_with_a_reason(lab_jobs_world: World, report: Report, capsys: Any) -> None:
    ask(lab_jobs_world, report)
    job = opened(lab_jobs_world)
    with pytest.raises(CommandError, match="needs --reason"):
        call_command("lab", cancel=job.pk)
    call_command("lab", cancel=job.pk, reason="no machine")
    with pytest.raises(CommandError, match=f"no unfinished job {job.pk}"):
        call_command("lab", cancel=job.pk, reason="no machine")
    job.refresh_from_db()
    assert job.outcome == "cancelled"
    assert "(command line)" in Event.objects.get(result=job.name).actor


# --- Series ---


def place_of(number: int, total: int, version: int = 1) -> str:
    return f"[PATCH{f' v{version}' if version > 1 else ''} {number}/{total}]"


def part(world: World, author: Address, number: int, diff: str, to: str, **more: Any) -> str:
    """Post a part of a series, and return its Message-ID."""
    total, version = more.pop("total", 2), more.pop("version", 1)
    name = more.pop("message_id", f"v{version}-part-{number}@dev.example")
    subject = f"{place_of(number, total, version)} mm: part {number}"
    text = f"Part {number}.\n\n---\n{diff}" if diff else "Two patches that help."
    world.post(author, more.pop("text", text), to=to, subject=subject, message_id=name, **more)
    return name


def claimed_patch(runner: Any) -> str:
    status, job = runner("claim", {})
    assert status == 200
    return str(job["patch"])


@pytest.mark.parametrize("asked", ["cover", "first", "last", "below"])
def test_a_runner_gets_the_whole_series(lab_jobs_world: World, report: Report, runner: Any, asked: str) -> None:
    world = lab_jobs_world
    cover = part(world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    names = {"cover": cover, "first": part(world, DANA, 1, DIFF, cover), "last": part(world, DANA, 2, SECOND, cover)}
    world.post(DANA, "#lkp test", to=names.get(asked, names["last"]), message_id="asking@dev.example")
    world.read()
    round_of(world)
    job = LabJob.objects.get()
    assert (job.patch_mail, job.title, job.applies) == (cover, "mm: part 0", True)
    assert claimed_patch(runner) == DIFF + SECOND


SECOND = (
    DIFF.replace("56", "40")
    .replace("SCAN_COST 40\n+", "SCAN_COST 40\n+", 1)
    .replace("+#define SCAN_COST 40", "+#define SCAN_COST 30")
)


def test_a_series_without_a_cover_letter_and_deeply_threaded(
    lab_jobs_world: World, report: Report, runner: Any
) -> None:
    first = part(lab_jobs_world, DANA, 1, DIFF, message_id(report))
    second = part(lab_jobs_world, DANA, 2, SECOND, first)
    lab_jobs_world.post(DANA, "#lkp test", to=second)
    lab_jobs_world.read()
    round_of(lab_jobs_world)
    assert LabJob.objects.get().patch_mail == first
    assert claimed_patch(runner) == DIFF + SECOND


def test_all_who_ask_for_parts_of_a_series_get_one_job(lab_jobs_world: World, report: Report) -> None:
    cover = part(lab_jobs_world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    names = [cover, part(lab_jobs_world, DANA, 1, DIFF, cover), part(lab_jobs_world, DANA, 2, SECOND, cover)]
    for name in names:
        lab_jobs_world.post(DANA, "#lkp test", to=name)
    lab_jobs_world.read()
    round_of(lab_jobs_world)
    assert len(LabJob.objects.get().joined) == 2


def test_the_second_version_of_a_series_is_its_own(lab_jobs_world: World, report: Report, runner: Any) -> None:
    """It is posted in reply to the first one's cover letter, as some do."""
    world = lab_jobs_world
    cover = part(world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    part(world, DANA, 1, ANOTHER, cover)
    part(world, DANA, 2, ANOTHER, cover)
    part(world, DANA, 1, DIFF, cover, version=2)
    last = part(world, DANA, 2, SECOND, cover, version=2)
    world.post(DANA, "#lkp test", to=last)
    world.read()
    round_of(world)
    assert claimed_patch(runner) == DIFF + SECOND


def test_a_strangers_part_is_not_of_her_series(lab_jobs_world: World, report: Report, runner: Any) -> None:
    cover = part(lab_jobs_world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    part(lab_jobs_world, EVE, 1, ANOTHER, cover, message_id="evil@x.example")
    part(lab_jobs_world, DANA, 1, DIFF, cover)
    part(lab_jobs_world, DANA, 2, SECOND, cover)
    lab_jobs_world.post(DANA, "#lkp test", to=cover)
    lab_jobs_world.read()
    round_of(lab_jobs_world)
    assert claimed_patch(runner) == DIFF + SECOND


def test_a_series_waits_for_its_parts(lab_jobs_world: World, report: Report, runner: Any, client: Client) -> None:
    cover = part(lab_jobs_world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    part(lab_jobs_world, DANA, 1, DIFF, cover)
    lab_jobs_world.post(DANA, "#lkp test", to=cover)
    lab_jobs_world.read()
    round_of(lab_jobs_world)
    Message.objects.update(public=True)
    assert "part 2 of 2 is not here" in client.get(f"/lab/job/{LabJob.objects.get().pk}/").content.decode()
    assert runner("claim", {})[0] == 204
    part(lab_jobs_world, DANA, 2, SECOND, cover)
    lab_jobs_world.read()
    round_of(lab_jobs_world)
    assert claimed_patch(runner) == DIFF + SECOND


def test_the_part_that_does_not_apply_is_named(lab_jobs_world: World, report: Report) -> None:
    cover = part(lab_jobs_world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    part(lab_jobs_world, DANA, 1, DIFF, cover)
    part(lab_jobs_world, DANA, 2, STALE, cover)
    lab_jobs_world.post(DANA, "#lkp test", to=cover)
    lab_jobs_world.read()
    round_of(lab_jobs_world)
    job = LabJob.objects.get()
    assert (job.state, job.outcome) == ("done", "does-not-apply")
    assert job.detail.startswith("part 2 of 2: error: patch failed: mm/vmscan.c:1")
    [mail] = answers(lab_jobs_world)
    assert "part 2 of 2: error: patch failed" in parse(bytes(mail.raw)).text


# --- Several requests ---


@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_of_alternatives_the_one_that_helps_counts_in_any_order(
    lab_jobs_world: World, report: Report, runner: Any, order: tuple[bool, bool]
) -> None:
    for number, cost in enumerate((55, 54), start=1):
        patch = DIFF.replace("SCAN_COST 40", f"SCAN_COST {cost}")
        named = {"subject": f"[PATCH] mm: try {number}", "message_id": f"try-{number}@dev.example"}
        lab_jobs_world.post(DANA, f"#lkp test\n\n---\n{patch}", to=message_id(report), **named)
    lab_jobs_world.read()
    round_of(lab_jobs_world)
    helping = ""
    for helps in order:
        claimed = runner("claim", {})[1]
        helping = claimed["title"] if helps else helping
        assert runner(f"{claimed['id']}/result", measured(claimed, 700, 1000 if helps else 700))[0] == 200
    report.refresh_from_db()
    assert (report.state, report.fix_title) == ("fix_confirmed", helping)


def test_two_links_in_one_mail_are_two_jobs(lab_jobs_world: World, report: Report) -> None:
    for number in (1, 2):
        patch = DIFF.replace("SCAN_COST 40", f"SCAN_COST {number}")
        named = {"subject": f"[PATCH] mm: try {number}", "message_id": f"try-{number}@dev.example"}
        lab_jobs_world.post(DANA, f"---\n{patch}", to=message_id(report), **named)
    lines = [f"#lkp test https://lore.kernel.org/r/try-{number}@dev.example" for number in (1, 2)]
    lab_jobs_world.post(DANA, "\n".join(lines), to=message_id(report))
    lab_jobs_world.read()
    round_of(lab_jobs_world)
    tested = LabJob.objects.filter(request="test a patch").values_list("patch_mail", flat=True)
    assert sorted(tested) == ["try-1@dev.example", "try-2@dev.example"]


def test_the_same_diff_in_two_mails_is_one_job(lab_jobs_world: World, report: Report) -> None:
    for name in ("a@dev.example", "b@dev.example"):
        lab_jobs_world.post(DANA, f"#lkp test\n\n---\n{DIFF}", to=message_id(report), message_id=name)
    lab_jobs_world.read()
    round_of(lab_jobs_world)
    assert len(LabJob.objects.get(request="test a patch").joined) == 1


@pytest.mark.parametrize(
    "words",
    [
        "Could you please test https://lore.kernel.org/r/posting@dev.example ?",
        "Could you please give git://git.example.org/mm.git scan-less a try?",
        "Can you test the scan-less branch of git://git.example.org/mm.git please?",
    ],
)
def test_plain_english_orders_a_test_of_what_it_names(
    lab_jobs_world: World, report: Report, runner: Any, words: str
) -> None:
    named = {"subject": "[PATCH] mm/vmscan: scan less", "message_id": "posting@dev.example"}
    lab_jobs_world.post(DANA, f"Scan less.\n\n---\n{DIFF}", to=message_id(report), **named)
    lab_jobs_world.post(DANA, words, to=message_id(report))
    lab_jobs_world.read()
    round_of(lab_jobs_world)
    jobs = LabJob.objects.all()
    [job] = [job for job in jobs if any(key.startswith("test_asked:") for key in (job.event_key, *job.joined))]
    branch = "" if "lore" in words else "git://git.example.org/mm.git scan-less"
    assert (job.branch, bool(job.patch_mail)) == (branch, not branch)
    assert runner("claim", {})[0] == 200


def test_undo_of_one_of_two_answers_opens_their_job_again(lab_jobs_world: World, report: Report, runner: Any) -> None:
    job = two_askers(lab_jobs_world, report, DANA, LEE)
    claimed = runner("claim", {})[1]
    assert runner(f"{job.pk}/result", measured(claimed, 700, 1000))[0] == 200
    for number, event in enumerate(Event.objects.filter(result=job.name).order_by("pk")):
        undone = EventData(f"u{number}", EventKind.REVERSED, timezone.now(), actor="toni", reverses=event.key)
        event_log.record([event_log.event_row(report, undone, timezone.now())])
        assert open_jobs(lab_jobs_world.settings, [], timezone.now()) == 0
    job.refresh_from_db()
    assert (job.state, LabJob.objects.count()) == ("waiting", 1)


def test_everybody_who_asked_and_is_known_gets_the_answer(lab_jobs_world: World, report: Report, runner: Any) -> None:
    job = two_askers(lab_jobs_world, report, DANA, LEE)
    Message.objects.filter(author_email=LEE.email).update(trust="pass")
    claimed = runner("claim", {})[1]
    assert runner(f"{job.pk}/result", measured(claimed, 700, 1000))[0] == 200
    [mail] = answers(lab_jobs_world)
    assert {DANA.email, LEE.email} <= set(mail.recipients)


def test_a_patch_that_did_not_apply_is_checked_again(
    lab_jobs_world: World, report: Report, runner: Any, operator: Client
) -> None:
    ask(lab_jobs_world, report, f"Can you test this patch?\n\n{STALE}")
    job = opened(lab_jobs_world)
    assert job.outcome == "does-not-apply"
    tree = DemoTree(lab_jobs_world.directory / "linux.git")
    tree.commit("mm: prepare", DANA, lab_jobs_world.now, files={"mm/vmscan.c": OLD.replace("56", "57")})
    operator.post(f"/lab/job/{job.pk}/act/", {"do": "retry"})
    round_of(lab_jobs_world)
    job.refresh_from_db()
    assert (job.state, job.applies) == ("waiting", True)
    assert claimed_patch(runner) == STALE


def test_a_patch_that_changed_since_it_was_looked_at_is_not_run(
    lab_jobs_world: World, report: Report, runner: Any
) -> None:
    ask(lab_jobs_world, report)
    job = opened(lab_jobs_world)
    LabJob.objects.update(patch_digest="0" * 64)
    assert runner("claim", {})[0] == 204
    job.refresh_from_db()
    assert (job.proven, job.state) == (False, "waiting")
    assert "not the one any more" in job.detail


# --- A day of a lab ---


def measured_by_a_lab(number: int, true_change: float) -> dict[str, Any]:
    """The measurements of one result: the suite's key metric and 72 others, all with noise of 1 to 4 %."""
    dice = random.Random(number)
    rows = []
    for index in range(73):
        mean, noise = dice.uniform(1e3, 1e5), dice.uniform(0.01, 0.04)
        new_mean = mean * (1 + true_change) if index == 0 else mean
        samples = [[round(dice.gauss(at, mean * noise), 3) for _ in range(6)] for at in (mean, new_mean)]
        name = "vm-scan.ops_per_sec" if index == 0 else f"vm-scan.part{index}_per_sec"
        role = "headline" if index == 0 else "kpi"
        sides = {"good": {"samples": samples[0]}, "bad": {"samples": samples[1]}}
        rows.append({"metric": name, "unit": "1/s", "direction": "higher", "role": role, **sides})
    return {"measurements": rows}


def test_a_day_of_a_lab(lab_jobs_world: World, report: Report, runner: Any, operator: Client) -> None:
    """Forty results of noise, three of true regressions, a broken root, and a stranger's request: from upload to what
    an operator finds in the morning.
    """
    world = lab_jobs_world
    culprits = [world.commit(f"mm: change {number}") for number in range(43)]
    results = [
        world.result(sha, f"mm: change {number}", **measured_by_a_lab(number, -0.3 if number < 3 else 0.0))
        for number, sha in enumerate(culprits)
    ]
    (world.directory / "day.jsonl").write_text("".join(json.dumps(result) + "\n" for result in results))
    broken = world.directory / "broken" / "matrix.json"
    broken.parent.mkdir()
    broken.write_text('{"demo.widgets": [1, 2')
    world.ingest(*results)
    with pytest.raises(CommandError):
        call_command("ingest", str(broken.parent), stdout=io.StringIO(), stderr=io.StringIO())
    world.post(EVE, f"Could you please test this patch?\n\n{DIFF}", to=message_id(report))
    world.read()
    round_of(world)
    compose_due(world.settings, world.later(), approve_first=True)
    mailed = OutgoingMail.objects.filter(state="composed", purpose="report").exclude(report=report)
    about = {mail.report.culprit.sha for mail in mailed.select_related("report__culprit") if mail.report}
    assert about >= set(culprits[:3])
    assert len(about - set(culprits[:3])) <= 1  # 2.5 % of forty
    assert runner("claim", {})[0] == 204
    page = html.unescape(operator.get("/operating/").content.decode())
    assert f"{len(about)} mails to approve" in page
    assert "1 test asked for by somebody who is not verified" in page
    assert "results held" in page or "result held" in page


# --- What is proven or allowed is one text on one base ---


def forged(world: World, number: int, diff: str, to: str, **more: Any) -> str:
    """A part that nobody signed, in Dana's name; hers are signed."""
    name = part(world, DANA, number, diff, to, message_id=f"forged-{number}@x.example", **more)
    world.read()
    return name


def signed_by_dana(*names: str) -> None:
    Message.objects.filter(message_id__in=names).update(trust="pass")


def with_default_policy(world: World, report: Report) -> str:
    """Dana's signed series of two under the default policy; its cover letter."""
    world.settings = BotSettings(address=world.settings.address)
    cover = part(world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    parts = [part(world, DANA, 1, DIFF, cover), part(world, DANA, 2, SECOND, cover)]
    world.read()
    signed_by_dana(cover, *parts)
    return cover


def asks(world: World, report: Report, author: Address, to: str, *, proven: bool) -> str:
    """Let somebody ask for a test of what a mail has; return the mail that asks."""
    name = f"asking-{Message.objects.count()}@x.example"
    world.post(author, "Could you test this, please?", to=to, message_id=name)
    world.read()
    Message.objects.filter(message_id=name).update(trust="pass" if proven else "none")
    role = Role.AUTHOR if author is DANA else Role.THIRD_PARTY
    at = Message.objects.get(message_id=name).sent_at or world.now
    value = EventData(f"t:{name}", EventKind.TEST_ASKED, at, role=role, message_id=name, in_reply_to=to)
    event_log.record([event_log.event_row(report, value, world.now)])
    round_of(world)
    return name


def test_a_forged_part_is_neither_taken_nor_proven_by_who_joins(
    lab_jobs_world: World, report: Report, runner: Any
) -> None:
    cover = with_default_policy(lab_jobs_world, report)
    forged(lab_jobs_world, 2, ANOTHER, cover)
    asks(lab_jobs_world, report, EVE, cover, proven=False)
    asks(lab_jobs_world, report, DANA, "v1-part-2@dev.example", proven=True)
    status, claimed = runner("claim", {})
    assert (status, claimed["patch"]) == (200, DIFF + SECOND)


def test_a_base_that_a_stranger_names_is_not_proven_by_who_joins(
    lab_jobs_world: World, report: Report, runner: Any
) -> None:
    world = lab_jobs_world
    world.settings = BotSettings(address=world.settings.address)
    world.post(EVE, f"---\n{STALE}\nbase-commit: {'6' * 40}\n", to=message_id(report), message_id="eve@x.example")
    world.post(DANA, f"---\n{STALE}", to=message_id(report), message_id="dana@dev.example")
    world.read()
    signed_by_dana("dana@dev.example")
    asks(world, report, EVE, "eve@x.example", proven=False)
    asks(world, report, DANA, "dana@dev.example", proven=True)
    assert not LabJob.objects.filter(proven=True, base="6" * 40).exists()
    assert runner("claim", {})[0] == 204


def test_a_cover_letter_names_no_base(lab_jobs_world: World, report: Report) -> None:
    cover = part(lab_jobs_world, DANA, 0, "", message_id(report), text=f"Two.\n\nbase-commit: {'6' * 40}\n")
    part(lab_jobs_world, DANA, 1, DIFF, cover)
    part(lab_jobs_world, DANA, 2, SECOND, cover)
    lab_jobs_world.read()
    assert requested_patch(cover).base == ""


def test_nobody_allows_a_series_of_which_a_part_is_not_here(lab_jobs_world: World, report: Report, runner: Any) -> None:
    lab_jobs_world.settings = BotSettings(address=lab_jobs_world.settings.address)
    cover = part(lab_jobs_world, EVE, 0, "", message_id(report), message_id="cover@x.example")
    part(lab_jobs_world, EVE, 1, DIFF, cover)
    lab_jobs_world.read()
    asks(lab_jobs_world, report, EVE, cover, proven=False)
    job = LabJob.objects.get(request="test a patch")
    assert not lab_jobs.allow(job.pk, "olga")
    part(lab_jobs_world, EVE, 2, ANOTHER, cover)
    lab_jobs_world.read()
    round_of(lab_jobs_world)
    assert runner("claim", {})[0] == 204


def test_a_part_that_was_sent_twice_keeps_no_series_from_running(
    lab_jobs_world: World, report: Report, runner: Any
) -> None:
    cover = part(lab_jobs_world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    part(lab_jobs_world, DANA, 1, DIFF, cover)
    part(lab_jobs_world, DANA, 2, STALE, cover)
    again = part(lab_jobs_world, DANA, 2, SECOND, cover, message_id="again@dev.example")
    lab_jobs_world.post(DANA, "#lkp test", to=again)
    lab_jobs_world.read()
    round_of(lab_jobs_world)
    assert claimed_patch(runner) == DIFF + SECOND


def test_a_private_part_is_shown_to_nobody_else(lab_jobs_world: World, report: Report, client: Client) -> None:
    cover = series(lab_jobs_world, report)
    Message.objects.update(public=True)
    Message.objects.filter(message_id="part-2@dev.example").update(public=False)
    for name in (cover, "part-1@dev.example"):
        shown = client.get(f"/lab/patch/{Message.objects.get(message_id=name).pk}").content.decode()
        assert "OTHER_COST" not in shown


@pytest.mark.parametrize("first", [EVE, DANA])
def test_any_asker_may_prove_a_series_that_comes_later(
    lab_jobs_world: World, report: Report, runner: Any, first: Address
) -> None:
    world = lab_jobs_world
    world.settings = BotSettings(address=world.settings.address)
    cover = part(world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    one = part(world, DANA, 1, DIFF, cover)
    world.read()
    signed_by_dana(cover, one)
    for author in (first, DANA if first is EVE else EVE):
        asks(world, report, author, cover, proven=author is DANA)
    two = part(world, DANA, 2, SECOND, cover)
    world.read()
    signed_by_dana(two)
    round_of(world)
    assert runner("claim", {})[0] == 200


def test_a_series_is_looked_at_for_whoever_still_asks(lab_jobs_world: World, report: Report, runner: Any) -> None:
    cover = part(lab_jobs_world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    part(lab_jobs_world, DANA, 1, DIFF, cover)
    for _ in range(2):
        lab_jobs_world.post(DANA, "#lkp test", to=cover)
        lab_jobs_world.read()
        round_of(lab_jobs_world)
    job = LabJob.objects.get(request="test a patch")
    undone = EventData("u", EventKind.REVERSED, lab_jobs_world.later(), actor="toni", reverses=job.event_key)
    event_log.record([event_log.event_row(report, undone, lab_jobs_world.now)])
    part(lab_jobs_world, DANA, 2, SECOND, cover)
    lab_jobs_world.read()
    round_of(lab_jobs_world)
    assert claimed_patch(runner) == DIFF + SECOND


def test_a_cancelled_job_stays_so_whatever_a_claim_finds(lab_jobs_world: World, report: Report, runner: Any) -> None:
    ask(lab_jobs_world, report)
    opened(lab_jobs_world)
    claimed = runner("claim", {})[1]
    job = LabJob.objects.get(pk=claimed["id"])
    assert lab_jobs.cancel(job.pk, "olga", "no machine", timezone.now(), notify_thread=False)
    lab_jobs.distrust(job)
    job.refresh_from_db()
    assert (job.state, job.outcome) == ("done", "cancelled")


def test_what_was_undone_and_redone_can_be_tested_again(
    lab_jobs_world: World, report: Report, operator: Client
) -> None:
    ask(lab_jobs_world, report)
    job = opened(lab_jobs_world)
    operator.post(f"/lab/job/{job.pk}/act/", {"do": "cancel", "reason": "by mistake"})
    key = Event.objects.get(result=job.name).key
    for taken_back in (key, f"reversed:{key}"):
        operator.post(f"/report/{report.culprit.sha}/take-back/", {"key": taken_back})
    operator.post(f"/lab/job/{job.pk}/act/", {"do": "retry"})
    round_of(lab_jobs_world)
    job.refresh_from_db()
    assert job.state == "waiting"
