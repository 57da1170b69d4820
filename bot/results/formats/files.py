"""Files handed in by a lab: bounded in size, inside their directory and decoded as UTF-8, or rejected."""

import errno
import stat
from pathlib import Path
from typing import Any

from bot.results.formats import perf_bisect_result as perf
from bot.results.values import RejectedInput

HEAD = 20_000  # bytes read to detect a file's format


def reason_of(error: OSError | RuntimeError) -> str:
    """Return why a path can't be read. Python up to 3.12 raises RuntimeError for a symbolic link loop."""
    if isinstance(error, RuntimeError) or error.errno == errno.ELOOP:
        return "a symbolic link loop"
    return error.strerror or str(error)


def check_inside(path: Path, top: Path) -> None:
    """Raise RejectedInput if a path leads out of `top` by a symbolic link, or is not a file or directory."""
    try:
        real = path.resolve(strict=True)
        kind = real.stat().st_mode
    except (OSError, RuntimeError) as error:
        raise RejectedInput(str(path), reason_of(error)) from None
    if not real.is_relative_to(top.resolve()):
        raise RejectedInput(str(path), f"a symbolic link that leads out of {top}: copy the file there")
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise RejectedInput(str(path), "expected a file, found a pipe or a device; `ingest -` reads standard input")


def read_text(path: Path, top: Path, limit: int = perf.MAX_BYTES) -> str:
    """Return the text of a file. Raise RejectedInput if it is missing, too large or not UTF-8."""
    check_inside(path, top)
    try:
        with path.open("rb") as stream:
            return text(stream.read(limit + 1), str(path), limit)
    except OSError as error:
        raise RejectedInput(str(path), error.strerror or str(error)) from None


def head_of(path: Path, top: Path) -> str:
    """Return the beginning of a file, enough to detect its format."""
    check_inside(path, top)
    with path.open("rb") as stream:
        return stream.read(HEAD).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")


def read_json(path: Path, top: Path) -> Any:
    return perf.decode(read_text(path, top), str(path))


def text(raw: bytes, where: str, limit: int = perf.MAX_BYTES) -> str:
    """Decode UTF-8 without a byte order mark. Raise RejectedInput if it is too large or not UTF-8."""
    if len(raw) > limit:
        raise RejectedInput(where, f"expected at most {limit:,} bytes per result; use JSON Lines, one result per line")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RejectedInput(
            where, f"expected UTF-8, found the byte 0x{raw[error.start]:02x} at offset {error.start}"
        ) from None
