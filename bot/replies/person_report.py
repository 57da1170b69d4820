"""Does a mail report a performance regression, and what does it say of it? Pure.

People report slowdowns in plain words, on the list of the subsystem. `read_report` takes the first mail of a thread
and gives its facts, each with its sentence, and a score: how much the mail looks like such a report. From OFFERED on
it is offered in the review queue; a tracker command makes it a report. What is no first mail (an answer, a patch, a
robot's mail) or tells of something else than speed (a crash, a deadlock, a failed build) scores nothing.

A fact is taken only where the words around it say what it is: a sha is the culprit if its sentence blames it, a
version is bad if it is the later of two that are compared, or if something is slow there. Whatever else a mail names
stays unknown. The words were found in first mails: of 14 threads of 2019-2025, and of 64 others since 2002.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bot.mail.message import ParsedMail
from bot.mail.patches import bare_title, is_answer, is_posting
from bot.replies.commands import Word
from bot.replies.reading import Reading
from bot.replies.sender_kind import SenderKind
from tracker.domain.person_report import MAX_SENTENCE, MAX_VALUE, UNKNOWN, Fact, PersonReport
from tracker.domain.versions import Version
from tracker.domain.versions import parse as parse_version

OFFERED = 7  # the score from which a mail is offered; `is_performance` of one that a command names
_LONGEST, _MOST, _WIDEST = 40_000, 300, 700  # characters of a mail, sentences, characters of a sentence

# --- Words ---

_LOSS = re.compile(
    r"\b(?:perf(?:ormance)?[ -])?(?:regress\w*|degrad\w*|slow(?:er|s|ed|ing)?(?:[- ]?downs?)?\b|drop(?:s|ped|ping)?\b"
    r"|decreas\w*|delay\w*|worse|reduc(?:ed|tion)\b|declin\w+|lag(?:s|ging|gy)?\b|stutter\w*|fell\b|loss\b|longer\b"
    r"|sluggish\w*|crawl\w*|glacial\w*|halved|half (?:as|of|the)|down (?:by )?~?\d|up by\b|up from \d|collaps\w*"
    r"|tank(?:s|ed|ing)\b|plummet\w*"
    r"|lose[sd]?\b|lost (?:about |around |up to )?~?\d|lower\b|(?:\dx|times|twice|double) as (?:long|slow"
    r"|expensive)|fewer \w+/s|as long\b.{0,30}\bas before)"
    r"|(?<![\w.])-(?:\d{1,2}(?:\.\d)?\s?%|\d/\d\b)|\d (?:hours?|minutes?|days?) instead of \d",
    re.I,
)
# Bad in itself, which is a loss only beside what it was before.
_POOR = re.compile(
    r"\b(?:bad|poor|low|terrible|awful|horrible|abysmal|dismal) (?:[\w/-]+ ){0,2}"
    r"(?:performance|perf|throughput|speeds?|bandwidth|iops|results?)\b",
    re.I,
)
_STRONG = re.compile(
    r"\bregress\w*|\bdegrad\w*|\bslow-?downs?\b|\b(?:performance|perf|speed|iops|throughput) drops?\b", re.I
)
_SPEED = re.compile(
    r"\bperformance\b|\bthroughput\b|\blatenc(?:y|ies)\b|\bbandwidth\b|\biops\b|\b[kmgt]i?b(?:it|yte)?s?/s(?:ec)?\b"
    r"|\bslow(?:er|ly|ness|down)?\b|\bspeeds?\b|\bdelays?\b|\bp(?:50|9\d)\b|\b(?:ops|operations|requests|transactions|frames|packets)"
    r"(?:/s| per second)|\bbenchmark\w*|\bscores?\b|\b(?:boot|start-?up|run|execution|wall|elapsed|compile|build"
    r"|completion"
    r")[ -]?times?\b|\b(?:takes?|took|taking|needs?) (?:[\w.]+ ){0,2}(?:longer|as long)\b|\b(?:fps|[tq]ps"
    r"|[kmg]pps)\b|\d (?:hours?"
    r"|minutes?) instead of \d|\bstutter\w*|\bpower (?:draw|consumption|usage)\b|\bbattery life\b|\bcpu (?:usage"
    r"|time|load)\b",
    re.I,
)
# What is wrong if it isn't speed. Such a mail needs figures of speed as well.
_BROKEN = re.compile(
    r"\b(?:crash\w*|panic\w*|oops(?:es)?|use-after-free|null pointer|deadlock\w*|lock-?ups?|corrupt\w*|data loss|oom"
    r"|segfault\w*|rcu\w* (?:detected )?stall\w*|hung task\w*|hangs?\b(?! off)|unbootable|fails? to (?:boot|build"
    r"|compile|mount)"
    r"|does(?: not|n't) (?:boot|build|compile|work)|can(?: ?not|'t) (?:boot|build|compile|mount|connect|load)"
    r"|(?:build|compile) (?:fail\w*|error\w*)|warning: cpu|kasan|syzbot"
    r"|returns? -?e(?:inval|io|exist|nolck|busy|perm)|infinite loop|memory leak\w*|leaks?)\b",
    re.I,
)
_SLOWDOWN = re.compile(r"\bperf(?:ormance)? (?:regression|degradation)|\bslow-?down", re.I)
_MARKED = re.compile(r"\[[^\]]{0,30}\b(?:regression|perf(?:ormance)?)\b[^\]]{0,60}\]", re.I)
_OF_SPEED = re.compile(r"performance|slow|speed", re.I)
_MOST_CHANGE = 1_000_000.0  # per cent
_MANY = 3  # words of what is broken
_SUITES = re.compile(
    r"(?<![\w.@/-])(fio|unixbench|hackbench|iperf3?|netperf|sockperf|uperf|pgbench|sysbench|stress-ng|dbench"
    r"|tbench|iozone"
    r"|bonnie\+\+"
    r"|kernbench|phoronix|will-it-scale|specjbb\w*|spec ?cpu\w*|speccpu|memtier\w*|redis-benchmark|aim7|aim9"
    r"|vm-scalability"
    r"|filebench|fs_?mark|lmbench|stream|cyclictest|schbench|rt-app|ycsb|hammerdb|tpc-?[ch]|mysqlslap|postmark"
    r"|blogbench"
    r"|compilebench|ior|mdtest|nuttcp|qperf|ib_(?:read|write|send)_(?:bw|lat)|perf bench|perftest|wrk2?|nginx|geekbench"
    r"|glmark2|glxgears|vdbench|xfstests?|db_bench|rocksdb|cassandra|kafka|dd|fstime|hdparm|ebizzy|hyperfine|7-?zip)\b",
    re.I,
)
# What the subject of a report has: the prefilter of archives passes no other, so that it knows no words of its own.
SUBJECT_WORDS = "|".join(
    (
        _LOSS.pattern,
        _POOR.pattern,
        _SPEED.pattern,
        _SUITES.pattern,
        r"\bperf\b|bisected|\bstall|high load|\d\S* ?-> ?\d",
    )
)
_QUANTITY = re.compile(
    r"\b((?:(?!(?:a|an|the|of|in|on|our|my|we|i|and|or|with|to|for|is|are|that|this|its?|see|seen|seeing|some|any"
    r"|by|from|when|while|consistent\w*|achieved|sharp|weird|very|much|significant\w*|huge|severe\w*|serious\w*"
    r"|major|minor|massive|dramatic\w*|measurable|noticeable|visible|user\S*-visible|good|better|best|bad|worse"
    r"|poor|slow\w*|fast\w*|low\w*|high\w*|degraded|reduced|decreased|improved|overall|same|expected|terrible"
    r"|running|showing|getting|having|experienc\w*|report\w*|noticed?|observed?|regression|degradation|drops?"
    r"|cause[sd]?|at|around|score|was|were|if|both|affect\w*|impact\w*)\b)[\w/+-]{2,20} ){0,3})"
    r"\b(iops|throughput|bandwidth|latency|speed|scores?|delay|boot time|start(?:up)? time|run ?time"
    r"|execution time|performance)\b(?! ?=)",
    re.I,
)
_MACHINE = re.compile(
    r"\b(?:(?:\w+[ -])?socket )?(?:AMD (?:EPYC|Ryzen|Opteron|Threadripper)(?: \w*\d\w*)?"
    r"|Intel(?:\(R\))? (?:Xeon|Core|Atom)(?:\(R\))?(?: (?:Gold|Silver|Platinum|Bronze|Max|Ultra"
    r"|[\w@-]*\d[\w@-]*)){0,3}|Raspberry Pi \w+|Xeon(?: \w+){1,2}"
    r"|[a-z]\w{1,4}\.(?:\d*x?large|metal)(?: AWS\b)?(?: EC2\b)?|Ampere Altra|Graviton ?\d|POWER\d+|ThinkPad \w+"
    r"|Supermicro \S+|Dell (?:PowerEdge )?\w*\d\w*|HPE? (?:ProLiant )?\w*\d\w*)",
)

# --- The reading ---


@dataclass(frozen=True, slots=True)
class _Mail:
    """The subject and the sentences of a mail. `text`: its own text, with its lines."""

    subject: str
    text: str
    sentences: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return (self.subject, *self.sentences)


_PULL = re.compile(r"\s*\[(?:(?:git )?pull|ann(?:ounce)?)\b", re.I)
FORWARDED = re.compile(r"\A\s*fwd?:\s*", re.I)  # by who keeps a distribution's bugs, say


def read_report(reading: Reading) -> PersonReport | None:
    """Return what a mail reports, or None if it is no first mail of a person: an answer, a patch, a robot's mail."""
    mail = reading.mail
    if reading.kind is not SenderKind.PERSON or not mail.message_id or not mail.author.email:
        return None
    subject = FORWARDED.sub("", mail.subject, count=1)
    if is_answer(subject) or mail.ancestors or is_posting(subject) or _PULL.match(subject):
        return None
    own = _mail(reading)
    culprit, title, author, others = _culprit(own, reading)
    runs = _two_versions(own.text)
    good, bad = _versions(own, reading)
    if runs and (good.sentence != own.subject.translate(_QUOTES) or runs.good.value.startswith(good.value)):
        good, bad = runs.good, runs.bad  # unless the subject compares others
    if culprit and not good:
        good = Fact("before the commit", culprit.sentence)
    magnitude, change = _magnitude(own, runs)
    metric, suite = _metric(own, magnitude)
    machine = _machine(own)
    report = PersonReport(
        reporter=mail.author.name or mail.author.email,
        culprit=_short(culprit),
        culprit_title=_short(title),
        culprit_author=_short(author),
        suite=_short(suite),
        metric=_short(metric),
        magnitude=_short(magnitude),
        change_pct=_bounded(change),
        good=_short(good),
        bad=_short(bad),
        machine=_short(machine),
        other_culprits=others,
    )
    signs = dict(_signs(own, report, reading))
    return replace(report, score=max(0, sum(signs.values())), signs=tuple(signs))


