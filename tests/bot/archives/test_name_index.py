"""The index of an archive finds every mail that names a key, as a search through all mails would."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from bot.archives import known_reports
from bot.archives.known_reports import NameIndex
from tracker.models import Archive, ArchiveNames, ArchivePositions

NAMES = st.sampled_from([b"%d@x" % number for number in range(30)])
MAILS = st.lists(st.lists(NAMES, max_size=4), max_size=40)


def filled(mails: list[list[bytes]], batch: int) -> NameIndex:
    """Index mails, saving after every `batch`, each time with a new object as a restarted worker has."""
    archive, _ = Archive.objects.get_or_create(path="/an/archive")
    for start in range(0, len(mails), batch):
        index = NameIndex(archive)
        for number, names in enumerate(mails[start : start + batch], start):
            index.add(f"{number:040x}", names)
        index.save()
    return NameIndex(archive)


def searched(mails: list[list[bytes]], keys: list[bytes]) -> list[str]:
    return [f"{number:040x}" for number, names in enumerate(mails) if set(keys) & set(names)]


class TestSearch(TestCase):
    @settings(deadline=None, max_examples=40)
    @given(MAILS, st.integers(1, 9), st.lists(NAMES, max_size=4), st.integers(0, 40))
    def test_a_search_finds_what_reading_everything_finds(
        self, mails: list[list[bytes]], batch: int, keys: list[bytes], count: int
    ) -> None:
        Archive.objects.all().delete()
        index = filled(mails, batch)
        assert index.count == len(mails)
        assert index.find(keys) == searched(mails, keys)
        index.truncate(count)
        assert index.count == min(count, len(mails))
        assert NameIndex(index.archive).count == index.count
        assert index.find(keys) == searched(mails[:count], keys)


@pytest.mark.django_db
def test_rows_are_merged_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_reports, "_LONGEST_ROW", 200)
    mails = [[b"parent@x", b"%d@x" % number] for number in range(100)]
    index = filled(mails, 1)
    assert index.find([b"parent@x"]) == searched(mails, [b"parent@x"])
    assert index.find([b"7@x", b"93@x", b"unknown@x"]) == [f"{7:040x}", f"{93:040x}"]
    rows = ArchiveNames.objects.values_list("slice", flat=True)
    assert max(list(rows).count(number) for number in set(rows)) < 16
    assert 10 < ArchivePositions.objects.count() < 30


@pytest.mark.django_db
def test_archives_are_searched_apart() -> None:
    index = filled([[b"a@x"]], 1)
    assert NameIndex(Archive.objects.create(path="/another")).find([b"a@x"]) == []
    assert index.find([b"a@x"]) == [f"{0:040x}"]
