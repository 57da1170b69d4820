"""Links, trailers, diffs and patches in a mail, the subsystem of a title, and branches to be tested. Pure.

Links lead to mail (lore and lkml URLs) or to our own report pages. Trailers are `Closes:`, `Link:`, `Fixes:` and
others (Documentation/process/submitting-patches.rst). Patches are unified diffs in the body or an attachment, with
their titles. A subsystem is the first prefix of a commit's title: "mm/vmscan" of "mm/vmscan: stop rescanning".

Diffs are returned byte for byte as they were posted, for `git apply`; prose around them is left out. The head of a
hunk says how many lines it has (git-diff(1), "Generating patch text"), so nothing is guessed from quote marks, trailing
white space or signatures.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from bot.mail.body import MimeAttachment
from bot.mail.headers import decode
from bot.mail.quoting import ANSWER

# --- Links ---

# https://lore.kernel.org/<list>/<id>/, /r/<id>, lkml.kernel.org/r/<id>, (patch.)msgid.link/<id>; the id may be
# percent-encoded, and its own slashes are part of it. Patchwork has it, too: /project/<name>/patch/<id>/.
_LORE = re.compile(
    r"(?<![\w/=])(?:https?://)?(?:(?:www\.)?lore\.kernel\.org/(?:[\w.+-]{1,80}/)|lkml\.kernel\.org/r/|(?:patch\.)?msgid\.link/"
    r"|patchwork\.kernel\.org/project/[\w.+-]{1,80}/(?:patch|cover)/"
    r"|lkml\.kernel\.org/|lore\.kernel\.org/)(<?[^\s<>\"'\])}）`，。]{3,400})",
    re.I,
)
_VIEW = re.compile(r"/(?:raw|mbox|t\.mbox\.gz|t\.atom|t|T)?/?\Z")
_AFTER = ".,;:!*。，、_`"
MAX_LINKS = 200


@dataclass(frozen=True, slots=True)
class MailLink:
    """A link as written, and its target: a Message-ID, or the sha or tag of a report page."""

    url: str
    message_id: str = ""
    page: str = ""


def find_links(text: str, base_url: str = "") -> tuple[MailLink, ...]:
    """Return the links in a text that lead to a mail or a report page; other links are ignored."""
    links: list[MailLink] = []
    for match in _LORE.finditer(text):
        path = re.split(r"[?#]", match[1], maxsplit=1)[0]
        message_id = _VIEW.sub("", unquote(path).rstrip(_AFTER)).strip("<>/ ")
        if "@" in message_id and " " not in message_id:
            links.append(MailLink(match[0].rstrip(_AFTER), message_id=message_id))
    if base_url:
        bare = re.escape(base_url.partition("://")[2])
        pages = re.finditer(rf"(?<![\w/])https?://{bare}/report/([0-9a-f]{{7,64}})/?(?![\w/])", text, re.I)
        links.extend(MailLink(match[0], page=match[1].lower()) for match in pages)
    return tuple(dict.fromkeys(links))[:MAX_LINKS]


# --- Trailers ---

_KEYS = """
Acked-by Bisected-by Bug Cc Closes Co-developed-by Fixes Link Message-ID
Reported-by Reported-and-bisected-by Reported-and-tested-by
Reviewed-by Signed-off-by Suggested-by Tested-by
"""
KNOWN = {name.lower(): name for name in _KEYS.split()}
_TRAILER = re.compile(r"([A-Za-z][A-Za-z-]{1,30})[ \t]{0,3}[:：][ \t]*(.*)")
_QUOTES = "\"'`“”„‟«»‘’‚‹›「」『』"
_FIXES = re.compile(r"(?:commit )?(?:<?https?://\S{5,200}?[/=])?([0-9a-f]{7,40})\b", re.I)
_OPEN_QUOTE = re.compile(rf"\([{_QUOTES}]")
_CLOSED_QUOTE = re.compile(rf"[{_QUOTES}]\)")
# The title after the sha in a Fixes: trailer, and what git-revert(1) writes: to be matched where they begin
_FIXED_TITLE = re.compile(
    rf"(?:[\s:-]{{0,20}}"
    rf"(?:\(?[{_QUOTES}](.{{1,400}}?)[{_QUOTES}]\)?|[\[(](?!\d{{1,3}}[\])])([^\n{_QUOTES}]{{1,400}}?)[\])])"
    rf"|[ \t:-]{{0,20}}((?:[\w/.,+-]{{1,40}}: ){{1,3}}[^\n#\[\]{_QUOTES}]{{1,300}}?))"
    rf"(?:[ \t]*\[\d{{1,3}}\])?"
    rf"\.?[ \t]*(?:#[^\n]*)?(?:\n|\Z)",
    re.S,
)
REVERTED_TITLE = re.compile(rf"(.{{1,400}}?)[{_QUOTES}]\.?[ \t]*(?:\n(?![ \t])|\Z)", re.S)
# "This reverts commit <sha>", "reverts commits <sha> and <sha>", "by reverting parts of <sha>"; up to the first sha
# "reverts the changes introduced by commit <sha>", "reverts Lee's commit <sha>", "reverts the mm bits of <sha>"
REVERTS_OF = (
    r"(?:(?:the|all|most|parts?|bits?|hunks?|changes?|following|of|from|in|introduced|made|done|by|\S{1,30}['’]s"
    r"|[\w/.-]{1,30}(?=\s(?:bits?|parts?|hunks?|changes?)\s))\s{1,20}){0,5}(?:commits?:?\s{1,20})?"
    r"(?:<?https?://\S{5,200}?[/=](?=[0-9a-f]{7,40}\b))?"
)
_NOT_BEHIND = "".join(
    rf"(?<!{word}\s)" for word in ("not", r"not\sto", "n['’]t", "never", r"instead\sof", "than", "without", "avoid")
)
_REVERTS = re.compile(
    rf"(?:\b(?=r){_NOT_BEHIND}revert(?:s|ing)?|\bthis\s(?:undoes|backs\sout)|^[ \t]*(?:undo|back\sout)):?"
    rf"\s{{1,20}}{REVERTS_OF}(?=[0-9a-f]{{7,40}}\b)",
    re.I | re.M,
)
# Shas in a list. A title is skipped only if it stands in double quotes and another sha follows.
_TITLE_OF_SHA = r'\s{0,20}\(["“]([^"”\n]{1,300})["”]\)'
_SHAS = re.compile(
    rf"(?:(?:\s*,|\s+and)?\s*(?:commit\s+)?[0-9a-f]{{7,40}}\b(?:{_TITLE_OF_SHA}(?=\s*(?:,|and\s|[0-9a-f]{{7,40}}\s)))?){{1,50}}",
    re.I,
)
_LISTED = re.compile(rf"\b([0-9a-f]{{7,40}})\b(?:{_TITLE_OF_SHA})?", re.I)
_REVERT_LINE = re.compile(
    rf"^[ \t]*(?:[\w/.,+-]{{1,40}}: ){{0,3}}(?:This reverts|(?-i:Reverts)|(?:partial(?:ly)? )?revert|back out):?"
    rf" [{_QUOTES}]",
    re.M | re.I,
)
# "Commit <sha> costs 30%. Revert it."
_REVERT_IT = re.compile(
    r"(?:\A|\n[ \t]*\n[ \t]*|[.!]\s{1,4})(?:(?:so|thus|hence|therefore|please),? |let's )?"
    r"revert (?:it|(?:that|this) commit)(?=[.,!]|\s*\Z|\n)",
    re.I,
)
NAMED_COMMIT = r"\bcommit\s([0-9a-f]{7,40})\b"
_NAMED_COMMIT = re.compile(NAMED_COMMIT, re.I)
_BARE_REVERT = re.compile(rf"[ \t]*(?:Revert|Back out(?=:? [\w/.,+-]{{1,40}}: )):? (?=[^\s{_QUOTES}])", re.I)
MAX_TRAILERS = 500
_MOST_TOLD = 500_000  # characters in which a revert is looked for


@dataclass(frozen=True, slots=True)
class Trailer:
    """A known key in its usual spelling, and the value with wrapped lines joined."""

    key: str
    value: str


def find_trailers(lines: Sequence[str]) -> tuple[Trailer, ...]:
    """Return the trailers in unquoted lines, up to a patch's `---` or its first diff line."""
    trailers: list[Trailer] = []
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        # Notes, a signature or the patch itself follow. Dashes above the head of a patch end nothing.
        is_end = line.rstrip() in ("---", "--") and not below.startswith(("From ", "From:", "Subject:"))
        if is_end or line.startswith("diff --git "):
            break
        match = _TRAILER.match(line)
        key = KNOWN.get(match[1].lower()) if match else None
        if match and key and (value := _joined(match[2], lines[number + 1 : number + 4])):
            trailers.append(Trailer(key, value))
        if len(trailers) >= MAX_TRAILERS:
            break
    return tuple(trailers)


