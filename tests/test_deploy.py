"""deploy/: what is there is complete, and the tools that will read it accept it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT, clean_environment
from tests.support.needs import SERVERS, need

pytestmark = pytest.mark.slow

DEPLOY = ROOT / "deploy"
PATH = {**os.environ, "PATH": SERVERS}


def settings_of(page: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", page, re.M)


def test_the_env_file_has_every_setting_once() -> None:
    names = re.findall(r"^#?([A-Z_]+)=", (DEPLOY / "perfwork.env").read_text(), re.M)
    documented = settings_of((ROOT / "docs" / "reference.md").read_text().partition("\n## ")[2].partition("\n## ")[0])
    assert sorted(names) == sorted(documented)
    read = re.findall(r'"((?:PERFWORK_)?[A-Z_]{4,})"', (ROOT / "tracker" / "settings.py").read_text())
    assert {name for name in read if name.startswith("PERFWORK_")} - {"PERFWORK_ENV"} <= set(documented)


def test_perfwork_starts_with_the_env_file_once_it_has_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "perfwork.env"
    shutil.copy(DEPLOY / "perfwork.env", file)
    clean = clean_environment()
    env = {**clean, "PERFWORK_ENV": str(file), "PERFWORK_VAR": str(tmp_path / "var")}
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 78
    assert "SECRET_KEY is not set" in done.stderr
    file.write_text(file.read_text().replace("SECRET_KEY=\n", f"SECRET_KEY={'correct-horse-battery-staple' * 3}\n", 1))
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    need("systemd")
    program = tmp_path / "srv" / "perfwork" / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    units = sorted((DEPLOY / "systemd").iterdir())
    assert len(units) == 6
    for unit in units:
        (tmp_path / unit.name).write_text(unit.read_text().replace("/srv/perfwork", str(tmp_path / "srv" / "perfwork")))
    names = [str(tmp_path / unit.name) for unit in units]
    done = subprocess.run(["systemd-analyze", "verify", *names], capture_output=True, text=True)
    complaints = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "perfwork" in line]
    assert (done.returncode, complaints) == (0, [])


def test_a_worker_unit_is_named_after_a_queue() -> None:
    from bot.celery import QUEUES

    page = (ROOT / "docs" / "operating.md").read_text()
    assert all(f"`{queue}`" in page for queue in QUEUES)
    assert "--queues %i" in (DEPLOY / "systemd" / "perfwork-worker@.service").read_text()


def test_nginx_accepts_its_configuration(tmp_path: Path) -> None:
    need("nginx", "openssl")
    certificate, key = tmp_path / "a.pem", tmp_path / "a.key"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=perf.example.org"]
    subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    text = (DEPLOY / "nginx.conf").read_text()
    text = text.replace("/etc/ssl/perf.example.org.pem", str(certificate))
    text = text.replace("/etc/ssl/private/perf.example.org.key", str(key))
    whole = f"pid {tmp_path}/pid; error_log stderr; events {{}}\nhttp {{ access_log off;\n{text}\n}}\n"
    (tmp_path / "nginx.conf").write_text(whole)
    done = subprocess.run(["nginx", "-t", "-c", tmp_path / "nginx.conf"], env=PATH, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_caddy_accepts_its_configuration(tmp_path: Path) -> None:
    need("caddy")
    command = ["caddy", "validate", "--adapter", "caddyfile", "--config", DEPLOY / "Caddyfile"]
    done = subprocess.run(command, env={**PATH, "HOME": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_hadolint_accepts_the_dockerfile() -> None:
    program = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([program, DEPLOY / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_parts_in_containers_are_those_of_up() -> None:
    from bot.management.commands.up import ROLES

    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert {*ROLES, "database", "broker", "migrate"} == services.keys()
    for name, service in services.items():
        assert service["image"]
        assert set(service.get("depends_on", {})) <= services.keys(), name
    for role in ROLES:
        assert services[role]["command"][:5] == ["python", "manage.py", "up", "--only", role]
        assert "/etc/perfwork.env" in services[role]["env_file"]
        assert (ROOT / services[role]["build"]["dockerfile"]).is_file()


def test_who_stops_a_worker_gives_it_time_for_its_round_of_mail() -> None:
    """What is killed while it talks to a server leaves a mail in doubt."""
    from bot.outbox.sender import LINGER
    from bot.tasks import SENDING

    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    patience = {name: compose[name]["stop_grace_period"] for name in ("web", "worker", "beat")}
    for unit in (DEPLOY / "systemd").glob("*.service"):
        if stop := re.search(r"^TimeoutStopSec=(\d+)$", unit.read_text(), re.M):
            patience[unit.name] = f"{stop[1]}s"
    assert {"worker", "perfwork-worker@.service", "perfwork.service"} <= patience.keys()
    assert set(patience.values()) == {"60s"}
    assert SENDING + LINGER < 60


def known_metrics() -> set[str]:
    """The names of what /metrics can show."""
    texts = "".join((ROOT / path).read_text() for path in ("bot/web/metrics.py", "tracker/middleware.py"))
    names = set(re.findall(r'"(perfwork_\w+)"', texts)) | {"up"}
    names |= {f"perfwork_{what}_{kind}" for what in ("archive", "tree") for kind in ("lag_seconds", "failing")}
    return names | {f"perfwork_request_seconds_{kind}" for kind in ("bucket", "count", "sum")}


def test_alerts_and_board_ask_for_metrics_that_exist_and_every_kind_of_problem_has_an_alert() -> None:
    from tracker.services.faults import FaultKind

    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())["groups"][0]["rules"]
    board = json.loads((DEPLOY / "grafana" / "perfwork.json").read_text())
    asked = [rule["expr"] for rule in rules]
    asked += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    used = {name for expression in asked for name in re.findall(r"\b(?:perfwork_\w+|up)\b", expression)}
    assert used <= known_metrics()
    kinds = set(re.findall(r'kind="(\w+)"', " ".join(asked)))
    assert kinds == {str(kind) for kind in FaultKind}
    page = (ROOT / "docs" / "operating.md").read_text()
    for rule in rules:
        anchor = rule["annotations"]["runbook"].partition("#")[2]
        assert f'<a id="{anchor}"></a>' in page, rule["alert"]


def test_prometheus_accepts_the_alerts() -> None:
    need("prometheus")
    done = subprocess.run(
        ["promtool", "check", "rules", "--lint=all", "--lint-fatal", DEPLOY / "prometheus" / "alerts.yaml"],
        env=PATH, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    config = ["promtool", "check", "config", "--syntax-only", DEPLOY / "prometheus" / "prometheus.yaml"]
    assert subprocess.run(config, env=PATH, capture_output=True).returncode == 0


@pytest.mark.long
def test_the_commands_of_the_page_about_operating_run(tmp_path: Path) -> None:
    """Those that need no root, and no mail of before; `make operating` follows the whole page in a container."""
    blocks = re.findall(r"^```console\n(.*?)^```", (ROOT / "docs" / "operating.md").read_text(), re.M | re.S)
    able = re.compile(r"perfwork (people invite|outbox (hold|go)|backup|restore|prune)\b.*")
    commands = [line for block in blocks for line in block.splitlines() if able.fullmatch(line)]
    assert len(commands) >= 8
    script = "\n".join(commands).replace("/var/backups/perfwork", str(tmp_path)).replace("perfwork ", "./manage.py ")
    clean = clean_environment()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**clean, "PERFWORK_VAR": str(tmp_path / "var"), "PATH": path}
    command = ["bash", "-ec", f"./manage.py migrate -v0\n{script}"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
