"""Transports: SMTP, a local sendmail program, which one EMAIL_URL names; and signing.

A transport takes an envelope and returns an outcome, which says whether anybody may have the mail. It calls `confirm`
right before the step that commits the mail, the last dot of SMTP or the start of the program: an error before that
step leaves no doubt, an error after it does.

SMTP (RFC 5321) uses one connection for many mails, with an outcome for each. `sendmail:///usr/sbin/sendmail` runs the
program that Postfix, Exim, msmtp and others install.

Signing means DKIM (RFC 6376) for our domain, and a developer signature (patatt). Mail is signed when it is sent, so
that mail which waited gets a signature of the current key. IMAP stands below: copies of sent mail are put there, and
archives may be read from there.
"""

import imaplib
import os
import re
import select
import shutil
import signal
import smtplib
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import IO, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

import environ
import patatt

from tracker.domain.text import THIS_MACHINE

# --- Interface ---


class SendStatus(StrEnum):
    """What is known of a mail after an attempt."""

    SENT = "sent"
    LATER = "later"  # nobody has it; this mail is tried again, later each time, and the round goes on
    REFUSED = "refused"  # nobody has it, and nobody will: it fails for good
    IN_DOUBT = "doubt"  # someone may have it: it is looked for in the archives, and never sent again by itself
    NO_SERVER = "no_server"  # nobody has it, and no other mail would be taken either: the round ends
    NOT_NOW = "not_now"  # `confirm` said no


@dataclass(frozen=True, slots=True)
class SendOutcome:
    """The status, and the server's response. For a sent mail: the recipients that were rejected (`refused`) and those
    to retry (`deferred`), each with the response; and whose turn is still to come (`waiting`), each with the reason.
    """

    status: SendStatus
    reply: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)
    deferred: Mapping[str, str] = field(default_factory=dict)
    waiting: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Envelope:
    """An envelope and its content: return path, recipients, and the bytes with CRLF line ends."""

    message_id: str
    sender: str
    recipients: Sequence[str]
    raw: bytes


class Transport(Protocol):
    """Sends one envelope after the other."""

    def send(self, envelope: Envelope, confirm: Callable[[], bool]) -> SendOutcome:
        """Send one envelope. `confirm` is called right before the step that commits it; if it returns False, nothing is
        sent (NOT_NOW). An error before that step leaves no doubt; an error after it does.
        """

    def close(self) -> None:
        """Close the connection. May be called twice."""


