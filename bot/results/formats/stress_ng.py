"""stress-ng: the YAML of `--yaml FILE --metrics`, one file a run. Each stressor is a test. Pure.

As in lkp-tests, `ops_per_sec` is the bogo operations a second of real time.
"""

from bot.results.formats.benchmark import HIGHER, Document, Metric, Reading, Test
from bot.results.formats.lkp import read_yaml
from bot.results.values import RejectedInput

NAME = "stress-ng YAML"
_REAL = "bogo-ops-per-second-real-time"
_IGNORED = ("stressor", "bogo-ops", "bogo-ops-per-second-usr-sys-time", "max-rss", _REAL)
_TIMES = ("wall-clock-time", "user-time", "system-time", "cpu-usage-per-instance")


def recognises(document: Document) -> bool:
    return "stress-ng-version:" in document.text[:2000]


def read(document: Document) -> Reading:
    try:
        value = read_yaml(document.text, "")
    except RejectedInput as rejection:
        document.fault(rejection.where.removeprefix(", "), rejection.why)
        return Reading(())
    if not document.text.rstrip().endswith("\n..."):
        document.fault("", "a run cut short: expected the three dots that end the file")
    document_root = document.mapping(value, "")
    system = document.mapping(document_root.get("system-info"), "/system-info")
    tests, seen = [], set()
    for index, element in enumerate(document.sequence(document_root.get("metrics"), "/metrics")):
        place = f"/metrics/{index}"
        stressor = document.mapping(element, place)
        if not stressor:
            continue
        name = document.string(stressor.get("stressor"), f"{place}/stressor")
        if name in seen:
            document.fault(f"{place}/stressor", f"the stressor {name[:60]!r} stands twice")
        seen.add(name)
        rate = document.number(stressor.get(_REAL), f"{place}/{_REAL}", lowest=0)
        metrics = [Metric(f"stress-ng.{name}.ops_per_sec", (rate,), "ops/s", HIGHER)] if rate is not None else []
        for key, raw in stressor.items():
            if key in _IGNORED or not isinstance(key, str):
                continue
            number = document.number(raw, f"{place}/{key[:80]}")
            if number is not None and key not in _TIMES:
                metrics.append(Metric(f"stress-ng.{name}.{key}", (number,)))
        tests.append(Test("stress-ng", {"test": name}, tuple(metrics)))
    cpus = str(system.get("cpus-online", ""))
    return Reading(
        tuple(tests),
        tool=f"stress-ng {system.get('stress-ng-version', '')}".strip()[:80],
        kernel=str(system.get("release", ""))[:100],
        machine=str(system.get("hostname", ""))[:200],
        cpus=int(cpus) if cpus.isdecimal() and cpus.isascii() and int(cpus[:7]) > 0 else None,
    )
