"""Storing files of tool output in the database: each once, in one piece, as received."""

import hashlib
import re
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from tracker.domain.events import InvalidInput
from tracker.domain.tool_output import kind_of
from tracker.models import ToolOutput

MOST = 4 << 20  # characters of a file
MOST_FILES = 200  # attached by users to a report, or to a kernel
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029/\\]+")


def attach(name: str, text: str, submitted_by: str, now: datetime, **place: Any) -> ToolOutput:
    """Store a file once. Returns the stored one; raises InvalidInput. `place`: what it belongs to, by columns: a report
    and its side, or the kernel that was measured; with a machine, and of a result also its scenario.
    """
    row = ToolOutput(**place)
    if not text.strip():
        raise InvalidInput(f"{name[:80]}: the file is empty")
    if len(text) > MOST:
        raise InvalidInput(f"{name[:80]}: expected at most {MOST:,} characters, found {len(text):,}")
    row.name = _UNSAFE.sub(" ", name).strip()[:200] or "a file"
    row.text = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    owner = f"report {row.report_id} {row.side}" if row.report_id else f"kernel {row.kernel_id}"
    owner += f" machine {row.machine_id}" if row.machine_id else ""
    owner += f" scenario {row.scenario_id}" if row.scenario_id else ""
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
