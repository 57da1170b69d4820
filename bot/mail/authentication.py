"""Who wrote a mail: DKIM, developer signatures and trusted servers, joined to one verdict.

Any proof that passes counts, for the headers that it covers. Without one the mail fails if a proof fails, or if the
domain is known to sign and the mail has no signature. Headers that parsers may read differently prove nothing.

DKIM (RFC 6376) is verified with keys that we already have, without asking DNS. Developer signatures
(X-Developer-Signature, as patatt makes them) are checked against a keyring of the installation: ed25519, and OpenPGP
where gpg is installed, which is started only for a writer whose key is there. Anyone can write
Authentication-Results (RFC 8601) into their own mail: it counts only above the Received line with which a trusted
server accepted the mail from outside; what is above was added later, by trusted servers.

A signature covers the bytes of the body. Read as HTML, as flowed text or from another encoding, the same bytes may
say something else: a quoted line becomes a line of the writer. Whoever resends a mail can change the Content- headers
that nobody signed, so such a body is read in the other ways, too.
"""

import hashlib
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email import message_from_bytes
from enum import StrEnum
from functools import cache
from typing import Any

import patatt

from bot.mail.addresses import parse_addresses
from bot.mail.headers import to_text
from bot.mail.limits import MAX_BLANKS, MAX_SHORT, MAX_VALUE
from bot.mail.message import MAX_BYTES, ParsedMail, one_line, parse, without_frame
from bot.mail.settings import TrustAnchors
from tracker.domain.text import is_a_list

# --- Trust ---

# The headers that decide how the body is read (RFC 2045): as text or as markup, and in which encoding.
BODY_HEADERS = frozenset({"content-type", "content-transfer-encoding", "mime-version"})


class AuthVerdict(StrEnum):
    """Verified; failed; or neither, as for most old mail."""

    PASS = "pass"
    FAIL = "fail"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Trust:
    """The verdict, and its basis: "dkim gmail.com".

    `signed`: the names of the headers that the proof covers, in lower case; None: all of them. Two mails with the same
    `digest`, of date and body, or with the same `signature` are copies of one mail.
    """

    verdict: AuthVerdict = AuthVerdict.NONE
    by: str = ""
    signed: frozenset[str] | None = None
    signature: str = ""
    digest: str = ""

    @property
    def proven(self) -> bool:
        return self.verdict is AuthVerdict.PASS

    def covers(self, *names: str) -> bool:
        """Whether the writer is proven, and so are these headers, even that one of them is missing."""
        return self.proven and (self.signed is None or self.signed.issuperset(names))

    @property
    def covers_body(self) -> bool:
        """Whether nobody else can have changed how the body is read."""
        return self.covers(*BODY_HEADERS)


UNPROVEN = Trust()


def joined(proofs: Iterable[Trust]) -> Trust:
    """Return what several proofs of one writer cover together, named after the first; UNPROVEN without any."""
    every = [proof for proof in proofs if proof.proven]
    if not every:
        return UNPROVEN
    signed = [proof.signed for proof in every if proof.signed is not None]
    whole = len(signed) < len(every)
    signature = next((proof.signature for proof in every if proof.signature), "")
    return replace(every[0], signed=None if whole else frozenset().union(*signed), signature=signature)


# --- dkimpy ---


class _Clock:
    """The clock of dkimpy, which calls `time.time()` to see whether a signature has expired: the time of the mail,
    since archives hold signatures that were valid when they were made.
    """

    at: ContextVar[float | None] = ContextVar("at", default=None)

    def time(self) -> float:
        at = self.at.get()
        return time.time() if at is None else at  # 0: a mail without a date


_LONGEST_KEY = 1_000  # characters of a key's record: RSA of 4,096 bits; with 26,000, one signature takes 35 s
CLOCK = _Clock()


@cache
def dkimpy() -> Any:
    """dkimpy, with a clock of ours. It imports a resolver, which we never ask and which takes 70 ms: a tenth of the
    start of a command, and most verify nothing.
    """
    import dkim

    dkim.time = CLOCK
    return dkim


