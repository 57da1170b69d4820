"""Fixes measured by the lab, and withdrawn reports: who is informed, and in which thread."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from tests.stories.test_thread_mail import FIX, further, mails, measured, read
from tests.support.rows import line
from tests.support.world import DANA, DIFF, LEE, Linux, World, message_id, state, status_text
from tests.support.world import TITLE as CULPRIT_TITLE
from tracker.domain.deadlines import closing_of
from tracker.domain.events import OPEN, EventData, EventKind, Role, Verdict
from tracker.domain.report_state import fold
from tracker.models import (
    Commit,
    Decision,
    Event,
    Landing,
    OutgoingMail,
    OutgoingState,
    Release,
    Report,
    Suggestion,
    Tree,
)
from tracker.services import event_log, report_actions
from tracker.services.event_log import suggest_closings

# --- From a report to the release that fixes it, with the real commands, and the status text after each step ---

TITLE = "mm/vmscan: walk cold folios first"


class Lab:
    """An upstream with its mirrors, a list's archive, and the commands of an operator."""

    def __init__(self, world: World, settings: Any) -> None:
        self.world = world
        self.git = Linux(world.directory / "upstream.git")
        self.git.commit("Linux 9.0")
        self.git.tag("v9.0")
        for branch in ("mm", "next"):
            self.git.point(branch, self.git.head("master"))
        mirrors = {name: self.git.mirror(world.directory / f"{name}.git") for name in ("linus", "mm", "next")}
        settings.PERFWORK_TREES = {name: f"{path}{_branch(name)}" for name, path in mirrors.items()}
        settings.PERFWORK_BOT_ADDRESS = world.settings.address
        settings.PERFWORK_LIST_ADDRESS = world.settings.list_address
        settings.PERFWORK_BASE_URL = world.settings.base_url
        settings.PERFWORK_TRUST = "open"

    def read(self) -> None:
        call_command("read", str(self.world.inbox.path))

    def track(self) -> None:
        call_command("track")


def _branch(name: str) -> str:
    return "" if name == "linus" else f"#{name}"


@pytest.fixture
def lab(world: World, settings: Any) -> Lab:
    return Lab(world, settings)


