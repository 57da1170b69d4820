"""What a mail does to a report: automatic events, suggestions, or nothing (DESIGN rules 4 and 8).

A command, a patch and a robot's notice need no sentence. What sentences mean is decided by the rules, each tried on
every sentence in the order of the table, together with the classifier (classifier.py). Where nothing acts, it is
still recorded that author or maintainer has responded. A lab's reply counts by what it provides: a comparison table,
or an answer below a quoted question.

Effects are first read as if the writer were proven. Then gate.py says whether each is permitted; what isn't becomes a
suggestion. In the end effects become events of the report, with the mail as evidence.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from textwrap import shorten

from bot.mail.branches import ref_in
from bot.mail.message import ParsedMail
from bot.mail.patches import bare_title, is_posting, version_of
from bot.replies import gate
from bot.replies.classifier import Model, Opinion, ReplyFacts, decide, load, named_commit, says_something
from bot.replies.commands import MESSAGE_ID, Command, Word, named_sha, unquoted
from bot.replies.person_report import culprit_named
from bot.replies.reading import Audience, Reading, in_thread_of
from bot.replies.rules import OPERATORS, RULES
from bot.replies.rules.notation import NOTHING, By, Effect, Intent, MailContext, Mode, Relation, Rule, name_of
from bot.replies.sender_kind import SenderKind
from bot.replies.sentences import Sentence, has_content, is_greeting, is_polite
from bot.replies.which_report import CONTEXT, concerns, is_candidate_fix
from tracker.domain.events import CLOSED, EventData, EventKind, Role
from tracker.domain.report_state import STEPS

# --- Commands ---

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
_URL = re.compile(r"https?://[^\s<>()\]]+")
COMMAND = "command_"  # what the rules of commands begin with
_IN_TITLE = frozenset({Word.FIX, Word.TITLE})


def effect_of(command: Command) -> Effect:
    """Return the effect of a command, assuming that its writer is verified.

    >>> effect_of(Command(Word.TITLE, "“mm: take the lock”", 1)).title
    'mm: take the lock'
    """
    text, title = command.argument, ""
    commit, after = named_sha(text)
    if command.word is Word.FIX and commit:
        text, title = commit, after
    elif command.word is Word.FIX and len(links := _URL.findall(text)) == 1:
        text = links[0].rstrip(".,;")  # it says which one, whatever stands around it
    elif command.word is Word.FIX and (mail := MESSAGE_ID.fullmatch(text)):
        text = f"https://lore.kernel.org/r/{mail[1]}"
    elif command.word in _IN_TITLE:
        text, title = "", unquoted(text)
    sha = ""
    if command.word is Word.INTRODUCED and commit:
        sha, text = commit, ""
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


# --- What a lab's reply provides ---

# The head of the robot's tables, or a row of one: mean, change, mean, metric.
_SPREAD = r"(?: {1,8}± {0,3}\d{1,3}%)?"
_YOU = re.compile(r"\byour?\b", re.I)
_REQUEST = re.compile(
    r"\A(?!.*\bif\b).*\b(?:please|pls|kindly) (?:\w+ )?(?:tell|send|share|provide|attach|post) (?:us|me|your|the)\b",
    re.I,
)
_TABLE = re.compile(
    rf"%stddev {{1,20}}%change|^ {{0,20}}[\d.e+]{{1,20}}{_SPREAD} {{1,20}}[+-]\d[\d.]{{0,8}}%?"
    r" {1,20}[\d.e+]{1,20}(?: |$)",
    re.M,
)
# A row of a comparison of three or more kernels: mean, the culprit's change, its mean, the changes of others, and the
# last one's.
_PERCENT = r"[+-]\d{1,6}(?:\.\d{1,3})?"
_MEAN = rf" {{1,20}}[\d.e+]{{1,20}}{_SPREAD}"
_CANDIDATE_ROW = re.compile(
    rf"^{_MEAN.replace('1,20', '0,20', 1)} {{1,20}}({_PERCENT})%(?:{_MEAN} {{1,20}}{_PERCENT}%){{0,6}}"
    rf"{_MEAN} {{1,20}}({_PERCENT})%{_MEAN} {{1,20}}"
    r"(?!perf|proc-vmstat|sched)([\w-]+)\.",
    re.M,
)
# The test's parameters above a table: their names, then their values, "gcc-12/thread/100%/fallocate1/will-it-scale".
_PARAMETERS = re.compile(r"^\S{0,300}\btestcase\b\S{0,300}:\n {0,8}(\S{1,1000})$", re.M)
MOST_LEFT = 0.25  # share of the culprit's change that may remain for a candidate to count as good


def candidate_helps(own_text: str) -> bool | None:
    """Whether the candidate in the last column of a comparison is near the parent again, or on its other side, in the
    row that the culprit changed most: of the rows of the benchmark that the tables are said to be of, if there are any.
    None if there is no comparison of parent, culprit and candidate.
    """
    text = own_text[:200_000]
    matches = _CANDIDATE_ROW.findall(text)
    benchmarks = {name for values in _PARAMETERS.findall(text) for name in values.split("/")}
    rows = [row for row in matches if row[2] in benchmarks] or matches
    changes = ((float(row[0]), float(row[1])) for row in rows)
    culprit, candidate = max(changes, key=lambda pair: abs(pair[0]), default=(0.0, 0.0))
    return candidate / culprit <= MOST_LEFT if culprit else None


def holds_table(own_text: str) -> bool:
    """Whether the mail shows a comparison of measurements."""
    return bool(_TABLE.search(own_text[:200_000]))


def first_answer(sentences: Sequence[Sentence]) -> Sentence | None:
    """Return the first sentence below a quoted question that is neither a greeting nor a question, or None."""
    below = (sentence for sentence in sentences if sentence.below.endswith("?") and not sentence.asks)
    return next((sentence for sentence in below if not is_greeting(sentence)), None)


# --- Intents ---


@dataclass(frozen=True, slots=True)
class FoundIntent:
    """An intent, the text it was read from, and the rule: None where no sentence is needed, such as for a patch."""

    intent: Intent
    evidence: str
    rule: Rule | None = None


def intents_of(reading: Reading, *, improvement: bool = False) -> tuple[FoundIntent, ...]:
    """Return all intents of a mail in order of the rules; each rule once, with the first sentence that matched."""
    intents = [
        FoundIntent(
            Intent.PATCH_INLINE if patch.source == "inline" else Intent.PATCH_ATTACHED,
            patch.title or ", ".join(patch.files[:3]),
        )
        for patch in reading.patches
    ]
    intents += (
        FoundIntent(Intent.TRACKER_COMMAND, f"{command.word} {command.argument}".strip())
        for command in reading.commands.good
    )
    if reading.notice:
        intents.append(FoundIntent(Intent.MERGE_NOTIFICATION, reading.notice.quote))
    if reading.kind is SenderKind.BOT_OPERATOR:
        answer = first_answer(reading.sentences)
        table = "a comparison of measurements" if holds_table(reading.own_text) else ""
        if provided := table or (answer.text if answer else ""):
            intents.append(FoundIntent(Intent.BOT_PROVIDES_INFO, provided))
        intents += _intents_by_rules(reading, By.OPERATOR, improvement)
    elif reading.kind is SenderKind.PERSON:
        intents += _intents_by_rules(reading, By.DEVELOPER, improvement)
        if all(intent.intent is Intent.THANKS for intent in intents):
            statement = next((sentence.text for sentence in reading.sentences if len(sentence.text) > 30), "")
            intents += [FoundIntent(Intent.DISCUSSION, statement)] if statement else []
    return tuple(intents)


def _intents_by_rules(reading: Reading, who: By, improvement: bool) -> tuple[FoundIntent, ...]:
    helped = who is By.DEVELOPER and bool(reading.reporters)
    return _of_sentences(reading.sentences, reading.audience, who, improvement, helped, reading.rules_off)


@lru_cache(maxsize=8)  # a mail may be about 20 reports, and its sentences are asked for several times
def _of_sentences(
    sentences: tuple[Sentence, ...],
    audience: Audience,
    who: By,
    improvement: bool,
    helped: bool,
    rules_off: frozenset[str],
) -> tuple[FoundIntent, ...]:
    intents = []
    for rule in RULES:
        helps = rule.by is By.HELPER and helped
        if not (helps or rule.by in (who, By.ANYONE)) or rule.improvement not in (None, improvement):
            continue
        if rule.name in rules_off:
            continue
        for sentence in sentences:
            if rule.matches(sentence) and (not rule.to_reporter or audience.is_reporter(sentence)):
                intents.append(FoundIntent(rule.intent, sentence.text, rule))
                break
    return tuple(intents)


# --- Effects ---

_PATCH_RULES = {
    Relation.CLOSES: "patch_closes_report",
    Relation.CULPRIT: "patch_names_culprit",
    Relation.LINK: "patch_links_report",
    Relation.FIX_THREAD: "patch_in_fix_thread",
    Relation.PATCH_THREAD: "patch_in_patch_thread",
}
RESPONDED = EventKind.RESPONDED
MERE_RESPONSE = "mere_response"
_DEVELOPERS = (Role.AUTHOR, Role.MAINTAINER, None)
# The events that a rule can suggest for a third party's reply; others are for author and maintainers.
_THIRD_PARTY_KINDS = frozenset(
    {
        *(EventKind.FIX_PROPOSED, EventKind.FIX_QUEUED, EventKind.FIX_CONFIRMED, EventKind.FIX_WITHDRAWN),
        *(EventKind.DROPPED, EventKind.DISPUTED, EventKind.FIX_FAILED, EventKind.REOPENED),
    }
)
_DEBUG = re.compile(r"\bdebug(?:ging)?\b(?: \w+){0,3} (?:patch|diff|info|print|trace|output|hack|below)", re.I)
_SHA = re.compile(r"\b[0-9a-f]{7,40}\b", re.I)
_TITLE = 20  # characters that identify a title
MOST_EFFECTS = 30  # of one mail on one report; twenty commands, and what its sentences say
_BUT = re.compile(r"(?:but|however|though|although|still|except|unfortunately)\b", re.I)


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
    standing = replace(standing_of(reading, context), recent=recent)
    effects: list[Effect] = []
    for effect in as_written[:MOST_EFFECTS]:
        agreed = reading.others is not None and all(
            any(_agree(effect, other) for other in effects) for effects in others
        )
        is_final = closes(effect) or effect.kind is EventKind.BISECTED  # which says what a report is about
        caused = gate.Caused.CLOSE if is_final else gate.Caused.MOVE
        caused = gate.Caused.COMMAND if effect.rule.startswith(COMMAND) else caused
        # Below what may be an older mail, nobody knows whose words these are.
        if caused is not gate.Caused.MOVE:
            agreed = agreed and all(any(_agree(effect, other) for other in effects) for effects in undoubted)
        acts = gate.permitted(caused, replace(standing, same_words=agreed), policy)
        effects.append(effect if acts else replace(effect, mode=Mode.SUGGEST))
    if context.reporters:
        unknown = context.role in (None, Role.THIRD_PARTY) and not reading.trust.proven and policy != "open"
        effects = [_told(_of_stranger(effect) if unknown else effect, reading) for effect in effects]
    return tuple(effects) or (NOTHING,)


_OF_STRANGERS = frozenset({EventKind.RESPONDED, EventKind.ASKED, EventKind.FIX_PROPOSED})


def _of_stranger(effect: Effect) -> Effect:
    """Return an effect of a mail that nobody proves, by somebody whom nobody knows: that they answer, ask or post a
    patch may be taken as it is; what else they hold is for a click.
    """
    acts = effect.kind in _OF_STRANGERS or effect.mode is not Mode.AUTO
    return effect if acts else replace(effect, mode=Mode.SUGGEST)


def _told(effect: Effect, reading: Reading) -> Effect:
    """Return an effect with what the sentence of a person's report says of it: the question, or who holds that view."""
    if effect.kind is EventKind.ASKED and not effect.remark:
        return replace(effect, remark=shorten(effect.quote, _QUESTION, placeholder=" …"))
    if effect.kind in (EventKind.EXPECTED, EventKind.DISPUTED) and not effect.remark:
        return replace(effect, remark=reading.mail.author.name or reading.mail.author.email)
    return effect


