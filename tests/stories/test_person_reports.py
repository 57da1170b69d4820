"""People report regressions: by a command, by a click, together with a robot; and what strangers can't do."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from bot.archives import reader
from bot.archives.batch import file_accepted, replay_all
from bot.demo import DemoInbox
from bot.mail.addresses import Address
from bot.mail.message import parse
from bot.mail.settings import BotSettings
from bot.operations import erase, prune
from tests.bot.mail.test_authentication import DKIM, RECORD, signed
from tests.support.people import person
from tests.support.world import DANA, World, status_text
from tracker.documents import digest
from tracker.domain.archived_reports import placeholder
from tracker.domain.events import OPEN, EventData, EventKind, State
from tracker.models import (
    Commit,
    Correspondent,
    Decision,
    Event,
    LabJob,
    Mailing,
    Message,
    OfferedReport,
    OutgoingMail,
    RawMessage,
    Report,
    Suggestion,
)
from tracker.pages import release_report
from tracker.services import event_log, person_reports

PAT = Address("Pat Penguin", "pat@dev.example")
MARIA = Address("Maria Maintainer", "maria@dev.example")
MAL = Address("Mal", "mal@evil.example")
NAMED_LIKE_PAT = Address("Pat Penguin", "pp@evil.example")
TITLE = "mm/vmscan: walk cold folios first"
SLOW = """Hello,

since I upgraded from 9.0.3 to 9.1-rc2 my backup takes much longer: the read
throughput of fio dropped from 830 MB/s to 410 MB/s on an AMD EPYC 7313.

Pat
"""


@pytest.fixture
def world(tmp_path: Path, bot_settings: BotSettings, db: None) -> World:
    """A world in which everybody's domain signs with the same key."""
    anchors = replace(DKIM, key=lambda name: RECORD, signs=lambda domain: False)
    return World(tmp_path, replace(bot_settings, trust_policy="verified", trust_anchors=anchors))


def post(
    world: World, author: Address, text: str, person: Address | None = None, proven: bool = True, **more: Any
) -> str:
    """Put a signed mail to the list, and to a person, into the archive, and read it; return its Message-ID."""
    raw = world.mail(author, text, **{"Cc": "linux-mm@vger.kernel.org", **more})
    if person:
        raw = raw.replace(f"To: {world.settings.address}".encode(), f"To: {person}".encode())
    world.inbox.add(signed(raw, domain=author.email.partition("@")[2].encode()) if proven else raw)
    world.read()
    return raw.partition(b"Message-ID: <")[2].partition(b">")[0].decode()


def open_report(world: World, author: Address = PAT, culprit: str = "", **more: Any) -> tuple[str, Report]:
    """Report a regression by a command; return the mail's Message-ID, and the report."""
    command = f"#regzbot introduced: {culprit}" if culprit else "#lkp report"
    first = post(world, author, f"{SLOW}\n{command}\n", subject="fio reads are slower in 9.1-rc2", **more)
    return first, Report.objects.get(events__message_id=first)


def elsewhere(world: World, raw: bytes) -> None:
    """Read a mail in the archive of another list, which may know another one under its Message-ID."""
    inbox = DemoInbox(world.directory / "other")
    inbox.add(raw)
    world.read(inbox.path)


def events_of(report: Report) -> set[str]:
    return set(report.events.values_list("kind", flat=True))


@pytest.fixture
def triager(client: Client, db: None) -> Client:
    user = person("triager", "tom")
    client.force_login(user)
    return client


# --- By a command ---


