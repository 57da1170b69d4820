"""SMTP: one connection for many mails, and an outcome that says what is known of each."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType

import environ


class Fate(StrEnum):
    """What is known of a mail after an attempt."""

    SENT = "sent"
    LATER = "later"
    REFUSED = "refused"
    DOUBT = "doubt"
    NO_SERVER = "no_server"
    LOST_LEASE = "lost_lease"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The fate, and the server's words."""

    fate: Fate
    words: str = ""


@dataclass(frozen=True, slots=True)
class Server:
    """Where mail goes: from `smtp://`, `smtp+tls://` (STARTTLS) or `smtp+ssl://user:password@host:port`."""

    host: str
    port: int
    user: str = ""
    password: str = ""
    starttls: bool = False
    tls: bool = False
    timeout: float = 60.0

    @classmethod
    def from_url(cls, url: str) -> Server:
        """ValueError says what is wrong with the address."""
        if not url:
            raise ValueError("EMAIL_URL is not set: mail stays in the outbox")
        if not url.startswith(("smtp://", "smtp+tls://", "smtp+ssl://")):
            raise ValueError("EMAIL_URL: expected smtp://, smtp+tls:// or smtp+ssl://")
        told = environ.Env.email_url_config(url)
        return cls(
            host=told["EMAIL_HOST"] or "localhost",
            port=int(told["EMAIL_PORT"] or 25),
            user=told["EMAIL_HOST_USER"] or "",
            password=told["EMAIL_HOST_PASSWORD"] or "",
            starttls=bool(told.get("EMAIL_USE_TLS")),
            tls=bool(told.get("EMAIL_USE_SSL")),
        )


class Connection:
    """A connection to the server, opened at the first mail and again after it broke."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._smtp: smtplib.SMTP | None = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Say goodbye; a server that is gone does not matter any more."""
        smtp, self._smtp = self._smtp, None
        if smtp:
            try:
                smtp.quit()
            except (OSError, smtplib.SMTPException):
                smtp.close()

    def send(self, sender: str, recipients: Sequence[str], raw: bytes, before_data: Callable[[], bool]) -> Outcome:
        """Hand over one mail. `before_data` is called when the server is ready for its bytes, and may forbid them."""
        try:
            smtp = self._open()
        except (OSError, smtplib.SMTPException) as error:  # the server's trouble or a wrong setting, and no mail's
            self.close()
            return Outcome(Fate.NO_SERVER, f"{self.server.host}:{self.server.port}: {error}")
        try:
            turned_down = self._address(smtp, sender, recipients)
            if turned_down.fate is not Fate.SENT:
                smtp.rset()
                return turned_down
        except smtplib.SMTPResponseException as error:
            self.close()
            return _by_code(error.smtp_code, error.smtp_error)
        except (OSError, smtplib.SMTPException) as error:  # not reached, or gone: nothing left us yet
            self.close()
            return Outcome(Fate.LATER, f"{self.server.host}:{self.server.port}: {error}")
        if not before_data():
            self.close()
            return Outcome(Fate.LOST_LEASE)
        outcome = self._data(smtp, raw)
        if outcome.fate is Fate.SENT:  # what matters then is who will not get it
            return turned_down
        return outcome

    def _open(self) -> smtplib.SMTP:
        if self._smtp is None:
            server = self.server
            context = ssl.create_default_context() if server.tls or server.starttls else None
            if server.tls:
                smtp: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=server.timeout, context=context)
            else:
                smtp = smtplib.SMTP(server.host, server.port, timeout=server.timeout)
            self._smtp = smtp
            smtp.ehlo_or_helo_if_needed()
            if server.starttls:
                smtp.starttls(context=context)
                smtp.ehlo()
            if server.user:
                smtp.login(server.user, server.password)
        return self._smtp

    def _address(self, smtp: smtplib.SMTP, sender: str, recipients: Sequence[str]) -> Outcome:
        """MAIL and RCPT; SENT when at least one recipient was taken, with the words against the others."""
        options = ["BODY=8BITMIME"] if smtp.has_extn("8bitmime") else []
        code, words = smtp.mail(sender, options)
        if code != 250:
            return _by_code(code, words)
        answers = {recipient: smtp.rcpt(recipient) for recipient in recipients}
        refused = {each: answer for each, answer in answers.items() if answer[0] not in (250, 251)}
        if len(refused) == len(answers):
            return _by_code(*next(iter(refused.values()))) if refused else Outcome(Fate.REFUSED, "no recipients")
        return Outcome(Fate.SENT, "; ".join(f"{each}: {code} {_text(why)}" for each, (code, why) in refused.items()))

    def _data(self, smtp: smtplib.SMTP, raw: bytes) -> Outcome:
        try:
            code, words = smtp.data(raw)
        except smtplib.SMTPDataError as error:  # the server's word against DATA itself: not taken
            self.close()
            return _by_code(error.smtp_code, error.smtp_error)
        except (OSError, smtplib.SMTPException) as error:
            smtp.close()
            self._smtp = None
            return Outcome(Fate.DOUBT, f"the connection broke after the mail began to leave: {error}")
        return Outcome(Fate.SENT, _text(words)) if code == 250 else _by_code(code, words)


def _by_code(code: int, words: bytes | str) -> Outcome:
    """RFC 5321 section 4.2.1: 4yz may succeed later, 5yz never will."""
    return Outcome(Fate.LATER if 400 <= code < 500 else Fate.REFUSED, f"{code} {_text(words)}")


def _text(words: bytes | str) -> str:
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    return " ".join(text.split())[:500]
