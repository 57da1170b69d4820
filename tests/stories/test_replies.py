"""From the bytes of a mail to the text in the triage table."""

from __future__ import annotations

import email
import itertools
import re
from datetime import datetime, timedelta
from email.policy import default
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from hypothesis import assume, given
from hypothesis import strategies as st

from bot.archives.batch import ReadTally, replay_all
from bot.archives.reader import read_source
from bot.archives.sources import open_sources
from bot.compose.mail import to_bytes
from bot.demo import DemoInbox
from bot.mail.addresses import Address
from bot.mail.message import is_address, parse
from bot.mail.settings import BotSettings
from bot.notifications.answers import answer_to, approve_answers
from bot.notifications.report import compose_due
from bot.replies.reading import read as reading_read
from bot.results.storage import extend_curves
from tests.bot.robot_reports.test_report import INVENTED
from tests.support.world import DANA, DIFF, LEE, START, World, message_id, state, status_text
from tracker.models import Curve, Decision, Event, Finding, Message, OutgoingMail, RawMessage, Report, Suggestion
from tracker.services import report_actions
from tracker.services.curves import load
from tracker.services.mail_transitions import mark_sent

# --- From the bytes of a mail to the text in the triage table ---

THIRD = type(LEE)("Kim Stranger", "kim@elsewhere.example")


def test_a_report_waits_for_its_author_and_says_so(world: World) -> None:
    report = world.report()
    assert status_text(report) == "no response from author yet"
    world.tag("v9.1-rc1")
    world.track()
    assert status_text(report) == "merged at v9.1-rc1, no response from author yet"


def test_a_fix_posted_elsewhere_closes_the_report_when_it_lands(world: World) -> None:
    report = world.report()
    link = f"Closes: https://lore.kernel.org/r/{message_id(report)}"
    world.post(DANA, f"Charge once.\n\n{link}\n---\n{DIFF}", subject="[PATCH] mm: charge in batches")
    world.read()
    assert status_text(report) == "a fix is proposed"
    world.commit("mm: charge in batches", link)
    world.track()
    assert status_text(report) == "merged in the mainline, the fix has been merged"
    world.tag("v9.1-rc4")
    world.track()
    assert status_text(report) == "merged at v9.1-rc4, the regression has been fixed in v9.1-rc4"


@pytest.mark.parametrize(("between", "expected"), [("v9.1-rc1", "fix_proposed"), ("", "fixed")])
def test_what_an_older_version_has_fixes_nothing(world: World, between: str, expected: str) -> None:
    """Within a version a fix may come before the culprit, as when two trees are pulled in one merge window."""
    fix = world.commit("mm: charge in batches")
    if between:
        world.tag(between)
    report = world.report()
    world.tag("v9.1-rc2")
    world.post(DANA, f"#lkp fix: {fix[:12]}", to=message_id(report))
    world.read()
    world.track()
    assert state(report) == expected


def test_the_author_answers_in_plain_words(world: World) -> None:
    report = world.report()
    world.post(DANA, "We take the lock twice there. I have to think about it.", to=message_id(report))
    world.read()
    assert state(report) == "responded"
    event = Event.objects.get(report=report, kind="responded")
    assert (event.message_id, event.role) == ("letter-1@dev.example", "author")
    assert event.quote == "We take the lock twice there."


def test_the_author_answers_from_another_address(world: World) -> None:
    report = world.report()
    at_home = type(DANA)("Dana Brook", "dana@home.example")
    world.post(at_home, "I can see it here too.", to=message_id(report))
    world.read()
    assert state(report) == "responded"


@pytest.mark.parametrize(
    ("author", "text"),
    [(THIRD, "I wonder whether this matters to anybody."), (DANA, "Thanks!"), (DANA, "> what we had said")],
    ids=["third party", "courtesy", "only a quote"],
)
def test_what_is_no_answer_leaves_the_silence(world: World, author: object, text: str) -> None:
    report = world.report()
    world.post(author, text, to=message_id(report))
    world.read()
    assert state(report) == "no_response"
    assert Message.objects.filter(report=report).count() == 2  # filed all the same


