"""The versions and the figures that a mail of a person compares, each with the sentence that says them. Pure.

"5.13 vs 5.14", two lines that begin with versions, the columns below them, "from 187 MB/s to 170", "3x slower",
"usually 1m20s, now 20 minutes". The older of two versions is the good one. A figure is a loss only where a word of
LOSS stands beside it, or where it is told with another that it came from; of what a mail doesn't say so, nothing is
taken. `person_report` asks for all of it at once (`read_figures`) and decides whether the mail is a report.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tracker.domain.archived_reports import UNKNOWN, Fact
from tracker.domain.versions import Version
from tracker.domain.versions import parse as parse_version

_LONGEST, _MOST, _WIDEST = 40_000, 300, 700  # characters of a mail, sentences, characters of a sentence

LOSS = re.compile(
    r"\b(?:perf(?:ormance)?[ -])?(?:regress\w*|degrad\w*|slow(?:er|s|ed|ing)?(?:[- ]?downs?)?\b"
    r"|drop(?:s|ped|ping)?\b|decreas\w*|delay\w*|worse|reduc(?:ed|tion)\b|declin\w+|fell\b|loss\b|longer\b"
    r"|lag(?:s|ging|gy)?\b|stutter\w*|sluggish\w*|crawl\w*|glacial\w*|collaps\w*|tank(?:s|ed|ing)\b|plummet\w*"
    r"|halved|half (?:as|of|the)|(?:to|in|by) half\b|down (?:by )?~?\d|up by\b|up from \d"
    r"|lose[sd]?\b|lost (?:about |around |up to )?~?\d|lower\b|fewer \w+/s"
    r"|(?:\dx|times|twice|double) as (?:long|slow|expensive)|as long\b.{0,30}\bas before)"
    r"|(?<![\w.])-(?:\d{1,2}(?:\.\d)?\s?%|\d/\d\b)|\d (?:hours?|minutes?|days?) instead of \d",
    re.I,
)
SUITES = re.compile(
    r"(?<![\w.@/-])(fio|unixbench|hackbench|iperf3?|netperf|sockperf|uperf|nuttcp|qperf|perftest"
    r"|ib_(?:read|write|send)_(?:bw|lat)|stress-ng|will-it-scale|vm-scalability|aim7|aim9|lmbench|ebizzy"
    r"|dbench|tbench|iozone|bonnie\+\+|filebench|fs_?mark|compilebench|blogbench|postmark|ior|mdtest|vdbench"
    r"|xfstests?|hdparm|dd|fstime|kernbench|phoronix|specjbb\w*|spec ?cpu\w*|speccpu|stream|cyclictest|schbench|rt-app"
    r"|perf bench|pgbench|sysbench|memtier\w*|redis-benchmark|ycsb|hammerdb|tpc-?[ch]|mysqlslap|db_bench|rocksdb"
    r"|cassandra|kafka|wrk2?|nginx|geekbench|glmark2|glxgears|hyperfine|7-?zip)\b",
    re.I,
)

# --- The mail ---


@dataclass(frozen=True, slots=True)
class MailText:
    """The subject and the sentences of a mail. `text`: its own text, with its lines."""

    subject: str
    text: str
    sentences: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return (self.subject, *self.sentences)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a mail compares. `change_pct`: the metric's own movement, None if no two figures or percentage tell it."""

    good: Fact
    bad: Fact
    magnitude: Fact
    change_pct: float | None
    metric: Fact
    suite: Fact


def read_figures(mail: MailText, introduced: str) -> Figures:
    """Return what a mail compares. `introduced`: the argument of its command of that name, which may be a range."""
    runs = _two_versions(mail.text)
    good, bad = _versions(mail, introduced)
    if runs and not any(_contradicts(mail, fact, run) for fact, run in ((good, runs.good), (bad, runs.bad))):
        good, bad = runs.good, runs.bad
    magnitude, change = _magnitude(mail, runs)
    metric, suite = _metric(mail, magnitude)
    return Figures(good, bad, magnitude, change, metric, suite)


def _contradicts(mail: MailText, fact: Fact, run: Fact) -> bool:
    """Whether the subject names another version than what lines or columns begin with, which may be of anything."""
    of_subject = fact.sentence == mail.subject.translate(_QUOTES) and not fact.value.startswith("before")
    return bool(fact) and of_subject and not _is_of(run.value, fact.value)


def _is_of(version: str, named: str) -> bool:
    """Whether a version is the named one, one of its stable updates or -rcs, or the release that an -rc leads to."""
    version, named = version.lower().lstrip("v"), named.lower().lstrip("v")
    return version == named or version.startswith((f"{named}.", f"{named}-")) or named.startswith(f"{version}-rc")


# Control characters, and what reorders text; digits of other scripts count as letters.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")


def mail_text(subject: str, own_text: str) -> MailText:
    """Return what a person wrote, cut into sentences; of a very long mail, its beginning."""
    text = _plain_text(own_text[:_LONGEST])
    return MailText(" ".join(_plain_text(subject).split())[:_WIDEST], text, tuple(_sentences(text)))


def _plain_text(text: str) -> str:
    return _OTHER_DIGIT.sub("?", _CONTROLS.sub(" ", text))


