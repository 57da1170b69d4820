"""The triage pages: what they show, what they cost, and how they handle invalid queries and odd data."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from bot.notifications.follow_ups import compose_follow_ups
from bot.notifications.report import compose_due
from tests.support.people import person
from tests.support.rows import NOW, line
from tests.support.world import DANA, World, message_id
from tracker.domain.events import EventData, EventKind, Role
from tracker.models import (
    Commit,
    Event,
    Machine,
    Message,
    Metric,
    OutgoingMail,
    RawMessage,
    Release,
    ReleaseCandidate,
    Report,
    SavedView,
    TextRevision,
    Tree,
)
from tracker.pages.triage import views
from tracker.services import event_log, mail_transitions, report_summary
from tracker.services.report_summary import clipped

# --- The triage pages: what they show, what they cost, and how they handle invalid queries and odd data ---


@pytest.fixture
def triage_page_toni(db: None) -> Client:
    """A triager."""
    user = person("triager", "toni", "toni@lab.example")
    client = Client()
    client.force_login(user)
    return client


def rows(*reports: Report) -> list[str]:
    return [f"{each.pk}:{Report.objects.get(pk=each.pk).revision}" for each in reports]


def text(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.content[:300]
    return answer.content.decode()


# --- what pages cost ------------------------------------------------------------------------------


def statements(client: Client, path: str, **posted: Any) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        response = client.post(path, posted) if posted else client.get(path)
    assert response.status_code < 400, response.content[:300]
    transactions = ("SAVEPOINT", "RELEASE", "BEGIN", "COMMIT")
    return [each["sql"] for each in captured.captured_queries if not each["sql"].startswith(transactions)]


@pytest.mark.parametrize(
    "query",
    [
        *("", "?state=open&machine!=m2", "?section=merged&end=1", "?group=machine&order=effect", "?q=mm", "?age=1w"),
        *("?improvements=on", "?blocking=yes", "?subsystem=mm", "?author=a%40b.example"),
    ],
)
def test_a_table_takes_six_queries_at_most(triage_page_toni: Client, query: str) -> None:
    reports = [
        line(n, merged_release="v5.6", shift_left_release="v5.5", subsystem="mm", author="a@b.example", machine="m2")
        for n in range(60)
    ]
    SavedView.objects.create(owner=User.objects.get(), name="mine", query="state=open", saved_at=NOW)
    assert len(reports) == 60
    for client in (Client(), triage_page_toni):
        assert len(beside_rights(statements(client, f"/v5.6/{query}"))) <= 6


def beside_rights(queries: list[str]) -> list[str]:
    """Return the queries without Django's own for the session and the two kinds of permissions of who is signed in."""
    return [each for each in queries if 'FROM "auth_permission"' not in each and '"tracker_session"' not in each]


def test_many_are_changed_in_seven_queries(triage_page_toni: Client) -> None:
    reports = [line(number, merged_release="v5.6") for number in range(100)]
    queries = statements(triage_page_toni, "/triage/change/", do="working", row=rows(*reports), next="/v5.6/")
    assert len(beside_rights(queries)) <= 7, queries
    assert Report.objects.filter(state="working").count() == 100


def test_a_report_says_what_one_can_do_and_what_is_like_it(world: World, client: Client) -> None:
    report = world.report()
    mail = OutgoingMail.objects.get(report=report)
    Tree.objects.filter(pk=report.tree_id).update(url="https://git.kernel.org/pub/scm/linux.git")
    alike = line(7, metric=report.metric, machine=report.machine, reported_at=report.reported_at, subsystem="xfs")
    line(8, metric=report.metric, machine="elsewhere", reported_at=report.reported_at)
    page = unescape(text(client, f"/report/{report.culprit.sha}/"))
    assert f"https://git.kernel.org/pub/scm/linux.git/commit/?id={report.culprit.sha}" in page
    assert f"In-Reply-To=%3C{mail.message_id.replace('@', '%40')}%3E&Subject=Re%3A%20" in page
    similar = page.partition('id="similar"')[2].partition("</section>")[0]
    assert re.findall(r'href="/report/(\w+)/"', similar) == [alike.culprit.sha]
    assert f"Closes: https://lore.kernel.org/r/{mail.message_id}" in page


def test_a_report_takes_as_many_queries_whatever_its_thread(world: World, triage_page_toni: Client) -> None:
    report = world.report()
    text(triage_page_toni, "/")  # what the header counts is counted now and then
    few = len(statements(triage_page_toni, f"/report/{report.culprit.sha}/"))
    sources = RawMessage.objects.bulk_create(
        RawMessage(digest=f"d{n}", compressed=b"", received_at=NOW) for n in range(2000)
    )
    Message.objects.bulk_create(
        Message(message_id=f"m{n}@x", report=report, source=source, sent_at=NOW + timedelta(minutes=n), kind="person",
                author_name=f"Writer {n}", own_text="words " * 1000, public=True)
        for n, source in enumerate(sources)
    )  # fmt: skip
    Message.objects.filter(pk=Message.objects.order_by("sent_at").values("pk")[:1]).update(tables=b"packed")
    queries = statements(triage_page_toni, f"/report/{report.culprit.sha}/")
    assert len(queries) == few
    assert len(beside_rights(queries)) <= 15
    page = text(triage_page_toni, f"/report/{report.culprit.sha}/")
    assert ("Writer 1999" in page, "Writer 1900" in page, "Writer 1899" in page) == (True, True, False)
    assert len(page) < 1_500_000
    assert "All measurements" in page  # which the first mail told, far up the thread
    older = page.partition('href="?mails=')[2].partition("#")[0]
    assert "Writer 1899" in text(triage_page_toni, f"/report/{report.culprit.sha}/?mails={older}")
    assert (
        text(triage_page_toni, f"/report/{report.culprit.sha}/?mails=x", 400) == "mails: expected a number; found 'x'"
    )


