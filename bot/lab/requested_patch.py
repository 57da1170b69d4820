"""Which patch a request is about: in the mail that asks, linked or named there, in the mail above, or the candidate.

Reads stored mail only; what is not stored is named, so that a runner can fetch it with b4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.mail.diffs import find_diffs
from bot.mail.links import find_links
from bot.mail.message import ParsedMail, parse
from bot.mail.patches import find_patches, posted_title
from bot.mail.quoting import own_text, unquoted_lines
from bot.mail.sanitising import is_message_id
from tracker.models import Message

_BASE = re.compile(r"^base-commit: ([0-9a-f]{40})\s*$", re.M)
_SERIES = re.compile(r"\[[^\]]{0,80}?\b0*(\d{1,3})/0*(\d{1,3})\]")
_BRANCH = re.compile(r"(?:^|\s)((?:git|https)://[\w.:/~+-]{4,200}?(?:\.git|/linux))/?[ \t]+([\w][\w./-]{0,120})", re.M)


@dataclass(frozen=True, slots=True)
class RequestedPatch:
    """A patch: its text, "" if it is not stored here; the mail that has it, its title, the commit that it names as its
    base, and whether it is one of a series. Or else a branch: "https://git.example.org/linux.git topic".
    """

    text: str = ""
    message_id: str = ""
    title: str = ""
    base: str = ""
    in_series: bool = False
    branch: str = ""


NONE = RequestedPatch()


def requested_patch(message_id: str, candidate: str = "") -> RequestedPatch:
    """Return the patch that a mail asks to test. `candidate`: the mail with the newest candidate fix of the report."""
    asking = _stored(message_id)
    found = next(_candidates(asking, message_id), NONE) if asking else NONE
    if found is NONE and candidate and candidate != message_id:
        posting = _stored(candidate)
        found = patch_of(posting) if posting else RequestedPatch(message_id=candidate)
    return found


def patch_of(mail: ParsedMail) -> RequestedPatch:
    """Return the patch in a mail, to the letter; NONE without one. Of alternatives in one mail, the first."""
    texts = [mail.text, *(each.text for each in mail.attachments)]
    diffs = [diff for text in texts for diff in find_diffs(text)]
    if not diffs:
        return NONE
    base = next((found[1] for text in texts if (found := _BASE.search(text))), "")
    named = find_patches(unquoted_lines(mail.text), mail.subject, mail.attachments)
    title = posted_title(mail.subject) or next((each.title for each in named if each.title), "")
    return RequestedPatch(_applied_together(diffs), mail.message_id, title, base, _is_in_series(mail.subject))


def stored_patch(message_id: str) -> RequestedPatch:
    """Return the patch in a mail that is stored here; NONE without one."""
    mail = _stored(message_id) if message_id else None
    return patch_of(mail) if mail else NONE


def _candidates(mail: ParsedMail, message_id: str) -> Iterator[RequestedPatch]:
    """Yield what a mail may mean by "this patch", the likeliest first."""
    if (own := patch_of(mail)) is not NONE:
        yield own
    text = own_text(mail.text)
    links = [each.message_id for each in find_links(text) if each.message_id and is_message_id(each.message_id)]
    for message_id in links:
        if (patch := stored_patch(message_id)) is not NONE:
            yield patch
    if branch := _BRANCH.search(text):
        yield RequestedPatch(branch=f"{branch[1]} {branch[2].rstrip('.')}")
    for parent in mail.in_reply_to[:1]:
        if (patch := stored_patch(parent)) is not NONE:
            yield patch
    for message_id in links:
        if not Message.objects.filter(message_id=message_id).exists():
            yield RequestedPatch(message_id=message_id)


def _stored(message_id: str) -> ParsedMail | None:
    row = Message.objects.filter(message_id=message_id).select_related("source").defer("tables", "own_text").first()
    return parse(row.source.raw) if row else None


def _applied_together(diffs: list[str]) -> str:
    """Return the diffs that are one change: a second one for the same file is another proposal."""
    files: set[str] = set()
    together = []
    for diff in diffs:
        own = set(re.findall(r"^(?:\+\+\+|---) (?:[ab]/)?(\S+)", diff, re.M)) - {"/dev/null"}
        if own & files:
            break
        files |= own
        together.append(diff)
    return "".join(together)


def _is_in_series(subject: str) -> bool:
    found = _SERIES.search(subject)
    return bool(found) and int(found[2]) > 1 if found else False
