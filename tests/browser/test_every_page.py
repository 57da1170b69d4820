"""All pages in a browser: axe, widths, zoom, the keyboard, forced colours; and Firefox."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open, violations
from tests.browser.firefox import Firefox
from tests.browser.made import LONG_SHAS
from tests.browser.site import Site
from tests.support.needs import need

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("every_page")]

PAGES = (
    *("/", "/v5.6/", "/v5.6/?group=machine&order=effect&state!=fixed", "/report/8019ad13ef/", "/review/", "/outbox/"),
    *("/machine/", "/machine/lkp-csl-2sp5/", "/subsystem/", "/metric/", "/author/", "/results/", "/sign-in/"),
    *("/search/", "/search/?q=subsystem:mm", "/search/?q=worse:x", "/escalations/", "/statistics/", "/lab/"),
    *("/changes/", "/changes/?all=on", "/curve/1/", "/curves/?of=1&of=2", "/help/measurements/"),
    *("/help/answering/", f"/report/{'f' * 40}/", "/report/f04628387e/", "/sign-in/nonsense/"),
    *("/v5.6/report/", "/studies/", "/study/direct-map/", "/study/oltp/", "/study/hostile/", "/compare/"),
    *("/compare/?of=v5.10/1G&of=v5.10/4K", "/index/", "/index/v9.2/", "/index/v5.6/", "/index/basket/"),
    *("/webhooks/", "/mine/", "/subscriptions/?q=subsystem:mm", "/unsubscribe/x/", "/help/results/"),
    *(
        "/tool-output/1/",
        "/tool-output/beside/?old=3&new=6",
        "/kernel/v5.6/",
        "/kernel/v2.6.24.2/",
        "/help/measured/",
    ),
    *("/help/", "/help/operating/", "/help/reference/", "/help/contributing/"),
    *("/operating/policy/", "/operating/people/", "/operating/settings/"),
)
# Those on which the longest names stand.
LONG = (
    *(
        "/",
        "/v9.1/",
        "/v9.1/report/",
        f"/report/{LONG_SHAS[0]}/",
        f"/report/{LONG_SHAS[0]}/tables/",
        "/search/?q=culprit:dddd",
    ),
    *(f"/metric/{'m' * 117}_us/", f"/machine/machine-{'x' * 60}/", f"/subsystem/mm/{'s' * 60}/", "/escalations/"),
    *("/metric/", "/machine/", "/mine/", "/statistics/", "/curve/1/", "/compare/?of=v5.5&of=v5.6", "/operating/"),
    *("/operating/policy/", "/operating/people/", "/operating/settings/"),
)
WIDTHS = (320, 390, 480, 720, 768, 1024, 1240, 1280, 1920)
# The elements that reach out of the page, unless they scroll by themselves.
WIDE = """() => document.documentElement.scrollWidth <= document.documentElement.clientWidth ? "" :
    document.documentElement.scrollWidth + " pixels: " + [...document.querySelectorAll("main *, header *, footer *")]
        .filter((node) => node.getBoundingClientRect().right > document.documentElement.clientWidth + 1
            && !node.closest(".scroll, pre")).slice(0, 3).map((node) => node.outerHTML.slice(0, 100)).join(" | ")"""


@pytest.mark.parametrize(
    ("pages", "width", "scheme"),
    [
        pytest.param(PAGES[::8], 1280, "light", id="an eighth"),
        pytest.param([*PAGES[1::2], *PAGES[2::4]], 1280, "light", marks=pytest.mark.long, id="the others"),
        pytest.param(PAGES, 1280, "dark", marks=pytest.mark.long, id="1280-dark"),
        pytest.param(PAGES, 390, "light", marks=pytest.mark.long, id="390-light"),
        pytest.param(PAGES, 390, "dark", marks=pytest.mark.long, id="390-dark"),
    ],
)
def test_axe_finds_nothing(visit: Open, site: Site, pages: Sequence[str], width: int, scheme: str) -> None:
    page = visit("/", "kim", width=width, color_scheme=scheme, expects_errors=True)  # about the expired link
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(21, 23, 26)") == (scheme == "dark")
    faults = {path: faults for path in pages if (faults := _faults(page, f"{site.url}{path}"))}
    assert faults == {}


def _faults(page: Page, url: str) -> list[str]:
    """Return accessibility faults, with all folds open: what axe finds, and horizontal scrolling."""
    page.goto(url)
    page.evaluate("document.querySelectorAll('main details').forEach((fold) => { fold.open = true; })")
    wide = page.evaluate(WIDE)
    return [*violations(page), *([wide] if wide else [])]


def test_no_page_scrolls_sideways(visit: Open, site: Site) -> None:
    """With a metric of 120 characters and a title of 200, from 320 to 1920 pixels; 640 is 1280 at 200%."""
    site.run("-m", "tests.browser.made", "long")
    page = visit("/", "kim")
    expect(page.locator("main")).to_contain_text("mm/ttttt")
    wide = {}
    for path in LONG:
        page.goto(f"{site.url}{path}")
        page.evaluate("document.querySelectorAll('main details').forEach((fold) => { fold.open = true; })")
        for width in (*WIDTHS, 640):
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate("new Promise(requestAnimationFrame)")  # what scripts draw follows
            if fault := page.evaluate(WIDE):
                wide[path, width] = fault
    assert wide == {}


def test_everything_is_reached_by_keyboard_and_seen_there(visit: Open) -> None:
    page = visit("/")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")  # past the navigation
    reached = set()
    for _ in range(60):
        seen = page.evaluate(
            """() => { const node = document.activeElement, style = getComputedStyle(node);
            return [node.getAttribute("href") || node.outerHTML, style.outlineStyle !== "none"]; }"""
        )
        assert seen[1], seen[0]  # where one is, is always seen
        reached.add(seen[0])
        page.keyboard.press("Tab")
        if not page.evaluate("document.activeElement.closest('main')"):
            break
    links = page.eval_on_selector_all(
        "main a[href]", "links => links.filter(link => link.checkVisibility()).map(link => link.getAttribute('href'))"
    )
    assert set(links) <= reached


def test_forced_colours_leave_nothing_invisible(visit: Open) -> None:
    """Drawings keep their own colours there, so ours are the system's."""
    page = visit("/curve/1/", forced_colors="active", java_script_enabled=False)
    colours = """() => ["path.line", "text.axis", "path.band"].map((name) => {
        const style = getComputedStyle(document.querySelector(".curve " + name));
        return name === "path.line" ? style.stroke : style.fill; })"""
    line, axis, band = page.evaluate(colours)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (line != paper, axis != paper, band == paper) == (True, True, True)
    page = visit("/", forced_colors="active")
    assert violations(page) == []


