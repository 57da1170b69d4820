"""The patterns that the prefilter looks for, all found in one pass over the bytes of a mail.

Hyperscan reads some gigabytes per second, whatever the number of patterns; `bytes.find` does so for one.
"""

from __future__ import annotations

import re

import hyperscan

from bot.mail.identity import BotIdentity

# What may occur in a mail, as plain numbers, since they are looked up a million times. The first five are header
# fields, which occur in bodies, too: the position tells which it is.
FROM, SUBJECT, MESSAGE_ID, IN_REPLY_TO, REFERENCES = range(5)
HEAD_END = 5  # the first empty line
BASE64 = 6
QUOTED_PRINTABLE = 7
DELSP = 8  # RFC 3676: lines are joined without their final space
HTML = 9
OWN = 10  # our own address, with or without a tag
PAGE = 11  # the page of a report
LINK = 12  # a link to an archive, up to its path
FIXES = 13
ROBOT = 14
REPORTED = 15
NOTICED = 16  # from the opening sentence of a report, quoted or not
COMMAND = 17

_FIELDS = {
    FROM: b"from:",
    SUBJECT: b"subject:",
    MESSAGE_ID: b"message-id:",
    IN_REPLY_TO: b"in-reply-to:",
    REFERENCES: b"references:",
}
_EACH = hyperscan.HS_FLAG_CASELESS
_ONCE = hyperscan.HS_FLAG_CASELESS | hyperscan.HS_FLAG_SINGLEMATCH
Found = dict[int, list[int]]  # pattern → the offset of the end of each match


class Patterns:
    """The patterns for one bot identity, compiled once. Each is little more than a fixed string, which is fastest."""

    def __init__(self, identity: BotIdentity) -> None:
        local, _, domain = identity.address.partition("@")
        patterns: list[tuple[int, bytes, int]] = [
            *((sign, rb"\n" + name, _EACH) for sign, name in _FIELDS.items()),
            (HEAD_END, rb"\n\r?\n", hyperscan.HS_FLAG_SINGLEMATCH),
            (BASE64, rb"base64", _ONCE),
            (QUOTED_PRINTABLE, rb"quoted-printable", _ONCE),
            (DELSP, rb"delsp", _ONCE),
            (HTML, rb"text/html", _ONCE),
            (OWN, rb"%s[+@]" % _quoted(local), _EACH),
            (PAGE, rb"%s/report/" % _quoted(identity.base_url.partition("://")[2]), _ONCE),
            (LINK, rb"kernel\.org/", _EACH),
            (LINK, rb"msgid\.link/", _EACH),
            (FIXES, rb"fixes:", _EACH),
            *((ROBOT, _quoted(robot), _EACH) for robot in sorted(identity.robots)),
            (REPORTED, rb"reported-by:", _ONCE),
            (NOTICED, rb"noticed a", _EACH),
            *((COMMAND, rb"\n" + _quoted(word), _ONCE) for word in {identity.prefix, "#regzbot", "#syz"}),
        ]
        self._own = re.compile(
            rb"(?:[0-9a-f]{4,64}(?:\.[0-9a-f]{1,64})?)?@?" + re.escape(domain.encode()) + rb"\b", re.I
        )
        self._database = hyperscan.Database()
        self._database.compile(
            expressions=[pattern for _, pattern, _ in patterns],
            ids=[sign for sign, _, _ in patterns],
            flags=[flags for _, _, flags in patterns],
            elements=len(patterns),
        )

    def of(self, raw: bytes) -> Found:
        """Return all matches in a mail, by pattern."""
        found: Found = {}
        self._database.scan(raw, match_event_handler=_note, context=found)
        start = raw[:12].lower()
        for sign, name in _FIELDS.items():  # a field on the first line
            if start.startswith(name):
                found.setdefault(sign, []).insert(0, len(name))
        # "perfbot@" at another domain is not ours.
        if OWN in found and not any(self._own.match(raw, end) for end in found[OWN]):
            del found[OWN]
        return found


def _note(number: int, start: int, end: int, flags: int, found: object) -> None:
    assert isinstance(found, dict)
    found.setdefault(number, []).append(end)


def _quoted(text: str) -> bytes:
    """Return a text as a pattern: each byte by its number, so that none is special."""
    return b"".join(b"\\x%02x" % byte for byte in text.encode())
