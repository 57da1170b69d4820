"""Vendored files are identical to their releases."""

from __future__ import annotations

import hashlib

from tests.conftest import ROOT

DIGESTS = {"htmx.min.js": "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"}


def test_vendored_files_are_as_released() -> None:
    folder = ROOT / "static" / "vendor"
    found = {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in folder.glob("*.js")}
    assert found == DIGESTS
    assert all(name in (folder / "README.md").read_text() for name in DIGESTS)