def is_performance(report: PersonReport) -> bool:
    """Whether it tells of speed, so that a command may make it a report: `#regzbot` is used for crashes, too."""
    return "speed" in report.signs and "something is broken" not in report.signs


def _machine(mail: _Mail) -> Fact:
    """Return the machine: what a line that begins with that word says, else a model that is known."""
    for text in mail.sentences:
        if labelled := _LABELLED.match(text):
            return Fact(labelled[1].strip(), text)
    return next((Fact(match[0].strip(), text) for text in mail.all if (match := _MACHINE.search(text))), UNKNOWN)


def culprit_named(reading: Reading) -> tuple[Fact, Fact]:
    """Return sha and title of the commit that a later mail says a bisection found; unknown if it names none."""
    own = _mail(reading)
    sha, title, _, _ = _culprit(own, reading)
    if not (_BISECTED.search(sha.sentence) or _BISECT_SAYS.search(own.text)):
        return UNKNOWN, UNKNOWN
    return _short(sha), _short(title)


_BISECTED = re.compile(r"bisect|first bad|\bintroduced(?:: | by )", re.I)


def is_commanded(reading: Reading, report: PersonReport) -> bool:
    """Whether a command in the mail itself makes it a report: `report` always, `introduced` if it tells of speed."""
    words = {command.word for command in reading.commands.good if not command.of_parent}
    return Word.REPORT in words or (Word.INTRODUCED in words and is_performance(report))


