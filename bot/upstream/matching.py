"""How a commit relates to our reports, and how certain that is. Pure, except that certain matches go into `Tracked`.

One function per rule, the most certain first; the first that matches a report decides. CONTRIBUTING.md has the recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.git.commits import LogCommit
from bot.upstream.references import MessageReferences
from bot.upstream.tracked import Related, Tracked, plain
from tracker.domain.events import Part

# The part of a revert, by the part of what it reverts.
REVERSE = {Part.CULPRIT: Part.REVERT, Part.FIX: Part.UNDO, Part.REVERT: Part.UNDO, Part.UNDO: Part.FIX}
_PASSES = 5  # over reverts of reverts of reverts


@dataclass(frozen=True, slots=True)
class Seen:
    """A commit of the log with what its message names."""

    commit: LogCommit
    named: MessageReferences


@dataclass(frozen=True, slots=True)
class Match:
    """A commit and its part in a report. Unless `sure`, it is a suggestion; `quote` is the evidence."""

    report: int
    part: Part
    commit: LogCommit
    rule: str
    quote: str
    sure: bool = True
    undoes: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """What matching needs besides a commit. `patch_ids`: of commits that look like a culprit or a fix, and of those
    themselves ("" if there is none, although a tree has the commit); `existing_shas`:
    those named in reverts that exist in this tree.
    """

    tracked: Tracked
    robots: frozenset[str]
    patch_ids: Mapping[str, str]
    existing_shas: Collection[str] = ()


def match_all(seen: Sequence[Seen], context: Context) -> list[Match]:
    """Return the matches of commits, which are in the order of the log, newest first.

    The oldest is matched first, since a revert can be understood only once its commit is known.
    """
    found: list[Match] = []
    pending = list(reversed(seen))
    for _ in range(_PASSES):
        before = len(found)
        for each in pending:
            found += _matches(each, context)
        pending = [each for each in pending if each.named.reverts or each.named.upstream]
        if len(found) == before:
            break
    return _best(found)


def _best(found: Sequence[Match]) -> list[Match]:
    """Return one match per commit and report: a certain one rather than a suggestion."""
    best: dict[tuple[int, str], Match] = {}
    for match in found:
        known = best.get((match.report, match.commit.sha))
        if known is None or (match.sure and not known.sure):
            best[match.report, match.commit.sha] = match
    return list(best.values())


def _matches(seen: Seen, context: Context) -> Iterator[Match]:
    """Yield the first certain match, or else the first one, for each report that the commit isn't related to yet."""
    known = context.tracked.related.get(seen.commit.sha, {})
    candidates = [match for rule in RULES for match in rule(seen, context) if match.report not in known]
    first: dict[int, Match] = {}
    for match in sorted(candidates, key=lambda each: not each.sure):
        first.setdefault(match.report, match)
    title = seen.commit.title
    for match in first.values():
        if match.sure:
            context.tracked.relate(seen.commit.sha, Related(match.report, match.part, match.undoes, title))
        yield match


def taken_from(seen: Seen, context: Context) -> Iterator[Match]:
    """A backport or cherry-pick has the part of the commit it names. Reverts are skipped: they name it, too."""
    if seen.named.reverts or seen.named.reverted_title:
        return
    for sha, quote in seen.named.upstream:
        for _, related in context.tracked.by_sha(sha):
            yield Match(related.report, related.part, seen.commit, "upstream_commit", quote, undoes=related.undoes)


def same_patch(seen: Seen, context: Context) -> Iterator[Match]:
    """The culprit or a fix under another sha: by patch-id; a culprit known only from mail, by title and author."""
    commit, title = seen.commit, seen.commit.title
    patch_id = context.patch_ids.get(commit.sha, "")
    for sha, related in _alike(commit, context.tracked):
        report = context.tracked.reports[related.report]
        is_culprit = related.part is Part.CULPRIT
        other_patch_id = (report.patch_id if is_culprit else "") or context.patch_ids.get(sha, "")
        if patch_id and patch_id == other_patch_id:
            quote = f"the patch-id of {sha[:12]}: {patch_id[:12]}"
            yield Match(report.pk, related.part, commit, "patch_id", quote, undoes=related.undoes)
        elif is_culprit and title == report.title:
            known_only_from_mail = not other_patch_id and sha not in context.patch_ids
            sure = known_only_from_mail and _wrote(commit, report.authors)
            rule = "title_and_author" if sure else "title_alone"
            yield Match(report.pk, Part.CULPRIT, commit, rule, title, sure=sure)


