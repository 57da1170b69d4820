"""Bounces: the failed recipients and the server's reason, in the formats of various mail systems."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.mail.bounces import Bounce, read_bounce
from bot.mail.settings import BotSettings
from tracker.services.mail_transitions import is_dead

RETURNED = "202609011200.7d3e91c0-perfbot@bot.example.org"
POSTFIX = f"""\
Return-Path: <>
Date: Tue, 1 Sep 2026 12:01:00 +0000 (UTC)
From: MAILER-DAEMON@mx.example.org (Mail Delivery System)
Subject: Undelivered Mail Returned to Sender
To: perfbot+7d3e91c0a45b28f6.123456789abc@bot.example.org
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="A.1/mx"
Message-Id: <bounce-1@mx.example.org>

--A.1/mx
Content-Type: text/plain; charset=us-ascii

This is the mail system at host mx.example.org.

<dana@dev.example>: host mail.dev.example[192.0.2.1] said: 550 5.1.1
    <dana@dev.example>: Recipient address rejected: User unknown (in reply to RCPT TO command)

--A.1/mx
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.org

Final-Recipient: rfc822; dana@dev.example
Original-Recipient: rfc822;Dana@dev.example
Action: failed
Status: 5.1.1
Remote-MTA: dns; mail.dev.example
Diagnostic-Code: smtp; 550 5.1.1 <dana@dev.example>: Recipient address rejected: User unknown

Final-Recipient: rfc822; lee@dev.example
Action: failed
Status: 5.7.1
Diagnostic-Code: smtp; 554 5.7.1 looks like spam

--A.1/mx
Content-Type: text/rfc822-headers

Message-ID: <{RETURNED}>
Subject: [LKP] a regression

--A.1/mx--
"""
DELAYED = POSTFIX.replace("Action: failed", "Action: delayed").replace("Status: 5", "Status: 4")
EXIM = f"""\
From: Mail Delivery System <Mailer-Daemon@mx.example.net>
To: perfbot@bot.example.org
Subject: Mail delivery failed: returning message to sender
X-Failed-Recipients: dana@dev.example
Message-Id: <bounce-2@mx.example.net>

This message was created automatically by mail delivery software.

A message that you sent could not be delivered to one or more of its
recipients. This is a permanent error. The following address(es) failed:

  dana@dev.example
    Unrouteable address

------ This is a copy of the message, including all the headers. ------

Message-ID: <{RETURNED}>
Subject: [LKP] a regression
"""
QMAIL = f"""\
From: MAILER-DAEMON@mx.example.com
To: perfbot@bot.example.org
Subject: failure notice
Message-Id: <bounce-3@mx.example.com>

Hi. This is the qmail-send program at mx.example.com.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

