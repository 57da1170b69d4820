"""Texts that people write, with all their versions: who wrote each, and which is the newest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from tracker.domain.errors import InvalidInput
from tracker.models import TextRevision

LONGEST = 20_000  # characters of a text
MOST = 2_000  # versions per place


def texts(page: str) -> Mapping[str, TextRevision]:
    """Return the newest version of every non-empty text of a place, in order of first appearance. One query."""
    return newest(TextRevision.objects.filter(place=page).order_by("pk")[:MOST])


@dataclass(frozen=True, slots=True)
class Comment:
    """A text with its original author; `row` is the current version, with its author."""

    author: str
    row: TextRevision


def comments(page: str, most: int) -> list[Comment]:
    """Return the newest `most` comments of a place, in order. One query."""
    rows = list(TextRevision.objects.filter(place=page).order_by("pk")[:MOST])
    authors: dict[str, str] = {}
    for row in rows:
        authors.setdefault(row.name, row.by)
    return [Comment(authors[name], row) for name, row in newest(rows).items()][-most:]


def own_comments(page: str, person: str) -> int:
    """Return how many comments on a place one person began."""
    return sum(each.author == person for each in comments(page, MOST))


def newest(rows: Iterable[TextRevision]) -> dict[str, TextRevision]:
    """Return the last row of each name, except where it is empty. Pure."""
    found: dict[str, TextRevision] = {}
    for row in rows:
        found[row.name] = row
    return {name: row for name, row in found.items() if row.text.strip()}


def versions(page: str, name: str) -> list[TextRevision]:
    """Return every version of a text, newest first."""
    return list(TextRevision.objects.filter(place=page, name=name).order_by("-pk")[:MOST])


def write(page: str, name: str, text: str, by: str, now: datetime) -> TextRevision | None:
    """Add a version. Returns None if the text is unchanged; raises InvalidInput for too long a text or too many."""
    text = text.replace("\r\n", "\n").replace("\0", "").strip()
    if len(text) > LONGEST:
        raise InvalidInput(f"expected at most {LONGEST:,} characters, found {len(text):,}")
    last = TextRevision.objects.filter(place=page, name=name).order_by("-pk").first()
    if (last.text if last else "") == text:
        return None
    if TextRevision.objects.filter(place=page).count() >= MOST:
        raise InvalidInput(f"there are already {MOST} versions of texts here")
    return TextRevision.objects.create(place=page, name=name, text=text, by=by, at=now)
