"""The points of a curve, and how many of them are packed into one row: a hundred million samples fit on one disk.

A packed segment is zlib over columns (times, numbers of samples, samples, names): numbers of one kind beside each other
compress to a half, and a segment of 500 points is unpacked in a tenth of a millisecond.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

MOST_SAMPLES = 10_000  # per point; what is beyond them is dropped
_MAX_BYTES = 64 << 20
_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
_HEAD = struct.Struct("<II")  # points, samples


class CurvePoint(NamedTuple):  # a page reads thousands; frozen dataclasses take four times as long to make
    """The samples of one build from one source. `at`: the build's place in time; `build`: a sha, or a release's name;
    `source`: what measured it, "result 12" or "release result 7".
    """

    at: datetime
    build: str
    samples: tuple[float, ...]
    source: str

    @property
    def key(self) -> tuple[datetime, str, str]:
        """What identifies a point in its curve; the order of points, too."""
        return (self.at, self.build, self.source)


def to_the_millisecond(point: CurvePoint) -> CurvePoint:
    """Return a point as it is stored, so that it is found again."""
    return point._replace(at=point.at.replace(microsecond=point.at.microsecond // 1000 * 1000))


def merged(old: Iterable[CurvePoint], new: Iterable[CurvePoint]) -> list[CurvePoint]:
    """Return all points in order, each once; of two with one key the new one counts."""
    points = {each.key: each for each in old}
    points.update((each.key, each) for each in new)
    return [points[key] for key in sorted(points)]


def pack(points: Sequence[CurvePoint]) -> bytes:
    """Return points as bytes, in their order. Times are kept to the millisecond."""
    times = array("q", [(each.at - _EPOCH) // _MILLISECOND for each in points])
    cut = [each.samples[:MOST_SAMPLES] for each in points]
    counts = array("I", map(len, cut))
    samples = array("d", [value for each in cut for value in each])
    names = "\n".join(part for each in points for part in (_line(each.build), _line(each.source)))
    if sys.byteorder == "big":
        for column in (times, counts, samples):
            column.byteswap()
    head = _HEAD.pack(len(points), len(samples))
    return zlib.compress(b"".join([head, times.tobytes(), counts.tobytes(), samples.tobytes(), names.encode()]), 3)


def unpack(packed: bytes) -> list[CurvePoint]:
    """Return the points that `pack` stored."""
    raw = zlib.decompressobj().decompress(packed, _MAX_BYTES)
    count, total = _HEAD.unpack_from(raw)
    times, counts, samples = array("q"), array("I"), array("d")
    at = _HEAD.size
    for column, size in ((times, count * 8), (counts, count * 4), (samples, total * 8)):
        column.frombytes(raw[at : at + size])
        if sys.byteorder == "big":
            column.byteswap()
        at += size
    names = raw[at:].decode().split("\n")
    values, ends = tuple(samples), list(accumulate(counts))
    own = [values[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    whens = [datetime.fromtimestamp(time / 1000, UTC) for time in times]
    return list(map(CurvePoint, whens, names[0 : 2 * count : 2], own, names[1 : 2 * count : 2]))


def _line(text: str) -> str:
    return text.replace("\n", " ")
