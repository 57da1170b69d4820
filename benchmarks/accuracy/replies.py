"""Accuracy of reading replies: what `explain` concludes from the labelled real threads, per rule, intent and thread.

The labels were made by one careful reader (../shared/data/threads-dev.json). An effect is right if it equals the
label's; an intent, if the label has it, too.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bot.archives.files import read_mbox
from bot.explain import explain
from bot.mail.settings import BotSettings

SHARED = Path(__file__).resolve().parent.parent.parent.parent / "shared" / "data"
LAB = "oliver.sang@intel.com,rong.a.chen@intel.com,yujie.liu@intel.com"
# As described in the data's README.
LKP = BotSettings(
    address="perfbot@bot.example.org",
    robots=frozenset(f"{LAB},lkp@intel.com".split(",")),
    operators=frozenset(f"{LAB},feng.tang@intel.com,zhengjun.xing@linux.intel.com,beibei.si@intel.com".split(",")),
    trust_policy="open",
)
ROLES = {"reporter": "bot_operator"}
STATES = {
    "no_response": "open_no_response",
    "responded": "open_responded",
    "working": "open_working",
    "needs_info": "open_needs_info",
    "disputed": "open_disputed",
    "dropped": "dropped_reverted",
    "expected": "expected_wontfix",
    "no_action": "improvement_no_action",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply: its label, and what `explain` concludes."""

    thread: str
    label: dict[str, Any]
    found: dict[str, Any]

    @property
    def effect(self) -> dict[str, str]:
        effect: dict[str, str] = self.found["effect"]
        return effect

    @property
    def right(self) -> bool:
        return self.effect["state"] == self.label["status_effect"]

    @property
    def acts(self) -> bool:
        """Whether it has an automatic effect, if only that the author has responded."""
        return self.effect["mode"] == "auto" and self.effect["state"] != "none"

    @property
    def intents(self) -> set[str]:
        return {each["name"] for each in self.found["intents"]}


@dataclass(frozen=True, slots=True)
class Thread:
    """One report and its replies; states are named as in the labels."""

    key: str
    subject: str
    want: str
    state: str
    if_accepted: str
    replies: tuple[Reply, ...]


def threads(off: Collection[str] = (), shared: Path = SHARED) -> list[Thread]:
    """Return the labelled threads as read without the rules in `off`."""
    labels = json.loads((shared / "threads-dev.json").read_text())
    raws = [mail.raw for mail in read_mbox(shared / "threads-dev.mbox")]
    found = {each["message_id"]: each for each in explain(raws, replace(LKP, rules_off=frozenset(off)))}
    return [
        Thread(
            key,
            label["subject"],
            label["final_status_thread_only"],
            state_name(found[key]["state"]),
            state_name(found[key]["state_if_accepted"]),
            tuple(Reply(key, each, found[each["msgid"]]) for each in label["replies"]),
        )
        for key, label in labels.items()
    ]


def state_name(state: str) -> str:
    return STATES.get(state, state)


@dataclass(frozen=True, slots=True)
class Figures:
    """The accuracy figures of a set of replies."""

    acted: int
    acted_rightly: int
    labelled_auto: int
    found_auto: int
    replies: int
    effects: int  # replies whose effect is right, automatic or suggested
    roles: int


def figures(replies: Sequence[Reply]) -> Figures:
    """Return the figures of these replies."""
    auto = [each for each in replies if each.label.get("automation") == "auto"]
    return Figures(
        acted=sum(each.acts for each in replies),
        acted_rightly=sum(each.acts and each.right for each in replies),
        labelled_auto=len(auto),
        found_auto=sum(each.acts and each.right for each in auto),
        replies=len(replies),
        effects=sum(each.right for each in replies),
        roles=sum(ROLES.get(each.found["role"], each.found["role"]) == each.label["role"] for each in replies),
    )


def rule_counts(replies: Sequence[Reply]) -> dict[str, tuple[int, int]]:
    """Return how often each rule decided the effect of a mail, and how often correctly."""
    counts: dict[str, tuple[int, int]] = {}
    for reply in replies:
        if rule := reply.effect["rule"]:
            times, right = counts.get(rule, (0, 0))
            counts[rule] = (times + 1, right + reply.right)
    return dict(sorted(counts.items()))


