"""A refusal is a page for a browser, and one line of text for programs and htmx."""

from __future__ import annotations

import pytest
from django.test import Client

HTML = {"Accept": "text/html,application/xhtml+xml"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "status", "title"),
    [
        ("/report/1234567/?mails=x", 400, "Not understood"),
        ("/report/1234567/", 404, "Not found"),
        ("/nowhere/", 404, "Not found"),
    ],
)
def test_a_browser_gets_a_page(client: Client, path: str, status: int, title: str) -> None:
    answer = client.get(path, headers=HTML)
    content = answer.content.decode()
    assert answer.status_code == status
    assert f"<h1>{title}</h1>" in content
    assert 'class="top"' in content


@pytest.mark.django_db
def test_programs_and_htmx_get_a_line(client: Client) -> None:
    plain = client.get("/report/1234567/?mails=x")
    assert plain["Content-Type"].startswith("text/plain")
    assert plain.content.decode() == "mails: expected a number; found 'x'"
    htmx = client.get("/report/1234567/?mails=x", headers={**HTML, "HX-Request": "true"})
    assert htmx.content == plain.content


@pytest.mark.django_db
def test_an_old_form_says_what_to_do() -> None:
    strict = Client(enforce_csrf_checks=True)
    answer = strict.post("/views/", {"name": "x"}, headers=HTML)
    assert answer.status_code == 403
    assert "The form was too old" in answer.content.decode()
