"""All transports: what is known of a mail after each possible failure of a server, a program or a disk."""

from __future__ import annotations

import base64
import os
import socketserver
import ssl
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dkim
import patatt
import pytest
from aiosmtpd.smtp import AuthResult
from django.core.exceptions import ImproperlyConfigured
from nacl.signing import SigningKey

from bot import config
from bot.compose.policy import Policy
from bot.notifications.report import compose_due
from bot.outbox.transports import (
    DkimKey,
    Envelope,
    PatattKey,
    SendmailTransport,
    SendOutcome,
    SendStatus,
    Server,
    Signing,
    SmtpTransport,
    Transport,
    Unsigned,
    transport_of,
)
from tests.support.needs import need
from tests.support.outbox import send
from tests.support.servers import Moody, free_port, mail_server, self_signed
from tests.support.world import World
from tracker.models import OutgoingMail

# --- All transports: what is known of a mail after each possible failure of a server, a program or a disk ---

DANA, LEE = "dana@dev.example", "lee@dev.example"
RAW = (
    b"Message-ID: <1@bot.example.org>\r\nFrom: perfbot@bot.example.org\r\nTo: dana@dev.example\r\n"
    b"Cc: lee@dev.example\r\nSubject: a regression\r\n\r\nIt is slower.\r\n.a line with a dot\r\n"
)
ENVELOPE = Envelope("1@bot.example.org", "perfbot+1@bot.example.org", (DANA, LEE), RAW)


def yes() -> bool:
    return True


def sent_by(transport: Transport, envelope: Envelope = ENVELOPE, confirm: Any = yes) -> SendOutcome:
    outcome = transport.send(envelope, confirm)
    transport.close()
    return outcome


# --- SMTP ---


def test_the_bytes_arrive_as_they_are_over_one_connection() -> None:
    mood = Moody()
    with mail_server(mood) as server:
        transport = SmtpTransport(server)
        for _ in range(3):
            assert transport.send(ENVELOPE, yes) == SendOutcome(SendStatus.SENT, "taken")
        transport.close()
    assert mood.taken == [RAW] * 3
    assert mood.reached == [[DANA, LEE]] * 3
    assert mood.senders == ["perfbot+1@bot.example.org"] * 3
    assert mood.sessions == 1


def test_it_says_its_name() -> None:
    mood = Moody()
    with mail_server(mood) as server:
        sent_by(SmtpTransport(Server(server.host, server.port, ehlo="perf.example.org")))
    assert mood.greeted == ["perf.example.org"]


def test_eight_bits_and_smtputf8_are_asked_for_only_where_they_are_needed() -> None:
    mood = Moody()
    envelopes = [
        ENVELOPE,
        Envelope("2@x", ENVELOPE.sender, (DANA,), RAW + "±\r\n".encode()),
        Envelope("3@x", ENVELOPE.sender, ("dörte@dev.example",), RAW),
    ]
    with mail_server(mood, enable_SMTPUTF8=True) as server:
        transport = SmtpTransport(server)
        for envelope in envelopes:
            assert transport.send(envelope, yes).status is SendStatus.SENT
        transport.close()
    assert mood.options == [[], ["BODY=8BITMIME"], ["SMTPUTF8"]]
    assert mood.reached[2] == ["dörte@dev.example"]


def test_an_address_that_the_server_cannot_take_is_said_and_keeps_no_other_back() -> None:
    mood = Moody()
    with mail_server(mood, enable_SMTPUTF8=False) as server:
        transport = SmtpTransport(server)
        outcome = transport.send(Envelope("3@x", ENVELOPE.sender, ("dörte@dev.example", DANA), RAW), yes)
        assert outcome.status is SendStatus.SENT
        assert list(outcome.refused) == ["dörte@dev.example"]
        assert transport.send(ENVELOPE, yes).status is SendStatus.SENT
        transport.close()
    assert mood.reached == [[DANA], [DANA, LEE]]


