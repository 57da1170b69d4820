"""What people do at the triage pages: who may do what, views that are kept, and what is said in a thread."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.test import Client

from bot.notifications.follow_ups import compose_follow_ups
from bot.notifications.report import compose_due
from tests.tracker.lines import line
from tests.world import DANA, World, message_id
from tracker.models import (
    Commit,
    Event,
    OutgoingMail,
    Report,
    SavedView,
)
from tracker.services import mail_transitions


@pytest.fixture
def triage_actions_toni(db: None) -> Client:
    """A triager."""
    user = User.objects.create_user("toni", "toni@lab.example")
    user.groups.add(Group.objects.get(name="triager"))
    client = Client()
    client.force_login(user)
    return client


def rows(*reports: Report) -> list[str]:
    return [f"{each.pk}:{Report.objects.get(pk=each.pk).revision}" for each in reports]


def text(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.content[:300]
    return answer.content.decode()


# --- who may what ---------------------------------------------------------------------------------


def test_strangers_read_and_change_nothing(client: Client, db: None) -> None:
    report = line(1, merged_release="v5.6")
    page = text(client, "/v5.6/")
    assert 'name="row"' not in page
    answer = client.post("/triage/change/", {"do": "working", "row": rows(report)})
    assert (answer.status_code, answer["Location"]) == (302, "/sign-in/?next=/triage/change/")
    assert client.post("/views/", {"name": "x"}).status_code == 302
    assert Report.objects.get().state == "no_response"
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.create_superuser("kim"))
    assert strict.post("/triage/change/", {"do": "working", "row": rows(report)}).status_code == 403


def test_a_maintainer_changes_what_he_was_told_of(client: Client, db: None) -> None:
    user = User.objects.create_user("dana@dev.example", "Dana@dev.example")
    client.force_login(user)
    own, received, other = line(1, authors=["dana@dev.example"]), line(2, recipients=["dana@dev.example"]), line(3)
    client.post("/triage/change/", {"do": "working", "row": rows(own, received, other)})
    assert [each.state for each in Report.objects.order_by("pk")] == ["working", "working", "no_response"]
    assert [each.role for each in Event.objects.order_by("pk")] == ["author", "maintainer"]
    event = Event.objects.order_by("pk")[0]
    assert client.post(f"/report/{own.culprit.sha}/take-back/", {"key": event.key}).status_code == 403
    assert text(client, f"/report/{other.culprit.sha}/").count("<option") == 0


def test_a_timeline_is_taken_back_by_triagers(triage_actions_toni: Client, world: World) -> None:
    report = world.report()
    world.post(DANA, "I am working on a fix.", to=message_id(report))
    world.read()
    assert Report.objects.get().state == "working"
    event = Event.objects.get(kind="working")
    triage_actions_toni.post(f"/report/{report.culprit.sha}/take-back/", {"key": event.key})
    assert Report.objects.get().state != "working"
    page = text(triage_actions_toni, f"/report/{report.culprit.sha}/")
    assert "Undone." in page
    assert 'class="reversed"' in page


def test_views_are_kept_and_shared(triage_actions_toni: Client, client: Client) -> None:
    line(1, merged_release="v5.6", state="working")
    triage_actions_toni.post("/views/", {"name": "in work", "query": "state=working", "next": "/v5.6/"})
    assert "in work" in text(triage_actions_toni, "/v5.6/")
    assert "in work" not in text(client, "/v5.6/")
    triage_actions_toni.post("/views/", {"name": "in work", "query": "state!=working", "shared": "on"})
    assert '<a href="?state!=working">in work</a>' in text(client, "/v5.6/")
    response = triage_actions_toni.post("/views/", {"name": "bad", "query": "state=sleeping"})
    assert (response.status_code, b"state: expected" in response.content) == (400, True)
    assert triage_actions_toni.post("/views/", {"name": " ", "query": ""}).status_code == 400
    view = SavedView.objects.get()
    eve = Client()
    eve.force_login(User.objects.create_user("eve"))
    eve.post(f"/views/{view.pk}/delete/")
    assert SavedView.objects.exists()
    triage_actions_toni.post(f"/views/{view.pk}/delete/", {"next": "https://evil.example/"})
    assert not SavedView.objects.exists()
    assert triage_actions_toni.post(f"/views/{view.pk}/delete/", {"next": "https://evil.example/"})["Location"] == "/"


# --- said on the list, too ------------------------------------------------------------------------


def test_what_is_done_can_be_said_in_the_thread(world: World, triage_actions_toni: Client) -> None:
    report = world.report()
    posted = {"do": "note", "row": rows(report), "argument": "It is the <lock>, see v9.1.", "notify_thread": "on"}
    triage_actions_toni.post("/triage/change/", posted)
    triage_actions_toni.post(
        "/triage/change/", {"do": "block", "row": rows(report), "release": "v9.1"}
    )  # not notify_thread
    compose_follow_ups(world.settings, world.later(), approve_first=False)
    mail = OutgoingMail.objects.exclude(purpose="report").get()
    assert (mail.state, mail.purpose) == ("approved", f"said {Event.objects.get(kind='noted').key}")
    assert "toni updated this report: noted." in mail.body
    assert '  "It is the <lock>, see v9.1."' in mail.body
    assert max(len(each) for each in mail.body.splitlines() if report.culprit.sha not in each) <= 78
    assert f"In-Reply-To: <{message_id(report)}>".encode() in bytes(mail.raw)
    compose_follow_ups(world.settings, world.later(), approve_first=False)
    assert OutgoingMail.objects.exclude(purpose="report").count() == 1  # and once
    mail_transitions.mark_sent(mail.message_id, world.now, world.now)
    compose_due(world.settings, world.later())
    compose_follow_ups(world.settings, world.later(), approve_first=False)
    assert OutgoingMail.objects.count() == 2


def test_what_was_taken_back_before_it_went_out_is_not_said(world: World, triage_actions_toni: Client) -> None:
    report = world.report()
    triage_actions_toni.post("/triage/change/", {"do": "disputed", "row": rows(report), "notify_thread": "on"})
    batch = Event.objects.get(kind="disputed").batch
    compose_follow_ups(world.settings, world.later())
    assert OutgoingMail.objects.exclude(purpose="report").get().state == "composed"
    triage_actions_toni.post("/triage/undo/", {"batch": batch})
    compose_follow_ups(world.settings, world.later())
    assert OutgoingMail.objects.exclude(purpose="report").get().state == "cancelled"


def test_an_enqueued_task_may_be_lost(
    settings: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import bot.tasks
    from bot.celery import app
    from tracker.services.enqueue import enqueue

    enqueued: list[str] = []
    monkeypatch.setattr(app, "send_task", lambda name, **more: enqueued.append(name))
    enqueue("send_mail")
    assert enqueued == ["send_mail"]
    assert (bot.tasks.send_mail.name, bot.tasks.take_results.name) == ("send_mail", "take_results")

    def gone(name: str, **more: Any) -> None:
        raise ConnectionRefusedError("nobody there")

    monkeypatch.setattr(app, "send_task", gone)
    enqueue("send_mail")
    assert "send_mail: could not wake a worker: nobody there" in caplog.text


def test_a_long_name_is_there_whatever_else_is_asked(client: Client, db: None) -> None:
    from tracker.services.report_summary import clipped

    line(1, merged_release="v5.6", machine=clipped("m" * 130))
    assert "mm: change 1" in text(client, f"/v5.6/?machine={'m' * 130}")
    assert "No reports." in text(client, f"/v5.6/?machine={'m' * 130}&state=fixed")


def test_who_is_signed_out_is_told_in_a_line(client: Client, db: None) -> None:
    answer = client.post("/triage/change/", {"do": "working", "row": "1:0"}, headers={"HX-Request": "true"})
    assert (answer.status_code, answer["Content-Type"]) == (401, "text/plain; charset=utf-8")
    assert "signed out, so nothing was changed" in answer.content.decode()


def test_an_answer_by_hand_ends_a_silence(world: World) -> None:
    report = world.report()
    before = Report.objects.get()
    maintainer = Client()
    maintainer.force_login(User.objects.create_user("dana", "dana@dev.example"))
    maintainer.post("/triage/change/", {"do": "responded", "row": rows(report)})
    after = Report.objects.get()
    assert before.last_human_reply_at is not None
    assert after.last_human_reply_at is not None
    assert after.last_human_reply_at > before.last_human_reply_at
    assert after.revision > before.revision
    call_command("refold", verbosity=0)
    assert Report.objects.get().last_human_reply_at == after.last_human_reply_at


def test_an_author_who_is_learned_later_has_the_report_on_his_page(world: World, client: Client) -> None:
    sha = world.commit("mm: a")
    world.ingest(world.result(sha, "mm: a"))
    Commit.objects.update(author_email="")  # as of a report that came by mail
    call_command("refold", verbosity=0)
    assert Report.objects.get().author == ""
    again = world.result(sha, "mm: a", id="again", machine={"id": "lab7-m2", "cpus": 8})
    world.ingest(again)
    assert Report.objects.get().author == "dana@dev.example"
    assert sha[:10] in text(client, "/author/Dana@dev.example/?state=open&state=closed")