_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?](?=\s+[A-Z0-9\"'(#`-]|\s*\Z)")
_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "’": "'", "‘": "'", "→": "->", "–": "-", "\u00a0": " ", "`": ""})


# A line of a table, a log or a list, not one of prose that happens to begin with a number ("… between / 5.2 and 5.15")
_STANDS_ALONE = re.compile(
    r"[\[$#|+*>=]|[\w ]{1,30}:|- "
    r"|\d[\d.]*[:)]? (?!\(|(?:and|or|to|but|is|was|are|were|with|without|on|in|from|kernels?|which|that|the)\b)"
)


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, paragraph by paragraph; a row of a table or a log is one, too."""
    count = 0
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [" ".join(line.split()) for line in paragraph.translate(_QUOTES).split("\n")]
        joined, begun = [], ""
        for line in filter(None, lines):
            if begun and _STANDS_ALONE.match(line):
                joined.append(begun)
                begun = ""
            begun = f"{begun} {line}".strip()
        for block in (*joined, begun):
            start = 0
            for end in (*(match.end() for match in _END.finditer(block)), len(block)):
                if sentence := block[start:end].strip():
                    yield sentence[:_WIDEST]
                    count += 1
                if count > _MOST:
                    return
                start = end


# --- Versions ---

KERNEL = (  # "6.12", "v6.12-rc2", "5.15.y", "3.10.0-957.1.3.el7"; not within another number
    r"(?<!\w)(?<!\w\.)v?(?:2\.6\.\d{1,2}(?:\.\d{1,2})?|[3-9]\.\d{1,2}(?:\.\d{1,3})?)"
    r"(?:\.[xy]\b)?(?:-rc\d{0,2})?(?:-\d[\w.]*\.(?:el|eln|fc)\d+\w*)?\+?"
)
_NEXT = r"next-\d{8}"
_RANGE_END = rf"(?:{KERNEL}|{_NEXT}|[0-9a-f]{{8,40}}\b)"  # of a range
_DISTRO = (
    r"(?:CentOS|RHEL|Ubuntu|Debian|Fedora|SLES|openSUSE|Amazon Linux|Rocky(?: Linux)?|AlmaLinux) ?\d{1,2}(?:\.\d{1,2})?"
)
_IS_DISTRO = re.compile(r"(?:centos|rhel|ubuntu|debian|fedora|sles|suse|linux) ?\Z", re.I)
_NOT_KERNEL = re.compile(
    r"(?:gcc|clang|llvm|binutils|fio|version of|iperf3?|pts|qemu|python|glibc|nfsv?|v=|bios|[=:/_-]"
    r"|centos|rhel|ubuntu|debian|fedora|sles|suse)\s*(?:version )?\Z",
    re.I,
)
_RATE = r"[kmgt]i?b(?:it|yte)?s?/s(?:ec)?|[kmgt]?bps|[kmg]?pps|[kmg]?(?: ?iops|ops(?:/s(?:ec)?)?)|[ftq]ps|req/s"
_TIME = (
    r"m(?:illi)?s(?:ec(?:ond)?s?)?|[uµμ]s(?:ec)?|microseconds?|n(?:ano)?s(?:ec(?:ond)?s?)?|s(?:ec(?:ond)?s?)?"
    r"|min(?:ute)?s?|h(?:ours?)?"
)
_UNIT = rf"(?:{_RATE}|{_TIME}|%)"
_NO_VERSION = rf"(?:(?:{_RATE}|{_TIME}|[kmgt]i?b(?:it|yte)?s?|[mg]?hz|w(?:atts?)?)\b)"  # what only figures have
# What follows a figure, and no version: a unit, or another figure with one
_NO_UNIT = (
    rf"(?![\w%]|\.\d| ?(?:{_NO_VERSION}|%|x\b|times\b|\+-|\+/-|±)"
    rf"|(?:-|\s?->| vs\.?| to) ?\d+\.\d+ ?{_NO_VERSION})"
)
_VERSION = re.compile(rf"(?<![\w./])({KERNEL})(?:-[\w.]*\d[\w.]*)?{_NO_UNIT}", re.I)
_PAIRS = (
    rf"(?:from|on) (?P<good>{_DISTRO}) (?:to|and) (?P<bad>(?:{_DISTRO}|\d{{1,2}}\.\d{{1,2}}))",
    rf"(?P<good>{KERNEL})(?:-[\w.+-]*\w)?\)?\s*(?:->|to|\.\.|=>|-->)\s*(?:(?:kernel|linux) )?"
    rf"(?P<bad>{KERNEL}){_NO_UNIT}",
    rf"between (?:[\w ]{{1,25}} )?(?P<one>{KERNEL})(?:-[\w.+-]*\w)? (?:and|-|to) (?:(?:kernel|linux) )?"
    rf"(?P<other>{KERNEL})",
    rf"(?P<one>{KERNEL})[\w ,]{{0,30}} (?:vs\.?|versus) (?:[\w ]{{1,20}} )?(?P<other>{KERNEL}){_NO_UNIT}",
    rf"(?P<bad>{KERNEL})[\w ,]{{0,30}} (?:compared (?:to|with)|(?<!more )(?<!less )than(?! (?:that|this|double))|over"
    rf"|against) (?:[\w ]{{1,20}} )?(?P<good>{KERNEL}){_NO_UNIT}",
)
_PAIR = tuple(re.compile(pattern, re.I) for pattern in _PAIRS)
_IS_GOOD = re.compile(
    r"\b(?:fine|good|works?|ok(?:ay)?|without|unaffected|normal|fast(?:er)?|last (?:good|working|known)"
    r"|not (?:affected|see|show)|expected)\b",
    re.I,
)
_SINCE = re.compile(
    rf"\b(?:since|starting (?:with|from)|introduced in|as of|appeared in|begin\w* (?:with|in)|first (?:seen"
    rf"|appear\w*) in|until) (?:\w+ ){{0,2}}(?P<bad>{KERNEL})",
    re.I,
)


def _versions(mail: MailText, introduced: str) -> tuple[Fact, Fact]:
    """Return the last good and the first bad version that the mail names."""
    sentence = f"introduced: {introduced}"
    if pair := re.match(rf"\^?\s*(?P<good>{_RANGE_END})\.\.\.?(?P<bad>{_RANGE_END})", introduced, re.I):
        return Fact(pair["good"], sentence), Fact(pair["bad"], sentence)
    if only := re.fullmatch(rf"\^?\s*({KERNEL}|{_NEXT})\s*", introduced, re.I):
        good, _ = _compared_versions(mail)
        older, named = _version(good.value), _version(only[1])
        return (good if older and named and older < named else UNKNOWN), Fact(only[1], sentence)
    return _compared_versions(mail)


def _compared_versions(mail: MailText) -> tuple[Fact, Fact]:
    """Return the last good and the first bad version by the mail's words."""
    subject = mail.subject.translate(_QUOTES)
    texts = (subject, *(text for text in mail.sentences if LOSS.search(text)), *mail.sentences)
    since = _SINCE.search(subject)
    for text in texts[: _MOST // 2]:
        for pattern in _PAIR:
            pair = pattern.search(text)
            if pair is None:
                continue
            named = pair.groupdict()
            # "5.13 vs 5.14" says nothing of their order
            good, bad = _in_order(named["one"], named["other"]) if "one" in named else (named["good"], named["bad"])
            if good.lower() == bad.lower():
                continue
            if since and not _is_of(bad, since["bad"]):
                continue  # of another program
            if "good" in named and _WENT_BACK.search(text[: pair.start()]):
                good, bad = bad, good
            if bad[:1].isdigit() and good[:1].isalpha() and good[:1].lower() != "v":
                bad = f"{good.rsplit(' ', 1)[0]} {bad}"  # "from CentOS 6.5 to 8.4"
            return _precise(mail, Fact(good, text)), _precise(mail, Fact(bad, text))
    return _apart(texts) or _single_versions(texts)


_WENT_BACK = re.compile(r"\b(?:downgrad\w*|(?:went|going|go|switch\w*|roll\w*) back)\b.{0,20}\Z", re.I)
# What says, between two versions of a sentence, that one is compared with the other
_COMPARED = re.compile(r"\b(?:compared|previous|while|whereas|but)\b|\bto (?:more|over|about|\d)", re.I)


def _apart(texts: Sequence[str]) -> tuple[Fact, Fact] | None:
    """Return the older and the newer version of a sentence of a loss that names just two, and compares them."""
    for text in (text for text in texts if LOSS.search(text)):
        kernels = _kernels_in(text)
        if len(kernels) == 2 and _COMPARED.search(text[kernels[0].end(1) : kernels[1].start()]):
            good, bad = _in_order(kernels[0][1], kernels[1][1])
            if _version(good) and _version(bad) and _version(good) != _version(bad):
                return Fact(good, text), Fact(bad, text)
    return None


def _kernels_in(text: str) -> list[re.Match[str]]:
    """Return the kernel versions of a text, of its first few; what belongs to another program does not count."""
    versions = itertools.islice(_VERSION.finditer(text), _CLAUSES)
    return [match for match in versions if not _NOT_KERNEL.search(text[max(0, match.start() - 12) : match.start()])]


def _in_order(good: str, bad: str) -> tuple[str, str]:
    """Return two versions, the older one first."""
    older, newer = _version(good), _version(bad)
    return (bad, good) if older and newer and older > newer else (good, bad)


_CLAUSES = 20  # of a sentence, and versions of a clause
_WITHOUT = re.compile(r"\b(?:without|no|not) (?:any |a |the )?\w+", re.I)
_RUNS = re.compile(r"latest|tested|linux version|kernels?\b|includes|same result|also|still", re.I)


def _single_versions(texts: Sequence[str]) -> tuple[Fact, Fact]:
    """Return a good and a bad version that no sentence compares: by what is said beside each."""
    good = bad = before = UNKNOWN
    for text in texts:
        if since := _SINCE.search(text):
            bad = bad or Fact(since["bad"], text)
            before = before or Fact(f"before {since['bad'].lstrip('v')}", text)
        tells = LOSS.search(text) or _RUNS.search(text)
        for clause in re.split(r"[,;]| (?:but|while|whereas) ", text)[:_CLAUSES]:
            kernels = _kernels_in(clause)
            if kernels and _IS_GOOD.search(clause) and not LOSS.search(_WITHOUT.sub("", clause)):
                good = good or Fact(kernels[0][1], text)
            elif kernels and tells:
                bad = bad or Fact(kernels[0][1], text)
    if good.value.lower() == bad.value.lower():
        good = UNKNOWN
    return good or before, bad


def _precise(mail: MailText, fact: Fact) -> Fact:
    """Return the fact with the stable update that the mail gives elsewhere: 5.10.130 for 5.10, if there is only one."""
    if not re.fullmatch(r"v?\d\.\d+(?:\.[xy])?", fact.value):
        return fact
    series = re.escape(fact.value.lstrip("v").rstrip("xy.") if fact.value[-1] in "xy" else fact.value.lstrip("v"))
    longer = re.compile(rf"(?<![\w./])(v?{series}\.\d{{1,3}})(?![\w.]*\d/)")
    named = {match[1]: text for text in mail.sentences for match in longer.finditer(text)}
    return Fact(*next(iter(named.items()))) if len(named) == 1 else fact


# --- What was measured on two versions ---

_LINE = re.compile(rf"^[\s>*-]{{0,8}}(?:[a-z]\w* )?({KERNEL})(-[\w.+-]*)?\s*(?:[:|=]|\s)\s*(\S.*)$", re.I)
_FIGURE = re.compile(
    r"(?<![\w.,-])((?:\d+h)?\d+m(?:\d+(?:\.\d+)?s|\d\d)"
    r"|(?:\d+ ?h(?:ours?)? )?\d+ ?min(?:utes?)? \d+ ?s(?:ec(?:onds?)?)?|\d(?:[\d,]*\d)?(?:\.\d+)?k?)"
    rf"(?:\s?({_RATE}|{_TIME}))?(?![\w.])",
    re.I,
)
_SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d.,])")  # 2 487 746
_SPREAD = re.compile(r"\s*(?:±|\+-|\+/-).*")
_HEADER = re.compile(rf"^[^\d\n]{{0,40}}?({KERNEL})(?:-[\w.+-]*)?[\s|]+({KERNEL})(?:-[\w.+-]*)?(?![\w.])", re.I)
_EACH_WITH = re.compile(
    r"(?<![\d.,])(?P<old>\d[\d,]{0,20}(?:\.\d{1,9})?k?) ?(?P<unit>[a-z/%]{1,12})? (?:with|on|in|under) "
    rf"(?:(?:kernel|linux) )?(?P<good>{KERNEL})[;, ]{{1,3}}(?:(?:and|but) )?(?:only )?"
    r"(?P<new>\d[\d,]{0,20}(?:\.\d{1,9})?k?)(?: ?(?P=unit))? (?:with|on|in|under) "
    rf"(?:(?:kernel|linux) )?(?P<bad>{KERNEL})",
    re.I,
)
_Measured = tuple[str, str]  # a figure and its unit
_MOVED = 0.02  # of a figure: less is not a loss


