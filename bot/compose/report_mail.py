"""The report mail: subject, first screen, caveats, tables. Pure: equal values give equal mails.

The first screen has the facts that readers ask for, in 24 lines of 78 columns: what changed, by how much, where,
since which commit, the evidence, what else changed, how to reproduce and to reply. The subject is like "[LKP]
[mm/vmscan] 3b1f0c9d2e: -12.4% regression", or has another of the forms in use.

Below are the comparison tables, one for each scenario and machine, and the box of changes in other tests. Both have
the format of the 0-Day robot's reports since 2019, so that scripts that parse those can parse ours.

Caveats name noise, weak evidence, a debug config and mixed results. To add one: write a generator that takes a report
and yields sentences, and name it in `warnings_of`.
"""

import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.template.loader import render_to_string

from bot.compose import report_data
from bot.compose.conventions import DEFAULT, WIDTH, Conventions, SubjectForm, escape_directives, message_id
from bot.compose.mail import ComposedMail, mail_of, recipients_of
from bot.compose.report_data import FindingData, ReportData, attachments, in_lines, percent, reproduce, worst
from bot.mail.message import one_line
from bot.mail.patches import subsystem_of
from bot.mail.settings import BotSettings
from tracker.domain.events import Grade, Verdict
from tracker.domain.metrics import in_words, is_key
from tracker.domain.text import article, counted, interval, lore_url, prose_pct, signed_pct

# --- Subject ---


def report_subject(
    title: str,
    sha: str,
    change_pct: float | None,
    verdict: Verdict,
    form: SubjectForm = SubjectForm.SEED,
    metric: str = "",
    tree: str = "",
    branch: str = "",
    sides: str = "",
) -> str:
    """Return the subject of a report. The seed form is that of the 0-Day report of v5.6.

    `change_pct`: the metric's own change; a minus is printed and a plus is not, as on the lists until 2024. From zero
    there is none, and `sides`, "0.00 -> 811.50", stand instead.
    """
    subsystem = one_line(subsystem_of(title), 60)
    names = [_word(name).replace("[", "").replace("]", "") for name in (tree, branch) if name]
    front = ":".join(names) if form is SubjectForm.TREE else ""
    marks = f"[{front}] " if front else "[LKP] "
    marks += f"[{subsystem}] " if subsystem else ""
    what = "" if form is SubjectForm.SEED else f"{_word(metric)} " if metric else ""
    moved = sides if change_pct is None else prose_pct(change_pct)
    return f"{marks}{sha[:10]}: {what}{f'{moved} ' if moved else ''}{verdict}"


def _word(text: str) -> str:
    """Return a name as one word."""
    return one_line(text, 120).replace(" ", "_")


# --- Tables and the box ---

MOST_BOXES = 20
_LEFT, _RIGHT = 18, 55


@dataclass(frozen=True, slots=True)
class Sides:
    """The two commits as every table names them: short shas, titles and column heads."""

    old: str
    old_title: str
    new: str
    new_title: str
    heads: str
    rule: str = "=" * 89
    stars: str = "*" * 89


def sides(sha: str, title: str, parent_sha: str, parent_title: str, base: str = "") -> Sides:
    """Return the parent, or the tag that stands in for it, and the culprit."""
    head = parent_sha[:16] or one_line(base, 16) or "parent"
    return Sides(
        old=parent_sha[:10] or one_line(base, 26) or "?",
        old_title=one_line(parent_title, 200) or "its parent",
        new=sha[:10],
        new_title=one_line(title, 200),
        heads=f"{head:<16} {sha[:27]}",
    )


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """The findings of one scenario on one machine. `machine`: its description, "" for the first table; `rest`: how
    many findings it leaves out, in words.
    """

    axes: str
    values: str
    machine: str
    rows: tuple[str, ...]
    rest: str = ""


_MOST_ROWS = 25  # of a table; the report's page has all of them


