"""What all result formats share: files read within limits, JSON decoded and checked, samples, limits of results.

A lab's files are bounded in size, inside their directory and decoded as UTF-8, or rejected. JSON is decoded by orjson,
six times as fast, wherever that can't hide a fault, and validated against our own schemas (schemas/), with the location
of each fault; `canonical` gives the same text for the same value. Adapters share the checks of numbers, the summaries
of samples, and the choice of KPIs and headline where an input names no roles. The limits hold for results of every
format: lengths of names, single-line text, and sample counts.
"""

import errno
import json
import math
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson

from bot.results.values import KernelResult, Measured, MeasurementData, RejectedInput, Result, TestRun
from tracker.domain.metrics import direction_of, is_key
from tracker.domain.statistics import SampleSummary, change_pct, overlap, summarise

# --- Files ---

MAX_BYTES = 64 * 1024 * 1024  # per result; enough for a million samples
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


def read_text(path: Path, top: Path, limit: int = MAX_BYTES) -> str:
    """Return the text of a file. Raise RejectedInput if it is missing, too large or not UTF-8."""
    check_inside(path, top)
    try:
        with path.open("rb") as stream:
            return decode_text(stream.read(limit + 1), str(path), limit)
    except OSError as error:
        raise RejectedInput(str(path), error.strerror or str(error)) from None


def head_of(path: Path, top: Path) -> str:
    """Return the beginning of a file, enough to detect its format."""
    check_inside(path, top)
    with path.open("rb") as stream:
        return stream.read(HEAD).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")


def decode_text(raw: bytes, where: str, limit: int = MAX_BYTES) -> str:
    """Decode UTF-8 without a byte order mark. Raise RejectedInput if it is too large or not UTF-8."""
    if len(raw) > limit:
        raise RejectedInput(where, f"expected at most {limit:,} bytes per result; use JSON Lines, one result per line")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RejectedInput(
            where, f"expected UTF-8, found the byte 0x{raw[error.start]:02x} at offset {error.start}"
        ) from None


# --- JSON as text ---


def decode_json(text: str, where: str) -> Any:
    """Decode JSON strictly: raise RejectedInput for duplicate keys, NaN, Infinity and numbers too large for a float."""
    value = _decode_plain(text)
    return _decode_carefully(text, where) if value is None else value


_LONG_NUMBER = re.compile(r"(?:^|[:,\[])\s*-?[0-9]{19}")
_DIGITS = bytes(ord("0") if chr(code).isdecimal() and code < 128 else 0 for code in range(256))


def _decode_plain(text: str) -> Any:
    """Return the decoded value, six times as fast; None if the text may hold what `decode_json` has to reject.

    orjson rejects infinite numbers, but rounds integers beyond 64 bits and keeps the last of two equal keys. A dropped
    key takes at least one colon with it, so equal colon counts prove that none was dropped, unless text is escaped
    with \\u.
    """
    has_long_run = b"0" * 19 in text.encode("utf-8", "replace").translate(_DIGITS)  # cheaper than the pattern
    if "\\u" in text or (has_long_run and _LONG_NUMBER.search(text)):
        return None
    try:
        value = orjson.loads(text)
        return value if canonical(value).count(":") == text.count(":") else None
    except (orjson.JSONDecodeError, RejectedInput):
        return None