def test_no_export_invents_a_commit_for_what_is_not_bisected(world: World, client: Client) -> None:
    world.commit(TITLE)
    world.tag("v9.1-rc1")
    world.track()
    text = f"{SLOW}\n#regzbot introduced: v9.0..v9.1-rc2\n"
    post(world, PAT, text, subject="[REGRESSION] reads are slower in 9.1-rc2")
    report = Report.objects.get()
    assert report.culprit.placeholder
    version = report.merged_release or report.shift_left_release
    exported = {form: client.get(f"/{version}/.{form}").getvalue().decode() for form in ("regzbot", "txt", "md", "csv")}
    assert "#regzbot introduced: v9.0..v9.1-rc2\n" in exported["regzbot"]
    for facts, introduced in (
        ({"good": ["6.15", "a"], "bad": ["6.16-rc2", "a"]}, "v6.15..v6.16-rc2"),
        ({"culprit": ["abc12345", "a"], "good": ["before the commit", "a"], "bad": ["6.16-rc2", "a"]}, "abc12345"),
        ({"good": ["before the commit", "a"], "bad": ["6.16-rc2", "a"]}, "unknown"),
        ({"bad": ["6.16-rc2", "a"]}, "unknown"),
        ({}, "unknown"),
    ):
        Report.objects.update(facts=facts)
        export = client.get(f"/{version}/.regzbot").getvalue().decode()
        assert f"#regzbot introduced: {introduced}\n" in export
    Report.objects.update(state=State.INVALID)
    assert client.get(f"/{version}/.regzbot").getvalue().decode().strip() == ""  # regzbot has nothing to track
    Report.objects.update(state=State.NO_RESPONSE)
    for form, text in exported.items():
        assert "reads are slower" in text, form
        assert report.culprit.sha[:10] not in text.replace(f"/report/{report.culprit.sha}", ""), form


def test_from_a_command_to_the_landing_the_sentence_says_where_it_stands(world: World) -> None:
    sha = world.commit(TITLE)
    world.tag("v9.1-rc1")
    first = post(
        world, PAT, f"{SLOW}\n#regzbot introduced: {sha}\n", subject="[REGRESSION] reads are slower in 9.1-rc2"
    )
    report = Report.objects.get()
    assert (report.reported_by, report.culprit.sha) == ("person", sha)
    assert status_text(report) == "reported by Pat Penguin, unanswered"
    world.track()
    assert status_text(report) == "merged at v9.1-rc1, reported by Pat Penguin, unanswered"
    asked = post(world, DANA, "Could you please share the output of fio?", PAT, to=first)
    assert status_text(report).endswith('waiting for Pat Penguin: "Could you please share the output of fio?"')
    told = post(
        world, PAT, "> Could you please share the output of fio?\n\nIt is attached, from both kernels.", to=asked
    )
    assert status_text(report).endswith("reported by Pat Penguin, answered")
    patch = "Please try this.\n\n--- a/mm/vmscan.c\n+++ b/mm/vmscan.c\n@@ -1,1 +1,1 @@\n-a\n+b\n"
    fix = post(world, DANA, patch, to=told, subject="[PATCH] mm/vmscan: walk warm folios first")
    assert status_text(report).endswith("a fix is proposed")
    post(world, PAT, "Yes, the patch fixes it for me.\n\nTested-by: Pat Penguin <pat@dev.example>", to=fix)
    assert status_text(report).endswith('"mm/vmscan: walk warm folios first" works for Pat Penguin')
    world.commit("mm/vmscan: walk warm folios first", f'Fixes: {sha[:12]} ("{TITLE}")')
    world.tag("v9.1-rc4")
    world.track()
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc4"
    assert not OutgoingMail.objects.exists()
    assert not LabJob.objects.exists()


def test_a_report_that_nobody_has_bisected_has_a_name_wherever_it_is_listed(world: World, client: Client) -> None:
    """The digits that stand for its culprit are no name, and the person who is asked is not the lab."""
    world.commit("Linux 9.1-rc1")
    world.tag("v9.1-rc1")
    world.track()
    first, report = open_report(world)
    post(world, MARIA, "Pat, can you bisect it?", In_Reply_To=f"<{first}>")
    report.refresh_from_db()
    version = report.merged_release or report.shift_left_release
    page = client.get("/").content.decode()
    mail = digest.compose_cycle_mail(
        version, release_report.mail_lines(release_report.in_cycle(version), version), "https://x.example/", world.now
    )[1]
    for text in (page, mail):
        assert report.culprit.sha[:10] not in text.replace(f"/report/{report.culprit.sha}/", "")
        assert "fio reads are slower in 9.1-rc2" in text
        assert "not bisected" in text
    assert "<bdi>Pat Penguin</bdi><small>for" in page
    assert "reported by <bdi>Pat Penguin</bdi>" in page
    assert "waiting for Pat Penguin" in mail


