"""The status text: a report state as the sentence of the tables, in the words of the v5.6 report."""

from __future__ import annotations

from tracker.domain.events import State, Verdict
from tracker.domain.report_state.state import ReportState


def status_text(report_state: ReportState, *, mainline_followed: bool) -> str:
    """Return the status text, as in the v5.6 report: "merged at v5.6-rc6, the regression has been fixed in v5.6-rc6".

    Where it was merged, what became of it, and the remark. A remark replaces a complaint about silence, which an
    improvement's status text never has. "currently not merged" is only said if a mainline tree is followed: without
    one nobody looked.
    """
    silent = report_state.state in (State.NO_RESPONSE, State.NO_ACTION) and report_state.remark
    landing = _landing_text(report_state, "currently not merged" if mainline_followed else "")
    parts = [landing, "" if silent else _outcome_text(report_state), report_state.remark]
    return ", ".join(part for part in parts if part) or "reported"


def _landing_text(report_state: ReportState, not_merged: str) -> str:
    """Return where the culprit is: "merged at v5.6-rc6", or how close to that."""
    if report_state.landing:
        return f"merged at {report_state.landing}"
    if report_state.merged:
        return f"merged after {report_state.merged_after}" if report_state.merged_after else "merged in the mainline"
    in_next = f"in linux-next since {report_state.in_next}" if report_state.in_next else ""
    gone = f"gone from linux-next since {report_state.gone}" if report_state.gone else ""
    return ", ".join(part for part in (not_merged, in_next or gone) if part)


def _outcome_text(report_state: ReportState) -> str:
    noun = "improvement" if report_state.verdict is Verdict.IMPROVEMENT else "regression"
    closed_in = f" in {report_state.closed_in}" if report_state.closed_in else ""
    fixed_in = f" in {report_state.fix_landing}" if report_state.fix_landing else ""
    fixed_text = f"{noun} has been fixed" if noun == "regression" else f"change behind the {noun} has been corrected"
    if report_state.fix_reverted_in and report_state.state in (State.NO_RESPONSE, State.RESPONDED):
        return f"but the fix has been reverted in {report_state.fix_reverted_in}"
    return {
        State.NO_RESPONSE: "no response from author yet",
        State.RESPONDED: "the author has responded",
        State.WORKING: "the author is working on it",
        State.NEEDS_INFO: "more information was asked for",
        State.DISPUTED: "the report is disputed",
        State.FIX_PROPOSED: f"the fix is gone from {report_state.fix_gone}"
        if report_state.fix_gone
        else "a fix is proposed",
        State.FIX_CONFIRMED: "a fix is proposed and confirmed",
        State.FIX_QUEUED: _queued_fix_text(report_state),
        State.FIXED: f"the {fixed_text}{fixed_in}{', as measured' if report_state.fix_measured else ''}",
        State.DROPPED: f"the commit has been reverted{closed_in}" if closed_in else "the commit has been dropped",
        State.EXPECTED: f"the {noun} is expected",
        State.INVALID: "the report was withdrawn",
        State.DUPLICATE: f"a duplicate of {report_state.duplicate_of or 'another report'}",
        State.DISAPPEARED: f"but the {noun} has disappeared{closed_in}",
        State.NO_ACTION: "",
    }[report_state.state]


def _queued_fix_text(report_state: ReportState) -> str:
    """Return how close to the mainline the fix is."""
    if report_state.fix_merged:
        after = f" after {report_state.fix_merged_after}" if report_state.fix_merged_after else ""
        return f"the fix has been merged{after}"
    if since := next((since for _, since in report_state.fix_trees if since), ""):
        return f"the fix is in linux-next since {since}"
    tree = next((tree for tree, _ in reversed(report_state.fix_trees) if tree), "")
    return f"a fix is queued in {tree}" if tree else "a fix is queued"
