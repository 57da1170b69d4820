"""Which patch may run: series and their parts, what strangers and undo must not do, what a proof covers."""

from __future__ import annotations

import re
from datetime import timedelta
from email.message import EmailMessage
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from bot import lab
from bot.demo import DemoTree
from bot.git import inspection
from bot.git.repository import Unreadable
from bot.lab import open_jobs, requested_patch
from bot.mail.addresses import Address
from bot.mail.message import parse
from bot.mail.settings import BotSettings
from tests.support.lab import (
    ANOTHER,
    DIFF,
    EVE,
    STALE,
    answers,
    ask,
    claimed_patch,
    measured,
    opened,
    posting,
    round_of,
    series,
)
from tests.support.world import DANA, World, message_id
from tracker.domain.events import EventData, EventKind, Role
from tracker.models import Event, Finding, LabJob, Message, Report
from tracker.services import event_log, lab_jobs

# --- What strangers and undo must not do ---


@pytest.mark.parametrize(
    ("sender", "proven"),
    [(EVE, False), (Address(DANA.name, EVE.email), False), (DANA, True)],
    ids=["a stranger", "a stranger by the author's name", "the author"],
)
def test_a_signature_of_ones_own_orders_no_test(
    lab_world: World, report: Report, sender: Address, proven: bool
) -> None:
    """Everybody has a domain that signs, and a patch runs on the lab's machines."""
    lab_world.settings = BotSettings(address=lab_world.settings.address)  # the default policy
    lab_world.post(sender, f"Can you test this patch?\n\n{DIFF}", to=message_id(report))
    lab_world.read()
    Message.objects.filter(author_email=sender.email).update(trust="pass")
    open_jobs(lab_world.settings, [], lab_world.now)
    assert LabJob.objects.get().proven is proven


def test_a_strangers_later_patch_is_not_the_one_that_was_meant(lab_world: World, report: Report, runner: Any) -> None:
    lab_world.settings = BotSettings(address=lab_world.settings.address)  # the default policy
    lees = posting(lab_world, to=message_id(report))
    lab_world.read()
    asked = EventData("ask", EventKind.TEST_ASKED, lab_world.later(), actor="toni", role=Role.MAINTAINER)
    event_log.record([event_log.event_row(report, asked, lab_world.now)])
    eves = DIFF.replace("SCAN_COST 40", "SCAN_COST 0")
    lab_world.post(
        EVE, f"x\n\n---\n{eves}", subject="[PATCH] mm: eve's", message_id="eve@x.example", to=message_id(report)
    )
    lab_world.read()
    open_jobs(lab_world.settings, [], lab_world.later())
    tested = LabJob.objects.get(event_key="ask")
    assert (tested.patch_mail, tested.proven) == (lees, False)  # toni stands for the request, and nobody for the patch
    assert not LabJob.objects.filter(proven=True).exists()
    assert runner("claim", {}) == (204, None)


def test_a_strangers_patch_that_does_not_apply_gets_no_mail(lab_world: World, report: Report) -> None:
    lab_world.settings = BotSettings(address=lab_world.settings.address)
    for number in range(3):
        subject = f"BUY NOW {number} http://evil.example/x"
        text = f"Can you test this patch?\n\n{STALE}"
        lab_world.post(Address("Eve", f"eve{number}@x.example"), text, subject=subject, to=message_id(report))
    lab_world.read()
    open_jobs(lab_world.settings, [lab_world.directory / "linux.git"], lab_world.now)
    assert not Event.objects.filter(result__startswith="job/").exists()
    assert answers(lab_world) == []


def test_a_report_gets_few_such_answers_a_day(lab_world: World, report: Report) -> None:
    ask(lab_world, report, f"Can you test this patch?\n\n{STALE}")
    opened(lab_world)
    for number in range(6):
        stale = STALE.replace("SCAN_COST 40", f"SCAN_COST {number}")
        ask(lab_world, report, f"And this patch, can you test it?\n\n{stale}")
    trees = [lab_world.directory / "linux.git"]
    for _ in range(3):
        open_jobs(lab_world.settings, trees, lab_world.now)
    assert Event.objects.filter(result__startswith="job/").count() == 5
    open_jobs(lab_world.settings, trees, lab_world.now + timedelta(days=2))
    assert Event.objects.filter(result__startswith="job/").count() == 7  # none is forgotten


