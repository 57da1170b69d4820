"""Diffs are taken out of mails exactly as they were posted: git must be able to apply them.

Also the branches and commits that people ask to be tested, in a table of spellings.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.mail.patches import branch_in, commit_in, find_diffs, ref_in

OLD = "one  \n\ntwo\t\nthree\u00a0three\nx\n-- \n> quoted\n| bar\nlast\n"


def git(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example", *arguments]
    return subprocess.run(run, cwd=folder, input=stdin, capture_output=True, text=True, check=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "mm").mkdir()
    (tmp_path / "mm" / "a.c").write_text(OLD)
    (tmp_path / "mm" / "b.c").write_text("b\n" * 30)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def posted(tree: Path, **files: str) -> str:
    """Return the diff of some changes, which are taken back."""
    for name, text in files.items():
        (tree / "mm" / f"{name}.c").write_text(text)
    git(tree, "add", "-N", ".")
    diff = git(tree, "diff", "--binary").stdout
    git(tree, "reset", "-q", "--hard")
    git(tree, "clean", "-qfd")
    return diff


@pytest.mark.parametrize(
    "files",
    [
        {"a": OLD.replace("x\n", "y\n")},
        {"a": OLD.replace("last\n", "last")},
        {"a": OLD.replace("x\n", "y\n"), "b": "b\n" * 20 + "c\n" + "b\n" * 10},
        {"new": "a new file\n"},
        {"a": "\0binary\n" * 50},
    ],
)
def test_what_git_prints_is_returned_to_the_letter(tree: Path, files: dict[str, str]) -> None:
    diff = posted(tree, **files)
    mail = f"Hi,\n\ncan you test this?\n\n---\n mm/a.c | 2 +-\n\n{diff}-- \n2.40\n\nRegards\n"
    [found] = find_diffs(mail)
    assert found == diff
    assert git(tree, "apply", "--check", "-", stdin=found).returncode == 0


def test_prose_between_two_diffs_separates_them(tree: Path) -> None:
    first, second = posted(tree, a=OLD.replace("x\n", "y\n")), posted(tree, b="c\n" * 30)
    assert find_diffs(f"Either\n\n{first}\nor that:\n\n{second}\nThanks") == (first, second)


def test_context_whose_space_a_mailer_cut_is_kept(tree: Path) -> None:
    diff = posted(tree, a=OLD.replace("x\n", "y\n"))
    cut = "\n".join(line.rstrip() if line == " " else line for line in diff.split("\n"))
    [found] = find_diffs(cut)
    assert git(tree, "apply", "--check", "-", stdin=found).returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "> diff --git a/x b/x\n> --- a/x\n> +++ b/x\n> @@ -1 +1 @@\n> -a\n> +b\n",  # quoted
        "diff --git a/x b/x\n",
        "--- a/x\nno new name\n",
        "@@ -1 +1 @@\n-a\n+b\n",
    ],
)
def test_what_is_no_diff(text: str) -> None:
    assert find_diffs(text) == ()


def test_a_wrapped_hunk_ends_where_it_breaks() -> None:
    [found] = find_diffs("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a long line that\nwas wrapped\n-b\n+c\n")
    assert found.endswith(" a long line that\n")


LINES = st.sampled_from(
    (
        "diff --git a/x b/x", "--- a/x", "+++ b/x", "@@ -1,2 +1,2 @@", "@@ -1 +999999 @@", " a", "-a", "+a", "",
        "prose", "GIT binary patch", "literal 5", "rename to x", "\\ No newline at end of file", "-- ", "Index: x",
    )
)  # fmt: skip


@given(st.lists(LINES, max_size=40).map("\n".join) | st.text(max_size=300))
def test_each_is_a_part_of_the_text_in_order(text: str) -> None:
    at = 0
    for each in find_diffs(text):
        at = (text + "\n").index(each, at) + len(each)


def test_headers_without_hunks_cost_no_square() -> None:
    began = time.process_time()
    assert find_diffs("diff --git a/x b/x\n" * 100_000) == ()
    assert time.process_time() - began < 5  # a square takes minutes


MM = "git://git.example.org/mm.git"
KERNEL = "https://git.kernel.org/pub/scm/linux/kernel/git/ada/linux.git"
SHA = "57e95a5c4117dc6a"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"Can you test {MM} scan-less please?", f"{MM} scan-less"),
        (f"It is at {MM} scan-less", f"{MM} scan-less"),
        (f"{MM}, branch scan-less", f"{MM} scan-less"),
        (f"{MM} (branch scan-less)", f"{MM} scan-less"),
        (f"{MM} branch scan-less", f"{MM} scan-less"),
        (f"repo: {MM}\nbranch: scanless", f"{MM} scanless"),
        (f"{MM}#scan-less", f"{MM} scan-less"),
        (f"are available at:\n\n  {MM}\n  scan-less\n", f"{MM} scan-less"),
        (f"the scan-less branch of {MM}", f"{MM} scan-less"),
        (f"{MM} topic {SHA}", f"{MM} {SHA}"),
        ("Please test branch scan-less of tree mm.", "mm scan-less"),
        ("could you run the sched/core branch of tip?", "tip sched/core"),
        ("vfs.git#fixes", "vfs.git fixes"),
        (f"{KERNEL}/log/?h=topic/x", f"{KERNEL} topic/x"),
        (f"{KERNEL}/commit/?id={SHA}", f"{KERNEL} {SHA}"),
        (f"{KERNEL}/commit/?h=topic&id={SHA}", f"{KERNEL} {SHA}"),
        (f"{KERNEL}/h/topic", f"{KERNEL} topic"),
        ("https://github.com/ada/linux/tree/scan-less.", "https://github.com/ada/linux.git scan-less"),
        ("github.com/ada/linux/commits/for_lkp", "https://github.com/ada/linux.git for_lkp"),
        (f"https://github.com/ada/linux/commit/{SHA}", f"https://github.com/ada/linux.git {SHA}"),
        ("https://gitlab.com/ada/linux/-/tree/x/y", "https://gitlab.com/ada/linux.git x/y"),
        (
            "https://gitlab.freedesktop.org/drm/kernel/-/commits/topic",
            "https://gitlab.freedesktop.org/drm/kernel.git topic",
        ),
        ("https://codeberg.org/ada/linux/src/branch/topic", "https://codeberg.org/ada/linux.git topic"),
        ("https://git.sr.ht/~ada/linux/tree/topic", "https://git.sr.ht/~ada/linux topic"),
        ("https://git.kernel.dk/linux-block for-next", "https://git.kernel.dk/linux-block for-next"),
        ("ssh://git@x.example/linux.git topic", "ssh://git@x.example/linux.git topic"),
        ("git@github.com:ada/linux.git topic", "git@github.com:ada/linux.git topic"),
        (f"    {MM} topic\n", f"{MM} topic"),
        (f"{MM} for me please", ""),
        (f"I pushed it to {MM} today. Can you test?", ""),
        (f"I pushed it to {MM} tonight, thanks", ""),
        ("https://github.com/ada/linux works.", ""),
        ("https://github.com/intel/lkp-tests.git next week", ""),
        ("https://github.com/intel/lkp-tests.git\nRegards", ""),
        (f"{MM} with the reproducer", ""),
        ("see https://lore.kernel.org/r/abc@x/ for-next", ""),
        ("https://www.kernel.org/doc/html/latest test", ""),
        ("the branch is in the tree", ""),
        ("", ""),
    ],
)
def test_what_people_write(text: str, named: str) -> None:
    assert branch_in(text) == named


def test_a_commit_that_is_to_be_tested_is_not_the_culprit() -> None:
    assert commit_in(f"Could you test commit {SHA}, please?") == SHA
    assert commit_in(f"Could you test commit {SHA}, please?", culprit=SHA + "0" * 24) == ""
    assert commit_in(f"It was merged as {SHA}.") == ""
    linked = f"This is for {KERNEL}/commit/?id={SHA} and is at {MM} scan-less"
    assert ref_in(linked, culprit=SHA + "0" * 24) == f"{MM} scan-less"


@given(st.text(alphabet=" \n./:#?=&@-<>\"'`abghitreus0129", max_size=300))
def test_junk_names_no_option_and_no_second_line(text: str) -> None:
    for named in (branch_in(f"{MM} {text}"), branch_in(text)):
        assert "\n" not in named
        assert all(word[0] not in "-/" for word in named.split())


@pytest.mark.parametrize("piece", ["a-b.", f"{MM} ", "branch x of ", "https://a.example/x?h=a&", "github.com/a/b/"])
def test_long_text_is_read_at_once(piece: str) -> None:
    start = time.process_time()
    branch_in(piece * (200_000 // len(piece)))
    assert time.process_time() - start < 5
