"""Find the patch mail of a culprit: by its result, by its `Link:`, or by its patch-id on a lore server."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from bot.compose.threading import ThreadPosition, patch_mail, reply_position
from bot.errors import Unreadable
from bot.outbox.context.compose_config import PatchLookup
from bot.replies.sender_kind import SenderKind
from tracker.models import Commit, Message, OutgoingMail

MOST_ANCESTORS = 10  # mails of a thread
log = logging.getLogger(__name__)


@dataclass(slots=True)
class PatchMails:
    """Looks patches up, by `lookup` if need be; after an error it is not asked again in this round."""

    lookup: PatchLookup | None = None
    _unreachable: bool = field(default=False, init=False)

    def reply_position(self, commit: Commit) -> ThreadPosition:
        """Return the threading of a reply to the patch; a new thread if no patch is known."""
        trailers = [(tag, value) for tag, value in commit.trailers]
        known = commit.patch_message_id or _unless_ours(patch_mail(trailers))
        if not known:
            self._ask(commit)
            known = commit.patch_message_id
        return reply_position(known, commit.patch_references or ancestors(known))

    def _ask(self, commit: Commit) -> None:
        """Ask the server about a commit, and store the answer."""
        if not self.lookup or self._unreachable or not commit.patch_id or not commit.title:
            return
        try:
            found = self.lookup(commit.patch_id, commit.title)
        except Unreadable as error:
            log.error("%s", error)
            self._unreachable = True
            return
        if found:
            commit.patch_message_id, commit.patch_references = found.message_id, list(found.references)
            commit.save(update_fields=["patch_message_id", "patch_references"])


def ancestors(message_id: str) -> tuple[str, ...]:
    """Return the ancestors of a stored mail, the topmost first, for example the cover letter of a patch."""
    found: list[str] = []
    while message_id and len(found) < MOST_ANCESTORS:
        parent = Message.objects.filter(message_id=message_id).values_list("in_reply_to", flat=True).first()
        if not parent or parent in found:
            break
        found.insert(0, parent)
        message_id = parent
    return tuple(found)


def _unless_ours(message_id: str) -> str:
    """Return the linked mail, or "" if it is a report and so not the patch."""
    if not message_id or OutgoingMail.objects.filter(message_id=message_id).exists():
        return ""
    return "" if Message.objects.filter(message_id=message_id, kind=SenderKind.ROBOT).exists() else message_id
