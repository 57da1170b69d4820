"""References in commit messages, in all their forms; and that the prefilter misses none that the full parser finds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.git.inspection import inspect
from bot.git.repository import LogCommit
from bot.mail.settings import BotSettings
from bot.upstream.matching import (
    MAX_NAMED,
    Context,
    Expected,
    Related,
    Seen,
    Tracked,
    TrackedReport,
    find_references,
    match_all,
)
from tests.support.world import (
    DANA,
    DIFF,
    LEE,
    ROBOT,
    START,
    TITLE,
    Kernel,
    World,
    closes,
    message_id,
    state,
    status_text,
)
from tracker.domain.events import Part
from tracker.models import Decision, Event, Landing, Report, Suggestion
from tracker.services import report_actions

# --- References in commit messages, in all their forms; and that the prefilter misses none that the full parser finds
# ---

US = BotSettings(
    address="perfbot@bot.example.org", base_url="https://perf.example.org", robots=frozenset({"lkp@robots.example"})
)
SHA, FIX = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d", "f" * 20 + "0" * 20
ID = "202609.a+b/c-1@robots.example"
TAG = "7d3e91c0a45b28f6"


@pytest.mark.parametrize(
    "link",
    [
        "https://lore.kernel.org/r/x.1@dev.example",
        "https://lore.kernel.org/oe-lkp/x.1@dev.example/",
        "https://lore.kernel.org/all/x.1@dev.example/T/#u",
        "https://lore.kernel.org/lkml/x.1%40dev.example/raw",
        "http://lkml.kernel.org/r/x.1@dev.example",
        "https://patch.msgid.link/x.1@dev.example",
        "<https://lore.kernel.org/r/x.1@dev.example>",
        "https://lore.kernel.org/r/x.1@dev.example.",
        "lore.kernel.org/r/x.1@dev.example",
        "https://lore.kernel.org/r/\n x.1@dev.example",
        "\n https://lore.kernel.org/r/x.1@dev.example",
    ],
)
@pytest.mark.parametrize("key", ["Closes", "Link", "closes", "LINK"])
def test_a_mail_by_any_form_of_its_link(key: str, link: str) -> None:
    named = find_references(f"mm: a\n\nText.\n\n{key}: {link}\nSigned-off-by: {DANA}\n", US)
    assert [mail for mail, _ in named.mails] == ["x.1@dev.example"]
    tracked = Tracked(mails={"x.1@dev.example": 1})
    assert tracked.prefilter(())(b"0 a@b", f"mm: a\n\n{key}: {link}\n".encode())


@pytest.mark.parametrize(
    "line",
    [
        "Closes: https://evil.example/r/x.1@dev.example",
        "Closes: https://evil.example/?https://lore.kernel.org/r/x.1@dev.example",
        "Closes: https://lore.kernel.org.evil.example/r/x.1@dev.example",
        "Closes: https://bugzilla.kernel.org/show_bug.cgi?id=1",
        "    Closes: https://lore.kernel.org/r/x.1@dev.example",
        "> Closes: https://lore.kernel.org/r/x.1@dev.example",
        "See https://lore.kernel.org/r/x.1@dev.example",
    ],
)
def test_what_closes_nothing(line: str) -> None:
    assert find_references(f"mm: a\n\n{line}\n", US).mails == ()


@pytest.mark.parametrize(
    ("message", "reverts", "title"),
    [
        (f'Revert "mm: a"\n\nThis reverts commit {SHA}.', [SHA], "mm: a"),
        (f'Reapply "mm: a"\n\nThis reverts commit\n{SHA[:12]}, since it was right.', [SHA[:12]], 'Revert "mm: a"'),
        (f"mm: undo\n\nThis reverts the commit {SHA.upper()[:16]} (mm: a)", [SHA[:16]], ""),
        (f'Revert "Revert "mm: a""\n\nThis reverts commit {SHA}.', [SHA], 'Revert "mm: a"'),
        (
            'Revert "a very long title that somebody\n wrapped"\n\nIt is slow.',
            [],
            "a very long title that somebody wrapped",
        ),
        (f"mm: a\n\nIt converts commit {SHA}.", [], ""),
        (f"mm: a\n\nThis backs out commit {SHA}.", [SHA], ""),
        (f"mm: a\n\nThis undoes the commit {SHA[:12]}.", [SHA[:12]], ""),
        (f"mm: a\n\nUndo what commit {SHA} did.", [], ""),
        (f'mm: a\n\nThis reverts {SHA[:12]} ("mm: b").', [SHA[:12]], ""),
        (f'mm: a\n\nThis reverts the following commits:\n\n  {SHA[:12]} ("mm: b")\n', [SHA[:12]], ""),
        (f"mm: a\n\nThis reverts parts of commit {SHA}.", [], ""),
        (
            f'Reapply "mm: a"\n\nThe revert of commit {SHA} was wrong.\n\nThis reverts commit {FIX}.',
            [FIX],
            'Revert "mm: a"',
        ),
        (f'Revert "mm: x"\n\nThis reverts commit {FIX}.\n\nIt partly undoes commit {SHA}.', [FIX], "mm: x"),
    ],
)
def test_reverts(message: str, reverts: list[str], title: str) -> None:
    named = find_references(message, US)
    assert ([sha for sha, _ in named.reverts], named.reverted_title) == (reverts, title)


@pytest.mark.parametrize(
    ("message", "shas", "titles"),
    [
        (f'mm: a\n\nRevert commit {SHA[:12]} ("mm: b") since it is slow.', [SHA[:12]], ()),
        (f'mm: a\n\nThis is a revert of {SHA[:12]} ("mm: b").', [SHA[:12]], ()),
        (f'mm: a\n\nReverts: {SHA[:12]} ("mm: b")', [SHA[:12]], ()),
        (f'mm: a\n\nIt reverts commits deadbeef1234 ("x") and {SHA[:12]}.', ["deadbeef1234", SHA[:12]], ()),
        (f"mm: a\n\nThis reverts parts of commit {SHA}.", [SHA], ()),
        (f"mm: a\n\nReverting commit {SHA} helps, too.", [], ()),
        ('mm: Revert "mm: b"\n\nIt is slow.', [], ("mm: b", "mm: mm: b")),
        ('mm: Revert "b"\n\nIt is slow.', [], ("b", "mm: b")),
        ("Revert mm: b\n\nIt is slow.", [], ("mm: b",)),
    ],
)
def test_what_may_be_a_revert(message: str, shas: list[str], titles: tuple[str, ...]) -> None:
    named = find_references(message, US)
    assert ([sha for sha, _ in named.perhaps_reverts], named.perhaps_titles) == (shas, titles)
    tracked = Tracked()
    tracked.follow(TrackedReport(1, SHA, "mm: b", frozenset(), datetime(2026, 1, 1, tzinfo=UTC)))
    assert tracked.prefilter(())(b"0 a@b", message.encode()) or not (shas or titles)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (f"commit {SHA} upstream.", True),
        (f"Commit {SHA} upstream", True),
        (f"[ Upstream commit {SHA} ]", True),
        (f"(cherry picked from commit {SHA})", True),
        (f"This follows commit {SHA} upstream.", False),
        (f"commit {SHA}", False),
    ],
)
def test_where_a_commit_comes_from(line: str, found: bool) -> None:
    assert [sha for sha, _ in find_references(f"mm: a\n\n{line}\n\nText.\n", US).upstream] == ([SHA] if found else [])


def test_trailers_count_once_and_above_and_below_dashes() -> None:
    line = f'Fixes: {SHA[:12]} ("mm: a\n title")'
    named = find_references(f"mm: b\n\n---\n{line}\n{line}\n--\nfixes: {SHA[:12]}\n", US)
    assert [sha for sha, _ in named.fixes] == [SHA[:12]]
    many = "".join(f"Fixes: {number:012x}\n" for number in range(1000))
    assert len(find_references(f"mm: b\n\n{many}", US).fixes) == MAX_NAMED


def test_our_own_marks() -> None:
    message = f"mm: b\n\nReported-by: Perfwork <perfbot+{TAG}@bot.example.org>\nCloses: https://perf.example.org/report/{SHA[:12]}/\n"
    assert [page for page, _ in find_references(message, US).pages] == [SHA[:12], TAG]
    forged = message.replace("bot.example.org", "evil.example").replace("perf.example.org", "evil.example")
    assert find_references(forged, US).pages == ()


# --- the quick look ---

PIECES = st.sampled_from(
    [
        f"Closes: https://lore.kernel.org/oe-lkp/{ID.replace('/', '%2F')}/",
        f"Link: https://lore.kernel.org/r/{ID}",
        "Link: https://lore.kernel.org/r/\n  " + ID,
        f"Reported-by: Perfwork <PerfBot+{TAG}@bot.example.org>",
        f"Closes: https://perf.example.org/report/{TAG}",
        f'Fixes: {SHA[:7]} ("mm: the culprit")',
        f"FIXES:   commit {SHA[:12].upper()} (mm)",
        f"This reverts commit {FIX[:12]}.",
        f"This undoes the commit {SHA[:12]} for now.",
        f"Undo commit\n{SHA}",
        f"Back out the commits {FIX[:12]} and {SHA[:12]}.",
        f"It is a revert of\nthe commit {SHA[:12]}.",
        f"commit {SHA} upstream.",
        f"(cherry picked from commit {FIX})",
        f"[ Upstream commit {SHA} ]",
        "Reported-by: robot <lkp@robots.example>",
        "Signed-off-by: Dana Brook <dana@dev.example>",
        "Link: https://lore.kernel.org/r/nothing@else.example",
        "Fixes: 0123456789ab",
        "---",
        "\u00e9\u4e2d \u0130",
    ]
)
TITLES = st.sampled_from(
    [
        *("mm: the culprit", "mm:  the  culprit", "MM: The Culprit", "mm: the\n culprit", 'Revert "mm: the culprit"'),
        *(
            'mm: Revert "the culprit"',
            "Revert mm: the culprit",
            '[PATCH] Reapply "mm: the culprit"',
            'mm/vmscan: revert "mm: the\n culprit"',
        ),
        *(
            "mm: the fix",
            "[PATCH v2] mm: the fix",
            'Reapply "mm: the fix"',
            'Revert "Revert "mm: the fix""',
            "net: other",
        ),
    ]
)


def followed() -> Tracked:
    tracked = Tracked(mails={ID: 1}, pages={TAG: 1})
    authors = frozenset({"dana@dev.example"})
    tracked.follow(
        TrackedReport(1, SHA, "mm: the culprit", authors, START, authored=(1_700_000_000, "dana@dev.example"))
    )
    tracked.relate(FIX, Related(1, Part.FIX, title="mm: an old fix"))
    tracked.expect(Expected(1, "[PATCH] mm: the fix", None, "fix mm: the fix"))
    return tracked


@settings(max_examples=400)
@given(
    title=TITLES,
    pieces=st.lists(PIECES | st.text(max_size=30), max_size=6),
    author=st.sampled_from([(1_700_000_000, "Dana@dev.example"), (1_700_000_001, "dana@dev.example"), (0, "")]),
)
def test_the_prefilter_overlooks_nothing(title: str, pieces: list[str], author: tuple[int, str]) -> None:
    message = "\n".join([title, "", *pieces]).replace("\0", "") + "\n"
    seconds, email = author
    tracked = followed()
    passed = tracked.prefilter(("perfbot+", "perf.example.org/r"))(f"{seconds} {email}".encode(), message.encode())
    commit = LogCommit(
        sha="e" * 40,
        parents=(),
        at=START,
        authored_at=datetime.fromtimestamp(seconds, UTC),
        author_email=email.lower(),
        author_name="",
        title=" ".join(message.lstrip("\n").partition("\n\n")[0].split()),
    )
    context = Context(tracked, US.robots, {"e" * 40: "patch", SHA: "patch"})
    if match_all([Seen(commit, find_references(message, US))], context):
        assert passed


@given(st.text(max_size=2000))
def test_junk_names_nothing_and_raises_nothing(text: str) -> None:
    named = find_references(text, US)
    assert all(len(quote) <= 500 for pairs in (named.mails, named.fixes) for _, quote in pairs)


# --- commits that git would mend, on a real repository ---


def test_hostile_commits_harm_nobody(kernel: Kernel) -> None:
    """Broken encodings, empty and huge messages, dates of 1970 and 2106, odd people, a thousand trailers."""
    report = kernel.merged()
    closes = f"Closes: https://lore.kernel.org/r/{message_id(report)}".encode()
    evil = type(DANA)("x\x01\x02\x1b[31m", "a\x7fb c@d")
    write = kernel.git.write
    head = kernel.git.head("master")
    for message, more in [
        (b"", {}),
        (b"\n\n\n", {}),
        (b"mm: \xff\xfe broken\n\n\xc3\x28 text\n", {}),
        (b"mm: \xe4 latin\n\ntext \xdf\n", {"encoding": "iso-8859-1"}),
        (b"mm: unknown\n\ntext\n", {"encoding": "klingon"}),
        (b"mm: huge\n\n" + b"x" * (1 << 20) + b"\n" + b"y " * (1 << 19), {}),
        (b"mm: old\n\n", {"raw_dates": (0, 0)}),
        (b"mm: late\n\n", {"raw_dates": (4_294_967_295, 4_294_967_295)}),
        (b"mm: beyond\n\n", {"raw_dates": (99_999_999_999_999, 99_999_999_999_999)}),
        (b"mm: who\n\n", {"author": evil}),
        (b"mm: trailers\n\n" + b"Fixes: 1234567\n" * 1000, {}),
        (b"x" * 100_000, {}),
    ]:
        head = write(message, [head], **more)  # type: ignore[arg-type]
    fix = write(
        b"mm: \xff the fix\n\n" + b"z" * (1 << 20) + b"\n\n" + closes + b"\n", [head], raw_dates=(0, 4_294_967_295)
    )
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert state(report) == "fixed"
    assert Landing.objects.get(commit__sha=fix).tag == "v9.1-rc2"
    assert report.events.get(kind="fix_landed").occurred_at <= kernel.world.now


@pytest.mark.parametrize("root", [True, False])
def test_a_commit_without_a_date(kernel: Kernel, root: bool) -> None:
    report = kernel.merged()
    head = kernel.git.head("master")
    lines = [f"tree {kernel.git('rev-parse', 'master^{tree}')}", *([] if root else [f"parent {head}"])]
    lines += ["author D <d@x> 1788220800 +0000", "committer K <k@x>", "", "mm: charge once", "", closes(report), ""]
    content = "\n".join(lines).encode()
    broken = kernel.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=content)
    kernel.git.merge("Merge it", broken)
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert (state(report), Report.objects.get(pk=report.pk).fix_sha) == ("fixed", broken)


def test_a_message_may_hold_any_control_letter(kernel: Kernel) -> None:
    sha = kernel.git.write(b"mm: \x01 a\n\n\x02 text \x00 cut\n", [kernel.git.head("master")], {"a.c": b"int a;\n"})
    seen = inspect([kernel.git.path], [sha])[sha]
    assert (seen.title, seen.author_email, bool(seen.patch_id), seen.no_op) == ("mm: \x01 a", DANA.email, True, False)


def test_two_reports_that_begin_alike(kernel: Kernel) -> None:
    """Seven digits may mean two culprits: then nobody knows, whatever the robot's credit says."""
    one, two = kernel.report("1234567" + "a" * 33, "mm: a"), kernel.report("1234567" + "b" * 33, "mm: b")
    kernel.git.commit("mm: fix", f"Fixes: 1234567\nReported-by: robot <{next(iter(kernel.world.settings.robots))}>")
    kernel.git.commit(
        "mm: fix b", f"Fixes: 1234567bbbbb\nReported-by: robot <{next(iter(kernel.world.settings.robots))}>"
    )
    kernel.git.tag("v9.1-rc1")
    kernel.walk("linus")
    assert [state(each) for each in (one, two)] == ["no_response", "fixed"]
    assert {each.rule for each in one.suggestions.all()} == {"fixes_alone"}


