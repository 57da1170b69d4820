"""Speed of reading archives: `archive.py [MAILS]`, over a generated epoch with that many mails (default 100,000),
and over a real one where robots post.

The baseline is `git cat-file --batch` of the same mails to /dev/null. The database tracks 3,000 reports.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.budgets import figure
from benchmarks.make_epoch import make
from benchmarks.timing import timed
from bot.archives.prefilter import Prefilter, key_of_commit, key_of_title
from bot.archives.public_inbox import read_epoch
from bot.mail.settings import BotSettings

BUNDLE = ROOT.parent / "shared" / "data" / "lore" / "linux-nfs.0.bundle"
DENSE = BUNDLE.with_name("cgroups.0.bundle")  # a list where robots post
ROBOTS = "rong.a.chen@intel.com,oliver.sang@intel.com,yujie.liu@intel.com,lkp@intel.com"
OPERATORS = (
    "oliver.sang@intel.com,rong.a.chen@intel.com,yujie.liu@intel.com,feng.tang@intel.com,"
    "zhengjun.xing@linux.intel.com,beibei.si@intel.com"
)
REPORTS = 3000
INBOXES = 100
RUNS = 5
_ID = re.compile(rb"<([^<>\s]{1,300}@[^<>\s]{1,300})>")
_RESIDENT = re.compile(r"largest size (\d+)")
# Runs manage.py and prints its peak memory at the end, not counting the packs that git maps in its own process.
WRAPPED = """
import atexit, resource, runpy, sys
report = lambda: print("largest size", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
atexit.register(report)
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""

TRACK = f"""
from datetime import datetime, UTC
from tracker.services import catalog
from tracker.models import Message, RawMessage, Report
from tracker.domain.events import Verdict
now = datetime(2026, 1, 1, tzinfo=UTC)
for number in range({REPORTS}):
    commit = catalog.commit_for(f"{{number:040x}}"[::-1], title=f"mm: an invented change, number {{number}}")
    report = catalog.report_for(commit, Verdict.REGRESSION)
    source = RawMessage.objects.create(digest=str(number), compressed=b"", received_at=now)
    Message.objects.create(message_id=f"{{number}}-lkp@bench.example", report=report, source=source, kind="robot")
"""


def manage(var: Path, *arguments: str, stdin: str = "") -> tuple[str, float, int]:
    """Run a manage.py command. Return its output, its duration in seconds, and its peak memory in MB."""
    environment = {
        **os.environ,
        "PERFWORK_VAR": str(var),
        "PERFWORK_ROBOTS": ROBOTS,
        "PERFWORK_OPERATORS": OPERATORS,
        "PERFWORK_TRUST": "open",
    }
    start = time.perf_counter()
    command = [sys.executable, "-c", WRAPPED, str(ROOT / "manage.py"), *arguments]
    done = subprocess.run(command, env=environment, input=stdin, capture_output=True, text=True)
    spent = time.perf_counter() - start
    if done.returncode:
        sys.exit(done.stderr)
    resident = _RESIDENT.search(done.stderr)
    return done.stdout.strip(), spent, int(resident[1]) if resident else 0


CAT_FILE = "git cat-file --batch"


def in_git(epoch: Path) -> Callable[[], object]:
    """Return a function that runs `git cat-file --batch` over all mails."""
    raw = subprocess.check_output(["git", "-C", epoch, "log", "--raw", "--no-abbrev", "--format="], text=True)
    blobs = "".join(f"{line.split()[3]}\n" for line in reversed(raw.splitlines()) if line.endswith("\tm"))
    command = ["git", "-C", epoch, "cat-file", "--batch", "--buffer"]
    return lambda: subprocess.run(command, input=blobs.encode(), stdout=subprocess.DEVNULL, check=True)


def reading(folder: Path, epoch: Path, mails: int) -> None:
    """Time the whole command with 3,000 tracked reports; then over 100 inboxes without new mail."""
    var = folder / "var"
    manage(var, "migrate", "--verbosity=0")
    manage(var, "shell", stdin=TRACK)
    least = timed(in_git(epoch), 3)
    started = min(manage(var, "check")[1] for _ in range(3))
    output, spent, resident = manage(var, "read", str(epoch))
    print(output.partition(": ")[2])
    print(f"{mails / least:,.0f} mails a second by git cat-file --batch, {mails / spent:,.0f} by the whole command")
    figure("a sparse epoch of 100,000 mails, less the start", (spent - started) / least, "×", 1.5, yardstick=CAT_FILE)
    figure("its largest size", resident, "MB", 200)
    copies = [folder / f"inbox-{number}.git" for number in range(INBOXES)]
    for copy in copies:
        subprocess.run(["git", "clone", "-q", "--mirror", "--shared", epoch, copy], check=True)
        small = subprocess.check_output(
            ["git", "-C", copy, "rev-list", "--max-count=1", "--skip=50", "HEAD"], text=True
        )
        subprocess.run(["git", "-C", copy, "update-ref", "refs/heads/master", f"{small.strip()}~0"], check=True)
    from_end = [str(copy) for copy in copies]
    mark_read(var, from_end)
    _, again, _ = manage(var, "read", *from_end)
    figure(f"nothing new over {INBOXES} inboxes", again, "s", 2.0)


def dense(folder: Path) -> None:
    """Time a real epoch with many reports, from an empty database; then its memory when it is five times as long."""
    epoch, longer = folder / "dense.git", folder / "longer.git"
    subprocess.run(["git", "clone", "-q", "--mirror", DENSE, epoch], check=True)
    ratios, starts, again = [], [], []
    for number in range(RUNS):
        var = folder / f"dense-{number}"
        manage(var, "migrate", "--verbosity=0")
        least = timed(in_git(epoch), 1)
        _, spent, resident = manage(var, "read", str(epoch))
        starts.append(manage(var, "read", "--help")[1])
        again.append(manage(var, "read", str(epoch))[1])
        ratios.append((spent - starts[-1]) / least)
    figure("a dense epoch, less the start", median(ratios), "×", 2.0, yardstick=CAT_FILE, spread=ratios)
    figure("the start of a command", median(starts), "s", 0.6, spread=starts)
    figure("the dense epoch again, with nothing new", median(again), "s", 1.0, spread=again)
    figure("its largest size", resident, "MB", 200)
    repeated(epoch, longer)
    var = folder / "longer"
    manage(var, "migrate", "--verbosity=0")
    figure("the largest size of five times as many", manage(var, "read", str(longer))[2], "MB", 200)


def repeated(epoch: Path, target: Path, times: int = 5) -> None:
    """Write an epoch with these mails several times, each time with other Message-IDs."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "master", target], check=True)
    with subprocess.Popen(["git", "-C", target, "fast-import", "--quiet"], stdin=subprocess.PIPE) as writer:
        assert writer.stdin
        for number in range(times):
            for mail in read_epoch(epoch):
                raw = _ID.sub(rb"<%d.\1>" % number, mail.raw)
                writer.stdin.write(b"commit refs/heads/master\ncommitter a <a@b> 0 +0000\ndata 1\nm\n")
                writer.stdin.write(b"M 100644 inline m\ndata %d\n%b\n" % (len(raw), raw))


def mark_read(var: Path, paths: list[str]) -> None:
    """Mark inboxes as read, without reading them."""
    lines = ["import subprocess", "from bot.archives.reader import newest_names", "from tracker.models import Archive"]
    lines += [f"for place in {paths!r}:"]
    lines += ["    head = subprocess.check_output(['git', '-C', place, 'rev-parse', 'HEAD'], text=True).strip()"]
    lines += ["    Archive.objects.create(path=place, cursor='1:' + head, searched=newest_names())"]
    manage(var, "shell", stdin="\n".join(lines) + "\n\n")


def flat(epoch: Path) -> None:
    """Time the prefilter with increasing numbers of tracked keys."""
    mails = [mail.raw for _, mail in zip(range(6000), read_epoch(epoch), strict=False)]
    settings = BotSettings(address="perfbot@bot.example.org", robots=frozenset(ROBOTS.split(",")))
    print(f"\n{'keys':>9}{'µs a mail':>12}")
    for count in (10, 1000, 100_000, 1_000_000):
        keys = (key for number in range(count // 3 + 1) for key in _keys(number))
        prefilter = Prefilter(keys, settings)
        spent = timed(lambda prefilter=prefilter: [prefilter.passes(raw) for raw in mails], 3)
        print(f"{count:9}{spent / len(mails) * 1e6:12.1f}")


def _keys(number: int) -> tuple[bytes, bytes, bytes]:
    sha = f"{number * 2654435761 % 2**64:016x}"
    return b"%d.a@x.example" % number, key_of_commit(sha), key_of_title(f"mm: change {number}")


def main() -> None:
    if not BUNDLE.exists():
        sys.exit(f"the real archive is not on this machine (expected in {BUNDLE})")
    mails = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large = folder / "small.git", folder / "large.git"
        subprocess.run(["git", "clone", "-q", "--mirror", BUNDLE, small], check=True)
        make(small, large, mails)
        reading(folder, large, mails)
        dense(folder)
        flat(small)


if __name__ == "__main__":
    main()
