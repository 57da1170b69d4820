"""Every address, method and kind of person, and every command, policy and proof, against the tables of SECURITY.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from bot.mail.authentication import AuthVerdict, Trust
from bot.replies.commands import Word
from bot.replies.effects import effects_of
from bot.replies.reading import understand
from bot.replies.rules.notation import MailContext, Mode, Relation
from bot.replies.training import IDENTITY
from tests.conftest import ROOT
from tests.tracker.lines import line
from tracker.domain.events import Role

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


def table(heading: str) -> dict[str, list[str]]:
    """Return the rows of the table below a heading, by their first cells."""
    part = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
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
