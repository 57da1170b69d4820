"""Does a mail report a performance regression, and what does it say of it? Pure.

People report slowdowns in plain words, on the list of the subsystem. `read_report` takes the first mail of a thread
and gives its facts, each with its sentence, and a score: how much the mail looks like such a report. From OFFERED on
it is offered in the review queue; a tracker command makes it a report. What is not a first mail (an answer, a patch, a
robot's mail) is not read; what tells of something else than speed (a crash, a deadlock, a failed build) scores low.

A fact is taken only where the words around it say what it is: a sha is the culprit if its sentence blames it, a
version is bad if it is the later of two that are compared, or if something is slow there. Whatever else a mail names
stays unknown. The words were found in first mails: of 14 threads of 2019-2025, and of 64 others since 2002.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from bot.mail.message import ParsedMail
from bot.mail.patches import bare_title, is_answer, is_posting
from bot.replies.commands import Word
from bot.replies.person_figures import KERNEL, LOSS, SUITES, MailText, mail_text, read_figures
from bot.replies.reading import Reading, SenderKind
from tracker.domain.archived_reports import MAX_SENTENCE, MAX_VALUE, UNKNOWN, Fact, PersonReport

OFFERED = 7  # the score from which a mail is offered; `is_performance` of one that a command names
FORWARDED = re.compile(r"\A\s*fwd?:\s*", re.I)  # by who keeps a distribution's bugs, say
_PULL = re.compile(r"\s*\[(?:(?:git )?pull|ann(?:ounce)?)\b", re.I)
# Asks for comments on something else than a patch
_COMMENTS = re.compile(r"\s*\[RFC\](?!\s*\[)(?!.*\bfix(?:e[sd]|ing)?\b)", re.I)
_MOST_CHANGE = 1_000_000.0  # per cent


def read_report(reading: Reading) -> PersonReport | None:
    """Return what a mail reports, or None if it is not a person's first mail: an answer, a patch, a robot's mail."""
    mail = reading.mail
    if reading.kind is not SenderKind.PERSON or not mail.message_id or not mail.author.email:
        return None
    subject = FORWARDED.sub("", mail.subject, count=1)
    is_patch = is_posting(subject) and (reading.patches or not _COMMENTS.match(subject))
    if is_answer(subject) or mail.ancestors or is_patch or _PULL.match(subject):
        return None
    text = mail_text(mail.subject, reading.own_text)
    introduced = _introduced(reading)
    culprit, title, author, others = _culprit(text, introduced)
    figures = read_figures(text, introduced)
    good = figures.good or (Fact("before the commit", culprit.sentence) if culprit else UNKNOWN)
    change = figures.change_pct
    report = PersonReport(
        reporter=mail.author.name or mail.author.email,
        culprit=_short(culprit),
        culprit_title=_short(title),
        culprit_author=_short(author),
        suite=_short(figures.suite),
        metric=_short(figures.metric),
        magnitude=_short(figures.magnitude),
        change_pct=change if change is not None and abs(change) < _MOST_CHANGE else None,
        good=_short(good),
        bad=_short(figures.bad),
        machine=_short(_machine(text)),
        other_culprits=others,
    )
    signs = dict(_signs(text, report, reading))
    return replace(report, score=max(0, sum(signs.values())), signs=tuple(signs))


def is_performance(report: PersonReport) -> bool:
    """Whether it tells of speed, so that a command may make it a report: `#regzbot` is used for crashes, too."""
    return "speed" in report.signs and "something is broken" not in report.signs


def is_commanded(reading: Reading, report: PersonReport) -> bool:
    """Whether a command in the mail itself makes it a report: `report` always, `introduced` if it tells of speed."""
    words = {command.word for command in reading.commands.good if not command.of_parent}
    return Word.REPORT in words or (Word.INTRODUCED in words and is_performance(report))


def culprit_named(reading: Reading) -> tuple[Fact, Fact, bool]:
    """Return sha and title of the commit that a later mail says is the culprit, and whether a bisection found it;
    unknown if it names none.
    """
    text = mail_text(reading.mail.subject, reading.own_text)
    sha, title, _, _ = _culprit(text, _introduced(reading))
    by_bisection = bool(_BISECTED.search(sha.sentence) or _BISECT_SAYS.search(text.text))
    if not by_bisection and (_DENIES.search(sha.sentence) or not _BLAMED.search(sha.sentence)):
        return UNKNOWN, UNKNOWN, False
    return _short(sha), _short(title), by_bisection


_BISECTED = re.compile(r"bisect|first bad|\bintroduced(?:: | by )", re.I)
_BLAMED = re.compile(
    r"\bculprit (?:is|was|seems|turned)\b|\bto blame\b"
    r"|\brevert\w* .{0,200}\b(?:restor\w+|recover\w*|cures?|cured|(?:is|are|was|were|brings?|brought) back)\b",
    re.I,
)
_DENIES = re.compile(
    r"\bnot\b|n['\u2019]t\b|\?\s*\Z|\breverting to\b"
    r"|\b(?:regression|problem|issue|slow-?down)s? (?:is|are|was|came) back\b",
    re.I,
)


def subsystem_by_title_or_list(report: PersonReport, mail: ParsedMail) -> str:
    """Return the subsystem: what the culprit's title begins with, else the name of the list that it was sent to."""
    prefix, colon, _ = report.culprit_title.value.partition(":")
    if colon and " " not in prefix:
        return prefix.lower()
    names = (address.email.partition("@")[0] for address in mail.recipients)
    lists = [name for name in names if re.fullmatch(r"linux-[\w-]+|[\w-]+-devel|netdev|io-uring|cgroups|bpf|x86", name)]
    chosen = next((name for name in lists if name not in ("linux-kernel", "linux-stable")), "")
    return chosen.removeprefix("linux-").removesuffix("-devel")


