"""Kernel versions sort in release order, and nothing else is accepted as a version."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.domain.versions import parse

IN_ORDER = [
    "v2.6",
    "v2.6.39-rc3",
    "v2.6.39",
    "v2.6.39.4",
    "v3.0-rc1",
    "v5.6-rc1",
    "v5.6-rc7",
    "v5.6",
    "v5.6.1",
    "v5.6.19",
    "v5.7-rc1",
    "v5.12-rc1-dontuse",
    "v6.9",
    "v6.10-rc1",
    "v6.10",
    "v6.10.1",
]


def test_versions_sort_in_the_order_of_release() -> None:
    versions = [parse(each) for each in IN_ORDER]
    assert versions == sorted(versions)  # type: ignore[type-var]
    numbers = [version.number for version in versions if version and version.major > 2]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    ("tag", "cycle"), [("v5.6-rc3", "v5.6"), ("v5.6", "v5.6"), ("v6.6.12", "v6.6"), ("v2.6.39-rc3", "v2.6.39")]
)
def test_a_version_belongs_to_a_cycle(tag: str, cycle: str) -> None:
    version = parse(tag)
    assert version
    assert version.cycle == cycle


@pytest.mark.parametrize(
    "tag", ["next-20260310", "v5.6-rc", "5.6", "v5", "v5.6-rc1-dirty", "v5.6-rc1.2", "v", "v5.6\n", ""]
)
def test_other_tags_are_no_versions(tag: str) -> None:
    assert parse(tag) is None


@given(st.text())
def test_junk_is_no_error(text: str) -> None:
    version = parse(text)
    assert version is None or text.startswith(version.cycle)