def test_undo_brings_a_withdrawn_job_back(lab_world: World, report: Report, runner: Any) -> None:
    ask(lab_world, report)
    job = opened(lab_world)
    event = EventData("a", EventKind.INVALID, lab_world.later(), actor="toni")
    event_log.record([event_log.event_row(report, event, lab_world.now)])
    open_jobs(lab_world.settings, [], lab_world.now)
    undone = EventData("u", EventKind.REVERSED, lab_world.later(), actor="toni", reverses="a")
    event_log.record([event_log.event_row(report, undone, lab_world.now)])
    open_jobs(lab_world.settings, [], lab_world.now)
    job.refresh_from_db()
    assert job.state == "waiting"
    assert runner("claim", {})[0] == 200


def test_undo_of_a_result_opens_its_job_again(lab_world: World, report: Report, runner: Any) -> None:
    ask(lab_world, report)
    job = opened(lab_world)
    for number in (1, 2):
        claimed = runner("claim", {})[1]
        assert runner(f"{job.pk}/result", measured(claimed, 70.0, 70.0))[0] == 200
        event = Event.objects.filter(result=job.name, reverses="").order_by("-pk")[0]
        undone = EventData(f"u{number}", EventKind.REVERSED, timezone.now(), actor="toni", reverses=event.key)
        event_log.record([event_log.event_row(report, undone, timezone.now())])
        assert open_jobs(lab_world.settings, [], timezone.now()) == 0
    job.refresh_from_db()
    assert (job.state, job.payload) == ("waiting", "")
    assert Event.objects.filter(result=job.name).count() == 2


def test_the_culprit_is_looked_for_in_every_tree(lab_world: World, report: Report) -> None:
    other = DemoTree(lab_world.directory / "other.git")
    other.commit("another project", DANA, lab_world.now)
    ask(lab_world, report)
    open_jobs(
        lab_world.settings,
        [lab_world.directory / "other.git", lab_world.directory / "linux.git"],
        lab_world.now,
    )
    job = LabJob.objects.get()
    assert (job.applies, job.base) == (True, report.culprit.sha)
    found = inspection.check([lab_world.directory / "other.git"], ["f" * 40], STALE)
    assert not found.known  # a head alone says nothing


def test_a_slow_tree_says_nothing_about_a_patch(
    lab_world: World, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*arguments: object, **options: object) -> bytes:
        raise Unreadable("/srv/linux.git: git apply took more than 120 s")

    ask(lab_world, report)
    monkeypatch.setattr(inspection.git, "run", slow)
    open_jobs(lab_world.settings, [lab_world.directory / "linux.git"], lab_world.now)
    job = LabJob.objects.get()
    assert (job.applies, job.detail) == (None, "")


def test_a_report_without_findings_burns_no_attempt(lab_world: World, report: Report, runner: Any) -> None:
    ask(lab_world, report)
    job = opened(lab_world)
    Finding.objects.filter(report=report).delete()
    assert runner("claim", {}) == (204, None)
    job.refresh_from_db()
    assert (job.state, job.attempts) == ("waiting", 0)


@pytest.mark.parametrize("path", ["claim", "1/extend", "1/result"])
def test_nul_is_refused(db: None, runner: Any, path: str) -> None:
    assert runner(path, {"runner": "a\0b", "lease": "\0"})[0] == 400


# --- Series ---


def place_of(number: int, total: int, version: int = 1) -> str:
    return f"[PATCH{f' v{version}' if version > 1 else ''} {number}/{total}]"


