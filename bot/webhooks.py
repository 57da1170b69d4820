"""Webhooks: new events are queued for other programs' servers, signed, and sent until they arrive.

Each new event is queued once for each webhook, and sent until the receiver has it or three days have passed. An
attempt is counted before it is made, so a worker that dies leaves a repeat at worst, under the same key. A receiver
that answers 410 (Gone) gets no more.

Signatures are those of the Standard Webhooks specification, for which receivers have libraries
(https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).

The address was given by a person, so a request never goes into our own network (unless PERFWORK_WEBHOOKS_PRIVATE
allows it) and never takes long. The name is resolved once, its addresses are checked, and the connection goes to what
was checked: a name server that answers differently the second time gains nothing. Redirects are not followed, and
answers are not read.
"""

import base64
import hashlib
import hmac
import http.client
import ipaddress
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

import orjson
from django.db.models import Exists, F, OuterRef, QuerySet

from tracker.api.shapes import event_json
from tracker.domain.search import parse
from tracker.domain.text import Target, parse_target
from tracker.models import DeliveryState, Event, Webhook, WebhookDelivery
from tracker.pages.report_json import directions, report_json
from tracker.pages.search import matching
from tracker.services import event_log

log = logging.getLogger(__name__)

# --- Signatures ---


def signed_headers(secret: str, key: str, moment: int, body: bytes) -> dict[str, str]:
    """Return the headers of a delivery. `key` is the same at each attempt; `moment`: seconds since 1970, of this one.

    The signature covers all three, so that a receiver can refuse old ones, and repeats.
    """
    secret_bytes = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(secret_bytes, f"{key}.{moment}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": key,
        "webhook-timestamp": str(moment),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


# --- Sending ---

TIMEOUT = 10.0  # seconds, for connecting and for the answer each
# Of IPv6 only what is given to networks counts (RFC 4291 section 2.4). The others are of IANA's registries of
# special-purpose addresses (RFC 6890); Python's is_global takes some of them for public.
_UNICAST = ipaddress.ip_network("2000::/3")
_SPECIAL = tuple(map(ipaddress.ip_network, ("2001::/23", "2002::/16", "3fff::/20", "192.0.0.0/24", "192.88.99.0/24")))


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the internet, and to no network behind us."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped:
            return is_public(str(ip.ipv4_mapped))
        if ip not in _UNICAST:
            return False
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _SPECIAL)


def resolve(target: Target, *, private: bool) -> str:
    """Return the IP address to connect to. Raises OSError if there is none, or one is not public.

    `private`: whether loopback and the lab's own network may be sent to.
    """
    infos = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    addresses = [str(info[4][0]) for info in infos]
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


# --- Deliveries ---

AT_ONCE = 500  # events that are in memory together
GIVE_UP = timedelta(days=3)
KEPT = timedelta(days=30)  # deliveries, after they have ended
FIRST_RETRY, LAST_RETRY = timedelta(seconds=10), timedelta(hours=6)
_GONE = 410  # the receiver wants no more
_ANSWERS = range(200, 300)
Post = Callable[..., int]


def active() -> QuerySet[Webhook]:
    """Return the webhooks that get events, those of closed accounts left out."""
    return Webhook.objects.filter(stopped="", owner__is_active=True)


def queue_events(base_url: str, now: datetime) -> list[int]:
    """Queue what has happened since the last round. Return the webhooks that have something to send now."""
    WebhookDelivery.objects.filter(created_at__lt=now - KEPT).exclude(state=DeliveryState.WAITING).delete()
    for webhook in active():
        try:
            _queue(webhook, base_url, now)
        except Exception:  # a query that is no longer understood keeps no other from being queued
            log.exception("the events of webhook %s could not be queued", webhook.pk)
    due = _due(now).values_list("webhook", flat=True).distinct()
    return list(active().filter(retry_at__lte=now, pk__in=due).values_list("pk", flat=True))


