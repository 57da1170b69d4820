"""KCIDB v5 reports: the same tests on two commits, with their numbers as samples. Pure.

KernelCI's schema has checkouts, builds and tests, but no bisections: two commits with the same tests in one report,
with a `number` each, are taken as parent and culprit. Which is which follows from their `git describe` names, else
from the checkout times; else an operator decides. A report may hold several pairs; each becomes a result of its own.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import jsonschema
import kcidb_io

from bot.mail.patches import find_trailers
from bot.results.formats import checks
from bot.results.formats.checks import canonical, pointer
from bot.results.values import CommitInfo, MachineInfo, MeasurementData, RejectedInput, Result, TestRun, checked_parse

FORMAT = "kcidb-5"
MAX_TESTS = 200_000
_SCHEMA = kcidb_io.schema.V5_3
_DESCRIBED = re.compile(r"(.+?)(?:-(\d+)-g[0-9a-f]{7,40})?\Z")
_NOT_RUN = frozenset({"MISS", "SKIP"})  # by the schema, a number counts with any other status


def is_report(value: Any) -> bool:
    """Whether a JSON value claims to be a KCIDB report."""
    return isinstance(value, dict) and isinstance(value.get("version"), dict) and "schema" not in value


def parse_all(value: Any, where: str) -> Iterator[Result | RejectedInput]:
    """Yield a result, or why it is rejected, for every pair of commits that a report compares."""
    try:
        _check(value, where)
        pairs = checked_parse(lambda: list(_pairs(value, where)), where)
    except RejectedInput as error:
        yield error
        return
    if not pairs:
        yield RejectedInput(where, "expected tests with a number on two commits, found none that can be compared")
    for pair in pairs:
        try:
            yield checked_parse(partial(parse, pair, where), where)
        except RejectedInput as error:
            yield error


def _check(value: Any, where: str) -> None:
    version = value.get("version") if isinstance(value, dict) else None
    major = version.get("major") if isinstance(version, dict) else None
    if major != _SCHEMA.major:
        raise RejectedInput(f"{where}, /version/major", f"expected KCIDB {_SCHEMA.major}, found {major!r}"[:300])
    try:
        _SCHEMA.validate(value)
    except jsonschema.ValidationError as error:
        worst = jsonschema.exceptions.best_match([error])
        location, why = pointer(worst.absolute_path), worst.message[:200]
        raise RejectedInput(f"{where}, {location}" if location else where, why, [(location, why)]) from None
    except (RecursionError, ValueError, TypeError) as error:
        raise RejectedInput(where, f"invalid KCIDB report: {str(error)[:200]}") from None
    if len(value.get("tests", ())) > MAX_TESTS:
        raise RejectedInput(f"{where}, /tests", f"expected at most {MAX_TESTS:,} tests")


def _pairs(value: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """Yield the parts of a report that compare two commits; each part is stored as a payload."""
    tables = {name: _by_id(value, name, where) for name in ("checkouts", "builds", "tests")}
    # A patchset on top of a commit is not a commit that can be reported.
    with_commit = {name: checkout for name, checkout in tables["checkouts"].items() if "git_commit_hash" in checkout}
    checkouts = {name: checkout for name, checkout in with_commit.items() if not checkout.get("patchset_hash")}
    builds = {name: entry for name, entry in tables["builds"].items() if entry["checkout_id"] in checkouts}
    groups: dict[tuple[str, ...], dict[str, list[Any]]] = {}
    for test in tables["tests"].values():
        build = builds.get(test["build_id"])
        if build and "number" in test and test.get("path") and test.get("status") not in _NOT_RUN:
            sha = checkouts[build["checkout_id"]]["git_commit_hash"]
            groups.setdefault(_test_key(test, build), {}).setdefault(sha, []).append(test)
    pairs: dict[tuple[str, ...], list[Any]] = {}
    for sides in groups.values():
        pairs.setdefault(tuple(sorted(sides)), []).extend(
            test for tests_of_side in sides.values() for test in tests_of_side
        )
    for shas, tests in sorted(pairs.items()):
        if len(shas) > 2:
            names = ", ".join(sha[:10] for sha in shas[:5])
            raise RejectedInput(f"{where}, /tests", f"expected each test on two commits, found one on {names}")
        if len(shas) == 2:
            kept = {test["build_id"]: builds[test["build_id"]] for test in tests}
            trees = {build["checkout_id"]: checkouts[build["checkout_id"]] for build in kept.values()}
            yield {
                "version": value["version"],
                "checkouts": list(trees.values()),
                "builds": list(kept.values()),
                "tests": tests,
            }


def _by_id(value: Mapping[str, Any], table: str, where: str) -> dict[str, Any]:
    """Return the rows of a table by id; identical rows count once. Raise RejectedInput where two differ."""
    rows: dict[str, Any] = {}
    for number, row in enumerate(value.get(table, ())):
        if rows.setdefault(row["id"], row) != row:
            raise RejectedInput(
                f"{where}, /{table}/{number}/id", f"expected unique ids, found different rows called {row['id'][:80]}"
            )
    return rows


def _test_key(test: Mapping[str, Any], build: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what identifies the same test on two commits."""
    identity = (build.get("architecture"), build.get("config_name"), build.get("compiler"), test["number"].get("unit"))
    return (test["path"], _machine_name(test), *(str(part or "") for part in identity))


def _machine_name(test: Mapping[str, Any]) -> str:
    environment = test.get("environment", {})
    platform = environment.get("misc", {}).get("platform")
    compatible = environment.get("compatible") or [""]
    return str(platform or environment.get("comment") or compatible[0] or "unknown")[:200]