def _introduced(reading: Reading) -> str:
    """Return the argument of the command `introduced`: a sha, a range, a version; "" if the mail has none."""
    commands = (command for command in reading.commands.good if command.word is Word.INTRODUCED)
    return next((command.argument for command in commands), "")


def _short(fact: Fact) -> Fact:
    return Fact(fact.value[:MAX_VALUE], fact.sentence[:MAX_SENTENCE]) if fact else UNKNOWN


# --- How much a mail looks like a report ---

# Bad in itself, which is a loss only beside what it was before.
_POOR = re.compile(
    r"\b(?:bad|poor|low|terrible|awful|horrible|abysmal|dismal) (?:[\w/-]+ ){0,2}"
    r"(?:performance|perf|throughput|speeds?|bandwidth|iops|results?)\b"
    r"|\bperformance (?:bug|problem)s?\b|\bhigh(?:er)? (?:[\w/-]+ ){0,3}(?:latenc(?:y|ies)|load|delays?|cpu usage)\b",
    re.I,
)
_STRONG = re.compile(
    r"\bregress\w*|\bdegrad\w*|\bslow-?downs?\b|\b(?:performance|perf|speed|iops|throughput) drops?\b", re.I
)
_SPEED = re.compile(
    r"\bperformance\b|\bthroughput\b|\blatenc(?:y|ies)\b|\bbandwidth\b|\biops\b|\b[kmgt]i?b(?:it|yte)?s?/s(?:ec)?\b"
    r"|\bslow(?:er|ly|ness|down)?\b|\bspeeds?\b|\bdelays?\b|\bp(?:50|9\d)\b|\bbenchmark\w*|\bscores?\b|\bstutter\w*"
    r"|\b(?:ops|operations|requests|transactions|frames|packets)(?:/s| per second)|\b(?:fps|[tq]ps|[kmg]pps)\b"
    r"|\b(?:boot|start-?up|run|execution|wall|elapsed|compile|build|completion)[ -]?times?\b"
    r"|\b(?:takes?|took|taking|needs?) (?:[\w.]+ ){0,2}(?:longer|as long)\b|\d (?:hours?|minutes?) instead of \d"
    r"|\bload average\b|\b(?:high|cpu) load\b|\bsluggish\w*"
    r"|\bpower (?:draw|consumption|usage)\b|\bbattery life\b|\bcpu (?:usage|time)\b",
    re.I,
)
# What is wrong if it isn't speed. Such a mail needs figures of speed as well.
_BROKEN = re.compile(
    r"\b(?:crash\w*|panic\w*|oops(?:es)?|use-after-free|null pointer|seg(?:mentation )?fault\w*|corrupt\w*|data loss"
    r"|oom|kasan|syzbot"
    r"|deadlock\w*|lock-?ups?|rcu\w* (?:detected )?stall\w*|hung task\w*|hangs?\b(?! off)|infinite loop|unbootable"
    r"|fails? to (?:boot|build|compile|mount)|does(?: not|n't) (?:boot|build|compile|work)"
    r"|can(?: ?not|'t) (?:boot|build|compile|mount|connect|load)|(?:build|compile) (?:fail\w*|error\w*)|warning: cpu"
    r"|returns? -?e(?:inval|io|exist|nolck|busy|perm)|memory leak\w*|leaks?)\b",
    re.I,
)
_MANY = 3  # words of what is broken
# A regression was not there before: somewhere the mail says so, else it is just slow.
_BETTER_BEFORE = re.compile(
    r"\b(?:after|since|when)(?: \w+){0,3} (?:upgrad|updat|switch|mov|rebas)\w*|\bupgraded\b|\bsince (?:the )?v?\d"
    r"|\b(?:older|earlier|previous|old) (?:[\w.]+ )?(?:kernel|version|release)s?\b|\bnewer kernels?\b"
    r"|\d and (?:above|later|newer)\b|\bused to\b|\bpreviously\b|\bnormal(?:ly)?\b|\bregress\w*|\bbisect"
    r"|\bslowed down\b|\b(?:became|become|got|gotten) (?:\w+ )?slower\b",
    re.I,
)
_SLOWDOWN = re.compile(r"\bperf(?:ormance)? (?:regression|degradation)|\bslow-?down", re.I)
_MARKED = re.compile(r"\[[^\]]{0,30}\b(?:regression|perf(?:ormance)?)\b[^\]]{0,60}\]", re.I)
_OF_SPEED = re.compile(r"performance|slow|speed", re.I)
# What the subject of a report has: the prefilter of archives passes no other, so that it knows no words of its own.
SUBJECT_WORDS = "|".join(
    (
        LOSS.pattern,
        _POOR.pattern,
        _SPEED.pattern,
        SUITES.pattern,
        r"\bperf\b|bisected|\bstall|high load|\d\S* ?-> ?\d",
    )
)


