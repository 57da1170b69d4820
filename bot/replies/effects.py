"""What a mail does to a report: automatic events, suggestions, or nothing (DESIGN rules 4 and 8).

A patch and a robot's notice need no sentence. Among sentences the first rule that matches decides, and others in the
same mail only suggest. Any reply of substance by author or maintainer counts as a response, whatever else it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bot.mail.patches import bare_title, version_of
from bot.replies.commands.effects import effect_of
from bot.replies.effect import NOTHING, Effect, Mode, Relation, Standpoint
from bot.replies.fix_mentions import named_commit
from bot.replies.intents import Intent
from bot.replies.lab_answers import answers, helps, holds_table, tells
from bot.replies.meaning import FoundIntent, found_in
from bot.replies.prose.courtesy import first_that_says_more, says_more
from bot.replies.reading import Reading
from bot.replies.rules import UNMEASURED
from bot.replies.sender_kind import SenderKind
from bot.replies.trust_policy import may_act
from tracker.domain.events import CLOSED, EventKind, Role
from tracker.domain.report_state.steps import STEPS

_PATCH_RULES = {Relation.CLOSES: "patch_closes_report", Relation.CULPRIT: "patch_names_culprit"}
_DEVELOPERS = (Role.AUTHOR, Role.MAINTAINER, None)
# The events that a third party's reply can suggest; others are for author and maintainers.
_POINTED_OUT = frozenset(
    {
        *(EventKind.FIX_PROPOSED, EventKind.FIX_QUEUED, EventKind.FIX_CONFIRMED, EventKind.FIX_WITHDRAWN),
        *(EventKind.DROPPED, EventKind.DISPUTED),
    }
)
_DEBUG = re.compile(r"\bdebug(?:ging)?\b(?: \w+){0,3} (?:patch|diff|info|print|trace|output|hack|below)", re.I)
_SHA = re.compile(r"\b[0-9a-f]{7,40}\b", re.I)
_BUT = re.compile(r"(?:but|however|though|although|still|except|unfortunately)\b", re.I)


def effects_of(reading: Reading, at: Standpoint, policy: str = "verified") -> tuple[Effect, ...]:
    """Return the effects of a mail on one report, commands first, then the deciding effect; never empty.

    A report that is only linked to is not changed. Without the proof that the policy requires, an effect becomes a
    suggestion (trust/policy.py).
    """
    if at.relation is Relation.LINK:
        return (NOTHING,)
    if at.relation is Relation.CULPRIT:
        return tuple(replace(each, mode=Mode.SUGGEST) for each in _patch(reading, at)) or (NOTHING,)
    orders = [effect_of(each) for each in reading.commands.good] if reading.obeyed else []
    said = [*_said(reading, at)]
    effects = (
        *(_bounded(each, reading, at, policy, asks_much=True) for each in orders),
        *(_bounded(each, reading, at, policy, asks_much=closes(each)) for each in said),
    )
    return effects or (NOTHING,)


def _bounded(effect: Effect, reading: Reading, at: Standpoint, policy: str, *, asks_much: bool) -> Effect:
    """Return the effect, as a suggestion if the policy requires more proof."""
    if may_act(policy, reading.trust, at.role, asks_much=asks_much, by_address=at.by_address):
        return effect
    return replace(effect, mode=Mode.SUGGEST)


def closes(effect: Effect) -> bool:
    """Whether the effect would close a report."""
    step = STEPS.get(effect.happening) if effect.happening else None
    return bool(step and step.to in CLOSED)


def _said(reading: Reading, at: Standpoint) -> Iterator[Effect]:
    if reading.kind is SenderKind.ROBOT:
        yield from _notice(reading)
    elif reading.kind is SenderKind.BOT_OPERATOR:
        yield from _operator(reading, at)
    elif reading.kind is SenderKind.PERSON and reading.obeyed:
        yield from _patch(reading, at) if reading.patches else _words(reading, at)


def _notice(reading: Reading) -> Iterator[Effect]:
    """A robot says that this thread's patch was applied to a tree."""
    if note := reading.notice:
        where = f"{note.tree} ({note.branch})"
        yield Effect(EventKind.FIX_QUEUED, Mode.AUTO, "merge_notice", quote=note.quote, commit=note.sha, tree=where)


