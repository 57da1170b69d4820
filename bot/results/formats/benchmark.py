"""What the output of a benchmark says: its tests with their metrics, or every fault of the file. Pure.

A Format has a name and two functions: one recognises a file, the other returns a Reading of one or more runs, in which
equal tests and metrics are samples of each other in the order of the file. Numbers come out of a `Document`, which
notes what is missing, infinite, negative or no number, with its place; a format never raises for a bad number. A unit
or direction that the format doesn't state is left empty, and follows from the metric's name.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from bot.results.values import RejectedInput
from tracker.domain.statistics import SampleSummary

MOST_FAULTS = 100  # said of one file
MOST_METRICS = 20_000  # of one file
MOST_OBJECTS = 400_000  # JSON objects and arrays of one file: each takes a hundred times the memory of its two bytes
HIGHER, LOWER = "higher", "lower"


# --- What is read ---


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of a test. `summary` stands for the samples where a tool gives only their mean and deviation."""

    name: str
    samples: tuple[float, ...]
    unit: str = ""
    direction: str = ""
    summary: SampleSummary | None = None


@dataclass(frozen=True, slots=True)
class Test:
    """One test of a suite, with the parameters that tell it from the others."""

    suite: str
    params: Mapping[str, str]
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """A file's tests. `tool`: its name and version; `kernel`, `machine`, `cpus`: where the file has them."""

    tests: tuple[Test, ...]
    tool: str = ""
    kernel: str = ""
    machine: str = ""
    cpus: int | None = None


class Samples:
    """What the runs in a file measured: the samples of each metric of each test, in the order of the file."""

    def __init__(self) -> None:
        self._tests: dict[tuple[str, tuple[tuple[str, str], ...]], dict[tuple[str, str, str], list[float]]] = {}

    def add(
        self, suite: str, params: Mapping[str, str], name: str, value: float | None, unit: str = "", direction: str = ""
    ) -> None:
        """Add a sample; None is not a number, which is noted as a fault already."""
        metrics = self._tests.setdefault((suite, tuple(params.items())), {})
        if value is not None:
            metrics.setdefault((name, unit, direction), []).append(value)

    def tests(self) -> list[Test]:
        return [
            Test(suite, dict(params), tuple(Metric(key[0], tuple(values), *key[1:]) for key, values in metrics.items()))
            for (suite, params), metrics in self._tests.items()
        ]


@dataclass(frozen=True, slots=True)
class Format:
    """A tool's files. `recognises`: whether a file is one, by its content; `read`: what it says, with all faults noted
    in the document.
    """

    name: str
    recognises: Callable[[Document], bool]
    read: Callable[[Document], Reading]
    by_line: bool = False  # JSON, one object a line, which `read` checks itself
    repeats: tuple[str, ...] = ()  # keys that the tool writes several times in one object, and that `read` does not use


# --- What it is read from ---


