"""A private Postfix on loopback: it delivers to Maildirs, bounces, and sends nothing to the outside."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from bot.mail.message import parse
from bot.outbox.transports import Server
from tests.support.needs import SERVERS, need, redis_server

# --- A scriptable mail server on loopback: it can reject, defer, hang up at a given byte, or accept and vanish ---


class Moody:
    """An aiosmtpd handler that gives the configured answers and keeps what it accepted."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.reached: list[list[str]] = []
        self.senders: list[str] = []
        self.greeted: list[str] = []
        self.options: list[list[str]] = []
        self.sessions = 0
        self.rcpt: dict[str, str] = {}  # answers for particular recipients; 250 for all others
        self.mail = "250 fine"  # the answer to MAIL
        self.answer = "250 taken"  # the answer to the final dot
        self.vanish = False  # hang up after the final dot, without an answer
        self.stall = 0.0  # seconds before the final dot is answered

    @property
    def ids(self) -> Counter[str]:
        """How often each Message-ID was accepted."""
        return Counter(parse(raw).message_id for raw in self.taken)

    async def handle_EHLO(
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        self.sessions += 1
        self.greeted.append(hostname)
        session.host_name = hostname
        return responses

    async def handle_MAIL(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        self.options.append(options)
        if self.mail.startswith("250"):
            envelope.mail_from = address
            envelope.mail_options.extend(options)
        return self.mail

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        reply = self.rcpt.get(address, "250 fine")
        if reply.startswith("250"):
            envelope.rcpt_tos.append(address)
        return reply

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        await asyncio.sleep(self.stall)
        if self.answer.startswith("250"):
            self.taken.append(envelope.original_content or b"")
            self.reached.append(list(envelope.rcpt_tos))
            self.senders.append(envelope.mail_from or "")
        if self.vanish:
            server.transport.abort()
        return self.answer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def self_signed(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Make a certificate for localhost, which nobody trusts; return its file, and what a server needs to show it."""
    need("openssl")
    key, certificate = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context


@contextmanager
def private_redis(place: Path) -> Iterator[None]:
    """Run a Redis that listens on a socket of this path, and stores nothing."""
    command = [redis_server(), "--port", "0", "--unixsocket", str(place), "--save", ""]
    server = subprocess.Popen(command, cwd=place.parent, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while not place.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        yield
    finally:
        server.kill()
        server.wait()
        place.unlink(missing_ok=True)


@contextmanager
def mail_server(mood: Any, **options: Any) -> Iterator[Server]:
    """Run a server with the given handler, and yield its address."""
    controller = Controller(mood, hostname="127.0.0.1", port=free_port(), **options)
    controller.start()
    try:
        yield Server("127.0.0.1", controller.port, timeout=20)
    finally:
        controller.stop()


# --- A private Postfix on loopback: it delivers to Maildirs, bounces, and sends nothing to the outside ---

MAIN = """\
compatibility_level = 3.6
queue_directory = {place}/queue
data_directory = {place}/data
maillog_file = {place}/log
maillog_file_prefixes = {place}
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
myhostname = mx.bot.example.org
mydestination =
alias_maps =
alias_database =
local_recipient_maps =
smtpd_relay_restrictions = permit_mynetworks, reject
smtpd_reject_unlisted_recipient = no
virtual_mailbox_domains = dev.example, lists.example.org, bot.example.org
virtual_mailbox_base = {place}/mail
virtual_mailbox_maps = inline:{{
    {{ dana@dev.example = dana/ }}, {{ perf-reports@lists.example.org = list/ }}, {{ @bot.example.org = bot/ }} }}
virtual_uid_maps = static:65534
virtual_gid_maps = static:65534
default_transport = error:nothing leaves this machine
relay_transport = error:nothing leaves this machine
smtpd_tls_security_level = none
smtp_tls_security_level = none
"""
SERVICES = """\
127.0.0.1:{port} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
error unix - - n - - error
retry unix - - n - - error
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""


@dataclass(frozen=True, slots=True)
class Postfix:
    """The port it listens on, and the directory with its queue and Maildirs."""

    port: int
    directory: Path

    def mails(self, box: str) -> list[bytes]:
        """Return the mails in a Maildir."""
        return [file.read_bytes() for file in sorted((self.directory / "mail" / box / "new").glob("*"))]

    def wait(self, box: str, number: int = 1) -> list[bytes]:
        """Wait until a Maildir has at least `number` mails, and return them."""
        until = time.monotonic() + 30
        while len(self.mails(box)) < number:
            log = self.directory / "log"
            excerpt = log.read_text()[-2000:] if log.exists() else "it wrote no log"
            assert time.monotonic() < until, f"{len(self.mails(box))} of {number} mails in {box}: {excerpt}"
            time.sleep(0.1)
        return self.mails(box)


@contextmanager
def running() -> Iterator[Postfix]:
    directory, port = Path(tempfile.mkdtemp(prefix="postfix-")), free_port()
    directory.chmod(0o755)
    for each in ("queue", "data", "mail", "conf"):
        (directory / each).mkdir()
    shutil.chown(directory / "data", "postfix")
    os.chown(directory / "mail", 65534, 65534)
    (directory / "conf" / "main.cf").write_text(MAIN.format(place=directory))
    (directory / "conf" / "master.cf").write_text(SERVICES.format(port=port))
    command = ["/usr/sbin/postfix", "-c", str(directory / "conf")]
    done = subprocess.run([*command, "start"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    try:
        yield Postfix(port, directory)
    finally:
        subprocess.run([*command, "stop"], capture_output=True, check=False)
        shutil.rmtree(directory, ignore_errors=True)


# --- A RabbitMQ server of a test's own ---


@contextmanager
def rabbit(directory: Path, host: str = "127.0.0.1") -> Iterator[str]:
    """A broker of its own, as the user of its package where we are root; its address."""
    port, epmd, dist = free_port(), free_port(), free_port()
    (directory / "rabbitmq.conf").write_text(f"listeners.tcp.1 = {host}:{port}\nloopback_users = none\n")
    environment = {
        "PATH": SERVERS,
        "HOME": str(directory),
        "RABBITMQ_NODENAME": f"perfwork{port}@localhost",
        "RABBITMQ_MNESIA_BASE": str(directory / "data"),
        "RABBITMQ_LOG_BASE": str(directory / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
        "RABBITMQ_DIST_PORT": str(dist),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(epmd),
    }
    (directory / "plugins").write_text("[].")
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = {"user": "rabbitmq", "group": "rabbitmq", "extra_groups": []}
        for each in (directory, *directory.rglob("*")):
            shutil.chown(each, "rabbitmq", "rabbitmq")
    log = (directory / "out").open("wb")
    user |= {"stdout": log, "stderr": log, "start_new_session": True}
    program = shutil.which("rabbitmq-server", path=SERVERS) or "rabbitmq-server"
    server = subprocess.Popen([program], env=environment, cwd=directory, **user)
    try:
        until = time.monotonic() + 90
        while b"Server startup complete" not in (output := (directory / "out").read_bytes()):
            assert server.poll() is None, output[-2000:].decode("utf-8", "replace")
            assert time.monotonic() < until, output[-2000:].decode("utf-8", "replace")
            time.sleep(0.2)
        yield f"amqp://guest:guest@{host}:{port}//"
    finally:
        os.killpg(server.pid, signal.SIGKILL)  # nothing in it is needed any more
        server.wait(60)
        subprocess.run(["epmd", "-port", str(epmd), "-kill"], env=environment, capture_output=True, check=False)
