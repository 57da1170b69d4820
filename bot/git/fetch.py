"""`git fetch` of a mirror before it is walked, if a remote is set."""

from __future__ import annotations

import re
from pathlib import Path

from bot.errors import Unreadable
from bot.git import repository as git

# Give up on a silent server before our own timeout, never ask for a password, and write the commit-graph file, which
# makes every later walk faster.
_SETTINGS = (
    *("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60", "-c", "core.sshCommand=ssh -o BatchMode=yes"),
    *("-c", "protocol.ext.allow=never", "-c", "fetch.writeCommitGraph=true", "-c", "gc.autoDetach=false"),
)
_REMOTE = re.compile(r"remote\..+\.url")
_MIRROR_REFSPECS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")


def fetch(repository: Path, timeout: float) -> bool:
    """Fetch from `origin`, or from the only remote, including forced pushes and deletions. Return False if there is no
    such remote. Takes at most `timeout` seconds.

    In a clone with a work tree only remote-tracking branches move, and no local tag is deleted.
    """
    config = _config(repository)
    remotes = [name.split(".", 1)[1].removesuffix(".url") for name in config if _REMOTE.fullmatch(name)]
    remote = "origin" if "origin" in remotes else (remotes[0] if len(remotes) == 1 else "")
    if not remote:
        return False
    options = (
        "fetch",
        "--quiet",
        "--upload-pack=git-upload-pack",
        "--no-recurse-submodules",
        "--no-write-fetch-head",
        "--prune",
        "--force",
    )
    bare = config.get("core.bare") == "true"
    refspecs = _MIRROR_REFSPECS if bare and f"remote.{remote}.fetch" not in config else ()
    tags = () if bare else ("--tags",)
    git.run(repository, *_SETTINGS, *options, *tags, "--", remote, *refspecs, timeout=timeout)
    return True


def _config(repository: Path) -> dict[str, str]:
    """Return the repository's own settings that a fetch depends on."""
    try:
        out = git.run(repository, "config", "--local", "--null", "--list").decode("utf-8", "replace")
    except Unreadable:
        return {}
    pairs = (entry.partition("\n") for entry in out.split("\0") if entry)
    return {name: value for name, _, value in pairs}