def _decode_carefully(text: str, where: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise RejectedInput(where, f"duplicate key {twice[:80]!r} in one object")
        return value

    def no_constant(name: str) -> Any:
        raise RejectedInput(where, f"expected a finite number, found {name}")

    def finite(digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            raise RejectedInput(where, f"expected a finite number, found {digits[:40]}")
        return number

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=no_constant, parse_float=finite)
    except json.JSONDecodeError as error:
        location = (
            f"{where}, line {error.lineno} column {error.colno}"
            if error.lineno > 1
            else f"{where}, column {error.colno}"
        )
        raise RejectedInput(location, f"not JSON: {error.msg}") from None
    except ValueError as error:  # an integer with more digits than Python converts
        raise RejectedInput(where, f"not JSON: {error}") from None
    except RecursionError:
        raise RejectedInput(where, "JSON is nested too deeply") from None


# --- Schemas and canonical JSON ---

MAX_FAULTS = 100  # reported per result
_FOLDER = Path(__file__).parent / "schemas"


class Schema:
    """One file of schemas/: JSON Schema, draft 2020-12."""

    def __init__(self, name: str) -> None:
        self._file = _FOLDER / f"{name}.schema.json"

    def check(self, value: Any, where: str) -> None:
        """Raise RejectedInput with the JSON pointer of the first fault, and up to MAX_FAULTS of them in `faults`."""
        try:
            errors = list(islice(self._validator.iter_errors(value), MAX_FAULTS))
        except RecursionError:
            raise RejectedInput(where, "nested too deeply") from None
        except ValueError as error:  # half of a surrogate pair, a number that no database holds
            raise RejectedInput(where, f"holds what JSON should not: {error}") from None
        if errors:
            messages = ((pointer(error.instance_path), error.message) for error in errors)
            faults = sorted(  # a message may quote a large value
                (at, message if len(message) <= 200 else f"{message[:120]} … {message[-60:]}")
                for at, message in messages
            )
            location, why = faults[0]
            raise RejectedInput(f"{where}, {location}" if location else where, why, faults)

    @cached_property
    def _validator(self) -> jsonschema_rs.Draft202012Validator:
        schema = json.loads(self._file.read_text())
        # git takes whatever its user calls an address, and dates have a better message of their own
        formats = {"email": lambda text: "@" in text, "date-time": lambda text: True}
        return jsonschema_rs.Draft202012Validator(schema, formats=formats, validate_formats=True)


def pointer(path: Any) -> str:
    """Return a JSON pointer (RFC 6901); "" is the whole document."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def canonical(value: Any) -> str:
    """Return the same text for the same JSON value, whatever its spacing and key order.

    Raise RejectedInput for a value that is nested too deeply.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # integers beyond 64 bits, lone surrogates: the same value always ends up here
        pass
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except RecursionError:
        raise RejectedInput("", "nested too deeply") from None


# --- Samples and roles ---

MAX_SAMPLES = 100_000  # per side
_NUMBERS = frozenset({int, float})  # bool is neither
_MONITORS = 100  # kept whether they moved or not; of more only those that moved


def summary(samples: Sequence[Any], where: str) -> tuple[SampleSummary, tuple[float, ...]]:
    """Return the summary of samples, and the samples as floats. Raise RejectedInput for none or too many."""
    if len(samples) > MAX_SAMPLES:
        raise RejectedInput(where, f"expected at most {MAX_SAMPLES} samples, found {len(samples)}")
    if not samples:
        raise RejectedInput(where, "expected at least one sample, found none")
    all_numbers(samples, where)
    try:
        numbers = tuple(map(float, samples))
    except OverflowError:
        raise RejectedInput(where, "expected numbers up to 1e308, found a larger one") from None
    return finite(summarise(numbers), where), numbers


def all_numbers(values: Sequence[Any], where: str) -> None:
    """Raise RejectedInput if a value is neither an int nor a float."""
    if not _NUMBERS.issuperset(map(type, values)):
        odd = next(value for value in values if type(value) not in _NUMBERS)
        raise RejectedInput(where, f"expected numbers only, found {str(odd)[:40]!r} among them")


def finite(side: SampleSummary, where: str) -> SampleSummary:
    """Return the side. Raise RejectedInput if its mean or standard deviation is not finite."""
    if not math.isfinite(side.mean + (side.stddev or 0.0)):
        raise RejectedInput(where, "expected numbers whose mean and standard deviation are finite")
    return side


def measurement(metric: str, unit: str, old: Sequence[Any], new: Sequence[Any], where: str) -> MeasurementData:
    """Return a metric with its samples, as a monitor with unknown direction."""
    old_side, old_samples = summary(old, f"{where}, parent")
    new_side, new_samples = summary(new, f"{where}, culprit")
    return MeasurementData(metric, unit, "unknown", "monitor", old_side, new_side, old_samples, new_samples)


def with_roles(measured: Sequence[MeasurementData], suite: str) -> tuple[MeasurementData, ...]:
    """Assign the roles that an input lacks: the suite's own metrics are KPIs, and one of them is the headline.

    The headline is what the suite is run for; of several such metrics, or without one, that which moved most,
    preferably one that is not a counter of time(1), whose direction is known and whose sides don't overlap. Of more
    than 100 monitors, the 200 that moved most are kept.
    """
    own = [measurement for measurement in measured if measurement.metric.startswith(f"{suite}.")]
    kept = [measurement for measurement in measured if not measurement.metric.startswith(f"{suite}.")] if own else []
    own = own or list(measured)
    headline = max(
        own,
        key=lambda measurement: (
            is_key(measurement.metric, suite),
            ".time." not in measurement.metric,
            direction_of(measurement.metric, suite) != "unknown",
            _moved(measurement),
            _distance(measurement),
        ),
    )
    if len(kept) > _MONITORS:
        kept = sorted(filter(_moved, kept), key=_distance, reverse=True)[: 2 * _MONITORS]
    kpis = (replace(measurement, role="kpi") for measurement in own if measurement is not headline)
    return (replace(headline, role="headline"), *kpis, *kept)


def _moved(measurement: MeasurementData) -> bool:
    old = measurement.old_samples or (measurement.old.mean,)
    new = measurement.new_samples or (measurement.new.mean,)
    return not overlap(old, new)


def _distance(measurement: MeasurementData) -> float:
    return abs(change_pct(measurement.old.mean, measurement.new.mean) or 0.0)


def finite_number(text: str) -> float:
    """Parse a finite decimal number. Raise ValueError for anything else ("nan", "1_000")."""
    number = float(text)
    if not math.isfinite(number) or "_" in text or not text.isascii():
        raise ValueError(text)
    return number


def utc(text: str) -> datetime:
    """Parse an ISO 8601 time; one without an offset is taken as UTC. Raise ValueError for anything else."""
    moment = datetime.fromisoformat(text)
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        raise ValueError("not a year from 1 to 9999") from None


# --- Limits ---

NAME = 500  # characters of a name or an id
TEXT = 2000  # characters of text that is only displayed
RUNS = 1_000_000_000  # per side
SHA = re.compile(r"[0-9a-f]{40}\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_Name = tuple[str, str, int]  # label, text, character limit


def checked(result: Result, where: str) -> Result:
    """Return `result` unchanged. Raise RejectedInput for text that can't be stored or shown on one line, a bad sha,
    equal parent and culprit, or a sample count that is too large.
    """
    commits = [commit for commit in (result.good, result.bad, result.culprit, result.parent) if commit]
    names: list[_Name] = [
        ("producer", result.producer, NAME),
        ("id", result.id, NAME),
        ("patch Message-ID", result.patch_message_id, NAME),
        ("tree", result.tree, NAME),
        ("branch", result.branch, NAME),
        ("tree URL", result.tree_url, TEXT),
    ]
    for commit in commits:
        names += (("title", commit.title, TEXT), ("description", commit.describe, TEXT))
        names += (("author email", commit.author_email, NAME), ("author name", commit.author_name, NAME))
    _check_texts(result.payload, [*names, *_names_of(result.runs)], where)
    for commit in commits:
        if not SHA.match(commit.sha):
            raise RejectedInput(where, f"expected a full sha of 40 hex digits, found {commit.sha[:60]!r}")
    if result.culprit and result.parent and result.culprit.sha == result.parent.sha:
        raise RejectedInput(where, f"expected two commits, found {result.culprit.sha[:12]} as both parent and culprit")
    for measurement in (entry for run in result.runs for entry in run.measurements):
        _check_runs(max(measurement.old.n, measurement.new.n), measurement.metric, where)
    return result


def checked_release(result: KernelResult, where: str) -> KernelResult:
    """Do the same for a release result."""
    names: list[_Name] = [
        ("producer", result.producer, NAME),
        ("id", result.id, NAME),
        ("kernel", result.kernel.name, NAME),
        ("variant", result.kernel.variant, NAME),
        ("description", result.kernel.describe, TEXT),
        *(("evidence name", output.name, NAME) for output in result.evidence),
    ]
    _check_texts(result.payload, [*names, *_names_of(result.tests)], where)
    for measurement in (entry for test in result.tests for entry in test.measurements):
        _check_runs(measurement.side.n, measurement.metric, where)
    return result


def _names_of(tests: Sequence[TestRun[Measured]]) -> Iterator[_Name]:
    for test in tests:
        yield from (("suite", test.suite, NAME), ("machine", test.machine.id, NAME))
        for measurement in test.measurements:
            yield from (("metric", measurement.metric, NAME), ("unit", measurement.unit, NAME))


def _check_texts(payload: str, names: Sequence[_Name], where: str) -> None:
    try:
        payload.encode("utf-8")
        can_be_stored = "\\u0000" not in payload or "\\u0000" not in payload.replace("\\\\", "")  # PostgreSQL: no NUL
    except UnicodeEncodeError:
        can_be_stored = False
    if not can_be_stored:
        raise RejectedInput(where, "text contains a NUL or a lone surrogate; remove it")
    for what, name, limit in names:
        if len(name) > limit:
            raise RejectedInput(where, f"{what}: expected at most {limit} characters, found {len(name)}")
        if _CONTROL.search(name):
            raise RejectedInput(where, f"{what}: expected a single line, found {name[:60]!r}")


def _check_runs(count: int, metric: str, where: str) -> None:
    if not 0 < count <= RUNS:
        raise RejectedInput(where, f"expected at most {RUNS:,} runs of {metric[:80]}, found more")
