"""Inputs by their content: files, directories of files, JSON arrays and JSON Lines, one result at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bot.ingest import perf_bisect_result as perf
from bot.ingest.errors import Refused
from bot.ingest.value import Result


@dataclass(frozen=True, slots=True)
class Input:
    """One result found in an input, or why it is refused. `where` names the file, and the line or the index."""

    where: str
    result: Result | None
    refusal: Refused | None = None


def read_path(path: Path) -> Iterator[Input]:
    """Every result in a file, or in the .json and .jsonl files of a directory, in order of name."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix in (".json", ".jsonl") and file.is_file())
        if not files:
            yield Input(str(path), None, Refused(str(path), "expected .json or .jsonl files, found none"))
        for file in files:
            yield from read_path(file)
        return
    try:
        with path.open("rb") as stream:
            yield from read_stream(stream, str(path))
    except OSError as error:
        yield Input(str(path), None, Refused(str(path), error.strerror or str(error)))


def read_stream(stream: IO[bytes], name: str) -> Iterator[Input]:
    """The results of one JSON value or array, or of JSON Lines, which are read a line at a time."""
    first = stream.readline(perf.MAX_BYTES + 1)
    if _is_whole_object(first) or len(first) > perf.MAX_BYTES:
        yield from _lines(first, stream, name)
        return
    try:
        value = perf.decode(_text(first + stream.read(perf.MAX_BYTES + 1 - len(first)), name), name)
    except Refused as refusal:
        yield Input(name, None, refusal)
        return
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield _one(each, f"{name}, /{number}")
    else:
        yield _one(value, name)


def _is_whole_object(line: bytes) -> bool:
    """Whether the first line is a JSON object by itself, as in JSON Lines; else the file is one value."""
    return line.lstrip().startswith(b"{") and line.rstrip().endswith(b"}") and line.endswith(b"\n")


def _lines(first: bytes, stream: IO[bytes], name: str) -> Iterator[Input]:
    number, line = 1, first
    while line:
        where = f"{name}, line {number}"
        if len(line) > perf.MAX_BYTES:
            yield Input(where, None, Refused(where, f"expected at most {perf.MAX_BYTES:,} bytes a result"))
            while line and not line.endswith(b"\n"):  # skip the rest of it without keeping it
                line = stream.readline(1 << 20)
        elif line.strip():
            try:
                yield _one(perf.decode(_text(line, where), where), where)
            except Refused as refusal:
                yield Input(where, None, refusal)
        number, line = number + 1, stream.readline(perf.MAX_BYTES + 1)


def _one(value: Any, where: str) -> Input:
    try:
        return Input(where, perf.parse(value, where))
    except Refused as refusal:
        return Input(where, None, refusal)


def _text(raw: bytes, where: str) -> str:
    if len(raw) > perf.MAX_BYTES:
        raise Refused(where, f"expected at most {perf.MAX_BYTES:,} bytes a result; hand in JSON Lines, a result a line")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(
            where, f"expected UTF-8, found the byte 0x{raw[error.start]:02x} at offset {error.start}"
        ) from None