def test_one_commit_closes_several_reports(kernel: Kernel) -> None:
    reports = [kernel.report(f"{number}" * 40, f"mm: {number}") for number in (1, 2, 3)]
    body = "\n".join(f"Closes: https://lore.kernel.org/r/{message_id(each)}" for each in reports)
    kernel.git.commit("mm: fix all", body, author=LEE)
    kernel.git.tag("v9.1-rc1")
    kernel.walk("linus")
    assert set(Report.objects.values_list("state", flat=True)) == {"fixed"}


def test_the_culprits_own_link_to_the_thread_fixes_nothing(kernel: Kernel, world: World) -> None:
    """The robot answered to the patch itself, so that its thread is the report's."""
    sha = kernel.git.commit("mm: a", "Link: https://lore.kernel.org/r/the-patch@dev.example", on="0day")
    report = kernel.report(sha, "mm: a")
    kernel.world.post(
        DANA, "v2.", subject="[PATCH v2] mm: a", to=message_id(report), message_id="the-patch@dev.example"
    )
    kernel.world.read()
    kernel.git.pick(sha, on="master")
    kernel.git.tag("v9.1-rc1")
    kernel.walk("linus")
    assert not report.events.filter(kind="fix_landed").exists()


# --- Fixes found by their commit messages, and the same patch under other shas ---

