"""Lines that no robot writes, in a mail that anybody may send in its name: reading them takes no longer than others.

Before, one line of 20,000 blanks kept the reader busy for an hour, and with it all other mail.
"""

from __future__ import annotations

import pytest

from bot.mail.message import parse
from bot.robot_reports.report import find_report

CLAIM = """\
kernel test robot noticed a {percent}% regression of a.b on:

commit: 3b1f0c9d2e7f3b1f0c9d2e7f3b1f0c9d2e7f3b1f ("mm: a")
"""


def report(lines: str, percent: str = "-5.0") -> bytes:
    head = "From: kernel test robot <lkp@intel.com>\nSubject: 3b1f0c9d2e: a.b -5.0% regression\nMessage-ID: <a@b>\n\n"
    return f"{head}{CLAIM.format(percent=percent)}{lines}\n".encode()


@pytest.mark.parametrize(
    "line",
    [
        "|a|" + " " * 50_000 + "x",
        "| " + " " * 50_000 + "| x",
        "+" + "-" * 50_000 + "x",
        "patch link: a" + " " * 50_000 + "\tx\x0b",
        "Closes: a" + " \t" * 25_000 + "x\x0c",
        "https://a.example/" + "x" * 20_000 + " " * 20_000 + "y z",
        "1.0 " * 15_000,
        "a" * 50_000 + " threads, with " + " " * 30_000,
    ],
)
def test_a_line_of_junk_takes_no_time(line: str) -> None:
    found = find_report(parse(report("\n".join([line] * 3))))
    assert found
    assert found.culprit_title == "mm: a"


def test_the_box_is_read_as_before() -> None:
    box = (
        "+------------------+------------------------------------------+\n"
        "| testcase: change | c: c.d 12.0% improvement                 |\n"
        "| test machine     | 8 threads                                |\n"
        "| test parameters  | nr=1                                     |\n"
        "|                  | runtime=2                                |\n"
        "+------------------+------------------------------------------+\n"
    )
    found = find_report(parse(report(box)))
    assert found
    [impact] = found.additional
    assert (impact.metric, impact.change_pct, impact.machine) == ("c.d", 12.0, "8 threads")
    assert impact.parameters == (("nr", "1"), ("runtime", "2"))


def test_a_number_that_is_none_is_no_report() -> None:
    assert find_report(parse(report("", percent="9e+999"))) is None
