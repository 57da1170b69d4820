"""KTAP of kernel selftests and KUnit, as far as it has numbers. Pure.

The format is Documentation/dev-tools/ktap.rst. A number stands in the directive of a test (`ok 3 page_fault # 812 ns`)
or in a diagnostic line (`# throughput: 1034 MB/s`); a count without a unit is one too. Skipped tests are left out, a
failed test or a plan with more tests than ran refuses the file.
"""

import re

from bot.results.formats.benchmark import Document, Metric, Reading, Test

NAME = "KTAP with numbers"
_VERSION = re.compile(r"^\s*(?:K?TAP version (\d+))")
_PLAN = re.compile(r"^(\s*)1\.\.(\d+)")
_RESULT = re.compile(r"^(\s*)(not )?ok \d+([^#]*)(?:#(.*))?$")
_VALUE = r"([-+]?(?:\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|nan|inf))\s*([A-Za-z%][\w%/.^]*)?"
_DIRECTIVE = re.compile(rf"^(?:time[=:]\s*)?{_VALUE}$", re.IGNORECASE)
_DIAGNOSTIC = re.compile(rf"^\s*#\s*([A-Za-z][\w .()/-]{{0,80}}?)\s*[:=]\s*{_VALUE}$", re.IGNORECASE)
_UNITS = {
    "nsec": "ns",
    "nsecs": "ns",
    "usec": "us",
    "usecs": "us",
    "msec": "ms",
    "sec": "s",
    "secs": "s",
    "seconds": "s",
}
_NO_METRIC = re.compile(
    r"(?:totals?|pass|fail|skip|xfail|xpass|error|timeout|subtest|kselftest|cpus?|pid|seed)\b", re.IGNORECASE
)


def recognises(document: Document) -> bool:
    return any(_VERSION.match(line) for line in document.text[:3000].splitlines())


def read(document: Document) -> Reading:
    numbers = _Numbers(document)
    plans: dict[int, tuple[int, int]] = {}  # by indentation: the line of the plan, and how many tests are still to come
    for number, line in document.lines:
        if match := _PLAN.match(line):
            plans[len(match[1])] = (number, int(match[2][:9]))
        elif match := _RESULT.match(line):
            indent, failed, described, directive = match.groups()
            name = described.strip().removeprefix("-").strip()
            if len(indent) in plans:
                line_of_plan, rest = plans[len(indent)]
                plans[len(indent)] = (line_of_plan, rest - 1)
            if failed:
                document.fault(f"line {number}", f"{name[:80] or 'a test'} failed: expected ok")
            elif value := _DIRECTIVE.match((directive or "").strip()):
                numbers.add(name or "test", value[1], value[2], number)
        elif (match := _DIAGNOSTIC.match(line)) and not _NO_METRIC.match(match[1]):
            numbers.add(match[1], match[2], match[3], number)
    for line_of_plan, rest in plans.values():
        if rest > 0:
            document.fault(f"line {line_of_plan}", f"a run cut short: {rest} of the planned tests are missing")
    metrics = tuple(
        Metric(f"kselftest.{name}", tuple(values), numbers.units[name]) for name, values in numbers.samples.items()
    )
    if not metrics and not document.faults:
        document.fault("", "expected tests with numbers, found none")
    return Reading((Test("kselftest", {}, metrics),), tool="KTAP")


class _Numbers:
    """The samples by metric, each with its unit."""

    def __init__(self, document: Document) -> None:
        self.samples: dict[str, list[float]] = {}
        self.units: dict[str, str] = {}
        self._document = document

    def add(self, name: str, text: str, unit: str | None, line: int) -> None:
        name = "_".join(name.split())
        value = self._document.number(text.replace(",", ""), f"line {line}")
        unit = _UNITS.get((unit or "").lower(), unit or "")
        before = self.units.setdefault(name, unit)
        if before != unit:
            self._document.fault(f"line {line}", f"mixed units of {name[:60]}: {before or 'none'} and {unit or 'none'}")
        if value is not None:
            self.samples.setdefault(name, []).append(value)
