"""Five people do what they came for, each counted in keys, clicks and seconds; `-s` shows the counts.

The limits on keys and clicks are what it takes today; of seconds, only a generous limit is checked: machines
differ.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import nullcontext
from email import message_from_bytes
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open, violations
from tests.browser.site import Site

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("the_triage_page")]  # one browser for all
LONGEST = 60.0  # seconds


class Hand:
    """A person at a page, who counts what they press and click."""

    def __init__(self, page: Page, name: str) -> None:
        self.page, self.name, self.keys, self.clicks, self.began = page, name, 0, 0, time.monotonic()

    def press(self, *keys: str) -> None:
        """Press keys, as somebody who sees the whole page: its scripts listen from DOMContentLoaded on."""
        self.page.wait_for_load_state()
        for key in keys:
            self.keys += 1
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.keys += len(text)
        self.page.keyboard.type(text)

    def click(self, name: str, role: str = "link", exact: bool = False) -> None:
        """Click a link, and wait for the page behind it; or a button, which may stay on its page."""
        self.clicks += 1
        there = self.page.get_by_role(role, name=name, exact=exact).first  # type: ignore[arg-type]
        with self.page.expect_navigation() if role == "link" else nullcontext():
            there.click()

    def done(self, keys: int, clicks: int) -> None:
        spent = time.monotonic() - self.began
        print(f"\n{self.name}: {self.keys} keys, {self.clicks} clicks, {spent:.1f} s")
        assert (self.keys, self.clicks) <= (keys, clicks)
        assert spent < LONGEST
        assert violations(self.page) == []


@pytest.fixture
def person(visit: Open) -> Callable[..., Hand]:
    """Return a function that lets somebody begin at an address."""
    return lambda name, path, user="": Hand(visit(path, user), name)


def test_a_release_manager_at_rc5(person: Callable[..., Hand]) -> None:
    """What is unanswered? Three are triaged by keys, and the report of the release is opened."""
    toni = person("release manager", "/", "toni")
    toni.click("v5.6", exact=True)
    toni.click("Unanswered")
    rows = toni.page.locator("table.triage tbody tr[data-row]")
    before = rows.count()
    assert before > 3
    toni.press("j", "w", "d", "n")
    toni.type("asked on IRC")
    toni.press("Enter")
    expect(toni.page.locator("#feedback li")).to_have_count(3)
    expect(toni.page.locator("td.status", has_text="the author is working on it")).to_have_count(1)
    expect(toni.page.locator("td.status", has_text="asked on IRC")).to_have_count(1)
    toni.click("Unanswered")
    expect(rows).to_have_count(before - 2)  # a note answers nothing
    toni.press("?")
    expect(toni.page.locator("#keys")).to_have_attribute("open", "")
    toni.done(keys=18, clicks=3)


def sent_by(site: Site) -> tuple[str, str]:
    """Let the site send its mails; return the Message-ID of the regression's, and the path that it links to."""
    site.run("manage.py", "outbox", "approve", "all")
    site.run("-c", "import django; django.setup(); from bot.tasks import send_mail; send_mail()")
    found = [message_from_bytes(path.read_bytes()) for path in (site.directory / "mail" / "new").iterdir()]
    mail = next(each for each in found if "regression" in each["Subject"])
    link = re.search(r"http://127[.]0[.]0[.]1:\d+(/report/\S+)", bytes(mail.get_payload(decode=True)).decode())
    assert link
    return mail["Message-ID"], link[1]


def test_an_author_comes_from_the_mail_and_answers(person: Callable[..., Hand], site: Site) -> None:
    """The first screen says what got worse, how sure that is, and how to answer, without signing in."""
    message_id, path = sent_by(site)
    dana = person("author", path)
    assert "-12.8%" in dana.page.locator("main").inner_text()[:2500]
    answer = dana.page.get_by_role("link", name="Reply by mail")
    expect(answer).to_be_in_viewport()
    href = urlsplit(str(answer.get_attribute("href")))
    fields = parse_qs(href.query)
    assert (href.scheme, fields["In-Reply-To"]) == ("mailto", [message_id])
    assert fields["Subject"][0].startswith("Re: [")
    dana.click("how replies are read")
    expect(dana.page.locator("h1")).to_be_visible()
    dana.done(keys=0, clicks=1)


def test_a_maintainer_looks_over_all_releases(person: Callable[..., Hand]) -> None:
    """All of one subsystem, whatever the release: the open ones, then one machine's."""
    vera = person("maintainer", "/")
    vera.press("/")
    vera.type("sched")
    vera.press("Enter")
    vera.click("sched/fair", exact=True)
    expect(vera.page.locator("h1")).to_contain_text("sched/fair")
    rows = vera.page.locator("table.triage tbody tr[data-row]")
    before = rows.count()
    vera.page.locator("details.filters summary").click()
    vera.page.select_option("select[name=state]", "no_response")
    vera.clicks += 2
    vera.click("Show", "button")
    expect(vera.page.locator(".chip")).to_contain_text("state: no answer yet")
    assert 0 < rows.count() <= before
    assert "state=no_response" in vera.page.url
    vera.done(keys=7, clicks=4)


