"""Search: words in reports and mails, fields, what leads straight to a report; the same on both databases."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import feedparser
import pytest
from django.core.cache import cache
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from tests.support.rows import line
from tracker.domain import search
from tracker.domain.events import InvalidInput
from tracker.domain.search import MOST, parse, suggestions
from tracker.models import Commit, Message, Metric, RawMessage, RelatedCommit, Report
from tracker.pages import search as search_index
from tracker.pages.search import _CONDITIONS, matching, named
from tracker.services.report_summary import clipped

# --- Search: words in reports and mails, fields, what leads straight to a report; the same on both databases ---

MARCH = datetime(2026, 3, 10, tzinfo=UTC)


def mail(report: Report, text: str, number: int) -> Message:
    source = RawMessage.objects.create(digest=str(number), compressed=b"", received_at=MARCH)
    return Message.objects.create(
        public=True, message_id=f"{number}/a+b@dev.example", report=report, source=source, kind="person", own_text=text
    )


@pytest.fixture
def reports(db: None) -> None:
    first = {"subsystem": "fs/xfs", "metric": "will-it-scale.per_process_ops", "change": -12.0, "state": "working"}
    first |= {"merged_release": "v6.12", "words": "xfs: defer the log will-it-scale.per_process_ops"}
    xfs = line(1, scenario="a", reported_at=MARCH, **first)
    second = {"subsystem": "mm", "metric": "vm-scalability.throughput", "change": 25.0, "verdict": "improvement"}
    second |= {"shift_left_release": "v6.13", "words": "mm: page fault path"}
    line(2, scenario="b", reported_at=datetime(2026, 4, 2, tzinfo=UTC), **second)
    third = {"subsystem": "mm/slub", "change": -4.0, "awaited": "reporter", "author": "dana@dev.example"}
    line(3, scenario="c", reported_at=datetime(2025, 12, 31, tzinfo=UTC), words="slub: page allocation", **third)
    mail(xfs, "The deferral moves the contention to the AIL lock; l'été.", 1)
    mail(xfs, "It is the page cache, not the fault handler.", 2)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("xfs", "a"),
        ("page", "abc"),  # in reports, and in a mail
        ("page fault", "ab"),
        ('"page fault"', "b"),
        ("allo*", "c"),
        ("allo", ""),
        ("per_process_ops", "a"),
        ("will-it-scale.per_process_ops", "a"),
        ("contention AIL", "a"),
        ("contention handler", ""),  # in two mails
        ("été", "a"),
        ("page -fault", "c"),
        ("subsystem:mm", "bc"),
        ("-subsystem:mm", "a"),
        ("subsystem:fs state:open", "a"),
        ("state:working", "a"),
        ("metric:will-it-scale worse:>10", "a"),
        ("worse:>3", "ac"),
        ("better:>20%", "b"),
        ("awaiting:reporter", "c"),
        ("author:Dana@", "c"),
        ("after:2026-03 before:2026-04", "a"),
        ("after:2026", "ab"),
        ("before:2026-03-10", "c"),
        ("release:6.12", "a"),
        ("release:v6.13", "b"),
        ("kind:improvement", "b"),
        ("assigned:nobody", "abc"),
        ("title:page", "bc"),
        ("mm: page", "b"),  # no field is called mm
        ('subsystem:"mm/slub"', "c"),
        ("...", "abc"),
        ("blocking:yes", ""),
        ("stable:missing", ""),
    ],
)
def test_what_is_found(reports: None, query: str, expected: str) -> None:
    found = matching(search.parse(query)).values_list("scenario", flat=True)
    assert "".join(sorted(found)) == expected


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("worse:lots", "worse: expected a change in per cent"),
        ("after:march", "after: expected a date like 2026-03"),
        ("after:2026-13", "after: expected a date"),
        ("state:sleeping", "state: expected one of"),
        ("awaiting:godot", "awaiting: expected one of"),
        ("blocking:maybe", "blocking: expected one of yes"),
        ("x " * 31, "expected at most 30 terms"),
        ("x" * 1001, "expected at most 1,000 characters"),
    ],
)
def test_what_is_none_is_said_beside_the_box(reports: None, client: Client, query: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        matching(search.parse(query))
    page = client.get("/search/", {"q": query})
    assert (page.status_code, why in page.content.decode(), "aria-invalid" in page.content.decode()) == (
        400,
        True,
        True,
    )


@pytest.mark.parametrize("query", ["(((", "\U0001f600", "- /", '"..."'])
def test_what_is_in_no_index_finds_nothing_rather_than_all(reports: None, client: Client, query: str) -> None:
    page = client.get("/search/", {"q": query})
    assert (page.status_code, "can be searched for: expected a word" in page.content.decode()) == (400, True)
    assert "data-row" not in page.content.decode()


@given(st.text(max_size=120))
def test_any_text_is_a_query_or_refused(text: str) -> None:
    try:
        found = search.parse(text)
    except InvalidInput:
        return
    assert found == search.parse(text)
    assert all(search_index.words_of(phrase) is not None for phrase in found.phrases)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(text=st.text(st.sampled_from("ab\"*'():-^{}+~&|!<>\\ %_ö\0"), max_size=30))
def test_operators_of_the_databases_are_plain_text(db: None, text: str) -> None:
    search_index.reports_with([text])


def test_a_name_that_is_stored_cut_is_found_by_the_whole(db: None) -> None:
    name = "stress-ng." + "x" * 130
    row = line(1, metric=clipped(name), reported_at=MARCH)
    assert list(matching(parse(f"metric:{name}"))) == [row]


def test_a_feed_of_any_query_is_xml(reports: None, client: Client) -> None:
    response = client.get("/search.atom", {"q": "xfs \x01"})
    assert response.status_code == 200
    assert not feedparser.parse(response.content).bozo


@pytest.mark.parametrize(
    "text",
    ["1" * 12, "1/a+b@dev.example", "<1/a+b@dev.example>", "https://lore.kernel.org/r/1%2Fa+b@dev.example/",
     "https://lore.kernel.org/linux-mm/1%2Fa+b@dev.example/T/#u", "a title of its own"],
)  # fmt: skip
def test_what_names_a_report_leads_to_it(reports: None, client: Client, text: str) -> None:
    report = Report.objects.get(scenario="a")
    report.culprit.sha, report.culprit.title = "1" * 40, "a title of its own"
    report.culprit.save()
    Report.objects.filter(pk=report.pk).update(words=f"{report.words} a title of its own")
    assert named(text) == report
    answer = client.get("/search/", {"q": text})
    assert (answer.status_code, answer["Location"]) == (302, f"/report/{'1' * 40}/")


@pytest.mark.parametrize("text", ["a@b\0c", "\0", "the \0 title", "subsystem:\0"])
def test_no_database_stores_nul(reports: None, client: Client, text: str) -> None:
    assert client.get("/search/", {"q": text}).status_code == 200


def test_the_page_and_its_pages(db: None, client: Client, django_assert_max_num_queries: Any) -> None:
    for number in range(1, 131):
        line(number, words="the same words", reported_at=MARCH)
    with django_assert_max_num_queries(6):
        page = client.get("/search/?q=same").content.decode()
    assert page.count("data-row=") == 100
    following = page.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert client.get(f"/search/{following}").content.decode().count("data-row=") == 30
    assert "No reports" in client.get("/search/?q=another").content.decode()
    assert "What can be searched for" in client.get("/search/").content.decode()
    assert 'name="q"' in client.get("/").content.decode()


def test_the_index_follows_every_change(reports: None) -> None:
    report = Report.objects.get(scenario="b")
    report.words = "quite another thing"
    report.save()
    assert search_index.reports_with(["another"]) == [report.pk]
    assert report.pk not in (search_index.reports_with(["page"]) or ())
    Message.objects.filter(own_text__contains="AIL").delete()
    assert search_index.reports_with(["contention"]) == []
    Message.objects.update(own_text="rewritten")
    assert search_index.reports_with(["rewritten"]) == [Report.objects.get(scenario="a").pk]


def test_the_sha_of_a_fix_leads_to_its_report(reports: None, client: Client) -> None:
    fixed, merged = Report.objects.get(scenario="a"), Report.objects.get(scenario="b")
    Report.objects.filter(pk=fixed.pk).update(fix_sha="fe" * 6)  # as a mail gave it
    backport = Commit.objects.create(sha="bc" * 20)
    RelatedCommit.objects.create(report=merged, commit=backport, part="fix", rule="fixes-tag")
    assert named("fe" * 6) == fixed
    assert named("fe" * 20) == fixed
    assert named("bc" * 4) == merged
    RelatedCommit.objects.create(report=fixed, commit=backport, part="fix", rule="fixes-tag")
    assert named("bc" * 4) is None  # it is a part of two
    found = matching(search.parse("bc" * 4)).values_list("scenario", flat=True)
    assert sorted(found) == ["a", "b"]


def offered(client: Client, text: str) -> list[list[str]]:
    answer = client.get("/search/suggestions/", {"q": text})
    assert answer.status_code == 200
    found: list[list[str]] = answer.json()["suggestions"]
    return found


def test_names_and_titles_are_offered_while_one_types(reports: None, client: Client) -> None:
    cache.clear()
    assert offered(client, "slub") == [
        ["subsystem:mm/slub", "subsystem"],
        ["mm: change 3", f"report about {'0' * 9}4{'0' * 2}"],
    ]
    Metric.objects.create(name="will-it-scale.per_process_ops")
    cache.clear()
    assert ["metric:will-it-scale.per_process_ops", "metric"] in offered(client, "will")
    assert offered(client, "release:")[0][1] == "release"
    assert offered(client, "\0") == offered(client, "") == []


def test_typing_asks_one_query_once_the_names_are_known(
    reports: None, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    offered(client, "slub")
    with django_assert_num_queries(2):  # words, and the rows of what has them
        offered(client, "slub p")
    with django_assert_num_queries(0):
        offered(client, "subsystem:mm")


def test_each_field_has_its_condition() -> None:
    assert set(_CONDITIONS) == set(search.FIELDS)


def test_a_search_for_a_name_leads_to_its_page(reports: None, client: Client) -> None:
    cache.clear()
    page = client.get("/search/", {"q": "xfs"}).content.decode()
    assert '<a href="/subsystem/fs/xfs/">fs/xfs</a>' in page
    assert "Pages of these names" not in client.get("/search/", {"q": "subsystem:mm"}).content.decode()


# --- What the search box offers: fields, names and choices that complete the last term ---

NAMES = {
    "subsystem": ["fs/xfs", "mm", "xfs", "net sched"],
    "metric": ["will-it-scale.per_process_ops", "xfs_io.ops", "wis.ops"],
    "author": ["dana@dev.example"],
    "state": ["open", "no_response"],
}


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("", []),
        ("x", []),  # one letter says nothing
        ("xf", ["subsystem:xfs", "subsystem:fs/xfs", "metric:xfs_io.ops"]),
        ("su", ["subsystem:", "suite:"]),
        ("will", ["metric:will-it-scale.per_process_ops"]),
        ("process", ["metric:will-it-scale.per_process_ops"]),
        ("subsystem:", ["subsystem:fs/xfs", "subsystem:mm", "subsystem:xfs", 'subsystem:"net sched"']),
        ("subsystem:XF", ["subsystem:xfs", "subsystem:fs/xfs"]),
        ("worse:>10 state:no", ["worse:>10 state:no_response"]),
        ("page -dan", ["page -author:dana@dev.example"]),
        ('subsystem:"net s', ['subsystem:"net sched"']),
        ("subsystem:mm", []),  # it is whole
        ("colour:re", []),
        ("mm " * 100, []),
    ],
)
def test_the_last_term_is_completed(typed: str, offered: list[str]) -> None:
    assert [each.text for each in suggestions(typed, NAMES)] == offered


@given(st.text(max_size=80), st.lists(st.text(max_size=20), max_size=20))
def test_any_text_has_few_suggestions_that_can_be_searched_for(typed: str, names: list[str]) -> None:
    found = suggestions(typed, {"subsystem": names})
    assert len(found) <= MOST
    assert all(each.text != typed for each in found)


@given(st.from_regex(r"[a-z]{2,8}", fullmatch=True))
def test_a_completed_name_is_what_the_search_reads(begun: str) -> None:
    [*_, last] = suggestions(begun, {"subsystem": [f"{begun} and/more"]})
    [term] = parse(last.text).fields
    assert (term.name, term.value) == ("subsystem", f"{begun} and/more")
