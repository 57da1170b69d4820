"""Helpers for tests of the outbox."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from bot.compose.report_data import BuildInfo, FindingData, ReportData
from bot.mail.addresses import Address
from bot.mail.settings import BotSettings
from bot.outbox import sender
from bot.outbox.transports import SendStatus, Server, SmtpTransport
from tracker.domain.events import Grade, Verdict
from tracker.models import MailTransition, OutgoingMail, OutgoingState
from tracker.services import mail_transitions

# --- Helpers for tests of the outbox ---

LEASE = timedelta(seconds=60)


def send(server: Server, **options: Any) -> Counter[SendStatus]:
    """Send what is due, as one run of a worker, and count the outcomes."""
    return sender.send_due(SmtpTransport(server), sender.SendConfig(**{"lease": LEASE, **options}))


def claim(now: datetime | None = None, by: str = "worker", limit: int = 50) -> list[OutgoingMail]:
    """Claim the mails that a worker would take now."""
    return sender.claim_due(now or timezone.now(), LEASE, limit, by)


def act(mail: OutgoingMail, action: str, reason: str = "") -> bool:
    """Apply an operator's action, as on the page, and return whether it took effect."""
    return mail_transitions.apply_action(mail.pk, action, "dana", timezone.now(), reason)


def reloaded(mail: OutgoingMail) -> OutgoingMail:
    return OutgoingMail.objects.get(pk=mail.pk)


def states_of(mail: OutgoingMail) -> list[str]:
    """Return the states that a mail went through, in order."""
    return list(mail.transitions.values_list("became", flat=True))


def unrecorded() -> list[str]:
    """Describe mails whose state differs from the end of their record: a transition was not recorded."""
    last: dict[int, str] = {}
    for mail, was, became in MailTransition.objects.order_by("pk").values_list("mail", "was", "became"):
        if was != last.get(mail, ""):
            return [f"mail {mail}: the record goes on from {was!r} where it was {last.get(mail, '')!r}"]
        last[mail] = became
    states = dict(OutgoingMail.objects.values_list("pk", "state"))
    return [f"mail {pk}: {state}, recorded {last.get(pk)}" for pk, state in states.items() if last.get(pk) != state]


def in_state(*states: OutgoingState) -> int:
    return OutgoingMail.objects.filter(state__in=states).count()


# --- An invented report in the form that mail is composed from, which tests modify; and the identity of the bot ---

LIST = "perf-reports@lists.example.org"
BOT = BotSettings(address="perfbot@bot.example.org", list_address=LIST, base_url="https://perf.example.org")
FINDING = FindingData(
    metric="vm-scan.ops_per_sec",
    unit="1/s",
    direction="higher",
    verdict=Grade.REGRESSION,
    change_pct=-12.44,
    old_mean=184200.0,
    old_stddev_pct=3.2,
    old_runs=6,
    new_mean=161290.0,
    new_stddev_pct=0.4,
    new_runs=5,
    suite="vm-scan",
    params={"nr_task": "50%", "test": "anon-cold"},
    machine="lab7-m1",
    machine_text="64 CPUs, 2 sockets, Example CPU, 256 GiB memory",
    p_value=0.0002,
    low_pct=-15.7,
    high_pct=-9.1,
    noise_pct=1.1,
)
SLOWER = replace(
    FINDING,
    metric="vm-scan.p99_ms",
    unit="ms",
    direction="lower",
    change_pct=22.0,
    old_mean=3.1,
    new_mean=3.782,
    low_pct=None,
    noise_pct=None,
)
REPORT = ReportData(
    tag="7d3e91c0a45b28f6",
    sha="3b1f0c9d2e" + "4" * 30,
    title="mm/vmscan: walk cold folios first",
    author=Address("Dana Brook", "dana@dev.example"),
    trailers=(("Signed-off-by", "Dana Brook <dana@dev.example>"), ("Reviewed-by", "Lee Park <lee@dev.example>")),
    tree="linus",
    tree_url="https://git.example.org/linux.git",
    branch="master",
    parent_sha="a" * 40,
    parent_title="mm: prepare",
    base="v9.1-rc1",
    good="v9.1-rc1",
    bad="v9.1-rc2",
    bisect_steps=7,
    verdict=Verdict.REGRESSION,
    findings=(FINDING, SLOWER),
    build=BuildInfo(kconfig="perf-9", compiler="gcc-14"),
)
