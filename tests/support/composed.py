"""Twelve invented reports, and the mails composed from them: `make golden` rewrites these.

After a change to the text of our mail, the diff of tests/mail/composed/ shows what its readers will see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bot.compose.conventions import Attached, Conventions, SubjectForm
from bot.compose.report_data import BuildInfo, FindingData, ReportData
from bot.git.maintainers import Maintainers
from bot.mail.addresses import Address
from tests.support.outbox import BOT, FINDING, REPORT, SLOWER
from tracker.domain.events import Grade, Verdict

DIRECTORY = Path(__file__).parent.parent / "mail" / "composed"
AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
CONVENTIONS = Conventions(lkml="linux-kernel@vger.kernel.org")
OPTANE = "48 threads 2 sockets Example(R) CPU 6252 @ 2.10GHz (Cedar Lake) with 512G memory"
MM = Maintainers(
    "EXAMPLE MM\nM:\tAndrea Vale <andrea@dev.example>\nR:\tBo Lane <bo@dev.example>\n"
    "L:\tlinux-mm@lists.example\nF:\tmm/\n"
).of(["mm/vmscan.c"])
BETTER = replace(
    FINDING,
    verdict=Grade.IMPROVEMENT,
    change_pct=17.6,
    new_mean=216619.2,
    low_pct=16.9,
    high_pct=18.2,
    noise_pct=0.9,
)


def profile(function: str, old: float, new: float) -> FindingData:
    return replace(
        FINDING,
        metric=f"perf-profile.self.cycles-pp.{function}",
        unit="%",
        direction="unknown",
        verdict=Grade.UNKNOWN,
        change_pct=100 * (new - old) / old,
        old_mean=old,
        new_mean=new,
        old_stddev_pct=1.0,
        new_stddev_pct=2.4,
    )


def elsewhere(number: int, change: float) -> FindingData:
    return replace(
        FINDING,
        suite="fsmark",
        metric="fsmark.files_per_sec",
        unit="files/s",
        verdict=Grade.REGRESSION if change < 0 else Grade.IMPROVEMENT,
        change_pct=change,
        old_mean=5000.0,
        new_mean=5000 + 50 * change,
        params={"disk": "1SSD", "fs": ("xfs", "btrfs", "ext4")[number % 3], "nr_threads": str(1 << number)},
        machine=f"lab7-m{2 + number % 2}",
        machine_text=OPTANE,
    )


REPORTS: Mapping[str, tuple[ReportData, Conventions]] = {
    "01-regression": (
        replace(REPORT, rechecks=(("v9.1-rc3", "good-after-revert"), ("v9.1-rc4", "still-bad"))),
        CONVENTIONS,
    ),
    "02-improvement": (replace(REPORT, verdict=Verdict.IMPROVEMENT, findings=(BETTER,)), CONVENTIONS),
    "03-noisy-latency": (
        replace(
            REPORT,
            title="net/relay: batch small frames",
            findings=(
                replace(
                    SLOWER,
                    metric="net-pingpong.latency_us",
                    unit="us",
                    change_pct=32.5,
                    old_mean=18.391,
                    new_mean=24.368,
                    old_stddev_pct=6.0,
                    new_stddev_pct=7.5,
                    p_value=0.0005,
                    low_pct=21.0,
                    high_pct=44.9,
                    noise_pct=8.7,
                    suite="net-pingpong",
                    params={"ip": "ipv6", "send_size": "64"},
                ),
            ),
        ),
        CONVENTIONS,
    ),
    "04-mixed-results": (
        replace(REPORT, findings=(FINDING, SLOWER, replace(BETTER, metric="vm-scan.median"), elsewhere(1, 8.0))),
        CONVENTIONS,
    ),
    "05-debug-config": (
        replace(REPORT, build=BuildInfo(kconfig="x86_64-perf-9-kasan", compiler="gcc-14", cmdline="ro page_poison=1")),
        CONVENTIONS,
    ),
    "06-alignment": (
        replace(
            REPORT,
            findings=(
                replace(FINDING, change_pct=-4.1, new_mean=176648.0, low_pct=-4.6, high_pct=-3.5),
                profile("shrink_folio_list", 12.1, 12.4),
                profile("clear_page_erms", 7.3, 7.1),
            ),
        ),
        CONVENTIONS,
    ),
    "07-many-tests-and-a-profile": (
        replace(
            REPORT,
            findings=(
                FINDING,
                SLOWER,
                profile("shrink_folio_list", 12.1, 19.4),
                profile("native_queued_spin_lock_slowpath", 3.3, 8.9),
                profile("clear_page_erms", 27.3, 22.0),
                *(elsewhere(number, change) for number, change in enumerate((-31.0, -7.4, -12.9, -5.2))),
            ),
        ),
        CONVENTIONS,
    ),
    "08-answer-to-a-patch": (
        replace(
            REPORT,
            title="[PATCH v3 2/7] mm/vmscan: walk cold folios first",
            tree="mm",
            tree_url="",
            branch="mm-unstable",
            patch=replace(
                REPORT.patch, in_reply_to="p2@dev.example", references=("cover@dev.example", "p2@dev.example")
            ),
        ),
        CONVENTIONS,
    ),
    "09-from-zero": (
        replace(
            REPORT,
            findings=(
                replace(
                    SLOWER,
                    metric="vm-scan.stalls",
                    unit="",
                    old_mean=0.0,
                    old_stddev_pct=None,
                    new_mean=412.0,
                    change_pct=None,
                ),
            ),
        ),
        CONVENTIONS,
    ),
    "10-revert-with-a-script": (
        replace(
            REPORT,
            title='Revert "x86/entry: save one register more than the ABI asks for on every system call"',
            parent_title="",
            base="",
            test_text="the cost of system calls",
            artifacts=(
                ("reproduce.sh", "https://lab.example/9.1/42/reproduce.sh"),
                ("dmesg.xz", "https://lab.example/9.1/42/dmesg.xz"),
            ),
            raw="https://perf.example.org/api/v1/results/42",
        ),
        CONVENTIONS,
    ),
    "11-odd-names-and-300-people": (
        replace(
            REPORT,
            author=Address(
                "Dána =?utf-8?q?B=3Croot=40x=2Eexample=3E?= \u202eBrook\nBcc: x@y.example", "dana@dev.example"
            ),
            title="mm: \u202eturn\x07 it round\r\nBcc: x@y.example",
            trailers=tuple(("Cc", f'"Person, {number}" <p{number}@dev.example>') for number in range(300)),
        ),
        CONVENTIONS,
    ),
    "12-tree-in-front-with-regzbot": (
        replace(REPORT, tree="linux-next", tree_role="next", branch="master", responsible=MM),
        replace(
            CONVENTIONS,
            subject=SubjectForm.TREE,
            regzbot="regressions@lists.linux.dev",
            tree_lists={"next": ("linux-next@vger.kernel.org",)},
            reproduce="lab run {suite} {params} --kernel {sha}",
            attach=frozenset(Attached),
        ),
    ),
}


def composed(name: str) -> bytes:
    """Return the mail about one of REPORTS, as bytes; without our version, so that a release leaves the files alone."""
    from bot.compose.mail import MADE_BY, to_bytes
    from bot.compose.report_mail import compose

    report, conventions = REPORTS[name]
    return to_bytes(compose(report, BOT, AT, "", conventions)).replace(MADE_BY.encode(), b"Perfwork")


def main() -> None:
    """Write the mails of all REPORTS."""
    for name in REPORTS:
        (DIRECTORY / f"{name}.eml").write_bytes(composed(name))
