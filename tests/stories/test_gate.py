"""What strangers try with mail that somebody else signed, or under another mail's Message-ID; and who sees what."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from bot.archives import sources
from bot.lab import open_jobs, record_outcome, stored_patch
from bot.mail.addresses import Address
from bot.mail.settings import BotSettings
from bot.notifications.follow_ups import compose_follow_ups
from tests.bot.mail.test_authentication import DKIM, RECORD, signed
from tests.bot.mail.test_bounces import POSTFIX, RETURNED
from tests.bot.mail.test_quoting import OLDER
from tests.support.people import person
from tests.support.world import DANA, World, message_id, state
from tracker.domain.events import ArchiveKind
from tracker.domain.lab_jobs import JobOutcome
from tracker.models import (
    Correspondent,
    Decision,
    Event,
    LabJob,
    Mailing,
    Message,
    OutgoingMail,
    OutgoingState,
    Purpose,
    Suggestion,
)
from tracker.services import event_log, lab_jobs
from tracker.services.report_actions import decide_many

MALLORY = Address("Mal", "mal@evil.example")
SECRET_WORDS = "My phone is 555-0100, between us."


@pytest.fixture
def world(tmp_path: Path, bot_settings: BotSettings, db: None) -> World:
    """A world in which everybody's domain signs with the same key."""
    anchors = replace(DKIM, key=lambda name: RECORD, signs=lambda domain: False)
    return World(tmp_path, replace(bot_settings, trust_policy="verified", trust_anchors=anchors))


def deliver(world: World, raw: bytes, monkeypatch: pytest.MonkeyPatch | None = None) -> None:
    """Read one mail from a file; as what is delivered to us, if a monkeypatch is given."""
    file = world.directory / f"{len(list(world.directory.glob('*.eml')))}.eml"
    file.write_bytes(raw)
    if monkeypatch:
        monkeypatch.setattr(sources.FileSource, "kind", ArchiveKind.DELIVERY)
    world.read(file)


def wishes() -> dict[str, str]:
    return dict(Correspondent.objects.values_list("address", "mailing"))


# --- Mail that was signed for somebody else ---


def elsewhere(world: World, text: str) -> bytes:
    """Dana's signed mail to another list."""
    raw = world.mail(DANA, text, subject="Re: a list", List_Id="<other.lists.example>")
    return signed(raw.replace(world.settings.address.encode(), b"other@lists.example"))


@pytest.mark.parametrize("word", ["unsubscribe", "subscribe"])
@pytest.mark.parametrize("name", ["Delivered-To", "X-Original-To", "Bcc", "Envelope-To", "Resent-To"])
def test_a_wish_for_another_list_is_none_for_us_wherever_it_was_sent_on(world: World, word: str, name: str) -> None:
    was = Mailing.OPTED_OUT if word == "subscribe" else Mailing.OPTED_IN
    Correspondent.objects.create(address=DANA.email, mailing=was, note="<1@x>, proven by dkim", since=world.now)
    deliver(world, f"{name}: {world.settings.address}\n".encode() + elsewhere(world, word))
    assert wishes() == {DANA.email: was}


def test_a_failed_command_to_another_list_is_not_answered(world: World) -> None:
    report = world.report()
    raw = world.mail(DANA, "#lkp whatever", subject="Re: a list")
    raw = raw.replace(world.settings.address.encode(), b"other@lists.example")
    hers = signed(raw, include_headers=[b"from", b"to", b"subject", b"date", b"message-id"])
    deliver(world, f"In-Reply-To: <{message_id(report)}>\n".encode() + hers)
    assert Message.objects.get(author_email=DANA.email, report=report).trust == "pass"
    assert not OutgoingMail.objects.filter(purpose__startswith=Purpose.ANSWER).exists()


@pytest.mark.parametrize("word", ["unsubscribe", "subscribe"])
def test_a_wish_whose_addressee_is_not_signed_is_not_proven(world: World, word: str) -> None:
    was = Mailing.OPTED_OUT if word == "subscribe" else Mailing.OPTED_IN
    Correspondent.objects.create(address=DANA.email, mailing=was, note="<1@x>, proven by dkim", since=world.now)
    raw = world.mail(DANA, word)
    to = f"To: {world.settings.address}\n".encode()
    assert raw.count(to) == 1
    made = signed(raw.replace(to, b""), include_headers=[b"from", b"date", b"subject", b"message-id"])
    deliver(world, to + made)
    assert wishes() == {DANA.email: was}