def test_who_is_refused_and_who_must_wait_is_told_apart() -> None:
    mood = Moody()
    mood.rcpt = {DANA: "550 5.1.1 no such user", LEE: "451 4.7.1 greylisted"}
    envelope = Envelope("1@x", ENVELOPE.sender, (DANA, LEE, "kim@dev.example"), RAW)
    with mail_server(mood) as server:
        outcome = sent_by(SmtpTransport(server), envelope)
    assert outcome == SendOutcome(
        SendStatus.SENT, "taken", {DANA: "550 5.1.1 no such user"}, {LEE: "451 4.7.1 greylisted"}
    )
    assert mood.reached == [["kim@dev.example"]]


@pytest.mark.parametrize(
    ("dana", "lee", "status"),
    [
        ("550 no", "550 no", SendStatus.REFUSED),
        ("550 no", "451 later", SendStatus.LATER),
        ("421 closing", "250 fine", SendStatus.LATER),
        ("garbled", "garbled", SendStatus.LATER),  # smtplib's code is -1: no server has refused anything
    ],
)
def test_refused_by_all(dana: str, lee: str, status: SendStatus) -> None:
    mood = Moody()
    mood.rcpt = {DANA: dana, LEE: lee}
    with mail_server(mood) as server:
        transport = SmtpTransport(server)
        assert transport.send(ENVELOPE, yes).status is status
        mood.rcpt = {}
        assert transport.send(ENVELOPE, yes).status is SendStatus.SENT  # the connection, or a new one, carries the next
        transport.close()
    assert len(mood.taken) == 1


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("451 later", SendStatus.LATER),
        ("554 no", SendStatus.REFUSED),
        ("421 closing", SendStatus.LATER),
        ("299 odd", SendStatus.IN_DOUBT),
    ],
)
def test_the_answer_to_the_last_dot(answer: str, status: SendStatus) -> None:
    mood = Moody()
    mood.answer = answer
    with mail_server(mood) as server:
        assert sent_by(SmtpTransport(server)) == SendOutcome(status, expected_reply(answer, status))


def expected_reply(answer: str, status: SendStatus) -> str:
    return f"the server answered the last dot with: {answer}" if status is SendStatus.IN_DOUBT else answer


def test_it_vanishes_behind_the_last_dot() -> None:
    mood = Moody()
    mood.vanish = True
    with mail_server(mood) as server:
        outcome = sent_by(SmtpTransport(server))
    assert outcome.status is SendStatus.IN_DOUBT
    assert len(mood.taken) == 1


def test_it_never_answers_the_last_dot() -> None:
    mood = Moody()
    mood.stall = 3
    with mail_server(mood) as server:
        outcome = sent_by(SmtpTransport(Server(server.host, server.port, timeout=0.3)))
    assert outcome.status is SendStatus.IN_DOUBT
    assert "timed out" in outcome.reply


def test_a_mail_that_must_not_go_after_all_does_not() -> None:
    mood = Moody()
    with mail_server(mood) as server:
        transport = SmtpTransport(server)
        assert transport.send(ENVELOPE, lambda: False).status is SendStatus.NOT_NOW
        assert transport.send(ENVELOPE, yes).status is SendStatus.SENT
        transport.close()
    assert len(mood.taken) == 1


class Cut(socketserver.StreamRequestHandler):
    """A server that hangs up when it has read so many bytes; `server.taken` is what it would deliver."""

    left = 0

    def line(self) -> bytes:
        found = b""
        while not found.endswith(b"\n"):
            if self.left <= 0:
                raise ConnectionResetError
            byte = self.rfile.read(1)
            if not byte:
                raise ConnectionResetError
            self.left -= 1
            found += byte
        return found

    def handle(self) -> None:
        server: Any = self.server
        self.left = server.cut
        try:
            self.dialogue(server)
        except ConnectionResetError:
            self.connection.setsockopt(*_RESET)

    def dialogue(self, server: Any) -> None:
        self.wfile.write(b"220 hello\r\n")
        while command := self.line():
            if not command.upper().startswith(b"DATA"):
                self.wfile.write(b"250 fine\r\n")
                continue
            self.wfile.write(b"354 go on\r\n")
            while self.line() != b".\r\n":
                pass
            server.taken += 1
            if self.left <= 0:
                raise ConnectionResetError
            self.wfile.write(b"250 taken\r\n")


