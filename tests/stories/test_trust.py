"""A stranger posts as the robot: nothing that exists changes, and nobody gains a right."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from bot.archives import filing
from bot.archives.batch import replay_all
from bot.mail.addresses import Address
from bot.mail.settings import BotSettings
from tests.bot.mail.test_trust import DKIM, RECORD, signed
from tests.bot.robot_reports.test_robot_reports import INVENTED
from tests.world import DANA, World, state
from tracker.models import Decision, Event, Finding, Message, Report, Suggestion
from tracker.services.accounts import permit_of
from tracker.services.report_actions import decide

MALLORY = Address("Mallory", "mallory@evil.example")
ROBOT = "robot@lab.example"
SIGNED = [b"from", b"to", b"cc", b"date", b"subject", b"message-id", b"in-reply-to", b"references", b"content-type"]
DIFF = "---\n--- a/mm/vmscan.c\n+++ b/mm/vmscan.c\n@@ -1,2 +1,2 @@\n-a\n+b\n"
SIGNED += [b"content-transfer-encoding", b"mime-version"]


@pytest.fixture(params=["verified", "maintainers"])
def forged_reports_world(request: pytest.FixtureRequest, tmp_path: Path, bot_settings: BotSettings) -> World:
    anchors = replace(DKIM, key=lambda name: RECORD, signs=lambda domain: domain == "lab.example")
    policy = replace(bot_settings, trust_policy=request.param, trust_anchors=anchors, robots=frozenset({ROBOT}))
    return World(tmp_path, policy)


def report_mail(world: World, to: str, name: str) -> bytes:
    """A robot's report about the culprit of the invented one, sent by the robot's address."""
    text = INVENTED.replace("From: kernel test robot <lkp@intel.com>", f"From: robot <{ROBOT}>")
    head, _, body = text.partition("\n\n")
    head = re.sub(r"(?m)^(?:To|Cc|Message-ID): .*\n", "", head + "\n")
    date = "Wed, 11 Mar 2026 04:12:00 +0000"
    return f"To: {to}\nMessage-ID: <{name}@lab.example>\nDate: {date}\n{head}\n{body}".encode()


def real_report(world: World, signed_headers: list[bytes] = SIGNED) -> bytes:
    """The robot's own report, to the author alone."""
    raw = report_mail(world, "Dana <dana@dev.example>", "real")
    return signed(raw, b"lab.example", include_headers=signed_headers)


def read(world: World, raw: bytes, name: str) -> None:
    file = world.directory / f"{name}.eml"
    file.write_bytes(raw)
    world.read(file)


@pytest.mark.django_db
def test_a_strangers_report_adds_nobody_to_a_report(forged_reports_world: World) -> None:
    read(
        forged_reports_world,
        real_report(forged_reports_world),
        "real",
    )
    report = Report.objects.get()
    before = (report.authors, report.recipients, report.state, report.findings.count(), report.held)
    assert before[0] == ["dana@dev.example"]
    read(forged_reports_world, report_mail(forged_reports_world, str(MALLORY), "forged"), "forged")
    command = forged_reports_world.mail(MALLORY, "#lkp invalid", to="forged@lab.example")
    read(forged_reports_world, signed(command, b"evil.example", include_headers=SIGNED), "command")
    report = Report.objects.get()
    assert (report.authors, report.recipients, report.state, report.findings.count(), report.held) == before
    assert Message.objects.get(author_email=MALLORY.email).role == "third_party"
    assert permit_of(User.objects.create(username="m", email=MALLORY.email))(report) is None
    assert Suggestion.objects.get(kind="reported").message_id == "forged@lab.example"


@pytest.mark.django_db
def test_a_strangers_report_of_a_new_culprit_is_held_and_gives_no_rights(forged_reports_world: World) -> None:
    read(forged_reports_world, report_mail(forged_reports_world, str(MALLORY), "forged"), "forged")
    report = Report.objects.get()
    assert (report.held, report.people_verified) == ("not verified: nothing proves that the robot sent it", False)
    command = forged_reports_world.mail(MALLORY, "#lkp invalid", to="forged@lab.example")
    read(forged_reports_world, signed(command, b"evil.example", include_headers=SIGNED), "command")
    assert state(report) == "no_response" or state(report) == "responded"
    assert permit_of(User.objects.create(username="m", email=MALLORY.email))(report) is None
    # The robot's own report comes: its people are those of the report, and no others.
    read(
        forged_reports_world,
        real_report(forged_reports_world),
        "real",
    )
    report = Report.objects.get()
    assert (report.held, report.authors, report.people_verified) == ("", ["dana@dev.example"], True)
    assert report.state != "invalid"