<dana@dev.example>:
Sorry, no mailbox here by that name. (#5.1.1)

--- Below this line is a copy of the message.

Return-Path: <perfbot@bot.example.org>
Message-ID: <{RETURNED}>
Subject: [LKP] a regression
"""


def test_a_delivery_status_tells_of_each_in_the_servers_words() -> None:
    bounce = read_bounce(POSTFIX.encode())
    assert bounce.failed == {
        "dana@dev.example": "5.1.1 550 5.1.1 <dana@dev.example>: Recipient address rejected: User unknown",
        "lee@dev.example": "5.7.1 554 5.7.1 looks like spam",
    }
    assert bounce.message_ids == (RETURNED,)
    assert [is_dead(reason) for reason in bounce.failed.values()] == [True, False]


def test_a_delay_is_no_failure() -> None:
    bounce = read_bounce(DELAYED.encode())
    assert bounce.failed == {}


@pytest.mark.parametrize("form", [EXIM, QMAIL])
def test_forms_of_before_the_standard(form: str) -> None:
    for text in (form, form.replace("\n", "\r\n")):
        bounce = read_bounce(text.encode())
        assert list(bounce.failed) == ["dana@dev.example"]
        assert bounce.message_ids == (RETURNED,)


@given(st.binary(max_size=3000))
def test_junk_is_no_bounce(junk: bytes) -> None:
    read_bounce(junk)


@given(st.integers(0, len(POSTFIX) - 1), st.binary(max_size=20), st.integers(0, 300))
def test_a_broken_bounce_breaks_nothing(at: int, junk: bytes, gone: int) -> None:
    raw = POSTFIX.encode()
    bounce = read_bounce(raw[:at] + junk + raw[at + gone :])
    assert isinstance(bounce, Bounce)
    assert len(bounce.failed) <= 3


@pytest.mark.parametrize(
    ("reason", "dead"),
    [
        ("550 5.1.1 no such user", True),
        ("550 5.1.10 null MX", True),
        ("5.2.1 mailbox disabled", True),
        ("550 User unknown", True),
        ("5.0.0 smtp; 550 unknown user", True),  # 5.0.0 says nothing
        ("dana@dev.example: User unknown", True),
        ("no reason given", False),
        ("450 user unknown for now", False),
        ("550 5.0.0 Sender address bot@lab.example does not exist", False),
        ("550 No such user here", True),
        ("550 5.1.8 bad address of the sender", False),  # our fault, not his
        ("550 5.7.1 user unknown to our filter", False),
        ("552 5.2.2 mailbox full", False),
        ("554 we do not like it", False),
        ("451 4.1.1 try again", False),
        ("550 no", False),
        ("", False),
    ],
)
def test_who_is_dead(reason: str, dead: bool) -> None:
    assert is_dead(reason) is dead


def test_a_return_path_names_a_report_and_one_of_its_mails() -> None:
    bot = BotSettings(address="perfbot@bot.example.org")
    path = bot.return_path("7d3e91c0a45b28f6", RETURNED)
    assert path.startswith("perfbot+7d3e91c0a45b28f6.")
    assert path != replace(bot, secret=b"another").return_path("7d3e91c0a45b28f6", RETURNED)
    assert bot.tag_in(path) == "7d3e91c0a45b28f6"
    assert len(bot.mark_in(path)) == 12
    assert bot.is_own(path)
    for other in ("perfbot+7d3e91c0a45b28f6@bot.example.org", path.replace("bot.example", "evil.example"), "", "@"):
        assert bot.mark_in(other) == ""


DSN = """From: MAILER-DAEMON@mx.example
To: perfbot@bot.example.org
Subject: Undelivered Mail
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: text/plain

{text}

--b
Content-Type: {kind}{encoding}

{status}
--b--
"""
STATUS = (
    "Reporting-MTA: dns; mx.example\n\nFinal-Recipient: {type}; dana@dev.example\nAction: {action}\nStatus: {code}\n"
)


@pytest.mark.parametrize(
    ("kind", "type_", "action", "code", "encoded", "failed"),
    [
        ("message/delivery-status", "rfc822", "failed", "5.1.1", False, True),
        ("message/delivery-status", "rfc822", "failed", "5.1.1", True, True),
        ("message/global-delivery-status", "utf-8", "failed", "5.1.1", False, True),  # RFC 6533
        ("message/global-delivery-status", "utf-8", "failed", "5.1.1", True, True),
        ("message/delivery-status", "rfc822", "delayed", "4.4.1", False, False),
        ("message/delivery-status", "rfc822", "delayed", "4.4.1", True, False),
        ("message/delivery-status", "rfc822", "", "5.2.1", False, True),
        ("text/plain", "rfc822", "failed", "5.1.1", False, True),  # by its fields
        ("application/octet-stream", "rfc822", "failed", "5.1.1", True, True),
        ("text/plain", "rfc822", "delayed", "4.4.1", True, False),
    ],
)
def test_a_delivery_status_is_read_however_it_is_encoded(
    kind: str, type_: str, action: str, code: str, encoded: bool, failed: bool
) -> None:
    status = STATUS.format(type=type_, action=action, code=code)
    encoding = "\nContent-Transfer-Encoding: base64" if encoded else ""
    status = base64.encodebytes(status.encode()).decode() if encoded else status
    bounce = read_bounce(DSN.format(text="Your mail.", kind=kind, encoding=encoding, status=status).encode())
    assert ("dana@dev.example" in bounce.failed) is failed
    assert not failed or bounce.failed["dana@dev.example"].startswith(code)


TEXT = "From: MAILER-DAEMON@mx.example\nTo: perfbot@bot.example.org\nSubject: Delivery failure\n\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "Failed Recipient: dana@dev.example\nReason: Remote host said: 550 5.1.1 No such user here\n",
            "Remote host said",
        ),
        (
            "Failed Recipient: dana@dev.example\nReason: Remote host said:\n   550 5.1.1 No such user here\n",
            "550 5.1.1 No such user",
        ),
        ("Status: 550 5.1.1 No such user\nRecipient: dana@dev.example\n", "550 5.1.1 No such user"),
        (
            "The following error occurred: 550 5.1.1 unknown\n\nFailed Recipient: dana@dev.example\n",
            "550 5.1.1 unknown",
        ),
        ("Status: 451 4.2.2 Mailbox full\nRecipient: dana@dev.example\n", ""),
        (
            "Status: 550 5.1.1 No such user\nRecipient: lee@dev.example\n\nRecipient: dana@dev.example\n",
            "no reason given",
        ),
        ("Delivery to the address below is pending.\n\nFailed Recipient: dana@dev.example\nReason: no route\n", ""),
        ("I'm not giving up yet; delivery will be retried.\n\n<dana@dev.example>:\n550 5.1.1 they say\n", ""),
        ("Recipient: <dana@dev.example>\nReason: 550 5.1.1 User unknown\n", "550 5.1.1 User unknown"),
        ("Original recipient: dana@dev.example\n", "no reason given"),
        ("This is a warning message only.\n\nFailed Recipient: dana@dev.example\nReason: 451 later\n", ""),
        ("The delivery has been delayed.\nRecipient: dana@dev.example\nReason: 451 4.4.1\n", ""),
        ("I will keep trying.\nRecipient: dana@dev.example\n", ""),
        ("It is still queued; there was no permanent error.\nRecipient: dana@dev.example\nReason: no route\n", ""),
        ("Recipient: dana@dev.example\nReason: no route\nNext attempt: in 2 hours\n", ""),
        (
            "The message was delayed. You'll be notified if the delivery fails permanently.\n"
            "Recipient: dana@dev.example\nReason: no route\n",
            "",
        ),
        ("It will be retried, and given up after five days.\nRecipient: dana@dev.example\nReason: greylisted\n", ""),
        (
            "It was delayed, and retried for 5 days; I have given up.\nRecipient: dana@dev.example\nReason: no route\n",
            "no route",
        ),
        (
            "Not delivered yet; delivery will be attempted again.\nRecipient: dana@dev.example\nReason: 421 4.4.0 x\n",
            "",
        ),
        ("Failed Recipient: dana@dev.example\nReason: 451 4.7.1 Greylisted\n", ""),
        ("I've given up. Sorry.\n\n<dana@dev.example>:\nmx: (#4.4.3)\nI'm not going to try again.\n", "#4.4.3"),
        ("<dana@dev.example>: 550 5.1.1 No such user. Please check the address and try again.\n", "550 5.1.1"),
        (
            "It could not be delivered to the recipient:\n\n  dana@dev.example\n\nReason: mailbox unavailable.\n",
            "no reason given",
        ),
        ("Delivery failed for the address\n\n  dana@dev.example\n\nThe mailbox does not exist.\n", "no reason given"),
        ("The mail of dana@dev.example to lee@dev.example could not be delivered.\n", ""),  # to which of them?
        ("It could not be delivered for 4 hours to\n\n  dana@dev.example\n\nDelivery attempts will continue.\n", ""),
        ("It could not be delivered at this time:\n\n  dana@dev.example\n\nYou will be told.\n", ""),
        ("It is on its way. If it could not be delivered, you get another mail.\n\n  dana@dev.example\n", ""),
        ("Mail to a member of the list could not be delivered. Contact dana@dev.example.\n", ""),
        ("Delivery failed so far for dana@dev.example and will be retried.\n", ""),
        ("We copied dana@dev.example.\nTicket 500 was opened; call +49 555 1234 about v5.10.1.\n", ""),
        # As Exim, qmail, sendmail, Postfix, Exchange, Office 365 and others write it
        (
            "These addresses failed:\n\n  dana@dev.example\n    host mx [192.0.2.1]\n    SMTP error after RCPT TO:"
            "<dana@dev.example>:\n    550 5.1.1 User unknown\n\n------ This is a copy of the message. ------\n",
            "550 5.1.1",
        ),
        (
            "Hi. This is the qmail-send program.\n\n<dana@dev.example>:\n192.0.2.1 does not like recipient.\n"
            "Remote host said: 550 5.1.1 No such user\nGiving up on 192.0.2.1.\n",
            "550 5.1.1 No such user",
        ),
        (
            "I'm sorry.\n\n<dana@dev.example>: host mx[192.0.2.1] said: 550 5.1.1\n    <dana@dev.example>: rejected\n",
            "550",
        ),
        (
            "cannot be reached:\n\n  dana@dev.example on 9/7/2026\n    no account.\n    <mx #5.1.1 smtp;550 5.1.1>\n",
            "5.1.1",
        ),
        (
            "Delivery has failed:\n\ndana@dev.example<mailto:dana@dev.example>\nnot found.\n\nGenerating server: mx\n\n"
            "dana@dev.example\nRemote Server returned '550 5.1.10 RecipientNotFound'\n",
            "550 5.1.10",
        ),
        ("Failed address: dana@dev.example\nError: 550 5.1.1 mailbox unavailable\n", "550 5.1.1 mailbox"),
        # In the address's own line, before or behind it
        ("It failed:\n\ndana@dev.example: 550 5.1.1 No such user\nlee@dev.example: 450 4.2.0 later\n", "550 5.1.1 No"),
        ("dana@dev.example 550 5.1.1 No such user\n", "550 5.1.1 No"),
        ("dana@dev.example\t550 User unknown\n", "550 User"),
        ("dana@dev.example - 550 User unknown\n", "550 User"),
        ("dana@dev.example => 550 User unknown\n", "550 User"),
        ('"dana@dev.example", 550 User unknown\n', "550 User"),
        ("550 5.1.1 <dana@dev.example>: Recipient rejected: User unknown\n", "550 5.1.1 <dana"),
        ("550 5.1.1 dana@dev.example User unknown\n", "550 5.1.1 dana"),
        ("550 5.1.1 user unknown: lee@dev.example; it was also sent to dana@dev.example\n", ""),
        ("收件人（dana@dev.example）不存在。\nRCPT TO: 550 User not found: dana@dev.example\n", "550 User not found"),
        (
            "permanent errors\n<dana@dev.example>\n    (reason: 550 5.1.1 <dana@dev.example>... User unknown)\n\n"
            "<<< 450 4.1.1 <dana@dev.example>... later\n<<< 503 5.0.0 Need RCPT (recipient)\n",
            "550 5.1.1",
        ),
        ("It could not be delivered.\n\ndana@dev.example: User unknown\n", "dana@dev.example: User"),
        ("It could not be delivered.\n\nThe mailbox dana@dev.example does not exist.\n", "The mailbox"),
        ("It could not be delivered.\n\nWrite to dana@dev.example if the user is unknown.\n", ""),
        (
            "Write to dana@dev.example.\n\nAsk lee@dev.example: 550 of them\n\n--- Below this line is a copy.\n"
            "From: dana@dev.example\n550 5.1.1\n",
            "",
        ),
    ],
)
def test_free_text_names_who_failed_and_a_delay_is_no_failure(text: str, reason: str) -> None:
    failed = read_bounce((TEXT + text).encode()).failed
    assert failed.get("dana@dev.example", "").startswith(reason)
    assert ("dana@dev.example" in failed) is bool(reason)
