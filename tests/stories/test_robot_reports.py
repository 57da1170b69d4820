"""The robot's reports: from the bytes of a mail to what a release manager sees."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
from django.test import Client

from bot.archives.batch import ReadTally
from bot.archives.reader import read_source
from bot.archives.sources import open_sources
from bot.mail.settings import BotSettings
from bot.results.curves import extend_curves
from tests.bot.robot_reports.test_robot_reports import INVENTED
from tracker.models import Curve, Decision, Finding, Report, Suggestion
from tracker.services import report_actions
from tracker.services.curves import load

SHA = "3b1f0c9d2e440000000000000000000000000000"
DOUBTFUL = INVENTED.replace("[mm/vmscan]  3b1f0c9d2e:", "[mm/vmscan]  77770c9d2e:")
# The same culprit, reported again by another test, eight days later.
AGAIN = INVENTED.replace("202603110412.3b1f0c9d-lkp", "202603190412.3b1f0c9d-lkp").replace(
    "vm-scan.ops_per_sec", "vm-scan.faults_per_sec"
)


@pytest.fixture
def robots(bot_settings: BotSettings) -> BotSettings:
    return BotSettings(address=bot_settings.address, robots=frozenset({"lkp@intel.com"}), trust_policy="open")


def read(folder: Path, settings: BotSettings, now: datetime, *mails: str) -> ReadTally:
    tally = ReadTally()
    for mail in mails:
        file = folder / f"{len(list(folder.iterdir()))}.eml"
        file.write_bytes(mail.encode("latin-1"))
        (source,) = open_sources(str(file))
        tally += read_source(source, settings, now)
    return tally


def shown(client: Client) -> list[str]:
    """The culprits in the tables of all releases that the front page leads to."""
    releases = re.findall(r'href="(/v[\d.]+/)"', client.get("/").content.decode())
    pages = (client.get(release).content.decode() for release in releases)
    return sorted({sha for page in pages for sha in re.findall(r'href="/report/(\w+)/"', page)})


@pytest.mark.django_db
def test_whom_the_robot_wrote_to_is_the_author(
    tmp_path: Path, robots: BotSettings, now: datetime, client: Client
) -> None:
    read(tmp_path, robots, now, INVENTED)
    assert "Dana Brook &lt;dana@dev.example&gt;" in client.get(f"/report/{SHA}/").content.decode()
    assert SHA in client.get("/author/dana@dev.example/").content.decode()
    assert Report.objects.get().author == "dana@dev.example"


@pytest.mark.django_db
@pytest.mark.parametrize("turned", [False, True])
def test_the_first_of_two_reports_names_the_author(
    tmp_path: Path, robots: BotSettings, now: datetime, turned: bool
) -> None:
    dated = [(INVENTED, "Wed, 11 Mar 2026 04:12:00 +0800"), (AGAIN, "Thu, 19 Mar 2026 04:12:00 +0800")]
    first, second = (mail.replace("\nSubject:", f"\nDate: {date}\nSubject:", 1) for mail, date in dated)
    mails = [first, second.replace("Dana Brook <dana@dev.example>", "Lee Park <lee@dev.example>")]
    read(tmp_path, robots, now, *(reversed(mails) if turned else mails))
    assert Report.objects.get().author == "dana@dev.example"


@pytest.mark.django_db
def test_a_list_is_no_author(tmp_path: Path, robots: BotSettings, now: datetime) -> None:
    read(tmp_path, robots, now, INVENTED.replace("Dana Brook <dana@dev.example>", "<linux-mm@kvack.org>"))
    assert Report.objects.get().author == ""


@pytest.mark.django_db
def test_a_doubtful_report_waits_for_the_operator(
    tmp_path: Path, robots: BotSettings, now: datetime, client: Client
) -> None:
    tally = read(tmp_path, robots, now, DOUBTFUL)
    assert (tally.reports, tally.quarantined) == (1, 0)
    assert shown(client) == []
    page = client.get(f"/report/{SHA}/").content.decode()
    assert "held" in page
    assert "the subject names 77770c9d2e" in page
    waiting = Suggestion.objects.filter(kind="reported").get()
    assert report_actions.decide(waiting, Decision.ACCEPTED, "olga", now)
    report = Report.objects.get()
    assert (report.state, report.reported_at) == ("no_response", waiting.occurred_at)
    assert shown(client) == [SHA]
    assert "held" not in client.get(f"/report/{SHA}/").content.decode()


@pytest.mark.django_db
def test_a_clear_report_frees_what_a_doubtful_one_held(tmp_path: Path, robots: BotSettings, now: datetime) -> None:
    read(tmp_path, robots, now, DOUBTFUL.replace("-12.4%", "-99.9%"), AGAIN)
    report = Report.objects.get()
    assert report.held == ""
    assert report.reported_at
    # The doubtful numbers are gone, though the mail and its tables stay.
    heads = Finding.objects.filter(report=report, headline=True)
    assert [(each.metric.name, each.change_pct) for each in heads] == [("vm-scan.faults_per_sec", -12.4)]
    assert report.messages.count() == 2


@pytest.mark.django_db
def test_a_doubtful_report_adds_no_numbers_to_a_clear_one(tmp_path: Path, robots: BotSettings, now: datetime) -> None:
    read(tmp_path, robots, now, INVENTED, AGAIN.replace("[mm/vmscan]  3b1f0c9d2e:", "[mm/vmscan]  77770c9d2e:"))
    report = Report.objects.get()
    assert report.held == ""
    assert not Finding.objects.filter(report=report, metric__name="vm-scan.faults_per_sec").exists()
    assert report.messages.count() == 2


@pytest.mark.django_db
def test_a_culprit_that_is_reported_twice_is_one_report(
    tmp_path: Path, robots: BotSettings, now: datetime, client: Client
) -> None:
    tally = read(tmp_path, robots, now, INVENTED, AGAIN)
    assert (tally.reports, tally.repeated) == (2, 1)
    report = Report.objects.get()
    assert [event.message_id for event in report.events.filter(kind="reported").order_by("pk")] == [
        "202603110412.3b1f0c9d-lkp@intel.com",
        "202603190412.3b1f0c9d-lkp@intel.com",
    ]
    findings = {each.metric.name: each for each in report.findings.select_related("metric")}
    assert findings.keys() == {"vm-scan.ops_per_sec", "vm-scan.faults_per_sec", "fs-create.files_per_sec"}
    assert [name for name, each in findings.items() if each.headline] == ["vm-scan.ops_per_sec"]
    page = client.get(f"/report/{SHA}/").content.decode()
    assert "vm-scan.faults_per_sec" in page
    assert "778,685" in page or "778685" in page


@pytest.mark.django_db
def test_what_a_mail_prints_is_on_curves(tmp_path: Path, robots: BotSettings, now: datetime, client: Client) -> None:
    """Its means stand beside the lab's own samples, each once however often it is read."""
    read(tmp_path, robots, now, INVENTED)
    extend_curves(now)
    finding = Finding.objects.select_related("report__culprit", "parent").get(headline=True)
    where = {"metric": finding.metric, "scenario": finding.scenario, "machine": finding.machine}
    curve = Curve.objects.get(**where)
    assert finding.parent is not None
    assert [(each.build, each.samples) for each in load(curve)] == [
        (finding.parent.sha, (finding.old_mean,)),
        (finding.report.culprit.sha, (finding.new_mean,)),
    ]
    Finding.objects.update(on_curves=False)
    extend_curves(now)
    assert Curve.objects.get(**where).points == 2
    assert f'href="/curve/{curve.pk}/"' in client.get(f"/metric/{finding.metric.name}/").content.decode()
