"""Which commit concerns which report: what its message names, a prefilter, and the rules. Pure.

A walk sees a million commits. The prefilter passes those whose title, author or names may relate to a report, in some
microseconds per commit; it prefers false positives, since the rules decide. It lets every revert pass, because that
may revert a fix found in this same walk.

`find_references` reads what a message names: the mails that it closes, the commits that it fixes, reverts or comes
from. `Tracked` holds all that is followed, by every key: reports, the commits related to them, and what names them.
It is the one value here that changes: a certain match goes into it, so that a revert of a fix found a moment ago is
understood. Hence the oldest commit is matched first, and a few passes are made over reverts of reverts.

One function per rule, the most certain first; for each report the first certain match decides, or else the first one,
which becomes a suggestion.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from urllib.parse import unquote_to_bytes

from bot.git.repository import LogCommit
from bot.mail.addresses import parse_addresses
from bot.mail.patches import (
    REVERTS_OF,
    MailLink,
    Patch,
    Trailer,
    bare_title,
    find_links,
    find_reverted,
    find_trailers,
    fixed_commits,
    reverted_at,
)
from bot.mail.settings import BotSettings
from tracker.domain.events import Part

# --- What a commit message names ---

MAX_NAMED = 200  # per kind and message
# Documentation/process/stable-kernel-rules.rst ("commit <sha> upstream.", "[ Upstream commit <sha> ]"), and what
# `git cherry-pick -x` writes.
_UPSTREAM = re.compile(
    r"^(?:commit ([0-9a-f]{12,40}) upstream\.?|\[ ?upstream commit ([0-9a-f]{12,40}) ?\]"
    r"|\(cherry[ -]picked from commit ([0-9a-f]{12,40})\))\s*$",
    re.MULTILINE | re.IGNORECASE,
)
# What `git revert` writes, and what people write. Only "This reverts …" at the start of a line, or "reverts commit …"
# below a revert title, means that this commit reverts all of the other one. "By reverting it" tells how something was
# found.
_REVERTS = re.compile(
    r"(?:(?P<this>^This\s+)?\b(?:(?P<reverts>reverts)|(?:undoes|backs out)(?=.{1,60}\bcommit))"
    r"|^(?:revert|(?:undo|back out)(?=.{1,60}\bcommit))|\brevert of)"
    rf":?\s{{1,20}}(?P<of>{REVERTS_OF})(?=[0-9a-f]{{7,40}}\b)",
    re.IGNORECASE | re.MULTILINE,
)
_ALL_OF = re.compile(r"(?:(?:the|following)\s+)*(?:(?P<commit>commits?:?)\s+)?", re.IGNORECASE)
_REVERT_TITLE = re.compile(r'(?:revert|(?P<again>reapply)) "(?P<of>.*)"\Z', re.IGNORECASE)
_PREFIXED_REVERT = re.compile(r'((?:[\w/.,+-]{1,40}: ){1,3})revert "(.*)"\Z', re.IGNORECASE)
# A line that is a reference: "[1] https://…", "BugLink: https://…", a link alone
_REFERENCE = re.compile(
    r"^[ \t]{0,4}(?:\[\d{1,2}\]:? |[A-Z][A-Za-z-]{1,20}: )?(https?://[^\s/]{1,60}/\S{1,400})[ \t]*$", re.M
)
_ROWS_OF_DASHES = re.compile(r"^--+\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MessageReferences:
    """What a message names, each with the quoted words. Shas are in lower case and may be abbreviated."""

    mails: tuple[tuple[str, str], ...] = ()  # Message-IDs linked by Closes: and Link:
    mentions: tuple[tuple[str, str], ...] = ()  # Message-IDs linked by other lines: "BugLink: …", "[1] https://…"
    pages: tuple[tuple[str, str], ...] = ()  # our own pages linked there (a sha or a tag), and the tags in Reported-by:
    fixes: tuple[tuple[str, str], ...] = ()
    reverts: tuple[tuple[str, str], ...] = ()
    perhaps_reverts: tuple[tuple[str, str], ...] = ()  # partly, or another commit does
    reverted_title: str = ""
    perhaps_titles: tuple[str, ...] = ()  # that it may revert: not as git writes it
    upstream: tuple[tuple[str, str], ...] = ()  # the commits that it was taken from
    reporters: frozenset[str] = frozenset()


def find_references(message: str, settings: BotSettings) -> MessageReferences:
    """Parse a message. Trailers count anywhere, folded or not; only links to our pages and to lore count."""
    # Unlike a patch, a commit message has no notes to cut off below a row of dashes.
    trailers = find_trailers(_ROWS_OF_DASHES.sub("", message).split("\n"))
    reporters = [trailer for trailer in trailers if trailer.key.startswith("Reported-")]
    addresses = [(_line(trailer), address.email) for trailer in reporters for address in parse_addresses(trailer.value)]
    linking = [trailer for trailer in trailers if trailer.key in ("Closes", "Link")]
    links = [
        (link, _line(trailer))
        for trailer in linking
        for word in trailer.value.split()
        for link in find_links(word, settings.base_url)
        if word.lstrip("<([").startswith(link.url)  # else it is part of another site's URL
    ]
    tags = [(tag, line) for line, email in addresses if (tag := settings.tag_in(email))]
    title = " ".join(message.partition("\n\n")[0].split())
    reverted = _REVERT_TITLE.match(title)
    mentioned = [
        (sha, " ".join(f"{mention[0]} {sha}".split()), _is_whole(mention, below_revert=reverted is not None))
        for mention in islice(_REVERTS.finditer(message), MAX_NAMED)
        for sha in reverted_at(message[mention.end() : mention.end() + _MOST_LISTED]).commits
    ]
    reverted_title = (f'Revert "{reverted["of"]}"' if reverted["again"] else reverted["of"]) if reverted else ""
    odd_titles = [*find_reverted([[title]], [Patch(title, "commit", ())]).titles]
    if inner := _PREFIXED_REVERT.match(title):  # 'mm: Revert "walk"' of "mm: walk"
        odd_titles.append(f"{inner[1]}{inner[2]}")
    mails = _unique((link.message_id, line) for link, line in links if link.message_id)
    beside = find_links("\n".join(_REFERENCE.findall(message)))
    return MessageReferences(
        mails=mails,
        mentions=_unique((link.message_id, link.url) for link in beside if link.message_id not in dict(mails)),
        pages=_unique([*((link.page, line) for link, line in links if link.page), *tags]),
        fixes=_unique((sha, _line(trailer)) for trailer in trailers for sha in fixed_commits([trailer])),
        reverts=_unique((sha, quote) for sha, quote, is_complete in mentioned if is_complete),
        perhaps_reverts=_unique((sha, quote) for sha, quote, is_complete in mentioned if not is_complete),
        reverted_title=reverted_title,
        perhaps_titles=tuple(other for other in odd_titles if not reverted or other != reverted["of"])[:MAX_NAMED],
        upstream=_unique(
            (mention[mention.lastindex or 1].lower(), mention[0].strip()) for mention in _UPSTREAM.finditer(message)
        ),
        reporters=frozenset(email for _, email in addresses),
    )


def _is_whole(mention: re.Match[str], *, below_revert: bool) -> bool:
    """Whether a commit that says this reverts all of the other one."""
    of = _ALL_OF.fullmatch(mention["of"])
    return bool(of and (mention["this"] or (below_revert and mention["reverts"] and of["commit"])))


def _line(trailer: Trailer) -> str:
    return f"{trailer.key}: {trailer.value}"[:500]


def _unique(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return each name once, with the first words for it; at most MAX_NAMED."""
    first: dict[str, str] = {}
    for name, quote in pairs:
        if len(first) < MAX_NAMED:
            first.setdefault(name, quote)
    return tuple(first.items())


