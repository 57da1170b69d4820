"""When a learned reading acts: what the rules found and what the model thinks, to automatic effects and suggestions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from bot.mail.patches import bare_title
from bot.replies.classifier.model import Opinion
from bot.replies.effect import Effect, Mode, kind_of, name_of
from bot.replies.fix_mentions import named_commit
from tracker.domain.events import EventKind

RULE = "classifier"
# Chosen by cross-validation over the labelled threads (make accuracy; docs/reading.md has its figures). The threads put
# aside had no part in the choice.
ACTS = 0.75  # the probability above which an effect acts by itself
SURER = {"disputed": 0.85, "fix_failed": 0.85}  # the same for those that were wrong most often
AGREES = 0.35  # the same for one that a rule finds, too
AGREES_MILDLY = {"info_provided": 0.25}  # the same where little is at stake: the lab has answered something
AGREES_TO_CLOSE = 0.5  # and that closes the report; its writer must be proven, too
ENGAGED = 0.70  # the probability, of all effects that are also a response, above which it is recorded as a response
ENGAGED_FIRST = 0.60  # the same where a mere response is the likeliest of all
SUGGESTED = 0.10  # below this nothing is suggested
MEANINGLESS = 0.5  # the probability of "none" from which nothing is suggested
MOST_SUGGESTIONS = 2
# The classifier alone closes nothing (DESIGN rule 4), and that a fix was applied is for git to say.
CLOSING = frozenset({"dropped", "wontfix", "invalid", "duplicate", "improvement_ack"})
# How often careful readers would also accept "responded", by the effect that they name first (labelled threads).
ALSO_RESPONDED: Mapping[str, float] = {
    "responded": 1.0,
    "none": 0.3,
    "disputed": 0.4,
    "needs_info": 0.3,
    "wontfix": 0.5,
    "working": 0.4,
    "fix_queued": 0.3,
    "improvement_ack": 0.5,
    "dropped": 0.1,
}
_FIXES = (EventKind.FIX_PROPOSED, EventKind.FIX_QUEUED, EventKind.FIX_CONFIRMED)


def decide(found: Sequence[Effect], opinion: Opinion, *, may_act: bool = True) -> list[Effect]:
    """Return the effects of a reply, the one that acts first: at most one of them, and at most two suggestions.

    `found`: the effects by rules. What they find that names no state, such as a request for a test, is kept as it is.
    """
    by_rule = {name_of(each): each for each in reversed(found)}
    likely = list(opinion.probabilities)
    acting = _acting(by_rule, opinion) if may_act else ""
    if not acting and likely[0] == "none" and opinion.probabilities["none"] >= MEANINGLESS:
        return _beside(found)
    names = [acting] if acting else []
    names += [each for each in likely[:MOST_SUGGESTIONS] if _is_suggested(each, acting, opinion)]
    modes = [Mode.AUTO if name == acting else Mode.SUGGEST for name in names]
    chosen = [_effect(name, by_rule.get(name), opinion, mode) for name, mode in zip(names, modes, strict=True)]
    return [*chosen, *_beside(found)]


def _acting(by_rule: Mapping[str, Effect], opinion: Opinion) -> str:
    """Return the name of the effect that acts by itself, "" for none."""
    likely = opinion.probabilities
    first = next(iter(likely))
    if first not in CLOSING | {"none", "responded", "fix_queued"} and likely[first] >= SURER.get(first, ACTS):
        return first
    for name in (first, *by_rule):
        rule = by_rule.get(name)
        known = rule is not None and rule.mode is Mode.AUTO and name not in ("none", "responded")
        agrees = AGREES_TO_CLOSE if name in CLOSING else AGREES_MILDLY.get(name, AGREES)
        if known and likely.get(name, 0.0) >= agrees:
            return name
    engaged = sum(probability * ALSO_RESPONDED.get(name, 0.0) for name, probability in likely.items())
    enough = ENGAGED_FIRST if first == "responded" else ENGAGED
    return "responded" if engaged >= enough and first != "none" else ""


def _is_suggested(name: str, acting: str, opinion: Opinion) -> bool:
    return name not in ("none", acting) and opinion.probabilities[name] >= SUGGESTED


def _effect(name: str, rule: Effect | None, opinion: Opinion, mode: Mode) -> Effect:
    """Return the effect of this name as the rule found it, else with the sentence that decides."""
    if rule:
        return replace(rule, mode=mode, why=opinion.why(name))
    quote = opinion.sentences.get(name, "")
    kind = kind_of(name)
    title, sha = named_commit(quote) if kind in _FIXES else ("", "")
    rule_name = name if name == "improvement_ack" else RULE
    return Effect(kind, mode, rule_name, quote=quote, title=bare_title(title), remark=sha, why=opinion.why(name))


def _beside(found: Iterable[Effect]) -> list[Effect]:
    """Return what the rules found that is no state of the report."""
    return [each for each in found if each.kind and name_of(each) == "none"]
