"""Small text attachments of a report, for labs that want them: the job, and a script that reproduces it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from bot.compose.conventions import Attached, Conventions
from bot.compose.report.report_data import ReportData
from bot.compose.report.reproduce import reproduce

MAX_BYTES = 20_000


@dataclass(frozen=True, slots=True)
class Attachment:
    """A text file."""

    name: str
    text: str


def attachments(report: ReportData, conventions: Conventions) -> tuple[Attachment, ...]:
    """Return the attachments that the conventions ask for; those above MAX_BYTES are left out, the page has them."""
    files = {Attached.JOB: Attachment("job.yaml", _job(report)), Attached.SCRIPT: Attachment("reproduce.sh", "")}
    if Attached.SCRIPT in conventions.attach and conventions.reproduce:
        files[Attached.SCRIPT] = Attachment("reproduce.sh", f"#!/bin/sh\n{reproduce(report, conventions.reproduce)}\n")
    selected = (files[each] for each in Attached if each in conventions.attach)
    return tuple(each for each in selected if each.text and len(each.text.encode()) <= MAX_BYTES)


def _job(report: ReportData) -> str:
    headline = report.headline
    job = {
        "suite": headline.suite,
        "parameters": dict(headline.params),
        "machine": headline.machine,
        "commit": report.sha,
        "parent": report.parent_sha,
        "kconfig": report.build.kconfig,
        "compiler": report.build.compiler,
        "rootfs": report.build.rootfs,
        "cmdline": report.build.cmdline,
    }
    return yaml.safe_dump({name: value for name, value in job.items() if value}, sort_keys=False, allow_unicode=False)
