"""An IMAP server (RFC 3501) as a setting names it: `imaps://user:password@host:port/folder`."""

import imaplib
import ssl
from urllib.parse import SplitResult, unquote


def connect(url: SplitResult, timeout: float) -> imaplib.IMAP4:
    """Return a connection that is logged in. imaplib alone would send the password to whoever answers: with imaps the
    server's certificate must be valid for its name. `timeout`: seconds without an answer.
    """
    host = url.hostname or "localhost"
    if url.scheme == "imaps":
        context = ssl.create_default_context()
        server: imaplib.IMAP4 = imaplib.IMAP4_SSL(host, url.port or 993, ssl_context=context, timeout=timeout)
    else:
        server = imaplib.IMAP4(host, url.port or 143, timeout=timeout)
    try:
        server.login(unquote(url.username or "anonymous"), unquote(url.password or "anonymous"))
    except BaseException:
        server.shutdown()
        raise
    return server


def quoted(folder: str) -> str:
    """Return a folder's name as a quoted string."""
    return '"' + folder.replace("\\", "\\\\").replace('"', '\\"') + '"'
