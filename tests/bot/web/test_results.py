"""`POST /api/v1/results`: authorisation, responses, and the Location header."""

from __future__ import annotations

import json
import time
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from kombu.exceptions import OperationalError

from bot import tasks
from bot.celery import app
from bot.web import lab
from tests.support.databases import Timers
from tests.support.outbox import claim
from tests.support.rows import token
from tests.support.world import World
from tracker.models import ApiKey, BisectResult, Finding, OutgoingMail
from tracker.services import accounts
from tracker.services.accounts import Scope

URL = "/api/v1/results"


@pytest.fixture(autouse=True)
def _installation(settings: Any, tmp_path: Path) -> None:
    settings.PERFWORK_DROP = tmp_path / "drop"


@pytest.fixture
def client(db: None) -> Client:
    """A program with a key that may do anything."""
    return Client(headers={"Authorization": f"Bearer {token()}"})


def post(client: Client, body: object, **headers: str) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post(URL, raw, content_type="application/json", headers=headers or None)


def test_new_then_known_then_in_conflict(world: World, client: Client) -> None:
    result = world.result("b" * 40, "mm: a")
    first = post(client, result)
    assert first.status_code == 202
    answer = first.json()
    assert (answer["status"], answer["producer"], answer["id"]) == ("new", "lab", "lab-bbbbbbbb")
    assert answer["report"] == f"/report/{'b' * 40}/"
    assert first["Location"] == answer["location"]
    known = post(client, result)
    assert (known.status_code, known["Location"]) == (200, first["Location"])
    other = post(client, {**result, "machine": {"id": "lab7-m1", "cpus": 65}})
    assert other.status_code == 409
    assert other.json()["faults"] == [{"pointer": "/machine/cpus", "why": "differs"}]
    assert BisectResult.objects.count() == 1


def test_the_location_tells_what_was_found(world: World, client: Client) -> None:
    shown = client.get(post(client, world.result("b" * 40, "mm: a"))["Location"]).json()
    (finding,) = shown["findings"]
    assert (finding["metric"], finding["verdict"], finding["headline"]) == ("vm-scan.ops_per_sec", "regression", True)
    assert finding["change_pct"] == pytest.approx(-30.0)
    low, high = finding["interval_pct"]
    assert low < -30 < high
    assert finding["p_value"] < 0.001
    assert (finding["old"]["runs"], finding["new"]["runs"]) == (3, 3)
    missing = client.get("/api/v1/results/999")
    assert (missing.status_code, missing.json()) == (404, {"error": "there is no such result"})
    assert "There is no such result." in client.get("/results/999/").content.decode()


def test_every_fault_is_told_with_its_pointer(world: World, client: Client, tmp_path: Path) -> None:
    result = world.result("b" * 40, "mm: a", machine={"id": "", "cpus": 0})
    del result["tree"]
    answer = post(client, result)
    assert answer.status_code == 400
    assert [fault["pointer"] for fault in answer.json()["faults"]] == ["", "/machine/cpus", "/machine/id"]
    (kept,) = (tmp_path / "drop" / "refused").glob("*.json")
    assert json.loads(kept.read_bytes()) == result
    assert '"tree" is a required property' in kept.with_name(kept.name + ".reason").read_text()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 5000, b'{"a": NaN}', b"null", b'"\\ud800"'])
def test_junk_is_refused_in_json(db: None, client: Client, body: bytes) -> None:
    answer = post(client, body)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("body")


def test_several_at_once_are_told_of_each(world: World, client: Client) -> None:
    good = [world.result(digit * 40, "mm: a", id=digit) for digit in "bc"]
    lines = b"\n".join(json.dumps(each).encode() for each in [*good, {"schema": "other"}]) + b"\n"
    answer = post(client, lines)
    assert answer.status_code == 400
    assert [each.get("status", "refused") for each in answer.json()["results"]] == ["new", "new", "refused"]
    assert post(client, good).status_code == 200  # the same two, as an array