def test_a_vacation_mail_commands_nothing(world: World) -> None:
    report = world.report()
    world.post(DANA, "I am away.\n\n#lkp invalid", to=message_id(report), Auto_Submitted="auto-replied")
    world.read()
    assert state(report) == "no_response"


def test_commands_close_and_reopen(world: World) -> None:
    report = world.report()
    world.post(DANA, "We trade throughput for latency.\n\n#lkp expected", to=message_id(report))
    world.read()
    assert status_text(report) == "the regression is expected"
    world.post(DANA, "#lkp reopen", to=message_id(report))
    world.read()
    assert status_text(report) == "the author has responded"


def test_unproven_mail_closes_nothing_under_the_default_policy(world: World) -> None:
    report = world.report()
    world.settings = type(world.settings)(address=world.settings.address, trust_policy="verified")
    world.post(DANA, "#lkp invalid", to=message_id(report))
    world.read()
    assert state(report) == "responded"
    suggestion = Suggestion.objects.get()
    assert (suggestion.kind, suggestion.rule, suggestion.decision) == ("invalid", "command_invalid", "open")
    assert report_actions.decide(suggestion, Decision.ACCEPTED, "mira", world.now)
    assert status_text(report) == "the report was withdrawn"
    assert not report_actions.decide(suggestion, Decision.REJECTED, "otto", world.now)  # once
    assert Event.objects.get(kind="invalid").actor == "mira"


def test_a_revert_in_git_drops_the_culprit(world: World) -> None:
    report = world.report()
    world.tag("v9.1-rc1")
    world.commit('Revert "mm/vmscan: walk cold folios first"', f"This reverts commit {report.culprit.sha}.")
    world.tag("v9.1-rc2")
    world.track()
    assert status_text(report) == "merged at v9.1-rc1, the commit has been reverted in v9.1-rc2"


def test_a_fix_named_by_title_is_found_in_git(world: World) -> None:
    report = world.report()
    world.post(DANA, "#lkp fix: mm/vmscan: scan once", to=message_id(report))
    world.read()
    assert state(report) == "fix_proposed"
    world.commit("mm/vmscan: scan once")
    world.tag("v9.1-rc1")
    world.track()
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc1"


def test_reading_and_tracking_again_changes_nothing(world: World) -> None:
    report = world.report()
    world.post(DANA, "It is the lock.", to=message_id(report))
    world.tag("v9.1-rc1")
    world.read(), world.track()
    before = list(Event.objects.order_by("pk").values_list("pk", "key"))
    assert world.read().seen == 0
    assert world.track().unchanged
    assert list(Event.objects.order_by("pk").values_list("pk", "key")) == before


def test_a_mail_without_an_id_is_kept_and_harms_no_other(world: World) -> None:
    report = world.report()
    broken = world.mail(DANA, "It is the lock.", to=message_id(report))
    world.inbox.add(broken.replace(b"Message-ID: <letter-1@dev.example>\n", b""))
    world.post(DANA, "I said: it is the lock.", to=message_id(report))
    tally = world.read()
    assert (tally.quarantined, tally.replies) == (1, 1)
    kept = RawMessage.objects.exclude(error="").get()
    assert "no Message-ID" in kept.error
    assert b"It is the lock." in kept.raw
    assert state(report) == "responded"


def test_an_improvement_is_never_asked_for_an_answer(world: World) -> None:
    better = {"good": {"samples": [700, 705]}, "bad": {"samples": [1000, 1010]}}
    headline = {"metric": "vm-scan.ops_per_sec", "unit": "1/s", "direction": "higher", "role": "headline", **better}
    report = world.report(measurements=[headline])
    assert (state(report), status_text(report)) == ("no_action", "reported")
    assert "Closes:" not in bytes(OutgoingMail.objects.get().raw).decode()


def test_an_inconclusive_result_is_stored_and_never_mailed(world: World) -> None:
    sha = world.commit("mm: nothing to see")
    (receipt,) = world.ingest(world.result(sha, "mm: nothing to see", outcome="inconclusive"))
    assert receipt.report is None
    assert not OutgoingMail.objects.exists()