@pytest.mark.slow
def test_from_a_report_to_the_release_that_fixes_it(
    lab: Lab, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    culprit = lab.git.commit(TITLE)
    lab.git.tag("v9.1-rc1")
    result = lab.world.result(
        culprit, TITLE, parent={"sha": lab.git("rev-parse", f"{culprit}^"), "subject": "Linux 9.0"}
    )
    (lab.world.directory / "result.json").write_text(json.dumps(result))
    call_command("ingest", str(lab.world.directory / "result.json"))
    mail = OutgoingMail.objects.get()
    lab.world.inbox.add(bytes(mail.raw))  # the list's copy
    lab.read()
    report = Report.objects.get()
    assert status_text(report) == "no response from author yet"

    lab.track()
    assert "linus: 1 landing, 1 event" in capsys.readouterr().out
    assert status_text(report) == "merged at v9.1-rc1, no response from author yet"
    assert report.findings.get(headline=True).base == "v9.0"

    closes = f"Closes: https://lore.kernel.org/r/{mail.message_id}"
    patch = f"Scan each folio once.\n\n{closes}\nSigned-off-by: {DANA}\n---\n{DIFF}"
    lab.world.post(DANA, patch, subject="[PATCH v2] mm/vmscan: scan once", message_id="patch@dev.example")
    lab.read()
    assert status_text(report) == "merged at v9.1-rc1, a fix is proposed"

    link = "Link: https://lore.kernel.org/r/patch@dev.example"
    lab.git.commit("mm/vmscan: scan once", f"{closes}\nSigned-off-by: {DANA}\n{link}", on="mm")
    lab.track()
    assert status_text(report) == "merged at v9.1-rc1, a fix is queued in mm"

    lab.git.merge("Merge branch 'mm' of the memory tree", "mm", on="next")
    lab.git.tag("next-20260910", "next")
    lab.track()
    assert status_text(report) == "merged at v9.1-rc1, the fix is in linux-next since next-20260910"

    lab.git.commit("Linux 9.1-rc2")
    lab.git.tag("v9.1-rc2")
    merge = lab.git.merge("Merge tag 'mm-hotfixes'", "mm")
    lab.track()
    assert status_text(report) == "merged at v9.1-rc1, the fix has been merged after v9.1-rc2"

    lab.git.commit("Linux 9.1-rc3")
    lab.git.tag("v9.1-rc3")
    lab.track()
    sentence = "merged at v9.1-rc1, the regression has been fixed in v9.1-rc3"
    assert status_text(report) == sentence
    assert Landing.objects.get(tag="v9.1-rc3", tree__name="linus").merge == merge

    assert sentence in client.get("/v9.1/").content.decode()
    page = client.get(f"/report/{culprit[:12]}/").content.decode()
    assert closes in page
    assert "next-20260910" in page
    capsys.readouterr()
    lab.track()
    assert capsys.readouterr().out.splitlines() == ["linus: nothing new", "mm: nothing new", "next: nothing new"]


def test_a_tree_that_fails_keeps_no_other_from_being_followed(
    lab: Lab, settings: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (lab.world.directory / "mm.git" / "HEAD").write_text("junk")
    lab.git("update-ref", "-d", "refs/heads/next")
    settings.PERFWORK_TREES = {"nowhere": str(tmp_path / "nowhere"), **settings.PERFWORK_TREES}
    lab.git.commit(TITLE)
    lab.git.tag("v9.1-rc1")
    with pytest.raises(CommandError, match="3 of 4 trees"):
        lab.track()
    output = capsys.readouterr()
    assert output.out.splitlines() == ["linus: 0 landings, 0 events"]
    lines = output.err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["nowhere", str(lab.world.directory / "mm.git"), "next"]
    assert "clone it again, or correct PERFWORK_TREES" in lines[0]
    assert "no branch matches next" in lines[2]
    assert Tree.objects.get(name="nowhere").error == lines[0]
    assert Tree.objects.get(name="linus").error == ""


# --- Fixes measured by the lab, and withdrawn reports: who is informed, and in which thread ---

# --- a fix that was measured ---


def measure_fix(world: World, report: Report, with_fix: float, without: float = 700) -> str:
    """The lab measures a commit that says to fix the culprit, against its parent."""
    sha = world.commit(FIX, f'Fixes: {report.culprit.sha[:12]} ("{CULPRIT_TITLE}")\nReported-by: x@y.example')
    world.later(24)
    result = measured(world, report, with_fix, with_fix + 5, with_fix - 5, id=f"fix-{with_fix}")
    result["first_bad"] = {
        "sha": sha,
        "subject": FIX,
        "author": {"name": LEE.name, "email": LEE.email},
        "trailers": [{"tag": "Fixes", "value": report.culprit.sha[:12]}],
    }
    result["measurements"][0]["good"]["samples"] = [without, without + 5, without - 5]
    world.ingest(result)
    return sha


def test_a_fix_that_works_is_confirmed_among_many_metrics_and_few_runs(world: World) -> None:
    """So few runs can't tell by their order which of a dozen metrics to report; of a fix, that is known before."""
    slow, fast = {"samples": [700, 705, 695]}, {"samples": [1000, 1010, 990]}
    shown = {"metric": "vm-scan.huge_pages", "unit": "1/s", "direction": "higher", "role": "headline"}
    report = world.report(measurements=[{**shown, "good": fast, "bad": slow}])
    sha = world.commit(FIX, f'Fixes: {report.culprit.sha[:12]} ("{CULPRIT_TITLE}")\nReported-by: x@y.example')
    world.later(24)
    names = [f"vm-scan.part{number}" for number in range(12)]
    others = [{**shown, "metric": name, "role": "kpi", "good": slow, "bad": slow} for name in names]
    fix = world.result(sha, FIX, measurements=[{**shown, "good": slow, "bad": fast}, *others])
    fix["first_bad"]["trailers"] = [{"tag": "Fixes", "value": report.culprit.sha[:12]}]
    world.ingest(fix)
    assert {event.kind for event in report.events.filter(commit=sha)} == {"fix_confirmed"}


def test_chance_in_a_fix_opens_no_report(world: World) -> None:
    """Another metric than the report's moved in three runs of a fix, one of many: nothing is known of it."""
    slow, fast = {"samples": [700, 705, 695]}, {"samples": [1000, 1010, 990]}
    shown = {"metric": "vm-scan.huge_pages", "unit": "1/s", "direction": "higher", "role": "kpi"}
    report = world.report(measurements=[{**shown, "role": "headline", "good": fast, "bad": slow}])
    sha = world.commit(FIX, f'Fixes: {report.culprit.sha[:12]} ("{CULPRIT_TITLE}")\nReported-by: x@y.example')
    world.later(24)
    moved = {**shown, "metric": "vm-scan.cold", "role": "headline", "good": fast, "bad": slow}
    others = [{**shown, "metric": f"vm-scan.part{number}", "good": slow, "bad": slow} for number in range(12)]
    fix = world.result(sha, FIX, measurements=[moved, {**shown, "good": slow, "bad": fast}, *others])
    fix["first_bad"]["trailers"] = [{"tag": "Fixes", "value": report.culprit.sha[:12]}]
    world.ingest(fix)
    assert [row.pk for row in Report.objects.all()] == [report.pk]
    assert {event.kind for event in report.events.filter(commit=sha)} == {"fix_confirmed"}


def test_a_range_that_merely_ends_in_a_fix_says_nothing_of_it(world: World) -> None:
    """A tip that is the fix, compared with a version before the culprit: both are fast, since the fix cured it."""
    report = world.report()
    parent = world.commit("mm: before the fix")
    sha = world.commit(FIX, f'Fixes: {report.culprit.sha[:12]} ("{CULPRIT_TITLE}")\nReported-by: x@y.example')
    world.track()
    fix = {"sha": sha, "subject": FIX, "trailers": [{"tag": "Fixes", "value": report.culprit.sha[:12]}]}
    result = measured(world, report, 1000, 1005, 995, id="tip", outcome="not-reproduced", bad=fix)
    del result["first_bad"], result["parent"]
    world.ingest(result)
    assert not Event.objects.filter(kind__in=("fix_confirmed", "fix_without_effect")).exists()
    world.ingest({**result, "id": "own", "good": {"sha": parent}})
    assert Event.objects.filter(kind="fix_without_effect").exists(), "compared with its own parent"


@pytest.mark.parametrize(
    ("with_fix", "outcome", "tested"),
    [
        (1000, "We tested this fix. It recovers 100% of the regression", True),
        (850, "We tested this fix. It recovers 50% of the regression", False),
        (702, "We tested this fix. It makes no measurable difference", False),
        (500, "We tested this fix. It makes things worse", False),
    ],
)
def test_a_measured_fix_is_told_with_numbers(world: World, with_fix: float, outcome: str, tested: bool) -> None:
    report = world.report()
    sha = measure_fix(world, report, with_fix)
    assert further(world) == 1
    (mail,) = mails(report, "fix_")
    parsed = read(mail)
    assert outcome in parsed.text
    assert f'fix:     {sha} ("{FIX}")' in parsed.text
    assert f"with fix:      700.00 -> {with_fix if with_fix > 999 else f'{with_fix}.00'} 1/s" in parsed.text
    assert ("\nTested-by: Perfwork <perfbot+" + report.tag in parsed.text) is tested
    assert (mail.state, mail.reason) == (OutgoingState.APPROVED, "")
    assert [each.email for each in parsed.to] == [LEE.email]
    assert DANA.email in [each.email for each in parsed.cc]
    assert further(world) == 0


def test_a_fix_that_was_posted_is_answered_there(world: World) -> None:
    """So that b4 finds the tag in the thread of the patch."""
    report = world.report()
    world.post(
        LEE,
        f"Closes: https://lore.kernel.org/r/{message_id(report)}\nSigned-off-by: {LEE}\n---\n{DIFF}",
        subject=f"[PATCH] {FIX}",
        message_id="fix-1@dev.example",
    )
    world.read()
    measure_fix(world, report, 1000)
    assert further(world) == 1
    parsed = read(mails(report, "fix_")[0])
    assert parsed.in_reply_to == ("fix-1@dev.example",)
    assert parsed.subject == f"Re: [PATCH] {FIX}"


def test_a_patch_that_credits_the_report_is_its_fix(world: World) -> None:
    """By the tag that our mail asks for, elsewhere, without our address among the recipients."""
    report = world.report()
    credit = f"Reported-by: Perfwork <{world.settings.tagged(report.tag)}>"
    world.post(
        LEE, f"{credit}\nSigned-off-by: {LEE}\n---\n{DIFF}", subject=f"[PATCH] {FIX}", message_id="f@dev.example"
    )
    world.post(LEE, f"Is it this?\n\n{credit}\n", subject="Re: another matter", message_id="g@dev.example")
    world.read()
    assert state(report) == "fix_proposed"
    assert list(report.messages.values_list("message_id", flat=True)) == [message_id(report), "f@dev.example"]


@pytest.mark.parametrize("before", [True, False])
def test_the_tag_never_stands_below_another_patch(world: World, before: bool) -> None:
    report = world.report()

    def post_another() -> None:
        text = f"Closes: https://lore.kernel.org/r/{message_id(report)}\nSigned-off-by: {LEE}\n---\n{DIFF}"
        world.post(LEE, text, subject="[PATCH] mm/vmscan: quite another thing", message_id="other@dev.example")
        world.read()

    if before:
        post_another()
    measure_fix(world, report, 1000)
    if not before:
        post_another()
    assert further(world) == 1
    parsed = read(mails(report, "fix_")[0])
    assert "\nTested-by:" in parsed.text
    assert parsed.in_reply_to == (message_id(report),)


def test_of_two_versions_nobody_can_tell_which_was_measured(world: World) -> None:
    report = world.report()
    text = f"Closes: https://lore.kernel.org/r/{message_id(report)}\nSigned-off-by: {LEE}\n---\n{DIFF}"
    for version in ("", " v2"):
        world.post(LEE, text, subject=f"[PATCH{version}] {FIX}", message_id=f"fix{version.strip()}@dev.example")
    world.read()
    measure_fix(world, report, 1000)
    assert further(world) == 1
    assert read(mails(report, "fix_")[0]).in_reply_to == (message_id(report),)


def test_a_small_but_certain_gain_is_told_as_such(world: World) -> None:
    report = world.report()
    measure_fix(world, report, 725)
    assert further(world) == 1
    assert "It recovers 8% of the regression" in mails(report, "fix_")[0].body


def test_a_kernel_that_is_no_better_than_the_culprit_s_has_recovered_nothing(world: World) -> None:
    """Without the fix 400, with it 700; the culprit had led from 1000 to 700."""
    report = world.report()
    measure_fix(world, report, 700, without=400)
    assert further(world) == 1
    body = mails(report, "fix_")[0].body
    assert "It helps, but does not recover the regression" in body
    assert "Tested-by" not in body


def test_an_author_who_can_t_be_mailed_keeps_nothing_back(world: World) -> None:
    report = world.report()
    sha = measure_fix(world, report, 1000)
    Commit.objects.filter(sha=sha).update(author_email="lee at dev")
    event = EventData(key="i", kind=EventKind.INVALID, occurred_at=world.later(), actor="olga", remark="a wrong kernel")
    event_log.record([event_log.event_row(report, event, world.now)])
    assert further(world) == 2
    fixed, withdrawn = mails(report)
    assert [each.email for each in read(fixed).to] == [DANA.email]
    assert ["lee at dev", "Lee Park", "", "invalid address"] in fixed.people
    assert 'Reason: "a wrong kernel"' in withdrawn.body


# --- withdrawal ---


def test_a_report_that_was_wrong_is_withdrawn(world: World) -> None:
    report = world.report()
    world.post(LEE, "This report is invalid, the machine was throttled.\n\n#lkp invalid", to=message_id(report))
    world.settings = replace(world.settings, trust_policy="verified")
    world.read()
    suggestion = Suggestion.objects.get(report=report, kind="invalid")
    report_actions.decide(suggestion, Decision.ACCEPTED, "olga", world.later())
    assert further(world) == 1
    (mail,) = mails(report)
    assert "Please disregard this report; it was wrong." in read(mail).text
    assert 'Reason: "' in read(mail).text
    assert further(world) == 0


def test_it_is_withdrawn_once_though_somebody_wavers(world: World) -> None:
    """What had not gone out is set aside meanwhile, and comes back as the same mail."""
    report = world.report()
    world.post(LEE, "#lkp invalid", to=message_id(report))
    world.settings = replace(world.settings, trust_policy="verified")
    world.read()
    for _ in range(2):
        suggestion = Suggestion.objects.get(report=report, kind="invalid")
        report_actions.decide(suggestion, Decision.ACCEPTED, "olga", world.later())
        further(world)
        assert mails(report)[0].state == OutgoingState.APPROVED
        report_actions.take_back(suggestion, "olga", world.later())
        further(world)
        assert [mail.state for mail in mails(report)] == [OutgoingState.CANCELLED]


def test_what_the_lab_has_said_itself_is_not_said_again(world: World) -> None:
    world.settings = replace(world.settings, operators=frozenset({"olga@lab.example"}))
    report = world.report()
    world.post(replace(DANA, name="Olga", email="olga@lab.example"), "#lkp invalid", to=message_id(report))
    world.read()
    assert Event.objects.filter(report=report, kind="invalid").exists()
    assert further(world) == 0


# --- What may be closed by now is suggested with its reason, once; a person closes it, and can undo that ---

NOW = datetime(2026, 11, 20, tzinfo=UTC)
DAY = timedelta(days=1)


def event(kind: EventKind, days_ago: float, **more: str) -> EventData:
    return EventData(f"{kind}{days_ago}", kind, NOW - days_ago * DAY, **more)  # type: ignore[arg-type]


REPORTED = event(EventKind.REPORTED, 400)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (
            [event(EventKind.IN_NEXT, 300), event(EventKind.GONE, 91)],
            "gone from next since 2026-08-21, and never merged",
        ),
        ([event(EventKind.IN_NEXT, 300), event(EventKind.GONE, 89)], None),
        ([event(EventKind.IN_NEXT, 300), event(EventKind.GONE, 200), event(EventKind.IN_NEXT, 190)], None),
        ([event(EventKind.GONE, 200), event(EventKind.LANDED, 100, tag="v9.1", commit="a" * 40)], None),
        ([event(EventKind.GONE, 200), event(EventKind.EXPECTED, 100, actor="toni")], None),
        ([event(EventKind.IN_NEXT, 300)], None),
        ([], None),
    ],
)
def test_a_culprit_that_left_next(events: list[EventData], reason: str | None) -> None:
    found = closing_of(Verdict.REGRESSION, [REPORTED, *events], None, NOW)
    assert (found.reason if found else None) == reason
    assert found is None or found.kind is EventKind.DROPPED