# A link that a mail program wrapped before the id; an address or a title on its own line.
_CUT = re.compile(r"https?://\S{1,200}/\Z")
_WRAPPED = re.compile(r"\s+(?:<?[^\s@]{1,100}@|\(\")")


def _joined(value: str, below: Sequence[str]) -> str:
    """Return the value joined with its continuation lines, wrapped in a parenthesis or right after the colon."""
    value = value.rstrip()
    for line in below:
        open_end = len(_OPEN_QUOTE.findall(value)) > len(_CLOSED_QUOTE.findall(value)) or bool(_CUT.search(value))
        wrapped = open_end or (line[:1] in " \t" and (not value or _WRAPPED.match(line)))
        if not line.strip() or not wrapped or ((match := _TRAILER.match(line)) and match[1].lower() in KNOWN):
            break
        value = f"{value}{'' if _CUT.search(value) else ' '}{line.strip()}".strip()
    return value


def fixed_commits(trailers: Sequence[Trailer]) -> tuple[str, ...]:
    """Return the shas in `Fixes:` trailers, in the length given there, in lower case; some have several in a line."""
    shas: list[str] = []
    for value in (trailer.value for trailer in trailers if trailer.key == "Fixes"):
        match = _FIXES.match(value)
        shas += reverted_at(value).commits or ([match[1].lower()] if match else [])
    return tuple(shas)


