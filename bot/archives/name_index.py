"""The index of an archive: which of its mails name a Message-ID, a commit or a title, to be found once that matters.

An archive that is its own store needs no copies of mail that may matter some day. The index holds, for every mail, its
position and 32 bits of each name in it, sorted, in slices by those bits, so that a search reads a 64th of it per key.
It is saved in the transaction that saves the cursor. Two names in four thousand million look alike: a search may find
a mail too many, which costs a parse, and misses none.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from zlib import crc32

import numpy as np

from tracker.models import Archive, ArchiveNames, ArchivePositions

_SLICES = 64
_SHIFT = 32 + 32 - 6  # an entry is 32 bits of a name and the number of the mail; the first six bits are the slice
_NUMBER = np.uint64(0xFFFFFFFF)  # the bits of an entry that hold the number of the mail
_LONGEST_ROW = 100_000  # characters of positions, after which another row is begun
_ROWS = 16  # rows of a slice that are merged into one
_Entries = np.ndarray[tuple[int], np.dtype[np.uint64]]


class NameIndex:
    """The index of one archive, to which mails are added in the order of the archive."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.count = self._stored()
        self._entries = array("Q")
        self._positions: list[str] = []

    def _stored(self) -> int:
        last = ArchivePositions.objects.filter(archive=self.archive).order_by("-first").first()
        return last.first + len(last.positions.split()) if last else 0

    def add(self, position: str, names: Iterable[bytes]) -> None:
        """Add the next mail."""
        number = self.count
        self.count += 1
        self._positions.append(position)
        self._entries.extend(crc32(name) << 32 | number for name in names)

    def save(self) -> None:
        """Store what was added, in the caller's transaction."""
        if self._positions:
            self._save_positions()
        if self._entries:
            entries = np.sort(np.frombuffer(self._entries, np.uint64))
            bounds = np.searchsorted(entries, np.arange(1, _SLICES, dtype=np.uint64) << np.uint64(_SHIFT))
            pieces = enumerate(np.split(entries, bounds))
            ArchiveNames.objects.bulk_create(
                ArchiveNames(archive=self.archive, slice=number, entries=piece.tobytes())
                for number, piece in pieces
                if len(piece)
            )
            self._merge()
        self._entries, self._positions = array("Q"), []

    def _save_positions(self) -> None:
        last = ArchivePositions.objects.filter(archive=self.archive).order_by("-first").first()
        text = " ".join(self._positions)
        if last and len(last.positions) < _LONGEST_ROW:
            last.positions += f" {text}"
            last.save(update_fields=["positions"])
        else:
            first = self.count - len(self._positions)
            ArchivePositions.objects.create(archive=self.archive, first=first, positions=text)

    def _merge(self) -> None:
        """Merge the rows of slices that have many, so that a search reads few."""
        rows: dict[int, list[int]] = defaultdict(list)
        for pk, number in ArchiveNames.objects.filter(archive=self.archive).values_list("pk", "slice"):
            rows[number].append(pk)
        for number, pks in rows.items():
            if len(pks) >= _ROWS:
                entries = np.sort(np.concatenate(list(_entries_of(pks))))
                ArchiveNames.objects.filter(pk__in=pks).delete()
                ArchiveNames.objects.create(archive=self.archive, slice=number, entries=entries.tobytes())

    def find(self, keys: Iterable[bytes]) -> list[str]:
        """Return the positions of the stored mails that name one of these, in the order of the archive."""
        hashes = np.unique(np.fromiter(map(crc32, keys), np.uint64))
        if not len(hashes):
            return []
        lows, highs = hashes << np.uint64(32), (hashes + np.uint64(1)) << np.uint64(32)
        slices = {int(low) >> _SHIFT for low in lows}
        numbers: set[int] = set()
        wanted = ArchiveNames.objects.filter(archive=self.archive, slice__in=slices)
        for blob in wanted.values_list("entries", flat=True).iterator(chunk_size=_SLICES):
            entries = np.frombuffer(bytes(blob), np.uint64)
            starts, ends = np.searchsorted(entries, lows), np.searchsorted(entries, highs)
            for hit in np.flatnonzero(starts < ends):
                numbers.update((entries[starts[hit] : ends[hit]] & _NUMBER).tolist())
        return self._at(sorted(numbers))

    def _at(self, numbers: Sequence[int]) -> list[str]:
        found: list[str] = []
        rows = list(ArchivePositions.objects.filter(archive=self.archive).order_by("first").values_list("pk", "first"))
        firsts = [first for _, first in rows]
        wanted: dict[int, list[int]] = defaultdict(list)
        for number in numbers:
            wanted[int(np.searchsorted(firsts, number, side="right")) - 1].append(number)
        for index, group in wanted.items():
            positions = ArchivePositions.objects.get(pk=rows[index][0]).positions.split()
            found += [positions[number - firsts[index]] for number in group]
        return found

    def truncate(self, count: int) -> None:
        """Forget all mails after the first `count`: the archive was rewritten there, or is read again."""
        if count >= self.count:
            return
        for row in ArchivePositions.objects.filter(archive=self.archive).order_by("-first"):
            if row.first >= count:
                row.delete()
            elif len(positions := row.positions.split()) > count - row.first:
                row.positions = " ".join(positions[: count - row.first])
                row.save(update_fields=["positions"])
        names = ArchiveNames.objects.filter(archive=self.archive)
        if count == 0:
            names.delete()
        for names_row in names.iterator(chunk_size=_SLICES):
            entries = np.frombuffer(bytes(names_row.entries), np.uint64)
            kept = entries[(entries & _NUMBER) < count]
            if len(kept) < len(entries):
                names_row.entries = kept.tobytes()
                names_row.save(update_fields=["entries"])
        self.count = count


def _entries_of(pks: Sequence[int]) -> Iterable[_Entries]:
    for blob in ArchiveNames.objects.filter(pk__in=pks).values_list("entries", flat=True):
        yield np.frombuffer(bytes(blob), np.uint64)
