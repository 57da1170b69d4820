"""MAINTAINERS: who maintains a file; compared with get_maintainer.pl on Debian's kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.git.maintainers import MAX_BYTES, Duty, Maintainers, responsible_for
from bot.mail.settings import read_mailmap
from bot.notifications.report import compose_due
from bot.outbox.drafts import ComposeConfig
from tests.support.needs import DebianKernel, kernel_source, need
from tests.support.world import Linux, World
from tracker.models import OutgoingMail

# --- MAINTAINERS: who maintains a file; compared with get_maintainer.pl on Debian's kernel ---

TEXT = """\
List of maintainers
===================

.. note:: F: is a file, and this line is none.

Maintainers List
----------------

EXAMPLE ALLOCATOR
M:	Andrea Vale <andrea@dev.example>
M:	"Lane, Bo" <bo@dev.example>
R:	Chris Dell <chris@dev.example>
L:	linux-mm@lists.example
L:	private@lists.example (subscribers-only)
L:	careful@lists.example (moderated for non-subscribers)
S:	Maintained
F:	include/linux/sl?b*.h
F:	mm/sl?b*

EXAMPLE DRIVERS
M:	Andrea Vale <andrea@home.example>
M:	Eli Ford <eli@dev.example>
F:	drivers/example/
F:	drivers/plain
F:	Documentation/*/example.rst
X:	drivers/example/secret/
N:	[^a-z]exmp

EXAMPLE KEYS
M:	Gil Hart <gil@dev.example>
K:	\\bexample_register\\b
K:	(broken

THE REST
M:	The Boss <boss@dev.example>
L:	linux-kernel@vger.kernel.org
F:	*
F:	*/
"""
KNOWN = Maintainers(TEXT)
MM = ["andrea@dev.example", "bo@dev.example", "chris@dev.example", "linux-mm@lists.example", "careful@lists.example"]


def who(*files: str, changed: str = "") -> list[str]:
    return [each.address.email for each in KNOWN.of(files, changed)]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("mm/slub.c", MM),
        ("mm/slab_common.c", MM),
        ("mm/slow/slub.c", []),
        ("include/linux/slab.h", MM),
        ("drivers/example/a/b.c", ["andrea@home.example", "eli@dev.example"]),
        ("drivers/example/secret/b.c", []),
        ("drivers/plain/core.c", ["andrea@home.example", "eli@dev.example"]),
        ("drivers/plainer", ["andrea@home.example", "eli@dev.example"]),  # so get_maintainer.pl has it: a beginning
        ("drivers/plainer/core.c", []),
        ("Documentation/mm/example.rst", ["andrea@home.example", "eli@dev.example"]),
        ("Documentation/mm/deep/example.rst", []),
        ("arch/arm/exmp_a.c", ["andrea@home.example", "eli@dev.example"]),
        ("arch/arm/aexmp.c", []),
        ("Makefile", []),
        ("", []),
    ],
)
def test_who_looks_after_a_file(path: str, expected: list[str]) -> None:
    assert who(path) == expected


def test_each_person_and_each_address_once_by_the_nearest_section() -> None:
    assert who("mm/slub.c", "drivers/example/a.c") == [*MM, "eli@dev.example"]


def test_lines_that_a_change_touches_name_people_too() -> None:
    assert who("Makefile", changed="\texample_register(dev);") == ["gil@dev.example"]
    assert who("Makefile", changed="\texample_registered(dev);") == []


def test_what_somebody_is_there() -> None:
    found = KNOWN.of(["mm/slub.c"])
    assert [str(each) for each in found][1:4] == [
        "maintainer of EXAMPLE ALLOCATOR",
        "reviewer of EXAMPLE ALLOCATOR",
        "list of EXAMPLE ALLOCATOR",
    ]
    assert found[1].address.name == "Lane, Bo"
    assert found[3].duty is Duty.LIST


def test_a_mailmap_knows_better_addresses() -> None:
    proper = read_mailmap("Andrea Vale <andrea@new.example> <andrea@dev.example>").proper
    assert KNOWN.of(["mm/slub.c"], "", proper)[0].address.email == "andrea@new.example"


PIECES = [*"ab/*?[]().\\\n\t: ", "F:\t", "X:\t", "N:\t", "K:\t", "M:\t", "L:\t", "SECTION\n", "x@dev.example", "(a+)+$"]


@given(text=st.lists(st.sampled_from(PIECES), max_size=60).map("".join), path=st.text("ab/.", max_size=20))
def test_a_file_of_junk_names_whom_it_likes(text: str, path: str) -> None:
    for each in Maintainers(text).of([path], "aaaaaaaa!"):
        assert "@" in each.address.email


@pytest.mark.parametrize("evil", ["N:\t(a+)+$", "K:\t(a|aa)+$", "F:\t" + "*a" * 30 + "b", "F:\t" + "a" * 100_000])
def test_no_pattern_takes_long(evil: str) -> None:
    """A tree is somebody else's: its regexes are looked for in linear time, or not at all."""
    known = Maintainers(f"EVIL\nM:\tx@dev.example\n{evil}\n")
    known.of(["a" * 4000 + "!"], "a" * 500_000 + "!")


