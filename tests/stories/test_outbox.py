"""Mail that waits in the outbox is checked again before it is sent."""

from __future__ import annotations

import html
import io
import re
from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from bot.compose.mail import edited
from bot.compose.policy import Action, Policy, PolicyRule, QuietHours, Rates
from bot.mail.message import parse
from bot.mail.settings import read_mailmap
from bot.notifications import report as composer
from bot.notifications.follow_ups import compose_follow_ups
from bot.notifications.report import compose_due
from bot.outbox import sender
from bot.outbox.drafts import ComposeConfig, MailCalendar, excluded_addresses
from bot.outbox.reconcile import RecoveryPolicy, resolve
from bot.outbox.sender import claim_due, has_due
from bot.outbox.transports import Server
from bot.results.intake import take_dropped
from tests.stories.test_thread_mail import OTHER, mails, measured, still_there
from tests.support.outbox import act as outbox_act
from tests.support.outbox import claim, reloaded, send, states_of
from tests.support.servers import Moody
from tests.support.world import DANA, TITLE, World, message_id
from tracker.domain.events import EventData, EventKind
from tracker.models import (
    Archive,
    BisectResult,
    Commit,
    Correspondent,
    Mailing,
    OutgoingMail,
    OutgoingState,
    Purpose,
    Report,
    SendingStop,
)
from tracker.services import event_log, mail_transitions

# --- The outbox pages: a mail as its recipient sees it, the reason for each recipient, and why it is held ---


@pytest.fixture
def mail(world: World) -> OutgoingMail:
    Correspondent.objects.create(address="lee@dev.example", mailing=Mailing.OPTED_OUT, note="by mail", since=world.now)
    result = world.result("b" * 40, "mm: charge <b>late</b>")
    result["first_bad"]["trailers"] = [{"tag": "Reviewed-by", "value": "Lee Park <lee@dev.example>"}]
    world.ingest(result)
    compose_due(world.settings, world.now)
    return OutgoingMail.objects.get()


def test_a_mail_as_its_receiver_sees_it(world: World, mail: OutgoingMail, client: Client, admin_client: Client) -> None:
    hidden = client.get(f"/outbox/{mail.pk}/").content.decode()
    assert "shown once it has been sent" in hidden
    assert "Perfwork noticed" not in hidden
    assert "dana@dev.example" not in hidden
    assert client.get(f"/outbox/{mail.pk}/raw/").status_code == 403
    assert "Perfwork noticed" in admin_client.get(f"/outbox/{mail.pk}/").content.decode()
    assert admin_client.get(f"/outbox/{mail.pk}/raw/").content == bytes(mail.raw)
    mail_transitions.mark_sent(mail.message_id, world.now, world.now)
    page = client.get(f"/outbox/{mail.pk}/").content.decode()
    for words in (
        "[LKP] [mm] bbbbbbbbbb: -30.0% regression",
        "Perfwork noticed a -30.0% regression of vm-scan.ops_per_sec on:",
        "mm: charge &lt;b&gt;late&lt;/b&gt;",
        "Dana Brook &lt;dana@dev.example&gt;</th><td>To</td><td>author",
        "&lt;perf-reports@lists.example.org&gt;</th><td>Cc</td><td>our own list",
        f"Message-ID: &lt;{mail.message_id}&gt;",
    ):
        assert words in page, words
    assert "lee@dev.example" not in page
    assert "opted out: by mail" in admin_client.get(f"/outbox/{mail.pk}/").content.decode()
    raw = client.get(f"/outbox/{mail.pk}/raw/")
    assert raw.content == bytes(mail.raw)
    assert raw["Content-Type"].startswith("text/plain")
    assert client.get("/outbox/99999/").status_code == 404


# --- An operator edits the text before anybody gets it ---


def edit(client: Client, mail: OutgoingMail, text: str, **more: str) -> str:
    mail.refresh_from_db()
    posted = {"text": text.replace("\n", "\r\n"), "version": mail.version, **more}
    answer = client.post(f"/outbox/{mail.pk}/edit/", posted, follow=True)
    mail.refresh_from_db()
    return html.unescape(answer.content.decode())


def with_remark(mail: OutgoingMail, remark: str = "We think that this one is real.") -> str:
    return mail.body.replace("Details are as below", f"{remark}\n\nDetails are as below", 1)


