"""The pictures of README and docs, taken from the demo: `python -m tests.browser.pictures [FOLDER]`.

Taken again with `make pictures` when a page has changed; pages are 1280 pixels wide, light.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.site import CHROMIUM, ROOT, Site

# Each picture: its page, and how many pixels of it are shown.
CURVE = "/curve/{curve}/"  # the one of the newest change
PICTURES: Mapping[str, tuple[str, int]] = {
    "home": ("/", 760),
    "triage": ("/v9.1/", 560),
    "curve": (CURVE, 600),
    "index": ("/index/", 460),
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        site = Site(Path(directory))
        own = {"PATH": os.environ["PATH"], "PERFWORK_VAR": directory}  # the demo has settings of its own
        subprocess.run([sys.executable, "manage.py", "demo", "--no-serve"], cwd=ROOT, env=own, check=True)
        site.start(site.directory / "demo" / "perfwork.sqlite3")
        try:
            take(site, folder)
        finally:
            site.stop()


def take(site: Site, folder: Path) -> None:
    ask = "from tracker.models import CurveChange; print(CurveChange.objects.latest('pk').curve_id)"
    curve = site.run("manage.py", "shell", "-v0", "-c", ask).strip()
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, (path, height) in PICTURES.items():
            page = browser.new_page(viewport={"width": 1280, "height": height}, color_scheme="light")
            page.goto(site.url + path.format(curve=curve))
            page.wait_for_timeout(500)  # the curve is drawn
            page.screenshot(path=folder / f"{name}.png")
            print(f"{folder / name}.png  {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures")