_RESET = (1, 13, b"\1\0\0\0\0\0\0\0")  # SOL_SOCKET, SO_LINGER of no seconds: hang up without a word


@pytest.mark.slow
def test_it_hangs_up_at_any_byte() -> None:
    """Before the last dot, nothing is taken and the mail goes again; once the dot is on its way, it is never sent
    again by itself.
    """
    with socketserver.TCPServer(("127.0.0.1", 0), Cut) as server:
        any_server: Any = server
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        statuses: dict[SendStatus, int] = {}
        for cut in range(500):
            any_server.cut, any_server.taken = cut, 0
            dotted: list[int] = []

            def confirm(dotted: list[int] = dotted) -> bool:
                dotted.append(1)
                time.sleep(0.004)  # as long as a database takes
                return True

            where = Server("127.0.0.1", server.server_address[1], timeout=5, ehlo="me")
            status = sent_by(SmtpTransport(where), confirm=confirm).status
            statuses[status] = statuses.get(status, 0) + 1
            assert (
                status in (SendStatus.SENT, SendStatus.IN_DOUBT) if any_server.taken else status is not SendStatus.SENT
            ), cut
            if not dotted:
                assert not any_server.taken
                assert status in (SendStatus.NO_SERVER, SendStatus.LATER), cut
        server.shutdown()
    assert set(statuses) == {SendStatus.NO_SERVER, SendStatus.LATER, SendStatus.IN_DOUBT, SendStatus.SENT}
    assert statuses[SendStatus.IN_DOUBT] < 10  # only around the dot


def test_a_connection_that_was_closed_for_its_idleness_costs_nothing() -> None:
    first, second = Moody(), Moody()
    with mail_server(first) as server:
        transport = SmtpTransport(server)
        assert transport.send(ENVELOPE, yes).status is SendStatus.SENT
    with mail_server_at(second, server.port):
        assert transport.send(ENVELOPE, yes).status is SendStatus.SENT
        transport.close()
    assert len(first.taken) == len(second.taken) == 1