# --- The prefilter ---

DIGITS = 7  # of a sha: the shortest abbreviation in use
_HOSTS = (b"kernel.org/", b"msgid.link/")  # the ends of the hosts in links to mail (bot/mail/patches.py)
_BEFORE_SHA = (b"ixes:", b"ommit")
_REVERTING = (b"reverts", b"revert of", b"\nrevert")
_UNDOING = (b"undo", b"back out", b"backs out")
_MAX_PATH = 500  # bytes of a path
_PUNCTUATION = b".,;:!*()[]{}'\"<>"
_ANY_PUNCTUATION = _PUNCTUATION + b" \t\n/-_`#|&=+"
_MOST_LISTED = 4000  # characters that hold the commits of one revert
# Of reapplied commits, titles with tags, messages with leading white space
_ODD_BEGINNINGS = frozenset({b"r", b"[", b"\n", b" ", b"\t"})


@dataclass(frozen=True, slots=True)
class CommitPrefilter:
    """What a commit may name, in lower case. `mails`: the part of Message-IDs after the last slash."""

    shas: frozenset[bytes]
    mails: frozenset[bytes]
    titles: frozenset[bytes]
    ends: frozenset[bytes]  # of titles that may be written with a word more, less or otherwise (`ends_of`)
    authors: frozenset[bytes]  # "seconds address", as the log writes it
    own_identifiers: tuple[bytes, ...]  # the local part of our tagged addresses, and the URL of our pages

    def __call__(self, author: bytes, message: bytes) -> bool:
        """Whether a commit with this author line and this message may relate to a report."""
        low = message.lower()
        end = low.find(b"\n")
        # Every revert passes: it may revert a fix found in this same walk
        if b"revert" in low and (b"revert" in low[:end] or any(words in low for words in _REVERTING)):
            return True
        if squeezed(low[:end]) in self.titles or author.lower() in self.authors or self._names_something(low):
            return True
        title = low[:end]
        if low[:1] in _ODD_BEGINNINGS or low[end + 1 : end + 2] > b"\n" or b"  " in title:
            title = _title(low)
            if b"revert" in title or title.startswith(b"reapply") or squeezed(title) in self.titles:
                return True
        return bool(self.ends) and not self.ends.isdisjoint(ends_of(words_of(title)))

    def _names_something(self, low: bytes) -> bool:
        for identifier in self.own_identifiers:
            if identifier in low:
                return True
        for word in _BEFORE_SHA:
            if word in low:
                if any(words in low for words in _UNDOING):
                    return True
                for rest in low.split(word)[1:]:
                    if _sha(rest) in self.shas:
                        return True
        for host in _HOSTS:
            at = low.find(host)
            while at >= 0:
                at += len(host)
                end = low.find(b"\n", at, at + _MAX_PATH)
                if self._names_our_mail(low[at : end if end >= 0 else at + _MAX_PATH]):
                    return True
                at = low.find(host, at)
        return False

    def _names_our_mail(self, path: bytes) -> bool:
        """Whether the text after the host of a link, to the end of its line, may name one of our mails."""
        path = path.strip()
        if b"%" in path or b"#" in path or b"?" in path or b" " in path:
            path = path.split(b" ", 1)[0].partition(b"#")[0].partition(b"?")[0]
            path = unquote_to_bytes(path)
        if b"@" not in path:
            return path.endswith(b"/")  # its Message-ID may be on the next line
        return not self.mails.isdisjoint([piece.strip(_PUNCTUATION) for piece in path.split(b"/")])


