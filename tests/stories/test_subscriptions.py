"""Mail to the lists that is not about a single report: a release report, a study, the weekly digest."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from typing import Any

import feedparser
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from bot import tasks
from bot.mail.message import parse
from bot.notifications import digest
from bot.notifications.digest import BulletinConfig, compose_week
from bot.notifications.subscription import compose_subscriptions
from bot.outbox.drafts import ComposeConfig
from bot.outbox.transports import Server
from tests.conftest import ROOT
from tests.stories.test_accounts import bounce
from tests.support.outbox import act, claim, reloaded, send, states_of
from tests.support.rows import line
from tests.support.servers import Moody
from tests.support.world import DANA, LEE, World, message_id
from tracker.documents import blocks as text
from tracker.documents.digest import compose, week
from tracker.documents.release_report import CycleRow
from tracker.domain.events import EventData, EventKind, Role
from tracker.models import (
    Correspondent,
    Mailing,
    Message,
    OutgoingMail,
    OutgoingState,
    PendingReference,
    Release,
    Report,
    Subscription,
)
from tracker.pages import prose, subscriptions
from tracker.services import event_log, mail_transitions

# --- Mail to the lists that is not about a single report: a release report, a study, the weekly digest ---

LISTS = ("perf-reports@lists.example.org", "linux-perf@lists.example.org")


@pytest.fixture
def outside(settings: Any) -> None:
    settings.PERFWORK_BOT_ADDRESS = "perfbot@bot.example.org"
    settings.PERFWORK_BASE_URL = "https://perf.example.org"
    settings.PERFWORK_BULLETINS = list(LISTS)


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=out)
    return out.getvalue()


@pytest.fixture
def v5_6(world: World, outside: None) -> None:
    call_command("loaddata", "v5_6", "lab_texts", verbosity=0)
    call_command("refold", verbosity=0)


@pytest.mark.slow
def test_the_report_of_a_release_is_held_and_then_goes_once(
    v5_6: None, world: World, moody: tuple[Moody, Server], client: Client, admin_client: Client
) -> None:
    mood, server = moody
    assert "is held: needs approval" in run("report", "v5.6", "--hold")
    mail = OutgoingMail.objects.get()
    assert (mail.state, mail.recipients, mail.report) == (OutgoingState.HELD, list(LISTS), None)
    assert send(server) == {}  # nothing leaves by itself
    prose.write("report v5.6", "introduction", "A *calm* release.", "kim", world.now)
    run("report", "v5.6", "--hold")  # composed anew, under the same Message-ID
    assert "A *calm* release." in reloaded(mail).body
    assert (OutgoingMail.objects.count(), reloaded(mail).message_id) == (1, mail.message_id)
    assert act(mail, "approve")
    assert send(server).total() == 1
    assert states_of(mail) == ["held", "held", "approved", "sending", "sent"]
    (received,) = mood.taken
    seen = parse(received)
    assert seen.message_id == mail.message_id
    assert seen.subject == "Linux v5.6: performance report"
    assert [each.email for each in seen.recipients] == list(LISTS)
    with pytest.raises(CommandError, match="is already sent"):
        run("report", "v5.6", "--hold")
    assert admin_client.get("/outbox/").status_code == 200
    assert "Linux v5.6: performance report" in client.get(f"/outbox/{mail.pk}/").content.decode()


def test_it_reads_well_in_a_terminal(v5_6: None) -> None:
    run("report", "v5.6", "--hold")
    mail = OutgoingMail.objects.get()
    assert mail.reason == digest.NEEDS_APPROVAL  # the last look has found nothing
    message = message_from_bytes(bytes(mail.raw), policy=policy.default)
    body = message.get_content()
    lines = body.splitlines()
    assert max(map(len, lines)) <= 78
    assert message.get_content_type() == "text/plain"
    assert lines[0] == "on the web: https://perf.example.org/v5.6/report/"
    assert "-97.8%  8019ad13ef futex: will-it-scale" in lines
    assert lines[-3:] == [
        "-- ",
        "Sent by Perfwork, a bot. People read the replies. To stop receiving mail",
        "from it, reply with the single word: unsubscribe",
    ]


def test_a_study_is_mailed_in_its_form(world: World, outside: None) -> None:
    call_command("ingest", str(ROOT / "fixtures" / "studies" / "oltp.jsonl"), verbosity=0)
    options = ("--of", "v2.6.24.2", "--of", "v2.6.27.2", "--kind", "versions", "--title", "Kernels under OLTP")
    assert "2.6.27.2        0.973   30402    43523   74    25      0        1" in run("study", "oltp", *options)
    assert "oltp: Kernels under OLTP" in run("study")
    run("study", "oltp", "--hold")
    mail = OutgoingMail.objects.get()
    assert (mail.subject, mail.state, mail.reason) == (
        "Kernels under OLTP",
        OutgoingState.HELD,
        digest.NEEDS_APPROVAL,
    )
    assert "v2.6.24.2        1.000   21969" in mail.body
    assert max(map(len, mail.body.splitlines())) <= 78
    for wrong, why in (
        (("study", "none"), "no study named none"),
        (("study", "x", "--of", "v9.9", "--of", "v2.6.24.2"), "no kernel 'v9.9' was measured"),
        (("study", "x", "--of", "v2.6.24.2"), "at least two kernels"),
        (("study", "oltp", "--of", "v2.6.24.2", "--of", "v2.6.27.2"), "study oltp already exists"),
    ):
        with pytest.raises(CommandError, match=why):
            run(*wrong)


@pytest.mark.slow
def test_nobody_to_tell(v5_6: None, settings: Any) -> None:
    settings.PERFWORK_BULLETINS, settings.PERFWORK_LIST_ADDRESS = [], ""
    with pytest.raises(CommandError, match="set PERFWORK_BULLETINS"):
        run("report", "v5.6", "--hold")
    settings.PERFWORK_LIST_ADDRESS = "perf-reports@lists.example.org"
    assert "to perf-reports@lists.example.org" in run("report", "v5.6", "--hold")


# --- the digest ---

NOW = datetime(2026, 9, 14, 12, tzinfo=UTC)  # a Monday


def digest_line(name: str, state: str, days: float, closed: float | None = None, blocks: str = "") -> CycleRow:
    at = NOW - timedelta(days=days)
    end = None if closed is None else NOW - timedelta(days=closed)
    return CycleRow(
        sha=name * 10,
        title=f"report {name}",
        subsystem="mm",
        metric="scan.ops",
        change=-12.0,
        author="Dana",
        state=state,
        status=f"status of {name}",
        awaited="author",
        reported_at=at,
        thread="",
        closed_at=end,
        blocks=blocks,
    )


def test_a_week() -> None:
    found = week(
        [
            digest_line("a", "no_response", 3),
            digest_line("b", "no_response", 10),
            digest_line("c", "working", 10),
            digest_line("d", "fix_queued", 2),
            digest_line("e", "fixed", 20, closed=2),
            digest_line("f", "fixed", 20, closed=8),
            digest_line("0", "working", 6.9, blocks="v9.1"),
        ],
        NOW,
    )
    parts = ("new", "silent", "fixable", "answered", "closed")
    names = {part: [each.sha[0] for each in getattr(found, part)] for part in parts}
    assert names == {"new": ["a", "0"], "silent": ["b"], "fixable": ["d"], "answered": ["c"], "closed": ["e"]}
    assert len(found.open) == 5
    lines = text.render(compose("v9.1", found, NOW)).splitlines()
    assert lines[0] == "v9.1 performance regressions, 2026-W38: 5 open, 1 blocking"
    assert [line for line in lines if re.match(r"- [A-Z].*: \d", line)] == [
        "- New this week, no fix yet: 2",
        "- No response for more than a week: 1",
        "- Fix posted, confirmed or queued: 1",
        "- Answered, still open: 1",
        "- Fixed or closed this week: 1",
    ]
    assert "   Status  status of 0; blocks v9.1" in lines
    assert not week([digest_line("f", "fixed", 20, closed=8)], NOW)


@pytest.fixture
def cycle(world: World, outside: None) -> Report:
    """A regression in the cycle of v9.1, which is in the making."""
    Release.objects.all().delete()
    Release.objects.create(version="v9.0", number=90_000_999_0000, released_at=datetime(2026, 8, 1, tzinfo=UTC))
    Release.objects.create(version="v9.1", number=90_001_999_0000)
    world.commit("Linux 9.0")
    world.tag("v9.0")
    report = world.report()
    world.tag("v9.1-rc1")
    world.track()
    return Report.objects.get(pk=report.pk)


def bulletin_config(world: World) -> BulletinConfig:
    return BulletinConfig(replace(world.settings, address="perfbot@bot.example.org"), ComposeConfig(), LISTS)


def test_the_digest_comes_once_a_week(cycle: Report, world: World) -> None:
    assert (cycle.merged_release or cycle.shift_left_release) == "v9.1"
    now = world.later()
    assert compose_week(bulletin_config(world), now, approve_first=True)
    assert not compose_week(bulletin_config(world), now + timedelta(hours=1), approve_first=True)
    mail = OutgoingMail.objects.get(report=None)
    assert (mail.state, mail.reason) == (OutgoingState.COMPOSED, "")
    assert "1. mm/vmscan: walk cold folios first" in mail.body
    assert f"https://perf.example.org/report/{cycle.culprit.sha[:12]}/" in mail.body
    assert compose_week(bulletin_config(world), now + timedelta(days=7), approve_first=False)
    second = OutgoingMail.objects.filter(report=None).order_by("-pk")[0]
    assert second.state == OutgoingState.APPROVED
    assert "No response for more than a week: 1" in second.body
    fixed = EventData("x", EventKind.FIX_LANDED, now + timedelta(days=8), Role.MACHINE, actor="kim", tag="v9.1-rc2")
    event_log.refold(event_log.append([event_log.event_row(cycle, fixed, now + timedelta(days=8))]))
    assert compose_week(bulletin_config(world), now + timedelta(days=14), approve_first=False)
    assert "Fixed or closed this week: 1" in OutgoingMail.objects.order_by("-pk")[0].body
    assert not compose_week(
        bulletin_config(world), now + timedelta(days=21), approve_first=False
    )  # nothing is left to tell


def test_a_kind_of_mail_that_cannot_be_composed_blocks_no_other(
    cycle: Report, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **options: Any) -> int:
        raise ValueError("one odd report")

    settings.PERFWORK_DIGEST = True
    monkeypatch.setattr(tasks, "compose_follow_ups", fail)
    nudged: list[object] = []
    monkeypatch.setattr(tasks, "_enqueue", nudged.append)
    monkeypatch.setattr(tasks, "has_due", lambda now: True)
    with pytest.raises(ValueError, match="one odd report"):  # so that operators are told
        tasks.take_results()
    assert OutgoingMail.objects.filter(report=None).exists()
    assert nudged == [tasks.send_mail]


def test_the_digest_by_hand_and_by_the_clock(cycle: Report, world: World, settings: Any) -> None:
    assert "- No response for more than a week: 1" in run("digest", "v9.1")  # the story is of September
    assert run("digest") == run("digest", "v9.1")
    with pytest.raises(CommandError, match="unknown release"):
        run("digest", "v9.9")
    settings.PERFWORK_DIGEST = False
    tasks.compose_mail()
    assert not OutgoingMail.objects.filter(report=None).exists()
    settings.PERFWORK_DIGEST = True
    tasks.compose_mail()
    tasks.compose_mail()
    assert OutgoingMail.objects.filter(report=None).count() == 1
    assert "is held" in run("digest", "--hold")  # a person holds it, and looks first
    assert OutgoingMail.objects.filter(report=None).count() == 1


def test_each_release_has_a_digest_of_its_own(cycle: Report, world: World) -> None:
    now = world.later()
    for version in ("v9.0", "v9.1"):
        Report.objects.update(merged_release=version)
        bulletin = digest.of_week(version, bulletin_config(world), now)
        assert bulletin
        digest.hold(bulletin, bulletin_config(world), now)
    assert OutgoingMail.objects.filter(report=None).count() == 2


def test_lists_that_can_not_be_told_harm_nothing(cycle: Report, world: World) -> None:
    for lists in ((), ("not an address",)):
        assert not compose_week(replace(bulletin_config(world), lists=lists), world.now, approve_first=False)


def test_links_to_this_machine_alone_are_said(v5_6: None, settings: Any) -> None:
    settings.PERFWORK_BASE_URL = "http://127.0.0.1:8000"
    assert "set PERFWORK_BASE_URL" in run("report", "v5.6", "--hold")


def in_doubt(world: World) -> OutgoingMail:
    """The bulletin, whose fate nobody knows."""
    (mail,) = claim(world.now)
    mail_transitions.begin_data(mail, world.now)
    mail_transitions.mark_in_doubt(mail, world.now, "gone", "worker")
    return mail


def test_an_answer_to_a_bulletin_harms_nothing(cycle: Report, world: World) -> None:
    compose_week(bulletin_config(world), world.later(), approve_first=False)
    mail = in_doubt(world)
    world.inbox.add(bytes(mail.raw))  # our own list has a copy, which names the report
    world.read()
    assert reloaded(mail).state == OutgoingState.SENT
    world.post(LEE, "#lkp invalid\n\nThis is nothing.\n", to=mail.message_id)
    world.post(DANA, "I will look into it and send a fix.\n", to=mail.message_id)
    world.read()
    assert Report.objects.get(pk=cycle.pk).state == cycle.state
    assert not Message.objects.filter(message_id=mail.message_id).exists()
    world.read()
    assert (
        list(PendingReference.objects.values_list("key", "own")) == []
    )  # nothing waits for a report that it will never have


@pytest.mark.slow
def test_a_bulletin_that_comes_back_is_known_to_have_gone(cycle: Report, world: World) -> None:
    compose_week(bulletin_config(world), world.later(), approve_first=False)
    mail = in_doubt(world)
    world.inbox.add(bounce(world, mail, **{DANA.email: LISTS[1]}))
    world.read()
    assert reloaded(mail).state == OutgoingState.SENT
    assert mail.transitions.order_by("pk").last().by == "bounce"  # type: ignore[union-attr]
    world.read()
    assert not PendingReference.objects.exists()


def test_one_that_some_have_got_is_not_written_anew(v5_6: None) -> None:
    run("report", "v5.6", "--hold")
    OutgoingMail.objects.update(attempts=1, settled=[LISTS[0]])
    before = bytes(OutgoingMail.objects.get().raw)
    with pytest.raises(CommandError, match="is already held"):
        run("report", "v5.6", "--hold")
    assert bytes(OutgoingMail.objects.get().raw) == before


def test_one_that_was_cancelled_can_be_sent_after_all(v5_6: None) -> None:
    run("report", "v5.6", "--hold")
    mail = OutgoingMail.objects.get()
    assert act(mail, "cancel")
    run("report", "v5.6", "--hold")
    assert reloaded(mail).state == OutgoingState.HELD


def test_what_no_author_was_told_of_is_in_no_digest(cycle: Report, world: World) -> None:
    Report.objects.update(reported_at=None)
    assert digest.of_week("v9.1", bulletin_config(world), world.now) is None


def test_a_mark_in_prose_does_not_end_the_mail(v5_6: None, world: World) -> None:
    prose.write("report v5.6", "introduction", "Summary\n--\nmore", "kim", world.now)
    run("report", "v5.6", "--hold")
    assert OutgoingMail.objects.get().body.splitlines().count("-- ") == 1


# --- Subscriptions: asked for by oneself, mailed when something changed, ended by one click; and tables as feeds ---

CONFIG = ComposeConfig()


@pytest.fixture
def mira(db: None) -> User:
    return User.objects.create_user("mira", "mira@lab.example", first_name="Mira", last_name="Novak")


def mails(world: World, hours: float = 1) -> list[OutgoingMail]:
    """What the next round composes."""
    before = set(OutgoingMail.objects.values_list("pk", flat=True))
    compose_subscriptions(world.settings, world.later(hours), CONFIG, approve_first=False)
    return list(OutgoingMail.objects.exclude(pk__in=before))


def change(world: World, report: Report) -> None:
    event = EventData(f"n{world.later()}", EventKind.NOTED, world.now, actor="toni", remark=f"a note {world.now}")
    event_log.record([event_log.event_row(report, event, world.now)])


def test_from_a_search_to_a_mail_to_its_end(world: World, mira: User, client: Client) -> None:
    report = world.report("mm: scan more")
    client.force_login(mira)
    page = client.get("/search/?q=subsystem:mm").content.decode()
    assert '<a href="/subscriptions/?q=subsystem%3Amm">by mail</a>' in page
    assert 'value="subsystem:mm"' in client.get("/subscriptions/?q=subsystem%3Amm").content.decode()
    assert client.post("/subscriptions/add/", {"q": "subsystem:mm", "often": "at once"}).status_code == 302
    Subscription.objects.update(mailed_until=world.now, created_at=world.now)
    assert mails(world) == []  # nothing has changed since
    change(world, report)
    [mail] = mails(world)
    assert (mail.state, mail.reason, mail.recipients) == ("approved", "", ["mira@lab.example"])
    read = parse(bytes(mail.raw))
    assert read.subject == "1 report changed: subsystem:mm"
    assert "-30.0%" in read.text
    assert report.culprit.sha[:10] in read.text
    assert max(map(len, (each for each in read.text.splitlines() if "://" not in each))) <= 78
    assert mails(world) == []  # once
    raw = bytes(mail.raw).decode()
    assert "List-Unsubscribe-Post: List-Unsubscribe=One-Click" in raw
    found = re.search(r"^List-Unsubscribe: <[^>]*(/unsubscribe/[^>]+)>, <mailto:", raw, re.M)
    assert found
    assert found[1] in read.text
    stranger = Client(enforce_csrf_checks=True)
    assert "End the mails about" in stranger.get(found[1]).content.decode()  # a program that follows links ends nothing
    assert Subscription.objects.exists()
    posted = stranger.post(found[1], "List-Unsubscribe=One-Click", content_type="application/x-www-form-urlencoded")
    assert (posted.status_code, Subscription.objects.exists()) == (200, False)
    assert stranger.post(found[1]).status_code == 200
    change(world, report)
    assert mails(world) == []


def test_daily_is_once_a_day(world: World, mira: User) -> None:
    report = world.report("mm: scan more")
    subscriptions.add_subscription(mira, "subsystem:mm", "daily", world.now)
    change(world, report)
    assert mails(world, 20) == []
    change(world, report)
    [mail] = mails(world, 4)
    assert mail.subject == "Daily: 1 report changed: subsystem:mm"
    assert mails(world, 30) == []


def test_escalations_by_the_week(world: World, mira: User, client: Client) -> None:
    report = world.report("mm: scan more")
    client.force_login(mira)
    assert client.post("/subscriptions/add/", {"escalations": "yes", "often": "weekly"}).status_code == 302
    Subscription.objects.update(mailed_until=world.now, created_at=world.now)
    assert mails(world, 24) == []
    Report.objects.filter(pk=report.pk).update(reported_at=world.now - timedelta(days=20), blocks="v9.1")
    [mail] = mails(world, 24 * 7)
    assert mail.subject == "Weekly: 2 regressions that need attention"
    assert "Blocking a release (1)" in mail.body
    assert report.culprit.sha[:10] in mail.body


@pytest.mark.parametrize("mailing", [Mailing.BOUNCING, Mailing.OPTED_OUT, Mailing.STOPPED])
def test_who_gets_no_mail_gets_none_of_these(world: World, mira: User, mailing: Mailing) -> None:
    report = world.report("mm: scan more")
    subscriptions.add_subscription(mira, "subsystem:mm", "at once", world.now)
    Correspondent.objects.create(address=mira.email, mailing=mailing, since=world.now)
    change(world, report)
    assert mails(world) == []


def test_one_bad_subscription_keeps_no_other(world: World, mira: User) -> None:
    report = world.report("mm: scan more")
    subscriptions.add_subscription(mira, "state:burnt", "at once", world.now - timedelta(days=1))
    subscriptions.add_subscription(mira, "subsystem:mm", "at once", world.now)
    change(world, report)
    assert [mail.subject for mail in mails(world)] == ["1 report changed: subsystem:mm"]


@pytest.mark.parametrize(
    ("posted", "words"),
    [
        ({"q": "", "often": "daily"}, "q: expected what to search for"),
        ({"q": "state:burnt", "often": "daily"}, "state: expected"),
        ({"q": "mm", "often": "hourly"}, "often: expected at once, daily, weekly; found 'hourly'"),
        ({"q": "x" * 501, "often": "daily"}, "500 characters"),
    ],
)
def test_what_is_wrong_is_said(mira: User, client: Client, posted: dict[str, str], words: str) -> None:
    client.force_login(mira)
    answer = client.post("/subscriptions/add/", posted)
    assert (answer.status_code, words in answer.content.decode()) == (400, True)
    assert not Subscription.objects.exists()


def test_limits_and_rights(mira: User, client: Client, db: None) -> None:
    assert client.post("/subscriptions/add/", {"q": "mm", "often": "daily"})["Location"].startswith("/sign-in/")
    client.force_login(mira)
    for number in range(subscriptions.MOST + 1):
        last = client.post("/subscriptions/add/", {"q": f"word{number}", "often": "daily"})
    assert (last.status_code, "which is the most" in last.content.decode()) == (400, True)
    assert client.post("/subscriptions/add/", {"q": "word1", "often": "weekly"}).status_code == 302  # changed
    assert Subscription.objects.count() == subscriptions.MOST
    row = Subscription.objects.get(query="word1")
    assert row.often == "weekly"
    other = Client()
    other.force_login(User.objects.create_user("eve", ""))
    other.post(f"/subscriptions/{row.pk}/end/")
    assert Subscription.objects.filter(pk=row.pk).exists()
    assert "no email address" in other.post("/subscriptions/add/", {"q": "mm", "often": "daily"}).content.decode()
    client.post(f"/subscriptions/{row.pk}/end/")
    assert not Subscription.objects.filter(pk=row.pk).exists()
    unknown = client.get("/unsubscribe/forged:token/").content.decode()
    assert "No subscription has this link" in unknown
    assert "you will get no more mail" not in unknown, "the subscription of a link cut short goes on"


# --- tables as files ---


@pytest.mark.parametrize("path", ["/search.{}?q=subsystem:mm", "/subsystem/mm/.{}", "/author/dana@dev.example/.{}"])
def test_searches_and_names_as_files(client: Client, db: None, path: str) -> None:
    line(1, subsystem="mm", author="dana@dev.example", title="mm: scan <b>more</b>", change=-30.0)
    line(2, subsystem="fs", author="lee@dev.example", title="fs: another")
    line(3, subsystem="mm", author="dana@dev.example", title="mm: fixed", state="fixed")
    expected = 2 if "search" in path else 1
    assert len(client.get(path.format("json")).json()["reports"]) == expected
    rows = list(csv.DictReader(io.StringIO(client.get(path.format("csv")).getvalue().decode(), newline="")))
    assert (len(rows), {row["section"] for row in rows}) == (expected, {"reports"})
    assert "scan <b>more</b>" in client.get(path.format("txt")).content.decode()
    assert client.get(path.format("md")).status_code == 200
    feed = feedparser.parse(client.get(path.format("atom")).content)
    assert (feed.bozo, len(feed.entries)) == (False, expected)
    assert ".atom" in next(each["href"] for each in feed.feed.links if each["rel"] == "self")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/search.json", 400),
        ("/search.json?q=state:burnt", 400),
        ("/subsystem/nothing/.json", 404),
        ("/subsystem/a%00b/.json", 404),
        ("/machine/m1/.pdf/", 404),
    ],
)
def test_files_that_are_not_there(client: Client, db: None, path: str, status: int) -> None:
    assert client.get(path).status_code == status


def test_pages_name_their_feeds(client: Client, db: None) -> None:
    line(1, subsystem="mm", machine="m1")
    for path in ("/subsystem/mm/", "/search/?q=subsystem:mm"):
        page = client.get(path).content.decode()
        assert 'rel="alternate" type="application/atom+xml"' in page
        links: list[Any] = re.findall(r'href="([^"]+\.(?:atom|csv|txt|json|md)[^"]*)"', page)
        assert {client.get(each.replace("&amp;", "&")).status_code for each in links} == {200}


def test_a_reply_that_is_read_after_a_round_is_in_the_next(world: World, mira: User) -> None:
    report = world.report("mm: scan more")
    subscriptions.add_subscription(mira, "subsystem:mm", "at once", world.later())
    world.post(DANA, "I am looking into it.", to=message_id(report))
    assert mails(world) == []
    world.read()
    assert len(mails(world)) == 1
    assert mails(world) == []


def test_they_are_nobody_elses_business(world: World, mira: User, client: Client) -> None:
    report = world.report("mm: scan more")
    row = subscriptions.add_subscription(mira, "subsystem:mm", "at once", world.later())
    change(world, report)
    [mail] = mails(world)
    mail_transitions.mark_sent(mail.message_id, world.now, world.now)
    for path in (f"/outbox/{mail.pk}/", f"/outbox/{mail.pk}/raw/"):
        assert client.get(path).status_code == 404
    for path in ("/outbox/", "/outbox/?state=sent", "/outbox/?all"):
        assert "subsystem:mm" not in client.get(path).content.decode()
    change(world, report)
    [waiting] = mails(world)
    subscriptions.end_subscription(row, world.now)
    waiting.refresh_from_db()
    assert waiting.state == "cancelled"
