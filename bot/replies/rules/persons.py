"""Rules for the thread of a person's report: what its reporter and other users say, and what developers ask of them.

A reporter is no lab. They have one machine, answer in their own words, try a patch or a newer kernel, fix it
themselves, or find that it was their configuration. What they measured counts for them alone, so a confirmation says
for whom it works. That reverting the culprit helps confirms the culprit, and no fix. Developers ask a person for a
bisection or for a newer kernel, which they never ask of a lab.
"""

from __future__ import annotations

from bot.replies.rules.notation import CONDITIONAL, HEDGED, REPORTED, By, Intent, Mode, Rule, Unless, words
from tracker.domain.events import EventKind

_NOT = Unless("has a negation", words("<not>|no"))
_REVERTED = Unless("speaks of a revert", words("revert*", "without the|this commit|patch"))
_PARTLY = Unless(
    "has a caveat",
    words("<not>|no", "part|partly|partially|somewhat|mostly|almost|nearly|half", "but|however|only|except"),
    near=True,
)
_TO_COME = Unless(
    "is still to come", words("if|once|when|whether|should|would|could|might|will|expect*|hope*"), near=True
)

USERS = (
    Rule(
        name="user_withdraws",
        intent=Intent.BOT_RETRACTS,
        says="""The reporter takes the report back: "sorry for the noise, it was my configuration".""",
        yes=(
            "Sorry for the noise, it was a wrong setting in my BIOS.",
            "It turned out to be a faulty disk, so it's not a kernel regression.",
            "I had a debug kernel, there is no problem with 5.4 here.",
        ),
        no=("It may be a kernel config that I changed.", "Is it not a kernel bug?", "Sorry for the late reply."),
        cue=words(
            "sorry|apologies|apologize for the noise|false_alarm|wrong_alarm",
            "isn't|not a|an? kernel|real|actual regression|bug|issue|problem",
            "false alarm",
            "ignore|disregard this|my|the report|regression|mail|thread",
            "withdraw|retract this|my|the report",
            "there's|there_is|there_was no problem|issue|regression|bug …… here|after_all",
            "forget i_asked|about_it|about_this|my_report|my_mail|the_report",
            "turned|turns out to_be …… config|configuration|hardware|firmware|bios|disk|cable|mistake|error|userspace",
            "was|is my own? fault|mistake|error",
        ),
        unless=(CONDITIONAL, HEDGED, REPORTED),
        by=By.USER,
        question=False,
        does=EventKind.INVALID,
        mode=Mode.AUTO,
    ),
    Rule(
        name="user_sees_no_help",
        intent=Intent.BOT_FIX_INEFFECTIVE,
        says="""A candidate, or a newer kernel that has it, does not help: "still slow with your patch".""",
        yes=(
            "I applied v2, and the regression is still present.",
            "Unfortunately the patch doesn't help.",
            "I booted it on all nodes, but the numbers are unchanged.",
            "I am still seeing that regression with kernels that include the patch.",
            "All tests got slower after applying it.",
        ),
        no=(
            "If it is still slow, I will bisect.",
            "It is still slow.",
            "Do you still see it with the patch?",
            "No, I use the defaults.",
        ),
        cue=words(
            "<regression>|it|this is still there|present|visible|reproducible",
            "still see|seeing|have|having|get|getting …… <regression>|it|that …… with|including|include",
            "still slow|slower|bad|regressed …… with|on|after",
            "still triggers|happens|occurs|fails|reproduces|shows …… with|after …… <patch>",
            "<patch>|it|this|that … doesn't|does_not|didn't|did_not|don't|couldn't <help>|make_any_difference"
            "|change_much",
            "no|any change|improvement|difference …… with|after … <patch>",
            "outcome|result*|number*|performance|picture is|are|remains|stays unchanged|no_different",
            r"^ /(?:unfortunately|sadly|sorry|alas),? (?:not|no)\b/",
            "no luck|change|difference|improvement|effect",
            "^ nope|no still|the_same",
            "the? same as without|before",
            "<not> see any change|improvement|difference … in|with",
            "benchmark*|test*|result*|performance|number* … regressed|dropped|slower|worse|degraded … after",
            "same result*|number*|performance … with|as … <patch>|before",
        ),
        unless=(_TO_COME, REPORTED, _REVERTED),
        by=By.USER,
        question=False,
        does=EventKind.FIX_FAILED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="user_confirms",
        intent=Intent.HUMAN_CONFIRMS_FIX,
        says="""A candidate helps the writer, without a negation or a caveat: "yes, the patch fixes my test case".""",
        yes=(
            "Yes, the patch fixes my test case.",
            "I have applied the series here and confirmed that it works.",
            "The patch seems to fix the issue.",
            "Great, that does the trick.",
            "With v2 the throughput is back to normal.",
        ),
        no=(
            "Reverting that commit fixes it.",
            "If it works, I will let you know.",
            "The patch helps only partly.",
            "It doesn't fix the problem for me.",
        ),
        cue=words(
            "<patch>|it|this|that|which seems|appears|does? to? <fixes> the|this|it|my|that|our",
            "<patch>|it|this works|helps|helped for_me|for_us|here|fine|well|great",
            "confirm|confirmed|verified …… works|fixes|fixed|solves|resolves|helps|gone",
            "yes|indeed it|that|this? works|helps|fixes",
            "<patch>|it|this|that sorts|sorted|settles|settled it|that|this|things",
            "<patch>|it|this|that did|does the_trick",
            "<regression>|it is|was|has now? <gone> …… with|after",
            "it's|it_is|problem|issue fixed|solved|gone … here|for_me|for_us|now|with",
            "for_me|for_us|here it's|it_is|this_is|the_problem_is|the_issue_is fixed|solved|gone|fine",
            "with …… <patch> …… <gone>|fast_again|back_to",
            "<performance> … is|are|was back to|at normal|before|the_old",
        ),
        unless=(_PARTLY, _TO_COME, REPORTED, _REVERTED),
        by=By.USER,
        question=False,
        does=EventKind.FIX_CONFIRMED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="user_confirms_partly",
        intent=Intent.HUMAN_CONFIRMS_FIX,
        says="The same with a caveat, or beside a revert.",
        yes=("The patch helps, but only for reads.", "Reverting it or applying the patch fixes it here."),
        no=("I will test the patch.",),
        cue=words("<patch> …… <fixes>|helps|helped|works", "apply|applying|applied … <patch> …… <fixes>|helps"),
        unless=(CONDITIONAL, REPORTED, Unless("denies it", words("<not>"))),
        by=By.USER,
        question=False,
        does=EventKind.FIX_CONFIRMED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="user_mends_it",
        intent=Intent.WORKING_ON_FIX,
        says="""The reporter makes the fix: "I will try to fix this and send the patch".""",
        yes=(
            "I will try to fix this and send the patch.",
            "I'd like to have a go at it myself.",
            "I'll prepare these backports and send them to the list.",
        ),
        no=("I will try the patch.", "If you like, I can send a patch."),
        cue=words(
            "<i will> … try_to? fix|mend|address|solve it|this|that|the",
            "<i will> … prepare|send|post|submit|write|make …… <patch>|backport*|them|one",
            "<i am> … working_on|preparing|writing … fix|patch|backport*",
            "i'd_like|i_would_like|i_want …… have_a_go|take_a_stab at",
        ),
        unless=(
            REPORTED,
            Unless("depends on others", words("if you like|want|wish")),
            Unless("is what they got", words("your|you sent|posted|prepared")),
        ),
        by=By.USER,
        question=False,
        does=EventKind.WORKING,
        mode=Mode.AUTO,
    ),
    Rule(
        name="user_sees_it_too",
        intent=Intent.REPRODUCED,
        says="""Another user has it, too: "I am also seeing this on Debian".""",
        yes=(
            "I am also seeing a slowdown on Debian.",
            "Same here, 40% slower since the upgrade.",
            "My bisect also ends at it.",
        ),
        no=("I also think that the lock is the problem.",),
        cue=words(
            "<i am> also|too seeing|hitting|experiencing|affected|having",
            "<i> also|too see|hit|experience|have|noticed|observe … it|this|the|a|same|similar",
            r"^ /\+1\b/",
            "^ same here|issue_here|problem_here|for_me",
            "me too",
            "<i>|<i have> just? see|have|hit|met|encountered|noticed|observed the same|similar",
            "my bisect*",
            "<i have> …… tested|applied|tried this|that|the|your? <patch>|it|this",
        ),
        unless=(CONDITIONAL, REPORTED),
        by=By.USER,
        question=False,
    ),
    Rule(
        name="user_will_test",
        intent=Intent.BOT_WILL_TEST,
        says="""A test, or an answer, is promised: "I will try a newer kernel and report back".""",
        yes=("I will try a newer kernel and report back.", "Let me retry with the default config."),
        no=("I tried a newer kernel.",),
        cue=words(
            "<i will> … do that|it|so|this|make_the_tests|make_tests",
            "<i will>|let_me …… <run>|retry|upgrade|update|share|post|provide|report|let_you_know|get_back|come_back"
            "|answer|figure",
        ),
        by=By.USER,
        question=False,
    ),
    Rule(
        name="user_asks_status",
        intent=Intent.ASKS_STATUS,
        says="""The reporter asks whether anybody looks at it: "gentle ping", "any thoughts on this?\"""",
        yes=("Gentle ping.", "Could you please take a look at this?", "Any thoughts on this data?"),
        no=("I took a look at the lock.",),
        cue=words(
            "^ gentle|friendly? ping|reminder|bump",
            "any update*|news|thought*|progress|comment*|idea*|chance",
            "take|have a look",
            "someone|anyone|anybody look|looked|looking",
        ),
        by=By.USER,
    ),
    Rule(
        name="user_is_about_mail",
        intent=Intent.PROCESS_FEEDBACK,
        says="""About the mail, not about the regression: "resending as plain text", "adding Jan to Cc".""",
        yes=("I replied only to you, so here it is for the list.", "Adding Jan to Cc.", "Resending as plain text."),
        no=("The test sends mail to itself.", "I copied the file to the array."),
        cue=words(
            "replied|reply|replying only|to_all|privately|off-list",
            "ccing|cc'ing|re-sending|resending|resent|top-post*|plain_text",
            "add|adding|added …… to cc|the_cc|the_list",
            "mail|message|thread …… formatted|html|bounced|lost",
        ),
        by=By.USER,
        question=False,
    ),
)

