"""A year: five cycles of ten weeks, 600 reports, people who answer as people did; every reminder is counted.

What must hold is decided by the script of each report (whose turn it is, and since when) and numpy's business days, not
by the code that reminds.
"""

from __future__ import annotations

import heapq
import random
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from itertools import count, pairwise

import numpy as np
import pytest

from bot.compose.policy import Action, Policy, ReminderPolicy
from bot.mail.settings import BotSettings
from bot.notifications.reminder import compose_reminders
from bot.outbox import sender
from bot.outbox.drafts import ComposeConfig
from tests.conftest import ROOT
from tests.simulation.people import FIRST_REPLY, NEXT_REPLY, SILENT, Developer, developers, drawn
from tracker.domain.events import EventData, EventKind, Role
from tracker.models import (
    Commit,
    Correspondent,
    Finding,
    Machine,
    Mailing,
    Message,
    Metric,
    OutgoingMail,
    OutgoingState,
    RawMessage,
    Report,
    Scenario,
)
from tracker.services import event_log, mail_transitions

START = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)
HOLIDAYS = [*(f"2026-12-{day}" for day in range(24, 32)), "2026-01-01", "2027-01-01"]
CONFIG = ComposeConfig(policy=Policy(reminders=ReminderPolicy(action=Action.SEND)))
DEV, LAB, DONE = "developer", "lab", "nobody"


@dataclass(slots=True)
class Script:
    """A report as it is meant: whose turn it was from when on, and when somebody said a word."""

    report: Report
    author: Developer
    change: float
    turns: list[tuple[datetime, str]] = field(default_factory=list)
    answered: bool = False  # the author has replied at all
    words: list[tuple[datetime, bool]] = field(default_factory=list)  # with whether that was the first reply

    def turn_at(self, at: datetime) -> str:
        return [turn for since, turn in self.turns if since <= at][-1]

    def last_word(self, at: datetime) -> datetime:
        return max(when for when, _ in self.words if when <= at)