@pytest.mark.parametrize(("released", "closes"), [(None, False), (NOW - DAY, True), (NOW + DAY, False)])
def test_an_improvement_after_its_release(released: datetime | None, closes: bool) -> None:
    talked_about = [REPORTED, event(EventKind.FIX_PROPOSED, 50, title="x")]
    assert fold(Verdict.IMPROVEMENT, talked_about).state in OPEN
    assert (closing_of(Verdict.IMPROVEMENT, talked_about, released, NOW) is not None) == closes
    assert closing_of(Verdict.IMPROVEMENT, [REPORTED], released, NOW) is None  # closed from the beginning


def test_a_person_decides_once(world: World) -> None:
    report = world.report()
    day = world.now
    for kind, days in ((EventKind.IN_NEXT, 1), (EventKind.GONE, 2)):
        made = EventData(f"{kind}", kind, day + days * DAY, commit=report.culprit.sha, tree="next", role=Role.MACHINE)
        event_log.record([event_log.event_row(report, made, day)])
    assert suggest_closings(day + 50 * DAY) == 0
    assert suggest_closings(day + 100 * DAY) == 1
    assert suggest_closings(day + 101 * DAY) == 0
    [suggestion] = Suggestion.objects.all()
    assert "never merged" in suggestion.quote
    assert report_actions.decide(suggestion, Decision.ACCEPTED, "toni", day + 101 * DAY)
    assert Report.objects.get().state == "dropped"
    assert report_actions.take_back(suggestion, "toni", day + 102 * DAY)
    assert Report.objects.get().state == "no_response"
    suggestion.refresh_from_db()
    assert report_actions.decide(suggestion, Decision.REJECTED, "toni", day + 102 * DAY)
    assert suggest_closings(day + 300 * DAY) == 0


