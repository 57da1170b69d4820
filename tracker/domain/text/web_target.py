"""A web address that a person gave us to post to, taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from tracker.domain.errors import InvalidInput

_LONGEST = 1000  # characters
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Target:
    """An address to post to."""

    host: str
    port: int
    path: str
    is_tls: bool


def parse_target(url: str) -> Target:
    """Return the target of a URL. Raises InvalidInput, which says what is wrong with it."""
    if len(url) > _LONGEST or not url.isascii() or any(each <= " " or each == "\x7f" for each in url):
        raise InvalidInput("url: expected an address of up to 1000 printable ASCII characters")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        raise InvalidInput("url: expected an address such as https://ci.example.org/hook") from None
    if parts.scheme not in _PORTS or not host or not port:
        raise InvalidInput("url: expected an address such as https://ci.example.org/hook")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise InvalidInput("url: expected no user name, password or fragment; requests are signed instead")
    return Target(host, port, _path_of(parts), parts.scheme == "https")


def _path_of(parts: SplitResult) -> str:
    return f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
