"""Rules: requests to the reporter, and signs that somebody takes part.

A request asks the reporter to run something, to provide data, or to explain. A mere question is tried after the
dispute rules: in a mail that disputes the report it is part of the dispute. Somebody takes part who promises to look,
reproduces, explains, guesses, or proposes an approach; little follows from that, and most of it is only shown.
"""

from bot.replies.rules.notation import CONDITIONAL, NEGATED, REPORTED, By, Intent, Mode, Rule, Unless, words
from tracker.domain.events import EventKind

# --- Requests ---

_WONDERS = Unless("wonders, and asks nobody", words("^ maybe|perhaps|presumably"))
_MEANS = Unless(
    "asks what someone means or wants",
    words(
        "do|did you mean",
        "you mean|want|think",
        "should|shall|can|do|did i|we",
        "am|are i|we",
        "what|which are our",
        "isn't|aren't|wouldn't|shouldn't|doesn't|right $",
        "right $",
    ),
)
_TAKEN_BACK = Unless("withdraws the request", words("no need", "never mind"))

REQUESTS = (
    Rule(
        name="asks_rerun",
        intent=Intent.ASKS_TEST,
        says="""The reporter is asked to run something: "can you rerun this test", "any chance you could try that".""",
        yes=(
            "Could you please run the test again with this commit reverted?",
            "can you rerun this test",
            "Kim - mind testing this?",
            "Did you try this as well?",
            "If you like, you could try the patch set at [1].",
            "could you give this series a spin?",
        ),
        no=(
            "We ran it again with this commit reverted.",
            "You can test this with fio, as the documentation says.",
        ),
        cue=words(
            "<can you> … <run>",
            "please … test|retest|re-test|rerun|re-run|try|verify|repeat|bisect|run",
            "<can you>|please … give|giving …… try|spin|go|whirl",
            "worth a? retest|re-test|rerun|re-run|retry|try",
            "let me|us know if|whether|how it|this|that|the … <help>|makes|changes",
            "is there a? way|chance to|that|you … <run>|put",
            "does|would|will this|that|it|the_patch|the_below|the_following patch? help|fix|improve|restore|recover"
            "|change|make_any_difference|make_a_difference",
            "did|have you also? try|tried|test|tested",
            "you could|may|might also? try|test the|this|that|with",
            "do|does|did you|it|this|that … still see|happen|reproduce|occur|show|there",
        ),
        unless=(_TAKEN_BACK, REPORTED),
        to_reporter=True,
        does=EventKind.ASKED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="asks_data",
        intent=Intent.ASKS_INFO,
        says="""Data or an explanation is requested explicitly: "can you share the config".""",
        yes=("Please share the config.", "can you share the config"),
        no=("The config is attached.",),
        cue=words("<can you>|please … <give>", "i have some|a_few|several? question*"),
        unless=(_TAKEN_BACK, REPORTED),
        to_reporter=True,
        does=EventKind.ASKED,
        mode=Mode.AUTO,
    ),
)