def _queue(webhook: Webhook, base_url: str, now: datetime) -> None:
    """Queue all events since the last round, AT_ONCE at a time. A crash in between repeats none."""
    queued = WebhookDelivery.objects.filter(webhook=webhook, event=OuterRef("pk"))
    news = event_log.recorded_between(webhook.created_at, webhook.events_until, now).filter(~Exists(queued))
    if webhook.query:
        news = news.filter(report__in=matching(parse(webhook.query)))
    related, last = event_log.with_trust(news.select_related("report__culprit", "report__tree").order_by("pk")), 0
    while events := list(related.filter(pk__gt=last)[:AT_ONCE]):
        by_metric = directions()
        rows = []
        for event in events:
            report = report_json(event.report, by_metric, lambda path: f"{base_url}{path}")  # as the API has it
            data = {"event": event_json(event), "report": report}
            news_of_it = {"type": "event.recorded", "timestamp": event.recorded_at, "data": data}
            body = orjson.dumps(news_of_it, option=orjson.OPT_UTC_Z).decode()
            key = key_of(webhook, event)
            rows.append(WebhookDelivery(webhook=webhook, event=event, key=key, body=body, created_at=now, next_at=now))
        WebhookDelivery.objects.bulk_create(rows, ignore_conflicts=True)
        last = events[-1].pk
    Webhook.objects.filter(pk=webhook.pk).update(events_until=now)


def key_of(webhook: Webhook, event: Event) -> str:
    """Return the key of a delivery, which a database that was restored makes again."""
    text = f"{webhook.secret} {event.report.culprit.sha} {event.report.verdict} {event.key}"
    return f"msg_{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _due(now: datetime) -> QuerySet[WebhookDelivery]:
    return WebhookDelivery.objects.filter(state=DeliveryState.WAITING, next_at__lte=now)


def deliver(pk: int, clock: Callable[[], datetime], *, private: bool, until: datetime, send: Post = post) -> int:
    """Send what is due to one webhook, the oldest first, until a moment, or until it does not answer.

    Return how many arrived. `clock` returns the time; `private`: as for `resolve`.
    """
    arrived = 0
    while (now := clock()) < until:
        webhook = active().filter(pk=pk, retry_at__lte=now).first()
        row = _due(now).filter(webhook=pk).order_by("pk").first()
        if webhook is None or row is None:
            break
        # An attempt is counted before it is made, and by one worker only.
        same = WebhookDelivery.objects.filter(pk=row.pk, state=DeliveryState.WAITING, attempts=row.attempts)
        if not same.update(attempts=row.attempts + 1, next_at=now + _backoff(row.attempts)):
            break
        answered, was_delivered = _send(webhook, row, clock, private, send)
        arrived += was_delivered
        if not answered:
            break
    return arrived


def _backoff(attempts: int) -> timedelta:
    """Return the time to the next attempt: 10 s, 40 s, 160 s … at most six hours."""
    return min(FIRST_RETRY * (1 << 2 * min(attempts, 10)), LAST_RETRY)


def _send(
    webhook: Webhook, row: WebhookDelivery, clock: Callable[[], datetime], private: bool, send: Post
) -> tuple[bool, bool]:
    """Make one attempt. Return whether there was an answer, and whether it took the event."""
    body = row.body.encode()
    status, error = None, ""
    try:
        headers = signed_headers(webhook.secret, row.key, int(clock().timestamp()), body)
        status = send(parse_target(webhook.url), body, headers, private=private)
    except (OSError, ValueError) as failure:
        error = " ".join(str(failure).split())[:300] or type(failure).__name__
    now = clock()
    state = DeliveryState.DELIVERED if status in _ANSWERS else DeliveryState.WAITING
    if state == DeliveryState.WAITING and (now - row.created_at > GIVE_UP or status == _GONE):
        state = DeliveryState.FAILED
    answered_at = now if status else row.answered_at
    same = WebhookDelivery.objects.filter(pk=row.pk, state=DeliveryState.WAITING)
    same.update(state=state, status=status, error=error, answered_at=answered_at)
    rows = Webhook.objects.filter(pk=webhook.pk)
    if status is None:
        rows.update(silent=F("silent") + 1, retry_at=now + _backoff(webhook.silent))
    else:
        rows.update(silent=0)
    if status == _GONE:
        rows.update(stopped="the receiver answered 410 Gone")
    return status is not None, state == DeliveryState.DELIVERED