@dataclass(frozen=True, slots=True)
class _Runs:
    """Figures of two versions: in lines that begin with them, or in the columns below them."""

    good: Fact
    bad: Fact
    magnitude: Fact
    change: float | None


def _two_versions(text: str) -> _Runs | None:
    """Return what lines or columns say of two versions, the older of them first; None if there are none."""
    lines = text.translate(_QUOTES).split("\n")[:_MOST]
    labelled = [(match[1], match[3], line) for line in lines if (match := _LINE.match(line[:_WIDEST]))]
    for (old, earlier, first), (new, later, second) in itertools.pairwise(labelled):
        if _SPACED.search(earlier) and _SPACED.search(later):  # one figure each, or several
            continue
        for before, after in zip(_figures(earlier), _figures(later), strict=False):
            if before[1] == after[1]:
                runs = _runs(old, new, before, after, f"{first.strip()} / {second.strip()}")
                if runs:
                    return runs
    if told := _EACH_WITH.search(" ".join(text.translate(_QUOTES).split())[:_LONGEST]):
        unit = told["unit"] or ""
        if runs := _runs(told["good"], told["bad"], (told["old"], unit), (told["new"], unit), told[0]):
            return runs
    return _in_columns(lines)


def _in_columns(lines: Sequence[str]) -> _Runs | None:
    """Return the first row with two figures below two versions that stand beside each other."""
    for number, line in enumerate(lines):
        header = _HEADER.match(line[:_WIDEST])
        if header is None:
            continue
        wide = "  " in line.strip() or "\t" in line
        heads = _cells(line, wide=wide)
        columns = len(heads) - next(place for place, head in enumerate(heads) if header[1] in head)
        for row in lines[number + 1 : number + 8]:
            cells = _cells(row, wide=wide)
            matches = [_FIGURE.fullmatch(_SPREAD.sub("", cell).strip()) for cell in cells[-columns:][:2]]
            if len(cells) < len(heads) or not all(matches):  # units, or names of several words, stand between them
                matches = list(_FIGURE.finditer(row[:_WIDEST]))
                if len(matches) != columns or _SPACED.search(row):
                    continue
            figures = [_figure_of(match) for match in matches if match]
            if len(figures) > 1 and (runs := _runs(header[1], header[2], figures[0], figures[1], row.strip())):
                return runs
    return None


