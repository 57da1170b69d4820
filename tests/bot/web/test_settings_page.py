"""`/operating/settings/`: every setting with its value, source and meaning, for operators only; no secret is shown."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from bot.web.operators import MASK, REFERENCE, ShownSetting, masked, shown_settings

PAGE = "/operating/settings/"


def test_a_row_says_value_source_and_meaning() -> None:
    cells = ("| `PERFWORK_LAB` | its name | who runs this; see [mail](mail.md) |", "| `DEBUG` | `off` | `on`: pages |")
    reference = "\n".join(cells)
    environment = {"PERFWORK_LAB": "Lab 7"}
    debug = ShownSetting("DEBUG", "off", "", "on: pages")
    for names, source in (({"PERFWORK_LAB"}, "environment"), (set[str](), "file")):
        lab = ShownSetting("PERFWORK_LAB", "Lab 7", source, "who runs this; see mail")
        assert shown_settings(reference, environment, names) == [lab, debug]


def test_the_reference_can_be_read_whole() -> None:
    rows = shown_settings(REFERENCE.read_text(), {}, ())
    assert len(rows) > 60
    assert all(row.meaning and "`" not in row.meaning + row.value for row in rows)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("SECRET_KEY", "correct horse", MASK),
        ("PERFWORK_METRICS_KEY", "", ""),
        ("PERFWORK_DKIM_KEY", "/var/lib/perfwork/dkim.key", "/var/lib/perfwork/dkim.key"),
        ("DATABASE_URL", "postgres://perf:horse@db/perfwork", f"postgres://{MASK}@db/perfwork"),
        ("DATABASE_URL", "postgres://db/perfwork?password=horse", f"postgres://db/perfwork?{MASK}"),
        ("EMAIL_URL", "smtp+tls://kim%40lab:ho:r/se@mx:587", f"smtp+tls://{MASK}@mx:587"),
        ("EMAIL_URL", "smtp+tls://kim@lab.example:horse@mx.example:587", f"smtp+tls://{MASK}@mx.example:587"),
        ("PERFWORK_SENT", "imaps://kim@lab.example:horse@mx/Sent", f"imaps://{MASK}@mx/Sent"),
        ("PERFWORK_LORE", "https://token@lore.example/all?key=horse", f"https://{MASK}@lore.example/all?{MASK}"),
        ("PERFWORK_ARCHIVES", "/srv/a,imaps://kim:horse@mx/Sent", f"/srv/a,imaps://{MASK}@mx/Sent"),
    ],
)
def test_secrets_are_masked(name: str, value: str, shown: str) -> None:
    assert masked(name, value) == shown


@given(st.text())
def test_no_password_of_an_address_is_shown(password: str) -> None:
    for user in ("kim", "kim@lab.example", ""):
        assert "~horse" not in masked("EMAIL_URL", f"smtp+tls://{user}:{password}~horse@mx.example:587")


@pytest.mark.django_db
def test_operators_see_the_page_and_others_do_not(client: Client) -> None:
    assert client.get(PAGE).status_code in (302, 403)
    user = User.objects.create_user("kim", "kim@lab.example")
    client.force_login(user)
    assert client.get(PAGE).status_code == 403
    user.groups.add(Group.objects.get(name="operator"))
    page = client.get(PAGE).content.decode()
    assert "PERFWORK_APPROVE_FIRST" in page
    assert "composed mail waits for outbox approve" in page
