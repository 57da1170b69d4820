"""The Sent folder of a mailbox (IMAP APPEND, RFC 3501): a copy of what went out, for people, and as a witness.

The folder is read like any archive, so that what turns up there counts as sent, be it after a backup was restored.
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
    """`imaps://user:password@host/Sent`, opened at the first copy. Its trouble is no mail's: that has gone out."""

    def __init__(self, url: SplitResult) -> None:
        self._url = url
        self._server: imaplib.IMAP4 | None = None
        self._gone = False

    def keep(self, raw: bytes, at: datetime) -> bool:
        """File a copy, marked as read; False, with a line in the log, where that failed."""
        if self._gone:
            return False
        folder = unquote(self._url.path.strip("/")) or "Sent"
        quoted = '"' + folder.replace("\\", "\\\\").replace('"', '\\"') + '"'
        try:
            server = self._open()
            answer, words = server.append(quoted, "(\\Seen)", imaplib.Time2Internaldate(at), raw)
        except (OSError, imaplib.IMAP4.error, UnicodeError) as error:
            self.close()
            self._gone = True  # until the next round: each mail would wait for it
            log.error("%s: no copy could be kept: %s", self._url.hostname, error)
            return False
        if answer != "OK":
            log.error("%s: no copy could be kept in %s: %s", self._url.hostname, folder, words)
        return answer == "OK"

    def close(self) -> None:
        """Log out; a server that is gone does not matter any more."""
        server, self._server, self._gone = self._server, None, False
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