def tables(findings: Sequence[FindingData]) -> Iterator[ComparisonTable]:
    """Yield the tables in the order of their first findings.

    A table has what matters: the metrics that the suite is run for, then the benchmark's others by how far they moved
    in terms of their noise. Monitors, which watch the machine, are only counted, unless there is nothing else.
    """
    for number, group in enumerate(_groups(findings)):
        first = group[0]
        axes = {
            **{_name(name): one_line(value, 80) for name, value in first.params.items()},
            "tbox_group": _name(first.machine),
            "testcase": _name(first.suite),
        }
        names = sorted(axes)
        machine = f"{one_line(first.machine, 80)}: {one_line(first.machine_text, 200)}" if number else ""
        own = [finding for finding in group if not finding.is_monitor] or group
        own.sort(key=lambda row: (not is_key(row.metric, row.suite), -_times_noise(row), row.metric))
        rows = tuple(report_data.row(finding, one_line(finding.metric, 300)) for finding in own[:_MOST_ROWS])
        rest = _rest(len(own) - len(rows), len(group) - len(own))
        yield ComparisonTable("/".join(names), "/".join(axes[name] for name in names), machine, rows, rest)


def _times_noise(finding: FindingData) -> float:
    """Return how far a metric moved in terms of its noise; a spread below a tenth of a per cent counts as that."""
    return abs(finding.moved or 0.0) / max(finding.noise_pct or 0.0, *finding.spreads, 0.1)


def _rest(own: int, monitors: int) -> str:
    """Return what a table leaves out, in words; "" for nothing."""
    parts = ((own, counted(own, "other metric")), (monitors, f"{counted(monitors, 'metric')} of monitors"))
    named = " and ".join(text for number, text in parts if number)
    return f"Not shown, but in the full report: {named}." if named else ""


def _name(name: str) -> str:
    return one_line(name, 80).replace("/", "_")


def _groups(findings: Iterable[FindingData]) -> list[list[FindingData]]:
    groups: dict[tuple[str, str, str], list[FindingData]] = {}
    for finding in findings:
        groups.setdefault(finding.table_key, []).append(finding)
    return list(groups.values())


def impacts(report: ReportData) -> tuple[str, ...]:
    """Return the lines of the box of other tests, each with the worst change of what it is run for, else of all; empty
    if there are none.
    """
    elsewhere = [
        finding for finding in report.findings if finding.table_key != report.headline.table_key and finding.is_graded
    ]
    groups = _groups(finding for finding in elsewhere if finding.change_pct is not None)
    shown = [worst([one for one in group if is_key(one.metric, one.suite)] or group)[0] for group in groups]
    if not shown:
        return ()
    edge = f"+{'-' * _LEFT}+{'-' * _RIGHT}+"
    lines = [edge]
    for finding in worst(shown)[:MOST_BOXES]:
        change = finding.change_pct or 0.0
        suite = one_line(finding.suite, 80).replace(" ", "_").replace(":", "_")
        metric = one_line(finding.metric, 150)
        lines += _cell("testcase: change", f"{suite}: {metric} {change:.1f}% {finding.verdict}")
        lines += _cell("test machine", one_line(finding.machine_text, 200) or one_line(finding.machine, 80))
        for number, (name, value) in enumerate(sorted(finding.params.items())):
            lines += _cell("" if number else "test parameters", f"{one_line(name, 80)}={one_line(value, 80)}")
        lines.append(edge)
    return tuple(lines)


def _cell(name: str, text: str) -> Iterator[str]:
    """Yield one row of the box, wrapped to its width."""
    wrapped = textwrap.wrap(text, _RIGHT - 2, break_on_hyphens=False, break_long_words=False) or [""]
    for number, line in enumerate(wrapped):
        yield f"| {'' if number else name:<{_LEFT - 2}} | {line:<{_RIGHT - 2}} |"


def profile(findings: Sequence[FindingData], most: int = 5) -> tuple[str, ...]:
    """Return the functions whose share of CPU time changed most, in percentage points; empty without a profile."""
    table = findings[0].table_key
    shares = [finding for finding in findings if finding.is_profile and finding.table_key == table]
    shares = [share for share in shares if abs(share.moved or 0.0) >= 0.1]
    lines = []
    for share in sorted(shares, key=lambda share: -abs(share.moved or 0.0))[:most]:
        # "    +7.3   12.1 ->  19.4  clear_page_erms (self)" for "perf-profile.self.cycles-pp.clear_page_erms"
        moved = f"  {report_data.moved(share):>6}  {share.old_mean:5.1f} -> {share.new_mean:5.1f}  "
        kind, _, name = one_line(share.metric, 200).removeprefix(report_data.PROFILE).partition(".")
        name = name.partition(".")[2] if name.startswith("cycles") and "." in name else name
        room = max(8, WIDTH - len(moved) - len(f" ({kind[:20]})"))
        lines.append(f"{moved}{name if len(name) <= room else f'{name[: room - 3]}...'} ({kind[:20]})")
    return tuple(lines)


