"""Every field of every real robot report, compared with hand-made labels; and mutated reports, which must not crash."""

from __future__ import annotations

import json
import os
import random
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from benchmarks.accuracy.robot_reports import DATASETS, OUTSIDE_REPORT, compared, folded, found_as
from bot.archives.files import read_mbox
from bot.explain import report_json
from bot.mail.message import parse
from bot.mail.settings import BotSettings
from bot.robot_reports.fields import MachineParts, Origin, find_origin, find_tags, machine_parts
from bot.robot_reports.report import Recogniser, find_report
from tests.conftest import ROOT
from tracker.domain.archived_reports import FailedRuns, KeptTable, TableRow, pack, unpack
from tracker.models import Finding, Message

MUTATIONS = int(os.environ.get("PERFWORK_MUTATIONS", "300"))


def test_every_field_of_every_real_report(shared: Path) -> None:
    wrong, checked = [], 0
    for message_id, field, want, found in compared():
        checked += 1
        if want != found:
            wrong.append(f"{field} of {message_id}: expected {want!r}, found {found!r}"[:400])
    assert wrong == []
    cases = [json.loads((shared / f"{name}.json").read_text()) for name in DATASETS]
    assert checked == sum(len(each.keys() - OUTSIDE_REPORT) for case in cases for each in case) == 3852


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """A mail with bytes flipped, lines dropped, doubled or moved, or its end cut off."""
    for _ in range(rng.randint(1, 4)):
        raw = raw or b"\n"
        lines = raw.split(b"\n")
        index = rng.randrange(len(lines))
        match rng.randrange(5):
            case 0:
                flipped = bytearray(raw)
                for _ in range(rng.randint(1, 40)):
                    flipped[rng.randrange(len(flipped))] = rng.randrange(256)
                raw = bytes(flipped)
            case 1:
                raw = b"\n".join(lines[:index] + lines[index + rng.randint(1, 20) :])
            case 2:
                raw = b"\n".join(lines[: index + 1] + lines[index:])
            case 3:
                raw = raw[: rng.randrange(len(raw))] or b"\n"
            case _:
                other = rng.randrange(len(lines))
                lines[index], lines[other] = lines[other], lines[index]
                raw = b"\n".join(lines)
    return raw


@pytest.mark.slow
def test_mutated_reports_give_a_reading_or_none(shared: Path) -> None:
    reports = [mail.raw for mail in read_mbox(shared / "reports-dev.mbox")]
    rng = random.Random(4)
    read = 0
    for number in range(MUTATIONS):
        mail = parse(mutated(reports[number % len(reports)], rng))
        report = find_report(mail)
        if report is None:
            continue
        read += 1
        assert len(report.culprit) == 40
        assert report.old is not None or report.problems
        json.dumps(report_json(report, mail, rows=True))
    assert read > MUTATIONS / 3  # most mutations leave the head whole


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "128 threads 2 sockets Example(R) X1 CPU @ 2.60GHz (Ice Lake) with 128G memory",
            MachineParts(128, 2, "Example(R) X1 CPU @ 2.60GHz", "Ice Lake", "128G"),
        ),
        (
            "24 threads 1 sockets Example P53 processor with 64G memory",
            MachineParts(24, 1, "Example P53 processor", "", "64G"),
        ),
        ("104 threads 2 sockets (Skylake) with 192G memory", MachineParts(104, 2, "", "Skylake", "192G")),
        ("96 threads 2 sockets Ice Lake with 256G memory", MachineParts(96, 2, "", "Ice Lake", "256G")),
        ("16 threads Example  Core i9 with 32G memory", MachineParts(16, None, "Example Core i9", "", "32G")),
        (
            "qemu-system-x86_64 -enable-kvm -cpu SandyBridge",
            MachineParts(cpu="qemu-system-x86_64 -enable-kvm -cpu SandyBridge"),
        ),
        ("", MachineParts()),
    ],
)
def test_a_machine_in_parts(text: str, expected: MachineParts) -> None:
    assert machine_parts(text) == expected


def test_a_patch_that_the_robot_applied_itself() -> None:
    prose = [
        "",
        "url: https://git.example.org/linux/commits/Dana-Brook/cold/20260301-101010",
        "base: https://git.example.org/vm.git for-next",
        "patch link: https://lore.example.org/linux-mm/1@dev.example",
        "in testcase: vm-scan",
        "https://git.example.org/not-this.git master",
    ]
    assert find_origin(prose) == Origin(
        patch_url="https://git.example.org/linux/commits/Dana-Brook/cold/20260301-101010",
        base_url="https://git.example.org/vm.git",
        base_branch="for-next",
        patch_link="https://lore.example.org/linux-mm/1@dev.example",
    )
    assert find_origin(["https://git.example.org/linux.git master"]).repo_branch == "master"
    assert find_origin([]) == Origin()


