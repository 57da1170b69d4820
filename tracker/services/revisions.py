"""What people write, in versions: the newest text of each name, who wrote it, and what stood there before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from tracker.domain.errors import InvalidInput
from tracker.models import TextRevision

LONGEST = 20_000  # letters of a text
MOST = 2_000  # versions of a place


def texts(place: str) -> Mapping[str, TextRevision]:
    """The newest version of every text of a place that is not empty, in the order of the first ones. One query."""
    return newest(TextRevision.objects.filter(place=place).order_by("pk")[:MOST])


@dataclass(frozen=True, slots=True)
class Comment:
    """A text with who said it first; `row` is what it says now, and who wrote that."""

    author: str
    row: TextRevision


def comments(place: str, most: int) -> list[Comment]:
    """The comments of a place in their order, the newest `most` of them. One query."""
    rows = list(TextRevision.objects.filter(place=place).order_by("pk")[:MOST])
    authors: dict[str, str] = {}
    for row in rows:
        authors.setdefault(row.name, row.by)
    return [Comment(authors[name], row) for name, row in newest(rows).items()][-most:]


def newest(rows: Iterable[TextRevision]) -> dict[str, TextRevision]:
    """The last of each name, but for those that are empty. Pure."""
    found: dict[str, TextRevision] = {}
    for row in rows:
        found[row.name] = row
    return {name: row for name, row in found.items() if row.text.strip()}


def versions(place: str, name: str) -> list[TextRevision]:
    """Every version of a text, the newest first."""
    return list(TextRevision.objects.filter(place=place, name=name).order_by("-pk")[:MOST])


def write(place: str, name: str, text: str, by: str, now: datetime) -> TextRevision | None:
    """Add a version; None where it says what stands there already. Unfit where there is no room for more."""
    text = text.replace("\r\n", "\n").replace("\0", "").strip()
    if len(text) > LONGEST:
        raise InvalidInput(f"expected at most {LONGEST:,} letters, found {len(text):,}")
    last = TextRevision.objects.filter(place=place, name=name).order_by("-pk").first()
    if (last.text if last else "") == text:
        return None
    if TextRevision.objects.filter(place=place).count() >= MOST:
        raise InvalidInput(f"there are {MOST} versions of texts here already")
    return TextRevision.objects.create(place=place, name=name, text=text, by=by, at=now)
