"""netperf: the text of its classic tests, and the KEYWORD=value lines of `-- -k`. Names as in lkp-tests. Pure."""

import re

from bot.results.formats.benchmark import HIGHER, LOWER, Document, Metric, Reading, Test

NAME = "netperf"
_TITLE = re.compile(
    r"(?:MIGRATED )?(TCP|UDP|SCTP|DCCP)(6)? (STREAM|MAERTS|SENDFILE|REQUEST/RESPONSE|CONNECT/REQUEST\w*)\w* TEST"
)
_SHORT = {"REQUEST/RESPONSE": "RR", "CONNECT/REQUEST": "CRR"}
_MBIT = "10^6bits/s"
_KEY = re.compile(r"([A-Z][A-Z_0-9]+)=(.*)$")


def recognises(document: Document) -> bool:
    head = document.text[:5000]
    return bool(_TITLE.search(head)) or ("THROUGHPUT=" in head and "THROUGHPUT_UNITS=" in head)


def read(document: Document) -> Reading:
    samples: dict[tuple[str, str], list[float]] = {}
    test, at, unit = "", 0, ""  # of the run whose number is still to come
    keys: dict[str, str] = {}
    for number, line in document.lines:
        if match := _TITLE.search(line):
            if test:
                document.fault(f"line {at}", f"a run of {test} cut short: expected its throughput, found another run")
            test = f"{match[1]}{match[2] or ''}_{_SHORT.get(match[3], match[3])}"
            at, unit = number, ""
        elif match := _KEY.match(line.strip()):
            if match[1] in keys:
                document.fault(f"line {number}", f"{match[1]} stands twice")
            keys[match[1]] = match[2]
        elif _MBIT in line:
            unit = "Throughput_Mbps"
        elif "per sec" in line:
            unit = "Throughput_tps"
        elif unit and line.strip():
            number_or_none = document.number(line.split()[-1], f"line {number}", lowest=0)
            if number_or_none is not None and test:
                samples.setdefault((test, unit), []).append(number_or_none)
            elif not test:
                document.fault(f"line {number}", "expected the title of the test before its numbers")
            test, unit = "", ""
    if test:
        document.fault(f"line {at}", f"a run of {test} cut short: expected its throughput, found the end of the file")
    tests = [
        Test(
            "netperf",
            {"test": name},
            (Metric(f"netperf.{unit}", tuple(values), "Mbit/s" if "M" in unit else "1/s", HIGHER),),
        )
        for (name, unit), values in samples.items()
    ]
    return Reading((*tests, *_of_keys(document, keys)), tool="netperf")


def _of_keys(document: Document, keys: dict[str, str]) -> list[Test]:
    """Return the test of an omni run (`-- -k THROUGHPUT,THROUGHPUT_UNITS,…`)."""
    if not keys:
        return []
    unit = keys.get("THROUGHPUT_UNITS", "")
    name = "Throughput_Mbps" if "bits/s" in unit else "Throughput_tps"
    if unit not in ("10^6bits/s", "Trans/s"):
        document.fault("THROUGHPUT_UNITS", f"expected 10^6bits/s or Trans/s, found {unit[:40]!r}")
    value = document.number(keys.get("THROUGHPUT"), "THROUGHPUT", lowest=0)
    metrics = [Metric(f"netperf.{name}", (value,), unit, HIGHER)] if value is not None else []
    for key in ("MEAN_LATENCY", "P50_LATENCY", "P90_LATENCY", "P99_LATENCY"):
        if key in keys and (number := document.number(keys[key], key, lowest=0)) is not None:
            metrics.append(Metric(f"netperf.{key.lower()}_us", (number,), "us", LOWER))
    return [Test("netperf", {"test": keys.get("PROTOCOL", "omni") or "omni"}, tuple(metrics))]