@pytest.mark.django_db
def test_a_strangers_report_adds_nothing_to_one_without_any_mail(forged_reports_world: World) -> None:
    """As those are that came from a fixture."""
    read(forged_reports_world, real_report(forged_reports_world), "real")
    Message.objects.all().delete()
    before = Report.objects.get()
    read(forged_reports_world, report_mail(forged_reports_world, str(MALLORY), "forged"), "forged")
    after = Report.objects.get()
    same = ("authors", "recipients", "people_verified", "held", "state")
    assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]


@pytest.mark.django_db
def test_a_strangers_report_under_the_same_message_id_keeps_the_robots_out_of_nothing(
    forged_reports_world: World,
) -> None:
    read(forged_reports_world, report_mail(forged_reports_world, str(MALLORY), "real"), "forged")
    assert not Report.objects.get().people_verified
    read(forged_reports_world, real_report(forged_reports_world), "real")
    report = Report.objects.get()
    assert (report.held, report.authors, report.people_verified) == ("", ["dana@dev.example"], True)
    assert Message.objects.get().trust == "pass"
    assert list(report.events.values_list("kind", flat=True).order_by("kind")) == ["landed", "reported"]
    assert not Suggestion.objects.exists()
    assert report.findings.count() == 2


@pytest.mark.django_db
def test_who_accepts_a_held_report_vouches_for_its_people(forged_reports_world: World) -> None:
    read(forged_reports_world, report_mail(forged_reports_world, "Dana <dana@dev.example>", "old"), "old")
    report = Report.objects.get()
    dana = User.objects.create(username="d", email="dana@dev.example")
    assert permit_of(dana)(report) is None
    assert decide(Suggestion.objects.get(kind="reported"), Decision.ACCEPTED, "mira", forged_reports_world.now)
    assert permit_of(dana)(Report.objects.get()) == "author"


@pytest.mark.django_db
def test_a_recipient_that_the_robot_did_not_sign_is_none(forged_reports_world: World) -> None:
    raw = real_report(forged_reports_world, [each for each in SIGNED if each != b"cc"])
    read(forged_reports_world, b"Cc: Mallory <mallory@evil.example>\n" + raw, "real")
    assert Report.objects.get().recipients == ["dana@dev.example"]


@pytest.mark.django_db
def test_whichever_mail_comes_first_the_rows_are_the_same(forged_reports_world: World) -> None:
    """A stranger's report under another name and tree, the robot's own two, and what is answered to them."""
    forged = report_mail(forged_reports_world, "Dana <dana@dev.example>, Mallory <mallory@evil.example>", "forged")
    forged = forged.replace(b"[linus:master] [mm/vmscan]", b"[evil:branch] [evil]").replace(b"walk cold", b"steal all")
    later = (
        report_mail(forged_reports_world, "Dana <dana@dev.example>", "later")
        .replace(b"11 Mar", b"12 Mar")
        .replace(b"12.4%", b"12.5%")
    )
    answer = forged_reports_world.mail(DANA, "I can reproduce it. The lock is to blame.", to="real@lab.example")
    mails = {
        "forged": forged,
        "real": real_report(forged_reports_world),
        "later": signed(later, b"lab.example", include_headers=SIGNED),
        "dana": signed(answer, b"dev.example", include_headers=SIGNED),
        "mallory": forged_reports_world.mail(MALLORY, "I will send a fix tomorrow.", to="forged@lab.example"),
        "revert": forged_reports_world.mail(
            MALLORY, f"It is slow since then.\n{DIFF}", subject='[PATCH] Revert "mm/vmscan: steal all folios first"'
        ),
    }
    seen = {
        order: _rows_after(forged_reports_world, mails, order)
        for order in Random(1).sample(list(permutations(mails)), 12)
    }
    first = next(iter(seen.values()))
    assert first["report"] == ["[linus:master] [mm/vmscan] 3b1f0c9d2e: vm-scan.ops_per_sec -12.4% regression"]
    for order, rows in seen.items():
        for name, of_table in rows.items():
            assert of_table == first[name], f"{name}, read in the order {', '.join(order)}"