def test_an_edited_text_is_what_is_sent(mail: OutgoingMail, admin_client: Client, moody: tuple[Moody, Server]) -> None:
    raw = bytes(mail.raw)
    before = parse(raw)
    form = html.unescape(admin_client.get(f"/outbox/{mail.pk}/edit/").content.decode())
    assert mail.body in form
    assert f"/outbox/{mail.pk}/edit/" in admin_client.get(f"/outbox/{mail.pk}/").content.decode()
    page = edit(admin_client, mail, with_remark(mail))
    assert "The text is changed. The mail waits for approval." in page
    assert "<dt>Edited</dt><dd>by admin</dd>" in page
    assert (mail.state, mail.edited_by) == ("composed", "admin")
    after = parse(bytes(mail.raw))
    assert "We think that this one is real." in after.text
    assert replace(after, text="", first_part=0) == replace(before, text="", first_part=0)
    assert edited(bytes(mail.raw), mail.body.replace("We think that this one is real.\n\n", "")) == raw
    outbox_act(mail, "approve")
    send(moody[1])
    (sent,) = moody[0].taken
    assert b"We think that this one is real." in sent


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("-30.0%", "-50.0%", "must stay as it was measured: the change"),
        ("\n-- \n", "\n", "the signature delimiter is missing"),
        ("Details are as below", "#syz invalid\nDetails are as below", "programs would act on a line that is not ours"),
        ("Details are as below", "x" * 90 + "\nDetails are as below", "a line is longer than 78 columns"),
        ("Details are as below", "TODO\nDetails are as below", "a placeholder was not filled in: TODO"),
        ("Details are as below", "\u202eabc\nDetails are as below", "it contains a control character, U+202E"),
        ("| Closes:", "| Link:", "must stay as it was measured: the tags"),
    ],
)
def test_what_the_lint_refuses_is_said_and_kept(
    mail: OutgoingMail, admin_client: Client, old: str, new: str, says: str
) -> None:
    raw, text = bytes(mail.raw), mail.body.replace(old, new)
    assert text != mail.body
    page = edit(admin_client, mail, text)
    assert says in page
    assert text.replace("\u202e", "[U+202E]") in page.replace("\r\n", "\n")
    assert (bytes(mail.raw), mail.edited_by) == (raw, "")


def test_no_two_write_over_each_other_and_no_round_over_them(
    world: World, mail: OutgoingMail, admin_client: Client
) -> None:
    seen = mail.version
    edit(admin_client, mail, with_remark(mail))
    page = edit(admin_client, mail, with_remark(mail, "Another remark."), version=seen)
    assert "the mail was changed in the meantime" in page
    assert "Another remark." in page
    assert "Another remark." not in mail.body
    OutgoingMail.objects.update(stale=True, looked_at=None)
    compose_due(world.settings, world.later())
    mail.refresh_from_db()
    assert "We think that this one is real." in mail.body
    assert (mail.state, mail.stale) == ("held", False)
    assert mail.reason.startswith("more is known than the edited text says")
    edit(admin_client, mail, "", do="again")
    compose_due(world.settings, world.later())
    mail.refresh_from_db()
    assert "We think" not in mail.body
    assert (mail.state, mail.edited_by, mail.stale) == ("held", "", False)
    assert mail.reason == "the edited text was dropped"


def test_who_may_not_send_edits_nothing_and_what_left_stays(
    mail: OutgoingMail, client: Client, moody: tuple[Moody, Server]
) -> None:
    assert client.get(f"/outbox/{mail.pk}/edit/").status_code in (302, 403)
    client.force_login(User.objects.create_user("tom"))
    assert client.post(f"/outbox/{mail.pk}/edit/", {"text": "x", "version": mail.version}).status_code == 403
    client.force_login(User.objects.create_superuser("root"))
    outbox_act(mail, "approve")
    send(moody[1])
    assert "no longer waiting" in client.get(f"/outbox/{mail.pk}/edit/").content.decode()
    raw = bytes(mail.raw)
    assert "no longer waiting" in edit(client, mail, with_remark(mail))
    assert bytes(mail.raw) == raw


def test_the_list_of_mails(world: World, mail: OutgoingMail, client: Client) -> None:
    page = client.get("/outbox/").content.decode()
    assert "regression</a>" in page
    assert "composed" in page
    assert "No mail." in client.get("/outbox/?state=held").content.decode()
    response = client.get("/outbox/?state=lost")
    assert response.status_code == 400
    assert response.content.startswith(b"state: expected one of composed, held, approved")
    assert client.get("/outbox/?before=x").status_code == 400


def test_the_pages_ask_a_constant_number_of_queries(
    world: World, mail: OutgoingMail, client: Client, django_assert_num_queries: Any
) -> None:
    for number in range(5):
        world.ingest(world.result(f"{number}" * 40, f"mm: {number}", id=f"n{number}"))
    compose_due(world.settings, world.now)
    with django_assert_num_queries(9):  # a state each, how many wait, and whether all is stopped
        client.get("/outbox/")
    with django_assert_num_queries(2):  # the mails, and how many wait
        client.get("/outbox/?state=composed")
    with django_assert_num_queries(3):  # the mail, its record, and whose names that has
        client.get(f"/outbox/{mail.pk}/")


