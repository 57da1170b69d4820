"""Debian's kernel source, as far as scripts/get_maintainer.pl needs it: unpacked once, with empty directories."""

from __future__ import annotations

import random
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.mail.addresses import parse_addresses

NEEDED_FILES = (
    "MAINTAINERS",
    ".mailmap",
    "scripts/get_maintainer.pl",
    "COPYING",
    "CREDITS",
    "Kbuild",
    "Makefile",
    "README",
)
# Changed lines that the K: keywords of MAINTAINERS are matched against.
LINES = (
    "	if (unlikely(!folio))",
    "	pwm_config(pwm, duty, period);",
    "	secure_computing();",
    "	return zstd_decompress(ctx);",
    "	struct phylink *pl = NULL;",
    "	dma_fence_put(fence);",
)


@dataclass(frozen=True, slots=True)
class Invented:
    """An invented commit: the files that it changes, and a line that it adds."""

    files: tuple[str, ...]
    line: str

    def patch(self) -> str:
        return "".join(
            f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1,2 @@\n context\n+{self.line}\n"
            for path in self.files
        )


class DebianKernel:
    """The file names of the source; the files that get_maintainer.pl needs are unpacked in `directory`."""

    def __init__(self, directory: Path, tarball: Path) -> None:
        self.directory = directory
        self.files: list[str] = []
        with tarfile.open(tarball, "r|xz") as source:
            for member in source:
                path = member.name.partition("/")[2]
                if member.isdir():
                    (directory / path).mkdir(parents=True, exist_ok=True)
                elif member.isfile():
                    self.files.append(path)
                    if path in NEEDED_FILES and (content := source.extractfile(member)):
                        (directory / path).parent.mkdir(parents=True, exist_ok=True)
                        (directory / path).write_bytes(content.read())
        self.maintainers = (directory / "MAINTAINERS").read_text(encoding="utf-8", errors="replace")
        self.mailmap = (directory / ".mailmap").read_text(encoding="utf-8", errors="replace")

    def commits(self, number: int) -> Iterator[Invented]:
        """Yield realistic commits: most change files of one directory, some of several."""
        draw = random.Random(20261122)
        folders: dict[str, list[str]] = {}
        for path in self.files:
            folders.setdefault(path.rpartition("/")[0], []).append(path)
        for _ in range(number):
            near = folders[draw.choice(self.files).rpartition("/")[0]]
            files = draw.sample(near, min(len(near), draw.choice((1, 1, 1, 2, 3))))
            if draw.random() < 0.3:
                files += draw.sample(self.files, draw.choice((1, 2, 5)))
            yield Invented(tuple(sorted(set(files))), draw.choice((*LINES, "", "", "", "")))

    def script_recipients(self, commit: Invented) -> frozenset[str]:
        """Return the addresses that get_maintainer.pl prints for the commit, without using git history."""
        patch = self.directory / "commit.patch"
        patch.write_text(commit.patch())
        options = ("--no-git", "--no-git-fallback", "--no-rolestats")
        done = subprocess.run(
            ["perl", "scripts/get_maintainer.pl", *options, patch.name],
            cwd=self.directory,
            capture_output=True,
            text=True,
            errors="replace",
            check=True,
        )
        return frozenset(each.email for line in done.stdout.splitlines() for each in parse_addresses(line))