def subsystem_by_title_or_list(report: PersonReport, mail: ParsedMail) -> str:
    """Return the subsystem: what the culprit's title begins with, else the name of the list that it was sent to."""
    prefix, colon, _ = report.culprit_title.value.partition(":")
    if colon and " " not in prefix:
        return prefix.lower()
    names = (address.email.partition("@")[0] for address in mail.recipients)
    lists = [name for name in names if re.fullmatch(r"linux-[\w-]+|[\w-]+-devel|netdev|io-uring|cgroups|bpf|x86", name)]
    chosen = next((name for name in lists if name not in ("linux-kernel", "linux-stable")), "")
    return chosen.removeprefix("linux-").removesuffix("-devel")


def _signs(mail: _Mail, report: PersonReport, reading: Reading) -> Iterator[tuple[str, int]]:
    """Yield what speaks for and against a report, and how much; nothing if no loss, or no speed, is spoken of."""
    speed = [text for text in mail.all if _SPEED.search(text) or (_SUITES.search(text) and _LOSS.search(text))]
    if not speed or not any(_LOSS.search(text) or _POOR.search(text) for text in mail.all):
        return
    yield "speed", 1
    if any(_LOSS.search(text) or _POOR.search(text) for text in speed):
        yield "a loss of speed", 2
    if _SLOWDOWN.search(mail.subject):
        yield "a slowdown in the subject", 3
    elif _STRONG.search(mail.subject) or (_LOSS.search(mail.subject) and (_SPEED.search(mail.subject) or report.suite)):
        yield "a regression in the subject", 2
    elif _LOSS.search(mail.subject) or _SPEED.search(mail.subject):
        yield "speed in the subject", 1
    if _MARKED.search(mail.subject):
        yield "marked in the subject", 1
    facts = (
        ("a figure", report.magnitude, 2),
        ("a culprit", report.culprit, 2),
        ("a version", report.bad, 1),
        ("two versions", report.good and report.bad, 1),
        ("a benchmark", report.suite, 1),
    )
    yield from ((name, points) for name, fact, points in facts if fact)
    if any(command.word in (Word.INTRODUCED, Word.REPORT) for command in reading.commands.good):
        yield "a tracker's command", 1
    broken = len(_BROKEN.findall(" ".join(mail.all)))
    in_subject = _BROKEN.search(mail.subject) and not _OF_SPEED.search(mail.subject)
    if in_subject or (broken >= _MANY and broken > len(speed)):
        yield "something is broken", -5


# Control characters, and what reorders text; digits of other scripts count as letters.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")


def _mail(reading: Reading) -> _Mail:
    text = _plain_text(reading.own_text[:_LONGEST])
    return _Mail(" ".join(_plain_text(reading.mail.subject).split())[:_WIDEST], text, tuple(_sentences(text)))


def _plain_text(text: str) -> str:
    return _OTHER_DIGIT.sub("?", _CONTROLS.sub(" ", text))


def _bounded(change: float | None) -> float | None:
    """Return a change that is possible; None for one that no database holds."""
    return change if change is not None and abs(change) < _MOST_CHANGE else None


def _short(fact: Fact) -> Fact:
    return Fact(fact.value[:MAX_VALUE], fact.sentence[:MAX_SENTENCE]) if fact else UNKNOWN


