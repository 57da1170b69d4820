"""Keys for programs: made once, shown once, stored as a hash, revoked at any time."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from django.contrib.auth.models import User
from django.db.models import F, Q

from tracker.domain.errors import InvalidInput
from tracker.models import ApiKey

PREFIX = "perfwork_"  # so that scanners of leaked secrets, and people, know what it is
ANY_PRODUCER = "*"
MOST_A_MINUTE = 600  # requests of one key
_MINUTE = timedelta(minutes=1)


class Scope(StrEnum):
    """What a key may do."""

    RESULTS = "results"
    EVIDENCE = "evidence"
    JOBS = "jobs"  # of the lab: claim them, and hand in their results
    TRIAGE = "triage"  # act on reports and decide on suggestions, for a person


def create(
    name: str,
    scopes: Sequence[Scope],
    producer: str,
    now: datetime,
    acts_for: User | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """Return a new key and its token, which is not stored. Raises InvalidInput."""
    if not name.strip() or len(name) > 80:
        raise InvalidInput(f"name: expected 1 to 80 characters; found {name[:90]!r}")
    if not scopes:
        raise InvalidInput(f"scopes: expected one or more of {', '.join(Scope)}; found none")
    if Scope.RESULTS in scopes and not producer:
        raise InvalidInput("producer: expected the producer.name of the results, or * for any; found none")
    if (Scope.TRIAGE in scopes) != bool(acts_for):
        raise InvalidInput("user: the scope triage wants the person that the key acts for, and no other scope does")
    if ApiKey.objects.filter(name=name).exists():
        raise InvalidInput(f"name: there is a key named {name!r}; revoke keys, and give new ones other names")
    token = PREFIX + secrets.token_urlsafe(32)
    values = {"digest": _digest(token), "beginning": token[: len(PREFIX) + 4], "created_at": now, "acts_for": acts_for}
    values["expires_at"] = expires_at
    key = ApiKey.objects.create(name=name, scopes=[*map(str, scopes)], producer=producer[:200], **values)
    return key, token


def find(token: str, now: datetime) -> ApiKey | None:
    """Return the key of a token, and record its use to the minute; None if it is unknown, expired or revoked."""
    valid = ApiKey.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)
    key = valid.filter(digest=_digest(token)).select_related("acts_for").first()
    if key and (key.used_at is None or now - key.used_at > _MINUTE):
        ApiKey.objects.filter(pk=key.pk).update(used_at=now)
    return key


def count_request(key: ApiKey, now: datetime) -> int:
    """Count a request of a key; return 0, or the seconds to wait if it has made too many in this minute."""
    minute = now.replace(second=0, microsecond=0)
    own = ApiKey.objects.filter(pk=key.pk)
    if own.filter(minute=minute, requests__lt=MOST_A_MINUTE).update(requests=F("requests") + 1):
        return 0
    if own.exclude(minute=minute).update(minute=minute, requests=1) or own.filter(minute=None).update(
        minute=minute, requests=1
    ):
        return 0
    return 60 - now.second


def revoke(name: str, now: datetime) -> bool:
    """Revoke a key; return False if no valid key has this name."""
    return bool(ApiKey.objects.filter(name=name, revoked_at=None).update(revoked_at=now))


def _digest(token: str) -> str:
    """Return the hash of a token; its 256 random bits need no salt, and no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
