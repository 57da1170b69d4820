"""Diffs are taken out of mails exactly as they were posted: git must be able to apply them."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.mail.patches import find_diffs

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