# --- One pair of commits ---

_Samples = dict[tuple[str, str], list[float]]  # by path and unit


def parse(report: Any, where: str) -> Result:
    """Return the result of a report with one pair of commits, as cut out by `_pairs`."""
    if not is_report(report):
        raise RejectedInput(where, "expected a KCIDB report")
    checkouts = {checkout["id"]: checkout for checkout in report.get("checkouts", ())}
    builds = {build["id"]: build for build in report.get("builds", ())}
    by_sha: dict[str, dict[str, Any]] = {}
    for checkout in checkouts.values():
        by_sha.setdefault(checkout["git_commit_hash"], checkout)
    if len(by_sha) != 2:
        raise RejectedInput(where, f"expected checkouts of two commits, found {len(by_sha)}")
    old, new, uncertainty = _ordered(*by_sha.values())
    moments = (_moment(test.get("start_time")) for test in report["tests"])
    pair = f"{old['git_commit_hash'][:12]}..{new['git_commit_hash'][:12]}"
    ids = hashlib.sha256(canonical(sorted(test["id"] for test in report["tests"])).encode()).hexdigest()[:12]
    return Result(
        producer=f"kcidb:{new['origin']}",
        id=f"{pair}/{ids}",
        created_at=max((moment for moment in moments if moment), default=None),
        outcome="conclusive",
        tree=str(new.get("tree_name") or "unknown")[:200],
        branch=str(new.get("git_repository_branch") or "")[:200],
        tree_url=str(new.get("git_repository_url") or "")[:1000],
        good=_commit(old),
        bad=_commit(new),
        culprit=_commit(new),
        parent=_commit(old),
        patch_message_id=str(new.get("message_id") or "").strip().strip("<>")[:500],
        runs=tuple(_runs(report, checkouts, builds, old["git_commit_hash"], new["git_commit_hash"], where)),
        payload=canonical(report),
        format=FORMAT,
        uncertainty=uncertainty,
        may_be_reversed=bool(uncertainty),
        parent_is_stated=False,
    )


def _runs(
    report: Mapping[str, Any],
    checkouts: Mapping[str, Any],
    builds: Mapping[str, Any],
    old: str,
    new: str,
    where: str,
) -> Iterator[TestRun[MeasurementData]]:
    """Yield a test run for each suite, machine and build configuration; the first one holds the headline."""
    parts: dict[tuple[str, ...], dict[str, _Samples]] = {}
    for test in report["tests"]:
        build = builds[test["build_id"]]
        sha = checkouts[build["checkout_id"]]["git_commit_hash"]
        build_fields = (build.get(name) for name in ("architecture", "config_name", "compiler"))
        key = (test["path"].partition(".")[0], _machine_name(test), *(str(field or "") for field in build_fields))
        metric = (test["path"], test["number"].get("unit") or "")
        parts.setdefault(key, {}).setdefault(sha, {}).setdefault(metric, []).append(test["number"]["value"])
    for (suite, machine, arch, config, compiler), sides in parts.items():
        measured = list(_measured(sides.get(old, {}), sides.get(new, {}), where))
        if measured:
            build_params = (("arch", arch), ("config", config), ("compiler", compiler))
            params = {name: value[:1000] for name, value in build_params if value}
            yield TestRun(suite[:200], params, MachineInfo(machine), checks.with_roles(measured, suite))


def _measured(old: _Samples, new: _Samples, where: str) -> Iterator[MeasurementData]:
    """Yield the metrics that both sides have; a path with several units is one metric per unit."""
    units = Counter(path for path, _ in old)
    for path, unit in old:
        if (path, unit) in new:
            name = path if units[path] == 1 else f"{path} ({unit})"
            before, after = old[path, unit], new[path, unit]
            yield checks.measurement(name, unit, before, after, f"{where}, {name[:80]}")


def _ordered(one: dict[str, Any], other: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return the parent, the culprit and what is uncertain, "" only if `git describe` has them one commit apart."""
    pair = f"{one['git_commit_hash'][:10]} and {other['git_commit_hash'][:10]}"
    described = [_described(checkout) for checkout in (one, other)]
    if described[0] and described[1] and described[0][0] == described[1][0] and described[0] != described[1]:
        first, last = (one, other) if described[0] < described[1] else (other, one)
        apart = abs(described[0][1] - described[1][1])
        return first, last, "" if apart == 1 else f"{pair} are {apart} commits apart: the culprit may be between them"
    times = [_moment(checkout.get("start_time")) for checkout in (one, other)]
    if times[0] and times[1] and times[0] != times[1]:
        first, last = (one, other) if times[0] < times[1] else (other, one)
        return first, last, f"of {pair}, the one checked out first is assumed to be the parent"
    return one, other, f"unknown which of {pair} is the parent: assumed from their order in the report"


def _described(checkout: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the tag and the commit count of a `git describe` name."""
    match = _DESCRIBED.match(checkout.get("git_commit_name") or "")
    return (match[1], int((match[2] or "0")[:9])) if match else None


def _commit(checkout: Mapping[str, Any]) -> CommitInfo:
    title, _, body = str(checkout.get("git_commit_message") or "").partition("\n")
    return CommitInfo(
        checkout["git_commit_hash"],
        title.strip()[:1000],
        describe=str(checkout.get("git_commit_name") or "").replace("\n", " ")[:200],
        trailers=tuple((trailer.key, trailer.value) for trailer in find_trailers(body.splitlines())),
    )


def _moment(text: Any) -> datetime | None:
    try:
        return checks.utc(text) if isinstance(text, str) else None
    except ValueError:
        return None
