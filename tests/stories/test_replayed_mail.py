"""A proven mail that somebody else sends again: into another thread, under another type, more than once.

What a signature does not cover is changed; what it covers is as the author signed it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.mail.settings import BotSettings
from tests.bot.mail.test_trust import DKIM, signed
from tests.world import DANA, World, message_id, state
from tracker.models import Event, Message, OutgoingMail, Report, Suggestion

# As kernel.org signs: neither the Message-ID nor what says how the body is read.
SIGNED = [b"from", b"to", b"cc", b"date", b"subject", b"in-reply-to", b"references"]


@pytest.fixture
def replayed_mail_world(tmp_path: Path, bot_settings: BotSettings) -> World:
    anchors = replace(DKIM, signs=lambda domain: True)
    return World(tmp_path, replace(bot_settings, trust_policy="verified", trust_anchors=anchors))


def kinds(report: Report) -> list[str]:
    return list(report.events.exclude(kind="reported").order_by("pk").values_list("kind", flat=True))


@pytest.mark.django_db
@pytest.mark.parametrize("header", ["Delivered-To", "X-Original-To", "Envelope-To", "Bcc", "Resent-To", "Resent-Cc"])
def test_headers_of_the_delivery_aim_no_proven_command(replayed_mail_world: World, header: str) -> None:
    one, other = replayed_mail_world.report(), replayed_mail_world.report("mm: another")
    raw = signed(replayed_mail_world.mail(DANA, "#lkp invalid", to=message_id(one)), include_headers=SIGNED)
    ours = f"{header}: perfbot+{other.tag}@bot.example.org\n".encode()
    replayed_mail_world.inbox.add(ours + raw)
    replayed_mail_world.read()
    assert (state(one), state(other)) == ("invalid", "no_response")
    assert Suggestion.objects.filter(report=other).exists()


@pytest.mark.django_db
def test_an_unsigned_reference_aims_no_proven_command(replayed_mail_world: World) -> None:
    one, other = replayed_mail_world.report(), replayed_mail_world.report("mm: another")
    raw = signed(
        replayed_mail_world.mail(DANA, "#lkp invalid", to=message_id(one)),
        include_headers=[b"from", b"date", b"subject"],
    )
    replayed_mail_world.inbox.add(raw.replace(message_id(one).encode(), message_id(other).encode()))
    replayed_mail_world.read()
    # Like any mail in her name that nobody signed, it can only say that she answered.
    assert (state(one), state(other)) == ("no_response", "responded")
    assert list(Suggestion.objects.values_list("report", "kind")) == [(other.pk, "invalid")]


@pytest.mark.django_db
def test_a_line_of_another_reading_aims_no_proven_command(replayed_mail_world: World) -> None:
    """The Closes: line is one of hers only if the body is read as the sender of the copy wants it."""
    one, other = replayed_mail_world.report(), replayed_mail_world.report("mm: another")
    mail = replayed_mail_world.mail(DANA, "@", to="nobody@x")
    head, _, _ = mail.partition(b"\n\n")
    head = b"\n".join(line for line in head.split(b"\n") if not line.lower().startswith((b"content-", b"mime-")))
    body = f"#lkp invalid\n\n> x =0ACloses: https://lore.kernel.org/r/{message_id(other)}\n"
    raw = signed(head + b"\n\n" + body.encode(), include_headers=SIGNED)
    replayed_mail_world.inbox.add(b"Content-Type: text/plain\nContent-Transfer-Encoding: quoted-printable\n" + raw)
    replayed_mail_world.read()
    assert "invalid" not in (state(one), state(other))


@pytest.mark.django_db
def test_a_signed_thread_is_the_only_one(replayed_mail_world: World) -> None:
    one, other = replayed_mail_world.report(), replayed_mail_world.report("mm: another")
    raw = replayed_mail_world.mail(DANA, "I'll send a fix tomorrow.", to=message_id(one))
    raw = signed(raw, include_headers=SIGNED)
    link = f"See https://lore.kernel.org/r/{message_id(other)}\n".encode()
    replayed_mail_world.inbox.add(f"X-Original-To: perfbot+{other.tag}@bot.example.org\n".encode() + raw)
    replayed_mail_world.inbox.add(raw.replace(b"\n\n", b"\n\n" + link, 1))
    replayed_mail_world.read()
    assert (state(one), state(other)) == ("working", "no_response")


@pytest.mark.django_db
def test_a_mail_in_two_threads_is_aimed_at_neither(replayed_mail_world: World) -> None:
    """Under a Message-ID that she answered, somebody may have posted elsewhere first."""
    one, other = replayed_mail_world.report(), replayed_mail_world.report("mm: another")
    theirs = replayed_mail_world.mail(DANA, "hello", to=message_id(other))
    name = theirs.split(b"Message-ID: <")[1].split(b">")[0].decode()
    replayed_mail_world.inbox.add(theirs)
    raw = replayed_mail_world.mail(DANA, "#lkp invalid", to=name, References=f"<{message_id(one)}> <{name}>")
    replayed_mail_world.inbox.add(signed(raw, include_headers=SIGNED))
    replayed_mail_world.read()
    assert "invalid" not in (state(one), state(other))


ATTACHED = """\
--x
Content-Type: text/plain

