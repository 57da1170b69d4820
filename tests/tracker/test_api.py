"""The list API: shapes as OpenAPI says, filters of the triage table, pages, errors that name their parameter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import jsonschema
import pytest
import schemathesis
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.conftest import ROOT
from tests.support.people import person
from tests.support.rows import line
from tests.support.world import World, message_id
from tracker.models import ApiKey, Commit, Event, Finding, Machine, Metric, Report, Scenario, Suggestion, Tree
from tracker.services import accounts
from tracker.services.accounts import Scope
from tracker.wsgi import application

# --- The list API: shapes as OpenAPI says, filters of the triage table, pages, errors that name their parameter ---

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
    assert [client.get(f"/api/v1/events?report={junk}").status_code for junk in ("%00", "x", "the+first")] == [400] * 3
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


# --- What programs do for people: actions on reports and decisions on suggestions, with the rights of the person ---


@pytest.fixture
def toni(db: None) -> User:
    user = person("triager", "toni", "toni@lab.example")
    return user


@pytest.fixture
def report(db: None) -> Report:
    return line(1, title="mm: scan more", subsystem="mm")


def key_for(user: User, name: str = "script") -> str:
    return accounts.create_api_key(name, [Scope.TRIAGE], "", timezone.now(), user)[1]


def post(client: Client, path: str, body: Any, token: str) -> tuple[int, Any]:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}"}
    answer = client.post(f"/api/v1/{path}", sent, content_type="application/json", headers=headers)
    return answer.status_code, answer.json()


def test_an_action_is_the_persons(client: Client, toni: User, report: Report) -> None:
    path, token = f"reports/{report.culprit.sha}/actions", key_for(toni)
    status, answer = post(client, path, {"do": "working", "revision": report.revision}, token)
    assert (status, answer["state"]) == (200, "working")
    assert Event.objects.get(kind="working").actor == "toni"
    status, answer = post(client, path, {"do": "fixed", "argument": "v6.12", "revision": report.revision}, token)
    assert (status, "changed in the meantime" in answer["error"]) == (409, True)
    status, answer = post(client, path, {"do": "working"}, token)
    assert (status, "no effect" in answer["error"]) == (409, True)
    assert post(client, path, {"do": "fixed", "argument": "v6.12"}, token)[1]["state"] == "fixed"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "do: expected one of responded, working"),
        ({"do": "burn"}, "do: expected"),
        ({"do": ["working"]}, "do: expected"),
        ({"do": "fixed", "argument": "soon"}, "expected a version like v6.12-rc4; found 'soon'"),
        ({"do": "note"}, "argument: expected some text"),
        ({"do": "note", "argument": 5}, "argument: expected a text"),
        ({"do": "working", "revision": "1"}, "revision: expected a number"),
        ([], "expected a JSON object"),
        (b"{", "invalid JSON"),
    ],
)
def test_what_is_wrong_is_named(client: Client, toni: User, report: Report, body: Any, words: str) -> None:
    status, answer = post(client, f"reports/{report.culprit.sha}/actions", body, key_for(toni))
    assert (status, words in answer["error"]) == (400, True), answer
    assert not Event.objects.exists()


def test_rights_are_the_persons(client: Client, toni: User, report: Report) -> None:
    path = f"reports/{report.culprit.sha}/actions"
    stranger = User.objects.create_user("eve", "eve@x.example")
    token = key_for(stranger)
    assert post(client, path, {"do": "working"}, token)[0] == 403
    assert post(client, "suggestions/1/decision", {"decision": "accept"}, token)[0] == 403
    results_only = accounts.create_api_key("results", [Scope.RESULTS], "*", timezone.now())[1]
    assert post(client, path, {"do": "working"}, results_only)[0] == 403
    assert post(client, path, {"do": "working"}, "perfwork_none")[0] == 401
    own = key_for(toni, "of toni")
    assert post(client, f"reports/{'e' * 40}/actions", {"do": "working"}, own)[0] == 404
    accounts.revoke("of toni", timezone.now())
    assert post(client, path, {"do": "working"}, own)[0] == 401
    User.objects.filter(pk=toni.pk).update(is_active=False)
    assert post(client, path, {"do": "working"}, key_for(toni, "again"))[0] == 403
    assert not Event.objects.exists()


def test_suggestions_are_listed_and_decided_once(client: Client, toni: User, report: Report) -> None:
    common = {"report": report, "occurred_at": timezone.now(), "role": "author", "message_id": "m@x"}
    first = Suggestion.objects.create(key="a", kind="working", rule="r", quote="I'll look", **common)
    second = Suggestion.objects.create(key="b", kind="disputed", rule="r", **common)
    listed = client.get("/api/v1/suggestions").json()
    assert [(each["id"], each["kind"], each["quote"]) for each in listed] == [
        (first.pk, "working", "I'll look"), (second.pk, "disputed", "")
    ]  # fmt: skip
    token = key_for(toni)
    status, answer = post(client, f"suggestions/{first.pk}/decision", {"decision": "accept"}, token)
    assert (status, answer["decision"]) == (200, "accepted")
    assert post(client, f"suggestions/{first.pk}/decision", {"decision": "reject"}, token)[0] == 409
    assert post(client, f"suggestions/{second.pk}/decision", {"decision": "asked"}, token)[1]["decision"] == "changed"
    assert post(client, f"suggestions/{second.pk}/decision", {"decision": "burnt"}, token)[0] == 400
    for junk in ([], {}, 5, None):
        assert post(client, f"suggestions/{second.pk}/decision", {"decision": junk}, token)[0] == 400
    assert post(client, "suggestions/999/decision", {"decision": "accept"}, token)[0] == 404
    assert client.get("/api/v1/suggestions").json() == []
    assert len(client.get("/api/v1/suggestions?decision=changed").json()) == 1
    assert client.get("/api/v1/suggestions?decision=burnt").status_code == 400
    assert Event.objects.filter(actor="toni").count() == 2


def test_requests_at_the_beginning_of_a_minute_are_counted_by_one_statement_each(
    toni: User, django_assert_num_queries: pytest.FixtureRequest
) -> None:
    """Two statements let a request that came between them be refused."""
    key_for(toni)
    key, now = ApiKey.objects.get(), timezone.now().replace(second=0, microsecond=0)
    for number, moment in enumerate([now, now, now + timedelta(minutes=1)]):
        with django_assert_num_queries(1):  # type: ignore[operator]
            assert accounts.count_request(key, moment) == 0
        assert ApiKey.objects.get().requests == [1, 2, 1][number]


def test_too_many_requests_wait_for_the_next_minute(
    client: Client, toni: User, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, token = f"reports/{report.culprit.sha}/actions", key_for(toni)
    now = timezone.now().replace(second=0, microsecond=0)
    for minute in (now, now + timedelta(minutes=1)):  # whichever it is when the request comes
        ApiKey.objects.update(minute=minute, requests=accounts.MOST_A_MINUTE)
        key = ApiKey.objects.get()
        assert 0 < accounts.count_request(key, minute) <= 60
        assert accounts.count_request(key, minute + timedelta(minutes=1)) == 0
    monkeypatch.setattr("tracker.api.requests.timezone.now", lambda: now)
    ApiKey.objects.update(minute=now, requests=accounts.MOST_A_MINUTE)
    status, answer = post(client, path, {"do": "working"}, token)
    assert (status, "600 requests this minute" in answer["error"]) == (429, True)
    assert not Event.objects.exists()


def test_keys_for_people_are_made_by_the_command(toni: User, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("apikey", "create", "of toni", "--scope", "triage", "--user", "toni")
    assert ApiKey.objects.get().acts_for == toni
    call_command("apikey", "list")
    assert "for toni" in capsys.readouterr().out
    for wrong in (
        ["--scope", "triage"],
        ["--scope", "triage", "--user", "nobody"],
        ["--scope", "jobs", "--user", "toni"],
    ):
        with pytest.raises(CommandError, match="user"):
            call_command("apikey", "create", "another", *wrong)


def test_metrics_and_machines_are_listed(client: Client, db: None) -> None:
    Metric.objects.create(name="lat.us", unit="us", direction="lower")
    Machine.objects.create(name="lab7-m1", description="a box")
    [metric] = [each for each in client.get("/api/v1/metrics").json() if each["name"] == "lat.us"]
    assert (metric["unit"], metric["direction"], metric["url"]) == ("us", "lower", "http://testserver/metric/lat.us/")
    [machine] = [each for each in client.get("/api/v1/machines").json() if each["name"] == "lab7-m1"]
    assert (machine["description"], machine["url"]) == ("a box", "http://testserver/machine/lab7-m1/")


def test_outgoing_mail_is_for_those_who_may_send(client: Client, toni: User, world: World) -> None:
    report = world.report("mm: scan more")

    def seen(token: str, query: str = "") -> tuple[int, Any]:
        answer = client.get(f"/api/v1/outgoing{query}", headers={"Authorization": f"Bearer {token}"})
        return answer.status_code, answer.json()

    token = key_for(toni)
    assert client.get("/api/v1/outgoing").status_code == 401
    assert seen(token)[0] == 403  # a triager
    toni.groups.set([Group.objects.get(name="operator")])
    status, [mail] = seen(token, f"?report={report.culprit.sha[:10]}&state=sent")
    assert (status, mail["report"], mail["message_id"]) == (200, report.culprit.sha, message_id(report))
    assert seen(token, "?state=held") == (200, [])
    assert seen(token, "?state=lost")[0] == 400
    User.objects.filter(pk=toni.pk).update(is_active=False)
    assert seen(token)[0] == 403
    results_only = accounts.create_api_key("results", [Scope.RESULTS], "*", timezone.now())[1]
    assert seen(results_only)[0] == 403
    document = client.get("/api/v1/openapi.json").json()
    assert set(mail) == set(document["components"]["schemas"]["OutgoingShape"]["properties"])


def test_an_expired_key_is_refused(client: Client, toni: User, capsys: pytest.CaptureFixture[str]) -> None:
    operator = User.objects.create_superuser("root", "root@lab.example")
    call_command("apikey", "create", "short", "--scope", "triage", "--user", "root", "--days", "30")
    token = capsys.readouterr().out.strip()
    headers = {"Authorization": f"Bearer {token}"}
    assert client.get("/api/v1/outgoing", headers=headers).status_code == 200
    key = ApiKey.objects.get(name="short")
    assert key.expires_at is not None
    assert timedelta(days=29) < key.expires_at - timezone.now() <= timedelta(days=30)
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now())
    assert client.get("/api/v1/outgoing", headers=headers).status_code == 401
    for days in ("-1", "100000"):
        with pytest.raises(CommandError, match="--days: expected"):
            call_command("apikey", "create", "other", "--scope", "triage", "--user", operator.username, "--days", days)


# --- Every address that OpenAPI names, called with what fits its document and what does not, by schemathesis ---

schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", application)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture
def key(db: None, tmp_path: Path, settings: Any) -> str:
    settings.ALLOWED_HOSTS = ["*"]
    settings.PERFWORK_DROP = tmp_path / "drop"  # what is refused is kept there
    line(1, subsystem="mm", metric="wis.ops", machine="m1")
    return accounts.create_api_key("any", [Scope.RESULTS, Scope.JOBS], "*", timezone.now())[1]


@pytest.mark.slow
@schema.parametrize()
@settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)
def test_every_address_answers_as_its_document_says(case: Any, key: str) -> None:
    case.headers.update({"Authorization": f"Bearer {key}", "Accept-Encoding": "identity"})
    case.call_and_validate(checks=CHECKS)


def test_the_document_names_what_takes_data() -> None:
    paths = schema.raw_schema["paths"]
    posted = sorted(path for path, operations in paths.items() if "post" in operations)
    assert len(posted) == 8
    assert "/api/v1/jobs/claim" in posted
    assert {each["name"] for each in paths["/api/v1/reports"]["get"]["parameters"]} >= {"cursor", "limit", "state"}
