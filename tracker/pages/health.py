"""`/healthz`: the process answers. `/readyz`: it can show pages and store, as the database is there and complete."""

import logging

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from tracker.services import event_log
from tracker.services.faults import disks, faults
from tracker.unavailable import reason_of

log = logging.getLogger(__name__)


@never_cache
def alive(request: HttpRequest) -> HttpResponse:
    """Answer without the database: a process must not be restarted because its database is."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
def ready(request: HttpRequest) -> HttpResponse:
    """Return 200, with `degraded` and the kinds of problems if there are any; or 503, and why no page can be shown or
    nothing stored. Names and details are for operators: `/operating/`.
    """
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:  # whose words may name hosts and users: they are for the log
        log.warning("not ready: %s", " ".join(str(error).split()))
        return _not_ready(reason_of(error) or "the database reports an error, which the log shows")
    if missing:
        return _not_ready(f"migrations are missing ({len(missing)}): run `{settings.PROGRAM} migrate`")
    if at := event_log.progress():
        return _not_ready(str(at))
    full = [f"the disk of {disk.name} {disk.why_full}" for disk in disks() if disk.why_full]
    if full:
        return _not_ready(f"nothing can be stored: {', '.join(full)}")
    kinds = sorted({fault.kind for fault in faults(timezone.now())})
    text = f"ready, degraded: {', '.join(kinds)}\n" if kinds else "ready\n"
    return HttpResponse(text, content_type="text/plain")


def _not_ready(why: str) -> HttpResponse:
    return HttpResponse(f"not ready: {why[:500]}\n", status=503, content_type="text/plain")