def test_a_suggestion_whose_reason_is_gone_goes(world: World) -> None:
    report = world.report()
    day = world.now
    gone = EventData("g", EventKind.GONE, day + DAY, commit=report.culprit.sha, tree="next", role=Role.MACHINE)
    event_log.record([event_log.event_row(report, gone, day)])
    assert suggest_closings(day + 100 * DAY) == 1
    merged = EventData("m", EventKind.LANDED, day + 101 * DAY, commit=report.culprit.sha, tag="v9.2-rc1")
    event_log.record([event_log.event_row(report, merged, day)])
    assert suggest_closings(day + 102 * DAY) == 0
    assert not Suggestion.objects.exists()


def test_an_improvement_is_closed_as_expected(world: World) -> None:
    report = world.report()
    Report.objects.filter(pk=report.pk).update(verdict="improvement")
    made = EventData("f", EventKind.FIX_PROPOSED, world.later(), actor="toni", title="x")
    event_log.record([event_log.event_row(report, made, world.now)])
    Release.objects.create(version="v9.1", number=90_001_999_0000, released_at=world.now)
    Report.objects.filter(pk=report.pk).update(merged_release="v9.1")
    assert suggest_closings(world.later()) == 1


KINDS = st.sampled_from([EventKind.IN_NEXT, EventKind.GONE, EventKind.MERGED, EventKind.EXPECTED, EventKind.REOPENED])