def test_the_command_tells_why_everybody_gets_it(mail: OutgoingMail) -> None:
    out = io.StringIO()
    call_command("outbox", "show", str(mail.pk), stdout=out)
    shown = out.getvalue()
    assert "Subject: [LKP] [mm] bbbbbbbbbb: -30.0% regression" in shown
    assert "To    Dana Brook <dana@dev.example>  author" in shown
    assert "Cc    perf-reports@lists.example.org  our own list" in shown
    assert "out   Lee Park <lee@dev.example>  opted out: by mail" in shown
    assert shown.index("Recipients:") > shown.index("Perfwork noticed")


def test_a_faulty_mail_is_held_and_says_why(world: World, admin_client: Client) -> None:
    result = world.result("b" * 40, "mm: a")
    result["first_bad"]["date"] = "2019-01-01T00:00:00Z"
    world.ingest(result)
    compose_due(world.settings, world.now, approve_first=False)
    mail = OutgoingMail.objects.get()
    assert (mail.state, mail.reason) == ("held", "the culprit is from 2019-01-01, older than 365 days")
    page = admin_client.get(f"/report/{Report.objects.get().culprit.sha[:12]}/", follow=True).content.decode()
    assert "Not reported yet" in page  # so it waits for the lab, and for nobody whom no mail told
    assert "Waiting for <bdi>the lab</bdi></b>: not reported yet" in page
    assert "older than 365 days" in admin_client.get("/outbox/").content.decode()


def test_why_a_mail_is_held_is_for_those_who_send(world: World, client: Client, db: None) -> None:
    note = "550 5.1.1 left the company"
    Correspondent.objects.create(address=DANA.email, mailing=Mailing.BOUNCING, since=world.now, note=note)
    sha = world.commit("mm: x")
    world.ingest(world.result(sha, "mm: x"))
    compose_due(world.settings, world.later(), approve_first=False)
    mail = OutgoingMail.objects.get()
    assert (mail.state, note in mail.reason) == ("held", True)
    for path in ("/outbox/", f"/outbox/{mail.pk}/", f"/report/{sha}/"):
        assert note not in client.get(path).content.decode(), path


# --- Operators: what they see of mail that waits, failed or is in doubt, and what they can do about it ---

S = OutgoingState


@pytest.fixture
def operator(db: None) -> Client:
    """Logged in, with the one permission that acting needs."""
    user = User.objects.create_user("kim")
    user.user_permissions.add(Permission.objects.get(codename="change_outgoingmail"))
    client = Client()
    client.force_login(user)
    return client


def compose(world: World, number: int = 1, *, approve_first: bool = True) -> list[OutgoingMail]:
    for each in range(number):
        world.ingest(world.result(f"{each + 1:040x}", f"mm: {each}", id=f"n{each}"))
    compose_due(world.settings, world.now, approve_first=approve_first)
    return list(OutgoingMail.objects.order_by("pk"))


def ask(client: Client, action: str, *mails: OutgoingMail) -> str:
    """The page on which it is said what is about to happen."""
    return client.get("/outbox/act/", {"verb": action, "id": [mail.pk for mail in mails]}).content.decode()


def act(client: Client, action: str, *mails: OutgoingMail, reason: str = "") -> str:
    data = {"verb": action, "id": [mail.pk for mail in mails], "reason": reason}
    return client.post("/outbox/act/", data, follow=True).content.decode()


def test_mail_is_approved_after_a_second_look(world: World, operator: Client, moody: tuple[Moody, Server]) -> None:
    first, second, third = compose(world, 3)
    page = operator.get("/outbox/").content.decode()
    assert "To be decided: 3 waiting for approval." in page
    assert page.count('type="checkbox"') == 3
    confirmation = ask(operator, "approve", first, second)
    assert "Approve 2 mails?" in confirmation
    assert "They are sent as soon as they are due." in confirmation
    assert "dana@dev.example" in confirmation
    assert [reloaded(mail).state for mail in (first, second)] == [S.COMPOSED] * 2  # asking changes nothing
    outcome = act(operator, "approve", first, second, reason="numbers checked")
    assert "2 mails approved." in outcome
    assert [reloaded(mail).state for mail in (first, second, third)] == [S.APPROVED, S.APPROVED, S.COMPOSED]
    assert first.transitions.last().by == "kim"  # type: ignore[union-attr]
    assert first.transitions.last().words == "numbers checked"  # type: ignore[union-attr]
    send(moody[1])
    for_all = Client().get(f"/outbox/{first.pk}/").content.decode()
    assert "by an operator" in for_all
    assert "kim" not in for_all
    assert "sent" in operator.get(f"/outbox/{first.pk}/").content.decode()
    assert states_of(first) == ["composed", "approved", "sending", "sent"]
    act(operator, "cancel", third)
    assert "No mail needs a decision." in operator.get("/outbox/").content.decode()
    late = act(operator, "cancel", first)
    assert "0 mails cancelled; 1 not changed" in late
    assert reloaded(first).state == S.SENT


def test_who_approves_sees_who_is_left_out(world: World, operator: Client) -> None:
    (mail,) = compose(world, 1)
    OutgoingMail.objects.update(people=[*mail.people, ["gone@x.example", "Gone Girl", "", "its mail bounces"]])
    page = operator.get(f"/outbox/{mail.pk}/").content.decode()
    assert re.search(r"Left out.*gone@x.example.*its mail bounces", page, re.S)