def part(world: World, author: Address, number: int, diff: str, to: str, **more: Any) -> str:
    """Post a part of a series, and return its Message-ID."""
    total, version = more.pop("total", 2), more.pop("version", 1)
    name = more.pop("message_id", f"v{version}-part-{number}@dev.example")
    place = more.pop("place", "") or place_of(number, total, version)
    subject = f"{place} mm: part {number}"
    text = f"Part {number}.\n\n---\n{diff}" if diff else "Two patches that help."
    world.post(author, more.pop("text", text), to=to, subject=subject, message_id=name, **more)
    return name


@pytest.mark.parametrize("asked", ["cover", "first", "last", "below"])
def test_a_runner_gets_the_whole_series(lab_world: World, report: Report, runner: Any, asked: str) -> None:
    world = lab_world
    cover = part(world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    names = {"cover": cover, "first": part(world, DANA, 1, DIFF, cover), "last": part(world, DANA, 2, SECOND, cover)}
    world.post(DANA, "#lkp test", to=names.get(asked, names["last"]), message_id="asking@dev.example")
    world.read()
    round_of(world)
    job = LabJob.objects.get()
    assert (job.patch_mail, job.title, job.applies) == (cover, "mm: part 0", True)
    assert claimed_patch(runner) == DIFF + SECOND


SECOND = (
    DIFF.replace("56", "40")
    .replace("SCAN_COST 40\n+", "SCAN_COST 40\n+", 1)
    .replace("+#define SCAN_COST 40", "+#define SCAN_COST 30")
)


def test_a_series_without_a_cover_letter_and_deeply_threaded(lab_world: World, report: Report, runner: Any) -> None:
    first = part(lab_world, DANA, 1, DIFF, message_id(report))
    second = part(lab_world, DANA, 2, SECOND, first)
    lab_world.post(DANA, "#lkp test", to=second)
    lab_world.read()
    round_of(lab_world)
    assert LabJob.objects.get().patch_mail == first
    assert claimed_patch(runner) == DIFF + SECOND


def test_all_who_ask_for_parts_of_a_series_get_one_job(lab_world: World, report: Report) -> None:
    cover = part(lab_world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    names = [cover, part(lab_world, DANA, 1, DIFF, cover), part(lab_world, DANA, 2, SECOND, cover)]
    for name in names:
        lab_world.post(DANA, "#lkp test", to=name)
    lab_world.read()
    round_of(lab_world)
    assert len(LabJob.objects.get().joined) == 2


def test_the_second_version_of_a_series_is_its_own(lab_world: World, report: Report, runner: Any) -> None:
    """It is posted in reply to the first one's cover letter, as some do."""
    world = lab_world
    cover = part(world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    part(world, DANA, 1, ANOTHER, cover)
    part(world, DANA, 2, ANOTHER, cover)
    part(world, DANA, 1, DIFF, cover, version=2)
    last = part(world, DANA, 2, SECOND, cover, version=2)
    world.post(DANA, "#lkp test", to=last)
    world.read()
    round_of(world)
    assert claimed_patch(runner) == DIFF + SECOND


def test_a_strangers_part_is_not_of_her_series(lab_world: World, report: Report, runner: Any) -> None:
    cover = part(lab_world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    part(lab_world, EVE, 1, ANOTHER, cover, message_id="evil@x.example")
    part(lab_world, DANA, 1, DIFF, cover)
    part(lab_world, DANA, 2, SECOND, cover)
    lab_world.post(DANA, "#lkp test", to=cover)
    lab_world.read()
    round_of(lab_world)
    assert claimed_patch(runner) == DIFF + SECOND


def test_a_series_waits_for_its_parts(lab_world: World, report: Report, runner: Any, client: Client) -> None:
    cover = part(lab_world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    part(lab_world, DANA, 1, DIFF, cover)
    lab_world.post(DANA, "#lkp test", to=cover)
    lab_world.read()
    round_of(lab_world)
    Message.objects.update(public=True)
    assert "part 2 of 2 is not here" in client.get(f"/lab/job/{LabJob.objects.get().pk}/").content.decode()
    assert runner("claim", {})[0] == 204
    part(lab_world, DANA, 2, SECOND, cover)
    lab_world.read()
    round_of(lab_world)
    assert claimed_patch(runner) == DIFF + SECOND


def test_the_part_that_does_not_apply_is_named(lab_world: World, report: Report) -> None:
    cover = part(lab_world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    part(lab_world, DANA, 1, DIFF, cover)
    part(lab_world, DANA, 2, STALE, cover)
    lab_world.post(DANA, "#lkp test", to=cover)
    lab_world.read()
    round_of(lab_world)
    job = LabJob.objects.get()
    assert (job.state, job.outcome) == ("done", "does-not-apply")
    assert job.detail.startswith("part 2 of 2: error: patch failed: mm/vmscan.c:1")
    [mail] = answers(lab_world)
    assert "part 2 of 2: error: patch failed" in parse(bytes(mail.raw)).text


# --- What is proven or allowed is one text on one base ---


def forged(world: World, number: int, diff: str, to: str, **more: Any) -> str:
    """A part that nobody signed, in Dana's name; hers are signed."""
    name = part(world, DANA, number, diff, to, message_id=f"forged-{number}@x.example", **more)
    world.read()
    return name


def signed_by_dana(*names: str) -> None:
    Message.objects.filter(message_id__in=names).update(trust="pass")


def with_default_policy(world: World, report: Report) -> str:
    """Dana's signed series of two under the default policy; its cover letter."""
    world.settings = BotSettings(address=world.settings.address)
    cover = part(world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    parts = [part(world, DANA, 1, DIFF, cover), part(world, DANA, 2, SECOND, cover)]
    world.read()
    signed_by_dana(cover, *parts)
    return cover


def asks(world: World, report: Report, author: Address, to: str, *, proven: bool) -> str:
    """Let somebody ask for a test of what a mail has; return the mail that asks."""
    name = f"asking-{Message.objects.count()}@x.example"
    world.post(author, "Could you test this, please?", to=to, message_id=name)
    world.read()
    Message.objects.filter(message_id=name).update(trust="pass" if proven else "none")
    role = Role.AUTHOR if author is DANA else Role.THIRD_PARTY
    at = Message.objects.get(message_id=name).sent_at or world.now
    value = EventData(f"t:{name}", EventKind.TEST_ASKED, at, role=role, message_id=name, in_reply_to=to)
    event_log.record([event_log.event_row(report, value, world.now)])
    round_of(world)
    return name


def test_a_forged_part_is_neither_taken_nor_proven_by_who_joins(lab_world: World, report: Report, runner: Any) -> None:
    cover = with_default_policy(lab_world, report)
    forged(lab_world, 2, ANOTHER, cover)
    asks(lab_world, report, EVE, cover, proven=False)
    asks(lab_world, report, DANA, "v1-part-2@dev.example", proven=True)
    status, claimed = runner("claim", {})
    assert (status, claimed["patch"]) == (200, DIFF + SECOND)


def test_a_base_that_a_stranger_names_is_not_proven_by_who_joins(lab_world: World, report: Report, runner: Any) -> None:
    world = lab_world
    world.settings = BotSettings(address=world.settings.address)
    world.post(EVE, f"---\n{STALE}\nbase-commit: {'6' * 40}\n", to=message_id(report), message_id="eve@x.example")
    world.post(DANA, f"---\n{STALE}", to=message_id(report), message_id="dana@dev.example")
    world.read()
    signed_by_dana("dana@dev.example")
    asks(world, report, EVE, "eve@x.example", proven=False)
    asks(world, report, DANA, "dana@dev.example", proven=True)
    assert not LabJob.objects.filter(proven=True, base="6" * 40).exists()
    assert runner("claim", {})[0] == 204


@pytest.mark.parametrize("base", ["6" * 40, "6" * 12])
def test_a_cover_letter_names_the_base_if_it_is_proven_as_its_parts_are(
    lab_world: World, report: Report, base: str
) -> None:
    """As `git format-patch --base --cover-letter` writes it, or a hand with fewer digits."""
    cover = part(lab_world, DANA, 0, "", message_id(report), text=f"Two.\n\nbase-commit: {base}\n")
    parts = [part(lab_world, DANA, 1, DIFF, cover), part(lab_world, DANA, 2, SECOND, cover)]
    lab_world.read()
    assert requested_patch(cover).base == base
    signed_by_dana(*parts)  # and anybody can have written the cover letter
    assert {requested_patch(name).base for name in (cover, *parts)} == {""}
    signed_by_dana(cover)
    assert {requested_patch(name).base for name in (cover, *parts)} == {base}


def test_nobody_allows_a_series_of_which_a_part_is_not_here(lab_world: World, report: Report, runner: Any) -> None:
    lab_world.settings = BotSettings(address=lab_world.settings.address)
    cover = part(lab_world, EVE, 0, "", message_id(report), message_id="cover@x.example")
    part(lab_world, EVE, 1, DIFF, cover)
    lab_world.read()
    asks(lab_world, report, EVE, cover, proven=False)
    job = LabJob.objects.get(request="test a patch")
    assert not lab_jobs.allow(job.pk, "olga")
    part(lab_world, EVE, 2, ANOTHER, cover)
    lab_world.read()
    round_of(lab_world)
    assert runner("claim", {})[0] == 204


def test_a_series_of_megabytes_is_not_parsed_for_whoever_asks(
    lab_world: World, report: Report, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    cover = part(lab_world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    part(lab_world, DANA, 1, DIFF, cover)
    part(lab_world, DANA, 2, SECOND, cover)
    lab_world.read()
    page = f"/lab/patch/{Message.objects.get(message_id=cover).pk}"
    assert client.get(page).content.decode() == DIFF + SECOND
    monkeypatch.setattr(lab, "MOST_BYTES", 100)
    assert client.get(page).status_code == 404


@pytest.mark.parametrize(
    "place",
    [
        *(
            "[PATCH {} net-next]",
            "[PATCH {} v2]",
            "[PATCH v2][{}]",
            "[PATCH] ({})",
            "[PATCH{}]",
            "[RFC PATCH {} RESEND]",
        ),
        *("[PATCH {of}]", "[PATCH mm-hotfixes {blanks}]", "[PATCH 6.1/6.6 {}]"),
    ],
)
def test_the_parts_of_a_series_whose_subjects_are_written_by_hand(
    lab_world: World, report: Report, runner: Any, place: str
) -> None:
    def at(number: int) -> str:
        return place.format(f"{number}/2", of=f"{number} of 2", blanks=f"{number} / 2")

    cover = part(lab_world, DANA, 0, "", message_id(report), message_id="cover@dev.example", place=at(0))
    part(lab_world, DANA, 1, DIFF, cover, place=at(1))
    part(lab_world, DANA, 2, SECOND, cover, place=at(2))
    lab_world.post(DANA, "#lkp test", to=cover)
    lab_world.read()
    round_of(lab_world)
    assert claimed_patch(runner) == DIFF + SECOND


def test_a_part_that_was_sent_twice_keeps_no_series_from_running(lab_world: World, report: Report, runner: Any) -> None:
    cover = part(lab_world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    part(lab_world, DANA, 1, DIFF, cover)
    part(lab_world, DANA, 2, STALE, cover)
    again = part(lab_world, DANA, 2, SECOND, cover, message_id="again@dev.example")
    lab_world.post(DANA, "#lkp test", to=again)
    lab_world.read()
    round_of(lab_world)
    assert claimed_patch(runner) == DIFF + SECOND


def test_a_private_part_is_shown_to_nobody_else(lab_world: World, report: Report, client: Client) -> None:
    cover = series(lab_world, report)
    Message.objects.update(public=True)
    Message.objects.filter(message_id="part-2@dev.example").update(public=False)
    for name in (cover, "part-1@dev.example"):
        shown = client.get(f"/lab/patch/{Message.objects.get(message_id=name).pk}").content.decode()
        assert "OTHER_COST" not in shown


@pytest.mark.parametrize("first", [EVE, DANA])
def test_any_asker_may_prove_a_series_that_comes_later(
    lab_world: World, report: Report, runner: Any, first: Address
) -> None:
    world = lab_world
    world.settings = BotSettings(address=world.settings.address)
    cover = part(world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    one = part(world, DANA, 1, DIFF, cover)
    world.read()
    signed_by_dana(cover, one)
    for author in (first, DANA if first is EVE else EVE):
        asks(world, report, author, cover, proven=author is DANA)
    two = part(world, DANA, 2, SECOND, cover)
    world.read()
    signed_by_dana(two)
    round_of(world)
    assert runner("claim", {})[0] == 200


def test_a_series_is_looked_at_for_whoever_still_asks(lab_world: World, report: Report, runner: Any) -> None:
    cover = part(lab_world, DANA, 0, "", message_id(report), message_id="cover@dev.example")
    part(lab_world, DANA, 1, DIFF, cover)
    for _ in range(2):
        lab_world.post(DANA, "#lkp test", to=cover)
        lab_world.read()
        round_of(lab_world)
    job = LabJob.objects.get(request="test a patch")
    undone = EventData("u", EventKind.REVERSED, lab_world.later(), actor="toni", reverses=job.event_key)
    event_log.record([event_log.event_row(report, undone, lab_world.now)])
    part(lab_world, DANA, 2, SECOND, cover)
    lab_world.read()
    round_of(lab_world)
    assert claimed_patch(runner) == DIFF + SECOND


def test_a_cancelled_job_stays_so_whatever_a_claim_finds(lab_world: World, report: Report, runner: Any) -> None:
    ask(lab_world, report)
    opened(lab_world)
    claimed = runner("claim", {})[1]
    job = LabJob.objects.get(pk=claimed["id"])
    assert lab_jobs.cancel(job.pk, "olga", "no machine", timezone.now(), notify_thread=False)
    lab_jobs.distrust(job)
    job.refresh_from_db()
    assert (job.state, job.outcome) == ("done", "cancelled")


def test_what_was_undone_and_redone_can_be_tested_again(lab_world: World, report: Report, operator: Client) -> None:
    ask(lab_world, report)
    job = opened(lab_world)
    operator.post(f"/lab/job/{job.pk}/act/", {"do": "cancel", "reason": "by mistake"})
    key = Event.objects.get(result=job.name).key
    for taken_back in (key, f"reversed:{key}"):
        operator.post(f"/report/{report.culprit.sha}/take-back/", {"key": taken_back})
    operator.post(f"/lab/job/{job.pk}/act/", {"do": "retry"})
    round_of(lab_world)
    job.refresh_from_db()
    assert job.state == "waiting"


@pytest.mark.parametrize(
    ("numbers", "taken"),
    [((2, 1, 3), (1, 2, 3)), ((1, 2), (1, 2)), ((0, 0), (0,)), ((1, 1), (1,))],
    ids=["in disorder", "in order", "without numbers: alternatives", "twice the first"],
)
def test_attached_parts_of_a_series_are_applied_in_their_order(
    numbers: tuple[int, ...], taken: tuple[int, ...]
) -> None:
    mail = EmailMessage()
    mail["From"], mail["Message-ID"], mail["Subject"] = str(DANA), "<1@dev.example>", "Re: the report"
    mail.set_content("These help.\n\n#lkp test\n")
    for number in numbers:
        subject = f"[PATCH {number}/{len(numbers)}] mm: part {number}" if number else "mm: another way"
        diff = DIFF.replace("SCAN_COST 40", f"SCAN_COST {number}")
        mail.add_attachment(f"Subject: {subject}\n\nx\n---\n{diff}", subtype="x-patch", filename="a.patch")
    text = lab.patch_of(parse(mail.as_bytes())).text
    assert [int(value) for value in re.findall(r"^\+#define SCAN_COST (\d+)", text, re.M)] == list(taken)
