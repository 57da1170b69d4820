"""Own text: what the writer of a reply wrote himself, without quotes, attributions and signature."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.replies.languages import FROM, OLDER_MAIL, ON, SENT, TO, WROTE, any_of

_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u00ad\u180e]")
_QUOTE = re.compile(r"\s{0,3}(?:>|\|(?=\s))|[A-Z][A-Za-z]{0,3}>")
# "On Mon, …, Lee Park wrote:" in one to three lines, or an address or a time of day; the colon ends it.
_ATTRIBUTION_END = re.compile(
    rf"(?:{any_of(WROTE)}|<[^<>\s]{{1,200}}@[^<>\s]{{1,200}}>|\d{{1,2}}:\d\d).{{0,120}}[:：]\s*\Z"
)
_ATTRIBUTION_START = re.compile(rf"{any_of(ON)}\s.{{4,}}|\S.{{0,120}}<[^\s<>]+@[^\s<>]+>|.{{0,40}}\d{{4}}")
_OLDER_MAIL = re.compile(
    rf"[\s*]{{0,4}}(?:-{{2,}}\s?{any_of(OLDER_MAIL)}(?: from .{{0,200}}?)?\s?-{{2,}}|Begin forwarded message:)"
    r"|_{32,}\Z",
    re.I,
)
# The header block above the mail that is answered, as Outlook writes it.
_FIRST_OF_BLOCK = re.compile(rf"[\s*]{{0,4}}{any_of(FROM)}\s?\*?[:：]")
_IN_BLOCK = re.compile(rf"[\s*]{{0,4}}(?:(?P<sent>{any_of(SENT)})|(?P<to>{any_of(TO)}))\s?\*?[:：]")
_LIST_FOOTER = re.compile(r"_{40,}\s*\Z")
_SIGNATURE = re.compile(r"--\s?\Z|-----BEGIN PGP SIGNATURE-----")
_PGP_HEAD = re.compile(r"-----BEGIN PGP SIGNED MESSAGE-----|Hash: [A-Z0-9, -]{3,40}\Z")
_BEGINNINGS = frozenset("-_*Bb \t")  # of a line that sets off an older mail; a head of one has a colon
MAX_LINE = 20_000


@dataclass(frozen=True, slots=True)
class Line:
    """A line that the writer did not quote, and the quoted line that it stands right below, "" for none."""

    text: str
    below: str = ""


def clean(text: str) -> str:
    """Text without invisible characters, and with no-break spaces as spaces."""
    return text if text.isascii() else _INVISIBLE.sub("", text).replace("\u00a0", " ")


def unquoted_lines(text: str) -> list[str]:
    """The lines that the writer did not quote, those of his signature included, overlong ones cut."""
    return [line.text for line in lines_in_context(text)]


def lines_in_context(text: str) -> list[Line]:
    """The same, each with the words that it answers: a short answer means little without them."""
    lines = [line[:MAX_LINE] for line in clean(text).split("\n")]
    keep: list[Line] = []
    in_quote, quoted = False, ""
    for number, line in enumerate(lines):
        if _starts_older_mail(lines, number):
            break
        if mark := _QUOTE.match(line):
            if not in_quote:  # once a quote: what stands above it may announce it
                _drop_attribution(keep)
            in_quote = True
            quoted = line[mark.end() :].lstrip("> ").strip() or quoted
        else:
            in_quote = in_quote and not line.strip()
            keep.append(Line(line.rstrip(), quoted))
            quoted = "" if line.strip() else quoted
    return keep


def own_text(text: str) -> str:
    """What the writer says: unquoted, above his signature and above the footer of a list."""
    return own_of(unquoted_lines(text))


def own_of(unquoted: Sequence[str]) -> str:
    """The same, of lines that are known to be unquoted."""
    lines = list(unquoted)
    for number, line in enumerate(lines):
        if (_SIGNATURE.match(line) and not _patch_trailer(lines, number)) or _LIST_FOOTER.match(line):
            lines = lines[:number]
            break
    if lines and _PGP_HEAD.match(lines[0].strip()):
        lines = [line for line in lines if not _PGP_HEAD.match(line.strip())]
    return "\n".join(lines).strip("\n")


def holds_older_mail(text: str) -> bool:
    """Whether an older mail begins in a text that no quote marks set off: all below it is quoted."""
    lines = text.split("\n")
    return any(_starts_older_mail(lines, number) for number in range(len(lines)))


def _starts_older_mail(lines: list[str], number: int) -> bool:
    line = lines[number]
    if line[:1] not in _BEGINNINGS and ":" not in line and "：" not in line:
        return False  # most lines: asked of each of them, patterns are slow
    if _OLDER_MAIL.match(line.strip()):
        return not _LIST_FOOTER.match(line.strip()) or _is_outlook(lines, number + 1)
    return _is_outlook(lines, number)


def _is_outlook(lines: list[str], number: int) -> bool:
    """A block of From, Sent and To. The head of a patch has From, Date and Subject, but is to nobody."""
    if number >= len(lines) or not _FIRST_OF_BLOCK.match(lines[number]):
        return False
    block = [found for line in lines[number + 1 : number + 6] if (found := _IN_BLOCK.match(line))]
    return any(found["sent"] for found in block) and any(found["to"] for found in block)


def _drop_attribution(keep: list[Line]) -> None:
    """Take "On …, somebody wrote:" off the end of what is kept, where a quote follows."""
    last = len(keep)
    while last > max(0, len(keep) - 4) and not keep[last - 1].text.strip():
        last -= 1
    if not last or not _ATTRIBUTION_END.search(keep[last - 1].text[-300:]):
        return
    for start in range(last - 1, max(-1, last - 4), -1):
        if _ATTRIBUTION_START.match(keep[start].text.strip()[:300]):
            del keep[start:]
            return


def _patch_trailer(lines: list[str], number: int) -> bool:
    """Whether "-- " is the end of a patch as git writes it: a version number stands below."""
    below = lines[number + 1].strip() if number + 1 < len(lines) else ""
    return bool(re.match(r"\d+\.\d+", below)) and any(line.startswith("@@ ") for line in lines[:number])
