"""Webhooks: a receiver that checks signatures gets each event, though it hung and failed; nobody else is reached."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook as Receiver

from bot import tasks
from bot import webhooks as deliveries
from bot.webhooks import is_public, post, resolve, signed_headers
from tests.conftest import ROOT
from tests.support.people import person
from tests.support.world import World
from tracker.domain.events import EventData, EventKind, InvalidInput
from tracker.domain.text import Target, parse_target
from tracker.models import Report, Webhook, WebhookDelivery
from tracker.pages import subscriptions
from tracker.services import event_log

BASE = "https://perf.example"


class Server:
    """A receiver on loopback, which does with each request what it was told to do."""

    def __init__(self) -> None:
        self.answers: list[int | str] = []  # a status, "hang" or "drip"; 204 once there are no more
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.done = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append((dict(self.headers), body))
                answer = outer.answers.pop(0) if outer.answers else 204
                if answer == "hang":
                    outer.done.wait(20)
                elif answer == "drip":
                    for each in b"HTTP/1.1 200 OK and so on without an end".ljust(400):
                        if outer.done.wait(0.1):
                            break
                        try:
                            self.wfile.write(bytes([each]))
                        except OSError:
                            break
                elif answer == "junk":
                    self.wfile.write(b"220 smtp.example ESMTP\r\n")
                else:
                    self.send_response(int(answer))
                    self.send_header("Location", "http://127.0.0.1:9/")
                    self.end_headers()
                self.close_connection = True

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook?lab=1"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.done.set()
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def toni(db: None) -> User:
    user = person("triager", "toni", "toni@lab.example")
    return user


def note(world: World, report: Report, text: str) -> None:
    world.later(0.001)
    event = EventData(f"n{text}", EventKind.NOTED, world.now, actor="toni", remark=text)
    event_log.record([event_log.event_row(report, event, world.now)])


def round_of(world: World, hours: float = 1) -> int:
    """Queue and send what is due by then. Return how many arrived."""
    now = world.later(hours)
    ready = deliveries.queue_events(BASE, now)

    def quick(target: Target, body: bytes, headers: dict[str, str], *, private: bool) -> int:
        return post(target, body, headers, private=private, timeout=0.5)

    def clock() -> datetime:
        return now

    later = now + timedelta(minutes=1)
    return sum(deliveries.deliver(pk, clock, private=True, until=later, send=quick) for pk in ready)


def remarks(server: Server) -> list[str]:
    return [json.loads(body)["data"]["event"]["remark"] for _, body in server.got]


def test_each_event_arrives_signed_whatever_the_receiver_does(world: World, toni: User, server: Server) -> None:
    report, other = world.report("mm: scan more"), world.report("sched/fair: sleep less")
    webhook = subscriptions.add_webhook(toni, server.url, "subsystem:mm", world.now)
    assert round_of(world) == 0  # what happened before it was added is not sent
    for text in ("first", "second", "third"):
        note(world, report, text)
    note(world, other, "of another subsystem")
    server.answers = ["hang"]
    assert round_of(world) == 0  # the first hangs: the others wait with it
    assert remarks(server) == ["first"]
    server.answers = ["drip"]
    assert round_of(world) == 0
    server.answers = [500, 302, "junk"]
    assert round_of(world) == 0
    assert round_of(world) == 3
    ids = {}
    for headers, body in server.got:
        ids.setdefault(headers["webhook-id"], set()).add(body)
        data = json.loads(body)["data"]
        assert data["report"]["culprit"] == data["event"]["report"] == report.culprit.sha
        assert data["report"]["url"] == f"{BASE}/report/{report.culprit.sha}/"
    assert len(ids) == 3  # a repeat has the id of the first attempt, and its bytes
    assert all(len(bodies) == 1 for bodies in ids.values())
    assert set(remarks(server)) == {"first", "second", "third"}
    assert round_of(world) == 0  # once
    assert set(webhook.deliveries.values_list("state", flat=True)) == {"delivered"}


def test_a_library_of_others_accepts_our_signature_and_refuses_a_replay() -> None:
    receiver = Receiver("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLkSw")
    body, now = b'{"test": 2432232314}', int(time.time())
    assert receiver.verify(body, signed_headers("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLkSw", "msg_1", now, body))
    for moment, key, sent in ((now - 3600, "msg_1", body), (now, "msg_1", body + b" ")):
        headers = signed_headers("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLkSw", key, moment, body)
        with pytest.raises(Exception, match=r"too old|No matching signature"):
            receiver.verify(sent, headers)


def test_the_receiver_of_the_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLkSw"
    code = (ROOT / "docs" / "api.md").read_text().rpartition("```python\n")[2].partition("```")[0]
    scope: dict[str, Any] = {"Webhook": Receiver, "seen": set()}
    exec(code.replace("whsec_…", secret), scope)
    body = json.dumps({"data": {"report": {"title": "mm: slow"}, "event": {"kind": "noted"}}}).encode()
    for _ in range(2):
        scope["receive"](signed_headers(secret, "msg_1", int(time.time()), body), body)
    assert capsys.readouterr().out == "mm: slow noted\n"  # once


def test_a_worker_that_dies_repeats_under_the_same_id(
    world: World, toni: User, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = world.report("mm: scan more")
    subscriptions.add_webhook(toni, server.url, "", world.now)
    note(world, report, "one")
    now = world.later()
    [pk] = deliveries.queue_events(BASE, now)

    def dies(*arguments: Any, **more: Any) -> int:
        post(*arguments, **more)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deliveries.deliver(pk, lambda: now, private=True, until=now + timedelta(minutes=1), send=dies)
    assert deliveries.queue_events(BASE, now) == []  # not at once
    assert round_of(world) == 1
    assert len({headers["webhook-id"] for headers, _ in server.got}) == 1
    assert len(server.got) == 2


def test_given_up_after_three_days_and_sent_again_by_hand(world: World, toni: User, server: Server) -> None:
    report = world.report("mm: scan more")
    webhook = subscriptions.add_webhook(toni, server.url, "", world.now)
    note(world, report, "one")
    server.answers = [500] * 50
    for _ in range(14):
        assert round_of(world, 6) == 0
    row = webhook.deliveries.get()
    assert (row.state, row.status) == ("failed", 500)
    assert 4 < row.attempts < 20
    server.answers = []
    assert round_of(world) == 0
    assert subscriptions.send_again(toni, webhook.pk, world.later()) == 1
    assert round_of(world) == 1


@pytest.mark.parametrize("do", ["stop", "start", "repeat", "remove"])
def test_a_webhook_that_is_none_of_ones_own_is_not_there(
    world: World, toni: User, server: Server, client: Client, do: str
) -> None:
    webhook = subscriptions.add_webhook(toni, server.url, "", world.now)
    client.force_login(person("triager", "tim"))
    for number in (webhook.pk, 10**20 - 1):
        assert client.post(f"/webhooks/{number}/change/", {"do": do}).status_code == 404
    assert Webhook.objects.get().stopped == ""


def test_gone_ends_it_until_it_is_started_again(world: World, toni: User, server: Server) -> None:
    report = world.report("mm: scan more")
    webhook = subscriptions.add_webhook(toni, server.url, "", world.now)
    note(world, report, "one")
    note(world, report, "two")
    server.answers = [410]
    assert round_of(world) == 0
    webhook.refresh_from_db()
    assert webhook.stopped == "the receiver answered 410 Gone"
    assert round_of(world) == 0
    assert len(server.got) == 1
    subscriptions.start_webhook(toni, webhook.pk, world.later())
    assert round_of(world) == 1
    assert remarks(server) == ["one", "two"]


def test_more_than_fits_into_memory(world: World, toni: User, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "AT_ONCE", 3)
    report = world.report("mm: scan more")
    subscriptions.add_webhook(toni, server.url, "", world.now)
    for number in range(8):
        note(world, report, f"{number}")
    assert [round_of(world, 0.01) for _ in range(2)] == [8, 0]
    assert sorted(remarks(server)) == [f"{number}" for number in range(8)]


def test_an_event_that_was_made_again_is_not_sent_again(
    world: World, toni: User, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "AT_ONCE", 2)
    report = world.report("mm: scan more")
    subscriptions.add_webhook(toni, server.url, "", world.now)
    rows = []
    for number in range(4):
        note(world, report, f"{number}")
        rows.append(report.events.latest("pk"))
    assert round_of(world, 0.01) == 4
    for row in rows:  # the same facts under other primary keys
        row.delete()
        row.pk = None
        row.save(force_insert=True)
    note(world, report, "new")
    assert round_of(world, 0.01) == 1
    assert sorted(remarks(server)) == ["0", "1", "2", "3", "new"]


def test_a_query_that_is_no_longer_understood_stops_no_other(world: World, toni: User, server: Server) -> None:
    report = world.report("mm: scan more")
    broken = subscriptions.add_webhook(toni, server.url, "", world.now)
    Webhook.objects.filter(pk=broken.pk).update(query="worse:x")
    subscriptions.add_webhook(toni, f"{server.url}&b=2", "", world.now)
    note(world, report, "one")
    assert round_of(world) == 1


def test_the_tasks_send_nothing_into_the_own_network(
    world: World, toni: User, server: Server, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueued: list[int] = []
    monkeypatch.setattr(tasks, "_enqueue", lambda task, pk: enqueued.append(pk))
    monkeypatch.setattr(tasks.timezone, "now", lambda: world.later(0.001))
    report = world.report("mm: scan more")
    webhook = subscriptions.add_webhook(toni, server.url, "", world.now)
    note(world, report, "one")
    assert tasks.call_webhooks() == 1
    assert enqueued == [webhook.pk]
    assert tasks.call_webhook(webhook.pk) == 0
    assert server.got == []
    error = WebhookDelivery.objects.get().error
    assert error == "127.0.0.1 is not a public address (PERFWORK_WEBHOOKS_PRIVATE=on allows it)"
    webhook.refresh_from_db()
    assert webhook.silent == 1
    settings.PERFWORK_WEBHOOKS_PRIVATE = True
    subscriptions.start_webhook(toni, webhook.pk, world.later())
    assert tasks.call_webhook(webhook.pk) == 1


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1"),
        *("::1", "::", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "ff02::1"),
        *("64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:53aa:64c:0:fbff:80ff:fffe"),
        *("fec0::1", "::10.0.0.1", "5f00::1", "3fff::1", "2001:20::1", "192.0.0.8", "192.88.99.1"),
    ],
)
def test_an_address_that_is_not_public(address: str) -> None:
    assert not is_public(address)


def test_public_addresses() -> None:
    assert is_public("93.184.215.14")
    assert is_public("2606:2800:21f:cb07:6820:80da:af6b:8b2c")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "0x7f.1", "2130706433", "::1"])
def test_no_spelling_of_loopback_is_reached(host: str) -> None:
    with pytest.raises(OSError, match=r"not a public address|[Nn]ame|[Aa]ddress"):
        resolve(Target(host, 80, "/", is_tls=False), private=False)


def test_one_private_address_among_public_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(2, 1, 6, "", (each, 80)) for each in ("93.184.215.14", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(OSError, match="not a public address"):
        resolve(Target("rebound.example", 80, "/", is_tls=False), private=False)


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://a.example/", "https:///x", "a.example", "", "https://a.example:0x/", "https://a.example:99999/"),
        *("https://u:p@a.example/", "https://a.example/#x", "https://a.example/ x", "https://a.example/\r\nX: y"),
        *("https://ä.example/", "file:///etc/passwd", "https://[::1/", "https://a.example/" + "x" * 1000),
    ],
)
def test_an_address_that_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"^url: expected"):
        parse_target(url)


def test_an_address_taken_apart() -> None:
    assert parse_target("https://CI.example:8443/a/b?c=d") == Target("ci.example", 8443, "/a/b?c=d", is_tls=True)
    assert parse_target("http://[2001:db8::1]") == Target("2001:db8::1", 80, "/", is_tls=False)


@given(st.text(), st.binary(max_size=200), st.integers(0, 2**40))
def test_any_body_is_signed_for_itself(key: str, body: bytes, moment: int) -> None:
    headers = signed_headers("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLkSw", key, moment, body)
    assert headers != signed_headers("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLkSw", key, moment, body + b"x")


def test_the_page(world: World, toni: User, server: Server, client: Client) -> None:
    report = world.report("mm: scan more")
    client.force_login(toni)
    assert "No webhooks yet." in client.get("/webhooks/").content.decode()
    refused = client.post("/webhooks/add/", {"url": "ftp://a.example/", "q": ""})
    assert (refused.status_code, b"url: expected" in refused.content) == (400, True)
    assert client.post("/webhooks/add/", {"url": server.url, "q": "worse:x"}).status_code == 400
    added = client.post("/webhooks/add/", {"url": server.url, "q": "subsystem:mm"})
    webhook = Webhook.objects.get()
    assert added["Location"] == f"/webhooks/{webhook.pk}/"
    Webhook.objects.update(created_at=world.now, events_until=world.now, retry_at=world.now)  # the story is not now
    note(world, report, "one")
    assert round_of(world) == 1
    page = client.get(added["Location"]).content.decode()
    assert webhook.secret in page
    assert f'href="/report/{report.culprit.sha}/"' in page
    assert "HTTP 204" in page
    assert client.post(f"{added['Location']}change/", {"do": "stop"}).status_code == 302
    assert "by its owner" in client.get("/webhooks/").content.decode()
    stranger = person("triager", "lee")
    other = Client()
    other.force_login(stranger)
    assert other.get(added["Location"]).status_code == 404
    other.post(f"{added['Location']}change/", {"do": "remove"})
    assert client.post(f"{added['Location']}change/", {"do": "explode"}).status_code == 400
    assert client.post(f"{added['Location']}change/", {"do": "start"}).status_code == 302
    assert Webhook.objects.get().stopped == ""
    assert client.post(f"{added['Location']}change/", {"do": "remove"})["Location"] == "/webhooks/"
    assert not Webhook.objects.exists()
