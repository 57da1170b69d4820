"""`export fixes SHA`: the tags for the commit message of a fix, by which the report is found and closed again."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from tests.world import DANA, World, message_id, state


def test_the_tags_close_the_report(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    report = world.report("mm: scan more")
    call_command("export", "fixes", report.culprit.sha[:10])
    tags = capsys.readouterr().out.strip().splitlines()
    assert tags[0] == f'Fixes: {report.culprit.sha[:12]} ("mm: scan more")'
    assert tags[1].startswith("Reported-by: Perfwork <perfbot+")
    assert tags[2] == f"Closes: https://lore.kernel.org/r/{message_id(report)}"
    world.post(DANA, "\n".join(["Scan less.", "", *tags, "---", world_diff()]), subject="[PATCH] mm: scan less")
    world.read()
    assert state(report) == "fix_proposed"


def world_diff() -> str:
    return "diff --git a/mm/a.c b/mm/a.c\n--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize("sha", ["", "abc", "f" * 12, "not-a-sha"])
def test_what_names_no_report(world: World, sha: str) -> None:
    world.report("mm: scan more")
    with pytest.raises(CommandError, match="expected 7 digits or more"):
        call_command("export", "fixes", sha)