def _patch(reading: Reading, at: Standpoint) -> Iterator[Effect]:
    """A person replies with a patch, or posts one elsewhere that closes the report; they may ask for a test."""
    if reading.kind not in (SenderKind.PERSON, SenderKind.BOT_OPERATOR) or not reading.patches:
        return
    patch = reading.patches[0]
    rule = _PATCH_RULES.get(at.relation, "patch_in_reply")
    quote = patch.title or (patch.files[0] if patch.files else "a patch")
    debug = next((each.text for each in reading.sentences if _DEBUG.search(each.text)), "")
    mode = Mode.SUGGEST if debug or reading.kind is SenderKind.BOT_OPERATOR else Mode.AUTO
    version = version_of(reading.mail.subject)
    yield Effect(
        EventKind.FIX_PROPOSED,
        mode,
        "debug_patch" if debug else rule,
        quote=debug or quote,
        title=patch.title,
        remark=f"v{version}" if version > 1 else "",
    )
    asked = next((each for each in found_in(reading) if each.rule and each.intent is Intent.ASKS_TEST), None)
    if asked:
        yield Effect(EventKind.TEST_ASKED, Mode.AUTO, "asks_test_of_patch", quote=asked.evidence)


def _words(reading: Reading, at: Standpoint) -> Iterator[Effect]:
    """Yield the effects of plain English by author, maintainer or a third party."""
    found = found_in(reading, improvement=at.improvement)
    if at.role not in _DEVELOPERS:
        found = tuple(each for each in found if each.rule and each.rule.does in _POINTED_OUT)
        yield from (replace(each, mode=Mode.SUGGEST) for each in _ruled(found))
        return
    if not _has_substance(reading):
        return
    found = tuple(each for each in found if not _names_culprit(each, at.culprit))
    asides = {each.rule.name for each in found if each.rule and each.rule.aside}
    effects = sorted(_ruled(found), key=lambda effect: effect.rule in asides)  # the deciding effect first
    answer = Effect(EventKind.RESPONDED, Mode.AUTO, "reply_of_author", quote=_first_words(reading))
    deciding = effects[0] if effects and effects[0].rule not in asides else answer
    if deciding is answer:
        yield answer
    yield from effects
    if deciding.happening is not EventKind.RESPONDED or deciding.mode is Mode.SUGGEST:
        yield answer  # it is a response, whatever becomes of the rest
    if deciding.rule == "will_look":
        # A promise to look takes over the next step, whatever the reporter was asked for.
        yield replace(deciding, happening=EventKind.ANSWERED)


def _names_culprit(found: FoundIntent, culprit: str) -> bool:
    """Whether the commit named as the fix is the culprit itself, which may have fixed something else."""
    if not culprit or not found.rule or found.rule.does not in (EventKind.FIX_PROPOSED, EventKind.FIX_QUEUED):
        return False
    return any(culprit.startswith(sha.lower()) for sha in _SHA.findall(found.evidence))


def _ruled(found: Sequence[FoundIntent]) -> Iterator[Effect]:
    """Yield the effects of rules, each event kind once: the first may be automatic, later ones are suggestions."""
    seen: set[EventKind] = set()
    decided = False
    for each in found:
        rule = each.rule
        if rule is None or rule.does is None or rule.does in seen or (rule.alone and decided):
            continue
        seen.add(rule.does)
        acts = rule.mode is Mode.AUTO and not decided and not rule.aside
        decided = decided or not rule.aside
        fix = rule.does in (EventKind.FIX_PROPOSED, EventKind.FIX_QUEUED, EventKind.FIX_CONFIRMED)
        title, sha = named_commit(each.evidence) if fix else ("", "")
        mode = Mode.AUTO if acts else Mode.SUGGEST
        yield Effect(rule.does, mode, rule.name, quote=each.evidence, title=bare_title(title), remark=sha)


