"""Find or create what results and reports name: commits, trees, machines, metrics, scenarios, reports, tool output.

First one at a time, then many in a few queries. New values only fill empty fields, and a full sha replaces an
abbreviated one. A lab's direction of a metric overrides that of the table, and an operator's overrides both.

Rows are created in the order of their names, so that two workers that need the same ones don't deadlock; where
another worker creates the same row at the same moment, an IntegrityError tells the caller to try again.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.db import IntegrityError, models, transaction

from tracker.domain.events import InvalidInput, TreeRole, Verdict
from tracker.domain.metrics import direction_of, unit_of
from tracker.domain.report_state import fold
from tracker.domain.text import scenario_key, tag_of
from tracker.domain.tool_output import kind_of
from tracker.models import Commit, Finding, Machine, Metric, Report, Scenario, ToolOutput, Tree
from tracker.models.measurements import Direction, DirectionBy
from tracker.services import database
from tracker.services.report_summary import clipped, mainline_followed, refresh, status_now

_MAINLINE_URL = re.compile(r"/torvalds/linux(?:\.git)?/?\Z")
_STABLE_BRANCH = re.compile(r"(?:linux-|stable-)\d+\.\d+(?:\.y)?")
_SHORTEST, _FULL = 10, 40  # digits of a sha: in old reports, and in full


def commit_for(sha: str, **fields: object) -> Commit:
    """Find or create a commit by sha. New values only fill empty fields; a longer sha replaces a shorter one."""
    sha = sha.lower()
    commit = known_commit(sha)
    if commit is None:
        commit, made = Commit.objects.get_or_create(sha=sha, defaults=fields)
        if made:
            return commit
    if changed := _fill(commit, sha, fields):
        commit.save(update_fields=changed)
        refresh(Report.objects.filter(culprit=commit).values_list("pk", flat=True))
    return commit


def known_commit(sha: str) -> Commit | None:
    """Return the commit with this sha, whichever of the two is abbreviated; None if there is none, or several."""
    sha = sha.lower()
    if commit := Commit.objects.filter(sha=sha).first():
        return commit
    beginnings = [sha[:length] for length in range(_SHORTEST, len(sha))]
    if commit := Commit.objects.filter(sha__in=beginnings).first():
        return commit
    longer = list(Commit.objects.filter(sha_begins("sha", sha))[:2]) if _SHORTEST <= len(sha) < _FULL else []
    return longer[0] if len(longer) == 1 else None


def sha_begins(column: str, sha: str) -> models.Q:
    """Return the condition that a column of shas begins so; an index serves it, unlike LIKE on SQLite."""
    return models.Q(**{f"{column}__gte": sha, f"{column}__lt": f"{sha}g"})


def reports_of(sha: str) -> models.QuerySet[Report]:
    """Return the reports whose culprit a sha names, whichever of the two is abbreviated: people give few digits."""
    shorter = [sha[:digits] for digits in range(7, min(len(sha), _FULL))]
    return Report.objects.filter(sha_begins("culprit__sha", sha) | models.Q(culprit__sha__in=shorter))


def role_of(name: str, url: str = "") -> TreeRole:
    """Return the role of a tree, from its usual name or its URL."""
    if name in ("linus", "linux", "mainline") or _MAINLINE_URL.search(url):
        return TreeRole.MAINLINE
    if name in ("next", "linux-next"):
        return TreeRole.NEXT
    stable = name in ("stable", "linux-stable", "stable-rc") or _STABLE_BRANCH.fullmatch(name)
    return TreeRole.STABLE if stable else TreeRole.MAINTAINER


def tree_for(name: str) -> Tree | None:
    """Find or create the tree of this name, with the role that its name suggests; an operator may change it."""
    return Tree.objects.get_or_create(name=name, defaults={"role": role_of(name)})[0] if name else None


def machine_for(name: str, description: str = "", **parts: object) -> Machine:
    """Find or create a machine. `parts`: what the description says. Of several descriptions the longest one counts."""
    facts = {"description": description, **parts}
    machine, made = Machine.objects.get_or_create(name=name or "unknown", defaults=facts)
    current = machine.description
    if not made and current and (len(description), description) > (len(current), current):  # a lab's own has none
        Machine.objects.filter(pk=machine.pk).update(**facts)
    return machine


def new_metric(name: str, unit: str = "", direction: str = Direction.UNKNOWN, suite: str = "") -> Metric:
    """Return an unsaved metric; what our tables know of its direction counts, else what the lab says: another lab
    measures it, too, and what contradicts the table is held for an operator.
    """
    by = DirectionBy.NOBODY if direction == Direction.UNKNOWN else DirectionBy.LAB
    if (in_table := direction_of(name, suite)) != Direction.UNKNOWN:
        direction, by = in_table, DirectionBy.TABLE
    return Metric(name=name, unit=unit or unit_of(name), direction=direction, direction_by=by)


def metric_for(name: str) -> Metric:
    """Find or create the metric of this name, with the direction and unit from our tables."""
    metric = new_metric(name)
    facts = {field: getattr(metric, field) for field in ("unit", "direction", "direction_by")}
    return Metric.objects.get_or_create(name=name, defaults=facts)[0]


def scenario_for(suite: str, params: Mapping[str, str]) -> Scenario:
    key = scenario_key(suite, params)
    return Scenario.objects.get_or_create(key=key, defaults={"suite": suite, "params": dict(params)})[0]


def report_for(
    culprit: Commit,
    verdict: Verdict,
    *,
    title: str = "",
    subsystem: str = "",
    tree: Tree | None = None,
    branch: str = "",
    authors: Sequence[str] = (),
    recipients: Sequence[str] = (),
) -> Report:
    """Find or create the report about a culprit, or about the one that people found instead of it; one each. New
    values only fill empty fields.
    """
    culprit = culprit.corrected_to or culprit
    initial, subsystem = fold(verdict, ()), clipped(subsystem)
    report, made = Report.objects.get_or_create(
        culprit=culprit,
        defaults={
            "tag": tag_of(culprit.sha),
            "verdict": verdict,
            "state": initial.state,
            "status": status_now(initial, mainline_followed()),
            "awaited": initial.awaited,
            "title": title,
            "subsystem": subsystem,
            "tree": tree,
            "branch": branch,
            "authors": sorted(set(authors)),
            "recipients": sorted(set(recipients)),
        },
    )
    if not made:
        report.authors = sorted({*report.authors, *authors})
        report.recipients = sorted({*report.recipients, *recipients})
        report.title, report.subsystem = report.title or title, report.subsystem or subsystem
        if report.tree is None:
            report.tree, report.branch = tree, branch
        report.save(update_fields=["authors", "recipients", "title", "subsystem", "tree", "branch"])
    return report


def add_finding(finding: Finding) -> bool:
    """Store a finding once. Returns False if it is already known. A report keeps its first headline."""
    Report.objects.select_for_update().filter(pk=finding.report.pk).first()  # one worker at a time sets the headline
    same = {name: getattr(finding, name) for name in ("report", "metric", "scenario", "machine")}
    if Finding.objects.filter(**same).exists():
        return False
    if finding.headline and Finding.objects.filter(report=finding.report, headline=True).exists():
        finding.headline = False
    finding.save()
    return True


# --- Many at once ---

Row = TypeVar("Row", bound=models.Model)


def _ensure(field: str, rows: Mapping[str, Row]) -> dict[str, Row]:
    """Return the rows with these values in a unique field, by value; missing ones are created as given."""
    if not rows:
        return {}
    manager = type(next(iter(rows.values())))._default_manager
    existing: dict[str, Row] = manager.in_bulk(list(rows), field_name=field)
    missing = [rows[name] for name in sorted(rows.keys() - existing.keys())]
    database.create(missing, field)
    return existing | {getattr(row, field): row for row in missing}


_PARTS = ("cpus", "sockets", "cpu_model", "codename", "memory_bytes")


def machines(given: Iterable[Machine]) -> dict[str, Machine]:
    """Find or create machines, by name. New values only fill empty fields."""
    by_name: dict[str, Machine] = {}
    for machine in given:
        first = by_name.setdefault(machine.name, machine)
        for part in _PARTS:  # one test of a result may say more of it than another
            setattr(first, part, getattr(first, part) or getattr(machine, part))
    rows = _ensure("name", by_name)
    for name, row in rows.items():
        learned = [part for part in _PARTS if getattr(by_name[name], part) and not getattr(row, part)]
        for part in learned:
            setattr(row, part, getattr(by_name[name], part))
        if learned:
            row.save(update_fields=learned)
    return rows


def scenarios(given: Iterable[Scenario]) -> dict[str, Scenario]:
    """Find or create scenarios, by key."""
    return _ensure("key", {scenario.key: scenario for scenario in given})


def trees(given: Iterable[Tree]) -> dict[str, Tree]:
    """Find or create trees, by name. A new URL only fills an empty one."""
    by_name: dict[str, Tree] = {}
    for tree in given:
        first = by_name.setdefault(tree.name, tree)
        first.url = first.url or tree.url
    rows = _ensure("name", by_name)
    for row in rows.values():
        if by_name[row.name].url and not row.url:
            row.url = by_name[row.name].url
            row.save(update_fields=["url"])
    return rows


def metrics(given: Iterable[Metric]) -> tuple[dict[str, Metric], list[Metric]]:
    """Find or create metrics, by name. Also returns those whose direction has been set or changed.

    An operator's direction overrides every other; of the others the first stays.
    """
    by_name: dict[str, Metric] = {}
    for metric in given:
        first = by_name.setdefault(metric.name, metric)
        metric.unit, first.unit = metric.unit or first.unit, first.unit or metric.unit
        if _outranks(metric, first):
            by_name[metric.name] = metric
    rows = _ensure("name", by_name)
    changed = [
        row
        for row in rows.values()
        if _outranks(by_name[row.name], row) or (by_name[row.name].unit and row.unit in _NO_UNIT)
    ]
    turned = [row for row in changed if by_name[row.name].direction not in (row.direction, Direction.UNKNOWN)]
    for row in changed:
        if _outranks(by_name[row.name], row):
            row.direction, row.direction_by = by_name[row.name].direction, by_name[row.name].direction_by
        if row.unit in _NO_UNIT:
            row.unit = by_name[row.name].unit or row.unit
    if changed:
        Metric.objects.bulk_update(changed, ["direction", "direction_by", "unit"])
    return rows, turned


_NO_UNIT = ("", "1")
_RANK = {DirectionBy.OPERATOR: 2, DirectionBy.LAB: 1, DirectionBy.TABLE: 1, DirectionBy.NOBODY: 0}


def _outranks(given: Metric, current: Metric) -> bool:
    given_rank, current_rank = (_RANK[DirectionBy(metric.direction_by)] for metric in (given, current))
    return given.direction != Direction.UNKNOWN and given_rank > current_rank


_COMMIT_FIELDS = (
    "title", "author_name", "author_email", "authored_at", "trailers", "signers",
    "patch_message_id", "patch_id",
)  # fmt: skip


def commits(given: Iterable[Commit], culprits: Collection[str] = ()) -> dict[str, Commit]:
    """Find or create commits, by full sha, which replaces an abbreviated one where only that was known.

    New values only fill empty fields, but for `culprits` that have no report yet: what another lab said of them as a
    parent of its own culprits decides on no author.
    """
    by_sha: dict[str, Commit] = {}
    for commit in given:
        _improve(by_sha.setdefault(commit.sha, commit), commit)
    rows: dict[str, Commit] = Commit.objects.in_bulk(list(by_sha), field_name="sha")
    # Those known only by an abbreviation of one of these shas: a few, from old reports
    short = Commit.objects.filter(sha_length__gte=_SHORTEST, sha_length__lt=_FULL)
    lengths = short.order_by("sha_length").values_list("sha_length", flat=True).distinct()
    full_by_short = {sha[:length]: sha for length in lengths for sha in by_sha if sha not in rows and len(sha) > length}
    if full_by_short:
        abbreviated = Commit.objects.filter(sha__in=list(full_by_short))
        rows |= {full_by_short[row.sha]: row for row in abbreviated}
    named = [row.pk for sha, row in rows.items() if sha in culprits]
    reported = set(Report.objects.filter(culprit__in=named).values_list("culprit", flat=True)) if named else set()
    for sha, row in rows.items():
        if sha in culprits and row.sha == sha and row.pk not in reported and by_sha[sha].author_email:
            row.title, row.author_name, row.author_email, row.trailers = "", "", "", []
    changed = [row for sha, row in rows.items() if _improve(row, by_sha[sha])]
    if changed:
        Commit.objects.bulk_update(changed, ["sha", *_COMMIT_FIELDS, "author_from_report"], batch_size=50)
        refresh(Report.objects.filter(culprit__in=changed).values_list("pk", flat=True))
    return rows | _ensure("sha", {sha: commit for sha, commit in by_sha.items() if sha not in rows})


def _improve(row: Commit, source: Commit) -> bool:
    """Fill empty fields of `row`. Returns whether there were any to fill."""
    if row.author_from_report and source.author_email:  # a lab or git knows better
        row.author_name, row.author_email, row.author_from_report = "", "", False
    return bool(_fill(row, source.sha, {name: getattr(source, name) for name in _COMMIT_FIELDS}))


def _fill(row: Commit, sha: str, values: Mapping[str, object]) -> list[str]:
    """Fill empty fields, and put a longer sha for a shorter one. Returns the names of what changed."""
    changed = [name for name, value in values.items() if value and not getattr(row, name)]
    for name in changed:
        setattr(row, name, values[name])
    if len(sha) > len(row.sha):
        row.sha = sha
        changed.append("sha")
    return changed


# --- Files of tool output: each once, in one piece, as received ---

MOST_CHARACTERS = 4 << 20  # characters of a file
MOST_FILES = 200  # attached by users to a report, or to a kernel
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029/\\]+")


def attach(name: str, text: str, submitted_by: str, now: datetime, **place: Any) -> ToolOutput:
    """Store a file once. Returns the stored one; raises InvalidInput. `place`: what it belongs to, by columns: a report
    and its side, or the kernel that was measured; with a machine, and of a result also its scenario.
    """
    row = ToolOutput(**place)
    if not text.strip():
        raise InvalidInput(f"{name[:80]}: the file is empty")
    if len(text) > MOST_CHARACTERS:
        raise InvalidInput(f"{name[:80]}: expected at most {MOST_CHARACTERS:,} characters, found {len(text):,}")
    row.name = _UNSAFE.sub(" ", name).strip()[:200] or "a file"
    row.text = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    owner = f"report {row.report_id} {row.side}" if row.report_id else f"kernel {row.kernel_id}"
    owner += f" machine {row.machine_id}" if row.machine_id else ""
    owner += f" scenario {row.scenario_id}" if row.scenario_id else ""
    row.key = hashlib.sha256(f"{owner}\0{row.name}\0{row.text}".encode()).hexdigest()
    if duplicate := ToolOutput.objects.filter(key=row.key).first():
        return duplicate
    others = ToolOutput.objects.filter(report=row.report, kernel=row.kernel, result=None)
    if row.result is None and others.count() >= MOST_FILES:  # files of results have a limit of their own
        raise InvalidInput(f"{row.name[:80]}: there are already {MOST_FILES} files")
    row.kind, row.submitted_by, row.at = kind_of(row.text), submitted_by, now
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:  # the same file was stored at the same moment
        return ToolOutput.objects.get(key=row.key)
    return row
