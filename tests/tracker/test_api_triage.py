"""What programs do for people: actions on reports and decisions on suggestions, with the rights of the person."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from tests.tracker.lines import line
from tests.world import World, message_id
from tracker.models import ApiKey, Event, Machine, Metric, Report, Suggestion
from tracker.services import accounts
from tracker.services.accounts import Scope


@pytest.fixture
def toni(db: None) -> User:
    user = User.objects.create_user("toni", "toni@lab.example")
    user.groups.add(Group.objects.get(name="triager"))
    return user


@pytest.fixture
def report(db: None) -> Report:
    return line(1, title="mm: scan more", subsystem="mm")


def key_for(user: User, name: str = "script") -> str:
    return accounts.create(name, [Scope.TRIAGE], "", timezone.now(), user)[1]


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
    results_only = accounts.create("results", [Scope.RESULTS], "*", timezone.now())[1]
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
    results_only = accounts.create("results", [Scope.RESULTS], "*", timezone.now())[1]
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
