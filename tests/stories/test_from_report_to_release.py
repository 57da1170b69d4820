"""From a report to the release that fixes it, with the real commands, and the status text after each step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from tests.linux import Linux
from tests.world import DANA, DIFF, World, status_text
from tracker.models import Landing, OutgoingMail, Report, Tree

TITLE = "mm/vmscan: walk cold folios first"


class Lab:
    """An upstream with its mirrors, a list's archive, and the commands of an operator."""

    def __init__(self, world: World, settings: Any) -> None:
        self.world = world
        self.git = Linux(world.directory / "upstream.git")
        self.git.commit("Linux 9.0")
        self.git.tag("v9.0")
        for branch in ("mm", "next"):
            self.git.point(branch, self.git.head("master"))
        mirrors = {name: self.git.mirror(world.directory / f"{name}.git") for name in ("linus", "mm", "next")}
        settings.PERFWORK_TREES = {name: f"{path}{_branch(name)}" for name, path in mirrors.items()}
        settings.PERFWORK_BOT_ADDRESS = world.settings.address
        settings.PERFWORK_LIST_ADDRESS = world.settings.list_address
        settings.PERFWORK_BASE_URL = world.settings.base_url
        settings.PERFWORK_TRUST = "open"

    def read(self) -> None:
        call_command("read", str(self.world.inbox.path))

    def track(self) -> None:
        call_command("track")


def _branch(name: str) -> str:
    return "" if name == "linus" else f"#{name}"


@pytest.fixture
def lab(world: World, settings: Any) -> Lab:
    return Lab(world, settings)


@pytest.mark.slow
def test_from_a_report_to_the_release_that_fixes_it(
    lab: Lab, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    culprit = lab.git.commit(TITLE)
    lab.git.tag("v9.1-rc1")
    result = lab.world.result(
        culprit, TITLE, parent={"sha": lab.git("rev-parse", f"{culprit}^"), "subject": "Linux 9.0"}
    )
    (lab.world.directory / "result.json").write_text(json.dumps(result))
    call_command("ingest", str(lab.world.directory / "result.json"))
    mail = OutgoingMail.objects.get()
    lab.world.inbox.add(bytes(mail.raw))  # the list's copy
    lab.read()
    report = Report.objects.get()
    assert status_text(report) == "no response from author yet"

    lab.track()
    assert "linus: 1 landing, 1 event" in capsys.readouterr().out
    assert status_text(report) == "merged at v9.1-rc1, no response from author yet"
    assert report.findings.get(headline=True).base == "v9.0"

    closes = f"Closes: https://lore.kernel.org/r/{mail.message_id}"
    patch = f"Scan each folio once.\n\n{closes}\nSigned-off-by: {DANA}\n---\n{DIFF}"
    lab.world.post(DANA, patch, subject="[PATCH v2] mm/vmscan: scan once", message_id="patch@dev.example")
    lab.read()
    assert status_text(report) == "merged at v9.1-rc1, a fix is proposed"

    link = "Link: https://lore.kernel.org/r/patch@dev.example"
    lab.git.commit("mm/vmscan: scan once", f"{closes}\nSigned-off-by: {DANA}\n{link}", on="mm")
    lab.track()
    assert status_text(report) == "merged at v9.1-rc1, a fix is queued in mm"

    lab.git.merge("Merge branch 'mm' of the memory tree", "mm", on="next")
    lab.git.tag("next-20260910", "next")
    lab.track()
    assert status_text(report) == "merged at v9.1-rc1, the fix is in linux-next since next-20260910"

    lab.git.commit("Linux 9.1-rc2")
    lab.git.tag("v9.1-rc2")
    merge = lab.git.merge("Merge tag 'mm-hotfixes'", "mm")
    lab.track()
    assert status_text(report) == "merged at v9.1-rc1, the fix has been merged after v9.1-rc2"

    lab.git.commit("Linux 9.1-rc3")
    lab.git.tag("v9.1-rc3")
    lab.track()
    sentence = "merged at v9.1-rc1, the regression has been fixed in v9.1-rc3"
    assert status_text(report) == sentence
    assert Landing.objects.get(tag="v9.1-rc3", tree__name="linus").merge == merge

    assert sentence in client.get("/v9.1/").content.decode()
    page = client.get(f"/report/{culprit[:12]}/").content.decode()
    assert closes in page
    assert "next-20260910" in page
    capsys.readouterr()
    lab.track()
    assert capsys.readouterr().out.splitlines() == ["linus: nothing new", "mm: nothing new", "next: nothing new"]


def test_a_tree_that_fails_keeps_no_other_from_being_followed(
    lab: Lab, settings: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (lab.world.directory / "mm.git" / "HEAD").write_text("junk")
    lab.git("update-ref", "-d", "refs/heads/next")
    settings.PERFWORK_TREES = {"nowhere": str(tmp_path / "nowhere"), **settings.PERFWORK_TREES}
    lab.git.commit(TITLE)
    lab.git.tag("v9.1-rc1")
    with pytest.raises(CommandError, match="3 of 4 trees"):
        lab.track()
    output = capsys.readouterr()
    assert output.out.splitlines() == ["linus: 0 landings, 0 events"]
    lines = output.err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["nowhere", str(lab.world.directory / "mm.git"), "next"]
    assert "set PERFWORK_TREES to a clone of it" in lines[0]
    assert "no branch matches next" in lines[2]
    assert Tree.objects.get(name="nowhere").error == lines[0]
    assert Tree.objects.get(name="linus").error == ""