def test_a_signed_wish_to_us_counts_and_one_of_last_year_does_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = signed(world.mail(DANA, "unsubscribe"))
    fresh = signed(world.mail(DANA, "unsubscribe"))
    world.now = world.later(hours=24 * 15)
    deliver(world, old, monkeypatch)
    assert wishes() == {}
    world.now = world.later(hours=-24 * 15)
    deliver(world, fresh, monkeypatch)
    assert wishes() == {DANA.email: Mailing.OPTED_OUT}


def test_an_old_command_that_is_delivered_late_waits_for_a_click(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    report = world.report()
    raw = signed(world.mail(DANA, "#lkp invalid", to=message_id(report)))
    world.later(hours=24 * 15)
    deliver(world, raw, monkeypatch)
    assert state(report) != "invalid"
    assert Suggestion.objects.get(kind="invalid").report == report


def test_in_an_archive_an_old_command_counts(world: World) -> None:
    report = world.report()
    world.inbox.add(signed(world.mail(DANA, "#lkp invalid", to=message_id(report))))
    world.later(hours=24 * 400)
    world.read()
    assert state(report) == "invalid"


def test_a_signed_subject_leads_to_the_report_as_an_unsigned_one_does(world: World) -> None:
    report = world.report()
    subject = f"Re: {OutgoingMail.objects.get().subject}"
    world.inbox.add(signed(world.mail(DANA, "I've dropped this patch.", subject=subject)))
    world.read()
    assert state(report) == "dropped"


# --- One Message-ID for two mails ---


@pytest.mark.parametrize("proven", [False, True])
@pytest.mark.parametrize(
    "text", ["Nice work.", "#lkp note: mine", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"]
)
@pytest.mark.parametrize("first", ["stranger", "author"])
def test_a_stranger_under_her_message_id_keeps_nothing_of_hers_out(
    world: World, proven: bool, text: str, first: str
) -> None:
    report = world.report()
    theirs = world.mail(MALLORY, text, to=message_id(report), message_id="same@dev.example")
    theirs = signed(theirs, domain=b"evil.example") if proven else theirs
    hers = signed(world.mail(DANA, "I've dropped this patch.", to=message_id(report), message_id="same@dev.example"))
    for raw in (theirs, hers) if first == "stranger" else (hers, theirs):
        deliver(world, raw)
    assert state(report) == "dropped"
    assert Message.objects.get(message_id="same@dev.example").author_email == DANA.email
    assert not Event.objects.filter(kind="noted").exists(), "what the stranger's mail did is gone"


def test_her_name_at_another_address_is_a_stranger_too(world: World) -> None:
    report = world.report()
    theirs = world.mail(replace(MALLORY, name=DANA.name), "Nice.", to=message_id(report), message_id="same@dev.example")
    deliver(world, signed(theirs, domain=b"evil.example"))
    hers = world.mail(DANA, "#lkp invalid", to=message_id(report), message_id="same@dev.example")
    deliver(world, signed(hers))
    assert state(report) == "invalid"


THEIRS = "#lkp invalid"
LOG = f"--b\nContent-Type: text/plain\n\nA log.\n--b\nContent-Type: text/plain\n\n{THEIRS}\n--b--\n"
NAMELESS = f"--b\nContent-Type: text/plain\nContent-Disposition: attachment\n\n{THEIRS}\n--b--\n"


@pytest.mark.parametrize("below", [LOG, NAMELESS], ids=["second part", "nameless attachment"])
def test_what_she_attaches_is_not_her_command(world: World, below: str) -> None:
    report = world.report()
    raw = world.mail(DANA, below, to=message_id(report))
    raw = re.sub(rb"Content-Type: [^\r\n]*", b'Content-Type: multipart/mixed; boundary="b"', raw, count=1)
    deliver(world, signed(raw))
    assert state(report) != "invalid"
    assert Suggestion.objects.filter(kind="invalid").exists()


@pytest.mark.parametrize("older", [OLDER["Hungarian"], OLDER["Notes"], OLDER["Gmail wraps a quoted line"]])
def test_what_she_quotes_without_marks_is_not_her_command(world: World, older: str) -> None:
    report = world.report()
    deliver(world, signed(world.mail(DANA, f"It is the lock.\n\n{older}{THEIRS}", to=message_id(report))))
    assert state(report) != "invalid"
    assert Suggestion.objects.filter(kind="invalid").exists()


@pytest.mark.parametrize(
    ("above", "charset"),
    [
        ("Mal 写道：\n\n", "gb2312"),
        ("Malさんのメール：\n\n", "iso-2022-jp"),
        ("Мал пишет:\n\n", "koi8-r"),
        ("Mal 写道：\n\n", "utf-8"),
    ],
)
@pytest.mark.parametrize("claimed", ["windows-1252", "us-ascii", "cp437", "gb18030"])
def test_in_another_charset_her_quote_does_not_become_her_command(
    world: World, above: str, charset: str, claimed: str
) -> None:
    """Nobody signed the Content-Type, by which alone the line above what she quotes can be read."""
    report = world.report()
    text = f"No, I will not write this.\n\n{above}You should write:\n\n{THEIRS}\n"
    hers = world.mail(DANA, text, to=message_id(report)).decode().encode(charset)
    hers = signed(hers.replace(b'charset="utf-8"', f'charset="{charset}"'.encode()))
    deliver(world, hers.replace(f'charset="{charset}"'.encode(), f'charset="{claimed}"'.encode()))
    assert Message.objects.get(author_email=DANA.email).trust == "pass"
    assert state(report) != "invalid"


def test_no_line_of_hers_is_made_the_boundary_above_what_she_quotes(world: World) -> None:
    report = world.report()
    line = "---- On Wed, 11 Mar 2026 Mal wrote ----"
    raw = signed(world.mail(DANA, f"No, I won't.\n\n{line}\n\n{THEIRS}\n", to=message_id(report)))
    other = f'Content-Type: multipart/mixed; boundary="{line[2:]}"'.encode()
    deliver(world, re.sub(rb"Content-Type: [^\r\n]*", other, raw, count=1))
    assert Message.objects.get(author_email=DANA.email).trust == "pass"
    assert state(report) != "invalid"


def test_of_two_signatures_either_says_that_it_is_the_same_mail(world: World) -> None:
    """Her server signs twice, and no signature covers the Message-ID."""
    report = world.report()
    names = [b"from", b"to", b"date", b"subject", b"in-reply-to", b"references"]
    raw = world.mail(
        DANA, f"#lkp test\n\n{PATCH.format(name='x')}", to=message_id(report), message_id="one@dev.example"
    )
    second, first = signed(raw, include_headers=names), signed(raw, include_headers=[*names, b"reply-to"])
    deliver(world, first[: -len(raw)] + second)
    for number, one in enumerate((first, second, first)):
        deliver(world, one.replace(b"one@dev.example", f"copy{number}@dev.example".encode()))
    assert Event.objects.filter(kind="test_asked").count() == 1


# --- What was never public ---


@pytest.fixture
def private(world: World) -> World:
    report = world.report()
    world.settings = replace(world.settings, address=world.settings.address)
    deliver(world, world.mail(DANA, f"{SECRET_WORDS}\n\nI will send a fix tomorrow.", to=message_id(report)))
    away = world.mail(DANA, f"I am away. {SECRET_WORDS}", to=message_id(report), Auto_Submitted="auto-replied")
    deliver(world, away)
    mail = OutgoingMail.objects.get()
    OutgoingMail.objects.update(attempts=1)
    returned = POSTFIX.replace("perfbot+7d3e91c0a45b28f6.123456789abc@bot.example.org", mail.sender)
    deliver(world, returned.replace(RETURNED, mail.message_id).replace("User unknown", SECRET_WORDS).encode())
    return world


def pages(sha: str) -> list[str]:
    shapes = ("messages", "events", "suggestions?decision=open", "reports", "jobs")
    own = [f"/report/{sha}{end}" for end in ("/", ".json", ".mbox", ".mbox.gz")]
    own += [f"/outbox/{pk}/" for pk in OutgoingMail.objects.values_list("pk", flat=True)]
    own += [f"/lab/job/{pk}/" for pk in LabJob.objects.values_list("pk", flat=True)]
    return [
        *own,
        "/",
        "/review/",
        "/lab/",
        "/search/?q=phone",
        "/changes.atom",
        *(f"/api/v1/{shape}" for shape in shapes),
    ]


def body(client: Client, url: str) -> bytes:
    response: Any = client.get(url)
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return content if url[-3:] != ".gz" else __import__("gzip").decompress(content)


def test_mail_to_the_bot_alone_is_for_operators(private: World, client: Client) -> None:
    report = Message.objects.filter(author_email=DANA.email)[0].report
    assert state(report) == "working", "it is read all the same"
    assert Message.objects.filter(report=report, public=False).count() == 3
    for url in pages(report.culprit.sha):
        shown = body(client, url)
        assert b"555-0100" not in shown, url
        assert b"send a fix tomorrow" not in shown, url
    olga = person("operator", "olga")
    client.force_login(olga)
    for end in ("/", ".mbox"):
        assert b"555-0100" in body(client, f"/report/{report.culprit.sha}{end}")


def test_what_a_private_mail_asks_for_and_suggests_is_for_operators(world: World, client: Client) -> None:
    report = world.report()
    patch = "Subject: [PATCH] mm: My phone is 555-0100\n\ndiff --git a/mm/x.c b/mm/x.c\n--- a/mm/x.c\n+++ b/mm/x.c\n"
    asking = f"#lkp test\n\n{patch}@@ -1 +1 @@\n-a\n+b\n"
    deliver(world, signed(world.mail(DANA, asking, to=message_id(report))))
    deliver(world, world.mail(MALLORY, "#lkp fix mm: my phone is 555-0100", to=message_id(report)))
    open_jobs(world.settings, [], world.now)
    job = LabJob.objects.get()
    assert Suggestion.objects.get().title.endswith("555-0100")
    for url in pages(report.culprit.sha):
        assert b"555-0100" not in body(client, url), url
    record_outcome(job, JobOutcome.NOT_APPLIED, "error: patch failed: mm/555-0100.c:1", world.now)
    event_log.refold([report.pk])
    for url in pages(report.culprit.sha):
        assert b"555-0100" not in body(client, url), url


def test_a_suggestion_of_a_private_mail_shows_its_words_to_operators_only(world: World, client: Client) -> None:
    report = world.report()
    deliver(world, world.mail(MALLORY, "My phone is 555-0100.\n\n#lkp fix mm: stop", to=message_id(report)))
    assert Suggestion.objects.get().quote == ""
    shown = body(client, "/review/").decode()
    assert ("The mail is not public: operators see it." in shown, "555-0100" in shown) == (True, False)
    mail = "https://lore.kernel.org/r/" + Suggestion.objects.get().message_id
    assert mail not in shown, "no archive has it"
    page = body(client, f"/report/{report.culprit.sha}/").decode()
    assert ("a mail that is not public" in page, mail in page) == (True, False)
    client.force_login(person("operator", "olga"))
    shown = body(client, "/review/").decode()
    assert ("My phone is 555-0100." in shown, "not public" in shown) == (True, True)


def test_a_private_patch_that_is_asked_for_in_public_stays_private(world: World, client: Client) -> None:
    report = world.report()
    named = {"subject": "[PATCH] mm: phone 555-0100", "message_id": "p@dev.example"}
    deliver(world, signed(world.mail(DANA, PATCH.format(name="x"), to=message_id(report), **named)))
    deliver(world, signed(world.mail(DANA, "#lkp test", to=message_id(report), Cc="linux-mm@kvack.org")))
    open_jobs(world.settings, [], world.now)
    assert LabJob.objects.get().patch_mail == "p@dev.example"
    for url in pages(report.culprit.sha):
        assert b"555-0100" not in body(client, url), url


def test_a_private_part_of_a_series_keeps_what_failed_private(world: World, client: Client) -> None:
    report = world.report()
    asked = {"References": f"<{message_id(report)}> <p1@dev.example>", "Cc": "linux-mm@kvack.org"}
    posted = [
        (
            "[PATCH 1/2] mm: one",
            PATCH.format(name="x"),
            {"message_id": "p1@dev.example", "to": message_id(report), **asked},
        ),
        (
            "[PATCH 2/2] mm: two",
            PATCH.format(name="555-0100"),
            {"message_id": "p2@dev.example", "to": "p1@dev.example"},
        ),
        ("Re: mm", "#lkp test", {"to": "p1@dev.example", **asked}),
    ]
    for subject, text, more in posted:
        deliver(world, signed(world.mail(DANA, text, subject=subject, **more)))
    open_jobs(world.settings, [], world.now)
    job = LabJob.objects.get()
    assert "p2@dev.example" in job.patch_parts
    record_outcome(job, JobOutcome.NOT_APPLIED, "part 2 of 2: error: patch failed: mm/555-0100.c:1", world.now)
    for url in pages(report.culprit.sha):
        assert b"555-0100" not in body(client, url), url


def test_the_review_queue_names_no_writer_of_private_mail(world: World, client: Client) -> None:
    report = world.report()
    lou = Address("Lou Loner", "lou@dev.example")
    deliver(world, signed(world.mail(lou, "#lkp invalid", to=message_id(report))))
    assert Suggestion.objects.exists()  # a bystander's command is for a click
    assert b"Loner" not in body(client, "/review/")
    olga = person("operator", "olga")
    client.force_login(olga)
    assert b"Loner" in body(client, "/review/")


def test_an_answer_to_one_person_is_for_operators(world: World, client: Client) -> None:
    report = world.report()
    deliver(world, signed(world.mail(DANA, f"#lkp whatever {SECRET_WORDS}", to=message_id(report))))
    answer = OutgoingMail.objects.get(purpose__startswith=Purpose.ANSWER)
    OutgoingMail.objects.filter(pk=answer.pk).update(state=OutgoingState.SENT, sent_at=world.now)
    assert client.get(f"/outbox/{answer.pk}/").status_code == 404
    assert answer.subject.encode() not in body(client, "/outbox/")
    assert f"/outbox/{answer.pk}/".encode() not in body(client, f"/report/{report.culprit.sha}/")
    olga = person("operator", "olga")
    client.force_login(olga)
    assert b"555-0100" in body(client, f"/outbox/{answer.pk}/")


@pytest.mark.parametrize(
    ("to", "public"),
    [
        ("perf-reports@lists.example.org", True),  # our own list
        ("linux-mm@kvack.org", True),
        ("someone@dev.example", False),
        ("bot-friends@dev.example", False),
        ("lkml@vger.dev.example", True),  # the one that every report goes to
        ("linux-mm-owner@lists.infradead.org", False),
        ("linux-mm-request@lists.infradead.org", False),
        ("linux-mm@lists.infradead.org.evil.dev.example.net", False),
        ("me@wish-list.example.com", False),
        ("internal-perf@lists.corp.example.com", False),  # a company's, for all that we know
        ("dana@kvack.org", False),  # a person
        ("linux-arm-kernel-moderators@lists.infradead.org", False),
        ("postmaster@vger.kernel.org", False),
        ("tab@lists.linux-foundation.org", False),
        ("tech-board@lists.linux-foundation.org", False),
        ("linux-admin@vger.kernel.org", True),
        ("dana@list.ru", False),
        ("security@lists.xenproject.org", False),
        ("linux-security-module@vger.kernel.org", True),
    ],
)
def test_mail_that_a_list_got_is_public(world: World, to: str, public: bool) -> None:
    report = world.report()
    world.settings = replace(world.settings, lkml="lkml@vger.dev.example")
    deliver(world, world.mail(DANA, "It is the lock.", to=message_id(report), Cc=to))
    assert Message.objects.get(author_email=DANA.email).public is public


@pytest.mark.parametrize(
    ("identifier", "public"),
    [
        ("The mm list <linux-mm.kvack.org>", True),
        ("<perf-reports.lists.example.org>", True),  # our own list
        ("<team.lists.corp.example.com>", False),
    ],
)
def test_a_file_is_public_where_a_public_list_marked_its_mail(world: World, identifier: str, public: bool) -> None:
    report = world.report()
    deliver(world, world.mail(DANA, "It is the lock.", to=message_id(report), List_Id=identifier))
    assert Message.objects.get(author_email=DANA.email).public is public


def test_mail_of_a_public_archive_is_public(world: World) -> None:
    report = world.report()
    world.post(DANA, "It is the lock.", to=message_id(report))
    world.read()
    assert Message.objects.get(author_email=DANA.email).public


# --- What a review with fresh eyes got through ---


def test_a_bait_in_a_robots_or_our_name_leads_to_no_report(world: World) -> None:
    """Dana's signed mail of another list answers it; Mallory put the bait into the report's thread first."""
    report = world.report()
    bait = {"to": message_id(report), "message_id": "x-1@other.example", "X_Perfwork_Report": "1"}
    deliver(world, world.mail(MALLORY, "hello", **bait))
    hers = world.mail(DANA, "#syz invalid", to="x-1@other.example")
    deliver(world, signed(hers.replace(world.settings.address.encode(), b"other@lists.example")))
    assert state(report) != "invalid"


def test_an_opt_out_acts_though_a_stranger_used_its_message_id_before(world: World) -> None:
    report = world.report()
    deliver(world, world.mail(MALLORY, "hello", to=message_id(report), message_id="x-1@dev.example"))
    deliver(world, signed(world.mail(DANA, "unsubscribe", message_id="x-1@dev.example")))
    assert wishes()[DANA.email] == Mailing.OPTED_OUT


def test_a_strangers_opt_out_takes_no_mail_away(world: World) -> None:
    """Whoever proves their own address may use a Message-ID that they saw, before or after."""
    report = world.report()
    hers = world.mail(DANA, "I will send a fix tomorrow.", to=message_id(report), message_id="x-1@dev.example")
    deliver(world, hers)
    before = state(report)
    deliver(world, signed(world.mail(MALLORY, "unsubscribe", message_id="x-1@dev.example")))
    assert Message.objects.get(message_id="x-1@dev.example").author_email == DANA.email
    assert state(report) == before


@pytest.mark.parametrize("kind", [b"text/html", b"application/octet-stream", b"message/rfc822"])
def test_a_copy_that_is_read_otherwise_first_keeps_nothing_of_hers_out(world: World, kind: bytes) -> None:
    report = world.report()
    hers = signed(world.mail(DANA, "#lkp invalid", to=message_id(report)))
    assert b"text/plain" in hers
    deliver(world, hers.replace(b"text/plain", kind))
    deliver(world, hers)
    assert state(report) == "invalid"


@pytest.mark.parametrize("field", ["Date", "Received"])
def test_a_date_at_the_end_of_time_stops_nothing(world: World, client: Client, field: str) -> None:
    report = world.report()
    far = "Fri, 31 Dec 9999 23:30:00 +0000"
    text = "Can you please test this patch?\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    raw = world.mail(Address("Dana Brook", MALLORY.email), text, to=message_id(report))
    if field == "Date":
        raw = re.sub(rb"\nDate: [^\n]*", f"\nDate: {far}".encode(), raw)
    else:
        raw = f"Received: x; {far}\n".encode() + raw
    deliver(world, raw)
    assert Message.objects.filter(author_email=MALLORY.email).exists()
    open_jobs(world.settings, [], world.now)
    assert client.get("/lab/").status_code == 200


def test_a_mail_of_next_year_is_of_the_day_on_which_it_came(world: World) -> None:
    report = world.report()
    raw = world.mail(Address("Dana Brook", MALLORY.email), "I will send a fix tomorrow.", to=message_id(report))
    deliver(world, re.sub(rb"\nDate: [^\n]*", b"\nDate: Fri, 31 Dec 2088 12:00:00 +0000", raw))
    assert max(Message.objects.values_list("sent_at", flat=True)) < timezone.now() + timedelta(days=2)
    assert max(Event.objects.values_list("occurred_at", flat=True)) < timezone.now() + timedelta(days=2)


PATCH = "diff --git a/mm/{name}.c b/mm/{name}.c\n--- a/mm/{name}.c\n+++ b/mm/{name}.c\n@@ -1 +1 @@\n-a\n+b\n"


def test_the_patch_that_somebody_vouched_for_is_the_one_that_runs(world: World) -> None:
    report = world.report()
    asking = {"to": message_id(report), "message_id": "m@evil.example"}
    deliver(world, world.mail(MALLORY, f"#lkp test\n\n{PATCH.format(name='benign')}", **asking))
    person("operator", "olga")
    suggestion = Suggestion.objects.get(kind="test_asked")
    assert decide_many([suggestion.pk], Decision.ACCEPTED, "olga", world.now)
    deliver(
        world, signed(world.mail(MALLORY, f"#lkp test\n\n{PATCH.format(name='wicked')}", **asking), b"evil.example")
    )
    open_jobs(world.settings, [], world.now)
    assert "benign" in stored_patch(LabJob.objects.get().patch_mail).text


def test_the_patch_that_an_operator_lets_run_is_the_one_that_runs(world: World) -> None:
    report = world.report()
    asking = {"to": message_id(report), "message_id": "m@evil.example"}
    text = "Could you please test this patch?\n\n"
    deliver(world, world.mail(MALLORY, text + PATCH.format(name="benign"), **asking))
    open_jobs(world.settings, [], world.now)
    assert lab_jobs.allow(LabJob.objects.get().pk, "olga")
    deliver(world, signed(world.mail(MALLORY, text + PATCH.format(name="wicked"), **asking), b"evil.example"))
    assert "benign" in stored_patch(LabJob.objects.get().patch_mail).text


def test_a_patch_below_original_message_is_not_hers(world: World) -> None:
    report = world.report()
    theirs = f"-----Original Message-----\nFrom: Mal <mal@evil.example>\n\n{PATCH.format(name='wicked')}"
    deliver(world, signed(world.mail(DANA, f"#lkp test\n\n{theirs}", to=message_id(report))))
    open_jobs(world.settings, [], world.now)
    assert not LabJob.objects.exclude(patch_mail="").exists()


@pytest.mark.parametrize("older", [OLDER["Hungarian"], OLDER["Notes"], OLDER["no address, Thai"]])
@pytest.mark.parametrize("theirs", [PATCH.format(name="wicked"), "https://evil.example/linux.git wicked\n"])
def test_what_may_be_somebody_elses_patch_waits_for_a_click(world: World, older: str, theirs: str) -> None:
    report = world.report()
    text = f"#lkp test\n\nPlease test this.\n\n{older}{theirs}"
    deliver(world, signed(world.mail(DANA, text, to=message_id(report))))
    open_jobs(world.settings, [], world.now)
    assert not LabJob.objects.filter(proven=True).exclude(patch_mail="", branch="").exists()


def test_a_patch_that_is_one_only_if_read_otherwise_waits_for_a_click(world: World) -> None:
    report = world.report()
    lines = PATCH.format(name="wicked").replace("+", "+-").splitlines()  # a line end is +AAo- in UTF-7
    quoted = "> x+AAo-" + "+AAo-".join(lines) + "+AAo-"
    hers = signed(world.mail(DANA, f"{quoted}\n\n#lkp test\n", to=message_id(report)))
    assert b'charset="utf-8"' in hers
    deliver(world, hers.replace(b'charset="utf-8"', b'charset="utf-7"'))
    open_jobs(world.settings, [], world.now)
    assert not LabJob.objects.filter(proven=True).exclude(patch_mail="").exists()


def test_the_answer_to_a_private_request_has_none_of_its_words(world: World, client: Client) -> None:
    report = world.report()
    asking = f"#lkp test\n\nSubject: [PATCH] mm: phone 555-0100\n\n{PATCH.format(name='x')}"
    deliver(world, signed(world.mail(DANA, asking, to=message_id(report), subject="Re: call 555-0100")))
    open_jobs(world.settings, [], world.now)
    record_outcome(LabJob.objects.get(), JobOutcome.NOT_APPLIED, "error: patch failed: mm/555-0100.c:1", world.now)
    compose_follow_ups(world.settings, world.now, approve_first=False)
    answer = OutgoingMail.objects.exclude(purpose="report").get()
    OutgoingMail.objects.filter(pk=answer.pk).update(state=OutgoingState.SENT, sent_at=world.now)
    assert b"555-0100" not in body(client, f"/outbox/{answer.pk}/")