def test_a_held_result_says_so(world: World, client: Client) -> None:
    result = world.result("b" * 40, "mm: a")
    result["first_bad"]["is_merge"] = True
    assert post(client, result).json()["held"] == ["the culprit is a merge commit"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer wrong-secret-of-a-lab"},
        {"Authorization": "Basic {token}"},
        {"Authorization": "Bearer {token}x"},
        {"Authorization": "Bearer schlüssel-von-uns"},
    ],
)
def test_strangers_are_turned_away(db: None, headers: dict[str, str]) -> None:
    valid = token()
    headers = {name: value.replace("{token}", valid) for name, value in headers.items()}
    answer = Client().post(URL, b"{}", content_type="application/json", headers=headers)
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert not BisectResult.objects.exists()


def test_a_revoked_key_is_a_stranger(db: None, world: World, client: Client) -> None:
    assert post(client, {}).status_code == 400
    call_command("apikey", "revoke", "our lab")
    assert post(client, {}).status_code == 401
    assert client.get(URL).status_code == 405


def test_a_key_does_what_it_is_for(db: None, world: World) -> None:
    files = token(Scope.EVIDENCE, name="profiler")
    result = world.result("b" * 40, "mm: a")
    answer = post(Client(), result, Authorization=f"Bearer {files}")
    assert (answer.status_code, answer.json()["error"]) == (
        403,
        "the key 'profiler' lacks the scope results: it has evidence",
    )
    other = token(Scope.RESULTS, producer="other-lab", name="other lab")
    answer = post(Client(), [result, {}], Authorization=f"Bearer {other}")
    (refused, invalid) = answer.json()["results"]
    assert (answer.status_code, refused["faults"][0]["pointer"]) == (400, "/producer/name")
    assert "the key may submit results of 'other-lab' only; found 'lab'" in refused["faults"][0]["why"]
    assert invalid["faults"]
    assert not BisectResult.objects.exists()
    own = token(Scope.RESULTS, producer="lab", name="lab")
    assert post(Client(), result, Authorization=f"Bearer {own}").status_code == 202


def test_keys_are_made_listed_and_revoked(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("apikey", "create", "lab7", "--producer", "lab7")
    made = capsys.readouterr().out.strip()
    assert made.startswith("perfwork_")
    (key,) = ApiKey.objects.all()
    assert made not in str(vars(key))
    assert accounts.find_api_key(made, timezone.now()) == key
    call_command("apikey", "list")
    listed = capsys.readouterr().out
    assert (key.beginning in listed, "results as lab7, last used" in listed, made in listed) == (True, True, False)
    call_command("apikey", "revoke", "lab7")
    assert accounts.find_api_key(made, timezone.now()) is None
    for arguments, why in (
        (["revoke", "lab7"], "no valid key is named 'lab7'"),
        (["create", "lab7", "--producer", "x"], "there is a key named 'lab7'"),
        (["create", "lab8"], "producer: expected"),
        (["create", " ", "--producer", "x"], "name: expected"),
    ):
        with pytest.raises(CommandError, match=why):
            call_command("apikey", *arguments)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[" + b"{}," * 300_000 + b"{}]", 413),
        (b"{}" * 8_000_000, 413),
        (b"[" * 10_000_000, 413),
        (b"{}\n" * 5_000_000, 413),
        (b"{}\n" * 2_000, 413),
        (b"[" + b"{}," * 2_000 + b"{}]", 413),
    ],
    ids=["many", "objects", "arrays", "lines", "results", "array"],
)
def test_a_body_of_nothing_but_objects_costs_little(db: None, client: Client, body: bytes, status: int) -> None:
    """16 MiB of {} took gigabytes and minutes: a fault, a file and an answer for each."""
    started = time.process_time()
    answer = post(client, body)
    assert answer.status_code == status
    assert time.process_time() - started < 5
    assert len(answer.content) < 1_000_000
    assert (
        not (settings.PERFWORK_DROP / "refused").exists()
        or len(list((settings.PERFWORK_DROP / "refused").iterdir())) <= 2 * lab.MAX_KEPT
    )


