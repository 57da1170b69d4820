"""Rules: a fix elsewhere, work on a fix, and replies to a reported improvement.

A fix elsewhere is posted, queued, or named by title or sha; what is said of one is a suggestion. An unconditional
promise of a fix acts by itself. A fix that is considered, tried, or offered under a condition is suggested, and tried
only after the requests and the disputes, which are clearer. An improvement is accepted or explained, or is seen as
the sign of a bug.
"""

from bot.replies.rules.notation import CONDITIONAL, NEGATED, REPORTED, Intent, Mode, Rule, Unless, words
from tracker.domain.events import EventKind

# --- Fixes elsewhere, and work on one ---

_NOT = Unless("has a negation", words("<not>"))
_OF_REPORTS = Unless(
    "is about how reports are written", words("to provide|give … … information|instructions|documentation")
)
_ELSE = Unless("leaves it to others", words("or_i will|can|could", "someone|somebody else"))

FIXES = (
    Rule(
        name="applied",
        intent=Intent.FIX_ELSEWHERE,
        says="""The writer has the fix in a tree, or sent it on to the mainline: "queued, thanks", "it's now applied to
        block-6.6", "I've picked up your patch".""",
        yes=(
            "Applied, thanks!",
            "I've applied Hao's patch to wq/for-6.9-fixes.",
            "I added the tags, and it's now applied to block-6.6.",
            "The patch has been added to the -mm mm-hotfixes-unstable branch.",
            "Added to for-next with the reviewed-by, thanks.",
            "Thanks everybody, picked that up for net.",
            "Now in the 6.1 queue, thanks.",
            "That one's sitting in my block-6.6 branch now.",
            "The pull request with this fix was sent to Linus yesterday.",
            "Fine, so I have just committed your second patch.",
            "It's in my tree as 5d1c0ffee123 now.",
            "It went out to Linus this morning.",
            "I've put this into my urgent branch.",
            "Thanks, taken.",
            "Applied with a shortened commit message.",
            "Applied directly to my tree.",
        ),
        no=(
            "I'll queue it once it is tested.",
            "Has it been applied?",
            "This has been added to the list of tracked regressions.",
            "The regression is in the block-6.6 branch, too, not in mine.",
            "The request is queued to the device.",
            "I applied your patch to 6.1 and ran it.",
            "I'll send it to Linus once it is tested.",
            "We queued this job twice.",
            "It is not in my tree yet.",
            "Picked this up by mistake, it's out of the tree again.",
            "Queued for the wrong tree, removed again.",
            "I've put it into my debug branch, it's slower there.",
            "I just added this to our queue of things to test.",
            "Applied directly on top of v6.12, it is still slow.",
        ),
        cue=words(
            r"^ /(?:applied|queued|merged|picked up)(?=[,.!]|\Z| (?:thanks?|thx|thank you|up|for|to|in)\b)/",
            r"^ /applied directly (?:to|into|in) (?:my|our|the) (?:[\w\/.-]+ )?(?:tree|branch|queue)\b/",
            r"^ /applied with (?:\w+ ){1,4}(?:changelog|commit message|subject|title)\b/",
            "^ ok|okay|thanks|both|all|series|now|great|i've|i_have applied|queued|picked_up|merged",
            "^ thanks,|thanks /taken(?=[.!,]|\\Z)/",
            "<i have>|i now|just|also? added|put|taken this|it|that|them|these|both to|into|in|for my|our"
            " fix|fixes|urgent|next|for-next|for-linus|stable tree|branch|queue",
            r"^ /(?:applied|added|pushed|pulled|taken|queued|merged)(?: it| this| them)? (?:to|into|in|for)"
            r" (?:the |my |our )?[\w\/.-]*(?:[-\/.]\w|tree|branch|queue|next)/",
            r"/(?:^now|sits|sitting|is|are|it's) (?:now )?in (?:the [\w\/.-]+|(?:my|our)(?: [\w\/.-]+)?)"
            r" (?:branch|tree|queue)/",
            r"/(?:is|are|it's|was|been|being|now) (?:now )?(?:applied|queued(?: up)?|merged|pushed|taken) (?:to"
            r"|in|into|for)"
            r" (?:the |my |our )?[\w\/.-]*(?:[-\/.]\w|tree|branch|queue|next|mainline|upstream|linus)/",
            "has|have been added to the … tree|branch|queue",
            "picked|took|pulled|queued it|this|that|them|these|both up|in|for",
            "<i have>|i|we just|now|already? picked_up|committed|queued_up <culprit>",
            r"it's|is|are …… /in (?:my|our) (?:tree|branch|queue)/",
            "pull|pull_request|fix|patch|it|this …… sent|gone|went|headed … to|off_to|out_to linus|mainline|upstream",
        ),
        unless=(
            CONDITIONAL,
            REPORTED,
            Unless("is not so, or not yet", words("<not>", "once|when")),
            Unless("is to come", words("<i will>", "will"), near=True),
            Unless(
                "takes it back", words("wrong|other branch|tree", "dropped|removed|backed_out", "by mistake|accident")
            ),
        ),
        question=False,
        does=EventKind.FIX_QUEUED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="fix_queued",
        intent=Intent.FIX_ELSEWHERE,
        says="""A fix is said to be in a tree: "a patch with a fix landed to the mm tree".""",
        yes=(
            "The fix was merged into the mm tree yesterday.",
            "a patch with a fix landed to the mm tree",
            "Fix is in Andrew's tree already",
        ),
        no=("could you run the same job with 0c9d11ea (already in linux-next) on top?",),
        cue=words(
            "<patch> …… <landed> now|up? to|in|into|for|on|by|upstream",
            "already|now includes|include|contains|has|have it|this|that|the_fix|the_patch|the_series",
            "already|now|been|is|was|it's fixed|merged|queued|applied? in|into the|my|our? <tree>",
            "part of … pull_request|pull|series",
            r"<patch>|follow-up|followup is|are already|now|also? in the|my|our|/\w+'s/? <tree>",
        ),
        unless=(NEGATED, REPORTED),
        question=False,
        does=EventKind.FIX_QUEUED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="claims_fixed_by",
        intent=Intent.CLAIMS_FIXED_BY,
        says="""A commit, a patch or a link is named as the fix: "should be fixed by the commit …".""",
        yes=(
            "This should be fixed by commit 3b1f0c9d2e44 in mainline.",
            "Thus the patch does cure it for us in both modes.",
            'Known issue, the fix is "mm: stop batching".',
        ),
        no=(
            'This should already be fixed by 8c7d0fe21ab3 ("mm/rmap: do not batch single pages") in mm-hotfixes.',
            "I don't think so, that commit is about KCSAN only.",
            'The fix is "obviously wrong" in my view.',
            "I doubt the fix is 3b1f0c9d2e44.",
        ),
        cue=words(
            "fixed|resolved|addressed|solved|cured|covered|mitigated|restored … by|in|with the|this? <named>",
            "should|will|would|might|may be fixed|resolved|addressed|solved|mitigated … by|in|with",
            "<named> …… should|will|would|might|may|does … fix|resolve|address|solve|help|cure|mitigate",
            "/[0-9a-f]{8,40}/ …… <fixes> it|this|that|the … <regression>?",
            "the|its fix is|was|would_be|should_be the? commit? /[0-9a-f]{8,40}\\b/|/https?:\\S+/",
            r'the|its fix is|was|would_be|should_be the? commit? /"[^":]{2,40}: [^"]{8,160}"/',
            "taken care of by|in|with",
            "<named> …… takes care of",
            "already addressed|fixed|solved|resolved upstream|mainline",
            "patch|commit|series titled|called|named …… <fixes>",
            "<named> …… looks_relevant|is_relevant|addresses|addressed|is_about",
            "same … as|that <named>",
        ),
        unless=(_NOT, REPORTED, Unless("doubts it", words("doubt|maybe|perhaps|whether", "not sure"), near=True)),
        question=False,
        does=EventKind.FIX_PROPOSED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="fix_posted",
        intent=Intent.FIX_ELSEWHERE,
        says="""A fix is said to be posted elsewhere: "I've sent a patch", "the patch in my reply".""",
        yes=("I've sent a patch for that already.", "I've sent a patch", "I just posted a new version."),
        no=("I haven't posted a fix.", "I already posted a comment on that patch."),
        cue=words(
            "<i have> just|already|also? posted|reposted|re-posted|sent|sent_out|submitted|mailed … <patch>",
            "the|this|that|my patch|fix|series in|from my|the|your? reply|previous|other|last",
            "fix|patch for_it|for_this? is|was|can_be|has_been posted|sent|found|at|here",
            "try|test|see … <patch> … /https?:\\S+/",
            "<i have> … pushed|put|uploaded …… fix|patch|branch|candidate",
            "he|she has already? sent|posted|submitted a|the … fix|patch|series",
            "<i> just|already|also sent|posted|submitted|mailed|sent_out a|the|another|my new|updated|next? "
            "version|patch|patches|series|fix|/v\\d+/",
            "which|that i already|just? posted|sent|mailed|submitted|reposted|re-posted",
            "there's|there_is … patch|fix|series … from|by|on|posted",
            "/v\\d+/|new_version|fix|patch|series is|are out|up|posted|on_the_list|on_lore",
        ),
        unless=(NEGATED,),
        question=False,
        does=EventKind.FIX_PROPOSED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="says_fixed",
        intent=Intent.HUMAN_CONFIRMS_FIX,
        says="""A developer measured that a fix restores the result: "with the patch the regression is gone".""",
        yes=("With that patch applied the regression is gone here.", "with the patch the regression is gone"),
        no=(
            "if the patch fixes the regression, please let us know.",
            "can you help check whether the above diff cures the regression?",
        ),
        cue=words(
            "<regression> …… <is now> … <gone>",
            "<patch>|it|this <fixes> it|this|that|the … <regression>",
            "<performance> … <is now> back|restored|recovered",
            "with … <patch>|/[0-9a-f]{8,40}/ …… back at|to",
        ),
        unless=(NEGATED, CONDITIONAL, REPORTED),
        question=False,
        does=EventKind.FIX_CONFIRMED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="still_slow",
        intent=Intent.REJECTS_PATCH,
        says="""Somebody tried a candidate, and it does not help: "still slow with the patch".""",
        yes=("It is still slower on my box with your patch.", "With v2 I still see the regression."),
        no=("It's still slow.", "If it is still slow with the patch, tell me.", "I still see it without the patch."),
        cue=words(
            "still slow|slower|bad|low|regressed|there|see|seeing …… with|after|on the|this|your|that|both? <patch>",
            "with the|this|your|that|both? <patch> …… still slow|slower|bad|low|regressed|there|see|seeing",
        ),
        unless=(CONDITIONAL, REPORTED),
        question=False,
        improvement=False,
        does=EventKind.FIX_FAILED,
        mode=Mode.SUGGEST,
        aside=True,
    ),
    Rule(
        name="withdraws_patch",
        intent=Intent.REJECTS_PATCH,
        says="""The writer takes a patch back: "self-NAK", "please ignore this patch".""",
        yes=(
            "Please disregard this patch, it leaks the page.",
            "Sorry, ignore this patch, it breaks hugetlb.",
            "Scratch that, the patch sleeps under a lock.",
            "Don't use the patch above.",
            "Self-NAK: it sleeps under a spinlock.",
        ),
        no=(
            "Feel free to ignore the patch that only adds the tracepoint.",
            "I don't use this patch on that box.",
            "Scratch that, I meant v6.12.",
            "Please don't merge the fix until I have tested it.",
        ),
        cue=words(
            "^ /(?:(?:sorry|please|and),? )*(?:ignore|disregard|scratch|forget)/ this|that|my|the <patch>",
            r"^ /scratch that\b.{0,60}\b(?:patch|fix|diff|version|series)\b/",
            "^ please? don't|do_not use|test|apply|take|merge this|that|my|the <patch>",
            "self-nak|self-nack",
        ),
        unless=(CONDITIONAL, Unless("is for later", words("yet|until|till|before|after|stable|unless"))),
        question=False,
        does=EventKind.FIX_WITHDRAWN,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="rejects_patch",
        intent=Intent.REJECTS_PATCH,
        says="""A patch is rejected: "not the right way to fix this", "NAK", "this does not apply to …".""",
        yes=("not the right way to fix this",),
        no=("The patch looks right to me.",),
        cue=words(
            "<not> … the right|correct|proper way|fix|approach|thing|solution",
            "wrong way|fix|approach|solution",
            "nak|nack|nacked",
            "<patch> … doesn't|does_not|won't|will_not|didn't <help>",
            "doesn't|does_not|don't apply",
            "<not> … it|this|that will|would … make_any_difference|work|help|fix",
            "i don't|do_not like this|the|that <patch>|approach|idea",
        ),
        unless=(Unless("speaks of a revert", words("reverting|reverted|revert")),),  # which doubts the culprit
        question=False,
        does=EventKind.FIX_WITHDRAWN,
        mode=Mode.SUGGEST,
        aside=True,
    ),
    Rule(
        name="working_on_fix",
        intent=Intent.WORKING_ON_FIX,
        says="""The writer is working on a fix or promises one, unconditionally: "I'll get this fixed up".""",
        yes=(
            "I'll get a fix out tomorrow.",
            "I will send a v2 shortly.",
            "I'm on it, give me a few days.",
            "Right now I'm trying to rewrite this patch.",
            "Thanks for the information, I'll fix it.",
            "I'm working on a fix and will add documentation.",
            "Right, I'll fix the order in v4.",
            "Let me post a v2 after lunch.",
            "I'll move the check back to the caller in the next version.",
            "I'll add the missing check in v3.",
        ),
        no=(
            "If it is real, I will send a patch.",
            "If nobody beats me to it, I'll send the patch on Thursday.",
            "We will improve this to give clearer instructions.",
            "We'll see a real regression in v7, too.",
            "Let me post numbers for this patch.",
            "I'll let Lee answer, this went in for v6.",
            "I'll not change this in the next version.",
        ),
        cue=words(
            "<i will> … <make> … <new patch>",
            "let_me send|send_over|send_out|post|prepare|cook_up you? a|the|another|my? new? <new patch>",
            "<i will> … <mend> it|this|that|these|up|things",
            "<i will> get it|this|that|these fixed|sorted|addressed|resolved",
            "<i will> …… send|post|submit it|this|that|them",
            "<i am> … working_on|preparing|writing|cooking_up|finalizing … it|this|<new patch>|fixing",
            "<i am> … rewriting|reworking|trying_to_rewrite|trying_to_rework the|this|that|my patch|commit|code|series",
            "<i am> on it|that|this|the_fix|the_case",
            "give me a? day|days|week|few|bit|weekend",
            "<i> already? have a|the|some … <new patch> ready|queued|for|in_the_works|in_progress|in_testing",
            "<i will> rewrite|redo|revisit|rework <culprit>",
            "/v\\d+/|new_version|next_version will have|fix|bring|restore|address",
            "<i will> make|add|move|change|fix|address|handle|include|correct …… in|for the? "
            "/v\\d+(?!\\.\\d)/|next_version|next_revision|next_spin",
            "new|next version|series|patch|/v\\d+/ … soon|tomorrow|shortly|next_week|this_week|in_a_week|in_a_day",
            "write|prepare … proper changelog|commit_message|patch|description",
            "formal|formally patch|posting|post|send|submit",
            "<i have> … half working|done|finished|baked",
            "^ ok|okay|sure|yes|right|oh|thanks? will fix|respin|send_a|post_a|prepare_a",
            "^ ok|okay|sure|yes|right|oh? will <make> … <new patch>",
            r"/(?<=[,;:.] )will (?:fix|respin|rework|resend)(?=[.!,]|\Z| (?:it|this|that|up)\b)/",
            "fix|patch is? coming|on_its_way|on_the_way|in_the_works|underway",
        ),
        unless=(CONDITIONAL, REPORTED, _ELSE, _OF_REPORTS),
        question=False,
        does=EventKind.WORKING,
        mode=Mode.AUTO,
    ),
)

