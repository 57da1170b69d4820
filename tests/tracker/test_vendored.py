"""Vendored files are identical to their releases."""

from __future__ import annotations

import hashlib

from tests.conftest import ROOT

DIGESTS = {
    "htmx.min.js": "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
    "uplot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uplot.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
}


def test_vendored_files_are_as_released() -> None:
    folder = ROOT / "static" / "vendor"
    found = {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in folder.glob("*.min.*")}
    assert found == DIGESTS
    assert all(name in (folder / "README.md").read_text() for name in DIGESTS)