@given(st.lists(st.tuples(KINDS, st.integers(0, 400)), max_size=8), st.sampled_from(list(Verdict)))
def test_what_is_suggested_closes_it(kinds: list[tuple[EventKind, int]], verdict: Verdict) -> None:
    events = [EventData(f"e{n}", kind, NOW - days * DAY, actor="toni") for n, (kind, days) in enumerate(kinds)]
    if found := closing_of(verdict, events, NOW - DAY, NOW):
        assert fold(verdict, events).state in OPEN
        closed = fold(verdict, [*events, EventData(found.key, found.kind, NOW + DAY, actor="toni")])
        assert closed.state not in OPEN


# --- Escalations: what blocks, what nobody answers, fixes that lie about; nothing of years ago ---


def headings(client: Client) -> dict[str, list[str]]:
    """The sections of the page, each with the titles of its rows."""
    page = client.get("/escalations/").content.decode()
    found = {}
    for part in page.split("<section aria-labelledby=")[1:]:
        heading = part.partition("<h2")[2].partition(">")[2].partition("</h2>")[0].strip()
        found[heading] = [
            name
            for name in ("old", "late", "fresh", "blocks", "posted", "queued", "stable")
            if f"where={name}." in part
        ]
    return found


@pytest.fixture
def reports(db: None) -> None:
    now = timezone.now()

    def made(number: int, name: str, days: float, **columns: Any) -> Report:
        return line(number, scenario=f"where={name}.", subsystem="mm", reported_at=now - days * DAY, **columns)

    made(1, "old", 400)
    made(2, "late", 12)
    made(3, "fresh", 3)
    made(4, "blocks", 300, blocks="v9.1", state="working")  # a person said so, whenever that was
    made(5, "posted", 60, state="fix_proposed", last_human_reply_at=now - 30 * DAY)
    made(6, "posted lately", 60, state="fix_proposed", last_human_reply_at=now - 3 * DAY)
    lab = {"awaited": "reporter", "last_human_reply_at": now - 30 * DAY}
    made(11, "posted, for the lab to test", 60, state="fix_proposed", **lab)
    made(7, "queued", 60, state="fix_queued", merged_release="v9.1")
    made(8, "queued, never merged", 60, state="fix_queued")
    made(9, "stable", 900, state="fixed", lacks_fix=True)
    made(10, "late improvement", 20, verdict="improvement")


