"""A world with a lab, a report in it, a runner with a key, and an operator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from bot.demo import DemoTree
from bot.mail.settings import BotSettings
from tests.support.lab import OLD
from tests.support.people import person
from tests.support.world import DANA, World
from tracker.models import Report
from tracker.services import accounts
from tracker.services.accounts import Scope


@pytest.fixture
def lab_world(tmp_path: Path, db: None) -> World:
    return World(tmp_path, BotSettings(address="perfbot@bot.example.org", trust_policy="open"))


@pytest.fixture
def report(lab_world: World) -> Report:
    """A report whose culprit is in a tree that has the file."""
    tree = DemoTree(lab_world.directory / "linux.git")
    sha = tree.commit("mm/vmscan: scan more", DANA, lab_world.now, files={"mm/vmscan.c": OLD})
    return lab_world.report("mm/vmscan: scan more", sha)


@pytest.fixture
def runner(client: Client, db: None) -> Any:
    """A function that posts as a runner with a key, and returns status and answer."""
    _, token = accounts.create_api_key("runner", [Scope.JOBS], "", timezone.now())

    def post(path: str, body: Any, key: str = token) -> tuple[int, Any]:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {key}"}
        answer = client.post(f"/api/v1/jobs/{path}", sent, content_type="application/json", headers=headers)
        return answer.status_code, answer.json() if answer.content else None

    return post


@pytest.fixture
def operator(db: None) -> Client:
    user = person("operator", "olga")
    client = Client()
    client.force_login(user)
    return client