@dataclass
class Document:
    """A file's text, and the faults found in it so far as (place, what is wrong and what was expected)."""

    name: str
    text: str
    faults: list[tuple[str, str]] = field(default_factory=list)

    @cached_property
    def json(self) -> Any:
        """The decoded JSON; None if the text is not JSON. Text before it is skipped: fio prints warnings there.

        NaN, infinities and keys that stand twice are noted as faults by `check_json`.
        """
        return self._decoded[0]

    @cached_property
    def _decoded(self) -> tuple[Any, int]:
        """The decoded JSON, and where it ends in the text; None if the text is not JSON."""
        start = self.text.find("{") if not self.text.lstrip().startswith("[") else self.text.find("[")
        if start < 0 or (start and "\n" not in self.text[:start] and self.text[:start].strip()):
            return None, 0
        try:
            return json.JSONDecoder(object_pairs_hook=_Pairs).raw_decode(self.text, start)
        except (ValueError, RecursionError):
            return None, 0

    @property
    def lines(self) -> Iterator[tuple[int, str]]:
        """Every line with its number, from 1."""
        return enumerate(self.text.splitlines(), start=1)

    @property
    def rows(self) -> Iterator[tuple[str, list[str]]]:
        """The place and the cells of each row of a CSV below its header."""
        reader = csv.reader(io.StringIO(self.text.lstrip("\ufeff")))
        try:
            for row in islice(reader, 1, None):
                yield f"line {reader.line_num}", row
        except csv.Error as error:
            self.fault(f"line {reader.line_num}", f"expected CSV: {error}")

    def fault(self, place: str, why: str) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults.append((place, " ".join(why.split())[:300]))

    def number(self, value: Any, place: str, *, lowest: float = -math.inf, above: float = -math.inf) -> float | None:
        """Return a finite number of at least `lowest` and more than `above`; else None, and note a fault."""
        if isinstance(value, str):
            try:
                value = float(value) if "_" not in value else None
            except ValueError:
                self.fault(place, f"expected a number, found {value[:40]!r}")
                return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fault(place, f"expected a number, found {_shown(value)}")
            return None
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.fault(place, f"expected a finite number, found {number}")
            return None
        if number < lowest:
            self.fault(place, f"expected at least {lowest:g}, found {number:g}")
            return None
        if number <= above:
            self.fault(place, f"expected more than {above:g}, found {number:g}")
            return None
        return number

    def numbers(self, values: Any, place: str) -> tuple[float, ...]:
        """Return the numbers of a list, without those that are noted as faults."""
        if not isinstance(values, list) or not values:
            self.fault(place, f"expected a list of numbers, found {_shown(values)}")
            return ()
        numbers = (self.number(value, f"{place}/{index}") for index, value in enumerate(values))
        return tuple(number for number in numbers if number is not None)

    def metric(
        self, name: str, value: Any, place: str, unit: str, direction: str, *, scale: float = 1
    ) -> Iterator[Metric]:
        """Yield a metric of one sample, which is not negative, in units of `scale`; nothing, and note a fault, for
        anything else.
        """
        if (number := self.number(value, place, lowest=0)) is not None:
            yield Metric(name, (number / scale,), unit, direction)

    def mapping(self, value: Any, place: str) -> Mapping[str, Any]:
        """Return a JSON object; an empty one, and note a fault, for anything else."""
        if isinstance(value, dict):
            return value
        self.fault(place, f"expected an object, found {_shown(value)}")
        return {}

    def sequence(self, value: Any, place: str) -> Sequence[Any]:
        """Return a JSON array with elements; an empty one, and note a fault, for anything else."""
        if isinstance(value, list) and value:
            return value
        self.fault(place, f"expected an array with elements, found {_shown(value)}")
        return ()

    def objects(self, value: Any, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield place and content of each object in a JSON array that has any; note a fault for anything else."""
        for index, element in enumerate(self.sequence(value, place)):
            if content := self.mapping(element, f"{place}/{index}"):
                yield f"{place}/{index}", content

    def string(self, value: Any, place: str) -> str:
        """Return a text; "", and note a fault, for anything else."""
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())
        self.fault(place, f"expected a text, found {_shown(value)}")
        return ""

    def check_json(self, repeats: Collection[str] = ()) -> None:
        """Note a fault for text that is not JSON, for more JSON behind it, and for each NaN, infinity and key that
        stands twice in it, other than `repeats`.
        """
        if self.json is None:
            start = max(self.text.find("{"), 0)
            try:
                json.loads(self.text[start:])
            except ValueError as error:
                message = words_of(error)
                line = self.text.count("\n", 0, start + getattr(error, "pos", 0)) + 1
                self.fault(f"line {line}", f"not JSON, or cut short: {message}")
            except RecursionError:
                self.fault("", "JSON is nested too deeply")
            return
        _, end = self._decoded
        if more := _MORE_JSON.search(self.text[end:]):
            line = self.text.count("\n", 0, end + more.end()) + 1
            self.fault(f"line {line}", "expected one run a file, found more JSON behind it")
        for place, value in _walk(self.json, ""):
            if isinstance(value, _Pairs):
                for key in set(value.twice).difference(repeats):
                    self.fault(place, f"the key {key[:80]!r} stands twice in one object")
            elif isinstance(value, float) and not math.isfinite(value):
                self.fault(place, f"expected a finite number, found {value}")

    def check(self) -> None:
        """Raise RejectedInput with every fault, if there is one."""
        if self.faults:
            faults = list(dict.fromkeys(self.faults))
            place, why = faults[0]
            at = ", ".join(part for part in (self.name, place) if part)
            raise RejectedInput(at, why, [(", ".join(p for p in (self.name, at) if p), what) for at, what in faults])


_MORE_JSON = re.compile(r"^[^\S\n]*(?:[{}\]]|\[[^\S\n]*[\[{\"])", re.MULTILINE)  # "[  12.3] usb" is text


def words_of(error: ValueError | RecursionError) -> str:
    """Return why a text is not JSON, without Python's own advice."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return error.msg.removesuffix(" starting at") if isinstance(error, json.JSONDecodeError) else "a number too long"


class _Pairs(dict[str, Any]):
    """A JSON object that knows which of its keys stood twice."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(name for name, _ in pairs) if len(pairs) != len(self) else Counter()
        self.twice = [name for name, count in counts.items() if count > 1]


def _walk(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    waiting = [(place, value)]
    while waiting:
        place, value = waiting.pop()
        yield place, value
        if isinstance(value, dict):
            waiting += [(f"{place}/{key[:80]}", child) for key, child in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [(f"{place}/{index}", child) for index, child in reversed(list(enumerate(value)))]


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict | list):
        kind = "an object" if isinstance(value, dict) else "an array"
        return kind if value else f"{kind} without elements"
    return repr(value)[:60]