def fixed_titles(trailers: Sequence[Trailer]) -> tuple[str, ...]:
    """Return the titles in `Fixes:` trailers, in quotes of any kind: a commit that was rebased keeps its title."""
    values = [trailer.value for trailer in trailers if trailer.key == "Fixes"]
    titles = (title_after(value[sha.end() if (sha := _FIXES.match(value)) else 0 :]) for value in values)
    return tuple(filter(None, titles))


def title_after(text: str) -> str:
    """Return the title that stands at the start of a text, after a sha, in quotes of any kind or in brackets, or with
    its subsystem; or "".

    >>> title_after(' ("mm: take the lock") [1]'), title_after(" [mm: take the lock]"), title_after(" [1]")
    ('mm: take the lock', 'mm: take the lock', '')
    >>> title_after(" mm: take the lock"), title_after(" take the lock")
    ('mm: take the lock', '')
    """
    match = _FIXED_TITLE.match(text)
    return " ".join((match[1] or match[2] or match[3]).split()) if match else ""


def reverted_at(text: str) -> Reverted:
    """Return the commits, and their titles, that stand at the start of a text, after "This reverts commit "."""
    match = _SHAS.match(text)
    listed = _LISTED.findall(match[0]) if match else []
    titles = [*(title for _, title in listed), title_after(text[match.end() :]) if match else ""]
    return Reverted(tuple(sha.lower() for sha, _ in listed), tuple(filter(None, titles)))


class Reverted(NamedTuple):
    """The commits that a mail reverts: by sha, in lower case, or by title."""

    commits: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()


def find_reverted(parts: Iterable[Sequence[str]], patches: Sequence[Patch]) -> Reverted:
    """Return the commits that a mail with these patches reverts: "This reverts commit …", a line "Revert "title"" above
    the diff, or such a title of a patch. `parts`: the lines of its text, and of each attached patch.
    """
    above = (itertools.takewhile(lambda line: not line.startswith("diff --git "), lines) for lines in parts)
    above_diffs = "\n\n".join("\n".join(lines) for lines in above)[:_MOST_TOLD]
    text = "\n\n".join([above_diffs, *(patch.title for patch in patches)])
    mentions = itertools.islice(_REVERTS.finditer(text), MAX_LINKS)
    named = [reverted_at(text[mention.end() : mention.end() + MAX_SUBJECT]) for mention in mentions]
    commits = dict.fromkeys(sha for reverted in named for sha in reverted.commits)
    if not commits and (told := _REVERT_IT.search(text)):
        above_it = text[max(0, told.start() - MAX_SUBJECT) : told.start()]
        before = dict.fromkeys(sha.lower() for sha in _NAMED_COMMIT.findall(above_it))
        commits = before if len(before) == 1 else commits
    quoted = [patch.title[revert.end() :] for patch in patches if (revert := _REVERT_LINE.match(patch.title))]
    bare = [patch.title[revert.end() :] for patch in patches if (revert := _BARE_REVERT.match(patch.title))]
    starts = itertools.islice(_REVERT_LINE.finditer(text), MAX_LINKS)
    quoted += [text[start.end() : start.end() + MAX_SUBJECT] for start in starts]
    matches = (REVERTED_TITLE.match(title) for title in quoted)
    titles = dict.fromkeys(title for reverted in named for title in reverted.titles)
    titles |= dict.fromkeys(" ".join(match[1].split()) for match in matches if match)
    titles |= dict.fromkeys(" ".join(title.split()) for title in bare)
    return Reverted(tuple(commits)[:MAX_LINKS], tuple(titles)[:MAX_LINKS])


