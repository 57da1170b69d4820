"""`/lab/patch/<mail>`: the patch that somebody asked the lab to test, as text for `git apply`; nothing of it runs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from bot.lab.requested_patch import patch_of
from bot.mail.message import parse
from tracker.models import Message


@require_safe
def requested_patch(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the patch of a mail exactly as it was posted, which is also what a runner gets; 404 if it has none."""
    message = get_object_or_404(Message.objects.select_related("source").defer("tables", "own_text"), pk=pk)
    found = patch_of(parse(message.source.raw)).text
    text = found or "there is no patch in this mail: it may link to one, or name a branch\n"
    response = HttpResponse(text, content_type="text/plain; charset=utf-8", status=200 if found else 404)
    response["X-Content-Type-Options"] = "nosniff"
    return response
