"""Find the mail that posted a commit as a patch, by its patch-id on a lore server, like `b4 dig`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.archives.sources.mbox import read_mbox
from bot.errors import Unreadable
from bot.mail.message import ParsedMail, parse
from bot.mail.patches import PatchMail, bare_title, is_answer

MOST = 50  # postings of one patch
_PATCH_ID = re.compile(r"[0-9a-f]{40}\Z")


def find_patch_mail(server: str, patch_id: str, title: str) -> PatchMail | None:
    """Return the last posting of this change under this title, or None if the server has none.

    `server` comes from our settings; its public-inbox must index more than `basic`. Raises Unreadable if the query
    fails.
    """
    if not _PATCH_ID.match(patch_id):
        return None
    import liblore

    node = liblore.LoreNode(server, follow_upstream=False, request_timeout=(5.0, 30.0))
    try:
        found = node.get_mbox_by_query(f"patchid:{patch_id}")
    except (liblore.LibloreError, LookupError, OSError) as error:
        if isinstance(error, liblore.RemoteError) and "404" in str(error):
            return None
        raise Unreadable(f"{server}: patch-id {patch_id[:12]}: {' '.join(str(error).split())[:300]}") from error
    finally:
        node.close()
    return chosen(_mails(found), title)


def chosen(mails: Sequence[ParsedMail], title: str) -> PatchMail | None:
    """Return the latest posting with this title, or None; replies may quote a whole patch, and so have its id too."""
    posted = [mail for mail in mails if not is_answer(mail.subject) and bare_title(mail.subject) == title]
    dated = [mail for mail in posted if mail.date and mail.message_id]
    last = max(dated, key=_moment, default=None)
    return PatchMail(last.message_id, last.ancestors[::-1]) if last else None


def _moment(mail: ParsedMail) -> datetime:
    assert mail.date
    return mail.date


def _mails(mbox: bytes) -> list[ParsedMail]:
    if not mbox:
        return []
    with TemporaryDirectory() as folder:
        file = Path(folder) / "found.mbox"
        file.write_bytes(mbox)
        return [parse(each.raw) for each, _ in zip(read_mbox(file), range(MOST), strict=False)]