# What developers say in such a thread, beside what they say in any.
DEVELOPERS = (
    Rule(
        name="helper_applied",
        intent=Intent.FIX_ELSEWHERE,
        says="""The fix is in a maintainer's tree, or on its way to the mainline: "queued, thanks", "it's now applied to
        block-6.6".""",
        yes=(
            "Queued, thanks.",
            "I added the tags, and it's now applied to block-6.6.",
            "The patch has been added to the -mm mm-hotfixes-unstable branch.",
            "Added to for-next with the reviewed-by, thanks.",
            "Thanks everybody, picked that up for net.",
            "Now in the 6.1 queue, thanks.",
            "That one's sitting in my block-6.6 branch now.",
            "The pull request with this fix was sent to Linus yesterday.",
        ),
        no=(
            "I'll queue it once it is tested.",
            "Has it been applied?",
            "This has been added to the list of tracked regressions.",
            "The regression is in the block-6.6 branch, too, not in mine.",
            "The request is queued to the device.",
            "I applied your patch to 6.1 and ran it.",
            "I'll send it to Linus once it is tested.",
        ),
        cue=words(
            r"^ /(?:applied|queued|merged|picked up)(?=[,.! ]*(?:thanks?|thx|thank you|up\b|for\b|to\b|in\b|\Z))/",
            r"^ /(?:applied|added|pushed|pulled|taken|queued|merged)(?: it| this| them)? (?:to|into|in|for)"
            r" (?:the |my |our )?[\w\/.-]*(?:[-\/.]\w|tree|branch|queue|next)/",
            r"/(?:^now|sits|sitting|is|are|it's) (?:now )?in (?:my|our|the) [\w\/.-]+ (?:branch|tree|queue)/",
            r"/(?:is|are|it's|was|been|being|now) (?:now )?(?:applied|queued(?: up)?|merged|pushed|taken) (?:to"
            r"|in|into|for)"
            r" (?:the |my |our )?[\w\/.-]*(?:[-\/.]\w|tree|branch|queue|next|mainline|upstream|linus)/",
            "has|have been added to the … tree|branch|queue",
            "picked|took|pulled|queued it|this|that|them|these|both up|in|for",
            "pull|pull_request|fix|patch|it|this …… sent|gone|went|headed … to|off_to linus|mainline|upstream",
        ),
        unless=(
            CONDITIONAL,
            REPORTED,
            Unless("is not so, or not yet", words("<not>", "once|when")),
            Unless("is to come", words("<i will>", "will"), near=True),
        ),
        by=By.HELPER,
        question=False,
        does=EventKind.FIX_QUEUED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="helper_posts",
        intent=Intent.FIX_ELSEWHERE,
        says="""A fix is posted, or shown below: "patch is here", "I've just sent a patchset".""",
        yes=(
            "Patch is here: https://lore.kernel.org/r/a@b.example",
            "I've just sent a patchset with 2 patches.",
            "New attempt below, it replaces the earlier one.",
            "I posted a fix for this to the list.",
        ),
        no=(
            "I haven't posted a fix yet.",
            "The patch is here to stay.",
            "I will post a patch tomorrow.",
            "Did you send a patch?",
            "You sent a patch for this in June.",
        ),
        cue=words(
            r"/(?:patch(?:es|set)?|fix|series)(?: is|'s)? (?:here|below|attached|at)(?=[:.,]|\Z| https?:)/",
            r"/(?:it|what i(?:'ve| have)(?: got)?)(?: is|'s) here: ?https?:/",
            "new attempt|try|version|patch below|attached|here",
            r"/i(?:'ve| have)? (?:just |now )?(?:posted|sent|submitted) https?:/",
            "<i have>|i|we just|already|now? posted|sent|sent_out|submitted … <patch>|patchset",
            "see|try the? <patch> below|attached|at",
        ),
        unless=(
            CONDITIONAL,
            REPORTED,
            Unless("has a negation, or is to come", words("<not>", "<i will>", "will|once")),
        ),
        by=By.HELPER,
        question=False,
        does=EventKind.FIX_PROPOSED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="asks_bisect",
        intent=Intent.ASKS_TEST,
        says="""The reporter is asked to bisect, or to try another kernel: "a bisect would help".""",
        yes=(
            "A bisect would help a lot here.",
            "Even more reason to bisect it.",
            "Please try a current mainline kernel first.",
            "The first thing to do is move to a recent kernel.",
        ),
        no=("I bisected it to this commit.", "The bisect ended at a merge.", "We can't bisect this."),
        cue=words(
            "good|great|best idea|thing …… bisect*",
            "bisect|bisection would|might|could|should be? help*|useful|great|good|interesting|needed",
            "<can you>|please|to|reason_to|try_to|worth|need_to|have_to bisect",
            "first|next thing …… is …… move|upgrade|update|try|test",
            "<can you>|please|need_to|should …… try|test|move|upgrade|update|reproduce …… kernel|mainline|upstream|"
            "linux-next|/v?\\d\\.\\d+/",
            "you check|test|try whether|if|how",
        ),
        unless=(
            REPORTED,
            Unless("was done, or can't be", words("bisected|bisects|cannot|can't|couldn't|no need", "<i> tried|did")),
            Unless("is the writer's own", words("<i>|me|my"), near=True),
        ),
        by=By.HELPER,
        to_reporter=True,
        does=EventKind.ASKED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="asks_for_data",
        intent=Intent.ASKS_INFO,
        says="""Something is asked of the reporter: "could you please share the output of mdadm?\"""",
        yes=(
            "Could you please share",
            "So can you provide the full backports?",
            "Would you mind sharing both configs?",
            "I'd be curious what segment count you get.",
            "Please pass on the patch that you applied.",
        ),
        no=("I can share the numbers.", "Do you agree?", "Does that make sense?"),
        cue=words(
            "<can you>|please …… share|send|provide|post|attach|show|paste|tell|collect|get|pass|describe"
            "|explain|run|boot|capture|repeat|sharing|sending|posting|providing|attaching|trying|running",
            "i'd_be|i_would_be|i'm|i_am|would_be curious|interested|interesting what|which|how|whether|if|to_see"
            "|to_know",
        ),
        unless=(
            REPORTED,
            Unless(
                "asks for an opinion",
                words("you mean|think|agree|want|prefer", "mind if", "make|makes sense", "should|shall i|we"),
            ),
        ),
        by=By.HELPER,
        to_reporter=True,
        does=EventKind.ASKED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="asks_about_it",
        intent=Intent.ASKS_INFO,
        says="""A question about the machine, the test or what was tried: "do you have any LSMs enabled?\"""",
        yes=(
            "Do you have any LSMs enabled?",
            "How many CPUs does this have?",
            "Is RPS enabled on these boxes?",
            "Any news from that experiment?",
        ),
        no=("Do you agree?", "Does that make sense?", "I can only describe what our script does."),
        cue=words(
            "do|did|have|are|were you …… have|use|using|run|running|enable*|tried|looked|set|see|drop|seeing"
            "|touch|change*|update*|upgrade*|check*",
            "is|are|was|were …… enabled|disabled|loaded|active|mounted|attached|plugged",
            "is|are|was|were|does|do|did your",
            "is|are there any|anything|something",
            "any news|results|luck from|with|on",
            "what|which|how_many|how_much …… is|are|does|do|did|was|were|have",
        ),
        unless=(
            REPORTED,
            Unless(
                "asks for an opinion",
                words("you mean|think|agree|want|prefer|mind", "make|makes sense", "should|shall i|we"),
            ),
        ),
        by=By.HELPER,
        to_reporter=True,
        question=True,
        does=EventKind.ASKED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="helper_sees_no_regression",
        intent=Intent.DISPUTES_VALIDITY,
        says="""A developer holds that it is none: "I don't think that's a regression".""",
        yes=("I don't think that's a regression.", "That is not a bug, these numbers are random."),
        no=("It's not a big regression.", "I don't see the regression with v2.", "Is this not a regression?"),
        cue=words(
            "<not> think|believe …… is|was|be|that's|it's a|an regression|bug",
            "isn't|not a regression|bug",
            "<not> call|qualify|count …… regression|bug",
        ),
        unless=(
            CONDITIONAL,
            REPORTED,
            Unless("says that it is said so", words("<not> saying")),
            Unless("quotes", words('/^"/')),
        ),
        by=By.HELPER,
        question=False,
        does=EventKind.DISPUTED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="helper_promises",
        intent=Intent.WORKING_ON_FIX,
        says="""A developer has the fix, or will take it up: "I'll plan to queue them up".""",
        yes=(
            "I'll plan to queue them up after this round.",
            "There will be a patch from me.",
            "I think I have found the fix for it.",
        ),
        no=("I have found the cause.", "If nobody objects, I'll queue them up."),
        cue=words(
            "<i will> …… queue|backport|pick|take them|these|it|this|that up|in|to|for?",
            "<i have> …… found|got|made … the|a fix|solution|patch",
            "there_will be a? patch|fix|series from_me|from_us|soon|shortly",
            "let_me cook|write|prepare|whip|hack|put|come|send|post …… up|together|something|<patch>",
        ),
        unless=(CONDITIONAL, REPORTED),
        by=By.HELPER,
        question=False,
        does=EventKind.WORKING,
        mode=Mode.AUTO,
    ),
)