_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?](?=\s+[A-Z0-9\"'(#`-]|\s*\Z)")
_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "’": "'", "‘": "'", "→": "->", "–": "-", "\u00a0": " ", "`": ""})


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, paragraph by paragraph; a row of a table or a log is one, too."""
    count = 0
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [" ".join(line.split()) for line in paragraph.translate(_QUOTES).split("\n")]
        joined, begun = [], ""
        for line in filter(None, lines):
            alone = re.match(r"[\[$#|+*>=]|\d[\d.]*[:)]? |[\w ]{1,30}:|- ", line)
            if begun and alone:
                joined.append(begun)
                begun = ""
            begun = f"{begun} {line}".strip()
        for block in (*joined, begun):
            start = 0
            for end in (*(match.end() for match in _END.finditer(block)), len(block)):
                if sentence := block[start:end].strip():
                    yield sentence[:_WIDEST]
                    count += 1
                start = end
            if count > _MOST:
                return


# --- The culprit ---

_SHA = r"(?=[0-9a-f]{0,39}[a-f])(?=[0-9a-f]{0,39}\d)[0-9a-f]{8,40}"
_SHORT = r'(?<=commit )(?=[0-9a-f]{0,6}[a-f])(?=[0-9a-f]{0,6}\d)[0-9a-f]{7}(?= ?\(")'  # with its title
_NAMED = re.compile(
    rf"(?<![\w./=-])(?:commit[: ]+)?\[?({_SHA}|{_SHORT})\]?(?![\w/-])"
    r"""(?:\s*\(\s?"(.{3,160}?)"\s?\)|\s*\((.{3,160}?)\)(?=\W|\Z)|\s*[,:]?\s*"([^"]{8,160})")?""",
    re.I,
)
_BLAMES = re.compile(
    r"bisect\w*|first bad|caus(?:ed?|es|ing)\b|introduc\w+|\bsince\b|\bafter (?:the )?commit|follow(?:ing|s"
    r"|ed) commit|culprit"
    r"|regress\w*|\bslow\w*|revert\w*|suspect\w*|responsible|result(?:s|ed|ing) in|\bdue to\b|offending|blam\w+"
    r"|pinpoint\w*"
    r"|point(?:s|ed|ing)? (?:to|at|out)|found that|track\w* (?:it )?down|narrow\w*|drops? the|\bby commit\b"
    r"|guilty|traced",
    re.I,
)
_CLEARS = re.compile(
    r"\b(?:resolved?|solved?|fix(?:ed|es)?(?! my)|depends? on|based on|on top of|backport\w*|applied|tip|head"
    r"|as a? ?(?:master|base))\b",
    re.I,
)
_FOOTNOTE = re.compile(r"\[\d{1,2}\]")
_NOTE_BLAMES = re.compile(r",? (?:which |that )?(?:has |is )?(?:introduc|caus|regress|slow|the first bad)\w*", re.I)
_TRIED = re.compile(r"\brevert\w*|\btried\b|\bappl(?:y|ied|ying)\b|\bwithout\b|\bback(?:ed|ing) out\b", re.I)
_NO_CURE = re.compile(r"\b(?:did|does)(?:n't| not) (?:resolve|help|fix|cure|solve|change)\b", re.I)
_BLOCK = re.compile(
    rf"^[ >]{{0,4}}commit ({_SHA})[^\n]{{0,80}}\n(?:[ >]*Merge:[^\n]*\n)?[ >]{{0,8}}Author:\s*([^\n]{{3,120}})"
    rf"\n(?:[ >]{{0,8}}(?:[A-Z]\w+Date|Date):[^\n]*\n)?"
    r"(?:\s*\n)?\s*(\S[^\n]{5,160})",
    re.M,
)
_BISECT_SAYS = re.compile(
    rf"({_SHA}) is the first bad commit|first bad commit:? (?:is )?(?:commit )?\[?({_SHA})\]?\s*([^\n]{{0,160}})", re.I
)
_ONELINE = re.compile(
    rf"^[ >]{{0,8}}({_SHA})(?: |\n[ >]{{0,8}})([\w./+-]{{2,30}}(?:, ?[\w./+-]+)*: [^\n]{{8,140}})$", re.M
)
_TITLE_ALONE = re.compile(
    r"(?:commit|change|patch)[: ]+\"([\w./+-]{2,30}(?:, ?[\w./+-]+)*: [^\"]{8,140})\"", re.I
)  # without its sha
_ALONE = 25  # characters beside a commit that stands in a paragraph of its own
_TITLE_BEFORE = re.compile(
    rf"^\s{{0,8}}\"?([\w./+-]{{2,30}}(?:, ?[\w./+-]+)*: [^\n(\"]{{8,140}}?)\"?\s+[(\[](?:commit )?({_SHA})[)\]]", re.M
)


class _Candidate(NamedTuple):
    """A commit that may be the culprit. `earliness`: minus its place; of equal points, the earliest wins."""

    points: int
    earliness: int
    sha: str
    title: str
    sentence: str


