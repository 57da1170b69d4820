"""A report's thread as an mbox: b4 finds the patch in it, and it reads back byte for byte."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

from django.test import Client

from bot.archives.files import read_mbox
from tests.world import DANA, World, message_id
from tracker.models import Message

DIFF = """diff --git a/mm/a.c b/mm/a.c
index 7898192..6178079 100644
--- a/mm/a.c
+++ b/mm/a.c
@@ -1 +1 @@
-a
+b
"""


def test_b4_takes_the_patch_out_of_it(world: World, client: Client, tmp_path: Path) -> None:
    report = world.report("mm: scan more")
    text = f"Scan less.\n\nCloses: https://lore.kernel.org/r/{message_id(report)}\nSigned-off-by: {DANA}\n---\n{DIFF}"
    world.post(DANA, text, subject="[PATCH] mm: scan less")
    world.read()
    patch = Message.objects.get(subject="[PATCH] mm: scan less")
    plain = b"".join(client.get(f"/report/{report.culprit.sha[:10]}.mbox"))  # type: ignore[arg-type]
    packed = b"".join(client.get(f"/report/{report.culprit.sha[:10]}.mbox.gz"))  # type: ignore[arg-type]
    assert gzip.decompress(packed) == plain
    (tmp_path / "thread.mbox").write_bytes(plain)
    read = [mail.raw for mail in read_mbox(tmp_path / "thread.mbox")]
    assert patch.source is not None
    assert bytes(patch.source.raw).replace(b"\r\n", b"\n") in read
    command = [
        str(Path(sys.executable).with_name("b4")),
        "--offline-mode",
        "am",
        "-m",
        "thread.mbox",
        "-o",
        "out",
        patch.message_id,
    ]
    settings = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "GIT_CONFIG_COUNT": "1"}
    settings |= {"GIT_CONFIG_KEY_0": "b4.attestation-policy", "GIT_CONFIG_VALUE_0": "off"}
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    [made] = (tmp_path / "out").glob("*.mbx")
    assert DIFF in made.read_text(), done.stderr