# --- odd questions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/v99.9/", 404, "There is no release v99.9"),
        ("/v5.6/?order=beauty", 400, "order: expected one of urgency"),
        ("/v5.6/?sort=age", 400, "'sort': there is no such filter"),
        ("/v5.6/?machine=m3", 400, "machine: no report has 'm3'"),
        (
            "/v5.6/?machine=m1&metric=nothing&suite=no",
            400,
            "suite: no report has 'no'; metric: no report has 'nothing'",
        ),
        ("/v5.6/?machine=m1&machine=m4", 400, "machine: no report has 'm4'"),
        ("/v5.6/?machine!=m5", 400, "machine: no report has 'm5'"),
        ("/v99.9/?machine=m1", 404, "There is no release v99.9"),
        ("/v99.9/?order=beauty", 404, "There is no release v99.9"),
        ("/machine/nowhere/", 404, "There is no machine nowhere"),
        ("/machine/m1/?order=beauty", 400, "order: expected one of"),
        ("/subsystem/%00/", 404, "There is no such subsystem"),
    ],
)
def test_what_is_not_there_is_said(client: Client, db: None, path: str, status: int, words: str) -> None:
    line(1, merged_release="v5.6", machine="m1")
    assert words in unescape(text(client, path, status))


def test_a_release_candidate_leads_to_the_table_of_its_release(client: Client, db: None) -> None:
    line(1, merged_release="v5.6")
    assert client.get("/v5.6-rc3/?state=open").headers["Location"] == "/v5.6/?state=open"


def test_a_filtered_section_says_how_many_match(client: Client, db: None) -> None:
    for number in range(70):
        line(number, merged_release="v5.6", state="working" if number < 60 else "fix_queued")
    assert "the filters" not in text(client, "/v5.6/")
    assert "10 match the filters</small>" in text(client, "/v5.6/?state=fix_queued")
    assert "50 match the filters on this page</small>" in text(client, "/v5.6/?state=working")
    assert "author works on it (60)" in text(client, "/v5.6/?state=working")  # in the words of the rows
    assert "Ordered by how much of each change is certain" in text(client, "/v5.6/?order=effect")


def test_an_action_renews_the_counts_of_the_page(triage_page_toni: Client) -> None:
    reports = [line(number, merged_release="v5.6") for number in range(3)]  # its events don't say so
    asked: dict[str, Any] = {"do": "invalid", "row": rows(reports[0]), "release": "v5.6"}
    answer = triage_page_toni.post("/triage/change/", asked, headers={"HX-Request": "true"}).content.decode()
    assert '<div id="standing" hx-swap-oob="true">' in answer
    assert "Regressions in v5.6: 2 open" in answer
    assert 'id="merged-count" hx-swap-oob="true">2 open, 0 closed<' in answer
    batch = re.search(r'name="batch" value="(\w+)"', answer)
    assert batch
    undone = {"batch": batch[1], "release": "v5.6"}
    assert (
        "Regressions in v5.6: 2 open"
        in triage_page_toni.post("/triage/undo/", undone, headers={"HX-Request": "true"}).content.decode()
    )


def test_a_filter_that_is_wrong_is_marked_and_the_others_are_kept(client: Client, db: None) -> None:
    line(1, merged_release="v5.6", machine="m1")
    page = text(client, "/v5.6/?machine=m1&state=lost&age=soon", 400)
    assert page.count('aria-invalid="true"') == 2
    assert '<input name="machine" value="m1" size="24" maxlength="500">' in page
    assert re.search(r'name="state" value="lost"[^>]* aria-invalid="true" aria-describedby="why"', page)
    assert 'href="?"' in page


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("/v5.6/?state=open&machine=&q=&order=", "/v5.6/?state=open"),
        ("/v5.6/?q=", "/v5.6/"),
        ("/machine/m1/?state=&metric!=x", "/machine/m1/?metric!=x"),
    ],
)
def test_an_address_holds_no_empty_fields(client: Client, db: None, asked: str, shown: str) -> None:
    line(1, merged_release="v5.6", machine="m1")
    response = client.get(asked)
    assert (response.status_code, response["Location"]) == (302, shown)