def text_of(reply: bytes | str) -> str:
    """Return a server's response as one line of at most 500 characters."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    return " ".join(text.replace("\0", "").split())[:500]


# --- Signing ---

# Headers that lists change or replace (List-*, Sender) are not signed.
_SIGNED = (
    "from", "reply-to", "to", "cc", "subject", "date", "message-id", "in-reply-to", "references",
    "mime-version", "content-type", "content-transfer-encoding", "auto-submitted", "x-perfwork-report",
)  # fmt: skip


class Unsigned(Exception):  # noqa: N818
    """A mail could not be signed; the message says why."""


@dataclass(frozen=True, slots=True)
class DkimKey:
    """A private key: PEM (RSA) or a base64 Ed25519 seed, as written by `dknewkey` of dkimpy."""

    domain: str
    selector: str
    private: bytes

    def sign(self, raw: bytes) -> bytes:
        import dkim  # with its resolver it takes 70 ms to import, and few commands sign

        present = {line.partition(b":")[0].strip().lower() for line in raw.partition(b"\r\n\r\n")[0].split(b"\r\n")}
        headers = [name.encode() for name in _SIGNED if name.encode() in present]
        algorithm = b"rsa-sha256" if self.private.lstrip().startswith(b"-----BEGIN") else b"ed25519-sha256"
        signature = dkim.sign(
            raw,
            self.selector.encode(),
            self.domain.encode(),
            self.private.strip(),
            canonicalize=(b"relaxed", b"relaxed"),
            signature_algorithm=algorithm,
            include_headers=headers,
        )
        return bytes(signature) + raw


@dataclass(frozen=True, slots=True)
class PatattKey:
    """A private key as written by `patatt genkey`: a base64 Ed25519 seed."""

    identity: str
    selector: str
    private: str

    def sign(self, raw: bytes) -> bytes:
        message = patatt.PatattMessage(raw)
        message.sign("ed25519", self.private, identity=self.identity, selector=self.selector or None)
        return bytes(message.as_bytes())


@dataclass(frozen=True, slots=True)
class Signing:
    """The configured keys. The developer signature is made first, since DKIM is normally added by the mail server."""

    dkim: DkimKey | None = None
    patatt: PatattKey | None = None

    def __bool__(self) -> bool:
        return bool(self.dkim or self.patatt)

    def sign(self, raw: bytes) -> bytes:
        """Return the mail with its signatures on top; raise Unsigned if a key does not work."""
        try:
            for key in (self.patatt, self.dkim):
                raw = key.sign(raw) if key else raw
        except Exception as error:  # the libraries raise all sorts of errors for an invalid key
            raise Unsigned(f"could not be signed: {type(error).__name__}: {error}") from error
        return raw


# --- SMTP ---

_DOTS = re.compile(rb"^\.", re.M)  # RFC 5321 section 4.5.2
# RFC 4954 section 6 and RFC 3207 section 4: TLS or a login is missing, or is refused. No mail would be taken.
_SETTINGS = frozenset({530, 534, 535, 538})
_CLOSING = 421  # RFC 5321 section 3.8: the server ends the connection, whatever was asked


@dataclass(frozen=True, slots=True)
class Server:
    """The SMTP server. `timeout`: seconds for one response; `patience`: seconds for one mail up to its last dot;
    `ehlo`: the name for EHLO, "" for the machine's own.
    """

    host: str
    port: int
    user: str = ""
    password: str = ""
    starttls: bool = False
    tls: bool = False
    timeout: float = 60.0
    patience: float = 300.0
    ehlo: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class SmtpTransport:
    """A connection to the server, opened for the first mail and again after it broke."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._smtp: smtplib.SMTP | None = None
        self._unused = True  # nothing was sent over this connection yet

    def close(self) -> None:
        """Close the connection; errors of a dead connection are ignored."""
        smtp, self._smtp = self._smtp, None
        if smtp:
            try:
                smtp.quit()
            except (OSError, smtplib.SMTPException):
                smtp.close()

    def trouble(self) -> str:
        """Connect and sign in as for a mail; return what is wrong, "" if nothing is."""
        try:
            self._open()
        except (OSError, smtplib.SMTPException, UnicodeError) as error:
            self._drop()
            return f"{self.server}: {_error_text(error)}"
        return ""

    def send(self, envelope: Envelope, confirm: Callable[[], bool]) -> SendOutcome:
        """See `Transport`. Retries once on a reused connection, which may have timed out."""
        until = time.monotonic() + self.server.patience
        used = self._smtp is not None and not self._unused
        outcome = self._attempt(envelope, confirm, until)
        if used and outcome.status is SendStatus.NO_SERVER:
            outcome = self._attempt(envelope, confirm, until)
        return outcome

    def _attempt(self, envelope: Envelope, confirm: Callable[[], bool], until: float) -> SendOutcome:
        try:
            smtp = self._open()
            code, reply = smtp.mail(envelope.sender, self._options(smtp, envelope))
        except (OSError, smtplib.SMTPException, UnicodeError) as error:  # the server or a setting, not the mail
            self._drop()
            return SendOutcome(SendStatus.NO_SERVER, f"{self.server}: {_error_text(error)}")
        if code == _CLOSING or code in _SETTINGS:
            self._drop()
            return SendOutcome(SendStatus.NO_SERVER, f"{self.server}: {code} {text_of(reply)}")
        try:
            if code != 250:
                smtp.rset()
                return _by_code(code, reply)
            return self._recipients_and_data(smtp, envelope, confirm, until)
        except smtplib.SMTPResponseException as error:
            self._drop()
            return _by_code(error.smtp_code, error.smtp_error)
        except (OSError, smtplib.SMTPException, UnicodeError) as error:  # lost before the last dot: not accepted
            self._drop()
            return SendOutcome(SendStatus.LATER, f"{self.server}: {_error_text(error)}")

    def _open(self) -> smtplib.SMTP:
        if self._smtp is None:
            server = self.server
            context = ssl.create_default_context() if server.tls or server.starttls else None
            name = server.ehlo or None
            if server.tls:
                smtp: smtplib.SMTP = smtplib.SMTP_SSL(
                    server.host, server.port, name, timeout=server.timeout, context=context
                )
            else:
                smtp = smtplib.SMTP(server.host, server.port, name, timeout=server.timeout)
            self._smtp, self._unused = smtp, True
            assert smtp.sock
            # The last dot is sent separately: it must not wait for the ACK of the bytes before (40 ms).
            smtp.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            smtp.ehlo_or_helo_if_needed()
            if server.starttls:
                smtp.starttls(context=context)
                smtp.ehlo()
            if server.user:
                smtp.login(server.user, server.password)
        return self._smtp

    def _options(self, smtp: smtplib.SMTP, envelope: Envelope) -> list[str]:
        """Return the MAIL parameters: 8BITMIME (RFC 6152), and SMTPUTF8 only if an address needs it (RFC 6531)."""
        options = ["BODY=8BITMIME"] if smtp.has_extn("8bitmime") and not envelope.raw.isascii() else []
        if not all(address.isascii() for address in (envelope.sender, *envelope.recipients)) and smtp.has_extn(
            "smtputf8"
        ):
            options.append("SMTPUTF8")
            smtp.command_encoding = "utf-8"
        else:
            smtp.command_encoding = "ascii"
        return options

    def _recipients_and_data(
        self, smtp: smtplib.SMTP, envelope: Envelope, confirm: Callable[[], bool], until: float
    ) -> SendOutcome:
        """From the recipients to the last dot."""
        refused: dict[str, str] = {}
        deferred: dict[str, str] = {}
        for recipient in envelope.recipients:
            if time.monotonic() > until:
                raise TimeoutError(f"recipients not all processed after {self.server.patience:.0f} s")
            if not recipient.isascii() and smtp.command_encoding == "ascii":
                refused[recipient] = "the address needs SMTPUTF8, which the server does not offer"
                continue
            code, reply = smtp.rcpt(recipient)
            if code == _CLOSING:
                raise smtplib.SMTPServerDisconnected(f"{code} {text_of(reply)}")
            if code not in (250, 251):
                (refused if 500 <= code < 600 else deferred)[recipient] = f"{code} {text_of(reply)}"
        if len(refused) + len(deferred) == len(envelope.recipients):
            smtp.rset()
            status = SendStatus.LATER if deferred else SendStatus.REFUSED
            responses = "; ".join(dict.fromkeys((deferred or refused).values())) or "no recipients"
            return SendOutcome(status, responses[:500], refused, deferred)
        code, reply = smtp.docmd("DATA")
        if code != 354:
            raise smtplib.SMTPDataError(code, reply)
        raw = envelope.raw if envelope.raw.endswith(b"\r\n") else envelope.raw + b"\r\n"
        smtp.send(_DOTS.sub(b"..", raw))
        if not confirm():
            smtp.close()  # without the dot, the server discards it (RFC 5321 section 4.1.1.4)
            self._smtp = None
            return SendOutcome(SendStatus.NOT_NOW)
        return self._dot(smtp, refused, deferred)

    def _dot(self, smtp: smtplib.SMTP, refused: dict[str, str], deferred: dict[str, str]) -> SendOutcome:
        """Send the last dot; after it the server may have accepted the mail."""
        if _has_spoken(smtp):
            raise smtplib.SMTPServerDisconnected("disconnected before the last dot")
        try:
            smtp.send(b".\r\n")
            code, reply = smtp.getreply()
        except (OSError, smtplib.SMTPException) as error:
            smtp.close()
            self._smtp = None
            return SendOutcome(SendStatus.IN_DOUBT, f"the connection broke after the last dot: {_error_text(error)}")
        self._unused = False
        if code == 250:
            return SendOutcome(SendStatus.SENT, text_of(reply), refused, deferred)
        if code == _CLOSING:
            self._drop()
        if not 400 <= code < 600:  # not a valid response here
            self._drop()
            return SendOutcome(SendStatus.IN_DOUBT, f"the server answered the last dot with: {code} {text_of(reply)}")
        return _by_code(code, reply)

    def _drop(self) -> None:
        """Close the socket without QUIT, to which the server might not respond for a minute."""
        smtp, self._smtp = self._smtp, None
        if smtp:
            smtp.close()