@pytest.mark.long
def test_as_get_maintainer_has_it(tmp_path: Path) -> None:
    """Commits of invented files against the script itself, each asked once; `make maintainers` compares 200."""
    need("linux-source")
    tarball = kernel_source()
    assert tarball
    kernel = DebianKernel(tmp_path, tarball)
    known, proper = Maintainers(kernel.maintainers), read_mailmap(kernel.mailmap).proper
    assert known.of(["mm/vmscan.c"])
    named = 0
    for commit in kernel.commits(int(os.environ.get("PERFWORK_COMMITS", "25"))):
        ours = {each.address.email for each in known.of(commit.files, commit.line, proper)}
        # A report goes to LKML anyway; the script names it for every file, as the list of THE REST.
        lkml = {"linux-kernel@vger.kernel.org"}
        assert ours - lkml == kernel.script_recipients(commit) - lkml, commit
        named += len(ours)
    assert named > 50


# --- Recipients from the culprit's own tree: MAINTAINERS and .mailmap at that commit, in a bare clone ---

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


def people_of(tree: Linux, sha: str) -> list[str]:
    return [person.address.email for person in responsible_for([tree.path], sha)]


MM_PEOPLE = ["andrea@dev.example", "bo@dev.example", "linux-mm@lists.example"]


def test_the_files_of_a_commit_and_who_looks_after_them(linux: Linux) -> None:
    sha = change(linux, {"mm/vmscan.c": b"int b;\n"})
    assert people_of(linux, sha) == MM_PEOPLE


def test_lines_that_it_adds_or_removes_count_and_no_others(linux: Linux) -> None:
    added = change(linux, {"lib/x.c": b"example_register(dev);\n"})
    assert people_of(linux, added) == ["gil@dev.example"]
    beside = change(linux, {"lib/x.c": b"example_register(dev);\nint b;\n"})
    linux.write(b"next\n", [added], {**BEGIN, "lib/x.c": b"example_register(dev);\nint b;\n"}, on="other")
    assert people_of(linux, linux.head("other")) == []
    assert people_of(linux, beside) == []


def test_the_very_first_commit_and_odd_names(linux: Linux) -> None:
    assert people_of(linux, linux.head("master"))[:3] == MM_PEOPLE
    odd = change(linux, {"mm/a b\u00e9\n.c": b"x\n"})
    assert people_of(linux, odd) == MM_PEOPLE


def test_a_tree_without_the_file_names_nobody(tmp_path: Path) -> None:
    tree = Linux(tmp_path / "bare.git")
    tree.commit("begin")
    sha = tree.commit("mm: a")
    assert responsible_for([tree.path], sha) == ()


@pytest.mark.parametrize("content", [b"\xff\xfe\x00" * 9, b"x" * (MAX_BYTES + 1), b""])
def test_a_file_of_junk_or_of_no_measure_names_nobody(linux: Linux, content: bytes) -> None:
    sha = change(linux, {"MAINTAINERS": content, "mm/vmscan.c": b"int b;\n"})
    assert people_of(linux, sha) == []


def test_a_link_or_a_folder_in_its_place_names_nobody(linux: Linux) -> None:
    files = {name: content for name, content in BEGIN.items() if name != "MAINTAINERS"}
    sha = linux.write(b"mm: a\n", [linux.head("master")], {**files, "MAINTAINERS/a": b"x", "mm/vmscan.c": b"int b;\n"})
    assert people_of(linux, sha) == []


def test_trees_that_do_not_know_it_or_are_broken_are_passed_over(linux: Linux, tmp_path: Path) -> None:
    sha = change(linux, {"mm/vmscan.c": b"int b;\n"})
    other = Linux(tmp_path / "other.git")
    other.commit("begin")
    broken = tmp_path / "broken.git"
    broken.mkdir()
    (broken / "HEAD").write_text("junk")
    trees = [broken, other.path, tmp_path / "nowhere", linux.path]
    assert len(responsible_for(trees, sha)) == 3
    assert responsible_for([linux.path], "0" * 40) == ()
    assert responsible_for([linux.path], "not a sha") == ()


def test_a_report_goes_to_those_whom_the_tree_names(world: World, linux: Linux) -> None:
    sha = change(linux, {"mm/vmscan.c": b"int b;\n"})
    world.ingest(world.result(sha, "mm/vmscan: walk cold folios first"))
    compose_due(world.settings, world.later(), config=ComposeConfig(trees=(linux.path,)))
    mail = OutgoingMail.objects.get()
    assert mail.recipients == [
        "dana@dev.example",
        "perf-reports@lists.example.org",
        MM_PEOPLE[2],
        MM_PEOPLE[0],
        MM_PEOPLE[1],
    ]
    assert ["andrea@dev.example", "Andrea Vale", "Cc", "maintainer of EXAMPLE MM"] in mail.people
    assert mail.maintainers == ["andrea@dev.example"]
    assert mail.lists == ["perf-reports@lists.example.org", "linux-mm@lists.example"]
