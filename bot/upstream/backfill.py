"""Who wrote, signed and maintains a culprit, as a tree has it: that replaces whom a report mail was sent to."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.db.models import Q

from bot.errors import Unreadable
from bot.git.inspection import CommitInspection, inspect
from bot.git.maintainers import Duty
from bot.git.refs import resolve
from bot.git.touched_files import touched_in
from bot.mail.addresses import Address
from bot.mail.patches import bare_title
from bot.mail.people.signers import MOST, signers
from bot.replies.which_report.report_lookup import person_keys
from tracker.models import Commit, Report
from tracker.services.reports.report_summary import refresh

log = logging.getLogger(__name__)
_KNOWN_TO_GIT = (
    *("author_name", "author_email", "author_from_report", "title", "authored_at"),
    *("trailers", "signers", "maintainers", "patch_id"),
)
_MAX_LOOKED_UP = 5000  # culprits looked up in a tree at once, newest first
_MAX_INSPECTED = 200  # of those found; the next walk goes on
_MAX_MAINTAINERS = 50  # culprits whose files are looked up in MAINTAINERS in a walk, each in some 50 ms


@dataclass(frozen=True, slots=True)
class FoundCulprits:
    """The culprits that a tree holds, and whom its MAINTAINERS lists for their files, by the sha that we know."""

    commits: Mapping[str, CommitInspection]
    maintainers: Mapping[str, Sequence[Address]]


def find(repository: Path) -> FoundCulprits:
    """Return the culprits of this tree whose author or maintainers git has not told yet."""
    # Without a patch-id git has not been asked yet; or it is a merge, and is asked again.
    untold = Q(author_email="") | Q(author_from_report=True) | Q(patch_id="")
    lacking = Commit.objects.filter(untold | Q(maintainers__isnull=True), report__isnull=False).order_by("-pk")
    rows = dict(lacking.values_list("sha", "maintainers")[:_MAX_LOOKED_UP])
    held = resolve(repository, list(rows)) if rows else {}
    # Those of whom git has told nothing come first: merges, which are asked for in every walk, must not keep them out.
    first = sorted((sha for sha in rows if sha in held), key=lambda sha: rows[sha] is not None)
    full_shas = {sha: held[sha] for sha in first[:_MAX_INSPECTED]}
    found = inspect([repository], full_shas.values()) if full_shas else {}
    unlisted = [sha for sha in full_shas if rows[sha] is None][:_MAX_MAINTAINERS]
    return FoundCulprits(
        {sha: found[full_sha] for sha, full_sha in full_shas.items() if full_sha in found},
        dict(_maintainers(repository, {sha: full_shas[sha] for sha in unlisted})),
    )


def _maintainers(repository: Path, full_shas: Mapping[str, str]) -> Iterator[tuple[str, list[Address]]]:
    """Yield the maintainers and reviewers of the files of each commit, by the MAINTAINERS of that commit.

    A commit that can't be read now is left out, and so asked for again: "nobody" would be a wrong answer for ever.
    """
    for sha, full_sha in full_shas.items():
        try:
            listed = touched_in(repository, full_sha).responsible
        except (Unreadable, OSError, ValueError) as error:
            log.warning("who maintains %s can't be read: %s", sha[:10], error)
            continue
        yield sha, [each.address for each in listed if each.duty is not Duty.LIST]


def store(culprits: FoundCulprits) -> None:
    """Store whose these culprits are, and what else git knows of them and we don't."""
    found = culprits.commits
    reports = Report.objects.filter(culprit__sha__in=found).select_related("culprit").order_by("pk")
    for report in reports.select_for_update(of=("self", "culprit")):
        commit, seen = report.culprit, found[report.culprit.sha]
        commit.author_name, commit.author_email = seen.author_name[:300], seen.author_email.lower()[:300]
        commit.author_from_report = False
        commit.title = commit.title or bare_title(seen.title)[:1000]
        commit.authored_at = commit.authored_at or seen.authored_at
        commit.trailers = commit.trailers or [list(pair) for pair in seen.trailers]
        commit.signers = person_keys(signers(seen.trailers))
        if (listed := culprits.maintainers.get(commit.sha)) is not None:
            commit.maintainers = person_keys(listed[:MOST])
        commit.patch_id = commit.patch_id or seen.patch_id
        commit.save(update_fields=_KNOWN_TO_GIT)
        author = Address(commit.author_name, commit.author_email)
        report.authors = sorted({*report.authors, *person_keys([author])})
        report.save(update_fields=["authors"])
    refresh(Report.objects.filter(culprit__sha__in=found).values_list("pk", flat=True))
