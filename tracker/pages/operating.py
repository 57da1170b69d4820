"""`/operating/`: what is wrong with the installation, what waits for a person, and what it does by itself.

For operators. `status` prints the same.
"""

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from tracker.pages.http import cleaned, error_response, permission_required
from tracker.services import installation
from tracker.services.accounts import SEND
from tracker.services.installation import Tried
from tracker.services.mail_transitions import stopped
from tracker.services.sizes import growth


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
