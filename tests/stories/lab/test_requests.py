"""Requests of the lab: each its own job, several askers of one, what people here do to a job, and undo."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from bot.demo import DemoTree
from bot.lab import open_jobs, requested_patch
from bot.mail.addresses import Address
from bot.mail.message import parse
from bot.mail.settings import BotSettings
from bot.results import recognise
from tests.support.lab import (
    ANOTHER,
    DIFF,
    FRIDAY,
    OLD,
    STALE,
    answers,
    ask,
    claimed_patch,
    measured,
    opened,
    posting,
    round_of,
    series,
)
from tests.support.world import DANA, LEE, World, message_id
from tracker.domain.events import Awaited, EventData, EventKind, Role, Verdict
from tracker.domain.lab_jobs import Request, requests_pending
from tracker.domain.report_state import fold
from tracker.models import Event, LabJob, Message, OutgoingMail, Report
from tracker.pages.lab import work_list
from tracker.services import event_log, lab_jobs
from tracker.services.faults import faults

# --- Every request its own job ---


def test_three_alternatives_read_at_once_are_three_jobs(lab_world: World, report: Report, runner: Any) -> None:
    for number, cost in enumerate((55, 54, 53), start=1):
        patch = DIFF.replace("SCAN_COST 40", f"SCAN_COST {cost}")
        text, name = f"Attempt {number}.\n\n#lkp test\n\n---\n{patch}", f"try-{number}@dev.example"
        lab_world.post(DANA, text, to=message_id(report), subject=f"[PATCH] try {number}", message_id=name)
    lab_world.read()
    assert open_jobs(lab_world.settings, [lab_world.directory / "linux.git"], lab_world.now) == 3
    names = [f"try-{number}@dev.example" for number in (1, 2, 3)]
    assert sorted(LabJob.objects.values_list("patch_mail", flat=True)) == names
    # The end of one takes no other down, whatever it says.
    for left in (2, 1, 0):
        status, claimed = runner("claim", {"runner": "box-1"})
        assert status == 200
        runner(f"{claimed['id']}/result", measured(claimed, 700, 700 if left else 1000))
        open_jobs(lab_world.settings, [lab_world.directory / "linux.git"], lab_world.later())
        assert LabJob.objects.filter(state="waiting").count() == left
    report.refresh_from_db()
    assert report.state == "fix_confirmed"


def test_one_that_does_not_apply_is_answered_and_the_other_is_tested(lab_world: World, report: Report) -> None:
    for name, diff in (("bad@dev.example", STALE), ("good@dev.example", DIFF)):
        lab_world.post(DANA, f"#lkp test\n\n{diff}", to=message_id(report), message_id=name)
    lab_world.read()
    for _ in range(2):
        open_jobs(lab_world.settings, [lab_world.directory / "linux.git"], lab_world.later())
    states = dict(LabJob.objects.values_list("patch_mail", "state"))
    assert states == {"bad@dev.example": "done", "good@dev.example": "waiting"}
    [mail] = answers(lab_world)
    assert "does not apply" in " ".join(parse(bytes(mail.raw)).text.split())


def test_a_patch_that_does_not_apply_and_is_asked_for_twice_in_a_mail_is_answered_once(
    lab_world: World, report: Report
) -> None:
    lab_world.post(DANA, f"Can you test this patch?\n\n#lkp test\n\n{STALE}", to=message_id(report))
    lab_world.read()
    open_jobs(lab_world.settings, [lab_world.directory / "linux.git"], lab_world.now)
    assert LabJob.objects.get().state == "done"
    assert report.events.filter(kind="fix_failed").count() == 1
    assert len(answers(lab_world)) == 1


@pytest.mark.parametrize(("also", "answered"), [("", True), ("#lkp reopen\n", False)])
def test_who_asks_for_a_test_of_a_closed_report_is_told_how_to_get_it(
    lab_world: World, report: Report, also: str, answered: bool
) -> None:
    lab_world.post(DANA, "#lkp invalid: a broken disk", to=message_id(report))
    lab_world.read()
    report.refresh_from_db()
    assert report.state == "invalid"
    lab_world.post(DANA, f"{also}#lkp test\n\n{DIFF}", to=message_id(report))
    lab_world.read()
    told = [
        " ".join(parse(bytes(mail.raw)).text.split())
        for mail in OutgoingMail.objects.filter(purpose__startswith="answer ")
    ]
    assert len(told) == answered
    assert all('the report is closed, so nothing is tested for it; "#lkp reopen" opens it' in body for body in told)


def test_two_who_ask_for_the_same_patch_get_one_job(lab_world: World, report: Report) -> None:
    name = posting(lab_world, to=message_id(report))
    for author in (DANA, LEE):
        lab_world.post(author, "#lkp test", to=name)
    lab_world.read()
    open_jobs(lab_world.settings, [lab_world.directory / "linux.git"], lab_world.now)
    assert LabJob.objects.get(state="waiting").patch_mail == name


def test_a_cover_letter_asks_for_the_whole_series_in_order(lab_world: World, report: Report, client: Client) -> None:
    cover = series(lab_world, report)
    open_jobs(lab_world.settings, [lab_world.directory / "linux.git"], lab_world.now)
    job = LabJob.objects.get()
    assert (job.patch_mail, job.in_series, job.title) == (cover, True, "mm: less")
    Message.objects.update(public=True)
    for name in (cover, "part-2@dev.example"):
        pk = Message.objects.get(message_id=name).pk
        assert client.get(f"/lab/patch/{pk}").content.decode() == DIFF + ANOTHER


def test_of_a_series_with_a_part_missing_only_the_part_is_shown(
    lab_world: World, report: Report, client: Client
) -> None:
    series(lab_world, report, total=3)
    Message.objects.update(public=True)
    pk = Message.objects.get(message_id="part-2@dev.example").pk
    assert client.get(f"/lab/patch/{pk}").content.decode() == ANOTHER


@pytest.mark.parametrize(("diff", "applies"), [(DIFF, True), (STALE, None)])
def test_an_unknown_base_is_said_and_never_refused(
    lab_world: World, report: Report, diff: str, applies: bool | None
) -> None:
    base = "deadbeef" * 5
    ask(lab_world, report, f"Can you test this patch?\n\n{diff}\nbase-commit: {base}\n")
    job = opened(lab_world)
    assert (job.state, job.applies) == ("waiting", applies)
    assert job.base == (report.culprit.sha if applies else base)
    assert job.detail == ("" if applies else "its base deadbeefdead is in none of the followed trees")


def test_a_runner_may_hand_back_the_empty_base_of_its_job(lab_world: World, report: Report, runner: Any) -> None:
    ask(lab_world, report, "#lkp test\n\nIt is at git://git.example.org/mm.git scan-less")
    opened(lab_world)
    _, claimed = runner("claim", {"runner": "box-1"})
    assert claimed["base"] == ""
    status, _ = runner(f"{claimed['id']}/result", measured(claimed, 700, 1000) | {"base": {"sha": claimed["base"]}})
    assert status == 200


def test_under_an_open_policy_a_strangers_patch_still_waits_for_a_click(lab_world: World, report: Report) -> None:
    event = EventData("t", EventKind.TEST_ASKED, lab_world.now, role=Role.THIRD_PARTY, message_id="p@evil.example")
    lab_world.post(
        Address("Mal", "mal@evil.example"), f"Test this.\n\n{DIFF}", to=message_id(report), message_id="p@evil.example"
    )
    lab_world.read()
    event_log.record([event_log.event_row(report, event, lab_world.now)])
    open_jobs(lab_world.settings, [lab_world.directory / "linux.git"], lab_world.now)
    assert not LabJob.objects.filter(proven=True, patch_mail="p@evil.example").exists()


def test_of_two_proposals_for_one_file_the_first_is_meant(lab_world: World, report: Report, client: Client) -> None:
    asking = ask(lab_world, report, f"Can you test this patch?\n\n{DIFF}\nor else\n\n{STALE}")
    assert requested_patch(asking.message_id).text == DIFF
    assert client.get(f"/lab/patch/{asking.pk}").content.decode() == DIFF  # the page shows what a runner gets


def test_a_broken_tree_or_none_leaves_the_patch_unchecked(lab_world: World, report: Report) -> None:
    ask(lab_world, report)
    (lab_world.directory / "broken.git").mkdir()
    open_jobs(lab_world.settings, [lab_world.directory / "broken.git"], lab_world.now)
    job = LabJob.objects.get()
    assert (job.state, job.applies) == ("waiting", None)
    assert open_jobs(lab_world.settings, [], lab_world.now) == 0


def test_checking_writes_no_file_of_the_tree(lab_world: World, report: Report) -> None:
    tree = lab_world.directory / "linux.git"
    before = sorted((path, path.stat().st_mtime_ns) for path in tree.rglob("*") if path.is_file())
    ask(lab_world, report, f"Can you test this patch?\n\n{DIFF.replace('mm/vmscan.c', '../../etc/passwd')}")
    opened(lab_world)
    after = sorted((path, path.stat().st_mtime_ns) for path in tree.rglob("*") if path.is_file())
    assert after == before


def test_two_runners_at_once_get_a_job_each(lab_world: World, report: Report) -> None:
    second = lab_world.report("mm: second", "b" * 40, id="second")
    for each in (report, second):
        ask(lab_world, each)
    open_jobs(lab_world.settings, [], lab_world.now)
    rows = lab_jobs.claimable(lab_world.now)
    first = lab_jobs.claim(rows, "a", lab_world.now, timedelta(minutes=5))
    other = lab_jobs.claim(rows, "b", lab_world.now, timedelta(minutes=5))
    assert first
    assert other
    assert first.pk != other.pk
    assert lab_jobs.claim(rows, "c", lab_world.now, timedelta(minutes=5)) is None


def test_the_example_runner_says_what_is_wrong(lab_world: World) -> None:
    script = Path(recognise.__file__).parents[2] / "fixtures" / "runner.py"
    run = ["python3", str(script), "--url", "http://127.0.0.1:9", "--tree", "none"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "runner: no job could be claimed: 0" in done.stderr


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


@pytest.mark.parametrize("outcome", ["measured", "does-not-build"])
def test_all_who_ask_for_the_same_are_answered_by_one_test(
    lab_world: World, report: Report, runner: Any, client: Client, outcome: str
) -> None:
    job = two_askers(lab_world, report, DANA, LEE, DANA)
    assert len(job.joined) == 2
    assert "2 more requests for the same" in client.get(f"/lab/job/{job.pk}/").content.decode()
    claimed = runner("claim", {})[1]
    result = measured(claimed, 700, 1000)
    if outcome != "measured":
        result = {name: result[name] for name in ("schema", "lease")} | {"outcome": outcome, "detail": "error: x"}
    assert runner(f"{job.pk}/result", result)[0] == 200
    assert work_list(lab_world.later())[0] == []
    assert round_of(lab_world) == 0
    asking = set(Message.objects.filter(own_text__contains="#lkp test").values_list("message_id", flat=True))
    answered = set(Event.objects.filter(result=job.name).values_list("in_reply_to", flat=True))
    assert len(asking & answered) == 2
    assert job.patch_mail in answered


def test_a_request_that_is_proven_makes_the_job_of_a_stranger_proven(lab_world: World, report: Report) -> None:
    job = two_askers(lab_world, report, LEE)
    LabJob.objects.update(proven=False)
    assert not lab_jobs.join(job, "of another stranger", proven=False).proven
    assert lab_jobs.join(job, "of the author", proven=True).proven
    assert lab_jobs.join(job, "of a third stranger", proven=False).proven


def test_talk_withdraws_no_request(lab_world: World, report: Report) -> None:
    job = two_askers(lab_world, report, LEE)
    lab_world.post(DANA, "Thanks, I had not seen that one.", to=job.patch_mail)
    lab_world.read()
    round_of(lab_world)
    job.refresh_from_db()
    report.refresh_from_db()
    assert (job.state, report.awaited) == ("waiting", "reporter")


def test_a_fix_recorded_on_a_page_is_measured_whatever_else_is_to_be_tested() -> None:
    mails = {EventKind.FIX_PROPOSED: "", EventKind.TEST_ASKED: "test@dev.example"}
    events = [
        EventData(f"e{n}", kind, FRIDAY + timedelta(hours=n), Role.AUTHOR, message_id=mail)
        for n, (kind, mail) in enumerate(mails.items())
    ]
    pending = requests_pending(Verdict.REGRESSION, events)
    assert {each.request for each in pending} == {Request.MEASURE, Request.TEST}, "neither has a mail that it answers"


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


def test_a_job_stays_while_one_of_its_askers_waits(lab_world: World, report: Report) -> None:
    job = two_askers(lab_world, report, DANA, LEE)
    for number, key in enumerate((job.event_key, *job.joined)):
        undone = EventData(f"u{number}", EventKind.REVERSED, lab_world.later(), actor="toni", reverses=key)
        event_log.record([event_log.event_row(report, undone, lab_world.now)])
        job.refresh_from_db()
        round_of(lab_world)
        states = list(LabJob.objects.exclude(state="withdrawn").values_list("state", flat=True))
        assert states == (["waiting"] if number == 0 else [])


def test_an_operator_cancels_a_job_and_the_thread_is_told(
    lab_world: World, report: Report, runner: Any, operator: Client
) -> None:
    job = two_askers(lab_world, report, DANA, LEE)
    claimed = runner("claim", {})[1]
    act = f"/lab/job/{job.pk}/act/"
    refused = operator.post(act, {"do": "cancel"})
    assert (refused.status_code, b"say why" in refused.content) == (400, True)
    operator.post(act, {"do": "cancel", "reason": "its machine is gone", "notify_thread": "1"})
    job.refresh_from_db()
    assert (job.state, job.outcome, job.detail) == ("done", "cancelled", "its machine is gone")
    status, answer = runner(f"{job.pk}/extend", {"lease": claimed["lease"]})
    assert (status, "nobody waits" in answer["error"]) == (409, True)
    assert round_of(lab_world) == 0
    [mail] = answers(lab_world)
    text = " ".join(parse(bytes(mail.raw)).text.split())
    assert "its machine is gone" in text
    page = operator.get("/lab/").content.decode()
    assert "Recently ended" in page
    assert "its machine is gone" in page
    assert "cancelled" in operator.get(f"/report/{report.culprit.sha}/").content.decode()


@pytest.mark.parametrize("how", ["again", "undo"])
def test_a_cancelled_job_can_be_tested_after_all(
    lab_world: World, report: Report, runner: Any, operator: Client, how: str
) -> None:
    job = two_askers(lab_world, report, DANA, LEE)
    for _ in range(2):
        operator.post(f"/lab/job/{job.pk}/act/", {"do": "cancel", "reason": "by mistake"})
        events = Event.objects.filter(result=job.name, reverses="")
        if how == "again":
            operator.post(f"/lab/job/{job.pk}/act/", {"do": "retry"})
            round_of(lab_world)
        else:
            for event in events:
                operator.post(f"/report/{report.culprit.sha}/take-back/", {"key": event.key})
            round_of(lab_world)
        job.refresh_from_db()
        assert (job.state, job.outcome) == ("waiting", "")
    claimed = runner("claim", {})[1]
    assert runner(f"{job.pk}/result", measured(claimed, 700, 1000))[0] == 200
    assert work_list(lab_world.later())[0] == []
    report.refresh_from_db()
    assert report.state == "fix_confirmed"
    stale = operator.post(f"/lab/job/{job.pk}/act/", {"do": "retry"}, follow=True)
    assert "Nothing was changed" in stale.content.decode()


def test_an_operator_lets_any_runner_take_what_they_have_looked_at(
    lab_world: World, report: Report, runner: Any, operator: Client, client: Client
) -> None:
    lab_world.settings = BotSettings(address=lab_world.settings.address)  # the default policy
    lab_world.post(LEE, f"Can you test this patch?\n\n{DIFF}", to=message_id(report))
    lab_world.read()
    round_of(lab_world)
    job = LabJob.objects.get()
    assert "Let any runner take it" in operator.get(f"/lab/job/{job.pk}/").content.decode()
    assert "Let any runner" not in client.get(f"/lab/job/{job.pk}/").content.decode()
    assert client.post(f"/lab/job/{job.pk}/act/", {"do": "allow"}).status_code == 302  # to the page to sign in
    assert runner("claim", {})[0] == 204
    operator.post(f"/lab/job/{job.pk}/act/", {"do": "allow"})
    assert "Allowed by" in client.get(f"/lab/job/{job.pk}/").content.decode()
    assert runner("claim", {})[0] == 200


def test_a_patch_that_is_not_here_can_be_looked_at_by_nobody(lab_world: World, report: Report) -> None:
    job = LabJob.objects.create(
        report=report,
        event_key="e",
        request="test a patch",
        opened_at=lab_world.now,
        due_at=lab_world.now,
        patch_mail="elsewhere@x.example",
    )
    assert not lab_jobs.allow(job.pk, "olga")


def test_a_job_that_no_runner_takes_is_said(lab_world: World, report: Report, runner: Any) -> None:
    ask(lab_world, report)
    opened(lab_world)
    now = lab_world.now
    assert not [fault for fault in faults(now + timedelta(hours=23)) if fault.name == "lab"]
    [fault] = [fault for fault in faults(now + timedelta(hours=25)) if fault.name == "lab"]
    assert (fault.since, "1 job waited for more than a day" in fault.error) == (now + timedelta(days=1), True)
    claimed = runner("claim", {"seconds": 7 * 86400})[1]
    assert not [fault for fault in faults(timezone.now() + timedelta(hours=25)) if fault.name == "lab"]
    runner(f"{claimed['id']}/release", {"lease": claimed["lease"]})
    LabJob.objects.update(proven=False)  # it waits for a click, then
    assert [fault for fault in faults(now + timedelta(hours=25)) if fault.name == "lab"]


def test_the_command_cancels_with_a_reason(lab_world: World, report: Report, capsys: Any) -> None:
    ask(lab_world, report)
    job = opened(lab_world)
    with pytest.raises(CommandError, match="needs --reason"):
        call_command("lab", cancel=job.pk)
    call_command("lab", cancel=job.pk, reason="no machine")
    with pytest.raises(CommandError, match=f"no unfinished job {job.pk}"):
        call_command("lab", cancel=job.pk, reason="no machine")
    job.refresh_from_db()
    assert job.outcome == "cancelled"
    assert "(command line)" in Event.objects.get(result=job.name).actor


# --- Several requests ---


@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_of_alternatives_the_one_that_helps_counts_in_any_order(
    lab_world: World, report: Report, runner: Any, order: tuple[bool, bool]
) -> None:
    for number, cost in enumerate((55, 54), start=1):
        patch = DIFF.replace("SCAN_COST 40", f"SCAN_COST {cost}")
        named = {"subject": f"[PATCH] mm: try {number}", "message_id": f"try-{number}@dev.example"}
        lab_world.post(DANA, f"#lkp test\n\n---\n{patch}", to=message_id(report), **named)
    lab_world.read()
    round_of(lab_world)
    helping = ""
    for helps in order:
        claimed = runner("claim", {})[1]
        helping = claimed["title"] if helps else helping
        assert runner(f"{claimed['id']}/result", measured(claimed, 700, 1000 if helps else 700))[0] == 200
    report.refresh_from_db()
    assert (report.state, report.fix_title) == ("fix_confirmed", helping)


def test_two_links_in_one_mail_are_two_jobs(lab_world: World, report: Report) -> None:
    for number in (1, 2):
        patch = DIFF.replace("SCAN_COST 40", f"SCAN_COST {number}")
        named = {"subject": f"[PATCH] mm: try {number}", "message_id": f"try-{number}@dev.example"}
        lab_world.post(DANA, f"---\n{patch}", to=message_id(report), **named)
    lines = [f"#lkp test https://lore.kernel.org/r/try-{number}@dev.example" for number in (1, 2)]
    lab_world.post(DANA, "\n".join(lines), to=message_id(report))
    lab_world.read()
    round_of(lab_world)
    tested = LabJob.objects.filter(request="test a patch").values_list("patch_mail", flat=True)
    assert sorted(tested) == ["try-1@dev.example", "try-2@dev.example"]


def test_the_same_diff_in_two_mails_is_one_job(lab_world: World, report: Report) -> None:
    for name in ("a@dev.example", "b@dev.example"):
        lab_world.post(DANA, f"#lkp test\n\n---\n{DIFF}", to=message_id(report), message_id=name)
    lab_world.read()
    round_of(lab_world)
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
    lab_world: World, report: Report, runner: Any, words: str
) -> None:
    named = {"subject": "[PATCH] mm/vmscan: scan less", "message_id": "posting@dev.example"}
    lab_world.post(DANA, f"Scan less.\n\n---\n{DIFF}", to=message_id(report), **named)
    lab_world.post(DANA, words, to=message_id(report))
    lab_world.read()
    round_of(lab_world)
    jobs = LabJob.objects.all()
    [job] = [job for job in jobs if any(key.startswith("test_asked:") for key in (job.event_key, *job.joined))]
    branch = "" if "lore" in words else "git://git.example.org/mm.git scan-less"
    assert (job.branch, bool(job.patch_mail)) == (branch, not branch)
    assert runner("claim", {})[0] == 200


def test_undo_of_one_of_two_answers_opens_their_job_again(lab_world: World, report: Report, runner: Any) -> None:
    job = two_askers(lab_world, report, DANA, LEE)
    claimed = runner("claim", {})[1]
    assert runner(f"{job.pk}/result", measured(claimed, 700, 1000))[0] == 200
    for number, event in enumerate(Event.objects.filter(result=job.name).order_by("pk")):
        undone = EventData(f"u{number}", EventKind.REVERSED, timezone.now(), actor="toni", reverses=event.key)
        event_log.record([event_log.event_row(report, undone, timezone.now())])
        assert open_jobs(lab_world.settings, [], timezone.now()) == 0
    job.refresh_from_db()
    assert (job.state, LabJob.objects.count()) == ("waiting", 1)


def test_everybody_who_asked_and_is_known_gets_the_answer(lab_world: World, report: Report, runner: Any) -> None:
    job = two_askers(lab_world, report, DANA, LEE)
    Message.objects.filter(author_email=LEE.email).update(trust="pass")
    claimed = runner("claim", {})[1]
    assert runner(f"{job.pk}/result", measured(claimed, 700, 1000))[0] == 200
    [mail] = answers(lab_world)
    assert {DANA.email, LEE.email} <= set(mail.recipients)


def test_a_patch_that_did_not_apply_is_checked_again(
    lab_world: World, report: Report, runner: Any, operator: Client
) -> None:
    ask(lab_world, report, f"Can you test this patch?\n\n{STALE}")
    job = opened(lab_world)
    assert job.outcome == "does-not-apply"
    tree = DemoTree(lab_world.directory / "linux.git")
    tree.commit("mm: prepare", DANA, lab_world.now, files={"mm/vmscan.c": OLD.replace("56", "57")})
    operator.post(f"/lab/job/{job.pk}/act/", {"do": "retry"})
    round_of(lab_world)
    job.refresh_from_db()
    assert (job.state, job.applies) == ("waiting", True)
    assert claimed_patch(runner) == STALE


def test_a_patch_that_changed_since_it_was_looked_at_is_not_run(lab_world: World, report: Report, runner: Any) -> None:
    ask(lab_world, report)
    job = opened(lab_world)
    LabJob.objects.update(patch_digest="0" * 64)
    assert runner("claim", {})[0] == 204
    job.refresh_from_db()
    assert (job.proven, job.state) == (False, "waiting")
    assert "no longer the one" in job.detail
