"""Rules: the report is disputed, its culprit is dropped, or the change is expected.

Most claims of noise turned out to be real regressions, so that a rule alone only suggests a dispute of a robot's
report; it acts if the classifier finds it likely, too (persons.py reads those of people's reports). A drop or revert of
the culprit acts by itself if the writer has done it or decided to; a plan or somebody's wish for it is suggested. That
a change is expected is only suggested as well: a developer's plain English never closes a report alone (DESIGN rule 4).
"""

from bot.replies.rules.notation import CONDITIONAL, HEDGED, NEGATED, REPORTED, By, Intent, Mode, Rule, Unless, words
from tracker.domain.events import EventKind

# --- Disputes ---

_DENIED = Unless("denies the doubt", words("<not>|no … doubt|noise|noisy|false", "false sharing"))

DISPUTES = (
    Rule(
        name="disputes",
        intent=Intent.DISPUTES_VALIDITY,
        says="""The number, the test or the bisection is disputed explicitly: "bogus", "just noise".""",
        yes=(
            "This looks like noise to me.",
            "I don't see how this commit could cause that.",
            "I am surprised that this patch makes a difference for that test.",
            "The profile doesn't match what this commit touches.",
            "I don't believe that the scheduler change is to blame here.",
            "I do not think that this patch could explain it, the file isn't even built there.",
            "That drop doesn't seem related to the patch.",
            "I don't see how this commit could cause that, unless the layout changed.",
            "Reverting it doesn't change the number.",
        ),
        no=(
            "it's not a false positive.",
            "I'm not surprised that this patch makes a difference.",
            "If it is noise, should we then exclude this platform from the report of cyclictest?",
            "The drop worries me (unless the test is meaningless).",
            "I am not surprised, this commit is to blame.",
            "It is not the test: the bisected commit is to blame.",
            "The data does not fit into the cache any more after this change.",
        ),
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
            "/(?<!not )(?:surprising|surprised|puzzling|puzzled)/ …… this|these|the commit*|patch*|change* ……"
            " makes|make|made|any|a difference|impact|effect",
            "struggling|failing|fail|hard|unable to see|understand|explain|imagine … how|why|what",
            "bisect* went|goes|gone|is|was astray|off",
            "<not> read anything|much|too_much into",
            "no way … this|that|it|the",
            "code alignment|placement|layout",
            "number*|result*|profile … don't|doesn't|do_not|does_not match …… commit*|patch*|change*",
            "don't|do_not think|believe|see_how|see_why …… commit|patch|change …… blame|blamed",
            "don't|do_not think|believe …… commit|patch|change … can|could|would cause|explain",
            "doesn't|does_not|don't|do_not look|seem|appear|be related",
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
            "^ reverting|revert …… doesn't|does_not|didn't|did_not <help> here|at_all|either|much|me|us",
            "^ reverting|revert …… doesn't|does_not|didn't|did_not change|restore|improve|recover the|my|any? "
            "number*|result*|performance|throughput|latency|regression|score*|speed|anything|it",
        ),
        unless=(_DENIED, REPORTED, Unless("says so under a condition", words("unless"), near=True)),
        question=False,
        improvement=False,
        does=EventKind.DISPUTED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="doubts_bisection",
        intent=Intent.DISPUTES_VALIDITY,
        says="""The bisection is questioned: "are you sure about the bisection?\"""",
        yes=("are you sure about the bisection?",),
        no=("The bisection took four hours.",),
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
        yes=(
            "I can't reproduce this on my machine.",
            "I have been unable to reproduce this result",
            "I tried to replicate it on a machine with 192 threads as well and didn't see the regression.",
            "in my testing that commit made no difference in that benchmark whatsoever",
        ),
        no=(
            "I can reproduce this on my machine.",
            "I am looking into it, and didn't see any obvious cause yet.",
        ),
        cue=words(
            "<i cannot> … reproduce|repro|trigger",
            "<i am> not seeing any|a|the|this|it … <regression>|difference|it",
            "<i cannot> … see|observe|notice|measure|find … <regression>|difference*|result*|degradation|impact",
            "no … <regression>|difference|change … here|on_my|in_my|locally|for_me|with_my|on_our",
            "no … difference|change|regression … outside|beyond|above … noise",
            "same throughput|performance|numbers|result* … with_and_without|with_or_without",
            "tried|tested …… …… didn't|did_not|couldn't|could_not see|observe|notice|reproduce … <regression>|it|any",
            "made|makes no difference …… in|on|for",
        ),
        unless=(CONDITIONAL, REPORTED),
        question=False,
        improvement=False,
        does=EventKind.DISPUTED,
        mode=Mode.SUGGEST,
    ),
)

