"""Pruning removes what no report rests on, and nothing else; erasing removes what a person wrote, and keeps facts."""

from __future__ import annotations

import os
import zlib
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import Client

from bot.archives.batch import replay_all
from bot.archives.reader import read_source
from bot.archives.sources import open_sources
from bot.mail.addresses import Address
from bot.operations import NOBODY, Retention, erase, prune
from tests.world import DANA, DIFF, World, message_id
from tracker.models import (
    Commit,
    Correspondent,
    Event,
    Mailing,
    Message,
    PendingReference,
    RateCalendar,
    RawMessage,
    Report,
    SavedView,
    SignIn,
    Suggestion,
)


def answer(world: World, report: Report, text: str) -> None:
    """Post an answer of the author, and read it."""
    world.post(DANA, text, to=message_id(report))
    world.read()


def raw(digest: str, at: datetime, error: str = "") -> RawMessage:
    return RawMessage.objects.create(digest=digest, compressed=b"", received_at=at, error=error)


@pytest.mark.django_db
def test_only_what_nothing_rests_on_is_removed(world: World, tmp_path: Path, now: datetime) -> None:
    report = world.report()
    answer(world, report, "I will look into the lock tomorrow.")
    kept = set(RawMessage.objects.values_list("pk", flat=True))
    old = now - timedelta(days=400)
    RawMessage.objects.update(received_at=old)
    waits, unrelated, broken = raw("a", old), raw("b", old), raw("c", old, error="ValueError: x")
    young = raw("d", now - timedelta(days=30))
    PendingReference.objects.create(key="x@y", source=waits)
    SignIn.objects.create(address="a@b.example", asked_at=old)
    SignIn.objects.create(address="a@b.example", asked_at=now)
    drop = tmp_path / "drop"
    for folder in ("done", "refused"):
        (drop / folder).mkdir(parents=True)
    (drop / "done" / "new.json").touch()
    old_file = drop / "done" / "old.json"
    old_file.touch()
    os.utime(old_file, (old.timestamp(), old.timestamp()))

    counted = {each.what: each.number for each in prune(drop, now, dry_run=True)}
    assert RawMessage.objects.filter(pk__in=(waits.pk, unrelated.pk)).count() == 2, "a dry run removes nothing"
    removed = {each.what: each.number for each in prune(drop, now)}
    assert counted == removed
    assert removed["pending mails"] == removed["unrelated mails"] == removed["sign-in links"] == 1
    left = set(RawMessage.objects.values_list("pk", flat=True))
    assert left == kept | {broken.pk, young.pk}
    assert (drop / "done" / "new.json").exists()
    # A file that was just moved there is kept, however old its content.
    assert old_file.exists()
    later = prune(drop, datetime.now(tz=now.tzinfo) + timedelta(days=400), Retention())
    assert {each.what: each.number for each in later}["imported files"] == 2


