"""Stage one, the prefilter: does a raw mail concern us? It looks at bytes only. Pure.

It misses nothing relevant; an irrelevant mail that passes costs a parse. All patterns are found in one pass: Hyperscan
reads some gigabytes per second, whatever the number of patterns; `bytes.find` does so for one. Transfer encodings (RFC
2045, RFC 3676) are decoded for searching only, without splitting the body: what separates the parts stays in it.

What a mail names is looked up among the *tracked* keys. `KeySet` holds a million in 25 MB, and the dozen lookups per
mail cost the same for any number of keys: a byte table alone answers nearly all of them, and a key that it can't rule
out is looked up exactly, by 64-bit hash.

`passes` does it all for one mail. For an archive with a name index it is split in two: `look` returns what is in the
bytes, whatever is tracked, and may run in another process; `decide` compares that with what is tracked now.
"""

import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice

import hyperscan
import numpy as np

from bot.mail import patches
from bot.mail.headers import decode, message_ids, to_text
from bot.mail.limits import MAX_SHORT, bounded
from bot.mail.patches import MAX_SUBJECT, find_links
from bot.mail.quoting import ANSWER, clean
from bot.mail.settings import BotSettings
from bot.replies.person_report import FORWARDED, SUBJECT_WORDS
from bot.replies.reading import ANSWERED_REPORT, QUOTED_COMMIT, QUOTED_SUBJECT, REPORT_SUBJECT
from bot.robot_reports.report import Recogniser

# --- Patterns ---

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
REVERTED_COMMIT = 18
REVERTED_TITLE = 19
SLOWER = 20  # "performance regression" and the like
REVERT_IT = 21  # a commit that was named before

_FIELDS = {
    FROM: b"from:",
    SUBJECT: b"subject:",
    MESSAGE_ID: b"message-id:",
    IN_REPLY_TO: b"in-reply-to:",
    REFERENCES: b"references:",
}
# Quotation marks of any kind, in UTF-8 and in windows-1252
_QUOTES = rb"(?:[\"'`\x82\x84\x8b\x91-\x94\x9b\xab\xbb]|\xe2\x80[\x98-\x9f\xb9\xba]|\xc2[\xab\xbb]|\xe3\x80[\x8c-\x8f])"
_NO_UTF8 = re.compile("[\udc80-\udcff]")
_BLANK = rb"(?:\s|\xc2\xa0|\xa0)"
_EACH = hyperscan.HS_FLAG_CASELESS
_ONCE = hyperscan.HS_FLAG_CASELESS | hyperscan.HS_FLAG_SINGLEMATCH
Found = dict[int, list[int]]  # pattern → the offset of the end of each match