def test_tags_with_and_without_their_bar() -> None:
    old = find_tags("Reported-by: a robot <robot@example.org>\nLink: https://lore.example.org/r/1@x\n")
    assert (old.reported_by, old.link, old.closes) == (
        "a robot <robot@example.org>",
        "https://lore.example.org/r/1@x",
        "",
    )
    new = find_tags(
        "| Reported-by: a robot <robot@example.org>\n| Closes: https://lore.example.org/r/2@x\n\n"
        "The kernel config and materials to reproduce are available at:\nhttps://download.example.org/archive/2@x\n"
    )
    assert (new.closes, new.artifacts_url) == (
        "https://lore.example.org/r/2@x",
        "https://download.example.org/archive/2@x",
    )


@pytest.mark.slow
def test_a_report_is_filed_with_all_its_numbers(shared: Path, lkp: BotSettings, db: None, now: datetime) -> None:
    """What the data's reader found of a report with further impact stands in the database after reading it."""
    from bot.archives.reader import read_source
    from bot.archives.sources import open_sources

    (source,) = open_sources(str(shared / "reports-dev.mbox"))
    read_source(source, lkp, now)
    expected = {each["full_sha"]: each for each in json.loads((shared / "reports-dev.json").read_text())}
    checked = 0
    for sha, each in expected.items():
        findings = Finding.objects.filter(report__culprit__sha=sha).select_related("metric", "machine", "parent")
        if not each["additional_impact"]:
            continue
        for impact in each["additional_impact"]:
            there = findings.filter(metric__name=impact["metric"], machine__name=impact["tbox_group"])
            assert impact["row"]["old"] in there.values_list("old_mean", flat=True), (sha, impact["metric"])
            assert impact["change_pct"] in there.values_list("change_pct", flat=True)
            checked += 1
        head = findings.get(headline=True)
        assert (head.machine.name, head.machine.cpus) == (each["tbox_group"], each["machine_parsed"]["threads"])
        if each["parent_sha16"]:
            assert head.parent
            assert (head.parent.sha[:16], head.parent.title) == (each["parent_sha16"], each["parent_subject"])
    assert checked > 20


@pytest.mark.slow
def test_all_rows_are_kept_small_and_shown_on_demand(
    shared: Path, lkp: BotSettings, client: Client, db: None, now: datetime, django_assert_num_queries: Any
) -> None:
    from bot.archives.reader import read_source
    from bot.archives.sources import open_sources

    (source,) = open_sources(str(shared / "reports-dev.mbox"))
    read_source(source, lkp, now)
    expected = max(json.loads((shared / "reports-dev.json").read_text()), key=lambda each: each["n_rows"])
    message = Message.objects.get(message_id=expected["message_id"])
    kept = unpack(bytes(message.tables))
    assert [len(table.rows) for table in kept] == [table["n_rows"] for table in expected["tables"]]
    assert len(message.tables) < 60 * expected["n_rows"]  # bytes; the mail takes 80 and more a row
    assert f"/report/{expected['full_sha']}/tables/" in client.get(f"/report/{expected['full_sha']}/").content.decode()
    with django_assert_num_queries(2):
        page = client.get(f"/report/{expected['full_sha']}/tables/").content.decode()
    assert page.count('<th scope="row"') == expected["n_rows"] + expected["n_fail_rows"]


CORPUS = sorted((ROOT / "tests" / "mail" / "reports").glob("*.mbox"))


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_each_form_that_reports_have_had(file: Path) -> None:
    """Our own reports, one a form; their fields stand beside them."""
    (raw,) = read_mbox(file)
    mail = parse(raw.raw)
    robot_report = find_report(mail)
    assert robot_report
    fields = json.loads(file.with_suffix(".json").read_text())
    report = report_json(robot_report, mail)
    assert {field: folded(found_as(field, report)) for field in fields} == fields
    assert Recogniser(["lkp@intel.com"]).may_be_report(raw.raw.lower(), raw.raw)


def test_every_form_is_there() -> None:
    assert len(CORPUS) == 8


def test_tables_are_unpacked_as_they_were() -> None:
    row = TableRow("vm-scan.ops_per_sec", 184200.0, 3.0, "-12.4%", 161290.0, None)
    fail = FailedRuns("kmsg.Oops", ":4", "50%", "2:4")
    table = KeptTable("nr_task=50%", "0a1b2c3d4e", "3b1f0c9d2e", (row, row), (fail,))
    assert unpack(pack([table, table])) == (table, table)
    assert unpack(b"") == ()
    many = KeptTable("t", "p", "c", (row,) * 30_000)
    assert sum(len(each.rows) for each in unpack(pack([many, many]))) == 20_000