def test_a_duplicate_is_named_by_the_sha_of_the_other(world: World) -> None:
    other = world.report("net: a")
    report = world.report("net: b")
    world.post(DANA, f"#lkp dup: https://lore.kernel.org/r/{message_id(other)}", to=message_id(report))
    world.read()
    assert status_text(report) == f"a duplicate of {other.culprit.sha10}"
    world.post(DANA, "#lkp undup", to=message_id(report))
    world.read()
    assert state(report) == "responded"


def test_a_duplicate_is_named_in_many_ways(world: World) -> None:
    other = world.report("net: take the lock once")
    sha = other.culprit.sha
    ways = (
        f"dup: {sha[:8]}",
        f"dup of {sha[:12]}",
        f'dup: commit {sha[:12]} ("net: take the lock once").',
        f"dup: `{sha[:12]}`",
        f"dup: {world.settings.base_url}/report/{sha}/",
        f"dup: https://git.kernel.org/torvalds/c/{sha[:12]}",
        f"dup: <{message_id(other)}>",
        "dup: “net: Take the lock once”",
    )
    for number, way in enumerate(ways):
        report = world.report(f"mm: a {number}")
        world.post(DANA, f"#lkp {way}", to=message_id(report))
        world.read()
        assert status_text(report) == f"a duplicate of {other.culprit.sha10}", way


def test_somebody_whom_the_report_was_sent_to_counts_as_a_maintainer(world: World) -> None:
    trailers = [{"tag": "Reviewed-by", "value": "Lee Park <lee@dev.example>"}]
    author = {"name": DANA.name, "email": DANA.email}
    title = "mm/vmscan: walk cold folios first"
    sha = world.commit(title)
    world.ingest(
        world.result(sha, title, first_bad={"sha": sha, "subject": title, "author": author, "trailers": trailers})
    )
    compose_due(world.settings, world.now, approve_first=False)
    report = Report.objects.get()
    world.post(LEE, "I can see this too, on another machine.", to=message_id(report))
    world.read()
    assert Event.objects.get(kind="responded").role == "maintainer"


def test_the_pages_show_the_sentence_and_its_evidence(world: World, client: Client) -> None:
    report = world.report()
    world.post(DANA, "It is the <b>lock</b>.", to=message_id(report))
    world.tag("v9.1-rc1")
    world.read(), world.track()
    table = client.get("/v9.1/").content.decode()
    assert "merged at v9.1-rc1, the author has responded" in table
    page = client.get(f"/report/{report.culprit.sha[:10]}/").content.decode()
    assert "letter-1@dev.example" in page
    assert "It is the &lt;b&gt;lock&lt;/b&gt;." in page
    assert report.culprit.sha[:12] in page
    assert client.get(f"/report/{report.tag}/").status_code == 200
    assert '<a href="/v9.1/">v9.1</a>' in client.get("/").content.decode()


# --- A command that failed gets one short reply; no other mail does ---

BAD = "#lkp fixx: mm: a\n#lkp dup\n"


@pytest.fixture
def answers_world(tmp_path: Path, bot_settings: BotSettings) -> World:
    return World(tmp_path, bot_settings)


def answers() -> list[OutgoingMail]:
    return list(OutgoingMail.objects.filter(purpose__startswith="answer ").order_by("pk"))


@pytest.mark.django_db
def test_the_answer_quotes_the_line_and_says_why(answers_world: World) -> None:
    report = answers_world.report()
    answers_world.post(DANA, f"Hi,\n\n{BAD}", to=message_id(report), message_id="bad@dev.example")
    answers_world.read()
    (row,) = answers()
    mail = email.message_from_bytes(bytes(row.raw), policy=default)
    assert (mail["Auto-Submitted"], mail["In-Reply-To"]) == ("auto-replied", "<bad@dev.example>")
    assert mail["To"].addresses[0].addr_spec == DANA.email
    body = mail.get_content()
    assert "> #lkp fixx: mm: a" in body
    assert "Line 3: unknown command 'fixx'." in body
    assert "> #lkp dup" in body
    assert max(map(len, body.splitlines())) <= 78
    assert row.state == "composed"
    assert approve_answers(answers_world.now) == 1


