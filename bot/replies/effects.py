"""What a mail does to a report: automatic events, suggestions, or nothing (DESIGN rules 4 and 8).

A command, a patch and a robot's notice need no sentence. What sentences mean is decided by the rules (intents.py)
together with the classifier (classifier.py). Where nothing acts, it is still recorded that author or maintainer has
responded. How much a sentence counts depends on who says it: a developer, the lab (intents.py), the person who
reported it.

Effects are first read as if the writer were proven. Then gate.py says whether each is permitted; what isn't becomes a
suggestion. In the end effects become events of the report, with the mail as evidence.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from textwrap import shorten

from bot.mail.message import ParsedMail
from bot.mail.patches import answered_posting, bare_title, is_posting, ref_in, version_of
from bot.replies import gate
from bot.replies.classifier import Model, Opinion, ReplyFacts, decide, load, says_something
from bot.replies.commands import Command, Word
from bot.replies.intents import (
    FoundIntent,
    effects_of_rules,
    evidence_of,
    first_answer,
    has_substance,
    holds_table,
    intents_by_rules,
    intents_of,
    is_measured_so,
    lab_effects,
    tag_of_tester,
)
from bot.replies.person_report import culprit_named
from bot.replies.reading import Notice, Reading, SenderKind, in_thread_of
from bot.replies.rules import OPERATORS, RULES
from bot.replies.rules.notation import NOTHING, By, Effect, Intent, MailContext, Mode, Relation, name_of
from bot.replies.sentences import Sentence, is_greeting, is_polite
from bot.replies.which_report import CONTEXT, concerns, is_backport, is_candidate_fix
from tracker.domain.commit_names import named_fix, named_sha, unquoted
from tracker.domain.events import CLOSED, EventData, EventKind, Role
from tracker.domain.report_state import STEPS

MERE_RESPONSE = "mere_response"
# What must not be taken from an older mail without marks, which somebody else may have written
_JUDGEMENTS = frozenset({EventKind.DISPUTED, EventKind.FIX_CONFIRMED, EventKind.FIX_FAILED, EventKind.FIX_QUEUED})
MOST_EFFECTS = 30  # of one mail on one report; twenty commands, and what its sentences say


def effects_of(
    reading: Reading, context: MailContext, policy: str = "verified", *, recent: bool = True
) -> tuple[Effect, ...]:
    """Return the effects of a mail on one report, commands first, then the deciding effect; never empty.

    A report that is only linked to is not changed, but for a patch that is said to cure it. What the gate (gate.py)
    does not permit under the policy becomes a suggestion. `recent`: as `gate.is_recent` returns it.
    """
    if context.relation in (Relation.LINK, Relation.CULPRIT):
        return tuple(replace(effect, mode=Mode.SUGGEST) for effect in _patch_effects(reading, context)) or (NOTHING,)
    # As if the writer were proven, in each way of reading the body
    variants = (reading, *(reading.others or ()))
    as_written, *others = [_all_effects(variant, context) for variant in variants]
    undoubted = [_all_effects(variant.undoubted, context) for variant in variants if variant.undoubted]
    respaced = [_all_effects(variant.undoubted or variant, context) for variant in reading.respaced]
    standing = gate.Standing(reading.trust, context.role, context.by_address, context.about, recent=recent)
    effects: list[Effect] = []
    for effect in as_written[:MOST_EFFECTS]:
        if effect.rule.startswith(COMMAND):
            caused = gate.Caused.COMMAND
        elif closes(effect) or effect.kind is EventKind.BISECTED:  # which says what a report is about
            caused = gate.Caused.CLOSE
        else:
            caused = gate.Caused.MOVE
        same_words = reading.others is not None and _is_in_each(effect, others)
        # Below what may be an older mail, nobody knows whose words these are; nor, with other blanks, what is a quote.
        same_words = same_words and (caused is gate.Caused.MOVE or _is_in_each(effect, (*undoubted, *respaced)))
        acts = gate.permitted(caused, replace(standing, same_words=same_words), policy)
        if effect.kind in _JUDGEMENTS and "html_only" not in reading.mail.problems:
            acts = acts and _is_in_each(effect, undoubted)
        effects.append(effect if acts else replace(effect, mode=Mode.SUGGEST))
    if context.reporters:
        unknown = context.role in (None, Role.THIRD_PARTY) and not reading.trust.proven and policy != "open"
        effects = [_with_remark(_of_stranger(effect) if unknown else effect, reading) for effect in effects]
    return tuple(effects) or (NOTHING,)


def _all_effects(reading: Reading, context: MailContext) -> list[Effect]:
    """Return the effects of one way to read a mail: commands first, then what it says."""
    if context.reporters:
        reading = in_thread_of(reading, context.reporters)
    commands = reading.commands.good if reading.may_command else ()
    commanded = [effect_of(command) for command in commands if command.word in COMMANDED]
    # The culprit of a report is its identity, once it is known.
    commanded = [one for one in commanded if one.kind is not EventKind.BISECTED or (context.unnamed and one.commit)]
    named = any(effect.kind is EventKind.BISECTED for effect in commanded)
    bisections = [] if named else list(_bisect_effects(reading, context))
    content = [_of_drop(effect, reading, context) for effect in content_effects(reading, context)]
    return [*commanded, *content, *_named_tests(reading, context, content), *bisections]


_NAMES_CULPRIT = re.compile(r"\b(?:revert\w*|original|culprit|regress\w*)\b|[0-9a-f]{8}|\"", re.I)


def _of_drop(effect: Effect, reading: Reading, context: MailContext) -> Effect:
    """Return what an answer to another patch says of a drop: in the thread of a fix the fix is dropped, unless the
    sentence names the culprit; elsewhere nobody knows, so that it waits for a click.
    """
    answered = answered_posting(reading.mail.subject)
    if effect.kind is not EventKind.DROPPED:
        return effect
    if context.relation is Relation.FIX_THREAD:
        kind = EventKind.DROPPED if _NAMES_CULPRIT.search(effect.quote) else EventKind.FIX_WITHDRAWN
        return replace(effect, kind=kind, mode=Mode.SUGGEST)
    is_other = context.title and _letters(bare_title(answered)) not in ("", _letters(context.title))
    if not is_other or _COVER_LETTER.search(answered) or _NAMES_CULPRIT.search(effect.quote):
        return effect
    return replace(effect, mode=Mode.SUGGEST)


_COVER_LETTER = re.compile(r"\A\[[^\]]*\b0+/\d")


def _letters(title: str) -> str:
    """Return the letters of a title, which maintainers write with other capitals and punctuation."""
    return "".join(filter(str.isalnum, title.partition(" (was:")[0].lower()))


def _is_in_each(effect: Effect, readings: Iterable[Sequence[Effect]]) -> bool:
    """Whether each way to read a mail has this effect."""
    return all(any(_agree(effect, other) for other in effects) for effects in readings)


_TITLE = 20  # characters that identify a title


def _agree(one: Effect, other: Effect) -> bool:
    """Whether two effects do the same to a report; a title may be wrapped in one of them."""
    if (one.kind, one.commit, one.remark) != (other.kind, other.commit, other.remark):
        return False
    short, long = sorted((one.title, other.title), key=len)
    return long == short or (len(short) >= _TITLE and long.startswith(short))


_OF_STRANGERS = frozenset({EventKind.RESPONDED, EventKind.ASKED, EventKind.FIX_PROPOSED})


def _of_stranger(effect: Effect) -> Effect:
    """Return an effect of a mail that nobody proves, by somebody whom nobody knows: that they answer, ask or post a
    patch may be taken as it is; what else they hold is for a click.
    """
    acts = effect.kind in _OF_STRANGERS or effect.mode is not Mode.AUTO
    return effect if acts else replace(effect, mode=Mode.SUGGEST)


_QUESTION = 120  # characters


def _with_remark(effect: Effect, reading: Reading) -> Effect:
    """Return an effect with what the sentence of a person's report says of it: the question, or who holds that view."""
    if effect.kind is EventKind.ASKED and not effect.remark:
        return replace(effect, remark=shorten(effect.quote, _QUESTION, placeholder=" …"))
    if effect.kind in (EventKind.EXPECTED, EventKind.DISPUTED) and not effect.remark:
        return replace(effect, remark=reading.mail.author.name or reading.mail.author.email)
    return effect


