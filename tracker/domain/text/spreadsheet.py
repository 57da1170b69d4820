"""Cells of a CSV that a spreadsheet opens: none is read as a formula, or refused. Pure."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # XML 1.0 and so spreadsheets have no such characters


def safe_cell(value: object) -> object:
    """Return a cell without control characters, with an apostrophe before what a spreadsheet would run (OWASP: CSV
    injection).
    """
    if not isinstance(value, str):
        return value
    text = _CONTROL.sub(" ", value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
