"""Nobody does what they may not, and nobody stops the rest: undo, sessions, passwords, views, slow clients."""

from __future__ import annotations

import itertools
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from benchmarks.accuracy.training import IDENTITY
from bot.mail.authentication import AuthVerdict, Trust
from bot.replies.commands import Word
from bot.replies.effects import effects_of
from bot.replies.reading import understand
from bot.replies.rules.notation import MailContext, Mode, Relation
from bot.web.server import STALE
from tests.conftest import ROOT
from tests.support.rows import line
from tests.support.world import DANA, LEE, World, message_id
from tracker.domain.events import EventData, EventKind, Role
from tracker.models import (
    Commit,
    Event,
    OutgoingMail,
    PasswordAttempt,
    Purpose,
    Release,
    Report,
    SavedView,
    Session,
    Suggestion,
)
from tracker.services import accounts, event_log, report_actions
from tracker.services.accounts import network_of
from tracker.services.report_actions import ACTION_KEYS, ActionKey, ReportAction

# --- Every address, method and kind of person, and every command, policy and proof, against the tables of SECURITY.md
# ---

PAGE = (ROOT / "SECURITY.md").read_text()
PEOPLE = ("anybody", "signed in", "triager", "operator")
# What a pattern's arguments may be; most name nothing, since the gate is asked before anything is looked up.
ARGUMENTS: Mapping[str, str] = {
    "version": "v5.6",
    "form": "json",
    "ref": "f" * 10,
    "slug": "none",
    "handle": "v5.6",
    "pk": "1",
    "culprit": "f" * 10,
    "token": "x",
    "kind": "machine",
    "name": "none",
}


def table(heading: str, page: str = PAGE) -> dict[str, list[str]]:
    """Return the rows of the table below a heading, by their first cells."""
    part = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in part.splitlines() if row.startswith("|")]
    return {row[0].strip("`"): row[1:] for row in rows[2:]}


