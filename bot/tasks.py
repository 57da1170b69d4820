"""Nudges: find work in the database, call one function, done. Each may be lost, repeated or run twice at once."""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from bot.archive.intake import read_source
from bot.archive.sources import Source, open_sources
from bot.config import configured_trees, identity, tree_paths
from bot.errors import Unreadable
from bot.ingest.drop import take_dropped
from bot.outbox.composing import compose_due
from bot.outbox.sending import send_due
from bot.outbox.transport import Server
from bot.upstream.tracking import track
from tracker.models import Archive, Tree, lease

log = logging.getLogger(__name__)


def _lease() -> timedelta:
    return timedelta(seconds=settings.PERFWORK_LEASE)


@shared_task
def take_results() -> int:
    """Take what lies in the drop directory, and compose the mail of what is new."""
    taken = take_dropped(settings.PERFWORK_DROP, tree_paths(), timezone.now())
    compose_due(identity(), timezone.now(), approve_first=settings.PERFWORK_APPROVE_FIRST)
    return taken


@shared_task
def read_archives() -> int:
    """Read what is new in every archive that nobody else is reading."""
    replies = 0
    for path in settings.PERFWORK_ARCHIVES:
        try:
            sources = open_sources(path)
        except (Unreadable, OSError) as error:
            log.error("%s", error)
            continue
        replies += sum(_read(source) for source in sources)
    return replies


def _read(source: Source) -> int:
    """Read one archive under its lease; its trouble is its own."""
    row, _ = Archive.objects.get_or_create(path=source.name)
    if not lease.claim(Archive.objects.all(), row.pk, timezone.now(), _lease()):
        return 0
    try:
        return read_source(source, identity(), timezone.now()).replies
    except (Unreadable, OSError) as error:
        log.error("%s", error)
        return 0
    finally:
        lease.release(Archive.objects.all(), row.pk)


@shared_task
def track_trees() -> int:
    """Walk every tree that nobody else is walking."""
    events = 0
    for tree in configured_trees():
        if not lease.claim(Tree.objects.all(), tree.pk, timezone.now(), _lease()):
            continue
        try:
            events += track(tree, identity(), timezone.now()).events
        except (Unreadable, OSError) as error:
            Tree.objects.filter(pk=tree.pk).update(error=str(error)[:1000])
            log.error("%s", error)
        finally:
            lease.release(Tree.objects.all(), tree.pk)
    return events


@shared_task
def send_mail() -> int:
    """Send what is approved and due; the outbox rows say what that is."""
    try:
        server = Server.from_url(settings.EMAIL_URL)
    except ValueError as mistake:
        log.info("%s", mistake)
        return 0
    return send_due(server, _lease()).total()
