"""A year on a compressed clock: `make soak`, or `python -m tests.simulation.soak --days 350`.

One process runs the worker's own tasks (bot/tasks.py) once a simulated day, on a clock that jumps: results are dropped,
mail leaves by SMTP over loopback, authors answer on the list as late as people did (people.py), fixes are committed
and tagged, archives are read, trees walked, silent authors reminded, and what has expired is pruned.

At the end memory must be flat, no table may have grown faster than the reports, every report whose fix is in a version
must say so, and nobody may have got a mail twice. What needs Django is imported where it is used: the environment must
be set before.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

START = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)  # files are as old as they really are
DAY = timedelta(days=1)
LAB = "lab@bot.example.org"
GROWTH = 1.25  # of memory between the second and the last quarter, and of a table's rows for each report
SMALL = 500  # rows, below which a table is not looked at
SAYS = (
    "Thanks for the report, I will look into this.",
    "Can you send the full dmesg and the config?",
    "I can reproduce this here, working on a fix.",
    "This is expected: we now flush on every commit.",
    "Thanks, interesting.",
)


def set_up(folder: Path, port: int) -> None:
    """Set the environment of an installation in `folder`, and create its database."""
    (folder / "drop").mkdir()
    (folder / "policy.toml").write_text("per_author_a_day = 0\n")
    for name in [name for name in os.environ if name.startswith("PERFWORK_")]:
        del os.environ[name]
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "tracker.settings",
        "PERFWORK_VAR": str(folder),
        "DATABASE_URL": f"sqlite:///{folder / 'perfwork.sqlite3'}",
        "CELERY_BROKER_URL": "memory://",
        "EMAIL_URL": f"smtp://127.0.0.1:{port}",
        "PERFWORK_BOT_ADDRESS": "perfbot@bot.example.org",
        "PERFWORK_LIST_ADDRESS": "list@lists.example",
        "PERFWORK_OPERATORS": LAB,
        "PERFWORK_TRUST": "open",
        "PERFWORK_APPROVE_FIRST": "off",
        "PERFWORK_POLICY": str(folder / "policy.toml"),
        "PERFWORK_ARCHIVES": str(folder / "inbox"),
        "PERFWORK_TREES": f"linus={folder / 'linux.git'}",
    }
    import django

    django.setup()
    from django.core.management import call_command

    from bot.celery import app

    app.conf.task_always_eager = True  # what a task enqueues runs at once, in this process
    call_command("migrate", verbosity=0)


class SoakYear:
    """The agenda of what people will do, and what was measured each week."""

    def __init__(self, folder: Path, days: int, a_day: float, server: Any) -> None:
        from bot.config import bot_identity
        from tests.simulation.people import developers
        from tests.support.world import World

        self.days, self.a_day, self.received = days, a_day, server.received
        self.dice, self.folder = random.Random(11), folder
        self.people = developers(self.dice, 60, START)
        self.world = World(folder, bot_identity())
        self.world.inbox = server.inbox  # one writer, as a list has
        self.agenda: list[tuple[datetime, int, Callable[[], None]]] = []
        self.order, self.seen, self.version = count(), 0, 0
        self.authors: dict[str, Any] = {}  # of the culprits, by sha
        self.fixed: set[str] = set()  # culprits whose fix is in a version
        self.committed: set[str] = set()  # those whose fix is committed
        self.memory: list[float] = []  # MiB, each week
        self.rows: list[Counter[str]] = []
        self.sizes: list[float] = []  # MiB of the database

    def at(self, when: datetime, act: Callable[[], None]) -> None:
        heapq.heappush(self.agenda, (when, next(self.order), act))

    def run(self) -> None:
        import time_machine

        self.world.commit("Linux 9.0")
        self.world.tag("v9.0")
        for day in range(self.days):
            now = START + day * DAY
            with time_machine.travel(now + timedelta(hours=12)):
                self.world.now = now
                self.people_act(now)
                self.lab_measures(day)
                if day % 7 == 6:
                    self.tag()
                self.operator_approves()
                run_tasks(is_last_of_week=day % 7 == 6)
                self.plan_answers(now + timedelta(hours=12))
            if day % 7 == 6:
                self.measure()
                self.show(day)

    # --- what happens ---

    def people_act(self, now: datetime) -> None:
        while self.agenda and self.agenda[0][0] <= now:
            heapq.heappop(self.agenda)[2]()
        writer = self.dice.choice(self.people)
        for number in range(5):  # what else is said on the list, and to the bot
            self.world.post(_address(writer), f"v{number} looks fine to me.", subject=f"Re: [PATCH] mm: no {number}")

    def lab_measures(self, day: int) -> None:
        """Drop the results of some culprits; one of five of them is noise."""
        for number in range(int(self.a_day) + (self.dice.random() < self.a_day % 1)):
            author, title = self.dice.choice(self.people), f"mm: change {number} of day {day}"
            sha = self.world.commit(title, author=_address(author))
            self.authors[sha] = author
            new = [1000, 1004, 996] if self.dice.random() < 0.2 else [700, 705, 695]
            result = self.world.result(sha, title)
            result["first_bad"]["author"] = {"name": author.name, "email": author.email}
            result["measurements"][0]["bad"]["samples"] = new
            result["id"] = f"lab-{sha}"
            file = self.folder / "drop" / f"{sha}.json"
            file.with_suffix(".tmp").write_text(json.dumps(result))
            file.with_suffix(".tmp").rename(file)

    def operator_approves(self) -> None:
        """Approve what waits for it: reminders, by default."""
        from tracker.models import OutgoingMail
        from tracker.services.mail_transitions import apply_action

        for pk in OutgoingMail.objects.filter(state="composed").values_list("pk", flat=True):
            apply_action(pk, "approve", "mira", self.world.now)

    def tag(self) -> None:
        self.version += 1
        cycle, candidate = divmod(self.version, 10)
        self.world.tag(f"v9.{cycle + 1}-rc{candidate}" if candidate else f"v9.{cycle}")
        self.fixed |= self.committed

    def plan_answers(self, now: datetime) -> None:
        """Let the authors of the reports that have just arrived answer some day, or never."""
        from bot.mail.message import parse
        from tests.simulation.people import FIRST_REPLY, SILENT, drawn
        from tracker.models import OutgoingMail

        for raw in self.received[self.seen :]:
            message_id = parse(raw).message_id
            mails = OutgoingMail.objects.select_related("report__culprit")
            mail = mails.filter(message_id=message_id, purpose="report").first()
            if mail and mail.report and self.dice.random() > SILENT:
                when = now + drawn(self.dice, FIRST_REPLY)
                sha, to = mail.report.culprit.sha, message_id
                self.at(when, lambda when=when, sha=sha, to=to: self.answer(when, sha, to))  # type: ignore[misc]
        self.seen = len(self.received)
        self.received[:] = [b""] * self.seen  # only their number is needed

    def answer(self, now: datetime, sha: str, to: str) -> None:
        from tests.simulation.people import NEXT_REPLY, drawn

        text = self.dice.choice(SAYS)
        self.world.post(_address(self.authors[sha]), text, to=to)
        if "dmesg" in text:
            self.at(now + 2 * DAY, lambda: self.world.post(_lab(), "Please find it attached.", to=to))
        if "expected" not in text:
            self.at(now + drawn(self.dice, NEXT_REPLY), lambda: self.fix(sha, to))

    def fix(self, sha: str, to: str) -> None:
        body = f"Fixes: {sha[:12]}\nCloses: https://lore.kernel.org/r/{to}"
        self.world.commit(f"mm: repair {sha[:12]}", body, author=_address(self.authors[sha]))
        self.committed.add(sha)

    # --- what is measured ---

    def measure(self) -> None:
        from django.apps import apps

        gc.collect()
        status = Path("/proc/self/status").read_text()
        self.memory.append(int(status.partition("VmRSS:")[2].split()[0]) / 1024)
        models = [model for model in apps.get_models(include_auto_created=True) if model._meta.managed]
        self.rows.append(Counter({model._meta.label: model._default_manager.count() for model in models}))
        self.sizes.append(sum(file.stat().st_size for file in self.folder.glob("perfwork.sqlite3*")) / (1 << 20))

    def show(self, day: int) -> None:
        rows = self.rows[-1]
        print(
            f"day {day + 1:3}  {self.memory[-1]:6.0f} MiB  database {self.sizes[-1]:6.1f} MiB  "
            f"{rows['tracker.Report']:5} reports  {rows['tracker.OutgoingMail']:5} mails  "
            f"{rows['tracker.Event']:6} events",
            flush=True,
        )

    def faults(self) -> list[str]:
        """Return what does not hold at the end."""
        from tracker.models import OutgoingMail, Report

        quarter = len(self.memory) // 4
        faults = []
        early, late = median(self.memory[quarter : 2 * quarter]), median(self.memory[-quarter:])
        if late > GROWTH * early:
            faults.append(f"memory grows: {early:.0f} MiB in the second quarter, {late:.0f} in the last")
        half, end = self.rows[len(self.rows) // 2 - 1], self.rows[-1]
        more_reports = end["tracker.Report"] / half["tracker.Report"]
        for table, rows in end.items():
            if rows > SMALL and rows > GROWTH * more_reports * half[table]:
                faults.append(f"{table} grows faster than the reports: {half[table]} rows at half-time, then {rows}")
        states = dict(Report.objects.values_list("culprit__sha", "state"))
        wrong = Counter(states[sha] for sha in self.fixed if sha in states and states[sha] != "fixed")
        faults += [f"{number} reports whose fix is in a version are {state}" for state, number in wrong.items()]
        if not self.fixed & states.keys():
            faults.append("no report was fixed")
        unsent = OutgoingMail.objects.exclude(state__in=("sent", "cancelled", "held"))
        if unsent.count() > self.a_day * 7:
            states_of = Counter(unsent.values_list("state", "reason"))
            faults += [f"{number} mails are {state}: {reason}" for (state, reason), number in states_of.items()]
        return faults


def run_tasks(*, is_last_of_week: bool) -> None:
    """Run the worker's tasks once, in the order in which a day's work becomes due."""
    from bot import tasks

    tasks.take_results()
    tasks.compose_reminders()
    tasks.send_mail()
    tasks.read_archives()
    tasks.track_trees()
    tasks.open_lab_jobs()
    tasks.suggest_closings()
    tasks.compose_mail()
    tasks.send_mail()
    if is_last_of_week:
        tasks.prune()


def _address(person: Any) -> Any:
    from bot.mail.addresses import Address

    return Address(person.name, person.email)


def _lab() -> Any:
    from bot.mail.addresses import Address

    return Address("The Lab", LAB)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--days", type=int, default=350)
    parser.add_argument("--a-day", type=float, default=2.5, metavar="N", help="culprits a day")
    options = parser.parse_args()
    if options.days < 28:
        parser.error("--days: at least 28, since four quarters are compared")
    from tests.support.servers import free_port

    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder, port = Path(name), free_port()
        set_up(folder, port)
        from aiosmtpd.controller import Controller

        from bot.demo import Catcher, DemoInbox
        from bot.mail.message import parse

        class Recorder(Catcher):
            """Keeps who got which mail."""

            deliveries: Counter[tuple[str, str]] = Counter()

            async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
                message_id = parse(envelope.original_content).message_id
                self.deliveries.update((message_id, recipient) for recipient in envelope.rcpt_tos)
                return await super().handle_DATA(server, session, envelope)

        recorder = Recorder(DemoInbox(folder / "inbox"))
        server = Controller(recorder, hostname="127.0.0.1", port=port)
        server.start()
        try:
            year = SoakYear(folder, options.days, options.a_day, recorder)
            year.run()
            faults = year.faults()
        finally:
            server.stop()
        faults += [f"{to} got {name} {times} times" for (name, to), times in recorder.deliveries.items() if times > 1]
    counted = f"{len(recorder.deliveries)} deliveries, {len(year.fixed)} fixes"
    print("\n".join(faults) or f"{counted}: memory is flat, tables are bounded, all fixes are told, no mail came twice")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
