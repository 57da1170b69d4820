"""`digest [RELEASE]`: the open regressions of a release cycle, and those closed this week."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from bot.config import bulletin_config
from bot.management import hold_bulletin, require_folded
from bot.notifications import digest
from tracker.documents import blocks
from tracker.documents import digest as queries
from tracker.documents.digest import compose
from tracker.models import Release


class Command(BaseCommand):
    help = "Print the weekly digest of a release cycle: new, unanswered, almost fixed and closed regressions."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("release", nargs="?", metavar="RELEASE", help="default: the one in development")
        parser.add_argument("--hold", action="store_true", help="put it into the outbox, held for approval")

    def handle(self, *, release: str | None, hold: bool, **options: Any) -> None:
        require_folded()
        version, now = release or queries.current(), timezone.now()
        if not version or not (release is None or Release.objects.filter(version=release).exists()):
            raise CommandError(f"unknown release {json.dumps(version)}; `track` adds releases from git")
        if not hold:
            document = compose(version, queries.of(version, now), now)
            self.stdout.write(blocks.render(document, settings.PERFWORK_BASE_URL), ending="")
            return
        config = bulletin_config()
        bulletin = digest.of_week(version, config, now)
        if bulletin is None:
            raise CommandError(f"no open regressions in {version}, and none closed this week")
        self.stdout.write(hold_bulletin(bulletin, config))