_QUESTION = 120  # characters
_SHORTEST_SHA = 10  # digits that stand for a commit nobody has seen yet


def _all_effects(reading: Reading, context: MailContext) -> list[Effect]:
    """Return the effects of one way to read a mail: commands first, then what it says."""
    if context.reporters:
        reading = in_thread_of(reading, context.reporters)
    obeyed = [command for command in reading.commands.good if reading.may_command and command.word in COMMANDED]
    if not context.unnamed:  # the culprit of a report is its identity, once it is known
        obeyed = [command for command in obeyed if command.word is not Word.INTRODUCED]
    bisections = list(_bisect_effects(reading, context))
    commands = [
        effect for command in obeyed if (effect := effect_of(command)).commit or command.word is not Word.INTRODUCED
    ]
    if any(effect.kind is EventKind.BISECTED for effect in commands):
        bisections = []
    content = list(content_effects(reading, context))
    return [*commands, *content, *_named_tests(reading, context, content), *bisections]


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


def _bisect_effects(reading: Reading, context: MailContext) -> Iterator[Effect]:
    """Yield that somebody found the culprit of a person's report; for certain if the reporter did."""
    if not context.unnamed or reading.patches:
        return
    sha, title = culprit_named(reading)
    if sha:
        certain = context.role is Role.REPORTER and len(sha.value) >= _SHORTEST_SHA
        mode = Mode.AUTO if certain else Mode.SUGGEST
        quote, name = sha.sentence, "names_culprit"
        yield Effect(EventKind.BISECTED, mode, name, quote=quote, title=title.value, commit=sha.value)