@pytest.mark.django_db
def test_a_list_that_got_the_report_gets_no_answer_whoever_writes_in_its_name(answers_world: World) -> None:
    report = answers_world.report()
    lists = Address("", "dev@lists.example")
    sent = OutgoingMail.objects.get(report=report)
    sent.recipients, sent.lists = [*sent.recipients, lists.email], [*sent.lists, lists.email]
    sent.save()
    for name in (lists, Address("", "linux-mm@vger.kernel.org"), Address("", "linux-mm@kvack.org")):
        answers_world.post(name, BAD, to=message_id(report))
    answers_world.read()
    assert answers() == []


@pytest.mark.django_db
def test_sent_it_is_no_news_of_the_report(answers_world: World) -> None:
    report = answers_world.report()
    answers_world.post(DANA, BAD, to=message_id(report))
    answers_world.read()
    before = list(report.events.values_list("key", flat=True))
    assert mark_sent(answers()[0].message_id, answers_world.now, answers_world.now)
    assert list(report.events.values_list("key", flat=True)) == before
    answers_world.inbox.add(bytes(answers()[0].raw))
    answers_world.read()  # our own answer, back from the list: filed, not answered
    assert len(answers()) == 1


@pytest.mark.django_db
def test_one_an_hour_to_a_person_and_never_twice_for_a_mail(answers_world: World) -> None:
    report = answers_world.report()
    answers_world.post(DANA, BAD, to=message_id(report))
    answers_world.read()
    answers_world.now -= timedelta(minutes=110)  # each step of this world is an hour
    answers_world.post(DANA, BAD, to=message_id(report))
    answers_world.read()
    assert len(answers()) == 1
    answers_world.post(Address("Lee Park", "lee@dev.example"), BAD, to=message_id(report))
    answers_world.read()
    assert len(answers()) == 2
    answers_world.later(2)
    answers_world.post(DANA, BAD, to=message_id(report))
    answers_world.read()
    answers_world.read()
    assert len(answers()) == 3


@pytest.mark.django_db
@pytest.mark.slow
def test_two_writers_of_one_reading_are_answered_and_many_are_not(answers_world: World) -> None:
    report = answers_world.report()
    for number in range(15):
        answers_world.post(Address("", f"w{number}@dev.example"), BAD, to=message_id(report))
    answers_world.read()
    assert len(answers()) == 10
    assert len({row.message_id for row in answers()}) == 10


@pytest.mark.django_db
@pytest.mark.slow
@pytest.mark.parametrize(
    ("author", "headers"),
    [
        (DANA, {"Auto_Submitted": "auto-replied"}),
        (DANA, {"Precedence": "auto_reply"}),
        (Address("", "mailer-daemon@dev.example"), {}),
        (Address("tip-bot2", "tip-bot2@dev.example"), {}),
        (Address("", "linux-mm-owner@dev.example"), {}),
        (Address("", "noreply@dev.example"), {}),
    ],
)
def test_robots_bounces_and_absences_are_never_answered(
    answers_world: World, author: Address, headers: dict[str, str]
) -> None:
    report = answers_world.report()
    answers_world.post(author, BAD, to=message_id(report), **headers)
    answers_world.read()
    assert answers() == []


@pytest.mark.django_db
def test_ourselves_we_never_answer(answers_world: World) -> None:
    report = answers_world.report()
    answers_world.post(Address("Bot", answers_world.settings.address.upper()), BAD, to=message_id(report))
    answers_world.read()
    assert answers() == []


@pytest.mark.django_db
def test_old_mail_is_not_answered(answers_world: World) -> None:
    report = answers_world.report()
    answers_world.post(DANA, BAD, to=message_id(report))
    answers_world.later(24 * 10)  # the archive is read ten days after
    answers_world.read()
    assert answers() == []


@pytest.mark.django_db
def test_a_good_command_is_not_answered(answers_world: World) -> None:
    report = answers_world.report()
    answers_world.post(DANA, "#lkp note: looking\n#regzbot poke\n", to=message_id(report))
    answers_world.read()
    assert answers() == []


