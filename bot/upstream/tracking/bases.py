"""The base of a finding: the last version before the parent, as `git describe` names it ("v5.5-rc3")."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from bot.errors import Unreadable
from bot.git import repository as git
from bot.git.refs import Refs, resolve
from tracker.domain import versions
from tracker.models import Commit, Finding
from tracker.services.reports.report_summary import refresh

_MAX_LOOKED_UP = 5000  # parents looked up in a tree at once, newest first
_MAX_EXCLUDES = 100_000  # letters, most of which are a byte
_MAX_DESCRIBED = 50  # of those found, at up to a tenth of a second each; the next walk goes on


def find(repository: Path, refs: Refs) -> dict[str, str]:
    """Return the bases of parents that have none yet and that this tree holds."""
    if not refs.versions:
        return {}
    lacking = Commit.objects.filter(base="", pk__in=Finding.objects.exclude(parent=None).values("parent"))
    parents = list(lacking.order_by("-pk").values_list("sha", flat=True)[:_MAX_LOOKED_UP])
    resolved = resolve(repository, parents) if parents else {}
    return describe(repository, dict(list(resolved.items())[:_MAX_DESCRIBED]), refs.odd) if resolved else {}


def store(bases: Mapping[str, str]) -> None:
    """Store bases. They replace what a lab gave, since git knows better."""
    changed: set[int] = set()
    for sha, base in bases.items():
        Commit.objects.filter(sha=sha).update(base=base)
        others = Finding.objects.filter(parent__sha=sha).exclude(base=base)
        changed.update(others.filter(headline=True).values_list("report", flat=True))
        others.update(base=base)
    refresh(changed)


def describe(repository: Path, shas: Mapping[str, str], odd: Collection[str]) -> dict[str, str]:
    """Return the nearest version before each commit, by its name in `shas`, whose values are full shas. Commits
    without one are left out.
    """
    excludes = "".join(f",exclude={name}" for name in odd if not set(name) & set(",()%"))
    # One argument may have 128 KiB. A tree with more odd names gets fewer bases, since what is no version is left out.
    excludes = excludes[:_MAX_EXCLUDES].rpartition(",")[0] if len(excludes) > _MAX_EXCLUDES else excludes
    form = f"%H %(describe:match=v[0-9]*{excludes},abbrev=0)"
    sha_lines = "".join(f"{sha}\n" for sha in shas.values()).encode("ascii")
    try:
        out = git.run(repository, "log", "--no-walk=unsorted", "--stdin", f"--format={form}", stdin=sha_lines)
    except Unreadable:
        return {}
    described = dict(line.partition(" ")[::2] for line in out.decode("utf-8", "replace").splitlines())
    return {sha: described[full_sha] for sha, full_sha in shas.items() if versions.parse(described.get(full_sha, ""))}