def test_a_body_too_large_is_not_read(db: None, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "MAX_BYTES", 100)
    answer = post(client, b"{" + b" " * 200 + b"}")
    assert answer.status_code == 413
    assert "expected at most 100 bytes" in answer.json()["error"]


def test_the_pages_of_results(world: World, client: Client, django_assert_num_queries: Any) -> None:
    many = [world.result(f"{n:040x}", "mm: a", id=f"r{n}") for n in range(1, 151)]
    world.ingest(*many)
    row = BisectResult.objects.get(external_id="r150")
    with django_assert_num_queries(1):
        first = client.get("/results/").content.decode()
    assert first.count("<tr>") == 101  # with the head
    older = first.partition("before=")[2].partition('"')[0]
    assert client.get(f"/results/?before={older}").content.decode().count("<tr>") == 51
    with django_assert_num_queries(2):
        page = client.get(f"/results/{row.pk}/").content.decode()
    assert "vm-scan.ops_per_sec" in page
    assert client.get(f"/results/{row.pk}.json").json()["id"] == "r150"
    assert client.get("/results/?held=1").content.decode().count("<tr>") == 0
    assert Finding.objects.count() == 150


@pytest.mark.parametrize("query", ["outcome=good", "before=x", "before=-1", "before=9999999999999999999999"])
def test_a_wrong_question_is_named(db: None, client: Client, query: str) -> None:
    answer = client.get(f"/results/?{query}")
    assert answer.status_code == 400
    assert answer.content.decode().startswith(query.partition("=")[0])


def test_a_worker_is_woken_once_for_the_results_of_a_moment(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch, timers: Timers
) -> None:
    """The mail of a new result need not wait for the scheduler, nor for one that is gone."""
    sent: list[str] = []
    monkeypatch.setattr(app, "send_task", lambda name, **more: sent.append(name))
    one, two = world.result("b" * 40, "mm: a"), world.result("c" * 40, "mm: b")
    assert post(client, one).status_code == post(client, two).status_code == 202
    assert sent == [], "more may come in"
    assert timers.end() == [lab.GATHER]
    assert sent == ["take_results"]
    assert post(client, one).status_code == 200
    assert post(client, b"junk").status_code == 400
    assert timers.end() == [], "not for what is known or junk"
    assert post(client, world.result("d" * 40, "mm: c")).status_code == 202
    assert timers.end() == [lab.GATHER], "once more for what is new"
    assert post(client, [world.result("e" * 40, "mm: d"), {"schema": "junk"}]).status_code == 400
    assert timers.end() == [lab.GATHER], "what was good in it is taken"
    assert sent == ["take_results"] * 3


def test_without_a_broker_results_are_taken_at_once_and_the_scheduler_finds_them(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch, timers: Timers
) -> None:
    tried, answers = Event(), Event()

    def hang(name: str, **more: Any) -> None:
        tried.set()
        answers.wait(20)
        raise OperationalError("connection refused")

    monkeypatch.setattr(app, "send_task", hang)
    assert post(client, world.result("b" * 40, "mm: a")).status_code == 202
    waker = Thread(target=timers.end)
    waker.start()
    assert tried.wait(20)
    assert post(client, world.result("c" * 40, "mm: b")).status_code == 202, "while the broker does not answer"
    assert waker.is_alive()
    answers.set()
    waker.join(20)
    assert not waker.is_alive()
    assert compose(world) == 2


def compose(world: World) -> int:
    """Run the task as the scheduler would; return how many mails there are."""
    from bot.tasks import take_results

    take_results()
    return OutgoingMail.objects.count()


def test_what_may_leave_leaves_at_once(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    enqueued: list[str] = []
    monkeypatch.setattr(tasks, "_enqueue", lambda task: enqueued.append(task.name))
    post(client, world.result("b" * 40, "mm: a"))
    compose(world)
    assert enqueued == [], "it waits for a person"
    settings.PERFWORK_APPROVE_FIRST = False
    post(client, world.result("c" * 40, "mm: b"))
    compose(world)
    assert enqueued == ["send_mail"]
    assert claim()
    compose(world)
    assert enqueued == ["send_mail"], "all that is due has been claimed"