@pytest.fixture
def firefox(site: Site, tmp_path: Path) -> Iterator[Firefox]:
    need("firefox")
    with Firefox(tmp_path) as firefox:
        yield firefox


@pytest.mark.long
def test_firefox_shows_the_same(firefox: Firefox, site: Site) -> None:
    """On a desktop and, at 200% zoom, on half of it: axe finds nothing, nothing is wider, and the curve is live."""
    axe = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
    run = f"{axe}; return axe.run().then(found => found.violations.map(one => one.id + ' ' + one.nodes[0].html));"
    faults = {}
    for zoom in (1, 2):
        firefox.zoom(zoom)
        for path in ("/", "/v5.6/", "/report/8019ad13ef/", "/curve/1/", "/v5.6/report/", "/compare/?of=v5.5&of=v5.6"):
            firefox.open(f"{site.url}{path}")
            firefox.run("document.querySelectorAll('main details').forEach((fold) => { fold.open = true; })")
            if fault := [*firefox.run(run), *filter(None, [firefox.run(f"return ({WIDE})();")])]:
                faults[path, zoom] = fault
    assert faults == {}
    firefox.open(f"{site.url}/curve/1/")
    assert firefox.wait("return document.querySelectorAll('.live canvas').length") == 1
    assert firefox.run("return document.getElementById('keys').hidden") is False