# Tried after the requests and the disputes, which are clearer.
CONSIDERED = (
    Rule(
        name="may_work_on_fix",
        intent=Intent.WORKING_ON_FIX,
        says="""A fix is considered, tried, or offered conditionally: "could you send a patch or I will do it", "I
        need to work out how".""",
        yes=("I'll get a fix out tomorrow.", "I will send a v2 shortly."),
        no=("I corrected the typo in the changelog.",),
        cue=words(
            "<i will> … <make> … <new patch>",
            "<i will> … <mend>",
            "or|otherwise i will|can|could … do|send|fix",
            "see what|whether|if i can … do|improve|fix|recover|shave",
            "will send|post that|it|this out?",
            "<i want> … <mend>",
            "<i want> … check|figure|find|work|think|look|sort|see|decide|understand|determine … how|what|which|"
            "where|way",
            "should_be|looks|seems … easy|simple|trivial|straightforward to fix",
            "let_me see|think|try … fix|improve|avoid|rework|solve|how",
            "<i> can|could|should <make> … patch|fix",
        ),
        unless=(NEGATED, REPORTED, _OF_REPORTS),
        question=False,
        does=EventKind.WORKING,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="needs_owner",
        intent=Intent.NEEDS_OWNER,
        says="""Someone else is needed: "someone who knows this code should look".""",
        yes=(
            "someone who knows this code should look",
            "Someone should fix it, the slow path is hit on each and every container start here.",
        ),
        no=("I own one of these machines.",),
        cue=words(
            "someone|somebody|anyone|anybody …… should|needs_to|has_to|could|can|to fix|look|step|take|work",
            "who|anyone … can|could|will|wants_to fix|look|take",
        ),
    ),
)


