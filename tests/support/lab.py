"""What the stories of the lab share: patches, requests for a test, and what a runner hands in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from bot.lab import open_jobs
from bot.mail.addresses import Address
from bot.notifications.follow_ups import compose_follow_ups
from tests.support.world import DANA, LEE, World, message_id
from tracker.models import LabJob, Message, OutgoingMail, Report

FRIDAY = datetime(2026, 11, 20, 9, tzinfo=UTC)
EVE = Address("Eve", "eve@x.example")
OLD = "#define SCAN_COST 56\n\nint scan(void);\n"
DIFF = """\
diff --git a/mm/vmscan.c b/mm/vmscan.c
--- a/mm/vmscan.c
+++ b/mm/vmscan.c
@@ -1,3 +1,3 @@
-#define SCAN_COST 56
+#define SCAN_COST 40

 int scan(void);
"""
STALE = DIFF.replace("SCAN_COST 56", "SCAN_COST 57")


def ask(world: World, report: Report, text: str = f"Can you test this patch?\n\n{DIFF}", **more: str) -> Message:
    world.post(DANA, text, to=message_id(report), **more)
    world.read()
    return Message.objects.filter(author_email=DANA.email).order_by("-pk")[0]


def opened(world: World) -> LabJob:
    assert open_jobs(world.settings, [world.directory / "linux.git"], world.now) == 1
    return LabJob.objects.order_by("-pk")[0]


def measured(job: dict[str, Any], old: float, new: float) -> dict[str, Any]:
    sides = {"without": [old, old * 1.01, old * 0.99], "with": [new, new * 1.01, new * 0.99]}
    rows = [{"metric": job["metric"]["name"], **sides}]
    return {"schema": "perf-job-result/1", "lease": job["lease"], "outcome": "measured", "measurements": rows}


def answers(world: World) -> list[OutgoingMail]:
    """What the bot answers in the thread."""
    compose_follow_ups(world.settings, world.later(), approve_first=False)
    return list(OutgoingMail.objects.exclude(purpose="report").order_by("pk"))


def posting(world: World, text: str = f"Scan less.\n\n---\n{DIFF}", **more: str) -> str:
    name = more.pop("message_id", "posting@dev.example")
    world.post(LEE, text, subject=more.pop("subject", "[PATCH] mm/vmscan: scan less"), message_id=name, **more)
    return name


ANOTHER = DIFF.replace("SCAN_COST", "OTHER_COST")


def series(world: World, report: Report, total: int = 2) -> str:
    cover = "cover@dev.example"
    text = "Two patches that help.\n\n#lkp test\n"
    world.post(DANA, text, to=message_id(report), subject=f"[PATCH v2 0/{total}] mm: less", message_id=cover)
    for number, diff in enumerate((DIFF, ANOTHER), start=1):
        more = {"subject": f"[PATCH v2 {number}/{total}] mm: part {number}", "message_id": f"part-{number}@dev.example"}
        world.post(DANA, f"Part {number}.\n\n---\n{diff}", to=cover, **more)
    world.read()
    return cover


def round_of(world: World) -> int:
    return open_jobs(world.settings, [world.directory / "linux.git"], world.later())


def claimed_patch(runner: Any) -> str:
    status, job = runner("claim", {})
    assert status == 200
    return str(job["patch"])