# --- Caveats ---

NOISY_PCT = 5.0  # of the mean, from run to run: more than most benchmarks reported on the lists
SMALL_PCT = 10.0  # code alignment alone has caused changes up to this
_PROFILE_POINTS = 1.0
# Parts of a config's name or a kernel's command line, and what they enable; each has a high and uneven cost.
_FALSIFIES = {
    r"kasan|kcsan|kmsan|ubsan|kfence": "a sanitizer",
    r"lockdep|prove[-_]?locking|lock[-_]?stat": "lock debugging",
    r"kmemleak|debug[-_]?(?:pagealloc|slab|objects|vm|list)|slub[-_]?debug|page[-_]?poison": "memory debugging",
    r"kcov|gcov|fault[-_]?inj\w*": "instrumentation",
    r"(?<![a-z0-9])debug(?![a-z0-9]|[-_]?info)|dbg(?![a-z0-9])": "debug options",
}
_OFF = re.compile(r"=(?:0|off|n|no|-|debug)\Z", re.I)  # "debug" alone and "=debug" are log levels
_COMPILER = {r"(?<!\S)-O[0g](?!\S)": "built without optimisation"}


def warnings_of(report: ReportData) -> tuple[str, ...]:
    """Return the caveats as sentences, the most serious first."""
    checks = (_config(report), _noise(report.headline), _alignment(report), _mixed(report))
    return tuple(sentence for sentences in checks for sentence in sentences)


def _config(report: ReportData) -> Iterator[str]:
    build = report.build
    switched_on = " ".join(word for word in build.cmdline.split() if not _OFF.search(word) and word != "debug")
    for name, text in (("config", build.kconfig), ("kernel's command line", switched_on)):
        for pattern, what in _FALSIFIES.items():
            if match := re.search(pattern, text, re.I):
                yield f"the {name} enables {what} ({match[0]}); results may differ without it"
    for pattern, what in _COMPILER.items():
        if re.search(pattern, build.compiler):
            yield f"the kernel was {what}"


def _noise(headline: FindingData) -> Iterator[str]:
    if headline.noise_pct is not None and headline.noise_pct >= NOISY_PCT:
        noise = percent(headline.noise_pct)
        yield f"rebuilding alone moves this metric by some {noise}% here, so compare several builds when testing a fix"
    elif max(headline.spreads, default=0.0) >= NOISY_PCT:
        yield f"the runs vary a lot ({percent(max(headline.spreads))}%)"
    if headline.overlap:
        yield "the ranges of the two sides overlap"
    if headline.verdict is Grade.NOT_TESTABLE:
        yield "not tested for significance: only one run per side, or no spread given"
    elif headline.verdict is Grade.NOT_SIGNIFICANT:
        yield "this difference may be due to chance"


def _alignment(report: ReportData) -> Iterator[str]:
    """Where the profile shows no change, a shift of code or data addresses may be the whole effect."""
    change = report.headline.change_pct
    profile = [
        finding for finding in report.findings if finding.is_profile and finding.table_key == report.headline.table_key
    ]
    unchanged = all(abs(finding.moved or 0.0) < _PROFILE_POINTS for finding in profile)
    if profile and unchanged and change is not None and abs(change) < SMALL_PCT:
        yield "no function's share changed much in the profile; this may be an effect of code or data alignment"


def _mixed(report: ReportData) -> Iterator[str]:
    graded = [finding for finding in report.findings if finding.is_graded]
    worse = sum(finding.verdict is Grade.REGRESSION for finding in graded)
    better = len(graded) - worse
    if worse and better and min(worse, better) * 2 >= max(worse, better):
        counts = f"{counted(worse, 'regression')} and {counted(better, 'improvement')}"
        yield f"the results are mixed: {counts}, this one included"


# --- First screen ---

LINES = 24
_NAME = 11  # columns of a fact's label
_WORST = 3


