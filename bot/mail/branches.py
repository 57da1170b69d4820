"""Repositories with a branch, tag or commit that people name in a mail. Pure.

People paste what their web view shows: cgit (`…/linux.git/log/?h=topic`), GitHub (`…/tree/topic`), GitLab
(`…/-/tree/topic`), sourcehut and Codeberg; or they write "topic of git://…", "git://… topic", "mm.git#fixes". All of
these become one form, "git://git.example.org/mm.git topic", which `git fetch` takes as its two arguments.
"""

import re
from collections.abc import Iterator

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
_BEFORE = re.compile(
    rf"\b(?:(?:branch|tag|commit){_GAP}{_QUOTED}|{_QUOTED}{_GAP}(?:branch|tag)){_GAP}(?:of|in|from|at|on){_GAP}"
    rf"(?:the{_GAP})?(?:tree{_GAP})?(?:<?({_URL})>?|([\w-]{{2,40}})(?={_GAP}tree\b|[.,;?!)\n]|\s{{0,8}}\Z))",
    re.I,
)
_BLANKS = r"[ \t]{0,8}"
_AFTER = re.compile(
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
MOST = 20_000  # characters that are looked at: what somebody asks for stands at the beginning


def ref_in(text: str, culprit: str = "") -> str:
    """Return what a text names to test: a repository with a branch, else a commit; "" for neither.

    `culprit`: the sha of the report's, to which everybody links, and which nobody means.
    """
    text = text[:MOST]
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
    for match in _BEFORE.finditer(text):
        ref, tree = match[1] or match[2], match[3] or match[4]
        if not _WORD.match(ref) and (match[3] or not _WORD.match(tree)):
            yield match.start(), _trimmed(tree), _trimmed(ref)
    for match in _AFTER.finditer(text):
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
