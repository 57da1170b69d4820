"""will-it-scale: the CSV of runtest.py, one file a run, called after its test case: `page_fault1.csv`. Pure.

Per number of tasks it has the operations of processes and of threads a second. As in lkp-tests, the metrics are these
divided by the tasks.
"""

import csv
import io
from pathlib import PurePath

from bot.results.formats.benchmark import HIGHER, Document, Metric, Reading, Test

NAME = "will-it-scale CSV"
_COLUMNS = ["tasks", "processes", "processes_idle", "threads", "threads_idle", "linear"]


def recognises(document: Document) -> bool:
    return [name.strip() for name in document.text.lstrip("\ufeff").partition("\n")[0].split(",")] == _COLUMNS


def read(document: Document) -> Reading:
    case = PurePath(document.name).stem
    case = case.rstrip("0123456789").rstrip("-_.") if "-" in case or "." in case else case  # page_fault1-2: its 2nd run
    tests, seen = [], set()
    reader = csv.reader(io.StringIO(document.text.lstrip("\ufeff")))
    try:
        next(reader)
        for row in reader:
            place = f"line {reader.line_num}"
            if not row:
                continue
            if len(row) != len(_COLUMNS):
                document.fault(place, f"expected {len(_COLUMNS)} values, found {len(row)}: a run cut short?")
                continue
            tasks, processes, _, threads, _, _ = (document.number(cell.strip(), place, lowest=0) for cell in row)
            if tasks in seen:
                document.fault(place, f"{tasks:g} tasks stand twice")
            seen.add(tasks)
            if not tasks or processes is None or threads is None:
                continue  # the row of 0 tasks is all zeros
            for mode, name, total in (("process", "per_process_ops", processes), ("thread", "per_thread_ops", threads)):
                if total:
                    metric = Metric(f"will-it-scale.{name}", (total / tasks,), "ops/s", HIGHER)
                    tests.append(
                        Test("will-it-scale", {"test": case, "mode": mode, "nr_task": f"{tasks:g}"}, (metric,))
                    )
    except csv.Error as error:
        document.fault(f"line {reader.line_num}", f"expected CSV: {error}")
    return Reading(tuple(tests), tool="will-it-scale")