def test_who_keeps_a_list_makes_it_a_report_in_an_answer(world: World) -> None:
    first = post(world, PAT, SLOW, subject="fio reads are slower in 9.1-rc2, performance regression")
    assert not Report.objects.exists()
    assert OfferedReport.objects.get().decision == Decision.OPEN
    post(world, MARIA, "Thanks for the report.\n\n#regzbot ^introduced v9.0..v9.1-rc2\n", to=first)
    report = Report.objects.get()
    assert status_text(report) == "9.0.3 good, 9.1-rc2 bad, not bisected, reported by Pat Penguin, unanswered"
    assert set(Message.objects.values_list("author_email", flat=True)) == {PAT.email, MARIA.email}


def test_a_crash_that_a_command_names_is_not_ours(world: World) -> None:
    post(world, PAT, "It panics at boot.\n\n#regzbot introduced: v9.0..v9.1\n", subject="[REGRESSION] panic at boot")
    assert not Report.objects.exists()
    assert not OfferedReport.objects.exists()


def test_the_culprit_that_a_later_mail_names_is_taken_up(world: World) -> None:
    first = post(world, PAT, f"{SLOW}\n#lkp report\n", subject="fio reads are slower in 9.1-rc2")
    report = Report.objects.get()
    address = f"/report/{report.culprit.sha}/"
    sha = world.commit(TITLE)
    post(world, PAT, f"I bisected it. {sha} is the first bad commit.", to=first)
    report.refresh_from_db()
    assert report.culprit.sha == sha
    assert "not bisected" not in report.status
    assert set(report.events.values_list("kind", flat=True)) == {"reported", "bisected", "answered"}
    answer = Client().get(address, follow=True)
    assert answer.status_code == 200
    assert report.culprit.sha[:10] in answer.content.decode()


def test_a_report_is_withdrawn_by_who_made_it_and_by_no_stranger(world: World) -> None:
    first = post(world, PAT, f"{SLOW}\n#lkp report\n", subject="fio reads are slower in 9.1-rc2")
    report = Report.objects.get()
    post(world, MAL, "Sorry for the noise, it was my own fault.", to=first)
    assert "withdrawn" not in status_text(report)
    post(world, PAT, "Sorry for the noise, it was a wrong setting in my BIOS.", to=first)
    assert status_text(report).endswith("withdrawn by Pat Penguin")


def test_an_offer_that_another_process_finds_in_an_archive(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "FEW", 1)  # mails that are read without one
    world.post(DANA, "Hello.", subject="hello")
    world.post(DANA, "Hello.", subject="hello again")
    post(world, PAT, SLOW, subject="performance regression in 9.1-rc2: fio reads")
    assert OfferedReport.objects.count() == 1


# --- By a click ---


def test_one_click_in_the_review_queue_makes_a_report_with_its_thread(world: World, triager: Client) -> None:
    first = post(world, PAT, SLOW, subject="performance regression in 9.1-rc2: fio reads")
    post(world, DANA, "Can you bisect it?", PAT, to=first)
    page = triager.get("/review/").content.decode()
    assert "830 MB/s -&gt; 410 MB/s" in page
    assert "Pat Penguin" in page
    offer = OfferedReport.objects.get()
    triager.post(f"/review/offers/{offer.pk}/", {"decision": "accept"})
    report = Report.objects.get()
    assert report.status.endswith("reported by Pat Penguin, unanswered")
    file_accepted(world.settings, world.later())
    world.read()
    assert status_text(report).endswith('waiting for Pat Penguin: "Can you bisect it?"')
    triager.post(f"/review/offers/{offer.pk}/", {"decision": "accept"})  # twice
    assert Report.objects.count() == 1


def test_two_peoples_reports_of_one_regression_are_joined_by_one_click(world: World, triager: Client) -> None:
    _, first = open_report(world)
    _, second = open_report(world, MARIA)
    page = triager.get(f"/report/{second.culprit.sha}/").content.decode()
    same = page.partition('id="same"')[2].partition("</section>")[0]
    assert "between the same versions" in same
    assert 'id="similar"' not in page, "not once more"
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', same))
    triager.post("/triage/change/", fields)
    assert "a duplicate of" in status_text(second)
    assert Event.objects.get(report=second, kind="duplicate").remark == first.culprit.sha[:10]
    assert 'id="same"' not in triager.get(f"/report/{first.culprit.sha}/").content.decode()