# --- Diffs ---

MOST_LINES = 200_000
_DIFFS_FILE = re.compile(r"(?:diff --git|Index:) \S")
_OLD_NAME = re.compile(r"--- \S")
_NEW_NAME = re.compile(r"\+\+\+ \S")
_DIFFS_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,6}))? \+\d{1,9}(?:,(\d{1,6}))? @@")
_HEADER = re.compile(
    r"index [0-9a-f]+\.\.|(?:old|new) mode \d|(?:new|deleted) file mode \d|(?:dis)?similarity index |"
    r"(?:rename|copy) (?:from|to) |={20,}\s*\Z|Binary files "
)
_BINARY = re.compile(r"GIT binary patch\s*\Z|(?:literal|delta) \d+\s*\Z")


def find_diffs(text: str) -> tuple[str, ...]:
    """Return the diffs of a text in order; file after file without anything in between is one diff.

    A hunk that ends too early, for example because a mail program wrapped its lines, is returned unchanged; git rejects
    it.
    """
    lines = text.split("\n")[:MOST_LINES]
    diffs, at = [], 0
    while at < len(lines):
        end, is_diff = _end_of_diff(lines, at)
        if is_diff:
            diffs.append("\n".join(lines[at:end]) + "\n")
        at = max(end, at + 1)
    return tuple(diffs)


def _end_of_diff(lines: Sequence[str], start: int) -> tuple[int, bool]:
    """Return the line after what looks like a diff from here on, and whether it is one, with hunks."""
    at, hunks = start, 0
    while at < len(lines):
        is_old_name = _OLD_NAME.match(lines[at]) and at + 1 < len(lines)
        if _DIFFS_FILE.match(lines[at]) or (is_old_name and _NEW_NAME.match(lines[at + 1])):
            at += 1
        elif at == start:
            return start, False
        elif match := _DIFFS_HUNK.match(lines[at]):
            at, hunks = _end_of_hunk(lines, at + 1, int(match[1] or 1), int(match[2] or 1)), hunks + 1
        elif _BINARY.match(lines[at]):
            at, hunks = at + 1, hunks + 1
            while at < len(lines) and lines[at].strip():
                at += 1
            at = min(at + 1, len(lines))  # after a block of base85, and the empty line that ends it
        elif _HEADER.match(lines[at]) or _NEW_NAME.match(lines[at]):
            # An empty file has no hunk.
            hunks += lines[at].startswith(("rename to", "new mode", "copy to", "new file mode", "deleted file mode"))
            at += 1
        else:
            break
    return at, hunks > 0


def _end_of_hunk(lines: Sequence[str], at: int, old: int, new: int) -> int:
    """Return the line after a hunk with this many old and new lines; white space at the end of lines may be lost."""
    while at < len(lines) and (old > 0 or new > 0):
        mark = lines[at][:1] or " "
        if mark not in " +-\\" or (not lines[at] and at + 1 == len(lines)):
            break
        old -= mark in " -"
        new -= mark in " +"
        at += 1
    while at < len(lines) and lines[at].startswith("\\ "):
        at += 1
    return at


# --- Patches ---

