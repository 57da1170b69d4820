"""People and keys: an operator invites, changes roles and shuts out, on the page and on the command line."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from tests.support.people import person
from tracker.models import ApiKey, SignIn
from tracker.services import accounts
from tracker.services.accounts import Scope, UserRole

PAGE = "/operating/people/"
RITA = "rita@lab.example"


@pytest.fixture
def client(db: None) -> Client:
    user = person("operator", "olga")
    client = Client()
    client.force_login(user)
    return client


def press(client: Client, do: str, **fields: Any) -> tuple[int, str]:
    answer = client.post(PAGE, {"do": do, **fields}, follow=True, headers={"accept": "text/html"})
    return answer.status_code, answer.content.decode()


def test_who_is_invited_gets_in_by_the_mailed_link(client: Client) -> None:
    assert "gets a link by mail" in press(client, "invite", address=" Rita@Lab.example", role="triager")[1]
    link = SignIn.objects.get(address=RITA)
    rita = accounts.use_sign_in(link, timezone.now())
    assert rita is not None
    assert rita.has_perm(accounts.CHANGE_REPORTS)
    assert not rita.has_perm(accounts.SEND)
    assert not rita.has_usable_password()
    status, page = press(client, "invite", address=RITA, role="operator")
    assert (status, "has an account already, rita@lab.example (triager)" in page) == (400, True)


def test_an_author_who_signed_in_before_can_be_invited(client: Client) -> None:
    User.objects.create_user("dana", "dana@dev.example")
    press(client, "invite", address="dana@dev.example", role="operator")
    assert [(person.name, person.role) for person in accounts.people(9)][-1] == ("olga", "operator")
    assert User.objects.get(username="dana").has_perm(accounts.SEND)
    assert User.objects.count() == 2


@pytest.mark.parametrize(
    "address", ["linux-mm@kvack.org", "rita", "rita@lab.example\nBcc: x@y.example", "", "a@b" * 99]
)
def test_no_list_and_no_junk_is_invited(client: Client, address: str) -> None:
    assert press(client, "invite", address=address, role="triager")[0] == 400
    assert User.objects.count() == 1
    assert not SignIn.objects.exists()


def test_a_role_is_changed_and_who_is_shut_out_is_out_at_once(client: Client) -> None:
    rita = accounts.invite(RITA, UserRole.TRIAGER)
    own = Client()
    own.force_login(rita)
    assert own.get(PAGE).status_code == 403
    assert f"{RITA} is operator now." in press(client, "role", name=RITA, role="operator")[1]
    assert own.get(PAGE).status_code == 200
    accounts.create_api_key("hers", [Scope.TRIAGE], "", timezone.now(), rita)
    assert "may sign in no more; 1 key revoked." in press(client, "revoke", name=RITA)[1]
    assert own.get(PAGE).status_code == 302
    assert not accounts.is_known(RITA)
    assert ApiKey.objects.get().revoked_at
    assert "revoked)" in press(client, "invite", address=RITA, role="triager")[1]
    assert f"{RITA} has no role now." in press(client, "role", name=RITA, role="")[1]  # let in again
    assert accounts.is_known(RITA)
    assert own.get(PAGE).status_code == 302, "a cookie of before opens nothing again"


@pytest.mark.parametrize(
    ("do", "fields", "why"),
    [
        ("role", {"name": "olga", "role": ""}, "nobody changes their own account"),
        ("revoke", {"name": "root"}, "root is a superuser or staff"),
        ("role", {"name": "staff", "role": "operator"}, "staff is a superuser or staff"),
        ("role", {"name": "nobody", "role": "operator"}, "no account is named &#x27;nobody&#x27;"),
        ("role", {"name": "root", "role": "superuser"}, "role: expected triager or operator"),
        ("explode", {}, "do: expected invite"),
        ("revoke-key", {"name": "none"}, "no valid key is named"),
        ("key", {"name": "box", "scope": "triage"}, "scopes: expected one or more"),
        ("key", {"name": "box", "scope": "jobs", "days": "9999"}, "days: expected 1 to 3650"),
        ("key", {"name": "box", "scope": "results", "producer": ""}, "producer: expected"),
    ],
)
def test_what_is_refused_changes_nothing(client: Client, do: str, fields: dict[str, str], why: str) -> None:
    User.objects.create_superuser("root")
    User.objects.create_user("staff", is_staff=True)
    status, page = press(client, do, **fields)
    assert status == 400
    assert why in page
    assert User.objects.filter(is_active=True).count() == 3
    assert not ApiKey.objects.exists()


def test_a_key_is_shown_once_and_revoked(client: Client) -> None:
    answer = client.post(
        PAGE, {"do": "key", "name": "lab7", "scope": ["results", "jobs"], "producer": "*", "days": "90"}
    )
    page = answer.content.decode()
    token = page.partition("<code>")[2].partition("</code>")[0]
    key = accounts.find_api_key(token, timezone.now())
    assert key is not None
    assert (key.name, key.scopes, key.producer) == ("lab7", ["results", "jobs"], "*")
    assert "no-store" in answer["Cache-Control"]
    assert token not in client.get(PAGE).content.decode()
    assert "The key lab7 is revoked." in press(client, "revoke-key", name="lab7")[1]
    assert accounts.find_api_key(token, timezone.now()) is None


def test_a_key_may_have_the_name_of_who_makes_it(client: Client) -> None:
    assert "The new key" in press(client, "key", name="olga", scope="jobs")[1]
    assert "The key olga is revoked." in press(client, "revoke-key", name="olga")[1]


def test_an_account_that_is_named_like_a_token_is_none(client: Client) -> None:
    User.objects.create_user("perfwork_rita")
    page = press(client, "role", name="perfwork_rita", role="triager")[1]
    assert "perfwork_rita is triager now." in page
    assert "The new key" not in page


def test_names_of_strangers_are_escaped_and_many_cost_no_more(
    client: Client, django_assert_max_num_queries: Any
) -> None:
    for number in range(30):
        User.objects.create_user(f"<b>{number}", f"n{number}@dev.example")
    with django_assert_max_num_queries(9):
        page = client.get(PAGE).content.decode()
    assert "&lt;b&gt;29" in page
    assert "<b>29" not in page


def test_the_command_does_the_same(db: None) -> None:
    def people(*arguments: str) -> str:
        out = StringIO()
        call_command("people", *arguments, stdout=out)
        return out.getvalue()

    assert people("list") == "no accounts; `people invite ADDRESS --role operator` makes one\n"
    assert (
        people("invite", RITA, "--role", "operator") == f"{RITA}: operator; gets a link by mail from the next worker\n"
    )
    assert people("list") == f"{RITA}: operator, never signed in\n"
    assert people("role", RITA, "none") == f"{RITA}: none\n"
    assert people("revoke", RITA) == f"{RITA}: revoked, with 0 keys\n"
    assert people("list") == f"{RITA}: closed, never signed in\n"
    for wrong in (("invite", "linux-mm@kvack.org"), ("role", "nobody", "triager"), ("revoke", "nobody")):
        with pytest.raises(CommandError, match=r"^(address|name): "):
            people(*wrong)


def test_nobody_gets_the_role_of_another_ones_address(client: Client) -> None:
    User.objects.create_user(RITA, "somebody@else.example")
    status, page = press(client, "invite", address=RITA, role="operator")
    assert (status, "an account of another address is named" in page) == (400, True)
    assert not User.objects.get(username=RITA).groups.exists()