def test_each_reason_has_its_reports(reports: None, client: Client) -> None:
    assert headings(client) == {
        "Blocking a release": ["blocks"],
        "Unanswered": ["late"],
        "Fixes that nobody picked up": ["posted"],
        "Fixes that wait in a tree": ["queued"],
        "Fix missing in stable": ["stable"],
        "Unanswered by subsystem": [],
    }
    page = client.get("/escalations/").content.decode()
    assert '<a href="/subsystem/mm/?state=no_response">mm</a> 1</li>' in page
    assert page.count("where=posted.") == 1
    assert "never merged" not in page
    assert "improvement" not in page.partition("<table")[2].partition("Keys")[0]


def test_nothing_to_push(client: Client, db: None) -> None:
    assert "Nothing needs attention." in client.get("/escalations/").content.decode()


def test_what_is_too_old_to_be_listed_is_counted(client: Client, db: None) -> None:
    for number in range(3):
        line(number, reported_at=timezone.now() - 400 * DAY)
    page = client.get("/escalations/").content.decode()
    assert "Nothing of the last 180 days needs attention, but 3 unanswered regressions are older" in page
    [found] = re.findall(r'href="(/search/\?q=state%3Ano_response[^"]+)">find them', page)
    assert client.get(html.unescape(found)).content.decode().count("data-row=") == 3