def test_a_lab_operators_morning(person: Callable[..., Hand]) -> None:
    """What waits is in the header: a suggestion is accepted, two mails are approved, both by keys."""
    kim = person("lab operator", "/", "kim")
    kim.click("To review")
    suggestions = kim.page.locator(".suggestions > li")
    before = suggestions.count()
    kim.press("j", "a")
    expect(kim.page.locator("#last")).to_contain_text("Accepted")
    expect(suggestions).to_have_count(before - 1)
    kim.press("x", "j", "x", "r")
    expect(kim.page.locator("#last")).to_contain_text("2 suggestions rejected.")
    kim.press("u")
    expect(suggestions).to_have_count(before - 1)
    kim.click("Operating")
    kim.click("to approve")
    waiting = kim.page.get_by_role("table").first
    expect(waiting).to_be_visible()
    kim.press("j", "x", "j", "x", "a")
    kim.page.get_by_role("button", name="Approve").click()
    kim.clicks += 1
    expect(kim.page.locator(".feedback")).to_contain_text("approved")
    kim.done(keys=12, clicks=4)


def test_a_newcomer_asks_for_the_xfs_one_from_march(person: Callable[..., Hand]) -> None:
    """The box completes what they type; the hits are rows of the table, and one of them is opened."""
    newcomer = person("newcomer", "/")
    newcomer.press("/")
    newcomer.type("xf")
    option = newcomer.page.locator('#offered option[value="subsystem:xfs"]')
    expect(option).to_be_attached()
    newcomer.page.fill("#find", str(option.get_attribute("value")))  # chosen in the browser's own list
    newcomer.keys += 2
    newcomer.type(" after:2020-03 before:2020-04")
    newcomer.press("Enter")
    rows = newcomer.page.locator("table.triage tbody tr[data-row]")
    expect(rows).to_have_count(3)
    assert "xfs" in rows.first.inner_text()
    rows.first.locator("a").first.click()
    newcomer.clicks += 1
    expect(newcomer.page.locator("h1")).to_contain_text("xfs")
    newcomer.done(keys=35, clicks=1)


# --- What people do where they stand ---


def test_a_release_manager_on_monday(person: Callable[..., Hand], site: Site) -> None:
    """The worst two stand on the front page; three rows are new since Friday, and one click leaves only these."""
    toni = person("release manager on Monday", "/", "toni")
    toni.click("v5.6", exact=True)
    site.run("manage.py", "shell", "-v0", "-c", FRIDAY)
    toni.page.reload()
    expect(toni.page.locator("table.triage .tag", has_text="new")).to_have_count(3)
    toni.click("Changed since my last visit")
    expect(toni.page.locator("table.triage tbody tr[data-row]")).to_have_count(3)
    toni.click("Perfwork", exact=True)
    worst = toni.page.get_by_role("heading", name="Worst").first
    expect(worst).to_be_in_viewport()
    toni.done(keys=0, clicks=3)


FRIDAY = """
from datetime import timedelta
from django.utils import timezone
from tracker.domain.events import EventData, EventKind
from tracker.models import Event, Report, Session
from tracker.services import event_log
from tracker.services.accounts import SessionStore
now = timezone.now()
friday, monday = now - timedelta(days=3), now
Event.objects.update(recorded_at=friday - timedelta(days=30))
for row in Session.objects.all():
    store = SessionStore(row.session_key)
    store["visits"] = ["", friday.isoformat()]
    store.save()
for report in Report.objects.filter(merged_release="v5.6", verdict="regression").order_by("pk")[:3]:
    value = EventData("noted:monday", EventKind.NOTED, now, actor="kim", remark="still slow in -rc6")
    event_log.append([event_log.event_row(report, value, now)])
"""


@pytest.mark.long
def test_a_maintainer_comes_from_the_mail_and_says_when(person: Callable[..., Hand], site: Site) -> None:
    """By the link in the mail to the page, signed in by a link in another mail and back; then two clicks and a line."""
    _, path = sent_by(site)
    dana = person("maintainer, from the mail", path)
    dana.click("sign in", exact=True)
    dana.page.fill("input[name=address]", "dana@dev.example")
    dana.page.click("main button")
    before = set((site.directory / "mail" / "new").iterdir())
    site.run("manage.py", "shell", "-v0", "-c", "from bot.tasks import send_mail; send_mail()")
    (mail,) = set((site.directory / "mail" / "new").iterdir()) - before
    dana.page.goto(next(line for line in mail.read_text().splitlines() if line.startswith(site.url)))
    dana.page.click("main button")
    assert urlsplit(dana.page.url).path == path  # where they were
    dana.keys, dana.clicks = 0, 0
    dana.page.select_option("select[name=do]", "note")
    dana.page.fill("textarea[name=argument]", "will fix, v2 Thursday")
    dana.clicks += 2
    dana.click("Apply", "button")
    expect(dana.page.locator(".lead .call").first).to_contain_text("will fix, v2 Thursday")
    dana.page.goto(f"{site.url}/mine/")
    boxes = dana.page.locator("input[name=row]")
    assert boxes.count() == dana.page.locator("table.triage tbody tr[data-row]").count() > 0
    dana.press("j", "w")
    expect(dana.page.locator("#feedback li")).to_contain_text("1 report changed")
    dana.done(keys=2, clicks=3)


