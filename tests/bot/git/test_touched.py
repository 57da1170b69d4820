"""Recipients from the culprit's own tree: MAINTAINERS and .mailmap at that commit, in a bare clone."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.git.maintainers import MAX_BYTES, TouchedFiles, touched
from bot.notifications.report import compose_due
from bot.outbox.drafts import ComposeConfig
from tests.linux import Linux
from tests.world import World
from tracker.models import OutgoingMail

MAINTAINERS = b"""\
EXAMPLE MM
M:	Andrea Vale <andrea@old.example>
R:	Bo Lane <bo@dev.example>
L:	linux-mm@lists.example
F:	mm/

EXAMPLE KEYS
M:	Gil Hart <gil@dev.example>
K:	\\bexample_register\\b
"""
MAILMAP = b"Andrea Vale <andrea@dev.example> <andrea@old.example>\n"
BEGIN = {"MAINTAINERS": MAINTAINERS, ".mailmap": MAILMAP, "mm/vmscan.c": b"int a;\n"}


@pytest.fixture
def linux(tmp_path: Path) -> Linux:
    tree = Linux(tmp_path / "linux.git")
    tree.write(b"begin", (), BEGIN)
    return tree


def change(tree: Linux, files: dict[str, bytes]) -> str:
    return tree.write(b"mm/vmscan: walk cold folios first\n", [tree.head("master")], {**BEGIN, **files})


def files_and_people(tree: Linux, sha: str) -> tuple[tuple[str, ...], list[str]]:
    found = touched([tree.path], sha)
    return found.files, [each.address.email for each in found.responsible]


MM = ["andrea@dev.example", "bo@dev.example", "linux-mm@lists.example"]


def test_the_files_of_a_commit_and_who_looks_after_them(linux: Linux) -> None:
    sha = change(linux, {"mm/vmscan.c": b"int b;\n"})
    assert files_and_people(linux, sha) == (("mm/vmscan.c",), MM)


def test_lines_that_it_adds_or_removes_count_and_no_others(linux: Linux) -> None:
    added = change(linux, {"lib/x.c": b"example_register(dev);\n"})
    assert files_and_people(linux, added) == (("lib/x.c",), ["gil@dev.example"])
    beside = change(linux, {"lib/x.c": b"example_register(dev);\nint b;\n"})
    linux.write(b"next\n", [added], {**BEGIN, "lib/x.c": b"example_register(dev);\nint b;\n"}, on="other")
    assert files_and_people(linux, linux.head("other")) == (("lib/x.c",), [])
    assert files_and_people(linux, beside)[1] == []


def test_the_very_first_commit_and_odd_names(linux: Linux) -> None:
    assert files_and_people(linux, linux.head("master"))[1][:3] == MM
    odd = change(linux, {"mm/a b\u00e9\n.c": b"x\n"})
    assert files_and_people(linux, odd) == (("mm/a b\u00e9\n.c",), MM)


def test_a_tree_without_the_file_names_nobody(tmp_path: Path) -> None:
    tree = Linux(tmp_path / "bare.git")
    tree.commit("begin")
    sha = tree.commit("mm: a")
    assert touched([tree.path], sha).responsible == ()
    assert len(touched([tree.path], sha).files) == 1


@pytest.mark.parametrize("content", [b"\xff\xfe\x00" * 9, b"x" * (MAX_BYTES + 1), b""])
def test_a_file_of_junk_or_of_no_measure_names_nobody(linux: Linux, content: bytes) -> None:
    sha = change(linux, {"MAINTAINERS": content, "mm/vmscan.c": b"int b;\n"})
    assert files_and_people(linux, sha)[1] == []


def test_a_link_or_a_folder_in_its_place_names_nobody(linux: Linux) -> None:
    files = {name: content for name, content in BEGIN.items() if name != "MAINTAINERS"}
    sha = linux.write(b"mm: a\n", [linux.head("master")], {**files, "MAINTAINERS/a": b"x", "mm/vmscan.c": b"int b;\n"})
    assert files_and_people(linux, sha)[1] == []


def test_trees_that_do_not_know_it_or_are_broken_are_passed_over(linux: Linux, tmp_path: Path) -> None:
    sha = change(linux, {"mm/vmscan.c": b"int b;\n"})
    other = Linux(tmp_path / "other.git")
    other.commit("begin")
    broken = tmp_path / "broken.git"
    broken.mkdir()
    (broken / "HEAD").write_text("junk")
    trees = [broken, other.path, tmp_path / "nowhere", linux.path]
    assert len(touched(trees, sha).responsible) == 3
    assert touched([linux.path], "0" * 40) == TouchedFiles()
    assert touched([linux.path], "not a sha") == TouchedFiles()


def test_a_report_goes_to_those_whom_the_tree_names(world: World, linux: Linux) -> None:
    sha = change(linux, {"mm/vmscan.c": b"int b;\n"})
    world.ingest(world.result(sha, "mm/vmscan: walk cold folios first"))
    compose_due(world.settings, world.later(), config=ComposeConfig(trees=(linux.path,)))
    mail = OutgoingMail.objects.get()
    assert mail.recipients == ["dana@dev.example", "perf-reports@lists.example.org", MM[2], MM[0], MM[1]]
    assert ["andrea@dev.example", "Andrea Vale", "Cc", "maintainer of EXAMPLE MM"] in mail.people
    assert mail.maintainers == ["andrea@dev.example"]
    assert mail.lists == ["perf-reports@lists.example.org", "linux-mm@lists.example"]
