"""A plain CSV, for any benchmark that prints numbers: `metric,unit,better,value` and perhaps `run`. Pure.

    metric,unit,better,value,run
    mybench.ops_per_sec,ops/s,higher,70412,1

`better` is higher, lower or empty. Rows of one metric are samples; with a `run`, one value a run.
"""

import csv
import io

from bot.results.formats.benchmark import HIGHER, LOWER, Document, Metric, Reading, Test

NAME = "CSV with metric,unit,better,value"
_COLUMNS = ("metric", "unit", "better", "value")


def recognises(document: Document) -> bool:
    return tuple(_header(document))[:4] == _COLUMNS


def _header(document: Document) -> list[str]:
    return [name.strip().lower() for name in document.text.lstrip("\ufeff").partition("\n")[0].split(",")]


def read(document: Document) -> Reading:
    names = _header(document)
    if names[4:] not in ([], ["run"]):
        document.fault("line 1", f"expected metric,unit,better,value[,run]; found {','.join(names)}")
    samples: dict[str, list[float]] = {}
    units: dict[str, tuple[str, str]] = {}
    runs: set[tuple[str, str]] = set()
    reader = csv.reader(io.StringIO(document.text.lstrip("\ufeff")))
    try:
        next(reader)
        for row in reader:
            place = f"line {reader.line_num}"
            if not any(cell.strip() for cell in row):
                continue
            cells = [cell.strip() for cell in row]
            if len(cells) != len(names):
                document.fault(place, f"expected {len(names)} values, found {len(cells)}")
                continue
            metric, unit, better, text, *run = cells
            if not metric:
                document.fault(place, "expected the name of a metric, found none")
                continue
            if better not in (HIGHER, LOWER, ""):
                document.fault(place, f"expected better to be higher, lower or empty; found {better[:40]!r}")
            if units.setdefault(metric, (unit, better)) != (unit, better):
                what = "units" if units[metric][0] != unit else "directions"
                first, second = (units[metric][0], unit) if what == "units" else (units[metric][1], better)
                document.fault(place, f"mixed {what} of {metric[:80]}: {first or 'none'} and {second or 'none'}")
            if run and (metric, run[0]) in runs:
                document.fault(place, f"run {run[0][:40]} of {metric[:80]} stands twice")
            runs.update((metric, name) for name in run)
            number = document.number(text, place)
            if number is not None:
                samples.setdefault(metric, []).append(number)
    except csv.Error as error:
        document.fault(f"line {reader.line_num}", f"expected CSV: {error}")
    metrics = tuple(Metric(name, tuple(values), *units[name]) for name, values in samples.items())
    suite = next(iter(samples), "").partition(".")[0] or "benchmark"
    return Reading((Test(suite, {}, metrics),))