def first_screen(report: ReportData, settings: BotSettings, template: str, room: int, warning: str = "") -> list[str]:
    """Return the facts in at most `room` lines; the worst other findings fill the lines that are left.

    `warning`: the most serious caveat; `template`: the lab's own command to reproduce.
    """
    end = []
    if report.verdict is Verdict.REGRESSION:
        for number, line in enumerate(in_lines(reproduce(report, template)) or ("see the command below",)):
            end.append(f"{'' if number else 'reproduce:':<{_NAME}}{line}")
        how = "say if this is expected; if not, fix or revert it. Reply to all in plain words, or with "
        how += f'"{settings.prefix} expected" or "{settings.prefix} fix: <title>"'
        end += _fact("please:", how)
    else:
        end += _fact("reply:", "not needed; replies are read")
    left = room - len(end)
    facts = list(_facts(report, warning))
    for index in reversed(range(len(facts))):  # where there are too many lines, the last facts are cut to their first
        if sum(map(len, facts)) < left:
            break
        first, *more = facts[index]
        facts[index] = [f"{first[: WIDTH - 3]} .." if more else first]
    lines = [line for fact in facts for line in fact]
    return [*lines, *_other_changes(report, max(1, left - len(lines))), *end]


def _fact(name: str, text: str, most: int = 2) -> list[str]:
    """Return a label and its text, wrapped to at most `most` lines that are indented past the label."""
    wrapped = textwrap.wrap(
        one_line(text, 1000), WIDTH - _NAME, max_lines=most, placeholder=" ...", break_on_hyphens=False
    )
    first, *rest = wrapped or ["-"]
    return [f"{name:<{_NAME}}{first}", *(" " * _NAME + line for line in rest)]


def _facts(report: ReportData, warning: str) -> Iterator[list[str]]:
    """Yield what was measured, where, against what, how sure it is, and the bisection."""
    headline = report.headline
    sides = report_data.means(headline)
    sides += f" {headline.unit}" if headline.unit else ""
    if headline.change_pct is None:
        sides += f" ({report_data.NEW})" + ("" if headline.old_mean else ": zero before, so no percentage")
    else:
        sides += f", {report_data.moved(headline)} points" if headline.in_points else ""
        sides += f", {signed_pct(headline.change_pct)}"
        if headline.low_pct is not None and headline.high_pct is not None:
            sides += f" ({interval(headline.low_pct, headline.high_pct)})"
    yield _fact("measured:", sides)
    yield _fact("metric:", in_words(headline.metric, headline.unit, headline.direction, headline.suite))
    machine = headline.machine_text
    short = machine.partition(" with ")[0] if len(machine) > 90 else machine  # without its memory, which is below
    yield _fact("where:", headline.where + (f": {short}" if machine else ""))
    if report.author.name:
        yield _fact("author:", one_line(report.author.name, 60), 1)
    if report.parent_sha:
        title = textwrap.shorten(one_line(report.parent_title), 70, placeholder="...")
        is_in_title = report.base.removeprefix("v") in report.parent_title
        base = f", on top of {report.base}" if report.base and not is_in_title else ""
        yield _fact("baseline:", f"the parent {report.parent_sha[:10]}" + (f' ("{title}")' if title else "") + base)
    elif report.base:
        yield _fact("baseline:", report.base, 1)
    parts = report_data.evidence(headline)
    if headline.noise_pct and (times := headline.times_noise) is not None:
        basis = f", from {headline.noise_runs} runs" if headline.noise_runs else ""
        parts.append(f"{times:.1f}x the usual noise here ({percent(headline.noise_pct)}%{basis})")
    if headline.by_summary:
        parts.append("interval from means and spreads (Welch)")
    tested = [entry for entry in report.findings if entry.p_value is not None and not entry.is_monitor]
    if len(tested) > 1:  # how many were looked at tells how much chance can have found
        moved = sum(entry.is_graded for entry in tested)
        parts.append(f"{moved} of {len(tested)} metrics moved at FDR 5%")
    begin = f"{strength}: " if (strength := report_data.strength(headline)) else ""
    while len(parts) > 1 and len(_fact("", begin + "; ".join(parts), 3)) > 2:  # half a clause would say nothing
        parts.pop()
    yield _fact("evidence:", begin + ("; ".join(parts) or "number of runs and spread unknown"))
    if report.history:
        yield _fact("history:", report.history)
    if warning:
        yield _fact("caveat:", f"{warning}.")
    yield from _bisected(report)


def _bisected(report: ReportData) -> Iterator[list[str]]:
    """Yield the bisection: good, bad, number of steps; and what later kernels showed, a revert first."""
    if report.good and report.bad:
        steps = f" in {counted(report.bisect_steps, 'step')}" if report.bisect_steps else ""
        good, bad = ("good", "bad") if report.verdict is Verdict.REGRESSION else ("before", "after")
        yield _fact("bisected:", f"{report.good} ({good}) to {report.bad} ({bad}){steps}")
    shown = sorted(report.rechecks, key=lambda recheck: recheck[1] != "good-after-revert")[:4]
    phrases = {
        "still-bad": "{} is still bad",
        "good": "{} is good again",
        "good-after-revert": "reverting it on {} cures it",
    }
    parts = [phrases[state].format(ref) for ref, state in shown if state in phrases]
    if parts:
        yield _fact("rechecked:", "; ".join(parts))


