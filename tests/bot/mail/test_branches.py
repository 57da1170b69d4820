"""Repositories and branches as people name them: a table of spellings, and junk."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.mail.patches import branch_in, commit_in, ref_in

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