@contextmanager
def mail_server_at(mood: Moody, port: int) -> Iterator[None]:
    from aiosmtpd.controller import Controller

    controller = Controller(mood, hostname="127.0.0.1", port=port)
    controller.start()
    yield
    controller.stop()


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A certificate for localhost that the client trusts."""
    file, context = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    return context


def logs_in(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    return AuthResult(success=(data.login, data.password) == (b"bot", b"p@ss"), handled=False)


def test_starttls_and_a_password(certificate: ssl.SSLContext) -> None:
    mood = Moody()
    options = {"tls_context": certificate, "authenticator": logs_in, "auth_required": True, "require_starttls": True}
    with mail_server(mood, **options) as server:
        right = transport_of(f"smtp+tls://bot:p%40ss@localhost:{server.port}")
        wrong = transport_of(f"smtp+tls://bot:wrong@localhost:{server.port}")
        assert sent_by(right) == SendOutcome(SendStatus.SENT, "taken")
        refused = sent_by(wrong)
    assert refused.status is SendStatus.NO_SERVER  # a wrong setting is no mail's fault
    assert "535" in refused.reply
    assert "wrong" not in refused.reply


def test_tls_from_the_first_byte(certificate: ssl.SSLContext) -> None:
    mood = Moody()
    with mail_server(mood, ssl_context=certificate) as server:
        assert sent_by(transport_of(f"smtp+ssl://localhost:{server.port}")).status is SendStatus.SENT
    assert mood.taken == [RAW]


def test_a_server_whose_name_is_not_proven_gets_nothing(
    certificate: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    mood = Moody()
    with mail_server(mood, tls_context=certificate) as server:
        outcome = sent_by(transport_of(f"smtp+tls://localhost:{server.port}"))
    assert outcome.status is SendStatus.NO_SERVER
    assert "CERTIFICATE_VERIFY_FAILED" in outcome.reply
    assert not mood.taken


def test_nobody_there() -> None:
    outcome = sent_by(SmtpTransport(Server("127.0.0.1", free_port(), timeout=1)))
    assert outcome.status is SendStatus.NO_SERVER


# --- sendmail ---


def program(directory: Path, script: str) -> SendmailTransport:
    file = directory / "sendmail"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return SendmailTransport(str(file), timeout=2)


def test_sendmail_gets_the_envelope_and_the_bytes(tmp_path: Path) -> None:
    outcome = sent_by(program(tmp_path, f'printf "%s\\n" "$@" >{tmp_path}/args; cat >{tmp_path}/mail'))
    assert outcome.status is SendStatus.SENT
    assert (tmp_path / "mail").read_bytes() == RAW.replace(b"\r\n", b"\n")
    arguments = (tmp_path / "args").read_text().split()
    assert arguments == ["-oi", "-f", ENVELOPE.sender, "--", DANA, LEE]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("cat >/dev/null; echo later >&2; exit 69", SendStatus.LATER),
        ("cat >/dev/null; echo cannot locate host mail.example.org >&2; exit 68", SendStatus.LATER),
        ("cat >/dev/null; echo queued, perhaps >&2; exit 75", SendStatus.IN_DOUBT),
        ("sleep 20 & exec sleep 20", SendStatus.IN_DOUBT),
        ("cat >/dev/null; echo no such user >&2; exit 67", SendStatus.REFUSED),
        ("cat >/dev/null; kill -9 $$", SendStatus.IN_DOUBT),
        ("exec sleep 20", SendStatus.IN_DOUBT),
    ],
)
def test_sendmail_fails(tmp_path: Path, script: str, status: SendStatus) -> None:
    assert sent_by(program(tmp_path, script)).status is status


def test_sendmail_that_is_not_there_and_mail_that_must_not_go(tmp_path: Path) -> None:
    assert sent_by(SendmailTransport(str(tmp_path / "none"))).status is SendStatus.NO_SERVER
    transport = program(tmp_path, f"cat >{tmp_path}/mail")
    assert sent_by(transport, confirm=lambda: False).status is SendStatus.NOT_NOW
    assert not (tmp_path / "mail").exists()


@pytest.mark.parametrize("sign", "\uff1f\u2100\uff20")  # which become ?, a/c and @ (NFKC)
def test_a_password_is_in_no_error(sign: str) -> None:
    with pytest.raises(ValueError, match=r"special characters of a password") as error:
        transport_of(f"smtp+tls://bot:s3{sign}cret@mail.example.org:587")
    assert "cret" not in str(error.value)


def test_urls_name_transports() -> None:
    assert transport_of("sendmail://") == SendmailTransport("/usr/sbin/sendmail")
    assert transport_of("sendmail:///opt/msmtp", timeout=5) == SendmailTransport("/opt/msmtp", 5)
    assert os.EX_TEMPFAIL == 75  # what sendmail programs say for "later"


# --- Signatures are added when mail is sent, and verify with the public key ---

SEED = base64.b64encode(bytes(range(32)))
PUBLIC = base64.b64encode(bytes(SigningKey(bytes(range(32))).verify_key))


def sent(world: World, signing: Signing) -> bytes:
    """What a receiver gets of a real report."""
    world.ingest(world.result("b" * 40, "mm: größer ± 3"))
    compose_due(world.settings, world.now, approve_first=False)
    mood = Moody()
    with mail_server(mood) as server:
        assert sum(send(server, signing=signing).values()) == 1
    return mood.taken[0]


def verified(raw: bytes, record: bytes) -> bool:
    return bool(
        dkim.verify(raw, dnsfunc=lambda name, timeout=5: record if name.startswith(b"s1._domainkey.") else None)
    )


def test_ed25519(world: World) -> None:
    raw = sent(world, Signing(DkimKey("bot.example.org", "s1", SEED)))
    record = b"v=DKIM1; k=ed25519; p=" + PUBLIC
    assert verified(raw, record)
    for old, new in ((b"regression", b"improvement"), (b"dana@dev.example", b"evil@dev.example")):
        assert not verified(raw.replace(old, new, 1), record)
    listed = raw.replace(b"DKIM-Signature", b"List-Id: <l.example>\r\nX-Been-There: yes\r\nDKIM-Signature", 1)
    assert verified(listed, record)  # what a list adds does no harm
    assert raw.endswith(bytes(OutgoingMail.objects.get().raw))


def test_rsa(world: World, tmp_path: Path) -> None:
    need("openssl")
    key = tmp_path / "key.pem"
    subprocess.run(["openssl", "genrsa", "-traditional", "-out", key, "2048"], check=True, capture_output=True)
    public_key = subprocess.run(
        ["openssl", "rsa", "-in", key, "-pubout", "-outform", "DER"], check=True, capture_output=True
    )
    raw = sent(world, Signing(DkimKey("bot.example.org", "s1", key.read_bytes())))
    assert b"a=rsa-sha256" in raw
    assert verified(raw, b"v=DKIM1; k=rsa; p=" + base64.b64encode(public_key.stdout))


def test_patatt_inside_of_dkim(world: World, tmp_path: Path) -> None:
    signing = Signing(DkimKey("bot.example.org", "s1", SEED), PatattKey("perfbot@bot.example.org", "", SEED.decode()))
    raw = sent(world, signing)
    assert verified(raw, b"v=DKIM1; k=ed25519; p=" + PUBLIC)
    keyring = tmp_path / "ed25519" / "bot.example.org" / "perfbot" / "default"
    keyring.parent.mkdir(parents=True)
    keyring.write_bytes(PUBLIC)
    ((result, identity, *_),) = patatt.validate_message(raw, [str(tmp_path)])
    assert (result, identity) == (patatt.RES_VALID, "perfbot@bot.example.org")


def test_a_key_that_is_none_is_said_at_the_start(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("no key")
    settings.PERFWORK_DKIM_KEY = str(tmp_path / "key")
    with pytest.raises(ImproperlyConfigured, match="PERFWORK_DKIM_KEY or PERFWORK_PATATT_KEY: could not be signed"):
        config.send_config(policy=Policy())
    settings.PERFWORK_DKIM_KEY = str(tmp_path / "none")
    with pytest.raises(ImproperlyConfigured, match=r"PERFWORK_DKIM_KEY: .*none can't be read: No such file"):
        config.send_config(policy=Policy())
    settings.PERFWORK_DKIM_KEY = ""
    (tmp_path / "key").write_bytes(SEED)
    settings.PERFWORK_PATATT_KEY = str(tmp_path / "key")
    assert config.send_config(policy=Policy()).signing


def test_a_mail_that_can_not_be_signed_does_not_leave(world: World) -> None:
    with pytest.raises(Unsigned):
        Signing(DkimKey("bot.example.org", "s1", b"no key")).sign(b"From: a@b\r\n\r\n")
    world.ingest(world.result("b" * 40, "mm: a"))
    compose_due(world.settings, world.now, approve_first=False)
    mood = Moody()
    with mail_server(mood) as server:
        send(server, signing=Signing(DkimKey("bot.example.org", "s1", b"no key")))
    assert not mood.taken
    assert "could not be signed" in OutgoingMail.objects.get(state="failed").reason