# --- fixes --------------------------------------------------------------------------------------


def test_fixes_with_the_robot_credited_is_a_fix(kernel: Kernel) -> None:
    report = kernel.merged()
    fixes = f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")'
    kernel.git.commit("mm: charge once", f"{fixes}\nReported-by: kernel test robot <{ROBOT}>")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"
    assert Event.objects.get(kind="fix_landed").quote == fixes


def test_a_commit_that_only_mentions_the_report_is_a_suggestion(kernel: Kernel) -> None:
    report = kernel.merged()
    sha = kernel.git.commit(
        "mm: charge once", f"It was slow [1].\n\n[1] https://lore.kernel.org/r/{message_id(report)}"
    )
    kernel.walk("linus")
    assert state(report) == "no_response"
    assert [(row.rule, row.commit) for row in Suggestion.objects.all()] == [("mentions_report", sha)]


@pytest.mark.parametrize("reverted", [True, False])
def test_a_culprit_that_is_applied_again_is_not_reverted(kernel: Kernel, reverted: bool) -> None:
    """Without its sha, a reapplied commit undoes the revert of its title, if there was one."""
    report = kernel.merged()
    if reverted:
        kernel.git.commit(f'Revert "{TITLE}"', f"This reverts commit {report.culprit.sha}.")
    kernel.git.commit(f'Reapply "{TITLE}"', "It was right.")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert state(report) == "no_response"


