"""The triage page of v5.6 in a real browser, as a release manager uses it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.site import Site

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("the_triage_page")]  # one browser for all

OPEN = "/v5.6/?state=no_response&section=shifted"


def state_of(page: Page, row: int) -> str:
    """Return the status text of a row, counted from 0."""
    return page.locator("table.triage tbody tr[data-row] td.status").nth(row).inner_text()


def current_row(page: Page) -> str:
    return str(page.evaluate("document.activeElement.dataset.row"))


def test_ten_rows_are_changed_by_eleven_keys(visit: Open) -> None:
    page = visit(OPEN, "toni")
    rows = page.locator("table.triage tbody tr[data-row]")
    ids = [rows.nth(number).get_attribute("data-row") for number in range(11)]
    pressed = ["j", *"wdewdwewdw"]
    for key in pressed:
        page.keyboard.press(key)
    expect(page.locator("#feedback li")).to_have_count(10)
    words = {"w": "the author is working on it", "d": "the report is disputed", "e": "the regression is expected"}
    for number, key in enumerate(pressed[1:]):
        expect(page.locator(f".r{ids[number]} td.status")).to_contain_text(words[key])
    expect(page.locator(f".r{ids[10]} td.status")).to_contain_text("no response from author yet")
    assert current_row(page) == ids[10]
    assert len(pressed) <= 12
    page.reload()
    assert page.locator("table.triage tbody tr[data-row]").first.get_attribute("data-row") == ids[10]


def test_many_at_once_and_back(visit: Open) -> None:
    page = visit(OPEN, "toni")
    first = page.locator("table.triage tbody tr[data-row]").first.get_attribute("data-row")
    page.keyboard.press("j")
    page.keyboard.press("x")
    for _ in range(3):
        page.keyboard.press("j")
    page.keyboard.press("Shift+X")
    expect(page.locator("input[name=row]:checked")).to_have_count(4)
    page.keyboard.press("w")
    expect(page.locator("#feedback li").first).to_contain_text("4 reports changed.")
    expect(page.locator("td.status", has_text="the author is working on it")).to_have_count(4)
    page.keyboard.press("u")
    expect(page.locator("#feedback li").first).to_contain_text("4 undone.")
    page.keyboard.press("x")
    page.keyboard.press("d")
    changed = page.locator("tr:has(td.status del)")  # the row says what it was, and takes it back
    expect(changed).to_have_count(1)
    expect(changed.locator("td.status")).to_contain_text("→")
    changed.get_by_role("button", name="Undo").click()
    expect(page.locator("#feedback li").first).to_contain_text("1 undone.")
    expect(page.locator("td.status del")).to_have_count(0)
    expect(page.locator("td.status", has_text="the author is working on it")).to_have_count(0)
    page.goto(page.url.partition("/v5.6")[0] + f"/report/{page.locator(f'.r{first} code').inner_text()}/")
    expect(page.locator(".timeline")).to_contain_text("undone")
    expect(page.locator(".timeline")).to_contain_text("recorded by toni")


def test_a_note_and_a_name_are_asked_for_in_a_field(visit: Open) -> None:
    page = visit(OPEN, "toni")
    page.keyboard.press("j")
    row = current_row(page)
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.id") == "argument"
    page.keyboard.type("waits for j and x")  # contains keys of actions, which must not work inside a field
    page.keyboard.press("Enter")
    expect(page.locator(f".r{row} td.status")).to_contain_text("waits for j and x")
    page.keyboard.press("k")
    assert current_row(page) == row
    page.keyboard.press("a")
    page.keyboard.type("me")
    page.keyboard.press("Enter")
    expect(page.locator(f".r{row}")).to_contain_text("toni")


def test_what_it_needs_is_told_in_words(visit: Open) -> None:
    page = visit(OPEN, "toni", expects_errors=True)  # the browser logs a rejected request as an error
    page.keyboard.press("j")
    page.fill("#argument", "tomorrow")
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    expect(page.locator("#feedback li")).to_contain_text("Fixed: expected a version like v6.12-rc4; found 'tomorrow'")


def test_what_was_refused_is_corrected_for_the_same_report(visit: Open) -> None:
    page = visit(OPEN, "toni", expects_errors=True)
    page.keyboard.press("j")
    row = current_row(page)
    sha, other = (page.locator("table.triage tr[data-row] th code").nth(number).inner_text() for number in (0, 2))
    page.keyboard.press("m")
    page.keyboard.type("deadbeefca")
    page.keyboard.press("Enter")
    expect(page.locator("#feedback li")).to_contain_text("no report has deadbeefca")
    expect(page.locator("#argument")).to_have_value("deadbeefca")
    expect(page.locator("#argument")).to_be_focused()
    expect(page.locator("tr.acting")).to_have_count(1)
    page.fill("#argument", other)
    page.keyboard.press("Enter")
    expect(page.locator("#feedback li").first).to_contain_text(sha)
    expect(page.locator(f".r{row} td.status")).to_contain_text("a duplicate of")


def test_who_was_slower_is_told(visit: Open) -> None:
    one, other = visit(OPEN, "toni"), visit(OPEN, "kim")
    for page, key in ((one, "d"), (other, "w")):
        page.keyboard.press("j")
        page.keyboard.press(key)
        expect(page.locator("#feedback li")).to_have_count(1)
    expect(other.locator("#feedback li")).to_contain_text("was changed in the meantime, so this action was not applied")
    expect(other.locator("#feedback li")).to_contain_text("the report is disputed")
    assert "the report is disputed" in state_of(other, 0)


def test_keys_are_left_alone_where_they_are_others(visit: Open) -> None:
    page = visit(OPEN, "toni")
    page.keyboard.press("j")
    for key in ("Control+w", "Alt+d", "Meta+e"):
        page.keyboard.press(key)
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.type("wde")
    page.keyboard.press("Escape")
    expect(page.locator("#feedback li")).to_have_count(0)
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_have_attribute("open", "")
    expect(page.locator("#keys")).to_be_in_viewport()
    page.keyboard.press("s")
    expect(page.locator("tr.brief")).to_contain_text("ops_per_sec")
    page.keyboard.press("s")
    expect(page.locator("tr.brief")).to_have_count(0)
    page.keyboard.press("Enter")
    page.wait_for_url("**/report/**")


def test_filters_work_by_mouse(visit: Open) -> None:
    page = visit("/v5.6/")
    page.click("text=Filters")
    page.select_option("select[name=state]", "working")
    page.click("text=Show")
    expect(page.locator("table.triage tbody tr[data-row]")).to_have_count(2)
    page.click("a[aria-label^='invert']")
    assert "state!=working" in page.url
    expect(page.locator("td.status", has_text="is working")).to_have_count(0)
    page.click("text=show all")
    page.click("text=Filters")
    page.check("input[name=improvements]")
    page.click("text=Show")
    expect(page.locator("table.triage tbody tr.improvement")).to_have_count(26)  # one is in both sections


def test_a_view_is_saved_and_shared(visit: Open) -> None:
    page = visit("/v5.6/?state=working", "toni")
    page.fill("input[name=name]", "in work")
    page.check("input[name=shared]")
    page.click("text=Save this view")
    expect(page.locator(".chips")).to_contain_text("in work")
    stranger = visit("/v5.6/")
    stranger.click("text=in work")
    expect(stranger.locator("table.triage tbody tr[data-row]")).to_have_count(2)


def test_the_same_without_a_line_of_script(visit: Open) -> None:
    page = visit(OPEN, "toni", java_script_enabled=False)
    page.locator("input[name=row]").nth(0).check()
    page.locator("input[name=row]").nth(1).check()
    page.click("details.more summary")
    page.click("button[value=disputed]")
    expect(page.locator("#feedback")).to_contain_text("2 reports changed.")
    page.click("#feedback button")
    expect(page.locator("#feedback")).to_contain_text("2 undone.")
    page.locator("tbody th a").first.click()
    page.select_option("select[name=do]", "note")
    page.fill("textarea", "**bold** words")
    page.click("button:text-is('Apply')")
    expect(page.locator(".note strong")).to_have_text("bold")


def test_a_phone_shows_it_all(visit: Open) -> None:
    page = visit("/v5.6/", width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(page.locator("table.triage tbody tr[data-row]").first).to_contain_text("v5.6-rc")


def test_rows_are_two_lines_or_three(visit: Open) -> None:
    page = visit("/v5.6/")
    heights = page.evaluate(
        "[...document.querySelectorAll('table.triage tbody tr[data-row]')].map(row => row.offsetHeight)"
    )
    assert heights
    assert sorted(heights)[len(heights) // 2] <= 58  # the title, and its place in one line or two
    assert max(heights) <= 75  # with three lines of parameters, or of state


def test_single_lines_by_choice_on_a_wide_screen(visit: Open, site: Site) -> None:
    page = visit("/v5.6/", width=1920)
    heights = """() => [...document.querySelectorAll("table.triage tbody tr[data-row]")].map(row => row.offsetHeight)"""
    usual = page.evaluate(heights)
    page.get_by_label("One line per report").check()
    single = page.evaluate(heights)
    assert max(single) < min(usual)
    assert len(set(single)) == 1
    page.reload()
    assert page.evaluate(heights) == single  # remembered
    row = page.locator("table.triage tbody tr[data-row]").nth(3)
    row.focus()
    assert row.evaluate(
        "row => [...row.children].every(cell => cell.scrollWidth <= cell.clientWidth)"
    )  # whole on focus
    page.get_by_label("One line per report").uncheck()
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(page.get_by_label("One line per report")).to_be_hidden()


@pytest.mark.parametrize(
    "path", ["/v5.6/", "/v5.6/?improvements=on", "/search/?q=subsystem:mm", "/machine/lkp-csl-2sp5/"]
)
def test_nothing_that_decides_is_cut(visit: Open, path: str) -> None:
    """At 1280 pixels all of the title, the metric, the change and the state can be read."""
    page = visit(path)
    page.set_viewport_size({"width": 1280, "height": 900})
    cut = """() => [...document.querySelectorAll("table.triage th, table.triage td, .standing")]
        .filter((cell) => cell.scrollWidth > cell.clientWidth + 1
            || getComputedStyle(cell).textOverflow === "ellipsis").map((cell) => cell.innerText)"""
    assert page.evaluate(cut) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_maintainer_signs_in_by_the_link_in_a_mail(visit: Open, site: Site) -> None:
    page = visit("/sign-in/")
    page.fill("input[name=address]", "dana@dev.example")
    page.click("main button")
    expect(page.locator("h1")).to_have_text("Check your email")
    site.run("manage.py", "shell", "-v0", "-c", "from bot.tasks import send_mail; send_mail()")
    (mail,) = (site.directory / "mail" / "new").iterdir()
    link = next(line for line in mail.read_text().splitlines() if line.startswith(site.url))
    page.goto(link)
    page.click("main button")
    expect(page.locator(".who")).to_contain_text("dana@dev.example")
    page.goto(f"{site.url}/report/f04628387e/")  # their own
    page.select_option("select[name=do]", "working")
    page.click("button:text-is('Apply')")
    expect(page.locator(".lead .call").first).to_contain_text("the author is working on it")
    page.click("text=Sign out")
    expect(page.locator(".who")).to_have_text("Sign in")


def test_a_slip_of_the_hand_changes_nothing(visit: Open) -> None:
    page = visit(OPEN, "toni")
    box = page.locator("input[name=row]").first
    box.click()
    page.fill("#argument", "v5.6-rc4")
    page.keyboard.press("Enter")  # by default, a browser presses the first button
    page.wait_for_timeout(200)
    expect(page.locator("#feedback li")).to_have_count(0)
    page.keyboard.press("Escape")
    box.click()
    page.click("button[value=working]")  # no row is selected, so the current one counts
    expect(page.locator("#feedback li")).to_have_count(1)
    for _ in range(4):
        page.keyboard.down("d")  # held down: one key press, and repeats
    page.keyboard.up("d")
    expect(page.locator("#feedback li")).to_have_count(2)
    page.wait_for_timeout(200)
    expect(page.locator("#feedback li")).to_have_count(2)


def test_after_a_lost_connection_it_goes_on(visit: Open) -> None:
    page = visit(OPEN, "toni", expects_errors=True)
    page.keyboard.press("j")
    page.route("**/triage/change/", lambda route: route.abort())
    page.keyboard.press("w")
    expect(page.locator("#feedback li.wrong")).to_contain_text("can't be reached")
    page.unroute("**/triage/change/")
    page.keyboard.press("w")
    expect(page.locator("#feedback li").first).to_contain_text("1 report changed.")


def test_a_poll_that_hangs_holds_no_key_up(visit: Open) -> None:
    page = visit(OPEN, "toni")
    page.route("**/triage/news/*", lambda route: None)
    with page.expect_request("**/triage/news/*"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.keyboard.press("j")
    page.keyboard.press("w")
    expect(page.locator("#feedback li").first).to_contain_text("1 report changed.")


def test_said_aloud_is_said_once(visit: Open) -> None:
    page = visit(OPEN, "toni")
    page.check("input[name=notify_thread]")
    page.keyboard.press("j")
    page.keyboard.press("w")
    expect(page.locator("#feedback li")).to_have_count(1)
    assert not page.is_checked("input[name=notify_thread]")


def test_what_others_change_is_shown_at_once(visit: Open) -> None:
    mine, theirs = visit(OPEN, "toni"), visit(OPEN, "toni")
    rows = mine.locator("table.triage tbody tr[data-row]")
    keys = [rows.nth(number).get_attribute("data-row") for number in range(3)]
    for key in ("j", "x", "j"):
        mine.keyboard.press(key)
    assert current_row(mine) == keys[1]
    for key in ("j", "x", "j", "x", "w"):  # the row that is selected here, and the one that has the focus
        theirs.keyboard.press(key)
    expect(theirs.locator("#feedback li").first).to_contain_text("2 reports changed.")
    mine.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    for key in keys[:2]:
        expect(mine.locator(f".r{key} td.status")).to_contain_text("the author is working on it")
    assert current_row(mine) == keys[1]
    assert mine.locator("input[name=row]:checked").count() == 1
    assert mine.locator(f".r{keys[0]} input[name=row]").is_checked()
    mine.keyboard.press("j")
    mine.locator("#actions [name=argument]").focus()
    mine.keyboard.type("half a sen")
    theirs.keyboard.press("u")
    expect(theirs.locator("#feedback li").first).to_contain_text("2 undone.")
    mine.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(mine.locator(f".r{keys[0]} td.status")).to_contain_text("no response from author yet")
    mine.keyboard.type("tence")
    assert mine.locator("#actions [name=argument]").input_value() == "half a sentence"
    mine.keyboard.press("Escape")
    mine.keyboard.press("w")  # the revision of the row is the new one, so that the change is not refused
    expect(mine.locator("#feedback li").first).to_contain_text("1 report changed")


def test_closed_rows_fold_and_open_where_something_happens(visit: Open) -> None:
    page, other = visit("/v5.6/", "toni"), visit("/v5.6/", "kim")
    fold = page.locator("details.closed").first
    fold.locator("summary").click()
    key = fold.locator("tr[data-row]").first.get_attribute("data-row")
    fold.locator("input[name=row]").first.check()
    fold.locator("summary").click()
    expect(page.locator(f".r{key}")).to_be_hidden()
    page.keyboard.press("o")  # what is selected shows, wherever it was
    expect(page.locator("#feedback li").first).to_contain_text("1 report changed.")
    expect(page.locator(f".r{key}")).to_be_visible()
    expect(other.locator(f".r{key}")).to_be_hidden()
    other.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(other.locator(f".r{key}")).to_be_visible()
    page.keyboard.press("u")
    expect(page.locator("#feedback li").first).to_contain_text("1 undone.")
