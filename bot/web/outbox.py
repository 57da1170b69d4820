"""`/outbox/<id>/edit/`: an operator edits the text of a mail that waits, before anybody gets it.

The lint looks at the edited text as at a composed one, and an edit can't change what was measured. An edited mail
waits for approval, and shows who edited it; nothing composes over it.
"""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from bot.compose.lint import MAX_BYTES, edit_faults
from bot.compose.mail import edited
from bot.config import bot_identity, compose_config
from tracker.models import OutgoingMail
from tracker.pages.http import cleaned, permission_required, username
from tracker.services import mail_transitions
from tracker.services.accounts import SEND


@permission_required(SEND, "only operators can edit outgoing mail")
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the text in a form; take it, or say what is wrong with it and keep what was typed."""
    mail, now = get_object_or_404(OutgoingMail.objects.select_related("report__culprit"), pk=pk), timezone.now()
    text, status = mail.body, 200
    faults: tuple[str, ...] = ()
    if request.method == "POST" and request.POST.get("do") == "again":
        if mail_transitions.compose_again(mail, username(request), now):
            messages.info(request, "The edited text is dropped; the mail is composed again within a minute.")
        return redirect("outgoing-mail", pk)
    if request.method == "POST":
        text, status = cleaned(request.POST, "text", MAX_BYTES).replace("\r\n", "\n"), 400
        text = text if text.endswith("\n") else f"{text}\n"
        faults = _faults(mail, text, request.POST.get("version", ""))
        if not faults and mail_transitions.edit(mail, edited(bytes(mail.raw), text), text, username(request), now):
            messages.info(request, "The text is changed. The mail waits for approval.")
            return redirect("outgoing-mail", pk)
        faults = faults or (_CHANGED,)
    elif not mail_transitions.is_editable(mail):
        faults, status = (_GONE,), 409
    return render(request, "outbox_edit.html", {"mail": mail, "text": text, "faults": faults}, status=status)


_CHANGED = "the mail was changed in the meantime: copy what you typed, and open it again"
_GONE = "the mail is no longer waiting, so its text can't be changed"


def _faults(mail: OutgoingMail, text: str, version: str) -> tuple[str, ...]:
    if not mail_transitions.is_editable(mail):
        return (_GONE,)
    if version != mail.version or mail.stale:
        return (_CHANGED,)
    settings = bot_identity()
    tag = settings.tag_in(mail.sender)
    conventions = compose_config().conventions
    return edit_faults(bytes(mail.raw), mail.body, text, tag, settings, conventions, timezone.now())
