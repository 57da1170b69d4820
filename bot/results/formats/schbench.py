"""schbench: its text, one file a run. The last report of a run counts, the earlier ones are its progress. Pure."""

import re

from bot.results.formats.benchmark import HIGHER, LOWER, Document, Metric, Reading, Test

NAME = "schbench"
_SECTION = re.compile(r"^\s*(?:(Wakeup|Request) )?Latenc(?:y|ies) percentiles \((\w+)\)", re.IGNORECASE)
_RATES = re.compile(r"^\s*RPS percentiles")
_PERCENTILE = re.compile(r"^[\s*]*(\d+\.\d+)th: (\S+)")
_AVERAGE = re.compile(r"^\s*average rps: (\S+)")
_UNITS = {"usec": "us", "usecs": "us", "us": "us", "msec": "ms", "ms": "ms", "nsec": "ns"}


def recognises(document: Document) -> bool:
    return any(_SECTION.match(line) for line in document.text[:5000].splitlines())


def read(document: Document) -> Reading:
    metrics: dict[str, Metric] = {}
    section, unit, at, has_numbers = "", "us", 0, True
    for number, line in document.lines:
        if match := _SECTION.match(line):
            if not has_numbers:
                document.fault(f"line {at}", "a run cut short: expected percentiles, found another section")
            section, at, has_numbers = f"{(match[1] or 'wakeup').lower()}_latency", number, False
            unit = _UNITS.get(match[2].lower(), "")
            if not unit:
                document.fault(f"line {number}", f"expected usec, msec or nsec, found {match[2]!r}")
        elif _RATES.match(line):
            section = ""
        elif (match := _PERCENTILE.match(line)) and section:
            value = document.number(match[2], f"line {number}", lowest=0)
            has_numbers = True
            if value is not None:
                name = f"schbench.{section}_{match[1]}th_{unit}"
                metrics[name] = Metric(name, (value,), unit, LOWER)
        elif match := _AVERAGE.match(line):
            value = document.number(match[1], f"line {number}", lowest=0)
            if value is not None:
                metrics["rps"] = Metric("schbench.requests_per_sec", (value,), "1/s", HIGHER)
    if not has_numbers:
        document.fault(f"line {at}", "a run cut short: expected percentiles, found the end of the file")
    return Reading((Test("schbench", {}, tuple(metrics.values())),), tool="schbench")
