"""hackbench of rt-tests: its text, one run or several after each other. Pure."""

import re

from bot.results.formats.benchmark import LOWER, Document, Metric, Reading, Test

NAME = "hackbench"
_RUN = re.compile(r"Running in (process|thread(?:ed)?) mode with (\d+) groups? using (\d+) file descriptors each")
_WORK = re.compile(r"Each sender will pass (\d+) messages of (\d+) bytes")
_TIME = re.compile(r"Time: (\S+)$")


def recognises(document: Document) -> bool:
    return bool(_RUN.search(document.text[:5000]))


def read(document: Document) -> Reading:
    samples: dict[tuple[tuple[str, str], ...], list[float]] = {}
    params: dict[str, str] = {}
    started = 0  # the line of a run whose time is not known yet
    for number, line in document.lines:
        if match := _RUN.search(line):
            if started:
                document.fault(f"line {started}", "a run cut short: expected its Time, found another run")
            started = number
            params = {"mode": match[1].replace("threaded", "thread"), "groups": match[2], "fds": match[3]}
        elif match := _WORK.search(line):
            params |= {"messages": match[1], "bytes": match[2]}
        elif match := _TIME.match(line.strip()):
            seconds = None
            if re.fullmatch(r"\d+\.\d{0,2}", match[1]):
                document.fault(f"line {number}", f"a run cut short: expected three decimals, found {match[1]!r}")
            else:
                seconds = document.number(match[1], f"line {number}", above=0)
            if not started:
                document.fault(f"line {number}", "expected the line `Running in …` before a Time")
            if seconds is not None:
                samples.setdefault(tuple(params.items()), []).append(seconds)
            started = 0
    if started:
        document.fault(f"line {started}", "a run cut short: expected its Time, found the end of the file")
    return Reading(
        tuple(
            Test("hackbench", dict(key), (Metric("hackbench.time", tuple(seconds), "s", LOWER),))
            for key, seconds in samples.items()
        ),
        tool="hackbench",
    )
