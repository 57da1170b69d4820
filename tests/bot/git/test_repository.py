"""Fetching mirrors, whatever kind of clone they are; if a server hangs, the existing commits are walked."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from bot.archives.sources import open_sources
from bot.checks import _paths
from bot.git import repository as git
from bot.git.repository import Busy, Unreadable, fetch, read_refs
from bot.leases import acquire
from bot.processes import fork, process_name
from bot.tasks import track_tree
from bot.upstream.tracking import Patience, follow
from tests.support.world import Linux, World
from tracker.domain.events import TreeRole
from tracker.models import Release, Tree

TIMEOUT = 20.0


@pytest.fixture
def upstream(tmp_path: Path) -> Linux:
    tree = Linux(tmp_path / "upstream.git")
    tree.commit("Linux 9.0")
    tree.tag("v9.0")
    return tree


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A git server that takes the call and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"git://127.0.0.1:{server.getsockname()[1]}/linux.git"


def clone(upstream: Linux, repository: Path, *kind: str) -> Path:
    subprocess.run(["git", "clone", "--quiet", *kind, upstream.path, repository], check=True, env=git.ENVIRONMENT)
    return repository


@pytest.mark.parametrize("kind", [("--mirror",), ("--bare",), ()], ids=["mirror", "bare", "with a work tree"])
def test_every_kind_of_clone_follows_its_remote(upstream: Linux, tmp_path: Path, kind: tuple[str, ...]) -> None:
    repository = clone(upstream, tmp_path / "clone", *kind)
    before = upstream.head("master")
    dropped = upstream.commit("mm: a")
    upstream.tag("v9.1-rc1")
    assert fetch(repository, TIMEOUT)
    refs = read_refs(repository)
    assert list(refs.followed("", every=False).values()) == [dropped]
    assert [tag.name for tag in refs.versions] == ["v9.0", "v9.1-rc1"]
    upstream.point("master", before)
    instead = upstream.commit("mm: b")
    upstream("tag", "-f", "-a", "-m", "moved", "v9.1-rc1", instead)
    upstream.point("topic", instead)
    assert fetch(repository, TIMEOUT)
    refs = read_refs(repository)
    assert list(refs.followed("", every=False).values()) == [instead]
    assert refs.versions[-1].commit == instead
    assert list(refs.followed("topic", every=True).values()) == [instead]
    upstream("update-ref", "-d", "refs/heads/topic")
    assert fetch(repository, TIMEOUT)
    assert not read_refs(repository).followed("topic", every=True)


def test_the_owner_of_a_clone_keeps_his_own_branches_and_tags(upstream: Linux, tmp_path: Path) -> None:
    repository = clone(upstream, tmp_path / "clone")
    git.run(repository, "tag", "v9.0-mine")
    git.run(repository, "branch", "wip")
    upstream.commit("mm: a")
    assert fetch(repository, TIMEOUT)
    kept = git.run(repository, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags").decode().split()
    assert sorted(kept) == ["master", "v9.0", "v9.0-mine", "wip"]
    assert set(read_refs(repository).branches) == {"refs/remotes/origin/master"}


def test_a_tree_without_a_remote_is_walked_as_it_is(upstream: Linux) -> None:
    assert not fetch(upstream.path, TIMEOUT)


def test_a_server_that_hangs_is_given_up_with_all_that_git_started(
    upstream: Linux, tmp_path: Path, silent_server: str
) -> None:
    repository = clone(upstream, tmp_path / "clone", "--mirror")
    git.run(repository, "config", "remote.origin.url", silent_server)
    start = time.monotonic()
    with pytest.raises(Unreadable, match="git fetch took more than 1 s"):
        fetch(repository, 1.0)
    assert time.monotonic() - start < 10
    assert not any(silent_server in command for command in running_commands())


def running_commands() -> Iterator[str]:
    """The command lines of all processes, from proc(5): a bare machine has no ps."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            yield file.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")


def test_what_is_there_is_walked_though_it_can_not_be_fetched(
    db: None, world: World, upstream: Linux, tmp_path: Path
) -> None:
    repository = clone(upstream, tmp_path / "clone", "--mirror")
    git.run(repository, "config", "remote.origin.url", str(tmp_path / "gone.git"))
    tree = Tree.objects.create(name="linus", role=TreeRole.MAINLINE, path=str(repository))
    _, error = follow(tree, world.settings, world.now, Patience(TIMEOUT, timedelta(seconds=9)))
    assert error.startswith(f"linus: {repository}: git fetch: fatal:")
    assert "\n" not in error
    assert Tree.objects.get().error == error
    assert Release.objects.filter(version="v9.0").exists()
    git.run(repository, "config", "remote.origin.url", str(upstream.path))
    assert follow(tree, world.settings, world.now, Patience(TIMEOUT, timedelta(seconds=9)))[1] == ""
    assert Tree.objects.get().error == ""