def _operator(reading: Reading, at: Standpoint) -> Iterator[Effect]:
    """Yield the effects of a lab operator's reply: a test result, an answer, or a retraction."""
    if reading.patches:
        yield from _patch(reading, at)
        return
    found = found_in(reading, improvement=at.improvement)
    table = holds_table(reading.own_text)
    intents = {each.intent for each in found}
    if table or Intent.BOT_WILL_TEST in intents:
        found = tuple(each for each in found if each.rule not in UNMEASURED)
    outcome = next(_ruled(found), None)
    tested = next((each for each in reading.trailers if each.key == "Tested-by"), None)
    if Intent.BOT_WILL_TEST in intents and not table:
        tested = None  # the tag is offered for when the test has passed
        if outcome and outcome.happening is EventKind.FIX_CONFIRMED:
            outcome = None
    if tested and (outcome is None or outcome.happening is EventKind.ANSWERED):
        outcome = Effect(EventKind.FIX_CONFIRMED, Mode.AUTO, "operator_tested_by", quote=f"Tested-by: {tested.value}")
    good = None if at.improvement else helps(reading.own_text)
    if outcome and outcome.happening is not EventKind.ANSWERED:
        yield _weighed(outcome, reading, found)
    elif good is not None:
        happening = EventKind.FIX_CONFIRMED if good else EventKind.FIX_FAILED
        yield Effect(happening, Mode.SUGGEST, "operator_compares", quote=_first_words(reading))
    elif outcome:
        yield outcome
    elif table:
        yield Effect(EventKind.ANSWERED, Mode.AUTO, "operator_measured", quote=_first_words(reading))
    elif Intent.BOT_WILL_TEST not in intents:
        yield from _answer(reading, asks=Intent.BOT_ASKS in intents)


def _answer(reading: Reading, *, asks: bool) -> Iterator[Effect]:
    """Yield the effect of an answer without a measurement; if the lab also asks something, it is only suggested."""
    if answer := answers(reading.sentences):
        yield Effect(EventKind.ANSWERED, Mode.SUGGEST if asks else Mode.AUTO, "operator_answers", quote=answer.text)
    elif not asks and (told := tells(reading.sentences)):
        yield Effect(EventKind.ANSWERED, Mode.AUTO, "operator_tells", quote=told.text)


def _weighed(outcome: Effect, reading: Reading, found: Sequence[FoundIntent]) -> Effect:
    """Return the outcome of a test; as a suggestion if other sentences contradict it."""
    good = next((each for each in found if each.rule and each.rule.name == "operator_confirms"), None)
    if good and outcome.rule == "operator_ineffective" and good.evidence != outcome.quote:
        return Effect(EventKind.FIX_CONFIRMED, Mode.SUGGEST, "operator_confirms_with_caveat", quote=good.evidence)
    return replace(outcome, mode=Mode.SUGGEST) if _is_followed_by_but(reading, outcome) else outcome


def _is_followed_by_but(reading: Reading, outcome: Effect) -> bool:
    """Whether the next sentence qualifies a confirmation."""
    if outcome.happening is not EventKind.FIX_CONFIRMED:
        return False
    texts = [each.text for each in reading.sentences]
    after = texts[texts.index(outcome.quote) + 1 :][:1] if outcome.quote in texts else []
    return any(_BUT.match(each) for each in after)


def _has_substance(reading: Reading) -> bool:
    """Whether the mail says more than courtesy; a command alone is an answer, too."""
    commanded_lines = {command.line for command in reading.commands.good}
    if commanded_lines:
        return True
    names = {*reading.mail.author.name.split()[:6], *reading.audience.reporters, *reading.audience.others}
    return says_more(reading.own_text, names)


def _first_words(reading: Reading) -> str:
    """Return the first sentence that says something, as evidence."""
    texts = [each.text for each in reading.sentences] or [" ".join(reading.own_text[:2000].split())[:300]]
    return first_that_says_more(texts)