def _has_spoken(smtp: smtplib.SMTP) -> bool:
    """Return whether the server sent something or disconnected out of turn; then it will not accept the dot."""
    if smtp.sock is None or isinstance(smtp.sock, ssl.SSLSocket):  # TLS has its own records
        return False
    poll = select.poll()
    poll.register(smtp.sock, select.POLLIN)
    return bool(poll.poll(0))


def _error_text(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {text_of(error.smtp_error)}"
    return text_of(str(error)) or type(error).__name__


def _by_code(code: int, reply: bytes | str) -> SendOutcome:
    """Return the outcome for a response code: 5yz is permanent (RFC 5321 section 4.2.1), all else temporary: smtplib
    gives -1 for a reply that it can't read.
    """
    return SendOutcome(SendStatus.REFUSED if 500 <= code < 600 else SendStatus.LATER, f"{code} {text_of(reply)}")


# --- A local sendmail program ---

_SENDMAIL_SETTINGS = frozenset({os.EX_NOPERM, os.EX_CONFIG})  # the program is set wrongly: it would take no mail
_UNSURE = frozenset({os.EX_TEMPFAIL, os.EX_OSERR, os.EX_IOERR})
# Trouble of the program or the machine, which says nothing of the mail: msmtp ends with EX_NOHOST without DNS.
_LATER = frozenset({os.EX_NOHOST, os.EX_UNAVAILABLE, os.EX_SOFTWARE, os.EX_OSFILE, os.EX_CANTCREAT, os.EX_PROTOCOL})


@dataclass(frozen=True, slots=True)
class SendmailTransport:
    """`timeout`: seconds that the program may take per mail."""

    program: str
    timeout: float = 60.0

    def close(self) -> None:
        """Nothing is open."""

    def trouble(self) -> str:
        """Return what is wrong with the program, "" if nothing is."""
        return "" if shutil.which(self.program) else f"{self.program}: no such program"

    def send(self, envelope: Envelope, confirm: Callable[[], bool]) -> SendOutcome:
        """See `Transport`. The last step is to start the program."""
        if trouble := self.trouble():
            return SendOutcome(SendStatus.NO_SERVER, trouble)
        with tempfile.TemporaryFile() as content:  # so that it reads the whole mail even if we die
            content.write(envelope.raw.replace(b"\r\n", b"\n"))
            content.seek(0)
            return self._run(content, envelope) if confirm() else SendOutcome(SendStatus.NOT_NOW)

    def _run(self, content: IO[bytes], envelope: Envelope) -> SendOutcome:
        command = [self.program, "-oi", "-f", envelope.sender, "--", *envelope.recipients]
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    command, stdin=content, stdout=subprocess.DEVNULL, stderr=output, start_new_session=True
                )
            except OSError as error:
                return SendOutcome(SendStatus.NO_SERVER, f"{self.program}: {error.strerror}")
            try:
                process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return SendOutcome(SendStatus.IN_DOUBT, f"{self.program} did not finish within {self.timeout:.0f} s")
            output.seek(0)
            reply = text_of(output.read(4000))
        # sysexits.h; sendmail(8) also returns 75 for queued mail, so that 75 leaves doubt.
        code = process.returncode
        if code == 0:
            return SendOutcome(SendStatus.SENT, reply)
        if code < 0 or code in _UNSURE:
            status = SendStatus.IN_DOUBT
        elif code in _SENDMAIL_SETTINGS:
            status = SendStatus.NO_SERVER
        else:
            status = SendStatus.LATER if code in _LATER else SendStatus.REFUSED
        return SendOutcome(status, f"{self.program} exited with {code}: {reply}")


