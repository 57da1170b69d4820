"""The list API: shapes as OpenAPI says, filters of the triage table, pages, errors that name their parameter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import httpx
import jsonschema
import pytest
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.test import Client

from tests.conftest import ROOT
from tests.tracker.lines import line
from tests.world import World
from tracker.models import Commit, Event, Finding, Machine, Metric, Report, Scenario, Tree
from tracker.wsgi import application

NOW = datetime(2026, 3, 1, tzinfo=UTC)

MARCH = datetime(2026, 3, 10, tzinfo=UTC)
LISTS = (
    "reports",
    "findings",
    "events",
    "messages",
    "releases",
    "curves",
    "jobs",
    "suggestions",
    "metrics",
    "machines",
    "commits",
    "measurements",
)


@pytest.fixture
def table(db: None) -> None:
    Metric.objects.create(name="wis.ops", direction="higher")
    Metric.objects.create(name="lat.us", direction="lower")
    line(1, subsystem="mm", metric="wis.ops", change=-12.0, state="working", merged_release="v6.12", changed_at=MARCH)
    line(2, subsystem="fs", metric="lat.us", change=30.0, shift_left_release="v6.12", awaited="reporter")
    line(3, subsystem="mm", metric="x", verdict="improvement", change=5.0)


def culprits(client: Client, query: str) -> list[str]:
    answer = client.get(f"/api/v1/reports?{query}")
    assert answer.status_code == 200, answer.content
    return [each["culprit"][9] for each in answer.json()]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "234"),
        ("subsystem=mm", "24"),
        ("subsystem!=mm", "3"),
        ("state=working", "2"),
        ("state=open&awaiting=reporter", "3"),
        ("kind=improvement", "4"),
        ("release=v6.12", "23"),
        ("updated_since=2026-03-01", "2"),
        ("updated_since=2026-03-10T00:00:01Z", ""),
        ("updated_since=2026-03-10T01:00:00+01:00", "2"),
    ],
)
def test_filters_are_those_of_the_triage_table(table: None, client: Client, query: str, expected: str) -> None:
    assert "".join(culprits(client, query)) == expected


def test_signs(table: None, client: Client) -> None:
    rows = client.get("/api/v1/reports").json()
    assert [(each["change"], each["change_pct"]) for each in rows] == [(-12.0, -12.0), (30.0, -30.0), (5.0, None)]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("state=sleeping", "state: "),
        ("colour=red", "'colour': there is no such filter"),
        ("limit=0", "limit: expected a number from 1 to 1000; found '0'"),
        ("limit=many", "limit: expected"),
        ("cursor=-1", "cursor: expected"),
        ("cursor=" + "9" * 30, "cursor: expected"),
        ("fields=culprit,colour", "fields: expected some of culprit"),
        ("release=next", "release: expected a version like v6.12"),
        ("updated_since=soon", "updated_since: expected a time"),
        ("updated_since=2026-02-31", "updated_since: expected a time"),
    ],
)
def test_errors_name_the_parameter(table: None, client: Client, query: str, why: str) -> None:
    answer = client.get(f"/api/v1/reports?{query}")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    problem = answer.json()
    assert (problem["status"], problem["title"]) == (400, "Bad Request")
    assert problem["detail"].startswith(why)


def test_pages_follow_the_link_header(db: None, client: Client, django_assert_max_num_queries: Any) -> None:
    for number in range(1, 26):
        line(number)
    address, seen, pages = "/api/v1/reports?limit=10&fields=culprit", [], 0
    while address:
        with django_assert_max_num_queries(2):
            answer = client.get(address)
        assert all(set(each) == {"culprit"} for each in answer.json())
        seen += [each["culprit"] for each in answer.json()]
        address, pages = (
            answer.headers.get("Link", "").partition(">")[0].lstrip("<").replace("http://testserver", ""),
            pages + 1,
        )
    assert (len(seen), len(set(seen)), pages) == (25, 25, 3)


def test_what_the_client_has_is_not_sent_again(table: None, client: Client) -> None:
    first = client.get("/api/v1/reports")
    again = client.get("/api/v1/reports", headers={"if-none-match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    Report.objects.filter(subsystem="fs").update(state="working")
    assert client.get("/api/v1/reports", headers={"if-none-match": first["ETag"]}).status_code == 200


def test_one_report_by_its_sha(table: None, client: Client) -> None:
    sha = Report.objects.get(subsystem="fs").culprit.sha
    assert client.get(f"/api/v1/reports/{sha[:12]}").json()["culprit"] == sha
    for nobody in ("0" * 12, "00000", "x\0"):
        assert client.get(f"/api/v1/reports/{nobody}").status_code == 404


def test_real_answers_are_as_openapi_says(world: World, client: Client) -> None:
    """The document is made from the shapes; the answers are not, so they are checked against it."""
    world.ingest(world.result("b" * 40, "mm: a"))
    world.report()
    document = client.get("/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    for name in LISTS:
        rows = client.get(f"/api/v1/{name}").json()
        shape = document["paths"][f"/api/v1/{name}"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(rows, {**shape, "components": document["components"]})
        item = document["components"]["schemas"][shape["items"]["$ref"].rpartition("/")[2]]
        assert all(set(each) == set(item["properties"]) for each in rows), name
    assert client.get("/api/v1/reports").json()
    assert client.get("/api/v1/findings").json()


def test_lists_of_one_report(world: World, client: Client) -> None:
    world.ingest(world.result("b" * 40, "mm: a"), world.result("c" * 40, "mm: b", id="second"))
    every = client.get("/api/v1/findings").json()
    own = client.get(f"/api/v1/findings?report={'b' * 12}").json()
    assert {each["report"] for each in own} == {"b" * 40}
    assert len(own) < len(every)
    assert client.get("/api/v1/events?report=%00").status_code == 200
    assert client.get("/api/v1/curves?metric=none").json() == []


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_it_is_read_only(db: None, client: Client, method: str) -> None:
    for name in LISTS:
        assert getattr(client, method)(f"/api/v1/{name}").status_code == 405


def test_every_example_of_the_documentation_works(db: None, client: Client) -> None:
    line(1, subsystem="mm")
    line(0x8019AD13EE, subsystem="mm")
    text = (ROOT / "docs" / "api.md").read_text()
    examples = re.findall(r"^curl '?http://127\.0\.0\.1:8000(/[^'\n]+)", text, re.M)
    assert len(examples) >= 6
    for path in examples:
        assert client.get(path).status_code == 200, path
    problem = client.get("/api/v1/reports?limit=0")
    assert problem.content.decode().replace(": ", ":").replace(", ", ",").replace(":expected", ": expected") in text


def test_the_httpx_example_of_the_documentation(db: None, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["perf.example"]
    for number in range(5):
        line(number, subsystem="mm" if number else "fs")
    code = (ROOT / "docs" / "api.md").read_text().partition("```python\n")[2].partition("```")[0]
    scope: dict[str, Any] = {"httpx": httpx, "Iterator": Iterator, "urlencode": urlencode}
    exec(code, scope)
    with httpx.Client(transport=httpx.WSGITransport(app=application), base_url="http://perf.example") as client:
        found = list(scope["all_reports"](client, subsystem="mm", limit="2"))
    assert len({each["culprit"] for each in found}) == len(found) == 4


def test_every_link_to_a_help_page_leads_to_one(client: Client) -> None:
    templates = "".join(each.read_text() for each in (ROOT / "templates").rglob("*.html"))
    linked = set(re.findall(r"url 'help' '(\w+)' %}(#[\w-]+)?", templates))
    assert len(linked) > 5
    for name, anchor in linked:
        assert not anchor or f'id="{anchor[1:]}"' in client.get(f"/help/{name}/").content.decode(), (name, anchor)
        assert client.get(f"/help/{name}/").status_code == 200


OTHER = {
    "TextField": "x",
    "FloatField": 2.5,
    "BooleanField": True,
    "BigIntegerField": 7,
    "DateTimeField": NOW,
    "IntegerField": 9,
    "PositiveIntegerField": 9,
    "PositiveSmallIntegerField": 9,
    "JSONField": [1.0, 2.0],
}


def updates(rows: QuerySet[Any]) -> Iterator[tuple[QuerySet[Any], dict[str, Any]]]:
    """Bare UPDATEs of these rows, one for each column that can have any value."""
    for field in rows.model._meta.get_fields():
        kind = getattr(field, "get_internal_type", str)()
        if kind in OTHER and not getattr(field, "choices", None):
            yield rows, {field.name: OTHER[kind]}


def changed(client: Client, address: str, changes: Iterable[tuple[QuerySet[Any], dict[str, Any]]]) -> int:
    """Make each change. A page is unchanged to its client if, and only if, its bytes are; count those that changed."""
    seen, count = client.get(address), 0
    for rows, change in changes:
        try:
            with transaction.atomic():
                rows.update(**change)
        except IntegrityError:  # a value that this column can't have
            continue
        found = client.get(address, headers={"If-None-Match": seen["ETag"]})
        now = client.get(address)
        assert found.status_code == 200 or now.content == seen.content, change  # never stale
        assert found.status_code == 304 or now["ETag"] != seen["ETag"], change
        count += found.status_code == 200
        seen = now
    return count


def test_an_unchanged_page_is_one_whose_bytes_are_the_same(db: None, client: Client) -> None:
    """Whatever column changes, and even by a bare UPDATE."""
    tree = Tree.objects.create(name="linus")
    report = line(1, subsystem="mm", metric="wis.ops", change=-3.0, tree=tree)
    Metric.objects.create(name="wis.ops")
    changes: list[tuple[QuerySet[Any], dict[str, Any]]] = [
        (Commit.objects.filter(pk=report.culprit_id), {"title": "mm: another title"}),
        (Tree.objects.filter(pk=tree.pk), {"name": "another"}),
        (Metric.objects.all(), {"direction": "higher"}),
    ]
    assert changed(client, "/api/v1/reports", [*changes, *updates(Report.objects.all())]) > 20


def test_unchanged_findings_and_events_are_those_whose_bytes_are_the_same(world: World, client: Client) -> None:
    world.report()
    assert len(client.get("/api/v1/findings").json()) == len(client.get("/api/v1/events").json()) == 1
    culprit = (Commit.objects.filter(report__isnull=False), {"sha": "f" * 40})
    places = (*updates(Metric.objects.all()), *updates(Machine.objects.all()))
    scenario = (Scenario.objects.all(), {"params": {"nr_task": "7"}})
    suite = (Scenario.objects.all(), {"suite": "x"})
    findings = [culprit, *places, scenario, suite, *updates(Finding.objects.all())]
    assert changed(client, "/api/v1/findings", findings) > 15
    Commit.objects.filter(sha="f" * 40).update(sha="e" * 40)
    assert changed(client, "/api/v1/events", [culprit, *updates(Event.objects.all())]) > 8


def test_fields_and_addresses_have_etags_of_their_own(db: None, client: Client) -> None:
    line(1)
    paths = ["/api/v1/reports", "/api/v1/reports?fields=culprit", "/api/v1/reports?limit=1"]
    assert len({client.get(path)["ETag"] for path in paths}) == 3
