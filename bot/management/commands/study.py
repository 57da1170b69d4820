"""`study [SLUG]`: print a study as text or Markdown, or put it into the outbox; `--of` creates it."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from bot.config import bulletin_config
from bot.management import hold_bulletin, no_input, usage_error
from bot.notifications import digest
from tracker.documents.blocks import FORMS
from tracker.domain.events import InvalidInput
from tracker.models import Study, StudyKind
from tracker.pages import studies
from tracker.pages.studies import document


class Command(BaseCommand):
    help = "Print a study, a named comparison of kernels: variants side by side, or versions in order."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", nargs="?", metavar="SLUG", help="without it, list all studies")
        parser.add_argument(
            "--of", action="append", metavar="KERNEL", help="create a study with this kernel, e.g. v5.10/2M; repeatable"
        )
        parser.add_argument("--title", default="", help="the title of the new study")
        parser.add_argument("--kind", choices=StudyKind.values, default="", help="default: guessed from the kernels")
        parser.add_argument("--format", choices=FORMS, default="txt")
        parser.add_argument("--hold", action="store_true", help="put the text into the outbox, held for approval")

    def handle(self, *, slug: str | None, of: list[str] | None, **options: Any) -> None:
        if slug is None:
            for row in Study.objects.all():
                self.stdout.write(f"{row.slug}: {row.title}")
            return
        if of:
            try:
                studies.make(slug, options["title"] or slug, options["kind"], of, timezone.now())
            except InvalidInput as error:
                raise usage_error(str(error)) from None
        study = Study.objects.filter(slug=slug).first()
        if study is None:
            raise no_input(f"no study named {slug[:80]}; create it with --of")
        content = document(study)
        if options["hold"]:
            config = bulletin_config()
            self.stdout.write(hold_bulletin(digest.of_study(study, content, config), config))
        else:
            self.stdout.write(FORMS[options["format"]][0](content, settings.PERFWORK_BASE_URL), ending="")
