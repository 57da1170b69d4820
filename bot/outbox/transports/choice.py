"""Choose the transport from EMAIL_URL."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import environ

from bot.outbox.transports.port import Transport
from bot.outbox.transports.sendmail import SendmailTransport
from bot.outbox.transports.smtp import Server, SmtpTransport

_SMTP = ("smtp", "smtp+tls", "smtp+ssl")
EXPECTED = "smtp://, smtp+tls://, smtp+ssl:// or sendmail://"


def transport_of(url: str, *, ehlo: str = "", timeout: float = 60.0, patience: float = 300.0) -> Transport:
    """Return the transport for a URL; nothing is opened yet. ValueError says what is wrong, without the password.

    `ehlo`, `timeout`, `patience`: see `smtp.Server`.
    """
    if not url:
        raise ValueError("EMAIL_URL is not set: mail stays in the outbox")
    scheme = url.partition("://")[0]
    if scheme in _SMTP:
        return SmtpTransport(_server(url, ehlo, timeout, patience))
    if scheme == "sendmail":
        return SendmailTransport(_path(url) or "/usr/sbin/sendmail", timeout)
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
    if server.user and not encrypted and server.host not in ("localhost", "127.0.0.1", "::1"):
        raise ValueError("EMAIL_URL: a password needs encryption: use smtp+tls:// or smtp+ssl://")
    return server


def _path(url: str) -> str:
    """Return the path of sendmail:///usr/sbin/sendmail; "" if the URL has a host, which is a mistake."""
    parts = urlsplit(url)
    return "" if parts.netloc else unquote(parts.path)