def verify(raw: bytes, number: int, record: str, at: float) -> bool:
    """Return whether the signature of this number was valid with this key at this time (seconds since 1970)."""
    if len(record) > _LONGEST_KEY:
        return False
    token = CLOCK.at.set(at)
    try:
        key = record.encode("ascii", "replace")
        return bool(dkimpy().DKIM(raw, minkey=1024).verify(idx=number, dnsfunc=lambda name, **options: key))
    except Exception:  # dkimpy may raise anything on hostile tags, keys and headers: not valid
        return False
    finally:
        CLOCK.at.reset(token)


# --- DKIM ---

Headers = Sequence[tuple[str, str]]  # names in lower case, from top to bottom
IDENTIFYING = 64  # characters of a signature
MOST = 5  # signatures per mail; lists and forwarders add their own
_TAG = re.compile(r"(?:\A|;)\s*([a-z]+)\s*=\s*([^;]*)")
# Without these a signature proves nothing. What else it covers limits what the mail may do: a report is found by signed
# headers only (bot/replies/which_report.py), and a copy under another Message-ID is known by its signature, since
# kernel.org does not sign the Message-ID.
_DKIM_MUST_SIGN = frozenset({"from", "date"})


def verified_by_dkim(raw: bytes, headers: Headers, address: str, at: float, anchors: TrustAnchors) -> Trust:
    """Return PASS for the first valid signature of the writer's domain; FAIL if its key is known but none is valid."""
    failed = UNPROVEN
    for number, tags in enumerate(signatures(headers)):
        domain, selector = tags.get("d", "").lower(), tags.get("s", "").lower()
        if not domain or not selector or not anchors.aligned(address, domain):
            continue
        record = anchors.key(f"{selector}._domainkey.{domain}")
        if not record:
            continue
        signed = signed_names(tags)
        if not signed:
            continue  # only a part of it is signed
        if verify(raw, number, record, at):
            return Trust(AuthVerdict.PASS, f"dkim {domain}", signed, tags.get("b", "")[:IDENTIFYING])
        failed = Trust(AuthVerdict.FAIL, f"dkim {domain}")
    return failed


def signatures(headers: Headers) -> list[dict[str, str]]:
    """Return the tags of each signature, in the order in which dkimpy numbers them."""
    values = [value for name, value in headers if name == "dkim-signature"]
    return [{tag: "".join(text.split()) for tag, text in _TAG.findall(value[:8000])} for value in values[:MOST]]