def _culprit(mail: _Mail, reading: Reading) -> tuple[Fact, Fact, Fact, tuple[str, ...]]:
    """Return the sha, title and author of the culprit, and the shas of further ones."""
    command = next((command for command in reading.commands.good if command.word is Word.INTRODUCED), None)
    candidates: list[_Candidate] = []
    titles: dict[str, Fact] = {}
    authors: dict[str, Fact] = {}
    for block in _BLOCK.finditer(mail.text):
        titles.setdefault(block[1].lower(), Fact(block[3].strip(), block[0].strip()))
        authors.setdefault(block[1].lower(), Fact(block[2].strip(), block[2].strip()))
        candidates.append(_Candidate(3, -block.start(), block[1], block[3].strip(), f"commit {block[1]}"))
    for said in _BISECT_SAYS.finditer(mail.text):
        sha, title = said[1] or said[2], (said[3] or "").strip()
        candidates.append(_Candidate(9, 0, sha, title if ": " in title else "", " ".join(said[0].split())))
    for before in _TITLE_BEFORE.finditer(mail.text):
        points = 4 if not re.match(r"fixes|link|closes|cc", before[1], re.I) else 2
        sentence = " ".join(before[0].split())
        candidates.append(_Candidate(points, -before.start(), before[2], before[1].strip(), sentence))
    for line in _ONELINE.finditer(mail.text):
        above = " ".join(mail.text[max(0, line.start() - 80) : line.start()].split())
        points = 2 + 2 * bool(_BLAMES.search(above))
        sentence = f"{above} {' '.join(line[0].split())}"
        candidates.append(_Candidate(points, -line.start(), line[1], line[2].strip(), sentence))
    candidates += _mentioned(mail)
    for candidate in candidates:
        if candidate.title and not candidate.title.lower().startswith("merge "):
            titles.setdefault(candidate.sha.lower(), Fact(bare_title(candidate.title), candidate.sentence))
    if command and (named := re.match(rf"\^?\s*({_SHA})\b\s*(.*)", command.argument, re.I)):
        candidates.append(_Candidate(20, 0, named[1], "", f"introduced: {command.argument}"))
    likely = sorted((one for one in candidates if one.points >= 2), key=lambda one: (-one.points, -one.earliness))
    if not likely:
        blamed = ((text, _TITLE_ALONE.search(text)) for text in mail.all if _BLAMES.search(text))
        alone = next((Fact(match[1], text) for text, match in blamed if match), UNKNOWN)
        return UNKNOWN, alone, UNKNOWN, ()
    sha = likely[0].sha.lower()
    shas = [candidate.sha.lower() for candidate in candidates]
    same = [other for other in shas if other.startswith(sha[:8]) or sha.startswith(other)]
    longest = max((sha, *same), key=len)
    sentence = next((one.sentence for one in likely if longest.startswith(one.sha.lower()[:8])), likely[0].sentence)
    title = next((titles[one] for one in (sha, *same) if one in titles), UNKNOWN)
    author = next((authors[one] for one in (sha, *same) if one in authors), UNKNOWN)
    beside = (one.sha.lower() for one in likely if one.sentence == sentence)
    others = dict.fromkeys(other for other in beside if other not in same)
    return Fact(longest, sentence), title, author, tuple(others)[:5]


def _mentioned(mail: _Mail) -> Iterator[_Candidate]:
    """Yield the commits that sentences name, with points for what is said of each."""
    for place, sentence in enumerate(mail.all):
        after = " ".join(mail.all[place + 1 : place + 2])
        for match in _NAMED.finditer(sentence):
            title = (match[2] or match[3] or match[4] or "").strip(" \"'")
            window = sentence[max(0, match.start() - 160) : match.end() + 120]
            if said := _said_of_note(mail, sentence):
                window = said
            elif len(sentence) - len(match[0]) < _ALONE:
                window = f"{mail.all[max(0, place - 1)]} {sentence} {after}"
            tail = sentence[match.end() : match.end() + 60]
            head = sentence[max(0, match.start() - 40) : match.start()]
            points = 3 * bool(_BLAMES.search(window)) + ("commit" in match[0].lower()[:7]) + (": " in title)
            points -= 4 * bool(_CLEARS.search(head) or re.match(r"[^.;]{0,40}\b(?:resolv|solv|fix)\w+ ", tail, re.I))
            points -= 4 * bool(_TRIED.search(sentence) and _NO_CURE.search(after))
            points -= 9 * title.lower().startswith("merge ")
            yield _Candidate(points, -place, match[1], title if ": " in title else "", sentence)


def _said_of_note(mail: _Mail, note: str) -> str:
    """Return what is said of a footnote where it is referred to, and in itself; "" if nothing refers to it."""
    mark = _FOOTNOTE.match(note)
    if mark is None:
        return ""
    said = []
    for text in (text for text in mail.all if text != note):
        for place in re.finditer(re.escape(mark[0]), text):
            before = text[max(0, place.start() - 60) : place.start()].rpartition("]")[2]
            follows = _NOTE_BLAMES.match(text[place.end() :])
            said.append(f"{before}{follows[0] if follows else ''}")
    return " ".join([*said, note]) if said else ""


# --- Versions ---