def intent_counts(replies: Sequence[Reply]) -> dict[str, tuple[int, int, int]]:
    """Return how often each intent was found, correctly found, and labelled."""
    names = {name for each in replies for name in (*each.intents, *each.label["intents"])}
    return {
        name: (
            sum(name in each.intents for each in replies),
            sum(name in each.intents and name in each.label["intents"] for each in replies),
            sum(name in each.label["intents"] for each in replies),
        )
        for name in sorted(names)
    }


def cross_validated(all_threads: Sequence[Thread]) -> Iterator[tuple[Thread, tuple[str, ...]]]:
    """Yield each thread, read without the rules that only this thread supports, and those rules.

    A rule is supported by a thread in which it decided correctly. This is leave-one-out for hand-written rules:
    what was learned from one thread alone does not count there.
    """
    supported: dict[str, set[str]] = {}
    for thread in all_threads:
        for reply in thread.replies:
            if reply.right and reply.effect["rule"]:
                supported.setdefault(reply.effect["rule"], set()).add(thread.key)
    for thread in all_threads:
        off = tuple(sorted(rule for rule, keys in supported.items() if keys == {thread.key}))
        read = threads(off) if off else all_threads
        yield next(each for each in read if each.key == thread.key), off


def labels_alone(thread: Thread) -> str:
    """Return the state that the labels themselves lead to, if exactly the automatic ones act."""
    state = "open_no_response"
    for reply in thread.replies:
        if reply.label["automation"] == "auto":
            state = _after(state, reply.label["status_effect"])
    return state


# The simplest fold of label effects, generous to the labels: the last one wins, but discussion undoes no fix.
_LEADS = {
    "responded": "open_responded",
    "working": "open_working",
    "needs_info": "open_needs_info",
    "info_provided": "open_responded",
    "fix_failed": "open_responded",
    "disputed": "open_disputed",
    "dropped": "dropped_reverted",
    "wontfix": "expected_wontfix",
    "improvement_ack": "improvement_no_action",
}
_SETTLED = frozenset({"fix_proposed", "fix_confirmed", "fix_queued", "dropped_reverted", "expected_wontfix"})


def _after(state: str, effect: str) -> str:
    to = _LEADS.get(effect, effect)
    talk = to.startswith("open_") and effect != "fix_failed"
    return state if state in _SETTLED and talk else to


def report() -> None:
    """Print all tables."""
    all_threads = threads()
    replies = [reply for thread in all_threads for reply in thread.replies]
    _print_figures("all threads", figures(replies))
    left_out = list(cross_validated(all_threads))
    _print_figures("leave one out", figures([reply for thread, _ in left_out for reply in thread.replies]))
    print(f"\n{'rule that decided':34}{'times':>6}{'right':>6}")
    for rule, (times, right) in rule_counts(replies).items():
        print(f"{rule:34}{times:6}{right:6}")
    print(f"\n{'intent':34}{'read':>6}{'right':>6}{'labelled':>9}")
    for intent, (read, right, labelled) in intent_counts(replies).items():
        print(f"{intent:34}{read:6}{right:6}{labelled:9}")
    print(f"\n{'thread':46}{'want':24}{'by itself':22}{'accepted':22}{'right':>6}  left out: right, without")
    for thread, (without, off) in zip(all_threads, left_out, strict=True):
        right, still = (sum(reply.right for reply in each.replies) for each in (thread, without))
        print(
            f"{thread.subject[-44:]:46}{thread.want:24}{thread.state:22}{thread.if_accepted:22}"
            f"{right:3}/{len(thread.replies):<2}  {still}{', ' + ', '.join(off) if off else ''}"
        )
    alone = sum(each.state == each.want for each in all_threads)
    accepted = sum(each.if_accepted == each.want for each in all_threads)
    bound = sum(labels_alone(each) == each.want for each in all_threads)
    print(f"\nfinal states: {alone} of {len(all_threads)} by itself, {accepted} with every suggestion accepted;")
    print(f"the effects that the labels call automatic lead to {bound} by themselves")


def _print_figures(name: str, found: Figures) -> None:
    print(
        f"{name:16} acted rightly {found.acted_rightly} of {found.acted}; labelled automatic: {found.found_auto} of "
        f"{found.labelled_auto}; right effect {found.effects} of {found.replies}; roles {found.roles} of"
        f" {found.replies}"
    )
