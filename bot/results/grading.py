"""Catalog rows that results refer to: machines, scenarios, metrics, trees and commits, found or created in bulk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.git.inspection import CommitInspection
from bot.mail.patches import bare_title
from bot.mail.people.signers import signers
from bot.replies.which_report.report_lookup import person_keys
from bot.results.bisect_result import CommitInfo, MachineInfo, MeasurementData, Result
from tracker.domain.keys import scenario_key
from tracker.models import Commit, Machine, Metric, Scenario, Tree
from tracker.services import catalog


@dataclass(frozen=True, slots=True)
class ResultCatalog:
    """Rows by the names used in the results. `changed_metrics`: those whose direction changed with these."""

    machines: Mapping[str, Machine]
    scenarios: Mapping[str, Scenario]
    metrics: Mapping[str, Metric]
    trees: Mapping[str, Tree]
    commits: Mapping[str, Commit]
    changed_metrics: Sequence[Metric]

    def measurements(self, result: Result) -> Iterator[tuple[MeasurementData, Metric, Scenario, Machine]]:
        """Yield the measurements of a result in order, each with its metric, scenario and machine."""
        for run in result.runs:
            scenario = self.scenarios[scenario_key(run.suite, run.params)]
            machine = self.machines[run.machine.id]
            for each in run.measurements:
                yield each, self.metrics[each.metric], scenario, machine


def fetch_catalog(results: Sequence[Result], seen: Mapping[str, CommitInspection]) -> ResultCatalog:
    """Find or create all rows. `seen`: commits as git trees have them, for what the lab left out."""
    runs = [run for result in results for run in result.runs]
    metrics, changed_metrics = catalog.metrics(
        catalog.new_metric(metric, unit, direction, suite)
        for metric, unit, direction, suite in dict.fromkeys(
            (each.metric, each.unit, each.direction, run.suite) for run in runs for each in run.measurements
        )
    )
    return ResultCatalog(
        machines=catalog.machines(machine_row(run.machine) for run in runs),
        scenarios=catalog.scenarios(
            Scenario(key=scenario_key(run.suite, run.params), suite=run.suite, params=dict(run.params)) for run in runs
        ),
        metrics=metrics,
        trees=catalog.trees(
            Tree(name=result.tree, url=result.tree_url, role=catalog.role_of(result.tree, result.tree_url))
            for result in results
            if result.tree
        ),
        commits=catalog.commits(_commits(results, seen)),
        changed_metrics=changed_metrics,
    )


def _commits(results: Sequence[Result], seen: Mapping[str, CommitInspection]) -> Iterator[Commit]:
    for result in results:
        if result.culprit:
            yield _commit(result.culprit, seen.get(result.culprit.sha), result.patch_message_id)
            if result.parent:
                yield _commit(result.parent, seen.get(result.parent.sha))


def with_trailers(commit: CommitInfo, seen: CommitInspection | None) -> CommitInfo:
    """Return a commit with the lab's trailers, or else with those from a git tree."""
    return replace(commit, trailers=commit.trailers or (seen.trailers if seen else ()))


def _commit(commit: CommitInfo, seen: CommitInspection | None, patch_message_id: str = "") -> Commit:
    """Return a commit with the lab's data, completed from a git tree."""
    commit = with_trailers(commit, seen)
    return Commit(
        sha=commit.sha,
        title=bare_title(commit.title or (seen.title if seen else ""))[:1000],
        author_name=commit.author_name or (seen.author_name if seen and not commit.author_email else ""),
        author_email=(commit.author_email or (seen.author_email if seen else "")).lower(),
        authored_at=commit.date or (seen.authored_at if seen else None),
        trailers=[list(pair) for pair in commit.trailers],
        signers=person_keys(signers(seen.trailers)) if seen else [],  # a lab could name anybody
        patch_message_id=patch_message_id,
        patch_id=seen.patch_id if seen else "",
    )


def machine_row(machine: MachineInfo) -> Machine:
    """Return the row of a machine as the lab describes it, not stored."""
    return Machine(
        name=machine.id,
        cpus=machine.cpus,
        sockets=machine.sockets,
        cpu_model=machine.cpu_model,
        codename=machine.codename,
        memory_bytes=machine.memory_bytes,
    )
