"""Where a request comes from, and the network that its tries are counted by."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str:
    """Return the client's network address; behind our proxy, the last one in X-Forwarded-For."""
    if settings.SECURE_PROXY_SSL_HEADER:
        return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))


def network_of(address: str) -> str:
    """Return an IPv4 address as it is, of an IPv6 address the /64 that one subscriber has (RFC 6177)."""
    try:
        found = ip_address(address.strip())
    except ValueError:
        return address[:60].replace("\0", "")
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped) if found.ipv4_mapped else f"{IPv6Address(int(found) >> 64 << 64)}/64"
    return str(found)
