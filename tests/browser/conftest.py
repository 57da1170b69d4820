"""Fixtures: a browser, a site, signed-in users. One browser per module: Django rejects a running event loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tests.browser.site import CHROMIUM, PASSWORD, Site
from tests.support.needs import need

expect.set_options(timeout=30_000)  # milliseconds; a busy machine takes more than the usual five seconds
_QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def made_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    need("chromium")
    site = Site(tmp_path_factory.mktemp("site"))
    try:
        own = tmp_path_factory.getbasetemp()
        site.start((own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own) / "made.sqlite3")
        yield site
    finally:
        site.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    need("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_QUIET))
        yield browser
        browser.close()


@pytest.fixture
def site(made_site: Site) -> Site:
    made_site.fresh()
    return made_site


Open = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Open]:
    """Return a function that opens a page, as `user` if given. Any error in the browser fails the test."""
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    def visit(path: str, user: str = "", *, width: int = 1280, expects_errors: bool = False, **options: object) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        if not expects_errors:
            page.on("console", lambda message: errors.append(message.text) if _is_ours(message) else None)
            page.on("response", lambda got: errors.append(f"{got.status} {got.url}") if got.status >= 400 else None)
            page.on("pageerror", lambda error: errors.append(str(error)))
        if user:
            page.goto(f"{site.url}/sign-in/password/?next=/results/")
            page.fill("#id_username", user)
            page.fill("#id_password", PASSWORD)
            page.click("main button")
        page.goto(f"{site.url}{path}")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert errors == []


def _is_ours(message: ConsoleMessage) -> bool:
    """Whether a console message is about the page. Failed loads are reported with their URL elsewhere."""
    return message.type in ("error", "warning") and not message.text.startswith("Failed to load resource")


def violations(page: Page) -> list[str]:
    """Return the violations that axe finds: the rule, and the first element that breaks it."""
    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]
