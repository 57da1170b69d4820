"""What a file belongs to, as people and programs name it: a side of a report, or a kernel, perhaps on a machine."""

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
    """One of both: a report with its side, or a kernel."""

    report: Report | None = None
    side: str = ""
    kernel: Kernel | None = None
    machine: Machine | None = None


def find(report: str = "", side: str = "", kernel: str = "", machine: str = "") -> Target:
    """Unfit where that is not one thing; Http404 where there is no such thing."""
    if bool(report) == bool(kernel):
        raise InvalidInput("expected a report with its side, or a kernel")
    if any("\0" in each for each in (report, kernel, machine)):
        raise InvalidInput("nothing has such a name")
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


def attach(target: Target, name: str, text: str, said_by: str, now: datetime) -> ToolOutput:
    """Keep a file; Unfit says why not."""
    if target.report:
        return tool_output.attach_to_report(target.report, target.side, name, text, said_by, now, target.machine)
    assert target.kernel
    return tool_output.attach_to_kernel(target.kernel, name, text, said_by, now, machine=target.machine)