def patterns(found: list[URLPattern | URLResolver], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name and the pattern of every address but the admin's, which are Django's own."""
    for each in found:
        route = before + str(each.pattern)
        if isinstance(each, URLResolver):
            if route != "admin/":
                yield from patterns(each.url_patterns, route)
        else:
            yield str(each.name), route


def path_of(route: str) -> str:
    """Return an address that a pattern matches."""
    route = re.sub(r"\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)", lambda found: ARGUMENTS[found[1]], route)
    route = re.sub(r"<(?:\w+:)?(\w+)>", lambda found: ARGUMENTS[found[1]], route)
    return "/" + route.replace("^", "").replace("$", "").replace("\\", "")


def gate(client: Client, method: str, path: str) -> str:
    """Return "yes" if the gate lets a request in, whatever comes of it; "-" if there is no such method."""
    response = getattr(client, method)(path)
    if response.status_code == 405:
        return "-"
    away = response.status_code == 302 and response["Location"].startswith("/sign-in/?")
    assert response.status_code < 500
    return "no" if response.status_code in (401, 403) or away else "yes"


@pytest.fixture
def people(db: None) -> dict[str, Client]:
    line(1, merged_release="v5.6")
    found = {"anybody": Client()}
    for name in PEOPLE[1:]:
        user = User.objects.create_user(name, f"{name.replace(' ', '.')}@lab.example")
        if name != "signed in":
            user.groups.add(Group.objects.get(name=name))
        found[name] = Client()
        found[name].force_login(user)
    return found


def test_every_address_by_every_method_for_everybody(people: dict[str, Client]) -> None:
    """A new address fails here until it is in SECURITY.md."""
    found: dict[str, list[str]] = {}
    for name, route in patterns(get_resolver().url_patterns):
        for method in ("get", "post"):
            asking = dict.fromkeys(PEOPLE, Client()) if name == "sign-out" else people  # it would sign them out
            row = [gate(asking[each], method, path_of(route)) for each in PEOPLE]
            if set(row) != {"-"}:
                found[f"{name} {method.upper()}"] = row
    limited = {name: row for name, row in found.items() if "no" in row}
    lines = "\n".join(f"| `{name}` | {' | '.join(row)} |" for name, row in limited.items())
    assert limited == table("Who may do what on the pages"), f"SECURITY.md does not have what was found:\n{lines}"
    opened = sorted({name.split()[0] for name in found.keys() - limited.keys()})
    listed = PAGE.partition("Open to everybody:")[2].partition("\n\n")[0]
    assert opened == sorted(re.findall(r"`([\w-]+)`", listed)), f"open to everybody: {', '.join(opened)}"


def test_no_form_of_another_site_does_anything(people: dict[str, Client]) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username="operator"))
    for name, route in patterns(get_resolver().url_patterns):
        # Whoever unsubscribes has no cookies (RFC 8058): the token of the mail is the proof.
        if not route.startswith(("api/", "unsubscribe/")):
            assert client.post(path_of(route)).status_code in (403, 405), name


def outcome(word: Word, policy: str, verdict: AuthVerdict) -> str:
    """Return what a command of the culprit's author does: it acts, it is suggested, or nothing."""
    command = f"#lkp {word.value}" + ("" if word is Word.REMIND_OFF else " v9")
    raw = f"From: d@x.example\nSubject: Re: [mm] 3b1f0c9d2e: a.b 12% regression\nMessage-ID: <a@b>\n\n{command}\n"
    reading = understand(raw.encode(), IDENTITY)
    reading = replace(reading, trust=Trust(verdict, "DKIM", signed=frozenset({"from", "in-reply-to", "content-type"})))
    effects = effects_of(reading, MailContext(Relation.THREAD, Role.AUTHOR), policy)
    commands = [each for each in effects if each.rule.startswith("command")]
    return {Mode.AUTO: "acts", Mode.SUGGEST: "waits", Mode.NONE: "nothing"}[commands[0].mode] if commands else "nothing"


def test_every_command_by_every_policy_and_proof() -> None:
    expected = table("Commands in mail")
    found = {
        word.value: [
            outcome(word, policy, verdict)
            for policy in ("verified", "open", "maintainers")
            for verdict in (AuthVerdict.PASS, AuthVerdict.NONE, AuthVerdict.FAIL)
        ]
        for word in Word
    }
    lines = "\n".join(f"| `{name}` | {' | '.join(row)} |" for name, row in found.items())
    assert found == expected, f"SECURITY.md does not have what was found:\n{lines}"


# --- Nobody does what they may not, and nobody stops the rest: undo, sessions, passwords, views, slow clients ---

PASSWORD = "wool-and-granite-7"


@pytest.fixture
def triager(db: None) -> Client:
    user = User.objects.create_user("toni", "toni@lab.example", PASSWORD)
    user.user_permissions.set(Permission.objects.filter(codename="change_report"))
    return signed_in(user)


@pytest.fixture
def report(db: None) -> Report:
    return line(1, author="dana@dev.example", authors=["dana@dev.example"])


@pytest.fixture
def author(report: Report) -> Client:
    return signed_in(User.objects.create_user("dana", "dana@dev.example", PASSWORD))


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def change(client: Client, report: Report, do: str) -> str:
    """Apply an action, and return the ID of the action that the page then offers to undo."""
    revision = Report.objects.get(pk=report.pk).revision
    before = set(Event.objects.values_list("batch", flat=True))
    client.post("/triage/change/", {"do": do, "row": f"{report.pk}:{revision}"})
    (batch,) = set(Event.objects.values_list("batch", flat=True)) - before
    return batch


# --- undo -----------------------------------------------------------------------------------------


def test_an_author_takes_back_an_operators_act_and_is_refused(triager: Client, author: Client, report: Report) -> None:
    batch = change(triager, report, "block")
    assert Report.objects.get().blocks
    author.post("/triage/undo/", {"batch": batch})
    assert Report.objects.get().blocks
    for client in (author, triager):  # one's own, or with the right
        own = change(author, report, "working")
        assert Report.objects.get().state == "working"
        client.post("/triage/undo/", {"batch": own})
        assert Report.objects.get().state == report.state


def test_what_everybody_can_read_names_no_action(triager: Client, report: Report) -> None:
    batch = change(triager, report, "block")
    for path in ("", "json/", "mbox/"):
        response = Client().get(f"/report/{report.culprit.sha}/{path}")
        content = b"".join(response.streaming_content) if response.streaming else response.content  # type: ignore[attr-defined]
        assert batch.encode() not in content
    key = Event.objects.get(batch=batch).key
    assert batch not in key
    assert triager.post("/triage/undo/", {"batch": key.removeprefix("hand:")}, follow=True).status_code == 200
    assert Report.objects.get().blocks


# --- passwords ------------------------------------------------------------------------------------


def attempt(password: str, name: str = "toni", address: str = "192.0.2.7", path: str = "/sign-in/password/") -> Any:
    return Client().post(path, {"username": name, "password": password}, REMOTE_ADDR=address)


def test_after_five_wrong_passwords_the_right_one_waits(triager: Client) -> None:
    for number in range(accounts.PER_ACCOUNT_AND_NETWORK):
        answer = attempt(f"wrong {number}")
        assert (answer.status_code, "Wrong username or password." in answer.content.decode()) == (200, True)
    locked = attempt(PASSWORD)
    assert (locked.status_code, accounts.TOO_MANY in locked.content.decode()) == (429, True)
    assert attempt(PASSWORD, path="/admin/login/").status_code == 200  # the form again
    assert Session.objects.filter(account=User.objects.get(username="toni").pk).count() == 1  # of the fixture
    assert attempt(PASSWORD, address="192.0.2.8").status_code == 302  # nobody else locks them out
    PasswordAttempt.objects.update(at=timezone.now() - accounts.WINDOW - timedelta(seconds=1))
    assert attempt(PASSWORD).status_code == 302


def test_one_place_that_tries_many_accounts_costs_no_hashes(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[int] = []
    real = User.set_password
    monkeypatch.setattr(User, "set_password", lambda *given: hashed.append(1) or real(*given))  # type: ignore[func-returns-value]
    for number in range(60):
        attempt("x", name=f"user-{number}")
    assert len(hashed) == accounts.PER_NETWORK  # Django hashes for unknown names, too
    assert attempt("x", path="/admin/login/").content.decode().count(accounts.TOO_MANY) == 1


def test_an_account_that_many_places_try_locks_nobody_out(report: Report, triager: Client) -> None:
    for number in range(accounts.PER_ACCOUNT):
        attempt("x", name="Toni", address=f"198.51.100.{number}")
    assert attempt("x", address="203.0.113.5").status_code == 200, "one try from each place is always taken"
    assert attempt(PASSWORD, address="203.0.113.5").status_code == 429, "no second one"
    assert attempt(PASSWORD, address="203.0.113.6").status_code == 302


def test_an_account_that_is_locked_is_opened_by_a_link(report: Report, author: Client) -> None:
    for number in range(accounts.PER_ACCOUNT):
        attempt("x", name="Dana", address=f"198.51.100.{number}")
    link = accounts.request_link("dana@dev.example", "203.0.113.5", timezone.now())
    assert link
    assert Client().post(f"/sign-in/{accounts.sign_in_token(link)}/").status_code == 302


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("x\0y", "xy"),
        ("", ""),
    ],
)
def test_networks(address: str, network: str) -> None:
    assert network_of(address) == network