def _sha(rest: bytes) -> bytes:
    """Return the first digits of a sha after "Fixes:" or "commit", skipping another "commit" or a colon."""
    return rest[:30].lstrip(b"s: \t\n").removeprefix(b"commit ").lstrip()[:DIGITS]


def squeezed(low: bytes) -> bytes:
    """Return a title in lower case without blanks and punctuation, which people write as they like."""
    return low.translate(None, _ANY_PUNCTUATION)


_LEAST_WORDS = 4  # that two titles share which are nearly the same
_MOST_WORDS = 40  # of a title that is compared word by word


def words_of(low: bytes) -> list[bytes]:
    """Return the words of a title in lower case, without its subsystem and punctuation."""
    words = (word.strip(_ANY_PUNCTUATION) for word in low.rpartition(b": ")[2].split())
    return [word for word in words if word]


def ends_of(words: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Return the first two words and the last two: one pair is left if any one word of five changes."""
    return b"< " + b" ".join(words[:2]), b"> " + b" ".join(words[-2:])


def near_keys(words: Sequence[bytes]) -> list[bytes]:
    """Return the words, all together and without any one of them: titles with such a key in common differ by a word.

    >>> set(near_keys(b"stop it after the first".split())) & set(near_keys(b"stop it after first".split()))
    {b'stop it after first'}
    """
    if len(words) > _MOST_WORDS:
        return []
    less = [[*words[:number], *words[number + 1 :]] for number in range(len(words))]
    return [b" ".join(kept) for kept in (words, *less) if len(kept) >= _LEAST_WORDS]


def _title(low: bytes) -> bytes:
    """Return the title on one line, without "[PATCH …]"."""
    title = b" ".join(low.lstrip(b"\n").partition(b"\n\n")[0].split())
    return title.partition(b"] ")[2] if title.startswith(b"[patch") else title


# --- What is followed ---


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
    nearly: dict[bytes, list[Expected]] = field(default_factory=dict)  # the same, by what nearly equal titles share
    ends: set[bytes] = field(default_factory=set)
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

    def name(self, report: int, part: Part, shas: Iterable[str], links: Iterable[MailLink], title: str) -> None:
        """Relate what a mail or a person names: commits, or the mail of a fix, which its commit will link to."""
        for sha in shas:
            self.relate(sha, Related(report, part, title=title))
        for link in links if part is Part.FIX else ():
            if link.message_id:
                self.mails.setdefault(link.message_id, report)

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
                low = title.lower().encode()
                # Of what a person typed, a word may differ or the end be missing; what was posted has its title
                keys = near_keys(words := words_of(low)) if expected.authors is None else []
                ends = ends_of(words) if keys else ()
                for key in (squeezed(low), *keys, *ends[:1]):
                    self.nearly.setdefault(key, []).append(expected)
                self.ends.update(ends)

    def by_sha(self, sha: str) -> Iterator[tuple[str, Related]]:
        """Yield the related commits that a full or abbreviated sha may mean."""
        for tracked in self._beginnings.get(sha[:DIGITS], ()):
            if tracked.startswith(sha) or sha.startswith(tracked):
                for related in self.related[tracked].values():
                    yield tracked, related

    def brought_by(self, sha: str) -> Iterator[tuple[str, int]]:
        """Yield the merges that a full or abbreviated sha may mean, each with a report whose culprit it brought."""
        return ((merge, pk) for merge, reports in self.merges.items() if merge.startswith(sha) for pk in reports)

    def alike(self, commit: LogCommit) -> Iterator[tuple[str, Related]]:
        """Yield the culprits and fixes that this commit may be under another sha: those of its title, and the culprits
        that its author wrote in the same second. A merge is not a patch.
        """
        if len(commit.parents) > 1:
            return
        of_title = [(sha, related) for sha, parts in self.titles.get(commit.title, {}).items() for related in parts]
        written = [self.reports[pk] for pk in self._authored.get(commit.authored, ())]
        of_author = [(row.sha, self.related[row.sha][row.pk]) for row in written if row.title != commit.title]
        for sha, related in (*of_title, *of_author):
            if sha != commit.sha and related.part in (Part.CULPRIT, Part.FIX):
                yield sha, related

    def prefilter(self, own_identifiers: Iterable[str]) -> CommitPrefilter:
        """Return the prefilter for a walk. `own_identifiers`: our own address and pages."""
        shas, titles = (*self.related, *self.pages, *self.merges), (*self.titles, *self.expected)
        return CommitPrefilter(
            shas=frozenset(sha[:DIGITS].lower().encode() for sha in shas),
            mails=frozenset(mail.rpartition("/")[2].lower().encode().strip(_PUNCTUATION) for mail in self.mails),
            titles=frozenset(squeezed(title.lower().encode()) for title in titles if title),
            ends=frozenset(self.ends),
            authors=frozenset(f"{at} {email}".lower().encode() for at, email in self._authored if email),
            own_identifiers=tuple(identifier.lower().encode() for identifier in own_identifiers if identifier),
        )


def plain(title: str) -> str:
    """Return a title with its white space collapsed."""
    return " ".join(title.split())


# --- The rules ---

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
    matches: list[Match] = []
    pending = list(reversed(seen))
    for _ in range(_PASSES):
        before = len(matches)
        for entry in pending:
            matches += _matches(entry, context)
        pending = [entry for entry in pending if entry.named.reverts or entry.named.upstream]
        if len(matches) == before:
            break
    # One match per commit and report: a certain one rather than a suggestion
    best: dict[tuple[int, str], Match] = {}
    for match in matches:
        previous = best.get((match.report, match.commit.sha))
        if previous is None or (match.sure and not previous.sure):
            best[match.report, match.commit.sha] = match
    return list(best.values())


def _matches(seen: Seen, context: Context) -> Iterator[Match]:
    """Yield the first certain match, or else the first one, for each report that the commit isn't related to yet."""
    related = context.tracked.related.get(seen.commit.sha, {})
    candidates = [match for rule in RULES for match in rule(seen, context) if match.report not in related]
    first: dict[int, Match] = {}
    for match in sorted(candidates, key=lambda candidate: not candidate.sure):
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
    for sha, related in context.tracked.alike(commit):
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


def reverts(seen: Seen, context: Context) -> Iterator[Match]:
    """A revert of the culprit, of a fix, or of a revert: by sha, or by title if none of its shas is in this tree."""
    for sha, quote in seen.named.reverts:
        for reverted, related in context.tracked.by_sha(sha):
            yield Match(related.report, REVERSE[related.part], seen.commit, "reverts", quote, undoes=reverted)
    for sha, quote in seen.named.perhaps_reverts:
        for reverted, related in context.tracked.by_sha(sha):
            part = REVERSE[related.part]
            yield Match(related.report, part, seen.commit, "reverts_in_part", quote, sure=False, undoes=reverted)
    for sha, quote in seen.named.reverts:
        for merge, report in context.tracked.brought_by(sha):
            yield Match(report, Part.REVERT, seen.commit, "reverts_merge", quote, sure=False, undoes=merge)
    if not any(sha in context.existing_shas for sha, _ in seen.named.reverts):
        titles = [(seen.named.reverted_title, True), *((title, False) for title in seen.named.perhaps_titles)]
        for title, sure in titles:
            for sha, parts in context.tracked.titles.get(plain(title), {}).items():
                for related in parts:
                    part, quote = REVERSE[related.part], seen.commit.title if sure else title
                    yield Match(related.report, part, seen.commit, "reverts_title", quote, sure=sure, undoes=sha)


def closes(seen: Seen, context: Context) -> Iterator[Match]:
    """A fix that closes the report, links to its thread, or credits its address or its page; perhaps one that has its
    thread among its references.
    """
    tracked = context.tracked
    for mail, quote in seen.named.mails:
        if mail in tracked.mails:
            yield Match(tracked.mails[mail], Part.FIX, seen.commit, "closes", quote)
    for mail, quote in seen.named.mentions:
        report = tracked.reports.get(tracked.mails.get(mail, 0))
        again = seen.named.reverted_title or seen.commit.title  # the culprit under another sha, or applied again
        if report and not (report.title and report.title in again):
            yield Match(report.pk, Part.FIX, seen.commit, "mentions_report", quote, sure=False)
    for page, quote in seen.named.pages:
        if page in tracked.pages:
            yield Match(tracked.pages[page], Part.FIX, seen.commit, "closes", quote)
        for _, related in tracked.by_sha(page):
            if related.part is Part.CULPRIT:
                yield Match(related.report, Part.FIX, seen.commit, "closes", quote)


def expected(seen: Seen, context: Context) -> Iterator[Match]:
    """A commit whose title was announced in mail, or typed with other capitals and punctuation."""
    title = seen.commit.title
    low = title.lower().encode()
    nearly, words = context.tracked.nearly, words_of(low)
    typed = [fix for fix in nearly.get(squeezed(low), ()) if fix.authors is None]
    for fix in dict.fromkeys([*context.tracked.expected.get(title, ()), *typed]):
        sure = fix.authors is None or _wrote(seen.commit, fix.authors)
        rule = "expected_title" if sure else "title_alone"
        yield Match(fix.report, Part.FIX, seen.commit, rule, fix.quote or title, sure=sure)
    keys = [*near_keys(words), ends_of(words)[0]] if context.tracked.ends else []
    near = [fix for key in keys for fix in nearly.get(key, ()) if _differ_little(bare_title(fix.title), words)]
    for fix in dict.fromkeys([*nearly.get(squeezed(low), ()), *near]):
        if plain(fix.title) != title:
            yield Match(fix.report, Part.FIX, seen.commit, "title_nearly", fix.quote or title, sure=False)


def _differ_little(title: str, words: Sequence[bytes]) -> bool:
    """Whether a title has one word more or less than these, or one that is spelt otherwise ("folio", "folios"), or one
    of both goes on where the other ends.
    """
    typed = words_of(title.lower().encode())
    least = min(len(typed), len(words))
    if least >= _LEAST_WORDS and typed[:least] == list(words[:least]):
        return True
    if len(typed) != len(words):
        return not set(near_keys(typed)).isdisjoint(near_keys(words))
    differing = [pair for pair in zip(typed, words, strict=True) if pair[0] != pair[1]]
    return len(differing) <= 1 and all(one[:_SPELT] == other[:_SPELT] for one, other in differing)


_SPELT = 4  # letters with which a word begins, however it is spelt


def fixes(seen: Seen, context: Context) -> Iterator[Match]:
    """`Fixes:` the culprit: a fix of the report if the robot is credited, otherwise a suggestion."""
    credited = seen.named.reporters & context.robots
    for sha, quote in seen.named.fixes:
        culprits = [pair for pair in context.tracked.by_sha(sha) if pair[1].part is Part.CULPRIT]
        sure = bool(credited) and len({culprit for culprit, _ in culprits}) == 1
        for _, related in culprits:
            if sure or not context.tracked.reports[related.report].improvement:
                rule = "fixes_and_reporter" if sure else "fixes_alone"
                yield Match(related.report, Part.FIX, seen.commit, rule, quote, sure=sure)


Rule = Callable[[Seen, Context], Iterator[Match]]
RULES: tuple[Rule, ...] = (taken_from, same_patch, reverts, closes, expected, fixes)


def _wrote(commit: LogCommit, authors: frozenset[str]) -> bool:
    return commit.author_email in authors or plain(commit.author_name).lower() in authors


def lookalikes(seen: Sequence[Seen], tracked: Tracked) -> set[str]:
    """Return the shas whose patch-ids are needed: commits that look like a culprit or a fix, and those themselves."""
    shas: set[str] = set()
    for entry in seen:
        for sha, related in tracked.alike(entry.commit):
            if related.report not in tracked.related.get(entry.commit.sha, ()):
                shas |= {entry.commit.sha, sha}
    return shas
