"""Where a report's commit comes from: a repository and branch, or a patch series applied by the robot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_REPOSITORY = re.compile(r"(?P<url>(?:https?|git)://\S{3,300})(?:\s+(?P<branch>\S{1,200}))?\s*\Z")
_PATCH = re.compile(r"(?P<name>url|base|patch link|patch subject):\s*(?P<value>\S.*)")


@dataclass(frozen=True, slots=True)
class Origin:
    """`repo_url` and `repo_branch` of a tree; or, for a patch, its series (`patch_url`), its base, its mail
    (`patch_link`) and that mail's subject. Missing values are "".
    """

    repo_url: str = ""
    repo_branch: str = ""
    patch_url: str = ""
    base_url: str = ""
    base_branch: str = ""
    patch_link: str = ""
    patch_subject: str = ""


def find_origin(prose: Sequence[str]) -> Origin:
    """Parse the lines below `commit:`, up to the first one about the test."""
    fields: dict[str, str] = {}
    for line in prose[:30]:
        if line.startswith(("in testcase", "testcase")):
            break
        if (found := _REPOSITORY.match(line)) and "repo_url" not in fields:
            fields |= {"repo_url": found["url"], "repo_branch": found["branch"] or ""}
        elif found := _PATCH.match(line.rstrip()):
            url, *rest = found["value"].split(None, 1)
            branch = rest[0] if rest else ""
            match found["name"]:
                case "url":
                    fields["patch_url"] = url
                case "base":
                    fields |= {"base_url": url, "base_branch": branch.strip()}
                case "patch link":
                    fields["patch_link"] = url
                case "patch subject":
                    fields["patch_subject"] = found["value"]
    return Origin(**fields)