@pytest.mark.django_db
@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=200))
def test_nothing_of_a_mail_breaks_out_of_its_place_in_the_answer(name: str, subject: str, words: str) -> None:
    bot = BotSettings(address="perfbot@bot.example.org")
    words = words.replace("\n", " ")
    raw = f"From: {name} <dana@dev.example>\nMessage-ID: <a@b>\nSubject: {subject}\n\n#lkp {words}\n"
    reading = reading_read(parse(raw.encode("utf-8", "replace")), bot)
    assume(is_address(reading.mail.author.email))  # others are not answered
    made = to_bytes(answer_to(reading, "7d3e91c0a45b28f6", "7d3e91c0a45b28f6", bot, START))
    mail = email.message_from_bytes(made, policy=default)
    assert set(mail.keys()) <= {
        *("Message-ID", "Date", "From", "Reply-To", "To", "Subject", "In-Reply-To", "References", "Auto-Submitted"),
        *(
            "X-Perfwork-Report",
            "X-Mailer",
            "Content-Type",
            "Content-Transfer-Encoding",
            "MIME-Version",
            "List-Unsubscribe",
        ),
    }


# --- The robot's reports: from the bytes of a mail to what a release manager sees ---

SHA = "3b1f0c9d2e440000000000000000000000000000"
DOUBTFUL = INVENTED.replace("[mm/vmscan]  3b1f0c9d2e:", "[mm/vmscan]  77770c9d2e:")
# The same culprit, reported again by another test, eight days later.
AGAIN = INVENTED.replace("202603110412.3b1f0c9d-lkp", "202603190412.3b1f0c9d-lkp").replace(
    "vm-scan.ops_per_sec", "vm-scan.faults_per_sec"
)


@pytest.fixture
def robots(bot_settings: BotSettings) -> BotSettings:
    return BotSettings(address=bot_settings.address, robots=frozenset({"lkp@intel.com"}), trust_policy="open")


def read(folder: Path, settings: BotSettings, now: datetime, *mails: str) -> ReadTally:
    tally = ReadTally()
    for mail in mails:
        file = folder / f"{len(list(folder.iterdir()))}.eml"
        file.write_bytes(mail.encode("latin-1"))
        (source,) = open_sources(str(file))
        tally += read_source(source, settings, now)
    return tally


def shown(client: Client) -> list[str]:
    """The culprits in the tables of all releases that the front page leads to."""
    releases = re.findall(r'href="(/v[\d.]+/)"', client.get("/").content.decode())
    pages = (client.get(release).content.decode() for release in releases)
    return sorted({sha for page in pages for sha in re.findall(r'href="/report/(\w+)/"', page)})


@pytest.mark.django_db
def test_whom_the_robot_wrote_to_is_the_author(
    tmp_path: Path, robots: BotSettings, now: datetime, client: Client
) -> None:
    read(tmp_path, robots, now, INVENTED)
    assert "Dana Brook &lt;dana@dev.example&gt;" in client.get(f"/report/{SHA}/").content.decode()
    assert SHA in client.get("/author/dana@dev.example/").content.decode()
    assert Report.objects.get().author == "dana@dev.example"


@pytest.mark.django_db
@pytest.mark.parametrize("turned", [False, True])
def test_the_first_of_two_reports_names_the_author(
    tmp_path: Path, robots: BotSettings, now: datetime, turned: bool
) -> None:
    dated = [(INVENTED, "Wed, 11 Mar 2026 04:12:00 +0800"), (AGAIN, "Thu, 19 Mar 2026 04:12:00 +0800")]
    first, second = (mail.replace("\nSubject:", f"\nDate: {date}\nSubject:", 1) for mail, date in dated)
    mails = [first, second.replace("Dana Brook <dana@dev.example>", "Lee Park <lee@dev.example>")]
    read(tmp_path, robots, now, *(reversed(mails) if turned else mails))
    assert Report.objects.get().author == "dana@dev.example"


@pytest.mark.django_db
def test_a_list_is_no_author(tmp_path: Path, robots: BotSettings, now: datetime) -> None:
    read(tmp_path, robots, now, INVENTED.replace("Dana Brook <dana@dev.example>", "<linux-mm@kvack.org>"))
    assert Report.objects.get().author == ""


