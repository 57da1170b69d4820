"""fio: the JSON of `--output-format=json` and `json+`, one file a run. Pure.

Each job is a test. Its metrics have the names and units that lkp-tests gives them, so that they stand on the same
curves: `fio.read_bw_MBps` is in MiB/s, latencies are in microseconds. fio 2 wrote them so, fio 3 writes `clat_ns`.
The histogram of json+ is not read.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from bot.results.formats.benchmark import HIGHER, LOWER, Document, Metric, Reading, Test

NAME = "fio JSON"
_DIRECTIONS = ("read", "write", "trim")
# What tells one job from another; the rest of a job's options says where it ran.
_OPTIONS = ("rw", "bs", "iodepth", "numjobs", "ioengine", "direct", "size", "rwmixread", "fsync", "rate_iops")
_DIGITS = 12  # of an option's number; Python refuses to read thousands of them
_CUT_SHORT = 0.9  # of the wanted run time


def recognises(document: Document) -> bool:
    return isinstance(document.json, dict) and "fio version" in document.json


def read(document: Document) -> Reading:
    value = document.json
    common = value.get("global options")
    jobs = document.sequence(value.get("jobs"), "/jobs")
    names = Counter(str(job.get("jobname")) for job in jobs if isinstance(job, dict))
    tests = []
    numbers: Counter[str] = Counter()
    for index, element in enumerate(jobs):
        place = f"/jobs/{index}"
        job = document.mapping(element, place)
        if not job:
            continue
        name = document.string(job.get("jobname"), f"{place}/jobname")
        own = job.get("job options")
        options = {**(common if isinstance(common, dict) else {}), **(own if isinstance(own, dict) else {})}
        params = {"test": name, **{key: str(options[key]) for key in _OPTIONS if options.get(key)}}
        if names[name] > 1:
            numbers[name] += 1
            params["job"] = str(numbers[name])  # numjobs without group_reporting
            jobs = str(options.get("numjobs", "1"))
            if not jobs.isdecimal() or numbers[name] > int(jobs[:_DIGITS]):
                document.fault(f"{place}/jobname", f"{names[name]} jobs are called {name!r}: give each its own name")
        _check_run(document, job, options, place)
        metrics = tuple(_metrics(document, job, place))
        if not metrics and not document.faults:
            document.fault(place, f"the job {name!r} did no I/O")
        tests.append(Test("fio", params, metrics))
    return Reading(tuple(tests), tool=str(value["fio version"])[:80])


def _check_run(document: Document, job: Mapping[str, Any], options: Mapping[str, Any], place: str) -> None:
    if job.get("error"):
        document.fault(f"{place}/error", f"the job failed with error {job['error']}: expected 0")
    wanted, ran = str(options.get("runtime", "")).removesuffix("s"), job.get("job_runtime")
    if (
        wanted.isdecimal()
        and "time_based" in options
        and isinstance(ran, int)
        and ran < 1000 * _CUT_SHORT * int(wanted[:_DIGITS])
    ):
        document.fault(
            f"{place}/job_runtime", f"a run cut short: expected {wanted[:_DIGITS]} s, found {ran / 1000:g} s"
        )


def _metrics(document: Document, job: Mapping[str, Any], place: str) -> Iterator[Metric]:
    for direction in _DIRECTIONS:
        at = f"{place}/{direction}"
        if direction not in job:
            if direction != "trim":
                document.fault(at, "expected an object, found none")
            continue
        side = document.mapping(job[direction], at)
        if not side or not (side.get("total_ios") or side.get("io_bytes")):
            continue  # the job does none of these
        speed = document.number(side.get("bw"), f"{at}/bw", lowest=0)  # KiB/s, in every version
        if speed is not None:
            yield Metric(f"fio.{direction}_bw_MBps", (speed / 1024,), "MiB/s", HIGHER)
        rate = document.number(side.get("iops"), f"{at}/iops", above=0)
        if rate is not None:
            yield Metric(f"fio.{direction}_iops", (rate,), "IOPS", HIGHER)
        yield from _latencies(document, side, f"fio.{direction}", at)


def _latencies(document: Document, side: Mapping[str, Any], prefix: str, place: str) -> Iterator[Metric]:
    for kind in ("slat", "clat", "lat"):
        field, scale = (f"{kind}_ns", 1000.0) if f"{kind}_ns" in side else (kind, 1.0)
        if field not in side:
            continue
        times = document.mapping(side[field], f"{place}/{field}")
        if not times or times.get("N") == 0:
            continue
        mean = document.number(times.get("mean"), f"{place}/{field}/mean", lowest=0)
        if mean:  # 0: not measured
            yield Metric(f"{prefix}_{kind}_mean_us", (mean / scale,), "us", LOWER)
        percentiles = times.get("percentile")
        for name, raw in percentiles.items() if isinstance(percentiles, dict) else ():
            percent = document.number(name, f"{place}/{field}/percentile/{name[:20]}")
            number = document.number(raw, f"{place}/{field}/percentile/{name[:20]}", lowest=0)
            if percent is not None and number:
                yield Metric(f"{prefix}_{kind}_{percent:g}%_us", (number / scale,), "us", LOWER)
