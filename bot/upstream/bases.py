"""The development base of findings: the last version before the parent, as `git describe` names it ("v5.5-rc3")."""

from __future__ import annotations

from pathlib import Path

from bot import git
from bot.errors import Unreadable
from bot.upstream.refs import resolve
from tracker.models import Commit, Finding

_AT_ONCE = 50  # parents of one walk, at up to a tenth of a second each: the next one goes on


def fill(repository: Path) -> int:
    """Tell the base of findings whose parent this tree holds. Returns how many parents. What a lab told stands only as
    long as git was not asked.
    """
    lacking = Commit.objects.filter(base="", pk__in=Finding.objects.exclude(parent=None).values("parent"))
    parents = list(lacking.order_by("-pk").values_list("sha", flat=True)[:_AT_ONCE])
    named = describe(repository, parents) if parents else {}
    for sha, base in named.items():
        Commit.objects.filter(sha=sha).update(base=base)
        Finding.objects.filter(parent__sha=sha).exclude(base=base).update(base=base)
    return len(named)


def describe(repository: Path, shas: list[str]) -> dict[str, str]:
    """The nearest version before each of these commits; those that have none before them are left out."""
    here = resolve(repository, shas)
    if not here:
        return {}
    form = "%H %(describe:match=v[0-9]*,abbrev=0)"
    asked = "".join(f"{sha}\n" for sha in here.values()).encode("ascii")
    try:
        out = git.run(repository, "log", "--no-walk=unsorted", "--stdin", f"--format={form}", stdin=asked)
    except Unreadable:
        return {}
    told = dict(line.partition(" ")[::2] for line in out.decode("utf-8", "replace").splitlines())
    return {sha: told[whole] for sha, whole in here.items() if told.get(whole)}