# --- sessions -------------------------------------------------------------------------------------


def test_a_sign_out_ends_the_session_whoever_has_its_cookie(triager: Client) -> None:
    stolen = Client()
    stolen.cookies["sessionid"] = triager.cookies["sessionid"].value
    assert "Sign out" in stolen.get("/").content.decode()
    triager.post("/sign-out/")
    assert "Sign out" not in stolen.get("/").content.decode()
    assert not Session.objects.exists()


def test_an_operator_ends_sessions_and_a_lost_right_is_lost_at_once(
    triager: Client, admin_client: Client, report: Report
) -> None:
    user = User.objects.get(username="toni")
    user.user_permissions.clear()
    triager.post("/triage/change/", {"do": "working", "row": f"{report.pk}:{report.revision}"})
    assert Report.objects.get().state == report.state
    ended = {"action": "end_sessions", "_selected_action": [user.pk]}
    assert "Sessions ended: 1" in admin_client.post("/admin/auth/user/", ended, follow=True).content.decode()
    assert "Sign out" not in triager.get("/").content.decode()
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert attempt(PASSWORD).status_code == 200


def test_expired_sessions_go_when_somebody_signs_in(triager: Client) -> None:
    Session.objects.update(expire_date=timezone.now() - timedelta(days=1))
    signed_in(User.objects.get(username="toni"))
    assert Session.objects.count() == 1


def test_readers_have_no_session_and_what_is_signed_in_is_not_cached(
    triager: Client, report: Report, django_assert_num_queries: Any
) -> None:
    anonymous = Client().get("/v5.6/")
    assert "sessionid" not in anonymous.cookies
    assert "no-store" not in anonymous.get("Cache-Control", "")
    assert triager.get("/")["Cache-Control"] == "private, no-store"


# --- what others see ------------------------------------------------------------------------------


def test_views_are_shared_by_triagers_and_push_nobodys_out(triager: Client, author: Client, report: Report) -> None:
    form = {"name": "a view", "query": "state=open", "shared": "on"}
    answer = author.post("/views/", form)
    assert (answer.status_code, b"only triagers" in answer.content) == (403, True)
    assert author.post("/views/", {**form, "name": "zzz", "shared": ""}).status_code == 302
    owner = User.objects.get(username="toni")
    SavedView.objects.bulk_create(
        SavedView(owner=owner, name=f"!{number}", query="", shared=True, saved_at=timezone.now())
        for number in range(120)
    )
    report.merged_release = "v5.6"
    report.save()
    assert ">zzz</a>" in author.get("/v5.6/").content.decode()