@pytest.mark.parametrize("at_once", [False, True])
def test_an_archive_makes_the_same_rows_read_at_once_or_mail_by_mail(world: World, at_once: bool) -> None:
    """A patch that closes the report is found by its link before the mails between the two are."""
    named = [f"m{number}@dev.example" for number in range(6)]
    diff = "diff --git a/mm/x.c b/mm/x.c\n--- a/mm/x.c\n+++ b/mm/x.c\n@@ -1 +1 @@\n-a\n+b\n"
    closes = f"Closes: https://lore.kernel.org/r/{named[0]}\nSigned-off-by: {MARIA}\n---\n{diff}"
    posted = (
        (PAT, f"{SLOW}\n#lkp report\n", "", "fio reads are slower in 9.1-rc2"),
        (MARIA, "Is it the same without the file system?", named[0], "Re: fio reads are slower in 9.1-rc2"),
        (PAT, "It is the same on the raw device.", named[1], "Re: fio reads are slower in 9.1-rc2"),
        (MARIA, "Thanks, I see.", named[2], "Re: fio reads are slower in 9.1-rc2"),
        (MARIA, f"Walk fewer folios.\n\n{closes}", named[3], "[PATCH] mm: walk fewer folios"),
        (MARIA, "Applied to mm-unstable, thanks.", named[4], "Re: [PATCH] mm: walk fewer folios"),
    )
    for name, (author, text, to, subject) in zip(named, posted, strict=True):
        raw = world.mail(author, text, to=to, subject=subject, message_id=name, Cc="linux-mm@vger.kernel.org")
        raw = raw.replace(f"To: {world.settings.address}".encode(), f"To: {MARIA}".encode())  # not to us
        world.inbox.add(signed(raw, domain=b"dev.example"))
        if not at_once:
            world.read()
    world.read()
    rows = Message.objects.order_by("message_id").values_list("message_id", "relation", "thread")
    assert list(rows) == [
        (named[0], "", "report"),
        *((name, "thread", "report") for name in named[1:4]),
        (named[4], "closes", "report"),
        (named[5], "thread", "report"),
    ]


def test_a_report_that_nobody_bisected_can_have_duplicates(world: World) -> None:
    first, report = open_report(world)
    second, other = open_report(world, MARIA)
    post(world, MARIA, f"#regzbot dup-of: https://lore.kernel.org/r/{first}", to=second)
    assert Event.objects.get(report=other, kind="duplicate").remark == report.culprit.sha[:10]
    assert Report.objects.get(pk=other.pk).state == "duplicate"


def test_a_rejected_offer_stays_rejected(world: World, triager: Client) -> None:
    first = post(world, PAT, SLOW, subject="performance regression in 9.1-rc2: fio reads")
    triager.post(f"/review/offers/{OfferedReport.objects.get().pk}/", {"decision": "reject"})
    post(world, MARIA, "#regzbot ^introduced v9.0..v9.1-rc2", to=first)
    replay_all(world.settings, world.later())
    assert not Report.objects.exists()
    assert OfferedReport.objects.get().decision == Decision.REJECTED


@pytest.mark.parametrize(("decision", "says"), [("accept", "Made a report"), ("reject", "No regression")])
def test_a_decision_on_an_offer_is_taken_back(world: World, triager: Client, decision: str, says: str) -> None:
    post(world, PAT, SLOW, subject="performance regression in 9.1-rc2: fio reads")
    address = f"/review/offers/{OfferedReport.objects.get().pk}/"
    triager.post(address, {"decision": decision})
    assert f"{says}: <q>performance regression" in triager.get("/review/").content.decode()
    triager.post(address, {"decision": "undo"})
    assert not Report.objects.exists()
    assert OfferedReport.objects.get().decision == Decision.OPEN
    page = triager.get("/review/").content.decode()
    assert (says + ": <q>" in page, "Make it a report" in page) == (False, True)