MAX_SUBJECT = 4000  # characters of a subject that are read
_DIFF = re.compile(r"^(?:diff --git \S|Index: \S|--- \S.{0,400}\n\+\+\+ \S)", re.M)
_HUNK = re.compile(
    r"^@@+ -\d+(?:,\d+)? .{0,60}\+\d+(?:,\d+)? @@"
    r"|^(?:(?:rename|copy) from|(?:(?:new|deleted) file|new) mode|GIT binary)\b",
    re.M,
)
_FILE = re.compile(r"^--- \S.{0,400}\n\+\+\+ (?:b/)?([^\s]{1,300})", re.M)
_GIT_FILE = re.compile(r"^diff --git a/\S{1,300} b/([^\s]{1,300})", re.M)  # of a diff without a line
_OLD_FILE = re.compile(r"^--- (?:a/)?([^\s]{1,300}).{0,200}\n\+\+\+ /dev/null", re.M)
SUBJECT_LINE = re.compile(r"^Subject:[ \t]*(.{1,400}(?:\n[ \t].{1,400}){0,3})", re.M)
_GIT_HEAD = re.compile(r"^From [0-9a-f]{40} ", re.M)
_BRACKETS = re.compile(r"\s*\[[^\]]{0,100}\]\s*")
_ANSWER = re.compile(ANSWER, re.I)
_PATCH = re.compile(r"\[[^\]]{0,80}\b(?:PATCH|RFC)(?![a-uw-z])[^\]]{0,80}\]", re.I)  # "[PATCHv3 1/2]", "[patch V2]"
_POSTING = re.compile(rf"(?:\[[\w .-]{{1,40}}\]\s*){{0,2}}?{_PATCH.pattern}", re.I)  # after a list's tag
_VERSION = re.compile(r"(?:\b|PATCH|RFC|_)v(\d{1,3})\b", re.I)


@dataclass(frozen=True, slots=True)
class PatchMail:
    """A posting: its Message-ID, and the mails that it answers, such as a cover letter."""

    message_id: str
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Patch:
    """A diff by the writer: its title (or ""), `inline` or `attached`, and its files."""

    title: str
    source: str
    files: tuple[str, ...]


def find_patches(lines: Sequence[str], subject: str, attachments: Sequence[MimeAttachment]) -> tuple[Patch, ...]:
    """Return the patches of a mail: anywhere in its unquoted lines, and in its attachments."""
    text = "\n".join(lines)
    # A text holds several patches only if each begins with git's "From <sha>" line.
    heads = [head.start() for head in _GIT_HEAD.finditer(text)][:50]
    pieces = [text[start:end] for start, end in itertools.pairwise([0, *heads[1:], len(text)])]
    inline = [piece for piece in pieces if is_diff(piece)]
    if len(inline) < 2:
        inline = [text] if is_diff(text) else []
    diffs = [(diff, "inline", posted_title(subject)) for diff in inline]
    diffs += [(part.text, "attached", "") for part in attachments[:50] if is_diff(part.text)]
    patches: list[Patch] = []
    for diff, source, title in diffs:
        # The `Subject:` that git format-patch writes above a patch
        start = _DIFF.search(diff)
        match = SUBJECT_LINE.search(diff[: start.start()] if start else diff)
        title = (bare_title(decode(match[1])) if match else "") or title
        names = [name for name in _FILE.findall(diff) if name != "/dev/null"]
        names = names or [name for name in _OLD_FILE.findall(diff) if name != "/dev/null"]
        names = names or _GIT_FILE.findall(diff)
        patches.append(Patch(title, source, tuple(dict.fromkeys(names))[:1000]))
    return tuple(patches)


def is_diff(text: str) -> bool:
    """Whether the text contains a unified diff: a file name and a hunk."""
    return bool(_HUNK.search(text) and _DIFF.search(text))


def is_answer(subject: str) -> bool:
    return bool(_ANSWER.match(subject))


def answered_posting(subject: str) -> str:
    """Return the subject of the posting that this one answers, "[PATCH 1/2] …", without a list's tag, or ""."""
    title = " ".join(subject.split())
    match = _PATCH.search(title)
    return title[match.start() :] if match and is_answer(title) else ""


def posted_title(subject: str) -> str:
    """Return the title of a patch posting; "" for any other subject, and for a reply to one."""
    return bare_title(subject) if is_posting(subject) else ""


def is_posting(subject: str) -> bool:
    """Whether a subject begins with [PATCH …]; replies begin with Re:."""
    return bool(_POSTING.match(subject.strip()))


def version_of(subject: str) -> int:
    """Return the version of a posting: 2 for "[PATCH v2 1/3] …", 1 if none is given."""
    bracket = _PATCH.search(subject)
    match = _VERSION.search(bracket[0]) if bracket else None
    return int(match[1]) if match else 1


