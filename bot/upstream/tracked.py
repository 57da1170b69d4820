"""What we follow in git: reports, the commits related to them, and what names them in a message. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from bot.mail.patches import bare_title
from bot.upstream.commit_prefilter import DIGITS, CommitPrefilter, build_prefilter
from tracker.domain.events import Part


@dataclass(frozen=True, slots=True)
class TrackedReport:
    """A report as needed for git. `authors`: addresses and names in lower case; `earliest_fix`: no fix is older."""

    pk: int
    sha: str
    title: str
    authors: frozenset[str]
    earliest_fix: datetime
    authored: tuple[int, str] | None = None  # seconds and address, which a rebase keeps
    patch_id: str = ""
    improvement: bool = False


@dataclass(frozen=True, slots=True)
class Related:
    """The part of a commit in a report; `undoes` is the sha of what it reverts."""

    report: int
    part: Part
    undoes: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Expected:
    """A title of a fix, announced in mail. `authors` None: any author counts, since a command named the title."""

    report: int
    title: str
    authors: frozenset[str] | None
    quote: str


@dataclass(slots=True)
class Tracked:
    """Everything followed, by every key; grows while a walk finds more."""

    reports: dict[int, TrackedReport] = field(default_factory=dict)
    mails: dict[str, int] = field(default_factory=dict)
    pages: dict[str, int] = field(default_factory=dict)
    expected: dict[str, list[Expected]] = field(default_factory=dict)
    related: dict[str, dict[int, Related]] = field(default_factory=dict)
    titles: dict[str, dict[str, list[Related]]] = field(default_factory=dict)  # title → sha → related
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
        """Relate a commit to a followed report; the first relation stays."""
        if related.report not in self.reports:
            return  # created during loading: the next walk knows it
        if self.related.setdefault(sha, {}).setdefault(related.report, related) is related:
            self._beginnings.setdefault(sha[:DIGITS], set()).add(sha)
            self.commits.setdefault(related.report, {})[sha] = related
            if related.title:
                self.titles.setdefault(related.title, {}).setdefault(sha, []).append(related)

    def set_full_sha(self, short: str, full_sha: str) -> None:
        """Replace an abbreviated sha by the full one."""
        self._beginnings[short[:DIGITS]].discard(short)
        for related in self.related.pop(short).values():
            del self.commits[related.report][short]
            if related.title:
                self.titles[related.title].pop(short, None)
            report = self.reports[related.report]
            if report.sha == short:
                self.reports[report.pk] = replace(report, sha=full_sha)
            self.relate(full_sha, related)

    def expect(self, expected: Expected) -> None:
        """Expect a commit of this title, as given and without "[PATCH …]"."""
        for title in dict.fromkeys((plain(expected.title), plain(bare_title(expected.title)))):
            if title and expected.report in self.reports:
                self.expected.setdefault(title, []).append(expected)

    def by_sha(self, sha: str) -> Iterator[tuple[str, Related]]:
        """Yield the related commits that a full or abbreviated sha may mean."""
        for known in self._beginnings.get(sha[:DIGITS], ()):
            if known.startswith(sha) or sha.startswith(known):
                for related in self.related[known].values():
                    yield known, related

    def by_title_or_author(self, title: str, authored: tuple[int, str]) -> Iterator[tuple[str, Related]]:
        """Yield the related commits of this title, and the culprits that this address wrote in this second."""
        for sha, parts in self.titles.get(title, {}).items():
            for related in parts:
                yield sha, related
        for pk in self._authored.get(authored, ()):
            report = self.reports[pk]
            if report.title != title:
                yield report.sha, self.related[report.sha][pk]

    def prefilter(self, own_identifiers: Iterable[str]) -> CommitPrefilter:
        """Return the prefilter for a walk. `own_identifiers`: our own address and pages."""
        return build_prefilter(
            shas=(*self.related, *self.pages, *self.merges),
            mails=self.mails,
            titles=(*self.titles, *self.expected),
            authors=self._authored,
            own_identifiers=own_identifiers,
        )


def plain(title: str) -> str:
    """Return a title with its white space collapsed."""
    return " ".join(title.split())
