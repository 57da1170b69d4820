"""`report RELEASE`: print the release report, or put it into the outbox; `--for mail`: forty lines for a mail."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import mark_safe

from bot.config import bulletin_config
from bot.management import hold_bulletin, require_folded
from bot.notifications import digest
from tracker.documents import linus_mail
from tracker.documents.blocks import FORMS
from tracker.models import Release
from tracker.pages.release_report import document, mail_lines


class Command(BaseCommand):
    help = "Print the report of a release as plain text, Markdown or a printable HTML page."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("release", metavar="RELEASE", help="v6.12")
        parser.add_argument("--format", choices=(*FORMS, "html"), default="txt")
        parser.add_argument("--for", dest="purpose", choices=("page", "mail"), default="page", help="mail: 40 lines")
        parser.add_argument("--hold", action="store_true", help="put the text into the outbox, held for approval")

    def handle(self, *, release: str, format: str, hold: bool, purpose: str, **options: Any) -> None:
        require_folded()
        row = Release.objects.filter(version=release).first()
        if row is None:
            raise CommandError(f"unknown release {json.dumps(release)}; `track` adds releases from git")
        if purpose == "mail":
            if hold or format != "txt":
                raise CommandError("--for mail prints text; use it without --hold and --format")
            page = f"{settings.PERFWORK_BASE_URL}/{release}/"
            subject, text = linus_mail.compose(release, mail_lines(row), page, timezone.now())
            self.stdout.write(f"Subject: {subject}\n\n{text}", ending="")
            return
        content = document(row, settings.PERFWORK_LAB, timezone.now())
        if hold:
            config = bulletin_config()
            self.stdout.write(hold_bulletin(digest.of_release(release, content, config), config))
        elif format == "html":
            style = mark_safe((settings.BASE_DIR / "static" / "perfwork.css").read_text())  # our own file, safe
            self.stdout.write(render_to_string("release_report/standalone.html", {"document": content, "style": style}))
        else:
            self.stdout.write(FORMS[format][0](content, settings.PERFWORK_BASE_URL), ending="")