class Year:
    """The clock, the agenda of what people will do, and the mails that left."""

    def __init__(self, settings: BotSettings, days: int, reports: int, people: int) -> None:
        self.days = days
        self.settings, self.dice, self.now = settings, random.Random(7), START
        self.people = developers(self.dice, people, START)
        self.agenda: list[tuple[datetime, int, Callable[[], None]]] = []
        self.order, self.scripts, self.by_key = count(), list[Script](), dict[int, Script]()
        self.mails: list[tuple[datetime, str, list[int]]] = []
        metric = Metric.objects.create(name="wis.ops", direction="higher")
        self.where = (metric, Scenario.objects.create(key="s", suite="wis"), Machine.objects.create(name="m1"))
        for number in range(reports):
            at = START + timedelta(hours=self.dice.randrange((days - 30) * 24))
            self.at(at, lambda number=number: self.report(number))  # type: ignore[misc]
        for person in self.people:
            if person.no_mail_since:
                self.at(person.no_mail_since, lambda person=person: self.stop_mail(person))  # type: ignore[misc]

    def at(self, when: datetime, act: Callable[[], None]) -> None:
        heapq.heappush(self.agenda, (when, next(self.order), act))

    def until(self, when: datetime) -> None:
        while self.agenda and self.agenda[0][0] <= when:
            self.now, _, act = heapq.heappop(self.agenda)
            act()
        self.now = when

    # --- what happens ---
    def report(self, number: int) -> None:
        author, change = self.dice.choice(self.people), -self.dice.choice((3.0, 8.0, 12.0, 20.0, 45.0))
        culprit = Commit.objects.create(
            sha=f"{number + 1:08x}" * 5,
            title=f"mm: change {number}",
            author_name=author.name,
            author_email=author.email,
        )
        columns = {"state": "no_response", "status": "no response from author yet", "awaited": "author"}
        report = Report.objects.create(
            culprit=culprit,
            tag=f"{number + 1:08x}" * 2,
            verdict="regression",
            change=change,
            title=f"[LKP] {number}",
            **columns,
        )
        places = dict(zip(("metric", "scenario", "machine"), self.where, strict=True))
        means = {"old_mean": 100.0, "new_mean": 100.0 + change, "change_pct": change, "change_pct_raw": change}
        Finding.objects.create(report=report, headline=True, verdict="regression", **places, **means)
        self.mail(report, author)
        script = Script(report, author, change, [(self.now, DEV)], words=[(self.now, False)])
        self.scripts.append(script)
        self.by_key[report.pk] = script
        self.event(script, EventKind.REPORTED, Role.REPORTER)
        if author.is_away(self.now):
            self.away(script)
        if self.dice.random() > SILENT:
            self.later(script, FIRST_REPLY, self.first_reply)

    def mail(self, report: Report, author: Developer) -> None:
        mail = EmailMessage()
        message_id = f"r{report.pk}@bot.example.org"
        mail["From"], mail["To"], mail["Cc"] = self.settings.address, author.email, "list@lists.example.org"
        mail["Subject"], mail["Message-ID"] = report.title, f"<{message_id}>"
        OutgoingMail.objects.create(
            report=report, message_id=message_id, raw=bytes(mail), sender=self.settings.address, subject=report.title,
            recipients=[author.email], composed_at=self.now, sent_at=self.now, state=OutgoingState.SENT,
        )  # fmt: skip

    def away(self, script: Script) -> None:
        raw = RawMessage.objects.create(digest=f"away {script.report.pk}", compressed=b"", received_at=self.now)
        Message.objects.create(
            message_id=f"away-{script.report.pk}@x", report=script.report, source=raw, sent_at=self.now,
            author_email=script.author.email, kind="auto_reply",
        )  # fmt: skip

    def stop_mail(self, person: Developer) -> None:
        mailing = self.dice.choice((Mailing.OPTED_OUT, Mailing.BOUNCING))
        Correspondent.objects.create(address=person.email, mailing=mailing, since=self.now)

    def event(self, script: Script, kind: EventKind, role: Role, **more: str) -> None:
        number = next(self.order)
        data = EventData(f"{kind}{number}", kind, self.now, role=role, message_id=f"e{number}@x", **more)
        event_log.record([event_log.event_row(script.report, data, self.now)])

    def later(self, script: Script, deciles: tuple[float, ...], act: Callable[[Script], None]) -> None:
        """The author acts some time later, when they work."""
        at = script.author.awake(self.now + drawn(self.dice, deciles))
        self.at(at, lambda: act(script) if script.turn_at(self.now) == DEV else None)

    def says(self, script: Script, kind: EventKind, turn: str, role: Role = Role.AUTHOR, **more: str) -> None:
        script.words.append((self.now, not script.answered and role is Role.AUTHOR))
        script.answered = script.answered or role is Role.AUTHOR
        script.turns.append((self.now, turn))
        self.event(script, kind, role, **more)

    def first_reply(self, script: Script) -> None:
        what = self.dice.random()
        if what < 0.5:
            self.says(script, EventKind.WORKING, DEV)
            if self.dice.random() < 0.6:
                self.later(script, NEXT_REPLY, self.fix)
        elif what < 0.7:
            self.says(script, EventKind.ASKED, LAB)
            self.at(self.now + DAY * self.dice.randrange(1, 10), lambda: self.lab_answers(script))
        elif what < 0.85:
            self.fix(script)
        else:
            self.says(script, self.dice.choice((EventKind.EXPECTED, EventKind.INVALID)), DONE)

    def lab_answers(self, script: Script) -> None:
        self.says(script, EventKind.ANSWERED, DEV, Role.REPORTER)
        if self.dice.random() < 0.5:
            self.later(script, NEXT_REPLY, self.fix)

    def fix(self, script: Script) -> None:
        self.says(script, EventKind.FIX_PROPOSED, LAB, title="a fix")
        if self.dice.random() < 0.8:
            self.at(self.now + DAY * self.dice.randrange(1, 6), lambda: self.lab_confirms(script))

    def lab_confirms(self, script: Script) -> None:
        self.says(script, EventKind.FIX_CONFIRMED, DEV, Role.REPORTER, title="a fix")
        if self.dice.random() < 0.7:
            self.later(script, NEXT_REPLY, self.landed)

    def landed(self, script: Script) -> None:
        self.says(script, EventKind.FIX_LANDED, DONE, commit="f" * 40, tag="v9.9")

    # --- the outbox ---
    def send(self) -> None:
        for mail in sender.ready().filter(purpose__startswith="reminder "):
            assert mail_transitions.mark_sent(mail.message_id, self.now, self.now)
            named = list(mail.reminders.values_list("report", flat=True))
            to = mail.recipients[0]
            self.mails.append((self.now, to, named))
            for pk in named:
                if self.dice.random() < 0.4:
                    self.later(self.by_key[pk], NEXT_REPLY, self.first_reply)

    def run(self) -> None:
        for day in range(self.days):
            self.until(START + timedelta(days=day, hours=12))
            compose_reminders(self.settings, self.now, CONFIG)
            self.until(START + timedelta(days=day, hours=18))  # people write in between
            self.send()


