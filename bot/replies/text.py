"""Own text: what the writer of a reply wrote himself, without quotes, attributions and signature."""

from __future__ import annotations

import re

_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"), None)
_QUOTE = re.compile(r"\s{0,3}(?:>|\|(?=\s))|[A-Z][A-Za-z]{0,3}>")
# "On Mon, …, Lee Park wrote:" in one to three lines, in a few languages; the colon ends it.
_ATTRIBUTION_END = re.compile(r"(?:wrote|writes|said|schrieb|a écrit|escribió|写道)\b.{0,60}[:：]\s*\Z|写道[:：]\s*\Z")
_ATTRIBUTION_START = re.compile(r"(?:On|Am|Le|El|At|Il|在)\s.{4,}|\S.{0,80}<[^\s<>]+@[^\s<>]+>")
_OLDER_MAIL = re.compile(
    r"-{2,}\s?(?:Original Message|Forwarded message|Ursprüngliche Nachricht|Message d'origine|原始邮件)\s?-{2,}"
    r"|_{32,}\Z",
    re.I,
)
_OUTLOOK = ("From:", "Von:", "De :", "发件人:")
_OUTLOOK_NEXT = ("Sent:", "Date:", "Gesendet:", "To:", "Subject:", "Envoyé", "发送时间:")
_LIST_FOOTER = re.compile(r"_{40,}\s*\Z")
_SIGNATURE = re.compile(r"--\s?\Z")
MAX_LINE = 20_000


def clean(text: str) -> str:
    """Text without invisible characters, and with no-break spaces as spaces."""
    return text.translate(_INVISIBLE).replace("\u00a0", " ")


def unquoted_lines(text: str) -> list[str]:
    """The lines that the writer did not quote, those of his signature included, overlong ones cut."""
    lines = [line[:MAX_LINE] for line in clean(text).split("\n")]
    keep: list[str] = []
    for number, line in enumerate(lines):
        if _starts_older_mail(lines, number):
            break
        if not _QUOTE.match(line):
            keep.append(line.rstrip())
        elif keep:
            _drop_attribution(keep)
    return keep


def own_text(text: str) -> str:
    """What the writer says: unquoted, above his signature and above the footer of a list."""
    lines = unquoted_lines(text)
    for number, line in enumerate(lines):
        if (_SIGNATURE.match(line) and not _patch_trailer(lines, number)) or _LIST_FOOTER.match(line):
            lines = lines[:number]
            break
    return "\n".join(lines).strip("\n")


def _starts_older_mail(lines: list[str], number: int) -> bool:
    line = lines[number].strip()
    if _OLDER_MAIL.match(line):
        return not _LIST_FOOTER.match(line) or _is_outlook(lines, number + 1)
    return _is_outlook(lines, number)


def _is_outlook(lines: list[str], number: int) -> bool:
    """The header block that Outlook puts above the mail it answers: From, Sent, To, Subject."""
    if number >= len(lines) or not lines[number].startswith(_OUTLOOK):
        return False
    return sum(line.strip().startswith(_OUTLOOK_NEXT) for line in lines[number + 1 : number + 6]) >= 2


def _drop_attribution(keep: list[str]) -> None:
    """Take "On …, somebody wrote:" off the end of what is kept, where a quote follows."""
    last = len(keep)
    while last and not keep[last - 1].strip():
        last -= 1
    if not last or not _ATTRIBUTION_END.search(keep[last - 1]):
        return
    for start in range(last - 1, max(-1, last - 4), -1):
        if _ATTRIBUTION_START.match(keep[start].strip()):
            del keep[start:]
            return


def _patch_trailer(lines: list[str], number: int) -> bool:
    """Whether "-- " is the end of a patch as git writes it: a version number stands below."""
    below = lines[number + 1].strip() if number + 1 < len(lines) else ""
    return bool(re.match(r"\d+\.\d+", below)) and any(line.startswith("@@ ") for line in lines[:number])
