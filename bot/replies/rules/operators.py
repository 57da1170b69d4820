"""Rules for replies by the lab's own people: what they measured, could not test, or retract.

A measured outcome is about the latest candidate; what they say of mainline or another machine says nothing about it.
A confirmation with a caveat in its sentence is only a suggestion. That it could not be tested counts only if the mail
shows no measurement and promises none. The last rules have no effect of their own.
"""

from bot.replies.rules.notation import CONDITIONAL, HEDGED, REPORTED, By, Intent, Mode, Rule, Unless, words
from tracker.domain.events import EventKind

_NOT = Unless("has a negation", words("<not>|no"))
_CAVEAT = Unless(
    "has a negation, a condition or a caveat",
    words(
        "<not>",
        "part|partly|partial|partially|some|somewhat|most|mostly|almost|nearly|half|reduced",
        "but|however|though|although|still|only|except",
        "if|unless|whether|may|might|should|could|seems|seem|looks|expect*|hope*|want*|once|until|soon|will",
    ),
)
_DENIES = Unless(
    "denies it",
    words(
        "<not> … fully|entirely|completely? … <gone>|<fixes>|<help>", "still there", "<regression> … left", "far from"
    ),
)
_RERUN = Unless(
    "is about a rerun of the culprit",
    words(
        "rerun|re-run|reran|retest*|re-test*|rebuilt|rebuild|both_parent|latest|mainline|upstream|reproducible",
        "/next-\\d+/",
        # "It still exists in v5.6-rc7", of no patch
        r"/\A(?!.*\b(?:patch|fix|series|appl)).* (?:in|on) (?:the |mainline |linux )?v?\d{1,2}\.\d{1,2}"
        r"(?:\.\d{1,3})?(?:-rc\d{1,2})?[.!]?\Z/",
    ),
)
_NO_RESULT = Unless(
    "thanks for news, hopes or asks",
    words("thanks|thank_you for", "hope|hopes|expect|expected", "you mentioned|said|confirmed|mean", "so_if"),
)
_ELSEWHERE = Unless(
    "is about another tree or machine", words("mainline|upstream|linux-next|latest|platform*|machine*|other")
)
_IF = Unless("has a condition", words("if|whether|unless|should|expect*"))

_STANDS = Unless(
    "says that the rest stands", words("real|valid", "stands", "right ones", "fine", "correct one|numbers")
)
_OF_A_PART = Unless(
    "is about a part of it",
    words(
        "ignore|disregard the|my|our last|previous|earlier|other|above mail*|email*|e-mail*|report|result*|table*",
        "ignore|disregard the|my|our first|second|third|last run*|table*|result*|number*",
        "ignore|disregard the|my|our result*|table*|number* of|in|from|for",
        "report about",
        "wrong|incorrect|invalid|false in",
        "<regression>|drop|change is|are real",
    ),
)