def test_an_offer_that_was_taken_back_and_accepted_again_is_reported(world: World, triager: Client) -> None:
    post(world, PAT, SLOW, subject="performance regression in 9.1-rc2: fio reads")
    address = f"/review/offers/{OfferedReport.objects.get().pk}/"
    triager.post(address, {"decision": "accept"})
    report = Report.objects.get()
    noted = EventData("note", EventKind.NOTED, world.now, actor="mira", remark="see fio")  # so undo keeps the report
    event_log.record([event_log.event_row(report, noted, world.now)])
    triager.post(address, {"decision": "undo"})
    report.refresh_from_db()
    assert report.reported_at is None
    triager.post(address, {"decision": "accept"})
    report.refresh_from_db()
    assert (report.reported_at is not None, "reported by Pat Penguin" in report.status) == (True, True)


def test_who_decides_too_late_may_not_undo_the_others_decision(world: World, triager: Client) -> None:
    post(world, PAT, SLOW, subject="performance regression in 9.1-rc2: fio reads")
    offer = OfferedReport.objects.get()
    person_reports.decide(offer, Decision.ACCEPTED, "ann", world.now)
    triager.post(f"/review/offers/{offer.pk}/", {"decision": "reject"})
    assert "Made a report: <q>" not in triager.get("/review/").content.decode()


def test_a_replay_reaches_the_same_states(world: World, triager: Client) -> None:
    first = post(world, PAT, SLOW, subject="performance regression in 9.1-rc2: fio reads")
    triager.post(f"/review/offers/{OfferedReport.objects.get().pk}/", {"decision": "accept"})
    file_accepted(world.settings, world.later())
    sha = world.commit(TITLE)
    post(world, PAT, f"Bisected: the first bad commit is {sha}.", to=first)
    before = Report.objects.values("culprit__sha", "status", "tag").get()
    events = set(Event.objects.values_list("kind", "message_id", "actor"))
    replay_all(world.settings, world.later())
    assert Report.objects.values("culprit__sha", "status", "tag").get() == before
    assert set(Event.objects.values_list("kind", "message_id", "actor")) == events