def _cells(line: str, *, wide: bool) -> list[str]:
    """Return the cells of a row. `wide`: they stand two blanks apart, so that a head may hold several words."""
    return [cell for cell in re.split(r"\s{2,}|\t|\|" if wide else r"\s|\|", line[:_WIDEST].strip()) if cell.strip()]


def _runs(old: str, new: str, before: _Measured, after: _Measured, sentence: str) -> _Runs | None:
    first, last = _plain(before[0]), _plain(after[0])
    if old.lower() == new.lower() or abs(last - first) < _MOVED * first:
        return None
    if _in_order(old, new) != (old, new):
        old, new, before, after, first, last = new, old, after, before, last, first
    if not first:
        return None
    unit = f" {before[1]}" if before[1] else ""
    told = Fact(f"{before[0]}{unit} -> {after[0]}{unit}", sentence)
    return _Runs(Fact(old, sentence), Fact(new, sentence), told, 100 * (last - first) / first)


def _version(name: str) -> Version | None:
    """Return a kernel version as people write it: "6.12", "v6.12-rc2", "5.10.0"."""
    name = re.sub(r"-(?!rc).*|\.[xy]\Z", "", name.lower().lstrip("v").rstrip("+"))
    return parse_version(f"v{name.removesuffix('.0')}")