def test_actions_are_offered_to_those_who_may_use_them(author: Client, triager: Client) -> None:
    line(2, merged_release="v5.6")
    assert 'name="do"' not in author.get("/v5.6/").content.decode()
    assert 'value="working"' in triager.get("/v5.6/").content.decode()


def test_a_thousand_words_are_a_mistake(db: None) -> None:
    line(2, merged_release="v5.6")
    answer = Client().get("/v5.6/", {"q": " ".join(f"w{number}" for number in range(100))})
    assert (answer.status_code, b"expected at most 20 words; found 100" in answer.content) == (400, True)
    assert Client().get("/v5.6/", {"q": " ".join(f"w{number}" for number in range(1000))}).status_code == 400
    assert Client().get("/v5.6/", {"q": "one two three"}).status_code == 200


# --- answers to strangers -------------------------------------------------------------------------


def answers() -> int:
    return OutgoingMail.objects.filter(purpose__startswith=Purpose.ANSWER).count()


def test_a_forged_sender_gets_no_answer(world: World) -> None:
    """An error reply quotes the failed line: it would carry a stranger's text to anybody, in our name."""
    world.settings = replace(world.settings, trust_policy="verified")
    report = world.report()
    victim = replace(LEE, email="victim@elsewhere.example")
    world.post(victim, "#lkp buy this: https://evil.example/\n", to=message_id(report))
    world.read()
    assert answers() == 0
    world.post(DANA, "#lkp nonsense\n", to=message_id(report), Precedence="bulk")
    world.read()
    assert answers() == 0
    world.post(DANA, "#lkp nonsense https://evil.example/\n", to=message_id(report))  # who has got our report
    world.read()
    assert answers() == 1
    assert b"evil.example" not in bytes(OutgoingMail.objects.get(purpose__startswith=Purpose.ANSWER).raw)


# --- floods ---------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The web server that `up` starts, with an empty database; its port."""
    env = {"PATH": "/usr/bin:/bin", "PERFWORK_VAR": str(tmp_path_factory.mktemp("served")), "LOG_LEVEL": "ERROR"}
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=env, check=True)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "bot.web.server", f"127.0.0.1:{port}"]
    servers = [subprocess.Popen(command, cwd=ROOT, env=env) for _ in range(2)]
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    read_front_page(port)  # the first page imports the URLs
    yield port
    for server in servers:
        server.terminate()
    assert [server.wait(20) for server in servers] == [0, 0]


def read_front_page(port: int, timeout: float = 60) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=timeout) as response:
        assert response.status == 200


def still_open(client: socket.socket) -> bool:
    """Whether the server holds this connection that it has been sent half a request over."""
    try:
        client.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False  # an answer (408) or the end: it was given up


@pytest.mark.slow
@pytest.mark.xdist_group("served")
@pytest.mark.parametrize(
    "half",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: b", marks=pytest.mark.long),
        b"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\na",
        pytest.param(b"", marks=pytest.mark.long),
    ],
    ids=["head", "body", "nothing"],
)
def test_half_sent_requests_stop_nobody(served: int, half: bytes) -> None:
    """Twenty sockets that never finish their request stopped the site."""
    with ExitStack() as stack:
        clients: list[socket.socket] = []
        for _ in range(60):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", served)))
            client.sendall(half)
            clients.append(client)
        time.sleep(0.3)
        read_front_page(served)
        assert all(still_open(each) for each in clients)  # nobody had to be given up for it
        for _ in range(9):
            read_front_page(served)


