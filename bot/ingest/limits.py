"""What any format may hand in at most: names that fit an index, counts that fit a column. Pure."""

from __future__ import annotations

import re

from bot.ingest.errors import Refused
from bot.ingest.value import CommitTold, Result

NAME = 500  # characters of what things are known by
TEXT = 2000  # characters of what is only shown
RUNS = 1_000_000_000  # a side
_SHA = re.compile(r"[0-9a-f]{40}\Z")


def checked(result: Result, where: str) -> Result:
    """The same result; Refused where a name is too long for a database to find it by, or a count too large."""
    names = {"producer": result.producer, "id": result.id, "tree": result.tree, "branch": result.branch}
    names["patch mail"] = result.patch_message_id
    for commit in (result.good, result.bad, result.culprit, result.parent):
        if commit:
            _check_commit(commit, where)
            names[f"author of {commit.sha[:10]}"] = commit.author_email
    for run in result.runs:
        names |= {"suite": run.suite, "machine": run.machine.id}
        for each in run.measurements:
            if len(each.metric) > NAME or len(each.unit) > NAME:
                raise Refused(where, f"expected a metric of at most {NAME} characters, found {each.metric[:40]!r}…")
            if max(each.old.n, each.new.n) > RUNS:
                raise Refused(where, f"expected at most {RUNS:,} runs of {each.metric[:80]}, found more")
        _check_names(names, where)
    if len(result.tree_url) > TEXT:
        raise Refused(where, f"expected an address of at most {TEXT} characters, found {len(result.tree_url)}")
    return result


def _check_names(names: dict[str, str], where: str) -> None:
    for what, name in names.items():
        if len(name) > NAME:
            raise Refused(where, f"expected a {what} of at most {NAME} characters, found {len(name)}")


def _check_commit(commit: CommitTold, where: str) -> None:
    if not _SHA.match(commit.sha):
        raise Refused(where, f"expected a sha of 40 digits, found {commit.sha[:60]!r}")
    if len(commit.describe) > TEXT:
        raise Refused(where, f"expected a description of at most {TEXT} characters, found {len(commit.describe)}")
