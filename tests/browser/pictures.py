"""Pictures of the pages, taken from the demo: `make pictures`.

The few that README and docs show go to `docs/pictures`, 1280 pixels wide and light. Those of every page family, on a
desktop and a phone, light and dark, go to `build/pictures`, to be looked at when a page or the stylesheet has changed:
keep the folder of before under another name, and compare.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.site import CHROMIUM, PASSWORD, ROOT, Site

# Each picture of the docs: its page, and how many pixels of it are shown.
SHOWN: Mapping[str, tuple[str, int]] = {
    "home": ("/", 760),
    "triage": ("/v9.1/", 560),
    "report": ("/report/{report}/", 900),
    "curve": ("/curve/{curve}/", 760),
}

# Each page family, as an operator sees it; a name of several words is a state of its own.
FAMILIES: Mapping[str, str] = {
    "home": "/",
    "triage": "/v9.1/",
    "triage-of-many": "/v5.6/",
    "report": "/report/{report}/",
    "report-by-a-person": "/report/{told}/",
    "report-measurements": "/report/{report}/tables/",
    "release-report": "/v5.6/report/",
    "subsystem": "/subsystem/mm/",
    "machine": "/machine/lkp-csl-2sp5/",
    "metrics": "/metric/",
    "search": "/search/?q=subsystem:mm",
    "search-nothing": "/search/?q=nothing-like-this",
    "mine": "/mine/",
    "escalations": "/escalations/",
    "curve": "/curve/{curve}/",
    "curves": "/curves/?of=1&of=2",
    "changes": "/changes/?all=on",
    "compare": "/compare/?of=v5.5&of=v5.6",
    "compare-choose": "/compare/",
    "kernel": "/kernel/v5.6/",
    "studies": "/studies/",
    "study": "/study/oltp/",
    "index": "/index/",
    "index-point": "/index/v5.6/",
    "index-suites": "/index/suites/",
    "statistics": "/statistics/",
    "lab": "/lab/",
    "lab-job": "/lab/job/{job}/",
    "results": "/results/",
    "result": "/results/{result}/",
    "tool-output": "/tool-output/{output}/",
    "review": "/review/",
    "outbox": "/outbox/",
    "mail": "/outbox/{mail}/",
    "operating": "/operating/",
    "policy": "/operating/policy/",
    "people": "/operating/people/",
    "settings": "/operating/settings/",
    "subscriptions": "/subscriptions/?q=subsystem:mm",
    "webhooks": "/webhooks/",
    "help": "/help/",
    "help-triage": "/help/triage/",
    "not-found": "/report/0000000000/",
    "bad-address": "/v9.1/?state=unknown",
}
SIGNED_OUT: Mapping[str, str] = {"visitor": "/", "sign-in": "/sign-in/", "forbidden": "/review/"}

# The rows of the demo that stand for their kind: a program for `manage.py shell`, which prints a name and a key a line.
ROWS = """
from tracker import models
report = models.OutgoingMail.objects.filter(report__messages__isnull=False).earliest("pk").report
told = models.Report.objects.filter(culprit__placeholder=True).earliest("pk")
print("report", report.culprit.sha)
print("told", told.culprit.sha)
print("curve", models.CurveChange.objects.latest("pk").curve_id)
print("job", models.LabJob.objects.earliest("pk").pk)
print("result", models.BisectResult.objects.earliest("pk").pk)
print("output", models.ToolOutput.objects.earliest("pk").pk)
print("mail", models.OutgoingMail.objects.earliest("pk").pk)
"""


@contextmanager
def demo_site() -> Iterator[Site]:
    """A server of the finished demo, with the studies and an operator named kim."""
    with tempfile.TemporaryDirectory() as directory:
        site = Site(Path(directory))
        own = {"PATH": os.environ["PATH"], "PERFWORK_VAR": directory}  # the demo has settings of its own
        subprocess.run([sys.executable, "manage.py", "demo", "--no-serve"], cwd=ROOT, env=own, check=True)
        site.start(site.directory / "demo" / "perfwork.sqlite3")
        try:
            site.run("manage.py", "ingest", *map(str, sorted((ROOT / "fixtures" / "studies").glob("*.jsonl"))))
            site.run("manage.py", "loaddata", "studies", "lab_texts", "-v0")
            person = f"User.objects.create_superuser('kim', 'kim@lab.example', '{PASSWORD}')"
            site.run("manage.py", "shell", "-v0", "-c", f"from django.contrib.auth.models import User; {person}")
            yield site
        finally:
            site.stop()


def take(site: Site, shown: Path, families: Path) -> None:
    rows = dict(line.split() for line in site.run("manage.py", "shell", "-v0", "-c", ROWS).splitlines())
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, (path, height) in SHOWN.items():
            page = browser.new_page(viewport={"width": 1280, "height": height}, color_scheme="light")
            visit(page, site.url + path.format(**rows))
            save(page, shown / f"{name}.png", full_page=False)
        for width, scheme in itertools.product((1280, 390), ("light", "dark")):
            folder = families / f"{width}-{scheme}"
            for user, paths in (("", SIGNED_OUT), ("kim", FAMILIES)):
                page = signed_in(browser, site, user, width, scheme)
                for name, path in paths.items():
                    visit(page, site.url + path.format(**rows))
                    save(page, folder / f"{name}.png", full_page=True)


def signed_in(browser: Browser, site: Site, user: str, width: int, scheme: str) -> Page:
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
    )
    if user:
        page.goto(f"{site.url}/sign-in/password/")
        page.fill("#id_username", user)
        page.fill("#id_password", PASSWORD)
        page.click("main button")
    return page


def visit(page: Page, url: str) -> None:
    page.goto(url)
    page.wait_for_timeout(300)  # scripts have drawn


def save(page: Page, file: Path, *, full_page: bool) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=file, full_page=full_page)
    print(f"{file}  {page.url}")


if __name__ == "__main__":
    with demo_site() as demo:
        take(demo, ROOT / "docs" / "pictures", ROOT / "build" / "pictures")