def test_my_commits_are_offered_to_who_has_some(client: Client, db: None) -> None:
    Release.objects.get_or_create(version="v5.6", defaults={"number": 5006})
    line(1, merged_release="v5.6", author="dana@dev.example")
    for email, offered in (("dana@dev.example", True), ("olga@lab.example", False)):
        client.force_login(User.objects.create_user(email, email))
        page = text(client, "/v5.6/")
        assert ("My commits</a>" in page) is offered
    assert client.get("/v5.6/?author=dana@dev.example").status_code == 200


def test_what_is_asked_every_day_is_one_click_away(client: Client, db: None, now: datetime) -> None:
    release = Release.objects.get_or_create(version="v5.6", defaults={"number": 5006})[0]
    ReleaseCandidate.objects.create(release=release, number=4, version="v5.6-rc4", tagged_at=now)
    ReleaseCandidate.objects.create(release=release, number=5, version="v5.6-rc5", tagged_at=now - timedelta(days=3))
    line(1, merged_release="v5.6", state="no_response", reported_at=now - timedelta(days=1))
    line(2, merged_release="v5.6", state="fixed", reported_at=now - timedelta(days=9), closed_at=now)
    line(3, merged_release="v5.6", state="no_response", reported_at=now - timedelta(days=9))
    tagged = now - timedelta(days=3)
    moment = tagged + timedelta(microseconds=1)  # what -rc5 itself brought is not closed since
    line(4, merged_release="v5.6", state="dropped", reported_at=now - timedelta(days=9), closed_at=moment)
    page = text(client, "/v5.6/")
    links = dict(re.findall(r'<a href="(\?[^"]*)"(?: aria-current="true")?>([^<]+)</a> (?=<a|</nav)', page))
    names = {name: unescape(href) for href, name in links.items()}
    assert list(names)[:5] == ["Open", "Unanswered", "Fix proposed", "Fix queued", "Blocking"]
    shown = {name: re.findall(r'data-row="(\d+)"', text(client, f"/v5.6/{href}")) for name, href in names.items()}
    assert {name: len(rows) for name, rows in shown.items() if rows} == {
        "Open": 2,
        "Unanswered": 2,
        "New since -rc5": 1,
        "Closed since -rc5": 1,
    }
    assert 'aria-current="true">Open</a>' in text(client, "/v5.6/?state=open")
    assert '<small id="merged-count">2 open, 2 closed</small>' in page
    assert "<h1>Regressions in v5.6: 2 open</h1>" in page
    assert "Nothing blocks the release." not in page  # which is out
    assert f'Released <time datetime="{release.released_at:%Y-%m-%d}' in page
    assert client.get("/v5.6/?reported_after=soon").status_code == 400


def test_closed_reports_fold_below_the_open_ones(client: Client, db: None, now: datetime) -> None:
    """So that what is open in both sections stands together; unless somebody has asked for closed ones."""
    line(1, merged_release="v5.6", state="no_response", reported_at=now)
    for number, state in enumerate(("fixed", "fixed", "invalid"), start=2):
        line(number, merged_release="v5.6", state=state, reported_at=now, closed_at=now)
    page = client.get("/v5.6/").content.decode()
    fold = page.partition('<details class="closed">')[2].partition("</details>")[0]
    assert "<summary>3 closed: 2 fixed, 1 withdrawn</summary>" in fold
    assert (page.count("data-row"), fold.count("data-row")) == (4, 3)
    for asked in ("state=closed", "order=subsystem&group=subsystem", "state=open&state=closed"):
        assert '<details class="closed">' not in client.get(f"/v5.6/?{asked}").content.decode()