# --- Improvements ---

IMPROVEMENTS = (
    Rule(
        name="improvement_suspicious",
        intent=Intent.IMPROVEMENT_SUSPICIOUS,
        says="""A reported improvement is seen as a sign of a bug: "that means we don't flush any more".""",
        yes=(
            "Therefore I come to the conclusion that the bisect must have gone wrong at some point.",
            "Perhaps it's an improvement that got sorted into the wrong bin?",
        ),
        no=("Nice, that was the goal.",),
        cue=words(
            "suspicious|worried|worrying|worry|concern|concerns|concerned|alarming|too_good|unexpected|odd|"
            "strange|weird|curious|wrong|bug",
            "<not> … expected|intended|right|correct|supposed",
            "improvement suggests|means|implies|indicates we|it|that … <not>|skip*|miss*|lost",
        ),
        improvement=True,
        does=EventKind.RESPONDED,
        mode=Mode.SUGGEST,
        alone=True,
    ),
    Rule(
        name="improvement_ack",
        intent=Intent.IMPROVEMENT_ACK,
        says="""An improvement is accepted or explained: "this is entirely feasible", "nice".""",
        yes=("This is expected, we do more work now.",),
        no=("Is this expected?", "That is not expected at all."),
        cue=words(
            "feasible|expected|plausible|great|good|nice|cool|excellent|awesome|intended|goal|hoped|glad|happy|welcome",
            "makes sense",
            "because|due_to",
            "gladly|happily take",
        ),
        unless=(
            Unless("wonders or negates", words("unexpected|wonder", "<not> … expected|great|good|nice|intended|happy")),
        ),
        question=False,
        improvement=True,
        does=EventKind.RESPONDED,
        mode=Mode.AUTO,
        alone=True,
    ),
)