@pytest.mark.django_db
def test_a_doubtful_report_waits_for_the_operator(
    tmp_path: Path, robots: BotSettings, now: datetime, client: Client
) -> None:
    tally = read(tmp_path, robots, now, DOUBTFUL)
    assert (tally.reports, tally.quarantined) == (1, 0)
    assert shown(client) == []
    page = client.get(f"/report/{SHA}/").content.decode()
    assert "held" in page
    assert "the subject names 77770c9d2e" in page
    waiting = Suggestion.objects.filter(kind="reported").get()
    assert report_actions.decide(waiting, Decision.ACCEPTED, "olga", now)
    report = Report.objects.get()
    assert (report.state, report.reported_at) == ("no_response", waiting.occurred_at)
    assert shown(client) == [SHA]
    assert "held" not in client.get(f"/report/{SHA}/").content.decode()


@pytest.mark.django_db
def test_a_clear_report_frees_what_a_doubtful_one_held(tmp_path: Path, robots: BotSettings, now: datetime) -> None:
    read(tmp_path, robots, now, DOUBTFUL.replace("-12.4%", "-99.9%"), AGAIN)
    report = Report.objects.get()
    assert report.held == ""
    assert report.reported_at
    # The doubtful numbers are gone, though the mail and its tables stay.
    heads = Finding.objects.filter(report=report, headline=True)
    assert [(each.metric.name, each.change_pct) for each in heads] == [("vm-scan.faults_per_sec", -12.4)]
    assert report.messages.count() == 2


@pytest.mark.django_db
def test_a_doubtful_report_adds_no_numbers_to_a_clear_one(tmp_path: Path, robots: BotSettings, now: datetime) -> None:
    read(tmp_path, robots, now, INVENTED, AGAIN.replace("[mm/vmscan]  3b1f0c9d2e:", "[mm/vmscan]  77770c9d2e:"))
    report = Report.objects.get()
    assert report.held == ""
    assert not Finding.objects.filter(report=report, metric__name="vm-scan.faults_per_sec").exists()
    assert report.messages.count() == 2


# A report of another culprit, a fix of the first one that closes the other one's report, and an answer to that fix.
ONE = INVENTED.replace("\nSubject:", "\nDate: Wed, 11 Mar 2026 04:12:00 +0000\nSubject:", 1)
OTHER = ONE.replace("3b1f0c9d2e", "5c2e1d0f3a").replace("3b1f0c9d", "5c2e1d0f").replace("cold folios", "hot folios")
OF_BOTH = f"""\
From: Dana Brook <dana@dev.example>
To: linux-mm@kvack.org
Subject: [PATCH] mm: charge in batches
Date: Thu, 12 Mar 2026 10:00:00 +0000
Message-ID: <patch@dev.example>

This fixes the regression.

Closes: https://lore.kernel.org/r/202603110412.5c2e1d0f-lkp@intel.com
Fixes: 3b1f0c9d2e44 ("mm/vmscan: walk cold folios first")
---
{DIFF}"""
ITS_ANSWER = """\
From: Lee Park <lee@dev.example>
To: linux-mm@kvack.org
Subject: Re: [PATCH] mm: charge in batches
Date: Fri, 13 Mar 2026 10:00:00 +0000
Message-ID: <answer@dev.example>
In-Reply-To: <patch@dev.example>

Thanks, applied to mm-unstable.
"""


@pytest.mark.django_db
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1), (2, 0, 3, 1), (3, 2, 1, 0), (3, 2, 0, 1)])
def test_the_answers_to_a_patch_go_with_it_to_the_report_that_it_closes(
    tmp_path: Path, robots: BotSettings, now: datetime, order: tuple[int, ...]
) -> None:
    inbox = DemoInbox(tmp_path)
    for number in order:
        inbox.add((ONE, OTHER, OF_BOTH, ITS_ANSWER)[number].encode())
        (source,) = open_sources(str(inbox.path))
        read_source(source, robots, now)
    for _ in range(2):
        first, other = Report.objects.order_by("culprit__sha")
        filed = {message.message_id: message.report for message in Message.objects.select_related("report")}
        assert (filed["patch@dev.example"], filed["answer@dev.example"]) == (other, other)
        moments = (first.last_human_reply_at, other.last_human_reply_at)
        assert [moment.day for moment in moments if moment] == [11, 13], "the day of the report, and of the answer"
        assert (first.state, other.state) == ("no_response", "fix_proposed")
        replay_all(robots, now)