_KERNEL = r"v?(?:2\.6\.\d{1,2}(?:\.\d{1,2})?|[3-9]\.\d{1,2}(?:\.\d{1,3})?)(?:\.y)?(?:-rc\d{0,2})?\+?"
_DISTRO = (
    r"(?:CentOS|RHEL|Ubuntu|Debian|Fedora|SLES|openSUSE|Amazon Linux|Rocky(?: Linux)?|AlmaLinux) ?\d{1,2}(?:\.\d{1,2})?"
)
_NOT_KERNEL = re.compile(
    r"(?:gcc|clang|llvm|binutils|fio|version of|iperf3?|pts|qemu|python|glibc|nfsv?|v=|bios|[=:/_-]"
    r"|centos|rhel|ubuntu|debian|fedora|sles|suse)\s*(?:version )?\Z",
    re.I,
)
_UNITS = (
    r"(?:[kmgt]i?b(?:it|yte)?s?(?:/s(?:ec)?)?\b|[kmgt]bps\b|(?:[kmg] ?)?(?:pps|ops|iops)\b|ms\b|us\b|ns\b|s(?:ec)?s?\b"
    r"|seconds?\b|min(?:ute)?s?\b|h(?:ours?)?\b|[mg]?hz\b|w(?:atts?)?\b)"
)
# What follows a figure, and no version: a unit, or another figure with one
_NO_UNIT = rf"(?![\w%]|\.\d| ?(?:{_UNITS}|%|x\b|times\b|\+-|\+/-|±)|(?:-|\s?->| vs\.?| to) ?\d+\.\d+ ?{_UNITS})"
_VERSION = re.compile(rf"(?<![\w./])({_KERNEL})(?:-[\w.]*\d[\w.]*)?{_NO_UNIT}", re.I)
_PAIRS = (
    rf"(?:from|on) (?P<good>{_DISTRO}) (?:to|and) (?P<bad>(?:{_DISTRO}|\d{{1,2}}\.\d{{1,2}}))",
    rf"(?P<good>{_KERNEL})(?:-[\w.+-]*\w)?\)?\s*(?:->|to|\.\.|=>|-->)\s*(?:(?:kernel|linux) )?"
    rf"(?P<bad>{_KERNEL}){_NO_UNIT}",
    rf"between (?:[\w ]{{1,25}} )?(?P<one>{_KERNEL})(?:-[\w.+-]*\w)? and (?:(?:kernel|linux) )?(?P<other>{_KERNEL})",
    rf"(?P<one>{_KERNEL})[\w ,]{{0,30}} (?:vs\.?|versus) (?:[\w ]{{1,20}} )?(?P<other>{_KERNEL}){_NO_UNIT}",
    rf"(?P<bad>{_KERNEL})[\w ,]{{0,30}} (?:compared (?:to|with)|(?<!more )(?<!less )than(?! (?:that|this|double))|over"
    rf"|against) (?:[\w ]{{1,20}} )?(?P<good>{_KERNEL}){_NO_UNIT}",
)
_PAIR = tuple(re.compile(pattern, re.I) for pattern in _PAIRS)
_IS_GOOD = re.compile(
    r"\b(?:fine|good|works?|ok(?:ay)?|without|unaffected|normal|fast(?:er)?|last (?:good|working|known)"
    r"|not (?:affected|see|show)|expected)\b",
    re.I,
)
_SINCE = re.compile(
    rf"\b(?:since|starting (?:with|from)|introduced in|as of|appeared in|begin\w* (?:with|in)|first (?:seen"
    rf"|appear\w*) in|until) (?:\w+ ){{0,2}}(?P<bad>{_KERNEL})",
    re.I,
)


_LABELLED = re.compile(
    r"(?:the )?(?:test )?(?:machine|server|system|pc|box|hardware|host)\b(?: is an?\b)?\s*[:=]?\s+"
    rf"(?!{_KERNEL})(?=\S*\s*\S*\d)(.{{5,90}}?)\.?\Z",
    re.I,
)


def _versions(mail: _Mail, reading: Reading) -> tuple[Fact, Fact]:
    """Return the last good and the first bad version that the mail names."""
    command = next((command for command in reading.commands.good if command.word is Word.INTRODUCED), None)
    if command and (pair := re.match(rf"\^?\s*(?P<good>{_KERNEL})\.\.\.?(?P<bad>{_KERNEL})", command.argument, re.I)):
        sentence = f"introduced: {command.argument}"
        return Fact(pair["good"], sentence), Fact(pair["bad"], sentence)
    subject = mail.subject.translate(_QUOTES)
    texts = (subject, *(text for text in mail.sentences if _LOSS.search(text)), *mail.sentences)
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
            if bad[:1].isdigit() and good[:1].isalpha() and good[:1].lower() != "v":
                bad = f"{good.rsplit(' ', 1)[0]} {bad}"  # "from CentOS 6.5 to 8.4"
            return _precise(mail, Fact(good, text)), _precise(mail, Fact(bad, text))
    return _single_versions(texts)


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
        tells = _LOSS.search(text) or _RUNS.search(text)
        for clause in re.split(r"[,;]| (?:but|while|whereas) ", text)[:_CLAUSES]:
            named = [
                match[1]
                for match in itertools.islice(_VERSION.finditer(clause), _CLAUSES)
                if not _NOT_KERNEL.search(clause[max(0, match.start() - 12) : match.start()])
            ]
            if named and _IS_GOOD.search(clause) and not _LOSS.search(_WITHOUT.sub("", clause)):
                good = good or Fact(named[0], text)
            elif named and tells:
                bad = bad or Fact(named[0], text)
    if good.value.lower() == bad.value.lower():
        good = UNKNOWN
    return good or before, bad


