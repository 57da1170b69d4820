"""`report RELEASE`: print the release report, or put it into the outbox; `--for mail`: forty lines for a mail.

PDF is printed from the HTML page by WeasyPrint, or, where its libraries are missing (Pango), by Chromium.
"""

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import mark_safe

from bot.config import bulletin_config
from bot.management import hold_bulletin, no_input, require_folded, unavailable, usage_error
from bot.notifications import digest
from tracker.documents.blocks import FORMS
from tracker.documents.digest import compose_cycle_mail
from tracker.models import Release
from tracker.pages.release_report import document, mail_lines
from tracker.services.report_summary import in_cycle


class Command(BaseCommand):
    help = "Print the report of a release as plain text, Markdown or a printable HTML page."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("release", metavar="RELEASE", help="v6.12")
        parser.add_argument("--format", choices=(*FORMS, "html", "pdf"), default="txt")
        parser.add_argument("--for", dest="purpose", choices=("page", "mail"), default="page", help="mail: 40 lines")
        parser.add_argument("--hold", action="store_true", help="put the text into the outbox, held for approval")

    def handle(self, *, release: str, format: str, hold: bool, purpose: str, **options: Any) -> None:
        require_folded()
        row = Release.objects.filter(version=release).first()
        if row is None:
            raise no_input(f"unknown release {json.dumps(release)}; `track` adds releases from git")
        if purpose == "mail":
            if hold or format != "txt":
                raise usage_error("--for mail prints text; use it without --hold and --format")
            page = f"{settings.PERFWORK_BASE_URL}/{release}/"
            subject, text = compose_cycle_mail(release, mail_lines(in_cycle(release), release), page, timezone.now())
            self.stdout.write(f"Subject: {subject}\n\n{text}", ending="")
            return
        content = document(row, settings.PERFWORK_LAB, timezone.now())
        if hold:
            config = bulletin_config()
            self.stdout.write(hold_bulletin(digest.of_release(release, content, config), config))
        elif format in ("html", "pdf"):
            style = mark_safe((settings.BASE_DIR / "static" / "perfwork.css").read_text())  # our own file, safe
            page = render_to_string("release_report/standalone.html", {"document": content, "style": style})
            page = page.replace('href="/', f'href="{settings.PERFWORK_BASE_URL}/')  # it is read elsewhere
            if format == "html":
                self.stdout.write(page)
            elif self.stdout.isatty():
                raise usage_error(f"a PDF is not text for a terminal: report {release} --format pdf > {release}.pdf")
            else:
                sys.stdout.buffer.write(_pdf(page))
        else:
            self.stdout.write(FORMS[format][0](content, settings.PERFWORK_BASE_URL), ending="")


def _pdf(page: str) -> bytes:
    """Print a page. Raises CommandError if neither printer is here."""
    try:
        import weasyprint
    except (ImportError, OSError) as error:  # OSError: Pango is a library of the system
        browser = shutil.which("chromium") or shutil.which("chromium-browser")
        if not browser:
            raise unavailable(
                "no PDF: WeasyPrint needs Pango (apt install libpango-1.0-0 libpangoft2-1.0-0), or install chromium;"
                " or print the page of --format html from a browser"
            ) from error
        return _printed_by(browser, page)
    logging.getLogger("weasyprint").setLevel(logging.CRITICAL)  # of what only browsers know, such as a hover
    # Everything stands in the page itself: nothing is fetched
    pdf: bytes = weasyprint.HTML(string=page, url_fetcher=_fetch_nothing).write_pdf()
    return pdf


def _fetch_nothing(url: str, *rest: object, **options: object) -> dict[str, object]:
    raise ValueError(f"not fetched: {url[:80]}")


def _printed_by(browser: str, page: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "report.html"), Path(folder, "report.pdf")
        source.write_text(page)
        quiet = ("--headless=new", "--disable-gpu", "--no-pdf-header-footer", "--host-resolver-rules=MAP * ~NOTFOUND")
        sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()  # it has none for root
        command = [
            browser,
            *quiet,
            *sandbox,
            f"--user-data-dir={folder}/profile",
            f"--print-to-pdf={target}",
            str(source),
        ]
        try:
            run = subprocess.run(command, capture_output=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            raise unavailable(f"no PDF: {browser} took more than two minutes") from None
        if not target.exists():
            raise unavailable(f"no PDF: {browser} ended with {run.returncode}")
        return target.read_bytes()
