"""Values as text, one format each for pages, documents and mail: numbers, links, CSV cells, keys, axes. Pure.

A change is written with both signs in a table and without a plus in a sentence, as the lists write it. What comes
from strangers is made safe for where it goes: a CSV cell that a spreadsheet would run as a formula (OWASP: CSV
injection), a tree's URL that becomes a link, the address of a webhook.

Keys are short and stable: that of a scenario does not depend on the order of its parameters, and the tag of a report
identifies it in mail addresses. All charts and sparklines are drawn with one linear scale, from values to whole
pixels.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from urllib.parse import quote, urlsplit

from tracker.domain.events import InvalidInput

# --- English ---


def counted(number: int, noun: str) -> str:
    """ "1 mail", "2 mails"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def article(follows: str) -> str:
    """ "a" or "an" before a word or a number, as spoken: an improvement, an 8.8 %, an 11.0 %, an 18 %; a 1.1 %."""
    head = follows.partition(".")[0]
    return "an" if head[:1] in tuple("8aeiou") or head in ("11", "18") else "a"


# --- Numbers and durations ---

NONE = "—"


def signed_pct(change: float | None) -> str:
    """Return a change for a table in plain text, with both signs: "+32.5%", "-12.8%"."""
    return NONE if change is None else f"{change:+.1f}%"


def page_pct(change: float | None) -> str:
    """Return a change for a page: as in plain text, with a true minus."""
    return typeset(signed_pct(change))


def typeset(numbers: str) -> str:
    """Return numbers in plain text for a page: with true minus signs."""
    return numbers.replace("-", "−")


def prose_pct(change: float) -> str:
    """Return a change for a sentence or a subject: a minus is printed and a plus is not, as the lists write it.

    >>> prose_pct(-12.8), prose_pct(32.5)
    ('-12.8%', '32.5%')
    """
    return f"{change:.1f}%"


def interval(low: float | None, high: float | None) -> str:
    """Return a confidence interval, "95% CI -13.2 to -12.4%"; "" where there is none."""
    return "" if low is None or high is None else f"95% CI {low:+.1f} to {high:+.1f}%"


def p_value(p: float) -> str:
    """Return "p = 0.012", or "p < 0.0001" below that."""
    return f"p = {p:.2g}" if p >= 0.0001 else "p < 0.0001"


def printable(text: str, instead: str = " ") -> str:
    """Return a text without control characters and line breaks, which XML, terminals and logs take ill."""
    return "".join(letter if letter.isprintable() else instead for letter in text)


def number(value: float | None, below: float = 1e9) -> str:
    """Return a measured value with four significant digits, or as an integer from 1,000: "184,436", "3.052".

    From `below` on, it has an exponent.
    """
    if value is None:
        return NONE
    return f"{value:,.0f}" if 1000 <= abs(value) < below else f"{value:.4g}"


def duration(value: timedelta | None) -> str:
    """Return a duration in its largest unit: "3 days", "2 h", "5 min"; "less than a minute"."""
    if value is None:
        return NONE
    if value.days:
        return f"{value.days} day{'s' if value.days > 1 else ''}"
    minutes = value.seconds // 60
    if not minutes:
        return "less than a minute"
    return f"{minutes // 60} h" if minutes >= 60 else f"{minutes} min"


def age(moment: datetime | None, now: datetime) -> str:
    """Return how long ago a moment was, short enough for a column: "6 min", "3 d", "6 mo", "2 y"; "" for None.

    >>> from datetime import UTC, timedelta
    >>> now = datetime(2026, 1, 1, tzinfo=UTC)
    >>> [age(now - timedelta(minutes=minutes), now) for minutes in (6, 200, 5000, 60_000, 300_000, 2_000_000)]
    ['6 min', '3 h', '3 d', '5 w', '6 mo', '3 y']
    """
    if moment is None:
        return ""
    seconds = max(0, int((now - moment).total_seconds()))
    for least, days, unit in ((730, 365, "y"), (90, 30, "mo"), (21, 7, "w"), (1, 1, "d")):
        if seconds >= least * 86400:
            return f"{seconds // (days * 86400)} {unit}"
    return f"{seconds // 3600} h" if seconds >= 3600 else f"{seconds // 60} min"


def multiple(value: float) -> str:
    """Format how many times something is another.

    >>> multiple(4.12), multiple(12.6)
    ('4.1×', '13×')
    """
    return f"{value:.0f}×" if value >= 10 else f"{value:.1f}×"


