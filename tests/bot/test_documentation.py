"""The documentation is built whole and strictly; what code knows is written from code; files need no server."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from bot import documentation
from bot.documentation import PARTS, build, commands, events, states, table
from bot.git.repository import Unreadable
from tests.conftest import ROOT
from tracker.domain.events import EventKind, State


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what the site is built from."""
    place = tmp_path / "project"
    place.mkdir()
    for name in ("docs", "templates", "static", "bot", "tracker"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    for each in (*ROOT.glob("*.md"), ROOT / "properdocs.yml"):
        shutil.copy(each, place)
    monkeypatch.setattr(documentation, "ROOT", place)
    return place


@pytest.mark.long
def test_a_link_that_leads_nowhere_is_refused_and_the_site_before_stays(copy: Path, tmp_path: Path) -> None:
    site = tmp_path / "out" / "site"
    build(site)
    before = (site / "triage.html").read_bytes()
    page = copy / "docs" / "triage.md"
    text = page.read_text()
    for broken in ("[x](nowhere.md)", "[x](mail.md#no-such-part)", "<!-- reference: no such part -->"):
        page.write_text(f"{text}\n{broken}\n")
        with pytest.raises(Unreadable, match=r"can't be built: .*(nowhere|no-such-part|no such part)"):
            build(site)
        assert (site / "triage.html").read_bytes() == before
    assert list(site.parent.iterdir()) == [site], "nothing is left behind"
    assert not (copy / "var").exists()


def test_a_page_that_no_menu_leads_to_is_refused(copy: Path, tmp_path: Path) -> None:
    (copy / "docs" / "lost.md").write_text("# Lost\n")
    with pytest.raises(Unreadable, match=r"lost\.md"):
        build(tmp_path / "site")


def test_files_lead_to_no_server(tmp_path: Path) -> None:
    call_command("documentation", to=tmp_path / "site", verbosity=0)
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        assert "<th></th>" not in page.read_text(), f"{page}: a column without a name"
        for link in re.findall(r'(?:href|src)="([^"]*)"', page.read_text()):
            assert not link.startswith("/"), (page, link)
            path = link.partition("#")[0]
            if path and not path.startswith(("http", "mailto:")):
                assert (page.parent / path).is_file(), (page, link)


def test_the_command_says_in_one_line_what_is_wrong(copy: Path, tmp_path: Path) -> None:
    (copy / "docs" / "triage.md").unlink()
    with pytest.raises(CommandError) as error:
        call_command("documentation", to=tmp_path / "site")
    assert "triage.md" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_reference_is_complete() -> None:
    written = commands()
    for path in (ROOT / "bot" / "management" / "commands").glob("[a-z]*.py"):
        assert f"## {path.stem}\n" in written
    assert "--traceback" not in written
    assert all(f"| `{state}` |" in states() for state in State)
    assert "merged at v6.12-rc3, the regression has been fixed in v6.12-rc6" in states()
    assert all(f"| `{kind}` |" in events() for kind in EventKind)
    assert "| `/api/v1/reports` |" in PARTS["addresses"]()
    pages = "".join(each.read_text() for each in (ROOT / "docs").glob("*.md"))
    assert set(re.findall("<!-- reference: (.*?) -->", pages)) == PARTS.keys()


def test_a_bar_in_a_cell_makes_no_column() -> None:
    assert table(("a", "b"), [("x|y", "z")]).splitlines()[-1] == r"| x\|y | z |"


def test_only_files_of_the_site_are_served(client: Client) -> None:
    page = client.get("/help/reference/")
    assert page.status_code == 200
    assert b">Reference</h1>" in page.content
    assert client.get("/help/perfwork.css")["Content-Type"] == "text/css"
    for path in ("../manage.py", "%2e%2e/%2e%2e/manage.py", "sitemap.xml", "../x.css", "a/../../x.css", "\0", "x.css"):
        assert client.get(f"/help/{path}").status_code == 404, path
    assert client.get("/help/reference/", headers={"If-Modified-Since": page["Last-Modified"]}).status_code == 304


def test_where_it_was_not_built_the_page_says_how(
    client: Client, settings: pytest.FixtureRequest, tmp_path: Path
) -> None:
    settings.DOCUMENTATION = tmp_path / "help"  # type: ignore[attr-defined]
    page = client.get("/help/answering/")
    assert (page.status_code, page.content.decode()) == (
        503,
        "The documentation has not been built on this machine: run ./manage.py documentation\n",
    )
    build(tmp_path / "help", "/")
    assert client.get("/help/answering/").status_code == 200, "without another start"


def test_a_page_that_became_part_of_another_is_still_found(client: Client) -> None:
    for name, page in (("keys", "reference"), ("lab", "results"), ("reliability", "measured")):
        moved = client.get(f"/help/{name}/")
        assert (moved.status_code, moved["Location"]) == (301, f"/help/{page}/#{name}")
        assert f'id="{name}"' in client.get(f"/help/{page}/").content.decode()


def test_an_address_without_its_slash_leads_to_the_page(client: Client) -> None:
    assert client.get("/help/answering")["Location"] == "/help/answering/"


def test_a_directory_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to-dana.txt").write_text("Dear Dana")
    with pytest.raises(CommandError, match="is not empty, and not a site that was built before"):
        call_command("documentation", to=tmp_path / "letters")
    assert (tmp_path / "letters" / "to-dana.txt").read_text() == "Dear Dana"
    for _ in range(2):
        call_command("documentation", to=tmp_path / "site", verbosity=0)
