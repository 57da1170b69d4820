"""Files that a lab hands in: of a bounded size, inside of the directory they came in, decoded or refused."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

from bot.results.errors import RejectedInput
from bot.results.formats import perf_bisect_result as perf

HEAD = 20_000  # bytes of a file that tell its format


def inside(path: Path, top: Path) -> None:
    """Refused where a path leads out of the directory that was handed in, by a symbolic link, or is no file."""
    try:
        real = path.resolve(strict=True)
        kind = real.stat().st_mode
    except RuntimeError:  # a link to itself
        raise RejectedInput(str(path), "a symbolic link that leads nowhere") from None
    except OSError as error:
        raise RejectedInput(str(path), error.strerror or str(error)) from None
    if not real.is_relative_to(top.resolve()):
        raise RejectedInput(str(path), f"a symbolic link that leaves {top}")
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise RejectedInput(str(path), "expected a file, found a pipe or a device; `ingest -` reads standard input")


def read_text(path: Path, top: Path, limit: int = perf.MAX_BYTES) -> str:
    """The text of a file; Refused where it is too large, no UTF-8 or not there."""
    inside(path, top)
    try:
        with path.open("rb") as stream:
            return text(stream.read(limit + 1), str(path), limit)
    except OSError as error:
        raise RejectedInput(str(path), error.strerror or str(error)) from None


def head_of(path: Path, top: Path) -> str:
    """The beginning of a file, enough to know its format by."""
    inside(path, top)
    with path.open("rb") as stream:
        return stream.read(HEAD).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")


def read_json(path: Path, top: Path) -> Any:
    return perf.decode(read_text(path, top), str(path))


def text(raw: bytes, where: str, limit: int = perf.MAX_BYTES) -> str:
    """Bytes as UTF-8, a byte order mark left out."""
    if len(raw) > limit:
        raise RejectedInput(where, f"expected at most {limit:,} bytes a result; hand in JSON Lines, a result a line")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RejectedInput(
            where, f"expected UTF-8, found the byte 0x{raw[error.start]:02x} at offset {error.start}"
        ) from None