def _measures(text: str) -> bool:
    """Whether it names a benchmark; xfstests tells what works, and seldom how fast."""
    suite = SUITES.search(text)
    return suite is not None and not suite[0].lower().startswith("xfstest")


def _signs(mail: MailText, report: PersonReport, reading: Reading) -> Iterator[tuple[str, int]]:
    """Yield what speaks for and against a report, and how much; nothing if no loss, or no speed, is spoken of."""
    speed = [text for text in mail.all if _SPEED.search(text) or (_measures(text) and LOSS.search(text))]
    if not speed or not any(LOSS.search(text) or _POOR.search(text) for text in mail.all):
        return
    yield "speed", 1
    if any(LOSS.search(text) or _POOR.search(text) for text in speed):
        yield "a loss of speed", 2
    elif not report.magnitude:
        yield "no loss of speed", -2
    if _SLOWDOWN.search(mail.subject):
        yield "a slowdown in the subject", 3
    elif _STRONG.search(mail.subject) or (LOSS.search(mail.subject) and (_SPEED.search(mail.subject) or report.suite)):
        yield "a regression in the subject", 2
    elif LOSS.search(mail.subject) or _SPEED.search(mail.subject):
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
    if report.good or report.culprit or any(_BETTER_BEFORE.search(text) for text in mail.all):
        yield "better before", 2
    else:
        yield "never better", -1
    if any(command.word in (Word.INTRODUCED, Word.REPORT) for command in reading.commands.good):
        yield "a tracker's command", 1
    broken = len(_BROKEN.findall(" ".join(mail.all)))
    in_subject = _BROKEN.search(mail.subject) and not _OF_SPEED.search(mail.subject)
    if in_subject or (broken >= _MANY and broken > len(speed)):
        yield "something is broken", -5


# --- The culprit ---