def settled(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """Return what is recorded of a mail: a mere response only where nothing else acts.

    Where it does, nobody needs to decide whether it is a response; where it may not act, it is not a suggestion either.
    """
    meanings = tuple(effect for effect in effects if effect.rule != MERE_RESPONSE)
    if any(effect.mode is Mode.AUTO and name_of(effect) != "none" for effect in meanings):
        return meanings
    mere = tuple(effect for effect in effects if effect.rule == MERE_RESPONSE and effect.mode is Mode.AUTO)
    if mere:
        meanings = tuple(effect for effect in meanings if effect.kind is not EventKind.RESPONDED)
    return (*meanings, *mere) or (NOTHING,)


def closes(effect: Effect) -> bool:
    """Whether the effect would close a report."""
    step = STEPS.get(effect.kind) if effect.kind else None
    return bool(step and step.to in CLOSED)


# --- Commands, and what they name ---

COMMAND = "command_"  # what the rules of commands begin with
COMMANDED: dict[Word, EventKind] = {
    Word.FIX: EventKind.FIX_PROPOSED,
    Word.DUP: EventKind.DUPLICATE,
    Word.INVALID: EventKind.INVALID,
    Word.EXPECTED: EventKind.EXPECTED,
    Word.NOTE: EventKind.NOTED,
    Word.TITLE: EventKind.RETITLED,
    Word.TEST: EventKind.TEST_ASKED,
    Word.UNFIX: EventKind.FIX_WITHDRAWN,
    Word.UNDUP: EventKind.UNDUPLICATED,
    Word.REOPEN: EventKind.REOPENED,
    Word.ASSIGN: EventKind.ASSIGNED,
    Word.RESOLVE: EventKind.DISAPPEARED,
    Word.REMIND_OFF: EventKind.REMINDERS_OFF,
    Word.INTRODUCED: EventKind.BISECTED,
    Word.BACKBURNER: EventKind.NOTED,
}


def effect_of(command: Command) -> Effect:
    """Return the effect of a command, assuming that its writer is verified.

    >>> effect_of(Command(Word.TITLE, "“mm: take the lock”", 1)).title
    'mm: take the lock'
    """
    text, title, sha = command.argument, "", ""
    if command.word is Word.FIX:
        text, title = named_fix(text)
    elif command.word is Word.TITLE:
        text, title = "", unquoted(text)
    elif command.word is Word.INTRODUCED:
        sha, _ = named_sha(text)
        text = "" if sha else text
    elif command.word is Word.ASSIGN and text.lower() == "nobody":
        text = ""
    elif command.word is Word.BACKBURNER:
        text = f"on the back burner: {text}" if text else "on the back burner"
    return Effect(
        COMMANDED[command.word],
        Mode.SUGGEST if command.word is Word.RESOLVE else Mode.AUTO,  # it doesn't say how
        COMMAND + command.word.replace(" ", "_"),
        quote=f"{command.word} {command.argument}".strip(),
        title=title,
        remark=text,
        commit=sha,
    )


def _named_tests(reading: Reading, context: MailContext, effects: Sequence[Effect]) -> list[Effect]:
    """Return a request for a test where a developer asks for one in plain English and names what to test: a linked
    mail, a branch or a commit, or the patch that the mail answers. A runner can take it, as if a command had asked.
    """
    if reading.kind is not SenderKind.PERSON or any(effect.kind is EventKind.TEST_ASKED for effect in effects):
        return []
    asked = next((effect for effect in effects if effect.kind is EventKind.ASKED), None)
    names = any(link.message_id for link in reading.links) or ref_in(reading.own_text, context.culprit)
    if asked is None or not (names or context.relation in (Relation.FIX_THREAD, Relation.PATCH_THREAD)):
        return []
    quote = next((intent.evidence for intent in intents_of(reading) if intent.intent is Intent.ASKS_TEST), "")
    return [Effect(EventKind.TEST_ASKED, asked.mode, "asks_test_by_name", quote=quote)] if quote else []


_SHORTEST_SHA = 10  # digits that stand for a commit nobody has seen yet


def _bisect_effects(reading: Reading, context: MailContext) -> Iterator[Effect]:
    """Yield that somebody found the culprit of a person's report; for certain if the reporter did."""
    if not context.unnamed or reading.patches:
        return
    sha, title, by_bisection = culprit_named(reading)
    if sha:
        certain = by_bisection and context.role is Role.REPORTER and len(sha.value) >= _SHORTEST_SHA
        mode = Mode.AUTO if certain else Mode.SUGGEST
        yield Effect(EventKind.BISECTED, mode, "names_culprit", quote=sha.sentence, title=title.value, commit=sha.value)


# --- What a mail says ---

_DEVELOPERS = (Role.AUTHOR, Role.MAINTAINER, None)
_OUTCOMES = frozenset({EventKind.FIX_CONFIRMED, EventKind.FIX_FAILED})
_OWNERS = (Role.AUTHOR, Role.MAINTAINER)


def content_effects(reading: Reading, context: MailContext, model: Model | None = None) -> Iterator[Effect]:
    """Yield the effects of what a mail says, commands aside, as if its writer were proven.

    `model`: what the classifier has learned, if not the one of the project; a cross-validation has others.
    """
    if reading.kind is SenderKind.ROBOT:
        if reading.notice and context.relation is not Relation.PATCH_THREAD:
            yield _queued(reading.notice)
        return
    by_lab = reading.kind is SenderKind.BOT_OPERATOR
    if _is_user(reading, context):
        yield from user_effects(reading, context, model)
        return
    if context.role is None and not reading.patches and _keeps_a_list(reading):
        return
    has_outcome = by_lab and (tag_of_tester(reading) or holds_table(reading.own_text))
    if context.relation in CONTEXT and not (has_outcome or concerns(reading, context)):
        if context.relation is Relation.FIX_THREAD and reading.may_command and not by_lab:
            yield from _of_posted_fix(reading, context)
        return  # about the patch, not about the regression
    if reading.patches and reading.kind is SenderKind.PERSON:
        effects = list(_patch_effects(reading, context))
        yield from effects
        if reading.notice and effects:
            yield replace(_queued(reading.notice), mode=Mode.AUTO if context.role in _OWNERS else Mode.SUGGEST)
    elif reading.may_command:
        others = reading.audience.others | context.authors
        reading = replace(reading, audience=replace(reading.audience, others=others))
        effects = list(effects_by_rules(reading, context))
        outsider = context.role not in _DEVELOPERS and not by_lab
        if (
            # The classifier has learned from robots' threads, where nobody asks for a bisection
            any(effect.mode is Mode.AUTO and effect.rule in _HELPERS for effect in effects[:1])
            or any(is_measured_so(effect, reading, context) for effect in effects)  # which needs no other opinion
            or not reading.sentences
            or not (outsider or has_substance(reading))
        ):
            yield from effects
            return
        opinion = (model or load()).opinion(facts_of(reading, context, effects))
        decided = _cautious(decide(effects, opinion, may_act=not outsider), reading)
        decided = _with_rules_alone(effects, decided, opinion)
        looks = any(effect.rule == "will_look" for effect in effects)
        if (decided or looks or says_something(opinion)) and not outsider and not by_lab:
            decided.append(Effect(EventKind.RESPONDED, Mode.AUTO, MERE_RESPONSE, quote=evidence_of(reading)))
        yield from (effect for effect in decided if not outsider or effect.kind is not EventKind.RESPONDED)


def _queued(notice: Notice) -> Effect:
    """Return the effect of a notice: the patch of this mail, or of its thread, was applied."""
    where = f"{notice.tree} ({notice.branch})"
    return Effect(EventKind.FIX_QUEUED, Mode.AUTO, "merge_notice", quote=notice.quote, commit=notice.sha, tree=where)


def _of_posted_fix(reading: Reading, context: MailContext) -> Iterator[Effect]:
    """Yield, suggested, what became of a fix that was posted apart, by an answer to it that speaks of nothing else."""
    if reading.patches or is_backport(reading.mail.subject):
        return
    for effect in effects_by_rules(reading, context):
        dropped = effect.kind is EventKind.DROPPED and effect.mode is Mode.AUTO
        if dropped or effect.kind is EventKind.FIX_QUEUED:
            yield replace(effect, mode=Mode.SUGGEST)
            return


def effects_by_rules(reading: Reading, context: MailContext) -> Iterator[Effect]:
    """Yield the effects of a person's mail by the written rules alone, the deciding one first."""
    if _is_user(reading, context):
        yield from _user_effects_by_rules(reading, context)
    elif reading.patches:
        yield from _patch_effects(reading, context)
    else:
        by_lab = reading.kind is SenderKind.BOT_OPERATOR
        effects = list(lab_effects(reading, context) if by_lab else _developer_effects(reading, context))
        yield from effects
        if not context.improvement and not any(effect.kind in _OUTCOMES for effect in effects):
            yield from _tried(reading)


def facts_of(reading: Reading, context: MailContext, effects: Sequence[Effect]) -> ReplyFacts:
    """Return what the classifier looks at. `effects`: the effects by rules, the deciding one first."""
    by_user = _is_user(reading, context)
    intents = (
        intents_by_rules(reading, By.USER, context.improvement)
        if by_user
        else intents_of(reading, improvement=context.improvement)
    )
    first = effects[0] if effects else NOTHING
    names = [intent.rule.name for intent in intents if intent.rule]
    names += [effect.rule for effect in effects if effect.rule in _OF_TESTS]
    return ReplyFacts(
        sentences=reading.sentences,
        role=context.role,
        by_person=bool(reading.reporters),
        improvement=context.improvement,
        has_patch=bool(reading.patches),
        has_table=holds_table(reading.own_text),
        found=(*names, f"= {name_of(first)}", f"= {name_of(first)}, {first.mode}"),
    )


_TRACKER = re.compile(r"\bregressions? track(?:er|ing)\b", re.I)


def _keeps_a_list(reading: Reading) -> bool:
    """Whether somebody keeps a list of regressions, as the kernel's tracker does, who speaks in general."""
    if reading.reporters and reading.commands.good:  # in a robot's thread, developers give them, too
        return True
    return _TRACKER.search(reading.own_text[:5000]) is not None


def _cautious(effects: list[Effect], reading: Reading) -> list[Effect]:
    """Return effects of which four are only suggested: a request that calls somebody else by name, a request to a
    person without a question, a patch that only debugs, and that a fix was applied, in an answer to the report itself,
    where no fix has been named yet.
    """
    to_others = {sentence.text for sentence in reading.sentences if reading.audience.is_another(sentence)}
    asks = not reading.reporters or any(sentence.asks for sentence in reading.sentences)
    return [
        replace(one, mode=Mode.SUGGEST)
        if (one.kind is EventKind.ASKED and one.quote in to_others)
        or (one.kind is EventKind.ASKED and not asks and not (one.title or one.remark))
        or one.rule == "debug_patch"
        or (one.kind is EventKind.FIX_QUEUED and reading.answers_robot and not (one.title or one.remark))
        else one
        for one in effects
    ]


_STATED = _OUTCOMES | {EventKind.DROPPED}
# What a rule finds, and the classifier finds less likely than this, in per cent, was wrong.
LEAST_CERTAINTY = 5
LEAST_OF_LAB = 25  # by the rules of the lab, which tests much besides candidates
_BY_RULE_ALONE = ("operator_asks", "retracts_request", "withdraws_patch")  # of which the classifier knows nothing
_LAB_RULES = frozenset(rule.name for rule in OPERATORS)


def _with_rules_alone(effects: Sequence[Effect], decided: list[Effect], opinion: Opinion) -> list[Effect]:
    """Return what is decided, and, suggested, what only a rule finds: a test's outcome, a drop, a patch or a question
    that is taken back, the lab's question.

    These are said in a few words, in many ways, of which the classifier has learned few. Of a test it never says the
    opposite of the rule, and what it alone suggests stands back.
    """
    stated = [
        effect
        for effect in effects
        if effect.kind in _STATED
        and opinion.certainty(name_of(effect)) >= (LEAST_OF_LAB if effect.rule in _LAB_RULES else LEAST_CERTAINTY)
    ]
    asked = [effect for effect in effects if effect.rule in _BY_RULE_ALONE]
    by_rules = {effect.kind for effect in effects}
    outcomes = by_rules & _OUTCOMES
    decided = [effect for effect in decided if not (outcomes and effect.kind in _OUTCOMES - outcomes)]
    kinds = {effect.kind for effect in decided}
    for effect in [*stated[:1], *asked[:1]]:
        if effect.kind in kinds:
            continue
        # What nothing but the classifier suggests stands back
        decided = [one for one in decided if one.mode is not Mode.SUGGEST or one.kind in by_rules or not one.kind]
        decided.append(replace(effect, mode=Mode.SUGGEST, certainty=opinion.certainty(name_of(effect))))
    return decided


# --- Patches ---

_PATCH_RULES = {
    Relation.CLOSES: "patch_closes_report",
    Relation.CULPRIT: "patch_names_culprit",
    Relation.LINK: "patch_links_report",
    Relation.FIX_THREAD: "patch_in_fix_thread",
    Relation.PATCH_THREAD: "patch_in_patch_thread",
}
_DEBUG = re.compile(r"\bdebug(?:ging)?\b(?: \w+){0,3} (?:patch|diff|info|print|trace|output|hack|below)", re.I)


def _patch_effects(reading: Reading, context: MailContext) -> Iterator[Effect]:
    """A person replies with a patch, or posts one elsewhere that closes the report; they may ask for a test."""
    by_lab = reading.kind is SenderKind.BOT_OPERATOR
    if not (by_lab or reading.kind is SenderKind.PERSON) or not reading.patches:
        return
    if not is_candidate_fix(reading, context):
        return
    patch, title = reading.patches[0], reading.patch_title
    debug = next((sentence.text for sentence in reading.sentences if _DEBUG.search(sentence.text)), "")
    version = version_of(reading.mail.subject)
    yield Effect(
        EventKind.FIX_PROPOSED,
        Mode.SUGGEST if debug or by_lab else Mode.AUTO,
        "debug_patch" if debug else _PATCH_RULES.get(context.relation, "patch_in_reply"),
        quote=debug or title or (patch.files[0] if patch.files else "a patch"),
        title=title,
        remark=f"v{version}" if version > 1 else "",
    )
    for intent in intents_of(reading):
        if intent.rule and intent.intent is Intent.ASKS_TEST:
            yield Effect(EventKind.TEST_ASKED, Mode.AUTO, "asks_test_of_patch", quote=intent.evidence)
            break


# --- Developers ---

# The events that a rule can suggest for a third party's reply; others are for author and maintainers.
_THIRD_PARTY_KINDS = frozenset(
    {
        EventKind.FIX_PROPOSED, EventKind.FIX_QUEUED, EventKind.FIX_CONFIRMED, EventKind.FIX_WITHDRAWN,
        EventKind.DROPPED, EventKind.DISPUTED, EventKind.FIX_FAILED, EventKind.REOPENED,
    }
)  # fmt: skip
_SHA = re.compile(r"\b[0-9a-f]{7,40}\b", re.I)


def _developer_effects(reading: Reading, context: MailContext) -> Iterator[Effect]:
    intents: Iterable[FoundIntent] = intents_of(reading, improvement=context.improvement)
    if context.role not in _DEVELOPERS:
        intents = (intent for intent in intents if intent.rule and intent.rule.does in _THIRD_PARTY_KINDS)
        yield from (replace(suggestion, mode=Mode.SUGGEST) for suggestion in effects_of_rules(intents))
        return
    if not has_substance(reading):
        return
    intents = [intent for intent in intents if not _names_culprit(intent, context.culprit)]
    asides = {intent.rule.name for intent in intents if intent.rule and intent.rule.aside}
    effects = sorted(effects_of_rules(intents), key=lambda effect: effect.rule in asides)  # the deciding effect first
    if candidate := _candidate_to_test(reading, context, effects):
        effects.insert(0, candidate)
    answer = Effect(EventKind.RESPONDED, Mode.AUTO, "reply_of_author", quote=evidence_of(reading))
    deciding = effects[0] if effects and effects[0].rule not in asides else answer
    if deciding is answer:
        yield answer
    yield from effects
    if deciding.kind is not EventKind.RESPONDED or deciding.mode is Mode.SUGGEST:
        yield answer  # it is a response, whatever becomes of the rest


_TO_TEST = re.compile(
    r"\b(?:this|these|that|my|the (?:attached|following|below)) (?:\w+ )?"
    r"(?:fix|patch(?:es)?|branch|series|tree|commits?)\b",
    re.I,
)
_IT = re.compile(r"\b(?:this|it|that)\b(?! (?:test|config|benchmark|machine|job)\b)|\battached patch\b", re.I)
_BESIDE = re.compile(r"\b(?:before|without|parent|revert\w*|instead of)\b", re.I)
_ATTACHED = re.compile(r"\battached (?:\w+ ){0,3}patch\b|\bpatch (?:is )?attached\b", re.I)


def _candidate_to_test(reading: Reading, context: MailContext, effects: Sequence[Effect]) -> Effect | None:
    """Return the candidate fix that a developer asks to test and gives by a branch or commit, or in an attachment that
    did not come with the mail, as in archives that strip them.
    """
    request = next((effect.quote for effect in effects if effect.rule == "asks_rerun"), "")
    if not request or _BESIDE.search(request):
        return None
    is_named = _TO_TEST.search(request) and ref_in(reading.own_text, context.culprit)
    lines = reading.own_text.split("\n")
    is_attached = any(_ATTACHED.search(line) and not re.search(r"\bdebug", line, re.I) for line in lines)
    if not (is_named or (is_attached and _IT.search(request))):
        return None
    return Effect(EventKind.FIX_PROPOSED, Mode.AUTO, "asks_test_of_candidate", quote=request)


def _names_culprit(intent: FoundIntent, culprit: str) -> bool:
    """Whether the commit named as the fix is the culprit itself, which may have fixed something else."""
    if not culprit or not intent.rule or intent.rule.does not in (EventKind.FIX_PROPOSED, EventKind.FIX_QUEUED):
        return False
    return any(culprit.startswith(sha.lower()) for sha in _SHA.findall(intent.evidence))


# Anybody may try a candidate, and says so as users do.
_OF_TESTS = frozenset(
    rule.name for rule in RULES if rule.by is By.USER and rule.does in _OUTCOMES and rule.mode is Mode.AUTO
)


def _tried(reading: Reading) -> Iterator[Effect]:
    """Yield the outcome for somebody who tried a candidate, as a suggestion: what they say, or their Tested-by."""
    for intent in intents_by_rules(reading, By.USER, improvement=False):
        if intent.rule and intent.rule.name in _OF_TESTS and intent.rule.does:
            yield Effect(intent.rule.does, Mode.SUGGEST, intent.rule.name, quote=intent.evidence)
            return
    if quote := tag_of_tester(reading, by_writer=True):
        yield Effect(EventKind.FIX_CONFIRMED, Mode.SUGGEST, "user_tested_by", quote=quote)


# --- The person who reported it, and other users who have it ---

_USERS = (Role.REPORTER, Role.THIRD_PARTY)
_OF_CANDIDATES = frozenset({EventKind.FIX_CONFIRMED, EventKind.FIX_FAILED, EventKind.FIX_PROPOSED})
# Only the reporter can take it back, and what others do is not a promise.
_OF_REPORTERS = _OF_CANDIDATES | {EventKind.ANSWERED, EventKind.WORKING, EventKind.INVALID}
_HELPERS = frozenset(rule.name for rule in RULES if rule.by is By.HELPER)


def _is_user(reading: Reading, context: MailContext) -> bool:
    """Whether the person who reported a regression writes, or another user who has it."""
    return bool(reading.reporters) and context.role in _USERS


def user_effects(reading: Reading, context: MailContext, model: Model | None = None) -> Iterator[Effect]:
    """Yield the effects of a mail by the person who reported a regression, or by another user who has it.

    The reporter's own mail is never a response. What it says of a candidate counts for them; what else it says answers
    a question, unless it only asks, thanks or promises.
    """
    above = reading.undoubted  # what may be an older mail, unmarked, is not read
    if above and any(_tells(sentence) for sentence in above.sentences):
        reading = in_thread_of(above, reading.reporters)
    if reading.patches:
        for effect in _patch_effects(reading, context):
            # A diff in an answer may be somebody else's, which they tried
            yield effect if is_posting(reading.mail.subject) else replace(effect, mode=Mode.SUGGEST)
        if is_posting(reading.mail.subject):
            return
    effects = list(_user_effects_by_rules(reading, context))
    sure = culprit_named(reading)[0] or any(effect.rule == "user_tested_by" for effect in effects)
    if reading.sentences and not sure:
        effects = decide(effects, (model or load()).opinion(facts_of(reading, context, effects)))
    kinds = _OF_REPORTERS if context.role is Role.REPORTER else _OF_CANDIDATES
    yield from (_of_the_patch(effect) for effect in effects if effect.kind in kinds)


def _user_effects_by_rules(reading: Reading, context: MailContext) -> Iterator[Effect]:
    intents = list(intents_by_rules(reading, By.USER, context.improvement))
    effects = list(effects_of_rules(intents))
    if (quote := tag_of_tester(reading, by_writer=True)) and not effects:
        effects = [Effect(EventKind.FIX_CONFIRMED, Mode.AUTO, "user_tested_by", quote=quote, remark="the patch")]
    yield from effects
    if effects:
        return
    kinds = {intent.intent for intent in intents}
    idle = [rule for rule in RULES if rule.name in _TELL_NOTHING]
    telling = [one for one in reading.sentences if _tells(one) and not any(rule.matches(one) for rule in idle)]
    answer, statement = first_answer(telling), next(iter(telling), None)
    if {Intent.ASKS_STATUS, Intent.BOT_WILL_TEST} & kinds and not answer:
        return
    if answer or statement or holds_table(reading.own_text):
        quote = answer.text if answer else statement.text if statement else evidence_of(reading)
        yield Effect(EventKind.ANSWERED, Mode.AUTO, "user_answers", quote=quote)


_PATCH = re.compile(r"\b(?:patch|patches|series|fix|diff|v\d+)\b", re.I)


def _of_the_patch(effect: Effect) -> Effect:
    """Return a confirmation with what it is of: "the patch", which may have been posted elsewhere."""
    named = effect.title or effect.remark or effect.commit
    if effect.kind is not EventKind.FIX_CONFIRMED or named or not _PATCH.search(effect.quote):
        return effect
    return replace(effect, remark="the patch")


_TELL_NOTHING = frozenset({"user_is_about_mail", "user_will_test", "user_asks_status"})


def _tells(sentence: Sentence) -> bool:
    return not sentence.asks and len(sentence.text) > 30 and not is_polite(sentence) and not is_greeting(sentence)


# --- Events ---


def speaker_of(context: MailContext) -> Role | None:
    """Return the role that an event gets. Who answers in a person's thread, unknown by name, is mostly a developer of
    the subsystem, and rarely the culprit's author.
    """
    return context.role or (Role.MAINTAINER if context.reporters else None)


def events_of(
    effects: Iterable[Effect], mail: ParsedMail, role: Role | None, at: datetime
) -> list[tuple[Effect, EventData]]:
    """Return the effects of a mail that have an event, each with it.

    The key of an event is its kind, and its number among those of its kind: so a decision on it is found again,
    whatever else a later release reads in the mail.
    """
    pairs: list[tuple[Effect, EventData]] = []
    numbers: Counter[EventKind] = Counter()
    for effect in effects:
        if effect.kind is None:
            continue
        number = numbers[effect.kind]
        numbers[effect.kind] += 1
        event = EventData(
            key=f"{effect.kind}:{mail.message_id}" + (f"#{number}" if number else ""),
            kind=effect.kind,
            occurred_at=at,
            role=role or Role.AUTHOR,  # if the report's people are unknown, any reply counts
            message_id=mail.message_id,
            commit=effect.commit,
            title=effect.title,
            tree=effect.tree,
            remark=effect.remark,
            in_reply_to=mail.parent,
        )
        pairs.append((effect, event))
    return pairs


def reported_event(mail: ParsedMail, at: datetime, tree: str = "") -> EventData:
    """Return the event of the report mail itself. A culprit reported twice has two; the first one counts."""
    key = f"{EventKind.REPORTED}:{mail.message_id}"
    return EventData(key, EventKind.REPORTED, at, Role.REPORTER, message_id=mail.message_id, tree=tree)


def in_mainline_event(mail: ParsedMail, at: datetime) -> EventData:
    """Return a landing: a report against mainline proves that the culprit is there, but not since which version."""
    key = f"{EventKind.LANDED}:{mail.message_id}"
    return EventData(key, EventKind.LANDED, at, Role.MACHINE, message_id=mail.message_id)
