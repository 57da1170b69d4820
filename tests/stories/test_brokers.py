"""The same tasks over another broker: Redis, from a wheel, on a Unix socket."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bot.demo import DemoInbox, serve
from tests.conftest import ROOT
from tests.databases import migrated
from tests.stories.test_it_runs_by_itself import free_port

NUDGE = "from bot.tasks import send_mail; send_mail.delay()"


@pytest.mark.slow
@pytest.mark.long
def test_an_enqueued_task_over_redis_sends_the_mail(tmp_path: Path, redis: str) -> None:
    catcher = serve(DemoInbox(tmp_path / "inbox"), free_port())
    env = {
        **os.environ,
        "PERFWORK_VAR": str(tmp_path / "var"),
        "EMAIL_URL": f"smtp://127.0.0.1:{catcher.port}",
        "PERFWORK_APPROVE_FIRST": "off",
        "CELERY_BROKER_URL": redis,
    }

    def manage(*arguments: str) -> None:
        subprocess.run([sys.executable, "manage.py", *arguments], cwd=ROOT, env=env, check=True, capture_output=True)

    migrated(tmp_path / "var" / "perfwork.sqlite3")
    manage("ingest", "fixtures/results/01-mm-vmscan.json")
    command = [sys.executable, "-m", "celery", "-A", "bot", "--quiet", "worker", "--concurrency", "1"]
    worker = subprocess.Popen([*command, "--loglevel", "ERROR"], cwd=ROOT, env=env, stderr=subprocess.DEVNULL)
    try:
        manage("shell", "-v0", "-c", NUDGE)
        manage("shell", "-v0", "-c", NUDGE)  # twice, which must not matter
        deadline = time.monotonic() + 60
        while not catcher.handler.received and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(1)  # for the second nudge
        assert len(catcher.handler.received) == 1
    finally:
        worker.terminate()
        worker.wait(30)
        catcher.stop()


@pytest.mark.slow
def test_what_a_page_enqueues_goes_to_the_queue_of_its_kind() -> None:
    """In a process that never imported the worker's code, such as a web server's."""
    code = (
        "import django; django.setup(); import bot.urls; from celery import current_app;"
        "print(*(current_app.amqp.router.route({}, name)['queue'].name for name in ('send_mail', 'send_links')))"
    )
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "tracker.settings"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, check=True, capture_output=True, text=True)
    assert done.stdout == "mail web\n"
