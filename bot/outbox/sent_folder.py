"""The Sent folder of a mailbox (IMAP APPEND, RFC 3501): copies of sent mail, for people and as delivery evidence.

The folder is read like any archive: a mail found there counts as sent, also after a backup was restored.
"""

from __future__ import annotations

import imaplib
import logging
import ssl
from datetime import datetime
from urllib.parse import SplitResult, unquote

TIMEOUT = 30.0
log = logging.getLogger(__name__)


class SentFolder:
    """`imaps://user:password@host/Sent`, opened at the first copy. Its errors affect no mail: that is sent already."""

    def __init__(self, url: SplitResult) -> None:
        self._url = url
        self._server: imaplib.IMAP4 | None = None
        self._unreachable = False

    def keep(self, raw: bytes, at: datetime) -> bool:
        """File a copy, marked as read; on failure, log the error and return False."""
        if self._unreachable:
            return False
        folder = unquote(self._url.path.strip("/")) or "Sent"
        quoted = '"' + folder.replace("\\", "\\\\").replace('"', '\\"') + '"'
        try:
            server = self._open()
            answer, reply = server.append(quoted, "(\\Seen)", imaplib.Time2Internaldate(at), raw)
        except (OSError, imaplib.IMAP4.error, UnicodeError) as error:
            self.close()
            self._unreachable = True  # until the next round, so that not every mail waits for it
            log.error("%s: could not store a copy: %s", self._url.hostname, error)
            return False
        if answer != "OK":
            log.error("%s: could not store a copy in %s: %s", self._url.hostname, folder, reply)
        return answer == "OK"

    def close(self) -> None:
        """Log out; errors of a dead connection are ignored."""
        server, self._server, self._unreachable = self._server, None, False
        if server:
            try:
                server.logout()
            except (OSError, imaplib.IMAP4.error):
                pass

    def _open(self) -> imaplib.IMAP4:
        if self._server is None:
            url = self._url
            host = url.hostname or "localhost"
            if url.scheme == "imaps":
                context = ssl.create_default_context()
                server: imaplib.IMAP4 = imaplib.IMAP4_SSL(host, url.port or 993, ssl_context=context, timeout=TIMEOUT)
            else:
                server = imaplib.IMAP4(host, url.port or 143, timeout=TIMEOUT)
            server.login(unquote(url.username or ""), unquote(url.password or ""))
            self._server = server
        return self._server
