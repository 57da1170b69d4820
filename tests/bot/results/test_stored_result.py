"""What a stored result says beside its findings, by format."""

from __future__ import annotations

import json

import pytest

from bot.results.formats import bisect_log, lkp, perf_bisect_result
from bot.results.recognise import ResultDetails, details_of

OURS = {
    "good": {"sha": "a" * 40, "describe": "v6.11"},
    "bad": {"sha": "b" * 40},
    "bisect": {"steps": [{}, {}], "rechecks": [{"ref": "v6.12-rc2", "state": "still-bad"}]},
    "test": {"description": "writes files", "url": "https://example.org/t"},
    "artifacts": [{"name": "dmesg", "url": "https://example.org/d"}, {"name": "inline", "text": "x"}],
    "build": {"kconfig": "x86_64", "cmdline": "quiet", "config_url": "https://example.org/c"},
}


def test_our_own_format_has_all_of_them() -> None:
    assert details_of(perf_bisect_result.FORMAT, json.dumps(OURS)) == ResultDetails(
        good="v6.11",
        bad="b" * 10,
        bisect_steps=2,
        rechecks=(("v6.12-rc2", "still-bad"),),
        test_text="writes files",
        test_url="https://example.org/t",
        artifacts=(("dmesg", "https://example.org/d"),),
        build={"kconfig": "x86_64", "config_url": "https://example.org/c", "cmdline": "quiet"},
    )


def test_an_lkp_job_says_how_the_kernel_was_built() -> None:
    job = {"kconfig": "x86_64-rhel", "compiler": "gcc-12", "cmdline": "of the job", "rootfs": ["not", "text"]}
    assert details_of(lkp.FORMAT, json.dumps({"culprit": {"job": job}})) == ResultDetails(
        build={"kconfig": "x86_64-rhel", "compiler": "gcc-12"}
    )


@pytest.mark.parametrize(
    ("name", "payload"), [(bisect_log.FORMAT, "{}"), (lkp.FORMAT, "[]"), (perf_bisect_result.FORMAT, "{}")]
)
def test_what_is_not_said_is_empty(name: str, payload: str) -> None:
    assert details_of(name, payload) == ResultDetails()
