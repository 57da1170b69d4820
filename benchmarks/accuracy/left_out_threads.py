"""Accuracy of reading replies on threads that were left out of the learning: `left_out_threads.py [FOLDS]` (10).

Prints, with 95 % intervals, per set of threads: automatic effects right, too thin and wrong; the replies that a person
would let act and that do; replies whose effect is acted on or suggested; then the same by effect, what is confused with
what, and how the figures grow with the data. `--put-aside` judges the project's model on the threads put aside.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.accuracy import labelled, training
from benchmarks.accuracy.labelled import LabelledReply
from benchmarks.accuracy.shares import KEPT, bounds, share
from bot.replies import examples
from bot.replies.classifier import Model, load
from bot.replies.effects import MERE_RESPONSE, closes, content_effects, settled
from bot.replies.rules.notation import Effect, Mode, name_of

_READERS = "careful readers' labels, real threads"
PUT_ASIDE = "put aside"


@dataclass(frozen=True, slots=True)
class Judged:
    """A reply and its effects, as read by a model that did not see its thread.

    `recorded`: what is recorded of it, which can be a mere response; `effects`: what it is read to mean.
    """

    reply: LabelledReply
    recorded: tuple[Effect, ...]
    effects: tuple[Effect, ...]

    @property
    def acting(self) -> list[str]:
        return [name for each in self.effects if each.mode is Mode.AUTO and (name := name_of(each)) != "none"]

    @property
    def offered(self) -> set[str]:
        """The effects that act or are suggested; "none" if there is nothing else to do."""
        return {name_of(each) for each in self.effects if each.kind} or {"none"}

    @property
    def is_mere_response(self) -> bool:
        """Whether it is recorded that author or maintainer has responded, and nothing more."""
        return any(each.rule == MERE_RESPONSE for each in self.recorded)

    def is_right(self, name: str) -> bool:
        return name in self.reply.acceptable


def judged(replies: Iterable[LabelledReply], model: Model | None) -> list[Judged]:
    return [_judged(each, list(content_effects(each.reading, each.context, model))) for each in replies]


def _judged(reply: LabelledReply, effects: Sequence[Effect]) -> Judged:
    return Judged(reply, settled(effects), tuple(each for each in effects if each.rule != MERE_RESPONSE))


def left_out(folds: int, written: Sequence[training.Labelled], part: float = 1.0) -> list[Judged]:
    """Judge each reply by a model that learned from the other folds of threads, and from the written examples."""
    replies = labelled.replies()
    threads = sorted({each.thread for each in replies})
    Random(0).shuffle(threads)
    made = [each for number, each in enumerate(written) if number % 100 < part * 100]
    found: list[Judged] = []
    for fold in range(folds):
        out = set(threads[fold::folds])
        others = [each for each in threads if each not in out]
        others = others[: round(len(others) * part)]
        model = training.train([*(each.training() for each in replies if each.thread in others), *made])
        found += judged((each for each in replies if each.thread in out), model)
        if sys.stderr.isatty():
            print(f"\r{fold + 1} of {folds}", end="\r", file=sys.stderr, flush=True)
    return found


def interval(hits: int, of: int) -> str:
    """Return a share with its 95 % interval."""
    low, high = bounds(hits, of)
    return f"{hits:4} of {of:<4}{hits / of:6.1%}  ({low:.0%} to {high:.0%})" if of else "none"


def print_figures(name: str, found: Sequence[Judged]) -> None:
    acts = [(each, effect) for each in found for effect in each.acting]
    right = sum(each.is_right(effect) for each, effect in acts)
    thin = sum(effect == "responded" and not each.is_right(effect) for each, effect in acts)
    wanted = [each for each in found if each.reply.label["automation"] == "auto"]
    done = sum(any(map(each.is_right, each.acting)) for each in wanted)
    offered = sum(any(map(each.is_right, each.offered)) for each in found)
    strictly = sum(each.reply.label["status_effect"] in each.offered for each in found)
    closing = sum(effect.mode is Mode.AUTO and closes(effect) for each in found for effect in each.effects)
    most = max(sum(effect.mode is Mode.SUGGEST for effect in each.effects) for each in found)
    unseen = name == PUT_ASIDE  # with all others in view, rules were written
    where = f"{name}, {len({each.reply.thread for each in found})} threads"
    share(f"automatic effects, {where}", right, len(acts), _READERS, unseen=unseen)
    share("the same, right or too thin", right + thin, len(acts), _READERS, unseen=unseen)
    share(f"effects wanted automatically, and applied, {where}", done, len(wanted), _READERS, unseen=unseen)
    share(f"effects acted on or suggested, {where}", offered, len(found), _READERS, unseen=unseen)
    suggested = [
        each.is_right(name_of(effect))
        for each in found
        for effect in each.effects
        if effect.mode is Mode.SUGGEST and effect.kind and not (effect.rule == MERE_RESPONSE and each.acting)
    ]
    share(f"suggestions, {where}", sum(suggested), len(suggested), _READERS, unseen=unseen)
    from benchmarks.accuracy.reply_states import still_waiting

    waiting = list(still_waiting(found))
    share("suggestions that still wait at a thread's end", sum(waiting), len(waiting), _READERS, unseen=unseen)
    print(f"\n{name}: {len(found)} replies in {len({each.reply.thread for each in found})} threads")
    print(f"  automatic effects right        {interval(right, len(acts))}")
    print(f"  too thin                       {interval(thin, len(acts))}")
    print(f"  wrong                          {interval(len(acts) - right - thin, len(acts))}, {closing} closing")
    print(f"  wanted automatically, and done {interval(done, len(wanted))}")
    print(f"  acted on or suggested          {interval(offered, len(found))}, at most {most} suggestions")
    print(f"  suggestions right              {interval(sum(suggested), len(suggested))}")
    print(f"  those that wait at the end     {interval(sum(waiting), len(waiting))}")
    print(f"  the same, by the one label     {interval(strictly, len(found))}")
    print_mere_responses([each for each in found if each.is_mere_response], where, unseen=unseen)


def print_mere_responses(mere: Sequence[Judged], where: str, *, unseen: bool) -> None:
    """Print how often what is only recorded as a response is one; it is too thin where a reader finds more in it."""
    exact = sum(each.is_right("responded") for each in mere)
    true = sum(each.reply.acceptable != {"none"} for each in mere)
    share(f"mere responses, where nothing else acts, {where}", exact, len(mere), _READERS, unseen=unseen)
    share("the same, right or too thin", true, len(mere), _READERS, unseen=unseen)
    print(f"  mere responses right           {interval(exact, len(mere))}")
    print(f"  the same, right or too thin    {interval(true, len(mere))}")


def print_by_effect(found: Sequence[Judged]) -> None:
    print(f"\n{'effect':18}{'labelled':>9}{'offered':>9}{'acted':>7}{'right':>7}")
    for name in examples.EFFECTS:
        of = [each for each in found if each.reply.label["status_effect"] == name]
        acted = [each for each in found if name in each.acting]
        offered = sum(bool(each.offered & each.reply.acceptable) for each in of)
        print(f"{name:18}{len(of):9}{offered:9}{len(acted):7}{sum(each.is_right(name) for each in acted):7}")
    print("\nlabelled, and taken for (not accepted by any reader)")
    confused = Counter(
        (each.reply.label["status_effect"], name_of(each.effects[0]) if each.effects else "none")
        for each in found
        if not each.offered & each.reply.acceptable
    )
    for (label, taken), times in confused.most_common(20):
        print(f"  {label:16} {taken:16}{times:4}")


def print_states(found: Sequence[Judged], *, unseen: bool) -> None:
    """Print how many whole threads end in the right state, and how often we await whom the reader awaits."""
    from benchmarks.accuracy.reply_states import ends

    threads = ends(found)
    whole = [each for each in threads if each.whole]
    awaited = [pair for each in threads for pair in each.awaited]
    right = sum(each.state == each.want for each in whole)
    share("final states of whole threads, right suggestions accepted", right, len(whole), _READERS, unseen=unseen)
    print("\nwith the suggestions that are right accepted:")
    print(f"  final state of whole threads   {interval(right, len(whole))}")
    print(f"  awaited after a reply          {interval(sum(want == us for want, us in awaited), len(awaited))}")
    for each in whole:
        if each.state != each.want:
            print(f"    {each.set} {each.key[:40]:40} is {each.want}, read as {each.state}")
    for (want, us), times in Counter(pair for pair in awaited if pair[0] != pair[1]).most_common(8):
        print(f"    awaited: {want:12} read as {us:12}{times:4}")


def by_set(found: Sequence[Judged], show: Callable[[str, Sequence[Judged]], None]) -> None:
    for name in labelled.SETS:
        if part := [each for each in found if each.reply.set == name]:
            show(name, part)


def main() -> None:
    labelled.require()
    if "--put-aside" in sys.argv:
        found = judged(labelled.replies(put_aside=True), load())
        print_figures(PUT_ASIDE, found)
        print_by_effect(found)
        print_states(found, unseen=True)
        return
    folds = next((int(each) for each in sys.argv[1:] if each.isdigit()), 10)
    written = training.labelled(examples.load())
    found = left_out(folds, written)
    by_set(found, print_figures)
    print_figures("all sets", found)
    print_by_effect(found)
    print_states(found, unseen=False)
    os.environ.pop(KEPT, None)  # the table is of what is learned from all
    for part_of in (0.25, 0.5):
        part = left_out(max(3, folds // 2), written, part_of)
        print(f"\nlearned from {part_of:.0%} of the examples and threads:")
        by_set(part, print_figures)


if __name__ == "__main__":
    main()