@pytest.mark.django_db
def test_a_deep_thread_goes_with_its_patch_whichever_answer_was_read_first(
    tmp_path: Path, robots: BotSettings, now: datetime
) -> None:
    names = ["patch@dev.example", *(f"{number}@dev.example" for number in range(15))]
    answers = [
        ITS_ANSWER.replace("patch@dev.example", parent).replace("answer@dev.example", name) + "\n#regzbot poke\n"
        for parent, name in itertools.pairwise(names)
    ]
    for number, mail in enumerate((ONE, *reversed(answers), OF_BOTH, OTHER)):
        file = tmp_path / f"{number}.eml"
        file.write_text(mail)
        (source,) = open_sources(str(file))
        read_source(source, robots, now)
    for _ in range(2):
        _, other = Report.objects.order_by("culprit__sha")
        assert set(names) <= set(other.messages.values_list("message_id", flat=True))
        replay_all(robots, now)


@pytest.mark.django_db
def test_a_culprit_that_is_reported_twice_is_one_report(
    tmp_path: Path, robots: BotSettings, now: datetime, client: Client
) -> None:
    tally = read(tmp_path, robots, now, INVENTED, AGAIN)
    assert (tally.reports, tally.repeated) == (2, 1)
    report = Report.objects.get()
    assert [event.message_id for event in report.events.filter(kind="reported").order_by("pk")] == [
        "202603110412.3b1f0c9d-lkp@intel.com",
        "202603190412.3b1f0c9d-lkp@intel.com",
    ]
    findings = {each.metric.name: each for each in report.findings.select_related("metric")}
    assert findings.keys() == {"vm-scan.ops_per_sec", "vm-scan.faults_per_sec", "fs-create.files_per_sec"}
    assert [name for name, each in findings.items() if each.headline] == ["vm-scan.ops_per_sec"]
    page = client.get(f"/report/{SHA}/").content.decode()
    assert "vm-scan.faults_per_sec" in page
    assert "778,685" in page or "778685" in page


@pytest.mark.django_db
def test_what_a_mail_prints_is_on_curves(tmp_path: Path, robots: BotSettings, now: datetime, client: Client) -> None:
    """Its means stand beside the lab's own samples, each once however often it is read."""
    read(tmp_path, robots, now, INVENTED)
    extend_curves(now)
    finding = Finding.objects.select_related("report__culprit", "parent").get(headline=True)
    where = {"metric": finding.metric, "scenario": finding.scenario, "machine": finding.machine}
    curve = Curve.objects.get(**where)
    assert finding.parent is not None
    assert [(each.build, each.samples) for each in load(curve)] == [
        (finding.parent.sha, (finding.old_mean,)),
        (finding.report.culprit.sha, (finding.new_mean,)),
    ]
    Finding.objects.update(on_curves=False)
    extend_curves(now)
    assert Curve.objects.get(**where).points == 2
    assert f'href="/curve/{curve.pk}/"' in client.get(f"/metric/{finding.metric.name}/").content.decode()


# --- `export fixes SHA`: the tags for the commit message of a fix, by which the report is found and closed again ---


def test_the_tags_close_the_report(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    report = world.report("mm: scan more")
    call_command("export", "fixes", report.culprit.sha[:10])
    tags = capsys.readouterr().out.strip().splitlines()
    assert tags[0] == f'Fixes: {report.culprit.sha[:12]} ("mm: scan more")'
    assert tags[1].startswith("Reported-by: Perfwork <perfbot+")
    assert tags[2] == f"Closes: https://lore.kernel.org/r/{message_id(report)}"
    world.post(DANA, "\n".join(["Scan less.", "", *tags, "---", world_diff()]), subject="[PATCH] mm: scan less")
    world.read()
    assert state(report) == "fix_proposed"


def world_diff() -> str:
    return "diff --git a/mm/a.c b/mm/a.c\n--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize("sha", ["", "abc", "f" * 12, "not-a-sha"])
def test_what_names_no_report(world: World, sha: str) -> None:
    world.report("mm: scan more")
    with pytest.raises(CommandError, match="expected 7 digits or more"):
        call_command("export", "fixes", sha)