def test_a_list_of_open_reports_is_imported(world: World, settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    settings.PERFWORK_TRUST, settings.PERFWORK_BOT_ADDRESS = "open", world.settings.address
    for number in (1, 2):
        name = f"first-{number}@dev.example"
        subject = f"performance regression {number} in 9.1-rc2: fio reads"
        world.post(PAT, SLOW, subject=subject, message_id=name, Cc="linux-mm@vger.kernel.org")
        world.post(DANA, "I'll have a look tomorrow.", to=name, Cc="linux-mm@vger.kernel.org")
    listed = world.directory / "regressions.txt"
    listed.write_text("Open:\n\n* https://lore.kernel.org/r/first-1@dev.example\n<other@dev.example>\n")
    call_command("read", str(world.inbox.path), threads=str(listed))
    assert "1 thread of 2 followed; no report of a slowdown was found in other@dev.example" in capsys.readouterr().out
    report = Report.objects.get()
    assert (report.title, report.status) == (
        "performance regression 1 in 9.1-rc2: fio reads",
        "9.0.3 good, 9.1-rc2 bad, not bisected, reported by Pat Penguin, answered",
    )


# --- Together with a robot, or a lab ---


def test_a_mail_about_a_culprit_that_the_lab_reported_joins_that_report(world: World) -> None:
    report = world.report(TITLE)
    world.read()
    sha = report.culprit.sha
    post(world, PAT, f"{SLOW}\n#regzbot introduced: {sha}\n", subject="[REGRESSION] reads are slower in 9.1-rc2")
    report.refresh_from_db()
    assert Report.objects.count() == 1
    assert report.reported_by == "robot"
    assert report.events.filter(kind="reported", remark="Pat Penguin").exists()


def test_a_lab_measures_later_what_a_person_reported(world: World) -> None:
    sha = world.commit(TITLE)
    post(world, PAT, f"{SLOW}\n#regzbot introduced: {sha[:12]}\n", subject="[REGRESSION] reads are slower in 9.1-rc2")
    world.ingest(world.result(sha, TITLE))
    report = Report.objects.get()
    assert (report.culprit.sha, report.reported_by) == (sha, "person")
    assert report.findings.count() == 1


# --- An answer ---


def test_the_reporter_gets_one_mail_where_the_operator_wants_it(world: World) -> None:
    world.settings = replace(world.settings, answer_on=frozenset({"linux-mm@vger.kernel.org"}))
    subject = "[REGRESSION] fio reads are slower in 9.1-rc2"
    first = post(world, PAT, f"{SLOW}\n#lkp report\n", subject=subject)
    (mail,) = OutgoingMail.objects.all()
    composed = parse(bytes(mail.raw))
    assert (mail.recipients, mail.lists, composed.parent) == ([PAT.email], [], first)
    assert f"/report/{Report.objects.get().culprit.sha}/" in composed.text
    assert max(map(len, composed.text.splitlines())) <= 78
    assert "#lkp fix: <the commit or patch that fixed it>" in composed.text
    replay_all(world.settings, world.later())
    post(world, PAT, f"{SLOW}\n#lkp report\n", subject=subject, Cc="linux-nfs@vger.kernel.org")
    assert OutgoingMail.objects.count() == 1


def test_who_has_opted_out_gets_none(world: World) -> None:
    world.settings = replace(world.settings, answer_on=frozenset({"linux-mm@vger.kernel.org"}))
    Correspondent.objects.create(address=PAT.email, mailing=Mailing.OPTED_OUT, note="", since=world.now)
    post(world, PAT, f"{SLOW}\n#lkp report\n", subject="[REGRESSION] fio reads are slower in 9.1-rc2")
    assert Report.objects.exists()
    assert not OutgoingMail.objects.exists()


# --- Strangers ---


def test_an_unproven_command_only_offers(world: World) -> None:
    raw = world.mail(
        PAT, f"{SLOW}\n#lkp report\n", subject="fio reads: performance regression", Cc="linux-mm@vger.kernel.org"
    )
    world.inbox.add(raw)
    world.read()
    assert not Report.objects.exists()
    assert not OfferedReport.objects.get().proven


def test_a_flood_fills_neither_the_queue_nor_the_table(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person_reports, "MOST_OFFERS", 10)
    for number in range(30):
        raw = world.mail(
            Address("Mal", f"mal{number}@evil.example"),
            SLOW + "\n#lkp report\n#regzbot introduced: 7d3e91c0a45b28f6\n",
            subject=f"performance regression {number}: fio reads",
            Cc="linux-mm@vger.kernel.org",
        )
        world.inbox.add(raw)
    for number in range(9):
        raw = world.mail(PAT, SLOW + "\n#lkp report\n", subject=f"regression {number}", Cc="linux-mm@vger.kernel.org")
        world.inbox.add(signed(raw))
    world.read()
    assert OfferedReport.objects.filter(decision=Decision.OPEN).count() == 10
    assert OfferedReport.objects.filter(decision=Decision.OPEN, proven=True).count() == 4
    assert Report.objects.count() == 5  # that one address may open in a day
    assert not OutgoingMail.objects.exists()


def test_a_private_mail_makes_nothing(world: World) -> None:
    raw = world.mail(PAT, f"{SLOW}\n#lkp report\n", subject="fio reads: performance regression")
    file = world.directory / "private.eml"
    file.write_bytes(signed(raw))
    world.read(file)
    assert not Report.objects.exists()
    assert not OfferedReport.objects.exists()


@pytest.mark.parametrize(
    "text", ["#lkp invalid", "#lkp title: mine", "Sorry for the noise, it was my mistake.", "#lkp fix: mm: innocent"]
)
def test_what_a_mail_says_beside_a_bisection_is_for_its_own_report_alone(world: World, text: str) -> None:
    lab = world.report("mm: what the lab bisected")
    world.read()
    first, _ = open_report(world, MAL)
    post(world, MAL, f"#regzbot introduced: {lab.culprit.sha}\n{text}\n", to=first)
    lab.refresh_from_db()
    assert (events_of(lab), lab.state, lab.given_title) == ({"reported"}, "no_response", "")


@pytest.mark.parametrize(("author", "proven"), [(MAL, True), (MAL, False), (NAMED_LIKE_PAT, True), (PAT, False)])
@pytest.mark.parametrize("text", ["I bisected it. {} is the first bad commit.", "#regzbot introduced: {}"])
def test_no_stranger_says_what_the_culprit_is(world: World, author: Address, proven: bool, text: str) -> None:
    innocent = world.commit("mm: innocent")
    first, report = open_report(world)
    post(world, author, text.format(innocent), to=first, proven=proven)
    report.refresh_from_db()
    assert report.culprit.placeholder
    assert Suggestion.objects.get(kind="bisected").commit == innocent


@pytest.mark.parametrize("author", [MAL, NAMED_LIKE_PAT])
@pytest.mark.parametrize("proven", [True, False])
@pytest.mark.parametrize(
    "text", ["Sorry for the noise, it was my own fault.", "#lkp invalid", "This is expected, works as intended."]
)
def test_a_stranger_closes_no_report(world: World, author: Address, proven: bool, text: str) -> None:
    first, report = open_report(world)
    post(world, author, text, to=first, proven=proven)
    report.refresh_from_db()
    assert report.state in OPEN


def test_a_suggested_culprit_is_taken_up_when_it_is_accepted(world: World, triager: Client) -> None:
    sha = world.commit(TITLE)
    first, report = open_report(world)
    post(world, MAL, f"I bisected it. {sha} is the first bad commit.", to=first)
    suggestion = Suggestion.objects.get(kind="bisected")
    triager.post(f"/review/{suggestion.pk}/decide/", {"decision": "accept"})
    report.refresh_from_db()
    assert report.culprit.sha == sha


def test_who_reports_first_cannot_take_back_what_others_see_too(world: World) -> None:
    sha = world.commit(TITLE)
    first, report = open_report(world, MAL, sha)
    open_report(world, PAT, sha)
    post(world, MAL, "Sorry for the noise, it was my own fault.", to=first)
    report.refresh_from_db()
    assert (report.state in OPEN, Suggestion.objects.get(kind="invalid").decision) == (True, Decision.OPEN)
    before = (report.status, events_of(report))
    replay_all(world.settings, world.later())
    report.refresh_from_db()
    assert (report.status, events_of(report)) == before


def test_a_recipient_that_nobody_signed_has_no_rights(world: World) -> None:
    raw = world.mail(PAT, f"{SLOW}\n#lkp report\n", subject="a regression", Cc="linux-mm@vger.kernel.org")
    added = b"Cc: linux-mm@vger.kernel.org, mal@evil.example"
    raw = signed(raw, include_headers=[b"from", b"to", b"subject", b"date", b"message-id"])
    world.inbox.add(raw.replace(b"Cc: linux-mm@vger.kernel.org", added))
    world.read()
    report = Report.objects.get()
    assert MAL.email not in report.recipients
    post(world, MAL, "#lkp invalid\n", to=report.facts["mail"])
    report.refresh_from_db()
    assert report.state in OPEN


def test_what_was_accepted_is_one_mail_and_no_other_of_its_name(world: World, triager: Client) -> None:
    first = post(world, PAT, SLOW, subject="performance regression in 9.1-rc2: fio reads")
    triager.post(f"/review/offers/{OfferedReport.objects.get().pk}/", {"decision": "accept"})
    forged = f"{SLOW}\n#regzbot introduced: {world.commit('mm: innocent')}\n"
    elsewhere(world, world.mail(MAL, forged, subject="performance regression, forged", message_id=first))
    file_accepted(world.settings, world.later())
    report = Report.objects.get()
    assert (report.title, report.reporters[0]) == ("performance regression in 9.1-rc2: fio reads", PAT.email)
    assert report.culprit.placeholder


def test_a_proven_mail_takes_the_place_of_an_unproven_offer_under_its_name(world: World) -> None:
    name = "known@dev.example"
    post(world, MAL, SLOW, subject="performance regression, forged", message_id=name, proven=False)
    elsewhere(world, signed(world.mail(PAT, SLOW, subject="performance regression", message_id=name)))
    offer = OfferedReport.objects.get()
    assert (offer.author_email, offer.subject, offer.proven) == (PAT.email, "performance regression", True)


def test_what_is_known_of_a_commit_stays_as_it_is(world: World) -> None:
    open_report(world, PAT, "deadbeef1234")
    text = f'commit deadbeef1234{"0" * 28} ("mm: another title") caused it'
    post(world, MAL, f"{SLOW}\n{text}\n#lkp report\n", subject="performance regression, too")
    assert list(Commit.objects.values_list("sha", "title")) == [("deadbeef1234", "")]


def test_no_date_gives_an_address_more_reports_a_day(world: World) -> None:
    for days in range(1, 9):
        raw = world.mail(MAL, SLOW + "\n#lkp report\n", subject=f"regression {days}", Cc="linux-mm@vger.kernel.org")
        date = format_datetime(world.now - timedelta(days=days)).encode()
        world.inbox.add(signed(re.sub(rb"Date: [^\n]*", b"Date: " + date, raw), domain=b"evil.example"))
    world.read()
    assert (Report.objects.count(), OfferedReport.objects.filter(decision=Decision.OPEN).count()) == (5, 3)


def test_copies_of_a_mail_open_nothing(world: World) -> None:
    raw = world.mail(PAT, SLOW + "\n#lkp report\n", subject="regression", Cc="linux-mm@vger.kernel.org")
    raw = signed(raw, include_headers=[b"from", b"to", b"cc", b"date", b"subject"])
    for number in range(4):
        world.inbox.add(re.sub(rb"Message-ID: <[^>]*>", f"Message-ID: <copy{number}@evil.example>".encode(), raw))
    world.read()
    assert Report.objects.count() == 1


def test_what_stands_for_an_unknown_culprit_is_no_commit_that_a_mail_can_name(world: World) -> None:
    _, report = open_report(world)
    _, other = open_report(world, MAL, report.culprit.sha)
    assert other.pk != report.pk
    squatted = placeholder("known@dev.example")
    open_report(world, MAL, squatted)
    _, late = open_report(world, PAT, message_id="known@dev.example")
    assert (late.culprit.placeholder, late.reporters[0]) == (True, PAT.email)
    assert not RawMessage.objects.exclude(error="").exists()
    world.read()
    replay_all(world.settings, world.later())
    assert Report.objects.count() == 4


def test_a_private_mail_names_no_culprit(world: World) -> None:
    first, report = open_report(world)
    sha = world.commit(TITLE)
    file = world.directory / "private.eml"
    file.write_bytes(signed(world.mail(PAT, f"I bisected it. {sha} is the first bad commit.", to=first)))
    world.read(file)
    report.refresh_from_db()
    assert report.culprit.placeholder
    assert sha not in str(list(Event.objects.values()))


def test_figures_and_names_that_no_database_holds(world: World) -> None:
    text = "throughput of fi\0o dropped from 0.000001 MB/s to 999999999.999999k MB/s in 9.1-rc2\u202e on A\x1b[31mMD"
    post(world, PAT, f"{text}\n#lkp report\n", subject="performance regression, slower fio")
    report = Report.objects.get()
    assert report.change is None
    assert not re.search(r"[\x00-\x08\x1b\u202e]", str(report.facts))


def test_nothing_is_left_of_somebody_who_is_erased(world: World) -> None:
    first, _ = open_report(world)
    post(world, DANA, "Could you please share the output of danas-secret?", PAT, to=first)
    offered = post(world, PAT, SLOW, subject="performance regression, offered")
    for address in (PAT.email, DANA.email):
        erase(address, world.later())
    kept = str([list(model.objects.values()) for model in (Event, Report, OfferedReport, Message)]).lower()
    assert not [word for word in ("pat penguin", "pat@dev", "danas-secret", "dana@dev") if word in kept]
    copy = signed(world.mail(PAT, SLOW, subject="performance regression, offered", message_id=offered))
    elsewhere(world, b"List-Id: <linux-mm.vger.kernel.org>\n" + copy)
    assert not OfferedReport.objects.filter(author_email=PAT.email).exists()


def test_the_command_of_somebody_who_is_erased_makes_no_report(world: World) -> None:
    text = f"{SLOW}\n#lkp report\n"
    first = post(world, PAT, text, subject="performance regression, offered", proven=False)
    erase(PAT.email, world.later())
    raw = world.mail(PAT, text, subject="performance regression, offered", message_id=first)
    elsewhere(world, signed(raw.replace(f"To: {world.settings.address}".encode(), b"To: linux-mm@vger.kernel.org")))
    assert not Report.objects.exists()
    assert not OfferedReport.objects.exists()


def test_a_rejected_offer_outlives_the_pruning(world: World, triager: Client) -> None:
    post(world, PAT, SLOW, subject="performance regression in 9.1-rc2: fio reads")
    triager.post(f"/review/offers/{OfferedReport.objects.get().pk}/", {"decision": "reject"})
    prune(world.directory, world.now + timedelta(days=4000))
    assert OfferedReport.objects.get().decision == Decision.REJECTED