def settled(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """Return what is recorded of a mail: a mere response only where nothing else acts.

    Where it does, nobody needs to decide whether it is a response; where it may not act, it is no suggestion either.
    """
    meanings = tuple(effect for effect in effects if effect.rule != MERE_RESPONSE)
    if any(effect.mode is Mode.AUTO and name_of(effect) != "none" for effect in meanings):
        return meanings
    mere = tuple(effect for effect in effects if effect.rule == MERE_RESPONSE and effect.mode is Mode.AUTO)
    if mere:
        meanings = tuple(effect for effect in meanings if effect.kind is not RESPONDED)
    return (*meanings, *mere) or (NOTHING,)


def standing_of(reading: Reading, context: MailContext) -> gate.Standing:
    """Return what is proven of a mail with respect to one report."""
    return gate.Standing(reading.trust, context.role, context.by_address, context.about)


def _agree(one: Effect, other: Effect) -> bool:
    """Whether two effects do the same to a report; a title may be wrapped in one of them."""
    if (one.kind, one.commit, one.remark) != (other.kind, other.commit, other.remark):
        return False
    short, long = sorted((one.title, other.title), key=len)
    return long == short or (len(short) >= _TITLE and long.startswith(short))


def closes(effect: Effect) -> bool:
    """Whether the effect would close a report."""
    step = STEPS.get(effect.kind) if effect.kind else None
    return bool(step and step.to in CLOSED)


def content_effects(reading: Reading, context: MailContext, model: Model | None = None) -> Iterator[Effect]:
    """Yield the effects of what a mail says, commands aside, as if its writer were proven.

    `model`: what the classifier has learned, if not the one of the project; a cross-validation has others.
    """
    if reading.kind is SenderKind.ROBOT:
        if (note := reading.notice) and context.relation is not Relation.PATCH_THREAD:
            where = f"{note.tree} ({note.branch})"  # this thread's patch was applied there
            yield Effect(EventKind.FIX_QUEUED, Mode.AUTO, "merge_notice", quote=note.quote, commit=note.sha, tree=where)
        return
    by_lab = reading.kind is SenderKind.BOT_OPERATOR
    if _is_user(reading, context):
        yield from user_effects(reading, context, model)
        return
    if reading.reporters and context.role is None and _keeps_a_list(reading):
        return
    has_outcome = by_lab and (_tested_by(reading) or holds_table(reading.own_text))
    if context.relation in CONTEXT and not (has_outcome or concerns(reading, context)):
        return  # about the patch, not about the regression
    if reading.patches and reading.kind is SenderKind.PERSON:
        yield from _patch_effects(reading, context)
    elif reading.may_command:
        effects = list(effects_by_rules(reading, context))
        outsider = context.role not in _DEVELOPERS and not by_lab
        if (
            # The classifier has learned from robots' threads, where nobody asks for a bisection
            any(effect.mode is Mode.AUTO and effect.rule in _HELPERS for effect in effects[:1])
            or any(_is_measured_so(effect, reading, context) for effect in effects)  # which needs no other opinion
            or not reading.sentences
            or not (outsider or _has_substance(reading))
        ):
            yield from effects
            return
        opinion = (model or load()).opinion(facts_of(reading, context, effects))
        decided = _cautious(decide(effects, opinion, may_act=not outsider), reading)
        decided = _with_told(effects, decided, opinion)
        if (decided or says_something(opinion)) and not outsider and not by_lab:
            decided.append(Effect(RESPONDED, Mode.AUTO, MERE_RESPONSE, quote=_evidence_text(reading)))
        yield from (effect for effect in decided if not outsider or effect.kind is not RESPONDED)


_OUTCOMES = frozenset({EventKind.FIX_CONFIRMED, EventKind.FIX_FAILED})
_TOLD = _OUTCOMES | {EventKind.DROPPED}
# What a rule finds, and the classifier finds less likely than this, in per cent, was wrong.
_TOLD_LIKELY = 5
_TOLD_BY_LAB = 25  # by the rules of the lab, which tests much besides candidates
_LAB_RULES = frozenset(rule.name for rule in OPERATORS)


def _with_told(effects: Sequence[Effect], decided: list[Effect], opinion: Opinion) -> list[Effect]:
    """Return what is decided, and, suggested, what only a rule finds: a test's outcome, a drop, the lab's question.

    These are said in a few words, in many ways, of which the classifier has learned few. Of a test it never says the
    opposite of the rule, and what it alone suggests stands back.
    """
    asked = [effect for effect in effects if effect.rule == "operator_asks"]
    told = [
        effect
        for effect in effects
        if effect.kind in _TOLD
        and opinion.certainty(name_of(effect)) >= (_TOLD_BY_LAB if effect.rule in _LAB_RULES else _TOLD_LIKELY)
    ]
    found = {effect.kind for effect in effects}
    outcomes = found & _OUTCOMES
    decided = [effect for effect in decided if not (outcomes and effect.kind in _OUTCOMES - outcomes)]
    kinds = {effect.kind for effect in decided}
    for effect in [*told[:1], *asked[:1]]:
        if effect.kind in kinds:
            continue
        # What nothing but the classifier suggests stands back
        decided = [one for one in decided if one.mode is not Mode.SUGGEST or one.kind in found or not one.kind]
        decided.append(replace(effect, mode=Mode.SUGGEST, certainty=opinion.certainty(name_of(effect))))
    return decided


def _patch_effects(reading: Reading, context: MailContext) -> Iterator[Effect]:
    """A person replies with a patch, or posts one elsewhere that closes the report; they may ask for a test."""
    by_lab = reading.kind is SenderKind.BOT_OPERATOR
    if not (by_lab or reading.kind is SenderKind.PERSON) or not reading.patches:
        return
    if not is_candidate_fix(reading, context):
        return
    patch = reading.patches[0]
    debug = next((sentence.text for sentence in reading.sentences if _DEBUG.search(sentence.text)), "")
    version = version_of(reading.mail.subject)
    yield Effect(
        EventKind.FIX_PROPOSED,
        Mode.SUGGEST if debug or by_lab else Mode.AUTO,
        "debug_patch" if debug else _PATCH_RULES.get(context.relation, "patch_in_reply"),
        quote=debug or patch.title or (patch.files[0] if patch.files else "a patch"),
        title=patch.title,
        remark=f"v{version}" if version > 1 else "",
    )
    for intent in intents_of(reading):
        if intent.rule and intent.intent is Intent.ASKS_TEST:
            yield Effect(EventKind.TEST_ASKED, Mode.AUTO, "asks_test_of_patch", quote=intent.evidence)
            break


# --- What the reporter says, and other users, in a person's thread ---

_USERS = (Role.REPORTER, Role.THIRD_PARTY)
_OF_CANDIDATES = frozenset({EventKind.FIX_CONFIRMED, EventKind.FIX_FAILED, EventKind.FIX_PROPOSED})
# Only the reporter can take it back, and what others do is no promise.
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
    intents = list(_intents_by_rules(reading, By.USER, context.improvement))
    effects = list(_rule_effects(intents))
    if (quote := _tested_by(reading, by_writer=True)) and not effects:
        effects = [Effect(EventKind.FIX_CONFIRMED, Mode.AUTO, "user_tested_by", quote=quote, remark="the patch")]
    yield from effects
    if effects:
        return
    kinds = {intent.intent for intent in intents}
    idle = [rule for rule in RULES if rule.name in _TELL_NOTHING]
    telling = [one for one in reading.sentences if _tells(one) and not any(rule.matches(one) for rule in idle)]
    answer, told = first_answer(telling), next(iter(telling), None)
    if {Intent.ASKS_STATUS, Intent.BOT_WILL_TEST} & kinds and not answer:
        return
    if answer or told or holds_table(reading.own_text):
        quote = answer.text if answer else told.text if told else _evidence_text(reading)
        yield Effect(EventKind.ANSWERED, Mode.AUTO, "user_answers", quote=quote)


_PATCH = re.compile(r"\b(?:patch|patches|series|fix|diff|v\d+)\b", re.I)


def _of_the_patch(effect: Effect) -> Effect:
    """Return a confirmation with what it is of: "the patch", which may have been posted elsewhere."""
    named = effect.title or effect.remark or effect.commit
    if effect.kind is not EventKind.FIX_CONFIRMED or named or not _PATCH.search(effect.quote):
        return effect
    return replace(effect, remark="the patch")


_TRACKER = re.compile(r"\bregressions? track(?:er|ing)\b", re.I)


def _keeps_a_list(reading: Reading) -> bool:
    """Whether somebody keeps a list of regressions, as the kernel's tracker does, who speaks in general."""
    return bool(reading.commands.good) or _TRACKER.search(reading.own_text[:5000]) is not None


def _cautious(effects: list[Effect], reading: Reading) -> list[Effect]:
    """Return effects of which two are only suggested: a request to a person without a question, and that a fix was
    applied, in an answer to the report itself, where no fix has been named yet.
    """
    asks = not reading.reporters or any(sentence.asks for sentence in reading.sentences)
    unsure = {kind for kind in (EventKind.ASKED,) if not asks}
    unsure |= {kind for kind in (EventKind.FIX_QUEUED,) if reading.answers_robot}
    return [
        replace(one, mode=Mode.SUGGEST) if one.kind in unsure and not (one.title or one.remark) else one
        for one in effects
    ]


_TELL_NOTHING = frozenset({"user_is_about_mail", "user_will_test", "user_asks_status"})


def _tells(sentence: Sentence) -> bool:
    return not sentence.asks and len(sentence.text) > 30 and not is_polite(sentence) and not is_greeting(sentence)


def facts_of(reading: Reading, context: MailContext, effects: Sequence[Effect]) -> ReplyFacts:
    """Return what the classifier looks at. `effects`: the effects by rules, the deciding one first."""
    by_user = _is_user(reading, context)
    intents = (
        _intents_by_rules(reading, By.USER, context.improvement)
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


def effects_by_rules(reading: Reading, context: MailContext) -> Iterator[Effect]:
    """Yield the effects of a person's mail by the written rules alone, the deciding one first."""
    if _is_user(reading, context):
        yield from _user_effects_by_rules(reading, context)
    elif reading.patches:
        yield from _patch_effects(reading, context)
    else:
        by_lab = reading.kind is SenderKind.BOT_OPERATOR
        effects = list(_operator_effects(reading, context) if by_lab else _developer_effects(reading, context))
        yield from effects
        if not context.improvement and not any(effect.kind in _OUTCOMES for effect in effects):
            yield from _tried(reading)


# Anybody may try a candidate, and says so as users do.
_OF_TESTS = frozenset(
    rule.name for rule in RULES if rule.by is By.USER and rule.does in _OUTCOMES and rule.mode is Mode.AUTO
)


def _tried(reading: Reading) -> Iterator[Effect]:
    """Yield the outcome for somebody who tried a candidate, as a suggestion: what they say, or their Tested-by."""
    for intent in _intents_by_rules(reading, By.USER, improvement=False):
        if intent.rule and intent.rule.name in _OF_TESTS and intent.rule.does:
            yield Effect(intent.rule.does, Mode.SUGGEST, intent.rule.name, quote=intent.evidence)
            return
    if quote := _tested_by(reading, by_writer=True):
        yield Effect(EventKind.FIX_CONFIRMED, Mode.SUGGEST, "user_tested_by", quote=quote)


def _tested_by(reading: Reading, *, by_writer: bool = False) -> str:
    """Return the Tested-by: line of a mail, or "". `by_writer`: only one with the writer's own address."""
    address = reading.mail.author.email if by_writer else ""
    values = (trailer.value for trailer in reading.trailers if trailer.key == "Tested-by")
    return next((f"Tested-by: {value}" for value in values if address in value.lower()), "")


def _developer_effects(reading: Reading, context: MailContext) -> Iterator[Effect]:
    intents: Iterable[FoundIntent] = intents_of(reading, improvement=context.improvement)
    if context.role not in _DEVELOPERS:
        intents = (intent for intent in intents if intent.rule and intent.rule.does in _THIRD_PARTY_KINDS)
        yield from (replace(suggestion, mode=Mode.SUGGEST) for suggestion in _rule_effects(intents))
        return
    if not _has_substance(reading):
        return
    intents = [intent for intent in intents if not _names_culprit(intent, context.culprit)]
    asides = {intent.rule.name for intent in intents if intent.rule and intent.rule.aside}
    effects = sorted(_rule_effects(intents), key=lambda effect: effect.rule in asides)  # the deciding effect first
    answer = Effect(RESPONDED, Mode.AUTO, "reply_of_author", quote=_evidence_text(reading))
    deciding = effects[0] if effects and effects[0].rule not in asides else answer
    if deciding is answer:
        yield answer
    yield from effects
    if deciding.kind is not RESPONDED or deciding.mode is Mode.SUGGEST:
        yield answer  # it is a response, whatever becomes of the rest


def _names_culprit(intent: FoundIntent, culprit: str) -> bool:
    """Whether the commit named as the fix is the culprit itself, which may have fixed something else."""
    if not culprit or not intent.rule or intent.rule.does not in (EventKind.FIX_PROPOSED, EventKind.FIX_QUEUED):
        return False
    return any(culprit.startswith(sha.lower()) for sha in _SHA.findall(intent.evidence))


def _rule_effects(intents: Iterable[FoundIntent]) -> Iterator[Effect]:
    """Yield the effects of rules, each event kind once: the first may be automatic, later ones are suggestions."""
    seen: set[EventKind] = set()
    decided = False
    for intent in intents:
        rule = intent.rule
        if rule is None or rule.does is None or rule.does in seen or (rule.alone and decided):
            continue
        seen.add(rule.does)
        acts = rule.mode is Mode.AUTO and not decided and not rule.aside
        decided = decided or not rule.aside
        fix = rule.does in (EventKind.FIX_PROPOSED, EventKind.FIX_QUEUED, EventKind.FIX_CONFIRMED)
        title, sha = named_commit(intent.evidence) if fix else ("", "")
        mode = Mode.AUTO if acts else Mode.SUGGEST
        yield Effect(rule.does, mode, rule.name, quote=intent.evidence, title=bare_title(title), remark=sha)


def _operator_effects(reading: Reading, context: MailContext) -> Iterator[Effect]:
    """Yield the effects of a lab operator's reply: a test result, an answer, or a retraction."""
    matches = intents_of(reading, improvement=context.improvement)
    intents = {intent.intent for intent in matches}
    table = holds_table(reading.own_text)
    if table or Intent.BOT_WILL_TEST in intents:
        matches = tuple(match for match in matches if match.intent is not Intent.BOT_CANNOT_TEST)
    outcome = next(_rule_effects(matches), None)
    tested = _tested_by(reading)
    if Intent.BOT_WILL_TEST in intents and not table:
        tested = ""  # the tag is offered for when the test has passed
        if outcome and outcome.kind is EventKind.FIX_CONFIRMED:
            outcome = None
    if tested and (outcome is None or outcome.kind is EventKind.ANSWERED):
        outcome = Effect(EventKind.FIX_CONFIRMED, Mode.AUTO, "operator_tested_by", quote=tested)
    helped = None if context.improvement else candidate_helps(reading.own_text)
    if outcome and outcome.kind is not EventKind.ANSWERED:
        yield _qualified(outcome, reading, matches)
    elif helped is not None:
        kind = EventKind.FIX_CONFIRMED if helped else EventKind.FIX_FAILED
        yield Effect(kind, Mode.SUGGEST, "operator_compares", quote=_evidence_text(reading))
    elif outcome:
        yield outcome
    elif table:
        yield Effect(EventKind.ANSWERED, Mode.AUTO, "operator_measured", quote=_evidence_text(reading))
    elif Intent.BOT_WILL_TEST not in intents:
        asking = next((match for match in matches if match.intent is Intent.BOT_ASKS), None)
        answers = list(_answer_effects(reading.sentences, asks=asking is not None))
        yield from answers
        texts = (match.evidence for match in matches if match.intent is Intent.BOT_ASKS)
        asked = (text for text in texts if "?" in text or _REQUEST.search(text))
        if not answers and (question := next(filter(_YOU.search, asked), "")):
            # Courtesy ("please let us know") and thoughts ("should we align these?") ask nobody for anything.
            yield Effect(EventKind.ASKED, Mode.SUGGEST, "operator_asks", quote=question)


def _answer_effects(sentences: Sequence[Sentence], *, asks: bool) -> Iterator[Effect]:
    """Yield the effect of an answer without a measurement; if the lab also asks something, it is only suggested."""
    if answer := first_answer(sentences):
        yield Effect(EventKind.ANSWERED, Mode.SUGGEST if asks else Mode.AUTO, "operator_answers", quote=answer.text)
    elif not asks:
        for sentence in sentences:
            if not sentence.asks and len(sentence.text) > 30 and not is_polite(sentence):
                yield Effect(EventKind.ANSWERED, Mode.AUTO, "operator_tells", quote=sentence.text)
                break


def _is_measured_so(effect: Effect, reading: Reading, context: MailContext) -> bool:
    """Whether an automatic effect is the outcome of a lab's test that its comparison of candidates shows, too."""
    outcomes = {EventKind.FIX_CONFIRMED: True, EventKind.FIX_FAILED: False}
    if reading.kind is not SenderKind.BOT_OPERATOR or effect.mode is not Mode.AUTO or effect.kind not in outcomes:
        return False
    helped = None if context.improvement else candidate_helps(reading.own_text)
    return helped is outcomes[effect.kind]


def _qualified(outcome: Effect, reading: Reading, intents: Sequence[FoundIntent]) -> Effect:
    """Return the outcome of a test; as a suggestion if other sentences contradict it."""
    if outcome.rule == "operator_ineffective":
        for intent in intents:
            if intent.rule and intent.rule.name == "operator_confirms" and intent.evidence != outcome.quote:
                rule = "operator_confirms_with_caveat"
                return Effect(EventKind.FIX_CONFIRMED, Mode.SUGGEST, rule, quote=intent.evidence)
    texts = [sentence.text for sentence in reading.sentences]
    following = texts[texts.index(outcome.quote) + 1 :][:1] if outcome.quote in texts else []
    if outcome.kind is EventKind.FIX_CONFIRMED and any(_BUT.match(text) for text in following):
        return replace(outcome, mode=Mode.SUGGEST)
    return outcome


def _has_substance(reading: Reading) -> bool:
    """Whether the mail says more than courtesy; a command alone is an answer, too."""
    return bool(reading.commands.good) or has_content(reading.own_text, _names_in(reading))


def _evidence_text(reading: Reading) -> str:
    """Return the first sentence that says something, as evidence."""
    texts = [sentence.text for sentence in reading.sentences] or [" ".join(reading.own_text[:2000].split())[:300]]
    names = _names_in(reading)
    telling = [text for text in texts[:50] if has_content(text, names)]
    return next((text for text in telling if len(text.split()) > 2), "") or next(iter(telling), texts[0])  # not "Yes."


def _names_in(reading: Reading) -> set[str]:
    """Return the names of people on the thread, which a greeting holds beside courtesy."""
    return {*reading.mail.author.name.split()[:6], *reading.audience.reporters, *reading.audience.others}


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
