"""The lab's work list and jobs: a reply asks for a test, a runner claims and measures, the thread is answered."""

from __future__ import annotations

import html
import io
import json
import random
import subprocess
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from bot.lab import open_jobs, requested_patch
from bot.mail.message import parse
from bot.mail.settings import BotSettings
from bot.notifications.report import compose_due
from tests.support.lab import DIFF, EVE, FRIDAY, STALE, answers, ask, measured, opened, posting, round_of
from tests.support.world import DANA, LEE, World, message_id
from tracker.domain.events import Awaited, EventData, EventKind, Role, Verdict
from tracker.domain.lab_jobs import Request, requests_pending
from tracker.domain.report_state import fold
from tracker.models import Event, Finding, LabJob, Message, OutgoingMail, Report
from tracker.pages.lab import work_list
from tracker.services import accounts, event_log
from tracker.services.accounts import Scope
from tracker.templatetags.words import b4_mbox

# --- The lab's work list: what people asked in threads, by whom, until when, with the patch to apply ---


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


# --- A reply asks for a test, a runner claims and measures, the thread is answered, the state follows ---

MEASURED = {"schema": "perf-job-result/1", "lease": "x", "outcome": "measured"}


def test_the_whole_circle(lab_world: World, report: Report, runner: Any, client: Client) -> None:
    asking = ask(lab_world, report)
    job = opened(lab_world)
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
    [mail] = answers(lab_world)
    assert (mail.state, mail.reason) == ("approved", "")
    read = parse(bytes(mail.raw))
    assert read.in_reply_to == (asking.message_id,)
    assert [each.email for each in read.to] == [DANA.email]
    text = " ".join(read.text.split())
    assert "We tested this patch. It recovers 100% of the regression (95% CI 96 to 104%):" in text
    assert "parent 1000 3 runs culprit 700.00 -30.0% 3 runs" in text
    assert "without the patch 700.00 -30.0% 3 runs with the patch 1000 +0.0% 3 runs" in text
    assert f"Tested-by: {lab_world.settings.name} <{lab_world.settings.tagged(report.tag)}>" in text
    assert max(len(line) for line in read.text.splitlines() if not line.startswith("culprit:")) <= 78
    assert answers(lab_world) == [mail]  # once
    assert runner(f"{job.pk}/result", measured(claimed, head.new_mean, head.old_mean))[1]["status"] == "duplicate"
    assert "Nothing waits for the lab." in client.get("/lab/").content.decode()
    page = client.get(f"/lab/job/{job.pk}/").content.decode()
    for words in ("measured", "Dana Brook", "box-1", "+42.9%", f'href="/lab/patch/{asking.pk}"'):
        assert words in page
    timeline = client.get(f"/report/{report.culprit.sha}/").content.decode()
    assert f'<a href="/lab/job/{job.pk}/">job/{job.pk}</a>' in timeline
    assert "(+42.9%), 3 + 3 runs" in timeline


@pytest.mark.parametrize("public", [True, False])
def test_who_asks_in_private_is_answered_alone(
    lab_world: World, report: Report, runner: Any, client: Client, public: bool
) -> None:
    """The lists would learn of a patch that nobody has posted."""
    sent = OutgoingMail.objects.get(report=report, purpose="report")
    sent.raw = bytes(sent.raw).replace(b"\nSubject:", b"\nCc: mm@lists.example.org\nSubject:", 1)
    sent.lists = ["mm@lists.example.org"]
    sent.save()
    asking = ask(lab_world, report)
    Message.objects.filter(pk=asking.pk).update(public=public)
    job = opened(lab_world)
    claimed = runner("claim", {})[1]
    head = Finding.objects.get(report=report, headline=True)
    assert runner(f"{job.pk}/result", measured(claimed, head.new_mean, head.old_mean))[0] == 200
    [mail] = answers(lab_world)
    assert (mail.state, "mm@lists.example.org" in mail.recipients) == ("approved", public)
    assert public or mail.recipients == [DANA.email]
    OutgoingMail.objects.filter(pk=mail.pk).update(state="sent", sent_at=lab_world.now)
    assert ("We tested this patch." in client.get(f"/outbox/{mail.pk}/").content.decode()) is public


