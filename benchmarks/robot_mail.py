"""Speed of parsing the robot's reports, in reports per second, and of skipping all other mail, in MB per second.

The baselines are the stdlib's parser over the same reports, and one search for a byte string over the same mails.
"""

from __future__ import annotations

import email
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.archive import BUNDLE
from benchmarks.budgets import figure
from benchmarks.timing import timed
from bot.archives.files import head_of, read_mbox
from bot.archives.public_inbox import read_epoch
from bot.mail.message import parse
from bot.robot_reports.report import Recogniser, find_report

SHARED = ROOT.parent / "shared" / "data"
ROBOTS = ("rong.a.chen@intel.com", "oliver.sang@intel.com", "yujie.liu@intel.com", "lkp@intel.com")


def sender_of(raw: bytes) -> bytes:
    """Return the From line of a mail."""
    start = head_of(raw).find(b"\nFrom:") + 1
    return raw[start : raw.find(b"\n", start)]


def main() -> None:
    if not BUNDLE.exists():
        sys.exit(f"the real mail is not on this machine (expected in {SHARED})")
    reports = [mail.raw for mail in read_mbox(SHARED / "reports-dev.mbox")]
    robot = [mail.raw for mail in read_mbox(SHARED / "not-performance-reports-dev.mbox")] * 20
    with tempfile.TemporaryDirectory() as folder:
        epoch = Path(folder) / "0.git"
        subprocess.run(["git", "clone", "-q", "--mirror", BUNDLE, epoch], check=True)
        others = [mail.raw for mail in read_epoch(epoch)]
    parsed = timed(lambda: [find_report(parse(raw)) for raw in reports])
    least = timed(lambda: [email.message_from_bytes(raw) for raw in reports])
    figure("reports with all rows, a second", len(reports) / parsed, "", 60, at_least=True, ratio=parsed / least,
           yardstick="email.message_from_bytes")  # fmt: skip
    recogniser = Recogniser(ROBOTS)
    for name, mails in (("other mail of a list", others), ("other mail of the robots", robot)):
        megabytes = sum(map(len, mails)) / 1e6
        search = timed(lambda mails=mails: [b"no such words" in raw for raw in mails])
        spent = timed(lambda mails=mails: [recogniser.may_be_report(sender_of(raw), raw) for raw in mails])
        figure(f"recognising a report, {name}, MB a second", megabytes / spent, "", 200, at_least=True,
               ratio=spent / search, yardstick="one search in the bytes")  # fmt: skip


if __name__ == "__main__":
    main()