def test_an_operator_corrects_joins_and_edits_and_takes_it_all_back(person: Callable[..., Hand], site: Site) -> None:
    kim = person("operator", "/v5.6/", "kim")
    page = kim.page
    first, second = (row.get_attribute("href") for row in page.locator("table.triage th[scope=row] a").all()[:2])
    assert first
    assert second

    def act(path: str, action: str, argument: str) -> None:
        page.goto(f"{site.url}{path}")
        page.select_option("select[name=do]", action)
        page.fill("textarea[name=argument]", argument)
        kim.clicks += 2
        kim.click("Apply", "button")
        expect(page.locator("#feedback li")).to_contain_text("1 report changed.")

    status = page.locator(".lead .call").first
    page.goto(f"{site.url}{first}")
    before = status.inner_text()
    act(first, "culprit", "v5.5..v5.6-rc1")
    expect(status).to_contain_text("v5.5..v5.6-rc1, not bisected")
    kim.click("Undo", "button")
    page.goto(f"{site.url}{first}")
    assert status.inner_text() == before
    act(first, "duplicate", second.split("/")[2])
    expect(status).to_contain_text(f"a duplicate of {second.split('/')[2][:10]}")
    kim.click("Undo", "button")
    page.goto(f"{site.url}{first}")
    assert status.inner_text() == before

    page.goto(f"{site.url}/outbox/")
    page.locator("main a[href^='/outbox/']", has_text="regression").first.click()
    text = page.locator("section pre.mail").first.inner_text()
    kim.click("Edit the text")
    typed = page.input_value("#text")
    page.fill("#text", typed.replace("\nDetails are as below", "\nThis one is real.\n\nDetails are as below"))
    kim.click("Save", "button")
    expect(page.locator("section pre.mail").first).to_contain_text("This one is real.")
    kim.click("Edit the text")
    page.fill("#text", typed)
    kim.click("Save", "button")
    expect(page.locator(".feedback")).to_contain_text("The text is changed.")
    assert page.locator("section pre.mail").first.inner_text() == text
    kim.done(keys=0, clicks=13)


@pytest.mark.parametrize("number", [4, pytest.param(30, marks=pytest.mark.long)])
def test_a_review_queue_is_emptied_by_keys(person: Callable[..., Hand], site: Site, number: int) -> None:
    site.run("manage.py", "shell", "-v0", "-c", WAITING.replace("NUMBER", str(number)))
    kim = person("lab person", "/review/", "kim")
    waiting = kim.page.locator("#suggestions ~ ol > li")
    before = waiting.count()
    assert before >= number
    kim.press("j")
    decided = 0
    while waiting.count():  # to accept one withdraws others of its report
        with kim.page.expect_navigation():
            kim.press("ra"[decided % 2])
        decided += 1
    assert before // 2 <= decided <= before
    assert kim.page.goto(f"{site.url}/review/")
    expect(waiting).to_have_count(0)
    kim.done(keys=before + 1, clicks=0)


WAITING = """
from django.utils import timezone
from tracker.models import Report, Suggestion
reports = list(Report.objects.filter(state="no_response").order_by("pk")[:NUMBER])
for number in range(NUMBER):
    report = reports[number % len(reports)]
    Suggestion.objects.create(
        report=report, key=f"one {number}", kind="working", occurred_at=timezone.now(), role="author",
        message_id=f"x{number}@dev.example", quote="I will look into it.", rule="works_on_it", certainty=70)
"""


@pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without"])
def test_somebody_with_a_phone_and_a_link_to_lore(visit: Open, script: bool) -> None:
    """What is up with it stands on the first screen."""
    page = visit("/", width=390, java_script_enabled=script)
    page.fill("#find", "https://lore.kernel.org/r/reply-1@dev.example/")
    page.press("#find", "Enter")
    expect(page).to_have_url(re.compile("/report/3b1f0c9d2e"))
    for name in ("h1", ".big", ".call"):
        expect(page.locator(f".lead {name}").first).to_be_in_viewport()
    expect(page.locator(".lead .call").first).to_contain_text("Waiting for the lab since")


@pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without"])
def test_the_worst_three_and_whom_they_wait_for_are_on_the_first_screen(visit: Open, site: Site, script: bool) -> None:
    """Also with titles of 200 characters."""
    site.run("-m", "tests.browser.made", "long")
    page = visit("/", "toni", java_script_enabled=script)
    rows = page.locator("table tbody tr", has=page.locator("td.chg"))
    expect(page.locator("thead th", has_text="Waiting for")).to_be_in_viewport()
    for row in (rows.nth(0), rows.nth(1), rows.nth(2)):
        expect(row).to_be_in_viewport(ratio=1)
        expect(row.locator("td.chg b")).to_have_text(re.compile(r"^▼.\+1,23[45]%$"))
        expect(row.locator("th a")).not_to_be_empty()
        expect(row.locator("td.by")).to_contain_text(re.compile(r"\S"))
