"""Cells of a CSV that a spreadsheet opens: none is read as a formula. Pure."""

from __future__ import annotations


def safe_cell(value: object) -> object:
    """Return a cell with an apostrophe before what a spreadsheet would run (OWASP: CSV injection)."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