def _other_changes(report: ReportData, room: int) -> list[str]:
    """Return how many other metrics changed, and the worst of them, in at most `room` lines."""
    others = [finding for finding in report.findings[1:] if finding.is_graded]
    worse = sum(finding.verdict is Grade.REGRESSION for finding in others)
    ungraded = Counter(finding.verdict for finding in report.findings[1:] if not finding.is_profile)
    unclear, untested = ungraded[Grade.UNKNOWN], ungraded[Grade.NOT_TESTABLE]
    counts = [
        counted(worse, "regression") if worse else "",
        counted(len(others) - worse, "improvement") if len(others) > worse else "",
        f"{unclear} of unknown direction" if unclear else "",
        f"{untested} not tested for significance" if untested else "",
    ]
    named = ", ".join(filter(None, counts))
    if not named:
        return _fact("also:", "no other significant change", 1)
    if len(others) == 1 and named in ("1 regression", "1 improvement"):
        return _fact("also:", _listed(others[0], report).strip())
    head = _fact("also:", f"{named}; the largest:", max(1, min(2, room)))
    ordered = worst(others)
    slower = [finding for finding in ordered if finding.verdict is Grade.REGRESSION]
    faster = [finding for finding in ordered if finding.verdict is Grade.IMPROVEMENT]
    shown = min(_WORST, room - len(head))
    if faster and slower and shown > 1:  # a judgement needs the best, too
        rows = [*slower[: shown - 1], faster[0]]
    else:
        rows = (slower or faster)[: max(0, shown)]
    if not rows:
        return _fact("also:", f"{named}, in the tables below", 1)
    return [*head, *(" " * _NAME + _listed(finding, report, bool(faster and slower)) for finding in rows)]


def _listed(finding: FindingData, report: ReportData, is_mixed: bool = True) -> str:
    """Return "  -31.0%  fsmark.files_per_sec on lab7-m2", with "(worse)" or "(better)" where both are listed, since
    signs differ by metric.
    """
    name = finding.metric + ("" if finding.machine == report.headline.machine else f" on {finding.machine}")
    word = "" if not is_mixed else " (worse)" if finding.verdict is Grade.REGRESSION else " (better)"
    return report_data.listed(finding, name, WIDTH - _NAME - len(word)) + word