# --- EMAIL_URL ---

_SMTP = ("smtp", "smtp+tls", "smtp+ssl")
EXPECTED = "smtp://, smtp+tls://, smtp+ssl:// or sendmail://"


def transport_of(
    url: str, *, ehlo: str = "", timeout: float = 60.0, patience: float = 300.0
) -> SmtpTransport | SendmailTransport:
    """Return the transport for a URL; nothing is opened yet. ValueError says what is wrong, without the password.

    `ehlo`, `timeout`, `patience`: see `Server`.
    """
    if not url:
        raise ValueError("EMAIL_URL is not set: mail stays in the outbox")
    scheme = url.partition("://")[0]
    try:
        parts = urlsplit(url)
    except ValueError:  # its message has the password
        raise ValueError("EMAIL_URL: not a valid URL; write special characters of a password as %XX") from None
    if scheme in _SMTP and not parts.netloc:
        raise ValueError(f"EMAIL_URL: expected a server, as smtp://mail.example.org:587; found {scheme}:// alone")
    if scheme in _SMTP:
        return SmtpTransport(_server(url, ehlo, timeout, patience))
    if scheme == "sendmail":
        path = "" if parts.netloc else unquote(parts.path)  # a host is a mistake
        return SendmailTransport(path or "/usr/sbin/sendmail", timeout)
    raise ValueError(f"EMAIL_URL: expected {EXPECTED}")


