"""From the bytes of a mail to the text in the triage table."""

from __future__ import annotations

import pytest
from django.test import Client

from bot.notifications.report import compose_due
from tests.world import DANA, DIFF, LEE, World, message_id, state, status_text
from tracker.models import Decision, Event, Message, OutgoingMail, RawMessage, Report, Suggestion
from tracker.services import report_actions

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
