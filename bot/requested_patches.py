"""Which patch, series or branch a mail asks to test.

The patch is in the mail that asks, linked or named there, in its parent mail, or the candidate fix. Only stored mail
is read; what is not stored is named, so that a runner can fetch it with b4.

Any mail of a series stands for the whole of it, its parts in order. As b4 does, the parts are those of one writer,
version and number of parts in one thread; a part that is not here is named, and the series waits for it.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from django.db.models import Q

from bot.mail.authentication import AuthVerdict
from bot.mail.branches import ref_in
from bot.mail.message import ParsedMail, is_message_id, parse
from bot.mail.patches import SUBJECT_LINE, find_diffs, find_links, find_patches, is_answer, posted_title, version_of
from bot.mail.quoting import above_older_mail, own_text, unquoted_lines
from tracker.models import Message

MOST_PARTS = 200  # of a series
MOST_BYTES = 4 << 20  # of its mails: parsing them takes a second
_MOST_STEPS = 20  # from one mail of a series to the next


@dataclass(frozen=True, slots=True)
class RequestedPatch:
    """A patch or series: its text, "" if it is not stored here; the mail that has it, of a series its cover letter or
    first part; its title, and the commit that it names as its base. Or else a branch: "https://git.example.org/linux.git
    topic", or a commit alone.

    `parts`: the mails that the text is from, in order; `in_series`: whether they are a series, and `missing`, which of
    its parts is not here, in words.
    """

    text: str = ""
    message_id: str = ""
    title: str = ""
    base: str = ""
    branch: str = ""
    parts: tuple[str, ...] = ()
    in_series: bool = False
    missing: str = ""

    @property
    def digest(self) -> str:
        """Identifies the text, so that what was looked at is what runs; "" without one."""
        return digest_of(self.text)

    @property
    def mails(self) -> frozenset[str]:
        """The mails whose writers answer for the patch: those that its text is from, or the one that is named."""
        return frozenset(self.parts) or frozenset({self.message_id} if self.message_id else ())


NONE = RequestedPatch()


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() if text else ""


def text_of(parts: Iterable[str]) -> str:
    """Return the text of a patch from the mails that it is from; "" if one of them is not here, or has none by now."""
    texts = [patch_of(mail).text if (mail := _stored(part)) else "" for part in parts]
    return "".join(texts) if all(texts) else ""


def requested_patch(message_id: str, candidate: str = "", argument: str = "", culprit: str = "") -> RequestedPatch:
    """Return the patch that a mail asks to test. `candidate`: the mail with the newest candidate fix of the report;
    `argument`: what stands behind the command, if one asks; `culprit`: the report's, which is not meant.
    """
    asking = _stored(message_id)
    if asking is None:
        patch = NONE
    else:
        named = _named_in(argument, culprit) if argument else ()
        patch = next((meant for meant in (*named, *_candidates(asking, culprit)) if meant != NONE), NONE)
    if patch == NONE and candidate and candidate != message_id:
        return stored_patch(candidate, RequestedPatch(message_id=candidate))
    return patch


def stored_patch(message_id: str, without: RequestedPatch = NONE) -> RequestedPatch:
    """Return the patch or series in a mail; `without` one if the mail is not stored here."""
    mail = _stored(message_id) if message_id else None
    return series_of(mail) or patch_of(mail) if mail else without


def patch_of(mail: ParsedMail) -> RequestedPatch:
    """Return the patch in a mail, verbatim; NONE without one. Of alternatives in one mail, the first; of attached parts
    of a series, all.

    What stands below "Original Message" is somebody else's.
    """
    texts = _texts(mail)
    numbers = [number for text in texts if (number := _attached_number(text))]
    is_series = len(numbers) > 1 and len(numbers) == len({*numbers})
    diffs = [diff for text in texts for diff in find_diffs(text)]
    if not diffs:
        return NONE
    files: set[str] = set()
    together = ""
    for diff in diffs:
        changed = set(re.findall(r"^(?:\+\+\+|---) (?:[ab]/)?(\S+)", diff, re.M)) - {"/dev/null"}
        if changed & files and not is_series:  # a second diff for the same file is another proposal
            break
        files |= changed
        together += diff
    named = find_patches(unquoted_lines(mail.text), mail.subject, mail.attachments)
    title = posted_title(mail.subject) or next((patch.title for patch in named if patch.title), "")
    return RequestedPatch(together, mail.message_id, title, _base_in(texts), parts=(mail.message_id,))


# --- Series ---

_PLACE = re.compile(r"\[[^\]]{0,80}?\b0*(\d{1,3})/0*(\d{1,3})\]")
_HEAD = 4000  # characters of an attached patch that hold its subject
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def series_of(mail: ParsedMail) -> RequestedPatch | None:
    """Return the series that a mail is a part or the cover letter of; None if it is none."""
    place = _place(mail.subject)
    if place is None or place[2] < 1 or (place[2] == 1 and place[1] == 1):
        return None
    members = _members(mail, place)
    raws = {number: row.source.raw for number, row in members.items()}
    if sum(map(len, raws.values())) > MOST_BYTES:
        missing = f"the series is larger than {MOST_BYTES >> 20} MB"
        return RequestedPatch(message_id=mail.message_id, in_series=True, missing=missing)
    mails = {number: parse(raw) for number, raw in raws.items()}
    mails[place[1]] = mail
    total = place[2]
    patches = {number: patch_of(mails[number]) for number in range(1, total + 1) if number in mails}
    gaps = [number for number in range(1, total + 1) if number not in patches or not patches[number].text]
    first = mails[min(mails)]
    # `git format-patch --base --cover-letter` writes it in the cover letter. That must be as well proven as the parts:
    # only who wrote these answers for what runs.
    proven = {number for number, row in members.items() if row.trust == AuthVerdict.PASS}
    saying = [*sorted(patches), *((0,) if 0 in mails and (0 in proven or not proven) else ())]
    base = next((base for number in saying if (base := _base_in(_texts(mails[number])))), "")
    whole = RequestedPatch(
        message_id=first.message_id,
        title=posted_title(first.subject),
        base=base,
        parts=tuple(mails[number].message_id for number in sorted(patches)),
        in_series=True,
    )
    if gaps:
        return replace(whole, missing=f"part {gaps[0]} of {total} is not here")
    return replace(whole, text="".join(patches[number].text for number in sorted(patches)))


def prefixes(patch: RequestedPatch) -> Iterator[tuple[str, str]]:
    """Yield the name of each part of a series, "part 2 of 3", and the text up to its end."""
    for number in range(1, len(patch.parts) + 1):
        yield f"part {number} of {len(patch.parts)}", text_of(patch.parts[:number])


def _place(subject: str) -> tuple[int, int, int] | None:
    """Return version, number and total of a mail of a series; None for any other, and for an answer to one."""
    match = _PLACE.search(subject)
    if match is None or is_answer(subject) or int(match[2]) > MOST_PARTS or int(match[1]) > int(match[2]):
        return None
    return version_of(subject), int(match[1]), int(match[2])


def _members(mail: ParsedMail, place: tuple[int, int, int]) -> dict[int, Message]:
    """Return the stored mails of a series by number: of the same writer, version and total, in the same thread.

    Where there are two of a number, one that is signed, else the one that was sent nearest to the given mail.
    """
    version, _, total = place
    own = Message.objects.filter(author_email__iexact=mail.author.email).order_by("pk")
    own = own.only("message_id", "in_reply_to", "subject", "sent_at", "trust")
    thread = {mail.message_id, *mail.in_reply_to[:1]}
    members: dict[str, tuple[int, Message]] = {}
    for _ in range(_MOST_STEPS):
        answers = own.filter(Q(message_id__in=thread) | Q(in_reply_to__in=thread))[: 2 * MOST_PARTS]
        places = [(_place(row.subject), row) for row in answers if row.message_id not in members]
        parts = [(at[1], row) for at, row in places if at and (at[0], at[2]) == (version, total)]
        if not parts:
            break
        members |= {row.message_id: (number, row) for number, row in parts}
        thread = {name for _, row in parts for name in (row.message_id, row.in_reply_to) if name}
    sent = mail.date or _LONG_AGO

    def likeliest(member: tuple[int, Message]) -> tuple[bool, timedelta, int]:
        row = member[1]
        return row.trust != AuthVerdict.PASS, abs((row.sent_at or _LONG_AGO) - sent), row.pk

    numbered: dict[int, int] = {}
    for number, row in sorted(members.values(), key=likeliest):
        numbered.setdefault(number, row.pk)
    rows = Message.objects.select_related("source").defer("tables", "own_text").in_bulk(numbered.values())
    return {number: rows[pk] for number, pk in numbered.items()}


# --- What "this patch" may be ---

_BASE = re.compile(r"^base-commit: ([0-9a-f]{40})\s*$", re.M)


def _candidates(mail: ParsedMail, culprit: str) -> Iterator[RequestedPatch]:
    """Yield what a mail may mean by "this patch", the likeliest first."""
    if own := series_of(mail):
        yield own
    yield patch_of(mail)
    yield from _named_in(own_text(mail.text), culprit, stored_only=True)
    for parent in mail.in_reply_to[:1]:
        yield stored_patch(parent)
    yield from _named_in(own_text(mail.text), culprit)


def _named_in(text: str, culprit: str, *, stored_only: bool = False) -> Iterator[RequestedPatch]:
    """Yield the patches that are linked, and the branch or commit that is named."""
    links = [link.message_id for link in find_links(text) if link.message_id and is_message_id(link.message_id)]
    yield from map(stored_patch, links)
    if branch := ref_in(text, culprit):
        yield RequestedPatch(branch=branch)
    if not stored_only:
        stored = set(Message.objects.filter(message_id__in=links).values_list("message_id", flat=True))
        yield from (RequestedPatch(message_id=name) for name in links if name not in stored)


def _texts(mail: ParsedMail) -> list[str]:
    attached = sorted((attachment.text for attachment in mail.attachments), key=_attached_number)
    return [above_older_mail(mail.text), *attached]


def _attached_number(text: str) -> int:
    """Return which part of a series an attached patch says it is; 0 if it says nothing."""
    subject = SUBJECT_LINE.search(text[:_HEAD])
    place = _place(" ".join(subject[1].split())) if subject else None
    return place[1] if place else 0


def _base_in(texts: Iterable[str]) -> str:
    return next((match[1] for text in texts if (match := _BASE.search(text))), "")


def _stored(message_id: str) -> ParsedMail | None:
    row = Message.objects.filter(message_id=message_id).select_related("source").defer("tables", "own_text").first()
    return parse(row.source.raw) if row else None
