"""Storing files of tool output in the database: each once, in one piece, as received."""

import hashlib
import re
from datetime import datetime

from django.db import IntegrityError, transaction

from tracker.domain.events import InvalidInput
from tracker.domain.tool_output import kind_of
from tracker.models import Kernel, Machine, ReleaseResult, Report, Scenario, ToolOutput

MOST = 4 << 20  # characters of a file
MOST_FILES = 200  # attached by users to a report, or to a kernel
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029/\\]+")


def attach_to_report(
    report: Report, side: str, name: str, text: str, submitted_by: str, now: datetime, machine: Machine | None = None
) -> ToolOutput:
    """Store a file of one side of a report, once. Returns the stored one; raises InvalidInput."""
    row = ToolOutput(report=report, side=side, machine=machine)
    return _attach(row, f"report {report.pk} {side}{_on(machine)}", name, text, submitted_by, now)


def attach_to_kernel(
    kernel: Kernel,
    name: str,
    text: str,
    submitted_by: str,
    now: datetime,
    result: ReleaseResult | None = None,
    machine: Machine | None = None,
    scenario: Scenario | None = None,
) -> ToolOutput:
    """Store a file that was taken while a kernel was measured; otherwise like `attach_to_report`."""
    row = ToolOutput(kernel=kernel, result=result, machine=machine, scenario=scenario)
    where = f"kernel {kernel.pk}{_on(machine)}{f' scenario {scenario.pk}' if scenario else ''}"
    return _attach(row, where, name, text, submitted_by, now)


def _on(machine: Machine | None) -> str:
    return f" machine {machine.pk}" if machine else ""


def _attach(row: ToolOutput, owner: str, name: str, text: str, submitted_by: str, now: datetime) -> ToolOutput:
    if not text.strip():
        raise InvalidInput(f"{name[:80]}: the file is empty")
    if len(text) > MOST:
        raise InvalidInput(f"{name[:80]}: expected at most {MOST:,} characters, found {len(text):,}")
    row.name = _UNSAFE.sub(" ", name).strip()[:200] or "a file"
    row.text = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    row.key = hashlib.sha256(f"{owner}\0{row.name}\0{row.text}".encode()).hexdigest()
    if duplicate := ToolOutput.objects.filter(key=row.key).first():
        return duplicate
    others = ToolOutput.objects.filter(report=row.report, kernel=row.kernel, result=None)
    if row.result is None and others.count() >= MOST_FILES:  # files of results have a limit of their own
        raise InvalidInput(f"{row.name[:80]}: there are already {MOST_FILES} files")
    row.kind, row.submitted_by, row.at = kind_of(row.text), submitted_by, now
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:  # the same file was stored at the same moment
        return ToolOutput.objects.get(key=row.key)
    return row
