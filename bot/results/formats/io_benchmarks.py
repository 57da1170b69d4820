"""Benchmarks of disks and networks. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from bot.results.formats.benchmark import HIGHER, LOWER, Document, Format, Metric, Reading, Samples, Test

# --- fio ---

_DIRECTIONS = ("read", "write", "trim")
# What tells one job from another; the rest of a job's options says where it ran.
_OPTIONS = (
    "rw", "bs", "bsrange", "bssplit", "iodepth", "iodepth_batch", "numjobs", "ioengine", "direct", "buffered",
    "sync", "size", "filesize", "nrfiles", "rwmixread", "rwmixwrite", "fsync", "fdatasync", "end_fsync", "rate",
    "rate_iops", "thinktime", "random_distribution", "percentage_random", "norandommap", "loops", "verify", "hipri",
    "thread",
)  # fmt: skip
_ALIASES = {"readwrite": "rw", "blocksize": "bs", "blocksize_range": "bsrange", "nr_files": "nrfiles"}
_DIGITS = 12  # of an option's number; Python refuses to read thousands of them
_RUNTIME = re.compile(rf"(\d{{1,{_DIGITS}}})(us|ms|s|m|h|d|)", re.IGNORECASE)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_CUT_SHORT = 0.9  # of the wanted run time


def is_fio(document: Document) -> bool:
    return isinstance(document.json, dict) and "fio version" in document.json


def read_fio(document: Document) -> Reading:
    """fio: the JSON of `--output-format=json` and `json+`, one file a run.

    Each job is a test. Its metrics have the names and units that lkp-tests gives them, so that they stand on the same
    curves: `fio.read_bw_MBps` counts 2^20 bytes as a MB, latencies are in microseconds. fio 2 wrote them so, fio 3
    writes `clat_ns`. The histogram of json+ is not read.
    """
    value = document.json
    common = value.get("global options")
    jobs = value.get("jobs")
    listed = jobs if isinstance(jobs, list) else ()
    names = Counter(str(job.get("jobname")) for job in listed if isinstance(job, dict))
    tests = []
    numbers: Counter[str] = Counter()
    for place, job in document.objects(jobs, "/jobs"):
        name = document.string(job.get("jobname"), f"{place}/jobname")
        own = job.get("job options")
        given = {**(common if isinstance(common, dict) else {}), **(own if isinstance(own, dict) else {})}
        options = {_ALIASES.get(key, key): value for key, value in given.items()}
        is_flag = ("", None)  # as the value of an option that takes none
        params = {"test": name}
        params |= {key: "1" if options[key] in is_flag else str(options[key]) for key in _OPTIONS if key in options}
        if names[name] > 1:
            numbers[name] += 1
            params["job"] = str(numbers[name])  # numjobs without group_reporting
            copies = str(options.get("numjobs", "1"))
            if not copies.isdecimal() or numbers[name] > int(copies[:_DIGITS]):
                document.fault(f"{place}/jobname", f"{names[name]} jobs are called {name!r}: give each its own name")
        _check_fio_run(document, job, options, place)
        metrics = tuple(_fio_metrics(document, job, place))
        if not metrics and not document.faults:
            document.fault(place, f"the job {name!r} did no I/O")
        tests.append(Test("fio", params, metrics))
    return Reading(tuple(tests), tool=str(value["fio version"])[:80])


def _check_fio_run(document: Document, job: Mapping[str, Any], options: Mapping[str, Any], place: str) -> None:
    if job.get("error"):
        document.fault(f"{place}/error", f"the job failed with error {job['error']}: expected 0")
    wanted, ran = _RUNTIME.fullmatch(str(options.get("runtime", ""))), job.get("job_runtime")
    if wanted and "time_based" in options and isinstance(ran, int):
        seconds = int(wanted[1]) * _SECONDS[wanted[2].lower()]
        if ran < 1000 * _CUT_SHORT * seconds:
            document.fault(f"{place}/job_runtime", f"a run cut short: expected {seconds:g} s, found {ran / 1000:g} s")


def _fio_metrics(document: Document, job: Mapping[str, Any], place: str) -> Iterator[Metric]:
    for direction in _DIRECTIONS:
        at = f"{place}/{direction}"
        if direction not in job:
            if direction != "trim":
                document.fault(at, "expected an object, found none")
            continue
        side = document.mapping(job[direction], at)
        if not side or not (side.get("total_ios") or side.get("io_bytes")):
            continue  # the job does none of these
        speed = side.get("bw")  # KiB/s, in every version
        yield from document.metric(f"fio.{direction}_bw_MBps", speed, f"{at}/bw", "MB/s", HIGHER, scale=1024)
        rate = document.number(side.get("iops"), f"{at}/iops", above=0)
        if rate is not None:
            yield Metric(f"fio.{direction}_iops", (rate,), "IOPS", HIGHER)
        yield from _fio_latencies(document, side, f"fio.{direction}", at)


def _fio_latencies(document: Document, side: Mapping[str, Any], prefix: str, place: str) -> Iterator[Metric]:
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


# --- iperf3 ---


def is_iperf3(document: Document) -> bool:
    value = document.json
    start = value.get("start") if isinstance(value, dict) else None
    return isinstance(start, dict) and "iperf" in str(start.get("version", ""))


def read_iperf3(document: Document) -> Reading:
    """iperf3: the JSON of `-J`, one file a run. Its names are those of lkp-tests: `tcp.receiver.bps`."""
    value, start = document.json, document.json["start"]
    if value.get("error"):
        document.fault("/error", f"the run failed: {str(value['error'])[:200]}")
    setup: Mapping[str, Any] = {}
    if "test_start" in start or not document.faults:
        setup = document.mapping(start.get("test_start"), "/start/test_start")
    protocol = str(setup.get("protocol", "TCP")).lower()
    names = {"streams": "num_streams", "block_size": "blksize", "reverse": "reverse", "bitrate": "target_bitrate"}
    params = {"protocol": protocol, **{name: str(setup[key]) for name, key in names.items() if setup.get(key)}}
    end = document.mapping(value.get("end"), "/end")
    metrics: list[Metric] = []
    if end and not any(name in end for name in ("sum_sent", "sum_received", "sum")):
        document.fault("/end", "a run cut short: expected sum_sent and sum_received, found neither")
    for field, name in (("sum_sent", "sender"), ("sum_received", "receiver")):
        if field in end:
            side = document.mapping(end[field], f"/end/{field}")
            place, rate = f"/end/{field}/bits_per_second", side.get("bits_per_second")
            metrics += document.metric(f"iperf3.{protocol}.{name}.bps", rate, place, "bit/s", HIGHER)
    sent, received = (end.get(name) for name in ("sum_sent", "sum"))
    counts = ((sent, "retransmits", ""), (received, "jitter_ms", "ms"), (received, "lost_percent", "%"))
    for part, field, unit in counts:
        if isinstance(part, dict) and field in part:
            metrics += document.metric(f"iperf3.{protocol}.{field}", part[field], f"/end, {field}", unit, LOWER)
    system = str(start.get("system_info", "")).split()
    return Reading(
        (Test("iperf3", params, tuple(metrics)),),
        tool=str(start["version"])[:80],
        kernel=system[2][:100] if len(system) > 2 and system[0] == "Linux" else "",
        machine=system[1][:200] if len(system) > 2 else "",
    )


# --- netperf ---

_TITLE = re.compile(
    r"(?:MIGRATED )?(TCP|UDP|SCTP|DCCP)(6)? (STREAM|MAERTS|SENDFILE|REQUEST/RESPONSE|CONNECT/REQUEST\w*)\w* TEST"
)
_SHORT = {"REQUEST/RESPONSE": "RR", "CONNECT/REQUEST": "CRR"}
_MBIT = "10^6bits/s"
_COLUMN = re.compile(r"\(?per sec\)?|% ?\S+|\S+")  # in the line of units above the numbers
_KEY = re.compile(r"([A-Z][A-Z_0-9]+)=(.*)$")


def is_netperf(document: Document) -> bool:
    head = document.text[:5000]
    return bool(_TITLE.search(head)) or ("THROUGHPUT=" in head and "THROUGHPUT_UNITS=" in head)


def read_netperf(document: Document) -> Reading:
    """netperf: the text of its classic tests, and the KEYWORD=value lines of `-- -k`. Names as in lkp-tests."""
    samples = Samples()
    test, at, unit = "", 0, ""  # of the run whose number is still to come
    column = 0  # of the throughput; with -c and -C, the load of the processors follows
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
        elif _MBIT in line or "per sec" in line:
            unit = "Throughput_Mbps" if _MBIT in line else "Throughput_tps"
            titles = _COLUMN.findall(line)
            column = next((number for number, title in enumerate(titles) if _MBIT in title or "per sec" in title), -1)
        elif unit and (cells := line.split()):
            value = None
            if column < len(cells):
                value = document.number(cells[column], f"line {number}", lowest=0)
            else:
                document.fault(f"line {number}", f"expected the throughput in column {column + 1}, found {len(cells)}")
            if not test:
                document.fault(f"line {number}", "expected the title of the test before its numbers")
            in_unit = "Mbit/s" if "M" in unit else "1/s"
            samples.add("netperf", {"test": test}, f"netperf.{unit}", value, in_unit, HIGHER)
            test, unit = "", ""
    if test:
        document.fault(f"line {at}", f"a run of {test} cut short: expected its throughput, found the end of the file")
    return Reading((*samples.tests(), *_of_keys(document, keys)), tool="netperf")


def _of_keys(document: Document, keys: dict[str, str]) -> list[Test]:
    """Return the test of an omni run (`-- -k THROUGHPUT,THROUGHPUT_UNITS,…`)."""
    if not keys:
        return []
    unit = keys.get("THROUGHPUT_UNITS", "")
    name = "Throughput_Mbps" if "bits/s" in unit else "Throughput_tps"
    if unit not in ("10^6bits/s", "Trans/s"):
        document.fault("THROUGHPUT_UNITS", f"expected 10^6bits/s or Trans/s, found {unit[:40]!r}")
    in_unit = {"10^6bits/s": "Mbit/s", "Trans/s": "1/s"}.get(unit, unit)
    metrics = [*document.metric(f"netperf.{name}", keys.get("THROUGHPUT"), "THROUGHPUT", in_unit, HIGHER)]
    for key in ("MEAN_LATENCY", "P50_LATENCY", "P90_LATENCY", "P99_LATENCY"):
        if key in keys:
            metrics += document.metric(f"netperf.{key.lower()}_us", keys[key], key, "us", LOWER)
    return [Test("netperf", {"test": keys.get("PROTOCOL", "omni") or "omni"}, tuple(metrics))]


FORMATS = (
    Format("fio JSON", is_fio, read_fio),
    # Where a run has several streams it repeats what it knows of their sockets
    Format("iperf3 JSON", is_iperf3, read_iperf3, repeats=("sock_bufsize", "sndbuf_actual", "rcvbuf_actual")),
    Format("netperf", is_netperf, read_netperf),
)
