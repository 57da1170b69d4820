"""Send a request to an address that a person gave: never into the own network, and never for long.

The name is resolved once, its addresses are checked, and the connection goes to what was checked: a name server that
answers differently the second time gains nothing. Redirects are not followed, answers are not read.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress

from tracker.domain.text.web_target import Target

TIMEOUT = 10.0  # seconds, for connecting and for the answer each
_TUNNELS = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))  # RFC 6052, RFC 8215


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the internet, and to no network behind us."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped:
            return is_public(str(ip.ipv4_mapped))
        if ip.sixtofour or ip.teredo or any(ip in network for network in _TUNNELS):
            return False  # it leads to an IPv4 address that is not looked at
    return ip.is_global and not ip.is_multicast


def resolve(target: Target, *, private: bool) -> str:
    """Return the IP address to connect to. Raises OSError if there is none, or one is not public.

    `private`: whether loopback and the lab's own network may be sent to.
    """
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    addresses = [str(each[4][0]) for each in found]
    if not private and not all(map(is_public, addresses)):
        raise OSError(f"{target.host} is not a public address (PERFWORK_WEBHOOKS_PRIVATE=on allows it)")
    return addresses[0]


def post(target: Target, body: bytes, headers: Mapping[str, str], *, private: bool, timeout: float = TIMEOUT) -> int:
    """Post a JSON body, and return the HTTP status. Raises OSError if there was no answer within `timeout` seconds."""
    raw = socket.create_connection((resolve(target, private=private), target.port), timeout)
    clock = threading.Timer(timeout, _cut, [raw])  # timeouts of sockets begin anew with every byte
    clock.daemon = True
    try:
        clock.start()
        stream = raw
        if target.is_tls:
            # A copy, since the Timer cuts the connection by its own handle.
            stream = ssl.create_default_context().wrap_socket(raw.dup(), server_hostname=target.host)
            stream.settimeout(timeout)
        kind = http.client.HTTPSConnection if target.is_tls else http.client.HTTPConnection
        connection = kind(target.host, target.port)
        connection.sock = stream
        try:
            own = {"Content-Type": "application/json", "User-Agent": "Perfwork", "Connection": "close"}
            connection.request("POST", target.path, body, {**own, **headers})
            return connection.getresponse().status
        finally:
            connection.close()
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(f"not an HTTP answer ({type(error).__name__})") from None
    finally:
        clock.cancel()
        raw.close()


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
