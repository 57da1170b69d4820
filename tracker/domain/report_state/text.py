"""The status text: a report state as the sentence of the tables, in the words of the v5.6 report."""

from __future__ import annotations

from tracker.domain.events import State, Verdict
from tracker.domain.report_state.state import ReportState


def status_text(standing: ReportState) -> str:
    """Return the status text, as in the v5.6 report: "merged at v5.6-rc6, the regression has been fixed in v5.6-rc6".

    Where it was merged, what became of it, and the remark. A remark replaces a complaint about silence, which an
    improvement's status text never has.
    """
    silent = standing.state in (State.NO_RESPONSE, State.NO_ACTION) and standing.remark
    parts = [_whereabouts(standing), "" if silent else _phrase(standing), standing.remark]
    return ", ".join(part for part in parts if part)


def _whereabouts(standing: ReportState) -> str:
    """Return where the culprit is: "merged at v5.6-rc6", or how close to that."""
    if standing.landing:
        return f"merged at {standing.landing}"
    if standing.merged:
        return f"merged after {standing.merged_after}" if standing.merged_after else "merged in the mainline"
    if standing.in_next:
        return f"currently not merged, in linux-next since {standing.in_next}"
    return "currently not merged" + (f", gone from linux-next since {standing.gone}" if standing.gone else "")


def _phrase(standing: ReportState) -> str:
    thing = "improvement" if standing.verdict is Verdict.IMPROVEMENT else "regression"
    closed_in = f" in {standing.closed_in}" if standing.closed_in else ""
    fixed_in = f" in {standing.fix_landing}" if standing.fix_landing else ""
    undone = f"{thing} has been fixed" if thing == "regression" else f"change behind the {thing} has been corrected"
    if standing.fix_reverted_in and standing.state in (State.NO_RESPONSE, State.RESPONDED):
        return f"but the fix has been reverted in {standing.fix_reverted_in}"
    return {
        State.NO_RESPONSE: "no response from author yet",
        State.RESPONDED: "the author has responded",
        State.WORKING: "the author is working on it",
        State.NEEDS_INFO: "more information was asked for",
        State.DISPUTED: "the report is disputed",
        State.FIX_PROPOSED: f"the fix is gone from {standing.fix_gone}" if standing.fix_gone else "a fix is proposed",
        State.FIX_CONFIRMED: "a fix is proposed and confirmed",
        State.FIX_QUEUED: _on_its_way(standing),
        State.FIXED: f"the {undone}{fixed_in}",
        State.DROPPED: f"the commit has been reverted{closed_in}" if closed_in else "the commit has been dropped",
        State.EXPECTED: f"the {thing} is expected",
        State.INVALID: "the report was withdrawn",
        State.DUPLICATE: f"a duplicate of {standing.duplicate_of or 'another report'}",
        State.DISAPPEARED: f"but the {thing} has disappeared{closed_in}",
        State.NO_ACTION: "",
    }[standing.state]


def _on_its_way(standing: ReportState) -> str:
    """Return how close to the mainline the fix is."""
    if standing.fix_merged:
        after = f" after {standing.fix_merged_after}" if standing.fix_merged_after else ""
        return f"the fix has been merged{after}"
    if since := next((since for _, since in standing.fix_trees if since), ""):
        return f"the fix is in linux-next since {since}"
    tree = next((tree for tree, _ in reversed(standing.fix_trees) if tree), "")
    return f"a fix is queued in {tree}" if tree else "a fix is queued"