def confidence(low: float | None, high: float | None, p: float | None) -> str:
    """Format how sure a change is: "95% CI -31.2 to -28.7%, p < 0.0001"; empty if it was not tested."""
    return ", ".join(filter(None, (interval(low, high), p_value(p) if p is not None else "")))


# --- CSV cells ---

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # XML 1.0 and so spreadsheets have no such characters


def safe_cell(value: object) -> object:
    """Return a cell without control characters, with an apostrophe before what a spreadsheet would run (OWASP: CSV
    injection).
    """
    if not isinstance(value, str):
        return value
    text = _CONTROL.sub(" ", value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


# --- Links out of our pages ---

THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})  # hosts of links that lead nowhere for anybody else

# Trees on these hosts have a page for each commit; of others we don't know. `{url}` has no ".git" where they drop it.
_VIEWS = (
    (re.compile(r"https?://(?:[\w-]+\.)*kernel\.org/.+"), "{git}/commit/?id={sha}"),  # cgit
    (re.compile(r"https?://(?:www\.)?github\.com/.+"), "{url}/commit/{sha}"),
    (re.compile(r"https?://gitlab\.[\w.-]+/.+"), "{url}/-/commit/{sha}"),
)
_SHA = re.compile(r"[0-9a-f]{7,64}\Z")
LONGEST = 1800  # characters of a mailto link: some mail programs take no more


def lore_url(message_id: str) -> str:
    """Return the link to a mail on lore."""
    return f"https://lore.kernel.org/r/{quote(message_id, safe='@+-._=', errors='replace')}"


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
    form = next((form for host, form in _VIEWS if host.fullmatch(git)), "")
    return form.format(git=git, url=git.removesuffix(".git"), sha=sha)


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


# --- Addresses to post to ---

_LONGEST = 1000  # characters
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Target:
    """An address to post to."""

    host: str
    port: int
    path: str
    is_tls: bool


def parse_target(url: str) -> Target:
    """Return the target of a URL. Raises InvalidInput, which says what is wrong with it."""
    if len(url) > _LONGEST or not url.isascii() or any(char <= " " or char == "\x7f" for char in url):
        raise InvalidInput("url: expected an address of up to 1000 printable ASCII characters")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
        if parts.scheme not in _PORTS or not host or not port:
            raise ValueError
    except ValueError:
        raise InvalidInput("url: expected an address such as https://ci.example.org/hook") from None
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise InvalidInput("url: expected no user name, password or fragment; requests are signed instead")
    return Target(host, port, f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}", parts.scheme == "https")


# --- Scenarios ---

LEAST_ROWS = 3  # that share a parameter before it stands above them


def shared_parameters(scenarios: Iterable[str]) -> list[str]:
    """Return the parameters that all of some scenarios have, in the order of the first.

    >>> shared_parameters(["test=io governor=performance", "governor=performance", "x=1 governor=performance"])
    ['governor=performance']
    """
    parameters = [scenario.split() for scenario in scenarios]
    if len(parameters) < LEAST_ROWS:
        return []
    common = set(parameters[0]).intersection(*parameters[1:])
    return [parameter for parameter in parameters[0] if parameter in common and "=" in parameter]


def without(scenario: str, shared: Sequence[str]) -> str:
    """Return a scenario without the parameters that stand above it."""
    return " ".join(parameter for parameter in scenario.split() if parameter not in shared)


# --- Keys and tags ---


def scenario_key(suite: str, params: Mapping[str, str]) -> str:
    """Return the key of a scenario, whatever the order of its parameters.

    It holds a digest, since the parameters may be kilobytes, too long for an index.
    """
    canonical = json.dumps([suite, sorted(params.items())], ensure_ascii=False, separators=(",", ":"))
    return f"{suite[:60]} {hashlib.sha256(canonical.encode('utf-8', 'replace')).hexdigest()[:24]}"


def tag_of(sha: str) -> str:
    """Return the 16 hexadecimal digits that identify a report in email addresses: perfbot+7d3e91c0a45b28f6@…"""
    return hashlib.sha256(b"perfwork report " + sha.encode()).hexdigest()[:16]


# --- Addresses ---

