"""What we follow in git: reports, the commits that have to do with them, and what names them in a message. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from bot.mail.patches import bare_title
from bot.upstream.commit_prefilter import DIGITS, CommitPrefilter, wanted
from tracker.domain.events import Part


@dataclass(frozen=True, slots=True)
class TrackedReport:
    """A report as git needs it. `authors`: addresses and names in lower case; `born`: no fix of it is older."""

    pk: int
    sha: str
    title: str
    authors: frozenset[str]
    born: datetime
    authored: tuple[int, str] | None = None  # seconds and address, which a rebase keeps
    patch_id: str = ""
    improvement: bool = False


@dataclass(frozen=True, slots=True)
class Related:
    """What a commit is to a report; `undoes` is the sha of what it reverts."""

    report: int
    part: Part
    undoes: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Expected:
    """A title that mail told us to wait for. `authors` None: whoever wrote it, it is the fix; a command said so."""

    report: int
    title: str
    authors: frozenset[str] | None
    said: str


@dataclass(slots=True)
class Tracked:
    """All of it, by every key; grows while a walk finds more."""

    reports: dict[int, TrackedReport] = field(default_factory=dict)
    mails: dict[str, int] = field(default_factory=dict)
    pages: dict[str, int] = field(default_factory=dict)
    expected: dict[str, list[Expected]] = field(default_factory=dict)
    related: dict[str, dict[int, Related]] = field(default_factory=dict)
    titles: dict[str, dict[str, list[Related]]] = field(default_factory=dict)  # of related commits, then their shas
    merges: dict[str, list[int]] = field(default_factory=dict)  # that brought culprits into a mainline
    commits: dict[int, dict[str, Related]] = field(default_factory=dict)  # of each report, by sha
    _authored: dict[tuple[int, str], list[int]] = field(default_factory=dict, init=False)
    _beginnings: dict[str, set[str]] = field(default_factory=dict, init=False)

    def follow(self, report: TrackedReport) -> None:
        """Track a report and its culprit."""
        self.reports[report.pk] = report
        self.relate(report.sha, Related(report.pk, Part.CULPRIT, title=report.title))
        if report.authored:
            self._authored.setdefault(report.authored, []).append(report.pk)

    def relate(self, sha: str, related: Related) -> None:
        """A commit has to do with a report that is followed; what was known of it first stays."""
        if related.report not in self.reports:
            return  # it was made while the others were loaded: the next walk knows it
        if self.related.setdefault(sha, {}).setdefault(related.report, related) is related:
            self._beginnings.setdefault(sha[:DIGITS], set()).add(sha)
            self.commits.setdefault(related.report, {})[sha] = related
            if related.title:
                self.titles.setdefault(related.title, {}).setdefault(sha, []).append(related)

    def learn(self, short: str, whole: str) -> None:
        """What was known by the beginning of its sha is known by all of it from now on."""
        self._beginnings[short[:DIGITS]].discard(short)
        for related in self.related.pop(short).values():
            del self.commits[related.report][short]
            if related.title:
                self.titles[related.title].pop(short, None)
            report = self.reports[related.report]
            if report.sha == short:
                self.reports[report.pk] = replace(report, sha=whole)
            self.relate(whole, related)

    def expect(self, expected: Expected) -> None:
        """Wait for a commit of this title, as told and bare of "[PATCH …]"."""
        for title in dict.fromkeys((plain(expected.title), plain(bare_title(expected.title)))):
            if title and expected.report in self.reports:
                self.expected.setdefault(title, []).append(expected)

    def called(self, sha: str) -> Iterator[tuple[str, Related]]:
        """The related commits that a sha, or its beginning, may mean."""
        for known in self._beginnings.get(sha[:DIGITS], ()):
            if known.startswith(sha) or sha.startswith(known):
                for related in self.related[known].values():
                    yield known, related

    def like(self, title: str, authored: tuple[int, str]) -> Iterator[tuple[str, Related]]:
        """The related commits of this title, and the culprits that this address wrote in this second."""
        for sha, parts in self.titles.get(title, {}).items():
            for related in parts:
                yield sha, related
        for pk in self._authored.get(authored, ()):
            report = self.reports[pk]
            if report.title != title:
                yield report.sha, self.related[report.sha][pk]

    def wanted(self, marks: Iterable[str]) -> CommitPrefilter:
        """What the walk has to look at. `marks`: our own address and pages."""
        return wanted(
            shas=(*self.related, *self.pages, *self.merges),
            mails=self.mails,
            titles=(*self.titles, *self.expected),
            authors=self._authored,
            marks=marks,
        )


def plain(title: str) -> str:
    """A title with its white space made even."""
    return " ".join(title.split())