def working_days(since: datetime, until: datetime) -> int:
    """Count business days by numpy."""
    return int(np.busday_count(since.date(), until.date(), holidays=HOLIDAYS))


def needed(script: Script, at: datetime) -> int:
    """The working days after which silence is unusual, as docs/mail.md says it."""
    if abs(script.change) >= 30:
        return 3
    answered = any(first for when, first in script.words if when <= at)
    return 10 if answered or (script.turns[-1][0] <= at and len([t for t in script.turns if t[0] <= at]) > 1) else 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("days", "reports", "people"),
    [pytest.param(75, 90, 25, id="ten weeks"), pytest.param(350, 600, 150, id="whole", marks=pytest.mark.long)],
)
def test_a_year_without_nagging(db: None, bot_settings: BotSettings, days: int, reports: int, people: int) -> None:
    year = Year(bot_settings, days, reports, people)
    year.run()
    counts: Counter[str] = Counter()
    per_person: dict[str, list[datetime]] = defaultdict(list)
    per_report: dict[int, list[datetime]] = defaultdict(list)
    for at, person, named in year.mails:
        counts["reminders"] += 1
        counts["gathered"] += len(named) > 1
        per_person[person].append(at)
        for pk in named:
            script = year.by_key[pk]
            per_report[pk].append(at)
            counts["named"] += 1
            counts["not their turn"] += script.turn_at(at) != DEV
            counts["too early"] += working_days(script.last_word(at), at) < needed(script, at)
            counts["wrong person"] += person != script.author.email
            counts["small"] += abs(script.change) < 5
            unreachable = script.author.no_mail_since
            counts["unreachable"] += unreachable is not None and unreachable <= at
    counts["twice a week"] = sum(
        later - earlier < timedelta(days=7) for times in per_person.values() for earlier, later in pairwise(times)
    )
    counts["more than two"] = sum(len(times) > 2 for times in per_report.values())
    counts["forgotten"] = forgotten(year, per_report)
    for reply in year.scripts:
        counts["answered without a reminder"] += (
            any(first for _, first in reply.words) and not per_report[reply.report.pk]
        )
    pending_requests = {script.report.pk for script in year.scripts if script.turns[-1][1] == LAB}
    known = set(Report.objects.filter(awaited="reporter").values_list("pk", flat=True))
    print(
        "\n" + "\n".join(f"{name:28} {number:5}" for name, number in counts.items()),
        f"\nlab's debts {len(pending_requests):22}",
    )
    assert len(year.scripts) == reports
    assert counts["reminders"] > reports / 6
    assert counts["gathered"] > reports / 120
    for wrong in (
        "not their turn",
        "too early",
        "wrong person",
        "small",
        "unreachable",
        "twice a week",
        "more than two",
    ):
        assert counts[wrong] == 0, wrong
    assert counts["forgotten"] == 0
    assert known == pending_requests


def forgotten(year: Year, per_report: dict[int, list[datetime]]) -> int:
    """Count silences that were longer than usual, by four weeks (away, or reminded of another), without a reminder."""
    missed = 0
    end = START + timedelta(days=year.days - 1)
    for script in year.scripts:
        reminded = per_report[script.report.pk]
        if abs(script.change) < 5 or script.author.no_mail_since:
            continue
        marks = sorted({when for when, _ in script.words} | {when for when, _ in script.turns})
        for start, until in pairwise([*marks, end]):
            if script.turn_at(start) != DEV:
                continue
            allowed = len([at for at in reminded if at <= start]) < 2
            long = working_days(start, until) > needed(script, start) + 20
            missed += allowed and long and not any(start < at <= until for at in reminded)
    return missed


@pytest.mark.long
def test_six_weeks_of_everything_on_a_compressed_clock() -> None:
    command = [sys.executable, "-m", "tests.simulation.soak", "--days", "42"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