# Hosts of mailing lists; at kvack.org there are people, too, and list.ru gives mailboxes to anybody.
_OF_LISTS = re.compile(
    r"@(?:(?:.+\.)?(?:vger\.kernel\.org|googlegroups\.com)|(?!list\.ru\Z)(?:[\w-]+\.)?lists?\.[\w-]+(?:\.[\w-]+){0,2})\Z"
    r"|\Alinux-[\w-]+@kvack\.org\Z"
)
# Those whose lists everybody can read: of the kernel and what is near it. Others may be a company's own.
_PUBLIC_LISTS = re.compile(
    r"[@.](?:vger\.kernel\.org|lists\.(?:linux\.dev|linux-?foundation\.org|infradead\.org|sourceforge\.net"
    r"|freedesktop\.org|ozlabs\.org|linaro\.org|01\.org|samba\.org|xenproject\.org|gnu\.org|suse\.com|opensuse\.org"
    r"|nongnu\.org|osuosl\.org|linux\.it|linbit\.com|orangefs\.org|cs\.columbia\.edu|zx2c4\.com|open-mesh\.org"
    r"|cip-project\.org|lttng\.org))\Z|\A(?:kasan-dev|syzkaller(?:-bugs)?|syzkaller-lts-bugs)[@.]googlegroups\.com\Z"
    r"|\Alinux-[\w-]+[@.]kvack\.org\Z"
)
# Lists of these hosts that are closed all the same
_CLOSED_LISTS = re.compile(
    r"(?:\A|[-_])(?:security(?:-officers?)?|private|confidential|embargo(?:ed)?|tab|board|members)[@.]"
)
# The people and the software behind a list or its host: moderators, and the roles of RFC 2142
_BEHIND_LISTS = re.compile(
    r"(?:[-+](?:owner|request|bounces?|subscribe|unsubscribe|confsub|unsubconf|join|leave|confirm|help)"
    r"(?:[-+][^@]*)?|(?<!\Alinux)-(?:admin|moderators?)|\A(?:mailman|majordomo|listserv|owner-[^@]+|(?:lists?-?)?admin"
    r"|moderators?|postmaster|hostmaster|webmaster|abuse|root|noc|support|helpdesk))@"
)


def is_a_list(address: str) -> bool:
    """Return whether an address is that of a mailing list, by its host."""
    address = address.lower()
    return bool(_OF_LISTS.search(address)) and not is_a_lists_role(address)


def is_a_public_list(address: str) -> bool:
    """Return whether an address, or the identifier of a list (RFC 2919), is that of a list that everybody can read."""
    address = address.lower()
    closed = is_a_lists_role(address) or _CLOSED_LISTS.search(address)
    return bool(_PUBLIC_LISTS.search(address)) and not closed


def is_a_lists_role(address: str) -> bool:
    """Return whether an address is that of a list's owner or of its software, whose mail no subscriber gets."""
    return bool(_BEHIND_LISTS.search(address.lower()))


# --- Scales ---


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high`, drawn from `start` to `end`; `start` is the larger on an upward axis."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> int:
        """Return the pixel of a value; values outside the range lie outside the axis.

        >>> Scale(0, 10, 100, 0)(2.5)
        75
        """
        size = self.high - self.low
        return round(self.start + (self.end - self.start) * ((value - self.low) / size if size else 0.5))

    def grid(self, label: Callable[[float], str]) -> list[tuple[int, str]]:
        """Return the pixels of some round values between the lowest and the highest, each with its label."""
        return [(self(value), label(value)) for value in round_values(self.low, self.high)]


def round_values(low: float, high: float, most: int = 6) -> list[float]:
    """Return up to `most` multiples of 1, 2 or 5 times a power of ten; the only value where there is no range.

    >>> round_values(0.83, 10.2)
    [2.0, 4.0, 6.0, 8.0, 10.0]
    """
    size = high - low
    if not (math.isfinite(size) and size > 1e-12 * max(abs(low), abs(high))) or size < 1e-290:
        return [low]
    power = math.floor(math.log10(size / most))
    steps = [Decimal(digit).scaleb(power + up) for up in (0, 1) for digit in (1, 2, 5)]
    for step in steps:
        first, last = math.ceil(low / float(step)), math.floor(high / float(step))
        if last - first < most:
            return [float(number * step) for number in range(first, last + 1)] or [low]
    return [low, high]


def scale(values: Iterable[float], start: float, end: float) -> Scale | None:
    """Return the scale that holds all of the values; None without values, or where they are too far apart to draw."""
    numbers = list(values)
    if not numbers or not math.isfinite(max(numbers) - min(numbers)):
        return None
    return Scale(min(numbers), max(numbers), start, end)
