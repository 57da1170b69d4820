"""A private Postfix on loopback: it delivers to Maildirs, bounces, and sends nothing to the outside."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.mail_server import free_port

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
