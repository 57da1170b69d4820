"""A made history of a kernel, as a stream for git fast-import: topics, merges, tags, clocks that go wrong."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path


class History:
    """A stream for fast-import, cut at its tags: topics that start anywhere, merge back now and then, and are
    merged, some by octopuses; roots beside the first one; stable branches with tags off the main line; tags that name
    no version.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.pieces: list[str] = []
        self.text: list[str] = []
        self.mark, self.at = 0, 1_600_000_000
        self.minor = self.candidate = 0
        self.main = [self.commit([])]
        self.stable: dict[str, list[int]] = {}  # the commits of each series' branch, its releases among them

    def commit(self, parents: list[int]) -> int:
        self.mark, self.at = self.mark + 1, self.at + self.rng.randint(-3000, 6000)  # clocks go wrong
        lines = [] if parents else ["reset refs/heads/made", ""]
        lines += ["commit refs/heads/made", f"mark :{self.mark}", f"committer K <k@x> {self.at} +0000"]
        lines += [f"data {len(str(self.mark))}", str(self.mark)]
        lines += [f"{'merge' if number else 'from'} :{each}" for number, each in enumerate(parents)]
        self.text.append("\n".join([*lines, "", ""]))
        return self.mark

    def tag(self, name: str, mark: int) -> None:
        """A tag, a day after the one before; what came until then is a piece."""
        when = 1_700_000_000 + len(self.pieces) * 86_400
        heads = [f"reset refs/heads/stable-{base}\nfrom :{line[-1]}\n\n" for base, line in self.stable.items()]
        heads.append(f"reset refs/heads/master\nfrom :{self.main[-1]}\n\n")
        self.text.append(f"tag {name}\nfrom :{mark}\ntagger K <k@x> {when} +0000\ndata 0\n\n")
        self.pieces.append("".join((*self.text, *heads)))
        self.text.clear()

    def topics(self) -> list[int]:
        tops = []
        for _ in range(self.rng.choice((0, 1, 1, 2, 4))):
            top = self.commit([] if self.rng.random() < 0.03 else [self.rng.choice(self.main[-40:])])
            for _ in range(self.rng.randint(0, 5)):
                back = [self.main[-1]] if self.rng.random() < 0.1 else []
                top = self.commit([top, *back])
            tops.append(top)
        return tops

    def advance(self) -> None:
        self.main.append(self.commit([self.main[-1], *self.topics()]))
        for base, line in self.stable.items():
            if self.rng.random() < 0.1:
                line.append(self.commit([line[-1]]))
                self.tag(f"v{base}.{len(line) - 1}", line[-1])
        if self.rng.random() < 0.15:
            self.release()
        elif self.rng.random() < 0.03:
            self.text.append(f"tag v9-odd-{self.mark}\nfrom :{self.mark}\ntagger K <k@x> 1600000000 +0000\ndata 0\n\n")

    def release(self) -> None:
        """Four candidates, then the release, from which a stable branch starts."""
        self.candidate += 1
        if self.candidate <= 4:
            self.tag(f"v9.{self.minor}-rc{self.candidate}", self.main[-1])
            return
        self.tag(f"v9.{self.minor}", self.main[-1])
        self.stable[f"9.{self.minor}"] = [self.main[-1]]
        self.minor, self.candidate = self.minor + 1, 0


def history(seed: int, commits: int) -> list[str]:
    """Pieces of so many commits; the last of them are in no version yet."""
    made = History(seed)
    while made.mark < commits:
        made.advance()
    made.tag(f"v9.{made.minor}-rc{made.candidate + 1}", made.main[-2])
    return made.pieces


def build(repository: Path, pieces: list[str]) -> None:
    """Import them all, or go on with those of before: marks are kept beside the repository."""
    if not repository.exists():
        subprocess.run(["git", "init", "-q", "--bare", "--initial-branch=master", repository], check=True)
    marks = str(repository / "marks")
    known = (f"--import-marks-if-exists={marks}", f"--export-marks={marks}")
    stream = "".join((*pieces, "done\n"))
    command = ["git", "-C", str(repository), "fast-import", "--quiet", "--force", *known]
    subprocess.run(command, input=stream.encode(), check=True)
