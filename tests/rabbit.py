"""A RabbitMQ server of a test's own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.mail_server import free_port
from tests.needs import SERVERS


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