def test_a_patch_that_does_not_apply_is_answered_in_one_line(lab_world: World, report: Report, runner: Any) -> None:
    ask(lab_world, report, f"Can you test this patch?\n\n{STALE}")
    job = opened(lab_world)
    assert (job.state, job.outcome) == ("done", "does-not-apply")
    assert runner("claim", {}) == (204, None)
    [mail] = answers(lab_world)
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
    lab_world: World, report: Report, runner: Any, outcome: str, words: str
) -> None:
    ask(lab_world, report)
    job = opened(lab_world)
    claimed = runner("claim", {})[1]
    result = {"schema": "perf-job-result/1", "lease": claimed["lease"], "outcome": outcome}
    status, _ = runner(f"{job.pk}/result", {**result, "base": {"describe": "v9.1-rc2"}, "detail": "make: *** [all]"})
    assert status == 200
    [mail] = answers(lab_world)
    assert words in " ".join(mail.body.split())
    assert "> make: *** [all]" in mail.body
    report.refresh_from_db()
    assert report.awaited == "author"


@pytest.mark.parametrize(
    ("new", "words"), [(70.0, "makes no measurable difference"), (40.0, "makes things worse"), (85.0, "recovers 50%")]
)
def test_what_does_not_cure_gets_no_tag(lab_world: World, report: Report, runner: Any, new: float, words: str) -> None:
    Finding.objects.filter(report=report, headline=True).update(old_mean=100.0, new_mean=70.0)
    ask(lab_world, report)
    job = opened(lab_world)
    claimed = runner("claim", {})[1]
    assert runner(f"{job.pk}/result", measured(claimed, 70.0, new))[0] == 200
    [mail] = answers(lab_world)
    assert words in mail.body
    assert "Tested-by" not in mail.body
    report.refresh_from_db()
    assert report.awaited == "author"


def test_what_few_runs_do_not_decide_is_said_so(lab_world: World, report: Report, runner: Any) -> None:
    Finding.objects.filter(report=report, headline=True).update(old_mean=1000.0, new_mean=700.0)
    ask(lab_world, report)
    opened(lab_world)
    claimed = runner("claim", {})[1]
    result = measured(claimed, 700, 700)
    result["measurements"][0] |= {"without": [690, 710], "with": [860, 1130]}
    assert runner(f"{claimed['id']}/result", result)[0] == 200
    [mail] = answers(lab_world)
    text = " ".join(mail.body.split())
    assert "may recover much of the regression, or nothing (95% CI" in text
    assert "more runs are needed:" in text
    assert max(map(len, mail.body.splitlines())) <= 90


def test_a_lease_runs_out_and_another_runner_takes_over(lab_world: World, report: Report, runner: Any) -> None:
    ask(lab_world, report)
    job = opened(lab_world)
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


def test_a_late_result_counts_if_nobody_else_took_the_job(lab_world: World, report: Report, runner: Any) -> None:
    ask(lab_world, report)
    job = opened(lab_world)
    _, claimed = runner("claim", {})
    LabJob.objects.update(lease_until=timezone.now() - timedelta(days=1))
    assert runner(f"{job.pk}/result", measured(claimed, 70, 100))[0] == 200


def test_what_nobody_waits_for_is_withdrawn(lab_world: World, report: Report, runner: Any, client: Client) -> None:
    ask(lab_world, report)
    job = opened(lab_world)
    _, claimed = runner("claim", {})
    event = EventData("a", EventKind.EXPECTED, lab_world.later(), role=Role.AUTHOR, actor="toni")
    event_log.record([event_log.event_row(report, event, lab_world.now)])
    assert open_jobs(lab_world.settings, [], lab_world.now) == 0
    job.refresh_from_db()
    assert job.state == "withdrawn"
    status, answer = runner(f"{job.pk}/result", measured(claimed, 70, 100))
    assert (status, "nobody waits for it any more" in answer["error"]) == (409, True)
    assert not Event.objects.filter(result=job.name).exists()
    listed = client.get("/lab/").content.decode()
    assert f'<a href="/lab/job/{job.pk}/">' in listed.partition("Recently ended")[2]
    shown = client.get(f"/lab/job/{job.pk}/").content.decode()
    assert ("<dt>Withdrawn</dt>" in shown, ", due " in shown) == (True, False)