def _alike(commit: LogCommit, tracked: Tracked) -> Iterator[tuple[str, Related]]:
    """Yield the related commits that this one may be under another sha. A merge is not a patch."""
    if len(commit.parents) <= 1:
        for sha, related in tracked.by_title_or_author(commit.title, commit.authored):
            if sha != commit.sha and related.part in (Part.CULPRIT, Part.FIX):
                yield sha, related


def reverts(seen: Seen, context: Context) -> Iterator[Match]:
    """A revert of the culprit, of a fix, or of a revert: by sha, or by title if none of its shas is in this tree."""
    for sha, quote in seen.named.reverts:
        for known, related in context.tracked.by_sha(sha):
            yield Match(related.report, REVERSE[related.part], seen.commit, "reverts", quote, undoes=known)
    for sha, quote in seen.named.perhaps_reverts:
        for known, related in context.tracked.by_sha(sha):
            part = REVERSE[related.part]
            yield Match(related.report, part, seen.commit, "reverts_in_part", quote, sure=False, undoes=known)
    for sha, quote in seen.named.reverts:
        for report in context.tracked.merges.get(sha, ()):
            yield Match(report, Part.REVERT, seen.commit, "reverts_merge", quote, sure=False, undoes=sha)
    if not any(sha in context.existing_shas for sha, _ in seen.named.reverts):
        for sha, parts in context.tracked.titles.get(plain(seen.named.reverted_title), {}).items():
            for related in parts:
                quote = seen.commit.title
                yield Match(related.report, REVERSE[related.part], seen.commit, "reverts_title", quote, undoes=sha)


def closes(seen: Seen, context: Context) -> Iterator[Match]:
    """A fix that closes the report, links to its thread, or credits its address or its page."""
    tracked = context.tracked
    for mail, quote in seen.named.mails:
        if mail in tracked.mails:
            yield Match(tracked.mails[mail], Part.FIX, seen.commit, "closes", quote)
    for page, quote in seen.named.pages:
        if page in tracked.pages:
            yield Match(tracked.pages[page], Part.FIX, seen.commit, "closes", quote)
        for _, related in tracked.by_sha(page):
            if related.part is Part.CULPRIT:
                yield Match(related.report, Part.FIX, seen.commit, "closes", quote)


def expected(seen: Seen, context: Context) -> Iterator[Match]:
    """A commit whose title was announced in mail."""
    title = seen.commit.title
    for each in context.tracked.expected.get(title, ()):
        sure = each.authors is None or _wrote(seen.commit, each.authors)
        rule = "expected_title" if sure else "title_alone"
        yield Match(each.report, Part.FIX, seen.commit, rule, each.quote or title, sure=sure)


def fixes(seen: Seen, context: Context) -> Iterator[Match]:
    """`Fixes:` the culprit: a fix of the report if the robot is credited, otherwise a suggestion."""
    credited = seen.named.reporters & context.robots
    for sha, quote in seen.named.fixes:
        candidates = [each for each in context.tracked.by_sha(sha) if each[1].part is Part.CULPRIT]
        sure = bool(credited) and len({known for known, _ in candidates}) == 1
        for _, related in candidates:
            if sure or not context.tracked.reports[related.report].improvement:
                rule = "fixes_and_reporter" if sure else "fixes_alone"
                yield Match(related.report, Part.FIX, seen.commit, rule, quote, sure=sure)


Rule = Callable[[Seen, Context], Iterator[Match]]
RULES: tuple[Rule, ...] = (taken_from, same_patch, reverts, closes, expected, fixes)


def _wrote(commit: LogCommit, authors: frozenset[str]) -> bool:
    return commit.author_email in authors or plain(commit.author_name).lower() in authors


def lookalikes(seen: Sequence[Seen], tracked: Tracked) -> set[str]:
    """Return the shas whose patch-ids are needed: commits that look like a culprit or a fix, and those themselves."""
    found: set[str] = set()
    for each in seen:
        for sha, related in _alike(each.commit, tracked):
            if related.report not in tracked.related.get(each.commit.sha, ()):
                found |= {each.commit.sha, sha}
    return found