No.
--x
Content-Type: message/rfc822

From: Mallory <mallory@evil.example>
Subject: a mail that she passes on

--y

#lkp invalid
--y--
--x--
"""


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("body", "header"),
    [
        # She quoted it in HTML or in an encoding; her text is signed, how to read it is not.
        ("<blockquote><pre>\n#lkp invalid\n</pre></blockquote><p>No, it is valid.</p>", b"text/plain"),
        ("> +AAo-#lkp invalid\n\nNo.\n", b"text/plain; charset=utf-7"),
        ("What about this?\n #lkp invalid\nNo.\n", b"text/plain; format=flowed"),
        (ATTACHED, b"multipart/mixed; boundary=y"),
        ("> =0A#lkp invalid\n\nNo.\n", b"text/plain\nContent-Transfer-Encoding: quoted-printable"),
    ],
)
def test_the_same_bytes_under_another_type_command_nothing(
    replayed_mail_world: World, body: str, header: bytes
) -> None:
    report = replayed_mail_world.report()
    mail = replayed_mail_world.mail(DANA, "@", to=message_id(report))
    head, _, _ = mail.partition(b"\n\n")
    head = b"\n".join(line for line in head.split(b"\n") if not line.lower().startswith((b"content-", b"mime-")))
    raw = signed(head + b"\n\n" + body.encode(), include_headers=SIGNED)
    replayed_mail_world.inbox.add(b"MIME-Version: 1.0\nContent-Type: " + header + b"\n" + raw)
    replayed_mail_world.read()
    assert state(report) != "invalid"
    assert "invalid" not in kinds(report)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"", "invalid"),
        (b"Content-Type: text/plain; charset=us-ascii\n", "invalid"),
        (b"Content-Type: text/plain; charset=utf-8; format=flowed\nContent-Transfer-Encoding: 8bit\n", "invalid"),
    ],
)
def test_a_mail_that_all_read_alike_acts_whatever_its_type_says(
    replayed_mail_world: World, header: bytes, expected: str
) -> None:
    report = replayed_mail_world.report()
    raw = replayed_mail_world.mail(DANA, "It was my test machine.\n\n#lkp invalid\n", to=message_id(report))
    head, _, body = raw.partition(b"\n\n")
    head = b"\n".join(line for line in head.split(b"\n") if not line.lower().startswith((b"content-", b"mime-")))
    replayed_mail_world.inbox.add(header + signed(head + b"\n\n" + body, include_headers=SIGNED))
    replayed_mail_world.read()
    assert state(report) == expected


@pytest.mark.django_db
def test_a_command_in_html_is_answered_and_not_obeyed(replayed_mail_world: World) -> None:
    report = replayed_mail_world.report()
    raw = replayed_mail_world.mail(DANA, "<p>#lkp invalid</p>", to=message_id(report)).replace(
        b"text/plain", b"text/html"
    )
    replayed_mail_world.inbox.add(
        signed(raw, include_headers=[*SIGNED, b"content-type", b"content-transfer-encoding", b"mime-version"])
    )
    replayed_mail_world.read()
    assert state(report) != "invalid"
    answer = OutgoingMail.objects.get(report=report, purpose__startswith="answer")
    assert b"commands are read from plain text only" in bytes(answer.raw)


@pytest.mark.django_db
@pytest.mark.parametrize("first", ["hers", "copy"])
def test_a_copy_under_another_name_acts_once(replayed_mail_world: World, first: str) -> None:
    report = replayed_mail_world.report()
    raw = signed(replayed_mail_world.mail(DANA, "#lkp invalid", to=message_id(report)), include_headers=SIGNED)
    name = raw.split(b"Message-ID: <")[1].split(b">")[0]
    copy = raw.replace(name, b"copy@evil.example")
    for each in (raw, copy) if first == "hers" else (copy, raw):
        replayed_mail_world.inbox.add(each)
        replayed_mail_world.read()
    assert kinds(report).count("invalid") == 1
    assert Message.objects.filter(author_email=DANA.email).count() == 2


@pytest.mark.django_db
@pytest.mark.parametrize("first", ["hers", "damaged"])
def test_a_damaged_copy_that_comes_first_takes_nothing_from_hers(replayed_mail_world: World, first: str) -> None:
    report = replayed_mail_world.report()
    raw = signed(replayed_mail_world.mail(DANA, "#lkp invalid", to=message_id(report)), include_headers=SIGNED)
    damaged = raw.replace(b"#lkp invalid", b"#lkp note: x")
    for number, each in enumerate((raw, damaged) if first == "hers" else (damaged, raw)):
        file = replayed_mail_world.directory / f"list-{number}.eml"  # two archives
        file.write_bytes(each)
        replayed_mail_world.read(file)
    assert state(report) == "invalid"
    assert Message.objects.get(author_email=DANA.email).trust == "pass"
    assert not Event.objects.filter(kind="noted").exists()
