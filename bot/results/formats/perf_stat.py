"""perf stat: the JSON of `-j` and the CSV of `-x,`, one file a run of a fixed command. Pure.

With `-r N` perf writes the means of N runs but not N, so a file is one run all the same: use one file a run. Events
that the machine can't count are left out. For fixed work, less time, fewer cycles and instructions are better.
"""

import csv
import io
import json
import re
from collections.abc import Iterator

from bot.results.formats.benchmark import LOWER, Document, Metric, Reading, Test, words_of

NAME = "perf stat -j or -x"
_STARTED = "# started on "
_NOT_COUNTED = ("<not supported>", "<not counted>")
_COST = re.compile(
    r"(?:task|cpu)-clock|duration_time|(?:user|system)_time|(?:cpu-)?cycles|(?:ref-cycles)|instructions|page-faults"
)


def recognises(document: Document) -> bool:
    lines = [line for line in document.text[:20_000].splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        return document.text.startswith(_STARTED)
    if lines[0].startswith("{"):
        return '"counter-value"' in lines[0]
    cells = lines[0].split(",")
    return document.text.startswith(_STARTED) or len(cells) >= 7


def read(document: Document) -> Reading:
    metrics: dict[str, Metric] = {}
    counted = False
    for place, event, value, unit in _rows(document):
        event = event.removesuffix(":u").removesuffix(":k") if event.count(":") == 1 else event
        counted = True
        if value in _NOT_COUNTED:
            continue
        number = document.number(value, place, lowest=0)
        if event in metrics:
            document.fault(place, f"the event {event[:60]} stands twice: expected one file a run")
        if number is not None:
            metrics[event] = Metric(f"command.{event}", (number,), unit, LOWER if _COST.fullmatch(event) else "")
    if counted and not metrics and not document.faults:
        document.fault("", "expected counts, found only events that this machine can't count: try -e task-clock")
    return Reading((Test("command", {}, tuple(metrics.values())),), tool="perf stat")


def _rows(document: Document) -> Iterator[tuple[str, str, str, str]]:
    """Yield place, event, value and unit of each count."""
    for number, line in document.lines:
        place = f"line {number}"
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("{"):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                document.fault(place, f"not JSON, or cut short: {words_of(error)}")
                continue
            if "interval" in row:
                document.fault(place, "expected the counts of a whole run, found those of an interval (perf stat -I)")
            elif "event" not in row and "counter-value" not in row and "metric-value" in row:
                continue  # a derived metric on a line of its own
            elif not isinstance(row.get("event"), str):
                document.fault(place, "expected the name of an event, found none")
            else:
                unit = row.get("unit")
                yield place, row["event"], str(row.get("counter-value", "")), unit if isinstance(unit, str) else ""
            continue
        yield from _row(document, line, place)


def _row(document: Document, line: str, place: str) -> Iterator[tuple[str, str, str, str]]:
    try:
        cells = next(csv.reader(io.StringIO(line)), [])
    except csv.Error as error:
        document.fault(place, f"expected CSV: {error}")
        return
    if len(cells) < 3:
        document.fault(place, f"expected value,unit,event,…; found {line[:60]!r}: a run cut short?")
    elif re.fullmatch(r"\s*\d+\.\d{9}", cells[0]) and len(cells) > 7:
        document.fault(place, "expected the counts of a whole run, found those of an interval (perf stat -I)")
    elif re.fullmatch(r"\d+", cells[1].strip()):
        document.fault(place, f"expected a unit, found {cells[1][:20]!r}: a decimal comma? Run perf with LC_ALL=C")
    elif cells[2]:
        yield place, cells[2], cells[0].strip(), cells[1]
    elif cells[0].strip():
        document.fault(place, "expected the name of an event, found none")
