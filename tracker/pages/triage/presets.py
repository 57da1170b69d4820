"""The questions that release managers ask every day, as links above the table. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode


@dataclass(frozen=True, slots=True)
class Preset:
    """A named query; `is_current`: the page shows it already."""

    name: str
    url: str
    is_current: bool


def presets(current: str, candidate: tuple[str, datetime] | None, user: str, address: str) -> list[Preset]:
    """Return the links for a release. `current`: the page's query; `candidate`: the newest -rc and its time; `user` and
    `address` of who is signed in, "" for others.
    """
    return [Preset(name, f"?{query}", query == current) for name, query in _queries(candidate, user, address)]


def _queries(candidate: tuple[str, datetime] | None, user: str, address: str) -> Iterator[tuple[str, str]]:
    yield "Open", "state=open"
    yield "Unanswered", "state=no_response"
    yield "Fix proposed", "state=fix_proposed&state=fix_confirmed"
    yield "Fix queued", "state=fix_queued"
    yield "Blocking", "state=open&blocking=yes"
    yield "Fix missing in stable", "stable=missing"
    if user:
        yield "Assigned to me", urlencode({"assigned": user})
    if address:
        yield "My commits", urlencode({"author": address})
    if candidate:
        name, at = candidate
        rc = name.rpartition("-")[2]
        yield f"New since -{rc}", f"reported_after={at:%Y-%m-%d}"
        yield f"Closed since -{rc}", f"closed_after={at:%Y-%m-%d}"
