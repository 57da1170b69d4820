"""Pages and addresses at their edges: huge limits, last rows of lists, days of a range, forms that keep what is set."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.http import QueryDict
from django.test import Client

from bot.notifications.report import compose_due
from tests.support.rows import NOW, line
from tests.support.world import World
from tracker.domain.curves import CurvePoint
from tracker.models import (
    Curve,
    DeliveryFailure,
    Kernel,
    Machine,
    Metric,
    OutgoingMail,
    OutgoingState,
    Release,
    Report,
    Scenario,
    Suggestion,
)
from tracker.pages import lab
from tracker.pages.triage import table
from tracker.pages.triage.filters import TriageQuery
from tracker.pages.triage.table import controls
from tracker.services import curves, mail_transitions

# --- Pages and addresses at their edges: huge limits, last rows of lists, days of a range, forms that keep what is
# set ---


def query(text: str) -> TriageQuery:
    return TriageQuery.from_query(QueryDict(text), NOW)


@pytest.mark.django_db
@pytest.mark.parametrize("limit", ["001000999999", "0100", "10000", "1001", "0", "", "٣"])
def test_a_page_of_the_api_has_an_end(client: Client, limit: str) -> None:
    answer = client.get("/api/v1/metrics", {"limit": limit})
    assert answer.status_code == (200 if limit == "0100" else 400)


@pytest.mark.django_db
@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_time_beyond_the_calendar_is_rejected(client: Client, moment: str) -> None:
    assert client.get("/api/v1/reports", {"updated_since": moment}).status_code == 400


@pytest.mark.django_db
def test_a_link_with_a_nul_finds_nothing(client: Client) -> None:
    assert client.get("/search/", {"q": "a%00b@c.example"}).status_code == 200


@pytest.mark.django_db
def test_of_a_failed_mail_strangers_see_no_recipient(world: World, client: Client, admin_client: Client) -> None:
    world.ingest(world.result("b" * 40, "mm: a"))
    compose_due(world.settings, world.now, approve_first=True)
    mail = OutgoingMail.objects.get()
    mail_transitions.transition(OutgoingMail.objects.all(), OutgoingState.FAILED, "x", world.now, "550 no such user")
    DeliveryFailure.objects.create(
        mail=mail, address="dana@dev.example", words="550 no such user", at=world.now, by="server"
    )
    assert "550 no such user" not in client.get(f"/outbox/{mail.pk}/").content.decode()
    assert "550 no such user" in admin_client.get(f"/outbox/{mail.pk}/").content.decode()


@pytest.mark.django_db
def test_a_mail_is_approved_as_it_was_seen(world: World, admin_client: Client) -> None:
    world.ingest(world.result("b" * 40, "mm: a"))
    compose_due(world.settings, world.now, approve_first=True)
    mail = OutgoingMail.objects.get()
    seen = mail.version
    assert f'value="{seen}"' in admin_client.get(f"/outbox/{mail.pk}/").content.decode()
    OutgoingMail.objects.update(composed_at=world.now + timedelta(minutes=1))  # recomposed meanwhile
    posted = {"verb": "approve", "id": mail.pk, "version": seen}
    assert "Look at them again" in admin_client.get("/outbox/act/", posted).content.decode()
    admin_client.post("/outbox/act/", posted)
    assert OutgoingMail.objects.get().state == OutgoingState.COMPOSED
    admin_client.post("/outbox/act/", {**posted, "version": OutgoingMail.objects.get().version})
    assert OutgoingMail.objects.get().state == OutgoingState.APPROVED


@pytest.mark.django_db
def test_the_command_approves_no_text_that_it_has_just_changed(world: World, settings: Any) -> None:
    world.ingest(world.result("b" * 40, "mm: a"))
    compose_due(world.settings, world.now, approve_first=True)
    OutgoingMail.objects.update(stale=True, looked_at=None)  # more is known by now
    mail = OutgoingMail.objects.get()
    with pytest.raises(CommandError, match="recomposed, since more is known now"):
        call_command("outbox", "approve", str(mail.pk))
    assert OutgoingMail.objects.get().state in (OutgoingState.COMPOSED, OutgoingState.HELD)
    call_command("outbox", "approve", str(mail.pk))
    assert OutgoingMail.objects.get().state == OutgoingState.APPROVED


@pytest.mark.django_db
def test_a_kernel_too_old_for_the_list_has_no_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel.objects.create(name="v4.4", measured_at=NOW)
    monkeypatch.setattr(lab, "kernels", list)
    assert lab.neighbours(kernel) == []


@pytest.mark.django_db
def test_the_last_day_of_a_range_belongs_to_it(client: Client) -> None:
    machine, scenario = Machine.objects.create(name="m"), Scenario.objects.create(key="s", suite="s", params={})
    metric = Metric.objects.create(name="s.ops")
    days = [datetime(2026, 3, day, 9, tzinfo=UTC) for day in (1, 2, 3)]
    points = [CurvePoint(day, f"{day.day}" * 40, (float(day.day),), "x") for day in days]
    curves.add({(metric.pk, scenario.pk, machine.pk): points})
    address = f"/curve/{Curve.objects.get().pk}/?since=2026-03-02&until=2026-03-02&format=json"
    assert "2222222222" in client.get(address).content.decode()
    assert client.get(address.replace("until=2026-03-02", "until=9999-12-31")).status_code == 400


@pytest.mark.django_db
def test_the_form_keeps_what_has_no_field() -> None:
    found = controls(query("reported_after=2026-03-01&state!=fixed&subsystem=mm&q=x&improvements=on"), {})
    assert set(found.hidden) == {("reported_after", "2026-03-01"), ("state!", "fixed")}


@pytest.mark.django_db
def test_improvements_stay_off_where_they_were_switched_off(client: Client) -> None:
    Machine.objects.create(name="m")
    better = line(1, machine="m", verdict="improvement", state="fix_proposed").culprit.sha10
    line(2, machine="m")
    assert better in client.get("/machine/m/").content.decode()
    page = client.get("/machine/m/?improvements=off").content.decode()
    assert better not in page
    assert 'name="improvements" value="off"' in page
    assert better in client.get("/machine/m/?improvements=off&improvements=on").content.decode()


@pytest.mark.django_db
def test_headings_count_what_the_table_lists() -> None:
    Release.objects.get_or_create(version="v5.6", defaults={"number": 50_006_999_0000})
    for number, state in enumerate(("fix_proposed", "expected", "no_action")):
        line(number, merged_release="v5.6", verdict="improvement", state=state)
    line(9, merged_release="v5.6")
    found = table.counts(table.stamped(Release.objects.filter(version="v5.6")).get())
    assert found.sections["merged"] == {"open": 1, "closed": 0}


@pytest.mark.django_db
def test_a_state_that_only_improvements_have_asks_for_them(client: Client) -> None:
    Release.objects.get_or_create(version="v5.6", defaults={"number": 50_006_999_0000})
    better = line(1, merged_release="v5.6", verdict="improvement", state="no_action").culprit.sha10
    assert better in client.get("/v5.6/?state=no_action").content.decode()


@pytest.mark.django_db
def test_a_report_that_leaves_a_release_makes_its_pages_anew() -> None:
    Release.objects.get_or_create(version="v5.6", defaults={"number": 50_006_999_0000})
    stays, leaves = line(1, merged_release="v5.6", revision=9), line(2, merged_release="v5.6", revision=3)
    release = table.stamped(Release.objects.filter(version="v5.6"))
    before = table.stamp(release.get())
    Report.objects.filter(pk=leaves.pk).update(merged_release="v5.7", revision=10)
    assert table.stamp(release.all().get()) != before
    assert stays.revision == 9


@pytest.mark.django_db
def test_a_feed_names_itself_with_its_filters(client: Client) -> None:
    Release.objects.get_or_create(version="v5.6", defaults={"number": 50_006_999_0000})
    feed = client.get("/v5.6/.atom?state=open&subsystem=mm").content.decode()
    assert "/v5.6/.atom?state=open&amp;subsystem=mm" in feed
    assert "?" not in client.get("/v5.6/.json").json()["url"]


@pytest.mark.django_db
def test_a_decision_returns_to_its_page_of_the_queue(admin_client: Client) -> None:
    report = line(1)
    made = [
        Suggestion.objects.create(
            report=report, key=f"k{number}", kind="working", occurred_at=NOW, quote="x", role="author"
        )
        for number in range(120)
    ]
    answer = admin_client.post(f"/review/{made[20].pk}/decide/", {"decision": "reject"})
    assert answer["Location"] == f"/review/?suggestions=0.{made[19].pk + 1}#s{made[19].pk}"
    assert f'id="s{made[19].pk}"' in admin_client.get(answer["Location"].partition("#")[0]).content.decode()
    first = admin_client.post(f"/review/{made[119].pk}/decide/", {"decision": "reject"})
    assert first["Location"] == f"/review/#s{made[118].pk}"


@pytest.mark.django_db
@pytest.mark.parametrize("days", ["1000000", "9999999999", "-1"])
def test_pruning_takes_days_of_a_calendar(days: str) -> None:
    with pytest.raises(CommandError, match="expected 0 to 36,500 days"):
        call_command("prune", "--pending", days)


# --- The header: the same menus everywhere, the current page marked, and how much waits for those who may act ---


def header(client: Client, path: str) -> str:
    return client.get(path).content.decode().partition("</header>")[0]


@pytest.mark.django_db
def test_every_link_leads_somewhere_and_is_marked_there(client: Client) -> None:
    links = [unescape(each) for each in re.findall(r'<a href="([^"]+)"', header(client, "/"))]
    assert len(links) > 12
    for link in links:
        assert client.get(link).status_code == 200, link
        if link == "/help/":  # the documentation has links that lead somewhere without a server, too
            assert 'href="." aria-current="page">Help</a>' in header(client, link)
        elif link != "/sign-in/":
            assert f'href="{link.replace("&", "&amp;")}" aria-current="page"' in header(client, link), link


@pytest.mark.django_db
def test_what_waits_is_said_to_those_who_may_act(client: Client) -> None:
    report = line(1, merged_release="v6.1")
    for number in range(3):
        Suggestion.objects.create(
            report=report, key=f"{number}", kind="working", occurred_at=NOW, role="author", rule="x"
        )
    assert "badge" not in header(client, "/")
    user = User.objects.create_user("kim")
    client.force_login(user)
    assert "badge" not in header(client, "/")
    user.groups.add(Group.objects.get(name="triager"))
    assert '<b class="badge">3<span class="unseen"> waiting</span></b>' in header(client, "/")
    Suggestion.objects.all().delete()
