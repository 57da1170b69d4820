"""Accuracy of recipients: who maintains the files of invented commits, against get_maintainer.pl on Debian's kernel.

`recipients.py [COMMITS]` (default 60, from other numbers than the tests); the script takes seconds for each.
"""

from __future__ import annotations

import shutil
import sys
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.accuracy.shares import share
from bot.git.maintainers import Maintainers
from bot.mail.settings import read_mailmap
from tests.support.needs import DebianKernel, kernel_source

TESTED = 200  # the first commits are those of `make maintainers`
LKML = {"linux-kernel@vger.kernel.org"}  # the script names it for every file, and a report goes there anyway


def main() -> None:
    tarball = kernel_source()
    if tarball is None or shutil.which("perl") is None:
        print("recipients: NOT MEASURED: apt install linux-source perl")
        return
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with TemporaryDirectory() as directory:
        kernel = DebianKernel(Path(directory), tarball)
        known, proper = Maintainers(kernel.maintainers), read_mailmap(kernel.mailmap).proper
        right = 0
        for commit in islice(kernel.commits(TESTED + asked), TESTED, None):
            ours = {each.address.email for each in known.of(commit.files, commit.line, proper)}
            theirs = kernel.script_recipients(commit)
            right += ours - LKML == theirs - LKML
            if ours - LKML != theirs - LKML:
                print(f"  {commit.files}: we {sorted(ours - theirs)}, the script {sorted(theirs - ours)}")
    print(f"recipients: {right} of {asked} commits have the same as get_maintainer.pl names")
    share("all recipients of a commit's files", right, asked, "`get_maintainer.pl`", unseen=True)


if __name__ == "__main__":
    main()
