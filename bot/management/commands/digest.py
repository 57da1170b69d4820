"""`digest [RELEASE]`: the open regressions of a release cycle, and those closed this week.

`--subsystem mm`: forty lines for its maintainer, with what is open there in any release, and what was closed in the
cycle.
"""

import json
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from bot.config import bulletin_config
from bot.management import hold_bulletin, no_input, require_folded, usage_error
from bot.notifications import digest
from tracker.documents import blocks
from tracker.documents.digest import compose, compose_cycle_mail
from tracker.domain.events import OPEN
from tracker.models import Release, Report
from tracker.pages.release_report import current_cycle, mail_lines, week_of
from tracker.services.report_summary import in_cycle


class Command(BaseCommand):
    help = "Print the weekly digest of a release cycle: which regressions are new, unanswered, closed or have a fix."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("release", nargs="?", metavar="RELEASE", help="default: the one in development")
        parser.add_argument(
            "--subsystem", metavar="NAME", help="print a mail for its maintainer; mm/: with all below mm"
        )
        parser.add_argument("--hold", action="store_true", help="put it into the outbox, held for approval")

    def handle(self, *, release: str | None, subsystem: str | None, hold: bool, **options: Any) -> None:
        require_folded()
        version, now = release or current_cycle(), timezone.now()
        if not version or not (release is None or Release.objects.filter(version=release).exists()):
            raise no_input(f"unknown release {json.dumps(version)}; `track` adds releases from git")
        if subsystem:
            if hold:
                raise usage_error("--subsystem prints text; use it without --hold")
            self._print_subsystem(subsystem, version, now)
            return
        if not hold:
            document = compose(version, week_of(version, now), now)
            self.stdout.write(blocks.render(document, settings.PERFWORK_BASE_URL), ending="")
            return
        config = bulletin_config()
        bulletin = digest.of_week(version, config, now)
        if bulletin is None:
            raise no_input(f"no open regressions in {version}, and none closed this week")
        self.stdout.write(hold_bulletin(bulletin, config))

    def _print_subsystem(self, subsystem: str, version: str, now: datetime) -> None:
        """Print what is open in a subsystem, and what was closed in the cycle."""
        own = Q(subsystem=subsystem.rstrip("/"))
        own |= Q(subsystem__startswith=subsystem) if subsystem.endswith("/") else Q()
        if not Report.objects.filter(own).exists():
            raise no_input(f"no report is about the subsystem {json.dumps(subsystem)}")
        rows = mail_lines(own & (Q(state__in=sorted(OPEN)) | in_cycle(version)), version)
        page = settings.PERFWORK_BASE_URL + reverse("things", args=["subsystem"])
        if not subsystem.endswith("/"):
            page = settings.PERFWORK_BASE_URL + reverse("thing", args=["subsystem", subsystem])
        subject, text = compose_cycle_mail(subsystem.rstrip("/"), rows, page, now, version)
        self.stdout.write(f"Subject: {subject}\n\n{text}", ending="")
