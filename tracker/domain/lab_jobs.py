"""A job of the lab: a request for a test, until a runner has handed in a result. Pure."""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """waiting → claimed → done; or withdrawn, when the report does not wait for it any more."""

    WAITING = "waiting"
    CLAIMED = "claimed"
    DONE = "done"
    WITHDRAWN = "withdrawn"


UNFINISHED = (JobState.WAITING, JobState.CLAIMED)


class JobOutcome(StrEnum):
    """How a job ended."""

    MEASURED = "measured"
    NOT_APPLIED = "does-not-apply"
    NOT_BUILT = "does-not-build"
    NOT_BOOTED = "does-not-boot"
    NOT_RUN = "test-fails"


SENTENCES = {
    JobOutcome.NOT_APPLIED: "it does not apply to {base}",
    JobOutcome.NOT_BUILT: "{base} does not build with it",
    JobOutcome.NOT_BOOTED: "{base} does not boot with it",
    JobOutcome.NOT_RUN: "the test fails on {base} with it",
}