@pytest.mark.django_db
def test_what_is_needed_again_while_it_is_chosen_stays(
    world: World, tmp_path: Path, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = raw("a", now - timedelta(days=400))
    monkeypatch.setattr(
        "bot.operations.locks.take", lambda lock: RawMessage.objects.filter(pk=row.pk).update(error="ValueError")
    )
    prune(tmp_path, now)
    assert RawMessage.objects.filter(pk=row.pk).exists()


@pytest.mark.django_db
def test_what_a_person_wrote_is_erased_and_the_facts_stay(world: World, now: datetime, client: Client) -> None:
    report = world.report()
    answer(world, report, "Thanks! I am working on a patch, it will be ready on Monday.")
    before = [(each.kind, each.occurred_at) for each in Event.objects.order_by("pk")]
    state = (report_now := type(report).objects.get(pk=report.pk)).state
    assert state == "working"
    user = get_user_model().objects.create_user("dana", email=DANA.email, password="x" * 20)
    SavedView.objects.create(owner=user, name="mine", query="", saved_at=now)
    assert Message.objects.filter(author_email=DANA.email).exists()

    waiting = RawMessage.objects.create(
        digest="w",
        compressed=zlib.compress(f"From: Dana <{DANA.email}>\nSubject: x\n\nzebra\n".encode()),
        received_at=now,
    )
    near = f"x{DANA.email}"
    Report.objects.update(recipients=[DANA.email, DANA.name.lower(), near])

    found = erase(DANA.email.upper(), now)

    assert (found.mails, found.accounts) == (2, 1)
    waiting.refresh_from_db()
    assert waiting.raw == b""
    assert Report.objects.get(pk=report.pk).recipients == [near], "another person's address only ends like it"
    mail = Message.objects.get(author_email=NOBODY)
    assert (mail.author_name, mail.own_text, mail.subject, mail.source.raw) == ("", "", "", b"")
    assert [(each.kind, each.occurred_at) for each in Event.objects.order_by("pk")] == before
    assert not Event.objects.filter(message_id=mail.message_id).exclude(quote="").exists()
    assert not Suggestion.objects.filter(message_id=mail.message_id).exclude(quote="").exists()
    user.refresh_from_db()
    assert (user.username, user.email, user.is_active) == (f"erased-{user.pk}", "", False)
    assert not SavedView.objects.exists()
    assert Correspondent.objects.get(address=DANA.email).mailing == Mailing.OPTED_OUT
    report_now.refresh_from_db()
    assert report_now.state == state
    page = client.get(f"/report/{report.culprit.sha}/")
    assert page.status_code == 200
    assert "ready on Monday" not in page.content.decode()


@pytest.mark.django_db
def test_what_was_erased_does_not_come_back(world: World, now: datetime) -> None:
    report = world.report()
    answer(world, report, "Thanks! I am working on a patch, it will be ready on Monday.")
    erase(DANA.email, now)
    events = Event.objects.count()
    replay_all(world.settings, now)
    for source in open_sources(str(world.inbox.path)):
        read_source(source, world.settings, now, again=True)
    assert not Message.objects.filter(author_email=DANA.email).exists()
    assert not any(b"ready on Monday" in each.raw for each in RawMessage.objects.all())
    assert Event.objects.count() == events


@pytest.mark.django_db
def test_what_waited_for_its_report_and_was_erased_does_not_come_back(
    world: World, now: datetime, tmp_path: Path
) -> None:
    text = f'My secret plan.\n\nFixes: {"b" * 12} ("mm: a")\nSigned-off-by: {DANA}\n---\n{DIFF}'
    mail = world.mail(DANA, text, subject="[PATCH] mm: mend")
    mbox = tmp_path / "list.mbox"
    mbox.write_bytes(b"From x@y.example Thu Jan  1 00:00:00 2026\n" + bytes(mail) + b"\n")
    world.read(mbox)
    [waiting] = RawMessage.objects.all()
    assert b"secret plan" in waiting.raw
    assert erase(DANA.email, now).mails == 1
    world.report("mm: a", "b" * 40)  # which names what it waited for
    for again in (False, True):
        for source in open_sources(str(mbox)):
            read_source(source, world.settings, now, again=again)
    assert not any(b"secret plan" in each.raw for each in RawMessage.objects.all())
    assert not Message.objects.filter(own_text__contains="secret").exists()
    assert not Event.objects.filter(kind="fix_proposed").exists()


@pytest.mark.django_db
def test_names_are_forgotten_as_they_are_stored_and_whom_a_robot_wrote_to_as_well(world: World, now: datetime) -> None:
    report = world.report()
    world.post(Address("J. R. Park", "jr@dev.example"), "I will look into it.", to=message_id(report))
    world.read()
    keys = ["jr@dev.example", "j r park", "lee@dev.example"]
    Report.objects.update(recipients=keys, authors=keys)
    Commit.objects.filter(pk=report.culprit_id).update(
        author_name="J. R. Park", author_email="jr@dev.example", author_from_report=True
    )
    RateCalendar.objects.create(key="jr@dev.example")
    erase("jr@dev.example", now)
    report = Report.objects.select_related("culprit").get()
    assert (report.recipients, report.authors) == (["lee@dev.example"], ["lee@dev.example"])
    assert (report.culprit.author_name, report.culprit.author_email, report.author) == ("", "", "")
    assert not RateCalendar.objects.exists()


@pytest.mark.django_db
def test_erasing_asks_first() -> None:
    with pytest.raises(CommandError, match="can't be undone: add --yes"):
        call_command("erase", DANA.email)
    with pytest.raises(CommandError, match="expected an address"):
        call_command("erase", "dana", yes=True)
