"""How people name a commit in a line: by sha, title or link, in marks, beside other words.

`named_sha` reads a sha with what stands after it, `named_fix` a fix, which may be a posted patch, too. A command in a
mail and the field of a page are read alike.
"""

from __future__ import annotations

import re

_LONGEST = 2000  # characters of what names a commit: a link, a title
# A sha, perhaps in marks and with its title: "`3b1f0c9d2e44` (“mm: take the lock”)"
_SHA = re.compile(
    r"[`'\"<\[(#*]{0,3}(?:commit\s+)?[`'\"<\[(#*]{0,3}([0-9a-f]{7,40})\b[\s:,.;`'\">\])*-]*(.*)", re.I | re.S
)
# Below its title, or as `git describe` writes it: "mm: take the lock (3b1f0c9d2e44)", "v6.12-3-g3b1f0c9d2e44"
_SHA_AT_END = re.compile(r"(?:(.{1,400})\s\((?:commit )?|v\d[\w.-]{0,40}-\d{1,7}-g)([0-9a-f]{7,40})\)?[.,;]?", re.I)
# What a title of the kernel begins with; and a number before words that aren't one: "1000000 pages are enough"
_SUBSYSTEM = re.compile(r"[\w/.,+*-]{1,60}: \S")
_NUMBER = re.compile(rf"\d{{7,11}}\s+(?!{_SUBSYSTEM.pattern})[^\W\d_]")
# A commit in a web view of git; any link, in which a bracket that opens is closed; a link in a pair of brackets
_COMMIT_URL = re.compile(
    r"<?(?:https?://|(?=(?:[\w-]{1,40}\.){1,4}[a-z]{2,10}/))\S*?(?:[?&;]id=|/#|/(?:c(?:ommit)?s?|linus|\+)/)([0-9a-f]{7,40})\b\S*>?",
    re.I,
)
_URL = re.compile(r"https?://(?:[^\s<>()\]]|\([^\s<>()]*\))+")
_BRACKETED_URL = re.compile(rf"[(<\[]?{_URL.pattern}[)>\]]?[.,;]?")
_MESSAGE_ID = re.compile(r"<?([^\s<>/@]+@[^\s<>/]+)>?")
_TITLE_FIRST = re.compile(rf"""["“„«]({_SUBSYSTEM.pattern}[^"“”„«»]*)["“”»](?=[\s,.;])""")
_IN_QUOTES = re.compile(r"""["“”„«»`]\s?([^"“”„«»`]{3,})\s?["“”„«»`][.,]?|['‘‚](.{3,})['’‘][.,]?""")


def named_fix(text: str) -> tuple[str, str]:
    """Return the sha or the link of a fix, and its title; "" for what is not said.

    >>> named_fix("3b1f0c9d2e44 (mm: take the lock)"), named_fix("Subject: mm: take the lock")
    (('3b1f0c9d2e44', 'mm: take the lock'), ('', 'mm: take the lock'))
    >>> named_fix("mm: call walk() once <https://lore.kernel.org/r/1@x>")
    ('https://lore.kernel.org/r/1@x', 'mm: call walk() once')
    >>> named_fix("“mm: take the lock”, now in mainline")
    ('', 'mm: take the lock')
    """
    text = text.strip()[:_LONGEST]
    sha, after = named_sha(text)
    if sha:
        return sha, after
    if len(links := _URL.findall(text)) == 1:  # it says which one, whatever stands around it
        around = _BRACKETED_URL.sub("", text).strip()
        around = unquoted(around[1:-1] if around[:1] + around[-1:] in ("()", "[]") else around).rstrip(" :,;")
        return links[0].rstrip(".,;"), around if _SUBSYSTEM.match(around) else ""
    if mail := _MESSAGE_ID.fullmatch(text):
        return f"https://lore.kernel.org/r/{mail[1]}", ""
    in_front = _TITLE_FIRST.match(text)
    return "", in_front[1] if in_front else unquoted(text)


def named_sha(text: str) -> tuple[str, str]:
    """Return the sha that a text names, in lower case, and what it says after it, such as the title; "" if none.

    >>> named_sha("`3b1f0c9d2e44` (“mm: take the lock”)")
    ('3b1f0c9d2e44', 'mm: take the lock')
    >>> named_sha("mm: take the lock (3b1f0c9d2e44)"), named_sha("v6.12-3-g3b1f0c9d2e44")
    (('3b1f0c9d2e44', 'mm: take the lock'), ('3b1f0c9d2e44', ''))
    >>> named_sha("git.kernel.org/torvalds/c/3b1f0c9d2e44")
    ('3b1f0c9d2e44', '')
    """
    text = text.strip()[:_LONGEST]
    if _MESSAGE_ID.fullmatch(text):
        return "", ""
    if url := _COMMIT_URL.fullmatch(text):
        return url[1].lower(), ""
    if not _NUMBER.match(text) and (named := _SHA.fullmatch(text)):
        after = named[2].strip().removeprefix("(")
        return named[1].lower(), unquoted(after if after.count("(") == after.count(")") else after.removesuffix(")"))
    at_end = _SHA_AT_END.fullmatch(text)
    return (at_end[2].lower(), unquoted(at_end[1] or "")) if at_end else ("", "")


def unquoted(text: str) -> str:
    """Return a title without the quotation marks around it, typographic ones, too, and without "Subject:"."""
    text = text.strip()
    quoted = _IN_QUOTES.fullmatch(text[1:-1] if text[:1] + text[-1:] == "()" else text)
    text = (quoted[1] or quoted[2]) if quoted else text
    return re.sub(r"\Asubject:\s*", "", text.strip(), flags=re.I)