def test_what_a_server_said_of_a_failed_mail_is_shown_and_it_is_sent_again(
    world: World, operator: Client, moody: tuple[Moody, Server]
) -> None:
    (mail,) = compose(world, approve_first=False)
    moody[0].answer = "554 5.7.1 <b>we</b> do not like it"
    send(moody[1])
    page = operator.get("/outbox/").content.decode()
    assert "554 5.7.1 &lt;b&gt;we&lt;/b&gt; do not like it" in page
    assert "A server rejected these, with this error." in page
    moody[0].answer = "250 fine"
    assert "may see it twice" in ask(operator, "resend", mail)
    assert "1 mail queued again." in act(operator, "resend", mail)
    send(moody[1])
    assert reloaded(mail).state == S.SENT


def test_of_a_doubt_it_is_said_what_is_known(world: World, operator: Client, moody: tuple[Moody, Server]) -> None:
    (mail,) = compose(world, approve_first=False)
    moody[0].vanish = True
    send(moody[1])
    assert "No archive that could hold a copy is configured" in operator.get("/outbox/").content.decode()
    Archive.objects.create(path="/srv/lore/perf", read_at=timezone.now(), newest_at=timezone.now())
    Archive.objects.create(path="/srv/lore/broken", error="no such file")
    for page in (operator.get("/outbox/"), operator.get(f"/outbox/{mail.pk}/")):
        text = page.content.decode()
        assert "the connection broke after the last dot" in text
        assert "/srv/lore/perf</code> last read" in text
        assert "can't be read: no such file" in text
    assert "Transmission was about to complete at" in operator.get(f"/outbox/{mail.pk}/").content.decode()
    assert "These may already have been sent" in ask(operator, "resend", mail)


def test_a_stop_is_one_click_and_says_who_and_why(
    world: World, operator: Client, client: Client, moody: tuple[Moody, Server]
) -> None:
    compose(world, approve_first=False)
    operator.post("/outbox/stop/", {"do": "stop", "reason": "wrong <numbers>"})
    page = client.get("/outbox/").content.decode()
    assert "All sending is stopped" in page
    assert "by kim: wrong &lt;numbers&gt;" in page
    assert send(moody[1]) == {}
    operator.post("/outbox/stop/", {"do": "go"})
    assert "All sending is stopped" not in client.get("/outbox/").content.decode()
    assert SendingStop.objects.get().ended_by == "kim"
    assert sum(send(moody[1]).values()) == 1


def test_who_may_not_act_does_not(world: World, client: Client, operator: Client) -> None:
    (mail,) = compose(world)
    nobody = Client()
    nobody.force_login(User.objects.create_user("lee"))
    for action, path in (("approve", "/outbox/act/"), ("stop", "/outbox/stop/")):
        data = {"verb": action, "id": mail.pk, "do": "stop"}
        assert client.post(path, data).status_code == 302  # to the log-in
        assert nobody.post(path, data).status_code == 403
    assert Client(enforce_csrf_checks=True).post("/outbox/stop/", {"do": "stop"}).status_code == 403
    assert reloaded(mail).state == S.COMPOSED
    assert mail_transitions.stopped() is None
    page = client.get("/outbox/").content.decode()
    assert "checkbox" not in page
    assert "Sign in</a> to act on mail" in page


def test_odd_requests_are_refused_in_a_line(world: World, operator: Client) -> None:
    (mail,) = compose(world)
    for path, data, words in (
        ("/outbox/act/", {"verb": "destroy", "id": mail.pk}, b"verb: expected one of approve, hold, cancel, resend"),
        ("/outbox/act/", {"verb": "hold", "id": "x"}, b"id: expected a number; found 'x'"),
        ("/outbox/stop/", {"do": "what"}, b"do: expected stop or go; found 'what'"),
    ):
        answer = operator.post(path, data)
        assert answer.status_code == 400
        assert answer.content.startswith(words)
    assert operator.get("/outbox/stop/").status_code == 405
    assert "This action does not apply to any selected mail" in ask(operator, "approve")


def test_what_is_about_to_be_composed_again_is_not_approved(world: World, operator: Client) -> None:
    (mail,) = compose(world)
    OutgoingMail.objects.update(stale=True)
    assert "have been or will be composed again" in ask(operator, "approve", mail)
    assert "0 mails approved; 1 not changed" in act(operator, "approve", mail)


def test_operators_see_who_gets_no_mail(world: World, operator: Client, client: Client) -> None:
    words = "2026-11-21: 550 5.1.1 nobody"
    Correspondent.objects.create(address="p@dev.example", mailing=Mailing.BOUNCING, note=words, since=world.now)
    assert words in operator.get("/outbox/").content.decode()
    assert "p@dev.example" not in client.get("/outbox/").content.decode()