def _server(url: str, ehlo: str, timeout: float, patience: float) -> Server:
    try:
        values = environ.Env.email_url_config(url)
        server = Server(
            host=values["EMAIL_HOST"] or "localhost",
            port=int(values["EMAIL_PORT"] or 25),
            user=values["EMAIL_HOST_USER"] or "",
            password=values["EMAIL_HOST_PASSWORD"] or "",
            starttls=bool(values.get("EMAIL_USE_TLS")),
            tls=bool(values.get("EMAIL_USE_SSL")),
            timeout=timeout,
            patience=patience,
            ehlo=ehlo,
        )
    except (ValueError, KeyError, TypeError):
        raise ValueError("EMAIL_URL: expected smtp://user:password@host:port") from None
    encrypted = server.tls or server.starttls
    if server.user and not encrypted and server.host not in THIS_MACHINE:
        raise ValueError("EMAIL_URL: a password needs encryption: use smtp+tls:// or smtp+ssl://")
    return server


# --- IMAP (RFC 3501), for copies of what was sent, and for archives ---


def imap_connection(url: SplitResult, timeout: float) -> imaplib.IMAP4:
    """Return a connection that is logged in. imaplib alone would send the password to whoever answers: with imaps the
    server's certificate must be valid for its name. `timeout`: seconds without an answer.
    """
    host = url.hostname or "localhost"
    if url.scheme == "imaps":
        context = ssl.create_default_context()
        server: imaplib.IMAP4 = imaplib.IMAP4_SSL(host, url.port or 993, ssl_context=context, timeout=timeout)
    else:
        server = imaplib.IMAP4(host, url.port or 143, timeout=timeout)
    try:
        server.login(unquote(url.username or "anonymous"), unquote(url.password or "anonymous"))
    except BaseException:
        server.shutdown()
        raise
    return server


def imap_quoted(folder: str) -> str:
    """Return a folder's name as a quoted string."""
    return '"' + folder.replace("\\", "\\\\").replace('"', '\\"') + '"'