def height(lines: Sequence[str]) -> int:
    """Return how many screen lines these take, with long ones wrapped."""
    return sum(max(1, -(-len(line) // WIDTH)) for line in lines)


# --- The mail ---

MOST_FILES = 10  # links in one mail
_PLAIN_NAME = re.compile(r"[\w.:-]+\Z")
_REPOSITORY = re.compile(r"(?:https?|git|ssh)://[^\s<>\"]+\Z")


def compose(
    report: ReportData,
    settings: BotSettings,
    now: datetime,
    own_id: str = "",
    conventions: Conventions = DEFAULT,
    excluded: Mapping[str, str] | None = None,
) -> ComposedMail:
    """Return the complete mail about a report. Pure: equal values give equal mails.

    `own_id`: its Message-ID, if it is composed again. `excluded`: addresses that must get no mail from us, with the
    reason.
    """
    if report.verdict is not Verdict.REGRESSION:
        conventions = replace(conventions, regzbot="")  # regzbot tracks no improvements
    own_id = own_id or message_id(now, report.tag, settings)
    subject = report_subject(
        report.title,
        report.sha,
        report.headline.change_pct,
        report.verdict,
        conventions.subject,
        report.headline.metric,
        report.tree,
        report.branch,
        report_data.means(report.headline),
    )
    recipients = recipients_of(report.commit, settings, conventions, excluded)
    body = _body(report, own_id, settings, conventions)
    mail = mail_of(own_id, report.tag, recipients, subject, body, settings, now, report.patch)
    return replace(mail, attachments=attachments(report, conventions))


def noticed(verdict: Verdict, headline: FindingData) -> str:
    """Return "a -8.8% regression of vm-scan.ops_per_sec", the form that parsers of LKP reports expect."""
    metric = one_line(headline.metric, 200).replace(" ", "_")
    if headline.change_pct is None:  # from zero: a percentage would be meaningless
        return f"{article(verdict)} {verdict} of {metric}"
    change = prose_pct(headline.change_pct)
    return f"{article(change)} {change} {verdict} of {metric}"


def finished(text: str, own: Collection[str]) -> str:
    """Return a rendered template as a body: no trailing spaces, except in the signature delimiter. `own`: the lines
    that programs should act on.
    """
    kept = [line.rstrip() for line in text.strip("\n").split("\n")]
    return escape_directives("\n".join("-- " if line == "--" else line for line in kept) + "\n", ("commit:", *own))


def commit_line(sha: str, title: str) -> str:
    """Return the line from which parsers of LKP reports take the culprit."""
    return f'commit: {sha} ("{one_line(title, 200)}")'.rstrip()


def tags(tag: str, own_id: str, settings: BotSettings) -> tuple[str, ...]:
    """Return the trailers that let us detect in git when a fix is merged."""
    return (
        f"Reported-by: {one_line(settings.name)} <{settings.tagged(tag)}>",
        f"Closes: {lore_url(own_id)}",
    )


def _body(report: ReportData, own_id: str, settings: BotSettings, conventions: Conventions) -> str:
    headline = report.headline
    regression = report.verdict is Verdict.REGRESSION
    machine = one_line(headline.machine, 40)
    place = f"On {machine}" if not headline.is_monitor else f"In {one_line(headline.suite, 40)} on {machine}"
    sentence = f"{place}, {one_line(settings.name, 60)} noticed {noticed(report.verdict, headline)} on:"
    first, *notes = warnings_of(report) or ("",)
    commit = commit_line(report.sha, report.title)
    # The repository and the branch, in one line
    if _REPOSITORY.match(report.tree_url):
        origin = one_line(f"{report.tree_url} {report.branch}", 300)
    else:
        is_named = report.tree not in ("", "unknown")
        origin = one_line(f"in tree {report.tree} {report.branch}", 200) if is_named else "in an unnamed tree"
    room = LINES - height(["Hello,", "", sentence, "", commit, origin, ""])
    please = (one_line(f"Please note: {note}.", 600) for note in notes)
    # Parsers split names from values: no colon in a name with spaces.
    params = ((one_line(name, 80), one_line(value, 300)) for name, value in headline.params.items())
    context = {
        "bot": one_line(settings.name, 60),
        "report": report,
        "title": one_line(report.title, 200),
        "sentence": sentence,
        "commit": commit,
        "origin": origin,
        "facts": first_screen(report, settings, conventions.reproduce, room, first),
        "notes": ["\n".join(textwrap.wrap(note, WIDTH, break_on_hyphens=False)) for note in please],
        "tags": tags(report.tag, own_id, settings) if regression else (),
        "suite": one_line(headline.suite, 100),
        "kconfig": one_line(report.build.kconfig, 200),
        "compiler": one_line(report.build.compiler, 200),
        "machine": one_line(headline.machine_text or headline.machine, 300),
        "params": [(name if _PLAIN_NAME.match(name) else name.replace(":", "_"), value) for name, value in params],
        "more": list(_more(report, conventions)) if regression else (),
        "impacts": impacts(report),
        "profile": profile(report.findings) if regression else (),
        "tables": list(tables(report.findings)),
        "sides": sides(report.sha, report.title, report.parent_sha, report.parent_title, report.base),
        "raw": report.raw,
        "page": settings.page(report.sha[:12]),
        "help": settings.help,
        "regzbot": conventions.regzbot,
    }
    own = (commit, f"#regzbot introduced: {report.sha}")
    return finished(render_to_string("mail/report.txt", context), own)


def _more(report: ReportData, conventions: Conventions) -> Sequence[str]:
    """Return what else is known about the test and the build, one line each."""
    build = report.build
    command = reproduce(report, conventions.reproduce)
    lines = (
        ("to reproduce", "" if in_lines(command) else command),
        ("test-description", report.test_text),
        ("test-url", report.test_url),
        ("config-url", build.config_url),
        ("command line", build.cmdline),
        ("rootfs", build.rootfs),
    )
    files = [f"artifact: {one_line(url, 300)} ({one_line(name, 80)})" for name, url in report.artifacts[:MOST_FILES]]
    return [*(f"{name}: {one_line(text, 500)}" for name, text in lines if text), *files]