def test_many_cost_the_same(reports: None, client: Client, django_assert_num_queries: Any) -> None:
    for number in range(20, 90):
        line(number, reported_at=timezone.now() - 20 * DAY)
    with django_assert_num_queries(7):
        page = client.get("/escalations/").content.decode()
    assert "find all" not in page  # no search says just this
    for number in range(100, 170):
        line(number, reported_at=timezone.now() - 400 * DAY, blocks="v9.1")
    page = client.get("/escalations/").content.decode()
    assert '<a href="/search/?q=blocking%3Ayes%20state%3Aopen%20kind%3Aregression">find all</a>' in page


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("mm/vmscan: stop after first cold folio", True),
        ("mm: stop after the very first cold folio", True),
        ("stop after the first cold folios", True),
        ("mm/vmscan: stop after the first...", True),
        ("mm/vmscan: stop after the first cold folio, which is in linux-next now", True),
        ("mm/vmscan: stop after the", False),  # as many titles begin
        ("mm/vmscan: stop after it", False),
        ("mm/vmscan: stop after the first warm folio", False),
        ("mm/vmscan: start at the first cold page", False),
    ],
)
def test_a_title_that_is_typed_nearly_right_is_suggested(world: World, typed: str, suggested: bool) -> None:
    report = world.report()
    world.post(DANA, f"#lkp fix: {typed}", to=message_id(report))
    world.read()
    sha = world.commit("mm/vmscan: stop after the first cold folio")
    world.track()
    shas = Suggestion.objects.filter(report=report, rule="title_nearly").values_list("commit", flat=True)
    assert list(shas) == ([sha] if suggested else [])
    assert state(report) == "fix_proposed"


def test_capitals_and_punctuation_of_a_typed_title_do_not_matter(world: World) -> None:
    report = world.report()
    world.post(DANA, "#lkp fix: mm/vmscan: Stop after the first cold-folio.", to=message_id(report))
    world.read()
    sha = world.commit("mm/vmscan: stop after the first cold folio")
    world.track()
    report.refresh_from_db()
    assert (report.fix_sha, report.state) == (sha, "fix_queued")


@pytest.mark.parametrize(
    ("typed", "title", "suggested"),
    [
        ("rcu: reduce the lock hold time in reclaim", "rcu: reduce lock hold time in reclaim", True),
        ("stop it after the first cold folio", "[mm] stop it after the first cold folio", True),
        ("[PATCH] never stop it after the first", "always stop it after the first", False),
        ("[PATCH v2] stop it after the first", "start it after the first", False),
    ],
)
def test_a_nearly_equal_title_is_found_whatever_it_begins_with(
    world: World, typed: str, title: str, suggested: bool
) -> None:
    report = world.report()
    world.post(DANA, f"#lkp fix: {typed}", to=message_id(report))
    world.read()
    world.commit(title)
    world.track()
    assert Suggestion.objects.filter(report=report, rule="title_nearly").exists() == suggested