# Tried after the promises to look: someone who will look has not decided yet.
DOUBTS = (
    Rule(
        name="wonders",
        intent=Intent.DISPUTES_VALIDITY,
        says="""Mild doubt: "strange", "this patch doesn't change any functionality".""",
        yes=(
            "this patch doesn't change any functionality",
            "I'm sure this commit won't affect performance.",
            "This commit should not cause a regression.",
            "I think there should be no performance impact.",
            "I'm confused about how this would affect it.",
            "This doesn't sound sane to me.",
            "I have a second patch nearly ready which does the same for the completion, just needs some cleanup.",
        ),
        no=("It works without the lock.", "We can't make any change in this path without a lock."),
        cue=words(
            "<is> … strange|weird|odd|puzzling|unexpected|suspicious",
            "strange|weird|odd|puzzling|suspicious since|because|that|result*|number*|as",
            "^ hm*? … strange|weird|odd",
            "makes? no sense",
            "not|cannot|can't make any sense",
            "doesn't|does_not|not sound|look|seem sane|right|plausible|reasonable",
            "confused|puzzled|baffled about|by|how|why",
            "no performance impact|effect|change|difference",
            "shouldn't|should_not|won't|will_not|can't|cannot cause|introduce … <regression>",
            "won't|will_not|can't|cannot|/_cannot_/ … affect|impact … performance|behavio*|it|this|that",
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


# --- Drops and reverts ---

DROPS = (
    Rule(
        name="announces_drop",
        intent=Intent.ANNOUNCES_DROP,
        says="""The writer has dropped or reverted the culprit, or decided to: "I've dropped it", "we decided to drop
        this patch". Dropping something else (a flag, a lock) does not count.""",
        yes=("I've dropped this patch from my tree for now.", "We decided to drop the patch."),
        no=("The commit dropped the trylock flag.",),
        cue=words(
            "<i have> now|just|already|since? dropped|removed|kicked_out|withdrawn <culprit>",
            "<i have> yanked it|this|that|<culprit> from the|my|our? <tree>",
            "<i have> now|just|already|since? pulled|taken|took|kicked|removed <culprit> … out_of|from",
            "agreed|decided to take|pull|kick|throw <culprit> … out|from",
            "decided|agreed to <drop> <culprit>",
            "<culprit> has_been|have_been|is now|already? dropped|withdrawn",
            r"^ /(?:(?:ok|okay|thanks|right|sure|now|patch|series),? )?"
            r"(?:dropped|withdrawn|dropping (?:it|this)(?: one)?)(?=[.!,]|\Z)/",
            "dropped|removed now? from the|my|our? <tree>",
            "^ now? dropped|reverted|backed_out|removed it|this|that? in|from|for the|my|our? <tree>",
            "revert is|was|has_been|went|got now|just? in|landed|pushed|applied|merged",
        ),
        unless=(NEGATED, CONDITIONAL, HEDGED, REPORTED),
        question=False,
        does=EventKind.DROPPED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="will_drop",
        intent=Intent.ANNOUNCES_DROP,
        says="""The writer is about to drop or revert it, or has reverted it, even for a test: "I'll drop it", "let's
        revert this".""",
        yes=(
            "Okay, let's just revert it.",
            "Good catch, will revert it.",
            "Fine, I'm backing out the series.",
            "My plan is to revert both patches before the release.",
            "Reverting the series seems the right thing.",
            "We'll back that out for now.",
            "This patch is being withdrawn, sorry.",
        ),
        no=(
            "I won't drop it.",
            "The throughput will drop.",
            "The plan is to drop the lock earlier.",
            "The idea was to revert to the old allocation order under pressure.",
        ),
        cue=words(
            "<i have> now|just|already|since? reverted <culprit>",
            "<culprit> has_been|have_been|was|were|got now|already? reverted|backed_out|dropped",
            "<i will> … <drop> <culprit>",
            "<i want> … <drop> <culprit>",
            "<i am>|^ … reverting|dropping|backing_out|withdrawing <culprit>",
            "<i will> send|post|queue|do a|the revert",
            "let's|let_us|feel_free_to just|please? <drop> <culprit>",
            "will|to be dropped|reverted|withdrawn|backed_out",
            "<culprit> is|are being withdrawn|dropped|reverted|backed_out",
            "<i will>|^ … /back(?:ing)? (?:it|this|that|them|the [\\w-]+) out/",
            # "Thanks, will drop it."; not "the throughput will drop"
            "/(?:\\A|(?<=[,;:.] ))will (?:drop|revert)(?=[.!,]|\\Z| (?:it|this|that|them)\\b)/",
            "fine|ok|okay with dropping|reverting",
            "plan is now? to just? <drop> <culprit>",
            "my|our plan is now? to just? revert|back_out",
            "revert|reverting <culprit>? is|seems|looks_like the_way_to_go|the_right_thing|the_best_option",
        ),
        unless=(NEGATED, REPORTED),
        question=False,
        does=EventKind.DROPPED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="is_reverted",
        intent=Intent.ANNOUNCES_DROP,
        says="""Somebody else has dropped or reverted it: "this has been reverted", "Andrew dropped it".""",
        yes=(
            "This has been reverted in mainline.",
            "It is already reverted upstream.",
            "Andrew already dropped it.",
            "Linus has reverted this.",
        ),
        no=(
            "When the queue is full it is dropped by the NIC.",
            "It was dropped to 300 MB/s after the upgrade.",
            "Once this is reverted, I can send a new version.",
            "If it was reverted, tell me.",
            "They dropped this from their list of benchmarks.",
            "Greg dropped it from the stable queue, mainline keeps it.",
            "This was reverted once, and then applied again.",
            "They dropped the lock.",
        ),
        cue=words(
            "it|this|that has_been|have_been|was|got now|already? reverted|backed_out",
            "it|this|that is now|already reverted|backed_out|dropped",
            "it|this|that is reverted in|upstream",
            "linus|andrew|akpm|greg|he|she|they|maintainer|maintainers has|have? now|just|already? <dropped> <culprit>",
        ),
        unless=(
            NEGATED,
            CONDITIONAL,
            REPORTED,
            Unless("is to come, or is undone", words("if|once|when|unless|until", "again", "list|stable|queue")),
        ),
        question=False,
        does=EventKind.DROPPED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="drops_what_is_named",
        intent=Intent.ANNOUNCES_DROP,
        says="""The same of a commit's sha or title, a file of a patch, or a series: "dropped mm-stop-it.patch".""",
        yes=(
            'I\'ve dropped "mm/vmscan: stop it" from mm-unstable.',
            "Thanks, I dropped mm-vmscan-stop-it.patch.",
            "Dropped the series from mm-unstable, thanks.",
            "I pushed a revert to tip/urgent.",
        ),
        no=(
            "The throughput dropped 30%.",
            "I dropped the lock.",
            "I could push a revert.",
            "I reverted 3b1f0c9d2e44 locally and the regression is gone.",
        ),
        cue=words(
            "<i have> now|just|already|since? dropped|reverted|removed|withdrawn|pulled the? commit? <named change>",
            "<i> just|now? dropped|reverted|withdrew|pulled the? commit? <named change>",
            "^ now? dropped|reverted|withdrawn|pulled the? commit? <named change>",
            "<i>|<i have> just|now? pushed|queued|sent|posted|merged a|the|its revert",
        ),
        unless=(
            NEGATED,
            CONDITIONAL,
            REPORTED,
            Unless("says that it was a test", words("locally", "on top_of", "test*|tried", "<gone>", "no change")),
        ),
        question=False,
        does=EventKind.DROPPED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="requests_drop",
        intent=Intent.REQUESTS_DROP,
        says="""Someone asks to drop or revert it: "can you remove this patch from for-next".""",
        yes=(
            "Lee, could you please drop this patch from -next?",
            "can you remove this patch from for-next",
            "This series should get dropped until the locking is sorted out.",
        ),
        no=("Nobody asked for a revert.", "This series should get pulled into mainline this week."),
        cue=words(
            "can|could|would|will|please|should|shall|must|need_to|have_to|better|suggest|propose … <drop> <culprit>",
            "suggest|propose|consider … dropping|reverting|removing <culprit>",
            "shouldn't|why_not … <culprit>|we … be? <dropped>|<drop>",
            "<culprit> should|must|needs_to|has_to|ought_to be <dropped>",
            "<culprit> should|must|needs_to|has_to|ought_to get reverted|dropped|backed_out",
            "^ please? drop|revert <culprit>",
        ),
        unless=(
            Unless(
                "says not to", words("not|don't|never|no_need_to|rather_than drop|revert|remove|dropping|reverting")
            ),
            REPORTED,
        ),
        does=EventKind.DROPPED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="rejects_drop",
        intent=Intent.REJECTS_DROP,
        says="""The writer argues against a revert: "I'd rather not revert it".""",
        yes=("I'd rather not revert it",),
        no=("Reverting it is fine with me.",),
        cue=words(
            "<not> … revert|reverting|drop|dropping <culprit>", "no need|no_reason|against … revert|reverting|drop"
        ),
        question=False,
    ),
)


# --- Expected changes ---

_EXPECTED_DENIED = Unless(
    "negates it", words("<not> … expected|intended|intentional|acceptable|by_design|within|known")
)

EXPECTED = (
    Rule(
        name="expected",
        intent=Intent.EXPECTED_WONTFIX,
        says="""The change is said to be expected, intended or acceptable: "this is expected".""",
        yes=("This is expected, we do more work now.", "this is expected"),
        no=(
            "That is not expected at all.",
            "That's not expected at all: the patch touches an SCTP-only file and you run TCP_STREAM.",
            "Hm, that's a lot more than expected.",
        ),
        cue=words(
            "<thing> <is> … /(?<!than )expected(?! to)/|intended|intentional|by_design|unavoidable|inevitable|"
            "acceptable|unsurprising|harmless",
            "that's|it's … /(?<!than )expected(?! to)/|intended|intentional|by_design|unavoidable|inevitable|"
            "acceptable",
            "nothing unexpected|surprising",
            "knew about|of this|that|it|the",
            "^ yes? expected|unavoidable|inevitable|intentional|intended",
            "<not> … surprise|surprising",
            "within the|an? … acceptable|expected|noise range|level|margin|limit*",
            "expected|known|intended|necessary|inevitable tradeoff|trade-off|cost|side-effect|consequence|result|"
            "regression|slowdown",
        ),
        unless=(_EXPECTED_DENIED, CONDITIONAL, REPORTED),
        question=False,
        improvement=False,
        does=EventKind.EXPECTED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="accepts_cost",
        intent=Intent.EXPECTED_WONTFIX,
        says="""The cost is accepted for another benefit: "ok to eat a regression for correctness".""",
        yes=("Fine, we can live with that.", "ok to eat a regression for correctness"),
        no=("Since when do we trade throughput against four saved lines?",),
        cue=words(
            "ok|okay|fine|willing|happy|acceptable to|with eat|take|pay|live_with|accept|swallow …… <regression>|"
            "hit|cost|price|that|it",
            "trade|trades|trading … for|against",
            "tradeoff|trade-off|trade_off",
            "correctness comes|is|goes|over|trumps|first|beats|matters",
            "price|cost|penalty … pay",
            "is|are|was the price|cost of|for",
            "can|could|will|have_to|need_to|we'll live with",
        ),
        unless=(REPORTED,),
        question=False,
        improvement=False,
        does=EventKind.EXPECTED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="wont_act",
        intent=Intent.EXPECTED_WONTFIX,
        says="""The writer will not act on it: "I'm not going to look at this any further", "I don't think we care".""",
        yes=(
            "I don't think we should care about this benchmark.",
            "I'm not going to look at this any further",
            "I am not too concerned about a test that nobody runs.",
            "I have no plan to try and tune this.",
            "With two locks instead of one, a drop in this test is unavoidable.",
            "Correctness comes first here.",
            "There isn't much you can do about such a test.",
            "That score shouldn't need any fix in the driver.",
            "I'm going to forget this report.",
            "So I don't think that we need to change anything.",
            "We don't plan to optimise for this case.",
            "I do not plan any further work on this.",
            "I wouldn't treat this as a regression.",
            "I do not see anything here that is worth chasing.",
            "My inclination: I intend to keep the patch as it is.",
        ),
        no=(
            "We should look into this one.",
            "I am concerned about the tail latency.",
            "I'm not going to ignore this regression.",
            "It has absolutely nothing to do with stat.",
            "I don't think you need to change your config.",
            "I can't fix the test.",
            "The fix is small and does not require any change in the drivers.",
            "I don't plan any travel next week, so I'll look at it then.",
            "I have no plan for today.",
        ),
        cue=words(
            "/(?:i am|i'm|we are|we're) not|we aren't/ going_to|planning_to|gonna look|bring|restore|revert|fix|do|"
            "change|worry|spend|work|bother|investigate|chase|care",
            "<i> won't|will_not fix|send|look|worry|spend|bother|change|do_anything|pursue",
            "<i> don't|do_not … care|worry|bother",
            "<i> don't|do_not|no intend|plan|have_plans to",
            "<i> don't|do_not plan any|further|making|doing …… work|investigation*|fix|fixes|change*",
            "<i>|<i will> don't|do_not|won't|not|wouldn't consider|count|treat|regard this|it|that as? a? <regression>",
            "no plan|plans|intention|interest|desire in|of|to? try|trying|work|working|fix|fixing|pursue|pursuing",
            "<not> think …… need|have to do|change|fix anything|something",
            "<not> … much|anything we|i|you can do",
            "should_not|shouldn't require|need a|any? change|fix",
            r"/(?:can't|cannot|can not) fix (?:it|this|that|the (?:issue|regression|problem))(?=[.!,;]|\Z)/",
            "/(?<!not )(?:going to|gonna|will) (?:forget|ignore) (?:this|that|the) (?:report|regression|one)/",
            "/(?:i'm|i am|we're|we are) (?:going to|gonna|inclined to) (?:forget|ignore) (?:it|this|that)"
            "(?=[.!,;]|\\Z)/",
            "<not> … worth|anything|something … worth digging|investigating|looking|pursuing|chasing",
            "<i>|i intend|plan to keep <culprit>",
            "<regression>|drop|slowdown …… inevitable|unavoidable",
            "security|correctness|safety comes|goes|is first|more_important",
            "<not> particularly|too|that|overly|really|terribly? worried|concerned|bothered about|by",
            "stop|drop|close tracking|following this|it|the",
            "won't-fix|wontfix|won'tfix",
            "not interested in",
            "<not> … worth fixing|worrying|bothering|the_effort|it",
            "<not>|nothing … to? worry_about|need_fixing|need_to_be_fixed",
            "not a real? concern|problem|bug|regression",
            "nothing|anything to fix|/do(?! with\\b)/|be_done|worry_about",
            "works|working as intended|designed|expected",
            "<i am> not going_to lose_sleep",
            "leave it|this alone|as_is|as_it_is",
            "rather not touch|change|bother|spend",
            "which_is what …… sets_out|supposed|intended|meant to",
            "keep|leave the|this patch|commit|change|code for_now|as_is|as_it_is|anyway|in",
        ),
        unless=(CONDITIONAL, REPORTED),
        question=False,
        improvement=False,
        does=EventKind.EXPECTED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="asks_to_reopen",
        intent=Intent.KEEP_OPEN,
        says="""A closed report is to be opened again: "please reopen".""",
        yes=(
            "That was the wrong report, please reopen it.",
            "Can you reopen the report?",
            "Could you open it again?",
            "Sorry, I take that back: it is real.",
            "Would somebody please re-open the ticket, I closed it too early?",
            "This one should be opened again.",
            "It should never have been closed.",
            "The slowdown is back in v6.13-rc2.",
        ),
        no=(
            "I'd have to reopen the file.",
            "The merge window reopens on Monday.",
            "No need to reopen it.",
            "First I want to make sure that it is not noise.",
        ),
        cue=words(
            "please|pls|can|could|would|will you|we|somebody|someone|anybody|anyone|let's|should|must|to? please? "
            "/(?:re-?open|un-?close|un-?invalid)(?=[.!?,]|\\Z| (?:it|this|please|the (?:report|ticket|issue)))/",
            "/re-?open(?:ed|ing)(?=[.!?,:]|\\Z)/",
            "open it|this|the_report again",
            "be opened again",
            "it|this|that|report|issue|<regression> /(?:should|must)(?: not|n't| never) have been closed/",
            "too quick|quickly|early|soon|hasty …… close|closed|closing|invalid",
            "clos* …… too quickly|early|soon|hastily",
            "why was|is|did this|it|that closed",
            "it's|this|it|<regression> is? back in|on|with /v?\\d+\\.\\d+/",
            "^ /(?:re-?open|un-?close|un-?invalid)/",
            "<not> invalid|a_duplicate|noise",
            "real|genuine|valid <regression> after_all",
            "is|it's a <regression> after_all",
            "i /take (?:that|it|this) back(?=[.:,;!]|\\Z)/",
            "i was wrong|mistaken",
            "report is valid|right|correct",
        ),
        unless=(
            Unless(
                "does not want it, or not yet",
                words("<not>|no_need|no_reason … reopen|reopened|open", "if|unless|whether|make_sure"),
            ),
            REPORTED,
        ),
        by=By.ANYONE,
        does=EventKind.REOPENED,
        mode=Mode.SUGGEST,
        aside=True,
    ),
    Rule(
        name="keep_open",
        intent=Intent.KEEP_OPEN,
        says="""The report should stay open: "please keep this open".""",
        yes=("please keep this open",),
        no=("The file is kept open by the daemon.",),
        cue=words("keep this|it|the_report|the_issue open", "don't|do_not close this|it|the"),
    ),
)
