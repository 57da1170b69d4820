"""`/lab/patch/<mail>`: the patch that somebody asked the lab to test, as text for `git apply`; nothing of it runs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from bot.mail.diffs import find_diffs
from bot.mail.message import parse
from tracker.models import Message


@require_safe
def requested_patch(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the diffs of a mail, one after the other, exactly as they were posted; 404 if it has none."""
    message = get_object_or_404(Message.objects.select_related("source").defer("tables", "own_text"), pk=pk)
    mail = parse(message.source.raw)
    found = [diff for text in (mail.text, *(each.text for each in mail.attachments)) for diff in find_diffs(text)]
    text = "".join(found) or "there is no patch in this mail: it may link to one, or name a branch\n"
    response = HttpResponse(text, content_type="text/plain; charset=utf-8", status=200 if found else 404)
    response["X-Content-Type-Options"] = "nosniff"
    return response
