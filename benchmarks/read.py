"""Reading a real archive: `git cat-file` alone, the sieve on top, and the whole of `read`."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
BUNDLE = ROOT.parent / "shared" / "data" / "lore" / "linux-nfs.0.bundle"


def timed(work: Callable[[], object], runs: int = 5) -> float:
    """The median of some runs, in seconds, after one that does not count."""
    work()
    spent = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return sorted(spent)[runs // 2]


def main() -> None:
    if not BUNDLE.exists():
        sys.exit(f"the real archive is not on this machine (expected in {BUNDLE})")
    with tempfile.TemporaryDirectory() as folder:
        epoch = Path(folder) / "linux-nfs" / "git" / "0.git"
        subprocess.run(["git", "clone", "-q", "--mirror", BUNDLE, epoch], check=True)
        names = subprocess.check_output(["git", "-C", epoch, "rev-list", "--reverse", "HEAD"], text=True)
        blobs = "".join(f"{commit}:m\n" for commit in names.split()).encode()
        os.environ["PERFWORK_VAR"] = folder
        os.environ["DJANGO_SETTINGS_MODULE"] = "tracker.settings"
        measure(epoch, blobs, len(names.split()))


def measure(epoch: Path, blobs: bytes, mails: int) -> None:
    import django

    django.setup()
    from django.core.management import call_command
    from django.utils import timezone

    from bot.archive.intake import read_source
    from bot.archive.public_inbox import read_epoch
    from bot.archive.sieve import Sieve
    from bot.archive.sources import open_sources
    from bot.config import identity

    call_command("migrate", verbosity=0)
    (source,) = open_sources(str(epoch))
    cat_file = ["git", "-C", str(epoch), "cat-file", "--batch", "--buffer"]
    sieve = Sieve({f"tracked-{n}@x" for n in range(3000)}, identity())
    ways: dict[str, Callable[[], object]] = {
        "git cat-file to /dev/null": lambda: subprocess.run(
            cat_file, input=blobs, stdout=subprocess.DEVNULL, check=True
        ),
        "our reader": lambda: sum(1 for _ in read_epoch(epoch)),
        "our reader and the sieve": lambda: sum(sieve.passes(mail.raw) for mail in read_epoch(epoch)),
        "read, nothing new in it": lambda: read_source(source, identity(), timezone.now(), again=True),
    }
    least = 0.0
    print(f"{mails} mails of {epoch.parent.parent.name}\n{'':28}{'s':>8}{'mails/s':>10}{'ratio':>8}")
    for name, way in ways.items():
        spent = timed(way)
        least = least or spent
        print(f"{name:28}{spent:8.3f}{mails / spent:10.0f}{spent / least:8.2f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
