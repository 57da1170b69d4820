"""The steps of a run: wake the worker, kill it, wait until the outbox is idle, and count."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

from django.db import connection
from django.utils import timezone

from bot import tasks
from bot.celery import app
from bot.outbox.reconcile import THE_POLICY
from tests.crash import mails as made
from tests.crash.receiver import Receiver
from tests.support.outbox import unrecorded
from tracker.models import MailTransition, OutgoingMail, OutgoingState
from tracker.services import mail_transitions

S = OutgoingState
BEAT = 0.25  # seconds between two wake-ups
PERSON = "the operator"


class Course:
    """A run in progress. Django must be configured for it."""

    def __init__(self, receiver: Receiver, worker: Any, dice: random.Random, number: int) -> None:
        self.receiver, self.worker, self.dice, self.number = receiver, worker, dice, number
        made.make(number, timezone.now())
        self._over = threading.Event()
        self._beat = threading.Thread(target=self._enqueue, daemon=True)
        self._beat.start()

    def _enqueue(self) -> None:
        """Enqueue tasks like beat, but more often; they expire, since outdated ones are of no use."""
        assert not app.conf.task_acks_late  # a task that was lost is enqueued again
        while not self._over.wait(BEAT):
            for task in (tasks.send_mail, tasks.read_archives):
                task.apply_async(expires=2)

    def kill_repeatedly(self, kills: int) -> int:
        """Kill the worker after random numbers of mails and milliseconds, and return how often it was killed."""
        killed = 0
        self.worker.start()
        while killed < kills and (left := self.number - len(self.receiver.taken)) > 0:
            most = 2 * left // (kills - killed)
            quota = sum(self.receiver.taken.values()) + self.dice.randint(0, most)
            until = time.monotonic() + 5
            while sum(self.receiver.taken.values()) < quota and time.monotonic() < until:
                time.sleep(0.002)
            time.sleep(self.dice.random() * (0.08 if most else 0.5))
            self.worker.kill()
            killed += 1
            self.worker.start()
        return killed

    def wait_until_idle(self, patience: float) -> None:
        """Wait until only decisions by an operator are left; then resend what the receiver does not have."""
        until = time.monotonic() + patience
        quiet = 0
        while quiet < 3:
            assert time.monotonic() < until, f"not at rest: {self._states()}"
            waiting = OutgoingMail.objects.filter(state__in=(S.APPROVED, S.SENDING)).exists() or self._may_be_resent()
            quiet = 0 if waiting else quiet + 1
            time.sleep(0.5)
        self._decide()

    def _may_be_resent(self) -> bool:
        resent = MailTransition.objects.filter(by=THE_POLICY).values("mail")
        return OutgoingMail.objects.filter(state=S.IN_DOUBT).exclude(pk__in=resent).exists()

    def _states(self) -> list[Any]:
        return list(OutgoingMail.objects.exclude(state=S.SENT).values_list("pk", "state", "reason")[:10])

    def _decide(self) -> None:
        for mail in OutgoingMail.objects.filter(state__in=(S.IN_DOUBT, S.FAILED)):
            if not self.receiver.taken[mail.message_id]:
                mail_transitions.apply_action(mail.pk, "resend", PERSON, timezone.now(), "the receivers have no copy")
        until = time.monotonic() + 60
        while OutgoingMail.objects.filter(state__in=(S.APPROVED, S.SENDING)).exists() and time.monotonic() < until:
            time.sleep(0.2)

    def close(self) -> None:
        """Stop waking the worker, and close the database connection."""
        self._over.set()
        self._beat.join(5)
        connection.close()


def count(receiver: Receiver) -> dict[str, int]:
    """Compare what the receiver accepted with the records, and return the figures."""
    ids = dict(OutgoingMail.objects.values_list("pk", "message_id"))
    again = set(MailTransition.objects.filter(by__in=(THE_POLICY, PERSON)).values_list("mail", flat=True))
    in_doubt = set(
        MailTransition.objects.filter(became=S.IN_DOUBT).exclude(was=S.IN_DOUBT).values_list("mail", flat=True)
    )
    found = set(MailTransition.objects.filter(was=S.IN_DOUBT, became=S.SENT).values_list("mail", flat=True))
    twice = {pk for pk, message_id in ids.items() if receiver.taken[message_id] > 1}
    person = set(OutgoingMail.objects.filter(state=S.IN_DOUBT).values_list("pk", flat=True))
    person |= set(MailTransition.objects.filter(by=PERSON).values_list("mail", flat=True))
    return {
        "mails": len(ids),
        "lost": sum(not receiver.taken[message_id] for message_id in ids.values()),
        "in_doubt": len(in_doubt),
        "found": len(found),
        "resent": len(set(MailTransition.objects.filter(by=THE_POLICY).values_list("mail", flat=True))),
        "left_to_a_person": len(person),
        "twice": len(twice),
        "twice_unasked": len(twice - again),
        "other_bytes": len(receiver.differs),
        "unrecorded": len(unrecorded()),
    }