def _precise(mail: _Mail, fact: Fact) -> Fact:
    """Return the fact with the stable update that the mail gives elsewhere: 5.10.130 for 5.10, if there is only one."""
    if not re.fullmatch(r"v?\d\.\d+", fact.value):
        return fact
    longer = re.compile(rf"(?<![\w./])(v?{re.escape(fact.value.lstrip('v'))}\.\d{{1,3}})(?![\w.]*\d/)")
    named = {match[1]: text for text in mail.sentences for match in longer.finditer(text)}
    return Fact(*next(iter(named.items()))) if len(named) == 1 else fact


# --- What was measured on two versions ---

_LINE = re.compile(rf"^[\s>*-]{{0,8}}(?:[a-z]\w* )?({_KERNEL})(-[\w.+-]*)?\s*(?:[:|=]|\s)\s*(\S.*)$", re.I)
_FIGURE = re.compile(
    r"(?<![\w.,-])((?:\d+h)?\d+m(?:\d+(?:\.\d+)?s|\d\d)"
    r"|(?:\d+ ?h(?:ours?)? )?\d+ ?min(?:utes?)? \d+ ?s(?:ec(?:onds?)?)?|\d(?:[\d,]*\d)?(?:\.\d+)?k?)"
    r"(?:\s?([kmgt]i?b(?:it|yte)?s?/s(?:ec)?|[kmgt]?bps|[kmg]?pps|fps|iops|ms|us|ns|s(?:ec)?|min|tps|ops/s(?:ec)?))?"
    r"(?![\w.])",
    re.I,
)
_SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d.,])")  # 2 487 746
_SPREAD = re.compile(r"\s*(?:±|\+-|\+/-).*")
_HEADER = re.compile(rf"^[^\d\n]{{0,40}}?({_KERNEL})(?:-[\w.+-]*)?[\s|]+({_KERNEL})(?:-[\w.+-]*)?(?![\w.])", re.I)
_EACH_WITH = re.compile(
    r"(?<![\d.,])(?P<old>\d[\d,]{0,20}(?:\.\d{1,9})?k?) ?(?P<unit>[a-z/%]{1,12})? (?:with|on|in|under) "
    rf"(?:(?:kernel|linux) )?(?P<good>{_KERNEL})[;, ]{{1,3}}(?:(?:and|but) )?(?:only )?"
    r"(?P<new>\d[\d,]{0,20}(?:\.\d{1,9})?k?)(?: ?(?P=unit))? (?:with|on|in|under) "
    rf"(?:(?:kernel|linux) )?(?P<bad>{_KERNEL})",
    re.I,
)
_Measured = tuple[str, str]  # a figure and its unit
_MOVED = 0.02  # of a figure: less is no loss


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
    return parse_version("v" + name.lower().lstrip("v").rstrip("+").removesuffix(".y").removesuffix(".0"))


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
_UNIT_OF_TIME = r"(?:ms(?:ec)?|us(?:ec)?|ns|s(?:ec(?:onds?)?)?|min(?:utes?)?|hours?)"
_UNIT = rf"(?:[kmgt]i?b(?:it|yte)?s?/s(?:ec)?|[kmgt]?bps|iops|{_UNIT_OF_TIME}|fps|tps|qps|ops(?:/s)?|req/s|%)"
_FROM_TO = re.compile(
    rf"(?:from|was|at)?\s*~?(?P<old>{_NUMBER})\s?(?P<unit>{_UNIT})?\s*(?:->|to|down to"
    rf"|=>)\s*~?(?P<new>{_NUMBER})\s?(?P<unit2>{_UNIT})?(?!\w|\.\d)",
    re.I,
)
_INSTEAD = re.compile(
    rf"(?P<new>{_NUMBER})\s?(?P<unit>{_UNIT})? (?:instead of|rather than|where it was|\(was) ~?(?P<old>{_NUMBER})\s?"
    rf"(?P<unit2>{_UNIT})?(?!\w|\.\d)",
    re.I,
)
_SAME_UNIT = re.compile(
    rf"from ~?(?P<old>{_NUMBER}) ?(?P<unit>[a-z][a-z/]{{1,11}}) (?:down )?to ~?(?P<new>{_NUMBER})"
    r" ?(?P<unit2>(?P=unit))\b",
    re.I,
)
_STATED = re.compile(
    r"(?P<number>~?\d{1,3}(?:\.\d{1,2})?(?:\s?[-~]\s?\d{1,3}(?:\.\d+)?)?|ten|twenty|thirty|forty|fifty|sixty"
    r"|seventy|eighty|ninety)\s?(?:%|per ?cent)",
    re.I,
)
_TIMES = re.compile(
    r"\b\d{1,3}(?:\.\d+)?\s?(?:x|times) (?:slower|longer|worse|lower|higher|more|increase|as (?:long|slow))"
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
_DURATION = r"(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?s|\d+(?:\.\d+)? ?(?:ms|seconds?|secs?|minutes?|mins?|hours?)"
_USUALLY = re.compile(rf"\b(?:usually|normally|used to|before)\b.{{0,80}}?(?P<old>{_DURATION})", re.I)
_NOW = re.compile(rf"\b(?:now|waited|takes|over|more than|after)\b.{{0,60}}?(?P<new>{_DURATION})", re.I)
_EXTRA = re.compile(r"delay\w*\W{0,3}\(?(?P<more>~?\d+\+?\s?(?:ms|s|secs?|seconds?|minutes?))", re.I)
_WORDS = {
    "ten": 10,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
_RISES = re.compile(r"increas|longer|higher|more (?:cpu|time)|rise|latency|delay|overhead|load", re.I)
_RUNS_SHOWN = 6
_IOPS = re.compile(r"\biops[=: ]+(\d+(?:\.\d+)?k?)", re.I)


def _magnitude(mail: _Mail, runs: _Runs | None) -> tuple[Fact, float | None]:
    """Return how much was lost, as the mail says it, and the metric's own change in per cent."""
    subject = mail.subject.translate(_QUOTES)
    lossy = [text for text in mail.sentences if _LOSS.search(text)]
    if pair := _pair(subject):
        return pair
    if runs and runs.magnitude:
        return runs.magnitude, runs.change
    for text in (*lossy, *mail.sentences):
        if pair := _pair(text):
            return pair
    for text in (subject, *lossy):
        if stated := _stated(text):
            return stated
    return _in_other_words(mail)


def _in_other_words(mail: _Mail) -> tuple[Fact, float | None]:
    """Return a loss that no two figures and no percentage give: "3x slower", "usually 1m20s, now 20 minutes"."""
    for text in mail.sentences:
        if times := _TIMES.search(text):
            return Fact(times[0], text), None
    usual = next(((match["old"], text) for text in mail.sentences if (match := _USUALLY.search(text))), None)
    for text in mail.sentences if usual else ():
        if usual and (now := _NOW.search(text)) and now["new"] != usual[0]:
            return Fact(f"{usual[0]} -> {now['new']}", f"{usual[1]} {text}"), None
    for text in (mail.subject.translate(_QUOTES), *mail.sentences):
        if extra := _EXTRA.search(text):
            return Fact(f"+{extra['more'].strip()}", text), None
    return _two_runs(mail)


def _stated(text: str) -> tuple[Fact, float] | None:
    """Return the percentage that a sentence states beside a loss: "a 3% degradation", "dropped by thirty percent"."""
    for match in _STATED.finditer(text):
        around = text[max(0, match.start() - 60) : match.end() + 60]
        if not _LOSS.search(around):
            continue
        number = re.sub(r"\s*[-~]\s*", "-", match["number"].lower().lstrip("~"))
        value = float(_WORDS.get(number, 0)) or float(number.rpartition("-")[2])
        rises = _RISES.search(around) and not re.search(r"drop|decreas|fell|degrad|regress|slow", around, re.I)
        shown = str(_WORDS.get(number, number))
        return Fact(f"{'+' if rises else '-'}{shown} %", text), value if rises else -value
    return None


def _two_runs(mail: _Mail) -> tuple[Fact, float | None]:
    """Return the IOPS of two runs of fio that are pasted, the slower one below."""
    values = [(match[1], text) for text in mail.sentences for match in _IOPS.finditer(text)]
    if not 2 <= len(values) <= _RUNS_SHOWN:
        return UNKNOWN, None
    (old, _), (new, text) = values[0], values[len(values) // 2]
    before, after = _value(old), _value(new)
    return (
        (Fact(f"{old} IOPS -> {new} IOPS", text), 100 * (after - before) / before)
        if after < before
        else (UNKNOWN, None)
    )


def _pair(text: str) -> tuple[Fact, float | None] | None:
    """Return the two figures of a sentence that says what became of one."""
    matches = (pattern.finditer(text) for pattern in (_SAME_UNIT, _FROM_TO, _BEFORE_AFTER, _INSTEAD))
    for match in itertools.chain.from_iterable(matches):
        groups = match.groupdict()
        old, new = groups.get("old") or groups.get("old2"), groups.get("new") or groups.get("new2")
        unit = next((groups[name] for name in ("unit2", "unit", "unit4", "unit3") if groups.get(name)), "")
        if not old or not new or old == new or unit == "%":
            continue
        if re.match(r"\d\.\d{1,2}(?:\.|\Z)", old) and not unit:
            continue  # versions
        if not unit and not (_LOSS.search(text) or groups.get("old2")):
            continue
        first, last = _value(old), _value(new)
        change = 100 * (last - first) / first if first else None
        suffix = f" {unit}" if unit else ""
        return Fact(f"{old}{suffix} -> {new}{suffix}", text), change
    return None


def _value(number: str) -> float:
    plain = number.lower().replace(",", "")
    return float(plain.removesuffix("k")) * (1000 if plain.endswith("k") else 1)


def _metric(mail: _Mail, magnitude: Fact) -> tuple[Fact, Fact]:
    """Return the metric and the benchmark, in the mail's own words."""
    lossy = [text for text in mail.sentences if _LOSS.search(text)]
    order: Sequence[str] = (mail.subject, *([magnitude.sentence] if magnitude else ()), *lossy, *mail.sentences)
    suite = next((Fact(match[1], text) for text in order if (match := _SUITES.search(text))), UNKNOWN)
    for text in order:
        for match in _QUANTITY.finditer(text):
            # "XFS performance" is one in a subject, where nobody says much else
            if match[2].lower() != "performance" or (match[1] and text is mail.subject):
                return Fact(f"{match[1]}{match[2]}", text), suite
    unit = re.search(rf" ({_UNIT}) ->", magnitude.value, re.I)
    of_time = unit and re.fullmatch(rf"{_UNIT_OF_TIME}|%", unit[1], re.I)
    return (Fact(unit[1], magnitude.sentence) if unit and not of_time else UNKNOWN), suite