def test_one_worker_at_a_time(db: None, world: World, upstream: Linux) -> None:
    tree = Tree.objects.create(name="linus", role=TreeRole.MAINLINE, path=str(upstream.path))
    acquire(tree, timedelta(minutes=5))
    with pytest.raises(Busy, match="linus: another worker"):
        follow(tree, world.settings, world.now, Patience(None, timedelta(seconds=9)))
    Tree.objects.update(holder="elsewhere 1 1")
    with pytest.raises(Busy):
        follow(tree, world.settings, world.now, Patience(None, timedelta(seconds=9)))
    host = process_name(os.getpid()).rsplit(" ", 2)[0]
    Tree.objects.update(holder=f"{host.replace(host.split()[1], 'another-boot')} 1 0")  # of the same name
    with pytest.raises(Busy):
        follow(tree, world.settings, world.now, Patience(None, timedelta(seconds=9)))
    Tree.objects.update(holder=f"{host} 1 0")
    follow(tree, world.settings, world.now, Patience(None, timedelta(seconds=9)))  # who held it has died
    assert Tree.objects.get().lease_until is None


def test_a_task_logs_its_trouble_and_goes_on(db: None, settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.PERFWORK_TREES = {"linus": "/nowhere"}
    track_tree("linus")
    assert "linus: /nowhere: there is no such directory: clone it again, or correct PERFWORK_TREES" in caplog.text
    assert "there is no such directory" in Tree.objects.get().error


def as_nobody(call: Callable[[], str]) -> str:
    """Return what a call returns to a user who is not root."""
    if os.geteuid():
        return call()
    read, write = os.pipe()

    def answer() -> None:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        os.write(write, call().encode())

    pid = fork(answer)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0
    return said


@pytest.fixture
def inbox(upstream: Linux, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An inbox with one epoch, where everybody may read."""
    place = tmp_path_factory.mktemp("lore")
    for folder in (place, *place.parents[:-2]):
        folder.chmod(0o755)
    (place / "git").mkdir(mode=0o755)
    clone(upstream, place / "git" / "0.git", "--mirror")
    return place


@pytest.mark.parametrize("hidden", ["", "git", "git/0.git"])
def test_what_this_user_may_not_read_is_said_and_stops_nothing(inbox: Path, settings: Any, hidden: str) -> None:
    """A tree that became unreadable stopped the intake of results, and an epoch was called no repository."""
    epoch = inbox / "git" / "0.git"
    settings.PERFWORK_ARCHIVES, settings.PERFWORK_TREES = [str(inbox)], {"linus": str(epoch)}
    (inbox / hidden).chmod(0o000)
    try:
        assert as_nobody(lambda: str(git.is_repository(epoch))) == "False"
        assert "nobody may not read it: correct its owner or its mode" in as_nobody(lambda: git.complaint(epoch))
        assert "nobody may not read it" in as_nobody(lambda: why_not(str(inbox)))
        assert as_nobody(lambda: git.command(epoch, "log")[0]) == "git"
        warned = as_nobody(lambda: " ".join(f"{message.id} {message.msg}" for message in _paths()))
        assert warned.count("perfwork.W003") == 2
        assert "perfwork.W002" not in warned
    finally:
        (inbox / hidden).chmod(0o755)
    assert as_nobody(lambda: why_not(str(inbox))) == ""


def test_what_is_no_repository_is_said(tmp_path: Path) -> None:
    assert git.complaint(tmp_path / "gone") == "there is no such directory: clone it again"
    assert git.complaint(tmp_path) == "not a git repository: clone it again"


def why_not(archive: str) -> str:
    try:
        open_sources(archive)
    except Unreadable as error:
        return str(error)
    return ""


def test_what_talks_to_a_server_uses_the_configuration_of_the_user(
    upstream: Linux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its proxies and certificates are there; everything else is as without it."""
    mirror = clone(upstream, tmp_path / "mirror.git", "--mirror")
    subprocess.run(["git", "-C", mirror, "config", "remote.origin.url", "https://git.invalid/linux"], check=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text(
        f'[url "{upstream.path}"]\n\tinsteadOf = https://git.invalid/linux\n[log]\n\tdate = relative\n'
    )
    with pytest.raises(Unreadable):
        fetch(mirror, TIMEOUT)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    newest = upstream.commit("mm: a")
    assert fetch(mirror, TIMEOUT)
    assert git.run(mirror, "rev-parse", "refs/heads/master").decode().strip() == newest
    with pytest.raises(Unreadable):
        git.run(mirror, "config", "log.date")


def test_names_that_are_none_of_ours_are_refused(db: None, settings: Any) -> None:
    settings.PERFWORK_TREES = {"linus": "/nowhere"}
    with pytest.raises(CommandError, match=r"mm: not in PERFWORK_TREES \(linus\)"):
        call_command("track", "mm")
    settings.PERFWORK_TREES = {}
    with pytest.raises(CommandError, match="no tree to track"):
        call_command("track")


def test_roles_and_branches_come_from_the_settings(db: None, settings: Any, upstream: Linux) -> None:
    upstream.point("for-next", upstream.head("master"))
    settings.PERFWORK_TREES = {"tip": f"{upstream.path}#for-*", "linux-6.6.y": str(upstream.path)}
    settings.PERFWORK_TREE_ROLES = {"tip": "next"}
    call_command("track")
    assert dict(Tree.objects.values_list("name", "role")) == {"tip": "next", "linux-6.6.y": "stable"}
    assert Tree.objects.get(name="tip").branches == "for-*"
    settings.PERFWORK_TREE_ROLES = {}
    call_command("track", "--again", "--no-fetch")


def test_the_worker_does_not_ask_a_server_every_minute(
    db: None, settings: Any, upstream: Linux, tmp_path: Path
) -> None:
    repository = clone(upstream, tmp_path / "clone", "--mirror")
    settings.PERFWORK_TREES = {"linus": str(repository)}
    track_tree("linus")
    upstream.commit("mm: a")
    upstream.tag("v9.0.1")
    track_tree("linus")
    assert [tag.name for tag in read_refs(repository).versions] == ["v9.0"]
    settings.PERFWORK_FETCH_EVERY = 0.0
    track_tree("linus")
    assert [tag.name for tag in read_refs(repository).versions] == ["v9.0", "v9.0.1"]


@pytest.mark.parametrize("kind", [("--mirror",), ()], ids=["mirror", "with a work tree"])
def test_nothing_of_a_configured_clone_is_run(upstream: Linux, tmp_path: Path, kind: tuple[str, ...]) -> None:
    """A hook of somebody who may write to the clone would run as the bot."""
    repository = clone(upstream, tmp_path / "clone", *kind)
    inner = repository / ".git" if not kind else repository
    ran = tmp_path / "ran"
    hooks = tmp_path / "hooks"
    for place in (inner / "hooks", hooks):
        place.mkdir(exist_ok=True)
        for name in ("reference-transaction", "post-merge", "pre-auto-gc", "post-update"):
            (place / name).write_text(f"#!/bin/sh\necho {name} >> {ran}\n")
            (place / name).chmod(0o755)
    monitor = hooks / "monitor"
    monitor.write_text(f"#!/bin/sh\necho monitor >> {ran}\n")
    monitor.chmod(0o755)
    git.run(repository, "config", "core.fsmonitor", str(monitor))
    for _ in range(2):
        head = upstream.commit("mm: a")
        assert fetch(repository, TIMEOUT)
        git.run(repository, "config", "core.hooksPath", str(hooks))  # and again, with the hooks elsewhere
        assert git.run(repository, "log", "-1", "--format=%H", head).decode().strip() == head
        if not kind:  # what looks at a work tree asks its monitor
            git.run(repository, "status", "--porcelain")
    assert not ran.exists()


def test_a_partial_clone_fetches_nothing_by_itself(upstream: Linux, tmp_path: Path) -> None:
    """Its remote's `uploadpack` is a command of its configuration."""
    repository = clone(upstream, tmp_path / "clone", "--mirror")
    for name, value in (
        *(("core.repositoryformatversion", "1"), ("extensions.partialClone", "origin")),
        *(("remote.origin.promisor", "true"), ("remote.origin.uploadpack", f"touch {tmp_path}/ran; git-upload-pack")),
    ):
        git.run(repository, "config", name, value)
    with suppress(Unreadable):
        git.run(repository, "cat-file", "--batch-check", stdin=b"1" * 40 + b"\n")
    upstream.commit("mm: b")
    with suppress(Unreadable):
        fetch(repository, TIMEOUT)
    assert not (tmp_path / "ran").exists()