def test_fixes_alone_is_a_suggestion_that_goes_on_after_a_click(kernel: Kernel) -> None:
    report = kernel.merged()
    sha = kernel.git.commit("mm: charge once", f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")')
    kernel.walk("linus")
    suggestion = Suggestion.objects.get()
    assert (state(report), suggestion.kind, suggestion.rule, suggestion.commit) == (
        "no_response",
        "fix_merged",
        "fixes_alone",
        sha,
    )
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    suggestion.refresh_from_db()
    assert (suggestion.kind, suggestion.tag) == ("fix_landed", "v9.1-rc2")
    report_actions.decide(suggestion, Decision.ACCEPTED, "mira", kernel.world.now)
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"


def test_an_accepted_fix_in_a_maintainers_tree_is_followed_to_its_version(kernel: Kernel) -> None:
    report = kernel.merged()
    fix = kernel.git.commit("mm: charge once", f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")', on="mm")
    kernel.walk("linus", "mm")
    report_actions.decide(Suggestion.objects.get(), Decision.ACCEPTED, "mira", kernel.world.now)
    assert status_text(report) == "merged at v9.1-rc1, a fix is queued in mm"
    kernel.git.pick(fix, on="master", body="Taken by mail.")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus", "mm")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"
    assert Event.objects.get(kind="fix_landed").quote.startswith(f"the patch-id of {fix[:12]}: ")


def test_a_rejected_suggestion_is_not_asked_again(kernel: Kernel) -> None:
    report = kernel.merged()
    fix = kernel.git.commit("mm: charge once", f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")', on="mm")
    kernel.walk("linus", "mm")
    report_actions.decide(Suggestion.objects.get(), Decision.REJECTED, "mira", kernel.world.now)
    kernel.git.pick(fix, on="next")
    kernel.walk("next")
    kernel.git.merge("Merge mm", "mm")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus", "next", "mm")
    assert (Suggestion.objects.count(), state(report)) == (1, "no_response")


def test_a_fix_that_was_there_before_the_report(kernel: Kernel) -> None:
    """The robot's mail is read months after the commit that closes it."""
    sha = kernel.git.commit(TITLE)
    kernel.git.tag("v9.1-rc1")
    kernel.git.commit("mm: charge once", "Closes: https://lore.kernel.org/oe-lkp/202609.early@robots.example/")
    kernel.git.commit("Linux 9.1-rc2")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    report = kernel.report(sha)
    report.messages.create(
        message_id="202609.early@robots.example",
        source=report.messages.model.source.field.related_model.objects.create(
            digest="x", compressed=b"", received_at=kernel.world.now
        ),
        kind="robot",
        sent_at=kernel.git.now - timedelta(days=30),
    )
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"


def test_a_culprit_much_older_than_anybody_told(kernel: Kernel) -> None:
    """Its author's date lies, and many tags stand behind which nobody looks."""
    sha = kernel.git.commit(TITLE)
    for number in range(1, 5):
        kernel.git.tag(f"v9.1-rc{number}")
        kernel.git.now += timedelta(days=300)
        kernel.git.commit(f"Linux 9.1-rc{number + 1}")
    kernel.walk("linus")
    author = {"name": DANA.name, "email": DANA.email}
    first_bad = {"sha": sha, "subject": TITLE, "author": author, "date": kernel.git.now.isoformat()}
    report = kernel.report(sha, first_bad=first_bad)
    kernel.walk("linus")
    assert Report.objects.get(pk=report.pk).landing == "v9.1-rc1"


@pytest.mark.parametrize("title", ["mm: charge once", "[PATCH v2 3/7] mm: charge  once", "Re: [PATCH] mm: charge once"])
def test_a_title_that_a_command_names_is_waited_for(kernel: Kernel, title: str) -> None:
    report = kernel.merged()
    kernel.git.commit("mm: charge once", author=LEE)
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    kernel.world.post(DANA, f"#lkp fix: {title}", to=message_id(report))
    kernel.world.read()
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"


def test_a_fix_with_a_wrong_title_waits_until_the_right_one_is_told(kernel: Kernel) -> None:
    report = kernel.merged()
    kernel.world.post(DANA, "#lkp fix: mm: charge onec", to=message_id(report))
    kernel.world.read()
    kernel.git.commit("mm: charge once")
    kernel.git.commit("mm: charge onec more", author=LEE)
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert (state(report), Suggestion.objects.count()) == ("fix_proposed", 0)
    kernel.world.post(DANA, "#lkp fix: mm: charge once", to=message_id(report))
    kernel.world.read()
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"


@pytest.mark.parametrize(("author", "expected"), [(DANA, "fixed"), (LEE, "fix_proposed")], ids=["author", "another"])
def test_a_posted_patch_is_known_by_title_and_author(kernel: Kernel, author: object, expected: str) -> None:
    report = kernel.merged()
    link = f"Closes: https://lore.kernel.org/r/{message_id(report)}"
    kernel.world.post(DANA, f"Charge once.\n\n{link}\n---\n{DIFF}", subject="[PATCH v3] mm: charge once")
    kernel.world.read()
    assert state(report) == "fix_proposed"
    kernel.git.commit("mm: charge once", "The maintainer cut the trailers.", author=author)  # type: ignore[arg-type]
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert state(report) == expected
    assert [each.rule for each in Suggestion.objects.all()] == ([] if expected == "fixed" else ["title_alone"])


def test_a_patch_elsewhere_that_only_fixes_the_culprit_is_no_thread_of_ours(kernel: Kernel) -> None:
    """Its own Link: leads to a mail that we filed, since it names the culprit; that makes it no fix."""
    report = kernel.merged()
    fixes = f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")'
    kernel.world.post(LEE, f"Typo.\n\n{fixes}\n---\n{DIFF}", subject="[PATCH] mm: typo", message_id="typo@dev.example")
    kernel.world.read()
    kernel.git.commit("mm: typo", f"{fixes}\nLink: https://lore.kernel.org/r/typo@dev.example", author=LEE)
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert state(report) == "no_response"
    assert Suggestion.objects.count() == 1  # the mail asked already


# --- the same patch under another sha -----------------------------------------------------------


def test_a_robots_commit_is_found_in_the_mainline_by_its_patch_id(kernel: Kernel) -> None:
    robots = kernel.git.commit(TITLE, on="0day", parents=[kernel.git.head("master")])
    report = kernel.report(robots)
    kernel.git.commit("net: before it")
    upstream = kernel.git.pick(robots, on="master")
    kernel.git.tag("v9.1-rc1")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, no response from author yet"
    landed = Event.objects.get(kind="landed")
    assert (landed.commit, landed.quote[:28]) == (upstream, f"the patch-id of {robots[:12]}")


def test_a_changed_title_hides_no_patch(kernel: Kernel) -> None:
    robots = kernel.git.commit(TITLE, on="0day", parents=[kernel.git.head("master")])
    written = kernel.git.now
    author = {"name": DANA.name, "email": DANA.email}
    first_bad = {"sha": robots, "subject": TITLE, "author": author, "date": written.isoformat()}
    report = kernel.report(robots, first_bad=first_bad)
    kernel.git.commit(
        "mm: vmscan: walk cold folios first", authored=written, change="mm-vmscan--walk-cold-folios-first.c"
    )
    kernel.git.tag("v9.1-rc1")
    kernel.walk("linus")
    assert state(report) == "no_response"
    assert Report.objects.get(pk=report.pk).landing == ""  # the content differs: only the author and the moment agree
    same = kernel.git.files(robots)["mm-vmscan--walk-cold-folios-first.c"]
    kernel.git.point("master", kernel.git.head("master") and kernel.git("rev-parse", "v9.0^{commit}"))
    kernel.git.write(
        b"mm: vmscan: walk cold folios\n",
        [kernel.git.head("master")],
        {**kernel.git.files("v9.0"), "mm-vmscan--walk-cold-folios-first.c": same},
        authored=written,
    )
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert Report.objects.get(pk=report.pk).landing == "v9.1-rc2"


@pytest.mark.parametrize(("author", "landing"), [(DANA, "v9.1-rc1"), (LEE, "")], ids=["his own", "another's"])
def test_where_only_mail_knows_the_culprit_title_and_author_tell(kernel: Kernel, author: object, landing: str) -> None:
    report = kernel.report("c" * 40)
    sha = kernel.git.commit(TITLE, author=author)  # type: ignore[arg-type]
    kernel.git.tag("v9.1-rc1")
    kernel.walk("linus")
    assert Report.objects.get(pk=report.pk).landing == landing
    if not landing:
        suggestion = Suggestion.objects.get()
        assert (suggestion.kind, suggestion.rule, suggestion.commit) == ("same_patch", "title_alone", sha)
        report_actions.decide(suggestion, Decision.ACCEPTED, "mira", kernel.world.now)
        kernel.walk("linus")
        assert status_text(report) == "merged at v9.1-rc1, no response from author yet"
