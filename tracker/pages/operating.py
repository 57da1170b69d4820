"""`/operating/`: what is wrong with the installation, what waits for a person, and what it does by itself, as `status`
prints it. `/healthz`: the process answers; `/readyz`: it can show pages and store.
"""

import logging

from django.conf import settings
from django.contrib import messages
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from tracker.pages.http import cleaned, error_response, permission_required
from tracker.services import event_log, installation
from tracker.services.accounts import SEND
from tracker.services.database import outage
from tracker.services.faults import disks, faults
from tracker.services.installation import Tried, growth
from tracker.services.mail_transitions import stopped

log = logging.getLogger(__name__)


@require_safe
@permission_required(SEND, "only operators see how the installation stands")
def operating(request: HttpRequest) -> HttpResponse:
    """Show problems first, then what waits, then the duties."""
    now = timezone.now()
    standing = installation.standing(now)
    triable = installation.triable(standing.problems)
    context = {
        "standing": standing,
        "problems": [(fault, fault in triable) for fault in standing.problems],
        "rejected": installation.rejected_files(settings.PERFWORK_DROP / "refused"),
        "stop": stopped(),
        "stored": growth(now),
        "now": now,
    }
    return render(request, "operating.html", context)


@require_POST
@permission_required(SEND, "only operators can have something tried again")
def try_now(request: HttpRequest) -> HttpResponse:
    """Read an archive or walk a tree at once that failed, without waiting for its turn: `kind` and `name`."""
    kind, name = cleaned(request.POST, "kind"), cleaned(request.POST, "name")
    if kind not in list(Tried):
        return error_response(f"kind: expected one of {', '.join(Tried)}; found {kind[:40]!r}")
    done = installation.try_now(Tried(kind), name)
    said = (
        "A worker tries it now; look again in a minute." if done else "Nothing was changed: it is no longer followed."
    )
    messages.info(request, said)
    return redirect("operating")


# --- For programs ---


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
        return _not_ready(outage(error) or "the database reports an error, which the log shows")
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
