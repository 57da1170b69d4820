"""Word lists that the phrases of the rules share. An entry between slashes is a regular expression."""

from __future__ import annotations

import re


def _listed(text: str) -> tuple[str, ...]:
    """Split at commas; a comma within an expression is not followed by a space."""
    return tuple(" ".join(word.split()) for word in re.split(r",\s+", text.strip()))


VOCABULARY: dict[str, tuple[str, ...]] = {
    "i": _listed(r"i, we"),
    "i have": _listed(r"i, we, i've, we've, i have, we have"),
    "i am": _listed(r"i'm, i am, we're, we are"),
    "i will": _listed(
        r"""
        i'll, we'll, /(?:i|we) will(?! not)/, i'm going to, i am going to, we're going to, we are going to,
        i'm gonna
        """
    ),
    "i want": _listed(
        r"""
        i plan to, we plan to, i want to, we want to, i need to, we need to, i have to, we have to,
        i'd like to, we'd like to, i try to, i'm trying to, we're trying to, i'm planning to,
        i am planning to, we're planning to, i hope to, i'll try to, i will try to, i'll need to,
        i will need to, i intend to
        """
    ),
    "i cannot": _listed(
        r"""
        i can't, i cannot, i can not, i could not, i couldn't, i am unable to, i'm unable to,
        i was unable to, been unable to, i failed to, i'm not able to, i was not able to, i wasn't able to,
        i didn't, i did not, i don't, i do not, i haven't, i have not, i've not, we can't, we cannot,
        we could not, we couldn't, we didn't, we did not, we don't, we haven't, not able to,
        was not able to, have not been able to, haven't been able to
        """
    ),
    "not": _listed(r"/\w+n't/, not, never, cannot, hardly, without, no longer"),
    "is": _listed(
        r"""
        is, are, was, were, 's, seems, seem, looks, look, sounds, would be, should be, must be, can be,
        appears to be
        """
    ),
    "is now": _listed(
        r"""
        is, are, was, were, has been, have been, got, gets, seems, looks, has, have, is now, is also,
        is entirely, is completely, is fully
        """
    ),
    # What may be dropped or reverted; not "that flag in the patch".
    "culprit": _listed(
        r"""
        this one, that one, /(?:it|this|that)(?=[.,;:!?)'\"]|\Z| (?:for|from|until|when|again|now|and|or|if|in|on)\b)/,
        /(?:the|this|that|these|those|my|your|our|both|his|her)(?: (?!in|of|from|to|on|by|with)[\w.\/-]+){0,3}?
        (?:patch(?:es|set)?|commits?|series|changes?)/
        """
    ),
    "patch": _listed(
        r"""
        patch, patches, patchset, fix, fixes, commit, commits, change, series, version, diff, debug, /v\d+/
        """
    ),
    "new patch": _listed(
        r"""
        patch, patches, fix, fixup, fixes, series, version, alternative, approach, solution, respin,
        re-spin, followup, follow-up, rework, update, improvement, something, /v\d+/
        """
    ),
    "named": _listed(
        r"""
        /[0-9a-f]{7,40}\b/, /"[^"]{8,200}"/, /https?:\S+/, /\[[^\]]{0,20}patch\b/, the commit, this commit,
        commit, the patch, this patch, that patch, the series, this series, that series,
        the following patch, the patches, these patches
        """
    ),
    "tree": _listed(
        r"""
        /[\w\/.-]*(?:tree|branch|queue|next|mainline|upstream|tip|master|fixes|stable|linus)(?:'s)?/,
        /v?\d\.\d+(?:-rc\d+)?/
        """
    ),
    "regression": _listed(
        r"""
        regression*, slowdown*, slow-down*, degradation*, drop, performance loss, performance hit,
        performance drop, performance impact, issue, problem
        """
    ),
    "performance": _listed(
        r"""
        performance, throughput, score, numbers, number, result, results, it, latency, bandwidth
        """
    ),
    "thing": _listed(
        r"""
        it, this, that, these, those, which, it's, that's,
        /(?:the|a|any|such|some|this|that)(?: \S+){0,4}? (?:regressions?|slow-?downs?|degradation|drops?|hit|cost)/,
        /(?:the|a|any|such|some|this|that)(?: \S+){0,4}? (?:changes?|results?|behaviou?r|numbers?|increase|decrease)/,
        /(?:the|a|any|such|some|this|that)(?: \S+){0,4}? (?:impact|overhead|difference|reports?)/
        """
    ),
    "drop": _listed(r"drop, revert, remove, back out, yank, kick out, pull"),
    "dropped": _listed(r"dropped, reverted, removed, backed out, yanked, kicked out, pulled"),
    "no longer seen": _listed(
        r"""
        can't, cannot, can not, could not, couldn't, don't, do not, didn't, did not, can be no longer, no longer,
        isn't, is not, not
        """
    ),
    "anymore": _listed(r"anymore, any more, any longer, now, again"),
    "gone": _listed(
        r"""
        gone, fixed, /resol\w{1,5}ed/, solved, disappear, disappears, disappeared, restored, recovered,
        eliminated, vanished, went away, goes away, back to normal, not there anymore, no longer there,
        no longer reproducible, no longer exists, back to the same level,
        at the same level, the same level, same as parent, same as the parent, back to parent, back to the parent
        """
    ),
    "fixes": _listed(
        r"""
        fix, fixes, fixed, /resol\w{1,5}(?:es|ed|e)/, solve, solves, solved, recover, recovers, recovered,
        restore, restores, restored, eliminate, eliminates, eliminated, cure, cures, cured, address,
        addresses, addressed
        """
    ),
    "help": _listed(
        r"""
        help, helps, helped, fix, fixes, fixed, resolve, resolves, solve, solves, recover, restore,
        improve, work, mitigate
        """
    ),
    "landed": _listed(
        r"""
        landed, applied, merged, queued, queued up, picked up, pushed, included, went, sitting, taken
        """
    ),
    "make": _listed(
        r"""
        send, post, submit, prepare, write, cook up, make, create, come up with, formalize, formalise,
        spin, work on, put together, have, do, get, push, produce, provide, send out, cook
        """
    ),
    "mend": _listed(
        r"""
        fix, respin, resend, rework, formalize, formalise, address, repair, resolve, optimize, improve
        """
    ),
    "look": _listed(
        r"""
        look, check, investigate, dig, try, test, run, reproduce, repro, get back, report back, analyze,
        analyse, study, profile, debug, see, examine, have a look, take a look, go take, go look, go check,
        go and look, give it, look into
        """
    ),
    "looking": _listed(
        r"""
        looking, checking, investigating, digging, trying, testing, debugging, running, analyzing, analysing
        """
    ),
    "can you": _listed(
        r"""
        can you, could you, would you, will you, may you, might you, can lkp, could lkp, can the bot,
        could the bot, is it possible, is it possible for you, any chance, any chance you,
        would it be possible, do you mind, would you mind, are you able, i'd appreciate if you,
        would be great if you, would be nice if you, would be good if you, would be helpful if you,
        may i ask you, can i ask you
        """
    ),
    "run": _listed(
        r"""
        test, testing, try, trying, run, running, rerun, re-run, rerunning, re-running, retest, re-test,
        retesting, check, checking, verify, verifying, bisect, repeat, apply, measure, compare, rebuild, throw
        """
    ),
    "give": _listed(
        r"""
        share, send, provide, post, attach, upload, paste, give, tell, explain, describe, elaborate, show,
        point, clarify, get, collect, capture
        """
    ),
    "topic": _listed(
        r"""
        test*, bench*, metric*, measur*, number*, result*, config*, kconfig, machine*, box, cpu*, hardware,
        hw, setup, system*, kernel*, profil*, perf, data, log*, dmesg, reproduc*, repro, job*, parameter*,
        option*, workload*, filesystem*, file system*, disk*, device*, storage, memory, numa, node*,
        thread*, bisect*, stddev, noise, variance, variation, run, runs, iteration*, script, baseline,
        governor, mitigation*, latency, throughput, regression, /\w+\.\w+_\w+/
        """
    ),
}