def test_a_long_outbox_costs_no_more(world: World, operator: Client, django_assert_max_num_queries: Any) -> None:
    compose(world, 25)
    with django_assert_max_num_queries(15):  # one of them for the header, now and then
        page = operator.get("/outbox/").content.decode()
    assert page.count('type="checkbox"') == 20
    assert "?state=composed" in page


# --- Mail at its edges: reports that change while their mail is composed or waits, limits, bounces, wrong settings
# ---


def waiting(world: World, sha: str = "b" * 40) -> OutgoingMail:
    """An approved mail that nobody has."""
    world.ingest(world.result(sha, f"mm: {sha[:2]}"))
    compose_due(world.settings, world.now, approve_first=False)
    return OutgoingMail.objects.get(report__culprit__sha=sha)


def say(world: World, kind: EventKind) -> None:
    report = Report.objects.get()
    event = EventData(key=f"{kind}:x", kind=kind, occurred_at=world.now, actor="toni")
    event_log.record([event_log.event_row(report, event, world.now)])


@pytest.mark.django_db
def test_a_report_that_is_invalid_does_not_leave_after_a_first_try_that_failed(world: World) -> None:
    mail = waiting(world)
    [claimed] = mail_transitions.claim([mail.pk], world.now, timedelta(minutes=5), "worker 1")
    mail_transitions.retry_later(claimed, world.now, "no route to host", "worker 1", no_server=True)
    say(world, EventKind.INVALID)
    compose_due(world.settings, world.later(), approve_first=False)
    assert OutgoingMail.objects.get().state == S.HELD


@pytest.mark.django_db
def test_what_left_though_it_was_invalid_is_withdrawn(world: World) -> None:
    mail = waiting(world)
    say(world, EventKind.INVALID)
    mail_transitions.mark_sent(mail.message_id, world.later(), world.now)
    assert compose_follow_ups(world.settings, world.later(2), approve_first=False) == 1


