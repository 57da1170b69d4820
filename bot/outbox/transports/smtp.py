"""SMTP (RFC 5321): one connection for many mails, and an outcome that says what is known of each."""

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
_CLOSING = 421  # RFC 5321 section 3.8: the server ends the connection, whatever was asked


@dataclass(frozen=True, slots=True)
class Server:
    """Where mail goes. `timeout`: seconds for one answer; `patience`: seconds for one mail up to its last dot;
    `ehlo`: the name that we give, "" for the machine's own.
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
    """A connection to the server, opened at the first mail and again after it broke."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._smtp: smtplib.SMTP | None = None
        self._unused = True  # nothing was sent over this connection

    def close(self) -> None:
        """Say goodbye; a server that is gone does not matter any more."""
        smtp, self._smtp = self._smtp, None
        if smtp:
            try:
                smtp.quit()
            except (OSError, smtplib.SMTPException):
                smtp.close()

    def send(self, letter: Envelope, last_word: Callable[[], bool]) -> SendOutcome:
        """See `port.Transport`. A connection that was used before may have been closed for its idleness: once more."""
        until = time.monotonic() + self.server.patience
        used = self._smtp is not None and not self._unused
        outcome = self._attempt(letter, last_word, until)
        if used and outcome.fate is SendStatus.NO_SERVER:
            outcome = self._attempt(letter, last_word, until)
        return outcome

    def _attempt(self, letter: Envelope, last_word: Callable[[], bool], until: float) -> SendOutcome:
        try:
            smtp = self._open()
            code, words = smtp.mail(letter.sender, self._options(smtp, letter))
        except (
            OSError,
            smtplib.SMTPException,
            UnicodeError,
        ) as error:  # the server's or a setting's trouble, no mail's
            self._drop()
            return SendOutcome(SendStatus.NO_SERVER, f"{self.server}: {_words_of(error)}")
        if code == _CLOSING:
            self._drop()
            return SendOutcome(SendStatus.NO_SERVER, f"{self.server}: {code} {text_of(words)}")
        try:
            if code != 250:
                smtp.rset()
                return _by_code(code, words)
            return self._rest(smtp, letter, last_word, until)
        except smtplib.SMTPResponseException as error:
            self._drop()
            return _by_code(error.smtp_code, error.smtp_error)
        except (OSError, smtplib.SMTPException, UnicodeError) as error:  # gone before the last dot: nothing was taken
            self._drop()
            return SendOutcome(SendStatus.LATER, f"{self.server}: {_words_of(error)}")

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
            # The last dot goes by itself: it must not wait for the other side's word on the bytes before (40 ms).
            smtp.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            smtp.ehlo_or_helo_if_needed()
            if server.starttls:
                smtp.starttls(context=context)
                smtp.ehlo()
            if server.user:
                smtp.login(server.user, server.password)
        return self._smtp

    def _options(self, smtp: smtplib.SMTP, letter: Envelope) -> list[str]:
        """What MAIL must announce: eight-bit text (RFC 6152); SMTPUTF8 only where an address needs it (RFC 6531)."""
        options = ["BODY=8BITMIME"] if smtp.has_extn("8bitmime") and not letter.raw.isascii() else []
        if not all(each.isascii() for each in (letter.sender, *letter.recipients)) and smtp.has_extn("smtputf8"):
            options.append("SMTPUTF8")
            smtp.command_encoding = "utf-8"
        else:
            smtp.command_encoding = "ascii"
        return options

    def _rest(self, smtp: smtplib.SMTP, letter: Envelope, last_word: Callable[[], bool], until: float) -> SendOutcome:
        """From the recipients to the last dot."""
        refused: dict[str, str] = {}
        deferred: dict[str, str] = {}
        for recipient in letter.recipients:
            if time.monotonic() > until:
                raise TimeoutError(f"not done with the recipients after {self.server.patience:.0f} s")
            if not recipient.isascii() and smtp.command_encoding == "ascii":
                refused[recipient] = "the server offers no SMTPUTF8, which this address needs"
                continue
            code, words = smtp.rcpt(recipient)
            if code == _CLOSING:
                raise smtplib.SMTPServerDisconnected(f"{code} {text_of(words)}")
            if code not in (250, 251):
                (deferred if 400 <= code < 500 else refused)[recipient] = f"{code} {text_of(words)}"
        if len(refused) + len(deferred) == len(letter.recipients):
            smtp.rset()
            fate = SendStatus.LATER if deferred else SendStatus.REFUSED
            said = "; ".join(dict.fromkeys((deferred or refused).values())) or "no recipients"
            return SendOutcome(fate, said[:500], refused, deferred)
        code, words = smtp.docmd("DATA")
        if code != 354:
            raise smtplib.SMTPDataError(code, words)
        raw = letter.raw if letter.raw.endswith(b"\r\n") else letter.raw + b"\r\n"
        smtp.send(_DOTS.sub(b"..", raw))
        if not last_word():
            smtp.close()  # without the dot, the server forgets it (RFC 5321 section 4.1.1.4)
            self._smtp = None
            return SendOutcome(SendStatus.NOT_NOW)
        return self._dot(smtp, refused, deferred)

    def _dot(self, smtp: smtplib.SMTP, refused: dict[str, str], deferred: dict[str, str]) -> SendOutcome:
        """The step after which the mail is the server's, if it says so."""
        if _has_spoken(smtp):
            raise smtplib.SMTPServerDisconnected("it hung up before the last dot")
        try:
            smtp.send(b".\r\n")
            code, words = smtp.getreply()
        except (OSError, smtplib.SMTPException) as error:
            smtp.close()
            self._smtp = None
            return SendOutcome(SendStatus.DOUBT, f"the connection broke after the last dot: {_words_of(error)}")
        self._unused = False
        if code == 250:
            return SendOutcome(SendStatus.SENT, text_of(words), refused, deferred)
        if code == _CLOSING:
            self._drop()
        if not 400 <= code < 600:  # no answer to a mail that any standard knows
            self._drop()
            return SendOutcome(SendStatus.DOUBT, f"the server answered the last dot with: {code} {text_of(words)}")
        return _by_code(code, words)

    def _drop(self) -> None:
        """Hang up without a word that the other side might not answer for a minute."""
        smtp, self._smtp = self._smtp, None
        if smtp:
            smtp.close()


def _has_spoken(smtp: smtplib.SMTP) -> bool:
    """Whether the server said something, or hung up, where it is not its turn: then it takes no dot any more."""
    if smtp.sock is None or isinstance(smtp.sock, ssl.SSLSocket):  # TLS has words of its own
        return False
    asked = select.poll()
    asked.register(smtp.sock, select.POLLIN)
    return bool(asked.poll(0))


def _words_of(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {text_of(error.smtp_error)}"
    return text_of(str(error)) or type(error).__name__


def _by_code(code: int, words: bytes | str) -> SendOutcome:
    """RFC 5321 section 4.2.1: 4yz may succeed later, 5yz never will."""
    return SendOutcome(SendStatus.LATER if 400 <= code < 500 else SendStatus.REFUSED, f"{code} {text_of(words)}")