@pytest.mark.django_db
def test_many_forged_reports_of_before_do_not_keep_the_real_one_out(
    forged_reports_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filing, "MOST_REPORTS", 3)
    read(forged_reports_world, real_report(forged_reports_world), "real")
    columns = ("title", "subsystem", "verdict", "held", "findings__metric__name")
    before = sorted(Report.objects.values_list(*columns))
    for number in range(4):
        forged = report_mail(forged_reports_world, str(MALLORY), f"forged{number}").replace(b"11 Mar", b"01 Mar")
        read(
            forged_reports_world,
            forged.replace(b"[mm/vmscan]", b"[evil]").replace(b"regression", b"improvement"),
            f"forged{number}",
        )
    assert sorted(Report.objects.values_list(*columns)) == before


@pytest.mark.django_db
@pytest.mark.parametrize("accepted", [False, True])
def test_a_replay_keeps_what_an_unproven_report_measured(forged_reports_world: World, accepted: bool) -> None:
    read(forged_reports_world, report_mail(forged_reports_world, "Dana <dana@dev.example>", "old"), "old")
    if accepted:
        assert decide(Suggestion.objects.get(kind="reported"), Decision.ACCEPTED, "mira", forged_reports_world.now)
    columns = ("metric__name", "change_pct", "headline", "report__held", "report__title")
    before = list(Finding.objects.order_by("pk").values_list(*columns))
    replay_all(forged_reports_world.settings, forged_reports_world.now)
    assert list(Finding.objects.order_by("pk").values_list(*columns)) == before
    assert len(before) == 2


@pytest.mark.django_db
@pytest.mark.parametrize("order", list(permutations(("one", "two", "later"))))
def test_of_unproven_reports_the_earliest_counts(forged_reports_world: World, order: tuple[str, ...]) -> None:
    mails = {
        "one": report_mail(forged_reports_world, "Dana <dana@dev.example>", "one"),
        "two": report_mail(forged_reports_world, str(MALLORY), "two")
        .replace(b"[mm/vmscan]", b"[evil]")
        .replace(b"11 Mar", b"12 Mar"),
        "later": report_mail(forged_reports_world, "Lee <lee@dev.example>", "later").replace(b"11 Mar", b"13 Mar"),
    }
    for name in order:
        read(forged_reports_world, mails[name], "".join(order) + name)
    report = Report.objects.get()
    assert (report.subsystem, report.authors, report.people_verified) == ("mm/vmscan", ["dana@dev.example"], False)
    assert report.held == "not verified: nothing proves that the robot sent it"


def _rows_after(world: World, mails: dict[str, bytes], order: tuple[str, ...]) -> dict[str, list[object]]:
    """Read mails in this order into an empty database, and return its rows, but for keys and clocks."""
    with transaction.atomic():
        for name in (*order, *order):  # what waits in an mbox for what it names comes once more
            read(world, mails[name], "-".join(order) + name)
        report = Report.objects.all()
        columns = ("message_id", "kind", "role", "key", "quote")
        rows: dict[str, list[object]] = {
            "report": list(report.values_list("title", flat=True)),
            "columns": list(
                report.values_list(
                    *("verdict", "subsystem", "tree__name", "branch", "authors", "recipients", "people_verified"),
                    *("held", "state", "status", "culprit__title", "culprit__author_email"),
                )
            ),
            "events": list(Event.objects.order_by("key").values_list(*columns)),
            "suggestions": list(Suggestion.objects.order_by("key").values_list(*columns)),
            "mails": list(
                Message.objects.order_by("message_id").values_list("message_id", "role", "relation", "trust")
            ),
            "findings": list(Finding.objects.order_by("pk").values_list("metric__name", "change_pct", "headline")),
        }
        transaction.set_rollback(True)
    return rows
