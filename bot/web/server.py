"""The web server that `up` starts, one process of it; also `python -m bot.web.server HOST:PORT`.

Waitress reads headers and bodies in one thread for all connections, and a request gets a thread of its own once it is
complete: clients who send slowly, or half, take no thread from anybody. Several processes may serve one socket, which
belongs to who started them: while one starts again, connections wait and none is refused.
"""

import gc
import os
import signal
import socket
import sys
import time
from pathlib import Path

THREADS = 6  # requests that one process answers at the same time
MOST_CONNECTIONS = 800  # of one process, idle and half-sent ones included; below the usual 1,024 open files
STALE = 30  # seconds without a byte after which a connection is closed
LOOK = 5  # seconds between two looks for such connections
MOST_BODY = 17 << 20  # bytes; results have at most 16 MiB
MOST_SECONDS = 120  # from the first byte of a request to its last, however busily they drip
MOST_UNSENT = 1 << 30  # bytes of an answer that wait in a file for a slow reader; up to then, no thread waits for one
MOST_HEADER = 32 << 10
OBJECTS_BETWEEN_COLLECTIONS = 20_000
COUNTERS = 8 << 20  # bytes: 2 kB for each page, method and status that was asked for, of which there are 4,000 at most


def listen(bind: str, *, beside_others: bool = False) -> socket.socket:
    """Return a socket on "host:port", for one or several processes to serve. Raises OSError, ValueError.

    `beside_others`: others may listen there, too, and the kernel shares the connections out.
    """
    host, _, port = bind.rpartition(":")
    host = host.strip("[]")
    infos = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    server = socket.socket(infos[0][0], socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, beside_others)
    server.bind(infos[0][4])
    return server


def allocate_counters(folder: Path) -> bool:
    """Make the file in which this process counts request times; return whether there is space for it.

    prometheus_client maps such a file into memory, and leaves holes in it. On a full disk, the first touch of a hole
    kills the process (SIGBUS). It takes a file that has its size already as it is.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"histogram_{os.getpid()}.db").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, COUNTERS)
    except OSError:
        return False
    return True


def serve(listening: socket.socket) -> None:
    """Answer the requests that come to a socket, until SIGTERM."""
    from waitress.channel import HTTPChannel
    from waitress.server import create_server

    class PunctualChannel(HTTPChannel):  # type: ignore[misc]  # waitress has no types
        """A connection whose requests have a time limit."""

        began = 0.0

        def received(self, data: bytes) -> bool:
            now = time.monotonic()
            if self.request is None:
                self.began = now
            elif now - self.began > MOST_SECONDS:
                self.handle_close()
                return False
            return bool(super().received(data))

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tracker.settings")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # waitress finishes what it is at
    # Let all web processes of this machine count in one directory, before prometheus_client is imported
    from django.conf import settings

    folder = Path(os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", str(settings.VAR / "metrics")))
    if not allocate_counters(folder):
        del os.environ["PROMETHEUS_MULTIPROC_DIR"]  # it counts in memory: `/metrics` has the times of who answers
    from tracker.services.database import keep_journal
    from tracker.wsgi import application

    journal = keep_journal()
    # What was imported stays: it need not be searched for garbage again and again while a page makes thousands of rows.
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    server = create_server(
        application,
        sockets=[listening],
        threads=THREADS,
        connection_limit=MOST_CONNECTIONS,
        channel_timeout=STALE,
        cleanup_interval=LOOK,
        asyncore_loop_timeout=LOOK,
        max_request_body_size=MOST_BODY,
        max_request_header_size=MOST_HEADER,
        # Django looks at X-Forwarded-* only if PERFWORK_BEHIND_PROXY is set.
        clear_untrusted_proxy_headers=False,
        ident="",
        asyncore_use_poll=True,
        outbuf_high_watermark=MOST_UNSENT,
    )
    server.channel_class = PunctualChannel
    server.run()
    del journal


if __name__ == "__main__":
    try:
        _socket = listen(sys.argv[1], beside_others=True)
    except (OSError, ValueError, IndexError) as error:
        sys.exit(f"web: cannot listen on {sys.argv[1:2] or 'HOST:PORT'}: {error}")
    serve(_socket)
