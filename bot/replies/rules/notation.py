"""The notation of the rules: phrases and their word lists, intents, rules, effects.

A rule says which phrases in a sentence mean which intent, and what effect that has. Its `unless` rules out a cue: by
a negation, a condition, a hedge, or reported speech. An effect is what a mail does to one report, by which rule, and
on what evidence.

Phrases are compiled to regular expressions. `a|b` is one of these words (`_` is a space within one), `word*` has any
ending, `word?` is optional, `…` stands for up to three words in between, `……` for up to eight, `<name>` for any entry
of that list in VOCABULARY, `^` for the start of the sentence and `$` for its end. What is between slashes is a
regular expression. Case is ignored; a comma, a bracket or a quotation mark may stand between two words.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from bot.replies.gate import About
from bot.replies.sentences import Sentence
from tracker.domain.events import EventKind, Role

# --- Word lists ---

_LISTS = {
    "i": r"i, we",
    "i have": r"i, we, i've, we've, i have, we have",
    "i am": r"i'm, i am, we're, we are",
    "i will": r"""
        i'll, we'll, /(?:i|we) will(?! not)/, i'm going to, i am going to, we're going to, we are going to,
        i'm gonna
    """,
    "i want": r"""
        i plan to, we plan to, i want to, we want to, i need to, we need to, i have to, we have to,
        i'd like to, we'd like to, i try to, i'm trying to, we're trying to, i'm planning to,
        i am planning to, we're planning to, i hope to, i'll try to, i will try to, i'll need to,
        i will need to, i intend to
    """,
    "i cannot": r"""
        i can't, i cannot, i can not, i could not, i couldn't, i am unable to, i'm unable to,
        i was unable to, been unable to, i failed to, i'm not able to, i was not able to, i wasn't able to,
        i didn't, i did not, i don't, i do not, i haven't, i have not, i've not, we can't, we cannot,
        we could not, we couldn't, we didn't, we did not, we don't, we haven't, not able to,
        was not able to, have not been able to, haven't been able to
    """,
    "not": r"/\w+n't/, not, never, cannot, hardly, without, no longer",
    "is": r"""
        is, are, was, were, 's, seems, seem, looks, look, sounds, would be, should be, must be, can be,
        appears to be
    """,
    "is now": r"""
        is, are, was, were, has been, have been, got, gets, seems, looks, has, have, is now, is also,
        is entirely, is completely, is fully
    """,
    # What may be dropped or reverted; not "that flag in the patch".
    "culprit": r"""
        this one, that one, /(?:it|this|that)(?=[.,;:!?)'\"]|\Z| (?:for|from|until|when|again|now|and|or|if|in|on)\b)/,
        /(?:the|this|that|these|those|my|your|our|both|his|her)(?: (?!in|of|from|to|on|by|with)[\w.\/-]+){0,3}?
        (?:patch(?:es|set)?|commits?|series|changes?)/
    """,
    "named change": r"""
        /[0-9a-f]{10,40}\b/, /"[^":]{1,60}: [^"]{4,200}"/, /[\w.-]{8,100}\.patch\b/, /v\d+ of (?:this|the)\b/,
        /(?:the|this|that|your|my) (?:whole )?(?:series|patch(?:es|set)?)(?=[.,;:!]|\Z| (?:from|for|until)\b)/
    """,
    "patch": r"""
        patch, patches, patchset, fix, fixes, commit, commits, change, series, version, diff, debug, /v\d+/
    """,
    "new patch": r"""
        patch, patches, fix, fixup, fixes, series, version, alternative, approach, solution, respin,
        re-spin, followup, follow-up, rework, update, improvement, something, /v\d+/
    """,
    "named": r"""
        /[0-9a-f]{7,40}\b/, /"[^"]{8,200}"/, /https?:\S+/, /\[[^\]]{0,20}patch\b/, the commit, this commit,
        commit, the patch, this patch, that patch, the series, this series, that series,
        the following patch, the patches, these patches
    """,
    "tree": r"""
        /[\w\/.-]*(?:tree|branch|queue|next|mainline|upstream|tip|master|fixes|stable|linus)(?:'s)?/,
        /v?\d\.\d+(?:-rc\d+)?/
    """,
    "regression": r"""
        regression*, slowdown*, slow-down*, degradation*, drop, performance loss, performance hit,
        performance drop, performance impact, issue, problem
    """,
    "performance": r"""
        performance, throughput, score, numbers, number, result, results, it, latency, bandwidth
    """,
    "thing": r"""
        it, this, that, these, those, which, it's, that's,
        /(?:the|a|any|such|some|this|that)(?: \S+){0,4}? (?:regressions?|slow-?downs?|degradation|drops?|hit|cost)/,
        /(?:the|a|any|such|some|this|that)(?: \S+){0,4}? (?:changes?|results?|behaviou?r|numbers?|increase|decrease)/,
        /(?:the|a|any|such|some|this|that)(?: \S+){0,4}? (?:impact|overhead|difference|reports?)/
    """,
    "drop": r"drop, revert, remove, back out, yank, kick out, pull, withdraw",
    "dropped": r"dropped, reverted, removed, backed out, yanked, kicked out, pulled, withdrawn",
    "no longer seen": r"""
        can't, cannot, can not, could not, couldn't, don't, do not, didn't, did not, can be no longer, no longer,
        isn't, is not, not
    """,
    "anymore": r"anymore, any more, any longer, now, again",
    "gone": r"""
        gone, fixed, /resol\w{1,5}ed/, solved, disappear, disappears, disappeared, restored, recovered,
        eliminated, vanished, went away, goes away, back to normal, not there anymore, no longer there,
        no longer reproducible, no longer exists, back to the same level,
        at the same level, the same level, same as parent, same as the parent, back to parent, back to the parent
    """,
    "fixes": r"""
        fix, fixes, fixed, /resol\w{1,5}(?:es|ed|e)/, solve, solves, solved, recover, recovers, recovered,
        restore, restores, restored, eliminate, eliminates, eliminated, cure, cures, cured, address,
        addresses, addressed
    """,
    "help": r"""
        help, helps, helped, fix, fixes, fixed, resolve, resolves, solve, solves, recover, restore,
        improve, work, mitigate
    """,
    "landed": r"""
        landed, applied, merged, queued, queued up, picked up, pushed, included, went, sitting, taken
    """,
    "make": r"""
        send, post, submit, prepare, write, cook up, make, create, come up with, formalize, formalise,
        spin, work on, put together, have, do, get, push, produce, provide, send out, cook
    """,
    "mend": r"""
        fix, respin, resend, rework, formalize, formalise, address, repair, resolve, optimize, improve
    """,
    "look": r"""
        look, check, investigate, dig, try, test, run, reproduce, repro, get back, report back, analyze,
        analyse, study, profile, debug, see, examine, have a look, take a look, go take, go look, go check,
        go and look, give it, look into
    """,
    "looking": r"""
        looking, checking, investigating, digging, trying, testing, debugging, running, analyzing, analysing
    """,
    "can you": r"""
        can you, could you, would you, will you, may you, might you, can lkp, could lkp, can the bot,
        could the bot, /(?:\A|(?<=[,;:.-] )|(?<=so ))mind/, is it possible, is it possible for you,
        any chance, any chance you,
        would it be possible, do you mind, would you mind, are you able, i'd appreciate if you,
        would be great if you, would be nice if you, would be good if you, would be helpful if you,
        may i ask you, can i ask you
    """,
    "run": r"""
        test, testing, try, trying, run, running, rerun, re-run, rerunning, re-running, retest, re-test,
        retesting, check, checking, verify, verifying, bisect, repeat, apply, measure, compare, rebuild, throw
    """,
    "give": r"""
        share, send, provide, post, attach, upload, paste, give, tell, sharing, sending, resending,
        posting, giving, explain, describe, elaborate, show,
        point, clarify, get, collect, capture
    """,
    "topic": r"""
        test*, bench*, metric*, measur*, number*, result*, config*, kconfig, machine*, box, cpu*, hardware,
        hw, setup, system*, kernel*, profil*, perf, data, log*, dmesg, reproduc*, repro, job*, parameter*,
        option*, workload*, filesystem*, file system*, disk*, device*, storage, memory, numa, node*,
        thread*, bisect*, stddev, noise, variance, variation, run, runs, iteration*, script, baseline,
        governor, mitigation*, latency, throughput, regression, /\w+\.\w+_\w+/
    """,
}
# Split at commas; a comma within an expression is not followed by a space.
VOCABULARY: dict[str, tuple[str, ...]] = {
    name: tuple(" ".join(word.split()) for word in re.split(r",\s+", text.strip())) for name, text in _LISTS.items()
}


# --- Phrases ---

_BETWEEN = r"[,;:\"'()\]]{0,2} [\"'(\[]{0,2}"
_UNIT = r"(?:<[^<>]+>|/(?:\\.|[^/\\])+/|[^\s|<>/?]+)"
_TOKEN = re.compile(rf"{_UNIT}(?:\|{_UNIT})*\??")
_GAPS = {"…": r"(?: \S{1,60}){0,3}?", "……": r"(?: \S{1,60}){0,8}?"}


def expression(phrases: Iterable[str]) -> str:
    """Return one regular expression for all phrases; case is ignored.

    Gaps are bounded, so that matching takes time linear in the text.
    """
    return "|".join(f"(?:{_pattern(phrase)})" for phrase in phrases)


def _pattern(phrase: str) -> str:
    tokens = _TOKEN.findall(phrase)
    if left := _TOKEN.sub("", phrase).strip():
        raise ValueError(f"{phrase!r}: {left!r} is not part of the notation")
    starts, ends = tokens[0] == "^", tokens[-1] == "$"
    tokens = tokens[starts : len(tokens) - ends]
    pattern = r"\A[\"'(]?" if starts else r"(?<![\w'-])"
    needs_space = False
    for token in tokens:
        if token in _GAPS:
            pattern += _GAPS[token]
            continue
        optional = token.endswith("?")
        piece = (_BETWEEN if needs_space else "") + _word(token.removesuffix("?"))
        if optional and not needs_space:  # at the beginning, its space is optional with it
            pattern += f"(?:{piece}{_BETWEEN})?"
            continue
        pattern += f"(?:{piece})?" if optional else piece
        needs_space = True
    return pattern + (r"[.!?,;:\"')]*\Z" if ends else r"(?!\w)")


def _word(token: str) -> str:
    units = re.findall(_UNIT, token)
    words = (word for unit in units for word in (VOCABULARY[unit[1:-1]] if unit[0] == "<" else (unit,)))
    return f"(?:{'|'.join(map(_alternative, words))})"


def _alternative(text: str) -> str:
    """Return the pattern of a word, of several words, or of a regular expression between slashes."""
    if text[0] == "/" and text[-1] == "/":
        return text[1:-1]
    return " ".join(re.escape(word).replace(r"\*", r"\w*") for word in re.split(r"[ _]", text))


# --- Intents ---


class Intent(StrEnum):
    """The intents labelled in threads of 2022 to 2025; docs/reading.md shows how each is found."""

    ACK_WILL_LOOK = "ack_will_look"
    HYPOTHESIS = "hypothesis"
    ROOT_CAUSE = "root_cause"
    DISCUSSION = "discussion"
    PROPOSES_APPROACH = "proposes_approach"
    REPRODUCED = "reproduced"
    HUMAN_CONFIRMS_REGRESSION = "human_confirms_regression"
    CONFIRMS_BUG = "confirms_bug"
    WORKING_ON_FIX = "working_on_fix"
    NEEDS_OWNER = "needs_owner"
    ASKS_INFO = "asks_info"
    ASKS_TEST = "asks_test"
    ASKS_STATUS = "asks_status"
    REPRODUCER_BROKEN = "reproducer_broken"
    RETRACTS_REQUEST = "retracts_request"
    PATCH_INLINE = "patch_inline"
    PATCH_ATTACHED = "patch_attached"
    FIX_ELSEWHERE = "fix_elsewhere"
    CLAIMS_FIXED_BY = "claims_fixed_by"
    MERGE_NOTIFICATION = "merge_notification"
    HUMAN_CONFIRMS_FIX = "human_confirms_fix"
    REJECTS_PATCH = "rejects_patch"
    ANNOUNCES_DROP = "announces_drop"
    REQUESTS_DROP = "requests_drop"
    REJECTS_DROP = "rejects_drop"
    EXPECTED_WONTFIX = "expected_wontfix"
    KEEP_OPEN = "keep_open"
    DISPUTES_VALIDITY = "disputes_validity"
    CANNOT_REPRODUCE = "cannot_reproduce"
    BOT_CONFIRMS_FIX = "bot_confirms_fix"
    BOT_FIX_INEFFECTIVE = "bot_fix_ineffective"
    BOT_PARTIAL_FIX = "bot_partial_fix"
    BOT_CANNOT_TEST = "bot_cannot_test"
    BOT_RECONFIRMS_REGRESSION = "bot_reconfirms_regression"
    BOT_PROVIDES_INFO = "bot_provides_info"
    BOT_WILL_TEST = "bot_will_test"
    BOT_ASKS = "bot_asks"
    BOT_RETRACTS = "bot_retracts"
    DUPLICATE_OF = "duplicate_of"
    IMPROVEMENT_ACK = "improvement_ack"
    IMPROVEMENT_SUSPICIOUS = "improvement_suspicious"
    PROCESS_FEEDBACK = "process_feedback"
    TRACKER_COMMAND = "tracker_command"
    THANKS = "thanks"


# --- Rules ---


class By(StrEnum):
    """Whose sentences a rule reads."""

    DEVELOPER = "developer"  # anyone outside the lab
    OPERATOR = "operator"  # the lab's own people
    ANYONE = "anyone"
    USER = "user"  # in a person's thread: the reporter, and other users
    HELPER = "helper"  # in a person's thread: developers


class Mode(StrEnum):
    """Whether an effect is automatic, suggested, or neither."""

    AUTO = "auto"
    SUGGEST = "suggest"
    NONE = "none"


@dataclass(frozen=True)
class Words:
    """Phrases in the notation above, and the regular expression that they mean."""

    phrases: tuple[str, ...]
    expression: str = field(compare=False, repr=False)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The expression, compiled when it is used first: compiling all rules takes longer than most commands."""
        return re.compile(self.expression, re.I)


def words(*phrases: str) -> Words:
    """Return phrases to look for; raises ValueError for one that is not in the notation."""
    return Words(phrases, expression(phrases))


_EDGE = re.compile(r"[,;:()] | (?:but|and|so|because|since|although|though|while|which) |\Z")


def _clause(text: str, cue: re.Match[str]) -> str:
    """Return the clause around a cue."""
    before = max((edge.end() for edge in _EDGE.finditer(text, 0, cue.start()) if edge[0]), default=0)
    after = _EDGE.search(text, cue.end())
    return text[before : after.start() if after else len(text)]


@dataclass(frozen=True, slots=True)
class Unless:
    """Words that rule out a cue: in its clause (`near`), or in its whole sentence. `says`: what the sentence does."""

    says: str
    words: Words
    near: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of docs/reading.md.

    `yes`: sentences that it reads; `no`: sentences that only look like them. They are its test. `does` None: the intent
    is only shown. `aside`: it never decides, and only adds a suggestion to the mail's other
    effects. `alone`: it counts only if no rule above it decides. measured.json holds the accuracy of each.
    """

    name: str
    intent: Intent
    says: str
    cue: Words
    yes: tuple[str, ...]
    no: tuple[str, ...]
    by: By = By.DEVELOPER
    unless: tuple[Unless, ...] = ()
    does: EventKind | None = None
    mode: Mode = Mode.NONE
    aside: bool = False
    alone: bool = False
    to_reporter: bool = False  # counts only in a mail to the reporter, or if it names them
    question: bool | None = None  # True: only questions, False: no questions
    improvement: bool | None = None  # True: only on improvements, False: never on one

    def matches(self, sentence: Sentence) -> bool:
        """Whether the rule matches the sentence."""
        if self.question is not None and self.question is not sentence.asks:
            return False
        for cue in self.cue.pattern.finditer(sentence.text):
            texts = ((unless, _clause(sentence.text, cue) if unless.near else sentence.text) for unless in self.unless)
            if not any(unless.words.pattern.search(text) for unless, text in texts):
                return True
        return False


# --- What rules out a cue ---

NEGATED = Unless("has a negation in the same clause", words("<not>"), near=True)
CONDITIONAL = Unless("has a condition", words("if|unless|whether|assuming|in_case|provided_that"))
HEDGED = Unless(
    "hedges in the same clause",
    words("may|might|could|perhaps|maybe|probably|possibly|hopefully|should|i_think|i_guess"),
    near=True,
)
REPORTED = Unless(
    "reports what others say",
    words(
        "he|she|they|somebody|someone|people|user|users just|already|also? said|says|told|mentioned|mentions|"
        "claims|claimed|wrote|suggested|argued",
        "/(?-i:[A-Z][a-z]+)(?: just| already| also)? (?:said|says|told|mentioned|mentions|claims|claimed|wrote|"
        "suggested|argued)/",
        "according to",
    ),
)


# --- Effects ---


class Relation(StrEnum):
    """How a mail refers to a report."""

    CLOSES = "closes"
    THREAD = "thread"
    TAG = "tag"
    LINK = "link"
    CULPRIT = "culprit"  # a patch elsewhere that says it fixes or reverts the culprit
    FIX_THREAD = "fix_thread"  # an answer to a patch that closes the report, or fixes or reverts its culprit
    PATCH_THREAD = "patch_thread"  # an answer to a patch that only links to the report


@dataclass(frozen=True, slots=True)
class MailContext:
    """How a mail relates to one report: its relation, its writer's role, and whether the report is an improvement.

    `role` None: the report's people are unknown.
    """

    relation: Relation
    role: Role | None = None
    improvement: bool = False
    culprit: str = ""
    by_address: bool = True  # whether the writer is known by address, not only by name
    about: About = About.HERE  # where what the writer signed leads
    title: str = ""  # of the culprit
    benchmark: str = ""  # the first word of the metric, "will-it-scale"; "" if it is unknown
    reporters: frozenset[str] = frozenset()  # addresses and names of the person who reported it; empty: a robot did
    unnamed: bool = False  # whether that person's mail names no culprit, so that a later one may
    authors: frozenset[str] = frozenset()  # the first names of the culprit's authors, in lower case


@dataclass(frozen=True, slots=True)
class Effect:
    """What a mail does to one report. `kind` None: no event. `quote` is the evidence.

    `certainty`: how probable the classifier finds it, in per cent, and `why`: the words that weigh most; None and ""
    if a rule alone decides.
    """

    kind: EventKind | None
    mode: Mode
    rule: str
    quote: str = ""
    title: str = ""
    commit: str = ""
    tree: str = ""
    remark: str = ""
    why: str = ""
    certainty: int | None = None


NOTHING = Effect(None, Mode.NONE, "")

# The names that `explain` uses for effects (its state is the taxonomy's status_effect).
_NAMES: dict[EventKind | None, str] = {
    EventKind.RESPONDED: "responded",
    EventKind.WORKING: "working",
    EventKind.ASKED: "needs_info",
    EventKind.ANSWERED: "info_provided",
    EventKind.DISPUTED: "disputed",
    EventKind.FIX_PROPOSED: "fix_proposed",
    EventKind.FIX_CONFIRMED: "fix_confirmed",
    EventKind.FIX_FAILED: "fix_failed",
    EventKind.FIX_WITHDRAWN: "fix_failed",
    EventKind.FIX_QUEUED: "fix_queued",
    EventKind.DROPPED: "dropped",
    EventKind.EXPECTED: "wontfix",
    EventKind.INVALID: "invalid",
    EventKind.DUPLICATE: "duplicate",
}


def event_kind_of(name: str) -> EventKind:
    """Return the event of an effect, by the taxonomy's name; an improvement is accepted by a response."""
    if name == "improvement_ack":
        return EventKind.RESPONDED
    return next(kind for kind, label in _NAMES.items() if kind and label == name)


def name_of(effect: Effect) -> str:
    """Return the taxonomy's name of an effect, "none" if it has none for it."""
    if effect.rule == "improvement_ack":
        return "improvement_ack"
    return _NAMES.get(effect.kind, "none")
