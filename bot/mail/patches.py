"""Patches in a mail: unified diffs in the body or an attachment, with their titles."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.mail.headers import decode
from bot.mail.mime.parts import MimeAttachment

MAX_SUBJECT = 4000  # letters that are read of a subject
_DIFF = re.compile(r"^(?:diff --git \S|Index: \S|--- \S.{0,400}\n\+\+\+ \S)", re.M)
_HUNK = re.compile(r"^@@+ -\d+(?:,\d+)? .{0,60}\+\d+(?:,\d+)? @@|^(?:rename from|new mode|GIT binary patch)\b", re.M)
_FILE = re.compile(r"^--- \S.{0,400}\n\+\+\+ (?:b/)?([^\s]{1,300})", re.M)
_OLD_FILE = re.compile(r"^--- (?:a/)?([^\s]{1,300}).{0,200}\n\+\+\+ /dev/null", re.M)
_SUBJECT = re.compile(r"^Subject:[ \t]*(.{1,400}(?:\n[ \t].{1,400}){0,3})", re.M)
_GIT_HEAD = re.compile(r"^From [0-9a-f]{40} ", re.M)
_BRACKETS = re.compile(r"\s*\[[^\]]{0,100}\]\s*")
_ANSWER = re.compile(r"\s*(?:re|aw|sv|fwd?|wg)\s*:\s*", re.I)
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
    found: list[Patch] = []
    for each in _split_patches(text):
        found.append(Patch(_title(each) or posted_title(subject), "inline", _files(each)))
    for part in attachments[:50]:
        if is_diff(part.text):
            found.append(Patch(_title(part.text), "attached", _files(part.text)))
    return tuple(found)


def _split_patches(text: str) -> list[str]:
    """Return the patches of a text; more than one only if each begins with git's "From <sha>" line."""
    heads = [head.start() for head in _GIT_HEAD.finditer(text)][:50]
    pieces = [text[start:end] for start, end in itertools.pairwise([0, *heads[1:], len(text)])]
    patches = [piece for piece in pieces if is_diff(piece)]
    return patches if len(patches) > 1 else [text] if is_diff(text) else []


def is_diff(text: str) -> bool:
    """Whether the text contains a unified diff: a file name and a hunk."""
    return bool(_HUNK.search(text) and _DIFF.search(text))


def _title(text: str) -> str:
    """Return the `Subject:` that git format-patch writes above a patch, without its brackets."""
    start = _DIFF.search(text)
    found = _SUBJECT.search(text[: start.start()] if start else text)
    return bare_title(decode(found[1])) if found else ""


def _files(text: str) -> tuple[str, ...]:
    new = [name for name in _FILE.findall(text) if name != "/dev/null"]
    return tuple(dict.fromkeys(new or [name for name in _OLD_FILE.findall(text) if name != "/dev/null"]))[:1000]


def is_answer(subject: str) -> bool:
    return bool(_ANSWER.match(subject))


def answered_posting(subject: str) -> str:
    """Return the subject of the posting that this one answers, "[PATCH 1/2] …", without a list's tag, or ""."""
    title = " ".join(subject.split())
    found = _PATCH.search(title)
    return title[found.start() :] if found and is_answer(title) else ""


def posted_title(subject: str) -> str:
    """Return the title of a patch posting; "" for any other subject, and for a reply to one."""
    return bare_title(subject) if is_posting(subject) else ""


def is_posting(subject: str) -> bool:
    """Whether a subject begins with [PATCH …]; replies begin with Re:."""
    return bool(_POSTING.match(subject.strip()))


def version_of(subject: str) -> int:
    """Return the version of a posting: 2 for "[PATCH v2 1/3] …", 1 if none is given."""
    bracket = _PATCH.search(subject)
    found = _VERSION.search(bracket[0]) if bracket else None
    return int(found[1]) if found else 1


def bare_title(subject: str) -> str:
    """Return a subject as a commit title: without Re: and bracketed tags, white space folded."""
    title = " ".join(subject[:MAX_SUBJECT].split())
    while match := _ANSWER.match(title) or _BRACKETS.match(title):
        if not match.end():
            break
        title = title[match.end() :]
    return title
