"""The index, a study and a release report in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("comparisons")]  # one browser for all


def test_a_point_of_the_index_is_reached_by_keyboard(visit: Open) -> None:
    page = visit("/index/")
    for _ in range(30):
        page.keyboard.press("Tab")
        if (page.evaluate("document.activeElement.getAttribute('aria-label')") or "").startswith("v5.6: "):
            break
    else:
        raise AssertionError("no key leads to the point")
    page.keyboard.press("Enter")
    expect(page.locator("#point-head")).to_contain_text("11 of 12 benchmarks, chained from v5.5")
    expect(page.locator("#point tbody tr").first).to_contain_text("hackbench.throughput")
    expect(page.locator("#reports + ul, #reports ~ ul")).to_contain_text("[LKP] [pipe] 0ddad21d3e: 136.1% improvement")


def test_a_click_on_a_point_and_a_comment_on_it(visit: Open) -> None:
    page = visit("/index/", "toni")
    page.locator('svg a[aria-label^="v5.6: "] circle.hit').click()
    page.fill("#text", "The *pipe* change did it.")
    page.click("button:text-is('Comment')")
    expect(page.locator(".comment em")).to_have_text("pipe")
    page.click(".comment >> text=edit")
    page.fill("#text", "")
    page.click("button:text-is('Save')")
    expect(page.locator("#comments + p")).to_have_text("No comments yet.")


def test_without_javascript_a_point_opens_all_the_same(visit: Open) -> None:
    page = visit("/index/", java_script_enabled=False)
    page.locator('svg a[aria-label^="v5.6: "] circle.hit').click()
    expect(page.locator("h1")).to_have_text("Performance index of v5.6")


def test_a_curve_is_read_zoomed_and_left_by_a_mark(visit: Open) -> None:
    page = visit("/changes/")
    page.locator("tbody th a").first.click()
    whole, readout = page.locator(".live"), page.locator("#readout")
    whole.focus()
    whole.press("Home")
    expect(readout).to_contain_text("2026-02-03")
    whole.press("ArrowRight")
    expect(readout).not_to_contain_text("2026-02-03")
    box = page.locator(".u-over").bounding_box()
    assert box is not None
    y = box["y"] + 100
    page.mouse.move(box["x"] + 5, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.3, y, steps=5)
    page.mouse.up()
    mark = page.locator(".u-over a.change")
    expect(mark).to_be_hidden()  # the change is later than what is shown now
    whole.press("Escape")
    expect(mark).to_be_visible()
    mark.focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Unreported changes")


def test_without_javascript_a_curve_has_its_runs_and_levels(visit: Open) -> None:
    page = visit("/changes/", java_script_enabled=False)
    page.locator("tbody th a").first.click()
    expect(page.locator(".curve path.dots")).to_have_attribute("d", re.compile("^M.*h0$"))
    expect(page.locator(".curve path.levels")).to_have_attribute("d", re.compile(r"^M\S+ \S+H\S+M\S+ \S+H\S+$"))
    expect(page.locator(".big.worse")).to_have_text(re.compile("^▼.−8.6%$"))
    expect(page.locator("#keys")).to_be_hidden()


def test_kernels_are_chosen_and_kept_as_a_study(visit: Open) -> None:
    page = visit("/compare/", "toni")
    page.check('input[value="v5.10/4K"]')
    page.check('input[value="v5.10/1G"]')
    page.click("main button:text-is('Compare')")
    expect(page.locator("h1")).to_have_text("v5.10/1G vs. v5.10/4K")
    expect(page.locator("#main")).to_contain_text("How often each is best")
    page.click("text=Save as a study")
    page.fill("input[name=title]", "Large pages or small")
    page.fill("input[name=slug]", "pages")
    page.click("button:text-is('Save')")
    expect(page.locator("h1")).to_have_text("Large pages or small")


def test_a_release_report_is_printed(visit: Open) -> None:
    page = visit("/v5.6/report/", "toni")
    page.emulate_media(media="print")
    for hidden in (".top", ".noprint", ".edit", ".skip"):
        assert not page.locator(hidden).first.is_visible(), hidden
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 6
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 1280


def test_a_report_is_told_in_detail(visit: Open) -> None:
    page = visit("/report/8019ad13ef/", "toni")
    page.click("button:text-is('Highlight')")
    expect(page.locator("#feedback li")).to_have_text("Now a highlight of the v5.6 report.")
    page.goto(page.url.partition("/report/")[0] + "/v5.6/report/")
    expect(page.locator("th a", has_text="will-it-scale.per_process_ops, process futex2")).to_have_count(1)


@pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without"])
def test_somebody_compares_two_kernels_and_says_whether_the_change_is_real(visit: Open, script: bool) -> None:
    page = visit("/compare/?of=v5.5&of=v5.6", java_script_enabled=script)
    expect(page.locator("#main")).to_contain_text("the interval holds zero, so no overall change can be claimed")
    expect(page.locator("tbody tr").nth(2)).to_contain_text("▲ +594.1%")  # after the two rows of the summary
    folded = page.locator("details", has_text="within noise, or changed by less than 1%")
    expect(folded.locator("tbody tr").first).not_to_be_visible()
    folded.locator("summary").click()
    expect(folded.locator("tbody tr").first).to_be_visible()
