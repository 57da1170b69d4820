"""SMTP (RFC 5321): one connection for many mails, with an outcome for each."""

from __future__ import annotations

import re
import select
import smtplib
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass

from bot.outbox.transports.port import Envelope, SendOutcome, SendStatus, text_of

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

    def send(self, envelope: Envelope, confirm: Callable[[], bool]) -> SendOutcome:
        """See `port.Transport`. Retries once on a reused connection, which may have timed out."""
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
        except (
            OSError,
            smtplib.SMTPException,
            UnicodeError,
        ) as error:  # caused by the server or a setting, not by the mail
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
        if not all(each.isascii() for each in (envelope.sender, *envelope.recipients)) and smtp.has_extn("smtputf8"):
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
                (deferred if 400 <= code < 500 else refused)[recipient] = f"{code} {text_of(reply)}"
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
    """Return the outcome for a response code: 4yz is temporary, 5yz permanent (RFC 5321 section 4.2.1)."""
    return SendOutcome(SendStatus.LATER if 400 <= code < 500 else SendStatus.REFUSED, f"{code} {text_of(reply)}")