_SHA = r"(?=[0-9a-f]{0,39}[a-f])(?=[0-9a-f]{0,39}\d)[0-9a-f]{8,40}"
_SEVEN = r"(?=[0-9a-f]{0,6}[a-f])(?=[0-9a-f]{0,6}\d)[0-9a-f]{7}"
# Seven digits only with a title, or where nothing else than a commit can stand
_SHORT = rf'(?<=commit ){_SEVEN}(?= ?\(")|(?:(?<=introduced by )|(?<=caused by )|(?<=bisected to )){_SEVEN}'
_PREFIX = r"[\w./+-]{2,30}(?:, ?[\w./+-]+)*: "  # what a commit's title begins with
_NAMED = re.compile(
    rf"(?:(?<![\w./=-])|(?<=[;&?]h=)|(?<=[;&?]id=))(?:commit[: ]+)?\[?({_SHA}|{_SHORT})\]?(?![\w/-]|\.\.\.?[\da-fv^])"
    r"""(?:\s*\(\s?"(.{3,160}?)"\s?\)|\s*\((.{3,160}?)\)(?=\W|\Z)|\s*[,:]?\s*"([^"]{8,160})\""""
    rf'| ((?:{_PREFIX}|Revert ")[^\n]{{8,140}}?)(?=\.? ?\Z| git bisect| #))?',
    re.I,
)
_BLAMES = re.compile(
    r"bisect\w*|first bad|culprit|guilty|offending|responsible|suspect\w*|blam\w+|revert\w*"
    r"|caus(?:ed?|es|ing)\b|introduc\w+|regress\w*|\bslow\w*|drops? the|result(?:s|ed|ing) in|\bdue to\b"
    r"|\bsince\b|\bafter (?:the )?commit|follow(?:ing|s|ed) commit|\bby commit\b"
    r"|pinpoint\w*|point(?:s|ed|ing)? (?:to|at|out)|found that|track\w* (?:it )?down|traced|narrow\w*",
    re.I,
)
_CLEARS = re.compile(
    r"\b(?:resolved?|solved?|fix(?:ed|es)?(?! my)|depends? on|based on|on top of|backport\w*|applied|tip|head"
    r"|as a? ?(?:master|base))\b",
    re.I,
)
_TITLE_QUOTED = re.compile(rf'"({_PREFIX}[^"]{{8,140}})" ?[(\[,]? ?\Z')  # and then its sha
_TITLED = re.compile(r': |\ARevert "')
_FOOTNOTE = re.compile(r"\[\d{1,2}\]")
_MOST_NOTES = 20  # of a mail, and places that refer to one
_NOTE_BLAMES = re.compile(r",? (?:which |that )?(?:has |is )?(?:introduc|caus|regress|slow|the first bad)\w*", re.I)
_TRIED = re.compile(r"\brevert\w*|\btried\b|\bappl(?:y|ied|ying)\b|\bwithout\b|\bback(?:ed|ing) out\b", re.I)
_NO_CURE = re.compile(r"\b(?:did|does)(?:n't| not) (?:resolve|help|fix|cure|solve|change)\b", re.I)
_BLOCK = re.compile(
    rf"^[ >]{{0,4}}commit ({_SHA})[^\n]{{0,80}}\n(?:[ >]{{0,8}}Merge:[^\n]*\n)?"
    rf"[ >]{{0,8}}Author:[ \t]*+([^\n]{{3,120}})\n(?:[ >]{{0,8}}(?:[A-Z]\w+Date|Date):[^\n]*\n)?"
    r"\s*+(\S[^\n]{5,160})",
    re.M,
)
_BISECT_SAYS = re.compile(
    rf"({_SHA}) is the first bad commit|first bad commit:? (?:is )?(?:commit )?\[?({_SHA})\]?\s*([^\n]{{0,160}})", re.I
)
_ONELINE = re.compile(
    rf'^[ >-]{{0,8}}({_SHA})(?: |\n[ >]{{0,8}})({_PREFIX}[^\n]{{8,140}}$|Revert "[^"]{{8,160}}")', re.M
)
_TITLE_ALONE = re.compile(rf'(?:commit|change|patch)[: ]+"({_PREFIX}[^"]{{8,140}})"', re.I)  # without its sha
_TITLE_OF_COMMAND = re.compile(rf'\^?\s*["\u201c]?((?:{_PREFIX}|Revert ")[^\n]{{8,140}}?)["\u201d]?\s*')
_ALONE = 25  # characters beside a commit that stands in a paragraph of its own
_TITLE_BEFORE = re.compile(rf'^\s{{0,8}}"?({_PREFIX}[^\n("]{{8,140}}?)"?\s+[(\[](?:commit )?({_SHA})[)\]]', re.M)


class _Candidate(NamedTuple):
    """A commit that may be the culprit. `earliness`: minus its place; of equal points, the earliest wins."""

    points: int
    earliness: int
    sha: str
    title: str
    sentence: str


