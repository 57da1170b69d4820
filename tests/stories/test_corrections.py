"""The culprit of a report, corrected by people: another commit or a range, undone and done again."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from bot.notifications.report import compose_due
from tests.support.people import person
from tests.support.world import DANA, LEE, World, message_id, status_text
from tracker.models import Commit, Event, OutgoingMail, Report, Tree

pytestmark = pytest.mark.django_db
TITLE = "mm/vmscan: walk cold folios first"


@pytest.fixture
def operator(client: Client) -> Client:
    user = person("triager", "olga")
    client.force_login(user)
    return client


def correct(client: Client, report: Report, culprit: str) -> str:
    """Correct the culprit on the page; return what it says then."""
    row = f"{report.pk}:{Report.objects.get(pk=report.pk).revision}"
    posted = {"do": "culprit", "row": row, "argument": culprit, "next": f"/report/{report.tag}/"}
    return client.post("/triage/change/", posted, follow=True).content.decode()


def culprit_of(report: Report) -> str:
    return Report.objects.get(pk=report.pk).culprit.sha


def undo(client: Client, event: Event) -> None:
    client.post(f"/report/{event.report.tag}/take-back/", {"key": event.key})


def correction(report: Report) -> Event:
    return Event.objects.filter(report=report, kind="corrected").latest("pk")


def test_the_report_follows_and_is_found_by_both_commits(world: World, operator: Client) -> None:
    wrong = world.commit(TITLE)
    world.tag("v9.1-rc1")
    right = world.commit("mm: batch the LRU walk", author=LEE)
    world.tag("v9.1-rc2")
    report = world.report(sha=wrong)
    world.track()
    world.post(DANA, "Mine only moves code. I will have a look.", to=message_id(report))
    world.read()
    before = status_text(report)
    assert before == "merged at v9.1-rc1, the author has responded"
    events = set(Event.objects.filter(report=report).values_list("key", flat=True))

    assert "1 report changed." in correct(operator, report, right)
    assert culprit_of(report) == right
    assert "v9.1-rc1" not in status_text(report)
    world.track()
    assert status_text(report) == before.replace("v9.1-rc1", "v9.1-rc2")
    assert events <= set(Event.objects.filter(report=report).values_list("key", flat=True))
    for name in (wrong, wrong[:12], right, right[:12]):
        assert operator.get("/search/", {"q": name}, follow=True).redirect_chain[-1][0] == f"/report/{right}/"
        assert operator.get(f"/report/{name}/").status_code == 200
        assert operator.get(f"/api/v1/reports/{name}").json()["culprit"] == right
    page = operator.get(f"/report/{right}/").content.decode()
    assert "corrected the culprit" in page
    assert Report.objects.get(pk=report.pk).author == LEE.email

    world.track()  # nothing new
    assert status_text(report) == before.replace("v9.1-rc1", "v9.1-rc2")
    undo(operator, correction(report))
    assert (culprit_of(report), status_text(report)) == (wrong, before)
    world.track()
    assert (culprit_of(report), status_text(report)) == (wrong, before)
    assert not Commit.objects.exclude(corrected_to=None).exists()
    assert operator.get(f"/report/{right}/").status_code == 404

    undo(operator, Event.objects.get(report=report, reverses=correction(report).key))  # and done again
    assert culprit_of(report) == right
    world.track()
    assert status_text(report) == before.replace("v9.1-rc1", "v9.1-rc2")


def test_results_about_the_former_culprit_belong_to_the_report(world: World, operator: Client) -> None:
    report = world.report(TITLE)
    wrong = report.culprit.sha
    right = world.commit("mm: batch the LRU walk", author=LEE)
    correct(operator, report, right)
    world.ingest(world.result(wrong, TITLE, id="again", machine={"id": "lab7-m2", "cpus": 8}))
    assert Report.objects.count() == 1
    assert report.findings.count() == 2
    # The former culprit's patch in another tree is no report of its own, either
    Commit.objects.create(sha="d" * 40, title=TITLE, same_patch_as=Commit.objects.get(sha=wrong))
    world.ingest(world.result("d" * 40, TITLE, id="elsewhere", machine={"id": "lab7-m3", "cpus": 8}))
    assert Report.objects.count() == 1


def test_a_range_stands_instead_of_a_commit_and_a_later_one_for_it(world: World, operator: Client) -> None:
    report = world.report(TITLE)
    world.tag("v9.1-rc1")
    world.track()
    wrong, before = report.culprit.sha, status_text(report)
    assert before == "merged at v9.1-rc1, no response from author yet"
    correct(operator, report, "v9.0..v9.1-rc1")
    assert status_text(report) == "v9.0..v9.1-rc1, not bisected, no response from author yet"
    assert Report.objects.get(pk=report.pk).culprit.placeholder
    assert operator.get(f"/report/{wrong}/").status_code == 200
    world.track()
    assert status_text(report) == "v9.0..v9.1-rc1, not bisected, no response from author yet"
    right = world.commit("mm: batch the LRU walk", author=LEE)
    correct(operator, report, right)
    assert culprit_of(report) == right
    assert operator.get(f"/report/{wrong[:12]}/").status_code == 200
    undo(operator, correction(report))
    assert status_text(report).startswith("v9.0..v9.1-rc1, not bisected")
    undo(operator, correction_of_the_range(report))
    assert (culprit_of(report), status_text(report)) == (wrong, before)


def test_undo_takes_no_culprit_that_another_report_has_by_now(world: World, operator: Client) -> None:
    report, other = world.report(TITLE), world.report("mm: another one")
    former, right = report.culprit.sha, world.commit("mm: batch the LRU walk")
    correct(operator, report, right)
    correct(operator, other, former)
    assert culprit_of(other) == former
    assert operator.get(f"/report/{former}/").context["report"] == other
    answer = operator.post(f"/report/{report.tag}/take-back/", {"key": correction(report).key})
    assert (answer.status_code, b"has another report by now" in answer.content) == (400, True)
    assert (culprit_of(report), culprit_of(other)) == (right, former)
    undo(operator, correction(other))
    undo(operator, correction(report))
    assert (culprit_of(report), culprit_of(other)) == (former, other.culprit.sha)


def test_no_mail_leaves_that_names_the_former_culprit(world: World, operator: Client) -> None:
    world.ingest(world.result(wrong := world.commit(TITLE), TITLE))
    report = Report.objects.get()
    compose_due(world.settings, world.later(), approve_first=False)
    mail = OutgoingMail.objects.get()
    assert mail.state == "approved"
    right = world.commit("mm: batch the LRU walk", author=LEE)
    correct(operator, report, right)
    mail.refresh_from_db()
    assert (mail.state, mail.reason) == ("held", "people corrected its culprit: its results name another commit")
    assert "its results name another commit" in operator.get(f"/report/{right}/").content.decode()
    compose_due(world.settings, world.later(24), approve_first=False)
    assert set(OutgoingMail.objects.values_list("state", flat=True)) == {"held"}
    undo(operator, correction(report))
    assert (culprit_of(report), Report.objects.get().held) == (wrong, "")


def correction_of_the_range(report: Report) -> Event:
    return Event.objects.get(report=report, kind="corrected", title="v9.0..v9.1-rc1")


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("the other one", "expected the sha of the culprit, or a range like v6.11..v6.12-rc1"),
        ("", "expected the sha of the culprit, or a range like v6.11..v6.12-rc1"),
        ("abcdef123456", "no commit is known here that begins with abcdef123456"),
        ("other", "has a report already: make this one its duplicate"),
        ("same", "this action has no effect there"),
        ("v6.11...v6.12", "expected the sha of the culprit"),
        ("v6.11..v6.12..v6.13", "expected the sha of the culprit"),
        ("--all..x", "expected the sha of the culprit"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_recorded(world: World, operator: Client, named: str, says: str) -> None:
    report, other = world.report(TITLE), world.report("mm: another one")
    shas = {"other": other.culprit.sha, "same": report.culprit.sha}
    assert says in correct(operator, report, shas.get(named, named)).replace("&#x27;", "'")
    assert culprit_of(report) == report.culprit.sha
    assert not Event.objects.filter(kind="corrected").exists()


def test_two_reports_have_no_common_culprit(world: World, operator: Client) -> None:
    reports = [world.report(TITLE), world.report("mm: another one")]
    rows = [f"{report.pk}:{Report.objects.get(pk=report.pk).revision}" for report in reports]
    answer = operator.post("/triage/change/", {"do": "culprit", "row": rows, "argument": "f" * 40, "next": "/"})
    assert "expected one report, which alone has a culprit" in answer.content.decode()


def test_an_author_cannot_make_it_another_ones(world: World, client: Client) -> None:
    report = world.report(TITLE)
    client.force_login(User.objects.create_user("dana", DANA.email))
    page = client.get(f"/report/{report.culprit.sha}/").content.decode()
    assert '<option value="working"' in page
    assert '<option value="culprit"' not in page
    assert "you do not have permission" in correct(client, report, "f" * 40)
    assert culprit_of(report) == report.culprit.sha


def test_a_culprit_that_is_found_late_is_looked_for_in_the_past(world: World, operator: Client, settings: Any) -> None:
    from tests.stories.test_person_reports import open_report

    old = world.commit(TITLE)
    world.tag("v9.1-rc1")
    world.later(24 * 300)
    world.commit("mm: another commit")
    first, report = open_report(world)
    for number in range(12):  # more than are looked at again
        open_report(world, message_id=f"another-{number}@dev.example")
    world.track()
    world.post(LEE, f"#lkp introduced: {old}", to=first)
    world.read()
    assert culprit_of(report) == old
    world.track()
    assert status_text(report).startswith("merged at v9.1-rc1")
    assert Tree.objects.get().cursor


def test_tags_are_searched_filtered_and_exported(world: World, operator: Client) -> None:
    report, other = world.report(TITLE), world.report("mm: another one")

    def tag(tags: str) -> None:
        row = f"{report.pk}:{Report.objects.get(pk=report.pk).revision}"
        operator.post("/triage/change/", {"do": "tag", "row": row, "argument": tags, "next": "/"})

    def tagged(value: str) -> set[str]:
        reports = operator.get("/api/v1/reports", {"tag": value}).json()
        return {row["culprit"] for row in reports}

    tag("THP, numa numa")
    assert Report.objects.get(pk=report.pk).tags == " numa thp "
    assert tagged("numa") == tagged("THP") == {report.culprit.sha}
    assert tagged("num") == set()
    assert {row["culprit"] for row in operator.get("/api/v1/reports", {"tag!": "numa"}).json()} == {other.culprit.sha}
    page = operator.get(f"/report/{report.culprit.sha}/").content.decode()
    assert ">numa</a>" in page
    assert report.culprit.sha[:10] in operator.get("/search/", {"q": "thp"}, follow=True).content.decode()
    (row,) = (row for row in operator.get("/api/v1/reports").json() if row["culprit"] == report.culprit.sha)
    assert row["tags"] == ["numa", "thp"]
    tag("none")
    assert tagged("numa") == set()


def test_a_report_goes_on_in_another_one(world: World, operator: Client) -> None:
    report, other = world.report(TITLE), world.report("mm: another one")
    row = f"{report.pk}:{Report.objects.get(pk=report.pk).revision}"
    operator.post("/triage/change/", {"do": "successor", "row": row, "argument": other.culprit.sha, "next": "/"})
    link = f'<dt>Continued in</dt><dd><a href="/report/{other.culprit.sha[:10]}/">'
    page = f"/report/{report.culprit.sha}/"
    assert link in operator.get(page).content.decode()
    assert status_text(report) == status_text(other)  # it closes nothing
    undo(operator, Event.objects.get(kind="succeeded"))
    assert link not in operator.get(page).content.decode()
