"""Makes a large public-inbox epoch from a small real one: `make_epoch.py FROM TO MAILS`.

The mails of the small archive are repeated, each round with different ids and addresses: sizes and threads are those of
real mail, links lead to mails of the same round, and only the first round has reports by robots.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from bot.archives.public_inbox import read_epoch

_AT = re.compile(rb"(?<=[^\s<])@(?=\w)")  # in ids and addresses, anywhere


def copies(mails: list[bytes], count: int) -> Iterator[bytes]:
    """Yield `count` mails, the real ones first; later rounds have the round number in ids and addresses."""
    for number in range(count):
        turn, index = divmod(number, len(mails))
        mail = mails[index]
        yield _AT.sub(b".r%d@" % turn, mail) if turn else mail


def make(source: Path, target: Path, count: int) -> None:
    """Write the epoch with `git fast-import`."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "master", target], check=True)
    mails = [mail.raw for mail in read_epoch(source)]
    into = subprocess.Popen(["git", "-C", target, "fast-import", "--quiet"], stdin=subprocess.PIPE)
    assert into.stdin
    with into.stdin as pipe:
        for number, mail in enumerate(copies(mails, count)):
            start = b"commit refs/heads/master\ncommitter a <a@lists.example> %d +0000\ndata 1\nm\n" % (
                1_600_000_000 + number
            )
            pipe.write(start + b"M 100644 inline m\ndata %d\n" % len(mail) + mail + b"\n")
    if into.wait():
        sys.exit("git fast-import failed")
    subprocess.run(["git", "-C", target, "repack", "-adq"], check=True)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    make(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