# Tried after the dispute rules: a question in a mail that disputes the report is part of the dispute.
QUESTIONS = (
    Rule(
        name="asks_info",
        intent=Intent.ASKS_INFO,
        says="""A question about the test, machine, metric or configuration: "what exactly is app_overhead?\"""",
        yes=("Which file system was that run on?",),
        no=(
            "Maybe the samples are just noise?",
            "we rebuilt and the regression is still reproducible.",
            "we tested the patch, and it did not show any regression.",
        ),
        cue=words(
            "what|which|how|where|when|is|are|was|were|does|do|did|has|have|any|can|could …… <topic>",
            "what|which … is|does|are|do|it|this|that",
        ),
        unless=(_MEANS, _WONDERS, REPORTED),
        question=True,
        to_reporter=True,
        does=EventKind.ASKED,
        mode=Mode.AUTO,
    ),
    Rule(
        name="reproducer_broken",
        intent=Intent.REPRODUCER_BROKEN,
        says="""The published reproducer does not work: "following the instructions, it fails to install".""",
        yes=(
            "The reproducer fails on Debian.",
            "My first attempt to reproduce it on QEMU failed, I see 101% of the old performance.",
        ),
        no=("The reproducer works on Debian.",),
        cue=words(
            "reproducer|reproduce|repro|repro-script|instructions|lkp|lkp-tests|job|script …… fail|fails|failed|"
            "broken|unable|missing",
            "reproducer|repro|repro-script|instructions|lkp|lkp-tests|script … doesn't|does_not|didn't|did_not|"
            "cannot|can't work|run|install|build",
            "<i cannot> … run|install|build|set_up|use … reproducer|repro|lkp|lkp-tests|job|benchmark|script",
        ),
        does=EventKind.ASKED,
        mode=Mode.SUGGEST,
    ),
    Rule(
        name="asks_status",
        intent=Intent.ASKS_STATUS,
        says="""Someone asks for the status: "any update on this?\"""",
        yes=("any update on this?", "Any news on the rerun with v3?"),
        no=("The status file is world readable.",),
        cue=words(
            "any update*|news|progress|plans",
            "what's|what_is the status|plan|state",
            "has|was|is this|that|it|the_regression|the_issue … fixed|resolved|addressed|solved",
        ),
        question=True,
    ),
    Rule(
        name="retracts_request",
        intent=Intent.RETRACTS_REQUEST,
        says="""An earlier request is withdrawn: "no need to test this", "never mind, I found it".""",
        yes=(
            "no need to test this",
            "Never mind, no need to run this anymore, I managed to get hold of a machine.",
            "Forget it, the dmesg was in the tarball.",
            "There's no need to send the trace, I can reproduce it.",
        ),
        no=(
            "Please run it once more.",
            "There is no need to send a patch for the comment.",
            "Never mind the typo in the subject.",
            "Forget about that commit, it is the other one.",
        ),
        cue=words(
            "no need to test|rerun|re-run|try|retest|bother",
            "no need to send|share|provide|attach it|them",
            "no need to send|share|provide|attach|collect … config|trace|log|dmesg|profile|data|output|script",
            "disregard|ignore my|this|that|the … request|mail|question",
            "/never ?mind(?=[,.!;:]|\\Z| (?:no|i|we|it)\\b)/",
            "^ /(?:(?:ah|oh|ok|please),? )*forget (?:about )?(?:it|that)(?=[,.!;:]|\\Z| (?:i|we)\\b)/",
        ),
        unless=(CONDITIONAL,),
        question=False,
        does=EventKind.ANSWERED,
        mode=Mode.SUGGEST,
    ),
)


# --- Taking part ---

PROMISES = (
    Rule(
        name="will_look",
        intent=Intent.ACK_WILL_LOOK,
        says="""The writer promises to look, to reproduce or to test: "I'll take a look tomorrow", "let me try". The
        next step is then theirs, whatever the reporter was asked for.""",
        yes=("I'll take a look.", "Digging into this."),
        no=("I'd rather have the author answer first, but if he doesn't till Tuesday I'll have a look.",),
        cue=words(
            "<i will> … <look>",
            "<i want> … <look>",
            "let me … <look>",
            "<i am> … <looking>",
            "^ ok|okay|sure|thanks|hi? will|looking|checking look|check|into|investigate|take_a_look|have_a_look|"
            "test|try",
            "^ /(?:looking|checking|digging|investigating)(?: (?:into|at))?(?: (?:it|this|that))?"
            "(?: now)?(?=[.!]|\\Z)/",
        ),
        unless=(NEGATED, REPORTED),
        question=False,
        does=EventKind.RESPONDED,
        mode=Mode.AUTO,
        alone=True,
    ),
)