RULES = (
    Rule(
        name="operator_retracts",
        intent=Intent.BOT_RETRACTS,
        says="""The lab retracts the report: "false positive", "please ignore this report".""",
        yes=("sorry, this was a false positive.",),
        no=(
            "it's not a false positive.",
            "So please ignore this report, and there's no need for the fix patch.",
            "Please ignore the second run's result, the disk was full.",
            "Our report is wrong in one place: the machine has 64 CPUs.",
        ),
        cue=words(
            "false positive|alarm|report",
            "invalid|bogus report",
            "report is|was invalid|wrong|bogus|incorrect|false",
            "ignore|disregard this|the|our|that|my|above? … report|regression|mail|email|result",
            "sorry|apologize for the|this|our … noise|false|wrong|invalid|misleading",
            "withdraw|retract|take_back this|the|our report",
        ),
        unless=(CONDITIONAL, HEDGED, _NOT, _OF_A_PART),
        by=By.OPERATOR,
        question=False,
        does=EventKind.INVALID,
        mode=Mode.AUTO,
    ),
    Rule(
        name="operator_corrects",
        intent=Intent.BOT_RETRACTS,
        says="""The lab takes back a mail or a result of its own, which may be the report: "ignore my last mail".""",
        yes=("Please disregard our previous email, the kernels were swapped.",),
        no=("Please ignore this report.",),
        cue=words("ignore|disregard my|our? last|previous|earlier|above mail|email|e-mail|report|result|results"),
        unless=(
            CONDITIONAL,
            HEDGED,
            _NOT,
            _STANDS,
            Unless("is about what was sent", words("attach*|file|config|thread")),
        ),
        by=By.OPERATOR,
        question=False,
        does=EventKind.INVALID,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="operator_duplicate",
        intent=Intent.DUPLICATE_OF,
        says="""The lab says that it reported this before: "same as the report of …".""",
        yes=(
            "It's a duplicate report, was sent twice because the mail queue got stuck.",
            "Yes it's the same issue as the one you discussed with Lennart in May; we'll merge both entries.",
        ),
        no=("we will look for duplicate lines in the log.",),
        cue=words(
            "duplicate|duplicated of|report|with",
            "same|identical … regression|issue|problem|report … as|we_reported|reported|with",
            "sorry for the duplication|duplicate",
            "reported this|it when|in|before|already",
            "already|previously reported this|it|the_same|in|as|at",
            "this|it is|was the? same as|one",
            "duplicate|duplicated one",
        ),
        unless=(CONDITIONAL,),
        by=By.OPERATOR,
        question=False,
        does=EventKind.DUPLICATE,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="operator_partial",
        intent=Intent.BOT_PARTIAL_FIX,
        says="""The lab measured that a candidate only partly helps: "partially recovered, but not fully".""",
        yes=(
            "the performance is partially recovered.",
            "partially recovered, but not fully",
            "With the series the score is still 9% under that of the parent.",
            "Throughput stays below the base even when both patches are in.",
        ),
        no=(
            "we tested a part of the series.",
            "The parent is still below the limit of the disk.",
            "Latency stays below the base now.",
        ),
        cue=words(
            "part|partly|partial|partially recover*|fix*|restor*|resolv*|help*|improv*|mitigat*",
            "recover*|fix*|restor*|resolv*|help*|improv*|mitigat* …… partly|partially|not_fully|not_entirely|"
            "not_completely|but_still|but_not",
            "<regression>|gap is|was|has_been|becomes|became … smaller|reduced|less|decreased|narrowed|mitigated",
            "not fully|entirely|completely|totally recover*|fix*|restor*|resolv*",
            "half|part|third|some|/\\d\\/\\d/ of … <regression> … left|remains|there",
            "still … lower|worse|slower|higher than … parent|before",
            "performance|throughput|score|bandwidth|iops|we …… still|remains|remain|stays …… below|under … parent|base|"
            "baseline",
        ),
        unless=(_IF, _RERUN),
        by=By.OPERATOR,
        question=False,
        improvement=False,
        does=EventKind.FIX_FAILED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="operator_ineffective",
        intent=Intent.BOT_FIX_INEFFECTIVE,
        says="""The lab measured that a candidate does not help: "it didn't fix the issue", "has little impact".""",
        yes=(
            "your patch doesn't help.",
            "it didn't fix the issue",
            "With your patch the test shows an even larger drop.",
            "With your patch applied, the regression still exists in v5.6-rc7.",
        ),
        no=(
            "we rerun both commits 15 times each and the data is quite stable, the regression still exists.",
            "we rebuilt mm-stable as of today and the regression is still there:",
            "The issue still exists in v5.6-rc7.",
            "we also found an even bigger regression in another test.",
        ),
        cue=words(
            "<patch>|<performance>|it|this|they … didn't|did_not|doesn't|does_not|don't|couldn't|could_not|can't|cannot"
            " fully|really|actually? <help>|come_back|make_any_difference",
            "<patch>|it|this …… has|have|had|shows|makes|with|brings no|little|not_much|very_little|almost_no …"
            " impact|effect|help|difference|improvement",
            "no obvious|significant|visible? effect|impact|improvement|help",
            "no obvious|significant|visible|clear|big difference|diff|change|changes",
            "nearly|almost no|same difference|change|result*",
            "even|much worse",
            "tested|test|patch …… even|much bigger|larger regression|slowdown|drop",
            "none of them|these|the_patches … <help>|helps",
            "still … has|have|see|saw|there|show|shows|exist|exists|observe|observed|got ……"
            " regression|slowdown|drop|degradation|issue|/-\\d[\\d.]*%/",
            "<regression> … still|remains|persists … there|exist|exists|seen|observed|remains|with|after|on|by",
        ),
        unless=(_IF, _RERUN),
        by=By.OPERATOR,
        question=False,
        improvement=False,
        does=EventKind.FIX_FAILED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="operator_still_slow",
        intent=Intent.BOT_FIX_INEFFECTIVE,
        says="""The same in a few words: "still slow", "nothing changed". Without a candidate it says nothing.""",
        yes=(
            "Still slow with v2.",
            "We tried the series, but nothing changed on our machines.",
            "Same here: no improvement.",
            "That did not do the trick.",
            "Sadly it isn't any better than before.",
            "We still measure the same drop after that change.",
        ),
        no=("Nothing changed in the config.", "It was slow before, too.", "If it's still slow, we'll look into it."),
        cue=words(
            "still slow|slower|bad|low|regressed",
            "even slower|worse|lower",
            "no performance|throughput difference|diff|change|changes",
            "it|this|that|performance|throughput|score is|was|got|gets? <not> any? better|faster",
            "isn't|wasn't any? better",
            "far from gone|fixed|resolved|recovered",
            "still measure …… <regression>|drop … after|with",
            "<performance> is|was|are|were the? same as /[0-9a-f]{7,40}\\b/",
            "<no longer seen> see|observe … performance|throughput|score|improvement … recover*|restored|improved|back",
            "/(?:does|did|do)(?:n't| not)/ do the_trick|any_good",
            "performance|throughput|score|numbers|results … /(?:(?:did|do|does|have|has)(?:n't| not))/"
            " move|moved|change|changed|budge|budged",
            "nothing has? /changed(?=[.!,]|\\Z| (?:here|for|on our|with))/",
            "no /(?:change|improvement)(?=[.!,]|\\Z| (?:here|for|on our|with))/",
        ),
        unless=(
            _IF,
            _RERUN,
            REPORTED,
            Unless(
                "says that it is gone, or what is without it", words("parent|base", "<gone>", "<anymore>", "without")
            ),
        ),
        by=By.OPERATOR,
        question=False,
        improvement=False,
        does=EventKind.FIX_FAILED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="operator_confirms",
        intent=Intent.BOT_CONFIRMS_FIX,
        says="""The lab measured that a candidate removes it, without a negation, a condition or a caveat: "the
        regression disappears after applying the patch". This is about the latest candidate only.""",
        yes=(
            "the regression is gone with your patch.",
            "we confirmed the patch fixes the regression.",
            "works for me now, thanks",
        ),
        no=("Lee said that it is fixed in v2.", "the regression is gone, but another one shows up."),
        cue=words(
            "<regression>|<performance> …… <gone>",
            "<performance> … come|comes|came back",
            "performance|throughput|score is|was now? /back(?=[.!,]|\\Z| to (?:normal|the (?:level|parent|baseline)))/",
            "restor*|recover* …… level …… parent|base|before",
            "get|gets|got|brings|bring … <performance>|performance … back",
            "<patch>|it does|did|can|could solve|fix|resolve",
            "<patch>|it|this …… <fixes> it|this|that|the|all|our|both … <regression>?",
            "confirm|confirmed|verified …… <fixes>|works|worked|helps|gone",
            "no more? <regression> anymore? … with|after|on",
            "no more? <regression> was|is|were|can_be observed|seen|found",
            "no <regression> anymore|any_more|any_longer",
            "yes|indeed it works|helps|fixes",
            "works … for_me|for_us|here",
            "<performance> …… on_par with",
        ),
        unless=(_CAVEAT, _NO_RESULT, REPORTED),
        by=By.OPERATOR,
        question=False,
        improvement=False,
        does=EventKind.FIX_CONFIRMED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="operator_sees_it_no_more",
        intent=Intent.BOT_CONFIRMS_FIX,
        says="""The same, phrased negatively: "we can't see the regression any more with the patch". About mainline
        or another machine it says nothing about a candidate.""",
        yes=(
            "we can't see the regression any more with the patch",
            "We don't see the regression any more with the new version of the series.",
        ),
        no=("we do not see the mail on the list.",),
        cue=words(
            "<no longer seen> … see|seen|observe|observed|reproduce|reproduced|find|found|be_observed|be_seen …"
            " <regression>? … <anymore>",
            "<regression> … <no longer seen> … see|seen|observed|reproduced|found|be_observed|be_seen|there <anymore>",
        ),
        unless=(_ELSEWHERE, _IF, REPORTED),
        by=By.OPERATOR,
        question=False,
        improvement=False,
        does=EventKind.FIX_CONFIRMED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="operator_confirms_with_caveat",
        intent=Intent.BOT_CONFIRMS_FIX,
        says="The same, with a caveat in the sentence.",
        yes=("the regression is gone with your patch.", "we confirmed the patch fixes the regression."),
        no=(
            "if the patch fixes the regression, please let us know.",
            "As soon as the regression is gone you get our tag.",
            "The hang is gone with the patch, but we didn't get the throughput measured.",
            "Would you move the fio jobs to the node where the drive is and check if it goes away on your end?",
        ),
        cue=words(
            "<regression>|<performance> …… <gone>",
            "<patch>|it|this …… <fixes>|help|helps|helped it|this|that|the|all|our|both|on|a_lot|much",
            "<no longer seen> … see|observe|reproduce … <regression> … <anymore>",
            "performance|throughput|score|numbers|results is|are now? back where it_was|they_were|it_should_be",
        ),
        unless=(
            _NO_RESULT,
            _DENIES,
            Unless(
                "names what it is back at",
                words("back_where …… before|with|after|of the fix|patch|culprit|<regression>"),
            ),
            Unless("depends on the patch", words("if the|this|your patch|series")),
            Unless(
                "is to come, or was not measured",
                words(
                    "once|until|as_soon_as the? <regression>",
                    "<not> …… measured|benchmarked …… performance|throughput|yet",
                ),
            ),
        ),
        by=By.OPERATOR,
        question=False,
        improvement=False,
        does=EventKind.FIX_CONFIRMED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="operator_still_there",
        intent=Intent.BOT_RECONFIRMS_REGRESSION,
        says="""The lab ran it again and it is still there: "the regression is still reproducible".""",
        yes=("we rebuilt and the regression is still reproducible.", "the regression is still reproducible"),
        no=(
            "I could reproduce it here and with the diff below the score is back to where it was before.",
            "Let me try and see if I could reproduce this on one of our Ampere systems, I'll report back.",
        ),
        cue=words(
            "<regression>|<performance>|data|difference … still|can_be|is|are|also|always … reproducible|"
            "reproduced|there|exists|persists|observed|seen|stable|consistent",
            "still … see|saw|observe|observed|have|exists|there|reproduce|reproduced|reproducible|remains",
            "can|could still|reliably|stably|always? reproduce|be_reproduced",
        ),
        unless=(_NOT, _IF, Unless("says that the result is back", words("back|recovered|almost|restored"))),
        by=By.OPERATOR,
        question=False,
        does=EventKind.ANSWERED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="operator_cannot_test",
        intent=Intent.BOT_CANNOT_TEST,
        says="""The lab could not apply, build or boot the candidate: "the patch failed to compile".""",
        yes=("the patch failed to build.", "the patch failed to compile"),
        no=("we will test the patch tonight.",),
        cue=words(
            "fail|fails|failed|cannot|can't|could_not|couldn't|unable|not_able|doesn't|does_not to? … apply|"
            "build|compile|boot|be_applied|be_built",
            "patch|build|kernel|it|this|both|series …… build|boot|compile? failed|fails",
            "build|compile|compilation|apply error*|failure*|conflict*",
            "cannot|can't|could_not|couldn't finish|complete|boot|run",
            "hang|hangs|hung|panic|panics|crash|crashes|lockup|malformed|mangled",
            "fail|fails|failed|cannot|can't|not pass … compiling|compilation|build|building",
        ),
        by=By.OPERATOR,
        question=False,
        does=EventKind.FIX_FAILED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="operator_will_test",
        intent=Intent.BOT_WILL_TEST,
        says="""The lab promises a test: "we will test it and let you know".""",
        yes=("we will test it and let you know.",),
        no=("Is there any boot parameter that I can try to bring back the old behaviour?",),
        cue=words(
            "<i will> … <run>|update_you|let_you_know|report|share|do|queue|add|put|look|investigate",
            "put|added … queue",
            "<i> can|have|would … test|started|queued|kicked_off|try",
            "<i have> already? started|queued|kicked_off",
            "pleasure to test",
            "test|tests|testing|job is|are|has_been … running|ongoing|in_progress|queued|started",
        ),
        by=By.OPERATOR,
        question=False,
    ),
    Rule(
        name="operator_asks",
        intent=Intent.BOT_ASKS,
        says="""The lab asks the developer something: "which one do you suggest us to test?\"""",
        yes=(
            "which one do you suggest us to test?",
            "could you let us know which branch the newer version is on?",
            "not sure if we should test v2, could you tell us which base to apply it on?",
        ),
        no=(
            "The commit dropped the trylock flag.",
            "I haven't dropped it.",
            "Do you have time to take a look at this regression?",
            "not sure whether the wiki page answers that?",
        ),
        cue=words("/\\w+/"),
        unless=(
            Unless("asks for attention", words("time to …… look|check", "any update*|news|comment*|progress|plan*")),
            Unless("offers something", words("^ not_sure if|whether", "if you want|need|like|have any"), near=True),
        ),
        by=By.OPERATOR,
        question=True,
    ),
    Rule(
        name="operator_asks_kindly",
        intent=Intent.BOT_ASKS,
        says="""The same without a question mark: "please let me know".""",
        yes=(
            "if the patch fixes the regression, please let us know.",
            "please let me know",
            "Please share your config.",
        ),
        no=("Would you please give this one a go?",),
        cue=words(
            "please|pls|kindly … let_me_know|let_us_know|help|suggest|advise|give|guide|tell|correct|confirm",
            "please|pls|kindly … send|share|provide|attach|post us|me|your|the",
            "not_sure if|whether|about|i_understand",
        ),
        by=By.OPERATOR,
        question=False,
    ),
)
