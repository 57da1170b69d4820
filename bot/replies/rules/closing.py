"""The report is disputed. Most claims of noise turned out to be real regressions, so this is only ever suggested."""

from __future__ import annotations

from bot.replies.intents import Intent
from bot.replies.rules.rule import Mode, Rule, Trap, words
from bot.replies.rules.traps import CONDITIONAL, REPORTED
from tracker.domain.events import EventKind

_DENIED = Trap("denies the doubt", words("<not>|no … doubt|noise|noisy|false", "false sharing"))

RULES = (
    Rule(
        name="disputes",
        intent=Intent.DISPUTES_VALIDITY,
        says="""The number, the test or the bisection is disputed explicitly: "bogus", "just noise".""",
        cue=words(
            "is|are|be|looks|seems … bogus",
            "bogus report|result*|number*|bisect*|regression|data",
            "implausible|dubious|spurious|nonsense|sceptical|skeptical|unconvinced",
            "not … plausible|convinced|credible|believable|actionable|reliable|meaningful|representative|"
            "reproducible|predictable",
            "not|isn't related to",
            "suspicious of|about|to_me|that",
            "particularly|very|highly|bit|rather|somewhat|quite suspicious",
            "i really|seriously|highly|strongly? doubt|question",
            "hard to believe",
            "blame the test|benchmark|machine|compiler|layout",
            "struggling|failing|fail|hard|unable to see|understand|explain|imagine … how|why|what",
            "bisect* went|goes|gone|is|was astray|off",
            "<not> read anything|much|too_much into",
            "no way … this|that|it|the",
            "code alignment|placement|layout",
            "would|should|can disregard|ignore this|it|that|these|the",
            "something off|wrong|fishy with",
            "is|are|be|looks|seems|probably|likely|just|within|mostly|measurement|test|like … noise|noisy|"
            "variance|unrelated|random|jitter|fluke",
            "false positive|alarm",
            "nothing|little to do? with",
            "bisect*|blame*|attribut* … wrong|bogus|incorrect|incorrectly|unreliable|bad|mistaken",
            "wrong|incorrect|bad|false bisect*|commit|culprit|blame",
            "<not> … see|understand|imagine|explain … /how(?! to)/|why …… could|would|can|should|cause*|affect*|"
            "regress*|result*|lead*",
            "test|benchmark|workload|metric|comparison … is|are|looks|seems … broken|flawed|meaningless|invalid|"
            "misleading|useless|unstable|flaky",
        ),
        unless=(_DENIED, REPORTED),
        question=False,
        improvement=False,
        does=EventKind.DISPUTED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="doubts_bisection",
        intent=Intent.DISPUTES_VALIDITY,
        says="""The bisection is questioned: "are you sure about the bisection?\"""",
        cue=words(
            "are you sure|positive|certain|confident … bisect*|commit|culprit|result*|number*",
            "how would|could|can this|that|it|the_commit|the_patch … related|possible|cause|affect|matter|make",
        ),
        question=True,
        improvement=False,
        does=EventKind.DISPUTED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="cannot_reproduce",
        intent=Intent.CANNOT_REPRODUCE,
        says="""The writer tried and did not see it: "I have been unable to reproduce this result".""",
        cue=words(
            "<i cannot> … reproduce|repro|trigger",
            "<i am> not seeing any|a|the|this|it … <regression>|difference|it",
            "<i cannot> … see|observe|notice|measure|find … <regression>|difference*|result*|degradation|impact",
            "no … <regression>|difference|change … here|on_my|in_my|locally|for_me|with_my|on_our",
            "no … difference|change|regression … outside|beyond|above … noise",
            "same throughput|performance|numbers|result* … with_and_without|with_or_without",
        ),
        unless=(CONDITIONAL, REPORTED),
        question=False,
        improvement=False,
        does=EventKind.DISPUTED,
        mode=Mode.SUGGEST,
    ),
)

# Tried after the promises to look: someone who will look has not decided yet.
LATER = (
    Rule(
        name="wonders",
        intent=Intent.DISPUTES_VALIDITY,
        says="""Mild doubt: "strange", "this patch doesn't change any functionality".""",
        cue=words(
            "<is> … strange|weird|odd|puzzling|unexpected|suspicious",
            "strange|weird|odd|puzzling|suspicious since|because|that|result*|number*|as",
            "^ hm*? … strange|weird|odd",
            "makes? no sense",
            "doesn't|does_not|shouldn't|should_not|didn't|wouldn't … change|affect|impact|alter|touch|make … "
            "functional*|behavio*|performance|difference|logic|any*|path|code",
            "no functional change*",
            "just|only|purely|merely a|an? … refactor*|cleanup|clean-up|rename|preparation|cosmetic",
        ),
        unless=(REPORTED,),
        question=False,
        improvement=False,
        does=EventKind.DISPUTED,
        mode=Mode.SUGGEST,
        alone=True,
    ),
)