# Intents that are only shown.
SHOWN = (
    Rule(
        name="confirms_bug",
        intent=Intent.CONFIRMS_BUG,
        says="""The writer admits a mistake: "that's a bug", "my fault", "I broke it".""",
        yes=("that's a bug", "my fault"),
        no=("That is not a bug.",),
        cue=words(
            "that's|this_is|it's|it_is|indeed|there's … a|the|my … bug|mistake|oversight|error|fault|typo|thinko",
            "my|our bad|fault|mistake|oversight",
            "<i> accidentally|mistakenly|inadvertently|messed|screwed|broke|missed|forgot|overlooked",
            "oops|ouch|whoops",
            "<patch> dropped|lost|removed|broke|forgot|missed … flag|check|lock|call|case|condition|optimization",
        ),
        unless=(REPORTED,),
        question=False,
    ),
    Rule(
        name="reproduced",
        intent=Intent.REPRODUCED,
        says="""Someone else sees it too: "I can reproduce it".""",
        yes=(
            "I can reproduce it",
            "I could reproduce it here and with the diff below the score is back to where it was before.",
        ),
        no=("Let me try and see if I could reproduce this on one of our Ampere systems, I'll report back.",),
        cue=words(
            "<i> can|could|was_able_to|were_able_to|am_able_to|managed_to|did|also … reproduce|repro|see|observe "
            "it|this|that|the|a",
            "<i have> … reproduced it|this|that|the",
        ),
        unless=(NEGATED, CONDITIONAL),
        question=False,
    ),
    Rule(
        name="confirms_regression",
        intent=Intent.HUMAN_CONFIRMS_REGRESSION,
        says="""A person says that it is real: "this is a real regression".""",
        yes=("this is a real regression",),
        no=("We see no regression there.",),
        cue=words("is|looks_like|seems|be … a|an real|genuine|true|valid|actual … <regression>"),
        unless=(NEGATED, CONDITIONAL),
        question=False,
    ),
    Rule(
        name="root_cause",
        intent=Intent.ROOT_CAUSE,
        says="""Why the number changed: "the slowdown is because …", "the problem is that".""",
        yes=(
            "the problem is that",
            "Therefore I consider that the degradation comes from the cooling and not from software.",
        ),
        no=("I don't know the cause.",),
        cue=words(
            "is|was|are|were … due_to|because|caused_by|causing|the_result_of|a_result_of",
            "the … problem|cause|reason|culprit is|was|comes|with",
            "that|this|which explains|causes|caused|means|leads",
            "<regression> … comes|stems from",
            "has a bug",
        ),
        unless=(REPORTED,),
        question=False,
    ),
    Rule(
        name="hypothesis",
        intent=Intent.HYPOTHESIS,
        says="""A guess at the cause: "I suspect", "probably".""",
        yes=("I don't see how this commit could cause that.", "I suspect"),
        no=(
            "Do you have an ARM64 machine in the pool where the same job could be run?",
            "How would adding a MODULE_DESCRIPTION() possibly make futex hashing slower?",
        ),
        cue=words(
            "i suspect|guess|wonder|bet|assume|imagine|believe",
            "may|might|could be|have|explain|cause|come|also",
            "probably|possibly|perhaps|presumably|my_guess|theory|guess_would|it_seems|seems_like",
        ),
        unless=(REPORTED,),
        question=False,
    ),
    Rule(
        name="proposes_approach",
        intent=Intent.PROPOSES_APPROACH,
        says="""How it could be improved, without code: "we could cache the pointer".""",
        yes=("we could cache the pointer", "Maybe it's just that the per-cpu caches are smaller now."),
        no=("We took the lock earlier.",),
        cue=words(
            "we|you|one|i could|can|should|might … avoid|cache|batch|skip|use|improve|optimize|reduce|move|split|"
            "add|instead|pad|align|limit",
            "what|how about",
            "long|longer term",
            "one|another|better|alternative option|way|idea|approach|solution",
            "maybe we|it|just",
        ),
        unless=(REPORTED,),
    ),
    Rule(
        name="process_feedback",
        intent=Intent.PROCESS_FEEDBACK,
        says="""About the report itself, its form or its recipients: "the table is confusing".""",
        yes=("the table is confusing", "Next time please CC the netfilter list, too."),
        no=("The process takes the lock.",),
        cue=words(
            "report*|mail|email|table|subject|bot|robot …… should|confusing|unclear|misleading|hard_to_read|format",
            "it's|is confusing|unclear|misleading",
            "please cc|add|include|stop … me|list|report*|in_future|next_time",
        ),
    ),
    Rule(
        name="thanks",
        intent=Intent.THANKS,
        says="Thanks.",
        yes=("Applied, thanks!", "Thanks a lot for the quick turnaround, much appreciated!"),
        no=("It is faster with the patch.",),
        cue=words("thanks|thank_you|thx|appreciate|appreciated"),
        by=By.ANYONE,
    ),
)