def _culprit(mail: MailText, introduced: str) -> tuple[Fact, Fact, Fact, tuple[str, ...]]:
    """Return the sha, title and author of the culprit, and the shas of further ones."""
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
        candidates.append(_Candidate(points, -line.start(), line[1], " ".join(line[2].split()), sentence))
    candidates += _mentioned(mail)
    for candidate in candidates:
        if candidate.title and not candidate.title.lower().startswith("merge "):
            titles.setdefault(candidate.sha.lower(), Fact(bare_title(candidate.title), candidate.sentence))
    if named := re.match(rf"\^?\s*({_SHA})\b(?!\.\.\.?[\da-fv^])", introduced, re.I):
        candidates.append(_Candidate(20, 0, named[1], "", f"introduced: {introduced}"))
    likely = sorted((one for one in candidates if one.points >= 2), key=lambda one: (-one.points, -one.earliness))
    if not likely:
        blamed = ((text, _TITLE_ALONE.search(text)) for text in mail.all if _BLAMES.search(text))
        alone = next((Fact(match[1], text) for text, match in blamed if match), UNKNOWN)
        if by_command := _TITLE_OF_COMMAND.fullmatch(introduced):
            alone = Fact(by_command[1], f"introduced: {introduced}")
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


def _mentioned(mail: MailText) -> Iterator[_Candidate]:
    """Yield the commits that sentences name, with points for what is said of each."""
    notes = 0
    for place, sentence in enumerate(mail.all):
        after = " ".join(mail.all[place + 1 : place + 2])
        for match in _NAMED.finditer(sentence):
            title = (match[2] or match[3] or match[4] or match[5] or "").strip(" \"'")
            if not title and (before := _TITLE_QUOTED.search(sentence[: match.start()])):
                title = before[1]
            window = sentence[max(0, match.start() - 160) : match.end() + 120]
            above = mail.all[max(0, place - 1)]
            leads = above.endswith(":")
            if leads and len(above) < _ALONE:  # the end of a sentence, as of "… came / from the below commit:"
                above = " ".join(mail.all[max(0, place - 2) : place])
            notes += bool(_FOOTNOTE.match(sentence))
            if notes <= _MOST_NOTES and (said := _said_of_note(mail, sentence)):
                window = said
            elif len(sentence) - len(match[0]) < _ALONE or (leads and match.start() < _ALONE):
                window = f"{above} {sentence} {'' if leads else after}"
            tail = sentence[match.end() : match.end() + 60]
            head = sentence[max(0, match.start() - 40) : match.start()]
            points = 3 * bool(_BLAMES.search(window)) + ("commit" in match[0].lower()[:7]) + (": " in title)
            points -= 4 * bool(_CLEARS.search(head) or re.match(r"[^.;]{0,40}\b(?:resolv|solv|fix)\w+ ", tail, re.I))
            points -= 4 * bool(_TRIED.search(sentence) and _NO_CURE.search(after))
            points -= 9 * title.lower().startswith("merge ")
            yield _Candidate(points, -place, match[1], title if _TITLED.search(title) else "", sentence)


def _said_of_note(mail: MailText, note: str) -> str:
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
    return " ".join([*said[:_MOST_NOTES], note]) if said else ""


# --- The machine ---

_MACHINE = re.compile(
    r"\b(?:(?:\w+[ -])?socket )?(?:AMD (?:EPYC|Ryzen|Opteron|Threadripper)(?: \w*\d\w*)?"
    r"|Intel(?:\(R\))? (?:Xeon|Core|Atom)(?:\(R\))?(?: (?:Gold|Silver|Platinum|Bronze|Max|Ultra"
    r"|[\w@-]*\d[\w@-]*)){0,3}|Raspberry Pi \w+|Xeon(?: \w+){1,2}"
    r"|[a-z]\w{1,4}\.(?:\d*x?large|metal)(?: AWS\b)?(?: EC2\b)?|Ampere Altra|Graviton ?\d|POWER\d+|ThinkPad \w+"
    r"|Supermicro \S+|Dell (?:PowerEdge )?\w*\d\w*|HPE? (?:ProLiant )?\w*\d\w*)",
)
_LABELLED = re.compile(
    r"(?:the )?(?:test )?(?:machine|server|system|pc|box|hardware|host)\b(?: is an?\b)?\s*[:=]?\s+"
    rf"(?!{KERNEL})(?=\S*\s*\S*\d)(.{{5,90}}?)\.?\Z",
    re.I,
)


def _machine(mail: MailText) -> Fact:
    """Return the machine: what a line that begins with that word says, else a model that is known."""
    for text in mail.sentences:
        if labelled := _LABELLED.match(text):
            return Fact(labelled[1].strip(), text)
    return next((Fact(match[0].strip(), text) for text in mail.all if (match := _MACHINE.search(text))), UNKNOWN)
