"""Makes a large public-inbox epoch out of a real small one: `make_epoch.py FROM TO MAILS`.

The mails of the small archive are written again and again, each time with other ids and addresses in their heads, so
that sizes and threads stay those of real mail, and only the first round holds robots' reports.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from bot.archive.public_inbox import read_epoch  # noqa: E402

_ID = re.compile(rb"(<[^<>\s]{3,200})(@[^<>\s]{1,200}>)")


def copies(mails: list[bytes], wanted: int) -> Iterator[bytes]:
    """So many mails, the real ones first; the ids of each further round are told apart by its number."""
    for number in range(wanted):
        turn, place = divmod(number, len(mails))
        mail = mails[place]
        if turn:
            head, end, body = mail.partition(b"\n\n")
            mail = _ID.sub(rb"\1.r%d\2" % turn, head) + end + body
        yield mail


def make(source: Path, target: Path, wanted: int) -> None:
    """Write the epoch by `git fast-import`, as fast as git packs."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "master", target], check=True)
    mails = [mail.raw for mail in read_epoch(source)]
    into = subprocess.Popen(["git", "-C", target, "fast-import", "--quiet"], stdin=subprocess.PIPE)
    assert into.stdin
    with into.stdin as pipe:
        for number, mail in enumerate(copies(mails, wanted)):
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