def bare_title(subject: str) -> str:
    """Return a subject as a commit title: without Re: and bracketed tags, white space folded."""
    title = " ".join(subject[:MAX_SUBJECT].split())
    while match := _ANSWER.match(title) or _BRACKETS.match(title):
        if not match.end():
            break
        title = title[match.end() :]
    return title


# --- Subsystem ---

_REVERT = re.compile(r'(?:Revert|Reapply)\s+"(.*?)"?\Z')
_PREFIX = re.compile(r"([A-Za-z0-9][\w./,+&*-]{0,60}(?: [\w./-]{1,20})?):\s")


def subsystem_of(title: str) -> str:
    """Return the first prefix of a title, or of the title that a revert quotes; "" if there is none."""
    title = bare_title(title)
    while match := _REVERT.match(title):
        title = match[1]
    prefix = _PREFIX.match(title)
    return prefix[1] if prefix else ""


# --- What is to be tested: repositories with a branch, tag or commit ---

# People paste what their web view shows: cgit (`…/linux.git/log/?h=topic`), GitHub (`…/tree/topic`), GitLab
# (`…/-/tree/topic`), sourcehut and Codeberg; or they write "topic of git://…", "git://… topic", "mm.git#fixes". All of
# these become one form, "git://git.example.org/mm.git topic", which `git fetch` takes as its two arguments.

# A name as git-check-ref-format(1) allows it, but for rare characters.
_REF = r"[A-Za-z0-9](?:[\w./+-]{0,118}[\w+-])?"
_URL = r"(?:(?:git|https?|ssh)://[\w.:@~/%+-]{3,200}|git@[\w.-]{3,80}:[\w.~/-]{2,120})"
# What stands in a web view between a repository and a ref: cgit, GitHub, GitLab, sourcehut, Codeberg.
_HOSTS = r"(?:(?:git|https?)://)?((?:[\w-]{1,40}\.){0,3}(?:github\.com|gitlab\.[a-z.]{2,20}|codeberg\.org|git\.sr\.ht))"
_FORGE = re.compile(
    rf"(?<![\w/.]){_HOSTS}/(~?[\w.-]+/(?:[\w.-]+/){{0,3}}?[\w.-]+?)(?:\.git)?/(?:-/)?"
    rf"(?:tree|commits?|log|src/(?:branch|commit|tag))/({_REF})"
)
_CGIT = re.compile(
    rf"(?<![\w/])((?:git|https?)://[\w.-]+/[\w./~+-]{{2,280}})\?(?:[\w=./%+-]{{0,80}}[&;])?"
    rf"(h|id)=({_REF})(?:[&;](h|id)=({_REF}))?"
)
_SLASH_H = re.compile(rf"(?<![\w/])((?:git|https?)://[\w.-]+/[\w./~+-]{{2,160}}?\.git)/h/({_REF})")
_HASH = re.compile(rf"(?<![\w/])({_URL}|[\w-]{{1,40}}\.git)#({_REF})")
_QUOTED = rf"[\"'`]?({_REF})[\"'`]?"
_GAP = r"\s{1,8}"
_REF_BEFORE = re.compile(
    rf"\b(?:(?:branch|tag|commit){_GAP}{_QUOTED}|{_QUOTED}{_GAP}(?:branch|tag)){_GAP}(?:of|in|from|at|on){_GAP}"
    rf"(?:the{_GAP})?(?:tree{_GAP})?(?:<?({_URL})>?|([\w-]{{2,40}})(?={_GAP}tree\b|[.,;?!)\n]|\s{{0,8}}\Z))",
    re.I,
)
_BLANKS = r"[ \t]{0,8}"
_REF_AFTER = re.compile(
    rf"(?<![\w/])<?({_URL})>?({_BLANKS}[,:(]?{_BLANKS}\n?{_BLANKS})((?:branch|tag|commit)[:=]?{_GAP})?{_QUOTED}",
    re.I,
)
_SHA = re.compile(r"\b[0-9a-f]{12,40}\b")
# No ref, and no tree, is called so: "the branch in the tree".
_WORD = re.compile(
    r"(?:an?|and|are|as|at|below|branch|but|by|can|commit|could|does|for|from|has|have|here|if|in|instead|is|it|its|me|my"
    r"|of|on|only|or|our|please|series|so|tag|that|the|then|there|this|to|tree|was|we|when|where|which|with|you|your)\Z",
    re.I,
)
_NO_REPOSITORY = re.compile(
    r"//(?:lore\.kernel\.org|lkml\.|patchwork\.|bugzilla\.|www\.|docs\.|elixir\.|download\.)", re.I
)
_IS_REPOSITORY = re.compile(
    r"\.git\Z|^(?:git|ssh)://|^git@|//git\.|/git/|/linux|\Ahttps?://(?:github|gitlab|codeberg)", re.I
)
_ASKED_COMMIT = re.compile(
    r"\b(?:test|tests|testing|try|run|measure|check|compare|bench|benchmark)\b[^\n.?!]{0,40}?\b([0-9a-f]{12,40})\b",
    re.I,
)
_MOST_ASKED = 20_000  # characters that are looked at: what somebody asks for stands at the beginning


