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
from benchmarks.archive import BUNDLE  # noqa: E402
from benchmarks.timing import timed  # noqa: E402
from bot.archives.sources.mbox import read_mbox  # noqa: E402
from bot.archives.sources.public_inbox import read_epoch  # noqa: E402
from bot.archives.sources.raw import head_of  # noqa: E402
from bot.mail.message import parse  # noqa: E402
from bot.robot_reports.recogniser import Recogniser  # noqa: E402
from bot.robot_reports.report import find_report  # noqa: E402

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
    print(f"{'':34}{'a second':>12}{'ratio':>8}   budget")
    print(f"{'email.message_from_bytes':34}{len(reports) / least:12.0f}{1:8.2f}")
    print(f"{'reports, all rows':34}{len(reports) / parsed:12.0f}{parsed / least:8.2f}   60")
    recogniser = Recogniser(ROBOTS)
    for name, mails in (("other mail of a list", others), ("other mail of the robots", robot)):
        megabytes = sum(map(len, mails)) / 1e6
        search = timed(lambda mails=mails: [b"no such words" in raw for raw in mails])
        spent = timed(lambda mails=mails: [recogniser.may_be_report(sender_of(raw), raw) for raw in mails])
        print(f"{f'MB, one search, {name}':42}{megabytes / search:6.0f}{1:6.2f}")
        print(f"{f'MB, recogniser, {name}':42}{megabytes / spent:6.0f}{spent / search:6.2f}   200")


if __name__ == "__main__":
    main()
