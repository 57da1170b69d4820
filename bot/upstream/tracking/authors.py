"""Who wrote and signed a culprit, as a tree has it: that replaces whom a report mail was sent to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from django.db.models import Q

from bot.git.inspection import CommitInspection, inspect
from bot.git.refs import resolve
from bot.mail.addresses import Address
from bot.mail.patches import bare_title
from bot.mail.people.signers import signers
from bot.replies.which_report.report_lookup import person_keys
from tracker.models import Commit, Report
from tracker.services.reports.report_summary import refresh

_MAX_LOOKED_UP = 5000  # culprits looked up in a tree at once, newest first
_MAX_INSPECTED = 200  # of those found; the next walk goes on


def find(repository: Path) -> dict[str, CommitInspection]:
    """Return the culprits that this tree holds and whose author git has not told yet, by the sha that we know."""
    # Without a patch-id git has not been asked yet; or it is a merge, and is asked again.
    untold = Q(author_email="") | Q(author_from_report=True) | Q(patch_id="")
    lacking = Commit.objects.filter(untold, report__isnull=False)
    shas = list(lacking.order_by("-pk").values_list("sha", flat=True)[:_MAX_LOOKED_UP])
    full_shas = dict(list(resolve(repository, shas).items())[:_MAX_INSPECTED]) if shas else {}
    found = inspect([repository], full_shas.values()) if full_shas else {}
    return {sha: found[full_sha] for sha, full_sha in full_shas.items() if full_sha in found}


def store(found: Mapping[str, CommitInspection]) -> None:
    """Store who wrote these culprits, and what else git knows of them and we don't."""
    for report in Report.objects.filter(culprit__sha__in=found).select_related("culprit").order_by("pk"):
        commit, seen = report.culprit, found[report.culprit.sha]
        commit.author_name, commit.author_email = seen.author_name[:300], seen.author_email.lower()[:300]
        commit.author_from_report = False
        commit.title = commit.title or bare_title(seen.title)[:1000]
        commit.authored_at = commit.authored_at or seen.authored_at
        commit.trailers = commit.trailers or [list(pair) for pair in seen.trailers]
        commit.signers = person_keys(signers(seen.trailers))
        commit.patch_id = commit.patch_id or seen.patch_id
        commit.save()
        author = Address(commit.author_name, commit.author_email)
        report.authors = sorted({*report.authors, *person_keys([author])})
        report.save(update_fields=["authors"])
    refresh(Report.objects.filter(culprit__sha__in=found).values_list("pk", flat=True))
