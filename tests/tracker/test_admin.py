"""The admin shows all tables, changes no past records, and decides on suggestions."""

from __future__ import annotations

import pytest
from django.contrib.admin import site
from django.contrib.auth.models import Permission, User
from django.test import Client

from tests.support.world import DANA, World, message_id, state
from tracker.models import Suggestion


@pytest.fixture
def suggestion(world: World) -> Suggestion:
    """A command by unproven mail, under the default policy."""
    report = world.report()
    world.settings = type(world.settings)(address=world.settings.address, trust_policy="verified")
    world.post(DANA, "#lkp invalid", to=message_id(report))
    world.read()
    return Suggestion.objects.get()


def test_every_table_is_shown(admin_client: Client, suggestion: Suggestion) -> None:
    names = [model._meta.model_name for model in site._registry if model._meta.app_label == "tracker"]
    assert len(names) == 50
    for name in names:
        assert admin_client.get(f"/admin/tracker/{name}/").status_code == 200, name


@pytest.mark.parametrize(
    "name", ["event", "rawmessage", "message", "bisectresult", "outgoingmail", "report", "textrevision"]
)
def test_what_happened_cannot_be_changed_there(admin_client: Client, suggestion: Suggestion, name: str) -> None:
    assert admin_client.get(f"/admin/tracker/{name}/add/").status_code == 403


def click(client: Client, action: str, suggestion: Suggestion) -> None:
    client.post("/admin/tracker/suggestion/", {"action": action, "_selected_action": [suggestion.pk]})


def test_a_click_makes_a_suggestion_an_event(admin_client: Client, suggestion: Suggestion) -> None:
    assert state(suggestion.report) == "responded"
    assert "Suggestions" in admin_client.get(f"/report/{suggestion.report.tag}/").content.decode()
    click(admin_client, "accept", suggestion)
    assert state(suggestion.report) == "invalid"
    assert suggestion.report.events.get(kind="invalid").actor == "admin"
    click(admin_client, "reject", suggestion)
    assert state(suggestion.report) == "invalid"


def test_who_may_only_look_decides_nothing(client: Client, suggestion: Suggestion) -> None:
    user = User.objects.create_user("looker", password="x", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_suggestion"))
    client.force_login(user)
    click(client, "accept", suggestion)
    assert state(suggestion.report) == "responded"


def test_hidden_columns_are_no_oracle(admin_client: Client) -> None:
    """A query on the key of a session would tell it letter by letter."""
    for path in (
        "session/?session_key__startswith=a",
        "session/?session_data__contains=a",
        "apikey/?digest__startswith=a",
        "rawmessage/?compressed__contains=a",
    ):
        assert admin_client.get(f"/admin/tracker/{path}").status_code in (302, 400), path
    assert admin_client.get("/admin/tracker/suggestion/?decision__exact=open").status_code == 200