@pytest.mark.django_db
def test_a_report_that_changes_while_its_mail_is_composed_is_composed_in_the_next_round(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.ingest(world.result("b" * 40, "mm: a"))
    compose = composer.compose

    def meanwhile(*arguments: object) -> object:
        say(world, EventKind.INVALID)
        return compose(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(composer, "compose", meanwhile)
    compose_due(world.settings, world.now, approve_first=False)
    assert not OutgoingMail.objects.exists()


@pytest.mark.django_db
def test_subscriptions_take_no_report_its_place(world: World) -> None:
    mail = waiting(world)
    calendar = MailCalendar(Policy(per_author=1), world.now)
    assert calendar.due([], DANA.email) is not None
    OutgoingMail.objects.filter(pk=mail.pk).update(purpose=f"{Purpose.SUBSCRIPTION}1", report=None)
    assert MailCalendar(Policy(per_author=1), world.now).due([], DANA.email) is None


@pytest.mark.django_db
def test_a_bounce_is_of_one_address_and_an_opt_out_of_a_person(world: World) -> None:
    aliases = read_mailmap("Dana Brook <dana@dev.example> <dana@old.example>\n")
    row = Correspondent.objects.create(address="dana@old.example", mailing=Mailing.BOUNCING, since=world.now)
    assert set(excluded_addresses(aliases)) == {"dana@old.example"}
    Correspondent.objects.filter(pk=row.pk).update(mailing=Mailing.OPTED_OUT)
    assert set(excluded_addresses(aliases)) == {"dana@old.example", "dana@dev.example"}


@pytest.mark.django_db
def test_a_mail_that_waits_for_its_turn_keeps_no_other(world: World) -> None:
    limited = Rates(own={"@slow.example": 1.0})
    for number in range(1, 4):
        waiting(world, f"{number}" * 40)
    slow = OutgoingMail.objects.order_by("pk")[:2]
    for mail in slow:
        OutgoingMail.objects.filter(pk=mail.pk).update(recipients=["a@slow.example"])
    minute = timedelta(minutes=5)
    first = claim_due(world.now, minute, 1, "w", limited)
    second = claim_due(world.now, minute, 1, "w", limited)
    assert [mail.pk for mail in (*first, *second)] == [slow[0].pk, OutgoingMail.objects.latest("pk").pk]


@pytest.mark.django_db
def test_in_quiet_hours_mail_waits_for_their_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    mail, minutes = waiting(world), timedelta(minutes=5)
    other = waiting(world, "c" * 40)
    hour = world.now.hour
    quiet = QuietHours(time(hour), time((hour + 2) % 24))
    monkeypatch.setattr(sender, "BATCH", 1)
    assert not claim_due(world.now, minutes, 1, "w", quiet_hours=quiet)
    mail.refresh_from_db()
    assert mail.not_before == quiet.until(world.now)
    assert not has_due(world.now), "nor does any other mail wait for its turn until then: that would be a problem"
    claimed = claim_due(mail.not_before, minutes, 5, "w", quiet_hours=quiet)
    assert [row.pk for row in claimed] == [mail.pk, other.pk]


@pytest.mark.django_db
def test_whom_the_policy_never_mails_gets_nothing(world: World) -> None:
    policy = Policy(never=("linux-mm@kvack.org", DANA.email))
    world.ingest(world.result("c" * 40, "mm: a change"))
    compose_due(world.settings, world.now, config=ComposeConfig(policy=policy))
    mail = OutgoingMail.objects.get()
    assert not {"linux-mm@kvack.org", DANA.email} & set(mail.recipients)
    assert [DANA.email, "never mailed, by the policy"] in [[person[0], person[3]] for person in mail.people]
    assert set(excluded_addresses(world.settings.aliases, policy.never)) == set(policy.never)


@pytest.mark.django_db
def test_what_no_archive_can_show_is_left_to_a_person(world: World) -> None:
    mail = waiting(world)
    [claimed] = mail_transitions.claim([mail.pk], world.now, timedelta(minutes=5), "w")
    mail_transitions.begin_data(claimed, world.now)
    mail_transitions.mark_in_doubt(claimed, world.now, "lost after the last dot", "w")
    later = world.now + timedelta(days=2)
    Archive.objects.create(path=str(world.inbox.path), read_at=later)
    OutgoingMail.objects.update(settled=OutgoingMail.objects.get().lists)  # the list has it: only Dana waits
    assert resolve(RecoveryPolicy(resend=True), later) == 0


@pytest.mark.django_db
@pytest.mark.parametrize("code", ["530 5.7.0 Must issue a STARTTLS command first", "535 5.7.8 bad password"])
def test_a_server_that_is_set_wrongly_fails_no_mail(world: World, moody: tuple[Moody, Server], code: str) -> None:
    first, second = waiting(world, "b" * 40), waiting(world, "c" * 40)
    moody[0].mail = code
    send(moody[1])
    assert states_of(first) == ["approved", "sending", "approved"]
    assert OutgoingMail.objects.get(pk=second.pk).state == S.APPROVED


@pytest.mark.django_db
def test_an_entry_that_another_worker_took_ends_nothing(
    world: World, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop = world.directory / "drop"
    drop.mkdir()
    (drop / "a.log").write_text("git bisect start\n")
    (drop / "b.json").write_text("{}")

    def taken(entry: object) -> bool:
        (drop / "a.log").unlink(missing_ok=True)
        return True

    monkeypatch.setattr("bot.results.intake._is_settled", taken)
    assert take_dropped(drop, [], world.now) == 0
    assert [each.name for each in sorted((drop / "refused").iterdir())] == ["b.json", "b.json.reason"]


# --- Mail that waits in the outbox is checked again before it is sent ---

ONE_A_DAY = ComposeConfig(policy=Policy(per_author=1))


def culprits(world: World, number: int = 1) -> None:
    for each in range(number):
        world.ingest(world.result(f"{each}" * 40, TITLE if number == 1 else f"mm: {each}", id=f"n{each}"))


def by_itself(world: World, config: ComposeConfig = ONE_A_DAY) -> int:
    return compose_due(world.settings, world.later(), approve_first=False, config=config)


def drop(world: World, report: Report) -> None:
    event = EventData(key="d", kind=EventKind.DROPPED, occurred_at=world.later(), tree="linus", commit="d" * 40)
    event_log.record([event_log.event_row(report, event, world.now)])


def test_a_reminder_that_waits_is_cancelled_when_somebody_answers(world: World) -> None:
    report = world.report()
    still_there(world, report, "v9.1-rc5")
    assert compose_follow_ups(world.settings, world.later()) == 1
    world.post(DANA, "I will look into it.", to=message_id(report))
    world.read()
    compose_follow_ups(world.settings, world.later())
    (mail,) = mails(report)
    assert (mail.state, mail.reason) == (
        OutgoingState.CANCELLED,
        "no longer due: the author has responded",
    )


def test_a_report_that_waits_is_held_when_its_culprit_is_dropped(world: World) -> None:
    culprits(world)
    compose_due(world.settings, world.later())
    drop(world, Report.objects.get())
    compose_due(world.settings, world.later())
    mail = OutgoingMail.objects.get()
    assert (mail.state, mail.reason[:33]) == (OutgoingState.HELD, "closed before any mail was sent: ")


def test_so_is_one_that_was_put_off_to_another_day(world: World) -> None:
    culprits(world, 2)
    by_itself(world)
    late = OutgoingMail.objects.exclude(not_before=None).get()
    drop(world, late.report)
    by_itself(world)
    late.refresh_from_db()
    assert late.state == OutgoingState.HELD


def test_who_opts_out_meanwhile_is_left_out(world: World) -> None:
    culprits(world)
    compose_due(world.settings, world.later())
    Correspondent.objects.create(address=DANA.email, mailing=Mailing.OPTED_OUT, since=world.later())
    compose_due(world.settings, world.later())
    mail = OutgoingMail.objects.get()
    assert mail.recipients == ["perf-reports@lists.example.org"]
    assert [DANA.email, DANA.name, "", "opted out"] in mail.people


def test_what_a_person_holds_is_let_go_by_a_person_alone(world: World) -> None:
    culprits(world)
    compose_due(world.settings, world.later())
    mail = OutgoingMail.objects.get()
    assert outbox_act(mail, "hold")
    for held in ("we wait for something", ""):
        Report.objects.update(held=held)
        OutgoingMail.objects.update(stale=True)
        by_itself(world)
        mail.refresh_from_db()
        assert mail.state == OutgoingState.HELD


def test_what_a_rule_held_goes_within_the_limits_once_it_may(world: World) -> None:
    culprits(world, 3)
    by_itself(world, ComposeConfig(policy=Policy(rules=(PolicyRule(Action.HOLD),), per_author=1)))
    assert set(OutgoingMail.objects.values_list("state", "reason")) == {("held", "rule 1 of the policy (every report)")}
    OutgoingMail.objects.update(stale=True)
    by_itself(world)
    rows = OutgoingMail.objects.all()
    assert {row.state for row in rows} == {OutgoingState.APPROVED}
    assert len({row.not_before for row in rows}) == 3


def test_the_quiet_time_after_a_fix_passes(world: World) -> None:
    culprits(world)
    report = Report.objects.get()
    event = EventData(key="f", kind=EventKind.FIX_PROPOSED, occurred_at=world.later(), commit="f" * 40, title="a fix")
    event_log.record([event_log.event_row(report, event, world.now)])
    by_itself(world)
    mail = OutgoingMail.objects.get()
    assert (mail.state, mail.reason) == ("held", "a fix was posted on 2026-09-01, less than 7 days ago")
    world.later(24 * 7)
    by_itself(world)
    mail.refresh_from_db()
    assert (mail.state, mail.reason, mail.not_before) == ("approved", "", None)


@pytest.mark.parametrize("before", ["composed", "composed again"])
def test_what_is_found_while_a_mail_is_composed_is_told_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    culprits(world)
    if before == "composed again":
        compose_due(world.settings, world.later())
        OutgoingMail.objects.update(stale=True)
    report, real = Report.objects.get(), composer.compose

    def slowly(*arguments: Any) -> Any:
        monkeypatch.setattr(composer, "compose", real)
        world.ingest(measured(world, report, 500, 505, 495, id="2", machine=OTHER))
        return real(*arguments)

    monkeypatch.setattr(composer, "compose", slowly)
    by_itself(world)
    if before == "composed":
        mail = OutgoingMail.objects.get()
        mail_transitions.mark_sent(mail.message_id, world.now, world.now)
        OutgoingMail.objects.update(stale=True)
        assert compose_follow_ups(world.settings, world.later(), approve_first=False) == 1
    else:
        by_itself(world)
        assert "lab7-m2" in OutgoingMail.objects.get().body


def test_the_same_patch_in_two_trees_is_told_once_in_one_round(world: World) -> None:
    for name in "12":
        world.ingest(world.result(name * 40, TITLE, id=name, tree={"name": f"t{name}", "branch": "b"}))
    Commit.objects.filter(sha__in=["1" * 40, "2" * 40]).update(patch_message_id="p@dev.example")
    by_itself(world, ComposeConfig())
    assert dict(OutgoingMail.objects.values_list("report__culprit__sha", "reason")) == {
        "1" * 40: "",
        "2" * 40: "the same patch was reported as 1111111111 in t1",
    }


def test_where_a_list_is_addressed_nobody_has_a_limit(world: World) -> None:
    Correspondent.objects.create(address=DANA.email, mailing=Mailing.OPTED_OUT, since=world.now)
    culprits(world, 3)
    by_itself(world)
    assert set(OutgoingMail.objects.values_list("not_before", flat=True)) == {None}


# --- what a person decided ---


def test_what_a_person_let_go_is_not_held_again(world: World) -> None:
    culprits(world)
    config = ComposeConfig(policy=Policy(rules=(PolicyRule(Action.HOLD),)))
    by_itself(world, config)
    mail = OutgoingMail.objects.get()
    before = bytes(mail.raw)
    assert outbox_act(mail, "approve")
    Correspondent.objects.create(address="x@dev.example", mailing=Mailing.BOUNCING, since=world.later())
    drop(world, mail.report)
    by_itself(world, config)
    mail.refresh_from_db()
    assert (mail.state, mail.stale, bytes(mail.raw) == before) == (OutgoingState.APPROVED, False, True)


def test_what_a_rule_sends_is_looked_at_again_though_the_rest_waits_for_people(world: World) -> None:
    config = ComposeConfig(policy=Policy(rules=(PolicyRule(Action.SEND),), per_author=1))
    culprits(world, 2)
    compose_due(world.settings, world.later(), config=config)
    late = OutgoingMail.objects.exclude(not_before=None).get()
    Correspondent.objects.create(address=DANA.email, mailing=Mailing.OPTED_OUT, since=world.later())
    compose_due(world.settings, world.later(), config=config)
    late.refresh_from_db()
    assert (late.state, late.recipients) == (OutgoingState.APPROVED, ["perf-reports@lists.example.org"])


def test_a_hold_by_hand_outlasts_the_quiet_time(world: World) -> None:
    culprits(world)
    event = EventData(key="f", kind=EventKind.FIX_PROPOSED, occurred_at=world.later(), commit="f" * 40, title="a fix")
    event_log.record([event_log.event_row(Report.objects.get(), event, world.now)])
    by_itself(world)
    mail = OutgoingMail.objects.get()
    assert outbox_act(mail, "hold")
    world.later(24 * 9)
    by_itself(world)
    mail.refresh_from_db()
    assert mail.state == OutgoingState.HELD


def test_what_a_server_may_have_seen_keeps_its_bytes(world: World) -> None:
    culprits(world)
    by_itself(world)
    mail = OutgoingMail.objects.get()
    (mail,) = claim(world.now)
    mail_transitions.mark_in_doubt(mail, world.now, "gone", "worker")
    assert outbox_act(mail, "resend")
    OutgoingMail.objects.update(stale=True, decided_by_person=False)
    world.later(24)
    by_itself(world)
    assert bytes(OutgoingMail.objects.get().raw) == bytes(mail.raw)


def test_what_must_be_looked_at_again_is_not_sent_before(world: World) -> None:
    culprits(world)
    by_itself(world)
    OutgoingMail.objects.update(stale=True)
    assert not claim(world.now)
    by_itself(world)
    assert claim(world.now)


def test_who_was_looked_at_is_not_looked_at_for_ever(world: World, django_assert_num_queries: Any) -> None:
    culprits(world, 3)
    compose_due(world.settings, world.later())
    for report in Report.objects.all():
        drop(world, report)
    Correspondent.objects.create(address=DANA.email, mailing=Mailing.OPTED_OUT, since=world.now)
    compose_due(world.settings, world.later())
    assert set(OutgoingMail.objects.values_list("state", "stale")) == {("held", False)}
    with django_assert_num_queries(6):
        compose_due(world.settings, world.later())


def test_the_same_patch_is_free_again_when_the_other_commit_goes_before_anybody_was_told(world: World) -> None:
    """linux-next is rebased: one commit goes away, the other stays."""
    for name in "12":
        world.ingest(world.result(name * 40, TITLE, id=name, tree={"name": f"t{name}", "branch": "b"}))
    Commit.objects.filter(sha__in=["1" * 40, "2" * 40]).update(patch_message_id="p@dev.example")
    by_itself(world)
    drop(world, Report.objects.get(culprit__sha="1" * 40))
    by_itself(world)
    by_itself(world)
    assert OutgoingMail.objects.get(report__culprit__sha="2" * 40).state == OutgoingState.APPROVED


# --- one odd report harms one report ---


@pytest.mark.parametrize("payload", ["[]", "null", '{"bisect": {"steps": null}}', "{"])
def test_a_result_that_can_t_be_read_holds_its_report_alone(world: World, payload: str) -> None:
    world.ingest(world.result(world.commit("mm: odd"), "mm: odd"))
    BisectResult.objects.update(payload=payload)
    world.ingest(world.result(world.commit("mm: good"), "mm: good"))
    for _ in range(2):
        compose_due(world.settings, world.later(), limit=1)
    assert OutgoingMail.objects.filter(report__culprit__title="mm: good").count() == 1
    odd = Report.objects.get(culprit__title="mm: odd")
    assert odd.held.startswith("composing its mail failed: ") or odd.outgoing.exists()


def test_a_report_without_numbers_stands_in_nobody_s_way(world: World) -> None:
    world.ingest(world.result(world.commit("mm: odd"), "mm: odd"))
    Report.objects.get().findings.update(old_mean=None)
    world.ingest(world.result(world.commit("mm: good"), "mm: good"))
    for _ in range(2):
        compose_due(world.settings, world.later(), limit=1)
    assert OutgoingMail.objects.get().report.culprit.title == "mm: good"
    assert Report.objects.get(culprit__title="mm: odd").held.endswith("all its findings are held")


@pytest.mark.django_db
def test_a_list_that_is_never_mailed_holds_no_mail(world: World) -> None:
    """Also where every report goes by default."""
    config = ComposeConfig(policy=Policy(never=("linux-kernel@vger.kernel.org",)))
    world.ingest(world.result("c" * 40, "mm: a change"))
    compose_due(world.settings, world.now, approve_first=False, config=config)
    mail = OutgoingMail.objects.get()
    assert (mail.state, mail.reason) == (S.APPROVED, "")
    assert "linux-kernel@vger.kernel.org" not in mail.recipients