def signed_names(tags: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the headers that a signature covers; empty if these, or the body, are too few to count."""
    names = frozenset(name.lower() for name in tags.get("h", "").split(":"))
    return names if names >= _DKIM_MUST_SIGN and "l" not in tags else frozenset()


# --- Developer signatures ---

# What patatt signs by default. With a signed Message-ID, a replayed mail is a duplicate and is not filed again.
_PATATT_MUST_SIGN = frozenset({"from", "subject", "message-id"})
_SIGNED = re.compile(r"(?:\A|;)\s*h\s*=\s*([^;]{1,2000})")
_ALGORITHM = re.compile(r"(?:\A|;)\s*a\s*=\s*([^;\s]*)")
_IDENTITY = re.compile(r"(?:\A|;)\s*i\s*=\s*([^;\s]*)")
_SELECTOR = re.compile(r"(?:\A|;)\s*s\s*=\s*([^;\s]*)")
_ANSWERED = re.compile(r"\A(?:re:\s*)+", re.I)  # what git drops before a subject, and is of no account to us
_ENCODED = frozenset({"from", "subject"})  # git mailinfo decodes these, and the outcome is what is signed
_MOST_ENCODED, _MOST_PLAIN = 4_000, 40_000  # characters of a header


def signed_by_developer(raw: bytes, mail: ParsedMail, headers: Headers, anchors: TrustAnchors) -> Trust:
    """Whether the writer's own key signed the mail. FAIL: their key is known, and the signature is invalid.

    What is signed is what git mailinfo makes of the mail, which drops some lines and what stands in brackets in the
    subject: it proves only what we read, too.
    """
    address = mail.author.email
    signatures = [value for name, value in headers if name == "x-developer-signature"]
    if not anchors.keyring or len(signatures) != 1:
        return UNPROVEN
    if any(len(value) > (_MOST_ENCODED if "=?" in value else _MOST_PLAIN) for _, value in headers):
        return UNPROVEN  # patatt and git take quadratic time for such headers
    algorithms = _ALGORITHM.findall(signatures[0])
    if len(algorithms) != 1:
        return UNPROVEN
    is_checked = algorithms[0].startswith("ed25519") or _is_for_gpg(algorithms[0], signatures[0], address, anchors)
    if not is_checked:
        return UNPROVEN
    found_names = _SIGNED.search(signatures[0])
    signed = frozenset(name.strip().lower() for name in (found_names[1] if found_names else "").split(":"))
    if not signed >= _PATATT_MUST_SIGN or any(
        name in signed and name not in _ENCODED and not _is_as_written(value) for name, value in headers
    ):
        return UNPROVEN
    try:
        results = patatt.validate_message(raw, [anchors.keyring])
    except Exception:  # patatt may raise anything on hostile mail, which proves nothing
        return UNPROVEN
    for result, identity, _, _, algorithm, _ in results:
        if (identity or "").lower() != address.lower():
            continue
        if result == patatt.RES_VALID:
            return _as_read_by_git(raw, mail, Trust(AuthVerdict.PASS, f"patatt {algorithm} {address}", signed))
        if result == patatt.RES_BADSIG:
            return Trust(AuthVerdict.FAIL, f"patatt {algorithm} {address}")
    return UNPROVEN


def _is_for_gpg(algorithm: str, signature: str, address: str, anchors: TrustAnchors) -> bool:
    """Whether it is an OpenPGP signature of a writer whose key is in the keyring, and gpg is there.

    For a stranger gpg is never started; nor does patatt look in the keyring of whoever runs us, or ask a key server.
    """
    program = shutil.which("gpg")
    identities, selectors = _IDENTITY.findall(signature), _SELECTOR.findall(signature)
    if not algorithm.startswith("openpgp") or not program or len(selectors) > 1:
        return False
    if [identity.lower() for identity in identities or [address]] != [address.lower()]:
        return False
    patatt.set_bin_paths({"gpg-bin": program})
    try:
        patatt.get_public_key(anchors.keyring, "openpgp", address, selectors[0] if selectors else "default")
    except Exception:  # patatt may raise anything, as above
        return False
    return True


def _is_as_written(value: str) -> bool:
    """Whether patatt signs a header as it stands: it takes encoded words apart, and drops what is not ASCII in them."""
    return value.isascii() and "=?" not in value


def _as_read_by_git(raw: bytes, mail: ParsedMail, trust: Trust) -> Trust:
    """Return the proof as far as git mailinfo reads the mail as we do: none if it has other lines; and without the
    subject if that is another one.
    """
    message = patatt.PatattMessage(raw)
    try:
        message.git_canonicalize()
    except Exception:  # patatt may raise anything, as above
        return UNPROVEN
    lines = (message.canon_body or b"").decode("utf-8", "replace").split("\r\n")
    if b"\r" in raw.replace(b"\r\n", b"\n") or _words(lines) != _words(mail.text.split("\n")):
        return UNPROVEN
    subjects = [value[8:].strip() for value in message.canon_headers or () if value[:8].lower() == b"subject:"]
    read = [one_line(subject.decode("utf-8", "replace"), MAX_SHORT) for subject in subjects]
    is_same = read == [_ANSWERED.sub("", one_line(mail.subject, MAX_SHORT))]
    return trust if is_same else replace(trust, signed=(trust.signed or frozenset()) - {"subject"})


def _words(lines: Iterable[str]) -> list[str]:
    """Return lines as they are compared: git drops empty ones at the beginning, and blanks at the ends."""
    return [words for line in lines if (words := line.strip())]


# --- Authentication-Results ---

# Trusted servers add it above their Received line, as smtp.subspace.kernel.org does, in the mail of 2024 to 2026.
SERVER_RESULTS_MOST = 200  # headers
ONLY_WRITER = frozenset({"from"})  # what every valid signature covers (RFC 6376 section 5.4)
_BY = re.compile(r"\bby\s+([\w.-]{1,250})", re.I)
# "from <HELO name> (<DNS name> [<IP address>])"; from a program on the same host: "… by x with LMTP".
_CLIENT = re.compile(r"\A\s*from\s+[^\s()]{1,250}\s+\(([\w.-]{0,250})\s?\[([\w:.]{2,60})\]\)", re.I)
_LOCAL = re.compile(r"\A\s*from\s+[^\s()]{1,250}\s+by\s+[\w.-]{1,250}\s+with\s+(?:LMTP|local)\b", re.I)
_LOOPBACK = re.compile(r"(?:IPv6:)?(?:127\.[\d.]{5,11}|::1)\Z", re.I)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_QUOTED_OR_OPEN = re.compile(r'"(?:[^"\\]|\\.)*(?:(")|\\?\Z)', re.S)  # else each quote of an unclosed one is tried
_SIGNATURE = re.compile(r'"([A-Za-z0-9+/]{1,90}=*)"')  # in a quoted string nothing else is of use


def verified_by_server(headers: Headers, address: str, anchors: TrustAnchors) -> Trust:
    """Return the verdict of the trusted server. `headers`: from top to bottom, names in lower case.

    Only a valid signature of the writer's domain that stands in the mail is proof. A server says that it is valid, not
    what it covers: that is read from the signature. SPF is about the envelope, which is a list's or a forwarder's when
    a mail comes by a list (VERP, SRS), and may be of the writer's organisation all the same; so neither SPF nor a
    DMARC result that may rest on it proves anything. A failed DMARC result disproves.
    """
    domain = address.rpartition("@")[2].lower()
    results = _results(headers, anchors)
    dmarc = (
        result for result in results if result.method == "dmarc" and result.properties.get("header.from") == domain
    )
    if failed := next((result for result in dmarc if result.outcome == "fail"), None):
        return Trust(AuthVerdict.FAIL, f"{failed.server}: dmarc {domain}")  # whatever else passed
    proofs = []
    for result in results:
        signer = result.properties.get("header.d", "") or _domain_of(result.properties.get("header.i", ""), headers)
        if result.method == "dkim" and result.outcome == "pass" and signer and anchors.aligned(address, signer):
            by = f"{result.server}: dkim {signer}"
            proofs.append(_signed_by(signer, result.properties.get("header.b", ""), by, headers))
    return joined(proofs)


def _domain_of(identity: str, headers: Headers) -> str:
    """Return the signing domain of a result that only names the identity (header.i, RFC 8601 section 2.7.1), which lies
    in that domain (RFC 6376 section 3.5): that of the one signature in the mail that it fits, or "".
    """
    host = identity.rpartition("@")[2].lower()
    domains = {tags.get("d", "").lower() for tags in signatures(headers)} - {""}
    fitting = [domain for domain in domains if host == domain or host.endswith(f".{domain}")]
    return fitting[0] if len(fitting) == 1 else ""


def _signed_by(signer: str, beginning: str, by: str, headers: Headers) -> Trust:
    """Return the proof of a signature that the server found valid; `beginning`: of the signature (RFC 6008), if given.

    Of several that it may have meant, only what all of them cover counts. Two that begin alike are not an accident.
    """
    if sum(name == "dkim-signature" for name, _ in headers) > MOST:
        return UNPROVEN  # the one that it means may not be among those that we read
    ones = [tags for tags in signatures(headers) if tags.get("d", "").lower() == signer]
    ones = [tags for tags in ones if tags.get("b", "").lower().startswith(beginning)]
    if not ones or (beginning and len(ones) > 1) or any("l" in tags for tags in ones):
        return UNPROVEN  # it isn't here, somebody made up a second one, or only the beginning of the body is signed
    signed = frozenset.intersection(*map(signed_names, ones))
    signature = ones[0].get("b", "")[:IDENTIFYING] if len(ones) == 1 else ""
    return Trust(AuthVerdict.PASS, by, signed or ONLY_WRITER, signature)


@dataclass(frozen=True, slots=True)
class _Result:
    """One result: "dkim=pass header.d=dev.example", with its properties."""

    server: str
    method: str
    outcome: str
    properties: Mapping[str, str]


def _results(headers: Sequence[tuple[str, str]], anchors: TrustAnchors) -> list[_Result]:
    """Return the results of trusted servers, down to where the mail came in from outside; [] if that is not shown."""
    results: list[_Result] = []
    for name, value in headers[:SERVER_RESULTS_MOST]:
        if name == "authentication-results":
            results.extend(result for result in _read(value) if _is_trusted(result.server, anchors))
        elif name == "received":
            # One "by", outside of comments: a client may have put another one into the name that it gave as its own.
            servers = _BY.findall(_without_comments(value))
            if len(servers) != 1 or not _is_trusted(servers[0], anchors):
                return []  # no trusted server accepted the mail: anyone may have written these headers
            client = _CLIENT.match(value)
            is_internal = client and (_LOOPBACK.match(client[2]) or _is_trusted(client[1], anchors))
            if not is_internal and not _LOCAL.match(value):
                return results
    return []


def _read(value: str) -> Iterator[_Result]:
    """Yield the results of one header. Quoted strings and comments may be the sender's, and are removed first."""
    server, *results = _without_comments(_QUOTED_OR_OPEN.sub(_unquoted, value[:MAX_VALUE])).split(";")
    for result in results:
        method, *fields = result.split() or [""]
        name, equals, outcome = method.partition("=")
        if equals:
            pairs = (part.partition("=") for part in fields)
            properties = {key.lower(): text.lower() for key, _, text in reversed(list(pairs))}
            yield _Result((server.split() or [""])[0].lower(), name.lower(), outcome.lower(), properties)


def _unquoted(quoted: re.Match[str]) -> str:
    if not quoted[1]:
        return quoted[0]
    match = _SIGNATURE.fullmatch(quoted[0])
    return match[1] if match else '"'


def _without_comments(value: str) -> str:
    """Return the value without comments, which may nest; an unclosed one removes all the rest. A parenthesis behind a
    backslash neither begins nor ends one (RFC 5322 section 3.2.1).
    """
    kept, depth = [], 0
    for pair in _QUOTED_PAIR.findall(value[:20_000]):
        depth += pair == "("
        if not depth:
            kept.append(pair)
        depth -= pair == ")" and depth > 0
    return "".join(kept)


_QUOTED_PAIR = re.compile(r"\\?.", re.S)


def _is_trusted(host: str, anchors: TrustAnchors) -> bool:
    """Whether a host is one of the trusted servers, or below an entry that begins with a dot: ".kernel.org"."""
    host = host.lower()
    return host in anchors.servers or any(
        server[0] == "." and host.endswith(server) for server in anchors.servers if server
    )


# --- Other readings of a body ---

# Only the readings that the bytes make plausible are tried; among them is the one that the writer meant. Flowed text
# is read as plain: it has no more lines than that.
_BODY_HEADER = re.compile(rb"(?:content-[!-9;-~]*|mime-version)[ \t]*:", re.I)
_HTML = re.compile(rb"\s*<[!a-z]", re.I)  # as every program begins it
UNKNOWN_CHARSET = "unknown_charset"
# What begins letters in charsets that are written in ASCII: ISO-2022 and HZ.
_SHIFTS = re.compile(rb"\x1b[$(]|~\{")
# As every program writes it: in groups of four letters. A word such as "unsubscribe" is not one.
_BASE64 = re.compile(
    rb"\s*(?:(?:[A-Za-z0-9+/]{4}){1,19}\n)*(?:[A-Za-z0-9+/]{4}){0,18}"
    rb"(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)\s*\Z"
)
_ESCAPED = re.compile(rb"=(?:[0-9A-F]{2}|[ \t]*\n)", re.I)
# The first delimiter of a multipart, below nothing but what mail programs write there for others to read.
_DELIMITER = re.compile(
    rb"\s*(?:This is a (?:multi-part message in MIME format|cryptographically signed message in MIME format)\.?\s*|"
    rb"This is an OpenPGP/MIME signed message \(RFC 4880 and 3156\)\s*)?--([^\s\"]{1,70})[ \t]*\n"
    rb"(?:\n|(?:content-[!-9;-~]*|[ \t]+\S))",
    re.I,
)
_A_PART = re.compile(
    rb"^--(?=[^\r\n]*\w)[^\r\n]{1,70}\n(?:content-[!-9;-~]*[ \t]*:|\n.{0,2000}?\n--)", re.I | re.M | re.S
)
_A_TAG = re.compile(rb"<(?:html|body|div|p|br|span|blockquote|table)\b[^<>]{0,200}>", re.I)
_CODINGS = (b"", b"Content-Transfer-Encoding: quoted-printable\n", b"Content-Transfer-Encoding: base64\n")
_LONGEST = 78  # characters of an encoded line, a line break included
_MOST = 500_000  # bytes of a mail that is read several times; commands and answers are shorter


def other_readings(raw: bytes, mail: ParsedMail) -> tuple[ParsedMail, ...] | None:
    """Return the mail as others may read it, without readings of the same text; None if nobody can tell what was meant,
    or if it is too long to try.

    Text is read as ASCII or UTF-8. In another charset the same bytes are other letters, and only the header said which:
    then it is read as Latin 1, with UNKNOWN_CHARSET among the problems.
    """
    raw = without_frame(raw).replace(b"\r\n", b"\n")
    if len(raw) > _MOST:
        return None
    head, _, body = raw.partition(b"\n\n")
    kept: list[bytes] = []
    inside = False  # one of the headers that decide how the body is read, which may be folded
    for line in head.split(b"\n"):
        inside = bool(_BODY_HEADER.match(line)) or (inside and line[:1] in (b" ", b"\t"))
        if not inside:
            kept.append(line)
    delimiter = _DELIMITER.match(body)
    if not delimiter and (_A_PART.search(body) or (_A_TAG.search(body) and not _HTML.match(body))):
        return None  # parts, or markup, that only another reading would find: nobody knows which was meant
    declared = message_from_bytes(head + b"\n\n")
    if declared.get_content_maintype() == "multipart":
        boundary = declared.get_boundary("").encode("ascii", "replace")
        if not delimiter or delimiter[1] != boundary:
            return None  # a line of the writer may have been made a boundary: the words above it are lost
    readings: dict[str, ParsedMail] = {}
    for headers in _plausible_headers(body):
        text = b"" if delimiter else message_from_bytes(headers + b"\n" + body).get_payload(decode=True)
        if not isinstance(text, bytes) or _SHIFTS.search(text):
            return None
        is_utf8 = _is_utf8(text)
        headers = headers if is_utf8 else headers.replace(b"utf-8", b"iso-8859-1")
        reading = parse(b"\n".join([*kept, headers, body]))
        if not is_utf8:
            readings[reading.text] = replace(reading, problems=(*reading.problems, UNKNOWN_CHARSET))
        elif reading.text != mail.text:
            readings.setdefault(reading.text, reading)
    return tuple(readings.values())


def respaced(raw: bytes, mail: ParsedMail) -> tuple[ParsedMail, ...]:
    """Return the mail as whoever sends it on may space it, without readings of the same text; without its body, if that
    is too long to try, as blanks alone can make it.

    A relaxed signature covers neither how many blanks begin a line nor whether some end it (RFC 6376, 3.4.4).
    """
    head, _, body = without_frame(raw).replace(b"\r\n", b"\n").partition(b"\n\n")
    if len(body) > _MOST:
        return (parse(head + b"\n\n"),)
    narrow: list[bytes] = []
    wide: list[bytes] = []
    matters = b"flowed" in raw.lower()
    for line in body.split(b"\n"):
        words = line.strip(b" \t")
        is_indented = bool(words) and line[:1] in (b" ", b"\t")
        matters = matters or is_indented or words == b"--"
        ends = b"" if not words or words.endswith(b"=") else b" "  # which may be a soft break in quoted-printable
        narrow.append((b" " if is_indented else b"") + words)
        wide.append((b"\t" if is_indented else b"") + words + ends)
    variants = [parse(head + b"\n\n" + b"\n".join(lines)) for lines in (narrow, wide)] if matters else []
    return tuple(variant for variant in variants if variant.text != mail.text)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _plausible_headers(body: bytes) -> Iterator[bytes]:
    """Yield the Content- headers under which the bytes of this body make sense."""
    text = b"Content-Type: text/%s; charset=utf-8"
    if (match := _DELIMITER.match(body)) and b"\n--" + match[1] + b"--" in body:
        for kind in (b"mixed", b"alternative"):
            yield b'Content-Type: multipart/%s; boundary="%s"\n' % (kind, match[1])
        return
    plain, quoted, base64 = _CODINGS
    codings = [plain]
    # Only ASCII, and short lines (RFC 2045 section 6.7): a program can have written it so.
    if body.isascii() and _ESCAPED.search(body) and max(map(len, body.split(b"\n"))) <= _LONGEST:
        codings.append(quoted)
    if _BASE64.match(body):
        codings.append(base64)
    for coding in codings:
        yield coding + text % b"plain" + b"\n"
        if _HTML.match(body):
            yield coding + text % b"html" + b"\n"


# --- The verdict ---

# If repeated, parsers may use different ones; and one can be added above the headers of a signed mail.
_ONCE = BODY_HEADERS.union(
    ("from", "sender", "reply-to", "to", "cc", "date", "subject", "message-id", "in-reply-to", "references")
)
_ADDRESS = re.compile(r"[^\s<>()\[\],;:@]{1,256}@[^\s<>()\[\],;:]*")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HEADER = re.compile(rb"[!-9;-~]{1,200}:")
_RUN_OF_BLANKS = re.compile(rb"[ \t]{16,}")
_FOLDED_BLANKS = re.compile(rb"(?:\r?\n?[ \t])++")  # possessive: runs of 199 folds took 11 s
_MOST_FOLDED = 200  # in a header, where no program writes them


def _has_costly_blanks(raw: bytes) -> bool:
    """Whether dkimpy would take long for the blanks of a mail: it takes quadratic time for each run of them."""
    head = re.split(rb"\r?\n\r?\n", raw, maxsplit=1)[0]
    if any(len(run[0].translate(None, b"\r\n")) >= _MOST_FOLDED for run in _FOLDED_BLANKS.finditer(head)):
        return True
    return sum((run.end() - run.start()) ** 2 for run in _RUN_OF_BLANKS.finditer(raw)) > MAX_BLANKS


def authenticate(raw: bytes, mail: ParsedMail, anchors: TrustAnchors) -> Trust:
    """Return whether the author of a mail is verified, by the rules at the head of this file. Never raises."""
    address = mail.author.email
    if not address or len(raw) > MAX_BYTES:
        return UNPROVEN
    # A list that puts its own address into From, and signs that, proves nothing about the writer.
    if is_a_list(address) or address.lower() in anchors.lists:
        return UNPROVEN
    raw = without_frame(raw)
    headers = _headers(raw)
    if _has_costly_blanks(raw):
        return UNPROVEN
    # From must have exactly one address, the one that we parsed: whatever stands in angle brackets or comments, a
    # second address could be the one that a server means.
    writer = next((value for name, value in headers if name == "from"), "")
    if len(writer) > MAX_SHORT:
        return UNPROVEN
    bare = _QUOTED.sub("", writer)
    if [author.email for author in parse_addresses(writer)] != [address] or '"' in bare:
        return UNPROVEN
    if {candidate.lower() for candidate in _ADDRESS.findall(bare)} != {address}:
        return UNPROVEN
    proofs = (
        signed_by_developer(raw, mail, headers, anchors),
        verified_by_dkim(raw, headers, address, (mail.date or _EPOCH).timestamp(), anchors),
        verified_by_server(headers, address, anchors),
    )
    if (proven := joined(proofs)).proven:
        return replace(proven, digest=_digest(raw, headers))
    if failed := next((proof for proof in proofs if proof.verdict is AuthVerdict.FAIL), None):
        return failed
    domain = address.rpartition("@")[2]
    # A signature need only claim to be of the writer's own domain, whether or not its key is known.
    if anchors.signs(domain) and not any(anchors.aligned(address, tags.get("d", "")) for tags in signatures(headers)):
        return Trust(AuthVerdict.FAIL, f"unsigned, though {domain} signs its mail")
    return UNPROVEN


def _digest(raw: bytes, headers: Headers) -> str:
    """Identify a signed mail by its date and its body, of which a signature need not cover the blanks."""
    date = next((value for name, value in headers if name == "date"), "")
    body = b"".join(raw.replace(b"\r\n", b"\n").partition(b"\n\n")[2].split())
    return hashlib.sha256(date.encode("utf-8", "replace") + b"\0" + body).hexdigest()


def _headers(raw: bytes) -> list[tuple[str, str]]:
    """Return names in lower case and unfolded values, from top to bottom; [] if any line of the head is irregular, or
    a header that matters is repeated.

    Parsed once more here, and strictly: what the stdlib, dkimpy and we may read differently proves nothing.
    """
    head = raw.replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    if b"\r" in head or b"\0" in head:
        return []
    fields: list[tuple[str, list[str]]] = []
    for line in head.split(b"\n"):
        text = to_text(line.decode("ascii", "surrogateescape"))
        if line[:1] in (b" ", b"\t") and fields:
            fields[-1][1].append(text.strip())
        elif _HEADER.match(line):
            name, _, value = text.partition(":")
            fields.append((name.lower(), [value.strip()]))
        else:
            return []
    names = Counter(name for name, _ in fields)
    if any(names[name] > 1 for name in _ONCE):
        return []
    return [(name, " ".join(pieces)) for name, pieces in fields]
