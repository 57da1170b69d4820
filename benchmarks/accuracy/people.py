"""Accuracy on the threads in which people report regressions (../shared/data/threads-4-dev).

The first mail's facts, the effects of replies, and where each report ends, with all rules and left one thread out.

Left out: a rule that only one thread supports does not count there (`replies.cross_validated`). An effect is right if
one of the careful readers accepts it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from benchmarks.accuracy.replies import LKP, ROLES, SHARED, STATES
from benchmarks.accuracy.shares import share
from bot.archives.files import read_mbox
from bot.explain import explain
from bot.replies.rules import persons
from bot.replies.which_report import KnownReport

NAME = "threads-4-dev"


@dataclass(frozen=True, slots=True)
class PersonThread:
    """A thread: its label, what `explain` makes of its first mail, and each reply with its label."""

    key: str
    label: dict[str, Any]
    first: dict[str, Any]
    replies: tuple[tuple[dict[str, Any], dict[str, Any]], ...]

    @property
    def supporting(self) -> set[str]:
        """The rules that decided rightly here."""
        return {found["effect"]["rule"] for label, found in self.replies if _right(label, found)} - {None}


@dataclass(frozen=True, slots=True)
class PersonFigures:
    """Counts over a set of threads. `wanted`: replies whose effect should be automatic; `done`: those that are."""

    threads: int
    reports: int  # first mails that report a regression
    made_or_offered: int
    wrong_offers: int
    acted: int
    right: int
    wanted: int
    done: int
    states: int
    roles: int
    replies: int


def read_threads(off: Collection[str] = (), *, known: bool = False) -> list[PersonThread]:
    """Return the threads as read without the rules in `off`. `known`: every first mail is a report."""
    labels = json.loads((SHARED / f"{NAME}.json").read_text())
    raws = [mail.raw for mail in read_mbox(SHARED / f"{NAME}.mbox")]
    tracked = [
        KnownReport(row["id"], row["culprit"], row["title"], (row["message_id"],))
        for row in (json.loads((SHARED / f"{NAME}.known.json").read_text()) if known else ())
    ]
    settings = replace(LKP, rules_off=frozenset(off))
    found = {row["message_id"]: row for row in explain(raws, settings, tracked)}
    return [
        PersonThread(key, label, found[key], tuple((reply, found[reply["msgid"]]) for reply in label["replies"]))
        for key, label in labels.items()
    ]


def _acts(found: dict[str, Any]) -> bool:
    return bool(found["effect"]["mode"] == "auto" and found["effect"]["state"] != "none")


def _right(label: dict[str, Any], found: dict[str, Any]) -> bool:
    return found["effect"]["state"] in {label["status_effect"], *label.get("also_acceptable", ())}


def _state(thread: PersonThread) -> str:
    state = thread.first.get("state", "")
    return STATES.get(state, state)


def figures(threads: Sequence[PersonThread]) -> PersonFigures:
    """Return the figures of these threads; offers count as `explain` shows them without a list of known reports."""
    replies = [pair for thread in threads for pair in thread.replies]
    wanted = [(label, found) for label, found in replies if label["automation"] == "auto"]
    is_report = {thread.key: thread.label["first_mail"]["report"] for thread in threads}
    offers = {thread.key for thread in read_threads() if thread.first["report"]}
    return PersonFigures(
        threads=len(threads),
        reports=sum(is_report[key] == "yes" for key in is_report),
        made_or_offered=sum(is_report[key] == "yes" for key in offers if key in is_report),
        wrong_offers=sum(is_report[key] == "no" for key in offers if key in is_report),
        acted=sum(_acts(found) for _, found in replies),
        right=sum(_acts(found) and _right(label, found) for label, found in replies),
        wanted=len(wanted),
        done=sum(_acts(found) and _right(label, found) for label, found in wanted),
        states=sum(_state(thread) == thread.label["final_status_thread_only"] for thread in threads),
        roles=sum(ROLES.get(found["role"], found["role"]) == label["role"] for label, found in replies),
        replies=len(replies),
    )


def left_out(threads: Sequence[PersonThread], *, known: bool) -> list[PersonThread]:
    """Return each thread as read without the rules of people's threads that only this one supports."""
    names = {rule.name for rule in (*persons.USERS, *persons.DEVELOPERS)}
    result = []
    for thread in threads:
        others = {rule for other in threads if other.key != thread.key for rule in other.supporting}
        off = (thread.supporting & names) - others
        again = read_threads(off, known=known) if off else threads
        result.append(next(other for other in again if other.key == thread.key))
    return result


def keep(found: PersonFigures) -> None:
    """Keep the shares for the table of `make accuracy`."""
    where = f"{NAME}, {found.threads} threads, left one out"
    rows = (
        ("reports made or offered", found.made_or_offered, found.reports),
        (f"automatic effects, {where}", found.right, found.acted),
        (f"effects wanted automatically, and applied, {where}", found.done, found.wanted),
        ("final states", found.states, found.threads),
    )
    for what, right, of in rows:  # left one out, but rules were written with these threads in view
        share(what, right, of, "careful readers' labels, real threads", unseen=False)


def report() -> None:
    """Print the figures, the facts of each first mail beside their labels, and the sentence of each thread."""
    for known in (False, True):
        threads = read_threads(known=known)
        for name, read in (("all rules", threads), ("left one out", left_out(threads, known=known))):
            found = figures(read)
            print(
                f"{'every first mail a report' if known else 'made or offered':26}{name:14}"
                f"acted rightly {found.right} of {found.acted}; wanted {found.done} of {found.wanted};"
                f" states {found.states} of {found.threads};"
                f" reports {found.made_or_offered} of {found.reports}, {found.wrong_offers} wrong"
            )
            if name == "left one out" and known:
                keep(found)
    for thread in read_threads(known=True):
        print(f"\n{thread.label['subject']}\n  {thread.first.get('status', 'not a report')}")
        facts = thread.first["report"] or {}
        for label, name in (
            *(("culprit_sha", "culprit"), ("culprit_title", "culprit_title"), ("metric", "metric")),
            *(("magnitude", "magnitude"), ("good", "good"), ("bad", "bad")),
        ):
            print(f"    {name:14}{facts.get(name) or '-':50} label: {thread.label['first_mail'].get(label, '-')}")


if __name__ == "__main__":
    report()
