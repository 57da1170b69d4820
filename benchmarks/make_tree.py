"""Makes a kernel-like git tree of any size with fast-import: merges of topic branches, some of them octopus merges,
and tags at regular intervals. Every thousandth commit closes a report.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

_PEOPLE = [f"Developer {number} <dev{number}@dev.example>" for number in range(400)]
_WORDS = [
    "lock",
    "page",
    "cache",
    "queue",
    "fair",
    "idle",
    "scan",
    "batch",
    "flush",
    "index",
    "relay",
    "inode",
    "folio",
    "ring",
    "timer",
    "wake",
    "node",
    "slab",
]
_START = 1_100_000_000


def report_id(number: int) -> str:
    """Return the Message-ID of the report that commit `number` closes."""
    return f"{number}-report@bench.example"


def make_tree(repository: Path, commits: int, tags: int, start: int = 0, first_tag: int = 0) -> None:
    """Create or extend a bare repository: add `commits` commits to `master`, with `tags` tags among them."""
    if not start:
        subprocess.run(["git", "init", "-q", "--bare", "--initial-branch=master", repository], check=True)
    command = ["git", "-C", repository, "fast-import", "--quiet", "--force"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as running:
        assert running.stdin
        for piece in _stream(commits, tags, start, first_tag):
            running.stdin.write(piece)
        running.stdin.close()
        if running.wait():
            raise SystemExit("git fast-import failed")


def _stream(commits: int, tags: int, start: int, first_tag: int) -> Iterator[bytes]:
    drawn = random.Random(start)
    cycle = max(1, commits // tags) if tags else commits + 1
    made, tag = 0, 0
    main = [b"refs/heads/master^0"] if start else []
    while made < commits:
        branches = drawn.choice((1, 1, 1, 1, 1, 1, 2, 3)) if main else 0
        tips = []
        for _ in range(branches):
            tip = drawn.choice(main[-30:])
            for _ in range(min(drawn.randint(1, 12), commits - made)):
                made += 1
                yield _commit(made + start, [tip], drawn)
                tip = b":%d" % (made + start)
            tips.append(tip)
        made += 1
        yield _commit(made + start, [*main[-1:], *dict.fromkeys(tips)], drawn)
        main = [*main[-30:], b":%d" % (made + start)]
        if tags and made >= (tag + 1) * cycle and tag < tags:
            yield _tag(first_tag + tag, made + start)
            tag += 1
    yield b"reset refs/heads/master\nfrom %s\n\ndone\n" % main[-1]


def _commit(mark: int, parents: list[bytes], drawn: random.Random) -> bytes:
    at = b"%d +0000" % (_START + mark * 500)
    who = drawn.choice(_PEOPLE).encode()
    links = [b"from " + parents[0], *(b"merge " + parent for parent in parents[1:])] if parents else []
    message = _message(mark, drawn)
    head = [b"commit refs/heads/made", b"mark :%d" % mark, b"author %s %s" % (who, at), b"committer %s %s" % (who, at)]
    return b"\n".join([*head, b"data %d\n%s" % (len(message), message), *links, b"", b""])


def _message(mark: int, drawn: random.Random) -> bytes:
    words = drawn.choices(_WORDS, k=8)
    lines = [f"{words[0]}/{words[1]}: {words[2]} the {words[3]} before the {words[4]}, number {mark}", ""]
    lines += [" ".join(drawn.choices(_WORDS, k=11)) for _ in range(drawn.randint(2, 7))]
    lines += [""]
    if drawn.random() < 0.25:
        lines += [f'Fixes: {drawn.getrandbits(48):012x} ("{words[5]}: {words[6]} the {words[7]}")']
    if mark % 1000 == 0:
        lines += [f"Closes: https://lore.kernel.org/r/{report_id(mark)}"]
    lines += [f"Signed-off-by: {drawn.choice(_PEOPLE)}"]
    if drawn.random() < 0.6:
        lines += [f"Link: https://lore.kernel.org/r/{drawn.getrandbits(64):x}-{mark}@dev.example"]
    return "\n".join(lines).encode()


def _tag(number: int, mark: int) -> bytes:
    """Return a tag: every tenth is a release, the others are release candidates."""
    minor, candidate = divmod(number, 10)
    name = f"v{4 + minor // 20}.{minor % 20}" + ("" if candidate == 9 else f"-rc{candidate + 1}")
    at = _START + mark * 500
    message = f"Linux {name}"
    return (
        f"tag {name}\nfrom :{mark}\ntagger Keeper <keeper@dev.example> {at} +0000\ndata {len(message)}\n{message}\n"
    ).encode()
