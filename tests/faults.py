"""`make faults`: a disk that is full, has no inodes or is read-only. Pages stay, uploads wait, what was taken is there.

Each story has a file system of its own in memory, so it needs root; elsewhere it is skipped, and said.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.site import ROOT, Site
from tests.support.needs import need

PAGES = ("/", "/v5.6/", "/report/8019ad13ef/", "/curve/1/", "/search/?q=subsystem:mm", "/compare/?of=v5.5&of=v5.6")
RESULT = (ROOT / "fixtures" / "results" / "02-fs-ledger.json").read_bytes()


@pytest.fixture
def small(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose files are on a disk of 64 MiB with few inodes."""
    need("mount")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,nr_inodes=400", "none", disk], check=True)
    site = Site(disk)
    site.env["PERFWORK_METRICS_KEY"] = "key"
    try:
        own = tmp_path_factory.getbasetemp()
        site.start((own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own) / "made.sqlite3")
        yield site
    finally:
        site.stop()
        subprocess.run(["umount", "--lazy", disk], check=True)


def fill(site: Site) -> Path:
    """Write until there is no space."""
    ballast = site.directory / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(b"\0" * (1 << 16) if site_free(site) > 1 << 16 else b"\0" * 512)
    return ballast


def site_free(site: Site) -> int:
    at = os.statvfs(site.directory)
    return at.f_bavail * at.f_frsize


def get(site: Site, path: str, **headers: str) -> tuple[int, str]:
    return ask(urllib.request.Request(f"{site.url}{path}", headers=headers))


def ask(request: urllib.request.Request) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        return error.code, f"{error.headers.get('Retry-After')} {error.read().decode()}"


def post(site: Site, key: str) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return ask(urllib.request.Request(f"{site.url}/api/v1/results", data=RESULT, headers=headers, method="POST"))


def key_of(site: Site) -> str:
    return site.run("manage.py", "apikey", "create", "lab", "--producer", "*").split()[-1]


def all_pages(site: Site) -> dict[str, int]:
    return {path: get(site, path)[0] for path in PAGES}


def test_no_space(small: Site) -> None:
    key = key_of(small)
    ballast = fill(small)
    assert set(all_pages(small).values()) == {200}
    assert get(small, "/metrics", Authorization="Bearer key")[0] == 200
    status, why = get(small, "/readyz")
    assert (status, "nothing can be stored: the disk" in why) == (503, True)
    status, why = post(small, key)
    assert (status, why.split()[0], "disk" in why) == (507, "60", True)
    assert set(all_pages(small).values()) == {200}  # by the same process
    ballast.unlink()
    assert post(small, key)[0] == 202
    status, why = get(small, "/readyz")
    assert (status, why.startswith("ready"), "disk" in why) == (200, True, False)
    assert post(small, key)[0] == 200  # known: it was stored once


def test_a_server_that_starts_on_a_full_disk(small: Site) -> None:
    """As after a crash: `up` itself goes on, and starts it again."""
    with sqlite3.connect(small.database) as journal:  # as `up` keeps it
        journal.execute("SELECT count(*) FROM sqlite_master").fetchone()
        small.stop()
        fill(small)
        small.serve()
    assert set(all_pages(small).values()) == {200}
    assert "perfwork_request_seconds_count" in get(small, "/metrics", Authorization="Bearer key")[1]


def test_no_inodes(small: Site) -> None:
    folder = small.directory / "many"
    folder.mkdir()
    with pytest.raises(OSError, match="No space left"):
        for number in range(1000):
            (folder / str(number)).touch()
    assert set(all_pages(small).values()) == {200}
    status, why = get(small, "/readyz")
    assert (status, "nothing can be stored: the disk" in why) == (503, True)


def test_read_only(small: Site) -> None:
    key = key_of(small)
    # Over itself: files are open, and the kernel only makes a disk read-only under them when that fails
    subprocess.run(["mount", "--bind", small.directory, small.directory], check=True)
    subprocess.run(["mount", "-o", "remount,ro,bind", small.directory], check=True)
    assert set(all_pages(small).values()) == {200}
    status, why = get(small, "/readyz")
    assert (status, "nothing can be stored: the disk" in why) == (503, True)
    assert post(small, key)[0] == 507
    subprocess.run(["umount", small.directory], check=True)
    assert post(small, key)[0] == 202
    assert json.loads(get(small, "/api/v1/reports?limit=1")[1])
