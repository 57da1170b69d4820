"""Links out of our pages: a commit in the web view of its tree, and an answer in a mail program. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

# Trees on these hosts have a page for each commit; of others we don't know. `{url}` has no ".git" where they drop it.
_VIEWS = (
    (re.compile(r"https?://(?:[\w-]+\.)*kernel\.org/.+"), "{git}/commit/?id={sha}"),  # cgit
    (re.compile(r"https?://(?:www\.)?github\.com/.+"), "{url}/commit/{sha}"),
    (re.compile(r"https?://gitlab\.[\w.-]+/.+"), "{url}/-/commit/{sha}"),
)
_SHA = re.compile(r"[0-9a-f]{7,64}\Z")
LONGEST = 1800  # characters of a mailto link: some mail programs take no more


def commit_url(tree_url: str, sha: str) -> str:
    """Return the page of a commit in the web view of a tree that is cloned from this URL; "" if none is known.

    >>> commit_url("https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git", "3b1f0c9d2e")
    'https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/commit/?id=3b1f0c9d2e'
    >>> commit_url("https://github.com/torvalds/linux.git/", "3b1f0c9d2e")
    'https://github.com/torvalds/linux/commit/3b1f0c9d2e'
    >>> commit_url("git://git.kernel.org/pub/scm/linux/kernel/git/tip/tip.git", "3b1f0c9d2e")[:40]
    'https://git.kernel.org/pub/scm/linux/ker'
    >>> commit_url("/srv/linux.git", "3b1f0c9d2e"), commit_url("https://github.com/a/b", "x' onclick=")
    ('', '')
    """
    git = re.sub(r"\A(?:git|ssh)://(?:[^/@]*@)?", "https://", tree_url.strip()).rstrip("/")
    if not _SHA.match(sha) or re.search(r"[\s\"'<>\\?#]", git):
        return ""
    for host, form in _VIEWS:
        if host.fullmatch(git):
            return form.format(git=git, url=git.removesuffix(".git"), sha=sha)
    return ""


def reply_url(to: str, cc: Sequence[str], subject: str, message_id: str) -> str:
    """Return a mailto link that answers a mail in its thread (RFC 6068); fewer are in Cc where it would be too long.

    >>> reply_url("a@b.example", ["list@c.example"], "Re: [LKP] x", "1@bot.example")
    'mailto:a@b.example?In-Reply-To=%3C1%40bot.example%3E&Subject=Re%3A%20%5BLKP%5D%20x&Cc=list%40c.example'
    """
    fields = f"In-Reply-To={_quoted(f'<{message_id}>')}&Subject={_quoted(subject)}"
    link = f"mailto:{_quoted(to, '@+')}?{fields}"
    kept = list(cc)
    while kept and len(link) + len("&Cc=") + len(_quoted(",".join(kept))) > LONGEST:
        kept.pop()
    return f"{link}&Cc={_quoted(','.join(kept))}" if kept else link


def _quoted(text: str, safe: str = "") -> str:
    return quote(text, safe=safe, errors="replace")
