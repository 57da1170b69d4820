"""`/operating/policy/`: the form and the TOML say the same, a preview changes nothing, and revisions are put back."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from bot.compose.policy import Policy, read_policy, to_toml
from bot.config import mail_policy
from bot.notifications.report import compose_due
from bot.web.operators import from_fields, in_fields
from tests.bot.compose.test_policy import policies
from tests.support.people import person
from tests.support.world import World
from tracker.domain.events import EventData, EventKind
from tracker.models import OutgoingMail, Report, TextRevision
from tracker.services import event_log

PAGE = "/operating/policy/"


@pytest.fixture
def client(db: None) -> Client:
    user = person("operator", "olga")
    client = Client()
    client.force_login(user)
    return client


def post(client: Client, how: str, do: str = "save", **fields: str) -> Any:
    version = TextRevision.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    return client.post(PAGE, {"as": how, "do": do, "version": version, **fields}, follow=True)


@pytest.mark.hypothesis
@given(policies)
def test_the_form_shows_and_writes_a_policy(policy: Policy) -> None:
    assert from_fields(in_fields(policy)) == policy


@pytest.mark.hypothesis
@given(
    st.dictionaries(
        st.sampled_from([*in_fields(Policy()), "rule1_action", "rule1_suites", "rule1_below_pct"]), st.text()
    )
)
def test_junk_in_the_form_is_a_policy_or_refused_in_words(posted: dict[str, str]) -> None:
    with contextlib.suppress(ValueError):
        assert read_policy(to_toml(from_fields(posted)))


def test_a_form_becomes_the_policy_in_force(client: Client) -> None:
    assert "Nobody has changed it" in client.get(PAGE).content.decode()
    fields = in_fields(Policy()) | {
        "a_day": "40",
        "quiet_hours": "22:00-07:00 Europe/Berlin",
        "never": "linux-api@vger.kernel.org",
        "own_rates": "@kernel.org 30",
        "rule1_action": "hold",
        "rule1_suites": "stress-ng, will-it-*",
        "rule1_below_pct": "5",
        "rule2_suites": "a rule without an action is none",
    }
    page = post(client, "form", **fields).content.decode()
    assert "The policy is changed: it decides from the next mail on." in page
    assert "Changed by olga" in page
    policy = mail_policy()
    assert (policy.a_day, policy.never, policy.rates.own) == (40, ("linux-api@vger.kernel.org",), {"@kernel.org": 30})
    assert [str(rule) for rule in policy.rules] == ["below 5%, suites stress-ng or will-it-*"]
    assert 'value="stress-ng, will-it-*"' in page
    assert "Nothing has changed." in post(client, "form", **fields).content.decode()


def test_toml_keeps_its_comments_and_a_revision_is_put_back(client: Client) -> None:
    post(client, "toml", text="# only ten, for now\na_day = 10\n")
    post(client, "toml", text="a_day = 99")
    assert mail_policy().a_day == 99
    first = TextRevision.objects.earliest("pk")
    page = post(client, "revision", revision=str(first.pk)).content.decode()
    assert mail_policy().a_day == 10
    assert "# only ten, for now" in page
    assert TextRevision.objects.count() == 3  # nothing is lost
    assert "there is no such revision" in post(client, "revision", revision="999").content.decode()


def test_a_slip_is_said_and_what_was_typed_is_kept(client: Client) -> None:
    answer = post(
        client, "form", **in_fields(Policy()) | {"a_day": "many", "rule1_action": "hold", "rule1_suites": "mine"}
    )
    assert answer.status_code == 400
    page = answer.content.decode()
    assert "a_day: expected a whole number, found &#x27;many&#x27;" in page
    assert 'value="many"' in page
    assert 'value="mine"' in page
    answer = post(client, "toml", text="a_day = = 1")
    assert answer.status_code == 400
    assert "invalid TOML" in answer.content.decode()
    assert "a_day = = 1" in answer.content.decode()
    assert not TextRevision.objects.exists()


def test_nothing_that_is_too_long_is_cut_and_saved(client: Client) -> None:
    """Browsers send two characters for each end of a line; what would be cut off may be what holds mail back."""
    long = "# c\n" * 4200 + '[[rule]]\naction = "hold"\nsuites = ["secret*"]\n'
    post(client, "toml", text=long.replace("\n", "\r\n"))
    assert [rule.suites for rule in mail_policy().rules] == [("secret*",)]
    answer = post(client, "toml", text="# c\n" * 6000)
    assert answer.status_code == 400
    assert "text: expected at most 20,000 characters, found 24,000" in answer.content.decode()
    answer = post(client, "form", **in_fields(Policy()) | {"never": "a@b.example\n" * 2000})
    assert "never: expected at most 20,000 characters" in answer.content.decode()
    assert TextRevision.objects.count() == 1


def test_the_form_shows_every_rule(client: Client) -> None:
    rules = "".join(f'[[rule]]\naction = "hold"\nsuites = ["suite-{number}"]\n' for number in range(60))
    post(client, "toml", text=rules)
    page = client.get(PAGE).content.decode()
    assert "suite-59" in page
    assert 'name="rule62_action"' in page
    post(client, "form", **in_fields(mail_policy()) | {"a_day": "7"})
    assert (mail_policy().a_day, len(mail_policy().rules)) == (7, 60)
    with pytest.raises(ValueError, match="rule: expected at most 100 rules, found 120"):
        read_policy(rules * 2)


def test_a_policy_that_is_not_understood_any_more_is_named(client: Client) -> None:
    """As one of another machine with other time zones."""
    TextRevision.objects.create(
        place="policy", name="policy", text='quiet_hours = "22:00-07:00 Mars/Olympus"', by="olga", at=timezone.now()
    )
    with pytest.raises(ImproperlyConfigured, match="/operating/policy/: quiet_hours: unknown time zone"):
        mail_policy()
    page = client.get(PAGE).content.decode()
    assert "The policy in force is wrong, and nothing is composed:" in page
    assert "unknown time zone &#x27;Mars/Olympus&#x27;" in page
    assert post(client, "toml", text="a_day = 3").status_code == 200
    assert mail_policy().a_day == 3


def test_two_who_change_it_at_once_do_not_overwrite_each_other(client: Client) -> None:
    client.post(PAGE, {"as": "toml", "text": "a_day = 10", "version": "0"})
    answer = client.post(PAGE, {"as": "toml", "text": "a_day = 20", "version": "0"})
    assert answer.status_code == 400
    assert "somebody else has changed the policy" in answer.content.decode()
    assert mail_policy().a_day == 10


def test_a_preview_says_what_would_have_been_held_and_changes_nothing(client: Client, world: World) -> None:
    for sha in ("b", "c"):
        world.ingest(world.result(sha * 40, f"mm/{sha}: a change"))
    compose_due(world.settings, world.now)
    now = timezone.now()
    OutgoingMail.objects.update(composed_at=now)
    sent, _ = Report.objects.order_by("pk")  # that it is reported, and fixed, came later
    event_log.record(
        [
            event_log.event_row(
                sent, EventData(key=kind, kind=kind, occurred_at=now + timedelta(hours=1), message_id=message_id), now
            )
            for kind, message_id in (
                (EventKind.REPORTED, OutgoingMail.objects.get(report=sent).message_id),
                (EventKind.FIX_PROPOSED, "fix@dev.example"),
            )
        ]
    )
    fields = in_fields(Policy()) | {"rule1_action": "hold", "rule1_suites": "*"}
    page = post(client, "form", do="preview", **fields).content.decode()
    assert "Preview, not saved yet" in page
    assert "<b>2 would have been held</b>" in page
    assert "rule 1 of the policy (suites *)" in page
    assert not TextRevision.objects.exists()
    page = post(client, "toml", do="preview", text="a_day = 1").content.decode()
    assert "as the policy in force does" in page


def test_a_file_wins_and_is_shown(client: Client, tmp_path: Path, settings: Any) -> None:
    post(client, "toml", text="a_day = 10")
    settings.PERFWORK_POLICY = str(tmp_path / "policy.toml")
    (tmp_path / "policy.toml").write_text("# of the file\na_day = 7\n")
    page = client.get(PAGE).content.decode()
    assert "# of the file" in page
    assert str(tmp_path / "policy.toml") in page
    assert mail_policy().a_day == 7
    assert post(client, "toml", text="a_day = 20").status_code == 200
    assert TextRevision.objects.count() == 1  # a form that was open before says nothing
    (tmp_path / "policy.toml").write_text("a_day = [")
    assert "The file is wrong, and nothing is composed:" in client.get(PAGE).content.decode()


def test_no_number_of_mails_costs_more_queries(client: Client, django_assert_max_num_queries: Any) -> None:
    post(client, "toml", text="a_day = 10")
    with django_assert_max_num_queries(8):
        client.get(PAGE)


@pytest.mark.django_db
def test_only_operators_see_it() -> None:
    assert Client().get(PAGE).status_code == 302