@pytest.mark.parametrize(
    ("posted", "words"),
    [
        ({"do": "dance", "row": ["1:0"]}, "do: expected one of responded, working"),
        ({"do": "working"}, "row: expected 1 to 500 rows; found 0"),
        ({"do": "working", "row": ["x"]}, "row: expected KEY:REVISION; found 'x'"),
        ({"do": "working", "row": ["1:-1"]}, "row: expected KEY:REVISION"),
        ({"do": "note", "row": ["1:0"], "argument": "\0"}, "Note: expected some text; found none"),
        ({"do": "block", "row": ["1:0"], "release": "<b>"}, "release: expected a version like v6.12; found '<b>'"),
        ({"do": "fixed", "row": ["1:0"], "argument": "soon"}, "Fixed: expected a version like v6.12-rc4"),
        ({"do": "block", "row": ["1:0"], "argument": "soon"}, "Blocks the release: expected a version like v6.12-rc4"),
        (
            {"do": "working", "row": ["1:0"], "argument": "by Monday"},
            "Working on it: takes no text: choose Note for it",
        ),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(triage_page_toni: Client, posted: dict[str, Any], words: str) -> None:
    answer = triage_page_toni.post("/triage/change/", posted)
    assert (answer.status_code, words in answer.content.decode()) == (400, True)
    assert triage_page_toni.post("/triage/undo/", {"batch": "../../etc"}).status_code == 400
    assert triage_page_toni.get("/triage/change/").status_code == 405


def test_a_refusal_keeps_what_was_typed(triage_page_toni: Client) -> None:
    posted = {"do": "fixed", "row": ["1:0"], "argument": "v5.6 <soon>", "next": "/v5.6/", "notify_thread": "on"}

    def answer(**changed: str) -> str:
        return triage_page_toni.post("/triage/change/", {**posted, **changed}).content.decode()

    page = answer()
    for kept in (
        'name="row" value="1:0"',
        'name="next" value="/v5.6/"',
        'value="fixed" selected',
        'notify_thread" checked',
        ">v5.6 &lt;soon&gt;</textarea>",
        'href="/v5.6/"',
    ):
        assert kept in page
    assert "https://evil.example" not in answer(next="https://evil.example/")
    assert "Choose an action." in answer(do="")
    line = triage_page_toni.post("/triage/change/", posted, headers={"HX-Request": "true"})
    assert (line.status_code, line["Content-Type"]) == (400, "text/plain; charset=utf-8")


# --- odd data -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a/b", "100%", "50%2F50", "häufig ☃", "a b?c#d&e=f", "'\"<>", "..", "a//b", "x" * 500]
)
def test_names_of_every_kind_have_pages(client: Client, db: None, name: str) -> None:
    from tracker.services.report_summary import clipped

    Machine.objects.create(name=name)
    Metric.objects.create(name=name)
    line(
        1,
        merged_release="v5.6",
        machine=clipped(name),
        metric=clipped(name),
        subsystem=clipped(name),
        author=clipped(name.lower()),
    )
    for kind in ("machine", "metric", "subsystem", "author"):
        listed = text(client, f"/{kind}/")
        link = listed.partition("<tbody>")[2].partition('href="')[2].partition('"')[0]
        assert "mm: change 1" in text(client, unescape(link)), (kind, link)


@pytest.mark.parametrize("name", ["a/b@x", "100%@x", "häuf☃@x", "50%2F@x", "a?b#c@x", '"quoted id"@x'])
def test_message_ids_of_every_kind_are_linked_whole(world: World, client: Client, name: str) -> None:
    from urllib.parse import unquote

    report = world.report()
    Event.objects.create(
        report=report, key="k", kind="responded", occurred_at=NOW, role="author", message_id=name, recorded_at=NOW
    )
    page = text(client, f"/report/{report.tag}/")
    links = [each.partition('"')[0] for each in page.split('href="https://lore.kernel.org/r/')[1:]]
    assert name in [unquote(each) for each in links]
    assert not any(set(each) & set("/?# ") for each in links)


def test_a_title_of_five_thousand_letters_stays_in_its_place(world: World, client: Client) -> None:
    report = world.report()
    Commit.objects.filter(pk=report.culprit_id).update(title="mm: " + "long " * 1000)
    Report.objects.update(title="[LKP] " + "long " * 1000)
    release = Report.objects.values_list("shift_left_release", flat=True).get()
    call_command("refold", verbosity=0)
    assert len(text(client, f"/{release}/")) < 60_000
    assert len(text(client, f"/report/{report.tag}/")) < 60_000


# --- what is shown --------------------------------------------------------------------------------


def test_the_front_page_tells_of_the_cycle_that_goes_on(world: World, client: Client) -> None:
    Release.objects.all().delete()
    first = world.report("mm: a")
    world.tag("v9.1-rc1")
    world.track()
    second = world.report("mm: b")
    world.later(200)
    world.tag("v9.1-rc2")
    world.track()
    world.post(DANA, "I am working on a fix.", to=message_id(first))
    world.read()
    release = Release.objects.get(version="v9.1")
    assert [each.version for each in release.candidates.order_by("number")] == ["v9.1-rc1", "v9.1-rc2"]
    page = text(client, "/")
    assert '<a href="/v9.1/">v9.1</a>' in page
    assert "v9.1-rc2 came out on" in page
    assert "v9.1-rc3 expected around" not in page  # the story is of September: nobody knows any more
    assert "2 regressions are open in v9.1" in page
    assert "<b>1</b> unanswered" in page
    assert "Open regressions: " in page
    assert Report.objects.get(pk=second.pk).merged_release == "v9.1"
    again = text(client, "/")
    assert again == page


def test_a_report_moves_to_the_next_cycle_when_a_release_is_tagged(world: World) -> None:
    Release.objects.all().delete()
    world.commit("mm: a")
    world.tag("v9.1-rc1")
    world.track()
    early = world.report("mm: early", "e" * 40, tree={"name": "mm", "branch": "x"})
    assert Report.objects.get(pk=early.pk).shift_left_release == "v9.1"
    world.commit("Linux 9.1")
    world.tag("v9.1")
    world.track()
    late = world.report("mm: late", "d" * 40, tree={"name": "mm", "branch": "x"})
    world.commit("Linux 9.2-rc1")
    world.tag("v9.2-rc1")
    world.track()
    shifted = dict(Report.objects.values_list("pk", "shift_left_release"))
    assert shifted == {early.pk: "v9.1", late.pk: "v9.2"}


def test_a_machine_tells_how_it_went(world: World, client: Client) -> None:
    report = world.report()
    world.post(DANA, "I am working on a fix.", to=message_id(report))
    world.read()
    page = text(client, "/machine/lab7-m1/")
    for words in ("64", "a developer replied to 1 of 1 regressions", "no closed reports yet", "By release"):
        assert words in page
    assert report.culprit.sha10 in page
    assert "higher is better (source: table)" in text(client, "/metric/vm-scan.ops_per_sec/")
    assert report.culprit.sha10 in text(client, "/author/dana@dev.example/")
    assert report.culprit.sha10 in text(client, "/subsystem/mm/vmscan/")
    assert "vm-scan.ops_per_sec (1)" in page  # a filter, with how many reports it would leave
    assert report.culprit.sha10 in text(client, "/machine/lab7-m1/?metric=vm-scan.ops_per_sec")
    assert report.culprit.sha10 not in text(client, "/machine/lab7-m1/?metric!=vm-scan.ops_per_sec")


def test_how_fast_a_person_answers_is_shown_to_them_and_to_operators(world: World, client: Client) -> None:
    report = world.report()
    world.post(DANA, "I am working on a fix.", to=message_id(report))
    world.read()
    path = f"/author/{DANA.email}/"
    assert "a developer replied" not in text(client, path)
    assert report.culprit.sha10 in text(client, path)
    client.force_login(User.objects.create_user("dana", DANA.email))
    assert "a developer replied to 1 of 1 regressions" in text(client, path)
    client.force_login(User.objects.create_superuser("kim", "kim@x.example"))
    assert "a developer replied to 1 of 1 regressions" in text(client, path)


def test_a_report_as_data(world: World, client: Client) -> None:
    report = world.report()
    world.post(DANA, "I can reproduce it.\nFrom here on I look.", to=message_id(report))
    world.read()
    data = client.get(f"/report/{report.culprit.sha[:12]}.json").json()
    assert data["culprit"] == report.culprit.sha
    assert data["state"] == Report.objects.get().state
    assert data["message_id"] == message_id(report)
    assert data["events"][0]["kind"] == "reported"
    assert data["findings"][0]["old"]["samples"] == [1000, 1010, 990]
    mbox = b"".join(client.get(f"/report/{report.culprit.sha}.mbox"))  # type: ignore[arg-type]
    assert mbox.count(b"From mboxrd@z") == 2
    assert b"\n>From here on" in mbox
    page = text(client, f"/report/{report.culprit.sha}/")
    assert f"b4 mbox {message_id(report)}" in page
    assert "▼\xa0−30.0%" in page
    assert "1,000 → 700 1/s" in page
    assert "Waiting for <bdi>Dana Brook</bdi>" in page or "Waiting for <bdi>dana@dev.example</bdi>" in page
    assert "<mark>" in page
    brief = text(client, f"/report/{report.culprit.sha}/brief/")
    assert "I can reproduce it." in brief
    assert "<html" not in brief


def test_an_answer_that_is_undone_was_none(world: World) -> None:
    report = world.report()
    report_summary.refresh([report.pk])
    before = Report.objects.get().last_human_reply_at
    answered = EventData("answered", EventKind.RESPONDED, world.later(), Role.AUTHOR, actor="mira")
    event_log.record([event_log.event_row(report, answered, world.now)])
    report_summary.refresh([report.pk])
    assert Report.objects.get().last_human_reply_at == answered.occurred_at
    event_log.record([event_log.reversal(report, "answered", "mira", world.later())])
    assert Report.objects.get().last_human_reply_at == before


def test_the_line_of_a_report_follows_what_is_known(world: World) -> None:
    report = world.report()
    found = Report.objects.get()
    assert (found.metric, found.machine, found.suite, found.author) == (
        "vm-scan.ops_per_sec",
        "lab7-m1",
        "vm-scan",
        "dana@dev.example",
    )
    assert (found.change, found.spark, found.base) == (pytest.approx(-30.0), "1,0,1|20,19,20", "v9.0")
    before = found.last_human_reply_at
    world.post(DANA, "Thanks.", to=message_id(report))
    world.read()
    found = Report.objects.get()
    assert before is not None
    assert found.last_human_reply_at is not None
    assert found.last_human_reply_at > before
    late = world.mail(DANA, "From the future.", to=message_id(report)).replace(b"Date: ", b"X-Date: ")
    world.inbox.add(late.replace(b"X-Date:", b"Date: Fri, 01 Jan 2100 00:00:00 +0000\nX-Date:"))
    world.read()
    assert Report.objects.get().last_human_reply_at <= world.now
    toni = User.objects.create_superuser("kim")
    client = Client()
    client.force_login(toni)
    client.post("/triage/change/", {"do": "note", "row": rows(found), "argument": "Cache ALIGN issue"})
    assert "cache align issue" in Report.objects.get().words
    everything = {
        name: getattr(Report.objects.get(), name)
        for name in ("urgency", "words", "merged_release", "shift_left_release", "last_human_reply_at")
    }
    Report.objects.update(urgency=0, words="", merged_release="", shift_left_release="", last_human_reply_at=None)
    call_command("refold", verbosity=0)
    assert {name: getattr(Report.objects.get(), name) for name in everything} == everything


# --- What people do at the triage pages: who may do what, views that are kept, and what is said in a thread ---


@pytest.fixture
def triage_actions_toni(db: None) -> Client:
    """A triager."""
    user = person("triager", "toni", "toni@lab.example")
    client = Client()
    client.force_login(user)
    return client


def chosen_rows(*reports: Report) -> list[str]:
    return [f"{each.pk}:{Report.objects.get(pk=each.pk).revision}" for each in reports]


def page_text(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.content[:300]
    return answer.content.decode()


# --- who may what ---------------------------------------------------------------------------------


def test_strangers_read_and_change_nothing(client: Client, db: None) -> None:
    report = line(1, merged_release="v5.6")
    page = page_text(client, "/v5.6/")
    assert 'name="row"' not in page
    answer = client.post("/triage/change/", {"do": "working", "row": chosen_rows(report)})
    assert (answer.status_code, answer["Location"]) == (302, "/sign-in/?next=/triage/change/")
    assert client.post("/views/", {"name": "x"}).status_code == 302
    assert Report.objects.get().state == "no_response"
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.create_superuser("kim"))
    assert strict.post("/triage/change/", {"do": "working", "row": chosen_rows(report)}).status_code == 403


def test_a_maintainer_changes_what_he_was_told_of(client: Client, db: None) -> None:
    user = User.objects.create_user("dana@dev.example", "Dana@dev.example")
    client.force_login(user)
    own, received, other = line(1, authors=["dana@dev.example"]), line(2, recipients=["dana@dev.example"]), line(3)
    client.post("/triage/change/", {"do": "working", "row": chosen_rows(own, received, other)})
    assert [each.state for each in Report.objects.order_by("pk")] == ["working", "working", "no_response"]
    assert [each.role for each in Event.objects.order_by("pk")] == ["author", "maintainer"]
    event = Event.objects.order_by("pk")[0]
    assert client.post(f"/report/{own.culprit.sha}/take-back/", {"key": event.key}).status_code == 403
    assert page_text(client, f"/report/{other.culprit.sha}/").count("<option") == 0


def test_a_timeline_is_taken_back_by_triagers(triage_actions_toni: Client, world: World) -> None:
    report = world.report()
    world.post(DANA, "I am working on a fix.", to=message_id(report))
    world.read()
    assert Report.objects.get().state == "working"
    event = Event.objects.get(kind="working")
    triage_actions_toni.post(f"/report/{report.culprit.sha}/take-back/", {"key": event.key})
    assert Report.objects.get().state != "working"
    page = page_text(triage_actions_toni, f"/report/{report.culprit.sha}/")
    assert "Undone." in page
    assert 'class="reversed"' in page


def test_views_are_kept_and_shared(triage_actions_toni: Client, client: Client) -> None:
    line(1, merged_release="v5.6", state="working")
    triage_actions_toni.post("/views/", {"name": "in work", "query": "state=working", "next": "/v5.6/"})
    assert "in work" in page_text(triage_actions_toni, "/v5.6/")
    assert "in work" not in page_text(client, "/v5.6/")
    triage_actions_toni.post("/views/", {"name": "in work", "query": "state!=working", "shared": "on"})
    assert '<a href="?state!=working">in work</a>' in page_text(client, "/v5.6/")
    many = "&".join(f"machine=lkp-csl-2sp{number:03}-{'z' * 22}" for number in range(50))
    triage_actions_toni.post("/views/", {"name": "many", "query": many})
    assert SavedView.objects.get(name="many").query.count("machine=") == 50  # none is cut
    response = triage_actions_toni.post("/views/", {"name": "long", "query": "q=" + "x" * 10_000})
    assert (response.status_code, response.content[:6]) == (400, b"query:")
    SavedView.objects.get(name="many").delete()
    response = triage_actions_toni.post("/views/", {"name": "bad", "query": "state=sleeping"})
    assert (response.status_code, b"state: expected" in response.content) == (400, True)
    assert triage_actions_toni.post("/views/", {"name": " ", "query": ""}).status_code == 400
    view = SavedView.objects.get()
    eve = Client()
    eve.force_login(User.objects.create_user("eve"))
    eve.post(f"/views/{view.pk}/delete/")
    assert SavedView.objects.exists()
    triage_actions_toni.post(f"/views/{view.pk}/delete/", {"next": "https://evil.example/"})
    assert not SavedView.objects.exists()
    assert triage_actions_toni.post(f"/views/{view.pk}/delete/", {"next": "https://evil.example/"})["Location"] == "/"


# --- said on the list, too ------------------------------------------------------------------------


def test_what_is_done_can_be_said_in_the_thread(world: World, triage_actions_toni: Client) -> None:
    report = world.report()
    posted = {
        "do": "note",
        "row": chosen_rows(report),
        "argument": "It is the <lock>, see v9.1.",
        "notify_thread": "on",
    }
    triage_actions_toni.post("/triage/change/", posted)
    triage_actions_toni.post(
        "/triage/change/", {"do": "block", "row": chosen_rows(report), "release": "v9.1"}
    )  # not notify_thread
    compose_follow_ups(world.settings, world.later(), approve_first=False)
    mail = OutgoingMail.objects.exclude(purpose="report").get()
    assert (mail.state, mail.purpose) == ("approved", f"said {Event.objects.get(kind='noted').key}")
    assert "toni updated this report: noted." in mail.body
    assert '  "It is the <lock>, see v9.1."' in mail.body
    assert max(len(each) for each in mail.body.splitlines() if report.culprit.sha not in each) <= 78
    assert f"In-Reply-To: <{message_id(report)}>".encode() in bytes(mail.raw)
    compose_follow_ups(world.settings, world.later(), approve_first=False)
    assert OutgoingMail.objects.exclude(purpose="report").count() == 1  # and once
    mail_transitions.mark_sent(mail.message_id, world.now, world.now)
    compose_due(world.settings, world.later())
    compose_follow_ups(world.settings, world.later(), approve_first=False)
    assert OutgoingMail.objects.count() == 2


def test_what_was_taken_back_before_it_went_out_is_not_said(world: World, triage_actions_toni: Client) -> None:
    report = world.report()
    triage_actions_toni.post("/triage/change/", {"do": "disputed", "row": chosen_rows(report), "notify_thread": "on"})
    batch = Event.objects.get(kind="disputed").batch
    compose_follow_ups(world.settings, world.later())
    assert OutgoingMail.objects.exclude(purpose="report").get().state == "composed"
    triage_actions_toni.post("/triage/undo/", {"batch": batch})
    compose_follow_ups(world.settings, world.later())
    assert OutgoingMail.objects.exclude(purpose="report").get().state == "cancelled"


def test_an_enqueued_task_may_be_lost(
    settings: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import bot.tasks
    from bot.celery import app
    from tracker.services.installation import enqueue

    enqueued: list[str] = []
    monkeypatch.setattr(app, "send_task", lambda name, **more: enqueued.append(name))
    enqueue("send_mail")
    assert enqueued == ["send_mail"]
    assert (bot.tasks.send_mail.name, bot.tasks.take_results.name) == ("send_mail", "take_results")

    def gone(name: str, **more: Any) -> None:
        raise ConnectionRefusedError("nobody there")

    monkeypatch.setattr(app, "send_task", gone)
    enqueue("send_mail")
    assert "send_mail: could not wake a worker: nobody there" in caplog.text


def test_a_long_name_is_there_whatever_else_is_asked(client: Client, db: None) -> None:
    from tracker.services.report_summary import clipped

    line(1, merged_release="v5.6", machine=clipped("m" * 130))
    assert "mm: change 1" in page_text(client, f"/v5.6/?machine={'m' * 130}")
    assert "No reports." in page_text(client, f"/v5.6/?machine={'m' * 130}&state=fixed")


def test_who_is_signed_out_is_told_in_a_line(client: Client, db: None) -> None:
    answer = client.post("/triage/change/", {"do": "working", "row": "1:0"}, headers={"HX-Request": "true"})
    assert (answer.status_code, answer["Content-Type"]) == (401, "text/plain; charset=utf-8")
    assert "signed out, so nothing was changed" in answer.content.decode()


def test_an_answer_by_hand_ends_a_silence(world: World) -> None:
    report = world.report()
    before = Report.objects.get()
    maintainer = Client()
    maintainer.force_login(User.objects.create_user("dana", "dana@dev.example"))
    maintainer.post("/triage/change/", {"do": "responded", "row": chosen_rows(report)})
    after = Report.objects.get()
    assert before.last_human_reply_at is not None
    assert after.last_human_reply_at is not None
    assert after.last_human_reply_at > before.last_human_reply_at
    assert after.revision > before.revision
    call_command("refold", verbosity=0)
    assert Report.objects.get().last_human_reply_at == after.last_human_reply_at


def test_an_author_who_is_learned_later_has_the_report_on_his_page(world: World, client: Client) -> None:
    sha = world.commit("mm: a")
    world.ingest(world.result(sha, "mm: a"))
    Commit.objects.update(author_email="")  # as of a report that came by mail
    call_command("refold", verbosity=0)
    assert Report.objects.get().author == ""
    again = world.result(sha, "mm: a", id="again", machine={"id": "lab7-m2", "cpus": 8})
    world.ingest(again)
    assert Report.objects.get().author == "dana@dev.example"
    assert sha[:10] in page_text(client, "/author/Dana@dev.example/?state=open&state=closed")


# --- What is new: since a day, since Monday, since the last visit ---


def event(report: Report, at: datetime, recorded_at: datetime) -> None:
    value = EventData(f"noted:{recorded_at}", EventKind.NOTED, at, actor="kim", remark="x")
    event_log.append([event_log.event_row(report, value, recorded_at)])


def shown(page: str) -> set[int]:
    return {int(pk) for pk in re.findall(r'data-row="(\d+)"', page)}


@pytest.mark.django_db
def test_what_became_known_counts_and_not_when_it_happened(client: Client) -> None:
    old, late, recent = (line(number, merged_release="v5.6", state="responded") for number in range(3))
    event(old, NOW - timedelta(days=9), NOW - timedelta(days=9))
    event(late, NOW - timedelta(days=9), NOW - timedelta(hours=1))  # read later than it was written
    event(recent, NOW - timedelta(hours=2), NOW - timedelta(hours=1))
    day = NOW - timedelta(days=3)
    assert shown(text(client, f"/v5.6/?changed_after={day:%Y-%m-%d}")) == {late.pk, recent.pk}
    assert shown(text(client, f"/v5.6/?changed_after={NOW - timedelta(minutes=30):%Y-%m-%dT%H:%M}")) == set()
    assert shown(text(client, f"/v5.6/?changed_after={NOW - timedelta(minutes=30):%Y-%m-%dx%H:%M}")) == set()
    assert shown(text(client, f"/v5.6/?changed_after!={day:%Y-%m-%d}")) == {old.pk}
    assert old.pk in shown(text(client, "/v5.6/?changed_after=0999-01-01"))
    never = client.get("/v5.6/?changed_after=0001-01-01T00:00:00%2B14:00")
    assert "expected a day or a time in UTC" in never.content.decode()
    exported = json.loads(text(client, f"/v5.6.json?changed_after={day:%Y-%m-%d}"))
    assert len(exported["merged"]) == 2
    api = json.loads(text(client, f"/api/v1/reports?release=v5.6&changed_after={day:%Y-%m-%d}"))
    assert {row["culprit"] for row in api} == {late.culprit.sha, recent.culprit.sha}
    for bad in ("soon", "2026-13-01", "2026-03-01T25:00"):
        assert "expected a day or a time in UTC" in text(client, f"/v5.6/?changed_after={bad}", 400)
        assert "expected a day or a time in UTC" in text(client, f"/api/v1/reports?changed_after={bad}", 400)
    assert "Changed since Monday" in text(client, "/v5.6/")


@pytest.mark.django_db
def test_rows_are_marked_that_are_new_since_the_last_visit(
    triage_page_toni: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, recent = line(0, merged_release="v5.6"), line(1, merged_release="v5.6")
    at = [NOW]
    monkeypatch.setattr(views.timezone, "now", lambda: at[0])
    event(old, NOW - timedelta(days=9), NOW - timedelta(days=9))

    def visit(minutes: int) -> str:
        at[0] += timedelta(minutes=minutes)
        return text(triage_page_toni, "/v5.6/")

    first = visit(0)
    assert "since my last visit" not in first
    assert ">new</span>" not in first
    event(recent, at[0], at[0] + timedelta(hours=5))
    assert ">new</span>" not in visit(20)  # the same visit
    page = visit(600)
    assert page.count(">new</span>") == 1
    (link,) = re.findall(r'href="(\?changed_after=[^"]+T[^"]+)"[^>]*>Changed since my last visit', page)
    assert shown(text(triage_page_toni, f"/v5.6/{unescape(link)}")) == {recent.pk}
    assert visit(10).count(">new</span>") == 1  # still the same visit
    assert ">new</span>" not in visit(600)


# --- Notes on machines, metrics and subsystems ---


@pytest.mark.django_db
def test_a_note_on_a_machine_stands_on_its_page_and_with_its_reports(triage_page_toni: Client) -> None:
    machine = "lab7/m1 " + "x" * 200  # longer than reports have it
    Machine.objects.create(name=machine)
    report = line(0, machine=clipped(machine), merged_release="v5.6")
    page, form = f"/machine/{quote(machine)}/", f"/write/note/machine/{quote(machine)}/"
    triage_page_toni.post(form, {"text": "A new <b>cooler</b> since March."})
    shown_at = (page, f"/report/{report.culprit.sha}/")
    for address in shown_at:
        assert "A new &lt;b&gt;cooler&lt;/b&gt; since March." in text(Client(), address)
    triage_page_toni.post(form, {"text": ""})
    for address in shown_at:
        assert "cooler" not in text(Client(), address)
    assert TextRevision.objects.count() == 2  # all versions stay
    assert triage_page_toni.post("/write/note/author/a@b.example/", {"text": "x"}).status_code == 404
    assert Client().post(form, {"text": "x"}).status_code in (302, 403)
    assert "expected at most 20,000 characters" in triage_page_toni.post(form, {"text": "x" * 20_001}).content.decode()


@pytest.mark.django_db
def test_a_subsystem_leads_to_its_parts(client: Client) -> None:
    for number, name in enumerate(("mm", "mm/vmscan", "mmc")):
        line(number, subsystem=name, state="responded")
    link = re.search(r'href="(/search/[^"]+)">reports of mm/…', text(client, "/subsystem/mm/"))
    assert link
    assert len(re.findall(r'data-row="', text(client, unescape(link[1])))) == 1


@pytest.mark.django_db
def test_of_two_there_is_no_percentage(client: Client) -> None:
    Machine.objects.create(name="m1")
    for number in range(2):
        line(number, machine="m1", state="invalid", merged_release="v5.6")
    page = text(client, "/machine/m1/")
    assert "2 of 2 closed or disputed reports were invalid or disputed" in page
    assert "100%" not in page
    line(2, machine="m1", state="fixed", merged_release="v5.6")
    cache.clear()
    assert "67%: 2 of 3 closed or disputed reports" in text(client, "/machine/m1/")