def _figures(text: str) -> list[_Measured]:
    """Return the figures that a line gives: the last with a unit, or a time in words, else all of them in order."""
    figures = [_figure_of(match) for match in _FIGURE.finditer(text)]
    timed = [figure for figure in figures if figure[1] or "m" in figure[0] or figure[0].endswith("s")]
    return [timed[-1]] if timed else figures


def _figure_of(match: re.Match[str]) -> _Measured:
    return match[1], match[2] or ""


def _plain(figure: str) -> float:
    """Return a figure as a number; a time like 3m51s, or 6 min 10 s, in seconds."""
    if time := re.fullmatch(r"(?:(\d+) ?h[a-z]* ?)?(\d+) ?m(?:in[a-z]*)? ?(\d+(?:\.\d+)?) ?(?:s[a-z]*)?", figure, re.I):
        return 3600 * int(time[1] or 0) + 60 * int(time[2]) + float(time[3])
    return _value(figure)


# --- How much ---

_NUMBER = r"(?<![\d.,])\d{1,9}(?:[.,]\d{1,6})?k?"  # never from the middle of "1.250.000"
_ABOUT = r"(?:(?:about|around|roughly|approx(?:\.|imately)?|some|nearly|almost|only|just|over) ){0,2}[~≈]?"
_FROM_TO = re.compile(
    rf"(?:(?:from|was|at|of) {_ABOUT})?\s*~?(?P<old>{_NUMBER})\s?(?P<unit>{_UNIT})?\s*(?:->|to|down to"
    rf"|=>)\s*{_ABOUT}(?P<new>{_NUMBER})\s?(?P<unit2>{_UNIT})?(?!\w|\.\d|\s?(?:times|x)\b)",
    re.I,
)
_INSTEAD = re.compile(
    rf"(?P<new>{_NUMBER})\s?(?P<unit>{_UNIT})? (?:instead of|rather than|where it was|\(was) (?:the )?{_ABOUT}"
    rf"(?P<old>{_NUMBER})\s?(?P<unit2>{_UNIT})?(?!\w|\.\d)",
    re.I,
)
_SAME_UNIT = re.compile(
    rf"from {_ABOUT}(?P<old>{_NUMBER}) ?(?P<unit>[a-z][a-z/]{{1,11}}) (?:down )?to {_ABOUT}(?P<new>{_NUMBER})"
    r" ?(?P<unit2>(?P=unit))(?![\w/])",
    re.I,
)
_WHOLE = 100  # per cent: nothing loses more
_TENS = ("ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORDS = {word: 10 * number for number, word in enumerate(_TENS, 1)}
_STATED = re.compile(
    r"(?P<number>(?<![\w.])~?\d{1,3}(?:\.\d{1,2})?(?:(?:\s[-~]\s|[-~])\d{1,3}(?:\.\d+)?)?|"
    rf"{'|'.join(_TENS)})\s?(?:%|per ?cent)(?!\s?(?:of )?(?:cpu|busy|idle|utili[sz]|usage|load|full))",
    re.I,
)
_TIMES = re.compile(
    r"\b(?:\d{1,3}(?:\.\d+)?\s?(?:-|to)\s?)?\d{1,3}(?:\.\d+)?\s?(?:x|times)"
    r" (?:slower|longer|worse|lower|higher|more|increase|as (?:long|slow))"
    r"|\b(?:two|three|four|five|six|ten) ?times (?:slower|longer|worse|as (?:long|slow))|\btwice as (?:long|slow)\b",
    re.I,
)
_BEFORE_AFTER = re.compile(
    rf"(?P<old>{_NUMBER})\s?(?P<unit>{_UNIT})? (?:before|without|with the revert"
    rf"|prior)\b.{{0,120}}?(?P<new>{_NUMBER})\s?(?P<unit2>{_UNIT})? (?:after|with)\b"
    rf"|good\b.{{0,40}}?(?P<old2>{_NUMBER})\s?(?P<unit3>{_UNIT})?\b.{{0,60}}?\bbad\b.{{0,40}}?(?P<new2>{_NUMBER})"
    rf"\s?(?P<unit4>{_UNIT})?(?!\w|\.\d)",
    re.I,
)
_DURATION = r"(?:\d+h ?)?(?:\d+m ?)?\d+(?:\.\d+)?s\b|\d+(?:\.\d+)? ?(?:ms|seconds?|secs?|minutes?|mins?|hours?)"
_USUALLY = re.compile(rf"\b(?:usually|normally|used to|before)\b.{{0,80}}?(?P<old>{_DURATION})", re.I)
_NOW = re.compile(rf"\b(?:now|waited|takes|over|more than|after)\b.{{0,60}}?(?P<new>{_DURATION})", re.I)
_RANGE = rf"(?:{_NUMBER}-)?{_NUMBER}"  # "97-110 MB/s" counts as its second figure
_RATED = re.compile(rf"(?<!-)({_RANGE})\s?({_RATE})(?!\w)", re.I)
_FELL_TO = re.compile(
    r"\b(?:dropp?(?:ed|s)|fell|falls|decreased|degraded|went down|goes down|reduced) (?:down )?to"
    rf" {_ABOUT}(?P<new>{_RANGE})\s?(?P<unit>{_RATE})(?!\w)",
    re.I,
)
_LABELS = re.compile(
    rf"\b(?:before|good|without)\b[^.:]{{0,40}}: *~?(?P<old>{_NUMBER})\s?(?P<unit>{_UNIT})(?!\w).{{0,160}}?"
    rf"\b(?:after|bad|with)\b[^.:]{{0,40}}:[^.]{{0,40}}?~?(?P<new>{_NUMBER})\s?(?P=unit)(?!\w)",
    re.I,
)
_EXTRA = re.compile(r"delay\w*\W{0,3}\(?(?P<more>~?\d+\+?\s?(?:ms|s|secs?|seconds?|minutes?))", re.I)
_RISES = re.compile(r"increas|longer|higher|more (?:cpu|time)|rise|latency|delay|overhead|load", re.I)
# What benchmarks print of a run: pattern, name of the figure, whether more is better
_PRINTED = (
    (re.compile(r"\biops[=: ]+(\d+(?:\.\d+)?k?)()", re.I), "IOPS", True),
    (re.compile(r"\bbw[=: ]+(\d+(?:\.\d+)?)([kmgt]i?b/s)", re.I), "", True),
    (re.compile(r"\[ *(?:\d+|SUM)\]\s+0\.0+ ?- ?\d\S* +sec .{0,40}?(\d+(?:\.\d+)?) ([KMG]?bits/sec)"), "", True),
    (re.compile(r"\bcopied, [\d.,]+ s(?:econds)?, (\d+(?:\.\d+)?) ([kMG]i?B/s)"), "", True),
    (re.compile(r"\breads:\s+\d+ MB in\s+[\d.]+ sec\w* = +(\d+(?:\.\d+)?) ([kMG]B/s(?:ec)?)"), "", True),
    (re.compile(r"\bReceiving objects: .{0,80}\| (\d+(?:\.\d+)?) ([KMG]iB/s)"), "", True),  # of git
    (re.compile(r"(?:\A|\s)(\d+\.\d+) (?:\+- \d+\.\d+ )?(seconds) time elapsed"), "", False),  # of perf stat
    (re.compile(r"^real\s+((?:\d+h)?\d+m ?\d+[.,]\d+s)()|\b((?:\d+h)?\d+m\d+[.,]\d+s) real"), "", False),
)
_RUNS_SHOWN = 6
_URL = re.compile(r"<?https?://\S+")


def _magnitude(mail: MailText, runs: _Runs | None) -> tuple[Fact, float | None]:
    """Return how much was lost, as the mail says it, and the metric's own change in per cent."""
    subject = mail.subject.translate(_QUOTES)
    lossy = [text for text in mail.sentences if LOSS.search(text)]
    if pair := _pair(subject):
        return pair
    if runs and runs.magnitude:
        return runs.magnitude, runs.change
    if pair := next(filter(None, map(_pair, lossy)), None) or _fallen(mail) or _of_mmtests(mail):
        return pair
    for text in mail.sentences:
        if pair := _pair(text):
            return pair
    if times := _TIMES.search(subject):
        return Fact(times[0], subject), None
    for text in (subject, *lossy):
        if stated := _stated(text):
            return stated
    return _in_other_words(mail)


def _in_other_words(mail: MailText) -> tuple[Fact, float | None]:
    """Return a loss that no two figures and no percentage give: "3x slower", "usually 1m20s, now 20 minutes"."""
    for text in mail.sentences:
        if times := _TIMES.search(text):
            return Fact(times[0], text), None
    usual = next(((match["old"], text) for text in mail.sentences if (match := _USUALLY.search(text))), None)
    for text in mail.sentences if usual else ():
        new = next((now["new"] for now in _NOW.finditer(text) if usual and now["new"] != usual[0]), "")
        if usual and new:
            return Fact(f"{usual[0]} -> {new}", f"{usual[1]} {text}"), None
    for text in (mail.subject.translate(_QUOTES), *mail.sentences):
        if extra := _EXTRA.search(text):
            return Fact(f"+{extra['more'].strip()}", text), None
    return _two_runs(mail)


def _fallen(mail: MailText) -> tuple[Fact, float] | None:
    """Return what a figure fell to, from another of the same unit that the mail gave before: "I got 39.6 Gb/s. … After
    the upgrade it dropped to about 20 Gb/s."; or what is labelled so: "Before: 6150 MiB/s … After: 4985 MiB/s".
    """
    text = " ".join(mail.text.translate(_QUOTES).split())
    rates = list(itertools.islice(_RATED.finditer(text), _MOST))
    labelled, fallen = (itertools.islice(pattern.finditer(text), _CLAUSES) for pattern in (_LABELS, _FELL_TO))
    for match in itertools.chain(labelled, fallen):
        groups, new = match.groupdict(), _upper(match["new"])
        unit = groups["unit"]
        earlier = (rate[1] for rate in rates if rate.end() <= match.start("new") and rate[2].lower() == unit.lower())
        old = groups.get("old") or next((figure for figure in earlier if _upper(figure) > new), "")
        if old and _upper(old) not in (0, new):
            return Fact(f"{old} {unit} -> {match['new']} {unit}", match[0]), 100 * (new - _upper(old)) / _upper(old)
    return None


# A row of mmtests' compare-kernels: "Hmean  disk-25  125000.00 ( 0.00%)  93421.05 * -25.26%*"; a minus is a loss
_MMTESTS = re.compile(
    r"[A-Z]\w{1,15} {1,12}\S{1,40} {1,20}(?P<old>\d{1,15}\.\d\d) \( {1,4}0\.00%\)"
    r" {1,20}(?P<new>\d{1,15}\.\d\d) [(*] {0,4}(?P<better>-?\d{1,9}\.\d\d)%[)*]"
)


def _of_mmtests(mail: MailText) -> tuple[Fact, float] | None:
    """Return the largest loss in a comparison by mmtests, which marks what is significant with asterisks."""
    rows = [match for line in mail.text.split("\n")[:_MOST] if (match := _MMTESTS.match(line[:_WIDEST].strip()))]
    lost = [row for row in rows if float(row["better"]) < 0 and float(row["old"])]
    if not lost:
        return None
    row = min(lost, key=lambda row: ("*" not in row[0], float(row["better"])))
    old, new = float(row["old"]), float(row["new"])
    return Fact(f"{row['old']} -> {row['new']}", " ".join(row[0].split())), 100 * (new - old) / old


def _stated(sentence: str) -> tuple[Fact, float] | None:
    """Return the percentage that a sentence states beside a loss: "a 3% degradation", "dropped by thirty percent"."""
    text = _URL.sub("", sentence)
    for match in _STATED.finditer(text):
        around = text[max(0, match.start() - 60) : match.end() + 60]
        if not LOSS.search(around):
            continue
        number = re.sub(r"\s*[-~]\s*", "-", match["number"].lower().lstrip("~"))
        value = float(_WORDS.get(number, 0)) or float(number.rpartition("-")[2])
        falls = re.search(r"drop|decreas|fell|degrad|regress|slow", around, re.I)
        rises = value > _WHOLE or (_RISES.search(around) and not falls)  # "300% slower" is a time
        shown = str(_WORDS.get(number, number))
        return Fact(f"{'+' if rises else '-'}{shown} %", sentence), value if rises else -value
    return None


def _two_runs(mail: MailText) -> tuple[Fact, float | None]:
    """Return what a benchmark printed of two runs that are pasted, or of two halves of them; the worse one is new."""
    for pattern, name, more_is_better in _PRINTED:
        printed = [(match, text) for text in mail.sentences if (match := pattern.search(text))]
        if not 2 <= len(printed) <= _RUNS_SHOWN:
            continue
        (first, sentence), (second, other) = printed[0], printed[len(printed) // 2]
        runs = [(found[1] or found[3], found[2] or name) for found in (first, second)]
        values = [_plain(figure.replace(",", ".")) if "m" in figure else _value(figure) for figure, _ in runs]
        if runs[0][1] != runs[1][1] or not min(values) or values[0] == values[1]:
            continue
        if (values[0] < values[1]) is more_is_better:
            runs, values = runs[::-1], values[::-1]
        (old, unit), (new, _) = runs
        suffix = f" {unit}" if unit else ""
        sentences = f"{sentence} {other}"
        return Fact(f"{old}{suffix} -> {new}{suffix}", sentences), 100 * (values[1] - values[0]) / values[0]
    return UNKNOWN, None


def _pair(text: str) -> tuple[Fact, float | None] | None:
    """Return the two figures of a sentence that says what became of one."""
    matches = (pattern.finditer(text) for pattern in (_SAME_UNIT, _FROM_TO, _BEFORE_AFTER, _INSTEAD))
    for match in itertools.chain.from_iterable(matches):
        groups = match.groupdict()
        old, new = groups.get("old") or groups.get("old2"), groups.get("new") or groups.get("new2")
        unit = next((groups[name] for name in ("unit2", "unit", "unit4", "unit3") if groups.get(name)), "")
        units = {groups[name].lower() for name in ("unit", "unit2", "unit3", "unit4") if groups.get(name)}
        if not old or not new or old == new or unit == "%" or len(units) > 1:
            continue
        before = text[: match.start("old" if groups.get("old") else "old2")]
        if re.match(r"\d\.\d{1,2}(?:\.|\Z)", old) and (not unit or _IN_VERSION.search(before)):
            continue  # versions
        if _IS_DISTRO.search(before):
            continue
        if not unit and not (LOSS.search(text) or groups.get("old2")):
            continue
        first, last = _value(old), _value(new)
        change = 100 * (last - first) / first if first else None
        suffix = f" {unit}" if unit else ""
        return Fact(f"{old}{suffix} -> {new}{suffix}", text), change
    return None


_IN_VERSION = re.compile(r"\d\S* ?[\w/]+ (?:in|on|with|under) (?:kernel |linux )?\Z", re.I)  # "from 500k IOPS in 6.11"


def _upper(figures: str) -> float:
    return _value(figures.rpartition("-")[2])


def _value(number: str) -> float:
    """Return a figure as a number: "1,250" is a thousand and more, "12,5" is not."""
    is_decimal = re.fullmatch(r"\d+,\d{1,2}k?", number, re.I)
    plain = number.lower().replace(",", "." if is_decimal else "")
    return float(plain.removesuffix("k")) * (1000 if plain.endswith("k") else 1)


_QUANTITY = re.compile(  # "4k" is a size within a name, and a figure at its beginning
    r"(?<![\w/])((?:(?!(?:a|an|the|of|in|on|our|my|we|i|and|or|with|to|for|is|are|that|this|its?|see|seen|seeing"
    r"|some|any|by|from|when|while|little|less|more|extra|average|mean|consistent\w*|achieved|sharp|weird|very|much"
    r"|significant\w*|huge|severe\w*|serious\w*"
    r"|major|minor|massive|dramatic\w*|measurable|noticeable|visible|user\S*-visible|possible|potential|kernel|linux"
    r"|good|better|best|bad|worse"
    r"|poor|slow\w*|fast\w*|low\w*|high\w*|degraded|reduced|decreased|improved|overall|same|expected|terrible"
    r"|running|showing|getting|having|experienc\w*|report\w*|noticed?|observed?|regression|degradation|drops?"
    r"|cause[sd]?|at|around|score|was|were|if|both|affect\w*|impact\w*)\b|\w+/s(?:ec)? )"
    r"(?:\d{1,4}(?:st|nd|rd|th|[kmg]b?|-[a-z]{1,8}) (?!(?:iops|[ftq]ps|throughput|bandwidth)\b))?"
    r"[^\W\d][\w/+-]{1,19} (?:\d{1,3}[km] )?){0,3})"
    r"\b(iops|throughput|bandwidth|latenc(?:y|ies)|speeds?|scores?|delay|[ftq]ps|frames per second|battery life"
    r"|(?:boot|start|startup|run|execution|compil\w+|build|elapsed|response|load\w*|resume|suspend|completion|wall|copy"
    r"|mount|query|access|processing|rebuild|sync|sys(?:tem)?) times?(?! out\b)|runtime"
    r"|(?:cpu|i/o|power|battery) (?:usage|load|utili[sz]ation|consumption|draw|time|overhead)"
    r"|(?:transfer|transmit|transaction|packet|data|request|bit|write|read|frame) ?rates?"
    r"|(?:operations|transactions|requests|packets|queries|messages) per second|performance)\b(?! ?=)",
    re.I,
)


def _metric(mail: MailText, magnitude: Fact) -> tuple[Fact, Fact]:
    """Return the metric and the benchmark, in the mail's own words."""
    lossy = [text for text in mail.sentences if LOSS.search(text)]
    told = (mail.subject, *([magnitude.sentence] if magnitude else ()), *lossy)
    suites = (Fact(match[1], text) for text in (*told, *mail.sentences) if (match := SUITES.search(text)))
    quantities = itertools.chain(
        itertools.chain.from_iterable(map(_quantities, told)),
        # "XFS performance" is one in a subject of which nobody says more
        (Fact(match[0], mail.subject) for match in _QUANTITY.finditer(mail.subject) if match[1]),
        itertools.chain.from_iterable(map(_quantities, mail.sentences)),
    )
    unit = re.search(rf" ({_UNIT}) ->", magnitude.value, re.I)
    of_time = unit and re.fullmatch(rf"{_TIME}|%", unit[1], re.I)
    by_unit = Fact(unit[1], magnitude.sentence) if unit and not of_time else UNKNOWN
    return next(quantities, by_unit), next(suites, UNKNOWN)


def _quantities(text: str) -> Iterator[Fact]:
    return (Fact(match[0], text) for match in _QUANTITY.finditer(text) if match[2].lower() != "performance")
