"""Accuracy of landings: the first version of each commit of made histories, against `git describe --contains`.

Histories with octopus merges, several roots, stable branches and tags out of order; each is made from a number that no
test uses. `landings.py [HISTORIES]` (default 5).
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.accuracy.shares import share

COMMITS, ASKED = 600, 200


def main() -> None:
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tracker.settings")
    import django

    django.setup()
    from tests.bot.upstream.test_landings import described, every_commit, graph_of
    from tests.support.world import build, history

    right = asked = 0
    for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
        with tempfile.TemporaryDirectory() as folder:
            repository = Path(folder) / "linux.git"
            build(repository, history(1000 + number, COMMITS))
            shas = random.Random(number).sample(every_commit(repository), ASKED)
            graph, refs = graph_of(repository)
            theirs = described(repository, shas)
            for sha in shas:
                tag = graph.tag_of(sha)
                right += (refs.versions[tag].name if tag >= 0 else "") == theirs[sha]
            asked += len(shas)
    print(f"landings: {right} of {asked} as git describe --contains has them")
    share("the first version of a commit", right, asked, "`git describe --contains`", unseen=True)


if __name__ == "__main__":
    main()