def ref_in(text: str, culprit: str = "") -> str:
    """Return what a text names to test: a repository with a branch, else a commit; "" for neither.

    `culprit`: the sha of the report's, to which everybody links, and which nobody means.
    """
    text = text[:_MOST_ASKED]
    return branch_in(text, culprit) or commit_in(text, culprit)


def branch_in(text: str, culprit: str = "") -> str:
    """Return the repository and ref that a text names first, "https://git.example.org/linux.git topic"; "" for none.

    >>> branch_in("Could you test https://github.com/ada/linux/tree/scan-less, please?")
    'https://github.com/ada/linux.git scan-less'
    >>> branch_in("please try the scan-less branch of git://git.example.org/mm.git")
    'git://git.example.org/mm.git scan-less'
    """
    named = sorted(_named(text), key=lambda place: place[0])
    return next((f"{tree} {ref}" for _, tree, ref in named if not culprit.startswith(ref)), "")


def _named(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield where a repository is named with a ref, and both."""
    for match in _FORGE.finditer(text):
        yield match.start(), f"https://{match[1]}/{match[2]}{'' if 'sr.ht' in match[1] else '.git'}", _trimmed(match[3])
    for match in _CGIT.finditer(text):
        yield match.start(), _repository(match[1]), match[5] if match[4] == "id" else match[3]
    for match in _SLASH_H.finditer(text):
        yield match.start(), match[1], _trimmed(match[2])
    for match in _HASH.finditer(text):
        yield match.start(), match[1], _trimmed(match[2])
    for match in _REF_BEFORE.finditer(text):
        ref, tree = match[1] or match[2], match[3] or match[4]
        if not _WORD.match(ref) and (match[3] or not _WORD.match(tree)):
            yield match.start(), _trimmed(tree), _trimmed(ref)
    for match in _REF_AFTER.finditer(text):
        url, between, says, ref = _trimmed(match[1]), match[2], match[3], match[4]
        if not between or _NO_REPOSITORY.search(url) or not _IS_REPOSITORY.search(url):
            continue
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        line_end = text.find("\n", match.end())
        after = text[match.end() : line_end if line_end >= 0 else None]
        ends = not after.strip(" \t.,)\"'`")
        is_alone = not after.strip() and not before.strip() and "\n" not in between  # as the arguments of git fetch
        if "\n" in between and not (says or ends):
            continue
        is_no_word = ref in ("master", "main") or re.search(r"[/_\d-]", ref)  # as "for-next", "topic/x", "v2"
        if says or is_alone or is_no_word or _SHA.match(text, match.end() + 1):
            yield match.start(), url, _with_commit(_trimmed(ref), text, match.end())


def _with_commit(ref: str, text: str, at: int) -> str:
    """Return a sha that follows a branch, "topic 57e95a5c4117": it says more than the branch."""
    rest = text[at : at + 60].split("\n", 1)[0]
    sha = _SHA.search(rest)
    return sha[0] if sha and not rest[: sha.start()].strip(" \t(,:@").removeprefix("commit").strip() else ref


def _repository(url: str) -> str:
    """Return the repository of a web view's address, which goes on with the view, and perhaps a file."""
    view = re.search(r"(?<=\.git)/|/(?:log|commit|tree|shortlog|refs)(?:/|\Z)", url)
    return url[: view.start()] if view else url.rstrip("/")


def _trimmed(name: str) -> str:
    return name.rstrip(".,;:!?)>'\"`/")


def commit_in(text: str, culprit: str = "") -> str:
    """Return the commit that a text asks to test, "" for none: "can you test commit 57e95a5c4117"."""
    for match in _ASKED_COMMIT.finditer(text):
        if not culprit.startswith(match[1]):
            return match[1]
    return ""