class Patterns:
    """The patterns for one bot identity, compiled once. Each is little more than a fixed string, which is fastest."""

    def __init__(self, settings: BotSettings) -> None:
        local, _, domain = settings.address.partition("@")
        patterns: list[tuple[int, bytes, int]] = [
            *((sign, rb"\n" + name, _EACH) for sign, name in _FIELDS.items()),
            (HEAD_END, rb"\n\r?\n", hyperscan.HS_FLAG_SINGLEMATCH),
            (BASE64, rb"base64", _ONCE),
            (QUOTED_PRINTABLE, rb"quoted-printable", _ONCE),
            (DELSP, rb"delsp", _ONCE),
            (HTML, rb"text/html", _ONCE),
            (OWN, rb"%s[+@]" % _quoted(local), _EACH),
            (PAGE, rb"%s/report/" % _quoted(settings.base_url.partition("://")[2]), _ONCE),
            (LINK, rb"kernel\.org/", _EACH),
            (LINK, rb"msgid\.link/", _EACH),
            (FIXES, rb"fixes:", _EACH),
            (REVERTED_COMMIT, rb"(?:revert(?:s|ing)?|undo(?:es)?|backs? out):?" + _BLANK, _EACH),
            (REVERTED_TITLE, rb"(?:reverts?|back out):?\s{1,9}" + _QUOTES, _EACH),
            (REVERT_IT, rb"revert (?:it|that commit|this commit)", _ONCE),
            *((ROBOT, _quoted(robot), _EACH) for robot in sorted(settings.robots)),
            (REPORTED, rb"reported-by:", _ONCE),
            (NOTICED, rb"noticed a", _EACH),
            (SLOWER, rb"performance (?:regress|degrad|drop)", _ONCE),
            *((COMMAND, rb"\n" + _quoted(word), _ONCE) for word in {settings.prefix, "#regzbot", "#syz"}),
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
        matches: Found = {}
        self._database.scan(raw, match_event_handler=_note, context=matches)
        start = raw[:12].lower()
        for sign, name in _FIELDS.items():  # a field on the first line
            if start.startswith(name):
                matches.setdefault(sign, []).insert(0, len(name))
        # "perfbot@" at another domain is not ours.
        if OWN in matches and not any(self._own.match(raw, end) for end in matches[OWN]):
            del matches[OWN]
        return matches


def _note(number: int, start: int, end: int, flags: int, matches: object) -> None:
    assert isinstance(matches, dict)
    matches.setdefault(number, []).append(end)


def _quoted(text: str) -> bytes:
    """Return a text as a pattern: each byte by its number, so that none is special."""
    return b"".join(b"\\x%02x" % byte for byte in text.encode())


# --- Key set ---

_MIN_SLOTS = 1 << 16  # slots
_SLOTS_PER_KEY = 16  # slots per key: one in sixteen unknown keys is looked up in vain
_MAX_UNSORTED = 4096  # new keys that are held unsorted


class KeySet:
    """Holds hashes only: keys can't be listed. Keys with the same hash count as one, which costs a parse at worst."""

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        self._sorted = np.empty(0, np.int64)
        self._unsorted: set[int] = set()
        self._slots = bytearray(_MIN_SLOTS)
        self._mask = _MIN_SLOTS - 1
        self.update(keys)

    def __contains__(self, key: bytes) -> bool:
        return self.holds_any((key,))

    def holds_any(self, keys: Iterable[bytes]) -> bool:
        """Whether any of the keys is in the set."""
        slots, mask = self._slots, self._mask
        for key in keys:
            number = hash(key)
            if not slots[number & mask]:
                continue
            if number in self._unsorted:
                return True
            index = int(np.searchsorted(self._sorted, number))
            if index < len(self._sorted) and int(self._sorted[index]) == number:
                return True
        return False

    def add(self, key: bytes) -> None:
        number = hash(key)
        self._unsorted.add(number)
        self._slots[number & self._mask] = 1
        if len(self._unsorted) > _MAX_UNSORTED:
            self._sort_in(np.fromiter(self._unsorted, np.int64, len(self._unsorted)))
            self._unsorted.clear()

    def update(self, keys: Iterable[bytes]) -> None:
        """Add many at once; they are hashed as they come, and not held in memory."""
        self._sort_in(np.fromiter(map(hash, keys), np.int64))

    def _sort_in(self, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        if len(numbers):
            self._sorted = np.union1d(self._sorted, numbers)
        size = max(_MIN_SLOTS, 1 << max(0, len(self._sorted) * _SLOTS_PER_KEY - 1).bit_length())
        if size != len(self._slots):
            self._mask = size - 1
            self._slots = bytearray(size)
            numbers = self._sorted
            for number in self._unsorted:
                self._slots[number & self._mask] = 1
        np.frombuffer(self._slots, np.uint8)[numbers & self._mask] = 1


# --- Transfer encodings ---

_UTF16 = ("utf-16-le", "utf-16-be")
_BASE64 = re.compile(rb"(?:^[ \t]*[A-Za-z0-9+/]+={0,2}[ \t]*(?:\n|\Z))+", re.M)


def decode_body(body: bytes, *, quoted: bool, base64: bool, delsp: bool) -> bytes:
    """Return the body, followed by its decoded forms. `delsp`: flowed lines are joined without a space."""
    clear = body
    if quoted:
        clear += b"\n" + binascii.a2b_qp(body)
    if base64:
        clear += b"".join(map(_decoded, _BASE64.findall(body)))
    if b"\0" in clear:  # UTF-16, or UTF-32
        clear = clear.replace(b"\0", b"")
    if delsp:
        clear += b"\n" + clear.replace(b" \n", b"")
    return clear


def _decoded(block: bytes) -> bytes:
    letters = b"".join(block.split()).replace(b"=", b"")
    letters = letters[:-1] if len(letters) % 4 == 1 else letters
    raw = binascii.a2b_base64(letters + b"=" * (-len(letters) % 4))
    if b"\0" in raw:  # UTF-16: one of the two byte orders is right
        raw += b"".join(b"\n" + raw.decode(name, "ignore").encode("utf-8", "ignore") for name in _UTF16)
    return b"\n" + raw


# --- The prefilter ---

_ID = re.compile(rb"<([^<>]{1,4000})>")
_BARE_ID = re.compile(rb"[^\s<>,;\"]{1,400}@[^\s<>,;\"]{1,400}")
# Encoded, a link, or as marc.info shows it (headers.py)
_ODD_IDS = (b"=?", b"://", b" () ", b"%40", b"id:", b"mailto:", b"news:", b"&lt;", b" at ", b"(a)", b"(at)")
_CONTINUES = (b" ", b"\t")
_BLANKS = b" \t\n\r\v\f"
_SHA = re.compile(
    rb"(?:\s|\xc2\xa0|\xa0){0,20}(?:commit )?(?:<?https?://\S{5,200}?[/=](?=[0-9a-f]{7,40}\b))?([0-9a-f]{7,40})", re.I
)
_COMMIT = re.compile(
    _BLANK + rb"{0,19}" + patches.REVERTS_OF.encode().replace(rb"\s", _BLANK) + rb"(?=[0-9a-f]{7,40}\b)", re.I
)
_REVERT = re.compile(rb"(?:Revert|Back out):? ", re.I)
_NAMED_COMMIT = re.compile(patches.NAMED_COMMIT.encode(), re.I)
_CHANGED = re.compile(rb"\d% (?:regression|improvement)")
_PERCENT = re.compile(rb"n?\s-?[\d.]{1,12}%")
_CLOSES = re.compile(rb"(?:closes|link):", re.I)
_ANSWER = re.compile(ANSWER.encode(), re.I)
_MARKS = re.compile(
    rb"\s*\[[^\]]{0,100}\]\s*|(?:partial(?:ly)? )?(?:Revert|Back out):? " + _QUOTES + b"?|" + ANSWER.encode(), re.I
)
_LAST_QUOTE = re.compile(_QUOTES + rb"\Z")
_REPORT_SUBJECT = re.compile(REPORT_SUBJECT.encode(), re.I)
_ANSWERED_REPORT = re.compile(ANSWERED_REPORT.encode(), re.I)
_QUOTED_COMMIT = re.compile(QUOTED_COMMIT.encode(), re.M | re.I)
_QUOTED_SUBJECT = re.compile(QUOTED_SUBJECT.encode(), re.M | re.I)
_POSTING = re.compile(rb"\s*\[(?!RFC\](?!\s*\[))[^\]]{0,60}\b(?:PATCH|RFC|PULL)\b", re.I)
_OPENING = re.compile(rb"^#\w[\w:]{0,20}\s{0,5}\^?(?:report|introduced|monitor)", re.I | re.M)
_SLOWER = re.compile(SUBJECT_WORDS.encode(), re.I)
_WRAPPED = (BASE64, QUOTED_PRINTABLE, DELSP)  # encodings that may hide words in a body
_HOSTS = (b"lore.kernel.org/", b"lkml.kernel.org/", b"msgid.link/")
_LONGEST_HOST = 20  # bytes
_SPACE = re.compile(rb"[ \t\n]")
_BEFORE, _AFTER = 40, 700  # bytes around the host of a link that hold all of it
_LONGEST_FIELD = 64_000  # bytes
_LINKS = 200
_TITLE = 500  # bytes that hold a title
_MENTIONS = 2000  # of commits that are reverted; the reader takes 200, in unquoted lines
_LONGEST = 500  # characters of a stored key
DIGITS = 7  # of a sha: the fewest in a Fixes: trailer


class Passes(Enum):
    """The result of stage one for a mail."""

    NOT = 0  # it is ignored
    TRACKED = 1  # it names a tracked mail, or us
    NAMED = 2  # it names a culprit
    REPORT = 3  # it looks like a robot's report
    MAYBE = 4  # it may be about a report, perhaps one that we don't have yet
    PERSON = 5  # a person may report a regression in it


@dataclass(frozen=True, slots=True)
class Look:
    """What stage one sees in the bytes of a mail, whatever is tracked.

    `names`: all that may make it relevant: the mails it answers and links to, the culprit whose report it answers, the
    commits it says it fixes, and the title it reverts. `own`: its Message-ID; hostile mail may have several. `ours`:
    whether it names us.
    """

    names: list[bytes]
    own: list[bytes]
    ours: bool
    may_be_report: bool
    may_be_persons: bool


class Prefilter:
    """The prefilter: built once for the tracked keys, which may grow, and asked about every mail."""

    def __init__(self, tracked: Iterable[bytes], settings: BotSettings, awaited: Iterable[bytes] = ()) -> None:
        """`tracked`: keys, as `key_of_message`, `key_of_commit` and `key_of_title` return them; `awaited`: the keys of
        mails that are stored but not filed yet.
        """
        self.tracked = KeySet(tracked)
        self.awaited = KeySet(awaited)
        self._signs = Patterns(settings)
        self._reports = Recogniser(settings.robots)

    def passes(self, raw: bytes) -> Passes:
        """Return whether the mail must be parsed, and why. Replies to a mail that passed will pass, too, since it may
        be filed only after they are checked. A mail that may be relevant but names nothing besides itself is not waited
        for unless it may be a person's report, so that the same mails are stored wherever a reading is interrupted.
        """
        raw, matches, end = self._scanned(raw)
        own = _ids(raw, matches, end, MESSAGE_ID)
        why = self._why(raw, matches, end, own)
        if why is not Passes.NOT and own:
            if why not in (Passes.MAYBE, Passes.PERSON):
                self.tracked.add(own[0])
            elif self.names(raw):
                self.awaited.add(own[0])
        return why

    def look(self, raw: bytes) -> Look:
        """Return what is in the bytes of a mail, for an archive with an index, where nothing waits; see `decide`."""
        raw, matches, end = self._scanned(raw)
        body, in_body = raw, matches
        if b"\0" in raw or not matches.keys().isdisjoint(_WRAPPED):
            body = self._decoded_body(raw, matches, end)
            in_body = self._signs.of(body)
        answered, subject = _ids(raw, matches, end, IN_REPLY_TO, REFERENCES), _subject(raw, matches, end)
        names = [*answered]
        for offset in in_body.get(LINK, ())[:_LINKS]:
            names += _linked(body, offset)
        names += _fixed(body, in_body)
        names += _answered_culprit(subject, answered, body)
        if _REVERT.search(subject) and not _ANSWER.match(subject):
            names.append(key_of_title(subject))
        ours = OWN in matches or OWN in in_body or PAGE in in_body
        may_be_report = self._may_be_report(raw, matches, end)
        may_be_persons = _may_be_persons(subject, answered, in_body, body)
        return Look(names, _ids(raw, matches, end, MESSAGE_ID), ours, may_be_report, may_be_persons)

    def decide(self, look: Look) -> Passes:
        """Return what `passes` does, by what is tracked now."""
        if look.ours or self.tracked.holds_any(look.names) or self.tracked.holds_any(look.own):
            why = Passes.TRACKED
        else:
            why = Passes.REPORT if look.may_be_report else Passes.PERSON if look.may_be_persons else Passes.NOT
        if why not in (Passes.NOT, Passes.PERSON) and look.own:
            self.tracked.add(look.own[0])
        return why

    def _may_be_report(self, raw: bytes, matches: Found, end: int) -> bool:
        if ROBOT not in matches or matches[ROBOT][0] >= end:
            return False
        return self._reports.may_be_report(b"".join(_values(raw, matches, FROM, end)), raw)

    def _scanned(self, raw: bytes) -> tuple[bytes, Found, int]:
        """Return the mail with LF line ends, the patterns in it, and where its header ends."""
        # A CR alone is a line end, too, to mail programs.
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in raw else raw
        matches = self._signs.of(raw)
        return raw, matches, matches[HEAD_END][0] if HEAD_END in matches else len(raw)

    def names(self, raw: bytes) -> dict[str, bool]:
        """Return the keys that a mail names, and whether each is its own id: the mails it answers and links to, the
        commits it says it fixes, the title it reverts. {} if it names only itself, and is not a person's report.
        """
        raw, matches, end = self._scanned(raw)
        own = _ids(raw, matches, end, MESSAGE_ID)
        body = self._decoded_body(raw, matches, end)
        links = find_links(body.decode("utf-8", "replace"))
        answered = _ids(raw, matches, end, IN_REPLY_TO, REFERENCES)
        keys = [*own, *answered, *(key_of_message(link.message_id) for link in links)]
        keys += _fixed(body, self._signs.of(body))
        subject = _subject(raw, matches, end)
        keys += _answered_culprit(subject, answered, body)
        keys += [key_of_title(subject)] if _REVERT.search(subject) else []
        named = {key.decode("utf-8", "replace"): key in own[:1] for key in keys}
        named = {key: is_own for key, is_own in named.items() if len(key) <= _LONGEST and "\0" not in key}
        alone = not _may_be_persons(subject, answered, self._signs.of(body), body)
        return named if any(own[:1]) and len(named) > alone else {}

    def _why(self, raw: bytes, matches: Found, end: int, own: list[bytes]) -> Passes:
        answered = _ids(raw, matches, end, IN_REPLY_TO, REFERENCES)
        ids = [*own, *answered]
        if self.tracked.holds_any(ids) or OWN in matches:
            return Passes.TRACKED
        subject = _subject(raw, matches, end)
        if _REVERT.search(subject) and not _ANSWER.match(subject) and key_of_title(subject) in self.tracked:
            return Passes.NAMED
        suspicious = self.awaited.holds_any(ids) or (b"% " in subject and _CHANGED.search(subject) is not None)
        if ROBOT in matches and matches[ROBOT][0] < end:
            if self._may_be_report(raw, matches, end):
                return Passes.REPORT
            # A reply to something that a robot sent or received; but robots reply, too, to patches.
            answers = IN_REPLY_TO in matches and _ANSWER.match(subject) is not None
            sender = b"".join(_values(raw, matches, FROM, end))
            suspicious = suspicious or (answers and not self._reports.is_robot(sender))
        if HTML in matches and b"text/plain" not in raw:  # it may contain words that its bytes do not show
            return Passes.REPORT if suspicious else Passes.NAMED
        body, in_body = raw, matches
        if b"\0" in raw or not matches.keys().isdisjoint(_WRAPPED):
            body = self._decoded_body(raw, matches, end)
            in_body = self._signs.of(body)
        culprits = _answered_culprit(subject, answered, body)
        if self.tracked.holds_any(culprits):
            return Passes.NAMED
        why = self._of_body(body, in_body, suspicious or bool(culprits))
        if why in (Passes.NOT, Passes.MAYBE) and _may_be_persons(subject, answered, in_body, body):
            return Passes.PERSON
        return why

    def _decoded_body(self, raw: bytes, matches: Found, end: int) -> bytes:
        quoted, base64 = QUOTED_PRINTABLE in matches, BASE64 in matches
        return decode_body(b"\n" + raw[end:], quoted=quoted, base64=base64, delsp=DELSP in matches)

    def _of_body(self, body: bytes, matches: Found, suspicious: bool) -> Passes:
        """Return the result for a decoded body."""
        if OWN in matches or PAGE in matches:
            return Passes.TRACKED
        for end in matches.get(LINK, ())[:_LINKS]:
            if self.tracked.holds_any(_linked(body, end)):
                return Passes.TRACKED
        if self.tracked.holds_any(_fixed(body, matches)):
            return Passes.NAMED
        if suspicious or (REPORTED in matches and ROBOT in matches and _closes_something(body, matches)):
            return Passes.MAYBE
        if any(_PERCENT.match(body, end) for end in matches.get(NOTICED, ())):
            return Passes.MAYBE
        return Passes.MAYBE if COMMAND in matches else Passes.NOT


def _may_be_persons(subject: bytes, answered: list[bytes], matches: Found, body: bytes) -> bool:
    """Whether a person may report a regression in a mail: one that answers nothing, and is not a patch."""
    subject = FORWARDED.sub("", subject.decode(errors="replace"), count=1).encode()
    if answered or _POSTING.match(subject) or _ANSWER.match(subject):
        return False
    commanded = COMMAND in matches and _OPENING.search(body) is not None
    return SLOWER in matches or commanded or _SLOWER.search(subject) is not None


def _answered_culprit(subject: bytes, answered: list[bytes], body: bytes) -> list[bytes]:
    """Return the key of the culprit whose report a mail answers, by its subject or, without ids, by what it quotes."""
    if not _ANSWERED_REPORT.match(subject):
        return []
    by_subject = _REPORT_SUBJECT.search(subject) if b"%" in subject or b" -> " in subject else None
    named = by_subject
    if not named and not answered and _ANSWER.match(subject):
        named = _QUOTED_SUBJECT.search(body) or _QUOTED_COMMIT.search(body)
    return [key_of_commit(named[1])] if named else []


def key_of_message(message_id: str) -> bytes:
    return message_id.encode("utf-8", "surrogateescape")


def key_of_commit(sha: str | bytes) -> bytes:
    """Return the key of a culprit, by its first digits."""
    digits = sha.encode() if isinstance(sha, str) else sha
    return b"commit " + digits[:DIGITS].lower()


def key_of_title(subject: str | bytes) -> bytes:
    """Return the key of a culprit's title; the subject of its revert has the same."""
    title = (subject.encode("utf-8", "replace") if isinstance(subject, str) else subject)[:MAX_SUBJECT]
    while (marks := _MARKS.match(title)) and marks.end():
        title = title[marks.end() :]
    while quote := _LAST_QUOTE.search(title, max(0, len(title) - 3)):
        title = title[: quote.start()]
    return b"title " + title


def _values(raw: bytes, matches: Found, sign: int, end: int) -> list[bytes]:
    """Return the values of a header field, with the lines that continue them (RFC 5322 section 2.2.3)."""
    values = []
    for start in matches.get(sign, ()):
        if start >= end:
            break
        stop = raw.find(b"\n", start, end)
        while stop >= 0 and raw[stop + 1 : stop + 2] in _CONTINUES and stop + 1 < end:
            stop = raw.find(b"\n", stop + 1, end)
        values.append(raw[start : stop if stop >= 0 else end])
    return values


def _ids(raw: bytes, matches: Found, end: int, *signs: int) -> list[bytes]:
    """Return the Message-IDs in these header fields, each once, as `headers.message_ids` would. Hostile mail may have
    several of its own, of which the first counts.
    """
    ids: list[bytes] = []
    for sign in signs:
        for value in _values(raw, matches, sign, end):
            value = value[:_LONGEST_FIELD]
            lowered = value.lower()
            is_odd = any(mark in lowered for mark in _ODD_IDS)
            if b"@" not in value and not is_odd:
                continue
            if is_odd:
                ids += [name.encode() for name in message_ids(value.decode("utf-8", "surrogateescape"))]
                continue
            # An id may be folded in its middle.
            in_field = _ID.findall(value.translate(None, _BLANKS)) or _BARE_ID.findall(value)
            if not value.isascii():
                in_field = [to_text(name.decode("utf-8", "surrogateescape")).encode() for name in in_field]
            ids += map(bounded, in_field)
    return list(dict.fromkeys(ids))


def _subject(raw: bytes, matches: Found, end: int) -> bytes:
    return _on_one_line(b"".join(_values(raw, matches, SUBJECT, end)[:1]))


def _on_one_line(value: bytes) -> bytes:
    """Return the beginning of a header field, decoded."""
    value = value[:MAX_SHORT]
    if b"=?" in value or not value.isascii():
        return decode(value.decode("utf-8", "surrogateescape")).encode()
    return b" ".join(value.split())


def _fixed(body: bytes, matches: Found) -> list[bytes]:
    """Return the keys of the commits that a patch says it fixes or reverts, by sha and by title."""
    keys: list[bytes] = []
    for offset in matches.get(FIXES, ()):
        sha = _SHA.match(body, offset)
        if sha:
            keys.append(key_of_commit(sha[1]))
            keys += map(key_of_commit, patches.reverted_at(_text_at(body, sha.start(1))).commits[1:])
        if fixed := patches.title_after(_text_at(body, sha.end() if sha else offset)):
            keys.append(key_of_title(fixed))
    mentions = (commit for offset in matches.get(REVERTED_COMMIT, ()) if (commit := _COMMIT.match(body, offset)))
    for commit in islice(mentions, _MENTIONS):
        reverted = patches.reverted_at(_text_at(body, commit.end(), MAX_SUBJECT))
        keys += [*map(key_of_commit, reverted.commits), *map(key_of_title, reverted.titles)]
    if REVERT_IT in matches:
        keys += [key_of_commit(commit[1]) for commit in islice(_NAMED_COMMIT.finditer(body), _MENTIONS)]
    for offset in matches.get(REVERTED_TITLE, ()):
        if title := patches.REVERTED_TITLE.match(_text_at(body, offset)):
            keys.append(key_of_title(" ".join(title[1].split())))
    for value in _values(body, matches, SUBJECT, len(body)):  # of a patch in the body, too
        if _REVERT.search(subject := _on_one_line(value)):
            keys.append(key_of_title(subject))
    return keys


def _text_at(body: bytes, offset: int, most: int = _TITLE) -> str:
    raw = body[offset : offset + most]
    text = raw.decode("utf-8", "surrogateescape")
    if _NO_UTF8.search(text[:-3] if len(raw) == most else text):  # but for a character that is cut at the end
        return raw.decode("cp1252", "replace")
    return _NO_UTF8.sub("", text)


def _closes_something(body: bytes, matches: Found) -> bool:
    """Whether a trailer links to a mail that is not a build report; those have lists of their own (oe-kbuild-all)."""
    for offset in matches.get(LINK, ())[:_LINKS]:
        line = body.rfind(b"\n", 0, offset) + 1
        if _CLOSES.match(body, line) and b"kbuild" not in body[offset : offset + 60]:
            return True
    return False


def _linked(body: bytes, offset: int) -> Iterator[bytes]:
    """Return the keys of mails that a link leads to, parsed from a window around `offset`, the end of a host."""
    if not body[max(0, offset - _LONGEST_HOST) : offset].lower().endswith(_HOSTS):
        return iter(())  # git.kernel.org and the like
    end = _SPACE.search(body, offset, offset + _AFTER)
    window = body[max(0, offset - _BEFORE) : end.start() if end else offset + _AFTER]
    text = window.decode("utf-8", "replace").replace("\ufffd", " ")
    return (key_of_message(link.message_id) for link in find_links(clean(text)) if link.message_id)
