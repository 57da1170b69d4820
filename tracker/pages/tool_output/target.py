"""What an uploaded file belongs to: a side of a report, or a kernel, optionally on a machine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import Http404

from tracker.domain.errors import InvalidInput
from tracker.models import Kernel, Machine, Report, ToolOutput
from tracker.models.results import CommitSide
from tracker.pages.kernels.queries import named
from tracker.pages.reports.queries import find_report
from tracker.services import tool_output


@dataclass(frozen=True, slots=True)
class Target:
    """Either a report with its side, or a kernel."""

    report: Report | None = None
    side: str = ""
    kernel: Kernel | None = None
    machine: Machine | None = None


def find(report: str = "", side: str = "", kernel: str = "", machine: str = "") -> Target:
    """Return the target. Raises InvalidInput if that is not exactly one, Http404 if it does not exist."""
    if bool(report) == bool(kernel):
        raise InvalidInput("expected a report with its side, or a kernel")
    if any("\0" in each for each in (report, kernel, machine)):
        raise InvalidInput("names must not contain NUL")
    box = Machine.objects.filter(name=machine).first() if machine else None
    if machine and box is None:
        raise Http404(f"there is no machine {machine[:100]}")
    if report:
        if side not in CommitSide.values:
            raise InvalidInput(f"side: expected parent or culprit, found {side[:20]!r}")
        return Target(report=find_report(report), side=side, machine=box)
    (found,) = named([kernel])
    if found is None:
        raise Http404(f"no kernel {kernel[:100]} was measured")
    return Target(kernel=found, machine=box)


def attach(target: Target, name: str, text: str, submitted_by: str, now: datetime) -> ToolOutput:
    """Store a file. Raises InvalidInput if it can't be accepted."""
    if target.report:
        return tool_output.attach_to_report(target.report, target.side, name, text, submitted_by, now, target.machine)
    assert target.kernel
    return tool_output.attach_to_kernel(target.kernel, name, text, submitted_by, now, machine=target.machine)