def test_who_is_not_proven_is_left_to_bold_runners_and_gets_no_mail(
    lab_world: World, report: Report, runner: Any
) -> None:
    lab_world.settings = BotSettings(address=lab_world.settings.address)  # the default policy
    lab_world.post(LEE, f"Can you test this patch?\n\n{DIFF}", to=message_id(report))
    lab_world.read()
    open_jobs(lab_world.settings, [lab_world.directory / "linux.git"], lab_world.now)
    assert not LabJob.objects.get().proven
    assert runner("claim", {}) == (204, None)
    status, claimed = runner("claim", {"unproven": True})
    assert (status, claimed["proven"]) == (200, False)
    assert runner(f"{claimed['id']}/result", measured(claimed, 70, 100))[0] == 200
    [mail] = answers(lab_world)
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
    lab_world: World, report: Report, runner: Any, path: str, body: Any, words: str
) -> None:
    ask(lab_world, report)
    job = opened(lab_world)
    status, answer = runner(path.format(pk=job.pk), body)
    assert status == 400
    assert words in json.dumps(answer)
    job.refresh_from_db()
    assert job.state == "waiting"


def test_a_result_that_contradicts_itself_is_refused(lab_world: World, report: Report, runner: Any) -> None:
    ask(lab_world, report)
    job = opened(lab_world)
    claimed = runner("claim", {})[1]
    result = measured(claimed, 700.0, 1000.0)
    again = {**result["measurements"][0], "with": [11.0, 11.1, 10.9]}
    status, answer = runner(f"{job.pk}/result", {**result, "measurements": [*result["measurements"], again]})
    assert (status, "is given twice, with other numbers" in json.dumps(answer)) == (400, True)
    assert runner(f"{job.pk}/result", {**result, "measurements": result["measurements"] * 2})[0] == 200


def test_only_a_key_for_jobs_opens_the_door(lab_world: World, report: Report, runner: Any, client: Client) -> None:
    ask(lab_world, report)
    job = opened(lab_world)
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


# --- Which patch is meant ---


def test_a_link_a_parent_a_candidate_a_branch(lab_world: World, report: Report) -> None:
    name = posting(lab_world, to=message_id(report))
    linked = ask(lab_world, report, f"Could you please test https://lore.kernel.org/r/{name}/ ?")
    found = requested_patch(linked.message_id)
    assert (found.text, found.message_id, found.title) == (DIFF, name, "mm/vmscan: scan less")
    elsewhere = ask(lab_world, report, "Could you please test https://lore.kernel.org/r/far-away@else.example ?")
    found = requested_patch(elsewhere.message_id)
    assert (found.text, found.message_id) == ("", "far-away@else.example")
    lab_world.post(DANA, "Can you test this? Background: https://lore.kernel.org/r/far-away@else.example", to=name)
    lab_world.read()
    answering = Message.objects.filter(author_email=DANA.email).order_by("-pk")[0]
    assert requested_patch(answering.message_id).text == DIFF  # what is stored, before what is only linked
    branch = ask(lab_world, report, "Can you test git://git.example.org/mm.git scan-less please?")
    assert requested_patch(branch.message_id).branch == "git://git.example.org/mm.git scan-less"
    lab_world.post(DANA, "Can you test this one?", to=name)
    lab_world.read()
    below = Message.objects.order_by("-pk")[0]
    assert requested_patch(below.message_id).text == DIFF
    plain = ask(lab_world, report, "Can you test the fix?")
    assert requested_patch(plain.message_id, candidate=name).text == DIFF
    assert requested_patch(plain.message_id).text == ""
    assert requested_patch("never-seen@x").text == ""


def test_the_base_that_a_patch_names_and_a_series(lab_world: World, report: Report) -> None:
    base = "1" * 40
    name = posting(lab_world, f"Scan less.\n---\n{DIFF}\nbase-commit: {base}\n", to=message_id(report))
    series = posting(lab_world, to=message_id(report), subject="[PATCH v2 2/3] mm: x", message_id="second@dev.example")
    short = posting(lab_world, to=message_id(report), subject="[PATCH2/3] mm: y", message_id="short@dev.example")
    lab_world.read()
    assert requested_patch(name).base == base
    assert not requested_patch(name).in_series
    assert requested_patch(series).in_series
    assert requested_patch(short).in_series


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


def test_a_day_of_a_lab(lab_world: World, report: Report, runner: Any, operator: Client) -> None:
    """Forty results of noise, three of true regressions, a broken root, and a stranger's request: from upload to what
    an operator finds in the morning.
    """
    world = lab_world
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