@pytest.mark.slow
@pytest.mark.xdist_group("served")
def test_readers_who_stop_reading_stop_nobody(served: int) -> None:
    """An answer waits in a file for its reader, and no thread does."""
    with ExitStack() as stack:
        for _ in range(30):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", served))
            client.sendall(b"GET /static/perfwork.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 200)
        time.sleep(0.3)
        for _ in range(10):
            read_front_page(served, STALE - 5)  # before any of them is given up


# --- Who may do what to a report, on its page, in tables, by keys: the table in docs/answering.md ---

ANSWERING = (ROOT / "docs" / "answering.md").read_text()
WHO = ("anybody", "reporter", "author", "maintainer", "triager", "operator")
NUMBERS = itertools.count(100)
ARGUMENT = {
    "fixed": "v5.6",
    "gone": "v5.6",
    "note": "seen",
    "tag": "numa",
    "assign": "author@dev.example",
    "culprit": "v5.5..v5.6",
}


@pytest.fixture
def everybody(db: None) -> dict[str, Client]:
    clients = {"anybody": Client()}
    for name in WHO[1:]:
        user = User.objects.create_user(name, f"{name}@dev.example")
        user.groups.set(Group.objects.filter(name=name))
        clients[name] = signed_in(user)
    return clients


def a_report(number: int, **columns: Any) -> Report:
    """A report by a person, whose culprit has an author and a maintainer."""
    report = line(number, author="author@dev.example", state="no_response", **columns)
    Report.objects.filter(pk=report.pk).update(reported_by="person", reporters=["reporter@dev.example"])
    Commit.objects.filter(pk=report.culprit_id).update(
        author_email="author@dev.example", maintainers=["maintainer@dev.example"]
    )
    Release.objects.get_or_create(version="v5.6", defaults={"number": 506})
    return Report.objects.get(pk=report.pk)


def rights_of(everybody: dict[str, Client], may: Callable[[Client, Report], bool]) -> list[str]:
    """Let everybody try something, each with a report of its own."""
    return ["yes" if may(client, a_report(next(NUMBERS))) else "no" for client in everybody.values()]


def acts(action: ActionKey) -> Callable[[Client, Report], bool]:
    def may(client: Client, report: Report) -> bool:
        at = timezone.now()
        first = {"reopen": EventKind.EXPECTED, "unblock": EventKind.BLOCKS}.get(action.name)
        if first:
            value = EventData("first", first, at, actor="kim", tag="v5.6")
            event_log.record([event_log.event_row(report, value, at)])
        argument = ARGUMENT.get(action.name, "")
        if action.name in ("duplicate", "successor"):
            argument = a_report(next(NUMBERS)).culprit.sha
        revision = Report.objects.get(pk=report.pk).revision
        posted = {"do": action.name, "row": f"{report.pk}:{revision}", "argument": argument, "next": "/"}
        answer = client.post("/triage/change/", posted, headers={"HX-Request": "true"})
        assert answer.status_code in (200, 302, 401, 403), answer.content
        return b"1 report changed" in answer.content

    return may


def undoes(own: bool) -> Callable[[Client, Report], bool]:
    def may(client: Client, report: Report) -> bool:
        user = User.objects.filter(pk=client.session.get("_auth_user_id", 0)).first()
        actor = user.username if user and own else "kim"
        action = ReportAction(EventKind.WORKING, actor, secrets.token_hex(6), timezone.now())
        report_actions.change({report.pk: report.revision}, action, lambda report: Role.AUTHOR)
        client.post("/triage/undo/", {"batch": action.batch, "next": "/"})
        return Report.objects.get(pk=report.pk).state == "no_response"

    return may


def decides(client: Client, report: Report) -> bool:
    values = {"kind": "working", "occurred_at": timezone.now(), "role": "author", "rule": "x"}
    suggestion = Suggestion.objects.create(report=report, key="one", **values)
    client.post(f"/review/{suggestion.pk}/decide/", {"decision": "accept"})
    return Suggestion.objects.get(pk=suggestion.pk).decision == "accepted"


def holds(client: Client, report: Report) -> bool:
    values = {"raw": b"", "sender": "x@x", "recipients": [], "subject": "x", "composed_at": timezone.now()}
    mail = OutgoingMail.objects.create(report=report, message_id=f"{report.pk}@x", **values)
    client.post("/outbox/act/", {"verb": "hold", "id": mail.pk, "version": mail.version})
    return OutgoingMail.objects.get(pk=mail.pk).state == "held"


def test_who_may_do_what_to_a_report(everybody: dict[str, Client]) -> None:
    actions = {action.name: rights_of(everybody, acts(action)) for action in ACTION_KEYS}
    whose = actions.pop("culprit")
    states = actions["working"]
    assert actions == dict.fromkeys(actions, states)
    rights = {
        "change where it stands, note, assign": states,
        "undo what one did oneself": rights_of(everybody, undoes(own=True)),
        "undo what somebody else did": rights_of(everybody, undoes(own=False)),
        "correct the culprit": whose,
        "decide on suggestions": rights_of(everybody, decides),
        "approve, hold and edit its mail": rights_of(everybody, holds),
    }
    lines = "\n".join(f"| {name} | {' | '.join(row)} |" for name, row in rights.items())
    assert rights == table("Who may do what to a report", ANSWERING), f"docs/answering.md does not have:\n{lines}"
