"""A set of a million keys in 25 MB, with a dozen lookups per mail that cost the same for any number of keys.

A byte table answers nearly every lookup alone; what it can't rule out is looked up exactly, by 64-bit hash.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

_MIN_SLOTS = 1 << 16  # slots
_SLOTS_PER_KEY = 16  # slots per key: one in sixteen unknown keys is looked up in vain
_MAX_UNSORTED = 4096  # new keys that are held unsorted


class KeySet:
    """Holds hashes only: keys can't be listed. Keys with the same hash count as one, which costs a parse at worst."""

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        self._sorted = np.empty(0, np.int64)
        self._unsorted: set[int] = set()
        self._slots = bytearray(_MIN_SLOTS)
        self._mask = _MIN_SLOTS - 1
        self.update(keys)

    def __len__(self) -> int:
        return len(self._sorted) + len(self._unsorted)

    def __contains__(self, key: bytes) -> bool:
        return self.holds_any((key,))

    def holds_any(self, keys: Iterable[bytes]) -> bool:
        """Whether any of the keys is in the set."""
        slots, mask = self._slots, self._mask
        for key in keys:
            number = hash(key)
            if slots[number & mask] and self._holds(number):
                return True
        return False

    def _holds(self, number: int) -> bool:
        if number in self._unsorted:
            return True
        index = int(np.searchsorted(self._sorted, number))
        return index < len(self._sorted) and int(self._sorted[index]) == number

    def add(self, key: bytes) -> None:
        number = hash(key)
        self._unsorted.add(number)
        self._slots[number & self._mask] = 1
        if len(self._unsorted) > _MAX_UNSORTED:
            self._sort_in(np.fromiter(self._unsorted, np.int64, len(self._unsorted)))
            self._unsorted.clear()

    def update(self, keys: Iterable[bytes]) -> None:
        """Add many at once; they are hashed as they come, and not held in memory."""
        self._sort_in(np.fromiter(map(hash, keys), np.int64))

    def _sort_in(self, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        if len(numbers):
            self._sorted = np.union1d(self._sorted, numbers)
        size = (
            max(_MIN_SLOTS, 1 << (len(self._sorted) * _SLOTS_PER_KEY - 1).bit_length())
            if len(self._sorted)
            else _MIN_SLOTS
        )
        if size != len(self._slots):
            self._mask = size - 1
            self._slots = bytearray(size)
            numbers = self._sorted
            for number in self._unsorted:
                self._slots[number & self._mask] = 1
        np.frombuffer(self._slots, np.uint8)[numbers & self._mask] = 1
