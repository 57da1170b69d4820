"""The report is doubted. Most claims of noise turned out to be real regressions, so doubt is only ever suggested."""

from __future__ import annotations

from bot.replies.intent import Intent
from bot.replies.rules.rule import Mode, Rule, Trap, words
from bot.replies.rules.traps import CONDITIONAL, REPORTED
from tracker.status import Happening

_DENIED = Trap("denies the doubt", words("<not>|no … doubt|noise|noisy|false", "false sharing"))

RULES = (
    Rule(
        name="disputes",
        intent=Intent.DISPUTES_VALIDITY,
        says="""The number, the test or the bisection is doubted in plain words: "bogus", "just noise".""",
        cue=words(
            "bogus|implausible|dubious|spurious|nonsense|sceptical|skeptical|unconvinced",
            "not … plausible|convinced|credible|believable|actionable|reliable|meaningful|representative|"
            "reproducible|predictable",
            "not|isn't related to",
            "suspicious of|about|to_me|that",
            "particularly|very|highly|bit|rather|somewhat|quite suspicious",
            "i really|seriously|highly|strongly? doubt|question",
            "hard to believe",
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
        does=Happening.DISPUTED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="cannot_reproduce",
        intent=Intent.CANNOT_REPRODUCE,
        says="""The writer tried and did not see it: "I have been unable to reproduce this result".""",
        cue=words(
            "<i cannot> … reproduce|repro|trigger",
            "<i cannot> … see|observe|notice|measure|find … <regression>|difference*|result*|degradation|impact",
            "no … <regression>|difference|change … here|on_my|in_my|locally|for_me|with_my|on_our",
        ),
        unless=(CONDITIONAL, REPORTED),
        question=False,
        improvement=False,
        does=Happening.DISPUTED,
        mode=Mode.SUGGEST,
    ),
)

# Asked after the promises to look: who looks has not made up his mind.
LATER = (
    Rule(
        name="wonders",
        intent=Intent.DISPUTES_VALIDITY,
        says="""Mild doubt: "strange", "this patch doesn't change any functionality".""",
        cue=words(
            "strange|weird|odd|puzzling|surprising|unexpected|surprised|suspicious",
            "makes? no sense",
            "doesn't|does_not|shouldn't|should_not|didn't|wouldn't … change|affect|impact|alter|touch|make … "
            "functional*|behavio*|performance|difference|logic|any*|path|code",
            "no functional change*",
            "just|only|purely|merely a|an? … refactor*|cleanup|clean-up|rename|preparation|cosmetic",
        ),
        unless=(REPORTED,),
        question=False,
        improvement=False,
        does=Happening.DISPUTED,
        mode=Mode.SUGGEST,
        alone=True,
    ),
)
